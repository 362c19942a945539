"""Rule js on streams: the causal half of the neighbourhood, coefficient by coefficient."""

from __future__ import annotations

import numpy as np
import pytest
import pywt

import wavefilt
from tests.support.pushing import streamed
from wavefilt.method import Method
from wavefilt.online.sliding_window import UPDATES
from wavefilt.thresholding.local_shrinkage import LAMBDA, LAMBDA_MEASURED


def samples(n, channels=None, seed=0, dtype="f8"):
    rng = np.random.default_rng(seed)
    shape = (n,) if channels is None else (channels, n)
    wave = 6 * np.exp(-(((np.arange(n) - 0.6 * n) / 60) ** 2)) * np.sin(np.arange(n) / 4)
    return (wave + rng.standard_normal(shape) * np.linspace(0.5, 2, n) + 30).astype(dtype)


def reference(x, wavelet, level, window, mode="symmetric", noise=None):
    """A trace denoised as the documentation says, with loops over the coefficients of the whole trace."""
    bands, a = [], x
    for _ in range(level):
        a, d = pywt.dwt(a, wavelet, mode)
        bands.append(d)
    bands.append(a)
    grids = Method(wavelet, mode=mode).kind.grids(Method(wavelet, mode=mode).analysis(level), (len(x),))
    limits, centres, energies = [], [], []
    for i, w in enumerate(bands):
        size, limit, centre, due = max(window >> min(i + 1, level), 1), np.zeros(len(w)), np.zeros(len(w)), 0
        for k in range(len(w)):
            limit[k], centre[k] = limit[k - 1], centre[k - 1]
            if k == due:
                known = w[max(k + 1 - size, 0) : k + 1]
                centre[k] = np.median(known) if i == level else 0
                if noise is None:
                    limit[k] = np.median(np.abs(known - centre[k])) / 0.6744897501960817 * np.sqrt(LAMBDA)
                else:
                    limit[k] = noise[min(i, level - 1)] * np.sqrt(LAMBDA_MEASURED)
                due = k + max(len(known) // UPDATES, 1)
        mean = np.full(len(w), np.nan)
        for k in range(len(w)):
            known = [q for q in range(max(k - 4, 0), k + 1) if limit[q] > 0]
            near, weights = [((w[q] - centre[q]) / limit[q]) ** 2 for q in known], [np.exp((q - k) / 3) for q in known]
            mean[k] = np.average(near, weights=weights) if known else np.nan
        limits.append(limit)
        centres.append(centre)
        energies.append(mean)
    shrunk = []
    for i, w in enumerate(bands):
        found = w.copy()
        for k in np.flatnonzero(limits[i] > 0):
            around = [energies[i][k]] * 2
            for j in (i - 1, i + 1):
                if 0 <= j <= level:
                    time = grids[i].first + grids[i].step * k
                    place = int(np.floor((time - grids[j].first) / grids[j].step))
                    place = min(place, k) if level in (i, j) and {i, j} == {level - 1, level} else place
                    around.append(energies[j][min(max(place, 0), len(bands[j]) - 1)])
            gain = max(0, 1 - 1 / np.nanmean(around)) if np.nansum(around) > 0 else 0
            found[k] = centres[i][k] + (w[k] - centres[i][k]) * gain
        shrunk.append(found)
    *details, a = shrunk
    for d in reversed(details):
        a = pywt.idwt(a[: len(d)], d, wavelet, mode)
    return a[: len(x)]


@pytest.mark.parametrize("wavelet", ["haar", "db2", "sym8", "db8", "coif3", "bior3.5"])
@pytest.mark.parametrize(("level", "mode"), [(1, "symmetric"), (3, "zero"), (5, "reflect")])
def test_is_what_the_documentation_says(wavelet, level, mode):
    x = samples(2600)
    online = wavefilt.OnlineDenoiser(wavelet, level, "js", window=700, mode=mode)
    found = streamed(online, x, [100, 1, 33, 0, 640, 7, 64])
    np.testing.assert_allclose(found, reference(x, wavelet, level, 700, mode), atol=1e-9)


def test_noise_that_is_given():
    x = samples(2000)
    for noise in (1.5, [2.0, 1.0, 0.7]):
        own = [1.5] * 3 if noise == 1.5 else noise[::-1]
        online = wavefilt.OnlineDenoiser("sym8", 3, "js", window=500, noise=noise)
        np.testing.assert_allclose(streamed(online, x, [90] * 9), reference(x, "sym8", 3, 500, noise=own), atol=1e-9)


@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize(("wavelet", "level"), [("haar", 6), ("sym8", 6), ("db2", 4), ("bior1.3", 3)])
def test_results_do_not_depend_on_pushes(wavelet, level, dtype):
    """Bit for bit, with the latency of other rules after every push."""
    x, rng = samples(4000, 2, dtype=dtype), np.random.default_rng(1)
    whole = streamed(wavefilt.OnlineDenoiser(wavelet, level, "js", window=900, channels=2, dtype=dtype), x, [])
    assert whole.dtype == dtype
    for sizes in ([1] * 300, [64] * 50, rng.integers(0, 200, 30).tolist()):
        online = wavefilt.OnlineDenoiser(wavelet, level, "js", window=900, channels=2, dtype=dtype)
        assert np.array_equal(streamed(online, x, sizes), whole)
        assert np.array_equal(streamed(online, x, [500]), whole)  # a new stream after flush


def test_channels_are_alone():
    x = samples(1500, 2)
    x[1] *= 50
    both = streamed(wavefilt.OnlineDenoiser("db4", 3, "js", window=400, channels=2), x, [90] * 9)
    for channel in (0, 1):
        alone = streamed(wavefilt.OnlineDenoiser("db4", 3, "js", window=400), x[channel], [40] * 9)
        np.testing.assert_allclose(both[channel], alone, rtol=1e-12, atol=1e-12)


def test_noise_goes_and_waves_stay():
    """With low-frequency noise, which other rules leave, and an offset, which stays."""
    n, rng = 16384, np.random.default_rng(2)
    slow = 20 * pywt.upcoef("a", rng.standard_normal(300), "sym8", level=6, take=n)
    wave = 15 * np.exp(-(((np.arange(n) - 11000) / 80) ** 2)) * np.sin(np.arange(n) / 3)
    x = slow + 0.5 * rng.standard_normal(n) + wave + 1000
    late, error = slice(6000, n), {}
    for rule in ("js", "bayes"):
        y = streamed(wavefilt.OnlineDenoiser("sym8", 6, rule, window=6000), x, [256] * 60)
        error[rule] = np.mean((y - wave - 1000)[late] ** 2)
    assert error["js"] < 0.3 * error["bayes"]


def test_dead_channels_and_zero_noise_are_unchanged():
    x = np.full((2, 1000), 7.3)
    x[1] = samples(1000)
    online = wavefilt.OnlineDenoiser("db4", 3, "js", window=300, channels=2)
    y = streamed(online, x, [50] * 9)
    assert np.array_equal(y[0], x[0])
    assert np.abs(y[1] - x[1]).max() > 0.5
    kept = streamed(wavefilt.OnlineDenoiser("db4", 3, "js", window=300, noise=0.0), x[1], [50] * 9)
    np.testing.assert_allclose(kept, x[1], rtol=1e-12)


def test_memory_does_not_grow():
    online, held = wavefilt.OnlineDenoiser("db8", 5, "js", window=1000), []
    for _ in range(60):
        online.push(samples(640))
        bands = online._local._bands
        held.append(sum(part.size for b in bands for part in (b.waiting, b.limits, b.energies, b.recent)))
    assert max(held[20:]) == max(held[40:]) < 4000


def test_it_needs_a_window_and_has_no_other_function():
    with pytest.raises(ValueError, match="rule='js' needs window"):
        wavefilt.OnlineDenoiser("db4", 3, "js", noise=1.0)
    with pytest.raises(ValueError, match="shrinks neighbourhoods its own way"):
        wavefilt.OnlineDenoiser("db4", 3, "js", window=300, shrink="soft")
    assert "js local" in repr(wavefilt.OnlineDenoiser("db4", 3, "js", window=300))
