# SPDX-License-Identifier: Apache-2.0
"""Networks: a graph with the values of its weights and states, and files of both.

    network = coltrain.Network.load("digits.npz")
    logits = network.run({"x": images})["logits"]

A file of a network is a zip archive as NumPy writes them (.npz): the member ``coltrain.graph`` has the bytes of the graph
(docs/graph.md), NAME.npy each weight and state. Without that member it holds arrays alone.
"""

from __future__ import annotations

import io
import os
import zipfile
import zlib
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import IO, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ._abi import Role
from ._arrays import F32, Array, floats
from ._numbers import path_of
from .errors import ArgumentError, FileError, FormatError
from .graph import F64, Graph, Tensor

GRAPH = "coltrain.graph"
_npy: Any = np.lib.format  # without types in older NumPy
_MOST_GRAPH = 1 << 30
_ARRAY = ".npy"
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the same network gives the same bytes
_LONGEST_HEADER = 10000

Path: TypeAlias = str | os.PathLike[str]


# ---- Archives ----


@contextmanager
def _archive(path: Path) -> Iterator[zipfile.ZipFile]:
    """The archive, to be read; what is wrong with it while that is done is said with its name."""
    name = os.fsdecode(path_of(path))
    try:
        with zipfile.ZipFile(name) as archive:
            yield archive
    except OSError as reason:
        raise FileError(f"{name}: {reason.strerror or reason}") from reason
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError, RuntimeError, UnicodeDecodeError) as reason:
        raise FormatError(f"{name} is no .npz file, or a damaged one: {reason}") from reason


def _header(file: IO[bytes], what: str) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Shape, order and type of an array in NumPy's format."""
    try:
        version = _npy.read_magic(file)
        read = {(1, 0): _npy.read_array_header_1_0, (2, 0): _npy.read_array_header_2_0}[version]
        shape, fortran, kind = read(file, max_header_size=_LONGEST_HEADER)
    except (ValueError, KeyError, SyntaxError, TypeError) as reason:
        raise FormatError(f"{what} is no array of NumPy: {reason}") from reason
    return shape, fortran, kind


def _array(archive: zipfile.ZipFile, member: zipfile.ZipInfo, name: str) -> npt.NDArray[Any]:
    """An array, whose size is believed only if the archive has as much."""
    what = f"{archive.filename}: {name}"
    with archive.open(member) as file:
        shape, fortran, kind = _header(file, what)
        if kind.hasobject or kind.kind not in "fiub":
            raise FormatError(f"{what} holds {kind}, but numbers are needed")
        count = int(np.prod(shape, dtype=object)) if shape else 1
        if count < 0 or count * kind.itemsize != member.file_size - file.tell():
            raise FormatError(f"{what} has a size that does not fit its shape {shape}")
        data = file.read(count * kind.itemsize)
    if len(data) != count * kind.itemsize:
        raise FormatError(f"{what} ends too early")
    return np.frombuffer(data, dtype=kind).reshape(shape, order="F" if fortran else "C")


def load_arrays(path: Path) -> dict[str, npt.NDArray[Any]]:
    """The arrays of an .npz file by name. Raises :class:`FormatError` for what is none, and for arrays that hold no numbers."""
    with _archive(path) as archive:
        return {m.filename[: -len(_ARRAY)]: _array(archive, m, m.filename) for m in archive.infolist() if m.filename.endswith(_ARRAY)}


def save_arrays(path: Path, arrays: Mapping[str, Array]) -> None:
    """Writes arrays as FP32 into an .npz file. The same arrays give the same bytes."""
    _write(path, None, {name: np.asarray(array, dtype=np.float32) for name, array in arrays.items()})


def _write(path: Path, graph: bytes | None, arrays: Mapping[str, F32]) -> None:
    name = os.fsdecode(path_of(path))
    try:
        with zipfile.ZipFile(name, "w", zipfile.ZIP_STORED) as archive:
            if graph is not None:
                archive.writestr(zipfile.ZipInfo(GRAPH, _EPOCH), graph)
            for key, array in arrays.items():
                buffer = io.BytesIO()
                _npy.write_array(buffer, np.ascontiguousarray(array), allow_pickle=False)
                archive.writestr(zipfile.ZipInfo(key + _ARRAY, _EPOCH), buffer.getbuffer())
    except OSError as reason:
        raise FileError(f"{name}: {reason.strerror or reason}") from reason


# ---- Networks ----


class Network:
    """A checked graph, and the values of all its weights and states, FP32 by name."""

    def __init__(self, graph: Graph, values: Mapping[str, Array]) -> None:
        self.graph = graph.check()
        self.values: dict[str, F32] = {}
        """Of weights and states; replace arrays by :meth:`set`, which checks them."""
        held = graph.by_role(Role.WEIGHT, Role.STATE)
        missing = [name for name in held if name not in values]
        if missing:
            raise ArgumentError(f"the network has no values for {', '.join(missing[:5])}{' and others' if len(missing) > 5 else ''}")
        self.set(values)
        self.images: frozenset[str] = frozenset()
        """Inputs and outputs of an imported network that are images: NHWC here, NCHW in ONNX. Files do not keep it."""

    def __repr__(self) -> str:
        info = self.graph.info
        return f"<coltrain.Network: {info.nodes} nodes, {info.weights:,} weights>"

    @classmethod
    def builtin(cls, name: str, batch: int = 1, training: bool = False, seed: int = 1) -> Network:
        """A network by name (:meth:`Graph.builtin`) with its initial values."""
        graph = Graph.builtin(name, batch, training)
        return cls(graph, graph.initial_values(seed))

    def set(self, values: Mapping[str, Array]) -> None:
        """Replaces weights and states. Raises :class:`ArgumentError` for a name that is none, a wrong shape, NaN or infinity; then
        none is replaced.
        """
        held, new = self.graph.by_role(Role.WEIGHT, Role.STATE), {}
        for name, value in values.items():
            if name not in held:
                raise ArgumentError(f"the network has no weight or state {name}")
            array = floats(value, name, held[name].shape)
            if not np.isfinite(array).all():
                readers = [n.name for n in self.graph.nodes if held[name] in n.inputs]
                raise ArgumentError(f"{name} of node {readers[0] if readers else '?'} has NaN or infinity among its values")
            new[name] = array
        self.values |= new

    def run(self, inputs: Mapping[str, Array], wanted: Iterable[Tensor | str] | Tensor | None = None) -> dict[str, F64]:
        """The outputs (or what is wanted) in double precision, by :meth:`Graph.run`."""
        return self.graph.run({**self.values, **inputs}, wanted)

    def save(self, path: Path) -> None:
        """Writes graph and values into one file. The same network gives the same bytes."""
        _write(path, self.graph.pack(), self.values)

    @classmethod
    def load(cls, path: Path) -> Network:
        """The network that :meth:`save` wrote. Raises :class:`FormatError`."""
        with _archive(path) as archive:
            members = {m.filename: m for m in archive.infolist()}
            if GRAPH not in members:
                raise FormatError(f"{archive.filename} has no graph: it holds arrays alone, for Network.load_values()")
            if members[GRAPH].file_size > _MOST_GRAPH:
                raise FormatError(f"{archive.filename}: its graph has more than {_MOST_GRAPH} bytes")
            try:
                graph = Graph.unpack(archive.read(GRAPH))
            except (FormatError, ArgumentError) as reason:
                raise FormatError(f"{archive.filename}: its graph: {reason}") from reason
            shapes = {name: t.shape for name, t in graph.by_role(Role.WEIGHT, Role.STATE).items()}
            values = {}
            for name in shapes:
                if name + _ARRAY not in members:
                    raise FormatError(f"{archive.filename} has no values for {name}")
                values[name] = _array(archive, members[name + _ARRAY], name)
            try:
                return cls(graph, values)
            except ArgumentError as reason:
                raise FormatError(f"{archive.filename}: {reason}") from reason

    def save_values(self, path: Path) -> None:
        """Writes the weights and states alone, by name."""
        _write(path, None, self.values)

    def load_values(self, path: Path) -> None:
        """Takes weights and states from an .npz file: all of the network's must be there, others are not looked at."""
        arrays = load_arrays(path)
        missing = [name for name in self.values if name not in arrays]
        if missing:
            raise FormatError(f"{os.fspath(path)} has no values for {missing[0]}")
        self.set({name: arrays[name] for name in self.values})
