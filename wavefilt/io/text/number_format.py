"""How the numbers in each column of a text table are formatted, and writing others in the same format."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wavefilt.arrays import Counts, Floats
from wavefilt.io.text.cells import Cells, digits_of

_SIGNIFICANT = 7


@dataclass(frozen=True)
class ColumnFormat:
    """How one column is written: separator, width, printf conversion, letter of the exponent."""

    lead: str
    width: int
    conversion: str
    letter: str

    def write(self, samples: Floats, mark: str) -> list[str]:
        """One field per sample, separator included."""
        form = f"{self.lead}%{self.width or ''}{self.conversion}"
        fields = [form % x for x in samples.tolist()]
        if self.letter in "dD":
            printed = "e" if self.letter == "d" else "E"
            fields = [field.replace(printed, self.letter) for field in fields]
        return [field.replace(".", ",") for field in fields] if mark == "," else fields


class TableFormat:
    """The format of every column, gathered from the table block by block."""

    def __init__(self, cells: Cells) -> None:
        """``cells`` are those of the first block."""
        columns = cells.starts.shape[1]
        self._row = cells.codes[: cells.ends[0, -1]].tobytes().decode("ascii")
        self._starts, self._ends = cells.starts[0].copy(), cells.ends[0].copy()
        self._widths = _widths(cells)[0]
        self._one_width = np.ones(columns, np.bool_)
        self._letters = ["e"] * columns
        self._decimals, self._exponent_decimals = np.zeros((2, columns), np.int64)
        self._exponents, self._finite_with, self._finite_without = np.zeros((3, columns), np.bool_)
        self._largest = np.zeros(columns)
        self._significant = 0.0

    def add(self, cells: Cells, values: Floats, mark: str) -> None:
        """Take in the next block, and its numbers (rows, columns)."""
        decimals, exponents = digits_of(cells, mark)
        with_exponent, finite = exponents.any(axis=0), np.isfinite(values)
        for k in np.flatnonzero(with_exponent & ~self._exponents).tolist():
            self._letters[k] = next(c for c in cells.text(int(exponents[:, k].argmax()), k) if c in "eEdD")
        self._exponents |= with_exponent
        self._finite_with |= (finite & exponents).any(axis=0)
        self._finite_without |= (finite & ~exponents).any(axis=0)
        self._decimals = np.maximum(self._decimals, decimals.max(axis=0))
        self._exponent_decimals = np.maximum(self._exponent_decimals, decimals.max(axis=0, where=exponents, initial=0))
        self._largest = np.maximum(self._largest, np.abs(values).max(axis=0, where=finite, initial=0))
        self._one_width &= (_widths(cells) == self._widths).all(axis=0)
        magnitude = _magnitude(np.abs(values[:, 0]))
        shown = decimals[:, 0] + 1 + np.where(exponents[:, 0], 0, magnitude)
        self._significant = max(self._significant, float(shown.max(where=values[:, 0] != 0, initial=0)))

    def last_digit(self) -> float:
        """Value of the last digit of column 1's largest number, if printed with the most digits of any."""
        return float(10.0 ** (_magnitude(self._largest[:1])[0] + 1 - self._significant))

    def column(self, k: int) -> ColumnFormat:
        """The format of a column: notation of its finite cells, letter of the exponent, alignment."""
        digits, exponent, letter = int(self._decimals[k]), bool(self._exponents[k]), self._letters[k]
        all_alike = self._finite_with[k] and not self._finite_without[k] if exponent else self._finite_without[k]
        conversion = f".{digits}{'e' if exponent else 'f'}"
        if not digits or not all_alike:
            whole = 0 if exponent else len(f"{self._largest[k]:.0f}")
            known = int(self._exponent_decimals[k]) + 1
            conversion = f".{min(max(_SIGNIFICANT, whole, known), 17)}g"
        lead, width = self._alignment(k)
        return ColumnFormat(lead, width, conversion.upper() if letter.isupper() else conversion, letter)

    def _alignment(self, k: int) -> tuple[str, int]:
        """What precedes a cell, and the width it is right-justified to: 0 unless all fields have one width."""
        begin = int(self._ends[k] - self._widths[k])
        gap = self._row[begin : int(self._starts[k])]
        if not self._one_width[k]:
            return gap, 0
        lead = gap.rstrip(" ") or (" " if k else "")
        return lead, int(self._widths[k]) - len(lead)


def _widths(cells: Cells) -> Counts:
    """Characters of every field (rows, columns), separator included."""
    return cells.ends - np.column_stack([cells.lines, cells.ends[:, :-1]])


def _magnitude(size: Floats) -> Floats:
    """Decimal exponent of each number, 0 for zero."""
    return np.floor(np.log10(size, where=size > 0, out=np.zeros(len(size))))


def remark(formats: dict[int, ColumnFormat]) -> tuple[str, ...]:
    """What a user should know about columns that cannot be written in the format they have."""
    general = [str(k + 1) for k, column in formats.items() if column.conversion[-1] in "gG"]
    if not general:
        return ()
    named = ", ".join(general[:8]) + (", ..." if len(general) > 8 else "")
    return (f"integer columns or mixed notation (column {named}): written with 7 significant digits or more",)


def write_rows(cells: Cells, formats: dict[int, ColumnFormat], mark: str, samples: Floats) -> bytes:
    """A block of the table with the samples (columns in ``formats``, rows) in place of its own."""
    traces = dict(zip(formats, samples, strict=True))
    following = np.append(cells.lines[1:], len(cells.codes))
    fields = [
        _fields(cells, k, formats[k], mark, traces[k])
        if k in traces
        else _slices(cells, cells.begins(k), cells.ends[:, k])
        for k in range(cells.starts.shape[1])
    ]
    fields.append(_slices(cells, cells.ends[:, -1], following))
    return "".join(map("".join, zip(*fields, strict=True))).encode("ascii")


def _fields(cells: Cells, k: int, column: ColumnFormat, mark: str, samples: Floats) -> list[str]:
    """A trace's fields. Where neither the sample nor the old cell is a finite number, the old text stays."""
    fields = column.write(samples, mark)
    for row in np.flatnonzero(~np.isfinite(samples)).tolist():
        text = cells.text(row, k)
        if "n" in text.lower():
            fields[row] = column.lead + text.rjust(column.width)
    return fields


def _slices(cells: Cells, begins: Counts, ends: Counts) -> list[str]:
    text = cells.codes.tobytes().decode("ascii")
    return [text[i:j] for i, j in zip(begins.tolist(), ends.tolist(), strict=True)]
