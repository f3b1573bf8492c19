# SPDX-License-Identifier: Apache-2.0
"""Operators of ONNX that work element by element, normalise, or say that a tensor has another shape."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from .._abi import Role
from ..graph import Attribute, Tensor
from ._importing import Importer, handles
from ._layout import AnyArray, Const, Dims, Refusal, Value, View, broadcast, identity, inverse, permuted, plain, spreads, words
from ._reading import Step, tensor_array

_LOWEST = -3.4028234e38

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


# ---- Normalisation -------------------------------------------------------------------------------------------------------------


def channels_last(rank: int) -> Dims:
    """Of what a value with its channels in dimension 1 is the transposition."""
    return (0, rank - 1, *range(1, rank - 1)) if rank > 2 else identity(rank)


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
