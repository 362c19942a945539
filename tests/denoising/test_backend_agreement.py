"""PyWavelets and numba in float32 on random data and options: apart by rounding, or for a reason that is named."""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.random_agreement import LIMIT, case, distances

pytest.importorskip("numba")


def _found(seed, count, **fixed):
    rng, found = np.random.default_rng(seed), []
    while len(found) < count:
        apart = distances(case(rng, **fixed))
        if apart is not None:
            found.append(apart)
    return found


@pytest.mark.parametrize(("transform", "limit"), [("dwt", LIMIT), ("modwt", LIMIT), ("dwt2", 2 * LIMIT)])
def test_backends_agree_with_the_same_thresholds(transform, limit):
    for apart in _found(1, 16, transform=transform):
        assert apart.steep or apart.given <= limit


def test_the_reference_sums_a_modwt_in_float64():
    """Of records of MODWTs differences were largest: 5.7e-7 with sums in float32."""
    found = [apart for apart in _found(3, 36, transform="modwt", scope="record") if not apart.steep]
    assert len(found) > 12
    assert max(apart.reference for apart in found if not apart.local) < 2.5e-7
    assert max(apart.reference for apart in found if apart.local) < 4e-7
