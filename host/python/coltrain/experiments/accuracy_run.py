# SPDX-License-Identifier: Apache-2.0
"""One training run of `coltrain experiment accuracy`: a network, a format, a seed. Prints a line of JSON.

The device (emu:) trains in HBFP with mantissas of so many bits; 32 bits are FP32, by PyTorch, which shares nothing with the device but
the initial weights, the order of the images and the definition of the network.
"""

from __future__ import annotations

import argparse
import importlib
import json
import math
import sys
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import coltrain
from coltrain.cli import Failure, complain

F32 = npt.NDArray[np.float32]
Values = dict[str, F32]

FP32 = 32
CLASSES = 10
MLP = (784, 512, 256, CLASSES)
MEAN, DEVIATION = 0.2860, 0.3530  # of the training images' pixels, which are 0 to 1
TESTED = 500  # images of the test set at once


class Recipe(NamedTuple):
    """How a network is trained: batches of images, SGD with momentum, rates that fall as a cosine."""

    batch: int
    rate: float
    momentum: float = 0.9
    weight_decay: float = 5e-4


RECIPES = {"mlp": Recipe(128, 0.05), "lenet5": Recipe(64, 0.03)}


class Images(NamedTuple):
    x: F32
    labels: npt.NDArray[np.int64]


def load(name: str) -> tuple[Images, Images]:
    """Training and test images, normalised."""
    data = coltrain.load_dataset(name)
    train, test = (Images((part.x - np.float32(MEAN)) / np.float32(DEVIATION), part.labels.astype(np.int64)) for part in (data.train, data.test))
    return train, test


def graph_of(name: str, batch: int, training: bool) -> coltrain.Graph:
    return coltrain.Graph.mlp(MLP, batch, training) if name == "mlp" else coltrain.Graph.builtin(name, batch, training)


def batches(count: int, batch: int, epochs: int, seed: int) -> Iterator[tuple[int, npt.NDArray[np.int64]]]:
    """Epoch and images of each step: a new order for each epoch, without the rest that fills no batch."""
    rng = np.random.default_rng(seed)
    for epoch in range(epochs):
        order = rng.permutation(count)
        for at in range(0, count - batch + 1, batch):
            yield epoch, order[at : at + batch]


def rate_at(recipe: Recipe, step: int, steps: int) -> float:
    return recipe.rate * (1 + math.cos(math.pi * min(step, steps) / steps)) / 2


class Trainer:
    """What trains a network: on the device or by PyTorch."""

    def step(self, x: F32, labels: npt.NDArray[np.int64], number: int) -> float:
        """The loss of the batch before the update."""
        raise NotImplementedError

    def correct(self, test: Images) -> int:
        """Test images that are named correctly."""
        raise NotImplementedError


class OnDevice(Trainer):
    def __init__(self, name: str, bits: int, seed: int, steps: int) -> None:
        recipe = RECIPES[name]
        graph = graph_of(name, recipe.batch, True)
        values = graph.initial_values(seed)
        schedule = coltrain.Schedule(recipe.rate, "cosine", period=steps)
        graph.optimise("loss", schedule, momentum=recipe.momentum, weight_decay=recipe.weight_decay)
        self.device = coltrain.open("emu:")
        self.training = self.device.compile(graph, mantissa=bits)
        self.testing = self.device.compile(graph_of(name, TESTED, False), mantissa=bits)
        self.training.write(values)
        self.shape = graph["x"].shape
        self.one_hot = np.eye(CLASSES, dtype=np.float32)

    def step(self, x: F32, labels: npt.NDArray[np.int64], number: int) -> float:
        inputs = {"x": x.reshape(self.shape), "y": self.one_hot[labels]}
        return float(self.training.run(inputs, ["loss"], step=number)["loss"][0])

    def correct(self, test: Images) -> int:
        names = self.testing.graph.by_role(coltrain.Role.WEIGHT, coltrain.Role.STATE)
        self.testing.write({name: self.training.read(name) for name in names})
        shape = self.testing.graph["x"].shape
        right = 0
        for at in range(0, len(test.labels), TESTED):
            logits = self.testing.run({"x": test.x[at : at + TESTED].reshape(shape)})["logits"]
            right += int((logits.argmax(axis=1) == test.labels[at : at + TESTED]).sum())
        return right


class ByTorch(Trainer):
    def __init__(self, name: str, seed: int, steps: int) -> None:
        try:
            torch: Any = importlib.import_module("torch")
        except ImportError as missing:
            raise Failure(f"FP32 is PyTorch's, and it is not there ({missing}): install python3-torch") from missing
        self.torch, self.name, self.steps, self.recipe = torch, name, steps, RECIPES[name]
        torch.set_num_threads(1)
        values = graph_of(name, 1, True).initial_values(seed)
        self.w = {k: torch.tensor(v, requires_grad=True) for k, v in values.items()}
        decays = [v for v in self.w.values() if v.ndim > 1]
        others = [v for v in self.w.values() if v.ndim <= 1]
        groups = [{"params": decays, "weight_decay": self.recipe.weight_decay}, {"params": others}]
        self.optimiser = torch.optim.SGD(groups, lr=self.recipe.rate, momentum=self.recipe.momentum)

    def _conv(self, x: Any, name: str, pad: int) -> Any:
        weight = self.w[f"{name}.weight"].permute(0, 3, 1, 2)
        return self.torch.nn.functional.conv2d(x, weight, self.w[f"{name}.bias"], padding=pad)

    def _linear(self, x: Any, name: str) -> Any:
        return self.torch.nn.functional.linear(x, self.w[f"{name}.weight"], self.w[f"{name}.bias"])

    def logits(self, x: Any) -> Any:
        relu, pool = self.torch.relu, self.torch.nn.functional.max_pool2d
        if self.name == "mlp":
            x = relu(self._linear(relu(self._linear(x, "fc1")), "fc2"))
            return self._linear(x, "logits")
        x = pool(relu(self._conv(x.reshape(-1, 1, 28, 28), "conv1", 2)), 2)
        x = pool(relu(self._conv(x, "conv2", 0)), 2)
        x = x.permute(0, 2, 3, 1).flatten(1)  # the graph's images have their channels last
        return self._linear(relu(self._linear(relu(self._linear(x, "fc1")), "fc2")), "logits")

    def step(self, x: F32, labels: npt.NDArray[np.int64], number: int) -> float:
        for group in self.optimiser.param_groups:
            group["lr"] = rate_at(self.recipe, number, self.steps)
        self.optimiser.zero_grad()
        loss = self.torch.nn.functional.cross_entropy(self.logits(self.torch.from_numpy(x)), self.torch.from_numpy(labels))
        loss.backward()
        self.optimiser.step()
        return float(loss)

    def correct(self, test: Images) -> int:
        with self.torch.no_grad():
            named = self.logits(self.torch.from_numpy(test.x)).argmax(dim=1).numpy()
        return int((named == test.labels).sum())


def train(name: str, bits: int, seed: int, epochs: int, data: str) -> dict[str, Any]:
    training, test = load(data)
    recipe = RECIPES[name]
    per_epoch = len(training.labels) // recipe.batch
    trainer = ByTorch(name, seed, per_epoch * epochs) if bits == FP32 else OnDevice(name, bits, seed, per_epoch * epochs)
    curve: list[dict[str, float]] = []
    loss, begun = 0.0, time.process_time()
    for step, (epoch, images) in enumerate(batches(len(training.labels), recipe.batch, epochs, seed)):
        loss += trainer.step(training.x[images], training.labels[images], step)
        if (step + 1) % per_epoch == 0:
            accuracy = trainer.correct(test) / len(test.labels)
            curve.append({"epoch": epoch + 1, "loss": loss / per_epoch, "accuracy": accuracy})
            print(f"{name} {bits} bits, seed {seed}: epoch {epoch + 1}, loss {loss / per_epoch:.4f}, test {100 * accuracy:.2f} %", file=sys.stderr)
            loss = 0.0
    return {"curve": curve, "accuracy": curve[-1]["accuracy"], "cpu_s": time.process_time() - begun}


def main() -> int:
    p = argparse.ArgumentParser(prog="coltrain.experiments.accuracy_run")
    p.add_argument("--network", choices=sorted(RECIPES), required=True)
    p.add_argument("--bits", type=int, choices=(4, 6, 8, FP32), required=True)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--epochs", type=int, default=8)
    p.add_argument("--data", default="fashion-mnist")
    p.add_argument("--json", default="-")
    o = p.parse_args()
    try:
        print(json.dumps(train(o.network, o.bits, o.seed, o.epochs, o.data)))
    except (Failure, coltrain.Error) as failure:
        return complain(str(failure))
    return 0


if __name__ == "__main__":
    sys.exit(main())
