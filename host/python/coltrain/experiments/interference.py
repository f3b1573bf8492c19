# SPDX-License-Identifier: Apache-2.0
"""`coltrain experiment interference`: what single requests, one job at a time, and training cost each other.

A run is cut into pieces, each by `coltrain bench interference` on a device of its own with a seed of its own, so that several are
made at once. Inference alone is measured once for all loads beside it.
"""

from __future__ import annotations

import collections
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import coltrain._abi as abi
from coltrain import stats
from coltrain.cli import Failure, Parser
from coltrain.experiments.common import Experiment, Target
from coltrain.experiments.points import Json, Point

JOBS = 10000  # of a run
QUICK = 2  # percent of the jobs
FEW = 5  # jobs of training in a piece: its phases differ in speed, and what is measured of fewer is not its rate
PARTS = ("alone", "together", "back_to_back")
SETTING = ("network", "device", "training", "batch", "policy", "resident", "floor", "gap", "alone_unrefused")
NETWORKS = {"mnist": ("784-512-256-10", 4600), "wide": ("256x3", 4600), "digits": ("digits", 0)}
MEAN, P99, SHARE = 1.02, 1.10, 0.97  # asked of 784-512-256-10 under PRIORITY


@dataclass(frozen=True)
class Run:
    """NETWORK-LOAD-SETTING, with the options of inference and those of training."""

    network: str
    load: str
    setting: str
    inference: tuple[str, ...]
    training: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        return f"{self.network}-{self.load}-{self.setting}"

    @property
    def alone(self) -> Run:
        return Run(self.network, "none", self.setting.removesuffix("-floor64"), self.inference)

    @property
    def piece(self) -> int:
        """Jobs of a piece: enough for some steps of training in each."""
        if self.network == "mnist" and self.setting == "bandwidth2":
            return 5000
        slow = {("mnist", "bandwidth8"), ("wide", "bandwidth2")}
        return 2500 if self.network == "digits" or (self.network, self.setting) in slow else 1000


def grid() -> list[Run]:
    runs = []

    def add(network: str, load: str, setting: str, device: str = "sim:", training: str = "", more: str = "") -> None:
        name, gap = NETWORKS[network]
        inference = ["--network", name, *(["--gap", str(gap)] if gap and not more else []), *more.split(), "--device", device]
        batch = "--batch 32 " if network == "digits" else ""
        runs.append(Run(network, load, setting, tuple(inference), tuple((batch + training).split())))

    for memory in ("", "stall=25", "bandwidth=8", "bandwidth=2"):
        for load in ("model", "stress"):
            for network in NETWORKS:
                seeded = f"{memory},seed={{seed}}" if memory.startswith("stall") else memory
                add(network, load, memory.replace("=", "") or "default", f"sim:{seeded}")
    for load in ("model", "stress"):
        add("digits", load, "small", "sim:core=16x8")
        add("digits", load, "default-floor64", training="--floor 64")
    add("digits", "banks", "default")
    add("digits", "banks", "small", "sim:core=16x8")
    for load in ("model", "products"):
        add("digits", load, "resident", more="--resident")
        add("wide", load, "resident", more="--resident")
    return runs


# ---- The pieces of a run as one ----


def weighted(parts: Sequence[Json], what: str, by: str) -> float:
    """A rate of all pieces: each one's counts as much as what it is a rate of."""
    return float(sum(p[what] * p[by] for p in parts) / sum(p[by] for p in parts))


def pool_wait(waits: Sequence[Json]) -> Json:
    bins: collections.Counter[int] = collections.Counter()
    for w in waits:
        bins.update({int(cycles): n for cycles, n in w["histogram"].items()})
    return {"max": max(w["max"] for w in waits), "sum": sum(w["sum"] for w in waits), "histogram": bins}


def pool_part(parts: Sequence[Json]) -> Json:
    """The same stretch of all pieces as one."""
    whole: Json = {what: sum(p[what] for p in parts) for what in ("cycles", "jobs", "wrong", "train_jobs")}
    whole["latency"] = [cycles for p in parts for cycles in p["latency"]]
    whole["refused"] = [cycles for p in parts for cycles in p.get("refused", [])]
    whole["u"] = weighted(parts, "u", "cycles")
    whole["train_macs_per_cycle"] = weighted(parts, "train_macs_per_cycle", "cycles")
    whole["units"] = [
        {"unit": of[0]["unit"], "bound": of[0]["bound"], "operations": sum(u["operations"] for u in of)}
        | {wait: pool_wait([u[wait] for u in of]) for wait in ("wait_training", "wait_other")}
        for of in zip(*(p["units"] for p in parts), strict=True)
    ]
    # Of the cycles, by unit: those in which training had it.
    whole["train_busy"] = collections.Counter()
    for p in parts:
        for t in p["time"]:
            if t["queue"] == "training":
                whole["train_busy"][t["unit"]] += t["busy"] / whole["cycles"]
    return whole


def stretch(alone: Sequence[int], both: Sequence[int], bound: int | None) -> Json:
    """A job's latency divided by its own latency alone."""
    ratios = [b / a for a, b in zip(alone, both, strict=True)]
    return {
        "mean": sum(ratios) / len(ratios),
        "p50": stats.quantile(ratios, 1, 2),
        "p99": stats.quantile(ratios, 99, 100),
        "max": max(ratios),
        "most_cycles": max(0, max(b - a for a, b in zip(alone, both, strict=True))),
        "bound_cycles": bound,
    }


def check(name: str, piece: Json) -> None:
    """What the command says of its own piece is what is reckoned here."""
    said = piece["stretch"]
    own = stretch(piece["alone"]["latency"], piece["together"]["latency"], said["bound_cycles"])
    if any(abs(own[what] - said[what]) > 1e-6 * abs(said[what]) for what in own if own[what] is not None):
        raise Failure(f"{name}: its stretch is {own}, not {said}")


def pool(name: str, pieces: Sequence[Json]) -> Json:
    """The pieces of a run as one run."""
    run: Json = {what: pieces[0].get(what) for what in SETTING}
    for piece in pieces:
        check(name, piece)
        if any(piece.get(what) != run[what] for what in SETTING):
            raise Failure(f"{name}: its files are of different runs ({', '.join(SETTING)}); remove those of the older one")
    if len({piece["seed"] for piece in pieces}) < len(pieces):
        raise Failure(f"{name}: two of its files have the same seed; remove the older one")
    for part in (*PARTS, "train_alone"):
        run[part] = pool_part([piece[part] for piece in pieces])
    run["stretch"] = stretch(run["alone"]["latency"], run["together"]["latency"], pieces[0]["stretch"]["bound_cycles"])
    rate = {part: run[part]["train_macs_per_cycle"] for part in ("train_alone", "together", "back_to_back")}
    run["train_share"] = rate["together"] / rate["train_alone"]
    run["train_share_of_idle"] = run["train_share"] / (1 - run["alone"]["u"])
    run["train_share_back_to_back"] = rate["back_to_back"] / rate["train_alone"]
    # A share of too few jobs of training is marked.
    run["few"] = {part: "~" if run[part]["train_jobs"] < FEW * len(pieces) else "" for part in PARTS}
    run["roofline"] = dict(pieces[0]["roofline"]) if pieces[0]["roofline"] else None
    if run["roofline"]:
        steps = [dict(piece["roofline"], steps=piece["train_alone"]["train_jobs"]) for piece in pieces]
        run["roofline"].update({what: weighted(steps, what, "steps") for what in ("cycles", "moved_bytes")})
    return run


# ---- What operations waited, unit by unit ----


def at_most(bins: dict[int, int], share: float) -> int:
    """The wait that so many of the operations do not exceed."""
    left = share * sum(bins.values())
    for cycles in sorted(bins):
        left -= bins[cycles]
        if left <= 0:
            return cycles
    return 0


def unit_rows(run: Json) -> list[Json]:
    """For training (wait), and for memory, operands or operations of inference (other_wait); how busy training keeps the unit."""
    rows = []
    for alone, both, behind in zip(*(run[part]["units"] for part in PARTS), strict=True):
        unit, operations = both["unit"], max(1, both["operations"])
        wait, other, other_alone = both["wait_training"], both["wait_other"], alone["wait_other"]
        rows.append(
            {"unit": unit, "wait_most": max(wait["max"], behind["wait_training"]["max"]), "wait_bound": both["bound"]}
            | {"wait_mean": wait["sum"] / operations, "no_wait_percent": 100 * wait["histogram"][0] / operations}
            | {"wait_p90": at_most(wait["histogram"], 0.9), "wait_p99": at_most(wait["histogram"], 0.99)}
            | {"other_wait_most_alone": other_alone["max"], "other_wait_most": other["max"]}
            | {"other_wait_mean_alone": other_alone["sum"] / max(1, alone["operations"]), "other_wait_mean": other["sum"] / operations}
            | {"train_busy_alone": run["train_alone"]["train_busy"][unit], "train_busy": run["together"]["train_busy"][unit]}
        )
    return rows


def refusals_of(run: Json) -> Json | None:
    """Where the memory stalls: the cycles in which it refuses something, and the most that a job took beyond these and its latency
    without refusals."""
    plain, alone, both = run["alone_unrefused"], run["alone"], run["together"]
    if not plain or not alone["refused"]:
        return None

    def beyond(part: Json) -> int:
        return max(int(cycles - refused - plain) for cycles, refused in zip(part["latency"], part["refused"], strict=True))

    found = {"unrefused_alone_cycles": plain, "refused_alone_cycles": sum(alone["refused"]) / alone["jobs"]}
    found |= {"refused_together_cycles": sum(both["refused"]) / both["jobs"], "beyond_refusals_alone_cycles": beyond(alone)}
    found |= {"beyond_refusals_cycles": beyond(both)}
    return found | {"beyond_refusals_bound_cycles": None if run["floor"] else run["stretch"]["bound_cycles"]}


# ---- The experiment ----


class Interference(Experiment):
    name = "interference"
    text = "single requests beside training: stretch of each job, and the bounds"
    more = (
        "A run is cut into pieces of some jobs, each on a simulated device of its own and in a file of its own; an experiment that\n"
        "was stopped goes on with the pieces that are missing. The whole of it takes half a day on two cores."
    )
    example = "coltrain experiment interference --only 'digits-*' --quick --out build/quick"

    @classmethod
    def arguments(cls, parser: Parser) -> None:
        parser.add_argument("--state", metavar="TEXT", default="", help="of RTL and library: pieces of another one are made anew")

    def __init__(self, options: Any) -> None:
        super().__init__(options)
        if options.quick:
            self.part = min(self.part, QUICK)
        self.runs = grid()

    def piece(self, run: Run, seed: int, jobs: int) -> Point:
        options = [o.replace("{seed}", str(seed)) for o in run.inference + run.training]
        options += ["--training", run.load, "--jobs", str(jobs), "--seed", str(seed)]
        settings = {"coltrain": abi.VERSION, "kind": "interference", "state": self.options.state, "options": options}
        args = ["bench", "interference", *options]
        if run.load != "none":
            args += ["--alone", str(self.store.path(self.piece(run.alone, seed, jobs), ".json"))]
        return Point(f"{run.name}.{seed}", settings, cost=jobs * (4.0 if run.load != "none" else 1.0), args=args)

    def pieces(self, run: Run) -> list[Point]:
        """Those of a run alone are as long as those beside it."""
        left, most = max(10, JOBS * self.part // 100), run.piece
        found: list[Point] = []
        while left > 0:
            found.append(self.piece(run, len(found) + 1, min(left, most)))
            left -= most
        return found

    def make(self) -> None:
        chosen = self.named("runs", self.runs, lambda r: r.name)
        alone = {p.name: p for r in chosen for p in self.pieces(r.alone)}
        self.session.points(list(alone.values()), wait=True)
        if not self.session.stopped.is_set():
            self.session.points([p for r in chosen for p in self.pieces(r)])

    def pooled(self) -> Iterable[tuple[Run, Json, bool]]:
        """The runs of which there is something, and whether all pieces are there. A stopped piece is none."""
        for run in self.runs:
            points = self.pieces(run)
            found = [f for p in points if (f := self.store.load(p)) and all(f[part] for part in PARTS)]
            if found:
                for f in found:  # the seed of the stalls, one for each piece
                    f["device"] = f["device"].partition(",seed=")[0]
                yield run, pool(run.name, found), len(found) == len(points)

    def summary(self) -> Json:
        rows = []
        for run, r, whole in self.pooled():
            a = r["alone"]
            rows.append(
                {"name": run.name, "whole": whole, **{k: r[k] for k in ("network", "device", "training", "resident", "floor")}}
                | {"jobs": r["together"]["jobs"], "cycles_alone": sum(a["latency"]) / len(a["latency"]), "u": a["u"]}
                | {f"stretch_{k}": r["stretch"][k] for k in ("mean", "p50", "p99", "max")}
                | {
                    "most_cycles": r["stretch"]["most_cycles"],
                    "bound_cycles": None if "stall" in r["device"] or r["floor"] else r["stretch"]["bound_cycles"],
                }
                | {k: r[k] for k in ("train_share", "train_share_of_idle", "train_share_back_to_back")}
                | {"u_back_to_back": r["back_to_back"]["u"], "too_short_back_to_back": bool(r["few"]["back_to_back"])}
                | {"too_short": bool(r["few"]["together"]), "wrong": sum(r[p]["wrong"] for p in PARTS)}
                | {"batch": r["batch"], "units": unit_rows(r), "refusals": refusals_of(r), "roofline": r["roofline"]}
            )
        targets = [t.json() for t in targets_of(rows, self.part == 100 and len(rows) == len(self.runs))]
        made = {"folder": self.options.out, "state": self.options.state}
        return {"experiment": self.name, "part_percent": self.part, "runs": len(self.runs), "run": made, "rows": rows, "targets": targets}

    def lines(self, summary: Json) -> Iterable[str]:
        yield f"{'run':26} {'jobs':>6} {'alone':>8} {'mean':>7} {'p99':>7} {'max':>7} {'more':>6} {'bound':>7} {'train':>6} /(1 - u)"
        for r in summary["rows"]:
            bound = "-" if r["bound_cycles"] is None else str(r["bound_cycles"])
            yield (
                f"{r['name']:26} {r['jobs']:6} {r['cycles_alone']:8.0f} {r['stretch_mean']:7.4f} {r['stretch_p99']:7.4f} "
                f"{r['stretch_max']:7.4f} {r['most_cycles']:6} {bound:>7} {r['train_share']:6.3f} {r['train_share_of_idle']:9.4f}"
                + ("~" if r["too_short"] else "")
            )

    def table(self, summary: Json) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        columns = [c for c in summary["rows"][0] if c not in ("units", "refusals", "roofline")] if summary["rows"] else []
        return columns, [[r[c] for c in columns] for r in summary["rows"]]

    def wrong(self, summary: Json) -> int:
        return int(sum(r["wrong"] for r in summary["rows"]))


def targets_of(rows: Sequence[Json], whole: bool) -> list[Target]:
    """The worst row decides; with something missing, only against."""
    large = [r for r in rows if r["network"] == NETWORKS["mnist"][0] and not r["floor"]]
    rates = [r for r in large if not r["too_short"]]
    bounded = [r for r in rows if r["bound_cycles"] is not None and not r["floor"]]
    targets = []
    for text, key, limit, at_most, of in (
        (f"784-512-256-10: mean stretch at most {MEAN}", "stretch_mean", MEAN, True, large),
        (f"784-512-256-10: p99 of the stretch at most {P99:.2f}", "stretch_p99", P99, True, large),
        (f"784-512-256-10: training at least {SHARE} of 1 - u", "train_share_of_idle", SHARE, False, rates),
        (
            "resident weights, back to back: training at least 0.50",
            "train_share_back_to_back",
            0.5,
            False,
            [r for r in rows if r["resident"]],
        ),
    ):
        t = Target(text)
        if of:
            worst = (max if at_most else min)(of, key=lambda r, k=key: float(r[k]))  # type: ignore[misc]
            held = worst[key] <= limit if at_most else worst[key] >= limit
            t.held, t.figure = held if whole or not held else None, f"{worst[key]:.4f} ({worst['name']})"
        targets.append(t)
    t = Target("cycles that a job takes more: at most its bound, where the memory does not refuse")
    if bounded:
        worst = max(bounded, key=lambda r: float(r["most_cycles"] / r["bound_cycles"]))
        held = worst["most_cycles"] <= worst["bound_cycles"]
        t.held, t.figure = held if whole or not held else None, f"{worst['most_cycles']} of {worst['bound_cycles']} ({worst['name']})"
    beyond = Target("the same beyond the cycles in which the memory refuses, where it does")
    refused = [(r["refusals"], r["name"]) for r in rows if r["refusals"] and r["refusals"]["beyond_refusals_bound_cycles"] is not None]
    if refused:
        most, name = max(refused, key=lambda of: float(of[0]["beyond_refusals_cycles"] / of[0]["beyond_refusals_bound_cycles"]))
        held = most["beyond_refusals_cycles"] <= most["beyond_refusals_bound_cycles"]
        beyond.held = held if whole or not held else None
        beyond.figure = f"{most['beyond_refusals_cycles']} of {most['beyond_refusals_bound_cycles']} ({name})"
    return [*targets, t, beyond]
