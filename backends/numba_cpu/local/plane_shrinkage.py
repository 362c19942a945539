"""Local James-Stein shrinkage of the bands of panels, compiled: see `wavefilt.thresholding.local_shrinkage`."""

from __future__ import annotations

import numpy as np

from wavefilt.backends.numba_cpu import entries, memory, team
from wavefilt.thresholding.shrinkage import Shrinkage
from wavefilt.transforms import Pyramid

SOURCE, TARGET, ROWS, COLUMNS, STRIP, STRIPS, FIRST, DOWN, ACROSS = range(9)
"""Fields of a band: addresses, shape, rows of a strip, strips of a panel, the first strip, which axes go round."""
TILE = 1 << 15
"""Coefficients of a strip."""


def shrunk(pyramid: Pyramid, shrinkage: Shrinkage) -> Pyramid:
    """`Pyramid.shrunk` of panels whose means take 3 x 3 neighbouring coefficients, real or complex."""
    transform = pyramid.analysis.transform
    grids = transform.grids(pyramid.analysis, pyramid.shape)
    if any((grid.spacing, grid.half) != (1, 1) for pair in grids for grid in pair):
        return pyramid.shrunk(shrinkage)
    bands = [memory.packed(band) for band in pyramid.coefficients[:0:-1]]
    targets = [memory.empty(band.shape, band.dtype) for band in bands]
    table, strips = np.empty((len(bands), ACROSS + 1), np.int64), 0
    places = zip(table, memory.addresses(bands), memory.addresses(targets), bands, grids, strict=True)
    for fields, source, target, (panels, rows, columns), (down, across) in (
        (fields, source, target, band.shape, pair) for fields, source, target, band, pair in places
    ):
        strip = max(TILE // max(columns, 1), 1)
        fields[:] = source, target, rows, columns, strip, -(-rows // strip), strips, down.periodic, across.periodic
        strips += panels * int(fields[STRIPS])
    longest, floats = int(table[:, COLUMNS].max()), np.empty(0, bands[0].real.dtype)
    thresholds = np.ascontiguousarray(shrinkage.thresholds, float)
    parts = 2 if bands[0].dtype.kind == "c" else 1
    work = entries.LOCAL_PLANES.of(
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
