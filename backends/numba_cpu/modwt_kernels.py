"""The MODWT and its inverse of ranges of tiles, several levels at a time, in place in a buffer of the tile's length.

Every level's window begins where the buffer does: output p is a sum over elements p, p + step, p + 2 step, ...
"""

from __future__ import annotations

import numpy as np

from wavefilt.wavelets import boundary

from .adapter import part
from .dwt import BLOCK
from .dwt_kernels import extension, shrink
from .native import GROUP_BYTES
from .vector import analyse, clear, combine, copy, greater, lesser, tail, view


@part
def _fill(out, at, count, row, before, n, mode):
    """Copy elements ``at`` to ``at + count`` of an extended row of n; ``row`` holds those from ``-before`` on.

    A row with margins holds all that is asked for. Else the extension consists of runs forwards and backwards. A row
    shorter than n is extended to n first, in the same mode, which is "symmetric".
    """
    if at + before >= 0 and at + before + count <= len(row):
        copy(tail(row, at + before), count, out)
        return
    p = 0
    while p < count:
        j, a, k, b, l, c = extension(mode, at + p, n)  # noqa: E741
        following, a_next, _, b_next, _, c_next = extension(mode, at + p + 1, n)
        step, run = following - j, 1
        if a == a_next and b == b_next and c == c_next:
            if step == 0 and (mode == boundary.ZERO or mode == boundary.CONSTANT):
                run = count - p if at + p >= 0 else lesser(-at - p, count - p)
            elif abs(step) == 1:
                run = lesser(len(row) - j if step > 0 else j + 1, count - p)
        if j >= len(row):
            j, run = extension(mode, j, len(row))[0], 1
        if a == 1 and b == 0 and c == 0 and step == 1:
            copy(tail(row, j), run, tail(out, p))
        else:
            rest = 0.0  # float64: extrapolation over many samples loses digits
            if b != 0:
                rest += b * np.float64(row[k])
            if c != 0:
                rest += c * np.float64(row[l])
            for i in range(run):
                out[p + i] = a * np.float64(row[j + step * i]) + rest if a != 0 else rest
        p += run


@part
def _own(margins, i, n, tile, tiles, t):
    """Return the range of a tile's own coefficients of a level: the tiles at the ends have the margins too."""
    return (-margins[i, 0] if t == 0 else t * tile), (n + margins[i, 1] if t == tiles - 1 else (t + 1) * tile)


@part
def _length(margins, i, n):
    """Return the elements of a row of an array of this level."""
    return margins[i, 0] + n + margins[i, 1]


@part
def forward(cut, places, mode, bank, workspace, begin, end):
    """Transform tiles ``begin`` to ``end``, counted through all rows; the first level's taps are ``step`` apart.

    ``places`` are addresses of C-contiguous arrays of n columns and their ``margins``, in the order of these: the rows,
    the details, finest first, and the approximation. ``mode`` says how rows without margins go on, and ``bank`` has the
    reversed filters.
    """
    step, n, margins, tile, tiles, scratch = cut
    rows, details, approximation = places
    lo, hi = bank
    depth, half, reach, size = len(margins) - 2, len(lo) // 2, len(lo) - 1, lo.itemsize
    group = GROUP_BYTES // size
    clear(view(workspace, scratch + group, lo))
    spill, work = view(workspace, group, lo), view(workspace + GROUP_BYTES, scratch, lo)
    for job in range(begin, end):
        row, t = job // tiles, job % tiles
        start, stop = _own(margins, depth + 1, n, tile, tiles, t)
        span = step * ((1 << depth) - 1)
        at, length = start - span * (half - 1), stop - start + span * reach
        m = _length(margins, 0, n)
        _fill(work, at, length, view(rows + row * m * size, m, lo), margins[0, 0], n, mode)
        s = step
        for i in range(1, depth + 1):
            at += s * (half - 1)
            length -= s * reach
            first, last = _own(margins, i, n, tile, tiles, t)
            m = _length(margins, i, n)
            detail = view(details[i - 1] + (row * m + first + margins[i, 0]) * size, last - first, lo)
            for p in range(0, length, group):
                to = at + p - first
                whole = to >= 0 and to + group <= len(detail)
                target, place = (detail, to) if whole else (spill, 0)
                analyse(work, p, work, p + s, 2 * s, lo, hi, work, p, target, place)
                if not whole:
                    for k in range(greater(-to, 0), lesser(group, len(detail) - to)):
                        detail[to + k] = spill[k]
            s *= 2
        m = _length(margins, depth + 1, n)
        smooth = view(approximation + row * m * size, m, lo)
        copy(work, stop - start, tail(smooth, start + margins[depth + 1, 0]))


@part
def inverse(cut, places, function, thresholds, mode, taps, workspace, begin, end):
    """Reconstruct tiles ``begin`` to ``end``, counted through all rows, with the details shrunk on load.

    ``cut``, ``places`` and ``mode`` as in `forward`; ``thresholds`` (levels, rows) in float64; ``taps`` are the
    reversed filters, low and high in turn.
    """
    step, n, margins, tile, tiles, scratch = cut
    rows, details, approximation = places
    depth, half, reach, size = len(margins) - 2, len(taps) // 4, len(taps) // 2 - 1, taps.itemsize
    group = 2 * GROUP_BYTES // size
    scratch += -scratch % BLOCK  # whole cache lines
    clear(view(workspace, 2 * scratch + BLOCK, taps))
    block, work = view(workspace, BLOCK, taps), view(workspace + BLOCK * size, scratch, taps)
    shrunk = view(workspace + (BLOCK + scratch) * size, scratch, taps)
    for job in range(begin, end):
        row, t = job // tiles, job % tiles
        start, stop = _own(margins, 0, n, tile, tiles, t)
        span = step * ((1 << depth) - 1)
        at, length = start - span * half, stop - start + span * reach
        m = _length(margins, depth + 1, n)
        smooth = view(approximation + row * m * size, m, taps)
        _fill(work, at, length, smooth, margins[depth + 1, 0], n, mode)
        for i in range(depth, 0, -1):
            s = step << (i - 1)
            m, before = _length(margins, i, n), margins[i, 0]
            detail = view(details[i - 1] + row * m * size, m, taps)
            threshold = taps.dtype.type(thresholds[i - 1, row])
            here, loaded = length - s * reach, 0
            for p in range(0, here, BLOCK):
                while loaded < lesser(p + BLOCK + s * reach, length):
                    count = lesser(BLOCK, length - loaded)
                    source, first = detail, at + loaded + before
                    if first < 0 or first + count > len(detail):
                        _fill(block, at + loaded, count, detail, before, n, mode)
                        source, first = block, 0
                    shrink(tail(source, first), count, tail(shrunk, loaded), function, threshold)
                    loaded += count
                for q in range(p, lesser(p + BLOCK, here), group):
                    combine(work, q, shrunk, q, s, taps, work, q)
            at += s * half
            length = here
        m = _length(margins, 0, n)
        copy(work, stop - start, tail(view(rows + row * m * size, m, taps), start + margins[0, 0]))
