# SPDX-License-Identifier: Apache-2.0
"""One point of `coltrain experiment memory`: a network trained with its activations kept in one way. Prints a line of JSON.

It trains on emu:. Then a fresh device makes one more step, with the weights and the bounds that training has ended with: so the most pages in use
are those of such a step, and not of the first one, which loses nothing. That device may be simulated, and has cycles then.

Groups of 2 bits are no way of the device's: the host rounds what is kept in front of a step (memory_groups.py), so there is no last step of it.
With --beside it is another point: requests while such steps are made (memory_beside.py). With --gradients: what bounds make of gradients, at several
steps (memory_gradients.py). With --looks: what a look costs (memory_looks.py).
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

import coltrain
from coltrain.cli import Failure, complain
from coltrain.experiments.memory_beside import REQUESTS, beside
from coltrain.experiments.memory_bounds import EVERY, Look
from coltrain.experiments.memory_gradients import MOMENTUM, Steps, gradient_rows, rms
from coltrain.experiments.memory_graphs import F32, Setup, centred, compiled, feed_of, graph_of, samples, set_bounds, weights_from
from coltrain.experiments.memory_groups import Rounded, two_bits
from coltrain.experiments.memory_looks import looks
from coltrain.experiments.memory_ways import NETS, WAYS

TESTED = 100
INDEX_VALUES = 16 * 256  # numbers of an index unit, which has 16 bytes
UNIT = 16


def accuracy(device: coltrain.Device, net: str, values: dict[str, F32], data: coltrain.Dataset, most: int) -> float:
    graph = coltrain.Graph.builtin(net, TESTED, training=False)
    count, correct = min(len(data.test), most), 0
    with device.compile(graph) as answers:
        answers.write({t: values[t] for t in graph.by_role(coltrain.Role.WEIGHT, coltrain.Role.STATE)})
        for at in range(0, count, TESTED):
            end = min(at + TESTED, count)
            x, y = centred(data.test.values(slice(at, end))), data.test.labels[at:end]
            images = np.zeros((TESTED, x.shape[1]), dtype=np.float32)
            images[: len(x)] = x
            logits = answers.run({"x": images.reshape(graph["x"].shape)})["logits"][: len(x)]
            correct += int((logits.argmax(axis=1) == y).sum())
    return correct / count


# ---- What the bounds cost ----


def deviations(setup: Setup, state: dict[str, F32], kept: list[tuple[str, int]], feed: dict[str, F32]) -> list[dict[str, Any]]:
    """Root mean squares of what the bound of each tensor makes of gradients, over what is allowed: of weights whose gradients are made of it, for which
    the bound is meant, and of others, whose deltas come through ReLUs that let through less."""
    graph, error = graph_of(setup), WAYS[setup.keep].error
    rows = []
    with coltrain.open("emu:") as device:
        steps = Steps(device, setup)
        exact = steps.gradients(state, [0] * len(kept), feed)
        for i, (tensor, bound) in enumerate(kept):
            if not bound:
                continue
            lossy = steps.gradients(state, [bound if k == i else 0 for k in range(len(kept))], feed)
            own = weights_from(graph, tensor)
            for w, x in exact.items():
                allowed, off = error * float(np.abs(state[w + MOMENTUM]).mean()), rms(lossy[w] - x)
                if allowed > 0 and off > 0:
                    rows.append({"tensor": tensor, "bound": bound, "weight": w, "made_of_it": w in own, "deviation": off / allowed})
    return rows


def most(rows: list[dict[str, Any]], own: bool) -> float | None:
    return max((r["deviation"] for r in rows if r["made_of_it"] == own), default=None)


# ---- A point ----


def step_of(setup: Setup, state: dict[str, F32], bounds: list[int], feed: dict[str, F32]) -> dict[str, Any]:
    """One step as it is at the end of training, on a device that has made no other."""
    with coltrain.open(setup.device) as device, compiled(device, setup) as network:
        network.write(state)
        set_bounds(network, bounds)
        before = device.counters("training")
        network.run(feed, [], step=1000)
        after = device.counters("training")
        info, kept = network.info, network.kept
        taken = [s.cycles for s in network.stages() if s.cycles is not None]
        beats = sum(after[name] - before[name] for name in ("LD_BEATS", "ST_BEATS"))
        clock = device.info.has_clock and bool(taken) and sum(taken) > 0
        return {
            "run_bytes": info.run_bytes,
            "pages_bytes": info.pages_most,
            "peak_bytes": info.run_bytes + info.pages_most,
            "kept_values": sum(k.values for k in kept if not k.beside),
            "kept_bytes": info.pages_most + sum(-(-k.padded // INDEX_VALUES) * UNIT for k in kept),
            "dram_bytes": UNIT * beats,
            "cycles": sum(taken) if clock else None,
            "kept": [{"tensor": k.tensor, "values": k.values, "bytes": k.bytes, "bound": k.bound, "exact": k.exact, "beside": k.beside} for k in kept],
        }


@dataclass
class Trained:
    losses: list[float]
    state: dict[str, F32]
    kept: list[coltrain.Kept]
    feed: dict[str, F32]
    """Of the last step."""
    reserved: int
    accuracy: float
    relative_error: float | None = None
    """Of groups that the host rounds."""


def train(setup: Setup) -> Trained:
    data, graph, way = coltrain.load_dataset(setup.data, setup.seed), graph_of(setup), WAYS[setup.keep]
    losses: list[float] = []
    feed: dict[str, F32] = {}
    with coltrain.open("emu:") as device, compiled(device, setup, way.error) as network:
        network.draw(setup.seed)
        look = Look(device, setup, network.kept) if way.by_host == "acgc" else None
        for step, (x, y) in enumerate(samples(setup, data)):
            feed = feed_of(graph, x, y)
            if look and step % EVERY == 0:
                set_bounds(network, look.look(network.values(), feed))
            losses.append(float(network.run(feed, ["loss"], step=step)["loss"][0]))
        state = network.values()
        right = accuracy(device, setup.net, state, data, setup.images)
        return Trained(losses, state, network.kept, feed, network.info.run_bytes + network.info.pages, right)


def train_rounded(setup: Setup) -> Trained:
    data, graph = coltrain.load_dataset(setup.data, setup.seed), graph_of(setup)
    random = np.random.default_rng(setup.seed)
    losses: list[float] = []
    feed: dict[str, F32] = {}
    with coltrain.open("emu:") as device:
        network = Rounded(device, setup, lambda x: two_bits(x, random))
        network.draw(setup.seed)
        for step, (x, y) in enumerate(samples(setup, data)):
            feed = feed_of(graph, x, y)
            losses.append(network.run(feed, step))
        state = network.steps.values()
        right = accuracy(device, setup.net, state, data, setup.images)
    return Trained(losses, state, [], feed, 0, right, network.error)


def measure(setup: Setup) -> dict[str, Any]:
    way = WAYS[setup.keep]
    groups = way.by_host == "groups"
    t = train_rounded(setup) if groups else train(setup)
    last = t.losses[-max(1, len(t.losses) // 10) :]
    said = {"accuracy": t.accuracy, "loss": sum(last) / len(last), "steps": len(t.losses), "relative_error": t.relative_error}
    if groups:
        return said | {"bits_per_value": way.bits, "ratio_fp32": 32 / way.bits, "peak_bytes": None, "reserved_bytes": None}
    figures = step_of(setup, t.state, [k.bound for k in t.kept], t.feed)
    bits = 8 * figures["kept_bytes"] / figures["kept_values"] if figures["kept_values"] else (way.bits or None)
    off = deviations(setup, t.state, [(k.tensor, k.bound) for k in t.kept], t.feed) if way.error else []
    return figures | said | {
        "bits_per_value": bits,
        "ratio_fp32": 32 / bits if bits else None,
        "reserved_bytes": t.reserved,
        "deviations": off,
        "deviation_own": most(off, True),
        "deviation_others": most(off, False),
    }


def beside_steps(setup: Setup, requests: int) -> dict[str, Any]:
    t = train(setup)
    return beside(setup, t.state, [k.bound for k in t.kept], t.feed, requests)


def main() -> int:
    p = argparse.ArgumentParser(prog="coltrain.experiments.memory_run")
    p.add_argument("--net", choices=sorted(NETS), required=True)
    p.add_argument("--keep", choices=sorted(WAYS), required=True)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--batch", type=int, default=16)
    p.add_argument("--images", type=int, required=True)
    p.add_argument("--data", required=True)
    p.add_argument("--device", default="emu:")
    p.add_argument("--beside", action="store_true")
    p.add_argument("--gradients", action="store_true")
    p.add_argument("--looks", action="store_true")
    p.add_argument("--requests", type=int, default=REQUESTS)
    p.add_argument("--json", default="-")
    o = p.parse_args()
    try:
        setup = Setup(o.net, o.keep, o.seed, o.batch, o.images, o.data, o.device)
        if o.gradients:
            print(json.dumps({"gradients": gradient_rows(setup)}))
        elif o.looks:
            print(json.dumps(looks(setup)))
        else:
            print(json.dumps(beside_steps(setup, o.requests) if o.beside else measure(setup)))
    except (Failure, coltrain.Error) as failure:
        return complain(str(failure))
    return 0


if __name__ == "__main__":
    sys.exit(main())
