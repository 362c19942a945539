"""A whole denoise by the MODWT on the device, as one sequence of launches."""

from __future__ import annotations

from typing import Any

import numpy as np

from wavefilt.backends.cuda.dwt.denoiser import Denoiser
from wavefilt.backends.cuda.runtime.target import cuda
from wavefilt.backends.cuda.statistics.details import Selection
from wavefilt.method import Method

from .plan import Level, ModwtPlan, ModwtStatistics


class Levels:
    """`Found` of the ``depth`` finest levels of a plan, each searched by itself as it has all samples' coefficients."""

    def __init__(self, plan: ModwtPlan, depth: int, groups: int, pooled: bool) -> None:
        self._plan, s = plan, plan.shape
        segments = max(depth * groups, 1)
        self.middle, self.energy = cuda.device_array(2 * segments, s.dtype), cuda.device_array(segments, np.float64)
        self.state = cuda.device_array(1, np.int64)  # no search is cut short
        self.amounts = cuda.to_device(np.full(max(depth, 1), s.samples * s.rows / groups))
        self._of = []
        for j in range(depth):
            own = {"middle": self.middle[2 * groups * j : 2 * groups * (j + 1)],
                   "energy": self.energy[groups * j : groups * (j + 1)]}  # fmt: skip

            def reserve(name: str, size: int, dtype: Any, own: Any = own) -> Any:
                found = own.get(name.split()[0])
                return cuda.device_array(size, dtype) if found is None else found

            levels: Any = [Level(plan, j + 1)]
            self._of.append(Selection(levels, 1, pooled, reserve))

    def run(self, median: int, energy: bool, stream: Any) -> None:
        """Launch what fills `energy` and, for the ``median`` finest levels, `middle`."""
        for j, one in enumerate(self._of, 1):
            if energy or j <= median:
                self._plan.cut(j, stream)
                one.run(j <= median, energy, stream)


class ModwtDenoiser(Denoiser):
    """Of a MODWT."""

    plan: ModwtPlan
    found: Levels

    def __init__(self, plan: ModwtPlan, method: Method, report: bool) -> None:
        super().__init__(plan, method, report)
        depth = self._depth if self._median or self._energy else 0
        self.found = Levels(plan, depth, self._groups, self._pooled)

    def run(self, x: Any, y: Any, x_aligned: bool, y_aligned: bool, stream: Any) -> None:
        plan, s = self.plan, self.plan.shape
        plan.forward(x, stream, self._flags)
        medians = s.level if self._sigma_of == "level" else 1
        self.found.run(medians if self._median else 0, self._energy, stream)
        function, details = self._function, None
        if self.replayable:
            self._choose(stream)
        else:
            shrinkage = self._choose_on_host(ModwtStatistics([plan], self._pooled, stream, None), stream)
            if not isinstance(function, str):
                details = plan.shrunk(shrinkage, stream)
        thresholds = self._thresholds if details is None else None
        plan.inverse(y, str(function) if details is None else "keep", thresholds, stream, details)
        plan.leave(x, y, self._live, stream)
