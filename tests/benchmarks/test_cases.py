"""Every implementation of every operation computes what is expected, and leaves its input as it was."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import pytest

from wavefilt.benchmarks.common.implementation import Implementation, Problem, missing
from wavefilt.benchmarks.common.measuring import difference
from wavefilt.benchmarks.laplace1d import cases
from wavefilt.benchmarks.laplace2d import cases as laplace2d_cases
from wavefilt.benchmarks.scaling import implementations as denoise_cases

TINY = 4096


@dataclass(frozen=True)
class Operation:
    """``of(samples)`` is a problem of about that size, which all ``implementations`` solve."""

    name: str
    of: Callable[[int], Problem]
    implementations: tuple[Implementation, ...]


OPERATIONS = (
    Operation("denoise, db4", partial(denoise_cases.Problem, "db4"), denoise_cases.IMPLEMENTATIONS),
    Operation("denoise, db8", partial(denoise_cases.Problem, "db8"), denoise_cases.IMPLEMENTATIONS),
    Operation("laplace, 1-D", cases.Problem, cases.IMPLEMENTATIONS),
    Operation("laplace, 2-D", laplace2d_cases.Problem.of, laplace2d_cases.IMPLEMENTATIONS),
)


@pytest.mark.parametrize(
    ("operation", "implementation"),
    [
        pytest.param(operation, one, id=f"{operation.name}: {one.name}", marks=[pytest.mark.gpu] if one.device else [])
        for operation in OPERATIONS
        for one in operation.implementations
    ],
)
def test_implementations_compute_the_same(operation, implementation):
    reason = missing(implementation)
    if reason:
        pytest.skip(reason)
    problem = operation.of(TINY)
    prepared, expected = implementation.prepare(problem), problem.expected(implementation.oracle)
    for _ in range(2):
        y = prepared.host(prepared.call())
        assert y.shape == expected.shape
        assert difference(y, expected) <= implementation.tolerance
    assert difference(y, problem.x) > 0.05
