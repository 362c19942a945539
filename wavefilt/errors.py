"""Errors that callers may want to distinguish, and their text; everything else is a ValueError or TypeError.

Messages name options in backticks, as `sigma`; the command prints them as flags.
"""

from __future__ import annotations

import re


class OptionError(ValueError):
    """An option has an invalid value, or is missing."""


class FormatError(ValueError):
    """A file cannot be read or written: unknown, damaged, ambiguous, or of a format whose reader is missing."""


class LayoutError(FormatError):
    """A file cannot be read with the given options: one is missing, wrong, or does not apply to its format."""


class DamagedSamples(OSError):
    """Some samples of a file cannot be read."""


class OutputExists(FileExistsError):
    """A file or folder would be replaced without `overwrite`."""

    def __init__(self, path: object) -> None:
        super().__init__(f"{path} exists; use `overwrite=True` to replace it")
        self.path = path

    def __reduce__(self) -> tuple[type[OutputExists], tuple[object]]:
        return type(self), (self.path,)


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
    """Return the text of an error in one line, whatever bytes of a file it quotes; its type if it has no text."""
    words = re.sub(r" at 0x[0-9a-f]+", "", str(error))  # addresses of objects say nothing, and differ each time
    words = words or type(error).__name__
    return printable(words[:LONGEST]) + "..." * (len(words) > LONGEST)


def printable(text: str) -> str:
    """Return a text with control characters escaped: names and headers of files must not control the terminal."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


SQUARES_OVERFLOW = "the squares of the samples overflow float64; scale them down first"
"""What a `ValueError` says of samples whose mean square is not finite."""
