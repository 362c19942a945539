"""The scaling study in two figures: times over size, and speed-up over PyWavelets. Needs matplotlib."""

from __future__ import annotations

from pathlib import Path

from wavefilt.benchmarks.common.tables import Row
from wavefilt.benchmarks.report.figures import Lines
from wavefilt.benchmarks.report.outline import lines
from wavefilt.plot import check_target, render

FILES = {"scaling_times.png": "Time of a denoise", "scaling_speedup.png": "Speed-up"}


def check() -> None:
    """Raise ImportError, with what to install, without matplotlib."""
    check_target("scaling.png")


def to_files(result: Row, folder: Path) -> dict[Path, bytes]:
    """Both figures by the paths they go to."""
    where = result["environment"]
    machine = ", ".join(name.split(",")[0] for name in (where["processor"], where["gpu"]) if name)
    plots = [plot for plot in lines(result, "samples") if isinstance(plot, Lines)]
    return {
        folder / name: render(plot.picture(f"{title}: {machine}"), "png", 110)
        for (name, title), plot in zip(FILES.items(), plots, strict=False)
    }
