"""The sample script that denoises a feed: what it writes, before the feed ends and when it ends badly."""

from __future__ import annotations

import signal
import subprocess
import sys

import numpy as np
import pytest

import wavefilt
from tests.support.checkout import SAMPLES

SCRIPT = SAMPLES / "denoise_stream.py"
NOISE = ["--level", "2", "--wavelet", "db4", "--rule", "universal", "--noise", "0.5", "--window", "900"]


def _feed():
    return (np.sin(np.arange(900) / 9) + 0.5 * np.random.default_rng(1).standard_normal(900)).astype("f4")


def _whole(x):
    return wavefilt.denoise(x, "db4", level=2, rule=0.5 * np.sqrt(2 * np.log(900)), backend="pywavelets")


def _run(data, *arguments, code=0):
    command = [sys.executable, str(SCRIPT), *arguments]
    done = subprocess.run(command, input=data, capture_output=True, check=False, timeout=60)
    assert done.returncode == code, done.stderr.decode()
    return done


def _lines(x):
    return "".join(f"{v:.9g}\n" for v in x).encode()


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


@pytest.mark.parametrize("bad", [b"", b"1e50", b"abc", b"\xff"])
def test_lines_up_to_one_that_is_no_sample_are_written(bad):
    """The feed has a gap before that line."""
    x = _feed()
    x[200:203] = np.nan
    good = _lines(x[:300])
    done = _run(good + bad + b"\n" + _lines(x[300:]) if bad else good, *NOISE, code=1 if bad else 0)
    assert b"latency: 21 samples" in done.stderr
    assert (b"line 301" in done.stderr) == bool(bad)
    np.testing.assert_allclose(np.loadtxt(done.stdout.decode().splitlines()), _whole(x[:300]), rtol=1e-6, atol=1e-6)


def test_raw_samples_up_to_one_that_is_none_are_written():
    x = _feed()
    done = _run(x.tobytes() + b"abc", "--raw", *NOISE, code=1)
    assert b"last 3 bytes" in done.stderr
    assert np.array_equal(np.frombuffer(done.stdout, "<f4"), _whole(x))
    x[300] = 3e38
    done = _run(x.tobytes(), "--raw", *NOISE, code=1)
    assert b"3e+38" in done.stderr
    assert np.array_equal(np.frombuffer(done.stdout, "<f4"), _whole(x[:300]))


def test_a_reader_that_goes_ends_it_without_a_word(tmp_path):
    (tmp_path / "feed").write_bytes(np.ones(100_000, "<f4").tobytes())
    command = [sys.executable, str(SCRIPT), "--raw", *NOISE]
    with (
        (tmp_path / "feed").open("rb") as feed,
        subprocess.Popen(command, stdin=feed, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as run,
    ):
        assert len(run.stdout.read(8)) == 8
        run.stdout.close()
        assert run.stderr.read() == b"latency: 21 samples\n"
    assert run.returncode == -signal.SIGPIPE


def test_ctrl_c_ends_it_without_a_traceback():
    command = [sys.executable, str(SCRIPT)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as run:
        assert run.stderr.readline().startswith(b"latency")
        run.send_signal(signal.SIGINT)
        assert run.stderr.read() == b""
    assert run.returncode == -signal.SIGINT


def test_a_wrong_option():
    assert b"window" in _run(b"", "--window", "1", code=2).stderr
