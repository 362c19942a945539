"""The loops of `plane_shrinkage`: every row of squares is computed once for the three rows that need it."""

from __future__ import annotations

import numpy as np

from wavefilt.backends.numba_cpu.adapter import part
from wavefilt.backends.numba_cpu.vector import lesser, view

from .kernels import multiply, square
from .plane_shrinkage import ACROSS, COLUMNS, DOWN, FIRST, ROWS, SOURCE, STRIP, STRIPS, TARGET


@part
def _neighbour(i, count, periodic):
    """A place beyond the ends, in the band: reflected, or round it."""
    if periodic:
        return i % count
    return -1 - i if i < 0 else 2 * count - 1 - i if i >= count else i


@part
def _shrink(source, target, parts, above, own, below, total, gains, periodic):
    """A row, by the sums of nine squares around each coefficient."""
    count, one, zero = len(own), total.dtype.type(1), total.dtype.type(0)
    number = total.dtype.type(9 * parts)
    for p in range(count):
        total[p + 1] = above[p] + own[p] + below[p]
    total[0] = total[count] if periodic else total[1]
    total[count + 1] = total[1] if periodic else total[count]
    for p in range(count):
        gain = one - number / (total[p] + total[p + 1] + total[p + 2])
        gains[p] = gain if gain > zero else zero
    multiply(source, parts, gains, count, target)


@part
def shrink(bands, parts, longest, thresholds, floats, workspace, begin, end):
    """Shrink strips of rows, counted through all panels and bands, ``begin`` to ``end``.

    ``bands`` (bands, 9) have the fields of `plane_shrinkage`, ``thresholds`` (bands, panels) are in float64, ``floats``
    tells the dtype, and a row of coefficients has ``longest`` at most.
    """
    size, highest = floats.itemsize, np.finfo(floats.dtype).max
    for job in range(begin, end):
        i = 0
        while i + 1 < len(bands) and job >= bands[i + 1, FIRST]:
            i += 1
        rows, columns, strips = bands[i, ROWS], bands[i, COLUMNS], bands[i, STRIPS]
        panel, top = (job - bands[i, FIRST]) // strips, (job - bands[i, FIRST]) % strips * bands[i, STRIP]
        bottom, width = lesser(top + bands[i, STRIP], rows), columns * parts
        source = bands[i, SOURCE] + panel * rows * width * size
        target = bands[i, TARGET] + panel * rows * width * size
        if thresholds[i, panel] > 0:
            scale = 1 / thresholds[i, panel]
            scale = floats.dtype.type(scale if scale < highest else highest)
            total, gains = view(workspace, columns + 2, floats), view(workspace + (longest + 2) * size, columns, floats)
            squares = workspace + (2 * longest + 2) * size
            for r in range(top - 1, bottom + 1):
                place = _neighbour(r, rows, bands[i, DOWN] != 0)
                row = view(source + place * width * size, width, floats)
                square(row, parts, scale, columns, view(squares + (r + 3) % 3 * longest * size, columns, floats))
                if r > top:
                    above, own, below = (
                        view(squares + (r + 1) % 3 * longest * size, columns, floats),
                        view(squares + (r + 2) % 3 * longest * size, columns, floats),
                        view(squares + (r + 3) % 3 * longest * size, columns, floats),
                    )
                    at = (r - 1) * width * size
                    before, after = view(source + at, width, floats), view(target + at, width, floats)
                    _shrink(before, after, parts, above, own, below, total, gains, bands[i, ACROSS] != 0)
        else:
            before = view(source + top * width * size, (bottom - top) * width, floats)
            after = view(target + top * width * size, (bottom - top) * width, floats)
            for p in range((bottom - top) * width):
                after[p] = before[p]
