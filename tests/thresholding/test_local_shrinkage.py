"""Rule js: local James-Stein shrinkage by neighbours in time and in adjacent levels, and options that came with it."""

from __future__ import annotations

import json
from itertools import product

import numpy as np
import pytest
import pywt

import wavefilt
from tests.support.checkout import run as run_command
from tests.support.checkout import usable_backends
from wavefilt import backends
from wavefilt.backends import registry
from wavefilt.chunking.trend import BLOCK, fit_read, of_rows
from wavefilt.denoising.pipeline import run
from wavefilt.method import Method
from wavefilt.thresholding.local_shrinkage import LAMBDA, LAMBDA_MEASURED, Grid, Local
from wavefilt.thresholding.shrinkage import Shrinkage
from wavefilt.transforms import Pyramid
from wavefilt.transforms.planes import PlaneTransform
from wavefilt.wavelets import modwt_boundary

HOSTS = [name for name in usable_backends() if name != "cuda"]


def burst(samples, at, width=60, amplitude=10.0):
    """A wave of 10 samples period under a bell."""
    t = np.arange(samples) - at
    return amplitude * np.exp(-((t / width) ** 2)) * np.sin(2 * np.pi * t / 10)


def energy(band, limit, spacing, half, periodic):
    """The mean of |W|²/limit² over the neighbours in time, with weights that fall by e every three, by a loop."""
    found, count = np.zeros(len(band)), len(band)
    for k in range(count):
        places = [(k + q * spacing, np.exp(-abs(q) / 3)) for q in range(-half, half + 1)]
        places = [(p % count, w) for p, w in places] if periodic else [(p, w) for p, w in places if 0 <= p < count]
        values, weights = zip(*((abs(band[p]) ** 2, w) for p, w in places), strict=True)
        found[k] = np.average(values, weights=weights) / limit**2
    return found


def expected(coefficients, thresholds, method, level):
    """One trace's bands, finest first, shrunk as the formula says, coefficient by coefficient."""
    bands, taps, periodic = coefficients[::-1], method.bank.dec_len, method.mode in modwt_boundary.ROUND
    squares = np.square(method.bank.dec_lo)
    lag = (taps - 1) / 2 - np.arange(taps) @ squares / squares.sum()
    if method.transform == "dwt":
        periodic = method.mode == "periodization"
        late = 0 if periodic else taps // 2 - 1
        lag = round(lag)

        def finer(i, k):  # places in band i - 1
            return (k + lag,) if i == level else (2 * k - late, 2 * k - late + 1)

        def coarser(i, k):
            return k - lag if i == level - 1 else (k + late) // 2

        means = [(1, 4)] * (level + 1)
    else:
        begins = [modwt_boundary.kept(taps, method.mode, j)[0] for j in [*range(1, level + 1), level]]
        lag = round(lag * 2**level)

        def finer(i, k):
            t = k - begins[i] + (lag if i == level else 2 ** (i - 1))
            return (t + begins[i - 1],)

        def coarser(i, k):
            return k - begins[i] - (lag if i == level - 1 else 2**i) + begins[i + 1]

        means = [(2**j, 4) for j in [*range(1, level + 1), level]]
    energies = [
        energy(band, limit, *mean, periodic) if limit else None
        for band, limit, mean in zip(bands, thresholds, means, strict=True)
    ]

    def at(i, k):
        return energies[i][k % len(bands[i]) if periodic else min(max(k, 0), len(bands[i]) - 1)]

    shrunk = []
    for i, band in enumerate(bands):
        found = band.copy()
        for k in range(len(band) if thresholds[i] else 0):
            around = [energies[i][k]] * 2
            if i > 0 and thresholds[i - 1]:
                around.append(np.mean([at(i - 1, p) for p in finer(i, k)]))
            if i < level and thresholds[i + 1]:
                around.append(at(i + 1, coarser(i, k)))
            found[k] *= max(0, 1 - 1 / np.mean(around))
        shrunk.append(found)
    return shrunk[::-1]


@pytest.mark.parametrize("name", HOSTS)
@pytest.mark.parametrize("transform", ["dwt", "modwt"])
@pytest.mark.parametrize("mode", ["symmetric", "periodization", "periodic", "zero"])
def test_every_coefficient_is_that_of_the_formula(rng, name, transform, mode):
    backend = backends.get(name)
    for wavelet, level, samples in (("db8", 3, 301), ("haar", 4, 64), ("sym8", 1, 33), ("db3", 2, 17)):
        method = Method(wavelet, level, mode, "js", transform=transform)
        x = rng.standard_normal((3, samples)) * np.exp(rng.standard_normal((3, samples)))
        thresholds = rng.uniform(0.5, 2, (level + 1, 3))
        thresholds[rng.integers(level + 1), 0] = 0  # unchanged, and no neighbour
        pyramid = backend.decompose(x, method.analysis(level))
        y = backend.reconstruct(pyramid, Shrinkage(Local(), thresholds))
        plain = [np.array(c) for c in pyramid.coefficients]
        rows = [expected([c[i] for c in plain], thresholds[:, i], method, level) for i in range(3)]
        wanted = [np.stack(band) for band in zip(*rows, strict=True)]
        kind = method.kind
        assert np.allclose(y, kind.synthesise(wanted[0], iter(wanted[1:]), pyramid.analysis, (samples,)), atol=1e-12)


@pytest.mark.parametrize("dtype", ["f4", "c8", "c16"])
def test_other_dtypes_agree_with_float64(rng, dtype):
    x = (rng.standard_normal((2, 900)) + burst(900, 400) + 3).astype(dtype)
    x = x * np.exp(0.4j).astype(dtype) if dtype[0] == "c" else x
    for transform, name in product(("dwt", "modwt"), HOSTS):
        y = wavefilt.denoise(x, rule="js", transform=transform, backend=name)
        assert y.dtype == dtype
        wide = wavefilt.denoise(x.astype("c16" if dtype[0] == "c" else "f8"), rule="js", transform=transform)
        assert np.abs(y - wide).max() < (1e-12 if dtype == "c16" else 2e-5)


def test_tiles_and_threads_change_nothing(rng, monkeypatch):
    numba = pytest.importorskip("numba") and backends.get("numba")
    from wavefilt.backends.numba_cpu.local import shrinkage as local_shrinkage

    x = rng.standard_normal((2, 40_001)).astype("f4") + burst(40_001, 17_000, 900).astype("f4")
    for transform, mode in product(("dwt", "modwt"), ("symmetric", "periodization")):
        found = []
        for tile, threads in ((1 << 13, 1), (1 << 13, 2), (1 << 9, 2), (1 << 20, 1)):
            monkeypatch.setattr(local_shrinkage, "TILE", tile)
            local_shrinkage._plan.cache_clear()
            wavefilt.set_num_threads(threads)
            found.append(wavefilt.denoise(x, rule="js", transform=transform, mode=mode, backend=numba))
        wavefilt.set_num_threads(None)
        assert all(np.array_equal(found[0], y) for y in found[1:])
    local_shrinkage._plan.cache_clear()


def test_many_levels_of_a_long_trace(rng):
    """The coefficients of a mean lie farther apart than a tile is long."""
    x = rng.standard_normal((1, 100_003)).astype("f4")
    method = Method("db4", 12, rule="js", transform="modwt")
    expected = run(x, method, "pywavelets").samples
    for _ in range(8 if "numba" in HOSTS else 0):  # reading beyond the workspace ended one process in two
        assert np.abs(run(x, method, "numba").samples - expected).max() < 1e-5


@pytest.mark.parametrize("transform", ["dwt", "modwt"])
@pytest.mark.parametrize("wavelet", ["haar", "sym8", "db8", "coif3"])
@pytest.mark.parametrize("mode", ["symmetric", "periodization"])
def test_bands_are_aligned_by_the_energy_of_impulses(transform, wavelet, mode):
    """Details to a sample; the approximation to half a step of the last level, at which it is sampled with the DWT."""
    level, starts = 4, 500 + np.arange(16)
    method = Method(wavelet, level, mode, transform=transform)
    x = np.zeros((16, 1024))
    x[np.arange(16), starts] = 1
    analysis, found = method.analysis(level), []
    grids = method.kind.grids(analysis, (1024,))
    for band, grid in zip(method.kind.analyse(x, analysis)[::-1], grids, strict=True):
        times = grid.first + grid.step * np.arange(grid.count) - starts[:, None]
        found.append((times * band**2).sum() / (band**2).sum())
    assert np.ptp(found[:-1]) < 1
    assert abs(found[-1] - found[-2]) <= 2 ** (level - 1)


@pytest.mark.parametrize("transform", ["dwt", "modwt"])
def test_noise_goes_and_waves_stay(backend, rng, transform):
    noise, wave = rng.standard_normal((8, 4096)), burst(4096, 1500, 60, 6.0)
    options = {"wavelet": "sym8", "transform": transform, "backend": backend}
    rest = wavefilt.denoise(noise, rule="js", **options)
    assert np.mean(rest**2) < 0.005
    errors = {
        rule: np.mean((wavefilt.denoise(noise + wave, rule=rule, **options) - wave) ** 2) for rule in ("js", "bayes")
    }
    assert errors["js"] < 0.5 * errors["bayes"]


def test_noise_of_low_frequency_goes_too(rng):
    """The approximation is a band as well: `bayes` leaves all that is in it."""
    slow = pywt.upcoef("a", rng.standard_normal(140), "sym8", level=6, take=4096)
    x = 30 * slow + 0.1 * rng.standard_normal(4096) + burst(4096, 2000)
    error = {
        rule: np.mean((wavefilt.denoise(x, "sym8", rule=rule) - burst(4096, 2000)) ** 2) for rule in ("js", "bayes")
    }
    assert error["js"] < 0.1 * error["bayes"]


class TestNoise:
    def test_numbers_and_the_finest_level_are_of_white_noise(self, rng):
        x = rng.standard_normal((1, 4096))
        for transform, sigma in product(("dwt", "modwt"), ("global", 2.0)):
            (found,) = run(x, Method("db4", 5, rule="js", transform=transform, sigma=sigma)).estimates
            last = found.sigma[-1, 0]
            assert found.approximation[0, 0] == pytest.approx(last)
            factor = np.sqrt(LAMBDA if sigma == "global" else LAMBDA_MEASURED)
            assert found.approximation[1, 0] == pytest.approx(factor * last)
            assert np.allclose(found.thresholds, factor * found.sigma)
            gain = 2 ** (-2.5 if transform == "modwt" else 0)
            assert last == pytest.approx(gain * (2.0 if sigma == 2.0 else 1.0), rel=0.1)

    @pytest.mark.parametrize("transform", ["dwt", "modwt"])
    def test_a_window_gives_the_mean_square(self, backend, rng, transform):
        x = rng.standard_normal((2, 8192))
        x[1] *= 3
        x[:, :4000] -= x[:, :4000].mean(axis=1, keepdims=True)
        x[:, 4000:] -= x[:, 4000:].mean(axis=1, keepdims=True)  # the mean of the trace is that of the window
        x[:, 4000:] *= 20
        method = Method("sym8", 6, rule="js", transform=transform, sigma=("window", 100, 3500))
        (found,) = run(x, method, backend).estimates
        white = method.noise_gains(7)
        assert np.all(np.abs(found.sigma / white[:6] / [1, 3] - 1) < 0.3)
        assert np.all(np.abs(found.approximation[0] / white[6] / [1, 3] - 1) < 0.4)
        assert np.allclose(found.thresholds, np.sqrt(LAMBDA_MEASURED) * found.sigma)

    def test_levels_too_coarse_for_a_window_have_their_own_median(self, rng):
        x = np.cumsum(rng.standard_normal((1, 4096)), axis=1)  # coarse levels have far more noise
        (medians,) = run(x, Method("sym8", 6, rule="js")).estimates
        (found,) = run(x, Method("sym8", 6, rule="js", sigma=("window", 0, 200))).estimates
        assert np.array_equal(found.sigma[4:], medians.sigma[4:])
        assert np.array_equal(found.approximation[0], medians.approximation[0])
        assert not np.array_equal(found.sigma[:3], medians.sigma[:3])

    def test_a_window_is_for_all_segments_of_a_trace(self, rng):
        x = rng.standard_normal((2, 4000))
        x[0, 1000] = np.nan
        x[0, 1001:] *= 5
        found = run(x, Method("sym8", 3, rule="js", sigma=("window", 100, 900))).estimates
        mine = [
            estimate.sigma[:, list(estimate.segments.rows).index(0)]
            for estimate in found
            if 0 in estimate.segments.rows
        ]
        assert len(mine) == 2
        assert np.array_equal(*mine)
        assert np.all(mine[0] < 1.3)

    def test_fewer_levels_have_the_noise_of_what_their_approximation_holds(self):
        for transform in ("dwt", "modwt"):
            method = Method("sym8", rule="js", transform=transform)
            white = method.noise_gains(7)
            for level in range(1, 7):
                assert np.allclose(method.cut(white, level), method.noise_gains(level + 1))
        coloured = np.array([[1.0], [2.0], [0.0]])
        assert Method(rule="js").cut(coloured, 1)[1, 0] == 0  # kept as it is

    def test_segments_of_a_record_share_it(self, rng):
        x = rng.standard_normal((3, 3000))
        x[1, 60] = np.nan  # 60 samples have fewer levels
        y = wavefilt.denoise(x, "db2", rule="js", scope="record")
        assert np.isnan(y).sum() == 1
        assert np.nanstd(y) < 0.1

    def test_kept_levels_take_the_approximation_with_them(self, rng):
        x = rng.standard_normal(2048)
        before = pywt.wavedec(x, "db4", "periodization", 4)
        quiet = wavefilt.denoise(x, "db4", level=4, rule="js", keep=2, mode="periodization", detrend=None)
        after = pywt.wavedec(quiet, "db4", "periodization", 4)
        assert all(np.allclose(before[i], after[i]) for i in range(3))
        assert np.linalg.norm(after[3]) < 0.5 * np.linalg.norm(before[3])


@pytest.mark.parametrize("rule", ["js", "bayes", 0.5])
def test_detrending(backend, rng, rule):
    x, time = rng.standard_normal((3, 1500)), np.arange(1500)
    trend = np.array([[1e3], [-5.0], [0.0]]) + np.array([[0.0], [2.0], [-1.0]]) * time
    options = {"rule": rule, "mode": "zero", "backend": backend}
    for kind, added in (("mean", trend[:, :1]), ("line", trend)):
        found = wavefilt.denoise(x + added, detrend=kind, **options)
        assert np.allclose(found, wavefilt.denoise(x, detrend=kind, **options) + added, atol=1e-8)
    whole = np.full((1, 700), 3.0)
    assert np.array_equal(wavefilt.denoise(whole, detrend="line", **options), whole)


def test_js_keeps_an_offset_unless_told_otherwise(rng):
    x = rng.standard_normal(3000)
    assert np.allclose(wavefilt.denoise(x + 500, rule="js"), wavefilt.denoise(x, rule="js") + 500)
    assert wavefilt.denoise(x + 500, rule="js").mean() == pytest.approx(500, abs=0.1)


@pytest.mark.parametrize("kind", ["mean", "line"])
def test_trends_are_the_same_bits_from_blocks(rng, kind):
    rows = (rng.standard_normal((3, 3 * BLOCK + 77)) + np.arange(3 * BLOCK + 77) / 50).astype("f4")
    trend, samples = of_rows(rows, kind), rows.shape[1]
    own = fit_read(lambda a, b: rows[1, a:b], samples, kind)
    assert (own.middle[0, 0], own.slope[0, 0]) == (trend.middle[1, 0], trend.slope[1, 0])
    part, out = rows[1:2, 1000:40_000], np.empty((1, 39_000), "f4")
    own.remove(part, 1000, out)
    assert np.array_equal(out, trend.removed(rows)[1:2, 1000:40_000])
    if kind == "line":
        exact = np.polynomial.polynomial.polyfit(np.arange(samples) - (samples - 1) / 2, rows[1].astype("f8"), 1)
        assert np.allclose([own.middle[0, 0], own.slope[0, 0]], exact, rtol=1e-10)


@pytest.mark.parametrize("rule", ["js", "sure", 0.5])
def test_blending(backend, rng, rule):
    x = rng.standard_normal((2, 800)) + burst(800, 300)
    x[1, 500] = np.nan
    quiet, noise = wavefilt.denoise(x, rule=rule, backend=backend, return_noise=True)
    blended, less = wavefilt.denoise(x, rule=rule, backend=backend, blend=0.2, return_noise=True)
    assert np.allclose(blended, quiet + 0.2 * noise, equal_nan=True)
    assert np.allclose(less, 0.8 * noise, equal_nan=True)
    panel = wavefilt.denoise(x[:, :400], "haar", rule="bayes", axes=(0, 1), level=1, blend=0.5)
    plain = wavefilt.denoise(x[:, :400], "haar", rule="bayes", axes=(0, 1), level=1)
    assert np.allclose(panel, (plain + x[:, :400]) / 2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"rule": "blockjs", "axes": (0, 1)}, "rule='blockjs' is for traces"),
        ({"detrend": "mean", "axes": (0, 1)}, "detrend='mean' is for traces"),
        ({"rule": "js", "shrink": "soft"}, "shrinks neighbourhoods its own way"),
        ({"detrend": "parabola"}, "detrend='parabola' is not one of mean, line"),
        ({"blend": 1.0}, "blend=1.0 must be"),
        ({"blend": -0.1}, "blend=-0.1 must be"),
        ({"blend": True}, "blend=True must be"),
    ],
)
def test_refusals(options, message):
    with pytest.raises(ValueError, match=message):
        wavefilt.denoise(np.zeros((64, 64)), "haar", **options)


@pytest.mark.parametrize("parts", [1, 2])
@pytest.mark.parametrize("periodic", [False, True])
@pytest.mark.parametrize("shape", [(5, 7), (1, 4), (2, 1), (1, 1)])
def test_planes_are_shrunk_by_three_by_three_neighbours(rng, shape, periodic, parts):
    bands = rng.standard_normal((2, 2, *shape)) + (parts - 1) * 1j * rng.standard_normal((2, 2, *shape))
    thresholds = np.array([[1.2, 0.6], [0.0, 2.0]])

    def place(i, n):
        return i % n if periodic else -1 - i if i < 0 else 2 * n - 1 - i if i >= n else i

    expected = np.empty_like(bands)
    for band, panel, i, j in np.ndindex(bands.shape):
        own, limit = bands[band, panel], thresholds[band, panel]
        near = [own[place(i + a, shape[0]), place(j + b, shape[1])] for a in (-1, 0, 1) for b in (-1, 0, 1)]
        energy = np.mean(np.abs(near) ** 2) / parts
        expected[band, panel, i, j] = own[i, j] * max(energy - limit**2, 0) / energy
    grids = [tuple(Grid(n, 2, 0.0, 1, 1, periodic) for n in shape)] * 2
    found = Local().shrink_planes(bands, thresholds, grids, parts)
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-14)


class Directions(PlaneTransform):
    """Two complex bands a level, of which nothing but the places is asked."""

    name = word = "directions"
    parts, sizes, analyse, synthesise = 2, None, None, None

    def plane_grids(self, analysis, shape):
        down, across = (
            [Grid(n >> j, 1 << j, 0.0, 1, 1, axis == 1) for j in (1, 1, 2, 2)] for axis, n in enumerate(shape)
        )
        return list(zip(down, across, strict=True))


@pytest.mark.parametrize(("dtype", "rounding"), [("c8", 1e-5), ("c16", 1e-13)])
def test_compiled_planes_are_those_of_the_reference(rng, monkeypatch, dtype, rounding):
    pytest.importorskip("numba")
    from wavefilt.backends.numba_cpu.local import plane_shrinkage
    from wavefilt.backends.numba_cpu.local import shrinkage as local_shrinkage

    for rows, columns, tile in ((4, 4, 1), (60, 36, 1), (60, 36, 200), (8, 4, 1 << 15)):
        monkeypatch.setattr(plane_shrinkage, "TILE", tile)
        shapes = [(3, rows >> j, columns >> j) for j in (2, 2, 2, 1, 1)]
        bands = tuple((rng.standard_normal(s) + 1j * rng.standard_normal(s)).astype(dtype) for s in shapes)
        thresholds = rng.uniform(0.3, 1.2, (4, 3))
        thresholds[1, 2] = 0
        pyramid = Pyramid(bands, Directions().analysis(Method().bank, "symmetric", 2), (rows, columns))
        shrinkage = Shrinkage(Local(), thresholds)
        found = local_shrinkage.shrunk(pyramid, shrinkage).coefficients
        for own, wanted in zip(found, pyramid.shrunk(shrinkage).coefficients, strict=True):
            assert own.dtype == dtype
            assert np.abs(own - wanted).max() < rounding


@pytest.mark.parametrize("mode", ["symmetric", "periodization"])
@pytest.mark.parametrize("options", [{}, {"keep": 1}, {"scope": "record"}, {"sigma": 0.5}])
def test_backends_agree_on_panels(rng, mode, options):
    panels = rng.standard_normal((2, 37, 129))
    options = {"level": 3, "rule": "js", "axes": (1, 2), "mode": mode, **options}
    found = [wavefilt.denoise(panels, "haar", backend=name, **options) for name in HOSTS]
    assert all(np.abs(y - found[0]).max() < 1e-12 for y in found)


@pytest.mark.parametrize("backend", HOSTS)
def test_bands_of_panels_are_shrunk_each_by_itself_and_approximations_kept(rng, backend):
    panels = rng.standard_normal((2, 70, 90))
    found = wavefilt.denoise(panels, "db2", level=2, rule="js", axes=(1, 2), backend=backend)

    def shrunk(band):
        limit = np.median(np.abs(band)) / 0.6744897501960817 * LAMBDA**0.5
        grids = tuple(Grid(n, 1, 0.0, 1, 1, False) for n in band.shape)
        return Local().shrink_planes([band[None]], np.array([[limit]]), [grids])[0][0]

    for panel, quiet in zip(panels, found, strict=True):
        approximation, *levels = pywt.wavedec2(panel, "db2", level=2)
        levels = [tuple(map(shrunk, bands)) for bands in levels]
        expected = pywt.waverec2([approximation, *levels], "db2")
        np.testing.assert_allclose(quiet, expected, rtol=1e-9, atol=1e-12)


def test_backends_with_memory_of_their_own_leave_it_to_the_host():
    class Device(type(backends.get("pywavelets"))):
        device = True

    chosen = Device()
    analysis = Method(rule="js").analysis(3)
    assert registry.choose(chosen, "float32", (2, 500), analysis, True) is chosen
    assert not registry.choose(chosen, "float32", (2, 500), analysis, True, on_host=True).device


@pytest.mark.parametrize(
    ("options", "host_only"),
    [
        ({"rule": "js"}, False),
        ({"rule": "js", "transform": "modwt"}, False),
        ({"rule": "js", "dimensions": 2}, True),
        ({"rule": "bayes", "dimensions": 2}, False),
        ({"rule": "bivariate"}, True),
        ({"rule": "bayes", "sigma": ("running", 200)}, True),
    ],
)
def test_methods_without_kernels_of_a_gpu_are_for_the_host(options, host_only):
    assert Method(**options).host_only == host_only


def test_reports_tell_the_noise_of_the_approximation(tmp_path, rng, capsys):
    np.save(tmp_path / "x.npy", rng.standard_normal((3, 2000)) + 100)
    command = ["denoise", str(tmp_path / "x.npy"), "--rule", "js", "--detrend", "line", "--blend", "0.25", "-w", "sym8"]
    code, out, err = run_command(capsys, *command, "--json", "--sidecar", "-v")
    assert code == 0, err
    facts = json.loads(out)
    assert (facts["detrend"], facts["blend"], facts["level"], facts["shrink"]) == ("line", 0.25, 6, "local")
    assert len(facts["sigma"]) == 6
    assert facts["approximation_threshold"] == pytest.approx(np.sqrt(LAMBDA) * facts["approximation_sigma"])
    assert "approximation: sigma" in err
    (sidecar,) = tmp_path.glob("*.wavefilt.json")
    assert np.shape(json.loads(sidecar.read_text())["estimates"][0]["approximation"]) == (3, 2)
    options = {"rule": "js", "detrend": "line", "blend": 0.25}
    assert np.array_equal(
        np.load(tmp_path / "x.denoised.npy"), wavefilt.denoise(np.load(tmp_path / "x.npy"), "sym8", **options)
    )
