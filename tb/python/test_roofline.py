# SPDX-License-Identifier: Apache-2.0
"""Rooflines: what verbs write has what they need, the figures are those of the core's counters, and nothing lies above the roof."""

from __future__ import annotations

import json
import lzma
import os
import subprocess
from pathlib import Path
from typing import Any

import coltrain
import numpy as np
import pytest
from beds import read_page
from coltrain import Queue
from coltrain.cli import Failure
from coltrain.reports import roofline
from coltrain.reports.report import pages
from coltrain.reports.roofline import PORT, Roof, Work, roof_of, why_none, works_of
from coltrain.reports.text import file_names, names_of
from conftest import TOP

COMMAND = str(TOP / os.environ.get("BUILD", "build") / "bin/coltrain")
DEVICES = ["sim:", "sim:core=16x8", "sim:bandwidth=4", "sim:core=16x8,stall=30,seed=3"]
RECORD = 272  # bytes of a packed tile of 16 x 16
Json = dict[str, Any]


def coltrain_verb(folder: Path, *args: str, device: str = "sim:") -> Path:
    path = folder / f"{args[0]}-{device.replace(':', '-')}.json"
    given = [] if args[0] == "bench" else ["--device", device]
    subprocess.run([COMMAND, *args, *given, "--json", str(path)], check=True, capture_output=True, text=True)
    return path


def product(folder: Path, n: int, device: str, *more: str) -> Json:
    rng = np.random.default_rng(n)
    for name in "ab":
        np.save(folder / f"{name}.npy", rng.standard_normal((n, n), dtype=np.float32))
    args = ("matmul", str(folder / "a.npy"), str(folder / "b.npy"), "-o", str(folder / "c.npy"), *more)
    found: Json = json.loads(coltrain_verb(folder, *args, device=device).read_text())
    return found


@pytest.mark.parametrize("device", DEVICES)
def test_a_product(tmp_path: Path, device: str) -> None:
    """Its multiply-accumulates are known, the bytes of its result, too; operands are read at least once."""
    n = 64
    r = product(tmp_path, n, device, "--queue", "training")
    (w,) = works_of(r)
    assert w.queue == "training" and not w.together and w.cycles == r["cycles"]
    assert w.macs == n**3 == r["macs"]
    assert w.written == 4 * n * n
    assert w.read >= 2 * (n // 16) ** 2 * RECORD
    assert w.rate / w.roof.macs == pytest.approx(r["utilisation"])
    assert w.rate <= w.limit
    assert w.roof.macs == (128 if "16x8" in device else 256)


def test_training_and_serving(tmp_path: Path) -> None:
    train = json.loads(coltrain_verb(tmp_path, "train", "--epochs", "1", "--samples", "96").read_text())
    (w,) = works_of(train)
    assert w.rate == pytest.approx(train["macs_per_cycle"])
    assert w.cycles == train["cycles"] and 0 < w.rate <= w.limit
    serve = json.loads(coltrain_verb(tmp_path, "serve-bench", "--requests", "200").read_text())
    (w,) = works_of(serve)
    # 64-128-64-10 are 68 rows of 16 x 16 for each request; what the batches of the capacity run did is not in it.
    assert w.macs == 200 * 68 * 256 and w.queue == "inference"
    assert w.rate <= w.limit


def test_both_queues(tmp_path: Path) -> None:
    r = json.loads(coltrain_verb(tmp_path, "counters").read_text())
    inference, training, both = works_of(r)
    assert inference.together and training.together and both.queue == "both"
    assert both.macs == inference.macs + training.macs == 2 * 64**3
    assert inference.read == PORT * r["inference"]["LD_BEATS"] and training.written == PORT * r["training"]["ST_BEATS"]


def test_products_of_the_bench(tmp_path: Path) -> None:
    limits = set()
    for bandwidth, stall in (("16", "0"), ("16", "25"), ("4", "0"), ("4", "25")):
        args = ("bench", "gemm", "--shape", "64x64x64", "--shape", "1x512x512", "--bandwidth", bandwidth, "--stall", stall)
        r = json.loads(coltrain_verb(tmp_path, *args).read_text())
        works = works_of(r)
        assert len(works) == len(r["products"]) == 2
        for w, p in zip(works, r["products"], strict=True):
            assert w.rate / 256 == pytest.approx(p["utilisation"], rel=1e-6)
            assert w.rate <= w.limit
        limits |= {w.limited_by for w in works}
    assert limits == {"array", "memory"}


def test_a_run_beside_training() -> None:
    with lzma.open(Path(__file__).parent / "data/run.json.xz") as file:
        r: Json = json.load(file)
    works = {w.name: w for w in works_of(r)}
    together, alone = works["training, while serving"], works["training alone"]
    assert together.rate == pytest.approx(r["train"]["macs_per_cycle"], rel=1e-6)
    assert alone.rate == pytest.approx(r["train_alone"]["macs_per_cycle"], rel=1e-5)
    assert works["both together"].macs == together.macs + works["serving, while training"].macs
    serving = works["serving alone"]
    assert serving.derived and serving.macs == 2000 * 68 * 256
    assert serving.cycles == max(r["series"]["alone"]["end"]) - r["series"]["alone"]["scheduled"][0]
    lost = r | {"series": {"alone": {"scheduled": [1, 2], "end": [5, None]}}}
    assert "serving alone" not in {w.name for w in works_of(lost)}


def test_requests_move_the_same_bytes_beside_training(seed: int) -> None:
    """What a report takes for granted where it shows serving alone."""
    counted = []
    rng = np.random.default_rng(seed)
    x = rng.standard_normal((8, 64), dtype=np.float32)
    for beside in (False, True):
        with coltrain.open("sim:") as device:
            model, other = device.model([64, 32, 10]), device.model([64, 32, 10], seed=2)
            other.training(16, 0.1)
            batch, rows, answers = other.batch(), model.rows(8), model.answers(8)
            batch.write(rng.standard_normal((16, 64), dtype=np.float32), np.arange(16) % 10)
            rows.write(x)
            weights = model.publish()
            before = device.counters(Queue.INFERENCE)
            steps = [other.step_submit(batch) for _ in range(4 if beside else 0)]
            futures = [model.infer_submit(rows, answers, row=i, answer=i, weights=weights) for i in range(8)]
            for f in [*futures, *steps]:
                f.result()
            after = device.counters(Queue.INFERENCE)
            counted.append({name: after[name] - before[name] for name in ("MXU_BUSY", "MXU_ROWS", "LD_BEATS", "ST_BEATS", "JOBS")})
    assert counted[0] == counted[1] and counted[0]["JOBS"] == 8


def test_where_there_is_none(tmp_path: Path) -> None:
    path = coltrain_verb(tmp_path, "train", "--epochs", "1", "--samples", "64", device="emu:")
    emu = json.loads(path.read_text())
    assert works_of(emu) == [] and emu["time"] is None
    text = read_page(pages([str(path)])).text
    assert "There is no roofline: emu: computes the same bits as the hardware but has no time" in text
    old = {k: v for k, v in emu.items() if k not in ("array", "time")} | {"device": "sim:"}
    assert works_of(old) == [] and "earlier versions" in why_none(old)
    assert "was stopped before" in why_none({"device": "sim:", "stopped": True, "array": [16, 16], "time": None})


def test_roofs() -> None:
    assert roof_of("sim:", [16, 16]) == Roof(256, 16)
    assert roof_of("sim:bandwidth=0x8,seed=2", [16, 8]) == Roof(128, 8)
    assert roof_of("sim:stall=50", [16, 16]).bytes == 8
    assert roof_of("mmio:/dev/uio0,mem=bandwidth=1", [16, 16]).bytes == 16
    only_reads = Work("", "inference", False, 100, 1600, 1600, 0, Roof(256, 16))
    assert only_reads.memory == 16 and only_reads.limit == only_reads.rate == 16 and only_reads.limited_by == "memory"
    even = Work("", "inference", False, 100, 1600, 800, 800, Roof(256, 16))
    assert even.memory == 32 and even.intensity == only_reads.intensity


def test_names_of_points_hide_nothing() -> None:
    points = [(100.0 + 3 * i, 50.0) for i in range(5)]
    names = [str(i) for i in range(5)]
    at = roofline._places(points, names)
    assert len(set(at)) == 5
    for i, (x, y) in enumerate(at):
        assert all(abs(x - a) > 7 or abs(y - b) > 7 for a, b in points)
        assert all(abs(x - a) >= 8 or abs(y - b) >= 12 for k, (a, b) in enumerate(at) if k != i)


# ---- Pages of these verbs ----


def test_pages_of_verbs(tmp_path: Path) -> None:
    train = coltrain_verb(tmp_path, "train", "--epochs", "2", "--samples", "64")
    small = coltrain_verb(tmp_path, "train", "--epochs", "2", "--samples", "64", device="sim:core=16x8")
    emu = coltrain_verb(tmp_path, "train", "--epochs", "2", "--samples", "64", device="emu:")
    serve = coltrain_verb(tmp_path, "serve-bench", "--requests", "200", "--batching", "adaptive", "--deadline", "1")
    for path, parts in (
        (train, ["Training", "Does it learn?", "How near to the roof?", "1: training", "Where do the cycles go?"]),
        (serve, ["Serving in batches", "180 of 180", "requests a second, in time 0", "How large were the batches?"]),
    ):
        text = read_page(pages([str(path)])).text
        for part in parts:
            assert part in text, part
    text = read_page(pages([str(train), str(small), str(emu)])).text
    for part in ("The runs differ in device", "device sim:core=16x8, training", "device emu: There is no roofline", "right answers"):
        assert part in text, part
    subprocess.run([COMMAND, "report", str(emu), "-o", str(tmp_path / "x.html")], check=True)
    with pytest.raises(Failure, match=r"is of coltrain serve-bench.*only runs of one verb"):
        pages([str(train), str(serve)])


def test_names_of_runs() -> None:
    assert file_names(["a/run.json", "b/run.json"]) == ["a/run", "b/run"]
    assert file_names(["x/a/run.json", "y/a/run.json", "other.json"]) == ["x/a/run", "y/a/run", "other"]
    assert file_names(["run.json", "./run.json"]) == ["run", "run (2)"]
    assert file_names(["/run.json", "/a/run.json"]) == ["run", "a/run"]
    same = {"policy": "job", "seed": "1"}
    assert names_of(["old/run.json", "new/run.json"], [same, same])[0] == ["old/run", "new/run"]
    names, shared, differ = names_of(["a.json", "b.json"], [same, same | {"policy": "fcfs"}])
    assert (names, shared, differ) == (["policy job", "policy fcfs"], [("seed", "1")], ["policy"])
    names, _, _ = names_of(["a.json", "b.json", "c.json"], [same, same, same | {"seed": "2"}])
    assert names == ["a: seed 1", "b: seed 1", "c: seed 2"]
