# SPDX-License-Identifier: Apache-2.0
"""Pages and charts for people, from the JSON that verbs and experiments write."""

from __future__ import annotations


def run(args: list[str]) -> int:
    """The verb `coltrain report`."""
    from coltrain.reports.report import main

    return main(args)
