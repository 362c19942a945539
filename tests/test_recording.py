"""Text and pictures of recordings and results; errors, which carry their data and name options as Python does."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

import wavefilt
from tests.support.checkout import SAMPLES, needs
from wavefilt.errors import NonFiniteSample


def _recording(traces, interval=0.004, **more):
    return wavefilt.Recording(traces, (interval,) * len(traces), "npy", None, "/data/line 7.npy", **more)


@pytest.fixture
def partly_dead(rng):
    """Of 24 traces 9 are live: 15 are 0, 3 of these with a constant instead."""
    traces = np.zeros((24, 500))
    traces[::3] = rng.standard_normal((8, 500)) * np.arange(1, 9)[:, None]
    traces[1] = 30 * rng.standard_normal(500)
    traces[[2, 4, 5]] = 7
    return traces


def test_live_traces_with_gaps():
    gap = np.full(200, np.nan)
    traces = np.ma.masked_invalid([gap, np.where(np.arange(200) < 100, np.nan, 5), np.arange(200), np.zeros(200)])
    for x in (_recording(traces), _recording(list(traces)), _recording(traces.filled(np.nan))):
        assert (x.live.tolist(), x.dead) == ([False, False, True, False], 2)
    assert _recording([np.zeros(0), np.arange(3), np.zeros(3)]).dead == 1
    late = np.zeros(500)
    late[300] = 1  # beyond the samples that are compared first
    assert _recording([late]).live.all()


def test_recordings_and_results_are_found_in_a_list_and_a_set(rng):
    recordings = [_recording(rng.standard_normal((2, 200))) for _ in range(2)]
    denoised = [recording.denoise() for recording in recordings]
    reports = [y.trust(x) for x, y in zip(recordings, denoised, strict=True)]
    for one, other in (recordings, [y.outcome for y in denoised], reports):
        assert [one, other].index(other) == 1
        assert len({one, other}) == 2


def test_a_recording_shows_its_size_and_sampling(partly_dead):
    recording = _recording(partly_dead)
    for words in ("line 7.npy", "24 traces x 500 samples", "0.004 s", "9 live", "15 dead"):
        assert words in repr(recording)
    assert "denoised" in repr(recording.denoise())
    assert "denoised" not in repr(recording)
    ragged = wavefilt.Recording([np.arange(5.0), np.arange(9.0)], (0.001, None), "sac", None)
    assert "5 to 9 samples" in repr(ragged)
    assert "0 traces" in repr(wavefilt.Recording([], (), "npy", None))
    start = np.datetime64("2016-03-11T11:34:44.015000000")
    timed = _recording(np.arange(8.0)[None], ids=("BW.FUR..EHZ",), starts=(start,))
    assert "2016-03-11T11:34:44.015Z" in repr(timed)
    online = wavefilt.OnlineDenoiser(level=3, window=1000, channels=2, dtype="float32")
    online.push(np.zeros((2, 50)))
    for words in ("2 channels", "db8", "level 3", "window 1000", "latency 105"):
        assert words in repr(online)


@needs("matplotlib")
def test_a_notebook_shows_a_picture(partly_dead, monkeypatch):
    html = wavefilt.read(SAMPLES / "seismic.dat")._repr_html_()
    assert "24 traces x 1024 samples" in html
    assert "data:image/png;base64,iVBOR" in html
    assert "a&lt;b&gt;" in wavefilt.Recording(np.eye(3), (None,) * 3, "npy", None, "a<b>")._repr_html_()
    assert "<img" not in wavefilt.Recording([np.zeros(0)], (None,), "npy", None)._repr_html_()
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    html = _recording(partly_dead)._repr_html_()
    assert ("24 traces" in html, "<img" in html) == (True, False)


def test_errors_keep_their_data_when_they_are_pickled(tmp_path):
    path = tmp_path / "x.npy"
    np.save(path, np.where(np.arange(90) == 7, np.inf, 1.0))
    with pytest.raises(FileExistsError) as exists:
        wavefilt.read(path).write(path)
    with pytest.raises(NonFiniteSample) as infinite:
        wavefilt.denoise(np.load(path))
    with pytest.raises(wavefilt.FormatError) as unknown:
        wavefilt.read(path, format="wav")
    for error in (exists.value, infinite.value, unknown.value):
        same = pickle.loads(pickle.dumps(error))
        assert (type(same), str(same)) == (type(error), str(error))
    assert pickle.loads(pickle.dumps(exists.value)).path == path
    same = pickle.loads(pickle.dumps(infinite.value))
    assert (same.trace, same.sample) == (0, 7)


@pytest.mark.parametrize(("layout", "option"), [({}, "format"), ({"format": "raw"}, "dtype"), ({"ns": 4}, "ns")])
def test_python_names_options_as_python_spells_them(tmp_path, layout, option):
    (tmp_path / "x").write_bytes(bytes(range(250)) * 9)
    with pytest.raises(wavefilt.FormatError, match=option) as raised:
        wavefilt.read(tmp_path / "x", **layout)
    assert "--" not in str(raised.value)
    assert str(raised.value).isprintable()
