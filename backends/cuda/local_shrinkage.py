"""Local James-Stein shrinkage of the bands of a DWT and of a MODWT on the device.

For the definition see `wavefilt.thresholding.local`. One launch computes the mean energy around each coefficient of all
bands. Another one shrinks the coefficients by these energies: those of its own band, and those of the adjacent bands at
the same time. A thread has `EACH` coefficients of one band, and all bands of a row share a launch:

    blocks     |  band 1: 0 1 2 3 4 5 6 7  |  band 2: 8 9 10 11  |  12 13  | ...
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from wavefilt.arrays import Counts
from wavefilt.backends.cuda.dwt.tiling import ROWS
from wavefilt.backends.cuda.runtime.compiler import kernel
from wavefilt.backends.cuda.runtime.interfaces import Build, Kernel
from wavefilt.backends.cuda.runtime.target import cuda, device
from wavefilt.backends.cuda.runtime.wide import load_column, put_at, quotient
from wavefilt.thresholding.local import NEXT, OWN, REACH, Grid, weights

FIELDS = 13
"""Numbers of a band in `table`.

They are the blocks of a row; its first element, the elements from row to row, and its coefficients; the spacing of its
`Grid`; then ``up``, ``low``, ``high`` and ``down`` of the finer band and of the coarser one, whose coefficients
(2^up k + low) / 2^down and (2^up k + high) / 2^down are nearest to coefficient k.
"""
EACH = 8
"""Coefficients of a thread, a block of threads apart."""


def blocks(grids: Sequence[Grid], threads: int) -> int:
    """Return the blocks that shrink a row of these bands."""
    return sum(-(-grid.count // (EACH * threads)) for grid in grids)


def table(grids: Sequence[Grid], begins: Sequence[int], pitches: Sequence[int], threads: int) -> Counts:
    """Return the fields of each band, shape (bands, `FIELDS`)."""
    found = np.zeros((len(grids), FIELDS), np.int64)
    for i, (own, grid, begin, pitch) in enumerate(zip(found, grids, begins, pitches, strict=True)):
        own[:5] = blocks([grid], threads), begin, pitch, grid.count, grid.spacing
        for field, j in (5, i - 1), (9, i + 1):
            if 0 <= j < len(grids):
                down = grid.step < grids[j].step
                low, high = (int(ends[: 1 + down].sum()) for ends in grid.nearest(slice(0, 2), grids[j]))
                own[field : field + 4] = grid.step > grids[j].step, low, high, down
    return found


_one, _fields, _put = load_column(1), load_column(FIELDS), put_at([0])


@device
def _load(array, index):
    return _one(array, index, 0)[0]


@device
def _place(bands, threads):
    """Band, row and first coefficient of this thread."""
    block, band = cuda.blockIdx.x, 0
    while block >= _load(bands, band * FIELDS):
        block -= _load(bands, band * FIELDS)
        band += 1
    return band, cuda.blockIdx.y + ROWS * cuda.blockIdx.z, EACH * block * threads + cuda.threadIdx.x


@cache
def measuring(build: Build, periodic: bool, spaced: bool) -> Kernel:
    """Kernel that writes the mean energy around each coefficient to the same place in ``energies``.

    It is 0 where the threshold is 0. Coefficients of a mean follow one another if they are not ``spaced``.
    """
    number, threads = np.dtype(build.dtype).type, build.threads
    zero, one, most = number(0), number(1), number(np.finfo(build.dtype).max)
    ratio, share = number(NEXT), number(weights(REACH)[REACH])
    around = load_column(2 * REACH + 1)
    assert REACH == 4  # the coefficients named below

    @device
    def square(w, scale):
        w *= scale
        return w * w

    @device
    def pair(a, b, scale):
        return square(a, scale) + square(b, scale)

    @device
    def at_the_edge(source, start, count, spacing, k, scale):
        total, there, weight = zero, zero, one
        for m in range(REACH + 1):
            for side in range(2 if m else 1):
                i = k + m * spacing if side else k - m * spacing
                i = i % count if periodic else i
                if 0 <= i < count:
                    w = source[start + i] * scale
                    total += weight * (w * w)
                    there += weight
            weight *= ratio
        return quotient(total, there)

    @kernel(build, periodic, spaced)
    def energy_kernel(source, energies, bands, thresholds, rows):
        band, row, first = _place(bands, threads)
        if row >= rows:
            return
        t = _load(thresholds, band * rows + row)
        begin, pitch, count, spacing = _fields(bands, band * FIELDS, 1)[1:5]
        start, scale = begin + row * pitch, min(one / t, most) if t > 0 else zero
        spacing = spacing if spaced else 1
        for turn in range(EACH):
            k = first + turn * threads
            if k >= count:
                return
            if scale == 0:
                _put(energies, start + k, (zero,))
            elif REACH * spacing <= k < count - REACH * spacing:
                a4, a3, a2, a1, own, b1, b2, b3, b4 = around(source, start + k - REACH * spacing, spacing)
                total = ratio * pair(a4, b4, scale) + pair(a3, b3, scale)  # Horner's scheme
                total = ratio * (ratio * (ratio * total + pair(a2, b2, scale)) + pair(a1, b1, scale))
                _put(energies, start + k, ((total + square(own, scale)) * share,))
            else:
                _put(energies, start + k, (at_the_edge(source, start, count, spacing, k, scale),))

    return energy_kernel


@cache
def shrinking(build: Build, periodic: bool) -> Kernel:
    """Kernel that shrinks the coefficients of all bands in place; bands with threshold 0 are unchanged."""
    number, threads = np.dtype(build.dtype).type, build.threads
    one, zero, half, own_share = number(1), number(0), number(0.5), number(OWN)

    @device
    def at(energies, start, count, k):
        if np.uint64(k) >= np.uint64(count):  # negative ones too
            k = k % count if periodic else min(max(k, 0), count - 1)
        return _load(energies, start + k)

    @device
    def adjacent(energies, start, count, nearest, k):
        """Energy of an adjacent band at the time of coefficient k."""
        up, low, high, down = nearest
        found = at(energies, start, count, ((k << up) + low) >> down)
        return found if high == low else half * (found + at(energies, start, count, ((k << up) + high) >> down))

    @device
    def row_of(bands, band, row):
        """First element of a row, and its coefficients."""
        fields = _fields(bands, band * FIELDS, 1)
        return fields[1] + row * fields[2], fields[3]

    @kernel(build, periodic)
    def local_kernel(details, energies, bands, depth, thresholds, rows):
        band, row, first = _place(bands, threads)
        if row >= rows or _load(thresholds, band * rows + row) == 0:
            return
        before, after = max(band - 1, 0), min(band + 1, depth - 1)
        with_finer = before < band and _load(thresholds, before * rows + row) > 0
        with_coarser = after > band and _load(thresholds, after * rows + row) > 0
        many = own_share + (one if with_finer else zero) + (one if with_coarser else zero)
        (start, count), finer, coarser = row_of(bands, band, row), row_of(bands, before, row), row_of(bands, after, row)
        fields = _fields(bands, band * FIELDS, 1)
        for turn in range(EACH):
            k = first + turn * threads
            if k >= count:
                return
            d, total = _load(details, start + k), own_share * _load(energies, start + k)
            if with_finer:
                total += adjacent(energies, *finer, fields[5:9], k)
            if with_coarser:
                total += adjacent(energies, *coarser, fields[9:], k)
            gain = one - quotient(many, total) if total > many else zero
            _put(details, start + k, (d * gain,))

    return local_kernel
