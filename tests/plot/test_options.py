"""What a figure shows and how: panels, gain, clip, display and places, in Python and in the command."""

from __future__ import annotations

import inspect
import re
from dataclasses import fields, replace

import numpy as np
import pytest

from tests.support.checkout import SAMPLES, run
from wavefilt import plot, read
from wavefilt.cli.denoise.main import command
from wavefilt.plot.options import Gain, PlotOptions
from wavefilt.recording import Recording

pytest.importorskip("matplotlib")

RANDOM = np.random.default_rng(8)
OFFSETS = [10.0 + 5 * i for i in range(24)]


@pytest.fixture(scope="module")
def shot():
    """The sample shot record, of whose headers offsets are known, and the same denoised."""
    before = read(SAMPLES / "seismic.dat")
    return before, before.denoise(backend="pywavelets")


def panels_of(figure):
    return {axes.get_label(): axes for axes in figure.axes}


def noise(rows, samples=200, interval=0.01, **more):
    return Recording(RANDOM.standard_normal((rows, samples)), (interval,) * rows, "npy", None, "noise.npy", **more)


# ------------------------------------------------------------------------------------------------------------- gain


def test_agc_divides_by_the_rms_around():
    samples = np.cumsum(RANDOM.standard_normal(120)) + np.where(np.arange(120) > 60, 50, 0)
    samples[30:36] = np.nan
    found = Gain(True, 0.08).factors(samples, 0.01)
    for i in range(len(samples)):
        around = samples[max(0, i - 4) : i + 5]
        assert found[i] == pytest.approx(1 / np.sqrt(np.nanmean(around**2)), rel=1e-9)


def test_agc_leaves_silence_silent():
    quiet = np.array([0.0] * 50 + [1e-9] * 50 + [1.0] * 50)
    amplified = quiet * Gain(True, 0.05).factors(quiet, 0.01)
    assert not amplified[:40].any()
    assert amplified[60:90].max() < 1e-5
    np.testing.assert_allclose(amplified[110:], 1, rtol=1e-6)
    assert not Gain(True, 0.05).factors(np.zeros(9), 0.01).any()
    assert np.isfinite(Gain(True, 0.05).factors(np.full(9, 1e200), 0.01)).all()


def test_tpow_multiplies_by_a_power_of_time():
    np.testing.assert_allclose(Gain(False, 1.5).factors(np.ones(4), 0.5), [0, 0.5**1.5, 1, 1.5**1.5])


@pytest.mark.parametrize("gain", ["agc:0.1", "tpow:2"])
def test_panels_have_the_gain_of_the_samples_before(shot, gain):
    before, after = shot
    panels = panels_of(before.plot(after, gain=gain, clip=100, panels="before,after,removed,spectra"))
    noisy, clean, removed = (panels[name].lines[3].get_xdata() - 3 for name in plot.PANELS)
    mean = before.samples[3].mean()
    factors = plot.PlotOptions(gain=gain).amplifier().factors(before.samples[3] - mean, 0.001)
    np.testing.assert_allclose(noisy - clean, removed, atol=1e-9)
    amplified = (before.samples[3] - mean) * factors
    np.testing.assert_allclose(noisy, amplified / np.abs(amplified - amplified.mean()).max(), atol=0.02)
    plain = panels_of(before.plot(after, panels="spectra"))["spectra"]
    np.testing.assert_array_equal(panels["spectra"].lines[0].get_ydata(), plain.lines[0].get_ydata())


def test_amplitudes_tell_their_gain_and_unit(shot):
    one = replace(shot[0], traces=shot[0].samples[:1], intervals=(0.001,))
    for gain, unit in ((None, "data units"), ("agc:0.25", "RMS in 0.25 s"), ("tpow:2", "data units × s^2")):
        assert panels_of(one.plot(gain=gain))["before"].get_ylabel() == f"amplitude ({unit})"


# ------------------------------------------------------------------------------------------------- clip and display


def test_clip_is_the_percentile_that_is_drawn_as_full_scale(shot):
    before, _ = shot
    image = panels_of(before.plot(display="density", clip=90))["before"].images[0]
    trace = before.samples[7].astype(float)
    column = np.asarray(image.get_array())[:, 7]
    drawn = (trace - trace.mean()) / np.percentile(np.abs(trace - trace.mean()), 90)
    assert image.get_clim() == (-1, 1)
    assert np.abs(column).max() == pytest.approx(np.abs(drawn).max(), rel=0.02)
    assert np.mean(np.abs(column) > 1) == pytest.approx(0.1, abs=0.02)


def test_clip_limits_the_axis_of_a_single_trace():
    spiky = noise(1)
    spiky.traces[0, 50] = 100
    limits = [panels_of(spiky.plot(clip=clip))["before"].get_ylim()[1] for clip in (None, 95)]
    assert limits[0] > 100
    assert limits[1] < 5


@pytest.mark.parametrize(
    ("rows", "display", "found"),
    [
        (3, None, "seismogram"),
        (24, None, "wiggle"),
        (61, None, "density"),
        (3, "density", "density"),
        (24, "seismogram", "seismogram"),
        (61, "wiggle", "wiggle"),
    ],
)
def test_display_follows_the_number_of_traces(rows, display, found):
    before = panels_of(noise(rows, 70).plot(display=display, panels="before"))["before"]
    lines = [len(line.get_xdata()) == 70 for line in before.lines]
    assert (len(before.images), sum(lines)) == ((1, 0) if found == "density" else (0, rows))
    down = before.get_ylabel() == "time (s)"
    assert down == (found != "seismogram")


def test_a_density_has_a_colour_bar_with_its_unit(shot):
    before, after = shot
    figure = before.plot(after, display="density", gain="agc:0.1", clip=98)
    figure.draw_without_rendering()
    bars = [axes for axes in figure.findobj(type(figure.axes[0])) if "quantile" in axes.get_ylabel()]
    assert [bar.get_ylabel() for bar in bars] == ["amplitude / 98 % quantile of |trace| with AGC 0.1 s"]
    assert bars[0].get_ylim() == (-1, 1)


def test_few_traces_lie_horizontally_with_ids_and_their_scales():
    start = np.datetime64("2020-05-01T12:00:00", "ns")
    ids = ("BW.FUR..EHZ", "BW.FUR..EHN", "GR.WET..BHZ")
    before = noise(3, ids=ids, starts=(start,) * 3)
    before.traces[1] *= 30
    figure = before.plot(before.denoise(backend="pywavelets"))
    figure.draw_without_rendering()
    panels = panels_of(figure)
    for name in plot.PANELS:
        axes = panels[name]
        assert [label.get_text() for label in axes.get_yticklabels()] == list(ids)
        (right,) = axes.child_axes
        scales = [float(label.get_text().removeprefix("±")) for label in right.get_yticklabels()]
        largest = [np.abs(trace - trace.mean()).max() for trace in before.traces]
        assert scales == pytest.approx(largest, rel=0.01)
        assert len(axes.lines) == 3
        swings = [np.abs(line.get_ydata() - row).max() for row, line in enumerate(axes.lines)]
        assert max(swings) < 0.5  # none reaches into another row
        if name == "before":
            assert min(swings) > 0.4
    assert panels["removed"].get_xlabel() == "UTC, from 2020-05-01 12:00:00"
    assert any("half a row: amplitude (data units)" in text.get_text() for text in figure.texts)


# ----------------------------------------------------------------------------------------------------------- places


@pytest.mark.parametrize("name", ["seismic.dat", "line.sgy", "line.su"])
def test_offsets_are_those_of_the_headers(shot, tmp_path, name):
    if name == "seismic.dat":
        assert shot[0].offsets == tuple(OFFSETS)
        return
    shot[0].write(tmp_path / name)
    assert read(tmp_path / name).offsets == tuple(OFFSETS)


def test_offsets_are_signed_and_in_metres(tmp_path):
    """With the source at 60 feet there are receivers on both sides; SEG-Y, as it is written, has distances."""
    data = (SAMPLES / "seismic.dat").read_bytes()
    moved = data.replace(b"SOURCE_LOCATION 0.00", b"SOURCE_LOCATION 60.0").replace(b"UNITS METERS", b"UNITS FEET  ")
    (tmp_path / "moved.dat").write_bytes(moved)
    found, expected = read(tmp_path / "moved.dat"), 0.3048 * (np.array(OFFSETS) - 60)
    np.testing.assert_allclose(found.offsets, expected)
    found.write(tmp_path / "moved.sgy")
    np.testing.assert_allclose(read(tmp_path / "moved.sgy").offsets, abs(expected))


def shuffled(offsets, samples=300):
    """A recording whose headers have these offsets, each trace with its offset as amplitude."""
    found = Recording(np.array(offsets)[:, None] * np.sin(np.arange(samples)), (0.01,) * len(offsets), "npy", None)
    vars(found)["offsets"] = tuple(offsets)
    return found


def test_wiggles_lie_at_their_offsets():
    axes = panels_of(shuffled([30, -20, 10, 20]).plot(traces_by="offset", display="wiggle"))["before"]
    means = [line.get_xdata().mean() for line in axes.lines]
    assert means == pytest.approx([-20, 10, 20, 30], abs=0.5)
    assert [np.ptp(line.get_xdata()) for line in axes.lines] == pytest.approx([20, 20, 20, 20], rel=0.05)
    assert axes.get_xlabel().startswith("offset (m)")


def test_an_image_has_gaps_where_there_are_no_traces():
    offsets = [*range(0, 50, 5), *range(80, 100, 5)]
    axes = panels_of(shuffled(offsets[::-1]).plot(traces_by="offset", display="density"))["before"]
    image = axes.images[0]
    columns = np.ma.filled(image.get_array(), np.nan)
    assert columns.shape[1] == 20
    assert np.flatnonzero(np.isnan(columns).all(axis=0)).tolist() == [10, 11, 12, 13, 14, 15]
    assert image.get_extent()[:2] == [-2.5, 97.5]
    assert axes.get_xlabel() == "offset (m)"


def test_traces_of_ids_can_be_drawn_apart():
    start = np.datetime64("2020-05-01", "ns")
    before = noise(4, ids=("A", "A", "B", "B"), starts=(start,) * 4)
    for by, labels in (("id", ["A", "B"]), (None, ["A", "B"]), ("trace", [f"trace {i}" for i in range(4)])):
        axes = panels_of(before.plot(traces_by=by))["before"]
        assert [label.get_text() for label in axes.get_yticklabels()] == labels


def test_what_a_file_has_no_headers_for_is_said(shot):
    for by, words in (
        ("offset", "noise.npy has no offsets: its headers [(]npy[)]"),
        ("id", "no station ids [(]npy[)]"),
    ):
        with pytest.raises(ValueError, match=f"traces_by='{by}': .*{words}"):
            noise(3).plot(traces_by=by)
    with pytest.raises(ValueError, match=r"gain='agc:1' needs the sampling interval, which noise.npy lacks: dt=\.\.\."):
        noise(3, interval=None).plot(gain="agc:1")


# ----------------------------------------------------------------------------------------------------------- panels


@pytest.mark.parametrize(
    ("panels", "labels"),
    [
        ("before", {"before"}),
        (["removed", "after"], {"after", "removed"}),
        ("spectra", {"spectra"}),
        ("levels,before", {"before", "energies", "thresholds"}),
        ("spectrograms", {"spectrogram before", "spectrogram after", "decibels"}),
    ],
)
def test_panels_are_those_asked_for(shot, panels, labels):
    assert set(panels_of(shot[0].plot(shot[1], panels=panels))) == labels


def test_a_recording_is_drawn_alone(shot):
    before, after = shot
    alone = {"before", "spectrogram before", "decibels", "spectra"}
    assert set(panels_of(before.plot())) == alone
    figure = after.plot()
    assert set(panels_of(figure)) == {*alone, "energies", "thresholds"}
    title = " ".join(text.get_text() for text in figure.texts)
    assert "rule bayes" in title
    assert "removed" not in title
    with pytest.raises(ValueError, match="panels='removed' needs the denoised recording too"):
        before.plot(panels="before,removed")


def test_every_axis_has_a_unit(shot):
    """Brackets with the unit, or it alone, on every axis that has numbers."""
    unit = re.compile(r"[(].+[)]|^dB|^UTC|^data units$")
    few = noise(3, ids=("A", "B", "C"), starts=(np.datetime64("2020-05-01", "ns"),) * 3)
    figures = [shot[0].plot(shot[1], display=display) for display in ("wiggle", "density")]
    for figure in [*figures, few.plot(few.denoise(backend="pywavelets")), noise(1).plot()]:
        for name, axes in panels_of(figure).items():
            shown = {
                "x": (axes.get_xlabel(), axes.xaxis.get_tick_params()["labelbottom"]),
                "y": (axes.get_ylabel() or axes.get_title(), axes.yaxis.get_tick_params()["labelleft"]),
            }
            for axis, (label, numbers) in shown.items():
                texts = [text.get_text() for text in getattr(axes, f"get_{axis}ticklabels")()]
                plain = all(re.fullmatch(r"[−\d.:\- ]*", text) for text in texts)
                if numbers and plain and any(texts) and name != "decibels":
                    assert unit.search(label), (name, axis, label, texts)


# ------------------------------------------------------------------------------------------------------------ files


def test_text_of_an_svg_is_text_and_the_same_data_give_the_same_file(shot, tmp_path):
    few = noise(3, 100)
    texts = []
    for name in ("a.svg", "b.svg"):
        few.plot(path=tmp_path / name, panels="before,spectra")
        texts.append((tmp_path / name).read_text())
    assert texts[0] == texts[1]
    for words in ("trace 2", "time (s)", "frequency (Hz)", "half a row: amplitude (data units)"):
        assert f">{words}</text>" in texts[0]
    assert "<image" not in texts[0]


def test_many_wiggles_are_an_image_in_an_svg(shot, tmp_path):
    shot[0].plot(shot[1], path=tmp_path / "many.svg", panels="before,after,removed", dpi=60)
    many = (tmp_path / "many.svg").read_text()
    assert many.count("<image") >= 3
    assert len(many) < 1_000_000
    assert ">offset (m)<" not in many
    assert ">trace (from 0)<" in many


def test_a_figure_is_written_once_and_shown_in_a_notebook(tmp_path):
    few = noise(2, 50)
    figure = few.plot(path=tmp_path / "p.png", panels="before", dpi=40)
    written = (tmp_path / "p.png").read_bytes()
    assert figure._repr_html_().startswith('<img alt="the traces" src="data:image/png;base64,iVBOR')
    with pytest.raises(FileExistsError):
        few.plot(path=tmp_path / "p.png")
    assert (tmp_path / "p.png").read_bytes() == written
    with pytest.raises(ValueError, match="figures are written as"):
        few.plot(path=tmp_path / "p.jpg")


# ----------------------------------------------------------------------------------------- wrong values, the command

WRONG = {
    "panels": [("befor", r"is not one of before, after, .*; did you mean 'before'\?"), ("", "is not one of")],
    "gain": [(word, "is neither agc:SECONDS") for word in ("agc", "agc:0", "agc:x", "2", "tpow:-1", "agc:nan", "t^2")],
    "clip": [(0, "a percentile above 0 and up to 100"), (100.5, "a percentile"), (float("nan"), "a percentile")],
    "display": [("wigle", "is not one of seismogram, wiggle, density; did you mean 'wiggle'")],
    "traces_by": [("station", "is not one of trace, offset, id")],
}


def test_no_panel_is_refused():
    with pytest.raises(ValueError, match="panels: name at least one of before, after"):
        noise(2).plot(panels=[])


@pytest.mark.parametrize(("name", "value", "words"), [(n, *case) for n, cases in WRONG.items() for case in cases])
def test_wrong_values_are_refused(name, value, words, tmp_path, capsys, monkeypatch):
    with pytest.raises(ValueError, match=words):
        noise(2).plot(**{name: value})
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", noise(2).samples)
    flag = f"--{name.replace('_', '-')}"
    code, _, err = run(capsys, "denoise", "x.npy", "--plot", "p.png", flag, str(value))
    assert (code, sorted(path.name for path in tmp_path.iterdir())) == (2, ["x.npy"])
    assert flag in err


def test_options_have_the_same_names_everywhere():
    names = {field.name for field in fields(PlotOptions)}
    assert names == set(WRONG)
    assert names <= inspect.signature(Recording.plot).parameters.keys()
    assert names <= {parameter.name for parameter in command.params}


def test_the_command_draws_what_is_asked_for(tmp_path, capsys, monkeypatch):
    drawn = {}
    monkeypatch.setattr(plot, "draw", lambda *given: drawn.setdefault("given", given) and None)
    monkeypatch.setattr(plot, "render", lambda *_: b"a figure")
    options = ["--panels", "before,levels", "--gain", "tpow:2", "--clip", "95", "--display", "density"]
    out, figure = tmp_path / "out.dat", tmp_path / "p.svg"
    done = run(
        capsys, "denoise", SAMPLES / "seismic.dat", "-o", out, "--plot", figure, *options, "--traces-by", "offset"
    )
    assert done[0] == 0, done
    before, after, chosen = drawn["given"]
    assert chosen == PlotOptions("before,levels", "tpow:2", 95, "density", "offset")
    assert (before.outcome, len(after.traces), figure.read_bytes()) == (None, 24, b"a figure")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ("--gain agc:1", "--gain is an option of --plot"),
        ("--plot p.png --traces-by offset", "--traces-by offset: x.npy has no offsets"),
        ("--plot p.png --gain agc:1", "needs the sampling interval, which x.npy lacks: --dt ..."),
    ],
)
def test_the_command_refuses_before_it_writes(tmp_path, capsys, monkeypatch, options, words):
    monkeypatch.chdir(tmp_path)
    np.save("x.npy", noise(2).samples)
    code, _, err = run(capsys, "denoise", "x.npy", *options.split())
    assert (code, sorted(path.name for path in tmp_path.iterdir())) == (2, ["x.npy"])
    assert words in err
