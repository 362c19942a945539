"""Check that every extra can be installed from wheels alone, on every Python in the classifiers; nothing is installed.

Extras are resolved together, because pip takes seconds for each: versions that suit all of them suit each one.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text())["project"]
PYTHON = "Programming Language :: Python :: 3."
ALONE = "cuda12"
"""Excludes another extra, cuda13."""


def start(version: str, extras: list[str]) -> subprocess.Popen[str]:
    """Start pip for a version of Python; it ends with an error if a wheel is missing."""
    needed = [need for name in extras for need in PROJECT["optional-dependencies"][name]]
    own = [need for need in needed if not need.startswith(f"{PROJECT['name']}[")]  # made of other extras of the group
    options = ["--dry-run", "-q", "--only-binary", ":all:", "--python-version", version, "--target", "never-made"]
    command = [sys.executable, "-m", "pip", "install", *options, *PROJECT["dependencies"], *own]
    return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)


if __name__ == "__main__":
    groups = [[name for name in PROJECT["optional-dependencies"] if name != ALONE], [ALONE]]
    versions = [f"3.{name.removeprefix(PYTHON)}" for name in PROJECT["classifiers"] if name.startswith(PYTHON)]
    runs = {(version, *group): start(version, group) for version in versions for group in groups}
    messages = {names: pip.communicate()[1] for names, pip in runs.items()}
    failed = {names: messages[names] for names, pip in runs.items() if pip.returncode}
    for (version, *group), message in failed.items():
        print(f"Python {version}, {', '.join(group)}:\n{message}", file=sys.stderr)
    sys.exit(bool(failed))
