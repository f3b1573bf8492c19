# SPDX-License-Identifier: Apache-2.0
"""Training from Python leaves the bytes of the command; models, weights, data sets."""

from __future__ import annotations

import subprocess
from pathlib import Path

import coltrain
import numpy as np
import pytest
from coltrain import arrivals
from conftest import TOP

DEVICES = ["emu:", "sim:"]


def train(uri: str, path: Path, seed: int, epochs: int, samples: int) -> float:
    """Ten lines: what the documents show. The percentage of right answers."""
    digits = coltrain.load_dataset("digits", seed=seed, samples=samples)
    with coltrain.open(uri) as device:
        model = device.model([64, 128, 64, 10], seed=seed)
        model.training(batch=32, lr=0.2, momentum=0.7)
        for epoch in range(epochs):
            for x, classes in digits.batches(32, epoch):
                model.step(x, classes)
            model.epochs = epoch + 1
        model.save(path)
        return 100 * model.evaluate(digits.test.x, digits.test.labels) / len(digits.test.labels)


@pytest.mark.parametrize(("uri", "epochs", "samples"), [("emu:", 5, 0), ("emu:", 2, 75), ("sim:", 1, 480), ("sim:", 2, 75)])
def test_digits_have_the_bytes_of_the_command(
    uri: str, epochs: int, samples: int, tmp_path: Path, build: Path, seed: int
) -> None:
    """The simulator has fewer samples: all of them are the emulator's, whose bits are the same."""
    right = train(uri, tmp_path / "python.ctm", seed, epochs, samples)
    command = [str(build / "bin/coltrain"), "train", "--data", "digits", "--epochs", str(epochs), "--seed", str(seed), "--device", uri]
    command += ["--save", str(tmp_path / "c.ctm"), *(["--samples", str(samples)] if samples else [])]
    done = subprocess.run(command, capture_output=True, text=True, cwd=TOP)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "python.ctm").read_bytes() == (tmp_path / "c.ctm").read_bytes()
    assert f"{right:.2f} %" in done.stdout.splitlines()[epochs - 1]
    assert samples or right > 90


def test_a_step_needs_a_preparation() -> None:
    with coltrain.open("emu:") as device, device.model([64, 32, 10]) as model:
        with pytest.raises(coltrain.ArgumentError, match=r"prepared for training: training\(\) does that"):
            model.step(np.zeros((32, 64), np.float32), np.zeros(32, int))


@pytest.mark.parametrize("uri", DEVICES)
def test_steps_in_flight_have_the_bytes_of_steps_one_by_one(uri: str, seed: int) -> None:
    digits = coltrain.load_dataset("digits", seed=seed, samples=64)
    with coltrain.open(uri) as device:
        one, many = (device.model([64, 32, 10], seed=seed) for _ in range(2))
        for model in (one, many):
            model.training(batch=16, lr=0.1, momentum=0.5, weight_decay=0.001)
        slow = coltrain.Rates(0.05, 0.5, 0.001)
        losses = [one.step(x, classes) for x, classes in digits.batches(16)]
        one.set_rates(*slow)
        losses += [one.step(x, classes) for x, classes in digits.batches(16, 1)]
        batches: list[coltrain.Batch] = []
        futures: list[coltrain.Future] = []
        for epoch in range(2):
            for x, classes in digits.batches(16, epoch):
                batches.append(many.batch())
                batches[-1].write(x, classes)
                futures.append(many.step_submit(batches[-1], slow if epoch else None, user=len(futures)))
        assert device.outstanding(coltrain.Queue.TRAINING) == 8
        if uri == "sim:":  # the emulator has done the work by now
            with pytest.raises(coltrain.BusyError):
                batches[-1].write(x, classes)
        events = [device.reap() for _ in futures]
        assert [event.user for event in events] == list(range(8))
        assert all(event.kind == coltrain.EventKind.STEP and event.check().jobs >= 1 for event in events)
        assert [batch.loss() for batch in batches] == losses
        assert [future.result() for future in futures] == events
        for layer in range(2):
            for a, b in zip(one.get(layer), many.get(layer), strict=True):
                assert a.tobytes() == b.tobytes()
        with pytest.raises(coltrain.NotFoundError):
            device.reap(0)


def test_weights_are_published_moved_and_loaded(seed: int) -> None:
    digits = coltrain.load_dataset("digits", seed=seed)
    x = digits.test.x[:40]
    with coltrain.open("emu:") as emu, coltrain.open("sim:") as sim:
        model = emu.model([64, 24, 10], seed=seed)
        model.training(batch=32, lr=0.2)
        first = model.publish()
        before = model.infer(x, first)
        for batch in digits.batches(32):
            model.step(*batch)
        second, future = model.publish_submit(user="second")
        assert future.result().user == "second" and future.result().version == 2
        after = model.infer(x)
        assert (model.infer(x, first) == before).all() and (before != after).any()
        assert (model.infer(x, second) == after).all() and (model.infer(x, model.weights) == after).all()
        assert (first.info.version, second.info.version, model.weights.info.version) == (1, 2, 0)
        assert second.info.steps == digits.steps(32) and second.info.error == coltrain.ErrorCode.OK
        other = sim.model([64, 24, 10], seed=seed + 1)
        moved = other.load_weights(second.read())
        out = np.empty((40, 10), dtype=np.float32)
        assert other.infer(x, moved, out=out) is out and out.tobytes() == after.tobytes()
        right = int((after.argmax(axis=1) == digits.test.labels[:40]).sum())
        assert other.evaluate(x, digits.test.labels[:40].astype(np.int64), moved) == right
        with pytest.raises(coltrain.ArgumentError):
            other.load_weights(second.read()[:-1])
        second.close()
        with pytest.raises(coltrain.ClosedError):
            model.infer(x, second)


def test_layers_can_be_read_and_set() -> None:
    with coltrain.open("emu:") as device:
        model = device.model([3, 5, 2])
        layer = model.get(1)
        assert [a.shape for a in layer] == [(2, 5), (2,), (2, 5), (2,)]
        model.set(1, w=np.zeros((2, 5)), vb=[1, 2])
        changed = model.get(1)
        assert not changed.w.any() and changed.vb.tolist() == [1, 2] and (changed.b == layer.b).all()
        assert (model.infer(np.ones((4, 3))) == changed.b).all()
        for arguments in ((2, None), (-1, None), (0, np.zeros((3, 5)))):
            with pytest.raises(coltrain.ArgumentError):
                model.set(*arguments)


def test_a_saved_model_goes_on(tmp_path: Path, seed: int) -> None:
    digits = coltrain.load_dataset(seed=seed, samples=96)
    with coltrain.open("emu:") as device:
        model = device.model([64, 10], seed=seed)
        model.training(32, 0.1, 0.9)
        for batch in digits.batches(32):
            model.step(*batch)
        model.epochs = 1
        model.save(tmp_path / "model.ctm")
        again = device.load_model(tmp_path / "model.ctm")
        assert again.epochs == 1 and again.info.steps == 3 and not again.info.prepared
        assert again.info.rates == pytest.approx((0.1, 0.9, 0)) and again.info.seed == seed and again.widths == (64, 10)
        again.training(again.info.batch, *again.info.rates)
        net = device.load_network(tmp_path / "model.ctm")
        assert net.info.steps == 3 and net.info.epochs == 1
        for step, (x, classes) in enumerate(digits.batches(32, 1), 3):
            loss = model.step(x, classes)
            assert loss == again.step(x, classes)
            assert loss == net.run({"x": x, "y": np.eye(10, dtype=np.float32)[classes]}, step=step)["loss"]
        with pytest.raises(coltrain.NotFoundError, match=r"none\.ctm"):
            device.load_model(tmp_path / "none.ctm")
        (tmp_path / "bad.ctm").write_bytes(b"not a model")
        with pytest.raises(coltrain.FormatError, match=r"bad\.ctm"):
            device.load_model(tmp_path / "bad.ctm")
        with pytest.raises(coltrain.FileError, match="missing"):
            model.save(tmp_path / "missing" / "model.ctm")


def test_what_a_step_refuses() -> None:
    with coltrain.open("emu:") as device:
        model = device.model([4, 3])
        with pytest.raises(coltrain.ArgumentError):
            model.training(0, 0.1)
        with pytest.raises(coltrain.ArgumentError, match="-1"):
            model.training(-1, 0.1)
        with pytest.raises(coltrain.ArgumentError):
            model.training(2, float("nan"))
        model.training(2, 0.1)
        x = np.zeros((2, 4))
        wrong: list[tuple[coltrain.ArrayLike, str]] = [([0, 3], "3"), ([0, -1], "-1"), ([0, 2**40], str(2**40))]
        wrong += [([0], "shape"), ([0.0, 1.0], "integers")]
        for classes, sentence in wrong:
            with pytest.raises(coltrain.ArgumentError, match=sentence):
                model.step(x, classes)
        assert model.info.steps == 0
        assert model.step(x, [0, 2]) == pytest.approx(np.log(3), rel=1e-3)


def test_arrivals_are_the_commands(seed: int) -> None:
    mean = arrivals.mean_q16(100_000, 10, 500)
    assert mean == 20_000 << 16
    cycles = arrivals.poisson(seed, mean, 5000)
    assert (np.diff(cycles.astype(np.int64)) >= 0).all() and np.diff(cycles).mean() == pytest.approx(20_000, rel=0.06)
    # As another implementation of what ct_arrivals.h says has them.
    assert arrivals.poisson(1, mean, 3).tolist() == [6490, 18093, 35180]
    for wrong in ((0, 1, 1), (1, 0, 1), (1, 1, 0)):
        with pytest.raises(coltrain.ArgumentError, match="no load"):
            arrivals.mean_q16(*wrong)
    with pytest.raises(coltrain.ArgumentError, match="mean gap"):
        arrivals.poisson(1, 0, 1)


def test_data_sets(seed: int, tmp_path: Path) -> None:
    digits = coltrain.load_dataset("digits", seed=seed)
    assert (len(digits.train), len(digits.test), digits.features, digits.classes) == (1437, 360, 64, 10)
    assert digits.train.x.dtype == np.float32 and digits.train.x.max() == 1 and "1437" in repr(digits)
    assert sorted(int(i) for i in digits.order(3)) == list(range(1437)) and (digits.order(3) != digits.order(4)).any()
    seen = list(digits.batches(100))
    assert len(seen) == digits.steps(100) == 15 and all(x.shape == (100, 64) for x, _ in seen)
    assert (seen[-1][0][37:] == seen[0][0][:63]).all()
    with pytest.raises(coltrain.FormatError, match="nothing"):
        coltrain.load_dataset(tmp_path / "nothing")
    with pytest.raises(coltrain.ArgumentError):
        next(digits.batches(0))


@pytest.mark.parametrize("uri", DEVICES)
def test_gradients(uri: str, seed: int) -> None:
    """Gradients of one batch and an update leave the bits of a step; those of two are added, read, scaled, clipped and written."""
    digits = coltrain.load_dataset("digits", seed=seed, samples=64)
    first, second = list(digits.batches(32))
    with coltrain.open(uri) as device:
        whole, split = (device.model([64, 16, 10], seed=seed) for _ in range(2))
        whole.training(32, 0.1, 0.9)
        with pytest.raises(coltrain.ArgumentError, match="gradients"):
            whole.apply()
        split.training(32, 0.1, 0.9, gradients=True)
        assert split.info.gradients and not whole.info.gradients
        loss = whole.step(*first)
        batches = [split.batch(), split.batch()]
        for batch, data in zip(batches, (first, second), strict=True):
            batch.write(*data)
        split.step_submit(batches[0], gradients=coltrain.Gradients.SET).result()
        one = split.get_gradients(1)
        assert batches[0].loss() == loss and split.info.steps == 0
        split.apply()
        assert split.info.steps == 1
        for layer in range(2):
            for a, b in zip(whole.get(layer), split.get(layer), strict=True):
                assert a.tobytes() == b.tobytes()
        # The weights have changed, so the same batch has other gradients.
        split.step_submit(batches[0], gradients=coltrain.Gradients.SET).result()
        again = split.get_gradients(1)
        assert (again.w != one.w).any()
        split.step_submit(batches[1], gradients=coltrain.Gradients.SET).result()
        other = split.get_gradients(1)
        split.step_submit(batches[0], gradients=coltrain.Gradients.SET)
        split.step_submit(batches[1], gradients=coltrain.Gradients.ADD).result()
        both = split.get_gradients(1)
        assert (both.w == again.w + other.w).all() and (both.b == again.b + other.b).all()
        sums = [split.get_gradients(layer) for layer in range(2)]
        norm = np.sqrt(sum((a.astype(float) ** 2).sum() for layer in sums for a in layer))
        assert split.gradient_norm() == pytest.approx(norm, rel=1e-6)
        assert coltrain.clip_scale(split.gradient_norm(), most=1e6, scale=0.5) == 0.5
        assert coltrain.clip_scale(4, 2) == 0.5
        split.set_gradients(0, w=np.zeros((16, 64)), b=np.zeros(16))
        before = split.get(0)
        split.set(0, vw=np.zeros((16, 64)), vb=np.zeros(16))
        event = split.apply_submit(coltrain.Rates(0.1), scale=0.5, user="half").result()
        assert event.kind == coltrain.EventKind.APPLY and event.user == "half"
        assert (split.get(0).w == before.w).all() and not split.get(0).vb.any()
        for scale in (0.0, -1.0, float("nan")):
            with pytest.raises(coltrain.ArgumentError, match="scale"):
                split.apply(scale=scale)
        with pytest.raises(coltrain.ArgumentError):
            coltrain.clip_scale(-1, 1)
        with pytest.raises(coltrain.ArgumentError, match="shape"):
            split.set_gradients(0, b=np.zeros(3))
