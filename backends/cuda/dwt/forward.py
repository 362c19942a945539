"""The forward kernel: a tile of one row through several levels in shared memory.

A thread computes four consecutive coefficients from consecutive quads of samples. Those with even numbers and those
with odd ones lie apart in shared memory, so that the quads that a warp reads at once are neighbours, and no two of its
threads meet in a bank.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from wavefilt.backends.cuda.runtime.compiler import kernel
from wavefilt.backends.cuda.runtime.interfaces import DeviceFunction, Kernel
from wavefilt.backends.cuda.runtime.target import cuda, device, in_turn
from wavefilt.backends.cuda.runtime.wide import Term, filters, load4, store
from wavefilt.wavelets import boundary

from .tiling import ROWS, Filter, FusedLevels, Tiling, forward_tiling, up4


def extensions(f: Filter, mode: str, lengths: Sequence[int]) -> NDArray[np.int32]:
    """How rows of these lengths, one a level, go on beyond their ends: three (index, factor) for every sample.

    A table made here rather than a map in the kernel, where its divisions would double the registers.
    """
    outside = [[*range(-f.lead, 0), *range(n, n + f.taps)] for n in lengths]
    code = boundary.code(mode)
    return np.array(
        [[boundary.extension(code, i, n) for i in row] for row, n in zip(outside, lengths, strict=True)], np.int32
    ).ravel()


def apart(n: int) -> int:
    """At least n, so that neighbouring quads in two halves lie in different banks."""
    return n + (16 - n) % 32


@device
def quad(v, even, odd):
    """Where quad v lies."""
    return (odd if v & 1 else even) + 4 * (v >> 1)


@device
def spot(t, even, odd):
    """Where element t lies."""
    return (odd if t & 4 else even) + 4 * (t >> 3) + (t & 3)


@dataclass(frozen=True)
class _Forward:
    """What a kernel is compiled for, and where it keeps what in shared memory."""

    of: FusedLevels

    @cached_property
    def cut(self) -> Tiling:
        return forward_tiling(self.of.filter, self.of.tile, self.of.levels)

    @cached_property
    def halves(self) -> tuple[int, int]:
        """Elements of one half (even or odd quads) of the finest level, and of the next."""
        taps, capacity = self.of.filter.taps, self.cut.capacity
        return apart((capacity + 2 * taps + 16) // 2), apart(((capacity + taps) // 2 + 2 * taps + 16) // 2)

    def places(self, level: int) -> tuple[int, int, int, int]:
        """Where the even and odd quads of a level's input begin, then those of the next level's."""
        finest, following = self.halves
        places = (0, finest, 2 * finest, 2 * finest + following)
        return places if level % 2 else places[2:] + places[:2]

    @property
    def shared(self) -> int:
        """Elements of shared memory."""
        return 2 * sum(self.halves)

    @cached_property
    def halo(self) -> int:
        """Samples that a tile reads before those under its coarsest coefficients."""
        return up4(self.of.filter.lead) * ((1 << self.of.levels) - 1)


def analysis(f: Filter, taps: Sequence[Sequence[float]]) -> DeviceFunction:
    """Device function: four consecutive coefficients of two filters with these ``taps``."""
    delta = up4(f.lead) - f.lead  # windows begin here, so that tiles can begin at multiples of four samples

    def term(tap: float, t: int) -> Term:
        return tap, t // 4 % 2, t // 8 * 4 + t % 4

    terms = [[term(h[::-1][k], delta + k + 2 * i) for k in range(f.taps)] for h in taps for i in range(4)]
    return filters(terms, 4)


@cache
def _analysis(of: FusedLevels) -> DeviceFunction:
    return analysis(of.filter, of.numbered)


@cache
def _loading(c: _Forward) -> DeviceFunction:
    """Device function: the samples of an interior tile, less ``mean``, into shared memory."""
    f, levels, threads = c.of.filter, c.of.levels, c.of.threads
    quads = (c.halo + c.of.tile + f.lag * ((1 << levels) - 1) + 3) >> 2
    rounds, rest = quads // threads, quads % threads
    even, odd, _, _ = c.places(1)

    @device
    def four(buffer, x, source, mean, v):
        a, b, c, d = load4(x, source + 4 * v)
        store(buffer, quad(v, even, odd), (a - mean, b - mean, c - mean, d - mean))

    @device
    def load(buffer, x, source, aligned, mean):
        thread = cuda.threadIdx.x
        if aligned:
            for j in range(rounds):
                four(buffer, x, source, mean, thread + j * threads)
            if thread < rest:
                four(buffer, x, source, mean, thread + rounds * threads)
        else:
            for t in range(thread, 4 * quads, threads):
                buffer[spot(t, even, odd)] = x[source + t] - mean

    return load


@cache
def _interior(c: _Forward, level: int) -> DeviceFunction:
    """Device function: a level of an interior tile, every size and place a constant."""
    threads, coarser, this = c.of.threads, c.of.levels - level, level - 1
    lead4, lag, size = up4(c.of.filter.lead), c.of.filter.lag, c.of.tile >> level
    start = lead4 * ((1 << coarser) - 1)
    groups = (start + size + lag * ((1 << coarser) - 1) + 3) >> 2
    rounds, rest = groups // threads, groups % threads
    first_group, last_group = start >> 2, (start + size) >> 2
    even, odd, next_even, next_odd = c.places(level)
    begins = (c.cut.left << coarser) - size - start
    analyse = _analysis(c.of)

    @device
    def four(buffer, details, target, approximation, coarse, v):
        s0, s1, s2, s3, d0, d1, d2, d3 = analyse(buffer, even + 4 * v, odd + 4 * v)
        if coarser > 0:
            store(buffer, quad(v, next_even, next_odd), (s0, s1, s2, s3))
        if first_group <= v < last_group:
            store(details, target + 4 * v, (d0, d1, d2, d3))
            if coarser == 0:
                store(approximation, coarse + 4 * v, (s0, s1, s2, s3))

    @device
    def step(buffer, details, begin, stride, approximation, row, index):
        thread = cuda.threadIdx.x
        coarse = row * stride[this] + index * size + begins
        target = begin[this] + coarse
        for j in range(rounds):  # constant, so that no warp computes when to stop
            four(buffer, details, target, approximation, coarse, thread + j * threads)
        if thread < rest:
            four(buffer, details, target, approximation, coarse, thread + rounds * threads)
        if coarser > 0:
            cuda.syncthreads()

    return step


@cache
def _boundary_loading(c: _Forward) -> DeviceFunction:
    """Device function: the samples of a boundary block, whose row lacks ``gap`` from ``joint`` on, less ``mean``."""
    threads, lead4 = c.of.threads, up4(c.of.filter.lead)
    even, odd, _, _ = c.places(1)

    @device
    def load(buffer, x, source, aligned, length, joint, gap, mean):
        thread = cuda.threadIdx.x
        quads = length >> 2 if aligned else 0
        for v in range(thread, quads, threads):
            i = 4 * v
            a, b, c, d = load4(x, source + (i if i < joint else i + gap))
            store(buffer, spot(i + lead4, even, odd), (a - mean, b - mean, c - mean, d - mean))
        for i in range(4 * quads + thread, length, threads):
            buffer[spot(i + lead4, even, odd)] = x[source + (i if i < joint else i + gap)] - mean

    return load


@cache
def extending(f: Filter, dtype: str, threads: int) -> DeviceFunction:
    """Device function: what lies beyond both ends of a level's row of ``length`` samples, by its part of the table."""
    number, taps, lead, lead4 = np.dtype(dtype).type, f.taps, f.lead, up4(f.lead)

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
def _boundary(c: _Forward) -> DeviceFunction:
    """Device function: the boundary block, the row without its middle, extended at both ends level by level."""
    levels, tile, threads, periodized, taps = c.of.levels, c.of.tile, c.of.threads, c.of.periodized, c.of.filter.taps
    left, seam, margin, lead4, places = c.cut.left, c.cut.seam, c.cut.margin, up4(c.of.filter.lead), c.places(1)
    load, analyse = _boundary_loading(c), _analysis(c.of)
    extend = extending(c.of.filter, c.of.dtype, threads)

    @device
    def both_ends(buffer, x, where, details, begin, approximation, table):
        source, aligned, mean, first, n, row, rows, tiles = where
        thread = cuda.threadIdx.x
        even, odd, next_even, next_odd = places
        gap = tiles * tile - (margin << levels) if tiles > 0 else 0
        length = n - gap  # of the boundary block's row
        load(buffer, x, source, aligned, length, seam << levels, gap, mean)
        for level in range(1, levels + 1):
            coarser = levels - level
            cuda.syncthreads()
            extend(buffer, table, first + level - 1, length, even, odd)
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
                s0, s1, s2, s3, d0, d1, d2, d3 = analyse(buffer, even + 4 * v, odd + 4 * v)
                u = 4 * v
                if coarser > 0:
                    store(buffer, spot(u + lead4, next_even, next_odd), (s0, s1, s2, s3))
                if u < kept or u >= start:
                    at = target + (u if u < kept else u + gap)
                    if u + 3 < length:
                        store(details, begin + at, (d0, d1, d2, d3))
                        if coarser == 0:
                            store(approximation, at, (s0, s1, s2, s3))
                    else:
                        for i in range(length - u):
                            details[begin + at + i] = d0 if i == 0 else d1 if i == 1 else d2
                            if coarser == 0:
                                approximation[at + i] = s0 if i == 0 else s1 if i == 1 else s2
            begin += rows * stride
            even, next_even = next_even, even
            odd, next_odd = next_odd, odd

    return both_ends


@cache
def forward(of: FusedLevels, fastmath: bool, centred: bool = False) -> Kernel:
    """Kernel of the levels ``of`` some filters, compiled with everything as constants.

    If ``centred``, of rows less their means.
    """
    c = _Forward(of)
    shared, number, tile = c.shared, np.dtype(of.dtype).type, of.tile
    origin = (c.cut.left << of.levels) - tile - c.halo
    load, both_ends = _loading(c), _boundary(c)
    interior, taps = in_turn(*(_interior(c, level) for level in range(1, of.levels + 1))), sum(of.numbered, ())

    @kernel(of.structure, centred, taps=taps, fastmath=fastmath)
    def forward_kernel(
        x, pitch, aligned, details, begin, stride, approximation, table, first, samples, rows, tiles, means
    ):
        """Details of the levels are from ``begin``, a row takes ``stride`` elements."""
        buffer = cuda.shared.array(shared, number)
        index = cuda.blockIdx.x
        row = cuda.blockIdx.y + ROWS * cuda.blockIdx.z
        if row >= rows:
            return
        source, mean = row * pitch, means[row] if centred else number(0)
        if index == 0:
            where = source, aligned, mean, first, samples, row, rows, tiles
            both_ends(buffer, x, where, details, begin[0], approximation, table)
            return
        load(buffer, x, source + (index * tile + origin), aligned, mean)
        cuda.syncthreads()
        interior(buffer, details, begin, stride, approximation, row, index)

    return forward_kernel
