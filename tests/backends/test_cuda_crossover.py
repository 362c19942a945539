"""When `backend="auto"` takes the GPU: constants as measured, and a choice that loads nothing."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
import pywt

from wavefilt.backends import registry
from wavefilt.backends.crossover import cuda_crossover
from wavefilt.benchmarks.gpu.crossover import crossover
from wavefilt.transforms import DWT

RESULT = Path(__file__).resolve().parents[2] / "benchmarks/results/cuda_crossover.json"


def test_constants_are_those_measured():
    loaded, first = crossover(json.loads(RESULT.read_text()))
    assert loaded == cuda_crossover.LOADED
    assert first == pytest.approx(cuda_crossover.FIRST, rel=0.05)


def test_the_gpu_is_for_those_who_use_it(monkeypatch):
    """Starting it costs more than any array here; after that it is the faster one."""
    monkeypatch.setattr(cuda_crossover, "loaded", set())
    asked = []

    def get(name):
        asked.append(name)
        return SimpleNamespace(name=name, dtypes=("float32", "float64"), transforms=("dwt",))

    def chosen(wavelet, dtype, denoising):
        analysis = DWT.analysis(pywt.Wavelet(wavelet), "symmetric", 5)
        return registry.choose("auto", dtype, (1, 1 << 24), analysis, denoising).name

    monkeypatch.setattr(registry, "get", get)
    chosen("db8", "float32", True)
    cuda_crossover.loaded.add(("float32", 16))
    assert chosen("db8", "float32", True) == "cuda"
    chosen("db4", "float32", True)
    chosen("db8", "float64", True)
    chosen("db8", "float32", False)
    assert asked.count("cuda") == 1
