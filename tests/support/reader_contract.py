"""What a reader owes for any bytes: a recording or a clear error, soon, and in little memory.

`test_fuzz.py` holds the readers to it by hypothesis, `fuzz_readers.py` by coverage.
"""

from __future__ import annotations

import io
import time
import traceback
import tracemalloc
import warnings
import zipfile
import zlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple
from unittest import mock

import numpy as np

import wavefilt
from wavefilt.errors import FormatError
from wavefilt.io import FORMATS, Probe, encode
from wavefilt.io.arrays import hdf5
from wavefilt.io.obspy import recognition, waveforms
from wavefilt.recording import Recording

FINDINGS = Path(__file__).with_name("findings")
"""Files that broke the contract once, in a folder for each kind."""
NAME = "input.dat"
SECONDS = 1.0
"""For a file, and for each whole MiB of it."""
TIMES, CONSTANT = 10, 256 << 10
"""Memory that reading may take at its peak: so many times the file, plus so many bytes."""

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
}
"""Ways to read a file, and the options tried with each: the bytes alone decide which of them."""


class Broken(AssertionError):
    """The contract does not hold; ``what`` is the same for the same defect."""

    def __init__(self, what: str, story: str) -> None:
        super().__init__(f"{what}: {story}")
        self.what = what


class Read(NamedTuple):
    """What came of it: ``"read"`` or the error's message; seconds of reading; bytes at its peak, if measured."""

    story: str
    seconds: float
    memory: int = 0


def read_bytes(data: bytes, kind: str, *, memory: bool = True) -> Read:
    """Read bytes as a user's file is read, and encode the recording, if it is one.

    Raises Broken for an error that is no FormatError or does not name the file, for a recording that contradicts
    itself, for a warning, for more than a second (for each MiB), and for more memory than allowed. The memory of
    reading is that which Python and NumPy ask for; measuring it takes four times as long.
    """
    options = KINDS[kind][zlib.crc32(data) % len(KINDS[kind])]
    file = io.BytesIO(data)
    file.name = NAME
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        begin = time.process_time()
        try:
            with _traced(memory) as peak:
                story, recording = _read(file, options)
                seconds, taken = time.process_time() - begin, peak()
            if recording is not None:
                _check(recording)
        except Exception as error:
            raise Broken(_where(error), f"{type(error).__name__}: {error}") from error
    if said:
        raise Broken(f"warning of {Path(said[0].filename).name}", str(said[0].message))
    if seconds > SECONDS * max(len(data) >> 20, 1):
        raise Broken("slow", f"{seconds:.1f} s for {len(data)} bytes: {story}")
    if taken > TIMES * max(len(data), _unpacked(data)) + CONSTANT:
        raise Broken("memory", f"{taken} bytes at the peak for {len(data)}: {story}")
    return Read(story, seconds, taken)


@contextmanager
def _traced(wanted: bool) -> Iterator[Callable[[], int]]:
    """How much memory was in use at the peak so far, 0 if that is not wanted."""
    if not wanted:
        yield lambda: 0
        return
    tracemalloc.start()
    try:
        yield lambda: tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def _read(file: io.BytesIO, options: dict[str, object]) -> tuple[str, Recording | None]:
    try:
        return "read", wavefilt.read(file, **options)
    except FormatError as error:
        story = str(error)
        if not story.startswith(f"{NAME}: ") or len(story) < len(NAME) + 12 or story.endswith(("()", ": ")):
            raise Broken("error without a message", repr(story)) from error
        if len(story) > 3000 or not story.isprintable():
            raise Broken("error that is no line of text", repr(story)) from error
        return story, None


def _check(recording: Recording) -> None:
    """That it has samples and can be written, or says why not."""
    rows = recording.traces
    if len(rows) == 0 or len(rows) != len(recording.intervals) or any(np.ndim(row) != 1 for row in rows):
        raise Broken("a recording that is none", repr(recording))
    if min(map(len, rows)) == 0:
        raise Broken("traces without samples", repr(recording))
    try:
        encode(recording)
    except FormatError as error:
        if not str(error):
            raise Broken("error without a message", repr(error)) from error


def _where(error: Exception) -> str:
    """The kind of an error and the function of the library that it left."""
    if isinstance(error, Broken):
        return error.what
    ours = [f for f in traceback.extract_tb(error.__traceback__) if "/wavefilt/" in f.filename]
    return f"{type(error).__name__} in {Path(ours[-1].filename).name} {ours[-1].name}"


def _unpacked(data: bytes) -> int:
    """Bytes of the arrays in an archive; without limit where it is packed in a way that takes memory of its own."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            own = {entry.compress_type for entry in archive.infolist()} - {zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED}
            return 1 << 40 if own else sum(entry.file_size for entry in archive.infolist())
    except Exception:
        return 0


@contextmanager
def readers_alone() -> Iterator[None]:
    """Without ObsPy and h5py, whose own robustness is not ours: a file of theirs is an error once it is recognised.

    Raises Broken if one is handed to them that bears no mark of theirs.
    """

    def nobody(file: io.BytesIO) -> None:
        if isinstance(file, (str, bytes)):
            raise Broken("a name for ObsPy", repr(file))

    def elsewhere(data: bytes | io.BytesIO, layout: object, format: str) -> None:
        check, file = FORMATS[format].recognise, io.BytesIO(data) if isinstance(data, bytes) else data
        if check is None or not check(Probe(file)):
            raise Broken(f"unknown bytes handed over as {format}", repr(file.getvalue()[:40]))
        raise FormatError(f"a file of format {format}, read by another library")

    with (
        mock.patch.object(recognition, "recognised_by_obspy", nobody),
        mock.patch.object(waveforms, "decode", elsewhere),
        mock.patch.object(hdf5, "open_source", elsewhere),
    ):
        yield
