# SPDX-License-Identifier: Apache-2.0
"""Models of ONNX in and out.

    network = coltrain.onnx.load("model.onnx")
    coltrain.onnx.save(network, "model.onnx")

Needs the package onnx (Debian: python3-onnx). docs/onnx.md says what can be had of ONNX, and how images lie.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

import onnx

from .._arrays import Array, _array
from .._numbers import path_of, whole
from ..errors import FileError
from ..network import Network, Path
from . import _importing_elements, _importing_products
from ._exporting import Exporter
from ._importing import Importer, operators
from ._reading import NEWEST, OLDEST, read, source_of

_OPERATORS = (_importing_elements, _importing_products)  # they have entered theirs

__all__ = ["NEWEST", "OLDEST", "from_bytes", "from_model", "load", "operators", "save", "to_model"]


def load(path: Path, batch: int | None = None) -> Network:
    """The network of an ONNX file of opset 7 to 17.

    batch: the first dimension of inputs that leave it open (1). Raises :class:`UnsupportedError` with every node that Coltrain cannot
    have and why, :class:`FormatError` for a file that is wrong, with the node, and :class:`FileError`.
    """
    name = os.fsdecode(path_of(path))
    try:
        with open(name, "rb") as file:
            data = file.read()
    except OSError as reason:
        raise FileError(f"{name}: {reason.strerror or reason}") from reason
    return from_bytes(data, batch, name)


def from_bytes(data: bytes, batch: int | None = None, name: str = "the model") -> Network:
    """The same of a file's bytes. name: what errors call it."""
    return Importer(read(data, name), {}).run(name, batch if batch is None else whole(batch, "batch"))


def from_model(model: onnx.ModelProto, batch: int | None = None, constants: Mapping[str, Array] | None = None) -> Network:
    """The same of a model in memory. constants: values of inputs by name, which become weights."""
    given = {name: _array(value, name, "give it as a NumPy array") for name, value in (constants or {}).items()}
    return Importer(source_of(model, "the model"), given).run("the model", batch if batch is None else whole(batch, "batch"))


def to_model(network: Network) -> onnx.ModelProto:
    """The network as a model of ONNX, opset 17, which onnx.checker has looked at. Inputs and outputs that are images are NCHW.

    Raises :class:`UnsupportedError` with every node that ONNX cannot have and why.
    """
    return Exporter(network).run("the network")


def save(network: Network, path: Path) -> None:
    """Writes an ONNX file (:func:`to_model`)."""
    name = os.fsdecode(path_of(path))
    data = to_model(network).SerializeToString()
    try:
        with open(name, "wb") as file:
            file.write(data)
    except OSError as reason:
        raise FileError(f"{name}: {reason.strerror or reason}") from reason
