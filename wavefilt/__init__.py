"""Wavelet denoising of seismic and other sampled data."""

from __future__ import annotations

from wavefilt._version import __version__ as __version__

TYPE_CHECKING = False  # importing typing would take longer than all else here
if TYPE_CHECKING:
    from typing import Any

    from wavefilt import backends
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
    from wavefilt.io import read
    from wavefilt.noise import estimate_sigma
    from wavefilt.online.denoiser import OnlineDenoiser
    from wavefilt.outofcore.streaming import denoise_file
    from wavefilt.packets import iwavelet_packets, wavelet_packets
    from wavefilt.recording import Recording
    from wavefilt.threads import get_num_threads, set_num_threads
    from wavefilt.thresholding.shrinkage import threshold, threshold_firm
    from wavefilt.viewer import view

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
    "get_num_threads",
    "idtcwt",
    "idwt",
    "imodwt",
    "imodwt2",
    "iswt",
    "iwavelet_packets",
    "modwt",
    "modwt2",
    "read",
    "set_num_threads",
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
    "io": ("read",),
    "noise": ("estimate_sigma",),
    "online": ("OnlineDenoiser",),
    "packets": ("iwavelet_packets", "wavelet_packets"),
    "recording": ("Recording",),
    "streaming": ("denoise_file",),
    "threads": ("get_num_threads", "set_num_threads"),
    "thresholding.shrinkage": ("threshold", "threshold_firm"),

    "viewer": ("view",),
}
"""Where the names come from. All is imported when it is first asked for: the command handles signals from its start,
before anything large is loaded."""
_OPTIONAL = ("dascore", "dask", "obspy", "xarray")
"""Modules for libraries of these names, which may not be installed."""
_MODULES = (
    *(
        "advice",
        "arrays",
        "backends",
        "errors",
        "extending",
        "io",
        "noise",
        "options",
        "online",
        "plot",
        "quality",
        "recording",
        "registry",
    ),
    *("report", "ske", "streaming", "threads", "transforms", "vocabulary", "wavelets"),
)
"""Modules that are there without an import of their own, and those of `_OPTIONAL`."""


def __getattr__(name: str) -> Any:
    from importlib import import_module

    if name in _MODULES or name in _OPTIONAL:
        return import_module(f"wavefilt.{name}")
    for module, names in _HOMES.items():
        if name in names:
            found = globals()[name] = getattr(import_module(f"wavefilt.{module}"), name)
            return found
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    from importlib.util import find_spec

    return sorted({*globals(), *__all__, *_MODULES, *filter(find_spec, _OPTIONAL)})
