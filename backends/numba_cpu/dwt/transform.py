"""The decimated transform of rows and its inverse."""

from __future__ import annotations

from functools import partial

from wavefilt import threads
from wavefilt.arrays import Array, Floats
from wavefilt.backends.numba_cpu import entries, launching, memory, team
from wavefilt.backends.numba_cpu.peaks import Peak
from wavefilt.backends.numba_cpu.selection import sign_off
from wavefilt.transforms import Analysis, Pyramid
from wavefilt.wavelets import boundary

from . import plan


def analysing(x: Array, analysis: Analysis, tile: int, peak: Peak | None) -> tuple[Pyramid, list[team.Job]]:
    """The pyramid of ``x`` (rows, samples), packed, and what computes it; at least one level."""
    wavelet, mode = analysis.wavelets[0], analysis.modes[0]
    tile = plan.fitting(tile, x.size, threads.get_num_threads())
    shape = x.shape[1], wavelet.dec_len, mode, analysis.level, tile
    filters = launching.analysis_filters(wavelet, x.dtype)
    first, measured = boundary.first_input(wavelet.dec_len, mode), x.shape[1] if peak else 0  # by the kernel itself
    past = launching.past(memory.PASSED, x.shape, x.itemsize)
    constants = first, boundary.code(mode), measured, sign_off(x.dtype), past, filters
    launches, lengths = plan.launches(*shape), plan.outputs(*shape)
    return launching.analysing(entries.FORWARD, x, analysis, launches, lengths, constants, None)


def synthesising(
    pyramid: Pyramid, function: int, thresholds: Floats, out: Array | None, tile: int
) -> tuple[Array, list[team.Job]]:
    """The rows again, and what computes them.

    Raises ValueError for coefficients that do not belong together: kernels check nothing.
    """
    (samples,), wavelet, mode = pyramid.shape, pyramid.analysis.wavelets[0], pyramid.analysis.modes[0]
    taps, level = wavelet.rec_len, pyramid.level
    if not isinstance(pyramid, launching.Packed):
        (y, *details), lengths = pyramid.coefficients, plan.lengths(samples, taps, mode, level)
        y = y[..., : lengths[-1]]  # one that was itself reconstructed may have one sample more than is used
        pyramid = launching.checked((y, *details), pyramid, [(len(y), n) for n in (lengths[-1], *lengths[:0:-1])])
    filters = launching.synthesis_filters(wavelet, pyramid.coefficients[0].dtype)
    shift = taps // 2 - 1 if mode == "periodization" else 0
    y = pyramid.coefficients[0]
    tile = plan.fitting(tile, len(y) * samples, threads.get_num_threads())
    launches = plan.launches(samples, taps, mode, level, tile)
    constants = shift, launching.past(memory.PASSED, (len(y), samples), y.itemsize), filters
    return launching.synthesising(entries.INVERSE, pyramid, launches, function, thresholds, out, *constants)


decompose = partial(launching.decompose, analysing)
reconstruct = partial(launching.reconstruct, synthesising)
