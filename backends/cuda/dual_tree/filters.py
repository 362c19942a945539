"""Filters of the dual tree as sums over a window, for kernels that unroll them.

The transform: `wavefilt.transforms.dual_tree`. Both trees lie in turn in one sequence. The first level takes one of
the sequence to one low-pass and one high-pass coefficient, all others four to two of each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from wavefilt.backends.cuda.dwt.tiling import up4
from wavefilt.backends.cuda.runtime.target import device

Terms = list[tuple[float, int]]
"""Taps, and the places that they apply to, from that of the output on."""
HALF = 0.5**0.5


@dataclass(frozen=True)
class Level:
    """What kernels of a level are compiled for: filters of the first level or of tree a, and so many ``threads``."""

    low: tuple[float, ...]
    high: tuple[float, ...]
    first: bool
    dtype: str
    threads: int

    @staticmethod
    def of(bank: Sequence[tuple[float, ...]], level: int, dtype: str, threads: int, back: bool) -> Level:
        """A level, from 0 on, of `DualTree.filter_bank`; ``back`` for synthesis."""
        first = 0 if level == 0 else 4
        begin = first + 2 if back and level == 0 else first  # later ones are synthesised by the transpose
        return Level(tuple(map(float, bank[begin])), tuple(map(float, bank[begin + 1])), level == 0, dtype, threads)

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
    """Those outputs again and again, ``step`` places further each time."""
    return [[(tap, place + i * step) for tap, place in terms] for i in range(times) for terms in outputs]


def reach(outputs: Sequence[Terms]) -> tuple[int, int]:
    """The first and the last place that outputs need."""
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
        """Elements of a tile, a multiple of eight, that is so many columns wide with what lies around it."""
        return (columns - self.lead - self.lag) & ~7


def scaled(outputs: Sequence[Terms], factor: float) -> list[Terms]:
    return [[(tap * factor, place) for tap, place in terms] for terms in outputs]


@device
def inside(i, size):
    """The element at place i of an axis that goes on symmetrically beyond its ends.

    A size is how many elements there are, and to how many they are extended so at the end first.
    """
    there, extended = size
    i %= 2 * extended
    if i >= extended:
        i = 2 * extended - 1 - i
    i %= 2 * there
    return i if i < there else 2 * there - 1 - i


def sizes(n: int, depth: int) -> list[tuple[int, int]]:
    """The size, for `inside`, of an axis of n samples at every level, finest first, and of the last low-pass."""
    extended = -(-n >> depth) << depth
    lengths = (extended >> max(level - 1, 0) for level in range(1, depth + 1))
    return [(n, extended), *((length, length) for length in lengths)]
