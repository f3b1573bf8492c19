# SPDX-License-Identifier: Apache-2.0
"""Documents that people read first: how many numbers the README has, that links lead somewhere, that docs/cli.md lists what there is."""

from __future__ import annotations

import csv
import os
import re
import subprocess
from pathlib import Path

import pytest

TOP = Path(__file__).resolve().parents[2]
MOST_NUMBERS = 40

# Names that have digits in them. They are no figures: a reader need not weigh them.
NAMES = [
    r"\d+(?:-\d+)+",  # networks: 784-512-256-10
    r"\d+x\d+(?:x\d+)?",  # sizes of arrays and shapes: 16x16
    r"[A-Za-z_]+[A-Za-z_0-9]*[-:]?\d[\w.-]*",  # HBFP8, FP32, C11, AXI4-Lite, ECP5-85, p99, INT8
    r"Debian \d+(?: or \d+)?",
    r"Version \d+(?:\.\d+)+",
    r"Apache-2\.0",
    r"CC BY \d\.\d",
    r"volume \d+",  # of a journal that is cited
]


def prose(text: str) -> str:
    """A page without code blocks, code in a line, addresses and tags."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^ {4}.*$", "", text, flags=re.MULTILINE)
    text = re.sub(r"`[^`]*`", "", text)
    text = re.sub(r"<[^>]*>", "", text)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    return re.sub(r"https?://\S+", "", text)


def numbers(text: str) -> list[str]:
    """The numbers of a page, as digits: 1,234.5 is one. Numbers inside NAMES do not count."""
    text = prose(text)
    for name in NAMES:
        text = re.sub(rf"(?<![\w.]){name}(?![\w])", "", text)
    return re.findall(r"\d+(?:[.,]\d+)*", text)


def test_numbers_are_counted_as_said() -> None:
    assert numbers("1,234.5 cycles, 99.7 % of 16x16 in HBFP8 on Debian 12 or 13, 784-512-256-10, p99 of 1.02\n    code 7\n`12` <i 3>") == [
        "1,234.5",
        "99.7",
        "1.02",
    ]
    assert numbers("```c\nint a = 1;\n```\n[2 things](docs/3.md) at https://x.org/4") == ["2"]


def test_readme_has_few_numbers() -> None:
    found = numbers((TOP / "README.md").read_text())
    assert len(found) <= MOST_NUMBERS, f"README.md has {len(found)} numbers, at most {MOST_NUMBERS}: {' '.join(found)}"


def test_readme_agrees_with_the_data() -> None:
    """The table of interference, rounded, and the sentence on the larger network."""
    with open(TOP / "docs/data/interference.csv", newline="") as file:
        rows = {row["name"]: row for row in csv.DictReader(file)}
    page = (TOP / "README.md").read_text()
    names = "digits-model-small", "digits-model-default"
    columns = ("on average", "stretch_mean", (2, 3)), ("p99 of these", "stretch_p99", (2, 2)), ("training beside", "train_share", (2, 2))
    for words, column, digits in columns:
        line = next(line for line in page.splitlines() if line.startswith("|") and words in line)
        shown = [re.search(r"\d+\.\d+", cell) for cell in line.split("|")[2:4]]
        wanted = [f"{float(rows[name][column]):.{n}f}" for name, n in zip(names, digits, strict=True)]
        assert [s and s[0] for s in shown] == wanted, line
    larger = re.search(r"784-512-256-10 takes\s+(\d\.\d+)\s+times", page)
    assert larger and float(larger[1]) == float(rows["mnist-model-default"]["stretch_mean"])


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as GitHub makes them."""
    found = set()
    for line in re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL).splitlines():
        if heading := re.match(r"#+ (.*)", line):
            text = re.sub(r"[^\w\- ]", "", heading[1].strip().lower())
            found.add(text.replace(" ", "-"))
    return found


PAGES = sorted([*TOP.glob("*.md"), *(TOP / "docs").glob("*.md")])


@pytest.mark.parametrize("page", PAGES, ids=[p.name for p in PAGES])
def test_links_lead_somewhere(page: Path) -> None:
    text = re.sub(r"`[^`\n]*`", "", re.sub(r"^```.*?^```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL))
    links = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'src="([^"]+)"', text)
    for link in links:
        if re.match(r"(https?|mailto):", link):
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{page.name}: {link} leads nowhere"
        if anchor and target.suffix == ".md":
            assert anchor in anchors(target), f"{page.name}: {link}: there is no such heading"


def run(*args: str, build: Path) -> str:
    command = [str(build / "bin/coltrain"), *args]
    environment = dict(os.environ, ARGP_HELP_FMT="rmargin=200")
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False, timeout=60)
    return done.stdout + done.stderr


def verbs(build: Path) -> list[str]:
    """Every verb, with what stands behind `bench` and `experiment`."""
    plain = re.findall(r"^  ([a-z][a-z-]*) {1,}\S", run("--help", build=build), flags=re.MULTILINE)
    plain = [v for v in plain if v != "coltrain"]
    assert "train" in plain and "report" in plain
    found = []
    for verb in plain:
        inner: list[str] = []
        if verb in ("bench", "experiment"):
            inner = re.findall(r"^  ([a-z][a-z-]*) {2,}\S", run(verb, "--help", build=build), flags=re.MULTILINE)
            assert inner, f"coltrain {verb} --help lists nothing"
        found += [f"{verb} {name}" for name in inner] or [verb]
    return found


def test_every_verb_is_in_the_page(build: Path) -> None:
    """docs/cli.md has a heading for each verb and no other, and names only options that the verb has."""
    page = (TOP / "docs/cli.md").read_text()
    sections = dict(re.findall(r"^### coltrain ([a-z -]+?)\n(.*?)(?=^##|\Z)", page, flags=re.MULTILINE | re.DOTALL))
    assert sorted(sections) == sorted(verbs(build))
    for verb, text in sections.items():
        there = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", run(*verb.split(), "--help", build=build))) | {"--help"}
        named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]*", text))
        assert named <= there, f"docs/cli.md: coltrain {verb} has no {', '.join(sorted(named - there))}"
        assert text.strip(), f"docs/cli.md says nothing of {verb}"
