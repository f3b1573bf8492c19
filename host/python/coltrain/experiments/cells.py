# SPDX-License-Identifier: Apache-2.0
"""What the points of co-location say together: cells (points that differ in nothing but the seed), and targets."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from coltrain import stats
from coltrain.experiments.common import BATCH, DIGITS, LARGE, Target, mean_batch
from coltrain.experiments.points import Json, Point
from coltrain.stats import Ratio

if TYPE_CHECKING:
    from coltrain.experiments.colocation import Colocation, Setting

CORE_SEEDS = 5
NONE = Ratio(0, math.nan, math.nan, math.nan)


@dataclass
class Seeds:
    """What the seeds of a cell say, one value each."""

    p99: list[float] = field(default_factory=list)
    alone: list[float] = field(default_factory=list)
    stretch: list[float] = field(default_factory=list)
    share: list[float] = field(default_factory=list)
    same: list[float] = field(default_factory=list)
    of_idle: list[float] = field(default_factory=list)
    u: list[float] = field(default_factory=list)


@dataclass
class Cell:
    setting: Setting
    """Of the first seed."""
    seeds: int = 0
    p99: float = math.nan
    p99_alone: float = math.nan
    stretch: Ratio = NONE
    share: Ratio = NONE
    same_work: Ratio = NONE
    share_of_idle: Ratio = NONE
    u: float = math.nan
    u_over_load: float = 0.0
    mean_batch: float = 0.0
    batches: list[int] = field(default_factory=lambda: [0] * BATCH)
    asked: int = 0
    answered: int = 0
    lost_alone: int = 0
    wrong: int = 0
    wrong_alone: int = 0
    measured: int = 0
    missed: int = 0
    missed_alone: int = 0
    missed_only_together: int = 0
    deadline: int = 0

    def add(self, r: Json, alone: Json, only_together: int) -> None:
        self.batches = [a + b for a, b in zip(self.batches, r["batches"] + [0] * BATCH, strict=False)]
        self.measured += r["measured"]
        self.answered += r["answered"]
        self.asked += r["settings"]["requests"]
        self.lost_alone += alone["settings"]["requests"] - alone["answered"]
        self.wrong += r["wrong"]
        self.wrong_alone += alone["wrong"]
        self.missed += r["deadline_misses"]
        self.missed_alone += alone["deadline_misses"]
        self.missed_only_together += only_together
        self.deadline = r["deadline_cycles"]

    def finish(self, s: Seeds) -> None:
        self.seeds = len(s.u)
        self.p99, self.p99_alone = stats.ratio(s.p99).mean, stats.ratio(s.alone).mean
        self.stretch, self.share = stats.ratio(s.stretch), stats.part(s.share)
        self.same_work, self.share_of_idle = stats.part(s.same), stats.part(s.of_idle)
        self.u = sum(s.u) / len(s.u) if s.u else math.nan
        self.u_over_load = max(s.u, default=0.0) / self.setting.load
        self.mean_batch = mean_batch(self.batches)


def cycles(value: int | None) -> float:
    """None: never."""
    return stats.NEVER if value is None else float(value)


def seed_of(s: Seeds, r: Json, alone: Json, training: Json) -> None:
    """A run that was given up before it measured anything has no window to speak of."""
    together, by_itself = cycles(r["p99_cycles"]), cycles(alone["p99_cycles"])
    s.p99.append(together)
    s.alone.append(by_itself)
    s.stretch.append(math.nan if math.isinf(together) and math.isinf(by_itself) else together / by_itself)
    share = same = math.nan
    if not r["given_up"] or r["answered"] > r["settings"]["requests"] - r["measured"]:
        samples, pitch = training["rows"], training["pitch_cycles"]
        share = r["training_rows"] / stats.between(samples, pitch, r["window_cycles"])
        same = stats.cycles_for(samples, pitch, r["training_rows"]) / r["window_cycles"]
    s.share.append(share)
    s.same.append(same)
    s.of_idle.append(share / (1 - alone["u"]))
    s.u.append(alone["u"])


class Cells:
    """All points of an experiment that are there, and which are lacking."""

    def __init__(self, experiment: Colocation) -> None:
        self.experiment = experiment
        self.list: list[Cell] = []
        self.lacking: list[Setting] = []
        self.there = self.wrong = 0
        self.found: dict[str, Json] = {}
        firsts: dict[Setting, list[Setting]] = {}
        for s in experiment.grid:
            found = experiment.store.load(experiment.point(s))
            if found:
                self.found[s.name()] = found
                self.there += 1
                self.wrong += found.get("wrong", 0)
            elif s.loaded:
                self.lacking.append(s)
            if s.kind == "together":
                firsts.setdefault(replace(s, seed=0, core=False), []).append(s)
        for group in firsts.values():
            cell = self._cell(group)
            if cell.seeds:
                self.list.append(cell)
        self.list.sort(key=lambda c: c.setting.order())

    def _point(self, s: Setting) -> Point:
        return self.experiment.point(s)

    def _only_together(self, s: Setting, r: Json, alone: Json) -> int | None:
        """Measured requests that were in time alone and late together; None: their rows are not there."""
        store = self.experiment.store
        a = store.latencies(self._point(s.alone()), alone)
        b = store.latencies(self._point(s), r)
        if a is None or b is None:
            return None
        first, last = r["settings"]["requests"] - r["measured"], r["settings"]["requests"]
        return int(np.count_nonzero((a[first:last] <= r["deadline_cycles"]) & (b[first:last] > r["deadline_cycles"])))

    def _cell(self, group: list[Setting]) -> Cell:
        """A seed counts only with both runs, a row for every answer in each, and training alone with the same memory."""
        cell, seeds = Cell(group[0]), Seeds()
        from coltrain.experiments.colocation import Setting

        training = self.found.get(Setting("training alone", memory=group[0].memory).name())
        for s in group:
            r, alone = self.found.get(s.name()), self.found.get(s.alone().name())
            if r is None:
                continue
            late = self._only_together(s, r, alone) if alone and training else None
            if alone is None or training is None or late is None:
                self.lacking.append(s)
                continue
            seed_of(seeds, r, alone, training)
            cell.add(r, alone, late)
        cell.finish(seeds)
        return cell


# ---- Targets ----


def upper(r: Ratio) -> float:
    """The unfavourable end of an interval; of a single seed there is only the value."""
    return r.mean if math.isnan(r.high) else r.high


def lower(r: Ratio) -> float:
    return r.mean if math.isnan(r.low) else r.low


@dataclass(frozen=True)
class Rule:
    """scope: the core grid under PRIORITY; all runs under PRIORITY but those in bursts, whose load is 1 while they last
    (steady); all runs under PRIORITY; all."""

    text: str
    value: Callable[[Cell], float]
    limit: float
    at_most: bool = True
    server: str | None = None
    scope: str = "core"
    low: int = 0
    high: int = 1000

    def meant(self, s: Setting) -> bool:
        if not self.low <= s.permille <= self.high or (self.server and (not s.server or s.server.name != self.server)):
            return False
        if self.scope == "all":
            return True
        if s.policy != "PRIORITY":
            return False
        if self.scope == "steady":
            return s.arrivals != "bursty"
        return self.scope == "priority" or s.core

    def holds(self, value: float) -> bool:
        return value <= self.limit if self.at_most else value >= self.limit


RULES = (
    Rule(
        "p99 beside training at most 1.10 of p99 alone, 784-512-256-10, loads up to 0.8",
        lambda c: upper(c.stretch),
        1.10,
        server=LARGE.name,
        high=800,
    ),
    Rule(
        "training at least 0.95 of 1 - u, 784-512-256-10, loads up to 0.8",
        lambda c: lower(c.share_of_idle),
        0.95,
        False,
        server=LARGE.name,
        high=800,
    ),
    Rule("u at most 1.05 of the load, 784-512-256-10, loads up to 0.8", lambda c: c.u_over_load, 1.05, server=LARGE.name, high=800),
    Rule(
        "training at least 0.78 of its speed alone at load 0.2, 784-512-256-10",
        lambda c: lower(c.share),
        0.78,
        False,
        server=LARGE.name,
        low=200,
        high=200,
    ),
    Rule(
        "requests in time alone and late beside training, but in bursts: none at loads up to 0.7",
        lambda c: c.missed_only_together,
        0,
        scope="steady",
        high=700,
    ),
    Rule(
        "requests that were never answered, alone or beside training: none",
        lambda c: c.asked - c.answered + c.lost_alone,
        0,
        scope="priority",
    ),
    Rule("answers that differ from emu:, under any policy: none", lambda c: c.wrong + c.wrong_alone, 0, scope="all"),
)


def is_lacking(cells: Cells, rule: Rule) -> bool:
    """Whether the full experiment has more to say: points are missing, a load of the core grid or the other axes are not
    among them, there are fewer seeds than it asks for, or the runs are shorter."""
    from coltrain.experiments.colocation import LOADS, Setting

    e = cells.experiment
    if e.part < 100 or (rule.scope != "core" and not e.whole) or any(rule.meant(s) for s in cells.lacking):
        return True
    for server in (DIGITS, LARGE):
        for load in LOADS:
            wanted = Setting("together", server, permille=load, core=True)
            if rule.meant(wanted) and not any(
                c.seeds >= CORE_SEEDS and c.setting.server == server and c.setting.permille == load and rule.meant(c.setting)
                for c in cells.list
            ):
                return True
    return False


def worst_of(cells: Cells, rule: Rule) -> Cell | None:
    """Cells without a value are the worst where nothing is against the target."""
    meant = [c for c in cells.list if rule.meant(c.setting)]
    known = [c for c in meant if not math.isnan(rule.value(c))]
    unknown = [c for c in meant if math.isnan(rule.value(c))]
    worst = (max if rule.at_most else min)(known, key=rule.value, default=None)
    if unknown and (worst is None or rule.holds(rule.value(worst))):
        return unknown[-1]
    return worst


def judge(cells: Cells, rule: Rule) -> Target:
    """The worst cell decides; with something missing, only against."""
    target, worst = Target(rule.text), worst_of(cells, rule)
    if worst is None:
        return target
    value = rule.value(worst)
    assert worst.setting.server
    where = f"({worst.setting.server.name} at load {worst.setting.load:.1f})"
    if math.isnan(value):
        target.figure = f"no ratio: never answered without training either {where}"
        return target
    lacks = is_lacking(cells, rule)
    target.held = rule.holds(value)
    if lacks and target.held:
        target.held = None
    target.figure = f"{value:.5g} {where}" + (", of a part of the experiment" if lacks else "")
    return target


def targets_of(cells: Cells) -> list[Target]:
    return [judge(cells, rule) for rule in RULES]
