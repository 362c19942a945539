"""A plan: the buffers, tables and launches for one transform of one shape, made once and used again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

import numpy as np

from wavefilt.arrays import Array
from wavefilt.backends.cuda.options import Options
from wavefilt.backends.cuda.runtime import interop
from wavefilt.backends.cuda.runtime.interfaces import DeviceArray, Stream
from wavefilt.backends.cuda.runtime.memory import Buffers
from wavefilt.backends.cuda.statistics.layout import Band, DetailLayout
from wavefilt.backends.cuda.statistics.selection import Selection
from wavefilt.backends.cuda.thresholding import kernels
from wavefilt.backends.cuda.thresholding.functions import KNOWN
from wavefilt.thresholding.shrinkage import Shrinkage


class Shape(Protocol):
    """What a plan is made for: ``rows`` traces or panels of so many ``samples``, and the number of bands of details."""

    @property
    def dtype(self) -> str: ...
    @property
    def level(self) -> int: ...
    @property
    def rows(self) -> int: ...
    @property
    def samples(self) -> int: ...
    def __hash__(self) -> int: ...


class Place(NamedTuple):
    """Where coefficients lie in a flat array: the first element, the shape, and elements from one to the next."""

    array: DeviceArray
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def view(self) -> DeviceArray:
        extent = 1 + sum((n - 1) * stride for n, stride in zip(self.shape, self.strides, strict=True))
        own = self.array[self.offset : self.offset + extent]
        return interop.strided(own, self.shape, tuple(own.dtype.itemsize * n for n in self.strides))


class Shrinking(NamedTuple):
    """What an inverse does to details: a function by thresholds (level by level), or others taken instead of them."""

    function: str = "keep"
    thresholds: DeviceArray | None = None
    details: DeviceArray | None = None


class Beside(NamedTuple):
    """What goes on beside a forward transform: its first launch takes part in a ``search`` whose windows are drawn.

    ``after_first`` is called after it.
    """

    after_first: Callable[[], None] = lambda: None
    search: Selection | None = None


class Source(NamedTuple):
    """Of a denoise: the rows, which of them are computed (not copied), and the flags that tell what is wrong."""

    x: DeviceArray
    live: DeviceArray
    flags: DeviceArray


KEPT, ALONE = Shrinking(), Beside()


class Plan(Buffers, ABC):
    """Buffers on the device for one shape, and the transforms that use them, all on one stream.

    A plan serves one caller at a time; `Plans` lends them out.

    Attributes
    ----------
    shape : Shape
        What it is made for.
    layout : DetailLayout
        The details that rules count.
    early : int
        Bands that are there after the first launch of `forward`, so that they can be measured beside the others.
    together : int
        Bands whose medians are searched when that of the finest is wanted and the energy of all.
    high_pass : DeviceArray or None
        The analysis filter of the details, reversed, where the first launch of `forward` can take part in a search.
    """

    shape: Shape
    layout: DetailLayout
    early = 0
    together = 1
    high_pass: DeviceArray | None = None

    def __init__(self, shape: Shape, options: Options) -> None:
        super().__init__(shape.dtype)
        self.options = options

    def aligned(self, flat: DeviceArray) -> bool:
        """Whether `forward` and `inverse` can access the rows of a flat array four samples at a time."""
        return interop.aligned(flat, self.shape.rows, self.shape.samples)

    @abstractmethod
    def forward(
        self, x: DeviceArray, aligned: bool, stream: Stream, flags: DeviceArray | None = None, beside: Beside = ALONE
    ) -> None:
        """Coefficients of the rows of ``x``, a flat array whose rows are all ``aligned`` to 16 bytes, or not.

        ``flags`` tell of samples that are not finite, unless `inverse` does.
        """

    @abstractmethod
    def inverse(
        self, y: DeviceArray, aligned: bool, stream: Stream, by: Shrinking = KEPT, source: Source | None = None
    ) -> None:
        """Rows from the coefficients, shrunk on the way, into the flat array ``y``."""

    @abstractmethod
    def places(self) -> list[Place]:
        """All coefficients: the approximation, then details, the coarsest level first."""

    def coefficients(self) -> tuple[DeviceArray, ...]:
        """`places` as views."""
        return tuple(place.view() for place in self.places())

    def fill(self, coefficients: Sequence[Array], stream: Stream) -> None:
        """Coefficients from elsewhere, in host memory, in the order of `places`.

        Raises ValueError if their shapes are not those of this plan.
        """
        places = self.places()
        expected = [place.shape for place in places]
        if [c.shape for c in coefficients] != expected:
            shapes = ", ".join(str(c.shape) for c in coefficients)
            raise ValueError(f"coefficients {shapes} do not belong together: {expected} do")
        filled = {id(place.array): (place.array, np.zeros(place.array.size, self.dtype)) for place in places}
        for place, values in zip(places, coefficients, strict=True):
            host = filled[id(place.array)][1]
            strides = tuple(host.itemsize * n for n in place.strides)
            np.lib.stride_tricks.as_strided(host[place.offset :], place.shape, strides)[...] = values
        for array, host in filled.values():
            array.copy_to_device(host, stream=stream)
        stream.synchronize()

    @property
    def bands(self) -> Sequence[Band]:
        """The bands of details with all that the inverse needs of them."""
        return self.layout.bands

    def shrunk(self, shrinkage: Shrinkage, stream: Stream) -> DeviceArray:
        """All details shrunk by what takes more than a threshold, laid out as they are."""
        details, target = self.layout.array, self.buffer("shrunk", self.layout.array.size)
        sigma = shrinkage.thresholds if shrinkage.sigma is None else shrinkage.sigma
        for band, limits, noise in zip(self.bands, shrinkage.thresholds, sigma, strict=False):
            kernels.shrink(shrinkage.function, details, target, band, limits, noise, self.options.threads, stream)
        return target

    def shrinking(self, shrinkage: Shrinkage | None, stream: Stream) -> Shrinking:
        """What `inverse` takes for it."""
        if shrinkage is None:
            return KEPT
        if not isinstance(shrinkage.function, str):
            return Shrinking(details=self.shrunk(shrinkage, stream))
        if shrinkage.function not in KNOWN:
            return Shrinking(details=self._shrunk_on_host(shrinkage, stream))
        sent = kernels.sent(shrinkage, self.dtype, self.shape.level, self.shape.rows, stream)
        return Shrinking(shrinkage.function, sent)

    def _shrunk_on_host(self, shrinkage: Shrinkage, stream: Stream) -> DeviceArray:
        """The same by a function that kernels do not have."""
        host, target = self.layout.array.copy_to_host(stream=stream), self.buffer("shrunk", self.layout.array.size)
        stream.synchronize()
        for i, band in enumerate(self.bands):
            strides = (host.itemsize * band.pitch, host.itemsize)
            rows = np.lib.stride_tricks.as_strided(host[band.offset :], (band.rows, band.length), strides)
            rows[...] = shrinkage.of_level(i, rows)
        target.copy_to_device(host, stream=stream)
        stream.synchronize()
        return target

    def release(self) -> None:
        super().release()
        del self.layout
