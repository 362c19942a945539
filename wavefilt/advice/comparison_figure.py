"""The picture of a comparison: a row for each method, its gain, and what it makes of a trace."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from wavefilt.io.atomic import check_destination, write_atomically
from wavefilt.plot import check_target, file_type, render
from wavefilt.plot.appearance import COLORS, LARGE, MEDIUM, SMALL, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .comparison import Comparison

MOST, POINTS = 24, 2400
"""Methods that are drawn, the best, and samples of a trace, as its extremes."""
REACH = 0.48
"""Of the largest sample, where rows are 1 apart."""


def plot(found: Comparison, path: Path, *, overwrite: bool) -> None:
    """Draw it and write the file. Errors are those of `Comparison.plot`."""
    check_target(path)
    check_destination(path, overwrite=overwrite)
    write_atomically(path, render(draw(found), file_type(path), 120), overwrite=overwrite)


def draw(found: Comparison) -> Figure:
    """Gains with their standard errors, and a trace before and after, and removed, in a row for each method."""
    from matplotlib.figure import Figure

    trials = found.trials[:MOST]
    rows = np.arange(len(trials))
    figure = Figure(figsize=(13, 1.5 + 0.42 * max(len(trials), 4)), facecolor="white", layout="constrained")
    gains, after, removed = figure.subplots(1, 3, sharey=True, gridspec_kw={"width_ratios": (1, 1.6, 1.6)})
    _draw_gains(gains, found)
    gains.set_yticks(rows, [trial.name for trial in trials])
    gains.set_ylim(len(trials) - 0.4, -0.6)
    _draw_traces(after, found, removed=False)
    _draw_traces(removed, found, removed=True)
    for axes in (gains, after, removed):
        style(axes, grid=axes is gains)
        axes.tick_params(axis="y", length=0)
    some = (
        f"{found.traces} of {found.of} traces" if found.traces < found.of else f"{found.of} trace{'s' * (found.of > 1)}"
    )
    figure.suptitle(f"Methods by their estimated gain, {some}; noise {found.noise}", fontsize=LARGE, x=0.01, ha="left")
    return figure


def _draw_gains(axes: Axes, found: Comparison) -> None:
    for row, trial in enumerate(found.trials[:MOST]):
        risk = 10 ** (-trial.gain_db / 10)
        ends = -10 * np.log10([risk + trial.error, max(risk - trial.error, risk / 10)])
        color = COLORS["after"] if trial.tied else COLORS["before"]
        axes.plot(ends, [row, row], color=color, linewidth=1.2)
        axes.plot(trial.gain_db, row, "o" if trial.tied else "s", color=color, markersize=5)
    what = "estimated gain (dB) ± standard error"
    axes.set_xlabel(what + (", ● not to be told apart" if len(found.tied) > 1 else ""), fontsize=MEDIUM)


def _draw_traces(axes: Axes, found: Comparison, removed: bool) -> None:
    x = found.samples.astype(np.float64)
    scale = REACH / (np.nanmax(np.abs(x - np.nanmean(x))) or 1.0)
    step = found.interval or 1.0
    middle = np.nanmean(x)
    for row, y in enumerate(found.denoised[:MOST].astype(np.float64)):
        lines = [(x - y, "removed")] if removed else [(x - middle, "before"), (y - middle, "after")]
        for samples, name in lines:
            times, drawn = _thinned(samples)
            color = "#c8c8c8" if name == "before" else COLORS[name]
            axes.plot(times * step, row - scale * drawn, color=color, linewidth=0.7)
    axes.set_xlim(0, len(x) * step)
    axes.set_xlabel("time (s)" if found.interval else "time (samples)", fontsize=MEDIUM)
    axes.set_title("what was removed" if removed else "a trace before (grey) and after", fontsize=MEDIUM, loc="left")
    axes.tick_params(labelsize=SMALL)


def _thinned(samples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Times and samples to draw: all, or the smallest and largest of parts."""
    step = -(-2 * len(samples) // POINTS)
    if step < 3:
        return np.arange(len(samples), dtype=np.float64), samples
    edges = np.arange(0, len(samples), step)
    ends = np.column_stack([np.fmin.reduceat(samples, edges), np.fmax.reduceat(samples, edges)])
    return np.repeat(edges + step / 2, 2), ends.ravel()
