"""The DWT of both axes: one level in one pass over tiles, as `columns` shows.

Only tiles at the edges look up how rows and columns continue. The bands of a level lie in one array: D, V and H of all
sections, their rows close together, then the approximation, whose rows begin at multiples of four elements.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from wavefilt.backends.cuda.dwt.kernels import extensions
from wavefilt.backends.cuda.dwt.tiling import NOT_FINITE, Filter, up4
from wavefilt.backends.cuda.options import KernelOptions
from wavefilt.backends.cuda.plan import ALONE, KEPT, Beside, Place, Shape, Shrinking
from wavefilt.backends.cuda.runtime import interop
from wavefilt.backends.cuda.runtime.compiler import kernel
from wavefilt.backends.cuda.runtime.interfaces import Build, DeviceArray, DeviceFunction, Stream
from wavefilt.backends.cuda.runtime.target import cuda, device
from wavefilt.backends.cuda.runtime.wide import Outputs, filters, load_column, put_at, slide, store
from wavefilt.backends.cuda.statistics.layout import DetailLayout
from wavefilt.backends.cuda.thresholding import shrink
from wavefilt.thresholding.shrinkage import Shrinkage

from .columns import Plane, SectionsPlan, Tiled, short, tile_of

STEP = 4
"""Coefficients of a step: of 2 STEP rows of samples, whose loads are under way together."""
ROWS_NEW = 2 * STEP
"""Rows of samples that a step down the columns reads."""
BANDS = 3
"""D, V and H, in the order of estimates."""
TILE_BYTES = 1 << 14  # 16 rows of float32 by 256 threads
TAPS_A_TURN = 8
"""Taps that are worth another tile to go down."""
Bank = tuple[tuple[float, ...], tuple[float, ...]]
"""Low-pass and high-pass taps."""


@dataclass(frozen=True)
class SectionLevel:
    """A level with the filters ``down`` the columns and ``along`` the rows, and the tiles that its kernels cut it into.

    ``axes`` has the reach of both, ``several`` says which axes extend by more than one sample, and ``height`` is the
    number of rows of coefficients of a tile.
    """

    down: Bank
    along: Bank
    axes: tuple[Filter, Filter]
    several: tuple[bool, ...]
    build: Build
    height: int

    @property
    def taps(self) -> int:
        return max(f.taps for f in self.axes)


class Bands(NamedTuple):
    """Bands of a level: elements from section to section, from band to band, and where the approximation begins.

    And elements from section to section of that, from row to row, and rows and columns of a band.
    """

    array: DeviceArray
    stride: int
    band: int
    lowpass: int
    plane: int
    pitch: int
    rows: int
    across: int


def analysis(lo: tuple[float, ...], hi: tuple[float, ...]) -> Outputs:
    """Approximation and detail in turn, of a window that begins at the first sample under the first coefficient."""
    taps = range(len(lo))
    return [[(h[::-1][k], 2 * i + k) for k in taps] for i in range(STEP) for h in (lo, hi)]


def synthesis(lo: tuple[float, ...], hi: tuple[float, ...], f: Filter) -> Outputs:
    """Samples, of a window of approximations that begins ``f.low`` before the first pair, then one of details."""
    width, reach = f.low + f.high + STEP, range(f.taps // 2)
    places = [(i + f.low + top, (f.lead + s) % 2) for i in range(STEP) for s, top in enumerate(f.tops)]
    return [
        [(h[2 * j + parity], w * width + place - j) for j in reach for w, h in enumerate((lo, hi))]
        for place, parity in places
    ]


def forward_registers(dtype: str, taps: int) -> int | None:
    """Registers for a thread: as few as spill nothing, so that five blocks fit a multiprocessor."""
    return None if dtype == "float64" or taps > 16 else 48 if 4 <= taps <= 8 else 56


@cache
def _places(f: Filter, several: bool) -> DeviceFunction:
    """Device function: the samples, and their factors, that row or column ``i`` of the extension is the sum of."""
    lead, last = f.lead, f.lead + f.taps - 1

    @device
    def place(table, begin, i, n):
        j, a, k, b, m, c = i, 1, i, 0, i, 0
        if i < 0 or i >= n:
            entry = begin + 6 * (max(i + lead, 0) if i < 0 else min(i - n + lead, last))
            j, a = table[entry], table[entry + 1]
            k, m = j, j
            if several:
                k, b, m, c = table[entry + 2], table[entry + 3], table[entry + 4], table[entry + 5]
        return j, a, k, b, m, c

    return place


@cache
def _reading(of: SectionLevel) -> DeviceFunction:
    """Device function: eight rows of a column, which at an edge are sums of some samples.

    At an edge, they pass through the places of the results.
    """
    number, threads, last = np.dtype(of.build.dtype).type, of.build.threads, of.height * of.build.threads
    (several_down, several_along), place_down = of.several, _places(of.axes[0], of.several[0])
    load, load_all = load_column(STEP), load_column(ROWS_NEW)

    @device
    def in_row(x, start, j, a, k, b, m, c):
        value = number(a) * x[start + j]
        if several_along:
            value += number(b) * x[start + k] + number(c) * x[start + m]
        return value

    @device
    def extended(x, source, pitch, row, n, table, begin, j, a, k, b, m, c):
        p, d, q, e, r, f = place_down(table, begin, row, n)
        value = number(d) * in_row(x, source + p * pitch, j, a, k, b, m, c)
        if several_down:
            value += number(e) * in_row(x, source + q * pitch, j, a, k, b, m, c)
            value += number(f) * in_row(x, source + r * pitch, j, a, k, b, m, c)
        return value

    @device
    def read(buffer, target, x, source, pitch, r, n, table, begin, column, interior):
        j, a, k, b, m, c = column
        if interior:
            return load_all(x, source + r * pitch + j, pitch)
        for i in range(ROWS_NEW):
            at = target + (i % STEP) * threads + i // STEP * last
            buffer[at] = extended(x, source, pitch, r + i, n, table, begin, j, a, k, b, m, c)
        return load(buffer, target, threads) + load(buffer, target + last, threads)

    return read


@cache
def _analysing_rows(of: SectionLevel) -> DeviceFunction:
    """Device function: both filters along ``here`` rows of a tile, from shared memory to two bands."""
    g, threads = of.axes[1], of.build.threads
    lead = g.lead + g.lead % 2
    analyse = filters([[(h[::-1][k], 0, lead - g.lead + k) for k in range(g.taps)] for h in of.along], 2)
    put = put_at([0])

    @device
    def along_rows(buffer, bands, window, low, low_pitch, high, high_pitch, here):
        for _ in range(here):
            lowpass, detail = analyse(buffer, (window,))
            put(bands, low, (lowpass,))
            put(bands, high, (detail,))
            low += low_pitch
            high += high_pitch
            window += threads

    return along_rows


@cache
def forward(of: SectionLevel) -> Tiled:
    """Kernel of one level for tiles of coefficients; a thread has a column of samples, then a column of two bands."""
    (f, g), threads, height, steps = of.axes, of.build.threads, of.height, of.height // STEP
    number, half = np.dtype(of.build.dtype).type, threads // 2
    kept = f.taps - 2
    warm = -(-kept // ROWS_NEW)  # steps that fill the window
    above = f.lead + warm * ROWS_NEW - kept  # the first row read, before the first under the tile
    f_lag, lead = f.lag, g.lead + g.lead % 2
    width = (threads - lead - g.lag) // 2
    outputs = analysis(*of.down)
    blank = (number(0),) * (len(outputs) + kept)
    fill, step = (slide(outputs, (kept,), ROWS_NEW, computing) for computing in (False, True))
    shared, last = 2 * height * threads, height * threads
    put = put_at([i * threads + w * last for i in range(STEP) for w in range(2)])
    place_along, read, along_rows = _places(g, of.several[1]), _reading(of), _analysing_rows(of)

    @kernel(of.build, of, registers=forward_registers(of.build.dtype, of.taps))
    def sections_forward_kernel(samples, bands, tiling, table, entries):
        (x, source, plane, pitch), (rows, across) = samples
        array, stride, band, lowpass, lowpass_plane, lowpass_pitch, rows_out, across_out = bands
        (first_section, tiles, turns), (begin_down, begin_along) = tiling, entries
        buffer = cuda.shared.array(shared, number)
        thread = cuda.threadIdx.x
        section = first_section + cuda.blockIdx.y
        tile_row, tile = tile_of(cuda.blockIdx.x, tiles)
        first_row, first = tile_row * turns * height, tile * width
        top, left = 2 * first_row - above, 2 * first - lead
        source += section * plane
        part = thread // half
        u = thread - part * half
        low, low_pitch = lowpass + section * lowpass_plane, lowpass_pitch
        high = section * stride + band  # A and V, or H and D
        if part:
            low, low_pitch, high = high + band, across_out, high - band
        low += first_row * low_pitch + first + u
        high += first_row * across_out + first + u
        window = part * last + 2 * u
        across_inside = left >= 0 and left + threads <= across
        interior = across_inside and top >= 0 and 2 * (first_row + turns * height) + f_lag <= rows
        column, state = place_along(table, begin_along, left + thread, across), blank
        for _ in range(warm):
            state = fill(state, read(buffer, thread, x, source, pitch, top, rows, table, begin_down, column, interior))
            top += ROWS_NEW
        stop = min(first_row + turns * height, rows_out)
        while first_row < stop:
            target = thread
            for _ in range(steps):
                found = read(buffer, target, x, source, pitch, top, rows, table, begin_down, column, interior)
                state = step(state, found)
                top += ROWS_NEW
                put(buffer, target, state)
                target += STEP * threads
            cuda.syncthreads()
            if u < width and first + u < across_out:
                along_rows(buffer, array, window, low, low_pitch, high, across_out, min(height, stop - first_row))
            low += height * low_pitch
            high += height * across_out
            first_row += height
            cuda.syncthreads()

    return Tiled(sections_forward_kernel, threads, height, width)


def inverse_registers(dtype: str, taps: int, periodized: bool, function: str) -> int | None:
    """Registers for a thread: as few as spill nothing, so that four blocks fit a multiprocessor."""
    heavy = function in ("garrote", "firm") and taps > 8  # spills four registers at 64
    return None if dtype == "float64" or taps > 16 or heavy else 56 if taps <= 8 and not periodized else 64


@device
def _within(i, n, periodized):
    """Return the place of a coefficient, periodic beyond the ends, or else of any, since it is not used."""
    if i < 0 or i >= n:
        return (i + n) % n if periodized else min(max(i, 0), n - 1)
    return i


@cache
def _reading_coefficients(of: SectionLevel, function: str) -> DeviceFunction:
    """Device function: coefficients of four rows of two bands, shrunk by ``s`` and ``t``; 0 for an approximation.

    At an edge, they pass through the places of the results.
    """
    half, round_down, threshold = of.build.threads // 2, of.axes[0].periodized, shrink(function, of.build.dtype)
    load, load_all = load_column(STEP), load_column(2 * STEP)

    @device
    def shrunk(d, t):
        return threshold(d, t) if d == d else d  # NaN has to stay NaN

    @device
    def four(values, t):
        a, b, c, d = values
        return shrunk(a, t), shrunk(b, t), shrunk(c, t), shrunk(d, t)

    @device
    def read(buffer, target, bands, low, low_pitch, high, high_pitch, s, t, row, rows, interior):
        if interior:
            found = load(bands, low + row * low_pitch, low_pitch)
            return four(found, s) + four(load(bands, high + row * high_pitch, high_pitch), t)
        for i in range(STEP):
            r = _within(row + i, rows, round_down)
            buffer[target + i * half] = shrunk(bands[low + r * low_pitch], s)
            buffer[target + (i + STEP) * half] = shrunk(bands[high + r * high_pitch], t)
        return load_all(buffer, target, half)

    return read


@cache
def _synthesising_rows(of: SectionLevel) -> DeviceFunction:
    """Device function: pairs of samples along ``here`` rows of a tile, the last column's a ``single`` one.

    It returns their sum, in which it shows if one is not finite.
    """
    g, number, half = of.axes[1], np.dtype(of.build.dtype).type, of.build.threads // 2
    last, taps = 2 * of.height * half, range(g.taps // 2)
    terms = [
        [(h[2 * j + (g.lead + s) % 2], w, g.low + top - j) for j in taps for w, h in enumerate(of.along)]
        for s, top in enumerate(g.tops)
    ]
    synthesise, put_one, put_pair = filters(terms, 1), put_at([0]), put_at([0, 1])

    @device
    def along_rows(buffer, y, window, at, pitch, aligned, single, here):
        total = number(0)
        for _ in range(here):
            p, q = synthesise(buffer, (window, window + last))
            total += p + q
            if aligned:  # the rows of an approximation have room for a pair more than they need
                store(y, at, (p, q))
            elif single:
                put_one(y, at, (p,))
            else:
                put_pair(y, at, (p, q))
            at += pitch
            window += half
        return total

    return along_rows


@cache
def inverse(of: SectionLevel, function: str) -> Tiled:
    """Kernel of one level for tiles of pairs of samples; a thread has a column of two bands, then of pairs."""
    (f, g), threads, height, steps = of.axes, of.build.threads, of.height, of.height // STEP
    number, half, low_along = np.dtype(of.build.dtype).type, threads // 2, g.low
    width = half - g.low - g.high
    kept = f.low + f.high
    warm = -(-kept // STEP)
    above = f.low + warm * STEP - kept
    outputs = synthesis(*of.down, f)
    blank = (number(0),) * (len(outputs) + 2 * kept)
    fill, step = (slide(outputs, (kept, kept), STEP, computing) for computing in (False, True))
    last = 2 * height * half  # elements of what came of A and H; then of V and D
    shared, keeps, round_along = 2 * last, function == "keep", g.periodized
    put = put_at([i * half for i in range(2 * STEP)])
    read, along_rows = _reading_coefficients(of, function), _synthesising_rows(of)
    limit = inverse_registers(of.build.dtype, of.taps, f.periodized or g.periodized, function)

    @kernel(of.build, of, function, registers=limit)
    def sections_inverse_kernel(bands, sections, tiling, thresholds, first, samples, aligned, flags, checks):
        """Samples that are not finite are flagged with ``checks``."""
        array, stride, band, lowpass, lowpass_plane, lowpass_pitch, rows_in, across_in = bands
        (first_section, tiles, turns), ((y, target, plane, pitch), (rows, across)) = tiling, samples
        buffer = cuda.shared.array(shared, number)
        thread = cuda.threadIdx.x
        section = first_section + cuda.blockIdx.y
        tile_row, tile = tile_of(cuda.blockIdx.x, tiles)
        first_row, first_pair = tile_row * turns * height, tile * width
        top, left = first_row - above, first_pair - low_along
        part = thread // half
        u = thread - part * half
        low, low_pitch = lowpass + section * lowpass_plane, lowpass_pitch  # A and H, or V and D
        high = section * stride
        if part:
            low, low_pitch = high + band, across_in
        else:
            high += 2 * band
        s, t = number(0), number(0)
        if not keeps:
            i = first + section
            if part:
                s, t = thresholds[i + sections], thresholds[i]
            else:
                t = thresholds[i + 2 * sections]
        place, row = 2 * (first_pair + u), 2 * first_row + part * height
        at = target + section * plane + row * pitch + place
        window = part * height * half + u
        column, bottom = _within(left + u, across_in, round_along), first_row + turns * height
        low += column
        high += column
        interior = top >= 0 and left >= 0 and left + half <= across_in and bottom - above + warm * STEP <= rows_in
        total, state, start = number(0), blank, part * last + u
        for _ in range(warm):
            found = read(buffer, start, array, low, low_pitch, high, across_in, s, t, top, rows_in, interior)
            state = fill(state, found)
            top += STEP
        stop = min(2 * bottom, rows)
        while 2 * first_row < stop:
            start = part * last + u
            for _ in range(steps):
                found = read(buffer, start, array, low, low_pitch, high, across_in, s, t, top, rows_in, interior)
                state = step(state, found)
                top += STEP
                put(buffer, start, state)
                start += 2 * STEP * half
            cuda.syncthreads()
            if u < width and place < across:
                here = min(height, rows - row)
                total += along_rows(buffer, y, window, at, pitch, aligned, place + 1 == across, here)
            at += 2 * height * pitch
            row += 2 * height
            first_row += height
            cuda.syncthreads()
        if checks and total - total != 0:
            flags[NOT_FINITE] = 1

    return Tiled(sections_inverse_kernel, threads, height, width)


class SectionPlan(SectionsPlan):
    """A launch for every level; the bands of one lie together, D, V and H of all sections, then the approximation."""

    early, together = BANDS, BANDS

    def __init__(self, shape: Shape, options: KernelOptions) -> None:
        super().__init__(shape, options)
        s, (down, along) = shape, shape.filters
        periodized = [mode == "periodization" for mode in s.modes]
        several = tuple(mode in ("smooth", "antireflect") for mode in s.modes)
        axes = f, g = Filter(len(down[0]), periodized[0]), Filter(len(along[0]), periodized[1])
        self._sizes = sizes = [(s.size[0], s.size[1])]  # of a section, then of its bands at every level
        for _ in range(s.depth):
            sizes.append((f.length(sizes[-1][0]), g.length(sizes[-1][1])))
        for axis, mode in enumerate(s.modes):
            if mode in ("reflect", "antireflect") and 1 in [own[axis] for own in sizes[:-1]]:
                raise ValueError(f"mode={mode!r} needs more than one sample at every level of both axes")
        self.launches, self.fewest, self.most_turns = s.depth, options.blocks[0], f.taps // TAPS_A_TURN
        threads = max(options.threads, 1 << (2 * max(f.taps, g.taps) - 1).bit_length())
        tile = options.tile or TILE_BYTES // np.dtype(s.dtype).itemsize
        height = max(tile // threads // STEP, 1) * STEP
        constants = axes, several, self.build._replace(threads=threads), height
        self._analysis = SectionLevel((down[0], down[1]), (along[0], along[1]), *constants)
        self._synthesis = SectionLevel((down[2], down[3]), (along[2], along[3]), *constants)
        tables = [
            extensions(axis, mode, [n]) for own in sizes[:-1] for axis, mode, n in zip(axes, s.modes, own, strict=True)
        ]
        ends = np.cumsum([0, *map(len, tables)]).tolist()
        self._entries = list(zip(ends[::2], ends[1::2], strict=False))
        self._table = cuda.to_device(np.concatenate(tables))
        self._starts, bands = [0], []
        self._bands, self._planes = list[Any](), list[Any]([(0, s.samples, np.int32(s.size[1]))])
        for rows, wide in sizes[1:]:
            start, pitch, across = self._starts[-1], up4(rows * wide), up4(wide)
            bands += [(start + i * s.rows * pitch, pitch, rows * wide, s.rows) for i in range(BANDS)]
            lowpass, plane, own = BANDS * s.rows * pitch, rows * across, short(across, rows, wide)
            self._bands.append((pitch, s.rows * pitch, lowpass, plane, *own))
            self._planes.append((lowpass, plane, own[0]))
            self._starts.append(start + lowpass + s.rows * plane)
        end = self._starts[-1]
        array = self.buffer("details", end + s.rows * bands[0][1] // 8 + 8)
        self.layout = DetailLayout(array, bands, lists=end, listed=1)
        self._levels = [array[start:] for start in self._starts[:-1]]

    def _level(self, i: int, array: DeviceArray | None) -> DeviceArray:
        """The bands and the approximation of the i-th level, in this plan's array or one laid out like it."""
        return self._levels[i] if array is None else array[self._starts[i] :]

    def forward_launch(self, i: int, x: DeviceArray, stream: Stream, beside: Beside = ALONE) -> None:
        samples = Plane(self._levels[i - 1] if i else x, *self._planes[i]), short(*self._sizes[i])
        bands, table = Bands(self._levels[i], *self._bands[i]), (self._table, self._entries[i])
        self.launch_tiles(forward(self._analysis), self._sizes[i + 1], stream, (samples, bands), table)

    def inverse_launch(self, i: int, y: DeviceArray, stream: Stream, by: Shrinking = KEPT) -> None:
        (rows, columns), sections, size = self._sizes[i], self.shape.rows, short(*self._sizes[i])
        pairs = (rows + 1) // 2, (columns + 1) // 2
        target = self._level(i - 1, by.details) if i else y
        limits = target if by.thresholds is None else by.thresholds, BANDS * i * sections
        wide, checks = i > 0 or (columns % 2 == 0 and interop.address(y) % 16 == 0), by.source is not None and i == 0
        flags = self.flags if by.source is None else by.source.flags
        bands, samples = Bands(self._level(i, by.details), *self._bands[i]), (Plane(target, *self._planes[i]), size)
        after = *limits, samples, wide, flags, checks
        self.launch_tiles(inverse(self._synthesis, by.function), pairs, stream, (bands, sections), after)

    def approximation(self) -> Place:
        (_, _, lowpass, plane, *_), (rows, columns) = self._bands[-1], self._sizes[-1]
        begin, pitch = self._starts[-2] + lowpass, up4(columns)
        return Place(self.layout.array, begin, (self.shape.rows, rows, columns), (plane, pitch, 1))

    def places(self) -> list[Place]:
        found = [self.approximation()]
        for i, band in reversed(list(enumerate(self.layout.bands))):
            rows, columns = self._sizes[1 + i // BANDS]
            found.append(Place(self.layout.array, band.offset, (band.rows, rows, columns), (band.pitch, columns, 1)))
        return found

    def shrunk(self, shrinkage: Shrinkage, stream: Stream) -> DeviceArray:
        """With the approximation beside them."""
        target = super().shrunk(shrinkage, stream)
        approximation = slice(self._starts[-2] + self._bands[-1][2], self._starts[-1])
        target[approximation].copy_to_device(self.layout.array[approximation], stream=stream)
        return target
