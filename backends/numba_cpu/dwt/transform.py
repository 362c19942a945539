"""The decimated transform of rows and its inverse: arrays and launches, several levels each."""

from __future__ import annotations

from wavefilt.arrays import Array, Counts
from wavefilt.backends.numba_cpu import filters, launching, memory
from wavefilt.thresholding.shrinkage import Shrinkage
from wavefilt.transforms import Analysis, Pyramid
from wavefilt.wavelets import boundary

from . import kernels, plan


class _Packed(Pyramid):
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


def decompose(x: Array, analysis: Analysis, tile: int) -> Pyramid:
    """The pyramid of ``x`` (rows, samples), packed; at least one level."""
    (rows, samples), level, mode = x.shape, analysis.level, analysis.modes[0]
    lo, hi = filters.analysis(analysis.wavelets[0], x.dtype)
    where = boundary.first_input(len(lo), mode), boundary.code(mode)
    shape = samples, len(lo), mode, level, tile
    arrays, addresses = memory.several(rows, plan.outputs(*shape), x.dtype)
    source = memory.address(x)
    for launch, target in zip(plan.launches(*shape), addresses[level:], strict=True):
        details = addresses[launch.first : launch.first + launch.depth]
        launching.run(kernels.forward, rows, launch, (source, details, target, *where, lo, hi), (x, arrays))
        source = target
    return _Packed((arrays[-1], *reversed(arrays[:level])), analysis, (samples,), addresses)


def reconstruct(pyramid: Pyramid, shrinkage: Shrinkage | None, out: Array | None, tile: int) -> Array:
    """The rows again. Raises ValueError for coefficients that do not belong together: kernels check nothing."""
    packed = pyramid if isinstance(pyramid, _Packed) else _packed(pyramid)
    y, level, samples, mode = packed.coefficients[0], packed.level, packed.shape[0], packed.analysis.modes[0]
    rows, dtype = len(y), y.dtype
    out, begin = launching.destination(out, (rows, samples), dtype)
    if not level:
        out[:] = y[:, :samples]
        return out
    even_odd = filters.synthesis(packed.analysis.wavelets[0], dtype)
    taps = len(even_odd[0])
    shift = taps // 2 - 1 if mode == "periodization" else 0
    function, thresholds = launching.shrinking(shrinkage, (level, rows))
    source = packed.addresses[-1]
    for launch in reversed(plan.launches(samples, taps, mode, level, tile)):
        levels = slice(launch.first, launch.first + launch.depth)
        finer, target = (out, begin) if launch.first == 0 else memory.placed((rows, int(launch.lengths[0])), dtype)
        coefficients = packed.addresses[levels], source, y.shape[1]
        arguments = target, *coefficients, shift, function, thresholds[levels], *even_odd
        launching.run(kernels.inverse, rows, launch, arguments, (packed, y, finer))
        y, source = finer, target
    return out


def _packed(pyramid: Pyramid) -> _Packed:
    """Coefficients from elsewhere, checked."""
    (y, *details), analysis, samples = pyramid.coefficients, pyramid.analysis, pyramid.shape[0]
    rows = len(y)
    lengths = plan.lengths(samples, analysis.wavelets[0].rec_len, analysis.modes[0], len(details))
    shapes = [(rows, length) for length in lengths[:0:-1]]
    # an approximation that was itself reconstructed may have one sample more than is used
    fits = y.ndim == 2 and y.shape[1] >= lengths[-1] and [d.shape for d in details] == shapes
    if not fits or any(d.dtype != y.dtype for d in details):
        raise launching.mismatch(pyramid, [(rows, lengths[-1]), *shapes])
    coefficients = tuple(memory.packed(c) for c in pyramid.coefficients)
    return _Packed(coefficients, analysis, pyramid.shape, memory.addresses(coefficients[::-1]))
