# SPDX-License-Identifier: Apache-2.0
"""`coltrain experiment memory`: what training keeps from forward to backward, in several ways.

A point is a network, a way of keeping and a seed (memory_run.py). Bits of a number are those of all activations that the planner keeps compressed,
index and ends of pages included; of other ways those of their format.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from typing import Any

import coltrain._abi as abi
from coltrain.cli import Parser, count
from coltrain.experiments.common import Experiment
from coltrain.experiments import memory_narrow
from coltrain.experiments.memory_beside import BESIDE, DEVICE, REQUESTS
from coltrain.experiments.memory_inputs import inputs_row
from coltrain.experiments.memory_targets import MASK, interval, targets_of
from coltrain.experiments.memory_ways import NETS, WAYS
from coltrain.experiments.points import Json, Point

IMAGES, QUICK_IMAGES, MOST_IMAGES = 4000, 64, 10**7
BATCH = 16
SAME = ("recompute", MASK)
"""Ways whose steps have the bits of HBFP8."""
FOLLOWED = ("s=0.01", "s=0.1")
"""Ways whose gradients are measured at several steps."""

SIZES = ("bits_per_value", "ratio_fp32", "peak_bytes", "reserved_bytes", "accuracy", "run_bytes", "pages_bytes", "dram_bytes", "cycles")
INTERVALS = ("accuracy_low", "accuracy_high", "lost", "lost_low", "lost_high")
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
        parser.add_argument("--device", metavar="URI", default="emu:", help="of the last step: one with a clock gives its cycles (emu:)")
        parser.add_argument("--images", metavar="N", type=count(1, MOST_IMAGES), help=f"that each network is trained with ({IMAGES})")
        parser.add_argument("--data", metavar="DATA", help="images of 32x32x3 for resnet8 and vgg, such as a folder of CIFAR-10 (drawn ones)")

    def images(self) -> int:
        return int(self.options.images or (QUICK_IMAGES if self.options.quick else IMAGES))

    def training(self, net: str, keep: str, seed: int) -> list[str]:
        data = self.options.data if self.options.data and net != "lenet5" else NETS[net].data
        return ["--net", net, "--keep", keep, "--seed", str(seed), "--images", str(self.images()), "--batch", str(BATCH), "--data", data]

    def point(self, net: str, keep: str, seed: int) -> Point:
        args = [*self.training(net, keep, seed), "--device", self.options.device]
        settings = {"coltrain": abi.VERSION, "kind": "memory", "options": args}
        return Point(f"{net}-{keep}-{seed}", settings, args=args, cost=NETS[net].cost, module="coltrain.experiments.memory_run")

    def gradients(self, net: str, keep: str, seed: int) -> Point:
        """Of what bounds make of gradients."""
        args = ["--gradients", *self.training(net, keep, seed)]
        settings = {"coltrain": abi.VERSION, "kind": "memory gradients", "options": args}
        return Point(f"gradients-{net}-{keep}-{seed}", settings, args=args, cost=NETS[net].cost, module="coltrain.experiments.memory_run")

    def beside(self, net: str, keep: str) -> Point:
        """Of requests, on a simulated core of its own."""
        batch, requests = BESIDE[net][0], REQUESTS // 20 if self.options.quick else REQUESTS
        args = ["--beside", "--net", net, "--keep", keep, "--batch", str(batch), "--images", str(20 * batch), "--data", NETS[net].data]
        args += ["--requests", str(requests), "--device", DEVICE]
        settings = {"coltrain": abi.VERSION, "kind": "memory beside", "options": args}
        return Point(f"beside-{net}-{keep}", settings, args=args, cost=10.0, module="coltrain.experiments.memory_run")

    def narrow(self, net: str, keep: str, bandwidth: int) -> Point:
        """Cycles of a step, on a simulated core with such a memory."""
        args = memory_narrow.arguments(net, keep, bandwidth)
        settings = {"coltrain": abi.VERSION, "kind": "memory narrow", "options": args}
        return Point(f"bandwidth{bandwidth}-{net}-{keep}", settings, args=args, cost=3.0, module="coltrain.experiments.memory_run")

    def points(self) -> list[tuple[str, str, int]]:
        return [(net, keep, seed) for net in NETS for keep in WAYS for seed in range(1, self.options.seeds + 1)]

    def make(self) -> None:
        every = [self.point(*p) for p in self.points()] + [self.beside(net, keep) for net, keep in besides()]
        every += [self.narrow(*n) for n in memory_narrow.narrows()]
        every += [self.gradients(*p) for p in self.points() if p[1] in FOLLOWED]
        self.session.points(self.named("points", every, lambda p: p.name))

    def found(self, net: str, keep: str) -> dict[int, Json]:
        """Its points that are there, by seed."""
        return {seed: f for seed in range(1, self.options.seeds + 1) if (f := self.store.load(self.point(net, keep, seed)))}

    def lost(self, net: str, keep: str) -> list[float]:
        """What fewer test images it answers than FP32 does, seed by seed."""
        plain = self.found(net, "fp32")
        return [plain[seed]["accuracy"] - f["accuracy"] for seed, f in self.found(net, keep).items() if seed in plain]

    def row(self, net: str, keep: str) -> Json | None:
        found = list(self.found(net, keep).values())
        if not found:
            return None

        def of(name: str) -> float | None:
            return mean([f[name] for f in found if f.get(name) is not None])

        row: Json = {"net": net, "keep": keep, "seeds": len(found), "steps": found[0]["steps"]} | {name: of(name) for name in FIGURES}
        accuracies = [f["accuracy"] for f in found]
        for name, values in (("accuracy", accuracies), ("lost", self.lost(net, keep))):
            row |= zip((name, f"{name}_low", f"{name}_high"), interval(values), strict=True)
        return row | {"accuracies": accuracies, "losses": [f.get("loss") for f in found]}

    def summary(self) -> Json:
        rows = [r for net in NETS for keep in WAYS if (r := self.row(net, keep))]
        run = {"folder": self.options.out, "quick": self.options.quick, "device": self.options.device, "images": self.images()}
        beside = [beside_row(f) for net, keep in besides() if (f := self.store.load(self.beside(net, keep)))]
        narrow = memory_narrow.rows_of([(*n, f) for n in memory_narrow.narrows() if (f := self.store.load(self.narrow(*n)))])
        inputs = [r for net in NETS for keep in WAYS if (r := inputs_row(net, keep, list(self.found(net, keep).values())))]
        targets = [t.json() for t in targets_of(rows, beside, narrow, inputs)]
        return {"experiment": self.name, "run": run, "rows": rows, "beside": beside, "narrow": narrow, "inputs": inputs, "gradients": self.gradient_rows(), "targets": targets}

    def gradient_rows(self) -> list[Json]:
        points = [p for p in self.points() if p[1] in FOLLOWED]
        found = [(p, self.store.load(self.gradients(*p))) for p in points]
        return [{"net": net, "keep": keep, "seed": seed, **row} for (net, keep, seed), f in found if f for row in f["gradients"]]

    def lines(self, summary: Json) -> Iterable[str]:
        yield f"{'net':9} {'keep':11} {'bits':>6} {'/ FP32':>7} {'peak bytes':>11} {'accuracy':>9} {'seeds':>5} {'lost':>8} {'bytes of a step':>16} {'cycles':>10}"
        for r in summary["rows"]:
            cells = [
                show(r["bits_per_value"], "6.2f"),
                show(r["ratio_fp32"], "7.2f"),
                show(r["peak_bytes"], "11,.0f"),
                show(r["accuracy"], "9.4f"),
                f"{r['seeds']:5}",
                show(r["lost"], "8.4f"),
                show(r["dram_bytes"], "16,.0f"),
                show(r["cycles"], "10,.0f"),
            ]
            yield f"{r['net']:9} {r['keep']:11} {' '.join(cells)}"

        for p in summary["beside"]:
            figures = f"p99 {p['p99_cycles']:.0f} cycles, median {p['median_cycles']:.0f}; with nothing beside {p['alone_p99_cycles']:.0f} and {p['alone_median_cycles']:.0f}"
            yield f"{p['requests']} requests beside steps of {p['net']}, {p['keep']}: {figures}"
        yield from memory_narrow.lines(summary["narrow"])
        for i in summary["inputs"]:
            yield f"inputs of convolutions of {i['net']}, {i['keep']}: {i['bits_per_input']:.2f} bits, {i['bits_without_masks']:.2f} without masks"
        yield from gradient_lines(summary["gradients"])

    def table(self, summary: Json) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        columns = ["net", "keep", "seeds", "steps", *FIGURES, *INTERVALS]
        return columns, [[r[c] for c in columns] for r in summary["rows"]]

    def wrong(self, summary: Json) -> int:
        """Rows whose losses are not those of HBFP8, though nothing is lost."""
        raw = {r["net"]: r for r in summary["rows"] if r["keep"] == "hbfp8"}
        same = [r for r in summary["rows"] if r["keep"] in SAME and r["net"] in raw]
        return sum(any(a != b for a, b in zip(r["losses"], raw[r["net"]]["losses"], strict=False)) for r in same)


def gradient_lines(rows: Sequence[Json]) -> Iterable[str]:
    """The usual deviation of a network and a way, the least and the most."""
    found: dict[tuple[str, str], list[float]] = {}
    for r in rows:
        if r["over_predicted"] is not None:
            found.setdefault((r["net"], r["keep"]), []).append(r["over_predicted"])
    for (net, keep), x in found.items():
        yield f"gradients of {net}, {keep}: deviation over what is predicted {statistics.median(x):.2f} ({min(x):.2f} to {max(x):.2f}), of {len(x)}"


def besides() -> list[tuple[str, str]]:
    """Networks and ways beside whose steps there are requests."""
    return [(net, keep) for net, (_, ways) in BESIDE.items() for keep in ways]


def beside_row(p: Json) -> Json:
    return {name: x for name, x in p.items() if name not in ("settings", "point")}


def show(x: float | None, form: str) -> str:
    return format(x, form) if x is not None else "-".rjust(int(form.split(".")[0].rstrip(",")))
