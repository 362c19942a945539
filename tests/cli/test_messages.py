"""Messages: names of files that are no plain words, and a standard error that cannot be written."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from tests.support.checkout import ROOT, run_cli
from wavefilt.errors import printable

ODD = "a\x1b[31m\nb.npy"
SHOWN = "a\\x1b[31m\\nb.npy"


@pytest.mark.parametrize(
    ("text", "expected"),
    [("plain.npy", "plain.npy"), ("größe 1 µm", "größe 1 µm"), (ODD, SHOWN), ("\udcff\x9b", "\\udcff\\x9b")],
)
def test_control_characters_are_escaped(text, expected):
    assert printable(text) == expected


@pytest.mark.parametrize(
    "arguments",
    [
        ["denoise", ODD],
        ["denoise", ODD, "-v"],
        ["denoise", ODD, "--dry-run"],
        ["denoise", ODD, "missing\n.npy", "--out-dir", "out", "--keep-going", "-v"],
        ["denoise", ODD, "-o", ODD],
        ["denoise", "missing\n" + ODD],
        ["denoise", "x.npy", "-o", f"no\n\x1bfolder/{ODD}"],
        ["denoise", "x.npy", "--rule", ODD],
        ["denoise", "x.npy", f"--{ODD}"],
        ["info", ODD],
        ["info", "missing\n" + ODD],
        ["bench", "report", ODD, "-o", "r.html"],
        ["wavelets", ODD],
        [ODD],
    ],
)
def test_names_do_not_reach_the_terminal_as_they_are(arguments, tmp_path):
    for name in (ODD, "x.npy"):
        np.save(tmp_path / name, np.ones((2, 500)))
    run = run_cli(*arguments, cwd=tmp_path)
    assert run.returncode in (0, 2, 3, 4)
    text = run.stdout + run.stderr
    assert b"\\n" in text
    assert b"\x1b" not in text
    assert all(line.isprintable() for line in text.decode().split("\n"))


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the device that is always full is one of Linux")
@pytest.mark.parametrize("module", ["wavefilt", "wavefilt.cli"])
@pytest.mark.parametrize(("arguments", "code"), [(["x.npy", "-v"], 0), (["missing.npy"], 3), (["x.npy", "--level"], 2)])
def test_messages_that_cannot_be_written_change_nothing(arguments, code, module, tmp_path):
    np.save(tmp_path / "x.npy", np.ones((2, 500)))
    command = [sys.executable, "-m", module, "denoise", *arguments]
    with open("/dev/full", "w") as full:
        run = subprocess.run(command, stderr=full, cwd=tmp_path, env={**os.environ, "PYTHONPATH": str(ROOT)})
    assert run.returncode == code
    assert (tmp_path / "x.denoised.npy").exists() == (code == 0)


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["denoise", "loop.npy"], 3),
        (["denoise", "loop.npy", "--max-memory", "64MiB"], 3),
        (["denoise", "loop.npy", "--dry-run"], 3),
        (["denoise", "loop.npy/x.npy"], 3),
        (["denoise", "loop.npy", "x.npy", "--out-dir", "out", "--keep-going"], 4),
        (["denoise", "x.npy", "-o", "loop.npy"], 2),
        (["denoise", "x.npy", "-o", "loop.npy", "--overwrite"], 2),
        (["denoise", "x.npy", "-o", "loop.npy/x.npy"], 2),
        (["denoise", "x.npy", "--out-dir", "loop.npy"], 2),
        (["denoise", "x.npy", "--log", "loop.npy"], 2),
        (["denoise", "x.npy", "--removed", "loop.npy"], 2),
        (["info", "loop.npy"], 3),
        (["bench", "report", "loop.npy", "-o", "r.html"], 3),
    ],
)
def test_a_link_to_itself_is_an_error_of_one_line(arguments, code, tmp_path):
    np.save(tmp_path / "x.npy", np.ones((2, 500)))
    os.symlink("loop.npy", tmp_path / "loop.npy")
    run = run_cli(*arguments, cwd=tmp_path)
    assert run.returncode == code, run.stderr
    assert b"Traceback" not in run.stderr
    assert run.stderr.count(b"wavefilt: error: ") == 1
    assert b"loop.npy" in run.stderr
    assert os.path.islink(tmp_path / "loop.npy")
