# SPDX-License-Identifier: Apache-2.0
"""docs/python.md runs as it stands, and prints what it says."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path
from typing import Any

import pytest
from conftest import TOP

BLOCKS = re.findall(r"^```(python|text)\n(.*?)^```$", (TOP / "docs/python.md").read_text(), re.MULTILINE | re.DOTALL)


def run(blocks: list[tuple[str, str]]) -> list[tuple[str, str]]:
    """What each program printed and what stands behind it."""
    names: dict[str, Any] = {"__name__": "tutorial"}
    printed, pairs = "", []
    for kind, text in [*blocks, ("python", "")]:
        if kind == "text":
            pairs.append((printed, text))
            printed = ""
            continue
        assert not printed, f"docs/python.md does not show {printed!r}"
        with contextlib.redirect_stdout(io.StringIO()) as out:
            exec(compile(text, "docs/python.md", "exec"), names)
        printed = out.getvalue()
    return pairs


@pytest.mark.parametrize("uri", ["emu:", "sim:"])
def test_the_tutorial(uri: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = [(kind, text.replace("emu:", uri)) for kind, text in BLOCKS]
    if uri == "sim:":  # the emulator trains all five epochs; the simulator takes its file from there
        training = next(i for i, (_, text) in enumerate(blocks) if "load_dataset" in text)
        blocks[training] = BLOCKS[training]
    pairs = run(blocks)
    assert len(pairs) > 7
    for printed, written in pairs:
        assert printed == written


def test_ten_lines() -> None:
    assert any("load_dataset" in text and text.count("\n") == 10 for kind, text in BLOCKS if kind == "python")
