"""An implementation of a study's problem: a call without arguments, compared before it is timed."""

from __future__ import annotations

import gc
import sys
import time
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from wavefilt import backends
from wavefilt.arrays import Array
from wavefilt.benchmarks.common.measuring import difference, free_memory, walls
from wavefilt.errors import BackendUnavailable

FEWEST = 3
"""Runs of an implementation, however long they take."""
BYTES = 64
"""Memory that the hungriest implementations need per sample, reference included."""


class Mismatch(RuntimeError):
    """An implementation's output differs from the reference."""


def agreement(y: Array, expected: Array, tolerance: float, what: object) -> float:
    """Return the relative difference of a result. Raises Mismatch, naming ``what``, above the tolerance."""
    error = difference(y, expected)
    if not error <= tolerance:
        raise Mismatch(f"{what}: differs from the reference by {error:.1e} of its norm, allowed are {tolerance:.1e}")
    return error


class Problem(Protocol):
    """A problem with a number of samples (pixels), and its expected output by the name of an oracle."""

    @property
    def samples(self) -> int: ...

    def expected(self, oracle: str) -> NDArray[Any]: ...


@dataclass(frozen=True)
class Prepared:
    """``call`` computes and returns when the result is ready; ``host`` converts the result to a NumPy array.

    ``clock(repeats, warm)`` returns quartiles in milliseconds, by default of ``call`` by the clock.
    """

    call: Callable[[], Any]
    host: Callable[[Any], NDArray[Any]] = np.asarray
    clock: Callable[[int, int], dict[str, float]] | None = None

    def times(self, repeats: int, warm: int) -> dict[str, float]:
        return self.clock(repeats, warm) if self.clock else walls(self.call, repeats, warm)


@dataclass(frozen=True)
class Implementation:
    """One column of a study: ``name`` in files, ``heads`` the two lines over its column, ``what`` it is.

    ``require`` raises BackendUnavailable if it cannot run. Its output is compared with the problem's ``oracle``, to a
    ``tolerance`` of the norm.
    """

    name: str
    heads: tuple[str, str]
    what: str
    prepare: Callable[[Any], Prepared]
    require: Callable[[], object] = lambda: None
    oracle: str = ""
    tolerance: float = 1e-5

    @property
    def label(self) -> str:
        return " ".join(self.heads)


def missing(implementation: Implementation) -> str | None:
    """Return why it cannot run here, in one line; None if it can."""
    return unavailable(implementation.require)


def unavailable(require: Callable[[], object]) -> str | None:
    """Return why a requirement is not met, in one line; None if it is."""
    try:
        require()
    except BackendUnavailable as error:
        return " ".join(str(error).split())
    return None


def measured(
    problem: Problem, implementations: Iterable[Implementation], repeats: int, budget: float
) -> tuple[dict[str, dict[str, float]], dict[str, str]]:
    """Return the times of the implementations on one problem, and why any were skipped for lack of memory.

    Each runs ``repeats`` times, or as often as the ``budget`` in seconds allows. Raises Mismatch for a wrong result.
    """
    times, skipped = {}, {}
    expected: dict[str, NDArray[Any]] = {}
    free, needed = free_memory(), BYTES * problem.samples
    for one in implementations:
        if free is not None and needed > free:
            skipped[one.name] = f"needs {needed / 2**30:.1f} GiB of memory, {free / 2**30:.1f} are free"
            continue
        try:
            if one.oracle not in expected:
                expected[one.oracle] = problem.expected(one.oracle)
            times[one.name] = _compared(problem, one, expected[one.oracle], repeats, budget)
        except Exception as error:
            if not isinstance(error, MemoryError) and "out of memory" not in str(error).lower().replace("_", " "):
                raise
            skipped[one.name] = "ran out of memory"
        release()
    return times, skipped


def _compared(
    problem: Problem, implementation: Implementation, expected: NDArray[Any], repeats: int, budget: float
) -> dict[str, float]:
    """Compare the output with the expected one, then time it."""
    prepared = implementation.prepare(problem)
    started = time.perf_counter()
    result = prepared.call()
    seconds = time.perf_counter() - started
    what = f"{implementation.label}, {problem}"
    error = agreement(prepared.host(result), expected, implementation.tolerance, what)
    del result
    if seconds < budget:  # the first call may have compiled
        started = time.perf_counter()
        prepared.call()
        seconds = time.perf_counter() - started
    count = int(min(max(budget / seconds, FEWEST), repeats))
    return prepared.times(count, 3 if seconds < 0.1 else 0) | {"repeats": count, "error": error}


def release() -> None:
    """Free the memory that libraries keep for later calls."""
    gc.collect()
    if "wavefilt.backends.cuda.backend" in sys.modules:
        with suppress(BackendUnavailable):  # its compiler is installed, but there is no GPU
            backend: Any = backends.get("cuda")
            backend.clear()
    if "torch" in sys.modules and sys.modules["torch"].cuda.is_available():
        sys.modules["torch"].cuda.empty_cache()
    if "cupy" in sys.modules:
        sys.modules["cupy"].get_default_memory_pool().free_all_blocks()
