"""The scaling study in two figures: times over size, and speed-up over PyWavelets. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wavefilt.benchmarks.common.tables import Row
from wavefilt.benchmarks.report.figures import PALETTE, Line, Plot
from wavefilt.benchmarks.report.outline import lines
from wavefilt.plot import check_target, render
from wavefilt.plot.appearance import LARGE, SMALL, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FILES = {"scaling_times.png": "Time of a denoise", "scaling_speedup.png": "Speed-up"}
MARKERS = {"circle": "o", "square": "s", "diamond": "D", "triangle": "^", "inverted_triangle": "v", "": ""}
DASHES = {"solid": "-", "dashed": "--", "dotted": ":", "dotdash": "-.", "": ""}


def check() -> None:
    """Raise ImportError, with what to install, without matplotlib."""
    check_target("scaling.png")


def to_files(result: Row, folder: Path) -> dict[Path, bytes]:
    """Both figures by the paths they go to."""
    where = result["environment"]
    machine = ", ".join(name.split(",")[0] for name in (where["processor"], where["gpu"]) if name)
    return {
        folder / name: render(_picture(plot, f"{title}: {machine}"), "png", 110)
        for (name, title), plot in zip(FILES.items(), lines(result, "samples"), strict=False)
    }


def _picture(plot: Plot, title: str) -> Figure:
    """All panels, with the legend at their side."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullLocator, ScalarFormatter

    figure = Figure(figsize=(4.6 * len(plot.panels) + 2.4, 4.8), facecolor="white", layout="constrained")
    axes_of: Sequence[Any] = figure.subplots(1, len(plot.panels), sharex=True, sharey=True, squeeze=False)[0]
    for axes, panel in zip(axes_of, plot.panels, strict=True):
        style(axes, grid=True)
        axes.set(title=panel.title, xlabel=plot.x, xscale="log", yscale="log")
        for line in panel.lines:
            _draw(axes, line)
        ticks = panel.ticks or {}
        axes.set_xticks([*ticks][:: max(1, len(ticks) // 5)], [*ticks.values()][:: max(1, len(ticks) // 5)])
        axes.xaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter(ScalarFormatter())
    axes_of[0].set_ylabel(plot.y)
    handles = {h.get_label(): h for axes in axes_of for h in axes.get_legend_handles_labels()[0]}
    figure.legend(handles=[*handles.values()], loc="outside right center", fontsize=SMALL, frameon=False)
    figure.suptitle(title, fontsize=LARGE)
    return figure


def _draw(axes: Any, line: Line) -> None:
    """Quartiles, the line itself and its points."""
    look, colour = line.look, PALETTE[line.look.colour]
    x, y = [p.x for p in line.points], [p.y for p in line.points]
    face = "white" if look.hollow else colour
    drawn = {
        "linestyle": DASHES[look.dash],
        "marker": MARKERS[look.marker],
        "markerfacecolor": face,
        "label": line.label,
    }
    axes.plot(x, y, color=colour, **drawn)
    for point in line.points:
        if point.spread:
            axes.vlines(point.x, *point.spread, color=colour, linewidth=4.5, alpha=0.3)
