"""The traces to draw, before, after and removed, decimated where they are many."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from wavefilt.arrays import Array, Floats
from wavefilt.recording import Recording

PANELS = ("before", "after", "removed")

BINS = 1200
"""Most time intervals drawn per trace, each by its smallest and largest sample."""
POINTS = 64
"""Traces of at most this many samples have each marked by a point."""
CHUNK = 1 << 20
"""Samples processed at a time, so that a large record needs little additional memory."""


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
        values: Floats = _finite((self.before if panel == "before" else self.after)[start:stop]).real
        return values

    def extremes(self, panel: str, step: int) -> tuple[Floats, Floats]:
        """Smallest and largest of every ``step`` samples, NaN where all of them are in a gap."""
        low, high = [np.empty(0)], [np.empty(0)]
        whole = step * max(1, CHUNK // step)
        for start in range(0, len(self), whole):
            part = self.part(panel, start, start + whole)
            edges = np.arange(0, len(part), step)
            low.append(np.fmin.reduceat(part, edges))
            high.append(np.fmax.reduceat(part, edges))
        return np.concatenate(low), np.concatenate(high)

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
        self.timed = all(dt is not None and 0 < dt < math.inf for dt in before.intervals)
        self._intervals = [float(dt or 1) if self.timed else 1.0 for dt in before.intervals]
        self.complex = any(np.iscomplexobj(trace) for trace in before.traces[:1])
        self.duration = max(n * dt for n, dt in zip(self._lengths, self._intervals, strict=True))
        self._measure()

    def __len__(self) -> int:
        return len(self._lengths)

    def pair(self, index: int) -> Pair:
        return Pair(self._before[index], self._after[index], self._intervals[index])

    @property
    def span(self) -> tuple[float, float]:
        """Limits of the time axis, with a margin where single samples are drawn as points."""
        margin = min(self._intervals) / 2 if max(self._lengths) <= POINTS else 0.0
        return -margin, self.duration - margin

    @property
    def time_label(self) -> str:
        return "time (s)" if self.timed else "time (samples)"

    @property
    def frequency_label(self) -> str:
        return "frequency (Hz)" if self.timed else "frequency (cycles/sample)"

    def spread(self, most: int) -> list[int]:
        """At most about ``most`` traces, evenly spread."""
        return list(range(0, len(self), math.ceil(len(self) / most)))

    def like_strongest(self, most: int) -> list[Pair]:
        """At most about ``most`` traces with signal and sampled like the strongest, evenly spread."""
        interval = self._intervals[self.strongest]
        alike = [i for i in np.flatnonzero(self.energies > 0) if self._intervals[i] == interval]
        return [self.pair(int(i)) for i in alike[:: math.ceil(len(alike) / most) or 1]]

    def _measure(self) -> None:
        """Largest magnitude, energy of each trace before, and the share of all energy that was removed."""
        self.peak = max(float(np.fmax.reduce(np.abs(_finite(x)), None, initial=0)) for _, x, _ in self._blocks())
        scale = self.peak or 1.0  # squares of samples of any size stay finite
        self.energies = np.zeros(len(self))
        removed = 0.0
        for rows, before, after in self._blocks():
            x, y = _finite(before) / scale, _finite(after) / scale
            self.energies[rows] += np.nansum(np.abs(x) ** 2, axis=1)
            removed += float(np.nansum(np.abs(x - y) ** 2))
        self.strongest = int(np.argmax(self.energies))
        total = float(self.energies.sum())
        self.share = removed / total if total > 0 else 0.0

    def _blocks(self) -> Iterator[tuple[slice, Array, Array]]:
        """Rows, and their samples before and after, in 2-D blocks of about `CHUNK` samples."""
        both = (self._before, self._after)
        array = all(isinstance(traces, np.ndarray) for traces in both)
        rows = max(1, CHUNK // max(1, max(self._lengths))) if array else 1
        for row in range(0, len(self), rows):
            block = slice(row, row + rows)
            x, y = (np.ma.atleast_2d(t[block]) if array else np.ma.atleast_2d(t[row]) for t in both)
            for start in range(0, x.shape[1], CHUNK):
                yield block, x[:, start : start + CHUNK], y[:, start : start + CHUNK]


def _finite(samples: Array) -> Array:
    """The samples as float64 or complex128, NaN for what is masked or not finite."""
    wide = np.complex128 if np.iscomplexobj(samples) else np.float64
    values = np.ma.filled(np.ma.asarray(samples).astype(wide), np.nan)
    return np.where(np.isfinite(values), values, np.nan)


def _shape(lengths: list[int]) -> str:
    sizes = f"{min(lengths)} to {max(lengths)}" if len(set(lengths)) > 1 else f"{max(lengths, default=0)}"
    return f"{len(lengths)} traces of {sizes} samples"


def middle(values: Floats) -> float:
    """Mean of the samples outside gaps, 0 if there are none."""
    known = values[np.isfinite(values)]
    return float(known.mean()) if known.size else 0.0
