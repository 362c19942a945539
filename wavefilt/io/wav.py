"""WAV: one trace a channel; samples are rewritten in place, PCM as PCM, and every other chunk is kept.

Layout after "Multimedia programming interface and data specifications 1.0" (IBM and Microsoft, 1991); RF64 after EBU
Tech 3306.
"""

from __future__ import annotations

import struct
from functools import partial
from typing import BinaryIO

import numpy as np

from wavefilt.arrays import Array, DType
from wavefilt.errors import FormatError
from wavefilt.io.base import Contents, Layout, Probe, known_interval
from wavefilt.io.sources import Codec, ContiguousFile, Places, StreamedFormat, rounded, smallest

PCM, FLOAT, EXTENSIBLE = 1, 3, 0xFFFE
IN_DS64 = 0xFFFFFFFF
"""Size of a chunk of RF64 that is too long for four bytes: the chunk ds64 holds it."""


class Wav(StreamedFormat):
    name, label, marks, endings, seismic = "wav", "WAV", rb"(?s)(RIFF|RIFX|RF64)....WAVE", (".wav",), False
    keeps = "samples, sampling rate in whole Hz"

    def open(self, file: BinaryIO, layout: Layout) -> ContiguousFile:
        """Open a file; PCM of 24 bits, and other sizes that NumPy lacks, is shifted left to the next size."""
        layout.only("wav")
        probe = Probe(file)
        order = ">" if probe.head.startswith(b"RIFX") else "<"
        chunks = _chunks(probe, order)
        if b"fmt " not in chunks or b"data" not in chunks or len(chunks[b"fmt "][2]) < 16:
            raise FormatError("WAV file without format or samples")
        tag, channels, rate, per_second, block, bits = struct.unpack_from(order + "2H2I2H", chunks[b"fmt "][2])
        if tag == EXTENSIBLE and len(chunks[b"fmt "][2]) >= 28:
            (tag,) = struct.unpack_from(order + "I", chunks[b"fmt "][2], 24)
        at, size, _ = chunks[b"data"]
        width = block // max(channels, 1)
        if not channels or block != channels * width or not 0 < bits <= 8 * width or per_second != rate * block:
            fields = f"{channels} channels of {bits} bits in blocks of {block} bytes at {rate} Hz"
            raise FormatError(f"WAV header that contradicts itself: {fields}, {per_second} bytes a second")
        if tag not in (PCM, FLOAT) or width > 8 or (tag == FLOAT and width not in (4, 8)):
            raise FormatError(f"WAV samples of {bits} bits in encoding {tag}; PCM (1) and IEEE floats (3) are read")
        if size < block or rate == 0:
            raise FormatError(f"WAV file with {size // block * channels} samples at {rate} Hz")
        stored, dtype, codec = _sample_type(order, tag, width)
        places = Places(at, stored, channels, size // block, channels, codec=codec)
        source = ContiguousFile(file, "wav", places, 1 / rate)
        source.dtype = dtype
        source.notes = (f"samples are rounded when written to {8 * width}-bit PCM",) if tag == PCM else ()
        return source

    def convert(self, contents: Contents) -> bytes:
        samples, interval = contents.samples, known_interval(contents, "WAV")
        rate = round(1 / interval)
        if not 0 < rate < 1 << 32 or abs(rate * interval - 1) > 1e-6:
            raise FormatError(f"WAV holds whole sampling rates in Hz, not {1 / interval:.7g}")
        content = smallest(samples.T, ("<i2", "<i4", "<f4", "<f8"), "WAV")
        width, channels, tag = content.dtype.itemsize, len(samples), FLOAT if content.dtype.kind == "f" else PCM
        if content.nbytes > (1 << 32) - 64 or channels >= 1 << 16:
            raise FormatError(f"{content.nbytes} bytes of {channels} channels do not fit in a WAV file")
        head = struct.pack("<2H2I2H", tag, channels, rate, rate * channels * width, channels * width, 8 * width)
        chunks = b"WAVEfmt " + struct.pack("<I", 16) + head + b"data" + struct.pack("<I", content.nbytes)
        return b"RIFF" + struct.pack("<I", len(chunks) + content.nbytes) + chunks + content.tobytes()


def _chunks(probe: Probe, order: str) -> dict[bytes, tuple[int, int, bytes]]:
    """Return, by the kind of chunk, where the first one begins, its size and its first bytes.

    Raises FormatError if a chunk claims more than the file holds.
    """
    found: dict[bytes, tuple[int, int, bytes]] = {}
    at = 12
    while at + 8 <= probe.size:
        name = probe.bytes(at, 4)
        (size,) = probe.unpack(order + "I", at + 4)
        if size == IN_DS64 and name == b"data" and b"ds64" in found:
            (size,) = probe.unpack(order + "Q", found[b"ds64"][0] + 8)
        left = probe.size - at - 8
        if size > left:
            raise FormatError(f"chunk {name.decode('latin-1')!r} claims {size} bytes; the file holds {left} more")
        found.setdefault(name, (at + 8, size, probe.bytes(at + 8, min(size, 40))))
        at += 8 + size + size % 2
    return found


def _sample_type(order: str, tag: int, width: int) -> tuple[DType, DType, Codec | None]:
    """Return the dtype of stored items, the dtype of samples, and the conversion between them."""
    if tag == FLOAT:
        return np.dtype(f"{order}f{width}"), np.dtype(f"{order}f{width}"), None
    if width == 1:  # unsigned: 128 is silence
        return np.dtype("u1"), np.dtype("i2"), Codec(partial(np.add, -128, dtype=np.int16), _unsigned)
    wide = np.dtype(f"{order}i{2 if width == 2 else 4 if width <= 4 else 8}")
    if wide.itemsize == width:
        return wide, wide, Codec(np.asarray, partial(rounded, dtype=wide))
    codec = Codec(partial(_widened, dtype=wide), partial(_narrowed, dtype=wide, width=width))
    return np.dtype(f"V{width}"), wide, codec


def _unsigned(samples: Array) -> Array:
    return rounded(samples + 128, np.dtype("u1"))


def _widened(stored: Array, dtype: DType) -> Array:
    """Return integers of another size as the upper bytes of a dtype of NumPy's."""
    width, wide = stored.dtype.itemsize, np.zeros((*stored.shape, dtype.itemsize), np.uint8)
    upper = slice(0, width) if dtype.byteorder == ">" else slice(-width, None)
    wide[..., upper] = np.ascontiguousarray(stored).view(np.uint8).reshape(*stored.shape, width)
    return wide.view(dtype)[..., 0]


def _narrowed(samples: Array, dtype: DType, width: int) -> Array:
    """Reverse `_widened`, rounding to the integers of that size."""
    step = 1 << 8 * (dtype.itemsize - width)
    most = (1 << 8 * width - 1) - 1
    integers = rounded(np.clip(samples / step, -most - 1, most), dtype)
    wide = np.ascontiguousarray(integers)[..., None].view(np.uint8)
    lower = slice(dtype.itemsize - width, None) if dtype.byteorder == ">" else slice(0, width)
    narrow = np.ascontiguousarray(wide[..., lower])
    return narrow.view(f"V{width}")[..., 0]
