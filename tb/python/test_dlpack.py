# SPDX-License-Identifier: Apache-2.0
"""Arrays of other libraries by DLPack: by a producer of our own (dlpack.py), and by PyTorch where that is installed."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from typing import Any

import coltrain
import dlpack
import numpy as np
import numpy.typing as npt
import pytest
from coltrain import _arrays
from dlpack import Tensor

F32 = npt.NDArray[np.float32]


@pytest.fixture
def device() -> Iterator[coltrain.Device]:
    with coltrain.open("emu:") as device:
        yield device


def drawn(seed: int, *shape: int) -> F32:
    return np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)


# ---- Our own ----


def test_memory_is_read_where_it_lies_and_given_back(device: coltrain.Device, seed: int) -> None:
    a, b = drawn(seed, 20, 36), drawn(seed + 1, 36, 8)
    ta, tb = Tensor(a), Tensor(b, offset=64)
    assert np.shares_memory(_arrays.floats(ta, "a", (20, 36)), a)
    assert np.array_equal(device.matmul(ta, tb), device.matmul(a, b))
    gc.collect()
    assert (ta.reads, ta.deletions, tb.reads, tb.deletions) == (2, 2, 1, 1)
    assert not Tensor.lent


@pytest.mark.parametrize("how", ["transposed", "strided", "reversed rows", "one row again and again"])
def test_any_order_in_memory(device: coltrain.Device, seed: int, how: str) -> None:
    base = drawn(seed, 48, 64)
    a = {
        "transposed": base.T,
        "strided": base[::2, 1::3],
        "reversed rows": base[::-1],
        "one row again and again": np.broadcast_to(base[:1], (48, 64)),
    }[how]
    b = drawn(seed + 1, a.shape[1], 5)
    assert np.array_equal(device.matmul(Tensor(a), b), device.matmul(a.copy(), b))


@pytest.mark.parametrize("kind", ["f8", "f2", "i4", "i8", "u1"])
def test_other_types_are_converted(device: coltrain.Device, seed: int, kind: str) -> None:
    a = (8 * drawn(seed, 16, 16)).clip(0, 100).astype(kind)
    b = drawn(seed + 1, 16, 16)
    assert np.array_equal(device.matmul(Tensor(a), b), device.matmul(a.astype(np.float32), b))


def test_what_cannot_be_read_is_said_with_what_to_do(device: coltrain.Device, seed: int) -> None:
    a = drawn(seed, 4, 4)
    half = dlpack.bfloat16(a)
    with pytest.raises(coltrain.ArgumentError, match=r"a cannot be read by DLPack \(.*\): give it as float32 .*tensor\.detach\(\)\.float"):
        device.matmul(half, a)
    with pytest.raises(coltrain.ArgumentError, match=r"b cannot be read by DLPack \(Can't export tensors that require gradient"):
        device.matmul(a, Tensor(a, refusal="Can't export tensors that require gradient, use tensor.detach()"))
    model = device.model([4, 3])
    model.training(4, 0.1)
    with pytest.raises(coltrain.ArgumentError, match=r"classes cannot be read .*tensor\.long"):
        model.step(a, Tensor(np.zeros(4, np.int64), refusal="no"))
    with pytest.raises(coltrain.ArgumentError, match=r"data cannot be read .*view\(torch\.uint8\)"):
        device.buffer(64).write(half)
    with pytest.raises(coltrain.ArgumentError, match="b lies on another device"):
        device.matmul(a, Tensor(a, device=dlpack.CUDA))

    class Nowhere(Tensor):
        def __dlpack_device__(self) -> tuple[int, int]:
            raise ValueError("Unknown device type meta")

    with pytest.raises(coltrain.ArgumentError, match="a cannot be read by DLPack"):
        device.matmul(Nowhere(a), a)
    with pytest.raises(coltrain.ArgumentError, match="out is a Tensor, but results go to NumPy arrays"):
        device.matmul(a, a, out=Tensor(a))  # type: ignore[arg-type]
    Tensor.lent.clear()


def test_training_and_answers(seed: int) -> None:
    x, y = drawn(seed, 32, 16), np.random.default_rng(seed).integers(0, 4, 32)
    left = []
    wraps: tuple[Callable[[Any], Any], ...] = (lambda v: v, Tensor)
    for wrap in wraps:
        with coltrain.open("emu:") as device:
            model = device.model([16, 8, 4])
            model.training(32, 0.2)
            loss = model.step(wrap(x), wrap(y))
            rows, answers = model.rows(32), model.answers(32)
            rows.write(wrap(x))
            model.infer_submit(rows, answers, count=16).result()
            left.append([np.float32(loss), model.infer(wrap(x[::2])), answers.read(0, 16), model.get(0).w])
            model.set(0, w=wrap(np.zeros((8, 16))))
            assert not model.get(0).w.any()
    assert all(np.array_equal(a, b) for a, b in zip(*left, strict=True))


def test_lazily_negated_tensors(device: coltrain.Device, seed: int) -> None:
    """PyTorch gives out the memory of a tensor that is marked as negated without a word."""

    class Negated(Tensor):
        def resolve_neg(self) -> Tensor:
            return Tensor(-self.memory)

    a, b = drawn(seed, 8, 8), drawn(seed + 1, 8, 8)
    assert np.array_equal(device.matmul(Negated(a), b), device.matmul(-a, b))


# ---- PyTorch ----


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch", reason="PyTorch is not installed (Debian's package python3-torch)")


def test_pytorch(device: coltrain.Device, torch: Any, seed: int) -> None:
    torch.manual_seed(seed)
    a, b = torch.randn(24, 40), torch.randn(40, 12)
    want = device.matmul(a.numpy(), b.numpy())
    for name, left, right in (
        ("plain", a, b),
        ("not contiguous", a.t().contiguous().t(), b.t().contiguous().t()),
        ("float64", a.double(), b.double()),
        ("a part of another", torch.cat([a, a], 1)[:, 40:], b),
        ("detached", a.clone().requires_grad_().detach(), b),
        ("a parameter's data", torch.nn.Parameter(a).data, b),
        ("negated twice", torch._neg_view(-a), b),
    ):
        assert np.array_equal(device.matmul(left, right), want), name
    whole = (3 * a).int()
    assert np.array_equal(device.matmul(whole, b), device.matmul(whole.numpy(), b.numpy()))
    for refused in (a.clone().requires_grad_(), a.bfloat16(), a.to_sparse(), a.to("meta"), torch.nn.Parameter(a)):
        with pytest.raises(coltrain.ArgumentError, match=r"tensor\.detach\(\)\.float\(\)"):
            device.matmul(refused, b)
    assert np.array_equal(device.matmul(a.bfloat16().detach().float(), b), device.matmul(a.bfloat16().float().numpy(), b.numpy()))
    out = torch.empty(24, 12)
    device.matmul(a, b, out=out.numpy())
    assert np.array_equal(out.numpy(), want)
    assert torch.equal(torch.from_dlpack(device.matmul(a, b)), torch.from_numpy(want))


def test_pytorch_trains(device: coltrain.Device, torch: Any, seed: int) -> None:
    torch.manual_seed(seed)
    x, y = torch.randn(16, 8), torch.randint(0, 4, (16,))
    model = device.model([8, 6, 4])
    model.training(16, 0.1)
    layer = torch.nn.Linear(8, 6)
    model.set(0, w=layer.weight.detach(), b=layer.bias.detach())
    assert np.array_equal(model.get(0).w, layer.weight.detach().numpy())
    losses = [model.step(x, classes) for classes in (y, y.int(), y.to(torch.uint8))]
    assert losses[2] < losses[0]
    with pytest.raises(coltrain.ArgumentError, match="classes holds float32, but integers are needed"):
        model.step(x, torch.nn.functional.one_hot(y, 4).float())
    buffer = device.buffer(x.numel() * 4)
    buffer.write(x.t())
    assert np.array_equal(buffer.read().view(np.float32).reshape(8, 16), x.t().numpy())
