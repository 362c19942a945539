"""What the viewer shows is compared bit for bit with what "auto" computes."""

import pytest

from wavefilt.backends.crossover import numba_crossover


@pytest.fixture(autouse=True)
def _as_in_a_new_process(monkeypatch):
    """ "auto" goes by the kernels that the process has loaded, in other tests too."""
    monkeypatch.setattr(numba_crossover, "loaded", set())
