"""The passes of a search over all values, with sums of squares on the way."""

from __future__ import annotations

from functools import cache

import numpy as np

from wavefilt.backends.cuda.dwt.tiling import ROWS
from wavefilt.backends.cuda.runtime.compiler import kernel
from wavefilt.backends.cuda.runtime.interfaces import DeviceFunction, Kernel
from wavefilt.backends.cuda.runtime.target import cuda, device
from wavefilt.backends.cuda.runtime.wide import bin_of, compare, load4, lowest

from . import search_window as window
from .layout import LENGTH, OFFSET, PITCH, PLACES
from .search_window import BINS, WORKSPACE


@device
def squares(a, b):
    return np.float64(a) * np.float64(a) + np.float64(b) * np.float64(b)


@cache
def measuring(dtype: str, threads: int) -> DeviceFunction:
    """Device function: this thread's sum of the squares from ``first`` to ``last``."""
    number = np.dtype(dtype).type

    @device
    def measure(coefficients, source, first, last):
        thread, square = cuda.threadIdx.x, 0.0
        for v in range(first // 4 + thread, last // 4, threads):
            d0, d1, d2, d3 = load4(coefficients, source + 4 * v)
            square += squares(d0, d1) + squares(d2, d3)
        for i in range(last // 4 * 4 + thread, last, threads):
            square += squares(coefficients[source + i], number(0))
        return square

    return measure


@cache
def comparing(dtype: str, threads: int, whole: bool) -> DeviceFunction:
    """Device function: of this thread's 32 values, the sum of squares, how many lie below the window, and which inside.

    ``whole`` if all values are there, else they end at ``last``.
    """
    number, nothing = np.dtype(dtype).type, np.dtype(dtype).type(np.nan)  # neither below a window nor inside

    @device
    def compare_all(coefficients, source, start, last, bottom, top, with_energy, square, smaller):
        inside, at = np.uint32(0), source + start + 4 * cuda.threadIdx.x
        for _ in range(2):  # four loads under way at once
            p = load4(coefficients, at)
            q = load4(coefficients, at + 4 * threads)
            r = load4(coefficients, at + 8 * threads)
            s = load4(coefficients, at + 12 * threads)
            if with_energy:
                square += squares(p[0], p[1]) + squares(p[2], p[3]) + squares(q[0], q[1]) + squares(q[2], q[3])
                square += squares(r[0], r[1]) + squares(r[2], r[3]) + squares(s[0], s[1]) + squares(s[2], s[3])
            below, marks = compare(p + q + r + s, bottom, top)
            smaller += below
            inside = np.uint32(inside >> 16 | marks << 16)
            at += 16 * threads
        return square, smaller, inside

    @device
    def compare_last(coefficients, source, start, last, bottom, top, with_energy, square, smaller):
        inside, at = np.uint32(0), start + 4 * cuda.threadIdx.x
        for j in range(8):
            if at >= last:
                break
            d = nothing, nothing, nothing, nothing
            if at + 4 <= last:
                d = load4(coefficients, source + at)
                if with_energy:
                    square += squares(d[0], d[1]) + squares(d[2], d[3])
            else:
                d0, d1, d2 = coefficients[source + at], nothing, nothing
                if at + 1 < last:
                    d1 = coefficients[source + at + 1]
                if at + 2 < last:
                    d2 = coefficients[source + at + 2]
                if with_energy:
                    square += squares(d0, number(0))
                    if at + 1 < last:
                        square += squares(d1, number(0))
                    if at + 2 < last:
                        square += squares(d2, number(0))
                d = d0, d1, d2, nothing
            below, marks = compare(d, bottom, top)
            smaller += below
            inside = np.uint32(inside | marks << 4 * j)
            at += 4 * threads
        return square, smaller, inside

    return compare_all if whole else compare_last


@cache
def _listing(dtype: str, threads: int, stage: int) -> tuple[DeviceFunction, DeviceFunction]:
    """Device functions: ``take`` what a thread has marked, and ``deliver`` what the block has staged.

    Staged keys are counted and listed by all threads together: few threads have more than one at a time.
    """
    mask = window.magnitudes(np.dtype(dtype).itemsize)

    @device
    def take(keys, at, marks, listing, low, shift, staged, histogram, tally):
        """Stage the keys marked, or count them where the stage has no room; how many are staged then."""
        place = np.int32(stage)
        if listing:  # every thread, so that a warp adds up before one atomic
            place = np.int32(cuda.atomic.add(tally, 1, np.int32(cuda.popc(marks))))
        while marks != 0:
            i = lowest(marks)
            marks = np.uint32(marks & (marks - 1))
            k = keys[np.uint64(at + (i >> 2) * 4 * threads + (i & 3))]
            if place < stage:
                staged[np.uint32(place)] = k & mask
            else:
                cuda.atomic.add(histogram, bin_of(k, low, shift), 1)
            place = np.int32(place + 1)
        return place

    @device
    def deliver(keys, target_list, longest, low, shift, staged, histogram, state, field, tally, place_in_list):
        """After a barrier: count the staged keys, and put them into the segment's list; then nothing is staged."""
        size, target = np.int64(tally[1]), np.int64(0)
        if cuda.threadIdx.x == 0:
            # a full stage makes the list too long to be valid
            target = cuda.atomic.add(state, field + window.LISTED, size if size <= stage else longest + 1)
        i = np.int64(cuda.threadIdx.x)
        while i < size and i < stage:
            cuda.atomic.add(histogram, bin_of(staged[np.uint64(i)], low, shift), 1)
            i += threads
        if cuda.threadIdx.x == 0:
            place_in_list[0] = target
        cuda.syncthreads()
        target = place_in_list[0]
        if cuda.threadIdx.x == 0:
            tally[1] = 0
        if size <= stage and target + size <= longest:
            i = np.int64(cuda.threadIdx.x)
            while i < size:
                keys[np.uint64(target_list + target + i)] = staged[np.uint64(i)]
                i += threads
        cuda.syncthreads()

    return take, deliver


@device
def _segment(bands, chunk, part):
    """The band that a part of a row belongs to, how many parts it has, and which of them this is."""
    band = 0
    parts = (bands[LENGTH] + chunk - 1) // chunk
    while part >= parts:
        part -= parts
        band += 1
        parts = (bands[band * PLACES + LENGTH] + chunk - 1) // chunk
    return band, parts, part


@cache
def scan(dtype: str, stage: int, threads: int, share: float = window.MEDIAN) -> Kernel:
    """Kernel of one pass: values of every segment by bin of its window, values below, and if wanted sums of squares.

    ``medians`` finest bands are searched. ``listing`` the values in the window as well, behind the details, from
    ``ends``. The last block of a segment lays the next window, and when ``listing`` sums the squares of all.
    """
    key = np.dtype(f"i{np.dtype(dtype).itemsize}").type
    total, (clear, add, _, _) = window.summing(threads), window.histogram(threads)
    measure, next_above = measuring(dtype, threads), window.next_value(dtype, threads)
    take, deliver = _listing(dtype, threads, stage)
    compare_all, compare_last = comparing(dtype, threads, True), comparing(dtype, threads, False)
    narrower = window.narrowing(dtype, threads, share)

    @kernel(dtype, stage, threads, share, registers=48 if dtype == "float32" else None, since=(9, 0))
    def scan(
        details,
        keys,
        bands,
        ends,
        rows,
        groups,
        chunk,
        how,
        sizes,
        state,
        counts,
        edges,
        edge_keys,
        middle,
        partial,
        energy,
    ):
        medians, with_energy, listing, pooled = how
        histogram = cuda.shared.array(BINS, np.int32)
        workspace = cuda.shared.array(WORKSPACE, np.int64)
        staged = cuda.shared.array(stage, key)
        sums = cuda.shared.array(threads, np.float64)
        least = cuda.shared.array(1, key)
        tally = cuda.shared.array(3, np.int32)  # values below, values staged, whether this block is the last
        place_in_list = cuda.shared.array(1, np.int64)
        thread = cuda.threadIdx.x
        row = cuda.blockIdx.y + ROWS * cuda.blockIdx.z
        if row >= rows:
            return
        # backwards: what was written last is still in the cache
        band, parts, part = _segment(bands, chunk, cuda.gridDim.x - 1 - cuda.blockIdx.x)
        n, pitch = bands[band * PLACES + LENGTH], bands[band * PLACES + PITCH]
        source = bands[band * PLACES + OFFSET] + row * pitch
        segment = band * groups + (row if groups > 1 else 0)
        field = segment * window.FIELDS
        searched = band < medians and (state[field + window.SHIFT] != window.DONE or state[field + window.NEXT] != 0)
        first, last = part * chunk, min((part + 1) * chunk, n)
        if not searched or state[field + window.SHIFT] == window.DONE:
            if with_energy:
                sums[thread] = measure(details, source, first, last)
                total(sums, thread)
                if thread == 0:
                    partial[(row + 1) * cuda.gridDim.x - 1 - cuda.blockIdx.x] = sums[0]
            if searched:
                next_above(keys, source, first, last, state[field + window.LOW], least, middle, segment)
                if not pooled and window.last_of(parts, state, field, tally) and thread == 0:
                    state[field + window.NEXT] = 0
            return
        low, shift, longest, target_list = (
            state[field + window.LOW],
            state[field + window.SHIFT],
            window.room(pitch),
            ends + window.room(source),
        )
        clear(histogram, 0)
        if thread < 3:
            tally[thread] = 0
        cuda.syncthreads()
        bottom, top = edges[2 * segment], edges[2 * segment + 1]
        smaller, square = 0, 0.0
        for start in range(first, last, 32 * threads):
            if start + 32 * threads <= last:
                square, smaller, inside = compare_all(
                    details, source, start, last, bottom, top, with_energy, square, smaller
                )
            else:
                square, smaller, inside = compare_last(
                    details, source, start, last, bottom, top, with_energy, square, smaller
                )
            at = source + start + 4 * thread  # of few, so they are taken afterwards
            place = take(keys, at, inside, listing, low, shift, staged, histogram, tally)
            # two thirds stay free, five times what is expected of an iteration
            if listing and cuda.syncthreads_or(np.int32(1 if place > stage // 3 else 0)) != 0:
                deliver(keys, target_list, longest, low, shift, staged, histogram, state, field, tally, place_in_list)
        if listing:
            cuda.syncthreads()
            deliver(keys, target_list, longest, low, shift, staged, histogram, state, field, tally, place_in_list)
        if with_energy:
            sums[thread] = square
            total(sums, thread)
            if thread == 0:
                partial[(row + 1) * cuda.gridDim.x - 1 - cuda.blockIdx.x] = sums[0]
        cuda.atomic.add(tally, 0, smaller)
        cuda.syncthreads()
        add(histogram, counts, segment)
        if thread == 0:
            cuda.atomic.add(state, field + window.BELOW, np.int64(tally[0]))
        if not pooled and window.last_of(parts, state, field, tally):
            narrower(sizes, state, counts, edge_keys, middle, segment, workspace)
            if with_energy and listing:
                square, begin = 0.0, (row + 1) * cuda.gridDim.x - 1 - cuda.blockIdx.x - part
                for i in range(thread, parts, threads):
                    square += partial[begin + i]
                sums[thread] = square
                total(sums, thread)
                if thread == 0:
                    energy[segment] = sums[0]

    return scan


@cache
def gather(threads: int) -> Kernel:
    """Kernel of the sums of squares of every segment from those of its chunks, always in the same order."""
    total = window.summing(threads)

    @kernel(threads)
    def gather(partial, bands, rows, groups, across, chunk, again, energy):
        sums = cuda.shared.array(threads, np.float64)
        thread, segment = cuda.threadIdx.x, cuda.blockIdx.x
        band, group = segment // groups, segment - segment // groups * groups
        begin = 0
        for i in range(band):
            begin += (bands[i * PLACES + LENGTH] + chunk - 1) // chunk
        here = (bands[band * PLACES + LENGTH] + chunk - 1) // chunk
        first, last = (group, group + 1) if groups > 1 else (0, rows)
        square = 0.0
        for i in range(thread, (last - first) * here, threads):
            square += partial[(first + i // here) * across + begin + i % here]
        sums[thread] = square
        total(sums, thread)
        if thread == 0:
            energy[segment] = sums[0] + (energy[segment] if again else 0.0)

    return gather


@cache
def narrow(dtype: str, threads: int, share: float = window.MEDIAN) -> Kernel:
    """Kernel, after a pass over several batches or by a forward transform: every segment's next window, or its middle.

    Not where the list of a row, ``pitch`` elements from the next, is too long: such a pass has not counted all values.
    """
    narrower = window.narrowing(dtype, threads, share)

    @kernel(dtype, threads, share)
    def narrow(sizes, state, counts, edge_keys, middle, pitch):
        workspace = cuda.shared.array(WORKSPACE, np.int64)
        field = cuda.blockIdx.x * window.FIELDS
        if state[field + window.LISTED] > window.room(pitch):
            return
        if state[field + window.SHIFT] != window.DONE:
            narrower(sizes, state, counts, edge_keys, middle, cuda.blockIdx.x, workspace)
        elif cuda.threadIdx.x == 0:
            state[field + window.NEXT] = 0

    return narrow
