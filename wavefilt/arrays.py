"""Conversion of NumPy arrays, masked arrays and pandas objects to rows of floating samples, and back.

Also the names of array types, and checks of the coordinates of samples. pandas is imported only where a caller has
imported it before.
"""

from __future__ import annotations

import operator
import os
import shlex
from collections.abc import Callable, Container, Hashable, Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from math import prod
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import numpy as np
import numpy.ma  # otherwise imported at its first use, when a fork does not wait for it
from numpy.typing import NDArray

from wavefilt.vocabulary import check

if TYPE_CHECKING:
    import pandas as pd

Array: TypeAlias = NDArray[Any]
"""Samples or coefficients in host memory, of any dtype."""
Floats: TypeAlias = NDArray[np.float64]
"""Statistics, noise levels and thresholds."""
Counts: TypeAlias = NDArray[np.int64]
Mask: TypeAlias = NDArray[np.bool_]
DType: TypeAlias = np.dtype[Any]
Key = TypeVar("Key", bound=Hashable)

LAST = ((-1,), (-2, -1))
"""The axes of traces, and of sections, that need not be moved."""


@dataclass(slots=True)
class Traces:
    """An array as ``rows`` in the dtype of computation, with the way back.

    The shape of the rows is (traces, samples), or with two axes (sections, rows, columns).
    """

    rows: NDArray[Any]
    original: NDArray[Any]
    axes: tuple[int, ...]

    @property
    def dtype(self) -> DType:
        """The dtype of the result: that of the original if it is floating, otherwise that of computation."""
        return self.original.dtype if self.original.dtype.kind in "fc" else self.rows.dtype

    def rows_of(self, out: object) -> Array | None:
        """Return the memory of ``out`` as rows; None if the result must be restored and copied there.

        Raises TypeError unless ``out`` and the original are plain arrays, and ValueError unless ``out`` has the shape
        and dtype of the result and is writable.
        """
        if isinstance(self.original, np.ma.MaskedArray):
            raise TypeError("out= takes no masked samples, and x is a masked array")
        if not isinstance(out, np.ndarray) or isinstance(out, np.ma.MaskedArray):
            raise TypeError(f"out is a {type(out).__name__}, and the result a NumPy array")
        check_out((out.shape, out.dtype), (self.original.shape, self.dtype))
        if not out.flags.writeable:
            raise ValueError("out is read-only")
        movable = self.axes in LAST and out.flags.carray and out.dtype == self.rows.dtype
        if not movable or np.may_share_memory(out, self.rows):
            return None
        return out.reshape(self.rows.shape)

    def restore(self, rows: NDArray[Any]) -> NDArray[Any]:
        """Return ``rows`` as an array of the shape, floating dtype and kind (plain or masked) of the original."""
        original = self.original
        if self.axes in LAST:
            y = rows.reshape(original.shape)
        else:
            last = LAST[len(self.axes) - 1]
            y = np.moveaxis(rows.reshape(np.moveaxis(original, self.axes, last).shape), last, self.axes)
        if original.dtype.kind in "fc":
            y = y.astype(original.dtype, copy=False)
        if isinstance(original, np.ma.MaskedArray):
            y = np.ma.MaskedArray(np.where(np.ma.getmaskarray(original), original.data, y), original.mask)
            y.fill_value = original.fill_value
        return y


@cache
def dtype_name(dtype: Any) -> str:
    """Return NumPy's name of a dtype, also for a dtype of another library; NumPy itself takes 7 us for it."""
    return dtype.name if isinstance(dtype, np.dtype) else str(dtype).rpartition(".")[2]


@cache
def compute_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype in which samples are computed.

    float32, float64, complex64 and complex128 as they are; float16 and integers of up to 16 bits in float32;
    wider integers and long double in float64 (complex128). Raises TypeError for anything else.
    """
    if dtype.kind == "c":
        return np.dtype(np.complex64 if dtype.itemsize <= 8 else np.complex128)
    if dtype.kind == "f":
        return np.dtype(np.float32 if dtype.itemsize <= 4 else np.float64)
    if dtype.kind in "iu":
        return np.dtype(np.float32 if dtype.itemsize <= 2 else np.float64)
    raise TypeError(f"samples of dtype {dtype} cannot be denoised; integer, floating or complex samples can")


def check_axes(shape: tuple[int, ...], axes: tuple[int, ...]) -> None:
    """Raise ValueError for a scalar, an axis out of range or without samples, or the same axis twice."""
    if not shape:
        raise ValueError("x is a single number; an array with samples along an axis is needed")
    for axis in axes:
        if not -len(shape) <= operator.index(axis) < len(shape):
            raise ValueError(f"`axis={axis}` is out of range for an array of {len(shape)} dimensions")
        if shape[axis] == 0:
            raise ValueError(f"x of shape {shape} has no samples along axis {axis}")
    if len(axes) > 1 and len({axis % len(shape) for axis in axes}) < len(axes):
        raise ValueError(f"`axes={axes}` are the same axis of an array of {len(shape)} dimensions")


def check_out(given: tuple[tuple[int, ...], DType], wanted: tuple[tuple[int, ...], DType]) -> None:
    """Raise ValueError unless ``out`` has the shape and dtype of the result."""
    if given != wanted:
        has, result = (f"{shape} and dtype {dtype}" for shape, dtype in (given, wanted))
        raise ValueError(f"out has shape {has}, and the result has shape {result}")


def as_array(x: Any) -> Array:
    """Return an array, with masked samples if ``x`` or an array in this list has any."""
    parts = x if isinstance(x, list | tuple) else (x,)  # NumPy would use the samples under the masks
    return np.ma.array(x) if any(isinstance(part, np.ma.MaskedArray) for part in parts) else np.asarray(x)


def take(x: Any, *axes: int) -> Traces:
    """Return a host array (or nested sequence) as C-contiguous rows along one axis, or sections along two.

    Masked samples become NaN. The input is never modified. Raises TypeError for a dtype that cannot be denoised, and
    ValueError for a scalar, an axis out of range, the same axis twice, or no samples along an axis.
    """
    array = as_array(x)
    dtype = compute_dtype(array.dtype)
    check_axes(array.shape, axes)
    if isinstance(array, np.ma.MaskedArray):
        # ma.filled would cast NaN to the dtype first
        samples = np.where(np.ma.getmaskarray(array), dtype.type(np.nan), array.data.astype(dtype))
    else:
        samples = array
    moved = samples if axes in LAST else np.moveaxis(samples, axes, LAST[len(axes) - 1])
    shape = moved.shape[-len(axes) :]
    return Traces(np.ascontiguousarray(moved.reshape(moved.size // prod(shape), *shape), dtype), array, axes)


def constant(x: Array, gaps: bool = False) -> Mask:
    """Return which traces (..., samples) are dead: all samples are equal. Few samples of other traces are read.

    With ``gaps``, NaN are left out.
    """
    last, first = x.shape[-1] - 1, x[..., 0]

    def alike(place: int) -> Mask:
        other = x[..., place]
        same: Mask = first == other
        return same | np.isnan(first) | np.isnan(other) if gaps else same

    found = alike(last)
    for place in (last // 2, last // 4, 3 * last // 4):
        if not found.any():
            return found
        found &= alike(place)
    rows = x[found]
    there = ~np.isnan(rows) if gaps else np.ones((1, rows.shape[-1]), bool)
    value = np.take_along_axis(rows, np.argmax(there, axis=-1)[..., None], axis=-1)
    found[found] = ((rows == value) | ~there).all(axis=-1)
    return found


def least_run(samples: int) -> int:
    """Return how many equal samples of a trace with ``samples`` samples are a muted, clipped or dead part."""
    return min(max(samples // 16, 32), 128)


def equal_runs(x: Array) -> Mask | None:
    """Return which samples of traces (..., samples) are in runs of `least_run` or more equal samples; None if none is.

    Dead traces, all of whose samples are equal, have no runs, and NaN are in no run.
    """
    least, samples = least_run(x.shape[-1]), x.shape[-1]
    probes = x[..., :: least // 2]  # a run has two neighbouring ones at least
    suspected = (probes[..., 1:] == probes[..., :-1]).any(axis=-1)
    if not suspected.any():
        return None
    suspected &= ~constant(x)
    same = x[suspected]
    edges = np.diff(same[:, 1:] == same[:, :-1], axis=1, prepend=False, append=False)
    places = np.flatnonzero(edges)  # the first sample of a run and its last one, in turn
    runs = places.reshape(-1, 2)[places[1::2] - places[::2] + 1 >= least]
    if not len(runs):
        return None
    steps = np.zeros((len(same), samples + 1), np.int8)
    steps.ravel()[runs[:, 0] + runs[:, 0] // samples] = 1
    steps.ravel()[runs[:, 1] + runs[:, 1] // samples + 1] = -1
    found = np.zeros(x.shape, bool)
    found[suspected] = np.add.accumulate(steps[:, :-1], axis=1, dtype=np.int8).view(bool)
    return found


INSTEAD = {
    "obspy.Stream": "wavefilt.obspy.denoise(x) denoises it and keeps its headers",
    "obspy.Trace": "wavefilt.obspy.denoise(x) denoises it and keeps its header; its samples are x.data",
    "xarray.DataArray": "import wavefilt.xarray, then x.wavefilt.denoise(dim) denoises it; its samples are x.values",
    "xarray.Dataset": "import wavefilt.xarray, then x.wavefilt.denoise(dim) denoises it",
    "dascore.Patch": "x.wavefilt.denoise(dim) denoises it; its samples are x.data",
    "dask.Array": "wavefilt.dask.denoise(x) denoises it lazily; its samples are x.compute()",
    "wavefilt.Recording": "x.denoise() denoises it; its samples are x.samples",
    "pandas.DataFrame": "its samples are x.to_numpy(), with time along the first axis",
    "polars.DataFrame": "its samples are x.to_numpy(), with time along the first axis",
    "polars.Series": "its samples are x.to_numpy()",
}
"""How to denoise objects that are no arrays, though NumPy would make one of them, by library and class."""
TABLES = ("pandas.DataFrame", "polars.DataFrame", "xarray.Dataset")
"""Kinds whose last axis is not time."""


def kind_of(x: object) -> str:
    """Return library and class of an object of `INSTEAD` or a pandas Series, "path" for a path, otherwise ""."""
    return _kind(type(x))  # type: ignore[arg-type]  # a type of any object is hashable


@cache
def _kind(cls: type) -> str:
    if issubclass(cls, np.ndarray | list | tuple):
        return ""
    if issubclass(cls, str | bytes | os.PathLike):
        return "path"
    kinds = map(_full_name, cls.__mro__)
    return next((kind for kind in kinds if kind in INSTEAD or kind == "pandas.Series"), "")


def _full_name(cls: type) -> str:
    """Return the name of a class with its package."""
    return f"{cls.__module__.partition('.')[0]}.{cls.__name__}"


def refuse_kinds(x: Any, kinds: Container[str] = TABLES) -> None:
    """Raise TypeError, with the call to use instead, for a path and for objects of these kinds."""
    kind = kind_of(x)
    if kind == "path":
        path = os.fsdecode(x)
        instead = f"wavefilt.read({path!r}).denoise(), or wavefilt.denoise_file({path!r}, target)"
        if os.path.isdir(path):
            every = shlex.quote(os.path.join(path, "*"))
            instead = f"wavefilt.denoise_file(source, target) for each file, or the command wavefilt denoise {every}"
        raise TypeError(f"{path!r} is a path, and samples are needed: {instead}")
    if kind in kinds:
        raise TypeError(f"x is a {kind}, not an array: {INSTEAD[kind]}")


DLPACK_CUDA = 2
"""DLPack's number for memory of a CUDA device."""


ON_GPU: dict[str, Callable[[Any], bool]] = {
    "cupy.ndarray": lambda x: True,
    "numba.DeviceNDArray": lambda x: True,
    "torch.Tensor": lambda x: bool(x.is_cuda),
}
"""Tests for the libraries that are quicker than `__cuda_array_interface__`, which takes some microseconds."""


@cache
def _tells(cls: type) -> Callable[[Any], bool]:
    return ON_GPU.get(_full_name(cls), _interface_on_gpu)


def on_gpu(x: Any) -> bool:
    """Return whether an array is in the memory of a CUDA device."""
    return _tells(type(x))(x)  # type: ignore[arg-type]  # a type of any object is hashable


def _interface_on_gpu(x: Any) -> bool:
    found = hasattr(x, "__cuda_array_interface__")
    if not found and hasattr(x, "__dlpack_device__"):
        found = x.__dlpack_device__()[0] == DLPACK_CUDA
    return found


def places(values: Iterable[Key]) -> dict[Key, list[int]]:
    """Return the places of each value in a sequence, the values in their order."""
    found: dict[Key, list[int]] = {}
    for place, value in enumerate(values):
        found.setdefault(value, []).append(place)
    return found


def known(trace: Array) -> Array:
    """Return the samples outside gaps; the trace itself if it has none."""
    gaps = np.ma.filled(np.isnan(trace), True)
    return np.asarray(trace[~gaps] if gaps.any() else trace)


@dataclass(slots=True)
class Frame(Traces):
    """The samples of a pandas Series or DataFrame, whose index is the time axis, with the way back."""

    frame: pd.Series | pd.DataFrame

    def rows_of(self, out: object) -> Array | None:
        """Raise TypeError: a result of pandas has no memory that a caller can give."""
        kind = type(self.frame).__name__
        raise TypeError(f"`out` is for arrays; x is a pandas {kind}, and its samples are x.to_numpy()")

    def restore(self, rows: Array) -> pd.Series | pd.DataFrame:
        """Return rows as the kind of the original, with its index, columns, name, attributes and floating dtypes."""
        import pandas as pd

        x, y = self.frame, Traces.restore(self, rows)
        found: pd.Series | pd.DataFrame
        if isinstance(x, pd.Series):
            found = pd.Series(y, index=x.index, name=x.name)
        elif y.dtype.kind == "c" or all(dtype == y.dtype or dtype.kind != "f" for dtype in x.dtypes):
            found = pd.DataFrame(y, index=x.index, columns=x.columns)
        else:
            dtypes = [dtype if dtype.kind == "f" else y.dtype for dtype in x.dtypes]
            found = pd.DataFrame({i: y[:, i].astype(dtype) for i, dtype in enumerate(dtypes)}, index=x.index)
            found.columns = x.columns
        found.attrs = dict(x.attrs)
        return found


def take_pandas(x: pd.Series | pd.DataFrame, axis: int = -1, axes: tuple[int, int] | None = None) -> Frame:
    """Return a Series or DataFrame as rows, in the dtype that all columns have in common.

    Raises TypeError for columns without numbers or of pandas' own dtypes, and ValueError for an index that is not
    evenly spaced or has several levels, or for an axis that is not the index.
    """
    import pandas as pd

    kind = type(x).__name__
    if axes is None and axis not in (-1, 0):
        raise ValueError(f"`axis={axis}`: a {kind} is denoised along its index; transpose it, or pass x.to_numpy()")
    columns = [("x", x.dtype)] if isinstance(x, pd.Series) else [(f"column {c!r}", d) for c, d in x.dtypes.items()]
    for name, dtype in columns:
        if not isinstance(dtype, np.dtype):
            raise TypeError(
                f"{name} has pandas' dtype {dtype}; a dtype of NumPy is needed: x.astype('float64') makes missing "
                "values NaN, which are gaps"
            )
        if dtype.kind not in "iufc":
            raise TypeError(f"{name} of dtype {dtype} cannot be denoised; select columns of numbers first")
    index = x.index
    if isinstance(index, pd.MultiIndex):
        raise ValueError(
            f"the index has {index.nlevels} levels; select the samples of one trace, with x.xs or x.unstack"
        )
    coordinate: Any = index
    if isinstance(index, pd.PeriodIndex):
        coordinate = index.astype("int64")
    elif isinstance(index, pd.DatetimeIndex):
        coordinate = index.tz_localize(None) if index.tz is None else index.tz_convert(None)
    if not isinstance(index, pd.RangeIndex):
        check_even(coordinate.to_numpy(), "the index", "drop the index with x.reset_index(drop=True)")
    samples = x.to_numpy(np.result_type(*(dtype for _, dtype in columns)) if columns else np.float64)
    taken = take(np.asarray(samples), *((0,) if axes is None else axes))
    return Frame(taken.rows, taken.original, taken.axes, x)


TOLERANCE = 0.01
"""Allowed deviation of a sampling interval from the median interval, as a share of it."""


def transformed(dim: Hashable | Sequence[Hashable], known: Sequence[Hashable]) -> tuple[Hashable, ...]:
    """Return the dimension that the option ``dim`` names, or the pair for sections, with the one along traces last.

    That is the one called "time", otherwise the first. Raises OptionError for a dimension that is not ``known``.
    """
    pair = isinstance(dim, tuple | list) and dim not in known
    dims: tuple[Hashable, ...] = tuple(dim) if pair else (dim,)  # type: ignore[arg-type]
    for one in dims:
        check("dim", str(one), map(str, known))
    if pair and len(set(dims)) != 2:
        raise ValueError(f"`dim={dim!r}` must be one dimension, or a pair of dimensions for sections")
    return dims[::-1] if pair and dims[1] != "time" else dims


def check_even(coordinate: Any, name: str, otherwise: str) -> None:
    """Raise ValueError, with place and size of the worst interval, unless samples are evenly spaced.

    ``coordinate`` holds numbers, times or durations, of NumPy or as objects, and may run backwards; other labels are
    accepted. An interval may differ from the median by `TOLERANCE`, or by the resolution of the dtype if that is more
    (a nanosecond, the rounding of float32), but by less than half an interval. ``otherwise`` is what a user can do if
    the coordinate does not matter.
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
    """Return a coordinate as numbers, times or durations; None for other labels."""
    if values.dtype.kind == "O" and len(values):
        try:  # Python's times, or cftime's
            values = (values - values[0]).astype("timedelta64[us]")
        except (TypeError, ValueError):
            return None
    if values.dtype.kind == "u":
        values = values.astype(np.int64)
    return values if values.dtype.kind in "ifmM" else None


def _interval(step: float, dtype: DType) -> str:
    """Return an interval as text, in seconds for times."""
    if dtype.kind not in "mM":
        return f"{step:g}"
    unit, count = np.datetime_data(dtype)
    if unit in ("Y", "M"):
        return f"{count * step:g} {unit}"
    (seconds,) = np.ones(1, f"timedelta64[{count}{unit}]") / np.timedelta64(1, "s")
    return f"{seconds * step:g} s"
