"""A plan: the buffers, tables and launches for one transform of one shape, made once and used again."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from math import prod
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import DTypeLike

from wavefilt.arrays import Array
from wavefilt.backends.cuda import local_shrinkage, thresholding
from wavefilt.backends.cuda.dwt.tiling import FLAGS, grid
from wavefilt.backends.cuda.options import KernelOptions
from wavefilt.backends.cuda.runtime import graph, interop
from wavefilt.backends.cuda.runtime.interfaces import DeviceArray, Event, Stream
from wavefilt.backends.cuda.runtime.target import cuda
from wavefilt.backends.cuda.statistics.layout import Band, DetailLayout, NoiseOf
from wavefilt.backends.cuda.thresholding import KNOWN
from wavefilt.thresholding.local import Blocks, Grid
from wavefilt.thresholding.shrinkage import Posterior, Shrinkage
from wavefilt.transforms import Analysis

if TYPE_CHECKING:
    from wavefilt.backends.cuda.denoiser import Denoiser


@dataclass(frozen=True, eq=False)
class Shape:
    """The key of a plan: ``rows`` traces or sections of a ``size``; `of` returns one object for one set of values.

    ``filters`` and ``modes`` have an entry for each axis. ``level`` counts the bands of details.
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
    """Coefficients in a flat array: the first element, the shape, and elements from one to the next."""

    array: DeviceArray
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]

    def of(self, host: Array) -> Array:
        """Return a view of the coefficients in a copy of the array in host memory."""
        strides = tuple(host.itemsize * n for n in self.strides)
        return np.lib.stride_tricks.as_strided(host[self.offset :], self.shape, strides)


class Source(NamedTuple):
    """The rows of a run, which of them are computed (not copied), and flags for errors."""

    x: DeviceArray
    live: DeviceArray
    flags: DeviceArray


class Shrinking(NamedTuple):
    """How the inverse changes details: by a function and thresholds of the levels, or by reading other ``details``."""

    function: str = "keep"
    thresholds: DeviceArray | None = None
    details: DeviceArray | None = None
    source: Source | None = None


class Beside(NamedTuple):
    """Work beside a forward transform: ``after_first`` is called after its first launch.

    ``flags`` mark samples that are not finite.
    """

    after_first: Callable[[], None] = lambda: None
    flags: DeviceArray | None = None


GridsOf = Callable[[], tuple[Grid, ...]]
"""Function that returns the places of the bands in time, finest first and the approximation last."""
KEPT, ALONE = Shrinking(), Beside()


Alone = Callable[[DeviceArray, DeviceArray, DeviceArray, float, DeviceArray, Stream], None]
"""A whole run by one launch: input, output, factors of thresholds, given noise, flags."""


MOST_KEPT = 8  # methods whose launches a plan keeps


class Plan(ABC):
    """Buffers on the device for one shape, and the transforms that use them, all on one stream.

    A plan serves one caller at a time; `Plans` lends them out.
    """

    layout: DetailLayout  # the details, which rules count
    all_counted: DetailLayout  # the same with the approximation, where a rule may count it
    launches: int  # of each transform, counted from the finest levels
    early = 0  # bands complete after the first launch of `forward`, measured while the others are computed
    together = 1  # bands whose medians are searched when that of the finest is wanted and the energy of all
    noise = NoiseOf()
    copies = False  # whether the kernels of `inverse` copy the rows that are not live
    finds_runs = False  # whether the kernels of `forward` flag runs of equal samples

    def __init__(self, shape: Shape, options: KernelOptions) -> None:
        self.shape, self.options, self.dtype = shape, options, shape.dtype
        self.key: Hashable = None
        self.bytes = 0  # of device memory
        self._buffers: dict[str, DeviceArray] = {}
        self._staging: dict[str, Array] = {}
        self._tables: dict[tuple[Grid, ...], DeviceArray] = {}
        self.denoisers: OrderedDict[Hashable, Denoiser] = OrderedDict()
        self.stream: Stream  # that of the caller, set by whoever lends this
        self._left: Event | None = None  # recorded behind work that was not waited for
        self._told: list[Callable[[], bool]] = []  # whether that was finite, once it has ended
        self.build = options.build(shape.dtype)
        self.flags = self.buffer("flags", FLAGS, np.int32)  # for callers who do not ask what is wrong

    def release(self) -> None:
        """Let go of all memory at once, not when Python finds the cycles."""
        vars(self).clear()

    @property
    def crowded(self) -> bool:
        """Whether the work of many methods was left, none of which can be given up before it is `settled`."""
        return len(self._told) >= MOST_KEPT

    def leave(self, told: Callable[[], bool]) -> None:
        """Do not wait: the next user waits for the work on the stream, and ``told`` returns whether it was finite."""
        if graph.handle(self.stream) not in graph.DEFAULTS:
            self._left = self._left or cuda.event()
            self._left.record(self.stream)
        if told not in self._told:
            self._told.append(told)

    def take_over(self) -> None:
        """Let the stream wait for work left on it: another stream may have the same number, if not a default stream."""
        if self._told and self._left is not None:
            self._left.wait(self.stream)

    def settled(self) -> bool:
        """Wait for work left on the stream, and return whether it was finite."""
        if not self._told:
            return True
        (self._left or self.stream).synchronize()
        finite = [told() for told in self._told]
        self._told = []
        return all(finite)

    def buffer(self, name: str, size: int, dtype: DTypeLike | None = None) -> DeviceArray:
        """The plan's device array of this name, made when it is first asked for."""
        if name not in self._buffers:
            self._buffers[name] = cuda.device_array(size, dtype or self.dtype)
            self.bytes += int(self._buffers[name].nbytes)
        return self._buffers[name]

    def staging(self, name: str, size: int) -> Array:
        """The plan's pinned host array of this name."""
        if name not in self._staging:
            self._staging[name] = cuda.pinned_array(size, self.dtype)
        return self._staging[name]

    @cached_property
    def own_stream(self) -> Stream:
        """A stream for work that comes from the host."""
        return graph.stream()

    @cached_property
    def side_stream(self) -> Stream:
        """A stream for work that can run beside the plan's other work."""
        return graph.stream()

    def denoiser(self, key: Hashable, make: Callable[[], Denoiser]) -> Denoiser:
        """Return the denoiser kept under this key, made when it is first asked for."""
        kept = self.denoisers
        if key not in kept:
            kept[key] = make()
            self.bytes += kept[key].bytes
            while len(kept) > MOST_KEPT:
                self.bytes -= kept.popitem(last=False)[1].bytes
        kept.move_to_end(key)
        return kept[key]

    def aligned(self, flat: DeviceArray) -> bool:
        """Return whether launches can access the rows of a flat array 16 bytes at a time."""
        return interop.aligned(flat, self.shape.rows, self.shape.samples)

    def alone(self, rule: str, sigma_of: str, function: str) -> Alone | None:
        """Return the launch of one kernel for a whole run by a rule of `thresholding.choose`, for short rows."""
        return None

    def forward(self, x: DeviceArray, stream: Stream, beside: Beside = ALONE) -> None:
        """Compute the coefficients of the rows of ``x``, a flat array."""
        for i in range(self.launches):
            self.forward_launch(i, x, stream, beside)
            if i == 0:
                beside.after_first()

    @abstractmethod
    def forward_launch(self, i: int, x: DeviceArray, stream: Stream, beside: Beside = ALONE) -> None:
        """Compute some levels of `forward`, from ``x`` or from the approximation of the launch before."""

    def inverse(self, y: DeviceArray, stream: Stream, by: Shrinking = KEPT) -> None:
        """Compute rows from the coefficients, shrunk on the way, into the flat array ``y``."""
        for i in reversed(range(self.launches)):
            self.inverse_launch(i, y, stream, by)
        if by.source is not None and not self.copies:
            s, source = self.shape, by.source
            thresholding.leave(source.x, y, s.samples, s.rows, source.live, self.build, stream)

    @abstractmethod
    def inverse_launch(self, i: int, y: DeviceArray, stream: Stream, by: Shrinking = KEPT) -> None:
        """Compute some levels of `inverse`, into ``y`` or for the next launch."""

    @abstractmethod
    def approximation(self) -> Place:
        """Return the place of the coarsest approximation."""

    def places(self) -> list[Place]:
        """Return the places of all coefficients: the approximation, then details, the coarsest level first."""
        bands = (Place(self.layout.array, b.offset, (b.rows, b.length), (b.pitch, 1)) for b in reversed(self.bands))
        return [self.approximation(), *bands]

    def coefficients(self, stream: Stream) -> tuple[Array, ...]:
        """Return copies of all `places` in host memory, after the work on ``stream``, as views of few arrays."""
        places = self.places()
        arrays = {id(place.array): place.array for place in places}
        hosts = {key: array.copy_to_host(stream=stream) for key, array in arrays.items()}
        stream.synchronize()
        return tuple(place.of(hosts[id(place.array)]) for place in places)

    def fill(self, coefficients: Sequence[Array], stream: Stream) -> None:
        """Copy coefficients in host memory, in the order of `places`, into the buffers.

        Raises ValueError if their shapes differ from the plan's.
        """
        places = self.places()
        expected = [place.shape for place in places]
        if [c.shape for c in coefficients] != expected:
            shapes = ", ".join(str(c.shape) for c in coefficients)
            raise ValueError(f"coefficients {shapes} do not belong together: {expected} do")
        filled = {id(place.array): (place.array, np.zeros(place.array.size, place.array.dtype)) for place in places}
        for place, values in zip(places, coefficients, strict=True):
            place.of(filled[id(place.array)][1])[...] = values
        for array, host in filled.values():
            array.copy_to_device(host, stream=stream)
        stream.synchronize()

    @property
    def bands(self) -> Sequence[Band]:
        """The bands of details with all that the inverse needs of them."""
        return self.layout.bands

    def shrinking(self, shrinkage: Shrinkage | None, grids: GridsOf, stream: Stream) -> Shrinking:
        """Return how `inverse` applies a shrinkage; ``grids`` is called if the bands are shrunk together."""
        if shrinkage is None:
            return KEPT
        if shrinkage.together is not None:
            thresholds = thresholding.sent(shrinkage, self.dtype, len(shrinkage.thresholds), self.shape.rows, stream)
            return self.shrunk_together(grids, thresholds, stream)
        if isinstance(shrinkage.function, str) and shrinkage.function in KNOWN:
            sent = thresholding.sent(shrinkage, self.dtype, self.shape.level, self.shape.rows, stream)
            return Shrinking(shrinkage.function, sent)
        return Shrinking(details=self.shrunk(shrinkage, stream))

    def shrunk_together(self, grids: GridsOf, thresholds: DeviceArray, stream: Stream) -> Shrinking:
        """Shrink all bands of rows, placed in time by ``grids``, and the approximation by `Local`, in their place."""
        s, build, details, found = self.shape, self.build, self.layout.array, grids()
        if len(s.size) > 1:
            raise NotImplementedError(f"the bands of transform {s.transform!r} are not shrunk together")
        if found not in self._tables:
            places = [*self.places()[:0:-1], self.approximation()]
            begins, pitches = [place.offset for place in places], [place.strides[0] for place in places]
            self._tables[found] = cuda.to_device(local_shrinkage.table(found, begins, pitches, build.threads).ravel())
        table, rows, energies = self._tables[found], s.rows, self.buffer("shrunk", details.size)
        periodic, spaced = found[0].periodic, any(band.spacing > 1 for band in found)
        launch = grid(local_shrinkage.blocks(found, build.threads), rows), build.threads, stream
        local_shrinkage.measuring(build, periodic, spaced)[launch](details, energies, table, thresholds, rows)
        local_shrinkage.shrinking(build, periodic)[launch](details, energies, table, len(found), thresholds, rows)
        return KEPT

    def shrunk(self, shrinkage: Shrinkage, stream: Stream) -> DeviceArray:
        """Shrink all details by more than a threshold, into an array with the same layout.

        Functions that kernels do not know are applied on the host.
        """
        details, target = self.layout.array, self.buffer("shrunk", self.layout.array.size)
        if not isinstance(shrinkage.function, Blocks | Posterior):
            return self.shrunk_on_host(shrinkage, details, target, stream)
        sigma = shrinkage.thresholds if shrinkage.sigma is None else shrinkage.sigma
        for band, limits, noise in zip(self.bands, shrinkage.thresholds, sigma, strict=False):
            thresholding.shrink_band(shrinkage.function, details, target, band, limits, noise, self.build, stream)
        return target

    def shrunk_on_host(
        self, shrinkage: Shrinkage, details: DeviceArray, target: DeviceArray, stream: Stream
    ) -> DeviceArray:
        """Shrink details on the host, from one array into another with the same layout; return that."""
        host = details.copy_to_host(stream=stream)
        stream.synchronize()
        for i, band in enumerate(self.bands):
            band.of(host)[...] = shrinkage.of_level(i, band.of(host))
        target.copy_to_device(host.view(target.dtype), stream=stream)
        stream.synchronize()
        return target
