"""The plan of a decimated transform of both axes of panels."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import numpy as np
import pywt

from wavefilt.backends.cuda import plan
from wavefilt.backends.cuda.dwt.forward import extensions
from wavefilt.backends.cuda.dwt.tiling import FLAGS, ROWS, Filter, up4
from wavefilt.backends.cuda.options import Options
from wavefilt.backends.cuda.plan import ALONE, KEPT, Beside, Place, Shrinking, Source
from wavefilt.backends.cuda.runtime import interop
from wavefilt.backends.cuda.runtime.interfaces import DeviceArray, Stream
from wavefilt.backends.cuda.runtime.target import cuda
from wavefilt.backends.cuda.statistics.layout import DetailLayout
from wavefilt.backends.cuda.thresholding.kernels import leave
from wavefilt.thresholding.shrinkage import Shrinkage

from .columns import STEP
from .forward import forward
from .inverse import inverse
from .panels import Bank, PanelLevel

BANDS = 3  # D, V and H, in the order of estimates
BLOCKS, TAPS_A_TURN = 2112, 8
"""How many blocks a launch keeps at least, 16 a multiprocessor, and how many taps are worth another tile to go down."""


@dataclass(frozen=True)
class PanelShape:
    """What a plan is made for: filters, modes and sizes of ``rows`` panels, down their columns and along their rows.

    To a method each band is a level, and a panel a row of so many ``samples``.
    """

    filters: tuple[tuple[tuple[float, ...], ...], tuple[tuple[float, ...], ...]]
    modes: tuple[str, str]
    dtype: str
    depth: int
    rows: int
    size: tuple[int, int]

    @staticmethod
    @lru_cache(maxsize=256)
    def of(
        wavelets: tuple[pywt.Wavelet, ...],
        modes: tuple[str, ...],
        dtype: str,
        depth: int,
        rows: int,
        size: Sequence[int],
    ) -> PanelShape:
        """Raises ValueError where PyWavelets does."""
        down, along = (tuple(tuple(map(float, taps)) for taps in wavelet.filter_bank) for wavelet in wavelets)
        shape = PanelShape((down, along), (modes[0], modes[1]), dtype, depth, rows, (size[0], size[1]))
        for axis, mode in enumerate(modes):
            if mode in ("reflect", "antireflect") and 1 in [own[axis] for own in shape.sizes[:-1]]:
                raise ValueError(f"mode={mode!r} needs more than one sample at every level of both axes")
        return shape

    @property
    def level(self) -> int:
        return BANDS * self.depth

    @property
    def samples(self) -> int:
        return self.size[0] * self.size[1]

    @cached_property
    def axes(self) -> tuple[Filter, Filter]:
        down, along = (
            Filter(len(own[0]), mode == "periodization") for own, mode in zip(self.filters, self.modes, strict=True)
        )
        return down, along

    @cached_property
    def sizes(self) -> list[tuple[int, int]]:
        """Rows and columns of a panel, then of its bands at every level."""
        sizes = [self.size]
        for _ in range(self.depth):
            down, along = (f.length(n) for f, n in zip(self.axes, sizes[-1], strict=True))
            sizes.append((down, along))
        return sizes


class PanelPlan(plan.Plan):
    """A launch for every level; the bands of one lie together, D, V and H of all panels, then the approximation."""

    shape: PanelShape
    early, together = BANDS, BANDS

    def __init__(self, shape: PanelShape, options: Options) -> None:
        super().__init__(shape, options)
        self.shape = shape
        taps = max(f.taps for f in shape.axes)
        self.threads = max(options.threads, 1 << (2 * taps - 1).bit_length())
        self.height = max(options.tile_for(shape.dtype) // self.threads // STEP, 1) * STEP
        tables = [
            extensions(f, mode, [n])
            for size in shape.sizes[:-1]
            for f, mode, n in zip(shape.axes, shape.modes, size, strict=True)
        ]
        ends = np.cumsum([0, *map(len, tables)]).tolist()
        self._entries = [(ends[2 * j], ends[2 * j + 1]) for j in range(shape.depth)]
        self._table = cuda.to_device(np.concatenate(tables))
        self._place_bands()

    def _place_bands(self) -> None:
        """Lay all levels out in one array."""
        s = self.shape
        self._starts, bands = [0], []
        for rows, columns in s.sizes[1:]:
            start, pitch = self._starts[-1], up4(rows * columns)
            bands += [(start + i * s.rows * pitch, pitch, rows * columns, s.rows) for i in range(BANDS)]
            self._starts.append(start + s.rows * (BANDS * pitch + rows * up4(columns)))
        end = self._starts[-1]
        array = self.buffer("details", end + s.rows * bands[0][1] // 8 + 8)
        self.layout = DetailLayout(array, bands, lists=end, listed=1)
        self._levels = self._cut(array)

    def _cut(self, array: DeviceArray) -> list[DeviceArray]:
        """The bands and the approximation of every level."""
        return [array[start:] for start in self._starts[:-1]]

    def release(self) -> None:
        super().release()
        del self._levels

    def aligned(self, flat: DeviceArray) -> bool:
        return interop.address(flat) % 16 == 0

    def _bands_of(self, j: int) -> tuple[int, int, int, int]:
        """Elements from panel to panel of a band of level ``j``, from band to band, to the approximation, in it."""
        rows, columns = self.shape.sizes[j]
        pitch = up4(rows * columns)
        return pitch, self.shape.rows * pitch, BANDS * self.shape.rows * pitch, rows * up4(columns)

    def forward(
        self, x: DeviceArray, aligned: bool, stream: Stream, flags: DeviceArray | None = None, beside: Beside = ALONE
    ) -> None:
        for j in range(1, self.shape.depth + 1):
            self.forward_launch(j, x, stream)
            if j == 1:
                beside.after_first()

    def _samples(self, j: int, array: DeviceArray, levels: list[DeviceArray]) -> tuple[DeviceArray, int, int]:
        """The input of level ``j``: its array, where it begins there, and elements from row to row."""
        if j == 1:
            return array, 0, self.shape.size[1]
        return levels[j - 2], self._bands_of(j - 1)[2], up4(self.shape.sizes[j - 1][1])

    def _level(self, banks: tuple[Bank, Bank]) -> PanelLevel:
        """What the kernels of a level are compiled for."""
        s, (down, along) = self.shape, self.shape.axes
        several = s.modes[0] in ("smooth", "antireflect"), s.modes[1] in ("smooth", "antireflect")
        return PanelLevel(*banks, (down.periodized, along.periodized), several, s.dtype, self.height, self.threads)

    def forward_launch(self, j: int, x: DeviceArray, stream: Stream) -> None:
        """One level of `forward`."""
        s, (down, along) = self.shape, self.shape.filters
        (rows, columns), (rows_out, columns_out) = s.sizes[j - 1], s.sizes[j]
        source, begin, pitch = self._samples(j, x, self._levels)
        level = self._level(((down[0], down[1]), (along[0], along[1])))
        across = -(-columns_out // level.forward_width)
        blocks, turns = self._blocks(across, rows_out)
        samples = (source, (begin, rows * pitch), _short(pitch, rows, columns))
        bands = (self._levels[j - 1], self._bands_of(j), _short(up4(columns_out), rows_out, columns_out))
        table, tiling = (self._table, self._entries[j - 1]), _short(across, turns)
        for first, panels in self._launches():
            launch = forward(level, self.options.fastmath)[(blocks, panels), self.threads, stream]
            launch(*samples, *bands, first, tiling, *table)

    def _blocks(self, across: int, rows: int) -> tuple[int, int]:
        """Blocks for a panel of so many tiles across and rows of coefficients, and how many tiles each goes down."""
        down = -(-rows // self.height)
        turns = max(min(across * down * self.shape.rows // BLOCKS, self.shape.axes[0].taps // TAPS_A_TURN), 1)
        return across * -(-down // turns), turns

    def _launches(self) -> Iterator[tuple[int, int]]:
        """The first panel of a launch, and how many take part: a grid has no more."""
        for first in range(0, self.shape.rows, ROWS):
            yield first, min(self.shape.rows - first, ROWS)

    def inverse(
        self, y: DeviceArray, aligned: bool, stream: Stream, by: Shrinking = KEPT, source: Source | None = None
    ) -> None:
        """``aligned`` if ``y`` begins at a multiple of 16 bytes."""
        s, levels = self.shape, self._levels if by.details is None else self._cut(by.details)
        for j in range(s.depth, 0, -1):
            self._inverse_launch(j, y, aligned, stream, levels, by, source)
        if source is not None:
            leave(source.x, y, s.samples, s.rows, source.live, self.options.threads, stream)

    def inverse_launch(
        self, j: int, y: DeviceArray, aligned: bool, stream: Stream, by: Shrinking = KEPT, source: Source | None = None
    ) -> None:
        """One level of `inverse`: to the approximation of the level before, or to ``y``."""
        self._inverse_launch(j, y, aligned, stream, self._levels, by, source)

    def _inverse_launch(
        self,
        j: int,
        y: DeviceArray,
        aligned: bool,
        stream: Stream,
        levels: list[DeviceArray],
        by: Shrinking,
        source: Source | None,
    ) -> None:
        s, (down, along) = self.shape, self.shape.filters
        (rows, columns), (rows_in, columns_in) = s.sizes[j - 1], s.sizes[j]
        target, begin, pitch = self._samples(j, y, levels)
        level = self._level(((down[2], down[3]), (along[2], along[3])))
        across = -(-((columns + 1) // 2) // level.inverse_width)
        blocks, turns = self._blocks(across, (rows + 1) // 2)
        bands = (levels[j - 1], self._bands_of(j), _short(up4(columns_in), rows_in, columns_in))
        limits = (target if by.thresholds is None else by.thresholds, BANDS * (j - 1) * s.rows)
        samples = (target, (begin, rows * pitch), _short(pitch, rows, columns))
        flags = self.buffer("flags", FLAGS, np.int32) if source is None else source.flags
        wide, checks = (aligned or j > 1) and pitch % 2 == 0, source is not None and j == 1
        for first, panels in self._launches():
            launch = inverse(level, by.function, self.options.fastmath)[(blocks, panels), self.threads, stream]
            launch(*bands, first, s.rows, _short(across, turns), *limits, *samples, wide, flags, checks)

    def places(self) -> list[Place]:
        s, found = self.shape, []
        for j in range(s.depth, 0, -1):
            rows, columns = s.sizes[j]
            if j == s.depth:
                pitch, begin = up4(columns), self._starts[j - 1] + self._bands_of(j)[2]
                found.append(Place(self.layout.array, begin, (s.rows, rows, columns), (rows * pitch, pitch, 1)))
            for band in self.layout.bands[BANDS * (j - 1) : BANDS * j][::-1]:
                found.append(Place(self.layout.array, band.offset, (s.rows, rows, columns), (band.pitch, columns, 1)))
        return found

    def shrunk(self, shrinkage: Shrinkage, stream: Stream) -> DeviceArray:
        """With the approximation beside them."""
        target, depth = super().shrunk(shrinkage, stream), self.shape.depth
        approximation = slice(self._starts[depth - 1] + self._bands_of(depth)[2], self._starts[depth])
        target[approximation].copy_to_device(self.layout.array[approximation], stream=stream)
        return target


def _short(*numbers: int) -> tuple[np.int32, ...]:
    """Sizes in 32 bits, with which kernels compute addresses in fewer instructions."""
    return tuple(map(np.int32, numbers))
