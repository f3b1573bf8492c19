# SPDX-License-Identifier: Apache-2.0
"""Points of co-location with known figures, and a reader of pages, for several tests."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
from coltrain.experiments.cells import Cell, Cells, targets_of
from coltrain.experiments.colocation import Colocation, Setting
from coltrain.experiments.common import LARGE, SERVERS, parser_of
from coltrain.experiments.points import Point, Store
from numpy.typing import NDArray

DEADLINE, IN_TIME, LATE, FIRST = 4000, 1000, 5000, 100  # cycles
CAPACITY = {"service_cycles": DEADLINE // 10, "batch_cycles": 500, "busy_cycles": 200000, "completed": 2000}


@dataclass(frozen=True)
class Figures:
    """Of one run. late: the first of its late requests, and how many; lost: so many of the last ones have no answer."""

    p99: int | None = 10000
    window: int = 300
    rows: int = 60
    wrong: int = 0
    late: int = 0
    lates: int = 0
    lost: int = 0
    u: float = 0.5
    given_up: bool = False


USUAL = Figures()


class Rows(Store):
    """Reads the rows of a point once, until they change: tests look at hundreds of points after each change of one."""

    def __init__(self, out: str) -> None:
        super().__init__(out)
        self.known: dict[str, tuple[object, NDArray[np.float64] | None]] = {}

    def latencies(self, point: Point, figures: dict[str, Any]) -> NDArray[np.float64] | None:
        path = self.path(point, ".csv")
        if not path.exists():
            return super().latencies(point, figures)
        file = path.stat()
        of = file.st_ino, file.st_mtime_ns, file.st_size, figures
        if point.name not in self.known or self.known[point.name][0] != of:
            self.known[point.name] = of, super().latencies(point, figures)
        return self.known[point.name][1]

    def save(self, point: Point, figures: dict[str, Any]) -> dict[str, Any]:
        self.known.pop(point.name, None)
        return super().save(point, figures)


@cache
def rows_of(requests: int, late: int, lates: int) -> list[str]:
    return [
        f"{i},0,7,{FIRST + 10 * i},,{FIRST + 10 * i + 1},{FIRST + 10 * i + (LATE if late <= i < late + lates else IN_TIME)},1,3,OK,0"
        for i in range(requests)
    ]


class Bed:
    """An experiment whose points a test chooses. part: percent of the requests; 1 leaves 30 for 784-512-256-10."""

    def __init__(self, out: Path, part: int = 1, *more: str) -> None:
        out.mkdir(parents=True, exist_ok=True)
        trace = out / "recorded.csv"
        trace.write_text("0\n1\n")
        args = ["--out", str(out), "--part", str(part), "--seeds", "5", "--trace", str(trace), *more]
        self.e = Colocation(parser_of(Colocation).parse(args))
        self.e.grid = []
        self.e.capacity = {(s.name, m): dict(CAPACITY) for s in SERVERS for m in ("", "bandwidth=8")}
        self.e.store = Rows(self.e.options.out)
        self.e.store.open()

    def path(self, s: Setting, end: str) -> Path:
        return self.e.store.path(self.e.point(s), end)

    def put(self, s: Setting, f: Figures = USUAL) -> None:
        """The first ten requests are not measured."""
        point = self.e.point(s)
        requests = point.settings["requests"]
        head = "request,model,sample,scheduled,arrive,start,end,batch,version,code,wrong"
        rows = [head, *rows_of(requests, f.late, f.lates)[: requests - f.lost]]
        self.e.store.path(point, ".csv.new").write_text("\n".join(rows) + "\n")
        figures = {
            "measured": requests - 10,
            "answered": requests - f.lost,
            "wrong": f.wrong,
            "deadline_cycles": DEADLINE,
            "deadline_misses": f.lates + f.lost,
            "p99_cycles": f.p99,
            "u": f.u,
            "batches": [6, 2],
            "window_cycles": f.window,
            "training_rows": f.rows,
            "given_up": f.given_up,
        }
        self.e.store.save(point, figures)

    def put_training(self, memory: str = "") -> Setting:
        """Training alone: 10, 40, 60 rows after 100, 200, 300 cycles."""
        s = Setting("training alone", memory=memory)
        self.e.grid.append(s)
        self.e.store.save(self.e.point(s), {"pitch_cycles": 100, "rows": [10, 40, 60]})
        return s

    def add_pair(self, s: Setting) -> Setting:
        """A run beside training, and before it the same alone, if it is not there yet."""
        self.e.grid += [x for x in (s.alone(), s) if x.name() not in {g.name() for g in self.e.grid}]
        return s

    def put_pair(self, seed: int, alone: Figures, together: Figures) -> Setting:
        s = self.add_pair(half_load(seed))
        self.put(s.alone(), alone)
        self.put(s, together)
        return s

    def cells(self) -> Cells:
        return Cells(self.e)

    def cell(self) -> Cell:
        (cell,) = self.cells().list
        return cell

    def held(self) -> list[bool | None]:
        return [t.held for t in targets_of(self.cells())]


def half_load(seed: int = 1, **other: Any) -> Setting:
    return replace(Setting("together", LARGE, permille=500, seed=seed, core=True), **other)


# ---- Pages ----

VOID = {"meta", "br", "path", "rect", "use", "line", "circle", "image"}


class PageReader(HTMLParser):
    """Fails where an element is not closed in order; keeps the text and counts elements."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.count: dict[str, int] = {}
        self.texts: list[str] = []
        self.problems: list[str] = []
        self.feed(page)
        self.close()
        if self.open:
            self.problems.append(f"never closed: {self.open}")

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.count[tag] = self.count.get(tag, 0) + 1
        if tag == "script" or any(v and (v.startswith("http") or name == "src") for name, v in attrs):
            self.problems.append(f"<{tag}> with {attrs} is from elsewhere, or a script")
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.count[tag] = self.count.get(tag, 0) + 1

    def handle_endtag(self, tag: str) -> None:
        if tag in VOID:
            return
        if not self.open or self.open[-1] != tag:
            self.problems.append(f"</{tag}> where {self.open[-3:]} are open")
        else:
            self.open.pop()

    def handle_data(self, data: str) -> None:
        if not self.open or self.open[-1] not in ("style", "defs"):
            self.texts.append(data)

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.texts).split())


def read_page(page: str) -> PageReader:
    """The page; the test fails unless it is well-formed, whole in itself, and without a figure that is none."""
    assert page.startswith("<!doctype html>")
    reader = PageReader(page)
    assert reader.problems == []
    for bad in ("http", "<script", "nan", "None", ">-0.0<", ">inf<", "built-in", "Undefined"):
        assert bad not in page, page[max(0, page.index(bad) - 80) : page.index(bad) + 80]
    ids = [part.split('"')[0] for part in page.split(' id="')[1:]]
    assert len(ids) == len(set(ids))
    return reader
