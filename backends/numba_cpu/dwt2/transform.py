"""Transforms of both axes of panels, one level at a time."""

from __future__ import annotations

from functools import partial

import numpy as np

from wavefilt.arrays import Array, Floats
from wavefilt.backends.numba_cpu import entries, launching, memory, team
from wavefilt.backends.numba_cpu.dwt.plan import lengths
from wavefilt.backends.numba_cpu.peaks import Peak
from wavefilt.transforms import Analysis, Pyramid
from wavefilt.wavelets import boundary

from . import plan


def analysing(x: Array, analysis: Analysis, tile: int, peak: Peak | None) -> tuple[Pyramid, list[team.Job]]:
    """The pyramid of ``x`` (panels, rows, columns), packed, and what computes it; tiles have a size of their own."""
    (panels, *shape), (wavelets, modes) = x.shape, (analysis.wavelets, analysis.modes)
    coefficients, jobs = list[Array](), list[team.Job]()
    down, across = _lengths(analysis, tuple(shape))
    columns, rows = (
        (boundary.first_input(w.dec_len, mode), boundary.code(mode), launching.analysis_filters(w, x.dtype))
        for w, mode in zip(wavelets, modes, strict=True)
    )
    for j in range(analysis.level):
        sizes = down[j], across[j], down[j + 1], across[j + 1]
        launch = plan.launch(sizes, sizes[2:], (wavelets[0].dec_len, wavelets[1].dec_len), x.itemsize, False)
        bands = [memory.empty((panels, *sizes[2:]), x.dtype) for _ in range(4)]
        arguments = memory.address(x), memory.addresses(bands), *rows, *columns
        kept, first = (x, bands), None if jobs else peak
        jobs.append(launching.job(entries.PANEL_FORWARD, x.dtype, panels, launch, arguments, kept, first))
        x = bands[0]
        coefficients = [*bands[1:], *coefficients]
    return Pyramid((x, *coefficients), analysis, tuple(shape)), jobs


def synthesising(
    pyramid: Pyramid, function: int, thresholds: Floats, out: Array | None, tile: int
) -> tuple[Array, list[team.Job]]:
    """The panels again, and what computes them. Raises ValueError as those of rows."""
    analysis, level = pyramid.analysis, pyramid.level
    wavelets, modes = analysis.wavelets, analysis.modes
    down, across = _lengths(analysis, pyramid.shape)
    y, *details = _checked(pyramid, down, across)
    panels, dtype = len(y), y.dtype
    shifts = [w.rec_len // 2 - 1 if mode == "periodization" else 0 for w, mode in zip(wavelets, modes, strict=True)]
    columns, rows = ((shift, launching.synthesis_filters(w, dtype)) for w, shift in zip(wavelets, shifts, strict=True))
    jobs = list[team.Job]()
    for j in range(level, 0, -1):
        sizes = down[j - 1], across[j - 1], down[j], across[j]
        places = [(n - shift + 1) // 2 - -shift // 2 for n, shift in zip(sizes, shifts, strict=False)]
        taps = wavelets[0].rec_len, wavelets[1].rec_len
        launch = plan.launch(sizes, (places[0], places[1]), taps, dtype.itemsize, True)
        bands, details = [y, *details[:3]], details[3:]
        place = panels, *sizes[:2]
        finer, target = memory.placed(place, dtype) if j > 1 else launching.destination(out, place, dtype)
        own = np.ascontiguousarray(thresholds[3 * (j - 1) : 3 * j])
        arguments = target, memory.addresses(bands), *rows, *columns, launching.KEEP, function, own
        jobs.append(launching.job(entries.PANEL_INVERSE, dtype, panels, launch, arguments, (bands, finer)))
        y = finer
    return y, jobs


decompose = partial(launching.decompose, analysing)
reconstruct = partial(launching.reconstruct, synthesising)


def _lengths(analysis: Analysis, shape: tuple[int, ...]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Rows and columns of the samples and of every level, finest first."""
    down, across = (
        lengths(n, w.dec_len, mode, analysis.level)
        for n, w, mode in zip(shape, analysis.wavelets, analysis.modes, strict=True)
    )
    return down, across


def _checked(pyramid: Pyramid, down: tuple[int, ...], across: tuple[int, ...]) -> tuple[Array, ...]:
    """The coefficients as kernels need them."""
    levels = [pyramid.level, *(j for j in range(pyramid.level, 0, -1) for _ in range(3))]
    found = pyramid.coefficients
    return launching.checked(found, pyramid, [(len(found[0]), down[j], across[j]) for j in levels]).coefficients
