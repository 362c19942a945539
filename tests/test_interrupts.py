"""Signals: the command ends soon, without a traceback and with whole results; in Python later calls work."""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from tests.support.checkout import ROOT

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="signals")
LOADING = "Python itself was interrupted, before wavefilt could set its handlers"
SWALLOWED = "importlib was interrupted in a callback of its locks, where Python ignores exceptions"


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


@pytest.fixture
def command(tmp_path):
    pytest.importorskip("numba")
    np.save(tmp_path / "in.npy", np.random.default_rng(1).standard_normal((24, 20_000), np.float32))
    denoise = [sys.executable, "-m", "wavefilt", "denoise", "in.npy", "-o", "out.npy", "--backend", "numba"]

    def start(**options):
        (tmp_path / "out.npy").unlink(missing_ok=True)
        return subprocess.Popen(denoise, cwd=tmp_path, stderr=subprocess.PIPE, text=True, **options)

    return start


def _ended(process: subprocess.Popen, number: int, out) -> str:
    """Return how a run ended: "interrupted", "done", or what went wrong."""
    _, words = process.communicate(timeout=60)
    callback = r"Exception ignored in: <function _(get_module_lock|WeakValueDictionary).*\n(.*\n)*"
    if re.search(f"{callback}(KeyboardInterrupt|SystemExit)", words):
        return SWALLOWED
    if "Traceback" in words or "Exception ignored" in words:
        frames = re.findall(rf'File "{re.escape(str(ROOT))}/wavefilt/(.*)", line \d+, in (.*)', words)
        started = all(file in ("__init__.py", "__main__.py") and name == "<module>" for file, name in frames)
        return LOADING if started else words
    if process.returncode == 0:
        return "done" if np.load(out).shape == (24, 20_000) else "the result is not whole"
    if process.returncode in (128 + number, -number):  # the latter before Python has its own handlers
        return "interrupted"
    return f"exit code {process.returncode}: {words}"


def test_signals_at_random_moments(command, tmp_path):
    """SIGINT and SIGTERM, every third one twice."""
    chance = random.Random()
    for run in range(14):
        process, number = command(), signal.SIGINT if run % 2 else signal.SIGTERM
        moment = chance.uniform(0, 1.6)
        time.sleep(moment)
        process.send_signal(number)
        if run % 3 == 2:
            time.sleep(0.02)
            process.send_signal(number)
        story = _ended(process, number, tmp_path / "out.npy")
        assert story in ("interrupted", "done", LOADING, SWALLOWED), f"signal {number} after {moment:.3f} s: {story}"
        assert set(os.listdir(tmp_path)) - {"in.npy"} <= {"out.npy"}


def test_a_signal_that_the_parent_ignores_is_ignored(command, tmp_path):
    """As nohup does for SIGHUP."""
    process = command(preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN))
    for _ in range(8):
        time.sleep(0.05)
        process.send_signal(signal.SIGHUP)
    assert _ended(process, signal.SIGHUP, tmp_path / "out.npy") == "done"


def test_calls_after_an_interruption_give_the_same(tmp_path):
    pytest.importorskip("numba")
    code = (
        "import os, random, signal, threading, time\n"
        "import numpy as np, wavefilt\n"
        "x = np.random.default_rng(1).standard_normal((24, 20_000))\n"
        "expected, interrupted = wavefilt.denoise(x, backend='numba'), 0\n"
        "for run in range(40):\n"
        "    moment = random.uniform(0, 0.004)\n"
        "    sender = threading.Timer(moment, lambda: os.kill(os.getpid(), signal.SIGINT))\n"
        "    try:\n"
        "        sender.start()\n"
        "        for _ in range(1000):\n"
        "            wavefilt.denoise(x, backend='numba')\n"
        "    except KeyboardInterrupt:\n"
        "        interrupted += 1\n"
        "    sender.join()\n"
        "    assert np.array_equal(wavefilt.denoise(x, backend='numba'), expected)\n"
        "print(interrupted)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    assert int(run.stdout) > 0
