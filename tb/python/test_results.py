# SPDX-License-Identifier: Apache-2.0
"""docs/results.md, its charts and docs/data say the same (scripts/results --check), and a difference is seen; what experiments put into
docs/data fits its files."""

from __future__ import annotations

import contextlib
import csv
import io
import os
import re
import runpy
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import coltrain._abi
import pytest
from coltrain.cli import Failure
from coltrain.experiments.batching import Batching
from coltrain.experiments.colocation import Colocation
from coltrain.experiments.common import Experiment, Target, parser_of
from coltrain.experiments.datafiles import RTL, DataFile, cell, files_of, merged, put, targets
from coltrain.experiments.interference import Interference
from coltrain.experiments.utilisation import Utilisation
from conftest import TOP

DOCS = TOP / "docs"
SCRIPT = str(TOP / "scripts/results")
STORED = Path(__file__).parent / "data/points.tar.xz"
PYTHON = os.environ.get("PYTHON", "/usr/bin/python3")
Json = dict[str, Any]


class Done(NamedTuple):
    returncode: int
    stderr: str


def options(docs: Path, *args: str) -> list[str]:
    return ["--data", str(docs / "data"), "--page", str(docs / "results.md"), "--charts", str(docs / "charts"), *args]


def results(docs: Path, *args: str) -> Done:
    """The script, without another start of Python and matplotlib."""
    with contextlib.redirect_stderr(io.StringIO()) as said, pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [SCRIPT, *options(docs, *args)])
        patch.setattr(sys, "path", sys.path[:])
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(SCRIPT, run_name="__main__")
    assert isinstance(ended.value.code, int), ended.value.code
    return Done(ended.value.code, said.getvalue())


PAGES = ("results.md", "array.md", "compression.md")


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """A copy to spoil."""
    shutil.copytree(DOCS / "data", tmp_path / "data")
    shutil.copytree(DOCS / "charts", tmp_path / "charts")
    for page in PAGES:
        shutil.copy(DOCS / page, tmp_path)
    return tmp_path


def change(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text, old
    path.write_text(text.replace(old, new, 1))


@pytest.mark.parametrize(
    ("page", "cell", "other"), [("array.md", "| LeNet-5 | 40 |", "| LeNet-5 | 41 |"), ("compression.md", "| HBFP8 | 8.5 |", "| HBFP8 | 8.6 |")]
)
def test_other_pages_have_their_tables(docs: Path, page: str, cell: str, other: str) -> None:
    change(docs / page, cell, other)
    done = results(docs, "--check")
    assert done.returncode == 1 and f"{page}: its tables are not what docs/data has" in done.stderr
    assert results(docs).returncode == 0
    assert (docs / page).read_text() == (DOCS / page).read_text()


def test_page_and_data_say_the_same() -> None:
    done = subprocess.run([PYTHON, SCRIPT, *options(DOCS, "--check")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


SPOILT: list[tuple[Callable[[Path], object], str]] = [
    (lambda d: change(d / "data/batching-ratios.csv", "17.04", "17.05"), "its tables are not what docs/data has"),
    (lambda d: change(d / "data/interference.csv", ",1.0092,", ",1.0093,"), "interference.svg: not drawn from what docs/data has"),
    (lambda d: change(d / "data/colocation.csv", "1.250", "1.251"), "colocation-p99.svg: not drawn"),
    (lambda d: change(d / "data/utilisation.csv", ",70.9,,87.5,", ",71.0,,87.5,"), "utilisation.svg: not drawn"),
    (lambda d: change(d / "results.md", "| 58,760 |", "| 58,761 |"), "its tables are not what docs/data has"),
    (lambda d: change(d / "results.md", "<!-- results:waits end -->", ""), "the markers <!-- results:waits --> and"),
    (lambda d: change(d / "results.md", "303,920", "303,921"), "303921 stands in the text, but in no file"),
    (lambda d: change(d / "results.md", "(data/jobs.csv)", "(data/job.csv)"), "there is no job.csv, to which the page points"),
    (lambda d: change(d / "data/README.md", "`jobs.csv`", "`job.csv`"), "docs/data/README.md says nothing of jobs.csv"),
    (lambda d: (d / "charts/more.svg").write_text("<svg/>"), "more.svg: nothing draws it"),
    (lambda d: (d / "charts/interference.svg").unlink(), "interference.svg: not drawn"),
]


@pytest.mark.parametrize(("spoil", "sentence"), SPOILT, ids=[s for _, s in SPOILT])
def test_a_difference_is_seen(docs: Path, spoil: Callable[[Path], object], sentence: str) -> None:
    spoil(docs)
    done = results(docs, "--check")
    assert done.returncode == 1 and sentence in done.stderr, done.stderr


def test_rendering(docs: Path) -> None:
    """It brings back what was there; a chart that is drawn twice has the same bytes."""
    page = (docs / "results.md").read_text()
    change(docs / "results.md", "| 58,760 |", "| 1 |")
    for path in (docs / "charts").iterdir():
        path.unlink()
    assert results(docs).returncode == 0
    assert (docs / "results.md").read_text() == page
    once = {p.name: p.read_bytes() for p in (docs / "charts").iterdir()}
    for path in (docs / "charts").iterdir():
        path.unlink()
    assert results(docs).returncode == 0
    assert {p.name: p.read_bytes() for p in (docs / "charts").iterdir()} == once and len(once) == 7
    assert all(len(svg) < 50000 and b"<text" in svg for svg in once.values())
    assert results(docs, "--check").returncode == 0


def test_a_page_for_people() -> None:
    """At most 340 lines; a cell has one number, or one and its target in brackets, where it is no name or sentence."""
    lines = (DOCS / "results.md").read_text().splitlines()
    assert len(lines) <= 340
    for line in lines:
        if line.startswith("|") and "---" not in line:
            for text in line.strip("|").split(" | "):
                figures = re.fullmatch(r"\s*(-?[\d,.]+)\s*(\([\d,.]+\))?\s*", text)
                name = re.fullmatch(r"\s*\d+(-\d+)+\s*", text)
                assert figures or name or not re.fullmatch(r"[\d,.()%;\s-]*\d[\d,.()%;\s-]*", text), line


def test_every_row_names_its_rtl() -> None:
    """A commit, but for what is of software or of others."""
    for path in sorted((DOCS / "data").glob("*.csv")):
        with open(path, newline="") as file:
            head, *rows = csv.reader(file)
        assert rows and all(len(row) == len(head) for row in rows), path
        assert len({tuple(row) for row in rows}) == len(rows), path
        if path.name not in ("emulator.csv", "other-figures.csv"):
            assert head[-1] == RTL and all(re.fullmatch(r"[0-9a-f]{7,}", row[-1]) for row in rows), path


# ---- From experiments ----


def summaries(folder: Path) -> list[Json]:
    """Of stored points, and of none."""
    with tarfile.open(STORED) as archive:
        archive.extractall(folder)
    made: list[tuple[type[Experiment], list[str]]] = [
        (Colocation, ["--part", "1", "--seeds", "2", "--out", str(folder / "colocation")]),
        (Batching, ["--part", "3", "--seeds", "2", "--out", str(folder / "batching")]),
        (Interference, ["--out", "/nonexistent"]),
        (Utilisation, ["--out", "/nonexistent"]),
    ]
    return [kind(parser_of(kind).parse(args)).summary() for kind, args in made]


def test_experiments_fit_the_files(docs: Path, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their rows take the place of those with the same key; the others stay, and the page can be rendered."""
    monkeypatch.setattr(coltrain._abi, "VERSION", "0.1.0")  # of the points
    before = {p.name: p.read_text().splitlines() for p in (docs / "data").glob("*.csv")}
    for s in summaries(tmp_path_factory.mktemp("stored")):
        for f in files_of(s):
            assert before[f"{f.name}.csv"][0].split(",") == [*f.names(), RTL]
        put(str(docs / "data"), s, "abc1234")
    after = {p.name: p.read_text().splitlines() for p in (docs / "data").glob("*.csv")}
    assert set(after) == set(before)
    for name in ("colocation.csv", "colocation-batches.csv", "batching-costs.csv", "batching-ratios.csv"):
        assert len(after[name]) == len(before[name]), name
        assert any(line.endswith(",abc1234") for line in after[name])
    assert after["interference.csv"] == before["interference.csv"] and after["utilisation.csv"] == before["utilisation.csv"]
    assert len(after["targets.csv"]) == len(before["targets.csv"])
    assert "of a part of the requests" not in "".join(after["targets.csv"])  # neither held nor missed
    # The tables and charts are made of these; what the text says of the figures before is complained of.
    for args in ((), ("--check",)):
        said = [line for line in results(docs, *args).stderr.splitlines() if "stands in the text" not in line]
        assert said in ([], ["results: scripts/results renders them"]), said
    assert "| 784-512-256-10 | PRIORITY | 1.000 | 1.000 | 1.000 | 1.000 |" not in (docs / "results.md").read_text()


@pytest.mark.parametrize(
    ("old", "new", "all_of_them"),
    [
        ("", "p2 p1", "p2 p1"),
        ("p1 p2 q1", "p1 p2 p4 q1", "p1 p2 p4 q1"),
        ("p1 q1 r1", "p1 p2 r1 r2", "p1 p2 q1 r1 r2"),
        ("p1 p2 q1", "p1 p2 p4", "p1 p2 p4 q1"),
        ("p2 q1", "p1 p2", "p1 p2 q1"),
        ("p1 p2 s1", "p1 q1 s1", "p1 p2 q1 s1"),
        ("r3 q2", "p1 q2", "r3 q2 p1"),
        ("p1", "q1 q1", "p1 q1"),
    ],
)
def test_places_of_new_rows(old: str, new: str, all_of_them: str) -> None:
    text = "a,b,x,rtl_commit\n" + "".join(f"{k[0]},{k[1]},9,old\n" for k in old.split())
    f = DataFile("f", 2, "a b x", [{"a": k[0], "b": k[1], "x": 1} for k in new.split()])
    lines = [line.split(",") for line in merged(text if old else "", f, "new").splitlines()[1:]]
    assert [a + b for a, b, *_ in lines] == all_of_them.split()
    assert all((x, rtl) == (("1", "new") if a + b in new.split() else ("9", "old")) for a, b, x, rtl in lines)


def test_merging() -> None:
    f = DataFile("f", 2, "a b x:.2f y", [{"a": "p", "b": 1, "x": 0.126, "y": None}, {"a": "q", "b": 2, "x": float("inf"), "y": True}])
    text = "a,b,x,y,rtl_commit\np,1,9,9,old\np,2,8,8,old\n"
    assert merged(text, f, "new") == "a,b,x,y,rtl_commit\np,1,0.13,,new\np,2,8,8,old\nq,2,inf,yes,new\n"
    assert merged("", f, "new").splitlines()[1:] == ["p,1,0.13,,new", "q,2,inf,yes,new"]
    with pytest.raises(Failure, match=r"f\.csv has the columns a, b, rtl_commit, not"):
        merged("a,b,rtl_commit\n", f, "new")
    with pytest.raises(Failure, match="the experiment other has no files"):
        files_of({"experiment": "other", "targets": []})
    assert [cell(v, "") for v in (False, 3, float("nan"))] == ["no", "3", ""]


def test_targets_of_a_whole_experiment_only() -> None:
    """A part of the products does not say how many of all reach their bound."""
    s: Json = {"experiment": "utilisation", "targets": [Target("a", "17 of 21", False).json(), Target("b", "1.5 (at c)", True).json()]}
    s["targets"].append(Target("d", "17.04, with the arrivals of 1 seed", True).json())
    cells = targets(s).cells("abc1234")
    assert [row[1:5] for row in cells] == [
        ["a", "17", "of 21", "no"],
        ["b", "1.5", "at c", "yes"],
        ["d", "17.04", "with the arrivals of 1 seed", "yes"],
    ]
    s["targets"].append(Target("e").json())
    assert targets(s).cells("abc1234") == []


def test_options(tmp_path: Path) -> None:
    command = str(TOP / os.environ.get("BUILD", "build") / "bin/coltrain")
    for args, sentence in (
        (["--results", str(tmp_path)], "--rtl COMMIT is missing"),
        (["--results", str(tmp_path / "none"), "--rtl", "1"], "there is no folder"),
    ):
        done = subprocess.run([command, "experiment", "utilisation", "--out", str(tmp_path / "o"), *args], capture_output=True, text=True)
        assert done.returncode == 1 and sentence in done.stderr, done.stderr


def test_a_figure_is_of_the_rtl_that_is_there(tmp_path: Path) -> None:
    """As a clone in which a file of RTL changed, and nobody called make."""
    git = ["git", "-C", str(tmp_path), "-c", "user.name=t", "-c", "user.email=t@t"]
    source, simulator = tmp_path / "rtl/a.sv", tmp_path / "build/lib/coltrain/sim.so"
    source.parent.mkdir(parents=True)
    source.write_text("one")
    (tmp_path / "Makefile").write_text("build/lib/coltrain/sim.so: rtl/a.sv\n\t@mkdir -p $(@D)\n\t@grep -v wrong $< >$@\n")
    for words in (["init", "-q"], ["add", "rtl"], ["commit", "-q", "-m", "one"]):
        subprocess.run([*git, *words], check=True)
    head = subprocess.check_output([*git, "rev-parse", "HEAD"], text=True)[:8]
    program = [sys.executable, "-c", "import measured_rtl, pathlib, sys; print(measured_rtl.commit(pathlib.Path(sys.argv[1])))", str(tmp_path)]

    def ask() -> tuple[str, str]:
        # (As below `make -j2 test`, whose job server is out of reach.)
        environment = {**os.environ, "MAKEFLAGS": " -j2 --jobserver-auth=fifo:/none", "MAKELEVEL": "1"}
        done = subprocess.run(program, cwd=TOP / "scripts", capture_output=True, text=True, env=environment)
        return done.stdout.strip(), done.stderr.strip().rsplit("\n", 1)[-1]

    assert ask() == (head, "") and simulator.read_text() == "one\n"
    # (What the simulator is not made of may be newer.)
    (tmp_path / "rtl/board.sv").touch()
    assert ask() == (head, "")
    source.write_text("two")
    os.utime(simulator, (1e9, 1e9))
    assert ask() == (head + "-changed", "") and simulator.read_text() == "two\n"
    source.write_text("wrong")
    os.utime(simulator, (1e9, 1e9))
    assert ask() == ("", "build/lib/coltrain/sim.so cannot be made")
