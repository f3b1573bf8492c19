# SPDX-License-Identifier: Apache-2.0
"""Labelled images, in the order in which the commands take them: the code that reads and shuffles is the commands' own.

    digits = coltrain.load_dataset("digits")
    for x, classes in digits.batches(32):
        model.step(x, classes)
"""

from __future__ import annotations

import ctypes
import functools
import os
from collections.abc import Iterator
from typing import Any

import numpy as np

from ._arrays import F32, U32, Bytes, address
from ._lib import load
from ._numbers import U63, U64, path_of, whole
from .errors import ArgumentError, FormatError

# Streams of random numbers (host/tools/data/ct_rand.h).
_BATCHES = 4
_WHY = 512


class ct_dataset_part(ctypes.Structure):
    """struct ct_dataset_part."""

    count: int
    pixels: ctypes._Pointer[ctypes.c_uint8]
    values: ctypes._Pointer[ctypes.c_float]
    labels: ctypes._Pointer[ctypes.c_uint8]

    _fields_ = [
        ("count", ctypes.c_size_t),
        ("pixels", ctypes.POINTER(ctypes.c_uint8)),
        ("values", ctypes.POINTER(ctypes.c_float)),
        ("labels", ctypes.POINTER(ctypes.c_uint8)),
    ]


class ct_dataset(ctypes.Structure):
    """struct ct_dataset."""

    height: int
    width: int
    channels: int
    features: int
    classes: int
    scale: float
    train: ct_dataset_part
    test: ct_dataset_part

    _fields_ = [
        ("height", ctypes.c_uint32),
        ("width", ctypes.c_uint32),
        ("channels", ctypes.c_uint32),
        ("features", ctypes.c_uint32),
        ("classes", ctypes.c_uint32),
        ("scale", ctypes.c_float),
        ("train", ct_dataset_part),
        ("test", ct_dataset_part),
    ]


class ct_rand(ctypes.Structure):
    """struct ct_rand."""

    _fields_ = [("s", ctypes.c_uint64 * 4)]


@functools.cache
def tools_library() -> Any:
    """The commands' own reader, random numbers and arrivals, libcoltrain-data.so."""
    library = load("libcoltrain-data.so")
    library.ct_dataset_open.argtypes = [
        ctypes.POINTER(ct_dataset),
        ctypes.c_char_p,
        ctypes.c_uint64,
        ctypes.c_size_t,
        ctypes.c_char_p,
        ctypes.c_size_t,
    ]
    library.ct_dataset_free.argtypes = [ctypes.POINTER(ct_dataset)]
    library.ct_rand_seed.argtypes = [ctypes.POINTER(ct_rand), ctypes.c_uint64, ctypes.c_uint64]
    library.ct_rand_shuffle.argtypes = [ctypes.POINTER(ct_rand), ctypes.c_void_p, ctypes.c_size_t]
    library.ct_arrivals_poisson.argtypes = [ctypes.c_uint64, ctypes.c_uint64, ctypes.c_void_p, ctypes.c_size_t]
    library.ct_arrivals_mean_q16.argtypes = [ctypes.c_uint64, ctypes.c_uint64, ctypes.c_uint32]
    library.ct_arrivals_mean_q16.restype = ctypes.c_uint64
    library.ct_dataset_free.restype = library.ct_rand_seed.restype = library.ct_rand_shuffle.restype = None
    return library


class Part:
    """The images that train, or those that test."""

    def __init__(self, pixels: Bytes | F32, labels: Bytes, scale: float) -> None:
        self.pixels = pixels
        """count x features: rows of pixels, channels innermost. uint8, or float32 where the files hold that"""
        self.labels: U32 = labels.astype(np.uint32)
        """count classes"""
        self._scale = np.float32(scale)

    def __len__(self) -> int:
        return len(self.labels)

    @functools.cached_property
    def x(self) -> F32:
        """Inputs of a model, count x features: pixels times a power of two, exact in FP32."""
        return self.values(slice(None))

    def values(self, which: Any) -> F32:
        """Inputs of the images that an index of NumPy chooses."""
        result: F32 = self.pixels[which].astype(np.float32) * self._scale
        return result


class Dataset:
    """Labelled images; :func:`coltrain.load_dataset` gives one."""

    def __init__(self, raw: ct_dataset, name: str, seed: int) -> None:
        self.name, self.seed = name, seed
        self.height, self.width, self.channels = raw.height, raw.width, raw.channels
        self.features, self.classes = raw.features, raw.classes
        self.train, self.test = _part(raw, raw.train), _part(raw, raw.test)

    def __repr__(self) -> str:
        size = f"{self.height}x{self.width}" + (f"x{self.channels}" if self.channels > 1 else "")
        return f"<coltrain.Dataset {self.name}: {len(self.train)} and {len(self.test)} images of {size}, {self.classes} classes>"

    def steps(self, batch: int) -> int:
        """Steps of an epoch with batches of that many rows: every image at least once."""
        if whole(batch, "batch") == 0:
            raise ArgumentError("batches of 0 rows: there are none")
        return -(-len(self.train) // batch)

    def order(self, epoch: int) -> U32:
        """The training images as an epoch (numbered from 0) takes them; it depends on seed and epoch alone."""
        order = np.arange(len(self.train), dtype=np.uint32)
        random = ct_rand()
        tools_library().ct_rand_seed(ctypes.byref(random), self.seed, whole(epoch, "epoch") << 32 | _BATCHES)
        tools_library().ct_rand_shuffle(ctypes.byref(random), address(order), order.size)
        return order

    def batches(self, batch: int, epoch: int = 0) -> Iterator[tuple[F32, U32]]:
        """The inputs (batch x features) and classes of each step of an epoch, as ``coltrain train`` takes them.

        The last batch is completed with the first images of the epoch.
        """
        steps, order = self.steps(batch), self.order(epoch)
        for step in range(steps):
            which = order[np.arange(step * batch, (step + 1) * batch) % order.size]
            yield self.train.values(which), self.train.labels[which]


def _part(raw: ct_dataset, part: ct_dataset_part) -> Part:
    shape = (part.count, raw.features)
    pixels: Bytes | F32 = np.ctypeslib.as_array(part.values if part.values else part.pixels, shape).copy()
    return Part(pixels, np.ctypeslib.as_array(part.labels, (part.count,)).copy(), raw.scale)


def load_dataset(name: str | os.PathLike[str] = "digits", seed: int = 1, samples: int = 0) -> Dataset:
    """A data set: ``digits`` (in this package), ``fashion-mnist`` (Debian's package dataset-fashion-mnist), a folder, or an .npz file.

    Folders hold IDX files as of MNIST, binary batches of CIFAR-10 or CIFAR-100, or arrays: x_train.npy, y_train.npy, x_test.npy and
    y_test.npy, or x.npy and y.npy, which are split (docs/cli.md); an .npz file has such arrays.
    seed: decides the order and, where there is one, the split.
    samples: at most so many training and so many test images, 0 for all. Raises
    :class:`FormatError` with a sentence about what is missing or wrong.
    """
    raw, why = ct_dataset(), ctypes.create_string_buffer(_WHY)
    what = path_of(name, "name"), whole(seed, "seed", U64), whole(samples, "samples", U63)
    if tools_library().ct_dataset_open(ctypes.byref(raw), *what, why, _WHY):
        raise FormatError(why.value.decode("utf-8", "replace"))
    try:
        return Dataset(raw, os.fspath(name), seed)
    finally:
        tools_library().ct_dataset_free(ctypes.byref(raw))
