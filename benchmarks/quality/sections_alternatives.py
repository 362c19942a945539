"""What the study of sections compares: options of `denoise`, and what else is used on gathers, tuned.

An alternative has a small grid of parameters. Its best ones on another draw of the noise, of the same case and with the
clean section known, are used: more than a user has. The library has its defaults.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
from scipy import fft
from scipy.signal import wiener as local_wiener

from wavefilt.benchmarks.quality.alternatives import Alternative
from wavefilt.benchmarks.quality.methods import Options, missing
from wavefilt.benchmarks.quality.signals import Samples

PANEL: Options = {"axes": (-2, -1)}
BASE, MEAN = "bayes", "ebayes, mean"
POSTERIOR: Options = PANEL | {"rule": "ebayes", "shrink": "mean"}
DUAL: Options = PANEL | {"transform": "dtcwt"}
LIBRARY: dict[str, Options] = {
    BASE: PANEL,
    "sure": PANEL | {"rule": "sure"},
    MEAN: POSTERIOR,
    "ebayes, mean, 16 spins": POSTERIOR | {"spins": 16},
    "bayes, db2": PANEL | {"wavelet": "db2"},
    "bivariate": PANEL | {"rule": "bivariate"},
    "js": PANEL | {"rule": "js"},
    "modwt bayes": PANEL | {"transform": "modwt"},
    "modwt js": PANEL | {"transform": "modwt", "rule": "js"},
    "traces, modwt bayes": {"transform": "modwt"},
    "traces, wp bayes": {"transform": "wp"},
    "traces, dtcwt js": {"transform": "dtcwt"},
    "dtcwt bayes": DUAL | {"rule": "bayes"},
    "dtcwt sure": DUAL | {"rule": "sure"},
    "dtcwt bivariate": DUAL | {"rule": "bivariate"},
    "dtcwt js": DUAL,
    "fk js, 16x32": PANEL | {"transform": "fk", "wavelet": "sine16x32"},
    "fk js, 32x64": PANEL | {"transform": "fk"},
}
"""Options of `denoise`; the first is what the others are compared with."""
COMPARED = ("dtcwt js", "fk js, 32x64", "fk js, 16x32")
"""Held to the targets."""
Windowed = Callable[[Samples], Samples]
TIME = 128
"""Samples of a window of f-x methods, which overlap by half."""


def windowed(x: Samples, size: tuple[int, int], function: Windowed) -> Samples:
    """``function`` of a batch of windows (n, traces, samples) with half overlap, joined with sine squared weights.

    The section is continued by reflection to whole windows. A window is at most as large as the section.
    """
    size = min(size[0], x.shape[0]), min(size[1], x.shape[1])
    steps = [max(1, n // 2) for n in size]
    more = [(n - total) % step for total, n, step in zip(x.shape, size, steps, strict=True)]
    padded = np.pad(x, [(0, n) for n in more], "symmetric")
    starts = [range(0, total - n + 1, step) for total, n, step in zip(padded.shape, size, steps, strict=True)]
    view = np.lib.stride_tricks.sliding_window_view(padded, size)[np.ix_(*starts)]
    found = function(view.reshape(-1, *size)).reshape(view.shape)
    weight = np.multiply(*np.ix_(*(np.sin(np.pi * (np.arange(n) + 0.5) / n) ** 2 for n in size)))
    total, weights = np.zeros(padded.shape), np.zeros(padded.shape)
    for i, down in enumerate(starts[0]):
        for j, across in enumerate(starts[1]):
            place = np.s_[down : down + size[0], across : across + size[1]]
            total[place] += weight * found[i, j]
            weights[place] += weight
    return np.asarray((total / weights)[: x.shape[0], : x.shape[1]])


def _by_frequency(windows: Samples, function: Windowed, padding: int = 1) -> Samples:
    """``function`` of spectra (n, traces), of every window at every frequency; ``padding`` times as long with zeros."""
    traces, samples = windows.shape[1:]
    spectra = fft.rfft(windows, padding * samples).astype(np.complex64).transpose(0, 2, 1)
    found = function(spectra.reshape(-1, traces)).reshape(spectra.shape)
    return np.asarray(fft.irfft(found.transpose(0, 2, 1), padding * samples)[..., :samples])


def _hankel(spectra: Samples, columns: int) -> Samples:
    """(n, traces - columns + 1, columns), each row a piece of the spectrum along the traces."""
    return np.lib.stride_tricks.sliding_window_view(spectra, columns, axis=1)


def _predicted(spectra: Samples, order: int, damping: float) -> Samples:
    """One-step prediction along the traces by the least-squares filter of this order; the first ones unchanged."""
    pieces = _hankel(spectra, order + 1)
    past, now = pieces[..., :-1], pieces[..., -1:]
    normal = past.conj().swapaxes(1, 2) @ past
    power = np.trace(normal, axis1=1, axis2=2).real / order
    normal += ((damping * power + 1e-20)[:, None] * np.ones(order))[..., None] * np.eye(order)
    found = spectra.copy()
    found[:, order:] = (past @ np.linalg.solve(normal, past.conj().swapaxes(1, 2) @ now))[..., 0]
    return found


def fx_deconvolution(x: Samples, order: float, traces: float, damping: float = 0.01) -> Samples:
    """Prediction along the traces at each frequency, forward and backward (Canales 1984, Gülünay 1986)."""

    def predicted(spectra: Samples) -> Samples:
        length = min(int(order), spectra.shape[1] // 2)
        there, back = (_predicted(s, length, damping) for s in (spectra, spectra[:, ::-1]))
        found = (there + back[:, ::-1]) / 2
        found[:, :length], found[:, -length:] = back[:, ::-1][:, :length], there[:, -length:]
        return np.asarray(found)

    return windowed(x, (int(traces), TIME), partial(_by_frequency, function=predicted, padding=2))


def rank_reduction(x: Samples, rank: float, damping: float, traces: float = 48) -> Samples:
    """Hankel matrix of each frequency at a lower rank, antidiagonals averaged: Cadzow, MSSA in two dimensions.

    Trickett (2008), Oropeza and Sacchi (2011); damped as by Huang et al. (2016): a singular value s is multiplied by
    1 - (t/s)^damping, t the largest one that is left out.
    """

    def reduced(spectra: Samples) -> Samples:
        columns = spectra.shape[1] // 2 + 1
        kept, matrix = min(int(rank), columns - 1), np.ascontiguousarray(_hankel(spectra, columns))
        values, vectors = np.linalg.eigh(matrix.conj().swapaxes(1, 2) @ matrix)
        squares, basis = np.maximum(values, 1e-30), vectors[..., -kept:]
        factors = 1 - (squares[:, [-kept - 1]] / squares[:, -kept:]) ** (damping / 2) if damping else 1.0
        low = (matrix @ basis * np.broadcast_to(factors, (len(basis), kept))[:, None]) @ basis.conj().swapaxes(1, 2)
        found, counts = np.zeros_like(spectra), np.zeros(spectra.shape[1])
        for j in range(columns):
            found[:, j : j + low.shape[1]] += low[..., j]
            counts[j : j + low.shape[1]] += 1
        return np.asarray(found / counts)

    return windowed(x, (int(traces), TIME), partial(_by_frequency, function=reduced))


def dip_filter(x: Samples, steepest: float, highest: float) -> Samples:
    """DASCore's slope filter for dips up to ``steepest`` samples a trace, tapered to twice that, after its low-pass.

    ``highest`` is the corner as a share of the Nyquist frequency; 1 is no filter.
    """
    import dascore

    coordinates = {"distance": np.arange(x.shape[0], dtype=float), "time": np.arange(x.shape[1], dtype=float)}
    patch = dascore.Patch(data=np.asarray(x, np.float64), coords=coordinates, dims=("distance", "time"))
    if highest < 1:
        patch = patch.pass_filter(time=(None, highest / 2))
    limits = np.array([0.5 / steepest, 1 / steepest, 1e18, 2e18])
    return np.asarray(patch.slope_filter(filt=limits).data)


def wiener(x: Samples, size: float) -> Samples:
    """SciPy's local Wiener filter, squares of this size."""
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray(np.nan_to_num(local_wiener(np.asarray(x, np.float64), int(size))))


def scikit_wiener(x: Samples, balance: float) -> Samples:
    """scikit-image's Wiener filter with its Laplacian prior, for a section that is not blurred."""
    from skimage.restoration import wiener as restored

    scale = float(np.abs(x).max())
    return scale * np.asarray(restored(x / scale, np.ones((1, 1)), balance, clip=False))


def total_variation(x: Samples, weight: float) -> Samples:
    """scikit-image's (Chambolle 2004); the weight in standard deviations of the section."""
    from skimage.restoration import denoise_tv_chambolle

    scale = float(x.std())
    return scale * np.asarray(denoise_tv_chambolle(x / scale, weight=weight, max_num_iter=100))


def scikit_wavelet(x: Samples, method: float, wavelet: float) -> Samples:
    """scikit-image's `denoise_wavelet`, ``method`` 0 BayesShrink, 1 VisuShrink, with Daubechies wavelets."""
    from skimage.restoration import denoise_wavelet

    named = ("BayesShrink", "VisuShrink")[int(method)]
    return np.asarray(denoise_wavelet(x, method=named, wavelet=f"db{wavelet:g}", rescale_sigma=False))


ALTERNATIVES: dict[str, tuple[Alternative, ...]] = {
    "": (
        Alternative("f-x deconvolution", fx_deconvolution, {"order": (2, 4, 8), "traces": (24, 48)}),
        Alternative("rank reduction", rank_reduction, {"rank": (2, 4, 8), "damping": (2,)}),
        Alternative("Wiener, SciPy", wiener, {"size": (3, 5, 9)}),
    ),
    "dascore": (Alternative("dip filter", dip_filter, {"steepest": (0.5, 1, 2, 4, 8), "highest": (0.2, 0.4, 1)}),),
    "scikit-image": (
        Alternative("Wiener, scikit-image", scikit_wiener, {"balance": (0.01, 0.03, 0.1, 0.3, 1, 3, 10)}),
        Alternative("total variation", total_variation, {"weight": (0.03, 0.1, 0.3, 1, 2)}),
        Alternative("denoise_wavelet", scikit_wavelet, {"method": (0, 1), "wavelet": (1, 4, 8)}),
    ),
}
"""By the package that they need."""


def alternatives() -> list[Alternative]:
    """Those whose packages are installed."""
    return [one for package, some in ALTERNATIVES.items() if not package or not missing(package) for one in some]
