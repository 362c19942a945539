"""Forward and inverse transform of ranges of tiles, several levels at a time."""

from __future__ import annotations

import numpy as np

from wavefilt.backends.numba_cpu.compiler import jit, view
from wavefilt.backends.numba_cpu.vector import GROUP_BYTES, VECTOR_BYTES, analyse, split, synthesise
from wavefilt.thresholding.shrinkage import FIRM_RATIO
from wavefilt.wavelets import boundary

BLOCK = 512  # coefficients computed at a time: their inputs and sums stay in the first-level cache
KEEP, SOFT, HARD, GARROTE, FIRM = range(5)

_extension = jit(boundary.extension)


@jit
def _split(even, odd, first, pairs, near, start, stop, far, far_start, n, mode):
    """Samples first + 2p and first + 2p + 1 of an extended row of n samples into even[p] and odd[p].

    Two pieces of the row are at hand: near, which holds [start, stop), and far, which holds the rest that is needed.
    """
    lanes = VECTOR_BYTES // near.itemsize
    inside = min(max((start - first + 1) // 2, 0), pairs)
    outside = min(max((stop - first) // 2, inside), pairs)
    source = first - start
    p = inside
    while p + lanes <= outside:
        split(near, source + 2 * p, even, p, odd, p)
        p += lanes
    for rest in range(p, outside):
        even[rest] = near[source + 2 * rest]
        odd[rest] = near[source + 2 * rest + 1]
    for i in range(2 * (pairs - outside + inside)):
        place = i if i < 2 * inside else i + 2 * (outside - inside)
        j, a, k, b, l, c = _extension(mode, first + place, n)  # noqa: E741
        total = 0.0  # float64: extrapolation over many samples loses digits
        if a != 0:
            total = a * np.float64(near[j - start] if start <= j < stop else far[j - far_start])
        if b != 0:
            total += b * np.float64(near[k - start] if start <= k < stop else far[k - far_start])
        if c != 0:
            total += c * np.float64(near[l - start] if start <= l < stop else far[l - far_start])
        value = near.dtype.type(total)
        if place % 2:
            odd[place // 2] = value
        else:
            even[place // 2] = value


@jit
def _pieces(tile, left, right, step, end):
    """The two pieces of a tile, as ranges of the deepest level: see `plan.launches`."""
    if tile == 0:
        return (0, left), (right, end)
    return (0, 0), (left + (tile - 1) * step, min(left + tile * step, right))


@jit
def forward(lengths, left, right, step, tiles, scratch, rows, details, approximation, first, mode, lo, hi, begin, end):
    """Fused levels of tiles ``begin`` to ``end``, counted through all rows.

    ``rows``, ``details`` (finest first) and ``approximation`` are addresses of C-contiguous (rows, length)
    arrays, ``lo`` and ``hi`` the reversed filters, ``first`` the input of coefficient 0 (`boundary.first_input`).
    """
    depth, taps, size = len(lengths) - 1, len(lo), lo.itemsize
    phases = taps // 2
    group = GROUP_BYTES // size
    # 80 elements more than a power of two: buffers a multiple of 4 KiB apart would evict each other
    stride = BLOCK + phases + group + 80
    work = np.zeros(4 * stride, lo.dtype)  # whole groups are computed, and denormals left in memory are slow
    even, odd = work[:stride], work[stride : 2 * stride]
    smooth_end, detail_end = work[2 * stride : 3 * stride], work[3 * stride :]
    levels = np.empty((2, 2, scratch + 80), lo.dtype)
    ranges = np.empty((2, depth + 1, 2), np.int64)
    for job in range(begin, end):
        row, tile = job // tiles, job % tiles
        own = _pieces(tile, left, right, step, lengths[depth])
        for piece in range(2):
            start, stop = own[piece]
            ranges[piece, depth, 0], ranges[piece, depth, 1] = start, stop
            for j in range(depth, 0, -1):
                start, stop = max(2 * start + first, 0), min(2 * stop + first + taps - 2, lengths[j - 1])
                ranges[piece, j - 1, 0], ranges[piece, j - 1, 1] = start, stop
        for j in range(1, depth + 1):
            n, m = lengths[j - 1], lengths[j]
            detail = view(details[j - 1] + row * m * size, m, lo)
            for piece in range(2):
                start, stop = ranges[piece, j, 0], ranges[piece, j, 1]
                own_start, own_stop = own[piece][0] << (depth - j), own[piece][1] << (depth - j)
                if own[piece][1] == lengths[depth]:
                    own_stop = m
                if own[piece][0] >= own[piece][1]:
                    continue
                if j == 1:
                    near, near_start, near_stop, far_start = view(rows + row * n * size, n, lo), 0, n, 0
                    far = near
                else:
                    near, near_start, near_stop = levels[piece, j & 1], ranges[piece, j - 1, 0], ranges[piece, j - 1, 1]
                    far, far_start = levels[1 - piece, j & 1], ranges[1 - piece, j - 1, 0]
                if j == depth:
                    target = view(approximation + (row * m + start) * size, stop - start, lo)
                else:
                    target = levels[piece, (j + 1) & 1]
                at = start
                while at < stop:
                    to = min(at + BLOCK, stop)
                    if at < own_start:
                        to = min(to, own_start)
                    elif at < own_stop:
                        to = min(to, own_stop)
                    count = to - at
                    _split(
                        even, odd, 2 * at + first, count + phases - 1,
                        near, near_start, near_stop, far, far_start, n, mode,
                    )  # fmt: skip
                    used = own_start <= at < own_stop
                    whole = count // group * group
                    for p in range(0, whole, group):
                        if used:
                            analyse(even, p, odd, p, 1, lo, hi, target, at - start + p, detail, at + p)
                        else:
                            analyse(even, p, odd, p, 1, lo, hi, target, at - start + p, detail_end, 0)
                    if whole < count:
                        analyse(even, whole, odd, whole, 1, lo, hi, smooth_end, 0, detail_end, 0)
                        for p in range(count - whole):
                            target[at - start + whole + p] = smooth_end[p]
                            if used:
                                detail[at + whole + p] = detail_end[p]
                    at = to


@jit
def _shrink(d, out, function, t):
    """Formulas of `wavefilt.thresholding.shrinkage`, in the data's dtype."""
    zero, one = d.dtype.type(0), d.dtype.type(1)
    count = len(out)
    if function == KEEP:
        for i in range(count):
            out[i] = d[i]
    elif function == SOFT:
        for i in range(count):
            x = d[i]
            clipped = t if x > t else x
            out[i] = x - (-t if clipped < -t else clipped)
    elif function == HARD:
        for i in range(count):
            out[i] = zero if abs(d[i]) < t else d[i]
    elif function == GARROTE:
        for i in range(count):
            modulus = abs(d[i])
            removed = t / modulus * t
            out[i] = zero if modulus <= t else d[i] - np.copysign(removed, d[i])
    else:
        high = d.dtype.type(FIRM_RATIO) * min(t, d.dtype.type(np.finfo(d.dtype).max / FIRM_RATIO))
        gain = one / (one - t / high) if high > t else one
        for i in range(count):
            modulus = abs(d[i])
            kept = zero if modulus <= t else (modulus - t) * gain
            removed = zero if modulus > high else modulus - min(kept, modulus)
            out[i] = d[i] - np.copysign(removed, d[i])


@jit
def _gather(out, at, count, near, start, stop, far, far_start, n):
    """Coefficients ``at`` to ``at + count`` of a row of n that goes round, from two pieces as in `_sample`."""
    inside = min(max(start - at, 0), count)
    outside = min(max(stop - at, inside), count)
    for i in range(inside, outside):
        out[i] = near[at + i - start]
    for i in range(count - (outside - inside)):
        p = i if i < inside else i + outside - inside
        k = at + p
        k = k + n if k < 0 else k - n if k >= n else k
        if k < 0 or k >= n:
            k = k % n
        out[p] = near[k - start] if start <= k < stop else far[k - far_start]


@jit
def inverse(
    lengths, left, right, step, tiles, scratch, rows, details, approximation, function, thresholds, shift,
    even_taps, odd_taps, begin, end,
):  # fmt: skip
    """Fused levels of tiles ``begin`` to ``end``, counted through all rows, with the details shrunk on load.

    Addresses as in `forward`; ``thresholds`` (levels, rows) in float64; ``shift`` is coefficient 0's output sample.
    """
    depth, size = len(lengths) - 1, even_taps.itemsize
    phases = len(even_taps) // 2
    group = GROUP_BYTES // size
    stride = BLOCK + phases + group + 80
    work = np.zeros(2 * stride + 2 * group, even_taps.dtype)  # as in `forward`
    smooth, shrunk, joined = work[:stride], work[stride : 2 * stride], work[2 * stride :]
    levels = np.empty((2, 2, scratch + 80), even_taps.dtype)
    highest = np.finfo(even_taps.dtype).max
    ranges = np.empty((2, depth + 1, 2), np.int64)
    for job in range(begin, end):
        row, tile = job // tiles, job % tiles
        own = _pieces(tile, left, right, step, lengths[depth])
        for piece in range(2):
            start, stop = own[piece][0] << depth, own[piece][1] << depth
            if own[piece][1] == lengths[depth]:
                stop = lengths[0]
            ranges[piece, 0, 0], ranges[piece, 0, 1] = start, stop
            for j in range(1, depth + 1):
                start = max((start - shift) // 2, 0)
                stop = min((stop - shift + 1) // 2 + phases - 1, lengths[j])
                ranges[piece, j, 0], ranges[piece, j, 1] = start, stop
        for j in range(depth, 0, -1):
            n, m = lengths[j - 1], lengths[j]
            detail = view(details[j - 1] + row * m * size, m, even_taps)
            for piece in range(2):
                if own[piece][0] >= own[piece][1]:
                    continue
                start, stop = ranges[piece, j - 1, 0], ranges[piece, j - 1, 1]
                if j == depth:
                    near, near_start, near_stop = view(approximation + row * m * size, m, even_taps), 0, m
                    far, far_start = near, 0
                else:
                    near, near_start, near_stop = levels[piece, j & 1], ranges[piece, j, 0], ranges[piece, j, 1]
                    far, far_start = levels[1 - piece, j & 1], ranges[1 - piece, j, 0]
                if j == 1:
                    target = view(rows + (row * n + start) * size, stop - start, even_taps)
                else:
                    target = levels[piece, (j + 1) & 1][: stop - start]
                at, last = (start - shift) // 2, (stop - shift + 1) // 2
                while at < last:
                    count = min(BLOCK, last - at)
                    window = count + phases - 1
                    reach = -(-count // group) * group + phases - 1
                    if at >= near_start and at + reach <= near_stop:
                        a, a_at = near, at - near_start
                    else:
                        a, a_at = smooth, 0
                        _gather(smooth, at, window, near, near_start, near_stop, far, far_start, m)
                    if at >= 0 and at + reach <= m:
                        d, d_at = detail, at
                    else:
                        d, d_at = shrunk, 0
                        _gather(shrunk, at, window, detail, 0, m, detail, 0, m)
                    if function != KEEP:
                        t = even_taps.dtype.type(min(thresholds[j - 1, row], highest))
                        _shrink(d[d_at : d_at + window], shrunk[:window], function, t)
                        d, d_at = shrunk, 0
                    for p in range(0, count, group):
                        to = 2 * (at + p) + shift - start
                        if to >= 0 and p + group <= count and to + 2 * group <= len(target):
                            synthesise(a, a_at + p, d, d_at + p, 1, even_taps, odd_taps, target, to, target, to)
                        else:
                            synthesise(a, a_at + p, d, d_at + p, 1, even_taps, odd_taps, joined, 0, joined, 0)
                            for i in range(max(-to, 0), min(2 * min(group, count - p), len(target) - to)):
                                target[to + i] = joined[i]
                    at += count


@jit
def peak(address, count, sign_off):
    """Largest magnitude among ``count`` elements, as bits: those of a NaN exceed infinity's, and these all others."""
    bits = view(address, count, sign_off)
    highest = sign_off[0] & 0
    for i in range(count):
        highest = max(highest, bits[i] & sign_off[0])
    return highest
