"""Denoising: decompose, estimate the noise, choose thresholds, shrink, reconstruct."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from wavefilt import arrays, backends
from wavefilt.denoising.estimation import Estimate, denoised, window_noise
from wavefilt.method import Method
from wavefilt.vocabulary import Estimator, Mode, Scope, Shrink, Sigma, Transform, Window
from wavefilt.vocabulary import Rule as RuleName
from wavefilt.wavelets.filters import WaveletLike, detail_lengths, gain

from . import gaps


@dataclass(frozen=True)
class Outcome:
    """Denoised samples, and how: the method, the backend that ran, the levels used and an estimate a batch."""

    samples: NDArray[Any]
    method: Method
    backend: str
    level: int
    estimates: list[Estimate]


def denoise(
    x: Any,
    wavelet: WaveletLike = "db8",
    *,
    level: int | None = None,
    mode: Mode = "symmetric",
    rule: RuleName | float | Sequence[float] = "bayes",
    shrink: Shrink | Estimator | None = None,
    sigma: Sigma | float | Window = "level",
    scope: Scope = "trace",
    keep: int = 0,
    transform: Transform = "dwt",
    spins: int = 1,
    axis: int = -1,
    axes: tuple[int, int] | None = None,
    backend: str | backends.Backend = "auto",
    devices: Literal["all"] | Sequence[int] | None = None,
    return_noise: bool = False,
) -> Any:
    """Remove noise by shrinking the wavelet details of every trace; the approximation is left as it is.

    Parameters
    ----------
    x : array_like, shape (..., samples, ...)
        Samples along ``axis``, everything else a batch of traces; never modified. float16 and integers of up to
        16 bits are computed in float32, wider integers in float64. NaN and masked samples are gaps: the pieces
        between them are denoised one by one and the gaps put back. An array on a GPU (CuPy, torch, numba, anything
        with ``__cuda_array_interface__`` or DLPack) is denoised there.
    wavelet : str, pywt.Wavelet or object with four filters
        ``"db8"`` is Daubechies with 8 vanishing moments, 16 taps.
    level : int, optional
        Number of levels; by default min(5, the maximum for this length and filter). A piece between gaps uses
        at most its own maximum; a piece shorter than the filter has none and is returned unchanged.
    mode : str
        Boundary mode, one of PyWavelets' nine.
    rule : str, float, or one float a level
        How thresholds are chosen (`wavefilt.thresholding.rules`): "universal", "minimax", "sure", "hybrid", "bayes",
        "fdr", "blockjs", "neighblock", "ebayes" or "ebayes-cauchy". Numbers are thresholds in the units of ``x``,
        coarsest level first as `wavedec` orders the details.
    shrink : {"soft", "hard", "garrote", "firm", "median", "mean"}, optional
        Threshold function; by default the one the rule is derived for. Firm leaves |d| above twice the threshold.
        The posterior median (the default there) and mean are for the rules with a posterior, "ebayes" and
        "ebayes-cauchy"; the rules of blocks shrink their own way.
    sigma : {"level", "global"}, float, or ("window", start, stop)
        Standard deviation of the noise: from the median absolute detail of each level, of the finest level for
        all, given in the units of ``x``, or from each level of samples ``start`` to ``stop`` alone, which hold noise
        only; levels too coarse for the window have that of its coarsest, as white noise has it.
    scope : {"trace", "record"}
        Whether every trace has thresholds of its own or all share those of their pooled details.
    keep : int
        Number of the coarsest levels whose details stay as they are.
    transform : {"dwt", "modwt"}
        The decimated transform, or the maximal-overlap one, whose result does not depend on where the samples begin:
        a coefficient for each sample at each level, so (level + 1) times the memory and several times the time.
        Numbers as ``rule`` or ``sigma`` are those of the decimated transform; at level j its details are divided
        by 2^(j/2).
    spins : int
        With the decimated transform the mean over so many shifts of the samples, from 0 (cycle spinning).
    axis : int
        Axis of the samples.
    axes : pair of int, optional
        Instead of ``axis``: both are transformed together, as ``(-2, -1)`` of sections, gathers and images, and
        everything else is a batch. A level then has three bands of details, each with its noise and threshold;
        ``sigma="global"`` is the noise of the finest diagonal band. Scope "trace" is each section on its own,
        "record" the batch. Levels are limited by the shorter axis. Sections have no gaps, and neither
        ``transform="modwt"`` nor spins, windows and rules of blocks, and are no list of arrays on GPUs.
    backend : str or Backend
        ``"auto"``, a name of `wavefilt.backends.names`, or what `wavefilt.backends.get` returned.
    devices : "all" or sequence of int, optional
        With backend "cuda", the GPUs of this host that share the traces; by default the current one works alone.
    return_noise : bool
        Return what was removed as well: the pair (denoised, ``x`` - denoised).

    Returns
    -------
    ndarray
        (or MaskedArray, or the caller's own kind of array on a GPU) of the shape and floating dtype of ``x``; integers
        give the dtype of computation. Its memory is contiguous along ``axis``.
        A trace whose thresholds are all 0 (a dead trace, a single sample, threshold 0) is returned bit for bit; a
        constant trace comes back constant to rounding, but for the ends with ``mode="zero"`` and ``"antisymmetric"``,
        which extend it by a jump.

    Raises
    ------
    ValueError
        For an unknown wavelet, mode, rule, function or backend, a level above the maximum for the length, an
        infinite sample (named by trace and sample), samples so large that the transform or their squares overflow,
        no samples, or an axis out of range.
    TypeError
        For samples that are not numbers, or an array on a GPU.
    BackendUnavailable
        If the backend asked for cannot run here.

    Notes
    -----
    Wavelet shrinkage after Donoho and Johnstone (1994); noise from the median absolute detail; BayesShrink after
    Chang, Yu and Vetterli (2000). Scaling the input scales the output for every data-driven rule, as long as
    float64 holds the squares of the details (1e-150 to 1e150).
    """
    if devices is not None:
        if backend != "cuda":
            raise ValueError(f"devices={devices!r} are GPUs and need backend='cuda'")
        backend = backends.get("cuda", devices=devices)
    if axes is not None:
        from . import panels

        if axis != -1:
            raise ValueError(f"axis={axis} and axes={axes} both name what is transformed: give one")
        of_sections = panels.SectionMethod(wavelet, level, mode, rule, shrink, sigma, scope, keep, transform, spins)
        return panels.denoise(x, of_sections, axes, backend, return_noise)
    method = Method(wavelet, level, mode, rule, shrink, sigma, scope, keep, transform, spins)
    on_gpus = backends.on_gpu(x), isinstance(x, (list, tuple)) and len(x) > 0 and all(map(backends.on_gpu, x))
    if any(on_gpus):
        from . import device_arrays

        if on_gpus[0]:
            return device_arrays.denoise(x, method, (axis,), backend, return_noise)
        return device_arrays.denoise_each(x, method, axis, backend, return_noise)
    traces = arrays.take(x, axis)
    samples = run(traces.rows, method, backend).samples
    y = traces.restore(samples)
    return (y, traces.restore(traces.rows - samples)) if return_noise else y


def run(
    traces: NDArray[Any], method: Method, backend: str | backends.Backend = "auto", report: bool = False
) -> Outcome:
    """Denoise the rows of ``traces`` (traces, samples), of a dtype of computation, and tell how it was done.

    With a `sections.SectionMethod` they are one section, denoised in two dimensions.
    ``report`` has the power of the details measured as well, which costs a pass for rules that do not need it.
    Without it a backend that denoises on a device gives no estimates.
    """
    if method.bands > 1:
        from . import panels

        section = panels.run(traces[None], method, backend, report)
        return replace(section, samples=section.samples[0])
    dtype = arrays.dtype_name(traces.dtype)
    level = method.level_for(traces.shape[-1])
    modwt = level if method.transform == "modwt" else 0
    chosen = backends.choose(backend, dtype, traces.shape, method.bank.dec_len, denoising=True, modwt=modwt)
    if level and traces.size and hasattr(chosen, "denoise") and method.plain:
        done = chosen.denoise(traces, method, level, report)
        if done is not None:
            return Outcome(done[0], method, chosen.name, level, _reported(traces, method, level, done[1]))
    peak = chosen.peak(traces)
    found = gaps.pieces(traces) if traces.size and not math.isfinite(peak) else gaps.whole(traces)
    check_size(traces, peak, level, method)
    batches = [(piece, min(level, method.deepest(piece.samples))) for piece in found]
    batches = [(piece, depth) for piece, depth in batches if depth > 0]
    groups = [[batch] for batch in batches] if method.scope == "trace" else [batches]
    y: NDArray[Any] | None = None
    estimates = []
    noise = window_noise(traces, method, level, chosen) if method.window and batches else None
    for group in filter(None, groups):
        for rows, estimate in denoised(traces, group, method, chosen, noise, report):
            y = _placed(rows, estimate, traces, y)
            estimates.append(estimate)
    return Outcome(traces.copy() if y is None else y, method, chosen.name, level, estimates)


def _reported(traces: NDArray[Any], method: Method, level: int, measured: backends.Measured | None) -> list[Estimate]:
    """The estimate of a whole batch from what a device measured; none if nothing was asked for."""
    if measured is None:
        return []
    (piece,) = gaps.whole(traces)
    counts = np.array(detail_lengths(piece.samples, method.bank.dec_len, method.mode, level))
    return [Estimate(piece, measured.sigma, measured.thresholds, measured.power, counts)]


def _placed(rows: NDArray[Any], estimate: Estimate, traces: NDArray[Any], y: NDArray[Any] | None) -> NDArray[Any]:
    """The output with these denoised rows in it: they are all of it, or a piece beside others.

    Traces whose thresholds are all 0 stay bit for bit as they were.
    """
    piece = estimate.piece
    if not estimate.thresholds.all():
        unchanged = ~estimate.thresholds.any(axis=0)
        rows[unchanged] = piece.of(traces)[unchanged]
    if rows.shape == traces.shape:
        return rows
    y = traces.copy() if y is None else y
    y[piece.places] = rows
    return y


def check_size(traces: NDArray[Any], peak: float, level: int, method: Method) -> None:
    """Raise ValueError where the coefficients of samples of this size could overflow."""
    if math.isnan(peak):
        peak = float(np.nanmax(np.abs(traces), initial=0))
    growth = gain(method.bank) ** (level + 1)
    if peak > np.finfo(traces.dtype).max / growth:
        raise ValueError(f"samples of {peak:.3g} overflow {traces.dtype} in the transform; scale them down first")
