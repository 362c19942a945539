"""Forward and inverse kernel of the DWT: a tile of a row through several levels in shared memory.

A launch has a block for each tile, and one for both ends of a row (`tiling`). Two levels, with reads and writes of
device memory at the sides:

    forward                                             inverse
    samples ->  [halo|......tile......|halo]            details 1 ->  [halo|..tile/2..|halo]  shrunk as they are loaded
                   [halo|..tile/2..|halo] -> details 1  details 2 ->     [halo|tile/4|halo]
                         [tile/4]         -> details 2  approximation -> [halo|tile/4|halo]
                         [tile/4]         -> approx.                  [halo|..tile/2..|halo]
                                                                   [......tile......]         -> samples

A thread computes four consecutive coefficients, or four pairs of samples, and accesses shared memory by quads of four
elements. Where threads access every second quad, even and odd quads are stored separately:

    plain    |0 |1 |2 |3 |4 |5 |6 |7 |...          two threads of each eight meet in a bank
    padded   |0 |2 |4 |6 |...|pad|1 |3 |5 |7 |...  none does: the halves are 16 banks apart
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wavefilt.backends.cuda.equal_runs import finding
from wavefilt.backends.cuda.runtime.compiler import kernel
from wavefilt.backends.cuda.runtime.interfaces import DeviceArray, DeviceFunction, Kernel
from wavefilt.backends.cuda.runtime.target import cuda, device, in_turn
from wavefilt.backends.cuda.runtime.wide import Term, filters, load4, store
from wavefilt.backends.cuda.thresholding import shrink
from wavefilt.wavelets import boundary

from .tiling import NOT_FINITE, ROWS, Filter, FusedLevels, Tiling, forward_tiling, inverse_tiling, up4

PAIRS = 4
"""Pairs of samples that a thread of the inverse computes at a time: more for each index and each sample read."""


class Rows(NamedTuple):
    """Rows in a flat array: elements from one to the next, and whether all begin at multiples of 16 bytes."""

    array: DeviceArray
    pitch: int
    aligned: bool


class Bands(NamedTuple):
    """Details of the levels of a launch: where each begins, elements from row to row; and the approximation."""

    details: DeviceArray
    begin: tuple[int, ...]
    stride: tuple[int, ...]
    approximation: DeviceArray


class Extent(NamedTuple):
    """The first level of a launch, counted from 0, the samples of a row there, the rows, and the interior tiles."""

    first: int
    samples: int
    rows: int
    tiles: int


class Probes(NamedTuple):
    """Probes for runs of equal samples in a row, and how many of them a block looks at."""

    all: int
    each: int


class Unchanged(NamedTuple):
    """Rows that are not ``live`` are copied from ``x`` if this launch ``copies``."""

    x: DeviceArray
    live: DeviceArray
    copies: bool


def bounds(of: FusedLevels, threads: int, taps: int) -> tuple[int, int] | None:
    """Return the launch bounds with which ``threads`` threads fit on a multiprocessor by their registers.

    None for filters with more than ``taps`` taps, float64 and periodized rows, which would spill.
    """
    light = of.build.dtype == "float32" and of.filter.taps <= taps and not of.periodized
    return (of.build.threads, threads // of.build.threads) if light else None


def extensions(f: Filter, mode: str, lengths: Sequence[int]) -> NDArray[np.int32]:
    """Return the extensions of rows with these ``lengths``, one a level: three pairs (index, factor) for every sample.

    A map in the kernel, with its divisions, would double the registers.
    """
    outside = [[*range(-f.lead, 0), *range(n, n + f.taps)] for n in lengths]
    code = boundary.code(mode)
    return np.array(
        [[boundary.extension(code, i, n) for i in row] for row, n in zip(outside, lengths, strict=True)], np.int32
    ).ravel()


class Layout:
    """The places of the elements of a level in shared memory, padded or plain: see the diagram.

    ``quad(v, even, odd)``, ``pair(v, even, odd)`` and ``spot(t, even, odd)`` are device functions: the place of quad v,
    the places of the quads 2v and 2v + 1, and the place of element t.
    """

    def __init__(self, padding: bool) -> None:
        self.padding = padding
        if padding:
            self.quad = device(lambda v, even, odd: (odd if v & 1 else even) + 4 * (v >> 1))
            self.pair = device(lambda v, even, odd: (even + 4 * v, odd + 4 * v))
            self.spot = device(lambda t, even, odd: (odd if t & 4 else even) + 4 * (t >> 3) + (t & 3))
        else:
            self.quad = device(lambda v, even, odd: even + 4 * v)
            self.pair = device(lambda v, even, odd: (even + 8 * v, even + 8 * v + 4))
            self.spot = device(lambda t, even, odd: even + t)

    def half(self, n: int) -> int:
        """Return the elements of the even, or of the odd, quads of n elements."""
        n = up4(n // 2)
        return n + (16 - n) % 32 if self.padding else n

    def window(self, t: int) -> tuple[int, int]:
        """Return the window and the place in it of element t from a quad on. Windows begin there and at the next quad.

        Plain elements are all in the first window.
        """
        return (t // 4 % 2, t // 8 * 4 + t % 4) if self.padding else (0, t)


@cache
def layout(padding: bool) -> Layout:
    """Return the one layout of its kind."""
    return Layout(padding)


@cache
def analysis(f: Filter, lo: tuple[float, ...], hi: tuple[float, ...], padding: bool) -> DeviceFunction:
    """Device function ``(buffer, v, even, odd)``: four consecutive coefficients of two filters, from quad 2v on."""
    delta = up4(f.lead) - f.lead  # windows begin here, so that tiles can begin at multiples of four samples
    window, pair = layout(padding).window, layout(padding).pair
    apply = filters(
        [[(h[::-1][k], *window(delta + k + 2 * i)) for k in range(f.taps)] for h in (lo, hi) for i in range(4)], 4
    )
    return device(lambda buffer, v, even, odd: apply(buffer, pair(v, even, odd)))


@cache
def synthesis(f: Filter, lo: tuple[float, ...], hi: tuple[float, ...], padding: bool) -> DeviceFunction:
    """Device function ``(buffer, v, even, odd, details)``: `PAIRS` pairs of samples, from quad v of both bands on.

    y[2p + s] = sum over j of rec[2j + parity] c[p + top - j]; the approximation is laid out by `Layout`, the details
    are one after the other.
    """
    window, quad, outputs = layout(padding).window, layout(padding).quad, list[list[Term]]()
    for pair in range(PAIRS):
        for s, top in enumerate(f.tops):
            parity, first = (f.lead + s) % 2, up4(f.low) + pair + top
            terms = list[Term]()
            for j in reversed(range(f.taps // 2)):
                low, high = (h[2 * j + parity] for h in (lo, hi))
                terms += [(low, *window(first - j)), (high, 2, first - j)]
            outputs.append(terms)
    apply = filters(outputs, PAIRS)

    @device
    def synthesise(buffer, v, even, odd, details):
        return apply(buffer, (quad(v, even, odd), quad(v + 1, even, odd), details + 4 * v))

    return synthesise


@dataclass(frozen=True)
class _Forward:
    """The constants of the forward kernel, and its use of shared memory."""

    of: FusedLevels

    @cached_property
    def layout(self) -> Layout:
        return layout(self.of.build.padding)

    @cached_property
    def cut(self) -> Tiling:
        return forward_tiling(self.of.filter, self.of.tile, self.of.levels)

    @cached_property
    def halves(self) -> tuple[int, int]:
        """Elements of one half (even or odd quads) of the finest level, and of the next."""
        taps, capacity = self.of.filter.taps, self.cut.capacity
        return self.layout.half(capacity + 2 * taps + 16), self.layout.half((capacity + taps) // 2 + 2 * taps + 16)

    def places(self, level: int) -> tuple[int, int, int, int]:
        """Return the begins of the even and odd quads of a level's input, then of the next level's."""
        finest, following = self.halves
        places = (0, finest, 2 * finest, 2 * finest + following)
        return places if level % 2 else places[2:] + places[:2]

    @cached_property
    def halo(self) -> int:
        """Samples that a tile reads before those under its coarsest coefficients."""
        return up4(self.of.filter.lead) * ((1 << self.of.levels) - 1)


@cache
def _loading(c: _Forward, most: int, quads: bool) -> DeviceFunction:
    """Device function: load ``length`` samples, at most ``most``, into shared memory, from element ``lead`` on.

    Samples from ``joint`` on are read ``gap`` samples further along the row. With ``quads``, ``length`` is always
    ``most``, a multiple of four.
    """
    threads = c.of.build.threads
    full, rounds = most // (4 * threads) if quads else 0, -(-most // (4 * threads))
    even, odd, _, _ = c.places(1)
    spot = c.layout.spot

    @device
    def load(buffer, rows, source, length, lead, joint, gap):
        x, begin = rows.array, 0
        if rows.aligned:
            begin = length >> 2 << 2
            for j in range(rounds):  # constant, so that loads are under way together
                i = 4 * (cuda.threadIdx.x + j * threads)
                if j < full or i < begin:
                    values = load4(x, source + (i if i < joint else i + gap))
                    store(buffer, spot(i + lead, even, odd), values)
        if not (quads and rows.aligned):
            for i in range(begin + cuda.threadIdx.x, length, threads):
                buffer[spot(i + lead, even, odd)] = x[source + (i if i < joint else i + gap)]

    return load


@cache
def _analysing(c: _Forward, level: int) -> DeviceFunction:
    """Device function: a level of an interior tile, every size and place a constant."""
    threads, coarser, this = c.of.build.threads, c.of.levels - level, level - 1
    lead4, lag, size = up4(c.of.filter.lead), c.of.filter.lag, c.of.tile >> level
    start = lead4 * ((1 << coarser) - 1)
    groups = (start + size + lag * ((1 << coarser) - 1) + 3) >> 2
    rounds, rest = groups // threads, groups % threads
    first_group, last_group = start >> 2, (start + size) >> 2
    even, odd, next_even, next_odd = c.places(level)
    begins = (c.cut.left << coarser) - size - start
    analyse, quad = analysis(c.of.filter, c.of.lo, c.of.hi, c.of.build.padding), c.layout.quad

    @device
    def four(buffer, bands, target, coarse, v):
        s0, s1, s2, s3, d0, d1, d2, d3 = analyse(buffer, v, even, odd)
        if coarser > 0:
            store(buffer, quad(v, next_even, next_odd), (s0, s1, s2, s3))
        if first_group <= v < last_group:
            store(bands.details, target + 4 * v, (d0, d1, d2, d3))
            if coarser == 0:
                store(bands.approximation, coarse + 4 * v, (s0, s1, s2, s3))

    @device
    def step(buffer, bands, row, index):
        thread = cuda.threadIdx.x
        coarse = row * bands.stride[this] + index * size + begins
        target = bands.begin[this] + coarse
        for j in range(rounds):  # constant, so that no warp computes when to stop
            four(buffer, bands, target, coarse, thread + j * threads)
        if thread < rest:
            four(buffer, bands, target, coarse, thread + rounds * threads)
        if coarser > 0:
            cuda.syncthreads()

    return step


@cache
def extending(f: Filter, dtype: str, threads: int, padding: bool) -> DeviceFunction:
    """Device function: the extension at both ends of a level's row of ``length`` samples, by its part of the table."""
    number, taps, lead, lead4 = np.dtype(dtype).type, f.taps, f.lead, up4(f.lead)
    spot = layout(padding).spot

    @device
    def extend(buffer, table, level, length, even, odd):
        t = cuda.threadIdx.x
        while t < lead + taps:  # no range, whose length would be computed
            i = t - lead if t < lead else length + t - lead
            entry = 6 * (level * (lead + taps) + t)
            value = number(0)
            for k in range(entry, entry + 6, 2):
                value += number(table[k + 1]) * buffer[spot(table[k] + lead4, even, odd)]
            buffer[spot(i + lead4, even, odd)] = value
            t += threads

    return extend


@cache
def _analysing_both_ends(c: _Forward) -> DeviceFunction:
    """Device function: the boundary block, the row without its middle, extended at both ends level by level."""
    levels, tile, threads, periodized = c.of.levels, c.of.tile, c.of.build.threads, c.of.periodized
    left, seam, margin, lead4, taps = c.cut.left, c.cut.seam, c.cut.margin, up4(c.of.filter.lead), c.of.filter.taps
    places, spot = c.places(1), c.layout.spot
    load, analyse = _loading(c, c.cut.capacity, False), analysis(c.of.filter, c.of.lo, c.of.hi, c.of.build.padding)
    extend = extending(c.of.filter, c.of.build.dtype, threads, c.of.build.padding)

    @device
    def both_ends(buffer, rows, bands, extent, table, row):
        thread, n, begin, tiles = cuda.threadIdx.x, extent.samples, bands.begin[0], extent.tiles
        even, odd, next_even, next_odd = places
        gap = tiles * tile - (margin << levels) if tiles > 0 else 0
        length = n - gap  # of the boundary block's row
        load(buffer, rows, row * rows.pitch, length, lead4, seam << levels, gap)
        for level in range(1, levels + 1):
            coarser = levels - level
            cuda.syncthreads()
            extend(buffer, table, extent.first + level - 1, length, even, odd)
            cuda.syncthreads()
            n = (n + 1) >> 1 if periodized else (n + taps - 1) >> 1
            stride = (n + 3) & ~3
            # coefficients below ``kept`` and from ``start`` on are this block's to write
            gap >>= 1
            length = n - gap
            kept = left << coarser
            start = kept + (margin << coarser) if tiles > 0 else kept
            target = row * stride
            for v in range(thread, (length + 3) >> 2, threads):
                s0, s1, s2, s3, d0, d1, d2, d3 = analyse(buffer, v, even, odd)
                u = 4 * v
                if coarser > 0:
                    store(buffer, spot(u + lead4, next_even, next_odd), (s0, s1, s2, s3))
                if u < kept or u >= start:
                    at = target + (u if u < kept else u + gap)
                    store(bands.details, begin + at, (d0, d1, d2, d3))  # rows have room for whole quads
                    if coarser == 0:
                        store(bands.approximation, at, (s0, s1, s2, s3))
            begin += extent.rows * stride
            even, next_even = next_even, even
            odd, next_odd = next_odd, odd

    return both_ends


@cache
def forward(of: FusedLevels) -> Kernel:
    """Kernel of the levels ``of`` some filters, compiled with everything as constants."""
    c = _Forward(of)
    shared, number, tile = 2 * sum(c.halves), np.dtype(of.build.dtype).type, of.tile
    origin = (c.cut.left << of.levels) - tile - c.halo
    length = up4(c.halo + tile + of.filter.lag * ((1 << of.levels) - 1))  # of a tile and its halo
    load, both_ends, find = _loading(c, length, True), _analysing_both_ends(c), finding(of.build.threads)
    interior = in_turn(*(_analysing(c, level) for level in range(1, of.levels + 1)))

    @kernel(of.build, of, bounds=bounds(of, 1536, 16))
    def forward_kernel(samples, bands, extent, table, probes, flags):
        buffer = cuda.shared.array(shared, number)
        index = cuda.blockIdx.x
        row = cuda.blockIdx.y + ROWS * cuda.blockIdx.z
        if row >= extent.rows:
            return
        if index == 0:
            both_ends(buffer, samples, bands, extent, table, row)
        else:
            load(buffer, samples, row * samples.pitch + (index * tile + origin), length, 0, length, 0)
            cuda.syncthreads()
            interior(buffer, bands, row, index)
        first = index * probes.each  # near its tile, where samples are in the cache
        find(samples.array, row * samples.pitch, extent.samples, first, min(first + probes.each, probes.all), flags)

    return forward_kernel


@dataclass(frozen=True)
class _Inverse:
    """The constants of the inverse kernel. Shared memory holds the details of all levels, then two approximations.

    All are plain: with padding there are two fewer conflicts in eight accesses, but more addresses.
    """

    of: FusedLevels
    function: str

    @cached_property
    def cut(self) -> Tiling:
        return inverse_tiling(self.of.filter, self.of.tile, self.of.levels)

    @property
    def before(self) -> int:
        """A tile's halo at every level is twice this, and `after`."""
        return up4(self.of.filter.low)

    @property
    def after(self) -> int:
        return up4(2 * self.of.filter.high)

    @property
    def halo(self) -> int:
        return 2 * self.before + self.after

    @property
    def room(self) -> int:
        """Elements of a level in shared memory beyond its coefficients."""
        return self.of.filter.taps + self.halo + 8

    @cached_property
    def sizes(self) -> list[int]:
        """Elements of each level's details."""
        return [up4((self.cut.capacity >> level) + self.room) for level in range(1, self.of.levels + 1)]

    def place(self, level: int) -> int:
        """Return the begin of a level's approximation; levels use two places in turn."""
        return sum(self.sizes) + (0 if level & 1 else self.sizes[0])

    @property
    def shared(self) -> int:
        """Elements of shared memory."""
        return self.place(0) + sum(self.sizes[1:2])


@device
def check(total, flags):
    """Flag a sum that is not finite: details that overflowed make such samples."""
    if total - total != 0:
        flags[NOT_FINITE] = 1


@cache
def copying(threads: int) -> DeviceFunction:
    """Device function: a stretch of samples as they are."""

    @device
    def copy(x, y, start, stop, flags):
        for i in range(start + cuda.threadIdx.x, stop, threads):
            y[i] = x[i]
            check(x[i], flags)

    return copy


@device
def put(y, at, count, values, aligned, flags):
    """Write the first ``count`` of eight samples, and flag any that is not finite.

    Samples at the end of a row, or of rows that are not aligned, are written one by one, in a loop; unrolling it would
    make kernels spill registers.
    """
    y0, y1, y2, y3, y4, y5, y6, y7 = values
    if aligned and count >= 8:
        store(y, at, values)
        check((y0 + y1) + (y2 + y3) + (y4 + y5) + (y6 + y7), flags)
        return
    for i in range(min(count, 8)):
        value = y0 if i == 0 else y1 if i == 1 else y2 if i == 2 else y3 if i == 3 else y4
        value = y5 if i == 5 else y6 if i == 6 else y7 if i == 7 else value
        y[at + i] = value
        check(value, flags)


@cache
def _shrinking_both_ends(c: _Inverse) -> DeviceFunction:
    """Device function: a level of a boundary block, whose row lacks ``gap`` coefficients from ``joint`` on."""
    threads, periodized, before, after = c.of.build.threads, c.of.periodized, c.before, c.after
    shrunk, approximation = shrink(c.function, c.of.build.dtype), c.place(c.of.levels)

    @device
    def load(buffer, bands, begin, source, place, length, joint, gap, coarsest, t):
        thread = cuda.threadIdx.x
        if periodized:
            for v in range(thread, length + 2 * before + after, threads):
                m = (v - 2 * before) % length
                at = source + (m if m < joint else m + gap)
                buffer[place + v] = shrunk(bands.details[begin + at], t)
                if coarsest:
                    buffer[approximation + v] = bands.approximation[at]
        else:  # no coefficient from beyond the ends is used
            for v in range(thread, (length + 3) >> 2, threads):
                at = source + 4 * v + (0 if 4 * v < joint else gap)
                d0, d1, d2, d3 = load4(bands.details, begin + at)
                q = 2 * before + 4 * v
                store(buffer, place + q, (shrunk(d0, t), shrunk(d1, t), shrunk(d2, t), shrunk(d3, t)))
                if coarsest:
                    store(buffer, approximation + q, load4(bands.approximation, at))

    return load


@cache
def _synthesising_both_ends(c: _Inverse) -> DeviceFunction:
    """Device function: ``count`` samples of a level of a boundary block, into shared memory or (finest) into rows."""
    threads, left, margin = c.of.build.threads, c.cut.left << c.of.levels, c.cut.left + c.cut.margin << c.of.levels
    synthesise = synthesis(c.of.filter, c.of.lo, c.of.hi, False)

    @device
    def compute(buffer, place, halo, source, output, count, finer, rows, start, tiles, gap, flags):
        for v in range(cuda.threadIdx.x, (count + 7) >> 3, threads):
            values = synthesise(buffer, v + (halo >> 2), source, 0, place)
            if finer > 0:
                store(buffer, output + 8 * v, values)
                continue
            u = 8 * v
            at = start + u
            if tiles > 0 and u >= left:
                if u < margin:
                    continue
                at += gap
            put(rows.array, at, count - u, values, rows.aligned, flags)

    return compute


@cache
def _both_ends(c: _Inverse) -> DeviceFunction:
    """Device function: the boundary block, the row without its middle."""
    levels, tile, threads, periodized = c.of.levels, c.of.tile, c.of.build.threads, c.of.periodized
    seam, margin, capacity, room, before, after = c.cut.seam, c.cut.margin, c.cut.capacity, c.room, c.before, c.after
    number, keeps, taps = np.dtype(c.of.build.dtype).type, c.function == "keep", c.of.filter.taps
    first, second = c.place(1), c.place(0)
    load, compute = _shrinking_both_ends(c), _synthesising_both_ends(c)

    @device
    def both_ends(buffer, bands, thresholds, rows, extent, row, flags):
        thread, tiles = cuda.threadIdx.x, extent.tiles
        gap = tiles * tile - (margin << levels) if tiles > 0 else 0
        n, place, begin = extent.samples, 0, bands.begin[0]
        for level in range(1, levels + 1):
            n = (n + 1) >> 1 if periodized else (n + taps - 1) >> 1
            stride = (n + 3) & ~3
            coarser = levels - level
            t = number(0) if keeps else thresholds[(extent.first + level - 1) * extent.rows + row]
            here = gap >> level
            load(buffer, bands, begin, row * stride, place, n - here, seam << coarser, here, coarser == 0, t)
            begin += extent.rows * stride
            place += ((capacity >> level) + room + 3) & ~3
        cuda.syncthreads()

        for level in range(levels, 0, -1):
            finer = level - 1
            place -= ((capacity >> level) + room + 3) & ~3
            source, output = (first, second) if level & 1 else (second, first)
            length = extent.samples
            for _ in range(finer):
                length = (length + 1) >> 1 if periodized else (length + taps - 1) >> 1
            length -= gap >> finer
            count, halo = (length + 2 * before + after, 0) if finer > 0 else (length, before)
            start = row * rows.pitch
            compute(buffer, place, halo, source, output, count, finer, rows, start, tiles, gap, flags)
            cuda.syncthreads()
            if periodized and finer > 0:
                for t in range(thread, 2 * before + after, threads):
                    m = t if t < 2 * before else length + t
                    inside = 2 * before + (m - 2 * before) % length
                    buffer[output + m] = buffer[output + inside]
                cuda.syncthreads()

    return both_ends


@cache
def _shrinking(c: _Inverse, parts: tuple[tuple[int, int, int], ...]) -> DeviceFunction:
    """Device function: groups of four details into shared memory, shrunk, and the approximation.

    A part is a level, its first group and the number of groups, at most one a thread. All loads come before the
    first store, so that they are under way together.
    """
    (level, first_group, groups), *later = parts
    threads, number, keeps = c.of.build.threads, np.dtype(c.of.build.dtype).type, c.function == "keep"
    coarser, this, size = c.of.levels - level, level - 1, c.of.tile >> level
    place, approximation = sum(c.sizes[:this]), c.place(level)
    begins, shrunk = (c.cut.left << coarser) - size - 2 * c.before, shrink(c.function, c.of.build.dtype)
    others = _shrinking(c, tuple(later)) if later else None

    @device
    def load(buffer, bands, thresholds, extent, row, index):
        v = cuda.threadIdx.x + first_group
        coarse = row * bands.stride[this] + index * size + begins + 4 * v
        d0 = d1 = d2 = d3 = a0 = a1 = a2 = a3 = number(0)
        if groups == threads or cuda.threadIdx.x < groups:
            d0, d1, d2, d3 = load4(bands.details, bands.begin[this] + coarse)
            if coarser == 0:
                a0, a1, a2, a3 = load4(bands.approximation, coarse)
        if others is not None:
            others(buffer, bands, thresholds, extent, row, index)
        t = number(0) if keeps else thresholds[(extent.first + this) * extent.rows + row]
        if groups == threads or cuda.threadIdx.x < groups:
            store(buffer, place + 4 * v, (shrunk(d0, t), shrunk(d1, t), shrunk(d2, t), shrunk(d3, t)))
            if coarser == 0:
                store(buffer, approximation + 4 * v, (a0, a1, a2, a3))

    return load


@cache
def _synthesising(c: _Inverse, level: int) -> DeviceFunction:
    """Device function: synthesise a level of an interior tile from shared memory.

    The result is in shared memory or, at the finest level, among the samples.
    """
    threads, details, source = c.of.build.threads, sum(c.sizes[: level - 1]), c.place(level)
    target, finest = c.place(level - 1), level == 1
    first, groups = (c.before // 4, c.of.tile // 8) if finest else (0, -(-((c.of.tile >> level - 1) + c.halo) // 8))
    rounds, rest = groups // threads, groups % threads
    synthesise = synthesis(c.of.filter, c.of.lo, c.of.hi, False)

    @device
    def group(buffer, y, at, aligned, flags, v):
        values = synthesise(buffer, v + first, source, 0, details)
        if finest:
            put(y, at + 8 * v, 8, values, aligned, flags)
        else:
            store(buffer, target + 8 * v, values)

    @device
    def step(buffer, y, at, aligned, flags):
        for j in range(rounds):
            group(buffer, y, at, aligned, flags, cuda.threadIdx.x + j * threads)
        if cuda.threadIdx.x < rest:
            group(buffer, y, at, aligned, flags, cuda.threadIdx.x + rounds * threads)
        if not finest:
            cuda.syncthreads()

    return step


@cache
def inverse(of: FusedLevels, function: str) -> Kernel:
    """Kernel of the levels ``of`` some reconstruction filters, details shrunk by ``function``; see `forward`."""
    c = _Inverse(of, function)
    levels, tile, threads, shared = of.levels, of.tile, of.build.threads, c.shared
    left, number = c.cut.left, np.dtype(of.build.dtype).type
    quads = [((tile >> level) + c.halo) >> 2 for level in range(1, levels + 1)]
    load = _shrinking(
        c, tuple((i + 1, v, min(n - v, threads)) for i, n in enumerate(quads) for v in range(0, n, threads))
    )
    synthesise = in_turn(*(_synthesising(c, level) for level in range(levels, 0, -1)))
    both_ends, copy = _both_ends(c), copying(threads)

    # 48 registers, and 40 in `forward`, are the fastest on an H200; garrote and firm divide, and would spill
    own = None if function in ("garrote", "firm") else bounds(of, 1280, 32)

    @kernel(of.build, of, function, bounds=own)
    def inverse_kernel(bands, thresholds, samples, extent, unchanged, flags):
        buffer = cuda.shared.array(shared, number)
        index = cuda.blockIdx.x
        row, tiles, y, pitch = cuda.blockIdx.y + ROWS * cuda.blockIdx.z, extent.tiles, samples.array, samples.pitch
        if row >= extent.rows:
            return
        at = row * pitch + (left << levels) + (index - 1) * tile
        if unchanged.copies and unchanged.live[row] == 0:  # all of its thresholds are 0
            if index == 0:
                last = at + (1 + tiles) * tile
                copy(unchanged.x, y, row * pitch, min(at + tile, (row + 1) * pitch), flags)
                copy(unchanged.x, y, last, (row + 1) * pitch, flags)
            else:
                copy(unchanged.x, y, at, at + tile, flags)
            return
        if index == 0:
            both_ends(buffer, bands, thresholds, samples, extent, row, flags)
            return
        load(buffer, bands, thresholds, extent, row, index)
        cuda.syncthreads()
        synthesise(buffer, y, at, samples.aligned, flags)

    return inverse_kernel
