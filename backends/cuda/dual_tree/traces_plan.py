"""The plan of the dual-tree transform of traces."""

from __future__ import annotations

from wavefilt.backends.cuda.dwt import local_shrinkage
from wavefilt.backends.cuda.dwt.tiling import grid, up4
from wavefilt.backends.cuda.options import KernelOptions
from wavefilt.backends.cuda.plan import ALONE, KEPT, Beside, GridsOf, Place, Shape, Shrinking
from wavefilt.backends.cuda.runtime.interfaces import DeviceArray, Stream
from wavefilt.backends.cuda.statistics.layout import DetailLayout

from . import traces_analysis, traces_synthesis
from .filters import Level, sizes
from .magnitudes import ComplexPlan
from .shrinking import GAINS
from .tiles import Fused, fused


class DualTreePlan(ComplexPlan):
    """Launches of some levels each. Behind the details lie low-pass coefficients, of both trees as complex ones."""

    centres = True

    def __init__(self, shape: Shape, options: KernelOptions) -> None:
        super().__init__(shape, options)
        s, (filters,), threads, tile = shape, shape.filters, options.threads, options.tile_for(shape.dtype)
        axis = sizes(s.samples, s.depth)
        levels, back = ([Level.of(filters, i, s.dtype, threads, way) for i in range(s.depth)] for way in (False, True))
        self._first, self._launches, self._places, start, found = [0], [], [], 0, []
        for own in fused(levels, tile):
            first, last = self._first[-1], self._first[-1] + len(own)
            self._launches.append((Fused(own, tile), Fused(tuple(back[first:last]), tile)))
            self._first.append(last)
        self.launches = len(self._launches)
        for level, size in zip(levels, axis, strict=False):
            count = size[1] // level.wide
            self._places.append((2 * start, 2 * up4(count), size))
            found.append((start, up4(count), count, s.rows))
            start += s.rows * up4(count)
        self._axis, count = axis, axis[-1][0] // 2
        coarsest = start, up4(count), count, s.rows
        self.hold(start + s.rows * up4(count), found)
        lists = start + s.rows * up4(count)
        # low-pass coefficients near their quantile follow one another: no block has room to list them
        self.all_counted = DetailLayout(self.magnitudes, [*found, coarsest], lists=lists, listed=s.depth)
        self._low = list[tuple[DeviceArray, tuple[int, int]]]()
        for i, last in enumerate(self._first[1:-1]):
            pitch = up4(axis[last][0])
            self._low.append((self.buffer(f"lowpass {i}", s.rows * pitch), (0, pitch)))
        self._low.append((self.parts, (2 * start, 2 * up4(count))))

    def _samples(self, i: int, flat: DeviceArray) -> tuple[DeviceArray, tuple[int, int], bool]:
        """What the i-th launch reads or, of `inverse`, writes: the array, its first element and pitch, if aligned."""
        if i:
            return *self._low[i - 1], True
        return flat, (0, self.shape.samples), self.aligned(flat)

    def _levels(self, i: int) -> tuple[tuple[int, int, tuple[int, int]], ...]:
        """Places and sizes of the levels of a launch."""
        return tuple(self._places[self._first[i] : self._first[i + 1]])

    def _blocks(self, i: int, of: Fused) -> int:
        """Tiles of a row."""
        return -(-self._places[self._first[i]][2][1] // of.tile)

    def forward_launch(self, i: int, x: DeviceArray, stream: Stream, beside: Beside = ALONE) -> None:
        (of, _), rows, low, means = self._launches[i], self.shape.rows, self._low[i], None if i else beside.means
        kernel = traces_analysis.analysis(of, i == self.launches - 1, means is not None, self.options.fastmath)
        launch = kernel[grid(self._blocks(i, of), rows), self.options.threads, stream]
        launch(
            *self._samples(i, x),
            rows,
            self._levels(i),
            self.parts,
            self.magnitudes,
            *low,
            self.parts if means is None else means,
        )

    def inverse_launch(self, i: int, y: DeviceArray, stream: Stream, by: Shrinking = KEPT) -> None:
        (_, of), rows, (low, place), last = self._launches[i], self.shape.rows, self._low[i], i == self.launches - 1
        details, weights, _ = self.coefficients_for(by)
        thresholds = details if by.thresholds is None else by.thresholds
        flags, checks = self.flags if by.source is None else by.source.flags, by.source is not None and i == 0
        means, weighs_lowpass = None if i else by.means, last and by.approximation is not None
        constants = of, by.function, weighs_lowpass, means is not None, self.options.fastmath
        kernel = traces_synthesis.synthesis(*constants)
        launch = kernel[grid(self._blocks(i, of), rows), self.options.threads, stream]
        source = low, place, self._axis[self._first[i + 1]][0], details, weights, self._levels(i)
        launch(
            *source,
            thresholds,
            self._first[i] * rows,
            *self._samples(i, y),
            rows,
            y if means is None else means,
            flags,
            checks,
        )

    def shrunk_together(self, grids: GridsOf, thresholds: DeviceArray, stream: Stream) -> Shrinking:
        s, threads, bands, gains = self.shape, self.options.threads, self.all_counted.bands, self.gains
        for one in local_shrinkage.launches(grids(), s.dtype, threads, s.rows, self.noise.parts):
            begins, pitches, counts, _ = zip(*(bands[i] for i in one.bands), strict=True)
            launch = local_shrinkage.shrinking(one.tile)[grid(one.tiles, s.rows), threads, stream]
            launch(self.magnitudes, gains, begins, pitches, counts, thresholds, one.first, s.rows)
        return Shrinking(GAINS, details=gains, approximation=gains)

    def approximation(self) -> Place:
        offset, pitch, length, rows = self.all_counted.bands[-1]
        return Place(self.complex, offset, (rows, length), (pitch, 1))

    def places(self) -> list[Place]:
        found = (
            Place(self.complex, band.offset, (band.rows, band.length), (band.pitch, 1))
            for band in reversed(self.layout.bands)
        )
        return [self.approximation(), *found]
