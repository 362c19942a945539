"""Figures of the scaling study: times against size, and speed-up over PyWavelets. Needs matplotlib."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from wavefilt.benchmarks.common.columns import labels
from wavefilt.benchmarks.common.tables import Row, size
from wavefilt.plot import check_target, render
from wavefilt.plot.appearance import LARGE, SMALL, style

ORANGE, GREEN, PURPLE, BLUE, SKY, RED = "#e69f00", "#009e73", "#cc79a7", "#0072b2", "#56b4e9", "#d55e00"
BLACK, GRAY = "#1c2126", "#85898d"
LOOKS = {
    "gsl": ("#4d4d4d", "s-"),
    "pywavelets": (ORANGE, "o-"),
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
LIMITS = {
    ("floors", "transfer"): ("lower bound: transfers", SKY, "--"),
    ("floors", "memory"): ("lower bound: 12n bytes", RED, "--"),
    ("estimates", "calibrated"): ("SKE estimate, calibrated", BLACK, ":"),
    ("estimates", "classic"): ("SKE estimate, classic", GRAY, ":"),
    ("document", "cpu"): ("2010: CPU (GSL)", GRAY, "-."),
    ("document", "gpu"): ("2010: GPU with transfers", "#b4b8bc", "-."),
}
Values = Callable[[Row], Any]
"""The value of a row, None if it has none."""


def check() -> None:
    """Raise ImportError, with what to install, without matplotlib."""
    check_target("scaling.png")


def to_files(result: Row, folder: Path) -> dict[Path, bytes]:
    """Return both figures by their paths."""
    names, label = result["columns"], labels(result)
    times: list[tuple[str, str, str, Values]] = [
        (text, *look, lambda row, s=section, e=entry: row.get(s, {}).get(e))  # type: ignore[misc]
        for (section, entry), (text, *look) in LIMITS.items()
    ]
    times += [(label[n], *LOOKS[n], lambda row, n=n: row["times"].get(n, {}).get("median")) for n in names]  # type: ignore[misc]
    ratios: list[tuple[str, str, str, Values]] = [
        (label[n], *LOOKS[n], lambda row, n=n: row["ratios"].get("pywavelets", {}).get(n))  # type: ignore[misc]
        for n in names
    ]
    return {
        folder / FILES[0]: render(_figure(result, "Time of a denoising run", "ms", times), "png", 110),
        folder / FILES[1]: render(_figure(result, "Speed-up", "times as fast as PyWavelets", ratios), "png", 110),
    }


FILES = ("scaling_times.png", "scaling_speedup.png")


def _figure(result: Row, title: str, unit: str, series: list[tuple[str, str, str, Values]]) -> Any:
    """Draw a panel for each wavelet, with the legend beside them."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import NullLocator, ScalarFormatter

    wavelets = list(dict.fromkeys(row["wavelet"] for row in result["rows"]))
    figure = Figure(figsize=(4.6 * len(wavelets) + 2.4, 4.8), facecolor="white", layout="constrained")
    panels: Any = figure.subplots(1, len(wavelets), sharex=True, sharey=True, squeeze=False)[0]
    handles = {}
    for axes, wavelet in zip(panels, wavelets, strict=True):
        rows = [row for row in result["rows"] if row["wavelet"] == wavelet]
        style(axes, grid=True)
        axes.set(title=wavelet, xlabel="samples", xscale="log", yscale="log")
        for label, colour, look, value in series:
            points = [(row["samples"], value(row)) for row in rows if value(row) is not None]
            if points:
                (handles[label],) = axes.plot(*zip(*points, strict=True), look, color=colour, label=label)
        ticks = [row["samples"] for row in rows][:: max(1, len(rows) // 5)]
        axes.set_xticks(ticks, [size(n) for n in ticks])
        axes.xaxis.set_minor_locator(NullLocator())
        axes.yaxis.set_major_formatter(ScalarFormatter())
    panels[0].set_ylabel(unit)
    figure.legend(handles=[*handles.values()], loc="outside right center", fontsize=SMALL, frameon=False)
    where = result["environment"]
    machine = ", ".join(name.split(",")[0] for name in (where["processor"], where["gpu"]) if name)
    figure.suptitle(f"{title}: {machine}", fontsize=LARGE)
    return figure
