"""Kernels that write by what coefficients are multiplied, from their magnitudes: to load and apply these is cheap.

By a function of each magnitude and a threshold, or local James-Stein shrinkage: what it is,
`wavefilt.thresholding.local_shrinkage`. That of panels takes the mean energy of 3 x 3 coefficients, that of traces the
energy of neighbours in time in a coefficient's own band and the adjacent ones, of which the low-pass coefficients are
one more. Twice as many coefficients of the next finer level, and half as many of the next coarser one, lie at the same
times.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from wavefilt.backends.cuda.dwt.tiling import ROWS
from wavefilt.backends.cuda.dwt2.columns import tile_of
from wavefilt.backends.cuda.runtime.compiler import kernel
from wavefilt.backends.cuda.runtime.interfaces import DeviceFunction, Kernel
from wavefilt.backends.cuda.runtime.target import cuda, device
from wavefilt.backends.cuda.runtime.wide import load4, store
from wavefilt.backends.cuda.statistics.layout import LENGTH, OFFSET, PITCH, PLACES
from wavefilt.backends.cuda.thresholding.functions import shrink
from wavefilt.thresholding.local_shrinkage import REACH

ROWS_EACH = 16
"""Coefficients of a column of a panel that a thread has."""
QUADS_EACH = 4
"""Times four coefficients of a trace that a thread has in the finest band."""


@cache
def of_panels(dtype: str, threads: int, width: int) -> Kernel:
    """Kernel of the gains of the bands of a level, from their magnitudes, a thread for 1 or 4 columns.

    Four if their number is a multiple of four.
    """
    number = np.dtype(dtype).type
    most, zero, one, share = number(np.finfo(dtype).max), number(0), number(1), number(1 / 18)

    @device
    def square(magnitudes, at, scale):
        m = magnitudes[at] * scale
        return m * m

    @device
    def one_wide(magnitudes, at, left, right, scale):
        return (
            square(magnitudes, at + left, scale)
            + square(magnitudes, at, scale)
            + square(magnitudes, at + right, scale),
        )

    @device
    def four_wide(magnitudes, at, left, right, scale):
        p, q, r, s = load4(magnitudes, at)
        p, q, r, s = p * scale, q * scale, r * scale, s * scale
        p, q, r, s = p * p, q * q, r * r, s * s
        before, after = square(magnitudes, at + left, scale), square(magnitudes, at + 3 + right, scale)
        return before + (p + q), (p + q) + r, (q + r) + s, (r + s) + after

    @device
    def gain(above, own, below):
        energy = (above + own + below) * share
        return one - one / energy if energy > one else zero

    @device
    def put_one(gains, at, above, own, below):
        gains[at] = gain(above[0], own[0], below[0])

    @device
    def put_four(gains, at, above, own, below):
        p, q = gain(above[0], own[0], below[0]), gain(above[1], own[1], below[1])
        r, s = gain(above[2], own[2], below[2]), gain(above[3], own[3], below[3])
        store(gains, at, (p, q, r, s))

    energies, put = (one_wide, put_one) if width == 1 else (four_wide, put_four)

    @kernel(dtype, threads, width)
    def local_panels_kernel(magnitudes, gains, band_begin, squares, thresholds, limits, first_panel, across):
        (band, stride, apart), (rows, columns) = band_begin, squares
        tile_row, tile = tile_of(cuda.blockIdx.x, across)
        panel, kind = first_panel + cuda.blockIdx.y, cuda.blockIdx.z
        column, row = width * (tile * threads + cuda.threadIdx.x), tile_row * ROWS_EACH
        if column >= columns:
            return
        left, right = -1 if column > 0 else 0, 1 if column + width < columns else 0
        at = band + kind * apart + panel * stride + row * columns + column
        t = thresholds[limits[0] + panel + kind * limits[1]]
        scale = min(one / t, most) if t > zero else zero
        own = energies(magnitudes, at, left, right, scale)
        above = energies(magnitudes, at - columns if row > 0 else at, left, right, scale)
        for r in range(row, min(row + ROWS_EACH, rows)):
            below = energies(magnitudes, at + columns if r + 1 < rows else at, left, right, scale)
            if t > zero:
                put(gains, at, above, own, below)
            else:
                for i in range(width):
                    gains[at + i] = one
            above, own = own, below
            at += columns

    return local_panels_kernel


@cache
def _around(dtype: str) -> DeviceFunction:
    """Device function: the mean energies around four coefficients of a row, from the k-th on, a multiple of four."""
    number = np.dtype(dtype).type
    share, one, zero = number(1 / (2 * REACH + 1)), number(1), number(0)

    @device
    def end(magnitudes, begin, count, k):
        return magnitudes[begin + k] if 0 <= k < count else zero

    @device
    def share_of(count, k):
        return one / number(max(min(k + REACH + 1, count) - max(k - REACH, 0), 1))

    @device
    def around(magnitudes, begin, count, k, scale):
        shares = share, share, share, share
        if k >= 4 and k + 8 <= count:
            _, a, b, c = load4(magnitudes, begin + k - 4)
            d, e, f, g = load4(magnitudes, begin + k)
            h, i, j, _ = load4(magnitudes, begin + k + 4)
        else:
            a, b, c = (
                end(magnitudes, begin, count, k - 3),
                end(magnitudes, begin, count, k - 2),
                end(magnitudes, begin, count, k - 1),
            )
            d, e, f, g = (
                end(magnitudes, begin, count, k),
                end(magnitudes, begin, count, k + 1),
                end(magnitudes, begin, count, k + 2),
                end(magnitudes, begin, count, k + 3),
            )
            h, i, j = (
                end(magnitudes, begin, count, k + 4),
                end(magnitudes, begin, count, k + 5),
                end(magnitudes, begin, count, k + 6),
            )
            shares = share_of(count, k), share_of(count, k + 1), share_of(count, k + 2), share_of(count, k + 3)
        a, b, c, d, e = a * scale, b * scale, c * scale, d * scale, e * scale
        f, g, h, i, j = f * scale, g * scale, h * scale, i * scale, j * scale
        a, b, c, h, i, j = a * a, b * b, c * c, h * h, i * i, j * j
        middle = (d * d + e * e) + (f * f + g * g)
        return (
            (middle + (c + (b + a))) * shares[0],
            (middle + ((c + b) + h)) * shares[1],
            (middle + (c + (h + i))) * shares[2],
            (middle + (h + (i + j))) * shares[3],
        )

    return around


@cache
def of_traces(dtype: str, threads: int) -> Kernel:
    """Kernel of the gains of all bands, finest first, each block for those of a stretch of time one after the other.

    What they need of each other is in the cache then.
    """
    number, around = np.dtype(dtype).type, _around(dtype)
    most, zero, one, half = number(np.finfo(dtype).max), number(0), number(1), number(0.5)
    root = number(2**0.5)  # thresholds are those of one of two parts

    @device
    def scale_of(thresholds, place):
        t = thresholds[place] * root
        return min(one / t, most) if t > zero else zero

    @device
    def added(found, others):
        return found[0] + others[0], found[1] + others[1], found[2] + others[2], found[3] + others[3]

    @device
    def gain(energy, count):
        return one - count / energy if energy > count else zero

    @device
    def place(bands, band, row):
        at = bands[band * PLACES + OFFSET] + row * bands[band * PLACES + PITCH]
        return at, bands[band * PLACES + LENGTH]

    stretch = 4 * QUADS_EACH * threads

    @kernel(dtype, threads, registers=64 if dtype == "float32" else None)
    def local_traces_kernel(magnitudes, gains, bands, last, thresholds, rows):
        """``bands`` as in `DetailLayout.table`; the ``last`` ones are the low-pass coefficients."""
        row = cuda.blockIdx.y + ROWS * cuda.blockIdx.z
        if row >= rows:
            return
        below, scale, above = zero, zero, scale_of(thresholds, row)
        for band in range(last + 1):
            below, scale, above = scale, above, zero
            if band < last:
                above = scale_of(thresholds, (band + 1) * rows + row)
            begin, count = place(bands, band, row)
            finer, finer_count = place(bands, max(band - 1, 0), row)
            coarser, coarser_count = place(bands, min(band + 1, last), row)
            there = one + (one if below > zero else zero) + (one if above > zero else zero)
            shift = min(band, last - 1) + 2
            up = (1 << shift) - 1
            v = (cuda.blockIdx.x * stretch + up >> shift) + cuda.threadIdx.x
            stop = min((cuda.blockIdx.x + 1) * stretch + up >> shift, count + 3 >> 2)
            while v < stop:
                k = 4 * v
                found = one, one, one, one
                if scale > zero:
                    found = around(magnitudes, begin, count, k, scale)
                    if below > zero:
                        if band == last:
                            found = added(found, around(magnitudes, finer, finer_count, k, below))
                        else:
                            a, b, c, d = around(magnitudes, finer, finer_count, 2 * k, below)
                            p, q, r, s = around(magnitudes, finer, finer_count, 2 * k + 4, below)
                            found = added(found, ((a + b) * half, (c + d) * half, (p + q) * half, (r + s) * half))
                    if above > zero:
                        alike = band + 1 == last
                        at = k if alike else (k >> 1) & ~3
                        a, b, c, d = around(magnitudes, coarser, coarser_count, at, above)
                        if not alike:
                            if k & 4:
                                a, b = c, d
                            a, b, c, d = a, a, b, b
                        found = added(found, (a, b, c, d))
                    a, b, c, d = found
                    found = gain(a, there), gain(b, there), gain(c, there), gain(d, there)
                store(gains, begin + k, found)
                v += threads

    return local_traces_kernel


@cache
def pointwise(function: str, dtype: str, threads: int) -> Kernel:
    """Kernel of the gains by one of the functions of `shrink`, a thread for four coefficients of a row of a band."""
    shrunk, one, zero = shrink(function, dtype), np.dtype(dtype).type(1), np.dtype(dtype).type(0)

    @device
    def gain(m, t):
        return shrunk(m, t) / m if m > zero else one

    @kernel(function, dtype, threads)
    def pointwise_kernel(magnitudes, gains, bands, thresholds, rows, first, first_band):
        band, row = first_band + cuda.blockIdx.z, first + cuda.blockIdx.y
        k = 4 * (cuda.blockIdx.x * threads + cuda.threadIdx.x)
        if k < bands[band * PLACES + LENGTH]:
            t = thresholds[band * rows + row]
            k += bands[band * PLACES + OFFSET] + row * bands[band * PLACES + PITCH]
            a, b, c, d = load4(magnitudes, k)
            store(gains, k, (gain(a, t), gain(b, t), gain(c, t), gain(d, t)))

    return pointwise_kernel


@cache
def measuring(dtype: str, threads: int) -> Kernel:
    """Kernel of the magnitudes of coefficients."""

    @kernel(dtype, threads)
    def magnitudes_kernel(bands, magnitudes, count):
        i = cuda.blockIdx.x * threads + cuda.threadIdx.x
        while i < count:
            p, q = bands[2 * i], bands[2 * i + 1]
            magnitudes[i] = math.sqrt(p * p + q * q)
            i += threads * cuda.gridDim.x

    return magnitudes_kernel
