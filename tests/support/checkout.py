"""The checkout under test: its folders, its backends, its command."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from wavefilt import BackendUnavailable, backends

ROOT = Path(__file__).parents[2]
SAMPLES = ROOT / "samples"
FIELD = sorted((ROOT.parent / "shared" / "data" / "field").glob("*.dat"))
"""Real field records, where they lie beside the checkout."""


def usable_backends() -> list[str]:
    return [name for name, state in backends.available().items() if not isinstance(state, BackendUnavailable)]


def run_cli(*arguments, cwd=None, stdin=None, env=None) -> subprocess.CompletedProcess:
    """`wavefilt ARGUMENTS` in a process of its own, output as bytes."""
    command = [sys.executable, "-m", "wavefilt.cli", *map(str, arguments)]
    return subprocess.run(command, cwd=cwd or ROOT, input=stdin, capture_output=True, env=env, timeout=120)
