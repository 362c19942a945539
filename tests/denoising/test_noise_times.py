"""Noise told in seconds, times and picks, where it is known when traces were sampled."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import pytest

import wavefilt
from tests.support.checkout import run as run_command
from wavefilt.denoising.noise_times import Clock, in_samples, on_coordinate
from wavefilt.recording import Recording

START = np.datetime64("2026-03-01T12:00:00.25", "ns")
CLOCK = Clock(0.01, START, 3000, "XX.A")


def at(seconds):
    return START + np.timedelta64(round(seconds * 1e9), "ns")


@pytest.mark.parametrize(
    ("sigma", "expected"),
    [
        ("level", "level"),
        (2.5, 2.5),
        (("window", 10, 500), ("window", 10, 500)),
        (("window", at(0.1), at(5)), ("window", 10, 500)),
        (("seconds", 0, 7.5), ("window", 0, 750)),
        (("before", at(12), 10), ("window", 200, 1200)),
        (("before", 12, 10.0), ("window", 200, 1200)),
        (("before", "2026-03-01T12:00:12.25", 10), ("window", 200, 1200)),
        (("before", "2026-03-01T12:00:12.25Z", 10), ("window", 200, 1200)),
        (("before", datetime(2026, 3, 1, 12, 0, 12, 250_000), 10), ("window", 200, 1200)),
        (("before", datetime(2026, 3, 1, 12, 0, 12, 250_000, UTC), 10), ("window", 200, 1200)),
        (
            ("before", datetime(2026, 3, 1, 14, 0, 12, 250_000, timezone(timedelta(hours=2))), 10),
            ("window", 200, 1200),
        ),
        (("running", 20), ("running", 2000)),
        (("intervals", [5, at(10)]), ("intervals", (500, 1000))),
        (("intervals", np.array([5.0, 10.0])), ("intervals", (500, 1000))),
        (("intervals", [-3, 5, 99]), ("intervals", (500,))),  # some traces end before
        (("intervals", [99]), ("intervals", (3000,))),
        (("intervals", "find"), ("intervals", "find")),
        (("intervals", None), ("intervals", None)),
    ],
)
def test_in_samples(sigma, expected):
    assert in_samples(sigma, CLOCK) == expected


@pytest.mark.parametrize(
    ("sigma", "clock", "words"),
    [
        (("seconds", 5, 2), CLOCK, "from 5 s to 2 s is out of order"),
        (("seconds", 5, 40), CLOCK, "does not lie in the traces, which end at 30 s"),
        (("seconds", 5, 5.02), CLOCK, "shorter than 4 samples, 0.04 s"),
        (("seconds", "5", 9), CLOCK, r'must be \("seconds", start, stop\)'),
        (("seconds", 5), CLOCK, r'must be \("seconds", start, stop\)'),
        (("before", 4, 10), CLOCK, "from -6 s to 4 s begins before the first sample"),
        (("before", at(-5), 1), CLOCK, "begins before the first sample"),
        (("before", 4, np.nan), CLOCK, r'must be \("before", pick, seconds\)'),
        (("before", "noon", 4), CLOCK, "'noon' is no time such as"),
        (("before", None, 4), CLOCK, "None is neither a number of seconds nor a time"),
        (("before", np.datetime64("NaT", "ns"), 4), CLOCK, "is neither a number of seconds nor a time"),
        (("running", "20"), CLOCK, r'must be \("running", seconds\)'),
        (("runing", 20), CLOCK, r'must be \("window".* or \("intervals"'),
        (("intervals", 5), CLOCK, "must be a list of seconds or times"),
        (("running", 20), Clock(None, None, 3000, "x.npy"), "x.npy: its sampling interval is not known"),
        (("before", at(3), 2), Clock(0.01, None, 3000, "x.npy"), "x.npy: the time of its first sample is not known"),
    ],
)
def test_refusals(sigma, clock, words):
    with pytest.raises(ValueError, match=words):
        in_samples(sigma, clock)


def test_coordinates():
    places, times = 100 + np.arange(3000) * 0.01, at(0) + np.arange(3000) * np.timedelta64(10, "ms")
    window = ("window", 200, 1200)
    assert on_coordinate(("before", 112, 10), places, "t") == window
    assert on_coordinate(("before", at(12), 10), times, "t") == window
    assert on_coordinate(("seconds", 2, 12), times.astype("M8[ms]"), "t") == window
    assert on_coordinate(("before", 12, 10), (times - times[0]).astype("m8[ms]"), "t") == window
    assert on_coordinate(("window", 3, 9), np.array(list("abcdefghij")), "t") == ("window", 3, 9)
    for coordinate in (places[::-1], np.array(["a", "b"]), times[:1], np.array([])):
        with pytest.raises(ValueError, match="t: its sampling interval is not known"):
            on_coordinate(("running", 20), coordinate, "t")


@pytest.fixture
def recording(rng):
    """Two traces with the same wave at one time; the second one begins 2 s later, and samples half as often."""
    x, y = rng.standard_normal(3000), 3 * rng.standard_normal(1400)
    x[1500:] += 20 * np.sin(np.arange(1500) / 3)
    y[650:] += 60 * np.sin(np.arange(750) / 3)
    return Recording([x, y], (0.01, 0.02), "x", None, "rec", ids=("XX.A", "XX.B"), starts=(START, at(2)))


@pytest.mark.parametrize("rule", ["bayes", "js"])
def test_traces_of_a_recording_have_windows_of_their_own(recording, rule):
    quiet = recording.denoise(rule=rule, sigma=("before", at(14.5), 9))
    for trace, window, found in zip(recording.traces, ((550, 1450), (175, 625)), quiet.traces, strict=True):
        assert np.array_equal(found, wavefilt.denoise(trace, rule=rule, sigma=("window", *window)))
    rows = {tuple(estimate.segments.rows) for estimate in quiet.outcome.estimates}
    assert rows == {(0,), (1,)}
    with pytest.raises(ValueError, match='scope="record" needs noise at the same samples'):
        recording.denoise(sigma=("before", at(14.5), 9), scope="record")


def test_seconds_are_samples_of_each_trace(recording):
    quiet = recording.denoise(sigma=("running", 6), rule="universal")
    for trace, length, found in zip(recording.traces, (600, 300), quiet.traces, strict=True):
        assert np.array_equal(found, wavefilt.denoise(trace, rule="universal", sigma=("running", length)))


class TestCommand:
    def write(self, path, rng):
        x = rng.standard_normal((2, 3000)).astype("f4")
        x[:, 1500:] *= 5
        np.save(path / "x.npy", x)
        return x

    @pytest.mark.parametrize("more", [[], ["--max-memory", "1GiB"]])
    @pytest.mark.parametrize(
        ("option", "sigma"),
        [
            (["--noise-window", "1", "3"], ("window", 500, 1500)),
            (["--noise-before", "3", "2"], ("window", 500, 1500)),
            (["--noise-running", "1.5"], ("running", 750)),
            (["--noise-intervals", "3"], ("intervals", [1500])),
            (["--noise-intervals", "1,3"], ("intervals", [500, 1500])),
            (["--noise-intervals", "find"], ("intervals", None)),
        ],
    )
    def test_every_option(self, tmp_path, rng, capsys, option, sigma, more):
        x = self.write(tmp_path, rng)
        command = ["denoise", str(tmp_path / "x.npy"), "--dt", "0.002", "--rule", "universal"]
        code, _, err = run_command(capsys, *command, *option, *more)
        assert code == 0, err
        expected = wavefilt.denoise(x, rule="universal", sigma=sigma)
        assert np.array_equal(np.load(tmp_path / "x.denoised.npy"), expected)

    @pytest.mark.parametrize(
        ("options", "words"),
        [
            (["--noise-before", "3", "2", "--noise-window", "1", "3"], "--noise-window and --noise-before both tell"),
            (
                ["--noise-running", "3", "--sigma", "global"],
                "--noise-running and --sigma both tell the noise: give one",
            ),
            (["--noise-running", "3", "--two-dimensional"], "--noise-running is for traces"),
            (["--noise-running", "3", "--rule", "0.5"], "--rule 0.5 is a threshold"),
            (["--noise-running", "0.001"], "of 0 samples, must have 4 or more"),
            (["--noise-running", "-3"], "must have 4 or more"),
            (["--noise-before", "3", "4"], "from -1 s to 3 s begins before"),
            (["--noise-before", "2026-03-01T12:00:00", "4"], "the time of its first sample is not known"),
            (["--noise-before", "2026-03-01T12:00:00", "4", "--max-memory", "1GiB"], "give seconds from there"),
            (["--noise-before", "soon", "4"], "'soon' is no time such as"),
            (["--noise-intervals", "4,3"], "must be samples above 0 in order"),
            (["--noise-intervals", "fnd"], "'fnd' is no time such as"),
            (["--noise-intervals", "3", "--dry-run", "--dt", "0"], "dt"),
        ],
    )
    def test_refusals(self, tmp_path, rng, capsys, options, words):
        self.write(tmp_path, rng)
        code, _, err = run_command(capsys, "denoise", str(tmp_path / "x.npy"), "--dt", "0.002", *options)
        assert code in (1, 2, 3)
        assert words in err
        assert not (tmp_path / "x.denoised.npy").exists()

    def test_times_of_a_file_that_has_them(self, tmp_path, rng, capsys):
        obspy = pytest.importorskip("obspy")
        x = rng.standard_normal((2, 4000)).astype("f4")
        start = obspy.UTCDateTime("2026-03-01T12:00:00.25")
        headers = [{"station": s, "starttime": start + d, "sampling_rate": 100} for s, d in (("A", 0), ("B", 3.0))]
        stream = obspy.Stream([obspy.Trace(row, header) for row, header in zip(x, headers, strict=True)])
        stream.write(str(tmp_path / "x.mseed"), format="MSEED")
        option = ["--noise-before", "2026-03-01T12:00:30.25Z", "20"]
        code, _, err = run_command(capsys, "denoise", str(tmp_path / "x.mseed"), *option)
        assert code == 0, err
        found = wavefilt.read(tmp_path / "x.denoised.mseed").traces
        for row, trace, first in zip(x, found, (1000, 700), strict=True):
            expected = wavefilt.denoise(row, sigma=("window", first, first + 2000))
            assert np.array_equal(trace, expected)
