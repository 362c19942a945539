"""The kinds of plot on the page of `wavefilt bench report`."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Protocol

from .axis import Axis, plain
from .svg import WIDTH, Line, chart, drawn, text

HEIGHT = 320
LEFT, RIGHT, TOP, BOTTOM = 58, 14, 28, 48
"""What axes leave free at each side."""
STEP, ROW, BAR, VALUE = 42, 27, 13, 52
"""Of a bar: distance to the next, its middle, thickness, room for its number."""
LABELS = 6
"""Most numbers along the x axis."""
Figure = tuple[str, str]
"""A caption and the SVG under it."""


class Plot(Protocol):
    """Figures side by side under a title and a ``note``, with one legend."""

    @property
    def title(self) -> str: ...

    @property
    def note(self) -> str: ...

    @property
    def legend(self) -> Sequence[Line]: ...

    def figures(self) -> Iterable[Figure]: ...


@dataclass(frozen=True)
class Panel:
    """``ticks`` are words at places of the x axis."""

    title: str
    lines: Sequence[Line]
    ticks: Mapping[float, str] | None = None


@dataclass(frozen=True)
class Lines:
    """Panels with common axes, which are named ``x`` and ``y``."""

    title: str
    x: str
    y: str
    panels: Sequence[Panel]
    note: str = ""

    @property
    def legend(self) -> Sequence[Line]:
        return list({line.label: line for panel in self.panels for line in panel.lines}.values())

    def figures(self) -> Iterator[Figure]:
        points = [p for panel in self.panels for line in panel.lines for p in line.points]
        x = Axis.of([p.x for p in points], LEFT, WIDTH - RIGHT, any(panel.ticks for panel in self.panels))
        y = Axis.of([v for p in points for v in (p.y, *(p.spread or ()))], HEIGHT - BOTTOM, TOP)
        for panel in self.panels:
            parts = [part for line in panel.lines for part in drawn(line, lambda at, value: (x(at), y(value)))]
            title = f"{panel.title}: {self.y} over {self.x}"
            yield panel.title, chart(title, HEIGHT, [*self._frame(x, y, panel.ticks), *parts])

    def _frame(self, x: Axis, y: Axis, ticks: Mapping[float, str] | None) -> Iterator[str]:
        for value in y.ticks():
            yield f'<path class="grid" d="M{LEFT} {y(value):.1f}H{WIDTH - RIGHT}"/>'
            yield text(LEFT - 7, y(value) + 4.5, plain(value), "end")
        ticks = ticks or {value: plain(value) for value in x.ticks()}
        each = math.ceil(len(ticks) / LABELS)
        for i, (value, word) in enumerate(sorted(ticks.items())):
            yield f'<path class="grid" d="M{x(value):.1f} {TOP}V{HEIGHT - BOTTOM}"/>'
            if i % each == 0:
                yield text(x(value), HEIGHT - BOTTOM + 17, word, "middle")
        yield f'<path class="axis" d="M{LEFT} {TOP}V{HEIGHT - BOTTOM}H{WIDTH - RIGHT}"/>'
        yield text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, self.x, "middle", "name")
        yield text(4, 15, self.y, "start", "name")


@dataclass(frozen=True)
class Dots:
    """A row for every label in two columns, whose points have the place of the label in ``labels`` as their x."""

    title: str
    note: str
    labels: Sequence[str]
    legend: Sequence[Line]

    def figures(self) -> Iterator[Figure]:
        values = [v for line in self.legend for p in line.points for v in (p.y, *(p.spread or ()))]
        axis = Axis.of(values, 8, WIDTH - 20)
        for rows in _halves(self.labels):
            high = STEP * len(rows)
            parts = [f'<path class="grid" d="M{axis(tick):.1f} 0V{high}"/>' for tick in axis.ticks()]
            parts += [text(axis(tick), high + 15, plain(tick), "middle") for tick in axis.ticks()]
            for i in rows:
                top = STEP * (i - rows.start)
                parts += [text(0, top + 13, self.labels[i], "start", "name"),
                          f'<path class="grid" d="M0 {top + ROW}H{WIDTH}"/>']  # fmt: skip
            for line in self.legend:
                here = [replace(p, x=STEP * (p.x - rows.start) + ROW) for p in line.points if p.x in rows]
                parts += drawn(replace(line, points=here), lambda at, value: (axis(value), at))
            yield "", chart(f"{self.title}: {self.note}", high + 22, parts)


@dataclass(frozen=True)
class Bar:
    """``text`` is shown where it is pointed at, ``mark`` what the value is held against."""

    label: str
    value: float
    text: str
    mark: float


@dataclass(frozen=True)
class Bars:
    """Lengths in proportion to values, each under its label, in two columns."""

    title: str
    note: str
    bars: Sequence[Bar]
    legend: Sequence[Line] = ()

    def figures(self) -> Iterator[Figure]:
        scale = (WIDTH - VALUE) / max(max(bar.value, bar.mark) for bar in self.bars)
        for rows in _halves(self.bars):
            parts = [part for i in rows for part in _bar(self.bars[i], STEP * (i - rows.start), scale)]
            yield "", chart(f"{self.title}: {self.note}", STEP * len(rows), parts)


def _halves(items: Sequence[object]) -> list[range]:
    half = math.ceil(len(items) / 2)
    return [range(half), range(half, len(items))] if half > 1 else [range(len(items))]


def _bar(bar: Bar, top: float, scale: float) -> Iterator[str]:
    yield f'<g class="point bar"><title>{escape(bar.text)}</title>'
    yield text(0, top + 13, bar.label, "start", "name")
    yield f'<rect y="{top + 20}" width="{scale * max(bar.value, 0):.1f}" height="{BAR}"/>'
    yield f'<path class="mark" d="M{scale * bar.mark:.1f} {top + 18}v{BAR + 4}"/>'
    yield text(scale * max(bar.value, bar.mark) + 7, top + 31, f"{bar.value:.3g}", "start", "name")
    yield "</g>"
