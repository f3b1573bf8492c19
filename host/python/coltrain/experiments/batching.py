# SPDX-License-Identifier: Apache-2.0
"""`coltrain experiment batching`: the highest rate of requests within a bound of p99, for single requests and for batches.

A row is a network, a bound and a size of batches. Its rates are a list in steps of 1 % that ends at the capacity; the search
ends with two neighbours of which one was sustained and the next was not, or with the last of the list.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from coltrain import arrivals, stats
from coltrain.experiments.common import BATCH, DIGITS, LARGE, Experiment, Server, Target, base_settings, dropped, mean_batch, scaled
from coltrain.experiments.points import Json, Point

UNIT = 1_000_000_000  # cycles of a rate
LOWEST = 10  # of the rate of single requests back to back, percent; nothing is searched below
STEP = 100  # a step of the list is 1 / 100
RATES = 1024
TRIES = 64
GUESS = 8  # rates of a row that are tried, about: for the time left
QUICK = 10  # percent of the requests
TIMES = 10  # of a request alone, the first bound
MARGIN = 500  # cycles for the batcher and the start of a job
MANY = 32000  # measured requests in batches, 2,000 full ones
BOUNDS = {"10x": 0, "50us": 50, "500us": 500}
PART = 0.9  # of what the costs promise
EQUINOX = 6.67  # times the rate of single requests, by MICRO 2021, at 500 us
MARK, AIM = "500us", "10x"


@dataclass
class Try:
    rate: int
    """Its place in the list."""
    result: Json
    seed: int = 1


@dataclass
class Row:
    server: Server
    bound_name: str
    max_batch: int
    known: bool = False
    feasible: bool = False
    service: int = 0
    clock_hz: int = 0
    cost: list[int] = field(default_factory=list)
    """Of a batch of 1 .. 16: cost[n - 1]."""
    interval: int = 0
    bound: int = 0
    margin: int = 0
    rates: list[int] = field(default_factory=list)
    model: int = 0
    below: bool = False
    tried: list[Try] = field(default_factory=list)
    step: int = 0
    good: Try | None = None
    bad: Try | None = None
    seeds: list[Try] = field(default_factory=list)

    @property
    def name(self) -> str:
        return f"{self.server.name}-{self.bound_name}-batch{self.max_batch}"

    def held(self, result: Json) -> bool:
        return not result["given_up"] and result["p99_cycles"] is not None and result["p99_cycles"] <= self.bound

    # ---- The search ----

    def list_rates(self) -> None:
        """More than the capacity no run sustains for long, though a short one may be over before its p99 shows that. In
        1/65536, so that low rates rise in even steps, too."""
        last = UNIT * self.max_batch // self.interval
        rate = (UNIT << 16) // self.cost[0] * LOWEST // 100
        self.rates = []
        while len(self.rates) < RATES and rate >> 16 <= last:
            self.rates.append(rate >> 16)
            rate += rate // STEP

    def next(self) -> int | None:
        """Steps that double, until a rate on the other side is known; then the middle of what is left. None: it is over."""
        last = len(self.rates) - 1
        if self.below or len(self.tried) == TRIES:
            return None
        if not self.good and not self.bad:
            return self.model
        if not self.bad:
            assert self.good
            if self.good.rate == last:
                return None
            return self.good.rate + self.step if last - self.good.rate > self.step else last
        if not self.good:
            if self.bad.rate == 0:
                return None
            return max(0, self.bad.rate - self.step)
        if self.bad.rate - self.good.rate <= 1:
            return None
        return (self.bad.rate + self.good.rate) // 2

    def take(self, rate: int, result: Json) -> None:
        t = Try(rate, result)
        self.tried.append(t)
        if self.held(result):
            self.good = t
        else:
            self.bad = t
        self.step = 1 if len(self.tried) == 1 else 2 * self.step

    @property
    def over(self) -> bool:
        return (self.below or bool(self.tried)) and self.next() is None

    # ---- Figures ----

    def per_second(self, rate: int) -> float:
        return self.rates[rate] * self.clock_hz / 1e9

    def load(self, rate: int) -> float:
        """Of the capacity, which is that of full batches in a row."""
        return self.rates[rate] / 1e9 * self.interval / self.max_batch

    @property
    def promise(self) -> float:
        """What the costs promise."""
        return BATCH * self.cost[0] / self.cost[-1]

    @property
    def floor(self) -> float:
        """What a row that sustains no rate is below, a second."""
        return self.per_second(self.bad.rate if self.bad else 0)


# ---- The model ----


def departure(row: Row, due: list[int], first: int, earliest: int) -> tuple[int, int]:
    """When the batch is formed whose first request is `first`, and how many are in it (docs/programming.md, "When a batch
    goes"). earliest: when the one before has begun."""
    now, n, count = max(due[first], earliest), 1, len(due)
    while True:
        while n < row.max_batch and first + n < count and due[first + n] <= now:
            n += 1
        if n == row.max_batch:
            return now, n
        takes = row.cost[n - 1] + row.margin
        goes = due[first] + row.bound - takes if takes < row.bound else 0
        if goes <= now:
            return now, n
        if first + n == count or due[first + n] > goes:
            return goes, n
        now = due[first + n]


def queue_p99(row: Row, rate: int, requests: int, drop: int) -> float:
    """p99 in a queue with one engine that serves batches for as long as each size costs, or less where one follows another."""
    due = [int(cycle) for cycle in arrivals.poisson(1, arrivals.mean_q16(UNIT, rate, 1000), requests)]
    lead = row.service - row.cost[0]  # up to the start of a batch
    full = row.cost[row.max_batch - 1]
    overlap = max(0, full - row.interval)
    latency: NDArray[np.float64] = np.empty(requests)
    start = end = first = 0
    while first < requests:
        formed, n = departure(row, due, first, start)
        ready = formed + lead
        start = ready if ready + overlap > end else end - overlap
        end = start + row.cost[n - 1]
        latency[first : first + n] = [end - d for d in due[first : first + n]]
        first += n
    return stats.latency(latency, drop).p99


def propose(row: Row, requests: int, drop: int) -> None:
    """The highest rate that the model sustains, where the search begins; `below` if there is none. It spares the simulator
    the rates that are far off, and what it says is reported in that one case, labelled model."""
    good, bad = 0, len(row.rates)
    while bad - good > 1:
        middle = (good + bad) // 2
        if queue_p99(row, row.rates[middle], requests, drop) <= row.bound:
            good = middle
        else:
            bad = middle
    row.model = good
    row.below = good == 0 and queue_p99(row, row.rates[0], requests, drop) > row.bound


# ---- The experiment ----


class Batching(Experiment):
    name = "batching"
    text = "what batches add to the throughput within a bound of latency"
    more = (
        "Searches for the highest rate of requests whose p99 stays within a bound, for single requests and for batches of up to\n"
        "16. Every rate that is tried is a run on a simulated device of its own. Its figures and a row for each request are files in\n"
        "the folder; an experiment that was stopped goes on with what is missing."
    )
    example = "coltrain experiment batching --only 'digits-*' --jobs 2 --out build/digits"

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        if options.quick:
            self.part = QUICK

    def rows(self) -> list[Row]:
        return [Row(server, bound, size) for server in (DIGITS, LARGE) for bound in BOUNDS for size in (1, BATCH)]

    # ---- Points ----

    def requests(self, row: Row) -> int:
        """Of the rate in batches a run of few full ones says little: it may be above the capacity, and over before p99 shows
        it."""
        return scaled(stats.requests(MANY if row.max_batch > 1 else row.server.measured), self.part)

    def cost_point(self, server: Server) -> Point:
        settings = base_settings("cost", "sim:", 1, 0) | {"server": server.name, "batches_of_each_size": 3, "batches_in_a_row": 4}
        return Point(f"{server.name}-cost", settings, {"kind": "cost", "device": "sim:", "networks": list(server.networks), "seed": 1}, 4e5)

    def rate_point(self, row: Row, rate: int, seed: int) -> Point:
        requests, each = self.requests(row), row.rates[rate]
        drop = dropped(requests, self.part)
        how: Json = {
            "batching": "adaptive" if row.max_batch > 1 else "none",
            "max_batch": row.max_batch,
            "margin_cycles": row.margin,
            "service_cycles": row.cost,
        }
        settings = base_settings("rate", "sim:", seed, requests)
        settings |= how | {"server": row.server.name, "bound_cycles": row.bound, "rate_per_gigacycle": each}
        run: Json = how | {"kind": "requests", "device": "sim:", "networks": list(row.server.networks), "seed": seed}
        run |= {"requests": requests, "dropped": drop, "late_allowed": (requests - drop) // 100, "permille": 1000}
        run |= {"deadline_cycles": row.bound, "busy_cycles": UNIT, "completed": each}
        return Point(f"{row.name[:48]}-rate{each}-seed{seed}", settings, run, requests * UNIT / each)

    def prepare(self, row: Row) -> None:
        """What follows from the costs. A batch is due so early that it is in time although another one has just begun, a
        second one is formed already (the device forms one ahead), and it grows to a full one meanwhile."""
        found = self.store.load(self.cost_point(row.server))
        if not found:
            return
        row.known = True
        row.service, row.clock_hz, row.cost = found["service_cycles"], found["clock_hz"], found["cost_cycles"]
        us = BOUNDS[row.bound_name]
        row.bound = row.clock_hz // 1_000_000 * us if us else TIMES * row.service
        row.feasible = row.service <= row.bound
        row.margin = 3 * row.cost[-1] - row.cost[0] + MARGIN if row.max_batch > 1 else 0
        row.interval = found["interval_cycles_of_16" if row.max_batch > 1 else "interval_cycles_of_1"]
        if row.feasible:
            row.list_rates()
            requests = self.requests(row)
            propose(row, requests, dropped(requests, self.part))

    def search(self, row: Row, make: bool) -> None:
        """Goes on with a row as far as points are there; makes what is missing, if it shall."""

        def attempt(rate: int, seed: int) -> Json | None:
            point = self.rate_point(row, rate, seed)
            return self.session.make(point) if make and not self.session.stopped.is_set() else self.store.load(point)

        while (rate := row.next()) is not None:
            result = attempt(rate, 1)
            if not result:
                return
            row.take(rate, result)
        for seed in range(1, self.options.seeds + 1):
            if row.good and (result := attempt(row.good.rate, seed)):
                row.seeds.append(Try(row.good.rate, result, seed))

    def make(self) -> None:
        rows = self.named("rows", self.rows(), lambda r: r.name)
        self.session.points([self.cost_point(s) for s in (DIGITS, LARGE) if any(r.server == s for r in rows)], wait=True)
        if self.session.stopped.is_set():
            return

        progress = self.session.progress
        for row in rows:
            self.prepare(row)
            if row.feasible and not row.below:
                progress.want(GUESS, GUESS * self.rate_point(row, row.model, 1).cost)

        def row_of(row: Row) -> None:
            if row.feasible:
                self.search(row, True)

        self.session.all([lambda r=r: row_of(r) for r in rows])  # type: ignore[misc]

    # ---- What they say ----

    def summary(self) -> Json:
        rows = self.rows()
        for row in rows:
            self.prepare(row)
            if row.feasible:
                self.search(row, False)
        wrong, answered = wrong_of(rows)
        networks = [rows[0], rows[len(rows) // 2]]
        return {
            "experiment": self.name,
            "part_percent": self.part,
            "wrong": wrong,
            "answered": answered,
            "run": {"folder": self.options.out},
            "searches_open": sum(not r.known or (r.feasible and not r.over) for r in rows),
            "networks": [
                {"network": r.server.name, "unloaded_cycles": r.service, "cost_cycles": r.cost, "promise": r.promise}
                for r in networks
                if r.known
            ],
            "rows": [row_json(r) for r in rows if r.known],
            "ratios": [ratio_json(rows, r) for r in rows if r.known and r.max_batch > 1],
            "targets": [t.json() for t in targets_of(rows, self.part)],
        }

    def lines(self, summary: Json) -> Iterable[str]:
        yield f"{'network':15} {'bound':6} {'cycles':>10} {'batch':>5} {'per second':>10}  {'load':>5} {'p99':>10}  {'mean':>5}  " + (
            "ratio, and what the costs promise"
        )
        gains = {(r["network"], r["bound"]): r for r in summary["ratios"]}
        for r in summary["rows"]:
            head = f"{r['network']:15} {r['bound']:6} {r['bound_cycles']:10} {r['max_batch']:5}"
            good, gain = r["sustained"], gains.get((r["network"], r["bound"])) if r["max_batch"] > 1 else None
            if not r["feasible"]:
                yield f"{head}  infeasible: a request alone takes {r['unloaded_cycles']} cycles"
            elif not good and r["complete"]:
                by = {"model": "by the model", "simulation": "the lowest rate that was tried"}[r["less_than_by"]]
                yield f"{head}  less than {r['less_than_per_second']:.0f} a second, {by}"
            elif not good:
                yield f"{head}  not measured"
            else:
                end = f"  {gain['ratio']:6.2f} of {gain['promise']:.2f}" if gain and gain["ratio"] else ""
                over = "" if r["complete"] else "  search not over"
                figures = f" {good['rate_per_second']:10.0f}  {good['load']:5.3f} {good['p99_cycles']:10}  {good['mean_batch']:5.2f}"
                yield head + figures + end + over

    def table(self, summary: Json) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        columns = ["name", "network", "bound", "bound_cycles", "max_batch", "margin_cycles", "unloaded_cycles", "capacity_per_second"]
        columns += ["feasible", "complete", "rate_per_second", "load", "p99_cycles", "rates_tried"]
        return [*columns, "next_rate_per_second"], [
            [r[c] for c in columns] + [r["next_rate"]["rate_per_second"] if r["next_rate"] else None] for r in summary["rows"]
        ]

    def wrong(self, summary: Json) -> int:
        return int(summary["wrong"])


def single_of(rows: list[Row], row: Row) -> Row:
    """The row of single requests with the same network and bound."""
    return next(r for r in rows if r.server == row.server and r.bound_name == row.bound_name and r.max_batch == 1)


def gain_of(rows: list[Row], row: Row) -> float | None:
    """How many times the rate of single requests batches sustain."""
    single = single_of(rows, row)
    if not row.known or not row.over or not single.over or not row.good or not single.good:
        return None
    return row.rates[row.good.rate] / single.rates[single.good.rate]


def wrong_of(rows: list[Row]) -> tuple[int, int]:
    """Wrong answers of all runs, and how many answers these had; the search's own runs are of seed 1."""
    results = [t.result for r in rows for t in r.tried + [s for s in r.seeds if s.seed != 1]]
    return sum(r["wrong"] for r in results), sum(r["answered"] for r in results)


def p99_json(result: Json) -> int | None:
    """A run that was ended early has no p99: null, more than the bound."""
    return None if result["given_up"] else result["p99_cycles"]


def try_json(row: Row, t: Try | None) -> Json | None:
    if not t:
        return None
    return {
        "rate_per_second": row.per_second(t.rate),
        "rate_per_gigacycle": row.rates[t.rate],
        "load": row.load(t.rate),
        "p99_cycles": p99_json(t.result),
        "mean_batch": mean_batch(t.result["batches"]),
        "requests": t.result["settings"]["requests"],
    }


def row_json(row: Row) -> Json:
    good = row.good
    o: Json = {
        "name": row.name,
        "network": row.server.name,
        "bound": row.bound_name,
        "max_batch": row.max_batch,
        "batching": "adaptive" if row.max_batch > 1 else "none",
        "bound_cycles": row.bound,
        "margin_cycles": row.margin,
        "unloaded_cycles": row.service,
        "capacity_per_second": row.clock_hz * row.max_batch / row.interval,
        "feasible": row.feasible,
        "complete": not row.feasible or row.over,
        "rate_per_second": row.per_second(good.rate) if good else None,
        "load": row.load(good.rate) if good else None,
        "p99_cycles": p99_json(good.result) if good else None,
        "sustained": try_json(row, good),
        "next_rate": try_json(row, row.bad),
        "seeds": [{"seed": t.seed, "p99_cycles": p99_json(t.result), "held": row.held(t.result)} for t in row.seeds],
        "rates_tried": len(row.tried),
        "tried": [try_json(row, t) for t in row.tried],
    }
    if row.feasible and not good and row.over:
        o |= {"less_than_per_second": row.floor, "less_than_by": "simulation" if row.bad else "model"}
    return o


def ratio_json(rows: list[Row], row: Row) -> Json:
    gain = gain_of(rows, row)
    return {
        "network": row.server.name,
        "bound": row.bound_name,
        "ratio": gain,
        "promise": row.promise,
        "of_promise": (gain or 0.0) / row.promise,
        "mark_equinox": EQUINOX if row.bound_name == MARK else None,
    }


def judge(rows: list[Row], row: Row, whole: bool, limit: float | None, why: str) -> Target:
    """With fewer requests than the definition asks for, or where the rate does not hold with all arrivals, the target is not
    held, but not missed either."""
    gain = gain_of(rows, row)
    least = f"{limit:.2f} x " if limit else ""
    t = Target(f"{row.server.name} at 10 x its unloaded latency: batches sustain at least {least}the rate of single requests ({why})")
    if gain is None:
        return t
    every = all(row.held(s.result) for s in row.seeds)
    if gain < (limit or 0):
        t.held = False
    elif whole and every:
        t.held = True
    n = len(row.seeds)
    t.figure = f"{gain:.2f}, with the arrivals of {n} seed{'' if n == 1 else 's'}"
    t.figure += ("" if every else ", of which one fails") + ("" if whole else ", of a part of the requests")
    return t


def targets_of(rows: list[Row], part: int) -> list[Target]:
    whole, targets = part == 100, []
    wrong, answered = wrong_of(rows)
    for row in rows:
        if row.max_batch == 1 or row.bound_name != AIM:
            continue
        targets.append(judge(rows, row, whole, EQUINOX, "what Equinox reports at 500 us"))
        targets.append(judge(rows, row, whole, PART * row.promise if row.known else None, "0.9 x 16 c(1) / c(16)"))
    held = False if wrong else True if answered and whole else None
    return [*targets, Target("answers that are not those of emu:, none allowed", f"{wrong} of {answered}", held)]
