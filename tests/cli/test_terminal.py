"""What reaches a terminal: bars there alone, no control characters of file names, closed streams."""

from __future__ import annotations

import os
import subprocess
import sys
from contextlib import suppress

import numpy as np
import pytest

from tests.support.checkout import run, run_cli

UNIX = pytest.mark.skipif(sys.platform == "win32", reason="pseudo-terminals are those of Unix")
FULL = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the device that is always full is one of Linux")
ODD = "a\x1b[31m\nb.npy"
SHOWN = "a\\x1b[31m\\nb.npy"


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    """A folder with `x.npy`, and the same with a name that would colour a terminal and break a line."""
    for name in (ODD, "x.npy"):
        np.save(tmp_path / name, np.ones((2, 500)))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["denoise", ODD], 0),
        (["denoise", ODD, "--dry-run"], 0),
        (["denoise", ODD, "missing\n.npy", "--out-dir", "out", "--keep-going", "-v"], 4),
        (["denoise", ODD, "-o", ODD], 2),
        (["denoise", "missing\n" + ODD], 3),
        (["denoise", "x.npy", "-o", f"no\n\x1bfolder/{ODD}"], 2),
        (["denoise", "x.npy", "--rule", ODD], 2),
        (["info", ODD], 0),
        (["wavelets", ODD], 2),
        ([ODD], 2),
    ],
)
def test_names_do_not_reach_the_terminal_as_they_are(arguments, code, capsys):
    got, out, err = run(capsys, *arguments)
    assert got == code
    assert "\\n" in out + err
    assert all(line.isprintable() for line in (out + err).split("\n"))


def test_letters_of_other_languages_are_shown(capsys):
    np.save("größe 1 µm.npy", np.ones((2, 500)))
    assert "größe 1 µm.npy -> " in run(capsys, "denoise", "größe 1 µm.npy")[2]


@FULL
@pytest.mark.parametrize(("arguments", "code"), [(["x.npy", "-v"], 0), (["missing.npy"], 3), (["x.npy", "--level"], 2)])
def test_messages_that_cannot_be_written_change_nothing(arguments, code, folder):
    command = [sys.executable, "-m", "wavefilt", "denoise", *arguments]
    with open("/dev/full", "w") as full:
        done = subprocess.run(command, stderr=full)
    assert done.returncode == code
    assert (folder / "x.denoised.npy").exists() == (code == 0)


@FULL
@pytest.mark.parametrize(("into", "code"), [("> /dev/full", 1), ("| head -n 1", 0)])
def test_output_that_cannot_be_written_is_no_traceback(into, code):
    command = f"{sys.executable} -m wavefilt wavelets {into}"
    done = subprocess.run(command, shell=True, capture_output=True, timeout=60)
    assert done.returncode == code
    assert b"Traceback" not in done.stderr
    assert done.stdout.startswith(b"name") or b"wavefilt: error: " in done.stderr


def on_terminal(*arguments: str, code: int = 0) -> str:
    """Return the output of `python ARGUMENTS` on standard error, a terminal of 24 lines of 100 characters."""
    import pty
    import termios

    shows, written = pty.openpty()
    termios.tcsetwinsize(written, (24, 100))
    process = subprocess.Popen([sys.executable, *arguments], stdout=subprocess.DEVNULL, stderr=written)
    os.close(written)
    parts = []
    with suppress(OSError):  # raised when the process has closed its side
        while part := os.read(shows, 1 << 16):
            parts.append(part)
    os.close(shows)
    text = b"".join(parts).decode()
    assert process.wait(timeout=120) == code, text
    return text


def test_nothing_moves_without_a_terminal():
    err = run_cli("denoise", "*.npy", "--out-dir", "out", cwd=os.getcwd()).stderr
    assert b"\r" not in err
    assert b"2 files: 2 done" in err


@UNIX
def test_a_batch_has_one_bar():
    for i in range(30):
        np.save(f"{i:02}.npy", np.ones((2, 500)))
    text = on_terminal("-m", "wavefilt", "denoise", "??.npy", "--out-dir", "out")
    assert text.index("| 0/30 [") < text.index("of each file")
    assert len(os.listdir("out")) == 30
