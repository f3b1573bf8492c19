# SPDX-License-Identifier: Apache-2.0
"""MXINT8 from and to NumPy: what the C functions do is tested in tb/host/test_mxint8.c, here their way to Python."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import pytest

import coltrain


def values(elements: npt.NDArray[np.int8], scales: npt.NDArray[np.uint8]) -> npt.NDArray[np.float64]:
    """What the specification says that elements and scales are."""
    exponents = np.repeat(scales.astype(int), 32, axis=1)[:, : elements.shape[1]]
    result: npt.NDArray[np.float64] = np.ldexp(elements / 64, exponents - 127)
    return result


def test_in_and_out(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for rows, cols in ((1, 1), (3, 16), (17, 33), (40, 96)):
        elements = rng.integers(-127, 128, (rows, cols), dtype=np.int8)
        scales = rng.integers(20, 230, (rows, -(-cols // 32)), dtype=np.uint8)
        packed = coltrain.pack_mxint8(elements, scales)
        assert np.array_equal(coltrain.unpack(packed, rows, cols), values(elements, scales))
        again, same = coltrain.unpack_mxint8(packed, rows, cols)
        assert again.dtype == np.int8 and same.dtype == np.uint8
        assert np.array_equal(again, elements) and np.array_equal(same, scales)
    wide = coltrain.pack_mxint8(elements.astype(int)[::-1], scales.astype(np.int64)[::-1].copy())
    assert np.array_equal(coltrain.unpack(wide, rows, cols), values(elements, scales)[::-1])


def test_rounding() -> None:
    x = np.zeros((2, 32), dtype=np.float32)
    x[1, 0], x[1, 16] = 1.0, 127 / 4096
    packed = coltrain.pack(x)
    with pytest.raises(coltrain.ArgumentError, match=r"row 1, block 0 \(of 32\): its halves have the exponents 127 and 121"):
        coltrain.unpack_mxint8(packed, 2, 32)
    ways: list[coltrain.Rounding | str] = [coltrain.Rounding.NEAREST, "nearest"]
    for rounding in ways:
        elements, scales = coltrain.unpack_mxint8(packed, 2, 32, rounding)
        assert scales[:, 0].tolist() == [0, 127]
        assert (elements[1, 0], elements[1, 16]) == (64, 2)  # 127/64 of a 64th


def test_it_is_refused() -> None:
    one, scale = np.ones((2, 40), dtype=np.int8), np.full((2, 2), 127, dtype=np.uint8)
    unused = one.copy()
    unused[1, 5] = -128
    with pytest.raises(coltrain.ArgumentError, match=r"element 45 \(row 1, column 5\) is -128"):
        coltrain.pack_mxint8(unused, scale)
    with pytest.raises(coltrain.ArgumentError, match="elements has 128, which is not within -128..127"):
        coltrain.pack_mxint8(one.astype(int) * 128, scale)
    with pytest.raises(coltrain.ArgumentError, match="scales has -1, which is not within 0..255"):
        coltrain.pack_mxint8(one, scale.astype(int) - 128)
    with pytest.raises(coltrain.ArgumentError, match="elements holds float64, but integers are needed"):
        coltrain.pack_mxint8(one * 1.0, scale)
    with pytest.raises(coltrain.ArgumentError, match=r"scales has the shape \(2, 1\), but \(2, 2\) is needed"):
        coltrain.pack_mxint8(one, scale[:, :1])
    with pytest.raises(coltrain.ArgumentError, match="which a matrix of 2 x 99 has not"):
        coltrain.unpack_mxint8(coltrain.pack_mxint8(one, scale), 2, 99)
    with pytest.raises(coltrain.ArgumentError, match="rounding is 'up'"):
        coltrain.unpack_mxint8(coltrain.pack_mxint8(one, scale), 2, 40, "up")
