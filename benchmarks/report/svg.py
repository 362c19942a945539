"""What plots are drawn of, as inline SVG: the page colours it, and shows a point's words where it is pointed at."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape

WIDTH = 440
"""Units across a drawing; on a phone it takes the screen's width, elsewhere half the page's."""
MARKERS = {
    "o": "M-3.6 0a3.6 3.6 0 1 0 7.2 0a3.6 3.6 0 1 0 -7.2 0z", "s": "M-3.3 -3.3h6.6v6.6h-6.6z",
    "D": "M0 -4.5l4.5 4.5l-4.5 4.5l-4.5 -4.5z", "^": "M0 -4.6l4.4 7.8h-8.8z", "v": "M0 4.6l4.4 -7.8h-8.8z",
}  # fmt: skip
DASHES = {"-": "", "--": "6 4", ":": "1.5 3.5", "-.": "8 3 1.5 3"}
"""Of matplotlib's names."""


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


@dataclass(frozen=True)
class Line:
    """Points that belong together."""

    label: str
    look: Look
    points: Sequence[Point]

    @property
    def attributes(self) -> str:
        """Of everything that shows this line."""
        kind = "line hollow" if self.look.hollow else "line"
        return f'class="{kind}" data-line="{escape(self.label)}" style="--c:var(--{self.look.colour})"'


def drawn(line: Line, place: Callable[[float, float], tuple[float, float]]) -> Iterator[str]:
    """Quartiles, the line itself and its points; ``place`` is where x and y are in the drawing."""

    def path(*points: tuple[float, float]) -> str:
        return "M" + "L".join("{:.1f} {:.1f}".format(*place(*point)) for point in points)

    yield f"<g {line.attributes}>"
    spreads = "".join(path((p.x, p.spread[0]), (p.x, p.spread[1])) for p in line.points if p.spread)
    if spreads:
        yield f'<path class="spread" d="{spreads}"/>'
    if line.look.dash and line.points:
        strokes = path(*((p.x, p.y) for p in line.points))
        yield f'<path class="stroke" stroke-dasharray="{DASHES[line.look.dash]}" d="{strokes}"/>'
    for point in line.points:
        if point.text:
            at, marker = place(point.x, point.y), line.look.marker
            yield f'<g class="point" transform="translate({at[0]:.1f} {at[1]:.1f})"><title>{escape(point.text)}</title>'
            yield f'<path class="{"marker" if marker else "marker bare"}" d="{MARKERS[marker or "o"]}"/></g>'
    yield "</g>"


def swatch(line: Line) -> str:
    """The line in small, for the legend."""
    dash, marker, parts = line.look.dash, line.look.marker, ""
    if dash:
        parts += f'<path class="stroke" stroke-dasharray="{DASHES[dash]}" d="M1 8H33"/>'
    if marker:
        parts += f'<path class="marker" transform="translate(17 8)" d="{MARKERS[marker]}"/>'
    return f'<svg viewBox="0 0 34 16" width="34" height="16" aria-hidden="true">{parts}</svg>'


def text(x: float, y: float, words: str, anchor: str, kind: str = "tick") -> str:
    """Words, with the class that the page's style has for them."""
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{escape(words)}</text>'


def chart(label: str, height: float, parts: Iterable[str]) -> str:
    """The drawing of these parts, which the page's script makes tell its points."""
    head = f'<svg class="chart" viewBox="0 0 {WIDTH} {height}" role="group" aria-label="{escape(label)}">'
    return "\n".join([head, *parts, "</svg>"])
