# SPDX-License-Identifier: Apache-2.0
"""docs/coltrain.svg: all five transports, no wire crosses another, every text inside its box, in both colour schemes."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest
from browser import Browser

TOP = Path(__file__).resolve().parents[2]
DRAWING = TOP / "docs/coltrain.svg"

Segment = tuple[float, float, float, float]


def wires(svg: str) -> list[Segment]:
    """The segments of all wires, which are horizontal or vertical, as x, y, x, y in ascending order."""
    found: list[Segment] = []
    for path in re.findall(r'<path class="l[it]?" d="([^"]*)"', svg):
        x = y = 0.0
        for command, numbers in re.findall(r"([MHV])([\d. ]+)", path):
            values = [float(v) for v in numbers.split()]
            to_x, to_y = (values[0], values[1]) if command == "M" else (values[0], y) if command == "H" else (x, values[0])
            if command != "M":
                found.append((min(x, to_x), min(y, to_y), max(x, to_x), max(y, to_y)))
            x, y = to_x, to_y
    return found


def cross(a: Segment, b: Segment) -> bool:
    return a[0] <= b[2] and b[0] <= a[2] and a[1] <= b[3] and b[1] <= a[3]


def test_crossings_are_seen() -> None:
    assert cross((0, 5, 10, 5), (5, 0, 5, 10))
    assert not cross((0, 5, 4, 5), (5, 0, 5, 10))
    assert wires('<path class="li" d="M1 2 V5 M3 4 H9"/><path class="box" d="M0 0 H1"/>') == [(1, 2, 1, 5), (3, 4, 9, 4)]


def test_no_wire_crosses_another() -> None:
    svg = DRAWING.read_text()
    for name in ("sim:", "emu:", "mmio:", "usb: serial:"):
        assert f">{name}</text>" in svg
    found = wires(svg)
    assert len(found) > 10
    for a, b in itertools.combinations(found, 2):
        assert not cross(a, b), f"{a} and {b} cross"


PAGE = '<!DOCTYPE html><body style="margin:0">%s</body>'
LOOK = """
(() => {
const svg = document.querySelector("svg"), rects = [...svg.querySelectorAll("rect:not(.bg)")].map(r => r.getBBox());
svg.removeAttribute("width"); svg.removeAttribute("height"); svg.style.width = innerWidth + "px";
const wrong = [...svg.querySelectorAll("text")].filter(t => {
  const b = t.getBBox();
  return !rects.some(r => r.x <= b.x && r.y <= b.y && b.x + b.width <= r.x + r.width && b.y + b.height <= r.y + r.height);
}).map(t => t.textContent);
const light = c => { const [r, g, b] = c.match(/\\d+/g).map(Number); return (2 * r + 5 * g + b) / 8; };
const fill = s => light(getComputedStyle(svg.querySelector(s)).fill);
const grounds = [".bg", ".box", ".unit", ".inf", ".trn", ".arb"];
const faint = [".t", ".s"].flatMap(t => grounds.filter(b => Math.abs(fill(t) - fill(b)) < 90).map(b => t + b));
return { wrong, faint, dark: fill(".bg") < 128, wide: Math.round(svg.getBoundingClientRect().width) };
})()
"""


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_in_a_browser(tmp_path: Path, browser: Browser, width: int, dark: bool) -> None:
    """Each text lies inside a box and stands out from what may be behind it."""
    page = tmp_path / "look.html"
    page.write_text(PAGE % re.sub(r"<title>.*?</title>", "", DRAWING.read_text()))
    browser.show(page, width, 900, dark)
    assert browser.evaluate(LOOK) == {"wrong": [], "faint": [], "dark": dark, "wide": width}
