"""The study of ranks: its own arithmetic, and that the criterion of `wavefilt.compare` finds an order."""

from __future__ import annotations

import numpy as np
import pytest

import wavefilt
from wavefilt.benchmarks.quality import ranking

SOME = {name: ranking.METHODS[name] for name in ("universal", "bayes", "bayes, 8 levels", "fdr, modwt")}


@pytest.fixture
def case(monkeypatch):
    monkeypatch.setattr(ranking, "METHODS", SOME)
    first = next(ranking._functions(1))
    return ranking.Case(first.name, first.half, first.x[:3], first.clean[:3])


def true_errors(case, sign=1.0):
    def errors(x, options):
        outputs = [wavefilt.denoise(x, **options, **own) for own in ranking.methods(x.shape[1])]
        return np.array([sign * np.mean((y - case.clean) ** 2, axis=1, keepdims=True) for y in outputs])

    return errors


def test_the_true_order_has_no_loss_and_the_opposite_has_most(case):
    row = ranking.judged(case, "true", true_errors(case), {})
    assert (row["files"], row["correlation"], row["loss"]) == (3, 1, 0)
    wrong = ranking.judged(case, "wrong", true_errors(case, -1.0), {})
    assert wrong["correlation"] == -1
    assert wrong["loss"] > wrong["loss of default"] > 0


def test_the_criterion_finds_an_order(case):
    row = ranking.judged(case, "compare", ranking.estimated, {"sigma": "global"})
    assert row["correlation"] > 0.5
    assert row["loss"] < row["loss of default"]
    assert row["apart"] > 0
    whole = ranking.judged(ranking.Case("", "test", case.x, case.clean, together=True), "", ranking.estimated, {})
    assert whole["files"] == 1


@pytest.mark.parametrize("rank", [ranking.stein, ranking.left_out])
def test_the_others_have_a_number_for_each(case, rank):
    assert rank(case.x, {"sigma": "global"}).shape == (len(SOME), 3, 1)


def test_a_trace_has_the_numbers_of_compare(case):
    found = wavefilt.compare(case.x[:1], methods=ranking.methods(1024), sigma="global", backend="numba")
    risks = ranking.estimated(case.x[:1], {"sigma": "global"}).mean(axis=(1, 2))
    assert sorted(risks) == pytest.approx([trial.risk for trial in found.trials])
