# SPDX-License-Identifier: Apache-2.0
"""The networks of `coltrain experiment fusion`, with losses: as graphs without updates, and batches for them.

PointNet is its list of products, without its normalisations and transforms, on fewer points than the 2,500 of the paper. DCGAN's generator
and discriminator are for 32 x 32 pixels; their transposed convolutions are input gradients of convolutions, and each has a squared error of
its own in place of the game between the two.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from coltrain.graph import Graph, Tensor

CLASSES = 10


@dataclass(frozen=True)
class Sizes:
    """Of a network as it is measured, and for a look."""

    batch: int
    width: int = 0
    """Channels of its narrowest layer that has no size from outside."""
    points: int = 0


@dataclass(frozen=True)
class Net:
    text: str
    full: Sizes
    small: Sizes
    build: Callable[[Sizes], Graph]
    optimiser: str = "sgd"
    slow: bool = False
    """Fewer runs: one takes the same cycles whatever its numbers are."""


def widths(s: Sizes) -> list[int]:
    """Of the digits perceptron."""
    return [64, 2 * s.width, s.width, CLASSES]


def digits(s: Sizes) -> Graph:
    return Graph.mlp(widths(s), s.batch, training=True)


def lenet5(s: Sizes) -> Graph:
    return Graph.builtin("lenet5", s.batch, training=True)


def resnet8(s: Sizes) -> Graph:
    return Graph.builtin("resnet8", s.batch, training=True)


def weight(g: Graph, name: str, *shape: int) -> Tensor:
    return g.weight(name, shape)


def label(g: Graph, batch: int, numbers: int) -> Tensor:
    return g.tensor("y", (batch, numbers), "label")


def relu(g: Graph, x: Tensor) -> Tensor:
    return g.add("relu", x)


def pointnet(s: Sizes) -> Graph:
    """Layers that all points share, the largest of each channel, layers for the whole."""
    g = Graph()
    x, channels = g.input("x", (s.batch, s.points // 8, 8, 3)), 3
    for i, width in enumerate((s.width, s.width, s.width, 2 * s.width, 16 * s.width)):
        x = relu(g, g.add("conv", x, weight(g, f"shared{i}", width, 1, 1, channels)))
        channels = width
    for window in ((1, 8), (s.points // 8, 1)):
        x = g.add("max_pool", x, kernel=window, stride=window)
    x = g.add("flatten", x)
    for i, width in enumerate((8 * s.width, 4 * s.width)):
        x = relu(g, g.add("linear", x, weight(g, f"whole{i}", width, channels)))
        channels = width
    logits = g.add("linear", x, weight(g, "last", CLASSES, channels), name="logits")
    g.result(g.add("cross_entropy", logits, label(g, s.batch, CLASSES), name="loss"))
    return g


def normalised(g: Graph, x: Tensor, name: str, channels: int) -> Tensor:
    """By the batch's statistics; running ones are kept."""
    scale, bias = g.weight(f"{name}.scale", (channels,), initial="ones"), g.weight(f"{name}.bias", (channels,), initial="zeros")
    mean, variance = g.state(f"{name}.mean", (channels,)), g.state(f"{name}.variance", (channels,), initial="ones")
    y = g.add("batch_norm_train", x, scale, bias, mean, variance, name=name)
    made = g.node(g.info.nodes - 1).outputs
    g.becomes(mean, made[1])
    g.becomes(variance, made[2])
    return y


def squared_error(g: Graph, x: Tensor, batch: int, numbers: int) -> Graph:
    g.result(g.add("mse", g.add("flatten", x, name="out"), label(g, batch, numbers), name="loss"))
    return g


STEP: dict[str, Any] = {"stride": (2, 2), "pad": (1, 1, 1, 1)}


def generator(s: Sizes) -> Graph:
    """100 numbers become 4 x 4 pixels, then twice as many each way until there are 32."""
    g, channels, size = Graph(), 4 * s.width, 4
    x = g.add("conv_input_grad", g.input("x", (s.batch, 1, 1, 100)), weight(g, "w0", 100, 4, 4, channels), size=(4, 4))
    x = relu(g, normalised(g, x, "n0", channels))
    for i in (1, 2):
        channels, size, before = channels // 2, 2 * size, channels
        x = g.add("conv_input_grad", x, weight(g, f"w{i}", before, 4, 4, channels), size=(size, size), **STEP)
        x = relu(g, normalised(g, x, f"n{i}", channels))
    x = g.add("conv_input_grad", x, weight(g, "w3", channels, 4, 4, 3), size=(2 * size, 2 * size), **STEP)
    return squared_error(g, g.add("tanh", x), s.batch, 32 * 32 * 3)


def discriminator(s: Sizes) -> Graph:
    """32 x 32 pixels become 16 x 16, 8 x 8, 4 x 4, and one number."""
    g, channels = Graph(), s.width
    x = g.add("conv", g.input("x", (s.batch, 32, 32, 3)), weight(g, "w0", channels, 4, 4, 3), **STEP)
    x = g.add("leaky_relu", x, alpha=0.2)
    for i in (1, 2):
        x = g.add("conv", x, weight(g, f"w{i}", 2 * channels, 4, 4, channels), **STEP)
        channels *= 2
        x = g.add("leaky_relu", normalised(g, x, f"n{i}", channels), alpha=0.2)
    return squared_error(g, g.add("sigmoid", g.add("conv", x, weight(g, "w3", 1, 4, 4, channels))), s.batch, 1)


NETS = {
    "digits": Net("the digits perceptron, 64-128-64-10, as one stage", Sizes(32, 64), Sizes(8, 16), digits),
    "digits-adam": Net("the same by kernels, with Adam", Sizes(32, 64), Sizes(8, 16), digits, optimiser="adam"),
    "lenet5": Net("LeNet-5", Sizes(4), Sizes(1), lenet5),
    "pointnet": Net("PointNet's products", Sizes(1, 16, 64), Sizes(2, 16, 16), pointnet),
    "dcgan-g": Net("DCGAN's generator", Sizes(1, 8), Sizes(1, 4), generator, slow=True),
    "dcgan-d": Net("DCGAN's discriminator", Sizes(4, 16), Sizes(1, 4), discriminator),
    "resnet8": Net("ResNet-8", Sizes(1), Sizes(1), resnet8, slow=True),
}


def graph_of(name: str, small: bool) -> Graph:
    net = NETS[name]
    return net.build(net.small if small else net.full)


def batches_of(graph: Graph, seed: int) -> Callable[[int], Mapping[str, Any]]:
    """Numbers for inputs, classes or numbers for labels, by the number of the run."""
    shapes = {name: t.shape for name, t in graph.by_role("input", "label").items()}

    def batch(run: int) -> Mapping[str, Any]:
        random = np.random.default_rng((seed, run))
        values: dict[str, Any] = {}
        for name, shape in shapes.items():
            if name == "y" and shape[-1] == CLASSES:
                values[name] = np.eye(CLASSES, dtype=np.float32)[random.integers(CLASSES, size=shape[0])]
            else:
                values[name] = random.uniform(-1, 1, shape).astype(np.float32)
        return values

    return batch
