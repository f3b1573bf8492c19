# SPDX-License-Identifier: Apache-2.0
"""The cycles below which no order of a product's loads, rows and stores can go, with the pipelines as they are built.

docs/experiments.md says in words what is counted here.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable

from coltrain.experiments.points import Json

# Cycles of the pipelines on the way of a product: `coltrain bench gemm --shape 64x64x64 --trace`.
ASK = 4  # doorbell to the request for the descriptor
NAMED = 5  # its first beat to the request for the program
DECODE = 9  # the program's first beat to the request for the first operand
TRIP = 1  # a request to its first beat, besides the memory's latency
LANDED = 21  # an operand's last beat to its first row: signal, permission, the weight tile
ANSWER = 54  # a tile's last row to its first beat out: copy, quantise, read back
CLOSE = 6  # last beat out to completion, besides the memory's latency
COMMANDS = 7  # of the shortest program: two loads, product, copy, quantise, store, end
ONCE = 8  # output tiles of one product, copy or quantisation; for more of them these three come twice, or three commands of a loop
FEW = 10000  # steps of a load order that are looked at one by one
OPEN = 16  # output tiles that ACC holds
TILE_BEATS = 17


def begun(a: int, b: int, rows: int, cols: int, tiles: int) -> list[int]:
    """The most products in outputs that are not finished, by the number of tiles read of panels that are not whole.

    a panels of A and b of B are whole, `rows` and `cols` more there are. One more k step of x further panels of A and y of B, x + y
    tiles, lets x * b + y * a + x * y outputs have one product more, as far as ACC holds them: fill up with such steps.
    """
    step: dict[int, int] = {}
    for x in range(min(rows, OPEN) + 1):
        for y in range(min(cols, OPEN - x) + 1):
            step[x + y] = max(step.get(x + y, 0), min(OPEN, x * b + y * a + x * y))
    del step[0]
    best = max(step, key=lambda s: step[s] / s, default=0)
    most = [0]
    for t in range(1, tiles + 1):
        if t > OPEN * OPEN:  # from here on the best step alone (the others together weigh less)
            most.append(most[t - best] + step[best] if step else 0)
        else:
            most.append(max((most[t - s] + step[s] for s in step if s <= t), default=0))
    return most


@functools.cache
def progress(mt: int, nt: int, kt: int) -> tuple[list[int], list[int]]:
    """For each number of operand tiles read: the most tile products and the most finished output tiles there can be.

    An output tile has as many products as both its panels have tiles, in ascending k. With a panels of A and b of B read whole, a * b
    outputs can be finished; of others as many as ACC holds can be under way.
    """
    tiles = (mt + nt) * kt
    most, done = [0] * (tiles + 1), [0] * (tiles + 1)
    for a in range(mt + 1):
        for b in range(nt + 1):
            whole = (a + b) * kt
            for t, products in enumerate(begun(a, b, mt - a, nt - b, tiles - whole), whole):
                most[t] = max(most[t], min(a * b * kt + products, mt * nt * kt))
                done[t] = max(done[t], a * b)
    return most, done


Panels = tuple[int, ...]


def orders(mt: int, nt: int, kt: int, end: Callable[[int, int, int], float]) -> float | None:
    """The least, over all orders of loads, of the largest end(tiles, products, outputs) on the way; None if there are too many.

    Before each tile that is read, as many products and finished outputs as those before it can have made. Which panels have how
    many of their tiles is all that counts (these come in ascending k: before them, no later one is of use).
    """
    if math.comb(kt + mt, mt) * math.comb(kt + nt, nt) > FEW:
        return None

    def longer(panels: Panels) -> set[Panels]:
        return {tuple(sorted((*panels[:i], n + 1, *panels[i + 1 :]))) for i, n in enumerate(panels) if n < kt}

    best: dict[tuple[Panels, Panels], float] = {((0,) * mt, (0,) * nt): 0}
    for t in range(1, (mt + nt) * kt + 1):
        after: dict[tuple[Panels, Panels], float] = {}
        for (a, b), last in best.items():
            products = sum(sum(n > k for n in a) * sum(n > k for n in b) for k in range(kt))
            last = max(last, end(t, products, a.count(kt) * b.count(kt)))
            for state in [(x, b) for x in longer(a)] + [(a, x) for x in longer(b)]:
                after[state] = min(last, after.get(state, math.inf))
        best = after
    return min(best.values())


def possible(p: Json) -> float:
    """Of a product as `coltrain bench gemm --json` describes it, alone."""
    mt, nt, kt = (math.ceil(p[d] / 16) for d in "mnk")
    beat = 16 / p["bandwidth"] + p["stall"] / (100 - p["stall"])
    latency = p["latency"]
    named = ASK + latency + TRIP
    commands = COMMANDS + (3 if mt * nt > ONCE else 0)
    first = max(named + NAMED + latency + TRIP + DECODE + latency + TRIP, named + (8 + 2 * commands) * beat)
    product = max(min(p["m"], 16), 16 / min(mt, 8))  # slots of the array for a tile product: rows, its part of a weight tile
    total = max(p["m"] * nt * kt, mt * nt * kt * product if mt == 1 else 0)
    # Beats of an output tile.
    out = min(p["m"], 16) * min(math.ceil(p["n"] / 4), 4) if p["result"] == "fp32" else TILE_BEATS

    def end(t: int, products: int, outputs: int) -> float:
        row = first + (TILE_BEATS * t - 1) * beat + LANDED  # the first one that needs tile t; products and outputs were made before it
        last = row + total - product * products - 1 + ANSWER + (out - 1) * beat
        if outputs < mt * nt:
            last = max(last, row + product - 1 + ANSWER + ((mt * nt - outputs) * out - 1) * beat)
        return float(last)

    last = orders(mt, nt, kt, end) if mt * nt <= OPEN else None
    if last is None:
        most, done = progress(mt, nt, kt)
        last = max(end(t, most[t - 1], done[t - 1]) for t in range(1, len(most)))
    return float(last + latency + CLOSE)
