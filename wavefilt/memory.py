"""Memory limits: which parts of a file fit, planned before anything is read.

A `Plan` follows from the shape of the file, the options and the limit. How many bytes each byte of samples takes is a
property of the backend (`Backend.whole_bytes_factor`, `Backend.chunk_bytes_factor`).
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass

import numpy as np

from wavefilt import backends
from wavefilt.arrays import DType
from wavefilt.backends.interface import WHOLE_BYTES_FACTOR, Backend, DeviceBackend, on_device
from wavefilt.chunks import cut
from wavefilt.noise_curves import half_windows
from wavefilt.options import Options
from wavefilt.statistics import mergeable

UNITS = {"": 1, "b": 1, "bytes": 1}
UNITS |= {f"{letter}{word}": base**power for power, letter in enumerate("kmgt", 1)
          for base, words in ((1000, ("b",)), (1024, ("ib", "i", ""))) for word in words}  # fmt: skip
"""Bytes of each unit, in lower case: KB and MB are powers of 1000; KiB, MiB, K and M are powers of 1024."""


def in_bytes(size: str | int) -> int:
    """Return the bytes of a size such as 1000, ``"500MB"`` or ``"1.5 GiB"``; ValueError for anything else."""
    if isinstance(size, int) and not isinstance(size, bool):
        found = float(size)
    else:
        match = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*([a-zA-Z]*)\s*", str(size))
        found = float(match[1]) * UNITS[match[2].lower()] if match and match[2].lower() in UNITS else 0
    if not 1 <= found < math.inf:
        raise ValueError(f"{size!r} is no amount of memory; write it as 500MB or 1GiB")
    return int(found)


def spelled(size: int) -> str:
    """Return a size as text in the largest binary unit that it reaches, rounded up to three digits or more."""
    for unit, base in (("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)):
        if size >= base:
            digits = 0 if size >= 100 * base else 1 if size >= 10 * base else 2
            return f"{math.ceil(size * 10**digits / base) / 10**digits:.{digits}f} {unit}"
    return f"{size} bytes"


FDR_PASSES = 20
"""Passes that rule fdr probably needs to count details above its thresholds."""
FIXED = 14 << 20
"""Bytes that do not depend on the size of a chunk: conversions, blocks of details, lists."""
RESIDENT = 5.5
"""Bytes per byte of samples that are sent to a device: two buffers ahead, one for sent samples, two for results."""
PIECE = 64 << 20
"""Bytes of samples per transfer to a device; larger transfers are no faster."""
SORTED = 10.0
"""Additional bytes per byte of samples for rules that sort details or count them in histograms."""
LEAST = 1 << 20
"""Smallest chunk in bytes of samples; smaller ones are mostly overhead."""
REREAD = 4
"""Largest number of times that a chunk of a file is decoded and encoded per pass; with gzip this dominates."""


@dataclass(frozen=True)
class Plan:
    """How a file is divided to fit in memory.

    ``buffer`` is the largest part in samples, ``passes`` the expected number of times that all samples are read,
    ``whole_memory`` the limit with which traces (or the record) stay whole.
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
    """Traces are divided into chunks of ``chunk`` bytes; medians are searched with tables of ``bins`` bins."""

    chunk: int
    bins: int


@dataclass(frozen=True)
class DeviceResident(Plan):
    """Traces are whole in device memory only, and are sent there buffer by buffer."""

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
    """Return the plan for traces of a dtype of computation; ``neighbours`` and ``overhead`` are those of the source.

    Raises ValueError if the limit is too small, with the minimum; for options that need whole traces that do not fit;
    and if chunks of the file would be read too often.
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
    """A file, the options and a limit in bytes, with the ``fixed`` bytes and those per byte of samples (``factor``)."""

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
        """Whether all traces share thresholds."""
        return self.method.scope == "record"

    @property
    def share(self) -> int:
        """Number of traces at a time with which chunks of the file are not read too often."""
        return -(-self.neighbours // REREAD)

    @property
    def unit(self) -> int:
        """Bytes of samples that share thresholds: a trace, or the record."""
        return self.shape[1] * self.dtype.itemsize * (self.shape[0] if self.pooled else 1)

    @property
    def whole(self) -> int:
        """The limit with which they stay whole."""
        return self.fixed + int(self.factor * self.unit)

    @property
    def enough(self) -> int:
        """The limit with which `share` of them stay whole."""
        return self.fixed + int(self.factor * self.unit * self.share)

    def whole_traces(self, backend: Backend) -> WholeTraces:
        """Return the plan for whole traces."""
        rows, samples = self.shape
        fitting = rows if self.pooled else int((self.limit - self.fixed) / self.factor / self.unit)
        together = min(fitting, rows)
        if together < rows:
            self._check_neighbours(together, self.enough)
            together -= together % self.neighbours if together > self.neighbours else 0
        return WholeTraces(backend, self.level, together * samples, 1, spelled(self.whole), together)

    def device_resident(self, backend: DeviceBackend) -> DeviceResident | Chunks:
        """Return the plan for traces that are whole in device memory."""
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
        """Return the plan for traces in chunks."""
        (rows, samples), level, item = self.shape, self.level, self.dtype.itemsize
        analysis, kind = self.method.analysis(level), self.method.transform
        lengths = np.array(kind.sizes(analysis, (samples,)), np.int64) * (rows if self.pooled else 1)
        halo = self.method.halo(level) or 0
        kept = int(1.6 * item * lengths[lengths <= backend.summation.whole].sum())
        kept += 3 * mergeable.LEAF * item * level
        kept += self._noise_curves()
        bins = 1 << max(min(self.limit // 32 // max(level, 1), mergeable.BINS).bit_length() - 1, 12)
        fixed = self.fixed + kept + 4 * bins * level
        assert backend.chunk_bytes_factor is not None
        more = "histogram" in self.method.rule.needs or self.method.rule.together is not None
        factor = backend.chunk_bytes_factor + (SORTED if more else 0) + _undecimated(self.method, level)

        def takes(size: int) -> int:
            """Return the limit that chunks of this many bytes need."""
            tables = 8 / 7  # tables take at most an eighth of the limit
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
        """Return the bytes for running noise of the traces that share thresholds, and for sorting."""
        if self.method.noise.running is None:
            return 0
        rows, samples = self.shape
        analysis = self.method.analysis(self.level)
        half = np.array(half_windows(self.method, analysis, (samples,)))
        blocks = np.array(self.method.sizes(analysis, (samples,))) // half + 1
        return int(32 * blocks.sum() * (rows if self.pooled else 1) + 12 * self.dtype.itemsize * half.sum())

    def _too_little(self, least: int) -> ValueError:
        return ValueError(f"`max_memory` of {spelled(self.limit)} is too little here: the minimum is {spelled(least)}")

    def _check_neighbours(self, together: int, enough: int) -> None:
        """Raise ValueError if, with this many traces at a time, chunks of the file would be read too often."""
        if self.neighbours > REREAD * together:
            raise ValueError(
                f"{self.neighbours} neighbouring traces lie in the same chunks of the file, of which this limit "
                f"allows {together} at a time: raise it to `max_memory={spelled(enough)!r}`, or rechunk the array to "
                "fewer traces per chunk"
            )


def whole_bytes_factor(backend: str) -> float:
    """Return `Backend.whole_bytes_factor` of a backend by its name; for "auto" the largest of all."""
    return WHOLE_BYTES_FACTOR if backend == "auto" else backends.get(backend).whole_bytes_factor


def _extra(method: Options, level: int) -> float:
    """Return the additional bytes per byte of samples of whole traces for these options."""
    many = method.rule.needs & {"sorted", "histogram"} or method.rule.own_function
    changing = 1.0 if method.noise.changing else 0.0  # shrunk coefficients beside the original ones
    return _undecimated(method, level) + changing + (2.0 if method.spins > 1 else 0.0) + (SORTED if many else 0)


def _undecimated(method: Options, level: int) -> float:
    """Return the additional bytes per byte of samples for coefficients that are not decimated."""
    shrunk = 1.5 if method.rule.together is not None else 0.0  # beside the original ones, and energies
    return method.transform.workspace * (level + 1) * (1.0 + shrunk + (1.0 if method.noise.changing else 0.0))


def _check_chunks(method: Options, backend: Backend, whole: str) -> None:
    """Raise ValueError for options that chunks, or samples resident on a device, do not support."""
    unit = "the whole record" if method.scope == "record" else "whole traces"
    cut = not backend.device
    whole_rule = "sorted" in method.rule.needs or method.rule.blocks
    refused = {
        f"`rule={method.rule.option!r}`": cut and whole_rule,
        f"`transform={method.transform.word!r}`": cut and method.halo(1) is None,
        f"`spins={method.spins}`": method.spins > 1,
        f"`sigma={method.sigma!r}`": method.noise.window is not None or method.noise.intervals is not None,
        f"`detrend={method.trend!r}`": not cut and method.trend is not None,
        f"`blend={method.blend!r}`": not cut and method.blend > 0,
        f"`backend={backend.name!r}`": cut and backend.chunk_bytes_factor is None,
    }
    for option, needs_whole in refused.items():
        if needs_whole:
            raise ValueError(
                f"{option} needs {unit} in memory: raise the limit to `max_memory={whole!r}`, or choose another option"
            )


def _passes(method: Options, level: int) -> int:
    """Return the expected number of times that the samples are read."""
    if method.rule.values or level == 0:
        return 1
    spec = method.rule
    measured = "mean_square" in spec.needs or not isinstance(method.sigma, float | int)
    return (
        int(measured)
        + int(method.noise.changing and "mean_square" in spec.needs)
        + 1
        + (FDR_PASSES if "exceeding" in spec.needs else 0)
        + (level if "histogram" in spec.needs else 0)
    )
