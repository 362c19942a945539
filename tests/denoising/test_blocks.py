"""Many traces or panels are denoised in blocks: as all at once, bit for bit."""

from __future__ import annotations

import numpy as np
import pytest

import wavefilt
from wavefilt.denoising import pipeline
from wavefilt.method import Method

OPTIONS = [
    {},
    {"rule": "js"},
    {"rule": "ebayes", "level": 2},
    {"transform": "modwt", "keep": 1},
    {"transform": "dtcwt", "level": 2},
    {"spins": 3, "mode": "periodization"},
    {"detrend": "line", "blend": 0.25},
    {"sigma": ("window", 0, 120), "level": 2},
    {"sigma": ("running", 100), "level": 2},
]


@pytest.fixture
def small_blocks(monkeypatch):
    monkeypatch.setattr(pipeline, "BLOCK", 2000)
    monkeypatch.setattr(pipeline, "LIGHT_BLOCK", 3000)


def both(x, method, backend, monkeypatch):
    """The outcome of blocks and of all at once."""
    found = pipeline.run(x, method, backend, report=True)
    monkeypatch.setattr(pipeline, "BLOCKS", 1)
    return found, pipeline.run(x, method, backend, report=True)


def assert_same(found, expected):
    assert found.samples.tobytes() == expected.samples.tobytes()
    assert len(found.estimates) == len(expected.estimates) > 0
    for own, other in zip(found.estimates, expected.estimates, strict=True):
        for name in ("sigma", "thresholds", "power", "approximation"):
            np.testing.assert_array_equal(vars(own)[name], vars(other)[name])
        for name in ("rows", "starts", "shape", "live"):
            np.testing.assert_array_equal(vars(own.segments)[name], vars(other.segments)[name])


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("backend", ["pywavelets", "numba"])
def test_traces(backend, options, rng, small_blocks, monkeypatch):
    x = rng.standard_normal((11, 300)).astype(np.float32)
    if "window" not in str(options):
        x[2, 40:50] = x[7, 40:50] = np.nan
        x[9] = 1
    assert_same(*both(x, Method(**options), backend, monkeypatch))


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("backend", ["pywavelets", "numba"])
def test_panels(backend, gaps, rng, small_blocks, monkeypatch):
    x = rng.standard_normal((5, 20, 30))
    if gaps:
        x[1, 4, 5:9] = x[3, 6:8] = np.nan
    assert_same(*both(x, Method("db2", dimensions=2), backend, monkeypatch))


def test_blocks_are_used(rng, small_blocks, monkeypatch):
    sizes, steps = [], pipeline._by_steps
    monkeypatch.setattr(pipeline, "_by_steps", lambda x, *options: sizes.append(len(x)) or steps(x, *options))
    pipeline.run(rng.standard_normal((10, 100)), Method(rule="js"), "numba")
    pipeline.run(rng.standard_normal((10, 100)), Method(), "numba")
    pipeline.run(rng.standard_normal((10, 100)), Method(scope="record"), "numba")
    assert sizes == [2, 3, 2, 3, 5, 5, 10]


@pytest.mark.parametrize("backend", ["pywavelets", "numba"])
def test_out_is_filled(backend, rng, small_blocks):
    x, out = rng.standard_normal((9, 300)), np.empty((9, 300))
    assert wavefilt.denoise(x, backend=backend, out=out) is out
    np.testing.assert_array_equal(out, wavefilt.denoise(x, backend=backend))


def test_a_trace_is_named_by_its_number_among_all(rng, small_blocks):
    x = rng.standard_normal((9, 300))
    x[7, 3] = np.inf
    with pytest.raises(ValueError, match="trace 7"):
        wavefilt.denoise(x, backend="numba")
    x[7, 3], x[8, 4] = 0, 1e308
    with pytest.raises(ValueError, match="overflow"):
        wavefilt.denoise(x, backend="numba")
