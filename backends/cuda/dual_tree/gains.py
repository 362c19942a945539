"""Kernels that write by what coefficients are multiplied, from their magnitudes: to load and apply these is cheap.

By a function of each magnitude and a threshold, or local James-Stein shrinkage of panels, which takes the mean energy
of 3 x 3 coefficients: what it is, `wavefilt.thresholding.local_shrinkage`. That of traces is
`wavefilt.backends.cuda.dwt.local_shrinkage`.
"""

from __future__ import annotations

import math
from functools import cache

import numpy as np

from wavefilt.backends.cuda.dwt2.columns import tile_of
from wavefilt.backends.cuda.runtime.compiler import kernel
from wavefilt.backends.cuda.runtime.interfaces import Build, Kernel
from wavefilt.backends.cuda.runtime.target import cuda, device
from wavefilt.backends.cuda.runtime.wide import load4, store
from wavefilt.backends.cuda.statistics.layout import LENGTH, OFFSET, PITCH, PLACES
from wavefilt.backends.cuda.thresholding import shrink

ROWS_EACH = 16
"""Coefficients of a column of a panel that a thread has."""


@cache
def of_panels(build: Build, width: int) -> Kernel:
    """Kernel of the gains of the bands of a level, from their magnitudes, a thread for 1 or 4 columns.

    Four if their number is a multiple of four.
    """
    dtype, threads = build.dtype, build.threads
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

    @kernel(build, width)
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
def pointwise(function: str, build: Build) -> Kernel:
    """Kernel of the gains by one of the functions of `shrink`, a thread for four coefficients of a row of a band."""
    dtype, threads = build.dtype, build.threads
    shrunk, one, zero = shrink(function, dtype), np.dtype(dtype).type(1), np.dtype(dtype).type(0)

    @device
    def gain(m, t):
        return shrunk(m, t) / m if m > zero else one

    @kernel(build, function)
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
def measuring(build: Build) -> Kernel:
    """Kernel of the magnitudes of coefficients."""

    threads = build.threads

    @kernel(build)
    def magnitudes_kernel(bands, magnitudes, count):
        i = cuda.blockIdx.x * threads + cuda.threadIdx.x
        while i < count:
            p, q = bands[2 * i], bands[2 * i + 1]
            magnitudes[i] = math.sqrt(p * p + q * q)
            i += threads * cuda.gridDim.x

    return magnitudes_kernel
