"""Tables of the studies as data: a head and a format for each column."""

from __future__ import annotations

import math
import string
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Row = dict[str, Any]
"""An object in the JSON of a result."""
Times = Mapping[str, float]
"""Median and quartiles, by the names "median", "low" and "high"."""
Column = str | Callable[[Row], str]
SIZES = {"Mi": 1 << 20, "Ki": 1 << 10}


@dataclass(frozen=True)
class Sheet:
    """Cells under heads of one or two lines; the first column identifies the row."""

    title: str
    heads: Sequence[Sequence[str]]
    rows: Sequence[Sequence[str]]

    def text(self, width: int) -> str:
        """Return the table as text; columns beyond the width follow below, with the first column repeated."""
        heads = [("", *head)[-2:] for head in self.heads]
        lines, columns = textwrap.wrap(self.title, width), list(zip(*self.rows, strict=True))
        sizes = [max(map(len, (*head, *column))) for head, column in zip(heads, columns, strict=True)]
        for part in _parts(sizes, width):
            for cells in (*zip(*heads, strict=True), *self.rows):
                lines.append("  ".join(f"{cells[i]:>{sizes[i]}}" for i in part).rstrip())
            lines.append("")
        return "\n".join(lines)

    def markdown(self) -> str:
        lines = [" ".join(head).strip() for head in self.heads]
        rows = ["| " + " | ".join(cells) + " |" for cells in (lines, ["---"] * len(lines), *self.rows)]
        return "\n".join([f"**{self.title}**", "", *rows, ""])


def _parts(sizes: list[int], width: int) -> Iterator[list[int]]:
    """Yield the indices of columns that fit side by side, the first column in every part."""
    part, used = [0], sizes[0]
    for i, size in enumerate(sizes[1:], 1):
        if used + 2 + size > width and len(part) > 1:
            yield part
            part, used = [0], sizes[0]
        part.append(i)
        used += 2 + size
    yield part


def sheet(title: str, columns: Mapping[str, Column], rows: Iterable[Row]) -> Sheet:
    """Return a sheet with a line for each row of a result.

    ``columns`` are formats (see `filled`) by their heads, whose two lines are separated by "|"; text after "#" only
    distinguishes equal heads.
    """
    cells = [[filled(column, row) for column in columns.values()] for row in rows]
    return Sheet(title, [head.partition("#")[0].split("|") for head in columns], cells)


@dataclass(frozen=True)
class Report:
    """The text of a result: tables, then notes of a sentence each."""

    sheets: Sequence[Sheet]
    notes: Sequence[str] = ()

    def text(self, width: int = 120) -> str:
        """Return text for the terminal."""
        lines = (textwrap.fill(note, width, subsequent_indent="  ", break_on_hyphens=False) for note in self.notes)
        return "\n".join([*(sheet.text(width) for sheet in self.sheets), *lines])

    def markdown(self) -> str:
        """Return Markdown for the documentation."""
        return "\n".join([*(sheet.markdown() for sheet in self.sheets), *(f"* {note}" for note in self.notes)])


def size(samples: int) -> str:
    """Return 64 Ki, 1 Mi, or the plain number."""
    for unit, one in SIZES.items():
        if samples % one == 0:
            return f"{samples // one} {unit}"
    return str(samples)


def number(value: float) -> str:
    """Return a number with at least three digits, without an exponent."""
    return f"{value:.{max(0, 2 - math.floor(math.log10(value)))}f}" if value > 0 else "0"


def quartiles(times: Times) -> str:
    """Return a median, and the quartiles in brackets."""
    median, low, high = (number(times[name]) for name in ("median", "low", "high"))
    return f"{median} ({low}-{high})"


def spread(times: Times) -> float:
    """Return half the distance of the quartiles, relative to the median."""
    return (times["high"] - times["low"]) / 2 / times["median"] if times["median"] else 0.0


FORMATS: dict[str, Callable[[Any], str]] = {
    "n": number,
    "size": size,
    "us": lambda milliseconds: number(1e3 * milliseconds),
    "thousands": lambda count: number(1e-3 * count),
    "quartiles": quartiles,
    "spread": lambda times: f"{number(times['median'])} ±{spread(times):.0%}",
}
"""Format specifications for columns in addition to Python's: ``{samples:size}``."""


class _Formatter(string.Formatter):
    def format_field(self, value: Any, form: str) -> str:
        if value is None:
            raise KeyError("no value")
        return FORMATS[form](value) if form in FORMATS else str(super().format_field(value, form))


def filled(column: Column, row: Row) -> str:
    """Return the column's cell in a row. A format that begins with "?" gives "-" if the row lacks the value."""
    if not isinstance(column, str):
        return column(row)
    try:
        return _Formatter().vformat(column.removeprefix("?"), (), row)
    except (KeyError, TypeError):
        if column.startswith("?"):
            return "-"
        raise
