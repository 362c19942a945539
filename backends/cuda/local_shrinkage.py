"""Local James-Stein shrinkage of the bands of a DWT and of a MODWT on the device.

For the definition see `wavefilt.thresholding.local`. For decimated bands a block has a tile of some
consecutive ones. It puts their energies, and the energies of the adjacent bands, into shared memory, then shrinks its
own coefficients by them:

    band 1   [..|........tile........|..]     energies of a tile and around it, in one array
    band 2      [..|....tile....|..]
    band 3         [..|..tile..|..]           only as the neighbour of band 2

Bands of a MODWT have a coefficient for each sample: a thread has one time, and goes through the bands with the energies
of three of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from wavefilt.arrays import Counts
from wavefilt.backends.cuda.dwt.tiling import ROWS, up4
from wavefilt.backends.cuda.options import LocalSizes
from wavefilt.backends.cuda.runtime.compiler import kernel
from wavefilt.backends.cuda.runtime.interfaces import Build, DeviceFunction, Kernel
from wavefilt.backends.cuda.runtime.target import cuda, device, in_turn
from wavefilt.backends.cuda.runtime.wide import filters, load4, quotient, store
from wavefilt.thresholding.local import NEXT, OWN, REACH, Grid, weights

WIDE_LEAST = 72
"""The fewest coefficients of a wide tile in its coarsest band; a multiple of four, also in the neighbour beyond."""
WARP = 32

Link = tuple[int, int, int, int]
"""The two nearest coefficients of an adjacent band to each of two, from the place that the first of the two has there.

That is 4p, 2p or p for the p-th two of a tile.
"""


@dataclass(frozen=True)
class Tile:
    """The constants of a kernel: bands with ``sizes`` coefficients of a tile each, finest first.

    With ``finer``, the first band is only a neighbour of others; with ``coarser``, the last. Each band has ``links`` to
    the next finer and the next coarser band, if there are such.
    """

    build: Build
    periodic: bool
    sizes: tuple[int, ...]
    finer: bool
    coarser: bool
    links: tuple[tuple[Link | None, Link | None], ...]

    @property
    def own(self) -> range:
        """The bands that are shrunk."""
        return range(self.finer, len(self.sizes) - self.coarser)

    @cached_property
    def reaches(self) -> list[tuple[int, int]]:
        """The energies of each band that are needed before the tile and after it, multiples of four."""
        found = []
        for j, size in enumerate(self.sizes):
            first, last = 0, size - 1
            for i, side in ((j + 1, 0), (j - 1, 1)):
                link = self.links[i][side] if i in self.own else None
                if link is not None:
                    first = min(first, *link)
                    last = max(last, (self.sizes[i] // 2 - 1) * self.step(i, j) + max(link))
            found.append((up4(-first), up4(last + 1 - size)))
        return found

    def step(self, i: int, j: int) -> int:
        """Return the coefficients of the adjacent band j for two of band i."""
        return 2 * self.sizes[j] // self.sizes[i]

    def length(self, band: int) -> int:
        """Return the energies of a band."""
        return sum(self.reaches[band]) + self.sizes[band]

    def place(self, band: int) -> int:
        """Return the begin of the tile of a band in shared memory."""
        return sum(self.length(i) for i in range(band)) + self.reaches[band][0]

    @property
    def shared(self) -> int:
        """Elements of shared memory."""
        return sum(map(self.length, range(len(self.sizes))))


@dataclass(frozen=True)
class Launch:
    """The bands from ``first`` on, one after the other, in ``tiles`` tiles a row."""

    first: int
    tiles: int
    tile: Tile

    @property
    def bands(self) -> range:
        return range(self.first, self.first + len(self.tile.sizes))


@lru_cache(maxsize=256)
def launches(grids: tuple[Grid, ...], build: Build, rows: int, sizes: LocalSizes) -> list[Launch]:
    """Return launches for bands with these grids, finest first: together as long as tiles have enough coefficients.

    Tiles are half as large where the next finer band, with twice the coefficients, is a neighbour.
    """
    itemsize, least, made, begin = np.dtype(build.dtype).itemsize, sizes.least, list[Launch](), 0
    largest_tile, wide, count = sizes.tile // itemsize, sizes.wide // itemsize, grids[0].count
    if rows * count < sizes.fill * largest_tile:
        largest_tile //= 4
    elif -(-count // wide) * wide < 0.9 * (-(-count // largest_tile) * largest_tile):
        largest_tile, least = wide, WIDE_LEAST
    while begin < len(grids):
        finest = largest_tile // 2 if begin else largest_tile
        largest = finest * grids[begin].step // least
        end = next((i for i, grid in enumerate(grids) if grid.step > largest), len(grids))
        first, last = max(begin - 1, 0), min(end + 1, len(grids))
        own = tuple(finest * grids[begin].step // grid.step for grid in grids[first:last])
        links = tuple(
            (_link(grids, i, i - 1) if i > first else None, _link(grids, i, i + 1) if i + 1 < last else None)
            for i in range(first, last)
        )
        tile = Tile(build, grids[0].periodic, own, first < begin, end < last, links)
        tiles = max(-(-grids[first + i].count // own[i]) for i in tile.own)
        made.append(Launch(first, tiles, tile))
        begin = end
    return made


def _link(grids: Sequence[Grid], i: int, j: int) -> Link:
    low, high = grids[i].nearest(slice(0, 2), grids[j])
    return int(low[0]), int(high[0]), int(low[1]), int(high[1])


@cache
def at_the_edge(dtype: str, periodic: bool) -> DeviceFunction:
    """Device function: the energy at a coefficient wherever it lies, beyond the ends as `Grid.inside` has it."""
    number = np.dtype(dtype).type
    zero, one, ratio = number(0), number(1), number(NEXT)

    @device
    def edge(source, start, count, spacing, k, scale):
        total, there, weight = zero, zero, one
        k = k % count if periodic else min(max(k, 0), count - 1)
        for m in range(REACH + 1):
            for side in range(2 if m else 1):
                i = k + m * spacing if side else k - m * spacing
                i = i % count if periodic else i
                if 0 <= i < count:
                    w = source[start + i] * scale
                    total += weight * (w * w)
                    there += weight
            weight *= ratio
        return quotient(total, there)

    return edge


@cache
def _first_of(threads: int, others: int) -> DeviceFunction:
    """Device function: this thread's first item, where ``others`` come before: all have as much to do then."""
    turn = others % threads

    @device
    def first():
        thread = cuda.threadIdx.x + (threads - turn)
        return thread if thread < threads else thread - threads

    return first


@cache
def _measuring(c: Tile, band: int) -> DeviceFunction:
    """Device function: the energies of a band into shared memory, or 0 if it is unchanged."""
    threads, number = c.build.threads, np.dtype(c.build.dtype).type
    size, (head, tail), groups = c.sizes[band], c.reaches[band], c.length(band) // 4
    begin, first_of = c.place(band) - head, _first_of(threads, c.place(band) // 4)
    coarser = band + 1 if band + 1 in c.own else band
    step = c.step(coarser, band)
    rounds, rest = groups // threads, groups % threads
    zero, edge = number(0), at_the_edge(c.build.dtype, c.periodic)
    ratio, share = number(NEXT), number(weights(REACH)[REACH])
    first_end = _first_of(threads, band * WARP)  # each band's ends are for another warp
    assert REACH == 4  # the coefficients loaded to either side

    @device
    def square(w, scale):
        w *= scale
        return w * w

    @device
    def mean(own, first, second, third, fourth):
        return (own + ratio * (first + ratio * (second + ratio * (third + ratio * fourth)))) * share

    @device
    def group(energies, source, at, scale, v):
        a0, a1, a2, a3 = load4(source, at + 4 * v - 4)
        b0, b1, b2, b3 = load4(source, at + 4 * v)
        c0, c1, c2, c3 = load4(source, at + 4 * v + 4)
        a0, a1, a2, a3 = square(a0, scale), square(a1, scale), square(a2, scale), square(a3, scale)
        b0, b1, b2, b3 = square(b0, scale), square(b1, scale), square(b2, scale), square(b3, scale)
        c0, c1, c2, c3 = square(c0, scale), square(c1, scale), square(c2, scale), square(c3, scale)
        found = (
            mean(b0, a3 + b1, a2 + b2, a1 + b3, a0 + c0),
            mean(b1, b0 + b2, a3 + b3, a2 + c0, a1 + c1),
            mean(b2, b1 + b3, b0 + c0, a3 + c1, a2 + c2),
            mean(b3, b2 + c0, b1 + c1, b0 + c2, a3 + c3),
        )
        store(energies, begin + 4 * v, found)

    @device
    def at_the_ends(energies, source, start, counts, k, scale, thread):
        """Compute whole groups inside the band, from ``low`` to ``high``, and the other energies, one per thread.

        Energies beyond ``end`` are not needed, because coarser bands end later than finer ones.
        """
        count = counts[band]
        end = min(max(count, (counts[coarser] + 1 >> 1) * step) + tail - k + 3 >> 2, groups)
        low = min(max(7 - k >> 2, 0), end)
        high = min(max((count - 8 - k >> 2) + 1, low), end)
        v = low + thread
        while v < high:
            group(energies, source, start + k, scale, v)
            v += threads
        i = first_end()
        while i < 4 * (low + end - high):
            place = i if i < 4 * low else i + 4 * (high - low)
            energies[begin + place] = edge(source, start, count, 1, k + place, scale)
            i += threads

    @device
    def measure(energies, scales, source, begins, strides, counts, row, tile):
        scale, thread, k = scales[band], first_of(), tile * size - head
        start = begins[band] + row * strides[band]
        if scale == 0:
            for v in range(thread, groups, threads):
                store(energies, begin + 4 * v, (zero, zero, zero, zero))
        elif k >= 4 and k + 4 * groups + 4 <= counts[band]:
            for j in range(rounds):  # constant, so that no warp computes when to stop
                group(energies, source, start + k, scale, thread + j * threads)
            if thread < rest:
                group(energies, source, start + k, scale, thread + rounds * threads)
        else:
            at_the_ends(energies, source, start, counts, k, scale, thread)

    return measure


@cache
def _adding(c: Tile, i: int, j: int) -> DeviceFunction:
    """Device function: four energies of band i plus the energies of the adjacent band j at the same places."""
    if j not in range(len(c.sizes)):
        return device(lambda energies, v, found: found)
    (a, b, d, e), step = c.links[i][0 if j < i else 1] or (0, 0, 0, 0), c.step(i, j)
    width = min(2 * step, 4)
    begin = min(a, b, d, e) // width * width  # elements read at a time
    places = [(a, b), (d, e), (a + step, b + step), (d + step, e + step)]
    first, between = c.place(j) + begin, filters([[(0.5, 0, p - begin) for p in two] for two in places], width)

    @device
    def add(energies, v, found):
        a, b, c, d = between(energies, (first + 2 * step * v,))
        return found[0] + a, found[1] + b, found[2] + c, found[3] + d

    return add


@cache
def _shrinking(c: Tile, band: int) -> DeviceFunction:
    """Device function: a band's own coefficients of a tile, shrunk by its energies and the adjacent bands'."""
    threads, number, size, place = c.build.threads, np.dtype(c.build.dtype).type, c.sizes[band], c.place(band)
    first_of, one, zero = _first_of(threads, sum(c.sizes[c.own[0] : band]) // 4), number(1), number(0)
    rounds, rest, own = size // 4 // threads, size // 4 % threads, number(OWN)
    add_finer, add_coarser = (_adding(c, band, adjacent) for adjacent in (band - 1, band + 1))
    finer, coarser = max(band - 1, 0), min(band + 1, len(c.sizes) - 1)

    @device
    def shrunk(d, energy, count):
        return d * (one - quotient(count, energy) if energy > count else zero)

    @device
    def group(energies, source, target, start, count, v):
        d0, d1, d2, d3 = load4(source, start + 4 * v)
        if count > 0:
            e0, e1, e2, e3 = load4(energies, place + 4 * v)
            e0, e1, e2, e3 = add_finer(energies, v, (own * e0, own * e1, own * e2, own * e3))
            e0, e1, e2, e3 = add_coarser(energies, v, (e0, e1, e2, e3))
            d0, d1, d2, d3 = shrunk(d0, e0, count), shrunk(d1, e1, count), shrunk(d2, e2, count), shrunk(d3, e3, count)
        store(target, start + 4 * v, (d0, d1, d2, d3))

    @device
    def shrink(energies, scales, source, target, begins, strides, counts, row, tile):
        start, thread, count = begins[band] + row * strides[band] + tile * size, first_of(), zero
        if scales[band] > 0:
            count = own
            if finer < band and scales[finer] > 0:
                count += one
            if coarser > band and scales[coarser] > 0:
                count += one
        if (tile + 1) * size <= counts[band]:
            for j in range(rounds):
                group(energies, source, target, start, count, thread + j * threads)
            if thread < rest:
                group(energies, source, target, start, count, thread + rounds * threads)
        else:
            for v in range(thread, counts[band] - tile * size + 3 >> 2, threads):
                group(energies, source, target, start, count, v)

    return shrink


class Places(NamedTuple):
    """The begins of some bands, elements from row to row, and coefficients of a row."""

    begins: tuple[int, ...]
    strides: tuple[int, ...]
    counts: tuple[int, ...]


@cache
def shrinking(c: Tile) -> Kernel:
    """Kernel that writes coefficients of some bands shrunk to the places in ``target`` that they have in ``source``."""
    number, shared, threads, bands = np.dtype(c.build.dtype).type, c.shared, c.build.threads, len(c.sizes)
    most = number(np.finfo(c.build.dtype).max)
    measure = in_turn(*(_measuring(c, band) for band in range(bands)))
    shrink = in_turn(*(_shrinking(c, band) for band in c.own))

    @kernel(c.build, c)
    def local_kernel(source, target, places, thresholds, first, rows):
        """Thresholds of all bands are given, from band ``first`` here on; bands with threshold 0 are unchanged."""
        begins, strides, counts = places
        energies = cuda.shared.array(shared, number)
        scales = cuda.shared.array(bands, number)
        tile, row = cuda.blockIdx.x, cuda.blockIdx.y + ROWS * cuda.blockIdx.z
        if row >= rows:
            return
        for band in range(cuda.threadIdx.x, bands, threads):
            t = thresholds[(first + band) * rows + row]
            scales[band] = min(number(1) / t, most) if t > 0 else number(0)
        cuda.syncthreads()
        measure(energies, scales, source, begins, strides, counts, row, tile)
        cuda.syncthreads()
        shrink(energies, scales, source, target, begins, strides, counts, row, tile)

    return local_kernel


BEGIN, PITCH, COUNT, SPACING, SHIFT, FIELDS = range(6)
"""Fields of a band in `table`, and how many they are."""
EACH = 4
"""Times of a thread, a block of them apart: further ones find coefficients in the first-level cache."""


def table(grids: Sequence[Grid], begins: Sequence[int], pitches: Sequence[int]) -> tuple[Counts, int, int]:
    """Return the fields of each band, and the first time and the number of times at which any has a coefficient.

    At time u a band has coefficient u + SHIFT, in row 0 at element BEGIN + u + SHIFT.
    """
    shifts = [0]
    for grid, coarser in pairwise(grids):
        low, high = grid.nearest(slice(0, 1), coarser)
        assert low == high  # bands of whole samples: there is one that is nearest
        shifts.append(shifts[-1] + int(low[0]))
    found = zip(begins, pitches, (g.count for g in grids), (g.spacing for g in grids), shifts, strict=True)
    first = min(-shift for shift in shifts)
    last = max(grid.count - shift for grid, shift in zip(grids, shifts, strict=True))
    return np.array(list(found), np.int64), first, last - first


@cache
def shrinking_times(build: Build, periodic: bool) -> Kernel:
    """Kernel that writes coefficients of all bands shrunk to the places in ``target`` that they have in ``source``."""
    number, threads = np.dtype(build.dtype).type, build.threads
    one, zero, own_share, most = number(1), number(0), number(OWN), number(np.finfo(build.dtype).max)
    ratio, share, edge = number(NEXT), number(weights(REACH)[REACH]), at_the_edge(build.dtype, periodic)

    @device
    def energy(source, start, count, spacing, k, scale):
        """At a coefficient wherever it lies."""
        if REACH * spacing <= k < count - REACH * spacing:
            total, w = zero, source[start + k] * scale
            for m in range(REACH, 0, -1):  # the weights of Horner's scheme
                a, b = source[start + k - m * spacing] * scale, source[start + k + m * spacing] * scale
                total = ratio * (total + (a * a + b * b))
            return (total + w * w) * share
        return edge(source, start, count, spacing, k, scale)

    @device
    def around(source, bands, thresholds, band, depth, row, rows, u):
        """Energy of a band, and how many that are: none beyond the bands, or where the threshold is 0."""
        t = thresholds[band * rows + row] if band < depth else zero
        if t == 0:
            return zero, zero
        field = band * FIELDS
        start, count = bands[field + BEGIN] + row * bands[field + PITCH], bands[field + COUNT]
        scale = min(one / t, most)
        return energy(source, start, count, bands[field + SPACING], u + bands[field + SHIFT], scale), one

    @kernel(build, periodic)
    def local_kernel(source, target, bands, depth, thresholds, rows, first, times):
        row = cuda.blockIdx.y + ROWS * cuda.blockIdx.z
        if row >= rows:
            return
        for turn in range(EACH):
            i = (EACH * cuda.blockIdx.x + turn) * threads + cuda.threadIdx.x
            if i >= times:
                return
            u = first + i
            finer, with_finer = zero, zero
            own, with_own = around(source, bands, thresholds, 0, depth, row, rows, u)
            for band in range(depth):
                coarser, with_coarser = around(source, bands, thresholds, band + 1, depth, row, rows, u)
                k, field = u + bands[band * FIELDS + SHIFT], band * FIELDS
                if 0 <= k < bands[field + COUNT]:
                    at = bands[field + BEGIN] + row * bands[field + PITCH] + k
                    gain, total = one, finer + own_share * own + coarser
                    count = with_finer + own_share + with_coarser
                    if with_own > 0:
                        gain = one - quotient(count, total) if total > count else zero
                    target[at] = source[at] * gain
                finer, with_finer, own, with_own = own, with_own, coarser, with_coarser

    return local_kernel
