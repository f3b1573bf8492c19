# SPDX-License-Identifier: Apache-2.0
"""`coltrain experiment accuracy`: what networks learn in HBFP of 8, 6 and 4 bits, beside FP32 by PyTorch.

A point is one training run (accuracy_run.py): perceptron and LeNet-5 on Fashion-MNIST, ResNet-8 on CIFAR-10. Runs of a network with one
seed begin with the same weights and see the same images in the same order, so what differs is the arithmetic.
"""

from __future__ import annotations

import statistics
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import coltrain._abi as abi
from coltrain import stats
from coltrain.cli import Failure, Parser
from coltrain.experiments.common import Experiment, Target, number
from coltrain.experiments.points import Json, Point
from coltrain.experiments.trainers import FP32, RECIPES, Run, format_of

FASHION, CIFAR = "Fashion-MNIST", "CIFAR-10"
OF_FP32 = 0.5  # points that HBFP8 may lose (Drumond et al., NeurIPS 2018)
QUICK = 2  # epochs
CIFAR_FOLDER = "build/cifar10"


class Network(NamedTuple):
    text: str
    data: str
    bits: tuple[int, ...]
    seeds: int
    """At most."""
    mark: float
    """Percent of the test images."""
    seconds: tuple[float, float]
    """An epoch on the device and by PyTorch, about."""


NETWORKS = {
    "mlp": Network("784-512-256-10", FASHION, (FP32, 8, 6, 4), 20, 88.3, (6.0, 3.0)),
    "lenet5": Network("LeNet-5", FASHION, (FP32, 8, 6, 4), 20, 90.0, (29.0, 7.0)),
    "resnet8": Network("ResNet-8", CIFAR, (FP32, 8, 4), 1, 85.0, (130.0, 112.0)),
}


def row_of(network: str, bits: int, found: Sequence[Json]) -> Json:
    """The runs of a network in one format: the mean over the seeds with its 95 % interval, which one seed has none of."""
    mean = stats.part([f["accuracy"] for f in found])
    epochs = min(len(f["curve"]) for f in found)
    return {
        "network": network,
        "format": format_of(bits),
        "bits": bits,
        "seeds": len(found),
        "epochs": epochs,
        "accuracy": {"mean": 100 * mean.mean, "low": number(100 * mean.low), "high": number(100 * mean.high)},
        "curve": [statistics.fmean(100 * f["curve"][e]["accuracy"] for f in found) for e in range(epochs)],
        "loss": [statistics.fmean(f["curve"][e]["loss"] for f in found) for e in range(epochs)],
        "cpu_seconds": sum(f["cpu_s"] for f in found),
    }


def grid_of(seeds: int, epochs: int) -> list[Run]:
    return [
        Run(name, bits, seed, epochs or RECIPES[name].epochs)
        for name, n in NETWORKS.items()
        for bits in n.bits
        for seed in range(1, min(seeds, n.seeds) + 1)
    ]


class Accuracy(Experiment):
    name = "accuracy"
    text = "what networks learn in HBFP of 8, 6 and 4 bits, beside FP32"
    more = (
        "FP32 is PyTorch's (Debian's python3-torch). All of it takes some hours of one core; a run that was stopped goes on where it was.\n"
        "ResNet-8 needs CIFAR-10, which scripts/cifar10 rebuilds, and is left out without."
    )
    example = "coltrain experiment accuracy --only 'mlp-*-seed1' --out build/quick"
    seeds = (3, 1)

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        self.grid = grid_of(options.seeds, options.epochs or (QUICK if options.quick else 0))

    @classmethod
    def arguments(cls, parser: Parser) -> None:
        epochs = ", ".join(f"{NETWORKS[name].text}: {r.epochs}" for name, r in RECIPES.items())
        parser.add_argument("--epochs", metavar="N", type=int, default=0, help=f"passes over the training images ({epochs})")
        parser.add_argument("--cifar10", metavar="DIR", default=CIFAR_FOLDER, help=f"binary batches of CIFAR-10 ({CIFAR_FOLDER})")

    def state(self, point: Point) -> Path:
        """Where a run keeps how far it is."""
        return self.store.path(point, ".state.npz")

    def point(self, r: Run) -> Point:
        args = ["--network", r.network, "--bits", str(r.bits), "--seed", str(r.seed), "--epochs", str(r.epochs)]
        recipe = RECIPES[r.network]._asdict() | {"epochs": r.epochs}
        settings = {"coltrain": abi.VERSION, "kind": "accuracy", "options": args, "recipe": recipe}
        device, exact = NETWORKS[r.network].seconds
        point = Point(r.name, settings, cost=r.epochs * (exact if r.bits == FP32 else device), module="coltrain.experiments.accuracy_run")
        data = self.options.cifar10 if NETWORKS[r.network].data == CIFAR else "fashion-mnist"
        point.args = [*args, "--data", data, "--state", str(self.state(point))]
        return point

    def possible(self, runs: Sequence[Run]) -> list[Run]:
        """Those whose images are there."""
        if Path(self.options.cifar10).is_dir():
            return list(runs)
        found = [r for r in runs if NETWORKS[r.network].data != CIFAR]
        missing = f"there is no folder {self.options.cifar10}: scripts/cifar10 {self.options.cifar10} rebuilds {CIFAR}"
        if not found:
            raise Failure(missing)
        if len(found) < len(runs):
            print(f"coltrain: {len(runs) - len(found)} runs are left out; {missing}", file=sys.stderr)
        return found

    def make(self) -> None:
        points = [self.point(r) for r in self.possible(self.named("runs", self.grid, lambda r: r.name))]
        self.session.points(points)
        for p in points:
            if self.store.load(p):
                self.state(p).unlink(missing_ok=True)

    def summary(self) -> Json:
        rows = []
        for network, n in NETWORKS.items():
            for bits in n.bits:
                runs = [self.store.load(self.point(r)) for r in self.grid if (r.network, r.bits) == (network, bits)]
                if found := [f for f in runs if f]:
                    rows.append(row_of(network, bits, found))
        made = {"folder": self.options.out, "quick": self.options.quick}
        return {"experiment": self.name, "runs": len(self.grid), "run": made, "rows": rows, "targets": [t.json() for t in targets_of(rows)]}

    def lines(self, summary: Json) -> Iterable[str]:
        yield f"{'network':16} {'format':7} {'seeds':>5} {'epochs':>6} {'test':>8} {'95 % interval':>18}"
        for r in summary["rows"]:
            a = r["accuracy"]
            interval = "" if a["low"] is None else f" {a['low']:8.2f} to {a['high']:6.2f}"
            yield f"{r['network']:16} {r['format']:7} {r['seeds']:5} {r['epochs']:6} {a['mean']:6.2f} %{interval}"

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
    for network, n in NETWORKS.items():
        own, exact = reached.get((network, "hbfp8")), reached.get((network, "fp32"))
        mark = Target(f"{n.text} in HBFP8: at least {n.mark} % of {n.data}'s test images")
        if own is not None:
            mark.held, mark.figure = own >= n.mark, f"{own:.2f}"
        near = Target(f"{n.text} in HBFP8: at most {OF_FP32} points below FP32")
        if own is not None and exact is not None:
            near.held, near.figure = exact - own <= OF_FP32, f"{exact - own:.2f}"
        targets += [mark, near]
    return targets
