# SPDX-License-Identifier: Apache-2.0
"""One point of `coltrain experiment speed`: training steps of a network by turns on the device and by PyTorch. Prints a line of JSON.

All turns are in one process with one thread on one processor, which drifts of the machine's speed then meet alike. A turn is some steps
whose CPU time is read; a round is a turn of each. Steps are as a user takes them: the images from NumPy, the loss back.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

import coltrain
from coltrain.cli import Failure, complain
from coltrain.experiments.trainers import CLASSES, RECIPES, ByTorch, OnDevice, Trainer, graph_of, on_one_core, pytorch

WARM = 3
TURN_S = 0.4
ROUNDS = 25


def steps_of(trainer: Trainer, network: str) -> Callable[[int], float]:
    """Takes so many steps on images that are drawn once; the CPU seconds that they took."""
    batch, shape = RECIPES[network].batch, graph_of(network, 1, True)["x"].shape[1:]
    rng = np.random.default_rng(1)
    x = rng.standard_normal((batch, int(np.prod(shape))), dtype=np.float32)
    classes = rng.integers(0, CLASSES, batch)
    number = 0

    def take(count: int) -> float:
        nonlocal number
        begun = time.process_time()
        for _ in range(count):
            trainer.step(x, classes, number)
            number += 1
        return time.process_time() - begun

    return take


@contextlib.contextmanager
def without_onednn() -> Iterator[None]:
    """PyTorch's convolutions as products of OpenBLAS."""
    with pytorch().backends.mkldnn.flags(enabled=False):
        yield


def contestants(network: str, device: str) -> dict[str, tuple[Callable[[int], float], Callable[[], Any]]]:
    """Who takes steps, and in which surroundings."""
    endless = 1 << 20  # steps of the schedule
    return {
        "emu": (steps_of(OnDevice(network, 8, 1, endless, device), network), contextlib.nullcontext),
        "pytorch": (steps_of(ByTorch(network, 1, endless), network), contextlib.nullcontext),
        "pytorch_openblas": (steps_of(ByTorch(network, 1, endless), network), without_onednn),
    }


def measure(network: str, device: str, rounds: int, turn_s: float) -> dict[str, Any]:
    turns: dict[str, Callable[[], float]] = {}
    for name, (take, around) in contestants(network, device).items():
        with around():
            take(WARM)
            count = max(1, round(turn_s / max(take(WARM) / WARM, 1e-6)))

        def turn(take: Callable[[int], float] = take, around: Callable[[], Any] = around, count: int = count) -> float:
            with around():
                return take(count) / count

        turns[name] = turn
    seconds: dict[str, list[float]] = {name: [] for name in turns}
    for at in range(rounds):
        for name in list(turns)[:: 1 if at % 2 else -1]:
            seconds[name].append(turns[name]())
    return {"batch": RECIPES[network].batch, "seconds": seconds, "pytorch": pytorch().__version__}


def main() -> int:
    on_one_core("coltrain.experiments.speed_run")
    p = argparse.ArgumentParser(prog="coltrain.experiments.speed_run")
    p.add_argument("--network", choices=sorted(RECIPES), required=True)
    p.add_argument("--device", default="emu:")
    p.add_argument("--rounds", type=int, default=ROUNDS)
    p.add_argument("--turn", type=float, default=TURN_S, metavar="S", help="CPU seconds, about")
    p.add_argument("--json", default="-")
    o = p.parse_args()
    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    try:
        print(json.dumps(measure(o.network, o.device, o.rounds, o.turn)))
    except (Failure, coltrain.Error) as failure:
        return complain(str(failure))
    return 0


if __name__ == "__main__":
    sys.exit(main())
