"""What the GPU backend does with a MODWT, verb by verb; a whole denoise: `modwt_denoiser`."""

from __future__ import annotations

from typing import Any

import numpy as np

from wavefilt.backends.cuda.dwt.plan import Options, Plans
from wavefilt.backends.cuda.runtime import interop
from wavefilt.backends.cuda.runtime.transfer import Ring
from wavefilt.backends.cuda.thresholding import kernels
from wavefilt.thresholding.shrinkage import Shrinkage
from wavefilt.transforms import Analysis, Pyramid

from .plan import CudaModwt, ModwtPlan, ModwtShape, ModwtStatistics


class ModwtBackend:
    """Shares plans' memory and the staging ring with the backend that it belongs to."""

    def __init__(self, plans: Plans, ring: Ring, options: Options) -> None:
        self._plans, self._ring, self._options = plans, ring, options

    def decompose(self, x: Any, analysis: Analysis) -> CudaModwt:
        device = interop.on_device(x)
        dtype = str(x.dtype).rpartition(".")[2]
        shape = _shape(analysis, dtype, *x.shape)
        plan, stream = self._plans.borrow(shape, self._options, x if device else None, ModwtPlan)
        plan.forward(self._ring.brought(x, plan, stream), stream)
        pyramid = CudaModwt(plan, stream, analysis, not device)
        self._plans.lend(pyramid, plan)
        return pyramid

    def packed(self, pyramid: Pyramid) -> CudaModwt:
        """Coefficients from elsewhere, copied into the buffers of a plan."""
        if isinstance(pyramid, CudaModwt):
            return pyramid
        coefficients = [c if isinstance(c, np.ndarray) else interop.to_host(c) for c in pyramid.coefficients]
        smooth = coefficients[0]
        shape = _shape(pyramid.analysis, str(smooth.dtype), len(smooth), pyramid.samples)
        plan, stream = self._plans.borrow(shape, self._options, make=ModwtPlan)
        plan.fill(coefficients, stream)
        found = CudaModwt(plan, stream, pyramid.analysis, True)
        self._plans.lend(found, plan)
        return found

    def reconstruct(self, pyramid: Pyramid, shrinkage: Shrinkage | None, like: Any = None) -> Any:
        """The rows in host memory, or in a device array like ``like``."""
        pyramid = self.packed(pyramid)
        plan, stream, s = pyramid.plan, pyramid.stream, pyramid.plan.shape
        out = None if like is None else interop.empty((s.rows, s.samples), s.dtype, like)
        y = plan.buffer("y", s.rows * s.samples) if out is None else interop.flat(out)
        function, thresholds, details = kernels.prepared(shrinkage, s, stream, lambda by: plan.shrunk(by, stream))
        plan.inverse(y, function, thresholds, stream, details)
        if out is not None:
            return out
        rows = np.empty((s.rows, s.samples), s.dtype)
        self._ring.download(y, rows, stream)
        return rows


def statistics(backend: ModwtBackend, pyramids: Any, pooled: bool) -> ModwtStatistics:
    """Of pyramids made here or elsewhere."""
    packed = [backend.packed(pyramid) for pyramid in pyramids]
    for pyramid in packed[1:]:
        pyramid.stream.synchronize()
    return ModwtStatistics([pyramid.plan for pyramid in packed], pooled, packed[0].stream, packed)


def _shape(analysis: Analysis, dtype: str, rows: int, samples: int) -> ModwtShape:
    level, start_level = analysis.level, analysis.start_level
    return ModwtShape.of(analysis.wavelets[0], analysis.modes[0], dtype, level, start_level, rows, samples)
