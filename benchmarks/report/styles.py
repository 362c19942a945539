"""How lines look on the page of `wavefilt bench report`: as in the figures of the scaling study."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import cycle

from wavefilt.benchmarks.scaling.plot import LIMITS, LINES

from .svg import Look

COLOURS = {
    "black": "black", "#4d4d4d": "slate", "#9a9a9a": "gray", "#c8c8c8": "silver", "#E69F00": "orange",
    "#009E73": "green", "#CC79A7": "purple", "#0072B2": "blue", "#56B4E9": "sky", "#D55E00": "vermillion",
}  # fmt: skip
"""The page's names, which also have a dark version, of the colours of `scaling_plot`."""
KNOWN = {name: Look(COLOURS[line["color"]], line["marker"], "markerfacecolor" in line) for name, line in LINES.items()}
LIMIT = {entry: Look(COLOURS[line["color"]], "", dash=line["linestyle"]) for entry, line in LIMITS.items()}
"""Of floors, estimates and the figures of 2010, by section and entry of a row."""
SPARE = [Look(colour, marker, hollow) for hollow in (False, True)
         for colour, marker in (("blue", "o"), ("orange", "s"), ("green", "D"), ("vermillion", "^"), ("purple", "v"),
                                ("sky", "o"), ("slate", "s"))]  # fmt: skip
"""For what `scaling_plot` does not know."""


def looks(names: Iterable[str]) -> dict[str, Look]:
    """Of implementations, by name."""
    spare = cycle(SPARE)
    return {name: KNOWN.get(name) or next(spare) for name in names}


def in_turn(names: Iterable[str]) -> dict[str, Look]:
    """Of whatever else is told apart."""
    return dict(zip(dict.fromkeys(names), cycle(SPARE), strict=False))
