"""Blocks and tiles for rows that are short or many, where the fixed ones are not the fastest.

The first shapes of the SKE ranking (`wavefilt.benchmarks.ske.estimate.ranked`) were measured against the fixed one on
an H200 by `wavefilt.benchmarks.gpu.launch_shapes`; here is the ranking's choice where it was at least as good. For
longer rows it was not: there, and for what was not measured (float64, longer filters), the shape stays as it is.
"""

from __future__ import annotations

MI = 1 << 20
SHAPES = (
    # taps, samples of a row and of all rows at most: threads, samples of a tile
    (8, 2 * MI, 2 * MI, 128, 1024),
    (16, 2 * MI, 2 * MI, 256, 2048),
    (16, MI // 64, 64 * MI, 128, 2048),
)


def suited(taps: int, dtype: str, rows: int, samples: int) -> tuple[int, int] | None:
    """Threads of a block and samples of a tile, or None where the fixed ones are as good."""
    for most_taps, row, all_rows, threads, tile in SHAPES:
        if dtype == "float32" and 2 < taps <= most_taps and samples <= row and rows * samples <= all_rows:
            return threads, tile
    return None
