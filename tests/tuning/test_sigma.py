"""`wavefilt.estimate_sigma`: the numbers that `denoise` uses, trace by trace."""

from __future__ import annotations

import numpy as np
import pytest

import wavefilt
from wavefilt.denoising.pipeline import run
from wavefilt.method import Method


@pytest.fixture(scope="module")
def x():
    return np.random.default_rng(2).standard_normal((4, 2048)) * np.array([[1], [2], [5], [10]])


@pytest.mark.parametrize("transform", ["dwt", "modwt", "dtcwt", "wp-full"])
def test_white_noise_has_one_number_in_all_bands(x, transform):
    found = wavefilt.estimate_sigma(x, by_band=True, transform=transform, level=3)
    assert found.shape[1] == 4
    np.testing.assert_allclose(found, np.repeat([[1, 2, 5, 10]], len(found), axis=0), rtol=0.25)
    np.testing.assert_array_equal(wavefilt.estimate_sigma(x, transform=transform, level=3), found[0])


@pytest.mark.parametrize("options", [{}, {"sigma": "global"}, {"sigma": ("window", 100, 900)}, {"rule": "js"}])
def test_it_is_what_denoise_has(x, options):
    (estimate,) = run(x, Method(**options), "auto", report=True).estimates
    found = wavefilt.estimate_sigma(x, by_band=True, **options)
    np.testing.assert_array_equal(found[: len(estimate.sigma)], estimate.sigma)
    assert len(found) == len(estimate.sigma) + (options.get("rule") == "js")


def test_the_median_over_a_constant(x):
    finest = wavefilt.wavedec(x, "db8", level=1)[-1]
    np.testing.assert_allclose(wavefilt.estimate_sigma(x), np.median(np.abs(finest), axis=1) / 0.6744897501960817)


def test_shapes_follow_the_axes(x):
    assert wavefilt.estimate_sigma(x[0]).shape == ()
    assert wavefilt.estimate_sigma(x.reshape(2, 2, -1)).shape == (2, 2)
    np.testing.assert_array_equal(wavefilt.estimate_sigma(x.T, axis=0), wavefilt.estimate_sigma(x))
    panels = np.random.default_rng(0).standard_normal((3, 64, 128))
    assert wavefilt.estimate_sigma(panels, "db2", axes=(-2, -1)).shape == (3,)
    found = wavefilt.estimate_sigma(panels, "db2", axes=(-2, -1), by_band=True, level=2)
    assert found.shape == (6, 3)
    np.testing.assert_allclose(found, 1, rtol=0.3)


def test_segments_dead_and_short_traces(x):
    gappy = x.copy()
    gappy[0, 500:600] = np.nan
    gappy[1] = 3
    gappy[2, :] = np.nan
    gappy[3, 10:] = np.nan
    found = wavefilt.estimate_sigma(gappy)
    parts = [wavefilt.estimate_sigma(part) for part in (x[0, :500], x[0, 600:])]
    assert found[0] == pytest.approx(np.sqrt((500 * parts[0] ** 2 + 1448 * parts[1] ** 2) / 1948))
    assert found[1] == 0
    assert np.isnan(found[2:]).all()


def test_errors(x):
    with pytest.raises(TypeError, match=r"x\.real"):
        wavefilt.estimate_sigma(x + 1j)
    with pytest.raises(ValueError, match="is not one of"):
        wavefilt.estimate_sigma(x, rule="baies")
    with pytest.raises(ValueError, match="does not lie in 2048 samples"):
        wavefilt.estimate_sigma(x, sigma=("window", 2000, 3000))
    with pytest.raises(TypeError, match="is a path"):
        wavefilt.estimate_sigma("seismic.dat")
