"""Denoising real-time streams with a constant latency."""

from wavefilt.online.denoiser import OnlineDenoiser

__all__ = ["OnlineDenoiser"]
