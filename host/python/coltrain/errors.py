# SPDX-License-Identifier: Apache-2.0
"""What calls raise when the library refuses: one class for each of its error codes, with its sentence."""

from __future__ import annotations

import builtins
from typing import TYPE_CHECKING, ClassVar

from ._abi import ErrorCode

if TYPE_CHECKING:
    from .events import Event


class Error(Exception):
    """A call that failed. ``str(error)`` is the library's sentence, ``error.code`` its :class:`ErrorCode`.

    A call that was refused has changed nothing: the device can be used as before.
    """

    code: ErrorCode = ErrorCode.INTERNAL
    event: Event | None = None
    """Of work that failed, where it is known."""


class ArgumentError(Error, ValueError):
    """An argument makes no sense; the sentence says which."""

    code = ErrorCode.ARG


class OutOfMemoryError(Error, MemoryError):
    """The host has no memory left."""

    code = ErrorCode.MEMORY


class DeviceError(Error):
    """The device does not answer as a device should."""

    code = ErrorCode.DEVICE


class NotFoundError(Error, LookupError):
    """No such device, transport, file or submitted work."""

    code = ErrorCode.NOT_FOUND


class PermissionDeniedError(Error):
    """It is there, but access is denied."""

    code = ErrorCode.PERMISSION


class FileError(Error):
    """Reading or writing a file failed."""

    code = ErrorCode.IO


class AbiError(Error):
    """The device, plug-in or library speaks another version of an interface."""

    code = ErrorCode.ABI


class TimeoutError(Error, builtins.TimeoutError):
    """Nothing happened in the given time."""

    code = ErrorCode.TIMEOUT


class FullError(Error):
    """The queue is full: reap, then submit again."""

    code = ErrorCode.FULL


class NoSpaceError(Error):
    """Device memory or scratchpad is too small."""

    code = ErrorCode.NO_SPACE


class UnsupportedError(Error):
    """This device, or this version, cannot do that."""

    code = ErrorCode.UNSUPPORTED


class JobError(Error):
    """The device ended the job with an error."""

    code = ErrorCode.JOB


class CancelledError(Error):
    """The job was cancelled."""

    code = ErrorCode.CANCELLED


class FormatError(Error, ValueError):
    """A file is not what it should be."""

    code = ErrorCode.FORMAT


class InternalError(Error):
    """A defect of the library: please report it."""

    code = ErrorCode.INTERNAL


class ClosedError(Error):
    """The device was closed, or the handle freed, before."""

    code = ErrorCode.CLOSED


class BusyError(Error):
    """In use: a device that is open elsewhere, a handle that is in flight."""

    code = ErrorCode.BUSY


class _Classes:
    """The class of each code."""

    of: ClassVar[dict[int, type[Error]]] = {kind.code: kind for kind in Error.__subclasses__()}


def error_of(code: int, sentence: str) -> Error:
    """The exception for an error code; codes of a newer library are plain :class:`Error`."""
    return _Classes.of.get(code, Error)(sentence)
