"""Denoising files of any size within a limit of memory."""

from wavefilt.outofcore.streaming import Progress, Report, denoise_file, stream

__all__ = ["Progress", "Report", "denoise_file", "stream"]
