# SPDX-License-Identifier: Apache-2.0
"""The page of `coltrain experiment fusion`: a chart for each network, and a table."""

from __future__ import annotations

from typing import Any

from coltrain.experiments.fusion_nets import NETS
from coltrain.reports import charts
from coltrain.reports.page import render

Json = dict[str, Any]

LINES = {
    "models_steps_per_mcycle": ("serve", "together, both queues", "-"),
    "together": ("train", "together", "-"),
    "interleaved": ("turns", "in turn", "-."),
    "serial_prefetched": ("alone", "one after the other", "--"),
    "serial_host": ("fcfs", "launched by the host", ":"),
}


def curves(figure: Any, rows: list[Json]) -> None:
    ax = charts.axes(figure, "members", "models x steps in a million cycles")
    members = [r["members"] for r in rows]
    for name, (colour, label, dashes) in LINES.items():
        if name == "models_steps_per_mcycle" and not any(r["both_queues"] for r in rows):
            continue  # it would be the line of one queue
        ax.plot(members, [r[name] for r in rows], color=charts.COLOURS[colour], label=label, linestyle=dashes, marker="o", markersize=4)
    ax.set_xscale("log", base=2)
    ax.set_xticks(members, [str(m) for m in members])
    ax.set_ylim(0, None)
    ax.legend(frameon=False)


def fusion(s: Json) -> str:
    """The page of `coltrain experiment fusion`."""
    found = charts.of_networks(s["rows"], NETS, curves, "models times steps in a million cycles, by the number of members")
    return render("fusion.html.j2", s=s, charts=found, texts={net: known.text for net, known in NETS.items()})
