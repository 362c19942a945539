"""The MODWT of rows and its inverse: filters, arrays and launches. What it is: `wavefilt.decomposition`."""

from __future__ import annotations

from functools import lru_cache, partial

import numpy as np
import pywt

from wavefilt.arrays import Array, DType, Floats
from wavefilt.backends.numba_cpu import entries, launching, team
from wavefilt.backends.numba_cpu.native import Constant
from wavefilt.backends.numba_cpu.peaks import Peak
from wavefilt.transforms import Analysis, Pyramid
from wavefilt.transforms.separable import parts
from wavefilt.wavelets import boundary

from . import plan


@lru_cache(maxsize=64)
def synthesis_taps(wavelet: pywt.Wavelet, dtype: DType) -> Constant:
    """The filters of `kernels.inverse`, low and high in turn."""
    bank = np.array([wavelet.rec_lo[::-1], wavelet.rec_hi[::-1]]) / np.sqrt(2)
    return Constant(np.array(bank.T.ravel(), dtype))


def analysing(x: Array, analysis: Analysis, tile: int, peak: Peak | None) -> tuple[Pyramid, list[team.Job]]:
    """The pyramid of ``x`` (rows, samples), packed, and what computes it; at least one level."""
    (samples,), (wavelet, mode, level, start_level) = x.shape[1:], parts(analysis)
    boundary.check_single(samples, mode)
    launches = plan.launches(samples, wavelet.dec_len, mode, level, start_level, tile, False)
    lengths = plan.lengths(samples, wavelet.dec_len, mode, level, start_level)
    outside = boundary.PERIODIC if mode in boundary.ROUND else boundary.code(mode)
    constants = outside, launching.analysis_filters(wavelet, x.dtype, 2**0.5)
    outputs = [*lengths, *(launch.rest for launch in launches)]
    return launching.analysing(entries.MODWT_FORWARD, x, analysis, launches, outputs, constants, peak)


def synthesising(
    pyramid: Pyramid, function: int, thresholds: Floats, out: Array | None, tile: int
) -> tuple[Array, list[team.Job]]:
    """The rows again, and what computes them.

    Raises ValueError for coefficients that do not belong together: kernels check nothing.
    """
    (wavelet, mode, level, start_level), (samples,) = parts(pyramid.analysis), pyramid.shape
    shape = samples, wavelet.rec_len, mode, level, start_level
    if not isinstance(pyramid, launching.Packed):
        arrays, lengths = pyramid.coefficients, plan.lengths(*shape)
        deepest = boundary.modwt_length(*shape)
        pyramid = launching.checked(arrays, pyramid, [(len(arrays[0]), n) for n in (deepest, *reversed(lengths))])
    taps = synthesis_taps(wavelet, pyramid.coefficients[0].dtype)
    launches = plan.launches(*shape, tile, True)
    constants = boundary.PERIODIC, taps
    return launching.synthesising(entries.MODWT_INVERSE, pyramid, launches, function, thresholds, out, *constants)


decompose = partial(launching.decompose, analysing)
reconstruct = partial(launching.reconstruct, synthesising)
