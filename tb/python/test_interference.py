# SPDX-License-Identifier: Apache-2.0
"""`coltrain experiment interference`: its grid, the pieces of a run as one, and a small run on the simulated hardware with its page and its
rows of docs/data."""

from __future__ import annotations

import copy
import csv
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
from coltrain.experiments.interference import Interference, at_most, grid, pool, refusals_of, targets_of
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
    assert [t["held"] for t in s["targets"]] == [None] * 6
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
    row["refusals"] = {"beyond_refusals_cycles": 20, "beyond_refusals_bound_cycles": 100}
    row |= {"stretch_p99": 1.05, "train_share_of_idle": 1.2, "train_share_back_to_back": 0.9, "most_cycles": 10, "bound_cycles": 100}
    assert [t.held for t in targets_of([row], True)] == [True] * 6
    assert [t.held for t in targets_of([row], False)] == [None] * 6
    for key, value, at in (
        ("stretch_mean", 1.03, 0),
        ("stretch_p99", 1.2, 1),
        ("train_share_of_idle", 0.9, 2),
        ("train_share_back_to_back", 0.4, 3),
        ("most_cycles", 101, 4),
        ("refusals", {"beyond_refusals_cycles": 120, "beyond_refusals_bound_cycles": 100}, 5),
    ):
        assert [i for i, t in enumerate(targets_of([row, row | {key: value}], False)) if t.held is False] == [at]


def test_rows_of_the_results(made: Path, tmp_path: Path) -> None:
    """The rows of a run are replaced, the others stay."""
    shutil.copytree(TOP / "docs/data", tmp_path / "data")
    args = [*ARGS, "--out", str(made), "--results", str(tmp_path / "data"), "--rtl", "abc1234"]
    subprocess.run([COMMAND, "experiment", "interference", *args], check=True, capture_output=True)
    for name, rows in (("interference", 1), ("interference-units", 6), ("interference-roofline", 1)):
        before = (TOP / f"docs/data/{name}.csv").read_text().splitlines()
        after = (tmp_path / f"data/{name}.csv").read_text().splitlines()
        new = [line for line in after if line.endswith(",abc1234")]
        if name == "interference-roofline" and not new:
            continue  # stress has none
        assert len(new) == rows and len(after) == len(before) and len(set(after) - set(before)) == rows, name
    with open(tmp_path / "data/interference.csv", newline="") as file:
        (row,) = [r for r in csv.DictReader(file) if r["rtl_commit"] == "abc1234"]
    piece = piece_of(made)
    assert row["name"] == "digits-stress-small" and row["jobs"] == "100" and row["device"] == "sim:core=16x8" and row["resident"] == "no"
    assert float(row["stretch_p99"]) == pytest.approx(piece["stretch"]["p99"], abs=1e-4) and row["unrefused_alone_cycles"] == ""
    with open(tmp_path / "data/interference-units.csv", newline="") as file:
        units = {r["unit"]: r for r in csv.DictReader(file) if r["rtl_commit"] == "abc1234"}
    for u in piece["together"]["units"]:
        waits = {int(k): n for k, n in u["wait_training"]["histogram"].items()}
        none = 100 * waits.get(0, 0) / u["operations"]
        assert float(units[u["unit"]]["no_wait_percent"]) == pytest.approx(none, abs=0.06)
        assert int(units[u["unit"]]["wait_p90"]) <= int(units[u["unit"]]["wait_p99"]) <= int(units[u["unit"]]["wait_most"]) <= u["bound"]


def test_refusals(made: Path) -> None:
    """What a job took beyond its latency without refusals and the cycles with one."""
    run = pool("run", [piece_of(made)])
    assert refusals_of(run) is None
    jobs = len(run["alone"]["latency"])
    run |= {"alone_unrefused": 1000}
    run["alone"] |= {"latency": [1010.0] * jobs, "refused": [12] * jobs}
    run["together"] |= {"latency": [1050.0] * (jobs - 1) + [1060.0], "refused": [20] * jobs}
    found = refusals_of(run)
    assert found and (found["beyond_refusals_alone_cycles"], found["beyond_refusals_cycles"]) == (-2, 40)
    assert found["refused_together_cycles"] == 20 and found["beyond_refusals_bound_cycles"] == run["stretch"]["bound_cycles"]
    assert [at_most({0: 90, 3: 9, 7: 1}, share) for share in (0.5, 0.9, 0.95, 0.99, 1)] == [0, 0, 3, 3, 7]
