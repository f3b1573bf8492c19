# SPDX-License-Identifier: Apache-2.0
"""Many trainings at once from Python: each is what it is alone."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import coltrain
import numpy as np
import pytest

BATCH, INPUTS, CLASSES = 8, 20, 3
RATES = (0.3, 0.1, 0.03)


class Batches:
    """Batches by the number of the run."""

    def __init__(self, seed: int, poison: int = 1 << 62) -> None:
        self.seed, self.poison, self.asked = seed, poison, 0

    def __call__(self, run: int) -> Mapping[str, Any]:
        self.asked += 1
        random = np.random.default_rng((self.seed, run))
        x = random.standard_normal((BATCH, INPUTS)).astype(np.float32)
        if run >= self.poison:
            x[0, 0] = np.inf
        return {"x": x, "y": np.eye(CLASSES, dtype=np.float32)[random.integers(CLASSES, size=BATCH)]}


def perceptron() -> coltrain.Graph:
    return coltrain.Graph.mlp([INPUTS, 32, CLASSES], BATCH, training=True)


def alone(rate: float, feed: Batches, runs: int, seed: int = 1, **how: Any) -> dict[str, Any]:
    graph = perceptron()
    graph.optimise("loss", rate, **how)
    with coltrain.open("emu:") as device, device.compile(graph) as net:
        net.draw(seed)
        for run in range(runs):
            net.run(feed(run), step=run)
        return net.values()


def same(a: Mapping[str, Any], b: Mapping[str, Any]) -> bool:
    return a.keys() == b.keys() and all(np.array_equal(a[k], b[k], equal_nan=True) for k in a)


def test_members_are_what_they_are_alone(seed: int) -> None:
    feed = Batches(seed)
    with coltrain.open("emu:") as device, device.array() as array:
        members = [array.join(perceptron(), feed, schedule=rate, momentum=rate, seed=5) for rate in RATES]
        losses: dict[int, list[float]] = {member.number: [] for member in members}
        array.run(10, lambda run: losses[run.member.number].append(run.loss))
        assert feed.asked == array.info.batches == 10 and array.info.programs == 1 and array.info.runs == 30
        for member, rate in zip(members, RATES, strict=True):
            info = member.info
            assert info.state == coltrain.MemberState.READY and info.runs == 10 and info.together == 3 and info.bytes > 0
            assert info.loss == losses[member.number][-1] and len(losses[member.number]) == 10
            assert member.network.info.together == 3
            with pytest.raises(coltrain.UnsupportedError, match="only the array runs it"):
                member.network.run()
            assert same(member.network.values(), alone(rate, feed, 10, 5, momentum=rate))


def test_members_join_and_leave(seed: int, tmp_path: Path) -> None:
    feed, other = Batches(seed), Batches(seed + 1)
    with coltrain.open("emu:") as device, device.array(ahead=3) as array:
        first = array.join(perceptron(), feed, schedule=0.1, momentum=0.9)
        array.run(4)
        second = array.join(perceptron(), other, schedule=coltrain.Schedule(0.1, "cosine", period=9), optimiser="adam", beta1=0.8)
        array.run(3)
        network = first.network
        first.save(tmp_path / "first.ctm")
        first.leave()
        assert network.closed and array.members == [second]
        with pytest.raises(coltrain.NotFoundError, match="no member 1"):
            first.info  # noqa: B018
        third = array.join(tmp_path / "first.ctm", feed)
        array.run(2)
        assert same(third.network.values(), alone(0.1, feed, 9, momentum=0.9))
        schedule = coltrain.Schedule(0.1, "cosine", period=9)
        assert same(second.network.values(), alone(schedule, other, 5, optimiser="adam", beta1=0.8))  # type: ignore[arg-type]


def test_one_diverges(seed: int) -> None:
    good, bad = Batches(seed), Batches(seed, poison=3)
    with coltrain.open("emu:") as device, device.array() as array:
        members = [array.join(perceptron(), feed, schedule=0.1) for feed in (good, bad)]
        array.run(8)
        info = members[1].info
        assert info.state == coltrain.MemberState.DIVERGED and info.ended_by == 3 and info.runs == 5
        assert array.info.ready == 1
        assert same(members[0].network.values(), alone(0.1, good, 8))
        assert same(members[1].network.values(), alone(0.1, bad, 5))


def test_limits(seed: int) -> None:
    feed = Batches(seed)
    with coltrain.open("emu:") as device, device.array() as array:
        members = [array.join(perceptron(), feed, schedule=0.1) for _ in range(2)]
        members[0].limit(3)
        array.run(5)
        assert [info.runs for info in array.infos()] == [3, 5]
        members[0].limit(None)
        array.run(1)
        assert [info.runs for info in array.infos()] == [4, 6] and array.infos()[0] == members[0].info
        assert same(members[0].network.values(), alone(0.1, feed, 4))


def test_what_callbacks_raise(seed: int) -> None:
    class Empty(Batches):
        def __call__(self, run: int) -> Mapping[str, Any]:
            if run == 2:
                raise LookupError("no more")
            return super().__call__(run)

    good, empty = Batches(seed), Empty(seed)
    with coltrain.open("emu:") as device, device.array() as array:
        members = [array.join(perceptron(), feed, schedule=0.1) for feed in (good, empty)]
        with pytest.raises(LookupError, match="no more"):
            array.run(8)
        assert members[1].info.state == coltrain.MemberState.FAILED and members[1].info.ended_by == 2
        runs = members[0].info.runs
        assert 2 <= runs < 8 and same(members[0].network.values(), alone(0.1, good, runs))
        with pytest.raises(ZeroDivisionError):
            array.run(3, lambda run: 1 // 0)
        stopped = members[0].info.runs
        array.run(1 << 63, lambda run: run.run >= stopped + 5)
        assert stopped + 5 < members[0].info.runs <= stopped + 8


def test_what_is_refused(seed: int) -> None:
    feed = Batches(seed)
    with coltrain.open("emu:") as device, device.array() as array:
        with pytest.raises(coltrain.ArgumentError, match="no updates"):
            array.join(perceptron(), feed)
        with pytest.raises(coltrain.ArgumentError, match="cannot be called"):
            array.join(perceptron(), None, schedule=0.1)  # type: ignore[arg-type]
        with pytest.raises(coltrain.ArgumentError, match="neither a graph"):
            array.join(3, feed)  # type: ignore[arg-type]
        with pytest.raises(coltrain.NotFoundError, match="no tensor"):
            array.join(perceptron(), feed, schedule=0.1, loss="nothing")
        with pytest.raises(coltrain.ArgumentError, match="at most 8"):
            device.array(ahead=9)
        array.join(perceptron(), lambda run: {"z": np.zeros(3)}, schedule=0.1)
        with pytest.raises(coltrain.ArgumentError, match="no such tensor"):
            array.run(1)
    with pytest.raises(coltrain.ClosedError):
        array.run(1)
