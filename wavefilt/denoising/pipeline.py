"""Denoising a batch of traces or panels: the backend, the segments between gaps, and what comes of them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from wavefilt.arrays import Array, Mask, constant, dtype_name
from wavefilt.backends import registry
from wavefilt.backends.interface import Backend, on_device
from wavefilt.denoising import gaps
from wavefilt.denoising.estimation import Estimate, denoised, estimate_of, joined, widened, window_noise
from wavefilt.options import Options
from wavefilt.transforms import DWT, DWT2, Pyramid

BLOCK, LIGHT_BLOCK = 8 << 20, 32 << 20
"""Bytes of samples in a block at least, with which they take hardly longer."""
BLOCKS = 16
"""At most: one then takes about as much memory as the result of all, whatever the method."""


@dataclass(frozen=True)
class Outcome:
    """Denoised samples, and how: the method, the backend that ran, the levels used and an estimate a batch."""

    samples: Array
    method: Options
    backend: str
    level: int
    estimates: list[Estimate]

    def __repr__(self) -> str:
        size = f"{' x '.join(map(str, self.samples.shape))} {self.samples.dtype}"
        return f"<Outcome {size}, {self.method.summary(self.level)}, backend {self.backend}>"


def run(
    x: Array, method: Options, backend: str | Backend = "auto", report: bool = False, out: Array | None = None
) -> Outcome:
    """Denoise ``x``, of a dtype of computation, and tell how it was done.

    Its shape is (traces, samples), with a method of two dimensions (panels, rows, columns), or (rows, columns) of one
    panel. ``report`` has the power of the details measured as well, which costs a pass for rules that do not need it.
    Without it a backend that denoises on a device gives no estimates. ``out``, of the shape and dtype of ``x`` and none
    of its memory, is memory that a backend may write the samples to, and they may be elsewhere all the same.
    """
    shape = x.shape
    x = x[None] if x.ndim == method.dimensions else x
    level = method.level_for(*x.shape[1:])
    analysis = method.analysis(level)
    dtype, on_host = dtype_name(x.dtype), method.host_only
    chosen = registry.choose(backend, dtype, x.shape, analysis, denoising=True, on_host=on_host)
    if method.dimensions == 1 and method.scope == "record" and x.size:
        dead = constant(x, gaps=True)
        if dead.any():
            return _beside_dead(x, dead, method, backend, report, shape, math.isfinite(chosen.peak(x)))
    if level and x.size and method.plain and on_device(chosen):
        plain = replace(method, blend=0.0) if method.blend else method
        done = chosen.denoise(x, plain, level, report, None if out is None else out.reshape(x.shape))
        if done is not None:
            (y, measured), found = done, []
            if measured is not None:
                part = gaps.whole(x)[0]
                found.append(estimate_of(measured, part, part.of(x), method, level))
            return Outcome(method.blended(x, y).reshape(shape), method, chosen.name, level, found)
    return _in_blocks(x, method, chosen, level, report, shape, out)


def _beside_dead(
    x: Array, dead: Mask, method: Options, backend: str | Backend, report: bool, shape: tuple[int, ...], finite: bool
) -> Outcome:
    """`run` of a record with dead traces: of the live ones alone, as dead ones tell nothing of the noise.

    They come back as they are, and their noise and thresholds are 0.
    """
    found = gaps.whole(x) if finite else gaps.segments(x)  # which names a trace by its number among all
    done = run(x[~dead], method, backend, report)
    y = x.copy()
    y[~dead] = done.samples
    own, estimates = {estimate.segments.shape: estimate for estimate in done.estimates}, []
    for part in found if own or dead.all() else []:
        depth = min(done.level, method.deepest(*part.shape))
        if depth > 0:
            estimates.append(widened(own.get(part.shape), part, ~dead[part.rows], method.analysis(depth), report))
    return Outcome(y.reshape(shape), method, done.backend, done.level, estimates)


def _in_blocks(
    x: Array, method: Options, backend: Backend, level: int, report: bool, shape: tuple[int, ...], out: Array | None
) -> Outcome:
    """`_by_steps` of some traces or panels after the other: coefficients, and copies of them, take much memory."""
    out = None if out is None else out.reshape(x.shape)
    least = LIGHT_BLOCK if _light(method) else BLOCK
    blocks = min(len(x), x.nbytes // least, BLOCKS)
    if blocks < 2 or method.scope == "record" or on_device(backend):
        return _by_steps(x, method, backend, level, report, shape, out)
    y = backend.result(x.shape, x.dtype) if out is None else out
    edges = np.linspace(0, len(x), blocks + 1).astype(np.intp).tolist()
    estimates = []
    for first, last in pairwise(edges):
        own, rows = y[first:last], x[first:last]
        try:
            done = _by_steps(rows, method, backend, level, report, rows.shape, own)
        except ValueError:  # which names a trace by its number among these
            _by_steps(x, method, backend, level, report, shape, None)
            raise
        if done.samples is not own:
            own[:] = done.samples
        estimates.append((first, done.estimates))
    return Outcome(y.reshape(shape), method, backend.name, level, joined(estimates))


def _light(method: Options) -> bool:
    """Whether the coefficients, about as many as samples, are all that it needs memory for."""
    own = method.rule
    together = own.together or own.blocks or own.prior
    return method.transform in (DWT, DWT2) and method.plain and method.trend is None and not together


def _by_steps(
    x: Array, method: Options, backend: Backend, level: int, report: bool, shape: tuple[int, ...], out: Array | None
) -> Outcome:
    """`run` one step of denoising after the other, segment by segment."""
    given, begun = x, list[Pyramid]()
    if level and x.size and method.trend is None:
        peak, pyramid = backend.peak_and_pyramid(x, method.analysis(level), method.wanted(level))
        begun += [pyramid] if pyramid else []
    else:
        peak = backend.peak(x)
    finite = not x.size or math.isfinite(peak)
    live = gaps.live_samples(x, finite) if method.dimensions == 2 and x.size else None
    found = gaps.whole(x) if finite or live is not None else gaps.segments(x)
    check_size(x, peak, level, method)
    if live is not None:
        x, found = gaps.filled(x, live)
        begun.clear()
    batches = [(part, min(level, method.deepest(*part.shape))) for part in found]
    batches = [(part, depth) for part, depth in batches if depth > 0]
    groups = [[batch] for batch in batches] if method.scope == "trace" else [batches]
    y: Array | None = None
    estimates = []
    noise = window_noise(x, batches, method, level, backend) if method.window and batches else None
    for group in filter(None, groups):
        for rows, estimate in denoised(x, group, method, backend, noise, report, begun, out):
            y = _placed(rows, estimate, x, y)
            estimates.append(estimate)
    done = x.copy() if y is None else method.blended(x, y)
    if live is not None:
        done = np.where(live, done, given)
    return Outcome(done if done.shape == shape else done.reshape(shape), method, backend.name, level, estimates)


def _placed(rows: Array, estimate: Estimate, x: Array, y: Array | None) -> Array:
    """The output with these denoised rows in it: they are all of it, or a segment beside others.

    Traces whose thresholds are all 0 stay bit for bit as they were.
    """
    part, unchanged = estimate.segments, estimate.unchanged
    if unchanged.any():
        rows[unchanged] = part.of(x)[unchanged]
    if rows.shape == x.shape:
        return rows
    y = x.copy() if y is None else y
    y[part.places] = rows
    return y


def check_size(x: Array, peak: float, level: int, method: Options) -> None:
    """Raise ValueError where the coefficients of samples of this size could overflow."""
    if math.isnan(peak):
        peak = float(np.nanmax(np.abs(x), initial=0))
    if peak > np.finfo(x.dtype).max / method.transform.growth(method.filters, level):
        raise ValueError(f"samples of {peak:.3g} overflow {x.dtype} in the transform; scale them down first")
