"""Kernels called on all tiles of all rows, and what the inverse transforms have in common."""

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
"""What inverse kernels do to details."""
LARGEST = {kind: float(np.finfo(kind).max) for kind in "fd"}
GRAINS = {"dwt_kernels": 1 << 13, "modwt_kernels": 1 << 13, "dwt2_kernels": 1 << 17, "dual_tree_kernels": 1 << 15}
"""Samples for each thread from which it pays, as measured; not measured for the dual tree."""
FUNCTIONS = {"soft": SOFT, "hard": HARD, "garrote": GARROTE, "firm": FIRM}


@dataclass(frozen=True)
class Launch:
    """``depth`` levels of every row from level ``first`` on, cut into tiles, and what its kernels are told of it.

    A forward launch reads ``columns`` elements of a row, which an inverse one writes, and leaves ``rest`` to the next.
    """

    arguments: Constant
    tiles: int
    """Of each row."""
    work: int
    """Samples of a tile, or what takes as long."""
    first: int = 0
    depth: int = 1
    columns: int = 0
    rest: int = 0
    elements: int = 0
    """Of the samples' size, and ``more`` bytes, that a kernel works in."""
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
    """``kernel`` on all tiles of all rows, and the ``peak`` of what it reads if that is asked for.

    ``kept`` are arrays behind addresses in ``arguments``, which must live as long as the work does: all but the rows.
    """
    workspace, jobs = launch.elements * dtype.itemsize + launch.more, rows * launch.tiles
    work = kernel.of(dtype, launch.arguments, *arguments, workspace=workspace, kept=kept)
    grain = max(GRAINS[kernel.module] // max(launch.work, 1), 1)
    return peak.along(work, jobs, grain) if peak else team.Job(work, jobs, grain)


@lru_cache(maxsize=64)
def analysis_filters(wavelet: pywt.Wavelet, dtype: DType, over: float = 1.0) -> Constant:
    """Those of forward kernels, divided. A wavelet never changes, and making its lists takes longer than finding it."""
    lo, hi = (np.array(taps[::-1]) / over for taps in (wavelet.dec_lo, wavelet.dec_hi))
    return Constant(lo.astype(dtype), hi.astype(dtype))


@lru_cache(maxsize=64)
def synthesis_filters(wavelet: pywt.Wavelet, dtype: DType) -> Constant:
    """Those of the inverse kernels of decimated transforms: taps of even and of odd outputs, low and high in turn."""
    bank = np.array([wavelet.rec_lo, wavelet.rec_hi], dtype)
    return Constant(bank[:, -2::-2].T.ravel(), bank[:, ::-2].T.ravel())


def past(limit: int, shape: tuple[int, ...], itemsize: int) -> int:
    """Samples of a row from which kernels store past the caches: of one that has all of an array of ``limit`` bytes."""
    return max(limit // max(shape[0] * itemsize, 1), 1)


def destination(out: Array | None, shape: tuple[int, ...], dtype: DType) -> tuple[Array, int]:
    """``out``, or a new array, and where it begins. Raises ValueError if ``out`` is not of the result's kind."""
    if out is None:
        return memory.placed(shape, dtype, result=True)
    if out.shape != shape or out.dtype != dtype or not out.flags.carray:
        raise ValueError(f"out must be a C-contiguous {dtype} array of shape {shape}")
    return out, memory.address(out)


def shrinking(shrinkage: Shrinkage | None, pyramid: Pyramid) -> tuple[int, Floats]:
    """The number of one of the four functions and the thresholds (bands, rows), finite in the coefficients' dtype."""
    y = pyramid.coefficients[0]
    if shrinkage is None:
        return KEEP, np.empty((len(pyramid.coefficients) - 1, len(y)))
    thresholds = np.asarray(shrinkage.thresholds, float)
    return FUNCTIONS[str(shrinkage.function)], np.minimum(thresholds, LARGEST[y.dtype.char], order="C")


class Packed(Pyramid):
    """A pyramid as kernels take it: its arrays belong together, and their elements lie aligned and in C order."""

    addresses: Counts
    """Where the details begin, finest first; the last is the approximation's."""

    def __init__(
        self, coefficients: tuple[Array, ...], analysis: Analysis, shape: tuple[int, ...], addresses: Counts
    ) -> None:
        super().__init__(coefficients, analysis, shape)
        object.__setattr__(self, "addresses", addresses)

    def __reduce__(self) -> tuple[type[Pyramid], tuple[object, ...]]:
        """Copies, whose arrays lie elsewhere, are plain pyramids."""
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
    """The pyramid of rows, and what computes it, first their ``peak`` if that is asked for.

    ``lengths`` are those of the details, finest first, and of every launch's approximation.
    """
    arrays, addresses = memory.several(len(x), lengths, x.dtype)
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
    """The rows again, in ``out`` if given, and what computes them: kernels that take ``constants`` at the end."""
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


def run(
    kernel: Kernel,
    dtype: DType,
    rows: int,
    launch: Launch,
    arguments: tuple[object, ...],
    kept: object,
    peak: Peak | None = None,
) -> None:
    """A `job` alone."""
    _run([job(kernel, dtype, rows, launch, arguments, kept, peak)], peak)


def _run(jobs: Sequence[team.Job], peak: Peak | None) -> None:
    """One job after the other; the first finds the ``peak``, and no more is worked on if that is not finite."""
    if peak:
        peak.found = team.run(jobs, peak.infinite)
    else:
        team.run(jobs)


Analysing = Callable[[Array, Analysis, int, Peak | None], tuple[Pyramid, list[team.Job]]]
"""``analysing(x, analysis, tile, peak)``: the pyramid, and what computes it."""
Synthesising = Callable[[Pyramid, int, Floats, Array | None, int], tuple[Array, list[team.Job]]]
"""``synthesising(pyramid, function, thresholds, out, tile)``: the rows again, and what computes them."""


Decompose = Callable[[Array, Analysis, int, Peak | None], Pyramid]
Reconstruct = Callable[[Pyramid, Shrinkage | None, Array | None, int], Array]


def decompose(analysing: Analysing, x: Array, analysis: Analysis, tile: int, peak: Peak | None) -> Pyramid:
    """The pyramid, computed."""
    pyramid, jobs = analysing(x, analysis, tile, peak)
    _run(jobs, peak)
    return pyramid


def reconstruct(
    synthesising: Synthesising, pyramid: Pyramid, shrinkage: Shrinkage | None, out: Array | None, tile: int
) -> Array:
    """The rows or panels again, computed."""
    y, jobs = synthesising(pyramid, *shrinking(shrinkage, pyramid), out, tile)
    if jobs:
        team.run(jobs)
    return y


def checked(coefficients: Sequence[Array], pyramid: Pyramid, wanted: Sequence[tuple[int, ...]]) -> Packed:
    """A pyramid's coefficients, packed. Raises ValueError unless they have the shapes wanted and one dtype."""
    if [c.shape for c in coefficients] == wanted and len({c.dtype for c in coefficients}) == 1:
        packed = tuple(memory.packed(c) for c in coefficients)
        return Packed(packed, pyramid.analysis, pyramid.shape, memory.addresses(packed[::-1]))
    found = ", ".join(f"{c.dtype} {c.shape}" for c in coefficients)
    what = f"{pyramid.samples} samples" if len(pyramid.shape) == 1 else f"a panel {pyramid.shape}"
    raise ValueError(
        f"coefficients {found} do not belong together: {what} have {', '.join(map(str, wanted))} of one dtype"
    )
