# SPDX-License-Identifier: Apache-2.0
"""For own programs: device memory, the packed format of matrices, programs and their text."""

from __future__ import annotations

import ctypes
from types import TracebackType
from typing import Any, SupportsIndex

import numpy as np

from ._abi import CT_LINE_FN, Rounding, Sharing
from ._arrays import F32, I8, Array, Bytes, address, floats, octets, output, small
from ._connection import Connection, Handle
from ._lib import check, lib
from ._numbers import U63, member, whole
from .errors import ArgumentError, ClosedError


class Buffer:
    """Device memory for own programs; ``with`` frees it at its end. Not ordered with jobs that run: wait for them first."""

    def __init__(self, connection: Connection, where: int, size: int) -> None:
        self._connection = connection
        self._where: int | None = where
        self.size = size
        """In bytes."""

    @property
    def address(self) -> int:
        """Byte offset in device memory; arguments of jobs want it in units of 16 bytes."""
        if self._where is None:
            raise ClosedError("this Buffer was closed before")
        return self._where

    def _range(self, offset: int, size: int) -> int:
        if offset + size > self.size:
            raise ArgumentError(f"{size} bytes from byte {offset} on are not within a buffer of {self.size} bytes")
        return self.address + offset

    def write(self, data: Array | bytes | bytearray | memoryview, offset: SupportsIndex = 0) -> None:
        """Copies bytes, or an array's bytes, to the buffer from byte number offset on."""
        source = octets(data, "data")
        where = self._range(whole(offset, "offset", U63), source.size)
        self._connection.call(lib.ct_mem_write, self._connection._raw, where, address(source), source.size)

    def read(self, size: SupportsIndex | None = None, offset: SupportsIndex = 0) -> Bytes:
        """A copy of size bytes (None: all there are) from byte number offset on, as uint8; ``.view()`` gives other types."""
        begin = whole(offset, "offset", U63)
        count = max(0, self.size - begin) if size is None else whole(size, "size", U63)
        where = self._range(begin, count)
        result = np.empty(count, dtype=np.uint8)
        self._connection.call(lib.ct_mem_read, self._connection._raw, where, address(result), count)
        return result

    def close(self) -> None:
        """Gives the memory back; no job may use it any more. With the device it goes anyway."""
        where, self._where = self._where, None
        if where is not None and not self._connection._closed:
            self._connection.call(lib.ct_mem_free, self._connection._raw, where)

    def __reduce__(self) -> Any:
        raise TypeError("a Buffer cannot be copied or pickled: it is the device's")

    def __enter__(self) -> Buffer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __del__(self) -> None:
        where = getattr(self, "_where", None)
        if where is not None:
            self._connection.give_back(self._free, where, wait=False)

    def _free(self, where: int) -> None:
        """Gives the memory back unless the device has gone, and with it its memory."""
        if not self._connection._closed:
            lib.ct_mem_free(self._connection._raw, where)


class Program(Handle):
    """A program in device memory (docs/programming.md). Closing it cancels jobs of it that are under way."""

    _free = lib.ct_program_free

    def __init__(self, connection: Connection, commands: Array | bytes) -> None:
        data = _commands(commands)
        raw = ctypes.c_void_p()
        connection.call(lib.ct_program_load, connection._raw, address(data), data.size // 32, ctypes.byref(raw))
        super().__init__(connection, raw.value or 0)


def _commands(commands: Array | bytes) -> Bytes:
    data = octets(commands, "commands")
    if data.size % 32:
        raise ArgumentError(f"commands has {data.size} bytes, but a command is 32 bytes")
    return data


def disassemble(commands: Array | bytes) -> list[str]:
    """A program as text, illegal commands too: a line for each of up to 512 commands of 32 bytes, its number in front."""
    data = _commands(commands)
    lines: list[str] = []
    callback = CT_LINE_FN(lambda _, text: lines.append(text.decode()))
    check(lib.ct_disassemble(address(data), data.size // 32, callback, None))
    return lines


def pack(x: Array, sharing: Sharing | str = Sharing.ROW, *, transpose: bool = False) -> Bytes:
    """A matrix as HBFP8, as it lies in device memory: records of 272 bytes, one for a tile of 16 x 16.

    x: rows x cols, FP32; quantised to nearest even. sharing: ROW, an exponent for each block of 16 along a row, or SQUARE, one for a
    tile. transpose: packs the transpose of x.
    """
    source = floats(x, "x", ("rows", "cols"))
    rows, cols = source.shape[::-1] if transpose else source.shape
    result = np.empty(lib.ct_pack_size(rows, cols), dtype=np.uint8)
    function = lib.ct_pack_transposed if transpose else lib.ct_pack
    check(function(address(source), rows, cols, source.shape[1], member(sharing, Sharing, "sharing"), address(result)))
    return result


def _packed(packed: Array | bytes, rows: SupportsIndex, cols: SupportsIndex) -> tuple[Bytes, int, int]:
    source = octets(packed, "packed")
    m, n = whole(rows, "rows"), whole(cols, "cols")
    if source.size != lib.ct_pack_size(m, n):
        raise ArgumentError(f"packed has {source.size} bytes, which a matrix of {m} x {n} has not")
    return source, m, n


def unpack(packed: Array | bytes, rows: SupportsIndex, cols: SupportsIndex, *, out: F32 | None = None) -> F32:
    """The values of a packed matrix, rows x cols, as FP32."""
    source, m, n = _packed(packed, rows, cols)
    result = output(out, "out", (m, n))
    check(lib.ct_unpack(address(source), m, n, n, address(result)))
    return result


_MX = 32  # elements under one scale


def pack_mxint8(elements: Array, scales: Array) -> Bytes:
    """A matrix of MXINT8 as HBFP8, as :func:`pack` makes it with ``Sharing.ROW``, and no bit changed.

    elements: rows x cols, int8, numbers of -127..127 in 64ths. scales: rows x ceil(cols / 32), uint8, each 2**(scale - 127). The
    element -128 is refused, and so are the scale 255, which is NaN, and the scale 0 of a block that is not zero.
    """
    m = small(elements, "elements", ("rows", "cols"), np.int8)
    rows, cols = m.shape
    x = small(scales, "scales", (rows, -(-cols // _MX)), np.uint8)
    result = np.empty(lib.ct_pack_size(rows, cols), dtype=np.uint8)
    check(lib.ct_pack_mxint8(address(m), address(x), rows, cols, address(result)))
    return result


def unpack_mxint8(
    packed: Array | bytes, rows: SupportsIndex, cols: SupportsIndex, rounding: Rounding | str = Rounding.EXACT
) -> tuple[I8, Bytes]:
    """The elements and scales of a packed matrix as MXINT8.

    A block of 32 is two of HBFP8, each with an exponent of its own. Where no scale holds both exactly, ``Rounding.EXACT`` refuses and
    names the block, and ``Rounding.NEAREST`` takes the larger exponent and rounds the other half to nearest even.
    """
    source, m, n = _packed(packed, rows, cols)
    elements, scales = np.empty((m, n), dtype=np.int8), np.empty((m, -(-n // _MX)), dtype=np.uint8)
    check(lib.ct_unpack_mxint8(address(source), m, n, member(rounding, Rounding, "rounding"), address(elements), address(scales)))
    return elements, scales


def pack_row(x: Array) -> Bytes:
    """The input of a request, one row vector, as HBFP8: groups of up to 16 blocks, each group 16 exponents and then its blocks."""
    source = floats(x, "x", ("n",))
    result = np.empty(lib.ct_pack_row_size(source.size), dtype=np.uint8)
    check(lib.ct_pack_row(address(source), source.size, address(result)))
    return result
