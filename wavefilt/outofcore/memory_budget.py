"""What fits in a limit of memory: whole traces, chunks of them, or pieces of what a device's memory takes.

A `Plan` is made from the shape of the file, the options and the limit before anything is read. What a byte of samples
takes is the backend's to know (`Backend.whole_bytes_factor`, `Backend.chunk_bytes_factor`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from wavefilt import backends
from wavefilt.arrays import DType
from wavefilt.backends.interface import WHOLE_BYTES_FACTOR, Backend, DeviceBackend, on_device
from wavefilt.chunks import cut
from wavefilt.noise_curves import half_windows
from wavefilt.options import Options
from wavefilt.outofcore.sizes import spelled
from wavefilt.statistics import summation

FIXED = 14 << 20
"""Bytes for what does not grow with a chunk: conversions, blocks of details, lists."""
RESIDENT = 5.5
"""Bytes for each byte of samples in a piece of what a device's memory takes: two buffers ahead, one for what was sent,
two for what comes back."""
PIECE = 64 << 20
"""Bytes of samples in such a piece, above which transfers are no faster."""
SORTED = 10.0
"""Bytes more where rules sort details or count them in histograms."""
LEAST = 1 << 20
"""Bytes of samples in a chunk, below which it is hardly more than overhead."""
REREAD = 4
"""Times that one chunk of a file is decoded, and encoded, in a pass at most: with gzip that takes most of the time."""


@dataclass(frozen=True)
class Plan:
    """How a file goes through memory.

    ``buffer`` is the largest part in samples, ``passes`` how often all are probably read, ``whole_memory`` the limit
    that would keep traces (or the record) whole.
    """

    backend: Backend
    level: int
    buffer: int
    passes: int
    whole_memory: str


@dataclass(frozen=True)
class WholeTraces(Plan):
    """Traces stay whole, ``together`` of them at a time."""

    together: int


@dataclass(frozen=True)
class Chunks(Plan):
    """Traces are cut into chunks of ``chunk`` bytes, and medians searched with tables of ``bins`` bins."""

    chunk: int
    bins: int


@dataclass(frozen=True)
class DeviceResident(Plan):
    """Whole traces in the memory of a device only, sent there in pieces of a buffer."""

    device: DeviceBackend


def plan(
    shape: tuple[int, int],
    dtype: DType,
    method: Options,
    limit: int,
    backend: str | Backend,
    neighbours: int = 1,
    overhead: int = 0,
) -> Plan:
    """The plan for traces of a dtype of computation; ``neighbours`` and ``overhead`` are those of the source.

    Raises ValueError if nothing fits, with the least that would, for what needs whole traces that do not fit, and where
    chunks of the file would be read over and over.
    """
    level = method.level_for(shape[1])
    analysis = method.analysis(level)
    chosen = backends.choose(backend, dtype.name, shape, analysis, True, method.on_host)
    factor = chosen.whole_bytes_factor + _extra(method, level)
    budget = _Budget(shape, dtype, method, level, limit, FIXED + overhead, neighbours, factor)
    if budget.whole <= limit:
        return budget.whole_traces(chosen)
    if isinstance(backend, str) and backend == "auto" and chosen.chunk_bytes_factor is None:
        chosen = backends.choose("auto", dtype.name, shape, analysis)
    _check_chunks(method, chosen, spelled(budget.whole))
    return budget.device_resident(chosen) if on_device(chosen) else budget.chunks(chosen)


@dataclass(frozen=True)
class _Budget:
    """A file, a method, and a limit in bytes, of which ``fixed`` do not depend on the size.

    ``factor`` are needed for each byte of samples of whole traces.
    """

    shape: tuple[int, int]
    dtype: DType
    method: Options
    level: int
    limit: int
    fixed: int
    neighbours: int
    factor: float

    @property
    def pooled(self) -> bool:
        return self.method.scope == "record"

    @property
    def share(self) -> int:
        """So many traces at a time, and their chunks in the file are not read too often."""
        return -(-self.neighbours // REREAD)

    @property
    def unit(self) -> int:
        """Bytes of samples that belong together: a trace, or the record."""
        return self.shape[1] * self.dtype.itemsize * (self.shape[0] if self.pooled else 1)

    @property
    def whole(self) -> int:
        """The limit that keeps them whole."""
        return self.fixed + int(self.factor * self.unit)

    @property
    def enough(self) -> int:
        """The limit that keeps `share` of them whole."""
        return self.fixed + int(self.factor * self.unit * self.share)

    def whole_traces(self, backend: Backend) -> WholeTraces:
        rows, samples = self.shape
        fitting = rows if self.pooled else int((self.limit - self.fixed) / self.factor / self.unit)
        together = min(fitting, rows)
        if together < rows:
            self._check_neighbours(together, self.enough)
            together -= together % self.neighbours if together > self.neighbours else 0
        return WholeTraces(backend, self.level, together * samples, 1, spelled(self.whole), together)

    def device_resident(self, backend: DeviceBackend) -> DeviceResident | Chunks:
        rows, samples = self.shape
        least = self.fixed + int(RESIDENT * LEAST)
        if self.limit < least:
            raise self._too_little(least)
        piece = min(int((self.limit - self.fixed) / RESIDENT), PIECE) // self.dtype.itemsize
        size = min(piece, rows * samples)
        together = max(size // samples, 1) if self.pooled else 1
        self._check_neighbours(together, self.enough)
        found = backend, self.level, size, 2, spelled(self.whole)
        return DeviceResident(*found, backend) if self.level else Chunks(*found, piece * self.dtype.itemsize, 0)

    def chunks(self, backend: Backend) -> Chunks:
        (rows, samples), level, item = self.shape, self.level, self.dtype.itemsize
        analysis, kind = self.method.analysis(level), self.method.transform
        lengths = np.array(kind.sizes(analysis, (samples,)), np.int64) * (rows if self.pooled else 1)
        halo = self.method.halo(level) or 0
        kept = int(1.6 * item * lengths[lengths <= backend.summation.whole].sum())
        kept += 3 * summation.LEAF * item * level
        kept += self._noise_curves()
        bins = 1 << max(min(self.limit // 32 // max(level, 1), summation.BINS).bit_length() - 1, 12)
        fixed = self.fixed + kept + 4 * bins * level
        assert backend.chunk_bytes_factor is not None
        more = "histogram" in self.method.rule.needs or self.method.rule.together is not None
        factor = backend.chunk_bytes_factor + (SORTED if more else 0) + _undecimated(self.method, level)

        def takes(size: int) -> int:
            """A limit with chunks of so many bytes."""
            tables = 8 / 7  # which take an eighth of the limit at most
            return min(self.whole, int(tables * (self.fixed + kept + 4 * 4096 * level + factor * size)) + 1)

        least = max(5 * halo * item, LEAST)
        if fixed + factor * least > self.limit:
            raise self._too_little(takes(least))
        chunk = int((self.limit - fixed) / factor)
        parts = cut(rows, samples, halo, level, chunk // item) if level else []
        together = max((part.count for part in parts), default=1)
        if together < rows:
            self._check_neighbours(together, takes(self.share * samples * item) if self.pooled else self.enough)
        longest = max((part.count * part.length for part in parts), default=chunk // item)
        return Chunks(backend, level, longest, _passes(self.method, level), spelled(self.whole), chunk, bins)

    def _noise_curves(self) -> int:
        """Bytes for running noise of the traces that belong together, and for what is sorted for it."""
        if self.method.noise.running is None:
            return 0
        rows, samples = self.shape
        analysis = self.method.analysis(self.level)
        half = np.array(half_windows(self.method, analysis, (samples,)))
        blocks = np.array(self.method.sizes(analysis, (samples,))) // half + 1
        return int(32 * blocks.sum() * (rows if self.pooled else 1) + 12 * self.dtype.itemsize * half.sum())

    def _too_little(self, least: int) -> ValueError:
        return ValueError(f"max_memory of {spelled(self.limit)} is too little here: {spelled(least)} is the least")

    def _check_neighbours(self, together: int, enough: int) -> None:
        """Raise ValueError if chunks of the file that so many traces share would be read too often."""
        if self.neighbours > REREAD * together:
            raise ValueError(
                f"{self.neighbours} neighbouring traces lie in the same chunks of the file, of which this limit "
                f"takes {together} at a time: max_memory={spelled(enough)!r} suits these chunks; raise "
                "it, or rechunk the array to fewer traces in a chunk"
            )


def whole_bytes_factor(backend: str) -> float:
    """`Backend.whole_bytes_factor` of a backend by its name; the largest of any for "auto"."""
    return WHOLE_BYTES_FACTOR if backend == "auto" else backends.get(backend).whole_bytes_factor


def _extra(method: Options, level: int) -> float:
    """Bytes for each byte of samples of whole traces that an option takes beside the usual ones."""
    many = method.rule.needs & {"sorted", "histogram"} or method.rule.own_function
    changing = 1.0 if method.noise.changing else 0.0  # shrunk beside what they were
    return _undecimated(method, level) + changing + (2.0 if method.spins > 1 else 0.0) + (SORTED if many else 0)


def _undecimated(method: Options, level: int) -> float:
    """The same for coefficients that are not decimated."""
    shrunk = 1.5 if method.rule.together is not None else 0.0  # beside what they were, and energies
    return method.transform.workspace * (level + 1) * (1.0 + shrunk + (1.0 if method.noise.changing else 0.0))


def _check_chunks(method: Options, backend: Backend, whole: str) -> None:
    """Raise ValueError for what chunks, or a device where the samples are resident, cannot do."""
    unit = "the whole record" if method.scope == "record" else "whole traces"
    cut = not backend.device
    whole_rule = "sorted" in method.rule.needs or method.rule.blocks
    refused = {
        f"rule={method.rule.option!r}": cut and whole_rule,
        f"transform={method.transform.word!r}": cut and method.transform.halo(method.filters.dec_len, 1) is None,
        f"spins={method.spins}": method.spins > 1,
        f"sigma={method.sigma!r}": method.noise.window is not None or method.noise.intervals is not None,
        f"detrend={method.trend!r}": not cut and method.trend is not None,
        f"blend={method.blend!r}": not cut and method.blend > 0,
        f"backend={backend.name!r}": cut and backend.chunk_bytes_factor is None,
    }
    for option, needs_whole in refused.items():
        if needs_whole:
            raise ValueError(
                f"{option} needs {unit} in memory, which takes max_memory={whole!r} here; raise it, or choose another"
            )


def _passes(method: Options, level: int) -> int:
    """How often the samples are probably read."""
    if method.rule.values or level == 0:
        return 1
    spec = method.rule
    measured = "mean_square" in spec.needs or not isinstance(method.sigma, float | int)
    return (
        int(measured)
        + int(method.noise.changing and "mean_square" in spec.needs)
        + 1
        + spec.passes
        + (level if "histogram" in spec.needs else 0)
    )
