"""Importing this module gives xarray's DataArray and Dataset the accessor ``wavefilt``: ``da.wavefilt.denoise()``."""

from __future__ import annotations

from collections.abc import Hashable
from datetime import UTC, datetime
from typing import Any

import numpy as np

from wavefilt.denoising import options as plugins
from wavefilt.denoising.traces import denoise
from wavefilt.vocabulary import check
from wavefilt.wavelets.filters import WaveletLike

try:
    import xarray
except ImportError as error:
    raise ImportError(f'wavefilt.xarray needs xarray ({error}): pip install "wavefilt[xarray]"') from error


@xarray.register_dataarray_accessor("wavefilt")
class DataArrayAccessor:
    """``da.wavefilt``"""

    def __init__(self, array: Any) -> None:
        self._array = array

    def denoise(
        self, dim: Hashable = "time", wavelet: WaveletLike = "db8", *, backend: str = "auto", **options: Any
    ) -> Any:
        """A new DataArray denoised along ``dim``, whose samples are taken to lie evenly; lazily if Dask holds it.

        Name, coordinates and attributes are kept, with a line more in the attribute ``history``; an encoding, which
        says how the samples were stored, is not. ``options`` are those of `wavefilt.denoise` (of
        `wavefilt.dask.denoise` if Dask holds the array): level, mode, rule, shrink, sigma, scope, keep, transform and
        spins.

        Raises ValueError for a dimension or an option of another name and for what `wavefilt.denoise` refuses,
        TypeError for samples that are not numbers.
        """
        array = self._array
        check("dim", str(dim), map(str, array.dims))
        method = plugins.method(wavelet, options, backend, "dim")
        axis = array.get_axis_num(dim)
        if array.chunks is None:
            samples = denoise(array.data, wavelet, axis=axis, backend=backend, **options)
        else:
            from wavefilt.dask import blocks

            samples = blocks.denoise(array.data, wavelet, axis=axis, backend=backend, **options)
        new = array.copy(deep=False, data=samples)
        new.encoding = {}  # stored integers would round what was denoised
        line = plugins.entry(method, method.level_for(array.sizes[dim]), dim=dim, backend=backend)
        return new.assign_attrs(history=_longer(array.attrs, line))


@xarray.register_dataset_accessor("wavefilt")
class DatasetAccessor:
    """``ds.wavefilt``"""

    def __init__(self, dataset: Any) -> None:
        self._dataset = dataset

    def denoise(
        self, dim: Hashable = "time", wavelet: WaveletLike = "db8", *, backend: str = "auto", **options: Any
    ) -> Any:
        """A new Dataset with all variables of numbers along ``dim`` denoised, and all else as it is.

        Options and errors are those of `DataArrayAccessor.denoise`; ``scope="record"`` is that of each variable. The
        history grows in the attributes of the Dataset and of the variables that were denoised. Also raises ValueError
        if no variable of numbers has ``dim``.
        """
        dataset = self._dataset
        check("dim", str(dim), map(str, dataset.dims))
        method = plugins.method(wavelet, options, backend, "dim")
        denoised = {}
        for name, array in dataset.data_vars.items():
            if dim in array.dims and array.dtype.kind in "iufc":
                try:
                    denoised[name] = DataArrayAccessor(array).denoise(dim, wavelet, backend=backend, **options)
                except (TypeError, ValueError) as error:
                    raise type(error)(f"variable {name!r}: {error}") from error
        if not denoised:
            raise ValueError(f"no variable of numbers has the dimension {dim!r}; variables: {list(dataset.data_vars)}")
        line = plugins.entry(method, method.level_for(dataset.sizes[dim]), dim=dim, backend=backend)
        return dataset.assign(denoised).assign_attrs(history=_longer(dataset.attrs, line))


def _longer(attributes: dict[str, Any], line: str) -> str:
    """The history in these attributes and the line, after the time as the CF conventions have it."""
    before = [str(old) for old in np.atleast_1d(attributes.get("history", [])) if str(old)]
    return "\n".join([*before, f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} {line}"])
