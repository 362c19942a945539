"""One figure that shows what denoising did: before, after, what was removed, and by which thresholds.

matplotlib (extra ``plot``) is imported when a figure is drawn, never with this module; no global state is used.
"""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from .appearance import LARGE
from .gather import draw_gather, draw_line, draw_lines, draw_rows
from .levels import draw_levels
from .spectra import RANGE_DB, draw_spectra, draw_spectrograms
from .traces import BINS, PANELS, Gather

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from wavefilt.denoising.pipeline import Outcome
    from wavefilt.recording import Recording

__all__ = ["BINS", "FILE_TYPES", "PANELS", "RANGE_DB", "check_target", "draw", "file_type", "plot_denoising", "render"]

FILE_TYPES = ("png", "pdf", "svg")
SEPARATOR = "   ·   "


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
        Ends in .png, .pdf or .svg. The file is complete or unchanged, never partial.
    overwrite : bool
        Replace ``path`` if it exists; otherwise that is a FileExistsError.
    dpi : float
        Dots per inch, of png files and of images in the others. The figure is 13 by 9.2 inches.

    Raises
    ------
    ValueError
        For an unknown extension, or recordings that are empty or not of the same shape.
    ImportError
        If matplotlib is not installed.
    FileExistsError, OSError
        If the file is there already or cannot be written.
    """
    from wavefilt.io.atomic import check_destination, write_atomically

    kind = file_type(path)
    check_destination(Path(path), overwrite=overwrite)  # before the work, not after
    write_atomically(Path(path), render(draw(before, after), kind, dpi), overwrite=overwrite)


def render(figure: Figure, kind: str, dpi: float) -> bytes:
    """The figure as a file of this type, without a date, so that the same data give the same file."""
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


def draw(before: Recording, after: Recording) -> Figure:
    """The figure of `plot_denoising`, not yet written; `Axes.get_label` names its panels."""
    figure_class = _figure_class()
    gather = Gather(before, after)
    figure = figure_class(figsize=(13, 9.2), facecolor="white")
    single = len(gather) == 1
    top = 0.935 if single else 0.91
    # times of the day and ids need more room than seconds and numbers
    left, space = 0.055 if gather.day is None else 0.08, 0.24 if len(gather.names) < 5 else 0.32
    grid = figure.add_gridspec(
        2, 1, height_ratios=(1.6, 1), hspace=space, left=left, right=0.985, top=top, bottom=0.055
    )
    (draw_lines if single else draw_gather)(figure, grid[0], gather)
    lower = grid[1].subgridspec(1, 3, width_ratios=(2.35, 1.0, 1.0), wspace=0.28)
    draw_spectrograms(figure, lower[0], gather)
    draw_spectra(figure.add_subplot(lower[1], label="spectra"), gather)
    levels = lower[2].subgridspec(2, 1, hspace=0.16)
    energies = figure.add_subplot(levels[0], label="energies")
    draw_levels(energies, figure.add_subplot(levels[1], label="thresholds", sharex=energies), after)
    _draw_title(figure, gather, before, after)
    return figure


def thumbnail(recording: Recording) -> bytes:
    """A small picture of the traces, as a png file. Raises ImportError without matplotlib."""
    gather = Gather(recording, recording)
    figure = _figure_class()(figsize=(6.4, 2.4), layout="constrained")
    axes = figure.add_subplot()
    (draw_line if len(gather) == 1 else draw_rows)(axes, gather, "before")
    return render(figure, "png", 80)


def _figure_class() -> type[Figure]:
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise ImportError('figures need matplotlib: pip install "wavefilt[plot]"') from error
    found: type[Figure] = Figure  # unknown to mypy where matplotlib is missing
    return found


def _draw_title(figure: Figure, gather: Gather, before: Recording, after: Recording) -> None:
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
    return SEPARATOR.join([_printable(method.bank.name), f"level {outcome.level}", rule, method.shrink_word])


def _printable(text: str) -> str:
    """The text with a question mark for each character that the font lacks, which matplotlib would warn of."""
    from matplotlib.font_manager import FontProperties, findfont, get_font

    drawable = get_font(findfont(FontProperties(weight="bold"))).get_charmap()
    return "".join(c if ord(c) in drawable else "?" for c in text)
