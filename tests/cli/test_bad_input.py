"""Damaged and odd files and wrong usage: each with the exit code and the words a user gets, and no output."""

from __future__ import annotations

import gzip
import io
import os
import pickle
import struct
import zipfile

import numpy as np
import pytest

from tests.support.checkout import SAMPLES, needs, run
from tests.support.file_bytes import make_seg2

SEG2 = (SAMPLES / "seismic.dat").read_bytes()
POINTER = struct.unpack_from("<I", SEG2, 32)[0]


def patched(data: bytes, offset: int, new: bytes) -> bytes:
    return data[:offset] + new + data[offset + len(new) :]


def npy(array, **options) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, **options)
    return stream.getvalue()


def npy_header(text: str, body: bytes = b"") -> bytes:
    head = text.encode().ljust(118) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + body


def npz(**arrays) -> bytes:
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    return stream.getvalue()


def zipped(name: str, content: bytes) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        archive.writestr(name, content)
    return stream.getvalue()


def wav(data_size: int, payload: bytes) -> bytes:
    form = b"fmt " + struct.pack("<IHHIIHH", 16, 1, 1, 8000, 16000, 2, 16)
    body = b"WAVE" + form + b"data" + struct.pack("<I", data_size) + payload
    return b"RIFF" + struct.pack("<I", len(body)) + body


RNG = np.random.default_rng(5)
NOISE = RNG.standard_normal(300)
RANDOM = RNG.integers(0, 256, 3001, dtype=np.uint8).tobytes()
TEXT = "\n".join(f"{v:.4f}" for v in NOISE)

FILES = {
    # name: (content, further arguments, exit code, words on standard error)
    "empty": (b"", [], 3, "the file is empty"),
    "unknown binary": (RANDOM, [], 3, "--format raw --dtype f4 --endian little --ns"),
    "unknown binary names what was tried": (RANDOM, [], 3, "tried gzip, pickle, rsf, bzip2, xz, tar, css, q, npy, npz"),
    "zeros": (bytes(4096), [], 3, "unknown format"),
    "gzip": (gzip.compress(SEG2), [], 3, "gunzip"),
    "zip without arrays": (zipped("a.txt", b"hello"), [], 3, "without arrays"),
    "pickle": (pickle.dumps({"a": 1}), [], 3, "never opened"),
    "hdf5": (b"\x89HDF\r\n\x1a\n" + bytes(600), [], 3, "HDF5"),
    "madagascar header": (b'n1=100 d1=0.004\nin="/data/x.rsf@" data_format="native_float"\n', [], 3, "Madagascar"),
    "seg2 cut in its header": (SEG2[:20], [], 3, "SEG-2"),
    "seg2 cut in a trace": (SEG2[:-100], [], 3, "beyond the end of the file"),
    "seg2 cut after the first trace header": (SEG2[: POINTER + 10], [], 3, "beyond the end of the file"),
    "seg2 revision 2": (patched(SEG2, 2, b"\2\0"), ["--format", "seg2"], 3, "revision 2"),
    "seg2 without traces": (patched(SEG2, 6, b"\0\0"), [], 3, "without traces"),
    "seg2 with more traces than pointers": (patched(SEG2, 6, b"\xff\xff"), [], 3, "trace pointers do not fit"),
    "seg2 pointer beyond the end": (patched(SEG2, 36, b"\xff\xff\xff\x7f"), [], 3, "trace 2 starts at byte 2147483647"),
    "seg2 pointer into nowhere": (patched(SEG2, 36, b"\1\0\0\0"), [], 3, "no trace descriptor block at byte 1"),
    "seg2 traces that overlap": (patched(SEG2, 36, SEG2[32:36]), [], 3, "overlap"),
    "seg2 sample code 9": (patched(SEG2, POINTER + 12, b"\x09"), [], 3, "sample code 9"),
    "seg2 claims 4 G samples": (patched(SEG2, POINTER + 8, b"\xff" * 4), [], 3, "beyond the end of the file"),
    "seg2 no samples": (patched(SEG2, POINTER + 8, bytes(4)), [], 3, "0 samples"),
    "seg2 20-bit not in fours": (make_seg2([bytes(50)], 3, samples=18), [], 3, "come in fours"),
    "seg2 contradicted dt": (SEG2, ["--dt", "0.5"], 2, "contradicts SAMPLE_INTERVAL"),
    "npy cut short": (npy(NOISE)[:-8], [], 3, "the file holds 2392"),
    "npy that claims a petabyte": (
        npy_header("{'descr': '<f8', 'fortran_order': False, 'shape': (125000000000000,), }"),
        [],
        3,
        "claims",
    ),
    "npy with a damaged header": (npy_header("{'descr': '<f8', 'fortr"), [], 3, "damaged .npy header"),
    "npy with a negative length": (
        npy_header("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }"),
        [],
        3,
        "damaged .npy header",
    ),
    "npy of version 9": (b"\x93NUMPY\x09\x00" + bytes(200), [], 3, "version 9.0"),
    "npy of objects": (npy(np.array([1, "a"], object), allow_pickle=True), [], 3, "never unpickled"),
    "npy of text": (npy(np.array(["a", "b"])), [], 3, "dtype"),
    "npy scalar": (npy(np.float64(1)), [], 3, "no axis"),
    "npy without samples": (npy(np.zeros((3, 0))), [], 3, "no samples"),
    "npy with an axis it lacks": (npy(NOISE), ["--axis", "2"], 2, "no axis 2"),
    "npy with an infinite sample": (npy(np.array([1.0, np.inf])), [], 1, "infinite value at trace 0, sample 1"),
    "npz of two arrays": (npz(a=NOISE, b=NOISE), [], 3, "choose one with --component: a, b"),
    "npz without the component": (npz(a=NOISE), ["--component", "c"], 3, "it holds a"),
    "npz with a name that would clear the screen": (
        npz(**{"\x1b[2Ja": NOISE, "b": NOISE}),
        [],
        3,
        "choose one with --component: \\x1b[2Ja, b",
    ),
    "npy of more axes than NumPy has": (
        npy_header("{'descr': '<f8', 'fortran_order': False, 'shape': (" + "1, " * 65 + "), }", bytes(8)),
        [],
        3,
        "65 axes that NumPy cannot hold",
    ),
    "npz damaged": (npz(a=NOISE)[:-30], [], 3, "damaged or encrypted archive"),
    "wav that claims too much": (wav(1 << 30, bytes(200)), [], 3, "claims 1073741824 bytes"),
    "wav without samples": (wav(0, b""), [], 3, "WAV"),
    "wav cut in its header": (wav(200, bytes(200))[:20], [], 3, "chunk 'fmt ' claims 16 bytes"),
    "text ragged": (b"1 2\n3 4\n5\n6 7\n", [], 3, "line 3"),
    "text with a word in it": ((TEXT + "\nbad\n1.0\n").encode(), [], 3, "bad"),
    "text too short": (b"1.5\n", [], 3, "too short"),
    "text with words only": (b"hello\nworld\n", [], 3, "no samples"),
    "text with a non-uniform time column": (b"0.0 1\n0.1 2\n0.3 1\n0.9 5\n", [], 3, "--columns"),
    "text with a decimal comma or two columns": (b"1,5\n2,7\n3,1\n", [], 3, "--delimiter"),
    "text of travel times": (b"3 # shot/geophone points\n#x y\n0 0\n1 0\n2 0\n", [], 3, "no waveforms in this file"),
    "text with a column it lacks": (b"1.0 2.0\n3.0 4.0\n5.0 6.0\n", ["--columns", "5"], 2, "column"),
    "raw without layout": (RANDOM, ["--format", "raw"], 2, "needs an explicit layout; missing --dtype"),
    "raw of another length": (
        RANDOM,
        ["--format", "raw", "--dtype", "f4", "--endian", "little", "--ns", "7"],
        3,
        "not a whole number",
    ),
    "raw of another dtype": (
        RANDOM,
        ["--format", "raw", "--dtype", "f2", "--endian", "little", "--ns", "7"],
        2,
        "f4, f8, i2, i4",
    ),
    "raw of negative length": (
        RANDOM,
        ["--format", "raw", "--dtype", "f4", "--endian", "big", "--ns", "-7"],
        2,
        "at least 1",
    ),
    "an option without meaning": (npy(NOISE), ["--ns", "10"], 2, "--ns has no meaning"),
    "a format it is not": (RANDOM, ["--format", "seg2"], 3, "no SEG-2 file descriptor block"),
    "miniseed damaged": (b"000001D " + RANDOM[:504], [], 3, "MSEED"),
    "a negative interval": (TEXT.encode(), ["--dt", "-1"], 2, "positive number of seconds"),
    "a level too deep": (npy(NOISE), ["-l", "9"], 1, "--level 9 is above the maximum of 4"),
    "thresholds for other levels": (npy(NOISE), ["--rule", "1,2,3", "-l", "2"], 1, "3 thresholds for 2 levels"),
    "an unknown format name": (npy(NOISE), ["--format", "segd"], 2, "--format segd is not one of"),
    "an unknown wavelet": (npy(NOISE), ["-w", "db99"], 2, "unknown wavelet 'db99'"),
    "an unknown rule": (npy(NOISE), ["--rule", "sur"], 2, "did you mean 'sure'"),
    "an unknown mode": (npy(NOISE), ["--mode", "mirror"], 2, "--mode mirror is not one of"),
    "a negative threshold": (npy(NOISE), ["--rule", "-3"], 2, "at least 0"),
    "a level that is no number": (npy(NOISE), ["-l", "five"], 2, "neither a whole number nor auto"),
    "columns that are no list": (TEXT.encode(), ["--columns", "a-b"], 2, "2,4-6"),
    "an unknown backend": (npy(NOISE), ["--backend", "gpu"], 2, "--backend gpu is not one of"),
    "a GPU that is not there": (npy(NOISE), ["--backend", "cuda"], 5, "cuda"),
    "a wrong flag": (npy(NOISE), ["--wavlet", "db4"], 2, "--wavelet"),
    "-o and --out-dir": (npy(NOISE), ["-o", "x", "--out-dir", "y"], 2, "-o takes one input"),
    "-q and -v": (npy(NOISE), ["-q", "-v"], 2, "contradict"),
    "a folder that is not there": (npy(NOISE), ["-o", "nowhere/x.npy"], 2, "does not exist"),
    "a plot of no known type": (npy(NOISE), ["--plot", "x.docx"], 2, "docx"),
}


@pytest.mark.parametrize("name", FILES)
def test_files(name, tmp_path, monkeypatch, capsys):
    content, arguments, code, words = FILES[name]
    if "miniseed" in name:
        pytest.importorskip("obspy")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.dat").write_bytes(content)
    got, out, err = run(capsys, "denoise", "in.dat", *arguments)
    assert got == code, err
    assert words in err
    assert "Traceback" not in err
    assert out == ""
    assert os.listdir(tmp_path) == ["in.dat"]


def test_missing_file(tmp_path, capsys):
    code, _, err = run(capsys, "denoise", tmp_path / "none.dat")
    assert (code, "No such file" in err) == (3, True)


@needs("zarr")
def test_a_folder_that_is_no_store(tmp_path, capsys):
    code, _, err = run(capsys, "denoise", tmp_path)
    assert (code, "is a folder" in err) == (3, True)


@pytest.mark.parametrize("command", ["denoise", "info"])
def test_a_folder_is_told_as_a_pattern(tmp_path, monkeypatch, capsys, command):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "sur vey").mkdir()
    for name in ("a.npy", "b.npy"):
        np.save(tmp_path / "sur vey" / name, NOISE)
    (tmp_path / "sur vey" / "c.txt").write_text(TEXT)
    code, out, err = run(capsys, command, "sur vey")
    assert (code, out) == (3, "")
    assert "sur vey is a folder and not a zarr store; name its files, as 'sur vey/*.npy', or " in err
    assert err.rstrip().endswith("'sur vey/**/*.npy'")
    assert run(capsys, command, "sur vey/*.npy")[0] == 0
    np.save("x.npy", NOISE)
    code, _, err = run(capsys, command, "sur vey", "x.npy")
    assert (code, "name its files, as 'sur vey/*.npy'" in err) == (4, True)
    for output in ("sur vey", "sur vey/"):
        code, _, err = run(capsys, "denoise", "sur vey/c.txt", "-o", output)
        assert (code, "sur vey is a folder; name a file, or use --out-dir 'sur vey'" in err) == (2, True)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--two-dimensional"], "in two dimensions (3): haar has 1 level"),
        (["--two-dimensional", "-l", "1"], "--level 1 is above the maximum of 0 for 3 traces or samples"),
        (["--two-dimensional", "-l", "1"], "or a shorter filter: haar has 1 level"),
        (["-l", "9"], "or a shorter filter: db5 has 5 levels, db2 6, haar 8"),
        (["-w", "coif17", "-l", "2"], "--level 2 is above the maximum of 1"),
        (["--noise-window", "0.5", "0.9"], "from 0.5 s to 0.9 s does not lie in the traces, which end at 0.6 s"),
        (["--noise-window", "0.5", "0.502"], "from 0.5 s to 0.502 s is shorter than 4 samples, 0.008 s"),
        (["--noise-window", "0.5", "0.9", "--max-memory", "1GiB"], "traces, which end at 0.6 s"),
        (["--noise-window", "0.5", "0.9", "--dry-run"], "traces, which end at 0.6 s"),
    ],
)
def test_what_would_work_is_told(tmp_path, monkeypatch, capsys, options, words):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", RNG.standard_normal((3, 300)))
    _, _, err = run(capsys, "denoise", "x.npy", "--dt", "0.002", *options)
    assert words in err


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (["--two-dimensional", "--transform", "wp"], "--transform wp is for traces, not for two dimensions"),
        (["--two-dimensional", "--transform", "fk", "--spins", "2"], "fk depends little on shifts: leave --spins out"),
        (["--two-dimensional", "--rule", "blockjs"], "--rule blockjs is for traces"),
        (["--transform", "modwt", "--spins", "3"], "--transform modwt does not depend on shifts: leave --spins out"),
        (["--transform", "modwt", "--rule", "blockjs"], "shrinks blocks of --transform dwt; use --spins for shifts"),
        (["--rule", "sure", "--shrink", "mean"], "--shrink mean is for rules with a posterior"),
        (
            ["--sigma", "-4"],
            "number of at least 0, or left out for --noise-window",
        ),
        (["-w", "gaus1"], "--wavelet gaus1 is continuous"),
        (["--max-memory", "1GiB", "--format", "seg2"], "files are streamed (--max-memory); convert"),
        (["--overwrite", "-o", "x.npy"], "x.npy is the input"),
    ],
)
def test_options_are_named_as_the_command_spells_them(tmp_path, monkeypatch, capsys, options, words):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", RNG.standard_normal((3, 300)))
    code, _, err = run(capsys, "denoise", "x.npy", *options)
    assert (code, words in err) == (2, True), err


def test_no_input_and_no_command(capsys):
    assert run(capsys, "denoise")[0] == 2
    code, _, err = run(capsys, "denoize")
    assert (code, "No such command" in err) == (2, True)
