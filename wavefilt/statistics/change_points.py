"""Change points of the noise of a trace, from the magnitudes of its finest details.

log median|d| of blocks of m details are normal about a level that is constant between change points, with variance
1.36/m (of the median of normal noise); a wave shorter than half a block does not move them. Levels and points are
fitted by least squares, with `PENALTY` log n for each point, n being the number of details (Lavielle and Moulines,
Journal of Time Series Analysis 21, 2000; the leading term of Zhang and Siegmund, Biometrics 63, 2007).
The minimum over all partitions is found by dynamic programming. A point is then moved by at most `MOVED` blocks to
where log|d| of the single details on its sides differ most.

Signal that lasts as long as the shortest interval is a change as well: nothing here tells it from noise.
"""

from __future__ import annotations

import numpy as np

from wavefilt.arrays import Array, Floats
from wavefilt.statistics.batch import median

BLOCKS, BLOCK = 256, 32
"""Blocks of a trace at most, and details of one at least."""
SHORTEST = 16
"""Part of the trace that an interval has at least, if that is four blocks or more."""
PENALTY = 3.0
VARIANCE = 1.36
"""Of the logarithm of the median of |d| of m details, times m."""
MOVED = 2
LEAST = 1e-6
"""Of the largest median: magnitudes below it count as that much."""


def find(magnitudes: Array) -> list[int]:
    """The first detail of each interval but the first, of details of a trace (details,) whose |d| are given."""
    size = max(-(-magnitudes.size // BLOCKS), BLOCK)
    count = magnitudes.size // size
    shortest = max(count // SHORTEST, 4)
    if count < 2 * shortest:
        return []
    medians = median(magnitudes[: count * size].reshape(count, size))
    least = LEAST * medians.max()
    if least == 0:
        return []
    levels = np.log(np.maximum(medians, least))
    edges = _partition(levels * (size / VARIANCE) ** 0.5, shortest, PENALTY * np.log(magnitudes.size))
    return _moved([size * edge for edge in edges], np.log(np.maximum(magnitudes, least)), MOVED * size)


def _partition(values: Floats, shortest: int, penalty: float) -> list[int]:
    """Where intervals of constant mean begin, but the first: least Σ (v - mean)² + penalty for each of them.

    They have ``shortest`` of the values or more.
    """
    count, places = len(values), np.arange(len(values) + 1)
    sums, squares = (
        np.concatenate([[0.0], np.cumsum(v)]) for v in (values - values.mean(), (values - values.mean()) ** 2)
    )
    best, before = np.full(count + 1, np.inf), np.zeros(count + 1, int)
    best[0] = -penalty
    for end in range(shortest, count + 1):
        starts = places[: end - shortest + 1]
        cost = squares[end] - squares[starts] - (sums[end] - sums[starts]) ** 2 / (end - starts)
        totals = best[starts] + cost + penalty
        before[end] = int(np.argmin(totals))
        best[end] = totals[before[end]]
    edges, end = list[int](), int(before[count])
    while end > 0:
        edges.append(end)
        end = int(before[end])
    return edges[::-1]


def _moved(edges: list[int], values: Floats, most: int) -> list[int]:
    """Each edge moved by so many values at most to where the means on its sides differ most: least Σ (v - mean)²."""
    found = list(edges)
    for i, edge in enumerate(edges):
        begin = found[i - 1] if i else 0
        end = edges[i + 1] if i + 1 < len(edges) else len(values)
        own = values[begin:end] - values[begin:end].mean()
        splits = np.arange(max(edge - most - begin, 1), min(edge + most - begin, len(own) - 1) + 1)
        gains = np.cumsum(own)[splits - 1] ** 2 / (splits * (len(own) - splits))
        found[i] = begin + int(splits[np.argmax(gains)])
    return found
