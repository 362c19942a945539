"""The fast CPU backend: kernels compiled by numba, spread over the library's own threads.

One compilation serves every filter, mode, length and level; only float32 and float64 have one each.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import zip_longest

import numpy as np

from wavefilt import threads
from wavefilt.arrays import Array, DType
from wavefilt.backends.crossover import numba_crossover
from wavefilt.backends.interface import Backend
from wavefilt.errors import BackendUnavailable
from wavefilt.options import Options
from wavefilt.statistics.reference import Measured
from wavefilt.thresholding.shrinkage import Shrinkage
from wavefilt.transforms import Analysis, Pyramid
from wavefilt.vocabulary import Scope

from . import (
    dual_tree,
    dwt,
    dwt2,
    entries,
    launching,
    local,
    memory,
    modwt,
    native,
    prepared,
)
from .selection import ChunkSums, NumbaStatistics, Peak

_DTYPES = {np.dtype(name): name for name in numba_crossover.DTYPES}

_TRANSFORMS: dict[str, tuple[launching.Decompose, launching.Reconstruct]] = {
    "dwt": (dwt.decompose, dwt.reconstruct),
    "modwt": (modwt.decompose, modwt.reconstruct),
    "dwt2": (dwt2.decompose, dwt2.reconstruct),
    "dtcwt": (dual_tree.decompose, dual_tree.reconstruct),
    "dtcwt2": (dual_tree.decompose, dual_tree.reconstruct),
    "modwt2": (modwt.decompose_sections, modwt.reconstruct_sections),
    "wp": (dwt.decompose_packets, dwt.reconstruct_packets),
}
"""``decompose(x, analysis, tile, peak)`` for at least one level, and ``reconstruct(pyramid, shrinkage, out, tile)``."""


def load(transform: str, dtype: str) -> None:
    """Load the kernels of a transform. Raises BackendUnavailable if numba cannot compile them."""
    native.load(entries.TRANSFORMS[transform], np.dtype(dtype))


def compiled(transform: str, dtype: str) -> bool:
    """Return whether the kernels of a transform and of long rows are in memory, or in the cache on disk."""
    kind, kernels = np.dtype(dtype), (*entries.TRANSFORMS[transform], *entries.LONG)
    return all(kind.char in kernel.versions or native.cached((kernel, kind)) for kernel in kernels)


class NumbaCPU(Backend):
    name = "numba"
    dtypes = ("float32", "float64")
    transforms = tuple(_TRANSFORMS)
    whole_bytes_factor, chunk_bytes_factor = 9.0, 5.8
    summation = ChunkSums()

    def __init__(self, tile: int = dwt.TILE) -> None:
        """Create the backend; ``tile``, in samples, changes how work is cut up and never a result.

        Raises BackendUnavailable if numba has been told to compile nothing.
        """
        if os.environ.get("NUMBA_DISABLE_JIT", "0") != "0":
            raise BackendUnavailable("backend 'numba' computes nothing while NUMBA_DISABLE_JIT is set: unset it")
        self._tile = tile

    def describe(self) -> str:
        from importlib.metadata import version  # which takes long to import

        try:
            count = threads.get_num_threads()
        except ValueError as error:
            return f"numba {version('numba')}, but {error}"
        return f"numba {version('numba')}, {count} thread{'s' if count > 1 else ''}"

    def decompose(self, x: Array, analysis: Analysis) -> Pyramid:
        dtype, name = self._check(x), analysis.transform.name
        x = memory.packed(x)
        if not analysis.level:
            return Pyramid((x,), analysis, x.shape[1:])
        native.load(entries.TRANSFORMS[name], dtype)
        pyramid = _TRANSFORMS[name][0](x, analysis, self._tile, None)
        numba_crossover.note(name, _DTYPES[dtype])
        return pyramid

    def peak_and_pyramid(self, x: Array, analysis: Analysis) -> tuple[float, Pyramid | None]:
        dtype, name = self._check(x), analysis.transform.name
        if not analysis.level or not x.size:
            return self.peak(x), self.decompose(x, analysis)
        x = memory.packed(x)
        native.load(entries.TRANSFORMS[name], dtype)
        peak = Peak(x)
        pyramid = _TRANSFORMS[name][0](x, analysis, self._tile, peak)
        numba_crossover.note(name, _DTYPES[dtype])
        return peak.value, pyramid if peak.finite else None

    def denoise(
        self, x: Array, options: Options, level: int, report: bool, out: Array | None = None, *, wait: bool = True
    ) -> tuple[Array, Measured | None] | None:
        """Denoise rows in a single launch; None where they have to be denoised step by step: see `prepared`."""
        derived = type(self) is not NumbaCPU  # it may transform in another way
        if report or derived or x.dtype not in _DTYPES or not (x.flags.c_contiguous and x.flags.aligned):
            return None
        return prepared.denoise(x, options, level, self._tile, out)

    def statistics(self, pyramids: Sequence[Pyramid], scope: Scope) -> NumbaStatistics:
        bands = zip_longest(*(pyramid.details for pyramid in pyramids))
        return NumbaStatistics([[d for d in details if d is not None] for details in bands], scope)

    def shrunk(self, pyramid: Pyramid, shrinkage: Shrinkage) -> Pyramid:
        if not local.compiled(shrinkage):
            return pyramid.shrunk(shrinkage)
        native.load(entries.TRANSFORMS[pyramid.analysis.transform.name], self._check_coefficients(pyramid))
        return local.shrunk(pyramid, shrinkage)

    def reconstruct(self, pyramid: Pyramid, shrinkage: Shrinkage | None = None, out: Array | None = None) -> Array:
        """Return the reconstructed samples, for traces in ``out`` if given: C-contiguous, of the result's dtype.

        Raises ValueError for coefficients that do not belong together.
        """
        dtype, name = self._check_coefficients(pyramid), pyramid.analysis.transform.name
        native.load(entries.TRANSFORMS[name], dtype)
        if shrinkage is not None and local.compiled(shrinkage):
            pyramid, shrinkage = local.shrunk(pyramid, shrinkage), None
        if shrinkage is not None and name != "wp" and shrinkage.function not in launching.FUNCTIONS:
            pyramid, shrinkage = pyramid.shrunk(shrinkage), None
        y = _TRANSFORMS[name][1](pyramid, shrinkage, out, self._tile)
        numba_crossover.note(name, _DTYPES[dtype])
        return y

    def result(self, shape: tuple[int, ...], dtype: DType) -> Array:
        return memory.placed(shape, dtype, result=True)[0]

    def release(self) -> None:
        prepared.release()
        memory.release()

    def peak(self, x: Array) -> float:
        dtype = self._check(x)
        x = memory.packed(x)
        if dtype.char not in entries.PEAK.versions:  # which kernels this run will need is not known yet
            return super().peak(x)
        peak = Peak(x)
        peak.find()
        return peak.value

    def _check_coefficients(self, pyramid: Pyramid) -> DType:
        """Return the dtype of the samples of a pyramid, whose coefficients may be complex."""
        first = pyramid.coefficients[0]
        return self._check(first.real if pyramid.analysis.transform.parts == 2 else first)

    def _check(self, array: Array) -> DType:
        if array.dtype not in _DTYPES:  # by object: the name of a dtype takes 15 us to spell
            raise TypeError(f"backend 'numba' computes in {' and '.join(self.dtypes)}, not {array.dtype}")
        threads.requested()
        return array.dtype
