"""Figures of the scaling study: times against size, and speed-up over PyWavelets. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from wavefilt.benchmarks.common.columns import labels
from wavefilt.benchmarks.common.tables import Row, size
from wavefilt.plotting.figure import LARGE, SMALL, check_target, render, style

ORANGE, GREEN, PURPLE, BLUE, SKY, RED = "#e69f00", "#009e73", "#cc79a7", "#0072b2", "#56b4e9", "#d55e00"
BLACK, GRAY = "#1c2126", "#85898d"
LOOKS = {
    "gsl": ("#4d4d4d", "s-"),
    "pywavelets": (ORANGE, "o-"),
    "numba_one": ("#7fcbb0", "v-"),
    "numba": (GREEN, "D-"),
    "numba_kept": (GREEN, "s-"),
    "ptwt_cpu": (PURPLE, "v-"),
    "ptwt_gpu": (PURPLE, "^-"),
    "cuda": (BLUE, "o-"),
    "cuda_kept": (BLUE, "s-"),
    "cuda_pinned": (SKY, "s-"),
    "cuda_resident": (RED, "D-"),
    "cuda_again": (RED, "s-"),
    "cuda_kernels": (RED, "o-"),
}
"""Colours of Okabe and Ito, which colour-blind readers can tell apart, with markers."""
Lines = dict[tuple[str, ...], tuple[str, str, str]]
"""Label, colour and look of lines, by the keys of their values in a row."""
LIMITS: Lines = {
    ("floors", "transfer"): ("lower bound: transfers", SKY, "--"),
    ("floors", "memory"): ("lower bound: 12n bytes", RED, "--"),
    ("estimates", "calibrated"): ("SKE estimate of the kernels, calibrated", BLACK, ":"),
    ("estimates", "classic"): ("SKE estimate of the kernels, classic", GRAY, ":"),
    ("document", "cpu"): ("2010: CPU (GSL)", GRAY, "-."),
    ("document", "gpu"): ("2010: GPU with transfers", "#b4b8bc", "-."),
}
FILES = ("scaling_times.png", "scaling_speedup.png")


def check() -> None:
    """Raise ImportError, with what to install, without matplotlib."""
    check_target("scaling.png")


def to_files(result: Row, folder: Path) -> dict[Path, bytes]:
    """Return both figures by their paths."""
    names = labels(result)
    times: Lines = LIMITS | {("times", name, "median"): (label, *LOOKS[name]) for name, label in names.items()}
    ratios: Lines = {("ratios", "pywavelets", name): (label, *LOOKS[name]) for name, label in names.items()}
    return {
        folder / FILES[0]: render(_figure(result, "Time of a denoising run", "ms", times), "png", 110),
        folder / FILES[1]: render(_figure(result, "Speed-up", "times as fast as PyWavelets", ratios), "png", 110),
    }


def _value(row: Row, keys: Sequence[str]) -> Any:
    """Return the entry of a row; None if it has none."""
    value: Any = row
    for key in keys:
        value = value.get(key, {})
    return value or None


def _figure(result: Row, title: str, unit: str, lines: Lines) -> Any:
    """Draw a panel for each wavelet, with the legend beside them; lines are by the entries of a row."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import FuncFormatter, NullLocator

    wavelets = list(dict.fromkeys(row["wavelet"] for row in result["rows"]))
    figure = Figure(figsize=(4.6 * len(wavelets) + 2.4, 4.8), facecolor="white", layout="constrained")
    panels: Any = figure.subplots(1, len(wavelets), sharex=True, sharey=True, squeeze=False)[0]
    handles = {}
    for axes, wavelet in zip(panels, wavelets, strict=True):
        rows = [row for row in result["rows"] if row["wavelet"] == wavelet]
        style(axes, grid=True)
        axes.set(title=wavelet, xlabel="samples", xscale="log", yscale="log")
        for keys, (label, colour, look) in lines.items():
            points = [(row["samples"], _value(row, keys)) for row in rows if _value(row, keys)]
            if points:
                (handles[label],) = axes.plot(*zip(*points, strict=True), look, color=colour, label=label)
        ticks = [row["samples"] for row in rows][:: max(1, len(rows) // 5)]
        axes.set_xticks(ticks, [size(n) for n in ticks])
        axes.xaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    panels[0].set_ylabel(unit)
    figure.legend(handles=[*handles.values()], loc="outside right center", fontsize=SMALL, frameon=False)
    where = result["environment"]
    machine = ", ".join(name.split(",")[0] for name in (where["processor"], where["gpu"]) if name)
    device = result["estimates"]["calibration"]
    models = f"; SKE estimates for {device}" if device else ""
    figure.suptitle(f"{title}: {machine}{models}", fontsize=LARGE)
    return figure
