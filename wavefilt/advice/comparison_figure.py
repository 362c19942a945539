"""The figure of a comparison: for each method its gain, and a trace denoised with it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from wavefilt.plotting.data import COLORS, envelope
from wavefilt.plotting.figure import LARGE, MEDIUM, save, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .comparison import Comparison

MOST, REACH = 24, 0.48
"""Most methods that are drawn, and the height of the largest sample, where rows are 1 apart."""


def plot(found: Comparison, path: Path, *, overwrite: bool) -> None:
    """Draw the figure and write it. Raises the errors of `Comparison.plot`."""
    save(lambda: draw(found), path, overwrite)


def draw(found: Comparison) -> Figure:
    """Return the figure: gains with their standard errors, a trace before and after, and its residual."""
    from matplotlib.figure import Figure

    names = [trial.name for trial in found.trials[:MOST]]
    figure = Figure(figsize=(13, 1.5 + 0.42 * max(len(names), 4)), facecolor="white", layout="constrained")
    gains, after, residual = figure.subplots(1, 3, sharey=True, gridspec_kw={"width_ratios": (1, 1.6, 1.6)})
    for axes in (gains, after, residual):
        style(axes, grid=axes is gains)
        axes.tick_params(axis="y", length=0)
    _draw_gains(gains, found)
    gains.set_yticks(range(len(names)), names)
    gains.set_ylim(len(names) - 0.4, -0.6)
    _draw_traces(after, residual, found)
    some = f"{found.traces} of " * (found.traces < found.of) + f"{found.of} trace{'s' * (found.of > 1)}"
    figure.suptitle(f"Methods by their estimated gain, {some}; noise: {found.noise}", fontsize=LARGE, x=0.01, ha="left")
    return figure


def _draw_gains(axes: Axes, found: Comparison) -> None:
    for row, trial in enumerate(found.trials[:MOST]):
        risk = 10 ** (-trial.gain_db / 10)
        ends = -10 * np.log10([risk + trial.error, max(risk - trial.error, risk / 10)])
        color = COLORS["after"] if trial.tied else COLORS["before"]
        axes.plot(ends, [row, row], color=color, linewidth=1.2)
        axes.plot(trial.gain_db, row, "o" if trial.tied else "s", color=color, markersize=5)
    tied = ", ● cannot be told apart from the best" if len(found.tied) > 1 else ""
    axes.set_xlabel(f"estimated gain (dB) ± standard error{tied}", fontsize=MEDIUM)


def _draw_traces(after: Axes, residual: Axes, found: Comparison) -> None:
    x = found.samples.astype(np.float64)
    mean, step = np.nanmean(x), found.interval or 1.0
    scale = REACH / (np.nanmax(np.abs(x - mean)) or 1.0)
    for row, y in enumerate(found.denoised[:MOST].astype(np.float64)):
        lines = (
            (after, x - mean, "#c8c8c8"),
            (after, y - mean, COLORS["after"]),
            (residual, x - y, COLORS["residual"]),
        )
        for axes, samples, color in lines:
            places, values = envelope(samples)
            axes.plot(places * step, row - scale * values, color=color, linewidth=0.7)
    for axes, title in ((after, "a trace before (grey) and after"), (residual, "residual")):
        axes.set_xlim(0, len(x) * step)
        axes.set_xlabel("time (s)" if found.interval else "time (samples)", fontsize=MEDIUM)
        axes.set_title(title, fontsize=MEDIUM, loc="left")
