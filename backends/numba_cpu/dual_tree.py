"""Dual-tree transforms of rows and of sections, one level at a time: how they are cut up, arrays and launches."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import lru_cache, partial

import numpy as np

from wavefilt.arrays import Array, DType
from wavefilt.thresholding.shrinkage import Shrinkage
from wavefilt.transforms import Analysis, Pyramid
from wavefilt.wavelets import boundary
from wavefilt.wavelets.dual_tree import DualTree

from . import entries, launching, memory, team
from .launching import Launch
from .modwt import in_tiles
from .native import GROUP_BYTES, Constant
from .selection import Peak

KERNELS = {
    1: (entries.MODWT_FORWARD, entries.DUAL_ROWS, entries.MODWT_INVERSE, entries.DUAL_ROWS_INVERSE),
    2: (entries.DUAL_FIRST, entries.DUAL, entries.DUAL_FIRST_INVERSE, entries.DUAL_INVERSE),
}
"""By the number of axes: forward of the first level and of the others, and their inverses."""
SCRATCH = 3 << 18
"""Bytes of a tile's filtered rows: they fit the second-level cache."""
SYMMETRIC = boundary.code("symmetric")
ROW, LINES = 1 << 12, 16
"""Complex coefficients of a tile of a row, and lines of that length in the workspace."""
PAD = 2 * GROUP_BYTES // 4 + 16
"""Elements added to a line: two groups are written at a time, and lines 4 KiB apart evict each other."""


@lru_cache(maxsize=256)
def plan(
    shape: tuple[int, ...], places: tuple[int, ...], tree: DualTree, level: int, itemsize: int, inverse: bool
) -> Launch:
    """Return the tiles of one level, from its samples and its complex coefficients along each axis.

    Kernels get these sizes, and for tiles the coefficients along each axis, and their number along each axis. The first
    level of rows is that of a MODWT of twice as many samples as there are complex coefficients.
    """
    if len(shape) == level == 1:
        n = 2 * places[0]
        margins = [(0, shape[0] - n), (0, 0), (0, 0)]
        launch = in_tiles(1, n, margins, max(map(len, tree.first)) - 1, 0, 2 * ROW)
        return replace(launch, work=launch.work // 4)  # threads pay from as many samples on as at other levels
    if len(shape) == 1:
        taps, width = tree.dec_len, min(ROW, places[0])
        size, count = [width], [-(-places[0] // width)]
        work, elements = 2 * width, LINES * (width + taps + PAD)
    else:
        taps = max(len(low) for low in tree.first) if level == 1 else len(tree.later.dec_lo)
        group, height = GROUP_BYTES // itemsize, min(48 if level == 1 else 24, places[0])
        if level == 1:
            planes, rows, wide, pads = 2, 2 * height + taps + 1, 2, 1
        elif inverse:
            planes, rows, wide, pads = 4, height + taps // 2, 4, 2
        else:
            planes, rows, wide, pads = 4, 4 * height + 2 * taps - 4, 1, 1
        width = max((SCRATCH // (itemsize * planes * rows) - pads * PAD) // wide // group, 1) * group
        across = -(-places[1] // min(width, -(-places[1] // group) * group))
        width = -(-places[1] // across // group) * group  # alike
        size, count = [height, width], [-(-places[0] // height), -(-places[1] // width)]
        work = 4 * shape[0] * shape[1] // (count[0] * count[1])
        elements = planes * rows * (wide * width + pads * PAD) + 32 * (width + taps + PAD)
    arguments = Constant(np.array([*shape, *places], np.int64), np.array([*size, *count], np.int64))
    return Launch(arguments, math.prod(count), work, elements=elements)


@lru_cache(maxsize=64)
def analysis_taps(tree: DualTree, first: bool, dtype: DType) -> Constant:
    """Return the low-pass and high-pass taps of the first level, or those of both trees of the others."""
    low, high = tree.first[:2] if first else tree.later[:2]
    if first:
        return Constant(*_alike(low, high, 1, dtype))
    return Constant(*(np.ascontiguousarray(taps, dtype) for taps in (low, high, low[::-1], high[::-1])))


@lru_cache(maxsize=64)
def synthesis_taps(tree: DualTree, first: bool, dtype: DType) -> Constant:
    """Return the taps of the first level, or those of the others and their first coefficient."""
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


def _levels(analysis: Analysis, shape: tuple[int, ...]) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Return the samples and the complex coefficients along each axis, for each level, finest first."""
    level = analysis.level
    places = [tuple((-(-n >> level)) << level - j for n in shape) for j in range(1, level + 1)]
    return list(zip([shape, *(tuple(4 * n for n in sizes) for sizes in places[1:])], places, strict=True))


def _bands(count: int, places: tuple[int, ...], dtype: DType) -> list[tuple[tuple[int, ...], DType]]:
    """Return the shape and dtype of each band of a level; the low-pass band of sections is real."""
    kind = np.result_type(dtype, np.complex64)
    if len(places) == 1:
        return [((count, *places), kind)] * 2
    return [((count, *(2 * n for n in places)), dtype), *[((count, *places), kind)] * 6]


def analysing(x: Array, analysis: Analysis, tile: int, peak: Peak | None) -> tuple[Pyramid, list[team.Job]]:
    """Return the pyramid of rows or sections, and the jobs that compute it; tiles have a size of their own."""
    (count, *_), tree, low = x.shape, analysis.wavelets[0], x
    coefficients, jobs = list[Array](), list[team.Job]()
    for j, (shape, places) in enumerate(_levels(analysis, x.shape[1:]), 1):
        launch, kernel = plan(shape, places, tree, j, x.itemsize, False), KERNELS[len(shape)][min(j - 1, 1)]
        bands = [memory.empty(*band) for band in _bands(count, places, x.dtype)]
        source, targets, taps = memory.address(low), memory.addresses(bands), analysis_taps(tree, j == 1, x.dtype)
        arguments: tuple[object, ...] = source, targets, taps
        if len(shape) == j == 1:
            arguments = source, targets[1:], targets[0], SYMMETRIC, taps
        jobs.append(launching.job(kernel, x.dtype, count, launch, arguments, (low, bands), peak))
        (low, *details), peak = bands, None
        coefficients = [*details, *coefficients]
    return Pyramid((low, *coefficients), analysis, x.shape[1:]), jobs


decompose = partial(launching.decompose, analysing)


def reconstruct(pyramid: Pyramid, shrinkage: Shrinkage | None, out: Array | None, tile: int) -> Array:
    """Return the reconstructed rows or sections. Raises ValueError for coefficients that do not belong together."""
    if shrinkage is not None:
        pyramid = pyramid.shrunk(shrinkage)
    levels, tree = _levels(pyramid.analysis, pyramid.shape), pyramid.analysis.wavelets[0]
    low, *details = _checked(pyramid, levels[-1][1])
    count, dtype, jobs = len(low), low.real.dtype, list[team.Job]()
    for j in range(len(levels), 0, -1):
        shape, places = levels[j - 1]
        number = len(_bands(count, places, dtype)) - 1
        bands, details = [low, *details[:number]], details[number:]
        if j == 1:
            low, target = launching.destination(out, (count, *shape), dtype)
        else:
            low, target = memory.placed(*_bands(count, levels[j - 2][1], dtype)[0])
        kernel, taps = KERNELS[len(shape)][2 + min(j - 1, 1)], synthesis_taps(tree, j == 1, dtype)
        launch = plan(shape, places, tree, j, dtype.itemsize, True)
        sources = memory.addresses(bands)
        arguments: tuple[object, ...] = target, sources, taps
        if len(shape) == j == 1:
            keep = launching.KEEP, np.empty((1, count))
            arguments = target, sources[1:], sources[0], *keep, SYMMETRIC, taps
        jobs.append(launching.job(kernel, dtype, count, launch, arguments, (bands, low)))
    team.run(jobs)
    return low


def _checked(pyramid: Pyramid, deepest: tuple[int, ...]) -> list[Array]:
    """Return the coefficients as kernels need them. Raises ValueError if they do not belong together."""
    found, level = pyramid.coefficients, pyramid.level
    wanted = _bands(len(found[0]), deepest, found[0].real.dtype)
    for j in range(1, level):
        wanted += _bands(len(found[0]), tuple(n << j for n in deepest), found[0].real.dtype)[1:]
    if [(c.shape, c.dtype) for c in found] != wanted:
        given = ", ".join(f"{c.dtype} {c.shape}" for c in found)
        raise ValueError(f"coefficients {given} do not belong together: samples {pyramid.shape} have {wanted}")
    return [memory.packed(c) for c in found]
