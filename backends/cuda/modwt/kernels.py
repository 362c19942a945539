"""Kernels of the MODWT: a tile of a row through several levels in shared memory (`modwt_tiling`).

What the transform is: `wavefilt.decomposition`; which coefficients beyond the samples are kept:
`wavefilt.wavelets.boundary`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from wavefilt.backends.cuda.dwt.tiling import NOT_FINITE, ROWS, up4
from wavefilt.backends.cuda.runtime.compiler import kernel
from wavefilt.backends.cuda.runtime.interfaces import DeviceFunction, Kernel
from wavefilt.backends.cuda.runtime.taps import Tap, numbered
from wavefilt.backends.cuda.runtime.target import cuda, device, in_turn
from wavefilt.backends.cuda.runtime.wide import filters, load4, store
from wavefilt.backends.cuda.thresholding.functions import shrink
from wavefilt.wavelets import boundary

from .tiling import QUADS, Tiling

ROWS_EACH = 8
"""Rows of which a thread of `extend` writes a position: where it comes from takes longer than to copy it."""


@cache
def extend(mode: str, dtype: str, threads: int) -> Kernel:
    """Kernel that writes ``length`` samples of the rows' extension from ``first`` on, telling what is not finite.

    From position 0 on they lie ``skipped`` samples further.
    """
    number, code = np.dtype(dtype).type, boundary.code(mode)
    place = device(boundary.extension)

    @kernel(mode, dtype, threads)
    def extend_kernel(x, pitch, samples, rows, first, skipped, target, target_pitch, length, flags):
        i = cuda.blockIdx.x * threads + cuda.threadIdx.x
        row = (cuda.blockIdx.y + ROWS * cuda.blockIdx.z) * ROWS_EACH
        if i >= length:
            return
        position = first + i if first + i < 0 else first + i + skipped
        j, a, k, b, m, c = place(code, position, samples)
        end = min(row + ROWS_EACH, rows)
        while row < end:
            start, value = row * pitch, number(0)
            if a:
                value += number(a) * x[start + j]
            if b:
                value += number(b) * x[start + k]
            if c:
                value += number(c) * x[start + m]
            target[row * target_pitch + i] = value
            if value - value != 0:
                flags[NOT_FINITE] = 1
            row += 1

    return extend_kernel


@cache
def _distance(width: int) -> DeviceFunction:
    """Device function: how far an element of a tile lies from the tile's first, runs ``width << spread`` apart."""
    shift = width.bit_length() - 1

    @device
    def distance(f, spread):
        return ((f >> shift) << (shift + spread)) + (f & (width - 1))

    return distance


@cache
def _loading(tiling: Tiling, i: int, circular: bool, finest: bool, function: str, dtype: str) -> DeviceFunction:
    """Device function: what the i-th step reads of a tile of ``x``, shrunk, into shared memory from ``offset`` on.

    A place is where the element of position 0 of row 0 lies, how far rows are apart, the first position that is there
    and the end of those. With ``finest`` it is samples, checked for being finite and extended: ``beyond`` the ends.
    """
    zero, threads = np.dtype(dtype).type(0), tiling.threads
    head, tail = tiling.heads[i], tiling.tails[i]
    rounds = -(-(head + tiling.most + tail + 3 >> 2) // threads)
    distance, shrunk = _distance(tiling.width), shrink(function, dtype)

    @device
    def end(x, place, row, p, beyond):
        start, pitch, low, high = place
        extension, before, after, _ = beyond
        value = zero
        if circular:
            p %= high
        if low <= p < high:
            value = x[start + row * pitch + p]
        elif finest and -before <= p < high + after:
            value = extension[row * (before + after) + before + (p if p < 0 else p - high)]
        return value

    @device
    def put(target, offset, v, values, limit, beyond):
        a, b, c, d = values
        if finest and (a - a) + (b - b) + (c - c) + (d - d) != 0:
            beyond[3][NOT_FINITE] = 1
        store(target, offset + 4 * v, (shrunk(a, limit), shrunk(b, limit), shrunk(c, limit), shrunk(d, limit)))

    @device
    def four(x, place, row, p, beyond):
        start, pitch, low, high = place
        extension, before, after, _ = beyond
        if finest and (p < 0 or p >= high):
            e = min(max(p if p < 0 else p - high, -before), after - 4)
            return load4(extension, row * (before + after) + before + e)
        p = min(max(p, low & ~3), (high - 1) & ~3)  # what lies beyond is not used
        return load4(x, start + row * pitch + p)

    @device
    def load(target, offset, x, place, aligned, row, base, spread, tile, limit, beyond):
        start, pitch, low, high = place
        thread = cuda.threadIdx.x
        last = (head + tile + tail + 3 >> 2) - 1
        if aligned and base + distance(-head, spread) >= low and base + distance(4 * last + 3 - head, spread) < high:
            for j in range(rounds):
                v = min(thread + j * threads, last)  # some read the last again rather than to branch
                p = base + distance(4 * v - head, spread)
                put(target, offset, v, load4(x, start + row * pitch + p), limit, beyond)
        elif not circular and aligned and (not finest or (high & 3 == 0 and beyond[1] > 0 and beyond[2] > 0)):
            for j in range(rounds):
                v = min(thread + j * threads, last)
                values = four(x, place, row, base + distance(4 * v - head, spread), beyond)
                put(target, offset, v, values, limit, beyond)
        else:
            for v in range(thread, last + 1, threads):
                p = base + distance(4 * v - head, spread)
                if aligned and low <= p and p + 3 < high:
                    values = load4(x, start + row * pitch + p)
                else:
                    values = (
                        end(x, place, row, p, beyond),
                        end(x, place, row, p + 1, beyond),
                        end(x, place, row, p + 2, beyond),
                        end(x, place, row, p + 3, beyond),
                    )
                put(target, offset, v, values, limit, beyond)

    return load


@cache
def _storing(tiling: Tiling, i: int) -> DeviceFunction:
    """Device function: the i-th step's three quads that lie in the tile itself, to their place in ``x``."""
    distance, apart = _distance(tiling.width), max(tiling.steps[i], 4)

    @device
    def end(x, at, value, p, low, high):
        if low <= p < high:
            x[at + p] = value

    @device
    def four(x, at, aligned, f, base, spread, tile, low, high, values):
        if 0 <= f < tile:
            p = base + distance(f, spread)
            if aligned and low <= p and p + 3 < high:
                store(x, at + p, values)
            else:
                a, b, c, d = values
                end(x, at, a, p, low, high)
                end(x, at, b, p + 1, low, high)
                end(x, at, c, p + 2, low, high)
                end(x, at, d, p + 3, low, high)

    @device
    def put(x, place, aligned, row, base, spread, tile, f, first, second, third):
        start, pitch, low, high = place
        at = start + row * pitch
        four(x, at, aligned, f, base, spread, tile, low, high, first)
        four(x, at, aligned, f + apart, base, spread, tile, low, high, second)
        four(x, at, aligned, f + 2 * apart, base, spread, tile, low, high, third)

    return put


def _reversed(lo: tuple[float, ...], hi: tuple[float, ...], dtype: str) -> tuple[tuple[Tap, ...], ...]:
    """Filters over sqrt 2 from the last tap on, with their taps numbered."""
    return numbered(*((np.array(h[::-1]) / 2**0.5).astype(dtype).tolist() for h in (lo, hi)))


def _filters(tiling: Tiling, i: int, *outputs: Sequence[tuple[tuple[Tap, ...], int]]) -> DeviceFunction:
    """`wide.filters` of three quads of each output at the i-th step: (filter of `_reversed`, window) that it sums."""
    step, taps = tiling.steps[i], tiling.taps
    skip, apart = up4(tiling.lead(step)) - tiling.lead(step), max(step, 4)
    return filters(
        [
            [(h[q], w, skip + m * apart + c + q * step) for q in range(taps) for h, w in output]
            for output in outputs
            for m in range(QUADS)
            for c in range(4)
        ],
        4,
    )


def _item(tiling: Tiling, i: int) -> DeviceFunction:
    """Device function: the first element that this thread computes at the i-th step, and whether there is one."""
    each, head, tail = max(tiling.steps[i], 4) // 4, tiling.heads[i + 1], tiling.tails[i + 1]

    @device
    def item(tile):
        thread = cuda.threadIdx.x
        quads = head + tile + tail + 3 >> 2
        first = thread % each + thread // each * (QUADS * each)
        return 4 * first - head, thread < (quads + QUADS * each - 1) // (QUADS * each) * each

    return item


def registers(dtype: str, taps: int) -> int | None:
    """Registers for a thread of `analysis`: of short filters ptxas would load all windows first; longer ones spill."""
    return 64 if dtype == "float32" and taps <= 8 else None


@cache
def analysis(
    lo: tuple[float, ...], hi: tuple[float, ...], circular: bool, finest: bool, dtype: str, tiling: Tiling
) -> Kernel:
    """Kernel of the details of some levels and the approximation coefficients of the last.

    Places are as `_loading` has them; those of details are finest first. ``finest`` if the launch reads samples.
    """
    number, room, width, levels = np.dtype(dtype).type, tiling.room, tiling.width, tiling.levels
    load = _loading(tiling, 0, circular, finest, "keep", dtype)
    low_pass, high_pass = _reversed(lo, hi, dtype)

    def level(i: int) -> DeviceFunction:
        """Device function: the i-th step, of one level."""
        apply = _filters(tiling, i, [(low_pass, 0)], [(high_pass, 0)])
        item, put, apart = _item(tiling, i), _storing(tiling, i), max(tiling.steps[i], 4)
        own, begin = tiling.heads[0], tiling.heads[0] - up4(tiling.lead(tiling.steps[i]))
        last = i == levels - 1

        @device
        def step(buffer, details, places, output, place, row, base, spread, tile):
            f, busy = item(tile)
            cuda.syncthreads()
            if busy:
                out = apply(buffer, begin + f, begin + f)
            if not last:
                cuda.syncthreads()
            if busy:
                if last:
                    put(output, place, True, row, base, spread, tile, f, out[0:4], out[4:8], out[8:12])
                else:
                    store(buffer, own + f, out[0:4])
                    store(buffer, own + f + apart, out[4:8])
                    store(buffer, own + f + 2 * apart, out[8:12])
                put(details, places[i], True, row, base, spread, tile, f, out[12:16], out[16:20], out[20:24])

        return step

    compute = in_turn(*map(level, range(levels)))

    @kernel(circular, finest, dtype, tiling, taps=low_pass + high_pass, registers=registers(dtype, tiling.taps))
    def analysis_kernel(
        v, source, aligned, extension, before, after, rows, first, tile, spread, details, places, output, place, flags
    ):
        block = cuda.blockIdx.x
        row = cuda.blockIdx.y + ROWS * cuda.blockIdx.z
        if row >= rows:
            return
        base = first + (block >> spread) * (tile << spread) + (block & ((1 << spread) - 1)) * width
        buffer = cuda.shared.array(room, number)
        beyond = extension, before, after, flags
        load(buffer, 0, v, source, aligned, row, base, spread, tile, number(0), beyond)
        compute(buffer, details, places, output, place, row, base, spread, tile)

    return analysis_kernel


@cache
def synthesis(
    lo: tuple[float, ...], hi: tuple[float, ...], circular: bool, dtype: str, tiling: Tiling, function: str
) -> Kernel:
    """Kernel of some levels of the inverse: approximation coefficients or samples, from those and details.

    These are shrunk as they are loaded; the thresholds of the finest of its levels begin at ``first_threshold``.
    """
    number, room, width, levels = np.dtype(dtype).type, tiling.room, tiling.width, tiling.levels
    both = 2 * room
    low_pass, high_pass = _reversed(lo, hi, dtype)
    keeps, load_lowpass = function == "keep", _loading(tiling, 0, circular, False, "keep", dtype)

    def level(i: int) -> DeviceFunction:
        """Device function: the i-th step, of one level."""
        apply = _filters(tiling, i, [(low_pass, 0), (high_pass, 1)])
        load = _loading(tiling, i, circular, False, function, dtype)
        item, put, apart = _item(tiling, i), _storing(tiling, i), max(tiling.steps[i], 4)
        own, begin = tiling.heads[0], tiling.heads[0] - up4(tiling.lead(tiling.steps[i]))
        offset, which, last = room + tiling.heads[0] - tiling.heads[i], levels - 1 - i, i == levels - 1

        @device
        def step(buffer, details, places, thresholds, limit_place, rows, beyond, y, place, aligned, where):
            row, base, spread, tile = where
            limit = number(0) if keeps else thresholds[limit_place + which * rows]
            load(buffer, offset, details, places[which], True, row, base, spread, tile, limit, beyond)
            f, busy = item(tile)
            cuda.syncthreads()
            if busy:
                out = apply(buffer, begin + f, room + begin + f)
            if not last:
                cuda.syncthreads()
            if busy:
                if last:
                    put(y, place, aligned, row, base, spread, tile, f, out[0:4], out[4:8], out[8:12])
                else:
                    store(buffer, own + f, out[0:4])
                    store(buffer, own + f + apart, out[4:8])
                    store(buffer, own + f + 2 * apart, out[8:12])

        return step

    compute = in_turn(*map(level, range(levels)))

    @kernel(circular, dtype, tiling, function, taps=low_pass + high_pass)
    def synthesis_kernel(
        v, source, details, places, thresholds, first_threshold, rows, first, tile, spread, y, place, aligned
    ):
        block = cuda.blockIdx.x
        row = cuda.blockIdx.y + ROWS * cuda.blockIdx.z
        if row >= rows:
            return
        base = first + (block >> spread) * (tile << spread) + (block & ((1 << spread) - 1)) * width
        buffer = cuda.shared.array(both, number)
        beyond = v, 0, 0, v
        load_lowpass(buffer, 0, v, source, True, row, base, spread, tile, number(0), beyond)
        where, limit_place = (row, base, spread, tile), first_threshold + row
        compute(buffer, details, places, thresholds, limit_place, rows, beyond, y, place, aligned, where)

    return synthesis_kernel
