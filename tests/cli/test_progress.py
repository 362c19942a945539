"""What a terminal shows of a run, and that nothing of it is written elsewhere."""

from __future__ import annotations

import io
import os
import sys
import time

import numpy as np
import pytest

from tests.support import terminal
from tests.support.checkout import needs, run_cli
from wavefilt import stages
from wavefilt.cli import progress

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are those of Unix")


@pytest.fixture
def begin(monkeypatch):
    """Makes standard error a terminal, and gives what ends it and tells what it showed."""
    streams = []

    def begun():
        shows, side = terminal.opened()
        streams.append(open(side, "w", encoding="utf-8"))  # noqa: SIM115
        monkeypatch.setattr(sys, "stderr", streams[0])

        def end() -> str:
            streams[0].close()
            return terminal.everything(shows)

        return end

    return begun


def test_a_stage_that_lasts_is_shown_and_erased(begin, monkeypatch):
    written = begin()
    monkeypatch.setattr(progress, "PATIENCE", 0)
    with progress.line(quiet=False) as without:
        with stages.stage("reading a\x1b[2Jfile"):
            time.sleep(4 * progress.INTERVAL)
        with without():
            print("a message", file=sys.stderr, flush=True)
    text = written()
    shown = "\rreading a\\x1b[2Jfile, 0 s"
    assert text.startswith(shown)
    assert text.endswith("\r" + (len(shown) - 1) * " " + "\ra message\r\n")


def test_what_ends_at_once_is_not_shown(begin):
    written = begin()
    with progress.line(quiet=False), stages.stage("reading"):
        pass
    assert written() == ""


def test_a_bar_is_drawn_ten_times_a_second_at_most(begin):
    written = begin()
    start = time.monotonic()
    with progress.bar(total=3000) as bar:
        for _ in range(3000):
            bar.update()
            time.sleep(0.0001)
    seconds = time.monotonic() - start
    text = written()
    assert "| 0/3000 " in text
    assert text.count("it/s") <= 2 + seconds / progress.INTERVAL


def test_a_bar_tells_of_a_stage_that_lasts(begin, monkeypatch):
    written = begin()
    monkeypatch.setattr(progress, "PATIENCE", 0)
    with progress.bar("x.npy", total=2), stages.stage("compiling"):
        time.sleep(4 * progress.INTERVAL)
    assert "x.npy, compiling:   0%" in written()


def test_nothing_is_written_to_what_is_no_terminal(monkeypatch):
    monkeypatch.setattr(progress, "PATIENCE", 0)
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    with progress.line(quiet=False), stages.stage("reading"):
        time.sleep(3 * progress.INTERVAL)
    assert sys.stderr.getvalue() == ""
    monkeypatch.setattr(sys, "stderr", None)
    assert not progress.shown(quiet=False)


def test_compiling_is_a_stage(monkeypatch):
    compiler = pytest.importorskip("wavefilt.backends.numba_cpu.compiler", exc_type=Exception)
    base = compiler._Cache.__mro__[1]
    monkeypatch.setattr(base, "load_overload", lambda *_: None)
    monkeypatch.setattr(base, "save_overload", lambda *_: None)
    cache = object.__new__(compiler._Cache)
    assert cache.load_overload(None, None) is None
    assert stages.current()[0] == "compiling kernels, once"
    cache.save_overload(None, None)
    assert stages.current() is None


SLOW = """
import sys, time
from wavefilt.cli import main
from wavefilt.cli.denoise import single_file
read = single_file.read
single_file.read = lambda *given: (time.sleep(1), read(*given))[1]
main(sys.argv[1:])
"""


def test_a_slow_file_is_shown_until_it_is_done(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((2, 500)))
    text = terminal.run("-c", SLOW, "denoise", "x.npy", cwd=tmp_path)
    assert text.startswith("\rreading x.npy, 0 s")
    assert text.endswith("\n")
    last = text.rpartition("\r")[0].rpartition("\r")[2]
    assert last.startswith("x.npy -> x.denoised.npy  db8 L5")


def test_a_slow_file_is_quiet_without_a_terminal(tmp_path):
    np.save(tmp_path / "x.npy", np.ones((2, 500)))
    assert run_cli("denoise", "x.npy", cwd=tmp_path).stderr.startswith(b"x.npy -> ")
    assert terminal.run("-m", "wavefilt", "denoise", "x.npy", "-q", "--overwrite", cwd=tmp_path) == ""


def test_a_batch_has_one_bar(tmp_path):
    for i in range(30):
        np.save(tmp_path / f"{i:02}.npy", np.ones((2, 500)))
    text = terminal.run("-m", "wavefilt", "denoise", "*.npy", "--out-dir", "out", cwd=tmp_path)
    assert "| 0/30 [" in text
    assert "30 files: 30 done" in text
    assert len(os.listdir(tmp_path / "out")) == 30


@needs("distributed")
@needs("zarr")
def test_a_cluster_has_a_bar(tmp_path):
    import zarr

    volume = zarr.create_array(str(tmp_path / "v.zarr"), shape=(4, 4096), chunks=(2, 4096), dtype="f4")
    volume[:] = 1
    text = terminal.run("-m", "wavefilt", "denoise", "v.zarr", "--scheduler", "local:1", cwd=tmp_path)
    assert "\rstarting workers, " in text
    assert "| 100% Completed | " in text
    assert "v.zarr -> v.denoised.zarr  4 x 4096" in text.rpartition("\r\n")[0].rpartition("\r")[2]
