"""`wavefilt.compare` and `wavefilt.tune`: risks and gains beside the true ones, what they accept, and errors."""

from __future__ import annotations

import numpy as np
import pytest

import wavefilt
from tests.support.signals import coloured, gain_db
from wavefilt.vocabulary import RULES

SOME = ["universal", "bayes", "js"]


def bursts(rng, traces, samples, frequency=0.3):
    t, onsets = np.arange(samples), rng.integers(0.4 * samples, 0.55 * samples, (traces, 1))
    return 8 * np.exp(-(t - onsets) / 120.0) * np.sin((t - onsets) * frequency) * (t >= onsets)


@pytest.fixture(scope="module")
def clean():
    return bursts(np.random.default_rng(3), 6, 1000)


@pytest.fixture(scope="module")
def x(clean):
    return clean + np.random.default_rng(4).standard_normal(clean.shape)


@pytest.fixture(scope="module")
def found(x):
    return wavefilt.compare(x, sigma="global")


def risks(found):
    return {trial.options["rule"]: 10 ** (-trial.gain_db / 10) for trial in found.trials}


@pytest.mark.parametrize("sigma", ["global", "level", ("window", 0, 580)])
def test_the_risk_is_the_error(sigma):
    """The mean square error in units of the noise power: white noise, and noise with a power of 1/f."""
    rng = np.random.default_rng(1)
    clean = 1.5 * bursts(rng, 12, 1500, 0.4)
    noise = coloured(rng, clean.shape, np.ones_like if sigma == "global" else lambda f: f**-0.5)
    methods = [{"rule": rule} for rule in SOME] + [{"rule": 0.0}]
    for trial in wavefilt.compare(clean + noise, methods=methods, sigma=sigma).trials:
        y = wavefilt.denoise(clean + noise, **trial.options)
        true = np.mean(np.mean((y - clean) ** 2, axis=1) / np.mean(noise**2, axis=1))
        assert 10 ** (-trial.gain_db / 10) == pytest.approx(true, abs=0.12)


def test_order_and_gains_are_nearly_the_true_ones(found, x, clean):
    gains = {trial.name: gain_db(clean, x, wavefilt.denoise(x, **trial.options)) for trial in found.trials}
    assert gains.keys() > set(RULES)
    for trial in found.trials:
        assert trial.gain_db == pytest.approx(gains[trial.name], abs=2)
    true, ranks = np.array(list(gains.values())).argsort().argsort(), np.arange(len(gains))[::-1]
    assert np.corrcoef(true, ranks)[0, 1] > 0.6
    assert gains[found.best.name] > max(gains.values()) - 0.5


def test_the_line_to_copy(found, x):
    assert (found.traces, found.of) == (6, 6)
    table = [line for line in found.lines() if not line.startswith("note: ")]
    assert len(table) == 10
    assert all(trial.name in line for trial, line in zip(found.trials[:8], table[1:], strict=False))
    y = eval(found.python, {"wavefilt": wavefilt, "x": x})
    np.testing.assert_array_equal(y, wavefilt.denoise(x, **found.best.options))


def test_ties_and_doubts_are_told(x):
    same = [{"rule": "bayes"}, {"rule": "bayes", "level": 5}, {"rule": "bayes", "mode": "symmetric"}]
    found = wavefilt.compare(x, methods=[*same, {"rule": 1e9}])
    assert [trial.tied for trial in found.trials] == [True, True, True, False]
    told = "as good as"
    assert f"{told} bayes: bayes, level 5; bayes, mode symmetric" in repr(found)
    alone = wavefilt.compare(x, methods=[{"rule": "bayes"}, {"rule": 1e9}])
    assert alone.tied == alone.trials[:1]
    assert told not in repr(alone)
    doubt = "if less of the energy is noise"
    assert doubt in repr(wavefilt.compare(np.random.default_rng(0).standard_normal(1000), rule=SOME))
    told = wavefilt.compare(x, rule=SOME, sigma=("window", 0, 390))
    assert doubt not in repr(told)
    assert told.noise_share == pytest.approx(np.median(1 / x.var(axis=1)), rel=0.2)


def test_methods_and_common_options(x):
    found = wavefilt.compare(x[:3], "sym8", rule=["bayes", 2.5], transform=["dwt", "modwt"], level=3)
    assert {trial.name for trial in found.trials} == {"bayes", "rule 2.5", "bayes, modwt", "rule 2.5, modwt"}
    assert all(trial.options["wavelet"] == "sym8" and trial.options["level"] == 3 for trial in found.trials)
    found = wavefilt.compare(x[:2], shrink="hard")
    assert found.skipped.keys() == {"blockjs", "neighblock", "js", "bivariate"}
    with pytest.raises(ValueError, match="shrink"):
        wavefilt.compare(x[:2], rule="js", shrink="hard")


def test_samples_are_not_changed_and_results_are_reproducible(x):
    before = x.copy()
    first, second = (wavefilt.compare(x, rule=SOME) for _ in range(2))
    np.testing.assert_array_equal(x, before)
    assert risks(first) == risks(second)


def test_dead_traces_gaps_and_scale(x):
    gappy = np.insert(x, 4, 7.0, axis=0)
    gappy[0, 300:400] = np.nan
    found, whole = (wavefilt.compare(v, rule=SOME) for v in (gappy, x))
    assert (found.traces, found.of) == (6, 6)
    assert risks(wavefilt.compare(np.ma.masked_invalid(gappy), rule=SOME)) == risks(found)
    assert found.best.gain_db == pytest.approx(whole.best.gain_db, abs=1)
    scaled = wavefilt.compare(2.0**20 * x, rule=SOME)
    assert scaled.best.gain_db == pytest.approx(whole.best.gain_db, rel=1e-6)
    with pytest.raises(ValueError, match="no method removes"):
        wavefilt.compare(x[:, 600:610], rule=SOME)  # too short for one level
    found = wavefilt.compare(np.float32(1e18) * x.astype("f4"), rule=["bayes", 0])
    assert (found.noise_share > 0, found.trials[-1].gain_db) == (True, 0)


def test_a_noise_window_too_short_for_some_methods(x):
    found = wavefilt.compare(x, rule=SOME, sigma=("window", 0, 20))
    assert (found.best.name, list(found.skipped)) == ("js", ["universal", "bayes"])
    methods = [{"transform": "fk"}, {}]
    found = wavefilt.compare(np.repeat(x, 8, axis=0), methods=methods, axes=(0, 1), sigma=("window", 0, 10))
    assert ([trial.name for trial in found.trials], list(found.skipped)) == (["fk"], ["the defaults"])


def test_other_arrays_and_sections(x):
    common = {"rule": SOME, "sigma": ("window", 0, 390)}
    wanted = risks(wavefilt.compare(x, **common))
    assert risks(wavefilt.compare(x.T, axis=0, **common)) == wanted
    assert risks(wavefilt.compare(x.reshape(2, 3, -1).tolist(), **common)) == wanted
    pandas = pytest.importorskip("pandas")
    assert risks(wavefilt.compare(pandas.DataFrame(x.T), **common)) == wanted
    found = wavefilt.compare(np.repeat(x, 8, axis=0), "db2", rule=SOME, axes=(-2, -1))
    assert found.python.endswith("axes=(-2, -1))")
    assert found.best.gain_db > 3


@pytest.mark.parametrize(
    ("change", "options", "error", "word"),
    [
        (np.zeros_like, {}, ValueError, "noise"),
        (lambda x: np.full(400, np.nan), {}, ValueError, "noise"),
        (lambda x: x[:0], {}, ValueError, "noise"),
        (lambda x: x + 1j, {}, TypeError, "real"),
        (lambda x: "seismic.dat", {}, OSError, "seismic"),
        (lambda x: np.where(np.arange(1000) == 7, np.inf, x), {}, ValueError, "trace 0, sample 7"),
        (np.copy, {"rule": "baies"}, ValueError, "'bayes'"),
        (np.copy, {"sigma": ("window", 0, 9999)}, ValueError, "1000 samples"),
        (np.copy, {"levl": 3}, ValueError, "'level'"),
        (np.copy, {"backend": "cudda"}, ValueError, "'cuda'"),
        (np.copy, {"methods": []}, ValueError, "compare"),
        (np.copy, {"axes": (0, 1), "axis": 0}, ValueError, "one"),
    ],
)
def test_wrong_arguments(x, change, options, error, word):
    with pytest.raises(error, match=word):
        wavefilt.compare(change(x), **options)


def test_tune_is_at_least_as_good_as_every_rule(x):
    tuned = wavefilt.tune(x[:1, :600], sigma="global", seconds=60)
    compared = wavefilt.compare(x[:1, :600], sigma="global")
    assert tuned.complete
    assert tuned.best.gain_db >= compared.best.gain_db
    assert len(tuned.trials) > 2 * len(compared.trials)
    assert {"transform", "wavelet", "level"} <= {name for trial in tuned.trials for name in trial.options}
    assert tuned.options == tuned.best.options
    y = eval(tuned.python, {"wavefilt": wavefilt, "x": x})
    np.testing.assert_array_equal(y, wavefilt.denoise(x, **tuned.options))


def test_tune_ends_in_time_and_says_so(x):
    found = wavefilt.tune(x[:1, :600], sigma="global", seconds=1e-9)
    assert not found.complete
    assert {trial.name for trial in found.trials} > set(RULES)
    with pytest.raises(ValueError, match="positive"):
        wavefilt.tune(x, seconds=0)


def recording(x):
    return wavefilt.Recording(x, (0.01,) * 5, "npy", None, source="a.npy")


def stream(x):
    obspy = pytest.importorskip("obspy")
    return obspy.Stream([obspy.Trace(trace, {"delta": 0.01, "station": f"A{i}"}) for i, trace in enumerate(x)])


def labelled(x):
    xarray = pytest.importorskip("xarray")
    return xarray.DataArray(x.T, {"time": np.arange(1500) * 0.01}, ("time", "trace"))


def patch(x):
    dascore = pytest.importorskip("dascore")
    times = dascore.to_datetime64(0) + dascore.to_timedelta64(np.arange(1500) * 0.01)
    return dascore.Patch(x, dims=("distance", "time"), coords={"distance": np.arange(5), "time": times})


@pytest.mark.parametrize(
    ("make", "line"),
    [
        (recording, "wavefilt.read('a.npy').denoise("),
        (stream, ""),
        (labelled, "x.wavefilt.denoise("),
        (patch, ""),
    ],
)
def test_labelled_data_as_their_samples(make, line):
    """The noise window is told in seconds, and of streams in times."""
    x = np.random.default_rng(4).standard_normal((5, 1500)) + 5 * (np.arange(1500) % 700 < 30)
    wanted, data = risks(wavefilt.compare(x, rule=SOME, sigma=("window", 50, 450))), make(x)
    found = wavefilt.compare(data, rule=SOME, sigma=("seconds", 0.5, 4.5))
    assert risks(found) == wanted
    assert found.python.startswith(line)
    if make is stream:
        denoised = eval(found.python, {"wavefilt": wavefilt, "stream": data})
        alike = wavefilt.denoise(x, rule=found.best.options["rule"], sigma=("window", 50, 450))
        np.testing.assert_array_equal([trace.data for trace in denoised], alike)
        start = data[0].stats.starttime
        assert risks(wavefilt.compare(data, rule=SOME, sigma=("window", start + 0.5, start + 4.5))) == wanted
        data[0].trim(start + 0.2, start + 9)
        assert wavefilt.compare(data, rule=SOME).traces == 5
        shared = wavefilt.compare(data, rule=SOME, sigma=("window", start + 0.5, start + 4.5)).model
        assert (shared.kind, shared.window) == ("declared", (50, 430))
        np.testing.assert_allclose(wavefilt.estimate_sigma(data), 1, rtol=0.2)
