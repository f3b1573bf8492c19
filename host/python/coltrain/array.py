# SPDX-License-Identifier: Apache-2.0
"""Many trainings at once: an array of networks on one device, each bit for bit what it is alone.

    graph = coltrain.Graph.builtin("lenet5", batch=16, training=True)
    with coltrain.open("emu:") as device, device.array() as array:
        members = [array.join(graph, batches, schedule=rate, momentum=0.9, seed=1) for rate in (0.01, 0.03, 0.1)]
        array.run(1000)
        best = min(members, key=lambda member: member.info.loss)
        best.save("best.ctm")

Members of which only numbers of the optimiser differ share their programs, and those with the same feed their batches; at the same run
they are in the same jobs, but for perceptrons as one stage.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, SupportsIndex, TypeAlias

from ._abi import (
    CT_FEED_FN,
    CT_NO_CYCLE,
    CT_WATCH_FN,
    ErrorCode,
    MemberState,
    Optimiser,
    ct_array_info,
    ct_array_options,
    ct_member,
    ct_member_info,
    ct_member_run,
    ct_tensor_info,
    ct_watch,
)
from ._arrays import Array as Values
from ._arrays import address, floats
from ._connection import Connection, Handle
from ._lib import lib
from ._numbers import U64, path_of, whole
from .compiled import Compiled
from .errors import ArgumentError
from .events import cycle_of
from .graph import Graph, Schedule, optimise_of

Feed: TypeAlias = Callable[[int], Mapping[str, Values]]
"""Gives inputs and labels of a run, counted from 0, by name: the same whenever it is asked for the same run. It must not use the device."""


@dataclass(frozen=True, slots=True)
class MemberInfo:
    """What is known of a member."""

    number: int
    state: MemberState
    """READY; DIVERGED: a loss or a weight was NaN or infinite; FAILED: a run or its feed failed. Neither runs any more."""
    error: ErrorCode
    """Of a failed one."""
    runs: int
    """That it has had, those before it joined too."""
    ended_by: int | None
    """The first run with such a loss, or behind which weights were found to be so, or that failed."""
    loss: float
    """Of its last run; NaN before."""
    together: int
    """Members that have its programs, itself among them."""
    bytes: int
    """Of device memory that it has for itself."""
    cycles: int
    """That its runs took, and of runs in the same jobs its part; 0 on a device without a clock."""
    beside: int
    """Members in the jobs of its last run, itself among them: when such a run fails all have failed. 0 before the first."""


def _info_of(raw: ct_member_info) -> MemberInfo:
    return MemberInfo(
        number=raw.number,
        state=MemberState(raw.state),
        error=ErrorCode(raw.error),
        runs=raw.runs,
        ended_by=cycle_of(raw.ended_by),
        loss=raw.loss,
        together=raw.together,
        bytes=raw.bytes,
        cycles=raw.cycles,
        beside=raw.beside,
    )


@dataclass(frozen=True, slots=True)
class MemberRun:
    """A run that has ended."""

    member: Member
    run: int
    """Counted from 0."""
    error: ErrorCode
    loss: float
    """NaN if it failed."""
    start: int | None
    end: int | None
    state: MemberState


@dataclass(frozen=True, slots=True)
class ArrayInfo:
    """What is known of an array."""

    members: int
    ready: int
    """Members that would run."""
    programs: int
    """Sets of programs that they have."""
    batches: int
    """Written so far."""
    runs: int
    """That have ended."""
    bytes: int
    """Of device memory for batches."""


Watch: TypeAlias = Callable[[MemberRun], Any]
"""Called when a run has ended. What is true ends the call of :meth:`Array.run`. It must not use the device."""


class _Borrowed(Compiled):
    """A network that is a member's: the array frees it."""

    _free = staticmethod(lambda handle: None)


class Member:
    """A training in an array; :meth:`Array.join` gives one."""

    def __init__(self, array: Array, number: int) -> None:
        self.array = array
        self.number = number
        self._network: _Borrowed | None = None

    def __repr__(self) -> str:
        return f"<coltrain.Member {self.number} of {self.array!r}>"

    @property
    def info(self) -> MemberInfo:
        """What is known of it. Raises :class:`NotFoundError` if it has left."""
        raw = ct_member_info()
        self.array._connection.call(lib.ct_array_member, self.array._raw, self.number, ctypes.byref(raw))
        return _info_of(raw)

    def limit(self, run: SupportsIndex | None) -> None:
        """Lets it take no run from that number on, counted from 0; None: any. So members of other batch sizes can see the same data."""
        last = CT_NO_CYCLE if run is None else whole(run, "run", U64)
        self.array._connection.call(lib.ct_array_limit, self.array._raw, self.number, last)

    @property
    def network(self) -> Compiled:
        """Its network, to be read, saved or published between runs, or to have weights written. It is the array's: closing it frees
        nothing, and it has no inputs and outputs of its own, so running it raises :class:`UnsupportedError`.
        """
        if self._network is None or self._network.closed:
            self.info  # noqa: B018  it is there
            raw = self.array._connection.look(lib.ct_array_network, self.array._raw, self.number)
            network = _Borrowed.__new__(_Borrowed)
            Handle.__init__(network, self.array._connection, raw or 0)
            network.graph = network._own_graph()
            self._network = network
        return self._network

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes an ordinary file of a network, as :meth:`Compiled.save` does."""
        self.network.save(path)

    def leave(self) -> None:
        """Takes it out of the array and frees its network."""
        self.array._connection.call(lib.ct_array_leave, self.array._raw, self.number)
        self.array._gone(self)


class Array(Handle):
    """Trainings on a device; :meth:`Device.array` gives one, ``with`` frees it at its end."""

    _free = lib.ct_array_free

    def __init__(
        self, connection: Connection, ahead: SupportsIndex = 0, look: SupportsIndex = 0, apart: bool = False, both: bool = False
    ) -> None:
        options = ct_array_options(ahead=whole(ahead, "ahead"), look=whole(look, "look"), apart=apart, both=both)
        raw = ctypes.c_void_p()
        connection.call(lib.ct_array_create, connection._raw, ctypes.byref(options), ctypes.byref(raw))
        super().__init__(connection, raw.value or 0)
        self._members: dict[int, Member] = {}
        self._feeds: list[Feed] = []  # by number: C gets that plus one
        self._raised: BaseException | None = None
        self._write = CT_FEED_FN(self._fill)

    # ---- Members ----

    def join(
        self,
        network: Graph | str | os.PathLike[str],
        feed: Feed,
        *,
        schedule: Schedule | float | None = None,
        optimiser: Optimiser | str = Optimiser.SGD,
        momentum: float = 0.0,
        weight_decay: float = 0.0,
        beta1: float = 0.0,
        beta2: float = 0.0,
        epsilon: float = 0.0,
        clip: float = 0.0,
        accumulate: int = 1,
        seed: SupportsIndex = 1,
        masks: SupportsIndex = 0,
        mantissa: SupportsIndex = 0,
        loss: str = "loss",
    ) -> Member:
        """Adds a member between two calls of :meth:`run`.

        network: a graph, without gradients where schedule is given (the numbers mean what they do for :meth:`Graph.optimise`), else with
        its updates; or the name of a file, which goes on where it was saved. feed: members that are given the same one, and have the
        same programs, read the same batches. seed: that weights are drawn from. masks: of dropout. loss: an output of one number.
        Raises :class:`NoSpaceError`, :class:`UnsupportedError`; then the others do not notice.
        """
        if not callable(feed):
            raise ArgumentError(f"feed is {feed!r}, which cannot be called")
        raw, number = ct_member(seed=whole(seed, "seed", U64), masks=whole(masks, "masks", U64)), ctypes.c_uint32()
        texts = [ctypes.create_string_buffer(loss.encode())]
        raw.mantissa, raw.loss = whole(mantissa, "mantissa"), ctypes.addressof(texts[0])
        numbers = {"momentum": momentum, "weight_decay": weight_decay, "beta1": beta1, "beta2": beta2, "epsilon": epsilon, "clip": clip}
        if schedule is not None:
            how = optimise_of(schedule, optimiser, accumulate, numbers)
            raw.optimise = ctypes.pointer(how)
        graph = network if isinstance(network, Graph) else None
        if graph is not None:
            raw.graph = graph._raw.value
        elif isinstance(network, str | os.PathLike):
            texts.append(ctypes.create_string_buffer(path_of(network)))
            raw.file = ctypes.addressof(texts[1])
        else:
            raise ArgumentError(f"{network!r} is neither a graph nor the name of a file")
        raw.feed.write, raw.feed.arg = self._write, self._feed_number(feed) + 1
        self._connection.call(lib.ct_array_join, self._raw, ctypes.byref(raw), ctypes.byref(number))
        member = Member(self, number.value)
        self._members[number.value] = member
        return member

    def _feed_number(self, feed: Feed) -> int:
        for number, known in enumerate(self._feeds):
            if known is feed:
                return number
        self._feeds.append(feed)
        return len(self._feeds) - 1

    def _gone(self, member: Member) -> None:
        self._members.pop(member.number, None)
        if member._network is not None:
            member._network.close()

    @property
    def members(self) -> list[Member]:
        """Those that are in it, in the order in which they joined."""
        return list(self._members.values())

    def infos(self) -> list[MemberInfo]:
        """What is known of each, in the order in which they joined."""
        raw = (ct_member_info * max(len(self._members), 1))()
        count = self._connection.look(lib.ct_array_members, self._raw, raw, len(self._members))
        return [_info_of(raw[i]) for i in range(min(count, len(self._members)))]

    @property
    def info(self) -> ArrayInfo:
        """What is known of it."""
        raw = ct_array_info()
        self._connection.call(lib.ct_array_info, self._raw, ctypes.byref(raw))
        return ArrayInfo(raw.members, raw.ready, raw.programs, raw.batches, raw.runs, raw.bytes)

    def close(self) -> None:
        """Frees the array and its members."""
        for member in self.members:
            self._gone(member)
        super().close()

    # ---- Running ----

    def run(self, runs: SupportsIndex, watch: Watch | None = None) -> None:
        """Each member that is ready takes so many more runs; returns when all have ended.

        A member that fails or diverges is no exception: :attr:`Member.info` says so. What a feed or watch raises ends the call, and is
        raised by it, when the runs under way have ended. A member whose feed raises has failed.
        """
        self._raised = None
        seen = CT_WATCH_FN(lambda _, run: self._see(run, watch))
        self._connection.call(lib.ct_array_run, self._raw, whole(runs, "runs", U64), ctypes.byref(ct_watch(ended=seen)))
        if self._raised is not None:
            raise self._raised

    # The library calls these while the device is locked; nothing may be raised through it.

    def _see(self, at: int, watch: Watch | None) -> int:
        if self._raised is not None or watch is None:
            return int(self._raised is not None)
        raw = ct_member_run.from_address(at)
        try:
            run = MemberRun(
                member=self._members[raw.number],
                run=raw.run,
                error=ErrorCode(raw.error),
                loss=raw.loss,
                start=cycle_of(raw.start),
                end=cycle_of(raw.end),
                state=MemberState(raw.state),
            )
            return int(bool(watch(run)))
        except BaseException as error:  # noqa: BLE001  raised again by run()
            self._raised = error
            return 1

    def _fill(self, number: int, run: int, frame: int) -> int:
        try:
            return self._put(self._feeds[number - 1](run), frame)
        except BaseException as error:  # noqa: BLE001  raised again by run()
            self._raised = self._raised or error
            return int(ErrorCode.CANCELLED)

    def _put(self, values: Mapping[str, Values], frame: int) -> int:
        graph = lib.ct_network_graph(lib.ct_frame_network(frame))
        for name, value in values.items():
            tensor = lib.ct_graph_find(graph, name.encode())
            if tensor < 0:
                raise ArgumentError(f"the feed gives {name}, but the network has no such tensor")
            array = floats(value, name, _shape(graph, tensor))
            code = lib.ct_frame_write(frame, tensor, address(array), array.size)
            if code < 0:
                return code
        return 0


def _shape(graph: int | None, tensor: int) -> tuple[int, ...]:
    raw = ct_tensor_info()
    lib.ct_graph_tensor_info(graph, tensor, ctypes.byref(raw))
    return tuple(raw.shape.dim[: raw.shape.dims])
