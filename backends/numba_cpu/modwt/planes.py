"""The MODWT of both axes of panels, by the kernels of rows.

A panel in C order is filtered along its first axis as one long row, the filter's taps whole rows of the panel apart: in
the periodic modes the long row goes round just as each column does.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from wavefilt import threads
from wavefilt.arrays import Array, Floats
from wavefilt.backends.numba_cpu import entries, launching, memory
from wavefilt.backends.numba_cpu.dwt.plan import BLOCK
from wavefilt.backends.numba_cpu.launching import Launch
from wavefilt.backends.numba_cpu.native import Constant
from wavefilt.backends.numba_cpu.peaks import Peak
from wavefilt.backends.numba_cpu.target import GROUP_BYTES
from wavefilt.thresholding.shrinkage import Shrinkage
from wavefilt.transforms import MODWT, Analysis, Pyramid
from wavefilt.transforms.separable import axes, parts
from wavefilt.wavelets import boundary

from .transform import synthesis_taps

GRAIN = 1 << 15
"""Coefficients below which a share of the work is not worth waking a thread."""


@lru_cache(maxsize=256)
def _launch(step: int, n: int, span: int, read: tuple[int, int], tile: int, inverse: bool) -> Launch:
    """One level of rows of n results, computed from ``read`` more elements before and after them."""
    count = -(-n // max(tile, span))
    size = -(-n // count)
    count = -(-n // size)
    none = (0, 0)
    table = np.array([none, read, read] if inverse else [read, none, none], np.int64)
    scratch = size + span + GROUP_BYTES
    arguments = Constant(step, n, table, size, count, scratch)
    return Launch(arguments, count, size, elements=2 * scratch + 3 * BLOCK, more=4 * GROUP_BYTES)


def _split(x: Array, analysis: Analysis, axis: int, j: int, tile: int, peak: Peak | None = None) -> tuple[Array, Array]:
    """Low-pass and high-pass coefficients of level j of panels along an axis."""
    wavelet, mode, _, start_level = parts(analysis)
    taps, step, shape = wavelet.dec_len, 1 << start_level + j - 1, list(x.shape)
    if mode not in boundary.ROUND:
        shape[axis] -= step * (taps - 1)
    across = shape[2] if axis == 1 else 1
    read = (0, 0) if mode in boundary.ROUND else (step * (taps // 2 - 1) * across, step * (taps // 2) * across)
    n = shape[1] * shape[2] if axis == 1 else shape[2]
    launch = _launch(step * across, n, step * across * (taps - 1), read, tile, False)
    low, high = (memory.empty(tuple(shape), x.dtype) for _ in range(2))
    filters = launching.analysis_filters(wavelet, x.dtype, 2**0.5)
    arguments = memory.address(x), memory.addresses([high]), memory.address(low), boundary.PERIODIC, filters
    rows = shape[0] * (shape[1] if axis == 2 else 1)
    launching.run(entries.MODWT_FORWARD, x.dtype, rows, launch, arguments, (x, low, high), peak)
    return low, high


def _joined(
    low: Array, high: Array, analysis: Analysis, axis: int, j: int, tile: int, function: int, thresholds: Floats
) -> Array:
    """The inverse of `_split`, the high-pass coefficients shrunk by ``thresholds`` (1, rows)."""
    wavelet, mode, _, start_level = parts(analysis)
    taps, step, shape = wavelet.rec_len, 1 << start_level + j - 1, list(low.shape)
    if mode not in boundary.ROUND:
        shape[axis] -= step * (taps - 1)
    across = shape[2] if axis == 1 else 1
    read = (0, 0) if mode in boundary.ROUND else (step * (taps // 2) * across, step * (taps // 2 - 1) * across)
    n = shape[1] * shape[2] if axis == 1 else shape[2]
    launch = _launch(step * across, n, step * across * (taps - 1), read, tile, True)
    out, target = memory.placed(tuple(shape), low.dtype)
    arguments = (
        *(target, memory.addresses([high]), memory.address(low), function, thresholds),
        *(boundary.PERIODIC, synthesis_taps(wavelet, low.dtype)),
    )
    rows = shape[0] * (shape[1] if axis == 2 else 1)
    launching.run(entries.MODWT_INVERSE, low.dtype, rows, launch, arguments, (low, high, out))
    return out


def decompose(x: Array, analysis: Analysis, tile: int, peak: Peak | None) -> Pyramid:
    """The coefficients of ``x`` (panels, rows, columns); at least one level."""
    shape, along, details = x.shape[1:], axes(analysis), list[Array]()
    for axis, own in enumerate(along, 1):
        x = MODWT.extend(x, own, axis)
    x = memory.packed(x)
    for j in range(1, analysis.level + 1):
        low, high = _split(x, along[1], 2, j, tile, peak)
        peak = None
        (x, horizontal), (vertical, diagonal) = (_split(c, along[0], 1, j, tile) for c in (low, high))
        rows, columns = (MODWT.kept(c, own, j) for c, own in zip(diagonal.shape[1:], along, strict=True))
        details += [memory.packed(c[:, rows, columns]) for c in (diagonal, vertical, horizontal)]
    return Pyramid((x, *reversed(details)), analysis, shape)


def reconstruct(pyramid: Pyramid, shrinkage: Shrinkage | None, out: Array | None, tile: int) -> Array:
    """The panels again. Raises ValueError for coefficients that do not belong together: kernels check nothing."""
    analysis, level, shape = pyramid.analysis, pyramid.level, pyramid.shape
    along, levels = axes(analysis), [pyramid.level, *(j for j in range(level, 0, -1) for _ in range(3))]
    panels = len(pyramid.coefficients[0])
    wanted = []
    for j in levels:
        more = (boundary.modwt_length(0, own.taps, own.modes[0], j, own.start_level) for own in along)
        wanted.append((panels, *(n + m for n, m in zip(shape, more, strict=True))))
    checked = launching.checked(pyramid.coefficients, pyramid, wanted)
    x, *details = checked.coefficients
    function, thresholds = launching.shrinking(shrinkage, checked)
    for j in range(level, 0, -1):
        (horizontal, vertical, diagonal), details = details[:3], details[3:]
        place = 3 * (j - 1)
        if shrinkage is not None:  # a kernel shrinks one of the two bands that it joins
            vertical = _shrunk(vertical, shrinkage, place + 1)
        own = [np.ascontiguousarray(thresholds[i : i + 1]) for i in (place + 2, place)]
        low = _joined(x, horizontal, along[0], 1, j, tile, function, own[0])
        high = _joined(vertical, diagonal, along[0], 1, j, tile, function, own[1])
        kept = np.empty((1, panels * low.shape[1]))
        x = _joined(low, high, along[1], 2, j, tile, launching.KEEP, kept)
    return np.asarray(x)


def _shrunk(band: Array, shrinkage: Shrinkage, place: int) -> Array:
    rows = band.reshape(len(band), -1)
    out = np.empty_like(rows)

    def work(begin: int, end: int) -> None:
        out[:, begin:end] = shrinkage.of_level(place, rows[:, begin:end])

    threads.parallel(work, rows.shape[1], GRAIN)
    return out.reshape(band.shape)
