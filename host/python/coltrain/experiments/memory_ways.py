# SPDX-License-Identifier: Apache-2.0
"""The networks of `coltrain experiment memory`, and how their activations are kept."""

from __future__ import annotations

from dataclasses import dataclass

import coltrain

GROUP = 256
"""Numbers that have a minimum and a maximum in common, by ActNN's rule."""


@dataclass(frozen=True)
class Net:
    text: str
    rate: float
    """In the first step; it falls to 0 by a cosine."""
    data: str
    cost: float
    """Of a point, beside others."""


NETS = {
    "lenet5": Net("LeNet-5", 0.02, "fashion-mnist", 1.0),
    "resnet8": Net("ResNet-8", 0.05, "random-32x32x3", 5.0),
    "vgg": Net("VGG-like", 0.01, "random-32x32x3", 3.0),
}


@dataclass(frozen=True)
class Way:
    """How activations are kept."""

    text: str
    format: str = "fp32"
    bits: float = 32.0
    """Of a number, if that is always the same."""
    error: float = 0.0
    masks: coltrain.Masks = coltrain.Masks.OFF
    """A bit a number beside it says what ReLUs let through."""
    by_host: str = ""
    """What the host does in training: sets bounds by AC-GC's rule, rounds groups."""


WAYS = {
    "fp32": Way("FP32"),
    "hbfp8": Way("HBFP8", "hbfp8", 8.5),
    "hbfp8-mask": Way("HBFP8, compressed without loss", "compressed", 0.0),
    "hbfp4": Way("HBFP4", "hbfp4", 4.5),
    "recompute": Way("HBFP8, made again", "recompute", 8.5),
    "actnn2": Way("groups of 2 bits (ActNN), by the host", "", 2 + 2 * 16 / GROUP, by_host="groups"),
    "acgc": Way("compressed, bounds by AC-GC, with all masks", "compressed", 0.0, 0.0, coltrain.Masks.ON, by_host="acgc"),
    "s=0.01": Way("compressed, s = 0.01", "compressed", 0.0, 0.01, coltrain.Masks.STORED),
    "s=0.1": Way("compressed, s = 0.1", "compressed", 0.0, 0.1, coltrain.Masks.STORED),
    "s=0.01-mask": Way("compressed, s = 0.01, with all masks", "compressed", 0.0, 0.01, coltrain.Masks.ON),
    "s=0.1-mask": Way("compressed, s = 0.1, with all masks", "compressed", 0.0, 0.1, coltrain.Masks.ON),
    "s=0.01-nomask": Way("compressed, s = 0.01, without masks", "compressed", 0.0, 0.01),
    "s=0.1-nomask": Way("compressed, s = 0.1, without masks", "compressed", 0.0, 0.1),
}
