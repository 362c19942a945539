"""How the columns of a text table are written: in the decimals, notation and alignment that they came in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wavefilt.io.cells import Cells, Column

_SIGNIFICANT = 7


@dataclass(frozen=True)
class Style:
    """How one column is written: separator, width, printf conversion, letter of the exponent."""

    lead: str
    width: int
    conversion: str
    letter: str

    def write(self, samples: NDArray[np.float64], mark: str) -> list[str]:
        """One field a sample, separator included."""
        form = f"{self.lead}%{self.width or ''}{self.conversion}"
        fields = [form % x for x in samples.tolist()]
        if self.letter in "dD":
            printed = "e" if self.letter == "d" else "E"
            fields = [field.replace(printed, self.letter) for field in fields]
        return [field.replace(".", ",") for field in fields] if mark == "," else fields


def style_of(cells: Cells, k: int, column: Column) -> Style:
    """How a column is written: notation of its finite cells, letter of the exponent, alignment."""
    finite = np.isfinite(column.values)
    digits, some = int(column.decimals.max()), bool(column.exponents.any())
    all_alike = finite.any() and np.all(column.exponents[finite] == some)
    letter = next(c for c in cells.text(int(column.exponents.argmax()), k) if c in "eEdD") if some else "e"
    conversion = f".{digits}{'e' if some else 'f'}"
    if not digits or not all_alike:
        whole = 0 if some else len(f"{np.abs(column.values).max(where=finite, initial=0):.0f}")
        known = int(column.decimals.max(where=column.exponents, initial=0)) + 1
        conversion = f".{min(max(_SIGNIFICANT, whole, known), 17)}g"
    lead, width = _alignment(cells, k)
    return Style(lead, width, conversion.upper() if letter.isupper() else conversion, letter)


def _alignment(cells: Cells, k: int) -> tuple[str, int]:
    """What precedes a cell, and the width it is right-justified to: 0 unless all fields have one width."""
    begins = cells.begins(k)
    gap = cells.codes[begins[0] : cells.starts[0, k]].tobytes().decode("ascii")
    widths = cells.ends[:, k] - begins
    if np.any(widths != widths[0]):
        return gap, 0
    lead = gap.rstrip(" ") or (" " if k else "")
    return lead, int(widths[0]) - len(lead)


def remark(styles: dict[int, Style]) -> tuple[str, ...]:
    general = [str(k + 1) for k, style in styles.items() if style.conversion[-1] in "gG"]
    if not general:
        return ()
    named = ", ".join(general[:8]) + (", ..." if len(general) > 8 else "")
    return (f"integer columns or mixed notation (column {named}): written with 7 significant digits or more",)


def write_rows(cells: Cells, styles: dict[int, Style], mark: str, chunk: slice, samples: NDArray[np.float64]) -> bytes:
    """A chunk of the rows as they are written, line ends included, with the samples of the columns in ``styles``."""
    traces = dict(zip(styles, samples, strict=True))
    following = np.append(cells.lines[1:], len(cells.codes))
    pieces = [
        _fields(cells, k, styles[k], mark, chunk.start, traces[k])
        if k in traces
        else _slices(cells, cells.begins(k)[chunk], cells.ends[chunk, k])
        for k in range(cells.starts.shape[1])
    ]
    pieces.append(_slices(cells, cells.ends[chunk, -1], following[chunk]))
    return "".join(map("".join, zip(*pieces, strict=True))).encode("ascii")


def _fields(cells: Cells, k: int, style: Style, mark: str, first: int, samples: NDArray[np.float64]) -> list[str]:
    """A trace's fields from row ``first`` on; cells that were and are no finite number stay as they were spelled."""
    fields = style.write(samples, mark)
    for row in np.flatnonzero(~np.isfinite(samples)).tolist():
        spelled = cells.text(first + row, k)
        if "n" in spelled.lower():
            fields[row] = style.lead + spelled.rjust(style.width)
    return fields


def _slices(cells: Cells, begins: NDArray[np.int64], ends: NDArray[np.int64]) -> list[str]:
    first = int(begins[0])
    text = cells.codes[first : int(ends[-1])].tobytes().decode("ascii")
    return [text[i:j] for i, j in zip((begins - first).tolist(), (ends - first).tolist(), strict=True)]
