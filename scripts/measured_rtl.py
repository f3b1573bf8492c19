# SPDX-License-Identifier: Apache-2.0
"""Which RTL a figure is of: the last commit that changed rtl/. A simulator that was built before a file there changed would measure another one, and is refused."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def commit(top: Path) -> str:
    """Of the RTL in the simulator of build/, eight digits; ends the program if that is older than rtl/."""
    simulator = top / "build/lib/coltrain/sim.so"
    if not simulator.exists():
        sys.exit(f"there is no {simulator.relative_to(top)}: make")
    built = simulator.stat().st_mtime
    newer = sorted(file for file in (top / "rtl").rglob("*") if file.is_file() and file.stat().st_mtime > built)
    if newer:
        sys.exit(f"{newer[0].relative_to(top)} has changed since the simulator was built: make")
    command = ["git", "-C", str(top), "log", "-1", "--format=%h", "--abbrev=8", "--", "rtl"]
    return subprocess.check_output(command, text=True).strip()
