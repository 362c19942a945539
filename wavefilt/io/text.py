"""Plain text (ASCII) recordings: rows are samples in time, columns are traces.

Kept byte for byte: a byte order mark, leading comment lines, one line of column names, time and every other
column that is not a trace, line ends, blanks at the ends of lines, trailing blank lines. Samples are written
with the decimals and the notation of their column, right-justified if its fields have one width, otherwise
after the separators of the first row. A column without decimals (integers), or of mixed notation, is
written with 7 significant digits, or as many as the file has: denoised samples are no integers.
"""

from __future__ import annotations

import codecs
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple, NoReturn

import numpy as np
from numpy.typing import NDArray

from wavefilt.arrays import Counts, Floats
from wavefilt.errors import FormatError, LayoutError
from wavefilt.io.base import HEAD, Contents, Format, Layout, Probe, equal_lengths, known_interval, looks_like_text

BLANKS = b" \t\r\n"
BLOCK, SHARE = (1 << 12, 1 << 16), 12
"""Characters of a table parsed at a time, in whole lines: parsing takes up to fifty times their memory, so a block is
this share of the table, within these limits."""
SIGNIFICANT = 7
LONGEST_LINE = 1 << 20
_COMMENTS = re.compile(rb"(?:[ \t\r\f\v]*+(?:(?:[#%!*>$]|//)[^\n]*+)?+(?:\n|\Z))*+")  # and blank lines
_DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "space": " ", "\\t": "\t"}
_DELIMITERS |= {symbol: symbol for symbol in ",;\t "}
_NUMBER = re.compile(r"[+-]?((\d+\.?\d*|\.\d+)([ed][+-]?\d+)?|nan|inf(inity)?)", re.IGNORECASE | re.ASCII)
_DECIMAL_COMMA = re.compile(r"[+-]?(\d+(,\d+)?([ed][+-]?\d+)?|nan|inf)", re.IGNORECASE | re.ASCII)
# Anything that begins like a number, so that a damaged first row is never taken for column names.
_NUMBERLIKE = re.compile(rb"(?i)(?<![^\s,;])([+-]?[.,]?\d|[+-]?(nan|inf)(?![^\s,;]))")
_UNIFIED = re.compile(rb"(?im)^[ \t]*\d+[ \t]*#[^\n]*(shot|geophone|point|sensor|electrode|measurement|data)")


@dataclass(frozen=True)
class Origin:
    """The file in three parts (before, in, and after the rows), and how its traces are written."""

    head: bytes
    body: bytes
    tail: bytes
    delimiter: str
    mark: str
    columns: dict[int, ColumnFormat]
    """Format of each trace, by its column counted from 0, in the order of the traces."""


class Ascii(Format):
    name, label, endings = "ascii", "ASCII", (".csv", ".txt")
    keeps = "samples of traces of equal length as columns with commas, after a column of time in seconds if known"

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
        if _UNIFIED.search(data, 0, HEAD):
            raise FormatError("travel times or resistivities in the unified data format: no waveforms in this file")
        head, body, tail = _parts(data)
        delimiter = _delimiter_of(body, layout.delimiter)
        mark = "," if delimiter != "," and b"," in body else "."
        traces, table = _parsed(body, delimiter, mark, head.count(b"\n") + 1)
        if layout.delimiter is None:
            _refuse_ambiguous_commas(body, len(traces), delimiter, mark)
        if traces.shape[1] < 2:
            raise FormatError("too short: one row of numbers is not a recording (rows are samples, columns traces)")
        chosen, interval, notes = _chosen_columns(layout, traces, table, head.count(b"\n") + 1)
        columns = {k: table.column(k) for k in chosen}
        general = [str(k + 1) for k, column in columns.items() if column.conversion[-1] in "gG"]
        if general:
            listed = ", ".join(general[:8]) + (", ..." if len(general) > 8 else "")
            digits = f"written with {SIGNIFICANT} significant digits or more"
            notes = (*notes, f"integer columns or mixed notation (column {listed}): {digits}")
        adjacent = chosen == tuple(range(chosen[0], len(traces)))
        rows = traces[chosen[0] :] if adjacent else traces[list(chosen)]
        origin = Origin(head, body, tail, delimiter, mark, columns)
        return Contents(rows, (interval,) * len(chosen), "ascii", origin, notes=notes)

    def write(self, contents: Contents) -> bytes:
        """Return the file with the samples of ``contents``; the text of gaps and of everything else is kept."""
        origin: Origin = contents.origin
        count, rows = len(origin.columns), origin.body.count(b"\n") + 1
        lengths = {len(trace) for trace in contents.traces}
        if len(contents.traces) != count or lengths != {rows}:
            found = f"{len(contents.traces)} traces of {sorted(lengths)} samples"
            raise FormatError(f"{found}: the file has {count} of {rows}")
        samples = np.asarray(contents.traces, dtype=np.float64)
        written, done = [], 0
        for block in _blocks(origin.body):
            cells = _scan(block, origin.delimiter)
            assert cells is not None, "`read` has accepted this body"
            written.append(_written(cells, origin, samples[:, done : done + len(cells.lines)]))
            done += len(cells.lines)
        return b"".join([origin.head, b"\n".join(written), origin.tail])

    def convert(self, contents: Contents) -> bytes:
        samples, intervals = equal_lengths(contents, "ASCII"), set(contents.intervals)
        if samples.dtype.kind == "c":
            raise FormatError("ASCII holds no complex samples")
        digits = 8 if np.can_cast(samples.dtype, np.float32) else 16
        names, columns = [f"trace_{i + 1}" for i in range(len(samples))], list(samples)
        forms = [f"%.{digits}e"] * len(samples)
        if len(intervals) == 1 and None not in intervals:
            step = known_interval(contents, "ASCII")
            names, columns = ["time_s", *names], [step * np.arange(samples.shape[1]), *columns]
            forms = ["%.12e", *forms]
        form = ",".join(forms)
        return "\n".join([",".join(names), *(form % row for row in zip(*columns, strict=True)), ""]).encode()


# ------------------------------------------------------------------------------------------------ cells of a table


class Cells(NamedTuple):
    """Character codes of a block, where its lines begin, and where its cells (rows, columns) begin and end."""

    codes: NDArray[np.uint8]
    lines: Counts
    starts: Counts
    ends: Counts

    def text(self, row: int, column: int) -> str:
        """Return the text of one cell."""
        return self.codes[self.starts[row, column] : self.ends[row, column]].tobytes().decode("ascii")

    def widths(self) -> Counts:
        """Return the characters of every field (rows, columns), separator included."""
        return self.ends - np.column_stack([self.lines, self.ends[:, :-1]])


def _blocks(body: bytes) -> Iterator[bytes]:
    """Yield the lines of the body, in blocks, without the line end after the last line of each."""
    at, size = 0, min(max(len(body) // SHARE, BLOCK[0]), BLOCK[1])
    while at <= len(body):
        end = body.find(b"\n", at + size)
        end = len(body) if end < 0 else end
        yield body[at:end]
        at = end + 1


def _scan(block: bytes, delimiter: str) -> Cells | None:
    """Return lines and cells of a block; None if rows differ in length, or there are empty cells."""
    codes = np.frombuffer(block, np.uint8)
    blank = _members(BLANKS + delimiter.encode())[codes]
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


def _values(block: bytes, cells: Cells, delimiter: str, mark: str) -> Floats | None:
    """Return the numbers (rows, columns); None if a cell is not a number."""
    allowed = _members(b"0123456789+-eEdDnaNAifIFtyTY" + BLANKS + f"{delimiter}{mark}".encode())
    if not allowed[cells.codes].all():
        return None
    plain = block.translate(bytes.maketrans(b"dD" + f"{delimiter}{mark}".encode(), b"ee ."))
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)
        try:
            numbers: Floats = np.fromstring(plain, dtype=np.float64, sep=" ")
        except (DeprecationWarning, ValueError):
            return None
    # A cell such as 1-2 is read as two numbers, none as less than one: equal counts mean one number per cell.
    return numbers.reshape(cells.starts.shape) if numbers.size == cells.starts.size else None


def _members(characters: bytes) -> NDArray[np.bool_]:
    """Return a table of 256: which codes are among the characters."""
    table = np.zeros(256, dtype=bool)
    table[list(characters)] = True
    return table


def _parsed(body: bytes, delimiter: str, mark: str, first: int) -> tuple[Floats, TableFormat]:
    """Return the numbers (columns, rows) and their formats; ``first`` is the line number of the first row."""
    traces, table, done = np.empty((0, 0)), None, 0
    for block in _blocks(body):
        cells = _scan(block, delimiter)
        values = None if cells is None else _values(block, cells, delimiter, mark)
        if cells is None or values is None or (table and values.shape[1] != len(traces)):
            _refuse_line(first + done, block, len(traces), delimiter, mark)
        if table is None:
            table, columns, rows = TableFormat(cells), values.shape[1], body.count(b"\n") + 1
            # each cell takes two characters: if they are too few, some row is shorter, which is found below
            traces = np.empty((columns, rows if 2 * columns * rows <= len(body) + 1 else 0))
        table.add(cells, values, mark)
        if traces.size:
            traces[:, done : done + len(values)] = values.T
        done += len(values)
    assert table is not None, "a body has a row"
    return traces, table


# ---------------------------------------------------------------------------------------------- formats of columns


@dataclass(frozen=True)
class ColumnFormat:
    """The format of one column: separator, width, printf conversion, letter of the exponent."""

    lead: str
    width: int
    conversion: str
    letter: str

    def fields(self, samples: Floats, mark: str) -> list[str]:
        """Return one field per sample, separator included."""
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
        self._widths = cells.widths()[0]
        self._one_width = np.ones(columns, np.bool_)
        self._letters = ["e"] * columns
        self._decimals, self._exponent_decimals = np.zeros((2, columns), np.int64)
        self._exponents, self._finite_with, self._finite_without = np.zeros((3, columns), np.bool_)
        self._largest = np.zeros(columns)
        self._significant = 0.0

    def add(self, cells: Cells, values: Floats, mark: str) -> None:
        """Take in the next block, and its numbers (rows, columns)."""
        decimals, exponents = _digits(cells, mark)
        with_exponent, finite = exponents.any(axis=0), np.isfinite(values)
        for k in np.flatnonzero(with_exponent & ~self._exponents).tolist():
            self._letters[k] = next(c for c in cells.text(int(exponents[:, k].argmax()), k) if c in "eEdD")
        self._exponents |= with_exponent
        self._finite_with |= (finite & exponents).any(axis=0)
        self._finite_without |= (finite & ~exponents).any(axis=0)
        self._decimals = np.maximum(self._decimals, decimals.max(axis=0))
        self._exponent_decimals = np.maximum(self._exponent_decimals, decimals.max(axis=0, where=exponents, initial=0))
        self._largest = np.maximum(self._largest, np.abs(values).max(axis=0, where=finite, initial=0))
        self._one_width &= (cells.widths() == self._widths).all(axis=0)
        magnitude = _magnitude(np.abs(values[:, 0]))
        shown = decimals[:, 0] + 1 + np.where(exponents[:, 0], 0, magnitude)
        self._significant = max(self._significant, float(shown.max(where=values[:, 0] != 0, initial=0)))

    def last_digit(self) -> float:
        """Return the value of the last digit of column 1's largest number, printed with the most digits of any."""
        return float(10.0 ** (_magnitude(self._largest[:1])[0] + 1 - self._significant))

    def column(self, k: int) -> ColumnFormat:
        """Return the format of a column: notation of its finite cells, letter of the exponent, alignment."""
        digits, exponent, letter = int(self._decimals[k]), bool(self._exponents[k]), self._letters[k]
        all_alike = self._finite_with[k] and not self._finite_without[k] if exponent else self._finite_without[k]
        conversion = f".{digits}{'e' if exponent else 'f'}"
        if not digits or not all_alike:
            whole = 0 if exponent else len(f"{self._largest[k]:.0f}")
            known = int(self._exponent_decimals[k]) + 1
            conversion = f".{min(max(SIGNIFICANT, whole, known), 17)}g"
        begin = int(self._ends[k] - self._widths[k])
        lead, width = self._row[begin : int(self._starts[k])], 0
        if self._one_width[k]:  # all fields are right-justified
            lead = lead.rstrip(" ") or (" " if k else "")
            width = int(self._widths[k]) - len(lead)
        return ColumnFormat(lead, width, conversion.upper() if letter.isupper() else conversion, letter)


def _digits(cells: Cells, mark: str) -> tuple[Counts, NDArray[np.bool_]]:
    """Return the digits after the decimal mark of each cell (rows, columns), and whether it has an exponent."""
    starts, ends = cells.starts.ravel(), cells.ends.flatten()
    decimals, exponents = np.zeros(starts.size, np.int64), np.zeros(starts.size, np.bool_)
    letters = np.flatnonzero(_members(b"eEdD")[cells.codes])
    owners = np.searchsorted(starts, letters, "right") - 1
    ends[owners], exponents[owners] = letters, True
    marks = np.flatnonzero(cells.codes == ord(mark))
    owners = np.searchsorted(starts, marks, "right") - 1
    decimals[owners] = ends[owners] - marks - 1
    return decimals.reshape(cells.starts.shape), exponents.reshape(cells.starts.shape)


def _magnitude(size: Floats) -> Floats:
    """Return the decimal exponent of each number, 0 for zero."""
    return np.floor(np.log10(size, where=size > 0, out=np.zeros(len(size))))


def _written(cells: Cells, origin: Origin, samples: Floats) -> bytes:
    """Return a block of the table with new samples (columns of ``origin``, rows)."""
    traces = dict(zip(origin.columns, samples, strict=True))
    text = cells.codes.tobytes().decode("ascii")

    def slices(begins: Counts, ends: Counts) -> list[str]:
        return [text[i:j] for i, j in zip(begins.tolist(), ends.tolist(), strict=True)]

    fields = []
    for k in range(cells.starts.shape[1]):
        if k not in traces:
            fields.append(slices(cells.ends[:, k - 1] if k else cells.lines, cells.ends[:, k]))
            continue
        column = origin.columns[k]
        fields.append(column.fields(traces[k], origin.mark))
        for row in np.flatnonzero(~np.isfinite(traces[k])).tolist():
            old = cells.text(row, k)
            if "n" in old.lower():  # neither the sample nor the old cell is finite: the old text stays
                fields[k][row] = column.lead + old.rjust(column.width)
    fields.append(slices(cells.ends[:, -1], np.append(cells.lines[1:], len(cells.codes))))
    return "".join(map("".join, zip(*fields, strict=True))).encode("ascii")


# ----------------------------------------------------------------------------------------- rows and their delimiter


def _parts(data: bytes) -> tuple[bytes, bytes, bytes]:
    """Return the lines before the rows, the rows without the last line end, and the rest."""
    if data.count(b"\r") != data.count(b"\r\n"):
        raise FormatError("carriage returns without line feeds: convert the line ends to LF or CRLF")
    at = 0
    while at + LONGEST_LINE < len(data):
        last = data.rfind(b"\n", at, at + LONGEST_LINE + 1)
        if last < 0:
            length = data.find(b"\n", at) % (len(data) + 1) - at  # not found: -1, the end of the data
            number = data[:at].count(10) + 1
            what = f"line {number} has {length} characters, more than {LONGEST_LINE}"
            raise FormatError(f"{what}: rows must be samples and columns traces")
        at = last + 1
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


def _refuse_line(first: int, block: bytes, width: int, delimiter: str, mark: str) -> NoReturn:
    """Raise FormatError for the first line of a block that is not a row of numbers like those above.

    ``first`` is the number of its first line, ``width`` the cells of the rows above, 0 if there are none.
    """
    pattern = r"[ \t\r]+" if delimiter == " " else re.escape(delimiter)
    for number, line in enumerate(block.split(b"\n"), first):
        row = [cell.strip(" \t\r") for cell in re.split(pattern, line.decode("latin-1").strip(" \r"))]
        if not "".join(row):
            raise FormatError(f"line {number}: a blank line between the rows")
        bad = [cell for cell in row if not _is_number(cell, mark)]
        if len(bad) == len(row):
            _refuse(number, line, "is not a row of numbers")
        if "" in bad:
            _refuse(number, line, "has an empty cell")
        if bad:
            comma = " (the decimal mark is a comma in this file)" if mark == "," else ""
            _refuse(number, bad[0].encode("latin-1"), f"is not a number{comma}; comments begin with #")
        if width and len(row) != width:
            _refuse(number, line, f"has {len(row)} cells where the rows above have {width}")
        width = len(row)
    raise FormatError("no rows of numbers")  # pragma: no cover


def _is_number(cell: str, mark: str) -> bool:
    if mark == ",":
        cell = cell.replace(".", "_").replace(",", ".")
    return _NUMBER.fullmatch(cell) is not None


def _refuse(number: int, text: bytes, what: str) -> NoReturn:
    """Raise FormatError with the number of the line, counted from 1, and the text shortened."""
    try:
        shown = text.strip().decode("utf-8")
    except UnicodeDecodeError:
        shown = text.strip().decode("latin-1")
    shown = shown if len(shown) <= 40 else shown[:37] + "..."
    raise FormatError(f"line {number}: {shown!r} {what}")


# ----------------------------------------------------------------------------------------------------- time column


def _chosen_columns(
    layout: Layout, columns: Floats, table: TableFormat, line: int
) -> tuple[tuple[int, ...], float | None, tuple[str, ...]]:
    """Return the columns that are traces (from 0), their interval, and remarks; ``line`` is that of the first row."""
    count, time = len(columns), columns[0]
    if layout.columns is not None:
        chosen = tuple(k - 1 for k in layout.columns)
        if not chosen or len(set(chosen)) < len(chosen) or not set(chosen) <= set(range(count)):
            raise LayoutError(f"`columns={layout.columns}`: give each column once, counted from 1 to {count}")
        return chosen, layout.dt, ()
    if count < 2 or len(time) < 3 or not np.isfinite(time).all() or not np.all(np.diff(time) > 0):
        return tuple(range(count)), layout.dt, ()

    step, unit = float((time[-1] - time[0]) / (len(time) - 1)), table.last_digit()
    _check_uniform(time, step, unit, line)
    if layout.dt is not None and abs(layout.dt - step) > 2 * unit / (len(time) - 1) + 1e-6 * step:
        contradiction = f"`dt={layout.dt}` contradicts column 1, which has steps of {step:.7g}"
        raise LayoutError(f"{contradiction}; if it is not time in seconds, give the traces with `columns`")
    return tuple(range(1, count)), step, (f"column 1 is time, in steps of {step:.7g} s",)


def _check_uniform(time: Floats, step: float, unit: float, line: int) -> None:
    """Raise FormatError if time leaves the straight line between its ends by more than its rounding."""
    size, rounding = len(time), np.finfo(float).eps * np.abs(time).max()
    summed = min(size * rounding, step / 1000)  # error of t += dt, printed with all digits
    # A lost sample shows as half a step or more, and counts as such however few digits are printed.
    allowed = min(unit * 1.000001 + 4 * rounding + summed, step / 4)
    if np.abs(time - (time[0] + step * np.arange(size))).max() > allowed:
        steps = np.diff(time)
        odd = int(np.abs(steps - np.median(steps)).argmax()) + 1
        found = f"steps of {steps.min():.7g} to {steps.max():.7g}, see line {line + odd}"
        what = f"column 1 increases like time but not uniformly: {found}"
        raise FormatError(f"{what}. Resample it; or, to go on as it is, give the traces with `columns` (and `dt`)")
