"""The kinds of plot on the page of `wavefilt bench report`."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from wavefilt.plot.appearance import LARGE, SMALL, style

from .drawing import HEIGHT, PALETTE, WIDTH, Drawing, Line, draw, scale

if TYPE_CHECKING:
    from matplotlib.figure import Figure as MplFigure

ROW = 42
"""Height of a bar or of a row of dots, with its label."""
Figure = tuple[str, str]
"""A caption and the SVG under it."""


@dataclass(frozen=True)
class Plot:
    """Drawings side by side under a title and a ``note``, with one legend."""

    title: str
    note: str
    legend: Sequence[Line]

    def figures(self, prefix: str = "") -> Iterator[Figure]:
        """The ids in the drawings begin anew with each ``prefix``."""
        for i, (caption, drawing) in enumerate(self.drawings()):
            yield caption, drawing.svg(f"{prefix} {i}")

    def drawings(self) -> Iterator[tuple[str, Drawing]]:
        raise NotImplementedError

    def _halves(self, count: int) -> list[range]:
        """Rows in two columns."""
        half = math.ceil(count / 2)
        return [range(half), range(half, count)] if half > 1 else [range(count)]


@dataclass(frozen=True)
class Panel:
    """``ticks`` are words at places of the x axis."""

    title: str
    lines: Sequence[Line]
    ticks: Mapping[float, str] | None = None


@dataclass(frozen=True)
class Lines(Plot):
    """Panels with common axes, which are named ``x`` and ``y``."""

    x: str
    y: str
    panels: Sequence[Panel]

    @staticmethod
    def of(title: str, x: str, y: str, panels: Sequence[Panel]) -> Lines:
        """With every line of the panels in the legend."""
        legend = {line.label: line for panel in panels for line in panel.lines}
        return Lines(title, "", [*legend.values()], x, y, panels)

    def drawings(self) -> Iterator[tuple[str, Drawing]]:
        points = [p for panel in self.panels for line in panel.lines for p in line.points]
        values = [value for p in points for value in (p.y, *(p.spread or ()))]
        for panel in self.panels:
            drawing = Drawing(f"{panel.title}: {self.y} over {self.x}", HEIGHT, (58, 14, 28, 48))
            axes = drawing.axes
            scale(axes.xaxis, [p.x for p in points], panel.ticks)
            scale(axes.yaxis, values)
            axes.set_xlabel(self.x, color=PALETTE["ink"], labelpad=8)
            axes.set_title(self.y, loc="left", x=-54 / (WIDTH - 72), y=1.02, color=PALETTE["ink"])
            axes.update_datalim([(p.x, value) for p in points for value in (p.y, *(p.spread or ()))])
            for line in panel.lines:
                drawing.add(line)
            yield panel.title, drawing

    def picture(self, title: str) -> MplFigure:
        """All panels in one figure, with the legend at its side."""
        from matplotlib.figure import Figure as MplFigure

        figure = MplFigure(figsize=(4.6 * len(self.panels) + 2.4, 4.8), facecolor="white", layout="constrained")
        every = [p for panel in self.panels for line in panel.lines for p in line.points]
        axes_of = figure.subplots(1, len(self.panels), sharex=True, sharey=True, squeeze=False)[0]
        for axes, panel in zip(axes_of, self.panels, strict=True):
            style(axes, grid=True)
            scale(axes.xaxis, [p.x for p in every], panel.ticks)
            scale(axes.yaxis, [p.y for p in every])
            axes.set(title=panel.title, xlabel=self.x)
            for line in panel.lines:
                points = [replace(p, text=p.text if line.look.marker else "") for p in line.points]
                draw(axes, replace(line, points=points))
        axes_of[0].set_ylabel(self.y)
        for line in self.legend:
            colour, face = PALETTE[line.look.colour], PALETTE["paper" if line.look.hollow else line.look.colour]
            dash, marker = line.look.dash or "none", line.look.marker or "none"
            axes_of[0].plot([], [], color=colour, linestyle=dash, marker=marker, markerfacecolor=face, label=line.label)
        figure.legend(loc="outside right center", fontsize=SMALL, frameon=False)
        figure.suptitle(title, fontsize=LARGE)
        return figure


@dataclass(frozen=True)
class Dots(Plot):
    """A row for every label in two columns, whose points have the place of the label in ``labels`` as their x."""

    labels: Sequence[str]

    def drawings(self) -> Iterator[tuple[str, Drawing]]:
        values = [value for line in self.legend for p in line.points for value in (p.y, *(p.spread or ()))]
        for rows in self._halves(len(self.labels)):
            drawing = Drawing(f"{self.title}: {self.note}", ROW * len(rows) + 22, (8, 20, 0, 22))
            axes = drawing.axes
            scale(axes.xaxis, values)
            axes.update_datalim([(value, 0) for value in values])
            axes.set(ylim=(len(rows), 0), yticks=[i + 0.65 for i in range(len(rows))], yticklabels=[])
            axes.spines[:].set_visible(False)
            for line in self.legend:
                here = [replace(p, x=p.x - rows.start + 0.65) for p in line.points if p.x in rows]
                drawing.add(replace(line, points=here), across=True)
            for i in rows:
                axes.text(0, i - rows.start + 0.3, self.labels[i], transform=axes.get_yaxis_transform())
            yield "", drawing


@dataclass(frozen=True)
class Bar:
    """``text`` is shown where it is pointed at, ``mark`` what the value is compared with."""

    label: str
    value: float
    text: str
    mark: float


@dataclass(frozen=True)
class Bars(Plot):
    """Lengths in proportion to values, each under its label, in two columns."""

    bars: Sequence[Bar]

    def drawings(self) -> Iterator[tuple[str, Drawing]]:
        longest = max(max(bar.value, bar.mark) for bar in self.bars)
        units = 1 / ((WIDTH - 52) / longest)
        for rows in self._halves(len(self.bars)):
            drawing = Drawing(f"{self.title}: {self.note}", ROW * len(rows), (0, 0, 0, 0))
            drawing.axes.set(xlim=(0, units * WIDTH), ylim=(ROW * len(rows), 0))
            drawing.axes.set_axis_off()
            for top, bar in zip(range(0, ROW * len(rows), ROW), (self.bars[i] for i in rows), strict=True):
                drawing.add_bar(top + 20, max(bar.value, 0), bar.text)
                drawing.axes.plot([bar.mark, bar.mark], [top + 18, top + 35], color=PALETTE["ink"], linewidth=2)
                drawing.axes.text(0, top + 13, bar.label)
                drawing.axes.text(max(bar.value, bar.mark) + 7 * units, top + 31, f"{bar.value:.3g}")
            yield "", drawing
