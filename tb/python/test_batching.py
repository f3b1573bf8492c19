# SPDX-License-Identifier: Apache-2.0
"""`coltrain experiment batching`: the search over made-up figures, and a small experiment on the simulated hardware, stopped and
resumed, whose figures are found again in its rows. Seed 1 of arrivals, samples and weights."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import tarfile
import time
from pathlib import Path
from typing import Any

import pytest
from beds import read_page
from coltrain import stats
from coltrain.experiments.batching import Batching, Row, propose
from coltrain.experiments.common import BATCH, DIGITS, LARGE, parser_of
from conftest import TOP

Json = dict[str, Any]
COMMAND = str(TOP / os.environ.get("BUILD", "build") / "bin/coltrain")

# ---- The search ----


def made_up(max_batch: int) -> Row:
    row = Row(DIGITS, "10x", max_batch, known=True, feasible=True, service=1050, clock_hz=100_000_000, bound=10500)
    row.interval = 900 if max_batch == 1 else 1500
    row.cost = [1000 + 30 * n for n in range(BATCH)]
    row.list_rates()
    return row


def search(row: Row, limit: int) -> Row:
    """A rate is sustained up to a limit; runs above it are ended early, or have a p99 of their own."""
    tried: set[int] = set()
    while (rate := row.next()) is not None:
        assert 0 <= rate < len(row.rates) and rate not in tried
        tried.add(rate)
        good = row.rates[rate] <= limit
        row.take(rate, {"given_up": not good and rate % 2 == 1, "p99_cycles": row.bound + (0 if good else 1)})
    assert row.over
    return row


def test_neighbours() -> None:
    """Wherever it begins, it ends with the same two neighbours."""
    like = made_up(BATCH)
    assert 100 < len(like.rates) < 1024 and like.rates[-1] <= 16_000_000_000 // 1500
    assert all(a < b < 1.0101 * a for a, b in zip(like.rates, like.rates[1:], strict=False))
    for begin in range(0, len(like.rates), 37):
        for limit in range(0, len(like.rates), 29):
            row = made_up(BATCH)
            row.model = begin
            search(row, row.rates[limit])
            assert row.good and row.good.rate == limit
            assert row.bad.rate == limit + 1 if row.bad else limit + 1 == len(row.rates)
    none = made_up(BATCH)
    none.model = 50
    search(none, 0)
    assert none.good is None and none.bad and none.bad.rate == 0


def test_a_good_proposal() -> None:
    """A right first rate costs two runs."""
    row = made_up(1)
    row.model = 123
    assert len(search(row, row.rates[123]).tried) == 2


def test_the_model_is_plausible() -> None:
    """Of one engine that serves single requests p99 is known: with one of them every 1,000 cycles, and nine services to wait,
    0.7 to 0.85 of the capacity."""
    row = made_up(1)
    row.interval = 1000
    row.list_rates()
    propose(row, 20000, 2000)
    assert 0.7 < row.load(row.model) < 0.85


# ---- On the simulated hardware ----


def latencies(folder: Path, name: str) -> tuple[list[int], int]:
    """In order of arrival; the largest batch."""
    with open(folder / "points" / f"{name}.csv", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    assert [int(r["request"]) for r in rows] == list(range(len(rows)))
    assert all(int(r["end"]) > int(r["start"]) > int(r["scheduled"]) for r in rows)
    return [int(r["end"]) - int(r["scheduled"]) for r in rows], max(int(r["batch"]) for r in rows)


def check_row(folder: Path, row: Json) -> None:
    good, bound = row["sustained"], row["bound_cycles"]
    assert row["feasible"] and row["complete"]
    latency, most = latencies(folder, f"{row['name']}-rate{good['rate_per_gigacycle']}-seed1")
    assert len(latency) == good["requests"] and most <= row["max_batch"]
    # p99 by the definition; the first tenth is not measured.
    drop = -(-len(latency) // 10)
    left = sorted(latency[drop:])
    assert left[-(-99 * len(left) // 100) - 1] == row["p99_cycles"] == stats.quantile(latency[drop:], 99, 100)
    assert row["p99_cycles"] <= bound
    after = row["next_rate"]
    if after is None:  # the capacity ended it
        assert row["rate_per_second"] * 1.011 > row["capacity_per_second"]
        return
    # A run that was ended has more late ones than p99 leaves room for.
    assert good["rate_per_gigacycle"] < after["rate_per_gigacycle"] < 1.0102 * good["rate_per_gigacycle"] + 1
    latency, _ = latencies(folder, f"{row['name']}-rate{after['rate_per_gigacycle']}-seed1")
    drop = -(-after["requests"] // 10)
    assert sum(t > bound for t in latency[drop:]) > (after["requests"] - drop) // 100


def batching(folder: Path, only: str = "digits-10x-*") -> list[str]:
    return [COMMAND, "experiment", "batching", "--part", "3", "--only", only, "--out", str(folder)]


def points(folder: Path) -> set[str]:
    return {p.name for p in (folder / "points").glob("*.json")}


def stop_after(folder: Path, count: int) -> None:
    """Runs it until so many points are finished, then presses Ctrl-C."""
    work = subprocess.Popen(batching(folder), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while len(points(folder)) < count and work.poll() is None:
        time.sleep(0.02)
    work.send_signal(signal.SIGINT)
    _, err = work.communicate()
    assert work.returncode == 1 and "Stopped. The same command goes on" in err
    assert len(points(folder)) >= count


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    done = subprocess.run(batching(folder), check=True, capture_output=True, text=True)
    assert " left" in done.stderr and " points " in done.stderr
    return folder


def test_stopped_and_resumed(tmp_path: Path, whole: Path) -> None:
    """An experiment that was stopped twice and went on says the same as one that was not, and keeps what it had."""
    stop_after(tmp_path, 1)
    before = (tmp_path / "points/digits-cost.json").stat().st_ino
    stop_after(tmp_path, 2)
    subprocess.run(batching(tmp_path), check=True, capture_output=True)
    assert (tmp_path / "points/digits-cost.json").stat().st_ino == before
    assert points(tmp_path) == points(whole)
    a, b = (json.loads((folder / "summary.json").read_text()) for folder in (tmp_path, whole))
    assert a | {"run": None} == b | {"run": None}


def test_figures_from_the_rows(whole: Path) -> None:
    s = json.loads((whole / "summary.json").read_text())
    rows = [r for r in s["rows"] if r["name"].startswith("digits-10x-")]
    assert len(rows) == 2
    for row in rows:
        check_row(whole, row)
    ratio = s["ratios"][0]
    assert ratio["bound"] == "10x" and ratio["ratio"] == pytest.approx(rows[1]["rate_per_second"] / rows[0]["rate_per_second"], rel=1e-9)
    # Of so few requests a target cannot be held, only missed.
    assert s["targets"][0]["held"] is (None if ratio["ratio"] >= 6.67 else False)
    assert len(s["targets"]) == 5 and len(s["networks"][0]["cost_cycles"]) == BATCH
    read_page((whole / "report.html").read_text())
    assert len((whole / "summary.csv").read_text().splitlines()) == 1 + len(s["rows"])


def test_what_cannot_be(tmp_path: Path) -> None:
    """5,000 cycles are fewer than a request to the large network takes alone: what it takes is stored, as `whole` has measured the small
    one."""
    with tarfile.open(Path(__file__).parent / "data/points.tar.xz") as archive:
        file = archive.extractfile("batching/points/784-512-256-10-cost.json")
        assert file
        cost = json.load(file)
    e = Batching(parser_of(Batching).parse(["--part", "3", "--out", str(tmp_path)]))
    e.store.open()
    e.store.save(e.cost_point(LARGE), {k: v for k, v in cost.items() if k not in ("point", "settings")})
    done = subprocess.run(batching(tmp_path, "784-*-50us-*"), check=True, capture_output=True, text=True)
    assert "infeasible: a request alone takes" in done.stdout
    rows = [r for r in json.loads((tmp_path / "summary.json").read_text())["rows"] if r["bound"] == "50us"]
    assert len(rows) == 2
    for r in rows:
        assert r["bound_cycles"] == 5000 < r["unloaded_cycles"] and not r["feasible"] and r["rate_per_second"] is None
    assert "infeasible: a request alone takes longer" in read_page((tmp_path / "report.html").read_text()).text
