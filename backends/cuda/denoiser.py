"""A whole run on the device: forward, statistics, thresholds, inverse, as one sequence of launches."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from functools import partial

import numpy as np

from wavefilt.arrays import Array
from wavefilt.backends.crossover import cuda_crossover
from wavefilt.backends.cuda import thresholding
from wavefilt.backends.cuda.dwt.tiling import FLAGS, NOT_FINITE, UNFINISHED
from wavefilt.backends.cuda.equal_runs import flagging, probes
from wavefilt.backends.cuda.plan import Beside, Plan, Shrinking, Source
from wavefilt.backends.cuda.runtime import interop
from wavefilt.backends.cuda.runtime.graph import Graph, repoints, stand_in, wait
from wavefilt.backends.cuda.runtime.interfaces import DeviceArray, Samples, Stream
from wavefilt.backends.cuda.runtime.target import SIMULATED, cuda, device_name
from wavefilt.backends.cuda.statistics.details import CudaStatistics
from wavefilt.backends.cuda.statistics.selection import Selection
from wavefilt.backends.cuda.thresholding import KNOWN, Chosen, Found, Searches, marking
from wavefilt.backends.cuda.trend import Trends
from wavefilt.engine import Estimate
from wavefilt.options import Options
from wavefilt.statistics.reference import Measured
from wavefilt.thresholding.shrinkage import Shrinkage

Denoised = tuple[Samples, Measured | None] | None
"""The result, with noise and thresholds on request; None if a sample is not finite or a trace of a record is dead."""


class Denoiser:
    """The launches of a run with some options on one plan, and the numbers they leave on the device.

    Where it can, it measures the finest bands while the transform computes the others.
    """

    def __init__(self, plan: Plan, options: Options, report: bool) -> None:
        self.plan, self.options = plan, options
        self.graphs: dict[Hashable, Graph] = {}  # by the alignment of arrays on the GPU, or the one for host arrays
        self.ready = False  # to be recorded: its kernels are compiled and its workspace is there
        s, local = plan.shape, options.shrinks_approximation
        self._pooled = options.scope == "record"
        self._grids = partial(options.transform.grids, options.analysis(s.depth), s.size)
        self._layout = plan.all_counted if local else plan.layout
        self._bands = s.level + local  # bands with a threshold
        self._trends = None if options.trend is None else Trends(plan, options.trend)
        self._samples = s.samples * (s.rows if self._pooled else 1)
        self._function = options.function(s.samples)
        self._given = float(options.sigma) if isinstance(options.sigma, (int, float)) else 0.0
        self._sigma_of = options.sigma if isinstance(options.sigma, str) else "given"
        self._rule = options.known_rule
        # no host in the middle: it can be captured as a graph
        self.replayable = self._rule is not None and (options.rule.local or self._function in KNOWN)
        self.alone = None  # one kernel for the whole run, if noise and thresholds are not reported
        self._energy = report or self._rule == "bayes"
        if self._rule == "fixed" and not report:
            self._sigma_of = "given"  # nobody asks for it
        depth = self._bands if self._energy or self._sigma_of == "level" else 1
        self.found = Selection([self._layout], plan.options, depth, self._pooled, plan.noise.share)
        self._medians = 0
        if self._sigma_of != "given" and self.replayable:
            self._medians = depth if self._sigma_of == "level" else min(depth, plan.together)
        self.quick = min(depth, self._bands - local) <= self._layout.listed
        """Whether passes that hardly any search needs are left out; one block then finishes each of the others."""
        self._factors = cuda.to_device(thresholding.factors(options, self._bands, self._samples, plan.noise))
        self._numbers = cuda.device_array(2 * self._bands * s.rows, np.float64)
        self._thresholds = cuda.device_array(self._bands * s.rows, s.dtype)
        self._live = cuda.device_array(s.rows, np.int32)  # whether anything is removed from a row
        self._flags = cuda.mapped_array(FLAGS, np.int32)  # in host memory: written only when something is wrong
        self._flags[:] = 0
        if self.replayable and not (report or local or options.trend or (self._pooled and s.rows > 1)):
            self.alone = plan.alone(str(self._rule), self._sigma_of, str(self._function))
        self._events = [cuda.event() for _ in range(2)]
        self.bytes = self.found.bytes + int(self._numbers.nbytes) + int(self._thresholds.nbytes)

    def run(self, x: DeviceArray, y: DeviceArray, stream: Stream) -> None:
        """Launch everything from the flat device array ``x`` to ``y``."""
        if self.alone is not None:
            self.alone(x, y, self._factors, self._given, self._flags, stream)
            return
        self._analyse(x, stream)
        if len(self.plan.shape.size) > 1:  # the caller fills dead traces of sections, as other gaps
            self._mark_dead(x, stream, self._flags, NOT_FINITE, 0, 1)
        by = self._choose(x, stream) if self.replayable else self._choose_on_host(x, stream)
        self.plan.inverse(y, stream, by._replace(source=Source(x, self._live, self._flags)))
        if self._trends is not None:
            self._trends.restore(y, self._live, stream)

    def run_staged(
        self, staged: Array, source: DeviceArray, target: DeviceArray, result: Array, stream: Stream
    ) -> None:
        """`run` between copies from pinned memory and back to it."""
        source.copy_to_device(staged, stream=stream)
        self.run(source, target, stream)
        target.copy_to_host(result, stream=stream)

    def _analyse(self, samples: DeviceArray, stream: Stream) -> None:
        """Compute the coefficients and the statistics of the rule, and look for runs of equal samples."""
        plan, found, median = self.plan, self.found, self._medians > 0
        measuring = median or self._energy
        beside = measuring and found.depth <= plan.early < plan.shape.level and not SIMULATED
        before, after = self._events

        def measure(on: Stream) -> None:
            if measuring:
                side = plan.side_stream if found.mixed and not (beside or SIMULATED) else None
                found.run(self._medians, self._energy, on, self.quick, side)

        def fork() -> None:
            """Measure the first bands while the forward transform goes on to the others."""
            if beside:
                side = plan.side_stream
                before.record(stream)
                before.wait(side)
                measure(side)
                after.record(side)

        x = samples if self._trends is None else self._trends.removed(samples, stream)
        plan.forward(x, stream, Beside(fork, self._flags))
        if not plan.finds_runs or self.options.trend == "line":  # equal samples are equal without their mean
            self._find_runs(samples, stream)
        if beside:
            after.wait(stream)
        else:
            measure(stream)

    def _mark_dead(self, x: DeviceArray, stream: Stream, target: DeviceArray, *where: int) -> None:
        """Write to ``target`` for each trace whose samples are all equal: the first place, the step, and the value."""
        s, build = self.plan.shape, self.plan.build
        traces = s.rows * s.samples // s.size[-1]
        launch = marking(build)[-(-traces // build.threads), build.threads, stream]
        launch(x, s.size[-1], traces, target, *where)

    def _find_runs(self, x: DeviceArray, stream: Stream) -> None:
        """Flag runs of equal samples, which the caller leaves out, as samples that are not finite."""
        build, samples = self.plan.build, self.plan.shape.size[-1]
        traces = self.plan.shape.rows * self.plan.shape.samples // samples
        each = probes(samples)
        if each:
            launch = flagging(build)[-(-traces * each // build.threads), build.threads, stream]
            launch(x, samples, traces, each, self._flags)

    def _choose(self, x: DeviceArray, stream: Stream) -> Shrinking:
        """Choose noise and thresholds from the statistics; searches that did not end are flagged."""
        s, build, search = self.plan.shape, self.plan.build, self.found
        kernel = thresholding.choose(str(self._rule), self._sigma_of, build, self.plan.noise, self.options.rule.local)
        blocks = -(-s.rows // thresholding.rows_at_once(self._bands, build.threads))
        found = Found(search.middle, search.energy, search.amounts, self._factors, self._given)
        searches = Searches(search.search.state, min(self._medians, search.big) * search.groups)
        chosen, length = Chosen(self._numbers, self._thresholds, self._live), s.samples if len(s.size) == 1 else 0
        launch = kernel[blocks, build.threads, stream]
        launch(x, length, self._bands, s.rows, search.groups, found, searches, chosen, self._flags)
        if self.options.rule.local:
            return self.plan.shrunk_together(self._grids, self._thresholds, stream)
        return Shrinking(str(self._function), self._thresholds)

    def _choose_on_host(self, x: DeviceArray, stream: Stream) -> Shrinking:
        """Compute noise and thresholds of a rule that the device does not know, from statistics alone."""
        s = self.plan.shape
        statistics = CudaStatistics([self._layout], self.plan.options, self._pooled, stream)
        sigma, chosen = (
            np.broadcast_to(a, (self._bands, s.rows)) for a in self.options.thresholds(statistics, self._samples)
        )
        self._numbers.copy_to_device(np.concatenate([sigma.ravel(), chosen.ravel()]), stream=stream)
        self._thresholds.copy_to_device(chosen.astype(s.dtype).ravel(), stream=stream)
        self._live.copy_to_device(np.count_nonzero(chosen, axis=0).astype(np.int32), stream=stream)
        if len(s.size) == 1:  # the caller leaves out dead traces of a record
            shared = self._pooled and s.rows > 1
            self._mark_dead(x, stream, *((self._flags, NOT_FINITE, 0, 1) if shared else (self._live, 0, 1, 0)))
        if self._function in KNOWN:
            return Shrinking(str(self._function), self._thresholds)
        return self.plan.shrinking(Shrinkage(self._function, chosen, sigma), self._grids, stream)

    def outcome(self, stream: Stream) -> bool:
        """Wait, and return whether all samples were finite since the last call."""
        wait(stream)
        return self.told()

    def told(self) -> bool:
        """Return `outcome` of runs that have ended."""
        flags = self._flags.tolist()
        if not any(flags):
            return True
        self._flags[:] = 0
        if flags[UNFINISHED]:  # rare, unless many values are equal: one block has finished the search alone
            self.make_all_passes()
        return bool(flags[NOT_FINITE] == 0)

    def launch(self, x: Samples, y: Samples, stream: Stream) -> None:
        """Launch everything from ``x`` to ``y``, contiguous arrays on the GPU of any library, which may be the same.

        From the second call on this is a graph, one for arrays of each alignment, except with drivers before CUDA 12.4,
        which cannot exchange the arrays of a graph.
        """
        if self._flags[UNFINISHED]:  # by a run that was not waited for
            self.make_all_passes()
        if not self.ready or not repoints():
            self._first(lambda on: self.run(interop.flat(x), interop.flat(y), on), stream)
            return
        addresses = interop.address(x), interop.address(y)
        aligned = addresses[0] % 16 == 0, addresses[1] % 16 == 0
        graph = self.graphs.get(aligned)
        if graph is None:
            s = self.plan.shape
            source, target = (stand_in(which, s.rows * s.samples, s.dtype, own) for which, own in enumerate(aligned))
            stand_ins = interop.address(source), interop.address(target)
            graph = self.graphs[aligned] = Graph(partial(self.run, source, target), stand_ins)
        graph.launch(stream, addresses)

    def replay(self, work: Callable[[Stream], None], stream: Stream) -> None:
        """Run ``work`` on buffers of the plan, the same at every call; from the second call on as a graph."""
        if not self.ready:
            self._first(work, stream)
            return
        if "host" not in self.graphs:
            self.graphs["host"] = Graph(work)
        self.graphs["host"].launch(stream)

    def _first(self, work: Callable[[Stream], None], stream: Stream) -> None:
        """Run ``work``, which may compile and allocate; a recording may not."""
        work(stream)
        self.ready = self.replayable and not SIMULATED
        taps = self.options.filters.dec_len
        cuda_crossover.note(self.options.transform.name, self.plan.dtype, taps, device_name())

    def make_all_passes(self) -> None:
        """Make all passes of a search from now on."""
        if self.quick:
            self.quick = self.ready = False
            self.graphs.clear()

    def measured(self, stream: Stream) -> Measured:
        """Return noise, thresholds and powers of the last run."""
        s, found = self.plan.shape, self.found
        numbers = self._numbers.copy_to_host(stream=stream)
        energy, amounts = found.energy.copy_to_host(stream=stream), found.amounts.copy_to_host(stream=stream)
        stream.synchronize()
        sigma, exact = numbers.reshape(2, self._bands, s.rows)
        power = None
        if self._energy:
            power = np.broadcast_to(energy.reshape(self._bands, found.groups) / amounts[:, None], sigma.shape)
        return Measured(sigma, exact, power)


def joined(parts: Sequence[Denoised], out: Samples, report: bool) -> Denoised:
    """Join the results of batches that are in ``out``; None if one of them has a sample that is not finite."""
    done = [part for part in parts if part is not None]
    if len(done) < len(parts):
        return None
    if not report:
        return out, None
    measured = [(one.sigma, one.thresholds, one.power) for _, one in done if one is not None]
    sigma, chosen, powers = zip(*measured, strict=True)
    power = None if powers[0] is None else np.concatenate(powers, axis=1)
    return out, Measured(np.concatenate(sigma, axis=1), np.concatenate(chosen, axis=1), power)


def measured_by_row(found: Sequence[Estimate], bands: int, rows: int) -> Measured:
    """Return the estimates of rows without gaps as arrays (bands, rows)."""
    numbers = np.zeros((3, bands, rows))
    for own in found:
        where = own.segments.rows
        for target, values in zip(numbers, (own.sigma, own.thresholds, own.power), strict=True):
            target[: len(own.sigma), where] = values
        if own.approximation is not None:
            numbers[:2, -1, where] = own.approximation
    return Measured(*numbers)
