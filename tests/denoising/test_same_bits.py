"""The same samples give the same bits in blocks of a large array, and after arrays of another kind."""

from __future__ import annotations

import numpy as np
import pytest

import wavefilt
from wavefilt.api import run
from wavefilt.options import Options

prepared = pytest.importorskip("wavefilt.backends.numba_cpu.prepared")


def samples(shape, dtype="float32", seed=0):
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


@pytest.mark.parametrize("options", [{}, {"rule": "js"}, {"rule": "sure", "transform": "modwt"}], ids=str)
def test_traces_of_more_than_a_block(options):
    """Large arrays are denoised in blocks of traces."""
    x = np.tile(samples((16, 65_536)), (16 if not options else 4, 1))
    y = wavefilt.denoise(x, backend="numba", **options)
    assert np.array_equal(y[:16], y[-16:])
    assert np.array_equal(y[[0, 15]], wavefilt.denoise(x[[0, 15]], backend="numba", **options))
    if not options:
        out = np.empty_like(x)
        assert wavefilt.denoise(x, backend="numba", out=out) is out
        assert np.array_equal(out, y)
        x[250, 3] = np.inf
        with pytest.raises(ValueError, match="trace 250"):
            wavefilt.denoise(x, backend="numba")


@pytest.mark.parametrize("blocks", [1, 3])
@pytest.mark.parametrize(
    "options",
    [{}, {"keep": 2}, {"rule": "js", "keep": 1}, {"rule": "universal", "sigma": "global"}, {"rule": [1.0, 2.0, 3.0]}],
    ids=str,
)
def test_noise_and_thresholds_of_one_launch_are_those_of_the_steps(options, blocks, monkeypatch):
    x, chosen = samples((7, 2048)), Options("db4", level=3, **options)
    if blocks > 1:
        monkeypatch.setattr(prepared, "BLOCK", x.nbytes // blocks)
        monkeypatch.setattr(prepared, "SHARE", 1)
    ours, theirs = (run(x, chosen, "numba", report) for report in (False, True))
    assert np.array_equal(ours.samples, theirs.samples)
    for one, other in zip(ours.estimates, theirs.estimates, strict=True):
        assert np.array_equal(one.sigma, other.sigma)
        assert np.array_equal(one.thresholds, other.thresholds)


def changed(x, where, value):
    x[where] = value
    return x


UNUSUAL = {
    "gap": lambda x: changed(x, (1, 100), np.nan),
    "infinite": lambda x: changed(x, (1, 100), np.inf),
    "dead trace": lambda x: changed(x, 1, 3),
    "all zero": lambda x: 0 * x,
    "large": lambda x: x / x.max() * np.float32(3e38),
    "nearly too large": lambda x: changed(x, (2, 2222), np.finfo("f4").max / np.float32(8)),
    "tiny": lambda x: x * np.float32(1e-44),
    "squares overflow": lambda x: x.astype(np.float64) * 1e200,
    "large line": lambda x: x + np.float32(1e38) * np.linspace(-1, 1, x.shape[1], dtype=np.float32),
    "large mean": lambda x: x + np.float32(3e38),
    "tapered": lambda x: x * np.hanning(x.shape[1]).astype(np.float32),
    "rounded": np.round,
    "byte order": lambda x: x.astype(">f4"),
    "integers": lambda x: (100 * x).astype(np.int16),
    "float16": lambda x: x.astype(np.float16),
    "complex": lambda x: x.astype(np.complex64),
}


def outcome(x, **options):
    """Return the denoised samples, or the error as text."""
    try:
        return np.ma.filled(wavefilt.denoise(x, backend="numba", **options), np.nan)
    except ValueError as error:
        return f"{type(error).__name__}: {error}"


@pytest.mark.filterwarnings("ignore:overflow encountered")
@pytest.mark.parametrize("name", UNUSUAL)
@pytest.mark.parametrize("options", [{}, {"rule": "universal"}, {"rule": "js"}, {"detrend": "line"}], ids=str)
def test_unusual_samples_after_usual_ones(name, options):
    n = 5000 + list(UNUSUAL).index(name)  # a shape that no test used before
    usual, unusual = samples((4, n)), UNUSUAL[name](samples((4, n), seed=1))
    first = outcome(unusual, **options)
    wavefilt.denoise(usual, backend="numba", **options)
    wavefilt.denoise(usual, backend="numba", **options)
    for _ in range(2):
        again = outcome(unusual, **options)
        assert np.array_equal(again, first, equal_nan=True) if isinstance(first, np.ndarray) else again == first
