"""Plain text (ASCII) recordings: rows are samples in time, columns are traces.

Kept byte for byte: a byte order mark, leading comment lines, one line of column names, time and every other
column that is not a trace, line ends, blanks at the ends of lines, trailing blank lines. Samples are written
with the decimals and the notation of their column, right-justified if its fields have one width, otherwise
after the separators of the first row. A column without decimals (integers), or of mixed notation, is
written with 7 significant digits, or more if the file has more: denoised samples are not integers.
"""

from __future__ import annotations

import codecs
import io
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple, NoReturn

import numpy as np

from wavefilt.arrays import Floats
from wavefilt.errors import FormatError, LayoutError
from wavefilt.io.base import HEAD, Contents, Format, Layout, Probe

BLANKS = b" \t\r\n"
SIGNIFICANT = 7
_COMMENTS = re.compile(rb"(?:[ \t\r\f\v]*+(?:(?:[#%!*>$]|//)[^\n]*+)?+(?:\n|\Z))*+")  # and blank lines
_DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "space": " ", "\\t": "\t"}
_DELIMITERS |= {symbol: symbol for symbol in ",;\t "}
_DECIMAL_COMMA = re.compile(r"[+-]?(\d+(,\d+)?([ed][+-]?\d+)?|nan|inf)", re.IGNORECASE | re.ASCII)
# Anything that begins like a number, so that a damaged first row is never taken for column names.
_NUMBERLIKE = re.compile(rb"(?i)(?<![^\s,;])([+-]?[.,]?\d|[+-]?(nan|inf)(?![^\s,;]))")
_PARTS = re.compile(r"[+-]?(\d*)[.,]?(\d*)([eEdD]?)")
"""Digits before and after the decimal mark, and the letter of the exponent."""
_ZEROS = bytes.maketrans(b"123456789", b"000000000")


@dataclass(frozen=True)
class Origin:
    """The file in three parts (before, in, and after the rows), and the columns of its traces, counted from 0."""

    head: bytes
    body: bytes
    tail: bytes
    delimiter: str
    mark: str
    columns: tuple[int, ...]

    def rows(self, body: bytes) -> Iterator[tuple[list[tuple[str, str]], str]]:
        """Yield each row of a body as pairs of separator and cell, and the end of its line."""
        cell = re.compile(rf"([ \t{self.delimiter}]*)([^ \t\r\n{self.delimiter}]+)")
        for line in io.StringIO(body.decode("ascii")):
            cells = cell.findall(line)
            yield cells, line[sum(len(lead) + len(text) for lead, text in cells) :]


class Ascii(Format):
    name, label, endings = "ascii", "ASCII", (".csv", ".txt")
    keeps = (
        "samples of traces of equal length as columns with commas, after a column of seconds from the trigger if all "
        "traces have the same times"
    )

    def resembles(self, probe: Probe) -> bool:
        return looks_like_text(probe.head)

    def read(self, data: bytes, layout: Layout) -> Contents:
        """Read float64 traces in the file's own units, their interval in seconds.

        Column 1 is time, in seconds, if it is one of several, has 3 rows or more, and increases in equal steps as
        far as its printed digits tell; ``layout.columns`` chooses the traces instead. NaN cells are gaps.

        Raises FormatError, naming the line, for rows of different lengths, cells that are empty or not numbers,
        fewer than 2 rows, time that is not uniform or contradicts ``layout.dt``, and ambiguous commas.
        """
        layout.only("ascii", "columns", "delimiter", "dt")
        if not looks_like_text(data[:HEAD]):
            raise FormatError("not a text file" if data else "no samples: the file is empty")
        head, body, tail = _parts(data)
        delimiter = _delimiter_of(body, layout.delimiter)
        mark = "," if delimiter != "," and b"," in body else "."
        first = head.count(b"\n") + 1
        traces = _parsed(body, delimiter, mark, first)
        if layout.delimiter is None:
            _refuse_ambiguous_commas(body, len(traces), delimiter, mark)
        if traces.shape[1] < 2:
            raise FormatError("too short: one row of numbers is not a recording (rows are samples, columns traces)")
        origin = Origin(head, body, tail, delimiter, mark, tuple(range(len(traces))))
        chosen, interval, notes = _chosen_columns(layout, traces, origin, first)
        cells = next(origin.rows(body))[0]
        whole = [
            k for k in chosen if cells[k][1].strip("+-").isdigit() and np.array_equal(traces[k], np.rint(traces[k]))
        ]
        if whole:
            listed = ", ".join(str(k + 1) for k in whole[:8]) + (", ..." if len(whole) > 8 else "")
            digits = f"written with {SIGNIFICANT} significant digits or more"
            notes = (*notes, f"integer columns (column {listed}): {digits}")
        adjacent = chosen == tuple(range(chosen[0], len(traces)))
        rows = traces[chosen[0] :] if adjacent else traces[list(chosen)]
        origin = replace(origin, columns=chosen)
        return Contents(rows, (interval,) * len(chosen), "ascii", origin, notes=notes)

    def write(self, contents: Contents) -> bytes:
        """Return the file with the samples of ``contents``; the text of gaps and of everything else is kept."""
        origin: Origin = contents.origin
        count, rows = len(origin.columns), origin.body.count(b"\n") + 1
        lengths = {len(trace) for trace in contents.traces}
        if len(contents.traces) != count or lengths != {rows}:
            found = f"{len(contents.traces)} traces of {sorted(lengths)} samples"
            raise FormatError(f"{found}: the file has {count} of {rows}")
        shapes = dict[int, dict[tuple[str, str], None]]((k, {}) for k in origin.columns)
        for cells, _ in origin.rows(origin.body.translate(_ZEROS)):
            for k, seen in shapes.items():
                seen[cells[k]] = None
        formats = {k: _column_format(k, list(seen)) for k, seen in shapes.items()}
        samples = np.asarray(contents.traces, dtype=np.float64)
        lines = []
        for values, (cells, end) in zip(samples.T, origin.rows(origin.body), strict=True):
            fields = [lead + text for lead, text in cells]
            for (k, format), value in zip(formats.items(), values.tolist(), strict=True):
                fields[k] = format.field(value, cells[k][1], origin.mark)
            lines.append("".join(fields) + end)
        return b"".join([origin.head, "".join(lines).encode("ascii"), origin.tail])

    def convert(self, contents: Contents) -> bytes:
        samples = np.asarray(contents.samples)
        if samples.dtype.kind == "c":
            raise FormatError("ASCII holds no complex samples")
        digits = 8 if np.can_cast(samples.dtype, np.float32) else 16
        names, columns = [f"trace_{i + 1}" for i in range(len(samples))], list(samples)
        forms = [f"%.{digits}e"] * len(samples)
        start, *others = set(contents.delays) or {0.0}
        if len(set(contents.intervals)) == 1 and contents.interval and not others:
            times = start + contents.interval * np.arange(samples.shape[1])
            names, columns, forms = ["time_s", *names], [times, *columns], ["%.12e", *forms]
        out = io.BytesIO()
        np.savetxt(out, np.column_stack(columns), forms, ",", header=",".join(names), comments="")
        return out.getvalue()


def looks_like_text(head: bytes) -> bool:
    """Return whether the first bytes of a file are text: no NUL, UTF-8 or Latin-1, at least 99 % printable."""
    head = head[:HEAD]
    if not head or b"\0" in head:
        return False
    printable = bytes([9, 10, 12, 13, *range(32, 127), *range(160, 256)])
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)  # not final: a character may be cut at the end of the head
        printable += bytes(range(128, 160))
    except UnicodeDecodeError:
        pass
    return len(head.translate(None, printable)) <= 0.01 * len(head)


# ---------------------------------------------------------------------------------------------- notation of columns


class ColumnFormat(NamedTuple):
    """The format of one column: separator, width, printf conversion, letter of the exponent."""

    lead: str
    width: int
    conversion: str
    letter: str

    def field(self, sample: float, old: str, mark: str) -> str:
        """Return the separator and the sample; if neither it nor the ``old`` cell is finite, that text stays."""
        if not math.isfinite(sample) and "n" in old.lower():
            return self.lead + old.rjust(self.width)
        text = self.conversion % sample
        if self.letter in "dD":
            text = text.replace("e" if self.letter == "d" else "E", self.letter)
        return self.lead + (text.replace(".", ",") if mark == "," else text)


def _column_format(number: int, shapes: Sequence[tuple[str, str]]) -> ColumnFormat:
    """Return the format of a column by the different shapes, with zeros for digits, of its separators and cells.

    It has the notation of the finite cells, the letter of the first exponent, and the alignment.
    """
    cells = [cell for _, cell in shapes]
    parts = [match.groups() for match in map(_PARTS.match, cells) if match]
    decimals, letters = [len(part[1]) for part in parts], [part[2] for part in parts]
    letter, digits = next(filter(None, letters), "e"), max(decimals)
    exponent = any(letters)
    conversion = f".{digits}{'e' if exponent else 'f'}"
    finite = ["n" not in cell.lower() for cell in cells]
    if not digits or any(known and bool(own) != exponent for known, own in zip(finite, letters, strict=True)):
        whole = 0 if exponent else max(len(part[0]) for part in parts)
        known = max((n + 1 for n, own in zip(decimals, letters, strict=True) if own), default=0)
        conversion = f".{min(max(SIGNIFICANT, whole, known), 17)}g"
    lead, width = shapes[0][0], 0
    widths = {len(before) + len(cell) for before, cell in shapes}
    if len(widths) == 1:  # all fields are right-justified
        lead = lead.rstrip(" ") or (" " if number else "")
        width = widths.pop() - len(lead)
    form = f"%{width or ''}{conversion}"
    return ColumnFormat(lead, width, form.upper() if letter.isupper() else form, letter)


# ------------------------------------------------------------------------------------------------- numbers of a table


def _parsed(body: bytes, delimiter: str, mark: str, first: int) -> Floats:
    """Return the numbers (columns, rows); ``first`` is the line number of the first row."""
    allowed = b"0123456789+-eEdDnaNAifIFtyTY \t\r\n" + f"{delimiter}{mark}".encode()
    plain = bytes.maketrans(b"dD" + mark.encode(), b"ee.")
    try:
        if body.translate(None, allowed):
            raise ValueError
        lines = io.TextIOWrapper(io.BytesIO(body.translate(plain)), "latin-1")
        rows = np.loadtxt(lines, delimiter=None if delimiter == " " else delimiter, comments=None, ndmin=2)
        if len(rows) != body.count(b"\n") + 1:  # blank lines are skipped
            raise ValueError
    except ValueError as error:
        text, number, top = str(error), 0, body.partition(b"\n")[0]
        if delimiter != " " and delimiter.encode() not in top:
            name = next(name for name, symbol in _DELIMITERS.items() if symbol == delimiter)
            _refuse(first, top, f"has no {name}; give another `delimiter`")
        if odd := re.search(rb"[^%b]|\n[ \t\r]*\n" % re.escape(allowed), body):
            text, number = "comments begin with #", body.count(b"\n", 0, odd.end() - 1)
        elif row := re.search(r"at row (\d+)", text):  # from 0, or from 1 if the number of columns has changed
            text, number = re.sub(r" at row \d+|;.*|\.$", "", text), int(row[1]) - ("changed" in text)
        comma = "; the decimal mark is a comma in this file" if mark == "," else ""
        _refuse(first + number, body.split(b"\n")[number], f"is not a row of numbers like the others: {text}{comma}")
    return np.ascontiguousarray(rows.T)


# ----------------------------------------------------------------------------------------- rows and their delimiter


def _parts(data: bytes) -> tuple[bytes, bytes, bytes]:
    """Return the lines before the rows, the rows without the last line end, and the rest."""
    if data.count(b"\r") != data.count(b"\r\n"):
        raise FormatError("carriage returns without line feeds: convert the line ends to LF or CRLF")
    first = _first_row(data)
    last = data.find(b"\n", len(data.rstrip(BLANKS)))
    last = len(data) if last < 0 else last
    return data[:first], data[first:last], data[last:]


def _first_row(data: bytes) -> int:
    """Return where the first row of numbers begins: after comments, blank lines, and at most one line of names."""
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


def _delimiter_of(body: bytes, given: str | None) -> str:
    """Return the delimiter given by the user, or that of the first row; a blank stands for any run of blanks."""
    if given is not None:
        if given not in _DELIMITERS:
            known = "use ',' ';' '\\t' ' ' or comma, semicolon, tab, space"
            raise LayoutError(f"`delimiter={given!r}` is not known: {known}")
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


def _refuse_ambiguous_commas(body: bytes, columns: int, delimiter: str, mark: str) -> None:
    """Raise FormatError if 1,5 may be two columns or one with a decimal comma."""
    ambiguous = columns == 1 and mark == ","
    if delimiter == "," and columns == 2:
        ambiguous = re.search(rb"[.nN]|[ \t\r],|,[^0-9]", body) is None
    if ambiguous:
        row = body.partition(b"\n")[0].strip().decode("ascii")
        question = f"{row!r}: two columns, or one with a decimal comma?"
        raise FormatError(f"{question} Give `delimiter` comma for two columns, space for a decimal comma")


def _refuse(number: int, text: bytes, what: str) -> NoReturn:
    """Raise FormatError with the number of the line, counted from 1, and the text shortened."""
    shown = text.strip().decode("utf-8", "replace")
    shown = shown if len(shown) <= 40 else shown[:37] + "..."
    raise FormatError(f"line {number}: {shown!r} {what}")


# ----------------------------------------------------------------------------------------------------- time column


def _chosen_columns(
    layout: Layout, columns: Floats, origin: Origin, line: int
) -> tuple[tuple[int, ...], float | None, tuple[str, ...]]:
    """Return the columns that are traces (from 0), their interval, and remarks; ``line`` is that of the first row.

    Raises FormatError if time leaves the straight line between its ends by more than its rounding.
    """
    count, time = len(columns), columns[0]
    if layout.columns is not None:
        chosen = tuple(k - 1 for k in layout.columns)
        if not chosen or len(set(chosen)) < len(chosen) or not set(chosen) <= set(range(count)):
            raise LayoutError(f"`columns={layout.columns}`: give each column once, counted from 1 to {count}")
        return chosen, layout.dt, ()
    if count < 2 or len(time) < 3 or not np.isfinite(time).all() or not np.all(np.diff(time) > 0):
        return tuple(range(count)), layout.dt, ()

    size, step = len(time), float((time[-1] - time[0]) / (len(time) - 1))
    separator = None if origin.delimiter == " " else origin.delimiter
    unit = _last_digit(time, (line.split(separator, 1)[0] for line in io.StringIO(origin.body.decode("ascii"))))
    rounding = np.finfo(float).eps * np.abs(time).max()
    summed = min(size * rounding, step / 1000)  # error of t += dt, printed with all digits
    # A lost sample shows as half a step or more, and counts as such however few digits are printed.
    allowed = min(unit * 1.000001 + 4 * rounding + summed, step / 4)
    if np.abs(time - (time[0] + step * np.arange(size))).max() > allowed:
        steps = np.diff(time)
        odd = int(np.abs(steps - np.median(steps)).argmax()) + 1
        found = f"steps of {steps.min():.7g} to {steps.max():.7g}, see line {line + odd}"
        what = f"column 1 increases like time but not uniformly: {found}"
        raise FormatError(f"{what}. Resample it; or, to go on as it is, give the traces with `columns` (and `dt`)")
    if layout.dt is not None and abs(layout.dt - step) > 2 * unit / (size - 1) + 1e-6 * step:
        contradiction = f"`dt={layout.dt}` contradicts column 1, which has steps of {step:.7g}"
        raise LayoutError(f"{contradiction}; if it is not time in seconds, give the traces with `columns`")
    return tuple(range(1, count)), step, (f"column 1 is time, in steps of {step:.7g} s",)


def _last_digit(numbers: Floats, cells: Iterable[str]) -> float:
    """Return the value of the last digit of the largest number, printed with the most digits of any."""
    digits = (re.sub("[eEdD].*|[^0-9]", "", cell).lstrip("0") for cell in cells)
    return float(10.0 ** (np.floor(np.log10(np.abs(numbers).max())) + 1 - max(map(len, digits))))
