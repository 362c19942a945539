"""A plan: the buffers, tables and launches for one shape, filter, mode and level, made once and used again."""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import pywt

from . import graph
from .forward import extensions, forward
from .geometry import ROWS, TILE_BYTES, Filter, Tiling, forward_tiling, inverse_tiling, launches, up4
from .inverse import inverse
from .target import cuda

THREADS = 256
KEPT = 8  # methods whose launches a plan keeps


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


class Plan:
    """Buffers on the device for one shape, and the transforms that use them, all on one stream.

    A plan serves one caller at a time; `Plans` lends them out.
    """

    def __init__(self, shape: Shape, options: Options) -> None:
        self.shape, self.options = shape, options
        self.fused = launches(shape.filter, shape.level, options.tile_for(shape.dtype))
        self.firsts = [sum(self.fused[:i]) for i in range(len(self.fused))]
        self.key: tuple[Any, ...] = ()
        self._buffers: dict[str, Any] = {}
        self._staging: dict[str, Any] = {}
        self._kept: OrderedDict[Any, Any] = OrderedDict()
        self._stream: Any = None
        self._side: Any = None
        table = []
        for first, levels in zip(self.firsts, self.fused, strict=True):
            cut = self._cut(forward_tiling, levels)
            gap = cut.gap(shape.lengths[first])
            table.append(
                extensions(shape.filter, shape.mode, [shape.lengths[first + i] - (gap >> i) for i in range(levels)])
            )
        self.table = cuda.to_device(np.concatenate(table)) if table else None
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

    def buffer(self, name: str, size: int, dtype: Any = None) -> Any:
        """The plan's device array of this name, made when it is first asked for."""
        if name not in self._buffers:
            self._buffers[name] = cuda.device_array(size, dtype or self.shape.dtype)
        return self._buffers[name]

    def release(self) -> None:
        """Let go of all memory at once, not when Python finds the cycles."""
        for held in (self._buffers, self._staging, self._kept):
            held.clear()
        self.details, self.smooths = None, []

    def staging(self, name: str, size: int) -> Any:
        """The plan's pinned host array of this name."""
        if name not in self._staging:
            self._staging[name] = cuda.pinned_array(size, self.shape.dtype)
        return self._staging[name]

    def own_stream(self) -> Any:
        """A stream for work that comes from the host."""
        if self._stream is None:
            self._stream = graph.stream()
        return self._stream

    def side_stream(self) -> Any:
        """A stream for what can run beside the plan's other work."""
        if self._side is None:
            self._side = graph.stream()
        return self._side

    def kept(self, key: Any, make: Callable[[], Any]) -> Any:
        """The object kept under this key, made when it is first asked for."""
        if key not in self._kept:
            self._kept[key] = make()
            while len(self._kept) > KEPT:
                self._kept.popitem(last=False)
        self._kept.move_to_end(key)
        return self._kept[key]

    @property
    def bytes(self) -> int:
        return int(sum(b.nbytes for b in self._buffers.values()) + (0 if self.table is None else self.table.nbytes))

    def forward(self, x: Any, aligned: bool, stream: Any, after_first: Callable[[], None] | None = None) -> None:
        """Coefficients of the rows of ``x``, a flat device array; ``after_first`` is called after a launch."""
        s = self.shape
        pitch = s.samples
        for first, levels, smooth in zip(self.firsts, self.fused, self.smooths, strict=True):
            tile = self.options.tile_for(s.dtype)
            kernel = forward(
                s.lo, s.hi, s.filter.periodized, s.dtype, levels, tile, self.options.threads, self.options.fastmath
            )
            n = s.lengths[first]
            tiles = self._cut(forward_tiling, levels).interior(n)
            kernel[grid(tiles + 1, s.rows), self.options.threads, stream](
                x, pitch, aligned, self.details, s.offsets[first], smooth, self.table, first, n, s.rows, tiles
            )
            x, pitch, aligned = smooth, up4(s.lengths[first + levels]), True
            if first == 0 and after_first is not None:
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

    def inverse(self, y: Any, aligned: bool, function: str, thresholds: Any, stream: Any, flag: Any = None) -> None:
        """Rows from the coefficients, shrunk on the way, into the flat device array ``y``."""
        s = self.shape
        targets = [y, *self.smooths]
        for i in reversed(range(len(self.fused))):
            first, levels, n = self.firsts[i], self.fused[i], s.lengths[self.firsts[i]]
            tile = self.options.tile_for(s.dtype)
            kernel = inverse(
                s.rec_lo, s.rec_hi, s.filter.periodized, s.dtype, levels, tile, self.options.threads, function,
                self.options.fastmath,
            )  # fmt: skip
            tiles = self._cut(inverse_tiling, levels).interior(n)
            kernel[grid(tiles + 1, s.rows), self.options.threads, stream](
                self.smooths[i], self.details, s.offsets[first], self.details if thresholds is None else thresholds,
                first, targets[i], n if i == 0 else up4(n), aligned or i > 0, n, s.rows, tiles,
                self.buffer("flag", 1, np.int32) if flag is None else flag,
            )  # fmt: skip


class Plans:
    """Plans ready for use: lent to one caller at a time, kept afterwards up to a number of bytes."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._lock = threading.Lock()
        self._idle: OrderedDict[tuple[Any, ...], list[Plan]] = OrderedDict()

    def borrow(self, shape: Shape, options: Options, user: tuple[int, int]) -> Plan:
        """A plan for this shape that nobody else uses; give it back with `give_back`.

        ``user`` is a thread and a stream: a plan goes back to the same, whose work is in order.
        """
        key = (shape, options, user)
        with self._lock:
            idle = self._idle.get(key)
            if idle:
                return idle.pop()
        plan = Plan(shape, options)
        plan.key = key
        return plan

    def give_back(self, plan: Plan) -> None:
        """Keep the plan for the next caller, dropping those unused for longest beyond the limit."""
        with self._lock:
            self._idle.setdefault(plan.key, []).append(plan)
            self._idle.move_to_end(plan.key)
            kept = sum(p.bytes for plans in self._idle.values() for p in plans)
            while kept > self.limit and self._idle:
                _, plans = self._idle.popitem(last=False)
                kept -= sum(p.bytes for p in plans)
                for p in plans:
                    p.release()

    def lend(self, owner: Any, plan: Plan) -> None:
        """Give the plan back when ``owner`` is no longer used."""
        weakref.finalize(owner, self.give_back, plan).atexit = False

    def clear(self) -> None:
        """Release all plans that are not in use."""
        with self._lock:
            for plan in (p for plans in self._idle.values() for p in plans):
                plan.release()
            self._idle.clear()
