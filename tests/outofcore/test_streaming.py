"""`denoise_file`: the bytes of denoising in memory, whatever the limit, and nothing partial left."""

from __future__ import annotations

import io
import json
import os
import re

import numpy as np
import pytest

import wavefilt
from tests.support.checkout import least_memory, run
from tests.support.signals import partly_dead, share

LONG = 1_600_000
"""Samples of a trace that the least limit cuts into chunks."""


@pytest.fixture(params=["pywavelets", "numba"])
def backend(request):
    return request.param


def _traces(rows, n, dtype="f4"):
    rng = np.random.default_rng(1)
    x = np.sin(np.arange(n) / 9) + rng.standard_normal((rows, n)) * np.linspace(0.2, 2, n)
    return (20 * x).astype(dtype)


def _same(tmp_path, x, *, axis=None, order="C", max_memory=None, cut=True, **options):
    """Denoise a file both ways, in chunks or batches by the least limit: the same bytes. Return the report."""
    options = {"backend": "numba"} | options  # "auto" may take another one for the second of two calls
    source, whole, parts = (tmp_path / name for name in ("x.npy", "whole.npy", "parts.npy"))
    np.save(source, np.asarray(x, order=order))
    wavefilt.read(source, axis=axis).denoise(**options).write(whole, overwrite=True)
    limit = max_memory or least_memory(source, axis=axis, **options)
    report = wavefilt.denoise_file(source, parts, axis=axis, max_memory=limit, overwrite=True, **options)
    assert parts.read_bytes() == whole.read_bytes()
    assert sorted(p.name for p in tmp_path.iterdir()) == ["parts.npy", "whole.npy", "x.npy"]
    assert cut is None or cut == (report.passes > 1)  # ends of chunks are read twice
    return report


CHUNKED = [
    *({"rule": rule} for rule in ("universal", "minimax", "bayes", "fdr", "js", "ebayes-cauchy")),
    *({"rule": rule, "scope": "record"} for rule in ("universal", "bayes", "fdr", "js", "ebayes")),
    {"mode": "periodic", "rule": [0.0, 0.3, 0.5], "level": 3},
    {"sigma": "global", "mode": "periodization", "shrink": "garrote", "keep": 1},
    {"sigma": 0.3, "mode": "zero"},
    {"transform": "modwt", "level": 3, "rule": "universal"},
    {"transform": "modwt", "level": 2, "rule": "js"},
    {"detrend": "line", "blend": 0.2},
]


@pytest.mark.parametrize(
    ("backend", "options"),
    [("numba", options) for options in CHUNKED] + [("pywavelets", options) for options in CHUNKED[:14]],
    ids=str,
)
def test_options_in_chunks(tmp_path, backend, options):
    shape = (3, LONG // 2) if options.get("scope") == "record" else (1, LONG)
    options = {"wavelet": "db4", "level": 4} | options
    report = _same(tmp_path, _traces(*shape), backend=backend, **options)
    assert len(report.thresholds) == options["level"]
    assert len(report.sigma) == (0 if isinstance(options.get("rule"), list) else options["level"])


@pytest.mark.parametrize(
    ("dtype", "more"), [("i2", 0), ("i2", 3), ("i2", 9), (">f8", 0), (">f8", 9), ("c8", 0), ("f2", 0)]
)
def test_sizes_of_chunks_and_dtypes(tmp_path, dtype, more):
    x = _traces(1, LONG if dtype == "c8" else 2 * LONG, dtype)
    np.save(tmp_path / "x.npy", x)
    least = float(least_memory(tmp_path / "x.npy", backend="numba").split()[0])
    _same(tmp_path, x, max_memory=f"{least + more}MiB")
    assert _same(tmp_path, x[:, :4000], max_memory="1GiB", cut=False).passes == 1


def test_a_rule_with_a_fixed_threshold_reads_once(tmp_path, backend):
    assert _same(tmp_path, _traces(1, LONG), rule=0.4, backend=backend).passes < 1.1


@pytest.mark.parametrize("kind", ["few values", "constant", "two values", "gliding", "dead"])
def test_awkward_data_in_chunks(tmp_path, backend, kind):
    """Medians are searched with tables of a sample, which may mislead."""
    x = _traces(2, LONG)
    if kind == "few values":
        x = np.round(x / 20)
    elif kind == "constant":
        x[:] = 3
    elif kind == "two values":
        x[:, ::2], x[:, LONG // 2 :: 3] = -1e-30, 1e30
    elif kind == "gliding":
        x *= np.exp2(np.linspace(-90, 90, LONG)).astype("f4")
    else:
        x[1] = 0
        x[1, ::2500] = 0.1
    for rule in ("universal", "bayes"):
        _same(tmp_path, x, rule=rule, backend=backend, cut=kind != "constant")
        if kind == "constant":
            assert np.array_equal(np.load(tmp_path / "parts.npy"), x)


@pytest.mark.parametrize("rule", ["bayes", "universal", "fdr", 0.3])
@pytest.mark.parametrize("limit", [None, "1GiB"])
def test_dead_traces_of_a_record_count_for_nothing(tmp_path, rng, backend, rule, limit):
    x, dead = partly_dead(rng, 120_000, "f4")
    options = {"wavelet": "db4", "level": 3, "rule": rule, "scope": "record", "backend": backend}
    report = _same(tmp_path, x, max_memory=limit, cut=None if rule == 0.3 else limit is None, **options)
    found = np.load(tmp_path / "parts.npy")
    assert np.array_equal(found[dead], x[dead])
    assert np.array_equal(found[~dead], wavefilt.denoise(x[~dead], **options))
    assert report.noisy_traces == np.count_nonzero(~dead)
    assert np.isclose(report.residual_energy, share(x, found), rtol=1e-4)


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize(
    ("shape", "axis"),
    [((1400,), 0), ((3, 1400), -1), ((1400, 3), 0), ((2, 1400, 3), 1), ((2, 3, 1400), None), ((1400, 2, 3), 0)],
)
def test_every_order_of_axes(tmp_path, shape, axis, order):
    """Whole traces in batches, and traces 600 times as long in chunks."""
    for stretch, limit in ((1, "1GiB"), (1000 // (np.prod(shape) // 1400), None)):
        x = _traces(np.prod(shape) // 1400, 1400 * stretch).reshape(*(n for n in shape if n != 1400), 1400 * stretch)
        x = np.moveaxis(x, -1, -1 if axis is None else axis)
        _same(tmp_path, x, axis=axis, order=order, max_memory=limit, cut=not limit, wavelet="db2", scope="record")


BATCHED = [{}, {"rule": "sure"}, {"rule": "neighblock"}, {"rule": "hybrid", "level": 3}, {"spins": 3}]
BATCHED += [{"transform": "modwt", "level": 3}, {"transform": "wp", "level": 3}, {"sigma": ("window", 10, 200)}]


@pytest.mark.parametrize("options", BATCHED, ids=str)
def test_many_traces_go_in_batches(tmp_path, backend, options):
    x = _traces(600, 1000)
    if "sigma" not in options:
        x[7, 300:310] = x[21, :5] = np.nan  # whole traces may have gaps
    report = _same(tmp_path, x, max_memory="16MiB", cut=False, backend=backend, **options)
    y = np.load(tmp_path / "parts.npy")
    assert report.residual_energy == pytest.approx(share(x, y), rel=1e-6)


NOT_CHUNKED = [{"rule": rule} for rule in ("sure", "hybrid", "blockjs")] + [{"rule": "sure", "scope": "record"}]
NOT_CHUNKED += [{"transform": "wp"}, {"spins": 4}, {"sigma": ("window", 0, 99)}]
NOT_CHUNKED += [{"sigma": ("running", 5000)}, {"sigma": ("intervals", [100])}]


@pytest.mark.parametrize("options", NOT_CHUNKED, ids=str)
def test_options_that_need_whole_traces_say_how_much_memory_they_take(tmp_path, options):
    path, target = tmp_path / "x.npy", tmp_path / "y.npy"
    np.save(path, _traces(1, 2 * LONG))
    word = "noise" if "sigma" in options else f"{next(iter(options))}="
    with pytest.raises(ValueError, match=f"{word}.*whole") as error:
        wavefilt.denoise_file(path, target, max_memory="40MiB", **options)
    assert os.listdir(tmp_path) == ["x.npy"]
    if options.get("rule") == "sure":
        enough = re.search(r"max_memory='([^']+)'", str(error.value))[1]
        assert wavefilt.denoise_file(path, target, max_memory=enough, **options).passes == 1


@pytest.mark.parametrize(
    ("value", "words"), [(np.nan, "NaN at trace 1, sample 20000"), (np.inf, "infinite.*20000"), (3e38, "overflow")]
)
def test_samples_that_cannot_be_are_named(tmp_path, backend, value, words):
    x = _traces(2, LONG)
    x[1, 20000] = value
    np.save(tmp_path / "x.npy", x)
    for options in ({}, {"rule": 0.5}, {"scope": "record"}):
        limit = least_memory(tmp_path / "x.npy", backend=backend, **options)
        with pytest.raises(ValueError, match=words):
            wavefilt.denoise_file(tmp_path / "x.npy", tmp_path / "y.npy", max_memory=limit, backend=backend, **options)
    assert os.listdir(tmp_path) == ["x.npy"]


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"axes": (0, 1)}, "two_dimensional"),
        ({"two_dimensional": True}, "two_dimensional"),
        ({"preset": "section"}, "two_dimensional"),
        ({"return_residual": True}, "return_residual"),
        ({"rul": "bayes"}, "rul"),
        ({"devices": "all"}, "devices"),
        *(({"max_memory": size}, "size") for size in ("", "much", "-1GiB", "0", 0, "1XB", "1e9", True, None, "nan")),
    ],
    ids=str,
)
def test_options_that_are_refused(tmp_path, options, word):
    np.save(tmp_path / "x.npy", _traces(4, 100))
    with pytest.raises(ValueError, match=word):
        wavefilt.denoise_file(tmp_path / "x.npy", tmp_path / "y.npy", **options)
    with pytest.raises(ValueError, match="input"):
        wavefilt.denoise_file(tmp_path / "x.npy", tmp_path / "x.npy", overwrite=True)
    assert os.listdir(tmp_path) == ["x.npy"]


def test_a_source_is_a_path_or_a_source(tmp_path):
    np.save(tmp_path / "x.npy", _traces(4, 100))
    wavefilt.denoise_file(os.fsencode(tmp_path / "x.npy"), tmp_path / "y.npy")
    for source in (_traces(4, 100), io.BytesIO()):
        with pytest.raises(TypeError, match="PathLike"):
            wavefilt.denoise_file(source, tmp_path / "z.npy")


@pytest.mark.parametrize("size", ["500MB", "1GiB", " 1.5 g", "64000k", 1 << 26, "67108864", "2TiB"])
def test_spellings_of_a_limit(tmp_path, size):
    np.save(tmp_path / "x.npy", _traces(4, 400))
    report = wavefilt.denoise_file(tmp_path / "x.npy", tmp_path / "y.npy", max_memory=size)
    assert report.shape == (4, 400)


def test_the_command(tmp_path, capsys):
    x, source = _traces(3, 20_000), tmp_path / "x.npy"
    np.save(source, x)
    options = ["--noise-window", "0", "0.4", "--max-memory", "1GiB", "--dt", "0.001", "--json"]
    code, out, err = run(capsys, "denoise", source, "-o", tmp_path / "y.npy", *options)
    assert (code, json.loads(out)["max_memory"]) == (0, 1 << 30), err
    assert np.array_equal(np.load(tmp_path / "y.npy"), wavefilt.denoise(x, sigma=("window", 0, 400)))
