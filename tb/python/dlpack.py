# SPDX-License-Identifier: Apache-2.0
"""A tensor of a library that is not NumPy: it gives its memory out by DLPack alone, in whatever type and order, and counts."""

from __future__ import annotations

import ctypes
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

INT, UINT, FLOAT, BFLOAT, BOOL = 0, 1, 2, 4, 6  # DLPack's numbers of kinds of types
CPU, CUDA = 1, 2


class DLDevice(ctypes.Structure):
    _fields_ = [("type", ctypes.c_int32), ("id", ctypes.c_int32)]


class DLTensor(ctypes.Structure):
    _fields_ = [
        ("data", ctypes.c_void_p),
        ("device", DLDevice),
        ("ndim", ctypes.c_int32),
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    ]


class DLManagedTensor(ctypes.Structure):
    pass


DELETER = ctypes.CFUNCTYPE(None, ctypes.POINTER(DLManagedTensor))
DLManagedTensor._fields_ = [("tensor", DLTensor), ("context", ctypes.c_void_p), ("deleter", DELETER)]

capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)(("PyCapsule_New", ctypes.pythonapi))


class Tensor:
    """memory: an array of NumPy whose bytes, shape and strides are taken; code, bits: what its elements are said to be."""

    lent: ClassVar[dict[int, list[Any]]] = {}
    """By address: what must live until whoever reads has deleted it. What nobody reads stays: a destructor in Python cannot run amid
    an exception."""

    def __init__(
        self, memory: npt.NDArray[Any], code: int | None = None, bits: int = 0, device: int = CPU, offset: int = 0, refusal: str = ""
    ) -> None:
        self.memory, self.device, self.offset, self.refusal = memory, device, offset, refusal
        self.code = {"f": FLOAT, "i": INT, "u": UINT, "b": BOOL}[memory.dtype.kind] if code is None else code
        self.bits = bits or 8 * memory.itemsize
        self.reads = self.deletions = 0

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device, 0

    def __dlpack__(self, *args: object, **kwargs: object) -> object:
        if self.refusal:
            raise BufferError(self.refusal)
        self.reads += 1
        n = self.memory.ndim
        shape = (ctypes.c_int64 * n)(*self.memory.shape)
        strides = (ctypes.c_int64 * n)(*(s // self.memory.itemsize for s in self.memory.strides))
        m = DLManagedTensor()
        t = m.tensor
        t.data, t.byte_offset = self.memory.ctypes.data - self.offset, self.offset
        t.device.type, t.ndim, t.code, t.bits, t.lanes = self.device, n, self.code, self.bits, 1
        t.shape, t.strides = shape, strides

        def delete(what: Any) -> None:
            self.deletions += 1
            del Tensor.lent[ctypes.addressof(what.contents)]

        m.deleter = DELETER(delete)
        Tensor.lent[ctypes.addressof(m)] = [m, shape, strides, m.deleter, self.memory]
        return capsule(ctypes.addressof(m), b"dltensor", None)


def bfloat16(values: npt.NDArray[np.float32]) -> Tensor:
    """The upper halves of FP32, which NumPy has no type for."""
    return Tensor((values.view(np.uint32) >> 16).astype(np.uint16), BFLOAT, 16)
