# SPDX-License-Identifier: Apache-2.0
"""One point of `coltrain experiment fusion`: members of an array train a network together on a device. Prints a line of JSON.

Each member has a learning rate and a momentum of its own, and weights of its own seed. Afterwards each is compared, in every bit, with the
same network trained alone on emu:.
"""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

import numpy as np

import coltrain
from coltrain.cli import Failure, complain
from coltrain.experiments.fusion_nets import NETS, batches_of, graph_of, widths

STEADY = 6  # runs, at least, between whose ends rates are measured
UNITS = {"array": "MXU_BUSY", "VL": "VL_BUSY", "VA": "VA_BUSY", "VS": "VS_BUSY", "reads": "LD_BEATS", "writes": "ST_BEATS"}
SEED = 1


def recipe(member: int) -> tuple[float, float]:
    """Learning rate and momentum of a member, counted from 0."""
    return 0.001 * (1 + member % 7), 0.5 + 0.01 * (member % 45)


def alone(net: str, small: bool, member: int, runs: int) -> dict[str, Any]:
    """Its weights and states, trained alone on emu:."""
    graph, (rate, momentum) = graph_of(net, small), recipe(member)
    feed = batches_of(graph, SEED)
    graph.optimise("loss", rate, momentum=momentum)
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
    """Of runs in the order of their ends; None on a device without a clock."""
    first, last = ends[0], ends[-1]
    if first.start is None or first.end is None or last.end is None:
        return {"first_cycles": None, "whole_cycles": None, "cycles_per_run": None}
    steady = (last.end - first.end) / (len(ends) - 1)
    return {"first_cycles": first.end - first.start, "whole_cycles": last.end - first.start, "cycles_per_run": steady}


def as_model(net: str, device: str, small: bool) -> float | None:
    """Cycles of a step of the same perceptron as a model, whose step is one program, with the next step in the queue."""
    sizes = NETS[net].small if small else NETS[net].full
    random = np.random.default_rng(SEED)
    with coltrain.open(device) as dev, dev.model(widths(sizes)) as model:
        model.training(sizes.batch, 0.01, 0.9)
        batches = [model.batch() for _ in range(STEADY + 1)]
        for batch in batches:
            batch.write(random.uniform(-1, 1, (sizes.batch, 64)), random.integers(10, size=sizes.batch))
        events = [future.result() for future in [model.step_submit(batch) for batch in batches]]
        first, last = events[0].end, events[-1].end
        return None if first is None or last is None else (last - first) / STEADY


def measure(net: str, members: int, device: str, small: bool = False, check: bool = True) -> dict[str, Any]:
    runs = -(-(STEADY + 1) // members)
    ends: list[coltrain.MemberRun] = []
    with coltrain.open(device) as dev, dev.array() as array:
        graph = graph_of(net, small)
        feed = batches_of(graph, SEED)
        recipes = [recipe(i) for i in range(members)]
        joined = [array.join(graph, feed, seed=SEED + i, schedule=rate, momentum=m) for i, (rate, m) in enumerate(recipes)]
        before = dev.counters("training")
        array.run(runs, ends.append)
        after = dev.counters("training")
        time = timing(ends)
        unit, busy = busiest_of(before, after, time["whole_cycles"]) if time["whole_cycles"] else (None, None)
        info, facts = joined[0].network.info, array.info
        identical = all(same(m.network.values(), alone(net, small, i, runs)) for i, m in enumerate(joined)) if check else None
        return time | {
            "net": net,
            "members": members,
            "runs": runs,
            "batch": graph["x"].shape[0],
            "jobs": info.jobs,
            "programs": facts.programs,
            "batches": facts.batches,
            "bytes": joined[0].info.bytes,
            "busiest": unit,
            "busy": busy,
            "identical": identical,
            "model_cycles": as_model(net, device, small) if NETS[net].perceptron and members == 1 else None,
        }


def main() -> int:
    p = argparse.ArgumentParser(prog="coltrain.experiments.fusion_run")
    p.add_argument("--net", choices=sorted(NETS), required=True)
    p.add_argument("--members", type=int, required=True)
    p.add_argument("--device", default="sim:")
    p.add_argument("--small", action="store_true")
    p.add_argument("--json", default="-")
    o = p.parse_args()
    try:
        print(json.dumps(measure(o.net, o.members, o.device, o.small)))
    except (Failure, coltrain.Error) as failure:
        return complain(str(failure))
    return 0


if __name__ == "__main__":
    sys.exit(main())
