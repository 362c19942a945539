"""`wavefilt backends`."""

from __future__ import annotations

import json

import click

from .options import as_json


@click.command("backends")
@as_json
def command(as_json: bool) -> None:
    """List the backends: which can run here, and what the others need."""
    from wavefilt import backends

    state = {name: (not isinstance(line, Exception), str(line)) for name, line in backends.available().items()}
    if as_json:
        click.echo(json.dumps({name: {"usable": usable, "detail": line} for name, (usable, line) in state.items()}))
        return
    for name, (usable, line) in state.items():
        click.echo(f"{name:12} {'usable' if usable else 'missing':8} {line}")
