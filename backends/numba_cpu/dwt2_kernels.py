"""One level of the transform of both axes, tile by tile: rows are filtered into a scratch, and that down its columns.

Both steps read and write runs of rows: the columns of a tile go down side by side, a vector of them at a time.
"""

from __future__ import annotations

import numpy as np

from .adapter import part
from .dwt import PADDING
from .dwt_kernels import analyse_all, extension, gather, shrink, split_row, tabulate
from .native import GROUP_BYTES
from .vector import analyse, clear, greater, lesser, synthesise, tail, view


@part
def own_tile(job, sizes, tile):
    """Return the section of a tile, counted through all sections, its first row and column, and its height and width.

    They are in coefficients; ``sizes`` are rows and columns of a section and of a band, and ``tile`` the height and
    width of tiles, and their number down and across.
    """
    height, width, down, across = tile[0], tile[1], tile[2], tile[3]
    section, place = job // (down * across), job % (down * across)
    top, left = place // across * height, place % across * width
    return section, top, left, lesser(height, sizes[2] - top), lesser(width, sizes[3] - left)


@part
def _rows(row, n, at, count, first, table, even, odd, lo, hi, low, low_at, high, high_at):
    """Compute coefficients ``at`` to ``at + count``, and more to fill a group, of a row of n samples."""
    split_row(even, odd, 2 * at + first, count + len(lo) // 2 - 1, row, 0, n, row, 0, n, table)
    for p in range(0, count, GROUP_BYTES // lo.itemsize):
        analyse(even, p, odd, p, 1, lo, hi, low, low_at + p, high, high_at + p)


@part
def forward(sizes, tile, source, bands, along, down, workspace, begin, end):
    """Transform tiles ``begin`` to ``end``, counted through all sections.

    ``sizes`` and ``tile`` come from `dwt2.plan`; ``source`` and ``bands`` (cA, cH, cV, cD) are addresses
    of C-contiguous sections; ``along`` a row and ``down`` the columns are the filters, the mode, and the input at which
    coefficient 0 begins.
    """
    row_first, row_mode, lo, hi = along
    column_first, column_mode, column_lo, column_hi = down
    rows, columns, m, n = sizes[0], sizes[1], sizes[2], sizes[3]
    height, width, pitch = tile[0], tile[1], tile[4]
    size, group = lo.itemsize, GROUP_BYTES // lo.itemsize
    taps = len(column_lo)
    stride, length = width + len(lo) // 2 + group + PADDING, (2 * height + taps - 2) * pitch
    table = view(workspace, 12 * (len(lo) + 1), sizes)
    tabulate(table, columns, len(lo), row_mode)
    even = view(workspace + 8 * len(table), 2 * (stride + length) + group + columns, lo)
    clear(even)
    odd, extended = tail(even, stride), tail(even, 2 * stride)
    scratch = tail(extended, columns)
    for job in range(begin, end):
        section, top, left, filled, count = own_tile(job, sizes, tile)
        for i in range(2 * filled + taps - 2):
            j, a, k, b, l, c = extension(column_mode, 2 * top + column_first + i, rows)  # noqa: E741
            row = view(source + (section * rows + j) * columns * size, columns, lo)
            if a != 1 or b != 0 or c != 0:
                second = view(source + (section * rows + k) * columns * size, columns, lo)
                third = view(source + (section * rows + l) * columns * size, columns, lo)
                for p in range(columns):
                    total = a * np.float64(row[p]) if a != 0 else 0.0  # float64, as in `dwt_kernels`
                    if b != 0:
                        total += b * np.float64(second[p])
                    if c != 0:
                        total += c * np.float64(third[p])
                    extended[p] = total
                row = extended
            _rows(row, columns, left, count, row_first, table, even, odd, lo, hi,
                  scratch, i * pitch, scratch, length + i * pitch)  # fmt: skip
        for half in range(2):
            first = (section * m + top) * n + left
            smooth = view(bands[2 * half] + first * size, (filled - 1) * n + count, lo)
            detail = view(bands[2 * half + 1] + first * size, (filled - 1) * n + count, lo)
            for r in range(filled):
                at = half * length + 2 * r * pitch
                analyse_all(scratch, at, scratch, at + pitch, 2 * pitch, count, column_lo, column_hi,
                            smooth, r * n, detail, r * n)  # fmt: skip


@part
def inverse(sizes, tile, target, bands, along, down, shrinking, workspace, begin, end):
    """Reconstruct tiles ``begin`` to ``end``, counted through all sections, with the details shrunk on load.

    As in `forward`; tiles are of pairs of samples that begin at the output sample of coefficient 0, ``shift``. The
    thresholds (3, sections) of ``shrinking`` in float64 are for cD, cV and cH; cA is unchanged.
    """
    shift, even_taps, odd_taps = along
    column_shift, column_even, column_odd = down
    function, thresholds = shrinking
    rows, columns, m, n = sizes[0], sizes[1], sizes[2], sizes[3]
    height, width, down, across, pitch = tile[0], tile[1], tile[2], tile[3], tile[4]
    size, group = even_taps.itemsize, GROUP_BYTES // even_taps.itemsize
    phases, column_phases = len(even_taps) // 2, len(column_even) // 2
    stride, length = width + phases + group + PADDING, (height + column_phases - 1) * pitch
    clear(view(workspace, 2 * (stride + length) + group + pitch, even_taps))
    smooth, detail = view(workspace, stride, even_taps), view(workspace + stride * size, stride, even_taps)
    spare = view(workspace + 2 * stride * size, pitch, even_taps)
    scratch = view(workspace + (2 * stride + pitch) * size, 2 * length + group, even_taps)
    origin = np.int64(0)  # as in `dwt_kernels.inverse`
    for job in range(begin, end):
        section, place = job // (down * across), job % (down * across)
        top = -column_shift // 2 + place // across * height
        left = -shift // 2 + place % across * width
        filled = lesser(height, (rows - column_shift + 1) // 2 - top)
        count = lesser(width, (columns - shift + 1) // 2 - left)
        window = count + phases - 1
        for i in range(filled + column_phases - 1):
            start = (section * m + (top + i) % m) * n * size
            for half in range(2):
                for high in range(2):
                    band = 2 * high + half
                    row, own = view(bands[band] + start, n, even_taps), detail if high else smooth
                    gather(own, left, window, row, origin, n, row, origin, n)
                    if band:
                        limit = even_taps.dtype.type(thresholds[3 - band, section])
                        shrink(own, window, own, function, limit)
                for p in range(0, count, group):
                    at = half * length + i * pitch + 2 * p
                    synthesise(smooth, p, detail, p, 1, even_taps, odd_taps, scratch, at, scratch, at)
        begins = 2 * left + shift
        skip = greater(-begins, 0)
        used = lesser(2 * count, columns - begins) - skip
        for r in range(filled):
            above = 2 * (top + r) + column_shift
            at, out = r * pitch + skip, (section * rows + above) * columns + begins + skip
            first = view(target + out * size, used, even_taps) if above >= 0 else spare
            second = view(target + (out + columns) * size, used, even_taps) if above + 1 < rows else spare
            analyse_all(scratch, at, scratch, length + at, pitch, used, column_even, column_odd, first, 0, second, 0)
