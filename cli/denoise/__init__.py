"""`wavefilt denoise`."""

from wavefilt.cli.denoise.main import command

__all__ = ["command"]
