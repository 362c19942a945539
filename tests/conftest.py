"""What several test files share: the backends under test, deterministic data, a way to run the command."""

from __future__ import annotations

import gc
import os
import signal
import tempfile
from pathlib import Path

import pytest

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # its threads wait by spinning; read when numpy is imported

import numpy as np
from hypothesis import settings

from tests.support.checkout import usable_backends
from tests.support.simulation import SIMULATED, take_turns

for name in ("SIGINT", "SIGHUP"):  # which a shell, or nohup, ignores for what it runs in the background
    own = vars(signal).get(name)
    if own is not None and signal.getsignal(own) is signal.SIG_IGN:
        signal.signal(own, signal.default_int_handler if name == "SIGINT" else signal.SIG_DFL)
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


def _parameter(name: str):
    return pytest.param(name, marks=pytest.mark.gpu) if name == "cuda" else name


@pytest.fixture(params=map(_parameter, usable_backends()))
def backend(request) -> str:
    """Every backend that can run here."""
    return request.param


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20261120)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Tests on a GPU run side by side in several processes; those that fill its memory, or watch it, run alone.

    With the fixtures of a module, which may begin to use the GPU.
    """
    if item.get_closest_marker("gpu") is None:
        return (yield)
    import fcntl

    alone = item.get_closest_marker("whole_gpu") is not None
    with (Path(tempfile.gettempdir()) / f"wavefilt-gpu-tests-{os.getuid()}").open("a") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        return (yield)
