"""The sample that denoises a feed: what it writes, and that it writes before the feed ends and when it ends badly."""

import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import wavefilt

SCRIPT = Path(__file__).parents[2] / "samples" / "denoise_stream.py"
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


def test_numbers_in_lines_with_a_gap():
    x = _feed()
    x[400:403] = np.nan
    done = _run(_lines(x), *NOISE)
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


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (b"inf", b"line 301: inf is infinite or too large"),
        (b"1e50", b"line 301: inf is infinite or too large"),
        (b"abc", b"line 301: could not convert string to float: b'abc'"),
        (b"\xff", b"line 301: could not convert string to float: b'\\xff'"),
    ],
)
def test_a_line_that_is_no_sample_is_told_and_all_before_it_written(bad, words):
    x = _feed()
    done = _run(_lines(x[:300]) + bad + b"\n" + _lines(x[300:]), *NOISE, code=1)
    assert done.stderr.splitlines() == [b"latency: 21 samples", words]
    np.testing.assert_allclose(np.loadtxt(done.stdout.decode().splitlines()), _whole(x[:300]), rtol=1e-6, atol=1e-6)


def test_raw_samples_before_one_that_is_none_are_written():
    x = _feed()
    x[300] = 3e38
    done = _run(x.tobytes(), "--raw", *NOISE, code=1)
    assert done.stderr.endswith(b"samples\nbytes 0 to 3600: 3e+38 is infinite or too large\n")
    assert np.array_equal(np.frombuffer(done.stdout, "<f4"), _whole(x[:300]))


def test_trailing_bytes_that_are_no_whole_sample_are_told():
    x = _feed()
    done = _run(x.tobytes() + b"abc", "--raw", *NOISE, code=1)
    assert done.stderr.endswith(b"samples\nthe last 3 bytes: buffer size must be a multiple of element size\n")
    assert np.array_equal(np.frombuffer(done.stdout, "<f4"), _whole(x))


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


def test_an_option_that_cannot_be_is_told_with_the_usage():
    done = _run(b"", "--window", "1", code=2)
    assert done.stderr.endswith(b"error: window=1 must be a whole number of at least 2\n")
