# SPDX-License-Identifier: Apache-2.0
"""Models: multilayer perceptrons that the device answers with and trains by itself."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, SupportsIndex

import numpy as np

from ._abi import (
    Batching,
    ErrorCode,
    Gradients,
    Queue,
    ct_apply,
    ct_model_info,
    ct_rates,
    ct_request,
    ct_serving,
    ct_step,
    ct_training,
    ct_weights_info,
)
from ._arrays import F32, Array, Bytes, address, floats, labels, octets, output
from ._connection import Handle, raw_of
from ._lib import check, lib
from ._numbers import U63, U64, member, path_of, real, whole
from .errors import ArgumentError
from .events import Future, queue_of
from .server import Server, batching_of

if TYPE_CHECKING:
    from .device import Device


class Rates(NamedTuple):
    """The rates of stochastic gradient descent with momentum and weight decay (docs/numerics.md)."""

    lr: float
    """Learning rate, 0 to 1000."""
    momentum: float = 0.0
    """0 to 1."""
    weight_decay: float = 0.0
    """0 to 1."""

    def check(self) -> Rates:
        """Returns the rates, or raises :class:`ArgumentError` if they make no sense."""
        check(lib.ct_rates_check(ctypes.byref(_rates(self))))
        return self


class LayerGradients(NamedTuple):
    """The gradients of a layer, FP32."""

    w: F32
    """outputs x inputs"""
    b: F32
    """outputs"""


class Layer(NamedTuple):
    """The master weights of a layer, all FP32."""

    w: F32
    """outputs x inputs"""
    b: F32
    """outputs"""
    vw: F32
    """momentum of w"""
    vb: F32
    """momentum of b"""


@dataclass(frozen=True, slots=True)
class ModelInfo:
    """What is known of a model."""

    widths: tuple[int, ...]
    """Inputs, hidden layers, classes."""
    seed: int
    steps: int
    """That ran; one that failed or was cancelled is none."""
    epochs: int
    """As set by :attr:`Model.epochs`."""
    macs_per_row: int
    """Forward multiply-accumulates for one row."""
    batch: int
    """Rows of a step of the last training, also of a loaded file; 0: none yet."""
    rates: Rates
    """Of steps that are given none of their own."""
    gradients: bool
    """Steps may leave gradients in device memory."""
    prepared: bool
    """For steps of batch rows."""


@dataclass(frozen=True, slots=True)
class WeightsInfo:
    """What is known of weights."""

    version: int
    """Counts from 1 for each model; 0: live."""
    error: ErrorCode
    """OK: complete; BUSY: not yet; else why it never will be."""
    steps: int
    """That made them."""
    bytes: int
    """Of device memory, and of :meth:`Weights.read`."""


class Weights(Handle):
    """The weights of a model at one moment, on the device: what answers are computed from.

    :meth:`Model.publish` makes versions, which nothing changes; :attr:`Model.weights` are the live ones, which training changes.
    Closing a version is safe at any moment: its memory goes when the last request and server that read it have ended.
    """

    _free = lib.ct_weights_free

    def __init__(self, model: Any, raw: int) -> None:
        super().__init__(model._connection, raw)
        self.model = model
        """The :class:`Model`, or the network that they are for."""

    @property
    def info(self) -> WeightsInfo:
        """What is known of them at this moment."""
        raw = ct_weights_info()
        self._connection.call(lib.ct_weights_info, self._raw, ctypes.byref(raw))
        return WeightsInfo(raw.version, ErrorCode(raw.error), raw.steps, raw.bytes)

    @property
    def address(self) -> int:
        """Where they lie in device memory, in bytes. Keep the handle until no program reads there."""
        self._connection.call(lib.ct_weights_info, self._raw, ctypes.byref(ct_weights_info()))
        return self._connection.call(lib.ct_weights_address, self._raw)

    def read(self) -> Bytes:
        """A copy of their bytes, as they are on a device, for :meth:`Model.load_weights` of the same widths.

        Raises :class:`BusyError`: steps that change them are in flight, or they are not complete.
        """
        result = np.empty(self.info.bytes, dtype=np.uint8)
        self._connection.call(lib.ct_weights_read, self._raw, address(result), result.size)
        return result


class LiveWeights(Weights):
    """The live weights of a model: they go with it."""

    def close(self) -> None:
        """Does nothing: they are the model's."""

    def __del__(self) -> None:
        pass

    @property
    def _raw(self) -> int:
        return self._connection.look(lib.ct_model_weights, self.model._raw) or 0


class Batch(Handle):
    """A batch of a step, in device memory: inputs, labels, and the loss of the last step on it."""

    _free = lib.ct_batch_free

    def __init__(self, model: Model) -> None:
        raw = ctypes.c_void_p()
        model._connection.call(lib.ct_batch_create, model._raw, ctypes.byref(raw))
        super().__init__(model._connection, raw.value or 0)
        self.model = model
        self.rows = model.info.batch
        """How many rows a step on it has."""

    def write(self, x: Array, classes: Array) -> None:
        """x: rows x inputs; classes: one integer for each row. Raises :class:`BusyError`: a step on it is in flight."""
        data = floats(x, "x", (self.rows, self.model.widths[0]))
        wanted = labels(classes, "classes", self.rows)
        self._connection.call(lib.ct_batch_write, self._raw, address(data), address(wanted))

    def loss(self) -> float:
        """The mean loss over the batch before the last step on it. Raises :class:`BusyError` while that is in flight, its error if it
        failed, :class:`ArgumentError` if there was none.
        """
        loss = ctypes.c_float()
        self._connection.call(lib.ct_batch_loss, self._raw, ctypes.byref(loss))
        return loss.value


class Rows(Handle):
    """Rows of inputs in device memory, for requests of every model of the device with as many inputs."""

    _free = lib.ct_rows_free

    def __init__(self, model: Served, count: SupportsIndex) -> None:
        raw = ctypes.c_void_p()
        model._connection.call(model._rows_create, model._raw, whole(count, "count", U63), ctypes.byref(raw))
        super().__init__(model._connection, raw.value or 0)
        self.count = int(count)
        self.inputs = model._ends()[0]

    def __len__(self) -> int:
        return self.count

    def write(self, x: Array, first: SupportsIndex = 0) -> None:
        """Writes rows from number first on; x: any number of rows x inputs. Raises :class:`BusyError`: a request that reads one of
        them is in flight.
        """
        data = floats(x, "x", ("rows", self.inputs))
        self._connection.call(lib.ct_rows_write, self._raw, whole(first, "first", U63), data.shape[0], address(data))


class Answers(Handle):
    """Places for answers in device memory, for requests of every model of the device with as many classes."""

    _free = lib.ct_answers_free

    def __init__(self, model: Served, count: SupportsIndex) -> None:
        raw = ctypes.c_void_p()
        model._connection.call(model._answers_create, model._raw, whole(count, "count", U63), ctypes.byref(raw))
        super().__init__(model._connection, raw.value or 0)
        self.count = int(count)
        self.classes = model._ends()[1]

    def __len__(self) -> int:
        return self.count

    def read(self, first: SupportsIndex = 0, count: SupportsIndex | None = None, *, out: F32 | None = None) -> F32:
        """The logits of count answers (None: all the rest) from number first on, count x classes.

        Raises :class:`BusyError`: a request that writes one of them is in flight; its error if it failed; :class:`ArgumentError` if
        there was none.
        """
        begin = whole(first, "first", U63)
        number = max(0, self.count - begin) if count is None else whole(count, "count", U63)
        if begin + number > self.count:
            raise ArgumentError(f"{number} answers from number {begin} on are not within {self.count}")
        result = output(out, "out", (number, self.classes))
        self._connection.call(lib.ct_answers_read, self._raw, begin, number, address(result))
        return result


class Served(Handle):
    """What the device makes batches for: models, and networks that are perceptrons."""

    _rows_create = lib.ct_rows_create
    _answers_create = lib.ct_answers_create
    _server_create = lib.ct_server_create

    def _ends(self) -> tuple[int, int]:
        """Inputs and classes."""
        raise NotImplementedError

    def _weights(self, weights: Weights | None) -> int | None:
        return None if weights is None else raw_of(weights, Weights, "weights", self._connection)

    def rows(self, count: SupportsIndex) -> Rows:
        """Room for count rows of inputs (1 to 2**24) in device memory. Raises :class:`NoSpaceError`."""
        return Rows(self, count)

    def answers(self, count: SupportsIndex) -> Answers:
        """Places for count answers (1 to 2**24) in device memory. Raises :class:`NoSpaceError`."""
        return Answers(self, count)

    def serve(
        self,
        weights: Weights | None = None,
        *,
        batching: Batching | str = Batching.NONE,
        max_batch: SupportsIndex = 0,
        max_wait: SupportsIndex = 0,
        margin: SupportsIndex = 0,
        watchdog: SupportsIndex = 0,
        service: Sequence[SupportsIndex] = (),
        deadline: SupportsIndex = 0,
        stream: bool = False,
    ) -> Server:
        """Begins to serve these weights (None: a model's live ones, which no step may change meanwhile; a network's own as they
        are now). All times are in cycles.

        batching: NONE (a batch goes at once), FIXED (when max_batch wait or the oldest has waited for max_wait) or ADAPTIVE (as late
        as deadlines allow), or their names. max_batch: 1 to 16; 0: 16. margin: what ADAPTIVE takes off a deadline; 0: the library's.
        watchdog: what a batch may take; 0: no limit. service: times of a batch of 1, 2 ... requests, as far as known. deadline: the
        shortest that requests will have; 0: unknown. stream: do not keep weights in the scratchpad, even if they fit. Raises
        :class:`UnsupportedError`, :class:`FullError` (8 models are served), :class:`NoSpaceError`, :class:`BusyError`,
        :class:`TimeoutError`; :class:`ArgumentError` also where the model has a server, or no request can hold the deadline.
        """
        serving = ct_serving(batching=batching_of(batching), stream=stream)
        serving.max_batch, serving.max_wait = whole(max_batch, "max_batch"), whole(max_wait, "max_wait")
        serving.margin, serving.watchdog = whole(margin, "margin"), whole(watchdog, "watchdog")
        serving.deadline = whole(deadline, "deadline")
        if len(service) > len(serving.service):
            raise ArgumentError(f"{len(service)} service times, but batches have at most {len(serving.service)} requests")
        serving.service[: len(service)] = [whole(time, "a service time") for time in service]
        return Server(self, weights, serving)


class Model(Served):
    """A multilayer perceptron with ReLU between its layers and a softmax cross-entropy loss; :meth:`Device.model` makes one.

    Products run on HBFP8; master weights, biases and momentum are FP32. Closing it cancels its jobs that are under way and ends its
    server.
    """

    _free = lib.ct_model_free

    def __init__(self, device: Device, raw: int) -> None:
        super().__init__(device, raw)
        self.device = device
        self.widths = self.info.widths

    def _ends(self) -> tuple[int, int]:
        return self.widths[0], self.widths[-1]
        """Inputs, hidden layers, classes."""

    def __repr__(self) -> str:
        return f"<coltrain.Model {'-'.join(map(str, self.widths))} on {self.device.uri}{', closed' if self.closed else ''}>"

    @property
    def info(self) -> ModelInfo:
        """What is known of it at this moment."""
        raw = ct_model_info()
        self._connection.call(lib.ct_model_info, self._raw, ctypes.byref(raw))
        rates = raw.training.rates
        return ModelInfo(
            tuple(raw.widths[: raw.layers + 1]),
            raw.seed,
            raw.steps,
            raw.epochs,
            raw.macs_per_row,
            raw.training.batch,
            Rates(rates.lr, rates.momentum, rates.weight_decay),
            raw.training.gradients,
            raw.prepared,
        )

    # ---- Training ----

    def training(
        self, batch: SupportsIndex, lr: float, momentum: float = 0.0, weight_decay: float = 0.0, *, gradients: bool = False
    ) -> None:
        """Prepares for steps of batch rows (1 to 4096, or more if the scratchpad holds it) with these rates.

        gradients: steps may also leave their gradients in device memory, which takes 4 bytes for each weight until the model is closed.
        Makes their programs, which takes time, unless it is prepared for that many. If it is refused, the model remains prepared as
        it was. Raises :class:`NoSpaceError`, :class:`OutOfMemoryError`, :class:`UnsupportedError`.
        """
        training = ct_training(batch=whole(batch, "batch"), rates=_rates(Rates(lr, momentum, weight_decay)), gradients=gradients)
        self._connection.call(lib.ct_model_training, self._raw, ctypes.byref(training))

    def set_rates(self, lr: float, momentum: float = 0.0, weight_decay: float = 0.0) -> None:
        """The rates of steps submitted from here on that are given none of their own. Costs nothing."""
        self._connection.call(lib.ct_model_set_rates, self._raw, ctypes.byref(_rates(Rates(lr, momentum, weight_decay))))

    def step(self, x: Array, classes: Array) -> float:
        """One step of stochastic gradient descent; returns the mean loss over the batch before it.

        x: rows x inputs; classes: one integer for each row; as many rows as :meth:`training` said. Blocks. After an error of the
        device or a timeout the weights may be half changed. Raises :class:`BusyError` while requests of the inference queue or a
        server read the live weights, :class:`TimeoutError`, :class:`JobError`.
        """
        rows = self.info.batch
        if not rows:
            raise ArgumentError("the model has not been prepared for training: training() does that")
        data = floats(x, "x", (rows, self.widths[0]))
        wanted = labels(classes, "classes", rows)
        loss = ctypes.c_float()
        self._connection.call(lib.ct_model_step, self._raw, address(data), address(wanted), ctypes.byref(loss))
        return loss.value

    def batch(self) -> Batch:
        """A batch in device memory, of the size that the model is prepared for now, for :meth:`step_submit`."""
        return Batch(self)

    def step_submit(
        self, batch: Batch, rates: Rates | None = None, *, gradients: Gradients | str = Gradients.NONE, user: Any = None
    ) -> Future:
        """Submits a step on a batch that was written, and returns at once; several steps may have the same.

        rates: of this step; None: the model's. gradients: NONE updates the weights by them at once; SET leaves them in device memory
        for :meth:`apply`, ADD adds them to those that are there: then the weights stay as they are, and may be read meanwhile. user:
        comes back in the event. Raises :class:`FullError`: nothing was submitted;
        :class:`BusyError`: the live weights are being read by requests of the inference queue or by a server.
        """
        step = ct_step(batch=raw_of(batch, Batch, "batch", self._connection), gradients=member(gradients, Gradients, "gradients"))
        if rates is not None:
            step.rates = ctypes.pointer(_rates(rates))
        function = lib.ct_model_step_submit
        return self._connection._submit(function, self._raw, ctypes.byref(step), user=user, keep=(self, batch))

    # ---- Gradients ----

    def apply(self, rates: Rates | None = None, *, scale: float = 1.0) -> None:
        """Updates weights, biases and momentum by the gradients that steps have left, multiplied by scale; they stay as they are.

        Blocks, and counts as a step. Raises :class:`ArgumentError`: there are no gradients; :class:`BusyError` as :meth:`step`, and
        where steps that leave gradients are in flight with something else behind them.
        """
        self._connection.call(lib.ct_model_apply, self._raw, ctypes.byref(_apply(rates, scale)))

    def apply_submit(self, rates: Rates | None = None, *, scale: float = 1.0, user: Any = None) -> Future:
        """As :meth:`apply`, but returns at once. user: comes back in the event."""
        function = lib.ct_model_apply_submit
        update = _apply(rates, scale)
        return self._connection._submit(function, self._raw, ctypes.byref(update), user=user, keep=(self,))

    def get_gradients(self, layer: SupportsIndex) -> LayerGradients:
        """The gradients of a layer, numbered from 0. Raises :class:`ArgumentError`: there are none; :class:`BusyError` while a step
        that leaves them, or an update, is in flight.
        """
        outputs, inputs = self._shape(layer)
        w, b = np.empty((outputs, inputs), dtype=np.float32), np.empty(outputs, dtype=np.float32)
        self._connection.call(lib.ct_model_get_gradients, self._raw, whole(layer, "layer"), address(w), address(b))
        return LayerGradients(w, b)

    def set_gradients(self, layer: SupportsIndex, w: Array | None = None, b: Array | None = None) -> None:
        """Changes what is given of a layer's gradients; shapes as in :class:`LayerGradients`. A layer of which there are none must be
        written whole; once all layers are there they are as good as those of a step.
        """
        outputs, inputs = self._shape(layer)
        weights = None if w is None else floats(w, "w", (outputs, inputs))
        biases = None if b is None else floats(b, "b", (outputs,))
        places = (None if a is None else address(a) for a in (weights, biases))
        self._connection.call(lib.ct_model_set_gradients, self._raw, whole(layer, "layer"), *places)

    def gradient_norm(self) -> float:
        """The square root of the sum of the squares of all gradients, exact but for one rounding; infinity if that is too large, or
        one of them is no finite number.
        """
        norm = ctypes.c_float()
        self._connection.call(lib.ct_model_gradient_norm, self._raw, ctypes.byref(norm))
        return norm.value

    # ---- Epochs ----

    @property
    def epochs(self) -> int:
        """How many epochs the model has been trained, as noted here for its file."""
        return self.info.epochs

    @epochs.setter
    def epochs(self, epochs: SupportsIndex) -> None:
        self._connection.look(lib.ct_model_set_epochs, self._raw, whole(epochs, "epochs", U64))

    # ---- Answers ----

    def infer(self, x: Array, weights: Weights | None = None, *, out: F32 | None = None) -> F32:
        """Logits, rows x classes, of any number of rows x inputs, by these weights (None: the live ones).

        Blocks. Raises :class:`BusyError`: the weights are not complete; :class:`NoSpaceError`, :class:`TimeoutError`,
        :class:`JobError`.
        """
        data = floats(x, "x", ("rows", self.widths[0]))
        result = output(out, "out", (data.shape[0], self.widths[-1]))
        arguments = (self._weights(weights), address(data), data.shape[0], address(result))
        self._connection.call(lib.ct_model_infer, self._raw, *arguments)
        return result

    def evaluate(self, x: Array, classes: Array, weights: Weights | None = None) -> int:
        """How many of the rows these weights classify rightly: the first of the largest logits is the class. Blocks; as
        :meth:`infer`.
        """
        data = floats(x, "x", ("rows", self.widths[0]))
        wanted = labels(classes, "classes", data.shape[0])
        right = ctypes.c_size_t()
        arguments = (self._weights(weights), address(data), address(wanted), data.shape[0], ctypes.byref(right))
        self._connection.call(lib.ct_model_evaluate, self._raw, *arguments)
        return right.value

    def infer_submit(
        self,
        rows: Rows,
        answers: Answers,
        *,
        row: SupportsIndex = 0,
        answer: SupportsIndex = 0,
        count: SupportsIndex = 1,
        weights: Weights | None = None,
        queue: Queue | str = Queue.INFERENCE,
        cycle: SupportsIndex = 0,
        user: Any = None,
    ) -> Future:
        """Submits one job that answers count rows (1 to 16) from number row on, to the answers from number answer on.

        weights: None for the live ones; those that steps in flight change can only be read on the training queue. cycle: the device
        hears of it then. user: comes back in the event. Raises :class:`BusyError`, :class:`FullError`.
        """
        request = ct_request(count=whole(count, "count"), queue=queue_of(queue))
        request.rows, request.answers = raw_of(rows, Rows, "rows", self._connection), raw_of(answers, Answers, "answers", self._connection)
        request.row, request.answer, request.cycle = whole(row, "row", U63), whole(answer, "answer", U63), whole(cycle, "cycle", U64)
        request.weights = self._weights(weights)
        function = lib.ct_model_infer_submit
        return self._connection._submit(function, self._raw, ctypes.byref(request), user=user, keep=(self, rows, answers, weights))

    # ---- Weights ----

    @property
    def weights(self) -> Weights:
        """The live weights, which training changes."""
        return LiveWeights(self, 0)

    def publish(self) -> Weights:
        """A version of the live weights as they are after the steps submitted before. Blocks.

        Raises :class:`NoSpaceError`, :class:`FullError`, :class:`TimeoutError`, :class:`JobError`.
        """
        raw = ctypes.c_void_p()
        self._connection.call(lib.ct_model_publish, self._raw, ctypes.byref(raw))
        return Weights(self, raw.value or 0)

    def publish_submit(self, *, user: Any = None) -> tuple[Weights, Future]:
        """As :meth:`publish`, but returns at once; until the future has ended, the version cannot be used."""
        raw = ctypes.c_void_p()
        function = lib.ct_model_publish_submit
        future = self._connection._submit(function, self._raw, None, ctypes.byref(raw), user=user, keep=(self,))
        weights = Weights(self, raw.value or 0)
        return weights, future

    def load_weights(self, data: Array | bytes) -> Weights:
        """A version from what :meth:`Weights.read` gave, also of another device. Raises :class:`ArgumentError`: another size."""
        source = octets(data, "data")
        raw = ctypes.c_void_p()
        self._connection.call(lib.ct_weights_load, self._raw, address(source), source.size, ctypes.byref(raw))
        return Weights(self, raw.value or 0)

    def get(self, layer: SupportsIndex) -> Layer:
        """The master weights of a layer, numbered from 0. Raises :class:`BusyError` while a step is in flight."""
        outputs, inputs = self._shape(layer)
        shapes = ((outputs, inputs), (outputs,), (outputs, inputs), (outputs,))
        arrays = [np.empty(shape, dtype=np.float32) for shape in shapes]
        self._connection.call(lib.ct_model_get, self._raw, whole(layer, "layer"), *map(address, arrays))
        return Layer(*arrays)

    def set(
        self, layer: SupportsIndex, w: Array | None = None, b: Array | None = None, vw: Array | None = None, vb: Array | None = None
    ) -> None:
        """Changes what is given of a layer; shapes as in :class:`Layer`.

        Raises :class:`BusyError` while a step is in flight, or anything reads the live weights: requests, a server, a version being made.
        """
        outputs, inputs = self._shape(layer)
        shapes: Sequence[tuple[int | str, ...]] = ((outputs, inputs), (outputs,), (outputs, inputs), (outputs,))
        given = zip((w, b, vw, vb), ("w", "b", "vw", "vb"), shapes, strict=True)
        arrays = [None if a is None else floats(a, name, shape) for a, name, shape in given]
        self._connection.call(lib.ct_model_set, self._raw, whole(layer, "layer"), *(None if a is None else address(a) for a in arrays))

    def _shape(self, layer: SupportsIndex) -> tuple[int, int]:
        number, layers = whole(layer, "layer"), len(self.widths) - 1
        if number >= layers:
            raise ArgumentError(f"layer {layer} of a model that has {layers}, counted from 0")
        return self.widths[number + 1], self.widths[number]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes a file with everything that training needs to go on bit by bit (docs/model-format.md).

        It is complete on the disk before it replaces one of that name. Raises :class:`FileError`, :class:`BusyError` while a step is
        in flight.
        """
        self._connection.call(lib.ct_model_save, self._raw, path_of(path))


def clip_scale(norm: float, most: float, scale: float = 1.0) -> float:
    """The scale for :meth:`Model.apply` that clips by norm: scale, or most / norm if scale * norm is larger than most."""
    clipped = ctypes.c_float()
    check(lib.ct_clip_scale(real(norm, "norm"), real(scale, "scale"), real(most, "most"), ctypes.byref(clipped)))
    return clipped.value


def _apply(rates: Rates | None, scale: float) -> ct_apply:
    if scale == 0:  # stands for 1 in C
        raise ArgumentError("a scale of 0 would leave nothing of the gradients")
    update = ct_apply(scale=real(scale, "scale"))
    if rates is not None:
        update.rates = ctypes.pointer(_rates(rates))
    return update


def _rates(rates: Rates) -> ct_rates:
    if not isinstance(rates, Rates):
        raise ArgumentError(f"rates is {rates!r}, but Rates are needed, such as Rates(0.1, momentum=0.9)")
    return ct_rates(**{name: real(value, name) for name, value in rates._asdict().items()})
