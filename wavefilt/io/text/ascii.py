"""Plain text (ASCII) recordings: rows are samples in time, columns are traces.

Kept byte for byte: a byte order mark, leading comment lines, one line of column names, time and every other
column that is not a trace, line ends, blanks at the ends of lines, trailing blank lines. Samples are written
with the decimals and the notation of their column, right-justified where its fields have one width, else
behind the separators of the first row. A column without decimals (integers), or of mixed notation, is
written with 7 significant digits, or as many as the file has: denoised samples are no integers.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np

from wavefilt.arrays import Floats
from wavefilt.errors import FormatError, LayoutError, Words, options
from wavefilt.io.detection import HEAD, looks_like_text
from wavefilt.io.layout import Layout
from wavefilt.io.text.cells import blocks, parse, scan
from wavefilt.io.text.number_format import ColumnFormat, TableFormat, remark, write_rows
from wavefilt.io.text.table import delimiter_of, parts, refuse_ambiguous_commas, refuse_line
from wavefilt.recording import Recording

_UNIFIED = re.compile(rb"(?im)^[ \t]*\d+[ \t]*#[^\n]*(shot|geophone|point|sensor|electrode|measurement|data)")


@dataclass(frozen=True)
class _Origin:
    """The file in three parts (before, in, and after the rows), and how its traces are written."""

    head: bytes
    body: bytes
    tail: bytes
    delimiter: str
    mark: str
    columns: dict[int, ColumnFormat]
    """Format of each trace, by its column counted from 0, in the order of the traces."""


def decode(data: bytes, layout: Layout, format: str) -> Recording:
    """The recording in a text file: float64 traces in the file's own units, their interval in seconds.

    Column 1 is time, in seconds, if it is one of several, has 3 rows or more, and increases in equal steps as
    far as its printed digits tell; ``layout.columns`` chooses the traces instead. NaN cells are gaps.

    Raises FormatError, naming the line, for rows of different lengths, cells that are empty or not numbers,
    fewer than 2 rows, time that is not uniform or contradicts ``layout.dt``, and ambiguous commas.
    """
    layout.only("ascii", "columns", "delimiter", "dt")
    _refuse_other_files(data)
    head, body, tail = parts(data)
    delimiter = delimiter_of(body, layout.delimiter)
    mark = "," if delimiter != "," and b"," in body else "."
    traces, formats = _parsed(body, delimiter, mark, head.count(b"\n") + 1)
    if layout.delimiter is None:
        refuse_ambiguous_commas(body, len(traces), delimiter, mark)
    if traces.shape[1] < 2:
        raise FormatError("too short: one row of numbers is not a recording (rows are samples, columns traces)")

    chosen, interval, notes = _traces(layout, traces, formats, head.count(b"\n") + 1)
    columns = {k: formats.column(k) for k in chosen}
    adjacent = chosen == tuple(range(chosen[0], len(traces)))
    rows = traces[chosen[0] :] if adjacent else traces[list(chosen)]
    origin = _Origin(head, body, tail, delimiter, mark, columns)
    return Recording(rows, (interval,) * len(chosen), format, origin, notes=notes + remark(columns))


def _parsed(body: bytes, delimiter: str, mark: str, first: int) -> tuple[Floats, TableFormat]:
    """The numbers (columns, rows) and their formats; ``first`` is the line number of the first row."""
    traces, formats, done = np.empty((0, 0)), None, 0
    for block in blocks(body):
        cells = scan(block, delimiter)
        values = None if cells is None else parse(block, cells, delimiter, mark)
        if cells is None or values is None or (formats and values.shape[1] != len(traces)):
            refuse_line(first + done, block, len(traces), delimiter, mark)
        if formats is None:
            formats, columns, rows = TableFormat(cells), values.shape[1], body.count(b"\n") + 1
            # each cell takes two characters: where they are too few, some row is shorter, and found below
            traces = np.empty((columns, rows if 2 * columns * rows <= len(body) + 1 else 0))
        formats.add(cells, values, mark)
        if traces.size:
            traces[:, done : done + len(values)] = values.T
        done += len(values)
    assert formats is not None, "a body has a row"
    return traces, formats


def encode(recording: Recording) -> bytes:
    """The whole file with the samples of ``recording.traces``, everything else, and the text of gaps, as it was.

    Raises FormatError if the traces do not have the shape of those that were read.
    """
    origin: _Origin = recording.origin
    count, rows = len(origin.columns), origin.body.count(b"\n") + 1
    lengths = {len(trace) for trace in recording.traces}
    if len(recording.traces) != count or lengths != {rows}:
        raise FormatError(
            f"{len(recording.traces)} traces of {sorted(lengths)} samples: the file has {count} of {rows}"
        )
    samples = np.asarray(recording.traces, dtype=np.float64)
    written, done = [], 0
    for block in blocks(origin.body):
        cells = scan(block, origin.delimiter)
        assert cells is not None, "decode has accepted this body"
        written.append(write_rows(cells, origin.columns, origin.mark, samples[:, done : done + len(cells.lines)]))
        done += len(cells.lines)
    return b"".join([origin.head, b"\n".join(written), origin.tail])


def _refuse_other_files(data: bytes) -> None:
    """Raise FormatError for a file that contains no table of samples."""
    if not looks_like_text(data[:HEAD]):
        raise FormatError("not a text file" if data else "no samples: the file is empty")
    if _UNIFIED.search(data, 0, HEAD):
        raise FormatError("travel times or resistivities in the unified data format: no waveforms in this file")


def _traces(
    layout: Layout, table: Floats, formats: TableFormat, line: int
) -> tuple[tuple[int, ...], float | None, tuple[str, ...]]:
    """Columns that are traces (from 0), their interval, and remarks; ``line`` is that of the first row."""
    count, time = len(table), table[0]
    if layout.columns is not None:
        chosen = tuple(k - 1 for k in layout.columns)
        if not chosen or len(set(chosen)) < len(chosen) or not set(chosen) <= set(range(count)):
            raise LayoutError(options(columns=layout.columns), f": give each column once, counted from 1 to {count}")
        return chosen, layout.dt, ()
    if count < 2 or len(time) < 3 or not np.isfinite(time).all() or not np.all(np.diff(time) > 0):
        return tuple(range(count)), layout.dt, ()

    step, unit = float((time[-1] - time[0]) / (len(time) - 1)), formats.last_digit()
    how = options(columns=tuple(range(2, min(count, 4) + 1)))
    _check_uniform(time, step, unit, line, how)
    if layout.dt is not None and abs(layout.dt - step) > 2 * unit / (len(time) - 1) + 1e-6 * step:
        what = f" but column 1 has steps of {step:.7g}; if it is not time in seconds, choose the traces with "
        raise LayoutError(options(dt=layout.dt), what, how)
    return tuple(range(1, count)), step, (f"column 1 is time, in steps of {step:.7g} s",)


def _check_uniform(time: Floats, step: float, unit: float, line: int, how: Words) -> None:
    """Raise FormatError if time leaves the straight line between its ends by more than its rounding."""
    size, rounding = len(time), np.finfo(float).eps * np.abs(time).max()
    summed = min(size * rounding, step / 1000)  # error of t += dt, printed with all digits
    # A lost sample shows as half a step or more, and counts as such however few digits are printed.
    allowed = min(unit * 1.000001 + 4 * rounding + summed, step / 4)
    if np.abs(time - (time[0] + step * np.arange(size))).max() > allowed:
        steps = np.diff(time)
        odd = int(np.abs(steps - np.median(steps)).argmax()) + 1
        found = f"steps of {steps.min():.7g} to {steps.max():.7g}, see line {line + odd}"
        what = f"column 1 increases like time but not uniformly: {found}. Resample it; or, to go on as it is, choose "
        raise FormatError(what, "the traces with ", how, " (and ", options("dt"), ")")
