"""Damaged and unlikely files: past findings, mutations of whole files, random bytes, and fuzzing by coverage."""

from __future__ import annotations

import io
import re
import subprocess
import sys
from contextlib import suppress
from functools import cache
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wavefilt
from tests.support.checkout import ROOT
from tests.support.reader_contract import FINDINGS, KINDS, read_bytes, without_obspy
from tests.support.reader_seeds import large, seeds

KEPT = sorted(path.relative_to(FINDINGS) for path in FINDINGS.glob("*/*"))
EXTREMES = [
    *(b"\0", b"\xff", b"\0\0", b"\xff\xff", b"\x80\0", b"\0\x80", b"\0" * 4, b"\xff" * 4, b"\xff\xff\xff\x7f"),
    *(b"\x7f\xff\xff\xff", b"\xff" * 8, b"9" * 30, b"-", b"nan", b"1e999", b"\x1b[2J", b"\n", b"'"),
]
"""Values for fields of headers: least and most of each width and sign, and text that is no plain number."""


@cache
def read_once() -> None:
    """Import what the first file of each format takes, which is not part of the time."""
    for data in seeds("detected").values():
        read_bytes(data, "detected", memory=False)


@pytest.fixture
def alone():
    with without_obspy():
        read_once()
        yield


@pytest.mark.parametrize("path", KEPT, ids=str)
def test_findings_of_the_fuzzer(alone, path: Path):
    data = (FINDINGS / path).read_bytes()
    assert read_bytes(data, path.parts[0], memory=False).story
    assert read_bytes(data, "detected").story


@pytest.mark.parametrize("kind", KINDS)
def test_seeds_are_read_or_recognised(alone, kind):
    stories = {name: read_bytes(data, kind).story for name, data in seeds(kind).items()}
    assert "read" in stories.values()
    unknown = {name for name, story in stories.items() if "unknown format" in story}
    assert kind != "detected" or unknown == {name for name in stories if name.startswith("raw")}


@st.composite
def damaged(draw: st.DrawFn, kind: str) -> bytes:
    """A seed cut short, with bytes flipped, or fields of it set to extremes."""
    data = bytearray(draw(st.sampled_from(list(seeds(kind).values()))))
    for _ in range(draw(st.integers(0, 3))):
        new, at = draw(st.sampled_from(EXTREMES) | st.binary(min_size=1, max_size=2)), draw(st.integers(0, len(data)))
        data[at : at + (len(new) if draw(st.booleans()) else 0)] = new
    return bytes(data[: draw(st.integers(0, len(data)))]) if draw(st.booleans()) else bytes(data)


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_files(alone, kind):
    @settings(max_examples=30, database=None)
    @given(damaged(kind))
    def check(data: bytes) -> None:
        assert read_bytes(data, kind, memory=False).story

    check()


@given(st.binary(max_size=4000))
def test_random_bytes_with_obspy(data):
    pytest.importorskip("obspy")
    with suppress(wavefilt.FormatError):
        assert min(map(len, wavefilt.read(io.BytesIO(data)).traces)) > 0


@pytest.mark.parametrize("kind", ["npy", "raw", "wav", "segy", "sac"])
def test_streams_take_and_refuse_the_same_files(alone, kind, tmp_path):
    """With a rule that removes nothing, streaming writes the samples that are read."""
    path, target, options = tmp_path / "input.dat", tmp_path / "output.dat", KINDS[kind][0]

    @settings(max_examples=15, database=None)
    @given(damaged(kind))
    def check(data: bytes) -> None:
        path.write_bytes(data)
        target.unlink(missing_ok=True)
        try:
            whole = wavefilt.read(path, **options)
        except wavefilt.FormatError as error:
            with pytest.raises(wavefilt.FormatError, match=re.escape(str(error)[:60])):
                wavefilt.denoise_file(path, target, **options)
            assert not target.exists()
            return
        try:
            whole.denoise(level=0).write(target, overwrite=True)
            expected = wavefilt.read(target, **options).samples
        except ValueError:  # not finite
            return
        wavefilt.denoise_file(path, target, overwrite=True, level=0, **options)
        np.testing.assert_array_equal(wavefilt.read(target, **options).samples, expected)

    check()


@pytest.mark.parametrize("name", large(24))
def test_time_and_memory_of_long_files(alone, name):
    for size in (1 << 14, 300_000, 1 << 20):
        kind, data = large(size)[name]
        assert read_bytes(data, kind).memory > 0


def test_a_large_file_of_no_format_is_refused_in_little_memory(tmp_path):
    """ObsPy's tests of some text formats read up to the end of a line, which is all of a file of zeros."""
    pytest.importorskip("obspy")
    resource = pytest.importorskip("resource")
    with open(tmp_path / "x", "wb") as file:
        file.truncate(3 << 30)
    code = "import sys, obspy, wavefilt; wavefilt.read(sys.argv[1])"
    done = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "x"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (2 << 30, 2 << 30)),
    )
    assert "FormatError" in done.stderr


@pytest.mark.fuzz
@pytest.mark.parametrize("kind", KINDS)
def test_fuzzing_finds_nothing(kind):
    pytest.importorskip("atheris")
    command = [sys.executable, "tests/support/fuzz_readers.py", kind, "-atheris_runs=8000", "-max_total_time=70"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, errors="replace")
    assert "Done " in done.stderr, done.stderr  # after that line its alarm may still end Python, which is no finding
