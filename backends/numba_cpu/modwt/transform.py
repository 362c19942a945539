"""The MODWT of rows and its inverse: filters, arrays and launches. What it is: `wavefilt.decomposition.stationary`."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

import numpy as np
import pywt
from numpy.typing import NDArray

from wavefilt.backends.interface import Pyramid
from wavefilt.backends.numba_cpu import launching, memory
from wavefilt.thresholding.shrinkage import Shrinkage
from wavefilt.wavelets import boundary, modwt_boundary

from . import kernels, plan


@lru_cache(maxsize=64)
def _analysis(wavelet: pywt.Wavelet, dtype: np.dtype[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """The filters of `modwt_kernels.forward`."""
    lo, hi = (np.array(taps[::-1]) / np.sqrt(2) for taps in (wavelet.dec_lo, wavelet.dec_hi))
    return lo.astype(dtype), hi.astype(dtype)


@lru_cache(maxsize=64)
def _synthesis(wavelet: pywt.Wavelet, dtype: np.dtype[Any]) -> NDArray[Any]:
    """The filters of `modwt_kernels.inverse`, low and high in turn."""
    bank = np.array([wavelet.rec_lo[::-1], wavelet.rec_hi[::-1]]) / np.sqrt(2)
    return np.array(bank.T.ravel(), dtype)


def decompose(x: NDArray[Any], wavelet: pywt.Wavelet, mode: str, level: int, start_level: int, tile: int) -> Pyramid:
    """The pyramid of ``x`` (rows, samples), packed, of float32 or float64; ``level`` is at least 1."""
    rows, samples = x.shape
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
    return Pyramid((arrays[-1], *reversed(arrays[:level])), wavelet, mode, samples, "modwt", start_level)


def reconstruct(pyramid: Pyramid, shrinkage: Shrinkage | None, out: NDArray[Any] | None, tile: int) -> NDArray[Any]:
    """The rows again; arrays of the pyramid and ``out`` as in `NumbaCPU.reconstruct`."""
    coefficients = [memory.packed(c) for c in _checked(pyramid)]
    y, level, wavelet, samples = coefficients[0], pyramid.level, pyramid.wavelet, pyramid.samples
    rows, dtype = len(y), y.dtype
    out, begin = launching.destination(out, (rows, samples), dtype)
    if not level:
        out[:] = y
        return out
    function, thresholds = launching.shrinking(shrinkage, (level, rows))
    addresses = memory.addresses(coefficients[::-1])
    shape = samples, wavelet.rec_len, pyramid.mode, level, pyramid.start_level
    source = addresses[-1]
    for launch in reversed(plan.launches(*shape, tile, True)):
        levels = slice(launch.first, launch.first + launch.depth)
        finer, target = memory.placed((rows, launch.columns), dtype) if launch.first else (out, begin)
        arguments = (
            target,
            addresses[levels],
            source,
            boundary.PERIODIC,
            function,
            thresholds[levels],
            _synthesis(wavelet, dtype),
        )
        launching.run(kernels.inverse, rows, launch, arguments, (coefficients, y, finer))
        y, source = finer, target
    return out


def _checked(pyramid: Pyramid) -> tuple[NDArray[Any], ...]:
    """The coefficients; ValueError if they do not belong together: kernels check nothing."""
    arrays, taps = pyramid.coefficients, pyramid.wavelet.rec_len
    levels = [pyramid.level, *range(pyramid.level, 0, -1)]
    columns = [modwt_boundary.length(pyramid.samples, taps, pyramid.mode, j, pyramid.start_level) for j in levels]
    wanted = [(len(arrays[0]), n) for n in columns]
    if [c.shape for c in arrays] != wanted or any(c.dtype != arrays[0].dtype for c in arrays):
        found = ", ".join(f"{c.dtype} {c.shape}" for c in arrays)
        raise ValueError(
            f"coefficients {found} do not belong together: {pyramid.samples} samples have "
            f"{', '.join(map(str, wanted))} of one dtype"
        )
    return arrays
