"""The study of sections: its models, the methods it compares with, and the study at a tiny size."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.benchmarks.test_real_noise import window
from tests.support.checkout import needs, run
from wavefilt.benchmarks.quality import sections, sections_alternatives, sections_figure, sections_models
from wavefilt.benchmarks.quality import sections_report as told
from wavefilt.benchmarks.quality.sections import gain
from wavefilt.benchmarks.quality.sections_models import INTERVAL, MODELS, SAMPLES, STATICS, TRACES, Case

DIPS = sections_models.dips()


def case(clean=DIPS, **changes):
    return replace(Case("models", "dips", "white", 0, clean), **changes)


# ---- models


@pytest.mark.parametrize("name", MODELS)
def test_models_are_of_one_size_and_band(name):
    x = MODELS[name]()
    assert x.shape == (TRACES, SAMPLES)
    power = np.mean(np.abs(np.fft.rfft(x)) ** 2, axis=0)
    high = np.fft.rfftfreq(SAMPLES, INTERVAL) > 125
    assert power[high].sum() < 1e-3 * power.sum()
    assert np.all(np.linalg.norm(x, axis=1) > 0)


def test_dips_are_planes():
    """Each trace is the one before it, every event moved by its dip: the flat one stays where it is."""
    flat = DIPS[:, 240:261]
    assert_allclose(flat.mean(axis=0), flat[200], atol=0.15)
    assert np.abs(DIPS.mean(axis=0)).argmax() == 250


def test_the_fault_moves_layers():
    x = sections_models.layers()
    left, right = x[120, :160], x[121, :160]
    lags = np.correlate(right, left, "full").argmax() - len(left) + 1
    assert abs(lags * INTERVAL - 0.03) < 0.003


def test_ragged_traces_are_moved_and_scaled_as_told():
    flat = np.tile(DIPS[0], (400, 1))
    x = sections_models.ragged(flat)
    spectra = np.fft.rfft(x) / np.fft.rfft(flat)
    f = np.fft.rfftfreq(SAMPLES, INTERVAL)
    at = np.abs(np.fft.rfft(flat[0])).argmax()
    shift = -np.angle(spectra[:, at]) / (2 * np.pi * f[at])
    assert_allclose(shift.std(), STATICS, rtol=0.15)
    factors = np.linalg.norm(x, axis=1) / np.linalg.norm(flat, axis=1)
    assert_allclose([factors.mean(), factors.std()], [1, 0.25], rtol=0.15)


@pytest.mark.parametrize("noise", ["white", "pink", "recorded"])
@pytest.mark.parametrize("ratio", [0, 10])
def test_noise_has_its_ratio_and_is_independent_between_traces(noise, ratio):
    one = case(DIPS[:40], noise=noise, ratio=ratio, windows=[window(seed) for seed in range(1, 12)])
    added = one.draws(2, 1) - DIPS[:40]
    for x in added:
        assert_allclose(20 * np.log10(np.linalg.norm(DIPS[:40]) / np.linalg.norm(x)), ratio, atol=0.01)
        between = np.corrcoef(x)[np.triu_indices(40, 1)]
        assert np.abs(between).mean() < 0.2
    assert np.abs(added[0] - added[1]).max() > 0
    assert one.draws(1, 1).dtype == np.float32


def test_gathers_are_read_from_a_folder(tmp_path):
    np.save(tmp_path / "a.npy", DIPS[:20] + 5)
    np.save(tmp_path / "few.npy", DIPS[:8])
    (tmp_path / "text.txt").write_text("no gather")
    found = sections_models.gathers(tmp_path)
    assert list(found) == ["a.npy"]
    assert_allclose(found["a.npy"].mean(axis=1), 0, atol=1e-12)
    assert sections_models.gathers(tmp_path / "..") == {}


def test_groups_are_complete():
    found = [*sections_models.cases([window()], {"a.npy": DIPS[:20]})]
    counts = {group: sum(one.group == group for one in found) for group in told.TITLES}
    assert counts["models"] == counts["ragged"] == 16
    assert counts["24 traces"] >= 16
    assert counts["image"] == 4
    assert [(one.noise, one.ratio) for one in found if one.group == "field"] == [("recorded", 0), ("recorded", 10)]


# ---- alternatives


def test_windows_that_are_kept_give_the_section_back():
    x = np.random.default_rng(1).standard_normal((37, 300))
    assert_allclose(sections_alternatives.windowed(x, (24, 128), lambda windows: windows), x, atol=1e-12)
    assert_allclose(sections_alternatives.windowed(x[:9, :50], (24, 128), lambda windows: windows), x[:9, :50])


def test_one_plane_event_is_predicted_and_of_rank_one():
    """Its spectrum is a geometric sequence along the traces, for a dip of a whole number of samples."""
    x = np.array([np.roll(DIPS[0], 2 * i) for i in range(48)])
    x[:, -110:] = 0
    inside = np.s_[:, 200:800]
    assert gain(x[inside], 0 * x[inside], sections_alternatives.fx_deconvolution(x, 2, 24, 1e-6)[inside]) > 25
    assert gain(x[inside], 0 * x[inside], sections_alternatives.rank_reduction(x, 1, 0)[inside]) > 15


@pytest.mark.parametrize("one", sections_alternatives.alternatives(), ids=lambda one: one.name)
def test_every_alternative_gains_on_dips_and_leaves_their_scale(one):
    small = case(DIPS[:48, 200:712])
    x = small.draws(1, 1)[0]
    chosen = sections.tuned(one, small)
    y = one.function(x, **chosen)
    assert y.shape == x.shape
    assert gain(small.clean, x, y) > 2
    assert_allclose(one.function(100 * x, **chosen), 100 * y, rtol=0, atol=2e-2 * np.abs(100 * y).max())


def test_a_damped_rank_removes_more_noise():
    x = np.random.default_rng(1).standard_normal((48, 256))
    plain, damped = (sections_alternatives.rank_reduction(x, 4, damping) for damping in (0, 2))
    assert np.linalg.norm(damped) < 0.7 * np.linalg.norm(plain) < 0.7 * np.linalg.norm(x)


@needs("dascore")
def test_the_dip_filter_keeps_gentle_events_alone():
    trace = np.arange(TRACES)
    gentle, steep = (np.cos(2 * np.pi * 0.0625 * (np.arange(SAMPLES) - dip * trace[:, None])) for dip in (0.5, 4))
    assert gain(gentle, 0 * gentle, sections_alternatives.dip_filter(gentle, 1, 1)) > 20
    assert np.linalg.norm(sections_alternatives.dip_filter(steep, 1, 1)) < 0.1 * np.linalg.norm(steep)


def test_parameters_are_the_best_of_the_grid_on_another_draw():
    tried = []

    def scaled(x, factor):
        tried.append((factor, x.copy()))
        return factor * x

    one = sections_alternatives.Alternative("scaled", scaled, {"factor": (0.1, 0.5, 0.9)})
    assert sections.tuned(one, case(DIPS[:20])) == {"factor": 0.5}  # at 0 dB half of the record is signal
    assert [factor for factor, _ in tried] == [0.1, 0.5, 0.9]
    measured = case(DIPS[:20]).draws(sections.DRAWS, sections.SEED)
    assert np.abs(measured - tried[0][1]).max(axis=(1, 2)).min() > 0.1


# ---- the study


@pytest.fixture(scope="module")
def result():
    small = [case(DIPS[:32, 240:496], noise=noise) for noise in ("white", "pink")]
    small += [replace(one, group="ragged") for one in small]
    return json.loads(json.dumps(sections.study(small, 1)))


def test_the_study_measures_every_method_in_every_case(result):
    names = [*sections_alternatives.LIBRARY, *(one.name for one in sections_alternatives.alternatives())]
    assert [list(row["gain_db"]) for row in result["cases"]] == 4 * [names]
    assert set(result["times"]) == set(names)
    assert len(result["tuned"]) == 4 * len(sections_alternatives.alternatives())
    x = case(DIPS[:32, 240:496]).draws(1, sections.SEED)[0]
    y = sections.wavefilt.denoise(x, **sections_alternatives.LIBRARY["bayes"])
    assert_allclose(result["cases"][0]["gain_db"]["bayes"], gain(DIPS[:32, 240:496], x, y), rtol=1e-6)


def test_tables_and_verdicts_follow_from_the_rows(result):
    for row in result["cases"]:
        row["gain_db"] |= {"bayes": 5.0, "ebayes, mean": 6.0, "f-x deconvolution": 9.0}
        row["gain_db"] |= dict.fromkeys(told.COMPARED, 8.0)
    result["times"] |= dict.fromkeys(told.COMPARED, 0.1)
    found = {what: (limit, values) for what, limit, values in told.targets(result)}
    assert [limit for limit, _ in found.values()] == [2, 2, 5.5, 4, 1.5]
    for name in told.COMPARED:
        assert [values[name] for _, values in found.values()] == [3, 2, 3, 3, 3]
        assert any(
            line.startswith(f"{name} gains less than f-x deconvolution in 4 of 4") for line in told.losses(result)
        )
        assert not any(line.startswith(f"{name} gains less than bayes") for line in told.losses(result))
    (verdicts,) = told.chapters(result)["targets"]
    assert [row[2].split()[1] for row in verdicts.rows if len(row) > 2] == (
        ["yes", "yes", "no", "no", "yes"] if told.COMPARED else []
    )
    (means,) = told.chapters(result)["means"]
    assert next(row for row in means.rows if row[0] == "bayes")[1:3] == ["+5.0", "+5.0"]
    text = told.report(result).markdown()
    assert "Models of 256 traces, pink noise" in text


def test_the_command_runs_a_quick_one(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(sections, "cases", lambda windows, fields: [case(DIPS, group="ragged"), case(ratio=10)])
    monkeypatch.delenv("WAVEFILT_FIELD_RECORDS", raising=False)
    code, out, _ = run(capsys, "bench", "quality", "sections", "--quick", "-o", tmp_path / "s.json")
    assert code == 0
    assert "Gain in dB, means" in out
    saved = json.loads((tmp_path / "s.json").read_text())
    assert [(row["group"], row["traces"], row["samples"]) for row in saved["cases"]] == [("ragged", 64, 256)]


def test_the_picture_has_every_method_and_what_it_removed(monkeypatch):
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(sections_alternatives, "ALTERNATIVES", {})
    titles = [axes.get_title() for axes in sections_figure.picture(case(DIPS[:, :512])).axes]
    assert titles[0] == "white noise, 0 dB"
    shown = [title.rpartition(":")[0] for title in titles if " dB" in title and ":" in title]
    assert shown == list(sections_alternatives.LIBRARY)
    assert titles.count("removed") == len(shown)
