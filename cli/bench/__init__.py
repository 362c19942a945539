"""`wavefilt bench`."""

from wavefilt.cli.bench.main import command

__all__ = ["command"]
