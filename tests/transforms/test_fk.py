"""The windowed f-k transform against Fourier transforms of single windows, and denoising by it."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import wavefilt
from tests.denoising.test_panels import section
from tests.support.checkout import run
from wavefilt.denoising.options import history_line
from wavefilt.method import Method
from wavefilt.recording import Recording
from wavefilt.thresholding.local_shrinkage import Local
from wavefilt.transforms.fk import FK
from wavefilt.vocabulary import MODES
from wavefilt.wavelets.fk_windows import as_window

SHAPES = [(1, 37, 129), (2, 70, 301), (3, 5, 9), (1, 2, 2), (2, 3, 200), (1, 64, 3), (1, 33, 65)]


def analysis_of(shape, window="sine32x64", mode="symmetric"):
    bank = as_window(window)
    return FK.analysis(bank, mode, FK.deepest(shape[-2:], bank))


def noise(rng, shape, pink=False):
    """White along both axes, or with a power of 1/f along time."""
    spectrum = np.fft.rfft(rng.standard_normal(shape))
    if pink:
        spectrum /= np.sqrt(np.maximum(np.arange(spectrum.shape[-1]), 1))
    x = np.fft.irfft(spectrum, shape[-1])
    return x / x.std()


def gather(traces=128, samples=512, ragged=False, rng=None):
    """Four hyperbolas and a direct wave of Ricker wavelets; with time shifts and amplitudes of each trace's own."""
    offset = np.abs(np.arange(traces)[:, None] - 20) * 10.0
    static, scale = 0.0, 1.0
    if ragged:
        static, scale = rng.normal(0, 0.004, (traces, 1)), 1 + 0.25 * rng.standard_normal((traces, 1))
    time = np.arange(samples) * 0.004 - static

    def ricker(arrival, frequency):
        phase = (np.pi * frequency * (time - arrival)) ** 2
        return (1 - 2 * phase) * np.exp(-phase)

    events = [(0.3, 1600, 30, 1.0), (0.7, 1900, 28, 0.8), (1.1, 2200, 25, 0.9), (1.6, 2500, 22, 0.7)]
    clean = 1.2 * ricker(offset / 1500 + 0.05, 25)
    for zero, velocity, frequency, amplitude in events:
        clean = clean + amplitude * ricker(np.sqrt(zero**2 + (offset / velocity) ** 2), frequency)
    return scale * clean / clean.std()


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("window", ["sine32x64", "sine4x6", "sine2x128"])
def test_any_shape_comes_back(rng, shape, window):
    for dtype, bound in (("f8", 1e-14), ("f4", 1e-5)):
        x, analysis = rng.standard_normal(shape).astype(dtype), analysis_of(shape, window)
        coefficients = FK.analyse(x, analysis)
        y = FK.synthesise(coefficients[0], iter(coefficients[1:]), analysis, shape[1:])
        assert y.dtype == x.dtype
        assert y.flags.c_contiguous
        assert_allclose(y, x, atol=bound)
        counted = FK.counted(coefficients, analysis, shape[1:])
        assert [c.shape for c in counted] == [(len(x), size) for size in FK.sizes(analysis, shape[1:])]
        assert len(counted) == len(FK.bands(analysis.level)) == FK.levels(len(counted)) + 1


@pytest.mark.parametrize("mode", MODES)
def test_any_mode_comes_back(rng, mode):
    x = rng.standard_normal((2, 41, 90))
    analysis = analysis_of(x.shape, mode=mode)
    coefficients = FK.analyse(x, analysis)
    y = FK.synthesise(coefficients[0], iter(coefficients[1:]), analysis, x.shape[1:])
    assert_allclose(y, x, atol=1e-10 if mode == "smooth" else 1e-13)


def test_coefficients_are_those_of_single_windows(rng):
    x = rng.standard_normal((2, 40, 100))
    analysis = analysis_of(x.shape, "sine8x12", "zero")
    approximation, *bands = FK.analyse(x, analysis)
    assert approximation.size == 0
    padded = np.pad(x, ((0, 0), (4, 8), (6, 12)))
    taper = np.outer(np.sin(np.pi * (np.arange(8) + 0.5) / 8), np.sin(np.pi * (np.arange(12) + 0.5) / 12))
    for i in range(bands[0].shape[1]):
        for j in range(bands[0].shape[2]):
            window = padded[:, 4 * i : 4 * i + 8, 6 * j : 6 * j + 12]
            expected = np.fft.rfft2(window * taper, norm="ortho")
            assert_allclose(np.stack([band[:, i, j] for band in bands], axis=-1), expected, atol=1e-13)


def test_the_frame_is_tight(rng):
    x = rng.standard_normal((1, 45, 150))
    _, *bands = FK.analyse(x, analysis_of(x.shape, mode="zero"))
    energies = [np.square(np.abs(band)).sum() for band in bands]
    # all but the first and the last frequency stand for negative ones too
    assert_allclose(2 * sum(energies) - energies[0] - energies[-1], np.square(x).sum(), rtol=1e-12)


def test_white_noise_is_the_same_in_every_band(rng):
    x = rng.standard_normal((4, 256, 512))
    analysis = analysis_of(x.shape)
    for band, counted in zip(
        FK.bands(analysis.level), FK.counted(FK.analyse(x, analysis), analysis, x.shape[1:]), strict=True
    ):
        assert_allclose([counted.real.std(), counted.imag.std()], 2**band.noise_exponent, rtol=0.04)
    assert [band.name for band in FK.bands(2)] == ["f2", "f1", "f0"]


def shrunk_as_written(x, traces, samples, factor=2.0):
    """The rule in words: each window's |F|² over its 3 x 3 neighbours, in units of the noise of their frequencies."""
    taper = np.outer(
        np.sin(np.pi * (np.arange(traces) + 0.5) / traces), np.sin(np.pi * (np.arange(samples) + 0.5) / samples)
    )
    a, b = traces // 2, samples // 2
    ends = [(half, half * (-(-n // half) + 1) - n) for n, half in zip(x.shape, (a, b), strict=True)]
    padded = np.pad(x, ends, "symmetric")
    places = [(i, j) for i in range(0, padded.shape[0] - a, a) for j in range(0, padded.shape[1] - b, b)]
    spectra = {(i, j): np.fft.fft2(padded[i : i + traces, j : j + samples] * taper) for i, j in places}
    inside = [
        np.abs(f)
        for (i, j), f in spectra.items()
        if a <= i <= x.shape[0] - traces + a and b <= j <= x.shape[1] - samples + b
    ]
    noise = np.empty(samples)
    for f in range(b + 1):
        waves = slice(1, a) if f in (0, b) else slice(None)
        noise[f] = noise[-f] = np.quantile([window[waves, f] for window in inside], 0.3) / np.sqrt(-2 * np.log(0.7))
    y = np.zeros_like(padded)
    for (i, j), spectrum in spectra.items():
        power = np.abs(spectrum) ** 2 / (2 * noise**2)
        around = sum(np.roll(power, (p, q), (0, 1)) for p in (-1, 0, 1) for q in (-1, 0, 1)) / 9
        gain = np.maximum(around - factor, 0) / around
        y[i : i + traces, j : j + samples] += np.fft.ifft2(spectrum * gain).real * taper
    return y[a : a + x.shape[0], b : b + x.shape[1]]


@pytest.mark.parametrize(
    ("shape", "window"), [((70, 190), "sine32x64"), ((24, 90), "sine32x64"), ((50, 61), "sine8x10")]
)
def test_the_rule_as_it_is_written(rng, shape, window):
    x = section(rng, shape)[1]
    traces, samples = min(as_window(window).traces, shape[0] // 2 * 2), as_window(window).samples
    found = wavefilt.denoise(x, window, transform="fk", axes=(0, 1))
    # the quantile is an order statistic, NumPy's lies between two
    assert_allclose(found, shrunk_as_written(x, traces, samples), atol=0.02)


def test_each_neighbour_counts_by_its_own_noise(rng):
    """In pink noise a low frequency beside another is no reason to keep it; bands of threshold 0 are no neighbours."""
    bands = [rng.standard_normal((2, 3, 4, 6)) + 1j * rng.standard_normal((2, 3, 4, 6)) for _ in range(5)]
    thresholds = rng.uniform(0.5, 1.5, (5, 2))
    thresholds[2] = 0
    found = Local().shrink_spectra(bands, thresholds)
    power = np.array([np.square(np.abs(band)) for band in bands])
    scale = np.where(thresholds > 0, thresholds, np.inf)[..., None, None, None]
    power = power / scale**2
    opposite = power[..., -np.arange(6) % 6]
    whole = np.concatenate([opposite[1:2], power, opposite[-2:-1]])
    there = np.broadcast_to(np.isfinite(scale), power.shape)
    counted = np.concatenate([there[1:2], there, there[-2:-1]])
    for f, (band, shrunk) in enumerate(zip(bands, found, strict=True)):
        around, number = whole[f : f + 3].sum(0), counted[f : f + 3].sum(0)
        energy = around + np.roll(around, 1, -1) + np.roll(around, -1, -1)
        gain = np.maximum(1 - 2 * 3 * number / energy, 0) if f != 2 else 1
        assert_allclose(shrunk, band * gain, rtol=1e-12)


def gained(clean, noisy, **options):
    return wavefilt.quality.snr(
        clean.ravel(), wavefilt.denoise(noisy, axes=(0, 1), **options).ravel()
    ) - wavefilt.quality.snr(clean.ravel(), noisy.ravel())


@pytest.mark.parametrize("pink", [False, True])
def test_gathers_gain_more_than_by_separable_wavelets(rng, pink):
    clean = gather()
    noisy = clean + 0.6 * noise(rng, clean.shape, pink)
    gains = {rule: gained(clean, noisy, transform="fk", rule=rule) for rule in ("js", "sure", "fdr")}
    assert gains["js"] > 13.5
    assert min(gains.values()) > gained(clean, noisy) + 4
    assert gained(clean[:24], noisy[:24], transform="fk") > 11
    ragged = gather(ragged=True, rng=rng)
    noisy = ragged + 0.6 * noise(rng, clean.shape, pink)
    assert gained(ragged, noisy, wavelet="sine16x32", transform="fk") > max(9, gained(ragged, noisy) + 3)


def test_nothing_is_left_of_white_noise_and_all_of_a_clean_section(rng):
    x = rng.standard_normal((64, 400))
    assert np.square(wavefilt.denoise(x, transform="fk", axes=(0, 1))).mean() < 0.06
    clean = gather(64, 400)
    assert_allclose(wavefilt.denoise(clean + 1e-9 * x, transform="fk", axes=(0, 1)), clean, atol=1e-6)


def test_the_ends_are_as_good_as_the_middle(rng):
    """Windows reach beyond a panel, and see it reflected there, where dips change their sign."""
    traces, samples = np.indices((96, 400))
    clean = sum(np.sin(2 * np.pi * (f * samples + k * traces)) for f, k in ((0.05, 0.1), (0.1, -0.05), (0.08, 0.0)))
    errors = np.zeros(clean.shape)
    for _ in range(4):
        y = wavefilt.denoise(clean + rng.standard_normal(clean.shape), transform="fk", axes=(0, 1))
        errors += np.square(y - clean) / 4
    middle = errors[16:-16, 32:-32].mean()
    for end in (errors[:8], errors[-8:], errors[:, :16], errors[:, -16:]):
        assert end.mean() < min(3.5 * middle, 0.15)


def test_batches_axes_dtypes_and_threads(rng):
    x = np.stack([section(rng, (40, 150))[1] for _ in range(3)])
    y = wavefilt.denoise(x, transform="fk", axes=(1, 2))
    for own, expected in zip(x, y, strict=True):
        assert_allclose(wavefilt.denoise(own, transform="fk", axes=(0, 1)), expected, atol=1e-12)
    assert_array_equal(wavefilt.denoise(x.transpose(2, 0, 1), transform="fk", axes=(2, 0)), y.transpose(2, 0, 1))
    single = wavefilt.denoise(x.astype("f4"), transform="fk", axes=(1, 2))
    assert single.dtype == np.float32
    assert_allclose(single, y, atol=2e-4)
    assert_allclose(wavefilt.denoise(1e-30 * x, transform="fk", axes=(1, 2)), 1e-30 * y, atol=1e-42)
    together = wavefilt.denoise(x, transform="fk", axes=(1, 2), scope="record")
    assert np.abs(together - y).max() > 1e-3
    wavefilt.set_num_threads(1)
    try:
        assert_array_equal(wavefilt.denoise(x, transform="fk", axes=(1, 2)), y)
    finally:
        wavefilt.set_num_threads(None)


def test_gaps_and_dead_traces(rng):
    clean = gather()
    noisy = clean + 0.6 * rng.standard_normal(clean.shape)
    holes = noisy.copy()
    holes[40], holes[70, 100:180], holes[90:92, 50:400] = 0, np.nan, np.nan
    y = wavefilt.denoise(holes, transform="fk", axes=(0, 1))
    lost = (holes == 0) | np.isnan(holes)
    assert_array_equal(y[lost], holes[lost])
    error = np.square(y - clean)[~lost].mean()
    assert error < 1.3 * np.square(wavefilt.denoise(noisy, transform="fk", axes=(0, 1)) - clean)[~lost].mean()
    live = np.ones((64, 200), bool)
    live[:, 90:] = live[20] = False
    analysis = analysis_of(live.shape)
    (shares,) = {tuple(share.ravel()[[0, -1]]) for share in FK.live_shares(live, analysis)[1:-1]}
    coefficients = FK.analyse(live[None].astype(float), analysis)
    assert shares[1] == 0
    assert 0.9 < shares[0] < 1
    assert [s.shape for s in FK.live_shares(live, analysis)] == [
        c.shape for c in FK.counted(coefficients, analysis, live.shape)
    ]


@pytest.mark.parametrize("live", [0, 1, 2, 3])
@pytest.mark.parametrize("mode", ["symmetric", "reflect"])
def test_few_live_traces(rng, live, mode):
    x = np.zeros((12, 150))
    x[4 : 4 + live] = section(rng, (live, 150))[1]
    x[5, 20:30] = np.nan
    y = wavefilt.denoise(x, transform="fk", axes=(0, 1), mode=mode)
    assert_array_equal(np.isnan(y), np.isnan(x))
    assert_array_equal(y[8:], x[8:])
    assert np.nanvar(y - x) < np.nanvar(x) + 1e-30


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"wavelet": "db8"}, "wavelet='db8' is no window of transform \"fk\".* sine32x64"),
        ({"wavelet": "sine31x64"}, "both even"),
        ({"level": 3}, "level=3 is not for transform='fk', which has windows instead"),
        ({"keep": 1}, "keep=1 is not for transform='fk', which has no levels"),
        ({"rule": [1.0, 2.0]}, "give one threshold"),
        ({"rule": "bivariate"}, "rule='bivariate' is not for transform='fk', whose bands have no parents"),
        ({"rule": "ebayes"}, "rule='ebayes' is for real coefficients"),
        ({"rule": "blockjs"}, "rule='blockjs' is for"),
        ({"sigma": "global"}, "every frequency has noise of its own"),
        ({"sigma": ("window", 0, 50)}, "is for traces, not for two dimensions"),
        ({"spins": 2}, "transform='fk' depends little on shifts: leave spins out"),
        ({"detrend": "mean"}, "is for traces"),
    ],
)
def test_options_that_it_cannot_have(options, words):
    with pytest.raises(ValueError, match=words):
        wavefilt.denoise(np.ones((40, 100)), transform="fk", axes=(0, 1), **options)


def test_what_else_is_refused(rng):
    with pytest.raises(ValueError, match=r"transform='fk' is for panels: add axes=\(-2, -1\)"):
        wavefilt.denoise(np.ones((40, 100)), transform="fk")
    with pytest.raises(ValueError, match="transform='fk' is for real samples"):
        wavefilt.denoise(rng.standard_normal((40, 100)) * 1j, transform="fk", axes=(0, 1))
    x = rng.standard_normal((1, 100))
    with pytest.warns(UserWarning, match="unchanged"):
        assert_array_equal(wavefilt.denoise(x, transform="fk", axes=(0, 1)), x)


@pytest.mark.parametrize(
    "options", [{"sigma": 0.3}, {"rule": 0.9}, {"rule": "bayes", "shrink": "hard"}, {"mode": "periodic"}]
)
def test_other_options(rng, options):
    clean, noisy = section(rng)
    y = wavefilt.denoise(noisy, transform="fk", axes=(0, 1), **options)
    assert np.square(y - clean).mean() < 0.5 * np.square(noisy - clean).mean()


def test_in_history_and_the_command(tmp_path, rng, capsys):
    np.save(tmp_path / "x.npy", section(rng)[1])
    command = ["denoise", str(tmp_path / "x.npy"), "--two-dimensional", "--transform", "fk", "-v"]
    code, _, told = run(capsys, *command, "-o", tmp_path / "y.npy")
    assert code == 0
    assert "sine32x64 2-D FK js" in told
    assert told.index("  f32: sigma") < told.index("  f0: sigma")
    assert_array_equal(
        np.load(tmp_path / "y.npy"), wavefilt.denoise(np.load(tmp_path / "x.npy"), transform="fk", axes=(0, 1))
    )
    method = Method(transform="fk", dimensions=2)
    assert method.summary(32) == "fk sine32x64, js local"
    assert "level" not in history_line(method, 32).replace("sigma='level'", "")


def test_bands_are_told_in_hertz_where_the_interval_is_known(tmp_path, rng, capsys):
    section(rng, (24, 200))[1].astype("<f4").tofile(tmp_path / "x.raw")
    layout = ["--format", "raw", "--dtype", "f4", "--endian", "little", "--ns", "200", "--dt", "0.004"]
    command = ["denoise", tmp_path / "x.raw", *layout, "--two-dimensional", "--transform", "fk", "-v"]
    code, _, told = run(capsys, *command, "-o", tmp_path / "y.raw")
    assert code == 0, told
    assert told.index("  125 Hz: sigma") < told.index("  3.906 Hz: sigma") < told.index("  0 Hz: sigma")


def test_the_noise_of_a_picture_is_that_of_both_parts(rng):
    pytest.importorskip("matplotlib")
    from wavefilt.plot import draw

    recording = Recording(rng.standard_normal((64, 300)), (0.004,) * 64, "npy", None)
    after = recording.apply(Method(transform="fk", dimensions=2), report=True)
    (estimate,) = after.outcome.estimates
    assert_allclose(estimate.power, 2 * estimate.sigma**2, rtol=0.3)
    figure = draw(recording, after)
    (axes,) = [axes for axes in figure.axes if axes.get_ylabel() == "energy (%)"]
    assert_allclose(axes.lines[0].get_ydata().sum(), 100, rtol=0.1)
