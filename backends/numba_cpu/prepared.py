"""Denoising in a single launch: all steps for rows of one shape are prepared once, and kept for the next call.

To describe the work of a call takes longer than to transform 64 Ki samples. Nothing is decided in Python between the
transform, the thresholds and the inverse; only rules whose thresholds follow from the noise and the mean squares of a
row can be denoised so.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Hashable

import numpy as np

from wavefilt import threads, trend
from wavefilt.arrays import Array, equal_runs
from wavefilt.backends.crossover import numba_crossover
from wavefilt.options import Options
from wavefilt.statistics.reference import Measured
from wavefilt.thresholding import rules

from . import dwt, entries, launching, local, memory, modwt, native, team
from .launching import Analysing, Synthesising
from .selection import GRAIN, NumbaStatistics, Peak, cut_from, no_samples

LINEAR, FIXED, BAYES = range(3)
RULES = {"linear": LINEAR, "fixed": FIXED, "bayes": BAYES}
"""Thresholds that are multiples of the noise, numbers of the user, and those of rule "bayes"."""
TRANSFORMS: dict[str, tuple[Analysing, Synthesising]] = {
    "dwt": (dwt.analysing, dwt.synthesising),
    "modwt": (modwt.analysing, modwt.synthesising),
}
BLOCK, SHARE = 16 << 20, 2 << 20
"""Bytes of coefficients that are computed together at least, in all and for each thread.

More leave the caches before they are used again.
"""
IDLE = 8
"""Prepared runs that are kept at most."""

_lock = threading.Lock()
_idle: dict[Hashable, Run] = {}


def _forget() -> None:
    """Begin with nothing prepared: another thread may have held the lock when the process was forked."""
    global _lock
    _lock = threading.Lock()
    release()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)


def release() -> None:
    """Give up all prepared runs and their memory."""
    with _lock:
        _idle.clear()


def denoise(
    x: Array, options: Options, level: int, tile: int, out: Array | None = None
) -> tuple[Array, Measured] | None:
    """Return the rows denoised, in ``out`` if given, with noise and thresholds; None if not possible in one launch.

    It is not possible for rows with gaps, dead ones, unchanged ones, errors, and for some options.
    """
    number = threads.get_num_threads()
    key = x.shape, x.dtype.char, tile, number, id(options), level
    with _lock:
        run = _idle.pop(key, None)
    new = run is None
    if run is None:
        _load(x, options)
        if not _possible(x, options, level):
            return None
        run = Run(x[: _rows_at_once(x, options, level, number)], options, level, tile)
    found = run(x, out, number)
    with _lock:
        _idle[key] = run
        if new:
            while len(_idle) > IDLE or sum(own.size for own in _idle.values()) > memory.RETAINED // 2:
                _idle.pop(next(iter(_idle)))
    return found


def _load(x: Array, options: Options) -> None:
    """Load all kernels of a run, in a single launch or not, since they are compiled together."""
    shrinking = (entries.LOCAL if options.ndim == 1 else entries.LOCAL_SECTIONS,) if options.rule.local else ()
    more = entries.LONG if x[0].size > 2 * cut_from(len(x), x[0].size) else ()
    native.load((*shrinking, *entries.TRANSFORMS.get(options.transform.name, ()), *more), x.dtype)


def _copies(options: Options, level: int) -> int:
    """Return the values for each sample: coefficients, those shrunk by their neighbours, samples without a trend."""
    coefficients = level if options.transform.name == "modwt" else 1
    return coefficients * (2 if options.rule.local else 1) + (options.trend is not None)


def _rows_at_once(x: Array, options: Options, level: int, number: int) -> int:
    """Return how many of the rows are denoised together by a number of threads."""
    blocks = x.nbytes * _copies(options, level) // max(BLOCK, SHARE * number)
    return -(-len(x) // max(min(blocks, len(x)), 1))


def _possible(x: Array, options: Options, level: int) -> bool:
    """Return whether a `Run` computes this."""
    transform, rule = options.transform, _rule(options)
    plain = options.plain and options.known and options.scope == "trace" and not options.blend and x.size > 0
    if not (plain and level and rule and transform.name in TRANSFORMS):
        return False
    if rule == "bayes" and options.sigma != "level":
        return False
    if x[:1].nbytes > BLOCK and transform.name == "dwt" and _copies(options, level) > 1:  # it would take more memory
        return False
    return options.rule.local or options.function(x.shape[1]) in launching.FUNCTIONS


def _rule(options: Options) -> str | None:
    """Return the formula of the thresholds; None if kernels do not have it."""
    return "bayes" if options.rule.function is rules.bayes else options.known_rule


class Run:
    """All steps for a block of rows of the shape of ``x``, with the memory of their coefficients."""

    def __init__(self, x: Array, options: Options, level: int, tile: int) -> None:
        self._options, (self._rows, samples), sigma = options, x.shape, options.sigma
        assert not isinstance(sigma, tuple)
        name, shrinks_locally = options.transform.name, options.rule.local
        numba_crossover.note(name, x.dtype.name)
        analysing, synthesising = TRANSFORMS[name]
        self._detrended = memory.empty(x.shape if options.trend else (0, 0), x.dtype)
        source = self._detrended if options.trend else x
        peak, most = Peak(source), launching.LARGEST[x.dtype.char]
        pyramid, jobs = analysing(source, options.analysis(level), tile, peak)
        assert isinstance(pyramid, launching.Packed)
        self.size = self._detrended.nbytes + (2 if shrinks_locally else 1) * sum(c.nbytes for c in pyramid.coefficients)
        details = options.counted(pyramid).details
        statistics = NumbaStatistics([[d] for d in details], "trace")
        bands = len(statistics.counts)
        wanted = {"level": range(1, bands + 1), "global": (1,)}.get(str(sigma), ())
        rule = _rule(options)
        counted, _ = statistics.surveying(wanted)
        scale = rules.MAD_TO_SIGMA if isinstance(sigma, str) else float(sigma)
        medians = {"level": statistics.medians, "global": statistics.medians[:1]}
        self._medians = medians.get(str(sigma), np.ones((1, self._rows)))
        where = memory.address(x), samples, RULES[str(rule)]
        factors, gains = options.factors(bands, samples)
        kept = [rule == "bayes" and band.level > level - options.keep for band in options.bands(level)]
        own = np.where(kept, 0, gains)  # without noise the threshold is 0
        numbers = self._medians, statistics.powers, statistics.counts, scale, factors, own
        thresholds, function = np.empty((bands, self._rows)), launching.KEEP
        self._thresholds, self._gains = thresholds, np.repeat(scale * gains[:, None], self._rows, axis=1)
        limits = np.inf if shrinks_locally else most, thresholds, peak.infinite
        work = entries.CHOOSE.of(x.dtype, *where, *numbers, *limits, no_samples(x.dtype))
        jobs += [*counted, team.Job(work, self._rows, GRAIN)]
        if shrinks_locally:
            pyramid, shrink = local.of_rows(pyramid, thresholds)
            jobs.append(shrink)
        else:
            function = launching.FUNCTIONS[str(options.function(samples))]
        y, back = synthesising(pyramid, function, thresholds, None, tile)
        self._program = team.Program([*jobs, *back], peak.infinite)
        self._samples, self._result = (native.Address(memory.address(a), self._program.works) for a in (x, y))
        growth = options.transform.growth(options.filters, level) * (2 if options.trend else 1)
        self._most = np.finfo(x.dtype).max / growth  # in this dtype
        self._most_bits = peak.bits_of(self._most)

    def __call__(self, x: Array, out: Array | None, number: int) -> tuple[Array, Measured] | None:
        """Return the rows denoised; None if one is not finite, may be dead or overflow, or stays as it is.

        ``number`` is that of the threads. If there are several blocks, the last one begins with rows of the one before.
        """
        y, target = launching.destination(out, x.shape, x.dtype)
        if len(x) == self._rows:
            return (y, self._measured()) if self._block(x, y, memory.address(x), target, number) else None
        source, pitch, last = memory.address(x), x.strides[0], len(x) - self._rows
        sigma, thresholds = np.empty((2, len(self._thresholds), len(x)))
        for first in [*range(0, last, self._rows), last]:
            own = slice(first, first + self._rows)
            if not self._block(x[own], y[own], source + first * pitch, target + first * pitch, number):
                return None
            found = self._measured()
            sigma[:, own], thresholds[:, own] = found.sigma, found.thresholds
        return y, Measured(sigma, thresholds, None)

    def _block(self, x: Array, y: Array, source: int, target: int, number: int) -> bool:
        """Denoise a block of rows at these addresses, and return whether this was possible."""
        self._samples.set(source)
        self._result.set(target)
        if self._options.trend:
            return self._without_trend(x, y, number)
        return self._program.run(number) <= self._most_bits

    def _measured(self) -> Measured:
        """Return noise and thresholds of the block just denoised."""
        return Measured(self._medians * self._gains, self._thresholds.copy(), None)

    def _without_trend(self, x: Array, y: Array, number: int) -> bool:
        """Denoise a block without its trend, which is added again, and return whether this was possible."""
        with np.errstate(invalid="ignore", over="ignore"):
            if self._options.trend == "line" and equal_runs(x) is not None:  # which are no runs without the line
                return False
            lines = trend.of_rows(x, self._options.trend)  # type: ignore[arg-type]
            if not lines.highest <= self._most:
                return False
            lines.change(np.subtract, x, 0, self._detrended)
        if self._program.run(number) > self._most_bits:
            return False
        lines.restore(y)
        return True
