"""Noise that changes along a trace: a curve of its standard deviation in every band, by which coefficients are divided.

With σ(k) at coefficient k of a band and σ̄ its mean over the band, d(k) σ̄/σ(k) have steady noise σ̄, of which a rule
finds one threshold t a band as of any other: that of a coefficient is t σ(k)/σ̄. Once shrunk they are multiplied again.

Running noise: with h coefficients in half a window, block b has the coefficients from b h to before (b + 2) h, the last
one up to the end of the band, and σ_b = median|d|/0.6745 in it. Between the middles of two blocks, (b + 1) h - 1/2, σ
is interpolated linearly; before the first and after the last it is theirs. Half a window has `LEAST` / 2 periods of a
level, 2^j samples, at least. The medians are Donoho and Johnstone's estimate (1994), block by block.

Noise in intervals: σ = median|d|/0.6745 of each interval, as of a trace of its own (Lavielle, Stochastic Processes and
their Applications 83, 1999; `wvarchg` in MATLAB's toolbox); of `LEAST` periods around it where it has fewer.

Where samples are all equal, as in gaps that were filled with zeros, coefficients are 0 but for rounding. Those below
`DEAD` of the largest of a block or interval are left out if they are more than a quarter, and one without others, or
whose median is below `DEAD` of the largest median, has the noise of its neighbours.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from wavefilt.arrays import Array, Counts, DType, Floats
from wavefilt.statistics.batch import median
from wavefilt.statistics.summation import JoinedBlocks
from wavefilt.thresholding.rules import MAD_TO_SIGMA

LEAST = 32
"""Coefficients of whose median the noise is taken at least: its standard deviation is 20 %."""
DEAD = 1e-6
"""Share of the largest below which is rounding."""
AT_ONCE = 1 << 14
"""Coefficients that are divided at a time, and `MEDIANS` sorted."""
MEDIANS = 1 << 17


@dataclass(frozen=True)
class Curve:
    """The standard deviation of the noise of one band of rows, along the coefficients that rules count.

    In cell i, of the coefficients from ``edges[i - 1]`` to ``edges[i]``, it is ``low[:, i]`` + ``rise[:, i]`` u, where
    u goes from 0 to 1 in ``length`` coefficients. ``low`` and ``rise`` are (rows, cells).
    """

    edges: Counts
    low: Floats
    rise: Floats
    length: int

    def at(self, first: int, last: int, dtype: DType) -> Array:
        """From one coefficient to another, (rows, last - first); before and behind the band as at its ends."""
        begin, end = np.searchsorted(self.edges, (first, last - 1), "right").tolist()
        own, inner = slice(begin, end + 1), self.edges[begin:end]
        counts = np.diff(np.concatenate([[first], inner, [last]]))
        starts = np.concatenate([self.edges[begin - 1 : begin] if begin else [0], inner])
        places = np.arange(first, last) - np.repeat(starts, counts)
        share = ((places + 0.5) / self.length).astype(dtype)
        return np.asarray(
            np.repeat(self.low[:, own].astype(dtype), counts, axis=1)
            + np.repeat(self.rise[:, own].astype(dtype), counts, axis=1) * share
        )

    def mean(self, count: int) -> Floats:
        """Over a band of so many coefficients, (rows,)."""
        lengths = np.diff(np.concatenate([[0], self.edges, [count]]))
        weighted = (self.low + self.rise / 2) * lengths  # a matrix product would depend on the number of rows
        return np.asarray(weighted.sum(axis=1) / lengths.sum())

    def over(self, sigma: Floats) -> Curve:
        """Divided by this noise (rows or 1,); 1 for rows without noise, or where that is 0."""
        some = (sigma > 0) & self.low.any(axis=1)
        scale = np.where(some, sigma, 1)[:, None]
        low, rise = (
            np.where(some[:, None], values / scale, one) for values, one in ((self.low, 1.0), (self.rise, 0.0))
        )
        return replace(self, low=low, rise=rise)

    def of_row(self, row: int) -> Curve:
        """That of one of the rows."""
        return replace(self, low=self.low[row : row + 1], rise=self.rise[row : row + 1])

    def change(self, operation: np.ufunc, band: Array, first: int) -> None:
        """Divide or multiply the coefficients of a band by it in place, of which the first counted has this place."""
        together = max(AT_ONCE // max(len(band), 1), 64)
        for start in range(0, band.shape[1], together):
            own = band[:, start : start + together]
            operation(own, self.at(first + start, first + start + own.shape[1], own.real.dtype), out=own)


def half_window(window: float, level: int, step: int) -> int:
    """Coefficients, so many samples apart, of half a window of a level, which is given in samples."""
    return max(round(window / 2), LEAST // 2 << level) // step


def halves(count: int, half: int) -> Counts:
    """Where the halves of the blocks of a band begin, and the band's end: block b has the halves b and b + 1."""
    blocks = max(count // half - 1, 1)
    return np.append(np.minimum(half * np.arange(blocks + 1), count), count)


def running(band: Array, half: int, scale: float = MAD_TO_SIGMA) -> Curve:
    """Running noise of a band (rows, coefficients), ``scale`` times the medians."""
    return curve_of(block_medians(band, half), half, scale)


def block_medians(band: Array, half: int) -> Floats:
    """The median of |d| in each block of a band (rows, coefficients), (rows, blocks)."""
    ends = halves(band.shape[1], half)
    found, whole = np.empty((len(band), len(ends) - 2)), len(ends) - 3
    together = max(MEDIANS // (2 * half * len(band)), 1)
    for start in range(0, whole, together):
        stop = min(start + together, whole)
        part = np.abs(band[:, start * half : (stop + 1) * half])
        blocks = np.lib.stride_tricks.sliding_window_view(part, 2 * half, axis=1)[:, ::half]
        found[:, start:stop] = noise_median(blocks)
    found[:, -1] = noise_median(np.abs(band[:, ends[-3] :]))
    return found


def noise_median(magnitudes: Array) -> Floats:
    """The median along the last axis of those that are not rounding; 0 where these are too few."""
    found = median(magnitudes)
    rounding = magnitudes <= DEAD * magnitudes.max(axis=-1, keepdims=True)
    many = np.count_nonzero(rounding, axis=-1) > magnitudes.shape[-1] // 4
    for place in zip(*np.nonzero(many), strict=True):
        own = magnitudes[place][~rounding[place]]
        found[place] = median(own) if own.size >= LEAST // 2 else 0
    return found


class BlockTally:
    """`block_medians` of one row (coefficients,) whose parts come in any order; half a block or two are kept."""

    def __init__(self, count: int, half: int) -> None:
        self._half, self._ends = half, halves(count, half)
        self._parts, self._waiting = JoinedBlocks(self._ends), dict[int, Array]()
        self.medians = np.empty((1, len(self._ends) - 2))

    def add(self, place: int, details: Array) -> None:
        """Count coefficients, of which the first has this place."""
        for first, last, joined in self._parts.add(place, details):
            if last - first > 1:
                self.medians[:, first : last - 1] = block_medians(joined[None], self._half)
            bounds = self._ends[first : last + 1] - self._ends[first]
            if first > 0:
                self._join(first - 1, joined[: bounds[1]])
            if last < len(self._ends) - 1:
                self._join(last - 1, joined[bounds[-2] :])

    def _join(self, block: int, half: Array) -> None:
        """Half of a block: its median if the other one was there before."""
        if block in self._waiting:
            self.medians[:, block] = noise_median(np.abs(np.concatenate([self._waiting.pop(block), half]))[None])
        else:
            self._waiting[block] = half.copy()


def curve_of(medians: Floats, half: int, scale: float = MAD_TO_SIGMA) -> Curve:
    """Running noise from the medians of blocks (rows, blocks)."""
    sigma = scale * _alive(medians)
    low = np.concatenate([sigma[:, :1], sigma], axis=1)
    rise = np.diff(np.concatenate([low, sigma[:, -1:]], axis=1), axis=1)
    return Curve(half * np.arange(1, low.shape[1]), low, rise, half)


def in_intervals(band: Array, edges: Counts, least: int, scale: float = MAD_TO_SIGMA) -> Curve:
    """Noise of a band (rows, coefficients) in intervals, which end at these coefficients but the last.

    Of so many coefficients at ``least``.
    """
    count, found = band.shape[1], list[Floats]()
    for begin, end in zip([0, *edges.tolist()], [*edges.tolist(), count], strict=True):
        more = max(least - (end - begin), 0)
        last = min(max(begin - more // 2, 0) + max(least, end - begin), count)
        found.append(noise_median(np.abs(band[:, max(min(begin, last - least), 0) : last])))
    sigma = scale * _alive(np.stack(found, axis=1))
    return Curve(edges, sigma, np.zeros_like(sigma), 1)


def _alive(medians: Floats) -> Floats:
    """With those of the neighbours, interpolated, where there is no noise; all 0 where there is none at all."""
    dead = medians <= DEAD * medians.max(axis=1, keepdims=True)
    if not dead.any():
        return medians
    found, places = medians.copy(), np.arange(medians.shape[1])
    for row, gone in zip(found, dead, strict=True):
        if gone.all():
            row[:] = 0
        else:
            row[gone] = np.interp(places[gone], places[~gone], row[~gone])
    return found


def at_samples(points: Sequence[float], first: float, step: int, count: int) -> Counts:
    """The first of ``count`` coefficients at or after each of these samples; coefficient 0 is at ``first``."""
    return np.array([min(max(math.ceil((point - first) / step), 0), count) for point in points], np.int64)
