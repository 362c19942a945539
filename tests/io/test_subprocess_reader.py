"""The process in which ObsPy reads what may crash it: one for many files, another after a bad file, none left."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.support.checkout import ROOT
from wavefilt.io.obspy import subprocess_reader

OBSPY = """
import fcntl, os, time
alive = open({alive!r}, "a")
fcntl.flock(alive, fcntl.LOCK_SH)
print(os.getpid(), file=alive, flush=True)

def read(file, format):
    word = file.read()
    if word == b"wrong":
        raise ValueError("no\\nsum")
    if word == b"crash":
        os.abort()
    if word == b"hang":
        time.sleep(60)
    os.write(1, b"printed by a decoder")
"""
"""Stands for ObsPy: it says when it is imported, holds a lock as long as it lives, and does as the file says."""


@pytest.fixture
def alive(tmp_path, monkeypatch):
    """A file with a line for each process that was started, locked by those that live."""
    path = tmp_path / "alive"
    (tmp_path / "obspy.py").write_text(OBSPY.format(alive=str(path)))
    monkeypatch.setenv("PYTHONPATH", f"{tmp_path}{os.pathsep}{ROOT}")
    return path


@pytest.fixture
def reader(alive):
    made = subprocess_reader.SubprocessReader()
    yield made
    made.end()


def wait_until_none_lives(alive):
    with open(alive) as file:
        until = time.monotonic() + 20
        while time.monotonic() < until:
            try:
                return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                time.sleep(0.01)
    return pytest.fail("a process is left over")


def test_one_process_reads_every_file_of_all_threads(reader, alive):
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(reader.failure, [b"fine"] * 20, ["GSE2"] * 20)) == [None] * 20
    assert len(alive.read_text().split()) == 1
    reader.end()
    wait_until_none_lives(alive)


@pytest.mark.parametrize(
    ("word", "seconds", "trouble"),
    [(b"wrong", 60, "ValueError: no\nsum"), (b"crash", 60, "its decoder crashed"), (b"hang", 0.1, "took more than")],
)
def test_after_a_file_that_cannot_be_read_there_is_a_new_one(reader, alive, monkeypatch, word, seconds, trouble):
    with monkeypatch.context() as patch:
        patch.setattr(subprocess_reader, "SECONDS", seconds)
        assert trouble in reader.failure(word, "GSE2")
    wait_until_none_lives(alive)
    assert reader.failure(b"fine", "GSE2") is None


def test_a_process_killed_while_idle_is_no_trouble(reader, alive):
    assert reader.failure(b"fine", "GSE2") is None
    os.kill(int(alive.read_text()), signal.SIGKILL)
    wait_until_none_lives(alive)
    assert reader.failure(b"fine", "GSE2") is None


def test_a_forked_process_has_its_own(alive):
    script = (
        "import os\n"
        "from wavefilt.io.obspy.subprocess_reader import SubprocessReader\n"
        "reader = SubprocessReader()\n"
        "before = reader.failure(b'fine', 'GSE2')\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    os._exit(reader.failure(b'fine', 'GSE2') is not None)\n"
        "print(before, os.waitpid(child, 0)[1], reader.failure(b'fine', 'GSE2'))\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=30)
    assert done.stdout == "None 0 None\n", done.stderr
    assert len(alive.read_text().split()) == 2
    wait_until_none_lives(alive)


@pytest.mark.parametrize("word", ["fine", "hang"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_none_is_left_when_its_parent_ends(alive, number, word):
    script = (
        "import time\n"
        "from wavefilt.io.obspy import subprocess_reader\n"
        "reader = subprocess_reader.SubprocessReader()\n"
        "reader.failure(b'fine', 'GSE2')\n"
        "subprocess_reader.SECONDS = 0.3\n"
        "print('begun', flush=True)\n"
        f"reader.failure({word.encode()!r}, 'GSE2')\n"
        "time.sleep(60)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout.readline() == b"begun\n"
    process.send_signal(number)
    process.communicate(timeout=30)
    wait_until_none_lives(alive)
    assert len(alive.read_text().split()) == 1
