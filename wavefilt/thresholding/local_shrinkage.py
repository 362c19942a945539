"""Local James-Stein shrinkage: each coefficient by the energy around it, in time and in the adjacent levels.

For noise of standard deviation σ in a band of level j, with R the mean of |W|²/σ² every 2^j samples, up to `REACH` of
these intervals to either side, with weights that fall by a factor `NEXT` from one to the next, and A the mean of R over
the bands of levels j - 1, j and j + 1 at the same time, in which the own one counts `OWN` times, a coefficient W is
multiplied by max(0, 1 - λ/A). The approximation is a band as well, the one that follows the coarsest details; bands at
the ends have one neighbour. James and Stein (1961) shrink a mean of normal variables so, Stein (1981) gives the risk;
Cai and Silverman (Sankhyā 63, 2001, NeighCoeff) shrink single coefficients by their neighbours in time. That levels
share their energy, and the numbers below, come from records of earthquakes in real noise
(docs/quality.md). Equal weights over more intervals gain there, in coda, but lose on single
arrivals, by a decibel and more; weights that fall gain on both. Either half of the records above 1 Hz chooses λ = 2 by
itself, those of raw ones 2.5 to 4; greater values cut the coda and weak P.

A band with threshold 0 is unchanged, and no neighbour of others.

In two dimensions A is the mean of |W|²/σ² over 3 x 3 coefficients of the band itself, and the approximation stays as it
is: other bands are other directions, and the parent's energy lost 1.5 to 2 dB in white noise. Of complex coefficients,
R and A are means of |W|²/2σ², with the σ of a real or imaginary part.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from wavefilt.arrays import Array, Floats
from wavefilt.threads import parallel

LAMBDA = 2.0
"""λ where σ is estimated from medians, which the signal raises a little."""
LAMBDA_MEASURED = 2.5
"""λ where σ is known: from a window of noise alone, or given."""
SPECTRA = 1 << 16
"""Coefficients of windows that are shrunk at a time: they fit the cache of a core."""

REACH = 4
"""Intervals of 2^j samples, at level j, over which |W|² is averaged to either side: some four periods."""
NEXT = math.exp(-1 / 3)
"""The weight of |W|² an interval farther away."""
OWN = 2
"""How often the energy of a band counts beside that of each adjacent one."""


@dataclass(frozen=True)
class Grid:
    """Where the coefficients of a band are in time.

    Coefficient k, from 0 to ``count`` - 1, is at ``first`` + ``step`` k, in samples; those of all bands of a transform
    count from the same sample. The mean takes every ``spacing``-th coefficient, ``half`` of them to either side.
    ``periodic`` bands go round.

    Bands of panels have a grid along each axis, with the reach of `in_plane`.
    """

    count: int
    step: int
    first: float
    spacing: int
    half: int
    periodic: bool

    @property
    def in_plane(self) -> Grid:
        """The same for panels, whose means take 3 x 3 intervals of 2^j samples, twice in each where there are more."""
        spacing = max(self.spacing // 2, 1)
        return replace(self, spacing=spacing, half=self.spacing // spacing)

    def nearest(self, own: slice, band: Grid) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Of coefficients of this band, the nearest of another one, which may lie beyond its ends.

        Twice the same, or the two nearest where they are equally far.
        """
        times = self.first + self.step * np.arange(own.start, own.stop)
        place = (times - band.first) / band.step
        return np.ceil(place - 0.5).astype(np.int64), np.floor(place + 0.5).astype(np.int64)

    def inside(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Places beyond the ends, in the band: round it, or those at the ends."""
        return places % self.count if self.periodic else np.clip(places, 0, self.count - 1)


@dataclass(frozen=True)
class Local:
    """Shrinks all bands together; thresholds are σ √λ."""

    def shrink(self, bands: Sequence[Array], thresholds: Floats, grids: Sequence[Grid], parts: int = 1) -> list[Array]:
        """Bands (rows, coefficients), finest first and the approximation last, shrunk by ``thresholds`` (bands, rows).

        Real or complex; thresholds are those of one of the ``parts`` of a coefficient. Energies are summed in float64.
        This is the reference for compiled backends.
        """
        thresholds = thresholds * parts**0.5
        energies, shrunk = dict[int, Floats](), list[Array]()
        counts = (thresholds > 0).astype(np.float64)[..., None]
        for i, (band, grid) in enumerate(zip(bands, grids, strict=True)):
            for j in range(max(i - 1, 0), min(i + 2, len(bands))):
                if j not in energies:
                    energies[j] = mean(relative_energy(bands[j], thresholds[j]), grids[j])
            energies.pop(i - 2, None)  # three are needed at a time
            total, number = OWN * energies[i], OWN * counts[i]
            for j in (i - 1, i + 1):
                if 0 <= j < len(bands):
                    low, high = map(grids[j].inside, grid.nearest(slice(0, grid.count), grids[j]))
                    total += (energies[j][:, low] + energies[j][:, high]) / 2
                    number += counts[j]
            with np.errstate(divide="ignore", invalid="ignore"):
                gain = np.maximum(1 - number / total, 0)
            gain = np.where(counts[i] > 0, gain, 1).astype(band.real.dtype)
            shrunk.append(np.asarray(band * gain))
        return shrunk

    def shrink_planes(
        self,
        bands: Sequence[Array],
        thresholds: Floats,
        grids: Sequence[tuple[Grid, Grid]],
        parts: int = 1,
        directions: int = 1,
    ) -> list[Array]:
        """Bands (panels, rows, columns), each shrunk by the energy around in the band itself, as ``grids`` say.

        Real or complex, in the order of ``thresholds`` (bands, panels), which are those of one of the ``parts`` of a
        coefficient. How many ``directions`` a level has is nothing to it.
        """
        shrunk = []
        for band, limit, pair in zip(bands, thresholds, grids, strict=True):
            energy = relative_energy(band, limit)
            for axis, grid in enumerate(pair, 1):
                energy = plane_mean(energy, axis, grid)
            with np.errstate(divide="ignore"):
                gain = np.maximum(1 - parts / energy, 0)
            gain = np.where(limit[:, None, None] > 0, gain, 1).astype(band.real.dtype)
            shrunk.append(np.asarray(band * gain))
        return shrunk

    def shrink_spectra(self, bands: Sequence[Array], thresholds: Floats, parts: int = 2) -> list[Array]:
        """Spectra of windows (panels, ..., wavenumbers), a band a frequency, by the mean over 3 x 3 of their energy.

        Frequencies in order, from zero to Nyquist's or back: beyond them are the conjugates at opposite wavenumbers, as
        samples are real. Each neighbour counts by its own threshold (bands, panels), that of one of its ``parts``.
        """
        waves, real = bands[0].shape[-1], bands[0].real.dtype
        flat = [band.reshape(-1, waves) for band in bands]
        shrunk, each = list(map(np.empty_like, flat)), len(flat[0]) // thresholds.shape[1]
        there = (thresholds > 0).astype(real)
        scale = np.divide(1, thresholds, out=np.zeros_like(thresholds), where=thresholds > 0)
        scale = np.minimum(scale, np.finfo(real).max).astype(real)
        number = 3 * parts * _over_frequencies(there[..., None])
        together = max(SPECTRA // (len(bands) * waves), 1)

        def shrink(start: int, stop: int) -> None:
            for first in range(start, stop, together):
                own = slice(first, min(first + together, stop))
                panel = np.arange(own.start, own.stop) // each
                block = np.stack([band[own] for band in flat])
                with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
                    relative = block * scale[:, panel, None]
                    energy = _over_frequencies(np.square(relative.real) + np.square(relative.imag))
                    energy += np.roll(energy, 1, -1) + np.roll(energy, -1, -1)
                    gain = np.maximum(1 - number[:, panel] / energy, 0)
                gain[there[:, panel] == 0] = 1
                for band, values in zip(shrunk, block * gain, strict=True):
                    band[own] = values

        parallel(shrink, len(flat[0]), together)
        return [values.reshape(band.shape) for values, band in zip(shrunk, bands, strict=True)]


def _over_frequencies(x: Array) -> Array:
    """The sum of three neighbours along the first axis, of which the ends are reflected at opposite wavenumbers."""
    total, opposite = x.copy(), -np.arange(x.shape[-1]) % x.shape[-1]
    total[1:] += x[:-1]
    total[:-1] += x[1:]
    total[0] += x[1][:, opposite]
    total[-1] += x[-2][:, opposite]
    return total


def plane_mean(x: Floats, axis: int, grid: Grid) -> Floats:
    """The mean around each element along an axis, reflected beyond its ends, or round it."""
    reach, count, sums = grid.half * grid.spacing, 2 * grid.half + 1, np.zeros_like(x)
    padding = [(reach, reach) if i == axis else (0, 0) for i in range(x.ndim)]
    padded = np.pad(x, padding, "wrap" if grid.periodic else "symmetric")
    for k in range(count):
        own = slice(k * grid.spacing, k * grid.spacing + x.shape[axis])
        sums += padded[(slice(None),) * axis + (own,)]
    return sums / count


def relative_energy(band: Array, limit: Floats) -> Floats:
    """|W|²/limit² of a band (rows, ...); 0 where the limit of the row is 0."""
    scale = np.divide(1, limit, out=np.zeros_like(limit), where=limit > 0).reshape(-1, *[1] * (band.ndim - 1))
    with np.errstate(over="ignore"):
        return np.square(np.abs(band).astype(np.float64) * np.minimum(scale, np.finfo(np.float64).max))


def weights(half: int) -> Floats:
    """Those of the mean around a coefficient that has all neighbours, ``half`` to either side."""
    found = NEXT ** np.abs(np.arange(-half, half + 1.0))
    return np.asarray(found / found.sum())


def mean(power: Floats, grid: Grid, ratio: float = NEXT) -> Floats:
    """The mean around each coefficient in time, over those that there are; weights fall by the ratio at each step."""
    total, number = np.zeros(power.shape), np.zeros(grid.count)
    for k in range(-grid.half, grid.half + 1):
        places, weight = np.arange(grid.count) + k * grid.spacing, ratio ** abs(k)
        there = np.ones(grid.count, bool) if grid.periodic else (places >= 0) & (places < grid.count)
        total[:, there] += weight * power[:, grid.inside(places[there])]
        number += weight * there
    return np.asarray(total / number)


def low_pass_lag(low_pass: Sequence[float]) -> float:
    """By how much a low-pass coefficient of an orthogonal bank lies later than the high-pass one, in its own steps.

    Both by the centres of their filters' energy, Σ q h_q² / Σ h_q², which add up to the length less 1 in a bank of
    quadrature mirror filters (Percival and Walden 2000, section 4.11). Detail levels are centred alike.
    """
    squares = np.square(low_pass)
    return float((len(squares) - 1) / 2 - squares @ np.arange(len(squares)) / squares.sum())


def details_first(level: int, middle: float) -> float:
    """Time of the first coefficient of this level, by the middle of its filter's support.

    ``middle`` is that of the first level, relative to sample 0.
    """
    return math.ldexp(middle, level) - middle
