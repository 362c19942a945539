"""How the columns of a text table are written: in the decimals, notation and alignment that they came in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from wavefilt.io.text.cells import Cells, digits_of

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


class Notation:
    """How the cells of every column are spelled, gathered a piece of the table at a time."""

    def __init__(self, cells: Cells) -> None:
        """``cells`` are those of the first piece."""
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

    def add(self, cells: Cells, values: NDArray[np.float64], mark: str) -> None:
        """The next piece, and its numbers (rows, columns)."""
        decimals, exponents = digits_of(cells, mark)
        some, finite = exponents.any(axis=0), np.isfinite(values)
        for k in np.flatnonzero(some & ~self._exponents).tolist():
            self._letters[k] = next(c for c in cells.text(int(exponents[:, k].argmax()), k) if c in "eEdD")
        self._exponents |= some
        self._finite_with |= (finite & exponents).any(axis=0)
        self._finite_without |= (finite & ~exponents).any(axis=0)
        self._decimals = np.maximum(self._decimals, decimals.max(axis=0))
        self._exponent_decimals = np.maximum(self._exponent_decimals, decimals.max(axis=0, where=exponents, initial=0))
        self._largest = np.maximum(self._largest, np.abs(values).max(axis=0, where=finite, initial=0))
        self._one_width &= (_widths(cells) == self._widths).all(axis=0)
        magnitude = _magnitude(np.abs(values[:, 0]))
        shown = decimals[:, 0] + 1 + np.where(exponents[:, 0], 0, magnitude)
        self._significant = max(self._significant, shown.max(where=values[:, 0] != 0, initial=0))

    def last_digit(self) -> float:
        """Value of the last digit of column 1's largest number, if it had all significant digits that any has."""
        return float(10.0 ** (_magnitude(self._largest[:1])[0] + 1 - self._significant))

    def style(self, k: int) -> Style:
        """How a column is written: notation of its finite cells, letter of the exponent, alignment."""
        digits, some, letter = int(self._decimals[k]), bool(self._exponents[k]), self._letters[k]
        all_alike = self._finite_with[k] and not self._finite_without[k] if some else self._finite_without[k]
        conversion = f".{digits}{'e' if some else 'f'}"
        if not digits or not all_alike:
            whole = 0 if some else len(f"{self._largest[k]:.0f}")
            known = int(self._exponent_decimals[k]) + 1
            conversion = f".{min(max(_SIGNIFICANT, whole, known), 17)}g"
        lead, width = self._alignment(k)
        return Style(lead, width, conversion.upper() if letter.isupper() else conversion, letter)

    def _alignment(self, k: int) -> tuple[str, int]:
        """What precedes a cell, and the width it is right-justified to: 0 unless all fields have one width."""
        begin = int(self._ends[k] - self._widths[k])
        gap = self._row[begin : int(self._starts[k])]
        if not self._one_width[k]:
            return gap, 0
        lead = gap.rstrip(" ") or (" " if k else "")
        return lead, int(self._widths[k]) - len(lead)


def _widths(cells: Cells) -> NDArray[np.int64]:
    """Characters of every field (rows, columns), separator included."""
    return cells.ends - np.column_stack([cells.lines, cells.ends[:, :-1]])


def _magnitude(size: NDArray[np.float64]) -> NDArray[np.float64]:
    """Decimal exponent of each number, 0 for zero."""
    return np.floor(np.log10(size, where=size > 0, out=np.zeros(len(size))))


def remark(styles: dict[int, Style]) -> tuple[str, ...]:
    general = [str(k + 1) for k, style in styles.items() if style.conversion[-1] in "gG"]
    if not general:
        return ()
    named = ", ".join(general[:8]) + (", ..." if len(general) > 8 else "")
    return (f"integer columns or mixed notation (column {named}): written with 7 significant digits or more",)


def write_rows(cells: Cells, styles: dict[int, Style], mark: str, samples: NDArray[np.float64]) -> bytes:
    """A piece of the table as it is written, with the samples (columns in ``styles``, rows)."""
    traces = dict(zip(styles, samples, strict=True))
    following = np.append(cells.lines[1:], len(cells.codes))
    fields = [
        _fields(cells, k, styles[k], mark, traces[k])
        if k in traces
        else _slices(cells, cells.begins(k), cells.ends[:, k])
        for k in range(cells.starts.shape[1])
    ]
    fields.append(_slices(cells, cells.ends[:, -1], following))
    return "".join(map("".join, zip(*fields, strict=True))).encode("ascii")


def _fields(cells: Cells, k: int, style: Style, mark: str, samples: NDArray[np.float64]) -> list[str]:
    """A trace's fields; cells that were and are no finite number stay as they were spelled."""
    fields = style.write(samples, mark)
    for row in np.flatnonzero(~np.isfinite(samples)).tolist():
        spelled = cells.text(row, k)
        if "n" in spelled.lower():
            fields[row] = style.lead + spelled.rjust(style.width)
    return fields


def _slices(cells: Cells, begins: NDArray[np.int64], ends: NDArray[np.int64]) -> list[str]:
    text = cells.codes.tobytes().decode("ascii")
    return [text[i:j] for i, j in zip(begins.tolist(), ends.tolist(), strict=True)]
