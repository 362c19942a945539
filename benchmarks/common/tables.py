"""A table of a study: as text within a width, and as Markdown."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

SIZES = {"Mi": 1 << 20, "Ki": 1 << 10}


@dataclass(frozen=True)
class Sheet:
    """Cells under heads of two lines; the first column says what a row is about."""

    title: str
    heads: list[Sequence[str]]
    rows: list[list[str]]

    def text(self, width: int) -> str:
        """In as many pieces as it takes to stay within the width."""
        lines, columns = textwrap.wrap(self.title, width), list(zip(*self.rows, strict=True))
        sizes = [max(map(len, (*head, *column))) for head, column in zip(self.heads, columns, strict=True)]
        for piece in _pieces(sizes, width):
            for cells in (*zip(*self.heads, strict=True), *self.rows):
                lines.append("  ".join(f"{cells[i]:>{sizes[i]}}" for i in piece).rstrip())
            lines.append("")
        return "\n".join(lines)

    def markdown(self) -> str:
        lines = [" ".join(head).strip() for head in self.heads]
        rows = ["| " + " | ".join(cells) + " |" for cells in (lines, ["---"] * len(lines), *self.rows)]
        return "\n".join([f"**{self.title}**", "", *rows, ""])


def _pieces(sizes: list[int], width: int) -> Iterator[list[int]]:
    """Indices of the columns that fit side by side, the first one in every piece."""
    piece, used = [0], sizes[0]
    for i, size in enumerate(sizes[1:], 1):
        if used + 2 + size > width and len(piece) > 1:
            yield piece
            piece, used = [0], sizes[0]
        piece.append(i)
        used += 2 + size
    yield piece


def size(samples: int) -> str:
    """64 Ki, 1 Mi, or the number."""
    for unit, one in SIZES.items():
        if samples % one == 0:
            return f"{samples // one} {unit}"
    return str(samples)


def number(value: float, digits: int = 3) -> str:
    """So many digits at least, without an exponent."""
    return f"{value:.{max(0, digits - 1 - math.floor(math.log10(value)))}f}" if value > 0 else "0"


def quartiles(times: dict[str, float]) -> str:
    """A median, and the quartiles around it."""
    return f"{number(times['median'])} ({number(times['low'])}-{number(times['high'])})"
