"""Transforms without decimation: PyWavelets' SWT, a textbook MODWT, what both promise, and the two CPU backends."""

from __future__ import annotations

import copy
import json
import tracemalloc
import warnings

import numpy as np
import pytest
import pywt
from hypothesis import assume, given
from hypothesis import strategies as st

import wavefilt
from tests.support.agreement import TOLERANCE, error, norm
from tests.support.checkout import ROOT
from wavefilt import backends, threads
from wavefilt.backends.crossover import numba_crossover
from wavefilt.backends.numba_cpu import NumbaCPU, memory
from wavefilt.backends.reference.backend import PyWavelets
from wavefilt.benchmarks.common.implementation import Mismatch
from wavefilt.benchmarks.cpu import modwt as study
from wavefilt.thresholding.shrinkage import Shrinkage
from wavefilt.transforms import MODWT, Pyramid, find
from wavefilt.vocabulary import MODES, SHRINKS
from wavefilt.wavelets import modwt_boundary
from wavefilt.wavelets.extension import extended
from wavefilt.wavelets.filters import names

REFERENCE = PyWavelets()
SMALL = NumbaCPU(tile=64)
BOUNDED = [mode for mode in MODES if mode not in modwt_boundary.ROUND]


@pytest.fixture(params=["pywavelets", "numba"])
def backend(request) -> str:
    return request.param


def largest(arrays) -> float:
    return max(float(np.abs(a).max()) for a in arrays)


def assert_close(found, expected, factor=1.0):
    """Pairs of arrays agree to ``factor`` times the rounding of the largest value of all."""
    found, expected = list(found), list(expected)
    scale = max(largest(expected), 1e-30)
    for f, e in zip(found, expected, strict=True):
        assert (f.shape, f.dtype) == (e.shape, e.dtype)
        assert np.abs(f - e).max(initial=0) <= 100 * factor * np.finfo(e.dtype).eps * scale


def textbook(x, bank, level):
    """Percival and Walden (2000), equations 169 and 170: every sum written out; [V_J, W_J, ..., W_1] of one trace."""
    n, v, details = len(x), x.astype("f8"), []
    for j in range(1, level + 1):
        places = [[(t - 2 ** (j - 1) * tap) % n for tap in range(bank.dec_len)] for t in range(n)]
        w = np.array([sum(h / 2**0.5 * v[i] for h, i in zip(bank.dec_hi, row, strict=True)) for row in places])
        v = np.array([sum(g / 2**0.5 * v[i] for g, i in zip(bank.dec_lo, row, strict=True)) for row in places])
        details.append(w)
    return [v, *details[::-1]]


def aligned(coefficients, bank):
    """Causal coefficients with the delay of each level undone."""
    levels = [len(coefficients) - 1, *range(len(coefficients) - 1, 0, -1)]
    return [np.roll(c, -(2**j - 1) * bank.dec_len // 2) for c, j in zip(coefficients, levels, strict=True)]


# ---- the SWT


@pytest.mark.parametrize("wavelet", names())
def test_swt_of_every_wavelet_is_pywavelets(rng, wavelet):
    x = rng.standard_normal((2, 96))
    for name, norm_ in (("numba", True), ("pywavelets", False)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = wavefilt.swt(x, wavelet, 3, trim_approx=True, norm=norm_, backend=name)
            expected = pywt.swt(x, wavelet, 3, trim_approx=True, norm=norm_)
            expected_rows = pywt.iswt(expected, wavelet, norm_)
        assert_close(found, expected)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            assert_close([wavefilt.iswt(expected, wavelet, norm_, backend=name)], [expected_rows])


@pytest.mark.parametrize("norm_", [False, True])
@pytest.mark.parametrize("dtype", TOLERANCE)
def test_swt_has_pywavelets_signature(backend, rng, norm_, dtype):
    x = rng.standard_normal((3, 48, 2)).astype(dtype)
    for level, start_level in ((1, 0), (4, 0), (None, 0), (2, 1), (1, 3)):
        for trim_approx in (False, True):
            arguments = "db3", level, start_level, 1, trim_approx, norm_
            found, expected = wavefilt.swt(x, *arguments, backend=backend), pywt.swt(x, *arguments)
            assert type(found) is list
            if trim_approx:
                assert_close(found, expected)
            else:
                assert all(type(pair) is tuple for pair in found)
                assert_close(sum(found, ()), sum(expected, ()))
            if start_level == 0:
                expected[0] = 0.5 * expected[0] if trim_approx else tuple(0.5 * c for c in expected[0])
                y = wavefilt.iswt(expected, "db3", norm_, 1, backend=backend)
                assert_close([y], [pywt.iswt(expected, "db3", norm_, 1)])


def test_swt_of_other_dtypes_and_of_one_trace(backend):
    x = np.arange(24, dtype="i2") ** 2
    assert_close(sum(wavefilt.swt(x, "sym4", backend=backend), ()), sum(pywt.swt(x, "sym4"), ()))
    pairs = pywt.swt(x.astype("f4"), "sym4", 2)
    y = wavefilt.iswt([(pairs[0][0].astype("f8"), pairs[0][1]), pairs[1]], "sym4", backend=backend)
    assert (y.shape, y.dtype) == ((24,), np.float64)
    np.testing.assert_allclose(y, x, atol=1e-3)


def test_norm_of_a_wavelet_that_is_not_orthogonal_warns_as_in_pywavelets():
    with pytest.warns(UserWarning, match="bior2.2 is not orthogonal"):
        wavefilt.swt(np.arange(8.0), "bior2.2", 1, norm=True)


# ---- the MODWT in periodic mode


@pytest.mark.parametrize("wavelet", ["haar", "db4", "bior2.4", "sym5"])
@pytest.mark.parametrize(("n", "level"), [(1, 0), (2, 1), (7, 2), (45, 5), (64, 6), (101, 3)])
def test_modwt_is_the_textbooks(backend, rng, wavelet, n, level):
    bank, x = pywt.Wavelet(wavelet), rng.standard_normal(n)
    expected = aligned(textbook(x, bank, level), bank)
    for mode in modwt_boundary.ROUND:
        assert_close(wavefilt.modwt(x, wavelet, level, mode, backend=backend), expected)


def test_modwt_is_the_normalised_swt_where_there_is_one(backend, rng):
    x = rng.standard_normal((2, 160))
    assert_close(wavefilt.modwt(x, "db8", 5, backend=backend), pywt.swt(x, "db8", 5, trim_approx=True, norm=True))


@given(st.integers(1, 400), st.sampled_from(["haar", "db8", "sym6", "coif3"]), st.integers(0, 2**32 - 1))
def test_energy_is_kept_and_shifts_go_through(n, wavelet, seed):
    rng = np.random.default_rng(seed)
    x, shift = rng.standard_normal((2, n)), int(rng.integers(n))
    level = int(rng.integers(n.bit_length()))
    coefficients = wavefilt.modwt(x, wavelet, level, backend="numba")
    assert norm(coefficients) == pytest.approx(norm([x]), rel=1e-10)
    shifted = wavefilt.modwt(np.roll(x, shift, axis=1), wavelet, level, backend="numba")
    assert_close(shifted, [np.roll(c, shift, axis=1) for c in coefficients])


# ---- the other boundary modes


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("n", [2, 3, 10])
def test_the_extension_is_pywavelets(rng, mode, n):
    x = rng.standard_normal((2, n))
    expected = [pywt.pad(row, (35, 29), "periodic" if mode == "periodization" else mode) for row in x]
    np.testing.assert_allclose(
        extended(x, "periodic" if mode in modwt_boundary.ROUND else mode, 35, 29), expected, rtol=1e-12, atol=1e-12
    )


@pytest.mark.parametrize("mode", BOUNDED)
@pytest.mark.parametrize(("n", "level"), [(9, 3), (40, 2)])
def test_coefficients_are_those_of_the_extended_signal(backend, rng, mode, n, level):
    bank, x, wide = pywt.Wavelet("db3"), rng.standard_normal(n), 200
    long = textbook(pywt.pad(x, wide, mode), bank, level)
    found = wavefilt.modwt(x, bank, level, mode, backend=backend)
    levels = [level, *range(level, 0, -1)]
    for f, c, j in zip(found, aligned(long, bank), levels, strict=True):
        before, after = modwt_boundary.kept(6, mode, j)
        assert (len(f), before) == (n + (2**j - 1) * 5, (2**j - 1) * 3)
        assert_close([f], [c[wide - before : wide + n + after]], largest(long) / largest([f]))


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


def test_symmetric_is_percival_and_waldens_reflection(backend, rng):
    """Also with shrunk details: the result is that of the mirrored signal, which goes round."""
    chosen, x = backends.get(backend), rng.standard_normal((2, 301))
    both = np.concatenate([x, x[:, ::-1]], axis=1)
    bank, shrinkage = pywt.Wavelet("db5"), Shrinkage("soft", rng.random((4, 2)))
    pyramid, around = (
        chosen.decompose(samples, MODWT.analysis(bank, mode, 4))
        for samples, mode in ((x, "symmetric"), (both, "periodic"))
    )
    assert_close(pyramid.details, [d[:, :301] for d in around.details])
    found, expected = (chosen.reconstruct(p, shrinkage) for p in (pyramid, around))
    assert_close([found], [expected[:, :301]])


# ---- any batch, any level, errors


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


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda x: wavefilt.modwt(x, "db2", 5), "level=5 must be at least 0 and at most log2 of 24 samples, 4"),
        (lambda x: wavefilt.modwt(x, "db2", -1), "level=-1"),
        (lambda x: wavefilt.modwt(x[:0], "db2"), "no samples"),
        (lambda x: wavefilt.modwt(x, "db2", axis=1), "axis 1"),
        (lambda x: wavefilt.modwt(x, "db2", 1, "symetric"), "did you mean 'symmetric'"),
        (lambda x: wavefilt.modwt(x[:1], "db2", 0, "reflect"), "cannot extend a single sample"),
        (lambda x: wavefilt.modwt(x, "db2", 1, backend="gpu"), "backend='gpu'"),
        (lambda x: wavefilt.imodwt([], "db2"), "at least one array"),
        (lambda x: wavefilt.imodwt([None, None], "db2"), "at least one array"),
        (lambda x: wavefilt.imodwt([x[:3], x[:3]], "db2", "zero"), "do not belong together in mode 'zero'"),
        (lambda x: wavefilt.imodwt([x, x[:20]], "db2"), "do not belong together"),
        (lambda x: wavefilt.imodwt([x, x[None]], "db2"), "do not belong together"),
        (lambda x: wavefilt.swt(x[:7], "db2", 1), "7 samples.*modwt takes any length"),
        (lambda x: wavefilt.swt(x[:7], "db2"), "7 samples"),
        (lambda x: wavefilt.swt(x, "db2", 4), r"divide the length, which 2\^3 does"),
        (lambda x: wavefilt.swt(x, "db2", 2, 2), "start_level=2"),
        (lambda x: wavefilt.swt(x, "db2", 0), "level=0"),
        (lambda x: wavefilt.swt(x, "db2", 1, -1), "start_level=-1"),
        (lambda x: wavefilt.iswt([], "db2"), "at least one level"),
        (lambda x: wavefilt.iswt([x] * 5, "db2"), r"2\^4 does not divide"),
        (lambda x: wavefilt.iswt([(x, x[:12])], "db2"), "do not belong together"),
    ],
)
def test_errors_say_what_is_wrong(call, words):
    with pytest.raises(ValueError, match=words):
        call(np.arange(24.0))


def test_an_unknown_transform_is_refused():
    with pytest.raises(ValueError, match=r"transform='modwd' is not one of dwt, modwt, .*; did you mean 'modwt'"):
        find("modwd", 1)


# ---- the backends


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("wavelet", ["haar", "db8", "coif8"])
def test_numba_agrees_with_the_reference(rng, mode, wavelet):
    bank = pywt.Wavelet(wavelet)
    for n, level, dtype in [(2, 1, "f8"), (5, 3, "f4"), (300, 4, "f8"), (1501, 5, "f4"), (300, 8, "f8")]:
        x, function = rng.standard_normal((2, n)).astype(dtype), SHRINKS[n % len(SHRINKS)]
        shrinkage = Shrinkage(function, rng.random((level, 2)))
        reference = REFERENCE.decompose(x, MODWT.analysis(bank, mode, level))
        samples = REFERENCE.reconstruct(reference), REFERENCE.reconstruct(reference, shrinkage)
        growth = largest(reference.coefficients) / largest(samples)
        for fast in (NumbaCPU(), SMALL):
            pyramid = fast.decompose(x, MODWT.analysis(bank, mode, level))
            assert error(pyramid.coefficients, reference.coefficients) < TOLERANCE[dtype] * 10
            assert_close((fast.reconstruct(reference), fast.reconstruct(reference, shrinkage)), samples, growth + 1)


@pytest.mark.parametrize("function", SHRINKS)
@pytest.mark.parametrize("mode", ["periodic", "symmetric"])
def test_details_are_shrunk_as_in_the_reference(rng, function, mode):
    x = np.round(rng.standard_normal((3, 701)), 1)
    pyramid = REFERENCE.decompose(x, MODWT.analysis(pywt.Wavelet("haar"), mode, 3))
    for detail in pyramid.coefficients[1:]:
        detail[:, :40] = np.round(detail[:, :40])  # some exactly at the threshold, at twice of it, and 0
    before = [c.copy() for c in pyramid.coefficients]
    shrinkage = Shrinkage(function, np.array([[0, 1, 0.5], [1, 0, 2], [0.3, 1, 1e30]]))
    assert_close([SMALL.reconstruct(pyramid, shrinkage)], [REFERENCE.reconstruct(pyramid, shrinkage)])
    assert all(np.array_equal(a, b) for a, b in zip(before, pyramid.coefficients, strict=True))


@pytest.mark.parametrize("mode", ["periodic", "symmetric", "smooth"])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_the_same_bits_from_any_tile_and_number_of_threads(rng, mode, dtype):
    bank, x = pywt.Wavelet("db6"), rng.standard_normal((2, 20_011)).astype(dtype)
    shrinkage, results = Shrinkage("garrote", rng.random((6, 2))), []
    for tile, count in [(64, 1), (1000, 2), (2048, 3), (32768, 4), (1 << 20, 1)]:
        threads.set_num_threads(count)
        backend = NumbaCPU(tile)
        pyramid = backend.decompose(x, MODWT.analysis(bank, mode, 6))
        results.append([c.tobytes() for c in (*pyramid.coefficients, backend.reconstruct(pyramid, shrinkage))])
    threads.set_num_threads(None)
    assert all(other == results[0] for other in results[1:])


@pytest.mark.parametrize("mode", ["periodization", "constant"])
@pytest.mark.parametrize("scope", ["trace", "record"])
@pytest.mark.parametrize(("rows", "n"), [(5, 333), (2, 70_000), (1, 1_100_000)])
def test_statistics_see_the_coefficients_of_the_samples(rng, mode, scope, rows, n):
    pyramid = SMALL.decompose(rng.standard_normal((rows, n)).astype("f4"), MODWT.analysis(pywt.Wavelet("db4"), mode, 2))
    statistics = SMALL.statistics([pyramid], scope)
    starts = [(2**j - 1) * 4 if mode == "constant" else 0 for j in (1, 2)]
    own = [pyramid.coefficients[-j][:, a : a + n] for j, a in zip((1, 2), starts, strict=True)]
    own = [d if scope == "trace" else d.reshape(1, -1) for d in own]
    np.testing.assert_array_equal(statistics.counts, [d.shape[1] for d in own])
    np.testing.assert_array_equal(
        statistics.median_abs([1, 2]), [np.median(np.abs(d).astype("f8"), axis=1) for d in own]
    )
    np.testing.assert_allclose(
        statistics.mean_square(), [np.mean(d.astype("f8") ** 2, axis=1) for d in own], rtol=1e-12
    )


def _of(pyramid, coefficients):
    return Pyramid(tuple(coefficients), pyramid.analysis, pyramid.shape)


def test_other_shrinkages_and_places(rng):
    x, bank = rng.standard_normal((2, 500)), pywt.Wavelet("db3")
    pyramid, out = SMALL.decompose(x, MODWT.analysis(bank, "zero", 3)), np.empty((2, 500))
    assert SMALL.reconstruct(pyramid, out=out) is out
    np.testing.assert_allclose(out, x, atol=1e-12)
    np.testing.assert_array_equal(SMALL.reconstruct(copy.deepcopy(pyramid)), out)
    with pytest.raises(ValueError, match=r"C-contiguous float64 array of shape \(2, 500\)"):
        SMALL.reconstruct(pyramid, out=np.empty((500, 2)).T)
    strided = _of(pyramid, (np.repeat(c, 2, axis=1)[:, ::2] for c in pyramid.coefficients))
    np.testing.assert_array_equal(SMALL.reconstruct(strided), out)
    empty = SMALL.decompose(x[:0], MODWT.analysis(bank, "zero", 3))
    assert SMALL.reconstruct(empty).shape == (0, 500)


def test_coefficients_that_do_not_belong_together_are_refused(rng):
    good = SMALL.decompose(rng.standard_normal((2, 300)), MODWT.analysis(pywt.Wavelet("db4"), "symmetric", 2))
    first, *rest = good.coefficients
    for coefficients in [
        (first[:, 1:], *rest),
        (first, rest[1], rest[0]),
        (first, rest[0], rest[1].astype("f4")),
        (first, rest[0][:1], rest[1]),
        (first[0], *rest),
        (first,),
    ]:
        with pytest.raises(ValueError, match="do not belong together"):
            SMALL.reconstruct(_of(good, coefficients))
    with pytest.raises(TypeError, match="computes in float32 and float64, not complex128"):
        SMALL.reconstruct(_of(good, (c + 0j for c in good.coefficients)))


def test_memory_of_a_whole_denoise():
    from wavefilt.benchmarks.common.measuring import peak_beyond, signal

    case = study.Case(1, 1 << 23, level=5)
    peak = peak_beyond(study.numba_denoise, signal(case.traces, case.samples), case)
    assert peak <= 6.2  # the coefficients are level + 1 times the input


def test_memory_is_given_back_when_nothing_holds_it(rng):
    memory.trim()
    tracemalloc.start()
    SMALL.decompose(rng.standard_normal((1, 1 << 16)), MODWT.analysis(pywt.Wavelet("db4"), "symmetric", 4))
    memory.trim()
    left = tracemalloc.get_traced_memory()[0]
    tracemalloc.stop()
    assert left < 1 << 18


def test_auto_takes_the_reference_until_loading_pays(monkeypatch):
    monkeypatch.setattr(numba_crossover, "loaded", set())

    def chosen(dtype, samples, wavelet="db8", level=5, denoising=False):
        analysis = MODWT.analysis(pywt.Wavelet(wavelet), "symmetric", level)
        return backends.choose("auto", dtype, (1, samples), analysis, denoising).name

    assert chosen("float32", 1 << 16) == "pywavelets"
    assert chosen("float32", 1 << 24, denoising=True) == "numba"
    assert chosen("complex64", 1 << 24, denoising=True) == "pywavelets"
    wavefilt.modwt(np.ones(64, "f4"), "db2", backend="numba")
    assert chosen("float32", 32, "haar", 1) == "numba"
    assert chosen("float64", 1 << 16) == "pywavelets"


# ---- the study


def test_the_crossover_is_what_was_measured():
    measured = json.loads((ROOT / "benchmarks" / "results" / "stationary.json").read_text())["crossover"]
    assert measured["first"] == pytest.approx(1e9 * measured["load_seconds"] / measured["reference_ns_per_tap"])
    assert pytest.approx(measured["first"], rel=0.1) == numba_crossover.FIRST_MODWT


def test_the_study_in_small(monkeypatch):
    for case in (study.Case(1, 4096, 3), study.Case(2, 1024, 2)):
        result = study.measure(case, 1)
        assert result["error"] < 1e-5
        assert result["ratio"] == result["pywavelets"]["median"] / result["numba"]["median"]
    monkeypatch.setattr(study, "numba_denoise", lambda x, case, mode="periodic": x)
    with pytest.raises(Mismatch, match="4 Ki: differs from the reference"):
        study.measure(study.Case(1, 4096, 3), 1)
