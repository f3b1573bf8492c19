# SPDX-License-Identifier: Apache-2.0
"""The rows that an experiment gives docs/data: CSV files, one row a measurement, one value a column, with the commit of the RTL.

`coltrain experiment NAME --results docs/data --rtl COMMIT` puts them in the place of the rows with the same key, which is the first
columns of a file; other rows stay, so that a part of an experiment can be measured anew. scripts/results makes docs/results.md of them.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from coltrain.cli import Failure, write
from coltrain.experiments.points import Json

RTL = "rtl_commit"
"""The last column of every file."""


@dataclass
class DataFile:
    """columns: names, each with the format of its values behind a colon if it has one. The first `keys` of them name a row."""

    name: str
    keys: int
    columns: str
    rows: list[Json]

    def names(self) -> list[str]:
        return [c.partition(":")[0] for c in self.columns.split()]

    def cells(self, rtl: str) -> list[list[str]]:
        forms = [c.partition(":")[::2] for c in self.columns.split()]
        return [[cell(row[name], form) for name, form in forms] + [rtl] for row in self.rows]


def cell(value: Any, form: str) -> str:
    """Nothing where there is no figure, inf for what never came."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float) and not math.isfinite(value):
        return "inf" if value > 0 else ""
    return format(value, form) if form else str(value)


def flat(row: Json, *ratios: str) -> Json:
    """Ratios with their interval as three columns."""
    return row | {f"{r}{end}": row[r][k] for r in ratios for k, end in (("mean", ""), ("low", "_low"), ("high", "_high"))}


# ---- The files of each experiment ----


def colocation(s: Json) -> Iterable[DataFile]:
    def never(cycles: float | None) -> float:
        return math.inf if cycles is None else cycles

    rows = [
        flat(c, "stretch", "training_share", "training_share_of_idle")
        | {"p99_cycles": never(c["p99_cycles"]), "p99_alone_cycles": never(c["p99_alone_cycles"])}
        for c in s["cells"]
    ]
    yield DataFile(
        "colocation",
        5,
        "server policy load:g arrivals device core seeds p99_alone_cycles:.0f p99_cycles:.0f stretch:.3f stretch_low:.3f stretch_high:.3f "
        "training_share:.3f training_share_low:.3f training_share_high:.3f u:.3f u_over_load_max:.3f training_share_of_idle:.3f "
        "training_share_of_idle_low:.3f training_share_of_idle_high:.3f mean_batch:.2f missed_alone missed missed_only_together measured "
        "answered asked wrong",
        rows,
    )
    deadline = {c["server"]: c["deadline_cycles"] for c in s["cells"] if c["core"]}
    servers = [x | {"deadline_cycles": deadline[x["server"]]} for x in s["servers"] if x["server"] in deadline]
    yield DataFile("colocation-servers", 1, "server service_cycles capacity_cycles_per_request:.1f deadline_cycles", servers)
    batches = [
        {"server": c["server"], "load": c["load"], "batch_size": n, "percent_of_batches": 100 * count / sum(c["batches"])}
        for c in s["cells"]
        if c["core"] and c["policy"] == "PRIORITY" and sum(c["batches"])
        for n, count in enumerate(c["batches"], 1)
    ]
    yield DataFile("colocation-batches", 3, "server load:g batch_size percent_of_batches:.1f", batches)


def batching(s: Json) -> Iterable[DataFile]:
    costs = [{"network": n["network"], "batch_size": i, "cycles": c} for n in s["networks"] for i, c in enumerate(n["cost_cycles"], 1)]
    yield DataFile("batching-costs", 2, "network batch_size cycles:.0f", costs)
    rows = []
    for r in s["rows"]:
        seeds = {"seeds_held": sum(bool(x["held"]) for x in r["seeds"]), "seeds": len(r["seeds"])} if r["seeds"] else {}
        none = {"less_than_per_second": None, "less_than_by": None, "mean_batch": None, "seeds_held": None, "seeds": None}
        rows.append(none | r | seeds | ({"mean_batch": r["sustained"]["mean_batch"]} if r["sustained"] else {}))
    yield DataFile(
        "batching",
        4,
        "network bound bound_cycles max_batch unloaded_cycles feasible rate_per_second:.0f less_than_per_second:.0f less_than_by load:.3f "
        "p99_cycles mean_batch:.2f seeds_held seeds",
        rows,
    )
    ratios = [r | {"of_promise": r["of_promise"] or None} for r in s["ratios"]]
    yield DataFile("batching-ratios", 2, "network bound ratio:.2f promise:.2f of_promise:.3f mark_equinox:g", ratios)


def interference(s: Json) -> Iterable[DataFile]:
    whole = [r for r in s["rows"] if r["whole"]]
    nothing = dict.fromkeys(
        f"{k}_cycles" for k in ("unrefused_alone", "refused_alone", "refused_together", "beyond_refusals_alone", "beyond_refusals")
    ) | {"beyond_refusals_bound_cycles": None}
    yield DataFile(
        "interference",
        1,
        "name network device training resident floor jobs cycles_alone:.0f "
        "stretch_mean:.4f stretch_p50:.4f stretch_p99:.4f stretch_max:.4f most_cycles bound_cycles "
        "u:.3f train_share:.3f train_share_of_idle:.4f too_short u_back_to_back:.3f train_share_back_to_back:.3f too_short_back_to_back "
        "unrefused_alone_cycles refused_alone_cycles:.0f refused_together_cycles:.0f beyond_refusals_alone_cycles "
        "beyond_refusals_cycles beyond_refusals_bound_cycles wrong",
        [nothing | r | (r["refusals"] or {}) for r in whole],
    )
    yield DataFile(
        "interference-units",
        2,
        "name unit wait_most wait_bound wait_mean:.2f no_wait_percent:.1f wait_p90 wait_p99 other_wait_most_alone other_wait_most "
        "other_wait_mean_alone:.1f other_wait_mean:.1f train_busy_alone:.3f train_busy:.3f",
        [{"name": r["name"]} | u for r in whole for u in r["units"]],
    )
    least = {
        (r["network"], r["device"]): r["roofline"]
        | {"network": r["network"], "device": r["device"], "batch": r["batch"]}
        | {"of_roofline": r["roofline"]["least_cycles"] / r["roofline"]["cycles"]}
        for r in whole
        if r["roofline"] and not r["floor"]
    }
    yield DataFile(
        "interference-roofline",
        3,
        "network device batch read_bytes:.0f written_bytes:.0f moved_bytes:.0f rows:.0f least_cycles:.0f cycles:.0f of_roofline:.3f",
        list(least.values()),
    )


def utilisation(s: Json) -> Iterable[DataFile]:
    def percent(x: float | None) -> float | None:
        return None if x is None else 100 * x

    rows = [
        r
        | {"bandwidth_bytes_per_cycle": r["bandwidth"], "stall_percent": r["stall"], "latency_cycles": r["latency"]}
        | {"utilisation_percent": percent(r["utilisation"]), "utilisation_least_percent": percent(r["utilisation_least"])}
        | {"of_bound_percent": percent(r["of_bound"]), "possible_of_bound_percent": percent(r["possible_of_bound"])}
        | {"reaches_90_of_bound": r["of_bound"] >= 0.9 if r["aimed"] and r["latency"] == 60 else None}
        for r in s["rows"]
    ]
    yield DataFile(
        "utilisation",
        10,
        "m n k result beside policy bandwidth_bytes_per_cycle stall_percent latency_cycles runs phases utilisation_percent:.1f "
        "utilisation_least_percent:.1f of_bound_percent:.1f possible_of_bound_percent:.1f reaches_90_of_bound",
        rows,
    )


def accuracy(s: Json) -> Iterable[DataFile]:
    rows = [flat(r, "accuracy") | {"accuracy_percent": r["accuracy"]["mean"]} for r in s["rows"]]
    columns = "network format seeds epochs accuracy_percent:.2f accuracy_low:.2f accuracy_high:.2f cpu_seconds:.0f"
    yield DataFile("accuracy", 2, columns, rows)
    curves = [
        {"network": r["network"], "format": r["format"], "epochs": r["epochs"], "epoch": e, "accuracy_percent": a, "loss": loss}
        for r in s["rows"]
        for e, (a, loss) in enumerate(zip(r["curve"], r["loss"], strict=True), 1)
    ]
    yield DataFile("accuracy-curves", 4, "network format epochs epoch accuracy_percent:.2f loss:.4f", curves)


def speed(s: Json) -> Iterable[DataFile]:
    columns = "network device batch rounds emu_steps:.1f pytorch_steps:.1f pytorch_openblas_steps:.1f"
    ratios = [f"of_{name}{end}:.3f" for name in ("pytorch", "pytorch_openblas") for end in ("", "_low", "_high")]
    yield DataFile("speed", 2, " ".join([columns, *ratios, "pytorch"]), [flat(r, "of_pytorch", "of_pytorch_openblas") for r in s["rows"]])


def fusion(s: Json) -> Iterable[DataFile]:
    rates = "models_steps_per_mcycle:.4f serial_host:.4f serial_prefetched:.4f interleaved:.4f together:.4f identical"
    rest = "over_host:.3f over_prefetched:.3f together_over_prefetched:.3f both_queues in_a_job busiest busy:.3f busy_together:.3f bytes run_bytes"
    yield DataFile("fusion", 3, f"net members launch_cycles batch jobs {rates} {rest}", s["rows"])
    layers = [r | {"expected_cycles": r["cycles"], "busy_cycles": r["busy"], "members_a_pass": r["round"]} for r in s["layers"]]
    yield DataFile("fusion-layers", 2, "net stage node op expected_cycles busy_cycles regime bound:.3f members_a_pass", layers)
    yield DataFile("fusion-beside", 2, "net members requests median_cycles:.0f p99_cycles:.0f most_cycles", s["beside"])


def memory(s: Json) -> Iterable[DataFile]:
    figures = "bits_per_value:.3f ratio_fp32:.3f peak_bytes:.0f reserved_bytes:.0f accuracy:.4f run_bytes:.0f pages_bytes:.0f dram_bytes:.0f cycles:.0f relative_error:.4f deviation_own:.3f deviation_others:.3f"
    intervals = "accuracy_low:.4f accuracy_high:.4f lost:.4f lost_low:.4f lost_high:.4f"
    yield DataFile("memory", 2, f"net keep seeds steps {figures} {intervals}", s["rows"])
    cycles = "step_cycles:.0f median_cycles:.0f p99_cycles:.0f most_cycles alone_median_cycles:.0f alone_p99_cycles:.0f alone_most_cycles"
    yield DataFile("memory-beside", 2, f"net keep requests pages_bytes {cycles}", s["beside"])
    yield DataFile("memory-bandwidth", 3, "net keep bandwidth batch dram_bytes:.0f cycles:.0f over_hbfp8:.4f", s["narrow"])
    yield DataFile("memory-inputs", 2, "net keep seeds bits_per_input:.3f ratio_fp32:.3f bits_without_masks:.3f", s["inputs"])
    parts = "nonzero:.3f left:.3f same:.3f over_predicted:.3f uniform:.3f over_allowed:.3f"
    yield DataFile("memory-gradients", 6, f"net keep seed step tensor weight made bound {parts}", s["gradients"])


def targets(s: Json) -> DataFile:
    """Of a whole experiment: where something is missing all stay as they are. A figure is a number, and where it was seen."""
    rows: list[Json] = []
    for t in s["targets"]:
        if t["held"] is None:
            return DataFile("targets", 2, "experiment target figure where held", [])
        figure, where = re.fullmatch(r"(-?[0-9.]+),? ?(.*)", t["figure"]).groups()  # type: ignore[union-attr]
        where = where.removeprefix("(").removesuffix(")") if where.startswith("(") else where
        rows.append({"experiment": s["experiment"], "target": t["target"], "figure": figure, "where": where, "held": t["held"]})
    return DataFile("targets", 2, "experiment target figure where held", rows)


FILES = {
    "colocation": colocation,
    "batching": batching,
    "interference": interference,
    "utilisation": utilisation,
    "accuracy": accuracy,
    "speed": speed,
    "fusion": fusion,
    "memory": memory,
}


def files_of(summary: Json) -> list[DataFile]:
    if summary["experiment"] not in FILES:
        raise Failure(f"the experiment {summary['experiment']} has no files in docs/data; FILES in {Path(__file__).name} lists the others")
    return [*FILES[summary["experiment"]](summary), targets(summary)]


# ---- The folder ----


def place_of(key: tuple[str, ...], before: tuple[str, ...], order: list[tuple[str, ...]]) -> int:
    """Where a new row goes: behind the new one before it, if both have the same first cell; else to those that have its own; else behind all that have that of the one before."""
    if before[:1] == key[:1]:
        return order.index(before) + 1
    own = [i for i, k in enumerate(order) if k[0] == key[0]]
    last = [i for i, k in enumerate(order) if k[:1] == before[:1]]
    return own[0] if own else last[-1] + 1 if last else len(order)


def merged(text: str, file: DataFile, rtl: str) -> str:
    """The file with the new rows in the place of those with the same key, or where place_of says."""
    columns = [*file.names(), RTL]
    old = list(csv.reader(io.StringIO(text)))
    if old and old[0] != columns:
        raise Failure(f"{file.name}.csv has the columns {', '.join(old[0])}, not {', '.join(columns)}; remove it, or put it right")
    rows = {tuple(row[: file.keys]): row for row in old[1:]}
    order = list(rows)
    before: tuple[str, ...] = ()
    for row in file.cells(rtl):
        key = tuple(row[: file.keys])
        if key not in rows:
            order.insert(place_of(key, before, order), key)
        rows[key] = row
        before = key
    out = io.StringIO()
    csv.writer(out, lineterminator="\n").writerows([columns, *(rows[key] for key in order)])
    return out.getvalue()


def put(folder: str, summary: Json, rtl: str) -> None:
    """All files, or none if one of them does not fit."""
    paths = [(Path(folder) / f"{f.name}.csv", f) for f in files_of(summary)]
    texts = [(path, merged(path.read_text(encoding="utf-8") if path.exists() else "", f, rtl)) for path, f in paths]
    for path, text in texts:
        write(path, text)
