"""Local James-Stein shrinkage of the bands of a DWT: what it is, `wavefilt.thresholding.local_shrinkage`.

A block has a tile of some consecutive bands. It puts their energies, and those of the adjacent bands, into shared
memory, then shrinks its own coefficients by them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache

import numpy as np

from wavefilt.backends.cuda.runtime.compiler import kernel
from wavefilt.backends.cuda.runtime.interfaces import DeviceFunction, Kernel
from wavefilt.backends.cuda.runtime.target import cuda, device, in_turn
from wavefilt.backends.cuda.runtime.wide import filters, load4, store
from wavefilt.thresholding.local_shrinkage import REACH, Grid

from .tiling import ROWS, up4

TILE_BYTES = 1 << 12
"""Of the coefficients of a tile in the finest of its bands."""
LEAST = 16
"""Coefficients of a tile in the coarsest of its bands: fewer are little beside their neighbours."""

Link = tuple[int, int, int, int]
"""The two nearest coefficients of an adjacent band to each of two, from the place that the first of the two has there.

That is 4p, 2p or p for the p-th two of a tile.
"""


@dataclass(frozen=True)
class Tile:
    """What a kernel is compiled for: bands with so many coefficients of a tile each, finest first.

    The first is only the neighbour of others with ``finer``, and the last with ``coarser``. ``links`` are those of
    each band to the next finer and to the next coarser one, if that is here.
    """

    dtype: str
    threads: int
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
        """Of each band, how many energies are needed before the tile and after it, multiples of four."""
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
        """Coefficients of the adjacent band j for two of band i."""
        return 2 * self.sizes[j] // self.sizes[i]

    def length(self, band: int) -> int:
        """Energies of a band."""
        return sum(self.reaches[band]) + self.sizes[band]

    def place(self, band: int) -> int:
        """Where in shared memory the tile of a band begins."""
        return sum(self.length(i) for i in range(band)) + self.reaches[band][0]

    @property
    def shared(self) -> int:
        """Elements of shared memory."""
        return sum(map(self.length, range(len(self.sizes))))


@dataclass(frozen=True)
class Launch:
    """The bands from ``first`` on, one after the other, in so many ``tiles`` a row."""

    first: int
    tiles: int
    tile: Tile

    @property
    def bands(self) -> range:
        return range(self.first, self.first + len(self.tile.sizes))


@lru_cache(maxsize=256)
def launches(grids: tuple[Grid, ...], dtype: str, threads: int) -> list[Launch]:
    """For bands with these grids, finest first: as many together as have tiles of `LEAST` coefficients."""
    finest, made, begin = TILE_BYTES // np.dtype(dtype).itemsize, [], 0
    while begin < len(grids):
        largest = finest * grids[begin].step // LEAST
        end = next((i for i, grid in enumerate(grids) if grid.step > largest), len(grids))
        first, last = max(begin - 1, 0), min(end + 1, len(grids))
        sizes = tuple(finest * grids[begin].step // grid.step for grid in grids[first:last])
        links = tuple(
            (_link(grids, i, i - 1) if i > first else None, _link(grids, i, i + 1) if i + 1 < last else None)
            for i in range(first, last)
        )
        tile = Tile(dtype, threads, grids[0].periodic, sizes, first < begin, end < last, links)
        tiles = max(-(-grids[first + i].count // sizes[i]) for i in tile.own)
        made.append(Launch(first, tiles, tile))
        begin = end
    return made


def _link(grids: Sequence[Grid], i: int, j: int) -> Link:
    low, high = grids[i].nearest(slice(0, 2), grids[j])
    return int(low[0]), int(high[0]), int(low[1]), int(high[1])


@cache
def _edge(dtype: str, periodic: bool) -> DeviceFunction:
    """Device function: the energy at a coefficient wherever it lies, beyond the ends as `Grid.inside` has it."""
    number = np.dtype(dtype).type

    @device
    def edge(source, start, count, k, scale):
        total, there = number(0), 0
        k = k % count if periodic else min(max(k, 0), count - 1)
        for m in range(k - REACH, k + REACH + 1):
            i = m % count if periodic else m
            if 0 <= i < count:
                w = source[start + i] * scale
                total += w * w
                there += 1
        return total / number(there)

    return edge


@cache
def _measuring(c: Tile, band: int) -> DeviceFunction:
    """Device function: the energies of a band into shared memory."""
    threads, number = c.threads, np.dtype(c.dtype).type
    size, (head, _), groups = c.sizes[band], c.reaches[band], c.length(band) // 4
    begin, turn = c.place(band) - head, sum(map(c.length, range(band))) // 4 % threads
    last = min(band + 1, c.own[-1])
    last_size = c.sizes[last]
    most, share, edge = number(np.finfo(c.dtype).max), number(1 / (2 * REACH + 1)), _edge(c.dtype, c.periodic)

    @device
    def group(energies, source, start, count, k, scale, v):
        if k < 4 or k + 8 > count:
            for i in range(4):
                energies[begin + 4 * v + i] = edge(source, start, count, k + i, scale)
            return
        _, a1, a2, a3 = load4(source, start + k - 4)
        b0, b1, b2, b3 = load4(source, start + k)
        c0, c1, c2, _ = load4(source, start + k + 4)
        a1, a2, a3, c0, c1, c2 = a1 * scale, a2 * scale, a3 * scale, c0 * scale, c1 * scale, c2 * scale
        b0, b1, b2, b3 = b0 * scale, b1 * scale, b2 * scale, b3 * scale
        before, middle, after = a2 * a2, (b0 * b0 + b1 * b1) + (b2 * b2 + b3 * b3), c1 * c1
        inner, outer = middle + a3 * a3, middle + c0 * c0
        s0, s1 = inner + (before + a1 * a1), inner + (before + c0 * c0)
        s2, s3 = outer + (a3 * a3 + after), outer + (after + c2 * c2)
        store(energies, begin + 4 * v, (s0 * share, s1 * share, s2 * share, s3 * share))

    @device
    def measure(energies, source, begins, strides, counts, thresholds, first, row, rows, tile):
        t = thresholds[(first + band) * rows + row]
        # coarser bands go on furthest: where the tile lies beyond their ends, nobody asks for these
        if t > 0 and tile * last_size < counts[last]:
            start, scale = begins[band] + row * strides[band], min(number(1) / t, most)
            # threads begin where those of the band before end, so that all have as much to do
            for v in range((cuda.threadIdx.x + threads - turn) % threads, groups, threads):
                group(energies, source, start, counts[band], tile * size - head + 4 * v, scale, v)

    return measure


@cache
def _adding(c: Tile, i: int, j: int) -> DeviceFunction:
    """Device function: four energies and their number, with those of the adjacent band j at the places of band i's."""
    if j not in range(len(c.sizes)):
        return device(lambda energies, v, thresholds, limit, found: found)
    (a, b, d, e), step = c.links[i][0 if j < i else 1] or (0, 0, 0, 0), c.step(i, j)
    width, one = min(2 * step, 4), np.dtype(c.dtype).type(1)
    begin = min(a, b, d, e) // width * width  # windows are read so many at a time
    places = [(a, b), (d, e), (a + step, b + step), (d + step, e + step)]
    first, between = c.place(j) + begin, filters([[(0.5, 0, p - begin) for p in two] for two in places], width)

    @device
    def add(energies, v, thresholds, limit, found):
        if thresholds[limit] > 0:
            a, b, c, d = between(energies, first + 2 * step * v, 0)
            return found[0] + a, found[1] + b, found[2] + c, found[3] + d, found[4] + one
        return found

    return add


@cache
def _shrinking(c: Tile, band: int) -> DeviceFunction:
    """Device function: a band's own coefficients of a tile, shrunk by its energies and those of the adjacent bands."""
    threads, number, size, place = c.threads, np.dtype(c.dtype).type, c.sizes[band], c.place(band)
    turn, one, zero = sum(c.sizes[c.own[0] : band]) // 4 % threads, number(1), number(0)
    add_finer, add_coarser = (_adding(c, band, adjacent) for adjacent in (band - 1, band + 1))

    @device
    def shrunk(d, energy, count):
        return d * (one - count / energy if energy > count else zero)

    @device
    def shrink(energies, source, target, begins, strides, counts, thresholds, first, row, rows, tile):
        limit = (first + band) * rows + row
        start, groups = begins[band] + row * strides[band] + tile * size, min(size, counts[band] - tile * size) + 3 >> 2
        for v in range((cuda.threadIdx.x + threads - turn) % threads, groups, threads):
            at = start + 4 * v
            d0, d1, d2, d3 = load4(source, at)
            if thresholds[limit] > 0:
                e0, e1, e2, e3 = load4(energies, place + 4 * v)
                found = add_finer(energies, v, thresholds, limit - rows, (e0, e1, e2, e3, one))
                e0, e1, e2, e3, n = add_coarser(energies, v, thresholds, limit + rows, found)
                d0, d1, d2, d3 = shrunk(d0, e0, n), shrunk(d1, e1, n), shrunk(d2, e2, n), shrunk(d3, e3, n)
            store(target, at, (d0, d1, d2, d3))

    return shrink


@cache
def shrinking(c: Tile) -> Kernel:
    """Kernel that writes coefficients of some bands shrunk to the places in ``target`` that they have in ``source``."""
    number, shared = np.dtype(c.dtype).type, c.shared
    measure = in_turn(*(_measuring(c, band) for band in range(len(c.sizes))))
    shrink = in_turn(*(_shrinking(c, band) for band in c.own))

    @kernel(c)
    def local_kernel(source, target, begins, strides, counts, thresholds, first, rows):
        """A band's coefficients are from ``begins``, a row takes ``strides`` and has ``counts`` of them.

        Thresholds, band by band, are those of all bands; that of the ``first`` here is 0 where it is unchanged.
        """
        energies = cuda.shared.array(shared, number)
        row = cuda.blockIdx.y + ROWS * cuda.blockIdx.z
        if row >= rows:
            return
        measure(energies, source, begins, strides, counts, thresholds, first, row, rows, cuda.blockIdx.x)
        cuda.syncthreads()
        shrink(energies, source, target, begins, strides, counts, thresholds, first, row, rows, cuda.blockIdx.x)

    return local_kernel
