"""An error that ends the command, with one of the documented exit codes."""

from __future__ import annotations

import click


class Failure(Exception):
    """``str(failure)`` is for the user; ``code`` is the exit code."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.code = code

    def show(self) -> None:
        click.echo(f"wavefilt: error: {self}", err=True)
