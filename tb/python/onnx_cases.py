#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""ONNX's own test cases of single operators (Debian's libonnx-testdata) on Coltrain: `make onnx-conformance`.

    tb/python/onnx_cases.py [--operator NAME] [--details] [--markdown]

Each case of the operators that can be imported is imported and run, and each number is compared within a bound. A case is passed, refused
(by a sentence), or failed; the exit status is 1 if one failed. What a node takes as weights or settings (CONSTANTS) is given when it
is imported, as it is in a model.

The bound is the error that the arithmetic of a backend may make. For what is a sum of products, with errors da and db of the factors,

    sum(|a| db + |b| da + da db)  +  (n + 2) 2^-24 sum(|a| |b|)

for n products: the first part is what the factors' format loses, the second what FP32 loses in summing, here and in ONNX's numbers,
which NumPy has computed in FP32. Both are had of the graph itself, run on magnitudes: it is monotone in them. The reference has exact
factors, da = db = 0; a backend that computes in HBFP8 says by `spread` how far its factors may be off.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "host/python"))

import coltrain
import coltrain.onnx
import onnx
import onnx.defs
import onnx.numpy_helper
from coltrain import Network

F64 = npt.NDArray[np.float64]
CASES = Path("/usr/share/libonnx-testdata/data/node")
UNIT = 2.0**-24
PRODUCTS = ("Conv", "Gemm", "MatMul", "AveragePool", "GlobalAveragePool")
MOVES = ("Clip", "Concat", "Dropout", "Flatten", "Identity", "MaxPool", "Relu", "Reshape", "Transpose")  # no number is another
IMAGES = (*PRODUCTS, "MaxPool", "BatchNormalization")
# Inputs that are weights or settings.
CONSTANTS = {
    "Conv": (1, 2),
    "Gemm": (1, 2),
    "BatchNormalization": (1, 2, 3, 4),
    "LayerNormalization": (1, 2),
    "Reshape": (1,),
    "Clip": (1, 2),
    "Dropout": (1, 2),
}


class Backend(Protocol):
    """What computes."""

    name: str
    slack: float
    """How many times the rounding of FP32 a function may be off."""

    def run(self, network: Network, inputs: Mapping[str, F64]) -> dict[str, F64]:
        """The outputs."""

    def spread(self, factors: F64) -> F64:
        """How far each factor of a product may be off, where this computes."""


class Reference:
    """The definitions, in double precision."""

    name = "reference"
    slack = 1.0

    def run(self, network: Network, inputs: Mapping[str, F64]) -> dict[str, F64]:
        return network.run(inputs)

    def spread(self, factors: F64) -> F64:
        return np.zeros_like(factors)


class OnDevice:
    """The kernels of a device: factors of products are HBFP8, or narrower, of which the bound knows nothing."""

    # docs/programming.md, Sequences: 2^-20 for the worst of them, where FP32 has 2^-24.
    slack = 32.0

    def __init__(self, device: coltrain.Device, mantissa: int = 8) -> None:
        self.name = "device"
        self.device = device
        self.mantissa = mantissa

    def run(self, network: Network, inputs: Mapping[str, F64]) -> dict[str, F64]:
        with self.device.compile(network, mantissa=self.mantissa) as net:
            found = net.run({name: a.astype(np.float32) for name, a in inputs.items()})
        return {name: a.astype(np.float64) for name, a in found.items()}

    def spread(self, factors: F64) -> F64:
        """Half a step of a block whose largest element is that of all: it has 64 to 127 steps."""
        return np.full_like(factors, np.abs(factors).max(initial=0) / 128)


# ---- Cases ----


@dataclass
class Case:
    """A model of one node, and what it makes of what."""

    name: str
    op: str
    model: onnx.ModelProto
    inputs: dict[str, npt.NDArray[Any]]
    outputs: dict[str, npt.NDArray[Any]]

    @property
    def node(self) -> onnx.NodeProto:
        return self.model.graph.node[0]

    def constants(self) -> dict[str, npt.NDArray[Any]]:
        names = {self.node.input[k] for k in CONSTANTS.get(self.op, ()) if k < len(self.node.input)}
        return {name: array for name, array in self.inputs.items() if name in names}


@dataclass
class Outcome:
    """What became of a case."""

    case: str
    op: str
    kind: str
    """passed, refused or failed"""
    why: str = ""
    note: str = ""


def tensor(file: Path) -> npt.NDArray[Any]:
    found: npt.NDArray[Any] = onnx.numpy_helper.to_array(onnx.TensorProto.FromString(file.read_bytes()))
    return found


def read_case(folder: Path, op: str, model: onnx.ModelProto) -> Case:
    data, graph = folder / "test_data_set_0", model.graph
    inputs = {info.name: tensor(data / f"input_{k}.pb") for k, info in enumerate(graph.input)}
    outputs = {info.name: tensor(data / f"output_{k}.pb") for k, info in enumerate(graph.output)}
    return Case(folder.name, op, model, inputs, outputs)


def cases(operators: set[str]) -> Iterator[Case | Outcome]:
    """The cases of operators; those that hold no tensors are refused here."""
    for folder in sorted(CASES.iterdir()):
        model = onnx.ModelProto.FromString((folder / "model.onnx").read_bytes())
        nodes = model.graph.node
        if len(nodes) != 1 or nodes[0].op_type not in operators or nodes[0].domain:
            continue
        kinds = [info.type.WhichOneof("value") for info in [*model.graph.input, *model.graph.output]]
        if any(kind != "tensor_type" for kind in kinds):
            yield Outcome(folder.name, nodes[0].op_type, "refused", "its inputs are no tensors, but sequences or optional")
            continue
        lift(model, nodes[0].op_type)
        yield read_case(folder, nodes[0].op_type, model)


def lift(model: onnx.ModelProto, op: str) -> None:
    """A case of an old opset is one of the oldest that is read, if the operator is the same there."""
    entry, oldest = model.opset_import[0], coltrain.onnx.OLDEST
    if entry.version >= oldest:
        return
    old, new = (onnx.defs.get_schema(op, version, "") for version in (entry.version, oldest))
    if old.since_version == new.since_version:
        entry.version = oldest


def first_output(case: Case) -> None:
    """Leaves the other outputs out, which are optional where this is done."""
    name = case.node.output[0]
    del case.node.output[1:]
    kept = [info for info in case.model.graph.output if info.name == name]
    del case.model.graph.output[:]
    case.model.graph.output.extend(kept)
    case.outputs = {name: case.outputs[name]}


# ---- Orders: ONNX has images as NCHW ----


def ours(case: Case, array: npt.NDArray[Any]) -> F64:
    a = np.asarray(array, dtype=np.float64)
    if case.op in IMAGES and case.op not in ("Gemm", "MatMul") and a.ndim == 4:
        a = a.transpose(0, 2, 3, 1)
    return np.ascontiguousarray(a.reshape(a.shape or (1,)))


# ---- Bounds ----


def magnitude(case: Case, network: Network, inputs: Mapping[str, F64], backend: Backend, spread: bool) -> F64:
    """The sums of products, of magnitudes; with spread, of the largest factors that the backend may have."""

    def largest(a: npt.NDArray[Any]) -> F64:
        x = np.abs(np.asarray(a, dtype=np.float64))
        return x + backend.spread(np.asarray(a, dtype=np.float64)) if spread else x

    values = {name: largest(a) for name, a in network.values.items()}
    given = {name: largest(a) for name, a in inputs.items()}
    return next(iter(network.graph.run({**values, **given}).values()))


def terms(network: Network) -> float:
    """Numbers that are summed to one."""
    numbers = [(n.macs, n.inputs[0].info.elements if n.inputs[0] else 0, n.outputs[0].info.elements) for n in network.graph.nodes]
    return max(max(macs, inputs) / outputs for macs, inputs, outputs in numbers)


def bounds(case: Case, network: Network, inputs: Mapping[str, F64], backend: Backend, got: Mapping[str, F64]) -> dict[str, F64]:
    """By output: how far each number may be off."""
    unit = UNIT * backend.slack
    if case.op in MOVES and backend.slack == 1:
        return {name: np.zeros_like(a) for name, a in got.items()}
    scale = 1 + max((float(np.abs(a).max()) for a in inputs.values() if a.size), default=0.0)
    if case.op in PRODUCTS:
        exact = magnitude(case, network, inputs, backend, spread=False)
        lost = magnitude(case, network, inputs, backend, spread=True) - exact
        return {name: lost + (terms(network) + 2) * UNIT * exact for name in got}
    if case.op in ("BatchNormalization", "LayerNormalization"):
        # (x - mean) / root * scale + bias: mean and root are sums over all of x.
        x = next(iter(inputs.values()))
        variance = minimum_variance(network) if case.op == "BatchNormalization" else min(float(x.var(axis=-1).min()), 1)
        root = float(np.sqrt(1e-5 + variance))
        weights = max(1.0, *(float(np.abs(v).max()) for v in network.values.values()))
        most = 2 * (scale + weights) / root * weights + weights
        return {name: np.full(a.shape, (8 + x.size / max(x.shape[-1], 1)) * unit * most) for name, a in got.items()}
    # Sequences are absolute near 0, up to 1.
    floor = 2.0**-126 if backend.slack == 1 else unit
    return {name: 8 * unit * scale * np.abs(a) + floor for name, a in got.items()}


def minimum_variance(network: Network) -> float:
    found = [float(v.min()) for name, v in network.values.items() if "var" in name]
    return min(found, default=0.0)


# ---- Runs ----


def run_case(case: Case, backend: Backend) -> Outcome:
    note = ""
    try:
        network = coltrain.onnx.from_model(case.model, constants=case.constants())
    except coltrain.UnsupportedError as whole:
        if len(case.outputs) == 1:
            return Outcome(case.name, case.op, "refused", reason(whole))
        note = f"without {', '.join(list(case.outputs)[1:])}"
        first_output(case)
        try:
            network = coltrain.onnx.from_model(case.model, constants=case.constants())
        except coltrain.Error as error:
            return Outcome(case.name, case.op, "refused", reason(error))
    except coltrain.Error as error:
        return Outcome(case.name, case.op, "refused", reason(error))
    inputs = {name: ours(case, a) for name, a in case.inputs.items() if name in network.graph}
    inputs = {name: a for name, a in inputs.items() if network.graph[name].role == coltrain.Role.INPUT}
    try:
        got = backend.run(network, inputs)
    except coltrain.UnsupportedError as error:
        return Outcome(case.name, case.op, "refused", str(error))
    allowed = bounds(case, network, inputs, backend, got)
    for name, array in case.outputs.items():
        want = ours(case, array)
        if got[name].shape != want.shape:
            return Outcome(case.name, case.op, "failed", f"{name} has the shape {got[name].shape}, not {want.shape}")
        off = np.abs(got[name] - want)
        if not (off <= allowed[name]).all():
            at = int((off - allowed[name]).argmax())
            return Outcome(case.name, case.op, "failed", f"{name} is off by {off.flat[at]:.3g}, allowed {allowed[name].flat[at]:.3g}")
    return Outcome(case.name, case.op, "passed", note=note)


def reason(error: coltrain.Error) -> str:
    """The sentence about the node, or that about the model."""
    refused = getattr(error, "refused", None)
    return str(refused[0].reason if refused else error)


@dataclass
class Row:
    """An operator's cases."""

    cases: int = 0
    passed: int = 0
    failed: int = 0
    reasons: dict[str, int] = field(default_factory=dict)
    notes: set[str] = field(default_factory=set)


def table(outcomes: list[Outcome], operators: set[str]) -> dict[str, Row]:
    rows = {op: Row() for op in sorted(operators)}
    for outcome in outcomes:
        row = rows[outcome.op]
        row.cases += 1
        row.passed += outcome.kind == "passed"
        row.failed += outcome.kind == "failed"
        if outcome.kind == "refused":
            row.reasons[outcome.why] = row.reasons.get(outcome.why, 0) + 1
        if outcome.note:
            row.notes.add(outcome.note)
    return rows


def cells(op: str, row: Row) -> list[str]:
    words = [f"{n} x {why}" if n > 1 else why for why, n in row.reasons.items()] + sorted(row.notes)
    return [op, str(row.cases), str(row.passed), str(sum(row.reasons.values())), "; ".join(words)]


def markdown(rows: Mapping[str, Row]) -> str:
    lines = ["| operator | cases | passed | refused | why; what is left out |", "|---|---|---|---|---|"]
    return "\n".join(lines + [f"| {' | '.join(cells(op, row))} |" for op, row in rows.items()])


def conform(backend: Backend, operators: set[str]) -> list[Outcome]:
    return [case if isinstance(case, Outcome) else run_case(case, backend) for case in cases(operators)]


def main() -> int:
    known = set(coltrain.onnx.operators())
    p = argparse.ArgumentParser(description="ONNX's test cases of single operators on Coltrain.")
    p.add_argument("--operator", choices=sorted(known), metavar="NAME", help="of this one only")
    p.add_argument("--device", metavar="URI", help="by the kernels of this device instead of the reference, such as emu:")
    p.add_argument("--details", action="store_true", help="a line for each case")
    p.add_argument("--markdown", action="store_true", help="the table as in docs/onnx.md")
    o = p.parse_args()
    if not CASES.is_dir():
        sys.exit(f"{CASES} is not there: install Debian's package libonnx-testdata")
    operators = {o.operator} if o.operator else known
    if o.device:
        with coltrain.open(o.device) as device:
            outcomes = conform(OnDevice(device), operators)
    else:
        outcomes = conform(Reference(), operators)
    rows = table(outcomes, operators)
    if o.markdown:
        print(markdown(rows))
    else:
        print(f"{'operator':20}{'cases':>7}{'passed':>8}{'refused':>9}{'failed':>8}")
        for op, row in rows.items():
            print(f"{op:20}{row.cases:>7}{row.passed:>8}{sum(row.reasons.values()):>9}{row.failed:>8}")
            for text in cells(op, row)[4].split("; "):
                if text:
                    print(f"{'':20}  {text}")
    for outcome in outcomes:
        if o.details or outcome.kind == "failed":
            print(f"{outcome.kind} - {outcome.case} {outcome.why}{outcome.note}")
    failed = sum(outcome.kind == "failed" for outcome in outcomes)
    print(f"{len(outcomes)} cases, {sum(x.kind == 'passed' for x in outcomes)} passed, {failed} failed", file=sys.stderr)
    return 1 if failed or not outcomes else 0


if __name__ == "__main__":
    sys.exit(main())
