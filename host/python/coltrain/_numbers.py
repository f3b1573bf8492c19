# SPDX-License-Identifier: Apache-2.0
"""Numbers and names on their way into the library: C would cut off what does not fit its types."""

from __future__ import annotations

import enum
import operator
import os
from typing import Any, SupportsIndex, TypeVar

from .errors import ArgumentError

M = TypeVar("M", bound=enum.Enum)

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


def path_of(path: str | bytes | os.PathLike[str], name: str = "path") -> bytes:
    """The name of a file. C would take what stands before a zero byte for all of it."""
    try:
        name_in_c = os.fsencode(path)
    except TypeError:
        raise ArgumentError(f"{name} is {path!r}, which is no path") from None
    if b"\0" in name_in_c:
        raise ArgumentError(f"{name} is {path!r}, but a path has no zero byte")
    return name_in_c


def real(value: Any, name: str) -> float:
    """A number, also one of NumPy."""
    if not isinstance(value, (str, bytes)):  # float() would read them
        try:
            return float(value)
        except (TypeError, ValueError, OverflowError):
            pass
    raise ArgumentError(f"{name} is {value!r}, which is no number")


def member(value: M | str, kind: type[M], name: str) -> M:
    """A member of an enumeration, also by its name in any case."""
    if isinstance(value, kind):
        return value
    found = kind.__members__.get(value.upper()) if isinstance(value, str) else next((m for m in kind if m.value == value), None)
    if found is None:
        names = ", ".join(f'"{m.lower()}"' for m in kind.__members__)
        raise ArgumentError(f"{name} is {value!r}, but a {kind.__name__} is needed, or its name: {names}")
    return found
