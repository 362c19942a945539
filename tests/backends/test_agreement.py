"""The compiled CPU backend against PyWavelets: coefficients, samples, noise, and denoised samples by every option."""

from __future__ import annotations

import numpy as np
import pytest
import pywt
from numpy.testing import assert_allclose, assert_array_equal

import wavefilt
from tests.support.agreement import assert_coefficients_agree, assert_samples_agree
from tests.support.simulation import SIMULATED
from wavefilt.vocabulary import MODES, SHRINKS
from wavefilt.wavelets.dual_tree import BIORTS, QSHIFTS

if not SIMULATED:
    pytest.importorskip("numba")
    from wavefilt.backends.numba_cpu import NumbaCPU

    SMALL = NumbaCPU(tile=64)  # samples; the kernels take at least 16 filter lengths

TOLERANCE = {"f4": 1e-5, "f8": 1e-12}


def assert_transforms_agree(x, wavelet, mode, level):
    coefficients = wavefilt.wavedec(x, wavelet, mode, level, backend=SMALL)
    reference = assert_coefficients_agree(coefficients, x, wavelet, mode, level)
    assert_samples_agree(wavefilt.waverec(reference, wavelet, mode, backend=SMALL), reference, wavelet, mode)


@pytest.mark.filterwarnings("ignore:Level value")
@pytest.mark.parametrize("wavelet", pywt.wavelist(kind="discrete"))
def test_every_wavelet_and_mode(rng, wavelet):
    tiles = 48 * pywt.Wavelet(wavelet).dec_len + 301
    for mode in MODES:
        for n, level, dtype in [(1, 1, "f4"), (5, 2, "f8"), (211, 4, "f8"), (tiles, 4, "f4")]:
            if n > 1 or "reflect" not in mode:
                assert_transforms_agree(rng.standard_normal((2, n)).astype(dtype), wavelet, mode, level)


@pytest.mark.filterwarnings("ignore:Level value")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("n", [2, 3, 7, 8, 64, 1001, 2500])
def test_every_length_and_level(rng, mode, n):
    for wavelet in ("db1", "db2", "bior1.3", "db7"):
        for level in (0, 1, 2, 6):
            if "reflect" not in mode or 2**level < n:
                assert_transforms_agree(rng.standard_normal((3, n)), wavelet, mode, level)


@pytest.mark.parametrize("mode", ["symmetric", "periodization"])
def test_a_bank_of_any_filters(rng, mode):
    bank = pywt.Wavelet("mine", filter_bank=rng.standard_normal((4, 14)).tolist())
    assert_transforms_agree(rng.standard_normal((2, 3000)), bank, mode, 3)


@pytest.mark.parametrize("mode", ["reflect", "antireflect"])
def test_a_single_sample_cannot_be_reflected(mode):
    with pytest.raises(ValueError, match="sample"):
        wavefilt.wavedec(np.ones((1, 2)), "db1", mode, 2, backend=SMALL)


def test_a_gap_spreads_no_further_than_in_the_reference(rng):
    x = rng.standard_normal((1, 4000))
    x[0, [0, 700, 3999]] = np.nan, np.inf, np.nan
    for mode in ("symmetric", "periodization"):
        ours, theirs = (wavefilt.wavedec(x, "bior2.2", mode, 3, backend=b) for b in (SMALL, "pywavelets"))
        for own, other in zip(ours, theirs, strict=True):
            assert_array_equal(np.isfinite(own), np.isfinite(other))
        found, expected = (wavefilt.waverec(theirs, "bior2.2", mode, backend=b) for b in (SMALL, "pywavelets"))
        assert_array_equal(np.isfinite(found), np.isfinite(expected))


def test_layouts_and_empty_batches(rng):
    x = rng.standard_normal((100, 6))
    x.flags.writeable = False
    expected = wavefilt.wavedec(np.array(x[::2].T), "db4", "zero", 2, backend="numba")
    for own, other in zip(wavefilt.wavedec(x[::2], "db4", "zero", 2, axis=0, backend="numba"), expected, strict=True):
        assert_array_equal(own.T, other)
    empty = wavefilt.wavedec(np.empty((0, 100), "f4"), "db4", "zero", 2, backend="numba")
    assert [c.shape for c in empty] == [(0, 30), (0, 30), (0, 53)]
    assert wavefilt.waverec(empty, "db4", "zero", backend="numba").shape == (0, 100)


def test_coefficients_that_do_not_belong_together_are_refused(rng):
    first, second, third = wavefilt.wavedec(rng.standard_normal((2, 300)), "db4", "symmetric", 2, backend="numba")
    for wrong in ((first[:, 2:], second, third), (first, second[:, 2:], third), (first, second[:1], third)):
        with pytest.raises(ValueError):  # noqa: PT011
            wavefilt.waverec(wrong, "db4", backend="numba")


OPTIONS = [
    *({"rule": rule} for rule in ("universal", "minimax", "sure", "hybrid", "bayes", "fdr", "blockjs", "neighblock")),
    *({"rule": rule} for rule in ("js", "ebayes", "ebayes-cauchy", 0.5, [0.3, 0.0, 0.8])),
    *({"rule": "universal", "shrink": shrink, "sigma": "global"} for shrink in SHRINKS),
    {"rule": "ebayes", "shrink": "mean", "scope": "record", "keep": 1},
    {"rule": "bayes", "scope": "record", "sigma": 0.9},
    {"rule": "sure", "scope": "record", "mode": "periodization"},
    {"rule": "universal", "sigma": ("window", 10, 300)},
    {"rule": "bayes", "sigma": ("running", 400), "mode": "reflect"},
    {"rule": "universal", "sigma": ("intervals", [500])},
    {"rule": "bayes", "detrend": "line", "blend": 0.2, "mode": "zero"},
    {"rule": "js", "detrend": "line", "sigma": "global", "mode": "smooth"},
    {"rule": "js", "scope": "record", "keep": 1, "mode": "antisymmetric"},
    {"rule": "universal", "spins": 3},
    {"rule": "universal", "mode": "constant", "wavelet": "haar"},
    {"rule": "bayes", "mode": "antireflect", "wavelet": "bior2.4"},
    {"rule": "bayes", "mode": "periodic", "wavelet": "coif5"},
    *({"rule": rule, "transform": "modwt"} for rule in ("universal", "bayes", "js", "ebayes", "fdr", 0.5)),
    {"rule": "universal", "transform": "modwt", "mode": "periodization", "sigma": "global", "shrink": "firm"},
    *({"rule": rule, "transform": "wp", "level": 3} for rule in ("universal", "bayes")),
    *({"rule": rule, "transform": "dtcwt"} for rule in ("js", "bayes", "universal", "bivariate", 0.5)),
    *({"rule": rule, "axes": (0, 1), "level": 2} for rule in ("universal", "bayes", "sure", "js")),
    *({"rule": rule, "axes": (0, 1), "level": 2, "shrink": "firm"} for rule in ("universal", 0.5)),
    *({"rule": rule, "axes": (0, 1), "transform": "dtcwt", "level": 2} for rule in ("js", "bayes", "bivariate", 0.5)),
]
STEEP = ("fdr", "sure", "hybrid", "ebayes", "ebayes-cauchy", "blockjs", "neighblock")
"""Rules for which a coefficient that differs by rounding can change the result by more."""


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: " ".join(map(str, options.values())))
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("n", [1001, 4096])
def test_denoise(rng, options, dtype, n):
    if options["rule"] in STEEP or options.get("shrink") == "hard":
        dtype = "f8"
    options = {"level": 3, **options}
    if options.get("transform") != "dtcwt":
        options.setdefault("wavelet", "db4")
    shape = (48, n // 16) if "axes" in options else (3, n)
    x = rng.standard_normal(shape) + 4 * np.sin(np.arange(shape[1]) / 20) + 2
    x[0] *= 5
    x = x.astype(dtype)
    kept = x.copy()
    found, expected = (wavefilt.denoise(x, backend=name, **options) for name in ("numba", "pywavelets"))
    assert_array_equal(x, kept)
    assert found.dtype == x.dtype
    assert np.abs(found - expected).max() <= TOLERANCE[dtype] * np.abs(x).max()
    assert np.abs(expected - x).max() > 1e-3


@pytest.mark.parametrize("shrink", SHRINKS)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("mode", ["symmetric", "periodization"])
@pytest.mark.parametrize("transform", ["dwt", "modwt"])
def test_coefficients_at_the_threshold(rng, shrink, dtype, mode, transform):
    """Details exactly at the threshold, at twice it, and 0."""
    details = np.round(rng.standard_normal((3, 4096)) * 2) / 2
    x = wavefilt.waverec([np.zeros((3, 4096)), details], "db1", mode, backend="pywavelets").astype(dtype)
    exact = wavefilt.wavedec(x, "db1", mode, 1, backend="numba")[1]
    for value in (0.0, float(np.abs(exact).max()), float(np.abs(exact[0]).mean()), 1e30):
        options = {"level": 1, "mode": mode, "rule": value, "shrink": shrink, "transform": transform}
        found, expected = (wavefilt.denoise(x, "db1", backend=b, **options) for b in ("numba", "pywavelets"))
        if shrink != "hard":
            assert_allclose(found, expected, rtol=0, atol=20 * np.finfo(dtype).eps * np.abs(x).max())
        if value == 0:
            assert_array_equal(found, x)


@pytest.mark.parametrize("biort", BIORTS)
@pytest.mark.parametrize("qshift", QSHIFTS)
def test_every_filter_of_the_dual_tree(biort, qshift, rng):
    for shape, options in (((2, 301), {}), ((41, 72), {"axes": (0, 1)}), ((1, 9), {"level": 1})):
        x = rng.standard_normal(shape)
        options = {"transform": "dtcwt", "level": 3, "rule": 0.3, **options}
        found, expected = (
            wavefilt.denoise(x, f"{biort},{qshift}", backend=name, **options) for name in ("numba", "pywavelets")
        )
        assert_allclose(found, expected, rtol=0, atol=1e-12)


@pytest.mark.parametrize(
    ("shape", "level"), [((2, 17003), 6), ((3, 40960), 2), ((37, 129), 4), ((300, 517), 5), ((16, 700), 1)]
)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_shapes_of_the_dual_tree(shape, level, dtype, rng):
    x = rng.standard_normal(shape).astype(dtype)
    options = {"transform": "dtcwt", "level": level, "axes": (0, 1) if shape[0] > 3 else None}
    for rule in (0.5, "js"):
        found, expected = (wavefilt.denoise(x, rule=rule, backend=b, **options) for b in ("numba", "pywavelets"))
        assert np.abs(found - expected).max() < TOLERANCE[dtype] * np.abs(x).max()
    x[-1, -1] = np.inf
    with pytest.raises(ValueError, match="inf"):
        wavefilt.denoise(x, backend="numba", **options)


KINDS = {
    "normal": lambda x: x,
    "heavy tails": lambda x: x**9,
    "small integers": np.round,
    "mostly zero": lambda x: x * (np.sin(7 * np.arange(x.shape[-1])) > 0.99),
    "half zero": lambda x: x * (np.arange(x.shape[-1]) % 2),
    "equal": lambda x: 3 * np.sign(x),
    "strided": lambda x: x * np.where(np.arange(x.shape[-1]) % 64, 1e-9, 1),  # long runs of zeros would be left out
    "tiny": lambda x: x * 1e-40,
    "large": lambda x: x * 1e30,
    "rising and falling": lambda x: np.abs(np.arange(x.shape[-1]) - x.shape[-1] / 2 + 0.25) + 0 * x,
    "sorted": lambda x: np.sort(x, axis=-1),
    "steps": lambda x: x * np.where(np.arange(x.shape[-1]) < x.shape[-1] // 3, 1e6, 1),
}


@pytest.mark.filterwarnings("ignore:.*:RuntimeWarning")
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(
    ("rows", "n"), [(12, 1), (12, 2), (12, 15), (12, 64), (12, 65), (12, 263), (5, 5000), (2, 70_001), (1, 700_001)]
)
def test_noise_is_that_of_the_exact_median(rng, kind, dtype, rows, n):
    """Details of any kind, by traces and of all together: the median of the very coefficients of the backend."""
    details = KINDS[kind](rng.standard_normal((rows, n)))
    if rows == 12:
        details *= 10.0 ** rng.integers(-3, 4, (12, 1))  # rows unlike those before
    x = np.zeros((rows, 2 * n), dtype)
    x[:, ::2] = np.sqrt(2) * details
    found = np.abs(wavefilt.wavedec(x, "haar", "periodization", 1, backend="numba")[1]).astype("f8")
    options = {"mode": "periodization", "level": 1, "backend": "numba"}
    mad = float(wavefilt.estimate_sigma(np.tile([1.0, 0.0], 64), "haar", **options)) * np.sqrt(2)
    for scope, medians in (("trace", np.median(found, axis=1)), ("record", np.median(found[found.any(axis=1)]))):
        if scope == "record" and not found.any():
            continue
        sigma = wavefilt.estimate_sigma(x, "haar", scope=scope, **options)
        alive = np.ptp(x, axis=1) > 0
        assert_allclose(sigma[alive], (mad * medians + np.zeros(rows))[alive], rtol=1e-13, atol=1e-322)
        assert not sigma[~alive].any()


@pytest.mark.parametrize("scope", ["trace", "record"])
def test_the_threshold_of_least_risk(rng, scope):
    x = rng.standard_normal((2, 300_000)).astype("f4")
    x[:, 1000:1500] += 20 * np.sin(np.arange(500))
    options = {"level": 3, "rule": "sure", "scope": scope, "sigma": 1.1}
    found, expected = (wavefilt.denoise(x, "db3", backend=name, **options) for name in ("numba", "pywavelets"))
    assert_allclose(found, expected, rtol=0, atol=1e-4)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(
    ("shape", "options"),
    [
        ((2, 9), {"wavelet": "haar"}),
        ((2, 4096), {"wavelet": "db2", "mode": "smooth"}),
        ((3, 100_001), {"wavelet": "db8", "mode": "antireflect"}),
        ((2, 1501), {"wavelet": "db8", "mode": "periodization", "transform": "modwt"}),
        ((40, 50), {"wavelet": "haar", "axes": (0, 1)}),
    ],
    ids=str,
)
def test_every_sample_that_is_not_finite_is_found(rng, dtype, value, shape, options):
    """NaN are gaps, which come back; infinite samples are refused. Extrapolated samples do not count."""
    x = rng.uniform(-1, 1, shape).astype(dtype)
    assert np.isfinite(wavefilt.denoise(x, level=1, backend="numba", **options)).all()
    for place in (0, x.size - 1, x.size // 2, int(rng.integers(x.size))):
        spoilt = x.copy()
        spoilt.flat[place] = value
        if np.isnan(value):
            y = wavefilt.denoise(spoilt, level=1, backend="numba", **options)
            assert np.flatnonzero(np.isnan(y)).tolist() == [place]
        else:
            with pytest.raises(ValueError, match="inf"):
                wavefilt.denoise(spoilt, level=1, backend="numba", **options)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("wavelet", ["haar", "bior1.3"])
def test_noise_of_zero_up_to_rounding(rng, wavelet, dtype):
    """More than half of a band's details are 0 in one backend, and rounding errors in another."""
    counts, held = np.round(0.4 * rng.standard_normal(1000)), np.repeat(rng.standard_normal(500), 2)
    cases = [(x, {"rule": rule}) for x in (counts, held) for rule in ("js", "bivariate")]
    for shape in ((65, 65), (87, 285), (33, 40)):
        cases += [(rng.standard_normal(shape), {"rule": rule, "axes": (0, 1)}) for rule in ("js", "bivariate")]
    for x, options in cases:
        x = x.astype(dtype)
        ours, theirs = (wavefilt.denoise(x, wavelet, backend=name, **options) for name in ("numba", "pywavelets"))
        assert np.abs(ours - theirs).max() <= TOLERANCE[dtype] * np.abs(x).max()


@pytest.mark.parametrize("scale", [1e-36, 1e-38, 1e-40, 1e-42])
@pytest.mark.parametrize(("rule", "transform"), [
    *((rule, transform) for rule in ("bayes", "universal", "js", 1.0) for transform in ("dwt", "modwt", "dtcwt")),
    ("ebayes", "dwt"), ("sure", "modwt"), ("neighblock", "dwt"), ("bivariate", "dtcwt"),
])  # fmt: skip
def test_subnormal_samples(rng, rule, transform, scale):
    """No backend flushes them to 0: results differ by rounding, which is 1.4e-45 at least."""
    x = (scale * rng.standard_normal((3, 2000))).astype("f4")
    options = {"rule": scale if rule == 1 else rule, "transform": transform}
    ours, theirs = (wavefilt.denoise(x, backend=name, **options) for name in ("numba", "pywavelets"))
    assert_allclose(ours.astype("f8"), theirs.astype("f8"), rtol=0, atol=1e-5 * scale + 4e-44)
