"""The figures of the trust report as png files, by matplotlib."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from wavefilt.arrays import Floats, Mask
from wavefilt.plotting.data import COLORS
from wavefilt.plotting.figure import check_target, render, style

from .leakage import WORST
from .picking import FEWEST

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from .trust import TrustReport

SIZE, DPI = (5.2, 3.0), 130
"""Inches, small enough to be readable at the width of a phone, and dots per inch."""
COLUMNS, ROWS = 240, 500
"""Most traces and samples of an image; of more, every k-th is drawn."""
IMAGE = 8
"""Fewest traces that are drawn as an image; of fewer, the trace whose error grew most is drawn."""
SIGNAL, HARM = "#E69F00", "#D55E00"
"""From the palette of Okabe and Ito."""


def figures(report: TrustReport) -> dict[str, bytes]:
    """Return png files by the names of the answers that they illustrate."""
    check_target("x.png")  # raises ImportError without matplotlib
    from matplotlib.figure import Figure

    drawn: dict[str, Callable[[Figure, TrustReport], None]] = {}
    if np.isfinite(report.leakage.change).any():
        drawn = {"error": _error, "windows": _windows, "levels": _levels}
    if np.isfinite(report.leakage.lateral[0]).any():
        drawn["lateral"] = _lateral
    if np.isfinite(report.first_breaks).any():
        drawn["breaks"] = _breaks
    files = {}
    for name, draw in drawn.items():
        figure = Figure(figsize=SIZE if name != "windows" else (SIZE[0], 4.0), layout="constrained")
        draw(figure, report)
        files[name] = render(figure, "png", DPI)
    return files


def _time_label(report: TrustReport) -> str:
    zero = " from the trigger" if report.delay else ""
    return "time (samples)" if report.interval is None else f"time{zero} (s)"


def _extent(report: TrustReport) -> tuple[float, float, float, float]:
    """Return the limits of an image of all traces, with time downwards."""
    start, stop = report.times([0, report.noisy.shape[1]])
    return -0.5, len(report.noisy) - 0.5, float(stop), float(start)


def _worst(report: TrustReport) -> int:
    """Return the trace whose error grew most in a window."""
    change = np.where(np.isfinite(report.leakage.change), report.leakage.change, -np.inf)
    return int(change.max(axis=1).argmax())


def _spans(report: TrustReport, trace: int, which: Mask) -> list[tuple[int, int]]:
    """Return the first samples of runs of windows of a trace, and the samples after the last."""
    cell, spans = report.leakage.cell, list[tuple[int, int]]()
    for window in np.flatnonzero(which[trace]).tolist():
        first, stop = window * cell, min((window + 2) * cell, report.noisy.shape[1])
        if spans and spans[-1][1] >= first:
            first, _ = spans.pop()
        spans.append((first, stop))
    return spans


def _windows(figure: Figure, report: TrustReport) -> None:
    """Draw the traces before and after and the residual, with the windows in which signal was leakage."""
    label = _time_label(report)
    parts = {"before": report.noisy, "after": report.denoised, "residual": report.residual}
    if len(report.noisy) < IMAGE:
        trace = _worst(report)
        every = max(1, report.noisy.shape[1] // 4000)
        times = report.times(np.arange(0, report.noisy.shape[1], every))
        first: Any = None
        for axes, (name, rows) in zip(figure.subplots(3, 1, sharex=True, sharey=True), parts.items(), strict=True):
            axes.plot(times, rows[trace, ::every], color=COLORS[name], linewidth=0.7)
            for low, high in _spans(report, trace, report.leakage.significant):
                axes.axvspan(*report.times([low, high]), color=SIGNAL, alpha=0.25, linewidth=0)
            axes.set_ylabel(name, color=COLORS[name])
            style(axes, grid=True)
            first = axes
        first.set_xlabel(f"{label}, trace {report.traces[trace]}; shaded: signal in the residual")
        return
    columns = np.linspace(0, len(report.noisy) - 1, min(COLUMNS, len(report.noisy))).astype(int)
    every = max(1, report.noisy.shape[1] // ROWS)
    scale = np.nanpercentile(np.abs(report.noisy[columns]), 99, axis=1) + 1e-300
    extent = _extent(report)
    axes_of = figure.subplots(1, 3, sharex=True, sharey=True)
    for axes, (name, rows) in zip(axes_of, parts.items(), strict=True):
        shown = (rows[columns, ::every] / scale[:, None]).T
        axes.imshow(shown, cmap="gray", vmin=-1, vmax=1, aspect="auto", extent=extent, interpolation="nearest")
        axes.set_title(name, color=COLORS[name], fontsize=9, fontweight="bold")
        style(axes)
    starts = np.arange(0, report.noisy.shape[1], every)
    window = np.minimum(starts // report.leakage.cell, report.leakage.significant.shape[1] - 1)
    marked = report.leakage.significant[columns][:, window].T
    shade = np.zeros((*marked.shape, 4))
    shade[marked] = (0.902, 0.624, 0.0, 0.45)
    axes_of[2].imshow(shade, aspect="auto", extent=extent, interpolation="nearest")
    axes_of[0].set_ylabel(label)
    axes_of[1].set_xlabel("trace; orange: signal in the residual")


def _error(figure: Figure, report: TrustReport) -> None:
    """Draw the growth of the error in every window."""
    label = _time_label(report)
    axes, change, cell = figure.subplots(), report.leakage.change, report.leakage.cell
    if len(change) < IMAGE:
        trace = _worst(report)
        times = report.times((np.arange(change.shape[1]) + 1) * cell)
        axes.axhline(0, color="#666666", linewidth=0.8)
        axes.axhline(WORST, color=HARM, linewidth=1, linestyle="--", label=f"harmful above {WORST:g}")
        axes.plot(times, change[trace], color=COLORS["after"], drawstyle="steps-mid", linewidth=1.2)
        axes.plot(times[report.harmed[trace]], change[trace][report.harmed[trace]], "o", color=HARM, markersize=4)
        axes.set_xlabel(f"{label}, trace {report.traces[trace]}")
        axes.set_ylabel("growth of the error\n(noise energy = 1)")
        axes.set_yscale("symlog", linthresh=2)
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        axes.legend(fontsize=8, frameon=False)
        style(axes, grid=True)
        return
    columns = np.linspace(0, len(change) - 1, min(COLUMNS, len(change))).astype(int)
    image = axes.imshow(change[columns].T, cmap="PuOr_r", vmin=-2, vmax=2, aspect="auto", extent=_extent(report))
    bar = figure.colorbar(image, ax=axes, extend="both", shrink=0.9)
    bar.set_label("growth of the error (noise energy = 1)", fontsize=8)
    axes.set_xlabel("trace; purple: better, orange: worse")
    axes.set_ylabel(label)
    style(axes)


def _levels(figure: Figure, report: TrustReport) -> None:
    """Draw spectra by level, and the share of the residual in the energy of each level."""
    leakage = report.leakage
    count = leakage.noise.shape[1]
    upper, lower = figure.subplots(2, 1, sharex=True, height_ratios=(1.6, 1))
    live = leakage.noise.max(axis=1, initial=0) > 0
    edges = 0.5 ** np.arange(1, count + 1)
    edges = np.append(edges, edges[-1] / 2)[::-1] / (report.interval or 1)
    spectra = {"before": leakage.power, "residual": leakage.residual}
    for name, rows in spectra.items():
        _stairs(upper, rows[live], edges, label=name, color=COLORS[name])
    _stairs(upper, leakage.noise[live], edges, label="noise (estimate)", color="#0072B2", linestyle="--")
    upper.set_ylabel("power, dB")
    upper.legend(fontsize=8, frameon=False)
    total = np.maximum(leakage.power[live].sum(axis=0), 1e-300)
    shares = 100 * leakage.residual[live].sum(axis=0) / total
    colors = np.where(leakage.octaves, SIGNAL, "#8c8c8c")
    lower.bar(edges[:-1], shares[::-1], np.diff(edges), align="edge", color=colors[::-1], edgecolor="white")
    lower.set_ylabel("residual, %")
    lower.set_xscale("log", base=2 if report.interval is None else 10)
    lower.set_xlabel("frequency (cycles/sample)" if report.interval is None else "frequency (Hz)")
    if report.interval is not None:
        lower.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    for axes in (upper, lower):
        style(axes, grid=True)


def _stairs(axes: Axes, rows: Floats, edges: Floats, **look: Any) -> None:
    """Draw the median over traces of each level, in dB."""
    if len(rows):
        middle = np.median(rows, axis=0)
        power = 10 * np.log10(np.maximum(middle, 1e-30 * middle.max() + 1e-300))
        axes.stairs(power[::-1], edges, baseline=None, **look)


def _lateral(figure: Figure, report: TrustReport) -> None:
    """Draw the correlations with the next trace, and those of simulated noise."""
    axes = figure.subplots()
    values, null = report.leakage.lateral
    bins = np.linspace(0, 1, 41)
    for rows, name, color in ((values, "next trace", COLORS["residual"]), (null, "noise alone", "#4d4d4d")):
        known = rows[np.isfinite(rows)]
        axes.hist(known, bins.tolist(), histtype="step", density=True, color=color, label=name, linewidth=1.4)
    axes.set_xlabel("largest correlation of the residual, by window")
    axes.set_ylabel("density")
    axes.legend(fontsize=8, frameon=False)
    style(axes, grid=True)


def _breaks(figure: Figure, report: TrustReport) -> None:
    """Draw the shift of the first break of each trace."""
    axes = figure.subplots()
    shifts = (report.first_breaks[:, 1] - report.first_breaks[:, 0]) * (report.interval or 1.0)
    axes.axhline(0, color="#666666", linewidth=0.8)
    axes.plot(report.traces, shifts, "o", color=COLORS["after"], markersize=4)
    if np.isfinite(shifts).sum() >= FEWEST:
        axes.axhline(float(np.nanmedian(shifts)), color=HARM, linestyle="--", linewidth=1, label="median")
        axes.legend(fontsize=8, frameon=False)
    axes.set_xlabel("trace")
    axes.set_ylabel("shift of the first break\n" + ("(samples)" if report.interval is None else "(s)"))
    axes.set_xlim(report.traces[0] - 0.5, report.traces[-1] + 0.5)
    style(axes, grid=True)
