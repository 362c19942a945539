"""Denoise Dask arrays lazily, on threads, processes or the machines of a cluster, with the result of one machine.

Blocks of whole traces are denoised one by one. Other blocks are the chunks of a job as in `wavefilt.engine`: in each
pass a task counts the coefficients of each block, a reduction merges the counts, and the next pass depends on them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import pairwise
from math import prod
from typing import Any, Unpack

import numpy as np
import pywt

from wavefilt import arrays, backends
from wavefilt.api import denoise as denoise_array
from wavefilt.arrays import Array, DType, Mask
from wavefilt.backends.registry import host_rows
from wavefilt.chunks import Chunk, Part
from wavefilt.engine import Job, Rows
from wavefilt.errors import SQUARES_OVERFLOW
from wavefilt.options import Keywords, Options, check_names
from wavefilt.options import along as along_axes
from wavefilt.statistics.mergeable import Counted, Details, PassStatistics, State, count, merged
from wavefilt.thresholding.rules import RULES
from wavefilt.thresholding.shrinkage import Shrinkage
from wavefilt.vocabulary import check
from wavefilt.wavelets.boundary import ROUND, extended
from wavefilt.wavelets.filters import WaveletLike

try:
    import dask.array as da
    from dask.base import tokenize
    from dask.graph_manipulation import bind
except ImportError as error:
    raise ImportError(f'wavefilt.dask needs dask ({error}): pip install "wavefilt[dask]"') from error

MERGED = 16
"""Number of counts that one task merges."""


def denoise(
    array: da.Array,
    wavelet: WaveletLike | None = None,
    *,
    axis: int = -1,
    axes: tuple[int, int] | None = None,
    backend: str = "auto",
    **options: Unpack[Keywords],
) -> da.Array:
    """Denoise a dask array lazily, and return a dask array of the same shape, chunks and floating dtype.

    ``options`` are the ones of `wavefilt.denoise` except ``return_residual``; the backend is given by name. Chunks may
    be NumPy or CuPy arrays. If chunks hold whole traces and each trace has its own thresholds, all options are possible
    and gaps (NaN) and runs of equal samples are left out.

    If traces are divided (several chunks along ``axis``) or all traces share thresholds (``scope="record"``), there are
    several passes over the chunks. Rules must then be mergeable ("universal", "minimax", "bayes", "js", "bivariate" and
    numbers), ``sigma`` no tuple (a noise window, or noise that changes), ``transform`` "dwt", "modwt" or "dtcwt"
    without spins, and all samples finite. Divided traces can have neither the rule "js", nor ``detrend``, nor a mode
    that joins the ends of a trace. Noise and thresholds are computed from the whole traces or record: medians exactly,
    mean squares to rounding. Dead traces of a record are left out, and runs of equal samples are not.

    Sections must have both ``axes`` in one chunk, and ``scope="trace"`` unless the array is one chunk.

    Chunks are read again in each pass, one to four times, and once more for divided traces with mode "zero" or
    "antisymmetric": persist arrays that are expensive to compute.

    Raises TypeError if ``array`` is not a dask array of numbers, and ValueError for options that `wavefilt.denoise`
    refuses or that are not possible for these chunks, and for chunks of unknown sizes. Errors that depend on the
    samples (gaps, overflow) are raised when the result is computed.
    """
    if not isinstance(array, da.Array):
        raise TypeError(f"a dask array is needed, not {type(array).__name__}: dask.array.from_array(x, chunks=...)")
    if "return_residual" in options:
        raise ValueError("`return_residual` is no option for dask arrays: the residual is array - denoised")
    check_names(options, "axis", "axes")
    checked = Options(wavelet, **options, ndim=1 if axes is None else 2)
    if axes is not None and (axis != -1 or np.ndim(axes) != 1 or len(axes) != 2):
        raise ValueError(f"`axes={axes!r}` must be a pair of axes, instead of `axis={axis}`")
    along: tuple[int, ...] = (axis,) if axes is None else tuple(axes)
    check("backend", backend, ["auto", *backends.names()])
    dtype = array.dtype if array.dtype.kind in "fc" else arrays.compute_dtype(array.dtype)
    arrays.compute_dtype(dtype)
    arrays.check_axes(array.shape, along)
    if any(np.isnan(size) for sizes in array.chunks for size in sizes):
        raise ValueError("the sizes of the array's chunks are not known: call its compute_chunk_sizes() first")
    if 0 in array.shape:
        return array.astype(dtype)
    level = checked.level_for(*(array.shape[i] for i in along))
    whole = all(array.numblocks[i] == 1 for i in along)
    if whole and (checked.scope == "trace" or prod(array.numblocks) == 1):
        meta = array._meta.astype(dtype)
        block = partial(denoise_array, wavelet=wavelet, backend=backend, **along_axes(along), **options)
        return array.map_blocks(block, dtype=dtype, meta=meta)
    if axes is not None:
        chunks = "a record of several chunks" if whole else "sections divided into chunks"
        hint = 'use `scope="trace"`, or one chunk' if whole else f"x.rechunk({{{along[0]}: -1, {along[1]}: -1}})"
        raise ValueError(f"`axes={axes!r}` is not possible for {chunks}: {hint}")
    _check_mergeable(checked, divided=array.numblocks[axis] > 1)
    if level == 0:
        return array.astype(dtype)
    checked = replace(checked, sigma=0.0) if checked.rule.values else checked
    job = _BlockJob(checked, level, array.shape[axis], backend)
    last = da.moveaxis(array, axis, -1)
    sizes = aligned(last.chunks[-1], checked.halo(level) or 0, 1 << level)
    denoised = _denoise_in_passes(last.rechunk({last.ndim - 1: sizes}), job, dtype)
    return da.moveaxis(denoised.rechunk(last.chunks), -1, axis)


def aligned(sizes: Sequence[int], smallest: int, step: int) -> tuple[int, ...]:
    """Return similar sizes of chunks that begin at multiples of ``step`` and have at least ``smallest`` samples.

    A shorter trace is a single chunk.
    """
    total, edges = sum(sizes), [0]
    for edge in np.cumsum(sizes)[:-1]:
        near = round(int(edge) / step) * step
        if near - edges[-1] >= max(smallest, 1) and total - near >= max(smallest, 1):
            edges.append(near)
    return tuple(b - a for a, b in pairwise([*edges, total]))


def _check_mergeable(options: Options, divided: bool) -> None:
    """Raise ValueError for an option that needs whole traces, or all coefficients, in one place."""
    rules = [name for name, rule in RULES.items() if rule.mergeable and not (divided and rule.local)]
    rule, transform, mode = options.rule.name, options.transform.word, options.mode
    refused = {
        f"`rule={rule!r}` (possible are {', '.join(rules)} and numbers)": rule and rule not in rules,
        f"`sigma={options.sigma!r}`": options.noise.window is not None or options.noise.changing,
        f"`detrend={options.trend!r}`": divided and options.trend is not None,
        f"`transform={transform!r}` with `spins={options.spins}`": options.halo(1) is None or options.spins > 1,
        f"`mode={mode!r}`, which joins the ends of a trace,": divided and mode in ROUND,
    }
    for option, impossible in refused.items():
        if impossible:
            chunks = "traces divided into chunks" if divided else "a record of several chunks"
            hint = "rechunk the axis of the samples to one chunk"
            hint += "" if options.scope == "trace" else ' and use `scope="trace"`'
            raise ValueError(f"{option} is not possible for {chunks}: {hint}")


@dataclass(frozen=True)
class _BlockJob(Job):
    """A job with the name of a backend, its tasks for blocks, and the ``parts`` of a trace in the blocks."""

    backend: str
    parts: Sequence[Part] = ()

    @cached_property
    def extends_constants(self) -> bool:
        """Whether the boundary mode extends equal samples by the same value."""
        return bool((extended(np.ones((1, 4)), self.options.mode, 4, 4) == 1).all())

    @property
    def pooled(self) -> bool:
        """Whether all rows share their thresholds."""
        return self.options.scope == "record"

    def initial_state(self, live: Array, dtype: DType) -> State:
        """Return the state before the first pass, for the rows of the mask ``live``, or for that number in a record.

        The state of a record without a live row is complete.
        """
        if not self.pooled:
            return State.of(self.options, self.lengths, live.size, dtype)
        state = State.of(self.options, self.lengths * max(live.item(), 1), 1, dtype)
        if live.item():
            return state
        medians = {band: np.zeros(1) for band in range(1, len(self.lengths) + 1)}
        return replace(state, search={}, medians=medians, mean_square=np.zeros((len(self.lengths), 1)))

    def count(self, block: Array, state: State, live: Mask, block_id: tuple[int, ...]) -> Counted:
        """Count the coefficients of the block, in a record only of ``live`` rows, for the next pass."""
        x = host_rows(block, -1)
        x = x[live.ravel()] if self.pooled else x
        if not len(x):
            return count(state, [[] for _ in state.counts])
        rows, chunk = self._rows(x), Chunk(slice(0, len(x)), self.samples, (self.parts[block_id[-1]],))
        pyramid = rows.decompose(chunk, self)
        return count(state, self.details(chunk, pyramid), rows.backend.summation.tabulate)

    def finish(self, block: Array, state: State, live: Mask, dtype: DType, block_id: tuple[int, ...]) -> Array:
        """Denoise the samples that belong to the block, with the noise and thresholds of the complete ``state``."""
        x, part = host_rows(block, -1), self.parts[block_id[-1]]
        rows, chunk = self._rows(x), Chunk(slice(0, len(x)), self.samples, (part,))
        together = int(state.counts[0] // self.lengths[0])  # rows of a group
        measured = self.options.thresholds(PassStatistics(state, _no_pass), self.samples * together)
        if not np.isfinite(measured).all():
            raise ValueError(SQUARES_OVERFLOW)
        sigma, thresholds = (np.broadcast_to(values, (len(values), len(x))) for values in measured)
        shrinkage = Shrinkage(self.options.function(self.samples), thresholds, sigma)
        if not (rows.write(chunk, rows.decompose(chunk, self), shrinkage, self) and np.isfinite(rows.y).all()):
            raise ValueError(f"samples overflow {x.dtype} in the transform; scale them down first")
        unchanged = ~live.ravel()
        one_end = (part.first == 0) != (part.last == self.samples)
        if self.extends_constants or not one_end:  # details of equal samples are rounding errors
            unchanged |= arrays.constant(x)
        y = np.where(unchanged[:, None], x[:, part.start - part.first : part.stop - part.first], rows.y)
        y = y.reshape(*block.shape[:-1], -1).astype(dtype, copy=False)
        home = backends.home(block)
        return y if home is None else home.to_device(y, block)

    def _rows(self, x: Array) -> _BlockRows:
        """Return the rows of a block for the steps of denoising. Raises ValueError for samples that are not finite."""
        if not np.isfinite(x).all():
            hint = 'gaps need `scope="trace"`, and one chunk along the axis of the samples'
            raise ValueError(f"a sample is NaN or infinite: {hint}")
        how = arrays.dtype_name(x.dtype), x.shape, self.analysis
        return _BlockRows(x, backends.choose(self.backend, *how, on_host=self.options.on_host))


class _BlockRows(Rows):
    """The rows of a block with its halo, which is one chunk; ``y`` are the denoised samples that belong to it."""

    y: Array

    def take(self, chunk: Chunk) -> Array:
        return self.x

    def put(self, chunk: Chunk, y: Array) -> None:
        ((own, _),) = chunk.kept()
        self.y = y[:, own]

    def read(self, row: int, first: int, last: int) -> Array:
        return self.x[row, first:last]


def _constants(block: Array) -> Array:
    """Return the value of each row whose samples are all equal and finite, and NaN for other rows."""
    rows = host_rows(block, -1)
    values = np.where(arrays.constant(rows) & np.isfinite(rows[:, 0]), rows[:, 0], np.nan)
    return values.reshape(*block.shape[:-1], 1)


def _counted(counted: Counted, **axes: Any) -> Counted:
    """Return the counts of a block, as the first step of a reduction."""
    return counted


def _merged(counted: list[Counted], **axes: Any) -> Counted:
    """Merge the counts of some blocks, as the further steps of a reduction."""
    return merged(counted)


def _no_pass(add: Callable[[Details], None]) -> None:
    raise TypeError("a mergeable rule asked for statistics other than the ones that it declares")


def _denoise_in_passes(x: da.Array, job: _BlockJob, dtype: DType) -> da.Array:
    """Denoise an array along its last axis, with thresholds from several passes over its blocks.

    Arrays of objects have one for each block of rows: which rows are ``live``, and the state of the search of their
    thresholds, of which a record has only one.
    """
    last, divided = x.ndim - 1, x.numblocks[-1] > 1
    halo = job.options.halo(job.level) or 0 if divided else 0
    padded = da.overlap.overlap(x, {last: halo}, {last: "none"}, allow_rechunk=False) if halo else x
    edges = np.cumsum((0, *x.chunks[-1])).tolist()
    parts = [Part(max(a - halo, 0), a, b, min(b + halo, job.samples)) for a, b in pairwise(edges)]
    job, real = replace(job, parts=parts), np.empty(0, arrays.compute_dtype(x.dtype)).real.dtype
    filters = job.options.filters
    filters = filters.filter_bank if isinstance(filters, pywt.Wavelet) else filters  # custom wavelets may share a name
    own = job.options.rule, job.options.shrink, job.options.transform  # different objects may have the same repr
    name = f"wavefilt-{tokenize(x.name, repr(job.options), own, filters, job.level, job.backend)}"
    passes = State.of(job.options, job.lengths, 1, real).passes
    objects: dict[str, Any] = {"dtype": object, "meta": np.empty((0,) * x.ndim, object)}
    source, live = padded, da.ones((*x.shape[:-1], 1), dtype=bool, chunks=(*x.chunks[:-1], 1))
    begin = partial(job.initial_state, dtype=real)
    state = da.map_blocks(begin, live.sum(keepdims=True) if job.pooled else live, name=f"{name}-all", **objects)
    counting = state  # in a record, of all rows: a block must not wait until the dead rows of all blocks are known
    if (job.pooled and not job.options.rule.values) or (divided and not job.extends_constants):
        chunks, meta = (*x.chunks[:-1], (1,) * len(parts)), np.empty((0,) * x.ndim, real)
        constants = x.map_blocks(_constants, chunks=chunks, dtype=real, meta=meta)
        live = (constants != constants[..., :1]).any(axis=-1, keepdims=True)
        if job.pooled:
            state = da.map_blocks(begin, live.sum(keepdims=True), name=f"{name}-live", **objects)
        if divided or not passes:  # otherwise a block is read once, for its dead rows and the first pass
            source = bind(padded, live.sum())
    for number in range(passes):
        counted = da.map_blocks(job.count, source, counting, live, name=f"{name}-count-{number}", **objects)
        for axis in range(last, -1 if job.pooled else last - 1, -1):  # the last axis first, for sums in order
            more = {"split_every": MERGED, "concatenate": False, "keepdims": True, **objects}
            counted = da.reduction(counted, _counted, _merged, axis=axis, **more)
        state = counting = da.map_blocks(State.after, state, counted, name=f"{name}-state-{number}", **objects)
        source = bind(padded, state)  # blocks are read again after the pass, not kept in memory
    finish, meta = partial(job.finish, dtype=dtype), x._meta.astype(dtype)
    return da.map_blocks(finish, source, state, live, name=name, chunks=x.chunks, dtype=dtype, meta=meta)
