"""Too little memory is an error of one line, never a hang or a traceback."""

from __future__ import annotations

import errno
import resource
import subprocess
import sys

import numpy as np
import pytest

from tests.support.checkout import ROOT
from wavefilt import limits
from wavefilt.cli import failure

MIB = 1 << 20
pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits of addresses are those of Linux")


@pytest.mark.parametrize("limit", [100, 150, 200, 300, 400, 500, 550, 570, 590, 610, 650, 700, 900])
def test_a_run_within_a_limit_of_addresses(tmp_path, limit, rng):
    pytest.importorskip("numba")
    np.save(tmp_path / "x.npy", rng.standard_normal((24, 20_000)).astype("f4"))
    run = subprocess.run(
        [sys.executable, "-m", "wavefilt", "denoise", tmp_path / "x.npy", "--backend", "numba"],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=300,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (limit * MIB, limit * MIB)),
    )
    result = tmp_path / "x.denoised.npy"
    assert run.returncode == 1 - result.exists(), run.stderr
    if run.returncode:
        assert len(run.stderr.splitlines()) == 1
        assert "wavefilt: error: " in run.stderr
        assert "not enough memory" in run.stderr
    else:
        assert np.load(result).shape == (24, 20_000)


def test_what_is_left_is_counted(monkeypatch):
    monkeypatch.setattr(resource, "getrlimit", lambda _: (limits.held() + 64 * MIB, 1 << 60))
    assert abs(limits.left() - 64 * MIB) < MIB
    limits.need(60 * MIB)
    with pytest.raises(MemoryError, match="70 MiB are needed"):
        limits.need(70 * MIB)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (MemoryError(), True),
        (OSError(errno.ENOMEM, "Cannot allocate memory"), True),
        (OSError(errno.ENOSPC, "No space left on device"), False),
        (RuntimeError("can't start new thread"), False),
    ],
)
def test_errors_that_mean_memory(error, expected, monkeypatch):
    assert limits.out_of_memory(error) == expected
    monkeypatch.setattr(limits, "left", lambda: limits.TIGHT - 1)
    assert limits.out_of_memory(error)
    with pytest.raises(failure.Failure, match=r"x\.npy: not enough memory"), failure.run_errors("x.npy"):
        raise error


def test_a_kernel_that_lacked_memory_is_not_tried_again(monkeypatch):
    compiler = pytest.importorskip("wavefilt.backends.numba_cpu.compiler")

    def compiled(*arguments):
        calls.append(arguments)
        raise MemoryError

    calls = []
    monkeypatch.setattr(compiler, "_broken", [])
    for _ in range(2):
        with pytest.raises(MemoryError, match="to compile kernels"):
            compiler._to_the_end(compiled, 1)
    assert calls == [(1,)]
