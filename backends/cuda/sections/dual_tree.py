"""The dual-tree transform of sections: one level in one pass over tiles, as `columns` shows.

Along each axis, the elements of both trees lie in turn in one sequence. The first level takes one element to one
low-pass and one high-pass coefficient, all others four to two of each. High-pass coefficients of both trees are the
real and imaginary parts of complex ones, whose magnitudes rules count. Axes continue symmetrically beyond their ends at
every level. For the transform see `wavefilt.transforms.dual_tree`.

Beside the complex coefficients, as pairs of real and imaginary parts, the analysis writes their magnitudes, which rules
count. In the synthesis half of the threads compute down the columns what is low-pass along the rows, the others what is
high-pass; coefficients are multiplied by gains, which kernels compute before from the magnitudes: by a function and a
threshold, or by local James-Stein shrinkage, from the mean energy of 3 x 3 coefficients.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from wavefilt.arrays import Array
from wavefilt.backends.cuda.dwt.tiling import NOT_FINITE, ROWS, up4
from wavefilt.backends.cuda.options import KernelOptions
from wavefilt.backends.cuda.plan import ALONE, KEPT, Beside, GridsOf, Place, Shape, Shrinking
from wavefilt.backends.cuda.runtime import interop
from wavefilt.backends.cuda.runtime.compiler import kernel
from wavefilt.backends.cuda.runtime.interfaces import Build, DeviceArray, DeviceFunction, Kernel, Stream
from wavefilt.backends.cuda.runtime.target import cuda, device
from wavefilt.backends.cuda.runtime.wide import filters, load4, load_column, put_at, slide, store
from wavefilt.backends.cuda.statistics.layout import DetailLayout, NoiseOf
from wavefilt.backends.cuda.thresholding import shrink
from wavefilt.thresholding.shrinkage import Shrinkage
from wavefilt.transforms.dual_tree import SHARE

from .columns import Plane, SectionsPlan, Tiled, Tiling, tile_of

NEW, STEP = 8, 4
"""Rows that a step down the columns reads in the analysis, and rows of coefficients in the synthesis."""
OUT = 8
"""Rows that are filtered along the rows together, or computed."""
GROUP = 4
"""Elements of a row that a thread takes to coefficients, with those around them, or computes."""
BANDS, TURNS = 6, 16
"""Directions of a level, and tiles that a block goes down at most."""
ROWS_EACH = 16
"""Rows of coefficients whose gains one thread computes."""
Terms = list[tuple[float, int]]
"""Taps, and the places that they apply to, from that of the output on."""
HALF = 0.5**0.5
LOCAL = "local"
"""Name of local James-Stein shrinkage in `Shrinking`."""


@dataclass(frozen=True)
class Level:
    """The constants of the kernels of a level: filters of the first level or of tree a, and how they are built."""

    low: tuple[float, ...]
    high: tuple[float, ...]
    first: bool
    build: Build

    @staticmethod
    def of(bank: Sequence[tuple[float, ...]], level: int, build: Build, back: bool) -> Level:
        """A level, from 0 on, of `DualTree.filter_bank`; ``back`` for synthesis."""
        first = 0 if level == 0 else 4
        begin = first + 2 if back and level == 0 else first  # later ones are synthesised by the transpose
        return Level(tuple(map(float, bank[begin])), tuple(map(float, bank[begin + 1])), level == 0, build)

    @property
    def wide(self) -> int:
        """Elements of the sequence that become two low-pass and two high-pass ones, or are made of such."""
        return 2 if self.first else 4

    @cached_property
    def analysis(self) -> tuple[list[Terms], list[Terms]]:
        """Two low-pass and two high-pass coefficients, of `wide` elements and those around them."""
        low, high = self.low, self.high
        if self.first:
            return tuple([_centred(taps, i) for i in range(2)] for taps in (low, high))  # type: ignore[return-value]
        begin = 2 - len(low)
        a, b = (range(begin + tree, begin + tree + 2 * len(low), 2) for tree in range(2))
        return (
            [_terms(low, a), _terms(low[::-1], b)],
            [_terms(high[::-1], b), _terms(high, a)],
        )

    @cached_property
    def synthesis(self) -> list[tuple[Terms, Terms]]:
        """`wide` elements of low-pass and of high-pass coefficients from the first of two on.

        Levels after the first are orthogonal: it is the transpose of `analysis`.
        """
        if self.first:
            return [(_centred(self.low, i), _centred(self.high, i)) for i in range(2)]
        found: list[tuple[Terms, Terms]] = [([], []) for _ in range(4)]
        for kind, outputs in enumerate(self.analysis):
            for w, terms in enumerate(outputs):
                for tap, place in terms:
                    found[place % 4][kind].append((tap, w - 2 * (place // 4)))
        return [(sorted(low, key=itemgetter(1)), sorted(high, key=itemgetter(1))) for low, high in found]


def _terms(taps: Sequence[float], places: Sequence[int]) -> Terms:
    return [(tap, place) for tap, place in zip(taps, places, strict=True) if tap]


def _centred(taps: Sequence[float], place: int) -> Terms:
    return _terms(taps, range(place - len(taps) // 2, place + len(taps) // 2 + 1))


def repeated(outputs: Sequence[Terms], times: int, step: int) -> list[Terms]:
    """Repeat the outputs, each time ``step`` places further."""
    return [[(tap, place + i * step) for tap, place in terms] for i in range(times) for terms in outputs]


def reach(outputs: Sequence[Terms]) -> tuple[int, int]:
    """Return the first and the last place that outputs need."""
    places = [place for terms in outputs for _, place in terms]
    return min(places), max(places)


class Sliding:
    """A step down the columns by ``new`` rows: of some windows, what outputs are of each.

    A window begins ``before`` its rows, and of the ``kept`` ones those from ``after`` on are loaded in the next step.
    """

    def __init__(self, outputs: Sequence[Sequence[Terms]], new: int) -> None:
        """``outputs`` has the terms of every output in every window."""
        self.new, windows = new, range(len(outputs[0]))
        reaches = [reach([output[w] for output in outputs]) for w in windows]
        self.after = [max(last + 1 - new, 0) for _, last in reaches]
        self.after = [after + after % 2 for after in self.after]  # coefficients are pairs of rows
        self.kept = [after - first for (first, _), after in zip(reaches, self.after, strict=True)]
        self.warm = -(-max(self.kept) // new)
        """Steps that fill the windows."""
        begins = [sum(self.kept[:w]) + w * new - reaches[w][0] for w in windows]
        self.outputs = [[(tap, begins[w] + place) for w in windows for tap, place in output[w]] for output in outputs]

    def top(self, window: int) -> int:
        """The first row of a window that is loaded before that of the first output."""
        return self.after[window] - self.warm * self.new


class Along:
    """Filters along rows, from ``lead`` elements before the first one of a tile, which end ``lag`` after its last."""

    def __init__(self, outputs: Sequence[Sequence[Terms]], new: int) -> None:
        """``outputs`` have the terms of every output in every window, of ``new`` elements and those around them."""
        first, last = reach([terms for output in outputs for terms in output])
        self.lead, self.lag = up4(-first), up4(max(last + 1 - new, 0))
        self.outputs = [
            [(tap, w, place + self.lead) for w, terms in enumerate(output) for tap, place in terms]
            for output in outputs
        ]

    def width(self, columns: int) -> int:
        """Return the elements of a tile, a multiple of eight, that takes ``columns`` with the elements around it."""
        return (columns - self.lead - self.lag) & ~7


@device
def inside(i, size):
    """Return the element at place i of an axis that continues symmetrically beyond its ends.

    A size is the number of elements, and the number to which they are first extended at the end.
    """
    there, extended = size
    i %= 2 * extended
    if i >= extended:
        i = 2 * extended - 1 - i
    i %= 2 * there
    return i if i < there else 2 * there - 1 - i


def sizes(n: int, depth: int) -> list[tuple[int, int]]:
    """Return the size, for `inside`, of an axis of n samples at every level, finest first, and of the last low-pass."""
    extended = -(-n >> depth) << depth
    lengths = (extended >> max(level - 1, 0) for level in range(1, depth + 1))
    return [(n, extended), *((length, length) for length in lengths)]


@cache
def gains(function: str, build: Build, width: int) -> Kernel:
    """Kernel that computes the gains of a level's bands from their magnitudes.

    A thread has ``width`` columns: 4 if the number of columns is a multiple of four, otherwise 1. ``function`` is a
    name that `shrink` knows, or `LOCAL`. Where the threshold is 0, gains are 1.
    """
    dtype, threads, local = build.dtype, build.threads, function == LOCAL
    number = np.dtype(dtype).type
    most, zero, one, share = number(np.finfo(dtype).max), number(0), number(1), number(1 / 18)
    shrunk = shrink("keep" if local else function, dtype)

    @device
    def square(magnitudes, at, scale):
        m = magnitudes[at] * scale
        return m * m

    @device
    def one_wide(magnitudes, at, left, right, scale):
        if not local:
            return (magnitudes[at],)
        return (
            square(magnitudes, at + left, scale)
            + square(magnitudes, at, scale)
            + square(magnitudes, at + right, scale),
        )

    @device
    def four_wide(magnitudes, at, left, right, scale):
        p, q, r, s = load4(magnitudes, at)
        if not local:
            return p, q, r, s
        p, q, r, s = p * scale, q * scale, r * scale, s * scale
        p, q, r, s = p * p, q * q, r * r, s * s
        before, after = square(magnitudes, at + left, scale), square(magnitudes, at + 3 + right, scale)
        return before + (p + q), (p + q) + r, (q + r) + s, (r + s) + after

    @device
    def gain(above, own, below, t):
        if not local:
            return shrunk(own, t) / own if own > zero else one
        energy = (above + own + below) * share
        return one - one / energy if energy > one else zero

    @device
    def put_one(target, at, above, own, below, t):
        target[at] = gain(above[0], own[0], below[0], t)

    @device
    def put_four(target, at, above, own, below, t):
        p, q = gain(above[0], own[0], below[0], t), gain(above[1], own[1], below[1], t)
        r, s = gain(above[2], own[2], below[2], t), gain(above[3], own[3], below[3], t)
        store(target, at, (p, q, r, s))

    read, put = (one_wide, put_one) if width == 1 else (four_wide, put_four)

    @kernel(build, function, width)
    def gains_kernel(magnitudes, target, bands, thresholds, limits, tiling):
        (band, stride, apart, rows, columns), (first_section, across, _) = bands, tiling
        tile_row, tile = tile_of(cuda.blockIdx.x, across)
        section, kind = first_section + cuda.blockIdx.y, cuda.blockIdx.z
        column, row = width * (tile * threads + cuda.threadIdx.x), tile_row * ROWS_EACH
        if column >= columns:
            return
        left, right = -1 if column > 0 else 0, 1 if column + width < columns else 0
        at = band + kind * apart + section * stride + row * columns + column
        t = thresholds[limits[0] + section + kind * limits[1]]
        scale = min(one / t, most) if t > zero else zero
        own = read(magnitudes, at, left, right, scale)
        above = read(magnitudes, at - columns if row > 0 else at, left, right, scale)
        for r in range(row, min(row + ROWS_EACH, rows)):
            below = read(magnitudes, at + columns if r + 1 < rows else at, left, right, scale)
            if t > zero:
                put(target, at, above, own, below, t)
            else:
                for i in range(width):
                    target[at + i] = one
            above, own = own, below
            at += columns

    return gains_kernel


def _filtering(along: Along, low_factor: float) -> DeviceFunction:
    """Device function: of two rows of shared memory, low-pass coefficients of both, then high-pass ones."""
    half = len(along.outputs) // 2
    parts = (along.outputs[:half], low_factor), (along.outputs[half:], HALF)
    rows = [(row, factor, terms) for part, factor in parts for row in range(2) for terms in part]
    return filters([[(tap * factor, row, place) for tap, _, place in terms] for row, factor, terms in rows], 4)


@cache
def _writing(of: Level) -> DeviceFunction:
    """Device function: two opposite directions of the squares of four coefficients in two rows."""
    each = GROUP // of.wide  # squares of a thread, side by side

    @device
    def one(bands, magnitudes, first, second, a, b, c, d):
        p, q, r, s = a - d, b + c, a + d, b - c
        store(bands, 2 * first, (p, q))
        store(bands, 2 * second, (r, s))
        magnitudes[first] = math.sqrt(p * p + q * q)
        magnitudes[second] = math.sqrt(r * r + s * s)

    @device
    def put_one(bands, magnitudes, first, second, there, even, values):
        a, b, c, d = values
        one(bands, magnitudes, first, second, a, b, c, d)

    @device
    def put_two(bands, magnitudes, first, second, there, even, values):
        a, b, e, f, c, d, g, h = values
        if even:
            p, q, r, s = a - d, b + c, a + d, b - c
            t, u, v, w = e - h, f + g, e + h, f - g
            store(bands, 2 * first, (p, q, t, u))
            store(bands, 2 * second, (r, s, v, w))
            store(magnitudes, first, (math.sqrt(p * p + q * q), math.sqrt(t * t + u * u)))
            store(magnitudes, second, (math.sqrt(r * r + s * s), math.sqrt(v * v + w * w)))
        else:
            one(bands, magnitudes, first, second, a, b, c, d)
            if there > 1:
                one(bands, magnitudes, first + 1, second + 1, e, f, g, h)

    return put_two if each == 2 else put_one


@cache
def _loading(count: int) -> DeviceFunction:
    """Device function: ``count`` rows of a column, from row ``top`` on."""
    load = load_column(count)

    def elements(first: int) -> DeviceFunction:
        """Device function: the rows from ``first`` on, one by one, beyond the ends too."""
        if first == count:
            return device(lambda x, here, pitch, top, size: ())
        others = elements(first + 1)

        @device
        def rows(x, here, pitch, top, size):
            return (x[here + inside(top + first, size) * pitch], *others(x, here, pitch, top, size))

        return rows

    at_the_end = elements(0)

    @device
    def rows_of(x, here, pitch, top, size, interior):
        return load(x, here + top * pitch, pitch) if interior else at_the_end(x, here, pitch, top, size)

    return rows_of


@cache
def analysis(of: Level) -> Tiled:
    """Kernel of one level; a thread has a column, then squares of four coefficients of each kind."""
    number, threads, wide = np.dtype(of.build.dtype).type, of.build.threads, of.wide
    down, group = ([[terms] for part in of.analysis for terms in repeated(part, n // wide, wide)] for n in (NEW, GROUP))
    sliding, along = Sliding(down, NEW), Along(group, GROUP)
    width, rows_a_turn = along.width(threads), OUT * wide // 2  # the samples of a tile
    lead, each, across = along.lead, GROUP // wide, width // GROUP
    steps, last = rows_a_turn // NEW, OUT * threads
    outputs, (kept,) = len(sliding.outputs), sliding.kept
    blank = (number(0),) * (outputs + kept)
    fill, step = (slide(sliding.outputs, sliding.kept, NEW, computing) for computing in (False, True))
    put = put_at([w * last + i * threads for w in range(2) for i in range(outputs // 2)])
    top_of_all, after, warm, load = sliding.top(0), sliding.after[0], sliding.warm, _loading(NEW)
    filter_low, filter_high, write = _filtering(along, 1.0), _filtering(along, HALF), _writing(of)
    pairs, shared, advance, in_row = OUT // 2, 2 * last, outputs // 2 * threads, 2 * each  # coefficients of a kind
    both = 2 * in_row
    registers = 80 if of.build.dtype == "float32" and len(of.low) <= 16 else None

    @kernel(of.build, of, registers=registers)
    def dual_tree_analysis_kernel(samples, axes, tiling, lowpass, bands):
        (x, source, plane, pitch), (first_section, tiles, turns), (rows, across_size) = samples, tiling, axes
        (low, low_source, low_plane, low_pitch), (array, magnitudes, place_of_bands) = lowpass, bands
        band, stride, apart, rows_out, across_out = place_of_bands
        buffer = cuda.shared.array(shared, number)
        thread = cuda.threadIdx.x
        section = first_section + cuda.blockIdx.y
        tile_row, tile = tile_of(cuda.blockIdx.x, tiles)
        row, column = tile_row * turns * rows_a_turn, tile * width
        here = source + section * plane + inside(column - lead + thread, across_size)
        top = row + top_of_all
        interior = top >= 0 and row + turns * rows_a_turn + after <= rows[0]
        square_row, square_column = row // wide, column // wide
        low_source += section * low_plane
        band += section * stride
        state = blank
        for _ in range(warm):
            state = fill(state, load(x, here, pitch, top, rows, interior))
            top += NEW
        for _ in range(turns):
            start = thread
            for _ in range(steps):
                state = step(state, load(x, here, pitch, top, rows, interior))
                top += NEW
                put(buffer, start, state)
                start += advance
            cuda.syncthreads()
            for item in range(thread, pairs * across, threads):
                pair = item // across
                i = item - pair * across
                r, c = square_row + pair, square_column + i * each
                if r < rows_out and c < across_out:
                    window = 2 * pair * threads + GROUP * i
                    place, there = band + r * across_out + c, across_out - c
                    even = across_out % 2 == 0
                    found = filter_low(buffer, (window, window + threads))
                    at = low_source + 2 * r * low_pitch + 2 * c
                    store(low, at, found[:in_row])
                    store(low, at + low_pitch, found[in_row:both])
                    write(array, magnitudes, place + 2 * apart, place + 3 * apart, there, even, found[both:])
                    found = filter_high(buffer, (window + last, window + last + threads))
                    write(array, magnitudes, place, place + 5 * apart, there, even, found[:both])
                    write(array, magnitudes, place + apart, place + 4 * apart, there, even, found[both:])
            cuda.syncthreads()
            square_row += pairs

    return Tiled(dual_tree_analysis_kernel, threads, rows_a_turn, width)


def repeated_both(of: Level, times: int) -> list[list[Terms]]:
    """Return the terms in the low-pass and the high-pass window of ``times`` times `Level.wide` samples."""
    low, high = (repeated([output[w] for output in of.synthesis], times, 2) for w in range(2))
    return [list(both) for both in zip(low, high, strict=True)]


@cache
def _pairing(of: Level) -> DeviceFunction:
    """Device function: the real coefficients of one column for a step, from two opposite directions.

    Coefficients are multiplied by gains. ``odd`` says which column of two it is.
    """
    half, load, load_gain = np.dtype(of.build.dtype).type(HALF), load_column(1, 2), load_column(1)

    @device
    def turned(p, q, r, s, odd, sign):
        if odd:
            return (q + s) * half, (p - r) * sign
        return (p + r) * half, (q - s) * sign

    @device
    def pair(bands, gains, first, second, odd, sign, reflected):
        (a, b), (c, d) = load(bands, first, 0), load(bands, second, 0)
        (v,), (w,) = load_gain(gains, first >> 1, 0), load_gain(gains, second >> 1, 0)
        upper, lower = turned(a * v, b * v, c * w, d * w, odd, sign)
        return (lower, upper) if reflected else (upper, lower)

    @device
    def real(bands, gains, first, second, odd, pitch, sign, row, size, interior):
        r, s = row, row + 2
        if not interior:
            r, s = inside(r, size), inside(s, size)
        p, q = (r >> 1) * pitch, (s >> 1) * pitch
        upper = pair(bands, gains, first + p, second + p, odd, sign, r & 1 != 0)
        return upper + pair(bands, gains, first + q, second + q, odd, sign, s & 1 != 0)

    return real


@cache
def synthesis(of: Level) -> Tiled:
    """Kernel of one level for twice the threads: each has a column of coefficients, then groups of samples."""
    number, threads, each = np.dtype(of.build.dtype).type, of.build.threads, 2 * GROUP // of.wide
    sliding, along = Sliding(repeated_both(of, STEP // 2), STEP), Along(repeated_both(of, GROUP // of.wide), each)
    width, rows_a_turn = along.width(threads), 2 * OUT // of.wide  # the coefficients of a tile
    outputs, steps = len(sliding.outputs), rows_a_turn // STEP
    across, ratio, lead, last = width // each, of.wide // 2, along.lead, OUT * threads
    blank = (number(0),) * (outputs + sum(sliding.kept))
    fill, step = (slide(sliding.outputs, sliding.kept, STEP, run) for run in (False, True))
    put, put_one = put_at([i * threads for i in range(outputs)]), put_at([0])
    synthesise = filters(along.outputs, each)
    real, plain = _pairing(of), _loading(STEP)
    top_low, top_high, end, warm = sliding.top(0), sliding.top(1), max(sliding.after), sliding.warm
    half, shared, all_threads = number(HALF), 2 * last, 2 * threads
    registers = 96 if of.build.dtype == "float32" and len(of.low) <= 19 else None  # two blocks fit a multiprocessor

    @kernel(of.build, of, registers=registers)
    def dual_tree_synthesis_kernel(lowpass, bands, tiling, samples, axes, aligned, flags, checks):
        """Samples that are not finite are flagged with ``checks``."""
        (y, target, plane, pitch), (first_section, tiles, turns), (rows, across_size) = samples, tiling, axes
        (low_array, low_source, low_plane, low_pitch), (array, gains, place_of_bands) = lowpass, bands
        band, stride, apart, band_rows, band_columns = place_of_bands
        (there, _), (there_across, _) = rows, across_size
        buffer = cuda.shared.array(shared, number)
        section = first_section + cuda.blockIdx.y
        tile_row, tile = tile_of(cuda.blockIdx.x, tiles)
        row, first = tile_row * turns * rows_a_turn, tile * width
        part = cuda.threadIdx.x // threads
        thread = cuda.threadIdx.x - part * threads
        size = 2 * band_rows, 2 * band_rows
        column = inside(first - lead + thread, (2 * band_columns, 2 * band_columns))
        odd = column & 1 != 0
        sign = -half if odd else half
        # what is low-pass along the rows: the low-pass coefficients, and bands 0 and 5; else bands 2 and 3, 1 and 4
        kinds = (1, 4, 2, 3) if part else (0, 5, 0, 5)
        at = band + section * stride + (column >> 1)
        first_high, second_high = 2 * (at + kinds[0] * apart), 2 * (at + kinds[1] * apart)
        first_low, second_low = 2 * (at + kinds[2] * apart), 2 * (at + kinds[3] * apart)
        band_pitch, here = 2 * band_columns, low_source + section * low_plane + column
        low, high = row + top_low, row + top_high
        interior = min(low, high) >= 0 and row + turns * rows_a_turn + end <= 2 * band_rows
        target += section * plane
        state, total = blank, number(0)
        for k in range(turns * steps + warm):
            above = real(array, gains, first_high, second_high, odd, band_pitch, sign, high, size, interior)
            if part:
                left = real(array, gains, first_low, second_low, odd, band_pitch, sign, low, size, interior)
            else:
                left = plain(low_array, here, low_pitch, low, size, interior)
            low += STEP
            high += STEP
            if k < warm:
                state = fill(state, left + above)
                continue
            state = step(state, left + above)
            place = (k - warm) % steps
            put(buffer, part * last + place * outputs * threads + thread, state)
            if place + 1 == steps:
                cuda.syncthreads()
                for item in range(cuda.threadIdx.x, OUT * across, all_threads):
                    r = item // across
                    i = item - r * across
                    window = r * threads + each * i
                    values = synthesise(buffer, (window, window + last))
                    r += row * ratio
                    c = (first + each * i) * ratio
                    if r < there and c < there_across:
                        at = target + r * pitch + c
                        if aligned:
                            total += (values[0] + values[1]) + (values[2] + values[3])
                            store(y, at, values)
                        else:
                            for s in range(4):
                                if c + s < there_across:
                                    total += values[s]
                                    put_one(y, at + s, (values[s],))
                cuda.syncthreads()
                row += rows_a_turn
        if checks and total - total != 0:
            flags[NOT_FINITE] = 1

    return Tiled(dual_tree_synthesis_kernel, all_threads, rows_a_turn, width)


def synthesis_threads(dtype: str, threads: int) -> int:
    """Columns of a tile of the synthesis, which has twice the threads: two blocks then have enough registers."""
    return threads * 5 // 8 if dtype == "float32" else threads // 2


class PlaceOfBands(NamedTuple):
    """The first coefficient of a level, from section to section, from band to band; rows and columns of a band."""

    begin: int
    stride: int
    apart: int
    rows: int
    columns: int


class Coefficients(NamedTuple):
    """Coefficients as pairs of real and imaginary parts, their magnitudes or gains, and their places."""

    array: DeviceArray
    magnitudes: DeviceArray
    place: PlaceOfBands


class _At(NamedTuple):
    """A level: `Level` both ways, axes as `inside` has them, bands, and low-pass coefficients."""

    analysis: Level
    synthesis: Level
    axes: tuple[tuple[int, int], tuple[int, int]]
    bands: PlaceOfBands
    lowpass: tuple[int, int, int]


class DualTreeSectionPlan(SectionsPlan):
    """A launch for every level. Bands lie in the order of thresholds, which is that of directions reversed.

    Coefficients lie in ``parts``, real and imaginary ones in turn, and `layout` says where their magnitudes lie.
    """

    noise, most_turns = NoiseOf(SHARE, 2, BANDS), TURNS

    def __init__(self, shape: Shape, options: KernelOptions) -> None:
        super().__init__(shape, options)
        s, filters = shape, shape.filters[0]
        down, along = (sizes(n, s.depth) for n in s.size)
        self.launches, self.fewest, self._levels = s.depth, options.blocks[1], list[_At]()
        start, end, found = 0, 0, []
        for i in range(s.depth):
            ahead = Level.of(filters, i, self.build, False)
            back = Level.of(filters, i, self.build._replace(threads=synthesis_threads(s.dtype, options.threads)), True)
            rows, columns = down[i][1] // ahead.wide, along[i][1] // ahead.wide
            stride, pitch = up4(rows * columns), up4(2 * columns)
            apart, lowpass = s.rows * stride, (end, 2 * rows * pitch, pitch)
            bands = PlaceOfBands(start + (BANDS - 1) * apart, stride, -apart, rows, columns)
            self._levels.append(_At(ahead, back, (down[i], along[i]), bands, lowpass))
            found += [(start + b * apart, stride, rows * columns, s.rows) for b in range(BANDS)]
            start += BANDS * apart
            end += s.rows * 2 * rows * pitch
        self.parts, kind = self.buffer("coefficients", 2 * start), np.result_type(np.dtype(self.dtype), np.complex64)
        self.complex = self.parts.view(kind)
        self.magnitudes = self.buffer("details", start + start // 8 + 8)
        self.layout = DetailLayout(self.magnitudes, found, lists=start, listed=len(found))
        self._low = self.buffer("lowpass", end)

    @property
    def _gains(self) -> DeviceArray:
        """The gains of all coefficients, laid out as the magnitudes are."""
        return self.buffer("gains", self.magnitudes.size)

    def _plane(self, i: int, flat: DeviceArray) -> Plane:
        """Return where the i-th launch reads samples or, of `inverse`, writes them."""
        s = self.shape
        return Plane(self._low, *self._levels[i - 1].lowpass) if i else Plane(flat, 0, s.samples, s.size[1])

    def forward_launch(self, i: int, x: DeviceArray, stream: Stream, beside: Beside = ALONE) -> None:
        one = self._levels[i]
        (_, down), (_, along) = one.axes
        after = Plane(self._low, *one.lowpass), Coefficients(self.parts, self.magnitudes, one.bands)
        self.launch_tiles(analysis(one.analysis), (down, along), stream, (self._plane(i, x), one.axes), after)

    def inverse_launch(self, i: int, y: DeviceArray, stream: Stream, by: Shrinking = KEPT) -> None:
        one, size = self._levels[i], (2 * self._levels[i].bands.rows, 2 * self._levels[i].bands.columns)
        wide = i > 0 or (self.shape.size[1] % 4 == 0 and interop.address(y) % 16 == 0)
        flags, checks = self.flags if by.source is None else by.source.flags, by.source is not None and i == 0
        details = self.parts if by.details is None else by.details
        source = Plane(self._low, *one.lowpass), Coefficients(details, self._gains, one.bands)
        after = self._plane(i, y), one.axes, wide, flags, checks
        self.launch_tiles(synthesis(one.synthesis), size, stream, source, after)

    def inverse(self, y: DeviceArray, stream: Stream, by: Shrinking = KEPT) -> None:
        self._weigh(by.function, by.thresholds, stream)
        super().inverse(y, stream, by)

    def _weigh(self, function: str, thresholds: DeviceArray | None, stream: Stream) -> None:
        """Compute all gains once, since two threads load each coefficient. Without thresholds, gains are 1."""
        s, threads = self.shape, self.options.threads
        if thresholds is None:
            thresholds = cuda.to_device(np.zeros(s.level * s.rows, s.dtype), stream=stream)
        for i, one in enumerate(self._levels):
            bands = one.bands
            if function != LOCAL:  # no neighbours are needed: treat each band as one row
                bands = bands._replace(rows=1, columns=bands.rows * bands.columns)
            width = 1 if bands.columns % 4 else 4
            across, down = -(-bands.columns // (threads * width)), -(-bands.rows // ROWS_EACH)
            limits = (BANDS * (i + 1) - 1) * s.rows, -s.rows  # of the first direction, and from one to the next
            for first in range(0, s.rows, ROWS):
                blocks = across * down, min(s.rows - first, ROWS), BANDS
                launch = gains(function, self.build, width)[blocks, threads, stream]
                launch(self.magnitudes, self._gains, bands, thresholds, limits, Tiling(first, across, 1))

    def shrunk_together(self, grids: GridsOf, thresholds: DeviceArray, stream: Stream) -> Shrinking:
        return Shrinking(LOCAL, thresholds)

    def shrunk(self, shrinkage: Shrinkage, stream: Stream) -> DeviceArray:
        """Shrink on the host."""
        return self.shrunk_on_host(shrinkage, self.complex, self.buffer("shrunk", self.parts.size), stream)

    def fill(self, coefficients: Sequence[Array], stream: Stream) -> None:
        super().fill(coefficients, stream)
        self.magnitudes[: self.complex.size].copy_to_device(np.abs(self.complex.copy_to_host()))

    def approximation(self) -> Place:
        (begin, plane, pitch), (*_, rows, columns) = self._levels[-1].lowpass, self._levels[-1].bands
        return Place(self._low, begin, (self.shape.rows, 2 * rows, 2 * columns), (plane, pitch, 1))

    def places(self) -> list[Place]:
        found = [self.approximation()]
        for one in reversed(self._levels):
            (begin, stride, apart, rows, columns), sections = one.bands, self.shape.rows
            for band in range(BANDS):
                found.append(Place(self.complex, begin + band * apart, (sections, rows, columns), (stride, columns, 1)))
        return found
