"""Complex bands of real samples: noise and thresholds of magnitudes, statistics that rules ask for them."""

from __future__ import annotations

import numpy as np
import pytest

from wavefilt.backends.numba_cpu.selection import NumbaStatistics
from wavefilt.statistics.batch import ReferenceStatistics
from wavefilt.statistics.mergeable import PassStatistics, State
from wavefilt.thresholding import rules


@pytest.mark.parametrize("share", [0.0, 0.3, 0.5, 1.0])
@pytest.mark.parametrize("count", [1, 2, 10, 1001])
def test_quantiles_of_magnitudes(rng, share, count):
    details = [rng.standard_normal((3, count)).astype("f4"), rng.standard_normal((3, 7)) + 1j]
    expected = [np.quantile(np.abs(d).astype("f8"), share, axis=1) for d in details]
    found = ReferenceStatistics(details).quantile_abs([1, 2], share)
    np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert np.array_equal(NumbaStatistics([details[:1]], "trace").quantile_abs([1], share), found[:1])
    state = State(np.array([count]), 3, np.dtype("f4"), 1 << 8, False)

    def run(begin):
        add, result = begin()
        add([[(0, details[0])]])
        return [result()]

    passes = PassStatistics(state, run)
    assert np.array_equal(passes.median_abs([1]), ReferenceStatistics(details[:1]).median_abs([1]))
    assert np.array_equal(passes.quantile_abs([1], share), found[:1])


def test_noise_of_magnitudes_is_that_of_a_part(rng):
    parts = 2.5 * rng.standard_normal((2, 1, 100_000))
    statistics = ReferenceStatistics([parts[0] + 1j * parts[1]])
    for share in (0.3, 0.5):
        assert rules.noise(statistics, "level", 2, share) == pytest.approx(2.5, rel=0.02)
    assert rules.noise(ReferenceStatistics([parts[0]]), "global", 1, 0.3) == pytest.approx(2.5, rel=0.02)
