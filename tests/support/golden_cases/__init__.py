"""The cases of `golden.py`, by area. Importing this imports nothing of wavefilt."""

from . import arrays, commands, public, refusals, streams  # noqa: F401  # each adds to AREAS
from .running import AREAS, ENVIRONMENT, result

__all__ = ["AREAS", "ENVIRONMENT", "result"]
