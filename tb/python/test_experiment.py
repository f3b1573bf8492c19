# SPDX-License-Identifier: Apache-2.0
"""The page of co-location, from made-up cells: that it is well-formed whatever they are, and says what is not there."""

from __future__ import annotations

import math
from typing import Any

import pytest
from beds import read_page
from coltrain.cli import Failure, write
from coltrain.reports.experiment import page_of

LOADS = (0.2, 0.5, 0.8, 0.9)
LARGE = "784-512-256-10"
Json = dict[str, Any]


def ratio(mean: float | None, seeds: int) -> Json:
    """None: infinite, or no ratio."""
    part = 0.01 if seeds > 1 and mean is not None else None
    return {"mean": mean, "low": mean * (1 - part) if part and mean else None, "high": mean * (1 + part) if part and mean else None}


def cell(server: str, policy: str, load: float, stretch: float | None, seeds: int, **other: Any) -> Json:
    """p99 times stretch; None: never."""
    alone = 20000 / (1.05 - load)
    share = (1 - load) * (1.04 if policy == "PRIORITY" else 1.3)
    asked = 3000 * seeds
    return {
        "server": server,
        "policy": policy,
        "load": load,
        "arrivals": "poisson",
        "device": "sim:",
        "core": True,
        "seeds": seeds,
        "p99_cycles": None if stretch is None else alone * stretch,
        "p99_alone_cycles": alone,
        "stretch": ratio(stretch, seeds),
        "training_share": ratio(share, seeds),
        "training_same_rows": ratio(share, seeds),
        "training_share_of_idle": ratio(share / (1 - load), seeds),
        "u": load * 0.98,
        "u_over_load_max": 0.985,
        "mean_batch": 1 + 4 * load,
        "batches": [int(10000 * math.exp(-n / (0.3 + 4 * load))) for n in range(16)],
        "asked": asked,
        "answered": asked - (1234 if stretch is None else 0),
        "wrong": 0,
        "wrong_alone": 0,
        "measured": 2000 * seeds,
        "deadline_cycles": 364550,
        "missed": 0,
        "missed_alone": 0,
        "missed_only_together": 0,
        **other,
    }


def stretch_of(policy: str, load: float) -> float | None:
    if policy == "PRIORITY":
        return 1.004 + 0.03 * load * load
    if policy == "JOB" or load > 0.5:
        return None
    return 3 + 20 * load + ("PRIORITY", "FCFS", "ROUND_ROBIN").index(policy)


def all_cells(seeds: int, servers: tuple[str, ...] = ("digits", LARGE)) -> list[Json]:
    """Everything, as a whole experiment has it; with one server there is half to draw."""
    policies = ("PRIORITY", "FCFS", "ROUND_ROBIN", "JOB")
    cells = [cell(s, p, load, stretch_of(p, load), seeds) for s in servers for p in policies for load in LOADS]
    for other in ({"policy": "SLACK"}, {"arrivals": "bursty"}, {"arrivals": "trace"}, {"device": "sim:bandwidth=8"}):
        cells += [cell(s, "PRIORITY", 0.5, 1.01, seeds) | {"core": False} | other for s in servers]
    return [*cells, cell("two", "PRIORITY", 0.5, 1.02, seeds, core=False)]


def summary_of(cells: list[Json], **other: Any) -> Json:
    return {
        "experiment": "colocation",
        "training": LARGE,
        "points": 500,
        "points_there": 500,
        "part_percent": 100,
        "wrong": 0,
        "run": {
            "folder": "build/experiments/colocation",
            "data": "fashion-mnist",
            "train_batch": 64,
            "on_percent": 50,
            "period_services": 20,
            "trace": "host/data/traces/recorded.csv",
        },
        "servers": [{"server": s, "service_cycles": 1623, "capacity_cycles_per_request": 2000.0} for s in ("digits", LARGE, "two")],
        "cells": cells,
        "targets": [
            {"target": "p99 at most 1.10", "figure": f"1.0334 ({LARGE} at load 0.8)", "held": True},
            {"target": "something else", "figure": "2", "held": False},
            {"target": "a third", "figure": "not measured", "held": None},
        ],
        **other,
    }


def expect(text: str, *parts: str) -> None:
    for part in parts:
        assert part in text, part


@pytest.fixture(scope="module")
def whole() -> str:
    return page_of(summary_of(all_cells(5)))


def test_a_whole_page(whole: str) -> None:
    reader = read_page(whole)
    expect(reader.text, "at most 1.023 times what it is", "(95 % interval: 1.013 to 1.033)", "both networks", "of 595,256 beside training")
    expect(reader.text, f"{LARGE}, bursty arrivals", f"{LARGE}, recorded arrivals", "digits, SLACK", "digits, bandwidth=8")
    expect(whole, '<p class="big">× 1.023</p>', '<p class="big">83.2 %</p>', '<span class="between">1.013 – 1.033</span>')
    assert "There is one seed" not in whole and "This page is of a part" not in whole
    assert whole.count('<svg role="img"') == 2 * 4 * 2  # servers, charts, screens
    assert whole.count('<tr class="cell">') == 41
    assert whole.count("PRIORITY: requests first") == 4


def test_what_was_never_answered(whole: str) -> None:
    """A mark at the top edge in the chart, a word in the table; the scale stays one of the others."""
    never = sum(c["p99_cycles"] is None for c in all_cells(5))
    assert whole.count("<td>never</td>") == 2 * never  # p99 and the ratio
    assert whole.count(">at the top edge: never<") == 2 and whole.count(">top edge: never<") == 2
    # Nothing but that.
    cells = all_cells(5, (LARGE,))
    for c in cells:
        c |= {"p99_cycles": None, "stretch": ratio(None, 1)}
    read_page(page_of(summary_of(cells)))
    # Alone, too: there is no ratio.
    for c in cells:
        c["p99_alone_cycles"] = None
    page = page_of(summary_of(cells))
    read_page(page)
    assert page.count("<td>never</td><td>never</td><td>-</td>") == len(cells)


def test_a_part_of_the_points() -> None:
    page = page_of(summary_of(all_cells(1)[:3], part_percent=2, points_there=17))
    reader = read_page(page)
    expect(reader.text, "17 of 500 measurements are there", "with 2 % of the requests", "There is one seed of everything")
    expect(
        page, '<p class="big">missing</p>', '<b class="unknown">missing</b>', '<b class="held">held</b>', '<b class="missed">not held</b>'
    )
    assert page.count('<svg role="img"') == 8
    assert 'class="between"' not in page


def test_nothing_yet() -> None:
    page = page_of(summary_of([], points_there=0, servers=[], targets=[]))
    reader = read_page(page)
    expect(reader.text, "0 of 500 measurements are there", "missing")
    assert '<svg role="img"' not in page


def test_names_are_escaped() -> None:
    """What a user gave stands in the page as text."""
    cells = all_cells(5, (LARGE,))
    cells[-2]["device"] = "sim:<i>"
    s = summary_of(cells)
    s["run"] |= {"folder": "<b>&\"'", "data": "a<b", "trace": "<script>alert(1)</script>"}
    page = page_of(s)
    reader = read_page(page)
    expect(reader.text, "<b>&\"'", "batches of 64, of a<b", "<script>alert(1)</script>", ", <i>")
    assert "<i>" not in page


def test_no_place_for_it() -> None:
    for path in ("/nonexistent/report.html", "/dev/full"):
        with pytest.raises(Failure, match="cannot be written"):
            write(path, "text" * 10000)
    with pytest.raises(Failure, match="no page"):
        page_of({"experiment": "other"})
