"""The page of `wavefilt bench report`: one HTML file with its style and scripts, which asks nothing of a network."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from wavefilt import __version__
from wavefilt.benchmarks.common.tables import SIZES, Sheet

from .drawing import embedded
from .sections import Section

NUMBER = re.compile(r"(?:>= )?([+-]?\d+(?:\.\d+)?(?:e[+-]?\d+)?) ?(Ki|Mi|%|dB|)(?: ±.*| ?[(\[].*)?")
"""A cell that sorts as a number: 64 Ki, 2.74 ±2%, +25%, 0.41 [0.40, 0.42], 1.4 (1.3-1.5), >= 20."""
GAPS = ("", "-", "flat")
"""What stands in columns of numbers where there is none."""


def page(sections: Sequence[Section]) -> str:
    """The whole file; the template escapes all that comes from the sections. Raises what `embedded` does."""
    from bokeh.resources import Resources
    from jinja2 import Environment, FileSystemLoader

    here = Path(__file__).parent
    template = Environment(loader=FileSystemLoader(here), autoescape=True, trim_blocks=True, lstrip_blocks=True)
    script, plots = embedded(sections)
    dates = sorted({section.date for section in sections if section.date})
    machines = " and ".join(dict.fromkeys(f"on {section.where}" for section in sections if section.where))
    text: str = template.get_template("page.html").render(
        sections=sections,
        plots=plots,
        figures=[(section, figure) for section in sections for figure in section.figures],
        lead=" ".join(filter(None, (" to ".join(dict.fromkeys([*dates[:1], *dates[-1:]])), machines))),
        numeric=_numeric,
        value=_value,
        style=(here / "report.css").read_text("utf-8"),
        sort=(here / "sort.js").read_text("utf-8"),
        library="\n".join(Resources("inline", components=["bokeh"]).js_raw),
        script=script,
        version=__version__,
    )
    return text


def _numeric(sheet: Sheet) -> list[bool]:
    """Which columns hold numbers."""
    columns = zip(*sheet.rows, strict=True) if sheet.rows else ["x"] * len(sheet.heads)
    return [all(_value(cell) is not None or cell in GAPS for cell in column) for column in columns]


def _value(cell: str) -> float | None:
    found = NUMBER.fullmatch(cell)
    return float(found[1]) * SIZES.get(found[2], 1) if found else None
