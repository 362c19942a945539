"""What workers of other libraries compute in `test_threads.py`: they import this, without the tests' own imports."""

from __future__ import annotations

import numpy as np
import pywt

from wavefilt.backends.numba_cpu import NumbaCPU
from wavefilt.transforms import DWT

X = np.random.default_rng(3).standard_normal((4, 40_000)).astype("f4")


def transformed(x=X):
    pyramid = NumbaCPU(tile=4096).decompose(x, DWT.analysis(pywt.Wavelet("db4"), "symmetric", 4))
    medians = NumbaCPU().statistics([pyramid], "trace").median_abs([1, 2])
    return np.concatenate([medians.ravel(), *(c.ravel() for c in pyramid.coefficients)])
