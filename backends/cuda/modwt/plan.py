"""The MODWT on the device: a plan with a buffer for every level, its pyramid, and the statistics of its details."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import pywt
from numpy.typing import NDArray

from wavefilt.backends.cuda.dwt.plan import Options, Shape, grid
from wavefilt.backends.cuda.dwt.tiling import FLAGS, up4
from wavefilt.backends.cuda.runtime import interop
from wavefilt.backends.cuda.runtime.buffers import Buffers
from wavefilt.backends.cuda.statistics.details import CudaStatistics
from wavefilt.backends.cuda.thresholding import kernels as shrinking
from wavefilt.statistics.interface import Risk
from wavefilt.thresholding.shrinkage import Posterior, Shrinkage
from wavefilt.transforms import Analysis, Pyramid
from wavefilt.wavelets import modwt_boundary

from . import kernels
from .tiling import Launch, launches, threads_for

MOST_BLOCKS = 64  # a row: of a kernel that mostly has nothing to do


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
    def round_about(self) -> bool:
        return self.mode in modwt_boundary.ROUND

    def kept(self, level: int) -> tuple[int, int]:
        """Coefficients of a level before the samples and after them."""
        return modwt_boundary.kept(self.taps, self.mode, level, self.start_level)

    def needed(self, level: int) -> tuple[int, int]:
        """Smooths of a level, or at level 0 samples, before the samples and after them."""
        return modwt_boundary.needed(self.taps, self.mode, level, self.level, self.start_level)

    def place(self, ends: tuple[int, int], start: int = 0) -> tuple[int, int, int, int]:
        """Of rows with so many elements before the samples and after them, sample 0 of each at a multiple of four.

        Where that of the first row lies in an array of which rows begin at ``start``, how far rows are apart, the first
        position and the end of all.
        """
        before, after = ends
        return start + up4(before), up4(up4(before) + self.samples + after), -before, self.samples + after


class ModwtPlan(Buffers):
    """Launches of both transforms, and the (level + 1) to (level + 3) arrays of about the samples' size they need."""

    def __init__(self, shape: ModwtShape, options: Options) -> None:
        super().__init__(shape.dtype)
        self.shape, self.options = shape, options
        self._threads = threads_for(shape.dtype, options.threads)
        self._launches = launches(shape.taps, shape.level, shape.start_level, shape.dtype, self._threads)
        self._starts = [0]
        for j in range(1, shape.level + 1):
            self._starts.append(self._starts[-1] + shape.rows * self.pitch(j))

    def pitch(self, level: int) -> int:
        """How far rows of details are apart."""
        return self.shape.place(self.shape.kept(level))[1]

    def details(self, level: int) -> Any:
        """Those of a level, a row after the other, as `ModwtShape.place` has them."""
        return self._all[self._starts[level - 1] : self._starts[level]]

    @property
    def _all(self) -> Any:
        """The details of all levels."""
        return self.buffer("details", max(self._starts[-1], 1))

    def _places(self, launch: Launch) -> tuple[tuple[int, int, int, int], ...]:
        """Of the details of a launch's levels, in `_all`."""
        s = self.shape
        return tuple(s.place(s.kept(j + 1), self._starts[j]) for j in range(launch.first, launch.last))

    def _smooth(self, launch: int) -> Any:
        """What this launch of the forward transform writes; every second shares a buffer but the coarsest."""
        s = self.shape
        done = [one.last for one in self._launches]
        if launch in (-1, len(done) - 1):
            return self.buffer("coarsest", s.rows * s.place(s.kept(s.level))[1])
        longest = max(s.place(s.needed(j))[1] for j in done[launch % 2 : -1 : 2])
        return self.buffer(f"smooth {launch % 2}", s.rows * longest)

    def _launch(self, kernel: Any, length: int, stream: Any, *arguments: Any) -> None:
        threads = self.options.threads
        kernel[grid(-(-length // threads), self.shape.rows), threads, stream](*arguments)

    def forward(self, x: Any, stream: Any, flags: Any = None) -> None:
        """Coefficients of the rows of ``x``, a flat device array; ``flags`` tell of samples that are not finite."""
        s, threads = self.shape, self.options.threads
        flags = self.buffer("flags", FLAGS, np.int32) if flags is None else flags
        before, after = s.needed(0)
        extend = kernels.extend("periodic" if s.round_about else s.mode, s.dtype, threads)
        if not s.level:
            rows = self._smooth(-1), up4(s.samples), s.samples
            self._launch(extend, s.samples, stream, x, s.samples, s.samples, s.rows, 0, 0, *rows, flags)
            return
        beyond = self.buffer("beyond", max(s.rows * (before + after), 1))
        if before + after:
            rows = beyond, before + after, before + after
            self._launch(
                extend, before + after, stream, x, s.samples, s.samples, s.rows, -before, s.samples, *rows, flags
            )
        v, source, aligned = x, (0, s.samples, 0, s.samples), interop.aligned(x, s.rows, s.samples)
        for i, one in enumerate(self._launches):
            smooth, place = self._smooth(i), s.place(s.needed(one.last))
            first, tile, blocks = one.forward.grid(one.spread, *place[2:], s.rows)
            kernel = kernels.analysis(*s.filters[:2], s.round_about, not one.first, s.dtype, one.forward)
            kernel[grid(blocks, s.rows), self._threads, stream](
                v, source, aligned, beyond, before, after, s.rows, first, tile, one.spread, self._all,
                self._places(one), smooth, place, flags,
            )  # fmt: skip
            v, source, aligned = smooth, place, True

    def inverse(self, y: Any, function: str, thresholds: Any, stream: Any, details: Any = None) -> None:
        """Rows from the coefficients into the flat device array ``y``; ``details`` are those of `shrunk` instead."""
        s, details = self.shape, self._all if details is None else details
        v, source = self._smooth(-1), s.place(s.kept(s.level))
        if not s.level:
            cut = kernels.cut(s.dtype, self.options.threads)
            self._launch(cut, s.samples, stream, v, source[1], s.rows, 0, y, s.samples, s.samples)
        for i, one in reversed(list(enumerate(self._launches))):
            if one.first:
                out, place, aligned = self._smooth(i - 1), s.place(s.kept(one.first)), True
            else:
                out, place, aligned = y, (0, s.samples, 0, s.samples), interop.aligned(y, s.rows, s.samples)
            first, tile, blocks = one.inverse.grid(one.spread, *place[2:], s.rows)
            kernel = kernels.synthesis(*s.filters[2:], s.round_about, s.dtype, one.inverse, function)
            kernel[grid(blocks, s.rows), self._threads, stream](
                v, source, details, self._places(one), details if thresholds is None else thresholds,
                one.first * s.rows, s.rows, first, tile, one.spread, out, place, aligned,
            )  # fmt: skip
            v, source = out, place

    def inside(self, level: int) -> Any:
        """Where `cut` leaves the details of a level that belong to the samples, rows up to a multiple of four apart.

        One place for all levels, which are measured one after the other; of a single row where they are.
        """
        s = self.shape
        if s.rows == 1 or s.round_about:
            return self.details(level)[s.place(s.kept(level))[0] :]
        return self.buffer("inside", s.rows * up4(s.samples))

    def cut(self, level: int, stream: Any) -> None:
        """Launch what fills `inside`."""
        s = self.shape
        if s.rows > 1 and not s.round_about:
            origin, pitch, _, _ = s.place(s.kept(level))
            self._launch(
                kernels.cut(s.dtype, self.options.threads), s.samples, stream, self.details(level), pitch, s.rows,
                origin, self.inside(level), up4(s.samples), s.samples,
            )  # fmt: skip

    def leave(self, x: Any, y: Any, live: Any, stream: Any) -> None:
        """Copy the rows of ``x`` from which nothing is removed to ``y``."""
        s, threads = self.shape, self.options.threads
        blocks = min(-(-s.samples // threads), MOST_BLOCKS)
        kernels.leave(s.dtype, threads)[grid(blocks, s.rows), threads, stream](x, y, s.samples, s.rows, live)

    def _arrays(self) -> list[tuple[Any, tuple[int, int, int, int]]]:
        """V_J, W_J, ..., W_1 with their places."""
        s = self.shape
        levels = [s.level, *range(s.level, 0, -1)]
        arrays = [self._smooth(-1), *map(self.details, levels[1:])]
        return [(array, s.place(s.kept(j))) for array, j in zip(arrays, levels, strict=True)]

    def coefficients(self) -> tuple[Any, ...]:
        """(V_J, W_J, ..., W_1) as views of the buffers, shape (rows, length)."""
        return tuple(
            array[: self.shape.rows * pitch].reshape(-1, pitch)[:, origin + low : origin + high]
            for array, (origin, pitch, low, high) in self._arrays()
        )

    def fill(self, coefficients: Sequence[NDArray[np.floating[Any]]], stream: Any) -> None:
        """Coefficients from elsewhere."""
        for (target, (origin, pitch, low, high)), values in zip(self._arrays(), coefficients, strict=True):
            padded = np.zeros((len(values), pitch), self.shape.dtype)
            padded[:, origin + low : origin + high] = values
            target[: padded.size].copy_to_device(padded.ravel(), stream=stream)

    def shrunk(self, shrinkage: Shrinkage, stream: Any) -> Any:
        """All details shrunk by a posterior, placed as its own are."""
        s, function = self.shape, shrinkage.function
        assert isinstance(function, Posterior)
        assert shrinkage.sigma is not None
        target = self.buffer("shrunk", self._starts[-1])
        for j in range(1, s.level + 1):
            origin, pitch, low, high = s.place(s.kept(j), self._starts[j - 1])
            layout, row = (origin + low, pitch, high - low, s.rows), j - 1
            shrinking.shrink(
                function, self._all, target, layout, shrinkage.thresholds[row], shrinkage.sigma[row], s.dtype,
                self.options.threads, stream,
            )  # fmt: skip
        return target


class CudaModwt(Pyramid):
    """A MODWT in the buffers of a plan, which is its own while it lives."""

    plan: ModwtPlan
    stream: Any

    def __init__(self, plan: ModwtPlan, stream: Any, analysis: Analysis, on_host: bool) -> None:
        shape = (plan.shape.samples,)
        values = {"plan": plan, "stream": stream, "analysis": analysis, "shape": shape, "_on_host": on_host}
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @cached_property
    def coefficients(self) -> tuple[Any, ...]:
        return interop.shown(self.plan.coefficients(), self.stream, self._on_host)  # type: ignore[attr-defined]


class Level:
    """One level's details as `CudaStatistics` takes a plan: those of a decimated transform of twice the samples."""

    def __init__(self, plan: ModwtPlan, level: int) -> None:
        s = plan.shape
        lo, hi, rec_lo, rec_hi = s.filters
        self.shape = Shape(lo, hi, rec_lo, rec_hi, "periodization", s.dtype, 1, s.rows, 2 * s.samples)
        self.details, self.options, self._plan, self._level = plan.inside(level), plan.options, plan, level

    def buffer(self, name: str, size: int, dtype: Any = None) -> Any:
        return self._plan.buffer(f"{name} of {self._level}", size, dtype)


class ModwtStatistics:
    """`Statistics` of the details that belong to samples, level by level."""

    def __init__(self, plans: Sequence[ModwtPlan], pooled: bool, stream: Any, owners: Any) -> None:
        self._plans, self._stream, self._of = plans, stream, []
        for j in range(1, max(plan.shape.level for plan in plans) + 1):
            levels: Any = [Level(plan, j) for plan in plans if plan.shape.level >= j]
            self._of.append(CudaStatistics(levels, pooled, stream, owners))

    def _level(self, j: int) -> CudaStatistics:
        """Of the j-th level, whose details are put where it reads them."""
        for plan in self._plans:
            if plan.shape.level >= j:
                plan.cut(j, self._stream)
        return self._of[j - 1]

    def _levels(self) -> Iterator[CudaStatistics]:
        return map(self._level, range(1, len(self._of) + 1))

    @property
    def counts(self) -> NDArray[np.int64]:
        return np.concatenate([one.counts for one in self._of])

    @property
    def groups(self) -> int:
        return self._of[0].groups

    def median_abs(self, levels: Sequence[int]) -> NDArray[np.float64]:
        return np.concatenate([self._level(j).median_abs([1]) for j in levels])

    def mean_square(self) -> NDArray[np.float64]:
        return np.concatenate([one.mean_square() for one in self._levels()])

    def exceeding(self, thresholds: NDArray[np.float64]) -> NDArray[np.int64]:
        return np.concatenate([one.exceeding(t[None]) for one, t in zip(self._levels(), thresholds, strict=True)])

    def histogram(self, level: int, widths: NDArray[np.float64], bins: int) -> NDArray[np.int64]:
        return self._level(level).histogram(1, widths, bins)

    def minimise(self, risk: Risk, sigma: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.concatenate([one.minimise(risk, s[None]) for one, s in zip(self._levels(), sigma, strict=True)])
