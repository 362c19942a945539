"""The rows of numbers in a text file: where they are, what separates their cells, and which line is none."""

from __future__ import annotations

import codecs
import re
from typing import NoReturn

import numpy as np

from wavefilt.errors import FormatError
from wavefilt.io.cells import BLANKS, Cells, members

_LONGEST_LINE = 1 << 20
_COMMENTS = (b"#", b"%", b"!", b"//", b"*", b">", b"$")
_DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "space": " ", "\\t": "\t"}
_DELIMITERS |= {symbol: symbol for symbol in ",;\t "}
_NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)([ed][+-]?\d+)?|nan|inf(inity)?)", re.IGNORECASE | re.ASCII)
_DECIMAL_COMMA = re.compile(r"[+-]?(\d+(,\d+)?([ed][+-]?\d+)?|nan|inf)", re.IGNORECASE | re.ASCII)
# Anything that begins like a number, so that a damaged first row is never taken for column names.
_NUMBERLIKE = re.compile(rb"(?i)(?<![^\s,;])([+-]?[.,]?\d|[+-]?(nan|inf)(?![^\s,;]))")


def parts(data: bytes) -> tuple[bytes, bytes, bytes]:
    """The lines before the rows, the rows without their last line end, and what follows."""
    if data.count(b"\r") != data.count(b"\r\n"):
        raise FormatError("carriage returns without line feeds: convert the line ends to LF or CRLF")
    breaks = np.flatnonzero(np.frombuffer(data, np.uint8) == ord("\n"))
    lengths = np.diff(breaks, prepend=-1, append=len(data)) - 1
    if lengths.max() > _LONGEST_LINE:
        raise FormatError(
            f"line {lengths.argmax() + 1} has {lengths.max()} characters, more than {_LONGEST_LINE}: "
            "rows must be samples and columns traces"
        )
    first = _first_row(data)
    last = data.find(b"\n", len(data.rstrip(BLANKS)))
    last = len(data) if last < 0 else last
    return data[:first], data[first:last], data[last:]


def _first_row(data: bytes) -> int:
    """Where the first row of numbers begins: after comments, blank lines, and at most one line of names."""
    at = len(codecs.BOM_UTF8) if data.startswith(codecs.BOM_UTF8) else 0
    named, number = False, 1
    while at < len(data):
        end = data.find(b"\n", at) % (len(data) + 1)  # not found: -1, the end of the data
        line = data[at:end].strip()
        if line and not line.startswith(_COMMENTS):
            if _NUMBERLIKE.search(line):
                return at
            if named:
                break
            named = True
        at, number = end + 1, number + 1
    if _NUMBERLIKE.search(data, at):
        _refuse(number, line, "is no row of numbers, no comment (#), and not the one line of column names")
    raise FormatError("no samples: there is no row of numbers in this file")


def delimiter_of(body: bytes, given: str | None) -> str:
    """The delimiter that was given, or that of the first row; a blank stands for any run of blanks."""
    if given is not None:
        if given not in _DELIMITERS:
            raise FormatError(f"{given!r} is no delimiter: use ',' ';' '\\t' ' ' or comma, semicolon, tab, space")
        return _DELIMITERS[given]
    row = body.partition(b"\n")[0].decode("latin-1").strip()
    words = row.split()
    if ";" in row:
        return ";"
    if "\t" in row and all(len(cell.split()) < 2 for cell in row.split("\t")):
        return "\t"
    if "," in row and not (len(words) > 1 and all(map(_DECIMAL_COMMA.fullmatch, words))):
        return ","
    return " "


def refuse_ambiguous_commas(body: bytes, cells: Cells, delimiter: str, mark: str) -> None:
    """Raise FormatError where 1,5 may be two columns or one with a decimal comma."""
    columns = cells.starts.shape[1]
    ambiguous = columns == 1 and mark == ","
    if delimiter == "," and columns == 2 and not re.search(rb"[.nN]", body):
        second = cells.starts[:, 1]
        digit = members(b"0123456789")[cells.codes[second]]
        ambiguous = bool(np.all(digit & (cells.ends[:, 0] + 1 == second)))
    if ambiguous:
        row = body.partition(b"\n")[0].strip().decode("ascii")
        raise FormatError(
            f"{row!r}: two columns, or one with a decimal comma? Give --delimiter ',' if these are two "
            "columns, --delimiter ' ' if the comma is a decimal mark"
        )


def blame(head: bytes, body: bytes, delimiter: str, mark: str) -> NoReturn:
    """Raise FormatError for the first line of the body that is no row of numbers like those above."""
    pattern = r"[ \t\r]+" if delimiter == " " else re.escape(delimiter)
    width = 0
    for number, line in enumerate(body.split(b"\n"), head.count(b"\n") + 1):
        found = [cell.strip(" \t\r") for cell in re.split(pattern, line.decode("latin-1").strip(" \r"))]
        if not "".join(found):
            raise FormatError(f"line {number}: a blank line between the rows")
        bad = [cell for cell in found if not _is_number(cell, mark)]
        if len(bad) == len(found):
            _refuse(number, line, "is no row of numbers")
        if "" in bad:
            _refuse(number, line, "has an empty cell")
        if bad:
            comma = " (the decimal mark is a comma in this file)" if mark == "," else ""
            _refuse(number, bad[0].encode("latin-1"), f"is not a number{comma}; comments begin with #")
        if width and len(found) != width:
            _refuse(number, line, f"has {len(found)} cells where the rows above have {width}")
        width = len(found)
    raise FormatError("no rows of numbers")  # pragma: no cover


def _is_number(cell: str, mark: str) -> bool:
    if mark == ",":
        cell = cell.replace(".", "_").replace(",", ".")
    return _NUMBER.fullmatch(cell) is not None


def _refuse(number: int, text: bytes, reason: str) -> NoReturn:
    """Raise FormatError with the number of the line, counted from 1, and the text shortened."""
    try:
        shown = text.strip().decode("utf-8")
    except UnicodeDecodeError:
        shown = text.strip().decode("latin-1")
    shown = shown if len(shown) <= 40 else shown[:37] + "..."
    raise FormatError(f"line {number}: {shown!r} {reason}")
