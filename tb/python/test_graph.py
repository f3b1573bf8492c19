# SPDX-License-Identifier: Apache-2.0
"""Graphs in Python: described, refused, differentiated, computed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import coltrain
import numpy as np
import pytest
from coltrain import Graph, Role


def perceptron() -> Graph:
    graph = Graph()
    x, w, b = graph.input("x", (4, 3)), graph.weight("w", (2, 3)), graph.weight("b", (2,), "zeros")
    y = graph.add("relu", graph.add("linear", x, w, b, name="fc"), name="y")
    graph.result(y)
    return graph


def test_a_network_computes(seed: int) -> None:
    graph, random = perceptron().check(), np.random.default_rng(seed)
    x, w, b = random.standard_normal((4, 3)), random.standard_normal((2, 3)), random.standard_normal(2)
    got = graph.run({"x": x, "w": w, "b": b}, wanted=["fc", graph["y"]])
    assert list(got) == ["fc", "y"] and got["y"].dtype == np.float64
    np.testing.assert_allclose(got["fc"], x @ w.T + b, rtol=1e-14)
    np.testing.assert_array_equal(got["y"], np.maximum(got["fc"], 0))
    assert list(graph.run({"x": x, "w": w, "b": b})) == ["y"]


def test_what_is_known_of_it() -> None:
    graph = perceptron()
    assert graph["fc"].shape == (4, 2) and graph["x"].role == Role.INPUT and "z" not in graph and "w" in graph
    assert graph["w"] == graph.find("w") and graph["w"].info.initial == coltrain.Initial.HE
    node = graph.node(0)
    assert (node.op, node.name, node.macs) == ("linear", "fc", 24)
    assert node.inputs == (graph["x"], graph["w"], graph["b"]) and node.outputs == (graph["fc"],)
    assert graph.order() == [0, 1] and graph.macs == 24
    assert graph.info == coltrain.GraphInfo(2, 5, 8, 0, 24, False)
    assert list(graph.by_role("weight")) == ["w", "b"]
    assert "conv" in coltrain.operators() and coltrain.operator_attributes("clip") == ("min", "max")
    assert coltrain.operator_attributes("relu") == coltrain.operator_attributes("no such") == ()
    clip = graph.node(graph.info.nodes - 1)
    assert clip.attrs == {}
    graph.add("conv", graph.input("i", (1, 4, 4, 2)), graph.weight("k", (1, 3, 3, 2)), pad=(1, 1, 1, 1), name="edges")
    assert graph.nodes[-1].attrs == {"stride": (1, 1), "dilation": (1, 1), "pad": (1, 1, 1, 1), "groups": (1,)}
    assert "fc" in repr(graph["fc"]) and "2 nodes" not in repr(graph)


@pytest.mark.parametrize(
    ("wrong", "kind", "sentence"),
    [
        (lambda g: g.add("relu", "nothing"), coltrain.NotFoundError, "nothing"),
        (lambda g: g.add("rely", "x"), coltrain.UnsupportedError, "there is no operator rely"),
        (lambda g: g.add("linear", "x", "b", name="odd"), coltrain.ArgumentError, r"node odd \(linear\): its input is 4x3"),
        (lambda g: g.add("clip", "x", min=2, max=1, name="c"), coltrain.ArgumentError, r"node c \(clip\): min 2 is above max 1"),
        (lambda g: g.add("clip", "x", min=float("nan"), name="c"), coltrain.ArgumentError, "node c .*NaN"),
        (lambda g: g.add("reshape", "x", shape=(1, 2, 3, 2, 1)), coltrain.ArgumentError, "shape has 5 numbers"),
        (lambda g: g.add("relu", "x", outputs=[]), coltrain.ArgumentError, "output 0 is tensor 0"),
        (lambda g: g.input("z", (0, 3)), coltrain.ArgumentError, "batch .* is 0"),
        (lambda g: g.input("z", (2**30, 3)), coltrain.ArgumentError, "larger than 2"),
        (lambda g: g.input("z", (1,) * 5), coltrain.ArgumentError, "1 to 4 dimensions"),
        (lambda g: g.input("z\0", (1,)), coltrain.ArgumentError, "zero bytes"),
        (lambda g: g.add("relu", Graph().input("x", (1,))), coltrain.ArgumentError, "no tensor of this graph"),
        (lambda g: g.run({}), coltrain.ArgumentError, "not checked"),
        (lambda g: g.check().run({"x": np.ones((4, 3))}), coltrain.ArgumentError, "tensor w comes from outside"),
        (lambda g: g.check().run({"x": np.ones((3, 4))}), coltrain.ArgumentError, r"x has the shape \(3, 4\)"),
        (lambda g: g.check().add("relu", "x"), coltrain.ArgumentError, "it cannot be changed"),
        (lambda g: Graph.builtin("lenet4"), coltrain.Error, "lenet4"),
        (lambda g: Graph.unpack(b"TENS"), coltrain.FormatError, ""),
        (lambda g: Graph.unpack(g.pack()[:-1]), coltrain.FormatError, ""),
        (lambda g: Graph().check(), coltrain.ArgumentError, "no nodes"),
    ],
)
def test_refusals_are_exceptions(wrong: Callable[[Graph], object], kind: type[coltrain.Error], sentence: str) -> None:
    with pytest.raises(kind, match=sentence):
        wrong(perceptron())


def test_gradients_of_something_else(seed: int) -> None:
    """What a gradient is made of may be another tensor than what was read in front."""
    graph, random = perceptron(), np.random.default_rng(seed)
    graph.add("mse", "fc", graph.tensor("t", (4, 2), "label"), name="loss")
    graph.gradients("loss")
    other = graph.input("other", (4, 3))
    made = next(n for n in graph.nodes if n.backward and graph["x"] in n.inputs)
    assert graph.reads(made, made.inputs.index(graph["x"]), other) == other
    assert graph["x"] not in graph.node(made.index).inputs and graph["x"] in graph.node(0).inputs
    with pytest.raises(coltrain.ArgumentError, match="input 0 is 4x3, it cannot be w"):
        graph.reads(0, 0, "w")
    gradient = graph.gradient("w")
    assert gradient is not None
    given = {t.name: random.standard_normal(t.shape) for t in graph.check().tensors if t.info.node is None}
    got = graph.run(given, ["fc", gradient])
    delta = (got["fc"] - given["t"]) / 4  # of a mean of eight squares
    np.testing.assert_allclose(got[gradient.name], delta.T @ given["other"], rtol=1e-12)


def test_cycles_name_their_node() -> None:
    graph = Graph()
    later = graph.tensor("later", (1, 2), "activation")
    first = graph.add("relu", later, name="first")
    graph.add("tanh", first, name="second", outputs=[later])
    with pytest.raises(coltrain.ArgumentError, match=r"node (first|second) .*cyclic"):
        graph.check()


@pytest.mark.parametrize("name", ["lenet5", "resnet8", "resnet20"])
def test_networks_by_name_as_bytes_and_back(name: str) -> None:
    graph = Graph.builtin(name, batch=2, training=True).check()
    back = Graph.unpack(graph.pack())
    assert back.info == graph.info and back.pack() == graph.pack()
    assert graph["logits"].role == Role.OUTPUT and graph["logits"].shape == (2, 10)


def test_gradients_are_differences(seed: int) -> None:
    graph = Graph.mlp([5, 4, 3], batch=2, training=True)
    graph.gradients("loss")
    graph.check()
    random = np.random.default_rng(seed)
    values: dict[str, Any] = {**graph.initial_values(seed), "x": random.standard_normal((2, 5)), "y": np.eye(3)[[0, 2]]}
    weight = next(iter(graph.by_role("weight")))
    gradient = graph.gradient(weight)
    assert gradient is not None and graph.gradient("x") is None
    exact = graph.run(values, [gradient])[gradient.name]
    step = 1e-6
    for at in [(0, 0), (3, 4)]:
        losses = []
        for sign in (1, -1):
            moved = values[weight].astype(np.float64)
            moved[at] += sign * step
            losses.append(float(graph.run({**values, weight: moved}, ["loss"])["loss"][0]))
        assert abs((losses[0] - losses[1]) / (2 * step) - exact[at]) < 1e-8


def test_a_graph_learns_by_the_reference(seed: int) -> None:
    graph = Graph.mlp([4, 8, 2], batch=16, training=True)
    graph.optimise("loss", coltrain.Schedule(0.2, "cosine", period=40), momentum=0.9)
    graph.check()
    x = np.random.default_rng(seed).standard_normal((16, 4))
    values: dict[str, Any] = {**graph.initial_values(seed), "x": x, "y": np.eye(2)[(x[:, 0] > 0).astype(int)]}
    before = {name: array.copy() for name, array in values.items()}
    first = graph.run(values, ["loss"])["loss"][0]
    state: dict[str, Any] = dict(values)
    for step in range(40):
        got = graph.run(state, ["loss"], step=step, update=True)
        state |= {name: value for name, value in got.items() if name != "loss"}
    assert got["loss"][0] < first / 10
    assert all(np.array_equal(values[name], before[name]) for name in values)  # the caller's arrays stay as they were


def test_schedules() -> None:
    rates = coltrain.Schedule(1.0, "step", warmup=2, period=3, factor=0.5)
    assert [rates.at(s) for s in range(9)] == [0.5, 1, 1, 1, 1, 0.5, 0.5, 0.5, 0.25]
    with pytest.raises(coltrain.ArgumentError, match="ScheduleKind"):
        coltrain.Schedule(1.0, "linear").at(0)


def test_folding_changes_no_number(seed: int) -> None:
    graph, folded = Graph.builtin("resnet8"), Graph.builtin("resnet8")
    assert folded.fold() > 0
    graph.check()
    folded.check()
    random = np.random.default_rng(seed)
    values = {name: np.abs(random.standard_normal(v.shape)) + 0.1 for name, v in graph.initial_values().items()}
    values["x"] = random.standard_normal((1, 32, 32, 3))
    a, b = graph.run(values)["logits"], folded.run(values)["logits"]
    np.testing.assert_allclose(a, b, rtol=1e-9)
