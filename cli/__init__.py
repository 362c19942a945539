"""The `wavefilt` command: parsing, messages and exit codes; no numerics."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import NoReturn

import click

from wavefilt import __version__, interrupts, limits

from .failure import Failure, tell

COMMANDS = {
    "denoise": "Denoise files by wavelet shrinkage; results keep the input format.",
    "convert": "Write files in another format, with the headers that map.",
    "compare": "Rank threshold rules on a file of your own, without a clean signal.",
    "tune": "Search for the best options for a file, and print the command.",
    "view": "Show a file before and after denoising, and choose options, in a browser.",
    "info": "Show what a file holds: format, traces, sampling, noise by level.",
    "wavelets": "List the wavelets.",
    "backends": "List the backends and what they need.",
    "warm-up": "Compile kernels before they are needed.",
    "bench": "Measure this machine.",
    "ske": "Estimate CUDA kernels before they run.",
}
"""Each command with its line in `wavefilt --help`, so that listing them imports none of them."""

EXIT_CODES = """\b
Exit codes: 0 done, 1 the run failed, 2 wrong usage (or output exists),
3 unreadable or unknown file, 4 some files of a batch failed,
5 the backend asked for cannot run here, 130 interrupted."""


class Group(click.Group):
    """Commands imported when they run."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        command: click.Command = import_module(f"wavefilt.cli.{name.replace('-', '_')}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.command(
    cls=Group, epilog=EXIT_CODES, context_settings={"help_option_names": ["-h", "--help"], "show_default": True}
)
@click.version_option(__version__, prog_name="wavefilt")
def group() -> None:
    """Wavelet denoising of seismic and other sampled data."""


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command and leave with its exit code."""
    try:
        with interrupts.end_in_time():
            code = group.main(arguments, prog_name="wavefilt", standalone_mode=False)
    except Failure as failure:
        failure.show()
        code = failure.code
    except click.exceptions.NoArgsIsHelpError as error:
        error.show()
        code = error.exit_code
    except click.ClickException as error:
        tell(f"wavefilt: error: {error.format_message()}")
        if isinstance(error, click.UsageError) and error.ctx:
            click.echo(f"See {error.ctx.command_path} --help", err=True)
        code = error.exit_code
    except (click.Abort, KeyboardInterrupt):
        click.echo("Interrupted.", err=True)
        code = 130
    except BrokenPipeError:
        # the reader of the output has closed it; closing the stream again would fail
        sys.stdout = None
        code = 1
    except Exception as error:
        if not limits.out_of_memory(error) and not isinstance(error, OSError):
            raise
        words = "not enough memory" if limits.out_of_memory(error) else str(error)
        tell(f"wavefilt: error: {words}")
        sys.stdout = None  # what is buffered cannot be written either
        code = 1
    sys.exit(code)
