# SPDX-License-Identifier: Apache-2.0
"""Arrival times of requests, by the commands' own code (host/tools, ct_arrivals.h): the same list for the same seed everywhere."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from ._arrays import address
from ._numbers import U32, U63, U64, whole
from .data import tools_library
from .errors import ArgumentError


def mean_q16(busy: int, done: int, permille: int) -> int:
    """The mean gap in 1/65536 of a cycle at permille/1000 of a capacity of `done` requests in `busy` cycles."""
    numbers = (whole(busy, "busy", U64), whole(done, "done", U64), whole(permille, "permille", U32))
    mean = int(tools_library().ct_arrivals_mean_q16(*numbers))
    if not mean:
        raise ArgumentError(f"{permille} thousandths of {done} requests in {busy} cycles is no load, or less than one in 2^32 cycles")
    return mean


def poisson(seed: int, mean: int, count: int) -> NDArray[np.uint64]:
    """The cycles of `count` independent arrivals, never decreasing; `mean` as of mean_q16()."""
    cycles = np.empty(whole(count, "count", U63), dtype=np.uint64)
    code = tools_library().ct_arrivals_poisson(whole(seed, "seed", U64), whole(mean, "mean", U64), address(cycles), cycles.size)
    if code:
        raise ArgumentError(f"{count} arrivals with a mean gap of {mean}/65536 cycles are not within 2^48 cycles")
    return cycles
