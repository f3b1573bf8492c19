# SPDX-License-Identifier: Apache-2.0
"""scripts/routed-check: what it takes for a netlist that nextpnr has kept, and what not."""

from __future__ import annotations

import json
import subprocess
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
from pathlib import Path
from typing import Any

import pytest

TOP = Path(__file__).resolve().parents[2]


def script() -> Any:
    loader = SourceFileLoader("routed_check", str(TOP / "scripts/routed-check"))
    spec = spec_from_loader("routed_check", loader)
    assert spec
    module = module_from_spec(spec)
    loader.exec_module(module)
    return module


def design(ways: list[str]) -> dict[str, Any]:
    """A tile with a LUT of each use, one block RAM and one multiplier; the ways of one net."""
    uses = {"A.K0": "CCU2", "A.K1": "CCU2", "B.K0": "DPRAM", "C.K1": "RAMW_BLOCK", "D.K0": "", "D.K1": ""}
    cells: dict[str, Any] = {
        at: {"type": "TRELLIS_COMB", "parameters": {"MODE": use} if use else {}, "attributes": {"NEXTPNR_BEL": f"X7/Y9/SLICE{at}"}, "connections": {}}
        for at, use in uses.items()
    }
    for kind, inputs in script().INPUTS.items():
        cells[kind] = {"type": kind, "parameters": {}, "attributes": {"NEXTPNR_BEL": "X1/Y1/EBR0"}, "connections": {name: [] for name in sorted(inputs)}}
    routing = ";".join(f"X7/Y9/W;X7/Y9/{way};1" for way in ways)
    top = {"cells": cells, "netnames": {"n": {"attributes": {"ROUTING": routing}}, "m": {"attributes": {}}}}
    return {"modules": {"model": {"cells": {}}, "top": top}}


def check(folder: Path, given: dict[str, Any]) -> tuple[int, list[str]]:
    (folder / "routed.json").write_text(json.dumps(given))
    done = subprocess.run([TOP / "scripts/routed-check", folder / "routed.json"], capture_output=True, text=True, check=False)
    assert not done.stderr
    return done.returncode, done.stdout.splitlines()


# Carry cells, LUT RAM, its write ports.
STRAIGHT = ["0_0_A0->0_0_A0_SLICE", "0_0_C2->0_0_C2_SLICE", "0_0_D5->0_0_D5_SLICE"]


def test_a_netlist_as_it_should_be(tmp_path: Path) -> None:
    # (In a carry cell A stands for B, and in a LUT anything for anything. Another tile has other LUTs.)
    allowed = ["0_0_A1->0_0_B1_SLICE", "0_0_D0->0_0_C0_SLICE", "0_0_A6->0_0_D6_SLICE", "0_0_C7->0_0_B7_SLICE", "0_-1_H02E0101->0_0_A0"]
    assert check(tmp_path, design(STRAIGHT + allowed)) == (
        0,
        [
            "ok - 3 inputs of carry cells where they belong",
            "ok - 1 inputs of LUT RAM where they belong",
            "ok - 1 inputs of LUT RAM's write ports where they belong",
            "ok - 1 block RAMs have all their inputs",
            "ok - 1 multipliers have all their inputs",
        ],
    )


@pytest.mark.parametrize(
    ("way", "said"),
    [
        ("0_0_A1->0_0_C1_SLICE", "1 of 2 inputs of carry cells"),
        ("0_0_D0->0_0_B0_SLICE", "1 of 2 inputs of carry cells"),
        ("0_0_A2->0_0_B2_SLICE", "1 of 2 inputs of LUT RAM"),
        ("0_0_D5->0_0_A5_SLICE", "1 of 2 inputs of LUT RAM's write ports"),
    ],
)
def test_a_swapped_input_is_found(tmp_path: Path, way: str, said: str) -> None:
    status, rows = check(tmp_path, design([*STRAIGHT, way]))
    assert status == 1 and [row for row in rows if row.startswith("not ok")] == [f"not ok - {said} are swapped: X7/Y9/{way} of n"]


@pytest.mark.parametrize(("kind", "port"), [("DP16KD", "CSB2"), ("DP16KD", "DIA17"), ("MULT18X18D", "C0"), ("MULT18X18D", "RST3")])
def test_a_lost_input_is_found(tmp_path: Path, kind: str, port: str) -> None:
    given = design(STRAIGHT)
    del given["modules"]["top"]["cells"][kind]["connections"][port]
    status, rows = check(tmp_path, given)
    what = "block RAMs" if kind == "DP16KD" else "multipliers"
    assert status == 1 and [row for row in rows if row.startswith("not ok")] == [f"not ok - 1 of 1 {what} have lost inputs that nothing drives: {port} of {kind}"]


def test_what_has_not_been_routed_is_not_taken_for_good(tmp_path: Path) -> None:
    status, rows = check(tmp_path, design(STRAIGHT[1:]))
    assert status == 1 and rows[0] == "not ok - no way into carry cells was found"
    given = design(STRAIGHT)
    given["modules"]["top"]["cells"] = {"a": {"type": "TRELLIS_FF", "parameters": {}, "attributes": {}, "connections": {}}}
    status, rows = check(tmp_path, given)
    assert status == 1 and rows[0].startswith("not ok - ") and rows[0].endswith(": it is no netlist that nextpnr has routed")


@pytest.mark.parametrize("text", [None, "", "{}", '{"modules": {}}', '{"modules": {"top": {"cells": {"a": {"type": "TRELLIS_COMB"}}}}}', '{"modules": {"top": {"ce'])
def test_what_is_no_netlist_is_said(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "routed.json").write_text(text)
    done = subprocess.run([TOP / "scripts/routed-check", tmp_path / "routed.json"], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "routed.json is no netlist that nextpnr has written: " in done.stdout and not done.stderr


def test_places_and_uses_that_are_not_known(tmp_path: Path) -> None:
    given = design([*STRAIGHT, "0_0_A1->0_0_C1_SLICE"])
    cells = given["modules"]["top"]["cells"]
    for cell in cells.values():
        cell["attributes"]["NEXTPNR_BEL"] = cell["attributes"]["NEXTPNR_BEL"].replace("SLICEA", "SLICEXA")
    status, rows = check(tmp_path, given)
    assert status == 1 and rows[0] == "not ok - 2 LUTs are at no place that is known: A.K0"
    given = design(STRAIGHT)
    cells = given["modules"]["top"]["cells"]
    cells["ramw"] = {"type": "TRELLIS_RAMW", "parameters": {}, "attributes": {"NEXTPNR_BEL": "X7/Y9/SLICEC.RAMW"}, "connections": {}}
    assert check(tmp_path, given)[0] == 0
    del cells["C.K1"]["parameters"]["MODE"]
    status, rows = check(tmp_path, given)
    assert status == 1 and rows[0] == "not ok - there is LUT RAM, and which LUTs it has is not said (MODE)"
