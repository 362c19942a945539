"""Files larger than the limit of memory, in every format that is streamed: the peak of a process of its own."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import wavefilt
from tests.support.segy_files import segy_file, su_file
from wavefilt.outofcore.sizes import in_bytes

PEAK = """
import re, sys, wavefilt
def peak(): return int(re.search(r"VmHWM:\\s+(\\d+) kB", open("/proc/self/status").read())[1])
small, source, target, limit, backend, scope = sys.argv[1:]
options = {"backend": backend, "scope": scope, "overwrite": True}
if source.endswith(".raw"):
    options |= {"format": "raw", "dtype": "f4", "endian": "little", "ns": 1 << 13}
for name in ("numba", backend):  # libraries and kernels are loaded, of the CPU too, which sums up energies
    wavefilt.denoise_file(small, target, **options | {"backend": name})
if backend == "numba":
    from wavefilt.backends.numba_cpu import team
    team._team.hire(1)  # whose program is compiled once
before = peak()
wavefilt.denoise_file(source, target, max_memory=limit, **options)
print(1024 * (peak() - before))
"""

pytestmark = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the peak is read from /proc")


def measured(*arguments):
    """Bytes of memory that a process took for a file beside what it held before; for the arguments of `PEAK`."""
    done = subprocess.run([sys.executable, "-c", PEAK, *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return int(done.stdout)


def _npy(path, x):
    np.save(path, x)
    return path


def _raw(path, x):
    x.tofile(path)
    return path


def _segy(path, x):
    path.write_bytes(segy_file(5, ">", len(x), x.shape[1], stored=x))
    return path


def _su(path, x):
    path.write_bytes(su_file(">", len(x), x.shape[1], stored=x))
    return path


def _hdf5(path, x):
    h5py = pytest.importorskip("h5py")
    with h5py.File(path, "w") as file:
        file.create_dataset("x", data=x, chunks=(min(len(x), 16), 1 << 13))
    return f"{path}::x"


def _zarr(path, x):
    zarr = pytest.importorskip("zarr")
    group = zarr.open_group(str(path), mode="w")
    group.create_array("x", shape=x.shape, dtype=x.dtype, chunks=(min(len(x), 16), 1 << 13))[:] = x
    return f"{path}::x"


MAKE = {"npy": _npy, "raw": _raw, "sgy": _segy, "su": _su, "h5": _hdf5, "zarr": _zarr}
TRACES, TRACE = (1 << 11, 1 << 13), (1, 1 << 24)


@pytest.mark.parametrize(
    ("kind", "shape", "scope"),
    [
        ("npy", TRACE, "trace"),
        ("npy", TRACES, "trace"),
        ("raw", TRACES, "record"),
        ("sgy", TRACES, "record"),
        ("su", TRACES, "trace"),
        ("h5", TRACE, "trace"),
        ("zarr", TRACES, "record"),
    ],
)
def test_peak_memory(tmp_path, kind, shape, scope):
    """64 MiB within 48 MiB, of which some go unused."""
    sweep = np.sin(np.arange(1 << 13) / 9) + np.random.default_rng(1).standard_normal((64, 1 << 13))
    x = np.resize(sweep.astype("f4"), shape)
    source = MAKE[kind](tmp_path / f"x.{kind}", x)
    small = MAKE[kind](tmp_path / f"small.{kind}", x[:2, : 1 << 13])
    target = tmp_path / f"y.{kind}"
    assert (8 << 20) < measured(small, source, target, "48MiB", "numba", scope) < 1.2 * (48 << 20)


def test_peak_memory_of_encoded_chunks_of_several_traces(tmp_path):
    """32 MiB in two chunks, of which what is read and written takes most of the least limit."""
    zarr = pytest.importorskip("zarr")
    x = np.random.default_rng(1).standard_normal((4, 1 << 21), dtype="f4")
    source, target = tmp_path / "x.zarr", tmp_path / "y.zarr"
    zarr.open_array(str(source), mode="w", shape=x.shape, chunks=(4, 1 << 20), dtype="f4")[:] = x
    with pytest.raises(ValueError, match="is the least") as refused:
        wavefilt.denoise_file(source, target, max_memory="30MiB", backend="numba")
    least = str(refused.value).split(": ")[-1].removesuffix(" is the least")
    small = _zarr(tmp_path / "small.zarr", x[:2, : 1 << 13])
    assert (64 << 20) < measured(small, source, target, least, "numba", "trace") < 1.2 * in_bytes(least)
