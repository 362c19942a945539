"""Rows denoised chunk by chunk: the result of the whole rows, however small the chunks."""

from __future__ import annotations

import numpy as np
import pytest
import pywt

from tests.support.signals import partly_dead
from wavefilt import backends
from wavefilt.chunking import passes as chunked
from wavefilt.chunking.chunks import cut
from wavefilt.denoising.pipeline import run
from wavefilt.method import Method
from wavefilt.statistics.mergeable import PassStatistics, State
from wavefilt.transforms import DWT
from wavefilt.vocabulary import MODES

WAVELETS = ["haar", "db4", "bior3.5", "sym8"]


@pytest.fixture(params=["pywavelets", "numba"])
def backend(request):
    return backends.get(request.param)


@pytest.fixture
def small_tables(monkeypatch):
    """Of float64 magnitudes, for more passes: the real ones take longer to sum up than the rest of a small test."""
    monkeypatch.setitem(chunked.BINS, 8, 1 << 16)


def _traces(rows, n, dtype="f4"):
    rng = np.random.default_rng(n)
    return (np.sin(np.arange(n) / 9) + rng.standard_normal((rows, n)) * np.linspace(0.2, 2, n)).astype(dtype)


def _chunked(x, method, level, backend, most, report=False):
    out = np.full_like(x, np.nan)
    return out, chunked.denoise(chunked.Rows(x, out, backend), method, level, most * x.itemsize, report)


def _assert_same(x, method, backend, most, exact=True):
    """Denoised in chunks of ``most`` samples as in memory: bit for bit, or but for the rounding of mean squares."""
    whole = run(x, method, backend, report=True)
    found, measured = _chunked(x, method, whole.level, backend, most, report=True)
    (estimate,) = whole.estimates
    assert np.array_equal(measured.sigma, estimate.sigma)
    np.testing.assert_allclose(measured.power, estimate.power, rtol=1e-12)
    if exact:
        assert np.array_equal(measured.thresholds, estimate.thresholds)
        assert np.array_equal(found, whole.samples)
    else:
        np.testing.assert_allclose(measured.thresholds, estimate.thresholds, rtol=1e-10)
        np.testing.assert_allclose(found, whole.samples, atol=1e-5 if x.real.dtype == "f4" else 1e-12)


@pytest.mark.usefixtures("small_tables")
@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("wavelet", WAVELETS)
def test_every_coefficient_is_that_of_the_whole_row(backend, wavelet, mode):
    bank = pywt.Wavelet(wavelet)
    for level in (1, 4):
        n, dtype = (2901 + 37 * level, "f4") if level % 2 else (3000 + 36 * level, "f8")
        x = _traces(2, n, dtype)
        whole = backend.decompose(x, DWT.analysis(bank, mode, level)).coefficients[:0:-1]
        seen = [np.zeros_like(details) for details in whole]
        for chunk in cut(2, n, DWT.halo(bank.dec_len, level), level, 400):
            rows = chunked.Rows(x, x, backend)
            pyramid = backend.decompose(rows.take(chunk), DWT.analysis(bank, mode, level))
            for i, details in enumerate(pyramid.coefficients[:0:-1], 1):
                for (_, place), own in zip(chunk.kept(), chunk.owned(i), strict=True):
                    part = details[:, own]
                    begin = place.start >> i
                    seen[i - 1][chunk.rows, begin : begin + part.shape[1]] += part
        assert all(map(np.array_equal, seen, whole))
        _assert_same(x[:1], Method(bank, level, mode, "universal", sigma="global"), backend, 400)


@pytest.mark.usefixtures("small_tables")
@pytest.mark.parametrize("rule", ["universal", "minimax", "bayes", "sure", 0.7, [0.0, 0.2, 0.4]])
@pytest.mark.parametrize(
    ("scope", "sigma"), [("trace", "level"), ("record", "level"), ("trace", "global"), ("record", 0.3)]
)
def test_every_rule(backend, rule, scope, sigma):
    method = Method("db4", 3, "symmetric", rule, None, sigma, scope)
    for n, dtype, most in [(802, "f8", 300), (400, "f4", 900)]:  # parts of rows, or two rows
        _assert_same(_traces(3, n, dtype), method, backend, most, exact=rule != "bayes")


@pytest.mark.usefixtures("small_tables")
@pytest.mark.parametrize("mode", MODES)
def test_coefficients_that_are_not_decimated(backend, mode):
    for wavelet, level, sigma in [("sym8", 3, "level"), ("bior3.5", 2, "global"), ("haar", 4, ("running", 500))]:
        method = Method(wavelet, level, mode, "universal", sigma=sigma, transform="modwt")
        _assert_same(_traces(2, 2700, "f8"), method, backend, 400, exact=isinstance(sigma, str))
    x, method = _traces(1, 5000), Method("db4", 3, mode, "js", transform="modwt", detrend="mean")
    found, _ = _chunked(x, method, 3, backend, 700)
    np.testing.assert_allclose(found, run(x, method, backend).samples, atol=1e-6)


@pytest.mark.parametrize("shrink", ["soft", "hard", "garrote", "firm"])
def test_every_function(backend, shrink):
    _assert_same(_traces(1, 2000, "f8"), Method("sym8", 4, shrink=shrink, rule="universal"), backend, 0)


@pytest.mark.parametrize("kind", ["few values", "constant", "two values", "gliding"])
@pytest.mark.parametrize("n", [1200, 1201])
def test_medians_of_awkward_data(backend, kind, n):
    x = _traces(2, n)
    if kind == "few values":
        x = np.round(x)
    elif kind == "constant":
        x[:] = 3
    elif kind == "two values":
        x[:, ::2], x[:, n // 2 :] = -1e-30, 1e30
    else:
        x *= np.exp2(np.linspace(-90, 90, n)).astype("f4")
    for scope in ("trace", "record"):
        _assert_same(x, Method("haar", 3, "zero", "universal", scope=scope), backend, 64)


def test_complex_samples():
    x = (_traces(2, 1500) + 1j * _traces(2, 1500)[:, ::-1]).astype("c8")
    _assert_same(x, Method("db4", 3, "periodic", "universal"), backends.get("pywavelets"), 300)


def test_rows_of_threshold_zero_are_left_as_they_came(backend):
    x = _traces(3, 1500)
    x[1] = 0
    x[1, ::500] = 0.1  # most details are 0, and so are their medians
    y, measured = _chunked(x, Method("haar", 4, rule="universal"), 4, backend, 200)
    assert not measured.thresholds[:, 1].any()
    assert np.array_equal(y[1], x[1])
    assert np.array_equal(_chunked(x, Method("haar", 4, rule=0), 4, backend, 200)[0], x)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("rule", ["bayes", "sure", 0.5])
def test_what_is_not_finite_is_told(backend, value, rule):
    for place in (0, 777, 1499):
        x = _traces(1, 1500)
        x[0, place] = value
        with np.errstate(invalid="ignore"):
            assert _chunked(x, Method("db4", 3, rule=rule), 3, backend, 300)[1] is None


def test_numbers_need_one_pass_over_the_samples(backend, monkeypatch):
    seen, take = [], chunked.Rows.take
    monkeypatch.setattr(chunked.Rows, "take", lambda self, chunk: seen.append(chunk) or take(self, chunk))
    x = _traces(1, 4000)
    passes = {}
    for name, rule in {"number": 0.5, "median": "universal", "mean square too": "bayes"}.items():
        seen.clear()
        _chunked(x, Method("haar", 2, rule=rule), 2, backend, 500)
        passes[name] = len(seen) / len(set(map(id, seen)))
    assert passes == {"number": 1, "median": 3, "mean square too": 3}
    seen.clear()
    _chunked(x, Method("haar", 2), 2, backend, 4000)
    assert len(seen) == 1


def test_files_larger_than_memory_are_only_sliced(backend, tmp_path):
    x = _traces(2, 5000)
    source = np.memmap(tmp_path / "x", "f4", "w+", shape=x.shape)
    source[:] = x
    target = np.memmap(tmp_path / "y", "f4", "w+", shape=x.shape)
    method = Method("db4", 4, scope="record")
    chunked.denoise(chunked.Rows(source, target, backend), method, 4, 4000)
    np.testing.assert_allclose(target, run(x, method, backend).samples, atol=1e-5)


@pytest.mark.parametrize("wavelet", WAVELETS)
@pytest.mark.parametrize("level", [1, 3, 5])
def test_chunks_have_two_lengths_and_keep_to_the_limit(wavelet, level):
    taps = pywt.Wavelet(wavelet).dec_len
    reach = DWT.halo(taps, level)
    for samples in (10 * reach + 1, 12321, 12336):
        for most in (1, 4 * reach, 4096, 20000):
            chunks = cut(2, samples, reach, level, most)
            lengths = {chunk.length for chunk in chunks}
            assert len(lengths) <= 2
            assert max(lengths) <= max(most, 5 * reach)
            covered = np.zeros((2, samples), int)
            for chunk in chunks:
                for _, place in chunk.kept():
                    covered[chunk.rows, place] += 1
            assert (covered == 1).all()
    assert [c.rows for c in cut(5, 100, reach, level, 250)] == [slice(0, 2), slice(2, 4), slice(4, 5)]
    dead = np.isin(np.arange(9), [0, 4, 5, 7])
    placed = [(c.rows.start, c.rows.stop, c.place) for c in cut(9, 100, reach, level, 250, dead)]
    assert placed == [(1, 3, 0), (3, 4, 2), (6, 7, 3), (8, 9, 4)]
    assert cut(9, 100, reach, level, 250, dead | True) == []


def test_sure_says_so_when_its_details_do_not_fit():
    state = State(np.array([1 << 60]), 1, np.dtype("f4"), 1 << 16, squares=False)
    statistics = PassStatistics(state, run=lambda begin: [])
    with pytest.raises(MemoryError, match=r"rule='sure' .* 1152921504606846976 of level 1 do not fit"):
        statistics.minimise(lambda square, rank, below, count: square, np.ones((1, 1)))


@pytest.mark.usefixtures("small_tables")
@pytest.mark.parametrize("rule", ["bayes", "universal", "sure", "neighblock", 0.3])
@pytest.mark.parametrize("most", [400, 2500, 100_000])
def test_dead_rows_count_for_nothing_in_a_record(backend, rng, rule, most):
    """In chunks that cut rows, hold several or all of them: as the live rows alone."""
    x, dead = partly_dead(rng, 800)
    method = Method("db4", 3, rule=rule, scope="record")
    if rule == "neighblock" and most < 800:
        with pytest.raises(ValueError, match="whole traces in memory"):
            _chunked(x, method, 3, backend, most)
        return
    found, measured = _chunked(x, method, 3, backend, most, report=True)
    whole = run(x, method, backend, report=True)
    alone, expected = _chunked(x[~dead], method, 3, backend, most, report=True)
    assert np.array_equal(found[dead], x[dead])
    assert not any(numbers[:, dead].any() for numbers in (measured.sigma, measured.thresholds, measured.power))
    assert np.array_equal(measured.sigma[:, ~dead], expected.sigma)
    assert measured.sigma[:, ~dead].all()
    if rule == "bayes":  # mean squares are sums over other chunks
        for one, other in ((found[~dead], alone), (found, whole.samples)):
            np.testing.assert_allclose(one, other, atol=1e-12)
    else:
        assert np.array_equal(found[~dead], alone)
        assert np.array_equal(found, whole.samples)
        assert np.array_equal(measured.thresholds, whole.estimates[0].thresholds)


def test_a_record_of_dead_rows_is_written_as_it_came(backend):
    x = np.repeat([[0.0], [3.7]], 900, axis=1)
    for most in (300, 5000):
        found, measured = _chunked(x, Method("db4", 3, scope="record"), 3, backend, most, report=True)
        assert np.array_equal(found, x)
        assert not measured.sigma.any() and not measured.thresholds.any() and not measured.power.any()  # noqa: PT018
    x[1] = np.inf
    with np.errstate(invalid="ignore"):
        assert _chunked(x, Method("db4", 3, scope="record"), 3, backend, 300)[1] is None


def test_little_is_read_of_live_rows_to_find_the_dead(backend, rng, monkeypatch):
    x, dead = partly_dead(rng, 3000)
    read, seen = chunked.Rows.read, np.zeros(len(x), int)

    def counted(self, row, first, last):
        seen[row] += last - first
        return read(self, row, first, last)

    monkeypatch.setattr(chunked.Rows, "read", counted)
    _chunked(x, Method("db4", 3, scope="record"), 3, backend, 1000)
    assert seen[~dead].max() <= 3
    assert seen[dead].min() >= 3000


@pytest.mark.usefixtures("small_tables")
@pytest.mark.parametrize("options", [{}, {"scope": "record"}, {"rule": 0.5, "mode": "zero"}])
@pytest.mark.parametrize("most", [600, 3000])
def test_dead_rows_come_back_bit_for_bit(backend, options, most):
    x = _traces(3, 2000)
    x[1] = 3.7
    method = Method("db4", 3, **options)
    whole = run(x, method, backend, report=True)
    found, measured = _chunked(x, method, 3, backend, most, report=True)
    assert np.array_equal(found[1], x[1])
    assert np.array_equal(whole.samples[1], x[1])
    np.testing.assert_allclose(found, whole.samples, atol=1e-5)
    for name in ("sigma", "thresholds", "power"):
        np.testing.assert_allclose(getattr(measured, name), getattr(whole.estimates[0], name), rtol=1e-10)


@pytest.mark.usefixtures("small_tables")
@pytest.mark.parametrize("n", [2901, 3008])
@pytest.mark.parametrize("rule", ["js", "universal", "bayes"])
@pytest.mark.parametrize("scope", ["trace", "record"])
def test_chunks_of_the_dual_tree_transform(backend, n, rule, scope):
    x, method = _traces(2, n, "f8"), Method(level=4, rule=rule, scope=scope, transform="dtcwt")
    whole = run(x, method, backend, report=True)
    found, measured = _chunked(x, method, 4, backend, 400, report=True)
    np.testing.assert_allclose(measured.sigma[:4], whole.estimates[0].sigma, rtol=1e-12)
    np.testing.assert_allclose(found, whole.samples, atol=1e-12)
