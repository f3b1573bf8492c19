# SPDX-License-Identifier: Apache-2.0
"""Charts by matplotlib as SVG inside a page. Colours are the page's: what is drawn in a colour of COLOURS becomes a variable of its
style sheet, which follows the reader's light or dark setting. Every chart is drawn twice, for a wide and for a narrow screen.
"""

from __future__ import annotations

import html
import io
import itertools
import math
import re
from collections.abc import Callable, Iterable
from typing import Any

import matplotlib

matplotlib.use("svg")

import matplotlib.ticker
from markupsafe import Markup
from matplotlib.figure import Figure
from matplotlib.scale import FuncScale

COLOURS = {
    "serve": "#0068a8",
    "train": "#c2570c",
    "alone": "#6e7781",
    "fcfs": "#00785a",
    "turns": "#a3478a",
    "job": "#8a6d00",
    "good": "#1a7f4b",
    "fg": "#1b1f24",
    "soft": "#57606a",
    "rule": "#d0d7de",
    "bg": "#fefefe",
}
"""Names are those of the style sheet."""

POLICY_STYLE: dict[str, tuple[str, Any]] = {
    "PRIORITY": ("serve", "-"),
    "FCFS": ("fcfs", (0, (6, 3))),
    "ROUND_ROBIN": ("turns", (0, (1.5, 2))),
    "JOB": ("job", (0, (7, 2, 1.5, 2))),
    "SLACK": ("serve", (0, (2, 1))),
}
ALONE_STYLE = ("alone", (0, (5, 3)))

WIDE, NARROW = (800.0, 340.0), (350.0, 300.0)

STYLE = {
    "svg.fonttype": "none",
    "svg.hashsalt": "coltrain",
    "font.family": ["DejaVu Sans"],
    "font.size": 12.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": COLOURS["soft"],
    "axes.labelcolor": COLOURS["soft"],
    "axes.titlesize": 12.0,
    "axes.titlelocation": "left",
    "axes.titlecolor": COLOURS["soft"],
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": COLOURS["rule"],
    "grid.linewidth": 1.0,
    "xtick.color": COLOURS["soft"],
    "ytick.color": COLOURS["soft"],
    "xtick.major.size": 0.0,
    "ytick.major.size": 0.0,
    "xtick.minor.size": 0.0,
    "ytick.minor.size": 0.0,
    "text.color": COLOURS["fg"],
    "lines.linewidth": 2.0,
    "figure.facecolor": "none",
    "axes.facecolor": "none",
    "savefig.facecolor": "none",
}

Draw = Callable[[Any, bool], None]
"""Draws into a Figure; the second argument says whether the screen is narrow."""

_number = itertools.count(1)


def number_text(value: float, _: Any = None) -> str:
    """0.05, 12, 3,400"""
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.4g}"


def percent_text(value: float, _: Any = None) -> str:
    return f"{100 * value:.6g} %"


def time_text(us: float, _: Any = None) -> str:
    """A time that is given in microseconds."""
    if not math.isfinite(us):
        return "never"
    if us < 1000:
        return f"{us:.3g} µs"
    return f"{us / 1e3:.3g} ms" if us < 1e6 else f"{us / 1e6:.3g} s"


def _clean(svg: str, title: str, text: str) -> str:
    """What HTML needs of the file that matplotlib makes: no prolog, nothing that names another place, ids of its own."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.S)
    mark = f"c{next(_number)}-"
    svg = re.sub(r'\bid="', f'id="{mark}', svg)
    svg = svg.replace("url(#", f"url(#{mark}").replace('xlink:href="#', f'href="#{mark}')
    head, rest = svg.split(">", 1)
    box = re.search(r'viewBox="0 0 ([0-9.]+) ([0-9.]+)"', head)
    assert box
    w, h = box.groups()
    label = html.escape(f"{title}: {text}", quote=True)
    for name, colour in COLOURS.items():
        rest = rest.replace(colour, f"var(--{name})")
    rest = re.sub(r"font: ([0-9.]+)px [^;\"]*", r"font: \1px 'DejaVu Sans', system-ui, sans-serif", rest)
    return f'<svg role="img" viewBox="0 0 {w} {h}" width="{w}" height="{h}" aria-label="{label}">{rest}'


def _one(draw: Draw, size: tuple[float, float], narrow: bool, title: str, text: str) -> str:
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(size[0] / 72, size[1] / 72), dpi=72, layout="constrained")
        draw(figure, narrow)
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    return _clean(out.getvalue(), title, text)


def chart(draw: Draw, title: str, text: str, height: float | None = None) -> Markup:
    """A chart for both kinds of screen. title and text are for those who cannot see it."""
    wide, narrow = (WIDE[0], height or WIDE[1]), (NARROW[0], height or NARROW[1])
    return Markup(
        f'<div class="wide">{_one(draw, wide, False, title, text)}</div>\n'
        f'<div class="narrow">{_one(draw, narrow, True, title, text)}</div>\n'
    )


def of_networks(rows: list[dict[str, Any]], networks: dict[str, Any], draw: Callable[[Any, list[dict[str, Any]]], None], text: str, height: float | None = None) -> list[tuple[str, Markup]]:
    """The name and a chart of each network that has rows; networks: by the rows' `net`, with a `text`."""

    def of(own: list[dict[str, Any]]) -> Draw:
        return lambda figure, narrow: draw(figure, own)

    there = {net: own for net in networks if (own := [r for r in rows if r["net"] == net])}
    return [(networks[net].text, chart(of(own), networks[net].text, text, height)) for net, own in there.items()]


def axes(figure: Any, x: str, y: str, *, percent: bool = False, log: bool = False, sub: Any = None) -> Any:
    """Axes with the name of the vertical one above it, because turned text is hard to read. A logarithmic one says so."""
    ax = figure.add_subplot(sub) if sub is not None else figure.subplots()
    ax.set_xlabel(x)
    ax.set_title(y + (" (logarithmic scale)" if log else ""))
    if log:
        ax.set_yscale("log")
    ax.yaxis.set_major_formatter(percent_text if percent else number_text)
    ax.xaxis.set_major_formatter(number_text)
    if log:
        ax.yaxis.set_minor_formatter(matplotlib.ticker.NullFormatter())
    return ax


def no_labels() -> Any:
    """For the ticks between the decades."""
    return matplotlib.ticker.NullFormatter()


def log_ticks(axis: Any, ratio: float, text: Callable[..., str] = number_text) -> None:
    """Of a logarithmic axis from 1 to ratio: numbers also between the decades where there are few of these."""
    axis.set_major_locator(matplotlib.ticker.LogLocator(subs=(1.0, 2.0, 5.0) if ratio < 1000 else (1.0,), numticks=30))
    axis.set_major_formatter(text)
    axis.set_minor_formatter(no_labels())


def line(ax: Any, x: Any, y: Any, colour: str, **how: Any) -> None:
    how.setdefault("color", COLOURS.get(colour, colour))
    ax.plot(x, y, **how)


def nines(ax: Any, top: float) -> None:
    """A horizontal axis of shares with equal room for each further nine (0.9, 0.99, 0.999): the way tails are drawn."""
    import numpy as np

    def there(p: Any) -> Any:
        return -np.log10(1 - np.minimum(p, 0.9999999))

    def back(v: Any) -> Any:
        return 1 - 10.0 ** (-np.asarray(v))

    ax.set_xscale(FuncScale(ax, (there, back)))
    ax.set_xlim(0, top)
    ax.set_xticks([p for p in (0.5, 0.9, 0.99, 0.999, 0.9999, 0.99999) if p <= top])
    ax.xaxis.set_major_formatter(percent_text)


def keys(entries: Iterable[tuple[str, Any, str]], box: bool = False) -> Markup:
    """What the lines or boxes of a chart mean: colour, dashes, text."""
    items = []
    for colour, dashes, text in entries:
        if box:
            mark = (
                '<svg width="16" height="14" viewBox="0 0 16 14" aria-hidden="true">'
                f'<rect width="16" height="14" fill="var(--{colour})"/></svg>'
            )
        else:
            array = "" if dashes == "-" else f' stroke-dasharray="{" ".join(str(d) for d in dashes[1])}"'
            mark = (
                '<svg width="34" height="12" viewBox="0 0 34 12" aria-hidden="true">'
                f'<path d="M1 6H33" fill="none" stroke="var(--{colour})" stroke-width="2"{array}/></svg>'
            )
        items.append(f"<li>{mark}{html.escape(text)}</li>")
    return Markup(f'<ul class="key">{"".join(items)}</ul>')


def point_keys(entries: Iterable[tuple[str, bool, str]]) -> Markup:
    """What the points of a chart mean: colour, whether it is filled, text."""
    items = []
    for colour, filled, text in entries:
        fill = f"var(--{colour})" if filled else "none"
        circle = f'<circle cx="7" cy="7" r="5" fill="{fill}" stroke="var(--{colour})" stroke-width="2"/>'
        items.append(f'<li><svg width="14" height="14" viewBox="0 0 14 14" aria-hidden="true">{circle}</svg>{html.escape(text)}</li>')
    return Markup(f'<ul class="key">{"".join(items)}</ul>')
