"""Forward and inverse transform of ranges of tiles, several levels at a time."""

from __future__ import annotations

import numpy as np

from wavefilt.backends.numba_cpu.compiler import part
from wavefilt.backends.numba_cpu.launching import GARROTE, HARD, KEEP, SOFT
from wavefilt.backends.numba_cpu.target import GROUP_BYTES, VECTOR_BYTES
from wavefilt.backends.numba_cpu.vector import (
    analyse,
    greater,
    largest,
    lesser,
    split,
    synthesise,
    synthesise_past,
    tail,
    view,
)
from wavefilt.thresholding.shrinkage import FIRM_RATIO
from wavefilt.wavelets import boundary
from wavefilt.wavelets.boundary import ANTIREFLECT, SMOOTH

from .plan import BLOCK, PADDING

extension = part(boundary.extension)


@part
def tabulate(table, n, count, mode):
    """For sample -1 - i of an extended row of n the only sample it is made of, and the factor, and for sample n + i.

    ``count`` of each, four numbers for a pair. Raises no table of the modes that extrapolate: of length 0 it is none.
    """
    for i in range(2 * count):
        j, a, _, _, _, _ = extension(mode, n + i // 2 if i % 2 else -1 - i // 2, n)
        table[2 * i], table[2 * i + 1] = j, a


@part
def split_row(even, odd, first, pairs, near, start, stop, far, far_start, n, mode, table):
    """Samples first + 2p and first + 2p + 1 of an extended row of n samples into even[p] and odd[p].

    Two pieces of the row are at hand: near, which holds [start, stop), and far, which holds the rest that is needed.
    ``table`` is that of `tabulate`, or of length 0.
    """
    lanes = VECTOR_BYTES // near.itemsize
    inside = lesser(greater((start - first + 1) // 2, 0), pairs)
    outside = lesser(greater((stop - first) // 2, inside), pairs)
    source = first - start
    p = inside
    while p + lanes <= outside:
        split(near, source + 2 * p, even, p, odd, p)
        p += lanes
    for rest in range(p, outside):
        even[rest] = near[source + 2 * rest]
        odd[rest] = near[source + 2 * rest + 1]
    beyond = 2 * (pairs - outside + inside)
    if len(table) > 0:
        for i in range(beyond):
            place = i if i < 2 * inside else i + 2 * (outside - inside)
            at = first + place
            entry = -4 * (at + 1) if at < 0 else 4 * (at - n) + 2
            j, a, value = at, np.int64(1), near.dtype.type(0)
            if at < 0 or at >= n:
                j, a = table[entry], table[entry + 1]
            if a != 0:
                value = near[j - start] if start <= j < stop else far[j - far_start]
            if a < 0:
                value = -value
            if place % 2:
                odd[place // 2] = value
            else:
                even[place // 2] = value
        return
    for i in range(beyond):
        place = i if i < 2 * inside else i + 2 * (outside - inside)
        j, a, k, b, l, c = extension(mode, first + place, n)  # noqa: E741
        total = 0.0  # float64: extrapolation over many samples loses digits
        if a != 0:
            total = a * np.float64(near[j - start] if start <= j < stop else far[j - far_start])
        if b != 0:
            total += b * np.float64(near[k - start] if start <= k < stop else far[k - far_start])
        if c != 0:
            total += c * np.float64(near[l - start] if start <= l < stop else far[l - far_start])
        if place % 2:
            odd[place // 2] = total
        else:
            even[place // 2] = total


@part
def clear(elements):
    """Of the workspace: whole groups are computed, and denormals left in memory are slow."""
    for i in range(len(elements)):
        elements[i] = 0


@part
def _own(piece, tile, left, right, step, end):
    """One of the two pieces of a tile, as a range of the deepest level: see `plan.launches`."""
    if tile == 0:
        return (0, left) if piece == 0 else (right, end)
    return (0, 0) if piece == 0 else (left + (tile - 1) * step, lesser(left + tile * step, right))


@part
def forward(
    lengths, left, right, step, tiles, scratch, rows, details, approximation, first, mode, lo, hi,
    workspace, begin, end,
):  # fmt: skip
    """Fused levels of tiles ``begin`` to ``end``, counted through all rows.

    ``rows``, ``details`` (finest first) and ``approximation`` are addresses of C-contiguous (rows, length)
    arrays, ``lo`` and ``hi`` the reversed filters, ``first`` the input of coefficient 0 (`boundary.first_input`), and
    ``workspace`` that of `plan.workspace`.
    """
    depth, taps, size = len(lengths) - 1, len(lo), lo.itemsize
    phases, group = taps // 2, GROUP_BYTES // lo.itemsize
    pitch, stride = scratch + PADDING, BLOCK + phases + group + PADDING
    starts, stops = (
        view(workspace, 2 * (depth + 1), lengths),
        view(workspace + 16 * (depth + 1), 2 * (depth + 1), lengths),
    )
    blocks = workspace + 32 * (depth + 1)
    clear(view(blocks, 4 * stride, lo))
    even, odd = view(blocks, stride, lo), view(blocks + stride * size, stride, lo)
    smooth_end, detail_end = view(blocks + 2 * stride * size, stride, lo), view(blocks + 3 * stride * size, stride, lo)
    levels = blocks + 4 * stride * size  # two buffers for each piece
    entries = 4 * taps if mode not in (SMOOTH, ANTIREFLECT) else 0
    tables = levels + 4 * pitch * size
    for j in range(depth if entries > 0 else 0):
        tabulate(view(tables + 8 * j * entries, entries, lengths), lengths[j], taps, mode)
    for job in range(begin, end):
        row, tile = job // tiles, job % tiles
        for piece in range(2):
            start, stop = _own(piece, tile, left, right, step, lengths[depth])
            place = piece * (depth + 1) + depth
            starts[place], stops[place] = start, stop
            for j in range(depth, 0, -1):
                start, stop = greater(2 * start + first, 0), lesser(2 * stop + first + taps - 2, lengths[j - 1])
                place -= 1
                starts[place], stops[place] = start, stop
        for j in range(1, depth + 1):
            n, m = lengths[j - 1], lengths[j]
            detail = view(details[j - 1] + row * m * size, m, lo)
            table = view(tables + 8 * (j - 1) * entries, entries, lengths)
            for piece in range(2):
                place, other = piece * (depth + 1) + j, (1 - piece) * (depth + 1) + j
                start, stop = starts[place], stops[place]
                own_start, own_stop = _own(piece, tile, left, right, step, lengths[depth])
                if own_start >= own_stop:
                    continue
                last = own_stop == lengths[depth]
                own_start, own_stop = own_start << (depth - j), m if last else own_stop << (depth - j)
                if j == 1:
                    near, near_start, near_stop, far_start = view(rows + row * n * size, n, lo), 0, n, 0
                    far = near
                else:
                    near = view(levels + (2 * piece + (j & 1)) * pitch * size, pitch, lo)
                    near_start, near_stop = starts[place - 1], stops[place - 1]
                    far = view(levels + (2 - 2 * piece + (j & 1)) * pitch * size, pitch, lo)
                    far_start = starts[other - 1]
                if j == depth:
                    target = view(approximation + (row * m + start) * size, stop - start, lo)
                else:
                    target = view(levels + (2 * piece + ((j + 1) & 1)) * pitch * size, pitch, lo)
                at = start
                while at < stop:
                    to = lesser(at + BLOCK, stop)
                    if at < own_start:
                        to = lesser(to, own_start)
                    elif at < own_stop:
                        to = lesser(to, own_stop)
                    count = to - at
                    split_row(
                        even, odd, 2 * at + first, count + phases - 1,
                        near, near_start, near_stop, far, far_start, n, mode, table,
                    )  # fmt: skip
                    used = own_start <= at < own_stop
                    p = 0
                    while p + group <= count:
                        if used:
                            analyse(even, p, odd, p, 1, lo, hi, target, at - start + p, detail, at + p)
                        else:
                            analyse(even, p, odd, p, 1, lo, hi, target, at - start + p, detail_end, 0)
                        p += group
                        if p < count < p + group:  # the last group once more covers some of the one before
                            p = count - group
                    if p < count:
                        analyse(even, p, odd, p, 1, lo, hi, smooth_end, 0, detail_end, 0)
                        for i in range(count - p):
                            target[at - start + p + i] = smooth_end[i]
                            if used:
                                detail[at + p + i] = detail_end[i]
                    at = to


@part
def shrink(d, count, out, function, t):
    """Formulas of `wavefilt.thresholding.shrinkage`, in the data's dtype, of ``count`` details."""
    zero, one = d.dtype.type(0), d.dtype.type(1)
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
        limit = d.dtype.type(largest(d) / FIRM_RATIO)
        high = d.dtype.type(FIRM_RATIO) * (t if t < limit else limit)
        gain = one / (one - t / high) if high > t else one
        for i in range(count):
            modulus = abs(d[i])
            kept = zero if modulus <= t else (modulus - t) * gain
            removed = zero if modulus > high else modulus - (kept if kept < modulus else modulus)
            out[i] = d[i] - np.copysign(removed, d[i])


@part
def _gather(out, at, count, near, start, stop, far, far_start, n):
    """Coefficients ``at`` to ``at + count`` of a row of n that goes round, from two pieces as in `_sample`."""
    inside = lesser(greater(start - at, 0), count)
    outside = lesser(greater(stop - at, inside), count)
    for i in range(inside, outside):
        out[i] = near[at + i - start]
    for i in range(count - (outside - inside)):
        p = i if i < inside else i + outside - inside
        k = at + p
        k = k + n if k < 0 else k - n if k >= n else k
        if k < 0 or k >= n:
            k = k % n
        out[p] = near[k - start] if start <= k < stop else far[k - far_start]


@part
def inverse(
    lengths, left, right, step, tiles, scratch, rows, details, approximation, function, thresholds, shift, past,
    even_taps, odd_taps, workspace, begin, end,
):  # fmt: skip
    """Fused levels of tiles ``begin`` to ``end``, counted through all rows, with the details shrunk on load.

    Addresses as in `forward`; ``thresholds`` (levels, rows) in float64; ``shift`` is coefficient 0's output sample.
    Rows of ``past`` samples or more are stored past the caches.
    """
    depth, size = len(lengths) - 1, even_taps.itemsize
    phases, group = len(even_taps) // 2, GROUP_BYTES // size
    pitch, stride = scratch + PADDING, BLOCK + phases + group + PADDING
    starts, stops = (
        view(workspace, 2 * (depth + 1), lengths),
        view(workspace + 16 * (depth + 1), 2 * (depth + 1), lengths),
    )
    blocks = workspace + 32 * (depth + 1)
    clear(view(blocks, 2 * stride + 2 * group, even_taps))
    smooth, shrunk = view(blocks, stride, even_taps), view(blocks + stride * size, stride, even_taps)
    joined = view(blocks + 2 * stride * size, 2 * group, even_taps)
    levels = blocks + 4 * stride * size  # as in `forward`
    origin = np.int64(0)  # numba compiles a function for a number in its source apart
    for job in range(begin, end):
        row, tile = job // tiles, job % tiles
        for piece in range(2):
            own_start, own_stop = _own(piece, tile, left, right, step, lengths[depth])
            start, stop = own_start << depth, lengths[0] if own_stop == lengths[depth] else own_stop << depth
            place = piece * (depth + 1)
            starts[place], stops[place] = start, stop
            for j in range(1, depth + 1):
                start = greater((start - shift) // 2, 0)
                stop = lesser((stop - shift + 1) // 2 + phases - 1, lengths[j])
                starts[place + j], stops[place + j] = start, stop
        for j in range(depth, 0, -1):
            n, m = lengths[j - 1], lengths[j]
            detail = view(details[j - 1] + row * m * size, m, even_taps)
            for piece in range(2):
                own_start, own_stop = _own(piece, tile, left, right, step, lengths[depth])
                if own_start >= own_stop:
                    continue
                place, other = piece * (depth + 1) + j, (1 - piece) * (depth + 1) + j
                start, stop = starts[place - 1], stops[place - 1]
                if j == depth:
                    near, near_start, near_stop = view(approximation + row * m * size, m, even_taps), 0, m
                    far, far_start = near, 0
                else:
                    near = view(levels + (2 * piece + (j & 1)) * pitch * size, pitch, even_taps)
                    near_start, near_stop = starts[place], stops[place]
                    far = view(levels + (2 - 2 * piece + (j & 1)) * pitch * size, pitch, even_taps)
                    far_start = starts[other]
                if j == 1:
                    target = view(rows + (row * n + start) * size, stop - start, even_taps)
                else:
                    target = view(levels + (2 * piece + ((j + 1) & 1)) * pitch * size, stop - start, even_taps)
                t = even_taps.dtype.type(thresholds[j - 1, row])
                at, last = (start - shift) // 2, (stop - shift + 1) // 2
                while at < last:
                    count = lesser(BLOCK, last - at)
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
                        _gather(shrunk, at, window, detail, origin, m, detail, origin, m)
                    if function != KEEP:
                        shrink(tail(d, d_at), window, shrunk, function, t)
                        d, d_at = shrunk, 0
                    p = 0
                    while p < count:
                        to = 2 * (at + p) + shift - start
                        whole = to >= 0 and p + group <= count and to + 2 * group <= len(target)
                        if (
                            whole
                            and j == 1
                            and n >= past
                            and (rows + (row * n + start + to) * size) % VECTOR_BYTES == 0
                        ):
                            synthesise_past(a, a_at + p, d, d_at + p, 1, even_taps, odd_taps, target, to, target, to)
                        elif whole:
                            synthesise(a, a_at + p, d, d_at + p, 1, even_taps, odd_taps, target, to, target, to)
                        else:
                            synthesise(a, a_at + p, d, d_at + p, 1, even_taps, odd_taps, joined, 0, joined, 0)
                            for i in range(greater(-to, 0), lesser(2 * lesser(group, count - p), len(target) - to)):
                                target[to + i] = joined[i]
                        p += group
                        if p < count < p + group and count >= group:  # as in `forward`
                            p = count - group
                    at += count


@part
def peak(address, sign_off, workspace, begin, end):
    """Largest magnitude of elements ``begin`` to ``end``, as bits: a NaN's exceed infinity's, and these all others."""
    bits = view(address + begin * sign_off.itemsize, end - begin, sign_off)
    highest = sign_off[0] & 0
    for i in range(end - begin):
        highest = max(highest, bits[i] & sign_off[0])
    return highest
