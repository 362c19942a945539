"""The traces to draw, before, after and removed, decimated where they are many."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from wavefilt.arrays import Array, Floats
from wavefilt.recording import Recording
from wavefilt.report import energies, finite

PANELS = ("before", "after", "removed")

BINS = 1200
"""Most time intervals drawn per trace, each by its smallest and largest sample."""
POINTS = 64
"""Traces of at most this many samples have each marked by a point."""


@dataclass(frozen=True)
class Pair:
    """One trace before and after, 1-D arrays of one length, and its sampling interval (1 if unknown)."""

    before: Array
    after: Array
    interval: float

    def __len__(self) -> int:
        return len(self.before)

    def part(self, panel: str, start: int = 0, stop: int | None = None) -> Floats:
        """Samples ``start`` to ``stop`` of a panel of `PANELS` as real float64, gaps as NaN."""
        if panel == "removed":
            return self.part("before", start, stop) - self.part("after", start, stop)
        return finite((self.before if panel == "before" else self.after)[start:stop]).real

    def extremes(self, panel: str, step: int) -> tuple[Floats, Floats]:
        """Smallest and largest of every ``step`` samples, NaN where all of them are in a gap."""
        samples, edges = self.part(panel), np.arange(0, len(self), step)
        return np.fmin.reduceat(samples, edges), np.fmax.reduceat(samples, edges)

    def envelope(self, panel: str) -> tuple[Floats, Floats]:
        """Times and samples to draw: all of them, or the smallest and largest of each of `BINS` intervals."""
        if len(self) <= 2 * BINS:
            return np.arange(len(self), dtype=np.float64) * self.interval, self.part(panel)
        step = math.ceil(len(self) / BINS)
        low, high = self.extremes(panel, step)
        middles = (np.arange(len(low), dtype=np.float64) + 0.5) * (step * self.interval)
        return np.repeat(middles, 2), np.column_stack([low, high]).ravel()

    def column(self, panel: str, duration: float) -> Floats:
        """The trace as an image column of `BINS` rows over ``duration``: the largest sample by magnitude in each."""
        column = np.full(BINS, np.nan)
        low, high = self.extremes(panel, max(1, math.ceil(len(self) / BINS)))
        values = np.where(-low > high, low, high)
        rows = max(1, round(BINS * len(self) * self.interval / duration))
        if values.size:
            column[:rows] = values[np.arange(rows) * len(values) // rows]
        return column


class Gather:
    """The traces before and after, their time axis, and the energies that choose and scale what is drawn."""

    def __init__(self, before: Recording, after: Recording) -> None:
        shapes = [[len(trace) for trace in recording.traces] for recording in (before, after)]
        if shapes[0] != shapes[1]:
            raise ValueError(f"before has {_shape(shapes[0])} and after {_shape(shapes[1])}; they must be the same")
        if not any(shapes[0]):
            raise ValueError(f"{before.source}: no samples to draw")
        self._before, self._after, self._lengths = before.traces, after.traces, shapes[0]
        # with one unknown interval there is no common time axis: it is in samples then
        timed = all(dt is not None and 0 < dt < math.inf for dt in before.intervals)
        self._intervals = [float(dt or 1) if timed else 1.0 for dt in before.intervals]
        self.time_label = "time (s)" if timed else "time (samples)"
        self.frequency_label = "frequency (Hz)" if timed else "frequency (cycles/sample)"
        self.complex = any(np.iscomplexobj(trace) for trace in before.traces[:1])
        self.duration = max(n * dt for n, dt in zip(self._lengths, self._intervals, strict=True))
        self.energies, removed, self.peak = energies(before, after)
        self.strongest = int(np.argmax(self.energies))
        self.share = removed / (float(self.energies.sum()) or 1.0)

    def __len__(self) -> int:
        return len(self._lengths)

    def pair(self, index: int) -> Pair:
        return Pair(self._before[index], self._after[index], self._intervals[index])

    @property
    def span(self) -> tuple[float, float]:
        """Limits of the time axis, with a margin where single samples are drawn as points."""
        margin = min(self._intervals) / 2 if max(self._lengths) <= POINTS else 0.0
        return -margin, self.duration - margin

    def like_strongest(self, most: int) -> list[Pair]:
        """At most about ``most`` traces with signal and sampled like the strongest, evenly spread."""
        interval = self._intervals[self.strongest]
        alike = [i for i in np.flatnonzero(self.energies > 0) if self._intervals[i] == interval]
        return [self.pair(int(i)) for i in alike[:: math.ceil(len(alike) / most) or 1]]


def _shape(lengths: list[int]) -> str:
    sizes = f"{min(lengths)} to {max(lengths)}" if len(set(lengths)) > 1 else f"{max(lengths, default=0)}"
    return f"{len(lengths)} traces of {sizes} samples"


def middle(values: Floats) -> float:
    """Mean of the samples outside gaps, 0 if there are none."""
    known = values[np.isfinite(values)]
    return float(known.mean()) if known.size else 0.0
