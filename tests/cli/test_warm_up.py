"""`wavefilt warm-up`: what it would compile, with the compiler replaced, and one small kernel."""

from __future__ import annotations

import json
import sys
from types import SimpleNamespace

import numpy as np
import pytest
from click.testing import CliRunner

import wavefilt
from wavefilt.backends.numba_cpu import entries, native
from wavefilt.cli import group, main, warm_up
from wavefilt.errors import BackendUnavailable


@pytest.fixture
def asked(monkeypatch):
    """The tasks that the compiler was asked for; a peak is compiled already."""
    found = []
    monkeypatch.setattr(wavefilt, "denoise", lambda x, **options: None)
    monkeypatch.setattr(native, "cached", lambda task: task[0] is entries.PEAK)
    monkeypatch.setattr(native, "compiled", lambda tasks, advance: found.extend(tasks) or advance(1))
    return found


def run(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        main(["warm-up", *arguments])
    return ended.value.code or 0, *capsys.readouterr()


def test_the_defaults_of_denoise(capsys, asked):
    code, out, _ = run(capsys, "--json")
    result = json.loads(out)["numba"]
    assert (code, result["steps"], result["compiled_before"]) == (0, 24, 2)
    wanted = {entries.FORWARD, entries.INVERSE, entries.SHORT_ROWS, entries.CHOOSE, *entries.LONG}
    assert {(kernel, str(dtype)) for kernel, dtype in asked} == {(k, d) for k in wanted for d in ("float32", "float64")}


def test_everything_of_one_dtype(capsys, asked):
    code, out, err = run(capsys, "--all", "--dtype", "float64")
    assert (code, err) == (0, "")
    assert {kernel for kernel, _ in asked} == set(entries.ALL) - {entries.PEAK}
    assert {str(dtype) for _, dtype in asked} == {"float64"}
    assert out.startswith(f"numba: {len(entries.ALL) + 1} steps, 1 of them compiled before; ")


def test_every_kernel_is_in_the_table():
    kernels = {value for value in vars(entries).values() if isinstance(value, native.Kernel)}
    assert kernels == set(entries.ALL)


def test_a_gpu_is_warmed_up_by_calls(monkeypatch):
    calls, done = [], []
    monkeypatch.setattr(wavefilt, "denoise", lambda x, **options: calls.append((str(x.dtype), options)))
    monkeypatch.setattr(wavefilt.backends, "get", lambda name: None)
    own = SimpleNamespace(warm_up=lambda *arguments, advance: asked_for.append(arguments))
    monkeypatch.setitem(sys.modules, "wavefilt.backends.cuda.warming", own)
    asked_for: list[object] = []
    found = warm_up.compile_kernels(warm_up.plan("cuda", ("float32",), True), done.append)
    assert asked_for == [([*warm_up.ALL_CALLS["cuda"][:-1], {"dimensions": 2}], ["float32"])]
    assert calls == [("float32", {"backend": "cuda"} | options) for options in warm_up.ALL_CALLS["cuda"]]
    assert done == list(range(len(calls) + 1))
    assert found["steps"] == len(calls)


def test_a_backend_that_cannot_run_here(capsys, monkeypatch, asked):
    def get(name):
        if name == "cuda":
            raise BackendUnavailable("backend 'cuda': no GPU")

    monkeypatch.setattr(wavefilt.backends, "get", get)
    assert run(capsys, "--backend", "cuda") == (5, "", "wavefilt: error: backend 'cuda': no GPU\n")
    assert not asked
    assert list(json.loads(run(capsys, "--backend", "all", "--json")[1])) == ["numba"]


def test_a_kernel_is_compiled_once(monkeypatch, tmp_path):
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    plan = warm_up.Plan("numba", [(entries.TABULATE, np.dtype("f4"))], [])
    for before in (0, 1):
        assert warm_up.compile_kernels(plan, lambda done: None)["compiled_before"] == before
    assert len(list(tmp_path.rglob("*.o"))) == 1


def test_help_names_no_backend_that_is_not_there():
    text = CliRunner().invoke(group, ["warm-up", "--help"]).output
    assert all(name in text for name in ("numba", "cuda", "all", "float32"))
