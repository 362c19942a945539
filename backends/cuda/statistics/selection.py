"""Exact medians of |d| and sums of d² of every band and trace, by radix histograms with integer counts.

A window of bins (`search_window`) is laid where the middle value may be, values are counted by bin, and the bin that
holds the wanted rank is the next window, until bins are single values. Counts are integers and sums have a fixed order,
so results do not depend on scheduling.

The first window is laid around the middle of a sample (`sampling`). The values in it, 5 % of all, are listed by the
one pass over all values (`scanning.scan`, or the forward transform), which counts them in their bins as well.
`lists.settle` makes passes over a very long list, until few values are in the window, of which `lists.finish` takes the
middle.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from wavefilt.backends.cuda.dwt.tiling import grid
from wavefilt.backends.cuda.options import KernelOptions
from wavefilt.backends.cuda.runtime.interfaces import DeviceArray, Stream
from wavefilt.backends.cuda.runtime.target import cuda

from . import lists, sampling, scanning, short_rows
from .layout import PLACES, DetailLayout, amounts, key_dtype
from .search_window import BASE, BINS, FIELDS, MEDIAN, NOT_YET, SHIFT, first_shift

CHUNK = 1 << 13  # coefficients a block reads
WHOLE = 36 << 10  # a row's band of at most this many is finished by one block
SAMPLE = 1 << 15  # bytes, so that a block has room for them
DRAWN_AHEAD = 1 << 15, 1 << 20
"""Values in the sample that is drawn ahead of a forward transform, and the least that it is drawn from."""
SAMPLERS = 528  # blocks that draw all samples, where their values suffice: four an H200's multiprocessor
BLOCKS = 330  # for the finest level of an H200: about five a multiprocessor for all levels
STAGE = 3072  # values listed at a time
PARTS = 66  # blocks for a list: fewer read too slowly, more of all bands add too many counts
PASSES = {"float32": 5, "float64": 8}
"""Passes that end every search: one for a sampled window, those from the widest if it missed, one for a next value."""
CLOSE = 4096  # values in the last window at most, twice those that are expected


def drawn(dtype: str) -> int:
    """Values in a sample."""
    return SAMPLE // np.dtype(dtype).itemsize


def drawn_ahead(dtype: str, n: int) -> int:
    """`drawn` of n values that are not computed yet."""
    most, least = DRAWN_AHEAD
    return most if n >= least else drawn(dtype)


def samplers(segments: int, drawn: int, threads: int) -> int:
    """Blocks that draw the sample of each segment."""
    return max(min(drawn // threads, SAMPLERS // segments), 1)


def listed(n: int, drawn: int) -> int:
    """About how many of n values lie in the window of a sample."""
    return int(4.5 * n / drawn**0.5)


def chunk_for(n: int) -> int:
    """Coefficients a block reads of rows whose finest band has n: 2^14, more where that makes too many blocks."""
    return max(CHUNK, -(-n // (BLOCKS * CHUNK)) * CHUNK)


def _across(layout: DetailLayout, first: int, last: int) -> int:
    """Blocks that the bands between two take of a row."""
    chunk = chunk_for(layout.bands[first].length)
    return sum(-(-band.length // chunk) for band in layout.bands[first:last])


def _tail(array: DeviceArray, begin: int) -> DeviceArray:
    return array[begin:] if begin else array  # a view takes longer than a launch


class Selection:
    """Middle values and sums of squares of the ``depth`` finest bands: of one layout by trace, or of several pooled.

    Another quantile than the median has another ``share`` of values below it.
    ``middle`` (two a segment), ``energy`` and ``amounts`` (coefficients of a group) stay on the device; a segment is a
    band of a group, band by band. Layouts with more bands come first.
    """

    def __init__(
        self, layouts: Sequence[DetailLayout], options: KernelOptions, depth: int, pooled: bool, share: float = MEDIAN
    ) -> None:
        self._share = share
        first = layouts[0]
        self.layouts, self.options, self.depth, self.dtype = layouts, options, depth, first.array.dtype.name
        self.groups = 1 if pooled else first.rows
        self._pooled = len(layouts) > 1 or (pooled and first.rows > 1)  # a group is more than one row
        self._counts = amounts(layouts, max(depth, 1), pooled)
        # bands that take many blocks; those after them take one block a row
        self.big = depth if pooled else sum(band.length > WHOLE for band in first.bands[:depth])
        segments, big = max(depth * self.groups, 1), max(self.big * self.groups, 1)
        self.middle = cuda.device_array(2 * segments, self.dtype)
        self.energy = cuda.device_array(segments, np.float64)
        sizes = [max(_across(layout, 0, self.big) * layout.rows, 1) for layout in layouts]
        self._partial = [cuda.device_array(size, np.float64) for size in sizes]
        widest = np.zeros((big, FIELDS), np.int64)
        widest[:, SHIFT], widest[:, BASE] = first_shift(first.array.dtype.itemsize), NOT_YET
        self._widest = cuda.to_device(widest.ravel())
        self.state = cuda.to_device(widest.ravel())
        sizes_of = cuda.to_device(np.repeat(self._counts[: max(self.big, 1)], self.groups))
        self._search_arrays = sizes_of, self.state, cuda.to_device(np.zeros(big * BINS, np.int64))
        self.amounts = cuda.to_device(self._counts.astype(np.float64))
        ends = np.tile(np.array([0, np.inf], self.dtype), big)
        self._every = cuda.to_device(ends)  # the ends of the widest window
        self.edges = cuda.to_device(ends)
        key = key_dtype(self.dtype)
        self._edge_keys, self._middle_keys = self.edges.view(key), self.middle.view(key)
        self.on_the_way = *self._search_arrays[1:], self.edges
        """The states, bins and windows with which a forward transform takes part."""
        ahead = self.beside_forward
        self._drawing = drawn_ahead(self.dtype, first.bands[0].length) if ahead else drawn(self.dtype)
        self._room = max(CLOSE, self._drawing)
        self._drawn = cuda.device_array(self._room * big, key)  # samples, later the values of the last windows
        self._coarse = cuda.to_device(np.zeros(big * BINS, np.int64))
        self._events = [cuda.event() for _ in range(2)]
        arrays = (
            self.middle,
            self.energy,
            *self._partial,
            self._widest,
            *self._search_arrays,
            self._every,
            self.edges,
            self._drawn,
            self._coarse,
        )
        self.bytes = sum(int(array.nbytes) for array in arrays)

    @property
    def mixed(self) -> bool:
        """Whether there are bands of many coefficients and of few, or without lists, measured beside each other."""
        return 0 < self.big < self.depth or 0 < self.layouts[0].listed < self.big

    @property
    def beside_forward(self) -> bool:
        """Whether a forward transform can search the finest details, the only ones wanted, while it computes them."""
        return self.depth == self.big == 1 and not self._pooled

    def draw(self, x: DeviceArray, samples: int, high_pass: DeviceArray, stream: Stream) -> None:
        """Lay the windows that a forward transform then searches, from the rows of ``samples`` in ``x`` themselves."""
        (layout,), threads, size = self.layouts, self.options.select, self._drawing
        _, state, counts = self._search_arrays
        draw = sampling.draw(self.dtype, len(high_pass), size, threads)
        launch = draw[grid(samplers(layout.rows, size, threads), layout.rows), threads, stream]
        launch(x, samples, layout.rows, high_pass, self._drawn, state, counts, self._coarse, self._edge_keys)

    def settle(self, stream: Stream) -> None:
        """Launch what fills ``middle`` of the finest band after a forward transform has counted and listed on its way.

        As `_end`; so are searches whose list is too long.
        """
        self._end(1, self._drawing, stream, narrowed=False)

    def _end(self, bands: int, drawn: int, stream: Stream, narrowed: bool = True) -> None:
        """Launch what fills ``middle`` of the finest bands from their lists, by windows of ``drawn`` that are narrowed.

        The few searches that this does not end are made anew, each by one block; their state tells which.
        """
        (layout,), threads = self.layouts, self.options.select
        inside = listed(layout.bands[0].length, drawn)
        parts = max(min(-(-inside // (4 * threads)), PARTS), 1)
        where = grid(bands * parts, layout.rows), threads, stream
        inside //= BINS // 2  # the bins of a window that are used, at least
        if inside > CLOSE // 2 and not narrowed:
            self._narrow(bands * self.groups, (*self._search_arrays, self._edge_keys, self._middle_keys), stream)
            narrowed = True
        while inside > CLOSE // 2:
            launch = lists.settle(self.dtype, threads, self._share)[where]
            launch(*layout.arguments[1:], self.groups, parts, *self._search_arrays, self._edge_keys, self._middle_keys)
            inside //= BINS // 2
        finish = lists.finish(self.dtype, threads, CLOSE, self._share)[where]
        _, state, counts = self._search_arrays
        finish(*layout.arguments[1:], parts, state, counts, not narrowed, self._drawn, self._middle_keys)

    def _narrow(self, segments: int, search: tuple[DeviceArray, ...], stream: Stream) -> None:
        """Launch a block for each segment that narrows its window by what was counted."""
        threads, pitch = self.options.scan, self.layouts[0].bands[0].pitch
        scanning.narrow(self.dtype, threads, self._share)[segments, threads, stream](*search, pitch)

    def _whole(self, first: int, bands: int, medians: int, energy: bool, stream: Stream) -> None:
        """Launch a block for each row of some bands."""
        layout = self.layouts[0]
        threads = self.options.row_threads(self.depth * layout.rows)
        room = short_rows.room_for(max(band.length for band in layout.bands[first : first + bands]))
        kernel = short_rows.whole(self.dtype, threads, room, share=self._share)
        launch = kernel[grid(bands, layout.rows), threads, stream]
        launch(*layout.arguments, first, medians, energy, self._middle_keys, self.energy)

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
                self._search(listed, searched, 0, False, beside)
            if beside is not stream:
                self._events[1].record(beside)
        self._search(0, listed, self.big if energy else 0, listing, stream)
        if listing:
            self._end(listed, drawn(self.dtype), stream)
        if energy and not (listing and searched == self.big):
            self._gather(stream)
        if apart and beside is not stream:
            self._events[1].wait(stream)

    def _search(self, first: int, last: int, summed: int, listing: bool, stream: Stream) -> None:
        """Launch one pass that lists values over the big bands from ``first`` to ``last``, or all passes.

        The first pass sums squares of the ``summed`` finest bands as well, for which ``first`` is 0.
        """
        searched = last - first
        if searched and self._pooled:
            self.state.copy_to_device(self._widest, stream=stream)
            self.edges.copy_to_device(self._every, stream=stream)
        elif searched:
            self._sample(first, last, stream)
        for step in range(PASSES[self.dtype] if searched and not listing else 1):
            self._scan(first, last, 0 if step else summed, listing, stream)

    def _sample(self, first: int, last: int, stream: Stream) -> None:
        """Launch what lays the windows of the bands from ``first`` to ``last``, by samples of them."""
        layout, threads, size, i = self.layouts[0], self.options.select, drawn(self.dtype), first * self.groups
        parts = samplers((last - first) * layout.rows, size, threads)
        where = layout.keys, _tail(layout.table, first * PLACES), layout.rows, parts
        room = _tail(self._drawn, i * self._room), self._room
        (_, state, counts), (_, edge_keys, _) = self._from(first)
        sample = sampling.sample(self.dtype, size, threads, self._share)
        launch = sample[grid((last - first) * parts, layout.rows), threads, stream]
        launch(*where, *room, state, counts, _tail(self._coarse, i * BINS), edge_keys)

    def _from(self, first: int) -> tuple[tuple[DeviceArray, ...], tuple[DeviceArray, ...]]:
        """What a search has of the segments from those of a band on."""
        i, (sizes, state, counts) = first * self.groups, self._search_arrays
        ends = self.edges, self._edge_keys, self._middle_keys
        own = _tail(sizes, i), _tail(state, i * FIELDS), _tail(counts, i * BINS)
        return own, tuple(_tail(array, 2 * i) for array in ends)

    def _scan(self, first: int, last: int, summed: int, listing: bool, stream: Stream) -> None:
        """One pass of `_search`."""
        threads, searched = self.options.scan, last - first
        scan = scanning.scan(self.dtype, STAGE, threads, self._share)
        how = searched, summed > 0, listing, self._pooled
        search, ends = self._from(first)
        for layout, partial in zip(self.layouts, self._partial, strict=True):
            if across := _across(layout, first, max(last, summed)):
                array, keys, table, lists_at, rows = layout.arguments
                where = array, keys, _tail(table, first * PLACES), lists_at, rows, self.groups
                chunk = chunk_for(layout.bands[first].length)
                launch = scan[grid(across, rows), threads, stream]
                launch(*where, chunk, how, *search, *ends, partial, self.energy)
        if searched and self._pooled:
            self._narrow(searched * self.groups, (*search, *ends[1:]), stream)

    def _gather(self, stream: Stream) -> None:
        """Launch what fills ``energy`` of the big bands."""
        threads = self.options.scan
        for again, (layout, partial) in enumerate(zip(self.layouts, self._partial, strict=True)):
            if bands := min(self.big, len(layout)):
                across, chunk = _across(layout, 0, self.big), chunk_for(layout.bands[0].length)
                scanning.gather(threads)[bands * self.groups, threads, stream](
                    partial, layout.table, layout.rows, self.groups, across, chunk, again > 0, self.energy
                )
