"""The public function `denoise`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from wavefilt import arrays
from wavefilt.backends import registry
from wavefilt.backends.interface import Backend
from wavefilt.denoising import device_arrays
from wavefilt.denoising.pipeline import run
from wavefilt.method import Method
from wavefilt.vocabulary import Estimator, Mode, Rule, Scope, Shrink, Sigma, Transform, Window
from wavefilt.wavelets.filters import WaveletLike


def denoise(
    x: Any,
    wavelet: WaveletLike = "db8",
    *,
    level: int | None = None,
    mode: Mode = "symmetric",
    rule: Rule | float | Sequence[float] = "bayes",
    shrink: Shrink | Estimator | None = None,
    sigma: Sigma | float | Window = "level",
    scope: Scope = "trace",
    keep: int = 0,
    transform: Transform = "dwt",
    spins: int = 1,
    axis: int = -1,
    axes: tuple[int, int] | None = None,
    backend: str | Backend = "auto",
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
        backend = registry.get("cuda", devices=devices)
    if axes is not None and axis != -1:
        raise ValueError(f"axis={axis} and axes={axes} both name what is transformed: give one")
    dimensions: Literal[1, 2] = 1 if axes is None else 2
    method = Method(wavelet, level, mode, rule, shrink, sigma, scope, keep, transform, spins, dimensions)
    if axes is not None and (np.ndim(axes) != 1 or len(axes) != 2):
        raise ValueError(f"axes={axes!r} must be a pair of axes")
    along = (axis,) if axes is None else tuple(axes)
    if arrays.on_gpu(x):
        return device_arrays.denoise(x, method, along, backend, return_noise)
    if isinstance(x, (list, tuple)) and any(map(arrays.on_gpu, x)):
        if dimensions == 2:
            raise ValueError("a list of arrays on GPUs is not denoised in two dimensions; denoise one after the other")
        if all(map(arrays.on_gpu, x)):
            return device_arrays.denoise_each(x, method, axis, backend, return_noise)
    taken = arrays.take(x, *along)
    samples = run(taken.rows, method, backend).samples
    y = taken.restore(samples)
    return (y, taken.restore(taken.rows - samples)) if return_noise else y
