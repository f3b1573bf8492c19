# SPDX-License-Identifier: Apache-2.0
"""Networks as graphs of operators: described, differentiated, and computed in double precision. No device is needed.

    graph = coltrain.Graph()
    x = graph.input("x", (32, 784))
    w = graph.weight("w", (10, 784))
    graph.result(graph.add("linear", x, w, name="fc"))
    graph.check()
    y = graph.run({"x": pixels, "w": weights})["fc"]

docs/graph.md has the operators, their inputs and attributes.
"""

from __future__ import annotations

import ctypes
import functools
import threading
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, SupportsIndex, TypeAlias

import numpy as np
import numpy.typing as npt

from ._abi import (
    CT_GRAPH_DIMS,
    CT_REFERENCE_MOST_DOUBLES,
    Format,
    Initial,
    Optimiser,
    Role,
    ScheduleKind,
    ct_attr,
    ct_graph_info,
    ct_new_node,
    ct_new_tensor,
    ct_node_info,
    ct_optimise,
    ct_reference,
    ct_schedule,
    ct_tensor_info,
    ct_value,
)
from ._arrays import Array, address, reals
from ._lib import lib
from ._numbers import U64, member, real, whole
from .errors import ArgumentError, NoSpaceError, error_of

F64: TypeAlias = npt.NDArray[np.float64]
_MOST_OUTPUTS = 8  # more than any operator makes
Attribute: TypeAlias = float | Sequence[float]


@dataclass(frozen=True, slots=True)
class Tensor:
    """A tensor of a graph: a handle, equal to any other of the same tensor."""

    graph: Graph
    number: int
    """That the library gave it, from 1 on."""

    @property
    def info(self) -> TensorInfo:
        """What is known of it at this moment."""
        return self.graph._tensor_info(self.number)

    @property
    def name(self) -> str:
        """Unique in a checked graph."""
        return self.info.name

    @property
    def shape(self) -> tuple[int, ...]:
        """Its dimensions, the batch first; () while they are not known."""
        return self.info.shape

    @property
    def role(self) -> Role:
        """What it is for."""
        return self.info.role

    def __repr__(self) -> str:
        info = self.info
        return f"<coltrain.Tensor {info.name}: {'x'.join(map(str, info.shape)) or '?'}, {info.role.name.lower()}>"


@dataclass(frozen=True, slots=True)
class TensorInfo:
    """What is known of a tensor."""

    name: str
    shape: tuple[int, ...]
    """() while it is not known."""
    format: Format
    role: Role
    initial: Initial
    node: int | None
    """The number of the node that makes it."""
    gradient: Tensor | None
    becomes: Tensor | None
    """What it is after a run."""
    elements: int
    """0 while the shape is not known."""


@dataclass(frozen=True, slots=True)
class Node:
    """A node as it is used: an operator, applied to tensors."""

    index: int
    op: str
    name: str
    inputs: tuple[Tensor | None, ...]
    """None: left out."""
    outputs: tuple[Tensor, ...]
    attrs: dict[str, tuple[float, ...]]
    """With what was left out when it was added."""
    macs: int
    """Multiply-accumulates; 0 for what has no products, and for shapes that are not known."""
    backward: bool
    """Of gradients or updates."""


@dataclass(frozen=True, slots=True)
class GraphInfo:
    """What is known of a graph."""

    nodes: int
    tensors: int
    weights: int
    """Elements of all weights."""
    states: int
    """Elements of all states."""
    macs: int
    checked: bool


class Schedule(NamedTuple):
    """Learning rates by the number of the step, from 0 on (coltrain/graph.h has the formulas)."""

    rate: float
    """0 to 1000."""
    kind: ScheduleKind | str = ScheduleKind.CONSTANT
    """constant, step or cosine."""
    warmup: int = 0
    """Steps in which the rate rises."""
    period: int = 0
    """Steps; at least 1 where it is used."""
    factor: float = 0.0
    """0 to 1."""
    floor: float = 0.0
    """0 to rate."""

    def at(self, step: int) -> float:
        """The rate of a step."""
        return lib.ct_schedule_rate(ctypes.byref(_schedule(self)), whole(step, "step", U64))


class Update(NamedTuple):
    """Numbers of updates that a member of a network has for itself; 0 for Adam's betas and epsilon: 0.9, 0.999, 1e-8."""

    schedule: Schedule | float
    momentum: float = 0.0
    weight_decay: float = 0.0
    """Above 0 where the graph's weights decay."""
    beta1: float = 0.0
    beta2: float = 0.0
    epsilon: float = 0.0


def _update(u: Update) -> ct_optimise:
    return optimise_of(u.schedule, Optimiser.SGD, 0, {name: getattr(u, name) for name in u._fields[1:]})


def operators() -> tuple[str, ...]:
    """The names of all operators, those that gradients are made of too."""
    names: list[str] = []
    while name := lib.ct_graph_op_name(len(names)):
        names.append(name.decode())
    return tuple(names)


@functools.cache
def operator_attributes(op: str) -> tuple[str, ...]:
    """The names of an operator's attributes."""
    names: list[str] = []
    while name := lib.ct_graph_op_attr(op.encode(), len(names)):
        names.append(name.decode())
    return tuple(names)


def _name(text: str | None, what: str = "name") -> bytes | None:
    """A name in C, which a zero byte would end."""
    if text is None:
        return None
    if not isinstance(text, str) or "\0" in text:
        raise ArgumentError(f"{what} is {text!r}, but a name is a text without zero bytes")
    return text.encode("utf-8", "surrogatepass")


def _text(at: int | None) -> str:
    """A text of the library."""
    return ctypes.string_at(at).decode("utf-8", "replace") if at else ""


class _Held:
    """Bytes that C reads: they live as long as this does."""

    def __init__(self) -> None:
        self._kept: list[Any] = []

    def text(self, value: bytes | None) -> int | None:
        if value is None:
            return None
        buffer = ctypes.create_string_buffer(value)
        self._kept.append(buffer)
        return ctypes.addressof(buffer)


def _schedule(schedule: Schedule) -> ct_schedule:
    kind = member(schedule.kind, ScheduleKind, "kind")
    warmup, period = whole(schedule.warmup, "warmup"), whole(schedule.period, "period")
    return ct_schedule(real(schedule.rate, "rate"), kind, warmup, period, real(schedule.factor, "factor"), real(schedule.floor, "floor"))


def optimise_of(schedule: Schedule | float, optimiser: Optimiser | str, accumulate: int, numbers: Mapping[str, float]) -> ct_optimise:
    """How a graph is trained, as C takes it. numbers: momentum, decay and the like by name."""
    raw = ct_optimise()
    raw.optimiser = member(optimiser, Optimiser, "optimiser")
    raw.schedule = _schedule(schedule if isinstance(schedule, Schedule) else Schedule(schedule))
    for name, value in numbers.items():
        setattr(raw, name, real(value, name))
    raw.accumulate = whole(accumulate, "accumulate")
    return raw


class Graph:
    """A network being described, or described. What the library refuses is raised, and its sentence names the node.

    Tensors are given by their :class:`Tensor` or by name. A graph may be used by several threads; they wait for each other.
    """

    def __init__(self) -> None:
        raw = ctypes.c_void_p()
        code = lib.ct_graph_create(ctypes.byref(raw))
        if code < 0:
            raise error_of(code, "no memory for a graph")
        self._raw = raw
        self._lock = threading.RLock()

    def __del__(self) -> None:
        if getattr(self, "_raw", None):
            lib.ct_graph_free(self._raw)

    def __repr__(self) -> str:
        info = self.info
        return f"<coltrain.Graph: {info.nodes} nodes, {info.weights:,} weights{', checked' if info.checked else ''}>"

    def _call(self, function: Callable[..., int], *args: Any) -> int:
        """What a function returns, or its error. The sentence is taken before another thread can call."""
        with self._lock:
            code = function(self._raw, *args)
            if code < 0:
                raise error_of(code, (lib.ct_graph_error(self._raw) or b"").decode("utf-8", "replace"))
            return code

    def _number(self, tensor: Tensor | str) -> int:
        if isinstance(tensor, str):
            return self._call(lib.ct_graph_find, _name(tensor))
        if not isinstance(tensor, Tensor) or tensor.graph is not self:
            raise ArgumentError(f"{tensor!r} is no tensor of this graph")
        return tensor.number

    # ---- Whole networks ----

    @classmethod
    def builtin(cls, name: str, batch: int = 1, training: bool = False) -> Graph:
        """A network by name: ``lenet5``, ``resnet8``, ``resnet20`` or ``vgg``. Its tensors are ``x``, ``logits`` and, with training, ``y`` (labels
        as probabilities) and ``loss``. Training decides whose statistics normalise: the batch's or the running ones.
        """
        graph = cls()
        graph._call(lib.ct_graph_builtin, _name(name), whole(batch, "batch"), bool(training))
        return graph

    @classmethod
    def mlp(cls, widths: Sequence[int], batch: int = 1, training: bool = False) -> Graph:
        """A perceptron with ReLU between its layers; widths: inputs, hidden layers, classes. Tensors as for :meth:`builtin`."""
        graph = cls()
        numbers = np.array([whole(w, "widths") for w in widths], dtype=np.uint32)
        graph._call(lib.ct_graph_mlp, address(numbers), max(len(numbers) - 1, 0), whole(batch, "batch"), bool(training))
        return graph

    def answers(self, output: Tensor | str = "logits", batch: int = 1) -> Graph:
        """What answers take of a graph that is trained: the nodes in front of an output, for so many rows, checked.

        Normalisation by the batch becomes that by running statistics, dropout is left out; weights and states keep their names.
        """
        graph = Graph()
        graph._call(lib.ct_graph_answers, self._raw, self._number(output), whole(batch, "batch"))
        graph.check()
        return graph

    @classmethod
    def unpack(cls, data: bytes) -> Graph:
        """The graph that :meth:`pack` made bytes of, checked. Raises :class:`FormatError` where they are none."""
        graph = cls()
        graph._call(lib.ct_graph_unpack, bytes(data), len(data))
        graph.check()
        return graph

    def pack(self) -> bytes:
        """The graph as bytes (docs/graph.md): the same graph gives the same bytes."""
        data, size = ctypes.POINTER(ctypes.c_uint8)(), ctypes.c_size_t()
        self._call(lib.ct_graph_pack, ctypes.byref(data), ctypes.byref(size))
        try:
            return ctypes.string_at(data, size.value)
        finally:
            lib.ct_graph_free_bytes(data)

    # ---- Describing ----

    def tensor(
        self,
        name: str | None = None,
        shape: Sequence[int] = (),
        role: Role | str = Role.INPUT,
        format: Format | str = Format.FP32,
        initial: Initial | str = Initial.ZEROS,
    ) -> Tensor:
        """Declares a tensor. shape: 1 to 4 dimensions, the batch first, images NHWC; () for an activation whose shape is to be inferred."""
        if len(shape) > CT_GRAPH_DIMS:
            raise ArgumentError(f"tensor {name}: a tensor has 1 to {CT_GRAPH_DIMS} dimensions, not {len(shape)}")
        held, raw = _Held(), ct_new_tensor()
        raw.name = held.text(_name(name))
        raw.shape.dims = len(shape)
        for i, size in enumerate(shape):
            raw.shape.dim[i] = whole(size, f"dimension {i} of tensor {name}")
        raw.format, raw.role = member(format, Format, "format"), member(role, Role, "role")
        raw.initial = member(initial, Initial, "initial")
        return Tensor(self, self._call(lib.ct_graph_tensor, ctypes.byref(raw)))

    def input(self, name: str, shape: Sequence[int], format: Format | str = Format.FP32) -> Tensor:
        """Declares what is given for each run."""
        return self.tensor(name, shape, Role.INPUT, format)

    def weight(
        self, name: str, shape: Sequence[int], initial: Initial | str = Initial.HE, format: Format | str = Format.FP32
    ) -> Tensor:
        """Declares what training changes."""
        return self.tensor(name, shape, Role.WEIGHT, format, initial)

    def state(self, name: str, shape: Sequence[int], initial: Initial | str = Initial.ZEROS) -> Tensor:
        """Declares what lasts from run to run and has no gradient."""
        return self.tensor(name, shape, Role.STATE, initial=initial)

    def add(
        self,
        op: str,
        *inputs: Tensor | str | None,
        name: str | None = None,
        outputs: Sequence[Tensor | str] | None = None,
        **attrs: Attribute,
    ) -> Tensor:
        """Adds a node and returns the first tensor that it makes (``graph.nodes[-1].outputs`` are all of them).

        inputs: None for one that is left out. attrs: a number or several. outputs: tensors that were declared before, as many as the
        operator makes; None makes new ones, named by the node.
        """
        held, raw = _Held(), ct_new_node()
        raw.op, raw.name = held.text(_name(op, "op")), held.text(_name(name))
        numbers = (ctypes.c_int * max(len(inputs), 1))(*(0 if t is None else self._number(t) for t in inputs))
        raw.inputs, raw.input_count = ctypes.cast(numbers, ctypes.POINTER(ctypes.c_int)), len(inputs)
        if outputs is not None:  # zeros behind them: C reads as many as the operator makes
            made = (ctypes.c_int * (len(outputs) + _MOST_OUTPUTS))(*(self._number(t) for t in outputs))
            raw.outputs = ctypes.cast(made, ctypes.POINTER(ctypes.c_int))
        given = (ct_attr * max(len(attrs), 1))()
        for slot, (key, value) in zip(given, attrs.items(), strict=False):
            values = list(value) if isinstance(value, Iterable) else [value]
            if not 1 <= len(values) <= len(slot.value):
                raise ArgumentError(f"node {name or op}: attribute {key} has {len(values)} numbers, it must have 1 to {len(slot.value)}")
            slot.name, slot.count = held.text(_name(key)), len(values)
            for i, number in enumerate(values):
                slot.value[i] = real(number, key)
        raw.attrs, raw.attr_count = ctypes.cast(given, ctypes.POINTER(ct_attr)), len(attrs)
        return Tensor(self, self._call(lib.ct_graph_add, ctypes.byref(raw)))

    def result(self, tensor: Tensor | str) -> Tensor:
        """Makes what a node makes an output of the graph."""
        return Tensor(self, self._call(lib.ct_graph_result, self._number(tensor)))

    def set_format(self, tensor: Tensor | str, format: Format | str) -> Tensor:
        """Says how the device is to keep a tensor."""
        return Tensor(self, self._call(lib.ct_graph_set_format, self._number(tensor), member(format, Format, "format")))

    def keep(self, role: Role | str, format: Format | str) -> int:
        """How the device is to keep all activations, or all their gradients, that have rows for what is in a batch; returns how many there are. Call
        it when all nodes are there, :meth:`optimise` included. What :meth:`set_format` says of single tensors holds.
        """
        return self._call(lib.ct_graph_keep, member(role, Role, "role"), member(format, Format, "format"))

    def becomes(self, state: Tensor | str, value: Tensor | str) -> Tensor:
        """Says that a weight or state has the value of another tensor after a run."""
        return Tensor(self, self._call(lib.ct_graph_becomes, self._number(state), self._number(value)))

    def reads(self, node: Node | SupportsIndex, input: SupportsIndex, tensor: Tensor | str) -> Tensor:
        """Has a node, given by itself or its number, read another tensor of the same shape as one of its inputs, counted from 0. So gradients can
        be made of something else than what they are the gradients of.
        """
        index = node.index if isinstance(node, Node) else whole(node, "node", U64)
        return Tensor(self, self._call(lib.ct_graph_reads, index, whole(input, "input", U64), self._number(tensor)))

    # ---- Whole graphs ----

    def check(self) -> Graph:
        """Infers what shapes are missing and refuses what is wrong: cycles, tensors that nothing makes, shapes that do not fit. After that
        the graph cannot be changed. Returns the graph.
        """
        self._call(lib.ct_graph_check)
        return self

    def order(self) -> list[int]:
        """Node numbers in the order in which they run."""
        numbers = np.zeros(max(self.info.nodes, 1), dtype=np.uint32)
        count = self._call(lib.ct_graph_order, address(numbers), len(numbers))
        return [int(n) for n in numbers[:count]]

    def gradients(self, loss: Tensor | str, wanted: Iterable[Tensor | str] | Tensor | None = None) -> None:
        """Adds nodes that compute the gradients of loss, a scalar, by the tensors wanted, or by all weights."""
        if isinstance(wanted, (str, Tensor)):
            wanted = [wanted]
        numbers = None if wanted is None else [self._number(t) for t in wanted]
        raw = None if numbers is None else (ctypes.c_int * max(len(numbers), 1))(*numbers)
        self._call(lib.ct_graph_gradients, self._number(loss), raw, len(numbers or ()))

    def gradient(self, tensor: Tensor | str) -> Tensor | None:
        """The tensor that is the gradient of another; None if it has none."""
        number = self._call(lib.ct_graph_gradient, self._number(tensor))
        return Tensor(self, number) if number else None

    def fold(self) -> int:
        """Puts batch normalisations by running statistics into the layers in front of them; how many those were."""
        return self._call(lib.ct_graph_fold)

    def optimise(
        self,
        loss: Tensor | str,
        schedule: Schedule | float,
        optimiser: Optimiser | str = Optimiser.SGD,
        *,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        beta1: float = 0.0,
        beta2: float = 0.0,
        epsilon: float = 0.0,
        clip: float = 0.0,
        accumulate: int = 1,
    ) -> None:
        """Adds gradients of loss by all weights, and nodes that update these. schedule: rates, or one rate. beta1, beta2, epsilon are
        Adam's, 0 for 0.9, 0.999 and 1e-8; clip: the most that the norm of all gradients may be, 0 for any. accumulate: runs, each with a
        batch of its own, that make a step: the mean of their gradients is what weights are updated by, in the last of them
        (coltrain/graph.h).
        """
        numbers = {"momentum": momentum, "weight_decay": weight_decay, "beta1": beta1, "beta2": beta2, "epsilon": epsilon, "clip": clip}
        raw = optimise_of(schedule, optimiser, accumulate, numbers)
        self._call(lib.ct_graph_optimise, self._number(loss), ctypes.byref(raw))

    # ---- Looking ----

    @property
    def info(self) -> GraphInfo:
        """What is known of the graph."""
        raw = ct_graph_info()
        self._call(lib.ct_graph_info, ctypes.byref(raw))
        return GraphInfo(raw.nodes, raw.tensors, raw.weights, raw.states, raw.macs, raw.checked)

    @property
    def macs(self) -> int:
        """Multiply-accumulates of all nodes."""
        return lib.ct_graph_macs(self._raw)

    def find(self, name: str) -> Tensor:
        """The tensor of that name. Raises :class:`NotFoundError`."""
        return Tensor(self, self._number(name))

    def __getitem__(self, name: str) -> Tensor:
        """The tensor of that name. Raises :class:`NotFoundError`, which is a LookupError."""
        return self.find(name)

    def __contains__(self, name: object) -> bool:
        """Whether there is a tensor of that name."""
        return isinstance(name, str) and lib.ct_graph_find(self._raw, _name(name)) > 0

    @property
    def tensors(self) -> list[Tensor]:
        """All tensors, in the order in which they were made."""
        return [Tensor(self, n + 1) for n in range(self.info.tensors)]

    def by_role(self, *roles: Role | str) -> dict[str, Tensor]:
        """Tensors of these roles by name, in the order in which they were made."""
        wanted = {member(role, Role, "role") for role in roles}
        return {info.name: t for t in self.tensors if (info := t.info).role in wanted}

    def _tensor_info(self, number: int) -> TensorInfo:
        raw = ct_tensor_info()
        self._call(lib.ct_graph_tensor_info, number, ctypes.byref(raw))
        return TensorInfo(
            name=_text(raw.name),
            shape=tuple(raw.shape.dim[: raw.shape.dims]),
            format=Format(raw.format),
            role=Role(raw.role),
            initial=Initial(raw.initial),
            node=raw.node if raw.node >= 0 else None,
            gradient=Tensor(self, raw.gradient) if raw.gradient else None,
            becomes=Tensor(self, raw.becomes) if raw.becomes else None,
            elements=raw.elements,
        )

    @property
    def nodes(self) -> list[Node]:
        """All nodes, in the order in which they were added."""
        return [self.node(i) for i in range(self.info.nodes)]

    def node(self, index: int) -> Node:
        """A node by its number, counted from 0."""
        raw = ct_node_info()
        self._call(lib.ct_graph_node_info, whole(index, "index", U64), ctypes.byref(raw))
        op, attrs = _text(raw.op), {}
        for key in operator_attributes(op):
            value = ct_attr()
            self._call(lib.ct_graph_node_attr, index, key.encode(), ctypes.byref(value))
            attrs[key] = tuple(value.value[: value.count])
        inputs = tuple(Tensor(self, n) if n else None for n in raw.inputs[: raw.input_count])
        outputs = tuple(Tensor(self, n) for n in raw.outputs[: raw.output_count])
        return Node(index, op, _text(raw.name), inputs, outputs, attrs, raw.macs, raw.backward)

    # ---- The reference ----

    def initial_values(self, seed: int = 1) -> dict[str, npt.NDArray[np.float32]]:
        """What weights and states begin with, FP32 by name: zeros, ones, or uniform in +-sqrt(6 / n), n the product of all dimensions but
        the first, by NumPy's generator from the seed.
        """
        random, values = np.random.default_rng(whole(seed, "seed", U64)), {}
        for name, tensor in self.by_role(Role.WEIGHT, Role.STATE).items():
            info = tensor.info
            if info.initial == Initial.HE:
                bound = np.sqrt(6 / max(int(np.prod(info.shape[1:])), 1))
                values[name] = random.uniform(-bound, bound, info.shape).astype(np.float32)
            else:
                values[name] = np.full(info.shape, float(info.initial == Initial.ONES), dtype=np.float32)
        return values

    def run(
        self,
        values: Mapping[str, Array],
        wanted: Iterable[Tensor | str] | Tensor | None = None,
        *,
        seed: int = 0,
        step: int = 0,
        update: bool = False,
    ) -> dict[str, F64]:
        """Computes a checked graph in double precision on the host, by the definitions of its operators.

        values: of all tensors that come from outside, by name, each of the tensor's shape. wanted: what to return, one or several, all outputs if it is
        None. seed, step: what dropout is a function of; schedules count by step. update: also returns what weights and states are after
        the run. Raises :class:`NoSpaceError`: it needs more than 2^28 numbers at once or 2^36 products.
        """
        if isinstance(wanted, (str, Tensor)):
            wanted = [wanted]
        names = [self[t].name if isinstance(t, str) else t.name for t in (self.by_role(Role.OUTPUT) if wanted is None else wanted)]
        arrays: dict[str, F64] = {}
        for name, value in values.items():
            info = self[name].info
            given = reals(value, name, info.shape)
            written = info.node is not None or (update and info.becomes is not None)
            arrays[name] = given.copy() if written else given
        changed = [name for name in arrays if update and self[name].info.becomes is not None]
        missing = [name for name in names if name not in arrays]
        if sum(self[name].info.elements for name in missing) > CT_REFERENCE_MOST_DOUBLES:
            raise NoSpaceError(f"what is wanted of the graph has more than {CT_REFERENCE_MOST_DOUBLES} numbers")
        for name in missing:
            arrays[name] = np.zeros(self[name].shape, dtype=np.float64)
        raw = (ct_value * max(len(arrays), 1))()
        for slot, (name, array) in zip(raw, arrays.items(), strict=False):
            slot.tensor, slot.count = self._number(name), array.size
            slot.data = array.ctypes.data_as(ctypes.POINTER(ctypes.c_double))
        run = ct_reference()
        run.values, run.value_count = ctypes.cast(raw, ctypes.POINTER(ct_value)), len(arrays)
        run.seed, run.step, run.update = whole(seed, "seed", U64), whole(step, "step", U64), bool(update)
        self._call(lib.ct_graph_run_reference, ctypes.byref(run))
        return {name: arrays[name] for name in dict.fromkeys([*names, *changed])}
