"""The MODWT of rows and its inverse: filters, arrays and launches. What it is: `wavefilt.decomposition.stationary`."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pywt

from wavefilt.arrays import Array, DType
from wavefilt.backends.numba_cpu import launching, memory
from wavefilt.thresholding.shrinkage import Shrinkage
from wavefilt.transforms import Analysis, Pyramid
from wavefilt.wavelets import boundary, modwt_boundary

from . import kernels, plan


@lru_cache(maxsize=64)
def _analysis(wavelet: pywt.Wavelet, dtype: DType) -> tuple[Array, Array]:
    """The filters of `modwt_kernels.forward`."""
    lo, hi = (np.array(taps[::-1]) / np.sqrt(2) for taps in (wavelet.dec_lo, wavelet.dec_hi))
    return lo.astype(dtype), hi.astype(dtype)


@lru_cache(maxsize=64)
def _synthesis(wavelet: pywt.Wavelet, dtype: DType) -> Array:
    """The filters of `modwt_kernels.inverse`, low and high in turn."""
    bank = np.array([wavelet.rec_lo[::-1], wavelet.rec_hi[::-1]]) / np.sqrt(2)
    return np.array(bank.T.ravel(), dtype)


def decompose(x: Array, analysis: Analysis, tile: int) -> Pyramid:
    """The pyramid of ``x`` (rows, samples), packed; at least one level."""
    (rows, samples), (wavelet, mode, level, start_level) = x.shape, _parts(analysis)
    modwt_boundary.check(samples, mode)
    dtype, taps = x.dtype, wavelet.dec_len
    lo, hi = _analysis(wavelet, dtype)
    launches = plan.launches(samples, taps, mode, level, start_level, tile, False)
    details = [modwt_boundary.length(samples, taps, mode, j, start_level) for j in range(1, level + 1)]
    approximations = [samples + int(launch.margins[-1].sum()) for launch in launches]
    arrays, addresses = memory.several(rows, details + approximations, dtype)
    outside = boundary.PERIODIC if mode in modwt_boundary.ROUND else boundary.code(mode)
    source = memory.address(x)
    for launch, target in zip(launches, addresses[level:], strict=True):
        finest_first = addresses[launch.first : launch.first + launch.depth]
        arguments = source, finest_first, target, outside, lo, hi
        launching.run(kernels.forward, rows, launch, arguments, (x, arrays))
        source = target
    return Pyramid((arrays[-1], *reversed(arrays[:level])), analysis, (samples,))


def reconstruct(pyramid: Pyramid, shrinkage: Shrinkage | None, out: Array | None, tile: int) -> Array:
    """The rows again. Raises ValueError for coefficients that do not belong together: kernels check nothing."""
    coefficients = [memory.packed(c) for c in _checked(pyramid)]
    (wavelet, mode, level, start_level), samples = _parts(pyramid.analysis), pyramid.shape[0]
    y = coefficients[0]
    rows, dtype = len(y), y.dtype
    out, begin = launching.destination(out, (rows, samples), dtype)
    if not level:
        out[:] = y
        return out
    function, thresholds = launching.shrinking(shrinkage, (level, rows))
    addresses = memory.addresses(coefficients[::-1])
    shape = samples, wavelet.rec_len, mode, level, start_level
    source = addresses[-1]
    for launch in reversed(plan.launches(*shape, tile, True)):
        levels = slice(launch.first, launch.first + launch.depth)
        finer, target = memory.placed((rows, launch.columns), dtype) if launch.first else (out, begin)
        shrunk_by = boundary.PERIODIC, function, thresholds[levels]
        arguments = target, addresses[levels], source, *shrunk_by, _synthesis(wavelet, dtype)
        launching.run(kernels.inverse, rows, launch, arguments, (coefficients, y, finer))
        y, source = finer, target
    return out


def _parts(analysis: Analysis) -> tuple[pywt.Wavelet, str, int, int]:
    return analysis.wavelets[0], analysis.modes[0], analysis.level, analysis.start_level


def _checked(pyramid: Pyramid) -> tuple[Array, ...]:
    """The coefficients; ValueError if they do not belong together."""
    arrays, (wavelet, mode, level, start_level) = pyramid.coefficients, _parts(pyramid.analysis)
    levels = [level, *range(level, 0, -1)]
    samples, taps = pyramid.shape[0], wavelet.rec_len
    wanted = [(len(arrays[0]), modwt_boundary.length(samples, taps, mode, j, start_level)) for j in levels]
    if [c.shape for c in arrays] != wanted or any(c.dtype != arrays[0].dtype for c in arrays):
        raise launching.mismatch(pyramid, wanted)
    return arrays
