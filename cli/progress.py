"""Progress of a run, on standard error and only if that is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from wavefilt.errors import printable

if TYPE_CHECKING:
    from tqdm import tqdm

Step = TypeVar("Step")


def bar(name: str | None = None, *, quiet: bool = False, **options: Any) -> tqdm[Any]:
    """Return a bar that disappears at its end, and does nothing where no progress is shown."""
    from tqdm import tqdm

    silent = quiet or sys.stderr is None or not sys.stderr.isatty()
    return tqdm(leave=False, file=sys.stderr, desc=name and printable(name), disable=silent, **options)


def steps(items: Sequence[Step]) -> Iterator[Step]:
    """Yield the methods that are compared or the steps of a study, with a bar that names them."""
    with bar(iterable=items) as drawn:
        for step in drawn:
            parts = step if isinstance(step, tuple) else (step,)
            drawn.set_postfix_str(", ".join(str(getattr(part, "label", part)) for part in parts))
            yield step
