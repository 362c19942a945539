"""The traces before, after and removed on one scale: a single trace as lines, many as wiggles or an image."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from wavefilt.arrays import Floats

from .appearance import COLORS, MEDIUM, style, tag
from .traces import PANELS, POINTS, Gather, middle

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.gridspec import GridSpecBase, SubplotSpec

WIGGLES = 60
"""Most traces drawn as wiggles; more are drawn as an image."""
COLUMNS = 900
"""Most traces of an image; of more, every k-th is drawn."""
GAP_COLOR = "#d9d9d9"
DAY = 86400
STEPS = [m * 10**e for e in range(-6, 1) for m in (1, 2, 5)] + [10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200]
STEPS += [10800, 21600, 43200, *(DAY * m * 10**e for e in range(5) for m in (1, 2, 5))]
"""Seconds between the ticks of a time axis."""


def draw_lines(figure: Figure, cell: SubplotSpec, gather: Gather) -> None:
    """One row as three stacked lines with the same axes."""
    panels = _panels(figure, cell.subgridspec(3, 1, hspace=0.12))
    for panel, axes in zip(PANELS, panels, strict=True):
        draw_line(axes, gather, panel)
        axes.tick_params(labelbottom=axes is panels[-1])
        tag(axes, _caption(panel))
    known = np.concatenate([np.asarray(axes.lines[0].get_ydata(), np.float64) for axes in panels])
    known = known[np.isfinite(known)]
    low, high = (float(known.min()), float(known.max())) if known.size else (-1.0, 1.0)
    margin = 0.06 * (high - low) or 0.06 * abs(high) or 1.0  # also where all samples are equal
    panels[0].set_ylim(low - margin, high + margin)
    panels[1].set_ylabel("amplitude (data units)", fontsize=MEDIUM)
    panels[-1].set_xlabel(gather.time_label, fontsize=MEDIUM, labelpad=1)


def draw_line(axes: Axes, gather: Gather, panel: str) -> None:
    """The one row of a gather."""
    times, samples = gather.line(0, panel)
    marker = "." if len(times) <= POINTS else None
    axes.plot(times, samples, color=COLORS[panel], linewidth=0.8, marker=marker, label=panel)
    style(axes, grid=True)
    axes.set_xlim(*gather.span)
    time_axis(axes.xaxis, gather, *gather.span)


def _panels(figure: Figure, grid: GridSpecBase) -> list[Axes]:
    """A panel for each of `PANELS`, all with the axes of the first."""
    first = figure.add_subplot(grid[0], label=PANELS[0])
    others = [figure.add_subplot(grid[i], label=PANELS[i], sharex=first, sharey=first) for i in (1, 2)]
    return [first, *others]


def draw_gather(figure: Figure, cell: SubplotSpec, gather: Gather) -> None:
    """Three panels of traces side by side, time downwards; each trace has the same scale in all three."""
    panels = _panels(figure, cell.subgridspec(1, 3, wspace=0.05))
    for panel, axes in zip(PANELS, panels, strict=True):
        draw_rows(axes, gather, panel)
        axes.set_title(_caption(panel), fontsize=MEDIUM + 1, color=COLORS[panel], fontweight="bold", pad=5)
        axes.set_xlabel(
            f"{'' if gather.names else 'trace (from 0), '}normalised per trace", fontsize=MEDIUM, labelpad=2
        )
        axes.tick_params(labelleft=axes is panels[0])
    panels[0].set_ylabel(gather.time_label, fontsize=MEDIUM)


def draw_rows(axes: Axes, gather: Gather, panel: str) -> None:
    """The rows of a gather side by side, as wiggles or an image, time downwards."""
    from matplotlib.ticker import MaxNLocator

    image = len(gather) > WIGGLES
    (_image if image else _wiggles)(axes, gather, panel)
    style(axes)
    ticks = MaxNLocator(6 if gather.names else 9, integer=True).tick_values(0, len(gather) - 1)
    places = [int(tick) for tick in ticks if 0 <= tick < len(gather)]
    if gather.names:
        turned: dict[str, Any] = {"rotation": 18, "ha": "right", "rotation_mode": "anchor"} if len(places) > 4 else {}
        axes.set_xticks(places, [gather.names[place] for place in places], **turned)
    else:
        axes.set_xticks(places)
    axes.set_ylim(*gather.span[::-1])
    axes.set_xlim(*((-0.5, len(gather) - 0.5) if image else (-1.6, len(gather) + 0.6)))
    time_axis(axes.yaxis, gather, *gather.span)


def time_axis(axis: Axis, gather: Gather, first: float, last: float, most: int = 7) -> None:
    """Times of the day in round steps, with the date of later days; without a date the axis stays as it is."""
    if gather.day is None:
        return
    step = next((step for step in STEPS if step * most >= last - first), STEPS[-1])
    digits = max(0, math.ceil(-math.log10(step)))
    places = np.arange(math.ceil(first / step), math.floor(last / step) + 1) * step
    labels = []
    for seconds in places:
        days, rest = divmod(round(seconds, digits), DAY)
        date = f"{str(gather.day + np.timedelta64(int(days), 'D'))[5:]} " if days or step >= DAY else ""
        parts = f":{rest % 60:0{3 + digits if digits else 2}.{digits}f}" if step < 60 else ""
        labels.append(f"{date}{int(rest // 3600):02}:{int(rest // 60 % 60):02}{parts}")
    axis.set_ticks(places, labels)


def _caption(panel: str) -> str:
    return "removed  (before − after, same scale)" if panel == "removed" else panel


def _wiggles(axes: Axes, gather: Gather, panel: str) -> None:
    """Traces as lines with their positive side filled, one apart."""
    drawn = [gather.line(i, "before")[1] for i in range(len(gather))]
    means = [middle(values) for values in drawn]
    scales = _scales([values - mean for values, mean in zip(drawn, means, strict=True)], 99.5)
    for index, (mean, scale) in enumerate(zip(means, scales, strict=True)):
        times, values = gather.line(index, panel)
        offset = np.clip((values - (panel != "removed") * mean) / scale, -1.6, 1.6)
        marker = "." if len(times) <= POINTS else None
        axes.plot(index + offset, times, color=COLORS[panel], linewidth=0.5, marker=marker, markersize=3)
        axes.fill_betweenx(times, index, index + np.maximum(offset, 0), color=COLORS[panel], alpha=0.75, linewidth=0)


def _image(axes: Axes, gather: Gather, panel: str) -> None:
    """Traces as columns of an image."""
    shown = range(0, len(gather), math.ceil(len(gather) / COLUMNS))
    before = [gather.column(i, "before") for i in shown]
    means = [middle(values) for values in before]
    scales = _scales([values - mean for values, mean in zip(before, means, strict=True)], 99)
    columns = before if panel == "before" else [gather.column(i, panel) for i in shown]
    values = np.array(columns) - (panel != "removed") * np.array(means)[:, None]
    axes.set_facecolor(GAP_COLOR)
    extent, drawn = (-0.5, len(gather) - 0.5, gather.stop, gather.start), (values / scales[:, None]).T
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
