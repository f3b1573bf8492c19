# SPDX-License-Identifier: Apache-2.0
"""Groups of 2 bits (ActNN, ICML 2021), which are no way of the device's: training with what the host rounds in front of each step.

256 numbers have a minimum and a maximum in bfloat16, and are rounded at random to one of four levels between them. Rounded is what gradients of
weights and of normalisations are made of; which elements ReLUs let through, and where maxima were, gradients know exactly, as ActNN keeps both beside.
A step whose host rounds nothing has the bits of one of fp32, but where something normalises: there sums are in another order.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

import coltrain
from coltrain.experiments.memory_graphs import F32, F64, Setup, plain_graph
from coltrain.experiments.memory_ways import GROUP

LEVELS = 3
ROUNDED = ".rounded"
EXACT = ("relu_grad", "max_pool_grad", "cross_entropy_grad")
"""These read what was made in front as it was."""

Round = Callable[[F64], F64]


def bfloat16(x: F64) -> F64:
    bits = (x.astype(np.float32).view(np.uint32) + np.uint32(0x8000)) & np.uint32(0xFFFF0000)
    return bits.view(np.float32).astype(np.float64)


def two_bits(x: F64, rng: np.random.Generator) -> F64:
    """ActNN's rule: groups of 256, the last one filled up with zeros."""
    flat = np.zeros(-(-x.size // GROUP) * GROUP)
    flat[: x.size] = x.ravel()
    groups = flat.reshape(-1, GROUP)
    low, high = (bfloat16(v) for v in (groups.min(axis=1, keepdims=True), groups.max(axis=1, keepdims=True)))
    step = np.where(high > low, (high - low) / LEVELS, 1)
    level = np.clip(np.floor((groups - low) / step + rng.random(groups.shape)), 0, LEVELS)
    result: F64 = (low + level * step).ravel()[: x.size].reshape(x.shape)
    return result


# ---- A graph whose gradients are made of inputs ----


class Copies:
    """What gradients read in place of what was made in front.

    Inputs are NAME.rounded. What is made flat of an input goes through an operator that changes nothing, for an image that comes from outside and is
    only read flat lies as rows, which is another order than the weights'.
    """

    def __init__(self, graph: coltrain.Graph) -> None:
        front = [n for n in graph.nodes if not n.backward]
        self.graph = graph
        self.made = {t for n in front for t in n.outputs if len(t.shape) > 1}
        self.flat = {n.outputs[0]: (n.inputs[0], n.attrs["axis"]) for n in front if n.op == "flatten"}
        self.copies: dict[coltrain.Tensor, coltrain.Tensor] = {}
        self.rounded: list[str] = []

    def add(self, tensor: coltrain.Tensor) -> coltrain.Tensor:
        name = tensor.name
        image, axis = self.flat.get(tensor, (None, ()))
        if image is None:
            self.rounded.append(name)
            return self.graph.input(name + ROUNDED, tensor.shape)
        same = self.graph.add("scale", self.of(image), name=f"{name}.same", factor=1)
        return self.graph.add("flatten", same, name=name + ROUNDED, axis=axis)

    def of(self, tensor: coltrain.Tensor) -> coltrain.Tensor:
        if tensor not in self.made:
            return tensor
        if tensor not in self.copies:
            self.copies[tensor] = self.add(tensor)
        return self.copies[tensor]


def make_of_rounded(graph: coltrain.Graph) -> list[str]:
    """Has gradients of weights and normalisations be made of inputs, NAME.rounded; returns these names."""
    copies = Copies(graph)
    for node in graph.nodes:
        for i, tensor in enumerate(node.inputs):
            if node.backward and node.op not in EXACT and tensor in copies.made:
                graph.reads(node, i, copies.of(tensor))
    return copies.rounded


# ---- Training ----


class Rounded:
    """A network that trains with what the host makes of what it keeps: it is run in front, its numbers are rounded, and a step is made with these."""

    def __init__(self, device: coltrain.Device, setup: Setup, rounding: Round) -> None:
        graph = plain_graph(setup)
        graph.result("loss")
        self.rounded = make_of_rounded(graph)
        front = coltrain.Graph.builtin(setup.net, setup.batch, training=True)
        for name in self.rounded:
            if front[name].role == coltrain.Role.ACTIVATION:
                front.result(name)
        self.front, self.steps = device.compile(front.check()), device.compile(graph)
        self.rounding = rounding
        self.error = 0.0
        """Of the last step: root mean square of what rounding changed, over that of the numbers."""

    def draw(self, seed: int) -> None:
        self.steps.draw(seed)

    def run(self, feed: dict[str, F32], step: int) -> float:
        """A step; its loss."""
        self.front.write({n: x for n, x in self.steps.values().items() if n in self.front.graph})
        found = {n: x.astype(np.float64) for n, x in self.front.run(feed, self.rounded, step=step).items()}
        kept = {n: self.rounding(x) for n, x in found.items()}
        wrong = sum(float(((kept[n] - x) ** 2).sum()) for n, x in found.items())
        self.error = float(np.sqrt(wrong / sum(float((x**2).sum()) for x in found.values())))
        given = {n + ROUNDED: x.astype(np.float32) for n, x in kept.items()}
        return float(self.steps.run({**feed, **given}, ["loss"], step=step)["loss"][0])
