"""The study of the trust report: what counts as harmful, local similarity, and its table."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.ndimage import uniform_filter1d

from wavefilt.benchmarks.quality import trust, trust_records
from wavefilt.benchmarks.quality.trust_records import Case, harmful


def test_harm_is_by_the_record_and_by_windows():
    noise = np.ones((1, 256))
    case = Case("x", "y", 0, "z", np.zeros((1, 256)), noise, lambda rows: rows)
    assert case.grown(noise) == (0, 0)
    worse = noise.copy()
    worse[0, 64:128] = 2
    assert case.grown(worse) == (0.75, 3)
    assert case.grown(0 * noise) == (-1, -1)
    assert [harmful(*pair) for pair in ((0.1, 0), (-0.5, 3.1), (-0.5, 2), (-0.5, 1))] == [True, True, None, False]


def test_local_similarity_solves_its_equation():
    rng = np.random.default_rng(0)
    a, b = rng.standard_normal((2, 1, 80))
    eye = np.eye(80)
    smooth = uniform_filter1d(uniform_filter1d(eye, trust.RADIUS, axis=-1), trust.RADIUS, axis=-1).T

    def factor(x, y):
        scale = np.mean(x**2)
        matrix = eye + smooth @ np.diag(x[0] ** 2 / scale - 1) @ smooth
        return smooth @ np.linalg.solve(matrix, smooth @ (x * y)[0] / scale)

    expected = np.sqrt(np.abs(factor(a, b) * factor(b, a)))
    np.testing.assert_allclose(trust.local_similarity(a, b)[0], expected, rtol=0.1, atol=0.01)
    np.testing.assert_allclose(trust.local_similarity(a, 3 * a), 1, rtol=0.05)


def test_a_small_study(monkeypatch):
    monkeypatch.setattr(trust_records, "_recorded", lambda test: ([], []))
    monkeypatch.setattr(trust, "COUNTS", {"design": 4, "test": 4})
    monkeypatch.setattr(trust, "NOISE", len(trust_records.NOISES))
    result = trust.run()
    assert len(result["records"]) == 8
    records = [dict(zip(trust.COLUMNS.split("; "), line.split("; "), strict=True)) for line in result["records"]]
    assert {row["noise"] for row in records if row["set"] == "test"} <= set(trust_records.TEST_NOISES)
    for row in result["rows"]:
        kinds = [r["harmful"] for r in records if r["set"] == row["set"]]
        if row["records"] == "all":
            assert row["counts"]["harmful"] == kinds.count("True")
    text = trust.report(result).text(200)
    assert "harmful" in text
    assert "local similarity" in text


@pytest.mark.parametrize("kind", trust_records.NOISES)
def test_noise_has_unit_variance_and_its_spectrum(kind):
    x = trust_records.coloured(np.random.default_rng(0), (8, 4096), kind)
    assert x.std() == pytest.approx(1)
    power = np.mean(np.abs(np.fft.rfft(x)) ** 2, axis=0)
    expected = trust_records.NOISES[kind](np.fft.rfftfreq(4096)[1:]) ** 2
    ratio = power[1:] / expected
    assert ratio[:500].mean() / ratio[1000:].mean() == pytest.approx(1, abs=0.15)
