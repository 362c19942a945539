"""How recordings and results show themselves, and what is said of their live traces."""

from __future__ import annotations

import numpy as np
import pytest

import wavefilt
from tests.support.checkout import SAMPLES, needs
from wavefilt import report
from wavefilt.denoising.pipeline import run
from wavefilt.method import Method


def recording(traces, interval=0.004, **more):
    return wavefilt.Recording(traces, (interval,) * len(traces), "npy", None, "/data/line 7.npy", **more)


@pytest.fixture
def partly_dead(rng):
    """Of 24 traces 9 are live: 15 are 0, 3 of these with a constant instead."""
    traces = np.zeros((24, 500))
    traces[::3] = rng.standard_normal((8, 500)) * np.arange(1, 9)[:, None]
    traces[1] = 30 * rng.standard_normal(500)
    traces[[2, 4, 5]] = 7
    return recording(traces)


def test_figures_are_of_live_traces(partly_dead):
    live = recording(partly_dead.samples[partly_dead.live])
    assert (len(live.traces), partly_dead.dead) == (9, 15)
    for method in (Method(), Method(rule="sure", level=2), Method(transform="modwt")):
        found, expected = (report.describe(x, x.apply(method, report=True), 0.0) for x in (partly_dead, live))
        assert (found["traces"], found["live_traces"], found["dead_traces"]) == (24, 9, 15)
        for name in ("sigma", "thresholds", "sigma_range", "thresholds_range"):
            np.testing.assert_allclose(found[name], expected[name])
        assert all(
            low < middle < high for middle, (low, high) in zip(found["sigma"], found["sigma_range"], strict=True)
        )
    found, expected = report.examine(partly_dead), report.examine(live)
    for name in ("sigma", "sigma_range", "mean_square", "mean_square_range"):
        np.testing.assert_allclose(found[f"{name}_by_level"], expected[f"{name}_by_level"])
    assert min(found["sigma_by_level"]) > 0


def test_ranges_are_those_of_the_traces(rng):
    x = recording(rng.standard_normal((11, 400)) * np.arange(1, 12)[:, None])
    after = x.apply(Method(level=1), "pywavelets", report=True)
    (estimate,) = after.outcome.estimates
    assert report.describe(x, after, 0)["sigma_range"] == [np.percentile(estimate.sigma[0], [10, 90]).tolist()]


def test_live_traces_with_gaps():
    gap = np.full(200, np.nan)
    traces = np.ma.masked_invalid([gap, np.where(np.arange(200) < 100, np.nan, 5), np.arange(200), np.zeros(200)])
    for x in (recording(traces), recording(list(traces)), recording(traces.filled(np.nan))):
        assert (x.live.tolist(), x.dead) == ([False, False, True, False], 2)
    assert recording([np.zeros(0), np.arange(3), np.zeros(3)]).dead == 1
    late = np.zeros(500)
    late[300] = 1  # beyond the samples that are looked at first
    assert recording([late]).live.all()


def test_a_dead_record_has_figures_too():
    facts = report.examine(recording(np.zeros((3, 300))))
    assert (facts["live_traces"], facts["dead_traces"]) == (0, 3)
    assert set(facts["sigma_by_level"]) == {0}


def test_a_recording_shows_what_it_is(partly_dead):
    text = "line 7.npy, npy, 24 traces x 500 samples, interval 0.004 s, 9 live, 15 dead"
    assert repr(partly_dead) == f"<Recording {text}>"
    assert repr(partly_dead.denoise()) == f"<Recording {text}, denoised>"
    ragged = wavefilt.Recording([np.arange(5.0), np.arange(9.0)], (0.001, None), "sac", None)
    assert repr(ragged) == "<Recording sac, 2 traces x 5 to 9 samples, interval 0.001 s or unknown, 2 live>"
    assert repr(wavefilt.Recording([], (), "npy", None)) == "<Recording npy, 0 traces x 0 samples, 0 live>"
    start = np.datetime64("2016-03-11T11:34:44.015000000")
    timed = recording(np.arange(8.0)[None], ids=("BW.FUR..EHZ",), starts=(start,))
    assert "from 2016-03-11T11:34:44.015Z" in repr(timed)


@needs("matplotlib")
def test_a_notebook_shows_a_picture(partly_dead):
    html = wavefilt.read(SAMPLES / "seismic.dat")._repr_html_()
    assert html.startswith("<b>seismic.dat</b>: seg2, 24 traces x 1024 samples")
    assert '<img alt="the traces" src="data:image/png;base64,iVBOR' in html
    assert "<b>a&lt;b&gt;</b>" in wavefilt.Recording(np.eye(3), (None,) * 3, "npy", None, "a<b>")._repr_html_()
    assert "<img" in recording(np.arange(9.0)[None])._repr_html_()


def test_without_matplotlib_a_notebook_shows_the_text(partly_dead, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "matplotlib.figure", None)
    assert "24 traces" in partly_dead._repr_html_()
    assert "<img" not in partly_dead._repr_html_()


def test_a_notebook_shows_a_recording_without_samples():
    assert (
        wavefilt.Recording([np.zeros(0)], (None,), "npy", None)
        ._repr_html_()
        .endswith("1 trace x 0 samples, interval unknown, 0 live")
    )


def test_outcomes_and_online_denoisers_show_what_they_are(rng):
    outcome = run(rng.standard_normal((3, 200)), Method("sym4", 2, rule="sure"), "pywavelets")
    assert repr(outcome) == "<Outcome 3 x 200 float64, dwt sym4 level 2, sure soft, backend pywavelets>"
    online = wavefilt.OnlineDenoiser(level=3, window=1000, channels=2, dtype="float32")
    online.push(np.zeros((2, 50)))
    expected = (
        "2 channels of float32, dwt db8 level 3, bayes soft, noise running, window 1000, latency 105, 50 taken in"
    )
    assert repr(online) == f"<OnlineDenoiser {expected}>"
    assert "threshold 0.5 soft, noise 2" in repr(wavefilt.OnlineDenoiser(rule=0.5, noise=2.0))
