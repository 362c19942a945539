"""Types of options, and options that several commands share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import click

Command = TypeVar("Command", bound=Callable[..., None])

FILE = click.Path(dir_okay=False)
FOLDER = click.Path(file_okay=False)
COUNT = click.IntRange(min=1)
SETTINGS = {"show_default": True}
"""Of the context of every command."""
UNITS = {"": 1, "k": 1 << 10, "ki": 1 << 10, "m": 1 << 20, "mi": 1 << 20, "g": 1 << 30, "gi": 1 << 30}

as_json = click.option("--json", "as_json", is_flag=True, help="Print JSON.")
json_file = click.option("--json", "json_path", type=FILE, metavar="FILE", help="Save the results here.")
DEVICE = click.option(
    "--device", help="For estimates: a calibration by its name, or FILE.json of `ske calibrate`. [default: of this GPU]"
)
"""The device that the SKE model estimates."""


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


def whole(ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    """A number with a binary unit: 65536, 64Ki, 64Mi."""
    if value is None:
        return None
    digits = value.strip().rstrip("kKmMgGiI")
    unit = value.strip()[len(digits) :].lower()
    if not digits.isdecimal() or unit not in UNITS or int(digits) < 1:
        raise click.BadParameter(f"{value!r} is no size such as 65536, 64Ki or 64Mi", ctx, param)
    return int(digits) * UNITS[unit]
