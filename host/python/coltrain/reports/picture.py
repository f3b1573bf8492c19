# SPDX-License-Identifier: Apache-2.0
"""A chart as a file of its own, for documents."""

from __future__ import annotations

import io
import re
from pathlib import Path

import matplotlib
from matplotlib.figure import Figure

from coltrain.reports.charts import STYLE, Draw


def picture(draw: Draw, path: Path, mark: str, size: tuple[float, float] = (760.0, 380.0)) -> None:
    """An SVG on white, for a wide screen; the same figures give the same bytes. mark: words in a comment of its first line that say what
    it was made from."""
    with matplotlib.rc_context(STYLE | {"figure.facecolor": "white", "savefig.facecolor": "white"}):
        figure = Figure(figsize=(size[0] / 72, size[1] / 72), dpi=72, layout="constrained")
        draw(figure, False)
        out = io.StringIO()
        figure.savefig(out, format="svg", metadata={"Date": None, "Creator": None, "Format": None, "Type": None})
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", out.getvalue(), flags=re.S)
    svg = re.sub(r"(\d+\.\d\d)\d+", r"\1", svg[svg.index("<svg") :])
    svg = re.sub(r'(width|height)="([0-9.]+)pt"', r'\1="\2"', svg)
    path.write_text(f"<!-- {mark} -->\n{svg}", encoding="utf-8")
