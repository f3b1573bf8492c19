# SPDX-License-Identifier: Apache-2.0
"""Which RTL a figure is of. The simulator is made first, or the figure would be of what rtl/ was when somebody last called make."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SIMULATOR = "build/lib/coltrain/sim.so"


def commit(top: Path) -> str:
    """The last commit that changed rtl/, eight digits; with "-changed" if rtl/ has changed since, as scripts/campaign says it."""
    # (Without what a make around this one has said: its job server cannot be reached from here.)
    alone = {name: value for name, value in os.environ.items() if name not in ("MAKEFLAGS", "MFLAGS", "MAKELEVEL")}
    if subprocess.run(["make", "-s", SIMULATOR], cwd=top, stdout=sys.stderr, env=alone).returncode:
        sys.exit(f"{SIMULATOR} cannot be made")
    git = ["git", "-C", str(top)]
    last = subprocess.check_output([*git, "log", "-1", "--format=%h", "--abbrev=8", "--", "rtl"], text=True).strip()
    changed = subprocess.run([*git, "diff", "--quiet", "HEAD", "--", "rtl"]).returncode
    return last + "-changed" * bool(changed)
