"""Energies of the details, noise and thresholds, by level of the transform."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from .appearance import COLORS, MEDIUM, SIGMA_COLOR, THRESHOLD_COLOR, legend, say, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from wavefilt.engine import Estimate
    from wavefilt.recording import Recording

LINE: dict[str, Any] = {"linewidth": 1.4, "markersize": 4}


def draw_levels(energies: Axes, thresholds: Axes, after: Recording) -> None:
    """Energy of the details before shrinking, and noise and thresholds, by level."""
    estimates = after.outcome.estimates if after.outcome else []
    for axes in (energies, thresholds):
        style(axes, grid=True)
    energies.set_title("detail coefficients by level", fontsize=MEDIUM, pad=5)
    energies.tick_params(labelbottom=False)
    energies.set_ylabel("energy (%)", fontsize=MEDIUM, labelpad=1)
    thresholds.set_ylabel("data units", fontsize=MEDIUM, labelpad=1)
    thresholds.set_xlabel("level (1 = finest)", fontsize=MEDIUM, labelpad=1)
    depth = max((len(e.sigma) for e in estimates), default=0)
    if depth == 0:
        say(energies, "no levels:\nnothing was shrunk")
        say(thresholds, "no thresholds")
        return
    _draw_energies(energies, estimates, depth)
    _draw_thresholds(thresholds, estimates, depth)
    places = np.arange(1, depth + 1, math.ceil(depth / 10))
    thresholds.set_xticks(places)
    bands = after.outcome.method.transform.bands(after.outcome.level) if after.outcome else ()
    if after.outcome and len(bands) > after.outcome.level:
        thresholds.set_xticks(places, [bands[i - 1].name for i in places])
        thresholds.set_xlabel("band (1 = finest)", fontsize=MEDIUM, labelpad=1)
    thresholds.set_xlim(0.4, depth + 0.6)


def _draw_energies(axes: Axes, estimates: list[Estimate], depth: int) -> None:
    """Share of each level in the energy of all details, and the share of the estimated noise."""
    energy, noise = np.zeros(depth), np.zeros(depth)
    for estimate in estimates:
        if estimate.power is None:
            say(axes, "energies not measured")
            return
        own, counts = slice(len(estimate.sigma)), estimate.counts[:, None]
        energy[own] += (estimate.power * counts).sum(axis=1)
        noise[own] += estimate.analysis.transform.parts * (estimate.sigma**2 * counts).sum(axis=1)
    total = energy.sum()
    if not 0 < total < math.inf:
        say(axes, "no energy")
        return
    levels = np.arange(1, depth + 1)
    axes.bar(levels, 100 * energy / total, width=0.62, color=COLORS["before"], alpha=0.55, label="before")
    axes.plot(levels, 100 * noise / total, "o-", color=SIGMA_COLOR, **LINE, label="noise, σ²")
    axes.set_ylim(0, 135 * min(max(energy.max(), noise.max()), 3 * energy.max()) / total)
    legend(axes)


def _draw_thresholds(axes: Axes, estimates: list[Estimate], depth: int) -> None:
    """Median over the traces with noise of σ and the threshold of each level."""
    medians = np.zeros((2, depth))
    for level in range(depth):
        pairs = np.hstack([(e.sigma[level], e.thresholds[level]) for e in estimates if len(e.sigma) > level])
        live = pairs.max(axis=0) > 0
        if live.any():
            medians[:, level] = np.median(pairs[:, live], axis=1)
    levels = np.arange(1, depth + 1)
    axes.plot(levels, medians[1], "s-", color=THRESHOLD_COLOR, **LINE, label="threshold")
    axes.plot(levels, medians[0], "o-", color=SIGMA_COLOR, **LINE, label="noise σ")
    if medians.min() > 0:
        _log_scale(axes, medians.min(), medians.max())
    else:
        axes.set_ylim(0, 1.35 * medians.max() or 1.0)
    legend(axes)


def _log_scale(axes: Axes, low: float, high: float) -> None:
    """A logarithmic amplitude axis with plain numbers, and room for a legend above the values."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axes.set_yscale("log")
    room = max(high / low, 1.5)
    axes.set_ylim(low / room**0.12, high * room**0.45)
    axes.yaxis.set_major_locator(LogLocator(10, subs=(1, 2, 5) if high / low < 100 else (1,), numticks=6))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_locator(NullLocator())
