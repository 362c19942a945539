"""Rows denoised chunk by chunk: the result of the whole rows, however small the chunks."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.signals import partly_dead
from wavefilt import backends
from wavefilt.chunking import passes
from wavefilt.denoising.pipeline import run
from wavefilt.method import Method
from wavefilt.vocabulary import MODES


@pytest.fixture(params=["pywavelets", "numba"])
def backend(request):
    return backends.get(request.param)


@pytest.fixture(autouse=True)
def small_tables(monkeypatch):
    """Of float64 magnitudes, for more passes: the real ones take longer to sum up than the rest of a small test."""
    monkeypatch.setitem(passes.BINS, 8, 1 << 16)


def traces(rows, n, dtype="f4"):
    rng = np.random.default_rng(n)
    return (np.sin(np.arange(n) / 9) + rng.standard_normal((rows, n)) * np.linspace(0.2, 2, n)).astype(dtype)


def in_chunks(x, backend, most, level=None, **options):
    """Samples and estimates by chunks of ``most`` samples, and those of the whole rows: the only use of the engine."""
    method = Method("db4" if options.get("transform") != "dtcwt" else None, level, **options)
    whole = run(x, method, backend, report=True)
    out = np.full_like(x, np.nan)
    estimate = passes.denoise(passes.Rows(x, out, backend), method, whole.level, most * x.itemsize, True)
    return out, estimate, whole.samples, whole.estimates[0] if whole.estimates else None


def assert_same(x, backend, most, exact=True, **options):
    """Bit for bit, or but for the rounding of mean squares, which are sums over other chunks."""
    found, measured, expected, estimate = in_chunks(x, backend, most, **options)
    for name in ("sigma", "thresholds", "power"):
        wanted = vars(estimate)[name]  # without the approximation, which js shrinks
        np.testing.assert_allclose(vars(measured)[name][: len(wanted)], wanted, rtol=1e-9)
    if exact:
        assert np.array_equal(found, expected)
    else:
        np.testing.assert_allclose(found, expected, atol=1e-5 if x.real.dtype == "f4" else 1e-11)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("transform", ["dwt", "modwt"])
def test_every_mode_and_level(backend, transform, mode):
    for level, n, dtype in ((1, 2938, "f4"), (4, 3144, "f8"), (3, 2700, "f8")):
        x = traces(2, n, dtype)
        options = {"level": level, "mode": mode, "rule": "universal", "transform": transform}
        assert_same(x, backend, 400, sigma="global", **options)
        assert_same(x[:1], backend, 400, exact=False, **options, sigma=("running", 500))


@pytest.mark.parametrize("rule", ["universal", "minimax", "bayes", "sure", "js", 0.7, [0.0, 0.2, 0.4]])
@pytest.mark.parametrize(
    ("scope", "sigma"), [("trace", "level"), ("record", "level"), ("trace", "global"), ("record", 0.3)]
)
def test_every_rule(backend, rule, scope, sigma):
    for n, dtype, most in [(802, "f8", 300), (400, "f4", 900)]:  # parts of rows, or two rows
        options = {"level": 3, "rule": rule, "scope": scope, "sigma": sigma}
        assert_same(traces(3, n, dtype), backend, most, exact=rule not in ("bayes", "js"), **options)


@pytest.mark.parametrize("n", [2901, 3008])
@pytest.mark.parametrize("rule", ["js", "universal", "bayes"])
@pytest.mark.parametrize("scope", ["trace", "record"])
def test_the_dual_tree_transform(backend, n, rule, scope):
    found, measured, expected, estimate = in_chunks(
        traces(2, n, "f8"), backend, 400, level=4, rule=rule, scope=scope, transform="dtcwt"
    )
    np.testing.assert_allclose(measured.sigma[:4], estimate.sigma, rtol=1e-12)
    np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("shrink", ["soft", "hard", "garrote", "firm"])
def test_every_function_and_complex_samples(backend, shrink):
    assert_same(traces(1, 2000, "f8"), backend, 0, level=4, shrink=shrink, rule="universal")
    x = (traces(2, 1500) + 1j * traces(2, 1500)[:, ::-1]).astype("c8")
    assert_same(x, backends.get("pywavelets"), 300, level=3, mode="periodic", shrink=shrink, rule="universal")


AWKWARD = {
    "few values": np.round,
    "constant": lambda x: np.full_like(x, 3),
    "two values": lambda x: np.where(np.arange(x.shape[1]) % 2 & (np.arange(x.shape[1]) < 600), 1e30, -1e-30),
    "gliding": lambda x: x * np.exp2(np.linspace(-90, 90, x.shape[1])),
    "mostly zero": lambda x: np.where(np.arange(x.shape[1]) % 500, 0, 0.1),
}


@pytest.mark.parametrize("name", AWKWARD)
@pytest.mark.parametrize("scope", ["trace", "record"])
def test_medians_of_awkward_data(backend, name, scope):
    for n in (1200, 1201):
        x = traces(2, n)
        x[1] = AWKWARD[name](x)[1] if np.ndim(AWKWARD[name](x)) == 2 else AWKWARD[name](x)
        assert_same(x, backend, 64, level=3, mode="zero", rule="universal", scope=scope)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("rule", ["bayes", "sure", 0.5])
def test_samples_that_are_not_finite_end_it(backend, value, rule):
    for place in (0, 777, 1499):
        x = traces(1, 1500)
        x[0, place] = value
        rows = passes.Rows(x, np.empty_like(x), backend)
        with np.errstate(invalid="ignore"):
            assert passes.denoise(rows, Method("db4", 3, rule=rule), 3, 300 * x.itemsize) is None


@pytest.mark.parametrize("rule", ["bayes", "universal", "sure", 0.3])
@pytest.mark.parametrize("most", [400, 2500, 100_000])
def test_dead_rows_come_back_and_count_for_nothing_in_a_record(backend, rng, rule, most):
    """In chunks that cut rows, hold several or all of them: as the live rows alone."""
    x, dead = partly_dead(rng, 800)
    options = {"level": 3, "rule": rule, "scope": "record"}
    found, measured, expected, _ = in_chunks(x, backend, most, **options)
    alone, of_live, *_ = in_chunks(x[~dead], backend, most, **options)
    assert np.array_equal(found[dead], x[dead])
    assert not any(numbers[:, dead].any() for numbers in (measured.sigma, measured.thresholds, measured.power))
    assert np.array_equal(measured.sigma[:, ~dead], of_live.sigma)
    for one, other in ((found[~dead], alone), (found, expected)):
        np.testing.assert_allclose(one, other, atol=1e-12 if rule == "bayes" else 0, rtol=0)
    none, measured, *_ = in_chunks(np.repeat([[0.0], [3.7]], 900, axis=1), backend, 300, **options)
    assert np.array_equal(none, np.repeat([[0.0], [3.7]], 900, axis=1))
    assert not measured.sigma.any()


def test_files_larger_than_memory_are_only_sliced(backend, tmp_path):
    x = traces(2, 5000)
    source, target = (np.memmap(tmp_path / name, "f4", "w+", shape=x.shape) for name in "xy")
    source[:] = x
    method = Method("db4", 4, scope="record")
    passes.denoise(passes.Rows(source, target, backend), method, 4, 4000)
    np.testing.assert_allclose(target, run(x, method, backend).samples, atol=1e-5)
