"""The contract of the readers: any bytes give a recording or a clear error, soon, and in little memory.

`test_reader_contract.py` checks it with hypothesis, `fuzz_readers.py` guided by coverage.
"""

from __future__ import annotations

import io
import os
import sys
import time
import tracemalloc
import warnings
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import numpy as np

import wavefilt

FINDINGS = Path(__file__).with_name("findings")
"""Files that violated the contract once, in a folder for each kind."""
NAME = "input.dat"
SECONDS = 1.0
"""Time limit of a file, and of each whole MiB of it."""
TIMES, CONSTANT = 10, 256 << 10
"""Limit of the memory at the peak: a multiple of the file's size, and a constant in bytes."""
OBSPY = 2 << 20
"""Bytes more where ObsPy was loaded before: its tests of formats, which stay, read up to 1 MiB of a line."""

KINDS: dict[str, tuple[dict[str, object], ...]] = {
    "detected": ({},),
    "seg2": ({"format": "seg2"}, {"format": "seg2", "dt": 0.002}),
    "ascii": (
        {"format": "ascii"},
        {"format": "ascii", "delimiter": ","},
        {"format": "ascii", "columns": (2,)},
        {"format": "ascii", "delimiter": " ", "dt": 0.5},
    ),
    "raw": tuple(
        {"format": "raw", "dtype": dtype, "endian": endian, "ns": ns}
        for dtype in ("f4", "f8", "i2", "i4")
        for endian in ("little", "big")
        for ns in (1, 3, 50)
    ),
    "npy": ({"format": "npy"}, {"format": "npy", "axis": 0}),
    "npz": ({"format": "npz"}, {"format": "npz", "component": "a"}),
    "wav": ({"format": "wav"},),
    "segy": ({"format": "segy"}, {"format": "su"}),
    "sac": ({"format": "sac"},),
}
"""Ways to read a file, and the options tried with each: the bytes alone decide which of them."""


class Broken(AssertionError):
    """The contract is violated."""


class Read(NamedTuple):
    """The outcome of reading: ``"read"`` or the error's message, and bytes at the peak if measured."""

    story: str
    memory: int


def read_bytes(data: bytes, kind: str, *, memory: bool = True) -> Read:
    """Read bytes as a user's file is read, and write the recording, if it is one.

    Raises Broken for an error that is no FormatError or does not name the file, for a recording that contradicts
    itself, for a warning, for more than a second (for each MiB), and for more memory than allowed. Measuring the
    memory, as counted by Python and NumPy, takes four times as long.
    """
    options = KINDS[kind][zlib.crc32(data) % len(KINDS[kind])]
    file = io.BytesIO(data)
    file.name = NAME
    taken = 0
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        begin = time.process_time()
        if memory:
            tracemalloc.start()
        try:
            story, recording = _read(file, options)
            seconds = time.process_time() - begin
            taken = tracemalloc.get_traced_memory()[1] if memory else 0
            if recording is not None:
                _check(recording)
        except Broken:
            raise
        except Exception as error:
            raise Broken("another error", f"{type(error).__name__}: {error}") from error
        finally:
            tracemalloc.stop()
    if caught:
        raise Broken(f"warning of {Path(caught[0].filename).name}", str(caught[0].message))
    if seconds > SECONDS * max(len(data) >> 20, 1):
        raise Broken("slow", f"{seconds:.1f} s for {len(data)} bytes: {story}")
    allowed = TIMES * max(len(data), _unpacked(data)) + CONSTANT + OBSPY * ("obspy.core" in sys.modules)
    if taken > allowed:
        raise Broken("memory", f"{taken} bytes at the peak for {len(data)}: {story}")
    return Read(story, taken)


def _read(file: io.BytesIO, options: dict[str, object]) -> tuple[str, wavefilt.Recording | None]:
    try:
        return "read", wavefilt.read(file, **options)
    except wavefilt.FormatError as error:
        story = str(error)
        if not story.startswith(f"{NAME}: ") or len(story) < len(NAME) + 12 or story.endswith(("()", ": ")):
            raise Broken("error without a message", repr(story)) from error
        if len(story) > 3000 or not story.isprintable():
            raise Broken("error that is no line of text", repr(story)) from error
        return story, None


def _check(recording: wavefilt.Recording) -> None:
    """Check that the recording has samples, and can be written or says why not."""
    rows = recording.traces
    if len(rows) == 0 or len(rows) != len(recording.intervals) or any(np.ndim(row) != 1 for row in rows):
        raise Broken("an inconsistent recording", repr(recording))
    if min(map(len, rows)) == 0:
        raise Broken("traces without samples", repr(recording))
    try:
        recording.write(os.devnull)
    except wavefilt.FormatError as error:
        if not str(error):
            raise Broken("error without a message", repr(error)) from error


def _unpacked(data: bytes) -> int:
    """Return the bytes of the arrays in an archive; no limit where decompressing takes memory of its own."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            usual = {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
            if {entry.compress_type for entry in archive.infolist()} - usual:
                return 1 << 40
            return sum(entry.file_size for entry in archive.infolist())
    except Exception:
        return 0


@contextmanager
def without_obspy() -> Iterator[None]:
    """Test our readers alone: without ObsPy and h5py, files of their formats are errors."""
    before = {name: sys.modules.get(name) for name in ("obspy", "h5py")}
    sys.modules.update(dict.fromkeys(before))  # None makes their import fail
    try:
        yield
    finally:
        for name, module in before.items():
            sys.modules.pop(name)
            if module is not None:
                sys.modules[name] = module
