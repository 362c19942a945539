"""What ObsPy reads from named files alone, what is refused and what to do instead, and how errors name the format."""

from __future__ import annotations

import bz2
import io
import lzma
import os
import resource
import subprocess
import sys
import tarfile
import warnings
import zipfile

import numpy as np
import pytest
from click.testing import CliRunner

import wavefilt
from tests.io.test_io import make_seg2, obspy_data
from tests.support.checkout import ROOT, SAMPLES
from wavefilt.cli import group
from wavefilt.errors import FormatError

NAMED = {
    "win": ["win/10030302.00", "win/1070533011_1701260003.win", "win/25112616_ch0000.10", "win/25112618_ch0000.24bits"],
    "seisan": [
        "seisan/1996-06-03-1917-52S.TEST__002",
        "seisan/2001-01-13-1742-24S.KONO__004",
        "seisan/2005-07-23-1452-04S.CER___030",
        "seisan/D1360930.203",
        "seisan/9701-30-1048-54S.MVO_21_1",
    ],
    "reftek130": ["reftek/065520000_013EE8A0.rt130", "reftek/104800000_000093F8", "reftek/225051000_00008656"],
    "y": ["y/YAYT_BHZ_20021223.124800", "y/YAZRSPE.20100119.060433"],
    "dmx": ["dmx/131114_090600.dmx"],
    "pdas": ["pdas/p1246001.108"],
}


def data(name: str):
    folder, _, file = name.partition("/")
    return obspy_data(folder, "tests", "data", file)


@pytest.mark.parametrize(("format", "name"), [(format, name) for format, names in NAMED.items() for name in names])
def test_formats_that_obspy_recognises_by_name(tmp_path, format, name):
    obspy = pytest.importorskip("obspy")
    path = data(name)
    recording = wavefilt.read(io.BytesIO(path.read_bytes()))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        stream = obspy.read(str(path), format=format.upper())
    assert recording.format == format
    for found, trace in zip(recording.traces, stream, strict=True):
        assert np.array_equal(found, trace.data)
    done = CliRunner().invoke(group, ["denoise", str(path), "-o", str(tmp_path / "x.y")], standalone_mode=False)
    assert done.exception.exit_code == 2
    assert "write MiniSEED or SAC, with -o NAME.mseed" in str(done.exception)


def test_other_bytes_have_none_of_these_marks(rng):
    from wavefilt.io import Probe
    from wavefilt.io.obspy.marks import MARKS

    for content in (bytes(4096), rng.bytes(8192), b"EH" * 512, b"S" * 999, np.arange(999, dtype=">i4").tobytes()):
        for name, check in MARKS.items():
            assert not check(Probe(io.BytesIO(content))), name


def archive(kind: str) -> bytes:
    out = io.BytesIO()
    if kind == "tar":
        with tarfile.open(fileobj=out, mode="w") as file:
            file.add(SAMPLES / "seismic.dat", "x.dat")
    else:
        with zipfile.ZipFile(out, "w") as file:
            file.write(SAMPLES / "seismic.dat", "x.dat")
    return out.getvalue()


SHOT = (SAMPLES / "seismic.dat").read_bytes()
REFUSED = {
    "bz2": (lambda: bz2.compress(SHOT), "compressed with bzip2; decompress it first: bunzip2 -k FILE"),
    "xz": (lambda: lzma.compress(SHOT), "compressed with xz"),
    "tar": (lambda: archive("tar"), "an archive; unpack it first: tar xf FILE"),
    "zip": (lambda: archive("zip"), "a zip archive without arrays; unpack it first"),
    "q": (lambda: data("sh/QFILE-TEST.QHD").read_bytes(), "Seismic Handler header, whose samples are in a .QBN file"),
    "css": (lambda: data("css/test_css.wfdisc").read_bytes(), "a CSS or NNSA table, whose samples are in other files"),
    "nnsa": (lambda: data("css/test_nnsa.wfdisc").read_bytes(), "a CSS or NNSA table, whose samples are in other"),
}


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_refused_says_what_to_do(kind):
    make, words = REFUSED[kind]
    with pytest.raises(FormatError, match=words):
        wavefilt.read(io.BytesIO(make()))


def test_errors_name_the_format(tmp_path):
    (tmp_path / "in.dat").write_bytes(make_seg2([bytes(64)] * 3, 4)[:-5])
    with pytest.raises(FormatError, match=r"in\.dat: SEG-2: trace 3 of 16 samples ends at byte"):
        wavefilt.read(tmp_path / "in.dat")
    (tmp_path / "in.txt").write_bytes(b"1 2\n3 4\n5\n")
    with pytest.raises(FormatError, match=r"in\.txt: ASCII: line 3: '5' has 1 cells"):
        wavefilt.read(tmp_path / "in.txt")


def test_a_name_that_leaves_a_store_is_no_array_of_it(tmp_path):
    zarr = pytest.importorskip("zarr")
    zarr.open_group(str(tmp_path / "a.zarr"), mode="w").create_array("x", shape=(2, 64), dtype="f4")
    zarr.open_group(str(tmp_path / "b.zarr"), mode="w").create_array("y", shape=(2, 64), dtype="f4")
    done = CliRunner().invoke(group, ["info", f"{tmp_path}/a.zarr::../b.zarr/y"], standalone_mode=False)
    assert done.exception.code == 3
    assert "has no array '../b.zarr/y'; it has x" in str(done.exception)


@pytest.mark.skipif(sys.platform == "win32", reason="limits of processes")
@pytest.mark.parametrize("format", ["mseed", "slist"])
def test_a_limit_on_the_size_of_files_is_one_line(tmp_path, format):
    """As a full disk for temporary files is."""
    obspy = pytest.importorskip("obspy")
    samples = np.random.default_rng(1).standard_normal(60_000).astype("f4")
    obspy.Trace(samples, {"station": "A", "delta": 0.01}).write(str(tmp_path / "x"), format=format.upper())
    done = subprocess.run(
        [sys.executable, "-m", "wavefilt", "denoise", str(tmp_path / "x"), "-o", str(tmp_path / "y")],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000)),
    )
    assert done.returncode == 1
    assert len(done.stderr.splitlines()) == 1
    assert "File too large" in done.stderr
    assert os.listdir(tmp_path) == ["x"]
