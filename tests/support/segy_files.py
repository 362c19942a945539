"""SEG-Y and SU files made byte by byte, with headers of random bytes where nothing is looked at."""

from __future__ import annotations

import struct

import numpy as np

DTYPES = {1: "u4", 2: "i4", 3: "i2", 5: "f4", 6: "f8", 8: "i1", 9: "i8", 10: "u4", 11: "u2", 12: "u8", 16: "u1"}


def samples_of(count, ns, code):
    """Stored samples of a code: noise around a sine, or any IBM floats of up to 256, normalised or not."""
    rng = np.random.default_rng(code)
    x = 60 * (1.1 + np.sin(np.arange(ns) / 9)) + rng.standard_normal((count, ns)) * 9
    if code == 1:
        return (rng.integers(0x41100000, 0x42FFFFFF, (count, ns))).astype("u4") | rng.integers(
            0, 2, (count, ns), "u4"
        ) << 31
    if DTYPES[code] == "i1":
        x /= 3
    return x.astype(DTYPES[code])


def segy_file(code=5, endian=">", count=7, ns=300, extended=0, text=None, dt=4000, stored=None):
    """A file with headers of random bytes where nothing is looked at, as in unsorted surveys of any making."""
    rng = np.random.default_rng(9)
    head = bytearray(rng.bytes(3600))
    head[:3200] = "".join(f"C{i:2d} LINE 7".ljust(80) for i in range(1, 41)).encode("cp037") if text is None else text
    struct.pack_into(endian + "H", head, 3216, dt)
    struct.pack_into(endian + "3H", head, 3220, ns, ns, code)
    struct.pack_into(endian + "H", head, 3504, extended)
    stored = samples_of(count, ns, code) if stored is None else stored
    out = [bytes(head), rng.bytes(3200 * extended)]
    for trace in stored:
        header = bytearray(rng.bytes(240))
        struct.pack_into(endian + "2H", header, 114, ns, dt)
        out += [bytes(header), trace.astype(endian + trace.dtype.str[1:]).tobytes()]
    return b"".join(out)


def su_file(endian, count=7, ns=300, dt=2000, stored=None):
    return segy_file(5, endian, count, ns, dt=dt, stored=stored)[3600:]


def revision_2(fields, *, code=5, endian=">", revision=(2, 1), header=240, begin=3600, ns=60, count=4, trailer=0):
    """A file of revision 2; ``fields`` are numbers at places of the binary header, by their struct format."""
    data = bytearray(segy_file(code, endian, count, ns))
    data[3260:3300] = bytes(40)
    data[3500:3600] = bytes(100)
    data[3500:3502] = bytes(revision)
    for (form, at), value in fields.items():
        struct.pack_into(endian + form, data, at, value)
    rng, width = np.random.default_rng(4), int(DTYPES[code][1])
    out = [bytes(data[:3600]), rng.bytes(begin - 3600)]
    for at in range(3600, len(data), 240 + ns * width):
        out += [data[at : at + 240], rng.bytes(header - 240), data[at + 240 : at + 240 + ns * width]]
    return b"".join([*out, rng.bytes(3200 * trailer)])
