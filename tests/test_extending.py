"""Extensions: a rule, shrink function, boundary mode, transform, backend and format work wherever built-in ones do."""

from __future__ import annotations

import struct

import numpy as np
import pytest
import pywt

import wavefilt
from tests.support.checkout import least_memory, run
from wavefilt import extending
from wavefilt.backends import registry
from wavefilt.backends.reference.backend import PyWavelets
from wavefilt.errors import OptionError
from wavefilt.extending import Analysis, Format, Rule, Transform
from wavefilt.io import FORMATS
from wavefilt.thresholding.rules import RULES
from wavefilt.thresholding.shrinkage import FUNCTIONS
from wavefilt.transforms import TRANSFORMS
from wavefilt.wavelets import boundary


def two_sigma(statistics, sigma, samples):
    """Twice the noise."""
    return 2 * sigma


def halfway(data, value):
    """Coefficients below the threshold are halved."""
    return np.where(np.abs(data) <= value, 0.5 * data, data)


def last_but_one(i, n):
    """Repeat the second sample on the left, the last but one on the right."""
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
    extending.register_rule(Rule("twosigma", factor=lambda samples, options: 2.0))
    extending.register_shrink("halfway", halfway)
    extending.register_mode("lastbutone", last_but_one)
    extending.register_transform(ATrous())
    extending.register_backend("counting", Counting)
    yield
    del RULES["twosigma"], FUNCTIONS["halfway"], registry.BACKENDS["counting"]
    del boundary.EXTENSIONS["lastbutone"], TRANSFORMS["atrous"]


@pytest.fixture
def x(rng):
    return rng.standard_normal((4, 5000)) + np.sin(np.arange(5000) / 40)


TOYS = {
    "rule": {"rule": "twosigma"},
    "shrink function": {"rule": "bayes", "shrink": "halfway"},
    "boundary mode": {"mode": "lastbutone"},
    "backend": {"backend": "counting"},
    "transform": {"transform": "atrous", "level": 4, "rule": "twosigma"},
}
"""Options that take a toy; only the last one needs whole traces."""


def test_a_boundary_mode(rng):
    """Coefficients are PyWavelets' of a signal that was extended by hand, and the inverse gives the signal back."""
    x, filters = rng.standard_normal(77), pywt.Wavelet("db8")
    extended = np.array([x[last_but_one(i, 77)[0]] for i in range(-16, 77 + 16)])
    expected = [c[8 : 8 + 46] for c in pywt.dwt(extended, filters, "zero")]
    np.testing.assert_allclose(wavefilt.wavedec(x, "db8", "lastbutone", 1), expected, atol=1e-13)
    for again in (
        wavefilt.waverec(wavefilt.wavedec(x, "db8", "lastbutone", 2), "db8", "lastbutone")[:77],
        wavefilt.imodwt(wavefilt.modwt(x, "db8", 2, "lastbutone"), "db8", "lastbutone"),
    ):
        np.testing.assert_allclose(again, x, atol=1e-12)


@pytest.mark.parametrize("backend", ["pywavelets", "numba"])
def test_rules_and_shrink_functions(x, backend):
    x = x[0]
    coefficients = wavefilt.wavedec(x, "db8", level=5)
    sigma = np.median(np.abs(coefficients[-1])) / 0.6744897501960817
    shrunk = [coefficients[0], *(halfway(d, 2 * sigma) for d in coefficients[1:])]
    for rule in ("twosigma", two_sigma, Rule("my", two_sigma, needs=frozenset())):
        for shrink in ("halfway", halfway):
            y = wavefilt.denoise(x, rule=rule, shrink=shrink, sigma="global", backend=backend)
            np.testing.assert_allclose(y, wavefilt.waverec(shrunk, "db8")[: len(x)], atol=1e-12)


@pytest.mark.parametrize("backend", ["pywavelets", "numba"])
def test_shrunk_coefficients_of_another_dtype(x, backend):
    expected = wavefilt.denoise(x, shrink=lambda data, value: np.round(data), backend=backend)
    for convert in (np.ndarray.tolist, lambda data: data.astype(np.int16), lambda data: data.astype(np.float32)):
        y = wavefilt.denoise(x, shrink=lambda data, value, own=convert: own(np.round(data)), backend=backend)
        np.testing.assert_array_equal(y, expected)


@pytest.mark.parametrize("name", ["twosigma", "bayes"])
@pytest.mark.parametrize("backend", ["pywavelets", "numba"])
def test_a_name_registered_again_means_the_new_rule(monkeypatch, x, backend, name):
    """A built-in rule too, which compiled backends compute by themselves."""
    before = wavefilt.denoise(x, rule=name, backend=backend)
    for factor in (1.0, 2.0, 3.0):
        monkeypatch.delitem(RULES, name)
        with pytest.raises(OptionError, match=name):
            wavefilt.denoise(x, rule=name, backend=backend)
        monkeypatch.setitem(RULES, name, Rule(name, factor=lambda samples, options, factor=factor: factor))
        expected = wavefilt.denoise(x, rule=lambda _, sigma, samples, f=factor: f * sigma, backend="pywavelets")
        for _ in range(3):
            y = wavefilt.denoise(x, rule=name, backend=backend)
            np.testing.assert_allclose(y, expected, atol=1e-12)
    monkeypatch.undo()
    np.testing.assert_array_equal(wavefilt.denoise(x, rule=name, backend=backend), before)


@pytest.mark.parametrize("thresholds", [None, 3.0, [1, 2]])
def test_a_rule_that_returns_no_threshold_for_each_level_and_trace(x, thresholds):
    with pytest.raises(OptionError, match="shape"):
        wavefilt.denoise(x, rule=lambda *_: thresholds)


def test_a_rule_without_a_function():
    with pytest.raises(OptionError, match="factor"):
        Rule("nothing")


@pytest.mark.parametrize("backend", ["pywavelets", "numba"])
def test_functions_that_return_what_they_must_not(x, backend):
    with pytest.raises(OptionError, match="at least 0"):
        wavefilt.denoise(x, rule=lambda statistics, sigma, samples: -sigma, backend=backend)
    for shrink in (lambda data, value: None, lambda data, value: data[..., :3], lambda data, value: 1j * data):
        with pytest.raises(OptionError, match="shape"):
            wavefilt.denoise(x, shrink=shrink, backend=backend)
    with pytest.raises(TypeError, match="backend"):
        wavefilt.denoise(x, backend=3)


def test_calls_name_functions(x):
    found = wavefilt.compare(x, rule=[two_sigma, "universal"], sigma="global")
    line = next(found.taken.python(trial.options) for trial in found.trials if trial.options["rule"] is two_sigma)
    np.testing.assert_array_equal(eval(line), wavefilt.denoise(x, rule=two_sigma, sigma="global"))


def test_a_function_as_a_rule_may_ask_for_everything(tmp_path, x):
    def largest(statistics, sigma, samples):
        return np.minimum(statistics.minimise(lambda square, *_: -square, sigma), 2 * statistics.mean_square() ** 0.5)

    expected, by_numba = (
        wavefilt.denoise(x, rule=largest, shrink=halfway, backend=backend) for backend in ("pywavelets", "numba")
    )
    np.testing.assert_allclose(by_numba, expected, atol=1e-12)
    np.save(tmp_path / "x.npy", x)
    wavefilt.denoise_file(tmp_path / "x.npy", tmp_path / "y.npy", rule=largest, shrink=halfway, backend="pywavelets")
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), expected)
    with pytest.raises(ValueError, match="largest"):
        wavefilt.OnlineDenoiser(rule=largest)


def test_a_transform(rng):
    """Noise given as a number is scaled by the transform's gain of each band."""
    x = rng.standard_normal((2, 4096))
    details = ATrous().analyse(x, ATrous().analysis(pywt.Wavelet("haar"), "zero", 4))[:0:-1]
    gains = [2 ** (-0.5 * level) for level in range(1, 5)]
    y = wavefilt.denoise(x, transform="atrous", level=4, rule="twosigma", sigma=1.0)
    soft = [np.sign(d) * np.maximum(np.abs(d) - 2 * g, 0) for d, g in zip(details, gains, strict=True)]
    np.testing.assert_allclose(y, x - sum(details) + sum(soft), atol=1e-12)
    options = {"transform": "atrous", "level": 4, "rule": "twosigma", "sigma": 1.0}
    np.testing.assert_array_equal(wavefilt.denoise(x, backend="numba", **options), y)  # by the reference
    np.testing.assert_array_equal(wavefilt.denoise(x, **options | {"transform": ATrous()}), y)


class Scaled(ATrous):
    """A transform whose name is not its word."""

    name, word = "scaled-details", "scaled"

    def __init__(self, factor):
        self.factor = factor

    def analyse(self, x, analysis):
        approximation, *details = super().analyse(x, analysis)
        return (approximation, *(self.factor * d for d in details))


def test_a_transform_registered_again(monkeypatch, x):
    for factor in (0.0, 1.0):
        monkeypatch.setitem(TRANSFORMS, Scaled.name, Scaled(factor))
        y = wavefilt.denoise(x, transform="scaled", level=2, rule=0.1)
        np.testing.assert_array_equal(y, wavefilt.denoise(x, transform=Scaled(factor), level=2, rule=0.1))


def test_a_backend(x):
    Counting.calls = 0
    y = wavefilt.denoise(x, backend="counting")
    assert Counting.calls == 1
    np.testing.assert_array_equal(y, wavefilt.denoise(x, backend="pywavelets"))
    assert "counting" in wavefilt.backends.names()


@pytest.mark.parametrize("toy", TOYS)
def test_in_the_command_streamed_and_by_dask(tmp_path, capsys, x, toy):
    options, expected = TOYS[toy], wavefilt.denoise(x, **TOYS[toy])
    np.save(tmp_path / "x.npy", x)
    words = [f"--{name}={value}" for name, value in options.items()]
    assert run(capsys, "denoise", tmp_path / "x.npy", "-o", tmp_path / "y.npy", *words)[0] == 0
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), expected)
    wavefilt.denoise_file(tmp_path / "x.npy", tmp_path / "z.npy", **options)
    np.testing.assert_array_equal(np.load(tmp_path / "z.npy"), expected)
    da = pytest.importorskip("dask.array")
    from wavefilt.dask import denoise

    whole, cut = (da.from_array(x, chunks=chunks) for chunks in ((2, -1), (2, 2500)))
    np.testing.assert_array_equal(denoise(whole, **options).compute(scheduler="threads"), expected)
    if toy != "transform":
        np.testing.assert_allclose(denoise(cut, **options).compute(scheduler="threads"), expected, atol=1e-9)
    else:
        with pytest.raises(ValueError, match="atrous"):
            denoise(cut, **options)


@pytest.mark.parametrize("toy", TOYS)
def test_streamed_in_chunks(tmp_path, rng, toy):
    x = rng.standard_normal((1, 1_600_000)).astype("f4")
    np.save(tmp_path / "x.npy", x)
    options = {"backend": "pywavelets"} | TOYS[toy]
    if toy == "transform":
        with pytest.raises(ValueError, match="whole traces"):
            wavefilt.denoise_file(tmp_path / "x.npy", tmp_path / "y.npy", max_memory="30MiB", **options)
        return
    limit = least_memory(tmp_path / "x.npy", **options)
    assert wavefilt.denoise_file(tmp_path / "x.npy", tmp_path / "y.npy", max_memory=limit, **options).passes > 1
    np.testing.assert_array_equal(np.load(tmp_path / "y.npy"), wavefilt.denoise(x, **options))


# ---- a format: a mark, the shape, a note of 16 characters, the samples


def toy(x: np.ndarray) -> bytes:
    return b"TOY!" + struct.pack("<2I16s", *x.shape, b"a note") + x.astype("<f4").tobytes()


class Toy(Format):
    name, endings = "toy", (".toy",)

    def recognise(self, probe):
        return probe.head.startswith(b"TOY!")

    def read(self, data, layout):
        layout.only("toy", "dt")
        rows, samples = struct.unpack_from("<2I", data, 4)
        if len(data) != 28 + 4 * rows * samples:
            raise wavefilt.FormatError(f"a toy of {rows} traces is cut short")
        traces = np.frombuffer(data, "<f4", offset=28).reshape(rows, samples)
        return wavefilt.Recording(traces, (layout.dt,) * rows, "toy", data[:28])

    def write(self, contents):
        return contents.origin + contents.samples.astype("<f4").tobytes()

    def convert(self, contents):
        return toy(contents.samples)


def test_a_format(tmp_path, capsys, x):
    extending.register_format(Toy())
    try:
        path, expected = tmp_path / "x.dat", toy(wavefilt.denoise(x.astype("f4"), "db4", rule="js", transform="modwt"))
        path.write_bytes(toy(x))
        assert wavefilt.read(path).format == "toy"
        assert wavefilt.read(path, format="toy", dt=0.002).interval == 0.002
        wavefilt.read(path).denoise("db4").write(tmp_path / "y.dat")
        assert run(capsys, "denoise", path, "-w", "db4", "-o", tmp_path / "z.dat")[0] == 0
        assert (tmp_path / "y.dat").read_bytes() == (tmp_path / "z.dat").read_bytes() == expected
        np.save(tmp_path / "x.npy", x.astype("f4"))
        assert run(capsys, "convert", tmp_path / "x.npy", tmp_path / "x.toy")[0] == 0
        assert (tmp_path / "x.toy").read_bytes() == toy(x)
        with pytest.raises(wavefilt.FormatError, match="streamed"):
            wavefilt.denoise_file(path, tmp_path / "parts")
        path.write_bytes(path.read_bytes()[:-1])
        with pytest.raises(wavefilt.FormatError, match="cut short"):
            wavefilt.read(path)
    finally:
        del FORMATS["toy"]
