"""Rule js on a stream: local James-Stein shrinkage by the neighbours that are there already.

Of the neighbourhood in `wavefilt.thresholding.local` it is the causal half: R is the mean of |W|²/limit² over
a coefficient and the `REACH` before it, with the same weights, and A that of R there and at the last coefficients of
the adjacent levels whose times are not after its own; that of the approximation has no larger number than the coarsest
detail's, and the other way round. Finer levels wait for the coarser ones, as they do for synthesis: the latency is that
of other rules.

Limits are those that were in force as a coefficient came; coefficients with limit 0 are unchanged, and no neighbours.
The mean of a stream is not known, so that approximations are taken relative to the median of the window.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from wavefilt.arrays import Array, Counts, Floats
from wavefilt.online.sliding_window import SlidingThresholds
from wavefilt.thresholding.local import NEXT, OWN, REACH, Grid


@dataclass
class _Band:
    """Coefficients that wait, (channels, coefficients) with their limits and centres, and the energies R still needed.

    The first that waits is number ``shrunk``, the first of the energies ``gone``, and ``arrived`` have come.
    """

    thresholds: SlidingThresholds
    waiting: Array
    limits: Floats
    centres: Array
    energies: Floats
    recent: Floats
    """|W|²/limit² of the last `REACH` coefficients, NaN where there is none."""
    shrunk: int = 0
    gone: int = 0
    arrived: int = field(default=0)

    @staticmethod
    def of(thresholds: SlidingThresholds, like: Array) -> _Band:
        """Before the first coefficient of channels as in ``like``."""
        nothing, before = np.empty((len(like), 0)), np.full((len(like), REACH), np.nan)
        return _Band(thresholds, like[:, :0], nothing, like[:, :0], nothing, before)

    def add(self, new: Array) -> None:
        """Coefficients that came."""
        limits, centres = np.zeros(new.shape), np.zeros_like(new)
        place = 0
        for part in self.thresholds.runs(new):
            own = slice(place, place + part.shape[1])
            limits[:, own], centres[:, own] = self.thresholds.thresholds, self.thresholds.centre
            place = own.stop
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            powers = np.where(limits > 0, np.square((new - centres) / limits), np.nan)
        powers = np.concatenate([self.recent, powers], axis=1)
        total, number = np.zeros((2, *new.shape))
        for q in range(REACH + 1):
            own_powers, weight = powers[:, q : q + new.shape[1]], NEXT ** (REACH - q)
            total += weight * np.nan_to_num(own_powers, posinf=np.finfo(np.float64).max / (4 * REACH))
            number += weight * ~np.isnan(own_powers)
        with np.errstate(invalid="ignore"):
            means = total / number  # NaN without neighbours
        self.recent = powers[:, powers.shape[1] - REACH :]
        self.energies = np.concatenate([self.energies, means], axis=1)
        self.waiting, self.limits, self.centres = (
            np.concatenate(pair, axis=1)
            for pair in ((self.waiting, new), (self.limits, limits), (self.centres, centres))
        )
        self.arrived += new.shape[1]

    def energies_at(self, places: Counts) -> Floats:
        """R of the coefficients with these numbers; of the first and the last one beyond them."""
        return self.energies[:, np.clip(places, 0, self.arrived - 1) - self.gone]


class Neighbourhood:
    """Shrinks all bands of a stream, which lie on these grids, finest first and the approximation last."""

    def __init__(self, grids: Sequence[Grid], thresholds: Sequence[SlidingThresholds], like: Array) -> None:
        self._grids, self._bands = grids, [_Band.of(own, like) for own in thresholds]

    def shrink(self, new: Sequence[Array], last: bool) -> list[Array]:
        """What is complete of each band once these coefficients (channels, new ones) came: all if they are the last."""
        for band, own in zip(self._bands, new, strict=True):
            band.add(own)
        done = [self._shrunk(i, self._ready(i, last)) for i in range(len(self._bands))]
        for i, band in enumerate(self._bands):
            needed = [band.shrunk, *(int(self._places(j, i, 1)[0]) for j in self._neighbours(i))]
            gone = max(min(*needed, band.arrived - 1), band.gone)
            band.energies, band.gone = band.energies[:, gone - band.gone :], gone
        return done

    def _neighbours(self, band: int) -> list[int]:
        return [j for j in (band - 1, band + 1) if 0 <= j < len(self._bands)]

    def _places(self, band: int, other: int, count: int) -> Counts:
        """For the next coefficients of a band, numbers of those of another one."""
        own, theirs = self._grids[band], self._grids[other]
        numbers = self._bands[band].shrunk + np.arange(count)
        found = np.floor((own.first + own.step * numbers - theirs.first) / theirs.step).astype(np.int64)
        return np.minimum(found, numbers) if own.step == theirs.step else found

    def _ready(self, band: int, last: bool) -> int:
        """How many of those that wait have all their neighbours."""
        own = self._bands[band]
        count = int(own.waiting.shape[1])
        if last:
            return count
        for j in self._neighbours(band):
            count = int(np.count_nonzero(np.maximum(self._places(band, j, count), 0) < self._bands[j].arrived))
        return count

    def _shrunk(self, band: int, count: int) -> Array:
        """The next so many coefficients."""
        own = self._bands[band]
        places = own.shrunk + np.arange(count)
        around = [own.energies_at(places)] * OWN
        around += [self._bands[j].energies_at(self._places(band, j, count)) for j in self._neighbours(band)]
        number = np.sum([~np.isnan(energies) for energies in around], axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            gain = np.maximum(1 - number / np.sum(np.nan_to_num(around), axis=0), 0).astype(own.waiting.dtype)
        values, limits, centres = own.waiting[:, :count], own.limits[:, :count], own.centres[:, :count]
        found = np.where(limits > 0, centres + (values - centres) * gain, values)
        own.waiting, own.limits, own.centres = own.waiting[:, count:], own.limits[:, count:], own.centres[:, count:]
        own.shrunk += count
        return found
