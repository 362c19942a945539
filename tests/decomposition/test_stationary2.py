"""The MODWT of two axes: PyWavelets' SWT, one axis after the other, exact inverse, noise, rules and bad input."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import pywt
from hypothesis import given
from hypothesis import strategies as st

import wavefilt
from tests.support.agreement import error
from wavefilt.method import Method
from wavefilt.vocabulary import MODES
from wavefilt.wavelets import modwt_boundary

BACKENDS = ["pywavelets", "numba"]


def flat(coefficients):
    return [coefficients[0], *(band for bands in coefficients[1:] for band in bands)]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("wavelet", ["haar", "db3", "bior2.4", "sym8"])
def test_periodic_values_are_those_of_swt2(rng, wavelet, backend):
    for dtype, bound in (("f8", 1e-14), ("f4", 1e-6)):
        x = rng.standard_normal((32, 3, 48)).astype(dtype)
        found = wavefilt.modwt2(x, wavelet, 3, axes=(0, 2), backend=backend)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of norm with a biorthogonal wavelet
            expected = pywt.swt2(x, wavelet, 3, norm=True, trim_approx=True, axes=(0, 2))
        assert all(f.dtype == dtype for f in flat(found))
        assert error(flat(found), flat(expected)) < bound


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("mode", MODES)
def test_values_are_those_of_one_axis_after_the_other(rng, mode, backend):
    x = rng.standard_normal((21, 34))
    (low, *_), (_, *level1) = (wavefilt.modwt2(x, "db2", 1, mode, backend=backend) for _ in range(2))
    h, v, d = level1[0]
    a1, d1 = wavefilt.modwt(x, "db2", 1, mode, backend="pywavelets")
    for rows, both in ((a1, (low, h)), (d1, (v, d))):
        expected = wavefilt.modwt(rows, "db2", 1, mode, axis=0, backend="pywavelets")
        assert all(np.allclose(f, e, atol=1e-11) for f, e in zip(both, expected, strict=True))


@given(
    rows=st.integers(4, 40),
    columns=st.integers(4, 60),
    wavelet=st.sampled_from(["haar", "db4", "bior2.4"]),
    modes=st.tuples(st.sampled_from(MODES), st.sampled_from(MODES)),
    backend=st.sampled_from(BACKENDS),
)
def test_the_inverse_is_exact(rows, columns, wavelet, modes, backend):
    x = np.random.default_rng(rows).standard_normal((2, rows, columns))
    c = wavefilt.modwt2(x, wavelet, 2, modes, backend=backend)
    assert error(wavefilt.imodwt2(c, wavelet, modes, backend=backend), x) < 1e-10
    taps = pywt.Wavelet(wavelet).dec_len
    for j, bands in ((2, (c[0],)), (2, c[1]), (1, c[2])):
        wanted = tuple(modwt_boundary.length(n, taps, m, j) for n, m in zip((rows, columns), modes, strict=True))
        assert {band.shape for band in bands} == {(2, *wanted)}


@given(down=st.integers(0, 19), across=st.integers(0, 29), backend=st.sampled_from(BACKENDS))
def test_shifts_shift_coefficients_and_energy_is_kept(down, across, backend):
    x = np.random.default_rng(3).standard_normal((20, 30))
    plain, shifted = (
        flat(wavefilt.modwt2(y, "db3", 3, backend=backend)) for y in (x, np.roll(x, (down, across), (0, 1)))
    )
    assert all(np.allclose(np.roll(p, (down, across), (0, 1)), s) for p, s in zip(plain, shifted, strict=True))
    assert np.isclose(sum(np.sum(c**2) for c in plain), np.sum(x**2))


def test_noise_of_the_bands_and_none_for_zeros(rng):
    x = rng.standard_normal((512, 512))
    c = wavefilt.modwt2(x, "db4", 3)
    gains = np.exp2([band.noise_exponent for band in Method("db4", transform="modwt", dimensions=2).bands(3)])
    found = [np.std(band) for bands in c[:0:-1] for band in bands[::-1]]  # finest first, D, V, H
    assert np.allclose(found, gains, rtol=0.06)
    zeros = [c[0], (None,) * 3, (None, c[2][1], None), c[3]]
    written = [c[0], (np.zeros((512, 512)),) * 3, (np.zeros((512, 512)), c[2][1], np.zeros((512, 512))), c[3]]
    assert np.array_equal(wavefilt.imodwt2(zeros, "db4"), wavefilt.imodwt2(written, "db4"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((np.ones((8, 40)), "haar", 4), r"at most log2 of the shorter axis of \(8, 40\), 3"),
        ((np.ones((8, 40)), "haar", -1), "level=-1"),
        ((np.ones((0, 40)), "haar"), "no samples"),
        ((np.ones(40), "haar"), "no two axes"),
        ((np.ones((8, 1)), "haar", 0, "reflect"), "single sample"),
        ((np.ones((8, 8)), "haar", 1, "mirror"), "mirror"),
        ((np.ones((8, 8)), "haar", 1, "zero", (0, 0)), "one and the same"),
    ],
)
def test_bad_input_of_the_analysis(arguments, message):
    with pytest.raises(ValueError, match=message):
        wavefilt.modwt2(*arguments)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda c: [], "begins with an array"),
        (lambda c: [None, *c[1:]], "begins with an array"),
        (lambda c: [c[0], c[1][:2], c[2]], "three arrays"),
        (lambda c: [c[0][:-1], *c[1:]], r"coeffs\[1\] of shape .* does not fit"),
        (lambda c: [c[0], c[1], tuple(b[:, 1:] for b in c[2])], r"coeffs\[2\] of shape"),
        (lambda c: [c[0][:9], *c[1:]], "too short|does not fit"),
    ],
)
def test_coefficients_that_do_not_belong_together(change, message):
    c = wavefilt.modwt2(np.ones((16, 20)), "db2", 2, "symmetric")
    with pytest.raises(ValueError, match=message):
        wavefilt.imodwt2(change(c), "db2", "symmetric")


RULES = ["bayes", "universal", "sure", "fdr", "ebayes", "js", "bivariate", 0.6]


@pytest.mark.parametrize("mode", ["symmetric", "periodization", "zero"])
@pytest.mark.parametrize("rule", RULES)
def test_denoising_agrees_on_both_backends(rng, rule, mode):
    x = rng.standard_normal((2, 40, 70)) + 3 * np.sin(np.arange(70) / 5 + np.arange(40)[:, None] / 3)
    for scope in ("trace", "record"):
        options = {"rule": rule, "mode": mode, "transform": "modwt", "axes": (1, 2), "scope": scope}
        reference, compiled = (wavefilt.denoise(x, "db2", backend=backend, **options) for backend in BACKENDS)
        assert np.allclose(reference, compiled, atol=1e-10)
        assert 0.2 < np.std(x - reference) < 1.5


def test_denoising_does_not_depend_on_the_origin_and_gains(rng):
    wave = np.sin(np.arange(128) / 5 + np.arange(64)[:, None] / 3) * (np.arange(128) > 60)
    x = wave + 0.7 * rng.standard_normal((64, 128))
    options = {"axes": (0, 1), "mode": "periodization", "wavelet": "db4"}
    y = wavefilt.denoise(x, transform="modwt", **options)
    shifted = wavefilt.denoise(np.roll(x, (11, 37), (0, 1)), transform="modwt", **options)
    assert np.allclose(np.roll(y, (11, 37), (0, 1)), shifted)
    assert np.linalg.norm(y - wave) < 0.9 * np.linalg.norm(wavefilt.denoise(x, **options) - wave)
    spun = wavefilt.denoise(x, spins=4**3, rule=1.5, shrink="hard", level=3, **options)
    assert np.linalg.norm(
        wavefilt.denoise(x, transform="modwt", rule=1.5, shrink="hard", level=3, **options) - spun
    ) < (
        1e-10 * np.linalg.norm(x)  # the mean over all shifts is the undecimated transform
    )


@pytest.mark.parametrize("backend", BACKENDS)
def test_gaps_and_dead_traces(rng, backend):
    x = rng.standard_normal((60, 150)) + 20
    x[10, 40:60], x[30] = np.nan, 7
    y = wavefilt.denoise(x, "db2", axes=(0, 1), transform="modwt", rule="universal", backend=backend)
    assert np.isnan(y[10, 40:60]).all()
    assert (y[30] == 7).all()
    rest = np.delete(x - y, (10, 30), 0)
    assert 0.8 < rest.std() < 1.1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"spins": 2}, "depends little on shifts"),
        ({"rule": "blockjs"}, "is for traces"),
        ({"level": 6}, "maximum of 5"),
        ({"sigma": ("window", 0, 20)}, "is for traces"),
    ],
)
def test_options_that_it_does_not_have(options, message):
    with pytest.raises(ValueError, match=message):
        wavefilt.denoise(np.ones((40, 50)), axes=(0, 1), transform="modwt", **options)
