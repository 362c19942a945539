"""Several GPUs of one host as one backend.

Whole rows are dealt to the GPUs. A long row is cut into chunks with halos, each of which stays on its GPU from the
first pass to the last; transfers overlap.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import partial
from itertools import pairwise
from typing import Any, Literal, TypeVar

import numpy as np

from wavefilt import engine
from wavefilt.arrays import Array
from wavefilt.backends.cuda.backend import Cuda, CudaPyramid
from wavefilt.backends.cuda.chunked_rows import HostRows
from wavefilt.backends.cuda.denoiser import Denoised, joined
from wavefilt.backends.cuda.runtime import interop
from wavefilt.backends.cuda.runtime.interfaces import Samples
from wavefilt.backends.cuda.runtime.memory import OutOfMemory, guarded
from wavefilt.backends.cuda.runtime.target import SIMULATED, cuda
from wavefilt.backends.cuda.runtime.transfer import Ring
from wavefilt.chunks import Chunk
from wavefilt.options import Options
from wavefilt.statistics.reference import Measured
from wavefilt.thresholding.shrinkage import Shrinkage
from wavefilt.transforms import Pyramid
from wavefilt.trend import Trend

Devices = Literal["all"] | Sequence[int]
Result = TypeVar("Result")

LEAST = 1 << 22
"""Samples below which one GPU is faster than several, which take time to start and to wait for."""
STAGING = 8
"""Threads of all GPUs together that copy host memory: more would only share its bandwidth."""


class Member:
    """One GPU, the thread that works for it, and its backend."""

    here = threading.local()

    def __init__(self, number: int, make: Callable[[], Cuda]) -> None:
        self.number = number
        self._pool = ThreadPoolExecutor(1, f"wavefilt-gpu-{number}", self._settle)
        self.backend = self.submit(make).result()

    def _settle(self) -> None:
        """Let this thread work for the GPU."""
        cuda.select_device(self.number)
        self.here.member = self

    def submit(self, work: Callable[[], Result]) -> Future[Result]:
        """Begin ``work()`` in the GPU's thread; the simulator, which runs one kernel at a time, does it at once."""
        if not SIMULATED:
            return self._pool.submit(work)
        outer, done = vars(self.here).get("member"), Future[Result]()
        self.here.member = self
        try:
            done.set_result(work())
        finally:
            self.here.member = outer
        return done


class Several(Cuda):
    """`Cuda` on several GPUs of this host: ``devices="all"``, or their numbers; the others options are as there.

    Rows in host memory are dealt out. A record or few long rows go to one GPU; where that has no room they are cut so
    that every GPU has a part with a halo, and its coefficients are equal. Medians are merged by
    counting and exact, so the result is that of one GPU bit for bit, or to rounding for thresholds that depend on mean
    squares. Arrays on a GPU stay on it. Single transforms run on the first GPU.

    Raises ValueError for a number of no GPU, and what `Cuda` raises.
    """

    def __init__(self, devices: Devices = "all", **options: Any) -> None:
        super().__init__(**options)
        numbers = checked(devices, len(cuda.gpus))
        self._members = [Member(number, lambda: Cuda(**options)) for number in numbers]
        for member in self._members:
            member.backend.ring = Ring(max(STAGING // len(numbers), 2))

    def describe(self) -> str:
        return "; ".join(member.submit(member.backend.describe).result() for member in self._members)

    def clear(self) -> None:
        super().clear()
        for member in self._members:
            member.submit(member.backend.clear).result()

    def check(self) -> None:
        failed = None
        for check in (super().check, *(member.backend.check for member in self._members)):
            try:
                check()
            except ValueError as error:  # the others are waited for, too
                failed = error
        if failed is not None:
            raise failed

    def denoise(
        self,
        x: Samples,
        method: Options,
        level: int,
        report: bool = False,
        out: Samples | None = None,
        wait: bool = True,
    ) -> Denoised:
        if method.ndim == 2:
            return super().denoise(x, method, level, report, out, wait)
        if interop.on_device(x):
            member = self._home(x)
            with interop.on_device_of(x):
                return member.backend.denoise(x, method, level, report, out, wait)
        if len(self._members) > 1 and x.size >= LEAST and method.scope == "trace" and len(x) >= len(self._members):
            return self._dealt(x, method, level, report, out)
        first = self._members[0]
        try:
            whole = partial(first.backend.whole, x, method, level, report, out)
            return first.submit(partial(guarded, whole, first.backend.clear)).result()
        except OutOfMemory:
            pass  # the error's traceback keeps memory that is needed below
        if len(self._members) > 1 and self._divides(x, method, level):
            try:
                return self.split(x, method, level, report, out)
            except OutOfMemory:
                self.clear()
        return super().denoise(x, method, level, report, out)  # chunk by chunk through one of them

    def split(
        self, x: Samples, method: Options, level: int, report: bool = False, out: Samples | None = None
    ) -> Denoised:
        """`denoise` of rows in host memory with a part of the samples on each GPU.

        Rows that fit on one GPU are faster there: transfers are limited by the host's memory, not by the GPUs. Raises
        `OutOfMemory` if the parts are too large too.
        """
        out = self._results.lend(x.shape, x.dtype)[0] if out is None else out
        return guarded(partial(_denoise_cut, self._members, x, out, method, level, report), self.clear)

    def _divides(self, x: Samples, method: Options, level: int) -> bool:
        """Return whether samples can be cut into parts longer than their halos."""
        halo = method.halo(level)
        if halo is None or method.rule.blocks or method.transform.name != "dwt":
            return False
        return len(x) > 1 or x.size > 8 * len(self._members) * halo

    def _dealt(self, x: Samples, method: Options, level: int, report: bool, out: Samples | None) -> Denoised:
        """Denoise whole rows, some on every GPU."""
        out = self._results.lend(x.shape, x.dtype)[0] if out is None else out
        edges = [len(x) * i // len(self._members) for i in range(len(self._members) + 1)]
        parts = [slice(a, b) for a, b in pairwise(edges)]

        def work(member: Member, part: slice) -> Callable[[], Denoised]:
            return lambda: member.backend.denoise(x[part], method, level, report, out[part])

        futures = [m.submit(work(m, part)) for m, part in zip(self._members, parts, strict=True)]
        return joined([future.result() for future in futures], out, report)

    def at_once(self, x: Samples, method: Options, axes: tuple[int, ...], wait: bool) -> Samples | None:
        if method.ndim == 2:
            return super().at_once(x, method, axes, wait)
        with interop.on_device_of(x):
            return self._home(x).backend.at_once(x, method, axes, wait)

    def each(
        self,
        parts: Sequence[Samples],
        method: Options,
        levels: Sequence[int],
        outs: Sequence[Samples] | None = None,
        wait: bool = True,
    ) -> list[Samples | None]:
        """Arrays of rows on GPUs denoised where they are, those on different ones at the same time.

        Every part has thresholds of its own traces. A part with a sample that is not finite gives None. Where there is
        no room for all parts at once they are denoised one after the other. Raises MemoryError.
        """
        try:
            return guarded(partial(self._at_once, parts, method, levels, outs, wait), self.clear)
        except OutOfMemory:
            pass  # the error's traceback keeps memory that is needed below
        done: list[Samples | None] = []
        for i, (part, level) in enumerate(zip(parts, levels, strict=True)):
            out = None if outs is None else outs[i]
            with interop.on_device_of(part):
                one = self._home(part).backend.denoise(part, method, level, False, out)
            done.append(None if one is None else one[0])
        return done

    def _at_once(
        self,
        parts: Sequence[Samples],
        method: Options,
        levels: Sequence[int],
        outs: Sequence[Samples] | None,
        wait: bool,
    ) -> list[Samples | None]:
        """`each`, if there is room."""
        if outs is None:
            outs = [self._like(part) for part in parts]
        begun: list[Callable[[], Denoised]] = []
        try:
            for part, level, out in zip(parts, levels, outs, strict=True):
                with interop.on_device_of(part):
                    begun.append(self._home(part).backend.begin(part, method, level, False, out, wait))
        finally:  # those begun before an error as well: their memory is free once they have ended
            done = []
            for part, finish in zip(parts, begun, strict=False):
                with interop.on_device_of(part):
                    done.append(finish())
        return [None if one is None else one[0] for one in done]

    def _like(self, part: Samples) -> Samples:
        """Allocate memory of the part's library on its GPU."""
        with interop.on_device_of(part):
            return interop.empty(tuple(part.shape), interop.dtype_name(part), part)

    def take(self, x: Samples, *axes: int) -> interop.Traces:
        with self.on_device_of(x):
            return super().take(x, *axes)

    def on_device_of(self, x: Samples) -> AbstractContextManager[object]:
        """Return a context in which new memory is on the GPU of an array."""
        return interop.on_device_of(x)

    def _home(self, x: Samples) -> Member:
        """Return the member on whose GPU an array is. Raises ValueError if there is none."""
        number = interop.device_of(x)
        for member in self._members:
            if member.number == number:
                return member
        raise ValueError(f"the array is on GPU {number}, and devices are {[m.number for m in self._members]}")


def checked(devices: Devices, count: int) -> list[int]:
    """Return the numbers of GPUs. Raises ValueError for numbers of none of ``count`` GPUs, and for one named twice."""
    if isinstance(devices, str):
        if devices != "all":
            raise ValueError(f"devices={devices!r} must be 'all' or numbers of GPUs")
        return list(range(count))
    found = list(devices)
    there = f"GPUs here: {', '.join(map(str, range(count)))}"
    if not found or any(isinstance(n, bool) or not isinstance(n, int) or not 0 <= n < count for n in found):
        raise ValueError(f"devices={devices!r} must be 'all' or numbers of GPUs; {there}")
    if len(set(found)) < len(found):
        raise ValueError(f"devices={devices!r} names a GPU twice; {there}")
    return found


def _denoise_cut(
    members: Sequence[Member], x: Array, out: Array, method: Options, level: int, report: bool
) -> tuple[Array, Measured | None] | None:
    """Denoise as `Cuda.denoise`, with a part of the samples on each GPU. Raises the driver's error without room."""
    rows, samples = x.shape
    if rows >= len(members):
        most = -(-rows // len(members)) * samples
    else:
        halo = method.halo(level) or 0
        most = rows * samples // len(members) + 4 * halo
    if method.scope == "trace":
        most = min(most, 2 * samples - 1)  # statistics merged over chunks are of one row, or of all
    measured = engine.denoise_chunks(_SplitRows(x, out, members), method, level, most * x.itemsize, report)
    return None if measured is None else (out, measured if report else None)


class _SplitRows(HostRows):
    """Rows in host memory, a chunk of which is on each GPU."""

    summing, elsewhere = False, True

    def __init__(self, x: Array, out: Array, members: Sequence[Member]) -> None:
        super().__init__(x, out, members[0].backend)
        self._members = members
        self._group: Sequence[Chunk] = ()
        self._kept: dict[int, Pyramid] = {}
        self._here = threading.local()

    def run(self, group: Sequence[Chunk], job: engine.Job, begin: engine.Begin[Result]) -> list[Result]:
        """Every GPU takes its chunks, at the same time as the others, and keeps their coefficients."""
        if self._group is not group:
            self._group, self._kept = group, {}

        def work(member: Member, places: range) -> Result:
            self._here.backend = member.backend
            visit, result = begin()
            for i in places:
                if i not in self._kept:
                    self._kept[i] = self.decompose(group[i], job)
                visit(group[i], self._kept[i])
            return result()

        shares = [range(i, len(group), len(self._members)) for i in range(len(self._members))]
        futures = [member.submit(partial(work, member, own)) for member, own in zip(self._members, shares, strict=True)]
        errors = [error for error in [future.exception() for future in futures] if error is not None]
        if errors:
            raise errors[0]
        return [future.result() for future in futures]

    def decompose(self, chunk: Chunk, job: engine.Job) -> Pyramid:
        backend: Cuda = self._here.backend
        sent = cuda.device_array((chunk.rows.stop - chunk.rows.start, chunk.length), self.dtype)
        flat, begin, kind = sent.reshape(-1), 0, job.options.trend
        if kind is not None:
            x = self.take(chunk)
            self._fit(chunk, x, kind)
            whole = self._with_trends(chunk, x, np.empty_like(x), Trend.remove)
            backend.ring.upload(whole.reshape(-1), flat, interop.stream_of(0))
            return backend.decompose(sent, job.analysis)
        for part in chunk.parts:
            samples = np.ascontiguousarray(self.x[chunk.rows, part.first : part.last])
            backend.ring.upload(samples, flat[begin : begin + samples.size], interop.stream_of(0))
            begin += samples.size
        return backend.decompose(sent, job.analysis)

    def reconstruct(self, pyramid: CudaPyramid, shrinkage: Shrinkage) -> Array:  # type: ignore[override]
        backend: Cuda = self._here.backend
        resident: Samples = pyramid.plan.layout.array  # type: ignore[assignment]
        return backend.reconstruct(pyramid, shrinkage, like=resident)

    def put(self, chunk: Chunk, y: Array) -> None:
        flat, backend = y.reshape(-1), self._here.backend
        for own, place in chunk.kept():
            if own == slice(0, chunk.length):
                own = slice(0, flat.size)  # whole rows, one or more
            backend.ring.download(flat[own], self.out[chunk.rows, place], interop.stream_of(0))
