"""`wavefilt.compare` and `wavefilt.tune`: order, what they accept, what they say, and errors."""

from __future__ import annotations

import numpy as np
import pytest

import wavefilt
from wavefilt.thresholding.rules import RULES
from wavefilt.tuning import Comparison, Tuning
from wavefilt.tuning.comparison import part_of
from wavefilt.tuning.intake import take

SOME = ["universal", "bayes", "js"]


@pytest.fixture(scope="module")
def clean():
    """Bursts in 6 traces."""
    rng, t = np.random.default_rng(3), np.arange(1000)
    onsets = rng.integers(400, 600, (6, 1))
    return 8 * np.exp(-(t - onsets) / 120.0) * np.sin((t - onsets) * 0.3) * (t >= onsets)


@pytest.fixture(scope="module")
def x(clean):
    return clean + np.random.default_rng(4).standard_normal(clean.shape)


@pytest.fixture(scope="module")
def found(x):
    return wavefilt.compare(x, sigma="global")


def test_order_and_gains_are_nearly_the_true_ones(found, x, clean):
    gains = {
        trial.name: 10
        * np.log10(np.mean((x - clean) ** 2) / np.mean((wavefilt.denoise(x, **trial.options) - clean) ** 2))
        for trial in found.trials
    }
    assert gains.keys() == set(RULES.names())
    for trial in found.trials:
        assert trial.gain_db == pytest.approx(gains[trial.name], abs=2)
    true, ranks = np.array(list(gains.values())).argsort().argsort(), np.arange(len(gains))[::-1]
    assert np.corrcoef(true, ranks)[0, 1] > 0.6
    assert gains[found.best.name] > max(gains.values()) - 0.5


def test_what_it_says(found, x):
    lines = repr(found).splitlines()
    assert len([line for line in lines if " dB " in line]) == len(RULES.names())
    assert found.best.name in lines[1]
    assert (found.traces, found.of, found.noise) == (6, 6, "white")
    y = eval(found.python, {"wavefilt": wavefilt, "x": x})
    np.testing.assert_array_equal(y, wavefilt.denoise(x, **found.best.options))
    assert found.python == f"wavefilt.denoise(x, sigma='global', rule={found.best.name!r})"
    assert repr(found.best).startswith(f"<Trial {found.best.name}: +")


def test_what_cannot_be_told_apart_is_said(x):
    found = wavefilt.compare(x, methods=[{"rule": "bayes"}, {"rule": "bayes", "level": 5}, {"rule": 1e9}])
    assert [trial.tied for trial in found.trials] == [True, True, False]
    words = "within the standard error of the estimate"
    assert found.caution() == f"cannot be told apart from {found.best.name}, {words}: {found.trials[1].name}"
    assert found.caution() in repr(found)
    alone = wavefilt.compare(x, methods=[{"rule": "bayes"}, {"rule": 1e9}])
    assert (alone.caution(), alone.tied) == ("", alone.trials[:1])
    assert "=" not in "".join(alone.lines()[1:3])


def test_a_trace_that_is_mostly_noise_is_doubted(x):
    doubt = "if so much is no noise"
    assert doubt in repr(wavefilt.compare(np.random.default_rng(0).standard_normal(1000), rule=SOME))
    assert doubt not in repr(wavefilt.compare(10 * (x - np.roll(x, 1)) * (np.arange(1000) % 500 < 99) + x, rule=SOME))
    told = wavefilt.compare(x, rule=SOME, sigma=("window", 0, 390))
    assert doubt not in repr(told)
    assert told.noise_share == pytest.approx(np.median(1 / x.var(axis=1)), rel=0.2)


def test_transforms_and_common_options(x):
    found = wavefilt.compare(x[:3], "sym8", rule=["bayes", 2.5], transform=["dwt", "modwt"], level=3)
    assert {trial.name for trial in found.trials} == {"bayes", "rule 2.5", "bayes, modwt", "rule 2.5, modwt"}
    assert all(trial.options["wavelet"] == "sym8" and trial.options["level"] == 3 for trial in found.trials)


def test_rules_that_do_not_go_with_the_options_are_left_out(x):
    found = wavefilt.compare(x[:2], shrink="hard")
    assert found.skipped.keys() == {"blockjs", "neighblock", "js", "bivariate"}
    assert "left out: js: rule='js' shrinks" in repr(found)
    with pytest.raises(ValueError, match="shrinks"):
        wavefilt.compare(x[:2], rule=["bayes", "js"], shrink="hard")


def test_samples_are_not_changed_and_results_are_reproducible(x):
    before = x.copy()
    first, second = (wavefilt.compare(x, rule=SOME) for _ in range(2))
    np.testing.assert_array_equal(x, before)
    assert [trial.risk for trial in first.trials] == [trial.risk for trial in second.trials]
    assert wavefilt.compare(x, rule=SOME, seed=1).best.risk != first.best.risk


def test_dead_traces_and_gaps(x):
    gappy = np.insert(x, 4, 7.0, axis=0)
    gappy[0, 300:400] = np.nan
    masked = np.ma.masked_invalid(gappy)
    found = wavefilt.compare(gappy, rule=SOME)
    assert (found.traces, found.of) == (6, 6)
    assert [trial.risk for trial in wavefilt.compare(masked, rule=SOME).trials] == [t.risk for t in found.trials]
    whole = wavefilt.compare(x, rule=SOME)
    assert found.best.gain_db == pytest.approx(whole.best.gain_db, abs=1)


def test_traces_too_short_for_the_wavelet(x):
    found = wavefilt.compare(x[:, 600:610], rule=SOME)
    assert "nothing is removed" in repr(found)


def test_some_of_many_traces(x):
    taken = take(np.repeat(x, 6, axis=0))
    part = part_of(taken, 10 * x.shape[1])
    assert part.rows.shape == (10, x.shape[1])
    np.testing.assert_array_equal(part.rows[[0, -1]], x[[0, -1]])
    panel = part_of(take(np.zeros((2, 500, 64)) + np.arange(64), axes=(-2, -1)), 1 << 13)
    assert panel.rows.shape == (1, 128, 64)


def risks(found):
    return {trial.options["rule"]: trial.risk for trial in found.trials}


def test_other_arrays(x):
    wanted = risks(wavefilt.compare(x, rule=SOME, sigma=("window", 0, 390)))
    common = {"rule": SOME, "sigma": ("window", 0, 390)}
    assert risks(wavefilt.compare(x.T, axis=0, **common)) == wanted
    assert risks(wavefilt.compare(x.reshape(2, 3, -1).tolist(), **common)) == wanted
    pandas = pytest.importorskip("pandas")
    assert risks(wavefilt.compare(pandas.DataFrame(x.T), **common)) == wanted
    assert wavefilt.compare(x.astype(np.float32), rule=SOME).best.name


def test_panels(x):
    found = wavefilt.compare(np.repeat(x, 8, axis=0), "db2", rule=SOME, axes=(-2, -1))
    assert found.python.endswith("axes=(-2, -1))")
    assert found.traces == 48
    assert found.best.gain_db > 3


def test_errors(x):
    for bad, kind, words in (
        (np.zeros((3, 400)), ValueError, "no trace has noise"),
        (np.full(400, np.nan), ValueError, "no trace has noise"),
        (x + 1j, TypeError, "x.real"),
        ("seismic.dat", TypeError, "is a path"),
        (np.where(np.arange(1000) == 7, np.inf, x), ValueError, "infinite value at trace 0, sample 7"),
        (np.zeros((0, 5)), ValueError, "no trace has noise"),
    ):
        with pytest.raises(kind, match=words):
            wavefilt.compare(bad)
    for options, words in (
        ({"rule": "baies"}, "did you mean 'bayes'"),
        ({"sigma": ("window", 0, 9999)}, "does not lie in 1000 samples"),
        ({"levl": 3}, "did you mean 'level'"),
        ({"backend": "cudda"}, "did you mean 'cuda'"),
        ({"methods": []}, "nothing to compare"),
        ({"axes": (0, 1), "axis": 0}, "give one"),
    ):
        with pytest.raises(ValueError, match=words):
            wavefilt.compare(x, **options)


def test_the_picture(found, tmp_path):
    pytest.importorskip("matplotlib")
    from wavefilt.tuning.figure import draw

    figure = draw(found)
    gains, after, removed = figure.axes
    assert [label.get_text() for label in gains.get_yticklabels()] == [trial.name for trial in found.trials]
    assert len(after.lines) == 2 * len(removed.lines) == 2 * len(found.trials)
    found.plot(tmp_path / "a.png")
    with pytest.raises(FileExistsError):
        found.plot(tmp_path / "a.png")
    with pytest.raises(ValueError, match=r"\.png"):
        found.plot(tmp_path / "a.gif")


def test_names_are_functions_whatever_was_imported():
    import wavefilt.tuning.comparison

    for function in (wavefilt.compare, wavefilt.tune, wavefilt.estimate_sigma):
        assert callable(function)


@pytest.fixture(scope="module")
def tuned(x):
    return wavefilt.tune(x[:1, :600], sigma="global", seconds=60)


def test_tune_is_at_least_as_good_as_every_rule(tuned, x):
    compared = wavefilt.compare(x[:1, :600], sigma="global")
    assert tuned.complete
    assert tuned.comparison.best.risk <= compared.best.risk
    assert len(tuned.comparison.trials) > 2 * len(compared.trials)
    assert {"transform", "wavelet", "level"} <= {name for trial in tuned.comparison.trials for name in trial.options}
    assert tuned.options == tuned.comparison.best.options
    y = eval(tuned.python, {"wavefilt": wavefilt, "x": x})
    np.testing.assert_array_equal(y, wavefilt.denoise(x, **tuned.options))
    assert isinstance(tuned, Tuning)
    assert isinstance(tuned.comparison, Comparison)
    assert repr(tuned).startswith(tuned.python)


def test_tune_ends_in_time_and_says_so(x):
    found = wavefilt.tune(x[:1, :600], sigma="global", seconds=1e-9)
    assert not found.complete
    assert {trial.name for trial in found.comparison.trials} == set(RULES.names())
    assert "the time was over" in repr(found)
    with pytest.raises(ValueError, match="positive"):
        wavefilt.tune(x, seconds=0)
