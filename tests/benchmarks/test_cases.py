"""Every implementation of every operation computes what is expected, and leaves its input as it was."""

from __future__ import annotations

import pytest

from wavefilt.benchmarks.common.cases import OPERATIONS
from wavefilt.benchmarks.common.implementation import missing
from wavefilt.benchmarks.common.measuring import difference

TINY = 4096


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
