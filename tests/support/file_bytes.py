"""Files of each format made byte by byte, independent of the readers and writers under test."""

from __future__ import annotations

import io
import struct
from pathlib import Path

import numpy as np

import wavefilt

SEGY_DTYPES = {1: "u4", 2: "i4", 3: "i2", 5: "f4", 6: "f8", 8: "i1", 9: "i8", 10: "u4", 11: "u2", 12: "u8", 16: "u1"}
"""Sample format codes of SEG-Y; 1 is IBM floating point."""
SEG2_DTYPES = {1: "i2", 2: "i4", 4: "f4", 5: "f8"}
"""Sample codes of SEG-2 but 3, the 20-bit floating point."""


def read(data: bytes, **layout: object) -> wavefilt.Recording:
    """Return the recording in a file of these bytes."""
    return wavefilt.read(io.BytesIO(data), **layout)


def written(recording: wavefilt.Recording, folder: Path, name: str = "written") -> bytes:
    """Return the bytes of the file that the recording is written to."""
    recording.write(folder / name, overwrite=True)
    return (folder / name).read_bytes()


def npy(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


def npz(**arrays: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def wave(tag, width, samples, order="<", *, channels=1, before=b"", after=b"", form=b"RIFF", more=b"") -> bytes:
    """Return a WAV file at 8 kHz; ``more`` extends its format chunk, other chunks go before and after the samples."""
    frame = channels * width
    head = struct.pack(order + "2H2I2H", tag, channels, 8000, 8000 * frame, frame, 8 * width) + more
    chunks = b"fmt " + struct.pack(order + "I", len(head)) + head + before + b"data"
    chunks += struct.pack(order + "I", len(samples)) + samples + after
    return (b"RIFX" if order == ">" else form) + struct.pack(order + "I", 4 + len(chunks)) + b"WAVE" + chunks


def sac(samples: np.ndarray, order: str = "<") -> bytes:
    """Return a SAC file of one evenly sampled trace at 100 Hz."""
    data = bytearray(struct.pack(order + "158f", *[-12345.0] * 158))
    struct.pack_into(order + "f", data, 0, 0.01)
    struct.pack_into(order + "i8xi", data, 304, 6, len(samples))
    struct.pack_into(order + "i76xi", data, 340, 1, 1)
    return bytes(data) + samples.astype(order + "f4").tobytes()


def seg2_text(endian: str, *lines: str) -> bytes:
    texts = [line.encode() + b"\0" for line in lines]
    return b"".join(struct.pack(endian + "H", len(t) + 2) + t for t in texts) + b"\0\0"


def make_seg2(payloads, code, endian="<", samples=None, lines=("SAMPLE_INTERVAL 0.001",), pad=0, tail=b"") -> bytes:
    """Return a SEG-2 file of packed sample blocks."""
    identifier = b"\x55\x3a" if endian == "<" else b"\x3a\x55"
    head = identifier + struct.pack(endian + "3H", 1, 4 * len(payloads) + 8, len(payloads))
    head += bytes([1, 0, 0, 1, 10, 0]) + bytes(18)
    notes = seg2_text(endian, "INSTRUMENT TEST", "NOTE two words")
    start = len(head) + 4 * len(payloads) + 8 + len(notes)
    body, pointers = b"", []
    for payload in payloads:
        text = seg2_text(endian, *lines)
        n = samples if samples is not None else len(payload) // int(SEG2_DTYPES[code][1])
        pointers.append(start + len(body))
        body += struct.pack(endian + "2H2I", 0x4422, 32 + len(text), len(payload), n)
        body += bytes([code]) + bytes(19) + text + payload + b"\xee" * pad
    return head + struct.pack(f"{endian}{len(pointers)}I", *pointers) + bytes(8) + notes + body + tail


def pack_20_bit(mantissas, exponents, endian="<") -> bytes:
    """Return SEG-2's groups of four: a word of exponents, lowest first, and four ones'-complement mantissas."""
    out = b""
    for m, e in zip(np.reshape(mantissas, (-1, 4)), np.reshape(exponents, (-1, 4)), strict=True):
        word = sum(int(x) << (4 * i) for i, x in enumerate(e))
        out += struct.pack(endian + "H4h", word, *(int(x) - (x < 0) for x in m))
    return out


def segy_samples(count, ns, code):
    """Return stored samples of a SEG-Y code: noise around a sine, or IBM floats of up to 256, normalised or not."""
    rng = np.random.default_rng(code)
    x = 60 * (1.1 + np.sin(np.arange(ns) / 9)) + rng.standard_normal((count, ns)) * 9
    if code == 1:
        words = rng.integers(0x41100000, 0x42FFFFFF, (count, ns)).astype("u4")
        return words | rng.integers(0, 2, (count, ns), "u4") << 31
    return (x / 3 if SEGY_DTYPES[code] == "i1" else x).astype(SEGY_DTYPES[code])


def from_ibm(words):
    """Return the values of IBM's 4-byte floats: sign, exponent of 16 plus 64, 24 bits of fraction."""
    words = words.astype(np.uint32).astype(np.int64)
    return np.where(words >> 31, -1.0, 1.0) * (words & 0xFFFFFF) / (1 << 24) * 16.0 ** ((words >> 24 & 127) - 64)


def segy_file(code=5, endian=">", count=7, ns=300, extended=0, text=None, dt=4000, stored=None) -> bytes:
    """Return a SEG-Y file whose headers are random bytes wherever a reader need not look."""
    rng = np.random.default_rng(9)
    ns = ns if stored is None else stored.shape[1]
    head = bytearray(rng.bytes(3600))
    head[:3200] = "".join(f"C{i:2d} LINE 7".ljust(80) for i in range(1, 41)).encode("cp037") if text is None else text
    struct.pack_into(endian + "H", head, 3216, dt)
    struct.pack_into(endian + "3H", head, 3220, ns, ns, code)
    struct.pack_into(endian + "H", head, 3504, extended)
    stored = segy_samples(count, ns, code) if stored is None else stored
    out = [bytes(head), rng.bytes(3200 * extended)]
    for trace in stored:
        header = bytearray(rng.bytes(240))
        struct.pack_into(endian + "2H", header, 114, ns, dt)
        out += [bytes(header), trace.astype(endian + trace.dtype.str[1:]).tobytes()]
    return b"".join(out)


def su_file(endian, count=7, ns=300, dt=2000, stored=None) -> bytes:
    return segy_file(5, endian, count, ns, dt=dt, stored=stored)[3600:]


def revision_2(fields, *, code=5, endian=">", revision=(2, 1), header=240, begin=3600, ns=60, count=4, trailer=0):
    """Return a SEG-Y file of revision 2; ``fields`` are numbers at places of the binary header, by struct format."""
    data = bytearray(segy_file(code, endian, count, ns))
    data[3260:3300] = bytes(40)
    data[3500:3600] = bytes(100)
    data[3500:3502] = bytes(revision)
    for (form, at), value in fields.items():
        struct.pack_into(endian + form, data, at, value)
    rng, width = np.random.default_rng(4), int(SEGY_DTYPES[code][1])
    out = [bytes(data[:3600]), rng.bytes(begin - 3600)]
    for at in range(3600, len(data), 240 + ns * width):
        out += [data[at : at + 240], rng.bytes(header - 240), data[at + 240 : at + 240 + ns * width]]
    return b"".join([*out, rng.bytes(3200 * trailer)])
