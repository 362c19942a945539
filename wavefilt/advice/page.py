"""The trust report as one HTML file, and the page that lists many."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from html import escape
from typing import TYPE_CHECKING

import numpy as np

from wavefilt._version import __version__
from wavefilt.report import Facts

from .harm import WORST
from .trust import WORDS, Finding

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from .trust import TrustReport

SIGNAL, HARM = "#E69F00", "#D55E00"
COLOURS: dict[Finding, tuple[str, str]] = {
    "harmful": (HARM, "#000000"),
    "undecided": ("#F0E442", "#000000"),
    "harmless": ("#0072B2", "#ffffff"),
    "signal": (SIGNAL, "#000000"),
    "none": ("#0072B2", "#ffffff"),
    "untested": ("#666666", "#ffffff"),
}
"""Background and text colours from the palette of Okabe and Ito, which colour-blind readers can distinguish."""
STYLE = """
:root { color-scheme: light; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 72rem; padding: 1rem; font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a;
  background: #fff; overflow-wrap: break-word; }
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
.test, footer { color: #555; font-size: .85rem; }
table { border-collapse: collapse; width: 100%; }
th, td { text-align: left; padding: .35rem .6rem .35rem 0; border-bottom: 1px solid #d9dee3; vertical-align: top; }
td.number { text-align: right; font-variant-numeric: tabular-nums; white-space: nowrap; }
th.number { text-align: right; }
@media (max-width: 40rem) {
  tr { display: block; padding: .5rem 0; border-bottom: 1px solid #d9dee3; }
  tr:first-child { display: none; }
  td { display: block; border: 0; padding: .1rem 0; }
  td.number { text-align: left; }
  td.number::before { content: attr(data-name) ": "; color: #555; }
}
"""
HEADS = ("gain, dB (estimate)", "windows with signal", "windows made worse", "shift of first breaks, samples")
"""Columns of numbers on the page for several files."""
COLUMNS, IMAGE = 240, 8
"""Most traces of an image; and fewest traces: of fewer, the trace whose error grew most is drawn."""


def badge(verdict: Finding, word: str = "", more: str = "") -> str:
    """Return the verdict in words on its colour."""
    ground, ink = COLOURS[verdict]
    return f'<span class="badge{more}" style="background:{ground};color:{ink}">{word or WORDS[verdict]}</span>'


def page(report: TrustReport) -> str:
    """Return the report as one page without references to other files. Raises ImportError without matplotlib."""
    size = f"{len(report.noisy)} trace{'s' * (len(report.noisy) != 1)} x {report.noisy.shape[1]} samples"
    parts = [f"<h1>Can this result be trusted?</h1><p>{escape(report.name or 'Recording')}, {size}</p>"]
    parts.append(f"<p>{badge(report.verdict, more=' large')} {escape(report.summary().partition('; ')[2])}</p>")
    parts += [f"<p>{escape(text)}</p>" for text in report.statements]
    traces, growth = _traces(report), _growth(report) if np.isfinite(report.effect.change).any() else ""
    parts.append(f"{traces}<main>")
    for answer in report.answers:
        parts.append(
            f"<section><h2>{escape(answer.question)}</h2><p>{badge(answer.verdict, answer.word)}</p>"
            f"<p>{escape(answer.found)}</p>{growth if answer.name == 'error' else ''}"
            f'<p class="test">{escape(answer.test)}</p></section>'
        )
    rows = (f"<tr><th>{escape(name)}</th><td>{escape(told)}</td></tr>" for name, told in report.origin().items())
    parts.append(f"</main><h2>What was tested</h2><table>{''.join(rows)}</table>")
    return _document(f"Trust report: {report.name or 'recording'}", "".join(parts))


def _traces(report: TrustReport) -> str:
    """Return a picture of the traces before and after, the residual, and their spectra."""
    from wavefilt.plotting.data import PlotOptions
    from wavefilt.plotting.figure import draw
    from wavefilt.recording import Recording

    intervals = (report.interval,) * len(report.noisy)
    before, after = (
        Recording(rows, intervals, "npy", None, report.name, delays=(report.delay,) * len(rows))
        for rows in (report.noisy, report.denoised)
    )
    options = PlotOptions(panels="before,after,residual,spectra")
    return _image(draw(before, after, options), "The traces before and after, the residual, and their spectra")


def _growth(report: TrustReport) -> str:
    """Return a picture of the growth of the error and of signal in the residual, by window."""
    from matplotlib.figure import Figure

    from wavefilt.plotting.data import COLORS
    from wavefilt.plotting.figure import style

    effect = report.effect
    change, marked = effect.change, effect.significant
    zero = " from the trigger" if report.delay else ""
    label = "time (samples)" if report.interval is None else f"time{zero} (s)"
    figure = Figure(figsize=(5.2, 3.4), layout="constrained")  # readable at the width of a phone
    axes = figure.subplots()
    if len(change) < IMAGE:
        worst = int(np.nan_to_num(change, nan=-np.inf).max(axis=1).argmax())
        change, marked = change[worst], marked[worst]
        times = report.times((np.arange(change.size) + 1) * effect.cell)
        axes.axhline(WORST, color=HARM, linewidth=1, linestyle="--", label=f"harmful above {WORST:g}")
        axes.plot(times, change, color=COLORS["after"], drawstyle="steps-mid", linewidth=1.2)
        axes.plot(times[marked], change[marked], "o", color=SIGNAL, markersize=4, label="signal in the residual")
        axes.set(xlabel=f"{label}, trace {report.traces[worst]}", ylabel="growth of the error (noise energy = 1)")
        axes.set_yscale("symlog", linthresh=2)
        axes.legend(fontsize=8, frameon=False)
    else:
        columns = np.linspace(0, len(change) - 1, min(COLUMNS, len(change))).astype(int)
        start, stop = report.times([0, report.noisy.shape[1]]).tolist()
        extent = (-0.5, len(change) - 0.5, stop, start)
        drawn = axes.imshow(change[columns].T, cmap="PuOr_r", vmin=-2, vmax=2, aspect="auto", extent=extent)
        bar = figure.colorbar(drawn, ax=axes, extend="both", shrink=0.9)
        bar.set_label("growth of the error (noise energy = 1)", fontsize=8)
        trace, window = np.nonzero(marked)
        axes.plot(trace, report.times((window + 1) * effect.cell), ".", color="black", markersize=2)
        axes.set(xlabel="trace; purple: better, orange: worse, dots: signal in the residual", ylabel=label)
    style(axes, grid=len(effect.change) < IMAGE)
    return _image(figure, "Growth of the error and signal in the residual by window")


def _image(figure: Figure, description: str) -> str:
    from wavefilt.plotting.figure import render

    data = base64.b64encode(render(figure, "png", 130)).decode()
    return f'<img alt="{description}" src="data:image/png;base64,{data}">'


def overview(found: Sequence[tuple[str, Facts]]) -> str:
    """Return a page with a line for each file from its `TrustReport.facts`, the worst first."""
    order = list(WORDS)
    rows = []
    for name, facts in sorted(found, key=lambda one: (order.index(one[1]["verdict"]), one[0])):
        gain = "" if facts["gain_db"] is None else f"{facts['gain_db']:+.1f}"
        shift = "" if facts["first_break_shift"] is None else f"{facts['first_break_shift']:+g}"
        numbers = (gain, f"{facts['windows_with_signal']} of {facts['windows']}", facts["windows_harmed"], shift)
        cells = "".join(
            f'<td class="number" data-name="{head}">{value}</td>' for head, value in zip(HEADS, numbers, strict=True)
        )
        rows.append(f"<tr><td>{badge(facts['verdict'])}</td><td>{escape(name)}</td>{cells}</tr>")
    head = "<th>verdict</th><th>file</th>" + "".join(f'<th class="number">{name}</th>' for name in HEADS)
    counts = {verdict: sum(facts["verdict"] == verdict for _, facts in found) for verdict in WORDS}
    told = " ".join(f"{badge(verdict)} {count}" for verdict, count in counts.items() if count)
    table = f"<table><tr>{head}</tr>{''.join(rows)}</table>"
    more = '<p class="test">A report with figures: wavefilt denoise FILE --report out.html, one file at a time.</p>'
    return _document("Trust report", f"<h1>Can these results be trusted?</h1><p>{told}</p>{table}{more}")


def _document(title: str, body: str) -> str:
    return (
        f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}</style></head>'
        f"<body>{body}<footer><p>wavefilt {__version__}. Numbers are estimates: docs/trust.md describes the tests and "
        f"how often they are right.</p></footer></body></html>\n"
    )
