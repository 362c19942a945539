"""Small whole files of every format, sample code and byte order: what fuzzing begins with."""

from __future__ import annotations

import gzip
import io
import pickle
import struct
import zipfile
from functools import cache

import numpy as np

from tests.support.file_bytes import make_seg2, npy, npz, pack_20_bit, sac, segy_file, su_file, wave

VALUES = np.array([0, 1, -2, 30, -400, 5000, -60, 7], "f8")
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


@cache
def seeds(kind: str) -> dict[str, bytes]:
    """Return files by name; for "detected" those of all formats."""
    made = MAKERS if kind == "detected" else {kind: MAKERS[kind]}
    return {name: data for maker in made.values() for name, data in maker().items()}


def _seg2() -> dict[str, bytes]:
    found = {}
    for endian in "<>":
        for code, dtype in {1: "i2", 2: "i4", 4: "f4", 5: "f8"}.items():
            payload = VALUES.astype(endian + dtype).tobytes()
            found[f"seg2 code {code} {endian}"] = make_seg2([payload, payload], code, endian, pad=2, tail=b"end")
        packed = pack_20_bit(VALUES, [0, 1, 2, 3, 4, 5, 6, 15], endian)
        found[f"seg2 code 3 {endian}"] = make_seg2([packed], 3, endian, samples=8)
    lengths = [VALUES[:n].astype("<f4").tobytes() for n in (8, 3)]
    found["seg2 lengths"] = make_seg2(lengths, 4, lines=("DELAY 0.5", "SAMPLE_INTERVAL 1"))
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


def _raw() -> dict[str, bytes]:
    return {f"raw {dtype}": np.tile(VALUES, 75).astype(dtype).tobytes() for dtype in ("<f4", ">f8", "<i2", ">i4")}


def _npy() -> dict[str, bytes]:
    dtypes = ("<f4", ">f8", "<f2", "<i2", ">i4", "|u1", "<i8", "<c8", ">c16", "<g")
    found = {f"npy {dtype}": npy(VALUES.reshape(2, 4).astype(dtype)) for dtype in dtypes}
    found["npy Fortran"] = npy(np.asfortranarray(VALUES.reshape(2, 2, 2)))
    found["npy short header"] = _npy_of(1, b"{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }\n", bytes(8))
    found["npy version 2"] = _npy_of(2, b"{'descr': '>i2', 'fortran_order': True, 'shape': (2, 2), }\n", bytes(8))
    found["npy fields"] = npy(np.zeros(2, [("a", "<f4"), ("b", "<i2", (2,))]))
    found["npy text"] = npy(np.array(["a", "bc"]))
    return found


def _npy_of(version: int, header: bytes, body: bytes) -> bytes:
    return b"\x93NUMPY" + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", len(header)) + header + body


def _npz() -> dict[str, bytes]:
    def archive(compression: int) -> bytes:
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w", compression) as made:
            made.writestr("a.npy", npy(VALUES))
        return stream.getvalue()

    ways = {
        "stored": zipfile.ZIP_STORED,
        "deflated": zipfile.ZIP_DEFLATED,
        "bzip2": zipfile.ZIP_BZIP2,
        "lzma": zipfile.ZIP_LZMA,
    }
    found = {f"npz {name}": archive(way) for name, way in ways.items()}
    return found | {"npz of two": npz(a=VALUES, b=VALUES[:2])}


def _wav() -> dict[str, bytes]:
    extensible = struct.pack("<HHI", 22, 16, 3) + b"\x01\x00\x00\x00\x00\x00\x10\x00\x80\x00\x00\xaa\x00\x38\x9b\x71"
    return {
        "wav u1": wave(1, 1, bytes(range(8))),
        "wav i2": wave(1, 2, VALUES.astype("<i2").tobytes(), channels=2),
        "wav i3": wave(1, 3, bytes(24)),
        "wav big-endian": wave(1, 4, VALUES.astype(">i4").tobytes(), ">"),
        "wav f4": wave(3, 4, VALUES.astype("<f4").tobytes(), channels=2),
        "wav f8": wave(3, 8, VALUES.tobytes()),
        "wav extensible": wave(0xFFFE, 2, VALUES.astype("<i2").tobytes(), more=extensible),
    }


def _segy() -> dict[str, bytes]:
    return {f"{name} {order}": data for order in "<>" for name, data in (
        ("segy", segy_file(5, order, 2, 4, text=b"C".ljust(80) * 40)), ("su", su_file(order, 2, 4)))}  # fmt: skip


def _sac() -> dict[str, bytes]:
    return {f"sac {order}": sac(VALUES, order) for order in "<>"}


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


MAKERS = {
    "seg2": _seg2,
    "ascii": _ascii,
    "raw": _raw,
    "npy": _npy,
    "npz": _npz,
    "wav": _wav,
    "segy": _segy,
    "sac": _sac,
    "marked": _marked,
}


def large(size: int = 4 << 20) -> dict[str, tuple[str, bytes]]:
    """Return long files by name, with their kind: whole ones, those that take most memory, and ones bad at the end."""
    words = (np.arange(size // 2) % 999).astype("<i2").tobytes()
    digits = b"1 2 5 4\n5 6 2 8\n" * (size // 16)
    return {
        "SEG-2, 16 bits": ("detected", make_seg2([words[: size // 24] for _ in range(24)], 1)),
        "ASCII, 6 decimals": ("detected", b"0.125000 -1.250000\n0.500000  1.375000\n" * (size // 38)),
        "ASCII, one digit a cell": ("detected", digits),
        "ASCII, last line bad": ("detected", digits + b"1 2 x 4\n"),
        "ASCII, comments alone": ("detected", b"# abc\n" * (size // 6)),
        "raw": ("raw", words[: size // 1200 * 1200]),
        "npy, 16 bits": ("detected", npy(np.frombuffer(words, "<i2").reshape(8, -1))),
        "npz, 16 bits": ("detected", npz(a=np.frombuffer(words, "<i2"))),
        "WAV, 8 bits": ("detected", wave(1, 1, words)),
    }
