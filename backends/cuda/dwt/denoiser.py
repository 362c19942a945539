"""A whole denoise on the device: forward, statistics, thresholds, inverse, as one sequence of launches."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from wavefilt.backends.cuda.runtime.graph import Graph
from wavefilt.backends.cuda.runtime.target import SIMULATED, cuda
from wavefilt.backends.cuda.statistics.details import CudaStatistics, Selection
from wavefilt.backends.cuda.thresholding import choosing, kernels
from wavefilt.method import Method
from wavefilt.statistics.interface import Measured
from wavefilt.thresholding.shrinkage import Shrinkage

from .plan import Plan
from .tiling import FLAGS, NOT_FINITE, UNFINISHED


def joined(parts: list[Any]) -> Measured:
    """What was measured of the rows of several pieces."""
    power = None if parts[0].power is None else np.concatenate([part.power for part in parts], axis=1)
    sigma, chosen = (
        np.concatenate([getattr(part, name) for part in parts], axis=1) for name in ("sigma", "thresholds")
    )
    return Measured(sigma, chosen, power)


def in_halves(denoise: Callable[[slice], Any], out: Any, report: bool) -> tuple[Any, Measured | None] | None:
    """Both halves of the rows of ``out`` by ``denoise``, one after the other; None if it is of either."""
    half, measured = len(out) // 2, []
    for part in (slice(0, half), slice(half, len(out))):
        done = denoise(part)
        if done is None:
            return None
        measured.append(done[1])
    return out, joined(measured) if report else None


class Found(Protocol):
    """What statistics left on the device: a level of a group is a segment, level by level.

    Two middle values of |d| a segment, sums of squares of segments, coefficients of a group at each level, and the
    states of searches.
    """

    middle: Any
    energy: Any
    amounts: Any
    state: Any


class Denoiser(ABC):
    """The launches of one method on one plan, and the numbers they leave on the device."""

    found: Found
    quick = False
    """Whether the passes that a search hardly ever needs are left out: the outcome says when they were."""

    def __init__(self, plan: Any, method: Method, report: bool) -> None:
        self.plan, self.method = plan, method
        self.graphs: OrderedDict[tuple[int, ...], Graph | None] = OrderedDict()
        s = plan.shape
        self._pooled = method.scope == "record"
        self._samples = s.samples * (s.rows if self._pooled else 1)
        self._groups = 1 if self._pooled else s.rows
        self._function = method.function(s.samples)
        self._sigma_of = method.sigma if isinstance(method.sigma, str) else "given"
        self._rule = "bayes" if method.rule == "bayes" else "linear" if isinstance(method.rule, str) else "fixed"
        self.replayable = choosing.known(method)  # no host in the middle: it can be captured as a graph
        self._energy = report or self._rule == "bayes"
        if self._rule == "fixed" and not report:
            self._sigma_of = "given"  # nobody asks for it
        self._median = self._sigma_of != "given" and self.replayable
        self._depth = s.level if self._energy or self._sigma_of == "level" else 1
        """Levels whose details are measured."""
        self._factor = cuda.to_device(choosing.factors(method, s.level, self._samples))
        self._fading = cuda.to_device(method.noise_gains(s.level, method.sigma)[:, 0])
        self._numbers = cuda.device_array(2 * s.level * s.rows, np.float64)
        self._thresholds = cuda.device_array(s.level * s.rows, s.dtype)
        self._live = cuda.device_array(s.rows, np.int32)  # whether anything is removed from a row
        self._flags = cuda.mapped_array(FLAGS, np.int32)  # in host memory: written only when something is wrong
        self._flags[:] = 0

    @abstractmethod
    def run(self, x: Any, y: Any, x_aligned: bool, y_aligned: bool, stream: Any) -> None:
        """Launch everything from the flat device array ``x`` to ``y``."""

    def _choose(self, stream: Any, searched: int = 0) -> None:
        """Noise and thresholds from what was found; ``searched`` searches must have ended, or it is told."""
        s, threads, sigma, found = self.plan.shape, self.plan.options.threads, self.method.sigma, self.found
        sigmas, exact = self._numbers[: s.level * s.rows], self._numbers[s.level * s.rows :]
        choosing.choose(self._rule, self._sigma_of, s.dtype)[-(-max(s.rows, searched) // threads), threads, stream](
            found.middle, found.energy, found.amounts, self._factor, self._fading,
            float(sigma) if isinstance(sigma, (int, float)) else 0.0, s.level, s.rows, self._groups, found.state,
            searched, sigmas, exact, self._thresholds, self._live, self._flags,
        )  # fmt: skip

    def _choose_on_host(self, statistics: Any, stream: Any) -> Shrinkage:
        """Noise and thresholds of a rule that the device does not know, from statistics alone."""
        s = self.plan.shape
        both = np.array(
            [np.broadcast_to(a, (s.level, s.rows)) for a in self.method.thresholds(statistics, self._samples)]
        )
        self._numbers.copy_to_device(both.ravel(), stream=stream)
        self._thresholds.copy_to_device(both[1].astype(s.dtype).ravel(), stream=stream)
        self._live.copy_to_device(np.count_nonzero(both[1], axis=0).astype(np.int32), stream=stream)
        return Shrinkage(self._function, both[1], both[0])

    def outcome(self, stream: Any) -> tuple[bool, bool]:
        """Whether the last run has to be made again with all passes, and whether all was finite; waits for it."""
        stream.synchronize()
        flags = self._flags.tolist()
        if any(flags):
            self._flags[:] = 0
        return flags[UNFINISHED] != 0, flags[NOT_FINITE] == 0

    def measured(self, stream: Any) -> Measured:
        """What the last run found."""
        s, found = self.plan.shape, self.found
        numbers = self._numbers.copy_to_host(stream=stream)
        energy, amounts = found.energy.copy_to_host(stream=stream), found.amounts.copy_to_host(stream=stream)
        stream.synchronize()
        sigma, exact = numbers.reshape(2, s.level, s.rows)
        power = None
        if self._energy:
            power = np.broadcast_to(energy.reshape(s.level, self._groups) / amounts[:, None], sigma.shape)
        return Measured(sigma, exact, power)


class DwtDenoiser(Denoiser):
    """Of a decimated transform: it measures while it transforms, where it can."""

    plan: Plan
    found: Selection

    def __init__(self, plan: Plan, method: Method, report: bool) -> None:
        super().__init__(plan, method, report)
        self.quick = True
        self.found = Selection([plan], self._depth, self._pooled)
        self._events = [cuda.event() for _ in range(2)]

    def run(self, x: Any, y: Any, x_aligned: bool, y_aligned: bool, stream: Any) -> None:
        plan, s = self.plan, self.plan.shape
        measure = self.found if self._median or self._energy else None
        beside = measure is not None and measure.depth <= plan.fused[0] < s.level and not SIMULATED

        rides = measure is not None and self.quick and self._median and not self._energy and measure.rides

        def measured(on: Any) -> None:
            assert measure is not None
            if rides:
                measure.settle(on)
            else:
                measure.run(self._median, self._energy, on, self.quick)

        def fork() -> None:
            """Measure the first levels while the forward transform goes on to the others."""
            side, (before, _) = plan.side_stream(), self._events
            before.record(stream)
            before.wait(side)
            measured(side)

        if rides and measure is not None:
            measure.draw(x, stream)
        plan.forward(x, x_aligned, stream, fork if beside else None, measure if rides else None)
        if beside:
            side, (_, after) = plan.side_stream(), self._events
            after.record(side)
            after.wait(stream)
        elif measure is not None:
            measured(stream)
        function, details = self._function, None
        if self.replayable:
            self._choose(stream, self.found.big * self._groups if self._median else 0)
        else:
            shrinkage = self._choose_on_host(CudaStatistics([plan], self._pooled, stream, None), stream)
            if not isinstance(function, str):  # no rule that has one runs on the device
                assert shrinkage.sigma is not None
                details = kernels.shrunk(plan, function, shrinkage.thresholds, shrinkage.sigma, stream)
        word = function if isinstance(function, str) else "keep"
        plan.inverse(y, y_aligned, word, self._thresholds, stream, self._flags, (x, self._live), details)
