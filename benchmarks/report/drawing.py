"""Plots of `wavefilt bench report`: SVG by matplotlib, coloured by the page, with a title for each point."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import cycle
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import XAxis, YAxis
    from matplotlib.figure import Figure

WIDTH, HEIGHT = 440, 320
"""Of a drawing; on a phone it takes the screen's width, elsewhere half the page's."""
LABELS = 6
"""Most numbers along the x axis."""
_PALETTE = (
    "ink #1c2126, soft #5b6570, rule #d9dee3, paper #ffffff, black #000001, slate #4d4d4d, gray #9a9a9a, silver "
    "#c8c8c8, orange #e69f00, green #009e73, purple #cc79a7, blue #0072b2, sky #56b4e9, vermillion #d55e00"
)
PALETTE: dict[str, str] = dict(pair.split() for pair in _PALETTE.split(","))
"""As matplotlib writes the page's colours, which have a light and a dark version; pure black it leaves out."""
NAMES = {value: name for name, value in PALETTE.items()}


@dataclass(frozen=True)
class Point:
    """``text`` is shown where the point is; ``spread`` are the quartiles."""

    x: float
    y: float
    text: str = ""
    spread: tuple[float, float] | None = None


@dataclass(frozen=True)
class Look:
    """``colour`` is one of the page's, by name; ``marker`` "" is for none, ``dash`` "" for no line between points."""

    colour: str
    marker: str = "o"
    hollow: bool = False
    dash: str = "-"


KNOWN = {
    "gsl": Look("slate", "s"),
    "pywavelets": Look("orange"),
    "numba": Look("green", "D"),
    "ptwt_cpu": Look("purple", "v"),
    "ptwt_gpu": Look("purple", "^", hollow=True),
    "cuda": Look("blue"),
    "cuda_pinned": Look("sky", "s"),
    "cuda_resident": Look("vermillion", "D"),
    "cuda_kernels": Look("vermillion", hollow=True),
}
"""Okabe and Ito's palette; hollow is data that stays on the GPU timed by itself."""
LIMITS = {
    ("floors", "transfer"): ("floor: transfers", Look("sky", "", dash="--")),
    ("floors", "memory"): ("floor: 12n bytes", Look("vermillion", "", dash="--")),
    ("estimates", "calibrated"): ("SKE estimate, calibrated", Look("black", "", dash=":")),
    ("estimates", "classic"): ("SKE estimate, classic", Look("gray", "", dash=":")),
    ("document", "cpu"): ("2010: CPU (GSL)", Look("gray", "", dash="-.")),
    ("document", "gpu"): ("2010: GPU with transfers", Look("silver", "", dash="-.")),
}
"""Label and look of floors, estimates and the figures of 2010, by section and entry of a row."""
_SPARE = {"blue": "o", "orange": "s", "green": "D", "vermillion": "^", "purple": "v", "sky": "o", "slate": "s"}
SPARE = [Look(colour, marker, hollow) for hollow in (False, True) for colour, marker in _SPARE.items()]


def looks(names: Iterable[str]) -> dict[str, Look]:
    """Of implementations, by name."""
    spare = cycle(SPARE)
    return {name: KNOWN.get(name) or next(spare) for name in names}


def in_turn(names: Iterable[str]) -> dict[str, Look]:
    """Of other names."""
    return dict(zip(dict.fromkeys(names), cycle(SPARE), strict=False))


@dataclass(frozen=True)
class Line:
    """Points that belong together."""

    label: str
    look: Look
    points: Sequence[Point] = ()


def draw(axes: Axes, line: Line, across: bool = False, **options: Any) -> None:
    """Quartiles, the line itself and its points; ``across`` with x and y exchanged."""
    look, colour, turn = line.look, PALETTE[line.look.colour], -1 if across else 1
    spreads = [(p.x, *p.spread) for p in line.points if p.spread]
    if spreads:
        ranges = axes.hlines if across else axes.vlines
        ranges(*zip(*spreads, strict=True), color=colour, linewidth=4.5, alpha=0.3, **options)
    if look.dash:
        places = [p.x for p in line.points], [p.y for p in line.points]
        axes.plot(*places[::turn], color=colour, linestyle=look.dash, linewidth=1.8, **options)
    shown = [p for p in line.points if p.text]
    if shown:
        places = [p.x for p in shown], [p.y for p in shown]
        face = PALETTE["paper"] if look.hollow else colour
        style: dict[str, Any] = {
            "marker": look.marker or "o",
            "markersize": 7,
            "markerfacecolor": face,
            "markeredgewidth": 1.4,
        }
        axes.plot(*places[::turn], color=colour, linestyle="", **style, **options)


class Drawing:
    """A figure of matplotlib without fonts or colours of its own, whose points and bars have words."""

    def __init__(self, label: str, height: float, margins: tuple[float, float, float, float]) -> None:
        from matplotlib.figure import Figure

        left, right, top, bottom = margins
        self.label, self.words = label, dict[str, tuple[Line | None, Iterator[str]]]()
        self.figure: Figure = Figure(figsize=(WIDTH / 72, height / 72))
        sides = (left / WIDTH, bottom / height, 1 - (left + right) / WIDTH, 1 - (top + bottom) / height)
        self.axes: Axes = self.figure.add_axes(sides)
        self.axes.tick_params("both", which="both", left=False, bottom=False, labelcolor=PALETTE["soft"])
        self.axes.grid(color=PALETTE["rule"], linewidth=0.7)
        self.axes.set_axisbelow(True)
        for name, spine in self.axes.spines.items():
            spine.set(visible=name in ("left", "bottom"), color=PALETTE["soft"])

    def add(self, line: Line, across: bool = False) -> None:
        gid = f"words {len(self.words)}"
        self.words[gid] = line, iter([p.text for p in line.points if p.text])
        draw(self.axes, line, across, gid=gid, clip_on=False)

    def add_bar(self, top: float, length: float, text: str) -> None:
        gid = f"words {len(self.words)}"
        self.axes.barh(top, length, height=13, align="edge", color=PALETTE["blue"], gid=gid, clip_on=False)
        self.words[gid] = None, iter([text])

    def svg(self, prefix: str) -> str:
        """Hashes of the ``prefix`` are its ids."""
        from matplotlib import rc_context

        out, empty = io.BytesIO(), dict.fromkeys(("Date", "Creator", "Format", "Type"))
        with rc_context({"svg.fonttype": "none", "svg.hashsalt": prefix + self.label}):
            self.figure.savefig(out, format="svg", transparent=True, metadata=empty)
        text = re.sub(r' (xmlns(:xlink)?|clip-path)="[^"]*"|<\?xml.*\?>|<!DOCTYPE[^>]*>', "", out.getvalue().decode())
        root = ElementTree.fromstring(text.replace("xlink:href", "href"))
        for group in root.iter("g"):
            self._name(group)
        for parent in [*root.iter()]:
            parent.tail = None
            if parent.tag not in ("title", "text"):
                parent.text = None
            for name in {"d", "x", "y"} & parent.attrib.keys():
                parent.set(name, re.sub(r"\.\d+|\s+", lambda found: found[0][:2].strip() or " ", parent.attrib[name]))
            for child in [*parent]:
                if child.tag in ("style", "clipPath"):
                    parent.remove(child)
                if parent.tag == "defs":
                    child.attrib.pop("style", None)
        root.attrib = {"class": "chart", "viewBox": root.get("viewBox", ""), "role": "group", "aria-label": self.label}
        text = ElementTree.tostring(root, "unicode")
        text = re.sub(r"font-(family|size): [^;]*(; )?", "", text)
        return re.sub(r"#[0-9a-f]{6}\b", lambda found: f"var(--{NAMES.get(found[0], 'ink')})", text)

    def _name(self, group: ElementTree.Element) -> None:
        """Give the points of a group their words; a line's groups are known by its label."""
        line, words = self.words.get(group.attrib.pop("id", ""), (None, None))
        if words is None:
            return
        if line is not None:
            group.attrib |= {"class": "line" if line.look.marker else "line bare", "data-line": line.label}
        for mark in group.iter("use") if line else [group]:
            if line is not None:
                group.set("style", mark.attrib.pop("style"))
            mark.set("class", "point" if line else "point bar")
            ElementTree.SubElement(mark, "title").text = next(words)


def plain(value: float, _: object = None) -> str:
    """Without an exponent."""
    return f"{value:.0f}" if abs(value) >= 1 or value == 0 else f"{value:.6f}".rstrip("0")


def scale(axis: XAxis | YAxis, values: Sequence[float], ticks: Mapping[float, str] | None = None) -> None:
    """Logarithmic, and linear for values that are not all positive; ``ticks`` are words at their places."""
    from matplotlib.ticker import FixedFormatter, FixedLocator, LogLocator, MaxNLocator, NullLocator

    low, high = min(values), max(values)
    logarithmic = low > 0
    axis.axes.set(**{f"{axis.axis_name}scale": "log" if logarithmic else "linear"})
    if logarithmic and low == high:
        axis.axes.set(**{f"{axis.axis_name}lim": (low / 2, 2 * high)})
    subs = (1.0, 2.0, 5.0) if logarithmic and high < 100 * low else (1.0,)
    axis.set_major_locator(LogLocator(subs=subs) if logarithmic else MaxNLocator(5))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(plain)
    if ticks:
        each = math.ceil(len(ticks) / LABELS)
        axis.set_major_locator(FixedLocator(sorted(ticks)))
        words = [word if i % each == 0 else "" for i, (_, word) in enumerate(sorted(ticks.items()))]
        axis.set_major_formatter(FixedFormatter(words))


@cache
def swatch(look: Look) -> str:
    """A line of this look in small, for the legend."""
    from matplotlib.markers import MarkerStyle
    from matplotlib.patches import PathPatch
    from matplotlib.transforms import Affine2D

    drawing = Drawing("", 16, (0, 0, 0, 0))
    drawing.axes.set_axis_off()
    drawing.axes.set(xlim=(0, WIDTH), ylim=(0, 16))
    drawing.add(Line("", look, (Point(2, 8), Point(32, 8))))
    if look.marker:
        marker, colour = MarkerStyle(look.marker), PALETTE[look.colour]
        place = Affine2D(marker.get_transform().get_matrix()).scale(7).translate(17, 8)
        path = marker.get_path().transformed(place)
        face = PALETTE["paper"] if look.hollow else colour
        drawing.axes.add_patch(PathPatch(path, facecolor=face, edgecolor=colour, linewidth=1.4, zorder=3))
    small = drawing.svg("").replace('class="chart" viewBox="0 0 440 16"', 'viewBox="0 0 34 16"', 1)
    return small.replace("<svg", '<svg width="34" height="16"', 1).replace('data-line=""', "")
