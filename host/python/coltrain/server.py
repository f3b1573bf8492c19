# SPDX-License-Identifier: Apache-2.0
"""Serving: requests with deadlines, which the device collects into batches."""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, SupportsIndex

from ._abi import Batching, ct_request, ct_server_info, ct_serving
from ._connection import Handle, raw_of
from ._lib import lib, text_of, value_of
from ._numbers import U63, U64, whole
from .events import Future

if TYPE_CHECKING:
    from .model import Answers, Rows, Served, Weights


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """What is known of a server; times are in cycles."""

    batching: Batching
    max_batch: int
    version: int
    """Of the batches that begin now."""
    pinned_words: int
    """Of the scratchpad, for weights that stay there; 0: they do not fit."""
    waiting: int
    """Requests without an event."""
    margin: int
    """In use."""
    service: tuple[int, ...]
    """What a batch of 1, 2 ... 16 requests takes, as far as known; 0: unknown."""
    least_deadline: int
    """A shorter one is missed whatever happens; 0: unknown."""
    safe_deadline: int
    """A shorter one may be missed when other batches are in front; 0: unknown."""


class Server(Handle):
    """Serves weights of a model or network. Closing it ends serving: requests that wait are cancelled, a batch that has begun ends."""

    _free = lib.ct_server_free

    def __init__(self, model: Served, weights: Weights | None, serving: ct_serving) -> None:
        raw = ctypes.c_void_p()
        connection = model._connection
        connection.call(model._server_create, model._raw, model._weights(weights), ctypes.byref(serving), ctypes.byref(raw))
        super().__init__(connection, raw.value or 0)
        self.model = model
        """What is served: a :class:`Model`, or a network that is a perceptron."""

    @property
    def info(self) -> ServerInfo:
        """What is known of it at this moment."""
        raw = ct_server_info()
        self._connection.call(lib.ct_server_info, self._raw, ctypes.byref(raw))
        return ServerInfo(
            Batching(raw.serving.batching),
            raw.serving.max_batch,
            raw.version,
            raw.pinned_words,
            raw.waiting,
            raw.margin,
            tuple(raw.service),
            raw.least_deadline,
            raw.safe_deadline,
        )

    def set_weights(self, weights: Weights | None) -> None:
        """Serves these weights (None: a model's live ones, a network's own as they are now) from the next batch on; none sees a mixture.

        Raises :class:`BusyError`: they are not complete, or in training.
        """
        self._connection.call(lib.ct_server_set_weights, self._raw, self.model._weights(weights))

    def push(
        self,
        rows: Rows,
        answers: Answers,
        *,
        row: SupportsIndex = 0,
        answer: SupportsIndex = 0,
        deadline: SupportsIndex = 0,
        cycle: SupportsIndex = 0,
        user: Any = None,
    ) -> Future:
        """Pushes a request of one row and returns at once: row number row of rows, its answer to number answer of answers.

        deadline: cycles after its arrival, 0 for none. cycle: when it arrives by the device's clock; 0, or past: at once. user: comes
        back in the event. Raises :class:`FullError` when 4096 requests are under way.
        """
        from .model import Answers, Rows

        request = ct_request(deadline=whole(deadline, "deadline"))
        request.rows, request.answers = raw_of(rows, Rows, "rows", self._connection), raw_of(answers, Answers, "answers", self._connection)
        request.row, request.answer, request.cycle = whole(row, "row", U63), whole(answer, "answer", U63), whole(cycle, "cycle", U64)
        function = lib.ct_server_push
        return self._connection._submit(function, self._raw, ctypes.byref(request), user=user, keep=(self, rows, answers))


def batching_name(batching: Batching) -> str:
    """The name that commands and results use, such as "adaptive"."""
    return text_of(lib.ct_batching_name(batching)) or str(batching)


def batching_of(batching: Batching | str) -> Batching:
    """A way of batching, also by the name that commands and results use."""
    return batching if isinstance(batching, Batching) else Batching(value_of(lib.ct_batching_by_name, batching))
