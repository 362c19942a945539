"""pandas: Series and DataFrames as arrays with time along the first axis, and arrays as their kind again.

pandas is imported only here, and the caller has imported it before.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from wavefilt.arrays import Array
from wavefilt.denoising.coordinates import check_even

if TYPE_CHECKING:
    import pandas as pd


def samples_of(x: pd.Series | pd.DataFrame, axis: int, axes: tuple[int, int] | None) -> Array:
    """The samples, shape (samples,) or (samples, columns), in the dtype that all columns have in common.

    Raises TypeError for columns without numbers or of pandas' own dtypes, and ValueError for an index that is not
    evenly spaced or has several levels, or for an axis that is not the index.
    """
    import pandas as pd

    kind = type(x).__name__
    if axes is None and axis not in (-1, 0):
        raise ValueError(f"axis={axis}: a {kind} is denoised along its index; transpose it, or pass x.to_numpy()")
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
    return np.asarray(x.to_numpy(np.result_type(*(dtype for _, dtype in columns)) if columns else np.float64))


def like(x: pd.Series | pd.DataFrame, y: Array) -> pd.Series | pd.DataFrame:
    """Samples as the kind of ``x``, with its index, columns, name and attributes; floating columns keep their dtype."""
    import pandas as pd

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
