# SPDX-License-Identifier: Apache-2.0
"""Coltrain from Python: serve neural networks on a device and train them in its idle cycles.

    import coltrain

    with coltrain.open("emu:") as device:
        c = device.matmul(a, b)
"""

from ._abi import VERSION as __version__
from ._abi import Batching, ErrorCode, EventKind, LogLevel, Met, Policy, Queue, Sharing
from ._lib import lib, text_of
from .errors import (
    AbiError,
    ArgumentError,
    BusyError,
    CancelledError,
    ClosedError,
    DeviceError,
    Error,
    FileError,
    FormatError,
    FullError,
    InternalError,
    JobError,
    NoSpaceError,
    NotFoundError,
    OutOfMemoryError,
    PermissionDeniedError,
    TimeoutError,
    UnsupportedError,
)


def library_version() -> str:
    """The version of the C library that runs, such as "0.1.0"."""
    return text_of(lib.ct_version()) or ""


__all__ = [
    "AbiError",
    "ArgumentError",
    "Batching",
    "BusyError",
    "CancelledError",
    "ClosedError",
    "DeviceError",
    "Error",
    "ErrorCode",
    "EventKind",
    "FileError",
    "FormatError",
    "FullError",
    "InternalError",
    "JobError",
    "LogLevel",
    "Met",
    "NoSpaceError",
    "NotFoundError",
    "OutOfMemoryError",
    "PermissionDeniedError",
    "Policy",
    "Queue",
    "Sharing",
    "TimeoutError",
    "UnsupportedError",
    "__version__",
    "library_version",
]
