# SPDX-License-Identifier: Apache-2.0
"""Models of ONNX: imported, exported, refused; ONNX Runtime is the judge of numbers, where it is installed."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import coltrain
import numpy as np
import numpy.typing as npt
import pytest
from conftest import SEED, TOP

pytest.importorskip("onnx", reason="the package onnx is not installed (Debian's python3-onnx)")

import coltrain.onnx as co
import onnx.checker
import onnx.helper
import onnx.numpy_helper
import onnx_cases
from coltrain import Graph, Network
from coltrain.cli import main
from onnx_models import random_model

AnyArray = npt.NDArray[Any]
IMAGE = (0, 2, 3, 1)
UNIT = 2.0**-24
# Sums round up and down: so many roundings of FP32 of the largest number of an output.
ROUNDINGS = 64 * UNIT


def judge(folder: Path, models: Mapping[str, tuple[Any, Mapping[str, AnyArray]]]) -> dict[str, dict[str, AnyArray]]:
    """What ONNX Runtime makes of models, by name."""
    for name, (model, inputs) in models.items():
        (folder / f"{name}.onnx").write_bytes(model.SerializeToString())
        np.savez(folder / f"{name}.npz", **inputs)
    done = subprocess.run([TOP / "scripts/onnx-runtime", folder], capture_output=True, text=True, check=False, env=os.environ, timeout=300)
    if done.returncode == 77:
        pytest.skip("ONNX Runtime is not installed (scripts/onnx-runtime --install)")
    assert done.returncode == 0, done.stderr
    found = {}
    for name in models:
        with np.load(folder / f"{name}.out.npz") as file:
            found[name] = dict(file)
    return found


def declared(model: Any, name: str) -> tuple[int, ...]:
    info = next(i for i in [*model.graph.input, *model.graph.output] if i.name == name)
    return tuple(d.dim_value for d in info.type.tensor_type.shape.dim)


def images_of(model: Any) -> frozenset[str]:
    """The inputs and outputs of an exported model that are images."""
    return frozenset(next(p.value for p in model.metadata_props if p.key == "coltrain.images").split(","))


def run_as_onnx(network: Network, model: Any, inputs: Mapping[str, AnyArray], images: frozenset[str] | None = None) -> dict[str, AnyArray]:
    """Runs a network on inputs as ONNX has them, and gives outputs as ONNX has them. images: those of the network, or else of the model."""
    images = images_of(model) if images is None else images
    given = {n: a.transpose(IMAGE) if n in images else a for n, a in inputs.items() if n in network.graph}
    outputs = {n: a.transpose(0, 3, 1, 2) if n in images else a for n, a in network.run(given).items()}
    for name, array in outputs.items():
        shape = declared(model, name)
        assert array.shape == (shape or (1,))
        outputs[name] = array.reshape(shape)
    return outputs


def sensitivity(network: Network, model: Any, inputs: Mapping[str, AnyArray], images: frozenset[str] | None = None) -> dict[str, float]:
    """How far outputs move when all inputs and weights do by four roundings of FP32: what cancels out, moves far."""
    random, moved = np.random.default_rng(1), Network(network.graph, network.values)
    exact = run_as_onnx(network, model, inputs, images)
    most = dict.fromkeys(exact, 0.0)
    for _ in range(3):
        moved.values = {n: (a * (1 + 4 * UNIT * random.choice([-1, 1], a.shape))).astype(np.float32) for n, a in network.values.items()}
        given = {n: a * (1 + 4 * UNIT * random.choice([-1.0, 1.0], a.shape)) for n, a in inputs.items()}
        for name, array in run_as_onnx(moved, model, given, images).items():
            most[name] = max(most[name], float(np.abs(array - exact[name]).max(initial=0)))
    return most


def assert_close(got: Mapping[str, AnyArray], want: Mapping[str, AnyArray], what: str, moves: Mapping[str, float] | None = None) -> None:
    assert got.keys() == want.keys(), what
    for name in want:
        limit = ROUNDINGS * max(float(np.abs(want[name]).max(initial=0)), 2.0**-100) + 8 * (moves or {}).get(name, 0.0)
        assert np.abs(got[name] - want[name]).max(initial=0) <= limit, f"{what}: {name}"


# ---- Numbers ----


def test_networks_by_name_go_out_and_come_back(tmp_path: Path, seed: int) -> None:
    random = np.random.default_rng(seed)
    models, expected = {}, {}
    for name in ("lenet5", "resnet8", "resnet20"):
        network = Network.builtin(name, seed=seed)
        statistics = network.graph.by_role("state")
        network.set({n: np.abs(random.standard_normal(t.shape)) + 0.5 for n, t in statistics.items()})
        network.save(tmp_path / f"{name}.npz")
        model = co.to_model(network)
        back = co.from_model(model)
        assert back.values.keys() == network.values.keys()
        assert all(np.array_equal(back.values[n], v) for n, v in network.values.items()), "weights come back as they went"
        assert [n.op for n in back.graph.nodes] == [n.op for n in network.graph.nodes], "and nothing is transposed"
        if name == "resnet20":  # its numbers take long
            continue
        x = random.standard_normal(declared(model, "x"), dtype=np.float32)
        models[name], expected[name] = (model, {"x": x}), run_as_onnx(network, model, {"x": x})
        assert_close(run_as_onnx(back, model, {"x": x}, back.images), expected[name], name)
    for name, outputs in judge(tmp_path, models).items():
        assert_close(outputs, expected[name], name)


@pytest.mark.parametrize("opset", [7, 9, 11, 13, 17])
def test_random_models_there_and_back(tmp_path: Path, opset: int) -> None:
    """Imported and run here, run by ONNX Runtime; exported again, and the same."""
    models: dict[str, tuple[Any, Mapping[str, AnyArray]]] = {}
    expected: dict[str, dict[str, AnyArray]] = {}
    moves: dict[str, dict[str, float]] = {}
    for k in range(12):
        model, inputs = random_model(SEED * 1000 + k, opset)
        name = f"seed{SEED * 1000 + k}"
        try:
            network = co.from_model(model)
            again = co.to_model(network)
        except coltrain.Error as error:
            raise AssertionError(f"{name}: {error}") from error
        models[name], expected[name] = (model, inputs), run_as_onnx(network, model, inputs, network.images)
        moves[name] = moves[name + "b"] = sensitivity(network, model, inputs, network.images)
        used = {}
        for n in [i.name for i in again.graph.input]:  # it may be an image in one of them and none in the other
            used[n] = inputs[n].transpose(IMAGE) if n in network.images else inputs[n]
            used[n] = used[n].transpose(0, 3, 1, 2) if n in images_of(again) else used[n]
        models[name + "b"] = (again, used)
        expected[name + "b"] = run_as_onnx(network, again, used)
        back = co.from_model(again)
        assert_close(run_as_onnx(back, again, used, back.images), expected[name + "b"], name + ", exported")
    for name, outputs in judge(tmp_path, models).items():
        assert_close(outputs, expected[name], name, moves[name])


def everything() -> Graph:
    """Each operator that can be exported, once at least."""
    g = Graph()
    x = g.input("x", (2, 6, 5, 4))
    y = g.add("conv", x, g.weight("k", (6, 3, 3, 2)), g.weight("kb", (6,)), stride=(1, 2), pad=(1, 0, 1, 2), groups=2, name="conv")
    y = g.add("batch_norm", y, *(g.weight(f"n{i}", (6,)) for i in range(2)), g.state("m", (6,)), g.state("v", (6,), "ones"), name="bn")
    y = g.add("max_pool", y, kernel=(2, 2), dilation=(2, 1), pad=(1, 0, 0, 1), name="max")
    y = g.add("average_pool", g.add("gelu", y), kernel=(2, 1), pad=(1, 0, 0, 0), count_pad=1, name="average")
    y = g.add("add", g.add("leaky_relu", y, alpha=0.2), g.add("scale", y, factor=-0.5), name="sum")
    y = g.add("concat", y, g.add("clip", y, min=-1, max=0.5), axis=3, name="wide")
    y = g.add("sub", g.add("mul", y, g.weight("s", (12,))), g.add("slice", y, axis=3, begin=2, size=1), name="sub")
    pooled = g.add("global_average_pool", g.add("relu", y), name="pooled")
    g.result(g.add("div", g.add("tanh", y), g.add("add", g.add("sigmoid", pooled), g.state("one", (1,), "ones")), name="images"))
    rows = g.add("reshape", y, shape=(2, -1, 12), name="rows")
    rows = g.add("layer_norm", rows, g.weight("ls", (12,)), g.weight("lb", (12,)), name="ln")
    scores = g.add("matmul", rows, rows, transpose_b=1, name="scores")
    rows = g.add("matmul", g.add("softmax", scores), rows, name="mixed")
    rows = g.add("linear", rows, g.weight("p", (5, 12)), g.weight("pb", (5,)), name="projected")
    rows = g.add("transpose", g.add("erf", rows), perm=(0, 2, 1), name="turned")
    flat = g.add("flatten", rows, name="flat")
    g.result(g.add("linear", flat, g.weight("f", (3, flat.shape[1])), name="logits"))
    g.result(g.add("softmax", g.add("transpose", y, perm=(3, 0, 1, 2)), axis=0, name="odd"))
    return g


def test_every_operator_goes_out(tmp_path: Path, seed: int) -> None:
    graph = everything().check()
    random = np.random.default_rng(seed)
    values = {n: random.standard_normal(v.shape) for n, v in graph.initial_values().items()}
    network = Network(graph, {**values, "v": np.abs(values["v"]) + 0.3, "one": np.ones(1)})
    model = co.to_model(network)
    x = random.standard_normal(declared(model, "x"), dtype=np.float32)
    assert declared(model, "x") == (2, 4, 6, 5)
    want = run_as_onnx(network, model, {"x": x})
    assert set(want) == {"images", "logits", "odd"}
    assert_close(judge(tmp_path, {"all": (model, {"x": x})})["all"], want, "everything")


def test_folded_normalisation_goes_out(tmp_path: Path, seed: int) -> None:
    graph = Graph.builtin("resnet8")
    graph.fold()
    network = Network(graph, {n: np.abs(v) + 0.1 for n, v in graph.initial_values(seed).items()})
    model = co.to_model(network)
    assert "BatchNormalization" not in {n.op_type for n in model.graph.node}
    x = np.random.default_rng(seed).standard_normal((1, 3, 32, 32), dtype=np.float32)
    assert_close(judge(tmp_path, {"f": (model, {"x": x})})["f"], run_as_onnx(network, model, {"x": x}), "folded")


# ---- Refusals ----


Words = tuple[str, ...]


def small(nodes: list[Any], opset: int = 17, shape: tuple[Any, ...] = (1, 2, 4, 4), outputs: Words = ("y",), **weights: AnyArray) -> Any:
    """A model in few words: its input is x."""
    info = onnx.helper.make_tensor_value_info
    tensors = [onnx.numpy_helper.from_array(np.asarray(a), n) for n, a in weights.items()]
    graph = onnx.helper.make_graph(nodes, "g", [info("x", 1, shape)], [info(o, 1, None) for o in outputs], tensors)
    return onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", opset)])


def node(op: str, inputs: str, outputs: str = "y", name: str = "n", **attrs: Any) -> Any:
    return onnx.helper.make_node(op, inputs.split(), outputs.split(), name=name, **attrs)


def ones(*shape: int) -> AnyArray:
    return np.ones(shape, dtype=np.float32)


def test_all_unsupported_nodes_are_named() -> None:
    nodes = [
        node("Cast", "x", "a", "first", to=1),
        node("Relu", "a", "b", "behind it"),
        node("NonMaxSuppression", "x", "c", "second"),
        node("Dropout", "x ratio on", "d", "third"),
        node("Relu", "x", "e", "foreign", domain="com.example"),
        node("Add", "b d", "y", "last"),
    ]
    model = small(nodes, ratio=np.array(0.5, np.float32), on=np.array(True))
    with pytest.raises(coltrain.UnsupportedError) as caught:
        co.from_model(model)
    text = str(caught.value)
    assert "because of 4 nodes" in text and "behind it" not in text and "node last" not in text
    assert "node first (Cast): Coltrain has no such operator" in text
    assert "node second (NonMaxSuppression): Coltrain has no such operator" in text
    assert "node third (Dropout): it drops at random" in text
    assert "node foreign (Relu): it is of the domain com.example" in text


CYCLE = [node("Relu", "b", "a", "one"), node("Tanh", "a", "b", "two"), node("Add", "a x")]
FLAT = [node("Flatten", "x", "f"), node("Gemm", "f w b")]
WRONG = {
    "cyclic": (small(CYCLE), r"node one \(Relu\): .*node two.*cyclic"),
    "its own": (small([node("Add", "x y", "y", "own")]), r"node own \(Add\): it needs its own output y"),
    "unknown": (small([node("Relu", "z")]), r"node n \(Relu\): its input z is made by no node"),
    "shape": (small([node("Conv", "x w")], w=ones(4, 3, 3, 3)), r"node n \(Conv\): 1 groups of 3 input channels"),
    "window": (small([node("MaxPool", "x", kernel_shape=[5, 5])]), r"node n \(MaxPool\): a window of 5 does not fit height 4"),
    "product": (small([node("MatMul", "x w")], w=ones(5, 2)), r"node n \(MatMul\): 1x2x4x4 cannot be multiplied by 5x2"),
    "gemm": (small(FLAT, w=ones(32, 2), b=ones(3)), r"node n \(Gemm\): its C is 3, which does not fit 1x2"),
    "broadcast": (small([node("Add", "x w")], w=ones(3, 4)), r"node n \(Add\): .* cannot be broadcast"),
    "reshape": (small([node("Reshape", "x s")], s=np.array([5, -1])), r"node n \(Reshape\): 1x2x4x4 cannot be given the shape \[5, -1\]"),
    "axis": (small([node("Concat", "x x", axis=7)]), r"node n \(Concat\): .*no axis 7"),
    "perm": (small([node("Transpose", "x", perm=[0, 1, 2, 2])]), r"node n \(Transpose\): its perm"),
    "zero batch": (small([node("Relu", "x")], shape=(0, 2)), r"input x: .*batch .* is 0"),
    "giant": (small([node("Relu", "x")], shape=(1, 2**30)), r"input x: .*larger than 2\^24"),
    "giant all": (small([node("Relu", "x")], shape=(2**20, 2**20)), r"input x: .*2\^34 elements"),
    "open": (small([node("Relu", "x")], shape=("n", "width")), r"dimension 1 of input x \(width\) is open"),
    "NaN": (small([node("Conv", "x w")], w=ones(1, 2, 1, 1) * np.nan), r"node n \(Conv\): w has NaN"),
    "infinite": (small([node("Mul", "x w")], w=ones(4) * np.inf), r"node n \(Mul\): w has NaN or infinity"),
    "attribute": (small([node("Relu", "x", slope=1.0)]), r"node n \(Relu\): attribute slope is not known"),
    "kind": (small([node("LeakyRelu", "x", alpha=1)]), r"node n \(LeakyRelu\): attribute alpha is no FLOAT"),
    "pads": (small([node("Conv", "x w", pads=[1, 1])], w=ones(1, 2, 1, 1)), r"node n \(Conv\): attribute pads has 2 numbers"),
    "two": (small([node("Relu", "x", "y", "a"), node("Relu", "x", "y", "b")]), "node b makes y, which is there already"),
    "output": (small([node("Relu", "x")], outputs=("z",)), "output 'z' is made by no node"),
    "no nodes": (small([]), "without nodes"),
    "old": (small([node("LayerNormalization", "x w")], opset=16, w=ones(4)), r"node n \(LayerNormalization\): it came with opset 17"),
    "opset": (small([node("Relu", "x")], opset=6), "opset 6, but 7 to 17"),
    "new": (small([node("Relu", "x")], opset=18), "opset 18, but 7 to 17"),
    "five": (small([node("Relu", "x")], shape=(1, 2, 3, 4, 5)), "1 to 4 dimensions"),
    "computed": (small([node("Relu", "x", "s"), node("Clip", "x s")]), r"node n \(Clip\): its minimum \(s\) is computed"),
    "constant": (small([node("Constant", "", value_float=1.0)]), r"node n \(Constant\): output y is a constant"),
    "text": (small([node("Constant", "", value_string=b"x")]), r"node n \(Constant\): it has no value that Coltrain reads"),
    "indices": (small([node("MaxPool", "x", "y z", kernel_shape=[1, 1])], outputs=("y", "z")), r"its output z is used"),
}


@pytest.mark.parametrize("case", WRONG)
def test_what_is_wrong_is_said_with_the_node(case: str) -> None:
    model, sentence = WRONG[case]
    with pytest.raises((coltrain.FormatError, coltrain.UnsupportedError), match=sentence):
        co.from_model(model)


def test_damaged_files(tmp_path: Path) -> None:
    file = tmp_path / "m.onnx"
    co.save(Network.builtin("lenet5"), file)
    data = file.read_bytes()
    for cut in (0, 1, 20, len(data) // 2, len(data) - 1):
        file.write_bytes(data[:cut])
        with pytest.raises(coltrain.FormatError, match=r"m\.onnx"):
            co.load(file)
    with pytest.raises(coltrain.FileError, match="No such file"):
        co.load(tmp_path / "none.onnx")
    model = small([node("Conv", "x w")], w=ones(1, 2, 1, 1))
    model.graph.initializer[0].dims[0] = 2**40
    with pytest.raises(coltrain.FormatError, match=r"node n \(Conv\): initialiser w: its shape .* has \d+ numbers, but 2 are there"):
        co.from_model(model)
    model.graph.initializer[0].data_location = 1
    with pytest.raises(coltrain.UnsupportedError, match="its numbers lie in another file"):
        co.from_model(model)


def test_what_onnx_cannot_have_is_named() -> None:
    graph = Graph()
    x = graph.input("x", (2, 4, 4, 3))
    y = graph.add("average_pool", x, kernel=(2, 2), dilation=(2, 2), name="gaps")
    y = graph.add("dropout", graph.add("relu", y, name="fine"), rate=0.25, name="drop")
    graph.result(y)
    graph.add("mse", y, graph.tensor("y", y.shape, "label"), name="loss")
    with pytest.raises(coltrain.UnsupportedError) as caught:
        co.to_model(Network(graph, {}))
    text = str(caught.value)
    assert "because of 3 nodes" in text and "fine" not in text
    assert "node gaps (average_pool): opset 17 has no average of windows with gaps" in text
    assert "node drop (dropout): ONNX drops by other random numbers" in text
    assert "node loss (mse): it belongs to training" in text
    trained = Graph.mlp([3, 2], 1, training=True)
    trained.gradients("loss")
    with pytest.raises(coltrain.UnsupportedError, match="belongs to training"):
        co.to_model(Network(trained, trained.initial_values()))


# ---- ONNX's own cases ----


def test_onnx_has_no_case_that_fails() -> None:
    if not onnx_cases.CASES.is_dir():
        pytest.skip("ONNX's cases are not installed (Debian's libonnx-testdata)")
    operators = set(co.operators())
    outcomes = onnx_cases.conform(onnx_cases.Reference(), operators)
    assert not [o for o in outcomes if o.kind == "failed"]
    rows = onnx_cases.table(outcomes, operators)
    assert sum(row.passed for row in rows.values()) >= 150
    assert [op for op, row in rows.items() if not row.passed] == ["Constant"]
    if onnx.__version__ == "1.12.0":  # of which the page has the table
        page = (TOP / "docs/onnx.md").read_text()
        assert onnx_cases.markdown(rows) in page, "docs/onnx.md: tb/python/onnx_cases.py --markdown is its table"


def test_the_device_has_no_case_that_fails() -> None:
    """Nor is the bound so wide that mantissas of 4 bits would do."""
    if not onnx_cases.CASES.is_dir():
        pytest.skip("ONNX's cases are not installed (Debian's libonnx-testdata)")
    with coltrain.open("emu:") as device:
        outcomes = onnx_cases.conform(onnx_cases.OnDevice(device), set(co.operators()))
        assert not [o for o in outcomes if o.kind == "failed"]
        assert sum(o.kind == "passed" for o in outcomes) >= 151
        products = {"Conv", "Gemm", "MatMul"}
        assert {o.op for o in outcomes if o.kind == "passed" and o.op in products} == products
        narrow = onnx_cases.conform(onnx_cases.OnDevice(device, mantissa=4), products)
        assert {o.op for o in narrow if o.kind == "failed"} == products


class Rounded(onnx_cases.Reference):
    """Computes with factors of 8 bits: the bound that is derived from them holds, and that of exact factors does not."""

    honest = True

    def run(self, network: Network, inputs: Mapping[str, onnx_cases.F64]) -> dict[str, onnx_cases.F64]:
        values = {n: self.rounded(v.astype(np.float64)) for n, v in network.values.items()}
        return network.graph.run({**values, **{n: self.rounded(a) for n, a in inputs.items()}})

    def rounded(self, a: onnx_cases.F64) -> onnx_cases.F64:
        step = np.abs(a).max(initial=1e-30) / 127
        rounded: onnx_cases.F64 = np.round(a / step) * step
        return rounded

    def spread(self, factors: onnx_cases.F64) -> onnx_cases.F64:
        return np.full(factors.shape, np.abs(factors).max(initial=0) / 254 * self.honest)


def test_the_bound_follows_the_factors() -> None:
    if not onnx_cases.CASES.is_dir():
        pytest.skip("ONNX's cases are not installed (Debian's libonnx-testdata)")
    backend, operators = Rounded(), {"Gemm", "MatMul"}
    assert {o.kind for o in onnx_cases.conform(backend, operators)} == {"passed"}
    backend.honest = False
    assert "failed" in {o.kind for o in onnx_cases.conform(backend, operators)}


# ---- Mutants ----


def test_mutants_are_imported_or_refused(tmp_path: Path) -> None:
    """`make campaign` tries 100,000."""
    command: list[str | Path] = [sys.executable, TOP / "tb/python/onnx_fuzz.py", "--keep", tmp_path / "mutant.onnx"]
    command += ["--count", "300", "--seed", str(SEED)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    found = re.search(r"(\d+) imported, (\d+) refused", done.stdout)
    assert found and int(found[1]) > 20 and int(found[2]) > 100, done.stdout


# ---- The command ----


def test_the_command(tmp_path: Path, build: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)

    def run(verb: str, *args: str) -> tuple[int, str]:
        status = main(verb, list(args))
        captured = capsys.readouterr()
        return status, captured.out + captured.err

    status, text = run("export", "resnet8", "-o", "r.onnx", "--batch", "3")
    assert status == 0 and "takes x: 3x32x32x3, NHWC" in text and "gives logits: 3x10" in text
    onnx.checker.check_model(onnx.load(str(tmp_path / "r.onnx")))
    status, text = run("import", "r.onnx")
    assert status == 0 and "r.npz: 29 nodes, 78,186 weights" in text
    assert run("export", "r.npz", "-o", "again.onnx")[0] == 0
    co.load(tmp_path / "again.onnx").save(tmp_path / "again.npz")
    assert (tmp_path / "again.npz").read_bytes() == (tmp_path / "r.npz").read_bytes()
    (tmp_path / "bad.onnx").write_bytes(small([node("Cast", "x", to=1)]).SerializeToString())
    with pytest.raises(SystemExit):  # used wrongly
        run("import")
    done = subprocess.run([build / "bin/coltrain", "import", "bad.onnx"], capture_output=True, text=True, check=False, timeout=300)
    status, text = done.returncode, done.stderr
    assert status == 1 and "coltrain: bad.onnx cannot be imported" in text and "node n (Cast)" in text
    assert not (tmp_path / "bad.npz").exists()
    status, text = run("export", "r.npz", "--batch", "2")
    assert status == 1 and "says by itself" in text


def test_files_of_the_device(tmp_path: Path, build: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """What the command has trained becomes a model of ONNX, and that a file that the command takes: the answers stay."""
    monkeypatch.chdir(tmp_path)

    def coltrain_of(*args: str) -> str:
        done = subprocess.run([build / "bin/coltrain", *args, "--device", "emu:"], capture_output=True, text=True, check=False, timeout=300)
        assert done.returncode == 0, (args, done.stderr)
        return done.stdout

    coltrain_of("train", "--model", "lenet5", "--samples", "64", "--save", "l.ctm")
    assert main("export", ["l.ctm", "--batch", "2"]) == 0 and "takes x: 2x28x28x1" in capsys.readouterr().out
    onnx.checker.check_model(onnx.load(str(tmp_path / "l.onnx")))
    assert main("import", ["l.onnx", "-o", "again.ctm"]) == 0
    x = np.random.default_rng(SEED).random((3, 784), dtype=np.float32)
    np.save("x.npy", x)
    for name in ("l", "again"):
        coltrain_of("infer", "--model", f"{name}.ctm", "--input", "x.npy", "--output", f"{name}.npy")
    assert np.load("l.npy").tobytes() == np.load("again.npy").tobytes()
    assert "conv2" in coltrain_of("explain", "again.ctm")
    assert "5 of 5, 0 wrong" in coltrain_of("serve-bench", "--model", "again.ctm", "--requests", "5")
