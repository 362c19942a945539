"""Rows that one kernel denoises, a block for each: bit for bit as by the kernels that divide rows among blocks."""

from __future__ import annotations

import numpy as np
import pytest
import pywt

import wavefilt
from tests.support.simulation import SIMULATED, inside
from wavefilt.method import Method
from wavefilt.vocabulary import MODES

SHORT = [mode for mode in MODES if mode != "periodization"]


def _traces(rows, n, seed=0):
    rng = np.random.default_rng(seed)
    return (np.sin(np.linspace(0, 60, n)) + rng.standard_normal((rows, n)) * 0.3).astype(np.float32)


def _both(x, method, level, monkeypatch, expected=True):
    """Denoised by one block a row, and by several; the first takes its kernel if that is ``expected``."""
    from wavefilt.backends.cuda import Cuda, Options
    from wavefilt.backends.cuda.dwt import one_block

    launched, launch = [], one_block.OneBlock.launch
    monkeypatch.setattr(one_block.OneBlock, "launch", lambda *own: (launched.append(own[0].size), launch(*own))[1])
    divided = Options(tile=128, threads=8, select=8, scan=8, row=8) if SIMULATED else Options(tile=2048)
    found = [Cuda(options=options).denoise(x, method, level)[0] for options in (Options(), divided)]
    assert bool(launched) == expected
    return found


@pytest.fixture
def small(monkeypatch):
    """Blocks of 32 threads, which take several rounds, and lists of few values."""
    from wavefilt.backends.cuda.dwt import one_block
    from wavefilt.backends.cuda.statistics import in_block

    monkeypatch.setattr(one_block, "THREADS", (32,))
    monkeypatch.setattr(one_block, "FEW", 40)
    return in_block


@inside
@pytest.mark.parametrize("mode", SHORT)
@pytest.mark.parametrize(("wavelet", "n", "level"), [("haar", 301, 3), ("db3", 300, 2), ("sym8", 137, 3)])
def test_modes(small, monkeypatch, mode, wavelet, n, level):
    method = Method(wavelet=wavelet, mode=mode, rule="universal", sigma="global")
    alone, divided = _both(_traces(2, n), method, level, monkeypatch)
    np.testing.assert_array_equal(alone, divided)


@inside
@pytest.mark.parametrize("function", ["soft", "hard", "garrote", "firm"])
@pytest.mark.parametrize("sigma", ["global", "level", 0.25])
@pytest.mark.parametrize("rule", ["universal", "minimax", "bayes"])
def test_rules(small, monkeypatch, rule, sigma, function):
    """Energies are summed in another order: thresholds of rule bayes may differ in the last bit."""
    method = Method(wavelet="db2", rule=rule, sigma=sigma, shrink=function)
    alone, divided = _both(_traces(2, 206), method, 3, monkeypatch)
    if rule == "bayes":
        np.testing.assert_allclose(alone, divided, atol=1e-6)
    else:
        np.testing.assert_array_equal(alone, divided)


@inside
def test_given_thresholds(small, monkeypatch):
    method = Method(wavelet="db4", rule=(0.5, 0.0, 0.25))
    alone, divided = _both(_traces(3, 205), method, 3, monkeypatch)
    np.testing.assert_array_equal(alone, divided)


@inside
@pytest.mark.parametrize("kind", ["ties", "one large", "mostly zero", "tiny", "huge", "steps"])
def test_values_that_mislead_the_search(small, monkeypatch, kind):
    """Details that are equal, zero, near the ends of float32, or far from what a sample of them suggests."""
    monkeypatch.setattr(small, "LISTED", 6)
    x, rng = _traces(2, 300), np.random.default_rng(1)
    if kind == "ties":
        x = rng.integers(0, 2, x.shape).astype(np.float32)
    elif kind == "one large":
        x[:, ::25] *= np.float32(1e6)
    elif kind == "mostly zero":
        x[:, 40:] = 0
    elif kind == "tiny":
        x *= np.float32(1e-41)
    elif kind == "huge":
        x *= np.float32(1e35)
    else:
        x[:, :150] *= np.float32(1e-4)
    method = Method(wavelet="haar", rule="universal", sigma="level")
    alone, divided = _both(x, method, 3, monkeypatch)
    np.testing.assert_array_equal(alone, divided)


@inside
def test_dead_rows_are_kept(small, monkeypatch):
    x = _traces(3, 150)
    x[1] = np.float32(0.1)
    alone, _ = _both(x, Method(wavelet="db4", rule="universal", sigma="global"), 2, monkeypatch)
    np.testing.assert_array_equal(alone[1], x[1])
    assert not np.array_equal(alone[0], x[0])


@inside
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("where", [0, 77, 149])
@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_samples_that_are_not_finite(small, monkeypatch, where, value):
    """The caller is told, who fills or refuses them."""
    from wavefilt.backends.cuda import Cuda

    x = _traces(2, 150)
    x[1, where] = value
    assert Cuda().denoise(x, Method(wavelet="db4", rule="universal", sigma="global"), 2) is None


@inside
@pytest.mark.parametrize(
    ("n", "dtype", "level", "options"),
    [
        (150, "float64", 2, {}),
        (150, "float32", 2, {"mode": "periodization"}),
        (150, "float32", 2, {"scope": "record"}),
        (2000, "float32", 2, {}),
        (600, "float32", 9, {"wavelet": "haar"}),
    ],
)
def test_rows_that_blocks_share(small, monkeypatch, n, dtype, level, options):
    """Of another dtype or mode, with thresholds of a record, too long, or of too many levels."""
    method = Method(**{"wavelet": "db4", "rule": "universal", "sigma": "global"} | options)
    alone, divided = _both(_traces(2, n).astype(dtype), method, level, monkeypatch, expected=False)
    np.testing.assert_allclose(alone, divided, rtol=0, atol=1e-5)


@inside
def test_middle_values_are_exact():
    """Of bands of many lengths and kinds of values, beside a sort."""
    from wavefilt.backends.cuda.runtime.target import cuda
    from wavefilt.backends.cuda.statistics import in_block
    from wavefilt.backends.cuda.statistics.search_window import BINS, WORKSPACE

    middle, few, both = in_block.middles(32), in_block.few, []

    @cuda.jit
    def kernel(values, n, found):
        buffer, keys = cuda.shared.array(0, np.dtype("f4")), cuda.shared.array(0, np.dtype("i4"))
        histogram = cuda.shared.array(BINS, np.int32)
        workspace = cuda.shared.array(WORKSPACE, np.int32)
        least = cuda.shared.array(1, np.int64)
        listed = cuda.shared.array(in_block.LISTED, np.int32)
        tally = cuda.shared.array(2, np.int32)
        for i in range(cuda.threadIdx.x, n, 32):
            buffer[i] = values[i]
        cuda.syncthreads()
        middle(buffer, keys, 0, n, histogram, workspace, least, listed, tally, found, 0)
        few(buffer, keys, 0, n, found, 2)

    rng = np.random.default_rng(3)
    for n in (1, 2, 5, 32, 33, 64, 127, 300):
        noise = rng.standard_normal(n).astype(np.float32)
        for values in (noise, np.abs(noise) ** 20, np.round(noise), noise * np.float32(1e-40), np.zeros_like(noise)):
            found = cuda.to_device(np.zeros(4, np.int32))
            kernel[1, 32, 0, 4 * (n + 4)](cuda.to_device(values.astype(np.float32)), n, found)
            expected = np.sort(np.abs(values))[[(n - 1) // 2, n // 2]].astype(np.float32)
            both.append((found.copy_to_host().view(np.float32), np.tile(expected, 2)))
    for found, expected in both:
        np.testing.assert_array_equal(found, expected)


@pytest.mark.gpu
@pytest.mark.skipif(SIMULATED, reason="long rows")
@pytest.mark.parametrize("sigma", ["global", "level"])
@pytest.mark.parametrize(
    ("rows", "n", "wavelet"),
    [
        (1, 1000, "db8"),
        (24, 1024, "sym8"),
        (700, 2001, "db4"),
        (300, 5001, "db8"),
        (40, 9999, "db8"),
        (300, 20001, "db2"),
    ],
)
def test_on_a_gpu(monkeypatch, rows, n, wavelet, sigma):
    """Rows of all sizes of blocks, aligned and not, and of more shared memory than all GPUs have.

    Blocks of 512 threads are not for the medians of several levels.
    """
    pytest.importorskip("numba_cuda")
    from wavefilt.backends import available

    if isinstance(state := available()["cuda"], wavefilt.BackendUnavailable):
        pytest.skip(str(state))
    level = min(6, pywt.dwt_max_level(n, wavelet))
    method, x = Method(wavelet=wavelet, rule="universal", sigma=sigma), _traces(rows, n)
    alone, divided = _both(x, method, level, monkeypatch, expected=n < 10_000 or sigma == "global")
    np.testing.assert_array_equal(alone, divided)


@pytest.mark.gpu
@pytest.mark.skipif(SIMULATED, reason="there are no graphs")
def test_shapes_and_rules_that_take_turns():
    """They share a kernel, and graphs of those that take more memory are launched on other arrays after others."""
    pytest.importorskip("numba_cuda")
    from wavefilt.backends import available

    if isinstance(state := available()["cuda"], wavefilt.BackendUnavailable):
        pytest.skip(str(state))
    from wavefilt.backends.cuda.runtime.target import cuda

    cases = [(n, rule) for n in (3001, 500, 1024) for rule in ("bayes", "universal")]
    held = []
    for turn in range(4):
        for n, rule in cases:
            x = _traces(24, n, turn)
            held.append(cuda.to_device(x))
            y = wavefilt.denoise(held[-1], rule=rule, level=4)
            expected = wavefilt.denoise(x, rule=rule, level=4, backend="pywavelets")
            np.testing.assert_allclose(y.copy_to_host(), expected, atol=2e-5)
