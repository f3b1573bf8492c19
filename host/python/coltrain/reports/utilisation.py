# SPDX-License-Identifier: Apache-2.0
"""The page of `coltrain experiment utilisation`, with its roofline."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from coltrain.reports import charts
from coltrain.reports.page import render

Json = dict[str, Any]

PEAK = 256.0  # multiply-accumulates a cycle
TILE = 272  # bytes of a tile in memory: 16 x 16 mantissas, 16 exponents
FROM_X, TO_X, FROM_Y, TO_Y = 0.5, 256.0, 4.0, 340.0
MEMORIES: dict[int, tuple[str, Any]] = {16: ("serve", "-"), 8: ("fcfs", (0, (6, 3))), 2: ("train", (0, (1.5, 2)))}
MARKS = {16: "o", 8: "s", 2: "^"}


def tiles(rows: int, cols: int) -> int:
    return math.ceil(rows / 16) * math.ceil(cols / 16)


def intensity(p: Json) -> float:
    """Multiply-accumulates for each byte of the busier direction of the memory port; the result in HBFP8."""
    read = TILE * (tiles(p["m"], p["k"]) + tiles(p["n"], p["k"]))
    return float(p["m"] * p["n"] * p["k"] / max(read, TILE * tiles(p["m"], p["n"])))


def plotted(rows: Sequence[Json]) -> list[Json]:
    """Alone, without stalls, the result in HBFP8, at the usual latency."""
    usual = {"result": "hbfp8", "beside": "alone", "stall": 0, "latency": 60, "runs": 1}
    some = [r for r in rows if r["bandwidth"] in MEMORIES and all(r[k] == v for k, v in usual.items())]
    return [r for r in some if r["utilisation"] * PEAK >= FROM_Y and intensity(r) >= FROM_X]


def roofline(figure: Any, rows: Sequence[Json], narrow: bool) -> None:
    ax = charts.axes(
        figure, "multiply-accumulates for each byte of the busier direction (logarithmic scale)", "multiply-accumulates a cycle", log=True
    )
    ax.set_xscale("log")
    if narrow:
        ax.set_xlabel("for each byte (logarithmic scale)")
    for width, (colour, dashes) in MEMORIES.items():
        start = max(FROM_X, FROM_Y / width)
        ax.plot([start, PEAK / width, TO_X], [start * width, PEAK, PEAK], color=charts.COLOURS[colour], linestyle=dashes, linewidth=1.5)
    for r in plotted(rows):
        x, y = intensity(r), r["utilisation"] * PEAK
        ax.plot([x], [y], MARKS[r["bandwidth"]], color=charts.COLOURS[MEMORIES[r["bandwidth"]][0]], markersize=6, clip_on=False)
        cube = r["m"] == r["n"] == r["k"]
        if r["bandwidth"] == 16 and not narrow and ((cube and r["m"] <= 128) or r["m"] < 16 or r["n"] == 10):
            name = f"{r['m']} cubed" if cube else f"{r['m']}x{r['n']}x{r['k']}"
            ax.annotate(name, (x, y), xytext=(7, -4), textcoords="offset points", fontsize=10, color=charts.COLOURS["soft"])
    ax.set_xlim(FROM_X, TO_X)
    ax.set_ylim(FROM_Y, TO_Y)
    ax.set_xticks([1, 4, 16, 64, 256], ["1", "4", "16", "64", "256"])
    ax.set_yticks([4, 16, 64, 256], ["4", "16", "64", "256"])
    ax.xaxis.set_minor_formatter(charts.no_labels())


def utilisation(s: Json) -> str:
    def draw(figure: Any, narrow: bool) -> None:
        roofline(figure, s["rows"], narrow)

    plain = [r for r in s["rows"] if r["beside"] == "alone" and r["aimed"] and r["latency"] == 60]
    return render(
        "utilisation.html.j2",
        s=s,
        chart=charts.chart(draw, "Roofline of products", "a mark for each product; the lines are what memory and array allow")
        if plotted(s["rows"])
        else None,
        keys=charts.keys([(*style, f"{width} bytes a cycle each way") for width, style in MEMORIES.items()]),
        best=max(plain, key=lambda r: float(r["utilisation"])) if plain else None,
        least=min(plain, key=lambda r: float(r["of_bound"])) if plain else None,
    )
