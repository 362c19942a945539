"""Recordings of any format written as npy and WAV, and what conversions have in common."""

from __future__ import annotations

import io
import struct
from typing import TYPE_CHECKING

import numpy as np

from wavefilt.arrays import Array
from wavefilt.errors import FormatError

if TYPE_CHECKING:
    from wavefilt.recording import Recording


def convert(recording: Recording, format: str) -> bytes:
    """The recording as npy or WAV. Raises FormatError where that cannot hold it."""
    samples = equal_lengths(recording, format)
    if format == "npy":
        out = io.BytesIO()
        np.lib.format.write_array(out, samples, allow_pickle=False)
        return out.getvalue()
    return _wav(samples, known_interval(recording, format))


def equal_lengths(recording: Recording, format: str) -> Array:
    """The samples as one array. Raises FormatError for traces of several lengths, and complex ones."""
    lengths = {len(trace) for trace in recording.traces}
    if len(lengths) > 1:
        raise FormatError(f"{format} holds traces of one length, not of {min(lengths)} to {max(lengths)} samples")
    samples = np.asarray(recording.traces)
    if samples.dtype.kind == "c" and format != "npy":
        raise FormatError(f"{format} holds no complex samples")
    return samples


def known_interval(recording: Recording, format: str) -> float:
    """The sampling interval of all traces. Raises FormatError where there is none."""
    known = set(recording.intervals)
    if len(known) != 1 or None in known:
        raise FormatError(f"{format} needs one sampling interval of all traces, in seconds: the option dt gives it")
    return float(next(iter(known)) or 0)


def stored(samples: Array, kinds: tuple[str, ...]) -> Array:
    """The samples in the first of these dtypes that holds all values of theirs, else in the last."""
    return samples.astype(next((k for k in kinds if np.can_cast(samples.dtype, k)), kinds[-1]))


def _wav(samples: Array, interval: float) -> bytes:
    rate = round(1 / interval)
    if not 0 < rate < 1 << 32 or abs(rate * interval - 1) > 1e-6:
        raise FormatError(f"WAV holds whole sampling rates in Hz, not {1 / interval:.7g}")
    content = stored(samples.T, ("<i2", "<i4", "<f4", "<f8"))
    width, channels, tag = content.dtype.itemsize, len(samples), 3 if content.dtype.kind == "f" else 1
    if content.nbytes > (1 << 32) - 64 or channels >= 1 << 16:
        raise FormatError(f"{content.nbytes} bytes of {channels} channels do not fit in a WAV file")
    head = struct.pack("<2H2I2H", tag, channels, rate, rate * channels * width, channels * width, 8 * width)
    chunks = b"WAVEfmt " + struct.pack("<I", 16) + head + b"data" + struct.pack("<I", content.nbytes)
    return b"RIFF" + struct.pack("<I", len(chunks) + content.nbytes) + chunks + content.tobytes()
