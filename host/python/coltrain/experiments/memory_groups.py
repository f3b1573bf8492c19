# SPDX-License-Identifier: Apache-2.0
"""Groups of 2 bits (ActNN, ICML 2021), which are no way of the device's: training with what the host rounds in front of each step.

256 numbers have a minimum and a maximum in bfloat16, and are rounded at random to one of four levels between them. Rounded is what gradients of
weights and of normalisations are made of; which elements ReLUs let through, and where maxima were, gradients know exactly, as ActNN keeps both beside.
A step whose host rounds nothing has the bits of one of fp32, but where something normalises: there sums are in another order.
"""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import dataclass

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


class Bytes:
    """Reads the bytes of a graph (docs/graph.md)."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def take(self, size: int) -> bytes:
        self.at += size
        return self.data[self.at - size : self.at]

    def number(self, size: int) -> int:
        return int.from_bytes(self.take(size), "little")

    def name(self) -> str:
        return self.take(self.number(1)).decode()

    def chunk(self) -> tuple[bytes, Bytes]:
        tag = self.take(4)
        return tag, Bytes(self.take(self.number(8)))


def little(number: int, size: int = 4) -> bytes:
    return number.to_bytes(size, "little")


def named(name: str) -> bytes:
    return little(len(name.encode()), 1) + name.encode()


def real(name: str, value: float) -> bytes:
    """The only attribute of a node."""
    return little(1, 1) + named(name) + little(1, 1) + struct.pack("<d", value)


@dataclass
class Record:
    """Of a node."""

    op: str
    head: bytes
    """Up to its inputs."""
    inputs: list[int]
    outputs: list[int]
    attrs: bytes

    def pack(self) -> bytes:
        numbers = [*map(little, self.inputs), little(len(self.outputs), 1), *map(little, self.outputs)]
        return self.head + b"".join(numbers) + self.attrs


def record_of(nodes: Bytes) -> tuple[Record, bool]:
    """The next node, and whether it is one of gradients."""
    begin = nodes.at
    op, _, backward, inputs = nodes.name(), nodes.name(), nodes.number(1), nodes.number(2)
    head = nodes.data[begin : nodes.at]
    read = [nodes.number(4) for _ in range(inputs)]
    made = [nodes.number(4) for _ in range(nodes.number(1))]
    begin = nodes.at
    for _ in range(nodes.number(1)):
        nodes.name()
        nodes.take(8 * nodes.number(1))
    return Record(op, head, read, made, nodes.data[begin : nodes.at]), bool(backward)


def node(op: str, name: str, read: int, made: int, attrs: bytes) -> Record:
    """One in front, with one input and one output."""
    return Record(op, named(op) + named(name) + little(0, 1) + little(1, 2), [read], [made], attrs)


class Copies:
    """What gradients read in place of what was made in front, numbered behind the tensors of a graph.

    Inputs are NAME.rounded. What is made flat of an input goes through an operator that changes nothing, for an image that comes from outside and is
    only read flat lies as rows, which is another order than the weights'.
    """

    def __init__(self, graph: coltrain.Graph) -> None:
        self.graph, self.first = graph, len(graph.tensors) + 1
        self.made = {t.number for n in graph.nodes if not n.backward for t in n.outputs if len(t.shape) > 1}
        self.flat = {n.outputs[0].number: (n.inputs[0].number, n.attrs["axis"][0]) for n in graph.nodes if n.op == "flatten" and n.inputs[0] is not None}
        self.number: dict[int, int] = {}
        """By that of the tensor itself."""
        self.tensors: list[bytes] = []
        self.nodes: list[Record] = []
        self.rounded: list[str] = []

    def add(self, of: int, end: str, role: coltrain.Role) -> int:
        """A tensor of the same shape."""
        t = coltrain.Tensor(self.graph, of)
        shape = t.shape
        self.tensors.append(named(t.name + end) + bytes([role, coltrain.Format.FP32, 0, len(shape)]) + b"".join(map(little, shape)))
        return self.first + len(self.tensors) - 1

    def of(self, number: int) -> int:
        if number not in self.made:
            return number
        if number not in self.number:
            if number in self.flat:
                image, axis = self.flat[number]
                same, flat = self.add(image, ".same", coltrain.Role.ACTIVATION), self.add(number, ROUNDED, coltrain.Role.ACTIVATION)
                self.nodes.append(node("scale", f"same{same}", self.of(image), same, real("factor", 1)))
                self.nodes.append(node("flatten", f"flat{flat}", same, flat, real("axis", axis)))
                self.number[number] = flat
            else:
                self.number[number] = self.add(number, ROUNDED, coltrain.Role.INPUT)
                self.rounded.append(coltrain.Tensor(self.graph, number).name)
        return self.number[number]


def with_rounded(whole: coltrain.Graph) -> tuple[coltrain.Graph, list[str]]:
    """The same graph, but that gradients of weights and normalisations are made of inputs, NAME.rounded; and these names."""
    packed, copies = Bytes(whole.pack()), Copies(whole)
    chunks = dict(packed.chunk() for _ in range(3))
    nodes_in, tensors_in = chunks[b"NODE"], chunks[b"TENS"]
    records = [record_of(nodes_in) for _ in range(nodes_in.number(4))]
    for record, backward in records:
        if backward and record.op not in EXACT:
            record.inputs = [copies.of(t) for t in record.inputs]
    nodes = [r.pack() for r in (*copies.nodes, *(record for record, _ in records))]
    parts = {
        b"TENS": little(tensors_in.number(4) + len(copies.tensors)) + tensors_in.data[4:] + b"".join(copies.tensors),
        b"NODE": little(len(nodes)) + b"".join(nodes),
        b"LINK": chunks[b"LINK"].data,
    }
    return coltrain.Graph.unpack(b"".join(tag + little(len(data), 8) + data for tag, data in parts.items())), copies.rounded


# ---- Training ----


class Rounded:
    """A network that trains with what the host makes of what it keeps: it is run in front, its numbers are rounded, and a step is made with these."""

    def __init__(self, device: coltrain.Device, setup: Setup, rounding: Round) -> None:
        graph = plain_graph(setup)
        graph.result("loss")
        graph, self.rounded = with_rounded(graph)
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
