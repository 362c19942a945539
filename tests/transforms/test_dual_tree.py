"""Denoising by the dual-tree transform: noise, gains, sections, and options."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import wavefilt
from tests.support.signals import gain_db, gather


@pytest.mark.parametrize("wavelet", ["near_sym_b,qshift_b", "legall,qshift_a"])
@pytest.mark.parametrize("shape", [(1 << 17,), (512, 512)])
def test_noise_of_white_noise_is_its_own_in_every_band(wavelet, shape, rng):
    """Quantiles of magnitudes fit the correlation of both parts; mirrored directions have one number."""
    x = 3 * rng.standard_normal(shape)
    options = {"transform": "dtcwt", "level": 4, "by_band": True, "axes": (0, 1)}
    if len(shape) == 1:
        del options["axes"]
    found = wavefilt.estimate_sigma(x, wavelet, **options)
    counts = np.repeat([x.size >> 4, x.size >> 6, x.size >> 8, x.size >> 10], 6) if len(shape) == 2 else len(x) >> 4
    assert np.all(np.abs(found[: np.size(counts) if len(shape) == 2 else 4] / 3 - 1) < 5 / np.sqrt(counts))


def test_noise_of_mirrored_directions_is_the_smaller(rng):
    """One plane wave raises the noise of its own direction alone, which takes that of the mirrored one."""
    rows, columns = np.indices((128, 128))
    x = 3 * np.cos(0.9 * (rows + columns)) + rng.standard_normal((128, 128))
    found = wavefilt.estimate_sigma(x, transform="dtcwt", axes=(0, 1), by_band=True)[6:12]
    assert_array_equal(found, found[::-1])
    assert_allclose(found[[1, 4]], 1, rtol=0.15)


@pytest.mark.parametrize("sigma", [("running", 512), ("intervals", (2048,)), ("window", 0, 3000), "level"])
def test_next_to_nothing_is_left_of_noise(sigma, rng):
    x = rng.standard_normal((2, 4096))
    for rule in ("js", "universal"):
        options = {"rule": rule, "sigma": sigma, "level": 4, "transform": "dtcwt"}
        y = wavefilt.denoise(x, **options)
        assert np.sum(y**2) < (0.1 if rule == "js" else 0.2) * np.sum(x**2)
        assert_allclose(wavefilt.estimate_sigma(x, by_band=True, **options), 1, rtol=0.2)


@pytest.mark.parametrize("rule", ["universal", "sure", "hybrid", "bayes", "fdr", "js", "bivariate"])
@pytest.mark.parametrize("axes", [None, (0, 1)])
def test_every_rule_removes_noise_and_scales_with_the_samples(rng, rule, axes):
    clean, x = gather(rng, sd=1.0)
    options = {"transform": "dtcwt", "rule": rule} | ({} if axes is None else {"axes": axes})
    y = wavefilt.denoise(x, **options)
    assert gain_db(clean, x, y) > 1
    assert_allclose(wavefilt.denoise(100 * x, **options), 100 * y, atol=1e-8)
    assert_allclose(wavefilt.denoise(x, sigma=0.0, **options), x, atol=1e-12)


def test_defaults_are_those_of_the_transform(rng):
    _, x = gather(rng)
    y = wavefilt.denoise(x, transform="dtcwt")
    assert_array_equal(y, wavefilt.denoise(x, "near_sym_b,qshift_b", rule="js", transform="dtcwt"))
    assert len(wavefilt.estimate_sigma(x[0, :24], transform="dtcwt", rule="bayes", by_band=True)) == 3


def test_a_number_is_the_noise_of_the_samples(rng):
    _, x = gather(rng)
    found = wavefilt.denoise(x, transform="dtcwt", axes=(0, 1))
    assert np.std(wavefilt.denoise(x, transform="dtcwt", axes=(0, 1), sigma=0.5) - found) < 0.03
    assert np.std(wavefilt.denoise(x, transform="dtcwt", axes=(0, 1), sigma="global") - found) < 0.03
    assert np.std(wavefilt.denoise(x, transform="dtcwt", axes=(0, 1), sigma=1.5) - found) > 0.1


@pytest.mark.parametrize("shape", [(96, 200), (41, 201), (24, 160)])
def test_sections_gain_more_than_by_the_separable_transform(shape, rng):
    clean, x = gather(rng, shape)
    found = gain_db(clean, x, wavefilt.denoise(x, transform="dtcwt", axes=(0, 1)))
    assert found > gain_db(clean, x, wavefilt.denoise(x, "db4", axes=(0, 1))) + 2.5


def test_float32_and_batches(rng):
    x = np.stack([gather(rng)[1] for _ in range(2)])
    for options in ({"axes": (1, 2)}, {}):
        found = wavefilt.denoise(x, transform="dtcwt", **options)
        single = wavefilt.denoise(x.astype("f4"), transform="dtcwt", **options)
        assert single.dtype == "f4"
        assert_allclose(single, found, atol=1e-4)
        assert_array_equal(wavefilt.denoise(x[1], transform="dtcwt", **({"axes": (0, 1)} if options else {})), found[1])
