"""Rows cut over several GPUs: every part stays on its GPU from the first look at its details to the last."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wavefilt.backends.cuda.chunked_rows import DeviceTally, HostRows
from wavefilt.backends.cuda.runtime import interop
from wavefilt.backends.cuda.runtime.target import cuda
from wavefilt.backends.interface import Pyramid
from wavefilt.chunking import passes
from wavefilt.chunking.chunks import Chunk, halo
from wavefilt.method import Method
from wavefilt.statistics.interface import Measured
from wavefilt.statistics.radix_select import Interval
from wavefilt.thresholding.shrinkage import Shrinkage

if TYPE_CHECKING:
    from .backend import Member


def denoise(
    members: Sequence[Member], x: NDArray[Any], out: NDArray[Any], method: Method, level: int, report: bool
) -> tuple[Any, Measured | None] | None:
    """As `Cuda.denoise`, a part of the samples on each GPU. Raises OutOfMemory if that is too much for one."""
    rows, samples = x.shape
    if rows >= len(members):
        most = -(-rows // len(members)) * samples
    else:
        most = rows * samples // len(members) + 4 * halo(method.bank.dec_len, level)
    if method.scope == "trace":
        most = min(most, 2 * samples - 1)  # statistics merged over chunks are of one row, or of all
    measured = passes.denoise(_SplitRows(x, out, members), method, level, most * x.itemsize, report)
    return None if measured is None else (out, measured if report else None)


class _Tally:
    """`wavefilt.statistics.chunked.Tally` for each GPU's thread, and the sum of all."""

    def __init__(self, dtype: np.dtype[Any], intervals: Sequence[Interval], sums: int) -> None:
        self._arguments = dtype, intervals, sums
        self._of: dict[Member, DeviceTally] = {}

    def _own(self) -> DeviceTally:
        from .backend import Member

        member: Member = Member.here.member
        if member not in self._of:
            self._of[member] = DeviceTally(*self._arguments)
        return self._of[member]

    def count(self, i: int, details: Any) -> None:
        self._own().count(i, details)

    def add_squares(self, i: int, details: Any) -> None:
        self._own().add_squares(i, details)

    def counts(self) -> list[NDArray[np.int64]]:
        return [sum(parts[1:], parts[0]) for parts in zip(*self._all(lambda tally: tally.counts()), strict=True)]

    def sums(self) -> NDArray[np.float64]:
        return np.sum(self._all(lambda tally: tally.sums()), axis=0)  # type: ignore[no-any-return]

    def _all(self, ask: Callable[[DeviceTally], Any]) -> list[Any]:
        """Answers in the order of the GPUs, so that sums are always the same."""
        ordered = sorted(self._of.items(), key=lambda item: item[0].number)
        return [member.submit(partial(ask, tally)).result() for member, tally in ordered]


class _SplitRows(HostRows):
    """Rows in host memory, a chunk of which is on each GPU."""

    tally = _Tally
    cheap = elsewhere = True

    def __init__(self, x: Any, out: Any, members: Sequence[Member]) -> None:
        super().__init__(x, out, members[0].backend)
        self._members = members
        self._group: Sequence[Chunk] = ()
        self._kept: dict[int, Pyramid] = {}

    def show(
        self, group: Sequence[Chunk], decompose: Callable[[Chunk], Pyramid], look: Callable[[Chunk, Pyramid], None]
    ) -> None:
        """Every GPU looks at its chunks, at the same time as the others."""
        if self._group is not group:
            self._group, self._kept = group, {}

        def work(places: range) -> None:
            for i in places:
                if i not in self._kept:
                    self._kept[i] = decompose(group[i])
                look(group[i], self._kept[i])

        shares = [range(i, len(group), len(self._members)) for i in range(len(self._members))]
        futures = [member.submit(partial(work, own)) for member, own in zip(self._members, shares, strict=True)]
        errors = [error for error in [future.exception() for future in futures] if error is not None]
        if errors:
            raise errors[0]

    def decompose(self, chunk: Chunk, method: Method, level: int) -> Pyramid:
        backend = _here()
        sent = cuda.device_array((chunk.rows.stop - chunk.rows.start, chunk.length), self.dtype)
        flat, begin = sent.reshape(-1), 0
        for part in chunk.parts:
            samples = np.ascontiguousarray(self.x[chunk.rows, part.first : part.last])
            backend.ring.upload(samples, flat[begin : begin + samples.size], interop.stream_of(0))
            begin += samples.size
        return backend.decompose(sent, method.bank, method.mode, level)  # type: ignore[no-any-return]

    def reconstruct(self, pyramid: Any, shrinkage: Shrinkage) -> Any:
        return _here().reconstruct(pyramid, shrinkage, pyramid.plan.details)

    def put(self, chunk: Chunk, y: Any) -> None:
        flat = y.reshape(-1)
        for own, place in chunk.kept():
            if own == slice(0, chunk.length):
                own = slice(0, flat.size)  # whole rows, one or more
            _here().ring.download(flat[own], self.out[chunk.rows, place], interop.stream_of(0))


def _here() -> Any:
    """The backend of this thread's GPU."""
    from .backend import Member

    return Member.here.member.backend
