# SPDX-License-Identifier: Apache-2.0
"""From a graph of Coltrain to ONNX, opset 17. Nodes without a counterpart are all named at once."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import onnx.checker
import onnx.helper
import onnx.numpy_helper

from .._abi import Role
from ..errors import UnsupportedError
from ..graph import Node
from ..network import Network
from ._layout import AnyArray, Const, Dims, Refusal, Translator, Value, View, broadcast, fresh, identity, inverse, permuted, plain

OPSET, IR_VERSION = 17, 8
IMAGES = "coltrain.images"  # in the model's metadata: inputs and outputs that are NHWC in Coltrain, NCHW here
_IMAGE: Dims = (0, 2, 3, 1)  # an image of ours is the transposition of ONNX's by this
_TRAINING = "it belongs to training: export the graph that answers"

_HANDLERS: dict[str, Callable[[Exporter, Node], None]] = {}
_CLEAR = {"relu", "leaky_relu", "clip", "sigmoid", "tanh", "erf", "gelu", "scale", "add", "sub", "mul", "div", "concat"}
_IMAGES = {"conv", "max_pool", "average_pool", "global_average_pool", "batch_norm", "batch_norm_train"}
_REASONS = {
    "dropout": "ONNX drops by other random numbers: describe the network without it for inference",
    "cross_entropy": _TRAINING,
    "mse": _TRAINING,
}


def handles(*names: str) -> Callable[[Callable[[Exporter, Node], None]], Callable[[Exporter, Node], None]]:
    """Enters a function into the table."""

    def enter(function: Callable[[Exporter, Node], None]) -> Callable[[Exporter, Node], None]:
        for name in names:
            _HANDLERS[name] = function
        return function

    return enter


class Exporter(Translator[str]):
    """One network on its way. Tensors of ONNX are names."""

    def __init__(self, network: Network) -> None:
        self.graph, self.weights = network.graph, network.values
        self.images: list[str] = []
        self.nodes: list[onnx.NodeProto] = []
        self.initialisers: dict[str, AnyArray] = {}
        self.values: dict[int, Value[str]] = {}
        self.all = self.graph.nodes
        self.infos = {t.number: t.info for t in self.graph.tensors}
        self.results = {n for n, info in self.infos.items() if info.role == Role.OUTPUT}
        self.used = {t.number for node in self.all for t in node.inputs if t is not None}
        self.node = self.all[0]
        self._names = {info.name for info in self.infos.values()}
        self._held: dict[tuple[str, str], str] = {}
        self._called: set[str] = set()

    # ---- What the target has ----

    def fresh(self, name: str) -> str:
        return fresh(name, self._names)

    def emit(self, op: str, inputs: Sequence[str], outputs: Sequence[str] = (), **attrs: Any) -> str:
        """A node; without names of outputs it makes one between."""
        made = list(outputs) or [self.fresh(f"{self.node.name}.{op.lower()}")]
        called = self.node.name if outputs else made[0]
        while called in self._called:
            called += "+"
        self._called.add(called)
        self.nodes.append(onnx.helper.make_node(op, list(inputs), made, name=called, **attrs))
        return made[0]

    def _moved(self, op: str, inputs: Sequence[str], **attrs: Any) -> str:
        name = self.next_name()
        return self.emit(op, inputs, [name] if name else [], **attrs)

    def transpose(self, kept: str, shape: Dims, perm: Dims) -> str:
        return self._moved("Transpose", [kept], perm=perm)

    def reshape(self, kept: str, shape: Dims, to: Dims) -> str:
        if len(to) == 2 and to[0] == shape[0]:
            return self._moved("Flatten", [kept], axis=1)
        return self._moved("Reshape", [kept, self.extra("shape", np.array(to, dtype=np.int64))])

    def held(self, const: Const, array: AnyArray, form: str) -> str:
        if (const.name, form) not in self._held:
            name = self.fresh(f"{const.name}.form") if const.name in self.initialisers else const.name
            self._held[const.name, form] = name
            self.initialisers[name] = np.ascontiguousarray(array)
        return self._held[const.name, form]

    def extra(self, what: str, array: AnyArray) -> str:
        """A constant of the node."""
        name = self.fresh(f"{self.node.name}.{what}")
        self.initialisers[name] = array
        return name

    # ---- What a node gets ----

    def value(self, at: int) -> Value[str]:
        tensor = self.node.inputs[at]
        if tensor is None:
            raise Refusal(f"input {at} is missing")
        return self.values[tensor.number]

    def data(self, at: int) -> View[str]:
        return self.view(self.value(at))

    def has(self, at: int) -> bool:
        return at < len(self.node.inputs) and self.node.inputs[at] is not None

    def vector(self, at: int) -> str:
        """A weight as it is."""
        return self.settle(self.data(at))

    def attr(self, name: str) -> float:
        return self.node.attrs[name][0]

    def whole(self, name: str) -> int:
        return int(self.attr(name))

    def wholes(self, name: str) -> list[int]:
        return [int(v) for v in self.node.attrs[name]]

    @property
    def out(self) -> str:
        return self.infos[self.node.outputs[0].number].name

    def out_for(self, perm: Dims, pure: bool = True) -> list[str]:
        """The name for what the node of ONNX makes, of which our tensor is the transposition by perm: that of the tensor, unless this is an
        output of the network, which a node behind has to make of it.
        """
        direct = pure and perm in (identity(len(perm)), _IMAGE)
        return [self.out] if direct or self.node.outputs[0].number not in self.results else []

    @property
    def shape(self) -> Dims:
        """Of what the node makes."""
        return self.infos[self.node.outputs[0].number].shape

    def give(self, value: Value[str], at: int = 0) -> None:
        self.values[self.node.outputs[at].number] = value

    def made(self, name: str, want: Dims | None = None, at: int = 0) -> None:
        """What the node makes is called so, and it is the transposition of that by want."""
        shape = self.infos[self.node.outputs[at].number].shape
        want = identity(len(shape)) if want is None else want
        self.give(View(name, permuted(shape, inverse(want)), want, shape), at)

    # ---- The whole ----

    def _is_image(self, tensor: int) -> bool:
        """Whether an input of four dimensions reaches an operator of images in its order."""
        seen, waiting = {tensor}, [tensor]
        while waiting:
            now = waiting.pop()
            for node in self.all:
                numbers = [t.number for t in node.inputs if t is not None]
                if now in numbers and node.op in _IMAGES and numbers[0] == now:
                    return True
                if now in numbers and node.op in _CLEAR and node.outputs[0].number not in seen:
                    seen.add(node.outputs[0].number)
                    waiting.append(node.outputs[0].number)
        return False

    def _inputs(self) -> list[onnx.ValueInfoProto]:
        found = []
        for number, info in self.infos.items():
            if info.role in (Role.WEIGHT, Role.STATE):
                self.values[number] = Const(self.weights[info.name], info.name, info.role == Role.WEIGHT)
            elif info.role in (Role.INPUT, Role.LABEL) and number in self.used:
                want = _IMAGE if len(info.shape) == 4 and self._is_image(number) else identity(len(info.shape))
                stored = permuted(info.shape, inverse(want))
                self.images += [info.name] * (want == _IMAGE)
                self.values[number] = View(info.name, stored, want, info.shape)
                found.append(onnx.helper.make_tensor_value_info(info.name, onnx.TensorProto.FLOAT, stored))
        return found

    def _outputs(self) -> list[onnx.ValueInfoProto]:
        found = []
        for number in sorted(self.results):
            value, name = self.view(self.values[number]), self.infos[number].name
            kept, stored = value.kept, value.stored
            image = value.pure and value.perm == _IMAGE
            self.images += [name] * image
            if not image:
                self.node = self.all[self.infos[number].node or 0]
                kept, stored = self.settled_as(value, name), value.shape
            if kept != name:
                self.emit("Identity", [kept], [name])
            found.append(onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, stored))
        return found

    def run(self, what: str) -> onnx.ModelProto:
        """The model, or an error that names all nodes that were refused."""
        inputs = self._inputs()
        refused = []
        lost: set[int] = set()
        for index in self.graph.order():
            self.node = self.all[index]
            outputs = {t.number for t in self.node.outputs}
            try:
                if self.node.backward or self.node.op not in _HANDLERS:
                    reason = _TRAINING if self.node.backward else "ONNX has no such operator"
                    raise Refusal(_REASONS.get(self.node.op, reason))
                if lost & {t.number for t in self.node.inputs if t is not None}:
                    lost |= outputs
                    continue
                _HANDLERS[self.node.op](self, self.node)
            except Refusal as refusal:
                refused.append(f"  node {self.node.name} ({self.node.op}): {refusal}")
                lost |= outputs
        if not refused and not self.results:
            raise UnsupportedError(f"{what} cannot be exported: it has no outputs (Graph.result() makes one)")
        if refused:
            count = f"{len(refused)} node{'s' if len(refused) > 1 else ''}"
            raise UnsupportedError(f"{what} cannot be exported, because of {count}:\n" + "\n".join(refused))
        outputs_ = self._outputs()
        tensors = [onnx.numpy_helper.from_array(a, n) for n, a in self.initialisers.items()]
        graph = onnx.helper.make_graph(self.nodes, "coltrain", inputs, outputs_, tensors)
        model = onnx.helper.make_model(graph, producer_name="coltrain", opset_imports=[onnx.helper.make_opsetid("", OPSET)])
        model.ir_version = IR_VERSION
        onnx.helper.set_model_props(model, {IMAGES: ",".join(self.images)})
        onnx.checker.check_model(model)
        return model


# ---- Element by element ---------------------------------------------------------------------------------------------------------

_UNARY = {"relu": "Relu", "sigmoid": "Sigmoid", "tanh": "Tanh", "erf": "Erf", "leaky_relu": "LeakyRelu", "clip": "Clip", "scale": "Mul"}


@handles(*_UNARY)
def unary(e: Exporter, node: Node) -> None:
    x, inputs, attrs = e.data(0), [], {}
    if node.op == "leaky_relu":
        attrs["alpha"] = e.attr("alpha")
    if node.op == "scale":
        inputs = [e.extra("factor", np.array(e.attr("factor"), dtype=np.float32))]
    if node.op == "clip":
        inputs = [e.extra(key, np.array(e.attr(key), dtype=np.float32)) if math.isfinite(e.attr(key)) else "" for key in ("min", "max")]
    e.give(View(e.emit(_UNARY[node.op], [x.kept, *inputs], e.out_for(x.perm, x.pure), **attrs), x.stored, x.perm, x.shape))


@handles("gelu")
def gelu(e: Exporter, node: Node) -> None:
    """x / 2 (1 + erf(x / sqrt 2)): ONNX has an operator for it from opset 20 on."""
    x = e.data(0)

    def number(what: str, value: float) -> str:
        return e.extra(what, np.array(value, dtype=np.float32))

    inner = e.emit("Erf", [e.emit("Mul", [x.kept, number("root", math.sqrt(0.5))])])
    part = e.emit("Mul", [x.kept, e.emit("Add", [inner, number("one", 1)])])
    e.give(View(e.emit("Mul", [part, number("half", 0.5)], e.out_for(x.perm, x.pure)), x.stored, x.perm, x.shape))


@handles("add", "sub", "mul", "div")
def binary(e: Exporter, node: Node) -> None:
    a, b = e.value(0), e.value(1)
    kept, common, want = e.align([a, b], broadcasting=True)
    made = e.emit(node.op.capitalize(), kept, e.out_for(want, common is None or common.pure))
    e.give(e.placed(made, broadcast(a.shape, b.shape), common, want))


# ---- Products ------------------------------------------------------------------------------------------------------------------


@handles("conv")
def conv(e: Exporter, node: Node) -> None:
    x, w = e.data(0), e.value(1)
    if isinstance(w, Const):
        weights, kernel = e.held(w, w.array.transpose(inverse(_IMAGE)), "conv"), w.shape[1:3]
    else:
        weights, kernel = e.settle(w, _IMAGE), w.shape[1:3]
    inputs = [e.settle(x, _IMAGE), weights] + ([e.vector(2)] if e.has(2) else [])
    attrs = {"kernel_shape": kernel, "strides": e.wholes("stride"), "dilations": e.wholes("dilation"), "pads": e.wholes("pad")}
    e.made(e.emit("Conv", inputs, [e.out], group=e.whole("groups"), **attrs), _IMAGE)


@handles("linear")
def linear(e: Exporter, node: Node) -> None:
    x, w = e.data(0), e.value(1)
    bias = [e.vector(2)] if e.has(2) else []
    if len(x.shape) > 2:
        turned = e.held(w, w.array.T, "turned") if isinstance(w, Const) else e.settle(e.turned(w, (1, 0)))
        if not bias:
            return e.made(e.emit("MatMul", [e.settle(x), turned], [e.out]))
        return e.made(e.emit("Add", [e.emit("MatMul", [e.settle(x), turned]), *bias], [e.out]))
    if isinstance(w, Const):
        flat, order = e.columns(x, w.shape[1])
        moved = np.empty_like(w.array)
        moved[:, order] = w.array
        weights = e.held(w, moved, f"linear {hash(order.tobytes())}")
    else:
        flat, weights = plain(e.settle(x), x.shape), e.settle(w)
    return e.made(e.emit("Gemm", [flat.kept, weights, *bias], [e.out], transB=1))


@handles("matmul")
def matmul(e: Exporter, node: Node) -> None:
    kept = []
    for at, key in enumerate(("transpose_a", "transpose_b")):
        x = e.data(at)
        rank = len(x.shape)
        kept.append(e.settle(e.turned(x, (*range(rank - 2), rank - 1, rank - 2)) if e.attr(key) else x))
    e.made(e.emit("MatMul", kept, [e.out]))


# ---- Windows -------------------------------------------------------------------------------------------------------------------


@handles("max_pool", "average_pool")
def pool(e: Exporter, node: Node) -> None:
    attrs: dict[str, Any] = {"kernel_shape": e.wholes("kernel"), "strides": e.wholes("stride"), "pads": e.wholes("pad")}
    if node.op == "max_pool":
        attrs["dilations"] = e.wholes("dilation")
    else:
        attrs["count_include_pad"] = e.whole("count_pad")
        if e.wholes("dilation") != [1, 1]:
            raise Refusal(f"opset {OPSET} has no average of windows with gaps (dilation)")
    op = "MaxPool" if node.op == "max_pool" else "AveragePool"
    e.made(e.emit(op, [e.settle(e.data(0), _IMAGE)], [e.out], **attrs), _IMAGE)


@handles("global_average_pool")
def global_average_pool(e: Exporter, node: Node) -> None:
    e.made(e.emit("GlobalAveragePool", [e.settle(e.data(0), _IMAGE)], [e.out]), _IMAGE)


# ---- Normalisation -------------------------------------------------------------------------------------------------------------


@handles("batch_norm", "batch_norm_train")
def batch_norm(e: Exporter, node: Node) -> None:
    x = e.data(0)
    rank = len(x.shape)
    want = (0, *range(2, rank), 1)
    inputs = [e.settle(x, want), *(e.vector(at) for at in range(1, 5))]
    if node.op == "batch_norm":
        return e.made(e.emit("BatchNormalization", inputs, e.out_for(want), epsilon=e.attr("epsilon")), want)
    if any(t.number in e.used | e.results for t in node.outputs[3:]):
        raise Refusal("the mean and variance of its batch are used, which ONNX does not give")
    names = [*(e.out_for(want) or [e.fresh(f"{e.out}.y")]), *(e.infos[t.number].name for t in node.outputs[1:3])]
    attrs = {"epsilon": e.attr("epsilon"), "momentum": e.attr("momentum"), "training_mode": 1}
    e.made(e.emit("BatchNormalization", inputs, names, **attrs), want)
    for at in (1, 2):
        e.made(names[at], at=at)
    return None


@handles("layer_norm")
def layer_norm(e: Exporter, node: Node) -> None:
    x = e.data(0)
    inputs = [e.settle(x), e.vector(1), *([e.vector(2)] if e.has(2) else [])]
    axis = e.whole("axis")
    e.made(e.emit("LayerNormalization", inputs, [e.out], axis=axis if axis >= 0 else len(x.shape) - 1, epsilon=e.attr("epsilon")))


@handles("softmax")
def softmax(e: Exporter, node: Node) -> None:
    x = e.data(0)
    x = x if x.pure else plain(e.settle(x), x.shape)
    axis = e.whole("axis")
    axis = axis if axis >= 0 else len(x.shape) - 1
    e.give(View(e.emit("Softmax", [x.kept], e.out_for(x.perm), axis=x.perm[axis]), x.stored, x.perm, x.shape))


# ---- Shapes --------------------------------------------------------------------------------------------------------------------


@handles("reshape", "flatten")
def reshape(e: Exporter, node: Node) -> None:
    x = e.value(0)
    e.give(Const(x.array.reshape(e.shape), e.out, x.trained) if isinstance(x, Const) else x.reshape(e.shape))


@handles("transpose")
def transpose(e: Exporter, node: Node) -> None:
    x, perm = e.value(0), tuple(e.wholes("perm"))
    e.give(Const(x.array.transpose(perm), e.out, x.trained) if isinstance(x, Const) else e.turned(x, perm))


@handles("concat")
def concat(e: Exporter, node: Node) -> None:
    values = [e.value(at) for at in range(len(node.inputs))]
    values = [v if isinstance(v, Const) or v.pure else plain(e.settle(v), v.shape) for v in values]
    kept, common, want = e.align(values, broadcasting=False)
    order = common.perm if common is not None else want
    made = e.emit("Concat", kept, e.out_for(order), axis=order[e.whole("axis")])
    e.give(View(made, permuted(e.shape, inverse(order)), order, e.shape))


@handles("slice")
def slice_(e: Exporter, node: Node) -> None:
    x = e.data(0)
    x = x if x.pure else plain(e.settle(x), x.shape)
    begin, size, axis = e.whole("begin"), e.whole("size"), x.perm[e.whole("axis")]
    inputs = [e.extra(key, np.array([v], dtype=np.int64)) for key, v in (("begin", begin), ("end", begin + size), ("axis", axis))]
    e.give(View(e.emit("Slice", [x.kept, *inputs], e.out_for(x.perm)), permuted(e.shape, inverse(x.perm)), x.perm, e.shape))


def _folded(arrays: Sequence[AnyArray], epsilon: float) -> list[AnyArray]:
    """Weights and bias of a layer that contain its normalisation."""
    w, scale, bias, mean, variance = arrays[:5]
    own = arrays[5] if len(arrays) > 5 else np.zeros_like(scale)
    factor = scale.astype(np.float64) / np.sqrt(variance.astype(np.float64) + epsilon)
    rows = w * factor.reshape(-1, *[1] * (w.ndim - 1))
    return [rows.astype(np.float32), ((own - mean) * factor + bias).astype(np.float32)]


@handles("batch_norm_fold")
def batch_norm_fold(e: Exporter, node: Node) -> None:
    """Weights are folded here, because all of it is known."""
    values = [e.value(at) for at in range(len(node.inputs))]
    arrays = [v.array for v in values if isinstance(v, Const)]
    if len(arrays) != len(values):
        raise Refusal("its weights are computed: ONNX has no such operator")
    for at, array in enumerate(_folded(arrays, e.attr("epsilon"))):
        e.give(Const(array, e.infos[node.outputs[at].number].name, True), at)
