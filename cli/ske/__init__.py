"""`wavefilt ske`."""

from wavefilt.cli.ske.main import command

__all__ = ["command"]
