# SPDX-License-Identifier: Apache-2.0
"""What a look at gradients costs (docs/compression.md): cycles of the device, and time of the host.

On a device with a clock there is a run that does not look and one that does: kernels keep the cycles of the last run that they were part of. On others the
first runs, which look, are made first; then runs that look and others take turns, all with the same images and the bounds of then.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

import coltrain
from coltrain.experiments.memory_graphs import F32, Setup, compiled, feed_of, graph_of, samples, set_bounds
from coltrain.experiments.memory_ways import WAYS

FIRST, TURNS = 3, 3
LOOKS, OTHER = 1000, 1001
"""Numbers of steps: one that looks, as it is a multiple of 50, and one that does not."""


def host_time(network: coltrain.Compiled, feed: dict[str, F32], step: int) -> float:
    """Milliseconds for what the host does when the run has ended."""
    frame = network.frame()
    frame.write(feed)
    network.submit(frame, step=step).result()
    frame.close()
    begin = time.process_time()
    _ = network.kept
    return 1000 * (time.process_time() - begin)


def cycles(network: coltrain.Compiled, feed: dict[str, F32], step: int) -> int:
    network.run(feed, [], step=step)
    return sum(s.cycles or 0 for s in network.stages())


def looks(setup: Setup) -> dict[str, Any]:
    data, graph = coltrain.load_dataset(setup.data, setup.seed), graph_of(setup)
    with coltrain.open(setup.device) as device, compiled(device, setup, WAYS[setup.keep].error) as network:
        network.draw(setup.seed)
        feeds = [feed_of(graph, x, y) for x, y in samples(setup, data)]
        if device.info.has_clock:
            found = [cycles(network, feeds[-1], step) for step in (OTHER, LOOKS)]
            return {"step_cycles": found[0], "look_cycles": found[1], "host_ms": None}
        for step in range(FIRST):
            network.run(feeds[step % len(feeds)], [], step=step)
        bounds = [k.bound for k in network.kept]
        host: dict[int, list[float]] = {OTHER: [], LOOKS: []}
        for step in (OTHER, LOOKS) * TURNS:
            set_bounds(network, bounds)
            host[step].append(host_time(network, feeds[-1], step))
    return {"step_cycles": None, "look_cycles": None, "host_ms": statistics.median(host[LOOKS]) - statistics.median(host[OTHER])}
