"""Medians, other quantiles and sums of squares of details, and thresholds that follow from them."""

from __future__ import annotations

import math

import numpy as np

from wavefilt.arrays import Array
from wavefilt.thresholding.rules import bayes_formula

from .adapter import part
from .native import GROUP_BYTES as RANKED
from .native import VECTOR_BYTES
from .prepared import BAYES, LINEAR
from .selection import CHUNK, FINE, LISTED, MAD, RATIOS, SAMPLED, SHORT, SPREAD, STEP
from .vector import copy, greater, lesser, list_inside, list_inside_some, ranked, ranked_few, tail, view


def _squares(x: Array, count: int) -> float:
    total = 0.0
    for i in range(count):
        value = np.float64(x[i])
        total += value * value
    return total


_sum_squares = part(_squares, fastmath={"reassoc", "contract", "nsz"})


@part
def _mean_square(x, m):
    """Return the mean square of a row of m, summed as `long_chunks` and `middles` do."""
    total, piece = 0.0, CHUNK if m > SHORT else FINE
    for begin in range(0, m, piece):
        own, end = 0.0, lesser(begin + piece, m)
        for at in range(begin, end, STEP):
            own += _sum_squares(tail(x, at), lesser(STEP, end - at))
        total += own
    return total / m


@part
def _list_inside(bits, begin, end, sign_off, low, high, listed, k):
    """Append magnitudes within [low, high] to ``listed`` from k on; return their number, and the number below."""
    below, lanes, i = 0, VECTOR_BYTES // bits.itemsize, begin
    while i + lanes <= end:
        inside, less = list_inside(bits, i, sign_off, low, high, listed, k)
        k += inside
        below += less
        i += lanes
    if i < end:
        inside, less = list_inside_some(bits, i, sign_off, low, high, listed, k, end - i)
        k += inside
        below += less
    return k, below


@part
def _middle(a, n, k, both, all_bits):
    """Return the k-th smallest of a[:n], k from 0, and if ``both`` the next, else the same; overwrites a.

    At least `RANKED` bytes of a can be read. Each turn keeps the values on the k-th value's side of a pivot, the middle
    one of three values from pseudo-random places: at fixed places, data that rises and falls once has its smallest
    values at every turn.
    """
    ceiling = all_bits  # the smallest value dropped from above
    place = 1
    few = RANKED // a.itemsize
    while n > few:
        place = (place * 1103515245 + 12345) & 0x7FFFFFFF
        x, y, z = a[place % n], a[(place >> 5) % n], a[(place >> 10) % n]
        pivot = max(min(x, y), min(max(x, y), z))
        less, equal = 0, 0
        for at in range(0, n, SHORT):
            few_less, few_equal, own = np.int32(0), np.int32(0), tail(a, at)  # more of them fit a vector than of int64
            for i in range(lesser(SHORT, n - at)):
                few_less = np.int32(few_less + (own[i] < pivot))
                few_equal = np.int32(few_equal + (own[i] == pivot))
            less += int(few_less)
            equal += int(few_equal)
        bottom, top = a.dtype.type(0), all_bits
        if k < less:
            ceiling, top = pivot, a.dtype.type(pivot - 1)
        elif k >= less + equal:
            k -= less + equal
            bottom = a.dtype.type(pivot + 1)
        else:
            if not both or k + 1 < less + equal:
                return pivot, pivot
            for i in range(n):
                if pivot < a[i] < ceiling:
                    ceiling = a[i]
            return pivot, ceiling
        n, _ = _list_inside(a, 0, n, all_bits, bottom, top, a, 0)
    found, following = ranked_few(a, n, k, all_bits) if n <= few // 2 else ranked(a, n, k, all_bits)
    return found, min(following, ceiling) if both else found


@part
def _ends(sample, n, rank, all_bits, margins, listed):
    """Return the lowest and highest magnitude of a bracket around a rank of a sample.

    It holds the magnitude of the same share of all data; ``margins`` are in units of √n ranks, and half a unit is a
    standard error. ``listed`` is other memory, with room for n and `RANKED` bytes more.
    """
    margin = np.int64(margins * np.sqrt(n)) + 1
    copy(sample, n, listed)
    bottom, _ = _middle(listed, n, greater(rank - margin, 0), np.bool_(False), all_bits)
    copy(sample, n, listed)
    top, _ = _middle(listed, n, lesser(rank + margin, n - 1), np.bool_(False), all_bits)
    return bottom, top


def _weighted(low: float, high: float, weight: float) -> float:
    if weight == 0.5:  # of medians, as NumPy has them of subnormal numbers
        return (low + high) / 2
    return (1 - weight) * low + weight * high


_between = part(_weighted, fastmath=False)  # rounded as NumPy does


@part
def short_rows(tasks, weights, sign_off, floats, quantiles, powers, workspace, begin, end):
    """Find a quantile of magnitudes and the mean square of rows ``begin`` to ``end``, counted trace by trace.

    ``tasks`` has for each level its place among ``quantiles`` and ``powers``, its address, the length of its rows, the
    bytes from one row to the next, and two ranks between which the quantile lies, by the weight of the second. The
    workspace has `RATIOS` bytes for each level, room for the longest row and `RANKED` bytes. The first guess is the
    ratio of the quantile to the root of the mean square in the rows before.
    """
    all_bits, levels, room = sign_off[0], len(tasks), RANKED // sign_off.itemsize
    octave = np.float64(1 << (23 if sign_off.itemsize == 4 else 52))  # between the bits of a number and of its double
    ratios, values = view(workspace, levels, powers), workspace + RATIOS * levels
    middle = view(values, 2, floats)  # the first two elements listed
    for task in range(levels):
        ratios[task] = 1 / MAD
    for job in range(begin, end):
        row, task = job // levels, job % levels
        place, m = tasks[task, 0], tasks[task, 2]
        listed = view(values, m + room, sign_off)
        address = tasks[task, 1] + row * tasks[task, 3]
        power = _mean_square(view(address, m, floats), m)
        powers[place, row] = power
        bits = view(address, m, sign_off)
        low, high = tasks[task, 4], tasks[task, 5]
        deviation = np.sqrt(power)
        middle[0] = deviation * ratios[task]
        guess = listed[0]
        if m > SAMPLED:
            stride = np.int64(m ** (1 / 3))  # m^(2/3) samples (Floyd and Rivest 1975)
            drawn = m // stride
            for i in range(drawn):
                listed[i] = bits[i * stride] & all_bits
            bottom, top = _ends(listed, drawn, low * drawn // m, all_bits, 1.5, tail(listed, drawn))
        else:
            width = np.int64(SPREAD / np.sqrt(m) * octave)
            bottom, top = bits.dtype.type(guess - width), bits.dtype.type(guess + width)
        count, below = _list_inside(bits, 0, m, all_bits, bottom, top, listed, 0)
        bracketed = below <= low <= high < below + count
        if not bracketed:
            count, below = _list_inside(bits, 0, m, all_bits, bits.dtype.type(0), all_bits, listed, 0)
        listed[0], listed[1] = _middle(listed, count, low - below, high > low, all_bits)
        quantile = np.float64(middle[0])
        if high > low:
            quantile = _between(quantile, np.float64(middle[1]), weights[task])
        quantiles[place, row] = quantile
        ratio = quantile / deviation
        if ratio < 2:  # neither NaN nor infinite
            ratios[task] += (ratio - ratios[task]) / 8 if bracketed else ratio - ratios[task]


@part
def draw(addresses, lengths, strides, places, sign_off, samples, workspace, begin, end):
    """Copy every ``stride``-th magnitude of chunks ``begin`` to ``end`` to their places in the samples."""
    for chunk in range(begin, end):
        bits = view(addresses[chunk], lengths[chunk], sign_off)
        at, i = places[chunk], 0
        while i < lengths[chunk]:  # a range with a step may raise
            samples[at] = bits[i] & sign_off[0]
            at += 1
            i += strides[chunk]


@part
def brackets(ends, samples, sign_off, lows, highs, workspace, begin, end):
    """Bracket the medians of pools ``begin`` to ``end`` by the samples from ``ends[pool]`` on."""
    for pool in range(begin, end):
        n = ends[pool + 1] - ends[pool]
        listed = view(workspace, n + RANKED // sign_off.itemsize, sign_off)
        lows[pool], highs[pool] = _ends(tail(samples, ends[pool]), n, n // 2, sign_off[0], 2.0, listed)


@part
def long_chunks(chunks, sign_off, floats, brackets, found, workspace, begin, end):
    """Sum the squares of chunks ``begin`` to ``end``, count magnitudes below the bracket, and list the ones inside.

    If a row of ``listed`` is full, the rest is counted without being listed.
    """
    addresses, lengths, pools = chunks
    listed, inside, below, squares = found
    spill = view(workspace, STEP + 1, sign_off)
    for chunk in range(begin, end):
        m, low, high = lengths[chunk], brackets.lows[pools[chunk]], brackets.highs[pools[chunk]]
        bits = view(addresses[chunk], m, sign_off)
        values = view(addresses[chunk], m, floats)
        squares[chunk] = 0.0
        k, beyond, smaller = 0, 0, 0
        for at in range(0, m, STEP):
            to = lesser(at + STEP, m)
            squares[chunk] += _sum_squares(tail(values, at), to - at)
            if beyond == 0 and k + STEP < listed.shape[1]:
                k, less = _list_inside(bits, at, to, sign_off[0], low, high, listed[chunk], k)
            else:
                more, less = _list_inside(bits, at, to, sign_off[0], low, high, spill, 0)
                beyond += more
            smaller += less
        inside[chunk] = k + beyond
        below[chunk] = smaller


@part
def middles(starts, table, sign_off, floats, lists, medians, powers, workspace, begin, end):
    """Find the medians of rows ``begin`` to ``end`` from the lists of their chunks, which are moved together.

    A median is NaN if it is not in the lists. ``starts`` are the first chunks of the rows, ``table`` has the length
    and place among the results of each row, ``lists`` the address of the first list and what `long_chunks` counted. The
    mean squares follow from the sums of the chunks.
    """
    listed, inside, below, squares = lists
    middle, found = view(workspace, 2, floats), view(workspace, 2, sign_off)
    for row in range(begin, end):
        first, last, size, place = starts[row], starts[row + 1], table[row, 0], table[row, 1]
        under, total, most, energy = 0, 0, 0, 0.0
        for chunk in range(first, last):
            energy += squares[chunk]
            under += below[chunk]
            total += inside[chunk]
            most = greater(most, inside[chunk])
        powers[place] = energy / size
        low, high = (size - 1) // 2 - under, size // 2 - under
        medians[place] = np.nan
        if low < 0 or high >= total or most >= LISTED - STEP:
            continue
        pieces = view(listed + first * (LISTED + 1) * sign_off.itemsize, (last - first) * (LISTED + 1), sign_off)
        at = inside[first]
        for chunk in range(1, last - first):
            source, target = tail(pieces, chunk * (LISTED + 1)), tail(pieces, at)
            for i in range(inside[first + chunk]):
                target[i] = source[i]
            at += inside[first + chunk]
        found[0], found[1] = _middle(pieces, total, low, high > low, sign_off[0])
        medians[place] = (np.float64(middle[0]) + np.float64(middle[1])) / 2


@part
def tabulate(bits, all_bits, low, high, shift, table, workspace, begin, end):
    """Count magnitudes from low to high by their bits above the last ``shift``."""
    for i in range(begin, end):
        u = bits[i] & all_bits
        if low <= u <= high:
            table[(u - low) >> shift] += 1


tabulate_few = tabulate
"""The kernel for fewer than 2^32 magnitudes, whose table has half the size."""


_greater, _smaller = part(lambda a, b: max(a, b)), part(lambda a, b: min(a, b))
_quotient, _root = part(lambda a, b: a / b), part(lambda a: math.sqrt(a))
_bayes = part(bayes_formula(_greater, _smaller, _quotient, _root), fastmath=False)  # rounded as NumPy does


@part
def choose(rows, rule, measured, factors, chosen, like, workspace, begin, end):
    """Choose thresholds (bands, rows), at most ``most``, for rows ``begin`` to ``end``; return 0, or else ``other``.

    The latter means that the thresholds of a row are all 0, or not all finite, or that the row may be dead. ``scale``
    is the factor from the medians, (bands, rows) or (1, rows) for all bands, to the noise; ``gains`` multiply it in
    each band. ``rule`` is a number of `prepared`, and ``like`` has the dtype of the samples.
    """
    samples, length = rows
    medians, powers, counts = measured
    scale, factors_of, gains = factors
    most, thresholds, other = chosen
    for row in range(begin, end):
        x = view(samples + row * length * like.itemsize, length, like)
        last = length - 1
        if x[0] == x[last] and x[0] == x[last // 2] and x[0] == x[last // 4] and x[0] == x[3 * last // 4]:
            return other
        any_removed = False
        for band in range(len(counts)):
            sigma = medians[lesser(band, len(medians) - 1), row] * scale * gains[band]
            threshold = factors_of[band]
            if rule == LINEAR:
                threshold = sigma * factors_of[band]
            elif rule == BAYES:
                power = powers[band, row]
                threshold = _bayes(power, power * counts[band], sigma) if sigma > 0 else 0.0
            if not (np.isfinite(sigma) and np.isfinite(threshold)):  # noise is NaN where a search has to go on
                return other
            any_removed |= threshold != 0
            thresholds[band, row] = min(threshold, most)
        if not any_removed:
            return other
    return 0
