"""Rows that fit in a block's shared memory: one kernel denoises them, a block for each row.

A row is read once and written once. Every level takes the place of its own input: a thread holds what it computes in
registers until all have read. Details lie at the end of the shared memory, the finest last; even and odd quads of what
is still to be transformed lie apart at its beginning, as in the forward kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from wavefilt.backends.cuda.plan import Shape
from wavefilt.backends.cuda.runtime import interop
from wavefilt.backends.cuda.runtime.compiler import kernel
from wavefilt.backends.cuda.runtime.interfaces import DeviceArray, DeviceFunction, Kernel, Stream
from wavefilt.backends.cuda.runtime.taps import Tap, numbered
from wavefilt.backends.cuda.runtime.target import cuda, device, shared_memory
from wavefilt.backends.cuda.runtime.wide import load4, store, value_of
from wavefilt.backends.cuda.statistics import in_block
from wavefilt.backends.cuda.statistics import search_window as window
from wavefilt.backends.cuda.statistics.in_block import FEW, LISTED, few
from wavefilt.backends.cuda.statistics.search_window import BINS, WORKSPACE
from wavefilt.backends.cuda.thresholding import choosing
from wavefilt.backends.cuda.thresholding.functions import shrink

from .forward import analysis, apart, extending, extensions, quad, spot
from .inverse import PAIRS, check, copying, synthesis
from .tiling import NOT_FINITE, ROWS, Filter, grid, up4

ROUNDS = 5
"""Groups of four coefficients of each filter that a thread computes of a level at most: 40 registers hold them."""
THREADS = (128, 256, 512)
RULES = ("linear", "fixed", "bayes")
_, FIXED, BAYES = range(3)
"""Numbers of rules for the kernel."""
MOST_TAPS, MOST_LEVELS = 32, 8
MOST_SAMPLES = 48 << 20
"""Of all rows that blocks of 512 threads denoise: 4096 x 16384 take 0.514 ms, and 0.486 if blocks share rows."""
LENGTH, ODD, DETAILS, PLACES = range(4)
"""Fields of a level in `OneBlock.layout`, and how many they are."""
STATIC = 20 << 10
"""Bytes of shared memory beside the row, at most."""
REGISTERS = 64
"""With 512 threads two blocks fit on a multiprocessor, so that one works while the other waits at a barrier."""
SLACK = 16
"""Elements behind a band that are read for coefficients beyond the end of a row, which nobody wants."""


@dataclass(frozen=True)
class RowFilters:
    """What the kernel is compiled for; ``lo`` and ``hi`` analyse, the others synthesise."""

    lo: tuple[float, ...]
    hi: tuple[float, ...]
    rec_lo: tuple[float, ...]
    rec_hi: tuple[float, ...]
    dtype: str
    threads: int

    @property
    def filter(self) -> Filter:
        return Filter(len(self.lo), False)

    @cached_property
    def numbered(self) -> tuple[tuple[Tap, ...], ...]:
        """All four with their taps numbered."""
        return numbered(self.lo, self.hi, self.rec_lo, self.rec_hi)

    @property
    def structure(self) -> tuple[int, str, int]:
        """The same for all filters of this length."""
        return len(self.lo), self.dtype, self.threads


@cache
def _loading(f: Filter, threads: int) -> DeviceFunction:
    """Device function: a row into shared memory; whether a sample of this thread is another than the first."""
    lead4 = up4(f.lead)

    @device
    def load(buffer, x, source, samples, aligned, odd):
        first, differs, quads = x[source], np.int32(0), samples >> 2 if aligned else 0
        for j in range(2 * ROUNDS):  # constant, so that loads are under way together
            v = cuda.threadIdx.x + j * threads
            if v < quads:
                a, b, c, d = load4(x, source + 4 * v)
                if (a != first) | (b != first) | (c != first) | (d != first):  # NaN is too
                    differs = np.int32(1)
                store(buffer, quad(v + lead4 // 4, 0, odd), (a, b, c, d))
        i = 4 * quads + cuda.threadIdx.x
        while i < samples:
            a = x[source + i]
            if a != first:
                differs = np.int32(1)
            buffer[spot(i + lead4, 0, odd)] = a
            i += threads
        return differs

    return load


@cache
def _analysing(of: RowFilters) -> DeviceFunction:
    """Device function: one level, its details to ``target`` and its approximation to where its input was."""
    analyse, lead4, threads = analysis(of.filter, of.numbered[:2]), up4(of.filter.lead), of.threads

    def rounds(first: int) -> DeviceFunction:
        if first == ROUNDS:
            return device(lambda buffer, odd, next_odd, target, groups, coarsest: cuda.syncthreads())
        others, number = rounds(first + 1), np.dtype(of.dtype).type

        @device
        def step(buffer, odd, next_odd, target, groups, coarsest):
            if groups <= first * threads:  # of no thread
                cuda.syncthreads()
                return
            v = cuda.threadIdx.x + first * threads
            s0 = s1 = s2 = s3 = d0 = d1 = d2 = d3 = number(0)
            if v < groups:
                s0, s1, s2, s3, d0, d1, d2, d3 = analyse(buffer, 4 * v, odd + 4 * v)
            others(buffer, odd, next_odd, target, groups, coarsest)
            if v < groups:
                store(buffer, target + 4 * v, (d0, d1, d2, d3))
                store(buffer, 4 * v if coarsest else quad(v + lead4 // 4, 0, next_odd), (s0, s1, s2, s3))

        return step

    return rounds(0)


@cache
def _synthesising(of: RowFilters) -> DeviceFunction:
    """Device function: one level but the finest, from its details to samples where its approximation was."""
    synthesise, threads = synthesis(of.filter, of.numbered[2:], PAIRS), of.threads

    def rounds(first: int) -> DeviceFunction:
        if first == ROUNDS:
            return device(lambda buffer, source, groups: cuda.syncthreads())
        others, number = rounds(first + 1), np.dtype(of.dtype).type

        @device
        def step(buffer, source, groups):
            if groups <= first * threads:
                cuda.syncthreads()
                return
            v = cuda.threadIdx.x + first * threads
            y0 = y1 = y2 = y3 = y4 = y5 = y6 = y7 = number(0)
            if v < groups:
                y0, y1, y2, y3, y4, y5, y6, y7 = synthesise(buffer, PAIRS * v, source + PAIRS * v)
            others(buffer, source, groups)
            if v < groups:
                store(buffer, 2 * PAIRS * v, (y0, y1, y2, y3, y4, y5, y6, y7))

        return step

    return rounds(0)


@cache
def _finest(of: RowFilters) -> DeviceFunction:
    """Device function: the samples of the row from its finest level."""
    synthesise, threads = synthesis(of.filter, of.numbered[2:], PAIRS), of.threads

    @device
    def finest(buffer, source, y, target, samples, aligned, flags):
        v = cuda.threadIdx.x
        while 2 * PAIRS * v < samples:
            values, u = synthesise(buffer, PAIRS * v, source + PAIRS * v), 2 * PAIRS * v
            y0, y1, y2, y3, y4, y5, y6, y7 = values
            if aligned and u + 2 * PAIRS <= samples:
                store(y, target + u, values)
                check((y0 + y1) + (y2 + y3) + (y4 + y5) + (y6 + y7), flags)
            else:
                for i in range(min(samples - u, 2 * PAIRS)):
                    one = y0 if i == 0 else y1 if i == 1 else y2 if i == 2 else y3 if i == 3 else y4
                    one = y5 if i == 5 else y6 if i == 6 else y7 if i == 7 else one
                    y[target + u + i] = one
                    check(one, flags)
            v += threads

    return finest


@cache
def _measuring(threads: int) -> DeviceFunction:
    """Device function: the sums of the squares of all bands, each in a fixed order, all at once.

    Of every band half as many threads, or turns of one, add as of the one before.
    """

    @device
    def band_of(i):
        """Band, first place and number of places of a sum; the last one is nobody's."""
        band, first, width = 0, 0, threads
        while i >= first + width and width > 0:
            band += 1
            first += width
            width >>= 1
        return band, first, width

    @device
    def measure(buffer, where, levels, sums, start, energy):
        i = cuda.threadIdx.x  # no range, whose length would be computed
        while i < 2 * threads:
            band, first, width = band_of(i)
            square = 0.0
            if band < levels:
                begin, count, k = where[PLACES * band + DETAILS], where[PLACES * (band + 1) + LENGTH], i - first
                while k < count:
                    square += np.float64(buffer[begin + k]) * np.float64(buffer[begin + k])
                    k += width
            sums[start + i] = square
            i += threads
        step = 1
        while step < threads:
            cuda.syncthreads()
            i = cuda.threadIdx.x
            while i < 2 * threads:
                _, first, width = band_of(i)
                if (i - first) & (2 * step - 1) == 0 and i - first + step < width:
                    sums[start + i] += sums[start + i + step]
                i += threads
            step *= 2
        cuda.syncthreads()
        if cuda.threadIdx.x < levels:
            energy[cuda.threadIdx.x] = sums[start + 2 * threads - (2 * threads >> cuda.threadIdx.x)]

    return measure


@cache
def denoising(of: RowFilters, function: str) -> Kernel:
    """Kernel of a whole denoise of rows by any rule, so that another rule compiles nothing."""
    dtype, threads = of.dtype, of.threads
    number, itemsize = np.dtype(dtype).type, np.dtype(dtype).itemsize
    real, bits = np.dtype(dtype), np.dtype(f"i{itemsize}")
    warps = threads // 32
    own_table = 6 * MOST_LEVELS * (of.filter.lead + of.filter.taps) <= BINS  # which is free until a band is searched
    entries = 6 * (of.filter.lead + of.filter.taps)
    places, two_each = PLACES * (MOST_LEVELS + 1), 2 * MOST_LEVELS
    load, extend, finest = _loading(of.filter, threads), extending(of.filter, dtype, threads), _finest(of)
    analyse, synthesise, measure = _analysing(of), _synthesising(of), _measuring(threads)
    middle, noise_of = in_block.middles(threads), choosing.noise(window.MEDIAN)
    linear, fixed, bayes = (choosing.threshold(rule, 1) for rule in RULES)
    shrunk, copy = shrink(function, dtype), copying(threads)

    @kernel(of.structure, function, taps=sum(of.numbered, ()), registers=REGISTERS)
    def denoise_rows(x, x_aligned, y, y_aligned, samples, rows, levels, layout, table, factors, how, given, flags):
        """``layout`` and ``table`` are those of `OneBlock`, ``factors`` as in `choosing.choose`.

        ``how`` has the place of the rule in `RULES`, how many bands are searched, and where sums of squares begin.
        """
        rule, searched, start = how
        buffer, keys = cuda.shared.array(0, real), cuda.shared.array(0, bits)  # the same memory
        histogram = cuda.shared.array(BINS, np.int32)
        workspace = cuda.shared.array(WORKSPACE, np.int32)
        least = cuda.shared.array(1, np.int64)
        where = cuda.shared.array(places, np.int32)
        listed = cuda.shared.array(LISTED, bits)
        tally = cuda.shared.array(2, np.int32)
        middles = cuda.shared.array(two_each, bits)
        energy = cuda.shared.array(MOST_LEVELS, np.float64)
        limits = cuda.shared.array(MOST_LEVELS, number)
        sums = cuda.shared.array(0, np.float64)
        thread, row = cuda.threadIdx.x, cuda.blockIdx.y + ROWS * cuda.blockIdx.z
        if row >= rows:
            return
        if thread < PLACES * (levels + 1):
            where[thread] = layout[thread]
        if own_table:
            i = thread
            while i < entries * levels:
                histogram[i] = table[i]
                i += threads
        source = row * samples
        differs = cuda.syncthreads_or(load(buffer, x, source, samples, x_aligned, layout[ODD]))
        for level in range(levels):
            i, following = PLACES * level, PLACES * (level + 1)
            extend(buffer, histogram if own_table else table, level, where[i + LENGTH], 0, where[i + ODD])
            cuda.syncthreads()
            odd, groups = where[following + ODD], (where[following + LENGTH] + 3) >> 2
            analyse(buffer, where[i + ODD], odd, where[i + DETAILS], groups, level == levels - 1)
            cuda.syncthreads()

        if rule == BAYES:
            measure(buffer, where, levels, sums, start, energy)
        for level in range(searched):
            begin, count = where[PLACES * level + DETAILS], where[PLACES * (level + 1) + LENGTH]
            if count > FEW:
                middle(buffer, keys, begin, count, histogram, workspace, least, listed, tally, middles, 2 * level)
            elif level % warps == thread >> 5:
                few(buffer, keys, begin, count, middles, 2 * level)
        cuda.syncthreads()
        above = np.int32(0)
        if thread < levels:
            count, sigma = float(where[PLACES * (thread + 1) + LENGTH]), given
            if searched > 0:
                at = thread if searched > 1 else 0
                low, high = value_of(middles[2 * at], buffer), value_of(middles[2 * at + 1], buffer)
                sigma = noise_of(low, high, count, factors[2 * levels + at])
            noise, factor = sigma * factors[levels + thread], factors[thread]
            if rule == BAYES:
                t = bayes(noise, factor, energy[thread], count)
            elif rule == FIXED:
                t = fixed(noise, factor, 0.0, count)
            else:
                t = linear(noise, factor, 0.0, count)
            if differs == 0:  # all samples are equal
                t = 0.0
            if t - t != 0:  # squares overflowed, or a sample was not finite
                flags[NOT_FINITE] = 1
            limits[thread] = t
            above = np.int32(1 if t != 0 else 0)
        if cuda.syncthreads_or(above) == 0:
            copy(x, y, source, source + samples, flags)
            return

        for level in range(levels):
            t, begin = limits[level], where[PLACES * level + DETAILS]
            quads = (where[PLACES * (level + 1) + LENGTH] + 3) >> 2
            for j in range(ROUNDS):  # constant, so that no warp computes where it is
                v = thread + j * threads
                if v < quads:
                    d0, d1, d2, d3 = load4(buffer, begin + 4 * v)
                    store(buffer, begin + 4 * v, (shrunk(d0, t), shrunk(d1, t), shrunk(d2, t), shrunk(d3, t)))
        cuda.syncthreads()
        for level in range(levels - 1, 0, -1):
            i = PLACES * level
            synthesise(buffer, where[i + DETAILS], (where[i + LENGTH] + 2 * PAIRS - 1) // (2 * PAIRS))
            cuda.syncthreads()
        finest(buffer, where[DETAILS], y, source, samples, y_aligned, flags)

    return denoise_rows


def _half(f: Filter, length: int) -> int:
    """Elements that the even, or odd, quads take of so many samples and what lies beyond their ends."""
    return apart((length + up4(f.lead) + 2 * f.taps + 16) // 2)


class OneBlock:
    """A denoise of the rows of a plan, if there are `threads_for` it.

    ``layout`` has for every level the length of its input, where the odd quads of that begin, and its details;
    ``table`` how the input goes on beyond its ends.
    """

    def __init__(self, shape: Shape, lengths: Sequence[int], threads: int, rule: str, sigma_of: str, function: str):
        ((lo, hi, rec_lo, rec_hi),), (mode,) = shape.filters, shape.modes
        of = RowFilters(lo, hi, rec_lo, rec_hi, shape.dtype, threads)
        end = elements(of.filter, lengths)
        sums = -(-end // 2)  # of squares, as float64 behind all else
        self.size = 2 * sums + (4 * threads if rule == "bayes" else 0)
        layout = np.zeros((shape.level + 1, PLACES), np.int32)
        for level, n in enumerate(lengths):
            end -= up4(of.filter.length(n)) + SLACK
            layout[level] = n, _half(of.filter, n), end
        self._shape, self._threads, self._kernel = shape, threads, denoising(of, function)
        self._how = RULES.index(rule), {"level": shape.level, "global": min(shape.level, 1)}.get(sigma_of, 0), sums
        self._layout = cuda.to_device(layout.ravel())
        self._table = cuda.to_device(extensions(of.filter, mode, lengths[:-1]))

    def launch(
        self, x: DeviceArray, y: DeviceArray, factors: DeviceArray, given: float, flags: DeviceArray, stream: Stream
    ) -> None:
        """Launch it from the flat array ``x`` to ``y``; ``factors`` and ``flags`` as for `choosing.choose`."""
        s = self._shape
        x_aligned, y_aligned = (interop.aligned(flat, s.rows, s.samples) for flat in (x, y))
        launch = self._kernel[grid(1, s.rows), self._threads, stream, self.size * np.dtype(s.dtype).itemsize]
        arrays, sizes, tables = (x, x_aligned, y, y_aligned), (s.samples, s.rows, s.level), (self._layout, self._table)
        launch(*arrays, *sizes, *tables, factors, self._how, given, flags)


def elements(f: Filter, lengths: Sequence[int]) -> int:
    """Elements of shared memory for a row, and its coefficients at every level, of these lengths."""
    most, bands = 0, 0
    for n in lengths[:-1]:
        most = max(most, 2 * _half(f, n) + bands)
        bands += up4(f.length(n)) + SLACK
    return max(most, up4(lengths[-1]) + SLACK + bands)


def threads_for(shape: Shape, lengths: Sequence[int], medians: int) -> int | None:
    """Threads of a block that denoises a row alone; None where that is not possible on this GPU, or slower.

    It is slower with 512 threads, which nearly all wait where the medians of several levels are searched.
    """
    (lo, *_), (mode,) = shape.filters[0], shape.modes
    f = Filter(len(lo), mode == "periodization")
    if f.periodized or f.taps > MOST_TAPS or shape.dtype != "float32" or not 0 < shape.level <= MOST_LEVELS:
        return None
    if elements(f, lengths) * 4 + STATIC > shared_memory():
        return None
    groups = -(-lengths[1] // 4)
    suited = THREADS[:2] if medians > 1 or shape.rows * shape.samples > MOST_SAMPLES else THREADS
    return next((threads for threads in suited if groups <= ROUNDS * threads), None)
