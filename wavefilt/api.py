"""The public function `denoise`: from an array of any kind to rows, to the engine, and back."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any, Literal

import numpy as np

from wavefilt import arrays, engine
from wavefilt.arrays import Array, Floats
from wavefilt.backends import registry
from wavefilt.backends.interface import Backend, DeviceBackend, accelerates
from wavefilt.engine import Outcome
from wavefilt.options import NoiseForm, Options
from wavefilt.statics import denoise_without
from wavefilt.thresholding.rules import RULES, Rule
from wavefilt.transforms import TRANSFORMS, Transform
from wavefilt.vocabulary import Basis, Detrend, Estimator, Mode, Scope, Shrink
from wavefilt.vocabulary import Rule as RuleName
from wavefilt.vocabulary import Transform as TransformName
from wavefilt.wavelets.filters import WaveletLike


def denoise(
    x: Any,
    wavelet: WaveletLike | None = None,
    *,
    level: int | None = None,
    mode: Mode = "symmetric",
    rule: Rule | RuleName | Callable[..., Floats] | float | Sequence[float] | None = None,
    shrink: Shrink | Estimator | Callable[[Array, Array], Array] | None = None,
    sigma: NoiseForm | None = "level",
    scope: Scope = "trace",
    keep: int = 0,
    transform: Transform | TransformName = "dwt",
    spins: int = 1,
    detrend: Detrend | None = None,
    blend: float = 0.0,
    basis: Basis | None = None,
    statics: bool = False,
    axis: int = -1,
    axes: tuple[int, int] | None = None,
    backend: str | Backend = "auto",
    devices: Literal["all"] | Sequence[int] | None = None,
    return_residual: bool = False,
    wait: bool = True,
    out: arrays.Array | None = None,
) -> Any:
    """Denoise traces by thresholding their wavelet detail coefficients; the approximation coefficients are unchanged.

    Rule "js" shrinks the approximation coefficients of traces as well.

    Parameters
    ----------
    x : array_like, shape (..., samples, ...)
        Samples along ``axis``; all other axes are a batch of traces. Never modified. float16 and integers of up to 16
        bits are computed in float32, wider integers in float64. NaN, masked samples and long runs of equal samples
        (mutes, clipping) are gaps. A run is long from a 16th of the trace on; this limit is at least 32 and at most 128
        samples. Gaps are returned unchanged, and the segments between them are denoised separately; for sections see
        ``axes``. Arrays on a GPU (CuPy, PyTorch, Numba, anything with ``__cuda_array_interface__`` or DLPack) are
        denoised there. A pandas Series or DataFrame is denoised along its index, which must be evenly spaced; each
        column is a trace.
    wavelet : str, pywt.Wavelet or object with four filters, optional
        By default that of the transform: ``"db8"``, the Daubechies wavelet with 8 vanishing moments, 16 taps; for
        "dtcwt" ``"near_sym_b,qshift_b"``, Kingsbury's filters of the first level and of all others; for "fk" with rule
        "js" windows of several sizes, ``"mixed"``, else ``"sine32x64"``.
    level : int, optional
        Number of levels; by default 5 (6 with the rules "js" and "bivariate"), or the maximum for this length and
        filter if that is smaller. A segment between gaps uses at most its own maximum; a segment shorter than the
        filter is returned unchanged.
    mode : str
        One of the nine boundary modes of PyWavelets, or a registered one.
    rule : str, Rule, callable, float, or one float per level
        Threshold rule (`wavefilt.thresholding.rules`): "universal", "minimax", "sure", "hybrid", "bayes", "fdr",
        "blockjs", "neighblock", "js", "bivariate", "ebayes" or "ebayes-cauchy"; by default that of the transform,
        "bayes", or "js" for "dtcwt" and "fk". A `wavefilt.extending.Rule`, or a function of statistics, noise and
        number of samples, computes other thresholds. Numbers are thresholds in the units of ``x``, coarsest level first
        like the details of `wavedec`. For complex coefficients ("dtcwt", "fk"), magnitudes are shrunk and phases are
        kept; "minimax", block rules and empirical Bayes do not support them.
    shrink : {"soft", "hard", "garrote", "firm", "median", "mean"} or callable, optional
        Threshold function, or a function of coefficients and thresholds; by default the one that the rule is derived
        for. Hard keeps |d| = threshold, as PyWavelets does; WaveLab removes it, which differs by one coefficient per
        level with ``rule="sure"``, whose threshold is one of the |d|. Firm keeps |d| above twice the threshold. The
        posterior median and mean are for the rules "ebayes" and "ebayes-cauchy" (default: the median). Block rules,
        "js" and "bivariate" have no other threshold function.
    sigma : {"level", "global"}, float, or tuple
        Standard deviation of the noise: estimated from the median absolute detail coefficient of each level, or from
        that of the finest level for all levels; a number in the units of ``x``; or one of these, in samples:

        * ``("window", start, stop)``: estimated per level from these samples, which contain only noise. Levels too
          coarse for the window use the estimate of the coarsest level that fits, scaled for white noise; with rule
          "js" the median of their own coefficients. ``("before", pick, length)`` is the window that ends at ``pick``.
        * ``("running", length)``: noise that changes along a trace, from medians of each level in a window of this
          length that moves by half of it (`wavefilt.noise_curves`). It should be much longer than the signals, so that
          they fill less than half of it.
        * ``("intervals", points)``: noise that changes at these samples, estimated per level and interval.

        With the last two, coefficients are divided by the noise around them before the rule is applied, and multiplied
        by it afterwards: the threshold of the rule is scaled by the local noise over its mean. All rules except numbers
        support this, on the CPU, whatever the backend. With ``scope="record"`` every trace has its own noise.
    scope : {"trace", "record"}
        Whether thresholds are computed per trace, or from the coefficients of all traces together. Dead traces, all
        of whose samples outside gaps are equal, are then left out.
    keep : int
        Number of coarsest levels whose detail coefficients are unchanged; with rule "js" and one level or more, the
        approximation coefficients too.
    transform : {"dwt", "modwt", "dtcwt", "fk", "wp"} or Transform
        The decimated transform, or the maximal overlap transform ("modwt"), whose result does not depend on where a
        trace starts: it has one coefficient per sample and level, and needs (level + 1) times the memory and several
        times the run time. Numeric ``rule`` and ``sigma`` refer to the decimated transform; at level j they are divided
        by 2^(j/2).
        "dtcwt", the dual-tree complex transform, has coefficients whose magnitudes hardly depend on the position of
        events. It has two numbers per sample; with ``axes`` four, and six bands per level, one for each direction.
        "fk", only for ``axes``, shrinks Fourier transforms of overlapping windows, whose size is the ``wavelet``
        ("sine32x64": 32 traces by 64 samples). Each temporal frequency has its own noise. The default rule is "js".
        "wp", wavelet packets, chooses the best ``basis`` for each trace, or for all traces with ``scope="record"``, for
        chirps and tones: see `docs/transforms.md`. An object is a transform of your own (`wavefilt.extending`).
    spins : int
        With the decimated transform, the number of shifts to average over (cycle spinning), at most 2^level, or 4^level
        for sections. They are spread evenly over 2^level samples along every axis, after which the transform repeats
        (`Options.shifts`).
    detrend : {"mean", "line"}, optional
        Trend that is removed from every trace (or segment between gaps) before the transform and added again
        afterwards: the mean, or the least-squares line. By default the mean with rule "js", which also shrinks the
        approximation coefficients of traces, and nothing with other rules.
    blend : float
        Share of the residual that is added to the result, from 0 to below 1: the result is y + ``blend`` (x - y).
        Pickers that compare variances need some noise before the onset.
    basis : {"risk", "entropy", "full"}, optional
        With "wp", the basis of least risk (the default), of least entropy, or all packets of the deepest level.
    statics : bool
        With ``axes``, remove the residual shifts and amplitudes of the traces (`wavefilt.statics.find`) before
        denoising, with any transform, and restore them afterwards.
    axis : int
        Time axis.
    axes : pair of int, optional
        Transform both axes together instead of ``axis``, such as ``(-2, -1)`` for sections and images; all other axes
        are a batch. Each level then has three bands, with "dtcwt" six, with their own noise and threshold;
        ``sigma="global"`` uses the finest diagonal band of the DWT. ``scope="trace"`` refers to single sections,
        ``"record"`` to the batch. The number of levels is limited by the shorter axis (if that leaves none, a shorter
        wavelet is used, with a warning). The second axis is along the traces. Gaps and dead traces (all samples equal)
        are interpolated for the transform, left out of noise and thresholds, and returned as they are. ``detrend``,
        noise that changes, and block rules are not supported.
    backend : str or Backend
        ``"auto"``, a name of `wavefilt.backends.names`, or an object of `wavefilt.backends.get`.
    devices : "all" or sequence of int, optional
        With backend "cuda", the GPUs of this host to use; by default the current one.
    return_residual : bool
        Also return the residual: the pair (denoised, ``x`` - denoised).
    wait : bool
        With False, an array on a GPU is returned as soon as its computation is enqueued on the current stream of its
        library; later work on this stream can use it. Gaps, runs of equal samples, and dead traces of records and
        sections are then not handled: the result of an array with these, or with infinite samples, is invalid, and
        ``wavefilt.backends.get("cuda").check()`` waits and raises ValueError if there was such an array. Rules whose
        thresholds are computed on the host, ``spins``, ``blend``, noise windows, ``return_residual`` and arrays in host
        memory always wait.
    out : array, optional
        Array for the result, with its shape and dtype: from the library of ``x`` if that is on a GPU, else a plain
        NumPy array. It is returned, may be ``x`` itself, and has no defined values after an error. With backend "cuda",
        a C-contiguous array other than ``x`` saves the memory of a result.

    Returns
    -------
    ndarray
        Shape and floating dtype of ``x`` (a MaskedArray for masked input, an array of the same library on a GPU,
        a Series or DataFrame for pandas); for integers, the dtype of computation. Contiguous along ``axis``. A dead
        trace (or segment between gaps), all of whose samples are equal, and a trace whose thresholds are all 0 are
        bit-identical to the input.

    Raises
    ------
    ValueError
        For an unknown wavelet, mode, rule, threshold function or backend, a level above the maximum for the length,
        an infinite sample (named by trace and sample), samples so large that the transform or their squares
        overflow, no samples, an axis out of range, an index of pandas that is not evenly spaced, or an ``out`` that is
        read-only or has another shape or dtype than the result.
    TypeError
        For samples that are not numbers, complex samples on a GPU, a path, or an object of another library (ObsPy,
        xarray, DASCore, Dask), with the function that denoises it; for an ``out`` of another kind than the result, or
        given with pandas or masked samples.
    BackendUnavailable
        If the requested backend cannot run here.

    Notes
    -----
    Wavelet thresholding follows Donoho and Johnstone (1994), with noise estimates from the median absolute detail
    coefficient; BayesShrink follows Chang, Yu and Vetterli (2000). For every data-driven rule, scaling the input
    scales the output, as long as float64 can represent the squares of the coefficients (1e-150 to 1e150).

    Examples
    --------
    24 traces of a decaying oscillation in noise, time along the last axis:

    >>> import numpy as np
    >>> import wavefilt
    >>> t = np.arange(2000) / 1000
    >>> clean = np.exp(-3 * t) * np.sin(2 * np.pi * 12 * t)
    >>> traces = clean + 0.3 * np.random.default_rng(0).standard_normal((24, 2000))
    >>> denoised = wavefilt.denoise(traces)
    >>> denoised.shape
    (24, 2000)
    >>> bool(wavefilt.quality.snr(clean, denoised).mean() > wavefilt.quality.snr(clean, traces).mean() + 8)
    True

    The residual, to inspect for coherent arrivals, with options for weak signals:

    >>> denoised, residual = wavefilt.denoise(traces, "sym8", level=4, rule="sure", return_residual=True)
    >>> np.allclose(denoised + residual, traces)
    True

    Time along the first axis; the noise of the last 100 samples; a section in two dimensions:

    >>> wavefilt.denoise(traces.T, axis=0).shape
    (2000, 24)
    >>> wavefilt.denoise(traces, sigma=("window", 1900, 2000), level=2).shape
    (24, 2000)
    >>> wavefilt.denoise(traces, "db4", axes=(-2, -1)).shape
    (24, 2000)
    """
    if devices is not None:
        if backend != "cuda":
            raise ValueError(f"`devices={devices!r}` are GPUs and need `backend='cuda'`")
        backend = registry.get("cuda", devices=devices)
    if axes is not None and axis != -1:
        raise ValueError(f"`axis={axis}` and `axes={axes}` both name what to transform: give one")
    ndim: Literal[1, 2] = 1 if axes is None else 2
    named = (wavelet, level, mode, rule, shrink, sigma, scope, keep, transform)
    given = (*named, spins, ndim, detrend, blend, basis, statics)
    if PLAIN.issuperset(map(type, given)):
        meant = RULES.get(rule), *map(id, TRANSFORMS.values())  # type: ignore[arg-type]  # names can be registered again
        options = _options(meant, *given)  # type: ignore[arg-type]
    else:
        options = Options(*given)
    if axes is not None and (np.ndim(axes) != 1 or len(axes) != 2):
        raise ValueError(f"`axes={axes!r}` must be a pair of axes")
    along = (axis,) if axes is None else tuple(axes)
    if arrays.on_gpu(x):
        return _on_gpu(x, options, along, backend, return_residual, wait, out)
    if isinstance(x, list | tuple) and any(map(arrays.on_gpu, x)):
        raise TypeError("x is a list of arrays on GPUs: denoise each of them, with `wait=False` at the same time")
    if arrays.kind_of(x) in ("pandas.DataFrame", "pandas.Series"):
        taken: Any = arrays.take_pandas(x, axis, axes)
    else:
        if type(x) is not np.ndarray:
            arrays.refuse_kinds(x[0] if isinstance(x, list | tuple) and len(x) else x, arrays.INSTEAD)
        taken = arrays.take(x, *along)
    into = None if out is None else taken.rows_of(out)
    outcome = run(taken.rows, options, backend, out=into)
    used = outcome.options.filters.name
    if ndim == 2 and options.level is None and taken.rows.size and (used != options.filters.name or not outcome.level):
        few = f"are too few for one level of {options.filters.name} in two dimensions"
        instead = f"{used} is used" if outcome.level else "the section is unchanged"
        warnings.warn(f"{min(taken.rows.shape[1:])} samples along an axis {few}; {instead}", stacklevel=2)
    y = taken.restore(outcome.samples)
    residual = taken.restore(taken.rows - outcome.samples) if return_residual else None
    if out is not None:
        if not np.may_share_memory(out, y):
            out[...] = y
        y = out
    return (y, residual) if return_residual else y


PLAIN = frozenset((str, int, float, bool, type(None)))
"""Types of options that cannot change, so that checked options can be cached by their values."""


@lru_cache(maxsize=256, typed=True)  # True equals 1, but is not a number of levels
def _options(meant: object, *given: Any) -> Options:
    """Return the options; ``meant`` holds the objects that names stand for."""
    return Options(*given)


def run(
    x: arrays.Array,
    options: Options,
    backend: str | Backend = "auto",
    report: bool = False,
    out: arrays.Array | None = None,
) -> Outcome:
    """Denoise samples in host memory, in a dtype of computation, with the backend chosen for them.

    The shape of ``x`` is (traces, samples), with options for sections (sections, rows, columns) or (rows, columns).
    ``report`` and ``out`` are as in `wavefilt.engine.denoise`.
    """
    rows = x if x.ndim > options.ndim else x[None]
    shape = rows.shape
    options = options.fitting(*shape[1:])
    if options.statics and x.size:
        outcome = denoise_without(rows, options, lambda own, others: run(own, others, backend, report))
        return replace(outcome, samples=outcome.samples.reshape(x.shape))
    level = options.level_for(*shape[1:])
    analysis = options.analysis(level)
    chosen = registry.choose(backend, arrays.dtype_name(x.dtype), shape, analysis, True, options.host_only)
    y, found = engine.denoise(rows, options, chosen, level, report, None if out is None else out.reshape(shape))
    return Outcome(y if y.shape == x.shape else y.reshape(x.shape), options, chosen.name, level, found)


def run_with_noise(
    rows: Array, options: Options, sigmas: Sequence[NoiseForm], backend: str | Backend, report: bool = False
) -> Outcome:
    """Denoise rows, each with its own option ``sigma``; if ``sigmas`` is empty, with the ``sigma`` of the options.

    Rows with the same noise are denoised together. The outcome has the options of the first row.
    """
    groups = [(options.with_noise(sigma), own) for sigma, own in arrays.places(sigmas or [options.sigma]).items()]
    if len(groups) == 1:
        return run(rows, groups[0][0], backend, report)
    outcomes = [(own, run(rows[own], chosen, backend, report)) for chosen, own in groups]
    samples, estimates = np.empty(rows.shape, outcomes[0][1].samples.dtype), []
    for own, outcome in outcomes:
        samples[own] = outcome.samples
        for estimate in outcome.estimates:
            segments = replace(estimate.segments, rows=np.array(own)[estimate.segments.rows])
            estimates.append(replace(estimate, segments=segments))
    return replace(outcomes[0][1], samples=samples, found=estimates)


def _on_gpu(
    x: Any,
    options: Options,
    axes: tuple[int, ...],
    backend: str | Backend,
    return_residual: bool,
    wait: bool,
    out: arrays.Array | None,
) -> Any:
    """Denoise an array on a GPU, along one axis or two; the result is an array of its library on the same GPU."""
    home = registry.home(x)
    assert home is not None
    name = backend if isinstance(backend, str) else backend.name
    if name not in ("auto", home.name):
        raise TypeError(f"{type(x).__name__} lives on a GPU: copy it to the host for `backend={name!r}`")
    chosen: Any = home if isinstance(backend, str) else backend
    y = None if return_residual or out is not None else chosen.at_once(x, options, axes, wait)
    if y is not None:
        return y
    taken = chosen.take(x, *axes)
    into = None if out is None else taken.rows_of(out)
    rows = _rows_on_gpu(taken.rows, options, chosen, wait, into)
    y, residual = taken.restore(rows), None
    if return_residual:
        residual = taken.restore(chosen.to_device(chosen.to_host(taken.rows) - chosen.to_host(rows), taken.rows))
    if out is not None:
        if rows is not into:
            out[:] = y
        y = out
    return (y, residual) if return_residual else y


def _rows_on_gpu(
    x: Any, options: Options, backend: DeviceBackend, wait: bool = True, out: arrays.Array | None = None
) -> Any:
    """Denoise a batch on its GPU, into ``out`` if the device does all steps.

    Batches with gaps, records with dead traces, and options that the device does not support go through the host.
    """
    level = options.level_for(*x.shape[1:])
    whole = options.plain and not options.blend and not options.host_only and level and len(x)
    if whole and accelerates(backend, arrays.dtype_name(x.dtype), options.analysis(level)):
        done = backend.denoise(x, options, level, False, out, wait=wait)
        if done is not None:
            return done[0]
    return backend.to_device(run(backend.to_host(x), options, backend).samples, x)
