"""The MODWT on the device: a plan with a buffer for every level, its pyramid, and the statistics of its details."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import pywt
from numpy.typing import NDArray

from wavefilt import margins
from wavefilt.backends.interface import Pyramid, Risk
from wavefilt.shrinkage import Posterior, Shrinkage

from . import interop, modwt_kernels, shrinking
from .buffers import Buffers
from .geometry import FLAGS, NOT_FINITE, up4
from .plan import Options, Shape, grid
from .statistics import CudaStatistics
from .target import cuda


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
    def of(wavelet: pywt.Wavelet, mode: str, dtype: str, level: int, start_level: int, shape: Any) -> ModwtShape:
        margins.check(shape[1], mode)
        filters = tuple(tuple(map(float, taps)) for taps in wavelet.filter_bank)
        return ModwtShape(filters, mode, dtype, level, start_level, *map(int, shape))

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
        self.flags = cuda.mapped_array(FLAGS, np.int32)  # in host memory: written only when something is wrong
        self.flags[:] = 0

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

    def forward(self, x: Any, stream: Any) -> None:
        """Coefficients of the rows of ``x``, a flat device array."""
        s, threads = self.shape, self.options.threads
        v, pitch, length = self._smooth(0)
        mode = "periodic" if s.round_about else s.mode
        extend = modwt_kernels.extend(mode, s.dtype, threads)
        first = -s.needed(0)[0]
        self._launch(extend, length, stream, x, s.samples, s.samples, s.rows, first, v, pitch, length, self.flags)
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

    def inside(self, level: int, stream: Any) -> Any:
        """The details of a level that belong to the samples, rows of them up to a multiple of four apart."""
        s = self.shape
        if not sum(s.kept(level)):
            return self.details(level)
        target = self.buffer(f"inside {level}", s.rows * up4(s.samples))
        self._launch(
            modwt_kernels.cut(s.dtype, self.options.threads), s.samples, stream, self.details(level),
            self.pitch(level), s.rows, s.kept(level)[0], target, up4(s.samples), s.samples,
        )  # fmt: skip
        return target

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


class _Level:
    """One level's details as `CudaStatistics` takes a plan: those of a decimated transform of twice the samples."""

    def __init__(self, plan: ModwtPlan, level: int, stream: Any) -> None:
        s = plan.shape
        lo, hi, rec_lo, rec_hi = s.filters
        self.shape = Shape(lo, hi, rec_lo, rec_hi, "periodization", s.dtype, 1, s.rows, 2 * s.samples)
        self.details, self.options, self._plan, self._level = plan.inside(level, stream), plan.options, plan, level

    def buffer(self, name: str, size: int, dtype: Any = None) -> Any:
        return self._plan.buffer(f"{name} of {self._level}", size, dtype)


class ModwtStatistics:
    """`Statistics` of the details that belong to samples, level by level."""

    def __init__(self, pyramids: Sequence[CudaModwt], pooled: bool) -> None:
        stream = pyramids[0].stream
        self._of = [
            CudaStatistics(
                [_Level(p.plan, j, stream) for p in pyramids if p.level >= j],  # type: ignore[misc]
                pooled, stream, pyramids,
            )
            for j in range(1, max(p.level for p in pyramids) + 1)
        ]  # fmt: skip

    @property
    def counts(self) -> NDArray[np.int64]:
        return np.concatenate([one.counts for one in self._of])

    @property
    def groups(self) -> int:
        return self._of[0].groups

    def median_abs(self, levels: Sequence[int]) -> NDArray[np.float64]:
        return np.concatenate([self._of[j - 1].median_abs([1]) for j in levels])

    def mean_square(self) -> NDArray[np.float64]:
        return np.concatenate([one.mean_square() for one in self._of])

    def exceeding(self, thresholds: NDArray[np.float64]) -> NDArray[np.int64]:
        return np.concatenate([one.exceeding(t[None]) for one, t in zip(self._of, thresholds, strict=True)])

    def histogram(self, level: int, widths: NDArray[np.float64], bins: int) -> NDArray[np.int64]:
        return self._of[level - 1].histogram(1, widths, bins)

    def minimise(self, risk: Risk, sigma: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.concatenate([one.minimise(risk, s[None]) for one, s in zip(self._of, sigma, strict=True)])


def finite(plan: ModwtPlan) -> bool:
    """Whether the samples since the last call were; their stream must have come to its end."""
    found = plan.flags[NOT_FINITE] == 0
    plan.flags[:] = 0
    return bool(found)
