"""The plan of a decimated transform of traces."""

from __future__ import annotations

import numpy as np

from wavefilt.backends.cuda import equal_runs
from wavefilt.backends.cuda.options import KernelOptions
from wavefilt.backends.cuda.plan import ALONE, KEPT, Alone, Beside, Place, Plan, Shape, Shrinking
from wavefilt.backends.cuda.runtime.interfaces import DeviceArray, Kernel, Stream
from wavefilt.backends.cuda.runtime.target import cuda
from wavefilt.backends.cuda.statistics.layout import DetailLayout

from . import one_block
from .kernels import Bands, Extent, Probes, Rows, Unchanged, extensions, forward, inverse
from .tiling import Filter, FusedLevels, at_once, forward_tiling, grid, inverse_tiling, launches, suited_tile, up4


class DwtPlan(Plan):
    """Launches of some fused levels each, the finest first.

    ``firsts`` and ``fused`` are the first level of each launch, counted from 0, and how many it has; ``lengths`` the
    samples of a row, then its coefficients at every level.
    """

    copies = finds_runs = True

    def __init__(self, shape: Shape, options: KernelOptions) -> None:
        ((lo, hi, rec_lo, rec_hi),), (mode,) = shape.filters, shape.modes
        f = Filter(len(lo), mode == "periodization")
        super().__init__(shape, options.suited(f.taps, shape.dtype, shape.rows, shape.samples))
        self._asked = options
        tile, build = self.options.tile_for(shape.dtype), self.build
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
        self._approximations = list[DeviceArray]()
        self._compiled_for, self._tiles, self._where, tables = [], [], [], []
        for first, levels in zip(self.firsts, self.fused, strict=True):
            n, last = self.lengths[first], first + levels
            own_tile = suited_tile(f, tile, levels, n, shape.rows) if first else tile
            ahead, back = forward_tiling(f, own_tile, levels), inverse_tiling(f, own_tile, levels)
            own = [self.lengths[first + i] - (ahead.gap(n) >> i) for i in range(levels)]
            tables.append(extensions(f, mode, own))
            analysis = FusedLevels(lo, hi, f.periodized, build, levels, own_tile)
            plain = build._replace(padding=False)  # the inverse is the same with padding
            synthesis = FusedLevels(rec_lo, rec_hi, f.periodized, plain, levels, own_tile)
            self._compiled_for.append((analysis, synthesis))
            self._tiles.append((ahead.interior(n), back.interior(n)))
            offsets, pitches, _, _ = zip(*bands[first:last], strict=True)
            self._where.append((offsets, pitches))  # of each launch's details
            if last < shape.level:
                buffer = self.buffer(f"approximation {first}", shape.rows * up4(self.lengths[last]))
                self._approximations.append(buffer)
        self._approximations.append(self.details[coarsest[0] : end])
        self._table = cuda.to_device(np.concatenate(tables))

    def alone(self, rule: str, sigma_of: str, function: str) -> Alone | None:
        medians = self.shape.level if sigma_of == "level" else 1
        threads = None if self._asked.tile else one_block.threads_for(self.shape, self.lengths, medians, self._asked)
        if threads is None:
            return None
        build = self.build._replace(threads=threads)
        return one_block.OneBlock(self.shape, self.lengths, build, self._asked.few, rule, sigma_of, function).launch

    def forward_kernel(self, i: int) -> Kernel:
        """Return the kernel of the i-th launch of `forward`."""
        return forward(self._compiled_for[i][0])

    def inverse_kernel(self, i: int, function: str) -> Kernel:
        """Return the kernel of the i-th launch of `inverse`, counted from the finest levels."""
        return inverse(self._compiled_for[i][1], function)

    def _rows(self, i: int, flat: DeviceArray) -> Rows:
        """Return the rows that the i-th launch reads or, of `inverse`, writes."""
        n = self.lengths[self.firsts[i]]
        return Rows(self._approximations[i - 1], up4(n), True) if i else Rows(flat, n, self.aligned(flat))

    def _extent(self, i: int, tiles: int) -> Extent:
        first = self.firsts[i]
        return Extent(first, self.lengths[first], self.shape.rows, tiles)

    def forward_launch(self, i: int, x: DeviceArray, stream: Stream, beside: Beside = ALONE) -> None:
        tiles = self._tiles[i][0]
        launch = self.forward_kernel(i)[grid(tiles + 1, self.shape.rows), self.build.threads, stream]
        bands = Bands(self.details, *self._where[i], self._approximations[i])
        probes = 0 if i else equal_runs.probes(self.shape.samples)
        shares = Probes(probes, -(-probes // (tiles + 1)))
        flags = self.flags if beside.flags is None else beside.flags
        launch(self._rows(i, x), bands, self._extent(i, tiles), self._table, shares, flags)

    def approximation(self) -> Place:
        offset, pitch, length, rows = self.all_counted.bands[-1]
        return Place(self.details, offset, (rows, length), (pitch, 1))

    def inverse_launch(self, i: int, y: DeviceArray, stream: Stream, by: Shrinking = KEPT) -> None:
        rows, tiles, target = self.shape.rows, self._tiles[i][1], self._rows(i, y)
        details, thresholds = (self.details if array is None else array for array in (by.details, by.thresholds))
        x, live, flags = by.source or (target.array, self.flags, self.flags)
        launch = self.inverse_kernel(i, by.function)[grid(tiles + 1, rows), self.build.threads, stream]
        bands = Bands(details, *self._where[i], self._approximations[i])
        unchanged = Unchanged(x, live, i == 0 and by.source is not None)
        launch(bands, thresholds, target, self._extent(i, tiles), unchanged, flags)
