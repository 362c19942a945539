"""The plan of a decimated transform of both axes of panels."""

from __future__ import annotations

import numpy as np

from wavefilt.backends.cuda.dwt.forward import extensions
from wavefilt.backends.cuda.dwt.tiling import ROWS, Filter, up4
from wavefilt.backends.cuda.options import KernelOptions
from wavefilt.backends.cuda.plan import ALONE, KEPT, Beside, Place, Plan, Shape, Shrinking
from wavefilt.backends.cuda.runtime import interop
from wavefilt.backends.cuda.runtime.interfaces import DeviceArray, Kernel, Stream
from wavefilt.backends.cuda.runtime.target import cuda
from wavefilt.backends.cuda.statistics.layout import DetailLayout
from wavefilt.thresholding.shrinkage import Shrinkage

from .columns import STEP, PanelLevel
from .forward import forward
from .inverse import inverse

BANDS = 3  # D, V and H, in the order of estimates
TILE_BYTES = 1 << 14  # 16 rows of float32 by 256 threads
BLOCKS, TAPS_A_TURN = 2112, 8
"""How many blocks a launch keeps at least, 16 a multiprocessor, and how many taps are worth another tile to go down."""


class PanelPlan(Plan):
    """A launch for every level; the bands of one lie together, D, V and H of all panels, then the approximation."""

    early, together = BANDS, BANDS

    def __init__(self, shape: Shape, options: KernelOptions) -> None:
        super().__init__(shape, options)
        s, (down, along), (mode_down, mode_along) = shape, shape.filters, shape.modes
        periodized = mode_down == "periodization", mode_along == "periodization"
        several = mode_down in ("smooth", "antireflect"), mode_along in ("smooth", "antireflect")
        axes = f, g = Filter(len(down[0]), periodized[0]), Filter(len(along[0]), periodized[1])
        self._sizes = sizes = [(s.size[0], s.size[1])]  # rows and columns of a panel, then of its bands at every level
        for _ in range(s.depth):
            sizes.append((f.length(sizes[-1][0]), g.length(sizes[-1][1])))
        for axis, mode in enumerate(s.modes):
            if mode in ("reflect", "antireflect") and 1 in [own[axis] for own in sizes[:-1]]:
                raise ValueError(f"mode={mode!r} needs more than one sample at every level of both axes")
        self.launches, self._taps_down = s.depth, f.taps
        self._threads = max(options.threads, 1 << (2 * max(f.taps, g.taps) - 1).bit_length())
        tile = options.tile or TILE_BYTES // np.dtype(s.dtype).itemsize
        self._height = max(tile // self._threads // STEP, 1) * STEP
        constants = periodized, several, s.dtype, self._height, self._threads
        self._analysis = PanelLevel((down[0], down[1]), (along[0], along[1]), *constants)
        self._synthesis = PanelLevel((down[2], down[3]), (along[2], along[3]), *constants)
        tables = [
            extensions(axis, mode, [n]) for own in sizes[:-1] for axis, mode, n in zip(axes, s.modes, own, strict=True)
        ]
        ends = np.cumsum([0, *map(len, tables)]).tolist()
        self._entries = list(zip(ends[::2], ends[1::2], strict=False))
        self._table = cuda.to_device(np.concatenate(tables))
        self._starts, bands = [0], []
        self._bands, self._samples = [], [((0, s.samples), _short(sizes[0][1], *sizes[0]))]
        for rows, columns in sizes[1:]:
            start, pitch, across = self._starts[-1], up4(rows * columns), up4(columns)
            bands += [(start + i * s.rows * pitch, pitch, rows * columns, s.rows) for i in range(BANDS)]
            lowpass, plane, own = BANDS * s.rows * pitch, rows * across, _short(across, rows, columns)
            # elements from panel to panel of a band, from band to band, to the approximation, from panel to panel of it
            self._bands.append(((pitch, s.rows * pitch, lowpass, plane), own))
            self._samples.append(((lowpass, plane), own))
            self._starts.append(start + lowpass + s.rows * plane)
        end = self._starts[-1]
        array = self.buffer("details", end + s.rows * bands[0][1] // 8 + 8)
        self.layout = DetailLayout(array, bands, lists=end, listed=1)
        self._levels = [array[start:] for start in self._starts[:-1]]

    def aligned(self, flat: DeviceArray) -> bool:
        """Whether it begins at a multiple of 16 bytes."""
        return interop.address(flat) % 16 == 0

    def _level(self, i: int, array: DeviceArray | None) -> DeviceArray:
        """The bands and the approximation of the i-th level, in this plan's array or one laid out like it."""
        return self._levels[i] if array is None else array[self._starts[i] :]

    def _launch(
        self,
        kernel: Kernel,
        across: int,
        rows: int,
        stream: Stream,
        before: tuple[object, ...],
        after: tuple[object, ...],
    ) -> None:
        """Launch ``kernel`` for so many tiles across and rows of coefficients; a grid has only so many panels."""
        panels, down = self.shape.rows, -(-rows // self._height)
        turns = max(min(across * down * panels // BLOCKS, self._taps_down // TAPS_A_TURN), 1)
        blocks, tiling = across * -(-down // turns), _short(across, turns)
        for first in range(0, panels, ROWS):
            launch = kernel[(blocks, min(panels - first, ROWS)), self._threads, stream]
            launch(*before, first, tiling, *after)

    def forward_launch(self, i: int, x: DeviceArray, stream: Stream, beside: Beside = ALONE) -> None:
        rows, columns = self._sizes[i + 1]
        kernel, across = forward(self._analysis, self.options.fastmath), -(-columns // self._analysis.forward_width)
        samples, bands = (self._levels[i - 1] if i else x, *self._samples[i]), (self._levels[i], *self._bands[i])
        self._launch(kernel, across, rows, stream, samples + bands, (self._table, self._entries[i]))

    def inverse_launch(self, i: int, y: DeviceArray, stream: Stream, by: Shrinking = KEPT) -> None:
        (rows, columns), panels = self._sizes[i], self.shape.rows
        kernel = inverse(self._synthesis, by.function, self.options.fastmath)
        across = -(-((columns + 1) // 2) // self._synthesis.inverse_width)
        target = self._level(i - 1, by.details) if i else y
        limits = target if by.thresholds is None else by.thresholds, BANDS * i * panels
        wide, checks = i > 0 or (columns % 2 == 0 and self.aligned(y)), by.source is not None and i == 0
        flags = self.flags if by.source is None else by.source.flags
        bands, samples = (self._level(i, by.details), *self._bands[i]), (target, *self._samples[i])
        after = (*limits, *samples, wide, flags, checks)
        self._launch(kernel, across, (rows + 1) // 2, stream, (*bands, panels), after)

    def approximation(self) -> Place:
        (_, _, lowpass, plane), (rows, columns) = self._bands[-1][0], self._sizes[-1]
        begin, pitch = self._starts[-2] + lowpass, up4(columns)
        return Place(self.layout.array, begin, (self.shape.rows, rows, columns), (plane, pitch, 1))

    def places(self) -> list[Place]:
        found = [self.approximation()]
        for i, band in reversed(list(enumerate(self.layout.bands))):
            rows, columns = self._sizes[1 + i // BANDS]
            found.append(Place(self.layout.array, band.offset, (band.rows, rows, columns), (band.pitch, columns, 1)))
        return found

    def shrunk(self, shrinkage: Shrinkage, stream: Stream) -> DeviceArray:
        """With the approximation beside them."""
        target = super().shrunk(shrinkage, stream)
        approximation = slice(self._starts[-2] + self._bands[-1][0][2], self._starts[-1])
        target[approximation].copy_to_device(self.layout.array[approximation], stream=stream)
        return target


def _short(*numbers: int) -> tuple[np.int32, ...]:
    """Sizes in 32 bits, with which kernels compute addresses in fewer instructions."""
    return tuple(map(np.int32, numbers))
