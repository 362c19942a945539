"""Sphinx extension: a page for every file in benchmarks/results, with its plots, tables and machine."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import Path

from sphinx.application import Sphinx
from sphinx.config import Config

from wavefilt.benchmarks.report import sections
from wavefilt.benchmarks.report.drawing import swatch
from wavefilt.benchmarks.report.figures import Plot
from wavefilt.benchmarks.report.sections import Section

INDEX = """# Benchmarks

Generated from `benchmarks/results/` when the documentation is built. `wavefilt bench report` writes
[one HTML page](../../report.md) with the same content, or with your own measurements.

| study | measured on | date |
|---|---|---|
{rows}

```{{toctree}}
:hidden:

{names}
```
"""


def _name(section: Section) -> str:
    return Path(section.source).stem


def _machine(section: Section) -> str:
    return next(iter(section.machine.values()), "").split(",")[0]


def _plot(plot: Plot, prefix: str) -> Iterator[str]:
    """The plots and their legend, styled as in the report."""
    yield f"## {plot.title}\n"
    yield f"{plot.note}\n" if plot.note else ""
    yield '```{raw} html\n<div class="study"><div class="panels">'
    for caption, svg in plot.figures(prefix):
        yield f"<figure><figcaption>{escape(caption)}</figcaption>{svg}</figure>"
    legend = [f"<li>{swatch(line.look)}{escape(line.label)}</li>" for line in plot.legend]
    yield f'</div><ul class="legend">{"".join(legend)}</ul></div>\n```\n'


def _page(section: Section) -> str:
    about = ", ".join(filter(None, (_machine(section), section.date)))
    parts = [f"# {section.title}\n", f"{about}. From `benchmarks/results/{section.source}`.\n"]
    for i, plot in enumerate(section.plots):
        parts += _plot(plot, str(i))
    parts.append(section.report.markdown())
    parts += ["\n## Machine\n", "| | |\n|---|---|"]
    parts += [f"| {what} | {value} |" for what, value in section.machine.items()]
    return "\n".join(parts) + "\n"


def write(app: Sphinx, _: Config) -> None:
    """Write the pages and their style sheet: that of the report, restricted to ``.study``."""
    folder = Path(app.srcdir) / "generated" / "benchmarks"
    folder.mkdir(parents=True, exist_ok=True)
    found = sections.sections(sorted(sections.RESULTS.glob("*.json")))
    pages = {_name(section): _page(section) for section in found}
    rows = [f"| [{s.title}]({_name(s)}.md) | {_machine(s)} | {s.date} |" for s in found]
    pages["index"] = INDEX.format(rows="\n".join(rows), names="\n".join(_name(section) for section in found))
    for old in folder.glob("*.md"):
        if old.stem not in pages:
            old.unlink()
    for name, text in pages.items():
        path = folder / f"{name}.md"
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")
    style = Path(sections.__file__).with_name("report.css").read_text("utf-8").replace(":root", "&")
    (folder / "study.css").write_text(f".study {{\n{style}}}\n", "utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("config-inited", write)  # before Sphinx looks for the style
    return {"parallel_read_safe": True}
