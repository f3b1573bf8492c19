# SPDX-License-Identifier: Apache-2.0
"""scripts/io-registers on small netlists: which registers go into pins, which are copied for it, and what it says where it cannot be."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

TOP = Path(__file__).resolve().parents[2]
Cell = dict[str, Any]
USE = f"{1:032b}"


def cell(kind: str, inputs: dict[str, int | str], outputs: dict[str, int], parameters: dict[str, str] | None = None) -> Cell:
    directions = {**dict.fromkeys(inputs, "input"), **dict.fromkeys(outputs, "output")}
    if kind == "TRELLIS_IO":
        directions["B"] = "inout"
    ends = {port: [bit] for port, bit in {**inputs, **outputs}.items()}
    return {"type": kind, "parameters": parameters or {}, "attributes": {}, "port_directions": directions, "connections": ends}


def register(data: int | str, output: int, clock: int = 2, reset: int | str = 3, **parameters: str) -> Cell:
    # (As Yosys writes it: a text of digits has a blank behind it.)
    return cell("TRELLIS_FF", {"CLK": clock, "DI": data, "LSR": reset}, {"Q": output}, {"CEMUX": "1 ", **parameters})


def netlist() -> dict[str, Any]:
    """An output whose register is read, too; a bus of two bidirectional pins with one enable; an input behind a delay."""
    cells = {
        "out": register(20, 10),
        "reader": register(10, 20),
        "pad0": cell("TRELLIS_IO", {"B": 11, "I": 21, "T": 23}, {"O": 24}),
        "pad1": cell("TRELLIS_IO", {"B": 12, "I": 22, "T": 23}, {"O": 25}),
        "data0": register("0", 21),
        "data1": register("0", 22),
        "enable": register("0", 23),
        "taken0": register(24, 26, reset="0", CLKMUX="INV"),
        "taken1": register(25, 27, reset="0", CLKMUX="INV"),
        "late": cell("DELAYG", {"A": 13}, {"Z": 28}),
        "taken": register(28, 29),
    }
    ports = {
        "clk": {"direction": "input", "bits": [2]},
        "strobe": {"direction": "output", "bits": [10]},
        "bus": {"direction": "inout", "bits": [11, 12]},
        "flag": {"direction": "input", "bits": [13]},
    }
    bits = sorted({bit for c in cells.values() for ends in c["connections"].values() for bit in ends if isinstance(bit, int)})
    return {"cells": cells, "ports": ports, "netnames": {f"n{bit}": {"bits": [bit]} for bit in bits}}


def run(folder: Path, module: dict[str, Any], *ports: str) -> tuple[int, str, dict[str, Any]]:
    path = folder / "top.json"
    path.write_text(json.dumps({"modules": {"top": module}}))
    done = subprocess.run([TOP / "scripts/io-registers", path, "top", *ports], capture_output=True, text=True, check=False)
    return done.returncode, done.stdout, json.loads(path.read_text())["modules"]["top"]


def test_registers_go_into_their_pins(tmp_path: Path) -> None:
    status, said, module = run(tmp_path, netlist(), "strobe", "bus", "flag")
    assert status == 0 and "8 registers" in said, said
    cells = module["cells"]
    marked = {name: c["attributes"]["ioff_dir"] for name, c in cells.items() if c["attributes"].get("syn_useioff") == USE}
    assert sorted(marked.values()) == ["input"] * 3 + ["output"] * 5
    assert {"taken", "taken0", "taken1"} == {name for name, way in marked.items() if way == "input"}
    # The register that is read stays, and the pin has a copy of its own.
    assert "out" not in marked and cells["reader"]["connections"]["DI"] == [10]
    (strobe,) = module["ports"]["strobe"]["bits"]
    (copy,) = [name for name, c in cells.items() if c["connections"].get("Q") == [strobe]]
    assert copy in marked and cells[copy]["connections"]["DI"] == [20] and strobe not in (10, 20)
    # Each pin of the bus has an enable of its own, equal to the other.
    enables = [cells[pad]["connections"]["T"][0] for pad in ("pad0", "pad1")]
    assert len(set(enables)) == 2
    for enable in enables:
        (name,) = [name for name, c in cells.items() if c["connections"].get("Q") == [enable]]
        assert name in marked and cells[name]["connections"]["CLK"] == [2] and cells[name]["connections"]["LSR"] == [3]
        users = [n for n, c in cells.items() if any([enable] == ends and c["port_directions"][port] != "output" for port, ends in c["connections"].items())]
        assert len(users) == 1
    # A reset that never comes is none.
    assert "LSR" not in cells["taken0"]["connections"] and "LSR" not in cells["taken0"]["port_directions"]
    assert (tmp_path / "top.falling").read_text().split() == ["pad0$IOL", "pad1$IOL"]


def logic_behind(m: dict[str, Any]) -> None:
    m["cells"]["not"] = cell("LUT4", {"A": 10}, {"Z": 40})
    m["ports"]["strobe"]["bits"] = [40]


def enable(m: dict[str, Any]) -> None:
    m["cells"]["out"]["parameters"]["CEMUX"] = "CE"


def logic_before(m: dict[str, Any]) -> None:
    m["cells"]["taken"] = cell("LUT4", {"A": 28}, {"Z": 29})


def two_takers(m: dict[str, Any]) -> None:
    m["cells"]["again"] = register(24, 41)


def constant(m: dict[str, Any]) -> None:
    m["ports"]["strobe"]["bits"] = ["1"]


def no_pad(m: dict[str, Any]) -> None:
    del m["cells"]["pad1"]


def two_resets(m: dict[str, Any]) -> None:
    m["cells"]["data1"] = register("0", 22, reset=4)


def two_clocks(m: dict[str, Any]) -> None:
    m["cells"]["taken1"] = register(25, 27, clock=5, reset="0")


def open_end(end: str) -> Any:
    def change(m: dict[str, Any]) -> None:
        del m["cells"]["pad1"]["connections"][end]

    return change


def no_bits(m: dict[str, Any]) -> None:
    m["cells"]["pad1"]["connections"]["T"] = []


def straight_out(m: dict[str, Any]) -> None:
    m["ports"]["lamp"] = {"direction": "output", "bits": [13]}


def only_out(m: dict[str, Any]) -> None:
    straight_out(m)
    del m["cells"]["late"], m["cells"]["taken"]


def out_behind_the_delay(m: dict[str, Any]) -> None:
    m["ports"]["lamp"] = {"direction": "output", "bits": [28]}


def open_delay(m: dict[str, Any]) -> None:
    del m["cells"]["late"]["connections"]["Z"]


def comes_and_goes(m: dict[str, Any]) -> None:
    m["ports"]["strobe"]["bits"] = [29]


def takes_and_goes(m: dict[str, Any]) -> None:
    comes_and_goes(m)
    m["cells"]["again"] = register(29, 40)


def has(name: str, **parameters: str) -> Any:
    def change(m: dict[str, Any]) -> None:
        m["cells"][name]["parameters"].update(parameters)

    return change


def end_of(name: str, port: str, *bits: int | str) -> Any:
    def change(m: dict[str, Any]) -> None:
        m["cells"][name]["connections"][port] = list(bits)
        m["cells"][name]["port_directions"][port] = "input"

    return change


def no_clock(m: dict[str, Any]) -> None:
    del m["cells"]["taken"]["connections"]["CLK"]


def falls_into(kind: str, port: str) -> Any:
    def change(m: dict[str, Any]) -> None:
        m["cells"]["next"] = register(26, 40)
        m["cells"]["other"] = cell(kind, {"CLK": 2, port: 26}, {"Q": 41})

    return change


def falls_out(m: dict[str, Any]) -> None:
    m["ports"]["lamp"] = {"direction": "output", "bits": [26]}


def falls_from_a_port(m: dict[str, Any]) -> None:
    has("taken", CLKMUX="INV")(m)
    m["cells"]["other"] = cell("LUT4", {"A": 29}, {"Z": 41})


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (logic_behind, "strobe: bit 0: it comes from a LUT4 (not)"),
        (enable, "strobe: bit 0: its register (out"),
        (logic_before, "flag: bit 0: it goes to LUT4 (1)"),
        (two_takers, "bus: bit 0: it goes to TRELLIS_FF (2)"),
        (constant, "strobe: bit 0: nothing drives it"),
        (no_pad, "bus: bit 1: it has no bidirectional pad"),
        (two_resets, "differ in LSR"),
        (two_clocks, "differ in CLK"),
        (open_end("I"), "bus: bit 1: its pad (pad1) has no I"),
        (open_end("T"), "bus: bit 1: its pad (pad1) has no T"),
        (open_end("O"), "bus: bit 1: its pad (pad1) has no O"),
        (no_bits, "bus: bit 1: its pad (pad1) has no T"),
        (straight_out, "flag: bit 0: it goes to DELAYG and the port lamp (2), not to one register"),
        (only_out, "flag: bit 0: it goes to the port lamp (1), not to one register"),
        (out_behind_the_delay, "flag: bit 0: it goes to TRELLIS_FF and the port lamp (2), not to one register"),
        (open_delay, "flag: bit 0: it goes to nothing (0)"),
        (comes_and_goes, "flag: bit 0: its register (taken) is to be both an input's and an output's"),
        (takes_and_goes, "flag: bit 0: it goes to TRELLIS_FF (2), not to one register"),
        (has("out", LSRMUX="INV"), "strobe: bit 0: its register (out$pin30) has an LSRMUX of INV"),
        (has("taken", LSRMUX="0 "), "flag: bit 0: its register (taken) has an LSRMUX of 0"),
        (has("data1", CLKMUX="INV"), "bus: bit 1: its registers (data1, enable) differ in CLKMUX"),
        (has("data1", SRMODE="LSR_OVER_CE"), "bus: bit 1: its registers (data1, enable, taken1) differ in SRMODE"),
        (has("taken1", SRMODE="LSR_OVER_CE"), "bus: bit 1: its registers (data1, enable, taken1) differ in SRMODE"),
        (end_of("taken1", "LSR", 4), "bus: bit 1: its registers (data1, enable, taken1) differ in LSR"),
        (end_of("taken", "LSR", "1"), "flag: bit 0: its register (taken) has a constant reset (1)"),
        (end_of("taken1", "LSR", "x"), "bus: bit 1: its register (taken1) has a constant reset (x)"),
        (end_of("taken", "CLK", "0"), "flag: bit 0: its register (taken) has no clock"),
        (no_clock, "flag: bit 0: its register (taken) has no clock"),
        (falls_into("LUT4", "A"), "bus: bit 0: its register (taken0) takes at the falling edge and goes to LUT4 and TRELLIS_FF, not only"),
        (falls_into("TRELLIS_FF", "LSR"), "bus: bit 0: its register (taken0) takes at the falling edge and goes to TRELLIS_FF, not only to the data"),
        (falls_into("TRELLIS_FF", "CE"), "bus: bit 0: its register (taken0) takes at the falling edge and goes to TRELLIS_FF, not only to the data"),
        (falls_out, "bus: bit 0: its register (taken0) takes at the falling edge and goes to the port lamp, not only"),
        (falls_from_a_port, "flag: bit 0: its register (taken) takes at the falling edge and goes to LUT4, not only"),
    ],
)
def test_a_pin_that_cannot_have_its_register_is_named(tmp_path: Path, change: Any, said: str) -> None:
    module = netlist()
    change(module)
    status, text, after = run(tmp_path, module, "strobe", "bus", "flag")
    assert status == 1 and said in text and text.count("not ok") == 1, text
    assert after == module and not (tmp_path / "top.falling").exists()


def test_what_the_registers_of_a_pad_may_have(tmp_path: Path) -> None:
    """A reset of the taker's that is the others', and modes and edges that are named but equal."""
    module = netlist()
    module["cells"]["taken0"]["connections"]["LSR"] = [3]
    module["cells"]["taken1"]["connections"]["LSR"] = []
    for name in ("data0", "data1", "enable", "taken0", "taken1"):
        module["cells"][name]["parameters"].update(LSRMUX="LSR", SRMODE="LSR_OVER_CE")
    for name in ("data0", "data1"):
        module["cells"][name]["parameters"]["CLKMUX"] = "CLK"
    status, said, after = run(tmp_path, module, "bus")
    assert status == 0, said
    assert after["cells"]["taken0"]["connections"]["LSR"] == [3] and "LSR" not in after["cells"]["taken1"]["connections"]


def test_registers_may_follow_one_of_the_falling_edge(tmp_path: Path) -> None:
    module = netlist()
    falls_into("TRELLIS_FF", "M")(module)
    has("taken", CLKMUX="INV")(module)
    module["cells"]["after"] = register(29, 42)
    status, said, _ = run(tmp_path, module, "bus", "flag")
    assert status == 0, said
    assert (tmp_path / "top.falling").read_text().split() == ["pad0$IOL", "pad1$IOL", "flag$tr_io$IOL"]


@pytest.mark.parametrize(("change", "name"), [(comes_and_goes, "taken"), (takes_and_goes, "taken$pin30")])
def test_an_input_and_then_an_output_of_one_register(tmp_path: Path, change: Any, name: str) -> None:
    """Whichever port comes first."""
    module = netlist()
    change(module)
    status, text, _ = run(tmp_path, module, "flag", "strobe")
    assert status == 1 and text == f"not ok - no register fits into the pin strobe: bit 0: its register ({name}) is to be both an input's and an output's\n"


def test_a_port_that_is_not_there(tmp_path: Path) -> None:
    status, text, _ = run(tmp_path, netlist(), "strobe", "stroke")
    assert status == 1 and "stroke: there is no such port" in text


def test_a_port_that_is_given_twice(tmp_path: Path) -> None:
    status, text, after = run(tmp_path, netlist(), "strobe", "flag", "strobe")
    assert status == 1 and text == "not ok - the port strobe is given twice\n"
    assert after == netlist() and not (tmp_path / "top.falling").exists()
