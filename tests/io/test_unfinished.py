"""Results that appear in one step, replace nothing that they must not, and what killed runs leave behind."""

from __future__ import annotations

import errno
import os
import signal
import socket
import stat
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import wavefilt
from tests.support.checkout import ROOT
from wavefilt.io import unfinished, write_atomically
from wavefilt.io.atomic import replacing

KILLED = """
import os, signal, sys
from pathlib import Path
from wavefilt.io import unfinished
from wavefilt.io.atomic import replacing
with replacing(Path(sys.argv[1]), overwrite=False) as file:
    file.write(b"x" * 5000)
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture(autouse=True)
def folders_are_looked_at_again():
    unfinished.recover.cache_clear()


def run(code: str, *arguments: object) -> int:
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    return subprocess.run([sys.executable, "-c", code, *map(str, arguments)], env=environment).returncode


def left(folder: Path) -> list[str]:
    return [name for name in os.listdir(folder) if name.endswith(".tmp")]


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
def test_what_a_killed_run_left_is_removed_by_the_next(tmp_path, caplog):
    assert run(KILLED, tmp_path / "a") == -signal.SIGKILL
    assert len(left(tmp_path)) == 1
    write_atomically(tmp_path / "a", b"done")
    assert os.listdir(tmp_path) == ["a"]
    assert caplog.messages == [f"wavefilt: {tmp_path}: removed 1 unfinished result of killed runs"]


def test_what_others_still_write_stays(tmp_path, caplog):
    """A run that goes on, one of another machine, and one whose name tells nothing."""
    own = unfinished.temporary(tmp_path)
    gone = own.name.replace(f"-{os.getpid()}-", "-999999999-")
    names = [own.name, gone.replace(socket.gethostname(), "elsewhere"), ".wavefilt-0123456789ab.tmp"]
    for name in names:
        (tmp_path / name).write_bytes(b"x")
    unfinished.recover.cache_clear()
    write_atomically(tmp_path / "a", b"done")
    assert sorted(os.listdir(tmp_path)) == sorted([*names, "a"])
    assert not caplog.messages
    (tmp_path / gone).write_bytes(b"x")
    (tmp_path / own.name.replace(f"-{unfinished._start(os.getpid())}-", "-7-")).write_bytes(b"x")  # a number used again
    unfinished.recover.cache_clear()
    write_atomically(tmp_path / "b", b"done")
    assert sorted(os.listdir(tmp_path)) == sorted([*names, "a", "b"])


@pytest.mark.parametrize("system", [True, False], ids=["renameat2", "without"])
def test_a_file_that_appears_meanwhile_is_not_replaced(tmp_path, monkeypatch, system):
    if not system:
        monkeypatch.setattr(unfinished, "rename", lambda *_: False)

    def appears():
        with replacing(tmp_path / "a", overwrite=False) as file:
            file.write(b"new")
            (tmp_path / "a").write_bytes(b"theirs")

    with pytest.raises(FileExistsError, match="exists"):
        appears()
    assert (tmp_path / "a").read_bytes() == b"theirs"
    assert os.listdir(tmp_path) == ["a"]


@pytest.mark.skipif(sys.platform == "win32", reason="permissions")
def test_permissions_of_a_replaced_file_are_kept(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    path.chmod(0o600)
    write_atomically(path, b"new", overwrite=True)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    path.chmod(0o444)
    with pytest.raises(PermissionError, match="is read-only; it is not replaced"):
        write_atomically(path, b"newer", overwrite=True)
    assert path.read_bytes() == b"new"


@pytest.fixture
def store(tmp_path):
    """Makes a store of zeros, ones ..., and gives its only sample value."""
    zarr = pytest.importorskip("zarr")

    def make(name: str, value: float) -> Path:
        array = zarr.create_array(str(tmp_path / name), shape=(2, 64), chunks=(1, 64), dtype="f4")
        array[:] = value
        return tmp_path / name

    return make


def value(path: Path) -> float:
    return float(np.unique(wavefilt.read(path).samples).item())


def denoised(source: Path, target: Path, *, overwrite: bool, before=lambda: None) -> None:
    from wavefilt.io.arrays import zarr as stores
    from wavefilt.io.layout import Layout

    opened = stores.Store(str(source), Layout())
    with opened.create(target, overwrite=overwrite) as out:
        out.write(slice(0, 2), 0, np.full((2, 64), 5, "f4"))
        before()


@pytest.mark.parametrize("system", [True, False], ids=["renameat2", "without"])
class TestStores:
    @pytest.fixture(autouse=True)
    def choose(self, monkeypatch, system):
        if not system:
            monkeypatch.setattr(unfinished, "rename", lambda *_: False)

    @pytest.mark.parametrize("overwrite", [True, False])
    def test_a_folder_that_appears_meanwhile_is_left(self, tmp_path, store, overwrite):
        source, target = store("x.zarr", 1), tmp_path / "late.zarr"

        def appears():
            target.mkdir()
            (target / "thesis").write_text("a year's work")

        with pytest.raises(FileExistsError):
            denoised(source, target, overwrite=overwrite, before=appears)
        assert (target / "thesis").read_text() == "a year's work"
        assert sorted(os.listdir(tmp_path)) == ["late.zarr", "x.zarr"]

    def test_a_store_is_replaced(self, tmp_path, store):
        source, target = store("x.zarr", 1), store("y.zarr", 2)
        denoised(source, target, overwrite=True)
        assert value(target) == 5
        assert sorted(os.listdir(tmp_path)) == ["x.zarr", "y.zarr"]

    def test_one_that_is_no_store_any_more_is_put_back(self, tmp_path, store, monkeypatch):
        source, target = store("x.zarr", 1), store("y.zarr", 2)
        with pytest.raises(FileExistsError, match="not what was to be replaced"):
            denoised(source, target, overwrite=True, before=(target / "zarr.json").unlink)
        assert not (target / "zarr.json").exists()
        assert sorted(os.listdir(tmp_path)) == ["x.zarr", "y.zarr"]


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
def test_a_store_is_recovered_where_replacing_takes_two_steps(tmp_path, store, caplog):
    """Killed between them, there is none under its name until the next run."""
    source, target = store("x.zarr", 1), store("y.zarr", 2)
    code = """
import os, signal, sys
from pathlib import Path
from wavefilt.io import unfinished
from wavefilt.io.arrays.zarr import Store
from wavefilt.io.layout import Layout
unfinished.rename = lambda *_: False
step = Path.rename
def killed(self, to):
    step(self, to)
    os.kill(os.getpid(), signal.SIGKILL)
with Store(sys.argv[1], Layout()).create(Path(sys.argv[2]), overwrite=True):
    Path.rename = killed
"""
    assert run(code, source, target) == -signal.SIGKILL
    assert not target.exists()
    write_atomically(tmp_path / "other", b"")
    assert value(target) == 2
    assert sorted(os.listdir(tmp_path)) == ["other", "x.zarr", "y.zarr"]
    assert caplog.messages[0] == f"wavefilt: {target}: recovered; a run that was killed had not yet replaced it"


def test_which_file_has_no_space_left(tmp_path):
    pytest.importorskip("resource")
    code = (
        "import resource, sys\n"
        "from pathlib import Path\n"
        "from wavefilt.errors import for_command\n"
        "from wavefilt.io.atomic import write_atomically\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
        "try:\n"
        "    write_atomically(Path(sys.argv[1]), bytes(5000))\n"
        "except OSError as error:\n"
        "    print(for_command(error))\n"
    )
    out = tmp_path / "out.npy"
    run = subprocess.run([sys.executable, "-c", code, out], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert run.stdout.strip() == f"{out}: {os.strerror(errno.EFBIG)}", run.stderr
    assert not list(tmp_path.iterdir())
