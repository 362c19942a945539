"""Dual-tree transforms of rows, one level at a time."""

from __future__ import annotations

import numpy as np

from wavefilt.arrays import Array
from wavefilt.backends.numba_cpu import entries, launching, memory
from wavefilt.backends.numba_cpu.peaks import Peak
from wavefilt.thresholding.shrinkage import Shrinkage
from wavefilt.transforms import Analysis, Pyramid

from . import plan


def decompose(x: Array, analysis: Analysis, tile: int, peak: Peak | None) -> Pyramid:
    """The pyramid of ``x`` (rows, samples), packed; tiles have a size of their own."""
    (rows, samples), level, tree = x.shape, analysis.level, analysis.wavelets[0]
    kind, source, details = np.result_type(x.dtype, np.complex64), x, list[Array]()
    whole = -(-samples >> level)
    for j in range(1, level + 1):
        n, first = whole << level - j, j == 1
        low, high = memory.empty((rows, n), kind), memory.empty((rows, n), kind)
        kernel = entries.DUAL_ROWS_FIRST if first else entries.DUAL_ROWS
        arguments = memory.address(source), memory.address(low), memory.address(high)
        launch = plan.row_launch(samples, n, tree, x.itemsize)
        taps = plan.analysis_taps(tree, first, x.dtype)
        launching.run(kernel, x.dtype, rows, launch, (*arguments, taps), (source, low, high), peak)
        source, peak = low, None
        details.append(high)
    return Pyramid((source, *details[::-1]), analysis, (samples,))


def reconstruct(pyramid: Pyramid, shrinkage: Shrinkage | None, out: Array | None, tile: int) -> Array:
    """The rows again. Raises ValueError for coefficients that do not belong together: kernels check nothing."""
    if shrinkage is not None:
        pyramid = pyramid.shrunk(shrinkage)
    (samples,), level, tree = pyramid.shape, pyramid.level, pyramid.analysis.wavelets[0]
    whole, rows = -(-samples >> level), len(pyramid.coefficients[0])
    wanted = [(rows, whole << max(place - 1, 0)) for place in range(level + 1)]
    low, *details = launching.checked(pyramid.coefficients, pyramid, wanted).coefficients
    dtype = low.real.dtype
    out, begin = launching.destination(out, (rows, samples), dtype)
    for j, high in zip(range(level, 0, -1), details, strict=True):
        n, first = whole << level - j, j == 1
        finer, target = (out, begin) if first else memory.placed((rows, 2 * n), low.dtype)
        kernel = entries.DUAL_ROWS_FIRST_INVERSE if first else entries.DUAL_ROWS_INVERSE
        launch = plan.row_launch(samples, n, tree, dtype.itemsize)
        arguments = target, memory.address(low), memory.address(high), plan.synthesis_taps(tree, first, dtype)
        launching.run(kernel, dtype, rows, launch, arguments, (low, high, finer))
        low = finer
    return np.asarray(low)
