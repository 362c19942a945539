"""Signals: kept back while kernels load, and obeyed by the command in bounded time."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
from functools import partial

import pytest

from tests.support import signalling
from tests.support.checkout import ROOT
from wavefilt import interrupts

interrupt = partial(signal.raise_signal, signal.SIGINT)


def test_a_signal_waits_for_the_end():
    done = []
    with pytest.raises(KeyboardInterrupt), interrupts.deferred():  # noqa: PT012
        interrupt()
        done.append(True)
    assert done
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_the_outermost_end_counts():
    done = []
    with pytest.raises(KeyboardInterrupt), interrupts.deferred():  # noqa: PT012
        with interrupts.deferred():
            interrupt()
        done.append(True)
    assert done


def test_a_second_signal_does_not_wait():
    done = []
    with pytest.raises(KeyboardInterrupt), interrupts.deferred():  # noqa: PT012
        interrupt()
        interrupt()
        done.append(True)
    assert not done


def test_other_threads_change_no_handlers():
    def work():
        with interrupts.deferred():
            found.append(signal.getsignal(signal.SIGINT))

    found = []
    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert found == [signal.default_int_handler]


def test_a_kernel_is_compiled_to_the_end(monkeypatch):
    compiler = pytest.importorskip("wavefilt.backends.numba_cpu.compiler")

    @compiler.jit
    def twice(x):
        return 2 * x

    monkeypatch.setattr(compiler._Cache, "load_overload", lambda *_: interrupt())
    monkeypatch.setattr(compiler._Cache, "save_overload", lambda *_: None)
    with pytest.raises(KeyboardInterrupt):
        twice(1.0)
    assert len(twice.signatures) == 1
    assert twice(2.0) == 4


SLOW = """
import sys, time
from wavefilt import interrupts
interrupts.PATIENCE = float(sys.argv[1])
interrupts.end_at_once()
with interrupts.end_in_time():
    try:
        print("ready", flush=True)
        time.sleep(60)
    finally:
        print("cleaning", flush=True)
        time.sleep(60)
"""


def _slow(patience: float) -> subprocess.Popen:
    process = subprocess.Popen(
        [sys.executable, "-c", SLOW, str(patience)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT
    )
    assert process.stdout.readline() == b"ready\n"
    return process


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_cleaning_up_takes_no_longer_than_its_time(number, code):
    process = _slow(0.2)
    process.send_signal(number)
    out, err = process.communicate(timeout=30)
    assert (process.returncode, out, err) == (code, b"cleaning\n", b"Interrupted.\n")


@pytest.mark.parametrize("where", ["in C", "while Python ends"])
def test_a_command_that_hangs_where_no_handler_runs_ends(where):
    """C code waits for a lock, in the middle of the command or in a destructor that Python calls as its last."""
    program = (
        "import ctypes, signal, sys\n"
        "from wavefilt import interrupts\n"
        "interrupts.PATIENCE = 0.3\n"
        "libc, mutex = ctypes.CDLL(None), ctypes.create_string_buffer(64)\n"
        "def hang(libc=libc, mutex=mutex):\n"
        "    for _ in range(2):\n"
        "        libc.pthread_mutex_lock(mutex)\n"
        "class Last:\n"
        "    def __del__(self, hang=hang):\n"
        "        hang()\n"
        "sys.last = Last() if sys.argv[1] != 'in C' else None\n"
        "try:\n"
        "    with interrupts.end_in_time():\n"
        "        try:\n"
        "            signal.raise_signal(signal.SIGINT)\n"
        "        finally:\n"
        "            if not sys.last:\n"
        "                hang()\n"
        "except KeyboardInterrupt:\n"
        "    pass\n"
    )
    run = subprocess.run([sys.executable, "-c", program, where], cwd=ROOT, timeout=30, check=False)
    assert run.returncode != 0


def test_a_second_signal_ends_the_command_at_once():
    process = _slow(60)
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == b"cleaning\n"
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=30)
    assert (process.returncode, err) == (130, b"Interrupted.\n")


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_what_other_code_makes_of_an_interruption(number, code):
    program = (
        "import signal\n"
        "from wavefilt import interrupts\n"
        "with interrupts.end_in_time():\n"
        "    try:\n"
        f"        signal.raise_signal({int(number)})\n"
        "    except BaseException as error:\n"
        "        raise RuntimeError('__set_name__ failed') from error\n"
    )
    run = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert "RuntimeError" not in run.stderr
    assert run.returncode in (code, -number)  # the latter of KeyboardInterrupt where nothing catches it


def test_what_the_parent_ignores_is_ignored():
    code = (
        "import signal; signal.signal(signal.SIGHUP, signal.SIG_IGN)\n"
        "from wavefilt import interrupts\n"
        "interrupts.end_at_once()\n"
        "with interrupts.end_in_time():\n"
        "    signal.raise_signal(signal.SIGHUP)\n"
        "signal.raise_signal(signal.SIGHUP)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], cwd=ROOT, timeout=60).returncode == 0


@pytest.mark.parametrize("module", ["click", "numpy"])
def test_a_signal_while_the_command_loads_is_no_traceback(module):
    code = (
        "import signal, sys\n"
        "class Finder:\n"
        "    def find_spec(self, name, path, target=None):\n"
        f"        if name == '{module}':\n"
        "            signal.raise_signal(signal.SIGINT)\n"
        "sys.meta_path.insert(0, Finder())\n"
        "from wavefilt.__main__ import main\n"
        "main()\n"
    )
    run = subprocess.run([sys.executable, "-c", code, "wavelets"], cwd=ROOT, capture_output=True, timeout=60)
    assert (run.returncode, run.stderr.strip()) == (130, b"Interrupted.")


def test_signals_at_random_moments():
    pytest.importorskip("numba")
    found = signalling.several(20, 1.6)
    assert set(found) <= {"ended by it", "done", signalling.EARLY}, found
