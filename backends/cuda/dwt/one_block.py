"""Rows that fit in a block's shared memory: one kernel denoises them, a block for each row.

A row is read once and written once. Every level takes the place of its own input: a thread keeps its results in
registers until all have read. Details lie at the end of the shared memory, the finest last. At its beginning are the
samples or coefficients still to be transformed, laid out as by the kernels of several blocks (`kernels.Layout`):

    |even quads .....|pad|odd quads .....|   ...   |details 3|details 2|details 1|   samples of a row
    |even quads|pad|odd quads|             ...     |details 3|details 2|details 1|   approximation 1
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

import numpy as np

from wavefilt.backends.cuda.equal_runs import finding, probes
from wavefilt.backends.cuda.options import KernelOptions
from wavefilt.backends.cuda.plan import Shape
from wavefilt.backends.cuda.runtime import interop
from wavefilt.backends.cuda.runtime.compiler import kernel
from wavefilt.backends.cuda.runtime.interfaces import Build, DeviceArray, DeviceFunction, Kernel, Stream
from wavefilt.backends.cuda.runtime.target import cuda, device, shared_memory
from wavefilt.backends.cuda.runtime.wide import load4, store
from wavefilt.backends.cuda.statistics.block_search import BINS, WORKSPACE, few, first_shift, selecting
from wavefilt.backends.cuda.statistics.layout import MEDIAN
from wavefilt.backends.cuda.thresholding import noise, shrink, threshold

from .kernels import PAIRS, Rows, analysis, copying, extending, extensions, layout, put, synthesis
from .tiling import NOT_FINITE, ROWS, Filter, grid, up4

ROUNDS = 5
"""Most groups of four coefficients of each filter that a thread computes per level: 40 registers hold them."""
RULES = ("linear", "fixed", "bayes")
_, FIXED, BAYES = range(3)
"""Numbers of rules for the kernel."""
MOST_TAPS, MOST_LEVELS = 32, 8
MOST_SAMPLES = 48 << 20
"""Of all rows that blocks of 512 threads denoise: 4096 x 16384 take 0.514 ms, and 0.486 if blocks share rows."""
LENGTH, ODD, DETAILS, PLACES = range(4)
"""Fields of a level in the layout of `OneBlock`, and their number."""
STATIC = 20 << 10
"""Bytes of shared memory beside the row, at most."""
REGISTERS = 64
"""With 512 threads two blocks fit on a multiprocessor, and one works while the other waits at a barrier."""
SLACK = 16
"""Elements behind a band that are read for unused coefficients beyond the end of a row."""


@dataclass(frozen=True)
class RowFilters:
    """The constants of the kernel; ``lo`` and ``hi`` analyse, the others synthesise."""

    lo: tuple[float, ...]
    hi: tuple[float, ...]
    rec_lo: tuple[float, ...]
    rec_hi: tuple[float, ...]
    build: Build

    @property
    def filter(self) -> Filter:
        return Filter(len(self.lo), False)

    @property
    def padding(self) -> bool:
        return self.build.padding


class Tables(NamedTuple):
    """Tables of `OneBlock`, and the result of `thresholding.factors`."""

    layout: DeviceArray
    extensions: DeviceArray
    factors: DeviceArray


class How(NamedTuple):
    """How a row is denoised.

    The place of the rule in `RULES`, the number of bands searched, where sums of squares begin, given noise, and the
    number of probes for runs of equal samples.
    """

    rule: int
    searched: int
    start: int
    given: float
    probes: int


@cache
def _loading(of: RowFilters) -> DeviceFunction:
    """Device function: a row into shared memory; whether a sample of this thread is another than the first."""
    lead4, threads, quad, spot = up4(of.filter.lead), of.build.threads, layout(of.padding).quad, layout(of.padding).spot

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


def _in_place(of: RowFilters, compute: DeviceFunction, write: DeviceFunction, first: int = 0) -> DeviceFunction:
    """Device function: eight results of each of some groups in the place of what they are computed from.

    Each thread keeps its results until all threads have read.
    """
    if first == ROUNDS:
        return device(lambda buffer, source, target, groups: cuda.syncthreads())
    others, begin, blank = _in_place(of, compute, write, first + 1), first * of.build.threads, (np.float32(0),) * 8

    @device
    def step(buffer, source, target, groups):
        if groups <= begin:  # of no thread
            cuda.syncthreads()
            return
        v, values = cuda.threadIdx.x + begin, blank
        if v < groups:
            values = compute(buffer, v, source)
        others(buffer, source, target, groups)
        if v < groups:
            write(buffer, v, target, values)

    return step


@cache
def _analysing(of: RowFilters) -> DeviceFunction:
    """Device function: one level, its details to their place and its approximation to where its input was.

    The input begins behind the elements that extend it, the approximation of the ``coarsest`` level does not.
    """
    analyse, quad, before = (
        analysis(of.filter, of.lo, of.hi, of.padding),
        layout(of.padding).quad,
        up4(of.filter.lead) // 4,
    )

    @device
    def write(buffer, v, target, values):
        next_odd, details, coarsest = target
        store(buffer, details + 4 * v, values[4:])
        store(buffer, quad(v if coarsest else v + before, 0, next_odd), values[:4])

    return _in_place(of, device(lambda buffer, v, odd: analyse(buffer, v, 0, odd)), write)


@cache
def _synthesising(of: RowFilters) -> DeviceFunction:
    """Device function: one level but the finest, from its details to samples where its approximation was."""
    synthesise, pair = synthesis(of.filter, of.rec_lo, of.rec_hi, of.padding), layout(of.padding).pair

    @device
    def compute(buffer, v, source):
        odd, details = source
        return synthesise(buffer, v, 0, odd, details)

    @device
    def write(buffer, v, next_odd, values):
        first, second = pair(v, 0, next_odd)
        store(buffer, first, values[:4])
        store(buffer, second, values[4:])

    return _in_place(of, compute, write)


@cache
def _finest(of: RowFilters) -> DeviceFunction:
    """Device function: the samples of the row from its finest level."""
    synthesise, threads = synthesis(of.filter, of.rec_lo, of.rec_hi, of.padding), of.build.threads

    @device
    def finest(buffer, odd, source, target, at, samples, flags):
        v = cuda.threadIdx.x
        while 2 * PAIRS * v < samples:
            values, u = synthesise(buffer, v, 0, odd, source), 2 * PAIRS * v
            put(target.array, at + u, samples - u, values, target.aligned, flags)
            v += threads

    return finest


@cache
def _measuring(threads: int) -> DeviceFunction:
    """Device function: the sums of the squares of all bands, each in a fixed order, all at once.

    Every band has half the threads, or turns of one thread, of the band before.
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
def denoising(of: RowFilters, function: str, most: int) -> Kernel:
    """Kernel of a whole run of rows by any rule, so that another rule compiles nothing.

    At most ``most`` values of a band are compared with each other.
    """
    dtype, threads = of.build.dtype, of.build.threads
    number, itemsize = np.dtype(dtype).type, np.dtype(dtype).itemsize
    real, bits = np.dtype(dtype), np.dtype(f"i{itemsize}")
    warps = threads // 32
    own_table = 6 * MOST_LEVELS * (of.filter.lead + of.filter.taps) <= BINS  # which is free until a band is searched
    entries = 6 * (of.filter.lead + of.filter.taps)
    places, two_each = PLACES * (MOST_LEVELS + 1), 2 * MOST_LEVELS
    load, finest, extend = _loading(of), _finest(of), extending(of.filter, dtype, threads, of.padding)
    analyse, synthesise, measure = _analysing(of), _synthesising(of), _measuring(threads)
    select, widest, noise_of = selecting(4, threads, True), first_shift(4), noise(MEDIAN)
    linear, fixed, bayes = (threshold(rule, 1) for rule in RULES)
    shrunk, copy, find = shrink(function, dtype), copying(threads), finding(threads)

    @kernel(of.build, of, function, most, registers=REGISTERS)
    def denoise_rows(samples_in, samples_out, rows, levels, tables, how, flags):
        rule, searched, start, given, last = how
        layout, table, factors = tables
        x, samples, x_aligned = samples_in
        buffer, keys = cuda.shared.array(0, real), cuda.shared.array(0, bits)  # the same memory
        histogram = cuda.shared.array(BINS, np.int32)
        workspace = cuda.shared.array(WORKSPACE, np.int32)
        least = cuda.shared.array(1, bits)
        where = cuda.shared.array(places, np.int32)
        two_middles = cuda.shared.array(two_each, bits)
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
            analyse(buffer, where[i + ODD], (odd, where[i + DETAILS], level == levels - 1), groups)
            cuda.syncthreads()

        if rule == BAYES:
            measure(buffer, where, levels, sums, start, energy)
        for level in range(searched):
            begin, count = where[PLACES * level + DETAILS], where[PLACES * (level + 1) + LENGTH]
            if count > most:
                rank, even = np.int64((count - 1) >> 1), count & 1 == 0
                lower, upper = select(
                    keys, begin, count, np.int64(0), np.int64(widest), rank, even, histogram, workspace, least
                )
                if thread == 0:
                    two_middles[2 * level], two_middles[2 * level + 1] = lower, upper
            elif level % warps == thread >> 5:
                few(buffer, keys, begin, count, two_middles, 2 * level)
        find(x, source, samples, 0, last, flags)
        cuda.syncthreads()
        above = np.int32(0)
        if thread < levels:
            count, sigma = float(where[PLACES * (thread + 1) + LENGTH]), given
            if searched > 0:
                at = thread if searched > 1 else 0
                values = two_middles.view(real)
                sigma = noise_of(values[2 * at], values[2 * at + 1], count, factors[2 * levels + at])
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
            copy(x, samples_out.array, source, source + samples, flags)
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
            groups = (where[i + LENGTH] + 2 * PAIRS - 1) // (2 * PAIRS)
            synthesise(buffer, (where[i + PLACES + ODD], where[i + DETAILS]), where[i + ODD], groups)
            cuda.syncthreads()
        finest(buffer, where[PLACES + ODD], where[DETAILS], samples_out, source, samples, flags)

    return denoise_rows


def _half(f: Filter, length: int, padding: bool) -> int:
    """Return the elements of the even, or odd, quads of ``length`` samples and their extension."""
    return layout(padding).half(length + up4(f.lead) + 2 * f.taps + 16)


class OneBlock:
    """A denoising run of the rows of a plan, if there are `threads_for` it.

    The layout has for every level the length of its input, where the odd quads of that begin, and its details.
    """

    def __init__(
        self, shape: Shape, lengths: Sequence[int], build: Build, few: int, rule: str, sigma_of: str, function: str
    ) -> None:
        ((lo, hi, rec_lo, rec_hi),), (mode,) = shape.filters, shape.modes
        of = RowFilters(lo, hi, rec_lo, rec_hi, build)
        end = elements(of.filter, lengths, build.padding)
        sums = -(-end // 2)  # of squares, as float64 behind all else
        self.size = 2 * sums + (4 * build.threads if rule == "bayes" else 0)
        places = np.zeros((shape.level + 1, PLACES), np.int32)
        for level, n in enumerate(lengths):
            end -= up4(of.filter.length(n)) + SLACK
            places[level] = n, _half(of.filter, n, build.padding), end
        self._shape, self._threads, self._kernel = shape, build.threads, denoising(of, function, few)
        searched = {"level": shape.level, "global": min(shape.level, 1)}.get(sigma_of, 0)
        self._how = RULES.index(rule), searched, sums
        self._layout = cuda.to_device(places.ravel())
        self._table = cuda.to_device(extensions(of.filter, mode, lengths[:-1]))

    def launch(
        self, x: DeviceArray, y: DeviceArray, factors: DeviceArray, given: float, flags: DeviceArray, stream: Stream
    ) -> None:
        """Launch it from the flat array ``x`` to ``y``; ``factors`` and ``flags`` as for `thresholding.choose`."""
        s = self._shape
        rows = (Rows(flat, s.samples, interop.aligned(flat, s.rows, s.samples)) for flat in (x, y))
        launch = self._kernel[grid(1, s.rows), self._threads, stream, self.size * np.dtype(s.dtype).itemsize]
        tables = Tables(self._layout, self._table, factors)
        launch(*rows, s.rows, s.level, tables, How(*self._how, given, probes(s.samples)), flags)


def elements(f: Filter, lengths: Sequence[int], padding: bool) -> int:
    """Return the elements of shared memory for a row and its coefficients, with these ``lengths`` at every level."""
    most, bands = 0, 0
    for n in lengths:
        most = max(most, 2 * _half(f, n, padding) + bands)
        bands += up4(f.length(n)) + SLACK
    return most


def threads_for(shape: Shape, lengths: Sequence[int], medians: int, options: KernelOptions) -> int | None:
    """Return the threads of a block that denoises a row alone; None where that is not possible on this GPU, or slower.

    It is slower with 512 threads, which nearly all wait where the medians of several levels are searched.
    """
    (lo, *_), (mode,) = shape.filters[0], shape.modes
    f = Filter(len(lo), mode == "periodization")
    if f.periodized or f.taps > MOST_TAPS or shape.dtype != "float32" or not 0 < shape.level <= MOST_LEVELS:
        return None
    if elements(f, lengths, options.padding) * 4 + STATIC > shared_memory():
        return None
    groups = -(-lengths[1] // 4)
    most = len(options.one_block) - (medians > 1 or shape.rows * shape.samples > MOST_SAMPLES)
    return next((threads for threads in options.one_block[: max(most, 1)] if groups <= ROUNDS * threads), None)
