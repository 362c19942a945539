"""What is kept between calls changes no result: the same shape again, two at once, after gaps, other thresholds."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import pywt

import wavefilt
from wavefilt import threads
from wavefilt.backends.numba_cpu import NumbaCPU, memory
from wavefilt.statistics.interface import Wanted
from wavefilt.transforms import DWT, MODWT


@pytest.fixture(autouse=True)
def three_threads():
    threads.set_num_threads(3)
    memory.trim()
    yield
    threads.set_num_threads(None)


def denoised(x, **options):
    return wavefilt.denoise(x, "db4", backend="numba", **options)


def anew(x, **options):
    memory.trim()
    return denoised(x, **options)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"rule": "universal", "shrink": "hard"},
        {"rule": "sure", "sigma": "global"},
        {"rule": 0.5, "sigma": 1.0},
        {"rule": "ebayes", "scope": "record"},
        {"rule": "js"},
        {"transform": "modwt"},
        {"spins": 3},
        {"sigma": ("running", 9000)},
    ],
)
@pytest.mark.parametrize("shape", [(1, 90_000), (3, 20_000)])
def test_the_next_array_of_a_shape(rng, shape, options):
    xs = [rng.standard_normal(shape, "f4") * (k + 1) for k in range(3)]
    expected = [anew(x, **options) for x in xs]
    for x, y in zip(xs, expected, strict=True):
        np.testing.assert_array_equal(denoised(x, **options), y)
        np.testing.assert_array_equal(denoised(x, shrink="garrote", rule="bayes"), anew(x, shrink="garrote"))


def test_an_array_after_one_with_a_gap(rng):
    x = rng.standard_normal(90_000)
    expected, gappy = denoised(x), x.copy()
    gappy[40_000:40_010] = np.nan
    first = denoised(gappy)
    np.testing.assert_array_equal(denoised(x), expected)
    np.testing.assert_array_equal(denoised(gappy), first)


@pytest.mark.parametrize("transform", [DWT, MODWT])
def test_pyramids_that_are_there_at_once(rng, transform):
    backend, analysis = NumbaCPU(), transform.analysis(pywt.Wavelet("db4"), "symmetric", 4)
    xs = rng.standard_normal((3, 2, 40_000))
    found = [backend.peak_and_pyramid(x, analysis, Wanted((1, 2, 3, 4), True)) for x in xs]
    for x, (peak, pyramid) in zip(xs, found, strict=True):
        assert peak == np.abs(x).max()
        plain = backend.decompose(x, analysis)
        for ours, theirs in zip(pyramid.coefficients, plain.coefficients, strict=True):
            np.testing.assert_array_equal(ours, theirs)
        ours, theirs = (backend.statistics([one], "trace") for one in (pyramid, plain))
        np.testing.assert_array_equal(ours.median_abs(range(1, 5)), theirs.median_abs(range(1, 5)))
        np.testing.assert_array_equal(ours.mean_square(), theirs.mean_square())
        np.testing.assert_array_equal(backend.reconstruct(pyramid), backend.reconstruct(plain))


def test_calls_at_once(rng):
    xs = [rng.standard_normal(70_000) for _ in range(8)]
    expected = [anew(x) for x in xs]
    with ThreadPoolExecutor(4) as pool:
        for _ in range(5):
            for y, wanted in zip(pool.map(denoised, xs), expected, strict=True):
                np.testing.assert_array_equal(y, wanted)


def test_no_more_is_kept_than_may_be(monkeypatch, rng):
    for samples in range(20_000, 20_000 + 2 * memory.IDLE):
        denoised(rng.standard_normal(samples))
    assert 0 < len(memory._idle) <= memory.IDLE
    monkeypatch.setattr(memory, "RETAINED", 1 << 20)
    denoised(rng.standard_normal(100_000))
    assert memory._idle_bytes() <= 1 << 19
    memory.trim()
    assert not memory._idle


@pytest.mark.parametrize("mode", ["symmetric", "periodization"])
@pytest.mark.parametrize("shape", [(1, 1 << 17), (7, 4096), (2, 50_001)])
def test_stores_past_the_caches_have_the_same_bits(monkeypatch, rng, shape, mode):
    x = rng.standard_normal(shape, "f4")
    expected = anew(x, mode=mode)
    monkeypatch.setattr(memory, "PASSED", 1)
    np.testing.assert_array_equal(anew(x, mode=mode), expected)
    memory.trim()
