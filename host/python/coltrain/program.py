# SPDX-License-Identifier: Apache-2.0
"""For own programs: device memory, the packed format of matrices, programs and their text."""

from __future__ import annotations

import ctypes
from types import TracebackType

import numpy as np

from ._abi import Sharing
from ._arrays import F32, Array, Bytes, address, floats, octets, output
from ._connection import Connection, Handle
from ._lib import check, lib
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
        if offset < 0 or size < 0 or offset + size > self.size:
            raise ArgumentError(f"{size} bytes from byte {offset} on are not within a buffer of {self.size} bytes")
        return self.address + offset

    def write(self, data: Array | bytes | bytearray | memoryview, offset: int = 0) -> None:
        """Copies bytes, or an array's bytes, to the buffer from byte number offset on."""
        source = octets(data, "data")
        where = self._range(offset, source.size)
        self._connection.call(lib.ct_mem_write, self._connection._raw, where, address(source), source.size)

    def read(self, size: int | None = None, offset: int = 0) -> Bytes:
        """A copy of size bytes (None: all there are) from byte number offset on, as uint8; ``.view()`` gives other types."""
        count = self.size - offset if size is None else size
        where = self._range(offset, count)
        result = np.empty(count, dtype=np.uint8)
        self._connection.call(lib.ct_mem_read, self._connection._raw, where, address(result), count)
        return result

    def close(self) -> None:
        """Gives the memory back; no job may use it any more. With the device it goes anyway."""
        where, self._where = self._where, None
        if where is not None and not self._connection._closed:
            self._connection.call(lib.ct_mem_free, self._connection._raw, where)

    def __enter__(self) -> Buffer:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()


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


def pack(x: Array, sharing: Sharing = Sharing.ROW, *, transpose: bool = False) -> Bytes:
    """A matrix as HBFP8, as it lies in device memory: records of 272 bytes, one for a tile of 16 x 16.

    x: rows x cols, FP32; quantised to nearest even. sharing: ROW, an exponent for each block of 16 along a row, or SQUARE, one for a
    tile. transpose: packs the transpose of x.
    """
    source = floats(x, "x", ("rows", "cols"))
    rows, cols = source.shape[::-1] if transpose else source.shape
    result = np.empty(lib.ct_pack_size(rows, cols), dtype=np.uint8)
    function = lib.ct_pack_transposed if transpose else lib.ct_pack
    check(function(address(source), rows, cols, source.shape[1], sharing, address(result)))
    return result


def unpack(packed: Array | bytes, rows: int, cols: int, *, out: F32 | None = None) -> F32:
    """The values of a packed matrix, rows x cols, as FP32."""
    source = octets(packed, "packed")
    if rows < 1 or cols < 1 or source.size != lib.ct_pack_size(rows, cols):
        raise ArgumentError(f"packed has {source.size} bytes, which a matrix of {rows} x {cols} has not")
    result = output(out, "out", (rows, cols))
    check(lib.ct_unpack(address(source), rows, cols, cols, address(result)))
    return result


def pack_row(x: Array) -> Bytes:
    """The input of a request, one row vector, as HBFP8: groups of up to 16 blocks, each group 16 exponents and then its blocks."""
    source = floats(x, "x", ("n",))
    result = np.empty(lib.ct_pack_row_size(source.size), dtype=np.uint8)
    check(lib.ct_pack_row(address(source), source.size, address(result)))
    return result
