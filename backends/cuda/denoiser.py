"""A whole denoise on the device: forward, statistics, thresholds, inverse, as one sequence of launches."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import numpy as np

from wavefilt.backends.interface import Measured
from wavefilt.method import Method

from . import shrinking, thresholds
from .geometry import FLAGS, NOT_FINITE, UNFINISHED
from .graph import Graph
from .plan import Plan
from .statistics import CudaStatistics, Selection
from .target import SIMULATED, cuda


def joined(parts: list[Any]) -> Measured:
    """What was measured of the rows of several pieces."""
    power = None if parts[0].power is None else np.concatenate([part.power for part in parts], axis=1)
    sigma, chosen = (
        np.concatenate([getattr(part, name) for part in parts], axis=1) for name in ("sigma", "thresholds")
    )
    return Measured(sigma, chosen, power)


class Denoiser:
    """The launches of one method on one plan, and the numbers they leave on the device."""

    def __init__(self, plan: Plan, method: Method, report: bool) -> None:
        self.plan, self.method = plan, method
        self.quick = True  # without the passes that a search hardly ever needs
        self.graphs: OrderedDict[tuple[int, ...], Graph | None] = OrderedDict()
        s = plan.shape
        pooled = method.scope == "record"
        self._function = method.function(s.samples)
        self._sigma_of = method.sigma if isinstance(method.sigma, str) else "given"
        self._rule = "bayes" if method.rule == "bayes" else "linear" if isinstance(method.rule, str) else "fixed"
        self.replayable = thresholds.known(method)  # no host in the middle: it can be captured as a graph
        self._energy = report or self._rule == "bayes"
        if self._rule == "fixed" and not report:
            self._sigma_of = "given"  # nobody asks for it
        self._median = self._sigma_of != "given" and self.replayable
        whole = self._energy or self._sigma_of == "level"
        self._selection = Selection([plan], s.level if whole else 1, pooled)
        self._groups = self._selection.groups
        samples = s.samples * (s.rows if pooled else 1)
        factors = thresholds.factors(method, s.level, samples)
        self._factor = cuda.to_device(factors)
        self._counts = cuda.to_device(self._selection.counts.astype(np.float64))
        self._numbers = cuda.device_array(2 * s.level * s.rows, np.float64)
        self._thresholds = cuda.device_array(s.level * s.rows, s.dtype)
        self._live = cuda.device_array(s.rows, np.int32)  # whether anything is removed from a row
        self._flags = cuda.mapped_array(FLAGS, np.int32)  # in host memory: written only when something is wrong
        self._flags[:] = 0
        self._events = [cuda.event() for _ in range(2)]

    def run(self, x: Any, y: Any, x_aligned: bool, y_aligned: bool, stream: Any) -> None:
        """Launch everything from the flat device array ``x`` to ``y``."""
        plan, s, threads, method = self.plan, self.plan.shape, self.plan.options.threads, self.method
        sigmas, exact = self._numbers[: s.level * s.rows], self._numbers[s.level * s.rows :]
        measure = self._selection if self._median or self._energy else None
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
        if self.replayable:
            searched = self._selection.big * self._groups if self._median else 0
            threads_needed = max(s.rows, searched)
            thresholds.choose(self._rule, self._sigma_of, s.dtype)[-(-threads_needed // threads), threads, stream](
                self._selection.middle, self._selection.energy, self._counts, self._factor,
                float(method.sigma) if isinstance(method.sigma, (int, float)) else 0.0, s.level, s.rows,
                self._groups, self._selection.state, searched, sigmas, exact, self._thresholds, self._live, self._flags,
            )  # fmt: skip
        else:
            numbers = self._choose_on_host(stream)
        word, details = self._function, None
        if not isinstance(word, str):  # no rule that has one runs on the device
            details = shrinking.shrunk(plan, word, numbers[1], numbers[0], stream)
        function = "keep" if details is not None else str(word)
        plan.inverse(y, y_aligned, function, self._thresholds, stream, self._flags, (x, self._live), details)

    def _choose_on_host(self, stream: Any) -> np.ndarray[Any, Any]:
        """Noise and thresholds of a rule that the device does not know, from statistics alone; (2, levels, rows)."""
        s, pooled = self.plan.shape, self.method.scope == "record"
        found = CudaStatistics([self.plan], pooled, stream, None)
        chosen = self.method.thresholds(found, s.samples * (s.rows if pooled else 1))
        both = np.array([np.broadcast_to(a, (s.level, s.rows)) for a in chosen])
        self._numbers.copy_to_device(both.ravel(), stream=stream)
        self._thresholds.copy_to_device(both[1].astype(s.dtype).ravel(), stream=stream)
        self._live.copy_to_device(np.count_nonzero(both[1], axis=0).astype(np.int32), stream=stream)
        return both

    def outcome(self, stream: Any) -> tuple[bool, bool]:
        """Whether the last run has to be made again with all passes, and whether all was finite; waits for it."""
        stream.synchronize()
        flags = self._flags.tolist()
        if any(flags):
            self._flags[:] = 0
        return flags[UNFINISHED] != 0, flags[NOT_FINITE] == 0

    def measured(self, stream: Any) -> Measured:
        """What the last run found."""
        s = self.plan.shape
        numbers = self._numbers.copy_to_host(stream=stream)
        energy = self._selection.energy.copy_to_host(stream=stream)
        stream.synchronize()
        sigma, exact = numbers.reshape(2, s.level, s.rows)
        power = None
        if self._energy:
            power = energy.reshape(s.level, self._groups) / self._selection.counts[:, None]
            power = np.broadcast_to(power, sigma.shape)
        return Measured(sigma, exact, power)
