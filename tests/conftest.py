"""Set up every test: signals, warnings, the CUDA simulator, the backends under test and the turns on a GPU."""

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

from tests.support.checkout import ROOT, usable_backends
from tests.support.simulation import SIMULATED, take_turns

for name in ("SIGINT", "SIGHUP"):  # a shell or nohup ignores these for background processes
    number = vars(signal).get(name)
    if number is not None and signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.default_int_handler if name == "SIGINT" else signal.SIG_DFL)
# processes that tests start import this checkout, in any folder
os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
if SIMULATED:
    take_turns()
settings.register_profile("wavefilt", deadline=None, max_examples=60, derandomize=True)
settings.load_profile("wavefilt")


def pytest_sessionstart(session):
    """Turn warnings into errors, after other plug-ins are configured: pytest-benchmark warns then beside xdist."""
    session.config.addinivalue_line("filterwarnings", "error")


def pytest_collection_modifyitems(config, items):
    """Select the tests of the CUDA simulator in its process, and all others elsewhere."""
    chosen = [item for item in items if (item.get_closest_marker("inside") is not None) == SIMULATED]
    if len(chosen) < len(items):
        kept = set(chosen)
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = chosen


def pytest_collection_finish():
    """Exempt imported modules from garbage collection, which benchmarks call often."""
    gc.freeze()


def _parameter(name: str):
    return pytest.param(name, marks=pytest.mark.gpu) if name == "cuda" else name


@pytest.fixture(params=map(_parameter, usable_backends()))
def backend(request) -> str:
    """Return the name of each backend that can run here."""
    return request.param


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(20261120)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Run a test that fills or watches the memory of a GPU alone, other GPU tests side by side in several processes.

    The lock includes the fixtures of a module, which may be the first to use the GPU.
    """
    if item.get_closest_marker("gpu") is None:
        return (yield)
    import fcntl

    alone = item.get_closest_marker("whole_gpu") is not None
    with (Path(tempfile.gettempdir()) / f"wavefilt-gpu-tests-{os.getuid()}").open("a") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
        return (yield)
