# SPDX-License-Identifier: Apache-2.0
"""scripts/floorplan on a small made-up core: every site is given once, kinds keep to their own sites, the scratchpad stays where it was put, and the
second pass makes wires shorter (measured here, not by the script). CT_SEED draws another core."""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

TOP = Path(__file__).resolve().parents[2]
SEED = int(os.environ.get("CT_SEED", "1"))
COLUMNS, INPUTS = 3, 16
Design = dict[str, Any]
SITE = {"MULT18X18D": r"X\d+/Y(34|58|10)/MULT18_[0145]$", "DP16KD": r"X\d+/Y(22|46|70|82)/EBR[0-3]$"}
SITE["PDPW16KD"] = SITE["DP16KD"]


def cell(kind: str, parameters: dict[str, str] | None = None, **connections: list[int]) -> dict[str, Any]:
    return {"type": kind, "parameters": parameters or {}, "attributes": {}, "connections": connections}


def core() -> Design:
    """Multipliers of COLUMNS columns, accumulators, two banks of scratchpad, block RAMs of both forms that read it, and LUTs on all their wires."""
    cells: dict[str, Any] = {}
    weights = list(range(2, 2 + 128 * COLUMNS))
    for column in range(COLUMNS):
        for k in range(INPUTS):
            bit = weights[128 * column + 8 * k]
            cells[f"product_{column}_{k}"] = cell("MULT18X18D", A0=[1000 + k], B0=[bit], P0=[2000 + column])
        for part in range(4):
            cells[f"u_mxu.u_acc.g_mem[0].mem.0.{4 * column + part}"] = cell("DP16KD", {"DATA_WIDTH_A": f"{9:032b}"}, DIA0=[2000 + column])
    for bank in range(2):
        for word in range(2):
            for bits in range(3):
                cells[f"u_spm.g_bank[{bank}].mem.{word}.{bits}"] = cell("DP16KD", {"DATA_WIDTH_A": f"{18:032b}"}, DIA0=[3000 + bits])
    for i in range(6):
        cells[f"queue_{i}"] = cell("PDPW16KD", {"DATA_WIDTH_W": f"{36:032b}"}, DI0=[4000 + i], DO0=[3000 + i % 3])
    for i, net in enumerate([*range(1000, 1000 + INPUTS), *range(2000, 2000 + COLUMNS), *range(3000, 3003), *range(4000, 4006)]):
        cells[f"lut_{i}"] = cell("LUT4", Z=[net])
    return {"modules": {"top": {"cells": cells, "netnames": {"u_mxu.u_dots.w_q": {"bits": weights}}}}}


def cells_of(design: Design) -> dict[str, Any]:
    cells: dict[str, Any] = design["modules"]["top"]["cells"]
    return cells


def places(design: Design, attribute: str = "BEL") -> dict[str, str]:
    return {name: c["attributes"][attribute] for name, c in cells_of(design).items() if attribute in c["attributes"]}


def sound(design: Design) -> dict[str, str]:
    at = places(design)
    assert len(set(at.values())) == len(at), "a site is given twice"
    for name, bel in at.items():
        assert re.match(SITE[cells_of(design)[name]["type"]], bel), (name, bel)
    return at


def wire(design: Design, at: dict[str, str]) -> int:
    """Half the perimeter of every net's box, in sites."""
    ends: dict[int, list[tuple[int, int]]] = {}
    for name, c in cells_of(design).items():
        found = re.match(r"X(\d+)/Y(\d+)/", at[name])
        assert found
        for net in {b for bits in c["connections"].values() for b in bits}:
            ends.setdefault(net, []).append((int(found[1]), int(found[2])))
    return sum(max(xs) - min(xs) + max(ys) - min(ys) for xs, ys in (zip(*e) for e in ends.values()))


@pytest.fixture
def floorplan(tmp_path: Path) -> Any:
    def run(*designs: Design) -> Design:
        files = [tmp_path / f"{i}.json" for i in range(len(designs))]
        for file, design in zip(files, designs):
            file.write_text(json.dumps(design))
        out = tmp_path / "out.json"
        first = ["--improve"] if len(designs) == 2 else []
        done = subprocess.run([sys.executable, TOP / "scripts/floorplan", *first, *files, out], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        result: Design = json.loads(out.read_text())
        return result

    return run


def placed_by_nextpnr(design: Design, rng: random.Random) -> Design:
    """As nextpnr writes it: every cell has a place, what has none yet a random one, and both forms of block RAM are one."""
    rams = [f"X{4 + 9 * b + 2 * z}/Y{y}/EBR{z}" for y in (22, 46, 70, 82) for b in range(7) for z in range(4)]
    free = [s for s in rams if s not in places(design).values()]
    rng.shuffle(free)
    placed: Design = json.loads(json.dumps(design))
    for c in cells_of(placed).values():
        kind = c["type"]
        given = c["attributes"].get("BEL")
        lut = f"X{rng.randrange(1, 125)}/Y{rng.randrange(1, 94)}/SLICEA.LUT0"
        c["attributes"]["NEXTPNR_BEL"] = given or (lut if kind == "LUT4" else free.pop())
        c["type"] = {"PDPW16KD": "DP16KD", "LUT4": "TRELLIS_COMB"}.get(kind, kind)
    return placed


def test_begins_with_places_for_what_the_core_is_made_of(floorplan: Any) -> None:
    at = sound(floorplan(core()))
    assert {n for n in at if n.startswith("product")} == {n for n in cells_of(core()) if n.startswith("product")}
    assert sum("u_acc" in n for n in at) == 4 * COLUMNS
    banks = {n: at[n] for n in at if "u_spm" in n}
    assert len(banks) == 12 and all(re.search(r"/Y(70|82)/", b) for b in banks.values())
    # Weights k of all columns side by side: no column of another input between them.
    order = sorted((n for n in at if n.startswith("product")), key=lambda n: (at[n].split("/")[1], int(at[n][1:].split("/")[0])))
    inputs = [int(n.rsplit("_", 1)[1]) for n in order]
    assert sum(a != b for a, b in zip(inputs, inputs[1:])) == INPUTS - 1


@pytest.mark.parametrize("stream", range(3))
def test_improves_what_nextpnr_placed(floorplan: Any, stream: int) -> None:
    rng = random.Random(1000 * SEED + stream)
    print(f"CT_SEED={SEED}, stream {stream}")
    begun = floorplan(core())
    placed = placed_by_nextpnr(begun, rng)
    better = floorplan(placed, begun)
    at = sound(better)
    hard = [n for n, c in cells_of(begun).items() if c["type"] != "LUT4"]
    assert sorted(at) == sorted(hard), "a block RAM or a multiplier was left out"
    for name, bel in places(begun).items():
        if "u_spm" in name:
            assert at[name] == bel, "the scratchpad was moved"
    before = places(placed, "NEXTPNR_BEL")
    assert wire(begun, before | at) < 0.95 * wire(begun, before)


def lut(inputs: list[int], output: int) -> dict[str, Any]:
    made = cell("LUT4", None, Z=[output], **{port: [net] for port, net in zip("ABCD", inputs)})
    return made | {"port_directions": {port: "output" if port == "Z" else "input" for port in made["connections"]}}


def register(data: int, output: int, in_pin: bool) -> dict[str, Any]:
    made = cell("TRELLIS_FF", DI=[data], Q=[output])
    made["attributes"] = {"ioff_dir": "output", "syn_useioff": f"{1:032b}"} if in_pin else {}
    return made | {"port_directions": {"DI": "input", "Q": "output"}}


def bus(width: int) -> Design:
    """A pin that is asked by `taken` for each bit of a bus whose registers are in pins, and by LUTs that have nothing to do with pins, or that a register
    elsewhere uses, too."""
    cells: dict[str, Any] = {"taken": lut([2, 900], 10), "own": lut([2], 11), "elsewhere": lut([901], 12), "shared": lut([2, 903], 14)}
    cells |= {"own_q": register(11, 13, in_pin=False), "shared_q": register(14, 15, in_pin=False), "pin_shared": register(14, 299, in_pin=True)}
    ports: dict[str, Any] = {"ready": {"direction": "input", "bits": [2]}, "data_shared": {"direction": "output", "bits": [299]}}
    for i in range(width):
        cells[f"next_{i}"] = lut([10, 700 + i], 100 + i)
        cells[f"pin_{i}"] = register(100 + i, 200 + i, in_pin=True)
        ports[f"data_{i}"] = {"direction": "output", "bits": [200 + i]}
    return {"modules": {"top": {"ports": ports, "cells": cells, "netnames": {}}}}


@pytest.mark.parametrize("stream", range(4))
def test_goes_straight_from_pin_to_pin(floorplan: Any, stream: int) -> None:
    rng = random.Random(2000 * SEED + stream)
    print(f"CT_SEED={SEED}, stream {stream}")
    width = rng.randrange(1, 33)
    given = bus(width)
    if stream % 2:
        # (Whoever has a site keeps it.)
        for i in range(40):
            cells_of(given)[f"filler_{i}"] = cell("LUT4") | {"attributes": {"BEL": f"X{2 + i // 8 + 4 * stream}/Y2/SLICE{'ABCD'[i // 2 % 4]}.K{i % 2}"}}
    pads = {name: (rng.randrange(2, 60), 0) for name in ("ready", "data_shared", *(f"data_{i}" for i in range(width)))}
    placed: Design = json.loads(json.dumps(given))
    for name, c in cells_of(placed).items():
        x, y = rng.randrange(2, 124), rng.randrange(2, 94)
        c["attributes"]["NEXTPNR_BEL"] = f"X{x}/Y{y}/SLICEA.K0"
        if name.startswith("pin_"):
            x, y = pads[f"data_{name[4:]}"]
            c["type"], c["attributes"]["NEXTPNR_BEL"] = "IOLOGIC", f"X{x}/Y{y}/IOLOGICA"
    cells_of(placed)["ready$tr_io"] = cell("TRELLIS_IO", O=[2]) | {"attributes": {"NEXTPNR_BEL": f"X{pads['ready'][0]}/Y0/PIOA"}}
    at = places(floorplan(placed, given))
    fixed = places(given)
    assert set(at) - set(fixed) == {"taken", *(f"next_{i}" for i in range(width))}
    assert len(set(at.values())) == len(at) and fixed.items() <= at.items()
    spot = {name: (int(bel.split("/")[0][1:]), int(bel.split("/")[1][1:])) for name, bel in at.items()}
    assert all(re.match(r"X\d+/Y\d+/SLICE[ABCD]\.K[01]$", bel) for bel in at.values())

    def way(*points: tuple[int, int]) -> int:
        return sum(abs(a[0] - b[0]) + abs(a[1] - b[1]) for a, b in zip(points, points[1:]))

    for i in range(width):
        straight = abs(pads["ready"][0] - pads[f"data_{i}"][0])
        middle = (min(x for x, _ in pads.values()), max(x for x, _ in pads.values()))
        assert way(pads["ready"], spot["taken"], spot[f"next_{i}"], pads[f"data_{i}"]) <= max(straight, middle[1] - middle[0]) + 16, (i, pads, spot)


@pytest.mark.parametrize("stream", range(3))
def test_room_is_whole_tiles(tmp_path: Path, stream: int) -> None:
    """Where there are conflicts, at most three tiles of ten, and each whole but for what has its site already."""
    rng = random.Random(3000 * SEED + stream)
    print(f"CT_SEED={SEED}, stream {stream}")
    fixed = {f"X{rng.randrange(20, 60)}/Y{rng.randrange(12, 22)}/SLICE{rng.choice('ABCD')}.K{rng.randrange(2)}" for _ in range(40)}
    design: Design = {"modules": {"top": {"cells": {f"fixed_{i}": cell("LUT4") | {"attributes": {"BEL": bel}} for i, bel in enumerate(sorted(fixed))}}}}
    (tmp_path / "in.json").write_text(json.dumps(design))
    (tmp_path / "heat.csv").write_text("".join("".join(f"{40 if 20 <= x < 60 and 12 <= y < 22 else 0}," for y in range(97)) + "\n" for x in range(128)))
    subprocess.run([sys.executable, TOP / "scripts/floorplan", "--ease", "heat.csv", "in.json", "out.json"], cwd=tmp_path, check=True)
    at = places(json.loads((tmp_path / "out.json").read_text()))
    sites = sorted(at.values())
    assert len(set(sites)) == len(sites)
    tiles: dict[tuple[int, int], int] = {}
    for name, bel in at.items():
        x, y = (int(part[1:]) for part in bel.split("/")[:2])
        if name.startswith("$filler"):
            tiles[x, y] = tiles.get((x, y), 0) + 1
            assert 16 <= x < 64 and 8 <= y < 26, "far from all conflicts"
    for (x, y), count in tiles.items():
        assert count == 8 - sum(bel.startswith(f"X{x}/Y{y}/") for bel in fixed)
    inside = [tile for tile in tiles if 20 <= tile[0] < 60 and 12 <= tile[1] < 22]
    assert 0.2 * 400 < len(inside) <= 0.31 * 400
