# SPDX-License-Identifier: Apache-2.0
"""Many measurements by one definition (docs/experiments.md), each in a file of its own, so that an experiment that was stopped
goes on where it was; then what they say together, as JSON, CSV and a page.

A new experiment is a module with a subclass of coltrain.experiments.common.Experiment, a line here, its page (page_of() in
coltrain.reports.experiment), and its files where docs/data has figures of it (coltrain.experiments.datafiles).
"""

from __future__ import annotations

import difflib
import sys

from coltrain.cli import complain
from coltrain.experiments.accuracy import Accuracy
from coltrain.experiments.batching import Batching
from coltrain.experiments.colocation import Colocation
from coltrain.experiments.common import Experiment, run_experiment
from coltrain.experiments.fusion import Fusion
from coltrain.experiments.interference import Interference
from coltrain.experiments.memory import Memory
from coltrain.experiments.speed import Speed
from coltrain.experiments.utilisation import Utilisation

EXPERIMENTS: tuple[type[Experiment], ...] = (Colocation, Batching, Interference, Utilisation, Accuracy, Speed, Fusion, Memory)


def usage() -> str:
    names = "\n".join(f"  {e.name:14} {e.text}" for e in EXPERIMENTS)
    return (
        f"Usage: coltrain experiment NAME [OPTION...]\nMakes:\n\n{names}\n\n  coltrain experiment NAME --help     its options\n\n"
        "Example:\n  coltrain experiment colocation --quick --out build/quick"
    )


def run(args: list[str]) -> int:
    """The verb."""
    if not args:
        print(usage(), file=sys.stderr)
        return 2
    if args[0] in ("--help", "-?", "-h"):
        print(usage())
        return 0
    for kind in EXPERIMENTS:
        if kind.name == args[0]:
            return run_experiment(kind, args[1:])
    near = difflib.get_close_matches(args[0], [e.name for e in EXPERIMENTS], 1)
    more = f'did you mean "{near[0]}"?' if near else "coltrain experiment --help lists them"
    complain(f'there is no experiment "{args[0]}"; {more}')
    return 2
