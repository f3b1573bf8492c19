# SPDX-License-Identifier: Apache-2.0
"""One point of `coltrain experiment fusion`: members of an array train a network on a device. Prints a line of JSON.

Each member has a learning rate and a momentum (of Adam: a beta) of its own, and weights of its own seed. They train twice: apart, each run
in jobs of its own, and together. After either each is compared, in every bit, with the same network trained alone on emu:.

With --both they are in both queues, by the device's --policy. With --beside it is another point: requests to a small perceptron, at fixed distances, while so many members train.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

import numpy as np

import coltrain
from coltrain.cli import Failure, complain
from coltrain.experiments.fusion_nets import NETS, batches_of, graph_of

STEADY = 3  # runs of one network between whose ends its rate is measured
UNITS = {"array": "MXU_BUSY", "VL": "VL_BUSY", "VA": "VA_BUSY", "VS": "VS_BUSY", "reads": "LD_BEATS", "writes": "ST_BEATS"}
SEED = 1
REQUESTS, PITCH = 400, 13001
"""Of inference beside training; cycles from one to the next."""


def recipe(net: str, member: int) -> dict[str, Any]:
    """What a member has for itself, counted from 0."""
    own = "beta1" if NETS[net].optimiser == "adam" else "momentum"
    return {"schedule": 0.001 * (1 + member % 7), "optimiser": NETS[net].optimiser, own: 0.5 + 0.01 * (member % 45)}


def alone(net: str, small: bool, member: int, runs: int) -> dict[str, Any]:
    """Its weights and states, trained alone on emu:."""
    graph = graph_of(net, small)
    feed = batches_of(graph, SEED)
    graph.optimise("loss", **recipe(net, member))
    with coltrain.open("emu:") as device, device.compile(graph) as network:
        network.draw(SEED + member)
        for run in range(runs):
            network.run(feed(run), [], step=run)
        return network.values()


def same(a: dict[str, Any], b: dict[str, Any]) -> bool:
    return a.keys() == b.keys() and all(np.array_equal(a[k].view(np.uint32), b[k].view(np.uint32)) for k in a)


def busiest_of(before: dict[str, int], after: dict[str, int], cycles: int) -> tuple[str, float]:
    """The unit that works most, and its share of the cycles."""
    shares = {unit: (after[name] - before[name]) / cycles for unit, name in UNITS.items()}
    unit = max(shares, key=lambda u: shares[u])
    return unit, shares[unit]


def timing(ends: list[coltrain.MemberRun]) -> dict[str, Any]:
    """Of runs in the order of their ends; None on a device without a clock. What ends first is left out: it did not start from
    run to run."""
    first, last = ends[0], ends[-1]
    if first.start is None or first.end is None or last.end is None:
        return {"first_cycles": None, "whole_cycles": None, "cycles_per_run": None}
    behind = [e for e in ends if e.end != first.end]
    steady = (last.end - first.end) / len(behind) if behind else (last.end - first.start) / len(ends)
    return {"first_cycles": first.end - first.start, "whole_cycles": last.end - first.start, "cycles_per_run": steady}


def counters(dev: coltrain.Device) -> dict[str, int]:
    """Of both contexts together."""
    both = [dev.counters(context) for context in ("training", "inference")]
    return {name: sum(c[name] for c in both) for name in UNITS.values()}


def train(net: str, members: int, device: str, small: bool, runs: int, policy: str = "priority", **how: bool) -> dict[str, Any]:
    """So many runs of each member, and what it has become. how: of the array."""
    ends: list[coltrain.MemberRun] = []
    with coltrain.open(device) as dev, dev.array(**how) as array:
        dev.set_policy(policy)
        graph = graph_of(net, small)
        feed = batches_of(graph, SEED)
        joined = [array.join(graph, feed, seed=SEED + i, **recipe(net, i)) for i in range(members)]
        before = counters(dev)
        array.run(runs, ends.append)
        after = counters(dev)
        time = timing(ends)
        unit, busy = busiest_of(before, after, time["whole_cycles"]) if time["whole_cycles"] else (None, None)
        info = joined[0].network.info
        return time | {
            "jobs": info.jobs,
            "bytes": joined[0].info.bytes,
            "run_bytes": info.run_bytes,
            "programs": array.info.programs,
            "batches": array.info.batches,
            "beside": max(m.info.beside for m in joined),
            "busiest": unit,
            "busy": busy,
            "units": {u: (after[name] - before[name]) / (runs * members) for u, name in UNITS.items()},
            "values": [m.network.values() for m in joined],
        }


def layers(net: str, device: str, small: bool) -> list[dict[str, Any]]:
    """Of each kernel, as the planner expects it, not as counters say: cycles that it should take, what it waits for, and the bound
    (busy + waiting) / busy of what others could fill."""
    graph = graph_of(net, small)
    graph.optimise("loss", **recipe(net, 0))
    several = net != "digits"  # which is one stage
    with coltrain.open(device) as dev, dev.compile(graph, expect=True, members=2 if several else 1, shared=several) as network:
        return [
            {
                "node": s.node,
                "op": s.op,
                "cycles": s.expected,
                "busy": s.busy,
                "regime": s.bound,
                "bound": s.expected / s.busy if s.expected and s.busy else None,
                "round": s.round,
            }
            for s in network.stages()
            if s.jobs
        ]


def measure(net: str, members: int, device: str, small: bool = False, check: bool = True) -> dict[str, Any]:
    """Of one member: STEADY runs behind the first. Of several: apart and together."""
    slow = NETS[net].slow
    runs = (2 if slow else STEADY + 1) if members == 1 else 1 if slow or members > 8 else 2
    of = train(net, members, device, small, runs)
    values = of.pop("values")
    identical = all(same(v, alone(net, small, i, runs)) for i, v in enumerate(values)) if check else None
    point = of | {
        "net": net,
        "members": members,
        "runs": runs,
        "batch": graph_of(net, small)["x"].shape[0],
        "identical": identical,
    }
    if members == 1:
        return point | {"apart_cycles": of["cycles_per_run"], "layers": layers(net, device, small)}
    turns = 2 if members == 2 and not slow else 1
    other = train(net, members, device, small, turns, apart=True)
    in_turn = all(same(v, alone(net, small, i, turns)) for i, v in enumerate(other.pop("values"))) if check else None
    # (Members that have run together have more for a while: run_bytes is of members apart.)
    return point | {"apart_cycles": other["cycles_per_run"], "run_bytes": other["run_bytes"], "identical": in_turn and identical}


def both(net: str, members: int, device: str, small: bool = False, policy: str = "priority") -> dict[str, Any]:
    """In both queues, by a policy of the device. Its cycles a run are those of the whole, to the end, where one queue is empty."""
    runs = 2 if members > 4 or NETS[net].slow else 4
    if net.startswith("digits"):
        runs = 8 if members <= 8 else 4
    of = train(net, members, device, small, runs, policy, both=True)
    values = of.pop("values")
    identical = all(same(v, alone(net, small, i, runs)) for i, v in enumerate(values))
    cycles = of["whole_cycles"] / (runs * members) if of["whole_cycles"] else None
    return of | {"net": net, "members": members, "runs": runs, "identical": identical, "cycles_per_run": cycles}


def beside(net: str, members: int, device: str, small: bool = False) -> dict[str, Any]:
    """Latencies of requests to the perceptron 64-32-10 while members train; both end at about the same time."""
    requests = REQUESTS // 20 if small else REQUESTS
    took: list[int] = []
    with coltrain.open(device) as dev, dev.array() as array:
        graph = graph_of(net, small)
        feed = batches_of(graph, SEED)
        for i in range(members):
            array.join(graph, feed, seed=SEED + i, **recipe(net, i))
        with dev.compile(coltrain.Graph.mlp((64, 32, 10), 1, training=False)) as answers:
            answers.draw(SEED)
            answers.run({"x": np.zeros((1, 64), np.float32)}, queue="inference")
            array.run(1)  # programs are there
            start = dev.now() or 0
            frames = [answers.frame() for _ in range(requests)]
            due = [start + PITCH * (i + 1) for i in range(requests)]
            futures = [answers.submit(f, queue="inference", cycle=c) for f, c in zip(frames, due, strict=True)]
            while (dev.now() or 0) < due[-1]:
                array.run(1)
            for future, cycle in zip(futures, due, strict=True):
                event = future.result()
                took.append((event.end or 0) - cycle)
    return {
        "net": net,
        "members": members,
        "requests": requests,
        "median_cycles": float(np.median(took)),
        "p99_cycles": float(np.percentile(took, 99, method="higher")),
        "most_cycles": max(took),
    }


def main() -> int:
    p = argparse.ArgumentParser(prog="coltrain.experiments.fusion_run")
    p.add_argument("--net", choices=sorted(NETS), required=True)
    p.add_argument("--members", type=int, required=True)
    p.add_argument("--device", default="sim:")
    p.add_argument("--small", action="store_true")
    p.add_argument("--beside", action="store_true")
    p.add_argument("--both", action="store_true")
    p.add_argument("--policy", default="priority", help="of the device, with --both")
    p.add_argument("--json", default="-")
    o = p.parse_args()
    try:
        if o.beside:
            point = beside(o.net, o.members, o.device, o.small)
        elif o.both:
            point = both(o.net, o.members, o.device, o.small, o.policy)
        else:
            point = measure(o.net, o.members, o.device, o.small)
        print(json.dumps(point))
    except (Failure, coltrain.Error) as failure:
        return complain(str(failure))
    return 0


if __name__ == "__main__":
    sys.exit(main())
