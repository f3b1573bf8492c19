# SPDX-License-Identifier: Apache-2.0
"""One point of `coltrain experiment memory`: a network trained with its activations kept in one way. Prints a line of JSON.

It trains on emu:. Then a fresh device makes one more step, with the weights and the bounds that training has ended with: so the most pages in use
are those of such a step, and not of the first one, which loses nothing. That device may be simulated, and has cycles then.

Groups of 2 bits are no way of the device's. Their error is that of what the reference computes for a batch, by ActNN's rule: 256 numbers have a
minimum and a maximum in bfloat16, and are rounded at random to one of four levels between them.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import coltrain
from coltrain.cli import Failure, complain
from coltrain.experiments.memory_ways import GROUP, NETS, WAYS

F32 = npt.NDArray[np.float32]
F64 = npt.NDArray[np.float64]
CLASSES, TESTED = 10, 100
LEVELS = 3
INDEX_VALUES = 16 * 256  # numbers of an index unit, which has 16 bytes
UNIT = 16
MOMENTUM = 0.9


@dataclass(frozen=True)
class Setup:
    net: str
    keep: str
    seed: int
    batch: int
    images: int
    """In all; 0: each of the training images once."""
    data: str
    device: str


# ---- Images ----


def samples(setup: Setup, data: coltrain.Dataset) -> Iterator[tuple[F32, npt.NDArray[np.uint32]]]:
    wanted, epoch = setup.images or len(data.train), 0
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


# ---- Networks ----


def graph_of(setup: Setup) -> coltrain.Graph:
    g = coltrain.Graph.builtin(setup.net, setup.batch, training=True)
    g.optimise("loss", NETS[setup.net].rate, momentum=MOMENTUM)
    way = WAYS[setup.keep]
    if way.format not in ("", "fp32"):
        g.keep("activation", way.format)
        g.keep("gradient", "hbfp8")
    return g.check()


def compiled(device: coltrain.Device, setup: Setup, error: float = 0.0) -> coltrain.Compiled:
    return device.compile(graph_of(setup), error=error, masks=WAYS[setup.keep].masks)


def feed_of(graph: coltrain.Graph, x: F32, y: npt.NDArray[np.uint32]) -> dict[str, F32]:
    return {"x": x.reshape(graph["x"].shape), "y": np.eye(CLASSES, dtype=np.float32)[y]}


def accuracy(device: coltrain.Device, net: str, values: dict[str, F32], data: coltrain.Dataset, most: int) -> float:
    graph = coltrain.Graph.builtin(net, TESTED, training=False)
    count, correct = min(len(data.test), most or len(data.test)), 0
    with device.compile(graph) as answers:
        answers.write({t: values[t] for t in graph.by_role(coltrain.Role.WEIGHT, coltrain.Role.STATE)})
        for at in range(0, count, TESTED):
            x, y = centred(data.test.values(slice(at, at + TESTED))), data.test.labels[at : at + TESTED]
            images = np.zeros((TESTED, x.shape[1]), dtype=np.float32)
            images[: len(x)] = x
            logits = answers.run({"x": images.reshape(graph["x"].shape)})["logits"][: len(x)]
            correct += int((logits.argmax(axis=1) == y).sum())
    return correct / count


# ---- Two bits ----


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


def bfloat16(x: F64) -> F64:
    bits = (x.astype(np.float32).view(np.uint32) + np.uint32(0x8000)) & np.uint32(0xFFFF0000)
    return bits.view(np.float32).astype(np.float64)


def kept_tensors(graph: coltrain.Graph) -> list[str]:
    """Maps in front, as Graph.keep() takes them, but for what only changes the shape."""
    made = {n.outputs[0].name for n in graph.nodes if n.op in ("conv", "relu", "add", "batch_norm_train", "max_pool", "average_pool")}
    return [t.name for t in graph.by_role(coltrain.Role.ACTIVATION).values() if t.name in made and len(t.shape) > 1]


def two_bits_error(setup: Setup, values: dict[str, F32], x: F32, y: npt.NDArray[np.uint32]) -> float:
    """Root of the mean of squares, over that of the numbers."""
    graph = coltrain.Graph.builtin(setup.net, setup.batch, training=True).check()
    rng = np.random.default_rng(setup.seed)
    known = {t: values[t] for t in graph.by_role(coltrain.Role.WEIGHT, coltrain.Role.STATE)}
    seen = graph.run({**known, **feed_of(graph, x, y)}, kept_tensors(graph))
    wrong = sum(float(((two_bits(np.asarray(v, np.float64), rng) - v) ** 2).sum()) for v in seen.values())
    return float(np.sqrt(wrong / sum(float((np.asarray(v, np.float64) ** 2).sum()) for v in seen.values())))


# ---- What the bounds cost ----


def gradients_of(setup: Setup, state: dict[str, F32], bounds: list[int], feed: dict[str, F32]) -> dict[str, F64]:
    """Momenta after one more step: those of two such steps differ as their gradients do."""
    with coltrain.open("emu:") as device, compiled(device, setup) as network:
        network.write(state)
        for i, bound in enumerate(bounds):
            network.keep_within(i, bound)
        network.run(feed, [], step=1000)
        values = network.values()
    return {name.removesuffix(".momentum"): x.astype(np.float64) for name, x in values.items() if name.endswith(".momentum")}


def weights_from(graph: coltrain.Graph, tensor: str) -> set[str]:
    """Whose gradients are made of the tensor, or of what a ReLU makes of it."""
    names, found = {tensor}, set()
    for n in graph.nodes:
        if not n.inputs or n.inputs[0] is None or n.inputs[0].name not in names:
            continue
        if n.op in ("relu", "flatten"):
            names.add(n.outputs[0].name)
        if n.op in ("conv", "linear") and n.inputs[1] is not None:
            found.add(n.inputs[1].name)
    return found


def deviations(setup: Setup, state: dict[str, F32], kept: list[tuple[str, int]], feed: dict[str, F32]) -> list[dict[str, Any]]:
    """Root mean squares of what the bound of each tensor makes of gradients, over what is allowed: of weights whose gradients are made of it, for which
    the bound is meant, and of others, whose deltas come through ReLUs that let through less."""
    graph, error = graph_of(setup), WAYS[setup.keep].error
    exact = gradients_of(setup, state, [0] * len(kept), feed)
    rows = []
    for i, (tensor, bound) in enumerate(kept):
        if not bound:
            continue
        lossy = gradients_of(setup, state, [bound if k == i else 0 for k in range(len(kept))], feed)
        own = weights_from(graph, tensor)
        for w, x in exact.items():
            allowed = error * float(np.abs(state[f"{w}.momentum"]).mean())
            off = float(np.sqrt(((lossy[w] - x) ** 2).mean()))
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
        for i, bound in enumerate(bounds):
            network.keep_within(i, bound)
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


def measure(setup: Setup) -> dict[str, Any]:
    data = coltrain.load_dataset(setup.data, setup.seed)
    way, graph = WAYS[setup.keep], graph_of(setup)
    losses: list[float] = []
    feed: dict[str, F32] = {}
    with coltrain.open("emu:") as device, compiled(device, setup, way.error) as network:
        network.draw(setup.seed)
        for step, (x, y) in enumerate(samples(setup, data)):
            feed = feed_of(graph, x, y)
            losses.append(float(network.run(feed, ["loss"], step=step)["loss"][0]))
        state, kept = network.values(), [(k.tensor, k.bound) for k in network.kept]
        if setup.keep == "actnn2":  # it was trained in FP32: what is known of it is bits and error
            return {
                "bits_per_value": way.bits,
                "ratio_fp32": 32 / way.bits,
                "peak_bytes": None,
                "reserved_bytes": None,
                "accuracy": None,
                "relative_error": two_bits_error(setup, state, x, y),
                "steps": len(losses),
            }
        reserved = network.info.run_bytes + network.info.pages
        right = accuracy(device, setup.net, state, data, setup.images)
    figures = step_of(setup, state, [bound for _, bound in kept], feed)
    bits = 8 * figures["kept_bytes"] / figures["kept_values"] if figures["kept_values"] else (way.bits or None)
    off = deviations(setup, state, kept, feed) if way.error else []
    last = losses[-max(1, len(losses) // 10) :]
    return figures | {
        "bits_per_value": bits,
        "ratio_fp32": 32 / bits if bits else None,
        "accuracy": right,
        "loss": sum(last) / len(last),
        "steps": len(losses),
        "reserved_bytes": reserved,
        "deviations": off,
        "deviation_own": most(off, True),
        "deviation_others": most(off, False),
    }


def main() -> int:
    p = argparse.ArgumentParser(prog="coltrain.experiments.memory_run")
    p.add_argument("--net", choices=sorted(NETS), required=True)
    p.add_argument("--keep", choices=sorted(WAYS), required=True)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--batch", type=int, default=16)
    p.add_argument("--images", type=int, default=0)
    p.add_argument("--data", required=True)
    p.add_argument("--device", default="emu:")
    p.add_argument("--json", default="-")
    o = p.parse_args()
    try:
        print(json.dumps(measure(Setup(o.net, o.keep, o.seed, o.batch, o.images, o.data, o.device))))
    except (Failure, coltrain.Error) as failure:
        return complain(str(failure))
    return 0


if __name__ == "__main__":
    sys.exit(main())
