"""What the GPU backend does with sections, verb by verb."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
import pywt
from numpy.typing import NDArray

from wavefilt.backends.cuda.dwt.denoiser import in_halves
from wavefilt.backends.cuda.dwt.plan import Options, Plans
from wavefilt.backends.cuda.runtime import interop
from wavefilt.backends.cuda.runtime.memory import OutOfMemory, guarded
from wavefilt.backends.cuda.runtime.transfer import Ring
from wavefilt.backends.cuda.thresholding import kernels
from wavefilt.method import Method
from wavefilt.statistics.interface import Measured
from wavefilt.thresholding.shrinkage import Shrinkage
from wavefilt.transforms import Analysis, Pyramid

from .plan import CudaPyramid2, SectionsPlan, SectionsShape, SectionsStatistics

Wavelets = tuple[pywt.Wavelet, pywt.Wavelet]


class SectionsBackend:
    """The part of `Cuda` that is about both axes; arrays on a GPU are worked on where they are."""

    _plans: Plans
    ring: Ring
    _options: Options
    clear: Callable[[], None]
    whole: Callable[..., Any]

    def decompose2(self, x: Any, analysis: Analysis) -> Pyramid:
        if not analysis.level or not x.size:
            return _trivial(x, analysis)
        device = interop.on_device(x)
        dtype = str(x.dtype).rpartition(".")[2]
        shape = _shape(analysis, dtype, len(x), x.shape[1:])
        plan, stream = self._plans.borrow(shape, self._options, x if device else None, SectionsPlan)
        plan.forward(self.ring.brought(x, plan, stream), stream)
        pyramid = CudaPyramid2(plan, stream, analysis, not device)
        self._plans.lend(pyramid, plan)
        return pyramid

    def reconstruct2(self, pyramid: Pyramid, shrinkage: Shrinkage | None = None, like: Any = None) -> Any:
        """The sections, in host memory, or of the library of ``like`` if that is an array on a GPU."""
        if not pyramid.level or not np.prod(pyramid.coefficients[0].shape):
            return _empty_or_smooth(pyramid)
        pyramid = self._packed2(pyramid)
        plan, stream, s = pyramid.plan, pyramid.stream, pyramid.plan.shape
        size = (s.rows, *s.size)
        out = None if like is None else interop.empty(size, s.dtype, like)
        y = plan.buffer("y", s.rows * s.samples) if out is None else interop.flat(out)
        function, thresholds, bands = kernels.prepared(shrinkage, s, stream, lambda by: plan.shrunk(by, stream))
        plan.inverse(y, interop.address(y) % 16 == 0, function, thresholds, stream, bands=bands)
        if out is not None:
            return out
        host = np.empty(size, s.dtype)
        self.ring.download(y, host, stream)
        return host

    def statistics2(self, pyramids: Sequence[Pyramid], pooled: bool) -> SectionsStatistics:
        """Of pyramids made here or elsewhere."""
        packed = [self._packed2(pyramid) for pyramid in pyramids]
        for pyramid in packed[1:]:
            pyramid.stream.synchronize()
        return SectionsStatistics([pyramid.plan for pyramid in packed], pooled, packed[0].stream, packed)

    def denoise2(
        self, x: Any, method: Method, level: int, report: bool = False, out: Any = None
    ) -> tuple[Any, Measured | None] | None:
        """The sections ``x`` (sections, rows, columns) denoised and, with ``report``, what was `Measured`.

        None if a sample is not finite. Sections too many for the device's memory are denoised some at a time.
        Raises MemoryError where one does not fit, or all do not that share thresholds.
        """
        flat = None if out is None else out.reshape(len(x), -1)
        try:
            done = guarded(partial(self.whole, x, method, level, report, flat), self.clear)
            return None if done is None else (done[0].reshape(x.shape), done[1])
        except OutOfMemory as error:
            if len(x) == 1 or method.scope == "record":
                raise MemoryError(
                    f"sections of shape {tuple(x.shape)} do not fit in the device's memory: denoise fewer, or copy "
                    "them to the host and use backend='numba'"
                ) from error
        if out is None:
            out = interop.empty(x.shape, x.dtype, x) if interop.on_device(x) else np.empty(x.shape, x.dtype)
        return in_halves(lambda part: self.denoise2(x[part], method, level, report, out[part]), out, report)

    def _packed2(self, pyramid: Pyramid) -> CudaPyramid2:
        """Coefficients from elsewhere, copied into the arrays of a plan. Raises ValueError if they do not fit."""
        if isinstance(pyramid, CudaPyramid2):
            return pyramid
        found: list[NDArray[Any]] = [
            c if isinstance(c, np.ndarray) else interop.to_host(c) for c in pyramid.coefficients
        ]
        shape = _shape(pyramid.analysis, str(found[0].dtype), len(found[0]), pyramid.shape)
        sizes = [shape.sizes[-1], *(size for size in shape.sizes[:0:-1] for _ in range(3))]
        if [c.shape[1:] for c in found] != sizes:
            shapes = ", ".join(str(c.shape) for c in found)
            raise ValueError(f"coefficients {shapes} do not belong together: a section {pyramid.shape} has {sizes}")
        plan, stream = self._plans.borrow(shape, self._options, make=SectionsPlan)
        plan.fill(found, stream)
        packed = CudaPyramid2(plan, stream, pyramid.analysis, True)
        self._plans.lend(packed, plan)
        return packed


def _shape(analysis: Analysis, dtype: str, panels: int, size: Any) -> SectionsShape:
    (first, second), (down, along) = analysis.wavelets, analysis.modes
    return SectionsShape.of((first, second), (down, along), dtype, analysis.level, panels, (size[0], size[1]))


def _trivial(x: Any, analysis: Analysis) -> Pyramid:
    """Of no level, or of no sections."""
    shape = _shape(analysis, "float32", 1, x.shape[1:])
    sizes = [shape.sizes[-1], *(size for size in shape.sizes[:0:-1] for _ in range(3))]
    empty = [np.zeros((len(x), *size), str(x.dtype).rpartition(".")[2]) for size in sizes]
    return Pyramid(tuple(empty) if analysis.level else (x,), analysis, shape.size)


def _empty_or_smooth(pyramid: Pyramid) -> Any:
    smooth = pyramid.coefficients[0]
    return smooth if not pyramid.level else np.zeros((len(smooth), *pyramid.shape), smooth.dtype)
