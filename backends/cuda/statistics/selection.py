"""Exact medians of |d| and sums of d² of every band and trace: which of the `search_kernels` are launched."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wavefilt.backends.cuda.dwt.tiling import grid
from wavefilt.backends.cuda.options import KernelOptions
from wavefilt.backends.cuda.runtime.interfaces import Stream
from wavefilt.backends.cuda.runtime.target import cuda

from . import search_kernels as kernels
from .block_search import BASE, BINS, FIELDS, NOT_YET, SHIFT, first_shift
from .layout import MEDIAN, DetailLayout, amounts, key_dtype
from .search_kernels import How, Samples, Search

SAMPLERS = 528  # blocks that draw all samples, where their values suffice: four an H200's multiprocessor
BLOCKS = 330  # for the finest level of an H200: about five a multiprocessor for all levels
PARTS = 66  # blocks for a list: fewer read too slowly, more of all bands add too many counts
PASSES = {"float32": 5, "float64": 8}
"""Passes that end every search: one for a sampled window, those from the widest if it missed, one for a next value."""
CLOSE = 4096  # most values in the last window, four times the expected number


def drawn(dtype: str, n: int, options: KernelOptions) -> int:
    """Return the values in a sample of n: enough for few values in the window, and in the bin that holds the median."""
    values = options.sample // np.dtype(dtype).itemsize
    while listed(n, values) // (BINS // 2) > CLOSE // 4:
        values *= 4
    return values


def samplers(segments: int, drawn: int, threads: int) -> int:
    """Return the blocks that draw the sample of each segment."""
    return max(min(drawn // threads, SAMPLERS // segments), 1)


def listed(n: int, drawn: int) -> int:
    """Return about how many of n values lie in the window of a sample."""
    return int(4.5 * n / drawn**0.5)


def chunk_for(n: int, chunk: int) -> int:
    """Return the coefficients that a block reads of rows whose finest band has n: more where there were many blocks."""
    return max(chunk, -(-n // (BLOCKS * chunk)) * chunk)


class Selection:
    """Middle values and sums of squares of the ``depth`` finest bands: of one layout by trace, or of several pooled.

    Another quantile than the median has another ``share`` of values below it. ``middle`` (two a segment), ``energy``
    and ``amounts`` (coefficients of a group) stay on the device; a segment is a band of a group, band by band. Layouts
    with more bands come first.
    """

    def __init__(
        self, layouts: Sequence[DetailLayout], options: KernelOptions, depth: int, pooled: bool, share: float = MEDIAN
    ) -> None:
        first = layouts[0]
        self.layouts, self.options, self.depth, self._share = layouts, options, depth, share
        self.build, key = options.build(first.array.dtype.name), key_dtype(first.array.dtype)
        self.groups = 1 if pooled else first.rows
        self._pooled = len(layouts) > 1 or (pooled and first.rows > 1)  # a group is more than one row
        self._counts = amounts(layouts, max(depth, 1), pooled)
        # bands that take many blocks; those after them take one block a row
        self.big = depth if pooled else sum(band.length > options.whole for band in first.bands[:depth])
        segments, big = max(depth * self.groups, 1), max(self.big * self.groups, 1)
        self.middle = cuda.device_array(2 * segments, first.array.dtype)
        self.energy = cuda.device_array(segments, np.float64)
        blocks = max(self._across(layout, 0, self.big) * layout.rows for layout in layouts)
        self._partial = cuda.device_array(max(blocks, 1), np.float64)
        widest = np.zeros((big, FIELDS), np.int64)
        widest[:, SHIFT], widest[:, BASE] = first_shift(first.array.dtype.itemsize), NOT_YET
        self._widest = cuda.to_device(widest.ravel())
        ends = np.tile(np.array([0, np.inf], first.array.dtype), big)
        self._every, edges = cuda.to_device(ends), cuda.to_device(ends)  # the ends of the widest window, and of others
        self.search = Search(
            cuda.to_device(np.repeat(self._counts[: max(self.big, 1)], self.groups)),
            cuda.to_device(widest.ravel()),
            cuda.to_device(np.zeros(big * BINS, np.int64)),
            edges,
            edges.view(key),
            self.middle.view(key),
        )
        self.amounts = cuda.to_device(self._counts.astype(np.float64))
        self._drawn = drawn(self.build.dtype, first.bands[0].length, options) if first.bands else 0
        room = max(CLOSE, self._drawn)  # of samples, later of the values of the last windows
        self._samples = Samples(
            cuda.device_array(room * big, key), room, cuda.to_device(np.zeros(big * BINS, np.int64))
        )
        self._events = [cuda.event() for _ in range(2)]
        held = self.middle, self.energy, self._partial, self._widest, self._every, *self.search[:4]
        self.bytes = sum(int(array.nbytes) for array in (*held, self._samples.keys, self._samples.coarse))

    @property
    def mixed(self) -> bool:
        """Whether there are bands of many coefficients and of few, or without lists, measured beside each other."""
        return 0 < self.big < self.depth or 0 < self.layouts[0].listed < self.big

    def run(self, medians: int, energy: bool, stream: Stream, quick: bool = False, side: Stream | None = None) -> None:
        """Launch what fills ``middle`` of the ``medians`` finest bands and, if wanted, ``energy`` of all.

        ``quick`` is to make passes that nearly always end a search, of the bands that have room for lists. Bands of few
        coefficients or without lists are measured beside the others on another stream.
        """
        layout, rest = self.layouts[0], (self.depth if energy else medians) - self.big
        beside = stream if side is None else side
        searched = min(medians, self.big)
        listing = searched > 0 and quick and not self._pooled and (searched <= layout.listed or not energy)
        listed = min(searched, layout.listed) if listing else searched
        if apart := rest > 0 or listed < searched:
            if beside is not stream:
                self._events[0].record(stream)
                self._events[0].wait(beside)
            if rest > 0:
                self._whole(self.big, rest, medians, energy, beside)
            if listed < searched:
                self._passes(listed, searched, 0, False, beside)
            if beside is not stream:
                self._events[1].record(beside)
        self._passes(0, listed, self.big if energy else 0, listing, stream)
        if listing:
            self._finish(listed, stream)
        if apart and beside is not stream:
            self._events[1].wait(stream)

    def _whole(self, first: int, bands: int, medians: int, energy: bool, stream: Stream) -> None:
        """Launch a block for each row of some bands."""
        layout = self.layouts[0]
        build = self.build._replace(threads=self.options.row_threads(self.depth * layout.rows))
        launch = kernels.whole(build, self._share)[grid(bands, layout.rows), build.threads, stream]
        launch(layout.where, first, medians, energy, self.search.middle, self.energy)

    def _passes(self, first: int, last: int, summed: int, listing: bool, stream: Stream) -> None:
        """Launch one pass that lists values over the big bands from ``first`` to ``last``, or all passes.

        The first pass sums squares of the ``summed`` finest bands as well, for which ``first`` is 0.
        """
        searched = last - first
        if searched and self._pooled:
            self.search.state.copy_to_device(self._widest, stream=stream)
            self.search.edges.copy_to_device(self._every, stream=stream)
        elif searched:
            self._sample(first, last, stream)
        for step in range(PASSES[self.build.dtype] if searched and not listing else 1):
            self._scan(first, last, 0 if step else summed, listing, stream)

    def _sample(self, first: int, last: int, stream: Stream) -> None:
        """Launch what lays the windows of the bands from ``first`` to ``last``, by samples of them."""
        layout, build = self.layouts[0], self.build._replace(threads=self.options.select)
        parts = samplers((last - first) * layout.rows, self._drawn, build.threads)
        launch = kernels.sample(build, self._drawn, self._share)[
            grid((last - first) * parts, layout.rows), build.threads, stream
        ]
        launch(layout.where, first, parts, self._samples, self.search)

    def _across(self, layout: DetailLayout, first: int, last: int) -> int:
        """Blocks that the bands between two take of a row."""
        if not layout.bands[first:last]:
            return 0
        chunk = chunk_for(layout.bands[first].length, self.options.chunk)
        return sum(-(-band.length // chunk) for band in layout.bands[first:last])

    def _scan(self, first: int, last: int, summed: int, listing: bool, stream: Stream) -> None:
        """One pass of `_passes`."""
        build = self.build._replace(threads=self.options.scan)
        scan = kernels.scan(build, self.options.stage, self._share)
        counts = [*map(len, self.layouts[1:]), 0]  # of bands in the next launch
        for i, (layout, later) in enumerate(zip(self.layouts, counts, strict=True)):
            if across := self._across(layout, first, max(last, summed)):
                how = How(first, last, summed > 0, listing, later, i > 0)
                chunk = chunk_for(layout.bands[first].length, self.options.chunk)
                launch = scan[grid(across, layout.rows), build.threads, stream]
                launch(layout.where, self.groups, chunk, how, self.search, self._partial, self.energy)

    def _finish(self, bands: int, stream: Stream) -> None:
        """Launch what fills ``middle`` of the finest bands from the lists of their first window.

        The few searches that do not end here are repeated, each by one block; their state is marked.
        """
        (layout,), build = self.layouts, self.build._replace(threads=self.options.select)
        parts = max(min(-(-listed(layout.bands[0].length, self._drawn) // (4 * build.threads)), PARTS), 1)
        launch = kernels.finish(build, CLOSE, self._share)[grid(bands * parts, layout.rows), build.threads, stream]
        launch(layout.where, parts, self.search, self._samples.keys)
