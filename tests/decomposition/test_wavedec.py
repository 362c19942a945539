"""wavedec2 and waverec2 against PyWavelets, and inputs of every kind.

On one axis, `tests/backends/test_agreement.py` compares every wavelet and mode; PyWavelets' own tests run in
`test_pywavelets_suite.py`.
"""

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
from tests.support.agreement import TOLERANCE, error
from tests.support.checkout import usable_backends
from wavefilt.vocabulary import MODES

WAVELETS = pywt.wavelist(kind="discrete")
HOSTS = [name for name in usable_backends() if name != "cuda"]


def flat(coefficients):
    """Return [cA, (cH, cV, cD), ...] as one list."""
    return [coefficients[0], *(band for bands in coefficients[1:] for band in bands)]


def oracle(x, wavelet, mode, level, axes=(-2, -1)):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # above its maximum level
        return pywt.wavedec2(x, wavelet, mode, level, axes)


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
        assert g.dtype == dtype
        assert_allclose(g, e, atol=1e-5 if dtype == "f4" else 1e-14)


def test_input_is_not_modified(backend, rng):
    x = rng.standard_normal((3, 50))
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

    x = rng.standard_normal(77)
    for g, e in zip(wavefilt.wavedec(x, Bank(), backend=backend), pywt.wavedec(x, "db3"), strict=True):
        assert_allclose(g, e, atol=1e-13)


@given(
    name=st.sampled_from(HOSTS),
    shape=st.tuples(st.integers(1, 70), st.integers(1, 70)),
    wavelet=st.sampled_from(["haar", "db3", "db8", "sym5", "coif2", "bior2.4", "rbio3.3"]),
    mode=st.sampled_from(MODES),
    level=st.integers(0, 4),
)
def test_perfect_reconstruction_of_two_axes(name, shape, wavelet, mode, level):
    assume("reflect" not in mode or min(shape) > 2**level)
    x = np.random.default_rng(shape).standard_normal(shape)
    coefficients = wavefilt.wavedec2(x, wavelet, mode, level, backend=name)
    y = wavefilt.waverec2(coefficients, wavelet, mode, backend=name)[: shape[0], : shape[1]]
    scale = max(np.abs(c).max() for c in flat(coefficients))
    assert_allclose(y, x, atol=1e-12 * max(scale, 1))
