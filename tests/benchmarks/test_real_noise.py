"""The study of real noise: its screening, events, pickers and alternatives, and the study at a tiny size."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import signal

import wavefilt
from tests.support.checkout import ROOT, needs
from wavefilt.benchmarks.quality import (
    alternatives,
    earthquakes,
    field_records,
    picking,
    real_noise,
    real_noise_figure,
    real_noise_report,
)
from wavefilt.benchmarks.quality.field_records import LENGTH, Window

RATE = 100.0


def coloured(seed=1, samples=LENGTH):
    """Noise that passes: that of an autoregression, in whole counts."""
    return np.rint(200 * signal.lfilter([1], [1, -0.9], np.random.default_rng(seed).standard_normal(samples)))


def window(seed=1, source="a", low=1.0, rate=RATE):
    x = coloured(seed)
    filtered = field_records.high_passed(x, rate)
    raw = filtered * 10 ** (low / 20)
    measures = field_records.measures(x, filtered, rate)
    return Window(f"{source}.mseed", f"X.{seed}", source, "2020-01-01", rate, rate, measures, raw, filtered)


def faults(x):
    return field_records.faults(field_records.measures(x, field_records.high_passed(x, RATE), RATE))


# ---- field records


def test_stationary_coloured_noise_passes():
    assert faults(coloured()) == []


@pytest.mark.parametrize(
    ("fault", "spoilt"),
    [
        ("distinct values", lambda x: np.rint(x / 100) * 100),
        ("share of samples at an extreme", lambda x: np.clip(x, -500, 500)),
        ("equal samples in a row", lambda x: np.where(abs(np.arange(LENGTH) - 2400) < 10, 7, x)),
        ("largest over smallest deviation of ten parts", lambda x: x * np.where(np.arange(LENGTH) < 2400, 1, 4)),
        ("excess kurtosis", lambda x: x * np.where(np.random.default_rng(5).random(LENGTH) < 0.02, 8, 1)),
        ("largest STA/LTA", lambda x: x * np.where(abs(np.arange(LENGTH) - 2400) < 50, 5, 1)),
        ("spectral flatness", lambda x: np.rint(1e3 * np.random.default_rng(5).standard_normal(LENGTH))),
        ("share of the strongest frequency", lambda x: x + 3e3 * np.sin(2 * np.pi * 0.1 * np.arange(LENGTH))),
    ],
)
def test_noise_that_fails_says_why(fault, spoilt):
    assert fault in faults(spoilt(coloured()))


def test_constant_samples_fail():
    assert faults(np.full(LENGTH, 5.0))


def test_high_pass_is_causal_and_has_no_start():
    x = np.zeros(2000)
    x[1000] = 1
    assert np.abs(field_records.high_passed(x, RATE)[:1000]).max() < 1e-15
    line = 1e4 + 3 * np.arange(2000.0)
    assert np.abs(field_records.high_passed(line, RATE)).max() < 1


obspy_warns = pytest.mark.filterwarnings("ignore:SelectableGroups:DeprecationWarning")
"""About the metadata that it looks its readers up in."""


def trace(x, rate=RATE, start=0, channel="HHZ"):
    from obspy import Trace, UTCDateTime

    header = {"network": "XX", "station": "A", "channel": channel, "sampling_rate": rate}
    return Trace(x.astype(np.int32), header | {"starttime": UTCDateTime(2020, 1, 1) + start})


@needs("obspy")
@obspy_warns
def test_windows_are_found_once_and_not_more_than_some_of_a_channel(tmp_path, monkeypatch):
    monkeypatch.setattr(field_records, "LENGTH", 1200)
    long = coloured(1, 6 * 1200)
    trace(long).write(tmp_path / "a.mseed", "MSEED")
    trace(long[:2400]).write(tmp_path / "again.mseed", "MSEED")  # the same channel and time
    trace(long[:2400], channel="EHZ").write(tmp_path / "copy.mseed", "MSEED")  # the same samples
    trace(np.repeat(coloured(2, 1300), 2), 200, channel="HHE").write(tmp_path / "fast.mseed", "MSEED")
    trace(coloured(3), 20, channel="BHZ").write(tmp_path / "slow.mseed", "MSEED")
    (tmp_path / "text.txt").write_text("no record")
    found, screened = field_records.windows([tmp_path])
    assert [window.file for window in found] == ["a.mseed"] * field_records.MOST + ["fast.mseed"]
    assert screened["examined"] >= len(found)
    assert [window.start for window in found][:2] == ["2020-01-01T00:00:00", "2020-01-01T00:00:12"]
    assert found[-1].rate == 100
    assert found[-1].recorded == 200
    assert all(len(window.raw) == len(window.filtered) == 1200 for window in found)
    assert {window.source for window in found} == {". 2020-01-01"}


@needs("obspy")
@obspy_warns
def test_an_earthquake_is_found_by_its_ratio(tmp_path):
    noise = coloured(4)
    loud = np.zeros(LENGTH)
    loud[2000:2800] = 100 * coloured(5, 800)
    for name, factor in (("loud", 1.0), ("weak", 0.05)):
        trace(noise + factor * loud).write(tmp_path / f"{name}.mseed", "MSEED")
    trace((noise + loud)[100:]).write(tmp_path / "the same.mseed", "MSEED")
    (event,) = field_records.events([tmp_path])
    assert event.file == "loud.mseed"
    assert event.ratio == pytest.approx(40, abs=2)
    assert np.abs(event.samples[: event.before]).max() < 0.05 * np.abs(event.samples).max()


def test_sources_are_split_in_turn_by_their_low_frequencies():
    some = [window(1, "a", 3), window(2, "b", 20), window(3, "a", 5), window(4, "c", 10)]
    assert field_records.halves(some) == [0, 0, 0, 1]


# ---- events


def test_nothing_comes_before_p_and_s_is_larger():
    x = earthquakes.local(np.random.default_rng(1), RATE, 1500)
    assert not x[:1500].any()
    assert np.abs(x[1500:1510]).max() > 0
    assert np.argmax(np.abs(x)) > 1500 + 1.5 * RATE
    assert np.array_equal(x, earthquakes.local(np.random.default_rng(1), RATE, 1500))


@pytest.mark.parametrize("form", earthquakes.FORMS)
def test_records_have_their_ratios_in_the_signal_window(form):
    some = [window(1), window(2, rate=50.0)]
    records = earthquakes.synthetic(some, form, 3)
    assert records.ratio.tolist() == [*earthquakes.RATIOS] * 3
    assert records.group.tolist() == [0, 0, 0, 1, 1, 1, 0, 0, 0]
    assert records.rate.tolist() == [100.0] * 3 + [50.0] * 3 + [100.0] * 3
    for x, clean, i, j, ratio in zip(
        *(getattr(records, n) for n in ("x", "clean", "onset", "end", "ratio")), strict=True
    ):
        assert 10 * np.log10(np.mean(clean[i:j] ** 2) / (x - clean).var()) == pytest.approx(ratio)
        assert np.sum(clean[i : j + 1] ** 2) >= earthquakes.ENERGY * np.sum(clean**2)
        assert not clean[: earthquakes.NOISE[1]].any()
    assert len(records[records.ratio == 5]) == 3


def test_recorded_events_are_resampled_to_the_noise():
    event = field_records.Event("", "", 50.0, 30.0, 25, np.sin(2 * np.pi * 5 * np.arange(1000) / 50.0))
    records = earthquakes.real([window()], "raw", [event], 2)
    assert len(records) == 2 * len(earthquakes.RATIOS)
    spectrum = np.abs(np.fft.rfft(records.clean[0]))
    assert np.fft.rfftfreq(LENGTH, 1 / RATE)[spectrum.argmax()] == pytest.approx(5, abs=0.1)


# ---- picks


def test_aic_finds_where_the_variance_changes():
    x = np.random.default_rng(1).standard_normal(450)
    x[200:] *= 10
    assert abs(picking.aic(x) - 200) <= 2


def test_silence_misleads_aic_and_a_floor_helps():
    rng = np.random.default_rng(1)
    x = np.concatenate([np.zeros(100), 0.01 * rng.standard_normal(150), 10 * rng.standard_normal(200)])
    assert picking.aic(x) < 150
    assert abs(picking.aic(x, floor=0.05) - 250) <= 2


def test_sta_lta_takes_the_first_arrival():
    x = np.random.default_rng(1).standard_normal(3000)
    x[1500:1600] *= 6
    x[2300:2400] *= 40
    assert abs(picking.sta_lta(x, 50, 500) - 1500) <= 10
    assert picking.sta_lta(np.ones(3000), 50, 500) >= 500


@pytest.mark.parametrize("picker", ["AIC", "STA/LTA"])
def test_picks_in_clean_records_are_right(picker):
    records = earthquakes.synthetic([window()], "high-passed", 4)
    assert np.median(picking.errors(records, records.clean, picker)) < picking.FAR
    assert np.median(picking.errors(records, records.x[:, ::-1], picker)) > picking.FAR


# ---- alternatives


@pytest.fixture(scope="module")
def records():
    return earthquakes.synthetic([window(), window(2)], "high-passed", 2)


def error(records, y):
    return np.sum((y - records.clean) ** 2, axis=1)


def test_filters_that_remove_nothing_give_the_records_back(records):
    assert_allclose(alternatives.wiener(records, 64, 0, 3), records.x, atol=1e-9 * np.abs(records.x).max())
    assert_allclose(alternatives.subtraction(records, 64, 0, 0), records.x, atol=1e-9 * np.abs(records.x).max())
    for y in (alternatives.cwt(records, 0, 0), alternatives.cwt_neighbours(records, 0, 2)):
        assert np.all(np.sum((y - records.x) ** 2, axis=1) < 1e-3 * np.sum(records.x**2, axis=1))


@pytest.mark.parametrize("alternative", alternatives.ALTERNATIVES, ids=lambda one: one.name)
def test_some_parameters_gain(alternative, records):
    if alternative.name == "band-pass":
        pytest.importorskip("obspy")
    choices = list(alternative.choices())
    assert len(choices) == np.prod([len(values) for values in alternative.grid.values()])
    tried = [error(records, alternative.function(records, **choice)).sum() for choice in choices[:: len(choices) // 3]]
    assert min(tried) < error(records, records.x).sum()
    assert len({round(value, 6) for value in tried}) > 1


@pytest.mark.parametrize("transform", ["dwt", "modwt"])
def test_no_soft_threshold_beats_the_oracle(transform, records):
    found = error(records, alternatives.oracle(records, transform))
    assert np.all(found < error(records, records.x))
    for rule in (1.0, "bayes", "sure"):
        scale = rule * records.x[:, :1200].std() if rule == 1.0 else rule
        y = wavefilt.denoise(records.x, "sym8", level=8, rule=scale, transform=transform)
        assert found.sum() < 1.02 * error(records, y).sum()


# ---- the study


@pytest.fixture(scope="module")
def small():
    """The study of two windows of noise, with a few alternatives and one recorded event."""
    event = field_records.Event("", "", RATE, 30.0, 50, earthquakes.local(np.random.default_rng(7), RATE, 50, 3000))
    some = [replace(one, grid={name: values[-2:] for name, values in one.grid.items()}) for one in SMALL]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(real_noise, "ALTERNATIVES", some)
        found = real_noise.study([window(1, "a"), window(2, "b", low=12)], [event], 4, 1)
    return found | {"screened": {"examined": 3, "failed": dict.fromkeys(field_records.LIMITS, 1)}}


SMALL = [one for one in alternatives.ALTERNATIVES if one.name in ("STFT Wiener", "js, window, λ tuned")]


def test_the_study_has_every_method_in_every_table(small):
    json.dumps(small)
    names = [*alternatives.LIBRARY, *(one.name for one in SMALL), "oracle, soft by band, dwt"]
    names.append("oracle, soft by band, modwt")
    for form in earthquakes.FORMS:
        assert [row["method"] for row in small["gains"] if row["form"] == form] == names
        assert [row["method"] for row in small["recorded"] if row["form"] == form] == names
    picked = [row["method"] for row in small["picks"] if row["picker"] == "AIC" and row["floor"]]
    assert picked == [alternatives.RECORD, *names]
    base = next(row for row in small["gains"] if row["method"] == alternatives.BASE)
    assert base["over"] == base["over_p10"] == base["over_within"] == 0
    assert all(row["records"] == 12 for row in small["gains"])
    assert all(row["mean"] == pytest.approx(np.mean([*row["by_ratio"].values()])) for row in small["gains"])


def test_parameters_are_those_of_the_other_half(small):
    """Each of the two halves is one window here: tuned on the records of the other one."""
    some = [window(1, "a"), window(2, "b", low=12)]
    assert [row["half"] for row in small["windows"]] == field_records.halves(some) == [1, 0]
    records = earthquakes.synthetic(some, "raw", 4)
    tuning = records[np.arange(6)]
    (row,) = (row for row in small["tuned"] if row["method"] == "STFT Wiener" and row["form"] == "raw")
    for own, chosen in enumerate(row["parameters"]):
        others = tuning[np.array(field_records.halves(some))[tuning.group] != own]
        grid = {name: values[-2:] for name, values in SMALL[1].grid.items()}
        tried = {
            tuple(choice.items()): real_noise.gain(others, alternatives.wiener(others, **choice)).mean()
            for choice in replace(SMALL[1], grid=grid).choices()
        }
        assert dict(max(tried, key=tried.get)) == chosen


def test_gain_is_that_of_the_whole_record_or_of_the_signal_window(records):
    y = records.x.copy()
    y[:, 4500:] = records.clean[:, 4500:]
    assert np.all(real_noise.gain(records, y) > 0)
    assert_allclose(real_noise.gain(records, y, within=True), 0)


def test_tables_hold_every_row_and_targets_are_judged(small):
    found = real_noise_report.chapters(small)
    for sheet in (sheet for sheets in found.values() for sheet in sheets):
        assert sheet.rows
        assert {len(row) for row in sheet.rows} == {len(sheet.heads)}
    assert len(found["gains"][0].rows) == len(small["gains"]) // 2
    assert len(found["targets"][0].rows) == 7 + 1 + 2 * 2 * len(earthquakes.RATIOS)
    assert real_noise_report.reached("Raw records: dB over x", 3, 3.1)
    assert not real_noise_report.reached("Raw records: dB over x", 3, 2.9)
    assert real_noise_report.reached("Raw records: records made worse", 0, 0)
    assert not real_noise_report.reached("AIC at 0 dB: per cent of outliers", 20, 21)
    assert "2 of 3 windows, of 2 channels and 2 sources, pass" in real_noise_report.notes(small)[1]


# ---- the committed result


@pytest.fixture(scope="module")
def committed():
    return json.loads((ROOT / "benchmarks" / "results" / "real_noise.json").read_text())


def test_the_committed_noise_passes_its_criteria(committed):
    windows = committed["windows"]
    assert len(windows) >= 30
    assert len({window["channel"] for window in windows}) >= 10
    assert not any(field_records.faults(window["measures"]) for window in windows)
    halves = [{window["source"] for window in windows if window["half"] == half} for half in (0, 1)]
    assert all(halves)
    assert not halves[0] & halves[1]
    assert all(event["ratio"] >= field_records.EVENT_RATIO for event in committed["events"])


def test_the_committed_parameters_are_of_the_grids(committed):
    grids = {one.name: one for one in alternatives.ALTERNATIVES}
    assert {row["method"] for row in committed["tuned"]} == grids.keys()
    for row in committed["tuned"]:
        assert all(chosen in grids[row["method"]].choices() for chosen in row["parameters"])


def test_the_committed_study_is_whole(committed):
    assert committed["synthetics"] == real_noise.EVENTS == 200
    assert not any(row["worse"] for row in committed["gains"] if row["method"] == "js, modwt, window")
    for form in earthquakes.FORMS:
        rows = {row["method"]: row for row in committed["gains"] if row["form"] == form}
        assert {*alternatives.LIBRARY} < rows.keys()
        assert all(row["records"] == 600 for row in rows.values())


@needs("obspy")
@obspy_warns
def test_a_window_can_be_measured_again(committed, tmp_path):
    import obspy

    name = "io/seisan/D1360930.203"
    shutil.copy(Path(obspy.__file__).parent / "io/seisan/tests/data/D1360930.203", tmp_path)
    before = [window for window in committed["windows"] if window["file"] == name]
    found, _ = field_records.windows([tmp_path])
    assert [window.start for window in found] == [window["start"] for window in before]
    for window, row in zip(found, before, strict=True):
        assert window.measures == pytest.approx(row["measures"], rel=1e-3)


@needs("obspy")
@needs("matplotlib")
@obspy_warns
def test_the_figure_is_drawn(monkeypatch):
    monkeypatch.setattr(real_noise_figure, "CHANNEL", "X.2")
    records = real_noise_figure.record([window(1), window(2)])
    assert (len(records), records.group[0], records.ratio[0]) == (1, 1, real_noise_figure.RATIO)
    titles = [axes.get_title(loc="left") for axes in real_noise_figure.picture(records).axes]
    assert titles[1:] == [*real_noise_figure.SHOWN, "clean"]
