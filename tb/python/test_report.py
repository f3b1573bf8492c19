# SPDX-License-Identifier: Apache-2.0
"""Pages of runs: the figures of stored runs (data/run.json.xz under PRIORITY, data/job.json.xz under JOB), what is said where something
is missing, and how a browser shows them at two widths, light and dark."""

from __future__ import annotations

import copy
import html
import json
import lzma
import os
import re
import subprocess
import tarfile
from pathlib import Path
from typing import Any

import coltrain._abi
import numpy as np
import pytest
from beds import read_page
from coltrain.experiments.batching import Batching
from coltrain.experiments.colocation import Colocation
from coltrain.experiments.common import parser_of
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


def text_of(result: Json) -> str:
    return read_page(page(Run("run.json", result))).text


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


def test_a_run_under_priority(priority: Json) -> None:
    """The figures that the page made in C showed of the same run."""
    result = page(Run("run.json", priority))
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


def test_a_run_under_job() -> None:
    """It says what happened, not that all is well."""
    text = text_of(stored("job"))
    assert "Requests felt the training under the policy job: p99 was 16.95 ms, 134 times the 126.7 µs that it is alone; the" in text
    assert "hardly felt" not in text and "lie on each other" not in text


def test_the_verdict_is_of_the_figures(priority: Json) -> None:
    """The median counts, too; a ratio of thousands is a number that can be read; long times are in milliseconds."""
    slower = copy.deepcopy(priority)
    slower["serve"]["p50_cycles"] = 1.2 * slower["serve_alone"]["p50_cycles"]
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


def test_runs_beside_each_other(priority: Json) -> None:
    text = read_page(comparison([Run("a/run.json", priority), Run("b/job.json", stored("job"))])).text
    for part in ("2 runs beside each other", "They differ in epochs, policy", "policy job", "16.95 ms", "× 134", "81.5 µs"):
        assert part in text, part
    assert "a/run.json" in text
    short = copy.deepcopy(priority)
    short["serve"]["requests"] = 1000
    text = read_page(comparison([Run("a/run.json", priority), Run("b/run.json", short)])).text
    assert "They differ in requests" in text
    emu = copy.deepcopy(priority) | {"clock_hz": None, "device": "emu:", "time": None, "time_alone": None}
    emu["ratio"] = {"p99": None, "train_throughput": None}
    text = read_page(comparison([Run("a/run.json", priority), Run("b/run.json", emu)])).text
    assert "never" not in text and "device emu: There is no roofline" in text
    text = read_page(comparison([Run("old/run.json", priority), Run("new/run.json", copy.deepcopy(priority))])).text
    assert "old/run" in text and "new/run" in text
    alike = read_page(comparison([Run("a/run.json", priority), Run("b/other.json", copy.deepcopy(priority))])).text
    assert "They differ" not in alike and "other" in alike


def test_text_is_escaped(priority: Json) -> None:
    priority["data"] = "<script>alert(1)</script>"
    assert "<script>alert(1)</script>" in text_of(priority)


# ---- The command ----


def report(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([COMMAND, "report", *args], capture_output=True, text=True)


def test_the_command(tmp_path: Path, priority: Json) -> None:
    run = tmp_path / "run.json"
    run.write_text(json.dumps(priority))
    assert report(str(run), "-o", str(tmp_path / "run.html")).returncode == 0
    read_page((tmp_path / "run.html").read_text())
    assert report(str(run), str(run), "-o", "-").stdout.startswith("<!doctype html>")
    (tmp_path / "no.json").write_text("{")
    (tmp_path / "list.json").write_text("[]")
    (tmp_path / "other.json").write_text('{"serve": 1}')
    (tmp_path / "old.json").write_text(json.dumps({k: v for k, v in priority.items() if k != "series"}))
    (tmp_path / "sum.json").write_text('{"experiment": "x"}')
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
        done = report(*args)
        assert done.returncode == status and said in done.stderr, (args, done.stderr)


def test_axes_of_experiments_are_read_as_they_are_written(pages: Path) -> None:
    """Whole numbers of requests, rates in digits; commands are not cut off."""
    text = read_page((pages / "batching.html").read_text()).text
    assert "100,000" in text and "500,000" in text and " 7.5 " not in text and " 2.5 " not in text
    assert "pre{white-space:pre-wrap" in (pages / "batching.html").read_text()


# ---- In a browser ----

LOOK = """
<script>
addEventListener("load", () => {
  const found = [], wide = innerWidth, page = document.documentElement.scrollWidth;
  if (page > wide) found.push("the page is " + page + " wide, the screen " + wide);
  let texts = 0, charts = 0;
  for (const svg of document.querySelectorAll("svg[role=img]")) {
    const box = svg.getBoundingClientRect();
    if (!box.width) continue;
    ++charts;
    const before = [];
    for (const text of svg.querySelectorAll("text")) {
      const r = text.getBoundingClientRect();
      for (const [other, o] of before) {
        const w = Math.min(r.right, o.right) - Math.max(r.left, o.left), h = Math.min(r.bottom, o.bottom) - Math.max(r.top, o.top);
        const both = "'" + text.textContent + "' lies on '" + other.textContent + "'";
        if (w > 2 && h > 5) found.push(both + " in " + svg.getAttribute("aria-label"));
      }
      before.push([text, r]);
      ++texts;
      if (r.left < box.left - 3 || r.right > box.right + 3 || r.top < box.top - 3 || r.bottom > box.bottom + 3)
        found.push("'" + text.textContent + "' is clipped in " + svg.getAttribute("aria-label"));
    }
  }
  const seen = {found, texts, charts, colour: getComputedStyle(document.body).backgroundColor};
  document.title = JSON.stringify(seen);
});
</script>
"""


def chromium(*args: str) -> subprocess.CompletedProcess[str]:
    common = ["chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--enable-logging=stderr", "--v=0"]
    return subprocess.run([*common, *args], capture_output=True, text=True, check=True, timeout=300)


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("pages")
    with tarfile.open(DATA / "points.tar.xz") as archive:
        archive.extractall(folder)
    version, coltrain._abi.VERSION = coltrain._abi.VERSION, "0.1.0"  # of the points
    run, job = Run("run.json", stored("run")), Run("job.json", stored("job"))
    colocation = Colocation(parser_of(Colocation).parse(["--part", "1", "--seeds", "2", "--out", str(folder / "colocation")]))
    batching = Batching(parser_of(Batching).parse(["--part", "3", "--seeds", "2", "--out", str(folder / "batching")]))
    summaries = colocation.summary(), batching.summary()
    coltrain._abi.VERSION = version
    made = {"run": page(run), "job": page(job), "comparison": comparison([run, job])}
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
        (folder / f"{name}-look.html").write_text(text.replace("</body>", LOOK + "</body>"))
    return folder


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("name", ["run", "job", "comparison", "train", "serve-bench", "counters", "gemm", "colocation", "batching"])
def test_in_a_browser(pages: Path, name: str, width: int, dark: bool) -> None:
    """A picture that is not blank, no error in the console, no text clipped or on another."""
    import matplotlib.image

    how = [f"--window-size={width},2000", f"--blink-settings=preferredColorScheme={0 if dark else 1}", f"--user-data-dir={pages}/profile"]
    done = chromium(*how, "--dump-dom", f"file://{pages}/{name}-look.html")
    assert "CONSOLE" not in done.stderr, done.stderr
    title = re.search(r"<title>(.*?)</title>", done.stdout, re.S)
    assert title
    seen = json.loads(html.unescape(title[1]))
    assert seen["found"] == []
    assert seen["charts"] >= 1 and seen["texts"] >= 15
    assert seen["colour"] == ("rgb(15, 19, 24)" if dark else "rgb(255, 255, 255)")
    chromium(*how, f"--screenshot={pages}/{name}.png", f"file://{pages}/{name}.html")
    picture = matplotlib.image.imread(pages / f"{name}.png")
    assert picture.shape[1] == width
    assert picture[..., :3].std() > 0.03
