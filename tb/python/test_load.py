# SPDX-License-Identifier: Apache-2.0
"""`coltrain load`, by which experiments make their points: what it is told is repeated to the byte, and what is wrong with it is said."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from conftest import TOP

COMMAND = str(TOP / os.environ.get("BUILD", "build") / "bin/coltrain")
RUN: dict[str, Any] = {"kind": "requests", "networks": ["64-16-10"], "requests": 60, "dropped": 6, "permille": 500}
RUN |= {"busy_cycles": 20000, "completed": 10, "batching": "adaptive", "deadline_cycles": 20000, "margin_cycles": 500}
TRAINING = {"layers": "64-16-10", "data": "digits", "batch": 16}


def load(run: object, *args: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [COMMAND, "load", "-", *args], input=run if isinstance(run, str) else json.dumps(run), capture_output=True, text=True
    )


def test_a_run_is_repeated(tmp_path: Path) -> None:
    """Alone and beside training; the figures are those of the rows."""
    for run in (RUN, RUN | {"training": TRAINING}):
        found = []
        for name in ("a.csv", "b.csv"):
            done = load(run, "--csv", str(tmp_path / name))
            assert done.returncode == 0, done.stderr
            found.append(done.stdout + (tmp_path / name).read_text())
        assert found[0] == found[1]
        figures = json.loads(done.stdout)
        rows = [line.split(",") for line in (tmp_path / "b.csv").read_text().splitlines()[1:]]
        took = sorted(int(r[6]) - int(r[3]) for r in rows[6:])
        assert figures["answered"] == len(rows) == 60 and figures["wrong"] == 0 and figures["measured"] == 54
        assert figures["p99_cycles"] == took[-(-99 * 54 // 100) - 1] and figures["max_cycles"] == took[-1]
        assert ("training_rows" in figures) == ("training" in run)


def test_a_run_ends_when_too_many_are_late() -> None:
    figures = json.loads(load(RUN | {"deadline_cycles": 1, "late_allowed": 2}).stdout)
    assert figures["given_up"] and figures["answered"] < 60 and figures["late_allowed"] == 2


@pytest.mark.parametrize(
    ("run", "text"),
    [
        ("[", "']' expected"),
        ([], '"kind": is none of capacity, training, requests, cost'),
        ({"kind": 3}, '"kind": is no text'),
        (RUN | {"kind": "x"}, '"kind": is none of'),
        ({"kind": "cost"}, '"networks": is no list of 1 to 8 networks'),
        (RUN | {"networks": ["x"]}, "there is no network x"),
        (RUN | {"networks": [3]}, '"networks": is no list of widths such as 64-128-64-10, or of files'),
        (RUN | {"networks": ["lenet5"]}, "lenet5: the device makes batches of perceptrons alone"),
        (RUN | {"networks": ["64-10"] * 9}, '"networks": is no list of 1 to 8 networks'),
        (RUN | {"completed": 0}, '"busy_cycles, completed": the capacity is missing'),
        (RUN | {"permille": 0}, '"permille": is missing'),
        (RUN | {"requests": -1}, '"requests" is no whole number'),
        (RUN | {"requests": 1}, '"requests": is missing, or fewer than 2'),
        (RUN | {"dropped": 60}, '"dropped": leaves nothing to be measured'),
        (RUN | {"arrivals": "x"}, '"arrivals": is none of poisson'),
        (RUN | {"arrivals": "trace"}, '"trace": is missing'),
        (RUN | {"arrivals": "trace", "trace": "/nonexistent"}, "/nonexistent: cannot be opened"),
        (RUN | {"batching": "x"}, 'there is no batching "x"'),
        (RUN | {"service_cycles": [1]}, '"service_cycles": is no list of 16'),
        (RUN | {"policy": "x"}, '"policy": '),
        (RUN | {"device": "nowhere:"}, 'cannot open the device "nowhere:"'),
        (RUN | {"training": {}}, '"layers": is no list of widths'),
        (RUN | {"training": TRAINING | {"data": "nothing"}}, "neither a data set"),
        ({"kind": "training", "samples": 1}, '"training": is missing'),
        ({"kind": "training", "training": TRAINING}, '"samples": is missing'),
    ],
)
def test_what_is_wrong_is_said(run: object, text: str) -> None:
    done = load(run)
    assert done.returncode == 1 and text in done.stderr and done.stdout == ""
    assert done.stderr.startswith("coltrain: ")


def test_files_that_cannot_be() -> None:
    cases: list[tuple[list[str], int, str]] = [
        (["-", "--csv", "/nonexistent/x"], 1, "/nonexistent/x: cannot be written"),
        (["/nonexistent/run.json"], 1, "unable to open /nonexistent/run.json"),
        ([], 2, "give the file that says what to run"),
        (["-", "-"], 2, "one argument too many"),
    ]
    for args, status, text in cases:
        done = subprocess.run([COMMAND, "load", *args], input="{}", capture_output=True, text=True)
        assert done.returncode == status and text in done.stderr, done.stderr
