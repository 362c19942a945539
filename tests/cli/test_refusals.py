"""Damaged files and wrong usage: each with its exit code, one message that names what is wrong, and no output."""

from __future__ import annotations

import os
import shlex
import struct
from pathlib import Path

import numpy as np
import pytest

import wavefilt
from tests.support.checkout import SAMPLES, needs, run
from tests.support.file_bytes import npy, npz, wave

SEG2 = (SAMPLES / "seismic.dat").read_bytes()
POINTER = struct.unpack_from("<I", SEG2, 32)[0]
RNG = np.random.default_rng(5)
NOISE = RNG.standard_normal(300)
RANDOM = RNG.integers(0, 256, 3001, dtype=np.uint8).tobytes()
TEXT = "\n".join(f"{v:.4f}" for v in NOISE)


def patched(offset: int, new: bytes) -> bytes:
    return SEG2[:offset] + new + SEG2[offset + len(new) :]


def npy_header(text: str, body: bytes = b"") -> bytes:
    head = text.encode().ljust(118) + b"\n"
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(head)) + head + body


def of_shape(shape: str) -> bytes:
    return npy_header(f"{{'descr': '<f8', 'fortran_order': False, 'shape': ({shape}), }}", bytes(8))


WAV = wave(1, 2, bytes(200))
RAW = "--format raw --endian little --dtype"
FILES = {
    # name: (content, further options, exit code, a word of the message)
    "empty": (b"", "", 3, "empty"),
    "unknown binary": (RANDOM, "", 3, "--format raw"),
    "zeros": (bytes(4096), "", 3, "format"),
    "hdf5 damaged": (b"\x89HDF\r\n\x1a\n" + bytes(600), "", 3, "HDF5"),
    "madagascar header": (b'n1=100 d1=0.004\nin="/data/x.rsf@" data_format="native_float"\n', "", 3, "Madagascar"),
    "seg2 cut in its header": (SEG2[:20], "", 3, "SEG-2"),
    "seg2 cut in a trace": (SEG2[:-100], "", 3, "end of the file"),
    "seg2 cut after a trace header": (SEG2[: POINTER + 10], "", 3, "end of the file"),
    "seg2 revision 2": (patched(2, b"\2\0"), "--format seg2", 3, "revision 2"),
    "seg2 without traces": (patched(6, b"\0\0"), "", 3, "traces"),
    "seg2 with more traces than pointers": (patched(6, b"\xff\xff"), "", 3, "pointers"),
    "seg2 pointer beyond the end": (patched(36, b"\xff\xff\xff\x7f"), "", 3, "2147483647"),
    "seg2 pointer into nowhere": (patched(36, b"\1\0\0\0"), "", 3, "byte 1"),
    "seg2 traces that overlap": (patched(36, SEG2[32:36]), "", 3, "overlap"),
    "seg2 sample code 9": (patched(POINTER + 12, b"\x09"), "", 3, "code 9"),
    "seg2 claims 4 G samples": (patched(POINTER + 8, b"\xff" * 4), "", 3, "end of the file"),
    "seg2 no samples": (patched(POINTER + 8, bytes(4)), "", 3, "0 samples"),
    "seg2 20-bit samples not in fours": (patched(POINTER + 8, b"\xff\3\0\0\3"), "", 3, "fours"),
    "seg2 contradicted interval": (SEG2, "--dt 0.5", 2, "SAMPLE_INTERVAL"),
    "npy cut short": (npy(NOISE)[:-8], "", 3, "2392"),
    "npy that claims a petabyte": (of_shape("125000000000000,"), "", 3, "claims"),
    "npy with a damaged header": (npy_header("{'descr': '<f8', 'fortr"), "", 3, "header"),
    "npy with a negative length": (of_shape("-1,"), "", 3, "header"),
    "npy of more axes than NumPy has": (of_shape("1, " * 65), "", 3, "65"),
    "npy of version 9": (b"\x93NUMPY\x09\x00" + bytes(200), "", 3, "9.0"),
    "npy of objects": (npy(np.array([1, "a"], object)), "", 3, "unpickled"),
    "npy of text": (npy(np.array(["a", "b"])), "", 3, "dtype"),
    "npy scalar": (npy(np.float64(1)), "", 3, "axis"),
    "npy without samples": (npy(np.zeros((3, 0))), "", 3, "samples"),
    "npy with an axis it lacks": (npy(NOISE), "--axis 2", 2, "axis 2"),
    "npy with an infinite sample": (npy(np.array([1.0, np.inf])), "", 1, "infinite"),
    "npy with an infinite sample, not run": (npy(np.array([1.0, np.inf])), "--dry-run", 1, "sample 1"),
    "npz of two arrays": (npz(a=NOISE, b=NOISE), "", 3, "--component"),
    "npz without the component": (npz(a=NOISE), "--component c", 3, "has a"),
    "npz with a name that clears the screen": (npz(**{"\x1b[2Ja": NOISE, "b": NOISE}), "", 3, "\\x1b[2Ja"),
    "npz damaged": (npz(a=NOISE)[:-30], "", 3, "archive"),
    "wav that claims too much": (
        WAV.replace(b"data\xc8\0\0\0", b"data\0\0\0\x40"),
        "",
        3,
        "1073741824",
    ),
    "wav without samples": (wave(1, 2, b""), "", 3, "WAV"),
    "wav cut in its header": (WAV[:20], "", 3, "'fmt '"),
    "text ragged": (b"1 2\n3 4\n5\n6 7\n", "", 3, "line 3"),
    "text with a non-uniform time column": (b"0.0 1\n0.1 2\n0.3 1\n0.9 5\n", "", 3, "--columns"),
    "text with a decimal comma or two columns": (b"1,5\n2,7\n3,1\n", "", 3, "--delimiter"),
    "text with a column it lacks": (b"1.0 2.0\n3.0 4.0\n5.0 6.0\n", "--columns 5", 2, "column"),
    "text with columns that are no list": (TEXT.encode(), "--columns a-b", 2, "--columns"),
    "text with a negative interval": (TEXT.encode(), "--dt -1", 2, "--dt"),
    "raw without layout": (RANDOM, "--format raw", 2, "--dtype"),
    "raw of another length": (RANDOM, f"{RAW} f4 --ns 7", 3, "whole number"),
    "raw of another dtype": (RANDOM, f"{RAW} f2 --ns 7", 2, "--dtype"),
    "raw of negative length": (RANDOM, f"{RAW} f4 --ns -7", 2, "--ns"),
    "a format it is not": (RANDOM, "--format seg2", 3, "SEG-2"),
    "miniseed damaged": (b"000001D " + RANDOM[:504], "", 3, "MSEED"),
}


def refused(capsys, arguments, code, word):
    """The command fails with one message that has this word, without output or a traceback; return the message."""
    got, out, err = run(capsys, *arguments)
    assert (got, out) == (code, ""), err
    assert word.lower() in err.lower()
    assert err.count("wavefilt: error: ") == 1
    assert "Traceback" not in err
    return err


@pytest.mark.parametrize("name", FILES)
def test_files_that_cannot_be_read(name, tmp_path, monkeypatch, capsys):
    content, options, code, word = FILES[name]
    for start, module in (("miniseed", "obspy"), ("hdf5", "h5py")):
        if name.startswith(start):
            pytest.importorskip(module)
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in.dat").write_bytes(content)
    refused(capsys, ["denoise", "in.dat", *options.split()], code, word)
    assert os.listdir(tmp_path) == ["in.dat"]


USAGE = """
# values of options
2 db99          denoise x.npy -w db99
2 gaus1         denoise x.npy -w gaus1
2 'sure'        denoise x.npy --rule sur
2 rule          denoise x.npy --rule -3
2 mode          denoise x.npy --mode mirror
2 level         denoise x.npy -l five
2 backend       denoise x.npy --backend gpu
2 'numba'       denoise x.npy --backend nump
5 cuda          denoise x.npy --backend cuda
2 wavelet       denoise x.npy --wavlet db4
2 format        denoise x.npy --format segd
2 ns            denoise x.npy --ns 10
2 keep          denoise x.npy --keep -1
1 keep          denoise x.npy --keep 9 -o y.npy
2 .html         denoise x.npy --report z.txt
2 sigma         denoise x.npy --sigma 1,2
2 sigma         denoise x.npy --sigma -4
2 2,4-6         denoise x.npy --columns 1-99999999999
2 increase      denoise x.npy --columns 4-2
2 'denoise'     denoize
2 'modwt'       denoise x.npy --transform swt
2 'reflect'     denoise x.npy --mode mirror
2 output        convert x.npy
2 -o            convert x.npy y.sgy -o z.sgy
2 argument      denoise
# options that contradict each other or the data
1 level         denoise x.npy -l 9
1 haar          denoise x.npy -l 9
1 level         denoise x.npy -w coif17 -l 2
1 thresholds    denoise x.npy --rule 1,2,3 -l 2
1 level         denoise x.npy --two-dimensional -l 1
1 0.6           denoise x.npy --dt 0.002 --noise-window 0.5 0.9
1 0.008         denoise x.npy --dt 0.002 --noise-window 0.5 0.502
1 0.6           denoise x.npy --dt 0.002 --noise-window 0.5 0.9 --max-memory 1GiB
1 interval      denoise x.npy --noise-window 0 0.4 --max-memory 1GiB
1 -window        denoise x.npy --dt 0.002 --noise-window nan 1
1 increase      denoise x.npy --dt 0.002 --noise-intervals 0.5,0.2
1 0.008         denoise x.npy --dt 0.002 --noise-running 0.001
1 interval      denoise x.npy --noise-running 0.5
2 only          denoise x.npy --noise-window none 0.1
2 max-memory    denoise x.npy --max-memory lots
2 plot          denoise x.npy --max-memory 1GiB --plot p.png
2 max-memory    denoise x.npy --max-memory 1GiB -o -
1 level         denoise x.npy --dry-run -l 30
1 few           denoise x.npy --dt 0.002 --noise-window 0 0.02 --dry-run
1 SAC           denoise seismic.dat -o q.sac --dry-run
1 real          denoise z.npy --transform dtcwt --dry-run
2 sigma         denoise x.npy --dt 0.002 --noise-window 0 0.5 --sigma 2
2 transform     denoise x.npy --two-dimensional --transform wp
2 spins         denoise x.npy --two-dimensional --transform fk --spins 2
2 spins         denoise x.npy --transform modwt --spins 3
2 rule          denoise x.npy --two-dimensional --rule blockjs
2 blocks        denoise x.npy --transform modwt --rule blockjs
2 shrink        denoise x.npy --rule sure --shrink mean
2 max-memory    denoise x.npy --max-memory 1GiB --format seg2
2 -q            denoise x.npy -q -v
2 -o            denoise x.npy -o x --out-dir y
2 -o            denoise survey/a/?.npy -o y.npy
# names of files
3 gone.dat      denoise gone.dat --overwrite
3 [1].dat       denoise [1].dat
3 x/*.sgy       denoise survey/a/?.npy x/*.sgy
3 nnn           denoise {long}.dat
2 once          denoise - -
2 json          denoise - --json
2 empty         denoise x.npy -o ''
2 empty         denoise x.npy ''
2 empty         info ''
2 empty         convert '' y.npy
2 ::            denoise x.npy::a
2 .foo          denoise x.npy -o y.npy --residual r.foo
2 another       convert x.npy x.npy
2 nowhere       denoise x.npy -o nowhere/y.npy
2 seismic.dat   denoise x.npy --out-dir seismic.dat/sub
2 folder        denoise survey/a/?.npy --log no/log
2 overwrite     denoise survey/b/1.npy
2 overwrite     denoise survey/a/?.npy --log bad.npy
2 x.npy         denoise x.npy -o x.npy --overwrite
2 seismic.dat   denoise seismic.dat -o link.dat --overwrite
2 1.denoised    denoise survey/b/1.npy survey/b/1.denoised.npy --overwrite
2 1.npy         denoise survey/a/?.npy --log survey/a/1.npy --overwrite
2 hard          denoise survey/a/?.npy --log hard --overwrite
2 same          denoise survey/a/?.npy --log survey/a/2.denoised.npy
2 same          denoise survey/a/?.npy link/?.npy
2 same          denoise x.npy -o r.html --report r.html
3 survey/b/*.d* denoise survey/b/*.d* --overwrite
3 name          denoise survey/a
3 device        denoise /dev/zero -o y.npy
3 device        denoise /dev/zero -o y.npy --max-memory 1GiB
3 empty         denoise /dev/null -o y.npy
3 folder        info survey/a
4 folder        denoise survey/a x.npy --dry-run
2 out-dir       denoise x.npy -o survey
# links to themselves
3 loop.npy      denoise loop.npy
3 loop.npy      denoise loop.npy/x.npy
2 loop.npy      denoise x.npy -o loop.npy
2 loop.npy      denoise x.npy --out-dir loop.npy
# figures and reports
2 docx          denoise x.npy --plot y.docx
2 plot          denoise x.npy --gain agc:1
2 offset        denoise x.npy --plot y.png --traces-by offset
2 dt            denoise x.npy --plot y.png --gain agc:1
2 panels        denoise x.npy --plot y.png --panels befor
2 gain          denoise x.npy --plot y.png --gain agc
2 same          denoise seismic.dat -o y.png --plot y.png
2 shot.png      denoise shot.png -o y.dat --plot shot.png --overwrite
2 shot.png      denoise x.npy --plot shot.png
2 bad.npy       denoise x.npy --report bad.npy
1 real          denoise z.npy --report r.html
2 report        denoise seismic.dat --max-memory 1GiB --report r.html
# compare and tune
3 bad.npy       compare bad.npy
1 complex       compare z.npy
2 'bayes'       compare seismic.dat --rule baies
2 shrink        compare seismic.dat --rule js --shrink hard
1 level         compare seismic.dat --level 40
1 --sigma       compare x.npy --sigma 0
1 1.024         compare seismic.dat --noise-window 0 9
2 sigma         compare seismic.dat --noise-window 0 1 --sigma 3
2 seconds       tune seismic.dat --seconds 0
2 'cuda'        tune seismic.dat --backend cudda
# view
3 gone.dat      view gone.dat
3 shot.npy      view shot.npy
2 one           view -
2 one           view survey/a/?.npy
2 one           view survey/a/?.npy -o y.npy
2 name          view seismic.dat -o survey
2 seismic.dat   view seismic.dat -o seismic.dat
2 .foo          view seismic.dat -o x.foo
1 level         view seismic.dat --level 12
2 'sure'        view seismic.dat --rule shure
2 fk            view seismic.dat --transform fk
2 70000         view seismic.dat --port 70000
# other commands
2 dab           wavelets dab
2 samples       ske estimate --samples many
"""
CASES = [line.split(maxsplit=2) for line in USAGE.strip().splitlines() if not line.startswith("#")]
NEED = {"--plot": "matplotlib", "--report": "matplotlib", "view": "panel"}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Files of every kind that the lines of `USAGE` name, none of which any of them may change."""
    top = tmp_path_factory.mktemp("usage")
    for name in ("x.npy", "survey/a/1.npy", "survey/a/2.npy", "survey/b/1.npy", "survey/b/1.denoised.npy"):
        (top / name).parent.mkdir(parents=True, exist_ok=True)
        np.save(top / name, RNG.standard_normal((3, 300)))
    np.save(top / "z.npy", np.zeros(300) * 1j)
    for name in ("seismic.dat", "shot.png", "1.dat"):
        (top / name).write_bytes(SEG2)
    (top / "bad.npy").write_bytes(npy(NOISE)[:200])
    (top / "shot.npy").write_bytes(RANDOM)
    os.symlink("loop.npy", top / "loop.npy")
    os.symlink("seismic.dat", top / "link.dat")
    os.symlink("survey/a", top / "link")
    os.link(top / "survey/a/2.npy", top / "hard")
    return top


def contents(top: Path) -> dict[str, bytes | str]:
    found = [path for path in top.rglob("*") if path.is_symlink() or not path.is_dir()]
    return {str(path): os.readlink(path) if path.is_symlink() else path.read_bytes() for path in found}


@pytest.mark.parametrize(("code", "word", "line"), CASES, ids=[line for _, _, line in CASES])
def test_usage(code, word, line, folder, monkeypatch, capsys):
    words = shlex.split(line.replace("{long}", "n" * 252))
    for word_of_line, module in NEED.items():
        if word_of_line in words:
            pytest.importorskip(module)
    monkeypatch.chdir(folder)
    before = contents(folder)
    if words[0] == "view":
        words.append("--no-browser")
    assert "--out-dir" not in refused(capsys, words, int(code), word) or words[0] == "denoise"
    assert contents(folder) == before


@needs("zarr")
def test_a_folder_that_is_no_store(tmp_path, capsys):
    refused(capsys, ["denoise", tmp_path], 3, "folder")


@pytest.mark.parametrize(("owner", "name", "code"), [(wavefilt, "read", 3), (wavefilt.Recording, "apply", 1)])
def test_an_exception_of_another_library_is_one_sentence(folder, monkeypatch, capsys, owner, name, code):
    def broken(*_, **__):
        raise KeyError("mseed\nrecord")

    monkeypatch.chdir(folder)
    monkeypatch.setattr(owner, name, broken)
    refused(capsys, ["denoise", "seismic.dat"], code, "seismic.dat: KeyError: 'mseed\\nrecord'")
