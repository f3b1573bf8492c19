# SPDX-License-Identifier: Apache-2.0
"""The experiments accuracy and speed on a few made-up images: what PyTorch computes of a graph, runs that are killed and go on with the
same bits, what the summaries say. What needs PyTorch is skipped without it."""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import coltrain
import numpy as np
import pytest
from coltrain.cli import Failure
from coltrain.experiments import accuracy_run, datafiles, speed_run, trainers
from coltrain.experiments.accuracy import Accuracy, grid_of, targets_of
from coltrain.experiments.accuracy_run import Images, batches, kept, train
from coltrain.experiments.trainers import Run
from coltrain.experiments.common import parser_of
from coltrain.experiments.speed import Speed
from coltrain.experiments.speed import row_of as speed_row
from coltrain.experiments.speed import targets_of as speed_targets
from coltrain.experiments.trainers import FP32, RECIPES, ByTorch, OnDevice, graph_of, rate_at
from coltrain.reports.experiment import page_of
from conftest import TOP

needs_pytorch = pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="PyTorch is not installed (Debian's python3-torch)")
SHAPES = {"mlp": (28, 28, 1), "lenet5": (28, 28, 1), "resnet8": (32, 32, 3)}
PATIENCE_S = 120


def data_for(network: str, folder: Path, seed: int, train: int = 300, test: int = 40) -> str:
    """A folder of images: a pattern for each class, with noise."""
    rng = np.random.default_rng(seed)
    folder.mkdir(exist_ok=True)
    pattern = rng.uniform(0, 160, (10, *SHAPES[network]))
    for part, count in (("train", train), ("test", test)):
        classes = np.arange(count) % 10
        images = pattern[classes] + rng.uniform(0, 90, (count, *SHAPES[network]))
        np.save(folder / f"x_{part}.npy", images.astype(np.uint8))
        np.save(folder / f"y_{part}.npy", classes.astype(np.uint8))
    return str(folder)


CASES: Any = [pytest.param(n, b, marks=[needs_pytorch] if b == FP32 else []) for n in SHAPES for b in (8, FP32)]
"""Networks in a device's format, and in PyTorch's where that is there."""


def known(result: dict[str, Any]) -> dict[str, Any]:
    """What repeats."""
    return {k: v for k, v in result.items() if k != "cpu_s"}


# ---- Images ----


def test_order(seed: int) -> None:
    found = list(batches(100, 30, 2, seed))
    assert len(found) == 6 and all(len(b) == 30 for b in found)
    for epoch in (found[:3], found[3:]):
        assert len(set(np.concatenate(epoch))) == 90
    assert not np.array_equal(found[0], found[3])
    assert all(np.array_equal(a, b) for a, b in zip(found, batches(100, 30, 2, seed), strict=True))


def test_images_are_normal(tmp_path: Path, seed: int) -> None:
    data = coltrain.load_dataset(data_for("resnet8", tmp_path / "d", seed))
    x, classes = Images(data, False).training(np.arange(300), seed, 0)
    channels = x.reshape(-1, 3).astype(np.float64)
    assert np.allclose(channels.mean(axis=0), 0, atol=1e-4) and np.allclose(channels.std(axis=0), 1, atol=1e-4)
    assert np.array_equal(classes, data.train.labels)
    plain = (data.train.x[:5].reshape(-1, 3).astype(np.float64) - data.train.x.reshape(-1, 3).mean(axis=0, dtype=np.float64)) / (
        data.train.x.reshape(-1, 3).std(axis=0, dtype=np.float64)
    )
    assert np.allclose(x[:5].reshape(-1, 3), plain, atol=1e-4)


def test_images_are_moved(tmp_path: Path, seed: int) -> None:
    """Each is the image, moved by up to 4 pixels and perhaps mirrored, and all of that happens; it depends on seed and step alone."""
    data = coltrain.load_dataset(data_for("resnet8", tmp_path / "d", seed))
    images = Images(data, True)
    which = np.arange(60)
    x, _ = images.training(which, seed, 7)
    assert np.array_equal(x, images.training(which, seed, 7)[0])
    assert not np.array_equal(x, images.training(which, seed, 8)[0])
    plain = Images(data, False).training(which, seed, 7)[0].reshape(60, 32, 32, 3)
    around = np.pad(plain, ((0, 0), (4, 4), (4, 4), (0, 0)))
    found = set()
    for image, wide in zip(x.reshape(60, 32, 32, 3), around, strict=True):
        ways = {
            (top, left, mirrored): np.array_equal(image, wide[top : top + 32, left : left + 32][:, :: -1 if mirrored else 1])
            for top in range(9)
            for left in range(9)
            for mirrored in (False, True)
        }
        assert sum(ways.values()) == 1
        found.add(next(way for way, same in ways.items() if same))
    tops, lefts, mirrors = (set(part) for part in zip(*found, strict=True))
    assert len(tops) > 4 and len(lefts) > 4 and mirrors == {False, True}


# ---- The two trainers ----


def test_rates() -> None:
    recipe = RECIPES["resnet8"]._replace(warmup=10)
    schedule = coltrain.Schedule(recipe.rate, "cosine", warmup=10, period=90)
    assert [rate_at(recipe, s, 100) for s in range(120)] == pytest.approx([schedule.at(s) for s in range(120)], abs=1e-12)
    assert max(rate_at(recipe, s, 100) for s in range(120)) == pytest.approx(recipe.rate)


@needs_pytorch
@pytest.mark.parametrize("network", SHAPES)
def test_pytorch_computes_the_graph(network: str, seed: int) -> None:
    """Logits of the graph in double precision, and what a step of SGD makes of weights and statistics."""
    rng = np.random.default_rng(seed)
    steps = 1000
    graph = graph_of(network, 8, True)
    values: dict[str, Any] = dict(graph.initial_values(seed))
    recipe = RECIPES[network]
    schedule = coltrain.Schedule(recipe.rate, "cosine", warmup=recipe.warmup, period=steps - recipe.warmup)
    graph.optimise("loss", schedule, momentum=recipe.momentum, weight_decay=recipe.weight_decay)
    graph.check()
    x = rng.standard_normal((8, int(np.prod(SHAPES[network]))), dtype=np.float32)
    classes = rng.integers(0, 10, 8)
    given = {"x": x.reshape(graph["x"].shape), "y": np.eye(10)[classes]}
    held = graph.by_role(coltrain.Role.STATE)
    zeros = {n: np.zeros(t.shape) for n, t in held.items() if n not in values}
    by_torch = ByTorch(network, seed, steps)
    for step in range(2):  # the second with momentum, and with a rate of its own
        found = graph.run({**values, **zeros, **given}, ["loss"], step=step, update=True)
        assert by_torch.step(x, classes, step) == pytest.approx(float(found["loss"][0]), rel=1e-4)
        values = {n: found[n] for n in values}
        zeros = {n: found[n] for n in zeros}
        state = by_torch.state()
        for name, value in {**values, **zeros}.items():
            # PyTorch's running variance is of n - 1 samples.
            near = 1e-2 if name.endswith(".variance") else 1e-3
            assert np.allclose(state[name], value, rtol=near, atol=near * max(1e-3, float(np.abs(value).max()))), name


@pytest.mark.parametrize(("network", "bits"), CASES)
def test_states(network: str, bits: int, seed: int) -> None:
    """A trainer that gets another's state goes on with the same bits."""
    rng = np.random.default_rng(seed)

    def made() -> trainers.Trainer:
        return ByTorch(network, seed, 100) if bits == FP32 else OnDevice(network, bits, seed, 100)

    batch = RECIPES[network].batch
    x = rng.standard_normal((3, batch, int(np.prod(SHAPES[network]))), dtype=np.float32)
    classes = rng.integers(0, 10, (3, batch))
    a, b = made(), made()
    a.step(x[0], classes[0], 0)
    a.step(x[1], classes[1], 1)
    b.restore(a.state())
    assert a.step(x[2], classes[2], 2) == b.step(x[2], classes[2], 2)
    one, other = a.state(), b.state()
    assert one.keys() == other.keys() and all(np.array_equal(one[n], other[n]) for n in one)
    assert any(n.endswith(".momentum") for n in one) and (network != "resnet8" or any(n.endswith(".variance") for n in one))
    assert a.correct(x[0][:37], classes[0][:37]) == b.correct(x[0][:37], classes[0][:37])


@needs_pytorch
@pytest.mark.parametrize("network", SHAPES)
def test_formats_differ_by_their_rounding(network: str, seed: int) -> None:
    """The first step goes PyTorch's way, the more so the wider the mantissa."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((RECIPES[network].batch, int(np.prod(SHAPES[network]))), dtype=np.float32)
    classes = rng.integers(0, 10, len(x))
    begun = graph_of(network, 1, True).initial_values(seed)

    def change(trainer: trainers.Trainer) -> Any:
        trainer.step(x, classes, 0)
        state = trainer.state()
        return np.concatenate([(state[n] - v).ravel() for n, v in begun.items() if n.endswith(".weight")])

    exact = change(ByTorch(network, seed, 100))
    far = {b: np.linalg.norm(change(OnDevice(network, b, seed, 100)) - exact) / np.linalg.norm(exact) for b in (8, 6, 4)}
    assert far[8] < 0.1 and 2 * far[8] < far[6] and far[6] < far[4], far


def test_without_pytorch(monkeypatch: pytest.MonkeyPatch) -> None:
    modules: Any = sys.modules
    monkeypatch.setitem(modules, "torch", None)
    with pytest.raises(Failure, match="install python3-torch"):
        ByTorch("mlp", 1, 10)


# ---- Runs that are killed ----


class Killed(Exception):
    pass


@pytest.mark.parametrize(("network", "bits"), CASES)
def test_a_run_goes_on(network: str, bits: int, seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Killed in the middle of an epoch and again later: the same curve as without."""
    images = 140 if network == "resnet8" else 300
    run = accuracy_run.RunOn(network, bits, seed, 3, data_for(network, tmp_path / "d", seed, images))
    want = train(run)
    state = tmp_path / "state.npz"
    kind: Any = ByTorch if bits == FP32 else OnDevice
    step, most = kind.step, [0]
    steps: list[int] = []

    def counted(self: Any, x: Any, classes: Any, number: int) -> Any:
        if len(steps) >= most[0]:
            raise Killed
        steps.append(number)
        return step(self, x, classes, number)

    monkeypatch.setattr(kind, "step", counted)
    for more in (3, 2):
        most[0] += more
        with pytest.raises(Killed):
            train(run, state, keep_s=0)
    most[0] = 1000
    got = train(run, state, keep_s=0)
    assert known(got) == known(want)
    assert steps == sorted(set(steps)), "a step was made twice, or in another order"
    assert known(train(run, state)) == known(want) and len(steps) == len(set(steps)), "a run that is over is not made again"


def test_another_runs_state_is_not_taken(seed: int, tmp_path: Path) -> None:
    run = accuracy_run.RunOn("mlp", 8, seed, 1, data_for("mlp", tmp_path / "d", seed))
    state = tmp_path / "state.npz"
    train(run, state, keep_s=0)
    of = json.loads(json.dumps(kept_of(state)))
    assert kept(state, of)
    for other in ({"bits": 6}, {"seed": seed + 1}, {"epochs": 2}, {"rate": 0.1}, {"data": "elsewhere"}):
        assert kept(state, of | other) is None
    other_run = replace(run, bits=6)
    assert known(train(other_run, state)) == known(train(other_run))
    for damage in (b"", state.read_bytes()[:-400], b"x" * 100):
        state.write_bytes(damage)
        assert kept(state, of) is None
    assert kept(tmp_path / "none.npz", of) is None


def kept_of(state: Path) -> dict[str, Any]:
    import zipfile

    with zipfile.ZipFile(state) as archive:
        found: dict[str, Any] = json.loads(archive.read(accuracy_run.PROGRESS))["of"]
        return found


def test_the_program_is_killed(seed: int, tmp_path: Path) -> None:
    """By SIGKILL, wherever it is then."""
    data, state = data_for("mlp", tmp_path / "d", seed, 2000), tmp_path / "state.npz"
    words = ["--network", "mlp", "--bits", "6", "--seed", str(seed), "--epochs", "4", "--data", data]
    program = [sys.executable, "-m", "coltrain.experiments.accuracy_run", *words]
    environment = {**os.environ, "PYTHONPATH": str(TOP / "host/python")}
    child = subprocess.Popen([*program, "--state", str(state), "--keep", "0"], env=environment, stdout=-1, stderr=-1)
    until = time.monotonic() + PATIENCE_S
    while not state.exists() and child.poll() is None and time.monotonic() < until:
        time.sleep(0.01)
    child.send_signal(signal.SIGKILL)
    child.communicate()
    assert state.exists()

    def result(*more: str) -> dict[str, Any]:
        done = subprocess.run([*program, *more], env=environment, capture_output=True, text=True, check=True, timeout=PATIENCE_S)
        return known(json.loads(done.stdout))

    assert result("--state", str(state)) == result()


# ---- The experiment ----


def experiment(folder: Path, *words: str) -> Accuracy:
    o = parser_of(Accuracy).parse(["--out", str(folder), "--cifar10", str(folder / "cifar10"), *words])
    o.seeds = o.seeds or 3
    e = Accuracy(o)
    e.store.open()
    return e


def put(e: Accuracy, network: str, bits: int, seed: int, accuracy: float) -> None:
    (r,) = (r for r in e.grid if (r.network, r.bits, r.seed) == (network, bits, seed))
    curve = [{"epoch": i + 1, "loss": 1 / (i + 1), "accuracy": accuracy * (i + 1) / r.epochs} for i in range(r.epochs)]
    e.store.save(e.point(r), {"curve": curve, "accuracy": accuracy, "cpu_s": 10.0})


def test_grid() -> None:
    grid = grid_of(3, 0)
    assert len(grid) == 2 * 4 * 3 + 3 and len({r.name for r in grid}) == len(grid)
    assert [r.name for r in grid if r.network == "resnet8"] == ["resnet8-fp32-seed1", "resnet8-hbfp8-seed1", "resnet8-hbfp4-seed1"]
    assert {r.epochs for r in grid_of(1, 2)} == {2}


def measured(tmp_path: Path) -> Accuracy:
    """Three seeds of LeNet-5 in two formats, and ResNet-8 in two."""
    e = experiment(tmp_path)
    for seed, exact, own in ((1, 0.905, 0.902), (2, 0.903, 0.901), (3, 0.907, 0.903)):
        put(e, "lenet5", FP32, seed, exact)
        put(e, "lenet5", 8, seed, own)
    put(e, "resnet8", FP32, 1, 0.87)
    put(e, "resnet8", 8, 1, 0.862)
    return e


def test_a_run_finds_the_package(tmp_path: Path) -> None:
    """The command as users start it, without PYTHONPATH. What its run says of images that are not there is told."""
    (tmp_path / "cifar10").mkdir()
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONPATH"}
    args = ["accuracy", "--only", "resnet8-hbfp8-*", "--cifar10", str(tmp_path / "cifar10"), "--out", str(tmp_path / "out")]
    done = subprocess.run(
        [str(TOP / os.environ.get("BUILD", "build") / "bin/coltrain-experiment"), *args], env=environment, capture_output=True, text=True, timeout=PATIENCE_S
    )
    assert "has no data set that is known" in done.stderr, done.stderr


def test_summary(tmp_path: Path) -> None:
    e = measured(tmp_path)
    s = e.summary()
    rows = {(r["network"], r["format"]): r for r in s["rows"]}
    assert len(rows) == 4 and rows["lenet5", "hbfp8"]["seeds"] == 3
    a = rows["lenet5", "hbfp8"]["accuracy"]
    assert a["mean"] == pytest.approx(90.2, abs=1e-3) and a["high"] - a["mean"] == pytest.approx(4.3027 * 0.1 / 3**0.5, rel=1e-2)
    assert rows["resnet8", "hbfp8"]["accuracy"] == {"mean": pytest.approx(86.2), "low": None, "high": None}
    assert len(rows["lenet5", "fp32"]["curve"]) == RECIPES["lenet5"].epochs
    targets = {t["target"]: (t["held"], t["figure"]) for t in s["targets"]}
    assert targets["LeNet-5 in HBFP8: at least 90.0 % of Fashion-MNIST's test images"] == (True, "90.20")
    assert targets["LeNet-5 in HBFP8: at most 0.5 points below FP32"] == (True, "0.30")
    assert targets["ResNet-8 in HBFP8: at least 85.0 % of CIFAR-10's test images"] == (True, "86.20")
    assert targets["ResNet-8 in HBFP8: at most 0.5 points below FP32"] == (False, "0.80")
    assert targets["784-512-256-10 in HBFP8: at least 88.3 % of Fashion-MNIST's test images"] == (None, "not measured")
    text = "\n".join(e.lines(json.loads(json.dumps(s, allow_nan=False))))
    assert "89.95 to  90.45" in text and "nan" not in text
    page = page_of(s)
    assert "CIFAR-10" in page and "<svg" in page and "nan" not in page.lower().replace("nano", "")
    files = {f.name: f for f in datafiles.files_of(s)}
    cells = files["accuracy"].cells("abc")
    assert cells[0] == ["lenet5", "fp32", "3", str(RECIPES["lenet5"].epochs), "90.50", "90.00", "91.00", "30", "abc"]
    assert cells[-1][4:7] == ["86.20", "", ""]
    assert len(files["accuracy-curves"].rows) == 2 * (RECIPES["lenet5"].epochs + RECIPES["resnet8"].epochs)
    assert targets_of([])[0].held is None


def test_results(tmp_path: Path) -> None:
    """docs/results.md has a table and a chart as soon as there are data; half of a summary changes no target."""
    for name in ("data", "charts"):
        shutil.copytree(TOP / "docs" / name, tmp_path / name)
    for page in ("results.md", "array.md", "compression.md"):
        shutil.copy(TOP / "docs" / page, tmp_path)
    for old in [*tmp_path.glob("data/accuracy*.csv"), *tmp_path.glob("charts/accuracy.svg")]:
        old.unlink()
    targets = (tmp_path / "data/targets.csv").read_text()
    datafiles.put(str(tmp_path / "data"), measured(tmp_path / "points").summary(), "abcdef0")
    assert (tmp_path / "data/targets.csv").read_text() == targets
    where = ["--data", str(tmp_path / "data"), "--page", str(tmp_path / "results.md"), "--charts", str(tmp_path / "charts")]
    python = os.environ.get("PYTHON", "/usr/bin/python3")
    done = subprocess.run([python, str(TOP / "scripts/results"), *where], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    page = (tmp_path / "results.md").read_text()
    assert "| LeNet-5 | 8 | 90.50 ±0.50 | 90.20 ±0.25 | - | - |" in page and "| ResNet-8 | 40 | 87.00 | 86.20 | - | - |" in page
    assert (tmp_path / "charts/accuracy.svg").read_text().count("test images") == 2


def test_other_recipes_are_other_points(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    e = experiment(tmp_path)
    put(e, "mlp", 8, 1, 0.9)
    assert len(e.summary()["rows"]) == 1
    monkeypatch.setitem(RECIPES, "mlp", RECIPES["mlp"]._replace(rate=0.06))
    assert len(experiment(tmp_path).summary()["rows"]) == 0


def test_without_cifar10(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    e = experiment(tmp_path)
    assert {r.network for r in e.possible(e.grid)} == {"mlp", "lenet5"}
    assert "3 runs are left out; there is no folder" in capsys.readouterr().err
    with pytest.raises(Failure, match=r"scripts/cifar10 .* rebuilds CIFAR-10"):
        e.possible([r for r in e.grid if r.network == "resnet8"])
    (tmp_path / "cifar10").mkdir()
    assert e.possible(e.grid) == e.grid
    assert e.point(Run("resnet8", 8, 1, 2)).args[-4:-2] == ["--data", str(tmp_path / "cifar10")]  # type: ignore[index]


def test_a_state_goes_when_its_run_is_over(tmp_path: Path) -> None:
    e = experiment(tmp_path, "--only", "mlp-hbfp8-seed1")
    put(e, "mlp", 8, 1, 0.9)
    state = e.state(e.point(next(r for r in e.grid if r.name == "mlp-hbfp8-seed1")))
    state.write_bytes(b"state")
    e.make()
    assert not state.exists()


# ---- Speed ----


def speeds(own: float) -> dict[str, Any]:
    seconds = {"emu": [own, 1.1 * own], "pytorch": [0.01, 0.011], "pytorch_openblas": [0.02, 0.022]}
    return {"batch": 64, "seconds": seconds, "pytorch": "1.13"}


def test_speed_summary(tmp_path: Path) -> None:
    o = parser_of(Speed).parse(["--out", str(tmp_path)])
    e = Speed(o)
    e.store.open()
    e.store.save(e.point("lenet5"), speeds(0.018))
    e.store.save(e.point("resnet8"), speeds(0.025))
    s = e.summary()
    assert [r["of_pytorch"]["mean"] for r in s["rows"]] == pytest.approx([0.01 / 0.018, 0.4])
    assert s["rows"][0]["emu_steps"] == pytest.approx(1 / (1.05 * 0.018))
    assert [t["held"] for t in s["targets"]] == [True, True, False, True]
    assert "0.556" in "\n".join(e.lines(s)) and "0.556" in page_of(s)
    (file, _) = datafiles.files_of(s)
    assert file.cells("abc")[0][:4] == ["lenet5", "emu:", "64", "2"] and len(file.cells("abc")[0]) == len(file.names()) + 1
    assert [t.held for t in speed_targets([speed_row("lenet5", "emu:", speeds(0.018))])] == [True, True, None, None]


@needs_pytorch
def test_speed_is_measured() -> None:
    found = speed_run.measure("mlp", "emu:", 2, 0.01)
    assert found["batch"] == RECIPES["mlp"].batch
    assert {n: len(s) for n, s in found["seconds"].items()} == {"emu": 2, "pytorch": 2, "pytorch_openblas": 2}
    assert all(0 < s < 10 for taken in found["seconds"].values() for s in taken)
