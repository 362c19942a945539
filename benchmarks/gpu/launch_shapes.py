"""Blocks and tiles chosen by the SKE ranking against the fixed ones, measured: what the backend's own choice goes by.

python -m wavefilt.benchmarks.gpu.launch_shapes --json benchmarks/results/launch_shapes_h200.json
"""

from __future__ import annotations

import argparse
import sys
from datetime import date
from typing import Any

from wavefilt.backends.cuda.work_counts.transforms import Problem
from wavefilt.benchmarks.common.command import save
from wavefilt.benchmarks.common.environment import environment
from wavefilt.benchmarks.ske import estimate
from wavefilt.ske import calibration

WAVELETS = ("haar", "db4", "db8", "sym20")
TRACES = (*((1, 1 << k) for k in range(15, 27)), (64, 1 << 14), (4096, 1 << 14))
"""Rows and samples."""
FIXED = (256, 4096)
LEVEL = 8


def run(
    wavelets: tuple[str, ...] = WAVELETS, traces: tuple[tuple[int, int], ...] = TRACES, first: int = 3
) -> dict[str, Any]:
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
            rows.append({
                "wavelet": wavelet, "taps": wanted.taps, "rows": count, "samples": samples,
                "fixed": measured[FIXED], "ranked": [[*_shape(p), measured[_shape(p)]] for p in tried],
            })  # fmt: skip
            print(_line(rows[-1]), file=sys.stderr, flush=True)
    return {"study": "launch shapes", "date": date.today().isoformat(), "unit": "s", "environment": environment(),
            "fixed": FIXED, "rows": rows}  # fmt: skip


def table(result: dict[str, Any]) -> str:
    """Fixed shape, and the first of the ranking with what it gains; milliseconds are of a whole denoise."""
    rows = result["rows"]
    gains = sorted(row["ranked"][0][2] / row["fixed"] for row in rows)
    worse = sum(gain > 1 for gain in gains)
    lines = [
        f"{'wavelet':8}{'rows':>6}{'samples':>10}{'fixed us':>10}  first of the ranking, then the others: us, ratio"
    ]
    lines += [_line(row) for row in rows]
    return "\n".join([*lines, f"first of the ranking over fixed: median {gains[len(gains) // 2]:.3f}, "
                      f"from {gains[0]:.3f} to {gains[-1]:.3f}, slower in {worse} of {len(gains)}"])  # fmt: skip


def _shape(candidate: Problem) -> tuple[int, int]:
    return candidate.threads, candidate.tiles_of


def _line(row: dict[str, Any]) -> str:
    others = "  ".join(f"{a}, {b}: {1e6 * t:.1f}, {t / row['fixed']:.3f}" for a, b, t in row["ranked"])
    return f"{row['wavelet']:8}{row['rows']:6}{row['samples']:10}{1e6 * row['fixed']:10.1f}  {others}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", metavar="FILE", help="save the measurements here")
    parser.add_argument("--wavelet", action="append", help="instead of haar, db4, db8 and sym20; may be repeated")
    arguments = parser.parse_args()
    result = run(tuple(arguments.wavelet or WAVELETS))
    print(table(result))
    save(arguments.json, result)


if __name__ == "__main__":
    main()
