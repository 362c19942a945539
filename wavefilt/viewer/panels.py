"""Traces as they are drawn: the visible part, decimated to about the pixels of a screen."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from wavefilt.arrays import Array, Floats

PANELS = ("before", "after", "removed")
COLUMNS, ROWS = 500, 1100
"""Most traces and samples of an image."""
WIGGLES, POINTS = 60, 1000
"""Most traces drawn as lines, and about the points of each."""
REACH = 1.5
"""Traces by which a line reaches beyond its own place at most."""
PERCENTILE = 99.0
"""Of the magnitudes of a trace before: what is drawn as 1."""


@dataclass(frozen=True)
class View:
    """Traces from ``first`` and samples from ``start`` that are visible."""

    first: int
    last: int
    start: int
    stop: int

    @classmethod
    def of(cls, rows: Array, traces: tuple[float, float], samples: tuple[float, float]) -> View:
        """Between places on axes on which traces and samples are numbers: all that is touched, and one at least."""
        limits = []
        for (low, high), count in zip((traces, samples), rows.shape, strict=True):
            low, high = sorted((low, high))
            first = min(max(math.floor(low), 0), count - 1)
            limits += [first, max(min(math.ceil(high) + 1, count), first + 1)]
        return cls(*limits)

    @property
    def traces(self) -> slice:
        return slice(self.first, self.last)

    @property
    def samples(self) -> slice:
        return slice(self.start, self.stop)


class Panels:
    """The traces before and after, real, with the amplitude that is drawn as 1 for each."""

    def __init__(self, before: Array) -> None:
        self.before = self.after = before.real
        self.means, self.peaks = _levels(self.before)

    def show(self, after: Array) -> None:
        """Take these as the traces after."""
        self.after = after.real

    def values(self, panel: str, traces: slice, samples: slice) -> Array:
        """A part of a panel, without the mean that the trace has before."""
        before, after = self.before[traces, samples], self.after[traces, samples]
        if panel == "removed":
            return np.asarray(before - after)
        own = before if panel == "before" else after
        return np.asarray(own - self.means[traces, None].astype(own.dtype))

    def scales(self, together: bool) -> Floats:
        """The amplitude of each trace that is drawn as 1; of all traces, their largest."""
        largest = self.peaks.max() or 1.0
        return np.full_like(self.peaks, largest) if together else np.maximum(self.peaks, largest / 100)

    def image(self, panel: str, view: View, together: bool) -> dict[str, list[object]]:
        """An image, time along its rows: relative to the scale of each trace, or ``together`` in the data's units.

        Of samples of several times and traces that share a place it shows the largest by that. ``x`` and ``y`` are its
        corner in traces and samples, ``dw`` and ``dh`` its size.
        """
        values = self.values(panel, view.traces, view.samples)
        across, along = (math.ceil(count / most) for count, most in zip(values.shape, (COLUMNS, ROWS), strict=True))
        low, high = _extremes(values, values, along, 1)
        if not together:
            low, high = (extreme / self.scales(False)[view.traces, None] for extreme in (low, high))
        low, high = _extremes(low, high, across, 0)
        values = np.where(-low > high, low, high)
        width, height = len(values) * across, values.shape[1] * along
        image = np.ascontiguousarray(values.T, np.float32)
        return {"image": [image], "x": [view.first - 0.5], "y": [view.start - 0.5], "dw": [width], "dh": [height]}

    def wiggles(
        self, panel: str, view: View, together: bool, gain: float = 1.0
    ) -> tuple[dict[str, Array], dict[str, Array]]:
        """Lines, and areas of their positive side, as ``trace`` and ``sample``; NaN between traces.

        ``gain`` multiplies them. A single trace has no area and is in the data's units, its mean included.
        """
        traces = slice(view.first, view.last, math.ceil((view.last - view.first) / WIGGLES))
        values, places = _envelope(self.values(panel, traces, view.samples), view.start)
        time = np.append(places, np.nan)
        if len(self.before) == 1:
            mean = 0.0 if panel == "removed" else self.means[0]
            line = {"trace": np.append(values[0] + mean, np.nan), "sample": time}
            return line, {"trace": np.empty(0), "sample": np.empty(0)}
        numbers = np.arange(traces.start, traces.stop, traces.step, dtype=np.float64)[:, None]
        shifts = traces.step * np.clip(0.7 * gain * values / self.scales(together)[traces, None], -REACH, REACH)
        line = {"trace": _joined(numbers + shifts), "sample": np.tile(time, len(values))}
        filled = numbers + np.maximum(np.nan_to_num(shifts), 0)
        filled = np.hstack([numbers, filled, numbers])
        ends = np.concatenate([places[:1], places, places[-1:], [np.nan]])
        return line, {"trace": _joined(filled), "sample": np.tile(ends, len(values))}


def _levels(rows: Array) -> tuple[Floats, Floats]:
    """Mean and `PERCENTILE` of the magnitudes without it of each trace, from some thousand samples; 0 of none."""
    sample = rows[:, :: max(1, rows.shape[1] // 1024)].astype(np.float64)
    there = np.isfinite(sample)
    counts = np.maximum(there.sum(axis=1), 1)
    means = np.where(there, sample, 0).sum(axis=1) / counts
    magnitudes = np.sort(np.where(there, np.abs(sample - means[:, None]), np.inf), axis=1)
    places = np.minimum(np.ceil(PERCENTILE / 100 * counts).astype(int), counts) - 1
    peaks = np.take_along_axis(magnitudes, places[:, None], axis=1)[:, 0]
    return means, np.where(np.isfinite(peaks), peaks, 0.0)


def _envelope(values: Array, start: int) -> tuple[Array, Array]:
    """Samples and their places; of many the smallest and the largest of each interval."""
    count = values.shape[1]
    if count <= 2 * POINTS:
        return values, np.arange(start, start + count, dtype=np.float64)
    every = math.ceil(2 * count / POINTS)
    places = np.repeat(np.arange(start, start + count, every) + (every - 1) / 2, 2)
    return np.stack(_extremes(values, values, every, 1), axis=-1).reshape(len(values), -1), places


def _extremes(low: Array, high: Array, every: int, axis: int) -> tuple[Array, Array]:
    """Smallest of the low and largest of the high ones of every so many along an axis; NaN of gaps alone.

    Ten times as fast as NumPy's reduceat.
    """
    low, high = np.moveaxis(low, axis, 0), np.moveaxis(high, axis, 0)
    lowest, highest = low[::every].copy("K"), high[::every].copy("K")
    for place in range(1, every):
        for extreme, own, found in ((np.fmin, low, lowest), (np.fmax, high, highest)):
            other = own[place::every]
            extreme(found[: len(other)], other, out=found[: len(other)])
    return np.moveaxis(lowest, 0, axis), np.moveaxis(highest, 0, axis)


def _joined(rows: Array) -> Array:
    """All rows as one, NaN after each."""
    return np.hstack([rows, np.full((len(rows), 1), np.nan)]).ravel()
