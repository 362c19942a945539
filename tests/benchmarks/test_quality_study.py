"""The quality study: its signals and noise, the grids, a few rows measured again, and its tables."""

from __future__ import annotations

import json
from functools import cache

import numpy as np
import pytest
import pywt
from numpy.testing import assert_allclose
from scipy.special import ndtri

import wavefilt
from tests.support.checkout import ROOT, needs, run
from wavefilt.benchmarks.quality import methods, records, report, study
from wavefilt.benchmarks.quality import published as quality_published
from wavefilt.benchmarks.quality import signals as quality_signals
from wavefilt.benchmarks.quality.methods import Procedure as Way
from wavefilt.benchmarks.quality.published import distances, reached, verdicts
from wavefilt.method import Method

T = np.arange(1, 1025) / 1024


@pytest.fixture(scope="module")
def committed():
    return json.loads((ROOT / "benchmarks" / "results" / "quality.json").read_text())


@cache
def steps(quick=True):
    """Of the study, by label; the first of each."""
    found = []
    study.run(quick, lambda steps: iter(found.extend(steps) or ()))
    return {step.label: step for step in reversed(found)}


def test_published_signals_are_scaled_as_there():
    signals = quality_signals.published()
    assert tuple(signals) == quality_published.SIGNALS
    for name, f in signals.items():
        assert f.shape == (1024,)
        assert f.min() == pytest.approx(0.2, abs=1e-3), name
        assert np.ptp(f) == pytest.approx(0.6, abs=3e-3), name


def test_classic_signals_have_the_ratio_for_a_deviation():
    signals = quality_signals.classic(2048, 7)
    assert tuple(signals) == quality_published.FOUR
    assert_allclose([f.std() for f in signals.values()], 7)


def test_blocks_jump_where_and_as_far_as_published():
    t = T - 1e-6  # 0.25 would be half of its jump
    jumps = np.diff(quality_signals.blocks(t))
    at = np.flatnonzero(jumps)
    assert_allclose(t[at + 1], quality_signals.JUMPS, atol=1 / 1024)
    assert_allclose(jumps[at], quality_signals.STEPS, atol=1e-12)


def test_bumps_and_spikes_have_their_peaks():
    bumps, spikes = quality_signals.bumps(T), quality_signals.spikes(T)
    for at, height in zip(quality_signals.JUMPS, quality_signals.HEIGHTS, strict=True):
        assert bumps[round(at * 1024) - 1] > 0.6 * height
    tops = [i for i in range(1, 1023) if spikes[i - 1] < spikes[i] > spikes[i + 1]]
    assert_allclose(T[tops], [0.23, 0.33, 0.47, 0.69, 0.83], atol=1 / 1024)
    assert_allclose(spikes[tops], [0.75, 1.5, 3, 2.25, 0.5], rtol=0.03)


def test_jumps_of_heavisine_blip_and_corner():
    fine = np.array([0.3 - 1e-9, 0.3 + 1e-9, 0.72 - 1e-9, 0.72 + 1e-9])
    assert_allclose(np.diff(quality_signals.heavisine(fine))[[0, 2]], [-2, 2], atol=1e-6)
    ends = np.array([0.8, 0.8 + 1e-12])
    assert np.diff(quality_signals.blip(ends)) == pytest.approx(-0.6 + 0.3 * (1 - np.exp(-25)) * np.exp(-25), abs=1e-9)
    assert_allclose(quality_signals.corner(np.array([0.5, 0.5 + 1e-9])), 0, atol=1e-6)  # meets itself
    assert_allclose(np.diff(quality_signals.corner(ends)), 0, atol=1e-3)


def test_doppler_slows_down_and_ends_at_nothing():
    x = quality_signals.doppler(T)
    crossings = T[1:][np.diff(np.sign(x)) != 0]
    assert x[-1] == 0
    assert np.all(np.diff(np.diff(crossings[crossings > 0.02])) > -2 / 1024)


def test_angles_is_straight_between_its_corners():
    bends = np.abs(np.diff(quality_signals.angles(T), 2)) > 1e-12
    corners = [at for at, _ in quality_signals.ANGLES[1:-1]]
    assert all(min(abs(t - at) for at in corners) <= 2 / 1024 for t in T[1:-1][bends])


@pytest.mark.parametrize(("colour", "slope"), [("white", 0), ("pink", -1)])
def test_noise_has_its_colour_and_level(colour, slope):
    clean = records.ricker(np.random.default_rng(1))
    noise = records.disturbed(clean, colour, 10, 40) - clean
    assert_allclose(10 * np.log10(np.sum(clean**2) / np.sum(noise**2, axis=(1, 2))), 10)
    power = np.mean(np.abs(np.fft.rfft(noise[:, 0])[:, 1:-1]) ** 2, axis=0)
    found = np.polyfit(np.log(np.arange(1, len(power) + 1)), np.log(power), 1)[0]
    assert found == pytest.approx(slope, abs=0.03)


def test_the_gather_leaves_its_dead_trace_out():
    clean, noisy = records.gather()
    assert clean.shape == noisy.shape == (23, 1024)
    assert np.all(np.ptp(clean, axis=1) > 0)
    assert 10 * np.log10(np.sum(clean**2) / np.sum((noisy - clean) ** 2)) == pytest.approx(6, abs=0.01)


def test_details_of_a_delayed_signal_are_those_of_wavelab():
    """WaveLab's: a[k] = Σ h[m] x[2k + m], d[k] = Σ (-1)^m h[m] x[2k + 1 - m], all round."""
    h = np.array(pywt.Wavelet("sym8").rec_lo)
    x = np.random.default_rng(3).standard_normal(256)
    theirs, low = [], x
    for _ in range(4):
        k, m = np.arange(len(low) // 2)[:, None], np.arange(16)
        theirs.append((low[(2 * k + 1 - m) % len(low)] * h * (-1) ** m).sum(axis=1))
        low = (low[(2 * k + m) % len(low)] * h).sum(axis=1)
    ours = pywt.wavedec(np.roll(x, study.GRIDS["WaveLab"]), "sym8", "periodization", 4)[:0:-1]
    for a, b in zip(ours, theirs, strict=True):
        assert_allclose(np.abs(a), np.abs(b), atol=1e-12)


@pytest.mark.parametrize(
    "options", [{"rule": "ebayes", "shrink": "mean"}, {"rule": "blockjs"}, {"rule": "fdr", "transform": "modwt"}]
)
def test_a_way_gives_the_same_by_denoise_and_by_its_parts(options):
    def thresholds(pyramid, statistics, sigma):
        return Method(**options).rule_function(statistics, sigma, pyramid.samples)

    x = np.random.default_rng(4).standard_normal((3, 1024)) + 20 * quality_signals.published()["Bumps"]
    whole, parts = (Way("", options, how)(x, **study.SETTING, level=5) for how in (None, thresholds))
    assert np.array_equal(whole, parts)
    assert not np.array_equal(whole, x)


def test_a_way_takes_more_levels_than_denoise():
    x = np.random.default_rng(4).standard_normal((2, 1024))
    with pytest.raises(ValueError, match="above the maximum of 6"):
        wavefilt.denoise(x, **study.SETTING, level=7, rule=5)
    y = Way("", {"rule": 5.0})(x, **study.SETTING, level=7)
    assert_allclose(
        y,
        wavefilt.waverec(
            [wavefilt.wavedec(x, "sym8", "periodization", 7)[0], *(np.zeros((2, 2**j)) for j in range(3, 10))],
            "sym8",
            "periodization",
        ),
        atol=1e-12,
    )


def test_hard_thresholding_above_the_threshold_removes_one_more_detail_a_level():
    x = np.random.default_rng(5).standard_normal((4, 1024))
    (_, strict), (_, kept) = methods.PUBLISHED[2:]
    count = [
        sum(
            np.count_nonzero(np.abs(d) > 1e-9)
            for d in pywt.wavedec(way(x, **study.SETTING, level=6), "sym8", "periodization", 6)[1:]
        )
        for way in (strict, kept)
    ]
    assert count[1] - count[0] == 4 * 6


def test_fdr_of_all_levels_is_that_of_one_list():
    x = 3 * np.random.default_rng(6).standard_normal((2, 512)) + 40 * (T[:512] > 0.2)
    y = methods.BASELINE["FDR hard, global"](x, **study.SETTING, level=4)
    for before, after in zip(x, y, strict=True):
        details = np.concatenate(pywt.wavedec(before, "sym8", "periodization", 4)[1:])
        sigma = np.median(np.abs(details[-256:])) / 0.6744897501960817
        passed = [
            k
            for k in range(1, len(details) + 1)
            if np.sum(np.abs(details) >= sigma * -ndtri(0.05 * k / (2 * len(details)))) >= k
        ]
        kept = np.concatenate(pywt.wavedec(after, "sym8", "periodization", 4)[1:])
        assert np.count_nonzero(np.abs(kept) > 1e-9) == max(passed)
        assert len(passed) > 1


@pytest.mark.parametrize("label", ["blockjs, ratio 3", "neighblock, ratio 1", "sure, hard above t, ratio 3"])
def test_published_means_are_met_on_their_grid_by_few_seeds(label):
    row = steps()[label].row()
    assert row["grid"] == "WaveLab"
    assert all(abs(share) < 0.08 or abs(errors) < 3 for share, errors in distances(row).values())


def test_the_best_row_of_the_baseline_comes_out_of_the_same_draws():
    row = steps()["fdr, modwt"].row()
    assert_allclose(list(row["rmse of 30"].values()), quality_published.BASELINE["TI FDR hard"], atol=6e-4)


AGAIN = ["blockjs, ratio 3", "universal, hard", "universal, hard, 4 shifts", "minimax, firm, modwt", "coda white 0"]


@pytest.mark.parametrize("label", [*AGAIN, pytest.param("wavelet=sym8", marks=needs("obspy"))])  # a mean of records
def test_rows_can_be_measured_again(label, committed):
    again = steps(quick=False)[label]
    row = again.row()
    names = [key for key, value in row.items() if not isinstance(value, dict)]
    (before,) = (other for other in committed["parts"][again.part] if all(other[key] == row[key] for key in names))
    for key in row.keys() - set(names):
        # without scikit-image or ObsPy here there is less, and rules newer than the measurement have no numbers yet
        known = {name: value for name, value in row[key].items() if name in before[key] or "bivariate" not in name}
        assert known == pytest.approx({name: before[key][name] for name in known}, rel=1e-3), key


def test_a_row_is_the_same_to_the_last_digit():
    again = steps()["hybrid, ratio 1"]
    assert again.row() == again.row()


def test_the_committed_study_is_whole_and_reaches_its_targets(committed):
    assert list(committed["parts"]) == ["published", "baseline", "fresh", "spins", "records", "choices"]
    assert (committed["seeds"], committed["draws"]) == (400, 50)
    for row in committed["parts"]["published"]:
        if row["like"] == "EbayesThresh" or (row["grid"] == "WaveLab" and row["method"] != "sure, hard"):
            assert reached(row)[0] == 7, row["method"]
    notes = list(verdicts(committed))
    assert notes[0] == "Rows of the baseline reached to 2% or better on all four signals: 17 of 17."
    assert notes[1].endswith("on all four signals: minimax, firm, modwt, 7 levels.")
    assert all(row["gain_db"]["bayes, level"] > 0 for row in committed["parts"]["records"])


def test_tables_and_notes_say_who_is_missing(committed):
    committed["columns"]["scikit-image"]["missing"] = "scikit-image is not installed"
    assert "Not run: scikit-image: scikit-image is not installed." in report.notes(committed)
    for sheet in report.report(committed).sheets:
        assert sheet.rows
        assert {len(row) for row in sheet.rows} == {len(sheet.heads)}
    assert max(map(len, report.report(committed).text(100).splitlines())) <= 100


def test_what_is_not_installed_is_told():
    assert methods.missing("numpy") is None
    assert methods.missing("no-such-thing") == ("no-such-thing is not installed: pip install no-such-thing")


def test_command_has_its_options(capsys):
    code, out, err = run(capsys, "bench", "quality", "--help")
    assert code == 0, err
    assert "--quick" in out
