"""Transforms of both axes of sections, one level at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pywt
from numpy.typing import NDArray

from wavefilt.backends.interface import Pyramid2
from wavefilt.backends.numba_cpu import launching, memory
from wavefilt.backends.numba_cpu.dwt import kernels
from wavefilt.thresholding.shrinkage import Shrinkage
from wavefilt.wavelets import boundary

from . import kernels as section_kernels
from . import plan

Filters = Callable[[pywt.Wavelet, "np.dtype[Any]"], tuple[NDArray[Any], NDArray[Any]]]


def decompose(
    x: NDArray[Any], wavelets: tuple[pywt.Wavelet, pywt.Wavelet], modes: tuple[str, str], level: int, filters: Filters
) -> Pyramid2:
    """The pyramid of ``x`` (sections, rows, columns); ``filters`` gives those of `section_kernels.forward`."""
    sections, *shape = x.shape
    source = memory.packed(x)
    coefficients: list[NDArray[Any]] = []
    down, across = _lengths(shape, wavelets, modes, level)
    columns, rows = (
        (boundary.first_input(w.dec_len, mode), boundary.code(mode), *filters(w, x.dtype))
        for w, mode in zip(wavelets, modes, strict=True)
    )
    for j in range(level):
        sizes = down[j], across[j], down[j + 1], across[j + 1]
        launch = plan.launch(sizes, sizes[2:], wavelets[0].dec_len, x.itemsize, False)
        bands = [memory.empty((sections, *sizes[2:]), x.dtype) for _ in range(4)]
        arguments = memory.address(source), memory.addresses(bands), *rows, *columns
        launching.run(section_kernels.forward, sections, launch, arguments, (source, bands))
        source = bands[0]
        coefficients = [*bands[1:], *coefficients]
    return Pyramid2((source, *coefficients), wavelets, modes, (shape[0], shape[1]))


def reconstruct(pyramid: Pyramid2, shrinkage: Shrinkage | None, filters: Filters) -> NDArray[Any]:
    """The sections again; ``filters`` gives those of `section_kernels.inverse`.

    Raises ValueError for coefficients that do not belong together: kernels check nothing.
    """
    if shrinkage is not None and shrinkage.function not in launching.FUNCTIONS:
        pyramid, shrinkage = pyramid.shrunk(shrinkage), None
    wavelets, modes = pyramid.wavelets, pyramid.modes
    down, across = _lengths(pyramid.shape, wavelets, modes, pyramid.level)
    y, *details = _checked(pyramid, down, across)
    sections, dtype = len(y), y.dtype
    function, thresholds = launching.shrinking(shrinkage, (3 * pyramid.level, sections))
    shifts = [w.rec_len // 2 - 1 if mode == "periodization" else 0 for w, mode in zip(wavelets, modes, strict=True)]
    columns, rows = ((shift, *filters(w, dtype)) for w, shift in zip(wavelets, shifts, strict=True))
    for j in range(pyramid.level, 0, -1):
        sizes = down[j - 1], across[j - 1], down[j], across[j]
        places = [(n - shift + 1) // 2 - -shift // 2 for n, shift in zip(sizes, shifts, strict=False)]
        launch = plan.launch(sizes, (places[0], places[1]), wavelets[0].rec_len, dtype.itemsize, True)
        bands, details = [y, *details[:3]], details[3:]
        finer, target = memory.placed((sections, *sizes[:2]), dtype)
        own = np.ascontiguousarray(thresholds[3 * (j - 1) : 3 * j])
        arguments = target, memory.addresses(bands), *rows, *columns, kernels.KEEP, function, own
        launching.run(section_kernels.inverse, sections, launch, arguments, (bands, finer))
        y = finer
    return y


def _lengths(
    shape: Any, wavelets: tuple[pywt.Wavelet, pywt.Wavelet], modes: tuple[str, str], level: int
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Rows and columns of the samples and of every level, finest first."""
    down, across = (plan.lengths(n, w.dec_len, mode, level) for n, w, mode in zip(shape, wavelets, modes, strict=True))
    return down, across


def _checked(pyramid: Pyramid2, down: tuple[int, ...], across: tuple[int, ...]) -> list[NDArray[Any]]:
    """The coefficients as kernels need them."""
    found = pyramid.coefficients
    levels = [pyramid.level, *(j for j in range(pyramid.level, 0, -1) for _ in range(3))]
    wanted = [(len(found[0]), down[j], across[j]) for j in levels]
    if [c.shape for c in found] != wanted or len({c.dtype for c in found}) > 1:
        shapes = ", ".join(f"{c.dtype} {c.shape}" for c in found)
        raise ValueError(f"coefficients {shapes} do not belong together: a section {pyramid.shape} has {wanted}")
    return [memory.packed(c) for c in found]
