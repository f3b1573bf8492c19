# SPDX-License-Identifier: Apache-2.0
"""The ctypes declarations against a C compiler, which reads coltrain.h itself."""

from __future__ import annotations

import ctypes
import enum
import os
import subprocess
from pathlib import Path

import coltrain
import pytest
from coltrain import _abi
from conftest import TOP

STRUCTS = [t for t in vars(_abi).values() if isinstance(t, type) and issubclass(t, ctypes.Structure) and t is not ctypes.Structure]
ENUMS = [t for t in vars(_abi).values() if isinstance(t, type) and issubclass(t, enum.IntEnum) and t is not enum.IntEnum]
CONSTANTS = {n: v for n, v in vars(_abi).items() if n.startswith("CT_") and isinstance(v, int)}


def facts_of_python() -> list[str]:
    """Sizes, offsets and values, one a line, as Python has them."""
    facts = []
    for struct in STRUCTS:
        facts.append(f"{struct.__name__} {ctypes.sizeof(struct)}")
        for field in struct._fields_:
            descriptor = getattr(struct, field[0])
            facts.append(f"{struct.__name__}.{field[0]} {descriptor.offset} {descriptor.size}")
    return facts + [f"{name} {value}" for name, value in CONSTANTS.items()]


def program() -> str:
    """A C program that prints the same facts as its compiler has them."""
    out = ["#include <coltrain/coltrain.h>", "#include <stdio.h>", "int main(void) {"]
    for struct in STRUCTS:
        name = struct.__name__
        out.append(f'printf("{name} %zu\\n", sizeof(struct {name}));')
        for field in struct._fields_:
            member = f"offsetof(struct {name}, {field[0]}), sizeof(((struct {name} *)0)->{field[0]})"
            out.append(f'printf("{name}.{field[0]} %zu %zu\\n", {member});')
    for name, value in CONSTANTS.items():
        out.append(f'printf("{name} {"%lld" if value < 0 else "%llu"}\\n", ({"" if value < 0 else "unsigned "}long long){name});')
    return "\n".join([*out, "}", ""])


def test_layout_is_the_compilers(tmp_path: Path) -> None:
    (tmp_path / "facts.c").write_text(program())
    compiler = os.environ.get("CC", "cc")
    subprocess.run([compiler, "-std=c11", f"-I{TOP}/host/include", "-o", "facts", "facts.c"], cwd=tmp_path, check=True)
    printed = subprocess.run([tmp_path / "facts"], capture_output=True, text=True, check=True).stdout.splitlines()
    assert len(STRUCTS) > 10
    assert printed == facts_of_python()


def test_every_structure_and_enumeration_is_there() -> None:
    header = (TOP / "host/include/coltrain/coltrain.h").read_text()
    names = {line.split()[1] for line in header.splitlines() if line.startswith("struct ct_") and line.endswith("{")}
    assert names == {s.__name__ for s in STRUCTS}
    assert header.count("\nenum ct_") == len(ENUMS)


def test_values_of_enumerations(tmp_path: Path) -> None:
    """Names in C are those of Python behind a prefix, so the compiler can be asked for each."""
    prefixes = {
        "ErrorCode": "CT_ERR_",
        "LogLevel": "CT_LOG_",
        "Queue": "CT_",
        "EventKind": "CT_EVENT_",
        "Met": "CT_MET_",
        "Batching": "CT_BATCHING_",
        "Gradients": "CT_GRADIENTS_",
        "Sharing": "CT_",
        "Policy": "CT_",
    }
    asserts = ["#include <coltrain/coltrain.h>"]
    for kind in ENUMS:
        for member in kind:
            name = "CT_OK" if member.name == "OK" else prefixes[kind.__name__] + member.name
            asserts.append(f'_Static_assert({name} == {member.value}, "{name}");')
    (tmp_path / "values.c").write_text("\n".join(asserts) + "\n")
    command = [os.environ.get("CC", "cc"), "-std=c11", f"-I{TOP}/host/include", "-fsyntax-only", "values.c"]
    subprocess.run(command, cwd=tmp_path, check=True)


def test_each_code_has_a_class() -> None:
    for code in coltrain.ErrorCode:
        if code != coltrain.ErrorCode.OK:
            assert type(coltrain.errors.error_of(code, "text")).code == code
    with pytest.raises(coltrain.Error, match="text"):
        raise coltrain.errors.error_of(-999, "text")


def test_versions() -> None:
    assert coltrain.library_version() == coltrain.__version__
