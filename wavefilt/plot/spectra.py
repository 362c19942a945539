"""Spectrograms of the strongest trace, and the mean spectra of all traces with its sampling interval."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from wavefilt.arrays import Floats

from .appearance import COLORS, MEDIUM, POWER, SMALL, legend, say, style
from .gather import time_axis
from .traces import Gather, Pair, middle

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.gridspec import SubplotSpec

RANGE_DB = 60.0
"""Depth of the spectrograms below their strongest value."""


def draw_spectrograms(figure: Figure, cell: SubplotSpec, gather: Gather) -> None:
    """Spectrograms of the strongest trace, one colour scale in dB below the largest value before."""
    kinds = gather.kinds[:2]
    grid = cell.subgridspec(
        1, len(kinds) + 1, width_ratios=(*[1] * len(kinds), 0.04), wspace=0.13 if len(kinds) > 1 else 0.06
    )
    pair = gather.pair(gather.strongest)
    panels = [figure.add_subplot(grid[i], label=f"spectrogram {kind}") for i, kind in enumerate(kinds)]
    powers = [_spectrogram(pair, kind, gather.peak or 1.0) for kind in kinds]
    name = gather.name(gather.strongest)
    for axes, kind in zip(panels, kinds, strict=True):
        style(axes)
        words = f"spectrogram {kind if len(kinds) > 1 else ''}".strip()
        axes.set_title(f"{words}{f', {name}' if name else ''}", fontsize=MEDIUM, pad=5)
        axes.set_xlabel(gather.time_label.split(",")[0], fontsize=MEDIUM, labelpad=1)
        axes.tick_params(labelleft=axes is panels[0])
    panels[0].set_ylabel(gather.frequency_label, fontsize=MEDIUM)
    largest = float(powers[0].max())
    if largest < 1e-12:  # rounding errors of a constant
        for axes in panels:
            say(axes, "no variation")
        return
    extent = (pair.start, pair.stop, 0, 0.5 / pair.interval)
    for axes, power in zip(panels, powers, strict=True):
        drawn = _decibels(power / largest)
        image = axes.imshow(drawn, POWER, aspect="auto", origin="lower", extent=extent, interpolation="bilinear")
        image.set_clim(-RANGE_DB, 0)
        axes.locator_params(axis="x", nbins=4)
        time_axis(axes.xaxis, gather, pair.start, pair.stop, 3)
    bar = figure.colorbar(image, cax=figure.add_subplot(grid[-1], label="decibels"))
    bar.ax.set_title("dB", fontsize=SMALL, pad=5)
    bar.ax.tick_params(labelsize=SMALL)


def _spectrogram(pair: Pair, panel: str, peak: float) -> Floats:
    """Amplitudes relative to ``peak``, shape (frequencies, times): at most about 400 times, evenly spaced."""
    length = power_of_two(len(pair) / 10, 8, 1024)
    starts = np.arange(0, len(pair), math.ceil(len(pair) / 400)) - length // 2
    windows = _windows(pair, panel, starts, length) / (peak * length)
    amplitudes: Floats = np.abs(np.fft.rfft(windows, 2 * length)).T
    return amplitudes


def draw_spectra(axes: Axes, gather: Gather) -> None:
    """Mean amplitude spectra before, after and of what was removed, in dB below the peak before."""
    style(axes, grid=True)
    axes.set_title("mean amplitude spectrum", fontsize=MEDIUM, pad=5)
    axes.set_xlabel(gather.frequency_label, fontsize=MEDIUM, labelpad=1)
    axes.set_ylabel(f"dB re maximum{' before' * (len(gather.kinds) > 1)}", fontsize=MEDIUM, labelpad=1)
    pairs = gather.like_strongest(48)
    spectra = {panel: _mean_spectrum(pairs, panel, gather.peak) for panel in gather.kinds} if pairs else {}
    largest = float(spectra["before"].max()) if pairs else 0.0
    if largest < 1e-12:
        say(axes, "no variation")
        return
    frequencies = np.linspace(0, 0.5 / pairs[0].interval, len(spectra["before"]))
    for panel, spectrum in spectra.items():
        axes.plot(frequencies, _decibels(spectrum / largest), color=COLORS[panel], linewidth=1.4, label=panel)
    axes.set_xlim(0, frequencies[-1])
    axes.set_ylim(-RANGE_DB - 5, 9)  # room for the legend
    if len(spectra) > 1:
        legend(axes, columns=3)


def _mean_spectrum(pairs: list[Pair], panel: str, peak: float) -> Floats:
    """Mean of the amplitude spectra of at most 32 windows of each trace."""
    length = power_of_two(max(map(len, pairs)) / 4, 8, 2048)
    spectra = []
    for pair in pairs:
        starts = np.unique(np.linspace(0, max(0, len(pair) - length), 32).astype(np.intp))
        windows = _windows(pair, panel, starts, length) / (peak * length)
        spectra.append(np.abs(np.fft.rfft(windows, 2 * length)).mean(axis=0))
    mean: Floats = np.mean(spectra, axis=0)
    return mean


def _windows(pair: Pair, panel: str, starts: NDArray[np.intp], length: int) -> Floats:
    """Windows of ``length`` samples of a trace, their mean removed, 0 in gaps and beyond the ends, tapered."""
    windows = np.full((len(starts), length), np.nan)
    for window, start in zip(windows, starts, strict=True):
        part = pair.part(panel, max(0, start), max(0, start + length))
        window[max(0, -start) :][: len(part)] = part
    return np.nan_to_num(windows - middle(windows)) * np.hanning(length + 2)[1:-1]


def power_of_two(value: float, least: int, most: int) -> int:
    """The power of two nearest to ``value`` within limits."""
    return min(most, max(least, int(2 ** round(math.log2(value)))))


def _decibels(ratio: Floats) -> Floats:
    decibels: Floats = 20 * np.log10(np.maximum(ratio, 1e-12))
    return decibels
