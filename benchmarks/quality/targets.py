"""What the quality study was to reach, and whether it did, from its numbers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby
from typing import Any

import numpy as np

from wavefilt.benchmarks.common.tables import Row

from . import published as literature

NEAR, ERRORS, WORSE, ROW = 0.06, 2, 0.05, 0.02
"""Of a published mean, or in standard errors; worse than EbayesThresh; worse than a row of the baseline."""


def published(row: Row) -> dict[str, tuple[float, float]]:
    """Of every signal of a row, how far it is from the published mean: as a share, and in standard errors."""
    theirs = literature.XING[row["like"]][row["ratio"]]
    return {
        signal: (row["mean"][signal] / mean - 1, (row["mean"][signal] - mean) / np.hypot(error, row["error"][signal]))
        for signal, mean, error in zip(literature.SIGNALS, *theirs, strict=True)
    }


def reached(row: Row) -> tuple[int, str, float]:
    """On how many signals a row comes near enough to the published means, and where it is farthest off, by what share.

    To EbayesThresh it may be nearer to the truth.
    """
    found = published(row)
    shares = {signal: share for signal, (share, _) in found.items()}
    if row["like"] == "EbayesThresh":
        worst = max(shares, key=lambda signal: shares[signal])
        return sum(share <= WORSE for share in shares.values()), worst, shares[worst]
    worst = max(shares, key=lambda signal: abs(shares[signal]))
    return sum(abs(share) <= NEAR or abs(errors) <= ERRORS for share, errors in found.values()), worst, shares[worst]


def verdicts(result: Row) -> Iterator[str]:
    """Of the parts from the baseline on."""
    parts = result["parts"]
    yield from _baseline(parts["baseline"])
    yield from map(_fresh, parts["fresh"])
    yield from _records(parts["records"])


def _shares(row: Row, like: str, rmse: str = "rmse") -> list[float]:
    """Of the four signals, the error over that of a row of the baseline."""
    return [row[rmse][s] / value for s, value in zip(literature.FOUR, literature.BASELINE[like], strict=True)]


def _baseline(rows: Sequence[Row]) -> Iterator[str]:
    known = [row for row in rows if row["like"]]
    over = {}
    for row in known:
        shares = _shares(row, row["like"], "rmse of 30" if row["like"] in literature.FEWER else "rmse")
        over[row["like"]] = max(shares) - 1
    missed = [f"{like} {share:+.1%}" for like, share in over.items() if share > ROW]
    reached, but = f"{len(over) - len(missed)} of {len(over)}", f"; not {', '.join(missed)}" if missed else ""
    yield f"Rows of the baseline reached to {ROW:.0%} or better on all four signals: {reached}{but}."
    best = literature.BASELINE[literature.BEST]
    named = [f"{row['method']}, {row['levels']} levels" for row in rows if max(_shares(row, literature.BEST)) < 1]
    values = ", ".join(f"{value:.3f}" for value in best)
    yield f"Below the best row of the baseline ({values}) on all four signals: {'; '.join(named) or 'none'}."


def _fresh(row: Row) -> str:
    margins = row["standard errors lower"]
    lowest = min(margins, key=lambda signal: margins[signal])
    lower = {s: 1 - row["rmse"][s] / row["rmse of the other"][s] for s in margins}
    return (
        f"On draws that it was not chosen on, {row['method']} with {row['levels']} levels is "
        f"{min(lower.values()):.1%} to {max(lower.values()):.1%} below {row['against']} with 6, "
        f"{margins[lowest]:.1f} standard errors or more ({lowest})."
    )


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
