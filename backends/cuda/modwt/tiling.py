"""How launches of the MODWT cut rows into tiles, and how many levels they compute from one.

A tile is runs of ``width`` neighbouring samples, as far apart as the taps of the launch's finest level. Within it those
taps lie ``width`` apart, those of the next level twice as far, and so on: all levels are computed alike. The finest
levels, whose taps are closer than RUN_BYTES, have tiles without gaps. Lengths below are in elements of a tile.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from wavefilt.backends.cuda.dwt.tiling import up4

RUN_BYTES = 64  # two sectors of memory
BLOCK_BYTES = 12 << 10  # 256 threads for float32, 128 for float64
QUADS = 3  # of outputs a thread computes, its reach apart: odd, so that no two threads of a warp meet in a bank
LEAST_OWN = 0.8  # of what a block computes at most is given to its neighbours' outputs' halo: the rest is its own
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
        """What is needed before the tile: of the input, and of each step's output."""
        return [sum(up4(self.lead(step)) for step in self.steps[i:]) for i in range(self.levels + 1)]

    @cached_property
    def tails(self) -> list[int]:
        """The same after it."""
        return [sum((self.taps - 1) * s - self.lead(s) for s in self.steps[i:]) for i in range(self.levels + 1)]

    @property
    def unit(self) -> int:
        """What tiles are multiples of."""
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
    """As few as do all levels, finest first; coarse levels are as many at a time as their halo allows."""
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
