"""Transforms of both axes on the device: a plan with an array for every level, its pyramid, and statistics of bands."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import pywt
from numpy.typing import NDArray

from wavefilt.backends.cuda.dwt.forward import extensions
from wavefilt.backends.cuda.dwt.plan import Options, Shape, grid
from wavefilt.backends.cuda.dwt.tiling import FLAGS, ROWS, Filter, up4
from wavefilt.backends.cuda.modwt import kernels
from wavefilt.backends.cuda.modwt.plan import MOST_BLOCKS, ModwtStatistics
from wavefilt.backends.cuda.runtime import interop
from wavefilt.backends.cuda.runtime.buffers import Buffers
from wavefilt.backends.cuda.runtime.target import cuda
from wavefilt.backends.cuda.statistics.details import CudaStatistics
from wavefilt.backends.cuda.thresholding import kernels as shrinking
from wavefilt.thresholding.shrinkage import Posterior, Shrinkage
from wavefilt.transforms import Analysis, Pyramid

from . import kernels as sections_kernels
from .columns import STEP

BANDS = 3  # D, V and H, in the order of estimates
BLOCKS, TAPS_A_TURN = 2112, 8
"""How many blocks a launch keeps at least, 16 a multiprocessor, and how many taps are worth another tile to go down."""


@dataclass(frozen=True)
class SectionsShape:
    """What a plan is made for: filters, modes and sizes of ``rows`` sections, down their columns and along their rows.

    To a method each band is a level, and a section a row of so many ``samples``.
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
        wavelets: tuple[pywt.Wavelet, pywt.Wavelet], modes: tuple[str, str], dtype: str, depth: int, sections: int,
        size: tuple[int, int],
    ) -> SectionsShape:  # fmt: skip
        """Raises ValueError where PyWavelets does."""
        down, along = (tuple(tuple(map(float, taps)) for taps in wavelet.filter_bank) for wavelet in wavelets)
        shape = SectionsShape((down, along), modes, dtype, depth, sections, size)
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
            sections_kernels.filter_of(len(own[0]), mode) for own, mode in zip(self.filters, self.modes, strict=True)
        )
        return down, along

    @cached_property
    def sizes(self) -> list[tuple[int, int]]:
        """Rows and columns of a section, then of its bands at every level."""
        sizes = [self.size]
        for _ in range(self.depth):
            down, along = (f.length(n) for f, n in zip(self.axes, sizes[-1], strict=True))
            sizes.append((down, along))
        return sizes


class SectionsPlan(Buffers):
    """Launches of both transforms, and the arrays that they need; those of a level: `sections_kernels`."""

    def __init__(self, shape: SectionsShape, options: Options) -> None:
        super().__init__(shape.dtype)
        self.shape, self.options = shape, options
        taps = max(f.taps for f in shape.axes)
        self.threads = max(options.threads, 1 << (2 * taps - 1).bit_length())
        self.height = max(options.tile_for(shape.dtype) // self.threads // STEP, 1) * STEP
        tables = [
            extensions(f, mode, [n])
            for size in shape.sizes[:-1] for f, mode, n in zip(shape.axes, shape.modes, size, strict=True)
        ]  # fmt: skip
        ends = np.cumsum([0, *map(len, tables)]).tolist()
        self._tables = [(ends[2 * j], ends[2 * j + 1]) for j in range(shape.depth)]
        self._table = cuda.to_device(np.concatenate(tables)) if tables else None

    def pitch(self, j: int) -> int:
        """Elements from section to section of a band of level ``j``, counted from 1."""
        rows, columns = self.shape.sizes[j]
        return up4(rows * columns)

    def end(self, j: int) -> int:
        """Where in its array the bands and smooths of a level end; what follows is for lists of a search."""
        rows, columns = self.shape.sizes[j]
        return self.shape.rows * (BANDS * self.pitch(j) + rows * up4(columns))

    def bands(self, j: int) -> Any:
        """The array of a level: D, V and H of all sections, then smooths."""
        return self.buffer(f"bands {j}", self.end(j) + self.shape.rows * self.pitch(j) // 8 + 8)

    def _smooth(self, j: int) -> tuple[Any, int, int]:
        """The array with the smooths of a level, where they begin in it, and elements from row to row."""
        return self.bands(j), BANDS * self.shape.rows * self.pitch(j), up4(self.shape.sizes[j][1])

    def forward(self, x: Any, stream: Any, after_first: Callable[[], None] | None = None) -> None:
        """Coefficients of the sections in ``x``, a flat device array; ``after_first`` is called after one level."""
        for j in range(1, self.shape.depth + 1):
            self.forward_launch(j, x, stream)
            if j == 1 and after_first is not None:
                after_first()

    def forward_launch(self, j: int, x: Any, stream: Any) -> None:
        """One level of `forward`."""
        s = self.shape
        (rows, columns), (rows_out, columns_out) = s.sizes[j - 1], s.sizes[j]
        source, begin, pitch = (x, 0, columns) if j == 1 else self._smooth(j - 1)
        down, along = ((own[0], own[1]) for own in s.filters)
        several = tuple(map(sections_kernels.extrapolates, s.modes))
        kernel: Any = sections_kernels.forward(
            down, along, self._periodized, several, s.dtype, self.height, self.threads, self.options.fastmath
        )
        across = -(-columns_out // sections_kernels.forward_width(s.axes[1], self.threads))
        blocks, turns = self._blocks(across, rows_out)
        sizes, sizes_out = (pitch, rows, columns), (up4(columns_out), rows_out, columns_out)
        for first, sections in self._launches():
            kernel[(blocks, sections), self.threads, stream](
                source, begin, rows * pitch, *map(np.int32, sizes), self.bands(j), *self._layout(j),
                *map(np.int32, sizes_out), first, np.int32(across), np.int32(turns), self._table, *self._tables[j - 1],
            )  # fmt: skip

    def _blocks(self, across: int, rows: int) -> tuple[int, int]:
        """Blocks for a section of so many tiles across and rows of coefficients, and how many tiles each goes down."""
        down = -(-rows // self.height)
        turns = max(min(across * down * self.shape.rows // BLOCKS, self.shape.axes[0].taps // TAPS_A_TURN), 1)
        return across * -(-down // turns), turns

    def _launches(self) -> Iterator[tuple[int, int]]:
        """The first section of a launch, and how many take part: a grid has no more."""
        for first in range(0, self.shape.rows, ROWS):
            yield first, min(self.shape.rows - first, ROWS)

    def _layout(self, j: int) -> tuple[int, int, int, int]:
        """Elements from section to section of a band, from band to band, to the smooths, from one to one."""
        rows, columns = self.shape.sizes[j]
        return self.pitch(j), self.shape.rows * self.pitch(j), self._smooth(j)[1], rows * up4(columns)

    @property
    def _periodized(self) -> tuple[bool, bool]:
        down, along = self.shape.axes
        return down.periodized, along.periodized

    def inverse(
        self, y: Any, aligned: bool, function: str, thresholds: Any, stream: Any, flags: Any = None,
        bands: Callable[[int], Any] | None = None,
    ) -> None:  # fmt: skip
        """Sections from the coefficients, shrunk on the way, into the flat device array ``y``.

        ``aligned`` if it begins at a multiple of 16 bytes. ``bands(level)`` instead of the plan's own arrays.
        """
        for j in range(self.shape.depth, 0, -1):
            self.inverse_launch(j, y, aligned, function, thresholds, stream, flags, bands)

    def inverse_launch(
        self, j: int, y: Any, aligned: bool, function: str, thresholds: Any, stream: Any, flags: Any = None,
        bands: Callable[[int], Any] | None = None,
    ) -> None:  # fmt: skip
        """One level of `inverse`: to the smooths of the level before, or to ``y``."""
        s, bands = self.shape, bands or self.bands
        (rows, columns), (rows_in, columns_in) = s.sizes[j - 1], s.sizes[j]
        target, begin, pitch = (y, 0, columns) if j == 1 else (bands(j - 1), *self._smooth(j - 1)[1:])
        down, along = ((own[2], own[3]) for own in s.filters)
        kernel: Any = sections_kernels.inverse(
            down, along, self._periodized, s.dtype, self.height, self.threads, function, self.options.fastmath
        )
        across = -(-((columns + 1) // 2) // sections_kernels.inverse_width(s.axes[1], self.threads))
        blocks, turns = self._blocks(across, (rows + 1) // 2)
        nothing = self.buffer("flags", FLAGS, np.int32)
        sizes_in, sizes = (up4(columns_in), rows_in, columns_in), (pitch, rows, columns)
        for first, sections in self._launches():
            kernel[(blocks, sections), self.threads, stream](
                bands(j), *self._layout(j), *map(np.int32, sizes_in), first, s.rows, np.int32(across), np.int32(turns),
                target if thresholds is None else thresholds, BANDS * (j - 1) * s.rows, target, begin, rows * pitch,
                *map(np.int32, sizes), (aligned or j > 1) and pitch % 2 == 0, nothing if flags is None else flags,
                flags is not None and j == 1,
            )  # fmt: skip

    def leave(self, x: Any, y: Any, live: Any, stream: Any) -> None:
        """Copy the sections of ``x`` from which nothing is removed to ``y``."""
        s, threads = self.shape, self.options.threads
        blocks = min(-(-s.samples // threads), MOST_BLOCKS)
        kernels.leave(s.dtype, threads)[grid(blocks, s.rows), threads, stream](x, y, s.samples, s.rows, live)

    def coefficients(self) -> tuple[Any, ...]:
        """(cA_n, cH_n, cV_n, cD_n, ..., cH_1, cV_1, cD_1) as views of the arrays, shape (sections, rows, columns)."""
        s, found = self.shape, []
        for j in range(s.depth, 0, -1):
            rows, columns = s.sizes[j]
            array, begin, pitch = self._smooth(j)
            if j == s.depth:
                smooth = array[begin : self.end(j)].reshape(s.rows, rows, pitch)
                found.append(smooth[:, :, :columns])
            for i in reversed(range(BANDS)):
                bytes_apart = tuple(array.dtype.itemsize * n for n in (self.pitch(j), columns, 1))
                band = array[i * s.rows * self.pitch(j) :]
                found.append(interop.strided(band, (s.rows, rows, columns), bytes_apart))
        return tuple(found)

    def fill(self, coefficients: Sequence[NDArray[Any]], stream: Any) -> None:
        """Coefficients from elsewhere, in host memory."""
        s, (smooth, *details) = self.shape, coefficients
        for j in range(s.depth, 0, -1):
            rows, columns = s.sizes[j]
            packed = np.zeros(self.end(j), s.dtype)
            begin, pitch = self._smooth(j)[1:]
            for i, band in enumerate(reversed(details[:BANDS])):
                place = packed[i * s.rows * self.pitch(j) :][: s.rows * self.pitch(j)].reshape(s.rows, -1)
                place[:, : rows * columns] = band.reshape(s.rows, -1)
            if j == s.depth:
                packed[begin:].reshape(s.rows, rows, pitch)[:, :, :columns] = smooth
            self.bands(j)[: packed.size].copy_to_device(packed, stream=stream)
            details = details[BANDS:]
        stream.synchronize()

    def shrunk(self, shrinkage: Shrinkage, stream: Any) -> Callable[[int], Any]:
        """All details shrunk by a posterior, as `bands` with the smooths beside them."""
        s, function = self.shape, shrinkage.function
        assert isinstance(function, Posterior)
        assert shrinkage.sigma is not None
        for j in range(1, s.depth + 1):
            rows, columns = s.sizes[j]
            source, target = self.bands(j), self.buffer(f"shrunk {j}", self.end(j))
            smooths = slice(self._smooth(j)[1], self.end(j))
            if j == s.depth:
                target[smooths].copy_to_device(source[smooths], stream=stream)
            for i in range(BANDS):
                band, here = BANDS * (j - 1) + i, i * s.rows * self.pitch(j)
                shrinking.shrink(
                    function, source, target, (here, self.pitch(j), rows * columns, s.rows),
                    shrinkage.thresholds[band], shrinkage.sigma[band], s.dtype, self.options.threads, stream,
                )  # fmt: skip
        return lambda level: self.buffer(f"shrunk {level}", 0)


class CudaPyramid2(Pyramid):
    """A pyramid in the arrays of a plan, which is its own while it lives.

    ``coefficients`` are views of them for an array on a GPU; those of a host array are copied when asked for.
    """

    plan: SectionsPlan
    stream: Any

    def __init__(self, plan: SectionsPlan, stream: Any, analysis: Analysis, on_host: bool) -> None:
        shape = plan.shape.size
        values = {"plan": plan, "stream": stream, "analysis": analysis, "shape": shape, "_on_host": on_host}
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @cached_property
    def coefficients(self) -> tuple[Any, ...]:
        return interop.shown(self.plan.coefficients(), self.stream, self._on_host)  # type: ignore[attr-defined]


@dataclass(frozen=True, eq=False)
class _Rows(Shape):
    """As if of a decimated transform of twice the samples; lists of a search are from ``end`` on."""

    end: int = 0

    @cached_property
    def offsets(self) -> list[int]:
        return [0, self.end]


class Band:
    """Some bands of a level, from ``first`` on, as `CudaStatistics` and `Selection` take a plan: a row a section."""

    searches = False

    def __init__(self, plan: SectionsPlan, j: int, first: int, bands: int = 1) -> None:
        s = plan.shape
        rows, columns = s.sizes[j]
        begin = first * s.rows * plan.pitch(j)
        empty: tuple[float, ...] = (0.0, 0.0)
        self.shape = _Rows(
            empty, empty, empty, empty, "periodization", s.dtype, 1, bands * s.rows, 2 * rows * columns,
            plan.end(j) - begin,
        )  # fmt: skip
        self.details, self.options = plan.bands(j)[begin:], plan.options
        self._plan, self._name = plan, f"of {first} of {j}"

    def buffer(self, name: str, size: int, dtype: Any = None) -> Any:
        return self._plan.buffer(f"{name} {self._name}", size, dtype)


class SectionsStatistics(ModwtStatistics):
    """`Statistics` of the bands, each a level of its own."""

    def __init__(self, plans: Sequence[SectionsPlan], pooled: bool, stream: Any, owners: Any) -> None:
        deepest = max(plan.shape.depth for plan in plans)
        self._plans, self._stream = (), stream
        self._of = []
        for j in range(1, deepest + 1):
            for i in range(BANDS):
                bands: Any = [Band(plan, j, i) for plan in plans if plan.shape.depth >= j]
                self._of.append(CudaStatistics(bands, pooled, stream, owners))
