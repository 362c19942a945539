"""The checkout under test: its folders, backends and command, and the least memory of streaming."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from wavefilt import BackendUnavailable, backends, denoise_file

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "samples"


def needs(module: str) -> pytest.MarkDecorator:
    """Skip a test, or one of its parameters, where the module of an extra is not installed."""
    return pytest.mark.skipif(find_spec(module) is None, reason=f"{module} is not installed")


def usable_backends() -> list[str]:
    return [name for name, state in backends.available().items() if not isinstance(state, BackendUnavailable)]


def run_cli(*arguments, cwd=None, stdin=None, env=None) -> subprocess.CompletedProcess:
    """`wavefilt ARGUMENTS` in a process of its own, output as bytes."""
    command = [sys.executable, "-m", "wavefilt", *map(str, arguments)]
    return subprocess.run(command, cwd=cwd or ROOT, input=stdin, capture_output=True, env=env, timeout=120)


def run(capsys, *arguments) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of the command, run in this process."""
    from wavefilt.cli import main

    with pytest.raises(SystemExit) as left:
        main([str(a) for a in arguments])
    output = capsys.readouterr()
    return left.value.code or 0, output.out, output.err


def least_memory(source: str | os.PathLike[str], **options: object) -> str:
    """Return the least ``max_memory`` for a file, which the error for a smaller one says."""
    target = Path(str(source).partition("::")[0]).with_name("never written")
    with pytest.raises(ValueError, match="minimum") as error:
        denoise_file(source, target, max_memory=1, **options)
    assert not target.exists()
    return re.findall(r"[\d.]+ [KMG]iB", str(error.value))[-1]
