"""The plan of the dual-tree transform of both axes of panels."""

from __future__ import annotations

from typing import NamedTuple

from wavefilt.backends.cuda.dwt.tiling import ROWS, up4
from wavefilt.backends.cuda.options import KernelOptions
from wavefilt.backends.cuda.plan import ALONE, KEPT, Beside, GridsOf, Place, Shape, Shrinking
from wavefilt.backends.cuda.runtime import interop
from wavefilt.backends.cuda.runtime.interfaces import DeviceArray, Kernel, Stream
from wavefilt.backends.cuda.thresholding.functions import KNOWN

from . import gains, panels_analysis, panels_synthesis
from .filters import Level, sizes
from .magnitudes import ComplexPlan
from .shrinking import GAINS

BANDS = 6
BLOCKS, TURNS = 1056, 16
"""How many blocks a launch keeps at least, eight a multiprocessor, and tiles that a block goes down at most."""


def synthesis_threads(dtype: str, threads: int) -> int:
    """Columns of a tile of the synthesis, which has twice as many threads: so that two blocks have registers enough."""
    return threads * 5 // 8 if dtype == "float32" else threads // 2


class _At(NamedTuple):
    """A level: `filters.Level` both ways, axes as `filters.inside` has them, squares of four coefficients down and
    along, where its bands lie (first coefficient, from panel to panel, from band to band), and its low-pass ones."""

    analysis: Level
    synthesis: Level
    axes: tuple[tuple[int, int], tuple[int, int]]
    squares: tuple[int, int]
    bands: tuple[int, int, int]
    lowpass: tuple[int, int, int]


class DualTreePanelPlan(ComplexPlan):
    """A launch for every level. Bands lie in the order of thresholds, which is that of directions reversed."""

    noise = ComplexPlan.noise._replace(directions=BANDS)

    def __init__(self, shape: Shape, options: KernelOptions) -> None:
        super().__init__(shape, options)
        s, filters, threads = shape, shape.filters[0], options.threads
        down, along = (sizes(n, s.depth) for n in s.size)
        self.launches, self._levels, start, end, found = s.depth, list[_At](), 0, 0, []
        for i in range(s.depth):
            analysis = Level.of(filters, i, s.dtype, threads, False)
            synthesis = Level.of(filters, i, s.dtype, synthesis_threads(s.dtype, threads), True)
            rows, columns = down[i][1] // analysis.wide, along[i][1] // analysis.wide
            stride, pitch = up4(rows * columns), up4(2 * columns)
            apart, lowpass = s.rows * stride, (end, 2 * rows * pitch, pitch)
            bands = start + (BANDS - 1) * apart, stride, -apart
            self._levels.append(_At(analysis, synthesis, (down[i], along[i]), (rows, columns), bands, lowpass))
            found += [(start + b * apart, stride, rows * columns, s.rows) for b in range(BANDS)]
            start += BANDS * apart
            end += s.rows * 2 * rows * pitch
        self.hold(start, found)
        self._low = self.buffer("lowpass", end)

    def aligned(self, flat: DeviceArray) -> bool:
        """Whether rows of samples begin at multiples of four elements."""
        return interop.address(flat) % 16 == 0 and self.shape.size[1] % 4 == 0

    def _launch(
        self,
        kernel: Kernel,
        threads: int,
        tiles: tuple[int, int],
        stream: Stream,
        before: tuple[object, ...],
        after: tuple[object, ...],
    ) -> None:
        """Launch ``kernel`` for so many tiles across and down; a grid has only so many panels."""
        (across, down), panels = tiles, self.shape.rows
        turns = max(min(across * down * panels // BLOCKS, TURNS), 1)
        for first in range(0, panels, ROWS):
            launch = kernel[(across * -(-down // turns), min(panels - first, ROWS)), threads, stream]
            launch(*before, (across, turns), first, *after)

    def forward_launch(self, i: int, x: DeviceArray, stream: Stream, beside: Beside = ALONE) -> None:
        one, s = self._levels[i], self.shape
        of, (down, along) = one.analysis, one.axes
        samples = (self._low, self._levels[i - 1].lowpass) if i else (x, (0, s.samples, s.size[1]))
        tiles = -(-along[1] // panels_analysis.tile_width(of)), -(-down[1] // panels_analysis.turn(of))
        kernel = panels_analysis.analysis(of, self.options.fastmath)
        bands = self._low, one.lowpass, self.parts, self.magnitudes, one.bands, one.squares
        self._launch(kernel, of.threads, tiles, stream, (*samples, *one.axes), bands)

    def inverse_launch(self, i: int, y: DeviceArray, stream: Stream, by: Shrinking = KEPT) -> None:
        one, s = self._levels[i], self.shape
        of, rows, across = one.synthesis, one.squares[0], one.axes[1][1]
        samples = (self._low, self._levels[i - 1].lowpass) if i else (y, (0, s.samples, s.size[1]))
        wide = i > 0 or self.aligned(y)
        flags, checks = self.flags if by.source is None else by.source.flags, by.source is not None and i == 0
        details, weights, weighed = self.coefficients_for(by)
        rows_in = panels_synthesis.rows_in(of)
        tiles = -(-across // panels_synthesis.tile_width(of)), -(-2 * rows // rows_in)
        kernel = panels_synthesis.synthesis(of, weighed, self.options.fastmath)
        source = self._low, one.lowpass, details, one.bands, one.squares, weights
        after = *samples, *one.axes, wide, flags, checks
        self._launch(kernel, 2 * of.threads, tiles, stream, source, after)

    def inverse(self, y: DeviceArray, stream: Stream, by: Shrinking = KEPT) -> None:
        super().inverse(y, stream, self.weighed(by, stream) if by.function in KNOWN else by)

    def weighed(self, by: Shrinking, stream: Stream) -> Shrinking:
        """The same by gains in place of a function and its thresholds: two threads load each of them."""
        own, rows, threads = self.gains, self.shape.rows, self.options.threads
        kernel = gains.pointwise(by.function, self.shape.dtype, threads)
        for i in range(0, len(self.layout), BANDS):  # those of a level are equally long
            blocks = -(-self.layout.bands[i].length // (4 * threads))
            for first in range(0, rows, ROWS):
                launch = kernel[(blocks, min(rows - first, ROWS), BANDS), threads, stream]
                launch(self.magnitudes, own, self.layout.table, by.thresholds, rows, first, i)
        return by._replace(function=GAINS, details=own, thresholds=None)

    def shrunk_together(self, grids: GridsOf, thresholds: DeviceArray, stream: Stream) -> Shrinking:
        s, target, threads = self.shape, self.gains, self.options.threads
        for i, one in enumerate(self._levels):
            (rows, columns), width = one.squares, 1 if one.squares[1] % 4 else 4
            across, down = -(-columns // (threads * width)), -(-rows // gains.ROWS_EACH)
            kernel = gains.of_panels(s.dtype, threads, width)
            for first in range(0, s.rows, ROWS):
                launch = kernel[(across * down, min(s.rows - first, ROWS), BANDS), threads, stream]
                limits = thresholds, self._limits(i)
                launch(self.magnitudes, target, one.bands, one.squares, *limits, first, across)
        return Shrinking(GAINS, details=target)

    def _limits(self, i: int) -> tuple[int, int]:
        """The threshold of a level's first direction, and how far that of the next lies from it."""
        return (BANDS * (i + 1) - 1) * self.shape.rows, -self.shape.rows

    def approximation(self) -> Place:
        (begin, plane, pitch), (rows, columns) = self._levels[-1].lowpass, self._levels[-1].squares
        return Place(self._low, begin, (self.shape.rows, 2 * rows, 2 * columns), (plane, pitch, 1))

    def places(self) -> list[Place]:
        found = [self.approximation()]
        for one in reversed(self._levels):
            (begin, stride, apart), (rows, columns), panels = one.bands, one.squares, self.shape.rows
            for band in range(BANDS):
                found.append(Place(self.complex, begin + band * apart, (panels, rows, columns), (stride, columns, 1)))
        return found
