# SPDX-License-Identifier: Apache-2.0
"""AC-GC's bounds (Evans and Aamodt, NeurIPS 2021), for what the device keeps compressed.

Of a tensor x that convolutions read, an error dx is allowed with

    dx^2 = e * sum ||gW||^2 / (2 * N C H W * sum (u ||gy||^2))        u = R S / stride^2

over these convolutions: gW is the gradient of the weight, gy that of what they make, e is 1 in the published runs. A linear layer is a convolution of
one pixel. Of a normalised x each channel has its own, of which the least is taken, for a tensor has one bound here:

    dx^2 = e * ||gx||^2 * N H W / (K * gamma^2 * s^4 * (s^2 * (n * max |gz| * d)^2 + ggamma^2))        s = 1 / standard deviation, K channels

n: elements of gz, the gradient of what is normalised, that are not 0; d: half of the largest |x| of the channel; ggamma: gradient of the scale. What
layers behind it read is made again of x, where its error is multiplied by gamma * s: so their dx is divided by that. Numbers are means of the last 10
looks; there is one each 100 steps, by gradients of a step like that of fp32. dx is at most a quarter of the largest |x|: the fewest bits that AC-GC has.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Any

import numpy as np

import coltrain
from coltrain.experiments.memory_graphs import F32, F64, Norm, Reader, Readers, Setup, readers_of

EVERY, HISTORY = 100, 10
E = 1.0
TINY = 1e-16
LEAST_NORM = 2.0**-16
K_OF_ONE = 134
"""A bound of 2^(K - 134)."""


def square(x: Any) -> float:
    return float((np.asarray(x, np.float64) ** 2).sum())


def of_layers(values: int, weights: float, outputs: float) -> float:
    """dx^2; values: numbers of the tensor; sums of the squares of gradients, those of outputs by area."""
    return E * max(weights, TINY) / (2 * values * max(outputs, TINY))


def of_norm(x: F64, gx2: float, gz: F64, gamma: F64, ggamma: F64, inverse2: F64) -> F64:
    """dx^2 of each channel; inverse2: 1 / variance."""
    rows, channels = x.shape
    nonzero, most = (gz != 0).sum(axis=0) ** 2.0, (gz**2).max(axis=0)
    half = np.abs(x).max(axis=0) / 2
    scale = inverse2 * nonzero * most * half**2 + ggamma**2
    with np.errstate(divide="ignore"):
        result: F64 = np.maximum(E * gx2 * rows / (channels * gamma**2 * inverse2**2 * scale), LEAST_NORM)
    return result


def bound_of(dx: float, largest: float) -> int:
    """K; 0 where there is nothing to go by."""
    dx = min(dx, largest / 4)
    return max(0, K_OF_ONE + math.floor(math.log2(dx))) if dx > 0 and math.isfinite(dx) else 0


class Look:
    """A network with the gradients that the rule asks for as outputs."""

    def __init__(self, device: coltrain.Device, setup: Setup, kept: list[coltrain.Kept]) -> None:
        graph = coltrain.Graph.builtin(setup.net, setup.batch, training=True)
        self.readers: list[Readers | None] = [None if k.exact else readers_of(graph, k.tensor) for k in kept]
        graph.gradients("loss")
        self.gradient: dict[str, str] = {}
        wanted = dict.fromkeys(name for r in self.readers if r for name in self.needs(graph, r))
        for name in wanted:
            graph.result(name)
        self.network = device.compile(graph.check())
        self.wanted = list(wanted)
        self.seen: deque[list[tuple[float, float]]] = deque(maxlen=HISTORY)

    def needs(self, graph: coltrain.Graph, r: Readers) -> list[str]:
        """Names of tensors; notes which are gradients of which."""
        names = [r.value]
        of = [name for layer in (*r.layers, *(r.behind or ())) for name in (layer.weight, layer.out)]
        if r.norm:
            names.append(r.norm.variance)
            of += [r.norm.x, r.norm.out, r.norm.scale]
        for name in of:
            gradient = graph.gradient(name)
            if gradient is not None:
                self.gradient[name] = gradient.name
                names.append(gradient.name)
        return names

    def layers(self, seen: dict[str, F32], layers: list[Reader], values: int) -> float:
        weights = sum(square(seen[self.gradient[r.weight]]) for r in layers)
        return of_layers(values, weights, sum(r.area * square(seen[self.gradient[r.out]]) for r in layers))

    def norm(self, seen: dict[str, F32], n: Norm, gamma: F64, inverse2: F64) -> float:
        rows = [np.asarray(seen[name], np.float64).reshape(-1, len(gamma)) for name in (n.x, self.gradient[n.out])]
        ggamma = np.asarray(seen[self.gradient[n.scale]], np.float64)
        return float(of_norm(rows[0], square(seen[self.gradient[n.x]]), rows[1], gamma, ggamma, inverse2).min())

    def allowed(self, r: Readers | None, seen: dict[str, F32], state: dict[str, F32]) -> tuple[float, float]:
        """dx^2, and the largest |x|."""
        if r is None:
            return 0.0, 0.0
        x = seen[r.value]
        squares = [self.layers(seen, r.layers, x.size)] if r.layers else []
        if r.norm:
            gamma = np.asarray(state[r.norm.scale], np.float64)
            inverse2 = 1 / (np.asarray(seen[r.norm.variance], np.float64) + r.norm.epsilon)
            squares.append(self.norm(seen, r.norm, gamma, inverse2))
            through = float((gamma**2 * inverse2).max())
            if r.behind and through > 0:
                squares.append(self.layers(seen, r.behind, x.size) / through)
        return min(squares, default=0.0), float(np.abs(x).max())

    def look(self, state: dict[str, F32], feed: dict[str, F32]) -> list[int]:
        """The bounds, with one more look."""
        self.network.write({name: x for name, x in state.items() if not name.endswith(".momentum")})
        seen = self.network.run(feed, self.wanted)
        self.seen.append([self.allowed(r, seen, state) for r in self.readers])
        means = np.mean(np.array(self.seen), axis=0)
        return [bound_of(math.sqrt(dx2), largest) for dx2, largest in means]
