"""Wavelet denoising of seismic and other sampled data, on the CPU and on NVIDIA GPUs.

Denoise 24 traces of a decaying oscillation in noise, with time along the last axis:

>>> import numpy as np
>>> import wavefilt
>>> t = np.arange(2000) / 1000
>>> signal = np.exp(-3 * t) * np.sin(2 * np.pi * 12 * t)
>>> traces = signal + 0.3 * np.random.default_rng(0).standard_normal((24, 2000))
>>> denoised, residual = wavefilt.denoise(traces, return_residual=True)
>>> round(float(wavefilt.quality.snr(signal, traces).mean()), 1)  # dB
-3.4
>>> round(float(wavefilt.quality.snr(signal, denoised).mean()), 1)
9.0

Denoise a file, with its headers, in its own format:

>>> wavefilt.read("shot.sgy").denoise(rule="js").write("quiet.sgy")  # doctest: +SKIP

The same from a shell: ``wavefilt denoise shot.sgy --rule js -o quiet.sgy``. Modules for other libraries are
`wavefilt.obspy`, `wavefilt.xarray`, `wavefilt.dascore` and `wavefilt.dask`.
"""

from __future__ import annotations

from wavefilt._version import __version__ as __version__

TYPE_CHECKING = False  # importing typing would take longer than all else here
if TYPE_CHECKING:  # "as" makes a name public for type checkers
    from typing import Any

    from wavefilt import backends as backends
    from wavefilt import extending as extending
    from wavefilt import plotting as plotting
    from wavefilt import quality as quality
    from wavefilt import ske as ske
    from wavefilt.advice import compare as compare
    from wavefilt.advice import trust as trust
    from wavefilt.advice import tune as tune
    from wavefilt.api import denoise as denoise
    from wavefilt.decomposition import dtcwt as dtcwt
    from wavefilt.decomposition import dwt as dwt
    from wavefilt.decomposition import idtcwt as idtcwt
    from wavefilt.decomposition import idwt as idwt
    from wavefilt.decomposition import imodwt as imodwt
    from wavefilt.decomposition import imodwt2 as imodwt2
    from wavefilt.decomposition import iswt as iswt
    from wavefilt.decomposition import iwavelet_packets as iwavelet_packets
    from wavefilt.decomposition import modwt as modwt
    from wavefilt.decomposition import modwt2 as modwt2
    from wavefilt.decomposition import swt as swt
    from wavefilt.decomposition import wavedec as wavedec
    from wavefilt.decomposition import wavedec2 as wavedec2
    from wavefilt.decomposition import wavelet_packets as wavelet_packets
    from wavefilt.decomposition import waverec as waverec
    from wavefilt.decomposition import waverec2 as waverec2
    from wavefilt.errors import BackendUnavailable as BackendUnavailable
    from wavefilt.errors import FormatError as FormatError
    from wavefilt.files import denoise_file as denoise_file
    from wavefilt.online import OnlineDenoiser as OnlineDenoiser
    from wavefilt.plotting import view as view
    from wavefilt.recording import Recording as Recording
    from wavefilt.recording import read as read
    from wavefilt.sigma import estimate_sigma as estimate_sigma
    from wavefilt.threads import get_num_threads as get_num_threads
    from wavefilt.threads import set_num_threads as set_num_threads
    from wavefilt.thresholding.shrinkage import threshold as threshold
    from wavefilt.thresholding.shrinkage import threshold_firm as threshold_firm

_HOMES = {
    "advice": ("compare", "trust", "tune"),
    "decomposition": (
        *("dtcwt", "dwt", "idtcwt", "idwt", "imodwt", "imodwt2", "iswt", "iwavelet_packets"),
        *("modwt", "modwt2", "swt", "wavedec", "wavedec2", "wavelet_packets", "waverec", "waverec2"),
    ),
    "api": ("denoise",),
    "errors": ("BackendUnavailable", "FormatError"),
    "sigma": ("estimate_sigma",),
    "online": ("OnlineDenoiser",),
    "recording": ("Recording", "read"),
    "files": ("denoise_file",),
    "threads": ("get_num_threads", "set_num_threads"),
    "thresholding.shrinkage": ("threshold", "threshold_firm"),
    "plotting": ("view",),
}
"""The module of each name, imported when the name is first used: the command handles signals from its start, before
anything large is loaded."""
__all__ = sorted(
    ["backends", "extending", "plotting", "quality", "ske", *(name for names in _HOMES.values() for name in names)]
)


def __getattr__(name: str) -> Any:
    from importlib import import_module
    from importlib.util import find_spec

    from wavefilt.threads import loading

    with loading:  # a fork waits: a module that another thread imports could never be imported in the child
        for module, names in _HOMES.items():
            if name in names:
                found = globals()[name] = getattr(import_module(f"wavefilt.{module}"), name)
                return found
        if not name.startswith("_") and find_spec(f"wavefilt.{name}"):
            return import_module(f"wavefilt.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
