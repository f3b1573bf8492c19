# SPDX-License-Identifier: Apache-2.0
"""Networks on a device: compiled, run, trained.

    network = coltrain.Network.builtin("lenet5", batch=16)
    with coltrain.open("emu:") as device, device.compile(network) as net:
        logits = net.run({"x": images})["logits"]

A graph with gradients and updates (:meth:`Graph.optimise`) is trained by the same calls: each run is a step.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, SupportsIndex

import numpy as np

from ._abi import Queue, Role, ct_network_options, ct_network_stage
from ._arrays import F32, Array, address, floats
from ._connection import Connection, Handle
from ._lib import lib
from ._numbers import U64, whole
from .errors import ArgumentError
from .events import cycle_of, queue_of
from .graph import Graph, Tensor, _text

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
    """Of the last run."""
    expected: int | None
    """Cycles that its programs should take."""
    bound: str
    """What it waits for most."""


class Compiled(Handle):
    """A graph on a device, with weights of its own; ``with`` frees it at its end."""

    _free = lib.ct_network_free

    def __init__(
        self, connection: Connection, network: Network | Graph, mantissa: SupportsIndex = 8, expect: bool = False, seed: SupportsIndex = 0
    ) -> None:
        graph = network if isinstance(network, Graph) else network.graph
        options = ct_network_options(mantissa=whole(mantissa, "mantissa"), expect=expect, seed=whole(seed, "seed", U64))
        raw = ctypes.c_void_p()
        graph.check()
        connection.call(lib.ct_network_create, connection._raw, graph._raw, ctypes.byref(options), ctypes.byref(raw))
        super().__init__(connection, raw.value or 0)
        self.graph = graph
        if not isinstance(network, Graph):
            self.write(network.values)

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
        wanted: Iterable[Tensor | str] | None = None,
        *,
        step: SupportsIndex = 0,
        queue: Queue | str = Queue.TRAINING,
    ) -> dict[str, F32]:
        """Runs the network once: its outputs (or what is wanted) by name. step counts from 0: schedules and Adam go by it."""
        self.write(inputs or {})
        self._connection.call(lib.ct_network_run, self._raw, queue_of(queue), whole(step, "step", U64))
        names = self.graph.by_role(Role.OUTPUT) if wanted is None else [self._tensor(name).name for name in wanted]
        return {name: self.read(name) for name in names}

    def values(self) -> dict[str, F32]:
        """All weights and states as the device has them."""
        return {name: self.read(name) for name in self.graph.by_role(Role.WEIGHT, Role.STATE)}

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
                    bound=_text(raw.bound),
                )
            )
        if not found:
            raise ArgumentError("the network has no stages: nothing of it is an output")
        return found
