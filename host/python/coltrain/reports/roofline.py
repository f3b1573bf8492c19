# SPDX-License-Identifier: Apache-2.0
"""Rooflines: how many multiply-accumulates a cycle a run achieved, over how many it did for each byte of device memory.

Both come from the counters of the core, which are in the JSON of every verb that runs something. The array counts rows of 16
elements: one that a matrix fills only in part counts whole. The memory has a channel for each direction, so what only reads has half
the bytes a cycle of what reads and writes as much at once.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from markupsafe import Markup

from coltrain.reports import charts

Json = dict[str, Any]

PORT = 16  # bytes of a beat, and so of a cycle at most, each way
COLOURS = {"inference": "serve", "training": "train", "both": "fg"}


@dataclass(frozen=True)
class Roof:
    """What nothing can exceed."""

    macs: float
    """of the array, a cycle"""
    bytes: float
    """of the memory, a cycle each way"""


@dataclass(frozen=True)
class Work:
    """What was done for one queue, or both, in a stretch of time."""

    name: str
    queue: str
    """inference, training or both"""
    together: bool
    """with the other queue"""
    cycles: float
    macs: float
    read: float
    """bytes"""
    written: float
    roof: Roof
    derived: bool = False
    """Only the cycles were measured; the rest is that of the same work at another time."""

    @property
    def bytes(self) -> float:
        return self.read + self.written

    @property
    def intensity(self) -> float:
        """Multiply-accumulates for each byte."""
        return self.macs / self.bytes

    @property
    def rate(self) -> float:
        """Multiply-accumulates a cycle."""
        return self.macs / self.cycles

    @property
    def memory(self) -> float:
        """Multiply-accumulates a cycle that the memory allows, with its mixture of reading and writing."""
        return self.macs * self.roof.bytes / max(self.read, self.written)

    @property
    def limit(self) -> float:
        return min(self.roof.macs, self.memory)

    @property
    def limited_by(self) -> str:
        return "array" if self.roof.macs <= self.memory else "memory"

    def known(self) -> bool:
        return self.cycles > 0 and self.macs > 0 and self.bytes > 0


# ---- From results ----


def options_of(uri: str) -> dict[str, str]:
    """Of a device's name: "sim:core=16x8,latency=60"."""
    return dict(part.split("=", 1) for part in uri.partition(":")[2].split(",") if "=" in part)


def bytes_a_cycle(bandwidth: float, stall: float) -> float:
    """A narrow memory begins with a beat when the one before has gone, and then may refuse it."""
    return PORT / (PORT / bandwidth + stall / (100 - stall))


def roof_of(device: str, array: Sequence[int]) -> Roof:
    """Of a board nothing is known but its port."""
    options = options_of(device) if device.startswith("sim:") else {}

    def number(name: str, usual: float) -> float:
        text = options.get(name, "")
        return float(int(text, 0)) if text else usual

    return Roof(float(array[0] * array[1]), bytes_a_cycle(number("bandwidth", PORT), number("stall", 0)))


def _of_units(name: str, time: Json, queue: str, together: bool, roof: Roof) -> Work:
    busy = {u["unit"]: float(u["busy"]) for u in time["units"] if u["queue"] == queue}
    beats = busy.get("DMA read", 0.0), busy.get("DMA write", 0.0)
    return Work(name, queue, together, time["cycles"], busy.get("MXU", 0.0) * roof.macs, beats[0] * PORT, beats[1] * PORT, roof)


def _both(name: str, parts: Sequence[Work]) -> Work:
    macs, read, written = (sum(getattr(w, key) for w in parts) for key in ("macs", "read", "written"))
    return Work(name, "both", True, parts[0].cycles, macs, read, written, parts[0].roof)


def _colocate(r: Json, roof: Roof) -> list[Work]:
    found = []
    if r["time"]:
        serving = _of_units("serving, while training", r["time"], "inference", True, roof)
        training = _of_units("training, while serving", r["time"], "training", True, roof)
        found += [serving, training, _both("both together", [serving, training])]
        ends, due = r["series"]["alone"]["end"], r["series"]["alone"]["scheduled"]
        if ends and all(e is not None for e in ends) and len(ends) == r["serve"]["completed"]:
            # The same requests read and write the same bytes; only the time differs.
            found.append(replace(serving, name="serving alone", together=False, cycles=max(ends) - min(due), derived=True))
    if r["time_alone"]:
        found.append(_of_units("training alone", r["time_alone"], "training", False, roof))
    return found


def _gemm(r: Json) -> list[Work]:
    rows, cols = (int(n) for n in r["core"].split("x"))
    found = []
    for p in r["products"]:
        queue = "training" if p["beside"] == "inference" else "inference"
        roof = Roof(float(rows * cols), bytes_a_cycle(p["bandwidth"], p["stall"]))
        c, name = p["counters"], f"{p['m']} x {p['n']} x {p['k']}, {p['result']}"
        if p["beside"] != "alone":
            name += f", beside {p['beside']}"
        macs, beats = c["MXU_BUSY"] * roof.macs, (c["LD_BEATS"] * PORT, c["ST_BEATS"] * PORT)
        found.append(Work(name, queue, p["beside"] != "alone", p["cycles"], macs, *beats, roof))
    return found


def works_of(r: Json) -> list[Work]:
    """What a result of any verb says of the work that was done; nothing where it says too little (see :func:`why_none`)."""
    if "products" in r:
        found = _gemm(r)
    elif not r.get("array") or not r.get("time"):
        return []
    else:
        roof = roof_of(r["device"], r["array"])
        if "serve_alone" in r:
            found = _colocate(r, roof)
        else:
            queues = list(dict.fromkeys(u["queue"] for u in r["time"]["units"]))
            parts = [_of_units(q, r["time"], q, len(queues) > 1, roof) for q in queues]
            found = parts + ([_both("both together", parts)] if len(parts) > 1 else [])
    return [w for w in found if w.known()]


def why_none(r: Json) -> str:
    """A sentence about a result without works."""
    device = str(r.get("device", ""))
    if device.startswith("emu:"):
        return f"There is no roofline: {device} computes the same bits as the hardware but has no time. With --device sim: there is one."
    if r.get("stopped"):
        return "There is no roofline: the run was stopped before its counters were read."
    return "There is no roofline: the file lacks the counters of the units, as those of earlier versions do. A new run has them."


# ---- The chart ----


Box = tuple[float, float, float, float]
"""left, right, bottom, top"""


def _places(points: Sequence[tuple[float, float]], names: Sequence[str], taken: Sequence[Box] = ()) -> list[tuple[float, float]]:
    """Where the name of each point stands, in the units of the page: where it hides no point, no other name and nothing that is there."""
    hides: list[Box] = [*taken, *((x - 7, x + 7, y - 7, y + 7) for x, y in points)]
    found = []
    for (x, y), name in zip(points, names, strict=True):
        half = 4.0 * len(name)
        tries = [(x + 10 + half, y), (x, y - 16), (x, y + 16), (x - 10 - half, y)]
        tries += [(x + step, y - down) for down in (16, 30, 44, 58, 72) for step in (0, 18, -18, 36, -36)]
        boxes = [(a - half, a + half, b - 6, b + 6) for a, b in tries]

        def free(box: Box) -> bool:
            return all(box[1] <= h[0] or h[1] <= box[0] or box[3] <= h[2] or h[3] <= box[2] for h in hides)

        at = next((k for k, box in enumerate(boxes) if free(box)), 0)
        hides.append(boxes[at])
        found.append(tries[at])
    return found


def _roofs(ax: Any, roofs: Sequence[Roof], low: float, high: float) -> list[Any]:
    """Draws them; returns their names."""
    xs = np.geomspace(low, high, 200)
    soft = charts.COLOURS["soft"]
    for roof in roofs:
        ax.plot(xs, np.minimum(roof.macs, xs * 2 * roof.bytes), color=soft, linewidth=2)
        ax.plot(xs, np.minimum(roof.macs, xs * roof.bytes), color=soft, linewidth=1.2, linestyle=(0, (2, 3)))
    how = {"textcoords": "offset points", "va": "bottom", "fontsize": 11, "color": soft}
    each = dict.fromkeys(r.macs for r in roofs)
    return [ax.annotate(f"{charts.number_text(macs)} MAC a cycle", (high, macs), xytext=(0, 4), ha="right", **how) for macs in each]


def chart(works: Sequence[Work]) -> Markup:
    """A point for each, with its number in the table; both axes are logarithmic."""
    roofs = list(dict.fromkeys(w.roof for w in works))
    xs = [w.intensity for w in works] + [r.macs / (2 * r.bytes) for r in roofs]
    low, high = min(xs) / 3, max(xs) * 3
    bottom, top = min(w.rate for w in works) / 3, max(r.macs for r in roofs) * 2.2

    def draw(figure: Any, narrow: bool) -> None:
        ax = charts.axes(figure, "MAC for each byte (logarithmic scale)", "MAC a cycle", log=True)
        ax.set_xscale("log")
        ax.set_xlim(low, high)
        ax.set_ylim(bottom, top)
        charts.log_ticks(ax.xaxis, high / low)
        charts.log_ticks(ax.yaxis, top / bottom)
        labels = _roofs(ax, roofs, low, high)
        for w in works:
            colour = charts.COLOURS[COLOURS[w.queue]]
            # A ring for alone, so that a dot in it is seen where the two coincide.
            face, size = (colour, 8) if w.together else ("none", 13)
            ax.plot([w.intensity], [w.rate], "o", markersize=size, markerfacecolor=face, markeredgecolor=colour, markeredgewidth=2)
        figure.draw_without_rendering()
        points = [(float(x), float(y)) for x, y in ax.transData.transform([(w.intensity, w.rate) for w in works])]
        names = [str(i) for i in range(1, len(works) + 1)]
        taken = [(b.x0, b.x1, b.y0, b.y1) for b in (label.get_window_extent() for label in labels)]
        for w, name, at in zip(works, names, _places(points, names, taken), strict=True):
            x, y = ax.transAxes.inverted().transform(at)
            colour = charts.COLOURS[COLOURS[w.queue]]
            ax.text(x, y, name, transform=ax.transAxes, ha="center", va="center", fontsize=11, fontweight="bold", color=colour)

    return charts.chart(draw, "Roofline", "multiply-accumulates a cycle over those for each byte, and what limits them", 380.0)


def keys(works: Sequence[Work]) -> Markup:
    """Of the points and lines."""
    points = [(COLOURS[q], t, q) for q in COLOURS for t in (True, False) if any(w.queue == q and w.together == t for w in works)]
    marks = [
        (colour, filled, f"{text}, {'while the other queue works' if filled else 'alone'}" if text != "both" else "both queues")
        for colour, filled, text in points
    ]
    memories = ", ".join(charts.number_text(b) for b in dict.fromkeys(w.roof.bytes for w in works))
    lines = [
        ("soft", "-", f"roof where reads and writes are equal ({memories} bytes a cycle of each)"),
        ("soft", ("", (2, 3)), "roof where there are only reads, or only writes"),
    ]
    return charts.point_keys(marks) + charts.keys(lines)


def section(r: Json) -> dict[str, Any]:
    """What templates/roofline.html.j2 wants, of one result."""
    return _section(works_of(r), why_none(r))


def section_of_runs(names: Sequence[str], results: Sequence[Json]) -> dict[str, Any]:
    """The same of several runs, each work with the name of its run in front; `without`: runs that have none, and why."""
    found = [(name, r, works_of(r)) for name, r in zip(names, results, strict=True)]
    works = [replace(w, name=f"{name}, {w.name}") for name, _, of in found for w in of]
    without = [(name, why_none(r)) for name, r, of in found if not of]
    return _section(works, without[0][1] if without else "") | {"without": without}


def _section(works: Sequence[Work], why: str) -> dict[str, Any]:
    if not works:
        return {"roofline": None, "why_no_roofline": why}
    derived = any(w.derived for w in works)
    return {"roofline": chart(works), "roofline_keys": keys(works), "works": works, "derived": derived, "why_no_roofline": ""}
