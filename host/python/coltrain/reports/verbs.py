# SPDX-License-Identifier: Apache-2.0
"""Pages of runs of the verbs that do one thing: train, serve-bench, matmul, bench gemm, counters; and of several beside each other."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from markupsafe import Markup

from coltrain.reports import charts, roofline
from coltrain.reports.page import render
from coltrain.reports.run import number, percent_text, time_text, units_chart
from coltrain.reports.text import names_of

Json = dict[str, Any]
Figures = list[tuple[str, str]]

WORDS = {
    "loss, last steps": "how far the network is from the right answers; less is better",
    "right answers on the test images": "by the weights at the end",
    "of the array": "of what the array could have multiplied in these cycles",
    "of the array, at best": "of what the array could have multiplied in these cycles",
    "p99": "the time within which 99 of 100 measured requests were answered, from the moment they were due",
    "requests a second, in time": "answered, and before their deadline where they had one",
    "wrong answers": "each was compared, in every bit, with that of the exact model in C",
    "cycles": "from the doorbell to the completion",
}
"""What figures mean that stand first."""


def cycles_text(r: Json, cycles: Any) -> str:
    """With the time that they are, where the clock is known."""
    if cycles is None:
        return "not known"
    text = f"{cycles:,} cycles"
    return f"{text}, {time_text(1e6 * cycles / r['clock_hz'])}" if r.get("clock_hz") else text


def count(value: Any) -> str:
    return "not known" if value is None else charts.number_text(value)


def share(part: float, whole: float) -> str:
    return percent_text(part / whole) if whole else "not known"


# ---- Figures of each ----


def train_figures(r: Json) -> Figures:
    rate = number(r["macs_per_cycle"])
    figures = [
        ("steps", f"{r['steps']:,}"),
        ("loss, first steps", f"{number(r['loss_first']):.4f}"),
        ("loss, last steps", f"{number(r['loss_last']):.4f}"),
        ("right answers on the test images", percent_text(number(r["test_accuracy"]))),
        ("cycles of the steps", count(r["cycles"])),
        ("MAC a cycle", count(r["macs_per_cycle"])),
    ]
    if r.get("array") and r["macs_per_cycle"] is not None:
        figures.append(("of the array", share(rate, r["array"][0] * r["array"][1])))
    return figures


def serve_figures(r: Json) -> Figures:
    s = r["serve"]
    all_late = s["deadline_misses"] is not None and s["deadline_misses"] == s["measured"]
    good = "0" if all_late else count(s["goodput_per_second"])
    figures = [
        ("requests answered", f"{s['completed']:,} of {s['requests']:,}"),
        ("wrong answers", f"{s['wrong']:,}"),
        ("median", cycles_text(r, s["p50_cycles"])),
        ("p99", cycles_text(r, s["p99_cycles"])),
        ("longest", cycles_text(r, s["max_cycles"])),
        ("requests a second, in time", good),
        ("requests in a batch, mean", f"{s['mean_batch']:.2f}"),
    ]
    if s["deadline_misses"] is not None:
        figures.append(("later than their deadline", f"{s['deadline_misses']:,} of {s['measured']:,}"))
    return figures


def matmul_figures(r: Json) -> Figures:
    used = percent_text(number(r["utilisation"]))
    return [("shape", f"{r['m']} x {r['n']} x {r['k']}"), ("cycles", count(r["cycles"])), ("of the array", used)]


def gemm_figures(r: Json) -> Figures:
    best = max(r["products"], key=lambda p: float(p["utilisation"]), default=None)
    figures = [("products", str(len(r["products"])))]
    if best:
        figures.append(("of the array, at best", percent_text(best["utilisation"])))
        figures.append(("best product", f"{best['m']} x {best['n']} x {best['k']}, {best['result']}"))
    return figures


def counters_figures(r: Json) -> Figures:
    return [("cycles", count(r["cycles"]))] + [
        (f"{name}, {queue}", count(r[queue].get(name)))
        for name in ("MXU_ROWS", "LD_BEATS", "ST_BEATS", "CMDS")
        for queue in ("inference", "training")
    ]


# ---- Charts of some ----


def train_charts(r: Json) -> list[tuple[str, Markup]]:
    epochs = r["by_epoch"]
    if not epochs:
        return []
    xs = [e["epoch"] for e in epochs]

    def draw(figure: Any, narrow: bool) -> None:
        low, high = figure.add_gridspec(1, 2) if not narrow else figure.add_gridspec(2, 1)
        ax = charts.axes(figure, "epochs" if not narrow else "", "mean loss", sub=low)
        charts.line(ax, xs, [e["loss"] for e in epochs], "train", marker="o")
        ax.set_ylim(0, None)
        right = charts.axes(figure, "epochs", "right on the test images", percent=True, sub=high)
        charts.line(right, xs, [e["test_accuracy"] for e in epochs], "train", marker="o")
        for a in (ax, right):
            a.set_xlim(xs[0] - 0.5, xs[-1] + 0.5)
            a.xaxis.get_major_locator().set_params(integer=True)

    return [("Does it learn?", charts.chart(draw, "Loss and right answers by epoch", "a point for each epoch"))]


def serve_charts(r: Json) -> list[tuple[str, Markup]]:
    batches = r["serve"]["batches"]
    total = sum(batches)
    if not total:
        return []

    def draw(figure: Any, narrow: bool) -> None:
        ax = charts.axes(figure, "requests in a batch", "of the batches", percent=True)
        ax.bar(range(1, len(batches) + 1), np.array(batches) / total, color=charts.COLOURS["serve"], width=0.76)
        ax.set_xticks(range(1, len(batches) + 1, 3 if narrow else 1))
        ax.set_xlim(0.4, len(batches) + 0.6)

    return [("How large were the batches?", charts.chart(draw, "Batches by size", "the share of batches of each size", 260.0))]


def no_charts(_: Json) -> list[tuple[str, Markup]]:
    return []


# ---- Kinds ----


@dataclass(frozen=True)
class Kind:
    """A verb whose JSON has a page."""

    verb: str
    has: tuple[str, ...]
    """keys by which it is known"""
    title: str
    lead: str
    cards: tuple[str, ...]
    """figures that stand first, by name"""
    settings: tuple[str, ...]
    figures: Callable[[Json], Figures]
    charts: Callable[[Json], list[tuple[str, Markup]]] = no_charts


LEARN = ("device", "data", "layers", "batch", "accumulate", "epochs", "lr", "momentum", "weight_decay", "seed")
KINDS = (
    Kind(
        "train",
        ("by_epoch", "loss_last"),
        "Training",
        "A network was trained on the device. Cycles are those of the training steps, without the tests between epochs.",
        ("loss, last steps", "right answers on the test images", "of the array"),
        LEARN,
        train_figures,
        train_charts,
    ),
    Kind(
        "serve-bench",
        ("serve", "batching", "capacity"),
        "Serving in batches",
        "Requests arrived by themselves, at a part of what the device can serve, and were answered in batches.",
        ("p99", "requests a second, in time", "wrong answers"),
        ("device", "models", "arrivals", "seed", "load", "batching", "max_batch", "max_wait_cycles", "deadline_cycles"),
        serve_figures,
        serve_charts,
    ),
    Kind(
        "matmul",
        ("m", "n", "k", "utilisation"),
        "A product",
        "A product of two matrices: operands and result in device memory, from the doorbell to the completion.",
        ("shape", "cycles", "of the array"),
        ("device", "queue"),
        matmul_figures,
    ),
    Kind(
        "bench gemm",
        ("products", "core"),
        "How busy products keep the array",
        "Products of several shapes: operands and result in device memory, from the doorbell to the completion.",
        ("products", "of the array, at best", "best product"),
        ("core", "runs", "seed"),
        gemm_figures,
    ),
    Kind(
        "counters",
        ("inference", "training", "cycles", "device"),
        "What a product on each queue counts",
        "A product of 64 x 64 x 64 on each queue, at the same time.",
        ("cycles",),
        ("device", "coltrain"),
        counters_figures,
    ),
)


def kind_of(r: Json) -> Kind | None:
    return next((k for k in KINDS if all(key in r for key in k.has)), None)


def setting_text(value: Any) -> str:
    if isinstance(value, list):
        return "; ".join(setting_text(v) for v in value)
    if isinstance(value, dict):
        return ", ".join(str(v) for v in value.values() if isinstance(v, str))
    return f"{value:g}" if isinstance(value, float) else str(value)


def settings_of(kind: Kind, r: Json) -> list[tuple[str, str]]:
    return [(name.replace("_", " "), setting_text(r[name])) for name in kind.settings if r.get(name) is not None]


# ---- Pages ----


def page(r: Json) -> str:
    kind = kind_of(r)
    assert kind
    figures = dict(kind.figures(r))
    time = r.get("time")
    return render(
        "verb.html.j2",
        kind=kind,
        stopped=r.get("stopped"),
        cards=[(name, figures[name], WORDS.get(name, "")) for name in kind.cards if name in figures],
        figures=figures.items(),
        charts=kind.charts(r),
        units=units_chart(time, None) if time else None,
        unit_keys=charts.keys([("serve", "-", "inference"), ("train", "-", "training"), ("rule", "-", "neither")], box=True),
        settings=settings_of(kind, r),
        **roofline.section(r),
    )


def comparison(paths: Sequence[str], results: Sequence[Json]) -> str:
    """Several runs of one verb."""
    kind = kind_of(results[0])
    assert kind
    names, shared, differ = names_of(paths, [dict(settings_of(kind, r)) for r in results])
    columns = [dict(kind.figures(r)) for r in results]
    rows = list(dict.fromkeys(name for c in columns for name in c))
    return render(
        "verbs.html.j2",
        kind=kind,
        runs=list(zip(names, columns, strict=True)),
        files=list(zip(names, paths, strict=True)),
        rows=rows,
        shared=shared,
        differ=differ,
        **roofline.section_of_runs(names, results),
    )
