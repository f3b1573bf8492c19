# SPDX-License-Identifier: Apache-2.0
"""`coltrain experiment colocation`: what requests and training cost each other, by load, policy, memory and arrivals."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from coltrain import stats
from coltrain.cli import Failure, Parser
from coltrain.experiments.cells import Cell, Cells, targets_of
from coltrain.experiments.common import (
    BATCH,
    DIGITS,
    LARGE,
    SERVERS,
    TWO,
    Experiment,
    Server,
    base_settings,
    dropped,
    number,
    scaled,
)
from coltrain.experiments.points import Json, Point

TRAINED = LARGE.networks[0]
TRAIN_BATCH = 64
POLICIES = ("PRIORITY", "FCFS", "ROUND_ROBIN", "JOB", "SLACK")
ARRIVALS = ("poisson", "constant", "bursty", "trace")
LOADS, QUICK_LOADS = (200, 500, 800, 900), (500, 800)
CAPACITY = 2000  # requests with a full queue
TRAINING_SAMPLES = 1900  # of training alone, each after 20,000 cycles: longer than the longest of a core point
PITCH = 20000
BOUND = 10  # deadline, in services of a request alone
MARGIN = 500  # cycles a batch goes early for the batcher and what training may add
ON_PERCENT, PERIOD = 50, 20  # of bursts; services
TRACE = Path(__file__).resolve().parents[4] / "host/data/traces/azure-conversation.csv"


@dataclass(frozen=True)
class Setting:
    """Where a point stands. kind: capacity, training alone, serving alone, together."""

    kind: str
    server: Server | None = None
    policy: str = "PRIORITY"
    permille: int = 0
    arrivals: str = "poisson"
    memory: str = ""
    seed: int = 1
    core: bool = False

    @property
    def load(self) -> float:
        return self.permille / 1000

    @property
    def loaded(self) -> bool:
        return self.kind in ("serving alone", "together")

    def order(self) -> tuple[Any, ...]:
        place = SERVERS.index(self.server) if self.server else -1
        return (not self.core, place, ARRIVALS.index(self.arrivals), self.memory, POLICIES.index(self.policy), self.permille)

    def name(self) -> str:
        """784-512-256-10-round_robin-load50-bursty-bandwidth_8-seed3"""
        what = {"capacity": "capacity", "training alone": "training", "serving alone": "alone"}.get(self.kind, self.policy)
        parts = [self.server.name] if self.server else []
        parts.append(what)
        if self.loaded:
            parts += [f"load{self.permille // 10}", self.arrivals]
        if self.memory:
            parts.append(self.memory)
        if self.loaded:
            parts.append(f"seed{self.seed}")
        return "-".join(parts).lower().replace("=", "_")

    def alone(self) -> Setting:
        """The same arrivals without training."""
        return replace(self, kind="serving alone", policy="PRIORITY")

    def needs(self, other: Setting) -> bool:
        """Whether nothing can be said about this without the other: its capacity, training alone, the same alone."""
        if self.memory != other.memory:
            return False
        if other.kind == "training alone":
            return self.kind == "together"
        if self.server != other.server or other.kind == "together":
            return False
        same = (self.permille, self.arrivals, self.seed) == (other.permille, other.arrivals, other.seed)
        return other.kind == "capacity" or (same and self.kind == "together")


def settings_of_the_grid(quick: bool, whole: bool, seeds: int) -> list[Setting]:
    """What others refer to first; then what the targets are about; then the other policies."""
    found: dict[str, Setting] = {}

    def add(s: Setting) -> None:
        found.setdefault(s.name(), s)

    def pair(s: Setting) -> None:
        add(s.alone())
        add(s)

    def core(policies: Sequence[str]) -> None:
        for seed in range(1, seeds + 1):
            for server in (DIGITS, LARGE):
                for load in QUICK_LOADS if quick else LOADS:
                    for policy in policies:
                        pair(Setting("together", server, policy, load, seed=seed, core=True))

    for memory in ("", "bandwidth=8") if whole else ("",):
        for server in SERVERS if whole and not memory else (DIGITS, LARGE):
            add(Setting("capacity", server, memory=memory))
        add(Setting("training alone", memory=memory))
    core(("PRIORITY",))
    if whole:
        for seed in range(1, seeds + 1):
            for server in (DIGITS, LARGE):
                half = Setting("together", server, permille=500, seed=seed)
                pair(replace(half, permille=700))
                pair(replace(half, policy="SLACK"))
                pair(replace(half, arrivals="bursty"))
                pair(replace(half, arrivals="trace"))
                pair(replace(half, memory="bandwidth=8"))
            pair(Setting("together", TWO, permille=500, seed=seed))
    core(("FCFS", "ROUND_ROBIN", "JOB"))
    return list(found.values())


class Colocation(Experiment):
    name = "colocation"
    text = "requests beside training: loads, policies, memories, arrivals"
    more = (
        "A point is a run on a simulated device of its own. Its figures and a row for each request are files in the folder; an\n"
        "experiment that was stopped goes on with the points that are missing. The whole of it simulates up to 2.8 billion cycles."
    )
    example = "coltrain experiment colocation --quick --jobs 2 --out build/quick"
    seeds = (5, 1)

    @classmethod
    def arguments(cls, parser: Parser) -> None:
        parser.add_argument("--core", action="store_true", help="the core grid only, without the other axes")
        parser.add_argument("--data", metavar="NAME", default="fashion-mnist", help="what is trained on (fashion-mnist)")
        parser.add_argument("--trace", metavar="FILE.csv", default=str(TRACE), help="arrivals of the axis `trace`")

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        self.whole = not options.quick and not options.core
        self.grid = settings_of_the_grid(options.quick, self.whole, options.seeds)
        self.capacity: dict[tuple[str, str], Json] = {}
        if self.whole and not os.access(options.trace, os.R_OK):
            raise Failure(f"--trace {options.trace}: cannot be read")

    # ---- Points ----

    def requests(self, s: Setting) -> int:
        if s.server is None:
            return 0
        return scaled(CAPACITY if s.kind == "capacity" else stats.requests(s.server.measured), self.part)

    def samples(self) -> int:
        return TRAINING_SAMPLES * self.part // 100 + 10

    def capacity_of(self, s: Setting) -> Json:
        none = {"service_cycles": 0, "batch_cycles": 0, "busy_cycles": 0, "completed": 0}
        return self.capacity.get((s.server.name if s.server else "", s.memory), none)

    def _settings(self, s: Setting) -> Json:
        o: Json = base_settings(s.kind, f"sim:{s.memory}", s.seed, self.requests(s))
        if s.server:
            o["server"] = s.server.name
        if s.kind == "training alone":
            o["samples"] = self.samples()
        if s.kind in ("training alone", "together"):
            o |= {"training": TRAINED, "data": self.options.data}
        if s.kind == "together":
            o["policy"] = s.policy
        if not s.loaded:
            return o
        o |= {"capacity": self.capacity_of(s), "load": s.load, "arrivals": s.arrivals}
        if s.arrivals == "trace":
            o["trace"] = os.path.basename(self.options.trace)
        if s.arrivals == "bursty":
            o["bursts"] = {"on_percent": ON_PERCENT, "period_services": PERIOD}
        return o

    def _run(self, s: Setting) -> Json:
        """A batch goes in time for its own service, of whatever size, and for one that has just begun."""
        kinds = {"capacity": "capacity", "training alone": "training"}
        o: Json = {"kind": kinds.get(s.kind, "requests"), "device": f"sim:{s.memory}", "seed": s.seed}
        if s.kind in ("training alone", "together"):
            o["training"] = {"layers": TRAINED, "data": self.options.data, "batch": TRAIN_BATCH}
        if s.server is None:
            return o | {"samples": self.samples()}
        requests = self.requests(s)
        o |= {"networks": list(s.server.networks), "requests": requests, "batching": "adaptive"}
        if s.kind == "capacity":
            return o
        c = self.capacity_of(s)
        o |= {"dropped": dropped(requests, self.part), "permille": s.permille, "arrivals": s.arrivals}
        o |= {"policy": s.policy.lower().replace("_", "-"), "on_percent": ON_PERCENT, "period_cycles": PERIOD * c["service_cycles"]}
        o |= {"service_cycles": [c["batch_cycles"]] * BATCH, "margin_cycles": c["batch_cycles"] + MARGIN}
        o |= {"deadline_cycles": BOUND * c["service_cycles"], "busy_cycles": c["busy_cycles"], "completed": c["completed"]}
        if s.arrivals == "trace":
            o["trace"] = self.options.trace
        return o

    def _cost(self, s: Setting) -> float:
        if s.kind == "training alone":
            return float(PITCH * self.samples())
        c = self.capacity_of(s)
        each = float(c["busy_cycles"] / c["completed"]) if c["completed"] else 2000.0
        return float(self.requests(s) * each / (s.load if s.loaded else 1.0))

    def point(self, s: Setting) -> Point:
        return Point(s.name(), self._settings(s), self._run(s), self._cost(s))

    # ---- Making ----

    def chosen(self) -> list[Setting]:
        """What --only names, and what that needs."""
        if not self.options.only:
            return self.grid
        named = self.named("points", self.grid, lambda s: s.name())
        return [s for s in self.grid if s in named or any(n.needs(s) for n in named)]

    def note_capacities(self) -> None:
        keys = ("service_cycles", "batch_cycles", "busy_cycles", "completed")
        for s in self.grid:
            found = self.store.load(self.point(s)) if s.kind == "capacity" and s.server else None
            if found and s.server:
                self.capacity[s.server.name, s.memory] = {key: found[key] for key in keys}

    def make(self) -> None:
        chosen = self.chosen()
        self.session.points([self.point(s) for s in chosen if not s.loaded], wait=True)
        self.note_capacities()
        if not self.session.stopped.is_set():
            self.session.points([self.point(s) for s in chosen if s.loaded])

    # ---- What they say ----

    def summary(self) -> Json:
        self.note_capacities()
        cells = Cells(self)
        servers = []
        for server in SERVERS:
            c = self.capacity.get((server.name, ""))
            if c:
                servers.append(
                    {
                        "server": server.name,
                        "service_cycles": c["service_cycles"],
                        "capacity_cycles_per_request": c["busy_cycles"] / c["completed"] if c["completed"] else None,
                    }
                )
        return {
            "experiment": self.name,
            "training": TRAINED,
            "points": len(self.grid),
            "points_there": cells.there,
            "part_percent": self.part,
            "wrong": cells.wrong,
            "run": {
                "folder": self.options.out,
                "data": self.options.data,
                "train_batch": TRAIN_BATCH,
                "on_percent": ON_PERCENT,
                "period_services": PERIOD,
                "trace": self.options.trace if self.whole else None,
            },
            "servers": servers,
            "cells": [cell_json(c) for c in cells.list],
            "targets": [t.json() for t in targets_of(cells)],
        }

    def lines(self, summary: Json) -> Iterable[str]:
        yield f"{summary['points_there']} of {summary['points']} points are there\n"
        yield (
            f"{'server':15} {'policy':11} {'load':>4}  {'arrivals':8} {'memory':12} {'p99':>10} {'/ alone':>8}  {'train':>5}  {'u':>5}"
            f"  {'/1-u':>5}  {'batch':>5}  seeds"
        )
        for c in summary["cells"]:
            memory = c["device"].partition(":")[2] or "default"
            p99 = (
                f" {'never':>10} {'':8}" if c["p99_cycles"] is None else f" {c['p99_cycles']:10.0f} x {ratio_text(c['stretch'], '6.3f', 6)}"
            )
            share = ratio_text(c["training_share"], "5.3f", 5)
            idle = ratio_text(c["training_share_of_idle"], "5.2f", 5)
            yield (
                f"{c['server']:15} {c['policy']:11} {c['load']:4.1f}  {c['arrivals']:8} {memory:12}{p99}  {share}  {c['u']:5.3f}  {idle}"
                f"  {c['mean_batch']:5.2f}  {c['seeds']}"
            )

    def table(self, summary: Json) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        ratios = ("stretch", "training_share", "training_same_rows", "training_share_of_idle")
        plain = [k for k in summary["cells"][0] if k not in ratios and k != "batches"] if summary["cells"] else []
        columns = plain + [f"{r}_{k}" for r in ratios for k in ("mean", "low", "high")] + [f"batches_of_{n}" for n in range(1, BATCH + 1)]
        rows = [[c[k] for k in plain] + [c[r][k] for r in ratios for k in ("mean", "low", "high")] + c["batches"] for c in summary["cells"]]
        return columns, rows

    def wrong(self, summary: Json) -> int:
        return int(summary["wrong"])


def ratio_text(r: Json, form: str, width: int) -> str:
    return format(r["mean"], form) if r["mean"] is not None else format("-", f">{width}")


def ratio_json(r: stats.Ratio) -> Json:
    return {"mean": number(r.mean), "low": number(r.low), "high": number(r.high)}


def cell_json(c: Cell) -> Json:
    s = c.setting
    assert s.server
    return {
        "server": s.server.name,
        "policy": s.policy,
        "load": s.load,
        "arrivals": s.arrivals,
        "device": f"sim:{s.memory}",
        "core": s.core,
        "seeds": c.seeds,
        "p99_cycles": number(c.p99),
        "p99_alone_cycles": number(c.p99_alone),
        "stretch": ratio_json(c.stretch),
        "training_share": ratio_json(c.share),
        "training_same_rows": ratio_json(c.same_work),
        "training_share_of_idle": ratio_json(c.share_of_idle),
        "u": c.u,
        "u_over_load_max": c.u_over_load,
        "mean_batch": c.mean_batch,
        "batches": c.batches,
        "asked": c.asked,
        "answered": c.answered,
        "wrong": c.wrong,
        "wrong_alone": c.wrong_alone,
        "measured": c.measured,
        "deadline_cycles": c.deadline,
        "missed": c.missed,
        "missed_alone": c.missed_alone,
        "missed_only_together": c.missed_only_together,
    }
