"""Statics of sections: found where there are some, not found elsewhere, removed and put back exactly."""

from __future__ import annotations

import json

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import wavefilt
from tests.support.checkout import run as run_command
from tests.support.signals import coloured, gain_db, ricker
from wavefilt import statics
from wavefilt.api import run
from wavefilt.options import Options

OPTIONS = {"transform": "fk", "axes": (0, 1), "statics": True}


def layers(traces=64, samples=400):
    """Return a section of three dipping events and a hyperbola, as a function of the statics of its traces."""
    trace = np.arange(traces)
    events = [(80 + 0.5 * trace, 0.06, 1.0), (190 - 0.4 * trace, 0.07, -0.8), (300 + 0.2 * trace, 0.05, 0.9)]
    events.append((np.hypot(120, 2.0 * trace), 0.06, 0.7))

    def made(shifts=0.0, factors=1.0):
        waves = (size * ricker(samples, (at + shifts)[:, None], f) for at, f, size in events)
        return np.reshape(factors, (-1, 1)) * sum(waves)

    return made


@pytest.fixture
def ragged(rng):
    shifts, factors = 2 * rng.standard_normal(64), np.clip(1 + 0.2 * rng.standard_normal(64), 0.5, 1.6)
    return layers()(shifts, factors), shifts, factors


def test_shifts_are_found_to_a_tenth_of_a_sample(ragged, rng):
    x, shifts, factors = ragged
    found = statics.find(x + 0.01 * rng.standard_normal(x.shape))
    errors = found.shifts[0] - shifts  # smooth where the running median of the true shifts is not 0
    assert np.median(np.abs(np.diff(errors))) / np.sqrt(2) < 0.1
    assert np.corrcoef(factors, found.factors[0])[0, 1] > 0.8


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("shape", [(2, 9, 33), (1, 24, 1024), (3, 8, 700)])
def test_statics_are_put_back_exactly(rng, shape, dtype):
    x = rng.standard_normal(shape).astype(dtype)
    found = statics.Statics(rng.uniform(-12, 12, shape[:2]), rng.uniform(0.4, 2.5, shape[:2]))
    longer = found.removed(x)
    assert longer.dtype == x.dtype
    assert_allclose(found.restored(longer, shape[-1]), x, atol=1e-12 if dtype == "f8" else 1e-5)


def test_removed_statics_align_traces():
    made, shifts = layers(), np.array([3.0, -2.5, 0.0, 7.25] * 16)
    found = statics.Statics(shifts[None], np.full((1, 64), 2.0))
    aligned = found.removed(made(shifts, 2.0)[None])[0]
    first = (aligned.shape[1] - 400) // 2
    assert_allclose(aligned[:, first + 20 : first + 380], made()[:, 20:380], atol=1e-3)


@pytest.mark.parametrize("transform", ["fk", "dtcwt", "dwt"])
def test_ragged_sections_gain(ragged, rng, transform):
    clean, noisy = ragged[0], ragged[0] + 0.2 * rng.standard_normal(ragged[0].shape)
    plain, better = (
        gain_db(clean, noisy, wavefilt.denoise(noisy, **{**OPTIONS, "transform": transform, "statics": given}))
        for given in (False, True)
    )
    assert better > plain + 1


@pytest.mark.parametrize("traces", [12, 24, 64])
@pytest.mark.parametrize("amplitude", [np.ones_like, lambda f: f**-0.5])
@pytest.mark.parametrize("size", [0.05, 0.3, 2.0])
def test_sections_without_statics_are_denoised_as_without_the_option(rng, traces, amplitude, size):
    clean = layers(traces)()
    x = clean + size * coloured(rng, clean.shape, amplitude)
    assert not statics.find(x).found
    assert_array_equal(wavefilt.denoise(x, **OPTIONS), wavefilt.denoise(x, transform="fk", axes=(0, 1)))


def test_the_outcome_has_the_statics_and_a_batch_is_as_single_sections(ragged, rng):
    x = np.stack([ragged[0], layers()()]) + 0.05 * rng.standard_normal((2, 64, 400))
    outcome = run(x, Options(transform="fk", ndim=2, statics=True))
    assert outcome.statics.shifts.shape == outcome.statics.factors.shape == (2, 64)
    assert outcome.statics.shifts[0].std() > 1
    assert not outcome.statics.shifts[1].any()
    assert "statics=True" in outcome.options.history(outcome.level)
    assert_allclose(wavefilt.denoise(x[0], **OPTIONS), outcome.samples[0], atol=1e-12)


def test_gaps_dead_traces_scale_and_noise_windows(ragged, rng):
    x = np.pad(ragged[0], [(0, 0), (100, 0)]) + 0.05 * rng.standard_normal((64, 500))
    x[3], x[9, 200:260], x[20] = 1.5, np.nan, np.nan
    given = {**OPTIONS, "sigma": ("window", 0, 90)}
    y = wavefilt.denoise(x, **given)
    assert_array_equal(np.isnan(y), np.isnan(x))
    assert_array_equal(y[3], x[3])
    assert statics.find(x).shifts[0, [3, 20]].any() == 0
    assert_allclose(wavefilt.denoise(1e-30 * x, **given), 1e-30 * y, rtol=1e-6, atol=1e-36)


def test_statics_are_for_sections(rng):
    with pytest.raises(ValueError, match="sections"):
        wavefilt.denoise(rng.standard_normal((4, 200)), statics=True)
    with pytest.raises(ValueError, match="statics"):
        wavefilt.denoise(rng.standard_normal((40, 200)), statics=1, axes=(0, 1))
    small = rng.standard_normal((5, 200))
    assert not statics.find(small).found


def test_arrays_that_are_no_sections():
    for bad in (np.ones(100), np.ones((2, 3, 40, 50)), np.ones((40, 50), complex)):
        with pytest.raises(ValueError, match="section"):
            statics.find(bad)


def test_statics_are_drawn_and_reported(ragged, rng, tmp_path, capsys):
    pytest.importorskip("matplotlib")
    np.save(tmp_path / "x.npy", ragged[0] + 0.05 * rng.standard_normal(ragged[0].shape))
    before = wavefilt.read(tmp_path / "x.npy")
    after = before.denoise(two_dimensional=True, transform="fk", statics=True)
    labels = [axes.get_label() for axes in before.plot(after).axes]
    assert {"shifts", "factors"} <= set(labels)
    plain = before.denoise(two_dimensional=True, transform="fk")
    assert "shifts" not in [axes.get_label() for axes in before.plot(plain).axes]
    files = ("denoise", str(tmp_path / "x.npy"), "-o", str(tmp_path / "y.npy"))
    code, out, _ = run_command(capsys, *files, "--two-dimensional", "--transform", "fk", "--statics", "--json")
    facts = json.loads(out)
    assert (code, facts["statics"], len(facts["shifts"])) == (0, True, 64)
    assert_allclose(np.load(tmp_path / "y.npy"), after.traces, atol=1e-6)
