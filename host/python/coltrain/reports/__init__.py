# SPDX-License-Identifier: Apache-2.0
"""Pages and charts for people, from the JSON that verbs and experiments write."""

from __future__ import annotations


def run_report(args: list[str]) -> int:
    """The verb `coltrain report`. Not called run, as a module of this package is."""
    from coltrain.reports.report import main

    return main(args)
