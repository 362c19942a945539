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


def bar(name: str | None = None, *, quiet: bool = False, **options: Any) -> tqdm[Any]:
    """Return a bar that disappears at its end, and does nothing where no progress is shown."""
    from tqdm import tqdm

    return tqdm(leave=False, file=sys.stderr, desc=name and printable(name), disable=not shown(quiet), **options)


@contextmanager
def stage(name: str, quiet: bool = False) -> Iterator[None]:
    """Context manager: show the name until the end of the block, and messages such as "compiling kernels"."""
    if not shown(quiet):
        yield
        return
    logger, width = logging.getLogger("wavefilt"), 0

    def draw(text: str) -> None:
        nonlocal width
        print(f"\r{text:{width}}", end="", file=sys.stderr, flush=True)
        width = max(width, len(text))

    handler, level = logging.Handler(), logger.level
    handler.emit = lambda record: draw(f"{printable(name)}: {record.getMessage()}")  # type: ignore[method-assign]
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    draw(printable(name))
    try:
        yield
    finally:
        logger.setLevel(level)
        logger.removeHandler(handler)
        draw("")
        print("\r", end="", file=sys.stderr, flush=True)


def steps(names: Sequence[str]) -> Iterator[str]:
    """Yield the names of the methods that are compared, with a bar."""
    with bar("comparing", iterable=names) as drawn:
        for name in drawn:
            drawn.set_postfix_str(name)
            yield name
