# SPDX-License-Identifier: Apache-2.0
"""Points of an experiment and their files.

A point is one run of `coltrain load`, or of another verb, on a device of its own. It depends on nothing but its settings, which its
file has: a file that was made by other settings is another point's, and is made anew.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coltrain import stats
from coltrain.cli import Failure

Json = dict[str, Any]


@dataclass
class Point:
    name: str
    settings: Json
    """What its figures depend on, as its file has it."""
    run: Json = field(default_factory=dict)
    """What `coltrain load` gets."""
    cost: float = 1.0
    """Cycles that it simulates, about; any unit, if all points of an experiment have the same."""
    args: list[str] | None = None
    """Of another verb than load; it takes --json."""
    module: str | None = None
    """The run is this module's, with args."""


class Store:
    """A folder of points: NAME.json has the settings and figures of one, NAME.csv a row for each of its requests."""

    def __init__(self, out: str) -> None:
        self.out = Path(out)
        self.points = self.out / "points"

    def open(self) -> None:
        try:
            self.points.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise Failure(f"the folder {self.points} cannot be made: {error.strerror}") from error

    def path(self, point: Point, end: str) -> Path:
        return self.points / (point.name + end)

    def load(self, point: Point) -> Json | None:
        """The figures of a finished point; None: not there, or made by other settings."""
        try:
            with open(self.path(point, ".json"), encoding="utf-8") as file:
                found = json.load(file)
        except (OSError, ValueError):
            return None
        if not isinstance(found, dict) or found.get("settings") != point.settings:
            return None
        if "rows" in found and not (found["rows"] and found.get("pitch_cycles")):
            return None
        return found

    @contextlib.contextmanager
    def claim(self, point: Point) -> Iterator[bool]:
        """Takes a point for this process; False: another one makes it. The lock is the system's, so a process that dies
        gives it back."""
        path = self.path(point, ".lock")
        try:
            fd = os.open(path, os.O_CREAT | os.O_RDWR | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise Failure(f"{path}: cannot be written: {error.strerror}") from error
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            mine = True
        except BlockingIOError:
            mine = False
        try:
            yield mine
        finally:
            os.close(fd)

    def save(self, point: Point, figures: Json) -> Json:
        """Writes a finished point, whole or not at all. The rows first: without its figures a point is not there."""
        found = {"point": point.name, "settings": point.settings, **figures}
        fresh, rows = self.path(point, ".json.new"), self.path(point, ".csv.new")
        try:
            fresh.write_text(json.dumps(found, indent=1), encoding="utf-8")
            if rows.exists():
                rows.rename(self.path(point, ".csv"))
            fresh.rename(self.path(point, ".json"))
            self.path(point, ".lock").unlink(missing_ok=True)
        except OSError as error:
            raise Failure(f"{self.path(point, '.json')}: cannot be written: {error.strerror}") from error
        return found

    def latencies(self, point: Point, figures: Json) -> NDArray[np.float64] | None:
        """In cycles, by the number of the request; infinite for one without an answer. None: the file of the rows is not
        there, or has fewer answers than there were. A row that ends within the cycle of its end is none."""
        request, scheduled, end, columns = 0, 3, 6, 8
        requests = int(point.settings["requests"])
        latency = np.full(requests, stats.NEVER)
        answers = 0
        try:
            with open(self.path(point, ".csv"), encoding="utf-8") as file:
                for line in file:
                    row = line.rstrip("\n").split(",")
                    if len(row) < columns or not row[request].isdecimal() or not row[end].isdecimal():
                        continue
                    number, due, ended = int(row[request]), int(row[scheduled] or 0), int(row[end])
                    if number >= requests or ended < due:
                        continue
                    latency[number] = ended - due
                    answers += 1
        except OSError:
            return None
        return latency if answers >= figures["answered"] else None
