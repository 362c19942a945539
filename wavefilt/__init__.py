"""Wavelet denoising of seismic and other sampled data."""

from wavefilt import backends
from wavefilt.denoising import denoise
from wavefilt.errors import BackendUnavailable, FormatError
from wavefilt.io import read
from wavefilt.recording import Recording
from wavefilt.shrinkage import threshold, threshold_firm
from wavefilt.stationary import imodwt, iswt, modwt, swt
from wavefilt.threads import get_num_threads, set_num_threads
from wavefilt.transforms import dwt, idwt, wavedec, waverec

__version__ = "0.1.0"

__all__ = [
    "BackendUnavailable",
    "FormatError",
    "Recording",
    "backends",
    "denoise",
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
    "waverec",
]
