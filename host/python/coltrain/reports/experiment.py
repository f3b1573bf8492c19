# SPDX-License-Identifier: Apache-2.0
"""The page of an experiment, from its summary."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from coltrain.cli import Failure
from coltrain.reports import charts
from coltrain.reports.accuracy import accuracy, speed
from coltrain.reports.fusion import fusion
from coltrain.reports.memory import memory
from coltrain.reports.page import render
from coltrain.reports.utilisation import utilisation

Json = dict[str, Any]

POLICIES = {
    "PRIORITY": "PRIORITY: requests first",
    "FCFS": "FCFS: first come, first served",
    "ROUND_ROBIN": "ROUND_ROBIN: queues take turns",
    "JOB": "JOB: one whole job at a time",
}
LARGE = "784-512-256-10"
DODGE = 0.006  # of load, between the marks of neighbouring policies, so that none hides another


def stretch_of(c: Json) -> float:
    """Infinite where it was never answered beside training; NaN where alone neither."""
    if c["stretch"]["mean"] is not None:
        return float(c["stretch"]["mean"])
    return math.nan if c["p99_alone_cycles"] is None else math.inf


def value(x: float | None) -> float:
    return math.nan if x is None else float(x)


class Series:
    """Figures at loads, with intervals; infinite ones are arrows at the top edge."""

    def __init__(self, colour: str, dashes: Any, shift: float = 0.0) -> None:
        self.colour, self.dashes, self.shift = colour, dashes, shift
        self.points: list[tuple[float, float, float, float]] = []

    def add(self, load: float, y: float, low: float = math.nan, high: float = math.nan) -> None:
        if not math.isnan(y):
            self.points.append((load + self.shift, y, low, high))

    def finite(self) -> list[float]:
        return [v for p in self.points for v in p[1:] if math.isfinite(v)]

    def draw(self, ax: Any, top: float, marks: bool = True) -> None:
        colour = charts.COLOURS[self.colour]
        xs, ys = [p[0] for p in self.points], [min(p[1], top) for p in self.points]
        ax.plot(xs, ys, color=colour, linestyle=self.dashes, linewidth=2, clip_on=False)
        if not marks:
            return
        for x, y, low, high in self.points:
            if math.isinf(y):
                ax.plot([x], [top], marker="^", markersize=7, color=colour, clip_on=False)
                continue
            if math.isfinite(low) and math.isfinite(high):
                ax.errorbar([x], [y], yerr=[[max(0, y - low)], [max(0, high - y)]], color=colour, capsize=3, elinewidth=1.5)
            ax.plot([x], [y], marker="o", markersize=6, color=colour, clip_on=False)


def limits(series: Sequence[Series]) -> tuple[float, float]:
    values = [v for s in series for v in s.finite()]
    return (min(values), max(values)) if values else (1.0, 1.0)


class Grid:
    """The core cells of a server."""

    def __init__(self, summary: Json, server: str) -> None:
        self.server = server
        self.cells = [c for c in summary["cells"] if c["core"] and c["server"] == server]
        self.loads = sorted({c["load"] for c in self.cells})

    def cell(self, policy: str, load: float) -> Json | None:
        return next((c for c in self.cells if c["policy"] == policy and c["load"] == load), None)

    def any(self, load: float) -> Json:
        return next(c for c in self.cells if c["load"] == load)

    def policies(self) -> list[str]:
        return [p for p in POLICIES if any(c["policy"] == p for c in self.cells)]

    def series(self, policy: str) -> Series:
        at = self.policies().index(policy) - (len(self.policies()) - 1) / 2
        return Series(*charts.POLICY_STYLE[policy], at * DODGE)

    def load_axis(self, ax: Any) -> None:
        ax.set_xlim(max(0, self.loads[0] - 0.05), self.loads[-1] + 0.05)

    def keys(self, alone: str) -> Markup:
        return charts.keys([(*charts.ALONE_STYLE, alone)] + [(*charts.POLICY_STYLE[p], POLICIES[p]) for p in self.policies()])

    # ---- Charts ----

    def p99(self, figure: Any, narrow: bool) -> None:
        """The interval is that of the ratio to the same arrivals alone: p99 itself varies with the arrivals, which is not the
        policy's doing."""
        alone = Series(*charts.ALONE_STYLE)
        for load in self.loads:
            alone.add(load, value(self.any(load)["p99_alone_cycles"]))
        lines = []
        for policy in self.policies():
            s = self.series(policy)
            for load in self.loads:
                c = self.cell(policy, load)
                if c:
                    p99 = math.inf if c["p99_cycles"] is None else c["p99_cycles"]
                    base = value(c["p99_alone_cycles"])
                    s.add(load, p99, base * value(c["stretch"]["low"]), base * value(c["stretch"]["high"]))
            lines.append(s)
        low, high = limits([alone, *lines])
        log = high > 5 * low
        never = any(math.isinf(p[1]) for s in lines for p in s.points)
        ax = charts.axes(figure, "load: requests as a part of the capacity", "p99, cycles", log=log)
        top = high * ((high / low) ** 0.15 if log and never else 1.3 if log else 1.15)
        ax.set_ylim(low / 1.3 if log else 0, top)
        self.load_axis(ax)
        alone.draw(ax, top, marks=True)
        for s in reversed(lines):
            s.draw(ax, top)
        if never:
            ax.set_title("top edge: never" if narrow else "at the top edge: never", loc="right")

    def stretch(self, figure: Any, _: bool) -> None:
        s = Series(*charts.POLICY_STYLE["PRIORITY"])
        for load in self.loads:
            c = self.cell("PRIORITY", load)
            if c:
                s.add(load, stretch_of(c), value(c["stretch"]["low"]), value(c["stretch"]["high"]))
        low, high = limits([s])
        room = max(high - 1, 1 - low) * 0.2 + 0.005
        ax = charts.axes(figure, "load: requests as a part of the capacity", "p99 beside training / p99 alone")
        top = max(high, 1) + room
        ax.set_ylim(min(low, 1) - room, top)
        self.load_axis(ax)
        ax.axhline(1, color=charts.COLOURS["soft"], linestyle=(0, (2, 4)), linewidth=1.5)
        s.draw(ax, top)

    def share(self, figure: Any, _: bool) -> None:
        idle, lines = Series(*charts.ALONE_STYLE), []
        for load in self.loads:
            idle.add(load, 1 - self.any(load)["u"])
        for policy in self.policies():
            s = self.series(policy)
            for load in self.loads:
                c = self.cell(policy, load)
                if c:
                    r = c["training_share"]
                    s.add(load, value(r["mean"]), value(r["low"]), value(r["high"]))
            lines.append(s)
        ax = charts.axes(figure, "load: requests as a part of the capacity", "of training's speed alone", percent=True)
        top = max(1.0, limits(lines)[1])
        ax.set_ylim(0, top * 1.02)
        self.load_axis(ax)
        idle.draw(ax, top, marks=False)
        for s in reversed(lines):
            s.draw(ax, top)

    def batches(self, figure: Any, narrow: bool) -> None:
        cells = [c for load in self.loads if (c := self.cell("PRIORITY", load))]
        rows = figure.subplots(len(cells), 1, sharex=True, squeeze=False)[:, 0]
        most = max([0.01] + [n / sum(c["batches"]) for c in cells if sum(c["batches"]) for n in c["batches"]])
        for ax, c in zip(rows, cells, strict=True):
            total = sum(c["batches"])
            shares = [n / total if total else 0 for n in c["batches"]]
            ax.bar(range(1, 17), shares, color=charts.COLOURS["serve"], width=0.76)
            for n, share in enumerate(shares):
                if share >= 0.005:
                    ax.text(
                        n + 1,
                        share,
                        f"{100 * share:.0f}",
                        ha="center",
                        va="bottom",
                        fontsize=9 if narrow else 11,
                        color=charts.COLOURS["soft"],
                    )
            ax.set_ylim(0, most * 1.25)
            ax.set_yticks([])
            ax.grid(False)
            ax.set_title(f"load {c['load']:g}, mean {c['mean_batch']:.2f}; percent of the batches", fontsize=11)
        rows[-1].set_xticks(range(1, 17, 3 if narrow else 1))
        rows[-1].set_xlabel("requests in a batch")


def colocation(s: Json) -> str:
    grids = [g for name in ("digits", LARGE) if (g := Grid(s, name)).cells]
    large = Grid(s, LARGE)
    under: list[Json] = [c for load in large.loads if load <= 0.8 and (c := large.cell("PRIORITY", load))]
    worst = next((c for c in under if math.isnan(stretch_of(c))), None) or (max(under, key=stretch_of) if under else None)
    seeds = max((c["seeds"] for c in s["cells"]), default=0)
    figures = [
        {
            "name": g.server,
            "line_keys": g.keys("serving alone"),
            "share_keys": g.keys("1 - u, time without a request"),
            "p99": charts.chart(g.p99, "p99 latency over load", "a line for serving alone and for each policy; the table has the figures"),
            "stretch": charts.chart(g.stretch, "p99 beside training over p99 alone", "a point for each load; 1 would be no effect at all"),
            "share": charts.chart(g.share, "Training over load", "training's part of its speed alone, for each policy, and the time left"),
            "batches": charts.chart(
                g.batches,
                "Batches by size and load",
                "a row of bars for each load, in percent of the batches",
                90.0 * len([c for c in g.cells if c["policy"] == "PRIORITY"]) + 50,
            )
            if any(c["policy"] == "PRIORITY" for c in g.cells)
            else None,
            "cells": g.cells,
        }
        for g in grids
    ]
    return render(
        "colocation.html.j2",
        s=s,
        large=LARGE,
        worst=worst,
        worst_stretch=stretch_of(worst) if worst else math.nan,
        shares=[(load, large.cell("PRIORITY", load)) for load in (0.2, 0.8)],
        seeds=seeds,
        figures=figures,
        axes=[c for c in s["cells"] if not c["core"]],
        wrong=sum(c["wrong"] for c in s["cells"]),
        answered=sum(c["answered"] for c in s["cells"]),
        stretch_of=stretch_of,
        isnan=math.isnan,
        isinf=math.isinf,
        setting=setting_text,
        server_text=server_text,
    )


def server_text(name: str) -> str:
    return "both networks" if name == "two" else name


def setting_text(c: Json) -> str:
    """In what a cell is not of the core grid."""
    if c["core"]:
        return str(c["policy"])
    arrivals = {"poisson": "", "trace": "recorded arrivals"}.get(c["arrivals"], c["arrivals"] + " arrivals")
    parts = [server_text(c["server"]), c["policy"] if c["policy"] != "PRIORITY" else "", arrivals, c["device"].partition(":")[2]]
    return ", ".join(p for p in parts if p)


# ---- Batching ----

BOUNDS = {"10x": "10 × a request alone", "50us": "50 µs", "500us": "500 µs"}
SINGLE, MANY = ("fcfs", "-"), ("serve", "-")


def cost_chart(network: Json) -> Markup:
    each = [c / (n + 1) for n, c in enumerate(network["cost_cycles"])]

    def draw(figure: Any, narrow: bool) -> None:
        ax = charts.axes(figure, "requests in a batch", "cycles a request")
        ax.plot(range(1, 17), each, marker="o", color=charts.COLOURS["serve"])
        ax.set_ylim(0, each[0] * 1.1)
        ax.set_xticks(range(1, 17, 3 if narrow else 1))

    return charts.chart(draw, "Cycles a request by the size of its batch", "the cost of a batch divided by its requests")


def search_chart(pair: Sequence[Json]) -> Markup:
    bound = pair[0]["bound_cycles"]
    top = bound * 1.25

    def draw(figure: Any, narrow: bool) -> None:
        ax = charts.axes(figure, "requests a second (logarithmic scale)", "p99, cycles")
        ax.set_xscale("log")
        rates = [t["rate_per_second"] for row in pair for t in row["tried"]]
        charts.log_ticks(ax.xaxis, max(rates) / min(rates) * (100 if narrow else 1))
        for row in pair:
            colour = charts.COLOURS[(SINGLE if row["max_batch"] == 1 else MANY)[0]]
            for t in row["tried"]:
                p99 = t["p99_cycles"]
                within = p99 is not None and p99 <= top
                ax.plot([t["rate_per_second"]], [p99 if within else top], marker="o" if within else "^", color=colour, clip_on=False)
        ax.axhline(bound, color=charts.COLOURS["soft"], linestyle=(0, (2, 4)), linewidth=1.5)
        ax.set_ylim(0, top)

    return charts.chart(draw, "p99 of every rate that was tried", "a mark for each rate; the dotted line is the bound")


def batching(s: Json) -> str:
    rows = {(r["network"], r["bound"], r["max_batch"]): r for r in s["rows"]}
    gains = {(r["network"], r["bound"]): r for r in s["ratios"]}
    names = ("digits", LARGE)
    pairs = []
    for name in names:
        for bound in BOUNDS:
            pair = [r for size in (1, 16) if (r := rows.get((name, bound, size)))]
            if any(r["tried"] for r in pair):
                pairs.append({"name": name, "bound": BOUNDS[bound], "chart": search_chart(pair)})
    return render(
        "batching.html.j2",
        s=s,
        cards=[(name, gains.get((name, "10x")), rows.get((name, "10x", 1)), rows.get((name, "10x", 16))) for name in names],
        costs=[(n["network"], cost_chart(n)) for n in s["networks"]],
        pairs=pairs,
        keys=charts.point_keys([(SINGLE[0], True, "single requests"), (MANY[0], True, "batches of up to 16")]),
        gains=gains,
        bounds=BOUNDS,
        searches=len(names) * len(BOUNDS) * 2,
    )


# ---- Interference ----


def draw_stretch(figure: Any, rows: Sequence[Json], narrow: bool) -> None:
    ax = figure.subplots()
    ys, means, p99s = range(len(rows)), [r["stretch_mean"] for r in rows], [r["stretch_p99"] for r in rows]
    ax.hlines(ys, means, p99s, color=charts.COLOURS["serve"], linewidth=3, alpha=0.45)
    ax.plot(means, ys, "o", color=charts.COLOURS["serve"], markerfacecolor=charts.COLOURS["bg"])
    ax.plot(p99s, ys, "o", color=charts.COLOURS["serve"])
    ax.axvline(1, color=charts.COLOURS["soft"], linestyle=(0, (2, 4)), linewidth=1.5)
    ax.set_yticks(range(len(rows)), [r["name"] for r in rows], fontsize=9 if narrow else 11)
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.xaxis.set_major_formatter(charts.number_text)
    ax.set_xlabel("latency beside training / alone")


def stretch_chart(rows: list[Json]) -> Markup:
    def draw(figure: Any, narrow: bool) -> None:
        draw_stretch(figure, rows, narrow)

    return charts.chart(draw, "Stretch by run", "mean (hollow) and p99 (filled) of each run; 1 would be no effect", 26.0 * len(rows) + 70)


def interference(s: Json) -> str:
    rows = s["rows"]
    return render(
        "interference.html.j2",
        s=s,
        chart=stretch_chart(rows) if rows else None,
        worst_mean=max(rows, key=lambda r: float(r["stretch_mean"])) if rows else None,
        worst_p99=max(rows, key=lambda r: float(r["stretch_p99"])) if rows else None,
        least=min(rows, key=lambda r: float(r["train_share_of_idle"])) if rows else None,
    )


def page_of(summary: Json) -> str:
    """The page of any experiment's summary."""
    pages = {
        "colocation": colocation,
        "batching": batching,
        "interference": interference,
        "utilisation": utilisation,
        "accuracy": accuracy,
        "speed": speed,
        "fusion": fusion,
        "memory": memory,
    }
    name = summary.get("experiment")
    if name not in pages:
        raise Failure(f'there is no page of an experiment "{name}"')
    return pages[name](summary)
