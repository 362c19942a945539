"""A plan: the buffers, tables and launches for one shape, filter, mode and level, made once and used again."""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import pywt

from wavefilt.backends.cuda.runtime import interop
from wavefilt.backends.cuda.runtime.buffers import Buffers
from wavefilt.backends.cuda.runtime.target import cuda

from . import launch_shapes
from .forward import extensions, forward
from .inverse import inverse
from .tiling import FLAGS, ROWS, TILE_BYTES, Filter, Tiling, forward_tiling, inverse_tiling, launches, up4

THREADS = 256
MOST_TAPS_SEARCHED = 64


@dataclass(frozen=True)
class Options:
    """What a user of the backend may choose; the tests choose small tiles."""

    fastmath: bool = False
    tile: int = 0  # samples a block covers; 0: what suits the dtype
    threads: int = THREADS
    select: int = 512  # threads of a block that samples
    scan: int = 256  # threads of a block that counts
    row: int = 128  # threads of a block that finishes the level of a row alone

    def tile_for(self, dtype: str) -> int:
        return self.tile or TILE_BYTES // np.dtype(dtype).itemsize

    def suited(self, shape: Shape) -> Options:
        """With the block and tile that suit the shape, unless they were chosen."""
        found = launch_shapes.suited(shape.filter.taps, shape.dtype, shape.rows, shape.samples)
        if found is None or self.tile or self.threads != THREADS:
            return self
        return replace(self, threads=found[0], tile=found[1])


@dataclass(frozen=True, eq=False)
class Shape:
    """What a plan is made for; `of` gives one object for one set of arguments."""

    lo: tuple[float, ...]
    hi: tuple[float, ...]
    rec_lo: tuple[float, ...]
    rec_hi: tuple[float, ...]
    mode: str
    dtype: str
    level: int
    rows: int
    samples: int

    @staticmethod
    @lru_cache(maxsize=256)
    def of(wavelet: pywt.Wavelet, mode: str, dtype: str, level: int, rows: int, samples: int) -> Shape:
        lo, hi, rec_lo, rec_hi = (tuple(map(float, taps)) for taps in wavelet.filter_bank)
        return Shape(lo, hi, rec_lo, rec_hi, mode, dtype, level, rows, samples)

    @cached_property
    def filter(self) -> Filter:
        return Filter(len(self.lo), self.mode == "periodization")

    @cached_property
    def lengths(self) -> list[int]:
        """Samples of a row, then coefficients of it at every level."""
        lengths = [self.samples]
        for _ in range(self.level):
            lengths.append(self.filter.length(lengths[-1]))
        return lengths

    @cached_property
    def offsets(self) -> list[int]:
        """Where in one buffer the details of every level begin, and their end."""
        return [self.rows * sum(map(up4, self.lengths[1 : i + 1])) for i in range(self.level + 1)]


def grid(blocks: int, rows: int) -> tuple[int, int, int]:
    """A grid of ``blocks`` blocks for each of the rows."""
    return blocks, min(rows, ROWS), -(-rows // ROWS)


class Plan(Buffers):
    """Buffers on the device for one shape, and the transforms that use them, all on one stream.

    A plan serves one caller at a time; `Plans` lends them out.
    """

    def __init__(self, shape: Shape, options: Options) -> None:
        super().__init__(shape.dtype)
        self.shape, self.options = shape, options.suited(shape)
        options = self.options
        self.fused = launches(shape.filter, shape.level, options.tile_for(shape.dtype))
        self.firsts = [sum(self.fused[:i]) for i in range(len(self.fused))]
        table = []
        for first, levels in zip(self.firsts, self.fused, strict=True):
            cut = self._cut(forward_tiling, levels)
            gap = cut.gap(shape.lengths[first])
            table.append(
                extensions(shape.filter, shape.mode, [shape.lengths[first + i] - (gap >> i) for i in range(levels)])
            )
        self.table = cuda.to_device(np.concatenate(table)) if table else None
        self.nothing = self.buffer("nothing", 1, np.int64)  # where a kernel wants an array and has no use for it
        self.details = self.buffer("details", shape.offsets[-1] + shape.offsets[-1] // 8 + 8)  # and lists of some
        self.smooths = [
            self.buffer(f"smooth{first}", shape.rows * up4(shape.lengths[first + levels]))
            for first, levels in zip(self.firsts, self.fused, strict=True)
        ]

    @property
    def pitches(self) -> list[int]:
        """Elements from row to row of each of ``smooths``."""
        return [up4(self.shape.lengths[first + levels]) for first, levels in zip(self.firsts, self.fused, strict=True)]

    def _cut(self, tiling: Any, levels: int) -> Tiling:
        cut: Tiling = tiling(self.shape.filter, self.options.tile_for(self.shape.dtype), levels)
        return cut

    def release(self) -> None:
        super().release()
        self.details, self.smooths = None, []

    @property
    def bytes(self) -> int:
        return super().bytes + (0 if self.table is None else int(self.table.nbytes))

    @cached_property
    def high_pass(self) -> Any:
        """The analysis filter of the details, reversed, on the device."""
        return cuda.to_device(np.array(self.shape.hi[::-1], self.shape.dtype))

    @property
    def searches(self) -> bool:
        """Whether the first launch's forward kernel has room in shared memory for a search."""
        return self.shape.filter.taps <= MOST_TAPS_SEARCHED

    def _begins(self, first: int, levels: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Where in ``details`` those of the levels of a launch begin, and the elements their rows take."""
        s = self.shape
        return tuple(s.offsets[first : first + levels]), tuple(
            up4(n) for n in s.lengths[first + 1 : first + levels + 1]
        )

    def forward_kernel(self, i: int, searching: bool = False) -> Any:
        """The kernel of the i-th launch of `forward`."""
        s, o = self.shape, self.options
        return forward(
            s.lo, s.hi, s.filter.periodized, s.dtype, self.fused[i], o.tile_for(s.dtype), o.threads, o.fastmath,
            searching,
        )  # fmt: skip

    def inverse_kernel(self, i: int, function: str) -> Any:
        """The kernel of the i-th launch of `inverse`, counted from the finest levels."""
        s, o = self.shape, self.options
        return inverse(
            s.rec_lo, s.rec_hi, s.filter.periodized, s.dtype, self.fused[i], o.tile_for(s.dtype), o.threads, function,
            o.fastmath,
        )  # fmt: skip

    def forward_launch(self, i: int, x: Any, aligned: bool, stream: Any, search: Any = None) -> None:
        """Some levels of `forward`, from ``x`` or from what the launch before left."""
        s, first, levels = self.shape, self.firsts[i], self.fused[i]
        n = s.lengths[first]
        source, pitch, aligned = (x, n, aligned) if i == 0 else (self.smooths[i - 1], up4(n), True)
        search = search if i == 0 else None
        tiles = self._cut(forward_tiling, levels).interior(n)
        self.forward_kernel(i, search is not None)[grid(tiles + 1, s.rows), self.options.threads, stream](
            source, pitch, aligned, self.details, *self._begins(first, levels), self.smooths[i], self.table, first, n,
            s.rows, tiles, self.nothing if search is None else search.state,
            self.details if search is None else search.edges, s.offsets[-1],
        )  # fmt: skip

    def forward(
        self, x: Any, aligned: bool, stream: Any, after_first: Callable[[], None] | None = None, search: Any = None
    ) -> None:
        """Coefficients of the rows of ``x``, a flat device array.

        ``after_first`` is called after the first launch, which takes part in a ``search``, a drawn `Selection`.
        """
        for i in range(len(self.fused)):
            self.forward_launch(i, x, aligned, stream, search)
            if i == 0 and after_first is not None:
                after_first()

    def coefficients(self) -> tuple[Any, ...]:
        """(cA_n, cD_n, ..., cD_1) as views of the buffers, shape (rows, length)."""
        s = self.shape
        details = [
            self.details[s.offsets[i] : s.offsets[i + 1]].reshape(s.rows, -1)[:, :n]
            for i, n in enumerate(s.lengths[1:])
        ]
        if not s.level:
            return (self.buffer("start", s.rows * up4(s.samples)).reshape(s.rows, -1)[:, : s.samples],)
        return (self.smooths[-1].reshape(s.rows, -1)[:, : s.lengths[-1]], *reversed(details))

    def start(self, x: Any, stream: Any) -> None:
        """The rows of ``x`` themselves, as coefficients of level 0."""
        s = self.shape
        start = self.buffer("start", s.rows * up4(s.samples))
        host = x.copy_to_host(stream=stream).reshape(s.rows, s.samples)
        stream.synchronize()
        start.copy_to_device(np.pad(host, ((0, 0), (0, up4(s.samples) - s.samples))).ravel(), stream=stream)
        stream.synchronize()

    def fill(self, coefficients: Sequence[Any], stream: Any) -> None:
        """Put host arrays (cA_n, cD_n, ..., cD_1) into the buffers."""
        s = self.shape
        details = np.zeros(s.offsets[-1], s.dtype)
        for i, values in enumerate(reversed(coefficients[1:])):
            details[s.offsets[i] : s.offsets[i + 1]].reshape(s.rows, -1)[:, : s.lengths[i + 1]] = values
        smooth = np.zeros((s.rows, self.pitches[-1]), s.dtype)
        smooth[:, : s.lengths[-1]] = coefficients[0]
        self.details[: s.offsets[-1]].copy_to_device(details, stream=stream)
        self.smooths[-1].copy_to_device(smooth.ravel(), stream=stream)
        stream.synchronize()

    def inverse_launch(
        self, i: int, y: Any, aligned: bool, function: str, thresholds: Any, stream: Any, flags: Any = None,
        unchanged: tuple[Any, Any] | None = None, details: Any = None,
    ) -> None:  # fmt: skip
        """Some levels of `inverse`, into ``y`` or for the launch after."""
        s, first, levels = self.shape, self.firsts[i], self.fused[i]
        n = s.lengths[first]
        target, pitch, aligned = (y, n, aligned) if i == 0 else (self.smooths[i - 1], up4(n), True)
        tiles = self._cut(inverse_tiling, levels).interior(n)
        nothing = self.buffer("flags", FLAGS, np.int32)
        self.inverse_kernel(i, function)[grid(tiles + 1, s.rows), self.options.threads, stream](
            self.smooths[i], self.details if details is None else details, *self._begins(first, levels),
            self.details if thresholds is None else thresholds, first, target, pitch, aligned, n, s.rows, tiles,
            nothing if flags is None else flags, *(unchanged or (target, nothing)), i == 0 and unchanged is not None,
        )  # fmt: skip

    def inverse(
        self, y: Any, aligned: bool, function: str, thresholds: Any, stream: Any, flags: Any = None,
        unchanged: tuple[Any, Any] | None = None, details: Any = None,
    ) -> None:  # fmt: skip
        """Rows from the coefficients, shrunk on the way, into the flat device array ``y``.

        ``unchanged`` are the rows they came from and which of them are to be computed, not copied. ``details`` are
        taken instead of the plan's own, and laid out like them.
        """
        for i in reversed(range(len(self.fused))):
            self.inverse_launch(i, y, aligned, function, thresholds, stream, flags, unchanged, details)


class Plans:
    """Plans ready for use: lent to one caller at a time, kept afterwards up to a number of bytes."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._lock = threading.Lock()
        self._idle: OrderedDict[tuple[Any, ...], list[Any]] = OrderedDict()
        self._kept = 0  # bytes of those that are idle

    def borrow(
        self, shape: Any, options: Options, like: Any = None, make: Callable[..., Any] = Plan
    ) -> tuple[Any, Any]:
        """A plan for this shape that nobody else uses, made by ``make(shape, options)``, and the stream to use it on.

        The stream is the caller's for an array ``like`` on a GPU, else the plan's own. The plan is for `give_back`; it
        goes to the same thread and stream again, whose work is in order.
        """
        number = -1 if like is None else interop.stream_number(like)
        key = (shape, options, threading.get_ident(), number)
        with self._lock:
            idle = self._idle.get(key)
            plan = idle.pop() if idle else None
            self._kept -= 0 if plan is None else plan.bytes
        if plan is None:
            plan = make(shape, options)
            plan.key = key
        return plan, plan.own_stream() if like is None else interop.stream_of(number)

    def give_back(self, plan: Any) -> None:
        """Keep the plan for the next caller, dropping those unused for longest beyond the limit."""
        with self._lock:
            self._idle.setdefault(plan.key, []).append(plan)
            self._idle.move_to_end(plan.key)
            self._kept += plan.bytes
            while self._kept > self.limit and self._idle:
                for p in self._idle.popitem(last=False)[1]:
                    self._kept -= p.bytes
                    p.release()

    def lend(self, owner: Any, plan: Any) -> None:
        """Give the plan back when ``owner`` is no longer used."""
        weakref.finalize(owner, self.give_back, plan).atexit = False

    def clear(self) -> None:
        """Release all plans that are not in use."""
        with self._lock:
            for plan in (p for plans in self._idle.values() for p in plans):
                plan.release()
            self._idle.clear()
            self._kept = 0
