"""Types of options, and options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from wavefilt.memory import in_bytes

Command = TypeVar("Command", bound=Callable[..., None])

FILE = click.Path(dir_okay=False)
FOLDER = click.Path(file_okay=False)
COUNT = click.IntRange(min=1)


class Text(click.ParamType):  # type: ignore[type-arg]  # no type argument at run time before click 8.5
    """A text, or what ``parse`` makes of it; its ValueError is wrong usage. Shells complete ``names`` or ``files``."""

    name = "text"

    def __init__(
        self,
        parse: Callable[[str], object] = str,
        *,
        names: Iterable[str] | Callable[[], Iterable[str]] = (),
        files: bool = False,
    ) -> None:
        self.parse, self._names, self.files = parse, names, files

    def names(self) -> list[str]:
        return list(self._names() if callable(self._names) else self._names)

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> object:
        try:
            return self.parse(value) if isinstance(value, str) else value
        except ValueError as error:
            self.fail(str(error), param, ctx)

    def shell_complete(self, ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
        """The names that begin so; where there is none, the shell's own completion of files if they are meant."""
        found = [CompletionItem(name) for name in self.names() if name.startswith(incomplete)]
        return found or [CompletionItem(incomplete, type="file")] * self.files


class Named(click.Option):
    """An option whose help ends with the names of its type, those that other packages registered included."""

    def __init__(self, *declarations: Any, type: Text, **attributes: Any) -> None:
        super().__init__(*declarations, **{"metavar": "NAME", "type": type, **attributes})
        self.names, self.introduction = type.names, self.help

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        self.help = f"{self.introduction} {', '.join(self.names())}."
        return super().get_help_record(ctx)


def add(*options: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Add options to a command, in this order."""

    def added(command: Command) -> Command:
        for option in reversed(options):
            command = option(command)
        return command

    return added


def whole(text: str) -> int:
    """A number with a binary unit: 65536, 64Ki, 64Mi."""
    try:
        return in_bytes(text)
    except ValueError:
        raise ValueError(f"{text!r} is no size such as 65536, 64Ki or 64Mi") from None


def wavelets() -> list[str]:
    from wavefilt.wavelets.filters import names

    return names()


def calibrations() -> list[str]:
    from wavefilt.ske import devices

    return devices.names()


SIZE = Text(whole)
INPUT = Text(files=True)
"""A file, with what may be added to its name: wildcards, ::NAME of an array."""
WAVELET = Text(names=wavelets)
DEVICE = click.option(
    "--device",
    type=Text(names=calibrations, files=True),
    help="For estimates: the name of a calibration (h200) or of a data sheet (a100, b200, l4, rtx4090), or FILE.json, "
    "either one. [default: of this GPU, or h200]",
)
"""The device that the SKE model estimates."""
as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
