"""Spectra, spectrograms and thresholds below the pictures."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from bokeh.models import ColorBar, HoverTool, LinearColorMapper, Range1d
from bokeh.palettes import Magma256
from bokeh.plotting import figure

from wavefilt.arrays import Array, Floats
from wavefilt.engine import Outcome
from wavefilt.plot.appearance import COLORS, SIGMA_COLOR, THRESHOLD_COLOR
from wavefilt.plot.spectra import RANGE_DB

from .figures import IMAGE, empty
from .panels import PANELS
from .source import Source
from .spectra import along, averaging, decibels, transformed

MOST = 48
"""Traces whose spectra are averaged, evenly spread over the live ones."""


class Details:
    """Figures of the mean spectra, of the spectrograms of a trace, and of noise and thresholds by level."""

    def __init__(self, source: Source) -> None:
        self.source, self.interval = source, source.interval or 1.0
        self.rows = source.rows.real
        sample = self.rows[:, :: max(1, self.rows.shape[1] // 1024)].astype(np.float64)
        energies = np.nansum(np.abs(sample) ** 2, axis=1) if sample.size else np.zeros(len(self.rows))
        live = np.flatnonzero(source.recording.live)
        self.averaged = live[:: math.ceil(len(live) / MOST) or 1]
        self.trace = int(np.argmax(np.where(source.recording.live, energies, -1)))
        self.peak = float(np.nanmax(np.abs(sample), initial=0)) or 1.0
        unit = "Hz" if source.interval else "cycles per sample"
        self.frequency, nyquist = f"frequency ({unit})", 0.5 / self.interval
        self.spectra = {panel: empty(f"spectrum-{panel}", "frequency", "level") for panel in PANELS}
        self.levels = empty("levels", "band", "sigma", "threshold")
        self.spectrograms = {panel: empty(f"spectrogram-{panel}", *IMAGE) for panel in PANELS}
        self.mean: Array | None = None
        self.spectra_figure = self._spectra(nyquist)
        self.levels_figure = self._levels()
        self.spectrogram_figures = self._spectrograms(nyquist)

    def show(self, after: Array, outcome: Outcome | None) -> None:
        """Draw those of these traces, and the thresholds of ``outcome``; of a band-pass there are none."""
        self.after = after.real
        self._draw_spectra()
        self.draw_spectrograms()
        self.levels.data = by_level(outcome) if outcome else {name: [] for name in self.levels.data}

    def choose(self, trace: int) -> None:
        """Show the spectrograms of this trace."""
        self.trace = min(max(trace, 0), len(self.rows) - 1)
        self.draw_spectrograms()

    def _draw_spectra(self) -> None:
        if not len(self.averaged):
            return
        windows = averaging(self.rows.shape[1])
        if self.mean is None:
            self.mean = transformed(self.rows[self.averaged], *windows, self.peak)
        found = _panels(self.mean, transformed(self.after[self.averaged], *windows, self.peak))
        spectra = {panel: np.abs(values).mean(axis=(0, 1)) for panel, values in found.items()}
        largest = float(spectra["before"].max())
        for panel, source in self.spectra.items():
            level = decibels(spectra[panel], largest)
            source.data = {"frequency": np.linspace(0, 0.5 / self.interval, len(level)), "level": level}

    def draw_spectrograms(self) -> None:
        samples = self.rows.shape[1]
        windows = along(samples)
        own = (transformed(rows[[self.trace]], *windows, self.peak)[0].T for rows in (self.rows, self.after))
        found = {panel: np.abs(values) for panel, values in _panels(*own).items()}
        largest = float(found["before"].max())
        for panel, drawn in zip(PANELS, self.spectrogram_figures, strict=True):
            level = decibels(found[panel], largest).astype(np.float32)
            corner = {"x": [0.0], "y": [0.0], "dw": [samples * self.interval], "dh": [0.5 / self.interval]}
            self.spectrograms[panel].data = {"image": [level], **corner}
            drawn.title.text = f"spectrogram {panel}, trace {self.trace} (dB)"

    def _spectra(self, nyquist: float) -> figure:
        drawn = _figure("spectra", "mean amplitude spectrum", self.frequency, "dB below the maximum before")
        drawn.x_range, drawn.y_range = Range1d(0, nyquist), Range1d(-RANGE_DB - 5, 14)  # room for the legend
        for panel, source in self.spectra.items():
            drawn.line("frequency", "level", source=source, color=COLORS[panel], line_width=1.6, legend_label=panel)
        return _with_legend(drawn)

    def _levels(self) -> figure:
        drawn = _figure("thresholds", "noise and thresholds by level", "level (1 = finest)", "data units", "log")
        drawn.xaxis.ticker.min_interval = 1
        marks = (("sigma", SIGMA_COLOR, "noise σ", "circle"), ("threshold", THRESHOLD_COLOR, "threshold", "square"))
        for name, color, label, marker in marks:
            own: dict[str, Any] = {"source": self.levels, "color": color, "legend_label": label}
            drawn.line("band", name, line_width=1.6, **own)
            drawn.scatter("band", name, size=7, marker=marker, **own)
        drawn.add_tools(HoverTool(tooltips=[("level", "@band"), ("σ", "@sigma{0.0000}"), ("threshold", "@threshold")]))
        return _with_legend(drawn)

    def _spectrograms(self, nyquist: float) -> list[figure]:
        mapper = LinearColorMapper(palette=Magma256, low=-RANGE_DB, high=0)
        time, frequency = Range1d(0, self.rows.shape[1] * self.interval), Range1d(0, nyquist)
        label = "time (s)" if self.source.interval else "sample"
        figures = []
        for source in self.spectrograms.values():
            drawn = _figure("spectrogram", "spectrogram", label, self.frequency, x_range=time, y_range=frequency)
            image = drawn.image("image", "x", "y", "dw", "dh", source=source, color_mapper=mapper)
            drawn.add_tools(HoverTool(renderers=[image], tooltips=[(self.frequency, "$y"), ("dB", "@image{0.0}")]))
            drawn.add_layout(ColorBar(color_mapper=mapper, width=8, padding=4), "right")
            figures.append(drawn)
        return figures


def _panels(before: Array, after: Array) -> dict[str, Array]:
    """What is linear in the samples, of what was removed too."""
    return dict(zip(PANELS, (before, after, before - after), strict=True))


def by_level(outcome: Outcome) -> dict[str, Floats]:
    """Medians over the traces of noise and threshold of each level (band of a panel), finest first.

    NaN where there is none, which a logarithmic axis leaves out.
    """
    depth = max((len(estimate.sigma) for estimate in outcome.estimates), default=0)
    medians = np.full((2, depth), np.nan)
    for band in range(depth):
        own = [(e.sigma[band], e.thresholds[band]) for e in outcome.estimates if len(e.sigma) > band]
        for row, values in enumerate(map(np.concatenate, zip(*own, strict=True))):
            if (values > 0).any():
                medians[row, band] = np.median(values[values > 0])
    return {"band": np.arange(1.0, depth + 1), "sigma": medians[0], "threshold": medians[1]}


def _figure(name: str, title: str, x: str, y: str, scale: str = "linear", **ranges: Any) -> figure:
    drawn = figure(
        name=name,
        title=title,
        x_axis_label=x,
        y_axis_label=y,
        y_axis_type=scale,
        tools="xbox_zoom,reset,save",
        height=260,
        sizing_mode="stretch_width",
        **ranges,
    )
    drawn.toolbar.logo = None
    drawn.toolbar.autohide = True
    return drawn


def _with_legend(drawn: figure) -> figure:
    drawn.legend.orientation = "horizontal"
    drawn.legend.background_fill_alpha = 0.7
    drawn.legend.border_line_color = None
    drawn.legend.padding, drawn.legend.spacing = 2, 14
    drawn.legend.label_text_font_size = "11px"
    return drawn
