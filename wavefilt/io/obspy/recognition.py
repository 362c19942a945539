"""Which of ObsPy's formats a file has, by ObsPy's own tests."""

from __future__ import annotations

import importlib.util
import io
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.metadata import entry_points
from typing import BinaryIO

from wavefilt.io.detection import Probe
from wavefilt.io.obspy.marks import MARKS

NEVER = ("PICKLE", "ALSEP", "SEGY", "SU")
"""Not asked: loading a pickle can run any program, the ALSEP readers claim files of random bytes, and SEG-Y and SU are
read by `wavefilt.io.segy.traces`, or refused."""


LONGEST = 1 << 20
"""Bytes that a test may read."""


def how_tried() -> str:
    """What the error for an unknown file says of ObsPy."""
    if importlib.util.find_spec("obspy"):
        return "what ObsPy recognises in an open file"
    return 'but not ObsPy\'s formats, which pip install "wavefilt[seismic]" adds'


class _Bounded(io.RawIOBase):
    """The file, of which no more than `LONGEST` bytes can be read: some tests read up to the end of a line."""

    def __init__(self, file: BinaryIO) -> None:
        self._file, self._left = file, LONGEST
        file.seek(0)

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0, /) -> int:
        return self._file.seek(offset, whence)

    def readinto(self, buffer: memoryview, /) -> int:  # type: ignore[override]
        if self._left <= 0:
            raise OSError("this is no line of text")
        content = self._file.read(min(len(buffer), self._left))
        self._left -= len(content)
        buffer[: len(content)] = content
        return len(content)


def recognised_by_obspy(file: BinaryIO) -> str | None:
    """Name (ObsPy's in lower case) of an open file's waveform format; None if it has none or ObsPy is missing."""
    for name, is_format in _tests().items():
        try:
            with without_warnings():
                if is_format(io.BufferedReader(_Bounded(file))):
                    return name.lower()
        except MemoryError:
            raise
        except Exception:  # third-party recognisers raise anything on bytes that are not theirs
            continue
    probe = Probe(file)
    return next((name for name, check in MARKS.items() if check(probe)), None)


@cache
def _tests() -> dict[str, Callable[[BinaryIO], bool]]:
    """ObsPy's test for each of its formats, and those of other packages that plug into it."""
    if importlib.util.find_spec("obspy") is None:
        return {}
    names = [plugin.name for plugin in entry_points(group="obspy.plugin.waveform")]
    found = {}
    for name in names:
        if not name.startswith(NEVER):
            (plugin,) = entry_points(group=f"obspy.plugin.waveform.{name}", name="isFormat")
            with without_warnings(), suppress(ImportError):
                found[name] = plugin.load()
    return found


def has_writer(format: str) -> bool:
    """Whether ObsPy, or a package that plugs into it, writes its format of this name."""
    return bool(entry_points(group=f"obspy.plugin.waveform.{format.upper()}", name="writeFormat"))


@contextmanager
def without_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
