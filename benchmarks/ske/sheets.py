"""An H200 estimated from its data sheet alone, beside its calibration and what was measured on it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from wavefilt.benchmarks.common.tables import Row, Sheet
from wavefilt.ske import calibration
from wavefilt.ske.calibration import Calibration

from .cases import Case
from .fit import launches, predicted, relative
from .validation import SHORT, choices

SETS = {"development": ("ske_h200", ""), "blind": ("ske_blind_h200", "blind"), "choice": ("ske_blind_h200", "choice")}
"""Of rows: the result that they are in, and their mark there."""


def devices() -> dict[str, Calibration]:
    """What the H200 is estimated by; without parameters, no kernel of an H200 has a part in it."""
    sheet = calibration.load(calibration.ITS_SHEET)
    return {
        "calibration": calibration.default(),
        "data sheet, θ of the H200": sheet,
        "data sheet, θ = 1": replace(sheet, theta={}),
    }


def compared(results: Mapping[str, Row]) -> Sheet:
    """Errors of launches of at least 10 μs of transforms that nothing was fitted to, and of choices of block and tile.

    Transforms alone: the kernels of sums and selection are others today.
    """
    cells = []
    for kind, (name, mark) in SETS.items():
        rows = [row for row in results[name]["rows"] if row.get("set", "") == mark and not row["fit"]]
        rows = [row for row in rows if "error" not in row and Case.of(row).single]
        cells += [[f"{kind}: {by}", *_figures(rows, device)] for by, device in devices().items()]
    heads = ["rows, and what they are estimated by", "launches", "mean", "median", "max", "signed", "rank correlation"]
    heads += ["regret, median", "regret, worst", "worst of three"]
    return Sheet("An H200 estimated from its data sheet", [[head] for head in heads], cells)


def _figures(rows: Sequence[Row], device: Calibration) -> list[str]:
    from scipy.stats import spearmanr

    every = np.array([(predicted(launches(row), device), row["seconds"]) for row in rows])
    estimates, times = every[every[:, 1] >= SHORT].T
    errors = relative(estimates, times)
    size = np.abs(errors)
    cells = [str(len(times)), f"{size.mean():.1%}", f"{np.median(size):.1%}", f"{size.max():.1%}"]
    cells += [f"{errors.mean():+.1%}", f"{spearmanr(estimates, times).statistic:.3f}"]
    if rows[0].get("set") != "choice":  # of some blocks and one tile each, which says little
        return [*cells, "", "", ""]
    found = list(choices(rows, every[:, 0]))
    regrets = [one.regret for one in found]
    return [*cells, f"{np.median(regrets):.3f}", f"{max(regrets):.3f}", f"{max(one.of_three for one in found):.3f}"]
