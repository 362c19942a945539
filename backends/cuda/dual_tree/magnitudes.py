"""What the plans of traces and of panels have in common: complex coefficients, and their magnitudes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wavefilt.arrays import Array
from wavefilt.backends.cuda.plan import NoiseOf, Plan, Shrinking
from wavefilt.backends.cuda.runtime.interfaces import DeviceArray, Stream
from wavefilt.backends.cuda.statistics.layout import DetailLayout
from wavefilt.thresholding.shrinkage import Shrinkage
from wavefilt.transforms.dual_tree import SHARE

from .gains import measuring
from .shrinking import GAINS


class ComplexPlan(Plan):
    """Coefficients lie in ``parts``, real and imaginary ones in turn, and `layout` says where their magnitudes lie."""

    noise = NoiseOf(SHARE, 2)

    def hold(self, count: int, bands: Sequence[tuple[int, int, int, int]]) -> None:
        """Make room for so many coefficients; ``bands`` as for `DetailLayout`, in complex elements."""
        self.parts, kind = self.buffer("coefficients", 2 * count), np.result_type(np.dtype(self.dtype), np.complex64)
        self.complex = self.parts.view(kind)
        self.magnitudes = self.buffer("details", count + count // 8 + 8)
        self.layout = DetailLayout(self.magnitudes, bands, lists=count, listed=len(bands))

    def fill(self, coefficients: Sequence[Array], stream: Stream) -> None:
        super().fill(coefficients, stream)
        threads, count = self.options.threads, self.complex.size
        launch = measuring(self.shape.dtype, threads)[min(-(-count // threads), 4096), threads, stream]
        launch(self.parts, self.magnitudes, count)

    @property
    def gains(self) -> DeviceArray:
        """Room for those of all coefficients, which lie as magnitudes do."""
        return self.buffer("gains", self.magnitudes.size)

    def coefficients_for(self, by: Shrinking) -> tuple[DeviceArray, DeviceArray, bool]:
        """What the inverse loads: coefficients, their gains, and whether there are any."""
        if by.function == GAINS and by.details is not None:
            return self.parts, by.details, True
        details = self.parts if by.details is None else by.details
        return details, details, False

    def shrunk(self, shrinkage: Shrinkage, stream: Stream) -> DeviceArray:
        """On the host."""
        target, host = self.buffer("shrunk", self.parts.size), self.complex.copy_to_host(stream=stream)
        stream.synchronize()
        for i, band in enumerate(self.bands):
            strides = (host.itemsize * band.pitch, host.itemsize)
            rows = np.lib.stride_tricks.as_strided(host[band.offset :], (band.rows, band.length), strides)
            rows[...] = shrinkage.of_level(i, rows)
        target.copy_to_device(host.view(self.dtype), stream=stream)
        stream.synchronize()
        return target
