"""`wavefilt.estimate_sigma`: the noise that `denoise` uses."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Unpack

import numpy as np

from wavefilt.api import run
from wavefilt.arrays import Array, Floats
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
    registry.check_name(backend)
    check_names(options, "by_band", "axis", "axes")
    taken = traces_of(x, options.get("sigma"), axis, axes).checked()
    plain: Keywords = {**options, "sigma": "level"}
    checked = Options(wavelet, **plain, ndim=1 if taken.ndim == 1 else 2)
    own = {sigma: np.array([each == sigma for each in taken.sigmas]) for sigma in taken.sigmas}
    found = {sigma: _as_denoised(taken.rows[own[sigma]], replace(checked, sigma=sigma), backend) for sigma in own}
    bands = max(map(len, found.values()), default=0) if by_band else 1
    noise = np.full((bands, len(taken.rows)), np.nan)
    for sigma, numbers in found.items():
        noise[: len(numbers), own[sigma]] = numbers[:bands]
    noise = noise.reshape(bands, *taken.shape[: len(taken.shape) - (taken.ndim - 1)])
    return noise if by_band else np.asarray(noise[0])


def _as_denoised(rows: Array, options: Options, backend: str | Backend) -> Floats:
    """Return the noise (bands, rows) that denoising with these options uses."""
    outcome = run(rows, options, backend, report=True)
    bands = len(options.bands(outcome.level))
    total, count = np.zeros((bands, len(rows))), np.zeros((bands, len(rows)))
    for estimate in outcome.estimates:
        own = estimate.sigma
        if estimate.approximation is not None:
            own = np.concatenate([own, estimate.approximation[:1]])
        own = own / options.noise_gains(len(own))
        part = estimate.segments
        places = np.arange(bands if len(own) == bands else len(estimate.sigma))  # shorter segments have fewer levels
        np.add.at(total, (places[:, None], part.rows), np.square(own[: len(places)]) * part.samples)
        np.add.at(count, (places[:, None], part.rows), part.samples)
    return np.asarray(np.sqrt(np.divide(total, count, out=np.full(total.shape, np.nan), where=count > 0)))
