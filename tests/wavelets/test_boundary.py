"""The index map of the boundary modes against PyWavelets' own transforms."""

from __future__ import annotations

import numpy as np
import pytest
import pywt

from wavefilt.vocabulary import MODES
from wavefilt.wavelets import boundary
from wavefilt.wavelets.filters import detail_length


def extended(x, i, mode):
    terms = boundary.extension(boundary.code(mode), i, len(x))
    assert all(0 <= index < len(x) for index in terms[::2])
    return sum(x[index] * weight for index, weight in zip(terms[::2], terms[1::2], strict=True))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("wavelet", ["db1", "db2", "db3", "db10"])  # periodization's phase depends on taps mod 4
def test_coefficients_of_the_extended_row_are_those_of_pywavelets(rng, mode, wavelet):
    taps = np.array(pywt.Wavelet(wavelet).dec_lo[::-1])
    first = boundary.first_input(len(taps), mode)
    for n in range(2 if "reflect" in mode else 1, 30):
        x = rng.standard_normal(n)
        expected = pywt.dwt(x, wavelet, mode)[0]
        found = [
            sum(tap * extended(x, first + 2 * i + k, mode) for k, tap in enumerate(taps))
            for i in range(detail_length(n, len(taps), mode))
        ]
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("zero", [0, 0, 0, 0, 1, 2, 4, 0, 0, 0, 0]),
        ("constant", [1, 1, 1, 1, 1, 2, 4, 4, 4, 4, 4]),
        ("symmetric", [4, 4, 2, 1, 1, 2, 4, 4, 2, 1, 1]),
        ("periodic", [4, 1, 2, 4, 1, 2, 4, 1, 2, 4, 1]),
        ("periodization", [1, 2, 4, 4, 1, 2, 4, 4, 1, 2, 4]),
        ("smooth", [-3, -2, -1, 0, 1, 2, 4, 6, 8, 10, 12]),
        ("reflect", [1, 2, 4, 2, 1, 2, 4, 2, 1, 2, 4]),
        ("antisymmetric", [4, -4, -2, -1, 1, 2, 4, -4, -2, -1, 1]),
        ("antireflect", [-5, -4, -2, 0, 1, 2, 4, 6, 7, 8, 10]),
    ],
)
def test_the_extension_of_three_samples(mode, expected):
    assert [extended([1, 2, 4], i, mode) for i in range(-4, 7)] == expected


def test_codes_follow_the_vocabulary():
    names = [name.upper() for name in MODES]
    assert [getattr(boundary, name) for name in names] == list(range(len(MODES)))
