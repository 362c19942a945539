"""The figure of what denoising did: one scale for its panels, and no input that it cannot draw."""

import subprocess
import sys

import numpy as np
import pytest

from wavefilt.method import Method
from wavefilt.recording import Recording

pytest.importorskip("matplotlib")

from wavefilt import plot

RANDOM = np.random.default_rng(5)
T = np.linspace(0, 1, 600)
GATHER = np.sin(40 * T) * np.exp(-3 * T) + 0.2 * RANDOM.standard_normal((6, 600))


def recording(traces, interval=0.002, source="line.dat"):
    return Recording(traces, (interval,) * len(traces), "npy", None, source)


def denoised(before, report=True, **options):
    return before.apply(Method(**options), "pywavelets", report)


def panels_of(*given):
    return {axes.get_label(): axes for axes in plot.draw(*given).axes}


def drawn(before, **options):
    """The panels of the figure by their labels."""
    return panels_of(before, denoised(before, **options))


@pytest.fixture(scope="module")
def gather():
    """Two recordings, before and after, and the panels of their figure."""
    before = recording(GATHER * np.array([1, 3, 1, 1, 5, 1])[:, None] + 5)
    after = denoised(before, level=3)
    return before, after, panels_of(before, after)


def texts(axes):
    return " ".join(text.get_text() for text in axes.texts)


def spoiled():
    """Gaps, a trace of nothing but a gap, and a dead trace."""
    traces = GATHER.copy()
    traces[1, 100:250] = traces[2, :] = np.nan
    traces[3] = 0
    return traces


ODD = {
    "gaps and a dead trace": recording(spoiled()),
    "a gap in one trace": recording(spoiled()[1:2]),
    "dead record": recording(np.zeros((3, 200))),
    "constant": recording(np.full((1, 300), 1234.56)),
    "one sample": recording(np.array([[3.0]])),
    "one sample a trace": recording(np.arange(3.0)[:, None]),
    "three samples": recording(np.array([[1.0, 2.0, 1.0]])),
    "ragged": recording([GATHER[0], GATHER[1, :77], GATHER[2, :1], GATHER[3, :0]]),
    "intervals differ": Recording(list(GATHER[:2]), (0.001, 0.004), "npy", None),
    "an interval unknown": Recording(list(GATHER[:2]), (0.001, None), "npy", None),
    "complex": recording(GATHER[:2] + 1j * GATHER[2:4]),
    "unsigned integers": recording((100 + 20 * GATHER).astype(np.uint8)[:1]),
    "huge": recording(GATHER[:1] * 1e120),
    "an odd name": recording(GATHER[:1] * 1e-30, source="$記録_{x$\n.dat"),
}


# where matplotlib would warn, it is only when it renders
RENDERED = {"gaps and a dead trace", "constant", "one sample", "dead record", "an odd name"}


@pytest.mark.parametrize("name", ODD)
def test_odd_inputs_are_drawn(name):
    figure = plot.draw(ODD[name], denoised(ODD[name]))
    labels = {axes.get_label() for axes in figure.axes}
    assert {"before", "after", "removed", "spectra", "energies", "thresholds"} <= labels
    if name in RENDERED:
        assert plot.render(figure, "png", 20).startswith(b"\x89PNG")


def test_gaps_and_nothing_else_are_drawn():
    before = recording(np.full((2, 50), np.nan))
    assert "no variation" in texts(panels_of(before, before)["spectra"])


def test_an_image_of_odd_traces_is_drawn():
    traces = [trace[: 40 + 5 * i] for i, trace in enumerate(np.tile(GATHER, (12, 1)))]
    traces[5], traces[6] = np.full(30, np.nan), np.zeros(30)
    panels = drawn(recording(traces, None))
    assert [len(panels[name].images) for name in plot.PANELS] == [1, 1, 1]


def test_one_trace_has_one_scale_in_three_panels():
    panels = drawn(recording(GATHER[:1]))
    limits = {(panels[name].get_xlim(), panels[name].get_ylim()) for name in plot.PANELS}
    assert len(limits) == 1
    before, after, removed = (panels[name].lines[0].get_ydata() for name in plot.PANELS)
    np.testing.assert_array_equal(before, GATHER[0])
    np.testing.assert_allclose(before - after, removed, atol=1e-12)


def test_wiggles_have_one_scale_in_three_panels(gather):
    before, _, panels = gather
    assert len({(panels[name].get_xlim(), panels[name].get_ylim()) for name in plot.PANELS}) == 1
    assert panels["before"].get_ylim() == (1.2, 0)  # time downwards
    for index in range(len(before.traces)):
        noisy, clean, removed = (panels[name].lines[index].get_xdata() - index for name in plot.PANELS)
        inside = np.abs(noisy) < 1.5  # what goes further is cut
        np.testing.assert_allclose((noisy - clean)[inside], removed[inside], atol=1e-9)
        assert 0.8 < np.abs(noisy).max() < 1.7


def test_image_has_one_scale_in_three_panels():
    panels = drawn(recording(np.tile(GATHER, (11, 1))))
    images = [panels[name].images[0] for name in plot.PANELS]
    assert {image.get_clim() for image in images} == {(-1, 1)}
    before, after, removed = (np.asarray(image.get_array()) for image in images)
    assert before.shape == (plot.BINS, 66)
    np.testing.assert_allclose(before - after, removed, atol=1e-9)


def test_spectrograms_have_one_scale_and_name_the_strongest_trace(gather):
    spectrograms = [gather[2]["spectrogram before"], gather[2]["spectrogram after"]]
    assert {axes.images[0].get_clim() for axes in spectrograms} == {(-plot.RANGE_DB, 0)}
    assert all("trace 4" in axes.get_title() for axes in spectrograms)


def test_spectrogram_and_spectrum_show_a_tone_at_its_frequency():
    tone = np.sin(2 * np.pi * 60 * 0.002 * np.arange(2000))[None]
    panels = drawn(recording(tone))
    image = panels["spectrogram before"].images[0]
    rows = np.linspace(0, 250, image.get_array().shape[0])
    assert rows[np.argmax(np.asarray(image.get_array())[:, 200])] == pytest.approx(60, abs=3)
    frequencies, decibels = panels["spectra"].lines[0].get_data()
    assert frequencies[np.argmax(decibels)] == pytest.approx(60, abs=1)
    assert frequencies[-1] == 250


def test_axes_name_their_units(gather):
    axes = gather[2]
    assert axes["before"].get_ylabel() == "time (s)"
    assert "Hz" in axes["spectra"].get_xlabel()


def test_what_is_not_known_is_said():
    """The interval and the energies; a threshold that was given as a number is in the title."""
    before = recording(GATHER[:2], None)
    figure = plot.draw(before, denoised(before, report=False, rule=0.25))
    panels = {axes.get_label(): axes for axes in figure.axes}
    assert panels["removed"].get_xlabel() == "time (samples)"
    assert "cycles/sample" in panels["spectra"].get_xlabel()
    assert "not measured" in texts(panels["energies"])
    assert "threshold 0.25" in texts(figure)


def test_levels_show_energies_noise_and_thresholds(gather):
    _, after, panels = gather
    (estimate,) = after.outcome.estimates
    energy = (estimate.power * estimate.counts[:, None]).sum(axis=1)
    heights = [bar.get_height() for bar in panels["energies"].patches]
    np.testing.assert_allclose(heights, 100 * energy / energy.sum())
    threshold, sigma = (line.get_ydata() for line in panels["thresholds"].lines)
    np.testing.assert_allclose(threshold, np.median(estimate.thresholds, axis=1))
    np.testing.assert_allclose(sigma, np.median(estimate.sigma, axis=1))


def test_energies_not_measured_leave_the_thresholds():
    panels = drawn(recording(GATHER[:1]), report=False)
    assert len(panels["thresholds"].lines) == 2


def test_no_levels_is_said():
    assert "no levels" in texts(drawn(recording(GATHER[:1, :14]))["energies"])


def test_title_tells_source_and_method():
    before = recording(GATHER, source="/data/line 7.dat")
    after = denoised(before, wavelet="sym8", rule="sure", shrink="firm", level=4)
    title = " ".join(text.get_text() for text in plot.draw(before, after).texts)
    share = 100 * np.sum((before.samples - after.samples) ** 2) / np.sum(before.samples**2)
    for word in ("line 7.dat", "sym8", "level 4", "rule sure", "firm", f"removed {share:.3g} %"):
        assert word in title


@pytest.mark.parametrize(("extension", "magic"), [("png", b"\x89PNG"), ("pdf", b"%PDF"), ("SVG", b"<?xml")])
def test_file_types(tmp_path, extension, magic):
    before = recording(GATHER[:2, :60])
    path = tmp_path / f"figure.{extension}"
    plot.plot_denoising(before, denoised(before), path, dpi=40)
    assert path.read_bytes().startswith(magic)
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


@pytest.mark.parametrize("name", ["figure.jpg", "figure", "figure.png.txt"])
def test_unknown_extension(tmp_path, name):
    before = recording(GATHER[:1])
    with pytest.raises(ValueError, match=r"figures are written as \.png, \.pdf, \.svg"):
        plot.plot_denoising(before, before, tmp_path / name)
    assert not list(tmp_path.iterdir())


def test_an_existing_figure_is_replaced_only_on_request(tmp_path):
    before, path = recording(GATHER[:1, :50]), tmp_path / "figure.png"
    path.write_bytes(b"kept")
    with pytest.raises(FileExistsError):
        plot.plot_denoising(before, before, path, dpi=20)
    assert path.read_bytes() == b"kept"
    plot.plot_denoising(before, before, path, dpi=20, overwrite=True)
    assert path.read_bytes().startswith(b"\x89PNG")


def test_recordings_of_different_shapes_are_refused():
    with pytest.raises(ValueError, match="before has 6 traces of 600 samples and after 5 traces of 600"):
        plot.draw(recording(GATHER), recording(GATHER[:5]))
    with pytest.raises(ValueError, match="no samples to draw"):
        plot.draw(recording([]), recording([]))


def test_long_traces_are_drawn_by_their_extremes():
    trace = RANDOM.standard_normal(3_000_001).astype(np.float32)
    trace[1_234_567] = 50  # one sample that skipping samples would miss
    before = recording(trace[None])
    after = recording(0.5 * trace[None])
    panels = panels_of(before, after)
    line = panels["before"].lines[0]
    assert len(line.get_xdata()) <= 2 * plot.BINS
    assert line.get_ydata().max() == 50
    assert line.get_xdata()[np.argmax(line.get_ydata())] == pytest.approx(1_234_567 * 0.002, rel=1e-3)
    assert panels["removed"].lines[0].get_ydata().max() == 25


def test_a_missing_matplotlib_is_named(monkeypatch, tmp_path):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    before = recording(GATHER[:1])
    with pytest.raises(ImportError, match=r'pip install "wavefilt\[plot\]"'):
        plot.plot_denoising(before, before, tmp_path / "figure.png")


def test_neither_matplotlib_comes_with_the_module_nor_pyplot_with_a_figure(tmp_path):
    code = """if True:
        import sys, numpy as np
        from wavefilt.plot import plot_denoising
        from wavefilt.recording import Recording
        assert "matplotlib" not in sys.modules
        recording = Recording(np.eye(3), (None,) * 3, "npy", None)
        plot_denoising(recording, recording, sys.argv[1], dpi=20)
        assert "matplotlib.pyplot" not in sys.modules
    """
    subprocess.run([sys.executable, "-c", code, str(tmp_path / "figure.png")], check=True, timeout=60)


def timed(starts, ids, samples=300, interval=0.01):
    """Traces with first samples at these seconds after 23:59:50 of a day."""
    traces = [RANDOM.standard_normal(samples) for _ in starts]
    begin = np.datetime64("2016-12-31T23:59:50", "ns")
    times = tuple(begin + np.timedelta64(round(1e9 * seconds), "ns") for seconds in starts)
    return Recording(traces, (interval,) * len(traces), "mseed", None, "s.mseed", ids=ids, starts=times)


def labels(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def test_traces_of_an_id_are_one_line_with_its_gaps_at_their_times():
    before = timed((0, 5, 12), ("BW.FUR..EHZ",) * 3)
    figure = plot.draw(before, denoised(before))
    axes = {one.get_label(): one for one in figure.axes}["before"]
    (line,) = axes.lines
    times, samples = line.get_data()
    second = 86390  # after midnight
    inside = np.isfinite(samples)
    np.testing.assert_allclose(
        times[inside][[0, 299, 300, 599, 600, -1]], second + np.array([0, 2.99, 5, 7.99, 12, 14.99])
    )
    assert np.flatnonzero(~inside).tolist() == [300, 601]
    assert axes.get_xlim() == (second, second + 15)
    shared = {one.get_label(): one for one in figure.axes}["removed"]
    assert shared.get_xlabel() == "UTC, from 2016-12-31 23:59:50"
    assert labels(shared.xaxis) == ["23:59:50", "23:59:55", "01-01 00:00:00", "00:00:05"]


def test_rows_have_ids_and_utc():
    before = timed((0, 5, 1.5), ("A", "A", "B"))
    panels = drawn(before)
    assert len(panels["before"].lines) == 2
    assert labels(panels["before"].yaxis) == ["A", "B"]
    assert panels["removed"].get_xlabel().startswith("UTC, from 2016-12-31 23:59:50")
    assert panels["before"].get_xlim() == (86390, 86398)
    assert panels["before"].lines[1].get_xdata()[0] == 86391.5
    downwards = panels_of(before, denoised(before), plot.PlotOptions(display="wiggle"))["before"]
    assert labels(downwards.xaxis) == ["A", "B"]
    assert downwards.get_ylabel().startswith("UTC, from 2016-12-31 23:59:50")
    assert downwards.get_ylim() == (86398, 86390)
    assert downwards.lines[1].get_ydata()[0] == 86391.5
    assert panels["spectrogram before"].get_title() in ("spectrogram before, A", "spectrogram before, B")
    assert panels["spectrogram before"].get_xlabel() == "UTC"


def test_an_image_has_gaps_at_their_times():
    ids = tuple(f"S{i}" for i in range(70))
    before = timed((0,) * 70 + (9,) * 70, ids * 2)
    (image,) = drawn(before)["before"].images
    columns = np.asarray(image.get_array())
    assert columns.shape == (plot.BINS, 70)
    assert np.isnan(np.ma.filled(columns, np.nan)[310:890]).all()
    assert np.isfinite(columns[[100, 200, 1000, 1190]]).all()


@pytest.mark.parametrize(
    ("first", "last", "expected"),
    [
        (0.2, 0.201, ["00:00:00.2000", "00:00:00.2002", "00:00:00.2004"]),
        (7200, 7260, ["02:00:00", "02:00:10", "02:00:20"]),
        (3000, 90000, ["06:00", "12:00", "18:00", "01-01 00:00"]),
        (0, 86400 * 30, ["12-31 00:00", "01-05 00:00", "01-10 00:00"]),
    ],
)
def test_ticks_are_round_times(first, last, expected):
    from matplotlib.figure import Figure

    from wavefilt.plot.gather import time_axis
    from wavefilt.plot.traces import Gather

    before = timed((0,), ("A",))
    axes = Figure().add_subplot()
    time_axis(axes.xaxis, Gather(before, before), first, last)
    assert labels(axes.xaxis)[: len(expected)] == expected
