"""What measurements depend on: processor, GPU, driver, versions, commit. In every JSON of `results/`."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import date
from importlib.metadata import PackageNotFoundError
from importlib.metadata import version as installed
from pathlib import Path

from wavefilt import backends, threads
from wavefilt.benchmarks.common.tables import Row
from wavefilt.errors import BackendUnavailable

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("wavefilt", "numpy", "scipy", "PyWavelets", "numba", "numba-cuda", "torch", "ptwt")


def result(study: str, **facts: object) -> Row:
    """The JSON of a study: its name, the date, the environment, and what it measured."""
    return {"study": study, "date": date.today().isoformat(), "environment": environment(), **facts}


def environment() -> Row:
    """Date, processor, cores and threads in use, load, GPU with its driver, versions of what is installed, commit."""
    from wavefilt.benchmarks.scaling import gsl

    try:
        gpu = backends.get("cuda").describe()
    except BackendUnavailable:
        gpu = None
    return {
        "date": date.today().isoformat(),
        "processor": _processor(),
        "cores": threads.available_cpus(),
        "threads": threads.get_num_threads(),
        "load": _load(),
        "gpu": gpu,
        "python": platform.python_version(),
        "versions": {name: version(name) for name in PACKAGES} | {"GSL": gsl.version()},
        "commit": commit(),
    }


def version(name: str) -> str | None:
    """Of an installed package; None if it is not there."""
    try:
        return installed(name)
    except PackageNotFoundError:
        return None


def commit() -> str | None:
    """Of the checkout that this runs from, marked where files differ from it; None outside a checkout."""

    def git(*arguments: str) -> str:
        return subprocess.run(
            ["git", "-C", str(ROOT), *arguments], capture_output=True, text=True, check=True, timeout=20
        ).stdout.strip()

    try:
        if Path(git("rev-parse", "--show-toplevel")).resolve() != ROOT:
            return None
        changed = git("status", "--porcelain", "--untracked-files=no")
        return git("rev-parse", "HEAD") + (" with changes" if changed else "")
    except (OSError, subprocess.SubprocessError):
        return None


def _load() -> float | None:
    """Of the last minute; None where the system does not tell."""
    try:
        return os.getloadavg()[0]
    except (AttributeError, OSError):
        return None


def _processor() -> str:
    try:
        with open("/proc/cpuinfo") as lines:
            return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
