# SPDX-License-Identifier: Apache-2.0
"""The page of `coltrain experiment memory`: memory of a step by the way of keeping, and a table."""

from __future__ import annotations

from typing import Any

from coltrain.experiments.memory import show
from coltrain.experiments.memory_ways import NETS, WAYS
from coltrain.reports import charts
from coltrain.reports.page import render

Json = dict[str, Any]
MIB = 1 << 20
KEY = (("alone", "-", "kept as it is, and what a step needs besides"), ("train", "-", "pages of what is compressed"))


def bars(figure: Any, rows: list[Json]) -> None:
    ax = charts.axes(figure, "", "MiB for a step")
    known = [r for r in rows if r["peak_bytes"] is not None]
    places, raw = range(len(known)), [r["run_bytes"] / MIB for r in known]
    ax.bar(places, raw, color=charts.COLOURS["alone"])
    ax.bar(places, [r["pages_bytes"] / MIB for r in known], bottom=raw, color=charts.COLOURS["train"])
    ax.set_xticks(places, [r["keep"] for r in known], rotation=30)
    ax.grid(axis="x", visible=False)


def memory(s: Json) -> str:
    """The page of `coltrain experiment memory`."""
    found = charts.of_networks(s["rows"], NETS, bars, "device memory for what a step makes, by the way of keeping activations")
    return render("memory.html.j2", s=s, charts=found, key=charts.keys(KEY, box=True), nets={k: n.text for k, n in NETS.items()}, ways={k: w.text for k, w in WAYS.items()}, show=show)
