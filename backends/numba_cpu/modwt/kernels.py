"""The MODWT and its inverse of ranges of tiles, several levels at a time, in place in a buffer of the tile's length.

Every level's window begins where the buffer does: output p is a sum over elements p, p + step, p + 2 step, ...
"""

from __future__ import annotations

import numpy as np

from wavefilt.backends.numba_cpu.compiler import jit, view
from wavefilt.backends.numba_cpu.dwt.kernels import BLOCK, _extension, _shrink
from wavefilt.backends.numba_cpu.vector import GROUP_BYTES, analyse, combine
from wavefilt.wavelets import boundary

ALIGNMENT = 64


@jit
def _aligned(length, like):
    """Zeros that begin with a cache line; whole groups are computed, and denormals left in memory are slow."""
    block = np.zeros(length + ALIGNMENT // like.itemsize, like.dtype)
    return block[(-block.ctypes.data) % ALIGNMENT // like.itemsize :]


@jit
def _copy(out, source):
    for i in range(len(out)):  # as an assignment of slices ten times slower
        out[i] = source[i]


@jit
def _fill(out, at, count, row, before, n, mode):
    """Elements ``at`` to ``at + count`` of an extended row of n; ``row`` holds those from ``-before`` on.

    A row with margins holds all that is asked for. Else the extension consists of runs forwards and backwards.
    """
    if at + before >= 0 and at + before + count <= len(row):
        _copy(out[:count], row[at + before : at + before + count])
        return
    p = 0
    while p < count:
        j, a, k, b, l, c = _extension(mode, at + p, n)  # noqa: E741
        following, a_next, _, b_next, _, c_next = _extension(mode, at + p + 1, n)
        step, run = following - j, 1
        if a == a_next and b == b_next and c == c_next:
            if step == 0 and (mode == boundary.ZERO or mode == boundary.CONSTANT):
                run = count - p if at + p >= 0 else min(-at - p, count - p)
            elif abs(step) == 1:
                run = min(n - j if step > 0 else j + 1, count - p)
        if a == 1 and b == 0 and c == 0 and step == 1:
            _copy(out[p : p + run], row[j : j + run])
        else:
            rest = 0.0  # float64: extrapolation over many samples loses digits
            if b != 0:
                rest += b * np.float64(row[k])
            if c != 0:
                rest += c * np.float64(row[l])
            for i in range(run):
                out[p + i] = a * np.float64(row[j + step * i]) + rest if a != 0 else rest
        p += run


@jit
def _own(margins, i, n, tile, tiles, t):
    """Where a tile's own coefficients of a level begin and end: those at the ends have the margins too."""
    return (-margins[i, 0] if t == 0 else t * tile), (n + margins[i, 1] if t == tiles - 1 else (t + 1) * tile)


@jit
def _row(address, row, margins, i, n, like):
    """A row of an array of this level."""
    m = margins[i, 0] + n + margins[i, 1]
    return view(address + row * m * like.itemsize, m, like)


@jit
def forward(step, n, margins, tile, tiles, scratch, rows, details, approximation, mode, lo, hi, begin, end):
    """Fused levels of tiles ``begin`` to ``end``, counted through all rows; the first level's taps lie ``step`` apart.

    ``rows``, ``details`` (finest first) and ``approximation`` are addresses of C-contiguous arrays of n columns and
    their ``margins``, in this order; ``mode`` says how rows without margins go on; ``lo`` and ``hi`` are the reversed
    filters.
    """
    depth, half, reach, group = len(margins) - 2, len(lo) // 2, len(lo) - 1, GROUP_BYTES // lo.itemsize
    work, spill = _aligned(scratch, lo), _aligned(group, lo)
    for job in range(begin, end):
        row, t = job // tiles, job % tiles
        start, stop = _own(margins, depth + 1, n, tile, tiles, t)
        span = step * ((1 << depth) - 1)
        at, length = start - span * (half - 1), stop - start + span * reach
        _fill(work, at, length, _row(rows, row, margins, 0, n, lo), margins[0, 0], n, mode)
        s = step
        for i in range(1, depth + 1):
            at += s * (half - 1)
            length -= s * reach
            first, last = _own(margins, i, n, tile, tiles, t)
            detail = _row(details[i - 1], row, margins, i, n, lo)[first + margins[i, 0] : last + margins[i, 0]]
            for p in range(0, length, group):
                to = at + p - first
                whole = to >= 0 and to + group <= len(detail)
                target, place = (detail, to) if whole else (spill, 0)
                analyse(work, p, work, p + s, 2 * s, lo, hi, work, p, target, place)
                if not whole:
                    for k in range(max(-to, 0), min(group, len(detail) - to)):
                        detail[to + k] = spill[k]
            s *= 2
        smooth, before = _row(approximation, row, margins, depth + 1, n, lo), margins[depth + 1, 0]
        _copy(smooth[start + before : stop + before], work)


@jit
def inverse(
    step, n, margins, tile, tiles, scratch, rows, details, approximation, function, thresholds, mode, taps, begin, end
):
    """Fused levels of tiles ``begin`` to ``end``, counted through all rows, with the details shrunk on load.

    Addresses, margins and mode as in `forward`; ``thresholds`` (levels, rows) in float64; ``taps`` are the reversed
    filters, low and high in turn.
    """
    depth, half, reach = len(margins) - 2, len(taps) // 4, len(taps) // 2 - 1
    group = 2 * GROUP_BYTES // taps.itemsize
    work, shrunk, block = _aligned(scratch, taps), _aligned(scratch, taps), _aligned(BLOCK, taps)
    highest = np.finfo(taps.dtype).max
    for job in range(begin, end):
        row, t = job // tiles, job % tiles
        start, stop = _own(margins, 0, n, tile, tiles, t)
        span = step * ((1 << depth) - 1)
        at, length = start - span * half, stop - start + span * reach
        smooth = _row(approximation, row, margins, depth + 1, n, taps)
        _fill(work, at, length, smooth, margins[depth + 1, 0], n, mode)
        for i in range(depth, 0, -1):
            s = step << (i - 1)
            detail, before = _row(details[i - 1], row, margins, i, n, taps), margins[i, 0]
            threshold = taps.dtype.type(min(thresholds[i - 1, row], highest))
            here, loaded = length - s * reach, 0
            for p in range(0, here, BLOCK):
                while loaded < min(p + BLOCK + s * reach, length):
                    count = min(BLOCK, length - loaded)
                    source, first = detail, at + loaded + before
                    if first < 0 or first + count > len(detail):
                        _fill(block, at + loaded, count, detail, before, n, mode)
                        source, first = block, 0
                    _shrink(source[first : first + count], shrunk[loaded : loaded + count], function, threshold)
                    loaded += count
                for q in range(p, min(p + BLOCK, here), group):
                    combine(work, q, shrunk, q, s, taps, work, q)
            at += s * half
            length = here
        target, before = _row(rows, row, margins, 0, n, taps), margins[0, 0]
        _copy(target[start + before : stop + before], work)
