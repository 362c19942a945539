"""What others measured, and whether the quality study reaches it.

Means of Xing, Carbonetto and Stephens, and the table that this library set out to beat.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from wavefilt.benchmarks.common.tables import Row

SIGNALS = ("Blocks", "Bumps", "Doppler", "Spikes", "Angles", "Blip", "Corner")
_XING = """
BlockJS | 3 | 46.564 58.984 14.162 19.441 12.714 12.398 2.328 | 0.459 0.634 0.226 0.283 0.208 0.266 0.056
BlockJS | 1 | 199.024 343.841 102.117 154.426 118.212 89.68 15.248 | 2.1 4.102 1.752 2.815 2.212 1.654 0.437
NeighBlock | 3 | 42.663 47.716 10.99 15.267 12.633 10.174 1.856 | 0.469 0.554 0.18 0.252 0.209 0.242 0.049
NeighBlock | 1 | 188.263 330.266 66.568 143.607 134.37 82.727 10.648 | 2.286 3.816 1.239 2.832 2.808 1.509 0.403
SURE | 3 | 53.889 63.02 38.183 39.464 51.588 34.969 9.979 | 1.027 0.986 1.225 1.596 2.6 1.358 0.547
SURE | 1 | 289.754 412.888 246.703 338.101 436.431 244.283 85.988 | 9.941 10.64 11.323 15.018 23.992 12.67 4.942
EbayesThresh | 3 | 21.705 24.876 10.397 11.193 9.024 6.07 1.306 | 0.226 0.238 0.158 0.188 0.186 0.146 0.033
EbayesThresh | 1 | 93.603 148.095 57.493 70.32 53.354 38.039 8.226 | 1.065 1.559 0.901 1.391 1.448 0.859 0.235
TI threshold | 3 | 30.116 27.454 10.932 10.645 8.785 6.563 1.344 | 0.416 0.374 0.187 0.188 0.167 0.152 0.036
TI threshold | 1 | 150.681 239.384 67.993 79.223 63.19 39.918 8.173 | 2.235 3.36 1.167 1.695 1.428 1.074 0.234
smash | 3 | 22.355 22.112 9.106 9.489 7.843 5.681 1.089 | 0.244 0.234 0.151 0.15 0.15 0.148 0.027
smash | 1 | 96.621 153.624 53.162 56.943 46.205 34.698 7.072 | 1.109 1.755 0.924 1.161 1.324 0.823 0.176
"""
_LINES = [line.split(" | ") for line in _XING.strip().splitlines()]
XING: dict[str, dict[int, tuple[tuple[float, ...], tuple[float, ...]]]] = {name: {} for name, *_ in _LINES}
for _name, _ratio, _means, _errors in _LINES:
    XING[_name][int(_ratio)] = tuple(map(float, _means.split())), tuple(map(float, _errors.split()))
"""10⁴ Σ(y - f)²/Σf² of every signal in the mean over 100 seeds, and its standard errors: by method, and by the ratio of
the standard deviations of signal and noise. JMLR 22(93) 2021, from the raw results beside the paper, output/dscr.RData
of stephenslab/smash-paper. Symmlet 8, 1024 samples. "SURE" thresholds hard there, and keeps only what is above.
"""

FOUR = ("Blocks", "Bumps", "HeaviSine", "Doppler")
BASELINE: dict[str, tuple[float, float, float, float]] = {
    "universal soft": (0.957, 1.077, 0.319, 0.557),
    "universal hard": (0.573, 0.583, 0.253, 0.341),
    "minimax soft": (0.684, 0.763, 0.262, 0.407),
    "minimax hard": (0.525, 0.554, 0.395, 0.426),
    "SURE soft": (0.481, 0.513, 0.247, 0.336),
    "hybrid SURE soft": (0.569, 0.537, 0.256, 0.378),
    "FDR hard": (0.474, 0.508, 0.235, 0.313),
    "FDR hard, global": (0.497, 0.533, 0.253, 0.323),
    "BayesShrink soft": (0.514, 0.590, 0.248, 0.394),
    "BlockJS": (0.637, 0.599, 0.292, 0.286),
    "NeighBlock": (0.542, 0.490, 0.265, 0.270),
    "EB Laplace median": (0.454, 0.487, 0.227, 0.305),
    "TI universal hard": (0.374, 0.384, 0.199, 0.229),
    "TI FDR hard": (0.355, 0.376, 0.192, 0.220),
    "TI EB median": (0.372, 0.394, 0.196, 0.231),
    "TI SURE soft": (0.428, 0.441, 0.216, 0.279),
    "TI BayesShrink soft": (0.478, 0.539, 0.229, 0.367),
}
"""Root mean square error over σ = 1 of Donoho and Johnstone's four at sd(f)/σ = 7, 2048 samples, sym8, 6 levels, 50
draws; computed before this library with NumPy and PyWavelets alone. "minimax hard" applies the threshold for soft.
"""
FEWER, DRAWS = ("TI FDR hard", "TI EB median", "TI SURE soft", "TI BayesShrink soft"), 30
"""Rows of it that were computed from the first 30 draws."""
BEST = "TI FDR hard"
NEAR, ERRORS, WORSE, ROW = 0.06, 2, 0.05, 0.02
"""Of a published mean, or in standard errors; worse than EbayesThresh; worse than a row of the baseline."""


def distances(row: Row) -> dict[str, tuple[float, float]]:
    """Of every signal of a row, how far it is from the published mean: as a share, and in standard errors."""
    theirs = XING[row["like"]][row["ratio"]]
    return {
        signal: (row["mean"][signal] / mean - 1, (row["mean"][signal] - mean) / np.hypot(error, row["error"][signal]))
        for signal, mean, error in zip(SIGNALS, *theirs, strict=True)
    }


def reached(row: Row) -> tuple[int, str, float]:
    """On how many signals a row comes near enough to the published means, and where it is farthest off, by what share.

    To EbayesThresh it may be nearer to the truth.
    """
    found, better = distances(row), row["like"] == "EbayesThresh"
    far = {signal: share if better else abs(share) for signal, (share, _) in found.items()}
    near = [
        share <= WORSE if better else abs(share) <= NEAR or abs(errors) <= ERRORS for share, errors in found.values()
    ]
    worst = max(far, key=lambda signal: far[signal])
    return sum(near), worst, found[worst][0]


def verdicts(result: Row) -> Iterator[str]:
    """Of the parts from the baseline on."""
    parts = result["parts"]
    yield from _baseline(parts["baseline"])
    for row in parts["fresh"]:
        margins = row["standard errors lower"]
        lowest = min(margins, key=lambda signal: margins[signal])
        lower = [1 - row["rmse"][signal] / row["rmse of the other"][signal] for signal in margins]
        yield (
            f"On draws that it was not chosen on, {row['method']} with {row['levels']} levels is {min(lower):.1%} to "
            f"{max(lower):.1%} below {row['against']} with 6, {margins[lowest]:.1f} standard errors or more ({lowest})."
        )
    yield from _records(parts["records"])


def _shares(row: Row, like: str, rmse: str = "rmse") -> list[float]:
    """Of the four signals, the error over that of a row of the baseline."""
    return [row[rmse][s] / value for s, value in zip(FOUR, BASELINE[like], strict=True)]


def _baseline(rows: Sequence[Row]) -> Iterator[str]:
    over = {}
    for row in rows:
        if like := row["like"]:
            over[like] = max(_shares(row, like, "rmse of 30" if like in FEWER else "rmse")) - 1
    missed = [f"{like} {share:+.1%}" for like, share in over.items() if share > ROW]
    reached, but = f"{len(over) - len(missed)} of {len(over)}", f"; not {', '.join(missed)}" if missed else ""
    yield f"Rows of the baseline reached to {ROW:.0%} or better on all four signals: {reached}{but}."
    best = BASELINE[BEST]
    named = [f"{row['method']}, {row['levels']} levels" for row in rows if max(_shares(row, BEST)) < 1]
    values = ", ".join(f"{value:.3f}" for value in best)
    yield f"Below the best row of the baseline ({values}) on all four signals: {'; '.join(named) or 'none'}."


def _records(rows: Sequence[Row]) -> Iterator[str]:
    worse = []
    for method in rows[0]["gain_db"]:
        gains = {f"{row['signal']}, {row['noise']}, {row['snr_db']} dB": row["gain_db"][method] for row in rows}
        lost = {case: gain for case, gain in gains.items() if gain < 0}
        if lost:
            case = min(lost, key=lambda case: lost[case])
            worse.append((method, len(lost), f"{lost[case]:+.1f} dB ({case})"))
    for method, count, where in sorted(worse, key=lambda found: -found[1]):
        yield f"{method} makes {count} of {len(rows)} records worse; at worst {where}."
    yield f"The other {len(rows[0]['gain_db']) - len(worse)} methods gain on every record."


def grouped(rows: Sequence[Row], key: str) -> Iterator[tuple[Any, list[Row]]]:
    """Consecutive rows that agree in ``key``."""
    for value, group in groupby(rows, key=lambda row: row[key]):
        yield value, list(group)
