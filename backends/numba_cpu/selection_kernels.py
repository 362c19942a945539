"""Medians and sums of squares of details: the loops of `selection`."""

from __future__ import annotations

import numpy as np

from wavefilt.arrays import Array

from .compiler import part
from .selection import SAMPLED, STEP
from .target import VECTOR_BYTES
from .vector import greater, lesser, list_inside, tail, view


def _squares(x: Array, count: int) -> float:
    total = 0.0
    for i in range(count):
        value = np.float64(x[i])
        total += value * value
    return total


_sum_squares = part(_squares, fastmath={"reassoc", "contract", "nsz"})


@part
def _list_inside(bits, begin, end, sign_off, low, high, listed, k):
    """Append magnitudes within [low, high] to ``listed`` from k on; their number, and how many lie below."""
    below, lanes, i = 0, VECTOR_BYTES // bits.itemsize, begin
    while i + lanes <= end:
        inside, less = list_inside(bits, i, sign_off, low, high, listed, k)
        k += inside
        below += less
        i += lanes
    for rest in range(i, end):
        u = bits[rest] & sign_off
        below += u < low
        listed[k] = u
        k += (u >= low) & (u <= high)
    return k, below


@part
def _middle(a, n, k, both, all_bits):
    """The k-th smallest of a[:n], k from 0, and if ``both`` the next, else the same; overwrites a.

    Each turn keeps what lies on the k-th value's side of a pivot, the middle one of three values from places that
    look random: of fixed places, data that rises and falls once has the smallest values at every turn.
    """
    ceiling = all_bits  # the smallest value dropped from above
    place = 1
    while True:
        place = (place * 1103515245 + 12345) & 0x7FFFFFFF
        x, y, z = a[place % n], a[(place >> 5) % n], a[(place >> 10) % n]
        pivot = max(min(x, y), min(max(x, y), z))
        less, equal = 0, 0
        for i in range(n):
            less += a[i] < pivot
            equal += a[i] == pivot
        if k < less:
            ceiling = pivot
            n, _ = _list_inside(a, 0, n, all_bits, a.dtype.type(0), a.dtype.type(pivot - 1), a, 0)
        elif k >= less + equal:
            k -= less + equal
            n, _ = _list_inside(a, 0, n, all_bits, a.dtype.type(pivot + 1), all_bits, a, 0)
        else:
            if not both or k + 1 < less + equal:
                return pivot, pivot
            for i in range(n):
                if pivot < a[i] < ceiling:
                    ceiling = a[i]
            return pivot, ceiling


@part
def short_rows(tasks, sign_off, floats, medians, powers, workspace, begin, end):
    """Median magnitude and mean square of rows ``begin`` to ``end``, counted through all levels of each trace.

    ``tasks`` has for each level its place among ``medians`` and ``powers``, its address, the length of its rows and
    how many bytes lie from one to the next; the workspace has two elements more than the longest row.
    """
    middle = view(workspace, 2, floats)  # the first two elements listed
    all_bits, levels = sign_off[0], len(tasks)
    one = np.bool_(False)  # numba compiles a function for a constant in its source apart
    for job in range(begin, end):
        row, task = job // levels, job % levels
        place, m = tasks[task, 0], tasks[task, 2]
        listed = view(workspace, m + 2, sign_off)
        address = tasks[task, 1] + row * tasks[task, 3]
        powers[place, row] = _sum_squares(view(address, m, floats), m) / m
        bits = view(address, m, sign_off)
        low, high = (m - 1) // 2, m // 2
        count, below = 0, 0
        if m > SAMPLED:
            stride = np.int64(m ** (1 / 3))  # m^(2/3) samples (Floyd and Rivest 1975)
            drawn = m // stride
            margin = np.int64(1.5 * np.sqrt(drawn)) + 1
            for i in range(drawn):
                listed[i] = bits[i * stride] & all_bits
            bottom, _ = _middle(listed, drawn, greater(drawn // 2 - margin, 0), one, all_bits)
            for i in range(drawn):
                listed[i] = bits[i * stride] & all_bits
            top, _ = _middle(listed, drawn, lesser(drawn // 2 + margin, drawn - 1), one, all_bits)
            count, below = _list_inside(bits, 0, m, all_bits, bottom, top, listed, 0)
        if not below <= low <= high < below + count:
            below, count = 0, m
            for i in range(m):
                listed[i] = bits[i] & all_bits
        listed[0], listed[1] = _middle(listed, count, low - below, high > low, all_bits)
        medians[place, row] = (np.float64(middle[0]) + np.float64(middle[1])) / 2


@part
def long_chunks(
    addresses, lengths, sign_off, floats, low, high, listed, inside, below, squares, workspace, begin, end
):  # fmt: skip
    """For chunks ``begin`` to ``end``: sum of squares, magnitudes below the bracket, and those inside listed.

    A chunk with more inside than its row of ``listed`` holds goes on counting them without listing.
    """
    spill = view(workspace, STEP + 1, sign_off)
    for chunk in range(begin, end):
        m = lengths[chunk]
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
def order_statistics(listed, n, k, both, all_bits, found, workspace, begin, end):
    """`_middle` for Python."""
    found[0], found[1] = _middle(listed, n, k, both != 0, all_bits)


@part
def tabulate(bits, all_bits, low, high, shift, table, workspace, begin, end):
    """Count magnitudes from low to high by their bits above the last ``shift``."""
    for i in range(begin, end):
        u = bits[i] & all_bits
        if low <= u <= high:
            table[(u - low) >> shift] += 1


tabulate_few = tabulate
"""The kernel for fewer than 2^32 magnitudes, whose table has half the size."""


def _differences(x: Array, y: Array, scale: float, begin: int, end: int) -> tuple[float, float]:
    change, before = 0.0, 0.0
    for i in range(begin, end):
        wide = np.float64(x[i]) * scale
        less = wide - np.float64(y[i]) * scale
        before += wide * wide
        change += less * less
    return change, before


_sum_differences = part(_differences, fastmath={"reassoc", "contract", "nsz"})


@part
def energies(x, y, scale, sums, workspace, begin, end):
    """Σ (x - y)² and Σ x² of elements times a scale."""
    sums[0], sums[1] = _sum_differences(x, y, scale, begin, end)
