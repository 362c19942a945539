"""Progress of a run, on standard error and only if that is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from wavefilt.errors import printable

if TYPE_CHECKING:
    from tqdm import tqdm


def bar(name: str | None = None, *, quiet: bool = False, **options: Any) -> tqdm[Any]:
    """Return a bar that disappears at its end, and does nothing where no progress is shown."""
    from tqdm import tqdm

    silent = quiet or sys.stderr is None or not sys.stderr.isatty()
    return tqdm(leave=False, file=sys.stderr, desc=name and printable(name), disable=silent, **options)


def steps(names: Sequence[str]) -> Iterator[str]:
    """Yield the names of the methods that are compared, with a bar."""
    with bar("comparing", iterable=names) as drawn:
        for name in drawn:
            drawn.set_postfix_str(name)
            yield name
