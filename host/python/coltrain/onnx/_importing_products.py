# SPDX-License-Identifier: Apache-2.0
"""Operators of ONNX that multiply matrices, and those whose windows go over images."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ..graph import Attribute, Tensor
from ._importing import IMAGE, Importer, handles
from ._layout import AnyArray, Const, Dims, Refusal, Value, View, broadcast, inverse, plain, spreads, words
from ._reading import Step

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
    value = i.made(y, IMAGE)
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
        weights = i.held(w, w.array.reshape(wide).transpose(inverse(IMAGE)), f"conv {wide}")
    else:
        weights = i.settle(w.reshape(wide), IMAGE)
    bias = i.parameter(2, (w.shape[0],), "bias") if i.has(2) else None
    attrs = windows(i, step, x.shape, kernel).attrs()
    attrs["groups"] = step.whole("group", 1)
    give_image(i, i.emit("conv", i.settle(x, IMAGE), weights, bias, out=i.out_for(pure=is_wide(i)), **attrs))


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
    give_image(i, i.emit("max_pool", i.settle(x, IMAGE), out=i.out_for(pure=is_wide(i)), kernel=w.kernel, **w.attrs()))


@handles("AveragePool")
def average_pool(i: Importer, step: Step) -> None:
    x = image_of(i)
    w = windows(i, step, x.shape, kernel_of(i, step))
    count = step.whole("count_include_pad", 0) != 0
    if count and w.grown:
        raise Refusal("count_include_pad with a ceil_mode that matters: the last window would count what ONNX does not")
    kept = i.settle(x, IMAGE)
    give_image(i, i.emit("average_pool", kept, out=i.out_for(pure=is_wide(i)), kernel=w.kernel, count_pad=float(count), **w.attrs()))


@handles("GlobalAveragePool")
def global_average_pool(i: Importer, step: Step) -> None:
    give_image(i, i.emit("global_average_pool", i.settle(image_of(i), IMAGE), out=i.out_for(pure=is_wide(i))))
