# SPDX-License-Identifier: Apache-2.0
"""`coltrain experiment memory`: points of tiny sizes, what the summary says; networks that keep their activations compressed."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import coltrain
import numpy as np
import pytest
from coltrain.experiments import datafiles
from coltrain.experiments.common import parser_of
from coltrain.experiments.memory import FOLLOWED, Memory, besides
from coltrain.experiments.memory_beside import beside
from coltrain.experiments.memory_bounds import E, K_OF_ONE, Look, bound_of, of_norm
from coltrain.experiments.memory_gradients import Predicted, as_kept, as_read, error_of, gradient_rows, within
from coltrain.experiments.memory_graphs import Setup, compiled, feed_of, graph_of, readers_of, samples
from coltrain.experiments.memory_groups import Rounded, two_bits
from coltrain.experiments.memory_inputs import bits_of, inputs_row, inputs_targets
from coltrain.experiments.memory_narrow import narrows
from coltrain.experiments.memory_looks import looks
from coltrain.experiments.memory_run import measure
from coltrain.experiments.memory_targets import interval, targets_of
from coltrain.experiments.memory_ways import NETS, WAYS
from coltrain.reports.experiment import page_of
from conftest import TOP

COMMAND = str(TOP / os.environ.get("BUILD", "build") / "bin/coltrain")


def point_of(keep: str, net: str = "vgg") -> dict[str, Any]:
    return measure(Setup(net, keep, 1, 2, 6, "random-28x28x1" if net == "lenet5" else "random-32x32x3", "emu:"))


def test_points() -> None:
    raw, exact, close = point_of("hbfp8"), point_of("hbfp8-mask"), point_of("s=0.1")
    assert raw["loss"] == exact["loss"] and raw["accuracy"] == exact["accuracy"]  # nothing is lost
    assert raw["bits_per_value"] == 8.5 and raw["pages_bytes"] == 0 and raw["steps"] == 3
    assert exact["pages_bytes"] > close["pages_bytes"] > 0 and exact["run_bytes"] < raw["run_bytes"]
    assert all(k["bound"] == 0 for k in exact["kept"]) and any(k["bound"] > 100 for k in close["kept"])
    assert close["ratio_fp32"] > exact["ratio_fp32"] > 32 / 12
    masked = point_of("s=0.1-mask")
    assert {k["tensor"] for k in masked["kept"] if k["exact"]} and all(k["bound"] == 0 for k in masked["kept"] if k["exact"])
    assert masked["kept_values"] == sum(k["values"] for k in masked["kept"] if not k["beside"]) > 0
    lenet5 = point_of("s=0.1", "lenet5")  # two images; padding of six channels to sixteen is none of its numbers
    assert [k["values"] for k in lenet5["kept"] if k["tensor"] == "conv1"] == [2 * 6 * 28 * 28]
    assert point_of("fp32")["run_bytes"] > raw["run_bytes"] >= point_of("recompute")["run_bytes"]


def test_two_bits(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = np.maximum(rng.standard_normal((30, 17)), 0)
    y = two_bits(x, rng)
    groups = np.zeros(512)
    groups[:510] = x.ravel()
    assert y.shape == x.shape and len(np.unique(y.ravel()[:256])) <= 4
    assert np.abs(y - x).max() <= groups.max() / 3 * 1.02
    means = np.mean([two_bits(x, rng) for _ in range(400)], axis=0)
    assert np.abs(means - x).max() < 0.15  # rounding at random has no bias


def steps_of(setup: Setup, rounding: Any = None) -> tuple[list[float], dict[str, Any]]:
    """Losses and what they end with; rounding: of what the host rounds, None: the network is whole."""
    data = coltrain.load_dataset(setup.data, setup.seed)
    losses = []
    with coltrain.open("emu:") as device:
        whole = None if rounding else compiled(device, setup)
        halves = Rounded(device, setup, rounding) if rounding else None
        network: Any = whole or halves
        network.draw(setup.seed)
        for step, (x, y) in enumerate(samples(setup, data)):
            feed = feed_of(graph_of(setup), x, y)
            losses.append(float(whole.run(feed, ["loss"], step=step)["loss"][0]) if whole else network.run(feed, step))
        return losses, whole.values() if whole else network.steps.values()


@pytest.mark.parametrize("net", ["lenet5", "vgg"])
def test_rounding_nothing_changes_no_bit(net: str) -> None:
    setup = Setup(net, "fp32", 1, 2, 4, "random-28x28x1" if net == "lenet5" else "random-32x32x3", "emu:")
    losses, values = steps_of(setup)
    same, others = steps_of(setup, lambda x: x)
    assert same == losses and values.keys() == others.keys()
    assert all(np.array_equal(values[name], others[name]) for name in values)
    rounded, others = steps_of(setup, lambda x: x + 0.25)
    assert rounded[0] == losses[0] and rounded[1] != losses[1]  # the loss of a step is not what it keeps, the next one's is
    assert np.array_equal(values["logits.bias"], others["logits.bias"]) is False


def test_groups_of_two_bits_train() -> None:
    found = point_of("actnn2", "lenet5")
    assert 0 < found["relative_error"] < 1 and found["steps"] == 3 and 0 <= found["accuracy"] <= 1  # of six test images
    assert found["bits_per_value"] == 2.125 and found["peak_bytes"] is None


def test_bounds_of_acgc() -> None:
    """By the reference's gradients, in double precision."""
    setup = Setup("lenet5", "acgc", 1, 2, 2, "random-28x28x1", "emu:")
    data = coltrain.load_dataset(setup.data, 1)
    whole = coltrain.Graph.builtin("lenet5", 2, training=True)
    whole.gradients("loss")
    whole.check()
    with coltrain.open("emu:") as device, compiled(device, setup) as network:
        network.draw(1)
        state, kept = network.values(), network.kept
        feed = feed_of(network.graph, *next(samples(setup, data)))
        bounds = Look(device, setup, kept).look(state, feed)
    of = {"pool1": ("conv2", "conv2.weight", 25), "pool2": ("fc1", "fc1.weight", 1), "fc1": ("fc2", "fc2.weight", 1), "fc2": ("logits", "logits.weight", 1)}
    seen = {"pool1": "pool1", "pool2": "pool2", "fc1": "relu3", "fc2": "relu4"}
    known = {name: x for name, x in state.items() if name in whole}
    for k, bound in zip(kept, bounds, strict=True):
        if k.exact:
            assert bound == 0
            continue
        out, weight, area = of[k.tensor]
        names = [whole.gradient(out), whole.gradient(weight), whole[seen[k.tensor]]]
        gy, gw, x = (whole.run({**known, **feed}, [t])[t.name] for t in names if t is not None)
        dx = np.sqrt(E * (gw**2).sum() / (2 * k.values * area * (gy**2).sum()))
        exact = K_OF_ONE + np.log2(min(dx, np.abs(x).max() / 4))
        assert exact - 1.15 < bound < exact + 0.15, k.tensor  # rounded down; gradients of the device differ by some per cent


def test_bounds_of_acgc_at_their_ends() -> None:
    assert bound_of(1.0, 100.0) == K_OF_ONE and bound_of(0.99, 100.0) == K_OF_ONE - 1
    assert bound_of(1.0, 1.0) == K_OF_ONE - 2  # at most a quarter of the largest
    assert bound_of(0.0, 1.0) == bound_of(1.0, 0.0) == bound_of(float("nan"), 1.0) == 0
    x, gz = np.array([[2.0, 1.0], [-4.0, 3.0]]), np.array([[0.5, 0.0], [0.0, 0.0]])
    one = np.ones(2)
    first, second = of_norm(x, 3.0, gz, one, 2 * one, 4 * one)
    assert first == pytest.approx(E * 3 * 2 / (2 * 16 * (4 * 0.25 * 4 + 4))) and second == pytest.approx(E * 3 * 2 / (2 * 16 * 4))


def test_readers_of_what_is_kept() -> None:
    graph = graph_of(Setup("resnet8", "s=0.1", 1, 2, 2, "", "emu:"))
    norm = readers_of(graph, "block1.1.conv1")
    assert norm.norm is not None and norm.norm.scale == "block1.1.norm1.scale" and not norm.layers
    assert norm.behind is not None and [r.weight for r in norm.behind] == ["block1.1.conv2.weight"]
    added = readers_of(graph, "block1.1.norm2")  # with the sum and the ReLU behind it
    assert added.value == "block1.1.relu2" and {r.weight: r.area for r in added.layers} == {"block2.1.conv1.weight": 9 / 4, "block2.1.shortcut.weight": 1 / 4}


def test_kept_by_hand() -> None:
    graph = coltrain.Graph.builtin("vgg", 2, training=True)
    graph.optimise("loss", 0.01, momentum=0.9)
    assert graph.keep("activation", "compressed") > 5
    feed = {"x": np.ones(graph["x"].shape, np.float32), "y": np.eye(10, dtype=np.float32)[[1, 2]]}
    with coltrain.open("emu:") as device, device.compile(graph, error=0.1, bits=12, refresh=2) as network:
        network.draw(1)
        assert all(k.bound == 0 and k.bytes == 0 for k in network.kept)
        lossy = next(i for i, k in enumerate(network.kept) if not k.exact)
        network.keep_within(lossy, 200)
        assert network.kept[lossy].bound == 200
        network.run(feed, [])
        assert network.info.pages >= network.info.pages_most > 0 and all(k.bytes > 0 for k in network.kept)
        with pytest.raises(coltrain.ArgumentError):
            network.keep_within(lossy, 255)
    kinds = coltrain.Masks
    for error, masks, has in (
        (0.1, None, kinds.STORED),
        (0.0, None, kinds.OFF),
        (0.1, False, kinds.OFF),
        (0.0, True, kinds.ON),
        (0.0, kinds.STORED, kinds.STORED),
    ):
        with coltrain.open("emu:") as device, device.compile(graph, error=error, masks=masks) as network:
            assert network.info.masks == has
    with coltrain.open("emu:compress=0") as device, pytest.raises(coltrain.UnsupportedError, match="compressed"):
        device.compile(graph)


@pytest.mark.parametrize("masks", [coltrain.Masks.OFF, coltrain.Masks.ON, coltrain.Masks.STORED])
def test_files_go_on(tmp_path: Path, masks: coltrain.Masks) -> None:
    """Ten steps are five, a file, and five, to the bit."""
    graph = coltrain.Graph.builtin("resnet8", 1, training=True)
    graph.optimise("loss", 0.01, momentum=0.9)
    assert graph.keep("activation", "compressed") > 5
    path = tmp_path / "half.ctm"
    rng = np.random.default_rng(5)
    feed = {"x": rng.normal(size=graph["x"].shape).astype(np.float32), "y": np.eye(10, dtype=np.float32)[[3]]}

    def come_to(network: coltrain.Compiled) -> tuple[list[int], dict[str, Any]]:
        return [k.bound for k in network.kept], {t.name: network.read(t.name) for t in graph.tensors if t.role in (coltrain.Role.WEIGHT, coltrain.Role.STATE)}

    with coltrain.open("emu:") as device:
        with device.compile(graph, error=0.1, refresh=4, masks=masks) as network:
            network.draw(1)
            for step in range(18, 28):
                network.run(feed, [], step=step)
                if step == 22:
                    network.save(path)
            bounds, values = come_to(network)
        with device.load_network(path) as network:
            assert network.info.continued and network.info.refresh == 4 and network.info.masks == masks and network.info.error == 0.1
            assert any(k.bound for k in network.kept) and all(not k.bytes for k in network.kept)
            for step in range(23, 28):
                network.run(feed, [], step=step)
            other_bounds, other = come_to(network)
        assert other_bounds == bounds
        for name, value in values.items():
            np.testing.assert_array_equal(other[name], value, name)
        with pytest.raises(coltrain.ArgumentError, match=r"half.ctm keeps activations compressed with an error of 0.1, not 0.2"):
            device.load_network(path, error=0.2)


def made(keep: str, bits: float | None, peak: float | None) -> dict[str, Any]:
    figures = {"bits_per_value": bits, "ratio_fp32": 32 / bits if bits else None, "peak_bytes": peak, "reserved_bytes": peak, "accuracy": 0.5, "loss": 2.0, "steps": 3}
    return figures | {"run_bytes": peak, "pages_bytes": 0, "dram_bytes": 1000, "cycles": None, "relative_error": None} | {"deviation_own": 0.7, "deviation_others": 3.0}


def waited(net: str, keep: str) -> dict[str, Any]:
    figures = {"median_cycles": 580.0, "p99_cycles": 640.0, "most_cycles": 650}
    return {"net": net, "keep": keep, "requests": 400, "step_cycles": 1.1e6 if keep == "s=0.1" else 1e6, "pages_bytes": 0} | figures | {f"alone_{k}": x for k, x in figures.items()}


def deviated(tensor: str, over: float | None) -> dict[str, Any]:
    names = {"step": 2, "tensor": tensor, "weight": f"{tensor}.weight", "made": "product", "bound": 130}
    return names | {"nonzero": 0.5, "left": 0.4, "same": 0.1, "over_predicted": over, "uniform": 1.0, "over_allowed": 0.7}


def test_summary(tmp_path: Path) -> None:
    e = Memory(parser_of(Memory).parse(["--out", str(tmp_path)]))
    e.options.seeds = 1
    e.store.open()
    for net in NETS:
        for keep in WAYS:
            bits, peak = {"s=0.1": (2.0, 100.0), "hbfp8": (8.5, 400.0), "hbfp8-mask": (4.0, 300.0)}.get(keep, (8.0, 300.0))
            e.store.save(e.point(net, keep, 1), made(keep, bits, None if keep == "actnn2" else peak))
    for net, keep in besides():
        e.store.save(e.beside(net, keep), waited(net, keep))
    for net, keep, bandwidth in narrows():
        cycles = 1000000 + 100000 * bandwidth if keep == "s=0.1" else 1500000
        e.store.save(e.narrow(net, keep, bandwidth), made(keep, 2.0, 100.0) | {"cycles": cycles})
    for net in NETS:
        e.store.save(e.gradients(net, "s=0.1", 1), {"gradients": [deviated("conv1", 0.9), deviated("conv2", None), deviated("fc1", 1.5)]})
    s = e.summary()
    assert len(s["rows"]) == len(NETS) * len(WAYS)
    assert all({"net", "keep", "bits_per_value", "ratio_fp32", "peak_bytes", "accuracy"} <= r.keys() for r in json.loads(json.dumps(s))["rows"])
    assert {(r["net"], r["keep"]) for r in s["rows"]} == {(net, keep) for net in NETS for keep in WAYS}
    assert [t["held"] for t in s["targets"]] == [True, True, True, None, None, True, False, False, True, True, True, None, None]
    assert [t.held for t in targets_of(s["rows"][:3], [])] == [None] * 13
    late_narrow = [r | {"cycles": 1500001} if r["keep"] == "s=0.1" and r["bandwidth"] == 2 else r for r in s["narrow"]]
    assert [t.held for t in targets_of(s["rows"], s["beside"], late_narrow)[9:11]] == [True, False]
    assert sorted({round(r["over_hbfp8"], 6) for r in s["narrow"]}) == [0.8, 0.933333, 1.0, 1.2]
    late = [p | {"p99_cycles": 700.0, "step_cycles": 1e6} if p["keep"] == "s=0.1" else p for p in s["beside"]]
    assert [t.held for t in targets_of(s["rows"], late)[7:9]] == [True, False] and len(late) == len(besides())
    page = page_of(s)
    assert "16.00" in "\n".join(e.lines(s)) and "ResNet-8" in page and e.wrong(s) == 0
    assert all(page.count(f">{keep}</text>") == 2 * len(NETS) for keep in WAYS)  # below its bars, wide and narrow
    assert page.count("<td>640</td>") == 2 * len(besides())  # beside, and with nothing beside
    (file, asked, narrow, inputs, gradients, _) = datafiles.files_of(s)
    assert len(narrow.cells("abc")) == len(narrows()) and not inputs.rows
    assert f"gradients of {next(iter(NETS))}, s=0.1: deviation over what is predicted 1.20 (0.90 to 1.50), of 2" in list(e.lines(s))
    assert [c[7:] for c in gradients.cells("abc")][:2] == [["130", "0.500", "0.400", "0.100", x, "1.000", "0.700", "abc"] for x in ("0.900", "")]
    assert len(gradients.cells("abc")) == 3 * len(NETS) and len(gradients.names()) == 14
    assert len(file.cells("abc")) == len(s["rows"]) and len(file.cells("abc")[0]) == len(file.names()) + 1
    assert len(asked.cells("abc")) == len(besides())
    columns, rows = e.table(s)
    assert all(len(row) == len(columns) for row in rows)


def kept(tensor: str, values: int, size: int, exact: bool = False) -> dict[str, Any]:
    return {"tensor": tensor, "values": values, "bytes": size, "bound": 130, "exact": exact, "beside": exact}


def test_inputs_of_convolutions() -> None:
    """LeNet-5 has one that is kept, behind a pooling whose maxima's places are not its mask; in the VGG-like network masks are of what is read."""
    lenet5 = [kept("pool1", 1000, 500), kept("pool1", 1000, 600, exact=True), kept("pool2", 100, 900)]
    assert bits_of("lenet5", {"kept": lenet5, "kept_bytes": 2000}) == pytest.approx((4, 4))
    assert bits_of("lenet5", {"kept": lenet5, "kept_bytes": 4000}) == pytest.approx((8, 8))  # index and ends of pages
    vgg = [kept("conv1.1", 1000, 200), kept("conv1.1", 1000, 100, exact=True), kept("pool3", 1000, 700), kept("conv1.2", 1000, 50, exact=True)]
    assert bits_of("vgg", {"kept": vgg, "kept_bytes": 1050}) == pytest.approx((2.4, 1.6))
    resnet8 = [kept("conv", 1000, 300), kept("block1.1.norm2", 1000, 100), kept("block3.1.conv2", 1000, 400), kept("pool", 1000, 200)]
    assert bits_of("resnet8", {"kept": resnet8, "kept_bytes": 1000}) == pytest.approx((1.6, 1.6))  # behind a normalisation, too
    assert bits_of("vgg", {"kept": [], "kept_bytes": 0}) is None
    row = inputs_row("vgg", "s=0.1", [{"kept": vgg, "kept_bytes": 1050}, {"kept": vgg, "kept_bytes": 2100}, {}])
    assert row and row["seeds"] == 2 and row["bits_per_input"] == pytest.approx(3.6) and row["ratio_fp32"] == pytest.approx(32 / 3.6)
    rows = [{"net": net, "keep": keep, "bits_per_input": x} for net in NETS for keep, x in (("s=0.1", 2.0), ("hbfp8-mask", 3.0))]
    over, mask = inputs_targets(rows, list(NETS), "s=0.1", "hbfp8-mask", (13.5, 1.8))
    assert over.held is True and over.figure == "16.000 (lenet5)" and mask.held is False and mask.figure == "1.500 (lenet5)"
    assert [t.held for t in inputs_targets(rows[1:], list(NETS), "s=0.1", "hbfp8-mask", (13.5, 1.8))] == [None, None]


def rows_of(**accuracies: list[float]) -> list[dict[str, Any]]:
    ways = {"hbfp8": accuracies["raw"], "s=0.1": accuracies["close"]}
    base = {"ratio_fp32": None, "reserved_bytes": None, "bits_per_value": None}
    return [{"net": net, "keep": keep, "accuracies": found, **base} for net in NETS for keep, found in ways.items()]


def test_accuracy_within_noise() -> None:
    def held(raw: list[float], close: list[float], one: bool = False) -> bool | None:
        rows = rows_of(raw=raw, close=close)
        for r in rows:
            if r["net"] == "resnet8" and one:
                r["accuracies"] = [0.9 if r["keep"] == "hbfp8" else 0.1]
        return targets_of(rows, [])[4].held

    assert held([0.80, 0.82, 0.84], [0.79, 0.81, 0.84]) is True
    assert held([0.80, 0.82, 0.84], [0.70, 0.72, 0.74]) is False
    assert held([0.80], [0.80]) is None
    assert held([0.80, 0.82], [0.80, 0.82], one=True) is True  # of one seed nothing can be said


def test_intervals(tmp_path: Path) -> None:
    assert interval([]) == (None, None, None) and interval([0.5]) == (0.5, None, None)
    middle, low, high = interval([0.7, 0.8, 0.9])
    assert low is not None and middle == pytest.approx(0.8) and low == pytest.approx(0.8 - 4.3027 * 0.1 / 3**0.5, abs=1e-4) and high == pytest.approx(1.6 - low)
    e = Memory(parser_of(Memory).parse(["--out", str(tmp_path)]))
    e.options.seeds = 2
    e.store.open()
    for keep, right in (("fp32", (0.8, 0.6)), ("s=0.1", (0.75, 0.65))):
        for seed in (1, 2):
            e.store.save(e.point("vgg", keep, seed), made(keep, 8.0, 300.0) | {"accuracy": right[seed - 1]})
    lossy = next(r for r in e.summary()["rows"] if r["keep"] == "s=0.1")
    assert lossy["lost"] == pytest.approx(0) and lossy["lost_high"] == pytest.approx(12.706 * 0.05, abs=1e-3)  # seed by seed


def test_requests_beside_steps() -> None:
    setup = Setup("lenet5", "s=0.1", 1, 1, 1, "random-28x28x1", "sim:")
    data = coltrain.load_dataset(setup.data, 1)
    with coltrain.open("emu:") as device, compiled(device, setup) as network:
        network.draw(1)
        state, kept = network.values(), network.kept
        feed = feed_of(network.graph, *next(samples(setup, data)))
    found = beside(setup, state, [0 if k.exact else 130 for k in kept], feed, 6)
    assert found["requests"] == 6 and 500 < found["median_cycles"] <= found["p99_cycles"] <= found["most_cycles"] < 2000
    assert found["step_cycles"] > 10 * found["most_cycles"] and found["pages_bytes"] > 0
    assert found["alone_p99_cycles"] <= found["alone_most_cycles"] < 1000


def test_what_must_be_the_same(tmp_path: Path) -> None:
    e = Memory(parser_of(Memory).parse(["--out", str(tmp_path)]))
    e.options.seeds = 1
    e.store.open()
    for keep, loss in (("hbfp8", 2.0), ("recompute", 2.0), ("hbfp8-mask", 2.5), ("s=0.1", 3.0)):
        e.store.save(e.point("vgg", keep, 1), made(keep, 8.0, 300.0) | {"loss": loss})
    assert e.wrong(e.summary()) == 1


def test_deviations() -> None:
    """Bounds do what the formula says: a power of two, rounded down, is more than half of what is allowed."""
    for keep in ("s=0.1-nomask", "s=0.1"):
        figures = measure(Setup("lenet5", keep, 1, 16, 320, "random-28x28x1", "emu:"))
        own = {(d["tensor"], d["weight"]): d["deviation"] for d in figures["deviations"] if d["made_of_it"]}
        assert set(own) == {("pool1", "conv2.weight"), ("pool2", "fc1.weight"), ("fc1", "fc2.weight"), ("fc2", "logits.weight")}
        assert all(0.3 < d < 1.5 for d in own.values()), own
        assert 0.65 < sum(own.values()) / len(own) < 1.6, own  # K is neither one more nor one less
        assert figures["deviation_own"] == max(own.values())
        assert figures["reserved_bytes"] >= figures["peak_bytes"]
        if WAYS[keep].masks != coltrain.Masks.OFF:
            assert figures["deviation_others"] is None  # no gate is another one
        else:
            assert figures["deviation_others"] > 1


def test_numbers_as_the_device_has_them() -> None:
    """As HBFP8 of docs/numerics.md, and with a bound as of docs/compression.md."""
    x = np.zeros((2, 18), np.float32)
    x[0, :4], x[1, 17] = (1.0, 127.4 / 64, 0.5 / 64, 1.5 / 64), 0.3
    kept = as_kept(x)
    assert kept[0, :4].tolist() == [1, 127 / 64, 0, 2 / 64] and kept[1, 17] == 77 / 256  # a tie goes to even; 127 clips; blocks have exponents of their own
    read = as_read(np.array([[1.0], [3 / 256]]))
    assert read.ravel().tolist() == [1, 1 / 64]
    assert error_of(134) == 1 and within(np.array([[0.5, 1.0, 1.5, 3.0]]), 134).tolist() == [[0, 0, 2, 4]]


def test_predicted_gradients() -> None:
    """Where errors are uniform and independent, predictions are what is measured; a bound of twice the size makes twice of both."""
    rows = gradient_rows(Setup("lenet5", "s=0.1", 1, 16, 320, "random-28x28x1", "emu:"))
    assert [r["step"] for r in rows] == [4] * 4 + [10] * 4 + [20] * 4
    assert [(r["tensor"], r["weight"], r["made"]) for r in rows[:4]] == [(t, w, "product") for t, w in (("fc2", "logits.weight"), ("fc1", "fc2.weight"), ("pool2", "fc1.weight"), ("pool1", "conv2.weight"))]
    for r in rows:
        assert 0.8 < r["over_predicted"] < 1.25 and 0.85 < r["uniform"] < 1.15, r
        assert 0 < r["left"] <= r["nonzero"] < 1 and r["same"] < 0.5 and r["over_allowed"] > 0.2, r


def test_predictions_of_what_is_normalised() -> None:
    setup = Setup("resnet8", "s=0.1", 1, 4, 4, "random-32x32x3", "emu:")
    data = coltrain.load_dataset(setup.data, 1)
    with coltrain.open("emu:") as device:
        found = Predicted(device, setup, ["block1.1.conv1", "block1.1.norm2"])
        found.network.draw(1)
        state = found.network.values()
        found.look(state, feed_of(graph_of(setup), *next(samples(setup, data))))
        (scale, again), numbers = found.of("block1.1.conv1", 130)
        assert (scale.weight, scale.made, again.weight, again.made) == ("block1.1.norm1.scale", "scale", "block1.1.conv2.weight", "again")
        assert numbers["nonzero"] == pytest.approx(1, abs=0.01)
        seen, names = found.seen, found.gradient
        variance = seen["block1.1.norm1:4"] + 1e-5
        sums = {out: (seen[names[out]].reshape(-1, 16).astype(float) ** 2).sum(axis=0) for out in ("block1.1.norm1", "block1.1.conv2")}
        assert scale.deviation == pytest.approx(2.0**-4 * np.sqrt((sums["block1.1.norm1"] / variance).mean() / 3), rel=1e-5)
        assert again.deviation == pytest.approx(2.0**-4 * np.sqrt(sums["block1.1.conv2"].mean() * (1 / variance).mean() / 3), rel=1e-5)  # scales are 1 at first
        assert scale.uniform == pytest.approx(1, abs=0.1) and again.uniform == pytest.approx(0.5**0.5, abs=0.1)  # half of it is 0 behind the ReLU
        layers, _ = found.of("block1.1.norm2", 130)
        assert [p.weight for p in layers] == ["block2.1.conv1.weight", "block2.1.shortcut.weight"]
        twice, _ = found.of("block1.1.norm2", 131)
        assert [b.deviation / a.deviation for a, b in zip(layers, twice, strict=True)] == pytest.approx([2, 2])


def test_what_a_look_costs() -> None:
    found = looks(Setup("lenet5", "s=0.1", 1, 1, 1, "random-28x28x1", "sim:"))
    assert 0 < found["step_cycles"] < found["look_cycles"] < 2 * found["step_cycles"]
    more = looks(Setup("lenet5", "s=0.1", 1, 1, 1, "random-28x28x1", "emu:"))["host_ms"]
    assert more != 0 and abs(more) < 100  # a difference of two times, which may be of either sign here


def test_the_command(tmp_path: Path) -> None:
    out = tmp_path / "memory"
    run = [COMMAND, "experiment", "memory", "--images", "16", "--out", str(out), "--only", "vgg-hbfp8*", "--json", str(tmp_path / "s.json")]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "s.json").read_text())["rows"]
    assert [(r["net"], r["keep"]) for r in rows] == [("vgg", "hbfp8"), ("vgg", "hbfp8-mask")]
    again = subprocess.run(run, capture_output=True, text=True, check=False)
    assert again.returncode == 0 and "vgg-hbfp8-1" not in again.stderr
    run[run.index("vgg-hbfp8*")] = "gradients-lenet5-s=0.1-1"
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads((tmp_path / "s.json").read_text())["gradients"]
    assert {r["net"] for r in found} == {"lenet5"} and {r["keep"] for r in found} <= set(FOLLOWED) and found[0]["step"] == 1
