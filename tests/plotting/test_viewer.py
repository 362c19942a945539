"""The page of `wavefilt.view` without a browser: its widgets are changed as a browser changes them."""

from __future__ import annotations

import shlex
import sys

import numpy as np
import pytest

import wavefilt
from tests.support.checkout import SAMPLES, run

pytest.importorskip("panel")

import panel as pn
import param
from bokeh.models import BoxAnnotation, LinearAxis, Title

SAMPLE = SAMPLES / "seismic.dat"


class Page:
    """The widgets, texts and pictures of a viewer, by what is written on them."""

    def __init__(self, data, *options, **more):
        self.viewer = wavefilt.view(data, *options, **more)
        self.panes = self.viewer.__panel__().select(pn.pane.Bokeh)
        self.widgets = {str(widget.label): widget for widget in self.viewer.__panel__().select(pn.widgets.Widget)}

    def choose(self, **values):
        """Set widgets by the first word of their labels."""
        for name, value in values.items():
            (widget,) = [widget for label, widget in self.widgets.items() if label.startswith(name)]
            if isinstance(widget, pn.widgets.Select):
                value = value if value == "auto" else widget.options[value]
            with param.edit_constant(widget):
                widget.param.update({"value": value} | ({"value_throttled": value} if name == "Gain" else {}))

    def press(self, label):
        self.widgets[label].clicks += 1

    @property
    def python(self):
        return self.widgets["Python"].value

    @property
    def message(self):
        return "".join(pane.object for pane in self.viewer.__panel__().select(pn.pane.HTML) if "role=" in pane.object)

    def data(self, name):
        return next(filter(None, (pane.object.select_one({"name": name}) for pane in self.panes))).data

    @property
    def windows(self):
        """Ends of the marked noise windows, in seconds."""
        boxes = [box for pane in self.panes for box in pane.object.select({"type": BoxAnnotation})]
        return [(box.bottom, box.top) for box in boxes if box.visible and isinstance(box.top, float)]

    def image(self, panel):
        """Samples of a picture (traces, samples)."""
        return self.data(f"image-{panel}")["image"][0].T

    def wiggles(self, panel):
        """Places of the lines of all traces across, and their times, both (traces, samples)."""
        (across,), (time,) = (self.data(f"line-{panel}")[axis] for axis in "xy")
        ends = np.flatnonzero(np.isnan(across))
        across, time = (values.reshape(len(ends), -1)[:, :-1] for values in (across, time))
        assert np.isfinite(across).all()
        return across, time


def less_mean(rows, before):
    return rows - before.mean(axis=1, keepdims=True)


def close(found, expected):
    """Compare to single precision: "auto" may choose another backend here than in the new process of the page."""
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-4)


def shows(page, before, after):
    """Check the three images, in the units of the data, to the accuracy of single precision."""
    expected = (less_mean(before, before), less_mean(after, before), before - after)
    for panel, rows in zip(("before", "after", "residual"), expected, strict=True):
        close(page.image(panel), rows)


@pytest.fixture
def path(tmp_path):
    found = tmp_path / "a shot.dat"
    found.write_bytes(SAMPLE.read_bytes())
    return found


@pytest.fixture
def page(path, tmp_path):
    found = Page(path, level=3, output=tmp_path / "out.dat")
    found.choose(Picture="density", Scale="one for all", AGC="off")
    return found


CHANGES = [
    ("Wavelet", "sym5", {"wavelet": "sym5"}),
    ("Levels", "2", {"level": 2}),
    ("Threshold rule", "sure", {"rule": "sure"}),
    ("Threshold function", "hard", {"shrink": "hard"}),
    ("Noise", "of the finest level", {"sigma": "global"}),
    ("Thresholds for each", "record", {"scope": "record"}),
    ("Cycle spinning", "4", {"spins": 4}),
    ("Transform", "wp", {"transform": "wp"}),
    ("Transform", "dwt", {"transform": "dwt"}),
    ("Cycle spinning", "1", {"spins": 1}),
    ("Wavelet", "db2", {"wavelet": "db2"}),
    ("Section", True, {"two_dimensional": True}),
]


def test_every_change_is_drawn(page, path):
    recording, chosen = wavefilt.read(path), {"level": 3, "backend": "pywavelets"}
    shows(page, recording.samples, recording.denoise(**chosen).samples)
    selects = [label for label, widget in page.widgets.items() if isinstance(widget, pn.widgets.Select)]
    assert all(any(label.startswith(name) for name, _, _ in CHANGES) for label in selects)
    assert None not in [page.widgets[label].value for label in selects]  # Panel shows it as nothing
    for label, value, options in CHANGES:
        page.choose(**{label: value})
        chosen |= options
        expected = recording.denoise(**chosen).samples
        np.testing.assert_array_equal(page.viewer.denoised.samples, expected)
        shows(page, recording.samples, expected)


def test_invalid_options_show_a_message_and_no_result(page):
    for word, label, value in (
        ("above the maximum", "Levels", "12"),
        ("empirical Bayes", "Threshold function", "median"),
        ("window", "Noise", "noise window"),
        ("Nyquist", "To (Hz)", 1e-9),
    ):
        if "Hz" in label:
            page.choose(Shown="B: band-pass")
        page.choose(**{label: value})
        assert word in page.message
        assert not page.data("image-after")["image"]
        assert not len(page.data("spectrum-residual")["level"])
        assert page.python == ""
        assert page.widgets["Save out.dat"].disabled
        page.choose(Shown="A: wavelets", Levels="3", Noise="of each level", **{"Threshold function": "auto"})
        assert page.message == ""
        assert page.image("after").size


CHOICES = {
    "defaults": {},
    "words": {"wavelet": "sym4", "level": 3, "rule": "sure", "shrink": "hard", "sigma": "global", "scope": "record"},
    "numbers": {"wavelet": "db2", "level": 2, "rule": [3.5, np.float64(1.25)], "keep": 1, "blend": 0.25},
    "window": {"sigma": ("seconds", 0.0, 0.1), "mode": "periodic", "detrend": "line"},
    "changing": {"sigma": ("running", 0.2), "rule": "universal"},
    "transform": {"transform": "modwt", "wavelet": "db4", "sigma": 1.5},
    "section": {"two_dimensional": True, "wavelet": "db2", "scope": "trace"},
    "own wavelet": {"transform": "dtcwt", "rule": "bayes", "two_dimensional": True},
}


def executed(text, **names):
    exec(text, names)
    return names


@pytest.mark.parametrize("choice", CHOICES.values(), ids=CHOICES)
def test_the_lines_of_a_file_give_what_is_shown(path, choice, tmp_path, capsys):
    page = Page(path, **choice)
    shown = page.viewer.denoised.samples
    close(executed(page.python)["denoised"].samples, shown)
    words = shlex.split(page.widgets["Command"].value)
    assert words[:3] == ["wavefilt", "denoise", str(path)]
    assert run(capsys, *words[1:], "-o", tmp_path / "out.dat")[0] == 0
    close(wavefilt.read(tmp_path / "out.dat").samples, shown)


def data(kind):
    """Samples (traces, samples), the object to view, its name in the lines, and its interval where it has none."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal((6, 512)).cumsum(axis=1)
    if kind in ("array", "large"):
        x = rng.standard_normal((128, 1024)).astype("f4") if kind == "large" else x
        return x, x, "x", 0.002
    if kind == "trace":
        return x[:1], x[0], "x", 0.002
    if kind == "recording":
        return x, wavefilt.Recording(x, (0.002,) * 6, "npy", None), "recording", None
    if kind == "stream":
        obspy = pytest.importorskip("obspy")
        return x, obspy.Stream([obspy.Trace(row.copy(), {"delta": 0.002}) for row in x]), "stream", None
    if kind == "table":
        return x, pytest.importorskip("pandas").DataFrame(x.T), "x", 0.002
    if kind == "patch":
        coordinates = {"distance": np.arange(6), "time": np.arange(512) * 0.002}
        return x, pytest.importorskip("dascore").Patch(x, dims=("distance", "time"), coords=coordinates), "patch", None
    xarray = pytest.importorskip("xarray")
    found = xarray.DataArray(x, dims=("trace", "time")).assign_coords(time=np.arange(512) * 0.002)
    return x, found if kind == "labelled" else found.rename(time="x"), "x", None


@pytest.mark.parametrize(
    "kind", ["array", "large", "trace", "recording", "stream", "labelled", "other labels", "table", "patch"]
)
@pytest.mark.parametrize(
    "choice",
    [{"sigma": ("seconds", 0.05, 0.4), "rule": "sure", "level": 2}, CHOICES["section"]],
    ids=["window", "section"],
)
def test_the_lines_of_other_data_give_what_is_shown(kind, choice):
    x, given, name, interval = data(kind)
    if kind in ("trace", "large") and "two_dimensional" in choice:
        pytest.skip("one trace is no section, and large ones wait for a compiler")
    page = Page(given, interval=interval, **choice)
    found = executed(page.python, **{name: given})["denoised"]
    shown = page.viewer.denoised.samples
    rows = {"recording": "samples", "patch": "data"}.get(kind)
    rows = getattr(found, rows) if rows else [trace.data for trace in found] if kind == "stream" else found
    close(np.asarray(rows.T if kind == "table" else rows).reshape(x.shape), shown.reshape(x.shape))
    assert np.abs(shown - x).max() > 1e-3
    assert "Command" not in page.widgets
    assert ("numba" in page.python) == (kind == "large")


REFUSED = {
    "a shape": (ValueError, lambda: np.ones((2, 3, 4)), {}),
    "no samples": (ValueError, lambda: np.ones((2, 0)), {}),
    "a negative interval": (ValueError, lambda: np.ones(9), {"interval": -1}),
    "an interval of a file": (ValueError, lambda: SAMPLE, {"interval": 0.1}),
    "a level": (ValueError, lambda: np.ones((2, 100)), {"level": 9}),
    "a missing file": (OSError, lambda: "no.dat", {}),
    "a table": (TypeError, lambda: pytest.importorskip("pandas").DataFrame({"a": ["text"]}), {}),
    "a Dataset": (TypeError, lambda: pytest.importorskip("xarray").Dataset(), {}),
}


@pytest.mark.parametrize("name", REFUSED)
def test_data_that_cannot_be_viewed_are_refused(name):
    error, made, options = REFUSED[name]
    given = made()
    with pytest.raises(error):
        wavefilt.view(given, **options)


def test_the_band_pass_is_shown_instead_and_not_saved(tmp_path):
    x = np.random.default_rng(5).standard_normal((24, 200))
    x[1, 50:60] = np.nan
    page = Page(x, interval=0.004, output=tmp_path / "out.npy")
    page.choose(Picture="density", Scale="one for all", AGC="off", Shown="B: band-pass", From=5.0, To=40.0)
    assert page.widgets["Save out.npy"].disabled
    expected = executed(page.python, x=x)["filtered"] - np.nanmean(x, axis=1, keepdims=True)
    close(page.image("after"), np.where(np.isnan(x), np.nan, expected))
    page.choose(Shown="A: wavelets")
    close(page.image("residual"), x - page.viewer.denoised.samples)
    assert not page.widgets["Save out.npy"].disabled
    lengths = wavefilt.Recording([x[0], x[2, :150]], (0.004,) * 2, "npy", None)
    page = Page(lengths)
    page.choose(Shown="B: band-pass")
    assert executed(page.python, recording=lengths)["filtered"].shape == (2, 200)
    short = Page(x[:, :20], interval=0.004)
    short.choose(Shown="B: band-pass")
    assert "length" in short.message


def test_the_band_pass_is_that_of_obspy():
    obspy = pytest.importorskip("obspy")
    x = np.random.default_rng(6).standard_normal(2000) * np.hanning(2000) ** 4
    trace = obspy.Trace(x.copy(), {"delta": 0.01})
    trace.filter("bandpass", freqmin=2.0, freqmax=10.0, corners=4, zerophase=True)
    page = Page(x, interval=0.01)
    page.choose(Shown="B: band-pass", From=2.0, To=10.0)
    np.testing.assert_allclose(executed(page.python, x=x)["filtered"], trace.data, atol=1e-6)


def test_the_trust_report_is_that_of_the_result(page, path):
    recording = wavefilt.read(path)
    shown = " ".join(str(pane.object) for pane in page.viewer.__panel__().select(pn.pane.HTML))
    assert recording.denoise(level=3, backend="pywavelets").trust(recording).summary().split("; ", 1)[1] in shown
    page.choose(Preset="gentle")
    assert "bayes (gentle)" in page.widgets["Threshold rule"].options
    shown = " ".join(str(pane.object) for pane in page.viewer.__panel__().select(pn.pane.HTML))
    gentle = recording.denoise(preset="gentle", backend="pywavelets")
    np.testing.assert_array_equal(page.viewer.denoised.samples, gentle.samples)
    assert gentle.trust(recording).summary().split("; ", 1)[1] in shown


def test_save_writes_what_is_shown_once(page, path, tmp_path):
    page.press("Save out.dat")
    assert "saved" in page.message
    written = (tmp_path / "out.dat").read_bytes()
    wavefilt.read(path).denoise(level=3, backend="pywavelets").write(tmp_path / "expected.dat")
    assert written == (tmp_path / "expected.dat").read_bytes()
    page.choose(Levels="2")
    page.press("Save out.dat")
    assert "out.dat" in page.message
    assert (tmp_path / "out.dat").read_bytes() == written
    other = Page(path, level=2, output=tmp_path / "out.dat", overwrite=True)
    other.press("Save out.dat")
    assert (tmp_path / "out.dat").read_bytes() != written


def test_wiggles_are_the_samples_of_the_result(page, path):
    recording = wavefilt.read(path)
    before, after = recording.samples, recording.denoise(level=3, rule="sure", backend="pywavelets").samples
    page.choose(**{"Picture": "wiggle", "Threshold rule": "sure"})
    assert not page.data("image-after")["image"]
    numbers = np.arange(24)[:, None]
    scale = np.percentile(np.abs(less_mean(before, before)), 99, axis=1).max()
    for panel, rows in (
        ("before", less_mean(before, before)),
        ("after", less_mean(after, before)),
        ("residual", before - after),
    ):
        across, time = page.wiggles(panel)
        np.testing.assert_allclose(across, numbers + np.clip(0.7 * rows / scale, -1.5, 1.5), atol=0.05)
        np.testing.assert_allclose(time[-1], recording.interval * np.arange(rows.shape[1]), rtol=1e-6)
        (filled,) = page.data(f"area-{panel}")["x"]
        filled = filled.reshape(24, -1)[:, 1:-2]
        np.testing.assert_allclose(filled, np.maximum(across, numbers), atol=1e-5)
    before = page.wiggles("after")[0]
    page.choose(Gain=0.5)
    after = page.wiggles("after")[0]
    inside = np.abs(before - numbers) < 1.4
    np.testing.assert_allclose((after - numbers)[inside], 0.5 * (before - numbers)[inside], atol=1e-5)


def test_the_gain_of_the_residual_is_automatic_and_marked():
    x = np.random.default_rng(0).standard_normal((24, 1000)) * np.where(np.arange(1000) < 500, 1, 100)
    page = Page(x, interval=0.001)
    across, _ = page.wiggles("residual")  # the default up to 60 traces
    shifts = across - np.arange(24)[:, None]
    quiet, loud = (np.sqrt(np.mean(part**2)) for part in (shifts[:, 50:400], shifts[:, 600:950]))
    assert quiet == pytest.approx(loud, rel=0.3)
    titles = [title.text for pane in page.panes for title in pane.object.select({"type": Title})]
    assert [title for title in titles if "AGC" in title] == ["residual (before − after), AGC 0.15 s"]


def test_a_window_is_marked_and_the_details_are_those_of_the_result(path):
    page = Page(path, level=3, sigma=("seconds", 0.02, 0.12))
    assert page.windows == [pytest.approx((0.0195, 0.1195))] * 3
    (estimate,) = page.viewer.denoised.outcome.estimates
    for name, values in (("sigma", estimate.sigma), ("threshold", estimate.thresholds)):
        np.testing.assert_allclose(page.data("levels")[name], [np.median(level[level > 0]) for level in values])
    assert page.viewer.details.levels_figure.legend[0] in page.viewer.details.levels_figure.above
    before, after = (page.data(f"spectrum-{panel}")["level"] for panel in ("before", "after"))
    assert before.max() == 0
    assert after[-20:].mean() < before[-20:].mean() - 3
    page.choose(Trace=7)
    assert any("trace 7" in title.text for pane in page.panes for title in pane.object.select({"type": Title}))
    page.choose(Trace=None)  # an empty field
    assert any("trace 0" in title.text for pane in page.panes for title in pane.object.select({"type": Title}))
    page.choose(Noise="of each level")
    assert page.windows == []


def test_a_noise_window_that_differs_between_traces_is_kept():
    first = np.datetime64("2020-01-01", "ns")
    starts = (first, first + np.timedelta64(3, "s"))
    x = np.random.default_rng(4).standard_normal((2, 1000))
    recording = wavefilt.Recording(x, (0.01,) * 2, "npy", None, ids=("A", "B"), starts=starts)
    window = ("window", "2020-01-01T00:00:04", "2020-01-01T00:00:06")
    page = Page(recording, sigma=window)
    page.choose(Wavelet="db2")
    np.testing.assert_array_equal(
        page.viewer.denoised.samples, recording.denoise("db2", sigma=window, backend="pywavelets").samples
    )


def test_samples_of_a_day_are_drawn_at_their_times():
    page = Page(wavefilt.Recording(np.eye(4, 100), (0.01,) * 4, "npy", None, delays=(86400.0,) * 4))
    np.testing.assert_allclose(np.diff(page.wiggles("before")[1]), 0.01, rtol=1e-6)


def test_bands_are_not_called_levels_and_complex_samples_are_named():
    x = np.random.default_rng(2).standard_normal((24, 256))
    page = Page(x, "db2", level=2)
    (axis,) = page.viewer.details.levels_figure.xaxis
    assert axis.axis_label == "level (1 = finest)"
    page.choose(Section=True)
    assert (axis.axis_label, len(page.data("levels")["band"])) == ("band (1 = finest)", 6)
    titles = [Page(rows).viewer.__panel__().select(pn.pane.HTML)[0].object for rows in (x, x + 1j)]
    assert ["real part" in title for title in titles] == [False, True]


def test_times_and_windows_are_those_of_the_first_trace_if_delays_differ():
    x = np.random.default_rng(3).standard_normal((4, 1000))
    recording = wavefilt.Recording(x, (0.002,) * 4, "npy", None, delays=(-1.0, -0.9, -0.8, -0.7))
    page = Page(recording)
    np.testing.assert_allclose(page.wiggles("before")[1][:, 0], -1)
    labels = [axis.axis_label for pane in page.panes for axis in pane.object.select({"type": LinearAxis})]
    assert labels.count("time from the trigger of trace 0 (s)") == 6
    page.viewer.section.on_window(250, 450)
    assert page.windows == [pytest.approx((-0.501, -0.101))] * 3
    assert "sigma=('seconds', -0.5, -0.1)" in page.python


# ------------------------------------------------------------------------------------------------------------ images


def test_large_images_and_long_traces_keep_the_largest_samples():
    x = np.zeros((999, 3301), np.float32)
    x[10, 1000], x[13, 2001], x[-1, -1] = -5, 4, 3
    x[20:22, :8] = np.nan
    page = Page(x, rule=0.0, level=0)
    page.choose(Scale="one for all")
    found = page.image("before")
    assert found.size < 1_000_000
    assert np.nanmin(found) == pytest.approx(-5, rel=0.01)
    assert sorted(found[np.nan_to_num(found) > 1]) == pytest.approx([3, 4], rel=0.01)
    trace, sample = np.unravel_index(np.nanargmin(found), found.shape)
    assert (trace / len(found), sample / found.shape[1]) == pytest.approx((10 / 999, 1000 / 3301), abs=2e-3)
    assert 0 < np.isnan(found).sum() < 10
    page = Page(np.where(np.arange(10_000) == 777, 3.0, np.zeros((180, 1))), level=0)
    page.choose(Picture="wiggle")
    across, _ = page.wiggles("before")
    assert across.size < 100_000
    assert across[0].max() > 2


def test_traces_have_a_scale_of_their_own_and_silent_ones_stay_silent():
    x = np.random.default_rng(1).standard_normal((4, 100)) * [[1000.0], [500.0], [100.0], [1e-9]]
    page = Page(np.tile(x, (6, 1)), level=0)
    page.choose(Picture="density")
    spread = np.ptp(page.image("before"), axis=1)
    assert max(spread[:3]) / min(spread[:3]) < 2
    assert spread[3] < 1e-9


@pytest.mark.parametrize(
    ("values", "shape"), [("noise", (2, 300)), ("gap", (3, 300)), ("zero", (4, 40)), ("nothing", (2, 40))]
)
def test_any_shape_and_any_samples_can_be_viewed(shape, values):
    x = np.random.default_rng(0).standard_normal(shape)
    gap = np.where(np.arange(shape[1]) < 30, np.nan, x)
    page = Page({"noise": x, "zero": 0 * x, "gap": np.ma.masked_invalid(gap), "nothing": np.nan * x}[values])
    page.choose(Picture="wiggle")
    page.choose(Picture="density")
    assert page.data("image-before")["image"][0].size == x.size
    assert np.isnan(page.image("before")).sum() == {"gap": 90, "nothing": x.size}.get(values, 0)


def test_a_single_trace_is_drawn_in_its_units():
    x = 1e6 + np.random.default_rng(0).standard_normal(300)
    page = Page(x)
    (drawn,) = page.data("line-before")["y"]
    np.testing.assert_allclose(drawn[:-1], x, atol=0.1)
    assert not {"Picture", "Scale", "AGC", "Gain"} & set(page.widgets)  # they would change nothing


def test_options_are_those_given_and_a_notebook_gets_the_page():
    x = np.random.default_rng(0).standard_normal((4, 256))
    page = Page(x, "sym4", rule=[2.0, 1.0], level=2)
    assert page.viewer.options == {"wavelet": "sym4", "rule": [2.0, 1.0], "level": 2}
    page.choose(**{"Threshold rule": "sure"})
    assert page.viewer.options["rule"] == "sure"
    page.choose(**{"Threshold rule": "[2.0, 1.0]"})
    close(page.viewer.denoised.samples, wavefilt.denoise(x, "sym4", rule=[2.0, 1.0], level=2))
    assert page.viewer.servable() is page.viewer.__panel__()


def test_without_panel_it_says_what_to_install(capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "panel", None)
    code, _, err = run(capsys, "view", "--no-browser", SAMPLE)
    assert (code, "wavefilt[view]" in err) == (1, True)
    with pytest.raises(ImportError):
        wavefilt.view(np.ones(9))
