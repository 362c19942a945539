"""The `wavefilt` command: its commands, messages and exit codes; no numerics."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from importlib import import_module
from typing import Any, NoReturn

import click

from wavefilt import __version__, interrupts
from wavefilt.errors import BackendUnavailable, DamagedSamples, FormatError, LayoutError, printable

COMMANDS = {
    "denoise": "Denoise files by wavelet shrinkage; results keep the input format.",
    "convert": "Write files in another format, with the headers that it supports.",
    "compare": "Rank threshold rules on your own file, without a clean signal.",
    "tune": "Search for the best options for a file, and print the command.",
    "view": "Show a file before and after denoising in a browser; change the options.",
    "info": "Show the contents of files: format, traces, sampling, noise by level.",
    "wavelets": "List the wavelets.",
    "backends": "List the backends and what they need.",
    "warm-up": "Compile kernels before they are needed.",
    "bench": "Measure this machine.",
    "ske": "Estimate CUDA kernels before they run.",
}
"""Each command with its line in `wavefilt --help`, so that listing them imports none of them."""
MODULES = {"tune": "compare", "backends": "warm_up"}
"""The modules of commands that are not in one of their own."""

EXIT_CODES = """\b
Exit codes: 0 done, 1 the run failed, 2 wrong usage (or output exists),
3 unreadable or unknown file, 4 some files of a batch failed,
5 the selected backend cannot run here, 130 interrupted."""


class Group(click.Group):
    """Commands that are imported when they run."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, name: str) -> click.Command | None:
        if name not in COMMANDS:
            return None
        attribute = name.replace("-", "_")
        module = import_module(f"wavefilt.cli.{MODULES.get(attribute, attribute)}")
        command: click.Command = getattr(module, attribute)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))


@click.command(
    cls=Group,
    commands=COMMANDS,  # click suggests these names for one that is misspelt
    epilog=EXIT_CODES,
    context_settings={"help_option_names": ["-h", "--help"], "show_default": True},
)
@click.version_option(__version__, prog_name="wavefilt")
def group() -> None:
    """Wavelet denoising of seismic and other sampled data."""
    if sys.stderr is not None:  # "compiling kernels", on a terminal over a bar
        logging.basicConfig(format="\r%(message)-79s" if sys.stderr.isatty() else "%(message)s")
        logging.getLogger("wavefilt").setLevel(logging.INFO)


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run the command and leave with its exit code."""
    with interrupts.caught() as arrived:
        try:
            code = group.main(arguments, prog_name="wavefilt", standalone_mode=False)
            if arrived:  # in a callback, from which Python raises nothing
                code = _interrupted(arrived)
        except (click.Abort, KeyboardInterrupt):
            code = _interrupted(arrived)
        except SystemExit as error:
            code = _interrupted(arrived) if arrived else error.code
        except Exception as error:
            code = _interrupted(arrived) if arrived else _failed(error)  # a library may replace KeyboardInterrupt
    sys.exit(code)


def _interrupted(arrived: list[int]) -> int:
    tell("Interrupted.")
    return 128 + (arrived or [2])[0]


def _failed(error: Exception) -> int:
    """Print an error and return the exit code."""
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        error.show()
        return error.exit_code
    if isinstance(error, BrokenPipeError):  # the reader of the output has closed it; closing it again would fail
        sys.stdout = None
        return 1
    if isinstance(error, click.ClickException):
        tell(f"wavefilt: error: {as_flags(error.format_message())}")
        if isinstance(error, click.UsageError) and error.ctx:
            tell(f"See {error.ctx.command_path} --help")
        return error.exit_code
    if sys.flags.dev_mode:  # python -X dev
        import traceback

        traceback.print_exception(error)
    tell(f"wavefilt: error: {message(error)}")
    sys.stdout = None  # the buffered output cannot be written either
    return 1


def tell(*lines: str) -> None:
    """Print lines on standard error; a failure to write is ignored."""
    try:
        for line in lines:
            click.echo(printable(line), err=True)
    except OSError:
        sys.stderr = None  # Python would try again at exit, and change the exit code


class Failure(click.ClickException):
    """An error that ends the command: a message and the exit code."""

    def __init__(self, message: str, code: int) -> None:
        super().__init__(message)
        self.exit_code = code  # type: ignore[misc]  # of the class in click's own exceptions

    def __reduce__(self) -> Any:
        """Let processes send it."""
        return Failure, (self.message, self.exit_code)


def message(error: BaseException) -> str:
    """Return the text of an error for users of the command: in one sentence, with flags instead of option names."""
    if isinstance(error, ModuleNotFoundError) and error.name == "pywt":
        return "PyWavelets is not installed: pip install PyWavelets"
    if isinstance(error, MemoryError):
        return "not enough memory; wavefilt denoise --max-memory SIZE needs less"
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}" if error.filename else error.strerror
    if isinstance(error, ValueError | TypeError | ImportError | OSError | RuntimeError) and str(error):
        return as_flags(str(error))
    return ": ".join([type(error).__name__, *filter(None, [" ".join(str(error).split())])])  # of another library


def as_flags(text: str) -> str:
    """Return a text in which options in backticks are flags: `max_memory=5` becomes --max-memory 5."""
    if "`" not in text:  # the import below fails without PyWavelets
        return text
    from wavefilt.options import NOISE_FLAGS

    from .options import FLAGS

    context = click.get_current_context(silent=True)
    own = [param for param in (context.command.params if context else []) if isinstance(param, click.Option)]
    flags = FLAGS | {param.name: param.opts[-1] for param in own}

    def flag(match: re.Match[str]) -> str:
        name, value = match.groups()
        if name not in flags:
            return match[0]
        if form := re.fullmatch(r"\('(\w+)', (.*)\)", value or "") if name == "sigma" else None:
            return f"--{NOISE_FLAGS.get(form[1], name)} {form[2].replace(', ', ' ')}"
        return " ".join([flags[name], *([] if value in (None, "True", "...") else [value.strip("\"'")])])

    return re.sub(r"`(\w+)(?:=([^`]*))?`", flag, text)


@contextmanager
def _errors(code: int, path: str = "", *notes: str) -> Iterator[None]:
    """Context manager: turn an error into a `Failure` with this exit code; it names the path and ends with the notes.

    If a backend or GPU is missing, the code is 5; for a wrong or missing option it is 2, and for damage found while a
    file is processed 3.
    """
    try:
        yield
    except click.ClickException:
        raise
    except BackendUnavailable as error:
        raise Failure(message(error), 5) from error
    except Exception as error:
        code = UNREADABLE if isinstance(error, DamagedSamples) else code
        if code == UNREADABLE and isinstance(error, FormatError):  # its message begins with the path
            raise Failure(message(error), WRONG_USAGE if isinstance(error, LayoutError) else code) from error
        wrong = (ValueError, TypeError, ImportError, OSError) if code == WRONG_USAGE else (ValueError,)
        if code != FAILED and isinstance(error, wrong):
            raise click.UsageError(message(error)) from error
        if code == WRONG_USAGE or (code == UNREADABLE and isinstance(error, MemoryError)):
            raise
        strerror = isinstance(error, OSError) and error.strerror
        text = strerror if code == UNREADABLE and strerror else message(error).removeprefix(f"{path}: ")
        raise Failure("; ".join([f"{path}: {text}", *notes]), code) from error


FAILED, WRONG_USAGE, UNREADABLE = 1, 2, 3
run_errors, usage_errors, read_errors = (partial(_errors, code) for code in (FAILED, WRONG_USAGE, UNREADABLE))
"""Context managers for running a file, for checking options, and for reading a file: see `_errors`."""
