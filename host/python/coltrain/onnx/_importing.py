# SPDX-License-Identifier: Apache-2.0
"""From ONNX to a graph of Coltrain, node by node.

A node that cannot be had is noted with its reason, and what depends on it is left out; in the end all of them are named at once.
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
from ._layout import AnyArray, Const, Dims, Refusal, Translator, Value, View, broadcast, fresh, identity, inverse, permuted, plain, words
from ._reading import Input, Source, Step, later, tensor_array

_IMAGE: Dims = (0, 3, 1, 2)  # an image of ONNX is the transposition of ours by this
_LOWEST = -3.4028234e38
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


def channels_last(rank: int) -> Dims:
    """Of what a value with its channels in dimension 1 is the transposition."""
    return (0, rank - 1, *range(1, rank - 1)) if rank > 2 else identity(rank)


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
        direct = pure and perm in (identity(len(perm)), _IMAGE)
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
        stored = permuted(dims, inverse(_IMAGE)) if image else dims
        self.images.update([given.name] * image)
        try:
            self.values[given.name] = View(self.graph.input(given.name, stored), stored, _IMAGE if image else identity(len(dims)), dims)
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
                image = value.pure and value.perm == _IMAGE
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


# ---- Element by element ---------------------------------------------------------------------------------------------------------

_UNARY = {"Relu": "relu", "Sigmoid": "sigmoid", "Tanh": "tanh", "Erf": "erf"}


def unary(i: Importer, op: str, **attrs: Attribute) -> None:
    x = i.data(0)
    i.give(View(i.emit(op, x.kept, out=i.out_for(x.perm, x.pure), **attrs), x.stored, x.perm, x.shape))


@handles("Relu", "Sigmoid", "Tanh")
def simple(i: Importer, step: Step) -> None:
    unary(i, _UNARY[step.op])


@handles("Erf", since=9)
def erf(i: Importer, step: Step) -> None:
    unary(i, "erf")


@handles("LeakyRelu")
def leaky_relu(i: Importer, step: Step) -> None:
    unary(i, "leaky_relu", alpha=step.real("alpha", 0.01))


@handles("Clip")
def clip(i: Importer, step: Step) -> None:
    if i.source.opset < 11:
        low, high = step.real("min", -math.inf), step.real("max", math.inf)
    else:
        low, high = i.number(1, "minimum", -math.inf), i.number(2, "maximum", math.inf)
    low, high = -math.inf if low <= _LOWEST else low, math.inf if high >= -_LOWEST else high
    unary(i, "clip", min=low, max=high)


@handles("Identity")
def same(i: Importer, step: Step) -> None:
    i.give(i.value(0))


@handles("Dropout")
def dropout(i: Importer, step: Step) -> None:
    step.leave("ratio", "seed")
    i.only_first("what was dropped is not kept")
    if i.source.opset >= 12 and i.number(2, "training_mode", 0.0) and i.number(1, "ratio", 0.5):
        raise Refusal("it drops at random (training_mode), by other random numbers than Coltrain's: export the model for inference")
    i.give(i.value(0))


_BINARY: dict[str, Callable[[AnyArray, AnyArray], AnyArray]] = {"Add": np.add, "Sub": np.subtract, "Mul": np.multiply, "Div": np.divide}


def fold(step: Step, a: Const, b: Const) -> Const:
    """A node on constants alone."""
    if a.array.dtype != b.array.dtype or a.array.dtype.kind not in "fi" or (a.array.dtype.kind == "i" and step.op == "Div"):
        raise Refusal(f"its constants hold {a.array.dtype} and {b.array.dtype}: such are not folded")
    broadcast(a.shape, b.shape)
    with np.errstate(all="ignore"):
        return Const(np.asarray(_BINARY[step.op](a.array, b.array), dtype=a.array.dtype), step.outputs[0], False)


@handles("Add", "Sub", "Mul", "Div")
def binary(i: Importer, step: Step) -> None:
    a, b = i.value(0), i.value(1)
    if isinstance(a, Const) and isinstance(b, Const):
        if i.out not in i.source.outputs:
            return i.give(fold(step, a, b))
        a = i.view(a)
    shape = broadcast(a.shape, b.shape)
    if step.op == "Mul" and isinstance(b, View) and isinstance(a, Const):
        a, b = b, a
    if step.op == "Mul" and isinstance(a, View) and isinstance(b, Const) and b.array.size == 1 and shape == a.shape and not b.trained:
        return i.give(View(i.emit("scale", a.kept, out=i.out_for(a.perm, a.pure), factor=i_scalar(b)), a.stored, a.perm, a.shape))
    kept, common, want = i.align([a, b], broadcasting=True)
    out = i.out_for(want, common is None or common.pure)
    return i.give(i.placed(i.emit(step.op.lower(), *kept, out=out), shape, common, want))


def i_scalar(const: Const) -> float:
    value = float(const.array.reshape(-1)[0])
    if not math.isfinite(value):
        raise Refusal(f"{const.name} is {value}", unsupported=False)
    return value


# ---- Products ------------------------------------------------------------------------------------------------------------------


def linear(i: Importer, x: View[Tensor], w: Const, rows: AnyArray, bias: Tensor | None, out: str) -> View[Tensor]:
    """x times the transposition of rows (outputs x inputs), which is a form of the weight w."""
    if len(x.shape) == 2:
        flat, order = i.columns(x, rows.shape[1])
        moved = np.empty_like(rows)
        moved[:, order] = rows
        form = f"linear {rows.shape} {hash(order.tobytes())}"
    else:
        flat, moved, form = plain(i.settle(x), x.shape), rows, f"linear {rows.shape}"
    return i.made(i.emit("linear", flat.kept, i.held(w, moved, form), bias, out=out))


def matrix(value: Value[Tensor], what: str) -> None:
    if len(value.shape) != 2:
        raise Refusal(f"its {what} is {words(value.shape)}, it must have 2 dimensions", unsupported=False)


@handles("Gemm")
def gemm(i: Importer, step: Step) -> None:
    alpha, beta = step.real("alpha", 1.0), step.real("beta", 1.0)
    ta, tb = step.whole("transA", 0) != 0, step.whole("transB", 0) != 0
    a, b = i.data(0), i.value(1)
    matrix(a, "A")
    matrix(b, "B")
    if ta:
        a = i.turned(a, (1, 0))
    inner, outputs = (b.shape[1], b.shape[0]) if tb else b.shape
    if a.shape[1] != inner:
        raise Refusal(f"{words(a.shape)} cannot be multiplied by {words((inner, outputs))}", unsupported=False)
    shape = (a.shape[0], outputs)
    c = i.value(2) if i.has(2) and beta != 0 else None
    if c is not None and not spreads(c.shape, shape):
        raise Refusal(f"its C is {words(c.shape)}, which does not fit {words(shape)}", unsupported=False)
    vector = isinstance(c, Const) and (c.array.size == 1 or c.array.size == c.shape[-1] == outputs)
    if not (isinstance(b, Const) and (c is None or vector)):
        return general_gemm(i, a, b, c, alpha, beta, tb)
    bias = None
    if isinstance(c, Const):
        row = np.broadcast_to(c.array.reshape(-1) * np.asarray(beta, c.array.dtype), (outputs,))
        bias = i.held(c, row, f"bias {outputs} {beta}")
    rows = (b.array if tb else b.array.T) * np.asarray(alpha, b.array.dtype)
    return i.give(linear(i, a, b, rows, bias, i.out))


def spreads(small: Dims, shape: Dims) -> bool:
    """Whether it is broadcast to that shape."""
    return len(small) <= len(shape) and all(a in (1, b) for a, b in zip(reversed(small), reversed(shape), strict=False))


def general_gemm(i: Importer, a: View[Tensor], b: Value[Tensor], c: Value[Tensor] | None, alpha: float, beta: float, tb: bool) -> None:
    """Step by step."""

    def last(more: bool) -> str:
        return "" if more else i.out

    y = i.emit("matmul", i.settle(a), i.settle(i.view(b)), out=last(alpha != 1 or c is not None), transpose_b=float(tb))
    if alpha != 1:
        y = i.emit("scale", y, out=last(c is not None), factor=alpha)
    if c is not None:
        term = i.settle(i.view(c))
        if beta != 1:
            term = i.emit("scale", term, factor=beta)
        y = i.emit("add", y, term, out=i.out)
    i.give(i.made(y))


@handles("MatMul")
def matmul(i: Importer, step: Step) -> None:
    a, b = i.value(0), i.value(1)
    if not a.shape or not b.shape:
        raise Refusal("one of its operands is a number", unsupported=False)
    if a.shape[-1] != b.shape[0 if len(b.shape) == 1 else -2]:
        raise Refusal(f"{words(a.shape)} cannot be multiplied by {words(b.shape)}", unsupported=False)
    shape, out = product_shape(a.shape, b.shape), i.out_for(pure=min(len(a.shape), len(b.shape)) > 1)
    x = i.view(a)
    x = x.reshape((1, *x.shape)) if len(x.shape) == 1 else x
    if isinstance(b, Const) and len(b.shape) <= 2:
        rows = b.array.reshape(1, -1) if len(b.shape) == 1 else b.array.T
        y = linear(i, x, b, rows, None, out)
    else:
        w = i.view(b)
        w = w.reshape((*w.shape, 1)) if len(w.shape) == 1 else w
        y = i.made(i.emit("matmul", i.settle(x), i.settle(w), out=out))
    i.give(y.reshape(shape))


def product_shape(a: Dims, b: Dims) -> Dims:
    """Of a product of matrices; vectors are rows in front, columns behind."""
    front = broadcast(a[:-2], b[:-2])
    return (*front, *(a[-2:-1]), *(b[-1:] if len(b) > 1 else ()))


# ---- Windows -------------------------------------------------------------------------------------------------------------------


@dataclass
class Windows:
    """Along height and width."""

    kernel: list[int]
    stride: list[int]
    dilation: list[int]
    pad: list[int]
    """top, left, bottom, right"""
    grown: bool = False
    """By ceil_mode."""

    def attrs(self) -> dict[str, Attribute]:
        return {"stride": self.stride, "dilation": self.dilation, "pad": self.pad}


def image_of(i: Importer) -> View[Tensor]:
    """The image that windows go over, also one of one dimension, whose height is 1."""
    x = i.data(0)
    if len(x.shape) == 3:
        return x.reshape((*x.shape[:2], 1, x.shape[2]))
    if len(x.shape) != 4:
        raise Refusal(f"its image is {words(x.shape)}: windows have one or two dimensions", unsupported=len(x.shape) > 4)
    return x


def windows(i: Importer, step: Step, image: Dims, kernel: Sequence[int]) -> Windows:
    rank = len(i.value(0).shape) - 2
    lead = [1] * (2 - rank)
    stride, dilation = lead + step.wholes("strides", rank, 1), lead + step.wholes("dilations", rank, 1)
    pads = step.wholes("pads", 2 * rank, 0)
    mode, ceil = step.text("auto_pad", "NOTSET") or "NOTSET", step.whole("ceil_mode", 0) != 0
    if any(v < 1 for v in [*kernel, *stride, *dilation]) or any(v < 0 for v in pads):
        raise Refusal("its windows, strides, dilations or pads are negative or 0", unsupported=False)
    if mode not in ("NOTSET", "VALID", "SAME_UPPER", "SAME_LOWER"):
        raise Refusal(f"there is no auto_pad {mode!r}", unsupported=False)
    zero = [0] * (2 - rank)
    found = Windows([*lead, *kernel], stride, dilation, [*zero, *pads[:rank], *zero, *pads[rank:]])
    for axis in range(2):
        size, span = image[2 + axis], (found.kernel[axis] - 1) * dilation[axis] + 1
        if mode == "VALID":
            found.pad[axis] = found.pad[axis + 2] = 0
        elif mode != "NOTSET":
            total = max((-(-size // stride[axis]) - 1) * stride[axis] + span - size, 0)
            found.pad[axis] = total // 2 if mode == "SAME_UPPER" else total - total // 2
            found.pad[axis + 2] = total - found.pad[axis]
        if ceil:
            grow(found, axis, size, span)
    return found


def grow(w: Windows, axis: int, size: int, span: int) -> None:
    """ceil_mode: pads the end so that what is left over has a window."""
    over = size + w.pad[axis] + w.pad[axis + 2] - span
    if over < 0 or over % w.stride[axis] == 0:
        return
    last = -(-over // w.stride[axis]) * w.stride[axis]
    if last >= size + w.pad[axis]:
        raise Refusal("by ceil_mode its last window lies in the padding alone")
    w.pad[axis + 2] += last - over
    w.grown = True


def is_wide(i: Importer) -> bool:
    """It is an image of two dimensions as it stands."""
    return len(i.value(0).shape) == 4


def give_image(i: Importer, y: Tensor) -> None:
    """The result of windows, without the height that it had to have."""
    value = i.made(y, _IMAGE)
    i.give(value if is_wide(i) else value.reshape((*value.shape[:2], value.shape[3])))


@handles("Conv")
def conv(i: Importer, step: Step) -> None:
    x, w = image_of(i), i.value(1)
    if len(w.shape) != len(i.value(0).shape):
        raise Refusal(f"its weights are {words(w.shape)}, its image is {words(i.value(0).shape)}", unsupported=False)
    kernel = list(w.shape[2:])
    if step.wholes("kernel_shape", len(kernel), 0) not in (kernel, [0] * len(kernel)):
        raise Refusal(f"its kernel_shape is not that of its weights, {words(w.shape)}", unsupported=False)
    wide = (*w.shape[:2], 1, *w.shape[2:]) if len(w.shape) == 3 else w.shape
    if isinstance(w, Const):
        weights = i.held(w, w.array.reshape(wide).transpose(inverse(_IMAGE)), f"conv {wide}")
    else:
        weights = i.settle(w.reshape(wide), _IMAGE)
    bias = i.parameter(2, (w.shape[0],), "bias") if i.has(2) else None
    attrs = windows(i, step, x.shape, kernel).attrs()
    attrs["groups"] = step.whole("group", 1)
    give_image(i, i.emit("conv", i.settle(x, _IMAGE), weights, bias, out=i.out_for(pure=is_wide(i)), **attrs))


def kernel_of(i: Importer, step: Step) -> list[int]:
    rank = len(i.value(0).shape) - 2
    kernel = step.wholes("kernel_shape", rank, 0)
    if not all(kernel):
        raise Refusal("its kernel_shape is missing or 0", unsupported=False)
    return kernel


@handles("MaxPool")
def max_pool(i: Importer, step: Step) -> None:
    step.leave("storage_order")  # of the second output
    i.only_first("where the largest lay is not kept")
    x = image_of(i)
    w = windows(i, step, x.shape, kernel_of(i, step))
    give_image(i, i.emit("max_pool", i.settle(x, _IMAGE), out=i.out_for(pure=is_wide(i)), kernel=w.kernel, **w.attrs()))


@handles("AveragePool")
def average_pool(i: Importer, step: Step) -> None:
    x = image_of(i)
    w = windows(i, step, x.shape, kernel_of(i, step))
    count = step.whole("count_include_pad", 0) != 0
    if count and w.grown:
        raise Refusal("count_include_pad with a ceil_mode that matters: the last window would count what ONNX does not")
    kept = i.settle(x, _IMAGE)
    give_image(i, i.emit("average_pool", kept, out=i.out_for(pure=is_wide(i)), kernel=w.kernel, count_pad=float(count), **w.attrs()))


@handles("GlobalAveragePool")
def global_average_pool(i: Importer, step: Step) -> None:
    give_image(i, i.emit("global_average_pool", i.settle(image_of(i), _IMAGE), out=i.out_for(pure=is_wide(i))))


# ---- Normalisation -------------------------------------------------------------------------------------------------------------


@handles("BatchNormalization")
def batch_normalization(i: Importer, step: Step) -> None:
    training = step.whole("training_mode", 0) != 0 and i.source.opset >= 14
    if i.source.opset < 9 and step.whole("spatial", 1) != 1:
        raise Refusal("it has statistics for each pixel (spatial = 0)")
    momentum, epsilon = step.real("momentum", 0.9), step.real("epsilon", 1e-5)
    if not training:
        i.only_first("statistics are of training, and training_mode is not set")
    x = i.data(0)
    if len(x.shape) < 2:
        raise Refusal(f"its input is {words(x.shape)}: it has no channels", unsupported=False)
    want, channels = channels_last(len(x.shape)), (x.shape[1],)
    inputs = [i.settle(x, want)]
    for at, what in enumerate(("scale", "bias", "mean", "variance"), 1):
        value = i.value(at)
        if at > 2 and isinstance(value, Const):  # statistics are no weights
            i.values[i.step.inputs[at]] = Const(value.array, value.name, False)
        inputs.append(i.parameter(at, channels, what))
    if not training:
        return i.give(i.made(i.emit("batch_norm", *inputs, out=i.out_for(want), epsilon=epsilon), want))
    names = [i.out_for(want)] + [i.step.outputs[k] if k < len(i.step.outputs) and i.step.outputs[k] else "" for k in (1, 2)] + ["", ""]
    names = [name or i.fresh(f"{i.out}.{what}") for name, what in zip(names, ("y", "mean", "var", "batch_mean", "batch_var"), strict=True)]
    y = i._add("batch_norm_train", inputs, names, {"epsilon": epsilon, "momentum": momentum})
    i.give(i.made(y, want))
    for k in (1, 2):
        statistic = i.graph[names[k]]
        if inputs[2 + k].role == Role.STATE:
            i.graph.becomes(inputs[2 + k], statistic)
        i.values[names[k]] = i.made(statistic)
    return None


@handles("LayerNormalization", since=17)
def layer_normalization(i: Importer, step: Step) -> None:
    step.leave("stash_type")
    i.only_first("statistics of layer normalisation are not kept")
    x = i.data(0)
    axis = step.whole("axis", -1)
    if not -len(x.shape) <= axis < len(x.shape):
        raise Refusal(f"its input is {words(x.shape)}, it has no axis {axis}", unsupported=False)
    row = x.shape[axis % len(x.shape) :]

    def spread(array: AnyArray) -> AnyArray:
        return np.broadcast_to(array, row) if spreads(tuple(array.shape), row) else array

    scale = i.parameter(1, row, "scale", spread)
    bias = i.parameter(2, row, "bias", spread) if i.has(2) else None
    kept = i.emit("layer_norm", i.settle(x), scale, bias, out=i.out, epsilon=step.real("epsilon", 1e-5), axis=axis % len(x.shape))
    i.give(i.made(kept))


@handles("Softmax")
def softmax(i: Importer, step: Step) -> None:
    x = i.data(0)
    rank, old = len(x.shape), i.source.opset < 13
    axis = step.whole("axis", 1 if old else -1)
    if not -rank <= axis < rank:
        raise Refusal(f"its input is {words(x.shape)}, it has no axis {axis}", unsupported=False)
    axis %= rank
    if old and axis != rank - 1:  # all dimensions from axis on are one
        rows = (math.prod(x.shape[:axis]), math.prod(x.shape[axis:]))
        return i.give(i.made(i.emit("softmax", i.settle(x.reshape(rows)), out=i.out_for(pure=rows == x.shape))).reshape(x.shape))
    if not x.pure:
        x = plain(i.settle(x), x.shape)
    return i.give(View(i.emit("softmax", x.kept, out=i.out_for(x.perm), axis=x.perm[axis]), x.stored, x.perm, x.shape))


# ---- Shapes --------------------------------------------------------------------------------------------------------------------


@handles("Flatten")
def flatten(i: Importer, step: Step) -> None:
    x, axis = i.value(0), step.whole("axis", 1)
    rank = len(x.shape)
    if not -rank <= axis <= rank or (axis < 0 and i.source.opset < 11):
        raise Refusal(f"its input is {words(x.shape)}, it has no axis {axis}", unsupported=False)
    axis += rank if axis < 0 else 0
    shaped(i, x, (math.prod(x.shape[:axis]), math.prod(x.shape[axis:])))


def shaped(i: Importer, x: Value[Tensor], shape: Dims) -> None:
    """The same numbers in another shape."""
    i.give(Const(x.array.reshape(shape), i.out, x.trained) if isinstance(x, Const) else x.reshape(shape))


@handles("Reshape")
def reshape(i: Importer, step: Step) -> None:
    x, wanted = i.value(0), i.const(1, "shape")
    literal = i.source.opset >= 14 and step.whole("allowzero", 0) != 0
    if wanted.ndim != 1 or wanted.dtype.kind != "i" or wanted.size > 64:
        raise Refusal(f"its shape ({step.inputs[1]}) is no list of whole numbers", unsupported=False)
    dims = [int(d) for d in wanted]
    if not literal:
        if any(d == 0 and k >= len(x.shape) for k, d in enumerate(dims)):
            raise Refusal(f"{words(x.shape)} cannot be given the shape {dims}", unsupported=False)
        dims = [x.shape[k] if d == 0 else d for k, d in enumerate(dims)]
    known, all_of_it = math.prod(d for d in dims if d != -1), math.prod(x.shape)
    if dims.count(-1) == 1 and known > 0 and all_of_it % known == 0:
        dims[dims.index(-1)] = all_of_it // known
    if any(d < 0 for d in dims) or math.prod(dims) != all_of_it:
        raise Refusal(f"{words(x.shape)} cannot be given the shape {[int(d) for d in wanted]}", unsupported=False)
    shaped(i, x, tuple(dims))


@handles("Transpose")
def transpose(i: Importer, step: Step) -> None:
    x = i.value(0)
    given = step.attribute("perm", "ints")
    perm = tuple(reversed(range(len(x.shape)))) if given is None else tuple(int(p) for p in given)
    if sorted(perm) != list(range(len(x.shape))):
        raise Refusal(f"its perm is {list(perm)}, but its input is {words(x.shape)}", unsupported=False)
    if isinstance(x, Const):
        return i.give(Const(x.array.transpose(perm), i.out, x.trained))
    return i.give(i.turned(x, perm))


@handles("Concat")
def concat(i: Importer, step: Step) -> None:
    values, axis = [i.value(k) for k in range(len(step.inputs))], step.attribute("axis", "i")
    if not values or axis is None:
        raise Refusal("it has no inputs or no axis", unsupported=False)
    shapes = [v.shape for v in values]
    rank = len(shapes[0])
    if not -rank <= axis < rank:
        raise Refusal(f"its input is {words(shapes[0])}, it has no axis {axis}", unsupported=False)
    axis %= rank
    if any(len(s) != rank or any(s[k] != shapes[0][k] for k in range(rank) if k != axis) for s in shapes):
        raise Refusal(f"{' and '.join(map(words, shapes[:4]))} differ in more than dimension {axis}", unsupported=False)
    arrays = [v.array for v in values if isinstance(v, Const)]
    if len(arrays) == len(values) and i.out not in i.source.outputs and len({a.dtype for a in arrays}) == 1:
        return i.give(Const(np.concatenate(arrays, axis), i.out, False))
    shape = (*shapes[0][:axis], sum(s[axis] for s in shapes), *shapes[0][axis + 1 :])
    values = [v if isinstance(v, Const) or v.pure else plain(i.settle(v), v.shape) for v in values]
    kept, common, want = i.align(values, broadcasting=False)
    order = common.perm if common is not None else want
    y = i.emit("concat", *kept, out=i.out_for(order), axis=order[axis])
    return i.give(View(y, permuted(shape, inverse(order)), order, shape))


@handles("Constant")
def constant(i: Importer, step: Step) -> None:
    tensor, real, reals = step.attribute("value", "t"), step.attribute("value_float", "f"), step.attribute("value_floats", "floats")
    whole, wholes = step.attribute("value_int", "i"), step.attribute("value_ints", "ints")
    given = [v for v in (tensor, real, reals, whole, wholes) if v is not None]
    if len(given) != 1:
        raise Refusal("it has no value that Coltrain reads: texts and sparse tensors are none")
    if tensor is not None:
        array = tensor_array(tensor)
    else:
        array = np.array(given[0], dtype=np.float32 if real is not None or reals is not None else np.int64)
    i.give(Const(array, i.out, False))
