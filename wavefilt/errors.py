"""The errors a caller may want to tell apart; everything else is a ValueError or TypeError."""

from __future__ import annotations

import re
import shlex
from typing import NamedTuple


class Words(NamedTuple):
    """A part of an error's text that Python and the command word differently."""

    python: str
    command: str


def options(*names: str, **values: object) -> Words:
    """Options in the text of an error, by their names or with values: dt=0.5 and --dt 0.5.

    True is the value of a flag, and ... stands for one that is to be filled in.
    """
    python, command = [*names], [_flag(name) for name in names]
    for name, value in values.items():
        python.append(f"{name}={'...' if value is ... else repr(value)}")
        command.append(_flag(name))
        if value is ...:
            command.append("...")
        elif value is not True:
            command.append(shlex.quote(",".join(map(str, value)) if isinstance(value, tuple | list) else str(value)))
    return Words(", ".join(python), " ".join(command))


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


class WordedError(Exception):
    """An error whose text has `Words` among its ``parts``; ``str(error)`` is the one for Python."""

    def __init__(self, *parts: str | Words) -> None:
        super().__init__("".join(part.python if isinstance(part, Words) else part for part in parts))
        self.parts = parts


def for_command(error: BaseException) -> str:
    """What an error says, in the words of the command."""
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    if not isinstance(error, WordedError):
        text = str(error)
    else:
        text = "".join(part.command if isinstance(part, Words) else part for part in error.parts)
    return as_flags(text)


def as_flags(text: str) -> str:
    """Return a message with the flags of the command for options in backticks: `dt=0.5` becomes --dt 0.5."""

    def flag(option: re.Match[str]) -> str:
        value = f" {option[2].strip(chr(39))}" if option[2] else ""
        return f"--{option[1].replace('_', '-')}{value}"

    return re.sub(r"`([a-z_]+)(?:=([^`]*))?`", flag, text)


class OptionError(WordedError, ValueError):
    """An option has a value that makes no sense, or none that is needed."""


class FormatError(WordedError, ValueError):
    """A file cannot be read or written: unknown, damaged, ambiguous, or of a format whose reader is missing."""


class LayoutError(FormatError):
    """A file cannot be read with the options given: one is missing, wrong, or of no use for its format."""


class OutputExists(WordedError, FileExistsError):
    """A file or folder would be replaced, which nobody asked for."""

    def __init__(self, path: object) -> None:
        super().__init__(f"{path} exists; use ", options(overwrite=True), " to replace it")
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
    """What an error says in one line, whatever bytes of a file it quotes; its kind where it says nothing."""
    words = re.sub(r" at 0x[0-9a-f]+", "", str(error))  # addresses of objects say nothing, and differ each time
    return _one_line(words or type(error).__name__)


def about(place: str, *errors: FormatError, hint: tuple[str | Words, ...] = ()) -> FormatError:
    """The error, in one line after the name of the file that it is about; of two, both; then the ``hint``."""
    parts: list[str | Words] = [f"{place}: "]
    for number, error in enumerate(errors):
        own = [part if isinstance(part, Words) else _one_line(part) for part in error.parts]
        if own and isinstance(own[0], str):
            own[0] = own[0].removeprefix(f"{place}: ")
        parts += ["; "] * (number > 0) + own
    return type(errors[0])(*parts, *hint)


def _one_line(text: str) -> str:
    line = printable(text[:LONGEST])
    return line if len(text) <= LONGEST else f"{line}..."


def printable(text: str) -> str:
    """Control characters as escapes: names and headers of files must not steer the terminal or add lines."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


SQUARES_OVERFLOW = "the squares of the samples overflow float64; scale them down first"
"""What a `ValueError` says of samples whose mean square is not finite."""
