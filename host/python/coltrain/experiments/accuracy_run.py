# SPDX-License-Identifier: Apache-2.0
"""One training run of `coltrain experiment accuracy`: a network, a format, a seed. Prints a line of JSON.

The device (emu:) trains in HBFP with mantissas of so many bits; 32 bits are FP32, by PyTorch (trainers.py). With --state a run that was
killed goes on where it last wrote that file, and ends with the same bits as one that was not.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
import zipfile
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

import coltrain
from coltrain.cli import Failure, complain
from coltrain.experiments.trainers import F32, FP32, RECIPES, TESTED, ByTorch, Classes, OnDevice, Recipe, Run, State, Trainer, on_one_core

MOVED = 4  # pixels, at most
KEEP_S = 60.0  # between two states on disk
PROGRESS = "progress.json"

# ---- Images ----


class Images:
    """Images as networks see them: each channel less its mean, over its deviation, both of the training images."""

    def __init__(self, data: coltrain.Dataset, augmented: bool) -> None:
        self.data, self.augmented = data, augmented
        self.shape = (data.height, data.width, data.channels)
        total, squares = np.zeros(data.channels), np.zeros(data.channels)
        for at in range(0, len(data.train), TESTED):
            values = data.train.values(slice(at, at + TESTED)).reshape(-1, data.channels).astype(np.float64)
            total, squares = total + values.sum(axis=0), squares + (values * values).sum(axis=0)
        pixels = len(data.train) * data.height * data.width
        deviation = np.sqrt(np.maximum(squares / pixels - (total / pixels) ** 2, 0))
        self.mean = (total / pixels).astype(np.float32)
        self.deviation = np.where(deviation > 0, deviation, 1).astype(np.float32)

    def _normal(self, x: F32) -> F32:
        result: F32 = ((x.reshape(-1, self.data.channels) - self.mean) / self.deviation).reshape(x.shape)
        return result

    def training(self, which: npt.NDArray[np.int64], seed: int, step: int) -> tuple[F32, Classes]:
        x, classes = self._normal(self.data.train.values(which)), self.data.train.labels[which].astype(np.int64)
        return self.moved(x, np.random.default_rng((seed, step))) if self.augmented else x, classes

    def moved(self, x: F32, rng: np.random.Generator) -> F32:
        """Each image moved and mirrored at random; the mean is around it."""
        height, width, _ = self.shape
        rows = rng.integers(0, 2 * MOVED + 1, len(x))[:, None] + np.arange(height)
        columns = rng.integers(0, 2 * MOVED + 1, len(x))[:, None] + np.arange(width)
        mirrored = rng.integers(0, 2, len(x)) == 1
        columns[mirrored] = columns[mirrored, ::-1]
        around = np.pad(x.reshape(-1, *self.shape), ((0, 0), (MOVED, MOVED), (MOVED, MOVED), (0, 0)))
        result: F32 = around[np.arange(len(x))[:, None, None], rows[:, :, None], columns[:, None, :]].reshape(x.shape)
        return result

    def testing(self) -> Iterator[tuple[F32, Classes]]:
        part = self.data.test
        for at in range(0, len(part), TESTED):
            which = slice(at, at + TESTED)
            yield self._normal(part.values(which)), part.labels[which].astype(np.int64)


def batches(count: int, batch: int, epochs: int, seed: int) -> Iterator[npt.NDArray[np.int64]]:
    """The images of each step: a new order for each epoch, without the rest that fills no batch."""
    rng = np.random.default_rng(seed)
    for _ in range(epochs):
        order = rng.permutation(count)
        for at in range(0, count - batch + 1, batch):
            yield order[at : at + batch]


# ---- How far a run is ----


@dataclass
class Progress:
    """Beside the weights all that a run needs to go on."""

    of: dict[str, Any]
    """The run: another's state is not taken."""
    steps: int = 0
    loss: float = 0.0
    """Sum of the epoch's losses so far."""
    cpu_s: float = 0.0
    curve: list[dict[str, float]] = field(default_factory=list)


def keep(path: Path, progress: Progress, state: State) -> None:
    """Writes the whole file or leaves the one that is there."""
    fresh = path.with_name(path.name + ".new")
    try:
        coltrain.save_arrays(fresh, state)
        with zipfile.ZipFile(fresh, "a") as archive:
            archive.writestr(PROGRESS, json.dumps(asdict(progress)))
        os.replace(fresh, path)
    except OSError as error:
        raise Failure(f"{path}: cannot be written: {error.strerror}") from error


def kept(path: Path, of: dict[str, Any]) -> tuple[Progress, State] | None:
    """What was kept of this run; None: nothing."""
    try:
        with zipfile.ZipFile(path) as archive:
            progress = Progress(**json.loads(archive.read(PROGRESS)))
        state = {name: np.asarray(array, dtype=np.float32) for name, array in coltrain.load_arrays(path).items()}
    except (OSError, KeyError, TypeError, ValueError, zipfile.BadZipFile, coltrain.Error):
        return None
    return (progress, state) if progress.of == of else None


# ---- The run ----


@dataclass(frozen=True)
class RunOn(Run):
    data: str
    """The folder that is loaded."""

    def trainer(self, steps: int) -> Trainer:
        if self.bits == FP32:
            return ByTorch(self.network, self.seed, steps)
        return OnDevice(self.network, self.bits, self.seed, steps)


def tested(trainer: Trainer, images: Images) -> float:
    return sum(trainer.correct(x, classes) for x, classes in images.testing()) / len(images.data.test)


def train(run: RunOn, path: Path | None = None, keep_s: float = KEEP_S) -> dict[str, Any]:
    recipe: Recipe = RECIPES[run.network]
    data = coltrain.load_dataset(run.data)
    images = Images(data, recipe.augmented)
    per_epoch = len(data.train) // recipe.batch
    if not per_epoch:
        raise Failure(f"{run.data} has {len(data.train)} training images, fewer than a batch ({recipe.batch})")
    trainer = run.trainer(per_epoch * run.epochs)
    of = {"coltrain": coltrain.library_version(), **asdict(run), **recipe._asdict(), "images": len(data.train)}
    p = Progress(of)
    if path and (found := kept(path, of)):
        p = found[0]
        trainer.restore(found[1])
    before = p.cpu_s
    begun, written = time.process_time(), time.monotonic()
    for which in islice(batches(len(data.train), recipe.batch, run.epochs, run.seed), p.steps, None):
        p.loss += trainer.step(*images.training(which, run.seed, p.steps), p.steps)
        p.steps += 1
        if p.steps % per_epoch == 0:
            epoch, accuracy = p.steps // per_epoch, tested(trainer, images)
            p.curve.append({"epoch": epoch, "loss": p.loss / per_epoch, "accuracy": accuracy})
            shown = f"epoch {epoch}, loss {p.loss / per_epoch:.4f}, test {100 * accuracy:.2f} %"
            print(f"{run.network} {run.bits} bits, seed {run.seed}: {shown}", file=sys.stderr, flush=True)
            p.loss = 0.0
        p.cpu_s = before + time.process_time() - begun
        if path and time.monotonic() - written >= keep_s:
            keep(path, p, trainer.state())
            written = time.monotonic()
    return {"curve": p.curve, "accuracy": p.curve[-1]["accuracy"], "cpu_s": p.cpu_s}


def main() -> int:
    on_one_core("coltrain.experiments.accuracy_run")
    p = argparse.ArgumentParser(prog="coltrain.experiments.accuracy_run")
    p.add_argument("--network", choices=sorted(RECIPES), required=True)
    p.add_argument("--bits", type=int, choices=(4, 6, 8, FP32), required=True)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--epochs", type=int, required=True)
    p.add_argument("--data", default="fashion-mnist")
    p.add_argument("--state", type=Path)
    p.add_argument("--keep", type=float, default=KEEP_S, metavar="S", help="seconds between two states")
    p.add_argument("--json", default="-")
    o = p.parse_args()
    try:
        print(json.dumps(train(RunOn(o.network, o.bits, o.seed, o.epochs, o.data), o.state, o.keep)))
    except (Failure, coltrain.Error) as failure:
        return complain(str(failure))
    return 0


if __name__ == "__main__":
    sys.exit(main())
