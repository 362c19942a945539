"""scikit-learn's own FunctionTransformer around `wavefilt.denoise`, as the documentation shows it."""

from __future__ import annotations

import numpy as np
import pytest

import wavefilt

preprocessing = pytest.importorskip("sklearn.preprocessing")


def test_a_step_of_a_pipeline(rng):
    from sklearn.base import clone
    from sklearn.pipeline import make_pipeline

    traces = rng.standard_normal((8, 300))
    step = preprocessing.FunctionTransformer(wavefilt.denoise, kw_args={"rule": "universal"})
    pipeline = clone(make_pipeline(step, preprocessing.StandardScaler()))
    expected = preprocessing.StandardScaler().fit_transform(wavefilt.denoise(traces, rule="universal"))
    np.testing.assert_array_equal(pipeline.fit_transform(traces), expected)
