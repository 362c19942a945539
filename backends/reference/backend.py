"""The reference backend: PyWavelets and NumPy, on the CPU, one trace after another."""

from __future__ import annotations

from collections.abc import Sequence
from importlib.metadata import version
from itertools import zip_longest
from typing import Any

import numpy as np
import pywt
from numpy.typing import NDArray

from wavefilt.backends.interface import Backend, Pyramid, Pyramid2
from wavefilt.statistics.batch import ReferenceStatistics
from wavefilt.thresholding.shrinkage import Shrinkage
from wavefilt.vocabulary import TRANSFORMS, Scope, check

from . import dwt2, modwt


class PyWavelets(Backend):
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
