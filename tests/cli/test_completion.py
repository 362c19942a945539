"""Shell completion: what click's completer gives for each option, and the scripts in the shells themselves."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys

import pytest
from click.shell_completion import ShellComplete

from wavefilt.cli import group


def completed(*words: str) -> list[str]:
    """What the last word may become; files are left to the shell."""
    items = ShellComplete(group, {}, "wavefilt", "_WAVEFILT_COMPLETE").get_completions(list(words[:-1]), words[-1])
    return [item.value if item.type == "plain" else f"<{item.type}>" for item in items]


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["de"], ["denoise"]),
        (["denoise", "sei"], ["<file>"]),
        (["denoise", "x.dat", "sei"], ["<file>"]),
        (["denoise", "-o", "out"], ["<file>"]),
        (["denoise", "--out-dir", ""], ["<dir>"]),
        (["denoise", "--plot", ""], ["<file>"]),
        (["denoise", "--removed", ""], ["<file>"]),
        (["denoise", "--log", ""], ["<file>"]),
        (["denoise", "-w", "sym1"], [f"sym1{i}" for i in range(10)]),
        (["denoise", "--rule", "eb"], ["ebayes", "ebayes-cauchy"]),
        (["denoise", "--shrink", "f"], ["firm"]),
        (["denoise", "--mode", "p"], ["periodic", "periodization"]),
        (["denoise", "--transform", "m"], ["modwt"]),
        (["denoise", "--backend", ""], ["auto", "pywavelets", "numba", "cuda"]),
        (["denoise", "--scope", "r"], ["record"]),
        (["denoise", "--sigma", "g"], ["global"]),
        (["denoise", "--level", "a"], ["auto"]),
        (["denoise", "--devices", ""], ["all"]),
        (["denoise", "--format", "se"], ["seg2", "segy"]),
        (["info", "--format", "m"], ["mseed"]),
        (["denoise", "--dtype", "f"], ["f4", "f8"]),
        (["denoise", "--endian", ""], ["little", "big"]),
        (["denoise", "--dt", ""], []),
        (["info", "x"], ["<file>"]),
        (["wavelets", "s"], ["sym"]),
        (["ske", "estimate", "-w", "db3"], [f"db3{i}" for i in ("", *range(9))]),
        (["ske", "estimate", "--device", "h"], ["h200", "h200-sheet"]),
        (["ske", "estimate", "--device", "./mine"], ["<file>"]),
        (["ske", "occupancy", "--device", "GTX4"], ["GTX480"]),
        (["bench", "scaling", "-w", "db1"], ["db10"]),
        (["bench", "report", ""], ["<file>"]),
        (["bench", "cpu", "-o", ""], ["<file>"]),
    ],
)
def test_completions(words, found):
    assert sorted(completed(*words)) == sorted(found)


SCRIPTS = {
    "bash": """
        source <(_WAVEFILT_COMPLETE=bash_source wavefilt)
        for line in "wavefilt denoise --mode p" "wavefilt denoise sei"; do
            read -ra COMP_WORDS <<< "$line"; COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); COMPREPLY=()
            compopt() { echo "files:" "$@"; }
            _wavefilt_completion wavefilt
            echo "${COMPREPLY[@]}"
        done
    """,
    "zsh": "source <(_WAVEFILT_COMPLETE=zsh_source wavefilt); COMP_WORDS='wavefilt denoise --mode p' COMP_CWORD=3 "
    "_WAVEFILT_COMPLETE=zsh_complete wavefilt",
    "fish": "_WAVEFILT_COMPLETE=fish_source wavefilt | source; complete -C 'wavefilt denoise --mode p'",
}


@pytest.mark.parametrize("shell", SCRIPTS)
def test_scripts_in_the_shells(tmp_path, shell):
    if shutil.which(shell) is None:
        pytest.skip(f"{shell} is not installed")
    command = tmp_path / "wavefilt"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m wavefilt "$@"\n')
    command.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}:{os.environ['PATH']}", "HOME": str(tmp_path)}
    done = subprocess.run(
        [shell, "-c", SCRIPTS[shell]], env=environment, capture_output=True, text=True, timeout=100, check=False
    )
    assert "periodic" in done.stdout, done.stderr
    assert "periodization" in done.stdout
    if shell == "bash":
        assert "files: -o default" in done.stdout
