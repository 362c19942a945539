"""Results appear whole or not at all: what exists is not overwritten, and errors and full disks leave nothing."""

from __future__ import annotations

import errno
import os
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import wavefilt
from tests.support.checkout import ROOT, SAMPLES, least_memory
from tests.support.file_bytes import segy_file

SHOT = SAMPLES / "seismic.dat"


def test_an_existing_file_is_replaced_only_on_request(tmp_path):
    recording, path = wavefilt.read(SHOT), tmp_path / "a.dat"
    path.write_bytes(b"old")
    with pytest.raises(FileExistsError, match="overwrite"):
        recording.write(path)
    with pytest.raises(FileExistsError, match="overwrite"):
        wavefilt.denoise_file(_npy(tmp_path / "x.npy"), path)
    assert path.read_bytes() == b"old"
    recording.write(path, overwrite=True)
    assert path.read_bytes() == SHOT.read_bytes()
    for target in (tmp_path, tmp_path / "no" / "folder"):
        with pytest.raises(OSError, match="folder"):
            recording.write(target, overwrite=True)
    assert sorted(os.listdir(tmp_path)) == ["a.dat", "x.npy"]


def _npy(path: Path, samples: int = 5000) -> Path:
    np.save(path, np.random.default_rng(1).standard_normal(samples))
    return path


@pytest.mark.skipif(sys.platform == "win32", reason="links, permissions and devices")
def test_links_permissions_and_devices(tmp_path):
    recording = wavefilt.read(SHOT)
    (tmp_path / "real.dat").write_bytes(b"old")
    (tmp_path / "real.dat").chmod(0o600)
    (tmp_path / "link.dat").symlink_to("real.dat")
    with pytest.raises(FileExistsError):
        recording.write(tmp_path / "link.dat")
    recording.write(tmp_path / "link.dat", overwrite=True)
    assert (tmp_path / "link.dat").is_symlink()
    assert (tmp_path / "real.dat").read_bytes() == SHOT.read_bytes()
    assert stat.S_IMODE((tmp_path / "real.dat").stat().st_mode) == 0o600
    (tmp_path / "real.dat").chmod(0o444)
    with pytest.raises(PermissionError):
        recording.write(tmp_path / "link.dat", overwrite=True)
    recording.write(tmp_path / "a.dat")
    (tmp_path / "plain").write_bytes(b"")
    assert (tmp_path / "a.dat").stat().st_mode == (tmp_path / "plain").stat().st_mode
    recording.write("/dev/null")
    assert Path("/dev/null").is_char_device()


def _sources(folder: Path) -> dict[str, str]:
    """Return files whose results take more than 100 kB."""
    x = np.random.default_rng(1).standard_normal((3, 20_000)).astype("f4")
    found = {"npy": "x.npy", "raw": "x.raw", "zarr": "x.zarr", "hdf5": "x.h5::a", "mseed": "x.mseed", "slist": "x.txt"}
    np.save(folder / "x.npy", x)
    x.tofile(folder / "x.raw")
    pytest.importorskip("zarr").create_array(str(folder / "x.zarr"), data=x, chunks=(3, 20_000), compressors=None)
    with pytest.importorskip("h5py").File(folder / "x.h5", "w") as file:
        file["a"] = x
    obspy = pytest.importorskip("obspy")
    for name in ("mseed", "slist"):
        obspy.Trace(x.reshape(-1), {"station": "A", "delta": 0.01}).write(str(folder / found[name]), name.upper())
    return found


@pytest.mark.parametrize("streamed", [False, True], ids=["in memory", "streamed"])
@pytest.mark.parametrize("kind", ["npy", "raw", "zarr", "hdf5", "mseed", "slist"])
def test_a_full_disk_is_one_line_and_leaves_nothing(tmp_path, kind, streamed):
    """The limit on the size of files of a process stands for the disk; temporary files count too."""
    resource = pytest.importorskip("resource")
    if streamed and kind in ("mseed", "slist"):
        pytest.skip("not streamed")
    source, out = tmp_path / _sources(tmp_path)[kind], tmp_path / ("y.zarr" if kind == "zarr" else "y")
    if kind != "zarr":
        out.write_bytes(b"old")
    before = sorted(os.listdir(tmp_path))
    command = ["denoise", source, "-o", out, "--backend", "pywavelets", "--overwrite"]
    command += ["--format", "raw", "--dtype", "f4", "--endian", "little", "--ns", "20000"] if kind == "raw" else []
    command += ["--max-memory", "1GiB"] if streamed else []
    done = subprocess.run(
        [sys.executable, "-m", "wavefilt", *map(str, command)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000)),
    )
    assert (done.returncode, len(done.stderr.splitlines())) == (1, 1), done.stderr
    assert os.strerror(errno.EFBIG) in done.stderr
    assert str(out) in done.stderr
    assert sorted(os.listdir(tmp_path)) == before
    assert kind == "zarr" or out.read_bytes() == b"old"


@pytest.mark.parametrize("kind", ["npy", "zarr"])
def test_an_output_that_appears_during_the_run_is_not_replaced(tmp_path, kind):
    source, target = tmp_path / _sources(tmp_path)[kind], tmp_path / f"late.{kind}"

    def appears(*_):
        if kind == "npy":
            target.write_bytes(b"theirs")
        else:
            target.mkdir(exist_ok=True)
            (target / "thesis").write_text("theirs")

    before = sorted(os.listdir(tmp_path))
    with pytest.raises(FileExistsError):
        wavefilt.denoise_file(source, target, progress=appears)
    assert (target / "thesis" if kind == "zarr" else target).read_text() == "theirs"
    assert sorted(os.listdir(tmp_path)) == sorted([*before, target.name])


def test_a_store_is_replaced_on_request_and_other_folders_are_not(tmp_path):
    zarr = pytest.importorskip("zarr")
    source, target = tmp_path / "x.zarr", tmp_path / "y.zarr"
    for path, value in ((source, 1), (target, 2)):
        zarr.create_array(str(path), shape=(2, 64), chunks=(1, 64), dtype="f4")[:] = value
    with pytest.raises(FileExistsError):
        wavefilt.denoise_file(source, target)
    assert np.unique(wavefilt.read(target).samples) == 2
    wavefilt.denoise_file(source, target, overwrite=True)
    assert np.unique(wavefilt.read(target).samples) == 1
    (target / "zarr.json").unlink()
    with pytest.raises(OSError, match=r"y\.zarr"):
        wavefilt.denoise_file(source, target, overwrite=True)
    assert sorted(os.listdir(tmp_path)) == ["x.zarr", "y.zarr"]


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # files that zarr was opening
@pytest.mark.parametrize("kind", ["npy", "zarr"])
def test_ctrl_c_at_any_line_leaves_the_old_or_the_new_result_and_nothing_else(tmp_path, kind):
    x, steps = np.random.default_rng(1).standard_normal((2, 64)), 0

    def put(path, samples):
        if kind == "npy":
            np.save(path, samples)
        else:
            pytest.importorskip("zarr").create_array(str(path), data=samples, chunks=(1, 64), overwrite=True)

    def interrupt(frame, event, arg):
        nonlocal steps
        if any(part in frame.f_code.co_filename for part in ("wavefilt/io", "contextlib", "shutil")):
            steps -= 1
            if steps == 0:
                raise KeyboardInterrupt
            return interrupt
        return None

    source, target = tmp_path / f"x.{kind}", tmp_path / f"y.{kind}"
    put(source, x)
    recording = wavefilt.read(source)
    for at in range(1, 2000, 17):
        put(target, 2 * x)
        steps = at
        sys.settrace(interrupt)
        try:
            recording.write(target, overwrite=True)
        except (KeyboardInterrupt, OSError):  # rmtree may close a descriptor twice
            pass
        finally:
            sys.settrace(None)
        assert sorted(os.listdir(tmp_path)) == [source.name, target.name]
        assert np.unique(wavefilt.read(target).samples / x) in ([1], [2])
        if steps > 0:
            return
    raise AssertionError("never came to the end")


@pytest.mark.parametrize("change", ["shrinks", "is touched"])
@pytest.mark.parametrize("kind", ["npy", "segy"])
def test_a_source_that_changes_during_the_run(tmp_path, kind, change):
    path, target = tmp_path / f"x.{kind}", tmp_path / "y"
    if kind == "npy":
        _npy(path, 1_500_000)
    else:
        path.write_bytes(segy_file(5, count=1000, ns=1500))
    target.write_bytes(b"kept")
    options = {"rule": "universal", "backend": "pywavelets"}

    def changes(*_):
        os.truncate(path, 30_000) if change == "shrinks" else os.utime(path, (1, 1))

    with pytest.raises(OSError, match="while it was read"):
        wavefilt.denoise_file(
            path, target, overwrite=True, max_memory=least_memory(path, **options), progress=changes, **options
        )
    assert sorted(os.listdir(tmp_path)) == [path.name, "y"]
    assert target.read_bytes() == b"kept"
