"""Wavelet denoising of seismic and other sampled data."""

from wavefilt import backends
from wavefilt.denoising import denoise
from wavefilt.errors import BackendUnavailable, FormatError
from wavefilt.shrinkage import threshold, threshold_firm
from wavefilt.transforms import dwt, idwt, wavedec, waverec

__version__ = "0.1.0"

__all__ = [
    "BackendUnavailable",
    "FormatError",
    "backends",
    "denoise",
    "dwt",
    "idwt",
    "threshold",
    "threshold_firm",
    "wavedec",
    "waverec",
]
