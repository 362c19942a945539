"""Traces read and written in parts: what streaming (`wavefilt.denoise_file`) needs of a file format.

A format joins by a class with the members of `Source`, and one of `Target` that its `Source.create` makes.
"""

from __future__ import annotations

import os
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Protocol

import numpy as np

from wavefilt.arrays import Array, DType
from wavefilt.errors import FormatError, about, options
from wavefilt.io.dataset_paths import resolve
from wavefilt.io.detection import Probe
from wavefilt.io.layout import Layout
from wavefilt.io.registry import FORMATS, Format, folder_format, naming, recognised, resembled


class NotStreamed(FormatError):
    """A file of a format that cannot be read in parts."""


class Source(Protocol):
    """Traces of one length in a file, and where denoised ones may go. Called from one thread at a time."""

    format: str
    shape: tuple[int, int]
    """Traces, samples."""
    dtype: DType
    """As stored."""
    neighbours: int
    """Traces that lie in the same chunks of the file, and are best read and written together; 1 without chunks."""
    overhead: int
    """Bytes of memory that reading and writing take in addition to the samples requested."""
    interval: float | None
    """Sampling interval in seconds, None where the file does not say."""
    notes: tuple[str, ...]
    """What a user should know about reading or writing this file."""

    def read(self, rows: slice, first: int, out: Array) -> None:
        """Fill ``out`` (traces, samples), of a dtype of computation, with samples from ``first`` on.

        Raises OSError if the file has become shorter.
        """

    def check_unchanged(self) -> None:
        """Raise OSError if the file was written to since it was opened."""

    def create(self, path: Path, *, overwrite: bool) -> AbstractContextManager[Target]:
        """A file like this one for the result, which appears at ``path``, complete, on a normal exit."""

    def close(self) -> None:
        """Close the file."""


def read_all(source: Source) -> Array:
    """All traces, in the dtype of the file."""
    traces = np.empty(source.shape, source.dtype)
    source.read(slice(0, len(traces)), 0, traces)
    return traces


class Target(Protocol):
    """Where denoised traces go. Called from one thread at a time."""

    def write(self, rows: slice, first: int, values: Array) -> None:
        """Write values (traces, samples) from sample ``first`` on, in the dtype of the file."""


def open_source(path: str | os.PathLike[str], layout: Layout, format: str | None = None) -> Source:
    """Open a file, or ``path::dataset``, whose traces can be read in parts.

    Raises NotStreamed for other formats, FormatError for a damaged file, OSError if it cannot be read.
    """
    name, layout = resolve(path, layout)
    chosen = None
    try:
        chosen = folder_format(name, format) if os.path.isdir(name) else _detected(name, layout, format)
        if chosen is not None and chosen.open_source is not None:
            return chosen.open_source(name, layout)
        *others, last = FORMATS.where(lambda f: f.open_source)
        raise NotStreamed(
            f"only {', '.join(others)} and {last} files are streamed (",
            options("max_memory"),
            "); convert the file, or denoise it in memory",
        )
    except FormatError as error:
        place = name if chosen is None or chosen.open_source is None else naming(name, chosen.name, error)
        raise about(place, error) from error


def _detected(path: str, layout: Layout, format: str | None) -> Format | None:
    """The format asked for, raw where the layout says so, or the one found by content; None for a pipe."""
    with open(path, "rb", buffering=0) as file:
        if not file.seekable():
            return None
        probe = Probe(file)
        if format is None and layout.dtype is None:
            return recognised(probe) or resembled(probe, streamed=True)
        if probe.size == 0:
            raise FormatError("the file is empty")
        return FORMATS[format or "raw"]
