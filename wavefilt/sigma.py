"""`wavefilt.estimate_sigma`: the noise that `denoise` uses."""

from __future__ import annotations

from typing import Any, Unpack

import numpy as np

from wavefilt.api import run_with_noise
from wavefilt.arrays import Floats
from wavefilt.backends import Backend, registry
from wavefilt.containers import traces_of
from wavefilt.options import Keywords, Options, check_names
from wavefilt.wavelets.filters import WaveletLike


def estimate_sigma(
    x: Any,
    wavelet: WaveletLike | None = None,
    *,
    by_band: bool = False,
    axis: int = -1,
    axes: tuple[int, int] | None = None,
    backend: str | Backend = "auto",
    **options: Unpack[Keywords],
) -> Floats:
    """Estimate the standard deviation of the noise of each trace as `denoise` does.

    Parameters
    ----------
    x : array_like, pandas, xarray or DASCore object, ObsPy Stream or Trace, Recording
        As for `wavefilt.compare`; never modified. NaN and masked samples are gaps: the result for a trace is the root
        mean square over its segments, weighted by their samples.
    wavelet, axis, axes, backend, **options
        As for `wavefilt.denoise`. ``sigma`` determines how the noise is measured: "level" and "global" by the median
        absolute detail over 0.6745, a window by the details in it, with rule "js" by their mean square.
    by_band : bool
        Return the noise of all bands of the transform instead of that of the finest one.

    Returns
    -------
    ndarray of float64
        One number for each trace (or section, with ``axes``), with the shape of ``x`` without the axes; with
        ``by_band`` the numbers of each band along a new first axis, finest first, with rule "js" the approximation
        last. In the units of ``x``: for white noise, all bands have the standard deviation of its samples, whatever the
        transform. For sections of few traces the result is too low, by 5 to 15 % with 24 traces and by 30 % with 9,
        because the extension of the boundaries makes a large share of the coefficients small. 0 for a dead trace, NaN
        for one that is too short for the transform or has no samples.

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
    registry.check_name(backend)
    check_names(options, "by_band", "axis", "axes")
    taken = traces_of(x, options.get("sigma"), axis, axes).checked()
    plain: Keywords = {**options, "sigma": "level"}
    checked = Options(wavelet, **plain, ndim=taken.ndim)
    outcome = run_with_noise(taken.rows, checked, taken.sigmas, backend, report=True)
    bands = len(checked.bands(max(outcome.level, 1)))  # at least one, with NaN for traces that are too short
    total, count = np.zeros((2, bands, len(taken.rows)))
    for estimate in outcome.estimates:
        sigma = estimate.sigma
        if estimate.approximation is not None:
            sigma = np.concatenate([sigma, estimate.approximation[:1]])
        sigma = sigma / checked.noise_gains(len(sigma))
        part = estimate.segments
        levels = np.arange(bands if len(sigma) == bands else len(estimate.sigma))  # shorter segments have fewer levels
        np.add.at(total, (levels[:, None], part.rows), np.square(sigma[: len(levels)]) * part.samples)
        np.add.at(count, (levels[:, None], part.rows), part.samples)
    noise = np.sqrt(np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0))
    noise = noise.reshape(bands, *taken.shape[: len(taken.shape) - (taken.ndim - 1)])
    return noise if by_band else np.asarray(noise[0])
