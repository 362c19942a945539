"""The traces before, after and removed on one scale: a single trace as lines, many as wiggles or an image."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from wavefilt.arrays import Floats

from .appearance import COLORS, MEDIUM, style, tag
from .traces import PANELS, POINTS, Gather, middle

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.gridspec import GridSpecBase, SubplotSpec

WIGGLES = 60
"""Most traces drawn as wiggles; more are drawn as an image."""
COLUMNS = 900
"""Most traces of an image; of more, every k-th is drawn."""
GAP_COLOR = "#d9d9d9"


def draw_lines(figure: Figure, cell: SubplotSpec, gather: Gather) -> None:
    """One trace as three stacked lines with the same axes."""
    pair = gather.pair(0)
    marker = "." if len(pair) <= POINTS else None
    panels = _panels(figure, cell.subgridspec(3, 1, hspace=0.12))
    for row, (panel, axes) in enumerate(zip(PANELS, panels, strict=True)):
        axes.plot(*pair.envelope(panel), color=COLORS[panel], linewidth=0.8, marker=marker, label=panel)
        style(axes, grid=True)
        axes.tick_params(labelbottom=row == len(PANELS) - 1)
        axes.set_ylabel("amplitude (data units)" if row == 1 else "", fontsize=MEDIUM)
        tag(axes, _caption(panel))
    known = np.concatenate([np.asarray(line.get_ydata(), np.float64) for axes in panels for line in axes.lines])
    known = known[np.isfinite(known)]
    low, high = (float(known.min()), float(known.max())) if known.size else (-1.0, 1.0)
    margin = 0.06 * (high - low) or 0.06 * abs(high) or 1.0  # also where all samples are equal
    panels[0].set_ylim(low - margin, high + margin)
    panels[0].set_xlim(*gather.span)
    panels[-1].set_xlabel(gather.time_label, fontsize=MEDIUM, labelpad=1)


def _panels(figure: Figure, grid: GridSpecBase) -> list[Axes]:
    """A panel for each of `PANELS`, all with the axes of the first."""
    first = figure.add_subplot(grid[0], label=PANELS[0])
    others = [figure.add_subplot(grid[i], label=PANELS[i], sharex=first, sharey=first) for i in (1, 2)]
    return [first, *others]


def draw_gather(figure: Figure, cell: SubplotSpec, gather: Gather) -> None:
    """Three panels of traces side by side, time downwards; each trace has the same scale in all three."""
    from matplotlib.ticker import MaxNLocator

    panels = _panels(figure, cell.subgridspec(1, 3, wspace=0.05))
    image = len(gather) > WIGGLES
    for panel, axes in zip(PANELS, panels, strict=True):
        (_image if image else _wiggles)(axes, gather, panel)
        style(axes)
        axes.set_title(_caption(panel), fontsize=MEDIUM + 1, color=COLORS[panel], fontweight="bold", pad=5)
        axes.set_xlabel("trace (from 0), normalised per trace", fontsize=MEDIUM, labelpad=2)
        axes.tick_params(labelleft=axes is panels[0])
    shared = panels[0]
    ticks = MaxNLocator(9, integer=True).tick_values(0, len(gather) - 1)
    shared.set_xticks([tick for tick in ticks if 0 <= tick < len(gather)])
    shared.set_ylabel(gather.time_label, fontsize=MEDIUM)
    shared.set_ylim(*gather.span[::-1])
    shared.set_xlim(*((-0.5, len(gather) - 0.5) if image else (-1.6, len(gather) + 0.6)))


def _caption(panel: str) -> str:
    return "removed  (before − after, same scale)" if panel == "removed" else panel


def _wiggles(axes: Axes, gather: Gather, panel: str) -> None:
    """Traces as lines with their positive side filled, one apart."""
    drawn = [gather.pair(i).envelope("before")[1] for i in range(len(gather))]
    means = [middle(values) for values in drawn]
    scales = _scales([values - mean for values, mean in zip(drawn, means, strict=True)], 99.5)
    for index, (mean, scale) in enumerate(zip(means, scales, strict=True)):
        times, values = gather.pair(index).envelope(panel)
        offset = np.clip((values - (panel != "removed") * mean) / scale, -1.6, 1.6)
        marker = "." if len(times) <= POINTS else None
        axes.plot(index + offset, times, color=COLORS[panel], linewidth=0.5, marker=marker, markersize=3)
        axes.fill_betweenx(times, index, index + np.maximum(offset, 0), color=COLORS[panel], alpha=0.75, linewidth=0)


def _image(axes: Axes, gather: Gather, panel: str) -> None:
    """Traces as columns of an image."""
    shown = range(0, len(gather), math.ceil(len(gather) / COLUMNS))
    before = [gather.pair(i).column("before", gather.duration) for i in shown]
    means = [middle(values) for values in before]
    scales = _scales([values - mean for values, mean in zip(before, means, strict=True)], 99)
    columns = before if panel == "before" else [gather.pair(i).column(panel, gather.duration) for i in shown]
    values = np.array(columns) - (panel != "removed") * np.array(means)[:, None]
    axes.set_facecolor(GAP_COLOR)
    extent, drawn = (-0.5, len(gather) - 0.5, gather.duration, 0), (values / scales[:, None]).T
    axes.imshow(drawn, "RdBu_r", aspect="auto", extent=extent, interpolation="nearest").set_clim(-1, 1)


def _scales(traces: list[Floats], percentile: float) -> Floats:
    """The amplitude drawn as 1 for each trace: a high percentile of its magnitudes before denoising.

    At least a hundredth of the largest, so that an almost silent trace does not look like signal.
    """
    known = [np.abs(values[np.isfinite(values)]) for values in traces]
    scales = np.array([np.percentile(values, percentile) if values.size else 0.0 for values in known])
    largest = scales.max() or max((values.max() for values in known if values.size), default=0.0) or 1.0
    raised: Floats = np.maximum(scales, largest / 100)
    return raised
