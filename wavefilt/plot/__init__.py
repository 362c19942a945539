"""One figure that shows what denoising did: before, after, what was removed, and by which thresholds.

matplotlib (extra ``plot``) is imported when a figure is drawn, never with this module; no global state is used.
"""

from __future__ import annotations

import base64
import io
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .appearance import LARGE
from .gather import draw_panel, draw_traces, margins
from .levels import draw_levels
from .options import DEFAULT, PlotOptions
from .spectra import RANGE_DB, draw_spectra, draw_spectrograms
from .traces import BINS, PANELS, Gather

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.gridspec import SubplotSpec

    from wavefilt.engine import Outcome
    from wavefilt.recording import Recording

__all__ = [
    "BINS",
    "FILE_TYPES",
    "PANELS",
    "RANGE_DB",
    "PlotOptions",
    "check_target",
    "draw",
    "file_type",
    "plot_denoising",
    "render",
    "save",
]

FILE_TYPES = ("png", "pdf", "svg")
SEPARATOR = "   ·   "
WIDTH, TITLE, TRACES, OTHERS = 13.0, 0.55, 5.3, 3.35
"""Inches: the figure, the heights of its title, of the panels of samples and of those computed from them."""


def plot_denoising(
    before: Recording,
    after: Recording,
    path: str | Path,
    *,
    overwrite: bool = False,
    dpi: float = 120,
    chosen: PlotOptions = DEFAULT,
) -> None:
    """Draw ``before``, ``after`` and what was removed on one amplitude scale; write it to ``path``.

    `Recording.plot` does the same, and draws a recording alone.

    Parameters
    ----------
    before, after : Recording
        The same traces, noisy and denoised. Wavelet, rule and thresholds are those of ``after.outcome``; the
        energies by level need an outcome with a report (``before.apply(method, report=True)``).
    path : str or Path
        Ends in .png, .pdf or .svg. The file is complete or unchanged, never partial.
    overwrite : bool
        Replace ``path`` if it exists; otherwise that is a FileExistsError.
    dpi : float
        Dots per inch, of png files and of images in the others. The figure is 13 by 9.2 inches.
    chosen : PlotOptions
        What is drawn, and how.

    Raises
    ------
    ValueError
        For an unknown extension, recordings that are empty or not of the same shape, and options that the recordings
        have no headers for.
    ImportError
        If matplotlib is not installed.
    FileExistsError, OSError
        If the file is there already or cannot be written.
    """
    save(lambda: draw(before, after, chosen), path, overwrite, dpi)


def save(drawn: Callable[[], Figure], path: str | Path, overwrite: bool, dpi: float) -> Figure:
    """Draw a figure and write it. Raises what `plot_denoising` does."""
    from wavefilt.io.atomic import check_destination, write_atomically

    kind = file_type(path)
    check_destination(Path(path), overwrite=overwrite)  # before the work, not after
    figure = drawn()
    write_atomically(Path(path), render(figure, kind, dpi), overwrite=overwrite)
    return figure


def render(figure: Figure, kind: str, dpi: float) -> bytes:
    """The figure as a file of this type, without a date, so that the same data give the same file; text is text."""
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
    """The type of figure by the extension of ``path``. Raises ValueError, with the list, for an unknown one."""
    kind = Path(path).suffix.lower().lstrip(".")
    if kind not in FILE_TYPES:
        known = ", ".join(f".{name}" for name in FILE_TYPES)
        raise ValueError(f"{path}: figures are written as {known}, not {Path(path).suffix or 'without extension'}")
    return kind


def check_target(path: str | Path) -> None:
    """Checks that need no data: ValueError for an unknown extension, ImportError without matplotlib."""
    file_type(path)
    _figure_class()


def draw(before: Recording, after: Recording | None = None, chosen: PlotOptions = DEFAULT) -> Figure:
    """The figure of `Recording.plot`, not yet written; `Axes.get_label` names its panels. Raises what that does."""
    figure_class = _figure_class()
    gather = Gather(before, after, chosen)
    heights = [height for height, drawn in ((TRACES, gather.panels), (OTHERS, gather.others)) if drawn]
    height = TITLE + sum(heights)
    figure = figure_class(figsize=(WIDTH, height), facecolor="white")
    if gather.panels:
        left, bottom, right, top = margins(gather)
        low = height - TITLE - TRACES
        place = {"left": left / WIDTH, "right": 1 - right / WIDTH, "bottom": (low + bottom) / height}
        draw_traces(figure, figure.add_gridspec(1, 1, **place, top=(low + TRACES - top) / height)[0], gather)
    if gather.others:
        place = {"left": 0.72 / WIDTH, "right": 1 - 0.2 / WIDTH, "bottom": 0.5 / height, "top": (OTHERS - 0.3) / height}
        widths = [1 + 1.35 * (len(gather.kinds) > 1) if panel == "spectrograms" else 1 for panel in gather.others]
        lower = figure.add_gridspec(1, len(widths), **place, width_ratios=widths, wspace=0.28)
        _draw_others(figure, {panel: lower[i] for i, panel in enumerate(gather.others)}, gather, after or before)
    _draw_title(figure, gather, before, after)
    return figure


def _draw_others(figure: Figure, cells: dict[str, SubplotSpec], gather: Gather, last: Recording) -> None:
    """Spectrograms, spectra, and levels of the ``last`` recording, where there is a cell for them."""
    if "spectrograms" in cells:
        draw_spectrograms(figure, cells["spectrograms"], gather)
    if "spectra" in cells:
        draw_spectra(figure.add_subplot(cells["spectra"], label="spectra"), gather)
    if "levels" in cells:
        levels = cells["levels"].subgridspec(2, 1, hspace=0.16)
        energies = figure.add_subplot(levels[0], label="energies")
        draw_levels(energies, figure.add_subplot(levels[1], label="thresholds", sharex=energies), last)


def thumbnail(recording: Recording) -> bytes:
    """A small picture of the traces, as a png file. Raises ImportError without matplotlib."""
    gather = Gather(recording, None, DEFAULT)
    figure = _figure_class()(figsize=(6.4, 2.4), layout="constrained")
    draw_panel(figure.add_subplot(), gather, "before")
    return render(figure, "png", 80)


def as_html(picture: bytes) -> str:
    """A png file as an element of a page."""
    return f'<img alt="the traces" src="data:image/png;base64,{base64.b64encode(picture).decode()}">'


def _figure_class() -> type[Figure]:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError('figures need matplotlib: pip install "wavefilt[plot]"') from error

    class Picture(Figure):
        """A figure that notebooks show without pyplot."""

        def _repr_html_(self) -> str:
            return as_html(render(self, "png", 80))

    found: type[Figure] = Picture
    return found


def _draw_title(figure: Figure, gather: Gather, before: Recording, after: Recording | None) -> None:
    name = Path(before.source or (after or before).source).name or "recording"
    name = name if len(name) <= 60 else f"{name[:57]}..."
    last = after or before
    parts = [_describe(last.outcome)] if last.outcome else []
    if after:
        share = 100 * gather.share
        parts.append(f"removed {'< 0.0001' if 0 < share < 1e-4 else f'{share:.3g}'} % of the energy")
    parts += ["real part shown"] * gather.complex + [str(gather.gain)] * (gather.gain is not None)
    edge, y = 0.72 / WIDTH, 1 - 0.3 / figure.get_figheight()
    shared: dict[str, Any] = {"parse_math": False, "va": "center"}
    figure.text(edge, y, _printable(name), fontsize=LARGE + 1, fontweight="bold", **shared)
    figure.text(1 - 0.2 / WIDTH, y, SEPARATOR.join(parts), fontsize=LARGE - 0.5, ha="right", **shared)


def _describe(outcome: Outcome) -> str:
    """Wavelet, level, rule and threshold function in a line."""
    method = outcome.method
    if method.rule.name:
        rule = f"rule {method.rule.name}"
    else:
        rule = "threshold " + ", ".join(f"{value:.4g}" for value in method.rule.values[:6])
    return SEPARATOR.join([_printable(method.filters.name), f"level {outcome.level}", rule, method.shrink_word])


def _printable(text: str) -> str:
    """The text with a question mark for each character that the font lacks, which matplotlib would warn of."""
    from matplotlib.font_manager import FontProperties, findfont, get_font

    drawable = get_font(findfont(FontProperties(weight="bold"))).get_charmap()
    return "".join(c if ord(c) in drawable else "?" for c in text)
