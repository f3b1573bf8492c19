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


def bars(figure: Any, rows: list[Json]) -> None:
    ax = charts.axes(figure, "", "MiB for a step")
    known = [r for r in rows if r["peak_bytes"] is not None]
    ax.bar([r["keep"] for r in known], [r["run_bytes"] / MIB for r in known], color=charts.COLOURS["alone"], label="raw")
    pages = [r["pages_bytes"] / MIB for r in known]
    ax.bar([r["keep"] for r in known], pages, bottom=[r["run_bytes"] / MIB for r in known], color=charts.COLOURS["train"], label="pages")
    ax.tick_params(axis="x", rotation=30)
    ax.legend(frameon=False)


def memory(s: Json) -> str:
    """The page of `coltrain experiment memory`."""
    found = charts.of_networks(s["rows"], NETS, bars, "device memory for what a step makes, by the way of keeping activations")
    return render("memory.html.j2", s=s, charts=found, nets={k: n.text for k, n in NETS.items()}, ways={k: w.text for k, w in WAYS.items()}, show=show)
