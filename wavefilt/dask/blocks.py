"""Denoising dask arrays lazily: on threads, processes or the machines of a cluster, with the one machine's result.

Blocks of whole traces are denoised one by one. Blocks of cut traces, or of a record, are the chunks of a job as in
`wavefilt.engine`: one task counts in each block, others merge the counts, and the next pass depends on them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from math import prod
from typing import Any, TypeAlias, Unpack

import numpy as np
import pywt

from wavefilt import arrays, backends
from wavefilt.api import denoise as denoise_array
from wavefilt.arrays import Array, DType, Floats, Mask
from wavefilt.backends.interface import Backend
from wavefilt.chunks import Chunk, Part
from wavefilt.engine import Job, Result
from wavefilt.errors import SQUARES_OVERFLOW
from wavefilt.options import Keywords, Options
from wavefilt.options import along as along_axes
from wavefilt.statistics.mergeable import Begin, Counted, HostTally, PassStatistics, State, merged
from wavefilt.thresholding.rules import RULES
from wavefilt.thresholding.shrinkage import Shrinkage
from wavefilt.transforms import Pyramid
from wavefilt.trend import of_rows
from wavefilt.vocabulary import check
from wavefilt.wavelets import boundary
from wavefilt.wavelets.filters import WaveletLike

try:
    import dask.array as da
    from dask.base import tokenize
    from dask.delayed import Delayed
    from dask.graph_manipulation import bind
    from dask.highlevelgraph import HighLevelGraph
except ImportError as error:
    raise ImportError(f'wavefilt.dask needs dask ({error}): pip install "wavefilt[dask]"') from error

TOGETHER = 16
"""Parts of a pass that are merged at a time."""

Block: TypeAlias = tuple[int, ...]
Key: TypeAlias = tuple[str | int, ...]
Graph = dict[str | Key, tuple[Any, ...] | list[Any]]
"""Tasks by their keys, as dask has them: a function and its arguments, which may be keys."""


def denoise(
    array: da.Array,
    wavelet: WaveletLike | None = None,
    *,
    axis: int = -1,
    axes: tuple[int, int] | None = None,
    backend: str = "auto",
    **options: Unpack[Keywords],
) -> da.Array:
    """`wavefilt.denoise` of a dask array, lazily: a dask array of the same shape, chunks and floating dtype.

    ``options`` are those of `wavefilt.denoise` but ``return_residual``: level, mode, rule, shrink, sigma, scope, keep,
    transform, spins, detrend and blend. The backend is a name. Chunks may be of NumPy or CuPy arrays.

    Where chunks hold whole traces and thresholds are each trace's own, every option serves and gaps (NaN) are cut out.
    Where traces are cut (chunks along ``axis``) or all traces share thresholds (``scope="record"``), there are several
    passes over the chunks: rules are then mergeable ("universal", "minimax", "bayes", "js", "bivariate" and numbers),
    ``sigma`` is no tuple (noise in a window, or that changes), ``transform`` "dwt", "modwt" or "dtcwt", without spins,
    every sample finite; and where traces are cut, the mode is none that joins the ends of a trace, and nothing is
    detrended, which excludes "js". Noise and thresholds are those of the whole traces or record: medians exactly, mean
    squares to rounding. Dead traces of a record are left out.

    Both ``axes`` of panels must be in one chunk, and thresholds each panel's own (``scope="trace"``) unless the array
    is one chunk: coefficients of two dimensions are not computed across chunks.

    Chunks are read anew for each pass, one to four times: persist what is expensive to compute.

    Raises
    ------
    TypeError
        If ``array`` is no dask array, or not of numbers.
    ValueError
        For an option of another name, what `wavefilt.denoise` refuses, options that need whole traces where they are
        cut or a record, and chunks of unknown sizes. What only the samples show (gaps, overflow) is raised when the
        result is computed.
    """
    if not isinstance(array, da.Array):
        raise TypeError(f"a dask array is needed, not {type(array).__name__}: dask.array.from_array(x, chunks=...)")
    if "return_residual" in options:
        raise ValueError("return_residual is no option for dask arrays: what was removed is array - quiet")
    method = Options.of(wavelet, options, "axis", "axes", dimensions=1 if axes is None else 2)
    if axes is not None and (axis != -1 or np.ndim(axes) != 1 or len(axes) != 2):
        raise ValueError(f"axes={axes!r} must be a pair of axes, instead of axis={axis}")
    along: tuple[int, ...] = (axis,) if axes is None else tuple(axes)
    check("backend", backend, ["auto", *backends.names()])
    dtype = array.dtype if array.dtype.kind in "fc" else arrays.compute_dtype(array.dtype)
    arrays.compute_dtype(dtype)
    for own in along:
        if not -array.ndim <= own < array.ndim:
            raise ValueError(f"axis={own} is out of range for an array of {array.ndim} dimensions")
    if any(np.isnan(size) for sizes in array.chunks for size in sizes):
        raise ValueError("the sizes of the array's chunks are not known: call its compute_chunk_sizes() first")
    if 0 in array.shape:
        raise ValueError(f"an array of shape {array.shape} has no samples")
    depth = method.level_for(*(array.shape[own] for own in along))
    whole = all(array.numblocks[own] == 1 for own in along)
    if whole and (method.scope == "trace" or prod(array.numblocks) == 1):
        meta = array._meta.astype(dtype)
        block = partial(denoise_array, wavelet=wavelet, backend=backend, **along_axes(along), **options)
        return array.map_blocks(block, dtype=dtype, meta=meta)
    if axes is not None:
        what = 'a record of several chunks: use scope="trace", or one chunk' if whole else "panels cut into chunks"
        hint = "" if whole else f": rechunk both to one chunk, x.rechunk({{{along[0]}: -1, {along[1]}: -1}})"
        raise ValueError(f"axes={axes!r} is not possible for {what}{hint}")
    _check_mergeable(method, cut=array.numblocks[axis] > 1)
    if depth == 0:
        return array.astype(dtype)
    method = replace(method, sigma=0.0) if method.rule.values else method
    job = _BlockJob(method, depth, array.shape[axis], backend)
    last = da.moveaxis(array, axis, -1)
    chunks = aligned(last.chunks[-1], job.halo or 0, 1 << depth)
    done = _by_passes(last.rechunk({last.ndim - 1: chunks}), job, dtype)
    return da.moveaxis(done.rechunk(last.chunks), -1, axis)


def aligned(sizes: Sequence[int], reach: int, step: int) -> tuple[int, ...]:
    """Chunks like these that begin at multiples of ``step`` and have ``reach`` samples or more, or are the only one."""
    total, edges = sum(sizes), [0]
    for edge in np.cumsum(sizes)[:-1]:
        near = round(int(edge) / step) * step
        if near - edges[-1] >= max(reach, 1) and total - near >= max(reach, 1):
            edges.append(near)
    return tuple(b - a for a, b in pairwise([*edges, total]))


def _check_mergeable(method: Options, cut: bool) -> None:
    """Raise ValueError for what needs whole traces, or all details, in one place."""
    what = "traces cut into chunks" if cut else "a record of several chunks"
    help = "rechunk the samples' axis to one chunk" + ("" if method.scope == "trace" else ' and use scope="trace"')
    wrong = None
    possible = [name for name, rule in RULES.items() if rule.mergeable and not (cut and rule.local)]
    if method.rule.name and method.rule.name not in possible:
        wrong = f"rule={method.rule.name!r} (possible are {', '.join(possible)} and numbers)"
    elif method.noise.window is not None:
        wrong = "a noise window"
    elif method.noise.changing:
        wrong = f"sigma={method.sigma!r}"
    elif cut and method.trend is not None:
        wrong = f"detrend={method.trend!r}"
    elif method.halo(1) is None or method.spins > 1:
        wrong = f"transform={method.transform.word!r} with spins={method.spins}"
    elif cut and method.mode in boundary.ROUND:
        wrong = f"mode={method.mode!r}, which joins the ends of a trace,"
    if wrong:
        raise ValueError(f"{wrong} is not possible for {what}: {help}")


@dataclass(frozen=True)
class _BlockJob(Job):
    """What tasks need to know: the job, and a backend's name."""

    backend: str

    def live(self, dead: Sequence[Mask], dtype: DType) -> State:
        """Before the first pass over a record, of whose rows some are dead; with nothing to be found if all are."""
        rows = sum(np.count_nonzero(~own) for own in dead)
        state = State.of(self.options, self.lengths * max(rows, 1), 1, dtype)
        if rows:
            return state
        medians = {band: np.zeros(1) for band in range(1, len(self.lengths) + 1)}
        return replace(state, search={}, medians=medians, mean_square=np.zeros((len(self.lengths), 1)))

    def count(self, block: Array, part: Part, state: State, dead: Mask | None) -> Counted:
        """What a pass counts in the details that are the block's own, but those of rows that are dead."""
        rows = _host(block)
        rows = rows if dead is None else np.ascontiguousarray(rows[~dead])
        if not len(rows):
            return HostTally(state).result()
        pyramid, chosen = self._decomposed(rows)
        tally = HostTally(state, chosen.summation.tabulate)
        tally.add(self.details(self._chunk(block, part), pyramid.coefficients))
        return tally.result()

    def thresholds(self, state: State) -> tuple[Floats, Floats]:
        """Noise and thresholds (levels, groups), finest level first."""
        rows = int(state.counts[0] // self.lengths[0])  # of a group
        found = self.options.thresholds(PassStatistics(state, _no_pass), self.samples * rows)
        if not np.isfinite(found).all():
            raise ValueError(SQUARES_OVERFLOW)
        return found

    def finish(self, block: Array, part: Part, found: tuple[Floats, Floats], dtype: DType) -> Array:
        """The block's own samples denoised, in its shape, and an array of its kind."""
        rows = _host(block)
        pyramid, chosen = self._decomposed(rows)
        sigma, thresholds = (np.broadcast_to(values, (len(values), len(rows))) for values in found)
        y = chosen.reconstruct(pyramid, Shrinkage(self.options.function(self.samples), thresholds, sigma))
        if self.options.trend is not None:
            of_rows(rows, self.options.trend).restore(y)
        y = self.options.blended(rows, y)
        if not np.isfinite(y).all():
            raise ValueError(f"samples overflow {rows.dtype} in the transform; scale them down first")
        # where all that the block's own samples depend on is equal, its details are rounding
        unchanged = ~thresholds.any(axis=0) | arrays.constant(rows)
        y[unchanged] = rows[unchanged]
        ((own, _),) = self._chunk(block, part).kept()
        y = np.ascontiguousarray(y[:, own]).reshape(*block.shape[:-1], -1).astype(dtype, copy=False)
        home = backends.home(block)
        return y if home is None else home.to_device(y, block)

    def _chunk(self, block: Array, part: Part) -> Chunk:
        return Chunk(slice(0, prod(block.shape[:-1])), self.samples, (part,))

    def _decomposed(self, rows: Array) -> tuple[Pyramid, Backend]:
        if not np.isfinite(rows).all():
            raise ValueError(
                "a sample is NaN or infinite: gaps need whole traces in a chunk and thresholds of each trace "
                '(rechunk the axis of the samples to one chunk, scope="trace")'
            )
        dtype, on_host = arrays.dtype_name(rows.dtype), self.options.on_host
        chosen = backends.choose(self.backend, dtype, rows.shape, self.analysis, on_host=on_host)
        if self.options.trend is not None:
            rows = of_rows(rows, self.options.trend).removed(rows)
        return chosen.decompose(rows, self.analysis), chosen


def _alike(block: Array) -> Array:
    """The finite number that all samples of a row are, NaN for rows of others."""
    rows = _host(block)
    return np.where(arrays.constant(rows) & np.isfinite(rows[:, 0]), rows[:, 0], np.nan)


def _dead(alike: Sequence[Array]) -> Mask:
    """Which rows are one number in all of their blocks."""
    return np.asarray(np.logical_and.reduce([numbers == alike[0] for numbers in alike]))


def _after(state: State, counted: Counted) -> State:
    """`State.after` a pass, if there was anything to be found."""
    return state.after(counted) if state.passes else state


def _no_pass(begin: Begin[Result]) -> list[Result]:
    raise TypeError("a rule that says it is mergeable asked for more than the noise and the mean squares it needs")


def _host(block: Array) -> Array:
    """Rows (traces, samples) of the dtype of computation in host memory."""
    home = backends.home(block)
    if home is None:
        return arrays.take(block, -1).rows
    return home.to_host(home.take(block, -1).rows)


def _by_passes(x: da.Array, job: _BlockJob, dtype: DType) -> da.Array:
    """The array, whose last axis is the samples', denoised by thresholds from several passes over its blocks."""
    depth = job.halo or 0 if x.numblocks[-1] > 1 else 0
    around = da.overlap.overlap(x, {x.ndim - 1: depth}, {x.ndim - 1: "none"}, allow_rechunk=False) if depth else x
    edges = np.cumsum((0, *x.chunks[-1])).tolist()
    parts = [Part(max(a - depth, 0), a, b, min(b + depth, job.samples)) for a, b in pairwise(edges)]
    real = np.empty(0, arrays.compute_dtype(x.dtype)).real.dtype
    lots = _lots(x, job.options.scope)
    looked_for: list[State | Key] = [State.of(job.options, job.lengths * n, groups, real) for _, groups, n in lots]
    states, passes = [*looked_for], State.of(job.options, job.lengths, 1, real).passes
    bank = job.options.filters
    filters = bank.filter_bank if isinstance(bank, pywt.Wavelet) else bank  # those of users may have any name
    name = f"wavefilt-{tokenize(x.name, repr(job.options), filters, job.level, job.backend)}"
    source, needed = around, list[Delayed]()
    dead, live = dict[Block, Key](), list[Delayed]()
    if job.options.scope == "record" and not job.options.rule.values:
        dead, state = _dead_rows(x, job, name, real)
        states, live, needed = [state.key], [state], [state]
        if x.numblocks[-1] > 1 or not passes:  # else every block tells its own as it is read for the first pass
            source = bind(around, state)
    for number in range(passes):
        layer, tasks = f"{name}-{number}", Graph()
        for lot, (blocks, *_) in enumerate(lots):
            keys: list[Key] = [(f"{layer}-count", *block) for block in blocks]
            for key, block in zip(keys, blocks, strict=True):
                tasks[key] = (job.count, (source.name, *block), parts[block[-1]], looked_for[lot], dead.get(block[:-1]))
            whole = _tree(tasks, keys, (f"{layer}-merged", lot))
            tasks[f"{layer}-state", lot] = (_after, states[lot], whole)
            states[lot] = looked_for[lot] = (f"{layer}-state", lot)
        tasks[layer] = list(states)
        done = Delayed(layer, HighLevelGraph.from_collections(layer, tasks, [source, *needed]), layer=layer)
        # read anew, once a pass is over: blocks are not kept in between
        source, needed = bind(around, done), [done, *live]
    tasks = Graph()
    for lot, (blocks, *_) in enumerate(lots):
        found = (f"{name}-thresholds", lot)
        tasks[found] = (job.thresholds, states[lot])
        for block in blocks:
            tasks[name, *block] = (job.finish, (source.name, *block), parts[block[-1]], found, dtype)
    graph = HighLevelGraph.from_collections(name, tasks, [source, *needed])
    return da.Array(graph, name, x.chunks, meta=x._meta.astype(dtype))


def _dead_rows(x: da.Array, job: _BlockJob, name: str, dtype: DType) -> tuple[dict[Block, Key], Delayed]:
    """For the blocks that share rows, which of these are dead; and the state before the first pass over the others."""
    tasks, dead = Graph(), dict[Block, Key]()
    for lead in np.ndindex(*x.numblocks[:-1]):
        alike = [(f"{name}-alike", *lead, i) for i in range(x.numblocks[-1])]
        tasks |= {key: (_alike, (x.name, *key[1:])) for key in alike}
        dead[lead] = (f"{name}-dead", *lead)
        tasks[dead[lead]] = (_dead, alike)
    layer = f"{name}-live"
    tasks[layer] = (job.live, list(dead.values()), dtype)
    return dead, Delayed(layer, HighLevelGraph.from_collections(layer, tasks, [x]), layer=layer)


def _lots(x: da.Array, scope: str) -> list[tuple[list[Block], int, int]]:
    """Blocks whose details are counted together, how many groups they have, and the traces of a group."""
    if scope == "record":
        return [(list(np.ndindex(*x.numblocks)), 1, prod(x.shape[:-1]))]
    leads, last = np.ndindex(*x.numblocks[:-1]), range(x.numblocks[-1])
    rows = [(lead, prod(sizes[i] for sizes, i in zip(x.chunks[:-1], lead, strict=True))) for lead in leads]
    return [([(*lead, i) for i in last], groups, 1) for lead, groups in rows]


def _tree(tasks: Graph, keys: list[Key], name: tuple[str, int]) -> Key:
    """Add tasks that merge what these counted, few at a time, in their order; the key of the last."""
    depth = 0
    while len(keys) > 1 or depth == 0:
        starts = range(0, len(keys), TOGETHER)
        for i in starts:
            tasks[*name, depth, i] = (merged, keys[i : i + TOGETHER])
        keys, depth = [(*name, depth, i) for i in starts], depth + 1
    return keys[0]
