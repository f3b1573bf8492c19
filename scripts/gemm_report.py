#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
#
# What `coltrain bench gemm --json FILE` measured, for docs/results.md: rewrites the tables between its markers and draws the
# roofline docs/utilisation.svg. Several files count as one.
#
#   build/bin/coltrain bench gemm --all --json build/gemm.json && scripts/gemm_report.py build/gemm.json

import json
import math
import pathlib
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
RESULTS = ROOT / "docs" / "results.md"
PLOT = ROOT / "docs" / "utilisation.svg"
BEGIN, END = "<!-- gemm:%s -->", "<!-- gemm:%s end -->"
PEAK = 256  # multiply-accumulates of the array in a cycle


def name(p):
    return "%d x %d x %d" % (p["m"], p["n"], p["k"])


def cell(p, bound):
    if p is None:
        return ""
    text = "%.1f" % (100 * p["utilisation"])
    return "%s (%.0f)" % (text, 100 * p["of_bound"]) if bound else text


def pick(products, **want):
    found = [p for p in products if all(p[k] == v for k, v in want.items())]
    return found[0] if found else None


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


def beside(products):
    columns = []
    for who, heading in (("alone", "alone"), ("training", "inference queue, training endless"),
                         ("inference", "training queue, inference endless")):
        for result in ("hbfp8", "fp32"):
            want = {"result": result, "bandwidth": 16, "stall": 0, "beside": who}
            if pick(products, **want):
                columns.append(("%s, %s" % (result.upper(), heading), want, False))
    return table(products, columns)


def replace(text, what, rows):
    begin, end = BEGIN % what, END % what
    if begin not in text or end not in text:
        sys.exit("%s: the markers %s and %s are missing" % (RESULTS, begin, end))
    head, rest = text.split(begin, 1)
    return head + begin + "\n" + "\n".join(rows) + "\n" + end + rest.split(end, 1)[1]


# ---- The plot: multiply-accumulates a cycle over those a byte, both logarithmic --------------------------------------------

WIDTH, HEIGHT, LEFT, BOTTOM, TOP, RIGHT = 760, 420, 60, 50, 20, 20
X0, X1, Y0, Y1 = 1.0, 256.0, 4.0, 300.0
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
    x = X0
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
    for i, (width, colour) in enumerate(COLOUR.items()):
        out.append('<circle cx="%d" cy="%d" r="4" fill="%s"/>' % (WIDTH - 150, HEIGHT - BOTTOM - 60 + 18 * i, colour))
        out.append(label(WIDTH - 140, HEIGHT - BOTTOM - 56 + 18 * i, "%d bytes a cycle each way" % width))
    out.append(label((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 10, "multiply-accumulates for each byte of the busier direction",
                     'text-anchor="middle"'))
    out.append(label(16, HEIGHT / 2, "multiply-accumulates a cycle", 'text-anchor="middle" transform="rotate(-90 16 %d)"' % (HEIGHT / 2)))
    return "\n".join(out) + "\n</svg>\n"


def main():
    if len(sys.argv) < 2:
        sys.exit("usage: scripts/gemm_report.py FILE.json...   (from coltrain bench gemm --json FILE.json)")
    products = [p for f in sys.argv[1:] for p in json.loads(pathlib.Path(f).read_text())["products"]]
    text = RESULTS.read_text()
    text = replace(text, "hbfp8", alone(products, "hbfp8"))
    text = replace(text, "fp32", alone(products, "fp32"))
    text = replace(text, "beside", beside(products))
    RESULTS.write_text(text)
    PLOT.write_text(plot(products))


main()
