"""The facts that measurements depend on: processor, GPU, versions, commit. Every JSON in `results/` has them."""

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
RESULTS = ROOT / "benchmarks" / "results"
PACKAGES = ("wavefilt", "numpy", "scipy", "PyWavelets", "numba", "numba-cuda", "cupy", "torch", "ptwt")
CHANGED = " with changes"
"""Follows a commit if tracked files differ from it."""


def result(study: str, **facts: object) -> Row:
    """Return the JSON of a study: its name, the date, the environment, and its measurements."""
    return {"study": study, "date": date.today().isoformat(), "environment": environment(), **facts}


def environment() -> Row:
    """Return date, processor, cores and threads, load, GPU with its driver, versions of packages, and commit."""
    from wavefilt.benchmarks import gsl

    try:
        gpu = backends.get("cuda").describe()
    except BackendUnavailable:
        gpu = None
    return {
        "date": date.today().isoformat(),
        "processor": _processor(),
        "cores": threads.available_cpus(),
        "threads": threads.get_num_threads(),
        "load": os.getloadavg()[0] if hasattr(os, "getloadavg") else None,
        "gpu": gpu,
        "python": platform.python_version(),
        "versions": {name: version(name) for name in PACKAGES} | {"GSL": gsl.version()},
        "commit": commit(),
    }


def version(name: str) -> str | None:
    """Return the version of an installed package; None if it is not installed."""
    try:
        return installed(name)
    except PackageNotFoundError:
        return None


def commit() -> str | None:
    """Return the commit of the checkout that runs, marked if files differ from it; None outside a checkout."""
    head = _git("rev-parse", "HEAD")
    return head and head + (CHANGED if uncommitted() else "")


def uncommitted(*excepted: Path) -> list[str]:
    """List tracked files that differ from the commit, without ``excepted`` files and those in `RESULTS`."""
    lines = (_git("status", "--porcelain", "--untracked-files=no") or "").splitlines()
    names = [line[2:].strip().rpartition(" -> ")[2].strip('"') for line in lines]
    ignored = {path.resolve() for path in excepted}
    return [name for name in names if RESULTS not in (ROOT / name).parents and (ROOT / name).resolve() not in ignored]


def _git(*arguments: str) -> str | None:
    """Return the output of git in this checkout; None outside a checkout and without git."""

    if not (ROOT / ".git").exists():
        return None
    command = ["git", "-C", str(ROOT), *arguments]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=True, timeout=20).stdout.strip("\n")
    except (OSError, subprocess.SubprocessError):
        return None


def _processor() -> str:
    try:
        with open("/proc/cpuinfo") as lines:
            return next(line.split(":")[1].strip() for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
