"""`wavefilt.denoise`: values against a composition of PyWavelets, odd arrays, gaps, properties."""

from __future__ import annotations

import numpy as np
import pytest
import pywt
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import wavefilt
from tests.support.checkout import usable_backends
from tests.support.signals import noisy_chirp
from wavefilt.denoising.pipeline import run
from wavefilt.method import Method
from wavefilt.thresholding.minimax import minimax_threshold
from wavefilt.thresholding.rules import MAD_TO_SIGMA, spec
from wavefilt.vocabulary import ESTIMATORS, MODES, RULES, SHRINKS


def composed(x, wavelet, level, threshold_of, mode="symmetric"):
    """Denoising of one trace written out with PyWavelets alone: soft, thresholds from ``threshold_of(d, d1)``."""
    coefficients = pywt.wavedec(x, wavelet, mode, level)
    finest = coefficients[-1]
    coefficients[1:] = [pywt.threshold(d, threshold_of(d, finest), "soft") for d in coefficients[1:]]
    return pywt.waverec(coefficients, wavelet, mode)[: len(x)]


def mad(d):
    return np.median(np.abs(d)) / 0.6744897501960817


def bayes_threshold(d, finest):
    return mad(d) ** 2 / np.sqrt(np.mean(d**2) - mad(d) ** 2)


def sure_threshold(d, finest):
    squares = np.sort((d / mad(d)) ** 2)
    m, k = len(squares), np.arange(1, len(squares) + 1)
    return mad(d) * np.sqrt(squares[np.argmin(m - 2 * k + np.cumsum(squares) + (m - k) * squares)])


@pytest.mark.parametrize(
    ("options", "threshold_of"),
    [
        ({"rule": "universal", "sigma": "global"}, lambda d, d1: mad(d1) * np.sqrt(2 * np.log(1023))),
        ({"rule": "universal"}, lambda d, d1: mad(d) * np.sqrt(2 * np.log(1023))),
        ({"rule": "minimax", "sigma": 0.2}, lambda d, d1: 0.2 * minimax_threshold(1023)),
        ({"rule": "bayes"}, bayes_threshold),
        ({"rule": "sure"}, sure_threshold),
        ({"rule": 0.25}, lambda d, d1: 0.25),
    ],
)
def test_values_of_a_plain_composition(backend, rng, options, threshold_of):
    # a strong signal at every level, so that no level of BayesShrink is all noise
    x = 3 * noisy_chirp(rng, samples=1023)[0][0] + np.where(rng.random(1023) < 0.2, 5, 0.1) * rng.standard_normal(1023)
    got = wavefilt.denoise(x, "sym6", level=4, backend=backend, **options)
    assert_allclose(got, composed(x, "sym6", 4, threshold_of), atol=1e-10)


def test_one_threshold_a_level_is_ordered_as_wavedec(backend, rng):
    x = rng.standard_normal(512)
    coefficients = pywt.wavedec(x, "db4", level=3)
    coefficients[1:] = [pywt.threshold(d, t) for d, t in zip(coefficients[1:], [3.0, 0.5, 0.1], strict=True)]
    got = wavefilt.denoise(x, "db4", level=3, rule=[3.0, 0.5, 0.1], backend=backend)
    assert_allclose(got, pywt.waverec(coefficients, "db4"), atol=1e-12)


def functions(rule):
    """What a rule may be combined with."""
    return [None] if spec(rule).own_function else [*SHRINKS, *(ESTIMATORS if spec(rule).prior else ())]


WAYS = [(rule, function) for rule in RULES for function in functions(rule)]


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_function_and_mode_removes_noise(backend, rng, rule):
    clean, noisy = noisy_chirp(rng, traces=3)
    ways = [*((shrink, "symmetric") for shrink in functions(rule)), *((None, mode) for mode in MODES)]
    for shrink, mode in ways:
        sigma = "global" if rule == "js" else "level"  # the median of the approximation is that of the chirp
        y = wavefilt.denoise(noisy, "db4", rule=rule, shrink=shrink, mode=mode, sigma=sigma, backend=backend)
        gain = 20 * np.log10(np.linalg.norm(noisy - clean) / np.linalg.norm(y - clean))
        assert gain > 3, (shrink, mode)


@pytest.mark.parametrize("rule", RULES)
def test_record_scope_pools_the_details(backend, rng, rule):
    noisy = rng.standard_t(2, (4, 512))  # heavy tails, so that every threshold leaves something
    noisy[2] *= 100
    pooled = wavefilt.denoise(noisy, rule=rule, scope="record", level=2, backend=backend)
    assert not np.allclose(pooled[0], wavefilt.denoise(noisy, rule=rule, level=2, backend=backend)[0])
    assert_allclose(pooled, wavefilt.denoise(noisy[::-1], rule=rule, scope="record", level=2, backend=backend)[::-1])


@pytest.mark.parametrize(("rule", "shrink"), [(rule, f) for rule, f in WAYS if f != "hard"])
def test_complex_samples_are_shrunk_by_modulus(rng, rule, shrink):
    _, noisy = noisy_chirp(rng, traces=2)
    y = wavefilt.denoise(noisy * np.exp(0.7j), rule=rule, shrink=shrink)
    assert_allclose(y, wavefilt.denoise(noisy, rule=rule, shrink=shrink) * np.exp(0.7j), atol=1e-10)


class TestArrays:
    """Whatever array comes in, the same kind, shape and floating dtype goes out."""

    @pytest.mark.parametrize(
        ("dtype", "out"),
        [
            ("f2", "f2"),
            ("f4", "f4"),
            ("f8", "f8"),
            (">f4", ">f4"),
            ("<f8", "<f8"),
            ("c8", "c8"),
            ("c16", "c16"),
            ("i1", "f4"),
            ("u1", "f4"),
            ("i2", "f4"),
            (">i2", "f4"),
            ("i4", "f8"),
            ("u4", "f8"),
            ("i8", "f8"),
        ],
    )
    def test_dtypes(self, backend, rng, dtype, out):
        x = (100 * noisy_chirp(rng, traces=2, samples=300)[1].clip(0, 1)).astype(dtype)
        kept = x.copy()
        y = wavefilt.denoise(x, backend=backend)
        assert y.dtype == np.dtype(out)
        assert y.shape == x.shape
        assert np.array_equal(x, kept)
        wide = wavefilt.denoise(kept.astype("c16" if np.dtype(dtype).kind == "c" else "f8"))
        assert_allclose(y, wide, atol=0.2 if dtype == "f2" else 1e-3)

    def test_longdouble_goes_through_float64(self, rng):
        x = rng.standard_normal(200)
        y = wavefilt.denoise(x.astype(np.longdouble))
        assert y.dtype == np.longdouble
        assert np.array_equal(y, wavefilt.denoise(x))

    def test_layouts(self, backend, rng):
        x = noisy_chirp(rng, traces=6, samples=400)[1]
        expected = wavefilt.denoise(x, backend=backend)
        wide = np.zeros((12, 800))
        wide[::2, ::2] = x
        frozen = x.copy()
        frozen.flags.writeable = False
        for same in (np.asfortranarray(x), wide[::2, ::2], frozen, x[::-1][::-1], x.tolist()):
            assert np.array_equal(wavefilt.denoise(same, backend=backend), expected)
        assert np.array_equal(wavefilt.denoise(x.T, axis=0, backend=backend), expected.T)
        cube = x.reshape(2, 3, 400)
        assert np.array_equal(wavefilt.denoise(cube, backend=backend).reshape(6, 400), expected)
        assert np.array_equal(wavefilt.denoise(np.moveaxis(cube, -1, 1), axis=1).shape, (2, 400, 3))

    @pytest.mark.parametrize("shape", [(0, 100), (3, 0, 100), (1, 100), (2, 2, 2, 100)])
    def test_batches_of_any_shape(self, backend, shape):
        y = wavefilt.denoise(np.ones(shape, "f4"), backend=backend)
        assert y.shape == shape
        assert y.dtype == np.float32

    def test_one_trace_alone_equals_itself_in_a_batch(self, backend, rng):
        x = noisy_chirp(rng, traces=5, samples=700, dtype="f4")[1]
        assert np.array_equal(wavefilt.denoise(x, backend=backend)[3], wavefilt.denoise(x[3], backend=backend))


class TestEdges:
    def test_single_sample_and_short_traces_are_unchanged(self, backend):
        for n in (1, 2, 14):
            x = np.arange(1.0, n + 1)
            assert np.array_equal(wavefilt.denoise(x, "db8", backend=backend), x)

    def test_constant_trace_stays_constant(self, backend):
        assert_allclose(wavefilt.denoise(np.full(1000, 5.0), backend=backend), 5.0, rtol=1e-12)

    @pytest.mark.parametrize("value", [1, -3.7, 1e-30, 12345.678])
    @pytest.mark.parametrize("mode", ["symmetric", "zero", "antisymmetric", "periodization"])
    @pytest.mark.parametrize("options", [{}, {"transform": "modwt"}, {"spins": 3}, {"rule": "blockjs"}, {"rule": 0.5}])
    def test_dead_channels_with_an_offset_come_back_bit_for_bit(self, backend, rng, value, mode, options):
        for dtype in ("f4", "f8"):
            x = rng.standard_normal((4, 300)).astype(dtype)
            x[1], x[2, :100], x[2, 100], x[3, 99] = value, value, np.nan, x[3, 100]
            y, noise = wavefilt.denoise(x, "db4", mode=mode, backend=backend, return_noise=True, **options)
            assert np.array_equal(y[1], x[1])
            assert np.array_equal(y[2, :100], x[2, :100])  # a segment between gaps too
            assert not noise[1].any()
            assert not np.array_equal(y[0], x[0])
            assert not np.array_equal(y[2, 101:], x[2, 101:])

    def test_noise_and_thresholds_of_dead_traces_are_0(self, backend, rng):
        x = rng.standard_normal((3, 400)).astype("f4")
        x[1] = 2.2
        for scope in ("trace", "record"):
            (estimate,) = run(x, Method(scope=scope), backend, report=True).estimates
            assert not estimate.sigma[:, 1].any()
            assert not estimate.thresholds[:, 1].any()
            assert estimate.sigma[:, [0, 2]].all()

    def test_dead_traces_come_back_bit_for_bit(self, backend, rng):
        x = noisy_chirp(rng, traces=3, samples=600, dtype="f4")[1]
        x[1] = 0
        x[1, 300] = 7  # sigma 0, although one sample is not
        y = wavefilt.denoise(x, backend=backend, rule="universal", sigma="global")
        assert np.array_equal(y[1], x[1])
        assert not np.array_equal(y[0], x[0])

    def test_level_zero_and_threshold_zero_are_the_identity(self, backend, rng):
        x = rng.standard_normal((2, 100))
        assert np.array_equal(wavefilt.denoise(x, level=0, backend=backend), x)
        assert np.array_equal(wavefilt.denoise(x, rule=0, backend=backend), x)

    def test_default_level_is_five_or_the_maximum(self, rng):
        long, short = rng.standard_normal(10_000), rng.standard_normal(70)
        assert np.array_equal(wavefilt.denoise(long), wavefilt.denoise(long, level=5))
        assert np.array_equal(wavefilt.denoise(short), wavefilt.denoise(short, level=2))

    def test_a_level_of_pure_noise_is_removed_by_bayes(self, rng):
        # mean square below the squared sigma: the published formula divides by zero or worse
        x = rng.uniform(-1, 1, 4096)
        y = wavefilt.denoise(x, rule="bayes", sigma=10.0)
        assert np.linalg.norm(y) < 0.3 * np.linalg.norm(x)

    @pytest.mark.parametrize(
        ("x", "options", "error", "words"),
        [
            (np.ones(100), {"level": 9}, ValueError, "level=9 is above the maximum of 2 for 100 samples and db8"),
            (np.ones(100), {"level": -1}, ValueError, "at least 0"),
            (np.ones(100), {"level": 1.5}, ValueError, "whole number"),
            (np.ones(100), {"rule": "sur"}, ValueError, "did you mean 'sure'"),
            (np.ones(100), {"rule": -1.0}, ValueError, "at least 0"),
            (np.ones(100), {"rule": [1.0, 2.0, 3.0]}, ValueError, "3 thresholds for 2 levels"),
            (np.ones(100), {"rule": []}, ValueError, "thresholds"),
            (np.ones(100), {"rule": float("nan")}, ValueError, "finite"),
            (np.ones(100), {"sigma": "mad"}, ValueError, "sigma='mad'"),
            (np.ones(100), {"sigma": [1.0, 2.0]}, ValueError, "sigma="),
            (np.ones(100), {"shrink": True}, ValueError, "shrink=True"),
            (np.ones(100), {"rule": 1j}, ValueError, "rule=1j"),
            (np.ones(100), {"level": np.inf}, ValueError, "whole number"),
            (np.ones(100), {"level": True}, ValueError, "whole number"),
            (np.ones(100), {"axis": None}, TypeError, "integer"),
            (np.ones(100), {"sigma": -1.0}, ValueError, "at least 0"),
            (np.ones(100), {"shrink": "sft"}, ValueError, "did you mean 'soft'"),
            (np.ones(100), {"mode": "mirror"}, ValueError, "mode='mirror'"),
            (np.ones(100), {"scope": "file"}, ValueError, "scope='file'"),
            (np.ones(100), {"axis": 1}, ValueError, "axis=1 is out of range"),
            (np.ones(100), {"backend": "cuda"}, wavefilt.BackendUnavailable, "cuda"),
            (np.ones((3, 0)), {}, ValueError, "no samples"),
            (np.float64(3), {}, ValueError, "single number"),
            (np.array([1.0, np.inf, 2.0]), {}, ValueError, "trace 0, sample 1"),
            (np.array([[1.0, 2.0], [3.0, -np.inf]]), {}, ValueError, "trace 1, sample 1"),
            (np.array(["a"]), {}, TypeError, "dtype"),
            (np.array([True, False]), {}, TypeError, "dtype bool"),
            (np.array([object()]), {}, TypeError, "dtype object"),
            (np.array(["2020-01-01"], "M8[D]"), {}, TypeError, "dtype"),
        ],
    )
    def test_errors_say_what_is_wrong(self, x, options, error, words):
        with pytest.raises(error, match=words):
            wavefilt.denoise(x, **options)

    @pytest.mark.parametrize(("dtype", "factor"), [("f4", 1e30), ("f4", 1e-30), ("f8", 1e150), ("f8", 1e-150)])
    def test_samples_of_any_size(self, backend, rng, dtype, factor):
        _, x = noisy_chirp(rng, samples=512)
        y = wavefilt.denoise((factor * x).astype(dtype), backend=backend)
        assert_allclose(y.astype("f8") / factor, wavefilt.denoise(x), atol=1e-5)

    @pytest.mark.parametrize(("dtype", "size"), [("f4", 3e38), ("f8", 1.7e308)])
    def test_a_transform_that_would_overflow_is_an_error(self, backend, dtype, size):
        x = size * np.array([1, -1] * 200, dtype)
        with pytest.raises(ValueError, match=r"overflow float\d+ in the transform"):
            wavefilt.denoise(x, rule=5.0, backend=backend)
        x[7] = np.nan
        with pytest.raises(ValueError, match=r"overflow float\d+ in the transform"):
            wavefilt.denoise(x, rule=5.0, backend=backend)

    def test_sure_leaves_a_level_far_above_the_noise_alone(self, backend, rng):
        # every |d| is far above sigma: the least risk is at the threshold 0, not at the smallest |d|
        x = 100 * rng.standard_normal(2048)
        y = wavefilt.denoise(x, rule="sure", sigma=1e-3, backend=backend)
        assert np.array_equal(y, x)

    def test_complex_infinity_is_no_gap(self):
        with pytest.raises(ValueError, match="trace 0, sample 3"):
            wavefilt.denoise(np.array([1, 1, 1, complex(np.nan, np.inf), 1] * 20))

    def test_squares_that_overflow_are_an_error(self, backend, rng):
        with pytest.raises(ValueError, match="scale them down"):
            wavefilt.denoise(1e200 * rng.standard_normal(500), backend=backend)

    def test_gpu_arrays_are_refused_clearly(self):
        class OnDevice:
            __cuda_array_interface__ = None

        if "cuda" in usable_backends():
            with pytest.raises(TypeError, match="lives on a GPU"):
                wavefilt.denoise(OnDevice(), backend="pywavelets")
        else:
            with pytest.raises(wavefilt.BackendUnavailable, match="backend 'cuda'"):
                wavefilt.denoise(OnDevice())


class TestGaps:
    def test_pieces_are_denoised_as_traces_of_their_own(self, backend, rng):
        x = noisy_chirp(rng, samples=1000)[1][0]
        x[400:450] = np.nan
        y = wavefilt.denoise(x, backend=backend)
        assert np.array_equal(np.isnan(y), np.isnan(x))
        rounding = 1e-14 if backend == "cuda" else 0  # there thresholds of whole batches are computed on the device
        for piece in (slice(400), slice(450, None)):
            np.testing.assert_allclose(y[piece], wavefilt.denoise(x[piece], backend=backend), rtol=0, atol=rounding)

    def test_masked_samples_are_gaps_and_keep_their_data(self, backend, rng):
        data = noisy_chirp(rng, traces=2, samples=500)[1]
        x = np.ma.masked_array(data, mask=np.zeros_like(data, bool))
        x[1, 100:130] = np.ma.masked
        y = wavefilt.denoise(x, backend=backend)
        assert isinstance(y, np.ma.MaskedArray)
        assert np.array_equal(y.mask, x.mask)
        assert np.array_equal(y.data[1, 100:130], data[1, 100:130])
        rounding = 1e-14 if backend == "cuda" else 0  # there thresholds of whole batches are computed on the device
        for piece, there in ((data[0], y.data[0]), (data[1, 130:], y.data[1, 130:])):
            np.testing.assert_allclose(there, wavefilt.denoise(piece, backend=backend), rtol=0, atol=rounding)

    def test_a_list_of_masked_arrays(self, rng):
        x = np.ma.masked_array(rng.standard_normal((2, 300)), mask=np.zeros((2, 300), bool))
        x[1, 100:130] = np.ma.masked
        x.data[1, 100:130] = 1e6
        y, expected = wavefilt.denoise([x[0], x[1]]), wavefilt.denoise(x)
        assert np.array_equal(y.mask, x.mask)
        assert np.array_equal(y.filled(0), expected.filled(0))

    def test_masked_integers(self):
        x = np.ma.masked_array(np.arange(100) % 7, mask=np.arange(100) == 50)
        y = wavefilt.denoise(x, "haar")
        assert y.dtype == np.float64
        assert y.mask.sum() == 1

    def test_nothing_but_gaps(self, backend):
        assert np.isnan(wavefilt.denoise(np.full((2, 50), np.nan), backend=backend)).all()

    def test_all_gap_and_short_pieces(self, backend):
        x = np.array([[np.nan] * 40, [1.0, np.nan, 2.0, 3.0] * 10])
        assert np.array_equal(wavefilt.denoise(x, backend=backend), x, equal_nan=True)

    def test_level_asked_for_is_capped_in_short_pieces(self, backend, rng):
        x = rng.standard_normal(1000)
        x[100] = np.nan
        y = wavefilt.denoise(x, level=6, backend=backend)
        assert np.array_equal(y[:100], wavefilt.denoise(x[:100], level=2, backend=backend))

    @given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 299), st.integers(1, 40)), max_size=6))
    def test_gaps_are_idempotent(self, gaps):
        x = np.random.default_rng(1).standard_normal((4, 300))
        for row, start, width in gaps:
            x[row, start : start + width] = np.nan
        once = wavefilt.denoise(x, "db2")
        assert np.array_equal(np.isnan(once), np.isnan(x))
        assert np.array_equal(np.isnan(wavefilt.denoise(once, "db2")), np.isnan(x))

    @pytest.mark.parametrize("rule", RULES)
    def test_record_scope_pools_pieces(self, backend, rng, rule):
        x = rng.standard_normal((3, 400))
        x[1, 150] = np.nan
        y = wavefilt.denoise(x, rule=rule, scope="record", backend=backend)
        assert np.isnan(y).sum() == 1
        assert np.linalg.norm(np.nan_to_num(y)) < np.linalg.norm(np.nan_to_num(x))


@given(
    st.sampled_from(WAYS),
    st.sampled_from(["level", "global"]),
    st.integers(-20, 20),
    st.integers(20, 400),
    st.integers(0, 2**32 - 1),
)
def test_scaling_the_input_scales_the_output(way, sigma, exponent, n, seed):
    rule, shrink = way
    x = np.random.default_rng(seed).standard_normal(n)
    y = wavefilt.denoise(x, "db3", rule=rule, sigma=sigma, shrink=shrink)
    scaled = wavefilt.denoise(2.0**exponent * x, "db3", rule=rule, sigma=sigma, shrink=shrink)
    assert_allclose(scaled, 2.0**exponent * y, rtol=1e-9, atol=1e-9 * 2.0**exponent)


@given(st.integers(1, 3), st.integers(1, 200), st.sampled_from(["f4", "f8", "c8", "i2"]), st.integers(0, 9))
def test_shape_and_dtype_survive(traces, n, dtype, seed):
    x = (10 * np.random.default_rng(seed).standard_normal((traces, n))).astype(dtype)
    y = wavefilt.denoise(x, "db2")
    assert y.shape == x.shape
    assert y.dtype == (np.float32 if dtype == "i2" else x.dtype)
    assert np.isfinite(y).all()


def test_denoising_never_adds_energy_in_the_details(rng):
    x = rng.standard_normal(4096)
    for rule in RULES:
        before, after = (
            wavefilt.wavedec(v, "db8", "periodization", 5)
            for v in (x, wavefilt.denoise(x, mode="periodization", rule=rule))
        )
        for d, e in zip(before[1:], after[1:], strict=True):
            assert np.linalg.norm(e) <= np.linalg.norm(d) * (1 + 1e-9)


@pytest.mark.parametrize(
    ("n", "value"),
    [
        (64, 1.474),
        (128, 1.669),
        (256, 1.859),
        (512, 2.045),
        (1024, 2.226),
        (2048, 2.404),
        (4096, 2.576),
        (8192, 2.744),
        (16384, 2.906),
        (65536, 3.222),
        (2**20, 3.808),
    ],
)
def test_minimax_thresholds_of_the_literature(n, value):
    assert minimax_threshold(n) == pytest.approx(value, abs=2e-3)


def test_universal_threshold_of_a_thousand_samples():
    assert np.sqrt(2 * np.log(1000)) == pytest.approx(3.7169, abs=5e-5)
    from wavefilt.thresholding.rules import universal

    assert universal(None, np.ones((1, 1)), 1000)[0, 0] == pytest.approx(3.7169, abs=5e-5)


def test_mad_constant():
    assert pytest.approx(1 / 0.6744897502, rel=1e-9) == MAD_TO_SIGMA


def test_options_given_again_are_checked_again():
    """A checked method is found again by its options, but not by others that equal them."""
    x = np.random.default_rng(4).standard_normal(300)
    for good, bad in (({"level": 1}, {"level": True}), ({"spins": 1}, {"spins": True}), ({"keep": 0}, {"keep": False})):
        expected = wavefilt.denoise(x, **good)
        with pytest.raises(ValueError, match=next(iter(bad))):
            wavefilt.denoise(x, **bad)
        assert np.array_equal(wavefilt.denoise(x, **good), expected)


def test_a_name_that_comes_to_mean_something_else():
    from wavefilt.wavelets.boundary import EXTENSIONS

    x, found = np.random.default_rng(4).standard_normal(300), []
    for mode in ("zero", "smooth"):
        EXTENSIONS.register("test-again", EXTENSIONS[mode])
        try:
            found.append(wavefilt.denoise(x, mode="test-again"))
        finally:
            EXTENSIONS.unregister("test-again")
        assert_allclose(found[-1], wavefilt.denoise(x, mode=mode), atol=1e-12)
        with pytest.raises(ValueError, match="test-again"):
            wavefilt.denoise(x, mode="test-again")
    assert not np.allclose(*found)


@pytest.mark.parametrize("backend", usable_backends())
def test_host_memory_is_always_waited_for(backend):
    x = np.random.default_rng(4).standard_normal(300)
    assert np.array_equal(wavefilt.denoise(x, backend=backend, wait=False), wavefilt.denoise(x, backend=backend))
