"""Blocks and tiles chosen by the SKE ranking, and the fixed ones, measured: what the backend's own choice is based on.

``python -m wavefilt.benchmarks.gpu.launch_shapes -o benchmarks/results/launch_shapes_h200.json``
"""

from __future__ import annotations

import operator
import sys
from collections.abc import Sequence

from wavefilt.backends.cuda.dwt.tiling import TILE_BYTES
from wavefilt.backends.cuda.options import SHAPES, THREADS, Options
from wavefilt.backends.cuda.work_counts.transforms import Problem
from wavefilt.benchmarks.common.command import main
from wavefilt.benchmarks.common.environment import result
from wavefilt.benchmarks.common.tables import Report, Row, Table, number
from wavefilt.benchmarks.ske import estimate
from wavefilt.ske import calibration

WAVELETS = ("haar", "db4", "db8", "sym20")
TRACES = (*((1, 1 << k) for k in range(15, 27)), (64, 1 << 14), (4096, 1 << 14))
"""Rows and samples."""
FIXED = (THREADS, TILE_BYTES // 4)
TRIED = tuple(dict.fromkeys([FIXED, (128, 1024), *((threads, tile) for *_, threads, tile in SHAPES)]))
"""Threads and tiles that are measured whatever the ranking says."""
LEVEL = 8

Found = tuple[int, int, float]
"""Threads, samples of a tile, seconds."""


def run(wavelets: Sequence[str] = WAVELETS, traces: Sequence[tuple[int, int]] = TRACES, first: int = 3) -> Row:
    """Seconds of a denoise with `TRIED` shapes and the ``first`` of the ranking, for every wavelet and traces."""
    from wavefilt.benchmarks.ske.calibration import Device

    device = calibration.of(Device.current().name)
    rows = []
    for wavelet in wavelets:
        for count, samples in traces:
            wanted = estimate.problem(wavelet, samples, count, LEVEL)
            ranking = estimate.ranked(wanted, device)
            by_shape = {_shape(one.candidate): one.candidate for one in ranking}
            ranked = list(by_shape)[:first]
            times = {shape: estimate.measured(wavelet, by_shape[shape]) for shape in dict.fromkeys([*ranked, *TRIED])}
            row: Row = {"wavelet": wavelet, "taps": wanted.taps, "rows": count, "samples": samples}
            row |= {"fixed": times[FIXED], "ranked": [[*shape, times[shape]] for shape in ranked]}
            rows.append(row | {"tried": [[*shape, times[shape]] for shape in TRIED]})
            print(rows[-1], file=sys.stderr, flush=True)
    return result("launch shapes", unit="s", fixed=FIXED, rows=rows)


def _shape(candidate: Problem) -> tuple[int, int]:
    return candidate.threads, candidate.tiles_of


def _told(row: Row, found: Sequence[Found]) -> str:
    """Threads, tile, microseconds and ratio to the fixed shape."""
    return "  ".join(f"{a}, {b}: {number(1e6 * t)}, {t / row['fixed']:.3f}" for a, b, t in found)


def _own(row: Row) -> Found:
    """What the backend has for it."""
    own = Options().suited(row["taps"], "float32", row["rows"], row["samples"])
    shape = own.threads, own.tile_for("float32")
    return next(one for one in _measured(row) if one[:2] == shape)


def _fixed(row: Row) -> Found:
    return *FIXED, row["fixed"]


def _fastest(row: Row) -> Found:
    return min(_measured(row), key=operator.itemgetter(2))


def _measured(row: Row) -> list[Found]:
    return [(threads, tile, seconds) for threads, tile, seconds in (*row["tried"], *row["ranked"])]


TABLE = Table(
    "Shapes of blocks and tiles: the fixed one, and others over it",
    {
        "wavelet": "{wavelet}",
        "rows": "{rows}",
        "samples": "{samples:size}",
        "fixed|μs": "{fixed:us}",
        "threads": "{ranked[0][0]}",
        "tile": "{ranked[0][1]}",
        "first|μs": "{ranked[0][2]:us}",
        "first|over fixed": lambda row: f"{row['ranked'][0][2] / row['fixed']:.3f}",
        "then: threads, tile, μs,|over fixed": lambda row: _told(row, row["ranked"][1:]),
        "the backend's own": lambda row: _told(row, [_own(row)]),
        "fastest|of those measured": lambda row: _told(row, [_fastest(row)]),
    },
)


def report(found: Row) -> Report:
    """Fixed shape, and the first of the ranking with what it gains; times are of a whole denoise."""
    notes = []
    for name, of in (("first shape of the ranking", lambda row: row["ranked"][0]), ("backend's own", _own)):
        for other, base in (("the fixed one", _fixed), ("the fastest measured", _fastest)):
            gains = sorted(of(row)[2] / base(row)[2] for row in found["rows"])
            notes.append(
                f"time of the {name} over that of {other}: median {gains[len(gains) // 2]:.3f}, "
                f"from {gains[0]:.3f} to {gains[-1]:.3f}, slower in {sum(gain > 1 for gain in gains)} of {len(gains)}"
            )
    return Report([TABLE(found)], notes)


if __name__ == "__main__":
    main(lambda quick: run(WAVELETS[:1] if quick else WAVELETS), report)
