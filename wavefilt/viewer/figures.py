"""The pictures of the traces before, after and removed: three figures with common axes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from bokeh.events import RangesUpdate, SelectionGeometry
from bokeh.models import (
    BasicTicker,
    BoxAnnotation,
    BoxSelectTool,
    BoxZoomTool,
    ColumnDataSource,
    HoverTool,
    LinearColorMapper,
    PanTool,
    Range1d,
    ResetTool,
    SaveTool,
    WheelZoomTool,
)
from bokeh.palettes import RdBu11, interp_palette
from bokeh.plotting import figure
from panel.io import hold

from wavefilt.arrays import Array
from wavefilt.plot.appearance import COLORS

from .panels import COLUMNS, PANELS, ROWS, WIGGLES, Panels, View
from .source import Source

FEW = 3
"""Traces up to which time runs to the right, and the pictures are one below the other."""
PALETTE = tuple(interp_palette(RdBu11, 255))
"""Blue to red by way of white: colour-blind readers can tell the signs apart."""
GAP_COLOR, WINDOW_COLOR = "#d9d9d9", "#009E73"
SMALL = """
@media (pointer: coarse) { .bk-events { touch-action: pan-y !important } }
@media (max-width: 600px) { :host { height: 340px !important } }
"""
"""On a phone a finger that moves up and down scrolls the page, and pictures are one below the other."""
IMAGE = ("image", "x", "y", "dw", "dh")
"""Columns of an image: its values, a corner, and its size."""


def empty(name: str, *columns: str) -> ColumnDataSource:
    """A source of this name without data yet."""
    return ColumnDataSource({column: [] for column in columns}, name=name)


class Pictures:
    """Traces as an image or as lines; drawn again in finer detail when a part is zoomed.

    ``on_window(first, last)`` is called with the samples of a window that the user drags.
    """

    def __init__(self, source: Source, on_window: Callable[[int, int], None]) -> None:
        self.source, self.panels, self.on_window = source, Panels(source.rows), on_window
        self.step = source.interval or 1.0
        self.kind, self.together, self.gain = "density", False, 1.0
        traces, samples = source.rows.shape
        self.horizontal = traces <= FEW
        if self.horizontal:
            self.kind = "wiggle"
        self.view = View(0, traces, 0, samples)
        self.time = Range1d(*self._ends(-0.5 * self.step, (samples - 0.5) * self.step))
        self.trace = Range1d(-1.0, traces) if traces > 1 else Range1d(*self._amplitudes())
        self.mapper = LinearColorMapper(palette=PALETTE, low=-1, high=1, nan_color=GAP_COLOR)
        self.images = {panel: empty(f"image-{panel}", *IMAGE) for panel in PANELS}
        self.lines = {panel: empty(f"line-{panel}", "x", "y") for panel in PANELS}
        self.areas = {panel: empty(f"area-{panel}", "x", "y") for panel in PANELS}
        self.windows = [BoxAnnotation(fill_color=WINDOW_COLOR, fill_alpha=0.2, visible=False) for _ in PANELS]
        self.figures = [self._figure(panel, window) for panel, window in zip(PANELS, self.windows, strict=True)]
        self.figures[0].on_event(RangesUpdate, self._zoomed)

    def show(self, after: Array) -> None:
        """Draw these traces as those after."""
        self.panels.show(after)
        self.draw("after", "removed")

    def style(self, kind: str, together: bool, gain: float) -> None:
        """How traces are drawn: "density" or "wiggle", on a scale of their own or ``together``, so much larger."""
        colors_alone = kind == self.kind == "density" and together == self.together
        self.kind, self.together, self.gain = kind, together, gain
        self.draw(*(() if colors_alone else PANELS))

    def mark(self, window: tuple[int, int] | None) -> None:
        """Show the noise window between these samples, or none."""
        for box in self.windows:
            box.visible = window is not None
            if window is not None:
                low, high = ((sample - 0.5) * self.step for sample in window)
                box.update(**({"left": low, "right": high} if self.horizontal else {"bottom": low, "top": high}))

    def draw(self, *names: str) -> None:
        """Send what is visible of some panels, and the limits of the colours."""
        high = (self.panels.scales(True)[0] if self.together else 1.0) / self.gain
        self.mapper.update(low=-high, high=high)
        with hold():  # in one message, after which the browser draws each once
            for panel in names:
                if self.kind == "density":
                    self.images[panel].data = self._placed(self.panels.image(panel, self.view, self.together))
                    if self.lines[panel].data["x"]:
                        self.lines[panel].data = self.areas[panel].data = {"x": [], "y": []}
                else:
                    line, area = self.panels.wiggles(panel, self.view, self.together, self.gain)
                    self.images[panel].data = {name: [] for name in IMAGE}
                    self.lines[panel].data, self.areas[panel].data = map(self._crossed, (line, area))

    def scale_text(self) -> str:
        """What the ends of the colours, or the widths of lines, are."""
        if len(self.source.rows) == 1:
            return "amplitude in the units of the data"
        if self.together:
            return f"all traces on one scale: ±{self.panels.scales(True)[0] / self.gain:.3g} in the units of the data"
        return f"each trace by the 99th percentile of its magnitudes before{f', / {self.gain:g}' * (self.gain != 1)}"

    def _figure(self, panel: str, window: BoxAnnotation) -> figure:
        zoom, select = BoxZoomTool(), BoxSelectTool(dimensions="width" if self.horizontal else "height")
        select.description = "Noise window: drag over samples that are noise alone"
        ranges = (
            {"x_range": self.time, "y_range": self.trace}
            if self.horizontal
            else {"x_range": self.trace, "y_range": self.time}
        )
        wheel = WheelZoomTool()
        tools = [zoom, select, PanTool(), wheel, ResetTool(), SaveTool()]
        drawn = figure(
            **ranges,
            name=panel,
            title=panel if panel != "removed" else "removed (before − after)",
            tools=tools,
            active_drag=zoom,
            height=200 if self.horizontal else 500,
            sizing_mode="stretch_width",
            stylesheets=[SMALL],
        )
        drawn.title.text_color = COLORS[panel]
        drawn.toolbar.logo = None
        drawn.grid.visible = False
        image = drawn.image("image", "x", "y", "dw", "dh", source=self.images[panel], color_mapper=self.mapper)
        drawn.patches("x", "y", source=self.areas[panel], color=COLORS[panel], fill_alpha=0.7, line_width=0)
        drawn.multi_line("x", "y", source=self.lines[panel], color=COLORS[panel], line_width=0.7)
        drawn.add_layout(window)
        time, trace = ("$x", "$y") if self.horizontal else ("$y", "$x")
        unit = " s" if self.source.interval else ""
        tips = [
            ("trace", f"{trace}{{0}}"),
            ("time" if unit else "sample", f"{time}{{0.0000}}{unit}"),
            ("value", "@image"),
        ]
        drawn.add_tools(HoverTool(renderers=[image], tooltips=tips))
        self._label(drawn)
        drawn.on_event(SelectionGeometry, self._selected)
        return drawn

    def _label(self, drawn: figure) -> None:
        time, trace = (drawn.xaxis, drawn.yaxis) if self.horizontal else (drawn.yaxis, drawn.xaxis)
        time.axis_label = "time from the first sample (s)" if self.source.interval else "sample"
        if len(self.source.rows) == 1:
            trace.axis_label = "amplitude (data units)"
            return
        trace.axis_label = "trace"
        trace.ticker = BasicTicker(mantissas=[1, 2, 5], min_interval=1)
        ids = self.source.recording.ids
        if ids and len(ids) <= 12:
            trace.major_label_overrides = dict(enumerate(ids))
            trace.axis_label = None
            if not self.horizontal:
                trace.major_label_orientation = 0.6

    def _ends(self, first: float, last: float) -> tuple[float, float]:
        """Time runs to the right, or downwards."""
        return (first, last) if self.horizontal else (last, first)

    def _amplitudes(self) -> tuple[float, float]:
        """Limits of the one trace, with a margin."""
        known = self.panels.before[np.isfinite(self.panels.before)]
        low, high = (min(float(known.min()), 0.0), max(float(known.max()), 0.0)) if known.size else (-1.0, 1.0)
        margin = 0.05 * (high - low) or 1.0
        return low - margin, high + margin

    def _placed(self, image: dict[str, list[Any]]) -> dict[str, list[Any]]:
        """An image by the axes of the figures."""
        found = {"image": image["image"]}
        for name, across, along in (("", "x", "y"), ("d", "dw", "dh")):
            trace, time = image[across], [self.step * place for place in image[along]]
            x, y = (time, trace) if self.horizontal else (trace, time)
            found |= {f"{name}w" if name else "x": x, f"{name}h" if name else "y": y}
        if self.horizontal:
            found["image"] = [np.ascontiguousarray(own.T) for own in image["image"]]
        return found

    def _crossed(self, points: dict[str, Array]) -> dict[str, list[Array]]:
        """Points by the axes of the figures, as one item: the browser indexes items, which takes long for points."""
        trace, time = [points["trace"].astype(np.float32)], [(self.step * points["sample"]).astype(np.float32)]
        return {"x": time, "y": trace} if self.horizontal else {"x": trace, "y": time}

    def _selected(self, event: SelectionGeometry) -> None:
        if event.final and event.geometry["type"] == "rect":
            low, high = sorted(event.geometry[f"{'x' if self.horizontal else 'y'}{end}"] for end in (0, 1))
            self.on_window(*(round(float(place) / self.step + 0.5) for place in (low, high)))

    def _zoomed(self, event: RangesUpdate) -> None:
        """Draw the visible part again, unless all of its samples are there already."""
        x, y = (event.x0, event.x1), (event.y0, event.y1)
        traces, time = (y, x) if self.horizontal else (x, y)
        rows = self.source.rows
        if len(rows) == 1:
            traces = (0.0, 0.0)
        view = View.of(rows, traces, (time[0] / self.step, time[1] / self.step))
        whole = len(rows) <= (COLUMNS if self.kind == "density" else WIGGLES) and rows.shape[1] <= ROWS
        if view != self.view and not whole:
            self.view = view
            self.draw(*PANELS)
