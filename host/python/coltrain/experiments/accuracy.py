# SPDX-License-Identifier: Apache-2.0
"""`coltrain experiment accuracy`: what networks learn in HBFP of 8, 6 and 4 bits, beside FP32 by PyTorch.

A point is one training run on Fashion-MNIST (accuracy_run.py). Runs of a network with one seed begin with the same weights and see the
same images in the same order, so what differs is the arithmetic.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import coltrain._abi as abi
from coltrain import stats
from coltrain.cli import Parser
from coltrain.experiments.common import Experiment, Target
from coltrain.experiments.points import Json, Point

NETWORKS = {"mlp": "784-512-256-10", "lenet5": "LeNet-5"}
BITS = (32, 8, 6, 4)
EPOCHS = 8
MARKS = {"mlp": 88.3, "lenet5": 90.0}  # percent of Fashion-MNIST's test images
OF_FP32 = 0.5  # points that HBFP8 may lose (Drumond et al., NeurIPS 2018)
COST = {"mlp": 15.0, "lenet5": 60.0}  # seconds an epoch, about


@dataclass(frozen=True)
class Run:
    network: str
    bits: int
    seed: int
    epochs: int

    @property
    def name(self) -> str:
        return f"{self.network}-{format_of(self.bits)}-seed{self.seed}"


def format_of(bits: int) -> str:
    return "fp32" if bits == BITS[0] else f"hbfp{bits}"


def row_of(network: str, bits: int, found: Sequence[Json]) -> Json:
    """The runs of a network in one format: the mean over the seeds with its 95 % interval."""
    mean = stats.part([f["accuracy"] for f in found])
    curve = [statistics.fmean(100 * f["curve"][e]["accuracy"] for f in found) for e in range(min(len(f["curve"]) for f in found))]
    return {
        "network": network,
        "format": format_of(bits),
        "bits": bits,
        "seeds": len(found),
        "epochs": len(curve),
        "accuracy": {"mean": 100 * mean.mean, "low": 100 * mean.low, "high": 100 * mean.high},
        "curve": curve,
    }


class Accuracy(Experiment):
    name = "accuracy"
    text = "what networks learn in HBFP of 8, 6 and 4 bits, beside FP32"
    more = "FP32 is PyTorch's (Debian's python3-torch). All of it takes some hours of one core; one that was stopped goes on."
    example = "coltrain experiment accuracy --only 'mlp-*-seed1' --out build/quick"
    seeds = (3, 1)

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        epochs = options.epochs or (2 if options.quick else EPOCHS)
        self.grid = [Run(n, bits, seed, epochs) for n in NETWORKS for bits in BITS for seed in range(1, options.seeds + 1)]

    @classmethod
    def arguments(cls, parser: Parser) -> None:
        parser.add_argument("--epochs", metavar="N", type=int, default=0, help=f"passes over the training images ({EPOCHS})")

    def point(self, r: Run) -> Point:
        args = ["--network", r.network, "--bits", str(r.bits), "--seed", str(r.seed), "--epochs", str(r.epochs)]
        settings = {"coltrain": abi.VERSION, "kind": "accuracy", "options": args}
        cost = COST[r.network] * r.epochs * (0.3 if r.bits == BITS[0] else 1.0)
        return Point(r.name, settings, cost=cost, args=args, module="coltrain.experiments.accuracy_run")

    def make(self) -> None:
        self.session.points([self.point(r) for r in self.named("runs", self.grid, lambda r: r.name)])

    def summary(self) -> Json:
        rows = []
        for network in NETWORKS:
            for bits in BITS:
                runs = [self.store.load(self.point(r)) for r in self.grid if (r.network, r.bits) == (network, bits)]
                if found := [f for f in runs if f]:
                    rows.append(row_of(network, bits, found))
        made = {"folder": self.options.out, "quick": self.options.quick}
        return {"experiment": self.name, "runs": len(self.grid), "run": made, "rows": rows, "targets": [t.json() for t in targets_of(rows)]}

    def lines(self, summary: Json) -> Iterable[str]:
        yield f"{'network':16} {'format':7} {'seeds':>5} {'epochs':>6} {'test':>8} {'95 % interval':>18}"
        for r in summary["rows"]:
            a = r["accuracy"]
            yield f"{r['network']:16} {r['format']:7} {r['seeds']:5} {r['epochs']:6} {a['mean']:6.2f} % {a['low']:8.2f} to {a['high']:6.2f}"

    def table(self, summary: Json) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        columns = ("network", "format", "seeds", "epochs", "accuracy_percent", "low", "high")
        rows = [[r[c] for c in columns[:4]] + [r["accuracy"][k] for k in ("mean", "low", "high")] for r in summary["rows"]]
        return columns, rows

    def wrong(self, _: Json) -> int:
        return 0


# ---- What is asked for ----


def targets_of(rows: Sequence[Json]) -> list[Target]:
    reached = {(r["network"], r["format"]): r["accuracy"]["mean"] for r in rows}
    targets = []
    for network, text in NETWORKS.items():
        own, exact = reached.get((network, "hbfp8")), reached.get((network, "fp32"))
        mark = Target(f"{text} in HBFP8: at least {MARKS[network]} % of Fashion-MNIST's test images")
        if own is not None:
            mark.held, mark.figure = own >= MARKS[network], f"{own:.2f}"
        near = Target(f"{text} in HBFP8: at most {OF_FP32} points below FP32")
        if own is not None and exact is not None:
            near.held, near.figure = exact - own <= OF_FP32, f"{exact - own:.2f}"
        targets += [mark, near]
    return targets
