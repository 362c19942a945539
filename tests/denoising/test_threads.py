"""The number of threads, and no harm from forks, other pools, nested calls, errors and signals."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

import wavefilt

ENVIRONMENT = "WAVEFILT_NUM_THREADS"
X = np.random.default_rng(3).standard_normal((4, 40_000)).astype("f4")


def denoised(x=X):
    return wavefilt.denoise(x, "db4", level=4, backend="numba")


@pytest.fixture(autouse=True)
def four_threads(monkeypatch):
    monkeypatch.delenv(ENVIRONMENT, raising=False)
    wavefilt.set_num_threads(4)
    yield
    wavefilt.set_num_threads(None)


def python(code, **env):
    """Run ``code`` in a new process, with common imports."""
    before = "import os, signal, sys, threading, warnings, numpy as np, wavefilt\n"
    before += "warnings.simplefilter('ignore', DeprecationWarning)\n"  # Python 3.12 on: fork with threads about
    before += "from tests.denoising.test_threads import X, denoised\n"
    return subprocess.run(
        [sys.executable, "-c", before + code],
        capture_output=True,
        text=True,
        timeout=100,
        env=os.environ | env,
    )


def test_the_default_is_the_affinity_of_the_process():
    code = "print(wavefilt.get_num_threads())"
    if hasattr(os, "sched_setaffinity"):
        wanted = "1"
        code = "os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])\n" + code
    else:
        wanted = str(os.cpu_count())
    assert python(code, WAVEFILT_NUM_THREADS="").stdout.strip() == wanted


def test_the_environment_is_read_and_a_call_outranks_it(monkeypatch):
    monkeypatch.setenv(ENVIRONMENT, " 3 ")
    assert wavefilt.get_num_threads() == 4
    wavefilt.set_num_threads(None)
    assert wavefilt.get_num_threads() == 3


@pytest.mark.parametrize("value", ["0", "-1", "two", "1.5", "²"])
def test_an_environment_that_is_no_number(monkeypatch, value):
    wavefilt.set_num_threads(None)
    monkeypatch.setenv(ENVIRONMENT, value)
    with pytest.raises(ValueError, match=ENVIRONMENT):
        wavefilt.get_num_threads()
    for samples in (50, 100_000):
        with pytest.raises(ValueError, match=ENVIRONMENT):
            wavefilt.wavedec(np.ones(samples), "db2", backend="numba")


@pytest.mark.parametrize("value", [0, -2, 1.5, True, "2"])
def test_a_number_that_makes_no_sense(value):
    with pytest.raises(ValueError, match="whole number"):
        wavefilt.set_num_threads(value)
    assert wavefilt.get_num_threads() == 4


def test_far_more_threads_than_work():
    expected = denoised()
    wavefilt.set_num_threads(10**12)
    assert np.array_equal(denoised(), expected)


def test_an_error_leaves_later_calls_working():
    expected, broken = denoised(), X.copy()
    broken[3, 39_000] = np.inf
    for _ in range(3):
        with pytest.raises(ValueError, match="trace 3"):
            denoised(broken)
        assert np.array_equal(denoised(), expected)


SIGNALS = """
import faulthandler, random, time
faulthandler.dump_traceback_later(90, exit=True)
class Out(Exception): pass
def out(*_):
    global raised
    raised += 1
    raise Out
signal.signal(signal.SIGALRM, out)
random.seed(5)
rng = np.random.default_rng(0)
xs = [rng.standard_normal(shape, "f4") for shape in ((24, 1024), (3, 20_001), (1, 1 << 17))]
ways = [{}, {"rule": "js"}, {"rule": "sure"}, {"transform": "modwt", "level": 2}, {"scope": "record"}]
pairs = [(x, way) for x in xs for way in ways]
raised, left, longest, end = 0, 0, 0.2, time.monotonic() + 8
def denoise_until_the_end():  # a function: not every jump of a loop in `try` belongs to it
    global longest
    while time.monotonic() < end:
        x, way = random.choice(pairs)
        wavefilt.denoise(x, backend="numba", **way)
        longest = 3e-3  # kernels are loaded
    signal.setitimer(signal.ITIMER_REAL, 0)
    time.sleep(0.01)
while time.monotonic() < end:
    try:
        signal.setitimer(signal.ITIMER_REAL, random.uniform(1e-4, longest))
        denoise_until_the_end()
    except Out: left += 1
for x, way in pairs:
    first, *others = [wavefilt.denoise(x, backend="numba", **way) for _ in range(3)]
    assert all(np.array_equal(first, y) for y in others)
    assert np.allclose(first, wavefilt.denoise(x, backend="pywavelets", **way), atol=2e-4)
print(raised == left > 0)
"""


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs a signal to order")
def test_signal_handlers_that_raise_leave_later_calls_working():
    """The signal arrives at any moment, of the first call too; no exception is lost in a destructor."""
    done = python(SIGNALS, WAVEFILT_NUM_THREADS="2")
    assert (done.stdout.split(), done.stderr) == (["True"], "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_and_a_call_while_the_interpreter_ends():
    done = python(
        "wavefilt.set_num_threads(1); expected = denoised()\n"
        "wavefilt.set_num_threads(3); denoised()\n"
        "child = os.fork()\n"
        "same = np.array_equal(denoised(), expected)\n"
        "if child == 0: os._exit(0 if same else 1)\n"
        "print('child', os.waitpid(child, 0)[1], 'parent', same)\n"
        "def late():\n"
        "    threading.main_thread().join()\n"
        "    print('late', np.array_equal(denoised(), expected))\n"
        "threading.Thread(target=late).start()\n"
    )
    assert done.stdout.splitlines() == ["child 0 parent True", "late True"], done.stderr


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("delay", [0.01, 0.05, 0.1])
@pytest.mark.parametrize("before", ["", "wavefilt.denoise(X, backend='pywavelets')\n"], ids=["import", "kernels"])
def test_a_fork_while_another_thread_makes_the_first_call(before, delay):
    """Nobody would release locks of LLVM or of imports in the child, so the fork waits for them."""
    done = python(
        "import time; wavefilt.threads\n"
        f"{before}"
        f"first = threading.Thread(target=denoised); first.start(); time.sleep({delay})\n"
        "child = os.fork()\n"
        "if child == 0: signal.alarm(30); denoised(); os._exit(0)\n"
        "print(os.waitpid(child, 0)[1]); first.join()\n"
    )
    assert done.stdout.split() == ["0"], done.stderr


def test_a_subinterpreter():
    """NumPy loads in one interpreter of a process alone, with a warning in this one."""
    pytest.importorskip("_xxsubinterpreters")
    code = "import numpy as np, wavefilt; [wavefilt.denoise(np.ones((4, 999)), backend=b) for b in ('auto', 'numba')]; "
    code += "wavefilt.denoise(np.arange(4000.0).reshape(40, 100) % 7, transform='fk', axes=(0, 1), statics=True)"
    run = f"import _xxsubinterpreters as s; i = s.create(); s.run_string(i, {code!r}); s.destroy(i)"
    done = subprocess.run([sys.executable, "-W", "ignore", "-c", run], capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stderr


def test_workers_of_joblib_and_dask():
    pytest.importorskip("joblib")
    pytest.importorskip("dask")
    done = python(
        "import dask, joblib\n"
        "if __name__ == '__main__':\n"
        "    expected = denoised()\n"
        "    found = joblib.Parallel(2)(joblib.delayed(denoised)(X) for _ in range(6))\n"
        "    print('joblib', all(np.array_equal(f, expected) for f in found))\n"
        "    tasks = [dask.delayed(denoised)(X) for _ in range(6)]\n"
        "    found = dask.compute(*tasks, scheduler='processes', num_workers=2)\n"
        "    print('dask', all(np.array_equal(f, expected) for f in found))"
    )
    assert done.stdout.splitlines() == ["joblib True", "dask True"], done.stderr
