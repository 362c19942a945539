"""How far a reader follows an array: from `denoise` to a kernel through a few modules, each entered once or twice."""

from __future__ import annotations

import inspect
from itertools import groupby

import numpy as np
import pytest

import wavefilt
from tests.support.simulation import inside
from wavefilt import threads
from wavefilt.denoising import api

MOST = 8


class Reached(Exception):
    pass


def modules(stack) -> list[str]:
    """The package's modules between `wavefilt.denoise` and a kernel, in the order in which they are entered."""
    names = [frame.frame.f_globals.get("__name__", "") for frame in reversed(stack)]
    names = names[names.index(api.__name__) :]
    return [name for name, _ in groupby(name for name in names if name.startswith("wavefilt"))]


def check(path: list[str]) -> None:
    assert len(set(path)) <= MOST, path
    assert all(path.count(name) <= 2 for name in path), path


@pytest.mark.parametrize(
    ("name", "options"),
    [("FORWARD", {}), ("MODWT_FORWARD", {"transform": "modwt"}), ("PANEL_FORWARD", {"axes": (-2, -1)})],
)
def test_to_a_compiled_kernel(monkeypatch, name, options):
    entries = pytest.importorskip("wavefilt.backends.numba_cpu.entries")
    path: list[str] = []

    def kernel(*arguments):
        path.extend(modules(inspect.stack()[1:]))
        raise Reached

    monkeypatch.setitem(vars(entries)[name].versions, "d", (0, kernel))
    before = threads.get_num_threads()
    threads.set_num_threads(1)
    try:
        with pytest.raises(Reached):
            wavefilt.denoise(np.random.default_rng(0).random((64, 640)), "db2", backend="numba", **options)
    finally:
        threads.set_num_threads(before)
    check(path)


@inside
@pytest.mark.parametrize("options", [{}, {"transform": "modwt"}, {"axes": (-2, -1)}])
def test_to_a_kernel_of_a_gpu(monkeypatch, options):
    from numba.cuda.simulator import kernel

    path: list[str] = []

    def launch(self, *arguments):
        path.extend(modules(inspect.stack()[1:]))
        raise Reached

    monkeypatch.setattr(kernel.FakeCUDAKernel, "__call__", launch)
    with pytest.raises(Reached):
        wavefilt.denoise(np.random.default_rng(0).random((8, 64)), "haar", level=1, backend="cuda", **options)
    check(path)
