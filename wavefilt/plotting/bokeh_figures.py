"""The figures of the viewer, by Bokeh: traces before, after and the residual; spectra, thresholds and spectrograms."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from bokeh import models
from bokeh.events import RangesUpdate, SelectionGeometry
from bokeh.layouts import group_tools
from bokeh.palettes import Magma256, RdBu11, interp_palette
from bokeh.plotting import figure
from panel.io import hold

from wavefilt.arrays import Array
from wavefilt.containers import Container
from wavefilt.engine import Outcome

from . import data

TITLES = {"residual": "residual (before − after)"}
AGC_SHARE = 0.15
"""Length of the window of automatic gain control, as a share of the traces."""
FEW = 3
"""Most traces that are drawn horizontally, with the figures below each other."""
PALETTE = tuple(interp_palette(RdBu11, 255))
"""Blue to red through white: colour-blind readers can distinguish the signs."""
PHONE = """
@media (pointer: coarse) { .bk-events { touch-action: pan-y !important } }
@media (max-width: 600px) { :host { height: 340px !important } }
"""
"""On a phone, a finger that moves up and down scrolls the page, and figures are lower."""
IMAGE = ("image", "x", "y", "dw", "dh")
"""Columns of the data of an image: values, a corner, and its size."""


def _empty(name: str, *columns: str) -> models.ColumnDataSource:
    return models.ColumnDataSource({column: [] for column in columns}, name=name)


def toolbar(figures: Sequence[figure]) -> models.GridPlot:
    """Return one toolbar for all figures, which have none of their own."""
    for drawn in figures:
        drawn.toolbar_location = None
    tools = [tool for drawn in figures for tool in drawn.toolbar.tools]
    grouped = group_tools(tools)
    zoom = next(one for one in grouped if isinstance(one.tools[0], models.BoxZoomTool))
    bar = models.Toolbar(tools=grouped, active_drag=zoom, logo=None)
    return models.GridPlot(children=[], toolbar=bar, toolbar_location="above", sizing_mode="stretch_width")


class SectionFigures:
    """Three figures of traces as an image or as wiggles, drawn again in finer detail when a part is zoomed.

    ``on_window(first, last)`` is called with the samples of a window that the user drags.
    """

    def __init__(self, traces: Container, on_window: Callable[[int, int], None]) -> None:
        count, samples = traces.rows.shape
        self.section = data.SectionImages(traces.rows, half=max(8, round(samples * AGC_SHARE / 2)))
        self.traces, self.on_window = traces, on_window
        self.step, (self.start, self.time_label) = traces.interval or 1.0, time_axis(traces)
        self.horizontal = count <= FEW
        self.display = "wiggle" if count <= data.WIGGLES else "density"
        self.together, self.gain = False, 1.0
        self.view = data.visible(traces.rows, (0, count), (0, samples))
        ends = self._time(-0.5), self._time(samples - 0.5)
        self.time_range = models.Range1d(*(ends if self.horizontal else ends[::-1]))  # to the right, or downwards
        self.trace_range = models.Range1d(-1.0, count) if count > 1 else models.Range1d(*self._amplitudes())
        self.mapper = models.LinearColorMapper(palette=PALETTE, low=-1, high=1, nan_color=data.GAP_COLOR)
        self.images = {part: _empty(f"image-{part}", *IMAGE) for part in data.PARTS}
        self.lines = {part: _empty(f"line-{part}", "x", "y") for part in data.PARTS}
        self.areas = {part: _empty(f"area-{part}", "x", "y") for part in data.PARTS}
        self.windows = [
            models.BoxAnnotation(fill_color=data.SIGMA_COLOR, fill_alpha=0.2, visible=False) for _ in data.PARTS
        ]
        self.figures = [self._figure(part, window) for part, window in zip(data.PARTS, self.windows, strict=True)]
        self.figures[0].on_event(RangesUpdate, self._zoomed)

    def show(self, after: Array | None, window: tuple[int, int] | None) -> None:
        """Draw these denoised traces and the residual, or nothing in their places, and the noise window, if any."""
        self.section.after = None if after is None else after.real
        for box in self.windows:
            box.visible = window is not None
            if window is not None:
                low, high = (self._time(sample - 0.5) for sample in window)
                box.update(**({"left": low, "right": high} if self.horizontal else {"bottom": low, "top": high}))
        self.draw("after", "residual")

    def style(self, display: str, together: bool, gain: float, levelled: Sequence[str]) -> None:
        """Draw traces as "density" or "wiggle", each on its own scale or all ``together``, amplified by ``gain``.

        The parts in ``levelled`` have automatic gain control.
        """
        same = (display, together, levelled) == (self.display, self.together, self.section.levelled)
        colors_only = same and display == "density"
        self.display, self.together, self.gain, self.section.levelled = display, together, gain, levelled
        length = 2 * self.section.half * self.step
        for part, drawn in zip(data.PARTS, self.figures, strict=True):
            window = f"{length:.2g} s" if self.traces.interval else f"{length:g} samples"
            drawn.title.text = TITLES.get(part, part) + f", AGC {window}" * (part in levelled)
        self.draw(*(() if colors_only else data.PARTS))

    def draw(self, *parts: str) -> None:
        """Send the visible section of some parts, and the limits of the colours."""
        high = (self.section.scales(True)[0] if self.together else 1.0) / self.gain
        self.mapper.update(low=-high, high=high)
        with hold():  # one message, so that the browser draws each figure once
            for part in parts:
                image, line, area = ({column: list[Any]() for column in columns} for columns in (IMAGE, "xy", "xy"))
                drawn = part == "before" or self.section.after is not None
                if drawn and self.display == "density":
                    image = self._image(part)
                elif drawn:
                    wiggles = self.section.wiggles(part, self.view, self.together, self.gain)
                    line, area = (self._points(*points) for points in wiggles)
                self.images[part].data, self.lines[part].data, self.areas[part].data = image, line, area

    def scale_text(self) -> str:
        """Return the amplitude of full colour or of the width of a wiggle, in words."""
        if len(self.traces.rows) == 1:
            return "amplitude in data units"
        if self.together:
            return f"all traces on one scale: ±{self.section.scales(True)[0] / self.gain:.3g} data units"
        clipped = "clipped at" if self.display == "density" else "scaled by"
        percentile = f"each trace {clipped} the {data.CLIP['density']:g}th percentile of the input"
        return percentile + f", divided by {self.gain:g}" * (self.gain != 1)

    def _time(self, sample: Any) -> Any:
        """Return the times of samples, an array or a number, on the axis."""
        return self.start + self.step * sample

    def _sample(self, time: float) -> float:
        """Return the place of a time among the samples."""
        return (time - self.start) / self.step

    def _figure(self, part: str, window: models.BoxAnnotation) -> figure:
        select = models.BoxSelectTool(dimensions="width" if self.horizontal else "height")
        select.description = "Noise window: drag over samples that contain only noise"
        zoom, ranges = models.BoxZoomTool(), (self.time_range, self.trace_range)
        drawn = figure(
            **dict(zip(("x_range", "y_range") if self.horizontal else ("y_range", "x_range"), ranges, strict=True)),
            name=part,
            title=TITLES.get(part, part),
            tools=[zoom, select, models.PanTool(), models.WheelZoomTool(), models.ResetTool(), models.SaveTool()],
            active_drag=zoom,
            height=200 if self.horizontal else 500,
            sizing_mode="stretch_width",
            stylesheets=[PHONE],
        )
        drawn.title.text_color = data.COLORS[part]
        drawn.grid.visible = False
        image = drawn.image(*IMAGE, source=self.images[part], color_mapper=self.mapper)
        drawn.patches("x", "y", source=self.areas[part], color=data.COLORS[part], fill_alpha=0.7, line_width=0)
        drawn.multi_line("x", "y", source=self.lines[part], color=data.COLORS[part], line_width=0.7)
        drawn.add_layout(window)
        time, trace = ("$x", "$y") if self.horizontal else ("$y", "$x")
        moment = ("time", f"{time}{{0.0000}} s") if self.traces.interval else ("sample", f"{time}{{0}}")
        tips = [("trace", f"{trace}{{0}}"), moment, ("value", "@image")]
        drawn.add_tools(models.HoverTool(renderers=[image], tooltips=tips, visible=False))
        self._label(drawn)
        drawn.on_event(SelectionGeometry, self._selected)
        return drawn

    def _label(self, drawn: figure) -> None:
        time, trace = (drawn.xaxis, drawn.yaxis) if self.horizontal else (drawn.yaxis, drawn.xaxis)
        time.axis_label = self.time_label
        if len(self.traces.rows) == 1:
            trace.axis_label = "amplitude (data units)"
            return
        trace.axis_label = "trace"
        trace.ticker = models.BasicTicker(mantissas=[1, 2, 5], min_interval=1)
        ids = self.traces.recording.ids
        if ids and len(ids) <= 12:
            trace.major_label_overrides = dict(enumerate(ids))
            trace.axis_label = None
            if not self.horizontal:
                trace.major_label_orientation = 0.6

    def _amplitudes(self) -> tuple[float, float]:
        """Return the limits of a single trace, with a margin."""
        low, high = (float(end(self.section.before, initial=0)) for end in (np.nanmin, np.nanmax))
        margin = 0.05 * (high - low) or 1.0
        return low - margin, high + margin

    def _image(self, part: str) -> dict[str, list[Any]]:
        """Return the data of an image along the axes of the figures."""
        image, (trace, sample, traces, samples) = self.section.image(part, self.view, self.together)
        across, along = (trace, traces), (self._time(sample), self.step * samples)
        (x, dw), (y, dh) = (along, across) if self.horizontal else (across, along)
        image = np.ascontiguousarray(image.T) if self.horizontal else image
        return {"image": [image], "x": [x], "y": [y], "dw": [dw], "dh": [dh]}

    def _points(self, traces: Array, samples: Array) -> dict[str, list[Array]]:
        """Return the points of all lines as one item: the browser indexes items, which is slow for single points."""
        trace, time = [traces.astype(np.float32)], [self._time(samples)]
        return {"x": time, "y": trace} if self.horizontal else {"x": trace, "y": time}

    def _selected(self, event: SelectionGeometry) -> None:
        if event.final and event.geometry["type"] == "rect":
            low, high = sorted(event.geometry[f"{'x' if self.horizontal else 'y'}{end}"] for end in (0, 1))
            self.on_window(*(round(self._sample(float(place)) + 0.5) for place in (low, high)))

    def _zoomed(self, event: RangesUpdate) -> None:
        """Draw the visible section again, unless all samples are drawn already."""
        x, y = (event.x0, event.x1), (event.y0, event.y1)
        traces, time = (y, x) if self.horizontal else (x, y)
        rows = self.traces.rows
        if len(rows) == 1:
            traces = (0.0, 0.0)
        view = data.visible(rows, traces, (self._sample(time[0]), self._sample(time[1])))
        most = data.MOST_TRACES if self.display == "density" else data.WIGGLES
        if view != self.view and (len(rows) > most or rows.shape[1] > data.MOST_SAMPLES):
            self.view = view
            self.draw(*data.PARTS)


def time_axis(traces: Container) -> tuple[float, str]:
    """Return the time of the first sample and the label of the time axis; of trace 0 if delays differ."""
    if not traces.interval:
        return 0.0, "sample"
    delays, label = traces.recording.delays, data.time_label(traces.recording)
    if len(set(delays)) > 1:
        label = label.replace(" (s)", " of trace 0 (s)")
    return next(iter(delays), 0.0), label


class DetailFigures:
    """Figures of mean spectra, of noise and thresholds by level, and of the spectrograms of a trace."""

    def __init__(self, traces: Container) -> None:
        self.interval, self.rows, recording = traces.interval or 1.0, traces.rows.real, traces.recording
        self.start, time = time_axis(traces)
        self.parts: tuple[str, ...] = data.PARTS[:1]
        self.after = self.rows
        sample = self.rows[:, :: max(1, self.rows.shape[1] // 1024)].astype(np.float64)
        energies = np.nansum(sample**2, axis=1)
        live = np.flatnonzero(recording.live)
        self.averaged = live[:: math.ceil(len(live) / data.AVERAGED) or 1]
        self.trace = int(np.argmax(np.where(recording.live, energies, -1)))
        self.peak = float(np.nanmax(np.abs(sample), initial=0)) or 1.0
        self.spectra = {part: _empty(f"spectrum-{part}", "frequency", "level") for part in data.PARTS}
        self.levels = _empty("levels", "band", "sigma", "threshold")
        self.images = {part: _empty(f"spectrogram-{part}", *IMAGE) for part in data.PARTS}
        frequency = f"frequency ({'Hz' if traces.interval else 'cycles per sample'})"
        self.spectra_figure = self._spectra(frequency)
        self.levels_figure = self._levels()
        self.spectrogram_figures = self._spectrograms(frequency, time)

    def show(self, after: Array | None, outcome: Outcome | None) -> None:
        """Draw the spectra of these denoised traces, and the thresholds of ``outcome``; a band-pass has none.

        Without denoised traces, only the traces before are drawn.
        """
        self.parts = data.PARTS[:1] if after is None else data.PARTS
        self.after = self.rows if after is None else after.real
        if len(self.averaged):
            spectra = data.mean_spectra(self.rows[self.averaged], self.after[self.averaged], self.peak)
            for part, source in self.spectra.items():
                level = spectra[part] if part in self.parts else np.empty(0)
                source.data = {"frequency": np.linspace(0, 0.5 / self.interval, len(level)), "level": level}
        self.draw_spectrograms(self.trace)
        sigma, threshold = data.noise_and_thresholds(outcome.estimates if outcome else [])
        word = "band" if outcome and len(sigma) > outcome.level else "level"  # sections and packets
        self.levels_figure.xaxis.axis_label = f"{word} (1 = finest)"
        positive = (np.where(values > 0, values, np.nan) for values in (sigma, threshold))  # on a logarithmic axis
        self.levels.data = dict(
            zip(("band", "sigma", "threshold"), (np.arange(1.0, len(sigma) + 1), *positive), strict=True)
        )

    def draw_spectrograms(self, trace: int) -> None:
        """Draw the spectrograms of this trace."""
        self.trace = min(max(trace, 0), len(self.rows) - 1)
        levels = data.spectrograms(self.rows[self.trace], self.after[self.trace], self.peak)
        place = [self.start], [0.0], [self.rows.shape[1] * self.interval], [0.5 / self.interval]
        for part, drawn in zip(data.PARTS, self.spectrogram_figures, strict=True):
            image = levels[part].astype(np.float32)
            values = ([image], *place) if part in self.parts else [[]] * len(IMAGE)
            self.images[part].data = dict(zip(IMAGE, values, strict=True))
            drawn.title.text = f"spectrogram {part}, trace {self.trace} (dB)"

    def _spectra(self, frequency: str) -> figure:
        drawn = _detail("spectra", "mean amplitude spectrum", frequency, "dB below the maximum before")
        drawn.x_range, drawn.y_range = models.Range1d(0, 0.5 / self.interval), models.Range1d(-data.RANGE_DB - 5, 4)
        for part, source in self.spectra.items():
            drawn.line("frequency", "level", source=source, color=data.COLORS[part], line_width=1.6, legend_label=part)
        return _with_legend(drawn)

    def _levels(self) -> figure:
        title, levels = "noise and thresholds by level", self.levels
        drawn = _detail("thresholds", title, "", "data units", y_axis_type="log")
        drawn.xaxis.ticker.min_interval, drawn.axis.minor_tick_line_color = 1, None
        marks = (
            ("sigma", data.SIGMA_COLOR, "noise σ", "circle"),
            ("threshold", data.THRESHOLD_COLOR, "threshold", "square"),
        )
        for name, color, label, marker in marks:
            drawn.line("band", name, line_width=1.6, source=levels, color=color, legend_label=label)
            drawn.scatter("band", name, size=7, marker=marker, source=levels, color=color, legend_label=label)
        tips = [("number", "@band"), ("σ", "@sigma{0.0000}"), ("threshold", "@threshold")]
        drawn.add_tools(models.HoverTool(tooltips=tips, visible=False))
        return _with_legend(drawn)

    def _spectrograms(self, frequency: str, time: str) -> list[figure]:
        mapper = models.LinearColorMapper(palette=Magma256, low=-data.RANGE_DB, high=0)
        ranges = {
            "x_range": models.Range1d(self.start, self.start + self.rows.shape[1] * self.interval),
            "y_range": models.Range1d(0, 0.5 / self.interval),
        }
        figures = []
        for source in self.images.values():
            drawn = _detail("spectrogram", "spectrogram", time, frequency, **ranges)
            image = drawn.image(*IMAGE, source=source, color_mapper=mapper)
            tips = [(frequency, "$y"), ("dB", "@image{0.0}")]
            drawn.add_tools(models.HoverTool(renderers=[image], tooltips=tips, visible=False))
            drawn.add_layout(models.ColorBar(color_mapper=mapper, width=8, padding=4), "right")
            figures.append(drawn)
        return figures


def _detail(name: str, title: str, x: str, y: str, **more: Any) -> figure:
    tools = [models.BoxZoomTool(), models.ResetTool(), models.SaveTool()]
    size: dict[str, Any] = {"height": 260, "sizing_mode": "stretch_width"}
    return figure(name=name, title=title, x_axis_label=x, y_axis_label=y, tools=tools, **size, **more)


def _with_legend(drawn: figure) -> figure:
    look = {"margin": 0, "padding": 2, "spacing": 14, "label_text_font_size": "11px"}
    drawn.add_layout(drawn.legend[0], "above")
    drawn.legend[0].update(orientation="horizontal", background_fill_alpha=0.7, border_line_color=None, **look)
    return drawn
