"""Named implementations of one kind, such as threshold rules, to which other packages can add their own."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from functools import cache
from typing import ClassVar, Generic, TypeVar

from wavefilt.vocabulary import check

EXTENSIONS = "wavefilt.extensions"
"""Entry points of this group are modules of other packages whose import registers what they add."""

Entry = TypeVar("Entry")


@cache
def load_extensions() -> None:
    """Import the modules that installed packages name as extensions, once; one that fails is a warning."""
    from importlib import metadata  # takes 20 ms to import

    for point in metadata.entry_points(group=EXTENSIONS):
        try:
            point.load()
        except Exception as error:  # somebody else's code
            warnings.warn(f"extension {point.name} ({point.value}) cannot be loaded: {error}", stacklevel=2)


class Registry(Generic[Entry]):
    """A table from names to entries. Extensions are loaded when a name is not found, or when all are listed."""

    changes: ClassVar[int] = 0
    """How often any of them was changed: what is kept of their contents is out of date after the next one."""

    def __init__(self, kind: str, entries: dict[str, Entry]) -> None:
        """``kind`` is what the entries are, as errors call it: "rule", "mode", ..."""
        self.kind = kind
        self._entries = dict(entries)

    def register(self, name: str, entry: Entry) -> None:
        """Add an entry. Raises ValueError for a name that is taken or no identifier with hyphens."""
        if not name.replace("-", "_").isidentifier():
            raise ValueError(f"{self.kind} {name!r}: a name consists of letters, digits, hyphens and underscores")
        if name in self._entries:
            raise ValueError(f"{self.kind} {name!r} is already registered")
        self._entries[name] = entry
        Registry.changes += 1

    def unregister(self, name: str) -> None:
        """Remove an entry; KeyError if there is none."""
        del self._entries[name]
        Registry.changes += 1

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._found(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.names())

    def __getitem__(self, name: str) -> Entry:
        """The entry. Raises ValueError for a name that is not known, with those that are."""
        entry = self._entries.get(name)
        if entry is None:
            self.check(name)
            entry = self._entries[name]
        return entry

    def names(self) -> list[str]:
        """All names, in the order of their registration."""
        load_extensions()
        return list(self._entries)

    def registered(self) -> list[Entry]:
        """The entries so far, without looking for extensions."""
        return list(self._entries.values())

    def where(self, condition: Callable[[Entry], object]) -> list[str]:
        """Names of the entries that satisfy a condition."""
        load_extensions()
        return [name for name, entry in self._entries.items() if condition(entry)]

    def check(self, name: object, otherwise: str = "") -> None:
        """Raise a ValueError that says what came, what is allowed and the nearest name, unless ``name`` is known.

        ``otherwise`` names what is allowed beside the names.
        """
        if name not in self._entries and not (isinstance(name, str) and self._found(name)):
            check(self.kind, name, self.names(), otherwise)

    def _found(self, name: str) -> bool:
        if name not in self._entries:
            load_extensions()
        return name in self._entries
