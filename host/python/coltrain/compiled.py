# SPDX-License-Identifier: Apache-2.0
"""Networks on a device: compiled, run, trained.

    network = coltrain.Network.builtin("lenet5", batch=16)
    with coltrain.open("emu:") as device, device.compile(network) as net:
        logits = net.run({"x": images})["logits"]

A graph with gradients and updates (:meth:`Graph.optimise`) is trained by the same calls: each run is a step, or one of those that accumulate
to one.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np

from ._abi import Masks, Queue, Role, ct_members, ct_network_info, ct_network_kept, ct_network_options, ct_network_stage, ct_optimise, ct_run, ct_schedule
from ._arrays import F32, Array, address, floats, octets
from ._connection import Connection, Handle, raw_of
from ._lib import lib
from ._numbers import U64, path_of, real, whole
from .errors import ArgumentError, NotFoundError
from .events import Future, cycle_of, queue_of
from .graph import Graph, Schedule, Tensor, Update, _schedule, _text, _update
from .model import Served, Weights

if TYPE_CHECKING:
    from .network import Network


def has_kernel(op: str) -> bool:
    """Whether an operator of that name runs on a device at all."""
    return bool(lib.ct_network_has(op.encode()))


@dataclass(frozen=True, slots=True)
class Stage:
    """A kernel of a network: an operator, with those that were joined to it."""

    node: str
    """Of the graph."""
    op: str
    """What the kernel does."""
    backward: bool
    """Of gradients or updates."""
    once: bool
    """It runs again only when weights have been written."""
    jobs: int
    macs: int
    """Multiply-accumulates that the operator has."""
    read: int
    """Bytes of tensors."""
    written: int
    rows: int
    """Of 16 x 16 multiply-accumulates that the array took in the last run."""
    cycles: int | None
    """Of the last run; None: not known, or the stage was no part of it."""
    expected: int | None
    """Cycles that its programs should take."""
    beside: int | None
    """Cycles more that its jobs can take beside training, as docs/architecture.md derives it."""
    bound: str
    """What it waits for most."""
    runs: int
    """Of so many it is part of the last: updates where gradients accumulate; 1: of each."""
    round: int
    """Members that a pass of its loop takes; 0: they run one after the other."""
    busy: int
    """Cycles of the expected ones in which the unit works that works most."""
    unit: str
    """That unit: array, reads, writes, VL, VA or VS; empty: not known."""
    all_expected: int | None
    """The same of a run of all members, in the same jobs where that is faster; with one member what is above."""
    all_busy: int
    all_bound: str
    all_unit: str


@dataclass(frozen=True, slots=True)
class CompiledInfo:
    """What is known of a network on a device."""

    seed: int
    """That its weights were drawn from last; 0: they were not."""
    steps: int
    """Runs that have changed its own weights or states."""
    epochs: int
    """As set by :attr:`Compiled.epochs`."""
    mantissa: int
    """Bits of the mantissas of HBFP."""
    jobs: int
    """That a run takes at least."""
    changes: bool
    """Its runs change its weights."""
    accumulate: int
    """Runs that make a step."""
    run_bytes: int
    """Device memory for what a run makes and needs for a while."""
    frame_bytes: int
    """Device memory for inputs, labels and outputs: of a frame."""
    inputs: int = 0
    """Of a perceptron, which :meth:`Compiled.serve` takes; 0: it is none."""
    classes: int = 0
    """The same."""
    together: int = 1
    """Networks that have its programs, itself among them."""
    members: int = 1
    """Networks of its graph that it is; facts are those of the selected one."""
    pages: int = 0
    """Device memory for activations that are kept compressed."""
    pages_most: int = 0
    """The most of it that was in use at a time."""
    error: float = 0.0
    """How that is done, as :meth:`Device.compile` was told or a file says: what the error may cost, as a part of the momentum ..."""
    bits: int = 0
    """... for how many bits of a number there are pages (0, as all of these: nothing is kept so) ..."""
    refresh: int = 0
    """... steps between looks at the gradients ..."""
    masks: Masks = Masks.OFF
    """... and whether what ReLUs let through is kept beside it."""
    continued: bool = False
    """Its bounds are those of its file, or came of them."""
    pressed: int = 0
    """Looks at gradients behind the first 20 steps, and runs that failed, for which there were too few pages: bounds are larger than `error` wants."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A tensor that is kept compressed from forward to backward."""

    tensor: str
    """Its name, or that of the node that makes it."""
    values: int
    """Numbers of the tensor."""
    bytes: int
    """That they took in the last run."""
    bound: int
    """K: a number is kept to within 2 ** (K - 134); 0: exactly."""
    exact: bool = False
    """Whole numbers, such as the mask of a ReLU: the bound stays 0."""
    beside: bool = False
    """They stand beside a tensor that is kept: none of their own are saved."""
    padded: int = 0
    """Numbers with those that fill up whole tiles, which are compressed with them."""


class Frame(Handle):
    """Inputs, labels and outputs of a run in device memory: each of several runs under way needs one of its own."""

    _free = lib.ct_frame_free

    def __init__(self, network: Compiled) -> None:
        raw = ctypes.c_void_p()
        network._connection.call(lib.ct_frame_create, network._raw, ctypes.byref(raw))
        super().__init__(network._connection, raw.value or 0)
        self.network = network

    def write(self, values: Mapping[str, Array] | Mapping[Tensor, Array]) -> None:
        """Sets inputs and labels by name. Raises :class:`BusyError`: a run with the frame is under way."""
        for name, value in values.items():
            tensor = self.network._tensor(name)
            array = floats(value, tensor.name, tensor.shape)
            self._connection.call(lib.ct_frame_write, self._raw, tensor.number, address(array), array.size)

    def read(self, name: Tensor | str) -> F32:
        """An output of the last run. Raises :class:`BusyError` while that is under way, its error if it failed."""
        tensor = self.network._tensor(name)
        result = np.empty(tensor.shape, dtype=np.float32)
        self._connection.call(lib.ct_frame_read, self._raw, tensor.number, address(result), result.size)
        return result


def _options(mantissa: SupportsIndex, expect: bool, error: float, bits: SupportsIndex, refresh: SupportsIndex, masks: Masks | bool | None) -> ct_network_options:
    """What a graph and a file are compiled with alike."""
    options = ct_network_options(mantissa=whole(mantissa, "mantissa"), expect=expect)
    if masks is not None:
        options.masks = masks if isinstance(masks, Masks) else Masks.ON if masks else Masks.OFF
    options.error, options.bits, options.refresh = real(error, "error"), whole(bits, "bits"), whole(refresh, "refresh")
    return options


class Compiled(Served):
    """A graph on a device, with weights of its own; ``with`` frees it at its end.

    :meth:`rows`, :meth:`answers` and :meth:`serve` are there for perceptrons that answer (docs/graph.md): the device makes batches of their
    requests. They raise :class:`UnsupportedError` for other networks.
    """

    _free = lib.ct_network_free
    _rows_create = lib.ct_network_rows_create
    _answers_create = lib.ct_network_answers_create
    _server_create = lib.ct_network_server_create

    def __init__(
        self,
        connection: Connection,
        network: Network | Graph,
        mantissa: SupportsIndex = 8,
        expect: bool = False,
        seed: SupportsIndex = 0,
        kernels: bool = False,
        members: SupportsIndex = 1,
        shared: bool = False,
        error: float = 0.0,
        bits: SupportsIndex = 0,
        refresh: SupportsIndex = 0,
        masks: Masks | bool | None = None,
        weights_of: Compiled | None = None,
    ) -> None:
        graph = network if isinstance(network, Graph) else network.graph
        options = _options(mantissa, expect, error, bits, refresh, masks)
        options.seed, options.kernels = whole(seed, "seed", U64), kernels
        options.members, options.shared = whole(members, "members"), shared
        options.weights_of = None if weights_of is None else weights_of._raw
        raw = ctypes.c_void_p()
        graph.check()
        connection.call(lib.ct_network_create, connection._raw, graph._raw, ctypes.byref(options), ctypes.byref(raw))
        super().__init__(connection, raw.value or 0)
        self.graph = graph
        if not isinstance(network, Graph) and weights_of is None:
            self.write(network.values)

    def _ends(self) -> tuple[int, int]:
        return self.info.inputs, self.info.classes

    # ---- Files ----

    @classmethod
    def load(
        cls,
        connection: Connection,
        path: str | os.PathLike[str],
        mantissa: SupportsIndex = 0,
        expect: bool = False,
        error: float = 0.0,
        bits: SupportsIndex = 0,
        refresh: SupportsIndex = 0,
        masks: Masks | bool | None = None,
    ) -> Compiled:
        """The network of a file; :meth:`Device.load_network` calls it."""
        options = _options(mantissa, expect, error, bits, refresh, masks)
        raw = ctypes.c_void_p()
        connection.call(lib.ct_network_load, connection._raw, path_of(path), ctypes.byref(options), ctypes.byref(raw))
        loaded = cls.__new__(cls)
        Handle.__init__(loaded, connection, raw.value or 0)
        loaded.graph = loaded._own_graph()
        return loaded

    def _own_graph(self) -> Graph:
        """The graph that the library has for it."""
        data, size = ctypes.POINTER(ctypes.c_uint8)(), ctypes.c_size_t()
        graph = self._connection.look(lib.ct_network_graph, self._raw)
        self._connection.call(lib.ct_graph_pack, graph, ctypes.byref(data), ctypes.byref(size))
        try:
            return Graph.unpack(ctypes.string_at(data, size.value))
        finally:
            lib.ct_graph_free_bytes(data)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes graph, weights, states and how far training has come (docs/model-format.md, format 2), of what is kept compressed settings and
        bounds, too; training goes on from there with the same bits. Raises :class:`FileError`, :class:`BusyError` while runs that change its weights are under way.
        """
        self._connection.call(lib.ct_network_save, self._raw, path_of(path))

    def restore(self, path: str | os.PathLike[str]) -> None:
        """Weights, states and how far training has come from a file, of the selected member if there are several. Raises
        :class:`ArgumentError` if it is of a graph that differs in more than schedules and numbers of updates, or keeps compressed otherwise.
        """
        self._connection.call(lib.ct_network_restore, self._raw, path_of(path))

    @property
    def info(self) -> CompiledInfo:
        """What is known of it at this moment."""
        raw = ct_network_info()
        self._connection.call(lib.ct_network_info, self._raw, ctypes.byref(raw))
        return CompiledInfo(
            seed=raw.seed,
            steps=raw.steps,
            epochs=raw.epochs,
            mantissa=raw.mantissa,
            jobs=raw.jobs,
            changes=raw.changes,
            accumulate=raw.accumulate,
            run_bytes=raw.run_bytes,
            frame_bytes=raw.frame_bytes,
            inputs=raw.inputs,
            classes=raw.classes,
            together=raw.together,
            members=raw.members,
            pages=raw.pages,
            pages_most=raw.pages_most,
            error=raw.error,
            bits=raw.bits,
            refresh=raw.refresh,
            masks=Masks(raw.masks or Masks.OFF),
            continued=raw.continued,
            pressed=raw.pressed,
        )

    @property
    def kept(self) -> list[Kept]:
        """What it keeps compressed. Raises :class:`BusyError` while a run is under way."""
        found: list[Kept] = []
        raw = ct_network_kept()
        with contextlib.suppress(NotFoundError):
            while True:
                self._connection.call(lib.ct_network_kept, self._raw, len(found), ctypes.byref(raw))
                found.append(Kept(_text(raw.tensor), raw.values, raw.bytes, raw.bound, raw.exact, raw.beside, raw.padded))
        return found

    def keep_within(self, index: SupportsIndex, bound: SupportsIndex) -> None:
        """Sets K of one of :attr:`kept`, for runs from now on: a number is kept to within 2 ** (K - 134), and exactly with 0."""
        self._connection.call(lib.ct_network_keep_within, self._raw, whole(index, "index"), whole(bound, "bound"))

    @property
    def epochs(self) -> int:
        """How many epochs it has been trained, as noted here for its file."""
        return self.info.epochs

    @epochs.setter
    def epochs(self, epochs: SupportsIndex) -> None:
        self._connection.look(lib.ct_network_set_epochs, self._raw, whole(epochs, "epochs", U64))

    # ---- Runs that go on by themselves ----

    def frame(self) -> Frame:
        """Places for the inputs and outputs of a run, for :meth:`submit`."""
        return Frame(self)

    def submit(
        self,
        frame: Frame,
        weights: Weights | None = None,
        *,
        queue: Queue | str = Queue.TRAINING,
        step: SupportsIndex = 0,
        cycle: SupportsIndex = 0,
        user: Any = None,
    ) -> Future:
        """Submits a run and returns at once. weights: a version that was published for this network; None: its own.

        cycle: when it begins by the device's clock; 0: at once. user: comes back in the event. Raises :class:`FullError`: nothing was
        submitted; :class:`BusyError`: the frame's run before is under way, or runs of the other queue use the network's own weights
        and these change.
        """
        run = ct_run(frame=raw_of(frame, Frame, "frame", self._connection), queue=queue_of(queue))
        run.step, run.cycle = whole(step, "step", U64), whole(cycle, "cycle", U64)
        if weights is not None:
            run.weights = raw_of(weights, Weights, "weights", self._connection)
        return self._connection._submit(lib.ct_network_submit, self._raw, ctypes.byref(run), user=user, keep=(self, frame, weights))

    # ---- Members ----

    def select(self, member: SupportsIndex) -> None:
        """All but :meth:`run_members` and :meth:`submit_members` is about this member from here on; at first it is member 0."""
        self._connection.call(lib.ct_network_select, self._raw, whole(member, "member"))

    def _members(
        self,
        count: SupportsIndex | None,
        first: SupportsIndex,
        queue: Queue | str,
        step: SupportsIndex | Sequence[int],
        schedules: Sequence[Schedule] | None,
        updates: Sequence[Update] | None,
    ) -> ct_members:
        some = self.info.members - whole(first, "first") if count is None else whole(count, "count")
        run = ct_members(first=whole(first, "first"), count=some, queue=queue_of(queue))
        if isinstance(step, Sequence):
            if len(step) != some:
                raise ArgumentError(f"{len(step)} numbers of runs for {some} members")
            steps = (ctypes.c_uint64 * max(some, 1))(*(whole(s, "step", U64) for s in step))
            run.steps = ctypes.cast(steps, ctypes.POINTER(ctypes.c_uint64))
        else:
            run.step = whole(step, "step", U64)
        if updates is not None:
            if len(updates) != some:
                raise ArgumentError(f"numbers of updates for {len(updates)} of {some} members")
            each = (ct_optimise * max(some, 1))(*(_update(u) for u in updates))
            run.updates = ctypes.cast(each, ctypes.POINTER(ct_optimise))
        if schedules is not None:
            if len(schedules) != some:
                raise ArgumentError(f"{len(schedules)} schedules for {some} members")
            rates = (ct_schedule * max(some, 1))(*(_schedule(s) for s in schedules))
            run.schedules = ctypes.cast(rates, ctypes.POINTER(ct_schedule))
        return run

    def run_members(
        self,
        count: SupportsIndex | None = None,
        *,
        first: SupportsIndex = 0,
        step: SupportsIndex | Sequence[int] = 0,
        schedules: Sequence[Schedule] | None = None,
        updates: Sequence[Update] | None = None,
        queue: Queue | str = Queue.TRAINING,
    ) -> None:
        """Runs members once, as one: so many from the first on (all that there are). step: of all, or a number for each; updates (rate,
        momentum and the like): of each, None: the graph's; schedules: of each, in place of the rates of either.
        """
        run = self._members(count, first, queue, step, schedules, updates)
        self._connection.call(lib.ct_network_run_members, self._raw, ctypes.byref(run))

    def submit_members(
        self,
        count: SupportsIndex | None = None,
        *,
        first: SupportsIndex = 0,
        step: SupportsIndex | Sequence[int] = 0,
        schedules: Sequence[Schedule] | None = None,
        updates: Sequence[Update] | None = None,
        queue: Queue | str = Queue.TRAINING,
        cycle: SupportsIndex = 0,
        user: Any = None,
    ) -> Future:
        """The same, without waiting. Raises :class:`BusyError` while a run of some of these members is under way."""
        run = self._members(count, first, queue, step, schedules, updates)
        run.cycle = whole(cycle, "cycle", U64)
        return self._connection._submit(lib.ct_network_submit_members, self._raw, ctypes.byref(run), user=user, keep=(self, run))

    def publish_submit(self, to: Compiled, *, user: Any = None) -> tuple[Weights, Future]:
        """Makes a version of the weights as they are after the runs submitted to the training queue before, for runs of another
        network with weights of the same names, such as :meth:`Graph.answers` compiled. Until the future has ended it cannot be used.
        """
        raw, other = ctypes.c_void_p(), raw_of(to, Compiled, "to", self._connection)
        function = lib.ct_network_publish_submit
        future = self._connection._submit(function, self._raw, other, None, ctypes.byref(raw), user=user, keep=(self, to))
        return Weights(to, raw.value or 0), future

    def publish(self, to: Compiled) -> Weights:
        """As :meth:`publish_submit`, but waits for it."""
        weights, future = self.publish_submit(to)
        future.result()
        return weights

    def load_weights(self, data: Array | bytes) -> Weights:
        """A version from what :meth:`Weights.read` gave for a network of the same graph, also of another device."""
        source = octets(data, "data")
        raw = ctypes.c_void_p()
        self._connection.call(lib.ct_network_load_weights, self._raw, address(source), source.size, ctypes.byref(raw))
        return Weights(self, raw.value or 0)

    # ---- Tensors ----

    def _tensor(self, name: Tensor | str) -> Tensor:
        return name if isinstance(name, Tensor) else self.graph[name]

    def draw(self, seed: SupportsIndex = 1) -> None:
        """Weights and states from a seed, as the graph says each begins."""
        self._connection.call(lib.ct_network_draw, self._raw, whole(seed, "seed", U64))

    def write(self, values: Mapping[str, Array] | Mapping[Tensor, Array]) -> None:
        """Sets inputs, labels, weights and states by name. What the network does not read is left out."""
        for name, value in values.items():
            tensor = self._tensor(name)
            array = floats(value, tensor.name, tensor.shape)
            self._connection.call(lib.ct_network_write, self._raw, tensor.number, address(array), array.size)

    def read(self, name: Tensor | str) -> F32:
        """A weight, state or output."""
        tensor = self._tensor(name)
        result = np.empty(tensor.shape, dtype=np.float32)
        self._connection.call(lib.ct_network_read, self._raw, tensor.number, address(result), result.size)
        return result

    def run(
        self,
        inputs: Mapping[str, Array] | None = None,
        wanted: Iterable[Tensor | str] | Tensor | None = None,
        *,
        step: SupportsIndex = 0,
        queue: Queue | str = Queue.TRAINING,
    ) -> dict[str, F32]:
        """Runs the network once: its outputs (or what is wanted, one or several) by name. step counts runs from 0: schedules and Adam go by it."""
        if isinstance(wanted, (str, Tensor)):
            wanted = [wanted]
        self.write(inputs or {})
        self._connection.call(lib.ct_network_run, self._raw, queue_of(queue), whole(step, "step", U64))
        names = self.graph.by_role(Role.OUTPUT) if wanted is None else [self._tensor(name).name for name in wanted]
        return {name: self.read(name) for name in names}

    def values(self) -> dict[str, F32]:
        """All weights and states as the device has them. What the network does not read is nowhere, and left out."""
        found: dict[str, F32] = {}
        for name in self.graph.by_role(Role.WEIGHT, Role.STATE):
            with contextlib.suppress(ArgumentError):
                found[name] = self.read(name)
        return found

    def stages(self) -> list[Stage]:
        """What the network does, in order, with what the last run took."""
        found: list[Stage] = []
        raw = ct_network_stage()
        for index in range(self._connection.look(lib.ct_network_stages, self._raw)):
            self._connection.call(lib.ct_network_stage, self._raw, index, ctypes.byref(raw))
            found.append(
                Stage(
                    node=_text(raw.node),
                    op=_text(raw.op),
                    backward=raw.backward,
                    once=raw.once,
                    jobs=raw.jobs,
                    macs=raw.macs,
                    read=raw.read,
                    written=raw.written,
                    rows=raw.rows,
                    cycles=cycle_of(raw.cycles),
                    expected=cycle_of(raw.expected),
                    beside=cycle_of(raw.beside),
                    busy=raw.busy,
                    bound=_text(raw.bound),
                    runs=raw.runs,
                    round=raw.round,
                    unit=_text(raw.unit),
                    all_expected=cycle_of(raw.all_expected),
                    all_busy=raw.all_busy,
                    all_bound=_text(raw.all_bound),
                    all_unit=_text(raw.all_unit),
                )
            )
        if not found:
            raise ArgumentError("the network has no stages: nothing of it is an output")
        return found
