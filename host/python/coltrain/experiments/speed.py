# SPDX-License-Identifier: Apache-2.0
"""`coltrain experiment speed`: training steps a second of emu: and of PyTorch, both with one thread.

A point is a network (speed_run.py): the two take turns in one process, and a round has one turn of each, so that ratios are paired.
"""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from typing import Any

import coltrain._abi as abi
from coltrain import stats
from coltrain.cli import Parser
from coltrain.experiments.common import Experiment, Target, number
from coltrain.experiments.points import Json, Point
from coltrain.experiments.speed_run import ROUNDS

NETWORKS = {"lenet5": "LeNet-5", "resnet8": "ResNet-8"}
LEAST = 0.5  # of PyTorch's speed
QUICK = 5  # rounds
PYTORCHES = {"pytorch": "PyTorch's steps a second", "pytorch_openblas": "PyTorch's with convolutions by OpenBLAS"}


def row_of(network: str, device: str, point: Json) -> Json:
    """Steps a second by the median of the rounds; the ratio as the mean of the rounds' ratios with its 95 % interval."""
    seconds = point["seconds"]
    row: Json = {"network": network, "device": device, "batch": point["batch"], "rounds": len(seconds["emu"]), "pytorch": point["pytorch"]}
    for name, taken in seconds.items():
        row[f"{name}_steps"] = 1 / statistics.median(taken)
    for name in PYTORCHES:
        r = stats.ratio([other / own for own, other in zip(seconds["emu"], seconds[name], strict=True)])
        row[f"of_{name}"] = {"mean": r.mean, "low": number(r.low), "high": number(r.high)}
    return row


class Speed(Experiment):
    name = "speed"
    text = "training steps a second of emu: and of PyTorch, one thread each"
    more = "By turns in one process, in CPU time. PyTorch is Debian's python3-torch with libopenblas0-pthread."
    example = "coltrain experiment speed --out build/speed"
    drawn = False

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        self.rounds = QUICK if options.quick else ROUNDS

    @classmethod
    def arguments(cls, parser: Parser) -> None:
        parser.add_argument("--device", metavar="URI", default="emu:", help="what is measured, as in emu:path=avx2 (emu:)")

    def point(self, network: str) -> Point:
        args = ["--network", network, "--device", self.options.device, "--rounds", str(self.rounds)]
        settings = {"coltrain": abi.VERSION, "kind": "speed", "options": args}
        return Point(network, settings, args=args, module="coltrain.experiments.speed_run")

    def make(self) -> None:
        self.session.points([self.point(n) for n in self.named("networks", list(NETWORKS), str)])

    def summary(self) -> Json:
        found = {n: self.store.load(self.point(n)) for n in NETWORKS}
        rows = [row_of(n, self.options.device, p) for n, p in found.items() if p]
        made = {"folder": self.options.out, "quick": self.options.quick}
        return {"experiment": self.name, "run": made, "rows": rows, "targets": [t.json() for t in targets_of(rows)]}

    def lines(self, summary: Json) -> Iterable[str]:
        yield f"{'network':10} {'emu: steps/s':>12} {'PyTorch':>9} {'by OpenBLAS':>11} {'emu: / PyTorch':>15} {'/ by OpenBLAS':>14}"
        for r in summary["rows"]:
            speeds = f"{r['emu_steps']:12.1f} {r['pytorch_steps']:9.1f} {r['pytorch_openblas_steps']:11.1f}"
            yield f"{r['network']:10} {speeds} {r['of_pytorch']['mean']:15.3f} {r['of_pytorch_openblas']['mean']:14.3f}"

    def table(self, summary: Json) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        columns = ("network", "device", "batch", "rounds", "emu_steps", "pytorch_steps", "pytorch_openblas_steps")
        ratios = [(f"of_{name}", k) for name in PYTORCHES for k in ("mean", "low", "high")]
        rows = [[r[c] for c in columns] + [r[name][k] for name, k in ratios] for r in summary["rows"]]
        return [*columns, *(f"{name}_{k}" for name, k in ratios)], rows

    def wrong(self, _: Json) -> int:
        return 0


def targets_of(rows: Sequence[Json]) -> list[Target]:
    """The unfavourable end of the interval counts."""
    targets = []
    for network, text in NETWORKS.items():
        for name, whose in PYTORCHES.items():
            t = Target(f"{text} at batch 64: emu: takes at least {LEAST} of {whose}")
            least = [r[f"of_{name}"]["low"] for r in rows if r["network"] == network]
            if least and least[0] is not None:
                t.held, t.figure = least[0] >= LEAST, f"{least[0]:.3f}"
            targets.append(t)
    return targets
