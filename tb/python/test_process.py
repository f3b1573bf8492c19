# SPDX-License-Identifier: Apache-2.0
"""What a process goes through: Ctrl-C, a fork, and its end with everything open."""

from __future__ import annotations

import copy
import os
import pickle
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable

import coltrain
import numpy as np
import pytest
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
    # Tests that run in the background have inherited that SIGINT is ignored.
    heard = lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)  # noqa: E731
    return subprocess.Popen([sys.executable, "-c", program], env=environment, stdout=pipe, stderr=pipe, text=True, preexec_fn=heard)


def test_an_interrupt_is_heard_while_a_wait_has_no_end() -> None:
    process = start(WAITING)
    assert process.stdout and process.stdout.readline() == "waiting\n"
    time.sleep(0.3)
    began = time.monotonic()
    process.send_signal(signal.SIGINT)
    try:
        out, err = process.communicate(timeout=20)
    finally:
        process.kill()
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


FORKED = """
import os, sys, threading, warnings
warnings.simplefilter("ignore", DeprecationWarning)  # since 3.12 Python warns of any fork beside threads
import coltrain, numpy
device = coltrain.open("{uri}")
model = device.model([16, 4])
model.training(8, 0.1)
x, y = numpy.ones((8, 16), numpy.float32), numpy.zeros(8, int)
batch = model.batch()
batch.write(x, y)
futures = [model.step_submit(batch) for _ in range(8)]
waiter = threading.Thread(target=lambda: [future.result() for future in futures])
waiter.start()
child = os.fork()
if child == 0:
    try:
        model.step(x, y)
    except coltrain.ClosedError as error:
        print(error, device.closed)
    with coltrain.open("{uri}") as own:
        assert (own.matmul(numpy.eye(4), numpy.eye(4)) == numpy.eye(4)).all()
    model.close()
    sys.exit(7)  # with whatever happens at the end of a Python program
print("child", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
waiter.join()
print("steps", model.info.steps, model.step(x, y) >= 0)
"""


def test_a_forked_process_leaves_the_device_alone() -> None:
    """It has none of the threads and locks of the other; before, its end waited for them for ever."""
    for uri in ("emu:", "sim:"):
        process = start(FORKED.replace("{uri}", uri))
        out, err = process.communicate(timeout=30)
        assert (process.returncode, err) == (0, "")
        assert out.splitlines() == [
            f"the device {uri} is of the process that forked this one, which has to open a device of its own True",
            "child 7",
            "steps 8 True",
        ]


def test_nothing_that_is_the_devices_can_be_copied() -> None:
    """A copy would be freed twice."""
    with coltrain.open("emu:") as device:
        model = device.model([4, 3])
        model.training(2, 0.1)
        batch = model.batch()
        batch.write(np.zeros((2, 4)), [0, 1])
        for thing in (device, model, batch, model.rows(1), device.buffer(64), model.step_submit(batch)):
            ways: tuple[Callable[[object], object], ...] = (copy.copy, copy.deepcopy, pickle.dumps)
            for how in ways:
                with pytest.raises(TypeError, match="cannot be copied or pickled"):
                    how(thing)
        assert model.step(np.zeros((2, 4)), [0, 1]) > 0


class Stop(BaseException):
    """As KeyboardInterrupt, but nobody else's."""


def test_interrupts_leave_the_device_usable_and_lose_no_event(seed: int) -> None:
    """Python hears a signal behind any call; before, one in an unlucky place left the device locked for good."""
    rng, armed = random.Random(seed), [False]
    pending: list[coltrain.Future] = []

    def stop(*_: object) -> None:
        if armed[0]:
            armed[0] = False
            raise Stop

    before = signal.signal(signal.SIGALRM, stop)
    interrupts, end = 0, time.monotonic() + 3
    x, y = np.ones((8, 16), np.float32), np.zeros(8, int)
    try:
        with coltrain.open("emu:") as device:
            model = device.model([16, 4])
            model.training(8, 0.1)
            batch = model.batch()
            batch.write(x, y)
            while time.monotonic() < end:
                try:
                    armed[0] = True
                    signal.setitimer(signal.ITIMER_REAL, rng.uniform(0.00005, 0.002))
                    for _ in range(100000):
                        if not armed[0]:
                            break
                        pending.append(model.step_submit(batch))
                        pending[-1].result()
                        pending.clear()
                        model.infer(x)
                except Stop:
                    interrupts += 1
                armed[0] = False
                for future in pending:
                    assert future.result(5).jobs
                pending.clear()
            assert interrupts > 100 and not device._wanting and not device._inside
            assert model.step(x, y) >= 0
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
