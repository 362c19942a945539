"""Files denoised a part at a time: the bytes of denoising them in memory, within a limit, and nothing partial left."""

from __future__ import annotations

import errno
import json
import os
import re
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
from click.testing import CliRunner

import wavefilt
from tests.support.signals import partly_dead
from wavefilt import backends
from wavefilt.backends.numba_cpu import selection
from wavefilt.cli import group
from wavefilt.denoising import pipeline
from wavefilt.errors import FormatError
from wavefilt.io.arrays import contiguous
from wavefilt.outofcore import memory_budget, prefetch, streaming
from wavefilt.outofcore.sizes import in_bytes, spelled
from wavefilt.statistics import summation

RULES = ["universal", "minimax", "bayes", "fdr", "js", "ebayes", "ebayes-cauchy", 0.4, [0.0, 0.3, 0.5]]


@pytest.fixture(params=["pywavelets", "numba"])
def backend(request):
    return request.param


@pytest.fixture
def tiny(monkeypatch):
    """Chunks of so many samples, whatever the limit, and rows above 1000 details summed block by block."""

    def force(chunk):
        plan = memory_budget.plan

        def forced(*arguments):
            found, (shape, dtype, method) = plan(*arguments), arguments[:3]
            halo = method.halo(found.level)
            parts = memory_budget.cut(*shape, halo, found.level, chunk)
            longest = max((part.rows.stop - part.rows.start) * part.length for part in parts)
            assert isinstance(found, memory_budget.Chunks)
            return replace(found, chunk=chunk * dtype.itemsize, buffer=longest, bins=4096)

        monkeypatch.setattr(memory_budget, "_extra", lambda method, level: 1e15)
        monkeypatch.setattr(streaming.memory_budget, "plan", forced)
        monkeypatch.setattr(selection, "SHORT", 1000)
        monkeypatch.setattr(summation.PairwiseSums, "whole", 1000)
        monkeypatch.setattr(summation, "LEAF", 600)
        backends.get("numba").release()  # plans made before sum whole rows

    yield force
    backends.get("numba").release()


def _trace(n, seed=1):
    rng = np.random.default_rng(seed)
    return np.sin(np.arange(n) / 9) + rng.standard_normal(n) * np.linspace(0.2, 2, n)


def _traces(rows, n, dtype="f4"):
    return np.array([_trace(n, seed) for seed in range(rows)]).astype(dtype)


def _same(tmp_path, x, *, axis=None, order="C", max_memory="1GiB", **options):
    """Denoise a file both ways: the same bytes. Returns the report.

    By one backend: "auto" may take another one for the second of two calls, when kernels are loaded.
    """
    options = {"backend": "numba"} | options
    source, whole, parts = (tmp_path / name for name in ("x.npy", "whole.npy", "parts.npy"))
    np.save(source, np.asarray(x, order=order))
    wavefilt.read(source, axis=axis).denoise(**options).write(whole, overwrite=True)
    report = wavefilt.denoise_file(source, parts, axis=axis, max_memory=max_memory, overwrite=True, **options)
    assert parts.read_bytes() == whole.read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["parts.npy", "whole.npy", "x.npy"]
    return report


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("scope", ["trace", "record"])
def test_every_rule_in_chunks(tmp_path, tiny, backend, rule, scope):
    tiny(900)
    for n, dtype in [(3001, "f4"), (2202, "f8") if scope == "trace" else (280, "f4")]:
        _same(tmp_path, _traces(2, n, dtype), wavelet="db4", level=3, rule=rule, scope=scope, backend=backend)


@pytest.mark.parametrize("sigma", ["level", "global", 0.3])
@pytest.mark.parametrize("mode", ["symmetric", "periodic", "periodization"])
def test_every_noise_estimate_in_chunks(tmp_path, tiny, backend, sigma, mode):
    tiny(1500)
    report = _same(tmp_path, _traces(2, 7001), sigma=sigma, mode=mode, shrink="garrote", keep=1, backend=backend)
    assert len(report.sigma) == len(report.thresholds) == 5
    assert report.thresholds[4] == 0


@pytest.mark.parametrize("rule", RULES[:-2])
@pytest.mark.parametrize("scope", ["trace", "record"])
@pytest.mark.parametrize("window", [70, 1100])
def test_running_noise_in_chunks(tmp_path, tiny, backend, rule, scope, window):
    """Blocks of medians lie across chunks, and the last one is in the chunk of both ends."""
    tiny(900)
    options = {"sigma": ("running", window), "wavelet": "db4", "level": 3, "scope": scope, "backend": backend}
    for n in (3001, 280) if scope == "record" else (3001, 9002):
        report = _same(tmp_path, _traces(2, n), rule=rule, **options)
        assert len(report.sigma) == 3
        assert min(report.sigma) > 0.4
    _same(tmp_path, partly_dead(np.random.default_rng(0), 2002)[0], rule=rule, **options)


def test_running_noise_reads_once_more_and_needs_room_for_its_window(tmp_path):
    np.save(tmp_path / "x.npy", _traces(1, 2_000_000))
    for rule, passes in (("universal", 2), ("bayes", 3)):
        options = {"rule": rule, "overwrite": True, "backend": "pywavelets"}
        report = wavefilt.denoise_file(
            tmp_path / "x.npy", tmp_path / "y.npy", max_memory="48MiB", sigma=("running", 5000), **options
        )
        assert report.passes == pytest.approx(passes, abs=0.1)
        long = {"sigma": ("running", 1_500_000), **options}
        with pytest.raises(ValueError, match=r"too little here: .* is the least") as error:
            wavefilt.denoise_file(tmp_path / "x.npy", tmp_path / "y.npy", max_memory="48MiB", **long)
        enough = re.search(r"here: (\S+ \S+) is", str(error.value))[1].replace(" ", "")
        wavefilt.denoise_file(tmp_path / "x.npy", tmp_path / "y.npy", max_memory=enough, **long)


@pytest.mark.parametrize("kind", ["few values", "constant", "two values", "gliding", "dead"])
def test_awkward_data_in_chunks(tmp_path, tiny, backend, kind):
    tiny(3000)
    x = _traces(2, 14000)
    if kind == "few values":
        x = np.round(x)
    elif kind == "constant":
        x[:] = 3
    elif kind == "two values":
        x[:, ::2], x[:, 7000:] = -1e-30, 1e30
    elif kind == "gliding":
        x *= np.exp2(np.linspace(-90, 90, 14000)).astype("f4")
    else:
        x[1] = 0
        x[1, ::2500] = 0.1
    for rule in ("universal", "bayes"):
        _same(tmp_path, x, rule=rule, backend=backend)
        if kind == "constant":
            assert np.array_equal(np.load(tmp_path / "parts.npy"), x)


@pytest.mark.parametrize("rule", ["bayes", "universal", "fdr", 0.3])
@pytest.mark.parametrize("chunk", [900, 5000])
def test_dead_traces_of_a_record_count_for_nothing(tmp_path, rng, tiny, backend, rule, chunk):
    """Chunks cut traces, or hold several."""
    x, dead = partly_dead(rng, 2002)
    options = {"wavelet": "db4", "level": 3, "rule": rule, "scope": "record", "backend": backend}
    whole = _same(tmp_path, x, **options)
    tiny(chunk)
    report = _same(tmp_path, x, **options)
    found = np.load(tmp_path / "parts.npy")
    assert np.array_equal(found[dead], x[dead])
    assert np.array_equal(found[~dead], wavefilt.denoise(x[~dead], **options))
    np.testing.assert_allclose(report.thresholds, whole.thresholds, rtol=1e-12)  # blocks of sums differ
    assert report.noisy_traces == whole.noisy_traces == np.count_nonzero(~dead)
    assert np.isclose(report.energy_removed, np.sum((found - x) ** 2) / np.sum(x**2))
    assert np.isclose(report.energy_removed, whole.energy_removed)


def test_a_record_of_dead_traces_is_copied(tmp_path, tiny, backend):
    x = np.repeat([[0.0], [3.7]], 2002, axis=1)
    tiny(900)
    report = _same(tmp_path, x, scope="record", backend=backend)
    assert np.array_equal(np.load(tmp_path / "parts.npy"), x)
    assert (report.energy_removed, report.thresholds) == (0, [0] * 5)


@pytest.mark.parametrize("dtype", ["i1", "i2", "<i4", ">i2", "u2", "f2", ">f4", ">f8", "f4", "c8"])
def test_every_dtype(tmp_path, tiny, dtype):
    x = (_traces(2, 4000) * 20).astype(dtype)
    _same(tmp_path, x)  # whole traces
    tiny(1500)
    _same(tmp_path, x)
    _same(tmp_path, x[0])


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [
        ((1400,), 0),
        ((3, 1400), -1),
        ((1400, 3), 0),
        ((2, 1400, 3), 1),
        ((2, 3, 1400), None),
        ((1400, 2, 3), 0),
        ((1, 1400), 1),
    ],
)
def test_every_order_of_axes(tmp_path, tiny, monkeypatch, shape, axis, order):
    monkeypatch.setattr(contiguous, "WORKSPACE", 5000)
    x = np.moveaxis(_traces(6, 1400)[: np.prod(shape) // 1400], 1, 0)
    x = np.moveaxis(x.reshape(1400, *(n for n in shape if n != 1400)), 0, -1 if axis is None else axis)
    _same(tmp_path, x, axis=axis, order=order, wavelet="db2")
    tiny(700)
    _same(tmp_path, x, axis=axis, order=order, wavelet="db2", scope="record")
    _same(tmp_path, x, axis=axis, order=order, wavelet="db2")


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"rule": "sure"},
        {"rule": "neighblock"},
        {"transform": "modwt"},
        {"spins": 3},
        {"sigma": ("window", 10, 200)},
        {"rule": "hybrid"},
    ],
)
def test_many_traces_go_in_batches(tmp_path, backend, monkeypatch, options):
    monkeypatch.setattr(memory_budget, "FIXED", 0)
    x = _traces(40, 700)
    if "sigma" not in options:
        x[7, 300:310] = x[21, :5] = np.nan  # gaps are no matter for whole traces
    seen = []
    ordinary = pipeline.run
    monkeypatch.setattr(streaming, "run", lambda x, *rest: seen.append(len(x)) or ordinary(x, *rest))
    report = _same(tmp_path, x, max_memory=600_000, backend=backend, **options)
    assert sum(seen) == 40
    assert 2 <= len(seen) < 40
    y = wavefilt.denoise(x, backend=backend, **options)
    known = ~np.isnan(x)
    expected = np.sum((x.astype("f8") - y)[known] ** 2) / np.sum(x[known].astype("f8") ** 2)
    assert report.energy_removed == pytest.approx(expected, rel=1e-6)


def test_details_enough_for_every_step_at_its_real_size(tmp_path, backend):
    """Long rows as the backend takes them, of which a sample finds the medians."""
    n = 5_000_011
    x = _trace(n).astype("f4")
    report = _same(tmp_path, x, max_memory="48MiB", backend=backend)
    assert report.passes < 3.1
    if backend == "numba":
        _same(
            tmp_path,
            x.reshape(1, -1)[:, : n // 5 * 5].reshape(5, -1),
            scope="record",
            max_memory="48MiB",
            backend=backend,
        )


@pytest.mark.parametrize(
    "options", [{"rule": "universal"}, {"rule": "js"}, {"rule": "bayes", "sigma": ("running", 800)}]
)
def test_chunks_of_a_transform_that_is_not_decimated(tmp_path, tiny, backend, options):
    tiny(3000)
    report = _same(tmp_path, _traces(2, 9000), wavelet="db4", level=3, transform="modwt", backend=backend, **options)
    assert report.passes > 1


@pytest.mark.parametrize("option", [{"axes": (0, 1)}, {"two_dimensional": True}])
def test_panels_are_denoised_in_memory(tmp_path, option):
    np.save(tmp_path / "x.npy", _traces(4, 100))
    with pytest.raises(ValueError, match=r"in memory: wavefilt.read\(path\).denoise\(two_dimensional=True\)"):
        wavefilt.denoise_file(tmp_path / "x.npy", tmp_path / "y.npy", **option)


def test_raw_files(tmp_path, tiny):
    source, whole, parts = (tmp_path / name for name in ("x.raw", "whole.raw", "parts.raw"))
    for dtype, endian, code in [("f4", "little", "<f4"), ("i2", "big", ">i2"), ("i4", "little", "<i4")]:
        (_traces(2, 5000) * 50).astype(code).tofile(source)
        layout = {"format": "raw", "dtype": dtype, "endian": endian, "ns": 5000}
        wavefilt.read(source, **layout).denoise().write(whole, overwrite=True)
        wavefilt.denoise_file(source, parts, overwrite=True, **layout)
        assert parts.read_bytes() == whole.read_bytes()
        tiny(1000)
        wavefilt.denoise_file(source, parts, overwrite=True, **layout)
        assert parts.read_bytes() == whole.read_bytes()
    with pytest.raises(FormatError, match="not a whole number of traces"):
        wavefilt.denoise_file(source, parts, overwrite=True, **{**layout, "ns": 4999})


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"rule": "sure"}, "rule='sure' needs whole traces"),
        ({"rule": "hybrid"}, "rule='hybrid' needs whole traces"),
        ({"rule": "blockjs"}, "rule='blockjs' needs whole traces"),
        ({"sigma": ("intervals", "find")}, "sigma=.*'find'.* needs whole traces"),
        ({"rule": "sure", "scope": "record"}, "rule='sure' needs the whole record"),
        ({"transform": "wp"}, "transform='wp' needs whole traces"),
        ({"spins": 4}, "spins=4 needs whole traces"),
        ({"sigma": ("window", 0, 99)}, r"sigma=\('window', 0, 99\) needs whole traces"),
    ],
)
def test_what_chunks_cannot_do_is_named_with_the_memory_it_takes(tmp_path, options, words):
    path = tmp_path / "x.npy"
    np.save(path, _trace(3_000_000).astype("f4"))
    with pytest.raises(ValueError, match=words) as error:
        wavefilt.denoise_file(path, tmp_path / "y.npy", max_memory="48MiB", **options)
    assert os.listdir(tmp_path) == ["x.npy"]
    enough = in_bytes(re.search(r"max_memory='([^']+)'", str(error.value))[1])
    method = wavefilt.method.Method(**options)
    plan = memory_budget.plan((1, 3_000_000), np.dtype("f4"), method, enough, "auto")
    assert isinstance(plan, memory_budget.WholeTraces)


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (np.nan, "NaN at trace 1, sample 20000 .* max_memory='.*' here; raise"),
        (np.inf, "infinite value at trace 1, sample 20000"),
        (3e38, "overflow float32"),
    ],
)
def test_samples_that_cannot_be_are_named(tmp_path, tiny, backend, value, words):
    tiny(3000)
    x = _traces(2, 30000)
    x[1, 20000] = value
    np.save(tmp_path / "x.npy", x)
    for options in ({}, {"rule": 0.5}, {"scope": "record"}):
        with pytest.raises(ValueError, match=words):
            wavefilt.denoise_file(tmp_path / "x.npy", tmp_path / "y.npy", backend=backend, **options)
    assert os.listdir(tmp_path) == ["x.npy"]


def test_infinite_sample_in_a_later_batch(tmp_path, monkeypatch):
    monkeypatch.setattr(memory_budget, "FIXED", 0)
    x = _traces(40, 700)
    x[31, 5] = np.inf
    np.save(tmp_path / "x.npy", x)
    with pytest.raises(ValueError, match="infinite value at trace 31, sample 5"):
        wavefilt.denoise_file(tmp_path / "x.npy", tmp_path / "y.npy", max_memory=600_000)


def test_too_small_a_limit_names_the_least_that_works(tmp_path):
    np.save(tmp_path / "x.npy", _trace(3_000_000).astype("f4"))
    with pytest.raises(ValueError, match="is too little here") as error:
        wavefilt.denoise_file(tmp_path / "x.npy", tmp_path / "y.npy", max_memory="1MiB")
    least = re.search(r"here: (.+) is the least", str(error.value))[1]
    wavefilt.denoise_file(tmp_path / "x.npy", tmp_path / "y.npy", max_memory=least)
    assert np.array_equal(np.load(tmp_path / "y.npy"), wavefilt.denoise(np.load(tmp_path / "x.npy")))


def test_a_file_that_shrinks_or_changes(tmp_path, tiny, monkeypatch):
    tiny(1000)
    path, target = tmp_path / "x.npy", tmp_path / "y.npy"
    target.write_bytes(b"kept")
    for change, words in (
        (lambda: os.truncate(path, 30000), "became shorter while it was read"),
        (lambda: os.utime(path, (1, 1)), "was changed while it was read"),
    ):
        np.save(path, _trace(50000))
        write = contiguous.Samples.write
        monkeypatch.setattr(contiguous.Samples, "write", lambda *a, change=change, write=write: (change(), write(*a)))
        with pytest.raises(OSError, match=words):
            wavefilt.denoise_file(path, target, overwrite=True)
        monkeypatch.undo()
        tiny(1000)
        assert sorted(os.listdir(tmp_path)) == ["x.npy", "y.npy"]
        assert target.read_bytes() == b"kept"


def _python(code, *arguments):
    return [sys.executable, "-c", code, *map(str, arguments)]


def test_a_full_disk_leaves_nothing(tmp_path):
    resource = pytest.importorskip("resource")
    np.save(tmp_path / "x.npy", _trace(200_000))
    code = "import sys, wavefilt; wavefilt.denoise_file(sys.argv[1], sys.argv[2])"
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (500_000, 500_000))  # noqa: E731
    done = subprocess.run(
        _python(code, tmp_path / "x.npy", tmp_path / "y.npy"), capture_output=True, text=True, preexec_fn=limit
    )
    assert f"OSError: [Errno {errno.EFBIG}] {os.strerror(errno.EFBIG)}" in done.stderr
    assert os.listdir(tmp_path) == ["x.npy"]


def test_an_error_of_the_writing_thread_is_raised(tmp_path, monkeypatch):
    np.save(tmp_path / "x.npy", _trace(5000))

    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(contiguous.Samples, "write", full)
    with pytest.raises(OSError, match="No space left"):
        wavefilt.denoise_file(tmp_path / "x.npy", tmp_path / "y.npy")
    assert os.listdir(tmp_path) == ["x.npy"]


@pytest.mark.parametrize(("name", "code"), [("SIGINT", 130), ("SIGTERM", 143)])
def test_an_interruption_leaves_nothing(tmp_path, name, code):
    np.save(tmp_path / "x.npy", np.lib.stride_tricks.as_strided(np.array(_trace(1 << 16)), (64, 1 << 16), (0, 8)))
    slow = (
        "import sys, time; from wavefilt.io.arrays import contiguous; from wavefilt.cli import main\n"
        "w = contiguous.Samples.write\n"
        "def write(*a): print('writing', flush=True); w(*a); time.sleep(0.5)\n"
        "contiguous.Samples.write = write\n"
        "main(['denoise', *sys.argv[1:], '--max-memory', '32MiB', '--backend', 'pywavelets'])"
    )
    process = subprocess.Popen(_python(slow, tmp_path / "x.npy"), stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout.readline() == b"writing\n"
    assert any(part.endswith(".tmp") for part in os.listdir(tmp_path))
    process.send_signal(getattr(signal, name))
    process.communicate(timeout=30)
    assert process.returncode == code
    assert os.listdir(tmp_path) == ["x.npy"]


@pytest.mark.skipif(np.lib.NumpyVersion(np.__version__) < "2.3.0", reason="NumPy before 2.3 adds in another order")
def test_pairwise_is_the_order_of_numpy():
    pairwise, rng = summation.PairwiseSums(), np.random.default_rng(3)
    for size in (1, 7, 65536, 65537, 131073, 1_000_003):
        values = rng.standard_normal(size).astype("f4")
        ends = pairwise.ends(size)
        sums, _ = pairwise.measure(values, ends, None, None)
        assert pairwise.total(sums, size) == np.sum(np.square(np.abs(values), dtype=np.float64)[None], axis=-1)[0]


def test_the_sample_may_mislead(tmp_path, tiny, monkeypatch, backend):
    """Medians are exact wherever the sample suggests to look."""
    tiny(3000)
    x = _traces(1, 30000)
    for scale in (1e-6, 1e6, 0):
        sample = streaming.FileRows._sample
        scaled = lambda *a, scale=scale, sample=sample: [scale * d for d in sample(*a)]  # noqa: E731
        monkeypatch.setattr(streaming.FileRows, "_sample", scaled)
        _same(tmp_path, x, rule="universal", backend=backend)


def test_progress_ends_where_it_said(tmp_path, tiny):
    tiny(1000)
    np.save(tmp_path / "x.npy", _trace(30000))
    seen = []
    wavefilt.denoise_file(tmp_path / "x.npy", tmp_path / "y.npy", progress=lambda *pair: seen.append(pair))
    done = [a for a, _ in seen]
    assert done == sorted(done)
    assert len(done) > 50
    assert all(a <= b for a, b in seen)
    assert done[-1] > 240_000


def test_reading_and_writing_go_on_meanwhile(tmp_path, tiny, monkeypatch):
    """Some chunk is read, and one written, while another is computed."""
    tiny(4000)
    np.save(tmp_path / "x.npy", _trace(60000))
    busy, overlaps = set(), set()

    def noted(kind, function):
        def call(*a, **k):
            busy.add(kind)
            time.sleep(0.003)
            overlaps.add(frozenset(busy))
            try:
                return function(*a, **k)
            finally:
                busy.discard(kind)

        return call

    monkeypatch.setattr(contiguous.Samples, "read", noted("read", contiguous.Samples.read))
    monkeypatch.setattr(contiguous.Samples, "write", noted("write", contiguous.Samples.write))
    backend = backends.get("pywavelets")
    monkeypatch.setattr(type(backend), "decompose", noted("compute", type(backend).decompose))
    wavefilt.denoise_file(tmp_path / "x.npy", tmp_path / "y.npy", backend="pywavelets")
    assert any({"read", "compute"} <= found for found in overlaps)
    assert any({"write", "compute"} <= found for found in overlaps)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("500MB", 500_000_000),
        ("1GiB", 1 << 30),
        (" 1.5 g", 3 << 29),
        ("64k", 65536),
        (4096, 4096),
        ("12", 12),
        ("2TiB", 2 << 40),
    ],
)
def test_sizes(text, size):
    assert in_bytes(text) == size
    assert in_bytes(spelled(size)) >= size


@pytest.mark.parametrize("text", ["", "much", "-1GiB", "0", 0, "1XB", "1e9", True, None, "nan", "GiB"])
def test_no_sizes(text):
    with pytest.raises(ValueError, match="no amount of memory"):
        in_bytes(text)


def test_energy_of_complex_samples_and_silence():
    energy = prefetch.Energy(summation.PairwiseSums())
    assert energy.removed == 0
    x = np.array([[3 + 4j, 1j]], "c8")
    energy.add(x, x * np.float32(0.5))
    assert energy.removed == pytest.approx(0.25)


def _cli(*arguments):
    return CliRunner().invoke(group, ["denoise", *map(str, arguments)], standalone_mode=False)


def test_the_command(tmp_path):
    np.save(tmp_path / "x.npy", _trace(400_000).astype("f4"))
    done = _cli(tmp_path / "x.npy", "--max-memory", "1GiB", "--json", "-v")
    assert done.exception is None
    facts = json.loads(done.stdout)
    assert (facts["samples"], facts["level"], facts["max_memory"]) == (400_000, 5, 1 << 30)
    assert "removed" in done.stderr
    assert "level 5: sigma" in done.stderr
    assert np.array_equal(np.load(tmp_path / "x.denoised.npy"), wavefilt.denoise(np.load(tmp_path / "x.npy")))


MISTAKES = {
    "lots": "no amount of memory",
    "1GiB --plot p.png": "--plot does not go with",
    "1GiB -o -": "needs files",
}


@pytest.mark.parametrize("options", MISTAKES)
def test_wrong_usage(tmp_path, options):
    np.save(tmp_path / "x.npy", _trace(4000))
    done = _cli(tmp_path / "x.npy", "--max-memory", *options.split())
    assert done.exception.exit_code == 2
    assert MISTAKES[options] in done.exception.format_message()


def test_other_formats_are_refused(tmp_path):
    path = tmp_path / "x.txt"
    np.savetxt(path, _trace(100))
    done = _cli(path, "--max-memory", "1GiB")
    assert done.exception.code == 2
    words = f"{path}: only npy, raw, hdf5, zarr, wav, segy, su and sac files are streamed ("
    assert str(done.exception).startswith(f"{words}--max-memory)")
    with pytest.raises(FormatError, match=re.escape(f"{words}max_memory)")):
        wavefilt.denoise_file(path, tmp_path / "y.txt")
    path.write_bytes(b"")
    assert _cli(path, "--max-memory", "1GiB").exception.code == 3
    np.save(tmp_path / "x.npy", _trace(100))
    with pytest.raises(ValueError, match="is the input"):
        wavefilt.denoise_file(tmp_path / "x.npy", tmp_path / "x.npy", overwrite=True)


def test_a_noise_window_in_seconds(tmp_path):
    x = _traces(3, 2000)
    np.save(tmp_path / "x.npy", x)
    window = ["--noise-window", "0", "0.4", "--dt", "0.001", "--max-memory", "1GiB"]
    assert _cli(tmp_path / "x.npy", "-o", tmp_path / "y.npy", *window).exit_code == 0
    assert np.array_equal(np.load(tmp_path / "y.npy"), wavefilt.denoise(x, sigma=("window", 0, 400)))
    done = _cli(tmp_path / "x.npy", "-o", tmp_path / "z.npy", "--noise-window", "0", "0.4", "--max-memory", "1GiB")
    assert "sampling interval is not known" in str(done.exception)


@pytest.mark.parametrize("options", [{"return_noise": True}, {"rul": "bayes"}, {"devices": "all"}])
def test_options_of_another_name(tmp_path, options):
    with pytest.raises(ValueError, match=f"option='{next(iter(options))}' is not one of"):
        wavefilt.denoise_file(tmp_path / "x.npy", tmp_path / "y.npy", **options)
