# SPDX-License-Identifier: Apache-2.0
"""Tests of the Python package: `make test-python`, or `pytest tb/python` with host/python in PYTHONPATH.

CT_SEED decides all random draws; the header says which seed it is. Devices are the emulator and the simulated core.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(TOP / "host/python"))

pytest.register_assert_rewrite("beds", "browser")

import coltrain  # noqa: E402
from browser import Browser  # noqa: E402

SEED = int(os.environ.get("CT_SEED", "1"))


def pytest_report_header() -> str:
    return f"CT_SEED={SEED}, libcoltrain {coltrain.library_version()} by {coltrain.__file__}"


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Lines for scripts/run-tests.sh."""
    if os.environ.get("CT_LINES") and (report.when == "call" or report.outcome != "passed"):
        name = report.nodeid.rsplit("/", 1)[-1]
        if report.outcome == "passed":
            print(f"\nok - {name}")
        elif report.outcome == "skipped":
            print(f"\nok - {name} # skip")
        else:
            print(f"\nnot ok - {name} ({report.when})")


@pytest.fixture
def seed() -> int:
    return SEED


@pytest.fixture(scope="session")
def build() -> Path:
    return TOP / os.environ.get("BUILD", "build")


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    started = Browser(tmp_path_factory.mktemp("browser"))
    yield started
    started.close()
