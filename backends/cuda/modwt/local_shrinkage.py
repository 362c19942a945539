"""Local James-Stein shrinkage of the bands of a MODWT: what it is, `wavefilt.thresholding.local`.

Bands have a coefficient for each sample, so a thread has one time, and goes through the bands with the energies of
three of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from itertools import pairwise

import numpy as np

from wavefilt.arrays import Counts
from wavefilt.backends.cuda.dwt.local_shrinkage import at_the_edge
from wavefilt.backends.cuda.dwt.tiling import ROWS
from wavefilt.backends.cuda.runtime.compiler import kernel
from wavefilt.backends.cuda.runtime.interfaces import Kernel
from wavefilt.backends.cuda.runtime.target import cuda, device
from wavefilt.backends.cuda.runtime.wide import quotient
from wavefilt.thresholding.local import NEXT, OWN, REACH, Grid, weights

BEGIN, PITCH, COUNT, SPACING, SHIFT, FIELDS = range(6)
"""Fields of a band in `table`, and how many they are."""
EACH = 4  # times a thread has, a block of them apart: further ones find coefficients in the first-level cache


def table(grids: Sequence[Grid], begins: Sequence[int], pitches: Sequence[int]) -> tuple[Counts, int, int]:
    """Of each band, what `FIELDS` says, and the first time and the number of times at which any has a coefficient.

    At time u a band has coefficient u + SHIFT, in row 0 at element BEGIN + u + SHIFT.
    """
    shifts = [0]
    for grid, coarser in pairwise(grids):
        low, high = grid.nearest(slice(0, 1), coarser)
        assert low == high  # bands of whole samples: there is one that is nearest
        shifts.append(shifts[-1] + int(low[0]))
    found = zip(begins, pitches, (g.count for g in grids), (g.spacing for g in grids), shifts, strict=True)
    first = min(-shift for shift in shifts)
    last = max(grid.count - shift for grid, shift in zip(grids, shifts, strict=True))
    return np.array(list(found), np.int64), first, last - first


@cache
def shrinking(dtype: str, threads: int, periodic: bool) -> Kernel:
    """Kernel that writes coefficients of all bands shrunk to the places in ``target`` that they have in ``source``."""
    number = np.dtype(dtype).type
    one, zero, own_share, most = number(1), number(0), number(OWN), number(np.finfo(dtype).max)
    ratio, share, edge = number(NEXT), number(weights(REACH)[REACH]), at_the_edge(dtype, periodic)

    @device
    def energy(source, start, count, spacing, k, scale):
        """At a coefficient wherever it lies."""
        if REACH * spacing <= k < count - REACH * spacing:
            total, w = zero, source[start + k] * scale
            for m in range(REACH, 0, -1):  # the weights of Horner's scheme
                a, b = source[start + k - m * spacing] * scale, source[start + k + m * spacing] * scale
                total = ratio * (total + (a * a + b * b))
            return (total + w * w) * share
        return edge(source, start, count, spacing, k, scale)

    @device
    def around(source, bands, thresholds, band, depth, row, rows, u):
        """Energy of a band, and how many that are: none beyond the bands, or where the threshold is 0."""
        t = thresholds[band * rows + row] if band < depth else zero
        if t == 0:
            return zero, zero
        field = band * FIELDS
        start, count = bands[field + BEGIN] + row * bands[field + PITCH], bands[field + COUNT]
        scale = min(one / t, most)
        return energy(source, start, count, bands[field + SPACING], u + bands[field + SHIFT], scale), one

    @kernel(dtype, threads, periodic)
    def local_kernel(source, target, bands, depth, thresholds, rows, first, times):
        row = cuda.blockIdx.y + ROWS * cuda.blockIdx.z
        if row >= rows:
            return
        for turn in range(EACH):
            i = (EACH * cuda.blockIdx.x + turn) * threads + cuda.threadIdx.x
            if i >= times:
                return
            u = first + i
            finer, with_finer = zero, zero
            own, with_own = around(source, bands, thresholds, 0, depth, row, rows, u)
            for band in range(depth):
                coarser, with_coarser = around(source, bands, thresholds, band + 1, depth, row, rows, u)
                k, field = u + bands[band * FIELDS + SHIFT], band * FIELDS
                if 0 <= k < bands[field + COUNT]:
                    at = bands[field + BEGIN] + row * bands[field + PITCH] + k
                    gain, total = one, finer + own_share * own + coarser
                    count = with_finer + own_share + with_coarser
                    if with_own > 0:
                        gain = one - quotient(count, total) if total > count else zero
                    target[at] = source[at] * gain
                finer, with_finer, own, with_own = own, with_own, coarser, with_coarser

    return local_kernel
