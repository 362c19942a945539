"""A whole denoise as one launch, for arrays of a shape that came before: nothing is decided in Python."""

from __future__ import annotations

import numpy as np

from wavefilt import threads, trend
from wavefilt.arrays import Array
from wavefilt.options import Options
from wavefilt.thresholding import rules

from . import entries, launching, memory, native, prepared, team
from .launching import Analysing, Synthesising
from .local import shrinkage as local_shrinkage
from .peaks import GRAIN, Peak
from .selection import SHORT, no_samples

GIVEN, GLOBAL, LEVEL = range(3)
NOISE_OF = {"global": GLOBAL, "level": LEVEL}
"""Where the noise comes from; it is given by a number."""
LINEAR, FIXED, BAYES = range(3)
RULES = {"linear": LINEAR, "fixed": FIXED, "bayes": BAYES}
"""Thresholds that are so many times the noise, that are given, and those of rule "bayes"."""


BLOCK, SHARE = 16 << 20, 2 << 20
"""Bytes of coefficients that are computed together, and of them for each thread, at least.

More leave the caches before they are used again.
"""


def _copies(method: Options, level: int) -> int:
    """Values for each sample: coefficients, those shrunk by their neighbours, samples less a trend."""
    coefficients = level if method.transform.name == "modwt" else 1
    return coefficients * (2 if method.rule.local else 1) + (method.trend is not None)


def rows_at_once(x: Array, method: Options, level: int) -> int:
    """How many of the rows are denoised together."""
    blocks = x.nbytes * _copies(method, level) // max(BLOCK, SHARE * threads.get_num_threads())
    return -(-len(x) // max(min(blocks, len(x)), 1))


def possible(x: Array, method: Options, level: int) -> bool:
    """Whether `Whole` does this: rules whose thresholds follow from the noise and mean squares of a row."""
    kind, rule = method.transform, method.known_rule
    plain = method.plain and method.scope == "trace" and not method.blend
    own = method.rule_function.__module__ == rules.__name__  # a user's may be rounded in another way
    if not (plain and own and level and rule and kind.parts == 1) or (rule == "bayes" and method.sigma != "level"):
        return False
    if x[:1].nbytes > BLOCK and method.transform.name == "dwt" and _copies(method, level) > 1:
        return False
    summed_alone = rule != "bayes" or max(kind.sizes(method.analysis(level), x.shape[1:])) <= SHORT
    return summed_alone and (method.rule.local or method.function(x.shape[1]) in launching.FUNCTIONS)


class Whole:
    """A denoise of rows of one shape, as many at once as it is made of, if it is `possible`."""

    def __init__(
        self, x: Array, method: Options, level: int, tile: int, analysing: Analysing, synthesising: Synthesising
    ) -> None:
        self.method, (rows, samples), sigma = method, x.shape, method.sigma  # kept: it is found by its identity
        self._rows = rows
        assert not isinstance(sigma, tuple)
        self._detrended = memory.empty(x.shape if method.trend else (0, 0), x.dtype)
        source = self._detrended if method.trend else x
        peak, most = Peak(source), launching.LARGEST[x.dtype.char]
        pyramid, jobs = analysing(source, method.analysis(level), tile, peak)
        assert isinstance(pyramid, launching.Packed)
        self.size = self._detrended.nbytes + sum(c.nbytes for c in pyramid.coefficients)
        statistics = prepared.statistics(pyramid, method.shrinks_approximation)
        bands = len(statistics.counts)
        wanted = {"level": range(1, bands + 1), "global": (1,)}.get(str(sigma), ())
        counted, _ = statistics.surveying(wanted, method.known_rule == "bayes")
        noise_of, scale = (NOISE_OF[sigma], rules.MAD_TO_SIGMA) if isinstance(sigma, str) else (GIVEN, float(sigma))
        where = memory.address(x), samples, noise_of, RULES[str(method.known_rule)]
        numbers = statistics.medians, statistics.powers, statistics.counts, scale, *method.factors(bands, samples)
        thresholds, function = np.empty((bands, rows)), launching.KEEP
        limits = np.inf if method.rule.local else most, thresholds, peak.infinite
        choose = team.Job(entries.CHOOSE.of(x.dtype, *where, *numbers, *limits, no_samples(x.dtype)), rows, GRAIN)
        jobs += [*counted, choose]
        if method.rule.local:
            pyramid, shrink = local_shrinkage.of_rows(pyramid, thresholds)
            jobs.append(shrink)
            self.size *= 2
        else:
            function = launching.FUNCTIONS[str(method.function(samples))]
        y, back = synthesising(pyramid, function, thresholds, None, tile)
        self._program = team.Program([*jobs, *back], peak.infinite)
        self._samples, self._result = (native.Address(memory.address(a), self._program.works) for a in (x, y))
        growth = method.transform.growth(method.filters, level) * (2 if method.trend else 1)
        self._most = np.finfo(x.dtype).max / growth  # in this dtype
        self._most_bits = peak.bits_of(self._most)

    def run(self, x: Array) -> Array | None:
        """The rows denoised; None if one of them is not finite, may be dead or overflow, or stays as it is.

        Of more than one block the last has rows of the one before again.
        """
        y, begin = memory.placed(x.shape, x.dtype, result=True)
        last = len(x) - self._rows
        for first in (*range(0, last, self._rows), last):
            own = slice(first, first + self._rows)
            self._result.set(begin + first * y.strides[0])
            if not self._run(x[own], y[own]):
                return None
        return y

    def _run(self, x: Array, y: Array) -> bool:
        """Whether a block is denoised."""
        self._samples.set(memory.address(x))
        if not self.method.trend:
            return self._program.run() <= self._most_bits
        with np.errstate(invalid="ignore", over="ignore"):
            lines = trend.of_rows(x, self.method.trend)
            if not lines.highest <= self._most:
                return False
            lines.remove(x, 0, self._detrended)
        if self._program.run() > self._most_bits:
            return False
        lines.restore(y)
        return True
