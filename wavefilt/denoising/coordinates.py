"""Coordinates of samples, as pandas, xarray and DASCore have them: refused where they are not evenly spaced."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from wavefilt.arrays import Array, DType
from wavefilt.vocabulary import check

TOLERANCE = 0.01
"""Of the median interval: by so much an interval may differ, or by the resolution of the coordinate's dtype."""


def transformed(dim: Hashable | Sequence[Hashable], known: Sequence[Hashable]) -> tuple[Hashable, ...]:
    """The dimension that the option ``dim`` names, or the pair of a panel: the one along the traces last.

    Of a pair that is the one called "time", else the first. Raises ValueError for a dimension that is not ``known``.
    """
    pair = isinstance(dim, tuple | list) and dim not in known
    dims: tuple[Hashable, ...] = tuple(dim) if pair else (dim,)  # type: ignore[arg-type]
    for one in dims:
        check("dim", str(one), map(str, known))
    if pair and len(set(dims)) != 2:
        raise ValueError(f"dim={dim!r} must be one dimension, or a pair of them for panels")
    return dims[::-1] if pair and dims[1] != "time" else dims


def check_even(coordinate: Any, name: str, otherwise: str) -> None:
    """Raise ValueError unless the samples are evenly spaced, forwards or backwards; it says where and by how much.

    ``coordinate`` are numbers, times, or durations, of NumPy or as objects; labels of another kind are no spacing, and
    are accepted. An interval may differ from the median by `TOLERANCE`, or by what the dtype resolves where that is
    more (a nanosecond, the rounding of float32), but never by half an interval. ``otherwise`` is what a user can do
    if the coordinate does not matter.
    """
    values = _numbers(np.asarray(coordinate))
    if values is None or len(values) < 2:
        return
    missing = np.flatnonzero(np.isnan(values) | (np.isinf(values) if values.dtype.kind == "f" else False))
    if missing.size:
        raise ValueError(f"{name} is {values[missing[0]]} at sample {missing[0]}; {otherwise}")
    dtype = values.dtype
    numbers = values.view(np.int64) if dtype.kind in "mM" else values
    steps = np.diff(numbers)
    median = float(np.median(steps))
    resolution = 2 * float(np.spacing(np.abs(numbers).max())) if dtype.kind == "f" else 1.0
    off = np.abs(steps - median)
    worst = int(np.argmax(off))
    if median == 0 or off[worst] > min(max(TOLERANCE * abs(median), resolution), abs(median) / 2):
        places = f"from sample {worst} ({coordinate[worst]}) to {worst + 1} ({coordinate[worst + 1]})"
        raise ValueError(
            f"{name} is not evenly spaced: the interval {places} is {_interval(steps[worst], dtype)}, the median is "
            f"{_interval(median, dtype)}, and {TOLERANCE:.0%} more or less are allowed; resample first, or {otherwise}"
        )


def _numbers(values: Array) -> Array | None:
    """The coordinate as numbers, times or durations; None for labels of another kind."""
    if values.dtype.kind == "O" and len(values):
        try:  # Python's times, or cftime's
            values = (values - values[0]).astype("timedelta64[us]")
        except (TypeError, ValueError):
            return None
    if values.dtype.kind == "u":
        values = values.astype(np.int64)
    return values if values.dtype.kind in "ifmM" else None


def _interval(step: float, dtype: DType) -> str:
    """In seconds for times."""
    if dtype.kind not in "mM":
        return f"{step:g}"
    unit, count = np.datetime_data(dtype)
    if unit in ("Y", "M"):
        return f"{count * step:g} {unit}"
    (seconds,) = np.ones(1, f"timedelta64[{count}{unit}]") / np.timedelta64(1, "s")
    return f"{seconds * step:g} s"
