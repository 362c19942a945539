"""Dual-tree transforms of rows and of sections, one level at a time: how they are cut up, arrays and launches."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from wavefilt.arrays import Array, DType
from wavefilt.thresholding.shrinkage import Shrinkage
from wavefilt.transforms import Analysis, Pyramid
from wavefilt.wavelets.dual_tree import DualTree

from . import entries, launching, memory
from .launching import Launch
from .native import GROUP_BYTES, Constant
from .selection import Peak

SCRATCH = 3 << 18
"""Bytes of a tile's filtered rows: they fit the second-level cache."""
ROW, LINES = 1 << 12, 16
"""Complex coefficients of a tile of a row, and lines of that length in the workspace."""
PAD = 2 * GROUP_BYTES // 4 + 16
"""Elements added to a line: two groups are written at a time, and lines 4 KiB apart evict each other."""


@lru_cache(maxsize=256)
def plan(sizes: tuple[int, int, int, int], tree: DualTree, level: int, itemsize: int, inverse: bool) -> Launch:
    """Return the tiles of one level of all sections: rows, columns, and complex coefficients down and across."""
    taps = max(len(low) for low in tree.first) if level == 1 else len(tree.later.dec_lo)
    places, group = sizes[2:], GROUP_BYTES // itemsize
    height = min(48 if level == 1 else 24, places[0])
    if level == 1:
        planes, rows, wide, pads = 2, 2 * height + taps + 1, 2, 1
    elif inverse:
        planes, rows, wide, pads = 4, height + taps // 2, 4, 2
    else:
        planes, rows, wide, pads = 4, 4 * height + 2 * taps - 4, 1, 1
    width = max((SCRATCH // (itemsize * planes * rows) - pads * PAD) // wide // group, 1) * group
    across = -(-places[1] // min(width, -(-places[1] // group) * group))
    width = -(-places[1] // across // group) * group  # alike
    down, across = -(-places[0] // height), -(-places[1] // width)
    lines = 32 * (width + taps + PAD)
    elements = planes * rows * (wide * width + pads * PAD) + lines
    arguments = Constant(np.array(sizes, np.int64), np.array([height, width, down, across], np.int64))
    return Launch(arguments, down * across, 4 * sizes[0] * sizes[1] // (down * across), elements=elements)


@lru_cache(maxsize=256)
def row_plan(samples: int, n: int, tree: DualTree, itemsize: int) -> Launch:
    """Return the tiles of one level of all rows: ``samples`` and ``n`` complex coefficients at this level."""
    taps = max(tree.dec_len, max(map(len, tree.first)))
    width = min(ROW, n)
    arguments = Constant(np.array([samples, n], np.int64), np.array([width, -(-n // width)], np.int64))
    return Launch(arguments, -(-n // width), 2 * width, elements=LINES * (width + taps + PAD))


@lru_cache(maxsize=64)
def analysis_taps(tree: DualTree, first: bool, dtype: DType) -> Constant:
    """Return the low-pass and high-pass taps of `first_forward`, or of both trees of `forward`."""
    low, high = tree.first[:2] if first else tree.later[:2]
    if first:
        return Constant(*_alike(low, high, 1, dtype))
    return Constant(*(np.ascontiguousarray(taps, dtype) for taps in (low, high, low[::-1], high[::-1])))


@lru_cache(maxsize=64)
def synthesis_taps(tree: DualTree, first: bool, dtype: DType) -> Constant:
    """Return the taps of `first_inverse`, or the taps of `inverse` and its first coefficient."""
    if first:
        return Constant(np.stack(_alike(*tree.first[2:], 0, dtype), 1).ravel())
    low, high = tree.later[:2]
    taps = len(low)
    # tap t takes coefficient k to the place 2k + t + 1 - taps/2 of its tree
    offsets = {
        (p, t): (p + taps // 2 - 1 - t) // 2 for t in range(taps) for p in (0, 1) if (p + taps // 2 - 1 - t) % 2 == 0
    }
    least, most = min(offsets.values()), max(offsets.values())
    found = np.zeros((2, 2, most - least + 1, 2), dtype)  # tree, parity of the place, coefficient, low or high
    for (parity, t), offset in offsets.items():
        found[0, parity, offset - least] = low[t], high[t]
        found[1, parity, offset - least] = low[taps - 1 - t], high[taps - 1 - t]
    return Constant(*(np.ascontiguousarray(one.ravel()) for tree_taps in found for one in tree_taps), -least)


def _alike(low: Array, high: Array, more: int, dtype: DType) -> list[Array]:
    """Return symmetric taps about one middle, in arrays of one odd length and ``more``."""
    length = max(len(low), len(high))
    sides = [(length - len(taps)) // 2 for taps in (low, high)]
    return [np.pad(taps, (side, side + more)).astype(dtype) for taps, side in zip((low, high), sides, strict=True)]


def decompose(x: Array, analysis: Analysis, tile: int, peak: Peak | None) -> Pyramid:
    """Return the coefficients of ``x`` (rows, samples); tiles have a size of their own."""
    (rows, samples), level, tree = x.shape, analysis.level, analysis.wavelets[0]
    kind, source, details = np.result_type(x.dtype, np.complex64), x, list[Array]()
    whole = -(-samples >> level)
    for j in range(1, level + 1):
        n, first = whole << level - j, j == 1
        low, high = memory.empty((rows, n), kind), memory.empty((rows, n), kind)
        kernel = entries.DUAL_ROWS_FIRST if first else entries.DUAL_ROWS
        arguments = memory.address(source), memory.address(low), memory.address(high)
        launch = row_plan(samples, n, tree, x.itemsize)
        taps = analysis_taps(tree, first, x.dtype)
        launching.run(kernel, x.dtype, rows, launch, (*arguments, taps), (source, low, high), peak)
        source, peak = low, None
        details.append(high)
    return Pyramid((source, *details[::-1]), analysis, (samples,))


def reconstruct(pyramid: Pyramid, shrinkage: Shrinkage | None, out: Array | None, tile: int) -> Array:
    """Return the reconstructed rows. Raises ValueError for coefficients that do not belong together."""
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
        launch = row_plan(samples, n, tree, dtype.itemsize)
        arguments = target, memory.address(low), memory.address(high), synthesis_taps(tree, first, dtype)
        launching.run(kernel, dtype, rows, launch, arguments, (low, high, finer))
        low = finer
    return np.asarray(low)


def decompose_sections(x: Array, analysis: Analysis, tile: int, peak: Peak | None) -> Pyramid:
    """Return the coefficients of ``x`` (sections, rows, columns); tiles have a size of their own."""
    sections, (rows, columns), tree = len(x), x.shape[1:], analysis.wavelets[0]
    kind, coefficients = np.result_type(x.dtype, np.complex64), list[Array]()
    low = x
    for j, (m, n) in enumerate(_planes(analysis, x.shape[1:]), 1):
        launch = plan((rows, columns, m, n), tree, j, x.itemsize, False)
        bands = [memory.empty((sections, 2 * m, 2 * n), x.dtype)]
        bands += [memory.empty((sections, m, n), kind) for _ in range(6)]
        kernel = entries.DUAL_FIRST if j == 1 else entries.DUAL
        arguments = memory.address(low), memory.addresses(bands), analysis_taps(tree, j == 1, x.dtype)
        launching.run(kernel, x.dtype, sections, launch, arguments, (low, bands), peak)
        low, peak = bands[0], None
        rows, columns = 2 * m, 2 * n
        coefficients = [*bands[1:], *coefficients]
    return Pyramid((low, *coefficients), analysis, x.shape[1:])


def reconstruct_sections(pyramid: Pyramid, shrinkage: Shrinkage | None, out: Array | None, tile: int) -> Array:
    """Return the reconstructed sections. Raises ValueError for coefficients that do not belong together."""
    if shrinkage is not None:
        pyramid = pyramid.shrunk(shrinkage)
    analysis, tree = pyramid.analysis, pyramid.analysis.wavelets[0]
    planes = _planes(analysis, pyramid.shape)
    low, *details = _checked(pyramid, planes)
    sections, dtype = len(low), low.dtype
    for j in range(len(planes), 0, -1):
        (m, n), first = planes[j - 1], j == 1
        rows, columns = pyramid.shape if first else (4 * m, 4 * n)
        launch = plan((rows, columns, m, n), tree, j, dtype.itemsize, True)
        bands, details = [low, *details[:6]], details[6:]
        finer, target = memory.placed((sections, rows, columns), dtype, result=first)
        kernel = entries.DUAL_FIRST_INVERSE if first else entries.DUAL_INVERSE
        arguments = target, memory.addresses(bands), synthesis_taps(tree, first, dtype)
        launching.run(kernel, dtype, sections, launch, arguments, (bands, finer))
        low = finer
    return low


def _planes(analysis: Analysis, shape: tuple[int, ...]) -> list[tuple[int, int]]:
    """Return the complex coefficients down and across at each level, finest first."""
    level = analysis.level
    m, n = (-(-samples >> level) for samples in shape)
    return [(m << level - j, n << level - j) for j in range(1, level + 1)]


def _checked(pyramid: Pyramid, planes: list[tuple[int, int]]) -> list[Array]:
    """Return the coefficients as kernels need them. Raises ValueError if they do not belong together."""
    found, (m, n) = pyramid.coefficients, planes[-1]
    sections, dtype = len(found[0]), found[0].dtype
    wanted = [(sections, 2 * m, 2 * n), *((sections, *plane) for plane in planes[::-1] for _ in range(6))]
    kinds = [dtype, *[np.result_type(dtype, np.complex64)] * (len(wanted) - 1)]
    if [c.shape for c in found] != wanted or [c.dtype for c in found] != kinds:
        given = ", ".join(f"{c.dtype} {c.shape}" for c in found)
        raise ValueError(f"coefficients {given} do not belong together: a section {pyramid.shape} has {wanted}")
    return [memory.packed(c) for c in found]
