"""Local James-Stein shrinkage, compiled: what it is, `wavefilt.thresholding.local_shrinkage`.

Sums are added in the same order wherever a coefficient lies, so that results do not depend on tiles or threads.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from wavefilt import threads
from wavefilt.arrays import Array, Counts, DType
from wavefilt.backends.numba_cpu import launching, memory
from wavefilt.backends.numba_cpu.compiler import jit
from wavefilt.backends.numba_cpu.target import GROUP_BYTES, VECTOR_BYTES
from wavefilt.backends.numba_cpu.vector import combine, split, view
from wavefilt.thresholding.local_shrinkage import Grid
from wavefilt.thresholding.shrinkage import Shrinkage
from wavefilt.transforms import Pyramid

TILE = 1 << 13
"""Samples of a tile: the energies of all its bands, and what they are computed from, fit the second-level cache."""

COUNT, SPACING, HALF, PERIODIC, PART = range(5)
SAME, FINER, COARSER = range(3)
MEANS = 2 * GROUP_BYTES
"""Bytes of energies that are computed at a time."""


@jit
def _range(link, start, stop):
    """Which coefficients of a neighbouring band are asked for by some of a band's own."""
    step, a, b, c, d = link
    if step == SAME:
        return start + a, stop + b
    if step == FINER:
        return 2 * start + a, 2 * stop - 1 + b
    return start // 2 + min(a, c), (stop - 1) // 2 + max(b, d) + 1


@jit
def _energy(row, scale, lo, hi, band, weights, out, squares):
    """The mean of (W scale)² around the coefficients ``lo`` to ``hi``, which may lie beyond the ends of the row.

    ``weights`` are those of the mean, and a last one of 0. Whole groups of ``out`` are written.
    """
    count, spacing, half, periodic = band[COUNT], band[SPACING], band[HALF], band[PERIODIC] != 0
    first, last = (lo, hi) if periodic else (max(lo, 0), min(hi, count))
    reach, most = half * spacing, squares.dtype.type(np.finfo(squares.dtype).max / 16)
    begin, length = first - reach, last - first + 2 * reach + spacing
    before, after = min(max(-begin, 0), length), min(max(begin + length - count, 0), length)
    if length - after > before:
        source, inside = row[begin + before : begin + length - after], squares[before : length - after]
        for p in range(len(inside)):
            scaled = source[p] * scale
            square = scaled * scaled
            inside[p] = square if square < most else most
    for side in range(2):
        for p in range(0 if side == 0 else max(length - after, before), before if side == 0 else length):
            scaled = row[(begin + p) % count] * scale
            squares[p] = min(scaled * scaled, most) if periodic else squares.dtype.type(0)
    for p in range(0, last - first, MEANS // squares.itemsize):
        combine(squares, p, squares, p + spacing, 2 * spacing, weights, out, first - lo + p)
    if not periodic:
        for side in range(2):
            a, b = (first, min(reach, last)) if side == 0 else (max(count - reach, first, min(reach, last)), last)
            for k in range(a, b):
                there = min(half, k // spacing) + 1 + min(half, (count - 1 - k) // spacing)
                out[k - lo] *= out.dtype.type(2 * half + 1) / out.dtype.type(there)
        for p in range(first - lo):
            out[p] = out[first - lo]
        for p in range(last - lo, hi - lo):
            out[p] = out[last - 1 - lo]


@jit
def _add(total, energy, link, start, lo, even, odd):
    """Add the energies of a neighbouring band, which begin at its coefficient ``lo``, at the places of the own ones."""
    half, (step, a, b, c, d) = total.dtype.type(0.5), link
    if step == SAME:
        low, high = energy[start + a - lo :], energy[start + b - lo :]
        for p in range(len(total)):
            total[p] += half * (low[p] + high[p])
    elif step == FINER:  # b is a + 1
        for p in range(0, len(total), VECTOR_BYTES // total.itemsize):
            split(energy, 2 * (start + p) + a - lo, even, p, odd, p)
        for p in range(len(total)):
            total[p] += half * (even[p] + odd[p])
    else:  # the first of the own ones is even
        low, high = energy[start // 2 + a - lo :], energy[start // 2 + b - lo :]
        first, second = total[::2], total[1::2]
        for p in range(len(first)):
            first[p] += half * (low[p] + high[p])
        low, high = energy[start // 2 + c - lo :], energy[start // 2 + d - lo :]
        for p in range(len(second)):
            second[p] += half * (low[p] + high[p])


@jit
def shrink(bands, links, tiles, sources, targets, thresholds, weights, begin, end):
    """Shrink tiles ``begin`` to ``end``, counted through all rows.

    ``bands`` (bands, 5) and ``links`` (bands, 2, 5), to the finer and the coarser band, are those of `_plan`;
    ``sources`` and ``targets`` are addresses of C-contiguous (rows, count) arrays, ``thresholds`` (bands, rows) in
    float64, ``weights`` those of the means.
    """
    depth, size, padding = len(bands), weights.itemsize, MEANS // weights.itemsize
    ranges, own = np.empty((depth, 2), np.int64), np.empty((depth, 2), np.int64)
    work, buffers = np.empty(0, weights.dtype), np.empty((4, 0), weights.dtype)
    highest = np.finfo(weights.dtype).max
    for job in range(begin, end):
        row, tile = job // tiles, job % tiles
        for i in range(depth):
            own[i, 0] = tile * bands[i, PART]
            own[i, 1] = bands[i, COUNT] if tile == tiles - 1 else own[i, 0] + bands[i, PART]
            ranges[i, 0], ranges[i, 1] = own[i, 0], own[i, 1]
        needed, longest = 0, 0
        for i in range(depth):
            for side in range(2):
                j = i + 2 * side - 1
                if 0 <= j < depth:
                    lo, hi = _range(links[i, side], own[i, 0], own[i, 1])
                    ranges[j, 0], ranges[j, 1] = min(ranges[j, 0], lo), max(ranges[j, 1], hi)
        for i in range(depth):
            length = ranges[i, 1] - ranges[i, 0]
            needed += length
            longest = max(longest, length + 2 * (bands[i, HALF] + 1) * bands[i, SPACING] + padding)
        if needed + 2 * padding > len(work):  # whole vectors are computed, and denormals left in memory are slow
            work = np.zeros(needed + 2 * padding, weights.dtype)
        if longest > buffers.shape[1]:
            buffers = np.zeros((4, longest), weights.dtype)
        at = 0
        for i in range(depth):
            count, length = bands[i, COUNT], ranges[i, 1] - ranges[i, 0]
            if thresholds[i, row] > 0:
                scale = weights.dtype.type(min(1 / thresholds[i, row], highest))
                source = view(sources[i] + row * count * size, count, weights)
                _energy(source, scale, ranges[i, 0], ranges[i, 1], bands[i], weights, work[at:], buffers[0])
            at += length
        at = before = 0
        for i in range(depth):
            count, start, length = bands[i, COUNT], own[i, 0], own[i, 1] - own[i, 0]
            source = view(sources[i] + (row * count + start) * size, length, weights)
            target = view(targets[i] + (row * count + start) * size, length, weights)
            after = at + ranges[i, 1] - ranges[i, 0]
            if thresholds[i, row] > 0:
                around, even, odd, number = buffers[1][:length], buffers[2], buffers[3], 1
                energy = work[at + start - ranges[i, 0] : after]
                for p in range(length):
                    around[p] = energy[p]
                if i > 0 and thresholds[i - 1, row] > 0:
                    _add(around, work[before:], links[i, 0], start, ranges[i - 1, 0], even, odd)
                    number += 1
                if i < depth - 1 and thresholds[i + 1, row] > 0:
                    _add(around, work[after:], links[i, 1], start, ranges[i + 1, 0], even, odd)
                    number += 1
                share, one, zero = weights.dtype.type(number), weights.dtype.type(1), weights.dtype.type(0)
                for p in range(length):
                    gain = one - share / around[p]
                    target[p] = source[p] * (gain if gain > zero else zero)
            else:
                for p in range(length):
                    target[p] = source[p]
            before, at = at, after


@lru_cache(maxsize=256)
def _plan(grids: tuple[Grid, ...]) -> tuple[Counts, Counts, int]:
    """What `shrink` is told of each band: count, mean, part of a tile; how it finds the neighbours; and the tiles."""
    samples = max(TILE, 4 * max(grid.step for grid in grids))
    bands = [[g.count, g.spacing, g.half, int(g.periodic), samples // g.step] for g in grids]
    links = np.zeros((len(grids), 2, 5), np.int64)
    for i, grid in enumerate(grids):
        for side, j in enumerate((i - 1, i + 1)):
            if 0 <= j < len(grids):
                low, high = grid.nearest(slice(0, 2), grids[j])
                step = SAME if grid.step == grids[j].step else FINER if grid.step > grids[j].step else COARSER
                links[i, side] = step, low[0], high[0], low[1], high[1]
    return np.array(bands, np.int64), links, max(grids[0].count * grids[0].step // samples, 1)


@lru_cache(maxsize=64)
def _weights(half: int, dtype: DType) -> Array:
    """Those of a mean, as many as filters have: even in number."""
    weights = np.full(2 * half + 2, 1 / (2 * half + 1), dtype)
    weights[-1] = 0
    return weights


def shrunk(pyramid: Pyramid, shrinkage: Shrinkage) -> launching.Packed:
    """`Pyramid.shrunk` of rows."""
    grids = pyramid.analysis.transform.grids(pyramid.analysis, pyramid.shape)
    rows, dtype = len(pyramid.coefficients[0]), pyramid.coefficients[0].dtype
    if not isinstance(pyramid, launching.Packed):
        wanted = [(rows, grid.count) for grid in reversed(grids)]
        pyramid = launching.checked(pyramid.coefficients, pyramid, wanted)
    bands, links, tiles = _plan(grids)
    arrays, targets = memory.several(rows, [grid.count for grid in grids], dtype)
    sources = np.append(pyramid.addresses[: pyramid.level], pyramid.addresses[-1])
    thresholds, weights = np.ascontiguousarray(shrinkage.thresholds, float), _weights(grids[0].half, dtype)
    arguments = bands, links, tiles, sources, targets, thresholds, weights
    grain = max(launching.GRAIN * tiles // max(sum(grid.count for grid in grids), 1), 1)
    threads.parallel(lambda begin, end: shrink(*arguments, begin, end), rows * tiles, grain)
    return launching.Packed(tuple(arrays[::-1]), pyramid.analysis, pyramid.shape, targets)
