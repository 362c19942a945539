"""Dead traces of a record: left out of what all traces share, and returned as they are."""

from __future__ import annotations

import numpy as np
import pytest

import wavefilt
from tests.support.signals import partly_dead
from wavefilt import report
from wavefilt.arrays import constant
from wavefilt.denoising.pipeline import run
from wavefilt.errors import NonFiniteSample
from wavefilt.method import Method

OPTIONS = [
    {"rule": "bayes"},
    {"rule": "universal"},
    {"rule": "universal", "sigma": 0.3},
    {"rule": "sure", "transform": "modwt"},
    {"rule": "bayes", "transform": "modwt"},
    {"rule": "neighblock"},
    {"rule": "js"},
    {"rule": "bayes", "detrend": "line", "blend": 0.1},
    {"rule": "minimax", "sigma": "global", "spins": 3},
    {"rule": "universal", "sigma": ("window", 400, 600)},
]


def with_gaps(x, dead):
    """Missing samples in live and dead traces: two of these have segments of one length with live ones."""
    live, gone = np.flatnonzero(~dead), np.flatnonzero(dead)
    x = x.copy()
    x[live[:3], 100:130] = x[gone[:2], 100:130] = x[gone[2], :50] = x[gone[3]] = np.nan
    x[live[4], :90], x[live[4], 90] = 5, np.nan  # a segment of equal samples is not a dead trace
    return x


@pytest.mark.parametrize("options", OPTIONS)
@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("dtype", ["f4", "f8"])
def test_live_traces_are_denoised_as_if_they_were_alone(backend, rng, options, gaps, dtype):
    x, dead = partly_dead(rng, dtype=dtype)
    x = with_gaps(x, dead) if gaps else x
    method = Method("db4", 3, scope="record", **options)
    found, alone = (run(rows, method, backend, report=True) for rows in (x, x[~dead]))
    np.testing.assert_array_equal(found.samples[~dead], alone.samples)
    np.testing.assert_array_equal(found.samples[dead], x[dead])
    assert not np.array_equal(found.samples[~dead], x[~dead])
    for name in ("sigma", "thresholds", "power"):
        expected = {estimate.segments.shape: vars(estimate)[name] for estimate in alone.estimates}
        for estimate in found.estimates:
            own = ~dead[estimate.segments.rows]
            assert not vars(estimate)[name][:, ~own].any()
            np.testing.assert_array_equal(vars(estimate)[name][:, own], expected.pop(estimate.segments.shape, [[]] * 3))
        assert not expected
    y, noise = wavefilt.denoise(x, "db4", level=3, scope="record", backend=backend, return_noise=True, **options)
    np.testing.assert_array_equal(y, found.samples)
    assert not np.nan_to_num(noise[dead]).any()


def test_estimates_are_those_of_all_traces(backend, rng):
    """In their order, with the segments that a record without dead traces has."""
    x, dead = partly_dead(rng)
    for samples in (x, with_gaps(x, dead)):
        by_trace, shared = (run(samples, Method(scope=scope), backend).estimates for scope in ("trace", "record"))
        for a, b in zip(by_trace, shared, strict=True):
            assert np.array_equal(a.segments.rows, b.segments.rows)
            assert np.array_equal(a.segments.starts, b.segments.starts)
            assert a.sigma.shape == b.sigma.shape
            assert np.array_equal(a.sigma > 0, b.sigma > 0)


@pytest.mark.parametrize("gap", [False, True])
def test_a_record_of_dead_traces_alone(backend, gap):
    x = np.repeat([[0.0], [3.7], [-1.0]], 400, axis=1)
    x[1, 100:120] = np.nan if gap else x[1, 0]
    for rows in (x, x[:1], x[1]):
        found = run(rows, Method(scope="record"), backend, report=True)
        np.testing.assert_array_equal(found.samples, rows)
        assert found.estimates
        assert not any(e.sigma.any() or e.thresholds.any() or e.power.any() for e in found.estimates)


def test_missing_samples_of_dead_traces_are_no_matter_to_a_noise_window(backend, rng):
    x, dead = partly_dead(rng)
    x[np.flatnonzero(dead)[0], 420:430] = np.nan
    options = {"scope": "record", "sigma": ("window", 400, 600), "backend": backend}
    np.testing.assert_array_equal(wavefilt.denoise(x, **options)[~dead], wavefilt.denoise(x[~dead], **options))
    x[np.flatnonzero(~dead)[0], 420:430] = np.nan
    with pytest.raises(ValueError, match="noise window from sample 400 to 600 has gaps"):
        wavefilt.denoise(x, **options)


def test_an_infinite_sample_is_named_by_its_trace_among_all(backend, rng):
    x, dead = partly_dead(rng)
    for trace in (np.flatnonzero(~dead)[-1], np.flatnonzero(dead)[-1]):
        broken = x.copy()
        broken[trace, 77 if not dead[trace] else slice(None)] = np.inf
        with pytest.raises(NonFiniteSample) as raised:
            wavefilt.denoise(broken, scope="record", backend=backend)
        assert (raised.value.trace, raised.value.sample) == (trace, 0 if dead[trace] else 77)


@pytest.mark.parametrize("dtype", ["f4", "f8", "c8"])
def test_constant(rng, dtype):
    x = rng.standard_normal((9, 40)).astype(dtype)
    x[0] = x[1] = x[2] = 3
    x[1, 13] = x[3, 5] = 2  # not where it is looked at first
    x[3, :5] = x[3, 6:] = 2
    x[3, 17] = 7
    assert constant(x).tolist() == [True, False, True, *[False] * 6]
    x[2, ::2] = x[4] = x[5, 1:] = x[6, :-2] = x[7, [0, 19, 39]] = np.nan
    assert constant(x, gaps=True).tolist() == [True, False, True, False, True, True, False, False, False]
    assert constant(x[None, :4], gaps=True).tolist() == [[True, False, True, False]]


def test_figures_of_a_record_are_of_live_traces(rng):
    x, dead = partly_dead(rng)
    whole, live = (wavefilt.Recording(rows, (0.004,) * len(rows), "npy", None, "a.npy") for rows in (x, x[~dead]))
    assert (whole.dead, whole.live.tolist()) == (15, (~dead).tolist())
    for method in (Method(scope="record"), Method(rule="sure", scope="record", transform="modwt")):
        after = whole.apply(method, "pywavelets", report=True)
        found, expected = (report.describe(x, x.apply(method, "pywavelets", report=True), 0.0) for x in (whole, live))
        for name in ("sigma", "thresholds", "sigma_range", "thresholds_range"):
            assert found[name] == expected[name]
        assert (found["live_traces"], found["dead_traces"]) == (9, 15)
        ((estimate),) = report.estimates(after)
        assert estimate["traces"] == list(range(24))
        assert [not any(column) for column in estimate["sigma"]] == dead.tolist()
        assert (after.dead, after.live.tolist()) == (15, (~dead).tolist())
