# SPDX-License-Identifier: Apache-2.0
"""What a point of `coltrain experiment memory` is made with, the networks as graphs, and how gradients hang on what is kept."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

import coltrain
from coltrain.experiments.memory_ways import NETS, WAYS

F32 = npt.NDArray[np.float32]
F64 = npt.NDArray[np.float64]
CLASSES = 10
MOMENTUM = 0.9


@dataclass(frozen=True)
class Setup:
    net: str
    keep: str
    seed: int
    batch: int
    images: int
    """In all."""
    data: str
    device: str


# ---- Images ----


def samples(setup: Setup, data: coltrain.Dataset) -> Iterator[tuple[F32, npt.NDArray[np.uint32]]]:
    wanted, epoch = setup.images, 0
    while wanted > 0:
        for x, y in data.batches(setup.batch, epoch):
            if wanted <= 0:
                return
            yield centred(x), y
            wanted -= setup.batch
        epoch += 1


def centred(x: F32) -> F32:
    result: F32 = (x - np.float32(0.5)) * np.float32(2)
    return result


def feed_of(graph: coltrain.Graph, x: F32, y: npt.NDArray[np.uint32]) -> dict[str, F32]:
    return {"x": x.reshape(graph["x"].shape), "y": np.eye(CLASSES, dtype=np.float32)[y]}


# ---- Networks ----


def plain_graph(setup: Setup) -> coltrain.Graph:
    """In FP32, with gradients and updates; it can still be changed."""
    g = coltrain.Graph.builtin(setup.net, setup.batch, training=True)
    steps = max(1, -(-setup.images // setup.batch))
    g.optimise("loss", coltrain.Schedule(NETS[setup.net].rate, "cosine", period=steps), momentum=MOMENTUM)
    return g


def graph_of(setup: Setup) -> coltrain.Graph:
    g, way = plain_graph(setup), WAYS[setup.keep]
    if way.format not in ("", "fp32"):
        g.keep("activation", way.format)
        g.keep("gradient", "hbfp8")
    return g.check()


def compiled(device: coltrain.Device, setup: Setup, error: float = 0.0) -> coltrain.Compiled:
    return device.compile(graph_of(setup), error=error, masks=WAYS[setup.keep].masks)


def set_bounds(network: coltrain.Compiled, bounds: Sequence[int]) -> None:
    for i, bound in enumerate(bounds):
        network.keep_within(i, bound)


# ---- What gradients are made of ----


@dataclass(frozen=True)
class Reader:
    """A layer whose weight's gradient is made of a tensor."""

    weight: str
    out: str
    """What the layer makes."""
    area: float
    """Elements of its output that an element of the tensor goes into, for each channel."""


@dataclass(frozen=True)
class Norm:
    """A normalisation by the batch of a tensor."""

    x: str
    out: str
    scale: str
    variance: str
    """Of the batch."""
    epsilon: float


@dataclass
class Readers:
    value: str
    """The tensor that is kept: what the last of the operators makes that are one kernel with the node of that name."""
    layers: list[Reader]
    norm: Norm | None = None
    behind: list[Reader] | None = None
    """Layers that read what is normalised, which is made again of the tensor."""


def reader_of(n: coltrain.Node) -> Reader | None:
    weight = n.inputs[1] if len(n.inputs) > 1 else None
    if n.op not in ("conv", "linear") or weight is None:
        return None
    area = 1.0
    if n.op == "conv":
        area = float(np.prod(weight.shape[1:3]) / np.prod(n.attrs["stride"]))
    return Reader(weight.name, n.outputs[0].name, area)


def follow(nodes: list[coltrain.Node], tensor: str, through: tuple[str, ...]) -> tuple[str, list[coltrain.Node]]:
    """Of a tensor and what operators of these names make of it, up to a ReLU: the last such, and the other nodes that read them."""
    value, names, ended = tensor, {tensor}, False
    others: list[coltrain.Node] = []
    for n in nodes:
        if n.backward or not any(t is not None and t.name in names for t in n.inputs):
            continue
        if n.op == "flatten":
            names.add(n.outputs[0].name)
        elif n.op in through and not ended:
            value, ended = n.outputs[0].name, n.op == "relu"
            names.add(value)
        else:
            others.append(n)
    return value, others


def readers_of(graph: coltrain.Graph, tensor: str) -> Readers:
    """What reads a tensor that is kept, for gradients. Sums and ReLUs behind the node that makes it are one kernel with it."""
    nodes = graph.nodes
    value, read = follow(nodes, tensor, ("add", "relu"))
    found = Readers(value, [r for n in read if (r := reader_of(n))])
    for n in read:
        if n.op == "batch_norm_train" and n.inputs[1] is not None:
            out, scale, variance = n.outputs[0].name, n.inputs[1].name, n.outputs[4].name
            found.norm = Norm(value, out, scale, variance, n.attrs["epsilon"][0])
            found.behind = [r for m in follow(nodes, out, ("relu",))[1] if (r := reader_of(m))]
    return found


def weights_from(graph: coltrain.Graph, tensor: str) -> set[str]:
    """Whose gradients are made of the tensor, or of what a ReLU makes of it."""
    return {r.weight for r in readers_of(graph, tensor).layers}
