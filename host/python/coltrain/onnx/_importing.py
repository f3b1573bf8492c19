# SPDX-License-Identifier: Apache-2.0
"""From ONNX to a graph of Coltrain, node by node.

A node that cannot be had is noted with its reason, and what depends on it is left out; in the end all of them are named at once. Operators
are in files of their own (`_importing_*.py`), which enter them here when they are imported.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .._abi import Initial, Role
from .._arrays import F32
from ..errors import ArgumentError, Error, FormatError, UnsupportedError
from ..graph import Attribute, Graph, Tensor
from ..network import Network
from ._layout import AnyArray, Const, Dims, Refusal, Translator, Value, View, fresh, identity, inverse, permuted, words
from ._reading import Input, Source, Step, later, tensor_array

IMAGE: Dims = (0, 3, 1, 2)  # an image of ONNX is the transposition of ours by this
_MOST_RANK = 4

# By name of ONNX: what makes it here, and the opset that brought it.
_HANDLERS: dict[str, tuple[Callable[[Importer, Step], None], int]] = {}
# Operators that leave dimensions where they are, and those that need images.
_CLEAR = {"Relu", "LeakyRelu", "Clip", "Sigmoid", "Tanh", "Erf", "Identity", "Dropout", "Add", "Sub", "Mul", "Div", "Concat"}
_IMAGES = {"Conv", "MaxPool", "AveragePool", "GlobalAveragePool", "BatchNormalization"}


def handles(*names: str, since: int = 1) -> Callable[[Callable[[Importer, Step], None]], Callable[[Importer, Step], None]]:
    """Enters a function into the table."""

    def enter(function: Callable[[Importer, Step], None]) -> Callable[[Importer, Step], None]:
        for name in names:
            _HANDLERS[name] = (function, since)
        return function

    return enter


def operators() -> list[str]:
    """The operators of ONNX that can be imported."""
    return sorted(_HANDLERS)


@dataclass(frozen=True)
class Refused:
    """A node that cannot be imported."""

    node: str
    op: str
    reason: str
    unsupported: bool

    def __str__(self) -> str:
        return f"node {self.node} ({self.op}): {self.reason}"


class Importer(Translator[Tensor]):
    """One model on its way."""

    def __init__(self, source: Source, constants: Mapping[str, AnyArray]) -> None:
        self.source = source
        self.graph = Graph()
        self.weights: dict[str, F32] = {}
        self.values: dict[str, Value[Tensor]] = {}
        self.refused: list[Refused] = []
        self.images: set[str] = set()
        self.step = source.steps[0]
        self._constants = constants
        self._lost: set[str] = set()
        self._held: dict[tuple[str, str], Tensor] = {}
        self._names = {o for s in source.steps for o in s.outputs} | {i.name for i in source.inputs} | set(source.initialisers)
        self._readers: dict[str, list[Step]] = {}
        for step in source.steps:
            for name in step.inputs:
                self._readers.setdefault(name, []).append(step)

    # ---- What the target has ----

    def _add(self, op: str, inputs: Sequence[Tensor | None], outputs: Sequence[str], attrs: Mapping[str, Attribute]) -> Tensor:
        try:
            made = [self.graph.tensor(name, (), Role.ACTIVATION) for name in outputs]
            self.graph.add(op, *inputs, name=self.step.name, outputs=made, **attrs)
        except ArgumentError as reason:
            raise Refusal(re.sub(r"^node .{0,80}? \(\w+\): ", "", str(reason), flags=re.DOTALL), unsupported=False) from reason
        return made[0]

    def fresh(self, name: str) -> str:
        """A name that nothing has yet."""
        return fresh(name, self._names)

    def emit(self, op: str, *inputs: Tensor | None, out: str = "", **attrs: Attribute) -> Tensor:
        """A node with one output: the tensor called out, or one between."""
        return self._add(op, inputs, [out or self.fresh(f"{self.step.outputs[0]}.{op}")], attrs)

    def transpose(self, kept: Tensor, shape: Dims, perm: Dims) -> Tensor:
        self._check_rank(shape)
        return self.emit("transpose", kept, out=self.next_name(), perm=perm)

    def reshape(self, kept: Tensor, shape: Dims, to: Dims) -> Tensor:
        self._check_rank(to)
        out = self.next_name()
        if len(to) == 2 and to[0] == shape[0]:
            return self.emit("flatten", kept, out=out, axis=1)
        return self.emit("reshape", kept, out=out, shape=to or (1,))

    def _check_rank(self, shape: Dims) -> None:
        if len(shape) > _MOST_RANK:
            raise Refusal(f"a tensor of it is {words(shape)}, but Coltrain's have at most {_MOST_RANK} dimensions")

    def held(self, const: Const, array: AnyArray, form: str) -> Tensor:
        shape = tuple(int(d) for d in array.shape) or (1,)
        self._check_rank(shape)
        if array.dtype.kind != "f":
            raise Refusal(f"its constant {const.name} holds {array.dtype}, but Coltrain computes with FP32")
        with np.errstate(over="ignore"):
            data = np.ascontiguousarray(array, dtype=np.float32).reshape(shape)
        if not np.isfinite(data).all():
            raise Refusal(f"{const.name} has NaN or infinity among its values", unsupported=False)
        if (const.name, form) not in self._held:
            name = self.fresh(f"{const.name}.form") if const.name in self.weights else const.name
            role = Role.WEIGHT if const.trained else Role.STATE
            try:
                initial = Initial.HE if const.trained and len(shape) > 1 else Initial.ZEROS
                self._held[const.name, form] = self.graph.tensor(name, shape, role, initial=initial)
            except ArgumentError as reason:
                raise Refusal(str(reason), unsupported=False) from reason
            self.weights[name] = data
        return self._held[const.name, form]

    # ---- What a node gets ----

    def has(self, at: int) -> bool:
        return at < len(self.step.inputs) and self.step.inputs[at] != ""

    def value(self, at: int) -> Value[Tensor]:
        if not self.has(at):
            raise Refusal(f"input {at} is missing", unsupported=False)
        return self.values[self.step.inputs[at]]

    def data(self, at: int) -> View[Tensor]:
        return self.view(self.value(at))

    def const(self, at: int, what: str) -> AnyArray:
        """An input that has to be known now."""
        value = self.value(at)
        if not isinstance(value, Const):
            raise Refusal(f"its {what} ({self.step.inputs[at]}) is computed, it has to be a constant")
        return value.array

    def number(self, at: int, what: str, fallback: float) -> float:
        if not self.has(at):
            return fallback
        array = self.const(at, what)
        if array.size != 1 or math.isnan(float(array.reshape(-1)[0])):
            raise Refusal(f"its {what} ({self.step.inputs[at]}) is {'no number' if array.size != 1 else 'NaN'}", unsupported=False)
        return float(array.reshape(-1)[0])

    def parameter(self, at: int, shape: Dims, what: str, fit: Callable[[AnyArray], AnyArray] = lambda a: a) -> Tensor:
        """A weight: a constant, in the form that an operator takes, or what other nodes make in this form already."""
        value = self.value(at)
        if isinstance(value, Const):
            array = fit(value.array)
            if tuple(array.shape) != shape:
                raise Refusal(f"its {what} is {words(value.shape)}, it must be {words(shape)}", unsupported=False)
            return self.held(value, array, f"{what} {shape}")
        if value.shape != shape:
            raise Refusal(f"its {what} is {words(value.shape)}, it must be {words(shape)}", unsupported=False)
        return self.settle(value)

    def give(self, value: Value[Tensor], at: int = 0) -> None:
        """What the node makes."""
        self.values[self.step.outputs[at]] = value

    def made(self, tensor: Tensor, want: Dims | None = None) -> View[Tensor]:
        """A tensor of the graph as a value, which is its transposition by want."""
        stored = tensor.shape
        want = identity(len(stored)) if want is None else want
        return View(tensor, stored, want, permuted(stored, want))

    @property
    def out(self) -> str:
        return self.step.outputs[0]

    def out_for(self, perm: Dims = (), pure: bool = True) -> str:
        """The name for the tensor that the node makes, of which its value is the transposition by perm: that of the value, unless this is
        an output of the model, which a node behind has to make of the tensor.
        """
        direct = pure and perm in (identity(len(perm)), IMAGE)
        return self.out if direct or self.out not in self.source.outputs else ""

    def wanted(self, at: int) -> bool:
        """Whether somebody reads that output."""
        if at >= len(self.step.outputs) or not self.step.outputs[at]:
            return False
        return self.step.outputs[at] in self._readers or self.step.outputs[at] in self.source.outputs

    def only_first(self, reason: str) -> None:
        """Refuses outputs but the first."""
        for at in range(1, len(self.step.outputs)):
            if self.wanted(at):
                raise Refusal(f"its output {self.step.outputs[at]} is used: {reason}")

    # ---- The whole ----

    def _is_image(self, name: str) -> bool:
        """Whether an input of four dimensions reaches an operator of images in its order."""
        seen, waiting = {name}, [name]
        while waiting:
            now = waiting.pop()
            for step in self._readers.get(now, ()):
                if step.op in _IMAGES and step.inputs[0] == now:
                    return True
                ahead = [o for o in step.outputs[:1] if step.op in _CLEAR and o not in seen]
                seen.update(ahead)
                waiting += ahead
        return False

    def _take_input(self, given: Input, batch: int | None) -> None:
        if given.name in self._constants:
            self.values[given.name] = Const(self._constants[given.name], given.name, True)
            return
        if given.kind != "FLOAT":
            raise FormatError(f"input {given.name} holds {given.kind}, but Coltrain computes with FP32 (FLOAT)")
        if given.shape is None:
            raise FormatError(f"input {given.name} has no shape")
        shape = [batch or 1 if i == 0 and isinstance(d, str) else d for i, d in enumerate(given.shape)] or [1]
        for i, size in enumerate(shape):
            if isinstance(size, str):
                raise FormatError(f"dimension {i} of input {given.name} ({size or 'without name'}) is open: only the batch may be")
            if size < 0:
                raise FormatError(f"dimension {i} of input {given.name} is {size}")
        dims = tuple(int(d) for d in shape)
        image = len(dims) == 4 and self._is_image(given.name)
        stored = permuted(dims, inverse(IMAGE)) if image else dims
        self.images.update([given.name] * image)
        try:
            self.values[given.name] = View(self.graph.input(given.name, stored), stored, IMAGE if image else identity(len(dims)), dims)
        except ArgumentError as reason:
            raise FormatError(f"input {given.name}: {reason}") from reason

    def _lose(self, reason: str, unsupported: bool) -> None:
        self.refused.append(Refused(self.step.name, self.step.op, reason, unsupported))

    def _known(self, at: int) -> bool:
        """Whether the node's inputs are there; says what is missing, unless it hangs on a node that was refused."""
        for name in filter(None, self.step.inputs):
            if name in self._lost:
                return False
            if name in self.values:
                continue
            tensor = self.source.initialisers.get(name)
            if tensor is None:
                self._lose(later(self.source.steps, at, name), False)
                return False
            try:
                self.values[name] = Const(tensor_array(tensor), name, True)
            except Refusal as refusal:
                self._lose(f"initialiser {name}: {refusal}", refusal.unsupported)
                return False
        return True

    def _take_step(self, at: int) -> bool:
        step = self.step
        if step.domain not in ("", "ai.onnx"):
            self._lose(f"it is of the domain {step.domain}: Coltrain has no such operator", True)
            return False
        if step.op not in _HANDLERS:
            self._lose("Coltrain has no such operator", True)
            return False
        handler, since = _HANDLERS[step.op]
        if self.source.opset < since:
            self._lose(f"it came with opset {since}, but the model is of opset {self.source.opset}", False)
            return False
        if not step.outputs or not step.outputs[0]:
            self._lose("it makes nothing", False)
            return False
        if not self._known(at):
            return False
        try:
            handler(self, step)
            step.check_attributes()
        except Refusal as refusal:
            self._lose(str(refusal), refusal.unsupported)
            return False
        return True

    def _give_outputs(self) -> None:
        for name in self.source.outputs:
            if name in self._lost or name not in self.values:
                continue
            value = self.values[name]
            self.step = next(s for s in self.source.steps if name in s.outputs)
            try:
                if isinstance(value, Const):
                    raise Refusal(f"output {name} is a constant: nothing is computed for it")
                image = value.pure and value.perm == IMAGE
                self.images.update([name] * image)
                tensor = value.kept if image else self.settled_as(value, name)
                if tensor.name != name:  # there is no other way to another name
                    self.names = [name]
                    tensor = self.reshape(tensor, tensor.shape, tensor.shape)
                self.graph.result(tensor)
            except Refusal as refusal:
                self._lose(str(refusal), refusal.unsupported)

    def run(self, what: str, batch: int | None) -> Network:
        """The network, or an error that names all nodes that were refused."""
        for given in self.source.inputs:
            self._take_input(given, batch)
        for at, step in enumerate(self.source.steps):
            self.step = step
            if not self._take_step(at):
                self._lost.update(filter(None, self.step.outputs))
        self._give_outputs()
        if self.refused:
            kind: type[Error] = UnsupportedError if all(r.unsupported for r in self.refused) else FormatError
            count = f"{len(self.refused)} node{'s' if len(self.refused) > 1 else ''}"
            error = kind(f"{what} cannot be imported, because of {count}:\n" + "\n".join(f"  {r}" for r in self.refused))
            error.refused = self.refused  # type: ignore[attr-defined]
            raise error
        try:
            network = Network(self.graph, self.weights)
        except ArgumentError as reason:
            raise FormatError(f"{what}: {reason}") from reason
        network.images = frozenset(self.images)
        return network
