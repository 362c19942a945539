"""Exact medians of |d| and sums of d² of every level and trace, by radix histograms with integer counts.

Non-negative floats order like their bits. A *window* of 2^11 bins of 2^shift consecutive bit patterns is laid where
the middle value may be, values are counted by bin, and the bin that holds the wanted rank is the next window, until
bins are single values. Counts are integers and sums have a fixed order, so results do not depend on scheduling.

The first window is laid around the middle of a sample (`draw`, `sample`). The values in it, 5 % of all, are listed by
the one pass over all values (`scan`, or the forward transform itself); `settle` then looks at the list alone.
"""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from wavefilt.backends.cuda.dwt.tiling import ROWS
from wavefilt.backends.cuda.runtime.compiler import kernel
from wavefilt.backends.cuda.runtime.target import cuda, device
from wavefilt.backends.cuda.runtime.wide import bin_of, load4

from .search_window import BASE, BELOW, DONE, FIELDS, LISTED, LOW, NEXT, NOT_YET, SHIFT, TICKET, less, room, within

BINS = 2048
CHUNK = 1 << 13  # coefficients a block reads
WHOLE = 36 << 10  # a row's level of at most this many is finished by one block
SAMPLE = 1 << 15  # bytes
BLOCKS = 528  # for the finest level: four a multiprocessor
STAGE = 2048  # values listed at a time
PARTS = 264  # blocks for a list: two a multiprocessor; fewer read too slowly, more add too many counts


def first_shift(dtype: Any) -> int:
    """Shift of the window that holds every value."""
    return int(np.dtype(dtype).itemsize) * 8 - 1 - 11


def drawn(dtype: Any) -> int:
    """Values in a sample."""
    return SAMPLE // int(np.dtype(dtype).itemsize)


def listed(n: int) -> int:
    """About how many of n values lie in a sampled window."""
    return n // 20


def chunk_for(n: int) -> int:
    """Coefficients a block reads of rows whose finest level has n: 2^14, more where that makes too many blocks."""
    return max(CHUNK, -(-n // (BLOCKS * CHUNK)) * CHUNK)


@cache
def kernels(dtype: str, taps: int, periodized: bool, threads: int) -> Any:
    """The kernels of selection, by name; ``keys`` are the coefficients' bits, as integers."""
    wide = np.dtype(dtype).itemsize == 8
    mask = (1 << (63 if wide else 31)) - 1
    widest = first_shift(dtype)
    number = np.dtype(dtype).type
    key = np.int64 if wide else np.int32
    infinity, infinite = mask, number(np.inf)
    greatest = int(np.array(np.inf, dtype).view(key))
    drawn = SAMPLE // int(np.dtype(dtype).itemsize)
    spread = int(2.25 * drawn**0.5) + 1  # 4.5 standard deviations of a sample's median rank

    # constant numbers of rounds, so that no warp computes when to stop
    bins_each, drawn_each, groups_each = BINS // threads, drawn // threads, -(-256 // threads)
    compiled = kernel(dtype, taps, periodized, threads)

    @device
    def shorter(n):
        return (n + 1) >> 1 if periodized else (n + taps - 1) >> 1

    @device
    def locate(histogram, base, rank, scratch):
        """Bin that holds the value of this rank and the number of values before it; -1 if it is in none."""
        accumulate(histogram, base, scratch)
        return find(histogram, base, rank, scratch)

    @device
    def accumulate(histogram, base, scratch):
        """Running counts of every eight bins in the first half of ``scratch``."""
        thread = cuda.threadIdx.x
        for j in range(groups_each):
            i = j * threads + thread
            if i < 256:
                group = 0
                for k in range(8):
                    group += histogram[base + 8 * i + k]
                scratch[i] = group
        cuda.syncthreads()
        for k in range(8):  # twice as far each time, from one half of ``scratch`` to the other
            source, step = 256 * (k & 1), 1 << k
            for j in range(groups_each):
                i = j * threads + thread
                if i < 256:
                    scratch[256 - source + i] = scratch[source + i] + (scratch[source + i - step] if i >= step else 0)
            cuda.syncthreads()

    @device
    def find(histogram, base, rank, scratch):
        """What `locate` returns, once counts are accumulated."""
        if cuda.threadIdx.x == 0:
            scratch[512] = -1
        cuda.syncthreads()
        for j in range(groups_each):
            i = j * threads + cuda.threadIdx.x
            if i < 256:
                before = scratch[i - 1] if i > 0 else 0
                if before <= rank < scratch[i]:
                    place = base + 8 * i
                    while before + histogram[place] <= rank:
                        before += histogram[place]
                        place += 1
                    scratch[512], scratch[513] = place - base, before
        cuda.syncthreads()
        return np.int64(scratch[512]), np.int64(scratch[513])

    @device
    def total(values, thread):
        """Sum of one value a thread, in a fixed order, in ``values[0]``."""
        cuda.syncthreads()
        step = 1
        while step < threads:
            if thread % (2 * step) == 0 and thread + step < threads:
                values[thread] += values[thread + step]
            step *= 2
            cuda.syncthreads()

    @device
    def squares(a, b):
        return np.float64(a) * np.float64(a) + np.float64(b) * np.float64(b)

    @device
    def lay(state, edge_keys, segment, low, shift, top):
        """Lay a window up to ``top`` at most, and its two ends as values, which are compared faster than bits."""
        state[segment * FIELDS + LOW], state[segment * FIELDS + SHIFT] = low, shift
        edge_keys[2 * segment] = low
        edge_keys[2 * segment + 1] = min(low + (BINS << shift) - 1, top)

    @device
    def last_of(parts, state, field, tally):
        """Whether this block is the last of those that work on a segment; then it sees what the others wrote."""
        cuda.threadfence()
        cuda.syncthreads()
        if cuda.threadIdx.x == 0:
            tally[2] = 1 if cuda.atomic.add(state, field + TICKET, 1) == parts - 1 else 0
            if tally[2] == 1:
                state[field + TICKET] = 0
        cuda.syncthreads()
        cuda.threadfence()
        return tally[2] == 1

    @device
    def narrower(sizes, state, counts, edge_keys, middle, segment, scratch):
        """After a pass: a segment's next window, or its two middle values."""
        thread = cuda.threadIdx.x
        base, field = segment * BINS, segment * FIELDS
        low, shift, n = state[field + LOW], state[field + SHIFT], sizes[segment]
        below = state[field + BELOW] + max(state[field + BASE], 0)
        rank = (n - 1) // 2 - below
        place, before = locate(counts, base, rank, scratch)
        cuda.syncthreads()
        if thread == 0:
            state[field + BELOW] = 0
            if rank < 0 or place < 0:  # the window missed: begin again with the widest, on all values
                state[field + LISTED], state[field + BASE] = 0, NOT_YET
                lay(state, edge_keys, segment, 0, widest, greatest)
            elif shift > 0:
                if state[field + LISTED] > 0 and state[field + BASE] == NOT_YET:
                    state[field + BASE] = below  # from now on values of the list alone are counted
                finer = shift - 11 if shift > 11 else 0
                lay(state, edge_keys, segment, low + (place << shift), finer, greatest)
            else:
                high = place
                if n % 2 == 0 and rank + 1 >= before + counts[base + place]:
                    high += 1
                    while high < BINS and counts[base + high] == 0:
                        high += 1
                if high == BINS:  # beyond the window: one more pass
                    state[field + NEXT] = 1
                middle[2 * segment] = low + place
                middle[2 * segment + 1] = low + high if high < BINS else infinity
                state[field + LOW], state[field + SHIFT] = low + place, DONE
        cuda.syncthreads()
        for j in range(bins_each):
            i = j * threads + thread
            counts[base + i] = 0

    @device
    def next_above(keys, source, first, last, low, least, middle, segment):
        """The smallest value above ``low``, where it is smaller than what was found so far."""
        if cuda.threadIdx.x == 0:
            least[0] = infinity
        cuda.syncthreads()
        closest: Any = infinity
        for i in range(first + cuda.threadIdx.x, last, threads):
            k = np.int64(keys[source + i]) & mask
            if low < k < closest:
                closest = k
        cuda.atomic.min(least, 0, closest)
        cuda.syncthreads()
        if cuda.threadIdx.x == 0:
            cuda.atomic.min(middle, 2 * segment + 1, least[0])

    @device
    def bin_key(bits, low, shift, histogram):
        place = bin_of(bits, low, shift)
        if place < np.uint64(BINS):
            cuda.atomic.add(histogram, place, 1)

    @compiled
    def whole(keys, coefficients, offset, samples, rows, first, with_median, with_energy, middle, energy):
        """Levels from ``first`` on of every row, a block for each: the two middle values and the sum of squares."""
        histogram = cuda.shared.array(BINS, np.int32)
        scratch = cuda.shared.array(514, np.int32)
        sums = cuda.shared.array(threads, np.float64)
        least = cuda.shared.array(1, np.int64)
        thread, level = cuda.threadIdx.x, first + cuda.blockIdx.x
        row = cuda.blockIdx.y + ROWS * cuda.blockIdx.z
        if row >= rows:
            return
        n = samples
        begin = offset
        for _ in range(level):
            n = shorter(n)
            begin += rows * np.int64((n + 3) & ~3)
        n = shorter(n)
        begin += row * np.int64((n + 3) & ~3)
        segment = level * rows + row
        if with_energy:
            square = 0.0
            for i in range(thread, n, threads):
                d = np.float64(coefficients[begin + i])
                square += d * d
            sums[thread] = square
            total(sums, thread)
            if thread == 0:
                energy[segment] = sums[0]
        if not with_median:
            return
        low, shift, rank = 0, widest, (n - 1) // 2
        value, place, before = 0, 0, 0
        quads = n >> 2
        while shift >= 0:
            for j in range(bins_each):
                i = j * threads + thread
                histogram[i] = 0
            if thread == 0:
                least[0] = infinity
            cuda.syncthreads()
            for v in range(thread, quads, threads):
                k0, k1, k2, k3 = load4(keys, begin + 4 * v)
                bin_key(k0, low, shift, histogram)
                bin_key(k1, low, shift, histogram)
                bin_key(k2, low, shift, histogram)
                bin_key(k3, low, shift, histogram)
            for i in range(4 * quads + thread, n, threads):
                bin_key(keys[begin + i], low, shift, histogram)
            cuda.syncthreads()
            place, before = locate(histogram, 0, rank, scratch)
            rank -= before
            low += place << shift
            if shift == 0:
                value = histogram[place]  # how many have the lower middle value
            shift = shift - 11 if shift > 11 else 0 if shift > 0 else DONE
            cuda.syncthreads()
        high = low
        if n % 2 == 0 and rank + 1 >= value:
            closest: Any = infinity
            for i in range(thread, n, threads):
                k = np.int64(keys[begin + i]) & mask
                if low < k < closest:
                    closest = k
            cuda.atomic.min(least, 0, closest)
            cuda.syncthreads()
            high = least[0]
        if thread == 0:
            middle[2 * segment] = low
            middle[2 * segment + 1] = high

    @device
    def bracket(values, histogram, scratch, state, edge_keys, segment):
        """The first window of a search, around the middle of a sample in shared memory."""
        thread = cuda.threadIdx.x
        for j in range(bins_each):
            i = j * threads + thread
            histogram[i] = 0
        cuda.syncthreads()
        for j in range(drawn_each):
            i = j * threads + thread
            bin_key(values[i], 0, widest, histogram)
        cuda.syncthreads()
        low_place, low_before = locate(histogram, 0, drawn // 2 - spread, scratch)
        cuda.syncthreads()
        high_place, _ = find(histogram, 0, drawn // 2 + spread, scratch)
        cuda.syncthreads()
        fine = widest - 11  # then the bins between the two, all at once
        while (high_place - low_place + 1) << (widest - fine) > BINS:
            fine += 1
        for j in range(bins_each):
            i = j * threads + thread
            histogram[i] = 0
        cuda.syncthreads()
        for j in range(drawn_each):
            i = j * threads + thread
            bin_key(values[i], low_place << widest, fine, histogram)
        cuda.syncthreads()
        low, _ = locate(histogram, 0, drawn // 2 - spread - low_before, scratch)
        cuda.syncthreads()
        high, _ = find(histogram, 0, drawn // 2 + spread - low_before, scratch)
        low = (low_place << widest) + (low << fine)
        high = (low_place << widest) + ((high + 1) << fine)
        shift = 0
        while (high - low) >> shift >= BINS:
            shift += 1
        if thread == 0:
            lay(state, edge_keys, segment, low, shift, high - 1)
            for field in (BELOW, NEXT, LISTED, TICKET):
                state[segment * FIELDS + field] = 0
            state[segment * FIELDS + BASE] = NOT_YET

    @device
    def scattered(i, n):
        """A place in the i-th of ``drawn`` stretches of n values; it changes, so that no period of the data is met."""
        return i * n // drawn + ((((i * 2654435761) & 0xFFFFFFFF) * (n // drawn)) >> 32)

    @compiled
    def sample(keys, offset, samples, rows, state, edge_keys):
        """A first window for every row and level of the grid, from values of the level itself."""
        histogram = cuda.shared.array(BINS, np.int32)
        scratch = cuda.shared.array(514, np.int32)
        values = cuda.shared.array(drawn, key)
        thread, level = cuda.threadIdx.x, cuda.blockIdx.x
        row = cuda.blockIdx.y + ROWS * cuda.blockIdx.z
        if row >= rows:
            return
        n = samples
        begin = offset
        for _ in range(level):
            n = shorter(n)
            begin += rows * np.int64((n + 3) & ~3)
        n = shorter(n)
        begin += row * np.int64((n + 3) & ~3)
        for j in range(drawn_each):
            i = j * threads + thread
            values[i] = keys[begin + scattered(i, n)] & mask
        cuda.syncthreads()
        bracket(values, histogram, scratch, state, edge_keys, level * rows + row)

    @compiled
    def draw(x, samples, rows, high_pass, some, some_keys, state, edge_keys):
        """A first window for the finest details of every row before there are any: some are computed here from ``x``.

        ``high_pass`` is the analysis filter reversed; ``some`` has room for them all.
        """
        histogram = cuda.shared.array(BINS, np.int32)
        scratch = cuda.shared.array(514, np.int32)
        values = cuda.shared.array(drawn, key)
        tally = cuda.shared.array(3, np.int32)
        thread = cuda.threadIdx.x
        row = cuda.blockIdx.y + ROWS * cuda.blockIdx.z
        if row >= rows:
            return
        source, target = row * samples, row * drawn
        windows = (samples - taps) // 2
        for i in range(cuda.blockIdx.x * threads + thread, drawn, cuda.gridDim.x * threads):
            first = source + 2 * scattered(i, windows)
            value = number(0)
            for k in range(taps):
                value += high_pass[k] * x[first + k]
            some[target + i] = value
        if last_of(cuda.gridDim.x, state, row * FIELDS, tally):
            for j in range(drawn_each):
                i = j * threads + thread
                values[i] = some_keys[target + i] & mask
            cuda.syncthreads()
            bracket(values, histogram, scratch, state, edge_keys, row)

    @compiled
    def scan(
        coefficients, keys, offset, ends, samples, rows, groups, chunk, pooled, listing, with_median, with_energy,
        sizes, state, counts, edges, edge_keys, middle, partial,
    ):  # fmt: skip
        """One pass: values of every segment by bin of its window, values below, and if wanted sums of squares.

        ``listing`` the values in the window as well, behind the details, from ``ends``. The last block of a segment
        lays the next window.
        """
        histogram = cuda.shared.array(BINS, np.int32)
        scratch = cuda.shared.array(514, np.int64)
        staged = cuda.shared.array(STAGE, number)
        sums = cuda.shared.array(threads, np.float64)
        least = cuda.shared.array(1, np.int64)
        tally = cuda.shared.array(3, np.int32)  # values below, values staged, whether this block is the last
        place_in_list = cuda.shared.array(1, np.int64)
        thread = cuda.threadIdx.x
        row = cuda.blockIdx.y + ROWS * cuda.blockIdx.z
        if row >= rows:
            return
        n = shorter(samples)
        begin, part, level = offset, cuda.blockIdx.x, 0
        part = cuda.gridDim.x - 1 - part  # backwards: what was written last is still in the cache
        parts = (n + chunk - 1) // chunk
        while part >= parts:
            begin += rows * np.int64((n + 3) & ~3)
            part -= parts
            n = shorter(n)
            parts = (n + chunk - 1) // chunk
            level += 1
        stride = np.int64((n + 3) & ~3)
        begin += row * stride
        segment = level * groups + (row if groups > 1 else 0)
        field = segment * FIELDS
        shift = state[field + SHIFT]
        if not with_energy and shift == DONE and state[field + NEXT] == 0:
            return
        longest = room(stride)
        source, target_list = begin, ends + room(begin)
        first, last = part * chunk, (part + 1) * chunk
        last = last if last < n else n
        low = state[field + LOW]
        square = 0.0
        if with_energy and not with_median:
            for v in range(first // 4 + thread, last // 4, threads):
                d0, d1, d2, d3 = load4(coefficients, source + 4 * v)
                square += squares(d0, d1) + squares(d2, d3)
            for i in range(last // 4 * 4 + thread, last, threads):
                square += squares(coefficients[source + i], number(0))
            sums[thread] = square
            total(sums, thread)
            if thread == 0:
                partial[(row + 1) * cuda.gridDim.x - 1 - cuda.blockIdx.x] = sums[0]
        if not with_median or (shift == DONE and state[field + NEXT] == 0):
            return
        if shift == DONE:
            next_above(keys, source, first, last, low, least, middle, segment)
            if not pooled and last_of(parts, state, field, tally) and thread == 0:
                state[field + NEXT] = 0
            return
        for j in range(bins_each):
            i = j * threads + thread
            histogram[i] = 0
        if thread < 3:
            tally[thread] = 0
        cuda.syncthreads()
        bottom, top = edges[2 * segment], edges[2 * segment + 1]
        smaller = 0
        for start in range(first, last, 32 * threads):
            inside = 0  # which of this thread's 32 values lie in the window: few, so they are taken afterwards
            if start + 32 * threads <= last:
                for j in range(0, 8, 4):  # four loads under way at once
                    at = source + start + 4 * (j * threads + thread)
                    p0, p1, p2, p3 = load4(coefficients, at)
                    q0, q1, q2, q3 = load4(coefficients, at + 4 * threads)
                    r0, r1, r2, r3 = load4(coefficients, at + 8 * threads)
                    s0, s1, s2, s3 = load4(coefficients, at + 12 * threads)
                    if with_energy:
                        square += squares(p0, p1) + squares(p2, p3) + squares(q0, q1) + squares(q2, q3)
                        square += squares(r0, r1) + squares(r2, r3) + squares(s0, s1) + squares(s2, s3)
                    smaller += less(p0, p1, p2, p3, bottom) + less(q0, q1, q2, q3, bottom)
                    smaller += less(r0, r1, r2, r3, bottom) + less(s0, s1, s2, s3, bottom)
                    inside |= (
                        within(p0, p1, p2, p3, bottom, top) | within(q0, q1, q2, q3, bottom, top) << 4
                        | within(r0, r1, r2, r3, bottom, top) << 8 | within(s0, s1, s2, s3, bottom, top) << 12
                    ) << 4 * j  # fmt: skip
            else:
                for j in range(8):
                    at = start + 4 * (j * threads + thread)
                    for i in range(at, at + 4 if at + 4 < last else last):
                        d = coefficients[source + i]
                        if with_energy:
                            square += squares(d, number(0))
                        smaller += less(d, infinite, infinite, infinite, bottom)
                        inside |= (1 if bottom <= abs(d) <= top else 0) << 4 * j + i - at
            while inside != 0:
                i = cuda.ffs(inside) - 1
                inside &= inside - 1
                at = source + start + 4 * ((i >> 2) * threads + thread) + (i & 3)
                cuda.atomic.add(histogram, bin_of(keys[at], low, shift), 1)
                if listing:
                    i = cuda.atomic.add(tally, 1, 1)
                    if i < STAGE:
                        staged[i] = abs(coefficients[at])
            if listing:
                cuda.syncthreads()
                size = tally[1]
                cuda.syncthreads()
                if thread == 0:
                    # a full stage makes the list too long to be valid
                    place_in_list[0] = cuda.atomic.add(state, field + LISTED, size if size <= STAGE else longest + 1)
                    tally[1] = 0
                cuda.syncthreads()
                target = place_in_list[0]
                if size <= STAGE and target + size <= longest:
                    for i in range(thread, size, threads):
                        coefficients[target_list + target + i] = staged[i]
                cuda.syncthreads()
        if with_energy:
            sums[thread] = square
            total(sums, thread)
            if thread == 0:
                partial[(row + 1) * cuda.gridDim.x - 1 - cuda.blockIdx.x] = sums[0]
        cuda.atomic.add(tally, 0, smaller)
        cuda.syncthreads()
        for j in range(bins_each):
            i = j * threads + thread
            if histogram[i] > 0:
                cuda.atomic.add(counts, segment * BINS + i, np.int64(histogram[i]))
        if thread == 0:
            cuda.atomic.add(state, field + BELOW, np.int64(tally[0]))
        if not pooled and last_of(parts, state, field, tally):
            narrower(sizes, state, counts, edge_keys, middle, segment, scratch)

    @device
    def bin_or_below(bits, low, shift, histogram):
        """Count a listed value in its bin; 1 if it lies below the window."""
        place = bin_of(bits, low, shift)
        if place < np.uint64(BINS):
            cuda.atomic.add(histogram, place, 1)
        return 1 if np.int64(bits) < low else 0  # of |d|: there is no sign to mask

    @compiled
    def settle(
        keys, ends, samples, rows, groups, parts, sizes, state, counts, edge_keys, middle,
    ):  # fmt: skip
        """A pass over the lists alone, ``parts`` blocks for each: the next window, or the middle values."""
        histogram = cuda.shared.array(BINS, np.int32)
        scratch = cuda.shared.array(514, np.int64)
        least = cuda.shared.array(1, np.int64)
        tally = cuda.shared.array(3, np.int32)
        thread = cuda.threadIdx.x
        row = cuda.blockIdx.y + ROWS * cuda.blockIdx.z
        if row >= rows:
            return
        level, part = cuda.blockIdx.x // parts, cuda.blockIdx.x % parts
        n, begin = shorter(samples), 0
        for _ in range(level):
            begin += rows * np.int64((n + 3) & ~3)
            n = shorter(n)
        stride = np.int64((n + 3) & ~3)
        segment = level * groups + (row if groups > 1 else 0)
        field = segment * FIELDS
        low, shift, listed = state[field + LOW], state[field + SHIFT], state[field + LISTED]
        if (shift == DONE and state[field + NEXT] == 0) or listed == 0 or listed > room(stride):
            return
        source = ends + room(begin + row * stride)
        chunk = ((listed + parts - 1) // parts + 3) & ~3
        first, last = part * chunk, min((part + 1) * chunk, listed)
        if shift == DONE:
            next_above(keys, source, first, last, low, least, middle, segment)
            if last_of(parts, state, field, tally) and thread == 0 and middle[2 * segment + 1] < infinity:
                state[field + NEXT] = 0
            return
        for j in range(bins_each):
            i = j * threads + thread
            histogram[i] = 0
        if thread == 0:
            tally[0] = 0
        cuda.syncthreads()
        smaller = 0
        for i in range(first + 4 * thread, last, 4 * threads):
            k0, k1, k2, k3 = load4(keys, source + i)
            smaller += bin_or_below(k0, low, shift, histogram)
            if i + 1 < last:
                smaller += bin_or_below(k1, low, shift, histogram)
            if i + 2 < last:
                smaller += bin_or_below(k2, low, shift, histogram)
            if i + 3 < last:
                smaller += bin_or_below(k3, low, shift, histogram)
        cuda.atomic.add(tally, 0, smaller)
        cuda.syncthreads()
        for j in range(bins_each):
            i = j * threads + thread
            if histogram[i] > 0:
                cuda.atomic.add(counts, segment * BINS + i, np.int64(histogram[i]))
        if thread == 0:
            cuda.atomic.add(state, field + BELOW, np.int64(tally[0]))
        if last_of(parts, state, field, tally):
            narrower(sizes, state, counts, edge_keys, middle, segment, scratch)

    @compiled
    def narrow(sizes, state, counts, edge_keys, middle):
        """After a pass over several batches: every segment's next window, or its two middle values."""
        scratch = cuda.shared.array(514, np.int64)
        if state[cuda.blockIdx.x * FIELDS + SHIFT] != DONE:
            narrower(sizes, state, counts, edge_keys, middle, cuda.blockIdx.x, scratch)
        elif cuda.threadIdx.x == 0:
            state[cuda.blockIdx.x * FIELDS + NEXT] = 0

    @compiled
    def gather(partial, samples, rows, groups, across, chunk, again, energy):
        """Sums of squares of every segment from those of its chunks, always in the same order."""
        sums = cuda.shared.array(threads, np.float64)
        thread, segment = cuda.threadIdx.x, cuda.blockIdx.x
        level, group = segment // groups, segment - segment // groups * groups
        n, begin = shorter(samples), 0
        for _ in range(level):
            begin += (n + chunk - 1) // chunk
            n = shorter(n)
        here = (n + chunk - 1) // chunk
        first, last = (group, group + 1) if groups > 1 else (0, rows)
        square = 0.0
        for i in range(thread, (last - first) * here, threads):
            square += partial[(first + i // here) * across + begin + i % here]
        sums[thread] = square
        total(sums, thread)
        if thread == 0:
            energy[segment] = sums[0] + (energy[segment] if again else 0.0)

    return {f.__name__: f for f in (whole, sample, draw, scan, settle, narrow, gather)}
