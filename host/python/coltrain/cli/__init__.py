# SPDX-License-Identifier: Apache-2.0
"""What the verbs in Python share: `coltrain VERB` becomes coltrain-VERB, whose main() is here.

A verb returns the exit status: 0 done, 1 failed after a sentence on standard error, 2 used wrongly.
"""

from __future__ import annotations

import argparse
import difflib
import importlib.util
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any, NoReturn

NEEDS = {
    "report": ("numpy", "matplotlib", "jinja2"),
    "experiment": ("numpy", "scipy", "matplotlib", "jinja2"),
    "import": ("numpy", "onnx"),
    "export": ("numpy", "onnx"),
}


class Failure(Exception):
    """Something went wrong that a sentence explains: what, with which thing, what to do."""


def complain(sentence: str) -> int:
    """Prints "coltrain: SENTENCE"; returns 1."""
    sys.stdout.flush()
    print(f"coltrain: {sentence}", file=sys.stderr)
    return 1


def command() -> str:
    """The coltrain command that runs what this program measures."""
    return os.environ.get("COLTRAIN_COMMAND", "coltrain")


class Parser(argparse.ArgumentParser):
    """Options as the verbs in C have them: an option that does not exist is answered with the one that was meant."""

    def __init__(self, **kwargs: Any) -> None:
        super().__init__(formatter_class=argparse.RawDescriptionHelpFormatter, **kwargs)

    def error(self, message: str) -> NoReturn:
        print(f"{self.prog}: {message}\nTry `{self.prog} --help' for more information.", file=sys.stderr)
        raise SystemExit(2)

    def refuse_unknown(self, extra: list[str]) -> None:
        """A sentence about the first argument that nobody took."""
        if not extra:
            return
        name = extra[0].partition("=")[0]
        if not name.startswith("--"):
            self.error(f'"{extra[0]}" is one argument too many')
        near = difflib.get_close_matches(name, [s for a in self._actions for s in a.option_strings if s.startswith("--")], 1)
        print(
            f"{self.prog}: there is no option {name}; " + (f"did you mean {near[0]}?" if near else f"{self.prog} --help lists them"),
            file=sys.stderr,
        )
        raise SystemExit(2)

    def parse(self, args: list[str]) -> argparse.Namespace:
        options, extra = self.parse_known_args(args)
        self.refuse_unknown(extra)
        return options


def count(low: int, high: int) -> Callable[[str], int]:
    """The type of an option that is a whole number of low..high."""

    def whole(text: str) -> int:
        if not text.isdecimal() or not low <= int(text) <= high:
            raise argparse.ArgumentTypeError(f'"{text}" is not a whole number of {low}..{high}')
        return int(text)

    return whole


def write(path: str | Path, text: str) -> None:
    """Writes a file, "-" for standard output."""
    try:
        if str(path) == "-":
            sys.stdout.write(text)
            sys.stdout.flush()
        else:
            with open(path, "w", encoding="utf-8") as file:
                file.write(text)
    except OSError as error:
        raise Failure(f"{path}: cannot be written: {error.strerror}") from error


def check_writable(option: str, path: str | None) -> None:
    """Asks about a file before hours of work."""
    if path is None or path == "-":
        return
    folder = os.path.dirname(path) or "."
    if os.path.isdir(path) or not os.access(path if os.path.exists(path) else folder, os.W_OK):
        raise Failure(f"{option} {path}: cannot be written")


def text_stream(json_path: str | None) -> IO[str]:
    """Where the text for people goes: standard error if the JSON goes to standard output."""
    return sys.stderr if json_path == "-" else sys.stdout


def missing_packages(verb: str) -> list[str]:
    return [name for name in NEEDS.get(verb, ()) if importlib.util.find_spec(name) is None]


def main(verb: str, args: list[str] | None = None) -> int:
    """The program coltrain-VERB."""
    args = sys.argv[1:] if args is None else args
    missing = missing_packages(verb)
    if missing:
        packages = " ".join(f"python3-{name}" for name in missing)
        return complain(f"coltrain {verb} needs Python packages that are not installed; install {packages}, or run scripts/setup")
    if args == ["--check"]:
        return 0
    try:
        if verb == "experiment":
            from coltrain.experiments import run
        elif verb == "import":
            from coltrain.onnx.verbs import run_import as run
        elif verb == "export":
            from coltrain.onnx.verbs import run_export as run
        else:
            from coltrain.reports import run_report as run
        return run(args)
    except Failure as failure:
        return complain(str(failure))
    except BrokenPipeError:
        return 1


def report() -> int:
    """coltrain-report, where the package is installed."""
    return main("report")


def experiment() -> int:
    """coltrain-experiment, where the package is installed."""
    return main("experiment")


def import_() -> int:
    """coltrain-import, where the package is installed."""
    return main("import")


def export() -> int:
    """coltrain-export, where the package is installed."""
    return main("export")
