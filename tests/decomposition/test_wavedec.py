"""Transforms against PyWavelets as the oracle, and their own properties."""

from __future__ import annotations

import numpy as np
import pytest
import pywt
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import wavefilt
from tests.support.agreement import TOLERANCE, assert_coefficients_agree, assert_samples_agree
from wavefilt.errors import OptionError
from wavefilt.vocabulary import MODES
from wavefilt.wavelets.filters import names


def random(rng, shape, dtype):
    x = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.standard_normal(shape)
    return x.astype(dtype)


def assert_close(got, expected, dtype):
    assert got.shape == expected.shape
    assert got.dtype == expected.dtype
    assert np.linalg.norm(got - expected) <= TOLERANCE[dtype] * max(np.linalg.norm(expected), 1)


@pytest.mark.parametrize(("number", "wavelet"), list(enumerate(names())))
def test_every_wavelet_and_mode_agrees_with_pywavelets(backend, rng, number, wavelet):
    """Of four lengths one short and one long, so that each meets every wavelet in some modes and every mode."""
    short, long = [(1, "f8"), (7, "f4")], [(64, "f8"), (257, "c8")]
    for place, mode in enumerate(MODES, number):
        for n, dtype in (short[place % 2], long[place // 2 % 2]):
            if n == 1 and mode in ("reflect", "antireflect"):
                continue  # neither library can; see the table of errors
            x = random(rng, (2, n), dtype)
            got = wavefilt.wavedec(x, wavelet, mode, level=3, backend=backend)
            reference = assert_coefficients_agree(got, x, wavelet, mode, 3)
            assert_samples_agree(wavefilt.waverec(reference, wavelet, mode, backend=backend), reference, wavelet, mode)


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("axis", [0, 1, 2, -1, -2])
def test_any_axis_of_any_batch(backend, rng, dtype, axis):
    x = random(rng, (33, 35, 38), dtype)
    expected = pywt.wavedec(x, "db4", "reflect", level=2, axis=axis)
    got = wavefilt.wavedec(x, "db4", "reflect", level=2, axis=axis, backend=backend)
    for g, e in zip(got, expected, strict=True):
        assert_close(g, e, dtype)
    y = wavefilt.waverec(got, "db4", "reflect", axis=axis, backend=backend)
    assert_close(y, pywt.waverec(expected, "db4", "reflect", axis=axis), dtype)


@pytest.mark.parametrize("n", [1, 2, 8, 33])
def test_single_level_has_pywavelets_signature(backend, rng, n):
    x = random(rng, n, "f8")
    (cA, cD), (eA, eD) = wavefilt.dwt(x, "sym5", "smooth", -1, backend=backend), pywt.dwt(x, "sym5", "smooth", -1)
    assert_close(cA, eA, "f8")
    assert_close(cD, eD, "f8")
    for pair in [(cA, cD), (None, cD), (cA, None)]:
        assert_close(wavefilt.idwt(*pair, "sym5", "smooth", backend=backend), pywt.idwt(*pair, "sym5", "smooth"), "f8")


@pytest.mark.parametrize(
    ("data", "dtype"),
    [
        ([1, 2, 3, 4, 5], "f8"),
        (np.arange(9, dtype="i2"), "f8"),
        (np.arange(9, dtype=">f4"), "f4"),
        (np.arange(9, dtype="f2"), "f4"),
        (np.arange(12.0).reshape(3, 4).T, "f8"),
        (np.arange(20.0)[::2], "f8"),
    ],
)
def test_dtypes_and_layouts_as_in_pywavelets(backend, data, dtype):
    expected = pywt.dwt(np.asarray(data).astype(np.asarray(data).dtype.newbyteorder("=")), "db2")
    for g, e in zip(wavefilt.dwt(data, "db2", backend=backend), expected, strict=True):
        assert_close(g, e.astype(dtype), dtype)


def test_default_level_is_pywavelets_maximum(rng):
    x = random(rng, 1000, "f8")
    assert len(wavefilt.wavedec(x, "db4")) == len(pywt.wavedec(x, "db4"))


def test_level_zero_is_the_data(rng):
    x = random(rng, 10, "f8")
    (only,) = wavefilt.wavedec(x, "db4", level=0)
    assert_allclose(only, x)
    assert_allclose(wavefilt.waverec([x], "db4"), x)


def test_none_details_count_as_zeros(backend, rng):
    x = random(rng, 101, "f8")
    cA, cD2, cD1 = pywt.wavedec(x, "db3", level=2)
    got = wavefilt.waverec([cA, None, cD1], "db3", backend=backend)
    assert_close(got, pywt.waverec([cA, np.zeros_like(cD2), cD1], "db3"), "f8")
    got = wavefilt.waverec([None, cD2, cD1], "db3", backend=backend)
    assert_close(got, pywt.waverec([np.zeros_like(cA), cD2, cD1], "db3"), "f8")


@pytest.mark.parametrize("name", pywt.Modes.modes)
def test_pywavelets_enumeration_of_modes(name, rng):
    x, mode = random(rng, 40, "f8"), getattr(pywt.Modes, name)
    for g, e in zip(wavefilt.dwt(x, "db2", mode), pywt.dwt(x, "db2", mode), strict=True):
        assert_close(g, e, "f8")


@pytest.mark.parametrize(
    ("action", "error", "words"),
    [
        (lambda x: wavefilt.dwt(x, "db2", None), TypeError, "mode=None must be a name"),
        (lambda x: wavefilt.waverec([x, x], "db2", ["zero"]), TypeError, r"mode=\['zero'\] must be a name"),
        (lambda x: wavefilt.dwt(x, "db2", 9), ValueError, "mode=9 is not one of zero"),
        (lambda x: wavefilt.denoise(x, mode=None), ValueError, "mode=None is not one of zero"),
        (lambda x: wavefilt.dwt(x, pywt.ContinuousWavelet("morl")), ValueError, "'morl' is continuous"),
        (lambda x: wavefilt.idwt(None, None, "db2"), ValueError, "at least one of cA and cD"),
        (lambda x: wavefilt.idwt(x[:3], x[:3], "db4"), ValueError, r"too short for db4 \(8 taps\) in mode 'symmetric'"),
        (lambda x: wavefilt.waverec([x, {"d": x}], "db2"), ValueError, r"coeffs\[1\]: .* type dict, not an array"),
        (lambda x: wavefilt.waverec([x[:5], x[:9]], "db2"), ValueError, r"coeffs\[1\] of shape \(9,\) does not fit"),
        (lambda x: wavefilt.wavedec2(np.ones((8, 8)), "db2", axes=1), TypeError, "axes=1 must be a pair of axes"),
        (
            lambda x: wavefilt.waverec2([np.ones((8, 8)), x], "db2"),
            ValueError,
            r"coeffs\[1\]: .* type ndarray, not thr",
        ),
    ],
)
def test_wrong_arguments_are_errors_of_the_type_that_pywavelets_raises(action, error, words, rng):
    with pytest.raises(error, match=words):
        action(random(rng, 40, "f8"))


def test_input_is_not_modified(backend, rng):
    x = random(rng, (3, 50), "f8")
    kept = x.copy()
    coefficients = wavefilt.wavedec(x, "db4", level=2, backend=backend)
    copies = [c.copy() for c in coefficients]
    wavefilt.waverec(coefficients, "db4", backend=backend)
    assert np.array_equal(x, kept)
    assert all(np.array_equal(c, k) for c, k in zip(coefficients, copies, strict=True))


def test_a_filter_bank_of_ones_own(backend, rng):
    class Bank:
        name = "mine"
        dec_lo, dec_hi, rec_lo, rec_hi = pywt.Wavelet("db3").filter_bank

    x = random(rng, 77, "f8")
    for g, e in zip(wavefilt.wavedec(x, Bank(), backend=backend), pywt.wavedec(x, "db3"), strict=True):
        assert_close(g, e, "f8")


orthogonal = st.sampled_from(["haar", "db4", "db8", "sym5", "coif2", "bior2.4", "rbio3.3"])
any_mode = st.sampled_from(MODES)


@given(st.integers(1, 300), orthogonal, any_mode, st.integers(0, 5), st.integers(0, 2**32 - 1))
def test_perfect_reconstruction(n, wavelet, mode, level, seed):
    x = random(np.random.default_rng(seed), (2, n), "f8")
    assume(mode not in ("reflect", "antireflect") or n > 2**level)
    y = wavefilt.waverec(wavefilt.wavedec(x, wavelet, mode, level), wavelet, mode)[:, :n]
    assert_allclose(y, x, atol=1e-10 * max(1, np.abs(x).max()))


@given(st.integers(2, 200), orthogonal, any_mode, st.floats(-100, 100), st.integers(0, 2**32 - 1))
def test_linearity(n, wavelet, mode, factor, seed):
    assume(mode not in ("reflect", "antireflect") or n > 2)
    rng = np.random.default_rng(seed)
    x, y = random(rng, n, "f8"), random(rng, n, "f8")
    pairs = zip(
        wavefilt.wavedec(x + factor * y, wavelet, mode, 2),
        wavefilt.wavedec(x, wavelet, mode, 2),
        wavefilt.wavedec(y, wavelet, mode, 2),
        strict=True,
    )
    for both, first, second in pairs:
        assert_allclose(both, first + factor * second, atol=1e-9 * (1 + abs(factor)))


@given(st.integers(1, 9).map(lambda k: 2 * k), st.integers(0, 2**32 - 1))
def test_inverse_of_an_orthogonal_transform_is_its_adjoint(half, seed):
    rng = np.random.default_rng(seed)
    x, c = random(rng, 8 * half, "f8"), random(rng, (2, 4 * half), "f8")
    analysis = np.concatenate(wavefilt.dwt(x, "db4", "periodization"))
    assert_allclose(analysis @ c.ravel(), x @ wavefilt.idwt(*c, "db4", "periodization"), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: wavefilt.wavedec([1.0, 2.0], "db99"), OptionError, "unknown wavelet 'db99'.*did you mean"),
        (lambda: wavefilt.wavedec([1.0, 2.0], "morl"), OptionError, "continuous"),
        (lambda: wavefilt.wavedec([1.0, 2.0], 7), TypeError, "wavelet must be a name"),
        (lambda: wavefilt.wavedec([1.0, 2.0], "db2", "symetric"), ValueError, "did you mean 'symmetric'"),
        (lambda: wavefilt.wavedec([1.0, 2.0], "db2", level=-1), ValueError, "at least 0"),
        (lambda: wavefilt.wavedec([1.0, 2.0], "haar", "reflect", 2), ValueError, "single sample, which level 2"),
        (lambda: wavefilt.wavedec([], "db2"), ValueError, "no samples"),
        (lambda: wavefilt.wavedec([1.0], "db2", axis=3), ValueError, "axis 3"),
        (lambda: wavefilt.wavedec(["a", "b"], "db2"), TypeError, "not numeric"),
        (lambda: wavefilt.wavedec([1.0, 2.0], "db2", backend="gpu"), ValueError, "backend='gpu' is not one of"),
        (lambda: wavefilt.waverec([], "db2"), ValueError, "at least one array"),
        (lambda: wavefilt.waverec([None, None, [1.0]], "db2"), ValueError, "at least one must be an array"),
        (lambda: wavefilt.waverec([[1.0, 2.0, 3.0], [1.0]], "db2"), ValueError, r"coeffs\[1\] of shape \(1,\)"),
        (lambda: wavefilt.idwt(None, None, "db2"), ValueError, "at least one of"),
        (lambda: wavefilt.idwt([1.0, 2.0], [1.0], "db2"), ValueError, "do not belong together"),
    ],
)
def test_errors_say_what_is_wrong(call, error, words):
    with pytest.raises(error, match=words):
        call()
