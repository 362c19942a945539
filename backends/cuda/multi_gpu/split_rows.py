"""Rows cut over several GPUs: every part stays on its GPU from the first pass to the last."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from wavefilt import engine
from wavefilt.arrays import Array
from wavefilt.backends.cuda.chunked_rows import HostRows
from wavefilt.backends.cuda.runtime import interop
from wavefilt.backends.cuda.runtime.interfaces import Samples
from wavefilt.backends.cuda.runtime.target import cuda
from wavefilt.chunks import Chunk
from wavefilt.options import Options
from wavefilt.statistics.interface import Measured
from wavefilt.thresholding.shrinkage import Shrinkage
from wavefilt.transforms import Pyramid
from wavefilt.trend import Trend

if TYPE_CHECKING:
    from wavefilt.backends.cuda.backend import Cuda, CudaPyramid

    from .backend import Member

Result = TypeVar("Result")


def denoise(
    members: Sequence[Member], x: Array, out: Array, method: Options, level: int, report: bool
) -> tuple[Array, Measured | None] | None:
    """As `Cuda.denoise`, a part of the samples on each GPU. Raises what the driver does if that is too much for one."""
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
