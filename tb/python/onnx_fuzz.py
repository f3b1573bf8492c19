#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Mutated models of ONNX: every one is imported or refused by a sentence; none crashes, hangs or eats the memory.

    tb/python/onnx_fuzz.py [--count N] [--seed S] [--keep FILE]

Half of the mutants have bits flipped, parts cut out, doubled or moved; the other half are well-formed and wrong: edges lead
elsewhere, also in a circle, dimensions are 0, negative or giant, attributes have other numbers or kinds, weights have NaN. What is
imported is also checked: it comes back from its file, and goes out again or is refused.
A mutant may take SECONDS of the processor and MEMORY; the one at fault is written to FILE.
"""

from __future__ import annotations

import argparse
import collections
import faulthandler
import resource
import signal
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "host/python"))

import coltrain
import coltrain.onnx
import onnx
import onnx_cases
from coltrain import Network
from onnx_models import random_model

SECONDS = 20
MEMORY = 3 << 30
SEEDS = 40
_SIZES = (0, 1, -1, 2, 3, 7, 2**16, 2**24, 2**24 + 1, 2**31 - 1, 2**31, 2**40, -(2**31), 2**63 - 1, -(2**63))


class Mutator:
    """Makes mutants of models."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.models = [random_model(1000 + k, int(self.random.choice([7, 9, 11, 13, 15, 17])))[0] for k in range(SEEDS)]
        self.models += [coltrain.onnx.to_model(Network.builtin("lenet5"))]
        if onnx_cases.CASES.is_dir():
            operators = set(coltrain.onnx.operators())
            self.models += [case.model for case in onnx_cases.cases(operators) if isinstance(case, onnx_cases.Case)]

    def pick(self, choices: Any) -> Any:
        return choices[int(self.random.integers(len(choices)))]

    def mutant(self) -> bytes:
        model = self.pick(self.models)
        return self.bytes_of(model) if self.random.random() < 0.5 else self.wrong(model)

    def bytes_of(self, model: onnx.ModelProto) -> bytes:
        data = bytearray(model.SerializeToString())
        for _ in range(int(self.random.integers(1, 5))):
            at, end = sorted(int(i) for i in self.random.integers(0, max(len(data), 1), 2))
            kind = self.pick(["flip", "flip", "set", "cut", "end", "double", "move"])
            if not data:
                break
            if kind == "flip":
                data[at] ^= 1 << int(self.random.integers(8))
            elif kind == "set":
                data[at] = self.pick([0, 1, 0x7F, 0x80, 0xFF])
            elif kind == "cut":
                del data[at : min(end, at + 20)]
            elif kind == "end":
                del data[at:]
            elif kind == "double":
                data[at:at] = data[at : min(end, at + 200)]
            else:
                data[at : at + 8] = data[end : end + 8]
        return bytes(data)

    def wrong(self, model: onnx.ModelProto) -> bytes:
        mutant = onnx.ModelProto()
        mutant.CopyFrom(model)
        ways = [self.edges, self.edges, self.sizes, self.attributes, self.attributes, self.weights, self.operator, self.header]
        for _ in range(int(self.random.integers(1, 3))):
            self.pick(ways)(mutant.graph, mutant)
        return bytes(mutant.SerializeToString())

    def names(self, graph: Any) -> list[str]:
        made = [o for n in graph.node for o in n.output]
        return made + [t.name for t in graph.initializer] + [i.name for i in graph.input] + ["", "nothing"]

    def edges(self, graph: Any, model: Any) -> None:
        node = self.pick(graph.node)
        kind = self.pick(["input", "output", "more", "less", "order", "result"])
        if kind == "input" and node.input:
            node.input[int(self.random.integers(len(node.input)))] = self.pick(self.names(graph))
        elif kind == "output" and node.output:
            node.output[int(self.random.integers(len(node.output)))] = self.pick(self.names(graph))
        elif kind == "more":
            node.input.append(self.pick(self.names(graph)))
        elif kind == "less" and node.input:
            del node.input[int(self.random.integers(len(node.input))) :]
        elif kind == "order":
            other = onnx.NodeProto()
            other.CopyFrom(node)
            graph.node.append(other)
            graph.node.remove(node)
        elif graph.output:
            self.pick(graph.output).name = self.pick(self.names(graph))

    def sizes(self, graph: Any, model: Any) -> None:
        shapes = [i.type.tensor_type.shape.dim for i in graph.input if i.type.tensor_type.shape.dim]
        if shapes and self.random.random() < 0.6:
            dim = self.pick(self.pick(shapes))
            if self.random.random() < 0.2:
                dim.dim_param = self.pick(["", "n", "\N{SNOWMAN}"])
            else:
                dim.dim_value = self.pick(_SIZES)
        elif graph.initializer:
            tensor = self.pick(graph.initializer)
            if tensor.dims and self.random.random() < 0.7:
                tensor.dims[int(self.random.integers(len(tensor.dims)))] = self.pick(_SIZES)
            else:
                tensor.dims.append(self.pick(_SIZES))

    def attributes(self, graph: Any, model: Any) -> None:
        found = [a for n in graph.node for a in n.attribute]
        if not found:
            return
        attribute = self.pick(found)
        kind = self.pick(["number", "number", "list", "kind", "name"])
        if kind == "name":
            attribute.name = self.pick(["axis", "perm", "pads", "alpha", "", "kernel_shape", "value"])
        elif kind == "kind":
            attribute.type = self.pick([0, 1, 2, 3, 4, 5, 6, 7, 8])
        elif attribute.ints:
            if kind == "list":
                attribute.ints.append(self.pick(_SIZES))
            attribute.ints[int(self.random.integers(len(attribute.ints)))] = self.pick(_SIZES)
        elif attribute.type == onnx.AttributeProto.FLOAT:
            attribute.f = self.pick([0.0, -1.0, float("nan"), float("inf"), 1e38, -1e38])
        else:
            attribute.i = self.pick(_SIZES)

    def weights(self, graph: Any, model: Any) -> None:
        if not graph.initializer:
            return
        tensor = self.pick(graph.initializer)
        kind = self.pick(["nan", "whole", "type", "less", "name", "where"])
        if kind == "nan" and tensor.data_type == 1 and tensor.raw_data:
            tensor.raw_data = self.pick([b"\0\0\xc0\x7f", b"\0\0\x80\x7f", b"\xff\xff\x7f\x7f"]) + tensor.raw_data[4:]
        elif kind == "whole" and tensor.data_type == 7 and tensor.raw_data:
            tensor.raw_data = int(self.pick(_SIZES)).to_bytes(8, "little", signed=True) + tensor.raw_data[8:]
        elif kind == "type":
            tensor.data_type = int(self.random.integers(0, 20))
        elif kind == "less":
            tensor.raw_data = tensor.raw_data[: int(self.random.integers(0, len(tensor.raw_data) + 1))]
        elif kind == "name":
            tensor.name = self.pick(self.names(graph))
        else:
            tensor.data_location = 1

    def operator(self, graph: Any, model: Any) -> None:
        node = self.pick(graph.node)
        node.op_type = self.pick([*coltrain.onnx.operators(), "Loop", "", "If"])
        if self.random.random() < 0.1:
            node.domain = "elsewhere"

    def header(self, graph: Any, model: Any) -> None:
        if model.opset_import:
            model.opset_import[0].version = int(self.random.integers(0, 20))
        if self.random.random() < 0.2:
            del model.opset_import[:]


def try_one(data: bytes, folder: Path) -> str:
    """What became of a mutant, in a word."""
    try:
        network = coltrain.onnx.from_bytes(data)
    except coltrain.Error as error:
        text = str(error)
        assert text and "Traceback" not in text
        named = all(str(r).startswith(f"node {r.node} (") and r.reason for r in getattr(error, "refused", ()))
        assert named, text
        return "refused"
    assert all(np.isfinite(a).all() for a in network.values.values())
    network.save(folder / "mutant.npz")
    assert Network.load(folder / "mutant.npz").graph.pack() == network.graph.pack()
    try:
        coltrain.onnx.to_model(network)
    except coltrain.UnsupportedError as error:
        assert "cannot be exported" in str(error)
    return "imported"


def main() -> int:
    p = argparse.ArgumentParser(description="Mutated models of ONNX.")
    p.add_argument("--count", type=int, default=300)
    p.add_argument("--seed", type=int, default=1)
    p.add_argument("--keep", default="onnx-mutant.onnx", metavar="FILE", help="where a mutant goes that is at fault")
    o = p.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    faulthandler.enable()
    mutator, counts = Mutator(o.seed), collections.Counter[str]()
    with tempfile.TemporaryDirectory() as folder:
        for number in range(o.count):
            data = mutator.mutant()
            Path(o.keep).write_bytes(data)  # before it is tried, for it may end this process
            signal.setitimer(signal.ITIMER_PROF, SECONDS)  # which ends it; time of the processor, for others may need that, too
            try:
                counts[try_one(data, Path(folder))] += 1
            except BaseException:
                print(f"mutant {number} of seed {o.seed} is at fault; it is in {o.keep}", file=sys.stderr)
                raise
            signal.setitimer(signal.ITIMER_PROF, 0)
    Path(o.keep).unlink()
    print(f"seed {o.seed}: {o.count} mutants, {counts['imported']} imported, {counts['refused']} refused")
    return 0


if __name__ == "__main__":
    sys.exit(main())
