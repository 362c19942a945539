"""Wavelet packets by the kernels of the DWT: all nodes of a level are rows of one batch."""

from __future__ import annotations

from wavefilt.arrays import Array
from wavefilt.thresholding.shrinkage import Shrinkage
from wavefilt.transforms import Analysis, Pyramid
from wavefilt.transforms.packets import PacketTransform, analysed, one_level

from .dwt import transform as dwt
from .peaks import Peak


def decompose(x: Array, analysis: Analysis, tile: int, peak: Peak | None) -> Pyramid:
    """The nodes of all levels of ``x`` (rows, samples)."""
    peaks = [peak]  # that of the samples, which the first level reads

    def split(rows: Array, one: Analysis) -> tuple[Array, ...]:
        return dwt.decompose(rows, one, tile, peaks.pop() if peaks else None).coefficients

    return Pyramid(analysed(x, analysis, split), analysis, x.shape[1:])


def reconstruct(pyramid: Pyramid, shrinkage: Shrinkage | None, out: Array | None, tile: int) -> Array:
    """The rows again, from the best basis where they are shrunk."""
    one, transform = one_level(pyramid.analysis), pyramid.analysis.transform
    assert isinstance(transform, PacketTransform)

    def merge(low: Array, high: Array, length: int) -> Array:
        return dwt.reconstruct(Pyramid((low, high), one, (length,)), None, None, tile)

    y = transform.merged(pyramid, shrinkage, merge)
    if out is None:
        return y
    out[...] = y
    return out
