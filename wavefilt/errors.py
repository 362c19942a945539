"""The errors a caller may want to tell apart; everything else is a ValueError or TypeError."""

from __future__ import annotations


class FormatError(ValueError):
    """A file cannot be read or written: unknown, damaged, ambiguous, or of a format whose reader is missing."""


class BackendUnavailable(RuntimeError):
    """A backend asked for by name cannot run here; the message says what is missing and how to install it."""
