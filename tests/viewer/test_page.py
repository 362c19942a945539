"""The page without a browser: its widgets are changed as a browser changes them."""

from __future__ import annotations

import numpy as np
import pytest

import wavefilt
from tests.support import browser
from tests.support.checkout import ROOT

pytest.importorskip("panel")

from wavefilt.viewer.panels import View

SAMPLE = ROOT / "samples" / "seismic.dat"


def drawn(viewer, panel):
    """Samples of a panel in the units of the data, less the mean of each trace."""
    return viewer.pictures.images[panel].data["image"][0].T


def less_mean(rows, source):
    return rows - source.rows.mean(axis=1, keepdims=True)


def wiggles(viewer, panel):
    """Where the lines of all traces lie across, and their times, (traces, samples), from the item they are."""
    traces = viewer.pictures.view.last - viewer.pictures.view.first
    (across,), (time,) = (viewer.pictures.lines[panel].data[axis] for axis in "xy")
    across, time = across.reshape(traces, -1), time.reshape(traces, -1)
    assert np.isnan(across[:, -1]).all()
    return across[:, :-1], time[:, :-1]


@pytest.fixture
def viewer(tmp_path):
    path = tmp_path / "shot.dat"
    path.write_bytes(SAMPLE.read_bytes())
    found = wavefilt.view(path, level=3, output=tmp_path / "out.dat")
    found.look.scale.value = "one for all"
    return found


def choose(viewer, **labels):
    for name, label in labels.items():
        viewer.controls.choices[name].widget.value = label


CHANGES = {
    "wavelet": ("sym5", {"wavelet": "sym5"}),
    "level": ("2", {"level": 2}),
    "rule": ("sure", {"rule": "sure"}),
    "shrink": ("hard", {"shrink": "hard"}),
    "sigma": ("of the finest level", {"sigma": "global"}),
    "scope": ("record", {"scope": "record"}),
    "spins": ("4", {"spins": 4}),
    "transform": ("wp-full", {"transform": "wp-full"}),
}


def test_every_list_has_a_change_that_is_tested(viewer):
    assert set(viewer.controls.choices) == set(CHANGES)


def test_every_change_of_a_list_is_drawn(viewer):
    source = viewer.source
    np.testing.assert_allclose(drawn(viewer, "before"), less_mean(source.rows, source), rtol=1e-5, atol=1e-4)
    chosen = {"level": 3}
    for name, (label, options) in CHANGES.items():
        choose(viewer, **{name: label})
        chosen |= options
        expected = source.recording.denoise(**chosen).samples
        np.testing.assert_array_equal(viewer.denoised.samples, expected)
        np.testing.assert_allclose(drawn(viewer, "after"), less_mean(expected, source), rtol=1e-5, atol=1e-4)
        np.testing.assert_allclose(drawn(viewer, "removed"), source.rows - expected, rtol=1e-5, atol=1e-4)


def test_two_dimensions_and_a_noise_window(viewer):
    choose(viewer, wavelet="db2")
    viewer.controls.two_dimensional.value = True
    expected = viewer.source.recording.denoise("db2", level=3, two_dimensional=True).samples
    np.testing.assert_array_equal(viewer.denoised.samples, expected)
    viewer.controls.two_dimensional.value = False
    viewer.controls.drag(20, 120)
    assert viewer.controls.choices["sigma"].widget.value == "noise window"
    expected = viewer.source.recording.denoise("db2", level=3, sigma=("seconds", 0.02, 0.12)).samples
    np.testing.assert_array_equal(viewer.denoised.samples, expected)
    assert viewer.pictures.windows[0].visible
    viewer.controls.drag(20, 220)
    assert viewer.options["sigma"] == ("seconds", 0.02, 0.22)
    choose(viewer, sigma="of each level")
    assert not viewer.pictures.windows[0].visible


NONSENSE = {
    "level=12 is above the maximum of": lambda viewer: choose(viewer, level="12"),
    "is for rules with a posterior": lambda viewer: choose(viewer, shrink="median"),
    "is for panels": lambda viewer: choose(viewer, transform="fk"),
    "no noise window yet": lambda viewer: choose(viewer, sigma="noise window"),
    "shorter than 4 samples": lambda viewer: viewer.controls.drag(50, 51),
    "does not lie in the traces": lambda viewer: viewer.controls.drag(900, 2000),
}


def test_what_makes_no_sense_is_said_and_the_picture_stays(viewer):
    for words, change in NONSENSE.items():
        before, python = viewer.pictures.images["after"].data, viewer.python.value
        change(viewer)
        assert words in viewer.message.object
        assert viewer.pictures.images["after"].data is before
        assert viewer.python.value == python
        choose(viewer, level="3", transform="dwt", shrink="default", sigma="of each level")
        assert viewer.message.object == ""


def test_the_band_pass_is_shown_instead_and_not_saved(viewer):
    viewer.look.shown.value = "B: band-pass"
    viewer.look.low.value, viewer.look.high.value = 10.0, 80.0
    expected = wavefilt.viewer.bandpass.BandPass(10.0, 80.0).filtered(viewer.source)
    np.testing.assert_allclose(drawn(viewer, "after"), less_mean(expected, viewer.source), rtol=1e-5, atol=1e-4)
    assert "sosfiltfilt" in viewer.python.value
    assert viewer.command.value == ""
    assert viewer.button.disabled
    viewer.look.low.value = 90.0
    assert "Nyquist" in viewer.message.object
    viewer.look.shown.value = "A: wavelets"
    np.testing.assert_allclose(
        drawn(viewer, "after"), less_mean(viewer.denoised.samples, viewer.source), rtol=1e-5, atol=1e-4
    )
    assert not viewer.button.disabled


def test_the_trust_report_is_that_of_the_result(viewer):
    viewer.assess()
    found = viewer.source.recording.denoise(level=3).trust(viewer.source.recording)
    assert found.summary() in viewer.answer.object
    choose(viewer, level="2")
    assert viewer.answer.object == ""


def test_many_samples_are_denoised_by_compiled_kernels_and_the_lines_say_so():
    x = np.zeros((128, 1024), np.float32)
    assert wavefilt.viewer.state.backend_for(wavefilt.viewer.source.of(x), "auto") == "numba"
    assert wavefilt.viewer.state.backend_for(wavefilt.viewer.source.of(x[1:]), "auto") == "pywavelets"
    line = wavefilt.viewer.lines.python(wavefilt.viewer.source.of(x), {"rule": "sure"}, "numba")
    assert line.endswith("denoise(x, rule='sure', backend='numba')")


def test_save_writes_what_is_shown_once(viewer, tmp_path):
    viewer.save()
    assert "saved" in viewer.message.object
    written = (tmp_path / "out.dat").read_bytes()
    viewer.source.recording.denoise(level=3).write(tmp_path / "expected.dat")
    assert written == (tmp_path / "expected.dat").read_bytes()
    choose(viewer, level="2")
    viewer.save()
    assert "exists" in viewer.message.object
    assert (tmp_path / "out.dat").read_bytes() == written
    viewer.overwrite = True
    viewer.save()
    assert (tmp_path / "out.dat").read_bytes() != written


def test_what_is_zoomed_is_drawn_in_finer_detail():
    from bokeh.events import RangesUpdate

    x = np.random.default_rng(0).standard_normal((3, 5000)).astype("f4").repeat(2, axis=0)
    viewer = wavefilt.view(x, interval=0.002)
    assert len(drawn(viewer, "after")[0]) == 5000 / 5
    viewer.pictures._zoomed(RangesUpdate(None, x0=0.6, x1=2.2, y0=2.0, y1=1.0))
    assert [len(drawn(viewer, panel)[0]) for panel in ("before", "after", "removed")] == [501] * 3
    assert drawn(viewer, "after").shape[0] == 4
    viewer.look.kind.value = "wiggle"
    assert viewer.pictures.images["after"].data["image"] == []
    across, time = wiggles(viewer, "removed")
    np.testing.assert_allclose(time, np.tile(0.002 * np.arange(500, 1001), (4, 1)), rtol=1e-6)
    removed = (x - viewer.denoised.samples)[:4, 500:1001] / viewer.pictures.panels.scales(False)[:4, None]
    np.testing.assert_allclose(across - np.arange(4)[:, None], np.clip(0.7 * removed, -1.5, 1.5), atol=1e-5)


def test_wiggles_are_the_samples_of_the_result(viewer):
    source = viewer.source
    viewer.look.kind.value = "wiggle"
    choose(viewer, rule="sure")
    expected = source.recording.denoise(level=3, rule="sure").samples
    scale, numbers = viewer.pictures.panels.scales(True)[0], np.arange(len(source.rows))[:, None]
    for panel, rows in (
        ("before", less_mean(source.rows, source)),
        ("after", less_mean(expected, source)),
        ("removed", source.rows - expected),
    ):
        shifts = np.clip(0.7 * rows / scale, -1.5, 1.5)
        across, time = wiggles(viewer, panel)
        np.testing.assert_allclose(across, numbers + shifts, rtol=1e-5, atol=1e-5)
        np.testing.assert_allclose(time[-1], source.interval * np.arange(rows.shape[1]), rtol=1e-6)
        (filled,) = viewer.pictures.areas[panel].data["x"]
        filled = filled.reshape(len(rows), -1)[:, 1:-2]
        np.testing.assert_allclose(filled, numbers + np.maximum(shifts, 0), rtol=1e-5, atol=1e-5)


def test_a_gain_changes_the_colours_alone(viewer):
    pictures = viewer.pictures
    before, high = pictures.images["after"].data, pictures.mapper.high
    viewer.look.gain.value = 4.0
    viewer._style()
    assert pictures.images["after"].data is before
    assert (pictures.mapper.low, pictures.mapper.high) == pytest.approx((-high / 4, high / 4))
    viewer.look.kind.value = "wiggle"
    line = pictures.lines["after"].data["x"][0]
    viewer.look.gain.value = 1.0
    viewer._style()
    assert np.nanmax(np.abs(pictures.lines["after"].data["x"][0] - line)) > 0.1


def test_visible_traces_are_denoised_first(monkeypatch):
    x = np.random.default_rng(0).standard_normal((256, 1024)).astype("f4")
    viewer, shown = wavefilt.view(x, interval=0.002, backend="pywavelets"), []
    monkeypatch.setattr(viewer.pictures, "show", shown.append)
    choose(viewer, rule="sure")
    viewer.pictures.view = View(100, 110, 0, 500)
    choose(viewer, rule="universal")
    viewer.controls.two_dimensional.value = True
    whole, first, rest, panel = shown
    np.testing.assert_array_equal(rest, wavefilt.denoise(x, rule="universal"))
    np.testing.assert_array_equal(first[100:110], rest[100:110])
    assert np.isnan(first).sum() == 246 * 1024
    assert not np.isnan(whole).any() | np.isnan(panel).any()


def test_traces_that_cannot_be_denoised_leave_those_that_were_drawn():
    x = np.random.default_rng(0).standard_normal((256, 1024)).astype("f4")
    x[0, 50] = np.nan
    viewer = wavefilt.view(x, interval=0.002, backend="pywavelets")
    before = viewer.pictures.panels.after
    viewer.pictures.view = View(100, 110, 0, 500)
    viewer.controls.drag(0, 300)
    assert "has gaps" in viewer.message.object
    assert viewer.pictures.panels.after is before


def test_thresholds_and_spectra_are_those_of_the_result(viewer):
    outcome = viewer.result.outcome
    data = viewer.details.levels.data
    for name, values in (("sigma", outcome.estimates[0].sigma), ("threshold", outcome.estimates[0].thresholds)):
        np.testing.assert_allclose(data[name], [np.median(level[level > 0]) for level in values])
    spectra = {name: source.data["level"] for name, source in viewer.details.spectra.items()}
    assert spectra["before"].max() == 0
    assert spectra["after"][-20:].mean() < spectra["before"][-20:].mean() - 3
    viewer.trace.value = 7
    assert "trace 7" in viewer.details.spectrogram_figures[0].title.text


@pytest.mark.parametrize(("values", "shape"), [("noise", (1, 300)), ("gap", (3, 300)), ("zero", (4, 40))])
def test_any_shape_and_any_samples_can_be_viewed(shape, values):
    x = np.random.default_rng(0).standard_normal(shape)
    x = {"noise": x, "zero": 0 * x, "gap": np.where(np.arange(shape[1]) < 30, np.nan, x)}[values]
    viewer = wavefilt.view(x)
    viewer.look.kind.value = "density"
    assert viewer.pictures.images["before"].data["image"][0].size == x.size
    viewer.controls.drag(0, 20)


def test_a_notebook_gets_the_page_and_options_are_those_given():
    viewer = wavefilt.view(np.random.default_rng(0).standard_normal((4, 256)), "sym4", rule=[2.0, 1.0], level=2)
    assert viewer.options == {"wavelet": "sym4", "rule": [2.0, 1.0], "level": 2, "two_dimensional": False}
    assert viewer.controls.choices["rule"].widget.value == "[2.0, 1.0]"
    choose(viewer, rule="sure")
    assert viewer.options["rule"] == "sure"
    choose(viewer, rule="[2.0, 1.0]")
    np.testing.assert_array_equal(
        viewer.denoised.samples, wavefilt.denoise(viewer.source.rows, "sym4", rule=[2.0, 1.0], level=2)
    )
    assert viewer.servable() is viewer.__panel__()
    with pytest.raises(ValueError, match="above the maximum"):
        wavefilt.view(np.ones((2, 100)), level=9)


def test_the_benchmark_measures_changes():
    from wavefilt.benchmarks import viewing

    result = viewing.run(quick=True)
    rows = {row["change"]: row for row in result["rows"]}
    assert list(rows) == [*viewing.CHANGES, *(viewing.LOOKS if browser.program() else ())]
    for name in viewing.CHANGES:
        assert 0 < rows[name]["pictures"]["median"] <= rows[name]["all"]["median"]
        assert rows[name]["megabytes"] > 2 * 24 * 1024 * 4 / 1e6
    assert "24 x 1024" in viewing.report(result).text()
    if browser.program():
        assert 0 < rows["rule"]["pixels"]["median"] <= rows["rule"]["pixels_of_all"]["median"]
        assert all(rows[name]["pixels"]["median"] > 0 for name in viewing.LOOKS)
    assert "pixels" not in rows["level"]
