"""Files that would probably not fit in memory: streamed without being asked, or the option that does is named."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import wavefilt
from tests.support.checkout import run
from tests.support.segy_files import segy_file, su_file
from wavefilt import limits
from wavefilt.cli.denoise import memory, streaming
from wavefilt.io import Layout
from wavefilt.outofcore import memory_budget

ROOM = 1_200_000
"""Bytes of memory that there seem to be: half of them take some traces of `wide` at a time, not all."""


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder of its own, on a machine with little memory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(memory, "available", lambda: ROOM)
    monkeypatch.setattr(memory_budget, "FIXED", 0)
    monkeypatch.setattr(streaming, "SMALL", 0)
    return tmp_path


@pytest.fixture
def wide(here):
    """Forty traces of 112 kB in all."""
    np.save("wide.npy", np.random.default_rng(3).standard_normal((40, 700)).astype("f4"))


def test_the_result_is_the_same_and_the_way_is_told(here, wide, capsys, monkeypatch):
    code, out, err = run(capsys, "denoise", "wide.npy", "--backend", "pywavelets", "--json", "--log", "log")
    assert code == 0
    line, note = err.splitlines()
    assert line.startswith("wide.npy -> wide.denoised.npy  ")
    assert note == "  note: larger than memory: streamed within 586 KiB"
    facts = json.loads(out)
    assert facts["max_memory"] == ROOM // 2
    assert facts["notes"] == ["larger than memory: streamed within 586 KiB"]
    monkeypatch.setattr(memory, "available", lambda: 1 << 40)
    code, out, err = run(capsys, "denoise", "wide.npy", "--backend", "pywavelets", "--json", "-o", "whole.npy")
    assert (code, "max_memory" in json.loads(out), "larger" in err) == (0, False, False)
    assert Path("whole.npy").read_bytes() == Path("wide.denoised.npy").read_bytes()


def test_it_is_told_once_with_every_detail_and_not_when_quiet(here, wide, capsys):
    arguments = ["denoise", "wide.npy", "--overwrite", "--backend", "pywavelets"]
    assert run(capsys, *arguments, "-q") == (0, "", "")
    assert run(capsys, *arguments, "-v")[2].count("larger than memory") == 1
    assert "larger" not in run(capsys, *arguments, "--max-memory", "600KB")[2]


@pytest.mark.parametrize(
    "more",
    [["--sidecar"], ["--removed", "r.npy"], ["--two-dimensional"], ["-o", "-"], ["-o", "/dev/null"], ["--dry-run"]],
)
def test_what_cannot_be_streamed_goes_through_memory(here, wide, capfdbinary, monkeypatch, more):
    monkeypatch.setattr(streaming, "denoise", None)
    with pytest.raises(SystemExit) as ended:
        wavefilt.cli.main(["denoise", "wide.npy", "--backend", "pywavelets", *more])
    assert not ended.value.code
    assert b"larger" not in capfdbinary.readouterr().err


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="pipes with a name")
def test_a_pipe_is_opened_once(here, wide, capsys, monkeypatch):
    os.mkfifo("pipe")
    monkeypatch.setattr(streaming, "_opened", pytest.fail)
    writing = threading.Thread(target=Path("pipe").write_bytes, args=[Path("wide.npy").read_bytes()], daemon=True)
    writing.start()
    assert run(capsys, "denoise", "pipe", "-o", "y.npy", "-q") == (0, "", "")
    assert np.load("y.npy").shape == (40, 700)


def test_a_rule_that_needs_whole_traces_says_so(here, capsys):
    np.save("long.npy", np.random.default_rng(3).standard_normal(40_000))
    code, _, err = run(capsys, "denoise", "long.npy", "--rule", "sure", "--backend", "pywavelets")
    assert code == 1
    assert "rule='sure' needs whole traces in memory, which takes max_memory=" in err
    assert "larger than memory: streamed within 586 KiB" in err
    assert os.listdir(here) == ["long.npy"]


@pytest.fixture(params=["raw", "segy", "su", "hdf5", "zarr", "text"])
def stored(request, here):
    """Four traces of 100 samples in each format: the arguments that read them, and whether they are streamed."""
    x = np.random.default_rng(3).standard_normal((4, 100)).astype("f4")
    if request.param == "raw":
        x.tofile("x.raw")
        return ["x.raw", "--format", "raw", "--dtype", "f4", "--endian", "little", "--ns", "100"], True
    if request.param in ("segy", "su"):
        data = segy_file(count=4, ns=100) if request.param == "segy" else su_file("<", count=4, ns=100)
        Path("x.seismic").write_bytes(data)
        return ["x.seismic"], True
    if request.param == "hdf5":
        with pytest.importorskip("h5py").File("x.h5", "w") as file:
            file.create_dataset("a", data=np.zeros((4, 100), "f4"), compression="gzip")
            file["b"] = np.zeros(3)
        return ["x.h5::a"], True
    if request.param == "zarr":
        pytest.importorskip("zarr").create_array("x.zarr", data=x)
        return ["x.zarr"], True
    np.savetxt("x.txt", x.T)
    return ["x.txt"], False


def test_every_format_that_streams_is_known(stored, monkeypatch):
    (source, *_), streamed = stored
    raw = source == "x.raw"
    layout = Layout(dtype="f4", endian="little", ns=100) if raw else Layout()
    options = SimpleNamespace(layout=layout, format="raw" if raw else None)
    assert streaming.samples_bytes(source, options) == (1600 if streamed else None)


@pytest.mark.parametrize("step", ["read", "apply"])
def test_where_memory_runs_out_the_option_is_named(stored, capsys, monkeypatch, step):
    def out_of_memory(*_, **__):
        raise MemoryError

    monkeypatch.setattr(memory, "available", lambda: 1 << 40)
    owner = wavefilt if step == "read" else wavefilt.Recording
    monkeypatch.setattr(owner, step, out_of_memory)
    (source, *layout), streamed = stored
    code, out, err = run(capsys, "denoise", source, *layout)
    hint = "; use --max-memory SIZE" if streamed else ""
    assert (code, out, err) == (1, "", f"wavefilt: error: {source}: not enough memory{hint}\n")
    code, _, err = run(capsys, "info", source, *layout)
    assert (code, err) == (1, f"wavefilt: error: {source}: not enough memory\n")


def test_memory_is_that_of_the_system_within_the_limit_of_the_process(monkeypatch):
    resource = pytest.importorskip("resource")
    monkeypatch.setattr(resource, "getrlimit", lambda _: (resource.RLIM_INFINITY,) * 2)
    free = memory.available()
    assert 0 < free <= os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    monkeypatch.setattr(resource, "getrlimit", lambda _: (limits.held() + (3 << 20), 1 << 60))
    assert abs(memory.available() - (3 << 20)) < 1 << 20
    monkeypatch.setattr(resource, "getrlimit", lambda _: (1, 1))
    assert memory.available() == 0


def test_without_its_own_account_memory_is_all_of_the_machine(monkeypatch, tmp_path):
    pytest.importorskip("resource")
    monkeypatch.setattr(memory, "MEMINFO", tmp_path / "gone")
    monkeypatch.setattr(memory, "CGROUP", tmp_path)
    assert memory.available() == os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    monkeypatch.delattr(os, "sysconf")
    assert memory.available() == np.inf


def test_memory_of_a_container(monkeypatch, tmp_path):
    monkeypatch.setattr(memory, "CGROUP", tmp_path)
    (tmp_path / "memory.stat").write_text("anon 1000000\nfile 700000\n")
    (tmp_path / "memory.max").write_text("3000000\n")
    assert memory.available() == 2_000_000
    (tmp_path / "memory.max").write_text("max\n")
    assert memory.available() > 2_000_000
