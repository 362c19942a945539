"""Denoising in wavelet packets: the basis of least cost among all, by trace and by record."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import wavefilt
from tests.support.signals import gain_db
from wavefilt.vocabulary import BASES

HOSTS = ["pywavelets", "numba"]
MAD_TO_SIGMA = 1 / 0.6744897501960817


def burst(samples, traces=2, seed=0):
    """Return a short tone in each trace, with its own frequency and place, and white noise."""
    t = np.arange(samples)
    tones = [np.exp(-(((t - samples * 0.3 - 90 * i) / 60) ** 2)) * np.sin((0.7 + 0.5 * i) * t) for i in range(traces)]
    return 4 * np.array(tones), np.random.default_rng(seed).standard_normal((traces, samples))


def subtrees(name, level):
    """Yield every set of nodes that covers this node once."""
    yield (name,)
    if len(name) < level:
        for low, high in product(subtrees(name + "a", level), subtrees(name + "d", level)):
            yield low + high


SAMPLES, LEVEL = 600, 3


def by_trying_all(x, basis, scope):
    """Denoise traces in the cheapest of all bases, with all costs written out."""
    packets = wavefilt.wavelet_packets(x, "db4", level=LEVEL)
    details = [name for name in packets if "d" in name]
    samples = SAMPLES * (len(x) if scope == "record" else 1)
    groups = [slice(None)] if scope == "record" else [slice(i, i + 1) for i in range(len(x))]
    found = np.empty_like(x)
    for group in groups:
        energy = np.sum(packets["a"][group] ** 2) + np.sum(packets["d"][group] ** 2)
        kept, cost = {"a" * LEVEL: packets["a" * LEVEL][group]}, {}
        for name in details:
            d = packets[name][group]
            sigma = MAD_TO_SIGMA * np.median(np.abs(d))
            threshold = sigma * np.sqrt(2 * np.log(samples))
            kept[name] = np.sign(d) * np.maximum(np.abs(d) - threshold, 0)
            removed, inside = d - kept[name], np.sum(np.abs(d) <= threshold)
            p = d**2 / energy
            cost[name] = {
                "risk": d.size * sigma**2 + np.sum(removed**2) - 2 * sigma**2 * inside,  # Stein's identity
                "entropy": -np.sum(p * np.log(p)),
                "full": -len(name),
            }[basis]
        best = ["a" * LEVEL]
        total = np.mean if basis == "full" else np.sum
        for j in range(LEVEL):  # below each detail of the DWT
            best += min(subtrees("a" * j + "d", LEVEL), key=lambda basis: total([cost[n] for n in basis]))
        found[group] = wavefilt.iwavelet_packets({n: kept[n] for n in best}, "db4", samples=SAMPLES)
    return found


@pytest.mark.parametrize("backend", HOSTS)
@pytest.mark.parametrize("scope", ["trace", "record"])
@pytest.mark.parametrize("basis", BASES)
def test_the_basis_is_the_cheapest_of_all(basis, scope, backend):
    clean, noise = burst(SAMPLES, 3)
    x = clean + noise
    options = {"level": LEVEL, "rule": "universal", "transform": "wp", "basis": basis, "scope": scope}
    expected = by_trying_all(x, basis, scope)
    assert np.allclose(wavefilt.denoise(x, "db4", backend=backend, **options), expected, atol=1e-10)
    other = "record" if scope == "trace" else "trace"
    assert np.abs(expected - by_trying_all(x, basis, other)).max() > 1e-3
    if (basis, scope) == ("entropy", "trace"):
        assert np.abs(expected - by_trying_all(x, "risk", scope)).max() > 1e-3


@pytest.mark.parametrize("basis", BASES)
def test_no_threshold_changes_nothing(basis, rng):
    x = rng.standard_normal((2, 512))
    assert np.array_equal(wavefilt.denoise(x, transform="wp", basis=basis, rule=0.0), x)
    options = {"transform": "wp", "basis": basis, "level": 3, "mode": "periodization"}
    removed = x - wavefilt.denoise(x, rule=(9.0, 0.0, 0.0), **options)  # from the coarsest octave alone
    found = [np.abs(c).max() for c in wavefilt.wavedec(removed, "db8", "periodization", 3)]
    assert found[1] > 1
    assert max(found[0], *found[2:]) < 1e-10
    removed = x - wavefilt.denoise(x, rule=9.0, keep=2, **options)
    found = [np.abs(c).max() for c in wavefilt.wavedec(removed, "db8", "periodization", 3)]
    assert found[3] > 1
    assert max(found[:3]) < 1e-10


def test_chirps_gain_and_transients_lose_little():
    def gained(clean, noisy, transform, basis=None):
        return gain_db(clean, noisy, wavefilt.denoise(noisy, transform=transform, basis=basis))

    t, noise = np.arange(4096), np.random.default_rng(1).standard_normal((4, 4096))
    chirp = np.repeat(3 * np.cos(np.pi * 0.35 * t**2 / 4096)[None], 4, axis=0)
    plain = gained(chirp, chirp + noise, "dwt")
    assert all(gained(chirp, chirp + noise, "wp", basis) > plain + 4 for basis in BASES)
    bumps = np.sum([6 * (1 + np.abs(t - at) / 15) ** -4.0 for at in (400, 900, 1000, 2500, 3100)], axis=0)[None]
    assert gained(bumps, bumps + noise[:1], "wp", "entropy") > gained(bumps, bumps + noise[:1], "dwt") - 0.5


@pytest.mark.parametrize("basis", BASES)
def test_gaps_records_and_scale(basis, rng):
    clean, noise = burst(900, 3)
    x = (clean + noise).astype("f4")
    x[0, 400:430] = np.nan
    x[2, 60:63] = np.nan  # a segment that allows fewer levels
    for scope in ("trace", "record"):
        y = wavefilt.denoise(x, "db4", transform="wp", basis=basis, scope=scope)
        assert np.array_equal(np.isnan(y), np.isnan(x))
        assert np.allclose(
            wavefilt.denoise(1024 * x, "db4", transform="wp", basis=basis, scope=scope), 1024 * y, equal_nan=True
        )
    alone = wavefilt.denoise(x[1], "db4", transform="wp", basis=basis)
    assert np.allclose(wavefilt.denoise(x, "db4", transform="wp", basis=basis)[1], alone, atol=1e-5)
    turned = wavefilt.denoise(x[1] * 1j, "db4", transform="wp", basis=basis)
    assert np.allclose(turned, 1j * alone, atol=1e-4)
