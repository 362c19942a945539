"""GSL's wavelet transform through ctypes, if libgsl is installed: one core, float64, periodic ends, all levels.

GSL counts taps where PyWavelets counts vanishing moments: its "daubechies 8" is `db4`, its 16 `db8`. Its windows
begin at even samples, those of PyWavelets' periodization half a filter earlier, at odd samples: `aligned` shifts the
signal so that both compute the same coefficients at every level.
"""

from __future__ import annotations

import ctypes
import ctypes.util
import weakref
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wavefilt.errors import BackendUnavailable
from wavefilt.thresholding.rules import MAD_TO_SIGMA

WAVELETS = tuple(f"db{n}" for n in range(2, 11))
NAMES = ("libgsl.so.28", "libgsl.so.27", "libgsl.so.25", "libgsl.so")
_POINTER, _SIZE = ctypes.c_void_p, ctypes.c_size_t


@cache
def load() -> ctypes.CDLL:
    """Load the library. Raises BackendUnavailable, with what to install."""
    for blas in ("libgslcblas.so.0", ctypes.util.find_library("gslcblas")):
        try:
            ctypes.CDLL(blas, ctypes.RTLD_GLOBAL)  # some builds of GSL are not linked to one
            break
        except OSError:
            continue
    for name in filter(None, (*NAMES, ctypes.util.find_library("gsl"))):
        try:
            return _declared(ctypes.CDLL(name))
        except OSError:
            continue
    raise BackendUnavailable("libgsl is not installed: apt install libgsl27 (or libgsl28), brew install gsl")


def _declared(gsl: ctypes.CDLL) -> ctypes.CDLL:
    """Declare the argument and return types of the functions in use."""
    for suffix in ("", "_workspace"):
        getattr(gsl, f"gsl_wavelet{suffix}_alloc").restype = _POINTER
        getattr(gsl, f"gsl_wavelet{suffix}_free").argtypes = [_POINTER]
        getattr(gsl, f"gsl_wavelet{suffix}_free").restype = None
    gsl.gsl_wavelet_alloc.argtypes = [_POINTER, _SIZE]
    gsl.gsl_wavelet_workspace_alloc.argtypes = [_SIZE]
    for direction in ("forward", "inverse"):
        transform = getattr(gsl, f"gsl_wavelet_transform_{direction}")
        transform.argtypes = [_POINTER, _POINTER, _SIZE, _SIZE, _POINTER]
    return gsl


def version() -> str | None:
    """Return the version of the library; None without it."""
    try:
        return str(ctypes.c_char_p.in_dll(load(), "gsl_version").value, "ascii")  # type: ignore[arg-type]
    except BackendUnavailable:
        return None


class Daubechies:
    """The transform of ``samples``, a power of two, by one of `WAVELETS`."""

    def __init__(self, wavelet: str, samples: int) -> None:
        if wavelet not in WAVELETS:  # GSL itself would end the process
            raise ValueError(f"GSL has no wavelet {wavelet!r}; it has {', '.join(WAVELETS)}")
        if samples < 1 or samples & (samples - 1):
            raise ValueError(f"GSL transforms powers of two, not {samples} samples")
        self._gsl, self.samples = load(), samples
        family = _POINTER.in_dll(self._gsl, "gsl_wavelet_daubechies")
        self._filter = self._gsl.gsl_wavelet_alloc(family, 2 * int(wavelet[2:]))
        self._work = self._gsl.gsl_wavelet_workspace_alloc(samples)
        if not (self._filter and self._work):
            raise MemoryError(f"GSL has no memory for a transform of {samples} samples")
        weakref.finalize(self, self._gsl.gsl_wavelet_free, self._filter)
        weakref.finalize(self, self._gsl.gsl_wavelet_workspace_free, self._work)

    def _run(self, direction: str, data: NDArray[np.float64]) -> None:
        function = getattr(self._gsl, f"gsl_wavelet_transform_{direction}")
        if function(self._filter, data.ctypes.data, 1, self.samples, self._work):
            raise RuntimeError(f"GSL's {direction} transform failed")

    def denoise(self, x: NDArray[Any], level: int) -> NDArray[np.float64]:
        """Apply the universal soft threshold to the finest levels, with noise from the median of the finest.

        GSL transforms down to one coefficient; levels coarser than ``level`` are unchanged.
        """
        data, n = x.astype(np.float64), self.samples
        self._run("forward", data)
        t = MAD_TO_SIGMA * np.median(np.abs(data[n // 2 :])) * np.sqrt(2 * np.log(n))
        for i in range(level):
            details = data[n >> (i + 1) : n >> i]
            details -= np.clip(details, -t, t)
        self._run("inverse", data)
        return data


def aligned(taps: int, level: int) -> int:
    """Return the shift to the left for which PyWavelets' periodization computes GSL's coefficients."""
    return (taps // 2 - 1) * ((1 << level) - 1)
