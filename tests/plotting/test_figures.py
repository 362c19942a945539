"""Figures of recordings: each option draws what it says, all panels have one scale, and odd inputs can be drawn."""

from __future__ import annotations

import re
import shlex
import sys

import numpy as np
import pytest

from tests.support.checkout import ROOT, SAMPLES, run
from wavefilt import Recording, read

matplotlib = pytest.importorskip("matplotlib")

RANDOM = np.random.default_rng(8)
OFFSETS = [10.0 + 5 * i for i in range(24)]
TRACES = ("before", "after", "residual")
GATHER = 0.2 * RANDOM.standard_normal((6, 600)) + np.sin(np.linspace(0, 40, 600)) * np.exp(-np.linspace(0, 3, 600))
MIDNIGHT = np.datetime64("2017-01-01", "ns")


def recording(traces, interval=0.002, source="line.dat", **more):
    return Recording(traces, (interval,) * len(traces), "npy", None, source, **more)


def noise(rows, samples=200, interval=0.01, **more):
    return recording(RANDOM.standard_normal((rows, samples)), interval, "noise.npy", **more)


def timed(starts, ids, samples=300, interval=0.01):
    """Noise of traces that start so many seconds after midnight."""
    times = tuple(MIDNIGHT + np.timedelta64(round(1e9 * seconds), "ns") for seconds in starts)
    return noise(len(starts), samples, interval, ids=ids, starts=times)


def panels_of(figure):
    return {axes.get_label(): axes for axes in figure.axes}


def drawn(before, chosen=None, **options):
    """The panels of a figure of the recording and its denoised traces, by their labels."""
    return panels_of(before.plot(before.denoise(backend="pywavelets", **options), **chosen or {}))


def texts(artist):
    return " ".join(text.get_text() for text in artist.texts)


def labels(axis):
    axis.axes.figure.canvas.figure.draw_without_rendering()
    return [label.get_text() for label in axis.get_ticklabels()]


@pytest.fixture(scope="module")
def shot():
    """The sample record, whose headers have offsets, and the same denoised."""
    before = read(SAMPLES / "seismic.dat")
    return before, before.denoise(backend="pywavelets")


@pytest.fixture(scope="module")
def gather():
    """A recording, the same denoised, and the panels of their figure."""
    before = recording(GATHER * np.array([1, 3, 1, 1, 5, 1])[:, None] + 5)
    after = before.denoise(level=3, backend="pywavelets")
    return before, after, panels_of(before.plot(after))


# ------------------------------------------------------------------------------------------------------------ panels


@pytest.mark.parametrize(
    ("panels", "found"),
    [
        ("before", {"before"}),
        (["residual", "after"], {"after", "residual"}),
        ("spectra", {"spectra"}),
        ("levels,before", {"before", "energies", "thresholds"}),
        ("spectrograms", {"spectrogram before", "spectrogram after", "decibels"}),
    ],
)
def test_panels_are_those_asked_for(shot, panels, found):
    assert set(panels_of(shot[0].plot(shot[1], panels=panels))) == found


def test_a_recording_is_drawn_alone(shot):
    before, after = shot
    alone = {"before", "spectrogram before", "decibels", "spectra"}
    assert set(panels_of(before.plot())) == alone
    figure = after.plot()
    assert set(panels_of(figure)) == {*alone, "energies", "thresholds"}
    assert "js" in texts(figure)


def test_one_scale_for_wiggles_and_a_single_trace(gather):
    before, _, panels = gather
    assert len({(panels[name].get_xlim(), panels[name].get_ylim()) for name in TRACES}) == 1
    assert panels["before"].get_ylim() == (1.2, 0)  # time downwards
    single = drawn(recording(GATHER[:1]))
    assert len({(single[name].get_xlim(), single[name].get_ylim()) for name in TRACES}) == 1
    np.testing.assert_array_equal(single["before"].lines[0].get_ydata(), GATHER[0])
    for index in range(len(before.traces)):
        noisy, clean, residual = (panels[name].lines[index].get_xdata() - index for name in TRACES)
        inside = np.abs(noisy) < 1.5  # what goes further is cut
        np.testing.assert_allclose((noisy - clean)[inside], residual[inside], atol=1e-9)
        assert 0.8 < np.abs(noisy).max() < 1.7


def test_one_scale_for_images():
    panels = drawn(recording(np.tile(GATHER, (11, 1))))
    images = [panels[name].images[0] for name in TRACES]
    assert {image.get_clim() for image in images} == {(-1, 1)}
    before, after, residual = (np.asarray(image.get_array()) for image in images)
    assert before.shape[1] == 66
    np.testing.assert_allclose(before - after, residual, atol=1e-9)


def test_spectrograms_and_spectra_show_a_tone_at_its_frequency(gather):
    panels = drawn(recording(np.sin(2 * np.pi * 60 * 0.002 * np.arange(2000))[None]))
    image = np.asarray(panels["spectrogram before"].images[0].get_array())
    assert np.linspace(0, 250, len(image))[np.argmax(image[:, 200])] == pytest.approx(60, abs=3)
    frequencies, decibels = panels["spectra"].lines[0].get_data()
    assert frequencies[np.argmax(decibels)] == pytest.approx(60, abs=1)
    assert frequencies[-1] == 250
    spectrograms = [gather[2]["spectrogram before"], gather[2]["spectrogram after"]]
    assert len({axes.images[0].get_clim() for axes in spectrograms}) == 1
    assert all("trace 4" in axes.get_title() for axes in spectrograms)  # the strongest


def test_levels_show_noise_and_thresholds(gather):
    _, after, panels = gather
    (estimate,) = after.outcome.estimates
    threshold, sigma = (line.get_ydata() for line in panels["thresholds"].lines)
    np.testing.assert_allclose(threshold, np.median(estimate.thresholds, axis=1))
    np.testing.assert_allclose(sigma, np.median(estimate.sigma, axis=1))
    assert "not measured" in texts(panels["energies"])
    assert "no levels" in texts(drawn(recording(GATHER[:1, :14]))["energies"])


def test_the_command_draws_what_is_asked_for_with_energies(tmp_path, capsys, monkeypatch, shot):
    figures = []
    monkeypatch.setattr(matplotlib.figure.Figure, "savefig", lambda figure, *_, **__: figures.append(figure))
    line = "--panels before,levels --gain tpow:2 --clip 95 --display density --traces-by offset"
    options = ["-o", tmp_path / "out.dat", "--plot", tmp_path / "p.svg", *line.split()]
    assert run(capsys, "denoise", SAMPLES / "seismic.dat", *options)[0] == 0
    panels = panels_of(figures[0])
    chosen = {"gain": "tpow:2", "clip": 95, "display": "density", "traces_by": "offset"}
    expected = panels_of(shot[0].plot(shot[1], panels="before,levels", **chosen))
    assert set(panels) == set(expected)
    assert panels["before"].get_xlabel() == expected["before"].get_xlabel()
    images = [found["before"].images[0].get_array() for found in (panels, expected)]
    np.testing.assert_array_equal(*images)
    heights = [bar.get_height() for bar in panels["energies"].patches]
    assert len(heights) in (5, 6)
    assert sum(heights) == pytest.approx(100)


def test_lines_have_colours_that_colour_blind_readers_can_distinguish(shot):
    """Check that they are of the palette of Okabe and Ito, with grey for black."""
    palette = ["#4d4d4d", "#e69f00", "#56b4e9", "#009e73", "#f0e442", "#0072b2", "#d55e00", "#cc79a7"]
    panels = panels_of(shot[0].plot(shot[1], panels="spectra,levels"))
    for name, count in (("spectra", 3), ("thresholds", 2)):
        colours = {matplotlib.colors.to_hex(line.get_color()) for line in panels[name].lines}
        assert len(colours & {*palette}) == count


# ------------------------------------------------------------------------------------------ gain, clip and display


def amplified(samples, gain, interval):
    """A trace as the panel of a single one shows it."""
    (line,) = panels_of(recording(samples[None], interval).plot(gain=gain, panels="before"))["before"].lines
    return line.get_ydata()


def test_agc_divides_by_the_rms_around():
    samples = RANDOM.standard_normal(120) + np.where(np.arange(120) > 60, 50, 0)
    samples[30:36] = np.nan
    centred = samples - np.nanmean(samples)
    around = [np.sqrt(np.nanmean(centred[max(0, i - 4) : i + 5] ** 2)) for i in range(120)]
    found = amplified(centred, "agc:0.08", 0.01)
    np.testing.assert_allclose(found[np.isfinite(found)], (centred / around)[np.isfinite(samples)], rtol=1e-6)


def test_agc_leaves_silence_silent():
    quiet = np.array([0.0] * 50 + [1e-9, -1e-9] * 25 + [1.0, -1.0] * 25)
    found = amplified(quiet, "agc:0.05", 0.01)
    assert not found[:40].any()
    assert found[60:90].max() < 1e-5
    np.testing.assert_allclose(np.abs(found[110:]), 1, rtol=1e-6)
    assert np.isfinite(amplified(np.array([1e200, -1e200] * 9), "agc:0.05", 0.01)).all()


def test_tpow_multiplies_by_a_power_of_time():
    found = amplified(np.array([1.0, -1, 1, -1]), "tpow:1.5", 0.5)
    np.testing.assert_allclose(found, [0, -(0.5**1.5), 1, -(1.5**1.5)])
    parts = timed([20, 26], ["A", "A"])  # the time of the second part continues
    once, twice = (panels_of(parts.plot(gain=f"tpow:{n}", panels="before"))["before"].lines[0] for n in (1, 2))
    assert twice.get_ydata()[-1] / once.get_ydata()[-1] == pytest.approx(8.99)


@pytest.mark.parametrize("gain", ["agc:0.1", "tpow:2"])
def test_all_panels_have_the_gain_of_the_samples_before(shot, gain):
    before, after = shot
    panels = panels_of(before.plot(after, gain=gain, clip=100, panels="before,after,residual,spectra"))
    noisy, clean, residual = (panels[name].lines[3].get_xdata() - 3 for name in TRACES)
    np.testing.assert_allclose(noisy - clean, residual, atol=1e-9)
    centred = before.samples[3] - before.samples[3].mean()
    expected = amplified(centred, gain, 0.001)
    np.testing.assert_allclose(noisy, expected / np.abs(expected - expected.mean()).max(), atol=0.02)
    plain = panels_of(before.plot(after, panels="spectra"))["spectra"]
    np.testing.assert_array_equal(panels["spectra"].lines[0].get_ydata(), plain.lines[0].get_ydata())


def test_amplitudes_tell_their_gain_and_unit():
    for gain, unit in ((None, "data units"), ("agc:0.25", "RMS in 0.25 s"), ("tpow:2", "data units × s^2")):
        assert unit in panels_of(noise(1).plot(gain=gain, panels="before"))["before"].get_ylabel()


def test_clip_is_the_percentile_that_is_drawn_as_full_scale(shot):
    image = panels_of(shot[0].plot(display="density", clip=90, panels="before"))["before"].images[0]
    trace = shot[0].samples[7].astype(float)
    column = np.asarray(image.get_array())[:, 7]
    scaled = (trace - trace.mean()) / np.percentile(np.abs(trace - trace.mean()), 90)
    assert image.get_clim() == (-1, 1)
    assert np.abs(column).max() == pytest.approx(np.abs(scaled).max(), rel=0.02)
    assert np.mean(np.abs(column) > 1) == pytest.approx(0.1, abs=0.02)
    spiky = noise(1)
    spiky.traces[0, 50] = 100
    limits = [panels_of(spiky.plot(clip=clip, panels="before"))["before"].get_ylim()[1] for clip in (None, 95)]
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
    assert (before.get_ylabel() == "time (s)") == (found != "seismogram")


def test_a_density_has_a_colour_bar_with_its_unit(shot):
    figure = shot[0].plot(shot[1], display="density", gain="agc:0.1", clip=98, panels="before")
    figure.draw_without_rendering()
    (bar,) = [axes for axes in figure.findobj(type(figure.axes[0])) if "98th" in axes.get_ylabel()]
    assert bar.get_ylim() == (-1, 1)
    assert "AGC 0.1 s" in bar.get_ylabel()


def test_few_traces_lie_horizontally_with_ids_and_their_scales():
    ids = ("BW.FUR..EHZ", "BW.FUR..EHN", "GR.WET..BHZ")
    before = timed((0, 0, 0), ids, 200)
    before.traces[1] *= 30
    panels = drawn(before)
    for name in TRACES:
        axes = panels[name]
        assert labels(axes.yaxis) == list(ids)
        (right,) = axes.child_axes
        scales = [float(label.get_text().removeprefix("±")) for label in right.get_yticklabels()]
        assert scales == pytest.approx([np.abs(trace - trace.mean()).max() for trace in before.traces], rel=0.01)
        swings = [np.abs(line.get_ydata() - row).max() for row, line in enumerate(axes.lines)]
        assert max(swings) < 0.5  # none reaches into another row
        assert name != "before" or min(swings) > 0.4
    assert "2017-01-01 00:00:00" in panels["residual"].get_xlabel()


# ----------------------------------------------------------------------------------------------------------- places


def test_offsets_are_signed_and_in_metres(tmp_path):
    """With the source at 60 feet there are receivers on both sides; SEG-Y keeps the signs."""
    data = (SAMPLES / "seismic.dat").read_bytes()
    moved = data.replace(b"SOURCE_LOCATION 0.00", b"SOURCE_LOCATION 60.0").replace(b"UNITS METERS", b"UNITS FEET  ")
    (tmp_path / "moved.dat").write_bytes(moved)
    found, expected = read(tmp_path / "moved.dat"), 0.3048 * (np.array(OFFSETS) - 60)
    np.testing.assert_allclose(found.offsets, expected)
    found.write(tmp_path / "moved.sgy")
    np.testing.assert_allclose(read(tmp_path / "moved.sgy").offsets, expected)


def test_traces_lie_at_their_offsets(tmp_path):
    offsets = [*range(50, -10, -5), *OFFSETS[12:]]
    places = iter(f"RECEIVER_LOCATION {offset:05.2f}".encode() for offset in offsets)
    data = re.sub(rb"RECEIVER_LOCATION [\d.]+", lambda _: next(places), (SAMPLES / "seismic.dat").read_bytes())
    (tmp_path / "moved.dat").write_bytes(data)
    before = read(tmp_path / "moved.dat")
    assert before.offsets == tuple(map(float, offsets))
    chosen = {"traces_by": "offset", "panels": "before"}
    axes = panels_of(before.plot(display="wiggle", **chosen))["before"]
    means = [line.get_xdata().mean() for line in axes.lines]
    assert means == pytest.approx(sorted(offsets), abs=2)
    assert axes.get_xlabel().startswith("offset (m)")
    axes = panels_of(before.plot(display="density", **chosen))["before"]
    columns = np.ma.filled(axes.images[0].get_array(), np.nan)
    edges = np.linspace(*axes.images[0].get_extent()[:2], columns.shape[1] + 1)
    gaps = edges[:-1][np.isnan(columns).all(axis=0)]
    assert gaps.tolist() == [52.5, 57.5, 62.5]
    assert axes.get_xlabel() == "offset (m)"


def test_traces_of_ids_can_be_drawn_apart():
    before = timed((0, 0, 0, 0), ("A", "A", "B", "B"))
    for by, found in (("id", ["A", "B"]), (None, ["A", "B"]), ("trace", [f"trace {i}" for i in range(4)])):
        assert labels(panels_of(before.plot(traces_by=by, panels="before"))["before"].yaxis) == found


# ------------------------------------------------------------------------------------------------------------ times


def test_traces_of_an_id_are_one_line_with_its_gaps_at_their_times():
    panels = drawn(timed((86390, 86395, 86402), ("BW.FUR..EHZ",) * 3))
    (line,) = panels["before"].lines
    times, samples = line.get_data()
    inside = np.isfinite(samples)
    found = times[inside][[0, 299, 300, 599, 600, -1]]
    np.testing.assert_allclose(found, 86390 + np.array([0, 2.99, 5, 7.99, 12, 14.99]))
    assert np.flatnonzero(~inside).tolist() == [300, 601]
    assert panels["before"].get_xlim() == (86390, 86405)
    assert panels["residual"].get_xlabel() == "UTC, from 2017-01-01 23:59:50"
    assert labels(panels["residual"].xaxis) == ["23:59:50", "23:59:55", "01-02 00:00:00", "00:00:05"]


def test_rows_have_ids_and_utc():
    before = timed((50, 55, 51.5), ("A", "A", "B"))
    panels = drawn(before)
    assert labels(panels["before"].yaxis) == ["A", "B"]
    assert panels["spectrogram before"].get_title().endswith((" A", " B"))
    downwards = drawn(before, {"display": "wiggle"})["before"]
    assert labels(downwards.xaxis) == ["A", "B"]
    assert downwards.get_ylim() == (58, 50)
    assert downwards.lines[1].get_ydata()[0] == 51.5
    for label in (panels["residual"].get_xlabel(), downwards.get_ylabel()):
        assert label.startswith("UTC, from 2017-01-01 00:00:50")


def test_an_image_has_gaps_at_their_times():
    (image,) = drawn(timed((0,) * 70 + (9,) * 70, tuple(f"S{i}" for i in range(70)) * 2))["before"].images
    columns = np.ma.filled(image.get_array(), np.nan)
    seconds = np.linspace(0, 12, len(columns), endpoint=False)
    assert columns.shape[1] == 70
    assert np.isnan(columns[(seconds > 3.1) & (seconds < 8.9)]).all()
    assert np.isfinite(columns[(seconds < 2.9) | (seconds > 9.1)]).all()


@pytest.mark.parametrize(
    ("first", "interval", "expected"),
    [
        (0.2, 1e-5, ["00:00:00.2000", "00:00:00.2002", "00:00:00.2004"]),
        (7200, 0.6, ["02:00:00", "02:00:10", "02:00:20"]),
        (3000, 870, ["06:00", "12:00", "18:00", "01-02 00:00"]),
        (0, 25920, ["01-01 00:00", "01-06 00:00", "01-11 00:00"]),
    ],
)
def test_ticks_are_round_times(first, interval, expected):
    axes = panels_of(timed((first,), ("A",), 100, interval).plot(panels="before", display="seismogram"))["before"]
    assert labels(axes.xaxis)[: len(expected)] == expected


# -------------------------------------------------------------------------------------------------------- odd inputs


def spoiled():
    """Gaps, a trace of nothing but a gap, and a dead trace."""
    traces = GATHER.copy()
    traces[1, 100:250] = traces[2, :] = np.nan
    traces[3] = 0
    return traces


ODD = {
    "gaps and a dead trace": recording(spoiled()),
    "a gap in one trace": recording(spoiled()[1:2]),
    "nothing but gaps": recording(np.full((2, 50), np.nan)),
    "dead record": recording(np.zeros((3, 200))),
    "constant": recording(np.full((1, 300), 1234.56)),
    "one sample": recording(np.array([[3.0]])),
    "one sample a trace": recording(np.arange(3.0)[:, None]),
    "three samples": recording(np.array([[1.0, 2.0, 1.0]])),
    "ragged": recording([GATHER[0], GATHER[1, :77], GATHER[2, :1], GATHER[3, :0]]),
    "many ragged": recording([trace[: 40 + i] for i, trace in enumerate(np.tile(spoiled(), (12, 1)))], None),
    "intervals differ": Recording(list(GATHER[:2]), (0.001, 0.004), "npy", None),
    "an interval unknown": Recording(list(GATHER[:2]), (0.001, None), "npy", None),
    "complex": recording(GATHER[:2] + 1j * GATHER[2:4]),
    "unsigned integers": recording((100 + 20 * GATHER).astype(np.uint8)[:1]),
    "huge": recording(GATHER[:1] * 1e120),
    "an odd name": recording(GATHER[:1] * 1e-30, source="$記録_{x$\n.dat"),
}
RENDERED = ("gaps and a dead trace", "constant", "one sample", "dead record", "an odd name")
"""Inputs for which matplotlib would warn, which it does only when it renders."""


@pytest.mark.parametrize("name", ODD)
def test_odd_inputs_are_drawn(name, tmp_path):
    before = ODD[name]
    path = {"path": tmp_path / "p.png", "dpi": 20} if name in RENDERED else {}
    panels = drawn(before, path)
    assert {*TRACES, "spectra", "energies", "thresholds"} <= set(panels)
    assert [len(panels[label].images) for label in TRACES] == [name == "many ragged"] * 3
    assert not path or path["path"].read_bytes().startswith(b"\x89PNG")


def test_unknown_intervals_and_given_thresholds():
    figure = recording(GATHER[:2], None).plot(recording(GATHER[:2], None).denoise(rule=0.25))
    panels = panels_of(figure)
    assert panels["residual"].get_xlabel().startswith("time (samples)")
    assert "cycles/sample" in panels["spectra"].get_xlabel()
    assert "0.25" in texts(figure)


def test_title_tells_source_and_method():
    before = recording(GATHER, source="/data/line 7.dat")
    after = before.denoise(wavelet="sym8", rule="sure", shrink="firm", level=4)
    share = 100 * np.var(before.samples - after.samples, axis=1).sum() / np.var(before.samples, axis=1).sum()
    title = texts(before.plot(after))
    for word in ("line 7.dat", "sym8", "level 4", "sure", "firm", f"{share:.3g} %"):
        assert word in title


def test_long_traces_are_drawn_by_their_extremes():
    trace = RANDOM.standard_normal(3_000_001).astype(np.float32)
    trace[1_234_567] = 50  # one sample that skipping samples would miss
    panels = panels_of(recording(trace[None]).plot(recording(0.5 * trace[None])))
    line = panels["before"].lines[0]
    assert len(line.get_xdata()) < 10_000
    assert line.get_ydata().max() == 50
    assert line.get_xdata()[np.argmax(line.get_ydata())] == pytest.approx(1_234_567 * 0.002, rel=1e-3)
    assert panels["residual"].lines[0].get_ydata().max() == 25


# ------------------------------------------------------------------------------------------------------------ files


@pytest.mark.parametrize(("extension", "magic"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("SVG", b"<?xml")])
def test_file_types(tmp_path, extension, magic):
    path = tmp_path / f"figure.{extension}"
    before = recording(GATHER[:2, :60])
    figure = before.plot(before, path=path, panels="before", dpi=40)
    written = path.read_bytes()
    assert written.startswith(magic)
    assert figure._repr_html_().startswith("<img ")  # as notebooks show it
    with pytest.raises(FileExistsError):
        before.plot(before, path=path)
    assert path.read_bytes() == written
    before.plot(before, path=path, panels="after", dpi=20, overwrite=True)
    assert path.read_bytes() != written
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_text_of_an_svg_is_text_and_the_same_data_give_the_same_file(tmp_path):
    few = noise(3, 100)
    for name in ("a.svg", "b.svg"):
        few.plot(path=tmp_path / name, panels="before,spectra")
    text = (tmp_path / "a.svg").read_text()
    assert text == (tmp_path / "b.svg").read_text()
    for words in ("trace 2", "time (s)", "frequency (Hz)"):
        assert re.search(f">{re.escape(words)}[^<]*</text>", text)
    assert "<image" not in text


WRONG = {
    "panels": ["befor", "", []],
    "gain": ["agc", "agc:0", "agc:x", "2", "tpow:-1", "agc:nan", "t^2"],
    "clip": [0, 100.5, float("nan")],
    "display": ["wigle"],
    "traces_by": ["station", "offset", "id"],  # the last two for want of headers
    "path": ["figure.jpg", "figure", "figure.png.txt"],
}


@pytest.mark.parametrize(("name", "value"), [(name, value) for name, values in WRONG.items() for value in values])
def test_wrong_values_are_refused(name, value, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match=re.escape(str(value)) if value else name):
        noise(2).plot(**{name: value})
    assert not list(tmp_path.iterdir())


def test_recordings_that_cannot_be_drawn_are_refused(monkeypatch):
    with pytest.raises(ValueError, match="600"):
        recording(GATHER).plot(recording(GATHER[:5]))
    with pytest.raises(ValueError, match="no samples"):
        recording([]).plot()
    with pytest.raises(ValueError, match="residual"):
        noise(2).plot(panels="before,residual")
    with pytest.raises(ValueError, match="interval"):
        noise(3, interval=None).plot(gain="agc:1")
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(ImportError, match=r"wavefilt\[plot\]"):
        noise(1).plot()


PICTURE = "docs/images/denoised_gather.png"
BLOCK = 8
"""Pixels of the squares that are compared by their means, larger than the differences between fonts' renderings."""
MOST = 12
"""Largest difference, of 255, of the 99th percentile of the squares."""


def squares(path):
    """Return the means of the squares of a picture, shape (rows, columns, 3)."""
    image = pytest.importorskip("PIL.Image")
    with image.open(path) as opened:
        pixels = np.asarray(opened.convert("RGB"), np.float64)
    rows, columns = (size // BLOCK for size in pixels.shape[:2])
    return pixels[: rows * BLOCK, : columns * BLOCK].reshape(rows, BLOCK, columns, BLOCK, 3).mean(axis=(1, 3))


@pytest.mark.parametrize("options", [[], ["--clip", "95"]])
def test_the_picture_is_what_the_command_draws(tmp_path, capsys, options):
    """Other options give a picture that is told apart."""
    assert f"]({PICTURE})" in (ROOT / "README.md").read_text()
    (line,) = re.findall(rf"^wavefilt (.*{PICTURE}.*)$", (SAMPLES / "README.md").read_text(), re.MULTILINE)
    words = line.replace(PICTURE, f"{tmp_path}/picture.png").replace("samples/", f"{SAMPLES}/")
    assert run(capsys, *shlex.split(words), "-o", tmp_path / "denoised.dat", *options)[0] == 0
    expected, drawn = squares(ROOT / PICTURE), squares(tmp_path / "picture.png")
    assert expected.shape == drawn.shape
    difference = np.percentile(np.abs(expected - drawn).max(axis=-1), 99)
    assert difference > 1.5 * MOST if options else difference < MOST
