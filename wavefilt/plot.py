"""One figure that shows what denoising did: before, after, what was removed, and by which thresholds.

matplotlib (extra ``plot``) is imported when a figure is drawn, never with this module; no global state.
"""

from __future__ import annotations

import io
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from wavefilt.recording import Recording

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from wavefilt.denoising import Estimate, Outcome

FILE_TYPES = ("png", "pdf", "svg")
PANELS = ("before", "after", "removed")

WIGGLES = 60
"""Most traces drawn as wiggles; more become a density image."""
COLUMNS = 900
"""Most traces of a density image; of more, every k-th is drawn."""
BINS = 1200
"""Most stretches of time drawn a trace, each by its least and greatest sample."""
POINTS = 64
"""Traces of at most this many samples have each marked by a point."""
CHUNK = 1 << 20
"""Samples worked on at a time, so that a large record needs little memory beside its own."""
RANGE_DB = 60.0
"""Depth of the spectrograms below their strongest value."""

# Okabe and Ito's palette, told apart by colour-blind readers too
COLORS = {"before": "#4d4d4d", "after": "#0072B2", "removed": "#D55E00"}
SIGMA_COLOR, THRESHOLD_COLOR, GAP_COLOR = "#009E73", "#CC79A7", "#d9d9d9"
SEPARATOR = "   ·   "
SMALL, MEDIUM, LARGE = 8.5, 9.5, 12.0
"""Font sizes in points: tick labels, labels, the title."""


def plot_denoising(
    before: Recording, after: Recording, path: str | Path, *, overwrite: bool = False, dpi: float = 120
) -> None:
    """Draw ``before``, ``after`` and what was removed on one amplitude scale; write it to ``path``.

    Parameters
    ----------
    before, after : Recording
        The same traces, noisy and denoised. Wavelet, rule and thresholds are those of ``after.outcome``; the
        energies by level need an outcome with a report (``before.apply(method, report=True)``).
    path : str or Path
        Ends in .png, .pdf or .svg. Whole or untouched, never partial.
    overwrite : bool
        Replace ``path`` if it exists; otherwise that is a FileExistsError.
    dpi : float
        Dots an inch: of png files, and of images in the others. The figure is 13 by 9.2 inches.

    Raises
    ------
    ValueError
        For an unknown extension, or recordings that are empty or not of the same shape.
    ImportError
        If matplotlib is not installed.
    FileExistsError, OSError
        If the file is there already or cannot be written.
    """
    from wavefilt.io import check_destination, write_atomically

    kind = file_type(path)
    check_destination(Path(path), overwrite=overwrite)  # before the work, not after
    write_atomically(Path(path), _render(draw(before, after), kind, dpi), overwrite=overwrite)


def _render(figure: Figure, kind: str, dpi: float) -> bytes:
    """The figure as a file of this type, without a date: the same recordings give the same figure."""
    buffer = io.BytesIO()
    if kind != "png":
        figure.savefig(buffer, format=kind, dpi=dpi, metadata={"CreationDate" if kind == "pdf" else "Date": None})
        return buffer.getvalue()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from PIL import Image  # matplotlib depends on it

    figure.set_dpi(dpi)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    pixels = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
    # a palette of 256 colours makes the file a quarter, without a visible difference
    pixels.quantize(256, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE).save(buffer, "png", dpi=(dpi, dpi))
    return buffer.getvalue()


def file_type(path: str | Path) -> str:
    """The type of figure the extension of ``path`` names. Raises ValueError, with the list, for any other."""
    kind = Path(path).suffix.lower().lstrip(".")
    if kind not in FILE_TYPES:
        known = ", ".join(f".{name}" for name in FILE_TYPES)
        raise ValueError(f"{path}: figures are written as {known}, not {Path(path).suffix or 'without extension'}")
    return kind


def check_target(path: str | Path) -> None:
    """What can be told before denoising: ValueError for an unknown extension, ImportError without matplotlib."""
    file_type(path)
    _figure_class()


def draw(before: Recording, after: Recording) -> Figure:
    """The figure of `plot_denoising`, not yet written; `Axes.get_label` names its panels."""
    figure_class = _figure_class()
    gather = _Gather(before, after)
    figure = figure_class(figsize=(13, 9.2), facecolor="white")
    single = len(gather) == 1
    top = 0.935 if single else 0.91
    grid = figure.add_gridspec(
        2, 1, height_ratios=(1.6, 1), hspace=0.24, left=0.055, right=0.985, top=top, bottom=0.055
    )
    (_draw_lines if single else _draw_gather)(figure, grid[0], gather)
    lower = grid[1].subgridspec(1, 3, width_ratios=(2.35, 1.0, 1.0), wspace=0.28)
    _draw_spectrograms(figure, lower[0], gather)
    _draw_spectra(figure.add_subplot(lower[1], label="spectra"), gather)
    levels = lower[2].subgridspec(2, 1, hspace=0.16)
    energies = figure.add_subplot(levels[0], label="energies")
    _draw_levels(energies, figure.add_subplot(levels[1], label="thresholds", sharex=energies), after)
    _draw_title(figure, gather, before, after)
    return figure


def _figure_class() -> type[Figure]:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError('figures need matplotlib: pip install "wavefilt[plot]"') from error
    return Figure


# ---------------------------------------------------------------- samples


@dataclass(frozen=True)
class _Pair:
    """One trace before and after, 1-D arrays of one length, and its sampling interval (1 if unknown)."""

    before: NDArray[Any]
    after: NDArray[Any]
    interval: float

    def __len__(self) -> int:
        return len(self.before)

    def part(self, panel: str, start: int = 0, stop: int | None = None) -> NDArray[np.float64]:
        """Samples ``start`` to ``stop`` of a panel of `PANELS` as real float64, gaps as NaN."""
        if panel == "removed":
            return _real(self.before[start:stop]) - _real(self.after[start:stop])
        return _real(getattr(self, panel)[start:stop])

    def extremes(self, panel: str, step: int) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Least and greatest of every ``step`` samples, NaN where all of them are gap."""
        low, high = [np.empty(0)], [np.empty(0)]
        whole = step * max(1, CHUNK // step)
        for start in range(0, len(self), whole):
            part = self.part(panel, start, start + whole)
            edges = np.arange(0, len(part), step)
            low.append(np.fmin.reduceat(part, edges))
            high.append(np.fmax.reduceat(part, edges))
        return np.concatenate(low), np.concatenate(high)

    def envelope(self, panel: str) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Times and samples to draw: all of them, or the least and greatest of each of `BINS` stretches."""
        if len(self) <= 2 * BINS:
            return np.arange(len(self), dtype=np.float64) * self.interval, self.part(panel)
        step = math.ceil(len(self) / BINS)
        low, high = self.extremes(panel, step)
        middles = (np.arange(len(low), dtype=np.float64) + 0.5) * (step * self.interval)
        return np.repeat(middles, 2), np.column_stack([low, high]).ravel()

    def column(self, panel: str, duration: float) -> NDArray[np.float64]:
        """The trace as an image column of `BINS` rows over ``duration``: of each its largest by magnitude."""
        column = np.full(BINS, np.nan)
        low, high = self.extremes(panel, max(1, math.ceil(len(self) / BINS)))
        values = np.where(-low > high, low, high)
        rows = max(1, round(BINS * len(self) * self.interval / duration))
        if values.size:
            column[:rows] = values[np.arange(rows) * len(values) // rows]
        return column


class _Gather:
    """The traces before and after, their time axis, and the energies that choose and scale what is drawn."""

    def __init__(self, before: Recording, after: Recording) -> None:
        shapes = [[len(trace) for trace in recording.traces] for recording in (before, after)]
        if shapes[0] != shapes[1]:
            raise ValueError(f"before has {_shape(shapes[0])} and after {_shape(shapes[1])}; they must be the same")
        if not any(shapes[0]):
            raise ValueError(f"{before.source}: no samples to draw")
        self._before, self._after, self._lengths = before.traces, after.traces, shapes[0]
        # one unknown interval leaves no common clock: the whole axis is in samples then
        self.timed = all(dt is not None and 0 < dt < math.inf for dt in before.intervals)
        self._intervals = [float(dt or 1) if self.timed else 1.0 for dt in before.intervals]
        self.complex = any(np.iscomplexobj(trace) for trace in before.traces[:1])
        self._measure()

    def __len__(self) -> int:
        return len(self._lengths)

    def pair(self, index: int) -> _Pair:
        return _Pair(self._before[index], self._after[index], self._intervals[index])

    @property
    def duration(self) -> float:
        return max(n * dt for n, dt in zip(self._lengths, self._intervals, strict=True))

    @property
    def span(self) -> tuple[float, float]:
        """Limits of the time axis, with a margin where single samples are drawn as points."""
        margin = min(self._intervals) / 2 if max(self._lengths) <= POINTS else 0.0
        return -margin, self.duration - margin

    @property
    def strongest(self) -> int:
        return int(np.argmax(self.energies))

    @property
    def time_label(self) -> str:
        return "time (s)" if self.timed else "time (samples)"

    @property
    def frequency_label(self) -> str:
        return "frequency (Hz)" if self.timed else "frequency (cycles/sample)"

    def spread(self, most: int) -> list[int]:
        """At most about ``most`` traces, evenly spread."""
        return list(range(0, len(self), math.ceil(len(self) / most)))

    def like_strongest(self, most: int) -> list[_Pair]:
        """At most about ``most`` traces with signal and sampled like the strongest, evenly spread."""
        interval = self._intervals[self.strongest]
        alike = [i for i in np.flatnonzero(self.energies > 0) if self._intervals[i] == interval]
        return [self.pair(int(i)) for i in alike[:: math.ceil(len(alike) / most) or 1]]

    def _measure(self) -> None:
        """Largest magnitude, energy of each trace before, and the share of all energy that was removed."""
        self.peak = max(float(np.fmax.reduce(np.abs(_finite(x)), None, initial=0)) for _, x, _ in self._blocks())
        scale = self.peak or 1.0  # squares of samples of any size stay finite
        self.energies = np.zeros(len(self))
        removed = 0.0
        for rows, before, after in self._blocks():
            x, y = _finite(before) / scale, _finite(after) / scale
            self.energies[rows] += np.nansum(np.abs(x) ** 2, axis=1)
            removed += float(np.nansum(np.abs(x - y) ** 2))
        total = float(self.energies.sum())
        self.share = removed / total if total > 0 else 0.0

    def _blocks(self) -> Iterator[tuple[slice, NDArray[Any], NDArray[Any]]]:
        """Rows, and their samples before and after, in 2-D blocks of about `CHUNK` samples."""
        both = (self._before, self._after)
        array = all(isinstance(traces, np.ndarray) for traces in both)
        rows = max(1, CHUNK // max(1, max(self._lengths))) if array else 1
        for row in range(0, len(self), rows):
            some = slice(row, row + rows)
            x, y = (np.ma.atleast_2d(t[some]) if array else np.ma.atleast_2d(t[row]) for t in both)
            for start in range(0, x.shape[1], CHUNK):
                yield some, x[:, start : start + CHUNK], y[:, start : start + CHUNK]


def _finite(samples: NDArray[Any]) -> NDArray[Any]:
    """The samples as float64 or complex128, NaN for what is masked or not finite."""
    wide = np.complex128 if np.iscomplexobj(samples) else np.float64
    values = np.ma.filled(np.ma.asarray(samples).astype(wide), np.nan)
    return np.where(np.isfinite(values), values, np.nan)


def _real(samples: NDArray[Any]) -> NDArray[np.float64]:
    values: NDArray[np.float64] = _finite(samples).real
    return values


def _shape(lengths: list[int]) -> str:
    sizes = f"{min(lengths)} to {max(lengths)}" if len(set(lengths)) > 1 else f"{max(lengths, default=0)}"
    return f"{len(lengths)} traces of {sizes} samples"


def _middle(values: NDArray[np.float64]) -> float:
    """Mean of the samples that are no gaps, 0 if there are none."""
    known = values[np.isfinite(values)]
    return float(known.mean()) if known.size else 0.0


# ---------------------------------------------------------------- before, after, removed


def _draw_lines(figure: Figure, cell: Any, gather: _Gather) -> None:
    """One trace as three stacked lines with the same axes."""
    grid = cell.subgridspec(3, 1, hspace=0.12)
    pair = gather.pair(0)
    shared = figure.add_subplot(grid[0], label=PANELS[0])
    for row, panel in enumerate(PANELS):
        axes = figure.add_subplot(grid[row], label=panel, sharex=shared, sharey=shared) if row else shared
        marker = "." if len(pair) <= POINTS else None
        axes.plot(*pair.envelope(panel), color=COLORS[panel], linewidth=0.8, marker=marker, label=panel)
        _style(axes, grid=True)
        axes.tick_params(labelbottom=row == len(PANELS) - 1)
        axes.set_ylabel("amplitude (data units)" if row == 1 else "", fontsize=MEDIUM)
        _tag(axes, _caption(panel))
    values = np.concatenate([np.asarray(line.get_ydata(), np.float64) for axes in figure.axes for line in axes.lines])
    shared.set_ylim(*_limits(values))
    shared.set_xlim(*gather.span)
    axes.set_xlabel(gather.time_label, fontsize=MEDIUM, labelpad=1)


def _limits(values: NDArray[np.float64]) -> tuple[float, float]:
    """Limits of an axis around the values, with a margin, also where they are all one or none."""
    known = values[np.isfinite(values)]
    low, high = (float(known.min()), float(known.max())) if known.size else (-1.0, 1.0)
    margin = 0.06 * (high - low) or 0.06 * abs(high) or 1.0
    return low - margin, high + margin


def _draw_gather(figure: Figure, cell: Any, gather: _Gather) -> None:
    """Three panels of traces side by side, time downwards, every trace on one scale in all three."""
    from matplotlib.ticker import MaxNLocator

    grid = cell.subgridspec(1, 3, wspace=0.05)
    shared = figure.add_subplot(grid[0], label=PANELS[0])
    image = len(gather) > WIGGLES
    for column, panel in enumerate(PANELS):
        axes = figure.add_subplot(grid[column], label=panel, sharex=shared, sharey=shared) if column else shared
        (_image if image else _wiggles)(axes, gather, panel)
        _style(axes)
        axes.set_title(_caption(panel), fontsize=MEDIUM + 1, color=COLORS[panel], fontweight="bold", pad=5)
        axes.set_xlabel("trace (from 0), each to its own scale", fontsize=MEDIUM, labelpad=2)
        axes.tick_params(labelleft=column == 0)
    ticks = MaxNLocator(9, integer=True).tick_values(0, len(gather) - 1)
    shared.set_xticks([tick for tick in ticks if 0 <= tick < len(gather)])
    shared.set_ylabel(gather.time_label, fontsize=MEDIUM)
    shared.set_ylim(*gather.span[::-1])
    shared.set_xlim(*((-0.5, len(gather) - 0.5) if image else (-1.6, len(gather) + 0.6)))


def _caption(panel: str) -> str:
    return "removed  (before − after, same scale)" if panel == "removed" else panel


def _wiggles(axes: Axes, gather: _Gather, panel: str) -> None:
    """Traces as lines with their positive side filled, one apart."""
    drawn = [gather.pair(i).envelope("before")[1] for i in range(len(gather))]
    means = [_middle(values) for values in drawn]
    scales = _scales([values - mean for values, mean in zip(drawn, means, strict=True)], 99.5)
    for index, (mean, scale) in enumerate(zip(means, scales, strict=True)):
        times, values = gather.pair(index).envelope(panel)
        offset = np.clip((values - (panel != "removed") * mean) / scale, -1.6, 1.6)
        marker = "." if len(times) <= POINTS else None
        axes.plot(index + offset, times, color=COLORS[panel], linewidth=0.5, marker=marker, markersize=3)
        axes.fill_betweenx(times, index, index + np.maximum(offset, 0), color=COLORS[panel], alpha=0.75, linewidth=0)


def _image(axes: Axes, gather: _Gather, panel: str) -> None:
    """Traces as columns of an image."""
    shown = gather.spread(COLUMNS)
    before = [gather.pair(i).column("before", gather.duration) for i in shown]
    means = [_middle(values) for values in before]
    scales = _scales([values - mean for values, mean in zip(before, means, strict=True)], 99)
    columns = before if panel == "before" else [gather.pair(i).column(panel, gather.duration) for i in shown]
    values = np.array(columns) - (panel != "removed") * np.array(means)[:, None]
    axes.set_facecolor(GAP_COLOR)
    extent = (-0.5, len(gather) - 0.5, gather.duration, 0)
    axes.imshow(
        (values / scales[:, None]).T, cmap="RdBu_r", vmin=-1, vmax=1, aspect="auto", extent=extent,
        interpolation="nearest",
    )  # fmt: skip


def _scales(traces: list[NDArray[np.float64]], percentile: float) -> NDArray[np.float64]:
    """What is drawn as 1 for each trace: a high percentile of its magnitudes before denoising.

    At least a hundredth of the largest, so that a trace of next to nothing does not look like one of signal.
    """
    known = [np.abs(values[np.isfinite(values)]) for values in traces]
    scales = np.array([np.percentile(values, percentile) if values.size else 0.0 for values in known])
    largest = scales.max() or max((values.max() for values in known if values.size), default=0.0) or 1.0
    raised: NDArray[np.float64] = np.maximum(scales, largest / 100)
    return raised


# ---------------------------------------------------------------- spectra


def _windows(pair: _Pair, panel: str, starts: NDArray[np.intp], length: int) -> NDArray[np.float64]:
    """Stretches of ``length`` samples of a trace less its mean, 0 in gaps and beyond its ends, tapered."""
    windows = np.full((len(starts), length), np.nan)
    for window, start in zip(windows, starts, strict=True):
        part = pair.part(panel, max(0, start), max(0, start + length))
        window[max(0, -start) :][: len(part)] = part
    return np.nan_to_num(windows - _middle(windows)) * np.hanning(length + 2)[1:-1]


def _spectrogram(pair: _Pair, panel: str, peak: float) -> NDArray[np.float64]:
    """Amplitudes relative to ``peak``, shape (frequencies, times): at most about 400 times, evenly spaced."""
    length = _power_of_two(len(pair) / 10, 8, 1024)
    starts = np.arange(0, len(pair), math.ceil(len(pair) / 400)) - length // 2
    windows = _windows(pair, panel, starts, length) / (peak * length)
    amplitudes: NDArray[np.float64] = np.abs(np.fft.rfft(windows, 2 * length)).T
    return amplitudes


def _power_of_two(value: float, least: int, most: int) -> int:
    """The power of two nearest to ``value`` within limits."""
    return min(most, max(least, int(2 ** round(math.log2(value)))))


def _draw_spectrograms(figure: Figure, cell: Any, gather: _Gather) -> None:
    """Spectrograms of the strongest trace, one colour scale in dB below the largest value before."""
    grid = cell.subgridspec(1, 3, width_ratios=(1, 1, 0.04), wspace=0.13)
    pair = gather.pair(gather.strongest)
    panels = [figure.add_subplot(grid[i], label=f"spectrogram {PANELS[i]}") for i in (0, 1)]
    powers = [_spectrogram(pair, panel, gather.peak or 1.0) for panel in PANELS[:2]]
    name = f", trace {gather.strongest}" if len(gather) > 1 else ""
    for axes, panel in zip(panels, PANELS, strict=False):
        _style(axes)
        axes.set_title(f"spectrogram {panel}{name}", fontsize=MEDIUM, pad=5)
        axes.locator_params(axis="x", nbins=5)
        axes.set_xlabel(gather.time_label, fontsize=MEDIUM, labelpad=1)
    panels[0].set_ylabel(gather.frequency_label, fontsize=MEDIUM)
    panels[1].tick_params(labelleft=False)
    largest = float(powers[0].max())
    if largest < 1e-12:  # rounding errors of a constant
        for axes in panels:
            _say(axes, "no variation")
        return
    extent = (0, len(pair) * pair.interval, 0, 0.5 / pair.interval)
    for axes, power in zip(panels, powers, strict=True):
        image = axes.imshow(
            _decibels(power / largest), cmap="magma", vmin=-RANGE_DB, vmax=0, aspect="auto", origin="lower",
            extent=extent, interpolation="bilinear",
        )  # fmt: skip
    bar = figure.colorbar(image, cax=figure.add_subplot(grid[2], label="decibels"))
    bar.ax.set_title("dB", fontsize=SMALL, pad=5)
    bar.ax.tick_params(labelsize=SMALL)


def _draw_spectra(axes: Axes, gather: _Gather) -> None:
    """Mean amplitude spectra before, after and of what was removed, in dB below the peak before."""
    _style(axes, grid=True)
    axes.set_title("mean amplitude spectrum", fontsize=MEDIUM, pad=5)
    axes.set_xlabel(gather.frequency_label, fontsize=MEDIUM, labelpad=1)
    axes.set_ylabel("dB, 0 is the peak before", fontsize=MEDIUM, labelpad=1)
    pairs = gather.like_strongest(48)
    spectra = {panel: _mean_spectrum(pairs, panel, gather.peak) for panel in PANELS} if pairs else {}
    largest = float(spectra["before"].max()) if pairs else 0.0
    if largest < 1e-12:
        _say(axes, "no variation")
        return
    frequencies = np.linspace(0, 0.5 / pairs[0].interval, len(spectra["before"]))
    for panel, spectrum in spectra.items():
        axes.plot(frequencies, _decibels(spectrum / largest), color=COLORS[panel], linewidth=1.4, label=panel)
    axes.set_xlim(0, frequencies[-1])
    axes.set_ylim(-RANGE_DB - 5, 9)  # room for the legend
    _legend(axes, columns=3)


def _mean_spectrum(pairs: list[_Pair], panel: str, peak: float) -> NDArray[np.float64]:
    """Mean of the amplitude spectra of at most 32 stretches of each trace."""
    length = _power_of_two(max(map(len, pairs)) / 4, 8, 2048)
    spectra = []
    for pair in pairs:
        starts = np.unique(np.linspace(0, max(0, len(pair) - length), 32).astype(np.intp))
        windows = _windows(pair, panel, starts, length) / (peak * length)
        spectra.append(np.abs(np.fft.rfft(windows, 2 * length)).mean(axis=0))
    mean: NDArray[np.float64] = np.mean(spectra, axis=0)
    return mean


def _decibels(ratio: NDArray[np.float64]) -> NDArray[np.float64]:
    decibels: NDArray[np.float64] = 20 * np.log10(np.maximum(ratio, 1e-12))
    return decibels


# ---------------------------------------------------------------- levels


def _draw_levels(energies: Axes, thresholds: Axes, after: Recording) -> None:
    """Energy of the details before shrinking, and noise and thresholds, by level."""
    estimates = after.outcome.estimates if after.outcome else []
    for axes in (energies, thresholds):
        _style(axes, grid=True)
    energies.set_title("details by level", fontsize=MEDIUM, pad=5)
    energies.tick_params(labelbottom=False)
    energies.set_ylabel("energy (%)", fontsize=MEDIUM, labelpad=1)
    thresholds.set_ylabel("data units", fontsize=MEDIUM, labelpad=1)
    thresholds.set_xlabel("level (1 = finest)", fontsize=MEDIUM, labelpad=1)
    depth = max((len(estimate.sigma) for estimate in estimates), default=0)
    if depth == 0:
        _say(energies, "no levels:\nnothing was shrunk")
        _say(thresholds, "no thresholds")
        return
    _draw_energies(energies, estimates, depth)
    _draw_thresholds(thresholds, estimates, depth)
    step = math.ceil(depth / 10)
    thresholds.set_xticks(np.arange(1, depth + 1, step))
    thresholds.set_xlim(0.4, depth + 0.6)


def _draw_energies(axes: Axes, estimates: list[Estimate], depth: int) -> None:
    """Share of each level in the energy of all details, and the part that the noise estimate explains."""
    energy, noise = np.zeros(depth), np.zeros(depth)
    for estimate in estimates:
        if estimate.power is None:
            _say(axes, "energies not measured")
            return
        own = slice(len(estimate.sigma))
        energy[own] += (estimate.power * estimate.counts[:, None]).sum(axis=1)
        noise[own] += (estimate.sigma**2 * estimate.counts[:, None]).sum(axis=1)
    total = energy.sum()
    if not 0 < total < math.inf:
        _say(axes, "no energy")
        return
    levels = np.arange(1, depth + 1)
    axes.bar(levels, 100 * energy / total, width=0.62, color=COLORS["before"], alpha=0.55, label="before")
    axes.plot(levels, 100 * noise / total, "o-", color=SIGMA_COLOR, linewidth=1.4, markersize=4, label="noise, σ²")
    axes.set_ylim(0, 135 * min(max(energy.max(), noise.max()), 3 * energy.max()) / total)
    _legend(axes)


def _draw_thresholds(axes: Axes, estimates: list[Estimate], depth: int) -> None:
    """Median over the traces with noise of σ and the threshold of each level."""
    sigma, threshold = np.zeros(depth), np.zeros(depth)
    for level in range(depth):
        deep = [estimate for estimate in estimates if len(estimate.sigma) > level]
        sigmas, chosen = (np.concatenate([getattr(e, of)[level] for e in deep]) for of in ("sigma", "thresholds"))
        live = (sigmas > 0) | (chosen > 0)
        if live.any():
            sigma[level], threshold[level] = np.median(sigmas[live]), np.median(chosen[live])
    levels = np.arange(1, depth + 1)
    axes.plot(levels, threshold, "s-", color=THRESHOLD_COLOR, linewidth=1.4, markersize=4, label="threshold")
    axes.plot(levels, sigma, "o-", color=SIGMA_COLOR, linewidth=1.4, markersize=4, label="noise σ")
    if min(sigma.min(), threshold.min()) > 0:
        _log_scale(axes, sigma, threshold)
    else:
        axes.set_ylim(0, 1.35 * max(sigma.max(), threshold.max()) or 1.0)
    _legend(axes)


def _log_scale(axes: Axes, *values: NDArray[np.float64]) -> None:
    """A logarithmic amplitude axis with plain numbers, and room for a legend above the values."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    axes.set_yscale("log")
    low, high = min(v.min() for v in values), max(v.max() for v in values)
    room = max(high / low, 1.5)
    axes.set_ylim(low / room**0.12, high * room**0.45)
    axes.yaxis.set_major_locator(LogLocator(10, subs=(1, 2, 5) if high / low < 100 else (1,), numticks=6))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.yaxis.set_minor_locator(NullLocator())


# ---------------------------------------------------------------- appearance


def _draw_title(figure: Figure, gather: _Gather, before: Recording, after: Recording) -> None:
    name = Path(before.source or after.source).name or "recording"
    name = name if len(name) <= 60 else f"{name[:57]}..."
    parts = [_describe(after.outcome)] if after.outcome else []
    share = 100 * gather.share
    parts.append(f"removed {'< 0.0001' if 0 < share < 1e-4 else f'{share:.3g}'} % of the energy")
    if gather.complex:
        parts.append("real part shown")
    figure.text(0.055, 0.968, _printable(name), fontsize=LARGE + 1, fontweight="bold", parse_math=False, va="center")
    figure.text(0.985, 0.968, SEPARATOR.join(parts), fontsize=LARGE - 0.5, parse_math=False, va="center", ha="right")


def _describe(outcome: Outcome) -> str:
    """Wavelet, level, rule and threshold function in a line."""
    method = outcome.method
    if isinstance(method.rule, str):
        rule = f"rule {method.rule}"
    else:
        rule = "threshold " + ", ".join(f"{value:.4g}" for value in method.fixed_thresholds[:6])
    return SEPARATOR.join([_printable(method.bank.name), f"level {outcome.level}", rule, method.shrink_function])


def _printable(text: str) -> str:
    """The text with a question mark for what the font cannot draw, which matplotlib would warn of."""
    from matplotlib.font_manager import FontProperties, findfont, get_font

    drawable = get_font(findfont(FontProperties(weight="bold"))).get_charmap()
    return "".join(c if ord(c) in drawable else "?" for c in text)


def _style(axes: Axes, grid: bool = False) -> None:
    axes.tick_params(labelsize=SMALL, length=3, width=0.6)
    for name, spine in axes.spines.items():
        spine.set_linewidth(0.6)
        spine.set_visible(not grid or name in ("left", "bottom"))
    if grid:
        axes.grid(color="#e6e6e6", linewidth=0.6)
        axes.set_axisbelow(True)


def _tag(axes: Axes, text: str) -> None:
    """A panel's name in its upper left corner, readable over lines."""
    box = {"facecolor": "white", "alpha": 0.8, "edgecolor": "none", "pad": 1.5}
    axes.text(
        0.006, 0.95, text, transform=axes.transAxes, fontsize=MEDIUM, fontweight="bold", va="top", bbox=box,
        color=COLORS[text.split()[0]],
    )  # fmt: skip


def _legend(axes: Axes, columns: int = 2) -> None:
    axes.legend(
        fontsize=SMALL - 0.5, loc="upper right", ncols=columns, frameon=False, borderaxespad=0.1,
        handlelength=1.4, columnspacing=1.2,
    )  # fmt: skip


def _say(axes: Axes, text: str) -> None:
    """A line instead of a plot, for what there is nothing to draw of."""
    axes.text(0.5, 0.5, text, transform=axes.transAxes, fontsize=MEDIUM, ha="center", va="center", color="#666666")
    axes.set_xticks([])
    axes.set_yticks([])
