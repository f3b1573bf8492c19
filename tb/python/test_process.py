# SPDX-License-Identifier: Apache-2.0
"""What a process goes through: Ctrl-C, and its end with everything open."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

from conftest import TOP

WAITING = """
import coltrain, numpy
device = coltrain.open("sim:")
model = device.model([16, 4])
rows, answers = model.rows(1), model.answers(1)
rows.write(numpy.zeros((1, 16)))
future = model.infer_submit(rows, answers, cycle=10**15)
print("waiting", flush=True)
try:
    future.result()
except KeyboardInterrupt:
    print("interrupted", future.done(), device.outstanding(coltrain.Queue.INFERENCE))
"""

LEFT_OPEN = """
import coltrain, logging, numpy
logging.basicConfig(level=logging.WARNING)
device = coltrain.open("{uri}")
model = device.model([16, 4])
rows, answers = model.rows(1), model.answers(2)
rows.write(numpy.zeros((1, 16)))
model.infer_submit(rows, answers)
server = model.serve()
server.push(rows, answers, answer=1)
device.cycle = [device, model, server]
"""


def start(program: str) -> subprocess.Popen[str]:
    environment = {**os.environ, "PYTHONPATH": str(TOP / "host/python")}
    pipe = subprocess.PIPE
    return subprocess.Popen([sys.executable, "-c", program], env=environment, stdout=pipe, stderr=pipe, text=True)


def test_an_interrupt_is_heard_while_a_wait_has_no_end() -> None:
    process = start(WAITING)
    assert process.stdout and process.stdout.readline() == "waiting\n"
    time.sleep(0.3)
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert (out, err) == ("interrupted False 1\n", "")
    assert time.monotonic() - began < 5 and process.returncode == 0


def test_a_process_may_end_with_everything_open() -> None:
    for uri in ("emu:", "sim:"):
        process = start(LEFT_OPEN.replace("{uri}", uri))
        out, err = process.communicate(timeout=20)
        assert (process.returncode, out) == (0, ""), err
        assert err.splitlines() == ["WARNING:coltrain:closed with 2 jobs or requests that nobody reaped"], err


def test_numpy_that_is_missing_is_named() -> None:
    program = "import sys; sys.modules['numpy'] = None; import importlib.util as u; u.find_spec = lambda n: None; import coltrain"
    process = start(program + "; coltrain.open('emu:')")
    _, err = process.communicate(timeout=20)
    assert process.returncode == 1 and "needs NumPy: install Debian's package python3-numpy" in err
