"""Plain text (ASCII) recordings: rows are samples in time, columns are traces.

Kept byte for byte: a byte order mark, leading comment lines, one line of column names, time and every other
column that is no trace, line ends, blanks at the ends of lines, trailing blank lines. Samples are written
with the decimals and the notation of their column, right-justified where its fields have one width, else
behind the separators of the first row. A column without decimals (integers), or of mixed notation, is
written with 7 significant digits, or as many as the file has: denoised samples are no integers.
"""

from __future__ import annotations

import codecs
import re
import warnings
from dataclasses import dataclass
from typing import Any, NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from wavefilt.errors import FormatError
from wavefilt.io.layout import Layout
from wavefilt.recording import Recording

__all__ = ["decode", "encode", "looks_like_text"]

_HEAD = 1 << 16
_LONGEST_LINE = 1 << 20
_CHUNK = 1 << 16  # rows formatted at a time: strings of all cells at once need ten times the memory of the file
_SIGNIFICANT = 7
_COMMENTS = (b"#", b"%", b"!", b"//", b"*", b">", b"$")
_DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "space": " ", "\\t": "\t"}
_DELIMITERS |= {symbol: symbol for symbol in ",;\t "}
_BLANKS = b" \t\r\n"
_NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)([ed][+-]?\d+)?|nan|inf(inity)?)", re.IGNORECASE | re.ASCII)
_DECIMAL_COMMA = re.compile(r"[+-]?(\d+(,\d+)?([ed][+-]?\d+)?|nan|inf)", re.IGNORECASE | re.ASCII)
# Anything that begins like a number, so that a damaged first row is never taken for column names.
_NUMBERLIKE = re.compile(rb"(?i)(?<![^\s,;])([+-]?[.,]?\d|[+-]?(nan|inf)(?![^\s,;]))")
_UNIFIED = re.compile(rb"(?im)^[ \t]*\d+[ \t]*#[^\n]*(shot|geophone|point|sensor|electrode|measurement|data)")


@dataclass(frozen=True)
class _Style:
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


@dataclass(frozen=True)
class _Origin:
    """The file in three parts (before, in, and after the rows), and how its traces are written."""

    head: bytes
    body: bytes
    tail: bytes
    delimiter: str
    mark: str
    styles: dict[int, _Style]
    """Style of each trace, by its column counted from 0, in the order of the traces."""


class _Cells(NamedTuple):
    """Codes of the body, where its lines begin, and where its cells (rows, columns) begin and end."""

    codes: NDArray[np.uint8]
    lines: NDArray[np.int64]
    starts: NDArray[np.int64]
    ends: NDArray[np.int64]

    def begins(self, column: int) -> NDArray[np.int64]:
        """Where the field of a column, separator included, begins in each row."""
        return self.ends[:, column - 1] if column else self.lines

    def text(self, row: int, column: int) -> str:
        """One cell as it is spelled."""
        return self.codes[self.starts[row, column] : self.ends[row, column]].tobytes().decode("ascii")


class _Column(NamedTuple):
    """The numbers of one column, their digits after the decimal mark, and whether they have an exponent."""

    values: NDArray[np.float64]
    decimals: NDArray[np.int64]
    exponents: NDArray[np.bool_]


def looks_like_text(head: bytes) -> bool:
    """Whether the first bytes of a file are text: no NUL, UTF-8 or Latin-1, at least 99 % printable."""
    head = head[:_HEAD]
    if not head or b"\0" in head:
        return False
    printable = bytes([9, 10, 12, 13, *range(32, 127), *range(160, 256)])
    try:
        # Not final: a character cut at the end of the head is no error.
        codecs.getincrementaldecoder("utf-8")().decode(head)
        printable += bytes(range(128, 160))
    except UnicodeDecodeError:
        pass
    return len(head.translate(None, printable)) <= 0.01 * len(head)


def decode(data: bytes, layout: Layout, format: str) -> Recording:
    """The recording in a text file: float64 traces in the file's own units, their interval in seconds.

    Column 1 is time, in seconds, if it is one of several, has 3 rows or more, and increases in equal steps as
    far as its printed digits tell; ``layout.columns`` chooses the traces instead. NaN cells are gaps.

    Raises FormatError, naming the line, for rows of different lengths, cells that are empty or no numbers,
    fewer than 2 rows, time that is not uniform or contradicts ``layout.dt``, and ambiguous commas.
    """
    layout.only("ascii", "columns", "delimiter", "dt")
    head, body, tail = _parts(data)
    delimiter = _delimiter(body, layout.delimiter)
    mark = "," if delimiter != "," and b"," in body else "."
    cells = _scan(body, delimiter)
    values = None if cells is None else _parse(body, cells, delimiter, mark)
    if cells is None or values is None:
        _blame(head, body, delimiter, mark)
    if layout.delimiter is None:
        _refuse_ambiguous_commas(body, cells, delimiter, mark)
    if len(values) < 2:
        raise FormatError("too short: one row of numbers is no recording (rows are samples, columns traces)")

    table = [_Column(*column) for column in zip(values.T, *_digits(cells, mark), strict=True)]
    chosen, interval, notes = _traces(layout, table, head.count(b"\n") + 1)
    styles = {k: _style(cells, k, table[k]) for k in chosen}
    traces: Any = np.ascontiguousarray(values[:, list(chosen)].T)
    origin = _Origin(head, body, tail, delimiter, mark, styles)
    return Recording(traces, (interval,) * len(chosen), format, origin, notes=notes + _remark(styles))


def encode(recording: Recording) -> bytes:
    """The whole file with the samples of ``recording.traces``, everything else as it came; gaps as spelled.

    Raises FormatError if the traces do not have the shape of those that were read.
    """
    origin: _Origin = recording.origin
    cells = _scan(origin.body, origin.delimiter)
    assert cells is not None, "decode has accepted this body"
    count, rows = len(origin.styles), len(cells.lines)
    lengths = {len(trace) for trace in recording.traces}
    if len(recording.traces) != count or lengths != {rows}:
        raise FormatError(
            f"{len(recording.traces)} traces of {sorted(lengths)} samples: the file has {count} of {rows}"
        )
    samples = np.asarray(recording.traces, dtype=np.float64)
    chunks = (slice(first, min(first + _CHUNK, rows)) for first in range(0, rows, _CHUNK))
    written = [_rows(origin, cells, chunk, samples[:, chunk]) for chunk in chunks]
    return b"".join([origin.head, *written, origin.tail])


def _parts(data: bytes) -> tuple[bytes, bytes, bytes]:
    """The lines before the rows, the rows without their last line end, and what follows."""
    if not looks_like_text(data[:_HEAD]):
        raise FormatError("not a text file" if data else "no samples: the file is empty")
    if _UNIFIED.search(data, 0, _HEAD):
        raise FormatError("travel times or resistivities in the unified data format: no waveforms in this file")
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
    last = data.find(b"\n", len(data.rstrip(_BLANKS)))
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


def _delimiter(body: bytes, given: str | None) -> str:
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


def _scan(body: bytes, delimiter: str) -> _Cells | None:
    """Lines and cells of the body; None if rows differ in length, or there are empty cells."""
    codes = np.frombuffer(body, np.uint8)
    blank = _members(_BLANKS + delimiter.encode())[codes]
    edges = np.flatnonzero(np.diff(blank, prepend=True, append=True))
    starts, ends = edges[::2], edges[1::2]
    lines = np.concatenate([[0], np.flatnonzero(codes == ord("\n")) + 1])
    counts = np.diff(np.searchsorted(starts, np.append(lines, len(codes))))
    if counts[0] == 0 or np.any(counts != counts[0]):
        return None
    shape = len(lines), int(counts[0])
    cells = _Cells(codes, lines, starts.reshape(shape), ends.reshape(shape))
    if delimiter == " ":
        return cells
    between = np.flatnonzero(codes == ord(delimiter))
    before, after = cells.ends[:, :-1].ravel(), cells.starts[:, 1:].ravel()
    single = between.size == before.size and np.all(before <= between) and np.all(between < after)
    return cells if single else None


def _members(characters: bytes) -> NDArray[np.bool_]:
    """Table of 256: which codes are among the characters."""
    table = np.zeros(256, dtype=bool)
    table[list(characters)] = True
    return table


def _parse(body: bytes, cells: _Cells, delimiter: str, mark: str) -> NDArray[np.float64] | None:
    """The numbers (rows, columns); None if some cell is none."""
    allowed = _members(b"0123456789+-eEdDnaNAifIFtyTY" + _BLANKS + f"{delimiter}{mark}".encode())
    if not allowed[cells.codes].all():
        return None
    plain = body.translate(bytes.maketrans(b"dD" + f"{delimiter}{mark}".encode(), b"ee ."))
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        try:
            numbers: NDArray[np.float64] = np.fromstring(plain, dtype=np.float64, sep=" ")
        except (DeprecationWarning, ValueError):
            return None
    # A cell such as 1-2 is read as two numbers, none as less than one: equal counts mean one number a cell.
    return numbers.reshape(cells.starts.shape) if numbers.size == cells.starts.size else None


def _blame(head: bytes, body: bytes, delimiter: str, mark: str) -> NoReturn:
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


def _refuse_ambiguous_commas(body: bytes, cells: _Cells, delimiter: str, mark: str) -> None:
    """Raise FormatError where 1,5 may be two columns or one with a decimal comma."""
    columns = cells.starts.shape[1]
    ambiguous = columns == 1 and mark == ","
    if delimiter == "," and columns == 2 and not re.search(rb"[.nN]", body):
        second = cells.starts[:, 1]
        digit = _members(b"0123456789")[cells.codes[second]]
        ambiguous = bool(np.all(digit & (cells.ends[:, 0] + 1 == second)))
    if ambiguous:
        row = body.partition(b"\n")[0].strip().decode("ascii")
        raise FormatError(
            f"{row!r}: two columns, or one with a decimal comma? Give --delimiter ',' if these are two "
            "columns, --delimiter ' ' if the comma is a decimal mark"
        )


def _digits(cells: _Cells, mark: str) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
    """Of each cell (columns, rows): digits after the decimal mark, and whether it has an exponent."""
    starts, ends = cells.starts.ravel(), cells.ends.flatten()
    decimals, exponents = np.zeros(starts.size, np.int64), np.zeros(starts.size, np.bool_)
    letters = np.flatnonzero(_members(b"eEdD")[cells.codes])
    owners = np.searchsorted(starts, letters, "right") - 1
    ends[owners], exponents[owners] = letters, True
    marks = np.flatnonzero(cells.codes == ord(mark))
    owners = np.searchsorted(starts, marks, "right") - 1
    decimals[owners] = ends[owners] - marks - 1
    return decimals.reshape(cells.starts.shape).T, exponents.reshape(cells.starts.shape).T


def _traces(layout: Layout, table: list[_Column], line: int) -> tuple[tuple[int, ...], float | None, tuple[str, ...]]:
    """Columns that are traces (from 0), their interval, and remarks; ``line`` is that of the first row."""
    count, time = len(table), table[0].values
    if layout.columns is not None:
        chosen = tuple(k - 1 for k in layout.columns)
        if not chosen or len(set(chosen)) < len(chosen) or not set(chosen) <= set(range(count)):
            raise FormatError(f"columns {list(layout.columns)}: give each column once, counted from 1 to {count}")
        return chosen, layout.dt, ()
    if count < 2 or len(time) < 3 or not np.isfinite(time).all() or not np.all(np.diff(time) > 0):
        return tuple(range(count)), layout.dt, ()

    step, unit = float((time[-1] - time[0]) / (len(time) - 1)), _last_digit(table[0])
    how = f"choose the traces with --columns {','.join(map(str, range(2, min(count, 4) + 1)))}"
    _check_uniform(time, step, unit, line, how)
    if layout.dt is not None and abs(layout.dt - step) > 2 * unit / (len(time) - 1) + 1e-6 * step:
        raise FormatError(
            f"dt is {layout.dt:g} s but column 1 has steps of {step:.7g}; if it is no time in seconds, {how}"
        )
    return tuple(range(1, count)), step, (f"column 1 is time, in steps of {step:.7g} s",)


def _last_digit(time: _Column) -> float:
    """Value of the largest number's last digit, as if it had all significant digits that any number has."""
    size = np.abs(time.values)
    magnitude = np.floor(np.log10(size, where=size > 0, out=np.zeros(len(size))))
    significant = time.decimals + 1 + np.where(time.exponents | (size == 0), 0, magnitude)
    return float(10.0 ** (magnitude[size.argmax()] + 1 - significant[size > 0].max()))


def _check_uniform(time: NDArray[Any], step: float, unit: float, line: int, how: str) -> None:
    """Raise FormatError if time leaves the straight line between its ends by more than its rounding."""
    size, rounding = len(time), np.finfo(float).eps * np.abs(time).max()
    summed = min(size * rounding, step / 1000)  # error of t += dt, printed with all digits
    # A lost sample shows as half a step or more, and counts as such however few digits are printed.
    allowed = min(unit * 1.000001 + 4 * rounding + summed, step / 4)
    if np.abs(time - (time[0] + step * np.arange(size))).max() > allowed:
        steps = np.diff(time)
        odd = int(np.abs(steps - np.median(steps)).argmax()) + 1
        raise FormatError(
            f"column 1 increases like time but not uniformly: steps of {steps.min():.7g} to "
            f"{steps.max():.7g}, see line {line + odd}. Resample it; or, to go on as it is, {how} (and --dt)"
        )


def _style(cells: _Cells, k: int, column: _Column) -> _Style:
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
    return _Style(lead, width, conversion.upper() if letter.isupper() else conversion, letter)


def _alignment(cells: _Cells, k: int) -> tuple[str, int]:
    """What precedes a cell, and the width it is right-justified to: 0 unless all fields have one width."""
    begins = cells.begins(k)
    gap = cells.codes[begins[0] : cells.starts[0, k]].tobytes().decode("ascii")
    widths = cells.ends[:, k] - begins
    if np.any(widths != widths[0]):
        return gap, 0
    lead = gap.rstrip(" ") or (" " if k else "")
    return lead, int(widths[0]) - len(lead)


def _remark(styles: dict[int, _Style]) -> tuple[str, ...]:
    general = [str(k + 1) for k, style in styles.items() if style.conversion[-1] in "gG"]
    if not general:
        return ()
    named = ", ".join(general[:8]) + (", ..." if len(general) > 8 else "")
    return (f"integer columns or mixed notation (column {named}): written with 7 significant digits or more",)


def _rows(origin: _Origin, cells: _Cells, chunk: slice, samples: NDArray[np.float64]) -> bytes:
    """Some rows as they are written, line ends included."""
    traces = dict(zip(origin.styles, samples, strict=True))
    following = np.append(cells.lines[1:], len(cells.codes))
    pieces = [
        _fields(origin, cells, chunk, k, traces[k])
        if k in traces
        else _slices(origin.body, cells.begins(k)[chunk], cells.ends[chunk, k])
        for k in range(cells.starts.shape[1])
    ]
    pieces.append(_slices(origin.body, cells.ends[chunk, -1], following[chunk]))
    return "".join(map("".join, zip(*pieces, strict=True))).encode("ascii")


def _slices(body: bytes, begins: NDArray[np.int64], ends: NDArray[np.int64]) -> list[str]:
    first = int(begins[0])
    text = body[first : int(ends[-1])].decode("ascii")
    return [text[i:j] for i, j in zip((begins - first).tolist(), (ends - first).tolist(), strict=True)]


def _fields(origin: _Origin, cells: _Cells, chunk: slice, k: int, samples: NDArray[np.float64]) -> list[str]:
    """The fields of a trace; cells that were and are no finite number stay as they were spelled."""
    style = origin.styles[k]
    fields = style.write(samples, origin.mark)
    for row in np.flatnonzero(~np.isfinite(samples)).tolist():
        spelled = cells.text(chunk.start + row, k)
        if "n" in spelled.lower():
            fields[row] = style.lead + spelled.rjust(style.width)
    return fields
