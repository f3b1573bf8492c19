# SPDX-License-Identifier: Apache-2.0
"""The same figures from the same points: data/points.tar.xz has points of both experiments with short runs, and what the summary
in C, which these programs replace, computed from them."""

from __future__ import annotations

import json
import math
import tarfile
from pathlib import Path
from typing import Any

import coltrain._abi
import pytest
from coltrain.experiments.batching import Batching
from coltrain.experiments.colocation import Colocation
from coltrain.experiments.common import Experiment, parser_of

DATA = Path(__file__).parent / "data"
NEAR = 1e-8  # the JSON in C has nine digits
T_NEAR = 1e-4  # of an interval: Student's t was a table of four decimals there


@pytest.fixture(autouse=True)
def version(monkeypatch: pytest.MonkeyPatch) -> None:
    """Points are of the version that made them."""
    monkeypatch.setattr(coltrain._abi, "VERSION", "0.1.0")


@pytest.fixture(scope="module")
def stored(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("stored")
    with tarfile.open(DATA / "points.tar.xz") as archive:
        archive.extractall(out)
    return out


def differences(want: Any, got: Any, near: float, path: str = "") -> list[str]:
    """Members that were there before and are not the same; new ones are none."""
    if isinstance(want, dict):
        if not isinstance(got, dict):
            return [f"{path}: {got}"]
        return [
            d
            for k, v in want.items()
            for d in differences(v, got.get(k, "missing"), T_NEAR if k in ("low", "high") else near, f"{path}.{k}")
        ]
    if isinstance(want, list):
        if not isinstance(got, list) or len(want) != len(got):
            return [f"{path}: {got}"]
        return [d for i, (v, g) in enumerate(zip(want, got, strict=True)) for d in differences(v, g, near, f"{path}[{i}]")]
    if isinstance(want, float) and isinstance(got, int | float):
        return [] if math.isclose(want, got, rel_tol=near, abs_tol=1e-12) else [f"{path}: {got}, not {want}"]
    return [] if want == got else [f"{path}: {got}, not {want}"]


def summary_of(kind: type[Experiment], args: list[str]) -> Any:
    return json.loads(json.dumps(kind(parser_of(kind).parse(args)).summary()))


def test_colocation(stored: Path) -> None:
    got = summary_of(Colocation, ["--part", "1", "--seeds", "2", "--out", str(stored / "colocation")])
    want = json.loads((stored / "colocation/summary.json").read_text())
    assert want["points_there"] == 127 and len(want["cells"]) == 43
    assert differences(want, got, NEAR) == []


@pytest.mark.parametrize("part", [1, 3])
def test_batching(stored: Path, part: int) -> None:
    got = summary_of(Batching, ["--part", str(part), "--seeds", "2" if part == 3 else "1", "--out", str(stored / "batching")])
    want = json.loads((stored / f"batching/summary-{part}.json").read_text())
    assert sum(bool(r["rate_per_second"]) for r in want["rows"]) >= 2
    assert differences(want, got, NEAR) == []


def test_a_difference_is_seen(stored: Path) -> None:
    want = json.loads((stored / "colocation/summary.json").read_text())
    other = json.loads(json.dumps(want))
    other["cells"][3]["u"] *= 1.0001
    other["cells"][4]["seeds"] = 3
    assert len(differences(want, other, NEAR)) == 2
