# SPDX-License-Identifier: Apache-2.0
"""Whole numbers on their way into the library: C would cut off what does not fit its types."""

from __future__ import annotations

import operator
from typing import SupportsIndex

from .errors import ArgumentError

U32 = 2**32 - 1
U63 = 2**63 - 1
U64 = 2**64 - 1


def whole(value: SupportsIndex, name: str, most: int = U32) -> int:
    """An integer, also one of NumPy, from 0 to most."""
    try:
        number = operator.index(value)
    except TypeError:
        raise ArgumentError(f"{name} is {value!r}, which is no whole number") from None
    if not 0 <= number <= most:
        raise ArgumentError(f"{name} is {number}, but 0 to {most} is possible")
    return number
