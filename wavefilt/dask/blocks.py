"""Denoising dask arrays lazily: on threads, processes or the machines of a cluster, with the one machine's result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from wavefilt import arrays, backends
from wavefilt.chunking.chunks import Chunk, Part, halo
from wavefilt.denoising import options as plugins
from wavefilt.denoising.traces import denoise as denoise_array
from wavefilt.method import Method
from wavefilt.statistics import distributed
from wavefilt.statistics.distributed import TOGETHER, Known, Look, merged, tabulate
from wavefilt.thresholding.shrinkage import Shrinkage
from wavefilt.vocabulary import check
from wavefilt.wavelets import modwt_boundary
from wavefilt.wavelets.filters import WaveletLike, detail_lengths

try:
    import dask.array as da
    from dask.base import tokenize
    from dask.delayed import Delayed
    from dask.graph_manipulation import bind
    from dask.highlevelgraph import HighLevelGraph
except ImportError as error:
    raise ImportError(f'wavefilt.dask needs dask ({error}): pip install "wavefilt[dask]"') from error


def denoise(array: Any, wavelet: WaveletLike = "db8", *, axis: int = -1, backend: str = "auto", **options: Any) -> Any:
    """`wavefilt.denoise` of a dask array, lazily: a dask array of the same shape, chunks and floating dtype.

    ``options`` are those of `wavefilt.denoise` but ``return_noise``: level, mode, rule, shrink, sigma, scope, keep,
    transform and spins. The backend is a name. Chunks may be of NumPy or CuPy arrays.

    Where chunks hold whole traces and thresholds are each trace's own, every option serves and gaps (NaN) are cut out.
    Where traces are cut (chunks along ``axis``) or all traces share thresholds (``scope="record"``), chunks are looked
    at several times: rules are then "universal", "minimax", "bayes" or numbers, ``sigma`` is no window, ``transform``
    "dwt" without spins, every sample finite; and where traces are cut, the mode is none that joins the ends of a trace.
    Noise and thresholds are those of the whole traces or record: medians exactly, mean squares to rounding.

    Chunks are read anew for each look, one to four times: persist what is expensive to compute.

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
    if "return_noise" in options:
        raise ValueError("return_noise is no option for dask arrays: what was removed is array - quiet")
    method = plugins.method(wavelet, options, backend, "axis")
    check("backend", backend, ["auto", *backends.names()])
    dtype = array.dtype if array.dtype.kind in "fc" else arrays.compute_dtype(array.dtype)
    arrays.compute_dtype(dtype)
    if not -array.ndim <= axis < array.ndim:
        raise ValueError(f"axis={axis} is out of range for an array of {array.ndim} dimensions")
    if any(np.isnan(size) for sizes in array.chunks for size in sizes):
        raise ValueError("the sizes of the array's chunks are not known: call its compute_chunk_sizes() first")
    if 0 in array.shape:
        raise ValueError(f"an array of shape {array.shape} has no samples")
    depth = method.level_for(array.shape[axis])
    if array.numblocks[axis] == 1 and (method.scope == "trace" or prod(array.numblocks) == 1):
        meta = array._meta.astype(dtype)
        block = partial(denoise_array, wavelet=wavelet, axis=axis, backend=backend, **options)
        return array.map_blocks(block, dtype=dtype, meta=meta)
    _check_mergeable(method, cut=array.numblocks[axis] > 1)
    if depth == 0:
        return array.astype(dtype)
    job = _Job(replace(method, sigma=0.0) if method.fixed_thresholds else method, depth, array.shape[axis], backend)
    last = da.moveaxis(array, axis, -1)
    done = _looked_at(last.rechunk({last.ndim - 1: aligned(last.chunks[-1], job.reach, 1 << depth)}), job, dtype)
    return da.moveaxis(done.rechunk(last.chunks), -1, axis)


def aligned(sizes: Sequence[int], reach: int, step: int) -> tuple[int, ...]:
    """Chunks like these that begin at multiples of ``step`` and have ``reach`` samples or more, or are the only one."""
    total, edges = sum(sizes), [0]
    for edge in np.cumsum(sizes)[:-1]:
        near = round(int(edge) / step) * step
        if near - edges[-1] >= reach and total - near >= reach and near > edges[-1]:
            edges.append(near)
    return tuple(b - a for a, b in pairwise([*edges, total]))


def _check_mergeable(method: Method, cut: bool) -> None:
    """Raise ValueError for what needs whole traces, or all details, in one place."""
    what = "traces cut into chunks" if cut else "a record of several chunks"
    help = "rechunk the samples' axis to one chunk" + ("" if method.scope == "trace" else ' and use scope="trace"')
    wrong = None
    if isinstance(method.rule, str) and method.rule not in distributed.RULES:
        wrong = f"rule={method.rule!r} (possible are {', '.join(distributed.RULES)} and numbers)"
    elif method.window is not None:
        wrong = "a noise window"
    elif method.transform != "dwt" or method.spins > 1:
        wrong = f"transform={method.transform!r} with spins={method.spins}"
    elif cut and method.mode in modwt_boundary.ROUND:
        wrong = f"mode={method.mode!r}, which joins the ends of a trace,"
    if wrong:
        raise ValueError(f"{wrong} is not possible for {what}: {help}")


@dataclass(frozen=True)
class _Job:
    """What tasks need to know: a method, its levels, the samples of a whole trace, and a backend's name."""

    method: Method
    level: int
    samples: int
    backend: str

    @property
    def reach(self) -> int:
        return halo(self.method.bank.dec_len, self.level)

    def look(self, block: Any, part: Part, known: Known) -> Look:
        """At the details that are the block's own."""
        pyramid, chosen = self._decomposed(_host(block))
        chunk = self._chunk(block, part)
        host = getattr(chosen, "to_host", np.asarray)
        finest_first = [host(details) for details in pyramid.coefficients[:0:-1]]
        owned = [[d[:, own] for own in chunk.owned(i)] for i, d in enumerate(finest_first, 1)]
        return known.look(owned, getattr(chosen, "tabulate", tabulate))

    def finish(self, block: Any, part: Part, found: tuple[Any, Any], dtype: np.dtype[Any]) -> Any:
        """The block's own samples denoised, in its shape, and an array of its kind."""
        rows = _host(block)
        pyramid, chosen = self._decomposed(rows)
        sigma, thresholds = (np.broadcast_to(values, (self.level, len(rows))) for values in found)
        y = chosen.reconstruct(pyramid, Shrinkage(self.method.function(self.samples), thresholds, sigma))
        if not np.isfinite(y).all():
            raise ValueError(f"samples overflow {rows.dtype} in the transform; scale them down first")
        unchanged = ~thresholds.any(axis=0)
        y[unchanged] = rows[unchanged]
        ((own, _),) = self._chunk(block, part).kept()
        y = np.ascontiguousarray(y[:, own]).reshape(*block.shape[:-1], -1).astype(dtype, copy=False)
        home = backends.home(block)
        return y if home is None else home.to_device(y, block)

    def decide(self, known: Known, rows: int, dtype: np.dtype[Any]) -> Any:
        """Noise and thresholds of the groups, of so many rows each."""
        return known.thresholds(self.method, self.samples * rows, dtype)

    def _chunk(self, block: Any, part: Part) -> Chunk:
        return Chunk(slice(0, prod(block.shape[:-1])), self.samples, (part,))

    def _decomposed(self, rows: NDArray[Any]) -> tuple[Any, Any]:
        if not np.isfinite(rows).all():
            raise ValueError(
                "a sample is NaN or infinite: gaps need whole traces in a chunk and thresholds of each trace "
                '(rechunk the axis of the samples to one chunk, scope="trace")'
            )
        bank, name = self.method.bank, arrays.dtype_name(rows.dtype)
        chosen = backends.choose(self.backend, name, (rows.shape[0], rows.shape[1]), bank.dec_len)
        return chosen.decompose(rows, bank, self.method.mode, self.level), chosen


def _host(block: Any) -> NDArray[Any]:
    """Rows (traces, samples) of the dtype of computation in host memory."""
    home = backends.home(block)
    if home is None:
        return arrays.take(block, -1).rows
    return home.to_host(home.take(block, -1).rows)


def _looked_at(x: Any, job: _Job, dtype: np.dtype[Any]) -> Any:
    """The array, whose last axis is the samples', denoised by thresholds for which its blocks are looked at."""
    depth = job.reach if x.numblocks[-1] > 1 else 0
    around = da.overlap.overlap(x, {x.ndim - 1: depth}, {x.ndim - 1: "none"}, allow_rechunk=False) if depth else x
    edges = np.cumsum((0, *x.chunks[-1])).tolist()
    parts = [Part(max(a - depth, 0), a, b, min(b + depth, job.samples)) for a, b in pairwise(edges)]
    compute = arrays.compute_dtype(x.dtype)
    real = np.empty(0, compute).real.dtype
    blocks = list(np.ndindex(*x.numblocks))
    lot_of, shapes = _lots(x, job.method.scope, blocks)
    members: list[list[tuple[int, ...]]] = [[] for _ in shapes]
    for block in blocks:
        members[lot_of[block]].append(block)
    lengths = np.array(detail_lengths(job.samples, job.method.bank.dec_len, job.method.mode, job.level))
    known: list[Any] = [Known.nothing(job.method, lengths * rows, groups, real.itemsize) for groups, rows in shapes]
    name = f"wavefilt-{tokenize(x.name, repr(job.method), job.method.bank.filter_bank, job.level, job.backend)}"
    source, needed, tasks = around, list[Any](), dict[Any, Any]()
    for look in range(known[0].looks):
        layer, tasks = f"{name}-{look}", {}
        for lot, own in enumerate(members):
            keys = [(f"{layer}-look", *block) for block in own]
            for key, block in zip(keys, own, strict=True):
                tasks[key] = (job.look, (source.name, *block), parts[block[-1]], known[lot])
            whole = _tree(tasks, keys, (f"{layer}-merged", lot))
            tasks[f"{layer}-known", lot] = (Known.after, known[lot], whole)
            known[lot] = (f"{layer}-known", lot)
        tasks[layer] = list(known)
        state = Delayed(layer, HighLevelGraph.from_collections(layer, tasks, [source, *needed]), layer=layer)
        source, needed = bind(around, state), [state]  # read anew, once a look is over: blocks are not kept in between
    tasks = {(f"{name}-found", lot): (job.decide, known[lot], rows, real) for lot, (_, rows) in enumerate(shapes)}
    for block in blocks:
        found = (f"{name}-found", lot_of[block])
        tasks[name, *block] = (job.finish, (source.name, *block), parts[block[-1]], found, dtype)
    graph = HighLevelGraph.from_collections(name, tasks, [source, *needed])
    return da.Array(graph, name, x.chunks, meta=x._meta.astype(dtype))


def _lots(
    x: Any, scope: str, blocks: list[tuple[int, ...]]
) -> tuple[dict[tuple[int, ...], int], list[tuple[int, int]]]:
    """Blocks whose details are counted together: the lot of each, and for each lot its groups and a group's traces."""
    if scope == "record":
        return dict.fromkeys(blocks, 0), [(1, prod(x.shape[:-1]))]
    leads = {lead: lot for lot, lead in enumerate(np.ndindex(*x.numblocks[:-1]))}
    groups = [prod(sizes[i] for sizes, i in zip(x.chunks[:-1], lead, strict=True)) for lead in leads]
    return {block: leads[block[:-1]] for block in blocks}, [(own, 1) for own in groups]


def _tree(tasks: dict[Any, Any], keys: list[Any], name: tuple[Any, ...]) -> Any:
    """Add tasks that merge these looks, some at a time, in their order; the key of the last."""
    round = 0
    while len(keys) > 1 or round == 0:
        merges = [(*name, round, i) for i in range(0, len(keys), TOGETHER)]
        for key in merges:
            tasks[key] = (merged, keys[key[-1] : key[-1] + TOGETHER])
        keys, round = merges, round + 1
    return keys[0]
