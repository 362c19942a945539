"""The plan of a MODWT, with as many details at every level as there are samples."""

from __future__ import annotations

from wavefilt.backends.cuda.dwt.tiling import grid, up4
from wavefilt.backends.cuda.options import KernelOptions
from wavefilt.backends.cuda.plan import ALONE, KEPT, Beside, GridsOf, Place, Plan, Shape, Shrinking
from wavefilt.backends.cuda.runtime.interfaces import DeviceArray, Stream
from wavefilt.backends.cuda.runtime.target import cuda
from wavefilt.backends.cuda.statistics.layout import Band, DetailLayout
from wavefilt.thresholding.local_shrinkage import Grid
from wavefilt.wavelets import boundary

from . import kernels, local_shrinkage
from .tiling import launches, threads_for


class ModwtPlan(Plan):
    """Launches of both transforms, and the (level + 1) to (level + 3) arrays of about the samples' size they need.

    Each launch but the coarsest writes one of two buffers of approximations in turn.
    """

    def __init__(self, shape: Shape, options: KernelOptions) -> None:
        super().__init__(shape, options)
        (filters,), (mode,), s = shape.filters, shape.modes, shape
        boundary.check_single(s.samples, mode)
        self._analysis, self._synthesis, taps = filters[:2], filters[2:], len(filters[0])
        self._circular = mode in boundary.ROUND
        self._mode = "periodic" if self._circular else mode
        self._threads = threads_for(s.dtype, options.threads)
        self._launches = launches(taps, s.level, s.start_level, s.dtype, self._threads)
        self.launches = len(self._launches)
        kept = [boundary.modwt_kept(taps, mode, j, s.start_level) for j in range(s.level + 1)]
        self._kept_at = [self._place(ends) for ends in kept]
        needed = [boundary.modwt_needed(taps, mode, j, s.level, s.start_level) for j in range(s.level + 1)]
        self._needed_at, self._beyond = [self._place(ends) for ends in needed], tuple(map(up4, needed[0]))
        self._outside = self.buffer("beyond", max(s.rows * sum(self._beyond), 1))
        starts = [0]
        for _, pitch, _, _ in self._kept_at[1:]:
            starts.append(starts[-1] + s.rows * pitch)
        self._coarsest = slice(starts[-1], starts[-1] + s.rows * self._kept_at[-1][1])
        self._details = self.buffer("details", self._coarsest.stop)  # and the coarsest approximation
        self._places = [self._place(ends, start) for ends, start in zip(kept[1:], starts, strict=False)]
        bands = [(origin, pitch, s.samples, s.rows) for origin, pitch, _, _ in self._places]
        origin, pitch, _, _ = self._place(kept[-1], starts[-1])
        self.layout = DetailLayout(self._details, bands)
        self.all_counted = DetailLayout(self._details, [*bands, (origin, pitch, s.samples, s.rows)])
        done = [one.last for one in self._launches[:-1]]
        self._approximations = [
            self.buffer(f"approximation {i % 2}", s.rows * max(self._needed_at[j][1] for j in done[i % 2 :: 2]))
            for i in range(len(done))
        ]
        self._approximations.append(self._details[self._coarsest])
        self._tables: dict[tuple[Grid, ...], tuple[DeviceArray, int, int]] = {}

    def _place(self, ends: tuple[int, int], start: int = 0) -> tuple[int, int, int, int]:
        """Of rows with so many elements before the samples and after them, sample 0 of each at a multiple of four.

        Where that of the first row lies in an array of which rows begin at ``start``, how far rows are apart, the first
        position and the end of all.
        """
        (before, after), samples = ends, self.shape.samples
        return start + up4(before), up4(up4(before) + samples + after), -before, samples + after

    @property
    def bands(self) -> list[Band]:
        """With the boundary coefficients."""
        return [Band(origin + low, pitch, high - low, self.shape.rows) for origin, pitch, low, high in self._places]

    def forward_launch(self, i: int, x: DeviceArray, stream: Stream, beside: Beside = ALONE) -> None:
        s, one, beyond, (before, after) = self.shape, self._launches[i], self._outside, self._beyond
        flags, length = self.flags if beside.flags is None else beside.flags, before + after
        if i == 0 and length:
            threads = self.options.threads
            extend = kernels.extend(self._mode, s.dtype, threads)
            launch = extend[grid(-(-length // threads), -(-s.rows // kernels.ROWS_EACH)), threads, stream]
            launch(x, s.samples, s.samples, s.rows, -before, s.samples, beyond, length, length, flags)
        samples = self._samples(i, x, self._needed_at)
        output, place = self._approximations[i], self._needed_at[one.last]
        first, tile, blocks = one.forward.grid(one.spread, *place[2:], s.rows)
        kernel = kernels.analysis(*self._analysis, self._circular, i == 0, s.dtype, one.forward)
        launch = kernel[grid(blocks, s.rows), self._threads, stream]
        tiles, details = (s.rows, first, tile, one.spread), (self._details, self._of(i))
        launch(*samples, beyond, before, after, *tiles, *details, output, place, flags)

    def _samples(
        self, i: int, flat: DeviceArray, places: list[tuple[int, int, int, int]]
    ) -> tuple[DeviceArray, tuple[int, int, int, int], bool]:
        """What the i-th launch reads or, of `inverse`, writes: the array, its place, if aligned."""
        if i:
            return self._approximations[i - 1], places[self._launches[i].first], True
        return flat, (0, self.shape.samples, 0, self.shape.samples), self.aligned(flat)

    def _of(self, i: int) -> tuple[tuple[int, int, int, int], ...]:
        """Places of the details of the i-th launch's levels."""
        return tuple(self._places[self._launches[i].first : self._launches[i].last])

    def inverse_launch(self, i: int, y: DeviceArray, stream: Stream, by: Shrinking = KEPT) -> None:
        s, one, details = self.shape, self._launches[i], self._details if by.details is None else by.details
        thresholds = details if by.thresholds is None else by.thresholds
        samples = self._samples(i, y, self._kept_at)
        first, tile, blocks = one.inverse.grid(one.spread, *samples[1][2:], s.rows)
        kernel = kernels.synthesis(*self._synthesis, self._circular, s.dtype, one.inverse, by.function)
        launch = kernel[grid(blocks, s.rows), self._threads, stream]
        shrunk, tiles = (details, self._of(i), thresholds, one.first * s.rows), (s.rows, first, tile, one.spread)
        coarser = self._approximations[i]
        if by.approximation is not None and i == self.launches - 1:
            coarser = by.approximation
        launch(coarser, self._kept_at[one.last], *shrunk, *tiles, *samples)

    def approximation(self) -> Place:
        origin, pitch, low, high = self._kept_at[-1]
        return Place(self._details, self._coarsest.start + origin + low, (self.shape.rows, high - low), (pitch, 1))

    def shrunk_together(self, grids: GridsOf, thresholds: DeviceArray, stream: Stream) -> Shrinking:
        s, target, threads = self.shape, self.buffer("shrunk", self._details.size), self.options.threads
        found = grids()
        if found not in self._tables:
            places = [*self.places()[:0:-1], self.approximation()]
            begins, pitches = [place.offset for place in places], [place.strides[0] for place in places]
            fields, *extent = local_shrinkage.table(found, begins, pitches)
            self._tables[found] = cuda.to_device(fields.ravel()), *extent
        table, first, times = self._tables[found]
        kernel = local_shrinkage.shrinking(s.dtype, threads, found[0].periodic)
        launch = kernel[grid(-(-times // (local_shrinkage.EACH * threads)), s.rows), threads, stream]
        launch(self._details, target, table, len(found), thresholds, s.rows, first, times)
        return Shrinking(details=target, approximation=target[self._coarsest])
