"""Statistics of details in device memory: only medians, mean squares and thresholds leave it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wavefilt.backends.cuda.dwt.plan import Plan, grid
from wavefilt.backends.cuda.dwt.tiling import up4
from wavefilt.backends.cuda.runtime.target import cuda
from wavefilt.statistics.interface import Risk

from . import counting, selection, sorting
from .search_window import BASE, FIELDS, NOT_YET, SHIFT

PASSES = {"float32": 5, "float64": 8}
"""Passes that end every search: one for a sampled window, those from the widest if it missed, one for a next value."""
SETTLES = {"float32": 2, "float64": 5}
"""Passes over a list after which a search from a sampled window has nearly always ended; one more for a next value."""


def key_dtype(dtype: str) -> Any:
    """Integers as wide as the coefficients, to read their bits."""
    return np.dtype(f"int{8 * np.dtype(dtype).itemsize}")


def _reserve(name: str, size: int, dtype: Any) -> Any:
    return cuda.device_array(size, dtype)


class Selection:
    """Middle values and sums of squares of the ``depth`` finest levels: of one plan by trace, or of several pooled.

    ``middle`` (two a segment), ``energy`` and ``amounts`` (coefficients of a group) stay on the device; a segment is a
    level of a group, level by level.
    """

    def __init__(self, plans: Sequence[Plan], depth: int, pooled: bool, reserve: Callable[..., Any] = _reserve) -> None:
        shape = plans[0].shape
        self.plans, self.depth, self.dtype = plans, depth, shape.dtype
        self.groups = 1 if pooled else shape.rows
        self._pooled = len(plans) > 1 or (pooled and shape.rows > 1)  # a group is more than one row
        # levels that take many blocks; those after them take one block a row
        self.big = depth if pooled else sum(n > selection.WHOLE for n in shape.lengths[1 : depth + 1])
        segments, big = max(depth * self.groups, 1), max(self.big * self.groups, 1)
        self.middle = reserve(f"middle {depth}", 2 * segments, shape.dtype)
        self.energy = reserve(f"energy {depth}", segments, np.float64)
        self._partial = [
            reserve(f"partial {depth}", max(self._across(plan) * plan.shape.rows, 1), np.float64) for plan in plans
        ]
        widest = np.zeros((big, FIELDS), np.int64)
        widest[:, SHIFT], widest[:, BASE] = selection.first_shift(shape.dtype), NOT_YET
        self._widest = cuda.to_device(widest.ravel())
        self.state = cuda.to_device(widest.ravel())
        self._counts = cuda.to_device(np.zeros(big * selection.BINS, np.int64))
        self._sizes = cuda.to_device(np.repeat(self.counts[: max(self.big, 1)], self.groups))
        self.amounts = cuda.to_device(self.counts.astype(np.float64))
        ends = np.tile(np.array([0, np.inf], shape.dtype), big)
        self._every = cuda.to_device(ends)  # the ends of the widest window
        self.edges = cuda.to_device(ends)

    @property
    def counts(self) -> NDArray[np.int64]:
        """Coefficients of a group at each level."""
        counts = np.zeros(max(self.depth, 1), np.int64)
        for plan in self.plans:
            lengths = plan.shape.lengths[1 : self.depth + 1]
            counts[: len(lengths)] += np.array(lengths, np.int64) * (1 if self.groups > 1 else plan.shape.rows)
        return counts

    def _chunk(self, plan: Plan) -> int:
        return selection.chunk_for(plan.shape.lengths[1])

    def _across(self, plan: Plan) -> int:
        """Blocks that a row's big levels take."""
        return sum(-(-n // self._chunk(plan)) for n in plan.shape.lengths[1 : self.big + 1])

    @property
    def rides(self) -> bool:
        """Whether the forward transform can search the finest details, the only ones wanted, while it computes them."""
        return self.depth == self.big == 1 and not self._pooled and self.plans[0].searches

    def draw(self, x: Any, stream: Any) -> None:
        """Lay the windows that `Plan.forward` then searches, from the samples themselves."""
        (plan,) = self.plans
        shape, threads = plan.shape, plan.options.select
        drawn = selection.drawn(self.dtype)
        some = plan.buffer("some", drawn * shape.rows)
        kernel = self._kernels(threads)["draw"]
        kernel[grid(-(-drawn // threads), shape.rows), threads, stream](
            x, shape.samples, shape.rows, plan.high_pass, some, some.view(key_dtype(self.dtype)), self.state,
            self.edges.view(key_dtype(self.dtype)),
        )  # fmt: skip

    def settle(self, stream: Any) -> None:
        """Launch what fills ``middle`` from the lists that a pass over all values left."""
        (plan,) = self.plans
        shape, threads, key = plan.shape, plan.options.scan, key_dtype(self.dtype)
        most = selection.listed(shape.lengths[1])
        parts = max(min(-(-most // (4 * threads)), selection.PARTS), 1)
        even = any(n % 2 == 0 for n in self.counts[: self.big])
        for _ in range(SETTLES[self.dtype] + even):
            self._kernels(threads)["settle"][grid(self.big * parts, shape.rows), threads, stream](
                plan.details.view(key), shape.offsets[-1], shape.samples, shape.rows, self.groups, parts,
                self._sizes, self.state, self._counts, self.edges.view(key), self.middle.view(key),
            )  # fmt: skip

    def _kernels(self, threads: int) -> Any:
        f = self.plans[0].shape.filter
        return selection.kernels(self.dtype, f.taps, f.periodized, threads)

    def run(self, median: bool, energy: bool, stream: Any, quick: bool = False) -> None:
        """Launch what fills ``middle`` and ``energy``; ``quick`` leaves it to the caller to see if it was enough."""
        options, shape = self.plans[0].options, self.plans[0].shape
        kernels, key = self._kernels(options.scan), key_dtype(self.dtype)
        middle, edge_keys = self.middle.view(key), self.edges.view(key)
        if self.depth > self.big:
            (plan,) = self.plans
            self._kernels(options.row)["whole"][grid(self.depth - self.big, plan.shape.rows), options.row, stream](
                plan.details.view(key), plan.details, 0, plan.shape.samples, plan.shape.rows, self.big, median, energy,
                middle, self.energy,
            )  # fmt: skip
        if not self.big:
            return
        listing = median and quick and not self._pooled
        if median and self._pooled:
            self.state.copy_to_device(self._widest, stream=stream)
            self.edges.copy_to_device(self._every, stream=stream)
        elif median:
            (plan,) = self.plans
            self._kernels(options.select)["sample"][grid(self.big, shape.rows), options.select, stream](
                plan.details.view(key), 0, shape.samples, shape.rows, self.state, edge_keys
            )
        for step in range(PASSES[self.dtype] if median and not listing else 1):
            for plan, partial in zip(self.plans, self._partial, strict=True):
                if across := self._across(plan):
                    kernels["scan"][grid(across, plan.shape.rows), options.scan, stream](
                        plan.details, plan.details.view(key), 0, plan.shape.offsets[-1], plan.shape.samples,
                        plan.shape.rows, self.groups, self._chunk(plan), self._pooled, listing, median,
                        energy and step == 0, self._sizes, self.state, self._counts, self.edges, edge_keys,
                        middle, partial,
                    )  # fmt: skip
            if median and self._pooled:
                kernels["narrow"][self.big * self.groups, options.scan, stream](
                    self._sizes, self.state, self._counts, edge_keys, middle
                )
        if listing:
            self.settle(stream)
        if energy:
            for again, (plan, partial) in enumerate(zip(self.plans, self._partial, strict=True)):
                if levels := min(self.big, plan.shape.level):
                    kernels["gather"][levels * self.groups, options.scan, stream](
                        partial, plan.shape.samples, plan.shape.rows, self.groups, self._across(plan),
                        self._chunk(plan), again > 0, self.energy,
                    )  # fmt: skip


class CudaStatistics:
    """`Statistics` of pyramids on the device, measured when they are asked for."""

    def __init__(self, plans: Sequence[Plan], pooled: bool, stream: Any, owners: Any) -> None:
        self._plans, self._pooled, self._stream = plans, pooled, stream
        self._owners = owners  # keeps the pyramids, and so their plans, in use
        self._depth = max(plan.shape.level for plan in plans)

    @property
    def counts(self) -> NDArray[np.int64]:
        plans = self._plans if self._pooled else self._plans[:1]
        return np.array(
            [
                sum(p.shape.lengths[i] * (p.shape.rows if self._pooled else 1) for p in plans if p.shape.level >= i)
                for i in range(1, self._depth + 1)
            ],
            np.int64,
        )

    @property
    def groups(self) -> int:
        return 1 if self._pooled else self._plans[0].shape.rows

    def median_abs(self, levels: Sequence[int]) -> NDArray[np.float64]:
        depth = max(levels)
        plans = sorted(self._plans, key=lambda plan: -plan.shape.level)
        found = Selection(plans, depth, self._pooled)
        found.run(True, False, self._stream)
        middle = found.middle.copy_to_host(stream=self._stream)
        self._stream.synchronize()
        medians = middle.reshape(depth, self.groups, 2).mean(axis=-1, dtype=np.float64)
        return np.asarray(medians[np.array(levels) - 1])

    def mean_square(self) -> NDArray[np.float64]:
        plans = sorted(self._plans, key=lambda plan: -plan.shape.level)
        found = Selection(plans, self._depth, self._pooled)
        found.run(False, True, self._stream)
        energy = found.energy.copy_to_host(stream=self._stream)
        self._stream.synchronize()
        return np.asarray(energy.reshape(self._depth, self.groups) / self.counts[:, None])

    def exceeding(self, thresholds: NDArray[np.float64]) -> NDArray[np.int64]:
        return np.array([self._counted(i, "exceeding", own, 1)[:, 0] for i, own in enumerate(thresholds, 1)])

    def histogram(self, level: int, widths: NDArray[np.float64], bins: int) -> NDArray[np.int64]:
        scales = np.divide(1, widths, out=np.zeros_like(widths), where=widths > 0)
        return self._counted(level, "histogram", scales, bins)

    def _counted(self, level: int, name: str, numbers: NDArray[np.float64], bins: int) -> NDArray[np.int64]:
        """Counts (groups, bins) of the level's details, by the kernel of this name."""
        counts = counting.zeros(self.groups * bins)
        on_device = cuda.to_device(np.ascontiguousarray(numbers, np.float64), stream=self._stream)
        for plan in self._plans:
            s, threads = plan.shape, plan.options.threads
            if s.level >= level:
                n = s.lengths[level]
                getattr(counting.kernels(s.dtype, threads, bins), name)[
                    grid(counting.blocks(n, threads), s.rows), threads, self._stream
                ](plan.details, s.offsets[level - 1], up4(n), n, s.rows, on_device, int(not self._pooled), counts)
        found = counts.copy_to_host(stream=self._stream)
        self._stream.synchronize()
        return np.asarray(found.reshape(self.groups, bins))

    def minimise(self, risk: Risk, sigma: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.array([self._least(level, risk, row) for level, row in enumerate(sigma, 1)])

    def _least(self, level: int, risk: Risk, sigma: NDArray[np.float64]) -> NDArray[np.float64]:
        """`minimise` for one level: sort the level's |d|, then evaluate the risk at every one."""
        plans = [plan for plan in self._plans if plan.shape.level >= level]
        shape, options = plans[0].shape, plans[0].options
        threads, span, stream = options.threads, max(sorting.SPAN, options.threads), self._stream
        kernels = sorting.kernels(shape.dtype, threads, span)
        count, groups = int(self.counts[level - 1]), self.groups
        size = max(1 << (count - 1).bit_length(), span)
        values = cuda.device_array(groups * size, shape.dtype)
        keys = values.view(key_dtype(shape.dtype))
        filled = 0
        for plan in plans:
            s, n = plan.shape, plan.shape.lengths[level]
            blocks = min(-(-n // (4 * threads)), 1024)
            kernels["pack"][grid(blocks, s.rows), threads, stream](
                plan.details.view(keys.dtype), s.offsets[level - 1], up4(n), n, s.rows, keys, size, filled,
                not self._pooled,
            )  # fmt: skip
            filled += n * s.rows
        kernels["pad"][grid(64, groups), threads, stream](keys, size, count, groups)
        spans = size // span
        kernels["near"][groups * spans, threads, stream](keys, size, span)
        k = 2 * span
        while k <= size:
            j = k // 2
            while j >= span:
                pairs = groups * size // 2
                kernels["far"][-(-pairs // threads), threads, stream](keys, size, k, j, pairs)
                j //= 2
            kernels["near"][groups * spans, threads, stream](keys, size, k)
            k *= 2
        scale = cuda.to_device(np.ascontiguousarray(sigma, np.float64), stream=stream)
        parts, risks = cuda.device_array(groups * spans, np.float64), cuda.device_array(groups * spans, np.float64)
        places, best = cuda.device_array(groups * spans, np.int64), cuda.device_array(groups, np.float64)
        kernels["sums"][groups * spans, threads, stream](values, size, count, scale, parts)
        kernels["accumulate"][-(-groups // threads), threads, stream](parts, spans, groups)
        sorting.evaluate(risk, threads, span)[groups * spans, threads, stream](
            values, size, count, scale, parts, risks, places
        )
        kernels["pick"][-(-groups // threads), threads, stream](risks, places, values, size, spans, scale, groups, best)
        found = best.copy_to_host(stream=stream)
        stream.synchronize()
        return np.asarray(found)
