"""The GPU backend: numba.cuda kernels that keep coefficients in device memory from input to output."""

from __future__ import annotations

import math
import operator
import weakref
from collections.abc import Sequence
from functools import cached_property, partial

import numpy as np

from wavefilt import engine
from wavefilt.arrays import Array, DType
from wavefilt.backends.cuda.denoiser import Denoised, Denoiser, joined, measured_by_row
from wavefilt.backends.cuda.options import KernelOptions
from wavefilt.backends.cuda.plan import Plan, Shape
from wavefilt.backends.cuda.plans import DTYPES, FAMILIES, Asked, Plans, asked, simple
from wavefilt.backends.cuda.runtime import compiler, interop, target
from wavefilt.backends.cuda.runtime.graph import capturing, stand_in, wait
from wavefilt.backends.cuda.runtime.interfaces import Samples, Stream
from wavefilt.backends.cuda.runtime.memory import OutOfMemory, guarded, retried
from wavefilt.backends.cuda.runtime.transfer import Results, Ring
from wavefilt.backends.cuda.statistics.details import CudaStatistics
from wavefilt.backends.cuda.statistics.layout import DetailLayout
from wavefilt.backends.interface import Backend
from wavefilt.options import Options
from wavefilt.statistics.mergeable import Summation
from wavefilt.thresholding.shrinkage import Shrinkage
from wavefilt.transforms import Analysis, Pyramid
from wavefilt.vocabulary import Scope

__all__ = ["Cuda", "CudaPyramid", "KernelOptions"]

CACHE_BYTES = 8 << 30


class CudaPyramid(Pyramid):
    """A pyramid in the buffers of a plan, which no one else uses while the pyramid lives."""

    plan: Plan
    lent: CudaPyramid | None
    """The pyramid that this is a view of, and that keeps the plan meanwhile."""

    def __init__(self, plan: Plan, analysis: Analysis, shape: tuple[int, ...], lent: CudaPyramid | None = None) -> None:
        vars(self).update(plan=plan, analysis=analysis, shape=shape, lent=lent, all_counted=lent is not None)

    @property
    def layout(self) -> DetailLayout:
        """The bands that `Cuda.statistics` counts."""
        return self.plan.all_counted if self.all_counted else self.plan.layout

    @cached_property
    def coefficients(self) -> tuple[Array, ...]:
        """All coefficients, copied to host memory on first use."""
        return self.plan.coefficients(self.plan.stream)

    @property
    def with_approximation(self) -> CudaPyramid:
        return CudaPyramid(self.plan, self.analysis, self.shape, self)


class Cuda(Backend):
    """Transforms and denoising on the current CUDA device.

    ``padding=False`` stores the tiles of the DWT one element after the other in shared memory, with bank conflicts.
    It is there to be measured: results are the same bit for bit. The tiles of other transforms have no conflicts
    to avoid, and are the same.

    ``fastmath=True`` compiles all kernels with approximate division and square root, subnormal numbers flushed to zero,
    contraction and reassociation, but still with NaN and infinities, which mark samples that are not finite. It
    matters for shrink functions with a division (garrote), magnitudes of the dual tree, and rule `ebayes`, whose
    exponentials are computed in float32. Kernels that multiply and add, count or compare, and all that is computed in
    float64 (sums of squares, noise, thresholds), take as long as without. numba-cuda gives these options to its
    compiler, but not to the linker that generates the code; here the linker has them too.

    ``cache_bytes`` bounds the device memory kept between calls; `clear` frees it. Arrays on a GPU are denoised where
    they are, on the caller's stream, and return arrays of the same library; arrays in host memory are copied there and
    back.

    Raises BackendUnavailable if no GPU can be used. All other methods raise MemoryError (`OutOfMemory`) for lack of
    device memory, after it was tried once more with the buffers freed that are kept.
    """

    name = "cuda"
    dtypes, transforms, device = DTYPES, tuple(FAMILIES), True
    whole_bytes_factor, chunk_bytes_factor = 9.0, None

    def __init__(
        self,
        padding: bool = True,
        fastmath: bool = False,
        cache_bytes: int = CACHE_BYTES,
        options: KernelOptions | None = None,
    ) -> None:
        target.require()
        self.options = options or KernelOptions(padding, fastmath)
        self._plans = Plans(cache_bytes, self.options)
        self.ring = Ring()
        self._results = Results()

    def describe(self) -> str:
        return target.describe()

    @property
    def summation(self) -> Summation:
        """Sums of samples in host memory, by the CPU backend, which is imported for nothing else."""
        from wavefilt.backends.numba_cpu.selection import ChunkSums

        return ChunkSums()

    @property
    def for_many_shapes(self) -> Backend:
        """The CPU backend, since plans and graphs are made for each shape."""
        from wavefilt.backends.numba_cpu import NumbaCPU

        return NumbaCPU()

    def clear(self) -> None:
        """Free the device memory kept for later calls."""
        self._plans.clear()
        self._results.clear()

    @retried
    def take(self, x: Samples, *axes: int) -> interop.Traces:
        """Take the rows of an array on a GPU, as `wavefilt.arrays.take` does for host arrays."""
        return interop.take(x, *axes)

    def to_host(self, x: Samples) -> Array:
        """Copy to host memory."""
        return np.asarray(interop.to_host(x))

    @retried
    def to_device(self, rows: Array, like: Samples) -> Samples:
        """Copy host rows to an array of the library and on the device of ``like``."""
        out = interop.empty(rows.shape, rows.dtype, like)
        interop.flat(out).copy_to_device(np.ascontiguousarray(rows).reshape(-1))
        return out

    @retried
    def decompose(self, x: Array, analysis: Analysis) -> Pyramid:
        """Compute the coefficients of a batch ``(batch, *shape)`` in host memory."""
        shape = x.shape[1:]
        if not analysis.level:
            return Pyramid((x,), analysis, shape)
        if not len(x):
            one = analysis.transform.analyse(np.zeros((1, *shape), x.dtype), analysis)
            return Pyramid(tuple(c[:0] for c in one), analysis, shape)
        pyramid = self._lent(analysis, x.dtype, len(x), shape)
        plan = pyramid.plan
        source = plan.buffer("x", x.size)
        self.ring.upload(np.ascontiguousarray(x), source, plan.stream)
        plan.forward(source, plan.stream)
        return pyramid

    def _lent(self, analysis: Analysis, dtype: DType, rows: int, shape: tuple[int, ...]) -> CudaPyramid:
        """Return a pyramid to be filled, whose plan is given back when nobody uses it."""
        plan = self._plans.borrow(Shape.of(analysis, dtype.name, rows, shape))
        pyramid = CudaPyramid(plan, analysis, shape)
        weakref.finalize(pyramid, self._plans.give_back, plan).atexit = False
        return pyramid

    @retried
    def _packed(self, pyramid: Pyramid) -> CudaPyramid:
        """Copy coefficients of another backend into the buffers of a plan. Raises ValueError for other shapes."""
        if isinstance(pyramid, CudaPyramid):
            return pyramid
        first = pyramid.coefficients[0]
        packed = self._lent(pyramid.analysis, first.real.dtype, len(first), pyramid.shape)
        packed.plan.fill(pyramid.coefficients, packed.plan.stream)
        return packed

    def _copy(self, pyramid: CudaPyramid) -> CudaPyramid:
        """Copy coefficients on the device into the buffers of another plan."""
        copy = self._lent(pyramid.analysis, np.dtype(pyramid.plan.dtype), pyramid.plan.shape.rows, pyramid.shape)
        pyramid.plan.stream.synchronize()
        copy.plan.layout.array.copy_to_device(pyramid.plan.layout.array, stream=copy.plan.stream)
        return copy

    def statistics(self, pyramids: Sequence[Pyramid], scope: Scope) -> CudaStatistics:
        packed = [self._packed(pyramid) for pyramid in pyramids]
        for pyramid in packed[1:]:
            pyramid.plan.stream.synchronize()
        layouts, plan = [pyramid.layout for pyramid in packed], packed[0].plan
        return CudaStatistics(layouts, plan.options, scope == "record", plan.stream, packed, self.clear)

    @retried
    def reconstruct(self, pyramid: Pyramid, shrinkage: Shrinkage | None = None, out: Array | None = None) -> Array:
        """Return the samples in host memory, in an array of their own."""
        if not pyramid.level:
            return pyramid.coefficients[0]  # type: ignore[no-any-return]
        if not isinstance(pyramid, CudaPyramid) and not len(pyramid.coefficients[0]):
            return np.zeros((0, *pyramid.shape), pyramid.coefficients[0].real.dtype)
        in_place = shrinkage is not None and shrinkage.together is not None and len(pyramid.shape) == 1
        pyramid = self._copy(pyramid) if in_place and isinstance(pyramid, CudaPyramid) else self._packed(pyramid)
        plan, stream, analysis = pyramid.plan, pyramid.plan.stream, pyramid.analysis
        by = plan.shrinking(shrinkage, partial(analysis.transform.grids, analysis, pyramid.shape), stream)
        shape = (plan.shape.rows, *pyramid.shape)
        y, host = plan.buffer("y", plan.shape.rows * plan.shape.samples), np.empty(shape, plan.dtype)
        plan.inverse(y, stream, by)
        self.ring.download(y, host, stream)
        return host

    def check(self) -> None:
        """Wait for all runs with ``wait=False``.

        Raises ValueError if since the last check a sample was not finite, samples were in a run of equal ones, or a
        trace of a record or section was dead.
        """
        self._plans.settle()
        finite, self._plans.finite = self._plans.finite, True
        if not finite:
            raise ValueError(
                "an array denoised with wait=False has NaN or infinite samples, runs of equal samples, or a dead trace "
                "in a record/section: its result is not valid. With wait=True these are left out, and an infinite "
                "sample is named"
            )

    def denoise(
        self,
        x: Samples,
        options: Options,
        level: int,
        report: bool = False,
        out: Samples | None = None,
        wait: bool = True,
    ) -> Denoised:
        """Denoise a batch ``(batch, *shape)``; return it with noise and thresholds if ``report``, else with None.

        Without ``wait`` the result of an array on the GPU is returned as soon as the work is on the caller's stream,
        unless the host needs numbers: for ``report``, and for rules that it computes. `check` reports samples that are
        not finite.

        Return None if a sample is not finite or in a run of equal samples, or a trace of a record or section is dead:
        the caller cuts out gaps and runs, and leaves out dead traces. Batches too large for the device's memory are
        denoised some rows at a time; a trace that is too large alone, or traces that share thresholds, by the CPU
        backend. Raises MemoryError if that fails too.
        """
        again = asked if options.known else asked.__wrapped__
        request = again(options, level, interop.dtype_name(x), tuple(x.shape), report)
        try:
            return guarded(partial(self._whole, x, request, options, report, out, wait), self.clear)
        except OutOfMemory:
            pass  # the error's traceback keeps memory that is needed below
        try:
            if out is None:
                out = self._like(x)
            if len(x) == 1 or options.scope == "record":
                return self._on_cpu(x, options, level, report, out)
        except OutOfMemory as error:
            raise MemoryError(f"{tuple(x.shape)} samples do not fit in the device's memory: {error}") from error
        parts = slice(0, len(out) // 2), slice(len(out) // 2, len(out))
        return joined([self.denoise(x[part], options, level, report, out[part]) for part in parts], out, report)

    def _on_cpu(self, x: Samples, options: Options, level: int, report: bool, out: Samples) -> Denoised:
        """Denoise rows by the DWT as `denoise` does, with the CPU backend. Raises OutOfMemory for other transforms."""
        if options.transform.name != "dwt":
            raise OutOfMemory("use backend='numba'")
        host, cpu, on_device = self.to_host(x), self.for_many_shapes, interop.on_device(x)
        if not math.isfinite(cpu.peak(host)):
            return None
        y, found = engine.denoise(host, options, cpu, level, report, None if on_device else np.asarray(out))
        if on_device:
            interop.flat(out).copy_to_device(np.ascontiguousarray(y).reshape(-1))
        elif y is not out:
            out[...] = y
        if not report:
            return out, None
        assert isinstance(found, list)  # a backend in host memory measures step by step
        return out, measured_by_row(found, len(options.bands(level)), len(host))

    @retried
    def _like(self, x: Samples) -> Samples:
        """Allocate the result of a batch in the memory of the batch."""
        if interop.on_device(x):
            return interop.empty(tuple(x.shape), interop.dtype_name(x), x)
        return np.empty(x.shape, x.dtype)

    def at_once(self, x: Samples, options: Options, axes: tuple[int, ...], wait: bool) -> Samples | None:
        """Take, denoise and restore an array on the GPU along its last ``axes``, faster than in these three steps.

        Return None if that is not possible: for other options or axes, without enough memory, or where `denoise` does.
        """
        if not options.known:
            return None
        along = tuple(map(operator.index, axes))
        found = simple(options, type(x), tuple(x.shape), x.dtype, along)  # type: ignore[arg-type]
        if found is None:
            return None
        library, dtype, request = found

        def denoise() -> Denoised:
            return self._whole(library.contiguous(x, dtype), request, options, False, None, wait)

        try:
            done = guarded(denoise, self.clear)
        except OutOfMemory:
            return None
        return None if done is None else library.as_floating(done[0], x)

    def _whole(
        self, x: Samples, request: Asked, options: Options, report: bool, out: Samples | None, wait: bool
    ) -> Denoised:
        """Denoise a batch as a whole, or an array on the GPU of any shape. Raises numba's error if there is no room."""
        there = interop.on_device(x)
        number = interop.stream_number(x) if there else -1
        if capturing(number):
            return self._captured(x, request, number, wait or report, out)
        if not there and x.nbytes >= Ring.LEAST:
            self.ring.prepare()
        plan = self._plans.borrow(request.shape, number)
        try:
            denoiser = plan.denoiser(request.key, partial(self._compiled, plan, options, report))
            stream, waiting = plan.stream, wait or report or not there or not denoiser.replayable
            if waiting or plan.crowded:
                self._plans.settled(plan)
            run = self._on_device if there else self._small if x.nbytes < Ring.LEAST else self._through_ring
            y = run(plan, denoiser, x, out, stream)
            if not waiting:
                plan.leave(denoiser.told)
            elif not denoiser.outcome(stream):
                return None
            return y, denoiser.measured(stream) if report else None
        finally:
            self._plans.give_back(plan)

    def _captured(self, x: Samples, request: Asked, number: int, wait: bool, out: Samples | None) -> Denoised:
        """Launch into the graph that the caller captures, with a plan that belongs to this graph from now on.

        Raises RuntimeError if it would have to wait or to allocate.
        """
        if wait:
            raise RuntimeError("the current stream is being captured, and cannot be waited for: use wait=False")
        plan = self._plans.idle(request.shape, number)
        denoiser = None if plan is None else plan.denoisers.get(request.key)
        if plan is None or denoiser is None or not denoiser.ready:
            if plan is not None:
                self._plans.give_back(plan)
            raise RuntimeError(
                "before a call can be captured, an array of the same shape and dtype must have been denoised "
                "with the same options on the same stream, by a rule whose thresholds are computed on the GPU"
            )
        self._plans.spent.append(plan)
        y = interop.empty(tuple(x.shape), plan.dtype, x) if out is None else out
        denoiser.run(interop.flat(x), interop.flat(y), plan.stream)
        return y, None

    def _compiled(self, plan: Plan, options: Options, report: bool) -> Denoiser:
        """Make a denoiser, and compile its kernels together if the host does not decide which are launched."""
        denoiser = Denoiser(plan, options, report)
        if denoiser.replayable and not target.SIMULATED:
            samples = stand_in(0, plan.shape.rows * plan.shape.samples, plan.dtype, True)
            with compiler.noting() as launches:
                denoiser.run(samples, samples, plan.own_stream)
            compiler.together(launches)
        return denoiser

    def _on_device(self, plan: Plan, denoiser: Denoiser, x: Samples, out: Samples | None, stream: Stream) -> Samples:
        y = interop.empty(tuple(x.shape), plan.dtype, x) if out is None else out
        denoiser.launch(x, y, stream)
        return y

    def _through_ring(self, plan: Plan, denoiser: Denoiser, x: Samples, out: Samples | None, stream: Stream) -> Samples:
        size, fresh = plan.shape.rows * plan.shape.samples, False
        if out is None:
            out, fresh = self._results.lend(x.shape, plan.dtype)
        source, target = plan.buffer("x", size), plan.buffer("y", size)
        self.ring.upload(np.ascontiguousarray(x), source, stream, touch=out if fresh else None)
        denoiser.replay(partial(denoiser.run, source, target), stream)
        self.ring.download(target, out, stream)
        return out

    def _small(self, plan: Plan, denoiser: Denoiser, x: Samples, out: Samples | None, stream: Stream) -> Samples:
        """Make transfers and launches one graph: for few samples their number is the cost."""
        size = plan.shape.rows * plan.shape.samples
        source, target = plan.buffer("x", size), plan.buffer("y", size)
        staged, result = plan.staging("in", size), plan.staging("out", size)
        staged.reshape(x.shape)[...] = x
        denoiser.replay(partial(denoiser.run_staged, staged, source, target, result), stream)
        wait(stream)
        if out is None:
            return result.reshape(x.shape).copy()
        out[...] = result.reshape(x.shape)
        return out
