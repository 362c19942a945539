"""WAV: one trace a channel; samples are rewritten in place, PCM as PCM, and every other chunk is kept.

Layout after "Multimedia programming interface and data specifications 1.0" (IBM and Microsoft, 1991), and of RF64 after
EBU Tech 3306.
"""

from __future__ import annotations

import struct
from functools import partial
from typing import BinaryIO

import numpy as np

from wavefilt.arrays import Array, DType
from wavefilt.errors import FormatError
from wavefilt.io.arrays.contiguous import Codec, ContiguousFile, Places, rounded
from wavefilt.io.detection import Probe
from wavefilt.io.file_source import opened
from wavefilt.io.layout import Layout

PCM, FLOAT, EXTENSIBLE = 1, 3, 0xFFFE
IN_DS64 = 0xFFFFFFFF
"""Size of a chunk of RF64 that is too long for four bytes: the chunk ds64 holds it."""


class WavFile(ContiguousFile):
    """A `wavefilt.io.sources.Source`. Raises FormatError for a file that is damaged or not of the format.

    PCM of 24 bits, and other sizes that NumPy does not have, is shifted left to the next one that it has.
    """

    def __init__(self, file: str | BinaryIO, layout: Layout, format: str) -> None:
        layout.only("wav")
        with opened(file) as stream:
            probe = Probe(stream)
            chunks = _chunks(probe)
        order = _order(probe)
        if b"fmt " not in chunks or b"data" not in chunks or len(chunks[b"fmt "][2]) < 16:
            raise FormatError("WAV file without format or samples")
        tag, channels, rate, per_second, block, bits = struct.unpack_from(order + "2H2I2H", chunks[b"fmt "][2])
        if tag == EXTENSIBLE and len(chunks[b"fmt "][2]) >= 28:
            (tag,) = struct.unpack_from(order + "I", chunks[b"fmt "][2], 24)
        at, size, _ = chunks[b"data"]
        width = block // max(channels, 1)
        if not channels or block != channels * width or not 0 < bits <= 8 * width or per_second != rate * block:
            said = f"{channels} channels of {bits} bits in blocks of {block} bytes at {rate} Hz"
            raise FormatError(f"WAV header that contradicts itself: {said}, {per_second} bytes a second")
        if tag not in (PCM, FLOAT) or width > 8 or (tag == FLOAT and width not in (4, 8)):
            raise FormatError(f"WAV samples of {bits} bits in encoding {tag}; PCM (1) and IEEE floats (3) are read")
        if size < block or rate == 0:
            raise FormatError(f"WAV file with {size // block * channels} samples at {rate} Hz")
        stored, dtype, codec = _kind(order, tag, width)
        places = Places(at, stored, (channels,), (1,), size // block, channels, codec=codec)
        super().__init__(file, "wav", places, 1 / rate)
        self.dtype = dtype
        if tag == PCM:
            self.notes = (f"samples are rounded to {8 * width}-bit PCM",)


def _order(probe: Probe) -> str:
    return ">" if probe.head.startswith(b"RIFX") else "<"


def _chunks(probe: Probe) -> dict[bytes, tuple[int, int, bytes]]:
    """Where the content of each kind of chunk begins, its size and its first bytes; of several the first.

    Raises FormatError if a chunk claims more than the file holds.
    """
    found: dict[bytes, tuple[int, int, bytes]] = {}
    at, order = 12, _order(probe)
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


def _kind(order: str, tag: int, width: int) -> tuple[DType, DType, Codec | None]:
    """The dtype of what is stored, that of the samples, and how to get from one to the other."""
    if tag == FLOAT:
        return np.dtype(f"{order}f{width}"), np.dtype(f"{order}f{width}"), None
    if width == 1:  # unsigned: 128 is silence
        return np.dtype("u1"), np.dtype("i2"), Codec(lambda x: x.astype(np.int16) - 128, _unsigned)
    kind = np.dtype(f"{order}i{2 if width == 2 else 4 if width <= 4 else 8}")
    if kind.itemsize == width:
        return kind, kind, Codec(lambda x: x, partial(rounded, dtype=kind))
    return np.dtype(f"V{width}"), kind, Codec(partial(_widened, kind=kind), partial(_narrowed, kind=kind, width=width))


def _unsigned(samples: Array) -> Array:
    return rounded(samples + 128, np.dtype("u1"))


def _widened(stored: Array, kind: DType) -> Array:
    """Integers of another size, as the upper bytes of a dtype of NumPy's."""
    width, wide = stored.dtype.itemsize, np.zeros((*stored.shape, kind.itemsize), np.uint8)
    upper = slice(0, width) if kind.byteorder == ">" else slice(-width, None)
    wide[..., upper] = np.ascontiguousarray(stored).view(np.uint8).reshape(*stored.shape, width)
    return wide.view(kind)[..., 0]


def _narrowed(samples: Array, kind: DType, width: int) -> Array:
    """The same back, rounded to the integers of that size."""
    step = 1 << 8 * (kind.itemsize - width)
    most = (1 << 8 * width - 1) - 1
    integers = rounded(np.clip(samples / step, -most - 1, most), kind)
    wide = np.ascontiguousarray(integers)[..., None].view(np.uint8)
    lower = slice(kind.itemsize - width, None) if kind.byteorder == ">" else slice(0, width)
    narrow = np.ascontiguousarray(wide[..., lower])
    return narrow.view(f"V{width}")[..., 0]


open_source = WavFile
