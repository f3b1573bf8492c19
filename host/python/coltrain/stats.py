# SPDX-License-Identifier: Apache-2.0
"""The figures of a measurement: quantiles that are samples, never interpolated, and means of ratios.

A request that was never answered counts as infinite: it sorts last. docs/experiments.md has the definitions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

NEVER = math.inf
"""The latency of a request that was never answered."""

DROP_LEAST = 1000  # of a campaign


def drop(n: int) -> int:
    """How many of the first of n samples a run drops because its queue was still filling: 10 %, rounded up."""
    return n // 10 + (n % 10 != 0)


def drop_campaign(n: int) -> int:
    """The same by the rule of an experiment: max(1000, 10 %), at most n."""
    return min(n, max(DROP_LEAST, drop(n)))


def requests(measured: int) -> int:
    """The smallest n with n - drop_campaign(n) >= measured."""
    n = measured + measured // 9 + (measured % 9 != 0)
    return max(n, measured + DROP_LEAST)


def rank(n: int, num: int, den: int) -> int:
    """The place, from 1, of the num/den quantile among n sorted samples: ceil(n * num / den), at least 1."""
    return max(1, -(-n * num // den))


def quantile(samples: ArrayLike, num: int, den: int) -> float:
    """The ceil(n * num / den)-th smallest of n samples, in any order; NEVER of none."""
    values = np.asarray(samples, dtype=np.float64)
    if values.size == 0:
        return NEVER
    at = rank(values.size, num, den) - 1
    return float(np.partition(values, at)[at])


class Latency(NamedTuple):
    """Figures of the measured requests of a run, in the unit of the samples."""

    measured: int
    dropped: int
    p50: float
    p90: float
    p99: float
    most: float


def latency(samples: ArrayLike, dropped: int) -> Latency:
    """Sums up samples in order of arrival, the first ones dropped. NaN where nothing is left."""
    values = np.asarray(samples, dtype=np.float64)
    left = values[min(dropped, values.size) :]
    if left.size == 0:
        return Latency(0, int(values.size), math.nan, math.nan, math.nan, math.nan)
    return Latency(
        int(left.size),
        int(values.size - left.size),
        quantile(left, 1, 2),
        quantile(left, 9, 10),
        quantile(left, 99, 100),
        float(left.max()),
    )


class Ratio(NamedTuple):
    """A geometric mean over seeds and its 95 % interval; NaN where there is none, infinite where it never came."""

    seeds: int
    mean: float
    low: float
    high: float


def _interval(values: NDArray[np.float64]) -> Ratio:
    from scipy.stats import t as student

    n = int(values.size)
    if n < 2 or not (values > 0).all():
        return Ratio(n, math.nan, math.nan, math.nan)
    logs = np.log(values)
    centre = float(logs.mean())
    half = float(student.ppf(0.975, n - 1) * logs.std(ddof=1) / math.sqrt(n))
    return Ratio(n, math.exp(centre), math.exp(centre - half), math.exp(centre + half))


def ratio(values: Sequence[float]) -> Ratio:
    """Mean of ratios, one for each seed: Student's t on the logarithms. One seed has a value without an interval."""
    n = len(values)
    if any(math.isinf(v) for v in values):
        return Ratio(n, math.inf, math.inf, math.inf)
    if n == 1:
        return Ratio(1, float(values[0]), math.nan, math.nan)
    return _interval(np.asarray(values, dtype=np.float64))


def part(values: Sequence[float]) -> Ratio:
    """The same of parts of something: one seed without any makes the mean 0."""
    if any(v == 0 for v in values):
        return Ratio(len(values), 0.0, 0.0, 0.0)
    return ratio(values)


Number = int | float


def between(samples: Sequence[Number], pitch: int, cycles: Number) -> float:
    """What a sum that was read every `pitch` cycles was after so many: on a straight line between two readings, past the
    last one at the mean rate."""
    last = len(samples) * pitch
    if cycles >= last:
        return float(samples[-1]) * cycles / last
    at: list[float] = [0, *(pitch * (i + 1) for i in range(len(samples)))]
    return float(np.interp(cycles, at, [0, *samples]))


def cycles_for(samples: Sequence[Number], pitch: int, amount: Number) -> float:
    """After how many cycles the same sum was so large: the first time, between two readings as above."""
    values = np.asarray(samples, dtype=float)
    last = float(values[-1])
    if amount >= last:
        return len(values) * pitch * amount / last
    at = int(np.argmax(values >= amount))
    before = float(values[at - 1]) if at else 0.0
    step = float(values[at]) - before
    return (at + ((amount - before) / step if step > 0 else 0.0)) * pitch
