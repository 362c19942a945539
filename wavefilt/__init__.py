"""Wavelet denoising of seismic and other sampled data."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from wavefilt import backends
from wavefilt._version import __version__ as __version__
from wavefilt.decomposition.stationary import imodwt, iswt, modwt, swt
from wavefilt.decomposition.wavedec import dwt, idwt, wavedec, waverec
from wavefilt.decomposition.wavedec2 import wavedec2, waverec2
from wavefilt.denoising.api import denoise
from wavefilt.errors import BackendUnavailable, FormatError
from wavefilt.io import read
from wavefilt.recording import Recording
from wavefilt.threads import get_num_threads, set_num_threads
from wavefilt.thresholding.shrinkage import threshold, threshold_firm

if TYPE_CHECKING:
    from wavefilt.online.denoiser import OnlineDenoiser
    from wavefilt.outofcore.streaming import denoise_file

__all__ = [
    "BackendUnavailable",
    "FormatError",
    "OnlineDenoiser",
    "Recording",
    "backends",
    "denoise",
    "denoise_file",
    "dwt",
    "get_num_threads",
    "idwt",
    "imodwt",
    "iswt",
    "modwt",
    "read",
    "set_num_threads",
    "swt",
    "threshold",
    "threshold_firm",
    "wavedec",
    "wavedec2",
    "waverec",
    "waverec2",
]


_LATER = {"OnlineDenoiser": "online", "denoise_file": "streaming"}
"""What is imported when it is first asked for, with its module."""


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"wavefilt.{_LATER[name]}"), name)
