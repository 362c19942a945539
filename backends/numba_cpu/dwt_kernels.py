"""Forward and inverse transform of ranges of tiles, several levels at a time."""

from __future__ import annotations

import numpy as np

from wavefilt.thresholding.shrinkage import FIRM_RATIO
from wavefilt.wavelets import boundary

from .adapter import part
from .dwt import BLOCK, PADDING
from .launching import GARROTE, HARD, KEEP, SOFT
from .native import GROUP_BYTES, HALF, VECTOR_BYTES
from .vector import (
    analyse,
    analyse_past,
    analyse_some,
    clear,
    copy,
    greater,
    largest,
    lesser,
    split,
    synthesise,
    synthesise_past,
    synthesise_some,
    tail,
    view,
)

extension = part(boundary.extension)


@part
def tabulate(table, n, reach, mode):
    """Tabulate samples -reach to 0 and n - 1 to n - 1 + reach of an extended row of n: three places with factors."""
    for i in range(2 * (reach + 1)):
        at = i - reach if i <= reach else n + i - reach - 2
        own = tail(table, 6 * i)
        own[0], own[1], own[2], own[3], own[4], own[5] = extension(mode, at, n)


@part
def _outside(table, entry, near, start, stop, far, far_start):
    """Return a sample outside; numba does not test whether unsigned indices are negative."""
    total, own = 0.0, tail(table, 6 * entry)  # float64: extrapolation over many samples loses digits
    for term in range(0, 2 if own[3] | own[5] == 0 else 6, 2):
        j, factor = own[np.uint64(term)], own[np.uint64(term + 1)]
        k = np.uint64(j - start)
        if factor != 0:
            total += factor * np.float64(near[k] if k < np.uint64(stop - start) else far[np.uint64(j - far_start)])
    return total


@part
def split_row(even, odd, first, pairs, near, start, stop, far, far_start, n, table):
    """Copy samples first + 2p and first + 2p + 1 of an extended row of n samples to even[p] and odd[p].

    Two pieces of the row are in memory: near, which holds [start, stop), and far, with the rest that is needed.
    ``table`` is made by `tabulate`.
    """
    inside = lesser(greater((start - first + 1) // 2, 0), pairs)
    outside = lesser(greater((stop - first) // 2, inside), pairs)
    split(tail(near, first - start + 2 * inside), outside - inside, tail(even, inside), tail(odd, inside))
    reach = len(table) // 12 - 1
    for side in range(2):
        entry = first + reach if side == 0 else first + reach + 2 - n
        for p in range(0 if side == 0 else outside, inside if side == 0 else pairs):
            at = entry + 2 * p
            even[np.uint64(p)] = _outside(table, at, near, start, stop, far, far_start)
            odd[np.uint64(p)] = _outside(table, at + 1, near, start, stop, far, far_start)


@part
def _own(piece, tile, left, right, step, end):
    """Return one of the two pieces of a tile, as a range of the deepest level: see `dwt.plan`."""
    if tile == 0:
        return (0, left) if piece == 0 and left > 0 else (right, end)
    return (0, 0) if piece == 0 else (left + (tile - 1) * step, lesser(left + tile * step, right))


@part
def peak(address, sign_off, workspace, begin, end):
    """Return the largest magnitude of some elements, as bits: a NaN is above infinity, and that above all others.

    A run of 2 ``sign_off[1]`` equal magnitudes or more counts as a NaN: two elements are probed in each.
    """
    bits = view(address + begin * sign_off.itemsize, end - begin, sign_off)
    highest, n, step = sign_off[0] & 0, end - begin, sign_off[1]
    for i in range(n):
        highest = max(highest, bits[i] & sign_off[0])
    i = step
    while i < n:
        if (bits[i] ^ bits[i - step]) & sign_off[0] == 0:
            first, last = i, i
            while first > 0 and (bits[i] ^ bits[first - 1]) & sign_off[0] == 0 and last - first < 2 * step:
                first -= 1
            while last + 1 < n and (bits[i] ^ bits[last + 1]) & sign_off[0] == 0 and last - first < 2 * step:
                last += 1
            if last - first + 1 >= 2 * step:
                return sign_off[0]
        i += step
    return highest


@part
def analyse_all(u, u_at, v, v_at, step, count, lo, hi, s, s_at, r, r_at):
    """Compute `vector.analyse` of ``count`` places: whole groups where they fit, and halves of groups for the rest."""
    p, group, half = 0, GROUP_BYTES // lo.itemsize, HALF // lo.itemsize
    while p + group <= count:
        analyse(u, u_at + p, v, v_at + p, step, lo, hi, s, s_at + p, r, r_at + p)
        p += group
    while p < count:
        analyse_some(u, u_at + p, v, v_at + p, step, lo, hi, s, s_at + p, r, r_at + p, 0, count - p)
        p += half


@part
def forward(cut, places, first, mode, past, bank, workspace, begin, end):
    """Transform tiles ``begin`` to ``end``, counted through all rows, through several levels.

        samples  -> split_row -> even, odd -> analyse -> approximation: in the workspace, at the last level the result
                                                      -> details: stored, for the tile's own range alone

    ``cut`` and the workspace are those of `dwt.plan`; ``places`` are addresses of C-contiguous (rows, length) arrays,
    details finest first; ``first`` is the input of coefficient 0 (`boundary.first_input`), and ``bank`` has the
    reversed filters. Details of ``past`` coefficients or more are stored past the caches.
    """
    lengths, left, right, step, tiles, scratch = cut
    rows, details, approximation = places
    lo, hi = bank
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
    unused = view(blocks + 2 * stride * size, stride, lo)
    levels = blocks + 4 * stride * size  # two buffers for each piece
    tables, words = levels + 4 * pitch * size, 12 * (taps + 1)
    for j in range(depth):
        tabulate(view(tables + 8 * j * words, words, lengths), lengths[j], taps, mode)
    # rows of one tile go in pairs, one while the other waits for its last level; one at a time takes 1.4 times as long
    together = 2 if tiles == 1 else 1
    for job in range(begin, end, together):
        tile = job % tiles
        for piece in range(2 if tiles > 1 or job == begin else 0):
            start, stop = _own(piece, tile, left, right, step, lengths[depth])
            place = piece * (depth + 1) + depth
            starts[place], stops[place] = start, stop
            for j in range(depth, 0, -1):
                start, stop = greater(2 * start + first, 0), lesser(2 * stop + first + taps - 2, lengths[j - 1])
                place -= 1
                starts[place], stops[place] = start, stop
        for j in range(1, depth + 1):
            n, m = lengths[j - 1], lengths[j]
            table = view(tables + 8 * (j - 1) * words, words, lengths)
            for piece in range(2):
                place, other = piece * (depth + 1) + j, (1 - piece) * (depth + 1) + j
                start, stop = starts[place], stops[place]
                own_start, own_stop = _own(piece, tile, left, right, step, lengths[depth])
                row = job // tiles + piece if together > 1 else job // tiles
                if own_start >= own_stop or row * tiles >= end:
                    continue
                detail = view(details[j - 1] + row * m * size, m, lo)
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
                        near, near_start, near_stop, far, far_start, n, table,
                    )  # fmt: skip
                    own = own_start <= at < own_stop
                    high, high_at = (detail, at) if own else (unused, 0)
                    p = 0
                    if own and m >= past and (details[j - 1] + (row * m + at) * size) % VECTOR_BYTES == 0:
                        while p + group <= count:
                            analyse_past(even, p, odd, p, 1, lo, hi, target, at - start + p, high, high_at + p)
                            p += group
                    analyse_all(even, p, odd, p, 1, count - p, lo, hi, target, at - start + p, high, high_at + p)
                    at = to


@part
def shrink(d, count, out, function, t):
    """Apply the formulas of `wavefilt.thresholding.shrinkage`, in the data's dtype, to ``count`` details."""
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
def gather(out, at, count, near, start, stop, far, far_start, n):
    """Copy coefficients ``at`` to ``at + count`` of a periodic row of n, from two pieces as in `split_row`."""
    inside = lesser(greater(start - at, 0), count)
    outside = lesser(greater(stop - at, inside), count)
    copy(tail(near, at + inside - start), outside - inside, tail(out, inside))
    for i in range(count - (outside - inside)):
        p = i if i < inside else i + outside - inside
        k = at + p
        k = k + n if k < 0 else k - n if k >= n else k
        if k < 0 or k >= n:
            k = k % n
        out[p] = near[k - start] if start <= k < stop else far[k - far_start]


@part
def inverse(cut, places, function, thresholds, shift, past, bank, workspace, begin, end):
    """Reconstruct tiles ``begin`` to ``end``, counted through all rows, through several levels; shrink on load.

    ``cut`` and ``places`` as in `forward`; ``thresholds`` (levels, rows) in float64; ``shift`` is coefficient 0's
    output sample. Rows of ``past`` samples or more are stored past the caches.
    """
    lengths, left, right, step, tiles, scratch = cut
    rows, details, approximation = places
    even_taps, odd_taps = bank
    depth, size = len(lengths) - 1, even_taps.itemsize
    phases, group, half = len(even_taps) // 2, GROUP_BYTES // size, HALF // size
    pitch, stride = scratch + PADDING, BLOCK + phases + group + PADDING
    starts, stops = (
        view(workspace, 2 * (depth + 1), lengths),
        view(workspace + 16 * (depth + 1), 2 * (depth + 1), lengths),
    )
    blocks = workspace + 32 * (depth + 1)
    clear(view(blocks, 3 * stride, even_taps))
    smooth, shrunk = view(blocks, stride, even_taps), view(blocks + stride * size, stride, even_taps)
    gathered = view(blocks + 2 * stride * size, stride, even_taps)
    levels = blocks + 4 * stride * size  # as in `forward`
    for j in range(1, depth if tiles == 1 else 0):  # they are read in whole groups
        for piece in range(2):
            clear(view(levels + ((2 * piece + (j & 1)) * pitch + lengths[j]) * size, PADDING, even_taps))
    origin = np.int64(0)  # numba compiles a function for a number in its source apart
    together = 2 if tiles == 1 else 1  # as in `forward`
    for job in range(begin, end, together):
        tile = job % tiles
        for piece in range(2 if tiles > 1 or job == begin else 0):
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
            for piece in range(2):
                own_start, own_stop = _own(piece, tile, left, right, step, lengths[depth])
                row = job // tiles + piece if together > 1 else job // tiles
                if own_start >= own_stop or row * tiles >= end:
                    continue
                detail = view(details[j - 1] + row * m * size, m, even_taps)
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
                    window, reach = count + phases - 1, -(-count // half) * half + phases - 1
                    if at >= near_start and at + (window if tiles == 1 and j < depth else reach) <= near_stop:
                        a, a_at = near, at - near_start
                    else:
                        a, a_at = smooth, 0
                        gather(smooth, at, window, near, near_start, near_stop, far, far_start, m)
                    if at >= 0 and at + reach <= m:
                        d, d_at = detail, at
                    else:
                        d, d_at = gathered, 0
                        gather(gathered, at, window, detail, origin, m, detail, origin, m)
                        window = -(-window // half) * half  # the elements beyond are finite
                    if function != KEEP:
                        shrink(tail(d, d_at), window, shrunk, function, t)
                        d, d_at = shrunk, 0
                    p = 0
                    while p < count:
                        to = 2 * (at + p) + shift - start
                        if to >= 0 and p + group <= count and to + 2 * group <= len(target):
                            if j == 1 and n >= past and (rows + (row * n + start + to) * size) % VECTOR_BYTES == 0:
                                synthesise_past(
                                    a, a_at + p, d, d_at + p, 1, even_taps, odd_taps, target, to, target, to
                                )
                            else:
                                synthesise(a, a_at + p, d, d_at + p, 1, even_taps, odd_taps, target, to, target, to)
                            p += group
                        else:
                            upto = lesser(2 * (count - p), len(target) - to)
                            synthesise_some(
                                a, a_at + p, d, d_at + p, 1, even_taps, odd_taps, target, to, target, to, -to, upto
                            )
                            p += half
                    at += count
