"""Files larger than memory denoised: `denoise_file`, with the samples that `denoise` gives, bit for bit.

Where traces (with scope "record" all of them) fit in the limit, batches of whole traces are denoised as in memory. A
longer one goes chunk by chunk (`wavefilt.engine`): once or twice for the statistics, once to be written; with
a device it is resident there (`wavefilt.outofcore.device_staging`). One thread reads ahead, one writes behind.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Unpack

import numpy as np

from wavefilt import arrays, engine
from wavefilt.api import run
from wavefilt.arrays import Array, DType, Floats, Mask
from wavefilt.backends.interface import Backend
from wavefilt.engine import spread
from wavefilt.errors import SQUARES_OVERFLOW, NonFiniteSample
from wavefilt.io.dataset_paths import split
from wavefilt.io.layout import Layout
from wavefilt.io.sources import Source, open_source
from wavefilt.options import Keywords, Options
from wavefilt.outofcore.device_staging import Noise
from wavefilt.outofcore.file_rows import FileRows
from wavefilt.outofcore.memory_budget import Chunks, DeviceResident, Plan, WholeTraces
from wavefilt.outofcore.prefetch import Ahead, Behind, Energy
from wavefilt.outofcore.sizes import in_bytes
from wavefilt.wavelets.filters import WaveletLike

from . import device_staging, memory_budget

Progress = Callable[[int, int], None]
"""Called with the bytes of samples that went through, and those that will in all: more if another pass is needed."""

REPORTED = 1 << 17
"""Traces whose noise and thresholds a report is about at most: of more, evenly chosen ones."""


@dataclass
class Report:
    """What was done.

    ``sigma`` and ``thresholds`` are medians over the ``noisy_traces``, whose noise or thresholds are not all 0, finest
    level first; empty if not measured. Their ``_range`` is from the 10th to the 90th percentile.
    ``energy_removed`` is Σ (x - y)² / Σ x² outside gaps; ``passes`` how often the samples were read.
    """

    shape: tuple[int, int]
    format: str
    method: Options
    backend: str
    level: int
    noisy_traces: int
    sigma: list[float]
    thresholds: list[float]
    sigma_range: list[list[float]]
    thresholds_range: list[list[float]]
    energy_removed: float
    passes: float
    seconds: float


def denoise_file(
    source: str | os.PathLike[str] | Source,
    target: str | os.PathLike[str],
    wavelet: WaveletLike | None = None,
    *,
    max_memory: str | int = "1GiB",
    overwrite: bool = False,
    backend: str | Backend = "auto",
    progress: Progress | None = None,
    format: str | None = None,
    dtype: str | None = None,
    endian: str | None = None,
    ns: int | None = None,
    component: str | None = None,
    axis: int | None = None,
    **options: Unpack[Keywords],
) -> Report:
    """Denoise a file of any size into another file, within a memory limit.

    Parameters
    ----------
    source : path, or `wavefilt.io.sources.Source`
        An npy, SEG-Y, SU, HDF5 or Zarr file (``path::dataset`` for the last two), or raw binary with its layout:
        ``dtype``, ``endian`` and ``ns`` as in `wavefilt.read`.
    target : path
        The result in the same format, shape and order. It appears when it is complete, and not after an error.
    wavelet, options
        As in `wavefilt.denoise` (level, mode, rule, shrink, sigma, scope, keep, transform, spins, detrend, blend).
        The samples are bit-identical to its result with the same backend.
    max_memory : str or int
        Limit for samples, coefficients and buffers, such as ``"500MB"`` or ``"1GiB"``, in addition to the memory of
        Python and its libraries.
    overwrite : bool
        Whether an existing ``target`` is replaced.
    backend : str or Backend
        As in `wavefilt.denoise`. With "cuda", traces that do not fit are transferred in blocks to device memory,
        which must hold them and is not part of ``max_memory``; "auto" uses the CPU for them.
    progress : callable, optional
        Called with the number of bytes processed and their total.
    format, component, axis
        As in `wavefilt.read`.

    Raises
    ------
    FormatError
        For a file in another format, or a damaged file.
    ValueError
        As `wavefilt.denoise`; for a limit that is too small, with the minimum; for options or gaps that need whole
        traces (or the whole record) that do not fit; for chunks of the file that are too large for the limit.
    OSError
        If a file cannot be read or written, the disk is full, or the source is truncated or modified during the run.
    """
    if {"axes", "two_dimensional"} & options.keys():
        raise ValueError("panels are denoised in memory: wavefilt.read(path).denoise(two_dimensional=True)")
    method, limit = Options.of(wavelet, options), in_bytes(max_memory)
    if not isinstance(source, (str, os.PathLike)):
        return stream(source, Path(target), method, limit, backend, overwrite, progress)
    file, _ = split(source)
    if os.path.exists(target) and os.path.exists(file) and os.path.samefile(file, target):
        raise ValueError(f"{os.fspath(target)} is the input; choose another output")
    layout = Layout(dtype=dtype, endian=endian, ns=ns, component=component, axis=axis)
    with closing(open_source(source, layout, format)) as opened:
        return stream(opened, Path(target), method, limit, backend, overwrite, progress)


def stream(
    source: Source,
    target: Path,
    method: Options,
    limit: int,
    backend: str | Backend,
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
            ahead = Ahead(source, reading, [_buffer(plan, dtype) for _ in range(2)], work.read)
            behind = Behind(out, writing)
            work.run(plan, ahead, behind)
            behind.finish()
        source.check_unchanged()
    seconds = time.perf_counter() - start
    (sigma, sigma_range), (thresholds, thresholds_range) = map(spread, work.found())
    passes, removed = work.taken / math.prod(source.shape), work.energy.removed
    what = source.shape, source.format, method, plan.backend.name, plan.level
    found = work.noisy, sigma, thresholds, sigma_range, thresholds_range
    return Report(*what, *found, removed, passes, seconds)


def _buffer(plan: Plan, dtype: DType) -> Array:
    """Memory for the largest part."""
    if isinstance(plan, DeviceResident):
        return plan.device.host_buffer(plan.buffer, dtype)
    return np.empty(plan.buffer, dtype)


@dataclass
class _Work:
    """One file on its way."""

    source: Source
    method: Options
    plan: Plan
    progress: Progress | None
    energy: Energy = field(init=False)
    done: int = 0
    taken: int = 0
    noisy: int = 0
    _found: Noise = field(default_factory=list)

    def __post_init__(self) -> None:
        self.energy = Energy(self.plan.backend.summation)

    def read(self, samples: int) -> None:
        """Count samples that were taken from the source."""
        self.taken += samples
        self.passed(samples)

    def passed(self, samples: int) -> None:
        """Report progress: so many samples more."""
        self.done += samples * self.source.dtype.itemsize
        if self.progress is not None:
            size = math.prod(self.source.shape) * self.source.dtype.itemsize
            self.progress(self.done, size * max(self.plan.passes, math.ceil(self.done / size)))

    def run(self, plan: Plan, ahead: Ahead, behind: Behind) -> None:
        """Denoise all of the file as planned."""
        if isinstance(plan, WholeTraces):
            self._whole_traces(plan, ahead, behind)
        elif isinstance(plan, Chunks):
            self._chunks(plan, ahead, behind)
        elif isinstance(plan, DeviceResident):
            shape = self.source.shape
            self._found += device_staging.denoise(shape, plan, self.method, ahead, behind, self.energy, self.passed)

    def _whole_traces(self, plan: WholeTraces, ahead: Ahead, behind: Behind) -> None:
        """As many traces at a time as fit."""
        rows, samples = self.source.shape
        each, step = plan.together, -(-rows // REPORTED)
        batches = [slice(a, min(a + each, rows)) for a in range(0, rows, each)]
        ahead.expect([[(batch, 0, samples)] for batch in batches])
        for batch in batches:
            x = ahead.take([(batch, 0, samples)])
            try:
                outcome = run(x, self.method, plan.backend)
            except NonFiniteSample as error:
                hint = "; replace it, or set it to NaN to have it treated as a gap"
                raise NonFiniteSample(error.trace + batch.start, error.sample, hint) from error
            self.energy.add(x, outcome.samples)
            behind.put(batch, 0, outcome.samples)
            noisy = np.zeros(len(x), bool)
            for e in outcome.estimates:
                np.logical_or.at(noisy, e.segments.rows, _noisy(e.sigma, e.thresholds))
                self._found.append((e.sigma[:, ::step], e.thresholds[:, ::step]))
            self.noisy += int(np.count_nonzero(noisy))

    def _chunks(self, plan: Chunks, ahead: Ahead, behind: Behind) -> None:
        """Traces, or a record, that do not fit."""
        rows = FileRows(self.source, plan, self.method, ahead, behind, self.energy)
        if plan.level == 0:
            for row in range(self.source.shape[0]):
                rows.leave(row, written=False)
            return
        measured = engine.denoise_chunks(rows, self.method, plan.level, plan.chunk)
        if measured is None:
            raise ValueError(SQUARES_OVERFLOW)
        details = len(self.method.transform.bands(plan.level))  # without what there is of the approximation
        self._found.append((measured.sigma[:details], measured.thresholds[:details]))

    def found(self) -> tuple[list[Floats], list[Floats]]:
        """Noise and thresholds, for each level of all traces with noise that have it."""
        noisy = [_noisy(*found) for found in self._found]
        if not isinstance(self.plan, WholeTraces):
            self.noisy = sum(int(np.count_nonzero(live)) for live in noisy)
        if any(map(np.any, noisy)):
            self._found = [(s[:, live], t[:, live]) for (s, t), live in zip(self._found, noisy, strict=True)]
        if self.method.rule.values and not isinstance(self.plan, WholeTraces):
            self._found = [(sigma[:0], thresholds) for sigma, thresholds in self._found]
        sigmas, thresholds = ([found[i] for found in self._found] for i in range(2))
        return _by_level(sigmas), _by_level(thresholds)


def _noisy(sigma: Floats, thresholds: Floats) -> Mask:
    """Which traces have noise; where it was not measured, dead traces are those of threshold 0."""
    return np.asarray((sigma if sigma.any() else thresholds).any(axis=0))


def _by_level(found: list[Floats]) -> list[Floats]:
    depth = max(map(len, found), default=0)
    return [np.concatenate([levels[i] for levels in found if len(levels) > i]) for i in range(depth)]
