"""Traces read and written a part at a time: what `wavefilt.streaming` needs of a file format.

A format joins by a class with the members of `Source`, and one of `Target` that its `Source.create` makes.
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from wavefilt.errors import FormatError, reason
from wavefilt.io import detection
from wavefilt.io.layout import Layout
from wavefilt.io.paths import folder_of, parted


class NotStreamed(FormatError):
    """A file of a format that is not read a part at a time."""


class Source(Protocol):
    """Traces of one length in a file, and where denoised ones may go. Called from one thread at a time."""

    format: str
    shape: tuple[int, int]
    """Traces, samples."""
    dtype: np.dtype[Any]
    """As stored."""
    neighbours: int
    """Traces that lie in the same chunks of the file, and are best read and written together; 1 without chunks."""
    overhead: int
    """Bytes of memory that reading and writing take beside the samples asked for."""
    interval: float | None
    """Sampling interval in seconds, None where the file does not say."""
    notes: tuple[str, ...]
    """What a user should know of reading or writing this file."""

    def read(self, rows: slice, first: int, out: NDArray[Any]) -> None:
        """Fill ``out`` (rows, some samples), of a dtype of computation, with samples from ``first`` on.

        Raises OSError if the file has become shorter.
        """

    def check_unchanged(self) -> None:
        """Raise OSError if the file was written to since it was opened."""

    def create(self, path: Path, *, overwrite: bool) -> AbstractContextManager[Target]:
        """A file like this one for the result, which is at ``path`` once left without an error, and whole."""

    def close(self) -> None:
        """Let go of the file."""


class Target(Protocol):
    """Where denoised traces go. Called from one thread at a time."""

    def write(self, rows: slice, first: int, values: NDArray[Any]) -> None:
        """Write values (rows, some samples) from sample ``first`` on, in the dtype of the file."""


def open_source(path: str | os.PathLike[str], layout: Layout, format: str | None = None) -> Source:
    """A file, or ``path::dataset``, whose traces can be read a part at a time.

    Raises NotStreamed for other formats, FormatError for a damaged file, OSError if it cannot be read.
    """
    name, layout = parted(path, layout)
    try:
        return _opened(name, layout, format)
    except FormatError as error:
        raise type(error)(f"{name}: {reason(error).removeprefix(f'{name}: ')}") from error


def _opened(name: str, layout: Layout, format: str | None) -> Source:
    if os.path.isdir(name):
        from wavefilt.io.arrays.zarr import Store

        folder_of(name, format)
        return Store(name, layout)
    file = open(name, "rb", buffering=0)  # noqa: SIM115  # the source closes it
    try:
        chosen = _recognised(file, layout, format)
        if chosen in ("npy", "raw"):
            from wavefilt.io.arrays.flat import npy_source, raw_source

            file.seek(0)
            return npy_source(name, file, layout) if chosen == "npy" else raw_source(name, file, layout)
    except BaseException:
        file.close()
        raise
    file.close()
    if chosen in ("segy", "su"):
        from wavefilt.io.segy.traces import Traces

        return Traces(name, chosen, layout)
    if chosen == "hdf5":
        from wavefilt.io.arrays.hdf5 import Container

        return Container(name, layout)
    raise NotStreamed("only npy, raw (with its layout), SEG-Y, SU, HDF5 and Zarr are streamed (max_memory); convert "
                      "the file, or denoise it in memory")  # fmt: skip


def _recognised(file: Any, layout: Layout, format: str | None) -> str | None:
    """The format asked for or found by content, raw where a layout says so; None for one that cannot be told."""
    if not file.seekable():
        return None
    probe = detection.Probe(file)
    if probe.size == 0:
        raise FormatError("the file is empty")
    if format is not None or layout.dtype is not None:
        return format or "raw"
    found = detection.recognise(probe)
    if len(found) > 1:
        raise FormatError(f"could be {' or '.join(found)}; say which with --format")
    if not found and detection.starts_like_segy(probe):
        return "segy"
    return found[0] if found else None
