"""The page of `wavefilt bench report`: one HTML file that holds its style and script and asks nothing of a network."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from pathlib import Path
from string import Template

from wavefilt import __version__
from wavefilt.benchmarks.common.tables import SIZES, Sheet

from .drawing import swatch
from .figures import Plot
from .sections import DAMAGED, NotAStudy, Section

NUMBER = re.compile(r"(?:>= )?([+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?) ?(Ki|Mi|%|dB|)(?: ±.*| ?[(\[].*)?")
"""A cell that sorts as a number: 64 Ki, 2.74 ±2%, +25%, 0.41 [0.40, 0.42], 1.4 (1.3-1.5), >= 20."""
GAPS = ("", "-", "flat")
"""What stands in columns of numbers where there is none."""


def page(sections: Sequence[Section]) -> str:
    """The whole file. All that comes from the sections is escaped. Raises NotAStudy if one cannot be drawn."""
    here = Path(__file__)
    names = [f"study-{i}" for i in range(1, len(sections) + 1)]
    dates = sorted({section.date for section in sections if section.date})
    machines = dict.fromkeys(_machine(section) for section in sections if section.machine)
    titles = [section.title for section in sections]
    contents = []
    for name, section in zip(names, sections, strict=True):
        source = f" ({escape(section.source)})" if titles.count(section.title) > 1 else ""
        contents.append(f'<li><a href="#{name}">{escape(section.title)}</a>{source}</li>')
    parts = {kind: here.with_name(f"report.{kind}").read_text("utf-8") for kind in ("html", "css", "js")}
    return Template(parts["html"]).substitute(
        style=parts["css"],
        script=parts["js"],
        lead=escape("; ".join([*machines, " to ".join(dict.fromkeys([*dates[:1], *dates[-1:]]))]).removesuffix("; ")),
        contents="\n".join(contents),
        version=escape(__version__),
        sections="\n".join(map(_section, names, sections)),
    )


def _machine(section: Section) -> str:
    """The GPU or processor, without its particulars."""
    return next(iter(section.machine.values())).split(",")[0]


def _section(name: str, section: Section) -> str:
    about = " · ".join(filter(None, (section.date, _machine(section) if section.machine else "", section.source)))
    facts = [f"<dt>{escape(what)}</dt><dd>{escape(value)}</dd>" for what, value in section.machine.items()]
    parts = [f'<section id="{name}" aria-labelledby="{name}-title">']
    parts += [f'<h2 id="{name}-title">{escape(section.title)}</h2>', f'<p class="about">{escape(about)}</p>']
    try:
        plots = [_plot(plot, f"{name}-{i}") for i, plot in enumerate(section.plots)]
        parts += [*plots, *map(_table, section.report.sheets)]
    except DAMAGED as error:
        raise NotAStudy(f"{section.source}: a damaged result of a study: {error!r}") from error
    if section.report.notes:
        parts += ['<ul class="notes">', *(f"<li>{escape(note)}</li>" for note in section.report.notes), "</ul>"]
    if facts:
        parts += ["<details><summary>Where it was measured</summary>", "<dl>", *facts, "</dl>", "</details>"]
    return "\n".join([*parts, "</section>"])


def _plot(plot: Plot, prefix: str) -> str:
    parts = ['<div class="plot">', f"<h3>{escape(plot.title)}</h3>"]
    parts += [f'<p class="about">{escape(plot.note)}</p>'] if plot.note else []
    parts.append('<div class="panels">')
    for caption, svg in plot.figures(prefix):
        parts += ["<figure>", f"<figcaption>{escape(caption)}</figcaption>" if caption else "", svg, "</figure>"]
    legend = [
        f'<li data-line="{escape(line.label)}">{swatch(line.look)}{escape(line.label)}</li>' for line in plot.legend
    ]
    return "\n".join([*parts, "</div>", *(['<ul class="legend">', *legend, "</ul>"] if legend else []), "</div>"])


def _table(sheet: Sheet) -> str:
    columns = zip(*sheet.rows, strict=True) if sheet.rows else ["x"] * len(sheet.heads)
    numeric = [all(_value(cell) is not None or cell in GAPS for cell in column) for column in columns]
    title = escape(sheet.title)
    parts = [f"<h3>{title}</h3>", f'<div class="wide" role="region" aria-label="{title}" tabindex="0">', "<table>"]
    heads = ("<br>".join(escape(line) for line in head if line) for head in sheet.heads)
    parts += ["<thead>", "<tr>", *_cells("th", "col", heads, numeric), "</tr>", "</thead>", "<tbody>"]
    for first, *cells in sheet.rows:
        parts += ["<tr>", *_cells("th", "row", [escape(first)], numeric[:1], [first])]
        parts += [*_cells("td", "", map(escape, cells), numeric[1:], cells), "</tr>"]
    return "\n".join([*parts, "</tbody>", "</table>", "</div>"])


def _cells(
    tag: str, scope: str, inner: Iterable[str], numeric: Sequence[bool], cells: Sequence[str] = ()
) -> Iterator[str]:
    """``inner`` is HTML; ``cells`` the texts by which they are sorted, if they are."""
    for i, (html, numbers) in enumerate(zip(inner, numeric, strict=True)):
        value = _value(cells[i]) if cells and numbers else None
        attributes = [f'scope="{scope}"' if scope else "", "" if numbers else 'class="words"']
        attributes += [] if value is None else [f'data-value="{value:.15g}"']
        yield f"<{' '.join(filter(None, (tag, *attributes)))}>{html}</{tag}>"


def _value(cell: str) -> float | None:
    found = NUMBER.fullmatch(cell)
    return float(found[1]) * SIZES.get(found[2], 1) if found else None
