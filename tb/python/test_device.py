# SPDX-License-Identifier: Apache-2.0
"""Devices, products, arrays, errors, buffers, counters."""

from __future__ import annotations

import gc
import logging
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, cast

import coltrain
import numpy as np
import numpy.typing as npt
import pytest


@pytest.fixture(params=["emu:", "sim:core=16x8"])
def device(request: pytest.FixtureRequest) -> Iterator[coltrain.Device]:
    with coltrain.open(request.param) as opened:
        yield opened


def test_info(device: coltrain.Device) -> None:
    info = device.info
    assert info.uri == device.uri and info.array_rows == 16 and info.block == 16
    assert coltrain.Feature.TRAINING in info.features
    assert info.has_clock == device.uri.startswith("sim:")
    assert (device.now() is None) == (not info.has_clock)


def test_matmul_has_the_bits_of_every_device(seed: int) -> None:
    rng = np.random.default_rng(seed)
    m, n, k = (int(v) for v in rng.integers(1, 70, 3))
    a, b = rng.standard_normal((m, k), dtype=np.float32), rng.standard_normal((k, n), dtype=np.float32)
    timing = coltrain.Timing()
    with coltrain.open("emu:") as emu, coltrain.open("sim:") as sim:
        c = emu.matmul(a, b)
        d = sim.matmul(a, b, queue=coltrain.Queue.TRAINING, timing=timing)
    assert c.shape == (m, n) and c.dtype == np.float32
    assert c.tobytes() == d.tobytes()
    assert timing.macs == m * n * k and timing.cycles and timing.cycles > 0
    # HBFP8 keeps 7 bits and a sign: a product of k terms of about 1.
    assert np.abs(c - a @ b).max() < 0.1 * np.sqrt(k)


def test_arrays_are_used_where_they_lie(device: coltrain.Device) -> None:
    a, b = np.eye(16, dtype=np.float32), np.arange(256, dtype=np.float32).reshape(16, 16) % 7
    out = np.zeros((16, 16), dtype=np.float32)
    assert device.matmul(a, b, out=out) is out
    assert (out == b).all()
    # Anything that is no FP32 in C order is converted.
    assert (device.matmul(a.astype(float), b.T.copy().T) == b).all()
    assert (device.matmul(np.eye(16, dtype=int).tolist(), b[:, ::2]) == b[:, ::2]).all()


@pytest.mark.parametrize(
    ("a", "b", "sentence"),
    [
        (np.zeros((2, 3)), np.zeros((4, 2)), r"b has the shape \(4, 2\), but \(3, n\) is needed"),
        (np.zeros(3), np.zeros((3, 2)), r"a has the shape \(3,\), but \(m, k\) is needed"),
        (np.zeros((2, 3), dtype=complex), np.zeros((3, 2)), "a holds complex128"),
        (np.array([["x"]]), np.zeros((1, 1)), "a holds <U1"),
        ([[1, 2], [3]], np.zeros((1, 1)), "a "),
        (np.zeros((0, 3)), np.zeros((3, 2)), "0"),
    ],
)
def test_what_is_no_matrix_is_refused(device: coltrain.Device, a: object, b: object, sentence: str) -> None:
    with pytest.raises(coltrain.ArgumentError, match=sentence):
        device.matmul(a, b)  # type: ignore[arg-type]
    assert (device.matmul(np.eye(2), np.eye(2)) == np.eye(2)).all()


def test_outputs_that_are_refused(device: coltrain.Device) -> None:
    a = np.eye(4, dtype=np.float32)
    locked = np.zeros((4, 4), dtype=np.float32)
    locked.flags.writeable = False
    for out in (np.zeros((4, 4)), np.zeros((4, 8), dtype=np.float32)[:, ::2], locked, np.zeros((4, 3), dtype=np.float32), a, [1]):
        with pytest.raises(coltrain.ArgumentError, match="out "):
            device.matmul(a, a, out=out)  # type: ignore[arg-type]
    assert (a == np.eye(4)).all()


def test_sentences_of_the_library() -> None:
    with pytest.raises(coltrain.NotFoundError, match='there is no transport "nowhere:"') as caught:
        coltrain.open("nowhere:")
    assert caught.value.code == coltrain.ErrorCode.NOT_FOUND and isinstance(caught.value, LookupError)
    with pytest.raises(coltrain.ArgumentError):
        coltrain.open("emu:\0")
    with coltrain.open("emu:dram=4") as small, pytest.raises(coltrain.NoSpaceError, match="memory"):
        small.matmul(np.zeros((4096, 16)), np.zeros((16, 4096)))


def test_closed_devices() -> None:
    device = coltrain.open("emu:")
    model = device.model([4, 2])
    device.close()
    device.close()
    assert device.closed and not model.closed
    for call in (device.now, lambda: device.info, lambda: model.info, lambda: device.model([2, 2]), device.fileno):
        with pytest.raises(coltrain.ClosedError, match="emu:"):
            call()
    model.close()
    assert model.closed and "closed" in repr(model) and "closed" in repr(device)
    with pytest.raises(coltrain.ClosedError, match="Model"):
        model.step([], [])


def test_forgotten_handles_go_with_their_memory() -> None:
    with coltrain.open("emu:dram=4") as device:
        for _ in range(40):  # each takes half a megabyte
            device.model([64, 10]).rows(2000)
            device.buffer(1 << 19)
        gc.collect()
        assert device.buffer(1 << 20).size == 1 << 20


def test_buffers(device: coltrain.Device, seed: int) -> None:
    data = np.random.default_rng(seed).integers(0, 256, 1000, dtype=np.uint8)
    with device.buffer(1024) as buffer:
        buffer.write(data, 8)
        assert (buffer.read(1000, 8) == data).all()
        buffer.write(b"abc")
        buffer.write(np.array([1.5, -2], dtype=np.float64), 16)
        assert bytes(buffer.read(3)) == b"abc"
        assert buffer.read(16, 16).view(np.float64).tolist() == [1.5, -2]
        assert buffer.address % 256 == 0
        assert bytes(buffer.read(np.int64(2), np.int64(1))) == b"bc"
        with pytest.raises(coltrain.ArgumentError, match="not within a buffer of 1024 bytes"):
            buffer.write(data, 1000)
        with pytest.raises(coltrain.ArgumentError, match="offset is -1"):
            buffer.write(data, -1)
    with pytest.raises(coltrain.ClosedError):
        buffer.read()


def test_counters(device: coltrain.Device) -> None:
    before = device.counters(coltrain.Queue.INFERENCE)
    device.matmul(np.ones((16, 16)), np.ones((16, 16)))
    after = device.counters(coltrain.Queue.INFERENCE)
    assert after.keys() == coltrain.counter_texts().keys() and all(coltrain.counter_texts().values())
    assert after["MXU_ROWS"] == before["MXU_ROWS"] + 16
    assert device.counters(coltrain.Queue.TRAINING)["MXU_ROWS"] == 0


def test_policies(device: coltrain.Device) -> None:
    for name in ("priority", "fcfs", "round-robin", "job", "slack"):
        device.set_policy(name)
    device.set_policy(coltrain.Policy.PRIORITY)
    with pytest.raises(coltrain.ArgumentError, match="round-robin"):
        device.set_policy("best")
    assert coltrain.policy_name(coltrain.Policy.WHOLE_JOB) == "job"
    assert coltrain.batching_name(coltrain.Batching.ADAPTIVE) == "adaptive"


def test_list_of_devices() -> None:
    entries = {entry.uri: entry for entry in coltrain.devices()}
    assert entries["emu:"].error == coltrain.ErrorCode.OK and entries["emu:"].text


def test_devices_of_this_machine() -> None:
    entries = {entry.uri: entry for entry in coltrain.scan()}
    assert entries["emu:"].error == coltrain.ErrorCode.OK
    assert "16 x 8" in entries["sim:core=16x8"].text


def test_registers_have_names_and_fields() -> None:
    found = {register.name: register for register in coltrain.registers("emu:core=16x8")}
    assert found["GEOMETRY"].fields == {"ROWS": 16, "COLS": 8, "LANES": 4, "BLOCK": 16}
    assert found["CTX1.STATUS"].fields["JOB"] == "idle" and found["CTX1.STATUS"].offset == 0x210
    assert found["CTX0.CNT.JOBS"].value == 0 and found["CTX0.CNT.JOBS"].text
    with pytest.raises(coltrain.Error, match="nonexistent"):
        coltrain.registers("mmio:/nonexistent")


def test_packing(seed: int) -> None:
    x = np.random.default_rng(seed).standard_normal((33, 20), dtype=np.float32)
    packed = coltrain.pack(x)
    assert packed.size == 3 * 2 * 272
    assert np.abs(coltrain.unpack(packed, 33, 20) - x).max() < 0.05
    square = coltrain.pack(x, coltrain.Sharing.SQUARE, transpose=True)
    assert np.abs(coltrain.unpack(square, 20, 33) - x.T).max() < 0.05
    assert coltrain.pack_row(x[0]).size == 16 + 2 * 16
    with pytest.raises(coltrain.ArgumentError, match="which a matrix of 5 x 5 has not"):
        coltrain.unpack(packed, 5, 5)


def test_other_threads_run_while_a_call_blocks() -> None:
    """The interpreter's lock is not held: this thread counts on while another is in the library for long."""
    with coltrain.open("sim:core=16x8") as device:
        a = np.ones((128, 128), dtype=np.float32)
        worker = threading.Thread(target=device.matmul, args=(a, a))
        worker.start()
        counted, longest, last = 0, 0.0, time.monotonic()
        while worker.is_alive():
            now = time.monotonic()
            longest, last, counted = max(longest, now - last), now, counted + 1
            time.sleep(0.001)
        assert counted > 20, f"{counted} turns, the longest wait {longest:.3f} s"


def test_threads_share_a_device(seed: int) -> None:
    """Calls are made one at a time; every thread has its own results, and its own sentences."""
    rng = np.random.default_rng(seed)
    failures: list[str] = []
    with coltrain.open("emu:") as device:

        def work(number: int, a: npt.NDArray[Any]) -> None:
            for _ in range(30):
                if not (device.matmul(a, np.eye(a.shape[1])).round(6) == coltrain.unpack(coltrain.pack(a), *a.shape).round(6)).all():
                    failures.append(f"{number}: another product")
                try:
                    device.model([1, 70000 + number])
                except coltrain.ArgumentError as refused:
                    if str(70000 + number) not in str(refused):
                        failures.append(f"{number}: {refused}")

        threads = [threading.Thread(target=work, args=(i, rng.standard_normal((5 + i, 16)))) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert not failures


def test_the_log_goes_to_a_logger(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, logger="coltrain"):
        device = coltrain.open("emu:")
        with pytest.raises(coltrain.ArgumentError):
            device.model([])
        device.close()
    levels = {record.levelno for record in caplog.records}
    assert logging.INFO in levels and logging.DEBUG in levels
    with caplog.at_level(logging.ERROR, logger="coltrain"):
        caplog.clear()
        coltrain.open("emu:").close()
    assert not caplog.records


def test_a_handler_of_the_log_that_calls_the_library_is_refused() -> None:
    caught: list[Exception] = []
    opened: list[coltrain.Device] = []

    class Handler(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            try:
                for device in opened:
                    device.now()
            except coltrain.Error as refused:
                caught.append(refused)

    handler = Handler()
    log = logging.getLogger("coltrain")
    log.addHandler(handler)
    try:
        log.setLevel(logging.DEBUG)
        opened.append(coltrain.open("emu:"))
        with pytest.raises(coltrain.ArgumentError):
            opened[0].model([])
    finally:
        log.removeHandler(handler)
        log.setLevel(logging.NOTSET)
    opened[0].close()
    assert caught and "handler" in str(caught[0])


def test_the_disassembler(tmp_path: Path, build: Path) -> None:
    """The lines of the command."""
    program = bytes([1] + [0] * 31 + [2, 0, 0, 0, 3] + [0] * 27 + [255] * 32)
    (tmp_path / "program").write_bytes(program)
    command = [str(build / "bin/coltrain"), "disasm", "--force", str(tmp_path / "program")]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    lines = coltrain.disassemble(program)
    assert lines == printed.splitlines() and len(lines) == 3 and "END" in lines[0]
    assert coltrain.disassemble(np.frombuffer(program, dtype=np.uint64)) == lines and coltrain.disassemble(b"") == []
    with pytest.raises(coltrain.ArgumentError, match="at most 512"):
        coltrain.disassemble(bytes(513 * 32))


def test_numbers_of_numpy_and_numbers_that_are_none() -> None:
    with coltrain.open("emu:") as device:
        model = device.model([4, 8, 3], seed=2**64 - 1)
        assert device.model([np.int64(4), np.uint8(3)]).widths == (4, 3)
        rows, answers = model.rows(np.int32(4)), model.answers(4)
        rows.write(np.ones((1, 4)), np.int64(3))
        model.infer_submit(rows, answers, row=np.int64(3), answer=np.int16(2)).result(10)
        assert answers.read(np.int64(2), np.int64(1)).shape == (1, 3)
        wrong: list[tuple[Callable[[], object], str]] = [
            (lambda: device.model([4, 2**32 + 3]), "a width is 4294967299"),
            (lambda: device.model([4, 3], seed=-1), "seed is -1"),
            (lambda: device.model([4, cast(int, 3.0)]), "3.0, which is no whole number"),
            (lambda: model.training(2**32 + 1, 0.1), "batch is 4294967297"),
            (lambda: model.infer_submit(rows, answers, count=2**32 + 1), "count is 4294967297"),
            (lambda: model.serve(max_batch=-1), "max_batch is -1"),
            (lambda: model.serve(service=[1] * 17), "17 service times"),
            (lambda: answers.read(3, 2), "2 answers from number 3 on are not within 4"),
            (lambda: answers.read(5), "from number 5"),
            (lambda: device.buffer(-1), "size is -1"),
        ]
        for call, sentence in wrong:
            with pytest.raises(coltrain.ArgumentError, match=sentence):
                call()
