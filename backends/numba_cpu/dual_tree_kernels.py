"""One level of the dual-tree transform, of rows and of sections, tile by tile.

A sequence has an even and an odd place for each complex coefficient. In the low-pass sequence they belong to tree a and
tree b, in the high-pass one to tree b and tree a. Beyond the ends places are reflected: even and odd change over. The
first level filters by one symmetric filter, all others by that of tree a and, for tree b, the same reversed. Sizes are
in complex coefficients, the numbers of places are twice those; sums do not depend on tiles. The first level of rows is
one of the MODWT with that filter: `modwt_kernels` computes it.

Sections are filtered along their rows into a scratch, and that down its columns, a vector of columns at a time:

    rows of the tile, and the halo of the columns  ->  scratch: planes of low-pass and high-pass, even and odd places
    scratch, down its columns                      ->  lines: 4 planes for each of the two or four rows of a pair
    lines                                          ->  the low-pass band, and three pairs of complex bands
"""

from __future__ import annotations

from .adapter import part
from .dual_tree import LINES, PAD
from .dwt2_kernels import own_tile
from .native import GROUP_BYTES
from .vector import analyse, clear, combine, copy, greater, join, lesser, split, synthesise, tail, view

HALF = 0.5**0.5


@part
def _inside(i, n):
    """Return the place among n for place i, reflected as often as needed."""
    i = i % (2 * n)
    return 2 * n - 1 - i if i >= n else i


@part
def _both(u, v, step, count, lo, hi, s, r):
    """Compute `vector.analyse` of ``count`` places, and more to fill a group."""
    for p in range(0, count, GROUP_BYTES // lo.itemsize):
        analyse(u, p, v, p, step, lo, hi, s, p, r, p)


@part
def _one(u, v, step, count, taps, s):
    """Compute `vector.combine` of ``count`` places, and more to fill two groups."""
    for p in range(0, count, 2 * GROUP_BYTES // taps.itemsize):
        combine(u, p, v, p, step, taps, s, p)


@part
def _row(source, n, whole, first, count, out):
    """Load ``count`` places from ``first`` on, of a row of n samples extended to a ``whole`` of them."""
    a, b = lesser(greater(-first, 0), count), greater(lesser(n - first, count), 0)
    for i in range(a):
        out[i] = source[_inside(_inside(first + i, whole), n)]
    if a < b:
        copy(tail(source, first + a), b - a, tail(out, a))
    for i in range(greater(a, b), count):
        out[i] = source[_inside(_inside(first + i, whole), n)]


@part
def _trees(u, v, other, step, count, trees, out, plane):
    """Filter by tree a's filters, and the places ``other`` elements further on by tree b's.

    ``out`` has four lines, ``plane`` apart: even and odd places of the low-pass sequence and of the high-pass one.
    """
    _both(u, v, step, count, trees.a_lo, trees.a_hi, out, tail(out, 3 * plane))
    u, v = tail(u, other), tail(v, other)
    _both(u, v, step, count, trees.b_lo, trees.b_hi, tail(out, plane), tail(out, 2 * plane))


@part
def _later_row(line, n, left, count, trees, work, stride, out, plane):
    """Filter a row of 4 n places: the lines of `_trees` for ``count`` coefficients from ``left`` on.

    ``work`` has 12 lines, ``stride`` apart.
    """
    taps = len(trees.a_lo)
    before = (taps - 2 + 3) // 4
    fours = count + 2 * before
    halves, four = tail(work, 4 * stride), tail(work, 8 * stride)
    _row(line, 4 * n, 4 * n, 4 * (left - before), 4 * fours, work)
    split(work, 2 * fours, halves, tail(halves, 2 * stride))
    split(halves, fours, four, tail(four, 2 * stride))
    split(tail(halves, 2 * stride), fours, tail(four, stride), tail(four, 3 * stride))
    # the place of the first tap in the lines of four
    u, v = (0, 2 * stride) if 4 * before == taps - 2 else (2 * stride, 1)
    _trees(tail(four, u), tail(four, v), stride, 1, count, trees, out, plane)


@part
def _joined_trees(low, high, stride, count, trees, out, plane):
    """Do the opposite of `_trees` along a row: ``low`` and ``high`` have even and odd places, ``stride`` apart."""
    a_even, a_odd, b_even, b_odd = trees
    for p in range(0, count, GROUP_BYTES // a_even.itemsize):
        synthesise(low, p, high, stride + p, 1, a_even, a_odd, out, 2 * p, out, 2 * p)
        synthesise(low, stride + p, high, p, 1, b_even, b_odd, out, plane + 2 * p, out, plane + 2 * p)


@part
def rows_forward(sizes, tile, source, bands, trees, workspace, begin, end):
    """Compute any level of rows but the first, from 4 low-pass coefficients for each of the complex ones.

    ``sizes`` are samples of a row and complex coefficients, ``tile`` the coefficients of a tile and the tiles of a row.
    """
    n, width, across, a_lo = sizes[1], tile[0], tile[1], trees.a_lo
    size, stride = a_lo.itemsize, width + len(a_lo) + PAD
    work = view(workspace, LINES * stride, a_lo)
    lines = tail(work, 12 * stride)
    clear(work)
    for job in range(begin, end):
        own, left = job // across, job % across * width
        count, at = lesser(width, n - left), 2 * (own * n + left) * size
        line = view(source + own * 4 * n * size, 4 * n, a_lo)
        _later_row(line, n, left, count, trees, work, stride, lines, stride)
        join(lines, tail(lines, stride), count, view(bands[0] + at, 2 * count, a_lo))
        join(tail(lines, 2 * stride), tail(lines, 3 * stride), count, view(bands[1] + at, 2 * count, a_lo))


@part
def rows_inverse(sizes, tile, target, bands, trees, first, workspace, begin, end):
    """Invert `rows_forward`, with taps as `inverse`."""
    n, width, across, a_even = sizes[1], tile[0], tile[1], trees.a_even
    size, phases = a_even.itemsize, len(a_even) // 2
    stride = width + phases + PAD
    row = view(workspace, LINES * stride, a_even)
    places, lines = tail(row, 2 * stride), tail(row, 6 * stride)
    clear(row)
    for job in range(begin, end):
        own, left = job // across, job % across * width
        count = lesser(width, n - left)
        wide = count + phases - 1
        for half in range(2):
            source = view(bands[half] + 2 * own * n * size, 2 * n, a_even)
            _row(source, 2 * n, 2 * n, 2 * (left - first), 2 * wide, row)
            split(row, wide, tail(places, 2 * half * stride), tail(places, (2 * half + 1) * stride))
        detail = tail(places, 2 * stride)
        _joined_trees(places, detail, stride, count, trees, lines, 2 * stride)
        out = view(target + (own * n + left) * 4 * size, 4 * count, a_even)
        join(lines, tail(lines, 2 * stride), 2 * count, out)


@part
def _directions(a, b, c, d, count, parts, pitch, first, second):
    """Make two complex bands from places of an even row, even and odd (a, b), and of an odd row (c, d)."""
    scale = a.dtype.type(HALF)
    u, v = parts, tail(parts, pitch)
    for p in range(count):
        u[p] = (a[p] - d[p]) * scale
    for p in range(count):
        v[p] = (b[p] + c[p]) * scale
    join(u, v, count, first)
    for p in range(count):
        u[p] = (a[p] + d[p]) * scale
    for p in range(count):
        v[p] = (b[p] - c[p]) * scale
    join(u, v, count, second)


@part
def _places(bands, band, own, n, at, count, odd, even, other, parts, pitch):
    """Store even and ``other`` places of row ``odd`` of a pair of a plane, from its two complex bands.

    They belong to ``count`` coefficients from ``at`` on of row ``own`` of the bands, and undo `_directions`. Places
    beyond the ends are reflected; their images are among these coefficients. ``parts`` are four lines, ``pitch`` apart,
    to work in.
    """
    size, scale = even.itemsize, even.dtype.type(HALF)
    first = view(bands[band] + 2 * own * n * size, 2 * n, even)
    second = view(bands[7 - band] + 2 * own * n * size, 2 * n, even)
    a, b = lesser(greater(-at, 0), count), greater(lesser(n - at, count), 0)
    inner, begins = b - a, 2 * (at + a)
    u, v, x, y = parts, tail(parts, pitch), tail(parts, 2 * pitch), tail(parts, 3 * pitch)
    split(tail(first, begins), inner, u, v)
    split(tail(second, begins), inner, x, y)
    inner_even, inner_other = tail(even, a), tail(other, a)
    if odd:
        for i in range(inner):
            inner_even[i] = (v[i] - y[i]) * scale
        for i in range(inner):
            inner_other[i] = (x[i] - u[i]) * scale
    else:
        for i in range(inner):
            inner_even[i] = (u[i] + x[i]) * scale
        for i in range(inner):
            inner_other[i] = (v[i] + y[i]) * scale
    for i in range(count):
        if i < a or i >= b:
            place = _inside(2 * (at + i), 2 * n)
            k = place // 2 - at
            even[i], other[i] = (other[k], even[k]) if place % 2 else (even[k], other[k])


@part
def first_forward(sizes, tile, source, bands, taps_lo, taps_hi, workspace, begin, end):
    """Compute the first level of sections: tiles ``begin`` to ``end``.

    ``sizes`` are rows and columns of a section, and coefficients down and across; ``tile`` is that of
    `dual_tree.plan`; ``bands`` are the addresses of the low-pass and of the six complex ones.
    """
    rows, columns, m, n = sizes[0], sizes[1], sizes[2], sizes[3]
    height, width = tile[0], tile[1]
    size, reach = taps_lo.itemsize, len(taps_lo) // 2 - 1
    pitch, stride, longest = 2 * width + PAD, width + PAD, 2 * width + PAD + len(taps_lo)
    length = (2 * height + 2 * reach + 2) * pitch
    row = view(workspace, longest + 2 * length + 8 * pitch + 6 * stride, taps_lo)
    scratch = tail(row, longest)
    lines = tail(scratch, 2 * length)  # for an even and an odd row: low-pass and high-pass down, each so across
    a = tail(lines, 8 * pitch)
    b, c, d, parts = tail(a, stride), tail(a, 2 * stride), tail(a, 3 * stride), tail(a, 4 * stride)
    clear(row)
    for job in range(begin, end):
        section, top, left, filled, count = own_tile(job, sizes, tile)
        for i in range(2 * filled + 2 * reach):
            at = _inside(_inside(2 * top - reach + i, 2 * m), rows)
            line = view(source + (section * rows + at) * columns * size, columns, taps_lo)
            _row(line, columns, 2 * n, 2 * left - reach, 2 * count + 2 * reach, row)
            own = tail(scratch, i * pitch)
            _both(row, tail(row, 1), 2, 2 * count, taps_lo, taps_hi, own, tail(own, length))
        for k in range(filled):
            low = view(bands[0] + ((section * m + top + k) * 4 * n + 2 * left) * size, 2 * n + 2 * count, taps_lo)
            for odd in range(2):
                for high in range(2):  # along a row
                    own, line = (
                        tail(scratch, high * length + (2 * k + odd) * pitch),
                        tail(lines, (4 * odd + 2 * high) * pitch),
                    )
                    _both(own, tail(own, pitch), 2 * pitch, 2 * count, taps_lo, taps_hi, line, tail(line, pitch))
                copy(tail(lines, 4 * odd * pitch), 2 * count, tail(low, 2 * odd * n))
            for band in range(3):  # high from row to row, along both axes, along a row
                line, at = tail(lines, (1, 3, 2)[band] * pitch), (section * m + top + k) * n + left
                split(line, count, a, b)
                split(tail(line, 4 * pitch), count, c, d)
                one = view(bands[1 + band] + 2 * at * size, 2 * count, taps_lo)
                other = view(bands[6 - band] + 2 * at * size, 2 * count, taps_lo)
                _directions(a, b, c, d, count, parts, stride, one, other)


@part
def forward(sizes, tile, source, bands, trees, workspace, begin, end):
    """Compute any other level of sections, from four low-pass coefficients along each axis for one of a band."""
    m, n = sizes[2], sizes[3]
    height, width, a_lo = tile[0], tile[1], trees.a_lo
    size, taps = a_lo.itemsize, len(a_lo)
    pitch, stride = width + PAD, width + taps + PAD
    length = (4 * height + 2 * taps - 4) * pitch
    work = view(workspace, 12 * stride + 4 * length + 16 * pitch, a_lo)
    scratch = tail(work, 12 * stride)
    lines = tail(scratch, 4 * length)
    clear(work)
    for job in range(begin, end):
        section, top, left, filled, count = own_tile(job, sizes, tile)
        for i in range(4 * filled + 2 * taps - 4):
            at = _inside(4 * top - (taps - 2) + i, 4 * m)
            line = view(source + (section * 4 * m + at) * 4 * n * size, 4 * n, a_lo)
            own = tail(scratch, i * pitch)
            _later_row(line, n, left, count, trees, work, stride, own, length)
        for k in range(filled):
            for plane in range(4):  # low-pass even and odd, high-pass even and odd along a row
                own, line = tail(scratch, plane * length + 4 * k * pitch), tail(lines, plane * 4 * pitch)
                third = tail(own, 2 * pitch)
                _trees(own, third, pitch, 4 * pitch, count, trees, line, pitch)
            at = (section * m + top + k) * n + left
            low = view(bands[0] + ((section * m + top + k) * 4 * n + 2 * left) * size, 2 * n + 2 * count, a_lo)
            join(lines, tail(lines, 4 * pitch), count, low)
            join(tail(lines, pitch), tail(lines, 5 * pitch), count, tail(low, 2 * n))
            for band in range(3):
                a = tail(lines, (2, 10, 8)[band] * pitch)
                b, c, d = tail(a, 4 * pitch), tail(a, pitch), tail(a, 5 * pitch)
                one = view(bands[1 + band] + 2 * at * size, 2 * count, a_lo)
                other = view(bands[6 - band] + 2 * at * size, 2 * count, a_lo)
                _directions(a, b, c, d, count, work, stride, one, other)


@part
def first_inverse(sizes, tile, target, bands, taps, workspace, begin, end):
    """Invert `first_forward`, cropped to the section."""
    rows, columns, m, n = sizes[0], sizes[1], sizes[2], sizes[3]
    height, width = tile[0], tile[1]
    size, reach = taps.itemsize, len(taps) // 4
    pitch, stride = 2 * width + PAD, width + 2 * reach + PAD
    length = (2 * height + 2 * reach) * pitch
    low = view(workspace, 12 * stride + 2 * length + pitch, taps)
    high, even = tail(low, 2 * stride), tail(low, 4 * stride)
    odds, parts = tail(low, 5 * stride), tail(low, 6 * stride)
    scratch = tail(low, 12 * stride)
    line = tail(scratch, 2 * length)
    clear(low)
    margin = (reach + 1) // 2
    for job in range(begin, end):
        section, top, left, filled, count = own_tile(job, sizes, tile)
        wide = count + 2 * margin
        for i in range(2 * filled + 2 * reach):
            at = _inside(2 * top - reach + i, 2 * m)
            odd, own = at % 2, section * m + at // 2
            smooth = view(bands[0] + (section * 2 * m + at) * 2 * n * size, 2 * n, taps)
            for half in range(2):  # low-pass and high-pass of the columns
                if half == 0:
                    _row(smooth, 2 * n, 2 * n, 2 * (left - margin), 2 * wide, low)
                else:
                    _places(bands, 1, own, n, left - margin, wide, odd, even, odds, parts, stride)
                    join(even, odds, wide, low)
                _places(bands, 3 - half, own, n, left - margin, wide, odd, even, odds, parts, stride)
                join(even, odds, wide, high)
                skip = 2 * margin - reach
                out = tail(scratch, half * length + i * pitch)
                _one(tail(low, skip), tail(high, skip), 1, 2 * count, taps, out)
        above, before = 2 * top, 2 * left
        used = lesser(2 * count, columns - before)
        for r in range(lesser(2 * filled, rows - above)):
            _one(tail(scratch, r * pitch), tail(scratch, length + r * pitch), pitch, used, taps, line)
            copy(line, used, view(target + ((section * rows + above + r) * columns + before) * size, used, taps))


@part
def inverse(sizes, tile, target, bands, trees, first, workspace, begin, end):
    """Invert `forward`, with taps of even and odd places of each tree, low and high in turn, from coefficient
    ``first`` before their own on."""
    m, n = sizes[2], sizes[3]
    height, width = tile[0], tile[1]
    a_even, a_odd, b_even, b_odd = trees
    size, phases = a_even.itemsize, len(a_even) // 2
    stride, pitch = width + phases + PAD, 4 * width + 2 * PAD
    plane = 2 * width + PAD
    length = (height + phases - 1) * pitch
    places = view(workspace, 14 * stride + 4 * length + 4 * pitch, a_even)
    row, parts, scratch = tail(places, 8 * stride), tail(places, 10 * stride), tail(places, 14 * stride)
    lines = tail(scratch, 4 * length)
    clear(places)
    for job in range(begin, end):
        section, top, left, filled, count = own_tile(job, sizes, tile)
        wide, start = count + phases - 1, left - first
        for i in range(filled + phases - 1):
            for odd in range(2):
                at = _inside(2 * (top - first + i) + odd, 2 * m)
                own, inner = section * m + at // 2, at % 2
                smooth = view(bands[0] + (section * 2 * m + at) * 2 * n * size, 2 * n, a_even)
                _row(smooth, 2 * n, 2 * n, 2 * start, 2 * wide, row)
                split(row, wide, places, tail(places, stride))
                for band in range(1, 4):  # rows, both, columns
                    even, other = tail(places, 2 * band * stride), tail(places, (2 * band + 1) * stride)
                    _places(bands, band, own, n, start, wide, inner, even, other, parts, stride)
                for high in range(2):
                    low_at, high_at = (2 * stride, 4 * stride) if high else (0, 6 * stride)
                    low, detail = tail(places, low_at), tail(places, high_at)
                    out = tail(scratch, (2 * high + odd) * length + i * pitch)
                    _joined_trees(low, detail, stride, count, trees, out, plane)
        for k in range(filled):
            for side in range(2):
                own, line = tail(scratch, k * pitch + side * plane), tail(lines, side * plane)
                _both(own, tail(own, 3 * length), pitch, 2 * count, a_even, a_odd, line, tail(line, 2 * pitch))
                u, v = tail(own, length), tail(own, 2 * length)
                _both(u, v, pitch, 2 * count, b_even, b_odd, tail(line, pitch), tail(line, 3 * pitch))
            for r in range(4):
                begins = (section * 4 * m + 4 * (top + k) + r) * 4 * n + 4 * left
                line = tail(lines, r * pitch)
                join(line, tail(line, plane), 2 * count, view(target + begins * size, 4 * count, a_even))
