# SPDX-License-Identifier: Apache-2.0
"""`coltrain experiment memory`: points of tiny sizes, what the summary says; networks that keep their activations compressed."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import coltrain
import numpy as np
import pytest
from coltrain.experiments import datafiles, memory_run
from coltrain.experiments.common import parser_of
from coltrain.experiments.memory import Memory, targets_of
from coltrain.experiments.memory_run import Setup, measure, two_bits
from coltrain.experiments.memory_ways import NETS, WAYS
from coltrain.reports.experiment import page_of
from conftest import TOP

COMMAND = str(TOP / os.environ.get("BUILD", "build") / "bin/coltrain")


def point_of(keep: str, net: str = "vgg") -> dict[str, Any]:
    return measure(Setup(net, keep, 1, 2, 6, "random-28x28x1" if net == "lenet5" else "random-32x32x3", "emu:"))


def test_points() -> None:
    raw, exact, close = point_of("hbfp8"), point_of("hbfp8-mask"), point_of("s=0.1")
    assert raw["loss"] == exact["loss"] and raw["accuracy"] == exact["accuracy"]  # nothing is lost
    assert raw["bits_per_value"] == 8.5 and raw["pages_bytes"] == 0 and raw["steps"] == 3
    assert exact["pages_bytes"] > close["pages_bytes"] > 0 and exact["run_bytes"] < raw["run_bytes"]
    assert all(k["bound"] == 0 for k in exact["kept"]) and any(k["bound"] > 100 for k in close["kept"])
    assert close["ratio_fp32"] > exact["ratio_fp32"] > 32 / 12
    masked = point_of("s=0.1-mask")
    assert {k["tensor"] for k in masked["kept"] if k["exact"]} and all(k["bound"] == 0 for k in masked["kept"] if k["exact"])
    assert masked["kept_values"] == sum(k["values"] for k in masked["kept"] if not k["beside"]) > 0
    lenet5 = point_of("s=0.1", "lenet5")  # two images; padding of six channels to sixteen is none of its numbers
    assert [k["values"] for k in lenet5["kept"] if k["tensor"] == "conv1"] == [2 * 6 * 28 * 28]
    assert point_of("fp32")["run_bytes"] > raw["run_bytes"] >= point_of("recompute")["run_bytes"]


def test_two_bits(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = np.maximum(rng.standard_normal((30, 17)), 0)
    y = two_bits(x, rng)
    groups = np.zeros(512)
    groups[:510] = x.ravel()
    assert y.shape == x.shape and len(np.unique(y.ravel()[:256])) <= 4
    assert np.abs(y - x).max() <= groups.max() / 3 * 1.02
    means = np.mean([two_bits(x, rng) for _ in range(400)], axis=0)
    assert np.abs(means - x).max() < 0.15  # rounding at random has no bias


def test_two_bits_are_not_evaluated(monkeypatch: pytest.MonkeyPatch) -> None:
    """What was trained is FP32's, whose accuracy and step are another point's."""
    for name in ("accuracy", "step_of"):
        monkeypatch.delattr(memory_run, name)
    assert 0 < point_of("actnn2")["relative_error"] < 1


def test_kept_by_hand() -> None:
    graph = coltrain.Graph.builtin("vgg", 2, training=True)
    graph.optimise("loss", 0.01, momentum=0.9)
    assert graph.keep("activation", "compressed") > 5
    feed = {"x": np.ones(graph["x"].shape, np.float32), "y": np.eye(10, dtype=np.float32)[[1, 2]]}
    with coltrain.open("emu:") as device, device.compile(graph, error=0.1, bits=12, refresh=2) as network:
        network.draw(1)
        assert all(k.bound == 0 and k.bytes == 0 for k in network.kept)
        lossy = next(i for i, k in enumerate(network.kept) if not k.exact)
        network.keep_within(lossy, 200)
        assert network.kept[lossy].bound == 200
        network.run(feed, [])
        assert network.info.pages >= network.info.pages_most > 0 and all(k.bytes > 0 for k in network.kept)
        with pytest.raises(coltrain.ArgumentError):
            network.keep_within(lossy, 255)
    with coltrain.open("emu:compress=0") as device, pytest.raises(coltrain.UnsupportedError, match="compressed"):
        device.compile(graph)


def made(keep: str, bits: float | None, peak: float | None) -> dict[str, Any]:
    figures = {"bits_per_value": bits, "ratio_fp32": 32 / bits if bits else None, "peak_bytes": peak, "reserved_bytes": peak, "accuracy": 0.5, "loss": 2.0, "steps": 3}
    return figures | {"run_bytes": peak, "pages_bytes": 0, "dram_bytes": 1000, "cycles": None, "relative_error": None} | {"deviation_own": 0.7, "deviation_others": 3.0}


def test_summary(tmp_path: Path) -> None:
    e = Memory(parser_of(Memory).parse(["--out", str(tmp_path)]))
    e.options.seeds = 1
    e.store.open()
    for net in NETS:
        for keep in WAYS:
            bits, peak = {"s=0.1": (2.0, 100.0), "hbfp8": (8.5, 400.0), "hbfp8-mask": (4.0, 300.0)}.get(keep, (8.0, 300.0))
            e.store.save(e.point(net, keep, 1), made(keep, bits, None if keep == "actnn2" else peak))
    s = e.summary()
    assert len(s["rows"]) == len(NETS) * len(WAYS)
    assert {"net", "keep", "bits_per_value", "ratio_fp32", "peak_bytes", "accuracy"} <= s["rows"][0].keys()
    assert [t["held"] for t in s["targets"]] == [True, True, True, None, True, False]
    assert [t.held for t in targets_of(s["rows"][:3])] == [None] * 6
    page = page_of(s)
    assert "16.00" in "\n".join(e.lines(s)) and "ResNet-8" in page and e.wrong(s) == 0
    assert all(page.count(f">{keep}</text>") == 2 * len(NETS) for keep in WAYS if keep != "actnn2")  # below its bar, wide and narrow
    (file, _) = datafiles.files_of(s)
    assert len(file.cells("abc")) == len(s["rows"]) and len(file.cells("abc")[0]) == len(file.names()) + 1
    columns, rows = e.table(s)
    assert all(len(row) == len(columns) for row in rows)


def rows_of(**accuracies: list[float]) -> list[dict[str, Any]]:
    ways = {"hbfp8": accuracies["raw"], "s=0.1": accuracies["close"]}
    base = {"ratio_fp32": None, "reserved_bytes": None, "bits_per_value": None}
    return [{"net": net, "keep": keep, "accuracies": found, **base} for net in NETS for keep, found in ways.items()]


def test_accuracy_within_noise() -> None:
    def held(raw: list[float], close: list[float]) -> bool | None:
        return targets_of(rows_of(raw=raw, close=close))[3].held

    assert held([0.80, 0.82, 0.84], [0.79, 0.81, 0.84]) is True
    assert held([0.80, 0.82, 0.84], [0.70, 0.72, 0.74]) is False
    assert held([0.80], [0.80]) is None


def test_what_must_be_the_same(tmp_path: Path) -> None:
    e = Memory(parser_of(Memory).parse(["--out", str(tmp_path)]))
    e.options.seeds = 1
    e.store.open()
    for keep, loss in (("hbfp8", 2.0), ("recompute", 2.0), ("hbfp8-mask", 2.5), ("s=0.1", 3.0)):
        e.store.save(e.point("vgg", keep, 1), made(keep, 8.0, 300.0) | {"loss": loss})
    assert e.wrong(e.summary()) == 1


def test_deviations() -> None:
    """Bounds do what the formula says: a power of two, rounded down, is more than half of what is allowed."""
    for keep in ("s=0.1", "s=0.1-mask"):
        figures = measure(Setup("lenet5", keep, 1, 16, 320, "random-28x28x1", "emu:"))
        own = {(d["tensor"], d["weight"]): d["deviation"] for d in figures["deviations"] if d["made_of_it"]}
        assert set(own) == {("pool1", "conv2.weight"), ("pool2", "fc1.weight"), ("fc1", "fc2.weight"), ("fc2", "logits.weight")}
        assert all(0.3 < d < 1.2 for d in own.values()), own
        assert figures["deviation_own"] == max(own.values())
        assert figures["reserved_bytes"] >= figures["peak_bytes"]
        if WAYS[keep].masks:
            assert figures["deviation_others"] is None  # no gate is another one
        else:
            assert figures["deviation_others"] > 1


def test_the_command(tmp_path: Path) -> None:
    out = tmp_path / "memory"
    run = [COMMAND, "experiment", "memory", "--images", "16", "--out", str(out), "--only", "vgg-hbfp8*", "--json", str(tmp_path / "s.json")]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "s.json").read_text())["rows"]
    assert [(r["net"], r["keep"]) for r in rows] == [("vgg", "hbfp8"), ("vgg", "hbfp8-mask")]
    again = subprocess.run(run, capture_output=True, text=True, check=False)
    assert again.returncode == 0 and "vgg-hbfp8-1" not in again.stderr
