# SPDX-License-Identifier: Apache-2.0
"""scripts/levels on small made-up netlists: what counts as a level, where ways begin and end, and what they are called."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

TOP = Path(__file__).resolve().parents[2]
Cells = dict[str, Any]


def cell(kind: str, src: str = "", **pins: int | list[int]) -> dict[str, Any]:
    return {"type": kind, "attributes": {"src": src}, "connections": {p: b if isinstance(b, list) else [b] for p, b in pins.items()}}


def flip_flop(d: int, q: int, **pins: int) -> dict[str, Any]:
    return cell("TRELLIS_FF", "rtl/a.sv:7.3-9.6|cells_map.v:1.1-2.2", CLK=2, DI=d, Q=q, **pins)


def lut(z: int, *reads: int) -> dict[str, Any]:
    return cell("LUT4", "", Z=z, **dict(zip("ABCD", reads)))


def chain(first: int, length: int, start: int) -> Cells:
    """LUTs one behind the other, from net start to net first + length - 1."""
    return {f"lut_{first + i}": lut(first + i, start if i == 0 else first + i - 1) for i in range(length)}


@pytest.fixture
def levels(tmp_path: Path) -> Any:
    def run(cells: Cells, names: dict[str, list[int]], *arguments: str, status: int = 0) -> list[str]:
        file = tmp_path / "netlist.json"
        ports = {n: {"direction": d, "bits": [b]} for n, d, b in (("clk_i", "input", 2), ("in_i", "input", 3), ("out_o", "output", 90))}
        netnames = {n: {"bits": b, "hide_name": int(n.startswith("$"))} for n, b in names.items()}
        file.write_text(json.dumps({"modules": {"top": {"attributes": {"top": "1"}, "ports": ports, "cells": cells, "netnames": netnames}}}))
        done = subprocess.run([sys.executable, TOP / "scripts/levels", *arguments, file], capture_output=True, text=True, check=False)
        assert done.returncode == status, done.stdout + done.stderr
        return (done.stdout + done.stderr).splitlines()

    return run


NAMES = {"u_a.from_q": [10], "$techmap1.A": [10], "u_a.other": [40, 41], "u_a.to_q": [40, 41], "$middle": [22]}


def test_counts_the_deepest_way_to_a_register(levels: Any) -> None:
    cells = {"begin": flip_flop(3, 10), **chain(20, 5, 10), "short": lut(30, 10), "end": flip_flop(24, 40), "other": flip_flop(30, 41)}
    assert levels(cells, NAMES) == ["   5 u_a.to_q (DI)  from u_a.from_q"]
    # The enable's way counts as the data's does.
    assert levels({**cells, "end": flip_flop(30, 40, CE=24)}, NAMES) == ["   5 u_a.to_q (CE)  from u_a.from_q"]


def test_a_carry_chain_is_one_level(levels: Any) -> None:
    cells = {"begin": flip_flop(3, 10), "end": flip_flop(60, 40), "behind": lut(60, 59)}
    for i in range(8):
        carry = {"CIN": 50 + i - 1} if i else {}
        cells[f"carry_{i}"] = cell("CCU2C", "", A0=10, COUT=50 + i, S0=59 if i == 7 else 70 + i, **carry)
    assert levels(cells, NAMES) == ["   2 u_a.to_q (DI)  from u_a.from_q"]


def test_memories_and_multipliers_end_ways(levels: Any) -> None:
    cells = {
        "begin": flip_flop(3, 10),
        **chain(20, 3, 10),
        "ram": cell("DP16KD", "rtl/b.sv:3.1-4.2", ADA0=22, DOA0=30, CLKA=2),
        "product": cell("MULT18X18D", "rtl/c.sv:3.1-4.2", A0=31, P0=32),
        "behind": lut(31, 30),
        "small": cell("TRELLIS_DPR16X4", "rtl/d.sv:1.1-1.2", RAD=[32], DO=[33], DI=[10], WCK=2),
        "end": flip_flop(34, 40),
        "last": lut(34, 33),
    }
    assert levels(cells, NAMES) == [
        "   3 DP16KD of rtl/b.sv:3 (ADA0)  from u_a.from_q",
        "   2 u_a.to_q (DI)  from MULT18X18D of rtl/c.sv:3",
        "   1 MULT18X18D of rtl/c.sv:3 (A0)  from DP16KD of rtl/b.sv:3",
        "   0 TRELLIS_DPR16X4 of rtl/d.sv:1 (DI)  from u_a.from_q",
    ]


def test_ports_count_when_asked(levels: Any) -> None:
    cells = {**chain(20, 4, 3), "end": flip_flop(23, 40), "out": lut(90, 40)}
    assert levels(cells, NAMES) == []
    assert levels(cells, NAMES, "--ports") == ["   4 u_a.to_q (DI)  from in_i", "   1 out_o (out)  from u_a.to_q[0]"]


def test_a_register_without_a_name_has_its_line(levels: Any) -> None:
    cells = {"begin": flip_flop(3, 10), "end": flip_flop(20, 44), "way": lut(20, 10)}
    assert levels(cells, {**NAMES, "$gone": [44]}) == ["   1 TRELLIS_FF of rtl/a.sv:7 (DI)  from u_a.from_q"]


def test_options(levels: Any) -> None:
    cells = {"begin": flip_flop(3, 10), **chain(20, 5, 10), "end": flip_flop(24, 40), "near": flip_flop(45, 46), "way": lut(45, 40)}
    names = {**NAMES, "near_q": [46]}
    assert len(levels(cells, names)) == 2 and len(levels(cells, names, "--rows", "1")) == 1
    assert levels(cells, names, "--least", "5", status=1) == ["   5 u_a.to_q (DI)  from u_a.from_q"]
    assert levels(cells, names, "--least", "6") == []
    assert levels(cells, names, "--from", "to_q") == ["   1 near_q (DI)  from u_a.to_q[0]"]
    steps = levels(cells, names, "--chain", "to_q")
    assert [s.split()[0] for s in steps[1:]] == ["0", "1", "2", "3", "4", "5"] and steps[1].endswith("u_a.from_q")


def test_a_loop_of_logic_is_told(levels: Any) -> None:
    cells = {"a": lut(20, 21), "b": lut(21, 20), "end": flip_flop(20, 40)}
    assert any("loop" in line for line in levels(cells, NAMES, status=1))
