"""The MODWT on the device: a tile of a row through several levels in shared memory, and back.

A tile is runs of ``width`` neighbouring samples, as far apart as the taps of the launch's finest level. Within it these
taps are ``width`` apart, the taps of the next level twice as far, and so on: all levels are computed alike. The finest
levels, whose taps are closer than RUN_BYTES, have tiles without gaps. Lengths are in elements of a tile:

    memory    run 0 ........ run 1 ........ run 2 ........      width elements each, width << spread apart
    tile      |run 0|run 1|run 2|...                            as loaded, with the reach of the taps around it
    level i   taps width << i apart                             outputs in the place of the inputs

A thread computes three quads of four outputs, the reach of the taps apart: an odd number, so that no two threads of a
warp meet in a bank, and no padding is needed. For the transform see `wavefilt.decomposition`, and for the coefficients
beyond the samples `wavefilt.wavelets.boundary`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np

from wavefilt.backends.cuda.dwt.tiling import NOT_FINITE, ROWS, grid, up4
from wavefilt.backends.cuda.options import KernelOptions
from wavefilt.backends.cuda.plan import ALONE, KEPT, Beside, Place, Plan, Shape, Shrinking
from wavefilt.backends.cuda.runtime.compiler import kernel
from wavefilt.backends.cuda.runtime.interfaces import Build, DeviceArray, DeviceFunction, Kernel, Stream
from wavefilt.backends.cuda.runtime.target import cuda, device, in_turn
from wavefilt.backends.cuda.runtime.wide import filters, load4, store
from wavefilt.backends.cuda.statistics.layout import Band, DetailLayout
from wavefilt.backends.cuda.thresholding import shrink
from wavefilt.wavelets import boundary

RUN_BYTES = 64  # two sectors of memory
BLOCK_BYTES = 12 << 10  # 256 threads for float32, 128 for float64
QUADS = 3  # of outputs that a thread computes
LEAST_OWN = 0.8  # least share of a block's outputs that is not halo
FILL = 256  # blocks, below which smaller tiles keep more multiprocessors at work


@dataclass(frozen=True)
class Tiling:
    """One launch of ``levels`` levels, forward or inverse."""

    taps: int
    width: int
    levels: int
    inverse: bool
    threads: int

    @cached_property
    def steps(self) -> list[int]:
        """How far apart the taps are, in the order of computing."""
        steps = [self.width << i for i in range(self.levels)]
        return steps[::-1] if self.inverse else steps

    def lead(self, step: int) -> int:
        """How far before an output its first tap lies."""
        return (self.taps // 2 - 1 + self.inverse) * step

    @cached_property
    def heads(self) -> list[int]:
        """Elements needed before the tile: of the input, and of each step's output."""
        return [sum(up4(self.lead(step)) for step in self.steps[i:]) for i in range(self.levels + 1)]

    @cached_property
    def tails(self) -> list[int]:
        """Elements needed after the tile."""
        return [sum((self.taps - 1) * s - self.lead(s) for s in self.steps[i:]) for i in range(self.levels + 1)]

    @property
    def unit(self) -> int:
        """Tiles are multiples of this."""
        return max(self.width, 4)

    @cached_property
    def most(self) -> int:
        """The largest tile of which every thread computes `QUADS` quads at a step; 0 where none fits."""
        tile = (4 * QUADS * self.threads - self.heads[1] - self.tails[1]) // self.unit * self.unit
        while tile > 0 and any(self._threads(i, tile) > self.threads for i in range(self.levels)):
            tile -= self.unit
        return max(tile, 0)

    def _threads(self, i: int, tile: int) -> int:
        """That the i-th step has work for."""
        apart = max(self.steps[i], 4) // 4
        quads = self.heads[i + 1] + tile + self.tails[i + 1] + 3 >> 2
        return -(-quads // (QUADS * apart)) * apart

    @cached_property
    def room(self) -> int:
        """Elements of shared memory for the input, in whose place outputs are put, and what is read beyond it."""
        ends = [up4(self.heads[0] + self.most + self.tails[0])]
        for i, step in enumerate(self.steps):
            computed = 4 * QUADS * self._threads(i, self.most)
            ends.append(up4(self.heads[0] - self.heads[i + 1] - self.lead(step) + computed + (self.taps - 1) * step))
        return max(ends) + 4

    def grid(self, spread: int, low: int, high: int, rows: int) -> tuple[int, int, int]:
        """First position, tile and blocks for the positions ``low`` to ``high`` of each row.

        Runs are ``width << spread`` samples apart.
        """
        first = -up4(-low)
        lines = -(-(high - first) // (self.unit << spread))
        largest = self.most // self.unit
        wanted = min(FILL // (rows << spread), -(-4 * lines // largest))
        blocks = max(-(-lines // largest), wanted)
        tile = -(-lines // blocks)
        return first, tile * self.unit, -(-lines // tile) << spread


def threads_for(dtype: str, threads: int) -> int:
    """Threads of a block that has ``threads`` at most."""
    return min(threads, BLOCK_BYTES // (4 * QUADS * np.dtype(dtype).itemsize))


@dataclass(frozen=True)
class Launch:
    """The levels from ``first`` to ``last`` (counted from 0, without this one), ``forward`` and ``inverse``.

    Runs are ``width << spread`` samples apart.
    """

    first: int
    last: int
    spread: int
    forward: Tiling
    inverse: Tiling


def launches(taps: int, level: int, start_level: int, dtype: str, threads: int) -> list[Launch]:
    """Return the fewest launches for all levels, finest first; the halo limits the coarse levels of a launch."""
    run = RUN_BYTES // np.dtype(dtype).itemsize
    made: list[Launch] = []
    while last := made[0].first if made else level:
        ways = [_launch(taps, first, last, start_level, run, threads) for first in range(last)]
        least = LEAST_OWN * 4 * QUADS * threads
        fitting = [way for way in ways if min(way.forward.most, way.inverse.most) >= least]
        made.insert(0, fitting[0] if fitting else ways[-1])
    return made


def _launch(taps: int, first: int, last: int, start_level: int, run: int, threads: int) -> Launch:
    width = min(1 << (start_level + first), run)
    forward, inverse = (Tiling(taps, width, last - first, back, threads) for back in (False, True))
    return Launch(first, last, start_level + first - width.bit_length() + 1, forward, inverse)


class At(NamedTuple):
    """The place of rows: element 0 of row 0, elements from row to row, the first position stored, and the end."""

    start: int
    pitch: int
    low: int
    high: int


class Rows(NamedTuple):
    """An array with its place, and whether rows are aligned to 16 bytes."""

    array: DeviceArray
    at: At
    aligned: bool


class Bands(NamedTuple):
    """Details of some levels, finest first."""

    array: DeviceArray
    places: tuple[At, ...]


class Beyond(NamedTuple):
    """The extension of rows: samples before and after each, and flags for samples that are not finite."""

    extension: DeviceArray
    before: int
    after: int
    flags: DeviceArray


class Cut(NamedTuple):
    """How rows are cut up: the first position, elements of a tile, and runs ``width << spread`` apart."""

    first: int
    tile: int
    spread: int


class Limits(NamedTuple):
    """Thresholds, and the index of the first one of a launch's finest level."""

    array: DeviceArray
    first: int


ROWS_EACH = 8
"""Rows of which a thread of `extend` writes a position: where it comes from takes longer than to copy it."""


@cache
def extend(mode: str, build: Build) -> Kernel:
    """Kernel that writes ``length`` samples of the rows' extension from ``first`` on, flagging what is not finite.

    From position 0 on they lie ``skipped`` samples further.
    """
    number, code, threads = np.dtype(build.dtype).type, boundary.code(mode), build.threads
    place = device(boundary.extension)

    @kernel(build, mode)
    def extend_kernel(x, samples, rows, first, skipped, target, length, flags):
        i = cuda.blockIdx.x * threads + cuda.threadIdx.x
        row = (cuda.blockIdx.y + ROWS * cuda.blockIdx.z) * ROWS_EACH
        if i >= length:
            return
        position = first + i if first + i < 0 else first + i + skipped
        j, a, k, b, m, c = place(code, position, samples)
        end = min(row + ROWS_EACH, rows)
        while row < end:
            start, value = row * samples, number(0)
            if a:
                value += number(a) * x[start + j]
            if b:
                value += number(b) * x[start + k]
            if c:
                value += number(c) * x[start + m]
            target[row * length + i] = value
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
    """Device function: the input of the i-th step for a tile, shrunk, into shared memory from ``offset`` on.

    With ``finest`` it is samples, checked for being finite and extended: ``beyond`` the ends.
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
    def load(target, offset, rows, row, base, cut, limit, beyond):
        x, place, aligned = rows
        start, pitch, low, high = place
        tile, spread = cut.tile, cut.spread
        thread = cuda.threadIdx.x
        last = (head + tile + tail + 3 >> 2) - 1
        if aligned and base + distance(-head, spread) >= low and base + distance(4 * last + 3 - head, spread) < high:
            for j in range(rounds):
                v = min(thread + j * threads, last)  # some read the last again rather than to branch
                p = base + distance(4 * v - head, spread)
                put(target, offset, v, load4(x, start + row * pitch + p), limit, beyond)
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
    def put(x, place, aligned, row, base, cut, f, values):
        start, pitch, low, high = place
        at, spread, tile = start + row * pitch, cut.spread, cut.tile
        four(x, at, aligned, f, base, spread, tile, low, high, values[0:4])
        four(x, at, aligned, f + apart, base, spread, tile, low, high, values[4:8])
        four(x, at, aligned, f + 2 * apart, base, spread, tile, low, high, values[8:12])

    return put


def _reversed(taps: tuple[float, ...], dtype: str) -> list[float]:
    """Return the taps over sqrt 2, the last one first."""
    return (np.array(taps[::-1]) / 2**0.5).astype(dtype).tolist()  # type: ignore[no-any-return]


def _filters(tiling: Tiling, i: int, *outputs: Sequence[tuple[list[float], int]]) -> DeviceFunction:
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


def registers(dtype: str, tiling: Tiling) -> int | None:
    """Registers for a thread: of short filters ptxas would load all windows first; longer ones spill."""
    return 64 if dtype == "float32" and tiling.taps <= 8 and not tiling.inverse else None


@cache
def _step(
    lo: tuple[float, ...], hi: tuple[float, ...], circular: bool, build: Build, tiling: Tiling, function: str, i: int
) -> DeviceFunction:
    """Device function: the i-th step, of one level. Details are written, or, of the inverse, read and shrunk."""
    dtype, step, room, inverse = build.dtype, tiling.steps[i], tiling.room, tiling.inverse
    low_pass, high_pass, number = _reversed(lo, dtype), _reversed(hi, dtype), np.dtype(dtype).type
    outputs = [[(low_pass, 0), (high_pass, 1)]] if inverse else [[(low_pass, 0)], [(high_pass, 0)]]
    apply, item, put, apart = _filters(tiling, i, *outputs), _item(tiling, i), _storing(tiling, i), max(step, 4)
    load, keeps = _loading(tiling, i, circular, False, function, dtype), function == "keep"
    own, begin, last = tiling.heads[0], tiling.heads[0] - up4(tiling.lead(step)), i == tiling.levels - 1
    offset, which = room + own - tiling.heads[i], tiling.levels - 1 - i if inverse else i

    @device
    def compute(buffer, bands, limits, rows, beyond, output, row, base, cut):
        if inverse:
            limit = number(0) if keeps else limits.array[limits.first + row + which * rows]
            load(buffer, offset, (bands.array, bands.places[which], True), row, base, cut, limit, beyond)
        f, busy = item(cut.tile)
        cuda.syncthreads()
        if busy:
            out = apply(buffer, (begin + f, room + begin + f) if inverse else (begin + f,))
        if not last:
            cuda.syncthreads()
        if busy:
            if last:
                put(output.array, output.at, output.aligned or not inverse, row, base, cut, f, out[0:12])
            else:
                store(buffer, own + f, out[0:4])
                store(buffer, own + f + apart, out[4:8])
                store(buffer, own + f + 2 * apart, out[8:12])
            if not inverse:
                put(bands.array, bands.places[which], True, row, base, cut, f, out[12:24])

    return compute


@cache
def transform(
    lo: tuple[float, ...],
    hi: tuple[float, ...],
    circular: bool,
    build: Build,
    tiling: Tiling,
    finest: bool = False,
    function: str = "keep",
) -> Kernel:
    """Kernel of some levels: from ``source`` to the details and the approximation of the last, or back.

    ``finest`` if samples are read, which are extended ``beyond`` their ends and checked. Of the inverse, details are
    shrunk by a ``function`` as they are loaded.
    """
    number, width, room = np.dtype(build.dtype).type, tiling.width, (1 + tiling.inverse) * tiling.room
    load = _loading(tiling, 0, circular, finest, "keep", build.dtype)
    steps = (_step(lo, hi, circular, build, tiling, function, i) for i in range(tiling.levels))
    compute, limit, inverse = in_turn(*steps), registers(build.dtype, tiling), tiling.inverse

    @kernel(build, lo, hi, circular, tiling, finest, function, registers=limit)
    def modwt_kernel(source, beyond, bands, limits, rows, cut, output):
        block = cuda.blockIdx.x
        row = cuda.blockIdx.y + ROWS * cuda.blockIdx.z
        if row >= rows:
            return
        first, tile, spread = cut
        base = first + (block >> spread) * (tile << spread) + (block & ((1 << spread) - 1)) * width
        buffer = cuda.shared.array(room, number)
        rows_of = source.array, source.at, source.aligned or inverse
        load(buffer, 0, rows_of, row, base, cut, number(0), beyond)
        compute(buffer, bands, limits, rows, beyond, output, row, base, cut)

    return modwt_kernel


class ModwtPlan(Plan):
    """Launches of both transforms, and the (level + 1) to (level + 3) arrays of about the samples' size they need.

    Each launch but the coarsest writes one of two buffers of approximations in turn.
    """

    def __init__(self, shape: Shape, options: KernelOptions) -> None:
        super().__init__(shape, options)
        (filters,), (mode,), s = shape.filters, shape.modes, shape
        boundary.check_single(s.samples, mode)
        self._analysis, self._synthesis, taps = filters[:2], filters[2:], len(filters[0])
        self._circular = mode in boundary.ROUND
        self._mode = "periodic" if self._circular else mode
        self._tiles = self.build._replace(threads=threads_for(s.dtype, options.threads))
        self._launches = launches(taps, s.level, s.start_level, s.dtype, self._tiles.threads)
        self.launches = len(self._launches)
        kept = [boundary.modwt_kept(taps, mode, j, s.start_level) for j in range(s.level + 1)]
        self._kept_at = [self._place(ends) for ends in kept]
        needed = [boundary.modwt_needed(taps, mode, j, s.level, s.start_level) for j in range(s.level + 1)]
        self._needed_at, self._beyond = [self._place(ends) for ends in needed], needed[0]
        self._outside = self.buffer("beyond", max(s.rows * sum(self._beyond), 1))
        starts = [0]
        for _, pitch, _, _ in self._kept_at[1:]:
            starts.append(starts[-1] + s.rows * pitch)
        self._coarsest = slice(starts[-1], starts[-1] + s.rows * self._kept_at[-1][1])
        self._details = self.buffer("details", self._coarsest.stop)  # and the coarsest approximation
        self._places = [self._place(ends, start) for ends, start in zip(kept[1:], starts, strict=False)]
        bands = [(origin, pitch, s.samples, s.rows) for origin, pitch, _, _ in self._places]
        origin, pitch, _, _ = self._place(kept[-1], starts[-1])
        self.layout = DetailLayout(self._details, bands)
        self.all_counted = DetailLayout(self._details, [*bands, (origin, pitch, s.samples, s.rows)])
        done = [one.last for one in self._launches[:-1]]
        self._approximations = [
            self.buffer(f"approximation {i % 2}", s.rows * max(self._needed_at[j][1] for j in done[i % 2 :: 2]))
            for i in range(len(done))
        ]
        self._approximations.append(self._details[self._coarsest])

    def _place(self, ends: tuple[int, int], start: int = 0) -> At:
        """Return the place of rows that begin at ``start``, with elements before and after the samples.

        Sample 0 of each lies at a multiple of four.
        """
        (before, after), samples = ends, self.shape.samples
        return At(start + up4(before), up4(up4(before) + samples + after), -before, samples + after)

    @property
    def bands(self) -> list[Band]:
        """With the boundary coefficients."""
        return [Band(origin + low, pitch, high - low, self.shape.rows) for origin, pitch, low, high in self._places]

    def forward_launch(self, i: int, x: DeviceArray, stream: Stream, beside: Beside = ALONE) -> None:
        s, one, (before, after) = self.shape, self._launches[i], self._beyond
        flags, length = self.flags if beside.flags is None else beside.flags, before + after
        if i == 0 and length:
            threads = self.build.threads
            launch = extend(self._mode, self.build)[
                grid(-(-length // threads), -(-s.rows // ROWS_EACH)), threads, stream
            ]
            launch(x, s.samples, s.rows, -before, s.samples, self._outside, length, flags)
        place = self._needed_at[one.last]
        beyond, output = Beyond(self._outside, before, after, flags), Rows(self._approximations[i], place, True)
        kernel = transform(*self._analysis, self._circular, self._tiles, one.forward, i == 0)
        source, bands = self._samples(i, x, self._needed_at), Bands(self._details, self._of(i))
        self._launch(kernel, i, one.forward, stream, (source, beyond, bands, Limits(self._details, 0)), output)

    def _launch(
        self, kernel: Kernel, i: int, tiling: Tiling, stream: Stream, before: tuple[object, ...], output: Rows
    ) -> None:
        """Launch ``kernel`` for all tiles of ``output``."""
        rows, spread = self.shape.rows, self._launches[i].spread
        first, tile, blocks = tiling.grid(spread, *output.at[2:], rows)
        launch = kernel[grid(blocks, rows), self._tiles.threads, stream]
        launch(*before, rows, Cut(first, tile, spread), output)

    def _samples(self, i: int, flat: DeviceArray, places: list[At]) -> Rows:
        """Return the rows that the i-th launch reads or, of `inverse`, writes."""
        if i:
            return Rows(self._approximations[i - 1], places[self._launches[i].first], True)
        return Rows(flat, At(0, self.shape.samples, 0, self.shape.samples), self.aligned(flat))

    def _of(self, i: int) -> tuple[At, ...]:
        """Return the places of the details of the i-th launch's levels."""
        return tuple(self._places[self._launches[i].first : self._launches[i].last])

    def inverse_launch(self, i: int, y: DeviceArray, stream: Stream, by: Shrinking = KEPT) -> None:
        s, one, details = self.shape, self._launches[i], self._details if by.details is None else by.details
        thresholds = details if by.thresholds is None else by.thresholds
        kernel = transform(*self._synthesis, self._circular, self._tiles, one.inverse, False, by.function)
        low = Rows(self._approximations[i], self._kept_at[one.last], True)
        limits = Limits(thresholds, one.first * s.rows)
        before = low, Beyond(self._outside, 0, 0, self.flags), Bands(details, self._of(i)), limits
        self._launch(kernel, i, one.inverse, stream, before, self._samples(i, y, self._kept_at))

    def approximation(self) -> Place:
        origin, pitch, low, high = self._kept_at[-1]
        return Place(self._details, self._coarsest.start + origin + low, (self.shape.rows, high - low), (pitch, 1))
