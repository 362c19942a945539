"""Local James-Stein shrinkage of rows and of sections, compiled: see `wavefilt.thresholding.local`."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from wavefilt.arrays import Array, Counts, DType, Floats
from wavefilt.thresholding.local import Grid, Local, weights
from wavefilt.thresholding.shrinkage import Shrinkage
from wavefilt.transforms import Pyramid

from . import entries, launching, memory, team
from .native import GROUP_BYTES

TILE = 1 << 13
"""Samples of a tile: the energies of all its bands, and what they are computed from, fit the second-level cache."""
COUNT, SPACING, HALF, PERIODIC, PART = range(5)
SAME, FINER, COARSER = range(3)
MEANS = 2 * GROUP_BYTES
"""Bytes of energies that are computed at a time."""


class Plan(NamedTuple):
    """The arguments of the kernel that are the same for all rows.

    ``bands`` (bands, 5) has count, mean and part of a tile, ``links`` (2 bands, 5) the places of coefficients in the
    finer and the coarser band, ``places`` (tiles, 4 bands) for each band the range of a tile's own coefficients and the
    range whose energies it needs; ``longest`` and ``needed`` are elements of the workspace.
    """

    bands: Counts
    links: Counts
    places: Counts
    tiles: int
    longest: int
    needed: int


@lru_cache(maxsize=256)
def _plan(grids: tuple[Grid, ...], itemsize: int) -> Plan:
    samples = max(TILE, 4 * max(grid.step for grid in grids))
    tiles, depth = max(grids[0].count * grids[0].step // samples, 1), len(grids)
    bands = np.array([[g.count, g.spacing, g.half, int(g.periodic), samples // g.step] for g in grids], np.int64)
    links, places = np.zeros((2 * depth, 5), np.int64), np.empty((tiles, depth, 4), np.int64)
    for i, (count, *_, part) in enumerate(bands.tolist()):
        edges = part * np.arange(tiles + 1)
        edges[-1] = count
        places[:, i] = np.stack([edges[:-1], edges[1:], edges[:-1], edges[1:]], axis=1)
    for i, grid in enumerate(grids):
        for side, j in enumerate((i - 1, i + 1)):
            if 0 <= j < depth:
                low, high = grid.nearest(slice(0, 2), grids[j])
                step = SAME if grid.step == grids[j].step else FINER if grid.step > grids[j].step else COARSER
                links[2 * i + side] = step, low[0], high[0], low[1], high[1]
                first, last = _range(links[2 * i + side], places[:, i, 0], places[:, i, 1])
                places[:, j, 2] = np.minimum(places[:, j, 2], first)
                places[:, j, 3] = np.maximum(places[:, j, 3], last)
    lengths, padding = places[..., 3] - places[..., 2], MEANS // itemsize
    longest = int((lengths + 2 * (bands[:, 2] + 1) * bands[:, 1]).max()) + padding
    longest += -longest % padding
    return Plan(bands, links, places.reshape(tiles, -1), tiles, longest, int(lengths.sum(axis=1).max()) + 2 * padding)


def _range(link: Counts, start: Counts, stop: Counts) -> tuple[Counts, Counts]:
    """Return the range of a neighbouring band's coefficients that a range of a band's own needs."""
    step, a, b, c, d = link.tolist()
    if step == SAME:
        return start + a, stop + b
    if step == FINER:
        return 2 * start + a, 2 * stop - 1 + b
    return start // 2 + min(a, c), (stop - 1) // 2 + max(b, d) + 1


@lru_cache(maxsize=64)
def _weights(half: int, dtype: DType) -> Array:
    """Return the weights of a mean, and a 0 that makes their number even, as that of filters."""
    return np.append(weights(half), 0).astype(dtype)


def compiled(shrinkage: Shrinkage) -> bool:
    """Return whether there are kernels for it: there are none for functions of coefficients and their parents."""
    return isinstance(shrinkage.function, Local)


def shrunk(pyramid: Pyramid, shrinkage: Shrinkage) -> Pyramid:
    """Shrink the coefficients of rows or of sections, as `Pyramid.shrunk` does."""
    if len(pyramid.shape) > 1:
        return _sections_shrunk(pyramid, shrinkage)
    grids = pyramid.analysis.transform.grids(pyramid.analysis, pyramid.shape)
    first = pyramid.coefficients[0]
    rows, parts = len(first), pyramid.analysis.transform.parts
    if not isinstance(pyramid, launching.Packed):
        wanted = [(rows, grid.count) for grid in reversed(grids)]
        pyramid = launching.checked(pyramid.coefficients, pyramid, wanted)
    shrunk, job = of_rows(pyramid, np.ascontiguousarray(shrinkage.thresholds * parts**0.5, float))
    team.run([job])
    return shrunk


def of_rows(pyramid: launching.Packed, thresholds: Floats) -> tuple[launching.Packed, team.Job]:
    """Return the pyramid of rows shrunk, and the job that computes it by ``thresholds`` (bands, rows) of |W|."""
    transform, first = pyramid.analysis.transform, pyramid.coefficients[0]
    grids, rows, dtype = transform.grids(pyramid.analysis, pyramid.shape), len(first), first.real.dtype
    plan = _plan(grids, dtype.itemsize)
    arrays, targets = memory.several(rows, [grid.count for grid in grids], first.dtype)
    sources = np.append(pyramid.addresses[: pyramid.level], pyramid.addresses[-1])
    arguments = *plan, transform.parts, sources, targets, thresholds, _weights(grids[0].half, dtype)
    workspace = (4 * plan.longest + plan.needed) * dtype.itemsize
    work = entries.LOCAL.of(dtype, *arguments, workspace=workspace, kept=(pyramid, arrays))
    grain = max(launching.GRAINS["dwt_kernels"] * plan.tiles // max(sum(grid.count for grid in grids), 1), 1)
    job = team.Job(work, rows * plan.tiles, grain)
    return launching.Packed(tuple(arrays[::-1]), pyramid.analysis, pyramid.shape, targets), job


SOURCE, TARGET, ROWS, COLUMNS, STRIP, STRIPS, FIRST, DOWN, ACROSS = range(9)
"""Fields of a band: addresses, shape, rows of a strip, strips of a section, the first strip, which axes go round."""
STRIP_SIZE = 1 << 15
"""Coefficients of a strip."""


def _sections_shrunk(pyramid: Pyramid, shrinkage: Shrinkage) -> Pyramid:
    """Shrink sections whose means take 3 x 3 neighbouring coefficients, real or complex."""
    transform = pyramid.analysis.transform
    grids = transform.grids(pyramid.analysis, pyramid.shape)
    if any((grid.spacing, grid.half) != (1, 1) for pair in grids for grid in pair):
        return pyramid.shrunk(shrinkage)
    bands = [memory.packed(band) for band in pyramid.coefficients[:0:-1]]
    targets = [memory.empty(band.shape, band.dtype) for band in bands]
    table, strips = np.empty((len(bands), ACROSS + 1), np.int64), 0
    places = zip(table, memory.addresses(bands), memory.addresses(targets), bands, grids, strict=True)
    for fields, source, target, (sections, rows, columns), (down, across) in (
        (fields, source, target, band.shape, pair) for fields, source, target, band, pair in places
    ):
        strip = max(STRIP_SIZE // max(columns, 1), 1)
        fields[:] = source, target, rows, columns, strip, -(-rows // strip), strips, down.periodic, across.periodic
        strips += sections * int(fields[STRIPS])
    longest, floats = int(table[:, COLUMNS].max()), np.empty(0, bands[0].real.dtype)
    thresholds = np.ascontiguousarray(shrinkage.thresholds, float)
    parts = 2 if bands[0].dtype.kind == "c" else 1
    work = entries.LOCAL_SECTIONS.of(
        floats.dtype,
        table,
        parts,
        longest,
        thresholds,
        floats,
        workspace=(5 * longest + 2) * floats.itemsize,
        kept=(bands, targets),
    )
    team.parallel(work, strips)
    return Pyramid((pyramid.coefficients[0], *targets[::-1]), pyramid.analysis, pyramid.shape)
