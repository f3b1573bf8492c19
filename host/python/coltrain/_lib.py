# SPDX-License-Identifier: Apache-2.0
"""Finds and loads libcoltrain, and turns what its functions return into values or exceptions.

The library is, in this order: $COLTRAIN_LIBRARY, the one that was installed with the package, the one that `make` has built in the
tree that the package lies in, the system's.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from . import _abi
from .errors import AbiError, ArgumentError, NotFoundError, error_of

HERE = Path(__file__).resolve().parent


def candidates(name: str) -> Iterator[str]:
    """Where a shared library of this project may lie: the files that are there, then its name alone, for the system to find."""
    given = os.environ.get("COLTRAIN_LIBRARY", "")
    if given:
        yield given if name == "libcoltrain.so" else str(Path(given).with_name(name))
        return
    tree = HERE.parents[2]
    build = tree / os.environ.get("BUILD", "build")
    for file in (HERE / "lib" / name, build / "lib" / name, tree / "build" / "lib" / name):
        if file.exists():
            yield str(file)
    yield name + ".0"


def load(name: str) -> ctypes.CDLL:
    """The library of that name."""
    reasons = []
    for file in candidates(name):
        try:
            return ctypes.CDLL(file)
        except OSError as reason:
            reasons.append(str(reason))
    raise NotFoundError(
        f"{name} is not there ({'; '.join(reasons)}): run `make` in Coltrain's tree, or set COLTRAIN_LIBRARY to the file libcoltrain.so"
    )


def _open() -> _abi.Library:
    library = load("libcoltrain.so")
    library.ct_version.restype = ctypes.c_char_p
    found = library.ct_version().decode()
    # Before 1.0, minor versions may differ in anything (CONTRIBUTING.md).
    if found.split(".")[:2] != _abi.VERSION.split(".")[:2]:
        raise AbiError(f"libcoltrain is version {found}, but this package is made for {_abi.VERSION}: install the two that belong together")
    try:
        return _abi.Library(library)
    except AttributeError as missing:
        raise AbiError(f"libcoltrain is older than this package ({missing}): build both from the same tree") from None


lib = _open()


def sentence(device: int | None, code: int) -> str:
    """What the library says of the last call that failed on a device, or of this thread's without one."""
    text = lib.ct_last_error(device) or lib.ct_strerror(code) or b""
    return text.decode("utf-8", "replace")


def check(code: int, device: int | None = None) -> int:
    """Returns what a function returned, or raises its error."""
    if code < 0:
        raise error_of(code, sentence(device, code))
    return code


def value_of(function: Callable[..., int], name: str) -> int:
    """The value that a function such as ct_policy_by_name() has for a name, or its error."""
    value = ctypes.c_int()
    if not isinstance(name, str):
        raise ArgumentError(f"{name!r} is no name")
    check(function(name.encode(), ctypes.byref(value)))
    return value.value


def text_of(value: bytes | None) -> str | None:
    """A text of the library; None where it has none."""
    return None if value is None else value.decode("utf-8", "replace")
