# SPDX-License-Identifier: Apache-2.0
"""`coltrain experiment utilisation`: how busy products keep the array, by shape, result, memory and what the other queue does.

A point is one product by `coltrain bench gemm`, on a device of its own, compared with emu: byte by byte. Beside inference it is measured
in four phases of the neighbour's work, since the queues take turns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import coltrain._abi as abi
from coltrain.cli import Failure
from coltrain.experiments.common import Experiment, Target
from coltrain.experiments.points import Json, Point
from coltrain.experiments.possible import possible

Shape = tuple[int, int, int]

BATCH = 64
CUBES: tuple[Shape, ...] = tuple((n, n, n) for n in (16, 32, 64, 128, 256, 512))
ROWS: tuple[Shape, ...] = tuple((m, 512, 512) for m in (1, 4, 16))
LAYERS: tuple[Shape, ...] = ((BATCH, 512, 784), (BATCH, 256, 512), (BATCH, 10, 256))  # of 784-512-256-10
SHAPES = CUBES + ROWS + LAYERS
RESULTS = ("hbfp8", "fp32")
BESIDE = {
    "alone": "alone",
    "training": "beside endless products in the training queue",
    "inference": "beside endless products in the inference queue",
}
BANDWIDTHS, STALLS, LATENCY, NEAR = (16, 8, 2), (0, 10, 25), 60, 20
PHASES, AGAIN = 4, 4
PEAK = 256  # multiply-accumulates a cycle
START = 30000  # cycles that could be simulated while a run starts
LEAST_CUBE = {512: 99.6, 256: 99.0, 128: 94.0, 64: 72.0}  # percent of the array
LEAST_STALLED, LEAST_NEAR, LEAST_OF_BOUND = 99.4, 80.0, 90.0


@dataclass(frozen=True)
class Product:
    shape: Shape
    result: str = "hbfp8"
    beside: str = "alone"
    bandwidth: int = 16
    stall: int = 0
    latency: int = LATENCY
    runs: int = 1
    """One after the other, of which the last counts."""

    @property
    def name(self) -> str:
        text = f"{size(self.shape)}-{self.result}-{self.beside}-{self.bandwidth}B-stall{self.stall}"
        return text + (f"-latency{self.latency}" if self.latency != LATENCY else "") + ("-again" if self.runs > 1 else "")

    @property
    def phases(self) -> int:
        return PHASES if self.beside == "inference" else 1

    @property
    def cost(self) -> float:
        """Cycles, about: beside inference half of the array is left."""
        m, n, k = self.shape
        moved = ((m + n) * k + 4 * m * n) / self.bandwidth * (1 + self.stall / 100)
        alone = max(m * n * k / PEAK, moved) + START
        return self.runs * alone * {"alone": 1.0, "training": 1.5, "inference": 2.5 * PHASES}[self.beside]

    def args(self) -> list[str]:
        options = {
            "shape": size(self.shape),
            "result": self.result,
            "beside": self.beside,
            "bandwidth": self.bandwidth,
            "stall": self.stall,
        }
        options |= {"latency": self.latency, "runs": self.runs, "phases": self.phases}
        return ["bench", "gemm", *(word for k, v in options.items() for word in (f"--{k}", str(v)))]


def size(shape: Sequence[int]) -> str:
    return "x".join(str(n) for n in shape)


def grid(quick: bool) -> list[Product]:
    results, besides, stalls = (RESULTS[:1], ("alone",), STALLS[:1]) if quick else (RESULTS, tuple(BESIDE), STALLS)
    shapes = [s for s in SHAPES if not quick or max(s) <= 256]
    all_of = [
        Product(s, result, beside, bandwidth, stall)
        for beside in besides
        for result in results
        for bandwidth in BANDWIDTHS
        for stall in stalls
        for s in shapes
    ]
    return all_of + [Product(CUBES[2], latency=NEAR, runs=runs) for runs in (1, AGAIN)]


def row_of(p: Product, figures: Json) -> Json:
    """One product: the mean over the phases, and the least."""
    some = figures["products"]
    mean = {k: sum(f[k] for f in some) / len(some) for k in ("cycles", "bound_cycles", "utilisation", "of_bound")}
    least = possible(some[0]) if p.beside == "alone" else None
    if least and p.stall == 0 and p.runs == 1 and mean["cycles"] < least:
        raise Failure(f"{p.name} took {mean['cycles']:.0f} cycles, fewer than the {least:.0f} said to be possible: look at possible()")
    policy = "ROUND_ROBIN" if p.beside == "inference" else "PRIORITY"
    return (
        {"name": p.name, "m": p.shape[0], "n": p.shape[1], "k": p.shape[2], "result": p.result, "beside": p.beside, "policy": policy}
        | {"bandwidth": p.bandwidth, "stall": p.stall, "latency": p.latency, "runs": p.runs, "phases": len(some)}
        | mean
        | {"utilisation_least": min(f["utilisation"] for f in some) if len(some) > 1 else None}
        | {"possible_cycles": least, "possible_of_bound": mean["bound_cycles"] / least if least and p.latency == LATENCY else None}
        | {"aimed": p.shape in LAYERS or (p.shape in CUBES and p.shape[0] >= BATCH)}
    )


class Utilisation(Experiment):
    name = "utilisation"
    text = "how busy products keep the array, by shape, memory and neighbour"
    more = (
        "Each product runs on a simulated device of its own, memory to memory, and is compared with emu: byte by byte. The whole of it\n"
        "takes some hours on two cores; one that was stopped goes on with the products that are missing."
    )
    example = "coltrain experiment utilisation --only '64x64x64-*-alone-*' --out build/quick"
    drawn = False

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        self.grid = grid(options.quick)

    def point(self, p: Product) -> Point:
        settings = {"coltrain": abi.VERSION, "kind": "utilisation", "options": p.args()}
        return Point(p.name, settings, cost=p.cost, args=p.args())

    def make(self) -> None:
        self.session.points([self.point(p) for p in self.named("products", self.grid, lambda p: p.name)])

    def summary(self) -> Json:
        rows = [row_of(p, f) for p in self.grid if (f := self.store.load(self.point(p)))]
        targets = [t.json() for t in targets_of(rows, len(rows) == len(self.grid) and not self.options.quick)]
        made = {"folder": self.options.out, "quick": self.options.quick}
        return {"experiment": self.name, "products": len(self.grid), "run": made, "rows": rows, "targets": targets}

    def lines(self, summary: Json) -> Iterable[str]:
        yield f"{'product':36} {'cycles':>9} {'use':>6} {'bound':>9} {'of it':>6} {'possible':>8}"
        for r in summary["rows"]:
            possible_text = "" if r["possible_of_bound"] is None else f"{100 * r['possible_of_bound']:7.1f}%"
            yield (
                f"{r['name']:36} {r['cycles']:9.0f} {100 * r['utilisation']:5.1f}% {r['bound_cycles']:9.0f} {100 * r['of_bound']:5.1f}%"
                f" {possible_text:>8}"
            )

    def table(self, summary: Json) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        columns = list(summary["rows"][0]) if summary["rows"] else []
        return columns, [[r[c] for c in columns] for r in summary["rows"]]

    def wrong(self, _: Json) -> int:
        return 0  # a product that differs fails


# ---- What is asked for ----


def targets_of(rows: Sequence[Json], whole: bool) -> list[Target]:
    """With something missing a share of the bound is only missed, never held; a single product is judged where it is there."""

    def one(text: str, limit: float, n: int, **want: Any) -> Target:
        want = {"result": "hbfp8", "beside": "alone", "bandwidth": 16, "stall": 0, "latency": LATENCY, "runs": 1} | want
        t = Target(f"{text}: at least {limit} % of the array")
        for r in rows:
            if (r["m"], r["n"], r["k"]) == (n, n, n) and all(r[k] == v for k, v in want.items()):
                t.held, t.figure = 100 * r["utilisation"] >= limit, f"{100 * r['utilisation']:.1f}"
        return t

    targets = [one(f"{n} cubed", limit, n) for n, limit in LEAST_CUBE.items()]
    targets.append(one("512 cubed, stall 25 %", LEAST_STALLED, 512, stall=25))
    targets.append(one("64 cubed, latency 20, the first job", LEAST_NEAR, 64, latency=NEAR))
    targets.append(one("64 cubed, latency 20, a later job", LEAST_NEAR, 64, latency=NEAR, runs=AGAIN))
    for result in RESULTS:
        for beside, text in BESIDE.items():
            for stalls in (False, True):
                targets.append(share_of_bound(rows, result, beside, stalls, whole, text))
    return targets


def share_of_bound(rows: Sequence[Json], result: str, beside: str, stalls: bool, whole: bool, text: str) -> Target:
    """How many products of those from 64 cubed up, and of the layers, reach 90 % of the bound."""
    large = [
        r for r in rows if r["aimed"] and r["latency"] == LATENCY and (r["result"], r["beside"], r["stall"] > 0) == (result, beside, stalls)
    ]
    memory = "memory that stalls" if stalls else "memory that does not stall"
    t = Target(f"{result.upper()} result, {text}, {memory}: each at {LEAST_OF_BOUND:.0f} % of the bound")
    if large:
        reached = sum(100 * r["of_bound"] >= LEAST_OF_BOUND for r in large)
        t.figure = f"{reached} of {len(large)}"
        t.held = False if reached < len(large) else True if whole else None
    return t
