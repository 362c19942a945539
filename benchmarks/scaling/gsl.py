"""GSL's wavelet transform through ctypes, where libgsl is installed: one core, float64, periodic ends, all levels.

GSL counts taps where PyWavelets counts vanishing moments: its "daubechies 8" is `db4`, its 16 `db8`. Its windows
begin at even samples, PyWavelets' periodization half a filter earlier, which is odd: `aligned` shifts the signal so
that both compute the same coefficients at every level.
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
from wavefilt.vocabulary import check

WAVELETS = tuple(f"db{n}" for n in range(2, 11))
NAMES = ("libgsl.so.28", "libgsl.so.27", "libgsl.so.25", "libgsl.so")
_POINTER, _SIZE = ctypes.c_void_p, ctypes.c_size_t


@cache
def load() -> ctypes.CDLL:
    """The library. Raises BackendUnavailable, with what to install."""
    for blas in ("libgslcblas.so.0", ctypes.util.find_library("gslcblas")):
        try:
            ctypes.CDLL(blas, ctypes.RTLD_GLOBAL)  # for the GSL that is not linked to one
            break
        except OSError:
            continue
    for name in (*NAMES, ctypes.util.find_library("gsl")):
        try:
            found = ctypes.CDLL(name) if name else None
        except OSError:
            continue
        if found is not None:
            return _declared(found)
    raise BackendUnavailable("libgsl is not installed: apt install libgsl27 (or libgsl28), brew install gsl")


def _declared(gsl: ctypes.CDLL) -> ctypes.CDLL:
    for kind in ("", "_workspace"):
        getattr(gsl, f"gsl_wavelet{kind}_alloc").restype = _POINTER
        getattr(gsl, f"gsl_wavelet{kind}_free").argtypes = [_POINTER]
        getattr(gsl, f"gsl_wavelet{kind}_free").restype = None
    gsl.gsl_wavelet_alloc.argtypes = [_POINTER, _SIZE]
    gsl.gsl_wavelet_workspace_alloc.argtypes = [_SIZE]
    for way in ("forward", "inverse"):
        getattr(gsl, f"gsl_wavelet_transform_{way}").argtypes = [_POINTER, _POINTER, _SIZE, _SIZE, _POINTER]
    return gsl


def version() -> str | None:
    """Of the library; None without it."""
    try:
        return str(ctypes.c_char_p.in_dll(load(), "gsl_version").value, "ascii")  # type: ignore[arg-type]
    except BackendUnavailable:
        return None


class Daubechies:
    """The transform by one of `WAVELETS` of so many samples, a power of two."""

    def __init__(self, wavelet: str, samples: int) -> None:
        check("wavelet", wavelet, WAVELETS)  # GSL itself would end the process
        taps = 2 * int(wavelet[2:])
        if samples < 1 or samples & (samples - 1):
            raise ValueError(f"GSL transforms powers of two, not {samples} samples")
        self._gsl, self.samples = load(), samples
        kind = _POINTER.in_dll(self._gsl, "gsl_wavelet_daubechies")
        self._filter = self._gsl.gsl_wavelet_alloc(kind, taps)
        self._work = self._gsl.gsl_wavelet_workspace_alloc(samples)
        if not (self._filter and self._work):
            raise MemoryError(f"GSL made no transform of {samples} samples with {taps} taps")
        weakref.finalize(self, self._gsl.gsl_wavelet_free, self._filter)
        weakref.finalize(self, self._gsl.gsl_wavelet_workspace_free, self._work)

    def _run(self, way: str, data: NDArray[np.float64]) -> None:
        function = getattr(self._gsl, f"gsl_wavelet_transform_{way}")
        if function(self._filter, data.ctypes.data, 1, self.samples, self._work):
            raise RuntimeError(f"GSL's {way} transform failed")

    def denoise(self, x: NDArray[Any], level: int) -> NDArray[np.float64]:
        """Universal soft threshold of the finest levels, noise from the median of the finest.

        GSL transforms down to one coefficient; what is coarser than ``level`` comes back unchanged.
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
    """Samples by which a signal is rolled to the left for PyWavelets' periodization to compute what GSL does."""
    return (taps // 2 - 1) * ((1 << level) - 1)
