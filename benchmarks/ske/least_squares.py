"""Fits of the model's parameters to measured times, all on relative residuals. SciPy is imported when one is made."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import ArrayLike, NDArray


def nonnegative(parts: ArrayLike, seconds: ArrayLike, fixed: ArrayLike = 0.0) -> NDArray[np.float64]:
    """theta >= 0 that minimises sum(((parts theta + fixed) / seconds - 1)²).

    Parameters
    ----------
    parts : shape (rows, parameters)
    seconds : shape (rows,), above 0
    fixed : seconds of each row that no parameter scales

    Raises
    ------
    ValueError
        For fewer rows than parameters, or times that are not above 0.
    """
    from scipy.optimize import nnls

    matrix, times = np.asarray(parts, np.float64), np.asarray(seconds, np.float64)
    if matrix.ndim != 2 or times.shape != matrix.shape[:1] or matrix.shape[0] < matrix.shape[1]:
        raise ValueError(f"{matrix.shape} parts and {times.shape} times: at least one row for each parameter is needed")
    if not (times > 0).all():
        raise ValueError("every measured time must be above 0")
    theta, _ = nnls(matrix / times[:, None], 1 - np.asarray(fixed, np.float64) / times)
    return np.asarray(theta, np.float64)


def relative(predicted: ArrayLike, seconds: ArrayLike) -> NDArray[np.float64]:
    """Signed relative errors."""
    return np.asarray(predicted, np.float64) / np.asarray(seconds, np.float64) - 1


def launch_and_bandwidth(sizes: ArrayLike, seconds: ArrayLike) -> tuple[float, float]:
    """(t0, bytes a second) of time = t0 + bytes / bandwidth, the model that any other has to beat."""
    sizes = np.asarray(sizes, np.float64)
    start, slope = nonnegative(np.column_stack([np.ones_like(sizes), sizes]), seconds)
    return float(start), 1 / float(slope) if slope else math.inf


def hiding(warps: ArrayLike, seconds: ArrayLike) -> dict[str, dict[str, float]]:
    """Both laws of hiding for a fixed work done by n warps an SM: latency/n + floor, and the classic r^(n-1).

    Of each its parameters, and the mean and the largest relative error.
    """
    n, times = np.asarray(warps, np.float64), np.asarray(seconds, np.float64)
    latency, floor = nonnegative(np.column_stack([1 / n, np.ones_like(n)]), times)
    slope, level = np.polyfit(n - 1, np.log(times), 1)
    found = {
        "latency/n + floor": ({"latency": latency, "floor": floor}, latency / n + floor),
        "geometric": ({"r": math.exp(slope), "first": math.exp(level)}, np.exp(level + slope * (n - 1))),
    }
    return {
        law: {k: float(v) for k, v in parameters.items()} | summary(relative(predicted, times))
        for law, (parameters, predicted) in found.items()
    }


def geometric(
    base: Sequence[float], warps: Sequence[int], blocks: Sequence[int], seconds: Sequence[float]
) -> tuple[float, float, float]:
    """(scale, rw, rb) of the classic form: time = scale base rw^(nw-1) rb^(nb-1), both at most 1."""
    from scipy.optimize import lsq_linear

    logs = np.log(np.asarray(seconds)) - np.log(np.asarray(base))
    matrix = np.column_stack([np.ones(len(logs)), np.asarray(warps) - 1.0, np.asarray(blocks) - 1.0])
    found = lsq_linear(matrix, logs, ([-np.inf] * 3, [np.inf, 0.0, 0.0])).x
    scale, rw, rb = (math.exp(x) for x in found)
    return scale, rw, rb


def summary(errors: NDArray[np.float64], of: str = "") -> dict[str, float]:
    """Mean and largest absolute error."""
    return {f"{of}mean error": float(np.abs(errors).mean()), f"{of}max error": float(np.abs(errors).max())}
