# SPDX-License-Identifier: Apache-2.0
"""Arrays on their way into and out of the library, without copies where none are needed.

What is FP32, in C order and in this machine's memory is used where it lies: NumPy arrays, and by DLPack tensors of PyTorch, JAX and
others. Anything else that NumPy can make an array of is converted.
"""

from __future__ import annotations

from typing import Any, Protocol, TypeAlias, runtime_checkable

import numpy as np
import numpy.typing as npt

from .errors import ArgumentError

F32: TypeAlias = npt.NDArray[np.float32]
U32: TypeAlias = npt.NDArray[np.uint32]
Bytes: TypeAlias = npt.NDArray[np.uint8]
I8: TypeAlias = npt.NDArray[np.int8]

_KINDS_OF_REAL = "fiub"
_KINDS_OF_INTEGER = "iu"
_CPU = (1, 3, 11)  # DLPack's numbers of memory that this processor reads: its own, and pinned for CUDA or ROCm


@runtime_checkable
class SupportsDLPack(Protocol):
    """An array of another library, such as a tensor of PyTorch or JAX."""

    def __dlpack__(self, *args: Any, **kwargs: Any) -> Any: ...

    def __dlpack_device__(self) -> tuple[Any, Any]: ...


Array: TypeAlias = npt.ArrayLike | SupportsDLPack


FLOATS = "give it as float32 on the CPU (in PyTorch: tensor.detach().float())"
INTEGERS = "give it as integers on the CPU (in PyTorch: tensor.long())"
OCTETS = "give its bytes as integers on the CPU (in PyTorch: tensor.detach().view(torch.uint8))"


def _array(x: Array, name: str, advice: str) -> npt.NDArray[Any]:
    """Any array as one of NumPy, on the same memory where that is possible."""
    if isinstance(x, np.ma.MaskedArray) and bool(np.any(x.mask)):
        raise ArgumentError(f"{name} has masked elements, which have no values: fill them first, as by x.filled(0)")
    if isinstance(x, np.ndarray):
        return x
    if isinstance(x, SupportsDLPack):
        return _by_dlpack(x, name, advice)
    try:
        return np.asarray(x)
    except ValueError as reason:
        raise ArgumentError(f"{name} is no array: {reason}") from reason


def _by_dlpack(x: SupportsDLPack, name: str, advice: str) -> npt.NDArray[Any]:
    # PyTorch notes that a tensor is negated and gives the memory out as it lies.
    resolve = getattr(x, "resolve_neg", None)
    try:
        x = resolve() if callable(resolve) else x
        where = int(x.__dlpack_device__()[0])
        if where in _CPU:
            return np.from_dlpack(x)
    except (BufferError, RuntimeError, TypeError, ValueError) as reason:
        raise ArgumentError(f"{name} cannot be read by DLPack ({str(reason).rstrip('.')}): {advice}") from reason
    raise ArgumentError(f"{name} lies on another device (DLPack's type {where}): copy it to the CPU first")


def _check_shape(a: npt.NDArray[Any], name: str, shape: tuple[int | str, ...]) -> None:
    """Numbers of a shape must be there; names may be any number."""
    fits = a.ndim == len(shape) and all(isinstance(want, str) or have == want for have, want in zip(a.shape, shape, strict=False))
    if not fits:
        want = ", ".join(map(str, shape)) + ("," if len(shape) == 1 else "")
        raise ArgumentError(f"{name} has the shape {a.shape}, but ({want}) is needed")


def floats(x: Array, name: str, shape: tuple[int | str, ...]) -> F32:
    """FP32 in C order: x itself, or a copy where it is anything else."""
    a = _array(x, name, FLOATS)
    if a.dtype.kind not in _KINDS_OF_REAL:
        raise ArgumentError(f"{name} holds {a.dtype}, but numbers are needed")
    _check_shape(a, name, shape)
    return np.ascontiguousarray(a, dtype=np.float32)


def reals(x: Array, name: str, shape: tuple[int, ...]) -> npt.NDArray[np.float64]:
    """Double precision in C order: x itself, or a copy where it is anything else."""
    a = _array(x, name, FLOATS)
    if a.dtype.kind not in _KINDS_OF_REAL:
        raise ArgumentError(f"{name} holds {a.dtype}, but numbers are needed")
    _check_shape(a, name, shape)
    return np.ascontiguousarray(a, dtype=np.float64)


def labels(x: Array, name: str, count: int) -> U32:
    """One class for each row, as the library takes them; a copy unless they are uint32."""
    a = _array(x, name, INTEGERS)
    if a.dtype.kind not in _KINDS_OF_INTEGER:
        raise ArgumentError(f"{name} holds {a.dtype}, but integers are needed")
    _check_shape(a, name, (count,))
    if a.dtype != np.uint32 and a.size and (a.min() < 0 or a.max() > 0xFFFFFFFF):
        raise ArgumentError(f"{name} has the class {a.min() if a.min() < 0 else a.max()}, which is none")
    return np.ascontiguousarray(a, dtype=np.uint32)


def small(x: Array, name: str, shape: tuple[int | str, ...], kind: type[np.integer[Any]]) -> npt.NDArray[Any]:
    """Whole numbers of one byte, int8 or uint8, in C order; a copy unless they are that. What does not fit is refused."""
    a = _array(x, name, INTEGERS)
    if a.dtype.kind not in _KINDS_OF_INTEGER:
        raise ArgumentError(f"{name} holds {a.dtype}, but integers are needed")
    _check_shape(a, name, shape)
    info = np.iinfo(kind)
    if a.size and (a.min() < info.min or a.max() > info.max):
        raise ArgumentError(f"{name} has {a.min() if a.min() < info.min else a.max()}, which is not within {info.min}..{info.max}")
    return np.ascontiguousarray(a, dtype=kind)


def output(out: F32 | None, name: str, shape: tuple[int, ...]) -> F32:
    """Where a result goes: an array of the caller, or a new one."""
    if out is None:
        return np.empty(shape, dtype=np.float32)
    if not isinstance(out, np.ndarray):
        raise ArgumentError(f"{name} is a {type(out).__name__}, but results go to NumPy arrays (tensor.numpy() is one)")
    if out.dtype != np.float32 or not out.flags.c_contiguous or not out.flags.writeable or not out.flags.aligned:
        raise ArgumentError(f"{name} is not a writable array of float32 in C order")
    _check_shape(out, name, shape)
    return out


def octets(data: Array | bytes | bytearray | memoryview, name: str) -> Bytes:
    """The bytes of a buffer or an array, where they lie if they lie together."""
    if isinstance(data, memoryview) and not data.c_contiguous:
        data = data.tobytes()
    if isinstance(data, (bytes, bytearray, memoryview)):
        return np.frombuffer(data, dtype=np.uint8)
    a = np.ascontiguousarray(_array(data, name, OCTETS))
    if a.dtype.hasobject or a.dtype.kind == "U":
        raise ArgumentError(f"{name} holds {'text' if a.dtype.kind == 'U' else 'objects'}, not bytes")
    return a.reshape(-1).view(np.uint8)


def address(a: npt.NDArray[Any]) -> int:
    """Where an array begins."""
    return int(a.ctypes.data)
