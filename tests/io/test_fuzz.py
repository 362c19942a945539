"""Damaged and unlikely files: all that once broke a reader, mutations of whole ones, and fuzzing by coverage."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import wavefilt
from tests.support.checkout import ROOT
from tests.support.reader_contract import FINDINGS, KINDS, read_bytes, readers_alone
from tests.support.reader_seeds import large, seeds
from wavefilt.errors import FormatError
from wavefilt.io.layout import Layout
from wavefilt.io.sources import open_source

KEPT = sorted(path.relative_to(FINDINGS) for path in FINDINGS.glob("*/*"))
EXTREMES = [
    b"\0",
    b"\xff",
    b"\0\0",
    b"\xff\xff",
    b"\x80\0",
    b"\0\x80",
    b"\0" * 4,
    b"\xff" * 4,
    b"\xff\xff\xff\x7f",
    b"\x7f\xff\xff\xff",
    b"\xff" * 8,
    b"9" * 30,
    b"-",
    b"nan",
    b"1e999",
    b"\x1b[2J",
    b"\n",
    b"'",
]
"""What fields of headers are set to: least and most of each width and sign, and text that is no plain number."""


@pytest.fixture(autouse=True, scope="module")
def alone():
    """Without ObsPy and h5py, and with what the first of a format imports."""
    with readers_alone():
        for data in seeds("detected").values():
            read_bytes(data, "detected", memory=False)
        yield


@pytest.mark.parametrize("path", KEPT, ids=str)
def test_what_was_found_once(path: Path):
    data = (FINDINGS / path).read_bytes()
    assert read_bytes(data, path.parts[0], memory=False).story
    assert read_bytes(data, "detected").story


@pytest.mark.parametrize("kind", KINDS)
def test_seeds_are_read_or_refused_for_what_they_are(kind):
    stories = {name: read_bytes(data, kind).story for name, data in seeds(kind).items()}
    assert "read" in stories.values()
    assert kind != "detected" or {name for name, story in stories.items() if "unknown format" in story} == {
        name for name in stories if name.startswith("raw")
    }


@st.composite
def damaged(draw: st.DrawFn, kind: str) -> bytes:
    """A seed cut short, with bytes flipped, or fields of it set to extremes."""
    data = bytearray(draw(st.sampled_from(list(seeds(kind).values()))))
    for _ in range(draw(st.integers(0, 3))):
        new, at = draw(st.sampled_from(EXTREMES) | st.binary(min_size=1, max_size=2)), draw(st.integers(0, len(data)))
        data[at : at + (len(new) if draw(st.booleans()) else 0)] = new
    return bytes(data[: draw(st.integers(0, len(data)))]) if draw(st.booleans()) else bytes(data)


@pytest.mark.parametrize("kind", KINDS)
def test_damaged_files(kind):
    @settings(max_examples=30, database=None)
    @given(damaged(kind))
    def check(data: bytes) -> None:
        read_bytes(data, kind, memory=False)

    check()


@pytest.mark.parametrize("kind", ["npy", "raw"])
def test_streams_take_and_refuse_the_same(kind, tmp_path):
    path, options = tmp_path / "input.dat", {**KINDS[kind][0]}
    format = options.pop("format")

    @settings(max_examples=40, database=None)
    @given(damaged(kind))
    def check(data: bytes) -> None:
        path.write_bytes(data)
        try:
            whole = wavefilt.read(path, format=format, **options).samples
        except FormatError as error:
            with pytest.raises(FormatError, match=re.escape(str(error))):
                open_source(path, Layout(**options), format)
            return
        source = open_source(path, Layout(**options), format)
        parts = np.empty(source.shape, source.dtype)
        source.read(slice(0, len(parts)), 0, parts)
        source.close()
        np.testing.assert_array_equal(parts, whole)

    check()


@pytest.mark.parametrize("size", [1 << 14, 1 << 16, 300_000, 1 << 20])
@pytest.mark.parametrize("name", ["SEG-2, 16 bits", "ASCII, one digit a cell", "ASCII, last line bad", "WAV, 8 bits"])
def test_time_and_memory_of_long_files(name, size):
    kind, data = large(size)[name]
    assert read_bytes(data, kind).memory > 0


@pytest.mark.fuzz
def test_fuzzing_finds_nothing(tmp_path):
    pytest.importorskip("atheris")
    command = [
        "tests/support/fuzz_readers.py",
        "--runs",
        "70000",
        "--seconds",
        "600",
        "--corpus",
        tmp_path / "corpus",
        "--save",
        tmp_path / "figures.json",
    ]
    done = subprocess.run([sys.executable, *command], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    figures = json.loads((tmp_path / "figures.json").read_text())
    assert figures["inputs"] >= 70_000
    assert all(kind["read"] and kind["errors"] and kind["measured"] for kind in figures["kinds"].values())
