"""The sample that denoises a feed: what it writes, and that it writes before the feed ends."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import wavefilt

SCRIPT = Path(__file__).parents[1] / "samples" / "denoise_stream.py"
NOISE = ["--level", "2", "--wavelet", "db4", "--rule", "universal", "--noise", "0.5", "--window", "900"]


def _feed():
    return (np.sin(np.arange(900) / 9) + 0.5 * np.random.default_rng(1).standard_normal(900)).astype("f4")


def _whole(x):
    return wavefilt.denoise(x, "db4", level=2, rule=0.5 * np.sqrt(2 * np.log(900)), backend="pywavelets")


def _run(data, *arguments):
    command = [sys.executable, str(SCRIPT), *arguments]
    return subprocess.run(command, input=data, capture_output=True, check=True, timeout=60)


def test_numbers_in_lines_with_a_gap():
    x = _feed()
    x[400:403] = np.nan
    done = _run("".join(f"{v:.9g}\n" for v in x).encode(), *NOISE)
    assert done.stderr == b"latency: 21 samples\n"
    np.testing.assert_allclose(np.loadtxt(done.stdout.decode().splitlines()), _whole(x), rtol=1e-6, atol=1e-6)


def test_raw_samples_come_out_before_the_feed_ends():
    x = _feed()
    command = [sys.executable, str(SCRIPT), "--raw", *NOISE]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as run:
        run.stdin.write(x[:500].tobytes()[:-2])  # a sample cut in half by the pipe
        run.stdin.flush()
        early = run.stdout.read((499 - 21) * 4)
        run.stdin.write(x.tobytes()[1998:])
        run.stdin.close()
        late = run.stdout.read()
    y = np.frombuffer(early + late, "<f4")
    assert len(y) == 900
    assert np.array_equal(y, _whole(x))


def test_running_noise_removes_noise():
    t = np.arange(20000)
    clean = np.sin(t / 30)
    noisy = clean + 0.5 * np.random.default_rng(2).standard_normal(len(t))
    y = np.frombuffer(_run(noisy.astype("<f4").tobytes(), "--raw").stdout, "<f4")
    before, after = np.std(noisy - clean), np.std(y - clean)
    assert after < 0.5 * before
    assert before == pytest.approx(0.5, abs=0.02)
