"""The page of `wavefilt bench report`: one HTML file with its style and Bokeh's scripts, which needs no network."""

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
LAST = 40_000
"""The place of gaps in either direction: `report.css` counts on it, and on no more than a quarter as many rows."""


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
        columns=max((len(sheet.heads) for section in sections for sheet in section.report.sheets), default=0),
        numeric=_numeric,
        places=_places,
        zip=zip,
        style=(here / "report.css").read_text("utf-8"),
        library="\n".join(Resources("inline", components=["bokeh"]).js_raw),
        script=script,
        version=__version__,
    )
    return text


def _numeric(sheet: Sheet) -> list[bool]:
    """Which columns hold numbers."""
    columns = zip(*sheet.rows, strict=True) if sheet.rows else ["x"] * len(sheet.heads)
    return [all(_value(cell) is not None or cell in GAPS for cell in column) for column in columns]


def _places(sheet: Sheet) -> list[tuple[int, ...]]:
    """Where every cell comes when its column is sorted, row by row: numbers by their value, gaps among them last."""
    found = []
    for column, numbers in zip(zip(*sheet.rows, strict=True), _numeric(sheet), strict=True):
        keys = [_value(cell) if numbers else _natural(cell) for cell in column]
        order = {key: place for place, key in enumerate(sorted({key for key in keys if key is not None}))}
        found.append([LAST if key is None else order[key] for key in keys])
    return list(zip(*found, strict=True))


def _natural(cell: str) -> tuple[str | int, ...]:
    """As words sort, numbers in them by their value."""
    return tuple(int(part) if i % 2 else part for i, part in enumerate(re.split(r"(\d+)", cell.casefold())))


def _value(cell: str) -> float | None:
    found = NUMBER.fullmatch(cell)
    return float(found[1]) * SIZES.get(found[2], 1) if found else None
