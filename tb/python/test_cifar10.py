# SPDX-License-Identifier: Apache-2.0
"""scripts/cifar10 on a tiny made-up package: each byte in its place, the way to load_dataset(), nothing written where anything is wrong."""

from __future__ import annotations

import hashlib
import importlib.machinery
import importlib.util
import json
import os
import subprocess
import sys
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import coltrain

Image = pytest.importorskip("PIL.Image", reason="Pillow is not installed (Debian's package python3-pil)")
TOP = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def script() -> Any:
    loader = importlib.machinery.SourceFileLoader("cifar10", str(TOP / "scripts/cifar10"))
    spec = importlib.util.spec_from_loader("cifar10", loader)
    assert spec
    module = importlib.util.module_from_spec(spec)
    sys.modules["cifar10"] = module
    sys.dont_write_bytecode, before = True, sys.dont_write_bytecode
    loader.exec_module(module)
    sys.dont_write_bytecode = before
    return module


class Made:
    """A package of two training batches and a test batch, and what must come of it."""

    def __init__(self, script: Any, folder: Path, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.folder = folder
        folder.mkdir()
        labels = {"train_lables.json": rng.integers(0, 10, 7).tolist(), "test_lables.json": rng.integers(0, 10, 2).tolist()}
        for file, content in labels.items():
            (folder / file).write_text(json.dumps(content))
        self.files: dict[str, bytes] = {}
        self.batches = []
        self.images: dict[str, Any] = {}
        train, test = labels
        for name, file, first, count in (("data_batch_1", train, 0, 4), ("data_batch_2", train, 4, 3), ("test_batch", test, 0, 2)):
            image = rng.integers(0, 256, (count, 32, 32, 3), dtype=np.uint8)
            Image.fromarray(image.reshape(count, 1024, 3)).save(folder / f"{name}.png")
            data = b"".join(
                bytes([labels[file][first + n]]) + b"".join(image[n, :, :, c].tobytes() for c in range(3)) for n in range(count)
            )
            self.files[f"{name}.bin"], self.images[name] = data, image
            self.batches.append(script.Batch(name, hashlib.md5(data).hexdigest(), file, first, count))
        self.labels = labels


@pytest.fixture
def made(script: Any, tmp_path: Path, seed: int) -> Made:
    return Made(script, tmp_path / "unpacked", seed)


def test_every_byte(script: Any, made: Made, tmp_path: Path) -> None:
    out = tmp_path / "deep" / "out"
    script.rebuild(made.folder, out, made.batches)
    assert {f.name: f.read_bytes() for f in out.iterdir()} == made.files


def test_the_way_to_load_dataset(script: Any, made: Made, tmp_path: Path) -> None:
    script.rebuild(made.folder, tmp_path / "out", made.batches)
    data = coltrain.load_dataset(tmp_path / "out")
    assert (data.height, data.width, data.channels, data.features, data.classes) == (32, 32, 3, 3072, 10)
    assert "32x32x3" in repr(data)
    train, test = made.labels
    for part, names, file in ((data.train, ["data_batch_1", "data_batch_2"], train), (data.test, ["test_batch"], test)):
        images = np.concatenate([made.images[n] for n in names]).reshape(-1, 3072)
        want = sorted((image.tobytes(), label) for image, label in zip(images, made.labels[file], strict=True))
        assert sorted((image.tobytes(), int(label)) for image, label in zip(part.pixels, part.labels, strict=True)) == want
        assert np.array_equal(part.x, part.pixels / np.float32(256))


def test_packages_as_npm_makes_them(script: Any, made: Made, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "p.tgz", "w:gz") as archive:
        archive.add(made.folder, "package")
    with script.opened(tmp_path / "p.tgz") as package:
        script.rebuild(package, tmp_path / "out", made.batches)
    assert len(list((tmp_path / "out").iterdir())) == 3
    assert not package.exists()
    (tmp_path / "p.tgz").write_bytes((tmp_path / "p.tgz").read_bytes()[:-200])
    with pytest.raises(script.Wrong, match=r"p\.tgz is no package of npm"), script.opened(tmp_path / "p.tgz"):
        pass


def spoil_labels(made: Made, text: str) -> None:
    (made.folder / "train_lables.json").write_text(text)


def spoil_image(made: Made, how: str) -> None:
    file = made.folder / "data_batch_2.png"
    if how == "cut":
        file.write_bytes(file.read_bytes()[:-300])
    elif how == "pixel":
        image = np.asarray(Image.open(file)).copy()
        image[1, 500, 2] ^= 1
        Image.fromarray(image).save(file)
    else:
        Image.open(file).convert(how).save(file)


@pytest.mark.parametrize(
    ("spoil", "sentence"),
    [
        (lambda m: spoil_image(m, "pixel"), r"data_batch_2\.bin would have the MD5 sum .* is the published one; nothing was written"),
        (lambda m: spoil_image(m, "cut"), r"data_batch_2\.png cannot be read"),
        (lambda m: spoil_image(m, "L"), r"data_batch_2\.png is PNG, L, 1024x3; a PNG file of RGB, 1024x3, is needed"),
        (lambda m: (m.folder / "data_batch_2.png").unlink(), r"data_batch_2\.png cannot be read: .*No such file"),
        (lambda m: spoil_labels(m, json.dumps(m.labels["train_lables.json"][:-1])), r"train_lables\.json has 6 labels, but 7 are needed"),
        (lambda m: spoil_labels(m, "[1, 2, 3, 4, 5, 6, 10]"), r"train_lables\.json is no list of labels, which are 0\.\.9"),
        (lambda m: spoil_labels(m, "[1, 2"), r"train_lables\.json cannot be read"),
    ],
)
def test_nothing_is_written(script: Any, made: Made, tmp_path: Path, spoil: Any, sentence: str) -> None:
    spoil(made)
    with pytest.raises(script.Wrong, match=sentence):
        script.rebuild(made.folder, tmp_path / "out", made.batches)
    assert list((tmp_path / "out").iterdir()) == []


def test_the_command(tmp_path: Path) -> None:
    """What is said without npm, and of a package that is none."""
    run = [sys.executable, str(TOP / "scripts/cifar10"), str(tmp_path / "out")]
    environment = {**os.environ, "PATH": str(tmp_path)}
    cases: list[tuple[list[str], str]] = [([], "npm is not installed"), (["--package", "nothing.tgz"], "nothing.tgz is no package of npm")]
    for more, sentence in cases:
        done = subprocess.run([*run, *more], env=environment, capture_output=True, text=True, check=False)
        assert done.returncode == 1 and sentence in done.stderr and done.stderr.count("\n") == 1
    assert not (tmp_path / "out").exists()
