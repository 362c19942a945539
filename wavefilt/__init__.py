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
if TYPE_CHECKING:
    from typing import Any

    from wavefilt import backends, extending, plotting, quality, ske
    from wavefilt.advice import compare, trust, tune
    from wavefilt.api import denoise
    from wavefilt.decomposition import (
        dwt,
        idwt,
        imodwt,
        imodwt2,
        iswt,
        modwt,
        modwt2,
        swt,
        wavedec,
        wavedec2,
        waverec,
        waverec2,
    )
    from wavefilt.dual_tree import dtcwt, idtcwt
    from wavefilt.errors import BackendUnavailable, FormatError
    from wavefilt.files import denoise_file
    from wavefilt.online import OnlineDenoiser
    from wavefilt.packets import iwavelet_packets, wavelet_packets
    from wavefilt.plotting import view
    from wavefilt.recording import Recording, read
    from wavefilt.sigma import estimate_sigma
    from wavefilt.threads import get_num_threads, set_num_threads
    from wavefilt.thresholding.shrinkage import threshold, threshold_firm

__all__ = [
    "BackendUnavailable",
    "FormatError",
    "OnlineDenoiser",
    "Recording",
    "backends",
    "compare",
    "denoise",
    "denoise_file",
    "dtcwt",
    "dwt",
    "estimate_sigma",
    "extending",
    "get_num_threads",
    "idtcwt",
    "idwt",
    "imodwt",
    "imodwt2",
    "iswt",
    "iwavelet_packets",
    "modwt",
    "modwt2",
    "plotting",
    "quality",
    "read",
    "set_num_threads",
    "ske",
    "swt",
    "threshold",
    "threshold_firm",
    "trust",
    "tune",
    "view",
    "wavedec",
    "wavedec2",
    "wavelet_packets",
    "waverec",
    "waverec2",
]


_HOMES = {
    "advice": ("compare", "trust", "tune"),
    "decomposition": (
        *("dwt", "idwt", "imodwt", "imodwt2", "iswt", "modwt", "modwt2", "swt"),
        *("wavedec", "wavedec2", "waverec", "waverec2"),
    ),
    "api": ("denoise",),
    "dual_tree": ("dtcwt", "idtcwt"),
    "errors": ("BackendUnavailable", "FormatError"),
    "sigma": ("estimate_sigma",),
    "online": ("OnlineDenoiser",),
    "packets": ("iwavelet_packets", "wavelet_packets"),
    "recording": ("Recording", "read"),
    "files": ("denoise_file",),
    "threads": ("get_num_threads", "set_num_threads"),
    "thresholding.shrinkage": ("threshold", "threshold_firm"),
    "plotting": ("view",),
}
"""The module of each name, imported when the name is first used: the command handles signals from its start, before
anything large is loaded."""


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
