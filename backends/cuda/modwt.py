"""The MODWT on the device: a plan with a buffer for every level, its pyramid, and the statistics of its details."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import pywt
from numpy.typing import NDArray

from wavefilt import margins
from wavefilt.backends.interface import Pyramid, Risk
from wavefilt.shrinkage import Posterior, Shrinkage

from . import interop, modwt_kernels, shrinking
from .buffers import Buffers
from .geometry import FLAGS, up4
from .plan import Options, Shape, grid
from .statistics import CudaStatistics

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
        margins.check(samples, mode)
        filters = tuple(tuple(map(float, taps)) for taps in wavelet.filter_bank)
        return ModwtShape(filters, mode, dtype, level, start_level, rows, samples)

    @property
    def taps(self) -> int:
        return len(self.filters[0])

    @property
    def round_about(self) -> bool:
        return self.mode in margins.ROUND

    def kept(self, level: int) -> tuple[int, int]:
        """Coefficients of a level before the samples and after them."""
        return margins.kept(self.taps, self.mode, level, self.start_level)

    def needed(self, level: int) -> tuple[int, int]:
        """Smooths of a level, or at level 0 samples, before the samples and after them."""
        return margins.needed(self.taps, self.mode, level, self.level, self.start_level)

    def reach(self, level: int, before: int) -> tuple[int, int]:
        """How far apart the taps of a level are, and how far the first of ``before`` lies before its coefficient.

        As rows that go round need it: less than their length. In others all taps lie at coefficients or after them.
        """
        step = 1 << (self.start_level + level - 1)
        return (step % self.samples, step * before % self.samples) if self.round_about else (step, 0)


class ModwtPlan(Buffers):
    """Launches of both transforms, and the (level + 2) arrays of about the samples' size that they need."""

    def __init__(self, shape: ModwtShape, options: Options) -> None:
        super().__init__(shape.dtype)
        self.shape, self.options = shape, options
        self._lengths = [shape.samples + sum(shape.kept(j)) for j in range(shape.level + 1)]

    def details(self, level: int) -> Any:
        """Those of a level, a row after the other, each `pitch` apart."""
        return self.buffer(f"details {level}", self.shape.rows * self.pitch(level))

    def pitch(self, level: int) -> int:
        return up4(self._lengths[level])

    def _smooth(self, level: int) -> tuple[Any, int, int]:
        """Buffer, pitch and length of the smooths of a level; every second level shares one but the coarsest."""
        s = self.shape
        length, longest = (s.samples + sum(s.needed(j)) for j in (level, 0))
        name = "coarsest" if level == s.level else f"smooth {level % 2}"
        return self.buffer(name, s.rows * up4(longest)), up4(length), length

    def _launch(self, kernel: Any, length: int, stream: Any, *arguments: Any) -> None:
        threads = self.options.threads
        kernel[grid(-(-length // threads), self.shape.rows), threads, stream](*arguments)

    def forward(self, x: Any, stream: Any, flags: Any = None) -> None:
        """Coefficients of the rows of ``x``, a flat device array; ``flags`` tell of samples that are not finite."""
        s, threads = self.shape, self.options.threads
        flags = self.buffer("flags", FLAGS, np.int32) if flags is None else flags
        v, pitch, length = self._smooth(0)
        mode = "periodic" if s.round_about else s.mode
        extend = modwt_kernels.extend(mode, s.dtype, threads)
        first = -s.needed(0)[0]
        self._launch(extend, length, stream, x, s.samples, s.samples, s.rows, first, v, pitch, length, flags)
        analysis = modwt_kernels.analysis(*s.filters[:2], s.round_about, s.dtype, threads)
        for j in range(1, s.level + 1):
            smooth, smooth_pitch, length = self._smooth(j)
            begin = s.needed(j)[0] - s.kept(j)[0]
            self._launch(
                analysis, length, stream, v, pitch, s.rows, *s.reach(j, s.taps // 2 - 1), smooth, smooth_pitch, length,
                self.details(j), self.pitch(j), begin, self._lengths[j],
            )  # fmt: skip
            v, pitch = smooth, smooth_pitch

    def inverse(self, y: Any, function: str, thresholds: Any, stream: Any, details: Any = None) -> None:
        """Rows from the coefficients into the flat device array ``y``; ``details(level)`` instead of its own."""
        s, details = self.shape, details or self.details
        v, pitch, _ = self._smooth(s.level)
        kernel = modwt_kernels.synthesis(*s.filters[2:], s.round_about, s.dtype, self.options.threads, function)
        for j in range(s.level, 0, -1):
            length = self._lengths[j - 1]
            out, out_pitch = (y, s.samples) if j == 1 else (self._smooth(j - 1)[0], up4(length))
            self._launch(
                kernel, length, stream, v, pitch, details(j), self.pitch(j), s.rows, *s.reach(j, s.taps // 2),
                details(j) if thresholds is None else thresholds, (j - 1) * s.rows, out, out_pitch, length,
            )  # fmt: skip
            v, pitch = out, out_pitch

    def inside(self, level: int) -> Any:
        """Where `cut` leaves the details of a level that belong to the samples, rows up to a multiple of four apart.

        One place for all levels, which are measured one after the other.
        """
        s = self.shape
        if not sum(s.kept(level)):
            return self.details(level)
        return self.buffer("inside", s.rows * up4(s.samples))

    def cut(self, level: int, stream: Any) -> None:
        """Launch what fills `inside`."""
        s = self.shape
        if sum(s.kept(level)):
            self._launch(
                modwt_kernels.cut(s.dtype, self.options.threads), s.samples, stream, self.details(level),
                self.pitch(level), s.rows, s.kept(level)[0], self.inside(level), up4(s.samples), s.samples,
            )  # fmt: skip

    def leave(self, x: Any, y: Any, live: Any, stream: Any) -> None:
        """Copy the rows of ``x`` from which nothing is removed to ``y``."""
        s, threads = self.shape, self.options.threads
        blocks = min(-(-s.samples // threads), MOST_BLOCKS)
        modwt_kernels.leave(s.dtype, threads)[grid(blocks, s.rows), threads, stream](x, y, s.samples, s.rows, live)

    def coefficients(self) -> tuple[Any, ...]:
        """(V_J, W_J, ..., W_1) as views of the buffers, shape (rows, length)."""
        s = self.shape
        smooth, pitch, length = self._smooth(s.level)
        views = [smooth[: s.rows * pitch].reshape(s.rows, pitch)[:, :length]]
        for j in range(s.level, 0, -1):
            views.append(self.details(j).reshape(s.rows, -1)[:, : self._lengths[j]])
        return tuple(views)

    def fill(self, coefficients: Sequence[NDArray[Any]], stream: Any) -> None:
        """Coefficients from elsewhere."""
        smooth, pitch, _ = self._smooth(self.shape.level)
        places = [(smooth, pitch)] + [(self.details(j), self.pitch(j)) for j in range(self.shape.level, 0, -1)]
        for (target, pitch), values in zip(places, coefficients, strict=True):
            padded = np.zeros((len(values), pitch), self.shape.dtype)
            padded[:, : values.shape[1]] = values
            target[: padded.size].copy_to_device(padded.ravel(), stream=stream)

    def shrunk(self, shrinkage: Shrinkage, stream: Any) -> Any:
        """All details shrunk by a posterior, as a function of the level."""
        s, function = self.shape, shrinkage.function
        assert isinstance(function, Posterior)
        assert shrinkage.sigma is not None
        for j in range(1, s.level + 1):
            target = self.buffer(f"shrunk {j}", s.rows * self.pitch(j))
            layout, row = (0, self.pitch(j), self._lengths[j], s.rows), j - 1
            shrinking.shrink(
                function, self.details(j), target, layout, shrinkage.thresholds[row], shrinkage.sigma[row], s.dtype,
                self.options.threads, stream,
            )  # fmt: skip
        return lambda level: self.buffer(f"shrunk {level}", 0)


class CudaModwt(Pyramid):
    """A MODWT in the buffers of a plan, which is its own while it lives."""

    plan: ModwtPlan
    stream: Any

    def __init__(self, plan: ModwtPlan, stream: Any, wavelet: pywt.Wavelet, on_host: bool) -> None:
        s = plan.shape
        values = {"plan": plan, "stream": stream, "wavelet": wavelet, "mode": s.mode, "samples": s.samples,
                  "transform": "modwt", "start_level": s.start_level, "_on_host": on_host}  # fmt: skip
        for name, value in values.items():
            object.__setattr__(self, name, value)

    @property
    def level(self) -> int:
        return self.plan.shape.level

    @cached_property
    def coefficients(self) -> tuple[Any, ...]:
        views = self.plan.coefficients()
        return tuple(interop.host_rows(view, self.stream) for view in views) if self._on_host else views  # type: ignore[attr-defined]


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
