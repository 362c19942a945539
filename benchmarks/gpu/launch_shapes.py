"""Blocks and tiles chosen by the SKE ranking, and the fixed ones, measured: what the backend's own choice is based on.

``python -m wavefilt.benchmarks.gpu.launch_shapes -o benchmarks/results/launch_shapes_h200.json``
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from wavefilt.backends.cuda.work_counts.transforms import Problem
from wavefilt.benchmarks.common.command import main
from wavefilt.benchmarks.common.environment import result
from wavefilt.benchmarks.common.tables import Report, Row, Table, number
from wavefilt.benchmarks.ske import estimate
from wavefilt.ske import calibration

WAVELETS = ("haar", "db4", "db8", "sym20")
TRACES = (*((1, 1 << k) for k in range(15, 27)), (64, 1 << 14), (4096, 1 << 14))
"""Rows and samples."""
FIXED = (256, 4096)
LEVEL = 8


def run(wavelets: Sequence[str] = WAVELETS, traces: Sequence[tuple[int, int]] = TRACES, first: int = 3) -> Row:
    """Seconds of a denoise with the fixed shape and with the ``first`` of the ranking, for every wavelet and traces."""
    from wavefilt.benchmarks.ske.calibration import Device

    device = calibration.of(Device.current().name)
    rows = []
    for wavelet in wavelets:
        for count, samples in traces:
            wanted = estimate.problem(wavelet, samples, count, LEVEL)
            ranking = estimate.ranked(wanted, device)
            tried = [one.candidate for one in ranking[:first]]
            fixed = next(one.candidate for one in ranking if _shape(one.candidate) == FIXED)
            measured = {_shape(p): estimate.measured(wavelet, p) for p in dict.fromkeys([fixed, *tried])}
            row = {"wavelet": wavelet, "taps": wanted.taps, "rows": count, "samples": samples}
            row |= {"fixed": measured[FIXED], "ranked": [[*_shape(p), measured[_shape(p)]] for p in tried]}
            rows.append(row)
            print(row, file=sys.stderr, flush=True)
    return result("launch shapes", unit="s", fixed=FIXED, rows=rows)


def _shape(candidate: Problem) -> tuple[int, int]:
    return candidate.threads, candidate.tiles_of


def _others(row: Row) -> str:
    """Threads, tile, microseconds and ratio to the fixed shape of the second and third."""
    others = row["ranked"][1:]
    return "  ".join(f"{a}, {b}: {number(1e6 * t)}, {t / row['fixed']:.3f}" for a, b, t in others)


TABLE = Table(
    "The first shape of the ranking against the fixed shape",
    {
        "wavelet": "{wavelet}",
        "rows": "{rows}",
        "samples": "{samples:size}",
        "fixed|μs": "{fixed:us}",
        "threads": "{ranked[0][0]}",
        "tile": "{ranked[0][1]}",
        "first|μs": "{ranked[0][2]:us}",
        "first|over fixed": lambda row: f"{row['ranked'][0][2] / row['fixed']:.3f}",
        "then: threads, tile, μs,|over fixed": _others,
    },
)


def report(found: Row) -> Report:
    """Fixed shape, and the first of the ranking with what it gains; times are of a whole denoise."""
    gains = sorted(row["ranked"][0][2] / row["fixed"] for row in found["rows"])
    note = (
        "time of the first shape of the ranking over that of the fixed one: "
        f"median {gains[len(gains) // 2]:.3f}, from {gains[0]:.3f} to {gains[-1]:.3f}, "
        f"slower in {sum(gain > 1 for gain in gains)} of {len(gains)}"
    )
    return Report([TABLE(found)], [note])


if __name__ == "__main__":
    main(lambda quick: run(WAVELETS[:1] if quick else WAVELETS), report)
