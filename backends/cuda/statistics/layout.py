"""Where details lie in device memory, whatever the transform that they are of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from wavefilt.arrays import Array, Counts, DType
from wavefilt.backends.cuda.runtime.interfaces import DeviceArray
from wavefilt.backends.cuda.runtime.target import cuda

OFFSET, PITCH, LENGTH, PLACES = range(4)
"""Fields of a band in `DetailLayout.table`, and how many they are."""
MEDIAN = 0.5
"""The share of values below the median."""


class NoiseOf(NamedTuple):
    """How noise is estimated from magnitudes: the ``share`` below the quantile, real ``parts`` of a coefficient.

    For the ``directions`` of a level, mirrored ones have the smaller noise of both.
    """

    share: float = MEDIAN
    parts: int = 1
    directions: int = 1


class Where(NamedTuple):
    """A layout as kernels take it: details, their bits, the table of bands, the begin of lists, and rows of a band."""

    details: DeviceArray
    keys: DeviceArray
    bands: DeviceArray
    lists: int
    rows: int


class Band(NamedTuple):
    """Details of one level, or of one band of it: the first element, elements from row to row and in a row, rows."""

    offset: int
    pitch: int
    length: int
    rows: int

    def of(self, host: Array) -> Array:
        """Return a view of the coefficients in a copy of the array in host memory."""
        strides = host.itemsize * self.pitch, host.itemsize
        return np.lib.stride_tricks.as_strided(host[self.offset :], (self.rows, self.length), strides)


class DetailLayout:
    """The bands of a transform in one flat array, finest first, with equal numbers of rows.

    Lists that a search for medians keeps of the ``listed`` finest bands have room from element ``lists`` on.
    """

    def __init__(
        self, array: DeviceArray, bands: Sequence[tuple[int, int, int, int]], lists: int = 0, listed: int = 0
    ) -> None:
        self.array, self.bands, self.lists, self.listed = array, [Band(*band) for band in bands], lists, listed
        self.keys = array.view(key_dtype(array.dtype))
        places = np.array([band[:PLACES] for band in self.bands] or [(0, 0, 0)], np.int64)
        self.table = cuda.to_device(places.ravel())
        """`PLACES` numbers a band, on the device."""

        self.where = Where(array, self.keys, self.table, lists, self.rows)

    @property
    def rows(self) -> int:
        return self.bands[0].rows if self.bands else 1

    def __len__(self) -> int:
        return len(self.bands)


def key_dtype(dtype: DType | str) -> DType:
    """Integers as wide as the coefficients, to read their bits."""
    return np.dtype(f"i{np.dtype(dtype).itemsize}")


def amounts(layouts: Sequence[DetailLayout], bands: int, pooled: bool) -> Counts:
    """Return the coefficients in the finest ``bands``: of a row, or of all rows of all layouts."""
    found = np.zeros(bands, np.int64)
    for layout in layouts if pooled else layouts[:1]:
        for i, band in enumerate(layout.bands[:bands]):
            found[i] += band.length * (band.rows if pooled else 1)
    return found
