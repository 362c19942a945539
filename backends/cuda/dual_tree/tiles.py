"""How tiles of a row go through several levels in shared memory, and what lies around a tile at each of them.

A launch reads samples or low-pass coefficients; lengths below are in the elements of each level's own input. The row
goes on symmetrically beyond its ends at every level: tiles at its ends copy what lies there from inside.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from wavefilt.backends.cuda.dwt.tiling import up4

from wavefilt.backends.cuda.runtime.interfaces import Build

from .filters import Along, Level, repeated

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
        """Of analysis: low-pass and high-pass coefficients of a group."""
        return [
            Along(
                [[terms] for part in level.analysis for terms in repeated(part, GROUP // level.wide, level.wide)], GROUP
            )
            for level in self.levels
        ]

    @cached_property
    def up(self) -> list[Along]:
        """Of synthesis: a group, of low-pass and of high-pass coefficients."""
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
    """Return the levels of each launch, finest first, with at least so many elements of a tile at the coarsest."""
    found, begin = [], 0
    while begin < len(levels):
        end = begin + 1
        while end < min(begin + MOST_LEVELS, len(levels)) and tile >> end - begin >= least:
            end += 1
        found.append(tuple(levels[begin:end]))
        begin = end
    return found
