"""The scaling study in two figures: times over size, and how many times faster than PyWavelets. Needs matplotlib."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from wavefilt.benchmarks.common.tables import size
from wavefilt.plot import check_target, render
from wavefilt.plot.appearance import LARGE, MEDIUM, SMALL, style

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

GRAY = "#9a9a9a"
LINES: dict[str, dict[str, Any]] = {
    "gsl": {"color": "#4d4d4d", "marker": "s"},
    "pywavelets": {"color": "#E69F00", "marker": "o"},
    "numba": {"color": "#009E73", "marker": "D"},
    "ptwt_cpu": {"color": "#CC79A7", "marker": "v"},
    "ptwt_gpu": {"color": "#CC79A7", "marker": "^", "markerfacecolor": "white"},
    "cuda": {"color": "#0072B2", "marker": "o"},
    "cuda_pinned": {"color": "#56B4E9", "marker": "s"},
    "cuda_resident": {"color": "#D55E00", "marker": "D"},
    "cuda_kernels": {"color": "#D55E00", "marker": "o", "markerfacecolor": "white"},
}
"""Okabe and Ito's palette; hollow is data that stays on the GPU timed by itself."""
LIMITS: dict[tuple[str, str], dict[str, Any]] = {
    ("floors", "transfer"): {"color": "#56B4E9", "linestyle": "--", "label": "lower bound: transfers"},
    ("floors", "memory"): {"color": "#D55E00", "linestyle": "--", "label": "lower bound: 12n bytes"},
    ("estimates", "calibrated"): {"color": "black", "linestyle": ":", "label": "SKE estimate, calibrated"},
    ("estimates", "classic"): {"color": GRAY, "linestyle": ":", "label": "SKE estimate, classic"},
    ("document", "cpu"): {"color": GRAY, "linestyle": "-.", "label": "2010: CPU (GSL)"},
    ("document", "gpu"): {"color": "#c8c8c8", "linestyle": "-.", "label": "2010: GPU with transfers"},
}
FILES = ("scaling_times.png", "scaling_speedup.png")


def check() -> None:
    """Raise ImportError, with what to install, without matplotlib."""
    check_target(FILES[0])


def to_files(result: dict[str, Any], folder: Path) -> dict[Path, bytes]:
    """Both figures by the paths they go to."""
    figures = (times(result), speedup(result))
    return {folder / name: render(figure, "png", 110) for name, figure in zip(FILES, figures, strict=True)}


def times(result: dict[str, Any]) -> Figure:
    """Milliseconds over samples, one panel per wavelet, with quartiles, lower bounds and estimates."""

    def draw(axes: Axes, rows: list[dict[str, Any]], name: str, line: dict[str, Any]) -> None:
        here = [row for row in rows if name in row["times"]]
        sizes, found = [row["samples"] for row in here], [row["times"][name] for row in here]
        axes.plot(sizes, [t["median"] for t in found], **line)
        axes.fill_between(sizes, [t["low"] for t in found], [t["high"] for t in found], color=line["color"],
                          alpha=0.2, linewidth=0)  # fmt: skip

    def limits(axes: Axes, rows: list[dict[str, Any]]) -> None:
        for (section, entry), line in LIMITS.items():
            here = [row for row in rows if entry in row.get(section, {})]
            if here:
                axes.plot(
                    [row["samples"] for row in here], [row[section][entry] for row in here], linewidth=1.1, **line
                )

    return _figure(result, "Time of a denoise", "ms, median and quartiles", draw, limits)


def speedup(result: dict[str, Any]) -> Figure:
    """Times faster than PyWavelets on one core, and the document's GPU over its CPU."""

    def draw(axes: Axes, rows: list[dict[str, Any]], name: str, line: dict[str, Any]) -> None:
        here = [row for row in rows if name in row["ratios"].get("pywavelets", {})]
        axes.plot([row["samples"] for row in here], [row["ratios"]["pywavelets"][name] for row in here], **line)

    def limits(axes: Axes, rows: list[dict[str, Any]]) -> None:
        axes.axhline(1, color="#E69F00", linewidth=1.4, label="PyWavelets 1 core")
        here = [row for row in rows if "document" in row]
        if here:
            axes.plot([row["samples"] for row in here], [row["document"]["ratio"] for row in here], color=GRAY,
                      linestyle="-.", linewidth=1.1, label="2010: GPU over CPU")  # fmt: skip

    return _figure(result, "Speed-up over PyWavelets", "times faster", draw, limits, ("pywavelets",))


def _figure(
    result: dict[str, Any], title: str, unit: str, draw: Any, limits: Any, without: tuple[str, ...] = ()
) -> Figure:
    """A panel a wavelet on common logarithmic axes, one legend for all."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, NullLocator

    wavelets = list(dict.fromkeys((row["wavelet"], row["taps"]) for row in result["rows"]))
    figure = Figure(figsize=(4.6 * len(wavelets) + 2.4, 4.8), facecolor="white", layout="constrained")
    panels = figure.subplots(1, len(wavelets), sharex=True, sharey=True, squeeze=False)[0]
    for axes, (wavelet, taps) in zip(panels, wavelets, strict=True):
        rows = [row for row in result["rows"] if row["wavelet"] == wavelet]
        style(axes, grid=True)
        axes.set(xscale="log", yscale="log")
        axes.set_title(f"{wavelet}, {taps} taps", fontsize=MEDIUM)
        limits(axes, rows)
        for name, line in LINES.items():
            if name not in without and any(name in row["times"] for row in rows):
                label = " ".join(result["columns"][name]["heads"])
                draw(axes, rows, name, {"label": label, "linewidth": 1.5, "markersize": 4.5} | line)
        sizes = [row["samples"] for row in rows]
        axes.set_xticks(sizes, [size(n) for n in sizes], rotation=45 if len(sizes) > 6 else 0, fontsize=SMALL)
        axes.xaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.set_xlabel("samples", fontsize=MEDIUM)
    panels[0].set_ylabel(unit, fontsize=MEDIUM)
    entries = {
        label: handle for axes in panels for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(entries.values(), entries.keys(), loc="outside right center", fontsize=SMALL, frameon=False)
    where = result["environment"]
    machine = ", ".join(name.split(",")[0] for name in (where["processor"], where["gpu"]) if name)
    figure.suptitle(f"{title}: {machine}", fontsize=LARGE)
    return figure
