# SPDX-License-Identifier: Apache-2.0
"""Random models of ONNX, of every operator that can be imported, for tests."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import onnx.helper
import onnx.numpy_helper

F32 = npt.NDArray[np.float32]
Shape = tuple[int, ...]


class Maker:
    """Makes one model: values of several shapes are there, and each step applies some operator to one of them."""

    def __init__(self, seed: int, opset: int = 17) -> None:
        self.random = np.random.default_rng(seed)
        self.opset = opset
        self.nodes: list[onnx.NodeProto] = []
        self.tensors: list[onnx.TensorProto] = []
        self.values: dict[str, Shape] = {}
        self.inputs: dict[str, Shape] = {}
        self.used: set[str] = set()

    def pick(self, *choices: Any) -> Any:
        return choices[int(self.random.integers(len(choices)))]

    def size(self, low: int, high: int) -> int:
        return int(self.random.integers(low, high + 1))

    def input(self, *shape: int) -> str:
        name = f"in{len(self.inputs)}"
        self.inputs[name] = self.values[name] = shape
        return name

    def weight(self, *shape: int, low: float | None = None) -> str:
        array = self.random.standard_normal(shape, dtype=np.float32) / np.float32(math.sqrt(max(math.prod(shape[1:]), 1)))
        if low is not None:
            array = np.abs(array) + np.float32(low)
        return self.constant(array)

    def constant(self, array: npt.NDArray[Any]) -> str:
        name = f"w{len(self.tensors)}"
        self.tensors.append(onnx.numpy_helper.from_array(np.asarray(array), name))
        return name

    def node(self, op: str, inputs: list[str], shape: Shape, **attrs: Any) -> str:
        name = f"v{len(self.nodes)}"
        self.nodes.append(onnx.helper.make_node(op, inputs, [name], name=f"n{len(self.nodes)}_{op}", **attrs))
        self.used.update(inputs)
        self.values[name] = shape
        return name

    def model(self, outputs: int = 2) -> onnx.ModelProto:
        """The model. Its outputs are what nobody reads."""
        ends = [v for v in self.values if v not in self.used and v not in self.inputs][-outputs:]

        def info(name: str) -> onnx.ValueInfoProto:
            return onnx.helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, self.values[name])

        graph = onnx.helper.make_graph(self.nodes, "random", [info(n) for n in self.inputs], [info(n) for n in ends], self.tensors)
        model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", self.opset)])
        model.ir_version = 8
        onnx.checker.check_model(model)
        return model

    # ---- Operators ----

    def unary(self, x: str) -> str:
        shape = self.values[x]
        op = self.pick("Relu", "LeakyRelu", "Sigmoid", "Tanh", "Identity", "Dropout", "Clip", "Erf" if self.opset >= 9 else "Tanh")
        if op == "Clip":
            if self.opset < 11:
                return self.node(op, [x], shape, min=-0.5, max=1.5)
            low, high = self.constant(np.array(-0.5, np.float32)), self.constant(np.array(1.5, np.float32))
            return self.node(op, [x, self.pick(low, ""), self.pick(high, "")], shape)
        return self.node(op, [x], shape, **({"alpha": 0.25} if op == "LeakyRelu" else {}))

    def with_constant(self, x: str) -> str:
        """A constant of some of the dimensions, on either side."""
        shape = self.values[x]
        rank = self.size(0, len(shape))
        part = tuple(self.pick(1, d) for d in shape[len(shape) - rank :])
        w, op = self.weight(*part, low=0.5), self.pick("Add", "Sub", "Mul", "Div")
        swap = op != "Div" and self.pick(True, False)
        return self.node(op, [w, x] if swap else [x, w], shape)

    def two(self, x: str) -> str:
        """Another value of this shape, or of one that is broadcast to it."""
        shape = self.values[x]
        others = [v for v, s in self.values.items() if len(s) <= len(shape) and fits(s, shape)]
        return self.node(self.pick("Add", "Sub", "Mul"), [x, self.pick(*others)], shape)

    def concat(self, x: str) -> str:
        shape, axis = self.values[x], self.size(0, len(self.values[x]) - 1)
        rest = (*shape[:axis], *shape[axis + 1 :])
        others = [v for v, s in self.values.items() if len(s) == len(shape) and (*s[:axis], *s[axis + 1 :]) == rest]
        other = self.pick(*others)
        wide = shape[axis] + self.values[other][axis]
        return self.node("Concat", [x, other], (*shape[:axis], wide, *shape[axis + 1 :]), axis=self.pick(axis, axis - len(shape)))

    def window(self, x: str, channels: int, kernel: Shape, op: str, inputs: list[str], **attrs: Any) -> str:
        n, _, *sizes = self.values[x]
        rank = len(sizes)
        stride = [self.size(1, 2) for _ in range(rank)]
        gap = [self.size(1, 2) if op == "Conv" or (op == "MaxPool" and self.opset >= 10) else 1 for _ in range(rank)]
        spans = [(k - 1) * g + 1 for k, g in zip(kernel, gap, strict=True)]
        pads = [self.size(0, (k - 1) // 2) for k in kernel] + [self.size(0, (k - 1) // 2) for k in kernel]
        if any(s > z + pads[i] + pads[i + rank] for i, (s, z) in enumerate(zip(spans, sizes, strict=True))):
            return x
        out = [(z + pads[i] + pads[i + rank] - s) // t + 1 for i, (z, s, t) in enumerate(zip(sizes, spans, stride, strict=True))]
        given = dict(strides=stride, pads=pads, **attrs)
        if op == "Conv" or (op == "MaxPool" and self.opset >= 10):
            given["dilations"] = gap
        mode = self.pick("NOTSET", "NOTSET", "SAME_UPPER", "SAME_LOWER", "VALID")
        if mode != "NOTSET" and op != "Conv" and max(gap) == 1:
            given |= {"auto_pad": mode}
            del given["pads"]
            out = [-(-z // t) if mode[0] == "S" else (z - s) // t + 1 for z, s, t in zip(sizes, spans, stride, strict=True)]
            if min(out) < 1:
                return x
        return self.node(op, [x, *inputs], (n, channels, *out), kernel_shape=list(kernel), **given)

    def conv(self, x: str) -> str:
        shape = self.values[x]
        groups = self.pick(*[g for g in (1, 2, shape[1]) if shape[1] % g == 0])
        channels, kernel = groups * self.size(1, 3), tuple(self.size(1, 3) for _ in shape[2:])
        w = self.weight(channels, shape[1] // groups, *kernel)
        return self.window(x, channels, kernel, "Conv", [w, *self.pick([], [self.weight(channels)])], group=groups)

    def pool(self, x: str) -> str:
        shape = self.values[x]
        kernel = tuple(self.size(1, 3) for _ in shape[2:])
        op = self.pick("MaxPool", "AveragePool")
        extra = {"count_include_pad": self.pick(0, 1)} if op == "AveragePool" else {}
        return self.window(x, shape[1], kernel, op, [], **extra)

    def global_pool(self, x: str) -> str:
        shape = self.values[x]
        return self.node("GlobalAveragePool", [x], (*shape[:2], *[1] * (len(shape) - 2)))

    def batch_norm(self, x: str) -> str:
        c = self.values[x][1]
        weights = [self.weight(c), self.weight(c), self.weight(c), self.weight(c, low=0.5)]
        return self.node("BatchNormalization", [x, *weights], self.values[x], epsilon=1e-3)

    def layer_norm(self, x: str) -> str:
        axis = self.size(0, len(self.values[x]) - 1)
        row = self.values[x][axis:]
        if math.prod(row) == 1:
            return x
        inputs = [x, self.weight(*row), *self.pick([], [self.weight(*row)])]
        # Rows whose numbers hardly differ would magnify the roundings of whoever computes them, by up to 1 / sqrt(epsilon).
        return self.node("LayerNormalization", inputs, self.values[x], axis=self.pick(axis, axis - len(self.values[x])), epsilon=0.25)

    def softmax(self, x: str) -> str:
        return self.node("Softmax", [x], self.values[x], axis=self.size(0, len(self.values[x]) - 1))

    def transpose(self, x: str) -> str:
        perm = [int(p) for p in self.random.permutation(len(self.values[x]))]
        return self.node("Transpose", [x], tuple(self.values[x][p] for p in perm), perm=perm)

    def reshape(self, x: str) -> str:
        shape = self.values[x]
        at = self.size(0, len(shape) - 1)
        merged = (*shape[:at], math.prod(shape[at : at + 2]), *shape[at + 2 :])
        wanted = [-1 if k == at else (0 if k < at else d) for k, d in enumerate(merged)]
        return self.node("Reshape", [x, self.constant(np.array(wanted, dtype=np.int64))], merged)

    def flatten(self, x: str) -> str:
        shape, axis = self.values[x], self.size(0, len(self.values[x]))
        return self.node("Flatten", [x], (math.prod(shape[:axis]), math.prod(shape[axis:])), axis=axis)

    def gemm(self, x: str) -> str:
        (m, k), n = self.values[x], self.size(1, 5)
        turned, wide = self.pick(0, 1), self.pick(0, 1)
        m, k = (k, m) if turned else (m, k)
        c = self.pick([], [self.weight(n)], [self.weight(1)], [self.weight(m, n)], [self.weight(m, 1)])
        attrs = {"alpha": self.pick(1.0, 0.5), "beta": self.pick(1.0, 2.0), "transA": turned, "transB": wide}
        if self.opset < 11 and not c:
            c = [self.weight(n)]
        return self.node("Gemm", [x, self.weight(*((n, k) if wide else (k, n))), *c], (m, n), **attrs)

    def matmul(self, x: str) -> str:
        shape = self.values[x]
        n = self.size(1, 5)
        if len(shape) == 1:
            return self.node("MatMul", [x, self.weight(shape[0], n)], (n,))
        kind = self.pick("matrix", "vector", "batch")
        if kind == "vector":
            return self.node("MatMul", [x, self.weight(shape[-1])], shape[:-1])
        front = shape[:-2] if kind == "batch" else ()
        return self.node("MatMul", [x, self.weight(*front, shape[-1], n)], (*shape[:-1], n))

    def step(self) -> str:
        x = self.pick(*list(self.values)[-4:])
        rank = len(self.values[x])
        able: list[Callable[[str], str]] = [self.unary, self.with_constant, self.two]
        able += [self.reshape, self.transpose, self.flatten, self.matmul]
        able += [self.concat, self.concat] if rank else []
        able += [self.softmax] if self.opset >= 13 and rank else []
        able += [self.layer_norm] if self.opset >= 17 and rank else []
        able += [self.gemm, self.gemm] if rank == 2 else []
        able += [self.batch_norm] if rank >= 2 else []
        able += [self.conv, self.conv, self.pool, self.global_pool] if rank == 4 else []
        able += [self.conv, self.pool] if rank == 3 else []
        if rank == 0 or math.prod(self.values[x]) > 4000:
            able = [self.unary]
        return able[self.size(0, len(able) - 1)](x)


def fits(small: Shape, shape: Shape) -> bool:
    return all(a in (1, b) for a, b in zip(reversed(small), reversed(shape), strict=False))


def random_model(seed: int, opset: int = 17, steps: int = 9) -> tuple[onnx.ModelProto, dict[str, F32]]:
    """A model and values of its inputs."""
    maker = Maker(seed, opset)
    start = maker.pick((2, 4, 6, 5), (1, 3, 7, 7), (3, 2, 5, 4), (2, 3, 6), (3, 7))
    maker.input(*start)
    if maker.pick(True, False):
        maker.input(*start)
    made = 0
    while made < steps:
        before = len(maker.nodes)
        maker.step()
        made += len(maker.nodes) > before
    inputs = {name: maker.random.standard_normal(shape, dtype=np.float32) for name, shape in maker.inputs.items()}
    return maker.model(), inputs
