"""Procedures to denoise that the quality study compares: the library's rules with their options, and scikit-image's."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

import wavefilt
from wavefilt import backends
from wavefilt.arrays import Floats
from wavefilt.benchmarks.quality.signals import Samples
from wavefilt.method import Method
from wavefilt.thresholding import rules
from wavefilt.thresholding.shrinkage import Shrinkage
from wavefilt.wavelets.filters import max_level

Options = dict[str, Any]
"""Of `denoise`."""
Thresholds = Callable[[backends.Pyramid, backends.Statistics, Floats], Floats]
"""From a transform, its statistics and the noise (levels, traces) to thresholds of that shape."""


@dataclass(frozen=True)
class Procedure:
    """``options`` are those of `denoise`; ``thresholds``, if there are any, take the place of the rule's."""

    name: str
    options: Options = field(default_factory=dict)
    thresholds: Thresholds | None = None

    def __call__(self, x: Samples, **common: Any) -> Samples:
        """Denoise the rows of ``x``, by `denoise` itself where it can.

        It refuses levels none of whose details are free of the boundary, which the literature uses.
        """
        options = common | self.options
        level = options.pop("level", None)
        method = Method(**options)
        if self.thresholds is None and (level or 0) <= max_level(x.shape[1], method.bank):
            return np.asarray(wavefilt.denoise(x, level=level, backend="numba", **options))
        backend = backends.get("numba")
        pyramid = backend.decompose(np.ascontiguousarray(x), method.analysis(level or 0))
        statistics = backend.statistics([pyramid], "trace")
        sigma, found = method.thresholds(statistics, x.shape[1])
        if self.thresholds is not None:
            found = self.thresholds(pyramid, statistics, sigma)
        return np.asarray(backend.reconstruct(pyramid, Shrinkage(method.function(x.shape[1]), found, sigma)))


def above(pyramid: backends.Pyramid, statistics: backends.Statistics, sigma: Floats) -> Floats:
    """SURE's thresholds, which each are some |d|, raised so little that hard thresholding removes that one as well."""
    return np.asarray(np.nextafter(rules.sure(statistics, sigma, pyramid.samples), np.inf))


def minimax_for_soft(pyramid: backends.Pyramid, statistics: backends.Statistics, sigma: Floats) -> Floats:
    """Donoho and Johnstone's thresholds for soft shrinkage, to be applied hard."""
    return rules.minimax(statistics, sigma, pyramid.samples)


def wavden(pyramid: backends.Pyramid, statistics: backends.Statistics, sigma: Floats) -> Floats:
    """σ √(2 ln(n log₂ n)), for the n log₂ n details without decimation (Coifman and Donoho 1995)."""
    n = pyramid.samples
    return rules.universal(statistics, sigma, int(n * math.log2(n)))


def pooled_fdr(pyramid: backends.Pyramid, statistics: backends.Statistics, sigma: Floats) -> Floats:
    """`rules.fdr` on the details of all levels together, in units of the noise."""
    from scipy.special import ndtri

    found = np.empty(sigma.shape)
    for trace in range(sigma.shape[1]):
        x = np.concatenate([np.abs(d[trace]) / s for d, s in zip(pyramid.details, sigma[:, trace], strict=True)])
        limits = -ndtri(rules.FALSE * np.arange(1, len(x) + 1) / (2 * len(x)))
        passed = np.flatnonzero(np.sort(x)[::-1] >= limits)
        found[:, trace] = limits[passed[-1] if len(passed) else 0] * sigma[:, trace]
    return found


def scikit_image(method: str) -> Callable[..., Samples]:
    """`denoise_wavelet` of each row, soft, with as many levels as the others; the mode and the noise are its own."""

    def run(x: Samples, *, wavelet: str, level: int, **others: object) -> Samples:
        from skimage.restoration import denoise_wavelet

        return np.array([denoise_wavelet(row, wavelet=wavelet, wavelet_levels=level, method=method) for row in x])

    return run


SCIKIT_IMAGE = {f"scikit-image {name}": scikit_image(name) for name in ("BayesShrink", "VisuShrink")}


def missing(package: str, name: str) -> str | None:
    """Why a column is missing: the package, imported as ``name``, is not installed."""
    return None if importlib.util.find_spec(name) else f"{package} is not installed: pip install {package}"
