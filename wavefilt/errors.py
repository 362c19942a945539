"""The errors a caller may want to tell apart; everything else is a ValueError or TypeError."""

from __future__ import annotations


class FormatError(ValueError):
    """A file cannot be read or written: unknown, damaged, ambiguous, or of a format whose reader is missing."""


class BackendUnavailable(RuntimeError):
    """A backend asked for by name cannot run here; the message says what is missing and how to install it."""


LONGEST = 2000
"""Characters of a reason, which may quote a file."""


def reason(error: BaseException) -> str:
    """What an error says in one line, whatever bytes of a file it quotes; its kind where it says nothing."""
    said = str(error) or type(error).__name__
    line = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in said[:LONGEST])
    return line if len(said) <= LONGEST else f"{line}..."


SQUARES_OVERFLOW = "the squares of the samples overflow float64; scale them down first"
"""What a `ValueError` says of samples whose mean square is not finite."""
