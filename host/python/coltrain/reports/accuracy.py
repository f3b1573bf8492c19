# SPDX-License-Identifier: Apache-2.0
"""The pages of `coltrain experiment accuracy`, curves and a table, and of `coltrain experiment speed`, a table."""

from __future__ import annotations

from typing import Any

from coltrain.reports import charts
from coltrain.reports.page import render

Json = dict[str, Any]

FEW = 10  # epochs, each with a number

STYLES: dict[str, tuple[str, Any]] = {
    "fp32": ("alone", "-"),
    "hbfp8": ("serve", "-"),
    "hbfp6": ("fcfs", (0, (6, 3))),
    "hbfp4": ("train", (0, (1.5, 2))),
}


def curves(figure: Any, rows: list[Json], place: Any = None) -> None:
    """place: of several charts, as matplotlib counts them."""
    ax = charts.axes(figure, "epoch", "test images, %", sub=place)
    for r in rows:
        colour, dashes = STYLES[r["format"]]
        epochs = range(1, len(r["curve"]) + 1)
        ax.plot(epochs, r["curve"], color=charts.COLOURS[colour], linestyle=dashes, marker="o", markersize=4)
    last = max(len(r["curve"]) for r in rows)
    ax.set_xticks(range(1, last + 1) if last <= FEW else range(0, last + 1, last // FEW))


def speed(s: Json) -> str:
    """The page of `coltrain experiment speed`."""
    return render("speed.html.j2", s=s)


def accuracy(s: Json) -> str:
    networks = list(dict.fromkeys(r["network"] for r in s["rows"]))
    made = {style for style in STYLES if any(r["format"] == style for r in s["rows"])}
    figures = []
    for network in networks:
        rows = [r for r in s["rows"] if r["network"] == network]

        def draw(figure: Any, narrow: bool, rows: list[Json] = rows) -> None:
            curves(figure, rows)

        figures.append((network, charts.chart(draw, f"Accuracy of {network} by epoch", "a line for each format, means over the seeds")))
    keys = charts.keys([(*style, name.upper()) for name, style in STYLES.items() if name in made])
    return render("accuracy.html.j2", s=s, figures=figures, keys=keys)
