# SPDX-License-Identifier: Apache-2.0
"""Targets of `coltrain experiment memory`, and intervals of what several seeds say."""

from __future__ import annotations

import math
from collections.abc import Sequence

from coltrain.experiments.common import Target
from coltrain.experiments.memory_inputs import inputs_targets
from coltrain.experiments.memory_ways import NETS
from coltrain.experiments.points import Json

OVER_FP32, OVER_MASK, BATCHES, NOISE, NO_LATER = 13.5, 1.8, 3.0, 2.0, 1.05
RAW, MASK, CLOSE, MASKED = "hbfp8", "hbfp8-mask", "s=0.1", "s=0.1-mask"
STEP = "cycles of a step at most those of one with HBFP8, in a memory of {} bytes a cycle, over which they are"
NARROWER = (4, 2)
"""Bytes a cycle."""
Rows = dict[tuple[str, str], Json]


def interval(values: Sequence[float]) -> tuple[float | None, float | None, float | None]:
    """The mean, and the 95 % interval by Student's t; of one seed there is none."""
    n = len(values)
    if n < 2:
        return (values[0] if n else None), None, None
    from scipy.stats import t as student

    middle, half = sum(values) / n, float(student.ppf(0.975, n - 1)) * math.sqrt(error_of(values))
    return middle, middle - half, middle + half


def target(text: str, figures: Sequence[float], least: float) -> Target:
    t = Target(text)
    if len(figures) == len(NETS):
        t.figure, t.held = f"{min(figures):.3f}", min(figures) >= least
    return t


def error_of(values: Sequence[float]) -> float:
    """The square of their mean's standard error."""
    middle, n = sum(values) / len(values), len(values)
    return sum((v - middle) ** 2 for v in values) / (n - 1) / n


def accuracy_target(by: Rows, other: str, text: str) -> Target:
    """Of networks with several seeds the one that loses most beyond what seeds make: two standard errors of the difference are seen one time in twenty
    without a cause."""
    t = Target(f"s = 0.1 is as accurate as {text}, but for {NOISE:.0f} standard errors, where there are several seeds")
    pairs = {net: (by[net, other]["accuracies"], by[net, CLOSE]["accuracies"]) for net in NETS if (net, other) in by and (net, CLOSE) in by}
    several = {net: pair for net, pair in pairs.items() if all(len(x) > 1 for x in pair)}
    if len(pairs) < len(NETS) or not several:
        return t
    lost: list[tuple[str, float, float]] = [
        (net, sum(a) / len(a) - sum(b) / len(b), NOISE * math.sqrt(error_of(a) + error_of(b))) for net, (a, b) in several.items()
    ]
    net, most, noise = max(lost, key=lambda x: x[1] - x[2])
    t.figure, t.held = f"{most:.4f} ({net}, of {noise:.4f})", most <= noise
    return t


def over_raw(beside: Sequence[Json], ways: Sequence[str], what: str, text: str, most: float) -> Target:
    """Of all networks and such ways the largest figure, over that of HBFP8."""
    t = Target(text)
    raw = {p["net"]: p[what] for p in beside if p["keep"] == RAW}
    ratios: list[tuple[float, Json]] = [(p[what] / raw[p["net"]], p) for p in beside if p["keep"] in ways and p[what] and raw.get(p["net"])]
    if ratios:
        worst, p = max(ratios, key=lambda x: x[0])
        t.figure, t.held = f"{worst:.3f} ({p['net']}, {p['keep']})", worst <= most
    return t


def deviation_target(by: Rows, which: str, text: str) -> Target:
    t = Target(text)
    found = [r[which] for (_, keep), r in by.items() if keep == CLOSE and r.get(which) is not None]
    if found:
        t.figure, t.held = f"{max(found):.2f}", max(found) <= 1
    return t


def targets_of(rows: Sequence[Json], beside: Sequence[Json], narrow: Sequence[Json] = (), inputs: Sequence[Json] = ()) -> list[Target]:
    by = {(r["net"], r["keep"]): r for r in rows}
    best = {net: by[net, CLOSE] for net in NETS if (net, CLOSE) in by}
    ratios = [r["ratio_fp32"] for r in best.values() if r["ratio_fp32"]]
    over = [by[net, MASK]["bits_per_value"] / r["bits_per_value"] for net, r in best.items() if (net, MASK) in by and r["bits_per_value"]]
    raw = [by[net, RAW]["reserved_bytes"] / r["reserved_bytes"] for net, r in best.items() if (net, RAW) in by and r["reserved_bytes"]]
    return [
        target(f"at least {OVER_FP32} times smaller than in FP32", ratios, OVER_FP32),
        target(f"at least {OVER_MASK} times smaller than HBFP8 without zeros", over, OVER_MASK),
        target(f"a step in a memory {BATCHES:.0f} times smaller than with HBFP8 kept raw", raw, BATCHES),
        accuracy_target(by, "fp32", "FP32"),
        accuracy_target(by, RAW, "HBFP8"),
        deviation_target(by, "deviation_own", "gradients of weights deviate by s at most by what they are made of"),
        deviation_target(by, "deviation_others", "gradients of other weights deviate by s at most"),
        over_raw(beside, (CLOSE,), "step_cycles", STEP.format(8), 1.0),
        over_raw(beside, (CLOSE, MASKED), "p99_cycles", f"p99 of requests beside steps that compress at most {NO_LATER} of that beside HBFP8", NO_LATER),
        *(over_raw([r for r in narrow if r["bandwidth"] == b], (CLOSE,), "cycles", STEP.format(b), 1.0) for b in NARROWER),
        *inputs_targets(inputs, list(NETS), CLOSE, MASK, (OVER_FP32, OVER_MASK)),
    ]
