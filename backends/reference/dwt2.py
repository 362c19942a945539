"""The reference transform of two axes: PyWavelets, one level after another."""

from __future__ import annotations

from typing import Any

import numpy as np
import pywt
from numpy.typing import NDArray

from wavefilt.backends.interface import Pyramid2
from wavefilt.thresholding.shrinkage import Shrinkage


def decompose(
    x: NDArray[Any], wavelets: tuple[pywt.Wavelet, pywt.Wavelet], modes: tuple[str, str], level: int
) -> Pyramid2:
    """The pyramid of ``x`` (sections, rows, columns)."""
    shape, bands = (x.shape[1], x.shape[2]), []
    for _ in range(level):  # pywt.wavedec2 warns beyond its maximum level; whether that matters is the caller's
        x, details = pywt.dwt2(x, wavelets, modes)
        bands.append(map(np.ascontiguousarray, details))
    coefficients = (band for level_bands in reversed(bands) for band in level_bands)
    return Pyramid2((np.ascontiguousarray(x), *coefficients), wavelets, modes, shape)


def reconstruct(pyramid: Pyramid2, shrinkage: Shrinkage | None = None) -> NDArray[Any]:
    """The sections again, their details shrunk on the way."""
    if shrinkage is not None:
        pyramid = pyramid.shrunk(shrinkage)
    y, details = pyramid.coefficients[0], pyramid.coefficients[1:]
    for i in range(0, len(details), 3):
        bands = details[i : i + 3]
        rows, columns = bands[0].shape[1:]
        y = pywt.idwt2((y[:, :rows, :columns], bands), pyramid.wavelets, pyramid.modes)
    return np.ascontiguousarray(y[:, : pyramid.shape[0], : pyramid.shape[1]])
