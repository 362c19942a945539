"""The code blocks of a page of the documentation, and a program that runs them.

``python -m tests.support.pages docs/tutorial.md`` runs the blocks of a page one after another in the current folder:
Python in one namespace, shell commands by bash. The lines after a command (``console``), or a ``text`` block after
Python, are the output that is expected. Python in a comment that begins ``<!-- run first`` prepares what a reader has
already. A block after ``<!-- not run: REASON -->`` is only parsed, down to the options of ``wavefilt``. The program
exits with `SKIPPED` where a page needs a package that is not installed.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from importlib.metadata import distributions
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

from tests.support.checkout import ROOT
from tests.support.simulation import SIMULATED, take_turns

BLOCK = re.compile(
    r"^```\{.*?^```$|^<!-- run first\n(?P<first>.*?)^-->$"
    r"|^(?:<!-- not run: (?P<reason>[^>]+) -->\n)?```(?P<language>[a-z]+)\n(?P<code>.*?)^```$"
    r"(?:\n\n```text\n(?P<printed>.*?)^```$)?",
    re.DOTALL | re.MULTILINE,
)
CHANGING = re.compile(r"\d[\d.e+-]*(?= s\b| files/s)|(?<=^seconds) .*", re.MULTILINE)
"""Printed times."""
SKIPPED = 77


class Block(NamedTuple):
    """Code at a line of a page, its language ("first" where it is hidden), and the reason why it is not run."""

    line: int
    language: str
    code: str
    reason: str | None = None
    printed: str = ""


def blocks(page: Path) -> list[Block]:
    """Return all blocks of a page except directives of Sphinx."""
    text = page.read_text("utf-8")
    found = []
    for match in filter(lambda match: match.lastgroup is not None, BLOCK.finditer(text)):
        line = text.count("\n", 0, match.start()) + 1
        language, code = ("first", match["first"]) if match["first"] else (match["language"], match["code"])
        found.append(Block(line, language, code, match["reason"], match["printed"] or ""))
    return found


def commands(block: Block) -> list[tuple[str, str]]:
    """Return the commands of a shell block, and for a console block the expected output of each."""
    if block.language == "sh":
        return [(block.code, "")]
    parts = re.split(r"^\$ ", block.code, flags=re.MULTILINE)[1:]
    return [(command, printed) for command, _, printed in (part.partition("\n") for part in parts)]


def same(expected: str, printed: str) -> bool:
    """Return whether all expected text was printed, with any line breaks and times, and with any text for dots."""
    wanted, found = (re.sub(r"\s+", " ", CHANGING.sub("@", text)).strip() for text in (expected, printed))
    return re.search(".*".join(map(re.escape, wanted.split("..."))), found) is not None


def parse(block: Block) -> None:
    """Check a block without running it. Raises ValueError, SyntaxError or click's UsageError."""
    parsers = {"python": lambda code: compile(code, "block", "exec"), "toml": tomllib.loads, "json": json.loads}
    if block.language in parsers:
        parsers[block.language](block.code)
    elif block.language in ("sh", "console"):
        code = "\n".join(command for command, _ in commands(block))
        done = subprocess.run(["bash", "-n", "-c", code], capture_output=True, text=True)
        if done.returncode:
            raise SyntaxError(done.stderr)
        for line in code.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            if words[:1] == ["wavefilt"]:
                _parse_command(words[1:])


def _parse_command(words: list[str]) -> None:
    import click

    from wavefilt.cli import group as command

    while isinstance(command, click.Group):
        name, *words = words
        command = command.get_command(click.Context(command), name)
        assert command is not None, f"there is no command {name!r}"
    command.make_context(command.name, words)


def run(page: Path) -> None:
    """Run a page. Raises the errors of its Python, and AssertionError for a command that fails or prints otherwise."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    for block in blocks(page):
        where = f"{page.name}:{block.line}"
        if block.reason is not None or block.language in ("toml", "json"):
            parse(block)
        elif block.language in ("python", "first"):
            with contextlib.redirect_stdout(io.StringIO()) as output:
                _execute("\n" * block.line + block.code, page, namespace)
            assert same(block.printed, output.getvalue()), f"{where}: printed\n{output.getvalue()}"
        elif block.language in ("sh", "console"):
            for command, expected in commands(block):
                _shell(command, expected, where)
        else:
            assert block.language == "text", f"{where}: nothing runs a block of {block.language!r}"


def _execute(code: str, page: Path, namespace: dict[str, object]) -> None:
    try:
        exec(compile(code, str(page), "exec"), namespace)
    except ImportError as error:
        top = (error.name or "").partition(".")[0]
        if _lacks(str(error)) or (top and find_spec(top) is None):
            sys.exit(SKIPPED)
        raise


def _lacks(printed: str) -> bool:
    """Return whether the text says to install a package, or an extra, that is not installed."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    installed = {found.name.lower() for found in distributions()}
    wanted = []
    for name, extra in re.findall(r'pip install "?([\w.-]+)(?:\[([\w-]+)\])?', printed):
        wanted += extras.get(extra, [name])
    return any(re.match(r"[\w.-]+", one)[0].lower() not in installed for one in wanted)


def _shell(code: str, expected: str, where: str) -> None:
    """Run by bash; lines of nothing but ``wavefilt`` in this process, which saves the time to start one for each."""
    lines = code.splitlines()
    plain = all(re.fullmatch(r"wavefilt [^|&;<>$`\\]+", line) for line in lines)
    for command in lines if plain else [code]:
        status, printed = (_command if plain else _bash)(command)
        if status and _lacks(printed):
            sys.exit(SKIPPED)
        assert bool(status) == ("error:" in expected), f"{where}: {command} ended with {status}\n{printed}"
        assert same(expected, printed), f"{where}: {command} printed\n{printed}"


def _bash(command: str) -> tuple[int, str]:
    both = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    done = subprocess.run(["bash", "-e", "-c", command], text=True, check=False, **both)
    return done.returncode, done.stdout


def _command(command: str) -> tuple[int, str]:
    from wavefilt.cli import main

    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output):
        try:
            main(shlex.split(command, comments=True)[1:])
        except SystemExit as left:
            return int(left.code or 0), output.getvalue()
    return 0, output.getvalue()


if __name__ == "__main__":
    bin_folder = Path("bin").absolute()  # with commands that are installed with the package
    bin_folder.mkdir()
    for name, words in {"wavefilt": "-m wavefilt", "python": ""}.items():
        (bin_folder / name).write_text(f'#!/bin/sh\nexec {sys.executable} {words} "$@"\n')
        (bin_folder / name).chmod(0o755)
    os.environ["PATH"] = f"{bin_folder}:{os.environ['PATH']}"
    if SIMULATED:
        take_turns()
    run(Path(sys.argv[1]))
