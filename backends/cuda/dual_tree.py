"""The dual-tree transform of traces: filters of both trees, and tiles of a row through several levels.

Both trees lie in turn in one sequence. The first level takes one element of the sequence to one low-pass and one
high-pass coefficient, all others four to two of each. High-pass coefficients of both trees are the real and imaginary
parts of complex ones, whose magnitudes rules count. The row continues symmetrically beyond its ends at every level:
tiles at its ends copy the elements there from inside.

    analysis   [around|......tile......|around]                   elements of level 1, two trees in turn
                  [around|..tile/2..|around] -> level 1           low-pass, to be split further
                        [.tile/4.]           -> level 2

Consecutive threads take consecutive groups of four elements, without bank conflicts. For the transform see
`wavefilt.transforms.dual_tree`.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import NamedTuple

import numpy as np

from wavefilt.arrays import Array
from wavefilt.backends.cuda import local_shrinkage
from wavefilt.backends.cuda.dwt.tiling import NOT_FINITE, ROWS, grid, up4
from wavefilt.backends.cuda.options import KernelOptions
from wavefilt.backends.cuda.plan import ALONE, KEPT, Beside, GridsOf, Place, Plan, Shape, Shrinking
from wavefilt.backends.cuda.runtime.compiler import kernel
from wavefilt.backends.cuda.runtime.interfaces import Build, DeviceArray, DeviceFunction, Kernel, Stream
from wavefilt.backends.cuda.runtime.target import cuda, device, in_turn
from wavefilt.backends.cuda.runtime.wide import filters, load4, store
from wavefilt.backends.cuda.statistics.layout import DetailLayout, NoiseOf
from wavefilt.backends.cuda.thresholding import shrink
from wavefilt.thresholding.shrinkage import Shrinkage
from wavefilt.transforms.dual_tree import SHARE

Terms = list[tuple[float, int]]
"""Taps, and the places that they apply to, from that of the output on."""
HALF = 0.5**0.5


@dataclass(frozen=True)
class Level:
    """The constants of the kernels of a level: filters of the first level or of tree a, and how they are built."""

    low: tuple[float, ...]
    high: tuple[float, ...]
    first: bool
    build: Build

    @staticmethod
    def of(bank: Sequence[tuple[float, ...]], level: int, build: Build, back: bool) -> Level:
        """A level, from 0 on, of `DualTree.filter_bank`; ``back`` for synthesis."""
        first = 0 if level == 0 else 4
        begin = first + 2 if back and level == 0 else first  # later ones are synthesised by the transpose
        return Level(tuple(map(float, bank[begin])), tuple(map(float, bank[begin + 1])), level == 0, build)

    @property
    def wide(self) -> int:
        """Elements of the sequence that become two low-pass and two high-pass ones, or are made of such."""
        return 2 if self.first else 4

    @cached_property
    def analysis(self) -> tuple[list[Terms], list[Terms]]:
        """Two low-pass and two high-pass coefficients, of `wide` elements and those around them."""
        low, high = self.low, self.high
        if self.first:
            return tuple([_centred(taps, i) for i in range(2)] for taps in (low, high))  # type: ignore[return-value]
        begin = 2 - len(low)
        a, b = (range(begin + tree, begin + tree + 2 * len(low), 2) for tree in range(2))
        return (
            [_terms(low, a), _terms(low[::-1], b)],
            [_terms(high[::-1], b), _terms(high, a)],
        )

    @cached_property
    def synthesis(self) -> list[tuple[Terms, Terms]]:
        """`wide` elements of low-pass and of high-pass coefficients from the first of two on.

        Levels after the first are orthogonal: it is the transpose of `analysis`.
        """
        if self.first:
            return [(_centred(self.low, i), _centred(self.high, i)) for i in range(2)]
        found: list[tuple[Terms, Terms]] = [([], []) for _ in range(4)]
        for kind, outputs in enumerate(self.analysis):
            for w, terms in enumerate(outputs):
                for tap, place in terms:
                    found[place % 4][kind].append((tap, w - 2 * (place // 4)))
        return [(sorted(low, key=_place), sorted(high, key=_place)) for low, high in found]


def _place(term: tuple[float, int]) -> int:
    return term[1]


def _terms(taps: Sequence[float], places: Sequence[int]) -> Terms:
    return [(tap, place) for tap, place in zip(taps, places, strict=True) if tap]


def _centred(taps: Sequence[float], place: int) -> Terms:
    return _terms(taps, range(place - len(taps) // 2, place + len(taps) // 2 + 1))


def repeated(outputs: Sequence[Terms], times: int, step: int) -> list[Terms]:
    """Repeat the outputs, each time ``step`` places further."""
    return [[(tap, place + i * step) for tap, place in terms] for i in range(times) for terms in outputs]


def reach(outputs: Sequence[Terms]) -> tuple[int, int]:
    """Return the first and the last place that outputs need."""
    places = [place for terms in outputs for _, place in terms]
    return min(places), max(places)


class Sliding:
    """A step down the columns by ``new`` rows: of some windows, what outputs are of each.

    A window begins ``before`` its rows, and of the ``kept`` ones those from ``after`` on are loaded in the next step.
    """

    def __init__(self, outputs: Sequence[Sequence[Terms]], new: int) -> None:
        """``outputs`` has the terms of every output in every window."""
        self.new, windows = new, range(len(outputs[0]))
        reaches = [reach([output[w] for output in outputs]) for w in windows]
        self.after = [max(last + 1 - new, 0) for _, last in reaches]
        self.after = [after + after % 2 for after in self.after]  # coefficients are pairs of rows
        self.kept = [after - first for (first, _), after in zip(reaches, self.after, strict=True)]
        self.warm = -(-max(self.kept) // new)
        """Steps that fill the windows."""
        begins = [sum(self.kept[:w]) + w * new - reaches[w][0] for w in windows]
        self.outputs = [[(tap, begins[w] + place) for w in windows for tap, place in output[w]] for output in outputs]

    def top(self, window: int) -> int:
        """The first row of a window that is loaded before that of the first output."""
        return self.after[window] - self.warm * self.new


class Along:
    """Filters along rows, from ``lead`` elements before the first one of a tile, which end ``lag`` after its last."""

    def __init__(self, outputs: Sequence[Sequence[Terms]], new: int) -> None:
        """``outputs`` have the terms of every output in every window, of ``new`` elements and those around them."""
        first, last = reach([terms for output in outputs for terms in output])
        self.lead, self.lag = up4(-first), up4(max(last + 1 - new, 0))
        self.outputs = [
            [(tap, w, place + self.lead) for w, terms in enumerate(output) for tap, place in terms]
            for output in outputs
        ]

    def width(self, columns: int) -> int:
        """Return the elements of a tile, a multiple of eight, that takes ``columns`` with the elements around it."""
        return (columns - self.lead - self.lag) & ~7


def scaled(outputs: Sequence[Terms], factor: float) -> list[Terms]:
    return [[(tap * factor, place) for tap, place in terms] for terms in outputs]


@device
def inside(i, size):
    """Return the element at place i of an axis that continues symmetrically beyond its ends.

    A size is the number of elements, and the number to which they are first extended at the end.
    """
    there, extended = size
    i %= 2 * extended
    if i >= extended:
        i = 2 * extended - 1 - i
    i %= 2 * there
    return i if i < there else 2 * there - 1 - i


def sizes(n: int, depth: int) -> list[tuple[int, int]]:
    """Return the size, for `inside`, of an axis of n samples at every level, finest first, and of the last low-pass."""
    extended = -(-n >> depth) << depth
    lengths = (extended >> max(level - 1, 0) for level in range(1, depth + 1))
    return [(n, extended), *((length, length) for length in lengths)]


GROUP = 4
"""Elements that a thread takes to coefficients, or computes of them, at a time."""
MOST_LEVELS = 4


@dataclass(frozen=True)
class Fused:
    """Levels of a launch, finest first, and the elements of a tile at the first."""

    levels: tuple[Level, ...]
    tile: int

    @property
    def build(self) -> Build:
        return self.levels[0].build

    @property
    def count(self) -> int:
        return len(self.levels)

    @cached_property
    def tiles(self) -> list[int]:
        """Elements of a tile at every level, then of its low-pass coefficients."""
        found = [self.tile]
        for level in self.levels:
            found.append(found[-1] * 2 // level.wide)
        return found

    @cached_property
    def down(self) -> list[Along]:
        """The filters of the analysis: low-pass and high-pass coefficients of a group."""
        return [
            Along(
                [[terms] for part in level.analysis for terms in repeated(part, GROUP // level.wide, level.wide)], GROUP
            )
            for level in self.levels
        ]

    @cached_property
    def up(self) -> list[Along]:
        """The filters of the synthesis: a group, from low-pass and high-pass coefficients."""
        found = []
        for level in self.levels:
            times = GROUP // level.wide
            low, high = (repeated([output[w] for output in level.synthesis], times, 2) for w in range(2))
            found.append(Along([list(both) for both in zip(low, high, strict=True)], 2 * times))
        return found

    @cached_property
    def around(self) -> list[tuple[int, int]]:
        """Elements before a tile and after it that analysis needs at every level."""
        found = [(0, 0)]
        for level, along in zip(reversed(self.levels), reversed(self.down), strict=True):
            ratio, (before, after) = level.wide // 2, found[0]
            found.insert(0, (ratio * before + along.lead, ratio * after + along.lag))
        return found

    @cached_property
    def back(self) -> list[tuple[int, int]]:
        """Coefficients before a tile and after it that synthesis needs of every level."""
        found, needed = list[tuple[int, int]](), (0, 0)
        for level, along in zip(self.levels, self.up, strict=True):
            ratio = level.wide // 2
            before, after = (-(-n // ratio) for n in needed)
            needed = up4(before + along.lead), up4(after + along.lag)
            found.append(needed)
        return found


def fused(levels: list[Level], tile: int, least: int) -> list[tuple[Level, ...]]:
    """Return the levels of each launch, finest first, whose tiles have at least ``least`` elements at the coarsest."""
    found, begin = [], 0
    while begin < len(levels):
        end = begin + 1
        while end < min(begin + MOST_LEVELS, len(levels)) and tile >> end - begin >= least:
            end += 1
        found.append(tuple(levels[begin:end]))
        begin = end
    return found


GAINS = "gains"
"""Name of the function in `Shrinking` by which each coefficient is multiplied by its own factor, in ``details``."""


@cache
def shrinking(dtype: str, function: str) -> DeviceFunction:
    """Device function ``(real, imaginary, threshold, gains, place) -> (real, imaginary)``."""
    zero = np.dtype(dtype).type(0)
    if function == GAINS:
        return device(lambda p, q, t, gains, at: (p * gains[at], q * gains[at]))
    if function == "keep":
        return device(lambda p, q, t, gains, at: (p, q))
    shrunk = shrink(function, dtype)

    @device
    def apply(p, q, t, gains, at):
        m = math.sqrt(p * p + q * q)
        gain = shrunk(m, t) / m if m > zero else zero
        return p * gain, q * gain

    return apply


@cache
def measuring(build: Build) -> Kernel:
    """Kernel of the magnitudes of coefficients."""

    threads = build.threads

    @kernel(build)
    def magnitudes_kernel(bands, magnitudes, count):
        i = cuda.blockIdx.x * threads + cuda.threadIdx.x
        while i < count:
            p, q = bands[2 * i], bands[2 * i + 1]
            magnitudes[i] = math.sqrt(p * p + q * q)
            i += threads * cuda.gridDim.x

    return magnitudes_kernel


class ComplexPlan(Plan):
    """Coefficients lie in ``parts``, real and imaginary ones in turn, and `layout` says where their magnitudes lie."""

    noise = NoiseOf(SHARE, 2)

    def hold(self, count: int, bands: Sequence[tuple[int, int, int, int]]) -> None:
        """Allocate ``count`` coefficients; ``bands`` as for `DetailLayout`, in complex elements."""
        self.parts, kind = self.buffer("coefficients", 2 * count), np.result_type(np.dtype(self.dtype), np.complex64)
        self.complex = self.parts.view(kind)
        self.magnitudes = self.buffer("details", count + count // 8 + 8)
        self.layout = DetailLayout(self.magnitudes, bands, lists=count, listed=len(bands))

    def fill(self, coefficients: Sequence[Array], stream: Stream) -> None:
        super().fill(coefficients, stream)
        threads, count = self.options.threads, self.complex.size
        launch = measuring(self.build)[min(-(-count // threads), 4096), threads, stream]
        launch(self.parts, self.magnitudes, count)

    @property
    def gains(self) -> DeviceArray:
        """The gains of all coefficients, laid out as the magnitudes are."""
        return self.buffer("gains", self.magnitudes.size)

    def coefficients_for(self, by: Shrinking) -> tuple[DeviceArray, DeviceArray, bool]:
        """Return the coefficients that the inverse loads, their gains, and whether there are gains."""
        if by.function == GAINS and by.details is not None:
            return self.parts, by.details, True
        details = self.parts if by.details is None else by.details
        return details, details, False

    def shrunk(self, shrinkage: Shrinkage, stream: Stream) -> DeviceArray:
        """Shrink on the host."""
        return self.shrunk_on_host(shrinkage, self.complex, self.buffer("shrunk", self.parts.size), stream)


class Rows(NamedTuple):
    """Rows in an array: the first element, elements from row to row, and whether all are aligned to 16 bytes."""

    array: DeviceArray
    begin: int
    pitch: int
    aligned: bool


class Bands(NamedTuple):
    """Coefficients as pairs of real and imaginary parts, and their magnitudes, or their gains."""

    array: DeviceArray
    magnitudes: DeviceArray


class Limits(NamedTuple):
    """Thresholds, and the index of the first one of a launch's finest level."""

    array: DeviceArray
    first: int


@cache
def mending(threads: int) -> DeviceFunction:
    """Device function: what lies beyond the ends of a row of n, in a tile that reaches so far, from inside.

    Element e of the row is at ``buffer[origin + e]``, from ``begin`` to ``end``.
    """

    @device
    def mend(buffer, origin, begin, end, n):
        cuda.syncthreads()
        if begin < 0 or end > n:
            for e in range(begin + cuda.threadIdx.x, end, threads):
                if e < 0 or e >= n:
                    buffer[origin + e] = buffer[origin + inside(e, (n, n))]
            cuda.syncthreads()

    return mend


@cache
def loading(threads: int, length: int, centred: bool = False) -> DeviceFunction:
    """Device function: ``length`` elements of a row into shared memory, from element ``begin`` on, beyond its ends too.

    Less their ``mean``, if ``centred``.
    """
    rounds = -(-(length // GROUP) // threads)

    @device
    def load(buffer, target, x, start, begin, size, aligned, mean):
        first = cuda.threadIdx.x
        if aligned and begin >= 0 and begin + length <= size[0]:
            for j in range(rounds):
                v = min(first + j * threads, length // GROUP - 1)  # some read the last again rather than to branch
                a, b, c, d = load4(x, start + begin + 4 * v)
                if centred:
                    a, b, c, d = a - mean, b - mean, c - mean, d - mean
                store(buffer, target + 4 * v, (a, b, c, d))
        else:
            for i in range(first, length, threads):
                a = x[start + inside(begin + i, size)]
                buffer[target + i] = a - mean if centred else a

    return load


@cache
def _writing(wide: int) -> tuple[DeviceFunction, DeviceFunction]:
    """Device functions: split a group into low-pass and high-pass coefficients; write coefficients with magnitudes."""

    @device
    def one(bands, magnitudes, at, there, pairs):
        p, q = pairs[0], pairs[1]
        store(bands, at, (p, q))
        magnitudes[at >> 1] = math.sqrt(p * p + q * q)

    @device
    def two(bands, magnitudes, at, there, pairs):
        if there > 2:
            p, q, r, s = pairs
            store(bands, at, pairs)
            store(magnitudes, at >> 1, (math.sqrt(p * p + q * q), math.sqrt(r * r + s * s)))
        else:
            one(bands, magnitudes, at, there, pairs)

    if wide == 2:
        return device(lambda found: (found[0:4], found[4:8])), two
    return device(lambda found: (found[0:2], found[2:4])), one


@cache
def _analysing(of: Fused, i: int, coarsest: bool, places: tuple[int, int]) -> DeviceFunction:
    """Device function: the i-th level of a tile, from one place in shared memory to another.

    At a place lies the first element that the level needs.
    """
    level, along, (source, target) = of.levels[i], of.down[i], places
    threads, ratio, tile, last = level.build.threads, level.wide // 2, of.tiles[i + 1], i == of.count - 1
    before, after = of.around[i + 1]
    outputs = GROUP // ratio
    items, begin = (tile + before + after) // outputs, source + of.around[i][0] - along.lead - ratio * before
    analyse, (split, write) = filters(along.outputs, GROUP), _writing(level.wide)
    mend = mending(threads)

    @device
    def step(buffer, bands, levels, lowpass, row, block):
        array, magnitudes = bands
        start, pitch, size = levels[i]
        own, count = block * tile, size[1] // ratio
        start += row * pitch + own
        for item in range(cuda.threadIdx.x, items, threads):
            o = item * outputs - before
            window = begin + item * GROUP
            low, high = split(analyse(buffer, (window,)))
            if 0 <= o < tile and own + o < count:
                write(array, magnitudes, start + o, count - own - o, high)
                if last:
                    at = lowpass.begin + row * lowpass.pitch + own + o
                    if coarsest:
                        write(lowpass.array, magnitudes, at, count - own - o, low)
                    else:
                        store(lowpass.array, at, low)
            if not last:
                store(buffer, target + before + o, low)
        if last:
            cuda.syncthreads()
        else:
            mend(buffer, target + before - own, own - before, own + tile + after, count)

    return step


@cache
def analysis(of: Fused, coarsest: bool, centred: bool) -> Kernel:
    """Kernel of some levels; the ``coarsest`` launch writes magnitudes of its low-pass coefficients as well.

    If ``centred``, of samples less their mean.
    """
    dtype, threads = of.levels[0].build.dtype, of.levels[0].build.threads
    number, length = np.dtype(dtype).type, of.tile + sum(of.around[0])
    (before, _), place = of.around[0], (0, length)
    shared = length + (of.tiles[1] + sum(of.around[1]) if of.count > 1 else 0)
    load, tile = loading(threads, length, centred), of.tile
    compute = in_turn(*(_analysing(of, i, coarsest, (place[i % 2], place[1 - i % 2])) for i in range(of.count)))

    @kernel(of.build, of, coarsest, centred)
    def dual_tree_traces_analysis_kernel(samples, rows, levels, bands, lowpass, means):
        """``levels`` have the place of a band and how far its rows are apart, and an axis as `inside` has it."""
        buffer = cuda.shared.array(shared, number)
        row = cuda.blockIdx.y + ROWS * cuda.blockIdx.z
        if row >= rows:
            return
        block, mean = cuda.blockIdx.x, means[row] if centred else number(0)
        start = samples.begin + row * samples.pitch
        load(buffer, 0, samples.array, start, block * tile - before, levels[0][2], samples.aligned, mean)
        cuda.syncthreads()
        compute(buffer, bands, levels, lowpass, row, block)

    return dual_tree_traces_analysis_kernel


@cache
def _weighing(of: Fused, i: int, function: str, target: int) -> DeviceFunction:
    """Device function: coefficients that a tile needs of the i-th level into shared memory, shrunk."""
    level, (before, after), tile = of.levels[i], of.back[i], of.tiles[i + 1]
    threads, length = level.build.threads, tile + before + after
    rounds, shrunk = -(-(length // GROUP) // threads), shrinking(level.build.dtype, function)

    @device
    def load(buffer, bands, gains, start, count, begin, t):
        first = cuda.threadIdx.x
        if begin >= 0 and begin + length <= count:
            for j in range(rounds):
                v = 4 * min(first + j * threads, length // GROUP - 1)  # some read the last again rather than to branch
                p, q, r, s = load4(bands, start + begin + v)
                at = start + begin + v >> 1
                p, q = shrunk(p, q, t, gains, at)
                r, s = shrunk(r, s, t, gains, at + 1)
                store(buffer, target + v, (p, q, r, s))
        else:
            size = count, count
            for v in range(2 * first, length, 2 * threads):
                k = start + (inside(begin + v, size) & ~1)
                p, q = shrunk(bands[k], bands[k + 1], t, gains, k >> 1)
                if inside(begin + v, size) & 1:  # beyond an end the trees change over
                    p, q = q, p
                buffer[target + v], buffer[target + v + 1] = p, q

    return load


@cache
def _synthesising(of: Fused, i: int, function: str, centred: bool, places: tuple[int, int, int]) -> DeviceFunction:
    """Device function: the i-th level of a tile, from two places in shared memory to a third.

    The first two hold low-pass and high-pass coefficients, and the third takes the input of the next finer level.
    """
    level, along, (source, high, target) = of.levels[i], of.up[i], places
    threads, ratio, tile, coarse = level.build.threads, level.wide // 2, of.tiles[i], of.tiles[i + 1]
    before, after = of.back[i - 1] if i else (0, 0)
    inputs, items, wide, back = GROUP // ratio, (tile + before + after) // GROUP, level.wide, of.back[i][0]
    skip = back - along.lead - before // ratio
    synthesise, load, mend = filters(along.outputs, inputs), _weighing(of, i, function, high), mending(threads)
    number, keeps = np.dtype(level.build.dtype).type, function in ("keep", GAINS)

    @device
    def final(y, at, there, aligned, mean, values):
        p, q, r, s = values
        if centred:
            p, q, r, s = p + mean, q + mean, r + mean, s + mean
        if aligned and there >= 4:
            store(y, at, (p, q, r, s))
            return (p + q) + (r + s)
        total = p - p
        if there > 0:
            y[at] = p
            total += p
        if there > 1:
            y[at + 1] = q
            total += q
        if there > 2:
            y[at + 2] = r
            total += r
        if there > 3:
            y[at + 3] = s
            total += s
        return total

    @device
    def step(buffer, bands, levels, limits, samples, row, rows, block, mean, flags, checks):
        start, pitch, size = levels[i]
        own, t = block * tile, number(0) if keeps else limits.array[limits.first + i * rows + row]
        load(buffer, bands.array, bands.magnitudes, start + row * pitch, 2 * size[1] // wide, block * coarse - back, t)
        cuda.syncthreads()
        total = number(0)
        for item in range(cuda.threadIdx.x, items, threads):
            o, window = item * GROUP - before, skip + item * inputs
            values = synthesise(buffer, (source + window, high + window))
            if i:
                store(buffer, target + before + o, values)
            else:
                at = samples.begin + row * samples.pitch + own + o
                total += final(samples.array, at, size[0] - own - o, samples.aligned, mean, values)
        if i:
            mend(buffer, target + before - own, own - before, own + tile + after, size[1])
        elif checks and total - total != 0:
            flags[NOT_FINITE] = 1

    return step


@cache
def synthesis(of: Fused, function: str, weighs_lowpass: bool, centred: bool) -> Kernel:
    """Kernel of some levels of the inverse, ``function`` as for `shrinking`; low-pass ones may have gains too.

    If ``centred``, the mean is added to samples again.
    """
    dtype, threads, last = of.levels[0].build.dtype, of.levels[0].build.threads, of.count - 1
    number = np.dtype(dtype).type
    room = [of.tiles[i + 1] + sum(of.back[i]) for i in range(of.count)]
    low = 0, max(room[::2])  # the low-pass coefficients of even levels, and of odd ones
    high = low[1] + max([0, *room[1::2]])
    shared = high + max(room)
    (before, after), tile = of.back[last], of.tiles[last + 1]
    load = loading(threads, tile + before + after)
    load_weighed = _weighing(of, last, GAINS, low[last % 2])
    steps = (
        _synthesising(of, i, function, centred, (low[i % 2], high, low[1 - i % 2])) for i in reversed(range(of.count))
    )
    compute, begin_of_low = in_turn(*steps), low[last % 2]

    @kernel(of.build, of, function, weighs_lowpass, centred)
    def dual_tree_traces_synthesis_kernel(
        lowpass, low_count, bands, levels, limits, samples, rows, means, flags, checks
    ):
        """Low-pass coefficients of a row are ``low_count``; magnitudes of the bands are their gains."""
        buffer = cuda.shared.array(shared, number)
        row = cuda.blockIdx.y + ROWS * cuda.blockIdx.z
        if row >= rows:
            return
        mean, low = means[row] if centred else number(0), lowpass.array
        block, start = cuda.blockIdx.x, lowpass.begin + row * lowpass.pitch
        if weighs_lowpass:
            load_weighed(buffer, low, bands.magnitudes, start, low_count, block * tile - before, number(0))
        else:
            load(buffer, begin_of_low, low, start, block * tile - before, (low_count, low_count), True, number(0))
        compute(buffer, bands, levels, limits, samples, row, rows, block, mean, flags, checks)

    return dual_tree_traces_synthesis_kernel


class DualTreePlan(ComplexPlan):
    """Launches of some levels each. Behind the details lie low-pass coefficients, of both trees as complex ones."""

    centres = True

    def __init__(self, shape: Shape, options: KernelOptions) -> None:
        super().__init__(shape, options)
        s, (filters,), tile = shape, shape.filters, options.tile_for(shape.dtype)
        axis = sizes(s.samples, s.depth)
        levels, back = ([Level.of(filters, i, self.build, way) for i in range(s.depth)] for way in (False, True))
        self._first, self._launches, self._places, start, found = [0], [], [], 0, []
        for own in fused(levels, tile, options.coarse):
            first, last = self._first[-1], self._first[-1] + len(own)
            self._launches.append((Fused(own, tile), Fused(tuple(back[first:last]), tile)))
            self._first.append(last)
        self.launches = len(self._launches)
        for level, size in zip(levels, axis, strict=False):
            count = size[1] // level.wide
            self._places.append((2 * start, 2 * up4(count), size))
            found.append((start, up4(count), count, s.rows))
            start += s.rows * up4(count)
        self._axis, count = axis, axis[-1][0] // 2
        coarsest = start, up4(count), count, s.rows
        self.hold(start + s.rows * up4(count), found)
        lists = start + s.rows * up4(count)
        # low-pass coefficients near their quantile follow one another: no block has room to list them
        self.all_counted = DetailLayout(self.magnitudes, [*found, coarsest], lists=lists, listed=s.depth)
        self._low = list[Rows]()
        for i, last in enumerate(self._first[1:-1]):
            pitch = up4(axis[last][0])
            self._low.append(Rows(self.buffer(f"lowpass {i}", s.rows * pitch), 0, pitch, True))
        self._low.append(Rows(self.parts, 2 * start, 2 * up4(count), True))

    def _samples(self, i: int, flat: DeviceArray) -> Rows:
        """Return the rows that the i-th launch reads or, of `inverse`, writes."""
        return self._low[i - 1] if i else Rows(flat, 0, self.shape.samples, self.aligned(flat))

    def _levels(self, i: int) -> tuple[tuple[int, int, tuple[int, int]], ...]:
        """Places and sizes of the levels of a launch."""
        return tuple(self._places[self._first[i] : self._first[i + 1]])

    def _blocks(self, i: int, of: Fused) -> int:
        """Tiles of a row."""
        return -(-self._places[self._first[i]][2][1] // of.tile)

    def forward_launch(self, i: int, x: DeviceArray, stream: Stream, beside: Beside = ALONE) -> None:
        (of, _), rows, means = self._launches[i], self.shape.rows, None if i else beside.means
        kernel = analysis(of, i == self.launches - 1, means is not None)
        launch = kernel[grid(self._blocks(i, of), rows), self.options.threads, stream]
        bands, means = Bands(self.parts, self.magnitudes), self.parts if means is None else means
        launch(self._samples(i, x), rows, self._levels(i), bands, self._low[i], means)

    def inverse_launch(self, i: int, y: DeviceArray, stream: Stream, by: Shrinking = KEPT) -> None:
        (_, of), rows, last = self._launches[i], self.shape.rows, i == self.launches - 1
        details, weights, _ = self.coefficients_for(by)
        limits = Limits(details if by.thresholds is None else by.thresholds, self._first[i] * rows)
        flags, checks = self.flags if by.source is None else by.source.flags, by.source is not None and i == 0
        means, weighs_lowpass = None if i else by.means, last and by.approximation is not None
        kernel = synthesis(of, by.function, weighs_lowpass, means is not None)
        launch = kernel[grid(self._blocks(i, of), rows), self.options.threads, stream]
        source = self._low[i], self._axis[self._first[i + 1]][0], Bands(details, weights), self._levels(i)
        launch(*source, limits, self._samples(i, y), rows, y if means is None else means, flags, checks)

    def shrunk_together(self, grids: GridsOf, thresholds: DeviceArray, stream: Stream) -> Shrinking:
        s, threads, bands, gains = self.shape, self.options.threads, self.all_counted.bands, self.gains
        for one in local_shrinkage.launches(grids(), self.build, s.rows, self.options.local, self.noise.parts):
            begins, pitches, counts, _ = zip(*(bands[i] for i in one.bands), strict=True)
            launch = local_shrinkage.shrinking(one.tile)[grid(one.tiles, s.rows), threads, stream]
            places = local_shrinkage.Places(begins, pitches, counts)
            launch(self.magnitudes, gains, places, thresholds, one.first, s.rows)
        return Shrinking(GAINS, details=gains, approximation=gains)

    def approximation(self) -> Place:
        offset, pitch, length, rows = self.all_counted.bands[-1]
        return Place(self.complex, offset, (rows, length), (pitch, 1))

    def places(self) -> list[Place]:
        found = (
            Place(self.complex, band.offset, (band.rows, band.length), (band.pitch, 1))
            for band in reversed(self.layout.bands)
        )
        return [self.approximation(), *found]
