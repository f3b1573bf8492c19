# SPDX-License-Identifier: Apache-2.0
"""`coltrain experiment interference`: its grid, the pieces of a run as one, and a small run on the simulated hardware with its page and its
rows of docs/results.md."""

from __future__ import annotations

import copy
import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from beds import read_page
from coltrain.cli import Failure
from coltrain.experiments.common import parser_of
from coltrain.experiments.interference import Interference, grid, pool, targets_of
from conftest import TOP

COMMAND = str(TOP / os.environ.get("BUILD", "build") / "bin/coltrain")
ARGS = ["--only", "digits-stress-small", "--part", "1", "--state", "123"]
Json = dict[str, Any]


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """100 jobs, each a few thousand cycles of the small core."""
    folder = tmp_path_factory.mktemp("interference")
    subprocess.run([COMMAND, "experiment", "interference", *ARGS, "--out", str(folder)], check=True, capture_output=True)
    return folder


def piece_of(folder: Path) -> Json:
    found: Json = json.loads((folder / "points/digits-stress-small.1.json").read_text())
    return found


def test_the_grid() -> None:
    """Names, and the options by which the rows of docs/results.md were made."""
    runs = {r.name: r for r in grid()}
    assert len(runs) == 24 + 4 + 2 + 4
    e = Interference(parser_of(Interference).parse(["--out", "o"]))
    stalls = e.pieces(runs["mnist-stress-stall25"])
    assert (
        len(stalls) == 10
        and stalls[9].args
        and stalls[9].settings["options"]
        == [
            *("--network", "784-512-256-10", "--gap", "4600", "--device", "sim:stall=25,seed=10"),
            *("--training", "stress", "--jobs", "1000", "--seed", "10"),
        ]
    )
    assert stalls[9].args[-2:] == ["--alone", "o/points/mnist-none-stall25.10.json"]
    floor = e.pieces(runs["digits-model-default-floor64"])
    assert len(floor) == 4 and floor[0].args and floor[0].args[-1] == "o/points/digits-none-default.1.json"
    assert floor[0].settings["options"][2:8] == ["--device", "sim:", "--batch", "32", "--floor", "64"]
    assert [len(e.pieces(runs[f"mnist-model-{m}"])) for m in ("default", "bandwidth8", "bandwidth2")] == [10, 4, 2]
    assert "--gap" not in runs["wide-model-resident"].inference and "--resident" in runs["wide-model-resident"].inference


def test_a_run(made: Path) -> None:
    s = json.loads((made / "summary.json").read_text())
    (row,) = s["rows"]
    piece = piece_of(made)
    for key in ("mean", "p50", "p99", "max"):
        assert row[f"stretch_{key}"] == pytest.approx(piece["stretch"][key], rel=1e-6)
    assert row["jobs"] == 100 and row["whole"] and row["wrong"] == 0
    assert 1 <= row["stretch_mean"] <= row["stretch_p99"] <= row["stretch_max"] and row["most_cycles"] <= row["bound_cycles"]
    assert [t["held"] for t in s["targets"]] == [None] * 5
    reader = read_page((made / "report.html").read_text())
    assert "1 of 34 runs are there" in reader.text and "digits-stress-small" in reader.text
    assert (made / "summary.csv").read_text().splitlines()[1].startswith("digits-stress-small,True,digits,")
    # Again: nothing is made; of another state everything is.
    before = (made / "points/digits-stress-small.1.json").stat().st_mtime_ns
    subprocess.run([COMMAND, "experiment", "interference", *ARGS, "--out", str(made)], check=True, capture_output=True)
    assert (made / "points/digits-stress-small.1.json").stat().st_mtime_ns == before
    e = Interference(parser_of(Interference).parse([*ARGS[:-1], "124", "--out", str(made)]))
    assert e.summary()["rows"] == []


def test_pieces_as_one(made: Path) -> None:
    one = piece_of(made)
    two: Json = copy.deepcopy(one)
    two["seed"] = 2
    both = pool("run", [one, two])
    alone = pool("run", [one])
    for key in ("mean", "p50", "p99", "max"):
        assert both["stretch"][key] == pytest.approx(alone["stretch"][key])
    assert both["together"]["jobs"] == 200 and both["train_share"] == pytest.approx(alone["train_share"])
    assert both["together"]["units"][2]["operations"] == 2 * alone["together"]["units"][2]["operations"]
    with pytest.raises(Failure, match="the same seed"):
        pool("run", [one, copy.deepcopy(one)])
    with pytest.raises(Failure, match="different runs"):
        pool("run", [one, two | {"batch": 1}])
    two["together"]["latency"][5] += 9
    with pytest.raises(Failure, match="its stretch is"):
        pool("run", [one, two])


def test_targets() -> None:
    row: Json = {"name": "a", "network": "784-512-256-10", "floor": 0, "resident": True, "too_short": False, "stretch_mean": 1.01}
    row |= {"stretch_p99": 1.05, "train_share_of_idle": 1.2, "train_share_back_to_back": 0.9, "most_cycles": 10, "bound_cycles": 100}
    assert [t.held for t in targets_of([row], True)] == [True] * 5
    assert [t.held for t in targets_of([row], False)] == [None] * 5
    for key, value, at in (
        ("stretch_mean", 1.03, 0),
        ("stretch_p99", 1.2, 1),
        ("train_share_of_idle", 0.9, 2),
        ("train_share_back_to_back", 0.4, 3),
        ("most_cycles", 101, 4),
    ):
        assert [i for i, t in enumerate(targets_of([row, row | {key: value}], False)) if t.held is False] == [at]


def test_rows_of_the_results(made: Path, tmp_path: Path) -> None:
    """A row of the document is replaced, the others stay."""
    file = tmp_path / "results.md"
    shutil.copy(TOP / "docs/results.md", file)
    before = file.read_text()
    script = TOP / "scripts/interference-results"
    args = ["--merge", str(made / "points"), str(file), "digits-stress-*"]
    subprocess.run([os.environ.get("PYTHON", "/usr/bin/python3"), str(script), *args], check=True, env={**os.environ, "STATE": "123"})
    after = file.read_text()
    new = [line for line in after.splitlines() if line not in before.splitlines() and "made by 123" in line]
    assert len(new) == 1 and new[0].startswith("| digits | stress | core=16x8 | 100 | ")
    assert "| 784-512-256-10 | model | default | 10000" in after
    assert len(after.splitlines()) == len(before.splitlines()) or abs(len(after.splitlines()) - len(before.splitlines())) <= 4
