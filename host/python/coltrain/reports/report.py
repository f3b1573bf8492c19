# SPDX-License-Identifier: Apache-2.0
"""`coltrain report`: a page of one run of a verb, of several beside each other, or of an experiment's summary."""

from __future__ import annotations

import json
from typing import Any

from coltrain.cli import Failure, Parser, check_writable, write
from coltrain.reports.experiment import page_of

Json = dict[str, Any]

VERBS = "colocate, train, serve-bench, matmul, bench gemm, counters"


def read(path: str) -> Json:
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except OSError as error:
        raise Failure(f"{path}: cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise Failure(f"{path}: is no JSON: {error}") from error
    if not isinstance(found, dict):
        raise Failure(f"{path}: is no result of coltrain: it holds no object")
    return found


def is_run(found: Json) -> bool:
    return all(key in found for key in ("serve", "serve_alone", "train", "train_alone"))


def pages(paths: list[str]) -> str:
    from coltrain.reports import verbs
    from coltrain.reports.run import Run, comparison, page

    found = [read(p) for p in paths]
    if len(found) == 1 and "experiment" in found[0]:
        return page_of(found[0])
    verb_of = []
    for path, result in zip(paths, found, strict=True):
        kind = verbs.kind_of(result)
        if "experiment" in result:
            raise Failure(f"{path}: is the summary of an experiment, which has a page by itself; give it alone")
        if not is_run(result) and not kind:
            raise Failure(f"{path}: is neither what a verb of coltrain wrote by --json ({VERBS}) nor the summary of an experiment")
        if is_run(result) and "series" not in result:
            raise Failure(f"{path}: has no series; it was written by an earlier version of coltrain colocate")
        verb_of.append(kind.verb if kind and not is_run(result) else "colocate")
    for path, verb in zip(paths, verb_of, strict=True):
        if verb != verb_of[0]:
            raise Failure(f"{path}: is of coltrain {verb}, {paths[0]} of coltrain {verb_of[0]}: only runs of one verb can be compared")
    if verb_of[0] != "colocate":
        return verbs.page(found[0]) if len(found) == 1 else verbs.comparison(paths, found)
    runs = [Run(p, r) for p, r in zip(paths, found, strict=True)]
    return page(runs[0]) if len(runs) == 1 else comparison(runs)


def main(args: list[str]) -> int:
    p = Parser(
        prog="coltrain report",
        description="Writes a page for people of a run, or of several of one verb beside each other, or of the summary of an experiment.\n"
        f"It reads what these write by --json: {VERBS}.\n"
        "The page is one HTML file without scripts or anything from elsewhere; any browser shows it.",
        epilog="Example:\n  coltrain colocate --json run.json && coltrain report run.json -o run.html",
    )
    p.add_argument("results", nargs="+", metavar="RUN.json", help="what a verb wrote by --json, or an experiment")
    p.add_argument("-o", "--output", metavar="FILE.html", required=True, help="the page (- for standard output)")
    o = p.parse(args)
    check_writable("--output", o.output)
    write(o.output, pages(o.results))
    return 0
