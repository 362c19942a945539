"""What several test files share: the backends under test, deterministic data, a way to run the command."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from pathlib import Path

import pytest

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # its threads wait by spinning; read when numpy is imported

import numpy as np
from hypothesis import settings
from simulation import SIMULATED, take_turns

from wavefilt import BackendUnavailable, backends

ROOT = Path(__file__).parents[1]
SAMPLES = ROOT / "samples"
FIELD = sorted((ROOT.parent / "shared" / "data" / "field").glob("*.dat"))
"""Real field records, where they lie beside the checkout."""

if SIMULATED:
    take_turns()
settings.register_profile("wavefilt", deadline=None, max_examples=60, derandomize=True)
settings.load_profile("wavefilt")


def pytest_collection_modifyitems(items):
    """Tests of kernels compiled for sm_90 can be run alone, where there is a compiler."""
    for item in items:
        if "compiled" in getattr(item, "fixturenames", ()):
            item.add_marker("sm_90")


def pytest_collection_finish():
    """What was imported stays: the garbage collector, which benchmarks call, need not go through it again and again."""
    gc.freeze()


def usable_backends() -> list[str]:
    return [name for name, state in backends.available().items() if not isinstance(state, BackendUnavailable)]


def _parameter(name: str):
    return pytest.param(name, marks=pytest.mark.gpu) if name == "cuda" else name


@pytest.fixture(params=map(_parameter, usable_backends()))
def backend(request) -> str:
    """Every backend that can run here."""
    return request.param


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20261120)


def run_cli(*arguments, cwd=None, stdin=None, env=None) -> subprocess.CompletedProcess:
    """`wavefilt ARGUMENTS` in a process of its own, output as bytes."""
    command = [sys.executable, "-m", "wavefilt.cli", *map(str, arguments)]
    return subprocess.run(command, cwd=cwd or ROOT, input=stdin, capture_output=True, env=env, timeout=120)


def noisy_chirp(rng, traces=1, samples=2048, sd=0.3, dtype="f8"):
    """Clean chirps (traces, samples) and the same with white noise."""
    t = np.linspace(0, 1, samples)
    clean = np.sin(30 * (1 + np.arange(traces)[:, None]) ** 0.3 * t**2) * np.exp(-t)
    return clean.astype(dtype), (clean + sd * rng.standard_normal(clean.shape)).astype(dtype)
