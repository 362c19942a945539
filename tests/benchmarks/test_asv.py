"""The asv suite: every benchmark runs at its smallest parameters."""

from __future__ import annotations

import inspect
import itertools

import pytest

from tests.support.simulation import outside
from wavefilt.benchmarks.asv import sections, traces, transforms

SUITES = [
    suite
    for module in (traces, sections, transforms)
    for suite in vars(module).values()
    if inspect.isclass(suite) and suite.__module__ == module.__name__
]
SMALLEST = {"Rules": 1, "Sections": 1}
"""Number of leading parameters of which only the smallest is run; all values of the others are run."""


def calls():
    for suite in SUITES:
        first = SMALLEST.get(suite.__name__, len(suite.params))
        for parameters in itertools.product(*([values[0]] for values in suite.params[:first]), *suite.params[first:]):
            yield pytest.param(suite, parameters, id=f"{suite.__name__}-{'-'.join(map(str, parameters))}")


@outside
@pytest.mark.parametrize(("suite", "parameters"), [*calls()])
def test_benchmarks_run(suite, parameters):
    benchmark = suite()
    try:
        benchmark.setup(*parameters)
    except NotImplementedError as reason:
        pytest.skip(str(reason))
    names = [name for name in dir(benchmark) if name.startswith(("time_", "peakmem_"))]
    assert names
    for name in names:
        assert getattr(benchmark, name)(*parameters) is None
    getattr(benchmark, "teardown", lambda *_: None)(*parameters)
