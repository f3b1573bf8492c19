# SPDX-License-Identifier: Apache-2.0
"""Networks and their files: the same bytes, what NumPy reads, and what is damaged."""

from __future__ import annotations

import io
import zipfile
from pathlib import Path

import coltrain
import numpy as np
import pytest
from coltrain import Network


def test_a_network_and_its_file(tmp_path: Path, seed: int) -> None:
    network = Network.builtin("resnet8", seed=seed)
    network.save(tmp_path / "a.npz")
    back = Network.load(tmp_path / "a.npz")
    assert back.graph.pack() == network.graph.pack()
    assert list(back.values) == list(network.values)
    assert all(np.array_equal(back.values[n], network.values[n]) for n in network.values)
    back.save(tmp_path / "b.npz")
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
    with np.load(tmp_path / "a.npz") as file:  # NumPy reads it, too
        assert file["coltrain.graph"] == network.graph.pack()
        assert all(np.array_equal(file[n], v) for n, v in network.values.items())


def test_weights_alone(tmp_path: Path, seed: int) -> None:
    a, b = Network.builtin("lenet5", seed=seed), Network.builtin("lenet5", seed=seed + 1)
    np.savez_compressed(tmp_path / "w.npz", other=np.arange(3), **{n: v.astype(np.float64) for n, v in a.values.items()})
    b.load_values(tmp_path / "w.npz")
    assert all(np.array_equal(b.values[n], v) for n, v in a.values.items())
    a.save_values(tmp_path / "v.npz")
    assert coltrain.load_arrays(tmp_path / "v.npz").keys() == a.values.keys()
    with pytest.raises(coltrain.FormatError, match="has no graph"):
        Network.load(tmp_path / "v.npz")
    coltrain.save_arrays(tmp_path / "one.npz", {"conv1.weight": np.zeros(3)})
    with pytest.raises(coltrain.FormatError, match=r"no values for conv1\.bias"):
        b.load_values(tmp_path / "one.npz")


def test_wrong_values(seed: int) -> None:
    network = Network.builtin("lenet5", seed=seed)
    bad = network.values["fc1.weight"].copy()
    bad[3, 4] = np.nan
    with pytest.raises(coltrain.ArgumentError, match=r"fc1\.weight of node fc1 has NaN"):
        network.set({"fc1.weight": bad})
    with pytest.raises(coltrain.ArgumentError, match="no weight or state fc9"):
        network.set({"fc9": bad})
    with pytest.raises(coltrain.ArgumentError, match=r"fc1\.bias has the shape"):
        network.set({"fc1.bias": bad})
    with pytest.raises(coltrain.ArgumentError, match=r"no values for conv1\.weight, .* and others"):
        Network(coltrain.Graph.builtin("lenet5"), {})


def rewritten(data: bytes, member: str, content: bytes) -> bytes:
    """The archive with another content of one member."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data)) as old, zipfile.ZipFile(out, "w") as new:
        for info in old.infolist():
            new.writestr(info.filename, content if info.filename == member else old.read(info))
    return out.getvalue()


def npy(array: np.ndarray) -> bytes:  # type: ignore[type-arg]
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def test_damaged_files(tmp_path: Path, seed: int) -> None:
    file = tmp_path / "n.npz"
    Network.builtin("lenet5", seed=seed).save(file)
    good = file.read_bytes()
    giant = npy(np.zeros((6, 5, 5, 1), np.float32)).replace(b"(6, 5, 5, 1)", b"(6, 5, 5, 9)")
    pickled = npy(np.array([None, 1]))
    cases = [
        (good[:-30], "no .npz file"),
        (b"", "no .npz file"),
        (good.replace(b"TENS", b"TENT", 1), "CRC"),
        (rewritten(good, "coltrain.graph", b"TENS"), "its graph"),
        (rewritten(good, "conv1.weight.npy", giant), "size that does not fit its shape"),
        (rewritten(good, "conv1.weight.npy", b"no array"), "no array of NumPy"),
        (rewritten(good, "conv1.weight.npy", pickled), "holds object"),
        (rewritten(good, "conv1.weight.npy", npy(np.zeros((6, 5, 1, 5), np.float32))), "conv1.weight has the shape"),
        (rewritten(good, "conv1.weight.npy", npy(np.full((6, 5, 5, 1), np.inf))), "conv1.weight of node conv1 has NaN or infinity"),
    ]
    for data, sentence in cases:
        file.write_bytes(data)
        with pytest.raises(coltrain.FormatError, match=sentence):
            Network.load(file)
    with pytest.raises(coltrain.FileError, match=r"none\.npz: No such file"):
        Network.load(tmp_path / "none.npz")


def test_every_cut_and_flipped_byte_is_survived(tmp_path: Path, seed: int) -> None:
    file, random = tmp_path / "n.npz", np.random.default_rng(seed)
    graph = coltrain.Graph.mlp([3, 2], 1)
    Network(graph, graph.initial_values(seed)).save(file)
    good = file.read_bytes()
    for _ in range(300):
        data = bytearray(good)
        for at in random.integers(0, len(data), random.integers(1, 4)):
            data[at] ^= 1 << random.integers(0, 8)
        file.write_bytes(data[: random.integers(0, len(data)) if random.random() < 0.3 else None])
        try:
            Network.load(file)
        except coltrain.FormatError as error:
            assert str(error).startswith(str(file))
