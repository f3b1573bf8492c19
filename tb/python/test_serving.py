# SPDX-License-Identifier: Apache-2.0
"""Requests, servers, futures, asyncio, own programs."""

from __future__ import annotations

import asyncio
import selectors
import threading
import time
from collections.abc import Iterator

import coltrain
import numpy as np
import pytest

END = bytes([0] * 32)


@pytest.fixture(params=["emu:", "sim:"])
def device(request: pytest.FixtureRequest) -> Iterator[coltrain.Device]:
    with coltrain.open(request.param) as opened:
        yield opened


class Bed:
    """A small model with rows, places for answers, and the answers that are right."""

    def __init__(self, device: coltrain.Device, seed: int, count: int = 24) -> None:
        self.model = device.model([16, 24, 5], seed=seed)
        x = np.random.default_rng(seed).standard_normal((count, 16), dtype=np.float32)
        self.rows, self.answers = self.model.rows(count), self.model.answers(count)
        self.rows.write(x)
        self.right = self.model.infer(x)


def test_requests_by_jobs(device: coltrain.Device, seed: int) -> None:
    bed = Bed(device, seed)
    version = bed.model.publish()
    with pytest.raises(coltrain.ArgumentError):
        bed.answers.read()
    futures = [
        bed.model.infer_submit(bed.rows, bed.answers, row=first, answer=first, count=8, weights=version, queue=queue, user=first)
        for first, queue in ((0, coltrain.Queue.INFERENCE), (8, coltrain.Queue.TRAINING), (16, coltrain.Queue.INFERENCE))
    ]
    assert {device.reap().user for _ in futures} == {0, 8, 16}
    assert all(f.done() and f.event and f.event.kind == coltrain.EventKind.ANSWER and f.result().version == 1 for f in futures)
    assert (bed.answers.read() == bed.right).all() and (bed.answers.read(3, 2) == bed.right[3:5]).all()
    for row, answer, count in ((0, 0, 17), (24, 0, 1), (0, -1, 1)):
        with pytest.raises(coltrain.ArgumentError):
            bed.model.infer_submit(bed.rows, bed.answers, row=row, answer=answer, count=count)


@pytest.mark.parametrize("batching", ["none", "fixed", coltrain.Batching.ADAPTIVE])
def test_servers(device: coltrain.Device, seed: int, batching: str | coltrain.Batching) -> None:
    bed = Bed(device, seed)
    version = bed.model.publish()
    with bed.model.serve(version, batching=batching, max_batch=4, max_wait=2000) as server:
        assert server.info.max_batch == 4 and server.info.version == 1
        with pytest.raises(coltrain.ArgumentError, match="server"):
            bed.model.serve(version)
        futures = [server.push(bed.rows, bed.answers, row=i, answer=i, deadline=100000, user=i) for i in range(len(bed.rows))]
        events = [future.result(10) for future in futures]
        assert [event.user for event in events] == list(range(24))
        assert all(event.kind == coltrain.EventKind.REQUEST and 1 <= event.batch <= 4 for event in events)
        met = coltrain.Met.YES if device.info.has_clock else coltrain.Met.UNKNOWN
        assert {event.met for event in events} == {met}
        assert (bed.answers.read() == bed.right).all()
        server.set_weights(bed.model.publish())
        assert server.push(bed.rows, bed.answers).result(10).version == 2
        waiting = server.info.waiting
        assert waiting == 0
    with pytest.raises(coltrain.ClosedError):
        server.push(bed.rows, bed.answers)
    with pytest.raises(coltrain.ArgumentError, match="adaptive"):
        bed.model.serve(version, batching="best")


def test_handles_may_go_while_work_is_in_flight(device: coltrain.Device, seed: int) -> None:
    bed = Bed(device, seed)
    future = bed.model.infer_submit(bed.rows, bed.answers, count=16)
    answers, right = bed.answers, bed.right
    bed.rows.close()
    del bed
    assert future.result(10).error == coltrain.ErrorCode.OK
    assert (answers.read(0, 16) == right[:16]).all()


def test_a_timeout_leaves_the_work_alone(seed: int) -> None:
    with coltrain.open("sim:") as device:
        model = device.model([512, 512, 10], seed=seed)
        rows, answers = model.rows(16), model.answers(16)
        rows.write(np.ones((16, 512)))
        future = model.infer_submit(rows, answers, count=16)
        assert "in flight" in repr(future) and not future.done()
        with pytest.raises(coltrain.TimeoutError, match="goes on"):
            future.result(0.001)
        with pytest.raises(TimeoutError):
            device.reap(0)
        with pytest.raises(coltrain.BusyError):
            answers.read()
        assert future.result().end == future.result().end and "OK" in repr(future)
        for timeout in (-1, float("nan")):
            with pytest.raises(coltrain.ArgumentError, match="timeout"):
                device.reap(timeout)
        device.timeout = 0.001
        with pytest.raises(coltrain.TimeoutError):
            model.infer(np.ones((64, 512)))
        device.timeout = None
        assert model.infer(np.ones((1, 512))).tobytes() == answers.read(0, 1).tobytes()


def test_cancelled_work(device: coltrain.Device, seed: int) -> None:
    bed = Bed(device, seed)
    future = bed.model.infer_submit(bed.rows, bed.answers, cycle=(device.now() or 0) + 60000 if device.info.has_schedule else 0)
    future.cancel()
    if device.info.has_schedule:
        with pytest.raises(coltrain.CancelledError, match="CANCELLED") as caught:
            future.result(10)
        assert caught.value.event is future.event
    else:
        assert future.result(10)
    future.cancel()  # nothing happens


def test_own_programs(device: coltrain.Device) -> None:
    with device.program(END) as program:
        with pytest.raises(coltrain.JobError, match="ended with"):
            device.submit(program, [1, 2, 3], version=7, user="mine").result(10)
        future = device.submit(program, queue=coltrain.Queue.TRAINING, user="other")
        event = device.reap(10)
        assert (event.user, event.queue, event.error) == ("other", coltrain.Queue.TRAINING, coltrain.ErrorCode.JOB)
        assert coltrain.code_name(event.code) and coltrain.code_text(event.code) and future.event is event
        with pytest.raises(coltrain.ArgumentError, match="25 arguments"):
            device.submit(program, [0] * 25)
        with pytest.raises(coltrain.ArgumentError):
            device.submit(program, [2**32])
    with pytest.raises(coltrain.ArgumentError, match="31 bytes"):
        device.program(END[1:])
    with pytest.raises(coltrain.ArgumentError):
        device.program(b"")
    device.reset(coltrain.Queue.TRAINING)


def test_reap_until_a_cycle() -> None:
    with coltrain.open("sim:") as device:
        begin = device.now() or 0
        with pytest.raises(coltrain.TimeoutError):
            device.reap_until(begin + 5000)
        assert (device.now() or 0) >= begin + 5000


# ---- asyncio ----


def test_await_many_requests(device: coltrain.Device, seed: int) -> None:
    """Requests of many tasks; the event loop goes on meanwhile."""
    bed = Bed(device, seed)
    version = bed.model.publish()
    ticks = 0

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0)

    async def ask(server: coltrain.Server, number: int) -> bool:
        event = await server.push(bed.rows, bed.answers, row=number, answer=number)
        assert event.kind == coltrain.EventKind.REQUEST
        return bool((bed.answers.read(number, 1) == bed.right[number]).all())

    async def run() -> list[bool]:
        ticking = asyncio.create_task(tick())
        with bed.model.serve(version) as server:
            right = await asyncio.gather(*(ask(server, i) for i in range(24)))
        ticking.cancel()
        return right

    assert all(asyncio.run(run())) and ticks > 0
    with pytest.raises(coltrain.NotFoundError):
        device.reap(0)
    assert asyncio.run(run())  # another event loop on the same device


def test_training_beside_serving_in_one_loop(device: coltrain.Device, seed: int) -> None:
    bed = Bed(device, seed)
    bed.model.training(8, 0.1)
    version = bed.model.publish()
    batch = bed.model.batch()
    batch.write(np.ones((8, 16)), [1] * 8)

    async def train() -> list[float]:
        losses = []
        for _ in range(5):
            await bed.model.step_submit(batch)
            losses.append(batch.loss())
        return losses

    async def serve() -> None:
        with bed.model.serve(version) as server:
            for i in range(24):
                assert (await server.push(bed.rows, bed.answers, row=i, answer=i)).version == 1

    async def both() -> list[float]:
        return (await asyncio.gather(train(), serve()))[0]

    losses = asyncio.run(both())
    assert losses == sorted(losses, reverse=True) and len(set(losses)) == 5
    assert (bed.answers.read() == bed.right).all()


def test_events_that_nobody_awaits_wait_for_reap(device: coltrain.Device, seed: int) -> None:
    bed = Bed(device, seed)

    async def run() -> coltrain.Event:
        bed.model.infer_submit(bed.rows, bed.answers, row=0, user="dropped")
        kept = bed.model.infer_submit(bed.rows, bed.answers, row=1, answer=1, user="kept")
        last = bed.model.infer_submit(bed.rows, bed.answers, row=2, answer=2, user="last")
        assert (await last).user == "last"
        assert kept.result().user == "kept" and (await kept).user == "kept"
        return device.reap(10)

    assert asyncio.run(run()).user == "dropped"
    with pytest.raises(coltrain.NotFoundError):
        device.reap(0)


def test_a_wait_may_be_given_up_and_failures_are_raised(seed: int) -> None:
    with coltrain.open("sim:") as device:
        bed = Bed(device, seed)

        async def run() -> None:
            later = bed.model.infer_submit(bed.rows, bed.answers, cycle=(device.now() or 0) + 60000)
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(later, 0.02)
            later.cancel()
            with pytest.raises(coltrain.CancelledError):
                await later
            with device.program(END) as program, pytest.raises(coltrain.JobError):
                await device.submit(program)

        asyncio.run(run())


def test_closing_a_device_ends_the_waits(seed: int) -> None:
    device = coltrain.open("sim:")
    bed = Bed(device, seed)

    async def run() -> None:
        waiting = asyncio.ensure_future(_wait(bed.model.infer_submit(bed.rows, bed.answers, cycle=10**9)))
        await asyncio.sleep(0.01)
        device.close()
        with pytest.raises(coltrain.ClosedError, match="sim:"):
            await waiting

    asyncio.run(run())


async def _wait(future: coltrain.Future) -> coltrain.Event:
    return await future


def test_a_loop_beside_a_thread_that_blocks(seed: int) -> None:
    """Another thread is in the library for long: the event loop goes on, and gets its event afterwards."""
    with coltrain.open("sim:") as device:
        bed = Bed(device, seed)
        a = np.ones((192, 192), dtype=np.float32)

        async def run() -> int:
            future = bed.model.infer_submit(bed.rows, bed.answers)
            worker = threading.Thread(target=device.matmul, args=(a, a), kwargs={"queue": coltrain.Queue.TRAINING})
            waiting = asyncio.ensure_future(_wait(future))
            await asyncio.sleep(0)
            worker.start()
            turns = 0
            while worker.is_alive():
                await asyncio.sleep(0.001)
                turns += 1
            assert (await waiting).error == coltrain.ErrorCode.OK
            worker.join()
            return turns

        assert asyncio.run(run()) > 10


def test_selectors(seed: int) -> None:
    with coltrain.open("sim:") as device, selectors.DefaultSelector() as selector:
        bed = Bed(device, seed)
        selector.register(device, selectors.EVENT_READ)
        assert not selector.select(0)
        future = bed.model.infer_submit(bed.rows, bed.answers)
        end = time.monotonic() + 10
        while not future.done() and time.monotonic() < end:
            assert selector.select(1)
        assert future.event


def test_threads_wait_for_their_own(seed: int) -> None:
    """Four threads submit and wait on one device; each has the events of its own work."""
    with coltrain.open("sim:") as device:
        bed = Bed(device, seed)
        failures: list[BaseException] = []

        def work(number: int) -> None:
            try:
                for _ in range(10):
                    future = bed.model.infer_submit(bed.rows, bed.answers, row=number, answer=number, user=number)
                    assert future.result(30).user == number
            except BaseException as failure:
                failures.append(failure)

        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not failures
        assert (bed.answers.read(0, 4) == bed.right[:4]).all()


def test_a_device_that_is_opened_where_one_was_closed(seed: int) -> None:
    """The second device has the file descriptor of the first, whose wait the event loop has not let go of yet."""

    async def run() -> None:
        first = coltrain.open("sim:")
        bed = Bed(first, seed)
        later = bed.model.infer_submit(bed.rows, bed.answers, cycle=10**9)
        waiting = asyncio.ensure_future(_wait(later))
        await asyncio.sleep(0.01)
        descriptor = first.fileno()
        first.close()
        with coltrain.open("sim:") as second:
            assert second.fileno() == descriptor
            bed = Bed(second, seed)
            async with asyncio.timeout(10):
                assert (await bed.model.infer_submit(bed.rows, bed.answers)).error == coltrain.ErrorCode.OK
        with pytest.raises(coltrain.ClosedError):
            await waiting

    asyncio.run(run())


def test_a_thread_that_waits_makes_way(seed: int) -> None:
    """One thread waits for what ends much later; the calls of another get their turn soon, and may end the wait."""
    with coltrain.open("sim:") as device:
        bed = Bed(device, seed)
        device.matmul(np.eye(16), np.eye(16))
        later = bed.model.infer_submit(bed.rows, bed.answers, cycle=10**12)
        failures: list[BaseException] = []

        def wait() -> None:
            try:
                later.result()
            except coltrain.Error as ended:
                failures.append(ended)

        waiting = threading.Thread(target=wait)
        waiting.start()
        time.sleep(0.05)
        longest = 0.0
        for _ in range(50):
            began = time.monotonic()
            device.now()
            longest = max(longest, time.monotonic() - began)
            time.sleep(0.002)
        assert longest < 1, f"{longest} s for a turn"
        device.close()
        waiting.join(10)
        assert not waiting.is_alive() and isinstance(failures[0], coltrain.ClosedError)


def test_an_event_that_another_thread_takes_just_before_it_is_awaited(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Several event loops may share a device; whoever polls takes the events of all."""
    with coltrain.open("sim:") as device:
        bed = Bed(device, seed)
        wait = device.wait_async

        async def late(future: coltrain.Future) -> None:
            assert device.wait_for(future, 10)  # as the other thread does, behind the back of the one that has just looked
            await wait(future)

        monkeypatch.setattr(device, "wait_async", late)

        async def main() -> coltrain.Event:
            return await asyncio.wait_for(asyncio.ensure_future(bed.model.infer_submit(bed.rows, bed.answers)), 10)

        assert asyncio.run(main()).error == coltrain.ErrorCode.OK


def test_loops_in_several_threads_share_a_device(seed: int) -> None:
    with coltrain.open("sim:") as device:
        bed = Bed(device, seed)
        answers = [bed.model.answers(4) for _ in range(3)]
        done = []

        async def work(mine: coltrain.Answers) -> int:
            for _ in range(40):
                futures = [asyncio.ensure_future(bed.model.infer_submit(bed.rows, mine, row=i, answer=i)) for i in range(4)]
                await asyncio.wait_for(asyncio.gather(*futures), 30)
            return 40

        threads = [threading.Thread(target=lambda a=a: done.append(asyncio.run(work(a), debug=True))) for a in answers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60)
        assert done == [40] * 3 and not device._futures and not device._unclaimed
