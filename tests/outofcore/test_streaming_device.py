"""Files whose traces are resident on a GPU: small ones in the simulator, real ones with ``pytest -m gpu``."""

from __future__ import annotations

import os

import numpy as np
import pytest

import wavefilt
from tests.outofcore.test_memory import measured
from tests.support.signals import partly_dead, share
from tests.support.simulation import arrays_on_device, inside, small_options
from wavefilt import memory


@pytest.fixture
def small(monkeypatch):
    from wavefilt.backends.cuda import Cuda

    arrays_on_device(monkeypatch)
    return Cuda(options=small_options(tile=64, threads=16))


@pytest.fixture
def tiny(monkeypatch):
    """Return the limit for pieces of a number of float64 samples; traces are never whole."""
    monkeypatch.setattr(memory, "_extra", lambda *_, **__: 1e15)
    monkeypatch.setattr(memory, "FIXED", 0)
    monkeypatch.setattr(memory, "LEAST", 8)
    return lambda size: int(memory.RESIDENT * 8 * size) + 1


def _traces(rows, n, dtype="f8"):
    rng = np.random.default_rng(11)
    return (np.sin(np.arange(n) / 9) + rng.standard_normal((rows, n))).astype(dtype)


def _compare(folder, x, limit, backend, **options):
    """Denoise a file both ways: the same samples. Return the report and the calls of the progress."""
    told = []
    np.save(folder / "x.npy", x)
    options["backend"], progress = backend, lambda *counts: told.append(counts)
    report = wavefilt.denoise_file(
        folder / "x.npy", folder / "y.npy", max_memory=limit, overwrite=True, progress=progress, **options
    )
    expected = wavefilt.denoise(x, **options)
    found = np.load(folder / "y.npy")
    assert found.dtype == expected.dtype
    assert np.array_equal(found, expected)
    assert sorted(os.listdir(folder)) == ["x.npy", "y.npy"]
    return report, told


IN_THE_SIMULATOR = [{"rule": "bayes"}, {"rule": "sure", "scope": "record"}, {"rule": 0.5}]


@inside
@pytest.mark.parametrize("options", [*IN_THE_SIMULATOR, {"rule": "universal", "transform": "modwt"}], ids=str)
def test_the_samples_of_denoising_in_memory(tmp_path, tiny, small, options):
    x = _traces(3, 260)
    report, told = _compare(tmp_path, x, tiny(100), small, wavelet="haar", level=2, **options)
    assert report.passes == 1
    assert told[-1] == (2 * x.nbytes, 2 * x.nbytes)
    assert np.isclose(report.residual_energy, share(x, np.load(tmp_path / "y.npy")))
    assert len(report.thresholds) == 2


@inside
@pytest.mark.parametrize("rule", ["bayes", "universal", "sure", "neighblock"])
@pytest.mark.parametrize("size", [100, 600])
def test_dead_traces_of_a_record_count_for_nothing(tmp_path, rng, tiny, small, rule, size):
    x, dead = partly_dead(rng, 260, traces=8, dead=5)
    options = {"wavelet": "haar", "level": 2, "rule": rule, "scope": "record"}
    report, told = _compare(tmp_path, x, tiny(size), small, **options)
    found = np.load(tmp_path / "y.npy")
    assert np.array_equal(found[dead], x[dead])
    assert np.array_equal(found[~dead], wavefilt.denoise(x[~dead], backend=small, **options))
    assert np.isclose(report.residual_energy, share(x, found))
    assert min(report.sigma) > 0.1
    assert told[-1] == (2 * x.nbytes, 2 * x.nbytes)
    x[~dead] = 1
    report, _ = _compare(tmp_path, x, tiny(size), small, **options)
    assert np.array_equal(np.load(tmp_path / "y.npy"), x)
    assert (report.residual_energy, report.thresholds) == (0, [0, 0])


@inside
@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # NumPy's scalars warn where a GPU goes on
@pytest.mark.parametrize(
    ("value", "words"), [(np.nan, "NaN at trace 1, sample 120"), (-np.inf, "infinite.*120"), (1.7e308, "overflow")]
)
def test_samples_that_cannot_be_are_named(tmp_path, tiny, small, value, words):
    x = _traces(2, 150)
    x[1, 120:122] = value
    np.save(tmp_path / "x.npy", x)
    for scope in ("trace", "record"):
        with pytest.raises(ValueError, match=words):
            wavefilt.denoise_file(
                tmp_path / "x.npy", tmp_path / "y.npy", "haar", level=1, max_memory=tiny(50), backend=small, scope=scope
            )
    assert os.listdir(tmp_path) == ["x.npy"]


@pytest.fixture(scope="module")
def gpu():
    try:
        return wavefilt.backends.get("cuda")
    except wavefilt.BackendUnavailable as error:
        pytest.skip(str(error))


ON_A_GPU = [{}, {"rule": "universal", "scope": "record"}, {"rule": "sure"}, {"rule": "neighblock"}]
ON_A_GPU += [{"rule": "ebayes", "level": 3}, {"transform": "modwt", "level": 4}]


@pytest.mark.gpu
@pytest.mark.parametrize("options", ON_A_GPU, ids=str)
@pytest.mark.parametrize("dtype", ["f4", "f8", "i2"])
def test_files_on_a_gpu(tmp_path, gpu, options, dtype):
    x = (100 * _traces(2, 1_500_001)).astype(dtype)
    report, _ = _compare(tmp_path, x, "24MiB", "cuda", **options)
    assert report.backend == "cuda"


@pytest.mark.gpu
@pytest.mark.parametrize("devices", [[0], "all"])
def test_peak_memory_on_a_gpu(tmp_path, gpu, devices):
    """256 MiB within 64 MiB."""
    backend = wavefilt.backends.get("cuda", devices=devices)
    x = np.tile(_traces(1, 1 << 20, "f4"), 64)
    _compare(tmp_path, x, "64MiB", backend)
    np.save(tmp_path / "small.npy", x[:, : 1 << 20])
    source, target = tmp_path / "x.npy", tmp_path / "y.npy"
    assert measured(tmp_path / "small.npy", source, target, "64MiB", "cuda", "trace") < 1.2 * (64 << 20)
