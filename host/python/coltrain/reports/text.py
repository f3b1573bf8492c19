# SPDX-License-Identifier: Apache-2.0
"""What runs that stand beside each other are called."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import PurePath


def file_names(paths: Sequence[str]) -> list[str]:
    """Names of files without .json, with as many of their folders as tell them from each other; a number where none do."""
    stems = [PurePath(p.removesuffix(".json")).parts for p in (os.path.normpath(p) for p in paths)]
    depth = 1
    while depth < max(len(s) for s in stems) and len({s[-depth:] for s in stems}) < len(set(stems)):
        depth += 1
    names = ["/".join(s[-depth:]).lstrip("/") for s in stems]
    seen: dict[str, int] = {}
    for i, name in enumerate(names):
        seen[name] = seen.get(name, 0) + 1
        if seen[name] > 1:
            names[i] = f"{name} ({seen[name]})"
    return names


def names_of(paths: Sequence[str], settings: Sequence[Mapping[str, str]]) -> tuple[list[str], list[tuple[str, str]], list[str]]:
    """What differs between runs names each, together with its file where that is not enough; what they share; what differs."""
    keys = list(dict.fromkeys(key for s in settings for key in s))
    shared = [k for k in keys if len({s.get(k) for s in settings}) == 1]
    differ = [k for k in keys if k not in shared]
    files = file_names(paths)
    names = [", ".join(f"{k} {s.get(k, 'not given')}" for k in differ) for s in settings]
    if not differ:
        names = files
    elif len(set(names)) < len(names):
        names = [f"{file}: {name}" for file, name in zip(files, names, strict=True)]
    return names, [(k, settings[0][k]) for k in shared], differ
