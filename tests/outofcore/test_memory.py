"""Memory: the peak of streaming, files that do not fit, and clear errors where there is too little."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest

import wavefilt
from tests.support.checkout import ROOT
from tests.support.file_bytes import segy_file

MIB = 1 << 20
PEAK = """
import re, sys, numpy, wavefilt
def peak(): return int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1])
small, source, target, limit, backend, scope = sys.argv[1:]
options = {"backend": backend, "scope": scope, "overwrite": True}
if source.endswith(".raw"):
    options |= {"format": "raw", "dtype": "f4", "endian": "little", "ns": 1 << 13}
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


def _command_within(limit: int, *arguments: object) -> subprocess.CompletedProcess:
    """Run the command in a process that has so many bytes of addresses."""
    import resource

    return subprocess.run(
        [sys.executable, "-m", "wavefilt", *map(str, arguments)],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=300,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit, limit)),
    )


@linux
@pytest.mark.parametrize("limit", [100, 200, 400, 550, 610, 700])
def test_too_little_memory_is_an_error_of_one_line(tmp_path, limit, rng):
    pytest.importorskip("numba")
    np.save(tmp_path / "x.npy", rng.standard_normal((24, 20_000)).astype("f4"))
    done = _command_within(limit * MIB, "denoise", tmp_path / "x.npy", "--backend", "numba")
    result = tmp_path / "x.denoised.npy"
    assert done.returncode == 1 - result.exists(), done.stderr
    if done.returncode:
        assert len(done.stderr.splitlines()) == 1
        assert "not enough memory" in done.stderr
    else:
        assert np.load(result).shape == (24, 20_000)


@linux
def test_a_file_larger_than_memory_is_streamed_without_being_asked(tmp_path):
    x = np.random.default_rng(1).standard_normal((10_000, 2000), dtype="f4")
    np.save(tmp_path / "x.npy", x)
    done = _command_within(600 * MIB, "denoise", tmp_path / "x.npy", "--backend", "pywavelets")
    assert done.returncode == 0, done.stderr
    assert re.search("larger than memory: streamed", done.stderr)
    y = np.load(tmp_path / "x.denoised.npy", mmap_mode="r")
    for some in (slice(0, 50), slice(-50, None)):
        assert np.array_equal(y[some], wavefilt.denoise(x[some], backend="pywavelets"))
