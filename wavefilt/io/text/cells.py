"""The cells of a text table, all at once: where they begin and end, and their numbers."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from wavefilt.arrays import Counts, Floats

BLANKS = b" \t\r\n"


BLOCK, SHARE = (1 << 12, 1 << 16), 12
"""Characters of a table parsed at a time, in whole lines: parsing takes up to fifty times their memory, so a block is
this share of the table, within these limits."""


def blocks(body: bytes) -> Iterator[bytes]:
    """The lines of the body, in blocks, without the line end after the last line of each."""
    at, size = 0, min(max(len(body) // SHARE, BLOCK[0]), BLOCK[1])
    while at <= len(body):
        end = body.find(b"\n", at + size)
        end = len(body) if end < 0 else end
        yield body[at:end]
        at = end + 1


class Cells(NamedTuple):
    """Character codes of a block, where its lines begin, and where its cells (rows, columns) begin and end."""

    codes: NDArray[np.uint8]
    lines: Counts
    starts: Counts
    ends: Counts

    def begins(self, column: int) -> Counts:
        """Where the field of a column, separator included, begins in each row."""
        return self.ends[:, column - 1] if column else self.lines

    def text(self, row: int, column: int) -> str:
        """The text of one cell."""
        return self.codes[self.starts[row, column] : self.ends[row, column]].tobytes().decode("ascii")


def scan(body: bytes, delimiter: str) -> Cells | None:
    """Lines and cells of a block of the body; None if rows differ in length, or there are empty cells."""
    codes = np.frombuffer(body, np.uint8)
    blank = members(BLANKS + delimiter.encode())[codes]
    edges = np.flatnonzero(np.diff(blank, prepend=True, append=True))
    starts, ends = edges[::2], edges[1::2]
    lines = np.concatenate([[0], np.flatnonzero(codes == ord("\n")) + 1])
    counts = np.diff(np.searchsorted(starts, np.append(lines, len(codes))))
    if counts[0] == 0 or np.any(counts != counts[0]):
        return None
    shape = len(lines), int(counts[0])
    cells = Cells(codes, lines, starts.reshape(shape), ends.reshape(shape))
    if delimiter == " ":
        return cells
    between = np.flatnonzero(codes == ord(delimiter))
    before, after = cells.ends[:, :-1].ravel(), cells.starts[:, 1:].ravel()
    single = between.size == before.size and np.all(before <= between) and np.all(between < after)
    return cells if single else None


def parse(body: bytes, cells: Cells, delimiter: str, mark: str) -> Floats | None:
    """The numbers (rows, columns); None if a cell is not a number."""
    allowed = members(b"0123456789+-eEdDnaNAifIFtyTY" + BLANKS + f"{delimiter}{mark}".encode())
    if not allowed[cells.codes].all():
        return None
    plain = body.translate(bytes.maketrans(b"dD" + f"{delimiter}{mark}".encode(), b"ee ."))
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        try:
            numbers: Floats = np.fromstring(plain, dtype=np.float64, sep=" ")
        except (DeprecationWarning, ValueError):
            return None
    # A cell such as 1-2 is read as two numbers, none as less than one: equal counts mean one number per cell.
    return numbers.reshape(cells.starts.shape) if numbers.size == cells.starts.size else None


def digits_of(cells: Cells, mark: str) -> tuple[Counts, NDArray[np.bool_]]:
    """Of each cell (rows, columns): digits after the decimal mark, and whether it has an exponent."""
    starts, ends = cells.starts.ravel(), cells.ends.flatten()
    decimals, exponents = np.zeros(starts.size, np.int64), np.zeros(starts.size, np.bool_)
    letters = np.flatnonzero(members(b"eEdD")[cells.codes])
    owners = np.searchsorted(starts, letters, "right") - 1
    ends[owners], exponents[owners] = letters, True
    marks = np.flatnonzero(cells.codes == ord(mark))
    owners = np.searchsorted(starts, marks, "right") - 1
    decimals[owners] = ends[owners] - marks - 1
    return decimals.reshape(cells.starts.shape), exponents.reshape(cells.starts.shape)


def members(characters: bytes) -> NDArray[np.bool_]:
    """Table of 256: which codes are among the characters."""
    table = np.zeros(256, dtype=bool)
    table[list(characters)] = True
    return table
