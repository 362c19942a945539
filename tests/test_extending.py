"""What another package adds: each works in `denoise`, in the command, streamed and by Dask where it says that it can.

A format has tests of its own, `tests/io/test_format_registry.py`; here it is in the example of all six.
"""

from __future__ import annotations

import sys
from importlib import metadata
from types import ModuleType

import numpy as np
import pytest
import pywt
from click.testing import CliRunner

import wavefilt
from wavefilt import extending
from wavefilt.backends import registry
from wavefilt.backends.reference.backend import PyWavelets
from wavefilt.cli import group
from wavefilt.extending import Analysis, Format, RuleSpec, Transform
from wavefilt.registry import EXTENSIONS, load_extensions
from wavefilt.thresholding.rules import RULES
from wavefilt.thresholding.shrinkage import FUNCTIONS
from wavefilt.transforms import TRANSFORMS
from wavefilt.wavelets import boundary

# ---- a toy of every kind


def two_sigma(statistics, sigma, samples):
    """Twice the noise."""
    return 2 * sigma


def two_root_mean_squares(statistics, sigma, samples):
    """Twice the root mean square, which asks for the mean squares."""
    return 2 * np.sqrt(statistics.mean_square())


def halfway(data, value):
    """Coefficients below the threshold are halved."""
    return np.where(np.abs(data) <= value, 0.5 * data, data)


def last_but_one(i, n):
    """The second sample on the left, the last but one on the right, for ever."""
    if 0 <= i < n:
        return i, 1, 0, 0, 0, 0
    return (min(1, n - 1) if i < 0 else max(n - 2, 0)), 1, 0, 0, 0, 0


class ATrous(Transform):
    """Differences of ever longer circular means of two samples: the samples are the sum of all coefficients."""

    name = word = "atrous"
    workspace = 2.0

    def noise_exponent(self, level):
        return -0.5 * level

    def sizes(self, analysis, shape):
        return [shape[0]] * analysis.level

    def analyse(self, x, analysis: Analysis):
        details = []
        for j in range(analysis.level):
            coarser = 0.5 * (x + np.roll(x, 1 << j, axis=-1))
            details.append(x - coarser)
            x = coarser
        return (x, *reversed(details))

    def synthesise(self, approximation, details, analysis, shape):
        return sum(details, approximation)


class Counting(PyWavelets):
    """The reference backend, which counts its transforms."""

    name = "counting"
    calls = 0

    def decompose(self, x, analysis):
        type(self).calls += 1
        return super().decompose(x, analysis)


@pytest.fixture(autouse=True)
def toys():
    extending.register_rule("twosigma", RuleSpec(two_sigma, mergeable=True, causal=True, device_kind="linear"))
    needs = frozenset({"mean_square"})
    extending.register_rule("tworms", RuleSpec(two_root_mean_squares, needs=needs, mergeable=True))
    extending.register_shrink("halfway", halfway)
    extending.register_mode("lastbutone", last_but_one)
    extending.register_transform(ATrous())
    extending.register_backend("counting", Counting)
    yield
    for table, names in (
        (RULES, ("twosigma", "tworms")),
        (FUNCTIONS, ("halfway",)),
        (boundary.EXTENSIONS, ("lastbutone",)),
        (TRANSFORMS, ("atrous",)),
        (registry.BACKENDS, ("counting",)),
    ):
        for name in names:
            table.unregister(name)
    registry._made.cache_clear()


@pytest.fixture
def x(rng):
    return rng.standard_normal((4, 5000)) + np.sin(np.arange(5000) / 40)


TOYS = {
    "rule": {"rule": "twosigma"},
    "rule of mean squares": {"rule": "tworms"},
    "threshold function": {"rule": "bayes", "shrink": "halfway"},
    "boundary mode": {"mode": "lastbutone"},
    "transform": {"transform": "atrous", "level": 4, "rule": "twosigma"},
    "backend": {"backend": "counting"},
}
"""Options that take a toy."""
CHUNKED = ("rule", "rule of mean squares", "threshold function", "boundary mode", "backend")
"""Those that traces can be cut into chunks for."""


# ---- each does what it says


@pytest.mark.parametrize("backend", ["pywavelets", "numba"])
def test_rules_and_functions_are_those_given(x, backend):
    x = x[0]
    *_, finest = wavefilt.wavedec(x, "db8", level=5)
    sigma = np.median(np.abs(finest)) / 0.6744897501960817
    coefficients = wavefilt.wavedec(x, "db8", level=5)
    shrunk = [coefficients[0], *(halfway(d, 2 * sigma) for d in coefficients[1:])]
    expected = wavefilt.waverec(shrunk, "db8")[: len(x)]
    y = wavefilt.denoise(x, rule="twosigma", shrink="halfway", sigma="global", backend=backend)
    np.testing.assert_allclose(y, expected, atol=1e-12)


@pytest.mark.parametrize("wavelet", ["haar", "db2", "db8", "bior4.4"])
@pytest.mark.parametrize("samples", [64, 77])
def test_a_mode_extends_as_it_says(rng, wavelet, samples):
    """Coefficients are PyWavelets' of a signal that was extended by hand, and the inverse gives the signal back."""
    x, bank = rng.standard_normal(samples), pywt.Wavelet(wavelet)
    taps = bank.dec_len
    extended = np.array([x[last_but_one(i, samples)[0]] for i in range(-taps, samples + taps)])
    count = (samples + taps - 1) // 2
    expected = [c[taps // 2 : taps // 2 + count] for c in pywt.dwt(extended, bank, "zero")]
    found = wavefilt.wavedec(x, wavelet, "lastbutone", 1)
    np.testing.assert_allclose(found, expected, atol=1e-13)
    coefficients = wavefilt.wavedec(x, wavelet, "lastbutone", 2)
    np.testing.assert_allclose(wavefilt.waverec(coefficients, wavelet, "lastbutone")[:samples], x, atol=1e-12)
    panel = rng.standard_normal((samples, 40))
    bands = wavefilt.wavedec2(panel, wavelet, "lastbutone", 1)
    assert bands[0].shape == wavefilt.wavedec2(panel, wavelet, "symmetric", 1)[0].shape
    np.testing.assert_allclose(wavefilt.waverec2(bands, wavelet, "lastbutone")[:samples], panel, atol=1e-12)
    undecimated = wavefilt.modwt(x, wavelet, 2, "lastbutone")
    np.testing.assert_allclose(wavefilt.imodwt(undecimated, wavelet, "lastbutone"), x, atol=1e-12)


def test_known_modes_written_anew_are_those_of_pywavelets(rng):
    """The path of other modes, with the extension of a mode that PyWavelets has too."""
    extending.register_mode("again", boundary.EXTENSIONS["antireflect"])
    try:
        x = rng.standard_normal((2, 301))
        for found, expected in zip(
            wavefilt.wavedec(x, "db5", "again", 3), wavefilt.wavedec(x, "db5", "antireflect", 3), strict=True
        ):
            np.testing.assert_allclose(found, expected, atol=1e-12)
    finally:
        boundary.EXTENSIONS.unregister("again")


def test_a_transform_knows_its_noise(rng):
    """Noise given as a number is scaled by what the transform says of its bands."""
    x = rng.standard_normal((2, 4096))
    details = ATrous().analyse(x, ATrous().analysis(pywt.Wavelet("haar"), "zero", 4))[:0:-1]
    gains = [2 ** (-0.5 * level) for level in range(1, 5)]
    np.testing.assert_allclose([d.std() for d in details], gains, rtol=0.1)
    y = wavefilt.denoise(x, transform="atrous", level=4, rule="twosigma", sigma=1.0)
    soft = [np.sign(d) * np.maximum(np.abs(d) - 2 * g, 0) for d, g in zip(details, gains, strict=True)]
    np.testing.assert_allclose(y, x - sum(details) + sum(soft), atol=1e-12)


@pytest.mark.parametrize("backend", ["numba", "pywavelets", "auto"])
def test_other_backends_leave_it_to_the_reference(x, backend):
    for options in (TOYS["transform"], TOYS["boundary mode"]):
        expected = wavefilt.denoise(x, backend="pywavelets", **options)
        np.testing.assert_array_equal(wavefilt.denoise(x, backend=backend, **options), expected)


def test_a_backend_is_used(x):
    Counting.calls = 0
    y = wavefilt.denoise(x, backend="counting")
    assert Counting.calls == 1
    np.testing.assert_array_equal(y, wavefilt.denoise(x, backend="pywavelets"))
    assert "counting" in wavefilt.backends.names()
    assert "PyWavelets" in CliRunner().invoke(group, ["backends"]).output


# ---- everywhere


@pytest.mark.parametrize("toy", TOYS)
def test_in_the_command(tmp_path, x, toy):
    np.save(tmp_path / "x.npy", x)
    options = [f"--{name}={value}" for name, value in TOYS[toy].items()]
    done = CliRunner().invoke(group, ["denoise", str(tmp_path / "x.npy"), "-o", str(tmp_path / "y.npy"), *options])
    assert done.exit_code == 0, done.output
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), wavefilt.denoise(x, **TOYS[toy]))


def test_in_the_help():
    text = CliRunner().invoke(group, ["denoise", "--help"]).output
    for name in ("twosigma", "halfway", "lastbutone", "atrous", "counting"):
        assert name in " ".join(text.split())


@pytest.mark.parametrize("toy", TOYS)
def test_streamed_as_whole_traces(tmp_path, x, toy):
    np.save(tmp_path / "x.npy", x)
    wavefilt.denoise_file(tmp_path / "x.npy", tmp_path / "y.npy", **TOYS[toy])
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), wavefilt.denoise(x, **TOYS[toy]))


@pytest.mark.parametrize("toy", CHUNKED)
def test_streamed_in_chunks(tmp_path, rng, toy):
    x = rng.standard_normal((1, 3_000_000)).astype("f4")
    np.save(tmp_path / "x.npy", x)
    options = TOYS[toy] | {"backend": TOYS[toy].get("backend", "pywavelets")}
    report = wavefilt.denoise_file(tmp_path / "x.npy", tmp_path / "y.npy", max_memory="45MiB", **options)
    assert report.passes > 1
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), wavefilt.denoise(x, **options))


def test_what_cannot_be_cut_into_chunks_says_so(tmp_path, rng):
    np.save(tmp_path / "x.npy", rng.standard_normal((1, 3_000_000)).astype("f4"))
    with pytest.raises(ValueError, match="transform='atrous' needs whole traces in memory"):
        wavefilt.denoise_file(tmp_path / "x.npy", tmp_path / "y.npy", max_memory="45MiB", **TOYS["transform"])


@pytest.mark.parametrize("toy", TOYS)
def test_by_dask(x, toy):
    da = pytest.importorskip("dask.array")
    from wavefilt.dask import denoise

    expected = wavefilt.denoise(x, **TOYS[toy])
    whole = denoise(da.from_array(x, chunks=(2, -1)), **TOYS[toy]).compute(scheduler="threads")
    np.testing.assert_array_equal(whole, expected)
    cut = da.from_array(x, chunks=(2, 2500))
    if toy in CHUNKED:
        np.testing.assert_allclose(denoise(cut, **TOYS[toy]).compute(scheduler="threads"), expected, atol=1e-9)
    else:
        with pytest.raises(ValueError, match=r"transform='atrous'.* is not possible for traces cut into chunks"):
            denoise(cut, **TOYS[toy])


def test_rules_say_what_they_can_do(rng):
    """One that asks for more than parts can add up, or for all of a trace, is refused where that is needed."""
    with pytest.raises(ValueError, match="a mergeable rule cannot need sorted"):
        RuleSpec(two_sigma, needs=frozenset({"sorted"}), mergeable=True)
    quiet = wavefilt.OnlineDenoiser("db2", 2, "twosigma", window=256)
    assert np.isfinite(quiet.push(rng.standard_normal(1000))).all()
    with pytest.raises(ValueError, match="rule='tworms' needs the whole trace"):
        wavefilt.OnlineDenoiser("db2", 2, "tworms", window=256)


# ---- names


@pytest.mark.parametrize(
    ("register", "name"),
    [
        (lambda name: extending.register_rule(name, RuleSpec(two_sigma)), "bayes"),
        (lambda name: extending.register_shrink(name, halfway), "soft"),
        (lambda name: extending.register_mode(name, last_but_one), "zero"),
        (lambda name: extending.register_backend(name, Counting), "cuda"),
        (lambda name: extending.register_format(Format(name=name, decode=print, encode=print)), "wav"),
    ],
)
def test_names_are_taken_once_and_are_words(register, name):
    with pytest.raises(ValueError, match=f"{name!r} is already registered"):
        register(name)
    with pytest.raises(ValueError, match="letters, digits"):
        register("two words")


def test_an_unknown_name_lists_those_registered():
    with pytest.raises(ValueError, match=r"rule='twosigm' is not one of .*twosigma.*did you mean 'twosigma'"):
        wavefilt.denoise(np.ones(64), rule="twosigm")


def test_an_installed_package_is_found_when_its_name_is_asked_for(monkeypatch):
    """By its entry point, which names a module whose import registers; one that fails is a warning."""
    package = ModuleType("toy_package")
    points = [
        metadata.EntryPoint("toy", "toy_package", EXTENSIONS),
        metadata.EntryPoint("broken", "no_such_package", EXTENSIONS),
    ]
    seen = []

    def found(group):
        seen.append(group)
        extending.register_rule("packaged", RuleSpec(two_sigma))
        return points

    monkeypatch.setitem(sys.modules, "toy_package", package)
    monkeypatch.setattr(metadata, "entry_points", found)
    load_extensions.cache_clear()
    try:
        wavefilt.denoise(np.ones(640), rule="bayes")
        assert not seen
        with pytest.warns(UserWarning, match="extension broken .no_such_package. cannot be loaded"):
            wavefilt.denoise(np.arange(640.0), rule="packaged")
        assert seen == [EXTENSIONS]
    finally:
        load_extensions.cache_clear()
        RULES.unregister("packaged")
