"""Files larger than memory denoised: `denoise_file`, with the samples that `denoise` gives, bit for bit.

Where traces (with scope "record" all of them) fit in the limit, batches of whole traces go the ordinary way. A longer
one goes chunk by chunk (`wavefilt.chunking.passes`): once or twice for the statistics, once to be written; with a
device it is held there whole (`wavefilt.outofcore.device_staging`). One thread reads ahead, one writes behind.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wavefilt import arrays, backends
from wavefilt.chunking import passes as chunked
from wavefilt.denoising import options as plugins
from wavefilt.denoising.traces import check_size, run
from wavefilt.errors import SQUARES_OVERFLOW
from wavefilt.io.dataset_paths import split
from wavefilt.io.layout import Layout
from wavefilt.io.sources import Source, open_source
from wavefilt.method import Method
from wavefilt.outofcore.file_rows import StreamedRows
from wavefilt.outofcore.prefetch import Ahead, Behind, Energy
from wavefilt.outofcore.sizes import in_bytes
from wavefilt.wavelets.filters import WaveletLike

from . import device_staging, memory_budget

Progress = Callable[[int, int], None]
"""Called with the bytes of samples that went through, and those that will in all: more if another look is needed."""

TOLD = 1 << 17
"""Traces whose noise and thresholds a report is about at most: of more, evenly chosen ones."""


@dataclass
class Report:
    """What was done. ``sigma`` and ``thresholds`` are medians over traces, finest level first; empty if not measured.

    ``energy_removed`` is Σ (x - y)² / Σ x² outside gaps; ``passes`` how often the samples were read.
    """

    shape: tuple[int, int]
    format: str
    method: Method
    backend: str
    level: int
    sigma: list[float]
    thresholds: list[float]
    energy_removed: float
    passes: float
    seconds: float


def denoise_file(
    source: str | os.PathLike[str] | Source,
    target: str | os.PathLike[str],
    wavelet: WaveletLike = "db8",
    *,
    max_memory: str | int = "1GiB",
    overwrite: bool = False,
    backend: str | backends.Backend = "auto",
    progress: Progress | None = None,
    format: str | None = None,
    dtype: str | None = None,
    endian: str | None = None,
    ns: int | None = None,
    component: str | None = None,
    axis: int | None = None,
    **options: Any,
) -> Report:
    """Denoise a file of any size into another, within a limit of memory.

    Parameters
    ----------
    source : path, or `wavefilt.io.sources.Source`
        An npy, SEG-Y, SU, HDF5 or Zarr file, ``path::dataset`` in one of the last two, or raw binary with its layout:
        ``dtype``, ``endian``, ``ns`` as for `wavefilt.read`.
    target : path
        The result, in the same format, shape and order; it appears when all is written, and not if anything fails.
    wavelet, options
        As `wavefilt.denoise` takes them (level, mode, rule, shrink, sigma, scope, keep, transform, spins); the samples
        are those that it gives with the same backend, bit for bit.
    max_memory : str or int
        Bytes for samples, coefficients and buffers, as ``"500MB"`` or ``"1GiB"``: beside what Python and its libraries
        take.
    overwrite : bool
        Whether ``target`` may exist.
    backend : str or Backend
        As for `wavefilt.denoise`. With "cuda", what does not fit as whole traces goes piece by piece to the GPU, whose
        memory has to hold it and is not part of ``max_memory``; "auto" computes it on the CPU.
    progress : callable, optional
        Told the bytes of samples that went through, and those that will in all.
    format, component, axis
        As for `wavefilt.read`.

    Raises
    ------
    FormatError
        For a file of another format, or a damaged one.
    ValueError
        As `wavefilt.denoise`; for too small a limit, with the smallest that works; for what needs a whole trace (or
        record) that does not fit: a rule or option, named, or gaps; for chunks of the file that do not suit the limit.
    OSError
        If a file cannot be read or written, the disk is full, or the source shrinks or is changed meanwhile.
    """
    method, limit = plugins.method(wavelet, options, backend), in_bytes(max_memory)
    given = not isinstance(source, (str, bytes, os.PathLike))
    if not given:
        file, _ = split(source)  # type: ignore[arg-type]
        if os.path.exists(target) and os.path.exists(file) and os.path.samefile(file, target):
            raise ValueError(f"{os.fspath(target)} is the input; choose another output")
    layout = Layout(dtype=dtype, endian=endian, ns=ns, component=component, axis=axis)
    opened: Any = source if given else open_source(source, layout, format)  # type: ignore[arg-type]
    try:
        return stream(opened, Path(target), method, limit, backend, overwrite, progress)
    finally:
        if not given:
            opened.close()


def stream(
    source: Source,
    target: Path,
    method: Method,
    limit: int,
    backend: str | backends.Backend,
    overwrite: bool = False,
    progress: Progress | None = None,
) -> Report:
    """`denoise_file` of an open source with a method that is already made."""
    start = time.perf_counter()
    dtype = arrays.compute_dtype(source.dtype)
    plan = memory_budget.plan(source.shape, dtype, method, limit, backend, source.neighbours, source.overhead)
    work = _Work(source, method, plan, progress)
    with source.create(target, overwrite=overwrite) as out:
        with ThreadPoolExecutor(1, "wavefilt-read") as reading, ThreadPoolExecutor(1, "wavefilt-write") as writing:
            empty = plan.backend.host_buffer if plan.held else np.empty  # type: ignore[attr-defined]
            ahead = Ahead(source, reading, plan.buffer, dtype, work.read, empty)
            behind = Behind(out, writing)
            (work.batches if plan.whole else work.held if plan.held else work.chunks)(ahead, behind)
            behind.finish()
        source.check_unchanged()
    seconds = time.perf_counter() - start
    medians = [[float(np.median(row)) for row in rows] for rows in work.told()]
    passes = work.taken / math.prod(source.shape)
    return Report(source.shape, source.format, method, plan.backend.name, plan.level, medians[0], medians[1],
                  work.energy.removed, passes, seconds)  # fmt: skip


@dataclass
class _Work:
    """One file on its way."""

    source: Source
    method: Method
    plan: memory_budget.Plan
    progress: Progress | None
    energy: Energy = field(init=False)
    done: int = 0
    taken: int = 0
    _told: list[tuple[NDArray[np.float64], NDArray[np.float64]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.energy = Energy(self.plan.energies)

    def read(self, samples: int) -> None:
        """Count samples that were taken from the source."""
        self.taken += samples
        self.passed(samples)

    def passed(self, samples: int) -> None:
        """Tell how far the work is."""
        self.done += samples * self.source.dtype.itemsize
        if self.progress is not None:
            size = math.prod(self.source.shape) * self.source.dtype.itemsize
            self.progress(self.done, size * max(self.plan.passes, math.ceil(self.done / size)))

    def batches(self, ahead: Ahead, behind: Behind) -> None:
        """Whole traces, as many at a time as fit."""
        rows, samples = self.source.shape
        each, some = self.plan.together, -(-rows // TOLD)
        batches = [slice(a, min(a + each, rows)) for a in range(0, rows, each)]
        ahead.expect([[(batch, 0, samples)] for batch in batches])
        for batch in batches:
            x = ahead.take([(batch, 0, samples)])
            try:
                outcome = run(x, self.method, self.plan.backend)
            except ValueError as error:
                infinite = np.argwhere(np.isinf(x))
                if not len(infinite) or "infinite value" not in str(error):
                    raise
                trace, sample = infinite[0] + (batch.start, 0)
                raise ValueError(
                    f"infinite value at trace {trace}, sample {sample} (counted from 0); replace it, or set it to NaN "
                    "to have it treated as a gap"
                ) from error
            self.energy.add(x, outcome.samples)
            behind.put(batch, 0, outcome.samples)
            self._told += [(e.sigma[:, ::some], e.thresholds[:, ::some]) for e in outcome.estimates]

    def chunks(self, ahead: Ahead, behind: Behind) -> None:
        """Traces, or a record, that do not fit."""
        plan = self.plan
        check = lambda peak: check_size(np.empty((0, 0), ahead.dtype), peak, plan.level, self.method)  # noqa: E731
        rows = StreamedRows(self.source, plan, ahead, behind, self.energy, check)
        if plan.level == 0:
            for row in range(self.source.shape[0]):
                rows.leave(row)
            return
        measured = chunked.denoise(rows, self.method, plan.level, plan.chunk)
        if measured is None:
            raise ValueError(SQUARES_OVERFLOW)
        self._told.append((measured.sigma, measured.thresholds))

    def held(self, ahead: Ahead, behind: Behind) -> None:
        """Traces, or a record, that fit in the memory of a device only."""
        shape = self.source.shape
        self._told += device_staging.denoise(shape, self.plan, self.method, ahead, behind, self.energy, self.passed)

    def told(self) -> tuple[list[NDArray[np.float64]], list[NDArray[np.float64]]]:
        """Noise and thresholds, for each level of all traces that have it."""
        if self.method.fixed_thresholds and not self.plan.whole:
            self._told = [(sigma[:0], thresholds) for sigma, thresholds in self._told]
        sigmas, thresholds = ([found[i] for found in self._told] for i in range(2))
        return _by_level(sigmas), _by_level(thresholds)


def _by_level(found: list[NDArray[np.float64]]) -> list[NDArray[np.float64]]:
    depth = max(map(len, found), default=0)
    return [np.concatenate([levels[i] for levels in found if len(levels) > i]) for i in range(depth)]
