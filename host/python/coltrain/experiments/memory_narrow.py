# SPDX-License-Identifier: Apache-2.0
"""Cycles of a step by what the memory gives in a cycle, for ways of keeping."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from coltrain.experiments.memory_ways import NETS
from coltrain.experiments.points import Json

BANDWIDTHS = (8, 4, 2)
"""Bytes a cycle, each way."""
WAYS = ("fp32", "hbfp8", "s=0.1")
IMAGES = 320
"""That a network is trained with before."""
BATCHES = {"lenet5": 16, "resnet8": 4, "vgg": 4}


def narrows() -> list[tuple[str, str, int]]:
    return [(net, keep, b) for net in NETS for keep in WAYS for b in BANDWIDTHS]


def arguments(net: str, keep: str, bandwidth: int) -> list[str]:
    args = ["--net", net, "--keep", keep, "--batch", str(BATCHES[net]), "--images", str(IMAGES), "--data", NETS[net].data]
    return [*args, "--device", f"sim:bandwidth={bandwidth}"]


def rows_of(found: Sequence[tuple[str, str, int, Json]]) -> list[Json]:
    """Cycles over those of HBFP8 in the same memory, where that is there."""
    raw = {(net, b): f["cycles"] for net, keep, b, f in found if keep == "hbfp8"}
    rows: list[Json] = []
    for net, keep, b, f in found:
        over = f["cycles"] / raw[net, b] if (net, b) in raw else None
        rows.append({"net": net, "keep": keep, "bandwidth": b, "batch": BATCHES[net], "dram_bytes": f["dram_bytes"], "cycles": f["cycles"], "over_hbfp8": over})
    return rows


def lines(rows: Sequence[Json]) -> Iterable[str]:
    for r in rows:
        over = f", {r['over_hbfp8']:.3f} of HBFP8" if r["over_hbfp8"] else ""
        yield f"a step of {r['net']}, {r['keep']}, memory of {r['bandwidth']} bytes a cycle: {r['cycles']:,} cycles{over}"
