"""Whole files of every format, sample type and byte order: cases of round trips, and seeds of fuzzing."""

from __future__ import annotations

import gzip
import io
import pickle
import struct
import zipfile
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np

from tests.support.file_bytes import SEG2_DTYPES, make_seg2, npy, npz, pack_20_bit, sac, segy_file, su_file, wave

TOKENS = (
    *(b"SAMPLE_INTERVAL 0.001", b"\x55\x3a\x01\x00", b"\x3a\x55\x00\x01", b"\x22\x44", b"\x44\x22"),
    *(b"\x93NUMPY\x01\x00", b"\x93NUMPY\x02\x00", b"\x93NUMPY\x03\x00", b"{'descr': ", b"'fortran_order': "),
    *(b"'shape': (", b"(1, 8), }", b"'<f8'", b"'>i2'", b"'|O'", b"'<c8'", b"'<U9'", b"[('a', '<f4')]", b"True", b"L"),
    *(b"1e308", b"nan", b"inf", b"-0.0", b"1.5d+10", b"1_0", b"\xef\xbb\xbf", b"\r\n", b"\t", b";", b",", b"# "),
    *(b"RIFF", b"RIFX", b"RF64", b"WAVEfmt ", b"data", b"ds64", b"LIST", b"PK\x03\x04", b"PK\x01\x02"),
    *(b"PK\x05\x06", b"PK\x06\x06", b".npy", b"WID2", b"TIMESERIES ", b"TSPAIR", b"SLIST", b"data_format="),
    *(b"n1=", b"in=", b"000001D ", b"MS\x03", b"\x1f\x8b", b"\x80\x04\x95", b"\x89HDF\r\n\x1a\n"),
    *(b"\xff\xff\xff\xff", b"\xff\xff\xff\x7f", b"\x00\x00\x00\x80", b"\xff\xff"),
)
"""Words of the formats, which a fuzzer should not have to find letter by letter."""


@dataclass(frozen=True)
class Case:
    """A file of a format, the samples in it, and how they are written back."""

    data: bytes
    samples: np.ndarray
    interval: float | None
    options: dict[str, Any] = field(default_factory=dict)
    exact: bool = True
    """Whether unaltered samples come back byte for byte; integers become floats in some formats."""
    rounding: float = 0.0
    """By how much samples may change when they are written."""


def samples(dtype="f8", rows=2, count=320) -> np.ndarray:
    x = 60 * (1.1 + np.sin(np.arange(count) / 9)) + 9 * np.random.default_rng(4).standard_normal((rows, count))
    return (x + 1j * x[::-1]).astype(dtype) if np.dtype(dtype).kind == "c" else x.astype(dtype)


def cases(count: int) -> dict[str, Case]:
    """Return files of two traces, or one, by format, sample type and byte order."""

    def made(dtype="f8", rows=2):
        return samples(dtype, rows, count)

    found = {}
    for order, endian in (("<", "little"), (">", "big")):
        for code, dtype in SEG2_DTYPES.items():
            x = made(order + dtype)
            data = make_seg2([row.tobytes() for row in x], code, order, pad=6, tail=b"end")
            found[f"seg2 {order}{dtype}"] = Case(data, x, 0.001, exact=code >= 4)
        mantissas, exponents = (np.arange(count) - count // 2) * 200, np.arange(count) % 15
        packed = pack_20_bit(mantissas, exponents, order)
        x = np.tile(mantissas << exponents, (2, 1))
        found[f"seg2 {order} 20 bits"] = Case(make_seg2([packed] * 2, 3, order, samples=count), x, 0.001, exact=False)
        for dtype in ("f4", "f8", "i2", "i4"):
            x, layout = made(order + dtype), {"format": "raw", "dtype": dtype, "endian": endian, "ns": count}
            found[f"raw {order}{dtype}"] = Case(x.tobytes(), x, 0.002, {**layout, "dt": 0.002}, dtype[0] == "f")
        for dtype in ("f2", "f4", "f8", "i2", "u4", "i8", "c8", "c16"):
            x = made(order + dtype)
            found[f"npy {order}{dtype}"] = Case(npy(x), x, None, exact=x.dtype.kind in "fc")
        for tag, dtype in ((1, "i2"), (1, "i4"), (3, "f4"), (3, "f8")):
            x = made(order + dtype)
            data = wave(tag, int(dtype[1]), x.T.tobytes(), order, channels=2)
            found[f"wav {order}{dtype}"] = Case(data, x, 1 / 8000, rounding=0.5 * (tag == 1))
        x = made("f4", 1)
        found[f"sac {order}"] = Case(sac(x[0], order), x, 0.01)
    x = (made("f8", 1) / 2 + 60).astype("u1")
    found["wav u1"] = Case(wave(1, 1, x.tobytes()), x.astype("i2") - 128, 1 / 8000, rounding=0.5)
    x = made("<i4", 1)
    data = wave(1, 3, x.view("u1").reshape(-1, 4)[:, :3].tobytes())
    found["wav 24 bits"] = Case(data, x << 8, 1 / 8000, rounding=128)
    found["npz"] = Case(npz(a=made(), b=np.arange(5)), made(), None, {"component": "a"}, exact=False)
    text = "".join(f"{0.002 * i:.3f} {a:.17e} {b:.17e}\n" for i, (a, b) in enumerate(made().T))
    found["ascii"] = Case(text.encode(), made(), 0.002)
    return found


def _ascii() -> dict[str, bytes]:
    return {
        "ascii column": b"1.50\n-2.25\n0.00\n4e2\n",
        "ascii time": b"t z n\n0.000  1.5  -1.5\n0.001 -2.5 -11.5\n0.002  3.5   1.5\n",
        "ascii commas": b"# made here\nup,north\n1.5, 2.5\n-3.5, 4.0\nnan,inf\n",
        "ascii decimal commas": b"1,5;2,5\r\n-3,5;4,0\r\n1,25e+00;2,5\r\n",
        "ascii tabs": b"   1.50\t  -2.25\n -10.50\t 100.25\n",
        "ascii Fortran": b"\xef\xbb\xbf 1.250D+00 -2.500d-01\n-1.250D-03  2.500d+01\n\n",
        "ascii integers": b"1 2 3\n-22 5 7\n333 11 13\n16777216123 1 1",
        "ascii words": "# Größe\nZeit;Weg\n0,5;1,5\n0,5;2,5\n".encode("latin-1"),
        "ascii unified": b"3 # shot/geophone points\n#x y\n0 0\n1 0\n2 0\n",
    }


def _marked() -> dict[str, bytes]:
    """Return files that are recognised, and refused or read by another library."""
    return {
        "gzip": gzip.compress(b"1\n2\n", mtime=0),
        "pickle": pickle.dumps({"a": 1}, 4),
        "mseed": b"000001D " + bytes(56),
        "mseed 3": b"MS\x03" + bytes(40),
        "gse2": b"WID2 1990/01/01 00:00:00.000 STA  CHZ      INT        4   20.000000\nDAT2\n1\n2\n3\n4\n",
        "tspair": b"TIMESERIES A_B__BHZ_R, 2 samples, 1 sps, 2000-01-01T00:00:00, TSPAIR, INTEGER, C\n",
        "slist": b"TIMESERIES A_B__BHZ_R, 2 samples, 1 sps, 2000-01-01T00:00:00, SLIST, INTEGER, C\n1\t2\n",
        "rsf": b'n1=100 d1=0.004\nin="x.rsf@" data_format="native_float"\n',
        "hdf5": b"\x89HDF\r\n\x1a\n" + bytes(88),
    }


def _odd() -> dict[str, bytes]:
    """Return files with unusual headers."""
    values = np.array([0, 1, -2, 30, -400, 5000, -60, 7], "f8")
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n"
    extensible = struct.pack("<HHI", 22, 16, 3) + b"\x01\x00\x00\x00\x00\x00\x10\x00\x80\x00\x00\xaa\x00\x38\x9b\x71"
    found = {
        "seg2 lengths": make_seg2(
            [values.astype("<f4").tobytes(), bytes(12)], 4, lines=("DELAY 0.5", "SAMPLE_INTERVAL 1")
        ),
        "raw long": np.tile(values, 75).astype("<f4").tobytes(),
        "npy Fortran": npy(np.asfortranarray(values.reshape(2, 2, 2))),
        "npy long double": npy(values.astype("<g")),
        "npy version 2": b"\x93NUMPY\x02\x00" + struct.pack("<I", len(header)) + header + bytes(8),
        "npy fields": npy(np.zeros(2, [("a", "<f4"), ("b", "<i2", (2,))])),
        "npy text": npy(np.array(["a", "bc"])),
        "wav extensible": wave(0xFFFE, 2, values.astype("<i2").tobytes(), more=extensible),
    }
    for way in (zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA):
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w", way) as archive:
            archive.writestr("a.npy", npy(values))
        found[f"npz packed by {way}"] = stream.getvalue()
    for order in "<>":
        found[f"segy {order}"] = segy_file(5, order, 2, 4, text=b"C".ljust(80) * 40)
        found[f"segy su {order}"] = su_file(order, 2, 4)
    return found


@cache
def seeds(kind: str) -> dict[str, bytes]:
    """Return small files by name; for "detected" those of all formats."""
    every = {name: case.data for name, case in cases(8).items()} | _ascii() | _odd()
    if kind == "detected":
        return every | _marked()
    return {name: data for name, data in every.items() if name.split()[0] == kind}


def large(size: int = 4 << 20) -> dict[str, tuple[str, bytes]]:
    """Return long files by name, with their kind: whole ones, those that take most memory, and ones bad at the end."""
    words = (np.arange(size // 2) % 999).astype("<i2").tobytes()
    digits = b"1 2 5 4\n5 6 2 8\n" * (size // 16)
    return {
        "SEG-2, 16 bits": ("detected", make_seg2([words[: size // 24] for _ in range(24)], 1)),
        "ASCII, one digit a cell": ("detected", digits),
        "ASCII, last line bad": ("detected", digits + b"1 2 x 4\n"),
        "WAV, 8 bits": ("detected", wave(1, 1, words)),
    }
