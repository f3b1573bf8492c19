# SPDX-License-Identifier: Apache-2.0
"""Makes the points that are missing: several at once, each by a `coltrain load` of its own; shows how far it is, and ends
cleanly when it is stopped."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import FrameType
from typing import IO

from coltrain.cli import Failure, command
from coltrain.experiments.points import Json, Point, Store

AGAIN_S = 1.0  # between two looks at a point that another process makes
LINE_S = 10.0  # between two lines where standard error is no terminal


def environment() -> dict[str, str]:
    """Of a run that is a module: it imports this package, wherever the program that was started has it from."""
    folder = str(Path(__file__).resolve().parents[2])
    return os.environ | {"PYTHONPATH": os.pathsep.join([folder, *filter(None, [os.environ.get("PYTHONPATH")])])}


def duration(seconds: float) -> str:
    """1:05:09, 5:09"""
    s = int(seconds + 0.5)
    return f"{s // 3600}:{s // 60 % 60:02}:{s % 60:02}" if s >= 3600 else f"{s // 60}:{s % 60:02}"


class Progress:
    """One line on standard error: points made of those wanted, and the time left by what they cost so far."""

    def __init__(self, to: IO[str]) -> None:
        self.to = to
        self.terminal = to.isatty()
        self.begun = time.monotonic()
        self.shown = -LINE_S
        self.wanted = self.made = 0
        self.cost = self.spent = 0.0
        self.width = 0
        self.lock = threading.Lock()

    def want(self, points: int, cost: float) -> None:
        with self.lock:
            self.wanted += points
            self.cost += cost

    def left(self) -> float | None:
        """Seconds; None: not known yet."""
        if self.spent <= 0:
            return None
        return (time.monotonic() - self.begun) * max(0.0, self.cost - self.spent) / self.spent

    def add(self, point: Point) -> None:
        with self.lock:
            self.made += 1
            self.spent += point.cost
        self.show(point.name, self.made >= self.wanted)

    def show(self, what: str, last: bool = False) -> None:
        with self.lock:
            now = time.monotonic()
            if not self.terminal and not last and now - self.shown < LINE_S:
                return
            self.shown = now
            left = self.left()
            text = f"{self.made} of {max(self.wanted, self.made)} points  {what}" + (f"  {duration(left)} left" if left is not None else "")
            if self.terminal:
                print("\r" + text.ljust(self.width), end="", file=self.to, flush=True)
                self.width = len(text)
            else:
                print(text, file=self.to, flush=True)

    def close(self) -> None:
        if self.terminal and self.width:
            print("\r" + " " * self.width + "\r", end="", file=self.to, flush=True)


class Session:
    """The points of one experiment in one folder."""

    def __init__(self, store: Store, jobs: int) -> None:
        self.store = store
        self.jobs = jobs
        self.progress = Progress(sys.stderr)
        self.stopped = threading.Event()
        self.interrupted = False
        self.children: set[subprocess.Popen[str]] = set()
        self.lock = threading.Lock()

    # ---- Stopping ----

    def stop(self) -> None:
        """The points that are under way are lost."""
        self.stopped.set()
        with self.lock:
            for child in self.children:
                child.terminate()

    def _signal(self, number: int, _: FrameType | None) -> None:
        if self.interrupted:
            os._exit(128 + number)
        self.interrupted = True
        self.stop()

    def catch_stop(self) -> None:
        """Ctrl-C and SIGTERM stop what is under way; a second one ends the program at once."""
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._signal)

    # ---- One point ----

    def _measure(self, point: Point) -> Json | None:
        rows = self.store.path(point, ".csv.new")
        rows.unlink(missing_ok=True)
        verb = [sys.executable, "-m", point.module] if point.module else [command()]
        args = [*verb, *point.args, "--json", "-"] if point.args else [*verb, "load", "-", "--csv", str(rows)]
        try:
            child = subprocess.Popen(
                args, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment()
            )
        except OSError as error:
            raise Failure(f"{command()} cannot be started: {error.strerror}") from error
        with self.lock:
            self.children.add(child)
            if self.stopped.is_set():
                child.terminate()
        out, err = child.communicate(json.dumps({"label": point.name, **point.run}))
        with self.lock:
            self.children.discard(child)
        if self.stopped.is_set():
            return None
        if child.returncode:
            said = [line.removeprefix("coltrain: ") for line in err.splitlines() if line.startswith("coltrain: ")]
            last = next((line for line in reversed(err.splitlines()) if line.strip()), "it said nothing")
            raise Failure(f"{point.name}: " + ("; ".join(said) or f"the run ended with status {child.returncode}: {last}"))
        figures: Json = json.loads(out)
        return figures

    def make(self, point: Point, wait: bool = False) -> Json | None:
        """The figures of a point, which is made if it is missing. None: stopped, or another process makes it (with wait,
        that is waited for)."""
        while not self.stopped.is_set():
            found = self.store.load(point)
            if found:
                return found
            with self.store.claim(point) as mine:
                if mine:
                    found = self.store.load(point)
                    if found:
                        return found
                    self.progress.show(point.name)
                    figures = self._measure(point)
                    if figures is None:
                        return None
                    saved = self.store.save(point, figures)
                    self.progress.add(point)
                    return saved
            if not wait:
                return None
            self.stopped.wait(AGAIN_S)
        return self.store.load(point)

    # ---- Many ----

    def all(self, tasks: Sequence[Callable[[], object]]) -> None:
        """Runs tasks, so many at once. The first failure stops the others, and is raised."""
        failure: list[BaseException] = []

        def run(task: Callable[[], object]) -> None:
            if self.stopped.is_set():
                return
            try:
                task()
            except BaseException as error:
                failure.append(error)
                self.stop()

        with ThreadPoolExecutor(self.jobs) as pool:
            futures = [pool.submit(run, task) for task in tasks]
            for future in futures:
                while not future.done():  # a signal is noticed between two waits
                    time.sleep(0.02)
        if failure and not self.interrupted:
            raise failure[0]

    def points(self, points: Sequence[Point], wait: bool = False) -> None:
        missing = [p for p in points if not self.store.load(p)]
        self.progress.want(len(missing), sum(p.cost for p in missing))
        self.all([lambda p=p: self.make(p, wait) for p in missing])  # type: ignore[misc]
