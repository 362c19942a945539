"""The options of the recipe and of the presets, the lines that give them, and the statements about a result."""

from __future__ import annotations

import numpy as np
import pytest

import wavefilt
from tests.support.checkout import SAMPLES
from tests.support.signals import coloured
from wavefilt.options import PRESETS, RECIPE, checked, completed, recipe_levels, to_give
from wavefilt.report import hum, noise_energy, statements

DATA = {"seismic": True, "interval": 0.001, "samples": 2000}


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({}, RECIPE),
        ({"rule": "bayes"}, {**RECIPE, "rule": "bayes"}),
        ({"wavelet": "haar", "level": 3}, {**RECIPE, "wavelet": "haar", "level": 3}),
        ({"transform": "dtcwt"}, {"transform": "dtcwt", "rule": "js"}),
        ({"spins": 8}, {"spins": 8, "wavelet": "sym8", "rule": "js"}),
        ({"shrink": "firm"}, {"shrink": "firm", "wavelet": "sym8", "transform": "modwt"}),
        ({"sigma": ("seconds", 0.1, 0.2)}, {**RECIPE, "sigma": ("seconds", 0.1, 0.2)}),
        ({"two_dimensional": True}, PRESETS["section"]),
        ({"two_dimensional": True, "wavelet": "db2"}, {"two_dimensional": True, "wavelet": "db2"}),
        ({"preset": "strong"}, PRESETS["strong"]),
        ({"preset": "gentle", "rule": "sure"}, {**PRESETS["gentle"], "rule": "sure"}),
        ({"preset": "section", "transform": "dtcwt"}, {"two_dimensional": True, "transform": "dtcwt"}),
    ],
)
def test_given_options_win_and_the_others_go_with_them(given, expected):
    preset = given.get("preset")
    options = {name: value for name, value in given.items() if name != "preset"}
    assert completed(options, preset, **DATA) == expected


def test_levels_follow_the_sampling_rate_and_the_length():
    for interval in (0.001, 0.0005, 0.00025, 1 / 8192):
        assert 4 <= 0.5 / interval / 2 ** recipe_levels(interval) <= 8
    assert completed({}, **{**DATA, "interval": 0.00025, "samples": 9000})["level"] == 8
    assert completed({}, **{**DATA, "interval": 0.00025, "samples": 2000})["level"] == 7
    assert completed({}, "strong", **{**DATA, "samples": 200}).get("level", 0) < 8
    with pytest.raises(ValueError, match="gentle"):
        completed({}, "gentel")


@pytest.mark.parametrize(
    "options",
    [
        {},
        RECIPE,
        {"rule": "js"},
        {"rule": 3.0, "level": 2},
        {"transform": "dtcwt", "spins": 1},
        {"two_dimensional": True},
        {"two_dimensional": True, "transform": "fk"},
        {"rule": "bayes", "transform": "modwt", "mode": "reflect"},
    ],
)
@pytest.mark.parametrize("data", [DATA, {**DATA, "interval": 0.00025}, {**DATA, "seismic": False}])
def test_the_options_to_give_mean_those_that_denoise_would_use(options, data):
    given = to_give(options, **data)
    used, expected = checked(completed(given, **data)), checked(options)
    assert (used.rule, used.filters, used.transform) == (expected.rule, expected.filters, expected.transform)
    length = (64, 2000) if used.ndim == 2 else (2000,)
    assert used.level_for(*length) == expected.level_for(*length)
    if options == RECIPE and data is DATA:
        assert given == {}


def test_files_of_arrays_have_the_defaults_of_denoise(tmp_path):
    recording = wavefilt.read(SAMPLES / "seismic.dat")
    wavefilt.io.write(recording, tmp_path / "x.npy")
    found = wavefilt.read(tmp_path / "x.npy").denoise().samples
    np.testing.assert_array_equal(found, wavefilt.denoise(recording.samples))
    np.testing.assert_array_equal(recording.denoise(preset="gentle").samples, found)
    expected = wavefilt.denoise(recording.samples, **RECIPE)
    np.testing.assert_array_equal(recording.denoise().samples, expected)


@pytest.mark.parametrize("sigma", ["level", 3.0, ("window", 0, 2048)])
def test_the_energy_of_white_noise_is_found_in_dead_and_many_traces(sigma):
    x = 3 * np.random.default_rng(0).standard_normal((320, 2048))  # more than are searched
    x[1::2] = 5
    recording = wavefilt.Recording(x, (0.002,) * 320, "seg2", None)
    assert noise_energy(recording, sigma, 10.0) == pytest.approx(0.09 * x.size / 2, rel=0.1)


@pytest.mark.parametrize("unit", [1, 1e100])
def test_noise_below_the_bands_that_are_denoised_counts_as_noise(unit):
    """Only a hundredth of the noise is above the approximation, which stays as it is."""
    rng = np.random.default_rng(2)
    noise = coloured(rng, (8, 4096), lambda f: f < 0.005) + 0.05 * rng.standard_normal((8, 4096))
    recording = wavefilt.Recording(unit * noise, (0.002,) * 8, "seg2", None)
    denoised = recording.denoise(preset="gentle", sigma=("seconds", 0, 8))
    assert "almost nothing was removed, 0.2 %" in statements(recording, denoised)[0]


def test_statements_say_that_little_or_much_was_removed_and_where_there_is_hum():
    rng, time = np.random.default_rng(1), 0.002 * np.arange(2048)
    noise = rng.standard_normal((8, 2048)) + 1e4  # an offset has no part in the shares
    recording = wavefilt.Recording(noise, (0.002,) * 8, "seg2", None)
    assert "%" in statements(recording, recording.denoise())[0]
    assert "preset=strong" in statements(recording, recording.denoise(blend=0.95))[0]
    assert statements(recording, recording.denoise(blend=0.5)) == []
    assert statements(recording, recording.denoise(rule=0))[0] == "nothing was removed"
    for other in (recording, wavefilt.Recording(noise * 1j, (0.002,) * 8, "npy", None)):
        gentle = statements(other, other.denoise(preset="gentle", sigma="global"))
        assert [("removed as noise" in text, "gentle" in text) for text in gentle] == [(True, False)]
    humming = noise + np.sin(2 * np.pi * 60 * time)
    assert hum(noise, 0.002) == []
    assert [line for line, _ in hum(humming, 0.002)] == [60]
