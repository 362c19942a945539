"""Kernels that find medians, or other quantiles, of |d| and sums of d² of many bands and rows.

Bands of few coefficients a row (`whole`): a block for each row and band does the whole search.
Long bands: many blocks for each, in passes over the details,

    sample   draws some values, and lays the first window around their median
    scan     counts the values below the window, lists those inside behind the details, and sums all squares
    finish   goes through the lists, and finds the median of the few values in the bin that holds it

and `scan` again and again, without lists, where several rows share a median or a search has not ended: the last block
of a band lays its next window from the counts of all.
"""

from __future__ import annotations

from functools import cache
from typing import NamedTuple

import numpy as np

from wavefilt.backends.cuda.dwt.tiling import ROWS
from wavefilt.backends.cuda.runtime.compiler import kernel
from wavefilt.backends.cuda.runtime.interfaces import Build, DeviceArray, DeviceFunction, Kernel
from wavefilt.backends.cuda.runtime.target import cuda, device
from wavefilt.backends.cuda.runtime.wide import bin_of, compare, load4

from . import block_search as window
from .block_search import BINS, WORKSPACE, first_shift, magnitudes
from .layout import LENGTH, MEDIAN, OFFSET, PITCH, PLACES


class Search(NamedTuple):
    """Arrays for all segments: values, `block_search` state, bins, window as values and as bits, and middle values."""

    sizes: DeviceArray
    state: DeviceArray
    counts: DeviceArray
    edges: DeviceArray
    edge_keys: DeviceArray
    middle: DeviceArray


class Samples(NamedTuple):
    """Room for samples, elements from one to the next, and for their bins, which are 0 before and after."""

    keys: DeviceArray
    pitch: int
    coarse: DeviceArray


class How(NamedTuple):
    """Options of a launch over the bands from ``first`` on: the bands before ``medians`` are searched.

    ``with_energy`` sums squares, ``listing`` lists values. A pass over several batches has a launch for each. A later
    launch continues the ``later`` finest bands; with ``again``, sums are added to those of earlier launches.
    """

    first: int
    medians: int
    with_energy: bool
    listing: bool
    later: int
    again: bool


@cache
def sample(build: Build, drawn: int, share: float = MEDIAN) -> Kernel:
    """Kernel that places a window for every row and band from ``first`` on by a sample of its values.

    Each of ``parts`` blocks counts its own values in the widest bins; the last one of a segment places the window.
    """
    dtype, threads = build.dtype, build.threads
    widest, nothing = first_shift(np.dtype(dtype).itemsize), magnitudes(np.dtype(dtype).itemsize)
    each, scattered = BINS // threads, window.scattering(drawn)
    refine = window.bracketing(dtype, drawn, threads, share)
    clear, add, _ = window.histogram(threads)

    @kernel(build, drawn, share)
    def sample(where, first, parts, samples, search):
        _, keys, bands, _, rows = where
        coarse, state = samples.coarse, search.state
        histogram = cuda.shared.array(BINS, np.int32)
        workspace = cuda.shared.array(WORKSPACE, np.int32)
        tally = cuda.shared.array(3, np.int32)
        band, part = first + cuda.blockIdx.x // parts, cuda.blockIdx.x % parts
        row = cuda.blockIdx.y + ROWS * cuda.blockIdx.z
        if row >= rows:
            return
        clear(histogram, 0)
        cuda.syncthreads()
        n, segment = bands[band * PLACES + LENGTH], band * rows + row
        source, target = bands[band * PLACES + OFFSET] + row * bands[band * PLACES + PITCH], segment * samples.pitch
        for i in range(part * threads + cuda.threadIdx.x, drawn, parts * threads):
            bits = keys[source + scattered(i, n)]
            samples.keys[target + i] = bits
            window.count_in_bin(bits, 0, widest, histogram)
        cuda.syncthreads()
        if parts > 1:
            add(histogram, coarse, segment)
            if not window.last_of(parts, state, segment * window.FIELDS, tally):
                return
        for j in range(each):
            i = j * threads + cuda.threadIdx.x
            if parts > 1:
                histogram[i] = coarse[segment * BINS + i]
                coarse[segment * BINS + i] = 0
            search.counts[segment * BINS + i] = 0
        cuda.syncthreads()
        low, shift, top = refine(samples.keys, target, histogram, workspace)
        if cuda.threadIdx.x == 0:
            window.lay(state, search.edge_keys, segment, low, shift, top)
            for field in (window.BELOW, window.NEXT, window.LISTED, window.TICKET, window.INSIDE, window.UNDER):
                state[segment * window.FIELDS + field] = 0
            state[segment * window.FIELDS + window.BASE] = window.NOT_YET
            state[segment * window.FIELDS + window.ABOVE] = nothing

    return sample


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
def comparing(dtype: str, threads: int) -> DeviceFunction:
    """Device function: of this thread's 32 values, the sum of squares, how many lie below the window, and which inside.

    Values end at ``last``.
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

    @device
    def compare_some(coefficients, source, start, last, bottom, top, with_energy, square, smaller):
        if start + 32 * threads <= last:
            return compare_all(coefficients, source, start, last, bottom, top, with_energy, square, smaller)
        return compare_last(coefficients, source, start, last, bottom, top, with_energy, square, smaller)

    return compare_some


@cache
def _listing(dtype: str, threads: int, stage: int) -> tuple[DeviceFunction, DeviceFunction]:
    """Device functions: ``take`` the marked keys of a thread, and ``deliver`` the staged keys of the block.

    Staged keys are counted and listed by all threads together: few threads have more than one at a time.
    """
    mask = magnitudes(np.dtype(dtype).itemsize)

    @device
    def take(keys, at, marks, listing, low, shift, staged, histogram, tally):
        """Stage the keys marked, or count them where the stage has no room; how many are staged then."""
        place = np.int32(stage)
        if listing:  # every thread, so that a warp adds up before one atomic
            place = np.int32(cuda.atomic.add(tally, 1, np.int32(cuda.popc(marks))))
        while marks != 0:
            i = cuda.ffs(marks) - 1
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
def _segment(bands, band, chunk, part):
    """Return the band that a part of a row belongs to, the number of its parts, and the number of this part in it.

    Parts are counted from the first one of ``band``.
    """
    parts = (bands[band * PLACES + LENGTH] + chunk - 1) // chunk
    while part >= parts:
        part -= parts
        band += 1
        parts = (bands[band * PLACES + LENGTH] + chunk - 1) // chunk
    return band, parts, part


@cache
def scan(build: Build, stage: int, share: float = MEDIAN) -> Kernel:
    """Kernel of one pass: values of every segment by bin of its window, values below, and if wanted sums of squares.

    When ``listing``, the values in the window are listed behind the details, from ``ends``. The last block of a segment
    in a pass lays the next window, and adds the sums of squares of all blocks, always in the same order.
    """
    dtype, threads = build.dtype, build.threads
    key = np.dtype(f"i{np.dtype(dtype).itemsize}").type
    total, (clear, add, _) = window.summing(threads), window.histogram(threads)
    measure, following = measuring(dtype, threads), window.next_value(np.dtype(dtype).itemsize, threads)
    take, deliver = _listing(dtype, threads, stage)
    compare_some = comparing(dtype, threads)
    narrower = window.narrowing(dtype, threads, share)

    @kernel(build, stage, share, registers=48 if dtype == "float32" else None, since=(9, 0))
    def scan(where, groups, chunk, how, search, partial, energy):
        details, keys, bands, ends, rows = where
        state, counts, edges, middle = search.state, search.counts, search.edges, search.middle
        first_band, medians, with_energy, listing, later, again = how
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
        # backwards: the last coefficients written are still in the cache
        band, parts, part = _segment(bands, first_band, chunk, cuda.gridDim.x - 1 - cuda.blockIdx.x)
        n, pitch = bands[band * PLACES + LENGTH], bands[band * PLACES + PITCH]
        source = bands[band * PLACES + OFFSET] + row * pitch
        segment, blocks = (band * groups + row, parts) if groups > 1 else (band, parts * rows)
        field = segment * window.FIELDS
        searched = band < medians and (state[field + window.SHIFT] != window.DONE or state[field + window.NEXT] != 0)
        first, last = part * chunk, min((part + 1) * chunk, n)
        if not searched or state[field + window.SHIFT] == window.DONE:
            if with_energy:
                sums[thread] = measure(details, source, first, last)
            if searched:
                above = following(keys, source + first, last - first, state[field + window.LOW], least)
                if thread == 0:
                    cuda.atomic.min(middle, 2 * segment + 1, above)
        else:
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
                square, smaller, inside = compare_some(
                    details, source, start, last, bottom, top, with_energy, square, smaller
                )
                at = source + start + 4 * thread  # of few, so they are taken afterwards
                place = take(keys, at, inside, listing, low, shift, staged, histogram, tally)
                # two thirds stay free, five times what is expected of an iteration
                if listing and cuda.syncthreads_or(np.int32(1 if place > stage // 3 else 0)) != 0:
                    deliver(
                        keys, target_list, longest, low, shift, staged, histogram, state, field, tally, place_in_list
                    )
            if listing:
                cuda.syncthreads()
                deliver(keys, target_list, longest, low, shift, staged, histogram, state, field, tally, place_in_list)
            sums[thread] = square
            cuda.atomic.add(tally, 0, smaller)
            cuda.syncthreads()
            add(histogram, counts, segment)
            if thread == 0:
                cuda.atomic.add(state, field + window.BELOW, np.int64(tally[0]))
        if with_energy:
            total(sums, thread)
            if thread == 0:
                partial[(row + 1) * cuda.gridDim.x - 1 - cuda.blockIdx.x] = sums[0]
        if not (searched or with_energy) or not window.last_of(blocks, state, field, tally):
            return
        if searched and band >= later:
            if state[field + window.SHIFT] != window.DONE:
                narrower(search, segment, workspace)
            elif thread == 0:
                state[field + window.NEXT] = 0
        if with_energy:
            begin = (row if groups > 1 else 0) * cuda.gridDim.x + cuda.gridDim.x - 1 - cuda.blockIdx.x - part
            square = 0.0
            for i in range(thread, blocks, threads):
                before = np.int64(
                    np.uint32(i) // np.uint32(parts)
                )  # rows before this one; a 64-bit division would spill registers
                square += partial[begin + before * (cuda.gridDim.x - parts) + i]
            sums[thread] = square
            total(sums, thread)
            if thread == 0:
                energy[segment] = sums[0] + (energy[segment] if again else 0.0)

    return scan


@cache
def finish(build: Build, close: int, share: float = MEDIAN) -> Kernel:
    """Kernel of the last pass over the lists, ``parts`` blocks for each: the middle values.

    Values in the window, at most ``close``, are ``gathered``, and the last block finds the middle of them. If there are
    more, or the window missed, it searches the whole row, and the ``state`` stays unfinished.
    """
    threads, itemsize = build.threads, np.dtype(build.dtype).itemsize
    key, widest, infinity = np.dtype(f"i{itemsize}").type, first_shift(itemsize), magnitudes(itemsize)
    select, select_all = (window.selecting(itemsize, threads, wide) for wide in (False, True))
    following = window.next_value(itemsize, threads)

    @device
    def take(k, low, top, values, tally, closest):
        """Whether a listed value lies below the window, which keeps it if it lies inside; the smallest above it."""
        if k < low:
            return 1, closest
        if k > top:
            return 0, min(closest, np.int64(k))
        i = cuda.atomic.add(tally, 1, 1)
        if i < close:
            values[i] = k
        return 0, closest

    ranks = window.ranking(share)

    @kernel(build, close, share)
    def finish(where, parts, search, gathered):
        _, keys, bands, ends, rows = where
        state, middle = search.state, search.middle
        histogram = cuda.shared.array(BINS, np.int32)
        workspace = cuda.shared.array(WORKSPACE, np.int32)
        values = cuda.shared.array(close, key)
        least = cuda.shared.array(1, key)
        place = cuda.shared.array(1, np.int64)
        tally = cuda.shared.array(3, np.int32)
        thread = cuda.threadIdx.x
        row = cuda.blockIdx.y + ROWS * cuda.blockIdx.z
        if row >= rows:
            return
        band, part = cuda.blockIdx.x // parts, cuda.blockIdx.x % parts
        n, pitch = bands[band * PLACES + LENGTH], bands[band * PLACES + PITCH]
        source, segment = bands[band * PLACES + OFFSET] + row * pitch, band * rows + row
        field = segment * window.FIELDS
        if window.ended(state, segment):
            return
        low, shift, listed = state[field + window.LOW], state[field + window.SHIFT], state[field + window.LISTED]
        known = 0 < listed <= window.room(pitch)
        wanted, even = ranks(n)
        top = low if shift == window.DONE else low + (BINS << shift) - 1
        if not known:
            listed = np.int64(0)
        if thread == 0:
            least[0], tally[0], tally[1] = infinity, 0, 0
        cuda.syncthreads()
        chunk = ((listed + parts - 1) // parts + 3) & ~3
        first, last = part * chunk, min((part + 1) * chunk, listed)
        here, smaller, closest, below = ends + window.room(source), 0, np.int64(infinity), 0
        i = first + 4 * thread  # no range, whose length would be computed
        while i < last:
            k0, k1, k2, k3 = load4(keys, here + i)  # of |d|: there is no sign to mask
            below, closest = take(k0, low, top, values, tally, closest)
            smaller += below
            if i + 1 < last:
                below, closest = take(k1, low, top, values, tally, closest)
                smaller += below
            if i + 2 < last:
                below, closest = take(k2, low, top, values, tally, closest)
                smaller += below
            if i + 3 < last:
                below, closest = take(k3, low, top, values, tally, closest)
                smaller += below
            i += 4 * threads
        cuda.atomic.add(tally, 0, smaller)
        window.lower(least, closest)
        cuda.syncthreads()
        inside, target = np.int64(tally[1]), segment * close
        if thread == 0:
            cuda.atomic.add(state, field + window.UNDER, np.int64(tally[0]))
            cuda.atomic.min(state, field + window.ABOVE, least[0])
            place[0] = cuda.atomic.add(state, field + window.INSIDE, inside)
        cuda.syncthreads()
        i = thread
        while i < inside and i < close and place[0] + i < close:
            gathered[target + place[0] + i] = values[i]
            i += threads
        if not window.last_of(parts, state, field, tally):
            return
        inside, above = state[field + window.INSIDE], state[field + window.ABOVE]
        rank = wanted - max(state[field + window.BASE], 0) - state[field + window.BELOW] - state[field + window.UNDER]
        done = known and (shift == window.DONE or 0 <= rank < inside <= close)
        high = np.int64(infinity)
        if not done:
            low, high = select_all(
                keys, source, n, np.int64(0), np.int64(widest), wanted, even, histogram, workspace, least
            )
        elif shift != window.DONE:
            i = thread
            while i < inside:
                values[i] = gathered[target + i]
                i += threads
            cuda.syncthreads()
            low, high = select(values, 0, inside, low, shift, rank, even, histogram, workspace, least)
        high = min(high, above) if done else high
        if high == infinity:
            cuda.syncthreads()
            high = following(keys, source, n, low, least)
        if thread == 0:
            middle[2 * segment], middle[2 * segment + 1] = low, high
            if done:
                state[field + window.SHIFT], state[field + window.NEXT] = window.DONE, 0

    return finish


@cache
def whole(build: Build, share: float = MEDIAN) -> Kernel:
    """Kernel for bands from ``first`` on of every row, a block for each: the two middle values and the sum of squares.

    Medians are computed of the ``medians`` finest bands.
    """
    dtype, threads = build.dtype, build.threads
    itemsize = np.dtype(dtype).itemsize
    key, widest = np.dtype(f"i{itemsize}").type, first_shift(itemsize)
    total, measure = window.summing(threads), measuring(dtype, threads)
    select, ranks = window.selecting(itemsize, threads, True), window.ranking(share)

    @kernel(build, share, registers=56 if dtype == "float32" else None, since=(9, 0))
    def whole(where, first, medians, with_energy, middle, energy):
        coefficients, keys, bands, _, rows = where
        histogram = cuda.shared.array(BINS, np.int32)
        workspace = cuda.shared.array(WORKSPACE, np.int32)
        sums = cuda.shared.array(threads, np.float64)
        least = cuda.shared.array(1, key)
        thread, band = cuda.threadIdx.x, first + cuda.blockIdx.x
        row = cuda.blockIdx.y + ROWS * cuda.blockIdx.z
        if row >= rows:
            return
        n = bands[band * PLACES + LENGTH]
        begin = bands[band * PLACES + OFFSET] + row * bands[band * PLACES + PITCH]
        segment = band * rows + row
        if with_energy:
            sums[thread] = measure(coefficients, begin, 0, n)
            total(sums, thread)
            if thread == 0:
                energy[segment] = sums[0]
        if band >= medians:
            return
        rank, even = ranks(n)
        low, high = select(keys, begin, n, np.int64(0), np.int64(widest), rank, even, histogram, workspace, least)
        if thread == 0:
            middle[2 * segment] = low
            middle[2 * segment + 1] = high

    return whole
