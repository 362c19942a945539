"""The reproduction as a figure; matplotlib (extra ``plot``) is imported when it is drawn."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wavefilt.plot import check_target, file_type, render
from wavefilt.plot.appearance import LARGE, MEDIUM, SMALL, legend, style

from .reproduction import CLAIMED, DEVICE, GRID, HEIGHTS, KERNELS, NEIGHBOURS, WIDTH, Reproduction
from .tables import DEVICES

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLORS = dict(zip(KERNELS, ("#0072B2", "#009E73", "#D55E00"), strict=True))  # Okabe and Ito's palette
GRAY = "#4d4d4d"
MARKERS = {"minimum": "o", "high": "^", "low": "v"}
PLACES = {h: place + (h not in NEIGHBOURS) for place, h in enumerate(HEIGHTS, 1)}  # a gap before 24


def draw(result: Reproduction) -> Figure:
    """Times of the kernels over the block shapes, and below them the active warps and blocks."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 6.2), facecolor="white")
    grid = figure.add_gridspec(
        2, 1, height_ratios=(2.2, 1), hspace=0.08, left=0.085, right=0.985, top=0.92, bottom=0.08
    )
    times = figure.add_subplot(grid[0], label="times")
    _draw_times(times, result)
    _draw_active(figure.add_subplot(grid[1], label="active", sharex=times), result)
    corrected = f", correction {result.correction}" if result.correction else ""
    title = f"Classic SKE model, {DEVICE}, {GRID[0]} x {GRID[1]} threads, hiding {result.hiding}{corrected}"
    figure.suptitle(title, fontsize=LARGE, y=0.965)
    return figure


def to_file(result: Reproduction, path: str) -> bytes:
    """The figure as a file of the type that ``path`` ends in.

    Raises ValueError for an unknown extension, ImportError without matplotlib.
    """
    check_target(path)
    return render(draw(result), file_type(path), 110)


def _draw_times(axes: Axes, result: Reproduction) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    style(axes, grid=True)
    for name, color in COLORS.items():
        times = {h: 1e6 * t for h, t in result.times(name).items()}
        axes.plot(
            [PLACES[h] for h in NEIGHBOURS], [times[h] for h in NEIGHBOURS], color=color, linewidth=1.5, label=name
        )
        for h, time in times.items():
            extreme = result.mark(name, h)
            face = color if extreme is None or extreme in CLAIMED else "white"
            marker, size = (MARKERS[extreme.kind], 8) if extreme else (".", 5)
            axes.plot(PLACES[h], time, marker, color=color, markersize=size, markerfacecolor=face)
    for kind, marker in MARKERS.items():
        axes.plot([], [], marker, color=GRAY, markersize=8, label=kind)
    axes.plot([], [], "s", color=GRAY, markersize=8, markerfacecolor="white", label="hollow: not in the paper")
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(10, subs=(1, 2, 5)))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.set_ylabel("estimated time (µs)", fontsize=MEDIUM)
    axes.tick_params(labelbottom=False)
    legend(axes)


def _draw_active(axes: Axes, result: Reproduction) -> None:
    style(axes, grid=True)
    most = DEVICES[DEVICE].capability.warps
    for place, (nb, nw) in zip(PLACES.values(), result.active, strict=True):
        axes.bar(place, nw, width=0.62, color=GRAY, alpha=0.45)
        axes.text(place, nw + 1, str(nw), fontsize=SMALL, ha="center", va="bottom")
        axes.text(place, 2, str(nb), fontsize=SMALL, ha="center", va="bottom", color=COLORS["resize"])
    axes.set_ylim(0, 1.2 * most)
    axes.set_ylabel("active warps,\nblocks (blue)", fontsize=MEDIUM)
    axes.set_xticks(list(PLACES.values()), [f"{WIDTH}x{h}" for h in HEIGHTS])
    axes.set_xlabel("block (threads)", fontsize=MEDIUM)
