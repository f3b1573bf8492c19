# SPDX-License-Identifier: Apache-2.0
"""`pip install ./host/python`, without the network, into an environment that has Debian's packages."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

from conftest import TOP

PROGRAM = """
import coltrain, os
assert os.path.dirname(coltrain.__file__).startswith(os.environ["HOME"]), coltrain.__file__
for uri in ("emu:", "sim:core=16x8"):
    with coltrain.open(uri) as device:
        assert device.matmul([[1, 2]], [[3], [4]]) == 11
print(coltrain.load_dataset(), coltrain.library_version())
"""


def test_the_installed_package_needs_nothing_of_the_tree(tmp_path: Path) -> None:
    venv = tmp_path / "venv"
    own = ["--without-pip"] if importlib.util.find_spec("pip") else []  # which is seconds of a core
    subprocess.run([sys.executable, "-m", "venv", "--system-site-packages", *own, venv], check=True)
    before = set((TOP / "host/python").iterdir())
    command = [str(venv / "bin/python"), "-m", "pip", "install", "--quiet", "--no-index", "--no-build-isolation", str(TOP / "host/python")]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert set((TOP / "host/python").iterdir()) == before, "the installation left files in the tree"
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("PYTHON", "COLTRAIN", "BUILD"))} | {"HOME": str(tmp_path)}
    done = subprocess.run([venv / "bin/python", "-c", PROGRAM], cwd=tmp_path, env=clean, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "1437 and 360 images" in done.stdout


def test_a_library_that_is_not_there_is_said(tmp_path: Path) -> None:
    environment = {**os.environ, "COLTRAIN_LIBRARY": str(tmp_path / "libcoltrain.so"), "PYTHONPATH": str(TOP / "host/python")}
    done = subprocess.run([sys.executable, "-c", "import coltrain"], env=environment, capture_output=True, text=True)
    assert done.returncode == 1 and "run `make` in Coltrain's tree" in done.stderr
