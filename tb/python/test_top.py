# SPDX-License-Identifier: Apache-2.0
"""`coltrain top` in a terminal: training and inference have the colours that they have in reports."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import subprocess
import time
from pathlib import Path

import pytest
from coltrain.reports.charts import COLOURS
from conftest import TOP

COMMAND = str(TOP / os.environ.get("BUILD", "build") / "bin/coltrain")
STEPS = (0, 95, 135, 175, 215, 255)  # of a terminal's 256 colours


def rgb_of(number: int) -> tuple[int, ...]:
    at = number - 16
    return tuple(STEPS[k] for k in (at // 36, at // 6 % 6, at % 6))


def screen_of(folder: Path) -> str:
    """What a terminal gets until units are shown, or for a minute."""
    environment = os.environ | {"COLTRAIN_RUN_DIR": str(folder), "TERM": "xterm-256color"}
    environment.pop("NO_COLOR", None)
    try:
        master, slave = pty.openpty()
    except OSError as error:
        pytest.skip(f"no terminal can be opened here: {error}")
    job = subprocess.Popen([COMMAND, "train", "--epochs", "200"], env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    end, found = time.monotonic() + 60, b""
    try:
        while not list(folder.glob("*.sock")) and time.monotonic() < end:
            time.sleep(0.05)
        top = subprocess.Popen([COMMAND, "top", str(job.pid)], env=environment, stdin=slave, stdout=slave, stderr=slave)
        while b"VS  " not in found and time.monotonic() < end:
            if select.select([master], [], [], 0.5)[0]:
                found += os.read(master, 65536)
        top.send_signal(signal.SIGINT)
        top.wait(10)
    finally:
        job.kill()
        job.wait()
        os.close(slave)
        os.close(master)
    return found.decode()


def test_colours_are_those_of_reports(tmp_path: Path) -> None:
    screen = screen_of(tmp_path)
    assert "inference (i, blue) and training (t, orange)" in screen
    used = {int(n) for n in re.findall(r"\x1b\[48;5;(\d+)m", screen)}
    assert len(used) == 1, used  # a job that only trains
    want = [int(COLOURS["train"][i : i + 2], 16) for i in (1, 3, 5)]
    assert max(abs(a - b) for a, b in zip(rgb_of(used.pop()), want, strict=True)) <= 24
