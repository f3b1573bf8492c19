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

SMALL = "two|three|four|five|six|seven|eight|nine|ten|twelve|twenty|thirty|half an?"
UNITS = "bits?|bytes?|cycles?|cores?|seconds?|minutes?|hours?|times|percent"


def prose(text: str) -> str:
    """A page without blocks of code, addresses and sizes of pictures."""
    text = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    text = re.sub(r"^ {4}.*$", "", text, flags=re.MULTILINE)
    text = re.sub(r'\b(?:src|width|height)="[^"]*"', "", text)
    text = re.sub(r"\]\([^)]*\)", "]", text)
    return re.sub(r"https?://\S+", "", text)


def numbers(text: str) -> list[str]:
    """What a reader sees as a number: every word with a digit in it, names (HBFP8, p99), versions and code in a line among them; and
    a quantity in words. A name is one, whatever it is made of: 784-512-256-10, 16x16, ECP5-85."""
    text = prose(text)
    digits = re.findall(r"[A-Za-z]*\d\w*(?:[.,-]\w+)*", text)
    return digits + re.findall(rf"\b(?:{SMALL})\s+(?:{UNITS})\b", text)


def test_numbers_are_counted_as_said() -> None:
    text = "1,234.5 cycles, 99.7 % of 16x16 in HBFP8, `12` on Debian 12 or 13, 784-512-256-10, p99 of 1.02 in three minutes"
    seen = ["1,234.5", "99.7", "16x16", "HBFP8", "12", "12", "13", "784-512-256-10", "p99", "1.02", "three minutes"]
    assert numbers(f"{text}\n    code 7\n<i width=\"3\">") == seen
    assert numbers("```c\nint a = 1;\n```\n[2 things, version 0.1.](docs/3.md) at https://x.org/4") == ["2", "0.1"]


def test_readme_has_few_numbers() -> None:
    found = numbers((TOP / "README.md").read_text())
    assert len(found) <= MOST_NUMBERS, f"README.md has {len(found)} numbers, at most {MOST_NUMBERS}: {' '.join(found)}"


def rows_of(name: str, key: str) -> dict[str, dict[str, str]]:
    with open(TOP / f"docs/data/{name}.csv", newline="") as file:
        return {row[key]: row for row in csv.DictReader(file)}


def test_readme_agrees_with_the_data() -> None:
    """The table of interference and the figures of the text below it, rounded."""
    rows = rows_of("interference", "name")
    page = (TOP / "README.md").read_text()
    names = "digits-model-small", "digits-model-default"
    columns = ("on average", "stretch_mean", (2, 3)), ("p99 of these", "stretch_p99", (2, 2)), ("training beside", "train_share", (2, 2))
    for words, column, digits in columns:
        line = next(line for line in page.splitlines() if line.startswith("|") and words in line)
        shown = [re.search(r"\d+\.\d+", cell) for cell in line.split("|")[2:4]]
        wanted = [f"{float(rows[name][column]):.{n}f}" for name, n in zip(names, digits, strict=True)]
        assert [s and s[0] for s in shown] == wanted, line

    worst = max(float(r["stretch_p99"]) for r in rows.values() if r["floor"] == "0")
    other = {what: float(r["figure"]) for what, r in rows_of("other-figures", "what").items()}
    product = float(rows_of("targets", "target")["512 cubed: at least 99.6 % of the array"]["figure"])
    assert product == other["512 cubed on the small core (bench gemm --core 16x8 --shape 512x512x512), array busy"]
    routes = re.findall(r"^\| (\w+)[^|]* \| \d+ \| ([^|]+) \|", (TOP / "docs/fpga-core.md").read_text(), flags=re.MULTILINE)
    met = [(rtl, float(outcome.split()[0].strip("*"))) for rtl, outcome in routes if outcome.startswith("**")]
    last = [clock for rtl, clock in met if rtl == met[-1][0]]
    assert min(last) >= 40
    text = " ".join(page.split())
    for sentence in (
        f"p99 is {worst:.2f} of alone at worst",
        f"busy in only {other['demo (scripts/demo, large core), array busy while it serves and trains']:.0f} % of the cycles",
        f"keeps {other['demo, training beside requests over training alone']:.2f} of its speed",
        f"p99 is {other['demo, p99 beside training over p99 alone']:.2f} of alone, in one short run",
        f"right answers rise to {other['demo, right answers of the last version on the test images']:.0f} %",
        f"the array of the small and of the large core busy in {product} % of the cycles",
        f"its board has routed with {['one', 'two', 'each'][len(last) - 1]} of three seeds, at {min(last):.1f} MHz or more |",
    ):
        assert sentence in text, sentence


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
