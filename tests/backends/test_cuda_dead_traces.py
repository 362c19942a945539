"""Dead traces of a record on the GPU, in numba's simulator: left out of what all traces share, returned as they are."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.signals import partly_dead
from tests.support.simulation import arrays_on_device, inside
from wavefilt.denoising.pipeline import run
from wavefilt.method import Method

METHODS = [
    Method("haar", 2, rule="universal", scope="record"),
    Method("db2", 2, rule="bayes", scope="record"),
    Method("haar", 2, rule="sure", scope="record", transform="modwt"),
    Method("haar", 1, rule="neighblock", scope="record"),
    Method("haar", 2, rule=0.3, scope="record"),
]


@pytest.fixture(scope="module")
def small():
    from wavefilt.backends.cuda import Cuda, Options
    from wavefilt.backends.cuda.statistics import selection, sorting

    selection.WHOLE, selection.CHUNK, selection.SAMPLE, selection.STAGE, sorting.SPAN = 250, 128, 256, 32, 32
    return Cuda(options=Options(tile=64, threads=16, select=8, scan=8, row=8))


def samples(rng):
    return partly_dead(rng, 60, traces=6, dead=4)


def on_device(x, method, backend):
    """Denoised as an array in device memory."""
    from wavefilt.backends.cuda.runtime import interop
    from wavefilt.backends.cuda.runtime.target import cuda
    from wavefilt.denoising import device_arrays

    return interop.to_host(device_arrays._rows(cuda.to_device(x), method, backend))


@inside
@pytest.mark.parametrize("method", METHODS, ids=lambda method: f"{method.rule}-{method.transform}")
def test_live_traces_are_denoised_as_if_they_were_alone(small, rng, monkeypatch, method):
    x, dead = samples(rng)
    found, alone = (run(rows, method, small, report=True) for rows in (x, x[~dead]))
    expected = np.where(dead[:, None], x, 0)
    expected[~dead] = alone.samples
    assert np.array_equal(found.samples, expected)
    (estimate,), (live,) = found.estimates, alone.estimates
    assert not estimate.sigma[:, dead].any()
    assert np.array_equal(estimate.sigma[:, ~dead], live.sigma)
    arrays_on_device(monkeypatch)
    assert np.array_equal(on_device(x, method, small), expected)
    assert np.array_equal(on_device(x[dead], method, small), x[dead])


@inside
def test_cycle_spinning(small, rng, monkeypatch):
    x, dead = samples(rng)
    arrays_on_device(monkeypatch)
    method = Method("haar", 2, "zero", "universal", scope="record", spins=3)
    y = on_device(x, method, small)
    assert np.array_equal(y[dead], x[dead])
    np.testing.assert_allclose(y[~dead], on_device(x[~dead], method, small), atol=1e-12)


@inside
@pytest.mark.parametrize("method", METHODS, ids=lambda method: f"{method.rule}-{method.transform}")
def test_the_device_tells_a_dead_trace_where_others_share_its_thresholds(small, rng, method):
    x, dead = samples(rng)
    assert (small.denoise(x, method, method.level) is None) == isinstance(method.rule, str)
    assert small.denoise(x[~dead], method, method.level) is not None
    for alone in (x[dead][:1], x[~dead][:1]):
        assert small.denoise(alone, method, method.level) is not None
    each = Method("haar", 2, rule=method.rule)
    assert np.array_equal(small.denoise(x, each, 2)[0][dead], x[dead])


@inside
@pytest.mark.parametrize("method", METHODS[:3], ids=lambda method: f"{method.rule}-{method.transform}")
def test_records_without_dead_traces_stay_on_the_device(small, rng, monkeypatch, method):
    """And their dead samples are looked for by no launch of its own."""
    from wavefilt.backends.cuda import denoiser
    from wavefilt.denoising import device_arrays

    x, dead = samples(rng)
    arrays_on_device(monkeypatch)
    monkeypatch.setattr(device_arrays, "run", None)
    marked, mark = [], denoiser.Denoiser._mark_dead
    monkeypatch.setattr(denoiser.Denoiser, "_mark_dead", lambda self, *rest: marked.append(1) or mark(self, *rest))
    assert not np.array_equal(on_device(x[~dead], method, small), x[~dead])
    assert len(marked) == (method.rule == "sure")  # whose thresholds are chosen on the host


@inside
@pytest.mark.parametrize("rule", ["bayes", "universal", "sure", "neighblock", "js"])
@pytest.mark.parametrize("samples_on", ["host", "device"])
def test_chunks_when_memory_is_short(small, rng, monkeypatch, rule, samples_on):
    from wavefilt.backends.cuda import Cuda, chunked_rows
    from wavefilt.backends.cuda.runtime.memory import OutOfMemory

    def short(*_):
        raise OutOfMemory("none left")

    x, dead = partly_dead(rng, 120, traces=6, dead=3)
    method = Method("haar", 2, rule=rule, scope="record")
    expected = run(x, method, "pywavelets").samples
    monkeypatch.setattr(Cuda, "whole", short)
    monkeypatch.setattr(chunked_rows, "BLOCKS", 2)
    monkeypatch.setattr(chunked_rows, "THREADS", 4)
    if samples_on == "device":
        arrays_on_device(monkeypatch)
        y = on_device(x, method, small)
    else:
        y, measured = small.denoise(x, method, 2, report=True)
        assert not measured.sigma[:, dead].any()
    np.testing.assert_allclose(y, expected, atol=1e-10)
    assert np.array_equal(y[dead], x[dead])


@inside
@pytest.mark.parametrize("rule", ["universal", "bayes"])
def test_rows_cut_over_several_gpus(rng, monkeypatch, rule):
    from wavefilt.backends.cuda import Options, Several, chunked_rows
    from wavefilt.backends.cuda.multi_gpu import backend

    arrays_on_device(monkeypatch)
    monkeypatch.setattr(backend, "checked", lambda devices, count: [0] * 3)
    monkeypatch.setattr(chunked_rows, "THREADS", 4)
    monkeypatch.setattr(chunked_rows, "BLOCKS", 2)
    several = Several(options=Options(tile=128, threads=8, select=8, scan=8, row=8))
    x, dead = partly_dead(rng, 140, traces=7, dead=3)
    method = Method("haar", 2, rule=rule, scope="record")
    y, measured = several.split(x, method, 2, report=True)
    np.testing.assert_allclose(y, run(x, method, "pywavelets").samples, atol=1e-10)
    assert np.array_equal(y[dead], x[dead])
    assert np.array_equal(measured.sigma.any(axis=0), ~dead)
