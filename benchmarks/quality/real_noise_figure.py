"""A synthetic earthquake in real noise, and what is made of it. Needs matplotlib and ObsPy.

``python -m wavefilt.benchmarks.quality.real_noise_figure FILE`` draws ``docs/images/real_noise.png``.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import wavefilt
from wavefilt.benchmarks.quality import field_records
from wavefilt.benchmarks.quality.alternatives import BASE, BEST, LIBRARY
from wavefilt.benchmarks.quality.earthquakes import Records, synthetic
from wavefilt.benchmarks.quality.field_records import Window
from wavefilt.plot import check_target, render
from wavefilt.plot.appearance import MEDIUM, SMALL, style

if TYPE_CHECKING:
    from matplotlib.figure import Figure

CHANNEL, FORM, RATIO = "CA.STS2..EHZ", "raw", 5
"""Whose noise is shown, with the event of its first window."""
SHOWN = (BASE, BEST, "js, modwt, window")


def record(windows: Sequence[Window]) -> Records:
    """The one that is shown."""
    place = [window.channel for window in windows].index(CHANNEL)
    records = synthetic(windows, FORM, place + 1)
    return records[(records.group == place) & (records.ratio == RATIO)]


def picture(records: Records) -> Figure:
    """The record, what the methods leave of it, and the clean one, over seconds, at one scale; P is marked."""
    from matplotlib.figure import Figure

    rows = {f"in noise, {RATIO} dB": records.x[0]}
    rows |= {name: wavefilt.denoise(records.x, **LIBRARY[name])[0] for name in SHOWN}
    rows["clean"] = records.clean[0]
    figure = Figure(figsize=(8, 7), facecolor="white", layout="constrained")
    seconds = np.arange(records.x.shape[-1]) / records.rate[0]
    for axes, (name, x) in zip(figure.subplots(len(rows), 1, sharex=True, sharey=True), rows.items(), strict=True):
        style(axes)
        axes.plot(seconds, x, color="#0072B2" if name in SHOWN else "#4d4d4d", linewidth=0.6)
        axes.axvline(records.onset[0] / records.rate[0], color="#D55E00", linewidth=0.8, linestyle="--")
        axes.set_title(name, fontsize=MEDIUM, loc="left", pad=2)
        axes.set_yticks([])
        axes.margins(x=0)
    axes.set_xlabel("seconds", fontsize=SMALL)
    return figure


if __name__ == "__main__":
    check_target(sys.argv[1])
    found, _ = field_records.windows(field_records.folders())
    Path(sys.argv[1]).write_bytes(render(picture(record(found)), "png", 110))
