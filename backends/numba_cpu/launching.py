"""Kernels called on all tiles of all rows, and what the inverse transforms have in common."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import pywt

from wavefilt.arrays import Array, Counts, DType, Floats
from wavefilt.thresholding.shrinkage import Shrinkage
from wavefilt.transforms import Analysis, Pyramid

from . import memory, team
from .native import Constant, Kernel
from .peaks import Peak

GRAIN = 1 << 15  # samples below which a share of the work is not worth waking a thread
KEEP, SOFT, HARD, GARROTE, FIRM = range(5)
"""What inverse kernels do to details."""
LARGEST = {kind: float(np.finfo(kind).max) for kind in "fd"}
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


def run(
    kernel: Kernel,
    dtype: DType,
    rows: int,
    launch: Launch,
    arguments: tuple[object, ...],
    kept: tuple[object, ...],
    peak: Peak | None = None,
) -> None:
    """Call ``kernel`` on all tiles of all rows, and find the ``peak`` of what it reads if that is asked for.

    ``kept`` are the arrays behind the addresses in ``arguments``, which must live as long as the work does.
    """
    workspace, jobs = launch.elements * dtype.itemsize + launch.more, rows * launch.tiles
    work = kernel.of(dtype, launch.arguments, *arguments, workspace=workspace, kept=kept)
    grain = max(GRAIN // max(launch.work, 1), 1)
    if peak:
        peak.along(work, jobs, grain)
    else:
        team.parallel(work, jobs, grain)


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


def destination(out: Array | None, shape: tuple[int, int], dtype: DType) -> tuple[Array, int]:
    """``out``, or a new array, and where it begins. Raises ValueError if ``out`` is not of the result's kind."""
    if out is None:
        return memory.placed(shape, dtype, result=True)
    if out.shape != shape or out.dtype != dtype or not out.flags.carray:
        raise ValueError(f"out must be a C-contiguous {dtype} array of shape {shape}")
    return out, memory.address(out)


def shrinking(shrinkage: Shrinkage | None, shape: tuple[int, int], dtype: DType) -> tuple[int, Floats]:
    """The number of one of the four functions and the thresholds of ``shape`` (levels, rows), finite in ``dtype``."""
    if shrinkage is None:
        return KEEP, np.empty(shape)
    thresholds = np.asarray(shrinkage.thresholds, float)
    return FUNCTIONS[str(shrinkage.function)], np.minimum(thresholds, LARGEST[dtype.char], order="C")


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


def analyse(
    kernel: Kernel,
    x: Array,
    analysis: Analysis,
    launches: Sequence[Launch],
    lengths: Sequence[int],
    constants: tuple[object, ...],
    peak: Peak | None,
) -> Packed:
    """The pyramid of rows; ``lengths`` are those of the details, finest first, and of every launch's approximation."""
    arrays, addresses = memory.several(len(x), lengths, x.dtype)
    source = memory.address(x)
    for launch, target in zip(launches, addresses[-len(launches) :], strict=True):
        details = addresses[launch.first : launch.first + launch.depth]
        run(kernel, x.dtype, len(x), launch, (source, details, target, *constants), (x, arrays), peak)
        source, peak = target, None
    return Packed((arrays[-1], *reversed(arrays[: analysis.level])), analysis, x.shape[1:], addresses)


def synthesise(
    kernel: Kernel,
    pyramid: Packed,
    launches: Sequence[Launch],
    shrinkage: Shrinkage | None,
    out: Array | None,
    *constants: object,
) -> Array:
    """The rows again, in ``out`` if given, by kernels that take ``constants`` at the end."""
    (samples,), y = pyramid.shape, pyramid.coefficients[0]
    out, begin = destination(out, (len(y), samples), y.dtype)
    if not launches:
        out[:] = y
        return out
    function, thresholds = shrinking(shrinkage, (pyramid.level, len(y)), y.dtype)
    source = pyramid.addresses[-1]
    for launch in reversed(launches):
        own = slice(launch.first, launch.first + launch.depth)
        finer, target = memory.placed((len(y), launch.columns), y.dtype) if launch.first else (out, begin)
        arguments = target, pyramid.addresses[own], source, function, thresholds[own], *constants
        run(kernel, y.dtype, len(y), launch, arguments, (pyramid, y, finer))
        y, source = finer, target
    return out


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
