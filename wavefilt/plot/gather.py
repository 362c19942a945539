"""The traces before, after and removed on one scale: horizontal seismograms, wiggles downwards, or an image."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from wavefilt.arrays import Floats

from .appearance import COLORS, DENSITY, MEDIUM, SMALL, style, tag
from .traces import BINS, COLUMNS, POINTS, Gather, spacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure
    from matplotlib.gridspec import SubplotSpec

VERTICES = 100_000
"""Most points of all wiggles of a figure that are drawn as paths; more make an image in PDF and SVG."""
GAP_COLOR = "#d9d9d9"
CENTRE: dict[str, Any] = {"va": "center", "ha": "center"}
DAY = 86400
STEPS = [m * 10**e for e in range(-6, 1) for m in (1, 2, 5)] + [10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200]
STEPS += [10800, 21600, 43200, *(DAY * m * 10**e for e in range(5) for m in (1, 2, 5))]
"""Seconds between the ticks of a time axis."""


def draw_traces(figure: Figure, cell: SubplotSpec, gather: Gather) -> None:
    """A panel for each of ``gather.panels``, all with the axes and the scales of the first."""
    count = len(gather.panels)
    if gather.display == "seismogram":
        grid = cell.subgridspec(count, 1, hspace=0.12)
    else:
        grid = cell.subgridspec(1, count, wspace=0.05)
    panels: list[Axes] = []
    for i, panel in enumerate(gather.panels):
        shared = {"sharex": panels[0], "sharey": panels[0]} if panels else {}
        axes = figure.add_subplot(grid[i], label=panel, **shared)
        panels.append(axes)
        draw_panel(axes, gather, panel)
        if gather.display == "seismogram":
            axes.tick_params(labelbottom=i == count - 1)
            tag(axes, _caption(gather, panel), COLORS[panel])
        else:
            axes.set_title(_caption(gather, panel), fontsize=MEDIUM + 1, color=COLORS[panel], fontweight="bold", pad=5)
            axes.tick_params(labelleft=i == 0)
            _name_rows(axes, gather)
    (_finish_seismograms if gather.display == "seismogram" else _finish_columns)(figure, panels, gather)


def margins(gather: Gather) -> tuple[float, float, float, float]:
    """Inches on the left, below, on the right and above of the panels, for their labels."""
    if gather.display == "seismogram":
        several = len(gather) > 1
        longest = max(map(len, gather.labels)) if several else 0
        return max(0.72, 0.25 + 0.075 * longest), 0.5, 1.05 if several else 0.2, 0.05
    below = 0.5 + 0.35 * (gather.by == "id") + 0.17 * (gather.display == "wiggle")
    return (0.72 if gather.day is None else 1.4), below, 0.95 if gather.display == "density" else 0.2, 0.3


def draw_panel(axes: Axes, gather: Gather, panel: str) -> None:
    """The rows of a gather in one panel."""
    if gather.display != "seismogram":
        _draw_rows(axes, gather, panel)
    elif len(gather) == 1:
        _draw_line(axes, gather, panel)
    else:
        _draw_seismograms(axes, gather, panel)


def _caption(gather: Gather, panel: str) -> str:
    if len(gather.kinds) == 1:
        return ""
    return "removed  (before − after, same scale)" if panel == "removed" else panel


# ------------------------------------------------------------------------------------------------------ horizontally


def _draw_line(axes: Axes, gather: Gather, panel: str) -> None:
    """The one row of a gather in its own units."""
    times, samples = gather.line(0, panel)
    _horizontal(axes, gather, grid=True)
    axes.plot(times, samples, color=COLORS[panel], linewidth=0.8, marker=_marker(times), label=panel)


def _draw_seismograms(axes: Axes, gather: Gather, panel: str) -> None:
    """Rows under each other, the first at the top, each to its own scale."""
    _horizontal(axes, gather)
    for row, (mean, scale) in enumerate(gather.scales.values()):
        times, samples = gather.line(row, panel)
        values = np.clip((samples - (panel != "removed") * mean) / scale, -1, 1)
        line = axes.plot(times, row - 0.46 * values, color=COLORS[panel], linewidth=0.7, marker=_marker(times))[0]
        line.set_rasterized(_many(gather))
    axes.hlines(np.arange(1, len(gather)) - 0.5, *gather.span, color="#d0d0d0", linewidth=0.5)
    axes.set_yticks(range(len(gather)), gather.labels)
    axes.set_ylim(len(gather) - 0.5, -0.5)


def _horizontal(axes: Axes, gather: Gather, grid: bool = False) -> None:
    style(axes, grid=grid)
    axes.set_xlim(*gather.span)
    time_axis(axes.xaxis, gather, *gather.span)


def _finish_seismograms(figure: Figure, panels: list[Axes], gather: Gather) -> None:
    panels[-1].set_xlabel(gather.time_label, fontsize=MEDIUM, labelpad=1)
    label = f"amplitude ({gather.unit})"
    if len(gather) == 1:
        panels[len(panels) // 2].set_ylabel(label, fontsize=MEDIUM)
        panels[0].set_ylim(*_limits(panels, gather))
        return
    for axes in panels:  # what half the height of a row stands for
        twin = axes.secondary_yaxis("right")
        twin.set_yticks(range(len(gather)), [f"±{_short(scale)}" for _, scale in gather.scales.values()])
        twin.tick_params(labelsize=SMALL, length=0)
        twin.spines["right"].set_visible(False)
    whole = (panels[0].get_position().y1 + panels[-1].get_position().y0) / 2
    figure.text(1 - 0.2 / figure.get_figwidth(), whole, f"half a row: {label}", fontsize=MEDIUM, rotation=90, **CENTRE)


def _short(value: float) -> str:
    """Three digits at least, without an exponent up to a million."""
    return f"{value:.0f}" if 100 <= value < 1e6 else f"{value:.3g}"


def _limits(panels: list[Axes], gather: Gather) -> tuple[float, float]:
    """Of the amplitudes of one row: all of them, or as far as the percentile asked for."""
    known = np.concatenate([np.asarray(axes.lines[0].get_ydata(), np.float64) for axes in panels])
    known = known[np.isfinite(known)]
    low, high = (float(known.min()), float(known.max())) if known.size else (-1.0, 1.0)
    if gather.clip is not None:
        ((mean, scale),) = gather.scales.values()
        low, high = max(low, min(mean, 0) - scale), min(high, max(mean, 0) + scale)
    margin = 0.06 * (high - low) or 0.06 * abs(high) or 1.0  # also where all samples are equal
    return low - margin, high + margin


# --------------------------------------------------------------------------------------------------------- downwards


def _draw_rows(axes: Axes, gather: Gather, panel: str) -> None:
    """The rows side by side at their places, time downwards."""
    image = gather.display == "density"
    style(axes)
    (_draw_image if image else _draw_wiggles)(axes, gather, panel)
    margins = np.array([-0.5, 0.5] if image else [-1.6, 1.6]) * gather.spacing
    axes.set_xlim(gather.places[0] + margins[0], gather.places[-1] + margins[1])
    axes.set_ylim(*gather.span[::-1])
    time_axis(axes.yaxis, gather, *gather.span)


def _name_rows(axes: Axes, gather: Gather) -> None:
    from matplotlib.ticker import MaxNLocator

    label = {"trace": "trace (from 0)", "offset": "offset (m)", "id": "station id"}[gather.by]
    if gather.display == "wiggle":
        label += f"\nspacing = {_reference(gather)}"
    axes.set_xlabel(label, fontsize=MEDIUM, labelpad=2)
    axes.xaxis.set_major_locator(MaxNLocator(9, integer=gather.by != "offset"))
    if gather.by != "offset":
        ticks = MaxNLocator(6 if gather.by == "id" else 9, integer=True).tick_values(0, len(gather) - 1)
        places = [int(tick) for tick in ticks if 0 <= tick < len(gather)]
        room = axes.get_window_extent().width / axes.figure.dpi / (len(gather) + 2.2) * max(np.diff(places), default=1)
        wide = 0.08 * max(map(len, gather.labels)) > room
        turned: dict[str, Any] = {"rotation": 18, "ha": "right", "rotation_mode": "anchor"} if wide else {}
        if gather.by == "id":
            axes.set_xticks(places, [gather.labels[place] for place in places], **turned)
        else:
            axes.set_xticks(places)


def _reference(gather: Gather) -> str:
    """The amplitude that is drawn as 1."""
    gained = f" with {gather.gain}" if gather.gain else ""
    return f"{gather.percentile:g} % quantile of |trace|{gained}"


def _finish_columns(figure: Figure, panels: list[Axes], gather: Gather) -> None:
    panels[0].set_ylabel(gather.time_label, fontsize=MEDIUM)
    if gather.display == "density":
        place = panels[-1].inset_axes((1.025, 0, 0.03 * len(panels) / 3, 1), label="amplitudes")
        bar = figure.colorbar(panels[0].images[0], cax=place, ticks=(-1, -0.5, 0, 0.5, 1))
        bar.set_label(f"amplitude / {_reference(gather)}", fontsize=MEDIUM)
        bar.ax.tick_params(labelsize=SMALL)


def _draw_wiggles(axes: Axes, gather: Gather, panel: str) -> None:
    """Traces as lines with their positive side filled, one spacing apart."""
    drawn = zip(gather.places, gather.scales.values(), strict=True)
    for row, (place, (mean, scale)) in enumerate(drawn):
        times, values = gather.line(row, panel)
        swing = gather.spacing * np.clip((values - (panel != "removed") * mean) / scale, -1.6, 1.6)
        style: dict[str, Any] = {"color": COLORS[panel], "rasterized": _many(gather)}
        axes.plot(place + swing, times, linewidth=0.5, marker=_marker(times), markersize=3, **style)
        axes.fill_betweenx(times, place, place + np.maximum(swing, 0), alpha=0.75, linewidth=0, **style)


def _draw_image(axes: Axes, gather: Gather, panel: str) -> None:
    """Traces as columns of an image, each up to the middle between its neighbours."""
    shown = list(gather.scales)
    places = gather.places[shown]
    step = max(spacing(places), (places[-1] - places[0]) / COLUMNS)
    grid = np.arange(places[0], places[-1] + step / 2, step)
    nearest = np.searchsorted((places[1:] + places[:-1]) / 2, grid)
    columns = np.array([gather.column(row, panel) for row in shown])
    means, scales = np.array([gather.scales[row] for row in shown]).T[..., None]
    image = ((columns - (panel != "removed") * means) / scales)[nearest]
    image[np.abs(grid - places[nearest]) > 0.75 * step] = np.nan  # where there is no trace
    axes.set_facecolor(GAP_COLOR)
    extent = (grid[0] - step / 2, grid[-1] + step / 2, gather.stop, gather.start)
    axes.imshow(image.T, DENSITY, aspect="auto", extent=extent, interpolation="nearest").set_clim(-1, 1)


def _marker(times: Floats) -> str | None:
    return "." if len(times) <= POINTS else None


def _many(gather: Gather) -> bool:
    """Whether lines and fillings have so many points that a file of paths would be large."""
    paths = len(gather) * len(gather.panels) * (3 if gather.display == "wiggle" else 1)
    return paths * min(gather.longest, 2 * BINS) > VERTICES


def time_axis(axis: Axis, gather: Gather, first: float, last: float, most: int = 7) -> None:
    """Times of the day in round steps, with the date of each later day once; without a date the axis stays as it is."""
    if gather.day is None:
        return
    step = next((step for step in STEPS if step * most >= last - first), STEPS[-1])
    digits = max(0, math.ceil(-math.log10(step)))
    places = np.arange(math.ceil(first / step), math.floor(last / step) + 1) * step
    labels, shown = [], 0
    for seconds in places:
        days, rest = divmod(round(seconds, digits), DAY)
        date = f"{str(gather.day + np.timedelta64(int(days), 'D'))[5:]} " if days != shown or step >= DAY else ""
        shown = days
        parts = f":{rest % 60:0{3 + digits if digits else 2}.{digits}f}" if step < 60 else ""
        labels.append(f"{date}{int(rest // 3600):02}:{int(rest // 60 % 60):02}{parts}")
    axis.set_ticks(places, labels)
    from matplotlib.axis import XAxis

    if isinstance(axis, XAxis) and places.size:  # at the ends, not into the next panel
        first_label, last_label = axis.get_ticklabels()[0], axis.get_ticklabels()[-1]
        last_label.set_horizontalalignment("right" if last - places[-1] < 0.05 * (last - first) else "center")
        first_label.set_horizontalalignment("left" if places[0] - first < 0.05 * (last - first) else "center")
