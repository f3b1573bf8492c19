# SPDX-License-Identifier: Apache-2.0
"""The page of `coltrain experiment memory`: bits, accuracy and memory of a step by the way of keeping, and tables."""

from __future__ import annotations

from typing import Any

from coltrain.experiments.memory import show
from coltrain.experiments.memory_ways import NETS, WAYS
from coltrain.reports import charts
from coltrain.reports.page import render

Json = dict[str, Any]
MIB = 1 << 20
HEIGHT = 620.0
KEY = (("alone", "-", "kept as it is, and what a step needs besides"), ("train", "-", "pages of what is compressed"))


def names(ax: Any, rows: list[Json], there: bool) -> None:
    """The ways below a chart, upright where it is narrow, or only their lines."""
    wide = ax.figure.get_figwidth() * 72 > charts.NARROW[0] + 1
    how = {"rotation": 60, "ha": "right", "rotation_mode": "anchor"} if wide else {"rotation": 90}
    ax.set_xticks(range(len(rows)), [r["keep"] if there else "" for r in rows], **(how if there else {}))
    ax.set_xlim(-0.6, len(rows) - 0.4)
    ax.grid(axis="x", visible=False)


def bars(figure: Any, rows: list[Json]) -> None:
    """Bits of a number, accuracy with its interval, memory: one above the other, by the same ways."""
    grid = figure.add_gridspec(3, 1)
    places = range(len(rows))
    ax = charts.axes(figure, "", "bits of a number", sub=grid[0])
    drawn = ax.bar(places, [r["bits_per_value"] or 0 for r in rows], color=charts.COLOURS["serve"])
    ax.bar_label(drawn, [f"{r['bits_per_value']:.1f}" if r["bits_per_value"] else "" for r in rows], fontsize=9, color=charts.COLOURS["soft"])
    ax.margins(y=0.2)
    names(ax, rows, False)
    ax = charts.axes(figure, "", "right answers, mean over seeds with 95 % interval", percent=True, sub=grid[1])
    for i, r in enumerate(rows):
        if r["accuracy_low"] is not None:
            ax.plot([i, i], [r["accuracy_low"], r["accuracy_high"]], color=charts.COLOURS["soft"])
        ax.plot([i], [r["accuracy"]], "o", color=charts.COLOURS["serve"])
    names(ax, rows, False)
    ax = charts.axes(figure, "", "MiB for a step", sub=grid[2])
    ax.bar(places, [(r["run_bytes"] or 0) / MIB for r in rows], color=charts.COLOURS["alone"])
    ax.bar(places, [(r["pages_bytes"] or 0) / MIB for r in rows], bottom=[(r["run_bytes"] or 0) / MIB for r in rows], color=charts.COLOURS["train"])
    names(ax, rows, True)


def memory(s: Json) -> str:
    """The page of `coltrain experiment memory`."""
    text = "bits of a number, right answers and device memory for what a step makes, by the way of keeping activations"
    found = charts.of_networks(s["rows"], NETS, bars, text, HEIGHT)
    nets, ways = {k: n.text for k, n in NETS.items()}, {k: w.text for k, w in WAYS.items()}
    return render("memory.html.j2", s=s, charts=found, key=charts.keys(KEY, box=True), nets=nets, ways=ways, show=show)
