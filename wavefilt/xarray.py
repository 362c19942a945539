"""The accessor ``wavefilt`` of xarray's DataArray and Dataset, ``da.wavefilt.denoise()``, once this is imported."""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from datetime import UTC, datetime
from typing import Unpack

import numpy as np
from numpy.typing import ArrayLike

from wavefilt.api import denoise
from wavefilt.arrays import check_even, transformed
from wavefilt.backends import registry
from wavefilt.options import Clock, Keywords, Options, along, check_names
from wavefilt.wavelets.filters import WaveletLike

try:
    import xarray
except ImportError as error:
    raise ImportError(f'wavefilt.xarray needs xarray ({error}): pip install "wavefilt[xarray]"') from error


@xarray.register_dataarray_accessor("wavefilt")
class DataArrayAccessor:
    """Accessor ``da.wavefilt``."""

    def __init__(self, array: xarray.DataArray) -> None:
        self._array = array

    def denoise(
        self,
        dim: Hashable | tuple[Hashable, Hashable] = "time",
        wavelet: WaveletLike | None = None,
        *,
        backend: str = "auto",
        **options: Unpack[Keywords],
    ) -> xarray.DataArray:
        """Denoise along ``dim`` and return a new DataArray; lazily with Dask.

        A pair, such as ``("time", "distance")``, transforms both dimensions together, as ``axes`` of
        `wavefilt.denoise`. The dimension called "time", otherwise the first, is along the traces. All other dimensions
        are a batch of sections, which must not be divided into Dask chunks.

        The coordinate of ``dim`` (of a pair, the one along the traces) must be evenly spaced to 1 % of the interval, if
        it has numbers or times.

        Name, coordinates and attributes are kept, and a line is added to the attribute ``history``; the encoding is
        dropped, as it describes how the original samples were stored. ``options`` are as in `wavefilt.denoise` (or
        `wavefilt.dask.denoise` for a Dask array): level, mode, rule, shrink, sigma, scope, keep, transform, spins,
        detrend and blend. ``sigma`` takes seconds instead of samples: ``("seconds", start, stop)`` is a noise window
        between two values of the coordinate, or between seconds from the first sample if the coordinate has dates;
        further forms are ``("before", pick, seconds)``, ``("running", seconds)`` and ``("intervals", points)``. Picks,
        points and the ends of ``("window", start, stop)`` are values of the coordinate; whole numbers in a window are
        samples.

        Raises ValueError for an unknown dimension or option, an uneven coordinate, and as `wavefilt.denoise`, and
        TypeError for samples that are not numbers.
        """
        array = self._array
        check_names(options, "dim")
        registry.check_name(backend)
        dims = transformed(dim, array.dims)
        time, axes = dims[-1], [array.dims.index(own) for own in dims]
        coordinate, name = np.array([]), f"dimension {time!r} without coordinate"
        if time in array.coords:
            coordinate, name = array[time].values, f"coordinate {time!r}"
            check_even(coordinate, name, f"drop it with x.drop_vars({time!r})")
        sigma = Clock.of_coordinate(coordinate, name).in_samples(options.get("sigma", "level"))
        options = {**options, "sigma": sigma}
        shape = [array.sizes[own] for own in dims]
        chosen = Options(wavelet, **options, ndim=2 if len(dims) == 2 else 1).fitting(*shape)
        if array.chunks is None:
            samples = denoise(array.data, wavelet, backend=backend, **along(axes), **options)
        else:
            from wavefilt import dask

            samples = dask.denoise(array.data, wavelet, backend=backend, **along(axes), **options)
        new = array.copy(deep=False, data=samples)
        new.encoding = {}  # integers as stored would round the denoised samples
        line = chosen.history(chosen.level_for(*shape), dim=dim, backend=backend)
        return new.assign_attrs(history=_extended(array.attrs, f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ} {line}"))


@xarray.register_dataset_accessor("wavefilt")
class DatasetAccessor:
    """Accessor ``ds.wavefilt``."""

    def __init__(self, dataset: xarray.Dataset) -> None:
        self._dataset = dataset

    def denoise(
        self,
        dim: Hashable | tuple[Hashable, Hashable] = "time",
        wavelet: WaveletLike | None = None,
        *,
        backend: str = "auto",
        **options: Unpack[Keywords],
    ) -> xarray.Dataset:
        """Denoise all numeric variables that have ``dim`` and return a new Dataset; other variables are unchanged.

        Options and errors are those of `DataArrayAccessor.denoise`; ``scope="record"`` applies to each variable alone.
        A line is added to the history of the Dataset and of each denoised variable. Also raises ValueError if no
        numeric variable has ``dim``.
        """
        dataset = self._dataset
        dims = transformed(dim, tuple(dataset.dims))
        denoised = {}
        for name, array in dataset.data_vars.items():
            if set(dims) <= set(array.dims) and array.dtype.kind in "iufc":
                try:
                    denoised[name] = DataArrayAccessor(array).denoise(dim, wavelet, backend=backend, **options)
                except (TypeError, ValueError) as error:
                    kind = TypeError if isinstance(error, TypeError) else ValueError
                    raise kind(f"variable {name!r}: {error}") from error
        if not denoised:
            names = list(dataset.data_vars)
            raise ValueError(
                f"no numeric variable has the dimension{'s' * (len(dims) - 1)} {dim!r}; variables: {names}"
            )
        line = next(iter(denoised.values())).attrs["history"].rpartition("\n")[2]
        return dataset.assign(denoised).assign_attrs(history=_extended(dataset.attrs, line))


def _extended(attributes: Mapping[str, ArrayLike], line: str) -> str:
    """Return the history in these attributes and this line, which begins with the time as in the CF conventions."""
    return "\n".join([*(str(old) for old in np.atleast_1d(attributes.get("history", [])) if str(old)), line])
