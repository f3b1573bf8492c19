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
from coltrain.experiments.fusion import BESIDE, MEMBERS, Fusion
from coltrain.experiments.fusion_nets import NETS, batches_of, graph_of
from coltrain.experiments.fusion_run import alone, beside, both, layers, measure, same
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
        assert graph["loss"].shape == (1,) and graph.macs >= graph_of(net, small=True).macs


def test_a_point(seed: int) -> None:
    """Of Adam, by kernels: members are in the same jobs, which are faster than jobs of their own."""
    one = measure("digits-adam", 1, "sim:", small=True)
    assert one["identical"] and one["beside"] == 1 and one["runs"] == one["batches"] == 4
    point = measure("digits-adam", 3, "sim:", small=True)
    assert point["identical"] and point["programs"] == 1 and point["runs"] == 2 and point["batches"] == 2 and point["beside"] == 3
    assert 0 < point["cycles_per_run"] < point["apart_cycles"] < 1.05 * one["cycles_per_run"] and 0 < point["busy"] < 1
    assert point["run_bytes"] == one["run_bytes"] > 0  # of members apart
    values = alone("digits-adam", True, 0, 1)
    other = {k: v.copy() for k, v in values.items()}
    assert same(values, other)
    next(iter(other.values())).flat[0] += np.float32(1e-3)
    assert not same(values, other)
    assert measure("digits", 1, "emu:", small=True, check=False)["cycles_per_run"] is None


def test_both_queues(seed: int) -> None:
    point = both("digits-adam", 3, "sim:", small=True)
    assert point["identical"] and point["runs"] == 8 and point["beside"] == 2
    assert 0 < point["cycles_per_run"] < 0.9 * measure("digits-adam", 3, "sim:", small=True, check=False)["apart_cycles"]


def test_layers(seed: int) -> None:
    found = layers("digits-adam", "sim:", small=True)
    assert [x["op"] for x in found[:4]] == ["conv", "conv", "conv", "softmax"]
    for x in found:
        assert x["bound"] >= 1 and x["busy"] <= x["cycles"] and x["regime"] in ("array", "memory", "vector unit", "latency")
    assert any(x["round"] for x in found)
    (whole,) = layers("digits", "sim:", small=True)
    assert whole["op"] == "step of a perceptron" and whole["round"] == 0


def test_requests_beside_members(seed: int) -> None:
    point = beside("digits-adam", 2, "sim:", small=True)
    assert point["requests"] == 20 and 0 < point["median_cycles"] <= point["p99_cycles"] <= point["most_cycles"] < 10000


def made(net: str, members: int, cycles: float, busy: float = 0.95) -> dict[str, Any]:
    figures = {"first_cycles": 2000, "whole_cycles": 10000, "cycles_per_run": cycles, "net": net, "members": members, "runs": 2}
    figures |= {"batch": 32, "jobs": 10, "apart_cycles": 1500.0, "beside": min(members, 8), "run_bytes": 500}
    layer = {"node": "fc1", "op": "conv", "cycles": 30, "busy": 20, "regime": "array", "bound": 1.5, "round": 2}
    return figures | {"programs": 1, "batches": 2, "bytes": 1000, "busiest": "VS", "busy": busy, "identical": True, "layers": [layer]}


def late(members: int, p99: float) -> dict[str, Any]:
    return {"net": "digits-adam", "members": members, "requests": 400, "median_cycles": 500.0, "p99_cycles": p99, "most_cycles": 900}


def test_summary(tmp_path: Path) -> None:
    e = Fusion(parser_of(Fusion).parse(["--out", str(tmp_path), "--launch", "1000"]))
    e.store.open()
    for net in NETS:
        for n in MEMBERS:
            e.store.save(e.point(net, n), made(net, n, 2000 if n == 1 else 1000))
            if n > 1:
                e.store.save(e.both(net, n), made(net, n, 800))
    for n in BESIDE:
        e.store.save(e.beside(n), late(n, 800.0 + n))
    s = e.summary()
    assert len(s["rows"]) == len(NETS) * len(MEMBERS) and len(s["layers"]) == len(NETS)
    row = s["rows"][1]
    assert (row["net"], row["members"], row["identical"]) == ("digits", 2, True)
    assert row["models_steps_per_mcycle"] == 1250 and row["together"] == 1000 and row["both_queues"] and row["serial_prefetched"] == 500 and row["interleaved"] == pytest.approx(1e6 / 1500)
    assert row["serial_host"] == pytest.approx(1e6 / 12000) and row["by_launch"]["0"] == 500 and row["over_prefetched"] == 2.5
    assert [t["held"] for t in s["targets"]] == [False, True, True, True, True]
    assert "15.00" in "\n".join(e.lines(s)) and "ResNet-8" in page_of(s) and e.wrong(s) == 0
    assert "together, both queues" in page_of(s)
    assert "together, both queues" not in page_of({**s, "rows": [{**r, "both_queues": False} for r in s["rows"]]})
    files = {f.name: f for f in datafiles.files_of(s)}
    cells = files["fusion"].cells("abc")[0]
    assert cells[:5] == ["digits", "1", "1000", "32", "10"] and len(cells) == len(files["fusion"].names()) + 1
    assert files["fusion-layers"].cells("abc")[0][:5] == ["digits", "0", "fc1", "conv", "30"]
    assert files["fusion-beside"].cells("abc")[1][:3] == ["digits-adam", "16", "400"]
    columns, rows = e.table(s)
    assert all(len(row) == len(columns) for row in rows)


def test_targets(tmp_path: Path) -> None:
    e = Fusion(parser_of(Fusion).parse(["--out", str(tmp_path)]))
    e.store.open()
    e.store.save(e.point("digits", 1), made("digits", 1, 1000))
    assert [t["held"] for t in e.summary()["targets"]] == [None] * 5
    e.store.save(e.point("digits", 8), made("digits", 8, 1100, busy=0.5))
    e.store.save(e.beside(1), late(1, 800))
    e.store.save(e.beside(16), late(16, 900))
    assert [t["held"] for t in e.summary()["targets"]] == [None, False, False, False, False]
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
