# SPDX-License-Identifier: Apache-2.0
"""How values of one format lie in the other.

ONNX keeps images as NCHW, Coltrain as NHWC, so a value of one side is kept on the other with its dimensions in another order, and
many operators do not care. A :class:`View` says what a value is of what is kept: transposed, then given another shape. Both are
carried along until an operator needs the value in a certain order; only then a node is added that moves numbers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

T = TypeVar("T")
Dims: TypeAlias = tuple[int, ...]
AnyArray: TypeAlias = npt.NDArray[Any]


class Refusal(Exception):
    """A node cannot be had on the other side; the text is the reason."""

    def __init__(self, reason: str, unsupported: bool = True) -> None:
        super().__init__(reason)
        self.unsupported = unsupported
        """It may be a good model; else there is a mistake in it."""


@dataclass(frozen=True)
class View(Generic[T]):
    """The value is `kept`, of the shape `stored`, transposed by `perm`, then given the shape `shape`."""

    kept: T
    stored: Dims
    perm: Dims
    shape: Dims

    @property
    def pure(self) -> bool:
        """It is only transposed."""
        return permuted(self.stored, self.perm) == self.shape

    def reshape(self, shape: Dims) -> View[T]:
        return View(self.kept, self.stored, self.perm, shape)


@dataclass(frozen=True)
class Const:
    """A value that is known, in the order of the side that it comes from."""

    array: AnyArray
    name: str
    trained: bool
    """A weight, not a constant."""

    @property
    def shape(self) -> Dims:
        return tuple(int(d) for d in self.array.shape)


Value: TypeAlias = "View[T] | Const"


def permuted(shape: Dims, perm: Sequence[int]) -> Dims:
    return tuple(shape[p] for p in perm)


def inverse(perm: Sequence[int]) -> Dims:
    back = [0] * len(perm)
    for i, p in enumerate(perm):
        back[p] = i
    return tuple(back)


def identity(rank: int) -> Dims:
    return tuple(range(rank))


def plain(kept: T, shape: Dims) -> View[T]:
    return View(kept, shape, identity(len(shape)), shape)


def stays(shape: Dims, perm: Sequence[int]) -> bool:
    """Whether a transposition leaves all numbers where they are, because it only moves dimensions of 1."""
    large = [p for p in perm if shape[p] != 1]
    return large == sorted(large)


def broadcast(a: Dims, b: Dims) -> Dims:
    """The shape of two that are broadcast."""
    rank = max(len(a), len(b))
    a, b = (1,) * (rank - len(a)) + a, (1,) * (rank - len(b)) + b
    if any(x != y and 1 not in (x, y) for x, y in zip(a, b, strict=True)):
        raise Refusal(f"{words(a)} and {words(b)} cannot be broadcast to one shape", unsupported=False)
    return tuple(y if x == 1 else x for x, y in zip(a, b, strict=True))


def spreads(small: Dims, shape: Dims) -> bool:
    """Whether it is broadcast to that shape."""
    return len(small) <= len(shape) and all(a in (1, b) for a, b in zip(reversed(small), reversed(shape), strict=False))


def words(shape: Dims) -> str:
    return "x".join(map(str, shape)) or "a number"


def fresh(name: str, taken: set[str]) -> str:
    """The name, or one like it, that is not taken; it is from now on."""
    number, found = 1, name
    while found in taken:
        number += 1
        found = f"{name}.{number}"
    taken.add(found)
    return found


class Translator(Generic[T]):
    """What both directions do alike. T is what the target calls a tensor."""

    names: Sequence[str] = ()
    """Of what the next nodes make that move numbers; "" for any."""

    def next_name(self) -> str:
        name, self.names = (self.names[0], self.names[1:]) if self.names else ("", ())
        return name

    # ---- What a direction gives ----

    def transpose(self, kept: T, shape: Dims, perm: Dims) -> T:
        """Adds a node; shape is that of kept."""
        raise NotImplementedError

    def reshape(self, kept: T, shape: Dims, to: Dims) -> T:
        """Adds a node; shape is that of kept."""
        raise NotImplementedError

    def held(self, const: Const, array: AnyArray, form: str) -> T:
        """A tensor of the target with that array, which is the constant in some form."""
        raise NotImplementedError

    # ---- Orders ----

    def view(self, value: Value[T]) -> View[T]:
        """A constant becomes a tensor as it is."""
        if isinstance(value, View):
            return value
        return plain(self.held(value, value.array, "plain"), value.shape)

    def settle(self, value: View[T], want: Dims | None = None) -> T:
        """A tensor of which the value is the transposition by `want`; without it, the value itself."""
        want = identity(len(value.shape)) if want is None else want
        if value.pure and value.perm == want:
            return value.kept
        kept, stored, perm = value.kept, value.stored, value.perm
        if not value.pure:
            if not stays(stored, perm):
                kept, stored = self.transpose(kept, stored, perm), permuted(stored, perm)
            if stored != value.shape:
                kept = self.reshape(kept, stored, value.shape)
            stored, perm = value.shape, identity(len(value.shape))
        back = inverse(want)
        step = tuple(perm[i] for i in back)
        if step == identity(len(step)):
            return kept
        if stays(stored, step):
            return self.reshape(kept, stored, permuted(stored, step))
        return self.transpose(kept, stored, step)

    def settled_as(self, value: View[T], name: str) -> T:
        """The value itself, by nodes of which the last makes what is called so; what is kept, if no node is needed."""
        plan = _Plan()
        plan.settle(View(0, value.stored, value.perm, value.shape))
        self.names = [""] * (plan.nodes - 1) + [name] if plan.nodes else []
        try:
            return self.settle(value)
        finally:
            self.names = []

    def turned(self, value: View[T], perm: Dims) -> View[T]:
        """The value transposed, without a node if it has no other shape waiting."""
        if not value.pure:
            value = plain(self.settle(value), value.shape)
        return View(value.kept, value.stored, permuted(value.perm, perm), permuted(value.shape, perm))

    def align(self, values: Sequence[Value[T]], broadcasting: bool) -> tuple[list[T], View[T] | None, Dims]:
        """Brings operands of one element-wise operator, or parts of one tensor, into one order. Returns the tensors; the common form of
        all, where they have one; and the order of the result.
        """
        views = [v for v in values if isinstance(v, View)]
        if len(views) == len(values) and len({(v.stored, v.perm, v.shape) for v in views}) == 1:
            return [v.kept for v in views], views[0], views[0].perm
        rank = max(len(v.shape) for v in values)
        orders = [v.perm for v in views if v.pure and len(v.shape) == rank]
        want = next((perm for perm in orders if perm != identity(rank)), identity(rank))
        kept = []
        for value in values:
            wide = (1,) * (rank - len(value.shape)) + value.shape
            if isinstance(value, View):
                kept.append(self.settle(value if want == identity(rank) else value.reshape(wide), None if want == identity(rank) else want))
                continue
            array = value.array.reshape(wide).transpose(inverse(want))
            while broadcasting and array.ndim > 1 and array.shape[0] == 1:
                array = array[0]
            kept.append(self.held(value, array, f"{array.shape}{want}"))
        return kept, None, want

    def placed(self, kept: T, shape: Dims, common: View[T] | None, want: Dims) -> View[T]:
        """The result of what was aligned."""
        if common is not None:
            return View(kept, common.stored, common.perm, common.shape)
        return View(kept, permuted(shape, inverse(want)), want, shape)

    def columns(self, value: View[T], width: int) -> tuple[View[T], npt.NDArray[np.intp]]:
        """Rows of numbers for a product: a view of two dimensions whose columns may stand in another order, and that order: column j of
        the value is column order[j] of the result. So weights move instead of numbers.
        """
        rows = value.shape[0]
        if value.perm[0] != 0 or value.stored[0] != rows or math.prod(value.stored[1:]) != width:
            return plain(self.settle(value), value.shape), np.arange(width)
        places = np.arange(width).reshape(value.stored[1:])
        order = places.transpose([p - 1 for p in value.perm[1:]]).reshape(-1)
        kept = value.kept if len(value.stored) == 2 else self.reshape(value.kept, value.stored, (rows, width))
        return plain(kept, (rows, width)), order


class _Plan(Translator[int]):
    """Counts the nodes that settle() adds."""

    nodes = 0

    def transpose(self, kept: int, shape: Dims, perm: Dims) -> int:
        self.nodes += 1
        return kept

    def reshape(self, kept: int, shape: Dims, to: Dims) -> int:
        self.nodes += 1
        return kept
