"""Runs of equal samples (mutes, clipping, dead parts) are left out of every estimate, and returned as they were."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import wavefilt
from tests.support.checkout import usable_backends
from tests.support.signals import gather
from tests.support.simulation import SIMULATED, arrays_on_device, inside, small_cuda
from wavefilt.arrays import equal_runs, least_run
from wavefilt.errors import OptionError
from wavefilt.options import Options
from wavefilt.thresholding.rules import RULES
from wavefilt.transforms import TRANSFORMS

NAMES = [pytest.param("cuda", marks=inside)] if SIMULATED else usable_backends()
SAMPLES, SECTION = (256, (24, 96)) if SIMULATED else (512, (24, 128))
PROBED = [*RULES, 0.5] if not SIMULATED else ["bayes", "js", "bivariate"]  # the simulator is slow
pytestmark = [pytest.mark.filterwarnings(f"ignore:{what}:RuntimeWarning") for what in ("invalid", "overflow")]


def possible(ndim):
    """Return (rule, transform) for all that go together."""
    found = []
    for rule in PROBED:
        for transform in TRANSFORMS:
            try:
                Options(rule=rule, transform=transform, ndim=ndim)
            except (OptionError, ValueError, TypeError):
                continue
            found.append((rule, transform))
    return found


def named(name, transform):
    """Return the backend; the small one of the simulator needs more threads for transforms with long filters."""
    sizes = {"tile": 64, "threads": 64} if transform == "dtcwt" else {}
    return small_cuda(**sizes) if SIMULATED else name


def muted(rng, shape, share, value=0.0, dtype="f8"):
    """Return traces of noise around 500, the first ``share`` of which has this value."""
    x = (200 * rng.standard_normal(shape) + 500).astype(dtype)
    x[..., : int(share * shape[-1])] = value
    return x


@pytest.mark.parametrize(("rule", "transform"), possible(1))
@pytest.mark.parametrize("name", NAMES)
def test_every_rule_and_transform(rng, rule, transform, name):
    """The live part is denoised as if it were alone, and as by the reference."""
    for share, value in ((0.3, 0.0), (0.7, -3.7)):
        x = muted(rng, (2, SAMPLES), share, value)
        live = x[:, int(share * SAMPLES) :]
        options = {"rule": rule, "transform": transform, "level": 2}  # the default depends on the length
        y = wavefilt.denoise(x, backend=named(name, transform), **options)
        assert_array_equal(y[:, : -live.shape[1]], x[:, : -live.shape[1]])
        assert_allclose(y[:, -live.shape[1] :], wavefilt.denoise(live, **options, backend="pywavelets"), rtol=1e-9)
        assert not np.array_equal(y, x)


@pytest.mark.parametrize(("rule", "transform"), possible(2))
@pytest.mark.parametrize("name", NAMES)
def test_every_rule_and_transform_of_sections(rng, rule, transform, name):
    _, x = gather(rng, SECTION)
    for row in range(SECTION[0]):
        x[row, : 36 + 2 * row] = 0  # a mute whose end moves with the offset
    x[7, -28:] = 0  # too short to be a run
    options = {"rule": rule, "transform": transform, "axes": (0, 1)}
    if transform != "fk":
        options["wavelet"] = None if "dtcwt" in transform else "db2"
    y = wavefilt.denoise(x, backend=named(name, transform), **options)
    quiet = equal_runs(x)
    assert_array_equal(y[quiet], x[quiet])
    assert_allclose(y, wavefilt.denoise(x, backend="pywavelets", **options), rtol=0, atol=1e-9 * np.ptp(x))
    if not SIMULATED:
        gaps = np.where(quiet, np.nan, x)
        assert_array_equal(y[~quiet], wavefilt.denoise(gaps, backend=name, **options)[~quiet])


@pytest.mark.parametrize("name", usable_backends())
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_no_run_is_missed_wherever_it_lies(rng, name, dtype):
    """Long enough for several tiles: one sample fewer than a run is no run."""
    for samples in (600, 5000, 100_000):
        x, least = rng.standard_normal((2, samples)).astype(dtype), least_run(samples)
        for first in rng.integers(0, samples - least, 12):
            for length in (least - 1, least):
                own = x.copy()
                own[1, first : first + length] = 3
                y = wavefilt.denoise(own, backend=name)
                same = bool((y[1, first : first + length] == 3).all())
                assert same == (length == least)
                assert_array_equal(y[0], wavefilt.denoise(own[:1], backend=name)[0])


def test_which_samples_are_in_runs():
    x = np.arange(4.0)[:, None] + np.zeros((4, 200)) + np.arange(200.0)
    assert equal_runs(x) is None
    x[0] = 5  # dead
    x[1, :32], x[1, -40:] = 7, 7  # not one run across the end
    x[2, 50:100] = np.nan
    x[3, 10:70], x[3, 70:101] = -0.0, 2
    x[3, 11] = 0.0
    expected = np.zeros(x.shape, bool)
    expected[1, :32] = expected[1, -40:] = expected[3, 10:70] = True
    assert_array_equal(equal_runs(x), expected)
    assert_array_equal(equal_runs(x.reshape(2, 2, 200)), expected.reshape(2, 2, 200))


@pytest.mark.parametrize("name", usable_backends())
def test_gaps_dead_traces_and_records(rng, name):
    x = muted(rng, (6, 1000), 0.2)
    x[1], x[2, 500:520], x[3, :200] = 4, np.nan, rng.standard_normal(200)
    live = [slice(200, None), slice(None), slice(200, 500), slice(None), slice(200, None), slice(200, None)]
    y = wavefilt.denoise(x, backend=name)
    for i, own in enumerate(live):
        assert_allclose(y[i, own], wavefilt.denoise(x[i, own], backend=name), rtol=1e-9)
    assert_array_equal(y[[0, 4, 5], :200], 0)
    gaps = np.where(equal_runs(x), np.nan, x) if equal_runs(x) is not None else x
    for options in ({"scope": "record"}, {"detrend": "line"}, {"spins": 3}, {"blend": 0.2}, {"sigma": ("running", 99)}):
        y, expected = (wavefilt.denoise(own, backend=name, **options) for own in (x, gaps))
        assert_array_equal(y[:, 200:], expected[:, 200:])
        assert_array_equal(y[0, :200], x[0, :200])


@pytest.mark.parametrize("rule", ["universal", "js"])
def test_a_noise_window_in_a_mute_leaves_the_estimate_to_the_trace(rng, rule):
    x = 2 * rng.standard_normal((3, 1000))
    x[0, :150] = 0
    for scope in ("trace", "record"):
        options = {"rule": rule, "scope": scope, "sigma": ("window", 100, 300), "level": 3}
        y, noise = wavefilt.denoise(x, return_residual=True, **options)
        assert_array_equal(y[0, :150], 0)
        assert 1 < np.std(noise[0, 150:]) < 2.2
        assert_allclose(y[1:], wavefilt.denoise(x[1:], **options), rtol=0, atol=0.01)  # some bands are pooled


@inside
def test_traces_on_a_device(rng, monkeypatch):
    on_device = arrays_on_device(monkeypatch, small_cuda())
    for dtype, options in (("f4", {}), ("f8", {}), ("f4", {"rule": "js"}), ("f8", {"transform": "modwt"})):
        x = muted(rng, (3, 300), 0.4, dtype=dtype)
        x[1] = 7
        y = np.asarray(wavefilt.denoise(on_device(x), **options))
        assert_array_equal(y[[0, 2], :120], 0)
        assert_array_equal(y[1], 7)
        expected = wavefilt.denoise(x, backend="pywavelets", **options)
        assert_allclose(y, expected, rtol=0, atol=1e-3 if dtype == "f4" else 1e-9)


@inside
def test_segments_of_many_lengths_are_denoised_on_the_host(rng):
    x = muted(rng, (20, 200), 0.2)
    for row in range(20):
        x[row, : 40 + row] = 0
    y = wavefilt.denoise(x, backend=small_cuda())
    assert_allclose(y, wavefilt.denoise(x, backend="pywavelets"), rtol=1e-9)
