"""Reading and writing recordings: one module a format, found by content, never by the name of the file."""

from __future__ import annotations

import io
import os
import sys
import tempfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import BinaryIO, Protocol

from wavefilt.errors import FormatError
from wavefilt.io.detection import HEAD, recognise
from wavefilt.io.layout import Layout
from wavefilt.recording import Recording
from wavefilt.vocabulary import check

__all__ = ["FORMATS", "Layout", "encode", "read", "write_atomically"]


class Format(Protocol):
    """A module that reads and writes one format (or family)."""

    def decode(self, data: bytes, layout: Layout, format: str) -> Recording:
        """The recording in ``data``. Raises FormatError if it is damaged or does not fit ``layout``."""

    def encode(self, recording: Recording) -> bytes:
        """The bytes of the whole file, headers as they came."""


FORMATS: dict[str, str] = {
    "seg2": "seg2", "ascii": "text", "raw": "raw", "npy": "npy", "npz": "npy", "wav": "wav",
    "mseed": "waveform", "sac": "waveform", "gse2": "waveform", "segy": "waveform", "su": "waveform",
    "tspair": "waveform", "slist": "waveform", "obspy": "waveform",
}  # fmt: skip
"""Format names for ``format=`` and ``--format``, with the module that serves each; "obspy" asks ObsPy which."""
