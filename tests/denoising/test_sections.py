"""Denoising of sections, on two axes: against a composition written with PyWavelets, by every transform."""

from __future__ import annotations

import numpy as np
import pytest
import pywt
from numpy.testing import assert_allclose

import wavefilt
from tests.support.checkout import usable_backends
from tests.support.signals import section, shrunk_details

HOSTS = [name for name in usable_backends() if name != "cuda"]


@pytest.fixture(params=HOSTS)
def backend(request):
    """The backends that transform two axes."""
    return request.param


@pytest.mark.parametrize("rule", ["sure", "hybrid", "fdr", [0.5, 0.25], 0.4])
def test_rules_see_every_band_as_a_level_of_its_own(backend, rng, rule):
    """Each band is shrunk like the details of a trace."""
    _, x = section(rng)
    bands = pywt.wavedec2(x, "db4", level=2)
    for i, level in enumerate(bands[1:]):
        own = rule if not isinstance(rule, list) else rule[i]
        bands[i + 1] = tuple(shrunk_details(band.ravel(), rule=own, sigma=0.3).reshape(band.shape) for band in level)
    y = wavefilt.denoise(x, "db4", level=2, rule=rule, sigma=0.3, axes=(0, 1), backend=backend)
    assert_allclose(y, pywt.waverec2(bands, "db4")[:60, :90], atol=1e-9)
    assert not np.allclose(y, x, atol=1e-3)


def test_scope_trace_is_each_section_alone_and_record_pools_them(backend, rng):
    _, x = section(rng, (3, 40, 50))
    x *= np.array([1, 10, 100.0])[:, None, None]
    alone = [wavefilt.denoise(plane, "db2", axes=(0, 1), backend=backend) for plane in x]
    assert_allclose(wavefilt.denoise(x, "db2", axes=(1, 2), backend=backend), alone, rtol=1e-12)
    pooled = wavefilt.denoise(x, "db2", axes=(1, 2), rule="universal", sigma="global", scope="record", backend=backend)
    finest = np.concatenate([pywt.dwt2(plane, "db2")[1][2].ravel() for plane in x])
    value = np.median(np.abs(finest)) / 0.6744897501960817 * np.sqrt(2 * np.log(x.size))
    assert_allclose(pooled, wavefilt.denoise(x, "db2", axes=(1, 2), rule=value, backend=backend), rtol=1e-9)


def test_other_dtypes_axes_and_what_was_removed(rng):
    _, x = section(rng, (40, 2, 50))
    expected = np.stack([wavefilt.denoise(x[:, i], "db2", axes=(0, 1)) for i in range(2)], axis=1)
    y, removed = wavefilt.denoise(x, "db2", axes=(0, -1), return_residual=True)
    assert_allclose(y, expected, rtol=1e-12)
    assert_allclose(y + removed, x)
    for dtype, result in (("i2", "f4"), ("i4", "f8"), ("f2", "f2")):
        assert wavefilt.denoise((100 * x).astype(dtype), axes=(0, 2)).dtype == result
    masked = wavefilt.denoise(np.ma.MaskedArray(x), "db2", axes=(0, 2))
    assert isinstance(masked, np.ma.MaskedArray)
    assert_allclose(masked, expected)
    turned = wavefilt.denoise(x * np.exp(0.7j), "db2", axes=(0, 2))  # complex samples by modulus
    assert_allclose(turned, expected * np.exp(0.7j), atol=1e-10)


def test_sections_without_noise_come_back_bit_for_bit(backend, rng):
    dead = np.zeros((2, 40, 40))
    dead[1] = rng.standard_normal((40, 40))
    y = wavefilt.denoise(dead, axes=(1, 2), backend=backend)
    assert np.array_equal(y[0], dead[0])
    assert not np.array_equal(y[1], dead[1])
    nothing = rng.standard_normal((0, 20, 20))
    assert np.array_equal(wavefilt.denoise(nothing, axes=(-2, -1), backend=backend), nothing)


@pytest.mark.parametrize("mode", ["symmetric", "periodization"])
def test_spins_are_the_mean_over_shifts(backend, rng, mode):
    x = section(rng, (48, 70))[1][:, :64]
    options = {"wavelet": "db2", "level": 2, "mode": mode, "rule": "universal", "axes": (0, 1), "backend": backend}
    shifts = [(0, 0), (1, 1), (2, 3), (3, 2), (0, 1)]  # the step of 4 samples is 1
    expected = np.zeros_like(x)
    for down, across in shifts:
        if mode == "symmetric":
            y = wavefilt.denoise(np.pad(x, ((down, 0), (across, 0)), "symmetric"), **options)[down:, across:]
        else:
            y = np.roll(wavefilt.denoise(np.roll(x, (down, across), (0, 1)), **options), (-down, -across), (0, 1))
        expected += y / len(shifts)
    found = wavefilt.denoise(x, spins=5, **options)
    assert np.abs(found - expected).max() < 1e-5 * np.abs(x).max()
    assert np.abs(found - wavefilt.denoise(x, **options)).max() > 1e-2 * np.abs(x).max()


def test_the_undecimated_transform_does_not_depend_on_the_origin_and_gains(rng):
    wave = np.sin(np.arange(128) / 5 + np.arange(64)[:, None] / 3) * (np.arange(128) > 60)
    x = wave + 0.7 * rng.standard_normal((64, 128))
    options = {"axes": (0, 1), "mode": "periodization", "wavelet": "db4"}
    y = wavefilt.denoise(x, transform="modwt", **options)
    shifted = wavefilt.denoise(np.roll(x, (11, 37), (0, 1)), transform="modwt", **options)
    assert np.allclose(np.roll(y, (11, 37), (0, 1)), shifted)
    assert np.linalg.norm(y - wave) < 0.9 * np.linalg.norm(wavefilt.denoise(x, **options) - wave)
