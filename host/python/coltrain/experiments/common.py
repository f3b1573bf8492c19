# SPDX-License-Identifier: Apache-2.0
"""What every experiment has: options, servers, targets, the files that it leaves."""

from __future__ import annotations

import argparse
import csv
import fnmatch
import io
import json
import sys
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import coltrain._abi as abi
from coltrain import stats
from coltrain.cli import Failure, Parser, check_writable, complain, count, text_stream, write
from coltrain.experiments.datafiles import put
from coltrain.experiments.points import Json, Store
from coltrain.experiments.running import Session

T = TypeVar("T")

SEEDS, PROCESSES = 20, 16
BATCH = 16


@dataclass(frozen=True)
class Server:
    """Networks that serve, and how many requests of a run are measured by the definition."""

    name: str
    networks: tuple[str, ...]
    measured: int


DIGITS = Server("digits", ("64-128-64-10",), 10000)
LARGE = Server("784-512-256-10", ("784-512-256-10",), 2000)
TWO = Server("two", ("64-128-64-10", "784-512-256-10"), 2000)
SERVERS = (DIGITS, LARGE, TWO)


def scaled(requests: int, part: int) -> int:
    """So many percent of the requests, at least ten."""
    return max(10, requests * part // 100)


def dropped(requests: int, part: int) -> int:
    """In a run of less than the definition's size the first thousand would be most of it."""
    return stats.drop(requests) if part < 100 else stats.drop_campaign(requests)


def base_settings(kind: str, device: str, seed: int, requests: int) -> Json:
    return {"coltrain": abi.VERSION, "kind": kind, "device": device, "seed": seed, "requests": requests}


@dataclass
class Target:
    text: str
    figure: str = "not measured"
    held: bool | None = None
    """None: what it speaks of was not measured, or not all of it."""

    def json(self) -> Json:
        return {"target": self.text, "figure": self.figure, "held": self.held}


def mean_batch(batches: Sequence[int]) -> float:
    """Requests in a batch, of so many batches of 1, 2 ... 16; 0: there are none."""
    total = sum(batches)
    return sum((n + 1) * b for n, b in enumerate(batches)) / total if total else 0.0


def number(x: float) -> float | None:
    """For JSON: neither infinite nor none."""
    return x if x - x == 0 else None


class Experiment:
    """A measurement by a definition in docs/experiments.md. Subclasses say what its points are and what they say together."""

    name = ""
    text = ""
    more = ""
    example = ""
    seeds: tuple[int, int] = (1, 1)
    """By default; with --quick."""
    drawn = True
    """Whether there are seeds to choose, and requests or jobs of which a part can be made."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.part: int = options.part
        self.store = Store(options.out)
        self.session = Session(self.store, options.jobs)

    @classmethod
    def arguments(cls, parser: Parser) -> None:
        """Options of its own."""

    def named(self, what: str, items: Sequence[T], name: Callable[[T], str]) -> list[T]:
        """Those that --only names, or all; what: their kind, in the plural."""
        only = self.options.only or "*"
        found = [x for x in items if fnmatch.fnmatchcase(name(x), only)]
        if not found:
            raise Failure(f'--only: none of the {len(items)} {what} is called "{only}"; the last one is {name(items[-1])}')
        return found

    def make(self) -> None:
        """Makes what is missing."""
        raise NotImplementedError

    def summary(self) -> Json:
        """What the points that are there say together, targets and rows among it."""
        raise NotImplementedError

    def lines(self, summary: Json) -> Iterable[str]:
        """The same as text, without the targets."""
        raise NotImplementedError

    def table(self, summary: Json) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        """The same as CSV: names of the columns, and rows."""
        raise NotImplementedError

    def wrong(self, summary: Json) -> int:
        """Answers that differ from emu:'s."""
        raise NotImplementedError


def parser_of(kind: type[Experiment]) -> Parser:
    p = Parser(prog=f"coltrain experiment {kind.name}", description=f"{kind.text}\n\n{kind.more}", epilog=f"Example:\n  {kind.example}")
    p.add_argument("--out", metavar="DIR", default=f"build/experiments/{kind.name}", help="folder of the points; those there are kept")
    p.add_argument("--quick", action="store_true", help="a part of it, for a look")
    if kind.drawn:
        p.add_argument("--seeds", metavar="N", type=count(1, SEEDS), help=f"arrivals, samples and weights by seeds 1..N ({kind.seeds[0]})")
        p.add_argument("--part", metavar="P", type=count(1, 100), default=100, help="percent of the requests that the definition asks for")
    else:
        p.set_defaults(seeds=1, part=100)
    p.add_argument("--only", metavar="PATTERN", help="make only what has such a name, as in 'digits-*'")
    p.add_argument("--jobs", metavar="N", type=count(1, PROCESSES), default=1, help="runs at once (1)")
    p.add_argument("--report", metavar="FILE.html", help="the page (report.html in the folder)")
    p.add_argument("--json", metavar="FILE", help="the summary (summary.json in the folder)")
    p.add_argument("--csv", metavar="FILE", help="its table (summary.csv in the folder)")
    p.add_argument("--results", metavar="DIR", help="also put the rows into the CSV files of DIR, as docs/data has them")
    p.add_argument("--rtl", metavar="COMMIT", help="of the RTL, which each row of --results names")
    kind.arguments(p)
    return p


def csv_of(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    out.writerow(columns)
    out.writerows(["" if v is None else v for v in row] for row in rows)
    return text.getvalue()


def conclude(e: Experiment) -> int:
    """Says and writes what is there, whatever went wrong before."""
    from coltrain.reports.experiment import page_of

    o = e.options
    summary = e.summary()
    text = text_stream(o.json)
    for line in e.lines(summary):
        print(line, file=text)
    print(file=text)
    for t in summary["targets"]:
        print(f"{ {None: 'missing', False: 'NOT HELD', True: 'held'}[t['held']]:9} {t['target']}: {t['figure']}", file=text)
    report = o.report or str(e.store.out / "report.html")
    write(o.json or e.store.out / "summary.json", json.dumps(summary, indent=2) + "\n")
    write(o.csv or e.store.out / "summary.csv", csv_of(*e.table(summary)))
    write(report, page_of(summary))
    print(f"report         {report}", file=text)
    wrong = e.wrong(summary)
    if o.results and not wrong:
        put(o.results, summary, o.rtl)
    return complain(f"{wrong} answers differ from emu:: the device computes wrongly") if wrong else 0


def run_experiment(kind: type[Experiment], args: list[str]) -> int:
    o = parser_of(kind).parse(args)
    if not o.seeds:
        o.seeds = kind.seeds[1 if o.quick else 0]
    for option, path in (("--json", o.json), ("--csv", o.csv), ("--report", o.report)):
        check_writable(option, path)
    if o.results and not (o.rtl and Path(o.results).is_dir()):
        raise Failure("--results DIR: " + (f"there is no folder {o.results}" if o.rtl else "--rtl COMMIT is missing, which each row names"))
    e = kind(o)
    e.store.open()
    e.session.catch_stop()
    status = 0
    try:
        e.make()
    except Failure as failure:
        status = complain(str(failure))
    e.session.progress.close()
    status = conclude(e) or status
    if e.session.interrupted:
        print("Stopped. The same command goes on with the points that are missing.", file=sys.stderr)
        return 1
    return status
