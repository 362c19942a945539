"""The plan of a decimated transform of traces."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import pywt

from wavefilt.backends.cuda import plan
from wavefilt.backends.cuda.options import Options
from wavefilt.backends.cuda.plan import ALONE, KEPT, Beside, Place, Shrinking, Source
from wavefilt.backends.cuda.runtime.interfaces import DeviceArray, Kernel, Stream
from wavefilt.backends.cuda.runtime.target import cuda
from wavefilt.backends.cuda.statistics.layout import DetailLayout
from wavefilt.backends.cuda.statistics.selection import Selection

from .forward import extensions, forward
from .inverse import inverse
from .tiling import FLAGS, Filter, FusedLevels, Tiling, forward_tiling, grid, inverse_tiling, launches, up4

MOST_TAPS_SEARCHED = 64


@dataclass(frozen=True, eq=False)
class DwtShape:
    """What a plan is made for; `of` gives one object for one set of arguments."""

    lo: tuple[float, ...]
    hi: tuple[float, ...]
    rec_lo: tuple[float, ...]
    rec_hi: tuple[float, ...]
    mode: str
    dtype: str
    level: int
    rows: int
    samples: int

    @staticmethod
    @lru_cache(maxsize=256)
    def of(wavelet: pywt.Wavelet, mode: str, dtype: str, level: int, rows: int, samples: int) -> DwtShape:
        lo, hi, rec_lo, rec_hi = (tuple(map(float, taps)) for taps in wavelet.filter_bank)
        return DwtShape(lo, hi, rec_lo, rec_hi, mode, dtype, level, rows, samples)

    @cached_property
    def filter(self) -> Filter:
        return Filter(len(self.lo), self.mode == "periodization")

    @cached_property
    def lengths(self) -> list[int]:
        """Samples of a row, then coefficients of it at every level."""
        lengths = [self.samples]
        for _ in range(self.level):
            lengths.append(self.filter.length(lengths[-1]))
        return lengths

    @cached_property
    def offsets(self) -> list[int]:
        """Where in one buffer the details of every level begin, and their end."""
        return [self.rows * sum(map(up4, self.lengths[1 : i + 1])) for i in range(self.level + 1)]


class DwtPlan(plan.Plan):
    """Launches of some fused levels each, the finest first."""

    shape: DwtShape

    def __init__(self, shape: DwtShape, options: Options) -> None:
        super().__init__(shape, options.suited(shape.filter.taps, shape.dtype, shape.rows, shape.samples))
        self.shape = shape
        self.fused = launches(shape.filter, shape.level, self._tile)
        self.firsts = [sum(self.fused[:i]) for i in range(len(self.fused))]
        self.early, self.together = self.fused[0], shape.level
        table = []
        for first, levels in zip(self.firsts, self.fused, strict=True):
            gap = forward_tiling(shape.filter, self._tile, levels).gap(shape.lengths[first])
            lengths = [shape.lengths[first + i] - (gap >> i) for i in range(levels)]
            table.append(extensions(shape.filter, shape.mode, lengths))
        self.table = cuda.to_device(np.concatenate(table))
        # where a kernel wants an array and has no use for it
        self.nothing, self.nothing_wrong = self.buffer("nothing", 1, np.int64), self.buffer("flags", FLAGS, np.int32)
        end = shape.offsets[-1]
        self.details = self.buffer("details", end + end // 8 + 8)
        places = zip(shape.offsets, shape.lengths[1:], strict=False)
        bands = [(offset, up4(n), n, shape.rows) for offset, n in places]
        self.layout = DetailLayout(self.details, bands, lists=end, listed=shape.level)
        self.approximations = [
            self.buffer(f"approximation {first}", shape.rows * pitch)
            for first, pitch in zip(self.firsts, self.pitches, strict=True)
        ]
        self._where = []  # of each launch's details
        for first, levels in zip(self.firsts, self.fused, strict=True):
            own = self.layout.bands[first : first + levels]
            self._where.append((tuple(band.offset for band in own), tuple(band.pitch for band in own)))
        if shape.filter.taps <= MOST_TAPS_SEARCHED:  # the forward kernel has room in shared memory for a search
            self.high_pass = cuda.to_device(np.array(shape.hi[::-1], shape.dtype))

    @property
    def _tile(self) -> int:
        return self.options.tile_for(self.dtype)

    @property
    def pitches(self) -> list[int]:
        """Elements from row to row of each of ``approximations``."""
        return [up4(self.shape.lengths[first + levels]) for first, levels in zip(self.firsts, self.fused, strict=True)]

    def release(self) -> None:
        super().release()
        del self.details, self.approximations

    @property
    def bytes(self) -> int:
        return super().bytes + int(self.table.nbytes)

    def _compiled_for(self, i: int, lo: tuple[float, ...], hi: tuple[float, ...]) -> FusedLevels:
        """What the kernels of the i-th launch are compiled for."""
        s, periodized = self.shape, self.shape.filter.periodized
        return FusedLevels(lo, hi, periodized, s.dtype, self.fused[i], self._tile, self.options.threads)

    def forward_kernel(self, i: int, searching: bool = False) -> Kernel:
        """The kernel of the i-th launch of `forward`."""
        return forward(self._compiled_for(i, self.shape.lo, self.shape.hi), self.options.fastmath, searching)

    def inverse_kernel(self, i: int, function: str) -> Kernel:
        """The kernel of the i-th launch of `inverse`, counted from the finest levels."""
        return inverse(self._compiled_for(i, self.shape.rec_lo, self.shape.rec_hi), function, self.options.fastmath)

    def _tiles(self, tiling: Callable[[Filter, int, int], Tiling], i: int) -> int:
        """Interior tiles of a row in the i-th launch."""
        return tiling(self.shape.filter, self._tile, self.fused[i]).interior(self.shape.lengths[self.firsts[i]])

    def forward_launch(
        self, i: int, x: DeviceArray, aligned: bool, stream: Stream, search: Selection | None = None
    ) -> None:
        """Some levels of `forward`, from ``x`` or from what the launch before left."""
        s, first = self.shape, self.firsts[i]
        n = s.lengths[first]
        source, pitch, aligned = (x, n, aligned) if i == 0 else (self.approximations[i - 1], up4(n), True)
        search = search if i == 0 else None
        searched = (self.nothing, self.details) if search is None else (search.state, search.edges)
        where, coarser, tiles = (self.details, *self._where[i]), self.approximations[i], self._tiles(forward_tiling, i)
        launch = self.forward_kernel(i, search is not None)[grid(tiles + 1, s.rows), self.options.threads, stream]
        launch(source, pitch, aligned, *where, coarser, self.table, first, n, s.rows, tiles, *searched, s.offsets[-1])

    def forward(
        self, x: DeviceArray, aligned: bool, stream: Stream, flags: DeviceArray | None = None, beside: Beside = ALONE
    ) -> None:
        for i in range(len(self.fused)):
            self.forward_launch(i, x, aligned, stream, beside.search)
            if i == 0:
                beside.after_first()

    def places(self) -> list[Place]:
        coarsest = Place(self.approximations[-1], 0, (self.shape.rows, self.shape.lengths[-1]), (self.pitches[-1], 1))
        bands = self.layout.bands[::-1]
        return [coarsest, *(Place(self.details, b.offset, (b.rows, b.length), (b.pitch, 1)) for b in bands)]

    def inverse_launch(
        self, i: int, y: DeviceArray, aligned: bool, stream: Stream, by: Shrinking = KEPT, source: Source | None = None
    ) -> None:
        """Some levels of `inverse`, into ``y`` or for the launch after."""
        s, first, own = self.shape, self.firsts[i], self.details
        n = s.lengths[first]
        target, pitch, aligned = (y, n, aligned) if i == 0 else (self.approximations[i - 1], up4(n), True)
        details, thresholds = (own if array is None else array for array in (by.details, by.thresholds))
        x, live, flags = source or (target, self.nothing_wrong, self.nothing_wrong)
        copies = i == 0 and source is not None
        where, coarser, tiles = (details, *self._where[i]), self.approximations[i], self._tiles(inverse_tiling, i)
        launch = self.inverse_kernel(i, by.function)[grid(tiles + 1, s.rows), self.options.threads, stream]
        launch(coarser, *where, thresholds, first, target, pitch, aligned, n, s.rows, tiles, flags, x, live, copies)

    def inverse(
        self, y: DeviceArray, aligned: bool, stream: Stream, by: Shrinking = KEPT, source: Source | None = None
    ) -> None:
        for i in reversed(range(len(self.fused))):
            self.inverse_launch(i, y, aligned, stream, by, source)
