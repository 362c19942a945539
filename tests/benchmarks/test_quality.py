"""The quality harness: its records, metrics and alternatives, a quick run of every part, and its tables."""

from __future__ import annotations

import json
from dataclasses import replace
from functools import cache

import numpy as np
import pytest
from numpy.testing import assert_allclose

import wavefilt
from tests.support.checkout import ROOT, needs
from wavefilt.benchmarks.quality import harness, methods, records, tables
from wavefilt.benchmarks.quality.__main__ import measured
from wavefilt.benchmarks.quality.records import Case, Record

RNG = np.random.default_rng
obspy_warns = pytest.mark.filterwarnings("ignore")
"""ObsPy's own warnings about its metadata and of what it imports."""
DIPS = records.dips()


def earthquake(x, onset=1500, rate=100.0, quiet=(0, 1200)):
    return Record("x", "earthquakes", "raw", 5, 0, x[None], 0 * x[None] + 1, quiet, None, onset, onset + 900, rate)


# ---- metrics


def test_gain_is_the_ratio_of_error_energies_in_db():
    clean, before = np.zeros((2, 50)), np.ones((2, 50))
    assert harness.gain(clean, before, before / 10) == pytest.approx(20)
    assert harness.gain(clean, before, 2 * before) == pytest.approx(-20 * np.log10(2))


def test_a_picker_finds_a_step_of_the_variance():
    x = RNG(1).standard_normal(4800)
    x[1500:2400] *= 8
    assert harness.picks(earthquake(x), x[None])["aic_s"] <= 0.05
    late = np.roll(x, 300)
    assert harness.picks(earthquake(x), late[None])["aic_s"] > 0.2


def test_silence_misleads_a_picker_without_a_floor():
    x = RNG(1).standard_normal(4800)
    x[1500:2400] *= 8
    y = np.where(np.arange(4800) < 1500, 1e-9 * x, x)
    y[1400:] += 1e-3
    found = harness.picks(earthquake(x), y[None])
    assert found["aic_s"] <= 0.05
    assert found["aic_no_floor_s"] > 0.5


def test_harm_is_by_the_record_and_by_windows():
    noise = np.ones((1, 256))
    record = Record("x", "y", "white", 0, 0, noise, 0 * noise)
    worse = noise.copy()
    worse[0, 64:128] = 2
    assert harness.growth(record, noise) == (0, 0)
    assert harness.growth(record, worse) == (0.75, 3)
    assert harness.growth(record, 0 * noise) == (-1, -1)
    grown = ((0.1, 0), (-0.5, 3.1), (-0.5, 2), (-0.5, 1))
    assert [harness.harmful(*pair) for pair in grown] == [True, True, None, False]


@pytest.mark.parametrize(
    ("harm", "said", "counted"),
    [
        (True, True, {"harmful"}),
        (True, False, {"harmful", "missed"}),
        (True, None, {"harmful", "undecided"}),
        (False, True, {"harmless", "alarms"}),
        (False, False, {"harmless"}),
        (None, True, {"between"}),
    ],
)
def test_verdicts_are_counted(harm, said, counted):
    assert {name for name, count in harness.judged(harm, said).items() if count} == counted


def test_rows_are_condensed_to_means_medians_counts_and_the_worst():
    rows = [
        {"method": "a", "gain_db": g, "aic_s": s, "missed": 1, "snr": 0} for g, s in ((2, 0.1), (-1.0, 0.4), (2.0, 0.1))
    ]
    (found,) = harness.condensed([{**row, "gain_db": float(row["gain_db"])} for row in rows], ["method"])
    expected = {"method": "a", "count": 3, "gain_db": 1, "worst_db": -1, "worse": 1, "missed": 3}
    assert found == expected | {"aic_s": 0.1, "aic_s_far": 0.333}


def test_parameters_are_the_best_of_the_grid_on_other_records():
    one = Record("x", "models", "white", 0, 0, DIPS + DIPS.std() * RNG(1).standard_normal(DIPS.shape), DIPS)
    scaled = methods.Method("scaled", lambda record, factor: factor * record.x, {"factor": (0.1, 0.5, 0.9)})
    assert harness.tuned(scaled, [one]) == {"factor": 0.5}  # at 0 dB half of the energy is signal
    assert harness.tuned(methods.Method("plain", lambda record: record.x), []) == {}


# ---- records


@pytest.mark.parametrize(("kind", "slope"), [("white", 0), ("pink", -1)])
@pytest.mark.parametrize("ratio", [0, 10])
def test_noise_has_its_spectrum_and_its_ratio(kind, slope, ratio):
    clean = records.ricker()
    added = records.draws(clean, kind, ratio, 40) - clean
    assert_allclose(10 * np.log10(np.sum(clean**2) / np.sum(added**2, axis=(1, 2))), ratio, atol=1e-9)
    power = np.mean(np.abs(np.fft.rfft(added[:, 0])[:, 1:-1]) ** 2, axis=0)
    assert np.polyfit(np.log(np.arange(1, len(power) + 1)), np.log(power), 1)[0] == pytest.approx(slope, abs=0.03)


def test_functions_are_those_of_the_literature():
    for name, f in records.published().items():
        assert (f.min(), np.ptp(f)) == (pytest.approx(0.2, abs=1e-3), pytest.approx(0.6, abs=3e-3)), name


@pytest.mark.parametrize("name", records.MODELS)
def test_models_are_of_one_size_and_band(name):
    x = records.MODELS[name]()
    assert x.shape == (256, 1024)
    power = np.mean(np.abs(np.fft.rfft(x)) ** 2, axis=0)
    assert power[np.fft.rfftfreq(1024, 0.002) > 125].sum() < 1e-3 * power.sum()
    assert np.all(np.linalg.norm(x, axis=1) > 0)


@pytest.mark.parametrize("group", records.RAGGED)
def test_ragged_traces_have_statics_and_scattered_amplitudes(group):
    statics, scatter = records.RAGGED[group]
    flat = np.tile(DIPS[0], (400, 1))
    x = records.ragged(flat, statics, scatter)
    at = np.abs(np.fft.rfft(flat[0])).argmax()
    turn = (np.fft.rfft(x) / np.fft.rfft(flat))[:, at]
    assert_allclose((-np.angle(turn) / (2 * np.pi * np.fft.rfftfreq(1024, 0.002)[at])).std(), statics, rtol=0.15)
    assert_allclose((np.linalg.norm(x, axis=1) / np.linalg.norm(flat, axis=1)).std(), scatter, rtol=0.15)


@pytest.mark.parametrize("kind", records.KINDS[1:])
def test_records_to_judge_have_noise_of_unit_deviation_and_a_quiet_window(kind):
    for draw in range(4):
        record = records.of_kind(kind, draw)
        assert (record.x - record.clean).std() == pytest.approx(1)
        if record.quiet:
            lead = record.clean[:, slice(*record.quiet)]
            assert np.sum(lead**2) <= 0.01 * np.sum(record.clean**2)
        assert np.array_equal(record.x, records.of_kind(kind, draw).x)
    assert (record.quiet is None) == (kind == "sustained")


def test_stationary_noise_passes_the_criteria_and_bursts_do_not():
    place = np.arange(records.LENGTH)
    x = np.rint(200 * np.cumsum(RNG(1).standard_normal(records.LENGTH)))
    quiet = records.high_passed(x, 100.0)
    assert records.faults(x, quiet, 100.0) == []
    assert "largest STA/LTA" in records.faults(x, quiet * np.where(abs(place - 2400) < 50, 6, 1), 100.0)
    assert records.faults(np.sign(x), quiet, 100.0) == ["distinct values"]
    assert records.faults(x, RNG(5).standard_normal(records.LENGTH), 100.0) == ["spectral flatness"]


@needs("obspy")
@obspy_warns
def test_an_earthquake_has_its_ratio_and_nothing_before_its_onset():
    for record in records.synthetic(records.field_windows()[:2], "above 1 Hz", 2):
        signal = record.clean[0, record.onset : record.end]
        noise = (record.x - record.clean)[0]
        assert 10 * np.log10(np.mean(signal**2) / noise.var()) == pytest.approx(record.snr, abs=0.05)
        assert np.abs(record.clean[0, : record.onset - 1]).max() < 1e-9 * np.abs(signal).max()


# ---- methods


def test_options_in_words():
    own = {"rule": "ebayes", "shrink": "mean", "transform": "modwt", "level": 8}
    assert methods.options("ebayes, mean, modwt, 8 levels") == own
    assert methods.options("section, fk, sine16x32") == {"axes": (-2, -1), "transform": "fk", "wavelet": "sine16x32"}
    assert methods.options("js, window, 4 spins, sigma=2.0") == {"rule": "js", "sigma": 2.0, "spins": 4}


def test_the_noise_window_is_that_of_the_record():
    x = RNG(1).standard_normal(2048)
    record = earthquake(x, quiet=(0, 500))
    expected = wavefilt.denoise(x[None], rule="js", sigma=("window", 0, 500))
    assert np.array_equal(methods.library("js, window").run(record), expected)


def test_an_alternative_that_is_not_installed_is_left_out_with_the_reason(monkeypatch):
    monkeypatch.setattr(methods, "version", lambda package: None)
    found = harness.left_out("sections")
    assert found == {
        "BM3D": "bm3d is not installed: pip install bm3d",
        "non-local means": "scikit-image is not installed: pip install scikit-image",
    }


def test_windows_that_are_kept_give_the_section_back():
    x = RNG(1).standard_normal((37, 300))
    assert_allclose(methods.windowed(x, (24, 128), lambda windows: windows), x, atol=1e-12)


def test_one_plane_event_is_predicted():
    """Its spectrum is a geometric sequence along the traces, for a dip of a whole number of samples."""
    x = np.array([np.roll(DIPS[0], 2 * i) for i in range(48)])
    x[:, -110:] = 0
    inside = np.s_[:, 200:800]
    assert harness.gain(x[inside], 0 * x[inside], methods.fx_deconvolution(x, 2, 24, 1e-6)[inside]) > 25


def test_a_wiener_filter_and_a_band_pass_gain_on_a_tone_in_noise():
    t = np.arange(4800)
    tone = np.where(t > 1500, 3 * np.sin(2 * np.pi * 0.1 * t), 0)
    record = replace(earthquake(tone + RNG(1).standard_normal(4800)), clean=tone[None])
    for y in (methods.short_time(record, 128, 2, 5), methods.band_pass(record, 5, 15, 2)):
        assert harness.gain(record.clean, record.x, y) > 5


# ---- parts


def quick(part, monkeypatch, cases):
    """Return the condensed result of a part on the given cases, through JSON."""
    monkeypatch.setitem(harness.PARTS, part, (lambda quick: cases, *harness.PARTS[part][1:]))
    return json.loads(json.dumps(measured(part, True)))


def cases(part, label):
    return [case for case in harness.PARTS[part][0](True) if case.label.startswith(label)]


def test_published_results_are_reached_within_their_error(monkeypatch):
    some = [case for case in cases("signals", "B") if case.records[0].group == "published"]
    result = quick("signals", monkeypatch, some)
    assert len(result["rows"]) == 2 * 2 * len(methods.PUBLISHED)
    for row in (row for row in result["rows"] if row["method"] != "smash"):
        mean, error = tables.XING[row["method"]][row["function"]]
        assert abs(row["loss"] - mean) < 0.06 * mean + 3 * np.hypot(error, row["loss_error"]), row


REFERENCE = {
    "universal": (0.957, 1.077, 0.319, 0.557),
    "universal, hard": (0.573, 0.583, 0.253, 0.341),
    "minimax": (0.684, 0.763, 0.262, 0.407),
    "sure": (0.481, 0.513, 0.247, 0.336),
    "hybrid": (0.569, 0.537, 0.256, 0.378),
    "fdr": (0.474, 0.508, 0.235, 0.313),
    "bayes": (0.514, 0.590, 0.248, 0.394),
    "blockjs": (0.637, 0.599, 0.292, 0.286),
    "neighblock": (0.542, 0.490, 0.265, 0.270),
    "ebayes": (0.454, 0.487, 0.227, 0.305),
    "universal, hard, modwt": (0.374, 0.384, 0.199, 0.229),
}
"""Root mean square error over σ of the four functions, computed with NumPy and PyWavelets alone from the same draws."""


@pytest.mark.parametrize("rule", REFERENCE)
def test_errors_are_those_of_an_independent_computation(rule):
    method = methods.library(rule, wavelet="sym8", mode="periodization", sigma="global", level=6)
    for case, expected in zip(functions(), REFERENCE[rule], strict=True):
        (record,) = case.records
        assert np.sqrt(np.mean((method.run(record) - record.clean) ** 2)) == pytest.approx(expected, abs=1.1e-3)


@cache
def functions():
    return [case for case in records.cases_of_signals(False) if case.records[0].group == "functions"]


def test_gains_on_a_record_are_those_of_denoise_and_repeat(monkeypatch):
    monkeypatch.setitem(methods.BY_GROUP, "records", [methods.library("bayes"), methods.library("js, global")])
    some = cases("signals", "coda, white, 0")
    result = quick("signals", monkeypatch, some)
    (record,) = some[0].records
    expected = harness.gain(record.clean, record.x, wavefilt.denoise(record.x))
    assert {row["method"]: row["gain_db"] for row in result["rows"]}["bayes"] == pytest.approx(expected, abs=1e-3)
    assert 9 < expected < 10
    assert quick("signals", monkeypatch, cases("signals", "coda, white, 0"))["rows"] == result["rows"]


def test_every_method_for_sections_gains_on_dips(monkeypatch):
    some = cases("sections", "models dips, white")
    result = quick("sections", monkeypatch, some)
    installed = [method.name for method in methods.SECTIONS if not method.missing()]
    assert [row["method"] for row in result["rows"]] == installed
    assert all(row["gain_db"] > 2 for row in result["rows"])
    groups = {case.records[0].group for case in records.cases_of_sections(True)}
    assert groups >= {"models", "ragged", "mild", "24 traces"}


@needs("obspy")
@obspy_warns
def test_earthquakes_are_denoised_and_picked(monkeypatch):
    monkeypatch.setitem(methods.BY_GROUP, "earthquakes", [methods.TRACES[0], methods.library("js, window, modwt")])
    found = records.synthetic(records.field_windows()[:4], "above 1 Hz", 4)
    plain, js = quick("real-noise", monkeypatch, [Case("x", found, found)])["rows"]
    assert (plain["gain_db"], plain["within_db"], plain["count"]) == (0, 0, 12)
    assert js["gain_db"] > 5 > js["within_db"] > 1
    assert {"aic_s", "aic_no_floor_s_far"} <= js.keys()


def test_verdicts_and_ranks_have_rows_for_declared_and_undeclared_noise(monkeypatch):
    some = [Case("x", [records.of_kind(kind, 0)]) for kind in ("shots", "noise alone")]
    result = quick("trust", monkeypatch, some)
    assert [(row["group"], row["declared"]) for row in result["rows"]] == [
        (kind, declared) for kind in ("shots", "noise alone") for declared in (False, True)
    ]
    for row in result["rows"]:
        assert row["harmful"] + row["harmless"] + row["between"] == row["count"] == harness.DENOISINGS
    assert result["rows"][-1]["harmful"] == 0
    monkeypatch.setattr(methods, "RANKED", ["universal", "bayes", "js, sym8, modwt"])
    free, declared = quick("ranking", monkeypatch, some)["rows"]
    assert (free["group"], free["declared"], declared["declared"]) == ("shots", False, True)
    assert 0 == declared["loss_db"] < declared["loss_bayes_db"]
    assert free["correlation"] > 0


@pytest.mark.parametrize("stem", tables.TABLES)
def test_committed_results_have_tables_that_fit_a_page(stem):
    result = json.loads((ROOT / "benchmarks" / "results" / f"{stem}.json").read_text())
    assert "with changes" not in result["environment"]["commit"]
    for part, text in tables.TABLES[stem](result).items():
        lines = text.strip().splitlines()
        assert 4 < len(lines) <= 27, part
        assert len({line.count("|") for line in lines[2:]}) == 1
    assert max(map(len, tables.report(result).text(100).splitlines())) <= 100
