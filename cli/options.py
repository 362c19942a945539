"""Types of options, and options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import click

from wavefilt.outofcore.sizes import in_bytes

Command = TypeVar("Command", bound=Callable[..., None])

FILE = click.Path(dir_okay=False)
FOLDER = click.Path(file_okay=False)
COUNT = click.IntRange(min=1)

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
json_file = click.option("--json", "json_path", type=FILE, metavar="FILE", help="Save the results here.")
DEVICE = click.option(
    "--device", help="For estimates: a calibration by its name, or FILE.json of `ske calibrate`. [default: of this GPU]"
)
"""The device that the SKE model estimates."""


class Parsed(click.ParamType):
    """What a function makes of the text; its ValueError is wrong usage."""

    name = "text"

    def __init__(self, parse: Callable[[str], object]) -> None:
        self.parse = parse

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> object:
        try:
            return self.parse(value) if isinstance(value, str) else value
        except ValueError as error:
            self.fail(str(error), param, ctx)


class Named(click.Option):
    """An option whose help ends with the names that can be given, those that other packages registered included."""

    def __init__(self, *declarations: Any, names: Callable[[], Iterable[str]], **attributes: Any) -> None:
        super().__init__(*declarations, **{"metavar": "NAME", **attributes})
        self.names, self.introduction = names, self.help

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


SIZE = Parsed(whole)
