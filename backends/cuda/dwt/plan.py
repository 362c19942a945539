"""The plan of a decimated transform of traces."""

from __future__ import annotations

import numpy as np

from wavefilt.backends.cuda.options import KernelOptions
from wavefilt.backends.cuda.plan import ALONE, KEPT, Alone, Beside, GridsOf, Place, Plan, Shape, Shrinking
from wavefilt.backends.cuda.runtime.interfaces import DeviceArray, Kernel, Stream
from wavefilt.backends.cuda.runtime.target import cuda
from wavefilt.backends.cuda.statistics.layout import DetailLayout

from . import local_shrinkage, one_block
from .forward import extensions, forward
from .inverse import inverse
from .tiling import Filter, FusedLevels, at_once, forward_tiling, grid, inverse_tiling, launches, suited_tile, up4

MOST_TAPS_SEARCHED = 64


class DwtPlan(Plan):
    """Launches of some fused levels each, the finest first.

    ``firsts`` and ``fused`` are the first level of each launch, counted from 0, and how many it has; ``lengths`` the
    samples of a row, then its coefficients at every level.
    """

    copies = centres = True

    def __init__(self, shape: Shape, options: KernelOptions) -> None:
        ((lo, hi, rec_lo, rec_hi),), (mode,) = shape.filters, shape.modes
        f = Filter(len(lo), mode == "periodization")
        super().__init__(shape, options.suited(f.taps, shape.dtype, shape.rows, shape.samples))
        self._divided = bool(options.tile or options.fastmath)  # as it was asked for
        self._threads = options.threads  # of a block that shrinks bands together, whose tiles are other ones
        tile, threads = self.options.tile_for(shape.dtype), self.options.threads
        one = at_once(f, shape.level, tile, np.dtype(shape.dtype).itemsize, shape.rows * shape.samples)
        self.fused = [shape.level] if one else launches(f, shape.level, tile)
        self.firsts = [sum(self.fused[:i]) for i in range(len(self.fused))]
        self.launches, self.early, self.together = len(self.fused), self.fused[0], shape.level
        self.lengths, bands, end = [shape.samples], [], 0
        for _ in range(shape.level):
            n = f.length(self.lengths[-1])
            self.lengths.append(n)
            bands.append((end, up4(n), n, shape.rows))
            end += shape.rows * up4(n)
        coarsest = end, up4(self.lengths[-1]), self.lengths[-1], shape.rows
        end += shape.rows * up4(self.lengths[-1])
        self.details = self.buffer("details", end + end // 8 + 8)  # and the coarsest approximation, then lists
        self.layout = DetailLayout(self.details, bands, lists=end, listed=shape.level)
        # approximations near their median follow one another: no block has room to list them
        self.all_counted = DetailLayout(self.details, [*bands, coarsest], lists=end, listed=shape.level)
        self._nothing = self.buffer("nothing", 1, np.int64)  # where a kernel wants an array and has no use for it
        self._approximations = list[DeviceArray]()
        self._compiled_for, self._tiles, self._where, tables = [], [], [], []
        for first, levels in zip(self.firsts, self.fused, strict=True):
            n, last = self.lengths[first], first + levels
            own_tile = suited_tile(f, tile, levels, n, shape.rows) if first else tile
            ahead, back = forward_tiling(f, own_tile, levels), inverse_tiling(f, own_tile, levels)
            own = [self.lengths[first + i] - (ahead.gap(n) >> i) for i in range(levels)]
            tables.append(extensions(f, mode, own))
            constants = f.periodized, shape.dtype, levels, own_tile, threads
            self._compiled_for.append((FusedLevels(lo, hi, *constants), FusedLevels(rec_lo, rec_hi, *constants)))
            self._tiles.append((ahead.interior(n), back.interior(n)))
            offsets, pitches, _, _ = zip(*bands[first:last], strict=True)
            self._where.append((offsets, pitches))  # of each launch's details
            if last < shape.level:
                buffer = self.buffer(f"approximation {first}", shape.rows * up4(self.lengths[last]))
                self._approximations.append(buffer)
        self._approximations.append(self._coarsest(self.details))
        self._table = cuda.to_device(np.concatenate(tables))
        if f.taps <= MOST_TAPS_SEARCHED:  # the forward kernel has room in shared memory for a search
            self.high_pass = cuda.to_device(np.array(hi[::-1], shape.dtype))

    def alone(self, rule: str, sigma_of: str, function: str) -> Alone | None:
        medians = self.shape.level if sigma_of == "level" else 1
        threads = None if self._divided else one_block.threads_for(self.shape, self.lengths, medians)
        if threads is None:
            return None
        return one_block.OneBlock(self.shape, self.lengths, threads, rule, sigma_of, function).launch

    def forward_kernel(self, i: int, searching: bool = False, centred: bool = False) -> Kernel:
        """The kernel of the i-th launch of `forward`."""
        return forward(self._compiled_for[i][0], self.options.fastmath, searching, centred)

    def inverse_kernel(self, i: int, function: str, centred: bool = False) -> Kernel:
        """The kernel of the i-th launch of `inverse`, counted from the finest levels."""
        return inverse(self._compiled_for[i][1], function, self.options.fastmath, centred)

    def _samples(self, i: int, flat: DeviceArray) -> tuple[DeviceArray, int, bool]:
        """What the i-th launch reads or, of `inverse`, writes: the array, elements from row to row, if aligned."""
        n = self.lengths[self.firsts[i]]
        return (self._approximations[i - 1], up4(n), True) if i else (flat, n, self.aligned(flat))

    def forward_launch(self, i: int, x: DeviceArray, stream: Stream, beside: Beside = ALONE) -> None:
        first, rows, tiles = self.firsts[i], self.shape.rows, self._tiles[i][0]
        search = None if i else beside.search
        searched = (self._nothing, self._nothing, self.details) if search is None else search.on_the_way
        where, ends = (self.details, *self._where[i]), self.layout.lists
        means = None if i else beside.means
        kernel = self.forward_kernel(i, search is not None, means is not None)
        launch = kernel[grid(tiles + 1, rows), self.options.threads, stream]
        levels = self._approximations[i], self._table, first, self.lengths[first], rows, tiles
        launch(*self._samples(i, x), *where, *levels, *searched, ends, self.details if means is None else means)

    def approximation(self) -> Place:
        offset, pitch, length, rows = self.all_counted.bands[-1]
        return Place(self.details, offset, (rows, length), (pitch, 1))

    def _coarsest(self, array: DeviceArray) -> DeviceArray:
        """The coarsest approximation in an array that is laid out as the details are."""
        offset, pitch, _, rows = self.all_counted.bands[-1]
        return array[offset : offset + rows * pitch]

    def shrunk_together(self, grids: GridsOf, thresholds: DeviceArray, stream: Stream) -> Shrinking:
        s, target, bands = self.shape, self.buffer("shrunk", self.details.size), self.all_counted.bands
        for one in local_shrinkage.launches(grids(), s.dtype, self._threads, s.rows):
            begins, pitches, counts, _ = zip(*(bands[i] for i in one.bands), strict=True)
            launch = local_shrinkage.shrinking(one.tile)[grid(one.tiles, s.rows), self._threads, stream]
            launch(self.details, target, begins, pitches, counts, thresholds, one.first, s.rows)
        return Shrinking(details=target, approximation=self._coarsest(target))

    def inverse_launch(self, i: int, y: DeviceArray, stream: Stream, by: Shrinking = KEPT) -> None:
        first, rows, tiles = self.firsts[i], self.shape.rows, self._tiles[i][1]
        target = self._samples(i, y)
        details, thresholds = (self.details if array is None else array for array in (by.details, by.thresholds))
        x, live, flags = by.source or (target[0], self.flags, self.flags)
        means = None if i else by.means
        kernel = self.inverse_kernel(i, by.function, means is not None)
        launch = kernel[grid(tiles + 1, rows), self.options.threads, stream]
        coarser = self._approximations[i]
        if by.approximation is not None and i == self.launches - 1:
            coarser = by.approximation
        where, sizes = (coarser, details, *self._where[i]), (self.lengths[first], rows, tiles)
        copies = i == 0 and by.source is not None
        launch(*where, thresholds, first, *target, *sizes, flags, x, live, copies, details if means is None else means)
