"""A pytest plugin that runs PyWavelets' own tests on our functions: those tests that use one of them."""

from __future__ import annotations

import types

import pywt

import wavefilt

NAMES = ("dwt", "idwt", "iswt", "swt", "threshold", "threshold_firm", "wavedec", "wavedec2", "waverec", "waverec2")


def pytest_collection_modifyitems(config, items):
    """Give the tests' modules a `pywt` with our functions, and leave out tests of nothing but theirs."""
    ours = types.ModuleType("pywt")
    vars(ours).update(vars(pywt) | {name: getattr(wavefilt, name) for name in NAMES})
    for item in items:
        assert item.module.pywt in (pywt, ours)
        item.module.pywt = ours
    others = [item for item in items if not _used(item.function.__code__) & set(NAMES)]
    config.hook.pytest_deselected(items=others)
    items[:] = [item for item in items if item not in others]


def _used(code: types.CodeType) -> set[str]:
    """Names in a function and in those that it defines."""
    inner = (part for part in code.co_consts if isinstance(part, types.CodeType))
    return set(code.co_names).union(*map(_used, inner))
