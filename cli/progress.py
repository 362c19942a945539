"""Progress of a run, on standard error and only if that is a terminal: bars, and the current stage of one file."""

from __future__ import annotations

import logging
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from wavefilt.errors import printable

if TYPE_CHECKING:
    from tqdm import tqdm


def shown(quiet: bool = False) -> bool:
    """Return whether progress is shown."""
    return not quiet and sys.stderr is not None and sys.stderr.isatty()


def bar(name: str | None = None, **options: Any) -> tqdm[Any]:
    """Return a bar that disappears at its end."""
    from tqdm import tqdm

    return tqdm(leave=False, file=sys.stderr, desc=name and printable(name), **options)


class _Stage(logging.Handler):
    """A line with the name of a stage, and the last message of the library, such as "compiling kernels"."""

    def __init__(self, name: str) -> None:
        super().__init__()
        self.text, self.width = printable(name), 0

    def emit(self, record: logging.LogRecord) -> None:
        self.draw(f"{self.text}: {record.getMessage()}")

    def draw(self, text: str) -> None:
        print(f"\r{text:{self.width}}", end="", file=sys.stderr, flush=True)
        self.width = max(self.width, len(text))


@contextmanager
def stage(name: str, quiet: bool = False) -> Iterator[None]:
    """Context manager: show the name until the end of the block."""
    if not shown(quiet):
        yield
        return
    logger, line = logging.getLogger("wavefilt"), _Stage(name)
    level = logger.level
    logger.addHandler(line)
    logger.setLevel(logging.INFO)
    line.draw(line.text)
    try:
        yield
    finally:
        logger.setLevel(level)
        logger.removeHandler(line)
        line.draw("")
        print("\r", end="", file=sys.stderr, flush=True)


def steps(names: Sequence[str]) -> Iterator[str]:
    """Yield the names of the methods that are compared, with a bar."""
    with bar("comparing", iterable=names, disable=not shown()) as drawn:
        for name in drawn:
            drawn.set_postfix_str(name)
            yield name
