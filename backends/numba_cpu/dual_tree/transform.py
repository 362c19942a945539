"""Dual-tree transforms of panels, one level at a time."""

from __future__ import annotations

import numpy as np

from wavefilt.arrays import Array
from wavefilt.backends.numba_cpu import entries, launching, memory
from wavefilt.backends.numba_cpu.peaks import Peak
from wavefilt.thresholding.shrinkage import Shrinkage
from wavefilt.transforms import Analysis, Pyramid

from . import plan


def decompose(x: Array, analysis: Analysis, tile: int, peak: Peak | None) -> Pyramid:
    """The pyramid of ``x`` (panels, rows, columns), packed; tiles have a size of their own."""
    panels, (rows, columns), tree = len(x), x.shape[1:], analysis.wavelets[0]
    kind, coefficients = np.result_type(x.dtype, np.complex64), list[Array]()
    low = x
    for j, (m, n) in enumerate(_planes(analysis, x.shape[1:]), 1):
        launch = plan.launch((rows, columns, m, n), tree, j, x.itemsize, False)
        bands = [memory.empty((panels, 2 * m, 2 * n), x.dtype)]
        bands += [memory.empty((panels, m, n), kind) for _ in range(6)]
        kernel = entries.DUAL_FIRST if j == 1 else entries.DUAL
        arguments = memory.address(low), memory.addresses(bands), plan.analysis_taps(tree, j == 1, x.dtype)
        launching.run(kernel, x.dtype, panels, launch, arguments, (low, bands), peak)
        low, peak = bands[0], None
        rows, columns = 2 * m, 2 * n
        coefficients = [*bands[1:], *coefficients]
    return Pyramid((low, *coefficients), analysis, x.shape[1:])


def reconstruct(pyramid: Pyramid, shrinkage: Shrinkage | None, out: Array | None, tile: int) -> Array:
    """The panels again. Raises ValueError for coefficients that do not belong together: kernels check nothing."""
    if shrinkage is not None:
        pyramid = pyramid.shrunk(shrinkage)
    analysis, tree = pyramid.analysis, pyramid.analysis.wavelets[0]
    planes = _planes(analysis, pyramid.shape)
    low, *details = _checked(pyramid, planes)
    panels, dtype = len(low), low.dtype
    for j in range(len(planes), 0, -1):
        (m, n), first = planes[j - 1], j == 1
        rows, columns = pyramid.shape if first else (4 * m, 4 * n)
        launch = plan.launch((rows, columns, m, n), tree, j, dtype.itemsize, True)
        bands, details = [low, *details[:6]], details[6:]
        finer, target = memory.placed((panels, rows, columns), dtype, result=first)
        kernel = entries.DUAL_FIRST_INVERSE if first else entries.DUAL_INVERSE
        arguments = target, memory.addresses(bands), plan.synthesis_taps(tree, first, dtype)
        launching.run(kernel, dtype, panels, launch, arguments, (bands, finer))
        low = finer
    return low


def _planes(analysis: Analysis, shape: tuple[int, ...]) -> list[tuple[int, int]]:
    """Complex coefficients down and across at each level, finest first."""
    level = analysis.level
    m, n = (-(-samples >> level) for samples in shape)
    return [(m << level - j, n << level - j) for j in range(1, level + 1)]


def _checked(pyramid: Pyramid, planes: list[tuple[int, int]]) -> list[Array]:
    """The coefficients as kernels need them."""
    found, (m, n) = pyramid.coefficients, planes[-1]
    panels, dtype = len(found[0]), found[0].dtype
    wanted = [(panels, 2 * m, 2 * n), *((panels, *plane) for plane in planes[::-1] for _ in range(6))]
    kinds = [dtype, *[np.result_type(dtype, np.complex64)] * (len(wanted) - 1)]
    if [c.shape for c in found] != wanted or [c.dtype for c in found] != kinds:
        given = ", ".join(f"{c.dtype} {c.shape}" for c in found)
        raise ValueError(f"coefficients {given} do not belong together: a panel {pyramid.shape} has {wanted}")
    return [memory.packed(c) for c in found]
