"""`wavefilt.threshold` against PyWavelets, and at the places where PyWavelets gives NaN."""

from __future__ import annotations

import numpy as np
import pytest
import pywt
from numpy.testing import assert_allclose

import wavefilt


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8", "c16"])
@pytest.mark.parametrize("substitute", [0, 7])
@pytest.mark.parametrize("mode", ["soft", "hard", "garrote", "greater", "less"])
def test_values_of_pywavelets(rng, mode, substitute, dtype):
    x = rng.standard_normal((5, 40)).astype(dtype)
    if x.dtype.kind == "c":
        x += 1j * rng.standard_normal((5, 40)).astype(x.real.dtype)
        if mode in ("greater", "less"):
            with pytest.raises(ValueError, match="real data only"):
                wavefilt.threshold(x, 0.7, mode)
            return
    got, expected = wavefilt.threshold(x, 0.7, mode, substitute), pywt.threshold(x, 0.7, mode, substitute)
    assert got.dtype == expected.dtype
    assert_allclose(got, expected, rtol=1e-5 if dtype in ("f4", "c8") else 1e-12, atol=1e-6)


ZEROS = np.array([0.0, -0.0, 1.0, -1.0, 1e-320])


@pytest.mark.parametrize("data", [ZEROS, ZEROS.astype("f4"), ZEROS + 0j])
@pytest.mark.parametrize("mode", ["soft", "hard", "garrote"])
def test_no_nan_at_threshold_zero(mode, data):
    assert_allclose(wavefilt.threshold(data, 0, mode), data, atol=1e-300)


@pytest.mark.parametrize("data", [ZEROS, ZEROS + 0j])
def test_firm_where_the_two_values_meet(data):
    assert_allclose(wavefilt.threshold_firm(data, 0, 0), data, atol=1e-300)
    assert_allclose(wavefilt.threshold_firm(data, 0.5, 0.5), np.where(np.abs(data) > 0.5, data, 0))
    assert_allclose(wavefilt.threshold_firm(data, 1, 1)[2:4], [0, 0])


def test_firm_is_that_of_pywavelets_and_soft_without_an_upper_value(rng):
    x = rng.standard_normal(50)
    for data in (x, x.astype("f4"), x * (1 + 1j)):
        assert_allclose(wavefilt.threshold(data, (0.4, 1.1), "firm"), pywt.threshold_firm(data, 0.4, 1.1), rtol=1e-5)
    assert_allclose(wavefilt.threshold_firm(x, 0.4, np.inf), wavefilt.threshold(x, 0.4, "soft"))


def test_integers_and_scalars():
    assert_allclose(wavefilt.threshold([1, -3, 4], 2), [0, -1, 2])
    assert wavefilt.threshold(3.0, 1.0) == 2.0
    assert wavefilt.threshold(3.0, 1.0, "garrote") == pytest.approx(3 - 1 / 3)


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (([1.0], 1.0, "sofft"), "'soft'"),
        (([1.0], -1.0), "at least 0"),
        (([1.0], float("nan")), "at least 0"),
        (([1.0], 1.0, "firm"), "pair"),
        (([1.0], (2.0, 1.0), "firm"), "low"),
        (([1 + 1j], 1.0, "greater"), "real"),
    ],
)
def test_wrong_arguments(arguments, word):
    with pytest.raises(ValueError, match=word):
        wavefilt.threshold(*arguments)
