"""The undecimated transforms: PyWavelets' SWT, a textbook MODWT, and the same on two axes."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import pywt
from hypothesis import assume, given
from hypothesis import strategies as st

import wavefilt
from tests.support.agreement import TOLERANCE, error
from tests.support.checkout import usable_backends
from wavefilt.vocabulary import MODES

HOSTS = [name for name in usable_backends() if name != "cuda"]
ROUND = ("periodic", "periodization")
"""The circular modes, with as many coefficients as samples."""
BOUNDED = [mode for mode in MODES if mode not in ROUND]


@pytest.fixture(params=HOSTS)
def backend(request) -> str:
    return request.param


def before(taps, j):
    """Return the number of coefficients of level j before the first sample in the modes of ``BOUNDED``."""
    return (2**j - 1) * taps // 2


def largest(arrays) -> float:
    return max(float(np.abs(a).max()) for a in arrays)


def assert_close(found, expected, factor=1.0):
    """Check that pairs of arrays agree to ``factor`` times the rounding error of the largest value."""
    found, expected = list(found), list(expected)
    scale = max(largest(expected), 1e-30)
    for f, e in zip(found, expected, strict=True):
        assert (f.shape, f.dtype) == (e.shape, e.dtype)
        assert np.abs(f - e).max(initial=0) <= 100 * factor * np.finfo(e.dtype).eps * scale


def textbook(x, bank, level):
    """Return [V_J, W_J, ..., W_1] of one trace by equations 169 and 170 of Percival and Walden (2000)."""
    n, v, details = len(x), x.astype("f8"), []
    for j in range(1, level + 1):
        places = [[(t - 2 ** (j - 1) * tap) % n for tap in range(bank.dec_len)] for t in range(n)]
        w = np.array([sum(h / 2**0.5 * v[i] for h, i in zip(bank.dec_hi, row, strict=True)) for row in places])
        v = np.array([sum(g / 2**0.5 * v[i] for g, i in zip(bank.dec_lo, row, strict=True)) for row in places])
        details.append(w)
    return [v, *details[::-1]]


def aligned(coefficients, bank):
    """Return causal coefficients with the delay of each level removed."""
    levels = [len(coefficients) - 1, *range(len(coefficients) - 1, 0, -1)]
    return [np.roll(c, -(2**j - 1) * bank.dec_len // 2) for c, j in zip(coefficients, levels, strict=True)]


def flat(coefficients):
    return [coefficients[0], *(band for bands in coefficients[1:] for band in bands)]


@pytest.mark.parametrize("number", range(4))
def test_swt_of_every_wavelet_is_pywavelets(rng, number):
    x = rng.standard_normal((2, 96))
    for wavelet in pywt.wavelist(kind="discrete")[number::4]:
        for name, norm_ in (("numba", True), ("pywavelets", False)):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = wavefilt.swt(x, wavelet, 3, trim_approx=True, norm=norm_, backend=name)
                expected = pywt.swt(x, wavelet, 3, trim_approx=True, norm=norm_)
                rows = wavefilt.iswt(expected, wavelet, norm_, backend=name)
                expected_rows = pywt.iswt(expected, wavelet, norm_)
            assert_close(found, expected)
            assert_close([rows], [expected_rows])


@pytest.mark.parametrize("wavelet", ["haar", "db4", "bior2.4", "sym5"])
@pytest.mark.parametrize(("n", "level"), [(1, 0), (2, 1), (7, 2), (45, 5), (64, 6), (101, 3)])
def test_modwt_is_the_textbooks(backend, rng, wavelet, n, level):
    bank, x = pywt.Wavelet(wavelet), rng.standard_normal(n)
    expected = aligned(textbook(x, bank, level), bank)
    for mode in ROUND:
        assert_close(wavefilt.modwt(x, wavelet, level, mode, backend=backend), expected)


@pytest.mark.parametrize("mode", BOUNDED)
@pytest.mark.parametrize(("n", "level"), [(9, 3), (40, 2)])
def test_coefficients_are_those_of_the_extended_signal(backend, rng, mode, n, level):
    bank, x, wide = pywt.Wavelet("db3"), rng.standard_normal(n), 200
    long = textbook(pywt.pad(x, wide, mode), bank, level)
    found = wavefilt.modwt(x, bank, level, mode, backend=backend)
    levels = [level, *range(level, 0, -1)]
    for f, c, j in zip(found, aligned(long, bank), levels, strict=True):
        assert len(f) == n + (2**j - 1) * 5
        first = wide - before(6, j)
        assert_close([f], [c[first : first + len(f)]], largest(long) / largest([f]))


@given(
    st.integers(1, 300),
    st.sampled_from(["haar", "db2", "db7", "bior2.4", "rbio3.3"]),
    st.sampled_from(MODES),
    st.sampled_from(["f4", "f8"]),
    st.sampled_from(["numba", "pywavelets"]),
    st.integers(0, 2**32 - 1),
)
def test_perfect_reconstruction(n, wavelet, mode, dtype, name, seed):
    assume(n > 1 or "reflect" not in mode)
    rng = np.random.default_rng(seed)
    x, level = rng.standard_normal((2, n)).astype(dtype), int(rng.integers(n.bit_length()))
    coefficients = wavefilt.modwt(x, wavelet, level, mode, backend=name)
    y = wavefilt.imodwt(coefficients, wavelet, mode, backend=name)
    # smooth and antireflect extrapolate: their coefficients grow with the distance from the ends, and so does rounding
    assert_close([y], [x], largest(coefficients) / largest([x]) + 1)


@pytest.mark.parametrize("rule", ["universal", 0.7])
def test_symmetric_is_percival_and_waldens_reflection(backend, rng, rule):
    """The result is that of the mirrored signal in periodic mode, also with shrunk details."""
    x = rng.standard_normal((2, 301))
    both = np.concatenate([x, x[:, ::-1]], axis=1)
    found, around = (wavefilt.modwt(v, "db5", 4, m, backend=backend) for v, m in ((x, "symmetric"), (both, "periodic")))
    for j, (own, other) in enumerate(zip(found[:0:-1], around[:0:-1], strict=True), 1):
        first = before(10, j)
        assert_close([own[:, first : first + 301]], [other[:, :301]])
    options = {"rule": rule, "sigma": 0.2, "level": 4, "transform": "modwt", "backend": backend}
    if rule == "universal":  # its threshold depends on the number of samples
        options |= {"rule": 0.2 * np.sqrt(2 * np.log(301))}
    y = wavefilt.denoise(x, "db5", mode="symmetric", **options)
    assert_close([y], [wavefilt.denoise(both, "db5", mode="periodic", **options)[:, :301]])


@pytest.mark.parametrize("dtype", TOLERANCE)
@pytest.mark.parametrize("mode", ["periodic", "antisymmetric"])
def test_any_axis_of_any_batch(backend, rng, dtype, mode):
    x = rng.standard_normal((3, 21, 2)).astype(dtype)
    for axis in (0, 1, -1):
        rows = np.moveaxis(x, axis, -1).reshape(-1, x.shape[axis])
        each = [wavefilt.modwt(row, "db2", 1, mode, backend=backend) for row in rows]
        found = wavefilt.modwt(x, "db2", 1, mode, axis, backend=backend)
        for f, expected in zip(found, zip(*each, strict=True), strict=True):
            assert_close(np.moveaxis(f, axis, -1).reshape(-1, f.shape[axis]), expected)
        assert_close([wavefilt.imodwt(found, "db2", mode, axis, backend=backend)], [x])


def test_missing_coefficients_count_as_zeros(backend, rng):
    x = rng.standard_normal((2, 50))
    for mode in ("periodic", "reflect"):
        parts, coefficients = [], wavefilt.modwt(x, "db3", 3, mode)
        for i in range(4):
            only = [c if i == k else None for k, c in enumerate(coefficients)]
            parts.append(wavefilt.imodwt(only, "db3", mode, backend=backend))
        assert_close([np.sum(parts, axis=0)], [x])  # a multiresolution analysis adds up


def test_the_default_level_is_that_of_wavedec(rng):
    x = rng.standard_normal(1000)
    assert len(wavefilt.modwt(x, "db4")) == len(wavefilt.wavedec(x, "db4")) == 8


@pytest.mark.parametrize("backend", HOSTS)
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


@pytest.mark.parametrize("backend", HOSTS)
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
    backend=st.sampled_from(HOSTS),
)
def test_perfect_reconstruction_of_two_axes(rows, columns, wavelet, modes, backend):
    x = np.random.default_rng(rows).standard_normal((2, rows, columns))
    c = wavefilt.modwt2(x, wavelet, 2, modes, backend=backend)
    assert error(wavefilt.imodwt2(c, wavelet, modes, backend=backend), x) < 1e-10
    taps = pywt.Wavelet(wavelet).dec_len
    for j, bands in ((2, (c[0],)), (2, c[1]), (1, c[2])):
        more = [0 if mode in ROUND else (2**j - 1) * (taps - 1) for mode in modes]
        assert {band.shape for band in bands} == {(2, rows + more[0], columns + more[1])}


def test_missing_bands(rng):
    c, zeros = wavefilt.modwt2(rng.standard_normal((64, 64)), "db4", 3), np.zeros((64, 64))
    missing = [c[0], (None,) * 3, (None, c[2][1], None), c[3]]
    written = [c[0], (zeros,) * 3, (zeros, c[2][1], zeros), c[3]]
    assert np.array_equal(wavefilt.imodwt2(missing, "db4"), wavefilt.imodwt2(written, "db4"))
    no_approximation = wavefilt.imodwt2([None, *c[1:]], "db4")
    assert np.array_equal(no_approximation, wavefilt.imodwt2([zeros, *c[1:]], "db4"))
