# SPDX-License-Identifier: Apache-2.0
"""Devices: open one, multiply, and make models, buffers and programs on it."""

from __future__ import annotations

import atexit
import ctypes
import enum
import logging
import os
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from types import TracebackType
from typing import Any, SupportsIndex

import numpy as np

from . import _abi
from ._abi import LogLevel, Masks, Policy, Queue
from ._arrays import F32, Array, address, floats, output
from ._connection import Connection, milliseconds, raw_of
from ._lib import check, lib, text_of, value_of
from ._numbers import U64, path_of, whole
from .array import Array as Trainings
from .compiled import Compiled
from .errors import ArgumentError
from .events import Future, cycle_of, queue_of
from .graph import Graph
from .model import Model
from .network import Network
from .program import Buffer, Program

log = logging.getLogger("coltrain")
log.addHandler(logging.NullHandler())

_LEVELS = {
    LogLevel.ERROR: logging.ERROR,
    LogLevel.WARNING: logging.WARNING,
    LogLevel.INFO: logging.INFO,
    LogLevel.DEBUG: logging.DEBUG,
}
_open_devices: weakref.WeakSet[Device] = weakref.WeakSet()


class Feature(enum.IntFlag):
    """What a device can do."""

    HBFP8 = _abi.CT_FEATURE_HBFP8
    TRAINING = _abi.CT_FEATURE_TRAINING
    FUNCTIONS = _abi.CT_FEATURE_FUNCTIONS
    PARITY = _abi.CT_FEATURE_PARITY
    REQUESTS = _abi.CT_FEATURE_REQUESTS
    CONVOLUTION = _abi.CT_FEATURE_CONVOLUTION
    COMPRESSION = _abi.CT_FEATURE_COMPRESSION


@dataclass(frozen=True, slots=True)
class Info:
    """What a device is."""

    uri: str
    """As it was opened."""
    abi: int
    """Version of registers, commands and descriptors."""
    array_rows: int
    array_cols: int
    vpu_lanes: int
    block: int
    """Elements that share an exponent: 16."""
    macs_per_cycle: int
    """Multiply-accumulates of the array in a cycle."""
    spm_words: int
    """Scratchpad words of 16 mantissas and an exponent."""
    spm_bytes: int
    """Of the scratchpad's mantissas alone."""
    dram_bytes: int
    """Device memory that can be used."""
    clock_hz: int
    features: Feature
    has_clock: bool
    """False: there are no cycles, they are None."""
    has_schedule: bool
    """Things given with a cycle reach the device in that cycle, not at once."""
    memory: str
    """What its memory is; "" if that is not known."""


@dataclass(slots=True)
class Timing:
    """What a timed call took, on the device alone; given to :meth:`Device.matmul`, which fills it in."""

    cycles: int | None = None
    """Doorbell to completion; None on a device without a clock."""
    macs: int = 0
    """Useful multiply-accumulates."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A device that could be opened, or a kind of device and why not."""

    uri: str
    text: str
    """What it is, or what to do."""
    error: _abi.ErrorCode
    """OK, or what :func:`coltrain.open` would fail with."""


@dataclass(frozen=True)
class Register:
    """A register of a device, or a counter, as it was read."""

    name: str
    """"CTRL", "CTX1.STATUS", "CTX0.CNT.JOBS"."""
    offset: int
    """In bytes."""
    value: int
    text: str
    """What it is."""
    fields: dict[str, int | str]
    """By name: what the value is called, such as "running", or the number."""


class Device(Connection):
    """An open device; :func:`coltrain.open` gives one. ``with`` closes it at its end.

    Threads may share it: calls are made one at a time, and other Python threads run while one blocks. Every method can raise
    :class:`ArgumentError`, :class:`ClosedError` and :class:`DeviceError`; what else it raises, it says.
    """

    def __init__(self, uri: str, raw: int, callback: Any) -> None:
        super().__init__(uri, raw)
        self._callback = callback  # the library calls it until the last handle is freed
        self._information: Info | None = None
        self._timeout: float | None = None
        _open_devices.add(self)

    def __repr__(self) -> str:
        return f'<coltrain.Device "{self.uri}"{", closed" if self._closed else ""}>'

    def __enter__(self) -> Device:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __del__(self) -> None:
        if not getattr(self, "_closed", True):
            self.close()

    @property
    def closed(self) -> bool:
        """Whether :meth:`close` was called."""
        return self._closed

    @property
    def info(self) -> Info:
        """What the device is."""
        if self._information is None:
            raw = _abi.ct_info()
            self.call(lib.ct_info, self._raw, ctypes.byref(raw))
            values = {field.name: getattr(raw, field.name) for field in fields(Info)}
            values.update(uri=raw.uri.decode(), features=Feature(raw.features))
            self._information = Info(**values)
        return self._information

    # ---- Products ----

    def matmul(
        self,
        a: Array,
        b: Array,
        *,
        queue: Queue | str = Queue.INFERENCE,
        out: F32 | None = None,
        timing: Timing | None = None,
    ) -> F32:
        """The product of two matrices, m x k and k x n, as FP32 of m x n; each dimension 1 to 2**24.

        Both are quantised to HBFP8 along k with an exponent for each block of 16, rounding to nearest even; sums are FP32 in a fixed
        order, so the bits do not depend on the device. Blocks, for :attr:`timeout` at most. out: where the result goes. timing: is
        filled in. Raises :class:`NoSpaceError` when the operands do not fit the device's memory, :class:`TimeoutError`,
        :class:`JobError`, :class:`OutOfMemoryError`.
        """
        left = floats(a, "a", ("m", "k"))
        right = floats(b, "b", (left.shape[1], "n"))
        m, k, n = left.shape[0], left.shape[1], right.shape[1]
        result = output(out, "out", (m, n))
        if np.may_share_memory(result, left) or np.may_share_memory(result, right):
            raise ArgumentError("out lies on a or b: the result needs a place of its own")
        took = _abi.ct_timing()
        operands = (address(left), address(right), address(result))
        self.call(lib.ct_matmul, self._raw, queue_of(queue), m, n, k, *operands, ctypes.byref(took))
        if timing is not None:
            timing.cycles, timing.macs = cycle_of(took.cycles), took.macs
        return result

    # ---- Models ----

    def model(self, widths: Sequence[SupportsIndex], seed: SupportsIndex = 1) -> Model:
        """A new multilayer perceptron: ReLU between its layers, softmax cross-entropy as its loss.

        widths: inputs, hidden layers, classes; 2 to 17 of them, each 1 to 65536. Weights are drawn from the seed, the same bits on
        every host. Raises :class:`NoSpaceError`, :class:`OutOfMemoryError`.
        """
        raw = ctypes.c_void_p()
        try:
            values = [whole(width, "a width") for width in widths]
        except TypeError:
            raise ArgumentError(f"widths is {widths!r}, but a list is needed: inputs, hidden layers, classes") from None
        array = (ctypes.c_uint32 * len(values))(*values)
        layers = max(0, len(values) - 1)
        self.call(lib.ct_model_create, self._raw, array, layers, whole(seed, "seed", U64), ctypes.byref(raw))
        return Model(self, raw.value or 0)

    def load_model(self, path: str | os.PathLike[str]) -> Model:
        """A model from a file that :meth:`Model.save` or ``coltrain train --save`` wrote, with the same bits.

        :meth:`Model.training` comes before its next step. Raises :class:`NotFoundError`, :class:`PermissionDeniedError`,
        :class:`FileError`, :class:`FormatError` (foreign, of another version, cut short, damaged), :class:`NoSpaceError`.
        """
        raw = ctypes.c_void_p()
        self.call(lib.ct_model_load, self._raw, path_of(path), ctypes.byref(raw))
        return Model(self, raw.value or 0)

    def compile(
        self,
        network: Network | Graph,
        *,
        mantissa: SupportsIndex = 8,
        expect: bool = False,
        seed: SupportsIndex = 0,
        kernels: bool = False,
        members: SupportsIndex = 1,
        shared: bool = False,
        error: float = 0.0,
        bits: SupportsIndex = 0,
        refresh: SupportsIndex = 0,
        masks: Masks | bool | None = None,
        weights_of: Compiled | None = None,
    ) -> Compiled:
        """Puts a network, or a graph alone (its weights are zeros then), on the device.

        mantissa: bits of the mantissas of HBFP, 2 to 8. expect: compute what each stage should take. seed: of dropout. kernels: a perceptron by kernels, too: slower, but
        its steps round by rows. members: networks of this graph that it is (:meth:`Compiled.select`), up to 256; shared: inputs and labels are those of all. error, bits, refresh: of activations that are kept compressed (docs/compression.md): how much
        of the momentum their error may be (0: nothing is lost), for how many bits of a number there are pages (0: as many as that error is likely to take, 12 if nothing is lost, which always suffice), steps between looks at
        the gradients (0: 50); masks: whether a bit a number says what ReLUs let through beside it (:class:`Masks`; True: of all results, None: with an error above 0 of those that are kept themselves, without which answers become worse). weights_of: one in whose memory its weights are, too, such as the steps of a
        perceptron that answers: it sees each step at once (docs/graph.md). Raises :class:`UnsupportedError`, which names the nodes that the device cannot run, or what lies elsewhere
        in the other network, and :class:`NoSpaceError`.
        """
        return Compiled(self, network, mantissa, expect, seed, kernels, members, shared, error, bits, refresh, masks, weights_of)

    def load_network(
        self,
        path: str | os.PathLike[str],
        *,
        mantissa: SupportsIndex = 0,
        expect: bool = False,
        error: float = 0.0,
        bits: SupportsIndex = 0,
        refresh: SupportsIndex = 0,
        masks: Masks | bool | None = None,
    ) -> Compiled:
        """A network from a file that :meth:`Compiled.save` or ``coltrain train --save`` wrote, with the same bits; from :meth:`Model.save`, too.

        mantissa: 0: that which it had. error, bits, refresh, masks: as in :meth:`compile`; 0, or None: as the file says, which alone may be said again, but
        for bits. Files of older releases do not say: then bounds begin anew. Raises :class:`NotFoundError`, :class:`PermissionDeniedError`, :class:`FileError`,
        :class:`FormatError`, and as :meth:`compile`.
        """
        return Compiled.load(self, path, mantissa, expect, error, bits, refresh, masks)

    def array(self, *, ahead: SupportsIndex = 0, look: SupportsIndex = 0, apart: bool = False, both: bool = False) -> Trainings:
        """An array of networks that are trained together, without members at first.

        ahead: runs of a member that are under way at once, 1 to 8 (0: 2). look: runs of a member between two looks at its weights
        (0: 100). apart: each run has jobs of its own. both: runs are in the inference queue, too, so that members fill each other's
        gaps, and requests wait for whole runs.
        """
        return Trainings(self, ahead, look, apart, both)

    # ---- Asynchronous work ----

    @property
    def timeout(self) -> float | None:
        """Seconds that calls which block wait for their job; None: without limit. When they are over the job is cancelled and the
        call raises :class:`TimeoutError`. Other waits have a timeout of their own, which leaves the work alone.
        """
        return self._timeout

    @timeout.setter
    def timeout(self, seconds: float | None) -> None:
        self.call(lib.ct_set_timeout, self._raw, milliseconds(seconds))
        self._timeout = seconds

    def outstanding(self, queue: Queue | str) -> int:
        """What was submitted to a queue and not reaped; a request counts for INFERENCE, a step is one."""
        return self.call(lib.ct_outstanding, self._raw, queue_of(queue))

    def reset(self, queue: Queue | str) -> None:
        """Ends all that the device has heard of in a queue, even what a cancel does not end; each still has its event.

        Blocks until the queue is at rest. Models, servers and the other queue go on.
        """
        self.call(lib.ct_reset, self._raw, queue_of(queue))

    # ---- Expert calls ----

    def buffer(self, size: SupportsIndex) -> Buffer:
        """size bytes of device memory for own programs, aligned to 256; contents are undefined. Raises :class:`NoSpaceError`."""
        where, wanted = ctypes.c_uint64(), whole(size, "size", U64)
        self.call(lib.ct_mem_alloc, self._raw, wanted, ctypes.byref(where))
        return Buffer(self, where.value, wanted)

    def program(self, commands: Array | bytes) -> Program:
        """Copies a program (1 to 512 commands of 32 bytes) into device memory. Raises :class:`NoSpaceError`."""
        return Program(self, commands)

    def submit(
        self,
        program: Program,
        args: Sequence[SupportsIndex] = (),
        *,
        queue: Queue | str = Queue.INFERENCE,
        version: SupportsIndex = 0,
        watchdog: SupportsIndex = 0,
        overlap: bool = False,
        cycle: SupportsIndex | None = None,
        user: Any = None,
    ) -> Future:
        """Submits a job of one's own and returns at once.

        args: registers r1 to r24, addresses in units of 16 bytes. version: comes back in the event. watchdog: cycles that it may run,
        0 for no limit. overlap: it reads nothing that the job before it writes, so it may start while that stores. cycle: the device
        hears of it then. user: comes back in the event. Raises :class:`FullError`: reap, then submit again.
        """
        if len(args) > _abi.CT_MAX_ARGS:
            raise ArgumentError(f"{len(args)} arguments, but a job has at most {_abi.CT_MAX_ARGS}")
        job = _abi.ct_job(program=raw_of(program, Program, "program", self), flags=_abi.CT_JOB_OVERLAP if overlap else 0)
        job.version, job.watchdog = whole(version, "version"), whole(watchdog, "watchdog")
        job.args[: len(args)] = [whole(value, f"argument r{number}") for number, value in enumerate(args, 1)]
        what = (self._raw, queue_of(queue), ctypes.byref(job))
        if cycle is None:
            return self._submit(lib.ct_submit, *what, user=user, keep=(program,))
        return self._submit(lib.ct_submit_at, *what, whole(cycle, "cycle", U64), user=user, keep=(program,))

    def now(self) -> int | None:
        """The cycle that the device's clock shows; None without a clock."""
        cycle = ctypes.c_uint64()
        self.call(lib.ct_now, self._raw, ctypes.byref(cycle))
        return cycle_of(cycle.value)

    def set_policy(self, policy: Policy | str) -> None:
        """Who goes first where both queues want a unit: a :class:`Policy` or its name, such as "priority" (the first) or "fcfs".

        Takes effect at the next grant and changes no result. Raises :class:`UnsupportedError`: SLACK on a device without REQUESTS.
        """
        self.call(lib.ct_set_policy, self._raw, policy_of(policy))

    def counters(self, queue: Queue | str) -> dict[str, int]:
        """The counters of a queue by name; :func:`coltrain.counter_texts` says what they count."""
        values = (ctypes.c_uint64 * _abi.CT_MAX_COUNTERS)()
        count = self.call(lib.ct_counters, self._raw, queue_of(queue), values, len(values))
        names = (text_of(lib.ct_counter_name(index)) for index in range(min(count, len(values))))
        return {name: values[index] for index, name in enumerate(names) if name}


def open(uri: str = "sim:") -> Device:
    """Opens a device and resets it.

    uri: ``emu:`` is the bit-exact model without time, ``sim:`` the simulated hardware, ``mmio:FILE`` a core in the address space,
    ``usb:`` or ``serial:FILE`` a board; docs/devices.md lists their options, such as ``sim:core=16x8,latency=60``. Several may be open at once. What
    the library logs goes to the logger "coltrain", from the level on that it has now. Raises :class:`ArgumentError`,
    :class:`NotFoundError`, :class:`PermissionDeniedError`, :class:`BusyError`, :class:`AbiError`, :class:`DeviceError`.
    """
    raw = ctypes.c_void_p()
    options = _abi.ct_options(log=_abi.CT_LOG_FN(_write_log), log_level=_log_level())
    if not isinstance(uri, str):
        raise ArgumentError(f'a device is named by a text such as "sim:", not by {uri!r}')
    if "\0" in uri:
        raise ArgumentError("a device's name has no zero byte")
    check(lib.ct_open_with(uri.encode(), ctypes.byref(options), ctypes.byref(raw)))
    return Device(uri, raw.value or 0, options.log)


def _write_log(_argument: int | None, level: int, text: bytes) -> None:
    log.log(_LEVELS.get(LogLevel(level), logging.DEBUG), "%s", text.decode("utf-8", "replace"))


def _log_level() -> LogLevel:
    """The most talkative level that the logger lets through."""
    return max((level for level, python in _LEVELS.items() if log.isEnabledFor(python)), default=LogLevel.ERROR)


def _forget_all() -> None:
    for device in list(_open_devices):
        device._forget()


os.register_at_fork(after_in_child=_forget_all)


@atexit.register
def _close_all() -> None:
    """At the end of the program, while there are still threads and loggers."""
    for device in list(_open_devices):
        device.close()


def devices() -> list[Entry]:
    """What :func:`open` knows: kinds of devices, and why there is none of a kind. Nothing is opened."""
    return _entries(lib.ct_list)


def scan() -> list[Entry]:
    """The devices that this machine has, by the names that open them alone, and why one cannot be opened now. None is reset."""
    return _entries(lib.ct_scan)


def registers(uri: str) -> list[Register]:
    """Registers and counters of a device that is reset by nobody, so that what hangs can be looked at.

    Raises what :func:`open` would.
    """
    found, count = ctypes.POINTER(_abi.ct_register)(), ctypes.c_size_t()
    check(lib.ct_registers(uri.encode(), None, ctypes.byref(found), ctypes.byref(count)))
    listed: list[Register] = []
    try:
        for r in found[: count.value]:
            if r.field:
                listed[-1].fields[ctypes.string_at(r.field).decode()] = r.called.decode() or r.value
            else:
                listed.append(Register(r.name.decode(), r.offset, r.value, ctypes.string_at(r.text).decode(), {}))
    finally:
        lib.ct_registers_free(found)
    return listed


def _entries(call: Callable[..., int]) -> list[Entry]:
    entries, count = ctypes.POINTER(_abi.ct_entry)(), ctypes.c_size_t()
    check(call(ctypes.byref(entries), ctypes.byref(count)))
    try:
        return [Entry(e.uri.decode(), e.text.decode(), _abi.ErrorCode(e.error)) for e in entries[: count.value]]
    finally:
        lib.ct_list_free(entries)


def counter_texts() -> dict[str, str]:
    """The names of the counters of a queue, and what each counts."""
    named = ((text_of(lib.ct_counter_name(i)), text_of(lib.ct_counter_text(i))) for i in range(_abi.CT_MAX_COUNTERS))
    return {name: text or "" for name, text in named if name}


def policy_name(policy: Policy) -> str:
    """The name that commands and results use, such as "round-robin"."""
    return text_of(lib.ct_policy_name(policy)) or str(policy)


def policy_of(policy: Policy | str) -> Policy:
    """A policy, also by the name that commands and results use."""
    return policy if isinstance(policy, Policy) else Policy(value_of(lib.ct_policy_by_name, policy))
