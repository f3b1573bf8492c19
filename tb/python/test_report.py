# SPDX-License-Identifier: Apache-2.0
"""Pages of runs: the figures of stored runs (data/run.json.xz under PRIORITY, data/job.json.xz under JOB), what is said where something
is missing, and how a browser shows them at two widths, light and dark."""

from __future__ import annotations

import contextlib
import copy
import json
import lzma
import os
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import coltrain._abi
import numpy as np
import pytest
from beds import read_page
from browser import Browser, look_at
from coltrain.cli import main
from coltrain.experiments.batching import Batching
from coltrain.experiments.colocation import Colocation
from coltrain.experiments.common import parser_of
from coltrain.reports import charts
from coltrain.reports.experiment import page_of
from coltrain.reports.report import pages as pages_of
from coltrain.reports.run import Run, comparison, page
from conftest import TOP

DATA = Path(__file__).parent / "data"
COMMAND = str(TOP / os.environ.get("BUILD", "build") / "bin/coltrain")
Json = dict[str, Any]


def stored(name: str) -> Json:
    with lzma.open(DATA / f"{name}.json.xz") as file:
        found: Json = json.load(file)
    return found


@pytest.fixture
def priority() -> Json:
    return stored("run")


@pytest.fixture(scope="module")
def run_pages() -> dict[str, str]:
    run, job = stored("run"), stored("job")
    both = comparison([Run("a/run.json", run), Run("b/job.json", job)])
    return {"run": page(Run("run.json", run)), "job": page(Run("job.json", job)), "comparison": both}


def text_of(result: Json) -> str:
    return read_page(page(Run("run.json", result))).text


@contextlib.contextmanager
def words_only() -> Iterator[None]:
    """For pages whose charts another page has, too: drawing takes nearly all of their time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(charts, "_one", lambda *_: '<svg role="img"></svg>')
        yield


# ---- Figures ----


def test_figures_are_those_of_the_result(priority: Json) -> None:
    """Quantiles from the rows are those that the command computed itself."""
    run = Run("run.json", priority)
    for which, part in (("serve", "serve"), ("alone", "serve_alone")):
        took = run.measured(which) / run.us
        r = priority[part]
        assert len(took) == r["measured"]
        assert np.sort(took)[-(-99 * len(took) // 100) - 1] == pytest.approx(r["p99_cycles"])
        assert np.sort(took)[-(-len(took) // 2) - 1] == pytest.approx(r["p50_cycles"])
        assert took.max() == pytest.approx(r["max_cycles"])
    assert sum(priority["series"]["serve"]["right"]) == sum(v["right"] for v in priority["versions"])
    assert len(run.loss) == priority["train"]["steps"]
    assert np.mean(run.loss[-10:]) == pytest.approx(priority["train"]["loss_last"], rel=1e-6)
    for unit in priority["units"]:
        assert run.busy("time", unit["unit"], "inference") == pytest.approx(unit["inference"], rel=1e-6)
        assert run.busy("time", unit["unit"], "training") == pytest.approx(unit["training"], rel=1e-6)
    for o in priority["others"]:
        if o["policy"] == "job":
            assert o["p99_cycles"] is None and o["completed"] < o["requests"]


def test_a_run_under_priority(run_pages: dict[str, str]) -> None:
    """The figures that the page made in C showed of the same run."""
    result = run_pages["run"]
    reader = read_page(result)
    for part in (
        "81.5 µs for 99 of 100 requests at most, while training. 81.1 µs without training: × 1.005",
        "60.8 %",
        "97.2 % of the test images, by the version of the weights that answered last; the first one had 76.4 %",
        "6 versions of the weights, of which 5 answered requests",
        "0 of 2000 answers",
        "Requests hardly felt the training",
        "All figures of this section are of those 400 requests",
        "157 were answered before the run was given up after 18.98 ms",
        "1800 requests were measured, after the first 200",
        "It fell: from 1.729 in the first steps to 0.092 in the last",
        "100 MHz; 16 x 16 multipliers",
        "225 of 225 steps of 32 samples, learning rate 0.2, seed 1",
        "while training, less alone, µs",
        "requests that were faster (equal room for each nine)",
        "The two lines are farthest apart where",
        "How near to the roof?",
        "5: training alone",
        "time to an answer (logarithmic scale)",
    ):
        assert part in reader.text, part
    assert result.count('<svg role="img"') == 7 * 2


def test_a_run_under_job(run_pages: dict[str, str]) -> None:
    """It says what happened, not that all is well."""
    text = read_page(run_pages["job"]).text
    assert "Requests felt the training under the policy job: p99 was 16.95 ms, 134 times the 126.7 µs that it is alone; the" in text
    assert "hardly felt" not in text and "lie on each other" not in text


def test_the_verdict_is_of_the_figures(priority: Json) -> None:
    """The median counts, too; a ratio of thousands is a number that can be read; long times are in milliseconds."""
    slower = copy.deepcopy(priority)
    slower["serve"]["p50_cycles"] = 1.2 * slower["serve_alone"]["p50_cycles"]
    with words_only():
        text = text_of(slower)
    assert "Requests felt the training" in text and "hardly felt" not in text
    run = Run("run.json", priority)
    apart, share, ratio = run.largest_difference()
    assert 0 < apart < run.us_of(run.serve["max_cycles"]) and 0 <= share < 1 and ratio > 1
    long = copy.deepcopy(priority)
    long["series"]["serve"]["end"] = [e + 20_000_000 for e in long["series"]["serve"]["end"]]
    long["serve"]["p99_cycles"] = 20_000_000 + priority["serve"]["p99_cycles"]
    long["ratio"]["p99"] = long["serve"]["p99_cycles"] / long["serve_alone"]["p99_cycles"]
    text = text_of(long)
    said = f"{long['ratio']['p99']:,.0f}"
    assert len(said) == 5 and f"{said} times the" in text and f"× {said}" in text
    assert "time to an answer, ms" in text and "while training, less alone, ms" in text


def test_what_is_not_known(priority: Json) -> None:
    """Without a clock; stopped; with nothing measured; with nothing answered."""
    emu = copy.deepcopy(priority)
    emu |= {"clock_hz": None, "device": "emu:", "time": None, "time_alone": None, "others": []}
    emu["ratio"] = {"p99": None, "train_throughput": None}
    emu["series"] |= {"alone": {"scheduled": [], "end": []}}
    for part in ("serve", "serve_alone"):
        emu[part] |= {"p50_cycles": None, "p99_cycles": None, "max_cycles": None}
    for key in ("scheduled", "end"):
        emu["series"]["serve"][key] = [None] * 2000
    text = text_of(emu)
    assert "has no clock" in text and "Do requests feel" not in text and "Does it learn?" in text
    cut: Json = copy.deepcopy(priority)
    cut["stopped"] = True
    cut["serve"]["completed"] = 1200
    with words_only():
        assert "This run was stopped early: 1200 of 2000 requests were answered" in text_of(cut)
    empty = copy.deepcopy(emu)
    empty["series"] = {
        "serve": {"scheduled": [], "end": [], "version": [], "right": []},
        "alone": {"scheduled": [], "end": []},
        "loss": [],
    }
    empty["versions"] = []
    empty["serve"] |= {"accuracy_first": None, "accuracy_last": None, "wrong": None}
    assert "were not compared" in text_of(empty)
    lost = copy.deepcopy(priority)
    lost["series"]["serve"] |= {"end": [None] * 2000, "version": [None] * 2000}
    lost["serve"] |= {"p99_cycles": None, "max_cycles": None, "p50_cycles": None}
    lost["ratio"]["p99"] = None
    assert "were not answered, or not measured" in text_of(lost)


def comparison_of(a: Json, b: Json, names: tuple[str, str] = ("a/run.json", "b/run.json")) -> str:
    return read_page(comparison([Run(names[0], a), Run(names[1], b)])).text


def test_runs_beside_each_other(priority: Json, run_pages: dict[str, str]) -> None:
    text = read_page(run_pages["comparison"]).text
    for part in ("2 runs beside each other", "They differ in epochs, policy", "policy job", "16.95 ms", "× 134", "81.5 µs"):
        assert part in text, part
    assert "a/run.json" in text
    emu = copy.deepcopy(priority) | {"clock_hz": None, "device": "emu:", "time": None, "time_alone": None}
    emu["ratio"] = {"p99": None, "train_throughput": None}
    text = comparison_of(priority, emu)
    assert "never" not in text and "device emu: There is no roofline" in text
    short = copy.deepcopy(priority)
    short["serve"]["requests"] = 1000
    with words_only():
        assert "They differ in requests" in comparison_of(priority, short)
        text = comparison_of(priority, copy.deepcopy(priority), ("old/run.json", "new/run.json"))
        assert "old/run" in text and "new/run" in text
        alike = comparison_of(priority, copy.deepcopy(priority), ("a/run.json", "b/other.json"))
        assert "They differ" not in alike and "other" in alike


def without_clock(run: Json) -> Json:
    """Of the emulator: a page with few charts."""
    emu: Json = run | {"clock_hz": None, "device": "emu:", "time": None, "time_alone": None, "others": []}
    return emu | {"ratio": {"p99": None, "train_throughput": None}}


def test_text_is_escaped(priority: Json) -> None:
    assert "<script>alert(1)</script>" in text_of(without_clock(priority) | {"data": "<script>alert(1)</script>"})


# ---- The command ----


def report(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([COMMAND, "report", *args], capture_output=True, text=True)


def test_the_command(tmp_path: Path, priority: Json, capsys: pytest.CaptureFixture[str]) -> None:
    run = tmp_path / "run.json"
    run.write_text(json.dumps(without_clock(priority)))
    assert report(str(run), "-o", str(tmp_path / "run.html")).returncode == 0
    read_page((tmp_path / "run.html").read_text())
    (tmp_path / "no.json").write_text("{")
    (tmp_path / "list.json").write_text("[]")
    (tmp_path / "other.json").write_text('{"serve": 1}')
    (tmp_path / "old.json").write_text(json.dumps({k: v for k, v in priority.items() if k != "series"}))
    (tmp_path / "sum.json").write_text('{"experiment": "x"}')
    # By the command itself, one that goes well and one that does not; more of both without another start of Python and matplotlib.
    assert (done := report(str(tmp_path / "gone.json"), "-o", "-")).returncode == 1 and "cannot be read: No such file" in done.stderr
    with words_only():
        assert main("report", [str(run), str(run), "-o", "-"]) == 0 and capsys.readouterr().out.startswith("<!doctype html>")
    for args, status, said in (
        ([str(tmp_path / "gone.json"), "-o", "-"], 1, "gone.json: cannot be read: No such file"),
        ([str(tmp_path / "no.json"), "-o", "-"], 1, "is no JSON"),
        ([str(tmp_path / "list.json"), "-o", "-"], 1, "holds no object"),
        ([str(tmp_path / "other.json"), "-o", "-"], 1, "is neither what a verb of coltrain wrote"),
        ([str(tmp_path / "old.json"), "-o", "-"], 1, "by an earlier version"),
        ([str(tmp_path / "sum.json"), str(run), "-o", "-"], 1, "give it alone"),
        ([str(tmp_path / "sum.json"), "-o", "-"], 1, 'no page of an experiment "x"'),
        ([str(run), "-o", "/nonexistent/x"], 1, "cannot be written"),
        ([str(run), "-o", "/dev/full"], 1, "/dev/full: cannot be written: No space left"),
        ([str(run)], 2, "required: -o/--output"),
        ([str(run), "-o", "-", "--al"], 2, "there is no option --al"),
    ):
        try:
            got = main("report", args)
        except SystemExit as ended:  # used wrongly
            got = int(ended.code or 0)
        err = capsys.readouterr().err
        assert got == status and said in err, (args, err)


def test_axes_of_experiments_are_read_as_they_are_written(pages: Path) -> None:
    """Whole numbers of requests, rates in digits; commands are not cut off."""
    text = read_page((pages / "batching.html").read_text()).text
    assert "100,000" in text and "500,000" in text and " 7.5 " not in text and " 2.5 " not in text
    assert "pre{white-space:pre-wrap" in (pages / "batching.html").read_text()


# ---- In a browser ----

@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory, run_pages: dict[str, str]) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    with tarfile.open(DATA / "points.tar.xz") as archive:
        archive.extractall(folder)
    version, coltrain._abi.VERSION = coltrain._abi.VERSION, "0.1.0"  # of the points
    colocation = Colocation(parser_of(Colocation).parse(["--part", "1", "--seeds", "2", "--out", str(folder / "colocation")]))
    batching = Batching(parser_of(Batching).parse(["--part", "3", "--seeds", "2", "--out", str(folder / "batching")]))
    summaries = colocation.summary(), batching.summary()
    coltrain._abi.VERSION = version
    made = dict(run_pages)
    for verb, more in (("train", "--epochs=2 --samples=64"), ("serve-bench", "--requests=200"), ("counters", "")):
        subprocess.run([COMMAND, verb, *more.split(), "--json", str(folder / f"{verb}.json")], check=True, capture_output=True)
        made[verb] = pages_of([str(folder / f"{verb}.json")])
    gemm = [folder / f"gemm-{bandwidth}.json" for bandwidth in (16, 8)]
    shapes = [a for n in (16, 32, 64, 96, 128) for a in ("--shape", f"{n}x{n}x{n}")]
    for path, bandwidth in zip(gemm, ("16", "8"), strict=True):
        subprocess.run([COMMAND, "bench", "gemm", *shapes, "--bandwidth", bandwidth, "--json", str(path)], check=True, capture_output=True)
    made["gemm"] = pages_of([str(path) for path in gemm])
    made |= {"colocation": page_of(summaries[0]), "batching": page_of(summaries[1])}
    for name, text in made.items():
        (folder / f"{name}.html").write_text(text)
    return folder


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", ["run", "job", "comparison", "train", "serve-bench", "counters", "gemm", "colocation", "batching"])
def test_in_a_browser(pages: Path, browser: Browser, name: str, width: int, dark: bool) -> None:
    seen = look_at(browser, pages / f"{name}.html", width, dark)
    assert seen["charts"] >= 1 and seen["texts"] >= 15


CHART = """<!doctype html><body style="background:%s;margin:0"><svg role="img" aria-label="c" width="200" height="99">
<text x="9" y="50">one</text><text x="%d" y="50">two</text></svg><p style="width:%dpx;height:%dpx;background:#888">x</p>%s</body>"""


@pytest.mark.parametrize(
    ("page", "wrong"),
    [
        (("#0f1318", 90, 300, 900, ""), None),
        (("#0f1318", 90, 3, 3, ""), "blank"),
        (("#fff", 90, 300, 900, ""), "rgb"),
        (("#0f1318", 12, 300, 900, ""), "'two' lies on 'one' in c"),
        (("#0f1318", 190, 300, 900, ""), "'two' is clipped in c"),
        (("#0f1318", 90, 400, 900, ""), "the page is 400 wide, the screen 390"),
        (("#0f1318", 90, 300, 900, "<script>nothing()</script>"), "nothing is not defined"),
        (("#0f1318", 90, 300, 900, "<script>console.log('a word')</script>"), "a word"),
    ],
)
def test_the_browser_sees_what_is_wrong(browser: Browser, tmp_path: Path, page: tuple[Any, ...], wrong: str | None) -> None:
    (tmp_path / "page.html").write_text(CHART % page)
    if wrong is None:
        assert look_at(browser, tmp_path / "page.html", 390, True)["texts"] == 2
        return
    with pytest.raises(AssertionError, match=wrong):
        look_at(browser, tmp_path / "page.html", 390, True)
