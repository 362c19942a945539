"""Memory: the peak of streaming, files that do not fit, and clear errors where there is too little."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import wavefilt
from tests.support.checkout import ROOT, run
from tests.support.file_bytes import segy_file
from wavefilt.cli import denoise

MIB = 1 << 20
PEAK = """
import re, sys, numpy, wavefilt
def peak(): return int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1])
small, source, target, limit, backend, scope = sys.argv[1:]
options = {"backend": backend, "scope": scope, "overwrite": True}
if source.endswith(".raw"):
    options |= {"format": "raw", "dtype": "f4", "endian": "little", "ns": 1 << 13, "preset": "gentle"}
for name in ("numba", backend):  # libraries and kernels are loaded; those of the CPU also sum the energies
    wavefilt.denoise_file(small, target, **options | {"backend": name})
    wavefilt.denoise(numpy.arange(200_000, dtype="f4"), backend=name)  # by several threads
before = peak()
wavefilt.denoise_file(source, target, max_memory=limit, **options)
print(1024 * (peak() - before))
"""

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="memory of processes as Linux has it")


def measured(*arguments) -> int:
    """Return the bytes by which denoising a file raises the peak of a process; for the arguments of `PEAK`."""
    done = subprocess.run(
        [sys.executable, "-c", PEAK, *map(str, arguments)], cwd=ROOT, capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def _write(path, x):
    """Write a file by the ending of its name and return what to read."""
    if path.suffix == ".npy":
        np.save(path, x)
    elif path.suffix == ".raw":
        x.tofile(path)
    elif path.suffix == ".sgy":
        path.write_bytes(segy_file(5, ">", stored=x))
    elif path.suffix == ".h5":
        with pytest.importorskip("h5py").File(path, "w") as file:
            file.create_dataset("x", data=x, chunks=(min(len(x), 16), 1 << 13))
        return f"{path}::x"
    else:
        chunks = (min(len(x), 16), 1 << 13)
        pytest.importorskip("zarr").create_array(str(path), data=x, chunks=chunks, compressors=None)
    return path


TRACES, TRACE = (1 << 11, 1 << 13), (1, 1 << 24)


@linux
@pytest.mark.parametrize(
    ("kind", "shape", "scope"),
    [
        ("npy", TRACE, "trace"),
        ("raw", TRACES, "record"),
        ("sgy", TRACES, "trace"),
        ("h5", TRACE, "trace"),
        ("zarr", TRACES, "record"),
    ],
)
def test_peak_memory(tmp_path, kind, shape, scope):
    """64 MiB within 48 MiB, of which some go unused."""
    sweep = np.sin(np.arange(1 << 13) / 9) + np.random.default_rng(1).standard_normal((64, 1 << 13))
    x = np.resize(sweep.astype("f4"), shape)
    source = _write(tmp_path / f"x.{kind}", x)
    small = _write(tmp_path / f"small.{kind}", x[:2, : 1 << 13])
    assert 8 * MIB < measured(small, source, tmp_path / f"y.{kind}", "48MiB", "numba", scope) < 1.2 * 48 * MIB


def test_a_file_larger_than_memory_is_streamed_automatically(tmp_path, monkeypatch, capsys, rng):
    """The free memory is that of the system, or of its container."""
    x = rng.standard_normal((100, 50_000)).astype("f4")
    np.save(tmp_path / "x.npy", x)
    for kind, text in (("system", "MemAvailable: 60000 kB\n"), ("container", "MemAvailable: 900000000 kB\n")):
        folder = tmp_path / kind
        folder.mkdir()
        (folder / "meminfo").write_text(f"MemTotal: 99 kB\n{text}")
        if kind == "container":
            (folder / "memory.stat").write_text(f"anon {40 * MIB}\nfile 5\n")
            (folder / "memory.max").write_text(f"{100 * MIB}\n")
        monkeypatch.setattr(denoise, "MEMINFO", folder / "meminfo")
        monkeypatch.setattr(denoise, "CGROUP", folder)
        code, _, err = run(capsys, "denoise", tmp_path / "x.npy", "--backend", "pywavelets", "--overwrite")
        assert (code, "larger than memory: streamed" in err) == (0, True), err
        assert np.array_equal(np.load(tmp_path / "x.denoised.npy"), wavefilt.denoise(x, backend="pywavelets"))


def test_too_little_memory_is_an_error_of_one_line(tmp_path, monkeypatch, capsys):
    def full(*_, **__):
        raise MemoryError

    monkeypatch.setattr(wavefilt.recording.Recording, "apply", full)
    np.save(tmp_path / "x.npy", np.ones((2, 500)))
    code, _, err = run(capsys, "denoise", tmp_path / "x.npy")
    assert (code, err.count("\n")) == (1, 1)
    assert "--max-memory SIZE" in err
