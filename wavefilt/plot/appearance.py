"""Colours, font sizes and frames that all panels of the figure have in common."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Okabe and Ito's palette, which colour-blind readers can distinguish
COLORS = {"before": "#4d4d4d", "after": "#0072B2", "removed": "#D55E00"}
SIGMA_COLOR, THRESHOLD_COLOR = "#009E73", "#CC79A7"
DENSITY, POWER = "RdBu_r", "magma"
"""matplotlib's names of the colours of samples and of spectrograms."""
SMALL, MEDIUM, LARGE = 8.5, 9.5, 12.0
"""Font sizes in points: tick labels, labels, the title."""


def style(axes: Axes, grid: bool = False) -> None:
    axes.tick_params(labelsize=SMALL, length=3, width=0.6)
    for name, spine in axes.spines.items():
        spine.set_linewidth(0.6)
        spine.set_visible(not grid or name in ("left", "bottom"))
    if grid:
        axes.grid(color="#e6e6e6", linewidth=0.6)
        axes.set_axisbelow(True)


def tag(axes: Axes, text: str, color: str) -> None:
    """A panel's name in its upper left corner, readable over lines."""
    box = {"facecolor": "white", "alpha": 0.8 if text else 0, "edgecolor": "none", "pad": 1.5}
    where = axes.transAxes
    axes.text(0.006, 0.95, text, transform=where, fontsize=MEDIUM, fontweight="bold", va="top", bbox=box, color=color)


def legend(axes: Axes, columns: int = 2) -> None:
    spacing = {"borderaxespad": 0.1, "handlelength": 1.4, "columnspacing": 1.2}
    axes.legend(fontsize=SMALL - 0.5, loc="upper right", ncols=columns, frameon=False, **spacing)


def say(axes: Axes, text: str) -> None:
    """A line of text instead of a plot that would be empty."""
    axes.text(0.5, 0.5, text, transform=axes.transAxes, fontsize=MEDIUM, ha="center", va="center", color="#666666")
    axes.set_xticks([])
    axes.set_yticks([])
