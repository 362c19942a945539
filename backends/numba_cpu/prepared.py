"""What is done again and again to arrays of one shape: made once, and kept with its memory for the next call.

To describe what a call does takes longer than to transform 64 Ki samples.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from wavefilt.arrays import Array, Floats
from wavefilt.statistics.reference import Wanted
from wavefilt.transforms import Analysis

from . import launching, memory, native, team
from .launching import Analysing, Synthesising
from .peaks import Peak
from .selection import NumbaStatistics


def statistics(pyramid: launching.Packed, with_approximation: bool = False) -> NumbaStatistics:
    """Of rows, each by itself."""
    own = [*pyramid.addresses[: pyramid.level], pyramid.addresses[-1]]  # between them are those of each launch
    begins = np.array(own) if pyramid.analysis.transform.name == "dwt" else None
    counted = pyramid.with_approximation if with_approximation else pyramid
    return NumbaStatistics([[d] for d in counted.details], "trace", begins)


class Plan:
    """Pyramids of rows of one shape, in the same memory each time, with what is wanted of their details."""

    def __init__(
        self, x: Array, analysis: Analysis, tile: int, wanted: Wanted, analysing: Analysing, synthesising: Synthesising
    ) -> None:
        self._peak, self._tile, self._synthesising = Peak(x), tile, synthesising
        pyramid, jobs = analysing(x, analysis, tile, self._peak)
        assert isinstance(pyramid, launching.Packed)
        self.pyramid = pyramid
        self.size = sum(c.nbytes for c in self.pyramid.coefficients)
        self.statistics = statistics(pyramid)
        more, self._take = self.statistics.surveying(*wanted)
        self._analysis = team.Program([*jobs, *more], self._peak.infinite)
        self._samples = native.Address(memory.address(x), self._analysis.works)
        self._syntheses: dict[int, tuple[team.Program, native.Address, Floats]] = {}

    def analyse(self, x: Array) -> Peak:
        """The peak; if it is finite the coefficients and what is wanted are those of ``x``."""
        self._samples.set(memory.address(x))
        self.statistics.forget()
        self._peak.found = self._analysis.run()
        if self._peak.finite:
            self._take()
        return self._peak

    def synthesise(self, function: int, thresholds: Floats, out: Array | None) -> Array:
        """The rows again, in ``out`` if given."""
        y = self.pyramid.coefficients[0]
        (length,) = self.pyramid.shape
        out, begin = launching.destination(out, (len(y), length), y.dtype)
        if function not in self._syntheses:
            own = thresholds.copy()
            program = team.Program(self._synthesising(self.pyramid, function, own, out, self._tile)[1])
            self._syntheses[function] = program, native.Address(begin, program.works), own
        program, samples, own = self._syntheses[function]
        own[:] = thresholds
        samples.set(begin)
        program.run()
        return out


class Lent(launching.Packed):
    """The pyramid of a plan, which is kept for the next call when this is gone: so must all views of its arrays be."""

    plan: Plan
    key: Hashable

    def __init__(self, plan: Plan, key: Hashable) -> None:
        own = plan.pyramid
        super().__init__(own.coefficients, own.analysis, own.shape, own.addresses)
        object.__setattr__(self, "plan", plan)
        object.__setattr__(self, "key", key)

    def __del__(self) -> None:
        memory.keep(self.key, self.plan)
