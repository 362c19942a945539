"""Denoising of sections, on two axes: against a composition written with PyWavelets, by every transform."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
import pywt
from numpy.testing import assert_allclose, assert_array_equal

import wavefilt
from tests.support.checkout import run, usable_backends
from tests.support.signals import section, shrunk_details

HOSTS = [name for name in usable_backends() if name != "cuda"]


@pytest.fixture(params=HOSTS)
def backend(request):
    """The backends that transform two axes."""
    return request.param


REFERENCE_RULES = {
    "universal": lambda d, sigma, n: sigma * np.sqrt(2 * np.log(n)),
    "bayes": lambda d, sigma, n: sigma**2 / np.sqrt(max((d**2).mean() - sigma**2, 1e-300)),
}


def composed(x, wavelet, level, mode, rule, shrink, sigma):
    """Denoise one section with PyWavelets alone."""
    coefficients = pywt.wavedec2(x, wavelet, mode, level)
    finest = np.median(np.abs(coefficients[-1][-1])) / 0.6744897501960817

    def shrunk(d):
        own = np.median(np.abs(d)) / 0.6744897501960817 if sigma == "level" else finest
        value = REFERENCE_RULES[rule](d, own, x.size)
        if shrink == "firm":  # pywt.threshold_firm shrinks a large value in the first row if it is the only one
            return np.where(np.abs(d) > 2 * value, d, 2 * np.sign(d) * np.maximum(np.abs(d) - value, 0))
        return pywt.threshold(d, value, shrink)

    coefficients[1:] = [tuple(map(shrunk, bands)) for bands in coefficients[1:]]
    return pywt.waverec2(coefficients, wavelet, mode)[: x.shape[0], : x.shape[1]]


@pytest.mark.parametrize("shrink", ["soft", "hard", "garrote", "firm"])
def test_denoise_is_the_composition_of_its_parts(backend, rng, shrink):
    _, x = section(rng, (2, 75, 120))
    for rule, sigma, mode in product(REFERENCE_RULES, ("level", "global"), ("symmetric", "periodization")):
        kwargs = {"rule": rule, "shrink": shrink, "sigma": sigma, "mode": mode, "level": 2}
        y = wavefilt.denoise(x, "db4", **kwargs, axes=(1, 2), backend=backend)
        expected = [composed(plane, "db4", 2, mode, rule, shrink, sigma) for plane in x]
        assert_allclose(y, expected, atol=1e-10)


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
    y, removed = wavefilt.denoise(x, "db2", axes=(0, -1), return_noise=True)
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


def test_more_is_gained_than_trace_by_trace(backend, rng):
    clean, x = section(rng, (128, 256))
    left = {axes: np.linalg.norm(wavefilt.denoise(x, axes=axes, backend=backend) - clean) for axes in (None, (0, 1))}
    assert left[(0, 1)] < 0.8 * left[None]


def test_the_reference_computes_what_a_backend_does_not():
    class OneAxis:
        name = "one-axis"
        dtypes = ("float64",)
        transforms = ("dwt",)
        device = False

    x = np.ones((40, 50)) + np.eye(40, 50)
    y = wavefilt.denoise(x, axes=(0, 1), backend=OneAxis())
    assert_array_equal(y, wavefilt.denoise(x, axes=(0, 1), backend="pywavelets"))


def test_a_recording_and_the_command(tmp_path, rng, capsys):
    _, x = section(rng, dtype="f4")
    np.save(tmp_path / "section.npy", x)
    expected = wavefilt.denoise(x, "db4", axes=(0, 1), backend="pywavelets")
    recording = wavefilt.read(tmp_path / "section.npy")
    assert_allclose(recording.denoise("db4", two_dimensional=True).samples, expected, atol=1e-5)
    code, _, err = run(capsys, "denoise", tmp_path / "section.npy", "-w", "db4", "--two-dimensional", "-v")
    assert code == 0, err
    assert_allclose(np.load(tmp_path / "section.denoised.npy"), expected, atol=1e-5)
    bands = [line.split(":")[0].strip() for line in err.splitlines()[1:]]
    assert bands[:9] == [f"level {level} {band}" for level in (1, 2, 3) for band in "DVH"]


class TestSpins:
    @pytest.mark.parametrize("mode", ["symmetric", "periodization"])
    def test_they_are_the_mean_over_shifts(self, backend, rng, mode):
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


class TestUndecimated:
    def test_it_does_not_depend_on_the_origin_and_gains(self, rng):
        wave = np.sin(np.arange(128) / 5 + np.arange(64)[:, None] / 3) * (np.arange(128) > 60)
        x = wave + 0.7 * rng.standard_normal((64, 128))
        options = {"axes": (0, 1), "mode": "periodization", "wavelet": "db4"}
        y = wavefilt.denoise(x, transform="modwt", **options)
        shifted = wavefilt.denoise(np.roll(x, (11, 37), (0, 1)), transform="modwt", **options)
        assert np.allclose(np.roll(y, (11, 37), (0, 1)), shifted)
        assert np.linalg.norm(y - wave) < 0.9 * np.linalg.norm(wavefilt.denoise(x, **options) - wave)

    def test_it_is_the_mean_over_all_shifts(self, rng):
        x = rng.standard_normal((64, 72)) + 3
        options = {"rule": 1.5, "shrink": "hard", "level": 3, "axes": (0, 1), "mode": "periodization"}
        spun = wavefilt.denoise(x, "db2", spins=4**3, **options)
        assert_allclose(wavefilt.denoise(x, "db2", transform="modwt", **options), spun, atol=1e-10)
