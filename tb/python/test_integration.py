# SPDX-License-Identifier: Apache-2.0
"""docs/integration.md is true: its ports are those of ct_core, Verilator reads its template and its command by hand, its files exist."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
BUILD = TOP / os.environ.get("BUILD", "build")
PAGE = (TOP / "docs/integration.md").read_text(encoding="utf-8")


def between(name: str) -> str:
    return PAGE.split(f"<!-- {name}: begin -->\n")[1].split(f"<!-- {name}: end -->")[0]


def rtl_ports() -> list[tuple[str, str, int]]:
    head = (TOP / "rtl/ct_core.sv").read_text(encoding="utf-8").split(") (\n")[1].split("\n);")[0]
    found = re.findall(r"^ +(input|output) +logic +(?:\[(\d+):0\])? *(\w+)", head, re.MULTILINE)
    return [(name, "in" if way == "input" else "out", int(high or 0) + 1) for way, high, name in found]


def test_ports_are_those_of_the_core() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (in|out) \| (\d+) \|", between("ports"), re.MULTILINE)
    assert [(name, way, int(bits)) for name, way, bits in rows] == rtl_ports()


def test_template_names_every_port() -> None:
    named = re.findall(r"^    \.(\w+) +\(", between("template"), re.MULTILINE)
    parameters = {"Cols", "VpuLanes", "SpmWords", "ClockHz", "DramMib"}
    assert [n for n in named if n not in parameters] == [name for name, _, _ in rtl_ports()]


@pytest.mark.skipif(not shutil.which("verilator"), reason="no Verilator")
def test_template_is_read(tmp_path: Path) -> None:
    source = tmp_path / "my_soc.sv"
    source.write_text(between("template").split("```systemverilog\n")[1].split("```")[0], encoding="utf-8")
    rtl = re.findall(r"^ +- (rtl/\S+\.sv)$", (TOP / "coltrain.core").read_text(encoding="utf-8"), re.MULTILINE)
    subprocess.run(["make", "-s", "gen"], cwd=TOP, check=True)
    words = ["verilator", "--lint-only", "-Wall", "-Irtl/include", f"-I{BUILD}/gen", "--top-module", "my_soc", "rtl/waivers.vlt"]
    done = subprocess.run([*words, *rtl, str(source)], cwd=TOP, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


@pytest.mark.skipif(not shutil.which("verilator"), reason="no Verilator")
def test_the_command_by_hand_is_read() -> None:
    """As it stands there, but for what compiles and runs the model: scripts/fusesoc-check does that with the same bench."""
    command = PAGE.split("    make gen\n    verilator ")[1].split("\n\n")[0]
    build = "--cc --exe --build "
    run = " && obj_dir/Vct_core"
    assert command.startswith(build) and command.endswith(run)
    line = command.removeprefix(build).removesuffix(run).replace("build/gen", f"{BUILD}/gen").replace("$PWD//", "/")
    subprocess.run(["make", "-s", "gen"], cwd=TOP, check=True)
    done = subprocess.run(["sh", "-c", f"verilator --lint-only {line}"], cwd=TOP, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_files_that_are_named_exist() -> None:
    named = re.findall(r"(?<![\w./-])((?:rtl|tb|scripts)/[\w./-]*\w)", PAGE)
    assert {"rtl/ct_core.sv", "tb/integration/minimal.cpp", "scripts/litex-check"} < set(named)
    for name in named:
        assert (TOP / name).exists(), name
