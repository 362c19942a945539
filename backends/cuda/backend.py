"""The GPU backend: numba.cuda kernels that keep coefficients in device memory from input to output."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wavefilt.backends.crossover import cuda_crossover
from wavefilt.backends.cuda.dwt import cycle_spinning
from wavefilt.backends.cuda.dwt.denoiser import Denoiser, DwtDenoiser, in_halves
from wavefilt.backends.cuda.dwt.plan import Options, Plan, Plans, Shape
from wavefilt.backends.cuda.dwt2.backend import SectionsBackend
from wavefilt.backends.cuda.dwt2.denoiser import SectionsDenoiser
from wavefilt.backends.cuda.dwt2.plan import SectionsPlan, SectionsShape, SectionsStatistics
from wavefilt.backends.cuda.modwt import backend
from wavefilt.backends.cuda.modwt.backend import ModwtBackend
from wavefilt.backends.cuda.modwt.denoiser import ModwtDenoiser
from wavefilt.backends.cuda.modwt.plan import ModwtPlan, ModwtShape, ModwtStatistics
from wavefilt.backends.cuda.multi_gpu.recorded import Recorded
from wavefilt.backends.cuda.runtime import diagnosis, interop
from wavefilt.backends.cuda.runtime.graph import Graph
from wavefilt.backends.cuda.runtime.memory import OutOfMemory, guarded
from wavefilt.backends.cuda.runtime.staged_rows import Held
from wavefilt.backends.cuda.runtime.target import SIMULATED
from wavefilt.backends.cuda.runtime.transfer import Results, Ring, pinned
from wavefilt.backends.cuda.statistics.details import CudaStatistics
from wavefilt.backends.cuda.thresholding import kernels
from wavefilt.method import Method
from wavefilt.statistics.interface import Measured
from wavefilt.statistics.summation import Summation
from wavefilt.thresholding.shrinkage import Shrinkage
from wavefilt.transforms import Analysis, Pyramid
from wavefilt.vocabulary import Scope

from . import chunked_rows

__all__ = ["Cuda", "CudaPyramid", "Options"]

CACHE_BYTES = 8 << 30
GRAPHS = 8  # captured graphs a plan keeps: one for each pair of arrays it met more than once


class CudaPyramid(Pyramid):
    """A pyramid in the buffers of a plan, which is its own while it lives.

    ``coefficients`` are views of them for an array on a GPU; those of a host array are copied when asked for.
    """

    plan: Plan
    stream: Any

    def __init__(self, plan: Plan, stream: Any, analysis: Analysis, on_host: bool) -> None:
        values = {"plan": plan, "stream": stream, "analysis": analysis, "shape": (plan.shape.samples,)}
        for name, value in values.items():
            object.__setattr__(self, name, value)
        object.__setattr__(self, "_on_host", on_host)

    @cached_property
    def coefficients(self) -> tuple[Any, ...]:
        return interop.shown(self.plan.coefficients(), self.stream, self._on_host)  # type: ignore[attr-defined]


class Cuda(SectionsBackend, Held):
    """Transforms and denoising on the current CUDA device.

    ``fastmath`` lets the compiler reorder and approximate arithmetic in the transforms. ``cache_bytes`` bounds the
    device memory kept between calls; `clear` frees it. Arrays on a GPU are worked on where they are, on the caller's
    stream, and give arrays of their own kind; arrays in host memory are moved there and back.

    Raises BackendUnavailable if no GPU can be used.
    """

    name = "cuda"
    dtypes = ("float32", "float64")
    transforms = ("dwt", "modwt", "dwt2")
    device = True
    whole_bytes_factor, chunk_bytes_factor = 9.0, None

    def __init__(self, fastmath: bool = False, cache_bytes: int = CACHE_BYTES, options: Options | None = None) -> None:
        diagnosis.require()
        self._options = options or Options(fastmath)
        self._plans = Plans(cache_bytes)
        self.ring = Ring()
        self._results = Results()
        self._modwt = ModwtBackend(self._plans, self.ring, self._options)

    def describe(self) -> str:
        return diagnosis.describe()

    @property
    def summation(self) -> Summation:
        """Of samples in host memory: those of the fast CPU backend, which is not imported for anything else."""
        from wavefilt.backends.numba_cpu.partial_sums import ChunkSums

        return ChunkSums()

    def release(self) -> None:
        """Host memory is not kept."""

    def clear(self) -> None:
        """Free the device memory kept for later calls."""
        self._plans.clear()
        self._results.clear()

    def peak(self, x: Any) -> float:
        host = x if isinstance(x, np.ndarray) else interop.to_host(x)
        return float(max(np.max(host), -np.min(host))) if host.size else 0.0

    def take(self, x: Any, *axes: int) -> interop.Traces:
        """As `wavefilt.arrays.take`, for an array on a GPU."""
        return interop.take(x, *axes)

    def to_host(self, x: Any) -> NDArray[Any]:
        """A copy in host memory."""
        return np.asarray(interop.to_host(x))

    def to_device(self, rows: NDArray[Any], like: Any) -> Any:
        """Host rows as an array of the library and on the device of ``like``."""
        out = interop.empty(rows.shape, rows.dtype, like)
        interop.flat(out).copy_to_device(np.ascontiguousarray(rows).reshape(-1))
        return out

    def decompose(self, x: Any, analysis: Analysis) -> Pyramid:
        if analysis.transform.name == "modwt":
            return self._modwt.decompose(x, analysis)
        if analysis.transform.name == "dwt2":
            return self.decompose2(x, analysis)
        device, level = interop.on_device(x), analysis.level
        shape = Shape.of(analysis.wavelets[0], analysis.modes[0], _dtype(x), level, *x.shape)
        plan, stream = self._plans.borrow(shape, self._options, x if device else None)
        rows, samples = x.shape
        source = self.ring.brought(x, plan, stream)
        if level:
            plan.forward(source, interop.aligned(source, rows, samples), stream)
        else:
            plan.start(source, stream)
        pyramid = CudaPyramid(plan, stream, analysis, not device)
        self._plans.lend(pyramid, plan)
        return pyramid

    def statistics(
        self, pyramids: Sequence[Any], scope: Scope
    ) -> CudaStatistics | ModwtStatistics | SectionsStatistics:
        name = pyramids[0].analysis.transform.name
        if name == "dwt2":
            return self.statistics2(pyramids, scope == "record")
        if name == "modwt":
            return backend.statistics(self._modwt, pyramids, scope == "record")
        for pyramid in pyramids[1:]:
            pyramid.stream.synchronize()
        return CudaStatistics([p.plan for p in pyramids], scope == "record", pyramids[0].stream, pyramids)

    def reconstruct(self, pyramid: Pyramid, shrinkage: Shrinkage | None = None, like: Any = None) -> Any:
        """The rows, in host memory, or of the library of ``like`` if that is an array on a GPU."""
        if pyramid.analysis.transform.name == "modwt":
            return self._modwt.reconstruct(pyramid, shrinkage, like)
        if pyramid.analysis.transform.name == "dwt2":
            return self.reconstruct2(pyramid, shrinkage, like)
        if not isinstance(pyramid, CudaPyramid):
            pyramid = self._packed(pyramid)
        plan, stream, s = pyramid.plan, pyramid.stream, pyramid.plan.shape

        def shrunk(by: Any) -> Any:
            sigma = by.thresholds if by.sigma is None else by.sigma
            return kernels.shrunk(plan, by.function, by.thresholds, sigma, stream)

        function, thresholds, details = kernels.prepared(shrinkage, s, stream, shrunk)
        if not s.level:
            return pyramid.coefficients[0]
        if like is None:
            y = plan.buffer("y", s.rows * s.samples)
            plan.inverse(y, interop.aligned(y, s.rows, s.samples), function, thresholds, stream, details=details)
            out = np.empty((s.rows, s.samples), s.dtype)
            self.ring.download(y, out, stream)
            return out
        out = interop.empty((s.rows, s.samples), s.dtype, like)
        y = interop.flat(out)
        plan.inverse(y, interop.aligned(y, s.rows, s.samples), function, thresholds, stream, details=details)
        return out

    def denoise(
        self, x: Any, method: Method, level: int, report: bool = False, out: Any = None
    ) -> tuple[Any, Measured | None] | None:
        """The rows of ``x`` denoised and, with ``report``, what was `Measured` (else None).

        Returns None if a sample is not finite: gaps are for the caller to cut out. Rows too many for the device's
        memory are denoised some at a time, and those too long, or that share thresholds, chunk by chunk; MemoryError
        if that fails as well.
        """
        if method.dimensions == 2:
            return self.denoise2(x, method, level, report, out)
        try:
            done: tuple[Any, Measured | None] | None
            done = guarded(partial(self.whole, x, method, level, report, out), self.clear)
            return done
        except OutOfMemory:
            pass  # what follows needs the memory that the error's traceback keeps
        try:
            if out is None and interop.on_device(x):
                out = guarded(lambda: interop.empty(x.shape, _dtype(x), x), self.clear)
            elif out is None:
                out = np.empty(x.shape, x.dtype)
            if method.transform == "modwt" and (len(x) == 1 or method.scope == "record"):
                raise OutOfMemory(f"{level + 2} arrays of their size for transform='modwt'; use the host's memory")
            if len(x) == 1 or method.scope == "record":
                return chunked_rows.denoise(self, x, out, method, level, report)
        except OutOfMemory as error:
            raise MemoryError(f"{tuple(x.shape)} samples do not fit in the device's memory: {error}") from error
        return in_halves(lambda part: self.denoise(x[part], method, level, report, out[part]), out, report)

    def spun(self, x: Any, method: Method, level: int) -> Any:
        """The mean of `Method.spins` denoises of shifted rows, for an array on a GPU; None if it is not finite."""
        return cycle_spinning.denoise(self, x, method, level)

    def whole(self, x: Any, method: Method, level: int, report: bool, out: Any) -> Any:
        """`denoise` of rows that are on the GPU together; raises what numba does if there is no room for them."""
        return self.begin(x, method, level, report, out)()

    def begin(self, x: Any, method: Method, level: int, report: bool, out: Any) -> Callable[[], Any]:
        """Launch a denoise; what is returned waits for it and gives `denoise`'s answer."""
        device = interop.on_device(x)
        plan, stream, denoiser = self._prepared(x, method, level, report)
        x = x.reshape(plan.shape.rows, plan.shape.samples)
        try:
            run = self._on_device if device else self._small if x.nbytes < Ring.LEAST else self._through_ring
            y = run(plan, denoiser, x, out, stream)
        except BaseException:
            self._plans.give_back(plan)
            raise

        def finish() -> Any:
            nonlocal y
            try:
                unfinished, finite = denoiser.outcome(stream)
                if unfinished:  # as good as never, unless many values are equal
                    denoiser.quick = False
                    denoiser.graphs.clear()
                    y = run(plan, denoiser, x, out, stream)
                    _, finite = denoiser.outcome(stream)
                if not finite:
                    return None
                if method.transform == "dwt":
                    cuda_crossover.loaded.add((plan.shape.dtype, method.bank.dec_len))
                return y, denoiser.measured(stream) if report else None
            finally:
                self._plans.give_back(plan)

        return finish

    def recorded(self, x: Any, method: Method, level: int, out: Any) -> Recorded | None:
        """The launches of a denoise of an array on the GPU made twice before; None if they are not there."""
        plan, stream, denoiser = self._prepared(x, method, level, False)
        graph = denoiser.graphs.get((interop.address(x), interop.address(out)))
        give_back = partial(self._plans.give_back, plan)
        if graph is None:
            give_back()
            return None
        return Recorded(interop.on_device_of(x), graph, stream, denoiser.outcome, give_back)

    def _prepared(self, x: Any, method: Method, level: int, report: bool) -> tuple[Any, Any, Denoiser]:
        """A plan, which is to be given back, with a stream and a denoiser for it."""
        make_plan: Any
        make_denoiser: Any
        if method.dimensions == 2:
            pair, modes, size = (method.bank, method.bank), (method.mode, method.mode), (x.shape[1], x.shape[2])
            shape: Any = SectionsShape.of(pair, modes, _dtype(x), level, len(x), size)
            make_plan, make_denoiser = SectionsPlan, SectionsDenoiser
        elif method.transform == "dwt":
            shape = Shape.of(method.bank, method.mode, _dtype(x), level, *x.shape)
            make_plan, make_denoiser = Plan, DwtDenoiser
        else:
            shape = ModwtShape.of(method.bank, method.mode, _dtype(x), level, 0, *x.shape)
            make_plan, make_denoiser = ModwtPlan, ModwtDenoiser
        plan, stream = self._plans.borrow(shape, self._options, x if interop.on_device(x) else None, make_plan)
        try:
            return plan, stream, plan.kept(_key(method, report), lambda: make_denoiser(plan, method, report))
        except BaseException:
            self._plans.give_back(plan)
            raise

    def _on_device(self, plan: Plan, denoiser: Denoiser, x: Any, out: Any, stream: Any) -> Any:
        rows, samples = plan.shape.rows, plan.shape.samples
        if out is None:
            out = interop.empty((rows, samples), plan.shape.dtype, x)
        addresses = interop.address(x), interop.address(out)
        if self._again(denoiser, addresses, stream):
            return out
        source, target = interop.flat(x), interop.flat(out)
        aligned = interop.aligned(source, rows, samples), interop.aligned(target, rows, samples)
        self._replay(denoiser, addresses, lambda on: denoiser.run(source, target, *aligned, on), stream)
        return out

    def _through_ring(self, plan: Plan, denoiser: Denoiser, x: Any, out: Any, stream: Any) -> Any:
        rows, samples = plan.shape.rows, plan.shape.samples
        fresh = out is None
        if fresh:
            out = self._results.empty((rows, samples), plan.shape.dtype)
            fresh = not pinned(out)
        source, target = plan.buffer("x", rows * samples), plan.buffer("y", rows * samples)
        aligned = interop.aligned(source, rows, samples)
        self.ring.upload(np.ascontiguousarray(x), source, stream, touch=out if fresh else None)
        self._replay(denoiser, (), lambda on: denoiser.run(source, target, aligned, aligned, on), stream)
        self.ring.download(target, out, stream)
        return out

    def _small(self, plan: Plan, denoiser: Denoiser, x: Any, out: Any, stream: Any) -> Any:
        """Transfers and launches in one graph: at this size their number is the cost."""
        rows, samples = plan.shape.rows, plan.shape.samples
        size = rows * samples
        source, target = plan.buffer("x", size), plan.buffer("y", size)
        staged, result = plan.staging("in", size), plan.staging("out", size)
        aligned = interop.aligned(source, rows, samples)
        staged.reshape(rows, samples)[:] = x

        def work(on: Any) -> None:
            source.copy_to_device(staged, stream=on)
            denoiser.run(source, target, aligned, aligned, on)
            target.copy_to_host(result, stream=on)

        self._replay(denoiser, (), work, stream)
        stream.synchronize()
        if out is None:
            return result.reshape(rows, samples).copy()
        out[:] = result.reshape(rows, samples)
        return out

    def _again(self, denoiser: Denoiser, addresses: tuple[int, ...], stream: Any) -> bool:
        """Whether there was a graph for these arrays, and it was launched."""
        graph = denoiser.graphs.get(addresses)
        if graph is not None:
            denoiser.graphs.move_to_end(addresses)
            graph.launch(stream)
        return graph is not None

    def _replay(self, denoiser: Denoiser, addresses: tuple[int, ...], work: Callable[[Any], None], stream: Any) -> None:
        """Run ``work``; capture it as a graph when it comes a second time with the same arrays."""
        if SIMULATED or not denoiser.replayable:
            work(stream)
        elif addresses in denoiser.graphs:
            if not self._again(denoiser, addresses, stream):
                denoiser.graphs[addresses] = Graph(work)
                self._again(denoiser, addresses, stream)
        else:
            work(stream)
            denoiser.graphs[addresses] = None
            while len(denoiser.graphs) > GRAPHS:
                denoiser.graphs.popitem(last=False)

    def _packed(self, pyramid: Pyramid) -> CudaPyramid:
        """Coefficients from elsewhere, copied into the buffers of a plan."""
        smooth = pyramid.coefficients[0]
        analysis, size = pyramid.analysis, (smooth.shape[0], pyramid.samples)
        shape = Shape.of(analysis.wavelets[0], analysis.modes[0], _dtype(smooth), analysis.level, *size)
        plan, stream = self._plans.borrow(shape, self._options)
        plan.fill([c if isinstance(c, np.ndarray) else interop.to_host(c) for c in pyramid.coefficients], stream)
        packed = CudaPyramid(plan, stream, analysis, True)
        self._plans.lend(packed, plan)
        return packed


def _key(method: Method, report: bool) -> tuple[Any, ...]:
    """What a denoiser depends on beside the plan's shape."""
    rule = method.rule if isinstance(method.rule, str) else tuple(method.fixed_thresholds)
    return rule, method.shrink_word, method.sigma, method.scope, method.keep, report


def _dtype(x: Any) -> str:
    return str(x.dtype).rpartition(".")[2]
