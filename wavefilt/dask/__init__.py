"""Denoising dask arrays lazily: on threads, processes or the machines of a cluster."""

from wavefilt.dask.blocks import denoise

__all__ = ["denoise"]
