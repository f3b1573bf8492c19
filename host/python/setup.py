# SPDX-License-Identifier: Apache-2.0
"""Puts the built libraries into the package, so that an installed coltrain needs nothing from this tree.

What `make` has built is taken from build/ (or $BUILD): the libraries, and the plug-ins that are there. Without it, the libraries
alone are built first, which needs make and a C compiler; `sim:` is missing then.
"""

import os
import shutil
import subprocess
from pathlib import Path

from setuptools import Distribution, setup
from setuptools.command.build_py import build_py

try:
    from setuptools.command.bdist_wheel import bdist_wheel
except ImportError:  # setuptools before 70, as in Debian 12
    from wheel.bdist_wheel import bdist_wheel

TOP = Path(__file__).resolve().parents[2]
BUILD = TOP / os.environ.get("BUILD", "build")


class BuildWithLibraries(build_py):
    """build_py, and the shared libraries beside the modules."""

    def run(self) -> None:
        shutil.rmtree(self.build_lib, ignore_errors=True)  # or files of an earlier build would come along
        super().run()
        if self.editable_mode:  # the package finds the build tree by itself
            return
        needed = [BUILD / "lib" / name for name in ("libcoltrain.so", "libcoltrain-data.so")]
        if not all(file.exists() for file in needed):
            subprocess.run(["make", "-C", str(TOP), f"BUILD={BUILD}", *map(str, needed)], check=True)
        target = Path(self.build_lib) / "coltrain" / "lib"
        for file in sorted((BUILD / "lib").glob("libcoltrain*.so")) + sorted((BUILD / "lib" / "coltrain").glob("*.so")):
            copy = target / file.relative_to(BUILD / "lib")
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(file, copy)


class PlatformWheel(bdist_wheel):
    """Any Python 3, but this kind of machine: the package has shared libraries and no extension module."""

    def finalize_options(self) -> None:
        super().finalize_options()
        self.root_is_pure = False

    def get_tag(self) -> tuple[str, str, str]:
        return "py3", "none", super().get_tag()[2]


class BinaryDistribution(Distribution):
    def has_ext_modules(self) -> bool:
        return True


# What setuptools writes goes under build/, as everything does.
WORK = BUILD / "python"
WORK.mkdir(parents=True, exist_ok=True)
setup(
    cmdclass={"build_py": BuildWithLibraries, "bdist_wheel": PlatformWheel},
    distclass=BinaryDistribution,
    options={"build": {"build_base": str(WORK)}, "egg_info": {"egg_base": str(WORK)}},
)
