"""The inverse kernel: coefficients of a tile, shrunk as they are loaded, through several levels in shared memory.

A thread computes four pairs of samples at a time: more per index computed and per sample read.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np

from wavefilt.backends.cuda.runtime.compiler import kernel
from wavefilt.backends.cuda.runtime.interfaces import DeviceFunction, Kernel
from wavefilt.backends.cuda.runtime.target import cuda, device, in_turn, registers_for
from wavefilt.backends.cuda.runtime.wide import filters, load4, store
from wavefilt.backends.cuda.thresholding.functions import shrink

from .tiling import NOT_FINITE, ROWS, Filter, FusedLevels, Tiling, inverse_tiling, up4

PAIRS = 4


@dataclass(frozen=True)
class _Inverse:
    """What a kernel is compiled for, and where in shared memory it keeps details of all levels, then approximations."""

    of: FusedLevels
    function: str

    @cached_property
    def cut(self) -> Tiling:
        return inverse_tiling(self.of.filter, self.of.tile, self.of.levels)

    @property
    def before(self) -> int:
        """A tile's halo at every level is twice this, and `after`."""
        return up4(self.of.filter.low)

    @property
    def after(self) -> int:
        return up4(2 * self.of.filter.high)

    @property
    def room(self) -> int:
        """What a level takes in shared memory beyond its coefficients."""
        return self.of.filter.taps + 2 * self.before + self.after + 8

    @cached_property
    def sizes(self) -> list[int]:
        """Elements of each level's details."""
        return [up4((self.cut.capacity >> level) + self.room) for level in range(1, self.of.levels + 1)]

    def lowpass_places(self, level: int) -> tuple[int, int]:
        """Where the approximation of a level begins, and that which is computed from it."""
        first = sum(self.sizes)
        second = first + self.sizes[0]
        return (first, second) if level & 1 else (second, first)

    @property
    def shared(self) -> int:
        """Elements of shared memory."""
        return self.lowpass_places(0)[0] + (self.sizes[1] if self.of.levels > 1 else 0)


def synthesis(f: Filter, taps: Sequence[Sequence[float]], pairs: int) -> DeviceFunction:
    """y[2p + s] = sum over j of rec[2j + parity] c[p + top - j] for some pairs; windows begin at p - before."""
    outputs = []
    for pair in range(pairs):
        for s, top in enumerate(f.tops):
            parity, place = (f.lead + s) % 2, up4(f.low) + pair + top
            terms = [
                (h[2 * j + parity], w, place - j) for j in reversed(range(f.taps // 2)) for w, h in enumerate(taps)
            ]
            outputs.append(terms)
    return filters(outputs, pairs)


@cache
def _synthesis(of: FusedLevels, pairs: int) -> DeviceFunction:
    return synthesis(of.filter, of.numbered, pairs)


@device
def check(total, flags):
    """Details that overflowed make samples that are not finite; one sum tells for all of a thread's."""
    if total - total != 0:
        flags[NOT_FINITE] = 1


@cache
def copying(threads: int) -> DeviceFunction:
    """Device function: a stretch of samples as they are."""

    @device
    def copy(x, y, start, stop, flags):
        for i in range(start + cuda.threadIdx.x, stop, threads):
            y[i] = x[i]
            check(x[i], flags)

    return copy


@cache
def _boundary_loading(c: _Inverse) -> DeviceFunction:
    """Device function: a level of a boundary block, whose row lacks ``gap`` coefficients from ``joint`` on."""
    threads, periodized, before, after = c.of.threads, c.of.periodized, c.before, c.after
    shrunk = shrink(c.function, c.of.dtype)

    @device
    def load(buffer, approximation, details, begin, source, place, lowpass, length, joint, gap, coarsest, t):
        thread = cuda.threadIdx.x
        if periodized:
            for v in range(thread, length + 2 * before + after, threads):
                m = (v - 2 * before) % length
                at = source + (m if m < joint else m + gap)
                buffer[place + v] = shrunk(details[begin + at], t)
                if coarsest:
                    buffer[lowpass + v] = approximation[at]
        else:  # no coefficient from beyond the ends is used
            for v in range(thread, (length + 3) >> 2, threads):
                at = source + 4 * v + (0 if 4 * v < joint else gap)
                d0, d1, d2, d3 = load4(details, begin + at)
                q = place + 2 * before + 4 * v
                store(buffer, q, (shrunk(d0, t), shrunk(d1, t), shrunk(d2, t), shrunk(d3, t)))
                if coarsest:
                    store(buffer, lowpass + 2 * before + 4 * v, load4(approximation, at))

    return load


@cache
def _boundary_level(c: _Inverse) -> DeviceFunction:
    """Device function: ``count`` samples of a level of a boundary block, into shared memory or (finest) into ``y``."""
    threads, tile_left, tile_margin = c.of.threads, c.cut.left << c.of.levels, c.cut.left + c.cut.margin << c.of.levels
    synthesise = _synthesis(c.of, 2)

    @device
    def compute(buffer, lowpass, place, halo, output, count, finer, y, start, aligned, below, tiles, gap, flags):
        for v in range(cuda.threadIdx.x, (count + 3) >> 2, threads):
            y0, y1, y2, y3 = synthesise(buffer, lowpass + halo + 2 * v, place + halo + 2 * v)
            u = 4 * v
            if finer > 0:
                store(buffer, output + u, (y0, y1, y2, y3))
                continue
            at = start + u
            if tiles > 0 and u >= tile_left:
                if u < tile_margin:
                    continue
                at += gap
            y0, y1, y2, y3 = y0 - below, y1 - below, y2 - below, y3 - below
            if aligned and u + 3 < count:
                store(y, at, (y0, y1, y2, y3))
                check(y0 + y1 + y2 + y3, flags)
                continue
            for i in range(min(count - u, 4)):
                value = y0 if i == 0 else y1 if i == 1 else y2 if i == 2 else y3
                y[at + i] = value
                check(value, flags)

    return compute


@cache
def _boundary(c: _Inverse) -> DeviceFunction:
    """Device function: the boundary block, the row without its middle."""
    levels, tile, threads, periodized, taps = c.of.levels, c.of.tile, c.of.threads, c.of.periodized, c.of.filter.taps
    seam, margin, capacity, room, before, after = c.cut.seam, c.cut.margin, c.cut.capacity, c.room, c.before, c.after
    number, keeps = np.dtype(c.of.dtype).type, c.function == "keep"
    first_lowpass, second_lowpass = c.lowpass_places(1)
    load, compute = _boundary_loading(c), _boundary_level(c)

    @device
    def both_ends(buffer, approximation, details, offset, thresholds, first, to, samples, row, rows, tiles, flags):
        (y, pitch, aligned, below), thread = to, cuda.threadIdx.x
        gap = tiles * tile - (margin << levels) if tiles > 0 else 0
        n = samples
        place, begin = 0, offset
        for level in range(1, levels + 1):
            n = (n + 1) >> 1 if periodized else (n + taps - 1) >> 1
            stride = (n + 3) & ~3
            coarser = levels - level
            t = number(0) if keeps else thresholds[(first + level - 1) * rows + row]
            lowpass = first_lowpass if level & 1 else second_lowpass
            here = gap >> level
            joint, source = seam << coarser, row * stride
            kept = n - here
            load(buffer, approximation, details, begin, source, place, lowpass, kept, joint, here, coarser == 0, t)
            begin += rows * stride
            place += ((capacity >> level) + room + 3) & ~3
        cuda.syncthreads()

        for level in range(levels, 0, -1):
            finer = level - 1
            place -= ((capacity >> level) + room + 3) & ~3
            lowpass = first_lowpass if level & 1 else second_lowpass
            output = second_lowpass if level & 1 else first_lowpass
            length = samples
            for _ in range(finer):
                length = (length + 1) >> 1 if periodized else (length + taps - 1) >> 1
            length -= gap >> finer
            count = length
            halo = before
            if finer > 0:
                halo = 0
                count += 2 * before + after
            start = row * pitch
            compute(buffer, lowpass, place, halo, output, count, finer, y, start, aligned, below, tiles, gap, flags)
            cuda.syncthreads()
            if periodized and finer > 0:
                for t in range(thread, 2 * before + after, threads):
                    m = t - 2 * before if t < 2 * before else length + t - 2 * before
                    buffer[output + 2 * before + m] = buffer[output + 2 * before + m % length]
                cuda.syncthreads()

    return both_ends


@cache
def _loading(c: _Inverse, parts: tuple[tuple[int, int, int], ...]) -> DeviceFunction:
    """Device function: groups of four details into shared memory, shrunk, and the approximation.

    A part is a level, its first group and how many there are, at most one a thread. All loads come before the
    first store, so that they are under way together.
    """
    (level, first_group, groups), *later = parts
    threads, number, keeps = c.of.threads, np.dtype(c.of.dtype).type, c.function == "keep"
    coarser, this, size = c.of.levels - level, level - 1, c.of.tile >> level
    place, (lowpass, _) = sum(c.sizes[:this]), c.lowpass_places(level)
    begins = (c.cut.left << coarser) - size - 2 * c.before
    shrunk = shrink(c.function, c.of.dtype)
    others = _loading(c, tuple(later)) if later else None

    @device
    def load(buffer, approximation, details, begin, stride, thresholds, first, row, rows, index):
        v = cuda.threadIdx.x + first_group
        coarse = row * stride[this] + index * size + begins + 4 * v
        d0 = d1 = d2 = d3 = a0 = a1 = a2 = a3 = number(0)
        if groups == threads or cuda.threadIdx.x < groups:
            d0, d1, d2, d3 = load4(details, begin[this] + coarse)
            if coarser == 0:
                a0, a1, a2, a3 = load4(approximation, coarse)
        if others is not None:
            others(buffer, approximation, details, begin, stride, thresholds, first, row, rows, index)
        t = number(0) if keeps else thresholds[(first + this) * rows + row]
        if groups == threads or cuda.threadIdx.x < groups:
            store(buffer, place + 4 * v, (shrunk(d0, t), shrunk(d1, t), shrunk(d2, t), shrunk(d3, t)))
            if coarser == 0:
                store(buffer, lowpass + 4 * v, (a0, a1, a2, a3))

    return load


@cache
def _interior(c: _Inverse, level: int) -> DeviceFunction:
    """Device function: a level of an interior tile, not the finest of the launch, all in shared memory."""
    threads, pairs = c.of.threads, PAIRS
    place, (lowpass, output) = sum(c.sizes[: level - 1]), c.lowpass_places(level)
    groups = -(-((c.of.tile >> (level - 1)) + 2 * c.before + c.after) // (2 * pairs))
    rounds, rest = groups // threads, groups % threads
    synthesise = _synthesis(c.of, pairs)

    @device
    def group(buffer, v):
        store(buffer, output + 2 * pairs * v, synthesise(buffer, lowpass + pairs * v, place + pairs * v))

    @device
    def step(buffer):
        for j in range(rounds):
            group(buffer, cuda.threadIdx.x + j * threads)
        if cuda.threadIdx.x < rest:
            group(buffer, cuda.threadIdx.x + rounds * threads)
        cuda.syncthreads()

    return step


@cache
def _finest(c: _Inverse) -> DeviceFunction:
    """Device function: the samples of an interior tile from its finest level in shared memory."""
    threads, pairs, before, (lowpass, _) = c.of.threads, PAIRS, c.before, c.lowpass_places(1)
    groups = c.of.tile // (2 * pairs)
    rounds, rest = groups // threads, groups % threads
    synthesise = _synthesis(c.of, pairs)

    @device
    def group(buffer, y, at, aligned, below, flags, v):
        y0, y1, y2, y3, y4, y5, y6, y7 = synthesise(buffer, lowpass + before + pairs * v, before + pairs * v)
        y0, y1, y2, y3 = y0 - below, y1 - below, y2 - below, y3 - below
        y4, y5, y6, y7 = y4 - below, y5 - below, y6 - below, y7 - below
        values = y0, y1, y2, y3, y4, y5, y6, y7
        check((y0 + y1) + (y2 + y3) + (y4 + y5) + (y6 + y7), flags)
        if aligned:
            store(y, at + 2 * pairs * v, values)
        else:
            for i in range(2 * pairs):
                y[at + 2 * pairs * v + i] = values[i]

    @device
    def finest(buffer, y, at, aligned, below, flags):
        thread = cuda.threadIdx.x
        for j in range(rounds):
            group(buffer, y, at, aligned, below, flags, thread + j * threads)
        if thread < rest:
            group(buffer, y, at, aligned, below, flags, thread + rounds * threads)

    return finest


@cache
def inverse(of: FusedLevels, function: str, fastmath: bool, centred: bool = False) -> Kernel:
    """Kernel of the levels ``of`` some reconstruction filters, details shrunk by ``function``; see `forward`.

    If ``centred``, their means are added to rows again.
    """
    c = _Inverse(of, function)
    levels, tile, threads, shared, number = of.levels, of.tile, of.threads, c.shared, np.dtype(of.dtype).type
    left, halo = c.cut.left, 2 * c.before + c.after
    quads = [((tile >> level) + halo) >> 2 for level in range(1, levels + 1)]
    load = _loading(
        c, tuple((i + 1, v, min(n - v, threads)) for i, n in enumerate(quads) for v in range(0, n, threads))
    )
    inner = in_turn(*(_interior(c, level) for level in range(levels, 1, -1)))
    finest, both_ends, copy = _finest(c), _boundary(c), copying(threads)
    limit = registers_for(of.dtype, of.filter.taps, of.periodized, function)

    @kernel(of.structure, function, centred, taps=sum(of.numbered, ()), registers=limit, fastmath=fastmath)
    def inverse_kernel(
        coarser,
        details,
        begin,
        stride,
        limits,
        first,
        y,
        pitch,
        aligned,
        samples,
        rows,
        tiles,
        flags,
        x,
        live,
        copies,
        means,
    ):
        """Details of the levels here are from ``begin``, a row takes ``stride``, their ``limits`` are from ``first``.

        With ``copies`` rows that are not ``live``, all of whose thresholds are 0, come from ``x``, bit for bit.
        """
        buffer = cuda.shared.array(shared, number)
        index = cuda.blockIdx.x
        row = cuda.blockIdx.y + ROWS * cuda.blockIdx.z
        if row >= rows:
            return
        at = row * pitch + (left << levels) + (index - 1) * tile
        if copies and live[row] == 0:
            if index == 0:
                last = at + (1 + tiles) * tile
                copy(x, y, row * pitch, min(at + tile, (row + 1) * pitch), flags)
                copy(x, y, last, (row + 1) * pitch, flags)
            else:
                copy(x, y, at, at + tile, flags)
            return
        below = -means[row] if centred else number(0)  # to subtract 0 is no instruction
        if index == 0:
            to = y, pitch, aligned, below
            both_ends(buffer, coarser, details, begin[0], limits, first, to, samples, row, rows, tiles, flags)
            return
        load(buffer, coarser, details, begin, stride, limits, first, row, rows, index)
        cuda.syncthreads()
        inner(buffer)
        finest(buffer, y, at, aligned, below, flags)

    return inverse_kernel
