# SPDX-License-Identifier: Apache-2.0
"""An open device as the modules of this package see it: calls one at a time, submitted work, handles.

The library wants one thread at a time for a device. A lock sees to that, and waits are cut into slices, so that other threads get
their turn and Ctrl-C is heard. The collector of garbage may run in any thread, within any call: what it frees while the library is
busy waits for the next call.
"""

from __future__ import annotations

import asyncio
import ctypes
import functools
import math
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, ClassVar, SupportsIndex, TypeVar

from ._abi import ErrorCode, ct_event
from ._lib import lib, sentence
from ._numbers import U64, real, whole
from .errors import ArgumentError, ClosedError, Error, error_of
from .events import Event, Future, event_of

T = TypeVar("T")

SLICE = 0.005  # seconds that a wait lasts before others get their turn
POLLED = 256  # events that are taken before the event loop goes on
NOTHING = (ErrorCode.TIMEOUT, ErrorCode.NOT_FOUND)  # has ended
LONGEST = 2**31 - 1  # milliseconds in a C int


class Connection:
    """The device itself, and its lock."""

    def __init__(self, uri: str, raw: int) -> None:
        self.uri = uri
        self._raw = raw
        self._closed = self._foreign = False
        self._fd = -1
        self._lock = threading.RLock()
        self._wanting: list[None] = []  # one for each thread that waits for the lock
        self._inside = False  # the library, by a call of the thread that has the lock
        self._garbage: list[tuple[Callable[[int], None], int]] = []
        self._futures: dict[int, Future] = {}
        self._unclaimed: dict[int, Event] = {}  # reaped for the event loop, wanted by nobody so far
        self._loops: dict[asyncio.AbstractEventLoop, int] = {}  # event loops with waits, and how many

    # ---- Calls ----

    # Ctrl-C is heard behind any call, and raises there. `with` on the lock itself, and `finally`, leave nothing behind.

    def _locked(self, action: Callable[[], T]) -> T:
        """Does something with the lock; whoever waits in slices makes way meanwhile."""
        try:
            self._wanting.append(None)
            with self._lock:
                return action()
        finally:
            self._wanting.pop()

    def _enter(self, function: Callable[..., T], arguments: tuple[Any, ...]) -> T:
        """Calls the library, with the lock."""
        if self._inside:
            raise ArgumentError("the library was called by a handler of its own log, which must not do that")
        if self._foreign:
            raise ClosedError(f"the device {self.uri} is of the process that forked this one, which has to open a device of its own")
        if self._closed:
            raise ClosedError(f"the device {self.uri} was closed before")
        try:
            self._inside = True
            self._free_garbage()
            return function(*arguments)
        finally:
            self._inside = False

    def _free_garbage(self) -> None:
        while self._garbage:
            free, handle = self._garbage.pop()
            free(handle)

    def call(self, function: Callable[..., int], *arguments: Any, allowed: tuple[ErrorCode, ...] = ()) -> int:
        """Calls a function of the library and returns what it returns; other Python threads run meanwhile.

        A negative number is raised as an exception with the library's sentence, unless it is allowed.
        """

        def checked() -> int:
            code = function(*arguments)
            if code < 0 and code not in allowed:
                raise error_of(code, sentence(self._raw, code))
            return code

        return self.look(checked)

    def look(self, function: Callable[..., T], *arguments: Any) -> T:
        """Calls a function that returns no error code."""
        return self._locked(lambda: self._enter(function, arguments))

    def give_back(self, free: Callable[[int], None], handle: int, wait: bool = True) -> None:
        """Frees a handle, of a closed device too. Where the library is busy it is freed by the next call."""

        def give() -> None:
            if self._foreign:
                return
            if self._inside:
                self._garbage.append((free, handle))
            else:
                free(handle)

        if wait:
            self._locked(give)
        elif self._lock.acquire(blocking=False):
            try:
                give()
            finally:
                self._lock.release()
        else:
            self._garbage.append((free, handle))

    def close(self) -> None:
        """Stops what runs and gives everything back, within a second, or after a call of another thread that blocks. Results that were
        not waited for are lost; a second call does nothing.
        """

        def shut() -> None:
            if not self._closed and not self._inside:
                self._shut()

        self._locked(shut)

    def _shut(self) -> None:
        try:
            self._closed = self._inside = True
            self._abandon()
            self._free_garbage()
            lib.ct_close(self._raw)
        finally:
            self._inside = False

    def _forget(self) -> None:
        """In a process that was forked: the device is the other one's, whose threads and locks are not here."""
        self._closed = self._foreign = True
        self._inside, self._lock = False, threading.RLock()
        self._wanting, self._garbage = [], []
        self._futures, self._unclaimed, self._loops = {}, {}, {}

    def __reduce__(self) -> Any:
        raise TypeError("a device cannot be copied or pickled: each process opens its own")

    def _abandon(self) -> None:
        """Whoever waits in an event loop learns that there is no device any more."""
        loops, self._loops = list(self._loops), {}
        for loop in loops:
            _let_go(loop, self._fd)
        for future in self._futures.values():
            future._fail(ClosedError(f"the device {self.uri} was closed while {future!r}"))
        self._futures.clear()

    # ---- Submitted work ----

    def _submit(self, function: Callable[..., int], *arguments: Any, user: Any = None, keep: tuple[Any, ...] = ()) -> Future:
        """Calls a function that submits and whose last parameter is where the tag goes."""
        tag = ctypes.c_uint64()

        def submit() -> Future:
            self.call(function, *arguments, ctypes.byref(tag))
            future = Future(self, tag.value, user, keep)
            self._futures[tag.value] = future
            return future

        return self._locked(submit)  # or another thread could take the event before the future is known

    def _known(self, raw: ct_event, hold: bool = False) -> Event:
        """An event that the library gave out. If Ctrl-C cuts this off it can be done again.

        hold: nobody asked for this one; unless somebody waits for it, :meth:`reap` will give it. That is settled before the future
        knows its event, because from then on another thread may claim it.
        """
        future = self._futures.get(raw.tag)
        event = event_of(raw, future.user if future else None)
        if hold and not (future and future._waiters):
            self._unclaimed[event.tag] = event
        if future:
            future._settle(event)
            self._futures.pop(raw.tag, None)
        return event

    def _take(self, take: Callable[[Any, int], int], milliseconds: int, hold: bool = False) -> Event | ErrorCode:
        """An event by take(event, milliseconds), with the lock. One that came as Ctrl-C did is not lost: :meth:`reap` has it."""
        raw, event = ct_event(), None
        try:
            code = self.call(take, ctypes.byref(raw), milliseconds, allowed=NOTHING)
            event = self._known(raw, hold) if code >= 0 else None
        except BaseException:
            if raw.tag and event is None:
                self._known(raw, hold=True)
            raise
        return event or ErrorCode(code)

    def _held(self) -> Event | None:
        """An event that nobody has asked for so far, oldest first."""
        for tag in list(self._unclaimed):
            event = self._unclaimed.pop(tag, None)  # unless another thread was faster
            if event:
                return event
        return None

    def _sliced(self, take: Callable[[Any, int], int], timeout: float | None) -> Event | ErrorCode:
        """Waits by take(event, milliseconds), slice by slice; the event, or TIMEOUT or NOT_FOUND."""
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            rest = SLICE if end is None else min(SLICE, max(0.0, end - time.monotonic()))
            began = time.monotonic()
            found = self._locked(functools.partial(self._take, take, round(rest * 1000)))
            if isinstance(found, Event):
                return found
            # The library returns before the time is over where nothing can ever end.
            early = time.monotonic() - began < rest / 2
            if found == ErrorCode.NOT_FOUND or early or (end is not None and time.monotonic() >= end):
                return found
            if self._wanting:
                time.sleep(0.0005)  # or this thread would take the lock again before another sees that it is free

    def wait_for(self, future: Future, timeout: float | None) -> bool:
        """Whether the event of a future is known within a time in seconds."""
        check_timeout(timeout)
        found = self._sliced(lambda raw, ms: lib.ct_wait(self._raw, future.tag, raw, ms), timeout)
        if future._event is not None:  # by this thread or another
            return True
        if found == ErrorCode.NOT_FOUND:
            raise error_of(ErrorCode.NOT_FOUND, f"{future!r} is not known to the device")
        return False

    def reap(self, timeout: float | None = None) -> Event:
        """The event of something that has ended: of any, oldest first.

        timeout: seconds to wait at most; 0 looks and returns, None waits without limit. Raises :class:`TimeoutError` if nothing ends
        in time, :class:`NotFoundError` if nothing is outstanding. Failed work is no exception here: see :meth:`Event.check`. Even a
        timeout of 0 lets a simulated device run a little, so polling makes progress.
        """
        check_timeout(timeout)
        return self._held() or self._event_or_raise(self._sliced(lambda raw, ms: lib.ct_reap(self._raw, raw, ms), timeout))

    def reap_until(self, cycle: SupportsIndex, timeout: float | None = None) -> Event:
        """As :meth:`reap`, but also gives up with :class:`TimeoutError` when the device's clock reaches a cycle.

        With nothing outstanding it waits just for that.
        """
        check_timeout(timeout)
        end = whole(cycle, "cycle", U64)
        return self._held() or self._event_or_raise(self._sliced(lambda raw, ms: lib.ct_reap_until(self._raw, raw, end, ms), timeout))

    def _event_or_raise(self, found: Event | ErrorCode) -> Event:
        if isinstance(found, Event):
            return found
        raise error_of(found, sentence(self._raw, found))

    def claim(self, future: Future) -> None:
        """Somebody has taken notice of the event of a future: it is not for :meth:`reap` any more."""
        self._unclaimed.pop(future.tag, None)

    def cancel(self, future: Future) -> None:
        """Asks to end it."""
        self.call(lib.ct_cancel, self._raw, future.tag)

    # ---- asyncio ----

    async def wait_async(self, future: Future) -> None:
        """Returns when the event of a future is known."""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        future._waiters.append(waiter)
        try:
            if future._event is not None:  # another thread took it, and saw nobody wait
                return
            self._watch(loop)
            try:
                await waiter
            finally:
                self._unwatch(loop)
        finally:
            future._waiters.remove(waiter)

    def fileno(self) -> int:
        """A file descriptor for :mod:`selectors`, the same every time: readable when :meth:`reap` with 0 may have an event. Do not read
        from it.
        """
        if self._fd < 0 or self._closed:  # then it says so
            self._fd = self.call(lib.ct_poll_fd, self._raw)
        return self._fd

    # The counts of a loop are its thread's alone.
    def _watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Has the event loop look at the device."""
        fd = self.fileno()
        waits = self._loops.get(loop, 0)
        self._loops[loop] = waits + 1
        if waits == 0:
            loop.add_reader(fd, self._poll, loop)

    def _unwatch(self, loop: asyncio.AbstractEventLoop) -> None:
        waits = self._loops.get(loop, 0) - 1
        if waits > 0:
            self._loops[loop] = waits
        elif waits == 0:
            del self._loops[loop]
            loop.remove_reader(self._fd)

    def _poll(self, loop: asyncio.AbstractEventLoop) -> None:
        """Called by the event loop: takes the events that are there, for whoever waits for them."""
        if not self._lock.acquire(blocking=False):
            # Another thread waits in the library: look again soon, and let the loop go on meanwhile.
            loop.remove_reader(self._fd)
            loop.call_later(0.001, self._look_again, loop)
            return
        try:
            self._take_all()
        except Error as error:
            for future in list(self._futures.values()):
                future._fail(error)
        finally:
            self._lock.release()

    def _look_again(self, loop: asyncio.AbstractEventLoop) -> None:
        if loop in self._loops:
            loop.add_reader(self._fd, self._poll, loop)

    def _take_all(self) -> None:
        for _ in range(POLLED):
            if not isinstance(self._take(lambda raw, ms: lib.ct_reap(self._raw, raw, ms), 0, hold=True), Event):
                return


def _let_go(loop: asyncio.AbstractEventLoop, fd: int) -> None:
    """Takes a descriptor from an event loop before it is closed: the next file that is opened may have its number."""
    if loop.is_closed():
        return
    if loop is asyncio._get_running_loop():
        loop.remove_reader(fd)
        return
    gone = threading.Event()
    loop.call_soon_threadsafe(loop.remove_reader, fd)
    loop.call_soon_threadsafe(gone.set)
    gone.wait(0.5)  # or not, if it waits for this thread


H = TypeVar("H", bound="Handle")


class Handle:
    """What a device keeps for its user until it is closed. Closing is always safe, twice too; ``with`` closes at its end."""

    _free: ClassVar[Callable[[int], None]]

    def __init__(self, connection: Connection, raw: int) -> None:
        self._connection = connection
        self._handle: int | None = raw

    def __reduce__(self) -> Any:
        raise TypeError(f"a {type(self).__name__} cannot be copied or pickled: it is the device's")

    def __repr__(self) -> str:
        return f"<coltrain.{type(self).__name__} on {self._connection.uri}{', closed' if self.closed else ''}>"

    @property
    def _raw(self) -> int:
        if self._handle is None:
            raise ClosedError(f"this {type(self).__name__} was closed before")
        return self._handle

    @property
    def closed(self) -> bool:
        """Whether :meth:`close` was called."""
        return self._handle is None

    def close(self) -> None:
        """Gives it back to the device; what is under way and uses it goes on."""
        handle, self._handle = self._handle, None
        if handle is not None:
            self._connection.give_back(type(self)._free, handle)

    def __enter__(self: H) -> H:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def __del__(self) -> None:
        handle = getattr(self, "_handle", None)
        if handle is not None:  # in whatever thread, in the middle of whatever call
            self._connection.give_back(type(self)._free, handle, wait=False)


def raw_of(handle: object, kind: type[Handle], name: str, connection: Connection) -> int:
    """The library's pointer to a handle. It would follow one of another kind, or of another device, to wherever that leads."""
    if not isinstance(handle, kind):
        raise ArgumentError(f"{name} is {handle!r}, which is no {kind.__name__}")
    if handle._connection is not connection:
        raise ArgumentError(f"{name} is {handle!r}, which is of another device than this one")
    return handle._raw


def milliseconds(timeout: float | None) -> int:
    """Seconds as the library's timeouts; None is without limit."""
    check_timeout(timeout)
    return -1 if timeout is None or timeout == math.inf else min(LONGEST, round(timeout * 1000))


def check_timeout(timeout: float | None) -> None:
    if timeout is not None and not real(timeout, "a timeout") >= 0:
        raise ArgumentError(f"a timeout of {timeout} s: it is 0 or more seconds, or None for no limit")
