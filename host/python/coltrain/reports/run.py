# SPDX-License-Identifier: Apache-2.0
"""The page of a run of `coltrain colocate`, and of several beside each other."""

from __future__ import annotations

import math
import os
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup
from numpy.typing import NDArray

from coltrain import stats
from coltrain.reports import charts, roofline
from coltrain.reports.page import render
from coltrain.reports.text import names_of

Json = dict[str, Any]
Array = NDArray[np.float64]

POINTS = 300  # of a curve
LONG = 10000  # microseconds, from which milliseconds are easier to read
SMOOTH = 20  # steps the loss is averaged over
NAMES = 8  # versions up to which each mark has its name
FELT = 1.10  # p99 or median while training over that alone, above which requests felt the training
MEANINGS = {
    "priority": ("requests first", "requests go first, in every slot of every unit"),
    "fcfs": ("first come, first served", "first come, first served, in every unit"),
    "round-robin": ("taking turns", "the queues take turns in every unit"),
    "job": ("one job at a time", "one whole job at a time"),
}
UNITS = {
    "DMA read": "DMA read: memory to scratchpad",
    "DMA write": "DMA write: scratchpad to memory",
    "MXU": "MXU: the matrix unit",
    "VL": "VL: vector unit, loading",
    "VA": "VA: vector unit, computing",
    "VS": "VS: vector unit, storing",
}


def number(value: Any) -> float:
    """None: not known."""
    return math.nan if value is None else float(value)


def array(values: Sequence[Any]) -> Array:
    return np.array([number(v) for v in values])


def time_text(us: float) -> str:
    if not math.isfinite(us):
        return "not known"
    return f"{us:.1f} µs" if us < 1000 else f"{us / 1000:.2f} ms"


def percent_text(share: float) -> str:
    return f"{100 * share:.1f} %" if math.isfinite(share) else "not known"


def times_text(ratio: float) -> str:
    """1.57 times, 13.4 times, 2,149 times"""
    return f"{ratio:,.0f} times" if ratio >= 1000 else f"{ratio:.3g} times"


def ratio_text(ratio: float) -> str:
    if not math.isfinite(ratio):
        return "not known"
    return f"× {ratio:.3f}" if ratio < 100 else f"× {ratio:,.0f}"


@dataclass
class Row:
    """Of the comparison of policies. Times in microseconds; NaN: not known, or never."""

    name: str
    brief: str
    meaning: str
    requests: int
    answered: int
    p50: float
    p99: float
    kept: float
    length: float
    present: bool = False


class Run:
    def __init__(self, path: str, result: Json) -> None:
        self.path, self.r = path, result
        self.name = os.path.basename(path).removesuffix(".json")
        self.serve, self.alone, self.train = result["serve"], result["serve_alone"], result["train"]
        self.series = result["series"]
        self.timed = bool(result["clock_hz"])
        self.us: float = 1e6 / result["clock_hz"] if self.timed else math.nan
        self.policy = result["policy"]
        self.kept = number(result["ratio"]["train_throughput"])
        self.ratio = number(result["ratio"]["p99"])
        self.versions = result["versions"]
        self.loss = array(self.series["loss"])
        self.version = self.series["serve"]["version"]

    def us_of(self, cycles: Any) -> float:
        return number(cycles) * self.us

    def latencies(self, which: str) -> Array:
        """Microseconds, in order of arrival; infinite for a request without an answer."""
        s = self.series[which]
        took = (array(s["end"]) - array(s["scheduled"])) * self.us
        return np.where(np.isnan(took), stats.NEVER, took)

    def measured(self, which: str) -> Array:
        return self.latencies(which)[self.r["serve" if which == "serve" else "serve_alone"]["dropped"] :]

    # ---- In words ----

    @property
    def used(self) -> list[int]:
        """The versions that answered requests, in order."""
        return list(dict.fromkeys(v for v in self.version if v))

    @property
    def versions_text(self) -> str:
        n, used = len(self.versions), len(self.used)
        return f"{n} version{'' if n == 1 else 's'} of the weights, of which {used} answered requests"

    @property
    def felt(self) -> bool:
        """In the median or at p99."""
        medians = self.serve["p50_cycles"], self.alone["p50_cycles"]
        return not self.ratio <= FELT or number(medians[0]) > FELT * number(medians[1])

    def verdict(self) -> str:
        """What happened to the requests."""
        together, alone = self.us_of(self.serve["p99_cycles"]), self.us_of(self.alone["p99_cycles"])
        if not math.isfinite(alone) or not math.isfinite(together):
            return "The slowest requests were not answered, or not measured, in one of the runs, so there is no ratio."
        medians = [time_text(self.us_of(part["p50_cycles"])) for part in (self.serve, self.alone)]
        if self.felt:
            return (
                f"Requests felt the training under the policy {self.policy}: p99 was {time_text(together)}, {times_text(self.ratio)} the "
                f"{time_text(alone)} that it is alone; the median was {medians[0]} instead of {medians[1]}."
            )
        apart, share, ratio = self.largest_difference()
        where = f"{percent_text(share)} of the requests were faster" if share else "the fastest ones"
        return (
            f"Requests hardly felt the training: p99 was {time_text(together)}, × {self.ratio:.3f} of what it is alone. The two lines are "
            f"farthest apart where {where}: by {time_text(apart)}, which is × {ratio:.3f}."
        )

    def shares(self) -> Array:
        """Of requests, from none to all but one, ever denser."""
        top = 1 - 1 / max(len(self.measured("serve")), 10)
        result: Array = 1 - (1 - top) ** (np.arange(POINTS) / (POINTS - 1))
        return result

    def largest_difference(self) -> tuple[float, float, float]:
        """Between the two lines: microseconds, at which share of the requests, and their ratio there."""
        shares = self.shares()
        together, alone = self.quantiles("serve", shares), self.quantiles("alone", shares)
        apart = np.nan_to_num(np.abs(together - alone), nan=0.0)
        at = int(np.argmax(apart))
        return float(apart[at]), float(shares[at]), float(together[at] / alone[at])

    def learned(self) -> str:
        first, last = number(self.train["loss_first"]), number(self.train["loss_last"])
        how = "It fell" if last < first else "It did not fall"
        return f"{how}: from {first:.3f} in the first steps to {last:.3f} in the last."

    def better(self) -> str:
        first, last = number(self.serve["accuracy_first"]), number(self.serve["accuracy_last"])
        if not (math.isfinite(first) and math.isfinite(last)):
            return "How right the versions are on all test images was not measured."
        how = "They got better" if last > first else "They did not get better"
        return f"{how}: the first version that answered has {percent_text(first)} of all test images right, the last {percent_text(last)}."

    # ---- Policies ----

    def first(self, which: str, n: int) -> tuple[float, float, int]:
        """p50 and p99 of the first n requests, a tenth dropped, and how many were answered."""
        took = self.latencies(which)[:n]
        figures = stats.latency(took, stats.drop(n))
        p50, p99 = (math.nan if math.isinf(x) else x for x in (figures.p50, figures.p99))
        return p50, p99, int(np.count_nonzero(np.isfinite(took)))

    def rows(self) -> list[Row]:
        """Serving alone, then the policies in their order."""
        others = {o["policy"]: o for o in self.r["others"]}
        if not self.timed or not others or not self.series["alone"]["end"]:
            return []
        n = next(iter(others.values()))["requests"]
        p50, p99, answered = self.first("alone", n)
        rows = [Row("serving alone", "no training", "no training", n, answered, p50, p99, math.nan, math.nan)]
        for policy, (brief, meaning) in MEANINGS.items():
            o = others.get(policy)
            if policy == self.policy:
                p50, p99, answered = self.first("serve", n)
                rows.append(Row(policy, brief, meaning, n, answered, p50, p99, self.kept, self.us_of(self.train["cycles"]), True))
            elif o:
                kept, length = number(o["train_throughput"]), self.us_of(o["cycles"])
                times = self.us_of(o["p50_cycles"]), self.us_of(o["p99_cycles"])
                rows.append(Row(policy, brief, meaning, n, o["completed"], *times, kept, length))
        return rows

    # ---- Charts ----

    def quantiles(self, which: str, shares: Array) -> Array:
        took = np.sort(self.measured(which))
        at = np.minimum((shares * len(took)).astype(int), len(took) - 1)
        return np.where(np.isfinite(took[at]), took[at], math.nan)

    def latency_chart(self) -> Markup:
        """Both lines, and below them their difference, because where they coincide one hides the other."""
        shares = self.shares()
        top = float(shares[-1])
        together = self.quantiles("serve", shares)
        alone = self.quantiles("alone", shares) if len(self.measured("alone")) else None
        unit, us = ("ms", 1000.0) if np.nanmax([0, *together]) >= LONG else ("µs", 1.0)
        together = np.asarray(together / us, dtype=np.float64)
        alone = None if alone is None else np.asarray(alone / us, dtype=np.float64)

        def draw(figure: Any, narrow: bool) -> None:
            grid = figure.add_gridspec(2 if alone is not None else 1, 1, height_ratios=[3, 1.3] if alone is not None else [1])
            ax = charts.axes(figure, "", f"time to an answer, {unit}", sub=grid[0])
            charts.nines(ax, top)
            charts.line(ax, shares, together, "serve")
            ax.set_ylim(0, max([1.0 / us, *together[np.isfinite(together)].tolist()]) * 1.05)
            if alone is not None:
                charts.line(ax, shares, alone, "alone", linestyle=charts.ALONE_STYLE[1])
                low = charts.axes(figure, "", f"while training, less alone, {unit}", sub=grid[1])
                charts.nines(low, top)
                charts.line(low, shares, together - alone, "serve")
                low.axhline(0, color=charts.COLOURS["soft"], linewidth=1)
                ax.tick_params(labelbottom=False)
                ax = low
            ax.set_xlabel(f"{'' if narrow else 'share of '}requests that were faster (equal room for each nine)")

        return charts.chart(draw, "Time to an answer by share of requests", "while training and alone, and the difference", 430.0)

    def policies_chart(self, rows: list[Row]) -> Markup:
        return times_chart([(r.name, r.brief, r.p50, r.p99, r.present, f"{r.answered} of {r.requests} in time") for r in rows])

    def kept_chart(self, rows: list[Row]) -> Markup:
        return kept_chart([(r.name, r.kept, r.present) for r in rows[1:]])

    def loss_chart(self) -> Markup:
        n = len(self.loss)
        smooth = SMOOTH if n >= 2 * SMOOTH else 1

        def draw(figure: Any, narrow: bool) -> None:
            ax = charts.axes(figure, "training steps", "loss")
            steps = np.arange(1, n + 1)
            if smooth > 1:
                charts.line(ax, steps, self.loss, "train", linewidth=1, alpha=0.5)
                mean = np.convolve(self.loss, np.ones(smooth) / smooth, "valid")
                charts.line(ax, steps[smooth - 1 :] - (smooth - 1) / 2, mean, "train")
            else:
                charts.line(ax, steps, self.loss, "train", marker="o" if n == 1 else None)
            ax.set_xlim(0, max(2, n))
            ax.set_ylim(0, max(0.01, float(np.nanmax(self.loss))) * 1.05)
            self.mark(ax, [(v["step"], v["version"]) for v in self.versions], narrow)

        return charts.chart(draw, "Loss by training step", "marks where versions were handed to serving")

    def mark(self, ax: Any, marks: list[tuple[float, int]], narrow: bool) -> None:
        for x, version in marks:
            ax.axvline(x, color=charts.COLOURS["soft"], linestyle=(0, (2, 4)), linewidth=1)
            if len(marks) <= (NAMES // 2 if narrow else NAMES):
                ax.annotate(
                    f"v{version}",
                    (x, 1),
                    (3, 0),
                    xycoords=("data", "axes fraction"),
                    textcoords="offset points",  # beside its line
                    ha="left",
                    va="top",
                    fontsize=11,
                    color=charts.COLOURS["soft"],
                )

    @property
    def recent(self) -> int:
        """Requests that the share of right answers is taken over."""
        return int(min(500, max(20, self.serve["requests"] // 20)))

    def accuracy_chart(self) -> Markup:
        s = self.series["serve"]
        answered = np.array([v is not None and v > 0 for v in s["version"]])
        right = np.array([bool(x) for x in s["right"]], dtype=float)
        if self.timed:
            when = (array(s["end"]) - s["scheduled"][0]) * self.us / 1000
        else:
            when = np.arange(1, len(right) + 1, dtype=float)
        n = min(self.recent, len(right))
        sums = np.convolve(right, np.ones(n), "valid") / n
        known = {v["version"]: number(v["test_accuracy"]) for v in self.versions}
        changes = [i for i in range(len(right)) if answered[i] and (i == 0 or s["version"][i] != s["version"][i - 1])]
        marks = [(float(when[i]), s["version"][i]) for i in changes]

        def draw(figure: Any, narrow: bool) -> None:
            ax = charts.axes(figure, "milliseconds since the first request" if self.timed else "requests", "right answers", percent=True)
            stairs = [known.get(v, math.nan) for _, v in marks]
            xs = [x for x, _ in marks] + [float(np.nanmax(when))]
            ax.step(
                xs,
                [*stairs, stairs[-1] if stairs else math.nan],
                where="post",
                color=charts.COLOURS["alone"],
                linestyle=charts.ALONE_STYLE[1],
            )
            charts.line(ax, when[n - 1 :], sums, "serve", marker="o" if len(sums) == 1 else None)
            low = np.nanmin([*sums, *[k for k in stairs if math.isfinite(k)], 1])
            ax.set_ylim(math.floor(low * 10 - 0.3) / 10 if low > 0.05 else 0, 1.005)
            self.mark(ax, marks, narrow)

        return charts.chart(draw, "Right answers over time", "the share of right answers, and when new versions take over")

    def busy(self, table: str, unit: str, queue: str) -> float:
        return busy(self.r.get(table), unit, queue)

    def waits(self) -> list[tuple[str, str, list[str]]]:
        t = self.r["time"]
        queues = {"inference": "serving", "training": "training"}
        kinds = ("busy", "other", "operands", "semaphore", "idle")
        return [(u["unit"], queues[u["queue"]], [f"{100 * u[k] / t['cycles']:.1f} %" for k in kinds]) for u in t["units"]] if t else []


def busy(time: Json | None, unit: str, queue: str) -> float:
    """The share of a stretch of time in which a unit was at work for a queue."""
    if not time or not time["cycles"]:
        return 0.0
    return float(sum(u["busy"] for u in time["units"] if u["unit"] == unit and u["queue"] == queue) / time["cycles"])


def units_chart(time: Json, alone: Json | None) -> Markup:
    """alone: a second bar, of training by itself."""
    name_of_all = "both" if len({u["queue"] for u in time["units"]}) > 1 else ""

    def draw(figure: Any, narrow: bool) -> None:
        ax = figure.subplots()
        for i, (unit, text) in enumerate(UNITS.items()):
            serve, train = (busy(time, unit, q) for q in ("inference", "training"))
            bars = [(name_of_all, serve, train)] + ([("training alone", 0.0, busy(alone, unit, "training"))] if alone else [])
            ax.text(0, i - 0.36, text, fontsize=11, fontweight="bold", va="center")
            for k, (name, a, b) in enumerate(bars):
                y = i - 0.08 + 0.28 * k
                ax.barh(y, 1, height=0.24, color=charts.COLOURS["rule"], alpha=0.55)
                ax.barh(y, a, height=0.24, color=charts.COLOURS["serve"])
                ax.barh(y, b, left=a, height=0.24, color=charts.COLOURS["train"])
                ax.text(1.01, y, f"{100 * (a + b):.0f} %", fontsize=11, va="center", color=charts.COLOURS["soft"])
                ax.text(-0.01, y, "alone" if narrow and k else name, fontsize=10, va="center", ha="right", color=charts.COLOURS["soft"])
        ax.set_xlim(0, 1)
        ax.set_ylim(len(UNITS) - 0.4, -0.6)
        ax.set_yticks([])
        ax.spines["left"].set_visible(False)
        ax.xaxis.set_major_formatter(charts.percent_text)
        ax.set_xlabel("of the time")

    text = "for each unit a bar of serving and training" + (", and one of training alone" if alone else "")
    return charts.chart(draw, "Occupancy of the units", text, 460.0 if alone else 360.0)


def label_text(name: str, narrow: bool) -> str:
    """Left of a row, in as many lines as leave the chart its room."""
    return "\n".join(textwrap.wrap(name, 16 if narrow else 32, break_on_hyphens=False)[:3])


def times_chart(rows: list[tuple[str, str, float, float, bool, str]]) -> Markup:
    """Name, what it is, median and p99 in microseconds, whether it is the one in question, what to say if p99 never came."""
    known = [t for r in rows for t in r[2:4] if math.isfinite(t) and t > 0]
    low, high = (10 ** math.floor(math.log10(min(known))), max(known) * 1.2) if known else (1.0, 10.0)

    def draw(figure: Any, narrow: bool) -> None:
        ax = figure.subplots()
        colour = charts.COLOURS["serve"]
        for i, (name, brief, p50, p99, present, lost) in enumerate(rows):
            right = p99 if math.isfinite(p99) else high
            left = p50 if math.isfinite(p50) else right
            ax.plot([left, right], [i, i], color=colour, linewidth=4, alpha=0.45)
            if math.isfinite(p50):
                ax.plot(
                    [p50], [i], marker="o", markersize=9, markerfacecolor=charts.COLOURS["bg"], markeredgecolor=colour, markeredgewidth=2
                )
            if math.isfinite(p99):
                ax.plot([p99], [i], marker="o", markersize=9, color=colour)
                text = charts.time_text(p99)
            else:
                ax.plot([high], [i], marker=">", markersize=9, color=colour, clip_on=False)
                text = lost
            ax.annotate(
                text, (right, i), xytext=(0, 7), textcoords="offset points", ha="right", va="bottom", fontsize=11, fontweight="bold"
            )
            label = label_text(name + (" (this run)" if present and not narrow else ""), narrow)
            ax.text(
                -0.01,
                i,
                label if narrow or not brief else f"{label}\n{brief}",
                transform=ax.get_yaxis_transform(),
                ha="right",
                va="center",
                fontsize=10 if narrow else 11,
                fontweight="bold" if present else "normal",
            )
        ax.set_xscale("log")
        ax.set_xlim(low, high)
        ax.set_ylim(len(rows) - 0.5, -0.6)
        ax.set_yticks([])
        charts.log_ticks(ax.xaxis, high / low * (10 if narrow else 1), charts.time_text)
        ax.set_xlabel("time to an answer (logarithmic scale)")

    return charts.chart(
        draw, "Time to an answer, median and p99", "a line from median to p99 for each, on a logarithmic scale", 42.0 * len(rows) + 60
    )


def kept_chart(rows: list[tuple[str, float, bool]]) -> Markup:
    def draw(figure: Any, narrow: bool) -> None:
        ax = figure.subplots()
        for i, (name, kept, present) in enumerate(rows):
            ax.barh(i, 0 if math.isnan(kept) else kept, height=0.5, color=charts.COLOURS["train"])
            text = "not known" if math.isnan(kept) else f"{100 * kept:.0f} %"
            ax.annotate(text, (0 if math.isnan(kept) else kept, i), xytext=(5, 0), textcoords="offset points", va="center", fontsize=11)
            ax.text(
                -0.01,
                i,
                label_text(name, narrow),
                transform=ax.get_yaxis_transform(),
                ha="right",
                va="center",
                fontsize=10 if narrow else 11,
                fontweight="bold" if present else "normal",
            )
        ax.set_xlim(0, max([1.0] + [r[1] for r in rows if math.isfinite(r[1])]) * 1.12)
        ax.set_ylim(len(rows) - 0.5, -0.6)
        ax.set_yticks([])
        ax.xaxis.set_major_formatter(charts.percent_text)
        ax.set_xlabel("of training's speed alone")

    return charts.chart(draw, "Training speed kept", "a bar for each, in percent of training alone", 38.0 * len(rows) + 60)


# ---- Pages ----


def page(run: Run) -> str:
    r, rows = run.r, run.rows()
    times = [
        (
            name,
            time_text(run.us_of(run.alone[key])),
            time_text(run.us_of(run.serve[key])),
            ratio_text(number(run.serve[key]) / number(run.alone[key])),
        )
        for name, key in (
            ("median (50 of 100 are faster)", "p50_cycles"),
            ("p99 (99 of 100 are faster)", "p99_cycles"),
            ("longest", "max_cycles"),
        )
        if number(run.alone[key])
    ]
    loss, serves = len(run.loss) > 0, sum(v is not None for v in run.version) >= 2
    return render(
        "run.html.j2",
        run=run,
        r=r,
        rows=rows,
        times=times,
        time_text=time_text,
        percent_text=percent_text,
        ratio_text=ratio_text,
        together=run.us_of(run.serve["p99_cycles"]),
        alone=run.us_of(run.alone["p99_cycles"]),
        isfinite=math.isfinite,
        number=number,
        keys=charts.keys,
        latency=run.latency_chart() if run.timed and len(run.measured("serve")) else None,
        latency_keys=charts.keys([("serve", "-", "while training"), (*charts.ALONE_STYLE, "serving alone")]),
        policies=run.policies_chart(rows) if len(rows) >= 3 else None,
        kept=run.kept_chart(rows) if len(rows) >= 3 else None,
        loss=run.loss_chart() if loss else None,
        loss_keys=charts.keys(
            [("train", "-", f"average of {SMOOTH} steps; thin: each step" if len(run.loss) >= 2 * SMOOTH else "each step")]
        ),
        accuracy=run.accuracy_chart() if serves else None,
        accuracy_keys=charts.keys(
            [("serve", "-", "answers to the requests"), (*charts.ALONE_STYLE, "the serving version on all test images")]
        ),
        units=units_chart(r["time"], r["time_alone"]) if r["time"] else None,
        **roofline.section(r),
        unit_keys=charts.keys([("serve", "-", "serving"), ("train", "-", "training"), ("rule", "-", "neither")], box=True),
    )


def comparison_figures(run: Run) -> dict[str, str]:
    serve, alone = run.serve, run.alone
    return {
        "median, alone": time_text(run.us_of(alone["p50_cycles"])),
        "median, while training": time_text(run.us_of(serve["p50_cycles"])),
        "p99, alone": time_text(run.us_of(alone["p99_cycles"])),
        "p99, while training": time_text(run.us_of(serve["p99_cycles"])),
        "p99, while training / alone": ratio_text(run.ratio),
        "training speed, of that alone": percent_text(run.kept),
        "right answers, last version": percent_text(number(serve["accuracy_last"])),
        "requests": f"{serve['requests']:,}",
        "lost": f"{serve['lost']:,}",
        "wrong": "not checked" if serve["wrong"] is None else f"{serve['wrong']:,}",
        "loss, last steps": f"{number(run.train['loss_last']):.4f}",
    }


def comparison(runs: list[Run]) -> str:
    """What differs between them names each; the rest stands once."""
    keys = ("data", "layers", "batch", "accumulate", "epochs", "lr", "momentum", "seed", "device", "policy", "load", "coltrain")
    settings = [
        {k: str(run.r[k]) for k in keys if run.r.get(k) is not None} | {"requests": str(run.serve["requests"])} for run in runs
    ]
    names, shared, differ = names_of([run.path for run in runs], settings)
    timed = [(n, run) for n, run in zip(names, runs, strict=True) if run.timed]
    times = [(n, "", run.us_of(run.serve["p50_cycles"]), run.us_of(run.serve["p99_cycles"]), False, "never") for n, run in timed]
    columns = [comparison_figures(run) for run in runs]
    return render(
        "comparison.html.j2",
        names=names,
        rows=list(columns[0]),
        columns=columns,
        files=[(n, run.path) for n, run in zip(names, runs, strict=True)],
        shared=shared,
        differ=differ,
        times=times_chart(times) if timed else None,
        kept=kept_chart([(n, run.kept, False) for n, run in timed]) if timed else None,
        **roofline.section_of_runs(names, [run.r for run in runs]),
    )
