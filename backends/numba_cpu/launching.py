"""Kernels called on all tiles of all rows, and the common steps of the transforms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pywt

from wavefilt.arrays import Array, Counts, DType, Floats
from wavefilt.thresholding.shrinkage import Shrinkage
from wavefilt.transforms import Analysis, Pyramid

from . import memory, team
from .native import Constant, Kernel
from .selection import Peak

KEEP, SOFT, HARD, GARROTE, FIRM = range(5)
"""Numbers of the threshold functions, for inverse kernels."""
LARGEST = {kind: float(np.finfo(kind).max) for kind in "fd"}
GRAINS = {"dwt_kernels": 1 << 13, "modwt_kernels": 1 << 13, "dwt2_kernels": 1 << 17, "dual_tree_kernels": 1 << 15}
"""Samples for each thread from which it pays, as measured; not measured for the dual tree."""
FUNCTIONS = {"soft": SOFT, "hard": HARD, "garrote": GARROTE, "firm": FIRM}


@dataclass(frozen=True)
class Launch:
    """One call of a kernel: ``depth`` levels of every row from level ``first`` on, cut into tiles.

    A forward launch reads ``columns`` elements of a row, which an inverse one writes, and leaves ``rest`` to the next.
    """

    arguments: Constant
    tiles: int
    """Tiles of each row."""
    work: int
    """Samples of a tile, or the number of samples that take as long."""
    first: int = 0
    depth: int = 1
    columns: int = 0
    rest: int = 0
    elements: int = 0
    """Elements of the samples' size, and ``more`` bytes, of the workspace."""
    more: int = 0


def job(
    kernel: Kernel,
    dtype: DType,
    rows: int,
    launch: Launch,
    arguments: tuple[object, ...],
    kept: object,
    peak: Peak | None = None,
) -> team.Job:
    """Return a job: the kernel on all tiles of all rows, and the ``peak`` of the samples it reads if that is given.

    ``kept`` are the arrays behind addresses in ``arguments``, which must live as long as the work, except the rows.
    """
    workspace, jobs = launch.elements * dtype.itemsize + launch.more, rows * launch.tiles
    work = kernel.of(dtype, launch.arguments, *arguments, workspace=workspace, kept=kept)
    grain = max(GRAINS[kernel.module] // max(launch.work, 1), 1)
    return peak.along(work, jobs, grain) if peak else team.Job(work, jobs, grain)


@lru_cache(maxsize=64)
def analysis_filters(wavelet: pywt.Wavelet, dtype: DType, over: float = 1.0) -> Constant:
    """Return the filters of forward kernels, divided by ``over``: PyWavelets takes long to list them."""
    lo, hi = (np.array(taps[::-1]) / over for taps in (wavelet.dec_lo, wavelet.dec_hi))
    return Constant(lo.astype(dtype), hi.astype(dtype))


@lru_cache(maxsize=64)
def synthesis_filters(wavelet: pywt.Wavelet, dtype: DType) -> Constant:
    """Return the taps of the even and of the odd outputs of an inverse decimated transform, low and high in turn."""
    bank = np.array([wavelet.rec_lo, wavelet.rec_hi], dtype)
    return Constant(bank[:, -2::-2].T.ravel(), bank[:, ::-2].T.ravel())


def past(limit: int, shape: tuple[int, ...], itemsize: int) -> int:
    """Return the samples of a row from which kernels store past the caches, for arrays of ``limit`` bytes or more."""
    return max(limit // max(shape[0] * itemsize, 1), 1)


def destination(out: Array | None, shape: tuple[int, ...], dtype: DType) -> tuple[Array, int]:
    """Return ``out``, or a new array, and its address. Raises ValueError for an ``out`` of another shape or dtype."""
    if out is None:
        return memory.placed(shape, dtype, result=True)
    if out.shape != shape or out.dtype != dtype or not out.flags.carray:
        raise ValueError(f"out must be a C-contiguous {dtype} array of shape {shape}")
    return out, memory.address(out)


def shrinking(shrinkage: Shrinkage | None, pyramid: Pyramid) -> tuple[int, Floats]:
    """Return the number of the threshold function, and thresholds (bands, rows) finite in the coefficients' dtype."""
    y = pyramid.coefficients[0]
    if shrinkage is None:
        return KEEP, np.empty((len(pyramid.coefficients) - 1, len(y)))
    thresholds = np.asarray(shrinkage.thresholds, float)
    return FUNCTIONS[str(shrinkage.function)], np.minimum(thresholds, LARGEST[y.dtype.char], order="C")


class Packed(Pyramid):
    """A pyramid as kernels take it: arrays of the right shapes, aligned and in C order."""

    addresses: Counts
    """Addresses of the details, finest first, and at the end of the approximation."""

    def __init__(
        self, coefficients: tuple[Array, ...], analysis: Analysis, shape: tuple[int, ...], addresses: Counts
    ) -> None:
        super().__init__(coefficients, analysis, shape)
        object.__setattr__(self, "addresses", addresses)

    def __reduce__(self) -> tuple[type[Pyramid], tuple[object, ...]]:
        """Make copies plain pyramids: their arrays lie elsewhere."""
        return Pyramid, (self.coefficients, self.analysis, self.shape)


def analysing(
    kernel: Kernel,
    x: Array,
    analysis: Analysis,
    launches: Sequence[Launch],
    lengths: Sequence[int],
    constants: tuple[object, ...],
    peak: Peak | None,
) -> tuple[Packed, list[team.Job]]:
    """Return the pyramid of rows, and the jobs that compute it, and their ``peak`` if that is given.

    ``lengths`` are the lengths of the details, finest first; each launch has an approximation as well.
    """
    arrays, addresses = memory.several(len(x), [*lengths, *(launch.rest for launch in launches)], x.dtype)
    source, jobs = memory.address(x), list[team.Job]()
    for launch, target in zip(launches, addresses[-len(launches) :].tolist(), strict=True):
        details, first = addresses[launch.first : launch.first + launch.depth], None if jobs else peak
        jobs.append(job(kernel, x.dtype, len(x), launch, (source, details, target, *constants), arrays, first))
        source = target
    return Packed((arrays[-1], *reversed(arrays[: analysis.level])), analysis, x.shape[1:], addresses), jobs


def synthesising(
    kernel: Kernel,
    pyramid: Packed,
    launches: Sequence[Launch],
    function: int,
    thresholds: Floats,
    out: Array | None,
    *constants: object,
) -> tuple[Array, list[team.Job]]:
    """Return the reconstructed rows, in ``out`` if given, and the jobs that compute them.

    Their kernel takes ``constants`` after all other arguments.
    """
    (samples,), y = pyramid.shape, pyramid.coefficients[0]
    out, begin = destination(out, (len(y), samples), y.dtype)
    if not launches:
        out[:] = y
    source, jobs = int(pyramid.addresses[-1]), list[team.Job]()
    for launch in reversed(launches):
        own = slice(launch.first, launch.first + launch.depth)
        finer, target = memory.placed((len(y), launch.columns), y.dtype) if launch.first else (out, begin)
        arguments = target, pyramid.addresses[own], source, function, thresholds[own], *constants
        kept = pyramid.coefficients, finer if launch.first else None
        jobs.append(job(kernel, y.dtype, len(y), launch, arguments, kept))
        source = target
    return out, jobs


def run(jobs: Sequence[team.Job], peak: Peak | None) -> None:
    """Run one job after the other; the first finds the ``peak``, and the rest does not run if that is not finite."""
    if peak:
        peak.found = team.run(jobs, peak.infinite)
    else:
        team.run(jobs)


Analysing = Callable[[Array, Analysis, int, Peak | None], tuple[Pyramid, list[team.Job]]]
"""``analysing(x, analysis, tile, peak)`` returns the pyramid, and the jobs that compute it."""
Synthesising = Callable[[Pyramid, int, Floats, Array | None, int], tuple[Array, list[team.Job]]]
"""``synthesising(pyramid, function, thresholds, out, tile)`` returns the rows, and the jobs that compute them."""


Decompose = Callable[[Array, Analysis, int, Peak | None], Pyramid]
Reconstruct = Callable[[Pyramid, Shrinkage | None, Array | None, int], Array]


def decompose(analysing: Analysing, x: Array, analysis: Analysis, tile: int, peak: Peak | None) -> Pyramid:
    """Return the coefficients of ``x``."""
    pyramid, jobs = analysing(x, analysis, tile, peak)
    run(jobs, peak)
    return pyramid


def reconstruct(
    synthesising: Synthesising, pyramid: Pyramid, shrinkage: Shrinkage | None, out: Array | None, tile: int
) -> Array:
    """Return the reconstructed rows or sections."""
    y, jobs = synthesising(pyramid, *shrinking(shrinkage, pyramid), out, tile)
    if jobs:
        team.run(jobs)
    return y


def checked(coefficients: Sequence[Array], pyramid: Pyramid, wanted: Sequence[tuple[int, ...]]) -> Packed:
    """Return coefficients, packed, as a pyramid. Raises ValueError for other shapes than wanted, or several dtypes."""
    if [c.shape for c in coefficients] == wanted and len({c.dtype for c in coefficients}) == 1:
        packed = tuple(memory.packed(c) for c in coefficients)
        return Packed(packed, pyramid.analysis, pyramid.shape, memory.addresses(packed[::-1]))
    found = ", ".join(f"{c.dtype} {c.shape}" for c in coefficients)
    what = f"{pyramid.samples} samples" if len(pyramid.shape) == 1 else f"a section {pyramid.shape}"
    raise ValueError(
        f"coefficients {found} do not belong together: {what} have {', '.join(map(str, wanted))} of one dtype"
    )
