"""The code blocks of a page of the documentation, and a program that runs them.

``python -m tests.support.pages docs/tutorial.md`` runs the blocks of a page one after another as they stand, in the
current folder: Python in one namespace, shell commands by bash. Lines after a command (``console``), or a ``text``
block after Python, are what it must print. Python in a comment that begins ``<!-- run first`` prepares what a reader
has already; it is run at its place. A block after ``<!-- not run: REASON -->`` is not run, but its Python is compiled
and its shell commands are parsed, down to the options of ``wavefilt``.
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
from dataclasses import dataclass
from pathlib import Path

from tests.support.simulation import SIMULATED, take_turns

BLOCK = re.compile(
    r"^```\{.*?^```$|^<!-- run first\n(?P<first>.*?)^-->$"
    r"|^(?:<!-- not run: (?P<reason>[^>]+) -->\n)?```(?P<language>[a-z]+)\n(?P<code>.*?)^```$"
    r"(?:\n\n```text\n(?P<printed>.*?)^```$)?",
    re.DOTALL | re.MULTILINE,
)
CHANGING = re.compile(r"\d[\d.e+-]*(?= s\b| files/s)|(?<=^seconds) .*", re.MULTILINE)
"""Printed times."""


@dataclass(frozen=True)
class Block:
    """Code at a line of a page, in a language ("first" where it is hidden), and why it is not run, if it is not."""

    line: int
    language: str
    code: str
    reason: str | None = None
    printed: str = ""


def blocks(page: Path) -> list[Block]:
    """All of a page but directives."""
    text = page.read_text("utf-8")
    return [
        Block(
            text.count("\n", 0, found.start()) + 1,
            found["language"] if found["first"] is None else "first",
            found["code"] if found["first"] is None else found["first"],
            found["reason"],
            found["printed"] or "",
        )
        for found in BLOCK.finditer(text)
        if found.lastgroup is not None  # a directive
    ]


def commands(block: Block) -> list[tuple[str, str]]:
    """Each command of a console block with what it printed."""
    parts = re.split(r"^\$ ", block.code, flags=re.MULTILINE)[1:]
    return [(command, printed) for command, _, printed in (part.partition("\n") for part in parts)]


def same(expected: str, printed: str) -> bool:
    """Whether all that is expected was printed, in any line breaks, for any times, and with anything for dots."""
    wanted, found = (re.sub(r"\s+", " ", CHANGING.sub("@", text)).strip() for text in (expected, printed))
    return re.search(".*".join(map(re.escape, wanted.split("..."))), found) is not None


def parse(block: Block) -> None:
    """What can be said of a block without running it. Raises ValueError, SyntaxError or click's UsageError."""
    if block.language == "python":
        compile(block.code, "block", "exec")
    elif block.language == "toml":
        tomllib.loads(block.code)
    elif block.language == "json":
        json.loads(block.code)
    elif block.language in ("sh", "console"):
        code = block.code if block.language == "sh" else "\n".join(command for command, _ in commands(block))
        done = subprocess.run(["bash", "-n", "-c", code], capture_output=True, text=True)
        if done.returncode:
            raise SyntaxError(done.stderr)
        for line in code.splitlines():
            words = shlex.split(line, comments=True)
            if words[:1] == ["wavefilt"]:
                _parse_command(words[1:])


def _parse_command(words: list[str]) -> None:
    import click

    from wavefilt.cli import group

    command: click.Command = group
    while isinstance(command, click.Group):
        name = words.pop(0)
        found = command.get_command(click.Context(command), name)
        assert found is not None, f"there is no command {name!r}"
        command = found
    command.make_context(command.name, words)


def run(page: Path) -> None:
    """Run a page. Raises what its Python raises, and AssertionError for a command that fails or prints otherwise."""
    namespace: dict[str, object] = {"__name__": "__main__"}
    for block in blocks(page):
        where = f"{page.name}:{block.line}"
        if block.reason is not None:
            parse(block)
        elif block.language in ("python", "first"):
            with contextlib.redirect_stdout(io.StringIO()) as output:
                exec(compile("\n" * block.line + block.code, str(page), "exec"), namespace)
            assert same(block.printed, output.getvalue()), f"{where}: printed\n{output.getvalue()}"
        elif block.language in ("toml", "json"):
            parse(block)
        elif block.language == "sh":
            _shell(block.code, "", where)
        elif block.language == "console":
            for command, expected in commands(block):
                _shell(command, expected, where)
        elif block.language != "text":
            raise AssertionError(f"{where}: nothing runs a block of {block.language!r}")


def _shell(code: str, expected: str, where: str) -> None:
    """By bash; lines of nothing but ``wavefilt`` in this process, which saves the time to start one for each."""
    lines = code.splitlines()
    plain = all(re.fullmatch(r"wavefilt [^|&;<>$`\\]+", line) for line in lines)
    for command in lines if plain else [code]:
        status, printed = (_command if plain else _bash)(command)
        failed = "error:" in expected
        assert bool(status) == failed, f"{where}: {command} ended with {status}\n{printed}"
        assert same(expected, printed), f"{where}: {command} printed\n{printed}"


def _bash(command: str) -> tuple[int, str]:
    done = subprocess.run(
        ["bash", "-e", "-c", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False
    )
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
