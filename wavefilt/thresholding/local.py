"""The rules that shrink coefficients by the energy of the coefficients around them, or of a block of coefficients.

**js**, local James-Stein shrinkage. For noise of standard deviation σ in a band of level j, R is the mean of |W|²/σ²
every 2^j samples, up to `REACH` such intervals to either side, with weights that fall by a factor `NEXT` from one to
the next. A is the mean of R over the bands of levels j - 1, j and j + 1 at the same time, where the band itself counts
`OWN` times. A coefficient W is multiplied by max(0, 1 - λ/A). The approximation is a band too, next to the coarsest
details; bands at the ends have one neighbour. James and Stein (1961) shrink a mean of normal variables this way, Stein
(1981) gives the risk, and Cai and Silverman (Sankhyā 63, 2001, NeighCoeff) shrink single coefficients by their
neighbours in time. The numbers below were chosen on earthquake records in real noise (docs/quality.md).

For sections, A is the mean of |W|²/σ² over 3 x 3 coefficients of the band itself, and the approximation is unchanged:
other bands are other directions, and the parent's energy lost 1.5 to 2 dB in white noise. For complex coefficients, R
and A are means of |W|²/2σ², with the σ of a real or imaginary part.

**bivariate**. For a coefficient y1 and its parent y2, the coefficient of the next coarser level at the same place, in
noise of standard deviation σ_n, the most likely signal in the model of Sendur and Selesnick (IEEE Trans. Signal
Process. 50, 2002) is y1 · max(r - √3 σ_n²/σ, 0) / r with r = √(|y1|² + |y2|²). The signal's variance around the
coefficient is σ² = max(mean(|y|²) - σ_n², 0) over a window of its band (IEEE Signal Process. Lett. 9, 2002). Here y2 is
multiplied by σ_n of the child's band over that of the parent's, because noise is not white, and is 0 in the coarsest
bands. For complex coefficients, σ_n and σ are those of a real or imaginary part: the mean is halved, and magnitudes are
shrunk. In units of the squares of the thresholds σ_n ∜3, with v = σ² and e1, e2 for |y1|², |y2|², the gain is
1 - 1/√(v (e1 + e2)).

A band with threshold 0 is unchanged, and is no neighbour or parent of others. A threshold within `ROUNDING` of 0,
relative to the largest one of its row, counts as 0: equal samples have details of 0 or of rounding errors.

**blockjs** and **neighblock**. A block of L details with noise σ is multiplied by max(0, 1 - λ L σ²/Σd²), where λ is
the root of λ - ln λ = 3 (Cai, Annals of Statistics 27, 1999). BlockJS sums over the block, of ⌊ln n⌋ details for n
samples. NeighBlock sums over a block of ⌊ln(n)/2⌋ details and its neighbours on both sides (Cai and Silverman 2001).
Rows are periodic here: the last block of a row is completed from its beginning, which Cai calls augmented.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from wavefilt.arrays import Array, DType, Floats

LAMBDA = 2.0
"""λ where σ is estimated from medians, which the signal raises a little."""
LAMBDA_MEASURED = 2.5
"""λ where σ is known: from a window of noise alone, or given."""
REACH = 4
"""Intervals of 2^j samples, at level j, to either side over which |W|² is averaged: about four periods."""
NEXT = math.exp(-1 / 3)
"""Ratio of the weights of |W|² from one interval to the next."""
OWN = 2
"""Weight of the energy of the band itself beside each adjacent band."""

ROUNDING = 16
"""Multiple of the dtype's epsilon up to which a threshold, over the largest one of its row, is a rounding error."""

BIVARIATE = 3**0.25
"""Thresholds of rule bivariate in units of σ_n."""
WIDER = 3
"""Half the window of rule bivariate in coefficients, 7 or 7 x 7 as in the paper; times the reach of js in sections.

With the dual tree, 5 x 5 coefficients gain 0.1 to 0.7 dB less on crossing dips, in white and in pink noise.
"""

ROOT = 4.505241453127829
"""λ of the block rules, with λ - ln λ = 3."""


@dataclass(frozen=True)
class Grid:
    """The times of the coefficients of a band, and the coefficients of a mean around one of them.

    Coefficient k, from 0 to ``count`` - 1, is at ``first`` + ``step`` k, in samples from a sample that all bands of a
    transform share. The mean takes every ``spacing``-th coefficient, ``half`` of them to either side. ``periodic``
    bands wrap around. Bands of sections have a grid along each axis, with the reach of `in_plane`.
    """

    count: int
    step: int
    first: float
    spacing: int
    half: int
    periodic: bool

    @property
    def in_plane(self) -> Grid:
        """This grid for sections, whose means take 3 x 3 intervals of 2^j samples, two coefficients in each."""
        spacing = max(self.spacing // 2, 1)
        return replace(self, spacing=spacing, half=self.spacing // spacing)

    def nearest(self, own: slice, band: Grid) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Return the nearest coefficients of another band, which may lie beyond its ends, for some of this one.

        Both results are the same, or the two nearest ones where they are equally far away.
        """
        times = self.first + self.step * np.arange(own.start, own.stop)
        place = (times - band.first) / band.step
        return np.ceil(place - 0.5).astype(np.int64), np.floor(place + 0.5).astype(np.int64)

    def inside(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """Move places beyond the ends into the band: wrapped around it, or to its ends."""
        return places % self.count if self.periodic else np.clip(places, 0, self.count - 1)

    def mean_at(self, band: Grid, values: Floats, axis: int) -> Floats:
        """Return the values of another band at the times of this one, along an axis: the mean of the nearest two."""
        low, high = map(band.inside, self.nearest(slice(0, self.count), band))
        return np.asarray((values.take(low, axis) + values.take(high, axis)) / 2)


@dataclass(frozen=True)
class Local:
    """Local James-Stein shrinkage; thresholds are σ √λ. This is the reference for compiled backends."""

    word: ClassVar[str] = "local"

    def shrink(
        self, bands: Sequence[Array], thresholds: Floats, grids: Sequence[Any], parts: int = 1, directions: int = 1
    ) -> list[Array]:
        """Shrink bands (rows, coefficients), finest first and the approximation last, or bands of sections.

        Bands of sections are (sections, rows, columns) and have two `Grid.in_plane` each. ``thresholds`` (bands, rows
        or sections) are those of one of the ``parts`` of a coefficient, real or complex. Energies are summed in
        float64. ``directions`` is the number of bands of a level.
        """
        if bands[0].ndim > 2:
            return [_by_itself(*band, parts) for band in zip(bands, thresholds, grids, strict=True)]
        thresholds = thresholds * parts**0.5
        energies, shrunk = dict[int, Floats](), list[Array]()
        counts = (thresholds > 0).astype(np.float64)[..., None]
        for i, (band, grid) in enumerate(zip(bands, grids, strict=True)):
            for j in range(max(i - 1, 0), min(i + 2, len(bands))):
                if j not in energies:
                    energies[j] = mean(relative_energy(bands[j], thresholds[j]), grids[j])
            energies.pop(i - 2, None)  # only three are needed at a time
            total, number = OWN * energies[i], OWN * counts[i]
            for j in (i - 1, i + 1):
                if 0 <= j < len(bands):
                    total += grid.mean_at(grids[j], energies[j], 1)
                    number += counts[j]
            with np.errstate(divide="ignore", invalid="ignore"):
                gain = np.maximum(1 - number / total, 0)
            shrunk.append(_times(band, np.where(counts[i] > 0, gain, 1)))
        return shrunk


@dataclass(frozen=True)
class Bivariate:
    """Shrinkage of each band by the next coarser level; thresholds are σ ∜3."""

    word: ClassVar[str] = "bivariate"

    def shrink(
        self, bands: Sequence[Array], thresholds: Floats, grids: Sequence[Any], parts: int = 1, directions: int = 1
    ) -> list[Array]:
        """Shrink bands as `Local.shrink` does, without the approximation.

        The window has the spacing of rule js. A parent between two coefficients has the mean of their |y|².
        """
        energies, shrunk = dict[int, Floats](), list[Array]()
        for i in reversed(range(len(bands))):
            energy = energies[i] = relative_energy(bands[i], thresholds[i])
            around, parent = energy, energies.pop(i + directions, np.zeros(1))
            for axis, grid in enumerate(_along_axes(grids[i]), 1):
                if i + directions < len(bands):
                    parent = grid.mean_at(_along_axes(grids[i + directions])[axis - 1], parent, axis)
                if energy.ndim == 2:
                    around = mean(energy, replace(grid, half=WIDER), 1.0)
                else:
                    around = plane_mean(around, axis, replace(grid, half=WIDER * grid.half))
            variance = np.maximum(around / parts - 1 / np.sqrt(3), 0)
            with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
                gain = np.maximum(1 - 1 / np.sqrt(variance * (energy + parent)), 0)
            unchanged = (thresholds[i] == 0).reshape(-1, *[1] * (energy.ndim - 1))
            shrunk.append(_times(bands[i], np.where(unchanged, 1, np.nan_to_num(gain, nan=0.0))))
        return shrunk[::-1]


Together = Local | Bivariate
"""Threshold functions of several coefficients and bands."""


@dataclass(frozen=True)
class Blocks:
    """Block shrinkage of a trace with this number of ``samples``, by a block's own energy or with its neighbours'."""

    neighbours: bool
    samples: int = 1

    word: ClassVar[str] = "block"

    @property
    def core(self) -> int:
        """Details of a block."""
        return max(int(math.log(self.samples) / (2 if self.neighbours else 1)), 1)

    @property
    def reach(self) -> int:
        """Details on either side of a block whose energy is counted too."""
        return max(self.core // 2, 1) if self.neighbours else 0

    def shrink(self, data: Array, value: Any) -> Array:
        """Multiply rows of details (rows, details) by max(0, 1 - value²/mean(d²)) of their blocks.

        ``value`` broadcasts against (rows, 1): σ √λ, the root mean square below which a block is set to 0; with 0
        nothing is changed. A row shorter than the neighbourhood is a single block.
        """
        length = data.shape[-1]
        core, reach = min(self.core, length), self.reach if self.core + 2 * self.reach <= length else 0
        first = np.arange(0, length, core)
        around = (first[:, None] + np.arange(-reach, core + reach)) % length
        gains = np.empty((len(data), len(first)))
        for gain, row, limit in zip(gains, data, np.broadcast_to(value, (len(data), 1)), strict=True):
            power = np.square(np.abs(row), dtype=np.float64)[around].mean(axis=1)
            with np.errstate(divide="ignore", invalid="ignore"):
                gain[:] = np.where(power > limit**2, 1 - np.minimum(limit**2 / power, 1), limit == 0)
        return np.asarray(data * np.repeat(gains, core, axis=1)[:, :length].astype(data.real.dtype))


def _by_itself(band: Array, limit: Floats, grids: tuple[Grid, Grid], parts: int) -> Array:
    """Shrink a band (sections, rows, columns) by its own energy around each coefficient."""
    energy = relative_energy(band, limit)
    for axis, grid in enumerate(grids, 1):
        energy = plane_mean(energy, axis, grid)
    with np.errstate(divide="ignore"):
        gain = np.maximum(1 - parts / energy, 0)
    return _times(band, np.where(limit[:, None, None] > 0, gain, 1))


def _times(band: Array, gain: Floats) -> Array:
    return np.asarray(band * gain.astype(band.real.dtype))


def _along_axes(grids: Grid | tuple[Grid, Grid]) -> tuple[Grid, ...]:
    return (grids,) if isinstance(grids, Grid) else grids


def relative_energy(band: Array, limit: Floats) -> Floats:
    """Return |W|²/limit² of a band (rows, ...); 0 where the limit of the row is 0.

    1/limit is at most the largest number of the band's dtype, as in kernels: float32 below 3e-39 is taken for noise.
    """
    scale = np.divide(1, limit, out=np.zeros_like(limit), where=limit > 0).reshape(-1, *[1] * (band.ndim - 1))
    with np.errstate(over="ignore"):
        return np.square(np.abs(band).astype(np.float64) * np.minimum(scale, np.finfo(band.real.dtype).max))


def above_rounding(thresholds: Floats, dtype: DType) -> Floats:
    """Return thresholds (bands, rows), with 0 in place of rounding errors of coefficients of this dtype."""
    limit = ROUNDING * np.finfo(dtype).eps * thresholds.max(axis=0, initial=0)
    return np.where(thresholds > limit, thresholds, 0.0)


def mean(power: Floats, grid: Grid, ratio: float = NEXT) -> Floats:
    """Return the mean around each coefficient in time, over existing ones; weights fall by the ratio at each step."""
    total, number = np.zeros(power.shape), np.zeros(grid.count)
    for k in range(-grid.half, grid.half + 1):
        places, weight = np.arange(grid.count) + k * grid.spacing, ratio ** abs(k)
        there = np.ones(grid.count, bool) if grid.periodic else (places >= 0) & (places < grid.count)
        total[:, there] += weight * power[:, grid.inside(places[there])]
        number += weight * there
    return np.asarray(total / number)


def plane_mean(x: Floats, axis: int, grid: Grid) -> Floats:
    """Return the mean around each element along an axis, reflected at the ends or wrapped around."""
    reach, count, sums = grid.half * grid.spacing, 2 * grid.half + 1, np.zeros_like(x)
    padding = [(reach, reach) if i == axis else (0, 0) for i in range(x.ndim)]
    padded = np.pad(x, padding, "wrap" if grid.periodic else "symmetric")
    for k in range(count):
        own = slice(k * grid.spacing, k * grid.spacing + x.shape[axis])
        sums += padded[(slice(None),) * axis + (own,)]
    return sums / count


def weights(half: int) -> Floats:
    """Return the weights of the mean around a coefficient with ``half`` neighbours to either side; their sum is 1."""
    falling = NEXT ** np.abs(np.arange(-half, half + 1.0))
    return np.asarray(falling / falling.sum())


def low_pass_lag(low_pass: Sequence[float]) -> float:
    """Return the time by which a low-pass coefficient of an orthogonal bank is later than the high-pass one, in steps.

    Both times are the centres of the filters' energy, Σ q h_q² / Σ h_q², which add up to the length minus 1 in a bank
    of quadrature mirror filters (Percival and Walden 2000, section 4.11). Detail levels are centred in the same way.
    """
    squares = np.square(low_pass)
    return float((len(squares) - 1) / 2 - squares @ np.arange(len(squares)) / squares.sum())


def details_first(level: int, middle: float) -> float:
    """Return the time of the first coefficient of this level, by the middle of its filter's support.

    ``middle`` is that of the first level, relative to sample 0.
    """
    return math.ldexp(middle, level) - middle
