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
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wavefilt.errors import FormatError
from wavefilt.io.cells import Column, digits_of, parse, scan
from wavefilt.io.layout import Layout
from wavefilt.io.styles import Style, remark, style_of, write_rows
from wavefilt.io.table import blame, delimiter_of, parts, refuse_ambiguous_commas
from wavefilt.recording import Recording

__all__ = ["decode", "encode", "looks_like_text"]

_HEAD = 1 << 16
_CHUNK = 1 << 16  # rows formatted at a time: strings of all cells at once need ten times the memory of the file
_UNIFIED = re.compile(rb"(?im)^[ \t]*\d+[ \t]*#[^\n]*(shot|geophone|point|sensor|electrode|measurement|data)")


@dataclass(frozen=True)
class _Origin:
    """The file in three parts (before, in, and after the rows), and how its traces are written."""

    head: bytes
    body: bytes
    tail: bytes
    delimiter: str
    mark: str
    styles: dict[int, Style]
    """Style of each trace, by its column counted from 0, in the order of the traces."""


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
    _refuse_other_files(data)
    head, body, tail = parts(data)
    delimiter = delimiter_of(body, layout.delimiter)
    mark = "," if delimiter != "," and b"," in body else "."
    cells = scan(body, delimiter)
    values = None if cells is None else parse(body, cells, delimiter, mark)
    if cells is None or values is None:
        blame(head, body, delimiter, mark)
    if layout.delimiter is None:
        refuse_ambiguous_commas(body, cells, delimiter, mark)
    if len(values) < 2:
        raise FormatError("too short: one row of numbers is no recording (rows are samples, columns traces)")

    table = [Column(*column) for column in zip(values.T, *digits_of(cells, mark), strict=True)]
    chosen, interval, notes = _traces(layout, table, head.count(b"\n") + 1)
    styles = {k: style_of(cells, k, table[k]) for k in chosen}
    traces: Any = np.ascontiguousarray(values[:, list(chosen)].T)
    origin = _Origin(head, body, tail, delimiter, mark, styles)
    return Recording(traces, (interval,) * len(chosen), format, origin, notes=notes + remark(styles))


def encode(recording: Recording) -> bytes:
    """The whole file with the samples of ``recording.traces``, everything else as it came; gaps as spelled.

    Raises FormatError if the traces do not have the shape of those that were read.
    """
    origin: _Origin = recording.origin
    cells = scan(origin.body, origin.delimiter)
    assert cells is not None, "decode has accepted this body"
    count, rows = len(origin.styles), len(cells.lines)
    lengths = {len(trace) for trace in recording.traces}
    if len(recording.traces) != count or lengths != {rows}:
        raise FormatError(
            f"{len(recording.traces)} traces of {sorted(lengths)} samples: the file has {count} of {rows}"
        )
    samples = np.asarray(recording.traces, dtype=np.float64)
    chunks = (slice(first, min(first + _CHUNK, rows)) for first in range(0, rows, _CHUNK))
    written = [write_rows(cells, origin.styles, origin.mark, chunk, samples[:, chunk]) for chunk in chunks]
    return b"".join([origin.head, *written, origin.tail])


def _refuse_other_files(data: bytes) -> None:
    """Raise FormatError for a file that holds no table of samples."""
    if not looks_like_text(data[:_HEAD]):
        raise FormatError("not a text file" if data else "no samples: the file is empty")
    if _UNIFIED.search(data, 0, _HEAD):
        raise FormatError("travel times or resistivities in the unified data format: no waveforms in this file")


def _traces(layout: Layout, table: list[Column], line: int) -> tuple[tuple[int, ...], float | None, tuple[str, ...]]:
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


def _last_digit(time: Column) -> float:
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
