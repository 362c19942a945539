"""Denoise Dask arrays lazily, on threads, processes or the machines of a cluster, with the result of one machine.

Blocks of whole traces are denoised one by one. Other blocks are the chunks of a job as in `wavefilt.engine`: in each
pass a task counts the coefficients of each block, further tasks merge the counts, and the next pass depends on them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import groupby, pairwise
from math import prod
from operator import getitem
from typing import Any, TypeAlias, Unpack

import numpy as np
import pywt

from wavefilt import arrays, backends
from wavefilt.api import denoise as denoise_array
from wavefilt.arrays import Array, DType, Floats, Mask
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
    from dask.delayed import Delayed
    from dask.graph_manipulation import bind
    from dask.highlevelgraph import HighLevelGraph
except ImportError as error:
    raise ImportError(f'wavefilt.dask needs dask ({error}): pip install "wavefilt[dask]"') from error

MERGED = 16
"""Number of counts that one task merges."""

Block: TypeAlias = tuple[int, ...]
Key: TypeAlias = tuple[str | int, ...]
Graph = dict[str | Key, tuple[Any, ...] | list[Any]]
"""Tasks by their keys, as in dask: a function and its arguments, which may be keys."""


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
        raise ValueError(f"an array of shape {array.shape} has no samples")
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
    """A job with the name of a backend, and its tasks for blocks, their parts of a trace and their ``dead`` rows."""

    backend: str

    @cached_property
    def extends_constants(self) -> bool:
        """Whether the boundary mode extends equal samples by the same value."""
        return bool((extended(np.ones((1, 4)), self.options.mode, 4, 4) == 1).all())

    def initial_state(self, dead: Sequence[Mask], dtype: DType) -> State:
        """Return the state before the first pass over the live rows of a record; complete if all rows are dead."""
        rows = sum(np.count_nonzero(~block) for block in dead)
        state = State.of(self.options, self.lengths * max(rows, 1), 1, dtype)
        if rows:
            return state
        medians = {band: np.zeros(1) for band in range(1, len(self.lengths) + 1)}
        return replace(state, search={}, medians=medians, mean_square=np.zeros((len(self.lengths), 1)))

    def count(self, block: Array, part: Part, state: State, dead: Mask | None) -> Counted:
        """Count the coefficients that belong to the block, for the next pass of ``state``; dead rows are left out."""
        x = _host_rows(block)
        x = x if dead is None else np.ascontiguousarray(x[~dead])
        if not len(x):
            return count(state, [[] for _ in state.counts])
        rows, chunk = self._rows(x), Chunk(slice(0, len(x)), self.samples, (part,))
        pyramid = rows.decompose(chunk, self)
        return count(state, self.details(chunk, pyramid), rows.backend.summation.tabulate)

    def thresholds(self, state: State) -> tuple[Floats, Floats]:
        """Return noise and thresholds (levels, groups), finest level first."""
        rows = int(state.counts[0] // self.lengths[0])  # of a group
        sigma, thresholds = self.options.thresholds(PassStatistics(state, _no_pass), self.samples * rows)
        if not np.isfinite([sigma, thresholds]).all():
            raise ValueError(SQUARES_OVERFLOW)
        return sigma, thresholds

    def finish(
        self, block: Array, part: Part, dead: Mask | None, measured: tuple[Floats, Floats], dtype: DType
    ) -> Array:
        """Denoise the samples that belong to the block, with the noise and thresholds that were measured."""
        x = _host_rows(block)
        rows, chunk = self._rows(x), Chunk(slice(0, len(x)), self.samples, (part,))
        sigma, thresholds = (np.broadcast_to(values, (len(values), len(x))) for values in measured)
        shrinkage = Shrinkage(self.options.function(self.samples), thresholds, sigma)
        if not (rows.write(chunk, rows.decompose(chunk, self), shrinkage, self) and np.isfinite(rows.y).all()):
            raise ValueError(f"samples overflow {x.dtype} in the transform; scale them down first")
        unchanged = np.asarray(~thresholds.any(axis=0))
        if dead is not None:
            unchanged |= dead
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
    rows = _host_rows(block)
    return np.where(arrays.constant(rows) & np.isfinite(rows[:, 0]), rows[:, 0], np.nan)


def _dead(constants: Sequence[Array]) -> Mask:
    """Return which rows have the same constant in all of their blocks."""
    return np.asarray((np.stack(constants) == constants[0]).all(axis=0))


def _after(state: State, counted: Counted) -> State:
    """Return the state after a pass; a state that is complete is unchanged."""
    return state.after(counted) if state.passes else state


def _no_pass(add: Callable[[Details], None]) -> None:
    raise TypeError("a mergeable rule asked for statistics other than the ones that it declares")


def _host_rows(block: Array) -> Array:
    """Return rows (traces, samples) in host memory, in the dtype of computation."""
    home = backends.home(block)
    return arrays.take(block, -1).rows if home is None else home.to_host(home.take(block, -1).rows)


def _denoise_in_passes(x: da.Array, job: _BlockJob, dtype: DType) -> da.Array:
    """Denoise an array along its last axis, with thresholds from several passes over its blocks."""
    record, divided = job.options.scope == "record", x.numblocks[-1] > 1
    halo = job.options.halo(job.level) or 0 if divided else 0
    source = da.overlap.overlap(x, {x.ndim - 1: halo}, {x.ndim - 1: "none"}, allow_rechunk=False) if halo else x
    edges = np.cumsum((0, *x.chunks[-1])).tolist()
    parts = [Part(max(a - halo, 0), a, b, min(b + halo, job.samples)) for a, b in pairwise(edges)]
    real = np.empty(0, arrays.compute_dtype(x.dtype)).real.dtype
    # blocks whose coefficients are counted together: all of a record, otherwise the ones that share rows
    groups = [[*blocks] for _, blocks in groupby(np.ndindex(*x.numblocks), lambda block: record or block[:-1])]
    next_pass: list[State | Key] = []
    for blocks in groups:
        rows = prod(x.shape[:-1] if record else map(getitem, x.chunks[:-1], blocks[0]))
        counts, thresholds = (job.lengths * rows, 1) if record else (job.lengths, rows)
        next_pass.append(State.of(job.options, counts, thresholds, real))
    states, passes = [*next_pass], State.of(job.options, job.lengths, 1, real).passes
    filters = job.options.filters
    filters = filters.filter_bank if isinstance(filters, pywt.Wavelet) else filters  # custom wavelets may share a name
    name = f"wavefilt-{tokenize(x.name, repr(job.options), filters, job.level, job.backend)}"
    padded, dead, before = source, dict[Block, Key](), list[Delayed]()
    if (record and not job.options.rule.values) or (divided and not job.extends_constants):
        dead, known = _dead_rows(x, job, name, real)
        before = [known]
        if record:
            states = [known.key]
        if divided or not passes:  # otherwise a block is read once, for its dead rows and the first pass
            source = bind(padded, known)
    needed = before
    for number in range(passes):
        layer, tasks = f"{name}-{number}", Graph()
        for index, blocks in enumerate(groups):
            keys: list[Key] = [(f"{layer}-count", *block) for block in blocks]
            for key, block in zip(keys, blocks, strict=True):
                left_out = dead.get(block[:-1]) if record else None
                tasks[key] = (job.count, (source.name, *block), parts[block[-1]], next_pass[index], left_out)
            counted = _add_merging(tasks, keys, (f"{layer}-merged", index))
            tasks[f"{layer}-state", index] = (_after, states[index], counted)
            states[index] = next_pass[index] = (f"{layer}-state", index)
        tasks[layer] = list(states)
        done = Delayed(layer, HighLevelGraph.from_collections(layer, tasks, [source, *needed]), layer=layer)
        # blocks are read again after the pass, not kept in memory
        source, needed = bind(padded, done), [done, *before]
    tasks = Graph()
    for index, blocks in enumerate(groups):
        measured = (f"{name}-thresholds", index)
        tasks[measured] = (job.thresholds, states[index])
        for block in blocks:
            rest = (dead.get(block[:-1]), measured, dtype)
            tasks[name, *block] = (job.finish, (source.name, *block), parts[block[-1]], *rest)
    graph = HighLevelGraph.from_collections(name, tasks, [source, *needed])
    return da.Array(graph, name, x.chunks, meta=x._meta.astype(dtype))


def _dead_rows(x: da.Array, job: _BlockJob, name: str, dtype: DType) -> tuple[dict[Block, Key], Delayed]:
    """Return the keys of the masks of dead rows, for blocks that share rows; and a result that depends on all masks.

    That is the state before the first pass for a record, and otherwise a list of the masks.
    """
    tasks, dead = Graph(), dict[Block, Key]()
    for lead in np.ndindex(*x.numblocks[:-1]):
        constants = [(f"{name}-constants", *lead, i) for i in range(x.numblocks[-1])]
        tasks |= {key: (_constants, (x.name, *key[1:])) for key in constants}
        dead[lead] = (f"{name}-dead", *lead)
        tasks[dead[lead]] = (_dead, constants)
    layer, masks = f"{name}-live", list(dead.values())
    tasks[layer] = (job.initial_state, masks, dtype) if job.options.scope == "record" else masks
    return dead, Delayed(layer, HighLevelGraph.from_collections(layer, tasks, [x]), layer=layer)


def _add_merging(tasks: Graph, keys: list[Key], name: tuple[str, int]) -> Key:
    """Add tasks that merge counts, up to `MERGED` at a time and in order, and return the key of the last task."""
    depth = 0
    while len(keys) > 1 or depth == 0:
        starts = range(0, len(keys), MERGED)
        for i in starts:
            tasks[*name, depth, i] = (merged, keys[i : i + MERGED])
        keys, depth = [(*name, depth, i) for i in starts], depth + 1
    return keys[0]
