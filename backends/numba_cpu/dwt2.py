"""The decimated transform of both axes of sections, one level at a time: how it is cut up, arrays and launches."""

from __future__ import annotations

from functools import lru_cache, partial

import numpy as np

from wavefilt.arrays import Array, Floats
from wavefilt.transforms import Analysis, Pyramid
from wavefilt.wavelets import boundary

from . import entries, launching, memory, team
from .dwt import PADDING, level_lengths
from .launching import Launch
from .native import GROUP_BYTES, Constant
from .selection import Peak

SCRATCH = 1 << 19
"""Bytes of a tile's filtered rows: half of a second-level cache."""
HEIGHT = 32  # rows of coefficients of a tile at least, and no fewer than twice the taps: its halo is filtered twice
MARGIN = 64  # bytes between rows of the scratch: rows 4 KiB apart would evict each other


@lru_cache(maxsize=256)
def plan(
    sizes: tuple[int, int, int, int], places: tuple[int, int], taps: tuple[int, int], itemsize: int, inverse: bool
) -> Launch:
    """Return the tiles of one level for all sections; ``sizes`` are rows and columns, of the samples and of a band.

    ``places`` are coefficients, or pairs of samples, down and across; ``taps`` likewise. Kernels get the sizes, and
    for tiles their height and width, their number down and across a section, and the elements between rows of the
    scratch.
    """
    taps_down, taps_across = taps
    height = min(max(HEIGHT, 2 * taps_down), places[0])
    group = GROUP_BYTES // itemsize
    scratch_rows = height + taps_down // 2 - 1 if inverse else 2 * height + taps_down - 2
    wide = 2 if inverse else 1  # elements of the scratch for each place across
    width = max(SCRATCH // (2 * itemsize * wide * scratch_rows) // group, 1) * group
    width = min(width, -(-places[1] // group) * group)
    across = -(-places[1] // width)
    width = -(-places[1] // across // group) * group  # alike
    down, across = -(-places[0] // height), -(-places[1] // width)
    pitch = wide * width + MARGIN // itemsize
    tile = np.array([height, width, down, across, pitch], np.int64)
    # blocks of a row, the filtered rows, and a row of samples beyond the ends
    elements = 2 * (width + taps_across // 2 + PADDING) + 2 * scratch_rows * pitch + max(pitch, sizes[1])
    arguments = Constant(np.array(sizes, np.int64), tile)
    work = sizes[0] * sizes[1] // (down * across)
    return Launch(arguments, down * across, work, elements=elements, more=8 * GROUP_BYTES + 96 * (taps_across + 1))


def analysing(x: Array, analysis: Analysis, tile: int, peak: Peak | None) -> tuple[Pyramid, list[team.Job]]:
    """Return the pyramid of ``x`` (sections, rows, columns), and the jobs that compute it; ``tile`` is not used."""
    (sections, *shape), (wavelets, modes) = x.shape, (analysis.wavelets, analysis.modes)
    coefficients, jobs = list[Array](), list[team.Job]()
    down, across = _lengths(analysis, tuple(shape))
    columns, rows = (
        (boundary.first_input(w.dec_len, mode), boundary.code(mode), launching.analysis_filters(w, x.dtype))
        for w, mode in zip(wavelets, modes, strict=True)
    )
    for j in range(analysis.level):
        sizes = down[j], across[j], down[j + 1], across[j + 1]
        launch = plan(sizes, sizes[2:], (wavelets[0].dec_len, wavelets[1].dec_len), x.itemsize, False)
        bands = [memory.empty((sections, *sizes[2:]), x.dtype) for _ in range(4)]
        arguments = memory.address(x), memory.addresses(bands), *rows, *columns
        kept, first = (x, bands), None if jobs else peak
        jobs.append(launching.job(entries.SECTION_FORWARD, x.dtype, sections, launch, arguments, kept, first))
        x = bands[0]
        coefficients = [*bands[1:], *coefficients]
    return Pyramid((x, *coefficients), analysis, tuple(shape)), jobs


def synthesising(
    pyramid: Pyramid, function: int, thresholds: Floats, out: Array | None, tile: int
) -> tuple[Array, list[team.Job]]:
    """Return the reconstructed sections, and the jobs that compute them. Raises ValueError as `dwt.synthesising`."""
    analysis, level = pyramid.analysis, pyramid.level
    wavelets, modes = analysis.wavelets, analysis.modes
    down, across = _lengths(analysis, pyramid.shape)
    found, levels = pyramid.coefficients, [level, *(j for j in range(level, 0, -1) for _ in range(3))]
    wanted = [(len(found[0]), down[j], across[j]) for j in levels]
    y, *details = launching.checked(found, pyramid, wanted).coefficients
    sections, dtype = len(y), y.dtype
    shifts = [w.rec_len // 2 - 1 if mode == "periodization" else 0 for w, mode in zip(wavelets, modes, strict=True)]
    columns, rows = ((shift, launching.synthesis_filters(w, dtype)) for w, shift in zip(wavelets, shifts, strict=True))
    jobs = list[team.Job]()
    for j in range(level, 0, -1):
        sizes = down[j - 1], across[j - 1], down[j], across[j]
        places = [(n - shift + 1) // 2 - -shift // 2 for n, shift in zip(sizes, shifts, strict=False)]
        taps = wavelets[0].rec_len, wavelets[1].rec_len
        launch = plan(sizes, (places[0], places[1]), taps, dtype.itemsize, True)
        bands, details = [y, *details[:3]], details[3:]
        place = sections, *sizes[:2]
        finer, target = memory.placed(place, dtype) if j > 1 else launching.destination(out, place, dtype)
        own = np.ascontiguousarray(thresholds[3 * (j - 1) : 3 * j])
        arguments = target, memory.addresses(bands), *rows, *columns, function, own
        jobs.append(launching.job(entries.SECTION_INVERSE, dtype, sections, launch, arguments, (bands, finer)))
        y = finer
    return y, jobs


decompose = partial(launching.decompose, analysing)
reconstruct = partial(launching.reconstruct, synthesising)


def _lengths(analysis: Analysis, shape: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Return the rows and columns of the samples and of every level, finest first."""
    down, across = (
        level_lengths(n, w.dec_len, mode, analysis.level)
        for n, w, mode in zip(shape, analysis.wavelets, analysis.modes, strict=True)
    )
    return down, across
