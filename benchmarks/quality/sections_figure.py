"""One gather in noise, what every method leaves of it, and what it removes. Needs matplotlib.

``python -m wavefilt.benchmarks.quality.sections_figure FILE`` draws ``docs/images/sections.png``.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from wavefilt.benchmarks.quality.sections import SEED, gain, procedures
from wavefilt.benchmarks.quality.sections_models import INTERVAL, Case, hyperbolas
from wavefilt.plot import check_target, render
from wavefilt.plot.appearance import SMALL

if TYPE_CHECKING:
    from matplotlib.figure import Figure

SHOWN = np.s_[:128, 60:444]
"""Traces and samples that are drawn; the whole section is denoised."""
COLUMNS = 5
GATHER, NOISE, RATIO = "hyperbolas", "pink", 0


def picture(case: Case) -> Figure:
    """The gather in noise above the clean one, then results of the methods above what they removed, at one scale."""
    from matplotlib.figure import Figure

    x = case.draws(1, SEED)[0]
    columns = {(f"{case.noise} noise, {case.ratio} dB", "clean"): (x, case.clean)}
    for name, method, _ in procedures(case):
        y = method(x)
        columns[f"{name}: {gain(case.clean, x, y):+.1f} dB", "removed"] = (y, x - y)
    blocks = -(-len(columns) // COLUMNS)
    figure = Figure(figsize=(1.9 * COLUMNS, 3.3 * blocks), facecolor="white", layout="constrained")
    axes = figure.subplots(2 * blocks, COLUMNS, sharex=True, sharey=True)
    for one in axes.flat:
        one.set_axis_off()
    scale = float(np.percentile(np.abs(x[SHOWN]), 97))
    seconds = [INTERVAL * SHOWN[1].stop, INTERVAL * SHOWN[1].start]
    for i, (titles, pair) in enumerate(columns.items()):
        block, column = divmod(i, COLUMNS)
        for row, part in enumerate(pair):
            one = axes[2 * block + row, column]
            extent = (0, SHOWN[0].stop or len(x), *seconds)
            one.imshow(part[SHOWN].T, cmap="gray", vmin=-scale, vmax=scale, aspect="auto", extent=extent)
            one.set_axis_on()
            one.tick_params(labelsize=SMALL - 1)
            one.set_title(titles[row], fontsize=SMALL - 1, pad=2)
            if column == 0:
                one.set_ylabel("seconds", fontsize=SMALL - 1)
    return figure


if __name__ == "__main__":
    check_target(sys.argv[1])
    Path(sys.argv[1]).write_bytes(render(picture(Case("models", GATHER, NOISE, RATIO, hyperbolas())), "png", 80))
