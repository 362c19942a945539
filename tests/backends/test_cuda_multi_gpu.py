"""Several GPUs as one backend: in the simulator one stands for all, on machines with more they are used."""

from __future__ import annotations

import numpy as np
import pytest

import wavefilt
from tests.support.simulation import arrays_on_device, inside, outside
from wavefilt import backends
from wavefilt.denoising.pipeline import run
from wavefilt.errors import BackendUnavailable
from wavefilt.method import Method


@outside
@pytest.mark.parametrize("devices", ["none", [], [0, 0], [2], [-1], [True], ["0"], (0, 1, 1)])
def test_numbers_of_no_gpu(devices):
    pytest.importorskip("numba")
    checked = _checked()
    with pytest.raises(ValueError, match=r"must be 'all'|names a GPU twice"):
        checked(devices, 2)
    assert checked("all", 2) == [0, 1]
    assert checked([1], 2) == [1]


def _checked():
    try:
        from wavefilt.backends.cuda.multi_gpu.backend import checked
    except wavefilt.BackendUnavailable as error:
        pytest.skip(str(error))
    return checked


@pytest.fixture
def three(monkeypatch):
    from wavefilt.backends.cuda import Options, Several, chunked_rows
    from wavefilt.backends.cuda.multi_gpu import backend

    arrays_on_device(monkeypatch)
    monkeypatch.setattr(backend, "checked", lambda devices, count: [0] * 3)
    monkeypatch.setattr(backend, "LEAST", 0)
    monkeypatch.setattr(chunked_rows, "THREADS", 4)
    monkeypatch.setattr(chunked_rows, "BLOCKS", 2)
    return Several(options=Options(tile=128, threads=8, select=8, scan=8, row=8))


@inside
@pytest.mark.parametrize(
    ("rows", "n", "options"),
    [
        (4, 140, {"rule": "universal"}),
        (3, 90, {"transform": "modwt", "rule": 0.3, "wavelet": "haar"}),
        (2, 300, {"rule": "universal", "sigma": "global"}),  # each of two rows over three
        (1, 303, {"rule": "sure", "mode": "periodization"}),
        (1, 300, {"rule": "fdr"}),
        (5, 130, {"rule": "universal", "scope": "record"}),
        (2, 140, {"rule": "blockjs"}),  # whole rows alone
        (1, 300, {"rule": "js"}),
        (4, 140, {"rule": "js", "transform": "modwt", "wavelet": "haar"}),
    ],
)
def test_the_result_of_one(three, rows, n, options):
    x = np.random.default_rng(n).standard_normal((rows, n))
    method = Method(**{"wavelet": "db2", "level": 2, **options})
    divided = rows < 3 or options.get("scope") == "record"
    y, measured = (three.split if divided and options["rule"] != "blockjs" else three.denoise)(x, method, 2, True)
    one, expected = three._members[0].backend.denoise(x, method, 2, True)
    if options["rule"] != "js":  # the mean of a row is summed elsewhere
        assert np.array_equal(y, one)
    np.testing.assert_allclose(y, run(x, method, "pywavelets").samples, atol=1e-10)
    np.testing.assert_allclose(measured.sigma, expected.sigma, rtol=0 if options["rule"] != "js" else 1e-12)
    np.testing.assert_allclose(measured.thresholds, expected.thresholds, rtol=0 if options["rule"] != "js" else 1e-12)
    np.testing.assert_allclose(measured.power, expected.power, rtol=1e-12)


@inside
def test_chunks_that_are_whole_rows(three):
    """One a group, which is some GPU's all the same."""
    x, method = np.random.default_rng(2).standard_normal((4, 140)), Method("db2", 2, rule="universal")
    assert np.array_equal(three.split(x, method, 2)[0], three.denoise(x, method, 2)[0])


@inside
def test_what_has_no_room_on_one_gpu(three, monkeypatch):
    from wavefilt.backends.cuda.runtime.memory import OutOfMemory

    def full(*_):
        raise OutOfMemory("full")

    x = np.random.default_rng(9).standard_normal((1, 300))
    method = Method("db2", 2, rule="universal")
    expected = three.denoise(x, method, 2)[0]
    cut, split = [], three.split
    monkeypatch.setattr(three._members[0].backend, "whole", full)
    monkeypatch.setattr(three, "split", lambda *args: cut.append(1) or split(*args))
    assert np.array_equal(three.denoise(x, method, 2)[0], expected)
    assert cut
    block = Method("db2", 2, rule="blockjs")  # cannot be cut, nor be done chunk by chunk
    monkeypatch.setattr(three, "whole", full)
    with pytest.raises((MemoryError, ValueError)):
        three.denoise(x, block, 2)


@inside
@pytest.mark.filterwarnings("ignore:invalid value")
def test_gaps_errors_and_the_rest(three):
    x = np.random.default_rng(1).standard_normal((1, 300))
    x[0, 200] = np.nan
    assert three.denoise(x, Method("db2", 2), 2) is None
    assert three.denoise(np.ones((4, 100)) * np.inf, Method("db2", 2), 2) is None
    expected = wavefilt.denoise(x, "db2", level=2, backend="pywavelets")
    np.testing.assert_allclose(wavefilt.denoise(x, "db2", level=2, backend=three), expected, atol=1e-10)
    assert three.describe().count("simulator") == 3
    three.clear()


@inside
@pytest.mark.filterwarnings("ignore:invalid value")
def test_parts_on_gpus(three):
    from wavefilt.backends.cuda.runtime import interop
    from wavefilt.backends.cuda.runtime.target import cuda

    parts = [np.random.default_rng(i).standard_normal((2, 150)) for i in range(3)]
    parts[1][0, 7] = np.inf
    method = Method("db2", 2)
    found = three.each([cuda.to_device(part) for part in parts], method, [2] * 3)
    assert found[1] is None
    for i in (0, 2):
        np.testing.assert_allclose(interop.to_host(found[i]), run(parts[i], method, "pywavelets").samples, atol=1e-10)


@inside
@pytest.mark.filterwarnings("ignore:invalid value")
def test_parts_that_have_no_room_at_once(three, monkeypatch):
    from wavefilt.backends.cuda.runtime import interop
    from wavefilt.backends.cuda.runtime.memory import OutOfMemory
    from wavefilt.backends.cuda.runtime.target import cuda

    parts = [np.random.default_rng(i).standard_normal((2, 150)) for i in range(3)]
    parts[1][0, 7] = np.inf
    method = Method("db2", 2)

    def full(*_):
        raise OutOfMemory("full")

    monkeypatch.setattr(three, "_at_once", full)
    found = three.each([cuda.to_device(part) for part in parts], method, [2] * 3)
    assert found[1] is None
    for i in (0, 2):
        np.testing.assert_allclose(interop.to_host(found[i]), run(parts[i], method, "pywavelets").samples, atol=1e-10)


@pytest.fixture(scope="module")
def all_gpus():
    """All GPUs of this machine, if there are two or more."""
    try:
        found = backends.get("cuda", devices="all")
    except BackendUnavailable as error:
        pytest.skip(str(error))
    if len(found._members) < 2:
        pytest.skip("one GPU")
    return found


@pytest.mark.gpu
@pytest.mark.parametrize(
    ("rows", "n", "options"),
    [
        (64, 1 << 18, {}),
        (9, 1 << 20, {"rule": "universal", "dtype": "f8"}),
        (1, (1 << 24) + 77, {"rule": "universal", "sigma": "global"}),
        (3, 1 << 22, {"rule": "bayes", "mode": "periodization"}),
        (40, 1 << 18, {"rule": "universal", "scope": "record"}),
        (8, 1 << 20, {"transform": "modwt", "rule": "universal"}),
        (1, 1 << 22, {"rule": "fdr"}),
        (64, 1 << 18, {"rule": "js"}),
        (8, 1 << 20, {"rule": "js", "transform": "modwt"}),
    ],
)
def test_as_on_one_gpu(all_gpus, rows, n, options):
    options = dict(options)
    dtype = options.pop("dtype", "f4")
    x = np.random.default_rng(n).standard_normal((rows, n), "f4").astype(dtype)
    one = wavefilt.denoise(x, "db8", level=6, backend="cuda", **options)
    method = Method("db8", 6, **options)
    results = [wavefilt.denoise(x, "db8", level=6, backend=all_gpus, **options) for _ in range(3)]  # the last recorded
    if method.scope == "record" or (rows < 4 and method.rule != "fdr"):
        results.append(all_gpus.split(x, method, 6)[0])
    for y in results:
        if options.get("rule", "bayes") == "bayes":  # mean squares are to rounding where a row is cut
            np.testing.assert_allclose(y, one, atol=1e-5)
        else:
            assert np.array_equal(y, one)


@pytest.mark.gpu
def test_arrays_on_every_gpu(all_gpus):
    cupy = pytest.importorskip("cupy")
    parts = []
    for member in all_gpus._members:
        with cupy.cuda.Device(member.number):
            parts.append(cupy.random.default_rng(member.number).standard_normal((2, 1 << 20), dtype="f4"))
    for _ in range(3):
        found = wavefilt.denoise(parts, "db8", level=8, rule="universal")
        for part, y in zip(parts, found, strict=True):
            assert y.device == part.device
            assert np.array_equal(
                y.get(), wavefilt.denoise(part.get(), "db8", level=8, rule="universal", backend="cuda")
            )


@pytest.mark.gpu
def test_a_batch_again(all_gpus):
    """Its launches are recorded the second time; a sample that is not finite, and other arrays, are still seen."""
    cupy = pytest.importorskip("cupy")
    parts, outs = [], []
    for member in all_gpus._members:
        with cupy.cuda.Device(member.number):
            parts.append(cupy.random.default_rng(member.number).standard_normal((1, 1 << 20), dtype="f4"))
            outs.append(cupy.empty_like(parts[-1]))
    method = Method("db8", 8, rule="universal")
    expected = [run(part.get(), method, "cuda").samples for part in parts]

    def check(found, right):
        for y, one in zip(found, right, strict=True):
            assert np.array_equal(y.get(), one)

    for _ in range(5):
        for out in outs:
            with out.device:
                out.fill(0)
        check(all_gpus.each(parts, method, [8] * len(parts), outs), expected)
    with parts[1].device:
        kept = parts[1][0, 5].copy()
        parts[1][0, 5] = np.nan
    found = all_gpus.each(parts, method, [8] * len(parts), outs)
    assert found[1] is None
    assert np.array_equal(found[0].get(), expected[0])
    with parts[1].device:
        parts[1][0, 5] = kept
    check(all_gpus.each(parts[::-1], method, [8] * len(parts), outs[::-1]), expected[::-1])
    all_gpus.clear()
    check(all_gpus.each(parts, method, [8] * len(parts), outs), expected)
