"""Traces cut into short chunks, by Dask: modes, transforms, rules and functions that tests of files leave out."""

from __future__ import annotations

import numpy as np
import pytest

import wavefilt

da = pytest.importorskip("dask.array")

import wavefilt.dask  # noqa: E402
from wavefilt.vocabulary import MODES  # noqa: E402

OPTIONS = [
    *({"mode": mode, "transform": "modwt"} for mode in MODES if not mode.startswith("period")),
    *({"shrink": shrink} for shrink in ("soft", "hard", "garrote", "firm")),
    *({"rule": rule, "transform": "dtcwt"} for rule in ("bayes", "bivariate", [0.3, 0.0, 0.5])),
    *({"rule": rule, "sigma": "global", "scope": "record"} for rule in ("minimax", "bayes")),
    {"rule": [0.0, 0.2, 0.4], "mode": "symmetric"},
]


def assert_same(x, chunk, **options):
    options = {"level": 3, "rule": "universal", **options}
    found = wavefilt.dask.denoise(da.from_array(x, chunks=(1, chunk)), **options).compute(scheduler="synchronous")
    expected = wavefilt.denoise(x, **options)
    # mean squares are sums over other chunks
    assert np.abs(found - expected).max() <= (1e-11 if options["rule"] in ("bayes", "bivariate") else 0)


@pytest.mark.parametrize("backend", ["pywavelets", "numba"])
@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_chunks_give_the_result_of_the_whole(rng, backend, options):
    x = np.sin(np.arange(3001) / 9) + rng.standard_normal((2, 3001)) * np.linspace(0.2, 2, 3001)
    assert_same(x, 700, backend=backend, **options)
