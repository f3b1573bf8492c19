# SPDX-License-Identifier: Apache-2.0
"""What bounds make of the gradients of weights, measured and as the formula predicts it (docs/compression.md).

Measured: the root mean square of the difference between a weight's gradients with the bound of one tensor and with none. They are told by two steps from
the same weights, whose momenta differ as their gradients do.

Predicted: with an error of at most e, uniform and independent, of each number that is not 0, a part R of all,

    e * sqrt(R / 3) * sqrt(mean_c ||delta_c||^2)        e = 2^(K - 134), K as it was set

R and delta are those of the same step, as its results in FP32; so the prediction has neither K's rounding to a power of two nor its age in it. Of a scale
delta is divided by the deviation of its channel, and R is 1; of what a normalisation and its ReLU make again R is 1, too, and e is multiplied by what
the normalisation multiplies by.

Where the two differ, one of the premises does not hold. That errors are uniform can be seen in the numbers alone: they are rounded here as the device
does, and as products read them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import coltrain
from coltrain.experiments.memory_graphs import F32, F64, Norm, Reader, Readers, Setup, compiled, feed_of, graph_of, plain_graph, readers_of, samples, set_bounds
from coltrain.experiments.memory_ways import WAYS

PARTS = (0.2, 0.5, 1.0)
"""Of the steps of training: behind these gradients are measured."""
BLOCK, BITS, HALF_A_STEP = 16, 7, 134
MOMENTUM = ".momentum"
BEHIND = 1000
"""A number of a step in which nothing is looked at."""


class Steps:
    """A step from given weights with given bounds, as often as it is asked for."""

    def __init__(self, device: coltrain.Device, setup: Setup) -> None:
        self.network = compiled(device, setup)

    def gradients(self, state: dict[str, F32], bounds: list[int], feed: dict[str, F32]) -> dict[str, F64]:
        self.network.write(state)
        set_bounds(self.network, bounds)
        self.network.run(feed, [], step=BEHIND)
        return {name.removesuffix(MOMENTUM): x.astype(np.float64) for name, x in self.network.values().items() if name.endswith(MOMENTUM)}


def rms(x: F64) -> float:
    return float(np.sqrt((x**2).mean()))


def over(x: float, y: float) -> float | None:
    return x / y if y > 0 else None


# ---- Numbers as the device has them ----


def quantised(x: F64, rows: int) -> F64:
    """HBFP8 of a matrix whose blocks, of that many rows and of 16 columns, share an exponent."""
    height, width = x.shape
    padded = np.zeros((-(-height // rows) * rows, -(-width // BLOCK) * BLOCK))
    padded[:height, :width] = x
    blocks = padded.reshape(len(padded) // rows, rows, -1, BLOCK)
    _, exponent = np.frexp(np.abs(blocks).max(axis=(1, 3), keepdims=True))
    step = np.ldexp(1.0, exponent - BITS)
    result: F64 = (np.clip(np.rint(blocks / step), -127, 127) * step).reshape(padded.shape)[:height, :width]
    return result


def as_kept(x: F32) -> F64:
    """A row for each image or pixel."""
    return quantised(np.asarray(x, np.float64).reshape(-1, x.shape[-1]), 1)


def as_read(x: F64) -> F64:
    """Products over images and pixels read sixteen at a time, with one exponent."""
    return quantised(x, BLOCK)


def within(x: F64, bound: int) -> F64:
    step = 2 * error_of(bound)
    result: F64 = np.rint(x / step) * step
    return result


def error_of(bound: int) -> float:
    return float(2.0 ** (bound - HALF_A_STEP))


# ---- Predictions ----


@dataclass(frozen=True)
class Prediction:
    weight: str
    made: str
    """The gradient is a product of the tensor, that of the scale which it is normalised with, or a product of what is made of that again."""
    deviation: float
    uniform: float | None
    """Root mean square of the errors of what the gradient is made of, over that of uniform ones."""


class Predicted:
    """A step of the same network with all that is kept in HBFP8, with the numbers that predictions need as its results."""

    def __init__(self, device: coltrain.Device, setup: Setup, tensors: list[str]) -> None:
        graph = plain_graph(setup)
        graph.keep("activation", "hbfp8")
        graph.keep("gradient", "hbfp8")
        self.readers: dict[str, Readers] = {t: readers_of(graph, t) for t in tensors}
        self.gradient: dict[str, str] = {}
        wanted = dict.fromkeys(name for r in self.readers.values() for name in self.needs(graph, r))
        for name in wanted:
            graph.result(name)
        self.wanted = list(wanted)
        self.network = device.compile(graph.check())
        self.state: dict[str, F32] = {}
        self.seen: dict[str, F32] = {}

    def needs(self, graph: coltrain.Graph, r: Readers) -> list[str]:
        norm = [r.norm.out] if r.norm else []
        outs = [layer.out for layer in (*r.layers, *(r.behind or ()))] + norm
        self.gradient |= {out: gradient.name for out in outs if (gradient := graph.gradient(out)) is not None}
        return [r.value, *([r.norm.variance] if r.norm else []), *(self.gradient[out] for out in outs)]

    def look(self, state: dict[str, F32], feed: dict[str, F32]) -> None:
        self.network.write(state)
        self.state, self.seen = state, self.network.run(feed, self.wanted, step=BEHIND)

    def squares(self, out: str) -> F64:
        """Of the gradient of what a layer makes, the sum for each channel."""
        delta = self.seen[self.gradient[out]]
        result: F64 = (np.asarray(delta, np.float64).reshape(-1, delta.shape[-1]) ** 2).sum(axis=0)
        return result

    def inverse2(self, n: Norm) -> F64:
        result: F64 = 1 / (np.asarray(self.seen[n.variance], np.float64) + n.epsilon)
        return result

    def product(self, r: Reader, x: F64, lossy: F64, error: float) -> Prediction:
        uniform = error * np.sqrt((x != 0).mean() / 3)
        deviation = float(uniform * np.sqrt(self.squares(r.out).mean()))
        return Prediction(r.weight, "product", deviation, over(rms(as_read(lossy) - as_read(x)), float(uniform)))

    def scale(self, n: Norm, x: F64, lossy: F64, error: float) -> Prediction:
        deviation = error / np.sqrt(3) * np.sqrt((self.squares(n.out) * self.inverse2(n)).mean())
        return Prediction(n.scale, "scale", float(deviation), over(rms(lossy - x), float(error / np.sqrt(3))))

    def again(self, r: Reader, n: Norm, x: F64, lossy: F64, error: float) -> Prediction:
        gain = np.asarray(self.state[n.scale], np.float64) * np.sqrt(self.inverse2(n))
        shift = np.asarray(self.state[n.scale.removesuffix("scale") + "shift"], np.float64) - x.mean(axis=0) * gain
        made = [as_read(quantised(np.maximum(v * gain + shift, 0), 1)) for v in (x, lossy)]
        uniform = error / np.sqrt(3) * rms(gain)
        deviation = float(uniform * np.sqrt(self.squares(r.out).mean()))
        return Prediction(r.weight, "again", deviation, over(rms(made[1] - made[0]), float(uniform)))

    def of(self, tensor: str, bound: int) -> tuple[list[Prediction], dict[str, float]]:
        """Of all weights whose gradients are made of a tensor; what the bound does to its numbers."""
        r, error = self.readers[tensor], error_of(bound)
        x = as_kept(self.seen[r.value])
        lossy = within(x, bound)
        found = [self.product(layer, x, lossy, error) for layer in r.layers]
        if r.norm:
            found.append(self.scale(r.norm, x, lossy, error))
            found += [self.again(layer, r.norm, x, lossy, error) for layer in r.behind or ()]
        read = as_read(x)
        same = ((as_read(lossy) == read) & (read != 0)).sum() / max(1, (read != 0).sum())
        return found, {"nonzero": float((x != 0).mean()), "left": float((lossy != 0).mean()), "same": float(same)}


# ---- Rows ----


def rows_at(setup: Setup, steps: Steps, predicted: Predicted, state: dict[str, F32], kept: list[coltrain.Kept], feed: dict[str, F32]) -> Iterator[dict[str, Any]]:
    """Each bound alone: of all gradients that are made of its tensor."""
    predicted.look(state, feed)
    exact = steps.gradients(state, [0] * len(kept), feed)
    for i, k in enumerate(kept):
        if k.exact or not k.bound:
            continue
        lossy = steps.gradients(state, [k.bound if j == i else 0 for j in range(len(kept))], feed)
        predictions, numbers = predicted.of(k.tensor, k.bound)
        for p in predictions:
            off = rms(lossy[p.weight] - exact[p.weight])
            allowed = WAYS[setup.keep].error * float(np.abs(state[p.weight + MOMENTUM]).mean())
            yield {
                "tensor": k.tensor,
                "weight": p.weight,
                "made": p.made,
                "bound": k.bound,
                **numbers,
                "over_predicted": over(off, p.deviation),
                "uniform": p.uniform,
                "over_allowed": over(off, allowed),
            }


def gradient_rows(setup: Setup) -> list[dict[str, Any]]:
    """Of a training, behind several of its steps, with the images of the last one."""
    data, graph = coltrain.load_dataset(setup.data, setup.seed), graph_of(setup)
    count = max(1, -(-setup.images // setup.batch))
    at = {max(1, round(part * count)) for part in PARTS}
    rows: list[dict[str, Any]] = []
    with coltrain.open("emu:") as device, coltrain.open("emu:") as other, compiled(device, setup, WAYS[setup.keep].error) as network:
        network.draw(setup.seed)
        steps = Steps(other, setup)
        predicted = Predicted(other, setup, [k.tensor for k in network.kept if not k.exact])
        for step, (x, y) in enumerate(samples(setup, data)):
            feed = feed_of(graph, x, y)
            network.run(feed, [], step=step)
            if step + 1 in at:
                rows += [{"step": step + 1} | r for r in rows_at(setup, steps, predicted, network.values(), network.kept, feed)]
    return rows
