"""Plots as data: `drawing` shows them on a page, `scaling/plot.py` in a picture."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle

PALETTE = {
    "black": "#1c2126",
    "slate": "#4d4d4d",
    "gray": "#85898d",
    "silver": "#b4b8bc",
    "orange": "#e69f00",
    "green": "#009e73",
    "purple": "#cc79a7",
    "blue": "#0072b2",
    "sky": "#56b4e9",
    "vermillion": "#d55e00",
}
"""Okabe and Ito's colours, which colour-blind readers can tell apart, and greys."""


@dataclass(frozen=True)
class Point:
    """``text`` is shown where the point is; ``spread`` are the quartiles."""

    x: float
    y: float
    text: str = ""
    spread: tuple[float, float] | None = None


@dataclass(frozen=True)
class Look:
    """A name in `PALETTE`, and Bokeh's names of a marker and of a dash, "" for none; the marker "bar" is a bar."""

    colour: str
    marker: str = "circle"
    hollow: bool = False
    dash: str = "solid"


@dataclass(frozen=True)
class Line:
    """Points that belong together."""

    label: str
    look: Look
    points: Sequence[Point]


@dataclass(frozen=True)
class Panel:
    """``ticks`` are words at places of the x axis."""

    title: str
    lines: Sequence[Line]
    ticks: Mapping[float, str] | None = None


@dataclass(frozen=True)
class Plot:
    """Panels with common axes ``x`` and ``y`` and one legend.

    With ``rows``, their labels, a point lies in the row that its x counts, at its y on the horizontal axis.
    """

    title: str
    x: str
    y: str
    panels: Sequence[Panel]
    rows: Sequence[str] = ()

    @property
    def legend(self) -> list[Line]:
        """A line of each label."""
        return [*{line.label: line for panel in self.panels for line in panel.lines}.values()]


KNOWN = {
    "gsl": Look("slate", "square"),
    "pywavelets": Look("orange"),
    "numba": Look("green", "diamond"),
    "numba_kept": Look("green", "square"),
    "ptwt_cpu": Look("purple", "inverted_triangle"),
    "ptwt_gpu": Look("purple", "triangle", hollow=True),
    "cuda": Look("blue"),
    "cuda_kept": Look("blue", "square"),
    "cuda_pinned": Look("sky", "square"),
    "cuda_resident": Look("vermillion", "diamond"),
    "cuda_again": Look("vermillion", "square", hollow=True),
    "cuda_kernels": Look("vermillion", hollow=True),
}
"""Hollow is data that stays on the GPU timed by itself."""
LIMITS = {
    ("floors", "transfer"): ("floor: transfers", Look("sky", "", dash="dashed")),
    ("floors", "memory"): ("floor: 12n bytes", Look("vermillion", "", dash="dashed")),
    ("estimates", "calibrated"): ("SKE estimate, calibrated", Look("black", "", dash="dotted")),
    ("estimates", "classic"): ("SKE estimate, classic", Look("gray", "", dash="dotted")),
    ("document", "cpu"): ("2010: CPU (GSL)", Look("gray", "", dash="dotdash")),
    ("document", "gpu"): ("2010: GPU with transfers", Look("silver", "", dash="dotdash")),
}
"""Label and look of floors, estimates and the figures of 2010, by section and entry of a row."""
_SPARE = {
    "blue": "circle",
    "orange": "square",
    "green": "diamond",
    "vermillion": "triangle",
    "purple": "inverted_triangle",
    "sky": "circle",
    "slate": "square",
}
SPARE = [Look(colour, marker, hollow) for hollow in (False, True) for colour, marker in _SPARE.items()]


def looks(names: Iterable[str]) -> dict[str, Look]:
    """Of implementations that are known, and for every other name the next spare one."""
    spare = cycle(SPARE)
    return {name: KNOWN.get(name) or next(spare) for name in dict.fromkeys(names)}
