"""The fast CPU backend: kernels compiled by numba, spread over the library's own threads.

One compilation serves every filter, mode, length and level; only float32 and float64 have one each.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numba
import numpy as np
import pywt
from numpy.typing import NDArray

from wavefilt import boundary, threads
from wavefilt.backends.interface import Pyramid
from wavefilt.shrinkage import Shrinkage
from wavefilt.vocabulary import Scope

from . import kernels, memory, plan
from .selection import NumbaStatistics

_FUNCTIONS = {"soft": kernels.SOFT, "hard": kernels.HARD, "garrote": kernels.GARROTE, "firm": kernels.FIRM}
_DTYPES = {np.dtype(np.float32), np.dtype(np.float64)}
GRAIN = 1 << 15  # samples below which a share of the work is not worth waking a thread


class NumbaCPU:
    name = "numba"
    dtypes = ("float32", "float64")

    def __init__(self, tile: int = plan.TILE) -> None:
        """``tile``, in samples, changes how work is cut up and never a result."""
        self._tile = tile

    def describe(self) -> str:
        count = threads.get_num_threads()
        return f"numba {numba.__version__}, {count} thread{'s' if count > 1 else ''}"

    def decompose(self, x: NDArray[Any], wavelet: pywt.Wavelet, mode: str, level: int) -> Pyramid:
        rows, samples = x.shape
        dtype = self._check(x)
        lo, hi = np.array(wavelet.dec_lo[::-1], dtype), np.array(wavelet.dec_hi[::-1], dtype)
        where = boundary.first_input(len(lo), mode), boundary.code(mode)
        approximation, details = memory.packed(x), []
        for launch in plan.launches(samples, len(lo), mode, level, self._tile):
            source = approximation
            outputs = [memory.empty((rows, int(m)), dtype) for m in launch.lengths[1:]]
            approximation = memory.empty(outputs[-1].shape, dtype)
            addresses, target = memory.addresses(outputs), memory.address(approximation)
            self._run(kernels.forward, rows, launch, source, (addresses, target, *where, lo, hi))
            details += outputs
        return Pyramid((approximation, *reversed(details)), wavelet, mode, samples)

    def statistics(self, pyramids: Sequence[Pyramid], scope: Scope) -> NumbaStatistics:
        depth = max(pyramid.level for pyramid in pyramids)
        levels = [[p.coefficients[-i] for p in pyramids if p.level >= i] for i in range(1, depth + 1)]
        return NumbaStatistics(levels, scope)

    def reconstruct(
        self, pyramid: Pyramid, shrinkage: Shrinkage | None = None, out: NDArray[Any] | None = None
    ) -> NDArray[Any]:
        """The rows again; into ``out``, C-contiguous and of the result's shape and dtype, if given."""
        coefficients = [memory.packed(c) for c in pyramid.coefficients]
        y, details = coefficients[0], coefficients[:0:-1]
        rows, dtype = len(y), self._check(y)
        if out is None:
            out = memory.empty((rows, pyramid.samples), dtype)
        elif out.shape != (rows, pyramid.samples) or out.dtype != dtype or not out.flags.carray:
            raise ValueError(f"out must be a C-contiguous {dtype} array of shape {(rows, pyramid.samples)}")
        if not details:
            out[:] = y[:, : pyramid.samples]
        taps, shift = len(pyramid.wavelet.rec_lo), 0
        if pyramid.mode == "periodization":
            shift = taps // 2 - 1
        bank = np.array([pyramid.wavelet.rec_lo, pyramid.wavelet.rec_hi], dtype)
        filters = bank[:, -2::-2].T.ravel(), bank[:, ::-2].T.ravel()
        function, thresholds = kernels.KEEP, np.zeros((len(details), rows), dtype)
        if shrinkage is not None:
            function = _FUNCTIONS[shrinkage.function]
            thresholds = np.ascontiguousarray(np.minimum(shrinkage.thresholds, np.finfo(dtype).max), dtype)
        for launch in reversed(plan.launches(pyramid.samples, taps, pyramid.mode, len(details), self._tile)):
            levels = slice(launch.first, launch.first + launch.depth)
            target = out if launch.first == 0 else memory.empty((rows, int(launch.lengths[0])), dtype)
            source = memory.addresses(details[levels]), memory.address(y), y.shape[1], shift
            shrink = function, thresholds[levels]
            self._run(kernels.inverse, rows, launch, target, (*source, *shrink, *filters))
            y = target
        return out

    def peak(self, x: NDArray[Any]) -> float:
        """Largest |x|: NaN if there is a NaN, else infinite if there is an infinity; 0 for no samples."""
        dtype = self._check(x)
        flat = memory.packed(x).reshape(-1)
        bits = np.dtype(f"i{dtype.itemsize}")
        like, sign_off = np.empty(0, bits), np.array([np.iinfo(bits).max], bits)
        address, peaks = memory.address(flat), [0]
        threads.parallel(
            lambda a, b: peaks.append(kernels.peak(address + a * dtype.itemsize, b - a, like, sign_off)),
            flat.size,
            4 * GRAIN,
        )
        return float(np.array(max(peaks), bits).view(dtype))

    def _check(self, array: NDArray[Any]) -> np.dtype[Any]:
        if array.dtype not in _DTYPES:  # by object: the name of a dtype takes 15 us to spell
            raise TypeError(f"backend 'numba' computes in {' and '.join(self.dtypes)}, not {array.dtype}")
        return array.dtype

    def _run(
        self, kernel: Any, rows: int, launch: plan.Launch, array: NDArray[Any], arguments: tuple[Any, ...]
    ) -> None:
        """Call ``kernel`` on all tiles of all rows, ``array`` being the finer side of the transform."""
        tile = max(int(launch.lengths[0]) // launch.tiles, 1)
        address = memory.address(array)
        threads.parallel(
            lambda begin, end: kernel(address, *launch.arguments, *arguments, begin, end),
            rows * launch.tiles,
            max(GRAIN // tile, 1),
        )
