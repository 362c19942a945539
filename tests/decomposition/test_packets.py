"""Wavelet packets: PyWavelets' values and names, and perfect reconstruction from any basis."""

from __future__ import annotations

import numpy as np
import pytest
import pywt
from hypothesis import given
from hypothesis import strategies as st

import wavefilt
from tests.support.agreement import error
from wavefilt.vocabulary import MODES

BACKENDS = ["pywavelets", "numba"]


def packets_and_pywavelets(x, wavelet, mode, level, axis=-1, backend="pywavelets"):
    packets = wavefilt.wavelet_packets(x, wavelet, mode, level, axis, backend=backend)
    theirs = pywt.WaveletPacket(x, wavelet, mode, level, axis)
    nodes = [theirs, *(node for j in range(1, level + 1) for node in theirs.get_level(j))]
    return packets, {node.path: node.data for node in nodes}


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", ["f4", "f8"])
@pytest.mark.parametrize("mode", MODES)
def test_nodes_are_those_of_pywavelets(rng, mode, dtype, backend):
    for shape, axis in ((101,), -1), ((2, 64, 3), 1):
        x = rng.standard_normal(shape).astype(dtype)
        packets, theirs = packets_and_pywavelets(x, "db3", mode, 3, axis, backend)
        assert list(packets) == list(theirs)
        assert len(packets) == 15
        for name, data in theirs.items():
            found = packets[name]
            assert (found.shape, found.dtype) == (data.shape, data.dtype), name
            if backend == "pywavelets":
                assert np.array_equal(found, data), name
            else:  # what extrapolating modes add is larger than what is left of it
                assert np.abs(found - data).max() <= 200 * np.finfo(dtype).eps * np.abs(x).max(), name


@pytest.mark.parametrize("kind", ["int16", "float16", "complex64"])
def test_dtypes(rng, kind):
    x = (10 * rng.standard_normal((3, 40))).astype(kind)
    packets = wavefilt.wavelet_packets(x, "db2", level=2)
    assert packets["da"].dtype == {"int16": "f8", "float16": "f4", "complex64": "c8"}[kind]
    assert error(wavefilt.iwavelet_packets(packets, "db2"), x) < 1e-6


@pytest.mark.parametrize("order", ["natural", "freq"])
def test_names_of_a_level_have_pywavelets_order(order):
    packets = wavefilt.wavelet_packets(np.arange(64.0), "haar")
    theirs = pywt.WaveletPacket(np.arange(64.0), "haar", maxlevel=None)
    assert packets.level == theirs.maxlevel == 6
    for level in (1, 2, 5):
        assert packets.names(level, order) == [node.path for node in theirs.get_level(level, order)]
    assert packets.names() == packets.names(6)


@st.composite
def bases(draw, deepest=4):
    """Draw the names of the nodes of a random basis."""
    found, names = [], [""]
    while names:
        name = names.pop()
        if len(name) < deepest and draw(st.booleans()):
            names += [name + "a", name + "d"]
        else:
            found.append(name)
    return draw(st.permutations(found))


@given(
    basis=bases(),
    samples=st.integers(1, 90),
    wavelet=st.sampled_from(["haar", "db3", "bior2.4", "db8"]),
    mode=st.sampled_from([mode for mode in MODES if "reflect" not in mode]),
    backend=st.sampled_from(BACKENDS),
)
def test_any_basis_reconstructs(basis, samples, wavelet, mode, backend):
    x = np.random.default_rng(samples).standard_normal((2, samples))
    packets = wavefilt.wavelet_packets(x, wavelet, mode, max(map(len, basis)), backend=backend)
    nodes = {name: packets[name] for name in basis}
    assert error(wavefilt.iwavelet_packets(nodes, wavelet, mode, samples, backend=backend), x) < 1e-10
    longest = wavefilt.iwavelet_packets(nodes, wavelet, mode, backend=backend)
    assert longest.shape[1] >= samples
    again = wavefilt.wavelet_packets(longest, wavelet, mode, packets.level)
    assert {name: again[name].shape for name in basis} == {name: nodes[name].shape for name in basis}


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_whole_mapping_is_inverted(rng, backend):
    x = rng.standard_normal((2, 37, 3)).astype("f4")
    packets = wavefilt.wavelet_packets(x, "db2", axis=1, backend=backend)
    y = wavefilt.iwavelet_packets(packets, "db2", axis=1, backend=backend)
    assert (y.shape, y.dtype) == (x.shape, x.dtype)
    assert error(y, x) < 1e-6
    assert wavefilt.iwavelet_packets(packets, "db2", samples=38, axis=1).shape == (2, 38, 3)  # as asked for


def test_level_zero_and_empty_batches():
    packets = wavefilt.wavelet_packets(np.arange(5.0), "db8")
    assert list(packets) == [""]
    assert np.array_equal(wavefilt.iwavelet_packets(packets, "db8"), np.arange(5.0))
    empty = wavefilt.wavelet_packets(np.empty((0, 64)), "haar", level=2)
    assert empty["ad"].shape == (0, 16)
    assert wavefilt.iwavelet_packets(empty, "haar").shape == (0, 64)
