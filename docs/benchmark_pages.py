"""Sphinx extension: a page for every file in benchmarks/results, with its plots, tables and machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path

from bokeh.resources import Resources
from sphinx.application import Sphinx
from sphinx.config import Config

from wavefilt.benchmarks.report import sections
from wavefilt.benchmarks.report.drawing import Embedded, embedded
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


def _plots(script: str, plots: Sequence[Embedded]) -> Iterator[str]:
    """Styled as in the report."""
    if plots:
        library = '<script src="../../_static/bokeh.min.js"></script>'
        yield f"```{{raw}} html\n{library}{script}\n```\n"
    for drawn in plots:
        yield f"## {drawn.plot.title}\n"
        yield '```{raw} html\n<div class="study"><div class="panels">'
        for title, figure in drawn.panels:
            yield f"<figure><figcaption>{escape(title)}</figcaption>{figure}</figure>"
        entries = len(drawn.plot.legend)
        yield f'</div><div class="legend" style="--entries: {entries}">{drawn.legend}</div></div>\n```\n'


def _page(section: Section) -> str:
    about = ", ".join(filter(None, (section.where, section.date)))
    parts = [f"# {section.title}\n", f"{about}. From `benchmarks/results/{section.source}`.\n"]
    script, (plots,) = embedded([section])
    parts += _plots(script, plots)
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
    rows = [f"| [{s.title}]({_name(s)}.md) | {s.where} | {s.date} |" for s in found]
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
    (folder / "bokeh.min.js").write_text(Resources("inline", components=["bokeh"]).js_raw[0], "utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    app.connect("config-inited", write)  # before Sphinx looks for the style
    return {"parallel_read_safe": True}
