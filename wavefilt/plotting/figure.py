"""Figures of recordings by matplotlib (extra ``plot``), which is imported when a figure is drawn, without pyplot."""

from __future__ import annotations

import base64
import io
import math
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from wavefilt.arrays import Floats

from . import data
from .data import DrawnTraces, PlotOptions

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.figure import Figure, SubFigure

    from wavefilt.engine import Outcome
    from wavefilt.recording import Recording

FILE_TYPES = ("png", "pdf", "svg")
SEPARATOR = "   ·   "
WIDTH, TITLE, TRACES, OTHERS = 13.0, 0.55, 5.3, 3.35
"""Inches: width of the figure, heights of its title, of the panels of samples and of the other panels."""
SMALL, MEDIUM, LARGE = 8.5, 9.5, 12.0
"""Font sizes in points: tick labels, labels, the title."""
VERTICES = 100_000
"""Most points of wiggles that are drawn as paths in PDF and SVG; more are drawn as an image."""
LINE: dict[str, Any] = {"linewidth": 1.4, "markersize": 4}
DAY = 86400
STEPS = [m * 10**e for e in range(-6, 1) for m in (1, 2, 5)] + [10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200]
STEPS += [10800, 21600, 43200, *(DAY * m * 10**e for e in range(5) for m in (1, 2, 5))]
"""Seconds between the ticks of a time axis."""


def plot_denoising(
    before: Recording,
    after: Recording | None,
    path: str | Path,
    *,
    overwrite: bool = False,
    dpi: float = 120,
    options: PlotOptions | None = None,
) -> Figure:
    """Draw ``before``, ``after`` and the residual on one amplitude scale, write the figure to ``path`` and return it.

    `Recording.plot` does the same, and raises the same errors. Wavelet, rule and thresholds are those of
    ``after.outcome``; the energies by level need an outcome with a report (``before.apply(options, report=True)``).
    """
    from wavefilt.io.atomic import check_destination, write_atomically

    kind = file_type(path)
    check_destination(Path(path), overwrite=overwrite)
    figure = draw(before, after, options or PlotOptions())
    write_atomically(Path(path), render(figure, kind, dpi), overwrite=overwrite)
    return figure


def render(figure: Figure, kind: str, dpi: float) -> bytes:
    """Return the figure as a file of this type, without a date: the same data give the same file. Text stays text."""
    buffer = io.BytesIO()
    if kind != "png":
        from matplotlib import rc_context

        date = {"CreationDate" if kind == "pdf" else "Date": None}
        with rc_context({"svg.fonttype": "none", "svg.hashsalt": "wavefilt", "pdf.fonttype": 42}):
            figure.savefig(buffer, format=kind, dpi=dpi, metadata=date)
        return buffer.getvalue()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from PIL import Image  # matplotlib depends on it

    figure.set_dpi(dpi)
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    pixels = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
    # a palette of 256 colours makes the file a quarter, without a visible difference
    pixels.quantize(256, Image.Quantize.MAXCOVERAGE, dither=Image.Dither.NONE).save(buffer, "png", dpi=(dpi, dpi))
    return buffer.getvalue()


def file_type(path: str | Path) -> str:
    """Return the type of a figure by the extension of ``path``.

    Raises ValueError for an unknown extension, and ImportError without matplotlib.
    """
    kind = Path(path).suffix.lower().lstrip(".")
    if kind not in FILE_TYPES:
        known = ", ".join(f".{name}" for name in FILE_TYPES)
        raise ValueError(f"{path}: figures are written as {known}, not {Path(path).suffix or 'without extension'}")
    empty_figure()
    return kind


def draw(before: Recording, after: Recording | None, options: PlotOptions) -> Figure:
    """Return the figure of `Recording.plot`; `Axes.get_label` gives the names of its panels."""
    traces = DrawnTraces(before, after, options)
    heights = [height for height, drawn in ((TRACES, traces.panels), (OTHERS, traces.others)) if drawn]
    height = TITLE + sum(heights)
    figure = empty_figure(figsize=(WIDTH, height), facecolor="white", layout="constrained")
    layout: Any = figure.get_layout_engine()
    layout.set(rect=(0.005, 0, 0.985, 1 - TITLE / height), w_pad=0.07, h_pad=0.07, wspace=0.01)
    places: Any = figure.subfigures(len(heights), 1, height_ratios=heights, squeeze=False)[:, 0]
    if traces.panels:
        _draw_traces(places[0], traces)
    if traces.others:
        wide = [1 + 1.35 * (len(traces.parts) > 1) if panel == "spectrograms" else 1 for panel in traces.others]
        lower = places[-1].subfigures(1, len(wide), width_ratios=wide, squeeze=False)[0]
        for place, panel in zip(lower, traces.others, strict=True):
            if panel == "spectrograms":
                _draw_spectrograms(place, traces)
            elif panel == "spectra":
                _draw_spectra(place.add_subplot(label="spectra"), traces)
            else:
                (_draw_statics if panel == "statics" else _draw_levels)(place, (after or before).outcome)
    _draw_title(figure, traces, before, after)
    return figure


def thumbnail(recording: Recording) -> str:
    """Return a small picture of the traces as an element of a page. Raises ImportError without matplotlib."""
    traces = DrawnTraces(recording, None, PlotOptions())
    figure = empty_figure(figsize=(6.4, 2.4), layout="constrained")
    _draw_part(figure.add_subplot(), traces, "before")
    return as_html(figure)


def as_html(figure: Figure, dpi: float = 80, description: str = "the traces") -> str:
    """Return a figure as an element of a page."""
    picture = base64.b64encode(render(figure, "png", dpi)).decode()
    return f'<img alt="{description}" src="data:image/png;base64,{picture}">'


def empty_figure(**options: Any) -> Figure:
    """Return a figure that notebooks show without pyplot. Raises ImportError without matplotlib."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError('figures need matplotlib: pip install "wavefilt[plot]"') from error
    figure = Figure(**options)
    vars(figure)["_repr_html_"] = partial(as_html, figure)
    return figure


def _draw_title(figure: Figure, traces: DrawnTraces, before: Recording, after: Recording | None) -> None:
    from matplotlib.font_manager import FontProperties, findfont, get_font

    last = after or before
    name = Path(before.source or last.source).name or "recording"
    name = name if len(name) <= 60 else f"{name[:57]}..."
    drawable = get_font(findfont(FontProperties(weight="bold"))).get_charmap()
    name = "".join(c if ord(c) in drawable else "?" for c in name)  # matplotlib warns of characters that a font lacks
    words = [last.outcome.options.summary(last.outcome.level)] if last.outcome else []
    if after:
        share = 100 * traces.share
        words.append(f"residual: {'< 0.0001' if 0 < share < 1e-4 else f'{share:.3g}'} % of the energy")
    words += ["real part shown"] * before.complex + [str(traces.gain)] * (traces.gain is not None)
    edge, y = 0.2 / WIDTH, 1 - 0.3 / figure.get_figheight()
    shared: dict[str, Any] = {"parse_math": False, "va": "center"}
    figure.text(edge, y, name, fontsize=LARGE + 1, fontweight="bold", **shared)
    figure.text(1 - 0.2 / WIDTH, y, SEPARATOR.join(words), fontsize=LARGE - 0.5, ha="right", **shared)


# ------------------------------------------------------------------------------------------------------ appearance


def style(axes: Axes, grid: bool = False) -> None:
    """Set the ticks and frame that all axes share; with a ``grid`` only the left and lower sides are framed."""
    axes.tick_params(labelsize=SMALL, length=3, width=0.6)
    for name, spine in axes.spines.items():
        spine.set_linewidth(0.6)
        spine.set_visible(not grid or name in ("left", "bottom"))
    if grid:
        axes.grid(color="#e6e6e6", linewidth=0.6)
        axes.set_axisbelow(True)


def _legend(axes: Axes, columns: int = 2) -> None:
    spacing = {"borderaxespad": 0.1, "handlelength": 1.4, "columnspacing": 1.2}
    axes.legend(fontsize=SMALL - 0.5, loc="upper right", ncols=columns, frameon=False, **spacing)


def _write_instead(axes: Axes, text: str) -> None:
    """Write a line of text instead of an empty plot."""
    axes.text(0.5, 0.5, text, transform=axes.transAxes, fontsize=MEDIUM, ha="center", va="center", color="#666666")
    axes.set_xticks([])
    axes.set_yticks([])


# ---------------------------------------------------------------------------------------------------------- traces


def _draw_traces(figure: SubFigure, traces: DrawnTraces) -> None:
    """Draw the panels of samples, all with the axes and the scales of the first."""
    count, horizontal = len(traces.panels), traces.display == "seismogram"
    rows, columns = (count, 1) if horizontal else (1, count)
    panels = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False).ravel().tolist()
    for axes, part in zip(panels, traces.panels, strict=True):
        axes.set_label(part)
        _draw_part(axes, traces, part)
        caption = "residual  (before − after, same scale)" if part == "residual" else part
        caption = caption if len(traces.parts) > 1 else ""
        if horizontal:
            box = {"facecolor": "white", "alpha": 0.8 if caption else 0, "edgecolor": "none", "pad": 1.5}
            look: dict[str, Any] = {"fontsize": MEDIUM, "fontweight": "bold", "color": data.COLORS[part]}
            axes.text(0.006, 0.95, caption, va="top", bbox=box, transform=axes.transAxes, **look)
        else:
            axes.set_title(caption, fontsize=MEDIUM + 1, color=data.COLORS[part], fontweight="bold", pad=5)
            _label_traces(axes, traces)
    if horizontal:
        _finish_seismograms(panels, traces)
        return
    panels[0].set_ylabel(traces.time_label, fontsize=MEDIUM)
    if traces.display == "density":
        bar = figure.colorbar(panels[0].images[0], ax=panels, ticks=(-1, -0.5, 0, 0.5, 1), aspect=40, pad=0.01)
        bar.set_label(f"amplitude, {_clipping(traces)}", fontsize=MEDIUM)
        bar.ax.set_label("amplitudes")
        bar.ax.tick_params(labelsize=SMALL)


def _draw_part(axes: Axes, traces: DrawnTraces, part: str) -> None:
    """Draw the rows horizontally, the first at the top, or side by side with time downwards."""
    if traces.display == "seismogram":
        style(axes, grid=len(traces) == 1)
        axes.set_xlim(*traces.span)
        _set_time_axis(axes.xaxis, traces, *traces.span)
        _draw_seismograms(axes, traces, part)
        return
    image = traces.display == "density"
    style(axes)
    (_draw_image if image else _draw_wiggles)(axes, traces, part)
    margins = np.array([-0.5, 0.5] if image else [-1.6, 1.6]) * traces.spacing
    axes.set_xlim(traces.places[0] + margins[0], traces.places[-1] + margins[1])
    axes.set_ylim(*traces.span[::-1])
    _set_time_axis(axes.yaxis, traces, *traces.span)


def _draw_seismograms(axes: Axes, traces: DrawnTraces, part: str) -> None:
    """Draw each row to its own scale, and a single one in its own units."""
    look: dict[str, Any] = {"color": data.COLORS[part], "label": part}
    if len(traces) == 1:
        times, samples = traces.line(0, part)
        axes.plot(times, samples, linewidth=0.8, marker=_marker(times), **look)
        return
    for row, (mean, scale) in enumerate(traces.scales.values()):
        times, samples = traces.line(row, part)
        values = np.clip((samples - (part != "residual") * mean) / scale, -1, 1)
        line = axes.plot(times, row - 0.46 * values, linewidth=0.7, marker=_marker(times), **look)[0]
        line.set_rasterized(_rasterized(traces))
    axes.hlines(np.arange(1, len(traces)) - 0.5, *traces.span, color="#d0d0d0", linewidth=0.5)
    axes.set_yticks(range(len(traces)), traces.labels)
    axes.set_ylim(len(traces) - 0.5, -0.5)


def _finish_seismograms(panels: list[Axes], traces: DrawnTraces) -> None:
    if len(traces) == 1:
        panels[-1].set_xlabel(traces.time_label, fontsize=MEDIUM, labelpad=1)
        panels[len(panels) // 2].set_ylabel(f"amplitude ({traces.unit})", fontsize=MEDIUM)
        if traces.clip is not None:
            ((mean, scale),) = traces.scales.values()
            low, high = panels[0].get_ylim()
            panels[0].set_ylim(max(low, min(mean, 0) - 1.06 * scale), min(high, max(mean, 0) + 1.06 * scale))
        return
    unit = f"on the right: amplitude of half a row ({traces.unit})"
    panels[-1].set_xlabel(f"{traces.time_label}{SEPARATOR}{unit}", fontsize=MEDIUM, labelpad=1)
    scales = [f"±{scale:.0f}" if 100 <= scale < 1e6 else f"±{scale:.3g}" for _, scale in traces.scales.values()]
    for axes in panels:
        twin = axes.secondary_yaxis("right")
        twin.set_yticks(range(len(traces)), scales)
        twin.tick_params(labelsize=SMALL, length=0)
        twin.spines["right"].set_visible(False)


def _label_traces(axes: Axes, traces: DrawnTraces) -> None:
    from matplotlib.ticker import MaxNLocator

    label = {"trace": "trace (from 0)", "offset": "offset (m)", "id": "station id"}[traces.by]
    if traces.display == "wiggle":
        label += f"\n{_clipping(traces)}"
    axes.set_xlabel(label, fontsize=MEDIUM, labelpad=2)
    if traces.by == "offset":
        axes.xaxis.set_major_locator(MaxNLocator(9))
        return
    ticks = MaxNLocator(6 if traces.by == "id" else 9, integer=True).tick_values(0, len(traces) - 1)
    places = [int(tick) for tick in ticks if 0 <= tick < len(traces)]
    names = [traces.labels[place] if traces.by == "id" else str(place) for place in places]
    room = axes.get_window_extent().width / axes.figure.dpi / (len(traces) + 2.2) * max(np.diff(places), default=1)
    axes.set_xticks(places, names, rotation=90 if 0.08 * max(map(len, names)) > room else 0)


def _clipping(traces: DrawnTraces) -> str:
    """Return the percentile of each trace that is drawn as 1, in words."""
    number = traces.percentile
    ending = "th" if 10 < number < 14 else {1.0: "st", 2.0: "nd", 3.0: "rd"}.get(number % 10, "th")
    scaled = "clipped at" if traces.display == "density" else "scaled by"
    return f"{scaled} the {number:g}{ending} percentile{f' with {traces.gain}' if traces.gain else ''}"


def _draw_wiggles(axes: Axes, traces: DrawnTraces, part: str) -> None:
    """Draw traces as lines with their positive side filled."""
    look: dict[str, Any] = {"color": data.COLORS[part], "rasterized": _rasterized(traces)}
    for row, (place, (mean, scale)) in enumerate(zip(traces.places, traces.scales.values(), strict=True)):
        times, values = traces.line(row, part)
        swing = traces.spacing * np.clip((values - (part != "residual") * mean) / scale, -1.6, 1.6)
        axes.plot(place + swing, times, linewidth=0.5, marker=_marker(times), markersize=3, **look)
        axes.fill_betweenx(times, place, place + np.maximum(swing, 0), alpha=0.75, linewidth=0, **look)


def _draw_image(axes: Axes, traces: DrawnTraces, part: str) -> None:
    """Draw traces as columns of an image, each up to the middle between its neighbours."""
    shown = list(traces.scales)
    places = traces.places[shown]
    step = max(data.spacing(places), (places[-1] - places[0]) / data.COLUMNS)
    grid = np.arange(places[0], places[-1] + step / 2, step)
    nearest = np.searchsorted((places[1:] + places[:-1]) / 2, grid)
    columns = np.array([traces.column(row, part) for row in shown])
    means, scales = np.array([traces.scales[row] for row in shown]).T[..., None]
    image = ((columns - (part != "residual") * means) / scales)[nearest]
    image[np.abs(grid - places[nearest]) > 0.75 * step] = np.nan  # where there is no trace
    axes.set_facecolor(data.GAP_COLOR)
    extent = (grid[0] - step / 2, grid[-1] + step / 2, traces.stop, traces.start)
    axes.imshow(image.T, "RdBu_r", aspect="auto", extent=extent, interpolation="nearest").set_clim(-1, 1)


def _marker(times: Floats) -> str | None:
    return "." if len(times) <= data.POINTS else None


def _rasterized(traces: DrawnTraces) -> bool:
    """Return whether lines and fillings have too many points for a file of paths."""
    paths = len(traces) * len(traces.panels) * (3 if traces.display == "wiggle" else 1)
    return paths * min(traces.longest, 2 * data.BINS) > VERTICES


def _set_time_axis(axis: Axis, traces: DrawnTraces, first: float, last: float, most: int = 7) -> None:
    """Label an axis with times of the day in round steps and with the date of each later day; only with a date."""
    if traces.day is None:
        return
    step = next((step for step in STEPS if step * most >= last - first), STEPS[-1])
    digits = max(0, math.ceil(-math.log10(step)))
    width = len("12:30") if step >= 60 else len("12:30:00") + digits + (digits > 0)
    places = np.arange(math.ceil(first / step), math.floor(last / step) + 1) * step
    labels, shown = [], str(traces.day)
    for seconds in places:
        date, clock = str(traces.day + np.timedelta64(round(1e6 * seconds), "us")).split("T")
        labels.append((f"{date[5:]} " if date != shown or step >= DAY else "") + clock[:width])
        shown = date
    axis.set_ticks(places, labels)
    written = axis.get_ticklabels()
    if axis is axis.axes.xaxis and written:  # labels at the ends must not reach into the next panel
        written[-1].set_horizontalalignment("right" if last - places[-1] < 0.05 * (last - first) else "center")
        written[0].set_horizontalalignment("left" if places[0] - first < 0.05 * (last - first) else "center")


# ---------------------------------------------------------------------------------------------- spectra and levels


def _draw_spectrograms(figure: SubFigure, traces: DrawnTraces) -> None:
    """Draw spectrograms of the strongest trace before and after, in dB below the largest value before."""
    parts = traces.parts[:2]
    panels = figure.subplots(1, len(parts), squeeze=False)[0].tolist()
    spectra, name = traces.spectrograms(), traces.name(traces.strongest)
    start, stop = traces.times(traces.strongest)
    for axes, part in zip(panels, parts, strict=True):
        style(axes)
        axes.set_label(f"spectrogram {part}")
        words = f"spectrogram {part if len(parts) > 1 else ''}".strip()
        axes.set_title(f"{words}{f', {name}' if name else ''}", fontsize=MEDIUM, pad=5)
        axes.set_xlabel(traces.time_label.split(",")[0], fontsize=MEDIUM, labelpad=1)
        axes.tick_params(labelleft=axes is panels[0])
        if spectra["before"].max() < 0:
            _write_instead(axes, "no variation")
            continue
        look: dict[str, Any] = {"aspect": "auto", "origin": "lower", "interpolation": "bilinear"}
        extent = (start, stop, 0, traces.nyquist)
        image = axes.imshow(spectra[part], "magma", extent=extent, **look)
        image.set_clim(-data.RANGE_DB, 0)
        axes.locator_params(axis="x", nbins=4)
        _set_time_axis(axes.xaxis, traces, start, stop, 3)
    panels[0].set_ylabel(traces.frequency_label, fontsize=MEDIUM)
    if panels[0].images:
        bar = figure.colorbar(panels[0].images[0], ax=panels, aspect=30, pad=0.02)
        bar.ax.set_label("decibels")
        bar.ax.set_title("dB", fontsize=SMALL, pad=5)
        bar.ax.tick_params(labelsize=SMALL)


def _draw_spectra(axes: Axes, traces: DrawnTraces) -> None:
    """Draw mean amplitude spectra in dB below the maximum before."""
    style(axes, grid=True)
    axes.set_title("mean amplitude spectrum", fontsize=MEDIUM, pad=5)
    axes.set_xlabel(traces.frequency_label, fontsize=MEDIUM, labelpad=1)
    axes.set_ylabel(f"dB re maximum{' before' * (len(traces.parts) > 1)}", fontsize=MEDIUM, labelpad=1)
    spectra = traces.mean_spectra()
    if spectra is None or spectra["before"].max() < 0:
        _write_instead(axes, "no variation")
        return
    frequencies = np.linspace(0, traces.nyquist, len(spectra["before"]))
    for part in traces.parts:
        axes.plot(frequencies, spectra[part], color=data.COLORS[part], linewidth=1.4, label=part)
    axes.set_xlim(0, frequencies[-1])
    axes.set_ylim(-data.RANGE_DB - 5, 9)  # room for the legend
    if len(traces.parts) > 1:
        _legend(axes, columns=3)


def _two_panels(figure: SubFigure, title: str, label: str, *names: str) -> list[Axes]:
    """Return two panels of these names, one below the other, with a common horizontal axis."""
    panels: list[Axes] = figure.subplots(2, 1, sharex=True).tolist()
    for axes, name in zip(panels, names, strict=True):
        axes.set_label(name)
        style(axes, grid=True)
    panels[0].set_title(title, fontsize=MEDIUM, pad=5)
    panels[1].set_xlabel(label, fontsize=MEDIUM, labelpad=1)
    return panels


def _draw_levels(figure: SubFigure, outcome: Outcome | None) -> None:
    """Draw energies of the details before shrinking, and noise and thresholds, by level."""
    names = "energies", "thresholds"
    energies, thresholds = _two_panels(figure, "detail coefficients by level", "level (1 = finest)", *names)
    energies.set_ylabel("energy (%)", fontsize=MEDIUM, labelpad=1)
    thresholds.set_ylabel("data units", fontsize=MEDIUM, labelpad=1)
    medians = data.noise_and_thresholds(outcome.estimates if outcome else [])
    depth = medians.shape[1]
    if outcome is None or depth == 0:
        _write_instead(energies, "no levels:\nnothing was shrunk")
        _write_instead(thresholds, "no thresholds")
        return
    _draw_energies(energies, data.energies_by_level(outcome.estimates, depth))
    _draw_thresholds(thresholds, *medians)
    places = np.arange(1, depth + 1, math.ceil(depth / 10))
    thresholds.set_xticks(places)
    bands = outcome.options.bands(outcome.level)
    if len(bands) > outcome.level:
        thresholds.set_xticks(places, [bands[i - 1].name for i in places])
        thresholds.set_xlabel("band (1 = finest)", fontsize=MEDIUM, labelpad=1)
    thresholds.set_xlim(0.4, depth + 0.6)


def _draw_statics(figure: SubFigure, outcome: Outcome | None) -> None:
    """Draw the shifts and factors of the traces of a section."""
    statics = outcome.statics if outcome else None
    panels = _two_panels(figure, "statics", "trace", "shifts", "factors")
    for axes, word in zip(panels, ("shift (samples)", "factor"), strict=True):
        axes.set_ylabel(word, fontsize=MEDIUM, labelpad=1)
        if statics is None:
            _write_instead(axes, "not searched for")
        else:
            values = getattr(statics, str(axes.get_label()))[0]
            axes.plot(values, ".-", color=data.COLORS["after"], linewidth=0.8, markersize=3)


def _draw_energies(axes: Axes, energies: Floats | None) -> None:
    """Draw the share of each level in the energy of all details, and the share of the estimated noise."""
    if energies is None or not 0 < energies[0].sum() < math.inf:
        _write_instead(axes, "energies not measured" if energies is None else "no energy")
        return
    energy, noise = 100 * energies / energies[0].sum()
    levels = np.arange(1, len(energy) + 1)
    axes.bar(levels, energy, width=0.62, color=data.COLORS["before"], alpha=0.55, label="before")
    axes.plot(levels, noise, "o-", color=data.SIGMA_COLOR, **LINE, label="noise, σ²")
    axes.set_ylim(0, 1.35 * min(max(energy.max(), noise.max()), 3 * energy.max()))
    _legend(axes)


def _draw_thresholds(axes: Axes, sigma: Floats, threshold: Floats) -> None:
    """Draw noise and thresholds by level, on a logarithmic axis with plain numbers where all are above 0."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

    levels = np.arange(1, len(sigma) + 1)
    axes.plot(levels, threshold, "s-", color=data.THRESHOLD_COLOR, **LINE, label="threshold")
    axes.plot(levels, sigma, "o-", color=data.SIGMA_COLOR, **LINE, label="noise σ")
    low, high = min(sigma.min(), threshold.min()), max(sigma.max(), threshold.max())
    if low > 0:
        axes.set_yscale("log")
        room = max(high / low, 1.5)  # for the legend, above the values
        axes.set_ylim(low / room**0.12, high * room**0.45)
        axes.yaxis.set_major_locator(LogLocator(10, subs=(1, 2, 5) if high / low < 100 else (1,), numticks=6))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axes.yaxis.set_minor_locator(NullLocator())
    else:
        axes.set_ylim(0, 1.35 * high or 1.0)
    _legend(axes)
