"""The decimated transform of rows and its inverse."""

from __future__ import annotations

from wavefilt.arrays import Array
from wavefilt.backends.numba_cpu import entries, launching
from wavefilt.backends.numba_cpu.peaks import Peak
from wavefilt.thresholding.shrinkage import Shrinkage
from wavefilt.transforms import Analysis, Pyramid
from wavefilt.wavelets import boundary

from . import plan


def decompose(x: Array, analysis: Analysis, tile: int, peak: Peak | None) -> Pyramid:
    """The pyramid of ``x`` (rows, samples), packed; at least one level."""
    wavelet, mode = analysis.wavelets[0], analysis.modes[0]
    shape = x.shape[1], wavelet.dec_len, mode, analysis.level, tile
    filters = launching.analysis_filters(wavelet, x.dtype)
    constants = boundary.first_input(wavelet.dec_len, mode), boundary.code(mode), filters
    return launching.analyse(entries.FORWARD, x, analysis, plan.launches(*shape), plan.outputs(*shape), constants, peak)


def reconstruct(pyramid: Pyramid, shrinkage: Shrinkage | None, out: Array | None, tile: int) -> Array:
    """The rows again. Raises ValueError for coefficients that do not belong together: kernels check nothing."""
    (samples,), wavelet, mode = pyramid.shape, pyramid.analysis.wavelets[0], pyramid.analysis.modes[0]
    taps, level = wavelet.rec_len, pyramid.level
    if not isinstance(pyramid, launching.Packed):
        (y, *details), lengths = pyramid.coefficients, plan.lengths(samples, taps, mode, level)
        y = y[..., : lengths[-1]]  # one that was itself reconstructed may have one sample more than is used
        pyramid = launching.checked((y, *details), pyramid, [(len(y), n) for n in (lengths[-1], *lengths[:0:-1])])
    filters = launching.synthesis_filters(wavelet, pyramid.coefficients[0].dtype)
    shift = taps // 2 - 1 if mode == "periodization" else 0
    launches = plan.launches(samples, taps, mode, level, tile)
    return launching.synthesise(entries.INVERSE, pyramid, launches, shrinkage, out, shift, filters)
