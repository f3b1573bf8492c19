# SPDX-License-Identifier: Apache-2.0
"""The timing diagrams of docs/architecture.md: drawings are of their sources, and sources of what the core does now."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import coltrain
import numpy as np
import pytest

TOP = Path(__file__).resolve().parents[2]


def measured(name: str) -> dict[str, Any]:
    figures = json.loads((TOP / f"docs/wave/{name}.json").read_text())["measured"]
    assert isinstance(figures, dict)
    return figures


def check(*args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([TOP / "scripts/waves", *args], capture_output=True, text=True, check=False)


def test_drawings_are_of_their_sources() -> None:
    done = check("--check")
    if done.returncode == 77:
        pytest.skip(done.stderr.strip())
    assert done.returncode == 0, done.stderr


def test_architecture_shows_them() -> None:
    page = (TOP / "docs/architecture.md").read_text()
    for svg in (TOP / "docs/wave").glob("*.svg"):
        assert f"(wave/{svg.name})" in page
        assert svg.with_suffix(".json").exists()


def cycles(runs: list[list[int]]) -> list[int]:
    return [cycle for first, last in runs for cycle in range(first, last + 1)]


def test_product_is_what_the_core_does(build: Path) -> None:
    """`coltrain bench gemm --trace` prints the cycles of the same product."""
    command = [str(build / "bin/coltrain"), "bench", "gemm", "--shape", "16x32x32", "--result", "fp32", "--trace"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert re.search(r"^16x32x32 .* alone +(\d+) ", printed, re.MULTILINE)
    lanes = measured("product")["lanes"]
    pairs = {
        "beats read": "LD: beats read",
        "rows multiplied": "MM: rows",
        "rows copied": "VA: rows",
        "rows quantised": "VS: words",
        "beats written": "ST: beats",
    }
    for words, lane in pairs.items():
        line = re.search(rf"^ +{words} +(.*)$", printed, re.MULTILINE)
        assert line, printed
        runs = [[int(x) for x in run.split("-")] for run in line[1].split()]
        assert cycles([[r[0], r[-1]] for r in runs]) == cycles(lanes[lane]), words
    answered = re.search(r"^ +writes answered +(.*)$", printed, re.MULTILINE)
    assert answered
    assert int(answered[1].split()[-1]) == lanes["ST: last answer"][0][0]


def test_optimiser_is_what_the_core_does() -> None:
    """The step of the diagram takes as many cycles, and the units move as much."""
    figures = measured("optimiser")
    with coltrain.open("sim:") as device, device.model([16, 16]) as model:
        model.training(16, 0.1, 0.9)
        with model.batch() as batch:
            batch.write(np.ones((16, 16), np.float32), np.arange(16))
            before = device.counters(coltrain.Queue.TRAINING)
            event = model.step_submit(batch).result()
            after = device.counters(coltrain.Queue.TRAINING)
    assert event.arrive is not None and event.end is not None
    assert event.end - event.arrive == figures["job_cycles"]
    for counter, lane in (("LD_BEATS", "LD: beats read"), ("MXU_ROWS", "MM: rows"), ("ST_BEATS", "ST: beats")):
        assert after[counter] - before[counter] == len(cycles(figures["lanes"][lane])), counter
