# SPDX-License-Identifier: Apache-2.0
"""Arguments that make no sense are refused with a sentence that names them: none crashes the process, none is taken for another."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import coltrain
import numpy as np
import pytest
from coltrain import ArgumentError, Queue, Sharing, code_name, disassemble, load_dataset, pack


@pytest.fixture(scope="module")
def bed() -> Iterator[Any]:
    with coltrain.open("emu:") as device, coltrain.open("emu:") as other:
        model = device.model([4, 8, 3])
        model.training(2, 0.1)
        b = SimpleNamespace(device=device, model=model, batch=model.batch(), rows=model.rows(2), answers=model.answers(2))
        b.batch.write(np.zeros((2, 4)), [0, 1])
        b.buffer, b.program = device.buffer(256), device.program(bytes(32))
        b.served = device.model([4, 8, 3])
        b.server = b.served.serve()
        b.foreign = other.model([4, 8, 3])
        b.foreign.training(2, 0.1)
        yield b


MASKED: Any = np.ma.masked_greater(np.arange(4.0).reshape(1, 4), 2)  # type: ignore[no-untyped-call]
CASES: list[tuple[str, Callable[[Any], object]]] = [
    # A pointer of another kind, or of another device, would be followed to wherever it leads.
    (r"batch is <coltrain\.Rows on emu:>, which is no Batch", lambda b: b.model.step_submit(b.rows)),
    ("batch is None, which is no Batch", lambda b: b.model.step_submit(None)),
    (r"batch is <coltrain\.Batch on emu:>, which is of another device", lambda b: b.model.step_submit(b.foreign.batch())),
    ("rows is <.*Answers.*>, which is no Rows", lambda b: b.model.infer_submit(b.answers, b.rows)),
    ("answers is 3, which is no Answers", lambda b: b.model.infer_submit(b.rows, 3)),
    ("rows is .* of another device", lambda b: b.model.infer_submit(b.foreign.rows(1), b.answers)),
    ("weights is <coltrain.Model.*>, which is no Weights", lambda b: b.model.infer(np.zeros((1, 4)), b.model)),
    ("weights is .* of another device", lambda b: b.model.evaluate(np.zeros((1, 4)), [0], b.foreign.weights)),
    ("weights is .* of another device", lambda b: b.model.infer_submit(b.rows, b.answers, weights=b.foreign.weights)),
    ("weights is 'x', which is no Weights", lambda b: b.model.serve("x")),
    ("weights is <coltrain.Server.*>, which is no", lambda b: b.server.set_weights(b.server)),
    ("rows is <.*Answers.*>, which is no Rows", lambda b: b.server.push(b.answers, b.rows)),
    ("program is b'x', which is no Program", lambda b: b.device.submit(b"x")),
    ("program is .* of another device", lambda b: b.foreign.device.submit(b.program)),
    # Names.
    ("queue is 'x', but a Queue is needed, or its name: \"inference\", \"training\"", lambda b: b.device.outstanding("x")),
    ("queue is 7, but", lambda b: b.device.counters(7)),
    ("queue is None, but", lambda b: b.device.matmul(np.eye(2), np.eye(2), queue=None)),
    ("gradients is 3, but a Gradients is needed", lambda b: b.model.step_submit(b.batch, gradients=3)),
    ("sharing is 'col'", lambda b: pack(np.eye(2), "col")),
    ("3.0 is no name", lambda b: b.device.set_policy(3.0)),
    ('no policy "x"', lambda b: b.device.set_policy("x")),
    ("None is no name", lambda b: b.model.serve(batching=None)),
    ('a device is named by a text such as "sim:", not by None', lambda b: coltrain.open(None)),  # type: ignore[arg-type]
    # Numbers.
    ("widths is 4, but a list is needed", lambda b: b.device.model(4)),
    ("lr is '0.1', which is no number", lambda b: b.model.training(2, "0.1")),
    ("momentum is None, which is no number", lambda b: b.model.set_rates(0.1, None)),
    (r"rates is \(0.1, 0, 0\), but Rates are needed", lambda b: b.model.step_submit(b.batch, (0.1, 0, 0))),
    ("scale is 'x', which is no number", lambda b: b.model.apply(scale="x")),
    ("layer is 1.5, which is no whole number", lambda b: b.model.get(1.5)),
    ("layer 2 of a model that has 2", lambda b: b.model.get(2)),
    ("code is 'x'", lambda b: code_name("x")),  # type: ignore[arg-type]
    ("a timeout is '1', which is no number", lambda b: setattr(b.device, "timeout", "1")),
    ("a timeout of nan s", lambda b: b.device.reap(float("nan"))),
    ("batches of 0 rows", lambda b: load_dataset().steps(0)),
    ("seed is -1", lambda b: load_dataset(seed=-1)),
    ("epoch is -1", lambda b: next(load_dataset().batches(8, -1))),
    # Files: C reads a name up to its first zero byte.
    (r"path is 'a\\x00b', but a path has no zero byte", lambda b: b.model.save("a\0b")),
    ("path is 3.5, which is no path", lambda b: b.device.load_model(3.5)),
    ("name is None, which is no path", lambda b: load_dataset(None)),  # type: ignore[arg-type]
    # Bytes and arrays.
    ("data holds text, not bytes", lambda b: b.buffer.write("abc")),
    ("commands holds text, not bytes", lambda b: disassemble("x" * 32)),
    ("x has masked elements", lambda b: b.model.infer(MASKED)),
]


@pytest.mark.parametrize(("sentence", "call"), CASES)
def test_it_is_refused(bed: Any, sentence: str, call: Callable[[Any], object]) -> None:
    with pytest.raises(ArgumentError, match=sentence):
        call(bed)
    assert np.array_equal(bed.device.matmul(np.eye(2), np.eye(2)), np.eye(2))


def test_nothing_was_written(bed: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ArgumentError):
        bed.model.save("a\0b")
    assert os.listdir() == []
    bed.model.save(b"model.ctm")
    assert bed.device.load_model(b"model.ctm").widths == (4, 8, 3)


def test_names_and_numbers_that_make_sense(bed: Any) -> None:
    device = bed.device
    assert device.outstanding("training") == device.outstanding(Queue.TRAINING) == device.outstanding(1) == 0
    assert device.counters("Inference").keys() == device.counters(Queue.INFERENCE).keys()
    assert np.array_equal(pack(np.eye(16), "square"), pack(np.eye(16), Sharing.SQUARE))
    device.timeout = float("inf")
    assert device.timeout == float("inf") and np.array_equal(device.matmul(np.eye(2), np.eye(2)), np.eye(2))
    device.timeout = None
    assert device.model(w for w in (4, 3)).widths == (4, 3)
    bed.buffer.write(memoryview(bytes(range(8)))[::2])
    assert bed.buffer.read(4).tolist() == [0, 2, 4, 6]
    big = np.arange(4, dtype=">f4").reshape(1, 4)
    assert np.array_equal(bed.model.infer(big), bed.model.infer(big.astype(np.float32)))
    assert repr(bed.rows) == "<coltrain.Rows on emu:>" and repr(bed.server) == "<coltrain.Server on emu:>"
