# SPDX-License-Identifier: Apache-2.0
"""The same network, the same initial weights, the same steps: trained on a device in HBFP, or by PyTorch in FP32.

PyTorch shares nothing with the device but the graph, whose nodes it computes by its own functions, and the initial weights. Its gradients
and its optimiser are its own.
"""

from __future__ import annotations

import importlib
import math
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import coltrain
from coltrain.cli import Failure

F32 = npt.NDArray[np.float32]
Classes = npt.NDArray[np.int64]
State = dict[str, F32]

FP32 = 32  # bits: PyTorch's
CLASSES = 10
MLP = (784, 512, 256, CLASSES)
TESTED = 500  # images of the test set at once


class Recipe(NamedTuple):
    """How a network is trained: batches of images, SGD with momentum, rates that rise for some steps and then fall as a cosine."""

    batch: int
    rate: float
    epochs: int
    momentum: float = 0.9
    weight_decay: float = 5e-4
    warmup: int = 0
    """Steps."""
    augmented: bool = False
    """Images are moved by up to 4 pixels and mirrored, at random."""


RECIPES = {
    "mlp": Recipe(128, 0.05, 8),
    "lenet5": Recipe(64, 0.03, 8),
    "resnet8": Recipe(64, 0.05, 40, weight_decay=1e-4, warmup=400, augmented=True),
}


def format_of(bits: int) -> str:
    return "fp32" if bits == FP32 else f"hbfp{bits}"


@dataclass(frozen=True)
class Run:
    """A training run: a network, a format, a seed."""

    network: str
    bits: int
    seed: int
    epochs: int

    @property
    def name(self) -> str:
        return f"{self.network}-{format_of(self.bits)}-seed{self.seed}"


def graph_of(name: str, batch: int, training: bool) -> coltrain.Graph:
    return coltrain.Graph.mlp(MLP, batch, training) if name == "mlp" else coltrain.Graph.builtin(name, batch, training)


def rate_at(recipe: Recipe, step: int, steps: int) -> float:
    """The formula of coltrain/graph.h once more, so that PyTorch's rates are not the device's own."""
    if step < recipe.warmup:
        return recipe.rate * (step + 1) / recipe.warmup
    done = min(1.0, (step - recipe.warmup) / max(1, steps - recipe.warmup))
    return recipe.rate * (1 + math.cos(math.pi * done)) / 2


class Trainer:
    """What trains a network of `steps` steps."""

    def step(self, x: F32, classes: Classes, number: int) -> float:
        """The loss of the batch before the update."""
        raise NotImplementedError

    def correct(self, x: F32, classes: Classes) -> int:
        """How many of up to TESTED images are named correctly."""
        raise NotImplementedError

    def state(self) -> State:
        """All that lasts from step to step."""
        raise NotImplementedError

    def restore(self, state: Mapping[str, F32]) -> None:
        """Goes on from a state, with the same bits."""
        raise NotImplementedError


# ---- On the device ----


class OnDevice(Trainer):
    def __init__(self, name: str, bits: int, seed: int, steps: int, device: str = "emu:") -> None:
        recipe = RECIPES[name]
        graph = graph_of(name, recipe.batch, True)
        values = graph.initial_values(seed)
        period = max(1, steps - recipe.warmup)
        schedule = coltrain.Schedule(recipe.rate, "cosine", warmup=recipe.warmup, period=period)
        graph.optimise("loss", schedule, momentum=recipe.momentum, weight_decay=recipe.weight_decay)
        self.device = coltrain.open(device)
        self.training = self.device.compile(graph, mantissa=bits, kernels=True)  # one arithmetic for all widths of mantissas
        self.testing = self.device.compile(graph_of(name, TESTED, False), mantissa=bits)
        self.training.write(values)
        self.stale = True
        self.shape = graph["x"].shape
        self.one_hot = np.eye(CLASSES, dtype=np.float32)

    def step(self, x: F32, classes: Classes, number: int) -> float:
        self.stale = True
        inputs = {"x": x.reshape(self.shape), "y": self.one_hot[classes]}
        return float(self.training.run(inputs, ["loss"], step=number)["loss"][0])

    def correct(self, x: F32, classes: Classes) -> int:
        graph = self.testing.graph
        if self.stale:
            self.testing.write({n: self.training.read(n) for n in graph.by_role(coltrain.Role.WEIGHT, coltrain.Role.STATE)})
            self.stale = False
        images = np.zeros((TESTED, x.shape[1]), dtype=np.float32)
        images[: len(x)] = x
        logits = self.testing.run({"x": images.reshape(graph["x"].shape)})["logits"][: len(x)]
        return int((logits.argmax(axis=1) == classes).sum())

    def state(self) -> State:
        return self.training.values()

    def restore(self, state: Mapping[str, F32]) -> None:
        self.stale = True
        self.training.write(state)


# ---- By PyTorch ----


def pytorch() -> Any:
    """The module, computing with one thread."""
    try:
        torch: Any = importlib.import_module("torch")
    except ImportError as missing:
        raise Failure(f"FP32 is PyTorch's, and it is not there ({missing}): install python3-torch") from missing
    torch.set_num_threads(1)
    return torch


def channels_first(array: F32) -> F32:
    """PyTorch has the channels of images and windows in front of their pixels."""
    return np.ascontiguousarray(array.transpose(0, 3, 1, 2)) if array.ndim == 4 else array


def channels_last(array: F32) -> F32:
    return np.ascontiguousarray(array.transpose(0, 2, 3, 1)) if array.ndim == 4 else array


class Forward:
    """The nodes of a graph up to its logits, computed by PyTorch."""

    def __init__(self, torch: Any, graph: coltrain.Graph) -> None:
        self.torch, self.f = torch, torch.nn.functional
        self.training = True
        self.x, self.logits = graph["x"].number, graph["logits"].number
        self.held = {t.number: name for name, t in graph.by_role(coltrain.Role.WEIGHT, coltrain.Role.STATE).items()}
        self.steps: list[tuple[Callable[..., Any], coltrain.Node, list[int | None], int]] = []
        for index in graph.order():
            node = graph.node(index)
            if node.op == "cross_entropy":
                continue
            compute = getattr(self, f"_{node.op}", None)
            if compute is None:
                raise Failure(f"node {node.name}: PyTorch is not told what {node.op} is")
            inputs = [t.number if t else None for t in node.inputs]
            self.steps.append((compute, node, inputs, node.outputs[0].number))

    def __call__(self, x: Any, weights: Mapping[str, Any]) -> Any:
        known = {number: weights[name] for number, name in self.held.items()}
        known[self.x] = x
        for compute, node, inputs, output in self.steps:
            known[output] = compute(node, *(None if i is None else known[i] for i in inputs))
        return known[self.logits]

    def _conv(self, node: coltrain.Node, x: Any, weight: Any, bias: Any) -> Any:
        top, left, bottom, right = (int(p) for p in node.attrs["pad"])
        stride = tuple(int(s) for s in node.attrs["stride"])
        if (top, left) == (bottom, right):
            return self.f.conv2d(x, weight, bias, stride, (top, left))
        return self.f.conv2d(self.f.pad(x, (left, right, top, bottom)), weight, bias, stride)

    def _linear(self, _: coltrain.Node, x: Any, weight: Any, bias: Any) -> Any:
        return self.f.linear(x, weight, bias)

    def _relu(self, _: coltrain.Node, x: Any) -> Any:
        return self.torch.relu(x)

    def _add(self, _: coltrain.Node, a: Any, b: Any) -> Any:
        return a + b

    def _max_pool(self, node: coltrain.Node, x: Any) -> Any:
        return self.f.max_pool2d(x, *(tuple(int(n) for n in node.attrs[a]) for a in ("kernel", "stride")))

    def _global_average_pool(self, _: coltrain.Node, x: Any) -> Any:
        return x.mean((2, 3), keepdim=True)

    def _flatten(self, _: coltrain.Node, x: Any) -> Any:
        return x.permute(0, 2, 3, 1).flatten(1)  # in the order of the graph's pixels

    def _batch_norm_train(self, node: coltrain.Node, x: Any, scale: Any, shift: Any, mean: Any, variance: Any) -> Any:
        new, epsilon = 1 - node.attrs["momentum"][0], node.attrs["epsilon"][0]
        return self.f.batch_norm(x, mean, variance, scale, shift, self.training, new, epsilon)


class ByTorch(Trainer):
    def __init__(self, name: str, seed: int, steps: int) -> None:
        self.torch, self.steps, self.recipe = pytorch(), steps, RECIPES[name]
        graph = graph_of(name, 1, True)
        values = graph.initial_values(seed)
        graph.check()
        self.shape = graph["x"].shape[1:]
        self.forward = Forward(self.torch, graph)
        learned = graph.by_role(coltrain.Role.WEIGHT)
        self.w = {n: self.torch.tensor(channels_first(v), requires_grad=n in learned) for n, v in values.items()}
        weights = [self.w[n] for n in learned]
        groups = [
            {"params": [w for w in weights if w.ndim > 1], "weight_decay": self.recipe.weight_decay},
            {"params": [w for w in weights if w.ndim <= 1]},
        ]
        self.optimiser = self.torch.optim.SGD(groups, lr=self.recipe.rate, momentum=self.recipe.momentum)

    def _images(self, x: F32) -> Any:
        images = self.torch.from_numpy(x.reshape(-1, *self.shape))
        return images.permute(0, 3, 1, 2).contiguous() if images.ndim == 4 else images

    def step(self, x: F32, classes: Classes, number: int) -> float:
        for group in self.optimiser.param_groups:
            group["lr"] = rate_at(self.recipe, number, self.steps)
        self.optimiser.zero_grad()
        logits = self.forward(self._images(x), self.w)
        loss = self.torch.nn.functional.cross_entropy(logits, self.torch.from_numpy(classes))
        loss.backward()
        self.optimiser.step()
        return float(loss)

    def correct(self, x: F32, classes: Classes) -> int:
        self.forward.training = False
        with self.torch.no_grad():
            named = self.forward(self._images(x), self.w).argmax(dim=1).numpy()
        self.forward.training = True
        return int((named == classes).sum())

    def state(self) -> State:
        found = {name: channels_last(w.detach().numpy().copy()) for name, w in self.w.items()}
        for name, w in self.w.items():
            if (momentum := self.optimiser.state.get(w, {}).get("momentum_buffer")) is not None:
                found[f"{name}.momentum"] = channels_last(momentum.numpy().copy())
        return found

    def restore(self, state: Mapping[str, F32]) -> None:
        with self.torch.no_grad():
            for name, w in self.w.items():
                w.copy_(self.torch.from_numpy(channels_first(state[name]).copy()))
                if (momentum := state.get(f"{name}.momentum")) is not None and w.requires_grad:
                    self.optimiser.state[w]["momentum_buffer"] = self.torch.from_numpy(channels_first(momentum).copy())


# ---- One core ----


def on_one_core(module: str) -> None:
    """Starts the program again with all libraries at one thread, where it was not: they look when they are loaded."""
    limits = ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS")
    if any(os.environ.get(name) != "1" for name in limits):
        os.environ.update(dict.fromkeys(limits, "1"))
        os.execv(sys.executable, [sys.executable, "-m", module, *sys.argv[1:]])
