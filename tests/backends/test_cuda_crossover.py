"""When `backend="auto"` takes the GPU: constants as measured, and a choice that loads nothing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from wavefilt import backends
from wavefilt.backends.crossover import cuda_crossover
from wavefilt.benchmarks.gpu.crossover import crossover

RESULT = Path(__file__).resolve().parents[2] / "benchmarks/results/cuda_crossover.json"


def test_constants_are_those_measured():
    loaded, first = crossover(json.loads(RESULT.read_text()))
    assert loaded == cuda_crossover.LOADED
    assert first == pytest.approx(cuda_crossover.FIRST, rel=0.05)


def test_the_gpu_is_for_those_who_use_it(monkeypatch):
    """Starting it costs more than any array here; after that it is the faster one."""
    monkeypatch.setattr(cuda_crossover, "loaded", set())
    asked = []
    monkeypatch.setattr(backends, "get", lambda name: asked.append(name) or name)
    backends.choose("auto", "float32", (1, 1 << 24), 16, denoising=True)
    cuda_crossover.loaded.add(("float32", 16))
    assert backends.choose("auto", "float32", (1, 1 << 24), 16, denoising=True) == "cuda"
    backends.choose("auto", "float32", (1, 1 << 24), 8, denoising=True)
    backends.choose("auto", "float64", (1, 1 << 24), 16, denoising=True)
    backends.choose("auto", "float32", (1, 1 << 24), 16)
    assert asked.count("cuda") == 1
