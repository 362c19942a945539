"""What is done again and again to arrays of one shape: made once, and kept with its memory for the next call.

To describe what a call does takes longer than to transform 64 Ki samples.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

from wavefilt.arrays import Array, Floats
from wavefilt.method import Method
from wavefilt.statistics.interface import Wanted
from wavefilt.thresholding.rules import MAD_TO_SIGMA
from wavefilt.transforms import Analysis

from . import entries, launching, memory, native, team
from .launching import Analysing, Synthesising
from .peaks import GRAIN, Peak
from .selection import SHORT, NumbaStatistics, no_samples


def _statistics(pyramid: launching.Packed) -> NumbaStatistics:
    begins = pyramid.addresses if pyramid.analysis.transform.name == "dwt" else None
    return NumbaStatistics([[d] for d in pyramid.details], "trace", begins)


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
        self.statistics = _statistics(pyramid)
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


NOISE_OF = {"global": 1, "level": 2}
RULES = ("linear", "fixed", "bayes")
"""As `threshold_kernels` numbers them; noise that is given is 0."""


def possible(x: Array, method: Method, level: int) -> bool:
    """Whether `Whole` does this."""
    kind, rule = method.kind, method.known_rule
    plain = method.plain and method.scope == "trace" and method.trend is None and not method.blend
    if not (plain and level and rule and kind.parts == 1) or (rule == "bayes" and method.sigma != "level"):
        return False
    summed_alone = rule != "bayes" or max(kind.sizes(method.analysis(level), x.shape[1:])) <= SHORT
    return summed_alone and method.function(x.shape[1]) in launching.FUNCTIONS


class Whole:
    """A denoise of rows of one shape as one launch, if it is `possible`."""

    def __init__(
        self, x: Array, method: Method, level: int, tile: int, analysing: Analysing, synthesising: Synthesising
    ) -> None:
        self.method, peak = method, Peak(x)  # which is kept, as this is found by its identity
        pyramid, jobs = analysing(x, method.analysis(level), tile, peak)
        assert isinstance(pyramid, launching.Packed)
        self.size = sum(c.nbytes for c in pyramid.coefficients)
        statistics = _statistics(pyramid)
        counted, _ = statistics.surveying(*method.wanted(level))
        bands, rows, samples = len(statistics.counts), *x.shape
        thresholds, sigma = np.empty((bands, rows)), method.sigma
        assert not isinstance(sigma, tuple)
        noise_of, scale = (NOISE_OF[sigma], MAD_TO_SIGMA) if isinstance(sigma, str) else (0, float(sigma))
        most = launching.LARGEST[x.dtype.char]
        rule, limits = RULES.index(str(method.known_rule)), (most, thresholds, peak.infinite)
        numbers = statistics.medians, statistics.powers, statistics.counts, scale, *method.factors(bands, samples)
        where = memory.address(x), samples, noise_of, rule
        choose = entries.CHOOSE.of(x.dtype, *where, *numbers, *limits, no_samples(x.dtype))
        function = launching.FUNCTIONS[str(method.function(samples))]
        y, back = synthesising(pyramid, function, thresholds, None, tile)
        self._program = team.Program([*jobs, *counted, team.Job(choose, rows, GRAIN), *back], peak.infinite)
        self._samples, self._result = (native.Address(memory.address(a), self._program.works) for a in (x, y))
        self._most = peak.bits_of(most / method.kind.growth(method.bank, level))

    def run(self, x: Array) -> Array | None:
        """The rows denoised; None if one of them is not finite, may be dead or overflow, or stays as it is."""
        y, begin = memory.placed(x.shape, x.dtype, result=True)
        self._samples.set(memory.address(x))
        self._result.set(begin)
        return y if self._program.run() <= self._most else None


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
