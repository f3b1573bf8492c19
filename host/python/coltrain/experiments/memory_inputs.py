# SPDX-License-Identifier: Apache-2.0
"""What the inputs of convolutions take, of all that is kept compressed.

A tensor that is kept counts if the gradient of a convolution's weight is made of it, as it is or made again, as behind a normalisation. Its bits are those
of its groups and of a ReLU's mask beside it, with the share of index and ends of pages that its bytes have of all. Where maxima of max_pool were is kept
for the pooling, not for the convolution behind it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import coltrain
from coltrain.experiments.common import Target
from coltrain.experiments.memory_graphs import readers_of
from coltrain.experiments.points import Json


@cache
def read_by_convolutions(net: str, tensors: tuple[str, ...]) -> dict[str, bool]:
    """Those of the tensors that convolutions read for gradients; whether what lies beside one is a mask of it."""
    nodes = coltrain.Graph.builtin(net, 1, training=True).nodes
    weights = {n.inputs[1].name for n in nodes if n.op == "conv" and n.inputs[1] is not None}
    pooled = {n.outputs[0].name for n in nodes if n.op == "max_pool"}
    found = {}
    for tensor in tensors:
        readers = readers_of(coltrain.Graph.builtin(net, 1, training=True), tensor)
        if weights & {r.weight for r in [*readers.layers, *(readers.behind or [])]}:
            found[tensor] = tensor not in pooled
    return found


def bits_of(net: str, point: Json) -> tuple[float, float] | None:
    """Of a number, with masks and without. None where no such tensor is kept compressed."""
    kept = point.get("kept") or []
    masked = read_by_convolutions(net, tuple(sorted({k["tensor"] for k in kept if not k["exact"]})))
    numbers = [k for k in kept if k["tensor"] in masked and not k["exact"]]
    masks = [k for k in kept if k["exact"] and masked.get(k["tensor"])]
    values, every = sum(k["values"] for k in numbers), sum(k["bytes"] for k in kept)
    if not values or not every:
        return None
    bits = 8 * point["kept_bytes"] / every / values
    return bits * sum(k["bytes"] for k in numbers + masks), bits * sum(k["bytes"] for k in numbers)


def inputs_row(net: str, keep: str, points: Sequence[Json]) -> Json | None:
    found = [b for p in points if (b := bits_of(net, p))]
    if not found:
        return None
    bits, without = (sum(b[i] for b in found) / len(found) for i in range(2))
    return {"net": net, "keep": keep, "seeds": len(found), "bits_per_input": bits, "ratio_fp32": 32 / bits, "bits_without_masks": without}


def inputs_targets(rows: Sequence[Json], nets: Sequence[str], keep: str, mask: str, least: tuple[float, float]) -> list[Target]:
    """Of the network in which they are smallest: over FP32, over what is compressed without loss."""
    by = {(r["net"], r["keep"]): r["bits_per_input"] for r in rows}
    texts = ("in FP32, everything counted", "HBFP8 without zeros")
    targets = [Target(f"inputs of convolutions at least {x} times smaller than {text}") for x, text in zip(least, texts, strict=True)]
    if not all((net, k) in by for net in nets for k in (keep, mask)):
        return targets
    for t, x, over in zip(targets, least, ({net: 32.0 for net in nets}, {net: by[net, mask] for net in nets}), strict=True):
        worst, net = min((over[net] / by[net, keep], net) for net in nets)
        t.figure, t.held = f"{worst:.3f} ({net})", worst >= x
    return targets
