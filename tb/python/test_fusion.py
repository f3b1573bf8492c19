# SPDX-License-Identifier: Apache-2.0
"""`coltrain experiment fusion`: its networks, a point of it on a simulated core, what the summary says."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import coltrain
import numpy as np
import pytest
from coltrain.experiments import datafiles
from coltrain.experiments.common import parser_of
from coltrain.experiments.fusion import MEMBERS, Fusion, targets_of
from coltrain.experiments.fusion_nets import NETS, batches_of, graph_of
from coltrain.experiments.fusion_run import alone, as_model, measure, same
from coltrain.reports.experiment import page_of
from conftest import TOP

COMMAND = str(TOP / os.environ.get("BUILD", "build") / "bin/coltrain")


@pytest.mark.parametrize("net", NETS)
def test_networks_train(net: str, seed: int) -> None:
    """A step on the device lowers the loss of the same batch, and has the gradients of the reference."""
    graph = graph_of(net, small=True)
    graph.optimise("loss", 0.001)
    feed = batches_of(graph, seed)
    with coltrain.open("emu:") as device, device.compile(graph) as network:
        network.draw(3)
        before = network.values()
        first = float(network.run(feed(0), ["loss"])["loss"][0])
        assert float(network.run(feed(0), ["loss"], step=1)["loss"][0]) < first
        want = float(graph.run({**before, **feed(0)}, ["loss"])["loss"][0])
        assert first == pytest.approx(want, rel=0.1)


def test_full_networks_fit() -> None:
    for net in NETS:
        graph = graph_of(net, small=False)
        assert graph["loss"].shape == (1,) and graph.macs > graph_of(net, small=True).macs


def test_a_point(seed: int) -> None:
    point = measure("digits", 3, "sim:", small=True)
    assert point["identical"] and point["programs"] == 1 and point["runs"] == 3 and point["batches"] == 3
    assert 0 < point["cycles_per_run"] <= point["whole_cycles"] and 0 < point["busy"] < 1
    values = alone("digits", True, 0, 1)
    other = {k: v.copy() for k, v in values.items()}
    assert same(values, other)
    next(iter(other.values())).flat[0] += np.float32(1e-3)
    assert not same(values, other)
    assert measure("digits", 1, "emu:", small=True, check=False)["cycles_per_run"] is None
    assert 0 < (as_model("digits", "sim:", small=True) or 0) < point["cycles_per_run"]


def made(net: str, members: int, cycles: float, busy: float = 0.95) -> dict[str, Any]:
    figures = {"first_cycles": 2000, "whole_cycles": 10000, "cycles_per_run": cycles, "net": net, "members": members, "runs": 2}
    figures |= {"batch": 32, "jobs": 10, "model_cycles": None}
    return figures | {"programs": 1, "batches": 2, "bytes": 1000, "busiest": "VS", "busy": busy, "identical": True}


def test_summary(tmp_path: Path) -> None:
    e = Fusion(parser_of(Fusion).parse(["--out", str(tmp_path), "--launch", "1000"]))
    e.store.open()
    for net in NETS:
        for n in MEMBERS:
            e.store.save(e.point(net, n), made(net, n, 2000 if n == 1 else 1000))
    s = e.summary()
    assert len(s["rows"]) == len(NETS) * len(MEMBERS)
    row = s["rows"][1]
    assert (row["net"], row["members"], row["identical"]) == ("digits", 2, True)
    assert row["models_steps_per_mcycle"] == row["interleaved"] == 1000 and row["serial_prefetched"] == 500
    assert row["serial_host"] == pytest.approx(1e6 / 12000) and row["by_launch"]["0"] == 500 and row["over_prefetched"] == 2
    assert [t["held"] for t in s["targets"]] == [False, True, True, True]
    e.store.save(e.point("digits", 1), made("digits", 1, 2000) | {"model_cycles": 500.0})
    faster = e.summary()["rows"][1]
    assert (faster["serial_prefetched"], faster["of_graph"], faster["over_prefetched"]) == (2000, 500, 0.5)
    e.store.save(e.point("digits", 1), made("digits", 1, 2000))
    assert "12.00" in "\n".join(e.lines(s)) and "ResNet-8" in page_of(s) and e.wrong(s) == 0
    (file, _) = datafiles.files_of(s)
    assert file.cells("abc")[0][:5] == ["digits", "1", "1000", "32", "10"] and len(file.cells("abc")[0]) == len(file.names()) + 1
    columns, rows = e.table(s)
    assert all(len(row) == len(columns) for row in rows)


def test_targets(tmp_path: Path) -> None:
    e = Fusion(parser_of(Fusion).parse(["--out", str(tmp_path)]))
    e.store.open()
    e.store.save(e.point("digits", 1), made("digits", 1, 1000))
    assert [t.held for t in targets_of(e.summary()["rows"])] == [None, None, None, None]
    e.store.save(e.point("digits", 8), made("digits", 8, 1100, busy=0.5))
    held = [t.held for t in targets_of(e.summary()["rows"])]
    assert held == [None, False, False, False]
    e.store.save(e.point("digits", 8), made("digits", 8, 1100) | {"identical": False})
    assert e.wrong(e.summary()) == 1


def test_the_command(tmp_path: Path) -> None:
    out = tmp_path / "fusion"
    run = [COMMAND, "experiment", "fusion", "--quick", "--out", str(out), "--only", "digits-[12]", "--json", str(tmp_path / "s.json")]
    done = subprocess.run(run, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    rows = json.loads((tmp_path / "s.json").read_text())["rows"]
    assert [(r["net"], r["members"], r["identical"]) for r in rows] == [("digits", 1, True), ("digits", 2, True)]
    assert {"models_steps_per_mcycle", "serial_host", "serial_prefetched", "interleaved"} <= rows[0].keys()
    again = subprocess.run(run, capture_output=True, text=True, check=False)
    assert again.returncode == 0 and "points" not in again.stderr
