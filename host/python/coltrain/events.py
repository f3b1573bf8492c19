# SPDX-License-Identifier: Apache-2.0
"""What became of submitted work: events, and futures to wait for one."""

from __future__ import annotations

import asyncio
from collections.abc import Generator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ._abi import CT_NO_CYCLE, ErrorCode, EventKind, Met, Queue, ct_event
from ._lib import lib, text_of
from ._numbers import member, whole
from .errors import error_of

if TYPE_CHECKING:
    from ._connection import Connection


def cycle_of(value: int) -> int | None:
    """A cycle of the device's clock; None for "no such time"."""
    return None if value == CT_NO_CYCLE else value


def queue_of(queue: Queue | str) -> Queue:
    """A queue, also by the name that commands and results use."""
    return member(queue, Queue, "queue")


def code_name(code: int) -> str:
    """The name of a device's completion code, such as "CANCELLED"."""
    return text_of(lib.ct_code_name(whole(code, "code"))) or str(code)


def code_text(code: int) -> str:
    """What a device's completion code means."""
    return text_of(lib.ct_code_text(whole(code, "code"))) or ""


@dataclass(frozen=True, slots=True)
class Event:
    """What became of something that was submitted. It is one thing with one event, however many jobs it took.

    Cycles are of the device's clock since power-up; None where there is no such time, as on ``emu:``.
    """

    tag: int
    """The future's tag."""
    kind: EventKind
    queue: Queue
    error: ErrorCode
    """OK, JOB or CANCELLED."""
    code: int
    """The device's code of the first job that failed, 0 if none; :func:`coltrain.code_text` says what it means."""
    address: int
    """That belongs to the code."""
    version: int
    """Of the weights that gave the answer, or are published; of a job its own."""
    rows: int
    """Rows of 16 x 16 multiply-accumulates that the array took; of a request: for its whole batch."""
    jobs: int
    """Jobs that it took; 0 for a request."""
    scheduled: int | None
    """The cycle it was submitted for."""
    arrive: int | None
    """The cycle in which the device heard of it."""
    start: int | None
    """The cycle in which it, or its batch, began."""
    end: int | None
    """The cycle in which its completion was visible."""
    batch: int
    """Requests in its batch; 0: it was in none, or is no request."""
    met: Met
    """Whether a request was answered by its deadline; UNKNOWN on a device without a clock."""
    deadline: int | None
    """The cycle by which an answer was wanted."""
    user: Any
    """What was given with it when it was submitted."""

    def check(self) -> Event:
        """Returns the event, or raises :class:`JobError` or :class:`CancelledError` if the work did not succeed."""
        if self.error == ErrorCode.OK:
            return self
        what = f"{self.kind.name.lower()} {self.tag}"
        text = f"{what} ended with {code_name(self.code)}: {code_text(self.code)} (address 0x{self.address:x})"
        failure = error_of(self.error, text)
        failure.event = self
        raise failure


def event_of(raw: ct_event, user: Any) -> Event:
    """The event that the library filled in."""
    return Event(
        raw.tag,
        EventKind(raw.kind),
        Queue(raw.queue),
        ErrorCode(raw.error),
        raw.code,
        raw.address,
        raw.version,
        raw.rows,
        raw.jobs,
        cycle_of(raw.scheduled),
        cycle_of(raw.arrive),
        cycle_of(raw.start),
        cycle_of(raw.end),
        raw.batch,
        Met(raw.met),
        cycle_of(raw.deadline),
        user,
    )


class Future:
    """Submitted work: wait for it with :meth:`result` or, in asyncio, with ``await``.

    It keeps what the work uses (batch, rows, answers, weights) until the event is known. Dropping a future cancels nothing; its event
    then comes from :meth:`Device.reap`.
    """

    __slots__ = ("_connection", "_event", "_keep", "_waiters", "tag", "user")

    def __init__(self, connection: Connection, tag: int, user: Any, keep: tuple[Any, ...]) -> None:
        self.tag = tag
        """Names the work until its event is reaped; never 0, never used again."""
        self.user = user
        self._connection = connection
        self._keep = keep
        self._event: Event | None = None
        self._waiters: list[asyncio.Future[None]] = []

    def __reduce__(self) -> Any:
        raise TypeError("a Future cannot be copied or pickled: it is the device's")

    def __repr__(self) -> str:
        state = "in flight" if self._event is None else self._event.error.name
        return f"<coltrain.Future {self.tag}: {state}>"

    @property
    def event(self) -> Event | None:
        """The event if it is known, without a look at the device."""
        return self._event

    def done(self) -> bool:
        """Whether it has ended. Looks at the device, and lets a simulated one run a little."""
        return self._event is not None or self._connection.wait_for(self, 0.0)

    def result(self, timeout: float | None = None) -> Event:
        """Waits at most timeout seconds (None: without limit) and returns the event.

        Raises :class:`JobError` or :class:`CancelledError` if the work failed, :class:`TimeoutError` when the time is over: then
        the work goes on, and can be waited for again.
        """
        if self._event is None and not self._connection.wait_for(self, timeout):
            raise error_of(ErrorCode.TIMEOUT, f"{self!r} did not end within {timeout} s; it goes on")
        return self._taken()

    def cancel(self) -> None:
        """Asks to end it, in whatever state it is, and returns at once.

        The event still comes, with CANCELLED unless it finished first. A step that had begun may leave its weights half changed; a
        request whose batch has been formed is answered.
        """
        if self._event is None:
            self._connection.cancel(self)

    def __await__(self) -> Generator[Any, None, Event]:
        """As :meth:`result`, while the event loop goes on. A task that is cancelled leaves the work alone."""
        if self._event is None:
            yield from self._connection.wait_async(self).__await__()
        return self._taken()

    def _taken(self) -> Event:
        """The event, which is known."""
        assert self._event is not None
        self._connection.claim(self)
        return self._event.check()

    def _settle(self, event: Event) -> None:
        """The event is known."""
        self._event = event
        self._keep = ()
        for waiter in self._waiters:
            _wake(waiter, None)

    def _fail(self, error: BaseException) -> None:
        """The event will not be known to whoever waits now."""
        for waiter in self._waiters:
            _wake(waiter, error)


def _wake(waiter: asyncio.Future[None], error: BaseException | None) -> None:
    """Ends a wait, from whatever thread."""

    def finish() -> None:
        if waiter.done():
            return
        if error is None:
            waiter.set_result(None)
        else:
            waiter.set_exception(error)

    loop = waiter.get_loop()
    if not loop.is_closed():
        loop.call_soon_threadsafe(finish)
