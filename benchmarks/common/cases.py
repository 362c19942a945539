"""Every operation that is measured and everyone who implements it: one table, for the studies and for the tests."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from wavefilt.benchmarks.common.implementation import Implementation, Problem
from wavefilt.benchmarks.laplace1d import cases
from wavefilt.benchmarks.laplace2d import cases as laplace2d_cases
from wavefilt.benchmarks.scaling import implementations as denoise_cases


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
