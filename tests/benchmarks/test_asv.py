"""The asv suite: every benchmark runs, those of large arrays with smaller ones."""

from __future__ import annotations

import itertools

import pytest

from tests.support.simulation import outside
from wavefilt.benchmarks.asv import calls

SUITES = (calls.Denoise, calls.Transforms, calls.Files)
CASES = [(suite, values) for suite in SUITES for values in itertools.product(*suite.params)]


@outside
@pytest.mark.parametrize(("suite", "values"), CASES, ids=[f"{s.__name__}-{v}" for s, v in CASES])
def test_benchmarks_run(suite, values, monkeypatch):
    noise = calls.noise
    monkeypatch.setattr(
        calls, "noise", lambda *shape: noise(*(min(n, 256) for n in shape[:-1]), min(shape[-1], 1 << 12))
    )
    benchmark = suite()
    try:
        benchmark.setup(*values)
    except NotImplementedError as reason:
        pytest.skip(str(reason))
    names = [name for name in dir(benchmark) if name.startswith(("time_", "peakmem_"))]
    for name in names or pytest.fail("no benchmark"):
        assert getattr(benchmark, name)(*values) is None
    getattr(benchmark, "teardown", lambda *_: None)(*values)
