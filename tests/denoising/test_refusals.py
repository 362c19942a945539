"""Options and samples that make no sense: each raises an exception whose message names the option or the place."""

from __future__ import annotations

import numpy as np
import pytest
import pywt
from numpy.testing import assert_array_equal

import wavefilt
from tests.support.checkout import usable_backends
from wavefilt.errors import OptionError
from wavefilt.thresholding.rules import RULES, Rule
from wavefilt.vocabulary import TRANSFORMS

ONE = np.sin(np.arange(100.0) ** 2)
TWO = np.sin(np.arange(4000.0) ** 2).reshape(40, 100)

OPTIONS = [
    # values that are not in the vocabulary, or of another type
    ({"wavelet": "db99"}, "wavelet"),
    ({"level": 9}, "level=9"),
    ({"level": -1}, "level"),
    ({"level": True}, "level"),
    ({"rule": "sur"}, "'sure'"),
    ({"rule": -1.0}, "rule"),
    ({"rule": float("nan")}, "finite"),
    ({"rule": []}, "thresholds"),
    ({"rule": "visushrink"}, "mean 'universal'"),
    ({"transform": "swt"}, "mean 'modwt'"),
    ({"sigma": "MAD"}, "mean 'level'"),
    ({"rule": [1.0, 2.0, 3.0]}, "3 thresholds"),
    ({"shrink": True}, "shrink"),
    ({"shrink": "sft"}, "'soft'"),
    ({"mode": "mirror"}, "mode"),
    ({"scope": "file"}, "scope"),
    ({"transform": "swt"}, "transform"),
    ({"transform": "modwd"}, "'modwt'"),
    ({"detrend": "parabola"}, "detrend"),
    ({"blend": 1.0}, "blend"),
    ({"keep": -1}, "keep"),
    ({"spins": 0}, "spins"),
    ({"axis": 1}, "axis=1"),
    ({"backend": "gpu"}, "backend"),
    # noise
    ({"sigma": "mad"}, "sigma"),
    ({"sigma": -1.0}, "sigma"),
    ({"sigma": [1.0, 2.0]}, "sigma"),
    ({"sigma": ("window", 10)}, "window"),
    ({"sigma": ("window", 1.5, 9)}, "window"),
    ({"sigma": ("window", 10, 12)}, "4 samples"),
    ({"sigma": ("window", -50, -10)}, "before the first"),
    ({"sigma": ("window", 10, 5000)}, "100 samples"),
    ({"sigma": ("window", 10, 20)}, "db8"),
    ({"sigma": ("running", 3)}, "4 samples or more"),
    ({"sigma": ("running", "300")}, "running"),
    ({"sigma": ("runing", 300)}, "running"),
    ({"sigma": ["running", 300]}, "sigma"),
    ({"sigma": ("intervals",)}, "change points"),
    ({"sigma": ("intervals", [30, 20])}, "order"),
    ({"sigma": ("intervals", [0, 20])}, "order"),
    ({"sigma": ("intervals", "fnd")}, "order"),
    ({"sigma": ("before", 100, 200)}, "-100"),
    ({"sigma": ("before", 100)}, "pick"),
    # combinations
    ({"sigma": ("running", 30), "rule": 0.5}, "rule"),
    ({"sigma": ("intervals", [9]), "rule": [0.5, 1.0], "level": 2}, "rule"),
    ({"rule": "blockjs", "shrink": "soft"}, "shrink"),
    ({"rule": "js", "shrink": "soft"}, "shrink"),
    ({"rule": "bivariate", "shrink": "soft"}, "shrink"),
    ({"rule": "sure", "shrink": "mean"}, "empirical Bayes"),
    ({"rule": 1.0, "shrink": "median"}, "empirical Bayes"),
    ({"spins": 4, "transform": "modwt"}, "spins"),
    ({"rule": "blockjs", "transform": "modwt"}, "blockjs"),
    ({"level": 7, "transform": "modwt"}, "maximum of 6"),
    ({"transform": "dtcwt", "wavelet": "db8"}, "two filters"),
    ({"transform": "dtcwt", "wavelet": "near_sym_b,qshift_e"}, "qshift"),
    ({"transform": "dtcwt", "mode": "periodic"}, "mode"),
    ({"transform": "dtcwt", "spins": 4}, "spins"),
    ({"transform": "dtcwt", "rule": "blockjs"}, "blockjs"),
    ({"transform": "dtcwt", "rule": "minimax"}, "minimax"),
    ({"transform": "dtcwt", "rule": "ebayes"}, "ebayes"),
    ({"transform": "wp", "rule": "js"}, "rule"),
    ({"transform": "wp", "basis": "best"}, "full"),
    ({"basis": "full"}, "basis"),
    ({"transform": "wp", "sigma": ("window", 0, 50)}, "sigma"),
    ({"transform": "wp", "sigma": ("running", 50)}, "sigma"),
    ({"transform": "wp", "rule": (1.0, 2.0), "level": 1}, "2 thresholds"),
    ({"transform": "fk"}, "axes"),
]


@pytest.mark.parametrize(("options", "word"), OPTIONS, ids=str)
def test_options_for_traces(options, word):
    wavefilt.denoise(ONE, level=1)  # equal to level=True, which is checked all the same
    with pytest.raises(ValueError, match=word):
        wavefilt.denoise(ONE, **options)


@pytest.mark.parametrize(("value", "word"), [(np.nan, "finite thresholds"), (-1.0, "at least 0")])
@pytest.mark.parametrize("registered", [False, True])
def test_a_rule_whose_thresholds_are_invalid(value, word, registered, monkeypatch):
    for rule in (
        Rule("x", lambda statistics, sigma, samples: value * sigma),
        Rule("x", factor=lambda samples, options: value),
    ):
        if registered:
            monkeypatch.setitem(RULES, "x", rule)
        with pytest.raises(OptionError, match=word):
            wavefilt.denoise(ONE, rule="x" if registered else rule)


SECTIONS = [
    ({"axes": (0,)}, "pair"),
    ({"axes": 1}, "pair"),
    ({"axes": (0, -2)}, "same axis"),
    ({"axes": (0, 2)}, "axis=2"),
    ({"axis": 0}, "one"),
    ({"level": 3}, "maximum of 1"),
    ({"level": 6, "transform": "modwt"}, "maximum of 5"),
    ({"level": 5, "transform": "dtcwt"}, "maximum of 4"),
    ({"wavelet": "haar", "rule": [1.0, 2.0]}, "2 thresholds"),
    ({"rule": "blockjs"}, "blockjs"),
    ({"sigma": ("window", 0, 9)}, "too few"),
    ({"sigma": ("running", 300)}, "traces"),
    ({"detrend": "mean"}, "detrend"),
    ({"transform": "wp"}, "wp"),
    ({"transform": "modwt", "spins": 2}, "spins"),
    ({"transform": "fk", "spins": 4}, "spins"),
    ({"transform": "fk", "wavelet": "db8"}, "sine32x64"),
    ({"transform": "fk", "wavelet": "sine31x64"}, "even"),
    ({"transform": "fk", "level": 3}, "level"),
    ({"transform": "fk", "keep": 1}, "keep"),
    ({"transform": "fk", "rule": [1.0, 2.0]}, "one threshold"),
    ({"transform": "fk", "rule": "bivariate"}, "bivariate"),
    ({"transform": "fk", "rule": "ebayes"}, "ebayes"),
    ({"transform": "fk", "rule": "blockjs"}, "blockjs"),
    ({"transform": "fk", "sigma": "global"}, "frequency"),
    ({"transform": "fk", "sigma": ("intervals", [50])}, "traces"),
    ({"transform": "fk", "wavelet": "mixed", "rule": "bayes"}, "one window"),
    ({"transform": "fk", "detrend": "mean"}, "traces"),
]


@pytest.mark.parametrize(("options", "word"), SECTIONS, ids=str)
def test_options_for_sections(options, word):
    with pytest.raises(ValueError, match=word):
        wavefilt.denoise(TWO, **{"axes": (-2, -1)} | options)


BIG = np.outer(np.arange(-20, 20), np.sin(np.arange(50) ** 2)) * 1e200
SAMPLES = [
    (np.ones((3, 0)), {}, ValueError, "no samples"),
    (np.float64(3), {}, ValueError, "number"),
    (np.array([1.0, np.inf, 2.0]), {}, ValueError, "trace 0, sample 1"),
    (np.array([[1.0, 2.0], [3.0, -np.inf]]), {}, ValueError, "trace 1, sample 1"),
    (np.array([1, 1, 1, complex(np.nan, np.inf), 1] * 20), {}, ValueError, "trace 0, sample 3"),
    (np.array(["a"]), {}, TypeError, "dtype"),
    (np.array([True, False]), {}, TypeError, "bool"),
    (np.array([object()]), {}, TypeError, "object"),
    (np.array(["2020-01-01"], "M8[D]"), {}, TypeError, "dtype"),
    (ONE, {"axis": None}, TypeError, "integer"),
    (ONE, {"axis": -1.0}, TypeError, "integer"),
    (ONE, {"wavelet": 3, "transform": "dtcwt"}, TypeError, "wavelet"),
    (ONE + 1j, {"transform": "dtcwt"}, ValueError, "real"),
    (ONE, {"axes": (-2, -1)}, ValueError, "axis=-2"),
    (TWO[:, :0], {"axes": (-2, -1)}, ValueError, "no samples"),
    (np.where(np.arange(100) == 7, np.inf, TWO), {"axes": (-2, -1)}, ValueError, "row 0, column 7"),
    (np.ones((40, 50)) * 1e308, {"axes": (-2, -1)}, ValueError, "overflow"),
    (BIG, {"axes": (-2, -1)}, ValueError, "overflow"),
    (TWO * 1j, {"axes": (-2, -1), "transform": "fk"}, ValueError, "real"),
    (TWO * 1j, {"axes": (-2, -1), "statics": True}, ValueError, "real"),
]


@pytest.mark.parametrize(("x", "options", "error", "word"), SAMPLES)
def test_samples(backend, x, options, error, word):
    with pytest.raises(error, match=word):
        wavefilt.denoise(x, backend=backend, **options)


@pytest.mark.skipif("cuda" in usable_backends(), reason="has a GPU")
def test_a_backend_that_cannot_run_here():
    with pytest.raises(wavefilt.BackendUnavailable, match="cuda"):
        wavefilt.denoise(ONE, backend="cuda")


@pytest.mark.parametrize(("dtype", "size"), [("f4", 3e38), ("f8", 1.7e308)])
def test_a_transform_that_would_overflow(backend, dtype, size):
    x = size * np.array([1, -1] * 200, dtype)
    for _ in range(2):
        with pytest.raises(ValueError, match=f"overflow {np.dtype(dtype)}"):
            wavefilt.denoise(x, rule=5.0, backend=backend)
        x[7] = np.nan
    with pytest.raises(ValueError, match="scale"):
        wavefilt.denoise(1e200 * np.random.default_rng(0).standard_normal(500), backend=backend)


@pytest.mark.parametrize("transform", [name for name in TRANSFORMS if name != "wp"])
def test_sections_with_too_few_traces_are_returned_with_a_warning(rng, transform):
    """A section may be too small for one level or one window."""
    x = rng.standard_normal((1, 100))
    with pytest.warns(UserWarning, match="unchanged"):
        assert_array_equal(wavefilt.denoise(x, transform=transform, axes=(0, 1)), x)
    if transform == "dwt":
        few = rng.standard_normal((7, 300))
        assert_array_equal(wavefilt.denoise(few, level=0, axes=(0, 1)), few)


@pytest.mark.parametrize("transform", ["dwt", "modwt"])
@pytest.mark.parametrize(("traces", "wavelet"), [(24, "db3"), (12, "db2"), (7, "haar")])
def test_sections_of_few_traces_have_a_shorter_wavelet(rng, transform, traces, wavelet):
    x = rng.standard_normal((traces, 300))
    with pytest.warns(UserWarning, match=f"{wavelet} is used"):
        y = wavefilt.denoise(x, transform=transform, axes=(0, 1))
    assert_array_equal(y, wavefilt.denoise(x, wavelet, transform=transform, axes=(0, 1)))
    found = wavefilt.compare(x, rule=["bayes", "sure"], transform=transform, axes=(0, 1), sigma=1.0)
    assert f"{wavelet} is used instead of db8" in str(found)


def test_filters_that_do_not_reconstruct_are_warned_about_once(rng):
    x = rng.standard_normal(500)
    filters = pywt.Wavelet("dmey")
    coefficients = wavefilt.modwt(x, filters, level=2)
    with pytest.warns(UserWarning, match="dmey"):
        wavefilt.imodwt(coefficients, filters)
    wavefilt.denoise(x, filters, level=2)  # an error if it warned again
    with pytest.warns(UserWarning, match="dmey"):
        wavefilt.denoise(x, pywt.Wavelet("dmey"), level=2, transform="modwt")


def test_levels_to_keep_above_the_number_of_levels(rng):
    x = rng.standard_normal(500)
    assert np.array_equal(wavefilt.denoise(x, level=3, keep=3), x)
    with pytest.raises(OptionError, match="keep"):
        wavefilt.denoise(x, level=3, keep=4)
