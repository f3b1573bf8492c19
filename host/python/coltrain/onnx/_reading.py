# SPDX-License-Identifier: Apache-2.0
"""ONNX files as plain values. Nothing is believed: a count only where there are as many bytes, a name only where something has it."""

from __future__ import annotations

import math
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx
from google.protobuf.message import DecodeError

from ..errors import FormatError, UnsupportedError
from ._layout import AnyArray, Refusal

OLDEST, NEWEST = 7, 17
_DOMAINS = ("", "ai.onnx")
_TYPES = onnx.TensorProto.DataType
# How numbers lie in raw_data, and the field that has them otherwise.
_STORED = {
    "FLOAT": ("<f4", "float_data"),
    "DOUBLE": ("<f8", "double_data"),
    "FLOAT16": ("<f2", "int32_data"),
    "INT64": ("<i8", "int64_data"),
    "INT32": ("<i4", "int32_data"),
    "INT16": ("<i2", "int32_data"),
    "INT8": ("i1", "int32_data"),
    "UINT8": ("u1", "int32_data"),
    "BOOL": ("?", "int32_data"),
}


def type_name(number: int) -> str:
    return str(_TYPES.Name(number)) if number in _TYPES.values() else f"type {number}"


def tensor_array(tensor: onnx.TensorProto) -> AnyArray:
    """The numbers of a tensor."""
    kind = type_name(tensor.data_type)
    if kind not in _STORED:
        raise Refusal(f"its type is {kind}, which Coltrain does not read")
    if tensor.data_location == onnx.TensorProto.EXTERNAL or tensor.external_data:
        raise Refusal("its numbers lie in another file: save the model with its data inside")
    dtype, name = np.dtype(_STORED[kind][0]), _STORED[kind][1]
    shape = tuple(tensor.dims)
    if any(d < 0 for d in shape):
        raise Refusal(f"its shape {shape} has a negative dimension", unsupported=False)
    count = math.prod(shape)
    if tensor.raw_data:
        have = len(tensor.raw_data) / dtype.itemsize
        data = np.frombuffer(tensor.raw_data, dtype) if have == count else None
    else:
        numbers = getattr(tensor, name)
        have = len(numbers)
        data = None
        if have == count:
            given = np.array(numbers, dtype=np.uint16 if kind == "FLOAT16" else None) if count else np.zeros(0)
            data = given.view(dtype) if kind == "FLOAT16" else given.astype(dtype)
    if data is None:
        raise Refusal(f"its shape {shape} has {count} numbers, but {have:g} are there", unsupported=False)
    return data.reshape(shape).astype(dtype.newbyteorder("="), copy=False)


@dataclass
class Step:
    """A node of the model."""

    op: str
    name: str
    """For people: that of the node, or of what it makes."""
    domain: str
    inputs: list[str]
    outputs: list[str]
    """ "" where an optional one is not wanted."""
    attrs: dict[str, onnx.AttributeProto] = field(default_factory=dict)
    taken: set[str] = field(default_factory=set)

    def attribute(self, name: str, kind: str) -> Any:
        """An attribute's value, None if it is not there. kind: the field of AttributeProto that has it."""
        self.taken.add(name)
        found = self.attrs.get(name)
        if found is None:
            return None
        types = {"f": "FLOAT", "i": "INT", "s": "STRING", "t": "TENSOR", "floats": "FLOATS", "ints": "INTS"}
        if found.ref_attr_name:
            raise Refusal(f"attribute {name} belongs to a function")
        if found.type and found.type != onnx.AttributeProto.AttributeType.Value(types[kind]):
            raise Refusal(f"attribute {name} is no {types[kind]}", unsupported=False)
        value = getattr(found, kind)
        return list(value) if kind in ("floats", "ints") else value

    def whole(self, name: str, fallback: int) -> int:
        value = self.attribute(name, "i")
        return fallback if value is None else int(value)

    def real(self, name: str, fallback: float) -> float:
        given = self.attribute(name, "f")
        value = fallback if given is None else float(given)
        if math.isnan(value):
            raise Refusal(f"attribute {name} is NaN", unsupported=False)
        return value

    def wholes(self, name: str, count: int, fallback: int) -> list[int]:
        value = self.attribute(name, "ints")
        if value is None:
            return [fallback] * count
        if len(value) != count:
            raise Refusal(f"attribute {name} has {len(value)} numbers, it must have {count}", unsupported=False)
        return [int(v) for v in value]

    def text(self, name: str, fallback: str) -> str:
        value = self.attribute(name, "s")
        return fallback if value is None else bytes(value).decode("utf-8", "replace")

    def leave(self, *names: str) -> None:
        """Attributes that change nothing here."""
        self.taken.update(names)

    def check_attributes(self) -> None:
        """Refuses attributes that nobody asked for."""
        unknown = sorted(set(self.attrs) - self.taken)
        if unknown:
            raise Refusal(f"attribute {unknown[0]} is not known")


@dataclass
class Input:
    """An input of the model."""

    name: str
    kind: str
    shape: list[int | str] | None
    """A text is a dimension's name, "" one without."""


@dataclass
class Source:
    """A model, read."""

    opset: int
    steps: list[Step]
    inputs: list[Input]
    outputs: list[str]
    initialisers: Mapping[str, onnx.TensorProto]


class _NoText(Exception):
    """A name is no UTF-8."""


def _text(name: Any) -> str:
    """A name in protobuf may be any bytes."""
    if not isinstance(name, str):
        raise _NoText
    return name


def _opset(model: onnx.ModelProto, what: str) -> int:
    found = [entry.version for entry in model.opset_import if entry.domain in _DOMAINS]
    if not found:
        raise FormatError(f"{what} does not say which version of ONNX's operators it uses (opset_import)")
    if not OLDEST <= found[0] <= NEWEST:
        raise UnsupportedError(f"{what} is of opset {found[0]}, but {OLDEST} to {NEWEST} are read: convert it (onnx.version_converter)")
    return int(found[0])


def _input(info: onnx.ValueInfoProto) -> Input:
    if not info.type.HasField("tensor_type"):
        return Input(_text(info.name), "no tensor", None)
    tensor = info.type.tensor_type
    if not tensor.HasField("shape"):
        return Input(_text(info.name), type_name(tensor.elem_type), None)
    dims: list[int | str] = [d.dim_value if d.HasField("dim_value") else _text(d.dim_param) for d in tensor.shape.dim]
    return Input(_text(info.name), type_name(tensor.elem_type), dims)


def _step(proto: onnx.NodeProto, number: int) -> Step:
    inputs, outputs = [_text(name) for name in proto.input], [_text(name) for name in proto.output]
    name = _text(proto.name) or next((o for o in outputs if o), f"number {number}")
    step = Step(_text(proto.op_type), name, _text(proto.domain), inputs, outputs)
    for attribute in proto.attribute:
        step.attrs[_text(attribute.name)] = attribute
    return step


def _check_names(source: Source, what: str) -> None:
    made: dict[str, str] = {}
    for name in [i.name for i in source.inputs]:
        if name in made or not name:
            raise FormatError(f"{what}: {f'two inputs are called {name!r}' if name else 'an input has no name'}")
        made[name] = "input"
    for step in source.steps:
        for output in filter(None, step.outputs):
            if output in made or output in source.initialisers:
                raise FormatError(f"{what}: node {step.name} makes {output}, which is there already")
            made[output] = step.name
    for output in source.outputs:
        if output not in made and output not in source.initialisers:
            raise FormatError(f"{what}: its output {output!r} is made by no node")
        if made.get(output, "input") == "input":
            raise FormatError(f"{what}: its output {output!r} is an input or initialiser: nothing is computed for it")


def read(data: bytes, what: str) -> Source:
    """Takes a file apart. what: its name. Raises :class:`FormatError`, :class:`UnsupportedError`."""
    try:
        with warnings.catch_warnings(record=True) as said:  # protobuf stops where bytes make no sense, and only warns
            warnings.simplefilter("always")
            model = onnx.ModelProto.FromString(data)
        if said:
            raise ValueError(said[0].message)
    except (DecodeError, RuntimeError, ValueError) as reason:
        raise FormatError(f"{what} is no ONNX file, or a damaged one: {reason}") from reason
    return source_of(model, what)


def source_of(model: onnx.ModelProto, what: str) -> Source:
    """The same for a model that is in memory."""
    if not model.HasField("graph") or not model.graph.node:
        raise FormatError(f"{what} is no ONNX file, or one without nodes")
    graph = model.graph
    try:
        initialisers = {_text(tensor.name): tensor for tensor in graph.initializer}
        steps = [_step(node, i) for i, node in enumerate(graph.node)]
        inputs = [found for found in map(_input, graph.input) if found.name not in initialisers]
        outputs = [_text(info.name) for info in graph.output]
    except (_NoText, UnicodeDecodeError) as reason:
        raise FormatError(f"{what} has a name that is no UTF-8") from reason
    source = Source(_opset(model, what), steps, inputs, outputs, initialisers)
    if not outputs:
        raise FormatError(f"{what} has no outputs")
    _check_names(source, what)
    return source


def later(steps: Sequence[Step], at: int, name: str) -> str:
    """Why a node has no such input yet."""
    for step in steps[at:]:
        if name in step.outputs:
            if step is steps[at]:
                return f"it needs its own output {name}: the graph is cyclic"
            return f"its input {name} is made by node {step.name}, which comes later: the graph is cyclic or not in order"
    return f"its input {name} is made by no node"
