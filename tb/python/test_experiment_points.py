# SPDX-License-Identifier: Apache-2.0
"""Experiments from files of points with known figures: what the summary computes from them, which files count, how several
processes share them. Nothing is simulated."""

from __future__ import annotations

import json
import math
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest
from beds import CAPACITY, USUAL, Bed, Figures, half_load
from coltrain import stats
from coltrain.cli import Failure
from coltrain.experiments.colocation import LOADS, Setting, settings_of_the_grid
from coltrain.experiments.common import DIGITS, LARGE
from coltrain.experiments.points import Point, Store
from coltrain.experiments.running import Session
from coltrain.stats import Ratio
from conftest import TOP

STRETCH, OF_IDLE, USE, SHARE, NONE_LATE, NONE_LOST, NONE_WRONG, TARGETS = range(8)
PATIENCE_S = 30


def near(value: float) -> object:
    return pytest.approx(value, rel=1e-9)


def expect_ratio(r: Ratio, mean: float, low: float, high: float) -> None:
    assert r.mean == near(mean) and r.low == pytest.approx(low, rel=1e-4) and r.high == pytest.approx(high, rel=1e-4)


def expect_single(r: Ratio, value: float) -> None:
    assert r.seeds == 1 and r.mean == near(value) and math.isnan(r.low) and math.isnan(r.high)


# ---- Ratios ----


@pytest.mark.parametrize(
    ("window", "rows", "rows_alone", "cycles_alone"),
    [
        (50, 5, 5, 50),
        (100, 10, 10, 100),
        (150, 20, 25, 100 + 100 * 10 / 30),
        (200, 40, 40, 200),
        (250, 45, 50, 225),
        (299, 59, 59.8, 295),
        (300, 60, 60, 300),
        (600, 90, 120, 450),
        (301, 61, 60.2, 305),
    ],
)
def test_training_between_samples(tmp_path: Path, window: int, rows: int, rows_alone: float, cycles_alone: float) -> None:
    """Rows and cycles of training alone lie on straight lines between its samples, the first from 0; past the last one they
    go on at the mean rate, a row in five cycles."""
    b = Bed(tmp_path)
    b.put_training()
    b.put_pair(1, USUAL, replace(USUAL, window=window, rows=rows))
    c = b.cell()
    expect_single(c.share, rows / rows_alone)
    expect_single(c.share_of_idle, rows / rows_alone / (1 - 0.5))
    expect_single(c.same_work, cycles_alone / window)


def test_two_seeds(tmp_path: Path) -> None:
    """Logarithms l and 2 l: the deviation of the mean is l / 2, and t is 12.7062 with one degree of freedom."""
    lg = math.log(1.1)
    half = 12.7062 * lg / 2
    b = Bed(tmp_path)
    b.put_training()
    # u of the run beside training is not taken.
    b.put_pair(1, replace(USUAL, u=0.4), Figures(p99=11000, u=0.9))
    b.put_pair(2, replace(USUAL, u=0.5), Figures(p99=12100, u=0.9, rows=66))
    c = b.cell()
    assert c.seeds == 2
    expect_ratio(c.stretch, math.exp(1.5 * lg), math.exp(1.5 * lg - half), math.exp(1.5 * lg + half))
    expect_ratio(c.share, math.exp(0.5 * lg), math.exp(0.5 * lg - half), math.exp(0.5 * lg + half))
    of_idle = (math.log(1 / 0.6) + math.log(2.2)) / 2
    deviation = 12.7062 * (math.log(2.2) - math.log(1 / 0.6)) / 2
    expect_ratio(c.share_of_idle, math.exp(of_idle), math.exp(of_idle - deviation), math.exp(of_idle + deviation))
    assert c.p99 == near(11000 * math.exp(lg / 2)) and c.p99_alone == near(10000)
    assert c.u == near(0.45) and c.u_over_load == near(1)
    assert c.batches[:2] == [12, 4] and c.mean_batch == near(1.25)


def test_five_seeds(tmp_path: Path) -> None:
    """Logarithms 0 to 4 l: variance 10 l^2 / 4, of the mean a fifth of it; t is 2.7764."""
    half = 2.7764 * math.log(1.1) * math.sqrt(0.5)
    b = Bed(tmp_path)
    b.put_training()
    for seed, p99 in enumerate((13310, 10000, 14641, 12100, 11000), 1):
        b.put_pair(seed, USUAL, replace(USUAL, p99=p99))
    c = b.cell()
    assert c.seeds == 5
    expect_ratio(c.stretch, 1.21, 1.21 * math.exp(-half), 1.21 * math.exp(half))
    expect_ratio(c.share, 1, 1, 1)
    assert c.p99 == near(12100)


def test_never_answered(tmp_path: Path) -> None:
    """p99 infinite beside training, alone, and in both; with a second seed that is finite."""
    b, never = Bed(tmp_path), replace(USUAL, p99=None)
    b.put_training()
    first = b.put_pair(1, USUAL, never)
    c = b.cell()
    assert c.stretch[1:] == (math.inf,) * 3 and math.isinf(c.p99) and not math.isinf(c.p99_alone)
    b.put_pair(2, USUAL, USUAL)
    c = b.cell()
    assert c.stretch == (2, math.inf, math.inf, math.inf)
    expect_ratio(c.share, 1, 1, 1)
    b.put(first.alone(), never)
    b.put(first, USUAL)
    c = b.cell()  # 0 and 1: no mean of logarithms
    assert math.isnan(c.stretch.mean) and math.isinf(c.p99_alone) and not math.isinf(c.p99)
    b.put(first, never)
    c = b.cell()
    assert math.isnan(c.stretch.mean) and math.isinf(c.p99_alone) and math.isinf(c.p99)


def test_given_up(tmp_path: Path) -> None:
    """A run that was given up has a share only if it had measured a request: more than the first ten were answered."""
    b = Bed(tmp_path)
    b.put_training()
    s = b.put_pair(1, USUAL, replace(USUAL, given_up=True, lost=20))
    c = b.cell()
    assert math.isnan(c.share.mean) and math.isnan(c.same_work.mean) and math.isnan(c.share_of_idle.mean)
    expect_single(c.stretch, 1)
    assert c.asked - c.answered == 20
    b.put(s, replace(USUAL, given_up=True, lost=19))
    expect_single(b.cell().share, 1)


# ---- Requests one by one ----


def test_late_only_beside_training(tmp_path: Path) -> None:
    """Counted are measured requests, from the tenth on, in time alone and late together, by their numbers."""
    b = Bed(tmp_path)
    b.put_training()
    alone = replace(USUAL, late=14, lates=3)
    s = b.put_pair(1, alone, replace(USUAL, late=8, lates=7, lost=2))
    c = b.cell()
    assert c.missed_only_together == 4 + 2  # 10 .. 13; 28, 29
    assert (c.missed, c.missed_alone, c.measured) == (9, 3, 20)
    b.put(s.alone(), replace(alone, lost=1))
    c = b.cell()
    assert c.missed_only_together == 4 + 1
    assert c.lost_alone == 1


def cut(path: Path, end: int) -> None:
    size = path.stat().st_size
    assert end < size
    os.truncate(path, size - end)


@pytest.mark.parametrize("end", [None, 40, 11])
@pytest.mark.parametrize("alone", [False, True])
def test_rows_that_are_lacking(tmp_path: Path, end: int | None, alone: bool) -> None:
    """Without all rows of both runs a seed is not there, and its run is lacking. The last row ends with "1390,1,3,OK,0": cut
    within the cycle of its end, it has none."""
    b = Bed(tmp_path)
    b.put_training()
    b.put_pair(1, USUAL, USUAL)
    s = b.put_pair(2, USUAL, USUAL)
    assert b.cell().seeds == 2
    path = b.path(s.alone() if alone else s, ".csv")
    if end is None:
        path.unlink()
    else:
        cut(path, end)
    cells = b.cells()
    assert [c.seeds for c in cells.list] == [1]
    assert cells.there == 5
    assert [x.name() for x in cells.lacking] == [s.name()]
    b.put(s.alone() if alone else s, USUAL)
    assert b.cell().seeds == 2


def test_rows_without_answers(tmp_path: Path) -> None:
    """A row without an end is no answer."""
    b = Bed(tmp_path)
    b.put_training()
    s = b.put_pair(1, USUAL, replace(USUAL, lost=1))
    path = b.path(s, ".csv")
    with path.open("a") as file:
        file.write("29,0,7,390,,,,0,0,ADDRESS,0\n")
    assert b.cell().missed_only_together == 1
    cut(path, 60)  # that row, and a part of the last answer
    with path.open("a") as file:
        file.write("\n29,0,7,390,,,,0,0,ADDRESS,0\n")
    assert b.cells().list == []


# ---- Targets ----


def one(others: bool | None, at: int, held: bool | None) -> list[bool | None]:
    return [held if i == at else others for i in range(TARGETS)]


def good(s: Setting) -> Figures:
    """Good at every target, at each load."""
    return Figures(u=s.load)


def core(server: object, permille: int, seed: int) -> Setting:
    return half_load(seed, server=server, permille=permille)


def put_core(b: Bed, seeds: int = 5) -> Bed:
    """All of the core grid under PRIORITY."""
    b.put_training()
    for seed in range(1, seeds + 1):
        for server in (DIGITS, LARGE):
            for load in LOADS:
                s = b.add_pair(core(server, load, seed))
                b.put(s.alone(), good(s))
                b.put(s, good(s))
    return b


def put_p99(b: Bed, server: object, permille: int, p99: list[int | None]) -> None:
    for seed, value in enumerate(p99, 1):
        s = core(server, permille, seed)
        b.put(s, replace(good(s), p99=value))


def test_targets_by_the_unfavourable_end(tmp_path: Path) -> None:
    """A mean of 1.0799 within 1.08 +- 0.0005, and the same mean with seeds far apart."""
    b = put_core(Bed(tmp_path, 100))
    assert b.held() == one(True, STRETCH, True)
    put_p99(b, LARGE, 800, [10800, 10795, 10805, 10800, 10800])
    assert b.held() == one(True, STRETCH, True)
    put_p99(b, LARGE, 800, [10400, 10800, 11200, 10400, 11200])
    assert b.held() == one(True, STRETCH, False)
    # Not above load 0.8, and not for the small network.
    put_p99(b, LARGE, 800, [10000] * 5)
    put_p99(b, LARGE, 900, [20000] * 5)
    put_p99(b, DIGITS, 500, [20000] * 5)
    assert b.held() == one(True, STRETCH, True)
    # Infinite is against it.
    put_p99(b, LARGE, 200, [10000, 10000, None, 10000, 10000])
    assert b.held() == one(True, STRETCH, False)
    # In both runs there is no ratio, which hides no other load that is against it.
    s = core(LARGE, 200, 3)
    b.put(s.alone(), replace(good(s), p99=None))
    assert b.held() == one(True, STRETCH, None)
    put_p99(b, LARGE, 500, [12000] * 5)
    assert b.held() == one(True, STRETCH, False)


def test_targets_of_a_part(tmp_path: Path) -> None:
    """With something of the core grid missing nothing is held, but a point that is there can be against it."""
    b = put_core(Bed(tmp_path / "part", 1))
    assert b.held() == one(None, STRETCH, None)
    put_p99(b, LARGE, 800, [20000] * 5)
    assert b.held() == one(None, STRETCH, False)
    assert put_core(Bed(tmp_path / "four", 100), 4).held() == one(None, STRETCH, None)
    # Without the other axes, what speaks of all runs.
    assert put_core(Bed(tmp_path / "core", 100, "--core")).held() == [True] * 4 + [None] * 3


def test_targets_without_a_file(tmp_path: Path) -> None:
    """One file of the whole grid is away: what does not speak of it is held."""
    b = put_core(Bed(tmp_path, 100))
    s = core(LARGE, 900, 5)
    high = [True] * 5 + [None] * 2
    b.path(s, ".json").unlink()
    assert b.held() == high
    b.put(s, good(s))
    b.path(s.alone(), ".csv").unlink()
    assert b.held() == high
    b.put(s.alone(), good(s))
    # A load that is not in the list at all.
    b.e.grid = [g for g in b.e.grid if g.permille != 200 or g.server != LARGE]
    assert b.held() == [None] * 7


def test_targets_beyond_the_core(tmp_path: Path) -> None:
    """Whatever is not of the core grid can be lacking, too: by its rows, or for want of training alone with that memory."""
    b = put_core(Bed(tmp_path, 100))
    s = b.add_pair(half_load(policy="FCFS", core=False))
    b.put(s, good(s))
    assert b.held() == one(True, STRETCH, True)
    b.path(s, ".csv").unlink()
    assert b.held() == one(True, NONE_WRONG, None)
    b.put(s, good(s))
    s = b.add_pair(half_load(memory="bandwidth=8", core=False))
    b.put(s.alone(), good(s))
    b.put(s, good(s))
    assert b.held() == [True] * 4 + [None] * 3
    b.put_training("bandwidth=8")
    assert b.held() == one(True, STRETCH, True)


def test_targets_missed_by_one_run(tmp_path: Path) -> None:
    """Each of the other targets, missed by one run."""
    b = put_core(Bed(tmp_path, 100))
    s = core(LARGE, 500, 3)
    b.put(s, replace(good(s), late=2000, lates=1))
    assert b.held() == one(True, NONE_LATE, False)
    b.put(s, replace(good(s), wrong=1))
    assert b.held() == one(True, NONE_WRONG, False)
    b.put(s, good(s))
    b.put(s.alone(), replace(good(s), wrong=1))
    assert b.held() == one(True, NONE_WRONG, False)
    b.put(s.alone(), replace(good(s), u=0.53))
    assert b.held() == one(True, USE, False)
    b.put(s.alone(), good(s))
    s = core(DIGITS, 900, 5)
    b.put(s.alone(), replace(good(s), lost=1))
    b.put(s, replace(good(s), lost=1))  # late in both
    assert b.held() == one(True, NONE_LOST, False)
    b.put(s.alone(), good(s))
    b.put(s, good(s))
    for seed in range(1, 6):
        s = core(LARGE, 200, seed)
        b.put(s, replace(good(s), rows=46))  # of 60; and of 0.8 of them 0.958
    assert b.held() == one(True, SHARE, False)
    # One seed in which training got nothing.
    for seed in range(1, 6):
        s = core(LARGE, 200, seed)
        b.put(s, replace(good(s), rows=0 if seed == 4 else 60))
    assert b.held() == [True, False, True, False, True, True, True]


def test_targets_under_other_conditions(tmp_path: Path) -> None:
    """Under FCFS and in bursts only wrong answers count; lost ones in bursts do."""
    b = put_core(Bed(tmp_path, 100))
    fcfs = b.add_pair(half_load(policy="FCFS", core=False))
    bursts = b.add_pair(half_load(arrivals="bursty", core=False))
    late = replace(good(fcfs), p99=None, late=1500, lates=100)
    b.put(bursts.alone(), good(bursts))
    b.put(bursts, late)
    b.put(fcfs, replace(late, lost=500))
    assert b.held() == one(True, STRETCH, True)
    b.put(fcfs, replace(late, lost=500, wrong=1))
    assert b.held() == one(True, NONE_WRONG, False)
    b.put(fcfs, replace(late, lost=500))
    b.put(bursts, replace(late, wrong=1))
    assert b.held() == one(True, NONE_WRONG, False)
    b.put(bursts, replace(late, lost=1))
    assert b.held() == one(True, NONE_LOST, False)


# ---- Files of points ----


def test_other_settings(tmp_path: Path) -> None:
    """A file counts for the settings it was made by."""
    b = Bed(tmp_path, 100)
    s = b.put_pair(1, USUAL, USUAL)

    def there(x: Setting) -> bool:
        return b.e.store.load(Point(x.name(), b.e.point(x).settings)) is not None

    def as_s(x: Setting) -> bool:
        """The file of s by the settings of another."""
        return b.e.store.load(Point(s.name(), b.e.point(x).settings)) is not None

    assert there(s)
    b.e.part = 99
    assert not there(s)
    b.e.part = 100
    b.e.options.data = "mnist"
    assert not there(s)
    assert there(s.alone())  # which trains nothing
    b.e.options.data = "fashion-mnist"
    for key in CAPACITY:
        b.e.capacity[LARGE.name, ""][key] += 1
        assert not there(s)
        b.e.capacity[LARGE.name, ""][key] -= 1
    for other in (replace(s, seed=2), replace(s, policy="FCFS"), replace(s, memory="bandwidth=8")):
        assert not as_s(other)
    training = b.put_training()
    b.e.part = 3  # fewer samples: a window of the whole experiment would go beyond them
    assert not there(training)
    b.e.part = 100
    assert there(training) and there(s)


def test_half_a_file(tmp_path: Path) -> None:
    b = Bed(tmp_path, 100)
    s = b.put_pair(1, USUAL, USUAL)
    path = b.path(s, ".json")
    cut(path, path.stat().st_size // 2)
    assert b.e.store.load(b.e.point(s)) is None
    b.put(s, USUAL)
    assert b.e.store.load(b.e.point(s))
    assert not b.path(s, ".json.new").exists()  # written whole, then renamed


# ---- Processes ----

HOLD = """
import sys, time
from coltrain.experiments.points import Point, Store
with Store(sys.argv[1]).claim(Point(sys.argv[2], {})) as mine:
    print("y" if mine else "n", flush=True)
    time.sleep(600)
"""


def environment(**more: str) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(TOP / "host/python"), **more}


def fake(path: Path, script: str) -> str:
    """A command in place of coltrain."""
    path.write_text(f"#!/bin/sh\n{script}\n")
    path.chmod(0o755)
    return str(path)


def test_claims(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process cannot take what is taken; killed, it has given it back."""
    monkeypatch.setenv("COLTRAIN_COMMAND", fake(tmp_path / "c", """cat >/dev/null; echo '{"answered": 1}'"""))
    store = Store(str(tmp_path))
    store.open()
    point, session = Point("p", {"requests": 1}), Session(store, 1)
    holder = subprocess.Popen([sys.executable, "-c", HOLD, str(tmp_path), "p"], stdout=subprocess.PIPE, text=True, env=environment())
    assert holder.stdout and holder.stdout.readline() == "y\n"
    with store.claim(point) as mine:
        assert not mine
    assert session.make(point) is None
    with store.claim(Point("other", {})) as mine:
        assert mine
    holder.kill()
    holder.wait(PATIENCE_S)
    found = session.make(point)
    assert found and found["answered"] == 1
    monkeypatch.setenv("COLTRAIN_COMMAND", "/nonexistent")  # what is there is not made again
    assert session.make(point) == found


@pytest.mark.parametrize(
    ("script", "text"),
    [
        ("echo '7 % of it' >&2; echo 'coltrain: the point cannot be made' >&2; exit 1", "p: the point cannot be made"),
        ("kill -9 $$", "p: the run ended with status -9: it said nothing"),
        ("echo one >&2; echo two >&2; exit 3", "p: the run ended with status 3: two"),
    ],
)
def test_a_child_is_heard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str, text: str) -> None:
    """Sentences of a run that failed are heard, or else its last line; the others end."""
    monkeypatch.setenv("COLTRAIN_COMMAND", fake(tmp_path / "c", "cat >/dev/null; " + script))
    store = Store(str(tmp_path))
    store.open()
    session = Session(store, 2)
    with pytest.raises(Failure) as failed:
        session.points([Point("p", {"requests": 1})])
    assert str(failed.value) == text
    assert session.stopped.is_set() and not list(store.points.glob("*.json"))


WORK = """
import sys
from coltrain.experiments.points import Point, Store
from coltrain.experiments.running import Session
store = Store(sys.argv[1])
store.open()
s = Session(store, 3)
s.catch_stop()
s.points([Point(f"p{i}", {"requests": 1}) for i in range(9)])
print("ended", flush=True)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_runs_stop(tmp_path: Path, number: signal.Signals) -> None:
    """Three runs at once end with the process that started them, however that ends. The command is coltrain itself."""
    build = TOP / os.environ.get("BUILD", "build")
    mark = fake(tmp_path / "c", f'touch "{tmp_path}/$$"; exec {build}/bin/coltrain load - ')
    script = WORK.replace(
        '{"requests": 1})', '{"requests": 1}, {"kind": "training", "samples": 100000, "training": {"layers": "64-16-10"}})'
    )
    work = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True, env=environment(COLTRAIN_COMMAND=mark)
    )
    end = time.monotonic() + PATIENCE_S
    while len(pids := [int(p.name) for p in tmp_path.iterdir() if p.name.isdecimal()]) < 3 and time.monotonic() < end:
        time.sleep(0.02)
    assert len(pids) == 3
    time.sleep(0.5)  # past the exec
    work.send_signal(number)
    out, _ = work.communicate(timeout=PATIENCE_S)
    assert out == ("" if number == signal.SIGKILL else "ended\n")
    while any(os.path.exists(f"/proc/{p}") for p in pids) and time.monotonic() < end + PATIENCE_S:
        time.sleep(0.02)
    assert not any(os.path.exists(f"/proc/{p}") for p in pids)
    assert not list((tmp_path / "points").glob("*.json"))


# ---- The command ----


def coltrain(*args: str, **more: str) -> subprocess.CompletedProcess[str]:
    build = TOP / os.environ.get("BUILD", "build")
    return subprocess.run([build / "bin/coltrain", *args], capture_output=True, text=True, env={**os.environ, **more}, cwd=TOP)


def test_colocation_of_files(tmp_path: Path) -> None:
    """Points that are there are not made again, by their names and with the capacity in its file; what they say is written."""
    b = Bed(tmp_path)
    b.e.options.trace = "azure-conversation.csv"
    capacity = Setting("capacity", LARGE)
    b.e.store.save(b.e.point(capacity), dict(CAPACITY))
    b.put_training()
    for arrivals in ("poisson", "bursty", "trace"):
        b.put_pair(1, USUAL, USUAL)
        s = half_load(arrivals=arrivals)
        b.put(s.alone(), USUAL)
        b.put(s, USUAL)
    args = ["experiment", "colocation", "--out", str(tmp_path), "--part", "1", "--seeds", "1", "--jobs", "2", "--only"]
    # All but that with bandwidth=8. Made again, a point would have other figures.
    done = coltrain(*args, "784-*-priority-load50-*[!8]-seed1")
    assert (done.returncode, done.stderr) == (0, "")
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["points_there"] == 8
    assert [c["arrivals"] for c in summary["cells"]] == ["poisson", "bursty", "trace"]
    assert summary["cells"][0]["core"]
    rows = (tmp_path / "summary.csv").read_text().splitlines()
    assert len(rows) == 4 and rows[0].startswith("server,policy,load,") and rows[1].startswith("784-512-256-10,PRIORITY,0.5,")
    assert (tmp_path / "report.html").read_text().startswith("<!doctype html>")
    done = coltrain(*args, "nothing-*")
    assert done.returncode == 1 and "--only: none of the" in done.stderr


def test_the_grid_of_the_definition() -> None:
    grid = settings_of_the_grid(False, True, 5)
    assert len(grid) == 307 and len({s.name() for s in grid}) == 307
    assert len(settings_of_the_grid(True, False, 1)) == 2 + 1 + 4 + 16
    assert grid[0].name() == "digits-capacity"


def test_usage() -> None:
    for args, status, text in (
        (["experiment"], 2, "Usage: coltrain experiment"),
        (["experiment", "--help"], 0, "  colocation "),
        (["experiment", "colocaton"], 2, 'did you mean "colocation"?'),
        (["experiment", "colocation", "--quik"], 2, "did you mean --quick?"),
        (["experiment", "batching", "--jobs", "0"], 2, "is not a whole number of 1..16"),
        (["experiment", "batching", "x"], 2, "one argument too many"),
        (["experiment", "batching", "--json", "/nonexistent/x"], 1, "--json /nonexistent/x: cannot be written"),
        (["experiment", "batching", "--out", "/dev/null/x"], 1, "cannot be made"),
    ):
        done = coltrain(*args)
        assert done.returncode == status and text in done.stdout + done.stderr, args


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    """Without Python, without NumPy, without other packages, without the program: each time a sentence says what to install."""
    build = TOP / os.environ.get("BUILD", "build")
    command, program = tmp_path / "bin/coltrain", tmp_path / "bin/coltrain-report"
    command.parent.mkdir()
    command.write_bytes((build / "bin/coltrain").read_bytes())
    command.chmod(0o755)

    def said() -> str:
        done = subprocess.run([command, "report", "x.json"], capture_output=True, text=True, env={**os.environ, "PATH": "/nonexistent"})
        assert done.returncode == 1 and done.stderr.startswith("coltrain: "), done.stderr
        return done.stderr

    assert "pip install ./host/python puts it there" in said()
    python = f"#!{sys.executable}\nimport sys\n"
    real = (
        (build / "bin/coltrain-report")
        .read_text()
        .partition("\n")[2]
        .replace("os.path.dirname(os.path.realpath(__file__))", f"'{build}/bin'")
    )
    for text, sentence in (
        ("#!/nonexistent/python3\n", "install the packages python3,"),
        (f"{python}sys.modules['numpy'] = None\n{real}", "packages that are not installed; install python3-numpy, or"),
        (
            f"{python}import importlib.util as u\nf = u.find_spec\n{HIDE}{real}",
            "not installed; install python3-matplotlib python3-jinja2, or",
        ),
    ):
        program.write_text(text)
        program.chmod(0o755)
        assert sentence in said(), text


HIDE = "u.find_spec = lambda name, *more: None if name in ('matplotlib', 'jinja2') else f(name, *more)\n"


def test_figures_of_a_list() -> None:
    """Quantiles are samples, by the definition, in integers."""
    assert stats.quantile([], 99, 100) == math.inf
    assert [stats.quantile(range(1, 101), n, 100) for n in (1, 50, 99, 100)] == [1, 50, 99, 100]
    assert stats.quantile([3, math.inf, 1], 1, 2) == 3
    assert [stats.drop(n) for n in (0, 1, 10, 11, 10000)] == [0, 1, 1, 2, 1000]
    assert [stats.drop_campaign(n) for n in (10, 3000, 20000)] == [10, 1000, 2000]
    assert [stats.requests(n) for n in (2000, 10000, 32000)] == [3000, 11112, 35556]
