"""The traces to draw, before, after and removed, decimated where they are many."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from wavefilt.arrays import Array, Floats
from wavefilt.report import SECOND, energies, finite, utc

if TYPE_CHECKING:
    from wavefilt.recording import Recording

PANELS = ("before", "after", "removed")

BINS = 1200
"""Most time intervals drawn per trace, each by its smallest and largest sample."""
POINTS = 64
"""Traces of at most this many samples have each marked by a point."""


@dataclass(frozen=True)
class Pair:
    """One trace before and after, 1-D arrays of one length, its sampling interval (1 if unknown) and first time."""

    before: Array
    after: Array
    interval: float
    start: float = 0.0

    @property
    def stop(self) -> float:
        return self.start + len(self) * self.interval

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

    def envelope(self, panel: str, bins: int) -> tuple[Floats, Floats]:
        """Times and samples to draw: all of them, or the smallest and largest of each of so many intervals."""
        if len(self) <= 2 * bins:
            return self.start + np.arange(len(self), dtype=np.float64) * self.interval, self.part(panel)
        step = math.ceil(len(self) / bins)
        low, high = self.extremes(panel, step)
        middles = (np.arange(len(low), dtype=np.float64) + 0.5) * (step * self.interval)
        return self.start + np.repeat(middles, 2), np.column_stack([low, high]).ravel()


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
        self.day: np.datetime64 | None = None
        self._starts, self.names = [0.0] * len(self._lengths), list[str]()
        self.time_label = "time (s)" if timed else "time (samples)"
        if timed and before.starts:
            self.day, first = min(before.starts).astype("datetime64[D]"), min(before.starts)
            self._starts = [float((start - self.day) / SECOND) for start in before.starts]
            self.names = list(before.by_id)
            self.time_label = f"UTC, from {utc(first).replace('T', ' ').removesuffix('Z')}"
        self._rows = list(before.by_id.values()) if self.names else [[i] for i in range(len(self._lengths))]
        self.frequency_label = "frequency (Hz)" if timed else "frequency (cycles/sample)"
        self.complex = any(np.iscomplexobj(trace) for trace in before.traces[:1])
        self.start = min(self._starts)
        self.stop = max(self.pair(i).stop for i in range(len(self._lengths)))
        self.energies, removed, self.peak = energies(before, after)
        self.strongest = int(np.argmax(self.energies))
        self.share = removed / (float(self.energies.sum()) or 1.0)

    def __len__(self) -> int:
        """Rows that are drawn: a trace each, or all traces of an id."""
        return len(self._rows)

    def pair(self, trace: int) -> Pair:
        return Pair(self._before[trace], self._after[trace], self._intervals[trace], self._starts[trace])

    def name(self, trace: int) -> str:
        """The id of a trace, or its number; nothing where there is one row."""
        row = next(i for i, traces in enumerate(self._rows) if trace in traces)
        return "" if len(self) == 1 else self.names[row] if self.names else f"trace {trace}"

    def line(self, row: int, panel: str) -> tuple[Floats, Floats]:
        """Times and samples to draw, NaN between the traces of an id."""
        pairs = [self.pair(trace) for trace in self._rows[row]]
        total, parts = sum(map(len, pairs)) or 1, []
        for pair in pairs:
            parts += [pair.envelope(panel, max(2, BINS * len(pair) // total)), (np.array([np.nan]),) * 2]
        times, samples = (np.concatenate(values) for values in zip(*parts[:-1], strict=True))
        return times, samples

    def column(self, row: int, panel: str) -> Floats:
        """An image column of `BINS` places over the duration: the largest sample by magnitude in each."""
        column, scale = np.full(BINS, np.nan), BINS / (self.stop - self.start)
        for pair in (self.pair(trace) for trace in self._rows[row]):
            low, high = pair.extremes(panel, max(1, math.ceil(len(pair) / BINS)))
            values = np.where(-low > high, low, high)
            first = min(int((pair.start - self.start) * scale), BINS - 1)
            places = min(max(1, round(len(pair) * pair.interval * scale)), BINS - first)
            if values.size:
                column[first : first + places] = values[np.arange(places) * len(values) // places]
        return column

    @property
    def span(self) -> tuple[float, float]:
        """Limits of the time axis, with a margin where single samples are drawn as points."""
        margin = min(self._intervals) / 2 if max(self._lengths) <= POINTS else 0.0
        return self.start - margin, self.stop - margin

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
