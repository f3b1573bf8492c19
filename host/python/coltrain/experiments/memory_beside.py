# SPDX-License-Identifier: Apache-2.0
"""Requests beside steps that keep their activations in one way: what each waited, by the device's cycles.

Requests are to the perceptron 64-32-10, at fixed distances. Steps follow each other in the training queue without a gap, with the weights and bounds
that training has ended with: so they compress as most steps do. Before that the same requests are made with nothing beside them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

import coltrain
from coltrain.experiments.memory_graphs import F32, Setup, compiled, set_bounds

REQUESTS, PITCH = 400, 5003
"""Cycles from one to the next."""
DEVICE = "sim:bandwidth=8"
"""Where the memory is what steps wait for."""
BESIDE: dict[str, tuple[int, tuple[str, ...]]] = {
    "lenet5": (16, ("hbfp8", "s=0.1", "s=0.1-mask")),
    "resnet8": (4, ("hbfp8", "s=0.1")),
}
"""Images of a step, and ways."""
AHEAD = 2
"""Steps in the queue."""
FIRST = 1000
"""Number of the first step."""


class Requests:
    def __init__(self, device: coltrain.Device, count: int) -> None:
        self.network = device.compile(coltrain.Graph.mlp((64, 32, 10), 1, training=False))
        self.network.draw(1)
        self.frames = [self.network.frame() for _ in range(count)]
        self.network.run({"x": np.zeros((1, 64), np.float32)}, queue="inference")

    def submit(self, start: int) -> list[tuple[coltrain.Future, int]]:
        """Each, and the cycle in which it is due."""
        due = [start + PITCH * (i + 1) for i in range(len(self.frames))]
        return [(self.network.submit(f, queue="inference", cycle=c), c) for f, c in zip(self.frames, due, strict=True)]


def latencies(asked: list[tuple[coltrain.Future, int]]) -> list[int]:
    return [(future.result().end or 0) - due for future, due in asked]


def quantiles(took: list[int]) -> dict[str, float]:
    return {"median_cycles": float(np.median(took)), "p99_cycles": float(np.percentile(took, 99, method="higher")), "most_cycles": max(took)}


def steps_until(device: coltrain.Device, network: coltrain.Compiled, feed: dict[str, F32], end: int) -> list[int]:
    """Steps until that cycle; when each ended."""
    frames = [network.frame() for _ in range(AHEAD)]
    for f in frames:
        f.write(feed)
    ends: list[int] = []
    under_way = [network.submit(f, step=FIRST + i) for i, f in enumerate(frames)]
    while (device.now() or 0) < end:
        turn = len(ends)
        ends.append(under_way[turn % AHEAD].result().end or 0)
        under_way[turn % AHEAD] = network.submit(frames[turn % AHEAD], step=FIRST + AHEAD + turn)
    return ends + [f.result().end or 0 for f in under_way[len(ends) % AHEAD :] + under_way[: len(ends) % AHEAD]]


def beside(setup: Setup, state: dict[str, F32], bounds: list[int], feed: dict[str, F32], requests: int = REQUESTS) -> dict[str, Any]:
    with coltrain.open(setup.device) as device, compiled(device, setup) as network:
        network.write(state)
        set_bounds(network, bounds)
        asked = Requests(device, requests)
        alone = latencies(asked.submit(device.now() or 0))
        network.run(feed, [], step=FIRST)
        start = device.now() or 0
        under_way = asked.submit(start)
        ends = steps_until(device, network, feed, under_way[-1][1])
        took = latencies(under_way)
        pages = network.info.pages_most
    figures = quantiles(took) | {f"alone_{name}": x for name, x in quantiles(alone).items()}
    cycles = (ends[-1] - ends[0]) / (len(ends) - 1) if len(ends) > 1 else None
    return {"net": setup.net, "keep": setup.keep, "requests": requests, "step_cycles": cycles, "pages_bytes": pages, **figures}
