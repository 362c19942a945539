"""WAV through SciPy: one trace a channel, PCM kept as PCM."""

from __future__ import annotations

import io
import struct
import warnings
from dataclasses import dataclass

import numpy as np

from wavefilt.arrays import DType
from wavefilt.errors import FormatError, reason
from wavefilt.io.layout import Layout
from wavefilt.recording import Recording


@dataclass(frozen=True)
class Origin:
    rate: int
    dtype: DType
    mono: bool


def decode(data: bytes, layout: Layout, format: str) -> Recording:
    """Channels as traces, in the numbers SciPy gives; unsigned 8-bit PCM is centred on 0."""
    from scipy.io import wavfile

    layout.only("wav")
    _check_chunks(data)
    try:
        with warnings.catch_warnings(record=True) as said:
            warnings.simplefilter("always", wavfile.WavFileWarning)
            # chunks with text about the recording are skipped, which the note below says
            warnings.filterwarnings("ignore", "Chunk", wavfile.WavFileWarning)
            rate, samples = wavfile.read(io.BytesIO(data))
    except Exception as error:  # SciPy raises whatever its parsing of a damaged header runs into
        raise FormatError(f"damaged or unsupported WAV file ({reason(error)})") from error
    if samples.size == 0 or rate <= 0:
        raise FormatError(f"WAV file with {samples.size} samples at {rate} Hz")
    origin = Origin(rate, samples.dtype, samples.ndim == 1)
    notes = [str(warning.message) for warning in said]
    notes += ["only format and samples of a WAV file are written back, no other chunks"]
    if samples.dtype.kind in "iu":
        notes.append(f"samples are rounded to {8 * samples.dtype.itemsize}-bit PCM (24-bit is read and written as 32)")
    traces = samples.reshape(len(samples), -1).T
    if samples.dtype.kind == "u":
        traces = traces.astype(np.int16) - 128
    return Recording(np.ascontiguousarray(traces), (1 / rate,) * len(traces), "wav", origin, notes=tuple(notes))


def _check_chunks(data: bytes) -> None:
    """Raise FormatError if a chunk claims more than the file holds, before SciPy takes memory for it."""
    order = ">" if data[:4] == b"RIFX" else "<"
    at = 12
    while at + 8 <= len(data):
        (size,) = struct.unpack_from(order + "I", data, at + 4)
        if at + 8 + size > len(data):
            name = data[at : at + 4].decode("latin-1")
            raise FormatError(f"chunk {name!r} claims {size} bytes; the file holds {len(data) - at - 8} more")
        at += 8 + size + size % 2


def encode(recording: Recording) -> bytes:
    """A WAV file of the same sampling rate and sample type; integers are rounded and limited to their range.

    Raises FormatError for a rate that the header cannot hold.
    """
    from scipy.io import wavfile

    origin: Origin = recording.origin
    samples = recording.samples.T
    if origin.dtype.kind == "u":
        samples = samples + 128
    if origin.dtype.kind in "iu":
        limits = np.iinfo(origin.dtype)
        samples = np.clip(np.rint(samples), limits.min, limits.max)
    out = io.BytesIO()
    try:
        wavfile.write(out, origin.rate, (samples[:, 0] if origin.mono else samples).astype(origin.dtype))
    except (struct.error, ValueError) as error:
        what = f"{samples.shape[1]} channels at {origin.rate} Hz"
        raise FormatError(f"{what} do not fit into a WAV header; is the file damaged? ({reason(error)})") from error
    return out.getvalue()
