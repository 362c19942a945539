"""One level of the dual-tree transform of rows, tile by tile: what a sequence is, see `kernels`.

``sizes`` are samples of a row and complex coefficients, ``tile`` the coefficients of a tile and the tiles of a row.
"""

from __future__ import annotations

from wavefilt.backends.numba_cpu.adapter import part
from wavefilt.backends.numba_cpu.dwt.kernels import clear
from wavefilt.backends.numba_cpu.target import GROUP_BYTES
from wavefilt.backends.numba_cpu.vector import lesser, synthesise, view

from .kernels import _both, _joined, _one, _row, _split
from .plan import LINES, PAD


@part
def _copy(line, count, address):
    target = view(address, count, line)
    for p in range(count):
        target[p] = line[p]


@part
def first_forward(sizes, tile, source, low, high, taps_lo, taps_hi, workspace, begin, end):
    """The first level: low-pass and high-pass coefficients of tiles ``begin`` to ``end``."""
    samples, n, width, across = sizes[0], sizes[1], tile[0], tile[1]
    size, reach = taps_lo.itemsize, len(taps_lo) // 2 - 1
    stride = 2 * width + 2 * reach + 2 * PAD
    clear(view(workspace, 3 * stride, taps_lo))
    row, smooth = view(workspace, stride, taps_lo), view(workspace + stride * size, stride, taps_lo)
    detail = view(workspace + 2 * stride * size, stride, taps_lo)
    for job in range(begin, end):
        own, left = job // across, job % across * width
        count, at = lesser(width, n - left), 2 * (own * n + left) * size
        _row(
            view(source + own * samples * size, samples, taps_lo),
            samples,
            2 * n,
            2 * left - reach,
            2 * count + 2 * reach,
            row,
            0,
        )
        _both(row, 0, row, 1, 2, 2 * count, taps_lo, taps_hi, smooth, 0, detail, 0)
        _copy(smooth, 2 * count, low + at)
        _copy(detail, 2 * count, high + at)


@part
def forward(sizes, tile, source, low, high, a_lo, a_hi, b_lo, b_hi, workspace, begin, end):
    """Any other level, of 4 low-pass coefficients for each of the complex ones."""
    n, width, across = sizes[1], tile[0], tile[1]
    size, taps = a_lo.itemsize, len(a_lo)
    before, stride = (taps - 2 + 3) // 4, width + taps + PAD
    clear(view(workspace, LINES * stride, a_lo))
    row, halves = view(workspace, 4 * stride, a_lo), view(workspace + 4 * stride * size, 4 * stride, a_lo)
    four, lines = (
        view(workspace + 8 * stride * size, 4 * stride, a_lo),
        view(workspace + 12 * stride * size, 4 * stride, a_lo),
    )
    u, v = (0, 2 * stride) if 4 * before == taps - 2 else (2 * stride, 1)
    for job in range(begin, end):
        own, left = job // across, job % across * width
        count, at = lesser(width, n - left), 2 * (own * n + left) * size
        fours = count + 2 * before
        _row(view(source + own * 4 * n * size, 4 * n, a_lo), 4 * n, 4 * n, 4 * (left - before), 4 * fours, row, 0)
        _split(row, 0, 2 * fours, halves, 0, halves, 2 * stride)
        _split(halves, 0, fours, four, 0, four, 2 * stride)
        _split(halves, 2 * stride, fours, four, stride, four, 3 * stride)
        _both(four, u, four, v, 1, count, a_lo, a_hi, lines, 0, lines, 3 * stride)
        _both(four, stride + u, four, stride + v, 1, count, b_lo, b_hi, lines, stride, lines, 2 * stride)
        _joined(lines, 0, lines, stride, count, view(low + at, 2 * count, a_lo), 0)
        _joined(lines, 2 * stride, lines, 3 * stride, count, view(high + at, 2 * count, a_lo), 0)


@part
def first_inverse(sizes, tile, target, low, high, taps, workspace, begin, end):
    """The inverse of `first_forward`, cropped to the samples."""
    samples, n, width, across = sizes[0], sizes[1], tile[0], tile[1]
    size, reach = taps.itemsize, len(taps) // 4
    stride = 2 * width + 2 * reach + 2 * PAD
    clear(view(workspace, 3 * stride, taps))
    smooth, detail = view(workspace, stride, taps), view(workspace + stride * size, stride, taps)
    line = view(workspace + 2 * stride * size, stride, taps)
    for job in range(begin, end):
        own, left = job // across, job % across * width
        count = lesser(width, n - left)
        used = lesser(2 * count, samples - 2 * left)
        for half in range(2):
            source = view((high if half else low) + 2 * own * n * size, 2 * n, taps)
            _row(source, 2 * n, 2 * n, 2 * left - reach, 2 * count + 2 * reach, detail if half else smooth, 0)
        _one(smooth, 0, detail, 0, 1, 2 * count, taps, line, 0)
        if used > 0:
            _copy(line, used, target + (own * samples + 2 * left) * size)


@part
def inverse(sizes, tile, target, low, high, a_even, a_odd, b_even, b_odd, first, workspace, begin, end):
    """The inverse of `forward`, with taps as `kernels.inverse`."""
    n, width, across = sizes[1], tile[0], tile[1]
    size, phases = a_even.itemsize, len(a_even) // 2
    stride = width + phases + PAD
    clear(view(workspace, LINES * stride, a_even))
    row, places = view(workspace, 2 * stride, a_even), view(workspace + 2 * stride * size, 4 * stride, a_even)
    lines = view(workspace + 6 * stride * size, 4 * stride, a_even)
    for job in range(begin, end):
        own, left = job // across, job % across * width
        count = lesser(width, n - left)
        wide = count + phases - 1
        for half in range(2):
            source = view((high if half else low) + 2 * own * n * size, 2 * n, a_even)
            _row(source, 2 * n, 2 * n, 2 * (left - first), 2 * wide, row, 0)
            _split(row, 0, wide, places, 2 * half * stride, places, (2 * half + 1) * stride)
        for p in range(0, count, GROUP_BYTES // size):
            synthesise(places, p, places, 3 * stride + p, 1, a_even, a_odd, lines, 2 * p, lines, 2 * p)
            synthesise(
                places,
                stride + p,
                places,
                2 * stride + p,
                1,
                b_even,
                b_odd,
                lines,
                2 * stride + 2 * p,
                lines,
                2 * stride + 2 * p,
            )
        out = view(target + (own * n + left) * 4 * size, 4 * count, a_even)
        _joined(lines, 0, lines, 2 * stride, 2 * count, out, 0)
