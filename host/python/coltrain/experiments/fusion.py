# SPDX-License-Identifier: Apache-2.0
"""`coltrain experiment fusion`: training steps of several networks together, beside one network after the other.

A point is a network and a number of members (fusion_run.py), on a simulated core of its own. The rates that follow from them are in models
times steps for a million cycles:

  serial_host              one after the other, each job launched when the one before has ended: a run alone takes its cycles, and a launch
                           for each of its jobs
  serial_prefetched        one after the other, with the next run in the queue
  interleaved              runs of all members in the queue, in turn, each in jobs of its own
  together                 runs of all members in the same jobs, as arrays do it
  models_steps_per_mcycle  the same in both queues (ct_array_options.both), where nobody asks for answers

Two more points are of requests beside one member that trains and beside sixteen.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import coltrain._abi as abi
from coltrain.cli import Parser, count
from coltrain.experiments.common import Experiment, Target
from coltrain.experiments.fusion_nets import NETS
from coltrain.experiments.points import Json, Point

MEMBERS = (1, 2, 4, 8, 16, 32)
QUICK = (1, 2, 4)
BESIDE = (1, 16)
BESIDE_NET = "digits-adam"
LAUNCHES = (0, 1000, 5000, 20000, 36000, 100000)
"""Cycles that the host takes for a launch: from the end of a job to the beginning of the next."""
LAUNCH = 36000
"""Of a driver call by mmio: at 100 MHz (a_launch_takes_little of tb/host/test_mmio.c), most of which is the trap that stands for the bus
there: more than a driver takes. So lines() has the rates over hosts that take less, too."""
LESS = (1000, 5000)
MOST_LAUNCH = 10**9
COST = {"digits": 0.021, "digits-adam": 0.055, "lenet5": 0.35, "pointnet": 0.3, "dcgan-g": 1.5, "dcgan-d": 0.24, "resnet8": 0.6}
"""Million cycles a run, about."""
OVER_HOST, LEAST_BUSY, OVER_PREFETCHED, NEVER_BELOW, MANY, NO_LATER = 15.1, 0.9, 1.6, 0.98, 8, 1.05


def rate(cycles: float) -> float:
    """Models times steps in a million cycles, of one that takes so many."""
    return 1e6 / cycles


def serial_host(alone: Json, launch: int) -> float:
    """One after the other, by the host: nothing is in the queue while a job runs."""
    return rate(alone["first_cycles"] + launch * alone["jobs"])


def row_of(alone: Json, point: Json, both: Json | None, launch: int) -> Json | None:
    """None: the device has no clock. both: of one member, or not measured yet: None."""
    if not point["cycles_per_run"] or not alone["cycles_per_run"]:
        return None
    host, prefetched = serial_host(alone, launch), rate(alone["cycles_per_run"])
    together, apart = rate(point["cycles_per_run"]), rate(point["apart_cycles"])
    best = both or point
    most = rate(best["cycles_per_run"])
    return {
        "net": point["net"],
        "members": point["members"],
        "models_steps_per_mcycle": most,
        "serial_host": host,
        "serial_prefetched": prefetched,
        "interleaved": apart,
        "together": together,
        "identical": best["identical"] and point["identical"],
        "over_host": most / host,
        "over_prefetched": most / prefetched,
        "together_over_prefetched": together / prefetched,
        "both_queues": both is not None,
        "launch_cycles": launch,
        "by_launch": {str(n): serial_host(alone, n) for n in LAUNCHES},
        "batch": point["batch"],
        "jobs": point["jobs"],
        "in_a_job": point["beside"],
        "busiest": best["busiest"],
        "busy": best["busy"],
        "busy_together": point["busy"],
        "bytes": point["bytes"],
        "run_bytes": point["run_bytes"],
        "programs": point["programs"],
    }


class Fusion(Experiment):
    name = "fusion"
    text = "training steps of several networks together, beside one after the other"
    more = "Each member is compared, in every bit, with the same network trained alone on emu:."
    example = "coltrain experiment fusion --quick --out build/fusion"
    drawn = False

    @classmethod
    def arguments(cls, parser: Parser) -> None:
        parser.add_argument("--device", metavar="URI", default="sim:", help="what is measured: it needs a clock (sim:)")
        parser.add_argument(
            "--launch", metavar="CYCLES", type=count(0, MOST_LAUNCH), default=LAUNCH, help=f"that the host takes for a launch ({LAUNCH})"
        )

    def made_by(self, name: str, args: list[str], cost: float) -> Point:
        quick = self.options.quick
        args = [*args, "--device", self.options.device, *(["--small"] if quick else [])]
        settings = {"coltrain": abi.VERSION, "kind": "fusion", "options": args}
        return Point(name, settings, args=args, cost=cost / (20 if quick else 1), module="coltrain.experiments.fusion_run")

    def point(self, net: str, members: int) -> Point:
        return self.made_by(f"{net}-{members}", ["--net", net, "--members", str(members)], COST[net] * max(4, 3 * members) / (1.5 if NETS[net].slow else 1))

    def both(self, net: str, members: int) -> Point:
        args = ["--net", net, "--members", str(members), "--both"]
        return self.made_by(f"{net}-{members}-both", args, COST[net] * 2 * members)

    def beside(self, members: int) -> Point:
        args = ["--net", BESIDE_NET, "--members", str(members), "--beside"]
        return self.made_by(f"beside-{members}", args, 6.0)

    def members(self) -> tuple[int, ...]:
        """How many members are measured."""
        return QUICK if self.options.quick else MEMBERS

    def points(self) -> list[Point]:
        together = [self.point(net, n) for net in NETS for n in self.members()]
        both = [self.both(net, n) for net in NETS for n in self.members() if n > 1]
        return [*together, *both, *(self.beside(n) for n in BESIDE)]

    def make(self) -> None:
        wanted = self.named("points", self.points(), lambda p: p.name)
        alone = [self.point(net, 1) for net in NETS if any(p.name.startswith(f"{net}-") for p in wanted)]
        named = {p.name: p for p in [*alone, *wanted]}  # what the others are compared with comes first
        self.session.points(list(named.values()))

    def summary(self) -> Json:
        rows: list[Json] = []
        layers: list[Json] = []
        for net in NETS:
            alone = self.store.load(self.point(net, 1))
            found = [(self.store.load(self.point(net, n)), self.store.load(self.both(net, n))) for n in self.members()]
            made = [row_of(alone, p, both, self.options.launch) for p, both in found if p and alone]
            rows += [r for r in made if r]
            layers += [{"net": net, "stage": i, **layer} for i, layer in enumerate(alone["layers"])] if alone else []
        beside = [p for p in (self.store.load(self.beside(n)) for n in BESIDE) if p]
        run = {"folder": self.options.out, "quick": self.options.quick, "device": self.options.device, "launch_cycles": self.options.launch}
        facts = {"rows": rows, "layers": layers, "beside": [{k: v for k, v in p.items() if k != "settings"} for p in beside]}
        return {"experiment": self.name, "run": run, **facts, "targets": [t.json() for t in targets_of(rows, beside)]}

    def lines(self, summary: Json) -> Iterable[str]:
        yield "models x steps in a million cycles"
        rates = f"{'host':>9} {'prefetched':>10} {'in turn':>9} {'together':>9} {'both':>9} {'/ host':>7}"
        rates += "".join(f" {f'/ {n}':>7}" for n in LESS) + f" {'/ pref.':>7}"
        yield f"{'net':11} {'members':>7} {rates}  {'busiest':7} {'busy':>5}  same bits"
        for r in summary["rows"]:
            rates = f"{r['serial_host']:9.3f} {r['serial_prefetched']:10.3f} {r['interleaved']:9.3f} {r['together']:9.3f}"
            rates += f" {r['models_steps_per_mcycle']:9.3f}" if r["both_queues"] else f" {'-':>9}"
            over = f"{r['over_host']:7.2f}" + "".join(f" {r['models_steps_per_mcycle'] / r['by_launch'][str(n)]:7.2f}" for n in LESS)
            over += f" {r['over_prefetched']:7.3f}"
            same = {True: "yes", False: "NO", None: "-"}[r["identical"]]
            yield f"{r['net']:11} {r['members']:7} {rates} {over}  {r['busiest']:7} {100 * r['busy']:4.0f}%  {same}"
        for p in summary["beside"]:
            figures = f"median {p['median_cycles']:.0f} cycles, p99 {p['p99_cycles']:.0f}, at most {p['most_cycles']}"
            yield f"{p['requests']} requests beside {p['members']} of {p['net']}: {figures}"

    def table(self, summary: Json) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        columns = ["net", "members", "models_steps_per_mcycle", "serial_host", "serial_prefetched", "interleaved", "identical"]
        columns += ("over_host", "over_prefetched", "launch_cycles", "batch", "jobs", "in_a_job", "busiest", "busy", "bytes", "programs")
        return columns, [[r[c] for c in columns] for r in summary["rows"]]

    def wrong(self, summary: Json) -> int:
        return sum(r["identical"] is False for r in summary["rows"])


def target(text: str, figures: Sequence[float], least: float, whole: bool) -> Target:
    """The least of the figures counts; whole: all that it speaks of have been measured."""
    t = Target(text)
    if figures:
        t.figure = f"{min(figures):.3f}"
        t.held = min(figures) >= least if whole or min(figures) < least else None
    return t


def later(points: Sequence[Json]) -> Target:
    t = Target(f"p99 of requests beside {BESIDE[1]} members in one queue at most {NO_LATER} of that beside one")
    p99 = {p["members"]: p["p99_cycles"] for p in points}
    if set(BESIDE) <= p99.keys():
        t.figure = f"{p99[BESIDE[1]] / p99[BESIDE[0]]:.3f}"
        t.held = p99[BESIDE[1]] <= NO_LATER * p99[BESIDE[0]]
    return t


def targets_of(rows: Sequence[Json], beside: Sequence[Json]) -> list[Target]:
    small = next(iter(NETS))
    many = [r for r in rows if r["members"] >= MANY]
    whole = {(r["net"], r["members"]) for r in rows} >= {(net, n) for net in NETS for n in MEMBERS}
    most = [r["over_host"] for r in rows if r["net"] == small and r["members"] == MEMBERS[-1]]
    digits = [r["over_prefetched"] for r in many if r["net"] == small]
    text, busy, over = NETS[small].text, [r["busy"] for r in many], [r["over_prefetched"] for r in rows]
    by_host = f"{text}, {MEMBERS[-1]} members: at least {OVER_HOST} times the rate of a host that launches each job"
    works = f"from {MANY} members on the busiest unit works at least {LEAST_BUSY:.0%} of the time"
    ahead = f"{text}, from {MANY} members on: at least {OVER_PREFETCHED} times the rate of runs that are prefetched"
    return [
        target(by_host, most, OVER_HOST, True),
        target(works, busy, LEAST_BUSY, whole),
        target(ahead, digits, OVER_PREFETCHED, whole),
        target(f"never below {NEVER_BELOW} of the rate of runs that are prefetched", over, NEVER_BELOW, whole),
        later(beside),
    ]
