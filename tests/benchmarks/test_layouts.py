"""Test the study of padding and fast math, and its model of bank conflicts."""

from __future__ import annotations

import json

from tests.support.simulation import inside, small_options
from wavefilt.benchmarks import layouts
from wavefilt.benchmarks.ske.counts import Problem


def test_padding_avoids_all_conflicts():
    for taps in (2, 8, 16):
        assert not any(layouts.conflicts(Problem(taps, 1 << 16, 1, 5), True).values())
        assert all(layouts.conflicts(Problem(taps, 1 << 16, 1, 5), False).values())


@inside
def test_the_model_has_the_layout_of_the_kernels():
    from wavefilt.backends.cuda.dwt.kernels import layout

    for padding in (True, False):
        assert [layout(padding).quad.fn(v, 0, 16) for v in range(64)] == layouts.quads(padding)


@inside
def test_the_study_runs(monkeypatch):
    from wavefilt.backends.cuda import options

    monkeypatch.setattr(options, "KernelOptions", lambda *own: small_options(padding=own[0], fastmath=own[1]))
    for name, value in {"CASES": [("dwt", "db4", (1, 300))], "LEVEL": 2, "LAUNCHES": 1}.items():
        monkeypatch.setattr(layouts, name, value)
    found = layouts.run(repeats=1)
    assert len(found["rows"]) == 4
    assert all(row["error"] < 1e-6 for row in found["rows"])
    assert "db4 dwt 1 x 300" in layouts.report(json.loads(json.dumps(found))).text()
