"""The fast CPU backend: kernels compiled by numba, spread over the library's own threads.

One compilation serves every filter, mode, length and level; only float32 and float64 have one each.
"""

from __future__ import annotations

import os
from collections.abc import Hashable, Sequence
from functools import partial
from itertools import zip_longest

import numpy as np

from wavefilt import threads
from wavefilt.arrays import Array, DType
from wavefilt.backends.crossover import numba_crossover
from wavefilt.backends.interface import Again, Backend
from wavefilt.errors import BackendUnavailable
from wavefilt.options import Options
from wavefilt.statistics.interface import NOTHING, Wanted
from wavefilt.thresholding.shrinkage import Shrinkage
from wavefilt.transforms import Analysis, Pyramid
from wavefilt.vocabulary import Scope

from . import entries, launching, memory, native, partial_sums, prepared, wavelet_packets, whole
from .dual_tree import rows as dual_tree_rows
from .dual_tree import transform as dual_tree
from .dwt import plan
from .dwt import transform as dwt
from .dwt2 import transform as dwt2
from .launching import Packed
from .local import shrinkage as local_shrinkage
from .modwt import planes as modwt2
from .modwt import transform as modwt
from .peaks import GRAIN, Peak
from .selection import NumbaStatistics, cut_from

_DTYPES = {np.dtype(name): name for name in numba_crossover.DTYPES}


_ROWS = {"dwt": (dwt.analysing, dwt.synthesising), "modwt": (modwt.analysing, modwt.synthesising)}
"""What plans are made of."""
_TRANSFORMS: dict[str, tuple[launching.Decompose, launching.Reconstruct]] = {
    "dwt": (dwt.decompose, dwt.reconstruct),
    "modwt": (modwt.decompose, modwt.reconstruct),
    "dwt2": (dwt2.decompose, dwt2.reconstruct),
    "dtcwt": (dual_tree_rows.decompose, dual_tree_rows.reconstruct),
    "dtcwt2": (dual_tree.decompose, dual_tree.reconstruct),
    "modwt2": (modwt2.decompose, modwt2.reconstruct),
    "wp": (wavelet_packets.decompose, wavelet_packets.reconstruct),
}
"""``decompose(x, analysis, tile, peak)`` for one level at least, and ``reconstruct(pyramid, shrinkage, out, tile)``."""


def compiled(transform: str, dtype: str) -> bool:
    """Whether the kernels of a transform and of long rows are in memory, or in the cache on disk."""
    kind, kernels = np.dtype(dtype), (*entries.TRANSFORMS[transform], *entries.LONG)
    return all(kind.char in kernel.versions or native.cached((kernel, kind)) for kernel in kernels)


class NumbaCPU(Backend):
    name = "numba"
    dtypes = ("float32", "float64")
    transforms = tuple(_TRANSFORMS)
    whole_bytes_factor, chunk_bytes_factor = 9.0, 5.8
    summation = partial_sums.ChunkSums()

    def __init__(self, tile: int = plan.TILE) -> None:
        """``tile``, in samples, changes how work is cut up and never a result.

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

    def peak_and_pyramid(self, x: Array, analysis: Analysis, wanted: Wanted = NOTHING) -> tuple[float, Pyramid | None]:
        dtype, name = self._check(x), analysis.transform.name
        if not analysis.level or not x.size:
            return self.peak(x), self.decompose(x, analysis)
        x, samples = memory.packed(x), x.shape[-1]
        long = name == "dwt" and samples > 2 * cut_from(len(x), samples)
        native.load(entries.TRANSFORMS[name] + (entries.LONG if long and wanted.medians else ()), dtype)
        if name in _ROWS:
            key = self._key(x, analysis, wanted)
            plan = memory.lend(key, prepared.Plan)
            plan = plan or prepared.Plan(x, analysis, self._tile, wanted, *_ROWS[name])
            peak = plan.analyse(x)
            pyramid: Pyramid = prepared.Lent(plan, key)
        else:
            peak = Peak(x)
            pyramid = _TRANSFORMS[name][0](x, analysis, self._tile, peak)
        numba_crossover.note(name, _DTYPES[dtype])
        return peak.value, pyramid if peak.finite else None

    def repeated(self, x: Array, method: Options, level: int) -> Again | None:
        own = type(self) is NumbaCPU  # what is derived from it may transform in another way
        possible = own and method.transform.name in _ROWS and whole.possible(x, method, level)
        return partial(self._again, method, level, self._key(x, id(method), level)) if possible else None

    def _again(self, method: Options, level: int, key: Hashable, x: Array) -> Array | None:
        denoise = memory.lend(key, whole.Whole)
        if denoise is None:
            memory.lend(self._key(x, method.analysis(level), method.wanted(level)), prepared.Plan)  # to have its memory
            block = x[: whole.rows_at_once(x, method, level)]
            denoise = whole.Whole(block, method, level, self._tile, *_ROWS[method.transform.name])
        y = denoise.run(x)
        memory.keep(key, denoise)
        return y

    def _key(self, x: Array, *options: Hashable) -> Hashable:
        """What is kept for arrays of one shape by the same options."""
        return x.shape, x.dtype.char, self._tile, threads.get_num_threads(), *options

    def statistics(self, pyramids: Sequence[Pyramid], scope: Scope) -> NumbaStatistics:
        first = pyramids[0]
        if len(pyramids) == 1 and isinstance(first, prepared.Lent) and (scope == "trace" or len(first.details[0]) == 1):
            return first.plan.statistics
        if len(pyramids) == 1 and isinstance(pyramids[0], Packed) and pyramids[0].analysis.transform.name == "dwt":
            return NumbaStatistics([[d] for d in pyramids[0].details], scope, pyramids[0].addresses)
        bands = zip_longest(*(pyramid.details for pyramid in pyramids))
        return NumbaStatistics([[d for d in details if d is not None] for details in bands], scope)

    def shrunk(self, pyramid: Pyramid, shrinkage: Shrinkage) -> Pyramid:
        if not local_shrinkage.compiled(shrinkage):
            return pyramid.shrunk(shrinkage)
        native.load(entries.TRANSFORMS[pyramid.analysis.transform.name], self._check_coefficients(pyramid))
        return local_shrinkage.shrunk(pyramid, shrinkage)

    def reconstruct(self, pyramid: Pyramid, shrinkage: Shrinkage | None = None, out: Array | None = None) -> Array:
        """The samples again; those of traces into ``out``, C-contiguous and of the result's kind, if given.

        Raises ValueError for coefficients that do not belong together.
        """
        dtype, name = self._check_coefficients(pyramid), pyramid.analysis.transform.name
        native.load(entries.TRANSFORMS[name], dtype)
        if shrinkage is not None and local_shrinkage.compiled(shrinkage):
            pyramid, shrinkage = local_shrinkage.shrunk(pyramid, shrinkage), None
        own = name == "wp"
        if shrinkage is not None and not own and shrinkage.function not in launching.FUNCTIONS:
            pyramid, shrinkage = pyramid.shrunk(shrinkage), None
        if isinstance(pyramid, prepared.Lent):
            y = pyramid.plan.synthesise(*launching.shrinking(shrinkage, pyramid), out)
        else:
            y = _TRANSFORMS[name][1](pyramid, shrinkage, out, self._tile)
        numba_crossover.note(name, _DTYPES[dtype])
        return y

    def result(self, shape: tuple[int, ...], dtype: DType) -> Array:
        return memory.placed(shape, dtype, result=True)[0]

    def release(self) -> None:
        memory.trim()

    def peak(self, x: Array) -> float:
        """Largest |x|: NaN if there is a NaN, else infinite if there is an infinity; 0 for no samples."""
        dtype = self._check(x)
        x = memory.packed(x)
        if dtype.char not in entries.PEAK.versions:  # which kernels this run will need is not known yet
            flat, peaks = x.reshape(-1), list[float]()

            def work(begin: int, end: int) -> None:
                part = flat[begin:end]
                peaks.append(max(-part.min(), part.max()))

            threads.parallel(work, x.size, GRAIN)
            return float(np.max(peaks, initial=0))
        peak = Peak(x)
        peak.find()
        return peak.value

    def _check_coefficients(self, pyramid: Pyramid) -> DType:
        """The dtype of the samples; only coefficients of transforms that make complex ones of them are complex."""
        first = pyramid.coefficients[0]
        return self._check(first.real if pyramid.analysis.transform.parts == 2 else first)

    def _check(self, array: Array) -> DType:
        if array.dtype not in _DTYPES:  # by object: the name of a dtype takes 15 us to spell
            raise TypeError(f"backend 'numba' computes in {' and '.join(self.dtypes)}, not {array.dtype}")
        threads.requested()
        return array.dtype
