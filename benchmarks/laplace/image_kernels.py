"""GPU kernels of the 5x5 Laplace filter on interleaved RGB bytes; what lies outside of the image is zero.

Indices and sums are of 32 bits: numba's own rule for integers would make them 64. Only the last step to an address is
unsigned and of 64 bits, so that the compiler makes a constant offset of it.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from wavefilt.backends.cuda.runtime.target import cuda, device
from wavefilt.backends.cuda.runtime.wide import load4, store
from wavefilt.benchmarks.laplace.images import BORDER, CHANNELS, RADIUS, ROWS, SIDE, Variant

int32: Any = np.int32
uint32: Any = np.uint32
uint64: Any = np.uint64
AREA = SIDE * SIDE


@cache
def kernel(variant: Variant) -> Any:
    """The kernel of a variant: ``(x, y, length, height)``, x and y being the image and its result row after row.

    They are arrays of bytes, ``length`` of them a row; for a wide variant of 32-bit words, a multiple of 4 a row.
    """
    return {"global": _global, "tile": _tile, "wide": _wide}[variant.memory](variant)


def writer(number: Any) -> Any:
    """Writes a byte of the result: 25 times the centre less the sum of all 25, in numbers of this type."""
    area, least, most = number(AREA), number(0), number(255)

    @device
    def write(y, place, centre, total):
        value = number(area * number(centre) - total)
        y[place] = int32(min(max(value, least), most))

    return write


def _global(variant: Variant) -> Any:
    channels, radius, border = CHANNELS, RADIUS, BORDER
    write, none = writer(int32), int32(0)

    @cuda.jit
    def laplace_global(x, y, length, height):
        column = int32(channels * (cuda.blockIdx.x * cuda.blockDim.x + cuda.threadIdx.x))
        row = int32(cuda.blockIdx.y * cuda.blockDim.y + cuda.threadIdx.y)
        if column >= length or row >= height:
            return
        centre = int32(row * length + column)
        red = green = blue = none
        if border <= column < length - border and radius <= row < height - radius:
            for i in range(-radius, radius + 1):
                first = uint64(uint32(centre + i * length - border))
                for j in range(0, 2 * border + 1, channels):
                    red = int32(red + x[first + uint64(j)])
                    green = int32(green + x[first + uint64(j + 1)])
                    blue = int32(blue + x[first + uint64(j + 2)])
        else:
            for i in range(max(-radius, -row), min(radius + 1, height - row)):
                for j in range(max(-border, -column), min(border + 1, length - column), channels):
                    place = uint64(uint32(centre + i * length + j))
                    red = int32(red + x[place])
                    green = int32(green + x[place + uint64(1)])
                    blue = int32(blue + x[place + uint64(2)])
        here = uint64(uint32(centre))
        write(y, here, x[here], red)
        write(y, here + uint64(1), x[here + uint64(1)], green)
        write(y, here + uint64(2), x[here + uint64(2)], blue)

    return laplace_global


def _tile(variant: Variant) -> Any:
    channels, side, radius, border = CHANNELS, SIDE, RADIUS, BORDER
    (across, down), threads = variant.block, variant.threads
    (used, rows), pitch = variant.tile, variant.pitch
    held = np.dtype(variant.held).type
    number = int32 if variant.held == "uint8" else np.float32
    size, items = pitch * rows, used * rows
    rounds = -(-items // threads)
    write, none, outside = writer(number), number(0), np.uint8(0)

    @cuda.jit
    def laplace_tile(x, y, length, height):
        tile = cuda.shared.array(size, held)
        top, left = int32(cuda.blockIdx.y * down - radius), int32(cuda.blockIdx.x * across * channels - border)
        thread = uint32(cuda.threadIdx.y * across + cuda.threadIdx.x)
        for turn in range(rounds):
            item = uint32(turn * threads + thread)
            i = uint32(item // uint32(used))
            j = uint32(item - i * used)
            row, byte = int32(top + i), int32(left + j)
            inside = (row >= 0) & (row < height) & (byte >= 0) & (byte < length)
            value = x[uint32(row * length + byte if inside else 0)]  # always read, so that no read waits for a branch
            if turn < rounds - 1 or item < items:
                tile[uint32(i * pitch + j)] = held(value if inside else outside)
        cuda.syncthreads()
        column, row = int32(left + border + channels * cuda.threadIdx.x), int32(top + radius + cuda.threadIdx.y)
        if column >= length or row >= height:
            return
        first = uint64(uint32(cuda.threadIdx.y * pitch + channels * cuda.threadIdx.x))
        red = green = blue = none
        for i in range(side):
            for j in range(0, side * channels, channels):
                place = first + uint64(i * pitch + j)
                red = number(red + number(tile[place]))
                green = number(green + number(tile[place + uint64(1)]))
                blue = number(blue + number(tile[place + uint64(2)]))
        here, centre = uint64(uint32(row * length + column)), first + uint64(radius * pitch + border)
        write(y, here, tile[centre], red)
        write(y, here + uint64(1), tile[centre + uint64(1)], green)
        write(y, here + uint64(2), tile[centre + uint64(2)], blue)

    return laplace_tile


LANES = uint32(0x00FF_00FF)
"""Every second byte of four, with room for 16 bits each: 25 times a byte fits."""
BIAS = uint32(0x2000_2000)
"""Added to both lanes before a subtraction, so that the lower does not borrow from the upper."""


@device
def window(x, row, chunk, words, height):
    """Eight words of a row: the four of a chunk and two on either side, which is more than the filter reaches."""
    none = uint32(0)
    before = within = after = (none, none, none, none)
    if (row >= 0) & (row < height):
        place = int32(row * words + 4 * chunk)
        within = load4(x, place)
        if chunk > 0:
            before = load4(x, place - 4)
        if 4 * chunk + 4 < words:
            after = load4(x, place + 4)
    return before[2], before[3], within[0], within[1], within[2], within[3], after[0], after[1]


@device
def slid(sums, new, old):
    """Sums of a column's bytes, in lanes, with the words of one more row and without those of another."""
    a, b = slid_one(sums[0], new[0], old[0]), slid_one(sums[1], new[1], old[1])
    c, d = slid_one(sums[2], new[2], old[2]), slid_one(sums[3], new[3], old[3])
    e, f = slid_one(sums[4], new[4], old[4]), slid_one(sums[5], new[5], old[5])
    return a, b, c, d, e, f, slid_one(sums[6], new[6], old[6]), slid_one(sums[7], new[7], old[7])


@device
def slid_one(total, new, old):
    return uint32(total + (new & LANES) - (old & LANES))


@device
def shifted(words):
    """The bytes of odd place, where those of even place were."""
    n = uint32(8)
    a, b, c, d = words[0] >> n, words[1] >> n, words[2] >> n, words[3] >> n
    return a, b, c, d, words[4] >> n, words[5] >> n, words[6] >> n, words[7] >> n


@device
def between(sums, k):
    """The upper lane of a word and the lower one of the next."""
    return uint32((sums[k] >> uint32(16)) | (sums[k + 1] << uint32(16)))


@device
def clamped(lanes):
    """Both lanes, less the bias, as bytes."""
    low, high = int32(lanes & uint32(0xFFFF)), int32(lanes >> uint32(16))
    least, most = int32(0x2000), int32(0x20FF)
    return uint32(min(max(low, least), most) & 0xFF | (min(max(high, least), most) & 0xFF) << 16)


@device
def four(evens, odds, centre, k):
    """Four bytes of the result: those of a pixel's channel are three bytes apart, so even and odd places alternate."""
    even = between(evens, k - 2) + odds[k - 1] + evens[k] + between(odds, k) + between(evens, k + 1)
    odd = between(odds, k - 2) + between(evens, k - 1) + odds[k] + evens[k + 1] + between(odds, k + 1)
    area = uint32(AREA)
    low = uint32(area * (centre & LANES) + BIAS - even)
    high = uint32(area * (centre >> uint32(8) & LANES) + BIAS - odd)
    return uint32(clamped(low) | clamped(high) << uint32(8))


def _wide(variant: Variant) -> Any:
    (across, down), rows, radius = variant.block, ROWS, RADIUS

    @cuda.jit
    def laplace_wide(x, y, words, height):
        chunk = int32(cuda.blockIdx.x * across + cuda.threadIdx.x)
        top = int32(rows * (cuda.blockIdx.y * down + cuda.threadIdx.y))
        if 4 * chunk >= words:
            return
        none = uint32(0)
        zeros = evens = odds = (none, none, none, none, none, none, none, none)
        for row in range(top - radius, top + radius):
            new = window(x, row, chunk, words, height)
            evens, odds = slid(evens, new, zeros), slid(odds, shifted(new), zeros)
        for row in range(top, min(top + rows, height)):
            new = window(x, row + radius, chunk, words, height)
            old = window(x, row - radius - 1 if row > top else -1, chunk, words, height)
            evens, odds = slid(evens, new, old), slid(odds, shifted(new), shifted(old))
            place = int32(row * words + 4 * chunk)
            a, b, c, d = load4(x, place)
            low, high = four(evens, odds, a, 2), four(evens, odds, b, 3)
            store(y, place, (low, high, four(evens, odds, c, 4), four(evens, odds, d, 5)))

    return laplace_wide
