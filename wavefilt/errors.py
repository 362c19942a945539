"""The errors a caller may want to tell apart; everything else is a ValueError or TypeError."""

from __future__ import annotations


class FormatError(ValueError):
    """A file cannot be read or written: unknown, damaged, ambiguous, or of a format whose reader is missing."""


class BackendUnavailable(RuntimeError):
    """A backend asked for by name cannot run here; the message says what is missing and how to install it."""


class NonFiniteSample(ValueError):
    """A sample is infinite, or NaN where there can be no gap: which one, counted from 0, and what to do about it."""

    def __init__(self, trace: int, sample: int, hint: str, kind: str = "infinite value") -> None:
        super().__init__(f"{kind} at trace {trace}, sample {sample} (counted from 0){hint}")
        self.trace, self.sample, self.hint, self.kind = int(trace), int(sample), hint, kind

    def __reduce__(self) -> tuple[type[NonFiniteSample], tuple[int, int, str, str]]:
        return type(self), (self.trace, self.sample, self.hint, self.kind)


LONGEST = 2000
"""Characters of a reason, which may quote a file."""


def reason(error: BaseException) -> str:
    """What an error says in one line, whatever bytes of a file it quotes; its kind where it says nothing."""
    said = str(error) or type(error).__name__
    line = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in said[:LONGEST])
    return line if len(said) <= LONGEST else f"{line}..."


SQUARES_OVERFLOW = "the squares of the samples overflow float64; scale them down first"
"""What a `ValueError` says of samples whose mean square is not finite."""
