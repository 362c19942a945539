"""Limits of memory for files whose chunks hold several traces."""

from __future__ import annotations

import numpy as np
import pytest

from wavefilt.method import Method
from wavefilt.outofcore import memory_budget
from wavefilt.outofcore.sizes import in_bytes

SHAPE, CHUNKS = (64, 2_000_000), {"neighbours": 16, "overhead": 70 << 20}


def _plan(limit, scope):
    return memory_budget.plan(SHAPE, np.dtype("f4"), Method(scope=scope), limit, "pywavelets", **CHUNKS)


@pytest.mark.parametrize("scope", ["trace", "record"])
def test_chunks_are_not_decoded_over_and_over(scope):
    """With 16 traces in a chunk, one trace at a time decoded and encoded each of them 16 times."""
    with pytest.raises(ValueError, match="16 neighbouring traces lie in the same chunks") as refused:
        _plan(140 << 20, scope)
    enough = in_bytes(str(refused.value).split("max_memory='")[1].split("'")[0])
    plan = _plan(enough, scope)
    together = plan.together if isinstance(plan, memory_budget.WholeTraces) else plan.buffer // SHAPE[1]
    assert 4 * together >= 16
    assert enough < 600 << 20
    with pytest.raises(ValueError, match="neighbouring traces"):
        _plan(enough * 3 // 4, scope)
