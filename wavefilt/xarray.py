"""Importing this module gives xarray's DataArray and Dataset the accessor ``wavefilt``: ``da.wavefilt.denoise()``."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from datetime import UTC, datetime
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from wavefilt.denoising.api import denoise
from wavefilt.denoising.coordinates import check_even
from wavefilt.denoising.noise_times import on_coordinate
from wavefilt.denoising.options import Options, check_names, history_line, method
from wavefilt.method import Method
from wavefilt.vocabulary import check
from wavefilt.wavelets.filters import WaveletLike

try:
    import xarray
except ImportError as error:
    raise ImportError(f'wavefilt.xarray needs xarray ({error}): pip install "wavefilt[xarray]"') from error


@xarray.register_dataarray_accessor("wavefilt")
class DataArrayAccessor:
    """``da.wavefilt``"""

    def __init__(self, array: xarray.DataArray) -> None:
        self._array = array

    def denoise(
        self, dim: Hashable = "time", wavelet: WaveletLike = "db8", *, backend: str = "auto", **options: Unpack[Options]
    ) -> xarray.DataArray:
        """A new DataArray denoised along ``dim``, lazily with Dask.

        The coordinate of ``dim``, if there is one of numbers or times, must be evenly spaced (to 1 % of the interval).

        Name, coordinates and attributes are kept, and a line is added to the attribute ``history``; an encoding, which
        describes how the samples were stored, is dropped. ``options`` are those of `wavefilt.denoise` (of
        `wavefilt.dask.denoise` for a Dask array): level, mode, rule, shrink, sigma, scope, keep, transform, spins,
        detrend and blend. ``sigma`` has seconds instead of samples: ``("seconds", start, stop)`` of noise from the
        first sample, ``("before", pick, seconds)``, ``("running", seconds)`` and ``("intervals", points)``. Picks and
        points are values of the coordinate, times or numbers (which are seconds), as are the ends of
        ``("window", start, stop)`` if they are times; whole numbers there are samples.

        Raises ValueError for an unknown dimension or option, an uneven coordinate, and for what `wavefilt.denoise`
        refuses, TypeError for samples that are not numbers.
        """
        array = self._array
        check("dim", str(dim), map(str, array.dims))
        options, chosen = _in_samples(array, dim, wavelet, options, backend)
        if dim in array.coords:
            check_even(array[dim].values, f"coordinate {dim!r}", f"drop it with x.drop_vars({dim!r})")
        axis = array.get_axis_num(dim)
        if array.chunks is None:
            samples = denoise(array.data, wavelet, axis=axis, backend=backend, **options)
        else:
            from wavefilt.dask import blocks

            samples = blocks.denoise(array.data, wavelet, axis=axis, backend=backend, **options)
        new = array.copy(deep=False, data=samples)
        new.encoding = {}  # integers as stored would round the denoised samples
        line = history_line(chosen, chosen.level_for(array.sizes[dim]), dim=dim, backend=backend)
        return new.assign_attrs(history=_extended(array.attrs, line))


@xarray.register_dataset_accessor("wavefilt")
class DatasetAccessor:
    """``ds.wavefilt``"""

    def __init__(self, dataset: xarray.Dataset) -> None:
        self._dataset = dataset

    def denoise(
        self, dim: Hashable = "time", wavelet: WaveletLike = "db8", *, backend: str = "auto", **options: Unpack[Options]
    ) -> xarray.Dataset:
        """A new Dataset with all numeric variables that have ``dim`` denoised, and everything else unchanged.

        Options and errors are those of `DataArrayAccessor.denoise`; ``scope="record"`` applies to each variable alone.
        A line is added to the history of the Dataset and of each variable that was denoised. Also raises ValueError
        if no numeric variable has ``dim``.
        """
        dataset = self._dataset
        check("dim", str(dim), map(str, dataset.dims))
        _, chosen = _in_samples(dataset, dim, wavelet, options, backend)
        denoised = {}
        for name, array in dataset.data_vars.items():
            if dim in array.dims and array.dtype.kind in "iufc":
                try:
                    denoised[name] = DataArrayAccessor(array).denoise(dim, wavelet, backend=backend, **options)
                except (TypeError, ValueError) as error:
                    kind = TypeError if isinstance(error, TypeError) else ValueError
                    raise kind(f"variable {name!r}: {error}") from error
        if not denoised:
            raise ValueError(f"no numeric variable has the dimension {dim!r}; variables: {list(dataset.data_vars)}")
        line = history_line(chosen, chosen.level_for(dataset.sizes[dim]), dim=dim, backend=backend)
        return dataset.assign(denoised).assign_attrs(history=_extended(dataset.attrs, line))


def _in_samples(
    data: xarray.DataArray | xarray.Dataset, dim: Hashable, wavelet: WaveletLike, options: Options, backend: str
) -> tuple[Options, Method]:
    """The options with noise in samples, and the method with them."""
    check_names(options, backend, "dim")
    name = f"coordinate {dim!r}" if dim in data.coords else f"dimension {dim!r} without coordinate"
    coordinate = data[dim].values if dim in data.coords else np.array([])
    own: Options = {**options, "sigma": on_coordinate(options.get("sigma", "level"), coordinate, name)}
    return own, method(wavelet, own, backend, "dim")


def _extended(attributes: Mapping[str, ArrayLike], line: str) -> str:
    """The history in these attributes, with this line after the time, as in the CF conventions."""
    before = [str(old) for old in np.atleast_1d(attributes.get("history", [])) if str(old)]
    return "\n".join([*before, f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} {line}"])
