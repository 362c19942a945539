"""A plan: the buffers, tables and launches for one transform of one shape, made once and used again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import prod
from typing import NamedTuple

import numpy as np

from wavefilt.arrays import Array
from wavefilt.backends.cuda.dwt.tiling import FLAGS
from wavefilt.backends.cuda.options import KernelOptions
from wavefilt.backends.cuda.runtime import interop
from wavefilt.backends.cuda.runtime.interfaces import DeviceArray, Stream
from wavefilt.backends.cuda.runtime.memory import Buffers
from wavefilt.backends.cuda.statistics.layout import Band, DetailLayout
from wavefilt.backends.cuda.statistics.search_window import MEDIAN
from wavefilt.backends.cuda.statistics.selection import Selection
from wavefilt.backends.cuda.thresholding import kernels
from wavefilt.backends.cuda.thresholding.functions import KNOWN
from wavefilt.thresholding.local_shrinkage import Grid
from wavefilt.thresholding.shrinkage import Shrinkage
from wavefilt.transforms import Analysis


@dataclass(frozen=True, eq=False)
class Shape:
    """What a plan is made for: ``rows`` traces or panels of a ``size``; `of` gives one object for one set of values.

    ``filters`` and ``modes`` are those of each axis. ``level`` counts bands of details: to a method each is a level.
    """

    transform: str
    filters: tuple[tuple[tuple[float, ...], ...], ...]
    modes: tuple[str, ...]
    dtype: str
    depth: int
    level: int
    start_level: int
    rows: int
    size: tuple[int, ...]
    samples: int

    @staticmethod
    @lru_cache(maxsize=256)
    def of(analysis: Analysis, dtype: str, rows: int, size: tuple[int, ...]) -> Shape:
        kind, depth = analysis.transform, analysis.level
        filters = tuple(tuple(tuple(map(float, taps)) for taps in own.filter_bank) for own in analysis.wavelets)
        levels = depth, depth * len(kind.band_names), analysis.start_level
        return _shape(kind.name, filters, analysis.modes, dtype, *levels, rows, size, prod(size))


_shape = lru_cache(maxsize=256)(Shape)  # equal filters share it, of whatever wavelet object they are


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


class NoiseOf(NamedTuple):
    """How the noise is told from magnitudes: the ``share`` below the quantile, real ``parts`` of a coefficient.

    Of the ``directions`` of a level, mirrored ones have the smaller noise of both.
    """

    share: float = MEDIAN
    parts: int = 1
    directions: int = 1


class Source(NamedTuple):
    """Of a denoise: the rows, which of them are computed (not copied), and the flags that tell what is wrong."""

    x: DeviceArray
    live: DeviceArray
    flags: DeviceArray


class Shrinking(NamedTuple):
    """What an inverse does to details: a function by thresholds (level by level), or others taken instead of them.

    Another ``approximation`` may be taken as well. ``means`` are added to the rows that are live, by a plan that
    `centres`.
    """

    function: str = "keep"
    thresholds: DeviceArray | None = None
    details: DeviceArray | None = None
    approximation: DeviceArray | None = None
    source: Source | None = None
    means: DeviceArray | None = None


class Beside(NamedTuple):
    """What goes on beside a forward transform: its first launch takes part in a ``search`` whose windows are drawn.

    ``after_first`` is called after it. ``flags`` tell of samples that are not finite, unless those of `Source` do.
    ``means`` are taken off the rows, by a plan that `centres`.
    """

    after_first: Callable[[], None] = lambda: None
    search: Selection | None = None
    flags: DeviceArray | None = None
    means: DeviceArray | None = None


GridsOf = Callable[[], tuple[Grid, ...]]
"""What gives the places of the bands in time, finest first and the approximation last."""
KEPT, ALONE = Shrinking(), Beside()


Alone = Callable[[DeviceArray, DeviceArray, DeviceArray, float, DeviceArray, Stream], None]
"""A whole denoise by one launch: input, output, factors of thresholds, given noise, flags."""


class Plan(Buffers, ABC):
    """Buffers on the device for one shape, and the transforms that use them, all on one stream.

    A plan serves one caller at a time; `Plans` lends them out.
    """

    layout: DetailLayout  # the details that rules count
    all_counted: DetailLayout  # the same with the approximation, where a rule may count it
    launches: int  # of each transform, counted from the finest levels
    early = 0  # bands that are there after the first launch of `forward`, to be measured beside the others
    together = 1  # bands whose medians are searched when that of the finest is wanted and the energy of all
    high_pass: DeviceArray | None = None  # reversed, where the first launch of `forward` can take part in a search
    noise = NoiseOf()
    copies = False  # whether the kernels of `inverse` copy the rows that are not live
    centres = False  # whether the first launch of `forward` takes means off rows, and the last of `inverse` adds them

    def __init__(self, shape: Shape, options: KernelOptions) -> None:
        super().__init__(shape.dtype)
        self.shape, self.options = shape, options
        self.flags = self.buffer("flags", FLAGS, np.int32)  # for callers who do not ask what is wrong

    def aligned(self, flat: DeviceArray) -> bool:
        """Whether launches can access the rows of a flat array, all multiples of 16 bytes apart, four at a time."""
        return interop.aligned(flat, self.shape.rows, self.shape.samples)

    def alone(self, rule: str, sigma_of: str, function: str) -> Alone | None:
        """A kernel that does all of a denoise by a rule that `choosing.choose` knows, where rows are short enough."""
        return None

    def forward(self, x: DeviceArray, stream: Stream, beside: Beside = ALONE) -> None:
        """Coefficients of the rows of ``x``, a flat array."""
        for i in range(self.launches):
            self.forward_launch(i, x, stream, beside)
            if i == 0:
                beside.after_first()

    @abstractmethod
    def forward_launch(self, i: int, x: DeviceArray, stream: Stream, beside: Beside = ALONE) -> None:
        """Some levels of `forward`, from ``x`` or from what the launch before left."""

    def inverse(self, y: DeviceArray, stream: Stream, by: Shrinking = KEPT) -> None:
        """Rows from the coefficients, shrunk on the way, into the flat array ``y``."""
        for i in reversed(range(self.launches)):
            self.inverse_launch(i, y, stream, by)
        if by.source is not None and not self.copies:
            s, source = self.shape, by.source
            kernels.leave(source.x, y, s.samples, s.rows, source.live, self.options.threads, stream)

    @abstractmethod
    def inverse_launch(self, i: int, y: DeviceArray, stream: Stream, by: Shrinking = KEPT) -> None:
        """Some levels of `inverse`, into ``y`` or for the launch after."""

    @abstractmethod
    def approximation(self) -> Place:
        """Where the coarsest approximation lies."""

    def places(self) -> list[Place]:
        """All coefficients: the approximation, then details, the coarsest level first."""
        bands = (Place(self.layout.array, b.offset, (b.rows, b.length), (b.pitch, 1)) for b in reversed(self.bands))
        return [self.approximation(), *bands]

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
        filled = {id(place.array): (place.array, np.zeros(place.array.size, place.array.dtype)) for place in places}
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

    def shrinking(self, shrinkage: Shrinkage | None, grids: GridsOf, stream: Stream) -> Shrinking:
        """What `inverse` takes for it; ``grids`` are asked for where the bands are shrunk together."""
        if shrinkage is None:
            return KEPT
        if shrinkage.across_bands:
            thresholds = kernels.sent(shrinkage, self.dtype, len(shrinkage.thresholds), self.shape.rows, stream)
            return self.shrunk_together(grids, thresholds, stream)
        if isinstance(shrinkage.function, str) and shrinkage.function in KNOWN:
            sent = kernels.sent(shrinkage, self.dtype, self.shape.level, self.shape.rows, stream)
            return Shrinking(shrinkage.function, sent)
        return Shrinking(details=self.shrunk(shrinkage, stream))

    def shrunk_together(self, grids: GridsOf, thresholds: DeviceArray, stream: Stream) -> Shrinking:
        """All bands, which lie in time as ``grids`` say, and by transform the approximation, shrunk by `Local`."""
        raise NotImplementedError(f"the bands of transform {self.shape.transform!r} are not shrunk together")

    def shrunk(self, shrinkage: Shrinkage, stream: Stream) -> DeviceArray:
        """All details shrunk by what takes more than a threshold, laid out as they are.

        On the host by a function that kernels do not have.
        """
        details, target = self.layout.array, self.buffer("shrunk", self.layout.array.size)
        if isinstance(shrinkage.function, str):
            host = details.copy_to_host(stream=stream)
            stream.synchronize()
            for i, band in enumerate(self.bands):
                strides = (host.itemsize * band.pitch, host.itemsize)
                rows = np.lib.stride_tricks.as_strided(host[band.offset :], (band.rows, band.length), strides)
                rows[...] = shrinkage.of_level(i, rows)
            target.copy_to_device(host, stream=stream)
            stream.synchronize()
            return target
        sigma = shrinkage.thresholds if shrinkage.sigma is None else shrinkage.sigma
        for band, limits, noise in zip(self.bands, shrinkage.thresholds, sigma, strict=False):
            kernels.shrink(shrinkage.function, details, target, band, limits, noise, self.options.threads, stream)
        return target
