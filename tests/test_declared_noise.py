"""Headers that declare noise before the trigger, origin or first arrival, and times that count from the trigger."""

from __future__ import annotations

import json
import struct
from dataclasses import replace

import numpy as np
import pytest

import wavefilt
from tests.support.checkout import needs, run
from tests.support.file_bytes import make_seg2, sac, segy_file, su_file

COUNT, SAMPLES = 6, 1500
LINES = ("SAMPLE_INTERVAL 0.001", "DELAY -0.5", "SOURCE_LOCATION -5", "DESCALING_FACTOR 0.5")


def noisy(count=COUNT):
    """Return traces of 1.5 s with noise of different strength and a wave from 0.55 s on."""
    time = np.arange(SAMPLES) / 1000 - 0.55
    wave = np.where(time > 0, np.exp(-5 * time) * np.sin(2 * np.pi * 30 * time), 0)
    rng = np.random.default_rng(7)
    return (rng.standard_normal((count, SAMPLES)) * np.linspace(0.05, 0.1, count)[:, None] + wave).astype("f4")


def seg2(lines=LINES, traces=None):
    rows = noisy() if traces is None else traces
    return make_seg2([row.astype("<f4").tobytes() for row in rows], 4, lines=lines)


def segy(make, order, first, delays=(-500,) * COUNT):
    data = bytearray(make(order))
    for trace, delay in enumerate(delays):
        at = first + trace * (240 + 4 * SAMPLES)
        struct.pack_into(order + "h", data, at + 108, delay)
        struct.pack_into(order + "h", data, at + 214, 0)
    return bytes(data)


def as_segy(order="<", delays=(-500,) * COUNT):
    stored = np.ascontiguousarray(noisy(), order + "f4")
    return segy(lambda o: segy_file(5, o, COUNT, SAMPLES, dt=1000, stored=stored), order, 3600, delays)


def as_su():
    stored = np.ascontiguousarray(noisy(), "<f4")
    return segy(lambda o: su_file(o, COUNT, SAMPLES, dt=1000, stored=stored), "<", 0)


def as_sac(**fields):
    """Return a SAC file that begins at ``b``; its samples are 1 ms apart."""
    data, places = bytearray(sac(noisy(1)[0])), {"delta": 0, "b": 5, "o": 7, "a": 8}
    for name, value in {"delta": 0.001, **fields}.items():
        struct.pack_into("<f", data, 4 * places[name], value)
    return bytes(data)


FILES = {
    "seg2": (seg2, "0.467 s before the trigger (header DELAY)", -0.5),
    "segy": (as_segy, "0.467 s before the trigger (header DelayRecordingTime)", -0.5),
    "su": (as_su, "0.467 s before the trigger (header DelayRecordingTime)", -0.5),
    "sac, origin": (lambda: as_sac(b=10, o=10.5), "0.467 s before the origin time (header o)", -0.5),
    "sac, first arrival": (lambda: as_sac(b=-1, o=-5, a=-0.5), "0.467 s before the first arrival (header a)", 4),
}


@pytest.fixture(params=FILES)
def declared(request, tmp_path):
    """A file whose header declares 0.5 s of noise, the origin of the noise in words, and the delay."""
    make, words, delay = FILES[request.param]
    path = tmp_path / "shot.x"
    path.write_bytes(make())
    return path, words, delay


def test_the_declared_window_is_used_unless_it_is_refused(declared):
    path, words, delay = declared
    recording = wavefilt.read(path)
    assert recording.declared_noise.common == ("window", 0, 467)
    assert recording.declared_noise.source == words
    assert recording.delays == pytest.approx([delay] * len(recording.traces))
    expected = recording.denoise(sigma=("window", 0, 467))
    for y in (recording.denoise(), recording.denoise(sigma=("seconds", delay, delay + 0.467))):
        np.testing.assert_array_equal(y.samples, expected.samples)
    refused = recording.denoise(sigma="level")
    assert np.any(refused.samples != expected.samples)
    np.testing.assert_array_equal(
        wavefilt.estimate_sigma(recording), wavefilt.estimate_sigma(recording, sigma=("window", 0, 467))
    )
    assert np.any(wavefilt.estimate_sigma(recording) != wavefilt.estimate_sigma(recording, sigma="level"))
    trust = recording.denoise().trust(recording)
    assert trust.facts()["noise"][0] == {"kind": "declared", "source": words}
    assert f"{delay:g}" in str(trust.times(0))
    assert "sigma" not in trust.call
    trust = refused.trust(recording)
    assert trust.facts()["noise"][0]["kind"] != "declared"
    assert "sigma='level'" in trust.call
    some = wavefilt.compare(recording, rule=["universal", "bayes"])
    assert (some.model.kind, some.noise) == ("declared", words)
    assert "sigma" not in some.python
    assert wavefilt.compare(recording, rule=["universal", "bayes"], sigma="level").model.kind != "declared"


def test_mutes_in_the_window_do_not_stop_the_verdict(tmp_path, capsys):
    traces = noisy()
    traces[2, :200] = 0
    (tmp_path / "x.dat").write_bytes(seg2(traces=traces))
    code, _, err = run(capsys, "denoise", tmp_path / "x.dat", "-v")
    assert (code, "trust: harmless" in err) == (0, True)
    assert wavefilt.compare(wavefilt.read(tmp_path / "x.dat"), rule="js").model.kind == "declared"


@pytest.mark.parametrize("delays", [(-900, *[-500] * 5), (*[-500] * 5, -900), (0, *[-500] * 5)])
def test_windows_that_differ_count_where_they_overlap(delays, tmp_path):
    """Whichever trace comes first; a section needs them in all traces."""
    (tmp_path / "x").write_bytes(as_segy(delays=delays))
    recording = wavefilt.read(tmp_path / "x")
    shared = ("window", 0, 467) if 0 not in delays else "level"
    for section in (False, True):
        found = recording.denoise(two_dimensional=section).trust(recording)
        assert found.effect.model.sigma == shared or (shared == "level" and found.effect.model.kind != "declared")
    assert ("in 5 of 6 traces" in recording.declared_noise.source) == (0 in delays)
    some = wavefilt.compare(recording, rule="js", transform="fk", axes=(0, 1))
    assert (some.model.kind == "declared") == (0 not in delays)


def test_the_call_of_a_report_makes_its_result(tmp_path):
    (tmp_path / "x").write_bytes(as_segy(delays=(-900, *[-500] * 5)))
    recording = wavefilt.read(tmp_path / "x")
    for sigma in (("seconds", -0.3, -0.05), ("running", 0.4)):
        denoised = recording.denoise(rule="bayes", sigma=sigma)
        again = eval(denoised.trust(recording).call)
        np.testing.assert_array_equal(again.samples, denoised.samples)


def test_the_command_uses_it_and_says_so(declared, tmp_path, capsys):
    path, words, delay = declared
    expected = wavefilt.read(path).denoise().samples
    code, _, err = run(capsys, "denoise", path, "-o", tmp_path / "y", "-v")
    assert code == 0
    assert f"noise: {words}" in err
    np.testing.assert_array_equal(wavefilt.read(tmp_path / "y").samples, expected)
    for refusal in (["--noise-window", "none"], ["--noise-window=none"], ["--sigma", "level"]):
        assert run(capsys, "denoise", path, "-o", tmp_path / "z", "--overwrite", *refusal)[0] == 0
        assert np.any(wavefilt.read(tmp_path / "z").samples != expected)
    for window, line in (([], "--rule"), (["--noise-window", "none"], "--sigma level")):
        out = run(capsys, "compare", path, "--rule", "universal", "--rule", "bayes", *window)[1]
        assert (words in out, line in out) == (not window, True)
    facts = json.loads(run(capsys, "info", path, "--json")[1])
    assert facts["noise"] == {"source": words, "window_s": pytest.approx([delay, delay + 0.467])}
    assert facts["delay_s"] == pytest.approx(delay)
    assert words in run(capsys, "info", path)[1]


@pytest.mark.parametrize("name", ["segy", "su", "sac, origin"])
def test_files_read_in_parts_have_the_same_noise(name, tmp_path, capsys):
    (tmp_path / "x").write_bytes(FILES[name][0]())
    expected = wavefilt.read(tmp_path / "x").denoise(rule="bayes", wavelet="db8", transform="dwt").samples
    wavefilt.denoise_file(tmp_path / "x", tmp_path / "y", preset="gentle")
    np.testing.assert_array_equal(wavefilt.read(tmp_path / "y").samples, expected)
    start = FILES[name][2]
    for noise in ([], ["--noise-window", start, start + 0.467]):
        arguments = ["--preset", "gentle", "--max-memory", "1GiB", "-o", tmp_path / "z", "--overwrite"]
        assert run(capsys, "denoise", tmp_path / "x", *noise, *arguments)[0] == 0
        np.testing.assert_array_equal(wavefilt.read(tmp_path / "z").samples, expected)


def short_window():
    return seg2([LINES[0], "DELAY -0.07"])


def muted():
    traces = noisy()
    traces[:, :500] = 0
    return seg2(traces=traces)


@pytest.mark.parametrize(
    "make",
    [
        short_window,
        muted,
        lambda: seg2(["DELAY -0.5"]),
        lambda: seg2([LINES[0], "DELAY 0.5"]),
        lambda: seg2([LINES[0], "DELAY -2"]),
        lambda: as_sac(b=0),
        lambda: as_sac(b=5, o=0),
    ],
    ids=["too short", "muted", "no interval", "after the trigger", "beyond the trace", "no event", "before the file"],
)
def test_windows_that_cannot_be_used_are_not_declared(make, tmp_path):
    (tmp_path / "x").write_bytes(make())
    recording = wavefilt.read(tmp_path / "x")
    assert recording.declared_noise is None
    np.testing.assert_array_equal(recording.denoise().samples, recording.denoise(sigma="level").samples)


def test_traces_with_a_gap_or_a_mute_before_the_trigger_have_their_own_noise():
    recording = wavefilt.read(seg2_file())
    traces = recording.samples.copy()
    traces[1, 300:320], traces[2, :480] = np.nan, 0
    recording = replace(recording, traces=traces)
    y = recording.denoise()
    own = wavefilt.denoise(traces[1:3], "sym8", rule="js", transform="modwt")
    np.testing.assert_array_equal(y.samples[1:3], own)
    assert not np.array_equal(y.samples[0], recording.denoise(sigma="level").samples[0])
    report = y.trust(recording)
    assert report.noise[0][0] == "declared"
    assert np.isnan(report.effect.change[2]).all()
    assert np.isfinite(report.effect.change[[0, 1, 3]]).any(axis=1).all()
    assert repr(report) == f"<TrustReport {report.summary()}>"
    traces[:, 300:320] = np.nan  # in most traces of a section: the window is not used
    section = replace(recording, traces=traces)
    np.testing.assert_array_equal(
        *(section.denoise(two_dimensional=True, **own).samples for own in ({}, {"sigma": "level"}))
    )


def test_options_without_noise_windows_are_judged_with_it():
    recording = wavefilt.read(seg2_file())
    y = recording.denoise(transform="wp")
    np.testing.assert_array_equal(y.samples, recording.denoise(transform="wp", sigma="level").samples)
    assert y.trust(recording).facts()["noise"][0]["kind"] == "declared"


def test_sections_use_the_window_that_all_traces_share():
    recording = wavefilt.read(seg2_file())
    window = min(recording.declared_noise.windows, key=lambda window: window[2])
    y = recording.denoise(two_dimensional=True, transform="fk")
    np.testing.assert_array_equal(
        y.samples, recording.denoise(two_dimensional=True, transform="fk", sigma=window).samples
    )


def test_a_window_too_short_for_the_filter_of_a_section_is_not_used(tmp_path):
    (tmp_path / "x").write_bytes(seg2([LINES[0], "DELAY -0.08"], noisy(130)))
    recording, options = wavefilt.read(tmp_path / "x"), {"two_dimensional": True, "transform": "dwt"}
    with pytest.raises(ValueError, match="too few for db30"):
        recording.denoise("db30", sigma=recording.declared_noise.common, **options)
    for wavelet, used in (("db8", recording.declared_noise.common), ("db30", "level")):
        assert recording.denoise(wavelet, **options).outcome.options.sigma == used


def seg2_file(*arguments):
    import io

    return io.BytesIO(seg2(*arguments))


def test_traces_of_different_delays(tmp_path):
    (tmp_path / "x").write_bytes(as_segy(delays=(-500, -500, 0, -700, -700, -30)))
    recording = wavefilt.read(tmp_path / "x")
    windows = recording.declared_noise.windows
    assert windows == (*[("window", 0, 467)] * 2, None, *[("window", 0, 657)] * 2, None)
    assert "0.467 to 0.657 s" in recording.declared_noise.source
    y = recording.denoise()
    for trace, window in enumerate(windows):
        alone = wavefilt.denoise(recording.traces[trace], "sym8", rule="js", transform="modwt", sigma=window or "level")
        np.testing.assert_array_equal(y.traces[trace], alone)
    own = {"max_memory": "100MB", "backend": "pywavelets", "overwrite": True}
    for sigma in ({}, {"sigma": "level"}):
        wavefilt.denoise_file(tmp_path / "x", tmp_path / "y", **own, **sigma)
        expected = recording.denoise(backend="pywavelets", **sigma).samples
        np.testing.assert_array_equal(wavefilt.read(tmp_path / "y").samples, expected)
    recording.write(tmp_path / "x.csv")
    assert (tmp_path / "x.csv").read_text().startswith("trace_1")
    replace(recording, delays=[-0.5] * COUNT).write(tmp_path / "x.csv", overwrite=True)
    assert (tmp_path / "x.csv").read_text().split("\n")[1].startswith("-5.0")


@pytest.mark.parametrize(
    ("fields", "delay"), [({"b": -1}, 0), ({"b": -1, "a": -0.5}, 0), ({"b": -0.35, "o": 0.15}, -0.5)]
)
def test_the_reference_time_of_sac_is_no_trigger_in_segy(tmp_path, capsys, fields, delay):
    (tmp_path / "x.sac").write_bytes(as_sac(**fields))
    assert "x.sgy  sac to segy, 1 trace\n" in run(capsys, "convert", tmp_path / "x.sac", tmp_path / "x.sgy")[1]
    again = wavefilt.read(tmp_path / "x.sgy")
    assert (again.headers.traces[0].delay, again.declared_noise is None) == (delay, not delay)
    assert "origin or reference time" in run(capsys, "info", tmp_path / "x.sac")[1]


@needs("matplotlib")
def test_axes_begin_at_the_delay(tmp_path):
    recording = wavefilt.read(seg2_file())
    figure = recording.plot(recording.denoise())
    axes = {one.get_label(): one for place in figure.subfigs for one in all_axes(place)}
    assert sorted(axes["before"].get_ylim()) == pytest.approx([-0.5, 1.0])
    assert "trigger" in axes["before"].get_ylabel()
    assert axes["spectrogram before"].images[0].get_extent()[:2] == pytest.approx([-0.5, 1.0])
    with_gain = wavefilt.plotting.data.Gain(False, 2.0)
    assert with_gain.factors(np.ones(4), 0.5, -1.0) == pytest.approx([0, 0, 0, 0.25])
    found = recording.denoise().trust(recording).answers[0].found
    assert " between -0." in found or " between 0" in found


def all_axes(place):
    return [*place.axes, *(axes for inner in place.subfigs for axes in all_axes(inner))]


@needs("panel")
def test_the_viewer_offers_the_declared_window():
    page = wavefilt.view(wavefilt.read(seg2_file()))
    section = page.section
    assert (section.time_range.start, section.time_range.end) == pytest.approx((0.9995, -0.5005))
    assert page.controls.used_window == (0, 467)
    assert section.windows[0].bottom == pytest.approx(-0.5005)
    assert page.controls.selects["sigma"].value == "auto"
    assert "sigma" not in page.python.value
    page.controls.drag(100, 300)
    assert page.options["sigma"] == ("seconds", -0.4, -0.2)
    page.controls.selects["sigma"].value = "level"
    assert "sigma='level'" in page.python.value


def test_times_in_messages_count_from_the_trigger():
    recording = wavefilt.read(seg2_file())
    for window, word in (((-0.6, -0.1), "-0.5 s"), ((0.2, 1.2), "end at 1 s"), ((0.1, -0.1), "order")):
        with pytest.raises(ValueError, match=word):
            recording.denoise(sigma=("seconds", *window))
    y = recording.denoise(sigma=("before", -0.05, 0.4))
    np.testing.assert_array_equal(y.samples, recording.denoise(sigma=("window", 50, 450)).samples)
    z = recording.denoise(rule="bayes", transform="dwt", sigma=("intervals", [0.0]))
    np.testing.assert_array_equal(z.samples, wavefilt.denoise(recording.samples, "sym8", sigma=("intervals", [500])))
