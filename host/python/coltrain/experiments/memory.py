# SPDX-License-Identifier: Apache-2.0
"""`coltrain experiment memory`: what training keeps from forward to backward, in several ways.

A point is a network, a way of keeping and a seed (memory_run.py). Bits of a number are those of all activations that the planner keeps compressed,
index and ends of pages included; of other ways those of their format.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any

import coltrain._abi as abi
from coltrain.cli import Parser, count
from coltrain.experiments.common import Experiment, Target
from coltrain.experiments.memory_ways import NETS, WAYS
from coltrain.experiments.points import Json, Point

QUICK_IMAGES, MOST_IMAGES = 64, 10**7
BATCH = 16
OVER_FP32, OVER_MASK, BATCHES, NOISE = 13.5, 1.8, 3.0, 2.0
MASK = "hbfp8-mask"
SAME = ("recompute", MASK)
"""Ways whose steps have the bits of HBFP8."""


SIZES = ("bits_per_value", "ratio_fp32", "peak_bytes", "reserved_bytes", "accuracy", "run_bytes", "pages_bytes", "dram_bytes", "cycles")
FIGURES = (*SIZES, "relative_error", "deviation_own", "deviation_others")


def mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


class Memory(Experiment):
    name = "memory"
    text = "activations kept in FP32, HBFP and compressed: bits, memory, accuracy"
    more = "Networks are trained on emu:; a last step gives memory, traffic and, on sim:, cycles."
    example = "coltrain experiment memory --quick --out build/memory"
    seeds = (3, 1)

    @classmethod
    def arguments(cls, parser: Parser) -> None:
        by_net = ", ".join(f"{name} {net.images}" for name, net in NETS.items())
        parser.add_argument("--device", metavar="URI", default="emu:", help="of the last step: one with a clock gives its cycles (emu:)")
        parser.add_argument("--images", metavar="N", type=count(1, MOST_IMAGES), help=f"that each network is trained with ({by_net})")
        parser.add_argument("--data", metavar="DATA", help="images of 32x32x3 for resnet8 and vgg, such as a folder of CIFAR-10 (drawn ones)")

    def images(self, net: str) -> int:
        return int(self.options.images or (QUICK_IMAGES if self.options.quick else NETS[net].images))

    def point(self, net: str, keep: str, seed: int) -> Point:
        data = self.options.data if self.options.data and net != "lenet5" else NETS[net].data
        args = ["--net", net, "--keep", keep, "--seed", str(seed), "--images", str(self.images(net)), "--batch", str(BATCH), "--data", data]
        args += ["--device", self.options.device]
        settings = {"coltrain": abi.VERSION, "kind": "memory", "options": args}
        return Point(f"{net}-{keep}-{seed}", settings, args=args, cost=NETS[net].cost, module="coltrain.experiments.memory_run")

    def points(self) -> list[tuple[str, str, int]]:
        return [(net, keep, seed) for net in NETS for keep in WAYS for seed in range(1, self.options.seeds + 1)]

    def make(self) -> None:
        wanted = self.named("points", self.points(), lambda p: f"{p[0]}-{p[1]}-{p[2]}")
        self.session.points([self.point(*p) for p in wanted])

    def row(self, net: str, keep: str) -> Json | None:
        found = [f for seed in range(1, self.options.seeds + 1) if (f := self.store.load(self.point(net, keep, seed)))]
        if not found:
            return None

        def of(name: str) -> float | None:
            return mean([f[name] for f in found if f.get(name) is not None])

        row: Json = {"net": net, "keep": keep, "seeds": len(found), "steps": found[0]["steps"]} | {name: of(name) for name in FIGURES}
        return row | {"accuracies": [f["accuracy"] for f in found], "losses": [f.get("loss") for f in found]}

    def summary(self) -> Json:
        rows = [r for net in NETS for keep in WAYS if (r := self.row(net, keep))]
        run = {"folder": self.options.out, "quick": self.options.quick, "device": self.options.device, "images": {net: self.images(net) for net in NETS}}
        return {"experiment": self.name, "run": run, "rows": rows, "targets": [t.json() for t in targets_of(rows)]}

    def lines(self, summary: Json) -> Iterable[str]:
        yield f"{'net':9} {'keep':11} {'bits':>6} {'/ FP32':>7} {'peak bytes':>11} {'accuracy':>9} {'bytes of a step':>16} {'cycles':>10}"
        for r in summary["rows"]:
            cells = [
                show(r["bits_per_value"], "6.2f"),
                show(r["ratio_fp32"], "7.2f"),
                show(r["peak_bytes"], "11,.0f"),
                show(r["accuracy"], "9.4f"),
                show(r["dram_bytes"], "16,.0f"),
                show(r["cycles"], "10,.0f"),
            ]
            yield f"{r['net']:9} {r['keep']:11} {' '.join(cells)}"

    def table(self, summary: Json) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        columns = ["net", "keep", "seeds", "steps", *FIGURES]
        return columns, [[r[c] for c in columns] for r in summary["rows"]]

    def wrong(self, summary: Json) -> int:
        """Rows whose losses are not those of HBFP8, though nothing is lost."""
        raw = {r["net"]: r for r in summary["rows"] if r["keep"] == "hbfp8"}
        same = [r for r in summary["rows"] if r["keep"] in SAME and r["net"] in raw]
        return sum(any(a != b for a, b in zip(r["losses"], raw[r["net"]]["losses"], strict=False)) for r in same)


def show(x: float | None, form: str) -> str:
    return format(x, form) if x is not None else "-".rjust(int(form.split(".")[0].rstrip(",")))


def target(text: str, figures: Sequence[float], least: float) -> Target:
    t = Target(text)
    if len(figures) == len(NETS):
        t.figure, t.held = f"{min(figures):.3f}", min(figures) >= least
    return t


def error_of(values: Sequence[float]) -> float:
    """The square of their mean's standard error."""
    middle, n = sum(values) / len(values), len(values)
    return sum((v - middle) ** 2 for v in values) / (n - 1) / n


def accuracy_target(by: dict[tuple[str, str], Json]) -> Target:
    """Of the differences the one that is most of what seeds make: a difference of two standard errors is seen one time in twenty without a cause."""
    t = Target(f"s = 0.1 is as accurate as HBFP8, but for {NOISE:.0f} standard errors")
    pairs = [(by[net, "hbfp8"]["accuracies"], by[net, "s=0.1"]["accuracies"]) for net in NETS if (net, "hbfp8") in by and (net, "s=0.1") in by]
    if len(pairs) < len(NETS) or any(len(x) < 2 for pair in pairs for x in pair):
        return t
    lost = [(sum(a) / len(a) - sum(b) / len(b), NOISE * math.sqrt(error_of(a) + error_of(b))) for a, b in pairs]
    worst = max(lost, key=lambda x: x[0] - x[1])
    t.figure, t.held = f"{worst[0]:.4f} of {worst[1]:.4f}", worst[0] <= worst[1]
    return t


def deviation_target(by: dict[tuple[str, str], Json], which: str, text: str) -> Target:
    t = Target(text)
    found = [r[which] for (_, keep), r in by.items() if keep == "s=0.1" and r.get(which) is not None]
    if found:
        t.figure, t.held = f"{max(found):.2f}", max(found) <= 1
    return t


def targets_of(rows: Sequence[Json]) -> list[Target]:
    by = {(r["net"], r["keep"]): r for r in rows}
    best = {net: by[net, "s=0.1"] for net in NETS if (net, "s=0.1") in by}
    ratios = [r["ratio_fp32"] for r in best.values() if r["ratio_fp32"]]
    over = [by[net, MASK]["bits_per_value"] / r["bits_per_value"] for net, r in best.items() if (net, MASK) in by and r["bits_per_value"]]
    raw = [by[net, "hbfp8"]["reserved_bytes"] / r["reserved_bytes"] for net, r in best.items() if (net, "hbfp8") in by and r["reserved_bytes"]]
    return [
        target(f"at least {OVER_FP32} times smaller than in FP32", ratios, OVER_FP32),
        target(f"at least {OVER_MASK} times smaller than HBFP8 without zeros", over, OVER_MASK),
        target(f"a step in a memory {BATCHES:.0f} times smaller than with HBFP8 kept raw", raw, BATCHES),
        accuracy_target(by),
        deviation_target(by, "deviation_own", "gradients of weights deviate by s at most by what they are made of"),
        deviation_target(by, "deviation_others", "gradients of other weights deviate by s at most"),
    ]
