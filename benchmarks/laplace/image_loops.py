"""CPU kernels of the 5x5 Laplace filter on interleaved RGB bytes, each for a range of rows; outside is zero."""

from __future__ import annotations

import numpy as np

from wavefilt.backends.numba_cpu.compiler import jit
from wavefilt.benchmarks.laplace.image_counts import BORDER, CHANNELS, RADIUS, SIDE

AREA = SIDE * SIDE


@jit
def plain(bordered, y, start, stop):
    """The sum of 25 pixels after the other. Both are (height, width, 3), x with two pixels of zeros on every side."""
    width = y.shape[1]
    for row in range(start, stop):
        for column in range(width):
            for channel in range(CHANNELS):
                total = np.int32(0)
                for i in range(SIDE):
                    for j in range(SIDE):
                        total = np.int32(total + bordered[row + i, column + j, channel])
                centre = bordered[row + RADIUS, column + RADIUS, channel]
                value = np.int32(AREA * centre - total)
                y[row, column, channel] = min(max(value, np.int32(0)), np.int32(255))


@jit
def vectors(x, y, start, stop):
    """25 times the pixel less the 5x5 box around it, from running sums of columns; x and y are (height, 3 width).

    Loops over a row without a branch in 16 bits, of which compilers make vector instructions.
    """
    height, length = x.shape
    sums = np.zeros(length + 2 * BORDER, np.int16)
    columns = sums[BORDER : BORDER + length]
    for row in range(max(start - RADIUS, 0), min(start + RADIUS, height)):
        for j in range(length):
            columns[j] += np.int16(x[row, j])
    for row in range(start, stop):
        if row + RADIUS < height:
            below = x[row + RADIUS]
            for j in range(length):
                columns[j] += np.int16(below[j])
        for j in range(length):
            box = np.int16(sums[j] + sums[j + 3] + sums[j + 6] + sums[j + 9] + sums[j + 12])
            value = np.int16(AREA * np.int16(x[row, j]) - box)
            y[row, j] = np.uint8(min(max(value, np.int16(0)), np.int16(255)))
        if row >= RADIUS:
            above = x[row - RADIUS]
            for j in range(length):
                columns[j] -= np.int16(above[j])
