"""One level of the dual-tree transform of both axes, tile by tile: rows into a scratch, and that down its columns.

A sequence has an even and an odd place for each complex coefficient: of the low-pass one tree a's and tree b's, of the
high-pass one tree b's and tree a's. In the scratch they lie in planes of their own. Beyond the ends places are
reflected, which changes even and odd ones over.

The first level filters by one symmetric filter, all others by that of tree a and the same reversed for tree b. Sizes
are in complex coefficients, the numbers of places are twice those; sums do not depend on tiles.
"""

from __future__ import annotations

from wavefilt.backends.numba_cpu.adapter import part
from wavefilt.backends.numba_cpu.dwt.kernels import clear
from wavefilt.backends.numba_cpu.target import GROUP_BYTES, VECTOR_BYTES
from wavefilt.backends.numba_cpu.vector import analyse, combine, greater, join, lesser, split, synthesise, tail, view

from .plan import PAD

HALF = 0.5**0.5


@part
def _inside(i, n):
    """The place that stands for place i of n, reflected as often as needed."""
    i = i % (2 * n)
    return 2 * n - 1 - i if i >= n else i


@part
def _both(u, u_at, v, v_at, step, count, lo, hi, s, s_at, r, r_at):
    """`vector.analyse` of ``count`` places, and more to fill a group."""
    for p in range(0, count, GROUP_BYTES // lo.itemsize):
        analyse(u, u_at + p, v, v_at + p, step, lo, hi, s, s_at + p, r, r_at + p)


@part
def _one(u, u_at, v, v_at, step, count, taps, s, s_at):
    """`vector.combine` of ``count`` places, and more to fill two groups."""
    for p in range(0, count, 2 * GROUP_BYTES // taps.itemsize):
        combine(u, u_at + p, v, v_at + p, step, taps, s, s_at + p)


@part
def _row(source, n, whole, first, count, out, out_at):
    """``count`` places from ``first`` on, of a row of n samples extended to a ``whole`` of them."""
    a, b = lesser(greater(-first, 0), count), greater(lesser(n - first, count), 0)
    for i in range(a):
        out[out_at + i] = source[_inside(_inside(first + i, whole), n)]
    if a < b:
        target, own = tail(out, out_at + a), tail(source, first + a)
        for i in range(b - a):
            target[i] = own[i]
    for i in range(greater(a, b), count):
        out[out_at + i] = source[_inside(_inside(first + i, whole), n)]


@part
def _split(x, x_at, count, even, even_at, odd, odd_at):
    """``count`` pairs."""
    lanes = VECTOR_BYTES // x.itemsize
    whole = count // lanes * lanes
    for p in range(0, whole, lanes):
        split(x, x_at + 2 * p, even, even_at + p, odd, odd_at + p)
    for p in range(whole, count):
        even[even_at + p] = x[x_at + 2 * p]
        odd[odd_at + p] = x[x_at + 2 * p + 1]


@part
def _joined(even, even_at, odd, odd_at, count, x, x_at):
    """The opposite of `_split`."""
    lanes = VECTOR_BYTES // x.itemsize
    whole = count // lanes * lanes
    for p in range(0, whole, lanes):
        join(even, even_at + p, odd, odd_at + p, x, x_at + 2 * p)
    for p in range(whole, count):
        x[x_at + 2 * p] = even[even_at + p]
        x[x_at + 2 * p + 1] = odd[odd_at + p]


@part
def _directions(lines, ee, eo, oe, oo, count, parts, pitch, first, second):
    """Two complex bands from places of even and odd rows, each even and odd, that begin there in ``lines``."""
    scale = lines.dtype.type(HALF)
    a, b, c, d = tail(lines, ee), tail(lines, eo), tail(lines, oe), tail(lines, oo)
    u, v = parts, tail(parts, pitch)
    for p in range(count):
        u[p] = (a[p] - d[p]) * scale
    for p in range(count):
        v[p] = (b[p] + c[p]) * scale
    _joined(u, 0, v, 0, count, first, 0)
    for p in range(count):
        u[p] = (a[p] + d[p]) * scale
    for p in range(count):
        v[p] = (b[p] - c[p]) * scale
    _joined(u, 0, v, 0, count, second, 0)


@part
def _place(first, second, k, odd, other, out, at):
    """The even place of a coefficient k, or the ``other``, in row ``odd`` of a pair: the inverse of `_directions`."""
    scale = out.dtype.type(HALF)
    if odd == other:  # both trees alike: real parts
        out[at] = (second[2 * k] - first[2 * k] if odd else first[2 * k] + second[2 * k]) * scale
    else:
        out[at] = (first[2 * k + 1] - second[2 * k + 1] if odd else first[2 * k + 1] + second[2 * k + 1]) * scale


@part
def _places(first, second, n, at, count, odd, out, even_at, odd_at, parts, pitch):
    """Even and odd places of row ``odd`` of a pair, of ``count`` coefficients from ``at`` on, which may be beyond.

    ``parts`` are four lines, ``pitch`` long, to work in.
    """
    scale = out.dtype.type(HALF)
    a, b = lesser(greater(-at, 0), count), greater(lesser(n - at, count), 0)
    for i in range(count):
        if i < a or i >= b:
            place = _inside(2 * (at + i), 2 * n)
            _place(first, second, place // 2, odd, place % 2, out, even_at + i)
            _place(first, second, place // 2, odd, 1 - place % 2, out, odd_at + i)
    if a < b:
        inner, begins = b - a, 2 * (at + a)
        _split(first, begins, inner, parts, 0, parts, pitch)
        _split(second, begins, inner, parts, 2 * pitch, parts, 3 * pitch)
        u, v, x, y = parts, tail(parts, pitch), tail(parts, 2 * pitch), tail(parts, 3 * pitch)
        even, other = tail(out, even_at + a), tail(out, odd_at + a)
        if odd:
            for i in range(inner):
                even[i] = (v[i] - y[i]) * scale
            for i in range(inner):
                other[i] = (x[i] - u[i]) * scale
        else:
            for i in range(inner):
                even[i] = (u[i] + x[i]) * scale
            for i in range(inner):
                other[i] = (v[i] + y[i]) * scale


@part
def first_forward(sizes, tile, source, bands, taps_lo, taps_hi, workspace, begin, end):
    """The first level of panels: tiles ``begin`` to ``end``.

    ``sizes`` are rows and columns of a panel, and coefficients down and across; ``tile`` is that of `plan.launch`;
    ``bands`` are the addresses of the low-pass and of the six complex ones.
    """
    rows, columns, m, n = sizes[0], sizes[1], sizes[2], sizes[3]
    height, width, down, across = tile[0], tile[1], tile[2], tile[3]
    size, reach = taps_lo.itemsize, len(taps_lo) // 2 - 1
    pitch = 2 * width + PAD
    length = (2 * height + 2 * reach + 2) * pitch
    stride = width + PAD
    clear(view(workspace, pitch + len(taps_lo) + 2 * length + 8 * pitch + 6 * stride, taps_lo))
    row = view(workspace, pitch + len(taps_lo), taps_lo)
    scratch = view(workspace + len(row) * size, 2 * length, taps_lo)
    lines = view(workspace + (len(row) + 2 * length) * size, 8 * pitch, taps_lo)
    four = view(workspace + (len(row) + 2 * length + 8 * pitch) * size, 4 * stride, taps_lo)
    parts = view(workspace + (len(row) + 2 * length + 8 * pitch + 4 * stride) * size, 2 * stride, taps_lo)
    for job in range(begin, end):
        panel, place = job // (down * across), job % (down * across)
        top, left = place // across * height, place % across * width
        filled, count = lesser(height, m - top), lesser(width, n - left)
        for i in range(2 * filled + 2 * reach):
            at = _inside(_inside(2 * top - reach + i, 2 * m), rows)
            line = view(source + (panel * rows + at) * columns * size, columns, taps_lo)
            _row(line, columns, 2 * n, 2 * left - reach, 2 * count + 2 * reach, row, 0)
            _both(row, 0, row, 1, 2, 2 * count, taps_lo, taps_hi, scratch, i * pitch, scratch, length + i * pitch)
        for k in range(filled):
            low = view(bands[0] + ((panel * m + top + k) * 4 * n + 2 * left) * size, 2 * n + 2 * count, taps_lo)
            for odd in range(2):
                for high in range(2):  # of the columns
                    at = high * length + (2 * k + odd) * pitch
                    _both(
                        scratch,
                        at,
                        scratch,
                        at + pitch,
                        2 * pitch,
                        2 * count,
                        taps_lo,
                        taps_hi,
                        lines,
                        (4 * odd + 2 * high) * pitch,
                        lines,
                        (4 * odd + 2 * high + 1) * pitch,
                    )
                target, line = tail(low, 2 * odd * n), tail(lines, 4 * odd * pitch)
                for p in range(2 * count):
                    target[p] = line[p]
            for band in range(3):  # high from row to row, along both axes, along a row
                at, own = (1, 3, 2)[band] * pitch, (panel * m + top + k) * n + left
                _split(lines, at, count, four, 0, four, stride)
                _split(lines, at + 4 * pitch, count, four, 2 * stride, four, 3 * stride)
                one = view(bands[1 + band] + 2 * own * size, 2 * count, taps_lo)
                other = view(bands[6 - band] + 2 * own * size, 2 * count, taps_lo)
                _directions(four, 0, stride, 2 * stride, 3 * stride, count, parts, stride, one, other)


@part
def forward(sizes, tile, source, bands, a_lo, a_hi, b_lo, b_hi, workspace, begin, end):
    """Any other level, of low-pass coefficients of which four lie along each axis for a coefficient of the bands."""
    m, n = sizes[2], sizes[3]
    height, width, down, across = tile[0], tile[1], tile[2], tile[3]
    size, taps = a_lo.itemsize, len(a_lo)
    before, pitch = (taps - 2 + 3) // 4, width + PAD
    shift = 4 * before - (taps - 2)  # 0, or 2: of the first tap's place in the buffers of four
    length = (4 * height + 2 * taps - 4) * pitch
    stride = width + taps + PAD
    clear(view(workspace, 12 * stride + 4 * length + 16 * pitch, a_lo))
    row = view(workspace, 4 * stride, a_lo)
    four = view(workspace + 4 * stride * size, 4 * stride, a_lo)
    halves = view(workspace + 8 * stride * size, 4 * stride, a_lo)
    scratch = view(workspace + 12 * stride * size, 4 * length, a_lo)
    lines = view(workspace + (12 * stride + 4 * length) * size, 16 * pitch, a_lo)
    u, v = (0, 2 * stride) if shift == 0 else (2 * stride, 1)
    for job in range(begin, end):
        panel, place = job // (down * across), job % (down * across)
        top, left = place // across * height, place % across * width
        filled, count = lesser(height, m - top), lesser(width, n - left)
        fours = count + 2 * before
        for i in range(4 * filled + 2 * taps - 4):
            at = _inside(4 * top - (taps - 2) + i, 4 * m)
            line = view(source + (panel * 4 * m + at) * 4 * n * size, 4 * n, a_lo)
            _row(line, 4 * n, 4 * n, 4 * (left - before), 4 * fours, row, 0)
            _split(row, 0, 2 * fours, halves, 0, halves, 2 * stride)
            _split(halves, 0, fours, four, 0, four, 2 * stride)
            _split(halves, 2 * stride, fours, four, stride, four, 3 * stride)
            own = i * pitch
            _both(four, u, four, v, 1, count, a_lo, a_hi, scratch, own, scratch, 3 * length + own)
            _both(
                four,
                stride + u,
                four,
                stride + v,
                1,
                count,
                b_lo,
                b_hi,
                scratch,
                length + own,
                scratch,
                2 * length + own,
            )
        for k in range(filled):
            low = view(bands[0] + ((panel * m + top + k) * 4 * n + 2 * left) * size, 2 * n + 2 * count, a_lo)
            for plane in range(4):  # low even and odd, high even and odd along a row
                at, line = plane * length + 4 * k * pitch, plane * 4 * pitch
                _both(
                    scratch,
                    at,
                    scratch,
                    at + 2 * pitch,
                    4 * pitch,
                    count,
                    a_lo,
                    a_hi,
                    lines,
                    line,
                    lines,
                    line + 3 * pitch,
                )
                _both(
                    scratch,
                    at + pitch,
                    scratch,
                    at + 3 * pitch,
                    4 * pitch,
                    count,
                    b_lo,
                    b_hi,
                    lines,
                    line + pitch,
                    lines,
                    line + 2 * pitch,
                )
            _joined(lines, 0, lines, 4 * pitch, count, low, 0)
            _joined(lines, pitch, lines, 5 * pitch, count, low, 2 * n)
            own = (panel * m + top + k) * n + left
            for band in range(3):
                at = (2, 10, 8)[band] * pitch
                one = view(bands[1 + band] + 2 * own * size, 2 * count, a_lo)
                other = view(bands[6 - band] + 2 * own * size, 2 * count, a_lo)
                _directions(lines, at, at + 4 * pitch, at + pitch, at + 5 * pitch, count, row, stride, one, other)


@part
def first_inverse(sizes, tile, target, bands, taps, workspace, begin, end):
    """The inverse of `first_forward`, cropped to the panel."""
    rows, columns, m, n = sizes[0], sizes[1], sizes[2], sizes[3]
    height, width, down, across = tile[0], tile[1], tile[2], tile[3]
    size, reach = taps.itemsize, len(taps) // 4
    pitch, stride = 2 * width + PAD, width + 2 * reach + PAD
    length = (2 * height + 2 * reach) * pitch
    clear(view(workspace, 12 * stride + 2 * length + pitch, taps))
    low = view(workspace, 2 * stride, taps)
    high = view(workspace + 2 * stride * size, 2 * stride, taps)
    even = view(workspace + 4 * stride * size, 2 * stride, taps)
    parts = view(workspace + 6 * stride * size, 4 * stride, taps)
    scratch = view(workspace + 12 * stride * size, 2 * length, taps)
    line = view(workspace + (12 * stride + 2 * length) * size, pitch, taps)
    margin = (reach + 1) // 2
    for job in range(begin, end):
        panel, place = job // (down * across), job % (down * across)
        top, left = place // across * height, place % across * width
        filled, count = lesser(height, m - top), lesser(width, n - left)
        wide = count + 2 * margin
        for i in range(2 * filled + 2 * reach):
            at = _inside(2 * top - reach + i, 2 * m)
            odd, own = at % 2, panel * m + at // 2
            smooth = view(bands[0] + (panel * 2 * m + at) * 2 * n * size, 2 * n, taps)
            for half in range(2):  # low-pass and high-pass of the columns
                if half == 0:
                    _row(smooth, 2 * n, 2 * n, 2 * (left - margin), 2 * wide, low, 0)
                    _real(bands, 3, own, n, left - margin, wide, odd, even, stride, parts, high)
                else:
                    _real(bands, 1, own, n, left - margin, wide, odd, even, stride, parts, low)
                    _real(bands, 2, own, n, left - margin, wide, odd, even, stride, parts, high)
                skip = 2 * margin - reach
                _one(low, skip, high, skip, 1, 2 * count, taps, scratch, half * length + i * pitch)
        above, before = 2 * top, 2 * left
        used = lesser(2 * count, columns - before)
        for r in range(lesser(2 * filled, rows - above)):
            _one(scratch, r * pitch, scratch, length + r * pitch, pitch, used, taps, line, 0)
            out = view(target + ((panel * rows + above + r) * columns + before) * size, used, taps)
            for p in range(used):
                out[p] = line[p]


@part
def _real(bands, band, own, n, at, count, odd, even, stride, parts, out):
    """Places of row ``odd`` of a pair of a plane, from its two complex bands, even and odd ones in turn."""
    size = out.itemsize
    first = view(bands[band] + 2 * own * n * size, 2 * n, out)
    second = view(bands[7 - band] + 2 * own * n * size, 2 * n, out)
    _places(first, second, n, at, count, odd, even, 0, stride, parts, stride)
    _joined(even, 0, even, stride, count, out, 0)


@part
def inverse(sizes, tile, target, bands, a_even, a_odd, b_even, b_odd, first, workspace, begin, end):
    """The inverse of `forward`: taps of even and odd places of each tree, low and high in turn, from coefficient
    ``first`` before their own on."""
    m, n = sizes[2], sizes[3]
    height, width, down, across = tile[0], tile[1], tile[2], tile[3]
    size, phases = a_even.itemsize, len(a_even) // 2
    stride, pitch = width + phases + PAD, 4 * width + 2 * PAD
    plane = 2 * width + PAD
    length = (height + phases - 1) * pitch
    clear(view(workspace, 14 * stride + 4 * length + 4 * pitch, a_even))
    places = view(workspace, 8 * stride, a_even)
    row = view(workspace + 8 * stride * size, 2 * stride, a_even)
    parts = view(workspace + 10 * stride * size, 4 * stride, a_even)
    scratch = view(workspace + 14 * stride * size, 4 * length, a_even)
    lines = view(workspace + (14 * stride + 4 * length) * size, 4 * pitch, a_even)
    for job in range(begin, end):
        panel, place = job // (down * across), job % (down * across)
        top, left = place // across * height, place % across * width
        filled, count = lesser(height, m - top), lesser(width, n - left)
        wide, start = count + phases - 1, left - first
        for i in range(filled + phases - 1):
            for odd in range(2):
                at = _inside(2 * (top - first + i) + odd, 2 * m)
                own, inner = panel * m + at // 2, at % 2
                smooth = view(bands[0] + (panel * 2 * m + at) * 2 * n * size, 2 * n, a_even)
                _row(smooth, 2 * n, 2 * n, 2 * start, 2 * wide, row, 0)
                _split(row, 0, wide, places, 0, places, stride)
                for band in range(1, 4):  # rows, both, columns
                    one = view(bands[band] + 2 * own * n * size, 2 * n, a_even)
                    other = view(bands[7 - band] + 2 * own * n * size, 2 * n, a_even)
                    _places(
                        one,
                        other,
                        n,
                        start,
                        wide,
                        inner,
                        places,
                        2 * band * stride,
                        (2 * band + 1) * stride,
                        parts,
                        stride,
                    )
                for high in range(2):
                    low_at, high_at = (2 * stride, 4 * stride) if high else (0, 6 * stride)
                    at = (2 * high + odd) * length + i * pitch
                    for p in range(0, count, GROUP_BYTES // size):
                        synthesise(
                            places,
                            low_at + p,
                            places,
                            high_at + stride + p,
                            1,
                            a_even,
                            a_odd,
                            scratch,
                            at + 2 * p,
                            scratch,
                            at + 2 * p,
                        )
                        synthesise(
                            places,
                            low_at + stride + p,
                            places,
                            high_at + p,
                            1,
                            b_even,
                            b_odd,
                            scratch,
                            at + plane + 2 * p,
                            scratch,
                            at + plane + 2 * p,
                        )
        for k in range(filled):
            at = k * pitch
            for side in range(2):
                own = at + side * plane
                _both(
                    scratch,
                    own,
                    scratch,
                    3 * length + own,
                    pitch,
                    2 * count,
                    a_even,
                    a_odd,
                    lines,
                    side * plane,
                    lines,
                    2 * pitch + side * plane,
                )
                _both(
                    scratch,
                    length + own,
                    scratch,
                    2 * length + own,
                    pitch,
                    2 * count,
                    b_even,
                    b_odd,
                    lines,
                    pitch + side * plane,
                    lines,
                    3 * pitch + side * plane,
                )
            for r in range(4):
                begins = (panel * 4 * m + 4 * (top + k) + r) * 4 * n + 4 * left
                out, source = view(target + begins * size, 4 * count, a_even), r * pitch
                _joined(lines, source, lines, source + plane, 2 * count, out, 0)
