# SPDX-License-Identifier: Apache-2.0
"""Data sets in .npz files: the same as in a folder of .npy files, and what is damaged."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import coltrain
import numpy as np
import numpy.typing as npt
import pytest

Arrays = dict[str, npt.NDArray[Any]]


def arrays(seed: int, names: tuple[str, ...], kind: str = "u1") -> Arrays:
    random = np.random.default_rng(seed)
    made: Arrays = {}
    for name in names:
        count = 9 if "test" in name else 40
        made[name] = random.integers(0, 3, count) if "y" in name else random.integers(0, 255, (count, 6, 5)).astype(kind)
    return made


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
@pytest.mark.parametrize("names", [("x_train", "y_train", "x_test", "y_test"), ("train_x", "train_y", "test_x", "test_y"), ("x", "y")])
def test_an_archive_is_like_a_folder(tmp_path: Path, seed: int, save: Callable[..., None], names: tuple[str, ...]) -> None:
    made = arrays(seed, names, "f4" if save is np.savez else "u1")
    save(tmp_path / "a.npz", unused=np.arange(3), **made)
    folder = tmp_path / "folder"
    folder.mkdir()
    for name, array in made.items():
        np.save(folder / f"{name}.npy", array)
    a, b = coltrain.load_dataset(tmp_path / "a.npz", seed), coltrain.load_dataset(folder, seed)
    assert (a.height, a.width, a.classes, len(a.train), len(a.test)) == (b.height, b.width, b.classes, len(b.train), len(b.test))
    for x, y in ((a.train, b.train), (a.test, b.test)):
        assert np.array_equal(x.pixels, y.pixels) and np.array_equal(x.labels, y.labels)


def test_what_is_wrong_with_an_archive(tmp_path: Path, seed: int) -> None:
    file = tmp_path / "a.npz"
    good = arrays(seed, ("x_train", "y_train", "x_test", "y_test"))

    def refused(sentence: str) -> None:
        with pytest.raises(coltrain.FormatError, match=sentence):
            coltrain.load_dataset(file)

    np.savez(file, x_train=good["x_train"])
    refused(r"a\.npz: has no y_train\.npy, the labels of x_train\.npy")
    np.savez(file, images=good["x_train"])
    refused("neither x_train.npy")
    np.savez(file, **{**good, "y_test": good["y_test"].astype("f4")})
    refused(r"a\.npz/y_test\.npy")
    np.savez(file, **good)
    data = file.read_bytes()
    file.write_bytes(data[:-40])
    refused(r"a\.npz: is a damaged or cut \.npz file")
    file.write_bytes(data.replace(good["x_train"].tobytes()[:64], bytes(64), 1))
    refused("damaged")  # the check sum
    file.write_bytes(b"no archive")
    refused("neither a data set")


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_mutants_are_read_or_refused(tmp_path: Path, seed: int, save: Callable[..., None]) -> None:
    file, random = tmp_path / "a.npz", np.random.default_rng(seed)
    made = arrays(seed, ("x", "y"))
    save(file, **made)
    good = file.read_bytes()
    refused = 0
    for _ in range(400):
        data = bytearray(good)
        # The directory at the end and the headers of members are what is believed.
        for at in random.integers(len(data) - 200 if random.random() < 0.6 else 0, len(data), random.integers(1, 4)):
            data[at] = random.integers(0, 256)
        file.write_bytes(data[: random.integers(1, len(data))] if random.random() < 0.1 else data)
        try:
            pixels = coltrain.load_dataset(file).train.pixels
            assert pixels.shape == (32, 30)
        except coltrain.FormatError as error:
            assert str(error)
            refused += 1
    assert refused > 200
