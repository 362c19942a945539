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
from wavefilt.backends import numba_crossover
from wavefilt.backends.interface import Pyramid
from wavefilt.errors import BackendUnavailable
from wavefilt.shrinkage import Shrinkage
from wavefilt.vocabulary import Scope

from . import kernels, memory, plan
from .selection import NumbaStatistics

_FUNCTIONS = {"soft": kernels.SOFT, "hard": kernels.HARD, "garrote": kernels.GARROTE, "firm": kernels.FIRM}
_DTYPES = {np.dtype(name): name for name in ("float32", "float64")}
GRAIN = 1 << 15  # samples below which a share of the work is not worth waking a thread


class NumbaCPU:
    name = "numba"
    dtypes = ("float32", "float64")

    def __init__(self, tile: int = plan.TILE) -> None:
        """``tile``, in samples, changes how work is cut up and never a result.

        Raises BackendUnavailable if numba has been told to compile nothing.
        """
        if numba.config.DISABLE_JIT:
            raise BackendUnavailable("backend 'numba' computes nothing while NUMBA_DISABLE_JIT is set: unset it")
        self._tile = tile

    def describe(self) -> str:
        try:
            count = threads.get_num_threads()
        except ValueError as error:
            return f"numba {numba.__version__}, but {error}"
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
            arguments, kept = (addresses, target, *where, lo, hi), (outputs, approximation)
            self._run(kernels.forward, rows, launch, source, arguments, kept)
            details += outputs
        return Pyramid((approximation, *reversed(details)), wavelet, mode, samples)

    def statistics(self, pyramids: Sequence[Pyramid], scope: Scope) -> NumbaStatistics:
        depth = max(pyramid.level for pyramid in pyramids)
        levels = [[p.coefficients[-i] for p in pyramids if p.level >= i] for i in range(1, depth + 1)]
        return NumbaStatistics(levels, scope)

    def reconstruct(
        self, pyramid: Pyramid, shrinkage: Shrinkage | None = None, out: NDArray[Any] | None = None
    ) -> NDArray[Any]:
        """The rows again; into ``out``, C-contiguous and of the result's shape and dtype, if given.

        Raises ValueError for coefficients that do not belong together: kernels check nothing.
        """
        self._check_pyramid(pyramid)
        coefficients = [memory.packed(c) for c in pyramid.coefficients]
        y, details = coefficients[0], coefficients[:0:-1]
        rows, dtype = len(y), y.dtype
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
            self._run(kernels.inverse, rows, launch, target, (*source, *shrink, *filters), (details, y))
            y = target
        return out

    def peak(self, x: NDArray[Any]) -> float:
        """Largest |x|: NaN if there is a NaN, else infinite if there is an infinity; 0 for no samples."""
        dtype = self._check(x)
        flat = memory.packed(x).reshape(-1)
        bits = np.dtype(f"i{dtype.itemsize}")
        like, sign_off = np.empty(0, bits), np.array([np.iinfo(bits).max], bits)
        address, peaks = memory.address(flat), [0]

        def work(begin: int, end: int, _: NDArray[Any] = flat) -> None:  # whose memory must live as long as the work
            peaks.append(kernels.peak(address + begin * dtype.itemsize, end - begin, like, sign_off))

        threads.parallel(work, flat.size, 4 * GRAIN)
        return float(np.array(max(peaks), bits).view(dtype))

    def _check(self, array: NDArray[Any]) -> np.dtype[Any]:
        if array.dtype not in _DTYPES:  # by object: the name of a dtype takes 15 us to spell
            raise TypeError(f"backend 'numba' computes in {' and '.join(self.dtypes)}, not {array.dtype}")
        return array.dtype

    def _check_pyramid(self, pyramid: Pyramid) -> None:
        y, *details = pyramid.coefficients
        dtype, rows = self._check(y), len(y)
        lengths = plan.lengths(pyramid.samples, pyramid.wavelet.rec_len, pyramid.mode, len(details))
        shapes = [(rows, length) for length in lengths[:0:-1]]
        # an approximation that was itself reconstructed may have one sample more than is used
        fits = y.ndim == 2 and y.shape[1] >= lengths[-1] and [d.shape for d in details] == shapes
        if not fits or any(d.dtype != dtype for d in details):
            found = ", ".join(f"{c.dtype} {c.shape}" for c in pyramid.coefficients)
            wanted = ", ".join(str(shape) for shape in [(rows, lengths[-1]), *shapes])
            raise ValueError(
                f"coefficients {found} do not belong together: {pyramid.samples} samples have {wanted} of one dtype"
            )

    def _run(
        self,
        kernel: Any,
        rows: int,
        launch: plan.Launch,
        array: NDArray[Any],
        arguments: tuple[Any, ...],
        kept: tuple[Any, ...],
    ) -> None:
        """Call ``kernel`` on all tiles of all rows, ``array`` being the finer side of the transform.

        ``kept`` are the arrays behind the addresses in ``arguments``, which must live as long as the work does.
        """
        tile = max(int(launch.lengths[0]) // launch.tiles, 1)
        address = memory.address(array)

        def work(begin: int, end: int, _: Any = (array, kept)) -> None:
            kernel(address, *launch.arguments, *arguments, begin, end)

        threads.parallel(work, rows * launch.tiles, max(GRAIN // tile, 1))
        numba_crossover.loaded.add(_DTYPES[array.dtype])
