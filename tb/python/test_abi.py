# SPDX-License-Identifier: Apache-2.0
"""The ctypes declarations against a C compiler, which reads the headers themselves."""

from __future__ import annotations

import ctypes
import enum
import os
import subprocess
from pathlib import Path

import coltrain
import pytest
from coltrain import _abi, data
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
    out = ["#include <coltrain/coltrain.h>", "#include <coltrain/graph.h>", "#include <coltrain/network.h>", "#include <coltrain/array.h>", "#include <coltrain/network.h>"]
    out += ["#include <stdio.h>", "int main(void) {"]
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


def test_layout_of_data_sets(tmp_path: Path) -> None:
    """Three structures of host/tools are written by hand in data.py."""
    asserts = ["#include <stddef.h>", '#include "ct_dataset.h"', '#include "ct_rand.h"']
    for struct in (data.ct_dataset_part, data.ct_dataset, data.ct_rand):
        asserts.append(f'_Static_assert(sizeof(struct {struct.__name__}) == {ctypes.sizeof(struct)}, "size");')
        for field in struct._fields_:
            offset = getattr(struct, field[0]).offset
            asserts.append(f'_Static_assert(offsetof(struct {struct.__name__}, {field[0]}) == {offset}, "{field[0]}");')
    asserts.append(f'_Static_assert(CT_RAND_STREAM_BATCHES == {data._BATCHES} && CT_DATASET_WHY == {data._WHY}, "constants");')
    (tmp_path / "data.c").write_text("\n".join(asserts) + "\n")
    folders = {f"-I{file.parent}" for file in (TOP / "host/tools").rglob("ct_*.h")}
    command = [os.environ.get("CC", "cc"), "-std=c11", *folders, "-fsyntax-only", "data.c"]
    subprocess.run(command, cwd=tmp_path, check=True)


def test_every_structure_and_enumeration_is_there() -> None:
    header = "".join(file.read_text() for file in sorted((TOP / "host/include/coltrain").glob("*.h")))
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
        "Gradients": "CT_GRADIENTS_",
        "Met": "CT_MET_",
        "Batching": "CT_BATCHING_",
        "Sharing": "CT_",
        "Rounding": "CT_",
        "Policy": "CT_",
        "Format": "CT_FORMAT_",
        "Role": "CT_ROLE_",
        "Initial": "CT_INITIAL_",
        "ScheduleKind": "CT_SCHEDULE_",
        "Optimiser": "CT_OPTIMISER_",
        "MemberState": "CT_MEMBER_",
        "Masks": "CT_MASKS_",
    }
    asserts = ["#include <coltrain/coltrain.h>", "#include <coltrain/graph.h>", "#include <coltrain/array.h>", "#include <coltrain/network.h>"]
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


def test_every_function_has_a_call_in_python() -> None:
    """What the library can do, the package can: a new function fails here until it is wrapped."""
    instead = {"ct_open": "ct_open_with", "ct_version_number": "ct_version"}
    sources = "".join(f.read_text() for f in sorted((TOP / "host/python/coltrain").glob("*.py")) if f.name != "_abi.py")
    missing = {name for name in _abi.FUNCTIONS if f"lib.{instead.get(name, name)}" not in sources}
    assert not missing


def test_public_names_have_docstrings_and_types() -> None:
    for name in coltrain.__all__:
        thing = getattr(coltrain, name)
        if isinstance(thing, type):
            members = [m for m in vars(thing).values() if callable(m) or isinstance(m, property)]
        else:
            members = []
        for member in [thing, *members]:
            called = getattr(member, "__name__", "property")
            if callable(member) and not called.startswith("_") and getattr(member, "__module__", "coltrain").startswith("coltrain"):
                assert member.__doc__, f"{name}.{called} has no docstring"


def test_the_list_of_public_names_is_whole() -> None:
    public = {n for n, v in vars(coltrain).items() if not n.startswith("_") and not isinstance(v, type(coltrain))}
    assert public - {"lib", "text_of"} | {"__version__"} == set(coltrain.__all__)
