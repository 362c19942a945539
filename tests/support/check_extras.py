"""Check that every extra can be installed from wheels alone, on every Python of the classifiers; nothing is installed.

Extras are resolved together, because pip takes several seconds for each: versions that suit all of them suit each one.
"""

from __future__ import annotations

import subprocess
import sys
import time
import tomllib
from pathlib import Path

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
PYTHON = "Programming Language :: Python :: 3."
ALONE = "cuda12"
"""Excludes another extra, cuda13."""


def check() -> None:
    """Raise SystemExit, with what pip says, where a wheel is missing or the package index cannot be reached."""
    begin = time.monotonic()
    extras = PROJECT["optional-dependencies"]
    groups = [[name for name in extras if name != ALONE], [ALONE]]
    versions = [f"3.{name.removeprefix(PYTHON)}" for name in PROJECT["classifiers"] if name.startswith(PYTHON)]
    runs = [(version, group, _pip(version, group)) for version in versions for group in groups]
    failed = False
    for version, group, pip in runs:
        said = pip.communicate()[1]
        if pip.returncode:
            failed = True
            print(f"Python {version}, {', '.join(group)}:\n{said}", file=sys.stderr)
    if failed:
        sys.exit(1)
    print(f"{len(extras)} extras from wheels on Python {' and '.join(versions)}: {time.monotonic() - begin:.0f} s")


def _pip(version: str, group: list[str]) -> subprocess.Popen[str]:
    needed = [need for name in group for need in PROJECT["optional-dependencies"][name]]
    own = [need for need in needed if not need.startswith(f"{PROJECT['name']}[")]  # made of other extras of the group
    options = ["--dry-run", "-q", "--only-binary", ":all:", "--python-version", version, "--target", "never-made"]
    command = [sys.executable, "-m", "pip", "install", *options, *PROJECT["dependencies"], *own]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


if __name__ == "__main__":
    check()
