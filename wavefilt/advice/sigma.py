"""`wavefilt.estimate_sigma`: the noise that `wavefilt.denoise` finds, in the units of the samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Unpack

import numpy as np

from wavefilt.arrays import Array, Floats
from wavefilt.backends import Backend
from wavefilt.denoising.options import Options, check_names
from wavefilt.denoising.pipeline import run
from wavefilt.method import Method
from wavefilt.vocabulary import Noise
from wavefilt.wavelets.filters import WaveletLike

from .intake import take


def estimate_sigma(
    x: Any,
    wavelet: WaveletLike | None = None,
    *,
    by_band: bool = False,
    axis: int = -1,
    axes: tuple[int, int] | None = None,
    backend: str | Backend = "auto",
    **options: Unpack[Options],
) -> Floats:
    """Standard deviation of the noise of each trace: of the finest details, or of all bands, as `denoise` estimates it.

    Parameters
    ----------
    x : array_like, pandas, xarray or DASCore object, ObsPy Stream or Trace, Recording
        As `wavefilt.compare` takes it; never modified. NaN and masked samples are gaps: a trace has the root mean
        square of what its segments have, by their samples.
    wavelet, axis, axes, backend, **options
        Those of `wavefilt.denoise`. ``sigma`` says where the noise is measured: "level" and "global" by the median
        absolute detail over 0.6745, a window by the details in it, with rule "js" by their mean square.
    by_band : bool
        Noise of all bands of the method, to its ``level``, instead of that of the finest one.

    Returns
    -------
    ndarray of float64
        One number for each trace (or panel, with ``axes``), shape that of ``x`` without the axes; with ``by_band``
        those of each band along a new first axis, finest first, with rule "js" the approximation's as the last. In
        the units of ``x``: of white noise all bands have the standard deviation of its samples, whatever the
        transform. 0 for a dead trace, NaN for one that is too short for the transform or has no samples.

    Raises
    ------
    ValueError, TypeError
        As `wavefilt.denoise`, and TypeError for complex samples.

    Examples
    --------
    >>> import numpy as np
    >>> import wavefilt
    >>> x = np.random.default_rng(0).standard_normal((3, 4096)) * [[1], [2], [5]]
    >>> wavefilt.estimate_sigma(x).round()
    array([1., 2., 5.])
    >>> wavefilt.estimate_sigma(x, by_band=True).shape
    (5, 3)
    """
    check_names(options, backend, "by_band", "axis", "axes")
    taken = take(x, options.get("sigma", "level"), axis, axes)
    plain: Options = {**options, "sigma": "level"}
    method = Method(wavelet, **plain, dimensions=1 if taken.dimensions == 1 else 2)
    shape = taken.shape[: len(taken.shape) - (taken.dimensions - 1)]
    return of_rows(taken.rows, taken.sigmas, method, backend, by_band).reshape(-1, *shape)[
        slice(None) if by_band else 0
    ]


def of_rows(
    rows: Array, sigmas: Sequence[Noise], method: Method, backend: str | Backend, by_band: bool = False
) -> Floats:
    """The noise (bands, rows) of traces or panels by a method, with these options ``sigma`` in its place."""
    found: list[Floats] = []
    for sigma in dict.fromkeys(sigmas):
        own = np.array([each == sigma for each in sigmas])
        found.append(_of_alike(rows[own], replace(method, sigma=sigma), backend))
    bands = max(map(len, found), default=0) if by_band else 1
    noise = np.full((bands, len(rows)), np.nan)
    for sigma, numbers in zip(dict.fromkeys(sigmas), found, strict=True):
        own = np.array([each == sigma for each in sigmas])
        noise[: len(numbers), own] = numbers[:bands]
    return noise


def _of_alike(rows: Array, method: Method, backend: str | Backend) -> Floats:
    """Of rows whose noise is at the same samples."""
    outcome = run(rows, method, backend, report=True)
    level = outcome.level
    bands = len(method.bands(level))
    total, count = np.zeros((bands, len(rows))), np.zeros((bands, len(rows)))
    for estimate in outcome.estimates:
        own = (
            estimate.sigma
            if estimate.approximation is None
            else np.concatenate([estimate.sigma, estimate.approximation[:1]])
        )
        own = own / method.noise_gains(len(own))
        part = estimate.segments
        places = np.arange(len(own)) if len(own) == bands else np.arange(len(estimate.sigma))
        np.add.at(total, (places[:, None], part.rows), np.square(own[: len(places)]) * part.samples)
        np.add.at(count, (places[:, None], part.rows), part.samples)
    return np.asarray(np.sqrt(np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)))
