# SPDX-License-Identifier: Apache-2.0
"""Pages for people: one HTML file without scripts or anything from elsewhere, light or dark by the reader's system, for desktops and
telephones. Templates are Jinja2's; what stands in them is escaped."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import jinja2
from markupsafe import Markup

import coltrain._abi as abi
from coltrain.reports.charts import number_text

TEMPLATES = Path(__file__).parent / "templates"


def count_text(value: float | None) -> str:
    """3,400; what was never answered has no cycles."""
    if value is None:
        return "never"
    return "-" if math.isnan(value) else f"{round(value):,}"


def _environment() -> jinja2.Environment:
    e = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES), autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    e.filters["count"] = count_text
    e.filters["number"] = number_text
    e.globals["style"] = Markup((TEMPLATES / "style.css").read_text(encoding="utf-8"))
    e.globals["version"] = abi.VERSION
    return e


def render(template: str, **values: Any) -> str:
    text: str = _environment().get_template(template).render(**values)
    return text
