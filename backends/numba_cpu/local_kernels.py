"""Local James-Stein shrinkage, compiled: see `local`.

Sums are added in the same order wherever a coefficient lies, so that results do not depend on tiles or threads.
"""

from __future__ import annotations

import numpy as np

from wavefilt.thresholding.local import OWN, ROUNDING

from . import local
from .adapter import part
from .vector import clear, combine, copy, greater, lesser, split, tail, view


@part
def square(source, parts, scale, count, out):
    """Store |W scale|² of ``count`` coefficients of one part or two, limited so that sums of 16 are finite."""
    most = out.dtype.type(np.finfo(out.dtype).max / 16)
    if parts == 1:
        for p in range(count):
            value = source[p] * scale
            power = value * value
            out[p] = power if power < most else most
    else:
        for p in range(count):
            real, imaginary = source[2 * p] * scale, source[2 * p + 1] * scale
            power = real * real + imaginary * imaginary
            out[p] = power if power < most else most


@part
def multiply(source, parts, gains, count, target):
    """Multiply ``count`` coefficients by their gains."""
    if parts == 1:
        for p in range(count):
            target[p] = source[p] * gains[p]
    else:
        for p in range(count):
            target[2 * p], target[2 * p + 1] = source[2 * p] * gains[p], source[2 * p + 1] * gains[p]


@part
def _energy(source, parts, scale, lo, hi, band, weights, out, squares):
    """Average |W scale|² around the coefficients ``lo`` to ``hi``, which may lie beyond the ends of the row.

    ``source`` and ``out`` are addresses; whole groups of ``out`` are written. The last of the ``weights`` is 0.
    """
    count, spacing, half, periodic = band[local.COUNT], band[local.SPACING], band[local.HALF], band[local.PERIODIC] != 0
    first, last = (lo, hi) if periodic else (greater(lo, 0), lesser(hi, count))
    reach, size = half * spacing, weights.itemsize
    begin, length = first - reach, last - first + 2 * reach + spacing
    before = lesser(greater(-begin, 0), length)
    inside = greater(length - greater(begin + length - count, 0) - before, 0)
    own = view(source + (begin + before) * parts * size, inside * parts, weights)
    square(own, parts, scale, inside, tail(squares, before))
    for q in range(length - inside):
        p = q if q < before else q + inside
        squares[p] = squares.dtype.type(0)
        if periodic:
            other = view(source + (begin + p) % count * parts * size, parts, weights)
            square(other, parts, scale, 1, tail(squares, p))
    means = view(out, hi - lo, weights)
    for p in range(0, last - first, local.MEANS // size):
        combine(squares, p, squares, p + spacing, 2 * spacing, weights, means, first - lo + p)
    if not periodic:
        left = greater(lesser(reach, last), first)  # before this, neighbours lie before the row
        right = greater(count - reach, left)
        for q in range(left - first + greater(last - right, 0)):
            k = first + q if q < left - first else right + q - (left - first)
            there = weights[half]
            for m in range(1, lesser(half, k // spacing) + 1):
                there += weights[half + m]
            for m in range(1, lesser(half, (count - 1 - k) // spacing) + 1):
                there += weights[half + m]
            means[k - lo] /= there
        for p in range(first - lo):
            means[p] = means[first - lo]
        for p in range(last - lo, hi - lo):
            means[p] = means[last - 1 - lo]


@part
def _add(total, count, energy, links, link, start, even, odd):
    """Add the energies of a neighbouring band at the places of the own ones.

    Its coefficient 0 has the energy at the address ``energy``; ``even`` and ``odd`` are memory to work in.
    """
    half, size, step = total.dtype.type(0.5), total.itemsize, links[link, 0]
    a, b, c, d = links[link, 1], links[link, 2], links[link, 3], links[link, 4]
    if step == local.SAME:
        low, high = view(energy + (start + a) * size, count, total), view(energy + (start + b) * size, count, total)
        for p in range(count):
            total[p] += half * (low[p] + high[p])
    elif step == local.FINER:  # b is a + 1
        pairs = view(energy + (2 * start + a) * size, 2 * count, total)
        split(pairs, count, even, odd)
        for p in range(count):
            total[p] += half * (even[p] + odd[p])
    else:  # the first of the own ones is even
        middle = energy + start // 2 * size
        low, high = view(middle + a * size, count, total), view(middle + b * size, count, total)
        for p in range((count + 1) // 2):
            even[p] = half * (low[p] + high[p])
        low, high = view(middle + c * size, count, total), view(middle + d * size, count, total)
        for p in range(count // 2):
            odd[p] = half * (low[p] + high[p])
        for p in range(count // 2):
            total[2 * p] += even[p]
            total[2 * p + 1] += odd[p]
        if count % 2:
            total[count - 1] += even[count // 2]


@part
def _shrink_row(source, parts, target, around, count, number):
    """Multiply ``count`` coefficients by max(0, 1 - number/around), which is left in ``around``."""
    one, zero = around.dtype.type(1), around.dtype.type(0)
    for p in range(count):
        gain = one - number / around[p]
        around[p] = gain if gain > zero else zero
    multiply(source, parts, around, count, target)


@part
def _scale(source, factor, target):
    factor = target.dtype.type(factor)
    for p in range(len(source)):
        target[p] = factor * source[p]


@part
def shrink_rows(plan, parts, sources, targets, thresholds, weights, workspace, begin, end):
    """Shrink tiles ``begin`` to ``end``, counted through all rows.

    ``plan`` is a `local.Plan`; ``sources`` and ``targets`` are addresses of C-contiguous (rows, count) arrays of
    coefficients of one or two ``parts``, ``thresholds`` (bands, rows) in float64 limit |W|, and ``weights`` belong to
    the means.
    """
    bands, links, places, tiles, longest, needed = plan
    depth, size = len(bands), weights.itemsize
    clear(view(workspace, 4 * longest + needed, weights))
    squares, total = view(workspace, longest, weights), view(workspace + longest * size, longest, weights)
    even, odd = (
        view(workspace + 2 * longest * size, longest, weights),
        view(workspace + 3 * longest * size, longest, weights),
    )
    energies, highest = workspace + 4 * longest * size, np.finfo(weights.dtype).max
    rounding = ROUNDING * np.finfo(weights.dtype).eps
    for job in range(begin, end):
        row, tile = job // tiles, job % tiles
        at, least = energies, 0.0
        for i in range(depth):
            least = max(least, rounding * thresholds[i, row])
        for i in range(depth):
            lo, hi = places[tile, 4 * i + 2], places[tile, 4 * i + 3]
            if thresholds[i, row] > least:
                scale = 1 / thresholds[i, row]
                scale = weights.dtype.type(scale if scale < highest else highest)
                source = sources[i] + row * bands[i, local.COUNT] * parts * size
                _energy(source, parts, scale, lo, hi, bands[i], weights, at, squares)
            at += (hi - lo) * size
        at = before = energies
        for i in range(depth):
            start, count = places[tile, 4 * i], places[tile, 4 * i + 1] - places[tile, 4 * i]
            lo, hi = places[tile, 4 * i + 2], places[tile, 4 * i + 3]
            first, width = (row * bands[i, local.COUNT] + start) * parts * size, count * parts
            source, target = view(sources[i] + first, width, weights), view(targets[i] + first, width, weights)
            after = at + (hi - lo) * size
            if thresholds[i, row] > least:
                number = OWN
                _scale(view(at + (start - lo) * size, count, weights), OWN, total)
                if i > 0 and thresholds[i - 1, row] > least:
                    beyond = places[tile, 4 * i - 2] * size
                    _add(total, count, before - beyond, links, 2 * i, start, even, odd)
                    number += 1
                if i < depth - 1 and thresholds[i + 1, row] > least:
                    beyond = places[tile, 4 * i + 6] * size
                    _add(total, count, after - beyond, links, 2 * i + 1, start, even, odd)
                    number += 1
                _shrink_row(source, parts, target, total, count, weights.dtype.type(number))
            else:
                copy(source, width, target)
            before, at = at, after


@part
def _neighbour(i, count, periodic):
    """Return the place in the band for a place beyond its ends: reflected, or periodic."""
    if periodic:
        return i % count
    return -1 - i if i < 0 else 2 * count - 1 - i if i >= count else i


@part
def _shrink_section_row(source, target, parts, above, own, below, total, gains, periodic):
    """Shrink a row by the sums of nine squares around each coefficient."""
    count, one, zero = len(own), total.dtype.type(1), total.dtype.type(0)
    number = total.dtype.type(9 * parts)
    for p in range(count):
        total[p + 1] = above[p] + own[p] + below[p]
    total[0] = total[count] if periodic else total[1]
    total[count + 1] = total[1] if periodic else total[count]
    for p in range(count):
        gain = one - number / (total[p] + total[p + 1] + total[p + 2])
        gains[p] = gain if gain > zero else zero
    multiply(source, parts, gains, count, target)


@part
def shrink_sections(bands, parts, longest, thresholds, floats, workspace, begin, end):
    """Shrink strips of rows, counted through all sections and bands, ``begin`` to ``end``.

    ``bands`` (bands, 9) have the fields of `local`, ``thresholds`` (bands, sections) are in float64, ``floats``
    tells the dtype, and a row of coefficients has ``longest`` at most.
    """
    size, highest = floats.itemsize, np.finfo(floats.dtype).max
    for job in range(begin, end):
        i = 0
        while i + 1 < len(bands) and job >= bands[i + 1, local.FIRST]:
            i += 1
        rows, columns, strips = bands[i, local.ROWS], bands[i, local.COLUMNS], bands[i, local.STRIPS]
        section, top = (
            (job - bands[i, local.FIRST]) // strips,
            (job - bands[i, local.FIRST]) % strips * bands[i, local.STRIP],
        )
        bottom, width = lesser(top + bands[i, local.STRIP], rows), columns * parts
        source = bands[i, local.SOURCE] + section * rows * width * size
        target = bands[i, local.TARGET] + section * rows * width * size
        if thresholds[i, section] > 0:
            scale = 1 / thresholds[i, section]
            scale = floats.dtype.type(scale if scale < highest else highest)
            total, gains = view(workspace, columns + 2, floats), view(workspace + (longest + 2) * size, columns, floats)
            squares = workspace + (2 * longest + 2) * size
            for r in range(top - 1, bottom + 1):
                place = _neighbour(r, rows, bands[i, local.DOWN] != 0)
                row = view(source + place * width * size, width, floats)
                square(row, parts, scale, columns, view(squares + (r + 3) % 3 * longest * size, columns, floats))
                if r > top:
                    above, own, below = (
                        view(squares + (r + 1) % 3 * longest * size, columns, floats),
                        view(squares + (r + 2) % 3 * longest * size, columns, floats),
                        view(squares + (r + 3) % 3 * longest * size, columns, floats),
                    )
                    at = (r - 1) * width * size
                    before, after = view(source + at, width, floats), view(target + at, width, floats)
                    _shrink_section_row(
                        before, after, parts, above, own, below, total, gains, bands[i, local.ACROSS] != 0
                    )
        else:
            before = view(source + top * width * size, (bottom - top) * width, floats)
            after = view(target + top * width * size, (bottom - top) * width, floats)
            copy(before, (bottom - top) * width, after)
