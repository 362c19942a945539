"""The fast CPU backend: kernels compiled by numba, spread over the library's own threads.

One compilation serves every filter, mode, length and level; only float32 and float64 have one each.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import zip_longest
from typing import Any

import numba
import numpy as np
import pywt
from numpy.typing import NDArray

from wavefilt import threads
from wavefilt.backends.crossover import numba_crossover
from wavefilt.backends.interface import Backend, Pyramid, Pyramid2
from wavefilt.backends.numba_cpu.dwt import kernels, plan
from wavefilt.backends.numba_cpu.dwt2 import transform as sections
from wavefilt.backends.numba_cpu.modwt import transform as modwt
from wavefilt.errors import BackendUnavailable
from wavefilt.thresholding.shrinkage import Shrinkage
from wavefilt.vocabulary import TRANSFORMS, Scope, check
from wavefilt.wavelets import boundary

from . import launching, memory, partial_sums
from .compiler import sign_off
from .selection import NumbaStatistics

_DTYPES = {np.dtype(name): name for name in ("float32", "float64")}


class _Packed(Pyramid):
    """A pyramid as kernels take it: its arrays belong together, and their elements lie aligned and in C order."""

    addresses: NDArray[np.int64]
    """Where the details begin, finest first; the last is the approximation's."""

    def __init__(
        self,
        coefficients: tuple[NDArray[Any], ...],
        wavelet: pywt.Wavelet,
        mode: str,
        samples: int,
        addresses: NDArray[np.int64],
    ) -> None:
        super().__init__(coefficients, wavelet, mode, samples)
        object.__setattr__(self, "addresses", addresses)

    def __reduce__(self) -> Any:
        """Copies, whose arrays lie elsewhere, are plain pyramids."""
        return Pyramid, (self.coefficients, self.wavelet, self.mode, self.samples)


@lru_cache(maxsize=64)
def _analysis(wavelet: pywt.Wavelet, dtype: np.dtype[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """The filters of `kernels.forward`. A wavelet never changes, and making its lists takes longer than finding it."""
    return np.array(wavelet.dec_lo[::-1], dtype), np.array(wavelet.dec_hi[::-1], dtype)


@lru_cache(maxsize=64)
def _synthesis(wavelet: pywt.Wavelet, dtype: np.dtype[Any]) -> tuple[NDArray[Any], NDArray[Any]]:
    """The filters of `kernels.inverse`: taps of even and of odd outputs, low and high in turn."""
    bank = np.array([wavelet.rec_lo, wavelet.rec_hi], dtype)
    return bank[:, -2::-2].T.ravel(), bank[:, ::-2].T.ravel()


class NumbaCPU(Backend):
    name = "numba"
    dtypes = ("float32", "float64")
    whole_bytes_factor, chunk_bytes_factor = 9.0, 5.8
    summation = partial_sums.ChunkSums()

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

    def decompose(
        self,
        x: NDArray[Any],
        wavelet: pywt.Wavelet,
        mode: str,
        level: int,
        transform: str = "dwt",
        start_level: int = 0,
    ) -> Pyramid:
        rows, samples = x.shape
        dtype = self._check(x)
        x = memory.packed(x)
        if not level:
            return Pyramid((x,), wavelet, mode, samples, transform, start_level)
        check("transform", transform, TRANSFORMS)
        if transform == "modwt":
            pyramid = modwt.decompose(x, wavelet, mode, level, start_level, self._tile)
            numba_crossover.loaded.add(f"modwt {_DTYPES[dtype]}")
            return pyramid
        lo, hi = _analysis(wavelet, dtype)
        where = boundary.first_input(len(lo), mode), boundary.code(mode)
        shape = samples, len(lo), mode, level, self._tile
        arrays, addresses = memory.several(rows, plan.outputs(*shape), dtype)
        source = memory.address(x)
        for launch, target in zip(plan.launches(*shape), addresses[level:], strict=True):
            details = addresses[launch.first : launch.first + launch.depth]
            launching.run(kernels.forward, rows, launch, (source, details, target, *where, lo, hi), (x, arrays))
            source = target
        numba_crossover.loaded.add(_DTYPES[dtype])
        return _Packed((arrays[-1], *reversed(arrays[:level])), wavelet, mode, samples, addresses)

    def statistics(self, pyramids: Sequence[Pyramid | Pyramid2], scope: Scope) -> NumbaStatistics:
        levels = zip_longest(*(pyramid.details for pyramid in pyramids))
        return NumbaStatistics([[d for d in details if d is not None] for details in levels], scope)

    def reconstruct(
        self, pyramid: Pyramid, shrinkage: Shrinkage | None = None, out: NDArray[Any] | None = None
    ) -> NDArray[Any]:
        """The rows again; into ``out``, C-contiguous and of the result's shape and dtype, if given.

        Raises ValueError for coefficients that do not belong together: kernels check nothing.
        """
        if shrinkage is not None and shrinkage.function not in launching.FUNCTIONS:
            shrunk = shrinkage.of_all(pyramid.coefficients)
            pyramid, shrinkage = pyramid.holding(shrunk), None
        if pyramid.transform == "modwt":
            self._check(pyramid.coefficients[0])
            return modwt.reconstruct(pyramid, shrinkage, out, self._tile)
        packed = pyramid if isinstance(pyramid, _Packed) else self._packed(pyramid)
        y, level = packed.coefficients[0], packed.level
        rows, dtype = len(y), y.dtype
        out, begin = launching.destination(out, (rows, pyramid.samples), dtype)
        if not level:
            out[:] = y[:, : packed.samples]
            return out
        filters = _synthesis(packed.wavelet, dtype)
        taps = len(filters[0])
        shift = taps // 2 - 1 if packed.mode == "periodization" else 0
        function, thresholds = launching.shrinking(shrinkage, (level, rows))
        source = packed.addresses[-1]
        for launch in reversed(plan.launches(packed.samples, taps, packed.mode, level, self._tile)):
            levels = slice(launch.first, launch.first + launch.depth)
            finer, target = (out, begin) if launch.first == 0 else memory.placed((rows, int(launch.lengths[0])), dtype)
            coefficients = packed.addresses[levels], source, y.shape[1]
            arguments = target, *coefficients, shift, function, thresholds[levels], *filters
            launching.run(kernels.inverse, rows, launch, arguments, (packed, y, finer))
            y, source = finer, target
        numba_crossover.loaded.add(_DTYPES[dtype])
        return out

    def decompose2(
        self, x: NDArray[Any], wavelets: tuple[pywt.Wavelet, pywt.Wavelet], modes: tuple[str, str], level: int
    ) -> Pyramid2:
        numba_crossover.loaded.add(f"sections {_DTYPES[self._check(x)]}")
        return sections.decompose(x, wavelets, modes, level, _analysis)

    def reconstruct2(self, pyramid: Pyramid2, shrinkage: Shrinkage | None = None) -> NDArray[Any]:
        self._check(pyramid.coefficients[0])
        return sections.reconstruct(pyramid, shrinkage, _synthesis)

    def release(self) -> None:
        memory.trim()

    def peak(self, x: NDArray[Any]) -> float:
        """Largest |x|: NaN if there is a NaN, else infinite if there is an infinity; 0 for no samples."""
        dtype = self._check(x)
        x, mask = memory.packed(x), sign_off(dtype)
        address, peaks = memory.address(x), [0]

        def work(begin: int, end: int, _: NDArray[Any] = x) -> None:  # whose memory must live as long as the work
            peaks.append(kernels.peak(address + begin * dtype.itemsize, end - begin, mask))

        threads.parallel(work, x.size, 4 * launching.GRAIN)
        return float(np.array(max(peaks), mask.dtype).view(dtype))

    def _check(self, array: NDArray[Any]) -> np.dtype[Any]:
        if array.dtype not in _DTYPES:  # by object: the name of a dtype takes 15 us to spell
            raise TypeError(f"backend 'numba' computes in {' and '.join(self.dtypes)}, not {array.dtype}")
        return array.dtype

    def _packed(self, pyramid: Pyramid) -> _Packed:
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
        coefficients = tuple(memory.packed(c) for c in pyramid.coefficients)
        addresses = memory.addresses(coefficients[::-1])
        return _Packed(coefficients, pyramid.wavelet, pyramid.mode, pyramid.samples, addresses)
