"""The trust report as one HTML file."""

from __future__ import annotations

import re
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from wavefilt._version import __version__

from .trust import Finding

if TYPE_CHECKING:
    from .trust import TrustReport

COLOURS: dict[Finding, tuple[str, str]] = {
    "harmful": ("#D55E00", "#000000"),
    "undecided": ("#F0E442", "#000000"),
    "harmless": ("#0072B2", "#ffffff"),
    "signal": ("#E69F00", "#000000"),
    "none": ("#0072B2", "#ffffff"),
    "untested": ("#666666", "#ffffff"),
}
"""Background and text colours from the palette of Okabe and Ito, which colour-blind readers can distinguish."""
STYLE = """
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 72rem; padding: 1rem; font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a;
  background: #fff; overflow-wrap: anywhere; }
h1 { font-size: 1.4rem; margin: .2rem 0 .4rem; }
h2 { font-size: 1.05rem; margin: 0 0 .5rem; line-height: 1.3; }
p { margin: .4rem 0; }
.badge { display: inline-block; padding: .05rem .6rem; border-radius: 1rem; font-weight: 600; font-size: .9rem;
  white-space: nowrap; }
.large { font-size: 1.1rem; }
main + h2 { margin-top: 1.5rem; }
main { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 28rem), 1fr)); gap: 1rem;
  margin-top: 1rem; align-items: start; }
section { border: 1px solid #d9dee3; border-radius: .5rem; padding: 1rem; min-width: 0; }
img { display: block; width: 100%; height: auto; margin: .6rem 0; }
footer { color: #555; font-size: .85rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .35rem .6rem .35rem 0; border-bottom: 1px solid #d9dee3; vertical-align: top; }
"""


def badge(verdict: Finding, word: str = "", more: str = "") -> str:
    """Return the verdict in words on its colour."""
    ground, ink = COLOURS[verdict]
    return f'<span class="badge{more}" style="background:{ground};color:{ink}">{word or verdict}</span>'


def marked(text: str) -> str:
    """Return a text as HTML, with code between backticks."""
    return re.sub("`(.*?)`", r"<code>\1</code>", escape(text))


def page(report: TrustReport) -> str:
    """Return the report as one page without references to other files. Raises ImportError without matplotlib."""
    size = f"{len(report.noisy)} trace{'s' * (len(report.noisy) != 1)} x {report.noisy.shape[1]} samples"
    title = f"{escape(report.name or 'Recording')}"
    parts = [f"<h1>Can this result be trusted?</h1><p>{title}, {size}</p>"]
    parts.append(f"<p>{badge(report.verdict, more=' large')} {escape(report.summary().partition('; ')[2])}</p>")
    parts += [f"<p>{marked(text)}</p>" for text in report.statements]
    parts.append(f"{_traces(report)}<main>")
    growth = _growth(report) if np.isfinite(report.effect.change).any() else ""
    for answer in report.answers:
        parts.append(
            f"<section><h2>{escape(answer.question.text)}</h2><p>{badge(answer.verdict, answer.word)}</p>"
            f"<p>{escape(answer.found)}</p>{growth if answer.question.name == 'error' else ''}</section>"
        )
    rows = (f"<tr><th>{escape(name)}</th><td>{escape(told)}</td></tr>" for name, told in report.origin().items())
    parts.append(f"</main><h2>What was tested</h2><table>{''.join(rows)}</table>")
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Trust report: {title}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}</style></head>'
        f"<body>{''.join(parts)}<footer><p>wavefilt {__version__}. Numbers are estimates: docs/trust.md describes the "
        f"tests and how often they are right.</p></footer></body></html>\n"
    )


def _traces(report: TrustReport) -> str:
    """Return a picture of the traces before and after, the residual, and their spectra."""
    from wavefilt.plotting.data import PlotOptions
    from wavefilt.plotting.figure import as_html, draw
    from wavefilt.recording import Recording

    intervals = (report.interval,) * len(report.noisy)
    before, after = (
        Recording(rows, intervals, "npy", None, report.name, delays=(report.delay,) * len(rows) * bool(report.delay))
        for rows in (report.noisy, report.denoised)
    )
    options = PlotOptions(panels="before,after,residual,spectra")
    return as_html(draw(before, after, options), 130, "The traces before and after, the residual, and their spectra")


def _growth(report: TrustReport) -> str:
    """Return a picture of the growth of the error and of signal in the residual, by window."""
    from matplotlib.figure import Figure
    from matplotlib.ticker import MaxNLocator

    from wavefilt.plotting.figure import as_html, style

    effect = report.effect
    start, stop = report.times(np.array([0.5, effect.change.shape[1] + 0.5]) * effect.cell).tolist()
    figure = Figure(figsize=(5.2, 3.4), layout="constrained")  # readable at the width of a phone
    axes = figure.subplots()
    extent = (-0.5, len(effect.change) - 0.5, stop, start)
    drawn = axes.imshow(effect.change.T, cmap="PuOr_r", vmin=-2, vmax=2, aspect="auto", extent=extent)
    bar = figure.colorbar(drawn, ax=axes, extend="both", shrink=0.9)
    bar.set_label("growth of the error (noise energy = 1)", fontsize=8)
    trace, window = np.nonzero(effect.significant)
    axes.plot(trace, report.times((window + 1) * effect.cell), ".", color="black", markersize=2)
    zero = " from the trigger" if report.delay else ""
    label = "time (samples)" if report.interval is None else f"time{zero} (s)"
    axes.set(xlabel="trace; purple: better, orange: worse, dots: signal in the residual", ylabel=label)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    style(axes, grid=False)
    return as_html(figure, 130, "Growth of the error and signal in the residual by window")
