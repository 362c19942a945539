"""wavedec, waverec, dwt and idwt, on one axis and on two, against PyWavelets, and their own properties."""

from __future__ import annotations

import warnings
from itertools import product

import numpy as np
import pytest
import pywt
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import wavefilt
from tests.support.agreement import TOLERANCE, assert_coefficients_agree, assert_samples_agree, error
from tests.support.checkout import usable_backends
from wavefilt.vocabulary import MODES

WAVELETS = pywt.wavelist(kind="discrete")
HOSTS = [name for name in usable_backends() if name != "cuda"]


def random(rng, shape, dtype):
    x = rng.standard_normal(shape)
    if np.dtype(dtype).kind == "c":
        x = x + 1j * rng.standard_normal(shape)
    return x.astype(dtype)


def assert_close(got, expected, dtype):
    assert got.shape == expected.shape
    assert got.dtype == expected.dtype
    assert np.linalg.norm(got - expected) <= TOLERANCE[dtype] * max(np.linalg.norm(expected), 1)


def flat(coefficients):
    """Return [cA, (cH, cV, cD), ...] as one list."""
    return [coefficients[0], *(band for bands in coefficients[1:] for band in bands)]


def oracle(x, wavelet, mode, level, axes=(-2, -1)):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # above its maximum level
        return pywt.wavedec2(x, wavelet, mode, level, axes)


@pytest.mark.parametrize("number", range(8))
def test_every_wavelet_and_mode_agrees_with_pywavelets(backend, rng, number):
    """Every case has a short and a long length."""
    short, long = [(1, "f8"), (7, "f4")], [(64, "f8"), (257, "c8")]
    for count, wavelet in list(enumerate(WAVELETS))[number::8]:
        for place, mode in enumerate(MODES, count):
            for n, dtype in (short[place % 2], long[place // 2 % 2]):
                if n == 1 and mode in ("reflect", "antireflect"):
                    continue  # neither library can; see the table of refusals
                x = random(rng, (2, n), dtype)
                got = wavefilt.wavedec(x, wavelet, mode, level=3, backend=backend)
                reference = assert_coefficients_agree(got, x, wavelet, mode, 3)
                y = wavefilt.waverec(reference, wavelet, mode, backend=backend)
                assert_samples_agree(y, reference, wavelet, mode)


@pytest.mark.parametrize("name", HOSTS)
@pytest.mark.parametrize("number", range(4))
def test_every_wavelet_and_mode_of_two_axes_agrees_with_pywavelets(name, rng, number):
    shapes = [((2, 9, 24), "f4"), ((3, 31), "f8"), ((18, 1), "f8")]
    # the reference calls PyWavelets' own functions
    for wavelet, mode in product(WAVELETS[number :: 4 if name == "numba" else 16], MODES):
        shape, dtype = shapes[rng.integers(2 if mode in ("reflect", "antireflect") else 3)]
        level = int(rng.integers(1, 3))
        x = rng.standard_normal(shape).astype(dtype)
        reference = oracle(x, wavelet, mode, level)
        exact = flat(reference if dtype == "f8" else oracle(x.astype("f8"), wavelet, mode, level))
        found = wavefilt.wavedec2(x, wavelet, mode, level, backend=name)
        assert [type(bands) for bands in found] == [np.ndarray, tuple, tuple][: level + 1]
        assert all(f.dtype == x.dtype for f in flat(found))
        bound = max(TOLERANCE[dtype], 2 * error(flat(reference), exact))
        # smooth extrapolates from a rounded slope, as in one dimension
        assert error(flat(found), exact) <= (100 * bound if mode == "smooth" else bound), (wavelet, mode, shape)
        y, expected = wavefilt.waverec2(reference, wavelet, mode, backend=name), pywt.waverec2(reference, wavelet, mode)
        assert (y.shape, y.dtype) == (expected.shape, expected.dtype)
        scale = max(np.linalg.norm(expected), 0.1 * sum(map(np.linalg.norm, flat(reference))))
        assert np.linalg.norm(y - expected) <= TOLERANCE[dtype] * scale, (wavelet, mode, shape)


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


@pytest.mark.parametrize("name", HOSTS)
@pytest.mark.parametrize("axes", [(-2, -1), (0, 2), (2, 0), (1, 0)])
def test_any_two_axes_with_a_wavelet_and_a_mode_for_each(name, rng, axes):
    x = rng.standard_normal((33, 26, 38))
    wavelets, modes = ("db2", "bior2.4"), ("periodization", "reflect")
    expected = oracle(x, wavelets, modes, 2, axes)
    found = wavefilt.wavedec2(x, wavelets, modes, 2, axes, backend=name)
    assert error(flat(found), flat(expected)) < 1e-14
    y = wavefilt.waverec2(found, wavelets, modes, axes, backend=name)
    assert_allclose(y, pywt.waverec2(expected, wavelets, modes, axes), atol=1e-12)


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


def test_none_details_count_as_zeros(backend, rng):
    x = random(rng, 101, "f8")
    cA, cD2, cD1 = pywt.wavedec(x, "db3", level=2)
    got = wavefilt.waverec([cA, None, cD1], "db3", backend=backend)
    assert_close(got, pywt.waverec([cA, np.zeros_like(cD2), cD1], "db3"), "f8")
    got = wavefilt.waverec([None, cD2, cD1], "db3", backend=backend)
    assert_close(got, pywt.waverec([np.zeros_like(cA), cD2, cD1], "db3"), "f8")


def test_missing_bands_and_dtypes_of_two_axes(rng):
    x = rng.standard_normal((50, 41))
    cA, second, (cH, cV, cD) = oracle(x, "db4", "symmetric", 2)
    zeros = np.zeros_like(cH)
    expected = pywt.waverec2([cA, second, (cH, zeros, cD)], "db4")
    assert_allclose(wavefilt.waverec2([cA, second, (cH, None, cD)], "db4"), expected)
    expected = pywt.waverec2([np.zeros_like(cA), second, (cH, cV, cD)], "db4")
    assert_allclose(wavefilt.waverec2([None, second, (cH, cV, cD)], "db4"), expected)
    none = (None,) * 3
    for bands in ([cA, none, none], [cA, none, (cH, cV, cD)], [cA, second, none]):
        assert_allclose(wavefilt.waverec2(bands, "db4"), pywt.waverec2(bands, "db4"), atol=1e-12)
    for dtype, computed in (("i2", "f8"), ("f2", "f4"), (">f4", "f4"), ("c8", "c8")):
        assert {c.dtype for c in flat(wavefilt.wavedec2(x.astype(dtype), "db2", level=1))} == {np.dtype(computed)}


@pytest.mark.parametrize("name", pywt.Modes.modes)
def test_pywavelets_enumeration_of_modes(name, rng):
    x, mode = random(rng, 40, "f8"), getattr(pywt.Modes, name)
    for g, e in zip(wavefilt.dwt(x, "db2", mode), pywt.dwt(x, "db2", mode), strict=True):
        assert_close(g, e, "f8")


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


ANY_WAVELET = st.sampled_from(["haar", "db3", "db8", "sym5", "coif2", "bior2.4", "rbio3.3"])
ANY_MODE = st.sampled_from(MODES)
SEEDS = st.integers(0, 2**32 - 1)


@given(st.integers(1, 300), ANY_WAVELET, ANY_MODE, st.integers(0, 5), st.sampled_from(["f4", "f8", "c16"]), SEEDS)
def test_perfect_reconstruction(n, wavelet, mode, level, dtype, seed):
    x = random(np.random.default_rng(seed), (2, n), dtype)
    assume(mode not in ("reflect", "antireflect") or n > 2**level)
    coefficients = wavefilt.wavedec(x, wavelet, mode, level)
    y = wavefilt.waverec(coefficients, wavelet, mode)[:, :n]
    assert y.dtype == x.dtype
    scale = max(np.abs(c).max() for c in coefficients)  # smooth and antireflect extrapolate
    assert_allclose(y, x, atol=1000 * np.finfo(dtype).eps * max(1, scale))


@given(st.sampled_from(HOSTS), st.tuples(*[st.integers(1, 70)] * 2), ANY_WAVELET, ANY_MODE, st.integers(0, 4), SEEDS)
def test_perfect_reconstruction_of_two_axes(name, shape, wavelet, mode, level, seed):
    assume(mode not in ("reflect", "antireflect") or min(shape) > 2**level)
    x = np.random.default_rng(seed).standard_normal(shape)
    coefficients = wavefilt.wavedec2(x, wavelet, mode, level, backend=name)
    y = wavefilt.waverec2(coefficients, wavelet, mode, backend=name)[: shape[0], : shape[1]]
    scale = max(np.abs(c).max() for c in flat(coefficients))
    assert_allclose(y, x, atol=1e-12 * max(scale, 1))


@given(st.integers(2, 200), ANY_WAVELET, ANY_MODE, st.floats(-100, 100), SEEDS)
def test_linearity(n, wavelet, mode, factor, seed):
    assume(mode not in ("reflect", "antireflect") or n > 2)
    rng = np.random.default_rng(seed)
    x, y = random(rng, n, "f8"), random(rng, n, "f8")
    of_sum, of_x, of_y = (wavefilt.wavedec(v, wavelet, mode, 2) for v in (x + factor * y, x, y))
    for both, first, second in zip(of_sum, of_x, of_y, strict=True):
        assert_allclose(both, first + factor * second, atol=1e-9 * (1 + abs(factor)))


@given(st.integers(1, 9).map(lambda k: 2 * k), st.integers(0, 2**32 - 1))
def test_inverse_of_an_orthogonal_transform_is_its_adjoint(half, seed):
    rng = np.random.default_rng(seed)
    x, c = random(rng, 8 * half, "f8"), random(rng, (2, 4 * half), "f8")
    analysis = np.concatenate(wavefilt.dwt(x, "db4", "periodization"))
    assert_allclose(analysis @ c.ravel(), x @ wavefilt.idwt(*c, "db4", "periodization"), rtol=1e-9, atol=1e-9)
