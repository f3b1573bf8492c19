# SPDX-License-Identifier: Apache-2.0
"""Arrival times of requests, to the bit those of host/tools (ct_arrivals.h): a generator and an exponential in integers."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

MASK = (1 << 64) - 1
LOW32 = np.uint64(0xFFFFFFFF)
LN2_Q32 = np.uint64(2977044472)
STREAM = 2  # of arrivals (CT_RAND_STREAM_ARRIVALS)


def _mix(z: int) -> int:
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def _rotl(x: int, k: int) -> int:
    return ((x << k) | (x >> (64 - k))) & MASK


def draws(seed: int, stream: int, count: int) -> list[int]:
    """The first numbers above 0 of a stream of the generator (xoshiro256**, ct_rand.h)."""
    x = (seed ^ _mix(stream)) & MASK
    s = []
    for _ in range(4):
        x = (x + 0x9E3779B97F4A7C15) & MASK
        s.append(_mix(x))
    a, b, c, d = s
    numbers: list[int] = []
    while len(numbers) < count:
        number = (_rotl((b * 5) & MASK, 7) * 9) & MASK
        t = (b << 17) & MASK
        c ^= a
        d ^= b
        b ^= c
        a ^= d
        c ^= t
        d = _rotl(d, 45)
        if number:
            numbers.append(number)
    return numbers


def exponential(x: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """-ln(x / 2^64) in 1/2^32, for x of at least 1."""
    x = x.copy()
    k = np.full(x.shape, 63, dtype=np.uint64)
    for shift in (32, 16, 8, 4, 2, 1):
        small = (x >> np.uint64(64 - shift)) == 0
        x[small] <<= np.uint64(shift)
        k[small] -= np.uint64(shift)
    m = x >> np.uint64(32)
    fraction = np.zeros_like(m)
    for _ in range(32):
        square = m * m
        bit = square >> np.uint64(63)
        fraction = (fraction << np.uint64(1)) | bit
        m = square >> (np.uint64(31) + bit)
    log = np.uint64(64 << 32) - ((k << np.uint64(32)) | fraction)
    return (log >> np.uint64(32)) * LN2_Q32 + ((log & LOW32) * LN2_Q32 >> np.uint64(32))


@lru_cache(maxsize=8)
def _gaps(seed: int, count: int) -> NDArray[np.uint64]:
    return exponential(np.array(draws(seed, STREAM, count), dtype=np.uint64))


def mean_q16(busy: int, done: int, permille: int) -> int:
    """The mean gap in 1/65536 of a cycle of a load, where `done` requests take `busy` cycles at capacity."""
    divisor = done * permille
    whole, rest = divmod(busy * 1000, divisor)
    return (whole << 16) + ((rest << 16) + divisor // 2) // divisor


def poisson(seed: int, mean: int, count: int) -> NDArray[np.uint64]:
    """The cycles of `count` independent arrivals, `mean` as of mean_q16()."""
    gaps = _gaps(seed, count)
    high, low = gaps >> np.uint64(32), gaps & LOW32
    a = np.uint64(mean)
    gap = a * high + (a >> np.uint64(32)) * low + ((a & LOW32) * low >> np.uint64(32))
    return np.cumsum(gap, dtype=np.uint64) >> np.uint64(16)
