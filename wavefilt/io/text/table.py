"""The rows of numbers in a text file: where they are, what separates their cells, and which line is malformed."""

from __future__ import annotations

import codecs
import re
from typing import NoReturn

from wavefilt.errors import FormatError, LayoutError, options
from wavefilt.io.text.cells import BLANKS

_LONGEST_LINE = 1 << 20
_COMMENTS = re.compile(rb"(?:[ \t\r\f\v]*+(?:(?:[#%!*>$]|//)[^\n]*+)?+(?:\n|\Z))*+")  # and blank lines
_DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "space": " ", "\\t": "\t"}
_DELIMITERS |= {symbol: symbol for symbol in ",;\t "}
_NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)([ed][+-]?\d+)?|nan|inf(inity)?)", re.IGNORECASE | re.ASCII)
_DECIMAL_COMMA = re.compile(r"[+-]?(\d+(,\d+)?([ed][+-]?\d+)?|nan|inf)", re.IGNORECASE | re.ASCII)
# Anything that begins like a number, so that a damaged first row is never taken for column names.
_NUMBERLIKE = re.compile(rb"(?i)(?<![^\s,;])([+-]?[.,]?\d|[+-]?(nan|inf)(?![^\s,;]))")


def parts(data: bytes) -> tuple[bytes, bytes, bytes]:
    """The lines before the rows, the rows without the last line end, and the rest."""
    if data.count(b"\r") != data.count(b"\r\n"):
        raise FormatError("carriage returns without line feeds: convert the line ends to LF or CRLF")
    at = 0
    while at + _LONGEST_LINE < len(data):
        last = data.rfind(b"\n", at, at + _LONGEST_LINE + 1)
        if last < 0:
            length = data.find(b"\n", at) % (len(data) + 1) - at  # not found: -1, the end of the data
            raise FormatError(
                f"line {data[:at].count(10) + 1} has {length} characters, more than {_LONGEST_LINE}: "
                "rows must be samples and columns traces"
            )
        at = last + 1
    first = _first_row(data)
    last = data.find(b"\n", len(data.rstrip(BLANKS)))
    last = len(data) if last < 0 else last
    return data[:first], data[first:last], data[last:]


def _first_row(data: bytes) -> int:
    """Where the first row of numbers begins: after comments, blank lines, and at most one line of names."""
    at, line = len(codecs.BOM_UTF8) if data.startswith(codecs.BOM_UTF8) else 0, b""
    for _ in range(2):
        skipped = _COMMENTS.match(data, at)
        at = skipped.end() if skipped else at
        end = data.find(b"\n", at) % (len(data) + 1)  # not found: -1, the end of the data
        line = data[at:end].strip()
        if _NUMBERLIKE.search(line):
            return at
        before, at = at, min(end + 1, len(data))
    if _NUMBERLIKE.search(data, before):
        number = data[:before].count(b"\n") + 1
        _refuse(number, line, "is not a row of numbers, a comment (#), or the one line of column names")
    raise FormatError("no samples: there is no row of numbers in this file")


def delimiter_of(body: bytes, given: str | None) -> str:
    """The delimiter that was given, or that of the first row; a blank stands for any run of blanks."""
    if given is not None:
        if given not in _DELIMITERS:
            known = " is not a delimiter: use ',' ';' '\\t' ' ' or comma, semicolon, tab, space"
            raise LayoutError(options(delimiter=given), known)
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


def refuse_ambiguous_commas(body: bytes, columns: int, delimiter: str, mark: str) -> None:
    """Raise FormatError where 1,5 may be two columns or one with a decimal comma."""
    ambiguous = columns == 1 and mark == ","
    if delimiter == "," and columns == 2:
        ambiguous = re.search(rb"[.nN]|[ \t\r],|,[^0-9]", body) is None
    if ambiguous:
        row = body.partition(b"\n")[0].strip().decode("ascii")
        question = f"{row!r}: two columns, or one with a decimal comma? Give "
        two, one = options(delimiter=","), options(delimiter=" ")
        raise FormatError(question, two, " if these are two columns, ", one, " if the comma is a decimal mark")


def refuse_line(first: int, block: bytes, width: int, delimiter: str, mark: str) -> NoReturn:
    """Raise FormatError for the first line of a block that is not a row of numbers like those above.

    ``first`` is the number of its first line, ``width`` the cells of the rows above, 0 if there are none.
    """
    pattern = r"[ \t\r]+" if delimiter == " " else re.escape(delimiter)
    for number, line in enumerate(block.split(b"\n"), first):
        found = [cell.strip(" \t\r") for cell in re.split(pattern, line.decode("latin-1").strip(" \r"))]
        if not "".join(found):
            raise FormatError(f"line {number}: a blank line between the rows")
        bad = [cell for cell in found if not _is_number(cell, mark)]
        if len(bad) == len(found):
            _refuse(number, line, "is not a row of numbers")
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
