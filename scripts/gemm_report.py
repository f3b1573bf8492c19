#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# What `coltrain bench gemm --json FILE` measured, for docs/results.md: rewrites the tables between its markers and draws the
# roofline docs/utilisation.svg. Several files count as one.
#
#   build/bin/coltrain bench gemm --all --json build/gemm.json
#   build/bin/coltrain bench gemm --shape 64x64x64 --latency 20 --json build/cold.json
#   build/bin/coltrain bench gemm --shape 64x64x64 --latency 20 --runs 4 --json build/near.json
#   scripts/gemm_report.py build/gemm.json build/cold.json build/near.json

import functools
import json
import math
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / "docs" / "results.md"
PLOT = ROOT / "docs" / "utilisation.svg"
BEGIN, END = "<!-- gemm:%s -->", "<!-- gemm:%s end -->"
PEAK = 256  # multiply-accumulates of the array in a cycle


# Cycles of the pipelines on the way of a product: `coltrain bench gemm --shape 64x64x64 --trace`, and docs/results.md.
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


def name(p):
    return "%d x %d x %d" % (p["m"], p["n"], p["k"])


def cell(p, bound):
    if p is None:
        return ""
    text = "%.1f" % (100 * p["utilisation"])
    if not bound:
        return text
    least = possible(p)
    if p["stall"] == 0 and p["cycles"] < least:
        sys.exit("%s took %d cycles, fewer than the %d said to be possible: look at possible()" % (name(p), p["cycles"], least))
    return "%s (%.1f of %.1f)" % (text, 100 * p["of_bound"], 100 * p["bound_cycles"] / least)


# ---- What the dependences of a product leave possible ----------------------------------------------------------------------


def begun(a, b, rows, cols, tiles):
    """The most products in outputs that are not finished, by the number of tiles read of panels that are not whole: list of 0..tiles.

    a panels of A and b of B are whole, `rows` and `cols` more there are. One more k step of x further panels of A and y of B, x + y
    tiles, lets x * b + y * a + x * y outputs have one product more, as far as ACC holds them: fill up with such steps.
    """
    step = {}
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
def progress(mt, nt, kt):
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


def orders(mt, nt, kt, end):
    """The least, over all orders of loads, of the largest end(tiles, products, outputs) on the way; None if there are too many.

    Before each tile that is read, as many products and finished outputs as those before it can have made. Which panels have how
    many of their tiles is all that counts (these come in ascending k: before them, no later one is of use).
    """
    if math.comb(kt + mt, mt) * math.comb(kt + nt, nt) > FEW:
        return None

    def longer(panels):
        return {tuple(sorted(panels[:i] + (n + 1,) + panels[i + 1:])) for i, n in enumerate(panels) if n < kt}

    best = {((0,) * mt, (0,) * nt): 0}
    for t in range(1, (mt + nt) * kt + 1):
        after = {}
        for (a, b), last in best.items():
            products = sum(sum(n > k for n in a) * sum(n > k for n in b) for k in range(kt))
            last = max(last, end(t, products, a.count(kt) * b.count(kt)))
            for state in [(x, b) for x in longer(a)] + [(a, x) for x in longer(b)]:
                after[state] = min(last, after.get(state, math.inf))
        best = after
    return min(best.values())


def possible(p):
    """Cycles that no order of this product's loads, rows and stores can go below."""
    mt, nt, kt = (math.ceil(p[d] / 16) for d in "mnk")
    beat = 16 / p["bandwidth"] + p["stall"] / (100 - p["stall"])
    latency = p["latency"]
    named = ASK + latency + TRIP
    commands = COMMANDS + (3 if mt * nt > ONCE else 0)
    first = max(named + NAMED + latency + TRIP + DECODE + latency + TRIP, named + (8 + 2 * commands) * beat)
    product = max(min(p["m"], 16), 16 / min(mt, 8))  # slots of the array for a tile product: rows, its part of a weight tile
    total = max(p["m"] * nt * kt, mt * nt * kt * product if mt == 1 else 0)
    out = min(p["m"], 16) * min(math.ceil(p["n"] / 4), 4) if p["result"] == "fp32" else 17  # beats of an output tile

    def end(t, products, outputs):
        row = first + (17 * t - 1) * beat + LANDED  # the first one that needs tile t; products and outputs were made before it
        last = row + total - product * products - 1 + ANSWER + (out - 1) * beat
        if outputs < mt * nt:
            last = max(last, row + product - 1 + ANSWER + ((mt * nt - outputs) * out - 1) * beat)
        return last

    last = orders(mt, nt, kt, end) if mt * nt <= OPEN else None
    if last is None:
        most, done = progress(mt, nt, kt)
        last = max(end(t, most[t - 1], done[t - 1]) for t in range(1, len(most)))
    return last + latency + CLOSE


def pick(products, **want):
    found = [p for p in products if all(p[k] == v for k, v in want.items())]
    return found[0] if found else None


def default(products, result="hbfp8", stall=0, bandwidth=16, latency=60, beside="alone"):
    want = {"result": result, "stall": stall, "bandwidth": bandwidth, "latency": latency, "beside": beside}
    return [p for p in products if all(p[k] == v for k, v in want.items())]


def cubed(products, size):
    """Percent of the array that a product of such cubes keeps busy."""
    p = pick(products, m=size, n=size, k=size)
    if not p:
        sys.exit("the products measured lack %d x %d x %d, whose target is asked for: coltrain bench gemm --all has it" % (size, size, size))
    return 100 * p["utilisation"]


def targets(products):
    """What was asked for, of results in HBFP8, and what there is."""
    rows = ["| | target, % | measured, % | |", "|---|---:|---:|---|"]

    def add(what, target, got):
        rows.append("| %s | %s | %.1f | %s |" % (what, target, got, "held" if got >= target else "**missed**"))

    for size, target in ((512, 99.6), (256, 99.0), (128, 94.0), (64, 72.0)):
        add("%d cubed" % size, target, cubed(default(products), size))
    add("512 cubed, stall 25 %", 99.4, cubed(default(products, stall=25), 512))
    near = default(products, latency=20)
    for runs, what in (((1,), "the first job"), (range(2, 1000), "a later job: its program has been guessed")):
        some = [p for p in near if p["runs"] in runs]
        if some:
            add("64 cubed, latency 20, " + what, 80.0, cubed(some, 64))
    for result in ("hbfp8", "fp32"):
        for beside, what in (("alone", "alone"), ("training", "beside products without end in the training queue"),
                             ("inference", "beside products without end in the inference queue")):
            rows.extend(of_bound(products, result, beside, what))
    return rows


def of_bound(products, result, beside, what):
    """Rows of targets(): how many products of those from 64 cubed up reach 90 % of the bound, and which do not."""
    large = [p for p in products if p["latency"] == 60 and p["beside"] == beside and p["result"] == result and
             (p["m"] == 64 or (p["m"] == p["n"] == p["k"] >= 64))]
    for stalls in (False, True):
        cells = {}
        for p in large:
            if (p["stall"] > 0) == stalls:
                at = "%s, %d B" % (name(p).replace(" ", ""), p["bandwidth"]) + (", %d %%" % p["stall"] if stalls else "")
                cells.setdefault(at, []).append(100 * p["of_bound"])
        means = {at: sum(some) / len(some) for at, some in cells.items()}
        least = sorted((mean, at) for at, mean in means.items() if mean < 90)
        if cells:
            yield "| of the bound, %s%s, from 64 cubed up and the layers, 16, 8 and 2 B%s | 90 | %d of %d reach 90%s | %s |" % (
                "FP32, " if result == "fp32" else "", what, ", stall 10 and 25 %" if stalls else "", len(cells) - len(least), len(cells),
                "".join("; %s: %.1f" % (at, mean) for mean, at in least),
                "**missed**, see [below](#what-is-possible)" if least else "held")


def shapes(products):
    seen = []
    for p in products:
        if name(p) not in [name(s) for s in seen]:
            seen.append(p)
    return sorted(seen, key=lambda p: (not p["m"] == p["n"] == p["k"], p["m"], -p["k"]))  # cubes first


def table(products, columns):
    """columns: (heading, wanted fields, with the share of the bound)"""
    rows = ["| M x N x K | " + " | ".join(c[0] for c in columns) + " |", "|---" + "|---:" * len(columns) + "|"]
    for s in shapes(products):
        same = [p for p in products if name(p) == name(s)]
        rows.append("| %s | " % name(s) + " | ".join(cell(pick(same, **c[1]), c[2]) for c in columns) + " |")
    return rows


def alone(products, result):
    columns = []
    for bandwidth in (16, 8, 2):
        for stall in (0, 10, 25):
            want = {"result": result, "bandwidth": bandwidth, "stall": stall, "beside": "alone"}
            if pick(products, **want):
                columns.append(("%d B, %d %%" % (bandwidth, stall), want, True))
    return table(products, columns)


def phases(some):
    """Means over the phases of the neighbour: of the array, and in brackets of the bound; and the least of the array."""
    if not some:
        return ""
    use = [100 * p["utilisation"] for p in some]
    text = "%.1f (%.1f)" % (sum(use) / len(use), sum(100 * p["of_bound"] for p in some) / len(some))
    return text if len(use) == 1 else text + ", %.1f" % min(use)


def beside(products, who, result):
    near = [p for p in products if p["beside"] == who and p["result"] == result]
    memories = sorted({(p["bandwidth"], p["stall"]) for p in near}, key=lambda m: (-m[0], m[1]))
    rows = ["| M x N x K | " + " | ".join("%d B, %d %%" % m for m in memories) + " |", "|---" + "|---:" * len(memories) + "|"]
    for s in shapes(near):
        rows.append("| %s | " % name(s) + " | ".join(
            phases([p for p in near if name(p) == name(s) and (p["bandwidth"], p["stall"]) == m]) for m in memories) + " |")
    return rows


def replace(text, what, rows):
    begin, end = BEGIN % what, END % what
    if begin not in text or end not in text:
        sys.exit("%s: the markers %s and %s are missing" % (RESULTS, begin, end))
    head, rest = text.split(begin, 1)
    return head + begin + "\n" + "\n".join(rows) + "\n" + end + rest.split(end, 1)[1]


# ---- The plot: multiply-accumulates a cycle over those a byte, both logarithmic --------------------------------------------

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 760, 420, 60, 50, 20, 20
X0, X1, Y0, Y1 = 0.5, 256.0, 4.0, 300.0
COLOUR = {16: "#1b6ca8", 8: "#2a9d5c", 2: "#c8553d"}


def at_x(x):
    return LEFT + (WIDTH - LEFT - RIGHT) * math.log(x / X0) / math.log(X1 / X0)


def at_y(y):
    return HEIGHT - BOTTOM - (HEIGHT - BOTTOM - TOP) * math.log(y / Y0) / math.log(Y1 / Y0)


def line(x0, y0, x1, y1, style):
    return '<line x1="%.1f" y1="%.1f" x2="%.1f" y2="%.1f" %s/>' % (at_x(x0), at_y(y0), at_x(x1), at_y(y1), style)


def label(x, y, text, extra=""):
    return '<text x="%.1f" y="%.1f" %s>%s</text>' % (x, y, extra, text)


def tile_bytes(rows, cols):
    return 272 * math.ceil(rows / 16) * math.ceil(cols / 16)


def intensity(p):
    """Multiply-accumulates for each byte of the busier direction of the memory port."""
    read = tile_bytes(p["m"], p["k"]) + tile_bytes(p["n"], p["k"])
    return p["m"] * p["n"] * p["k"] / max(read, tile_bytes(p["m"], p["n"]))


def plot(products):
    out = ['<svg xmlns="http://www.w3.org/2000/svg" width="%d" height="%d" font-family="sans-serif" font-size="11">' % (WIDTH, HEIGHT),
           '<rect width="100%" height="100%" fill="white"/>']
    x = 1.0
    while x <= X1:
        out.append(line(x, Y0, x, Y1, 'stroke="#ddd"'))
        out.append(label(at_x(x), HEIGHT - BOTTOM + 15, "%g" % x, 'text-anchor="middle"'))
        x *= 4
    for y in (4, 8, 16, 32, 64, 128, 256):
        out.append(line(X0, y, X1, y, 'stroke="#ddd"'))
        out.append(label(LEFT - 6, at_y(y) + 4, "%d" % y, 'text-anchor="end"'))
    for width, colour in COLOUR.items():
        knee = max(X0, PEAK / width)
        out.append(line(max(X0, Y0 / width), max(Y0, X0 * width), knee, PEAK, 'stroke="%s" stroke-width="1.5"' % colour))
        out.append(line(knee, PEAK, X1, PEAK, 'stroke="%s" stroke-width="1.5"' % colour))
    for p in products:
        if p["result"] != "hbfp8" or p["stall"] or p["beside"] != "alone" or p["bandwidth"] not in COLOUR:
            continue
        rate = p["utilisation"] * PEAK
        if rate < Y0 or intensity(p) < X0:
            continue
        out.append('<circle cx="%.1f" cy="%.1f" r="4" fill="%s" fill-opacity="0.8"><title>%s, %d B a cycle: %.1f %%</title></circle>' %
                   (at_x(intensity(p)), at_y(rate), COLOUR[p["bandwidth"]], name(p), p["bandwidth"], 100 * p["utilisation"]))
        if p["bandwidth"] == 16 and (p["m"] == p["n"] == p["k"] <= 128 or p["m"] < 16 or p["n"] == 10):
            short = "%d cubed" % p["m"] if p["m"] == p["n"] else name(p).replace(" ", "")
            out.append(label(at_x(intensity(p)) + 7, at_y(rate) + 4, short, 'fill="#555"'))
    for i, (width, colour) in enumerate(COLOUR.items()):
        out.append('<circle cx="%d" cy="%d" r="4" fill="%s"/>' % (WIDTH - 190, HEIGHT - BOTTOM - 60 + 18 * i, colour))
        out.append(label(WIDTH - 180, HEIGHT - BOTTOM - 56 + 18 * i, "%d bytes a cycle each way" % width))
    out.append(label((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, "multiply-accumulates for each byte of the busier direction",
                     'text-anchor="middle"'))
    out.append(label(16, HEIGHT / 2, "multiply-accumulates a cycle", 'text-anchor="middle" transform="rotate(-90 16 %d)"' % (HEIGHT / 2)))
    return "\n".join(out) + "\n</svg>\n"


def main():
    if len(sys.argv) < 2:
        sys.exit("usage: scripts/gemm_report.py FILE.json...   (from coltrain bench gemm --json FILE.json)")
    files = [json.loads(pathlib.Path(f).read_text()) for f in sys.argv[1:]]
    products = [dict(p, runs=f["runs"]) for f in files for p in f["products"]]
    text = RESULTS.read_text()
    text = replace(text, "targets", targets(products))
    usual = [p for p in products if p["latency"] == 60]
    for result in ("hbfp8", "fp32"):
        text = replace(text, result, alone(usual, result))
        for who in ("training", "inference"):
            text = replace(text, "%s:%s" % (who, result), beside(usual, who, result))
    RESULTS.write_text(text)
    PLOT.write_text(plot(usual))


main()
