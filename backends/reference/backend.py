"""The reference backend: PyWavelets and NumPy, on the CPU, one trace after another."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from itertools import zip_longest
from typing import Any

import numpy as np
import pywt
from numpy.typing import NDArray

from wavefilt.backends.interface import Pyramid, Pyramid2, Risk
from wavefilt.statistics import counts as host_counts
from wavefilt.thresholding.shrinkage import Shrinkage
from wavefilt.vocabulary import TRANSFORMS, Scope, check

from . import dwt2, modwt


class PyWavelets:
    name = "pywavelets"
    dtypes = ("float32", "float64", "complex64", "complex128")

    def describe(self) -> str:
        return f"PyWavelets {version('PyWavelets')}, NumPy {np.__version__}"

    def peak(self, x: NDArray[Any]) -> float:
        return float(np.max(np.abs(x), initial=0))

    def decompose(
        self,
        x: NDArray[Any],
        wavelet: pywt.Wavelet,
        mode: str,
        level: int,
        transform: str = "dwt",
        start_level: int = 0,
    ) -> Pyramid:
        samples = x.shape[-1]
        check("transform", transform, TRANSFORMS)
        if transform == "modwt":
            return modwt.decompose(x, wavelet, mode, level, start_level)
        details = []
        for _ in range(level):  # pywt.wavedec warns beyond its maximum level; whether that matters is the caller's
            x, detail = pywt.dwt(x, wavelet, mode)
            details.append(detail)
        return Pyramid((x, *reversed(details)), wavelet, mode, samples)

    def statistics(self, pyramids: Sequence[Pyramid | Pyramid2], scope: Scope) -> ReferenceStatistics:
        together = zip_longest(*(pyramid.details for pyramid in pyramids))
        levels = [[d for d in details if d is not None] for details in together]
        if scope == "record":
            return ReferenceStatistics([np.concatenate([d.ravel() for d in ds])[None] for ds in levels])
        return ReferenceStatistics([d for (d,) in levels])  # by trace there is one pyramid

    def reconstruct(self, pyramid: Pyramid, shrinkage: Shrinkage | None = None) -> NDArray[Any]:
        if pyramid.transform == "modwt":
            return modwt.reconstruct(pyramid, shrinkage)
        y, details = pyramid.coefficients[0], pyramid.coefficients[1:]
        for i, detail in enumerate(details):
            if shrinkage is not None:
                detail = shrinkage.of_level(len(details) - 1 - i, detail)
            y = pywt.idwt(y[:, : detail.shape[-1]], detail, pyramid.wavelet, pyramid.mode)
        return np.ascontiguousarray(y[:, : pyramid.samples])

    decompose2 = staticmethod(dwt2.decompose)
    reconstruct2 = staticmethod(dwt2.reconstruct)


class ReferenceStatistics:
    """Statistics of details given as one array (groups, coefficients) a level, finest first."""

    def __init__(self, details: Sequence[NDArray[Any]]) -> None:
        self._details = details

    @property
    def counts(self) -> NDArray[np.int64]:
        return np.array([d.shape[-1] for d in self._details], dtype=np.int64)

    @property
    def groups(self) -> int:
        return len(self._details[0])

    def median_abs(self, levels: Sequence[int]) -> NDArray[np.float64]:
        return np.array([_median(np.abs(self._details[i - 1])) for i in levels])

    def mean_square(self) -> NDArray[np.float64]:
        with np.errstate(over="ignore"):  # an infinite mean square is told from by whoever uses it
            return np.array([np.mean(np.square(np.abs(d), dtype=np.float64), axis=-1) for d in self._details])

    def exceeding(self, thresholds: NDArray[np.float64]) -> NDArray[np.int64]:
        return np.array([host_counts.exceeding(d, t) for d, t in zip(self._details, thresholds, strict=True)])

    def histogram(self, level: int, widths: NDArray[np.float64], bins: int) -> NDArray[np.int64]:
        return host_counts.histogram(self._details[level - 1], widths, bins)

    def minimise(self, risk: Risk, sigma: NDArray[np.float64]) -> NDArray[np.float64]:
        best = np.zeros_like(sigma)
        for row, details, scale in zip(best, self._details, sigma, strict=True):
            magnitudes = np.sort(np.abs(details).astype(np.float64), axis=-1)
            magnitudes = np.pad(magnitudes, ((0, 0), (1, 0)))  # 0 is a candidate too
            alive = scale > 0
            squares = (magnitudes[alive] / scale[alive, None]) ** 2
            rank = np.arange(squares.shape[-1])
            values = risk(squares, rank, np.cumsum(squares, axis=-1), details.shape[-1])
            row[alive] = np.take_along_axis(magnitudes[alive], np.argmin(values, axis=-1)[:, None], -1)[:, 0]
        return best


def _median(magnitudes: NDArray[Any]) -> NDArray[np.float64]:
    """Median of each row: the mean, in float64, of the two middle order statistics."""
    low, high = (magnitudes.shape[-1] - 1) // 2, magnitudes.shape[-1] // 2
    middle = np.partition(magnitudes, (low, high), axis=-1)[:, [low, high]]
    return np.asarray(middle.mean(axis=-1, dtype=np.float64))
