"""The plan of a MODWT, with as many details at every level as there are samples."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pywt

from wavefilt.backends.cuda import plan
from wavefilt.backends.cuda.dwt.tiling import FLAGS, grid, up4
from wavefilt.backends.cuda.options import Options
from wavefilt.backends.cuda.plan import ALONE, KEPT, Beside, Place, Shrinking, Source
from wavefilt.backends.cuda.runtime.interfaces import DeviceArray, Stream
from wavefilt.backends.cuda.statistics.layout import Band, DetailLayout
from wavefilt.backends.cuda.thresholding.kernels import leave
from wavefilt.wavelets import modwt_boundary

from . import kernels
from .tiling import Launch, launches, threads_for


@dataclass(frozen=True)
class ModwtShape:
    """What a plan is made for; ``wavelet`` by its filters, so that equal ones share it."""

    filters: tuple[tuple[float, ...], ...]
    mode: str
    dtype: str
    level: int
    start_level: int
    rows: int
    samples: int

    @staticmethod
    @lru_cache(maxsize=256)
    def of(
        wavelet: pywt.Wavelet, mode: str, dtype: str, level: int, start_level: int, rows: int, samples: int
    ) -> ModwtShape:
        modwt_boundary.check(samples, mode)
        filters = tuple(tuple(map(float, taps)) for taps in wavelet.filter_bank)
        return ModwtShape(filters, mode, dtype, level, start_level, rows, samples)

    @property
    def taps(self) -> int:
        return len(self.filters[0])

    @property
    def circular(self) -> bool:
        return self.mode in modwt_boundary.ROUND

    def kept(self, level: int) -> tuple[int, int]:
        """Coefficients of a level before the samples and after them."""
        return modwt_boundary.kept(self.taps, self.mode, level, self.start_level)

    def needed(self, level: int) -> tuple[int, int]:
        """Approximation coefficients of a level, or at level 0 samples, before the samples and after them."""
        return modwt_boundary.needed(self.taps, self.mode, level, self.level, self.start_level)

    def place(self, ends: tuple[int, int], start: int = 0) -> tuple[int, int, int, int]:
        """Of rows with so many elements before the samples and after them, sample 0 of each at a multiple of four.

        Where that of the first row lies in an array of which rows begin at ``start``, how far rows are apart, the first
        position and the end of all.
        """
        before, after = ends
        return start + up4(before), up4(up4(before) + self.samples + after), -before, self.samples + after


class ModwtPlan(plan.Plan):
    """Launches of both transforms, and the (level + 1) to (level + 3) arrays of about the samples' size they need."""

    shape: ModwtShape

    def __init__(self, shape: ModwtShape, options: Options) -> None:
        super().__init__(shape, options)
        self.shape = shape
        self._threads = threads_for(shape.dtype, options.threads)
        self._launches = launches(shape.taps, shape.level, shape.start_level, shape.dtype, self._threads)
        starts = [0]
        for j in range(1, shape.level + 1):
            starts.append(starts[-1] + shape.rows * shape.place(shape.kept(j))[1])
        self._details = self.buffer("details", starts[-1])
        self._detail_places = [shape.place(shape.kept(j + 1), start) for j, start in enumerate(starts[:-1])]
        bands = [(origin, pitch, shape.samples, shape.rows) for origin, pitch, _, _ in self._detail_places]
        self.layout = DetailLayout(self._details, bands)

    @property
    def bands(self) -> list[Band]:
        """With the boundary coefficients."""
        return [
            Band(origin + low, pitch, high - low, self.shape.rows) for origin, pitch, low, high in self._detail_places
        ]

    def release(self) -> None:
        super().release()
        del self._details

    def _approximation(self, launch: int) -> DeviceArray:
        """What this launch of the forward transform writes; every second shares a buffer but the coarsest."""
        s = self.shape
        done = [one.last for one in self._launches]
        if launch in (-1, len(done) - 1):
            return self.buffer("coarsest", s.rows * s.place(s.kept(s.level))[1])
        longest = max(s.place(s.needed(j))[1] for j in done[launch % 2 : -1 : 2])
        return self.buffer(f"approximation {launch % 2}", s.rows * longest)

    def forward(
        self, x: DeviceArray, aligned: bool, stream: Stream, flags: DeviceArray | None = None, beside: Beside = ALONE
    ) -> None:
        s = self.shape
        flags = self.buffer("flags", FLAGS, np.int32) if flags is None else flags
        before, after = s.needed(0)
        beyond = self.buffer("beyond", max(s.rows * (before + after), 1))
        if length := before + after:
            threads = self.options.threads
            extend = kernels.extend("periodic" if s.circular else s.mode, s.dtype, threads)
            launch = extend[grid(-(-length // threads), s.rows), threads, stream]
            launch(x, s.samples, s.samples, s.rows, -before, s.samples, beyond, length, length, flags)
        v, source = x, (0, s.samples, 0, s.samples)
        for i, one in enumerate(self._launches):
            output, place = self._approximation(i), s.place(s.needed(one.last))
            first, tile, blocks = one.forward.grid(one.spread, *place[2:], s.rows)
            kernel = kernels.analysis(*s.filters[:2], s.circular, not one.first, s.dtype, one.forward)
            tiles, details = (s.rows, first, tile, one.spread), (self._details, self._places(one))
            launch = kernel[grid(blocks, s.rows), self._threads, stream]
            launch(v, source, aligned, beyond, before, after, *tiles, *details, output, place, flags)
            v, source, aligned = output, place, True

    def _places(self, launch: Launch) -> tuple[tuple[int, int, int, int], ...]:
        """Of the details of a launch's levels."""
        return tuple(self._detail_places[launch.first : launch.last])

    def inverse(
        self, y: DeviceArray, aligned: bool, stream: Stream, by: Shrinking = KEPT, source: Source | None = None
    ) -> None:
        s, details = self.shape, self._details if by.details is None else by.details
        thresholds = details if by.thresholds is None else by.thresholds
        v, place = self._approximation(-1), s.place(s.kept(s.level))
        for i, one in reversed(list(enumerate(self._launches))):
            if one.first:
                output, to, whole = self._approximation(i - 1), s.place(s.kept(one.first)), True
            else:
                output, to, whole = y, (0, s.samples, 0, s.samples), aligned
            first, tile, blocks = one.inverse.grid(one.spread, *to[2:], s.rows)
            kernel = kernels.synthesis(*s.filters[2:], s.circular, s.dtype, one.inverse, by.function)
            tiles, shrunk = (s.rows, first, tile, one.spread), (thresholds, one.first * s.rows)
            launch = kernel[grid(blocks, s.rows), self._threads, stream]
            launch(v, place, details, self._places(one), *shrunk, *tiles, output, to, whole)
            v, place = output, to
        if source is not None:
            leave(source.x, y, s.samples, s.rows, source.live, self.options.threads, stream)

    def places(self) -> list[Place]:
        s = self.shape
        origin, pitch, low, high = s.place(s.kept(s.level))
        coarsest = Place(self._approximation(-1), origin + low, (s.rows, high - low), (pitch, 1))
        bands = self.bands[::-1]
        return [coarsest, *(Place(self._details, b.offset, (b.rows, b.length), (b.pitch, 1)) for b in bands)]
