"""Test the classic SKE model: reference values, the figures of the paper, constraints, bad input."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wavefilt import ske
from wavefilt.ske.classic import blocks_of
from wavefilt.ske.reproduction import CLAIMED, GRID, HEIGHTS, KERNELS, SHARED_PER_THREAD, Extreme, extremes, reproduce

REFERENCE = json.loads((Path(__file__).with_name("ske_reference.json")).read_text())
RESIZE = KERNELS["resize"]
READINGS = {
    "product": {},
    "separate": {"hiding": "separate"},
    "swapped": {"hiding": "swapped"},
    "product, both coefficients 0.92": {"rw": 0.92, "rb": 0.92},
    "product, correction 2": {"correction": 2},
    "separate, correction 2": {"hiding": "separate", "correction": 2},
}


def at(kernel, h, **options):
    """Estimate blocks of 32 x h threads on the GTX 670."""
    return ske.estimate(kernel, "GTX670", 32 * h, blocks_of(GRID, (32, h)), **options)


def times(kernel, **options):
    return {h: at(kernel, h, **options).Tn for h in HEIGHTS}


def test_sums_of_the_tables():
    assert ske.computation({"float div": 1, "sqrt": 1, "int mod": 1}) == 568
    assert ske.communication({"global": 6}, words=2) == 6000
    assert (RESIZE.computation, RESIZE.communication) == (316, 3000)


@pytest.mark.parametrize("reading", READINGS)
@pytest.mark.parametrize("kernel", KERNELS)
def test_reference_times(kernel, reading):
    found = times(KERNELS[kernel], **READINGS[reading])
    np.testing.assert_allclose(list(found.values()), REFERENCE["seconds"][reading][kernel], rtol=1e-9)


def test_active_blocks_and_warps():
    found = [at(RESIZE, h) for h in HEIGHTS]
    assert list(HEIGHTS) == REFERENCE["h"]
    assert [e.nb for e in found] == REFERENCE["nb"]
    assert [e.nw for e in found] == REFERENCE["nw"]


@pytest.mark.parametrize("kernel", KERNELS)
def test_the_shape_that_the_paper_claims(kernel):
    for correction in (None, 1, 2):
        found = reproduce(correction=correction)[kernel]
        assert extremes({h: e.Tn for h, e in found.items()}) >= set(CLAIMED)
    literal = extremes({h: e.Tn for h, e in reproduce("separate")[kernel].items()})
    assert literal.isdisjoint(CLAIMED)
    assert Extreme("minimum", 3) in literal


def test_corrections():
    first, plain = times(RESIZE, correction=1), times(RESIZE)
    assert 1e6 * first[1] == pytest.approx(157.4, abs=0.05)
    assert 1e6 * first[2] == pytest.approx(39.5, abs=0.05)
    assert {h: first[h] for h in HEIGHTS[2:]} == {h: plain[h] for h in HEIGHTS[2:]}  # 96 threads are P/2


def test_threads_that_shared_memory_leaves():
    devices = ("GTX280", "GTX480", "GTX670")
    assert [ske.threads_by_shared(d, SHARED_PER_THREAD, "total") for d in devices] == [425, 637, 297]
    assert [ske.threads_by_shared(d, SHARED_PER_THREAD) for d in devices] == [420, 630, 294]


@pytest.mark.parametrize(
    ("name", "device", "threads", "needs"),
    [
        ("ThreadMaxInBlock", "GTX670", 1025, {}),
        ("WarpMaxInSM", "GTX280", 800, {}),
        ("RegistersPerThread", "GTX670", 32, {"registers": 64}),
        ("RegistersFilesInSM", "GTX280", 256, {"registers": 65}),
        ("MaxSharedMemory", "GTX670", 64, {"shared": 769}),
        ("MaxConstantMemory", "GTX670", 32, {"constant": 48 * 1024 + 1}),
        ("MaxGlobalMemory", "GTX670", 32, {"storage": 4 * 1024**3 + 1}),
    ],
)
def test_violated_constraints_are_named(name, device, threads, needs):
    with pytest.raises(ValueError, match=f"cannot run on {device}: .*{name}: "):
        ske.estimate(replace(RESIZE, **needs), device, threads, 100)


@pytest.mark.parametrize(
    ("action", "words"),
    [
        (lambda: ske.Kernel(-1, 0), "computation=-1"),
        (lambda: ske.computation({"ad": 2}), "instruction='ad'.* did you mean 'add'"),
        (lambda: ske.estimate(RESIZE, "GTX670", 32, 0), "blocks=0"),
        (lambda: ske.estimate(RESIZE, "GTX670", 32, 1, hiding="prodct"), "hiding='prodct'.* mean 'product'"),
        (lambda: ske.estimate(RESIZE, "GTX670", 32, 1, rw=1.1), r"rw=1\.1"),
        (lambda: ske.estimate(RESIZE, "GTX280", 32, 1), r"GTX280: .*\(L\)"),
        (lambda: ske.optimise(RESIZE, "GTX670", (0, 1)), "width=0"),
    ],
)
def test_bad_input_is_named(action, words):
    with pytest.raises(ValueError, match=words):
        action()


def test_one_block_of_one_warp_hides_nothing():
    kernel = replace(RESIZE, barriers=3)
    for hiding in ("product", "separate", "swapped"):
        found = ske.estimate(kernel, "GTX670", 32, 1, hiding=hiding)
        assert (found.nb, found.nw, found.waves, found.limit) == (1, 1, 1, "grid")
        assert (found.factor, found.Tn) == (1, found.Te + found.Tc + found.Ts)
    assert (found.Te, found.Tc, found.Ts) == pytest.approx((316e-9, 3000e-9, 12e-9))


# valid on the GTX 670 for blocks of any size
KERNEL = st.builds(
    ske.Kernel, st.integers(1, 5000), st.integers(1, 20000), st.integers(0, 20), st.integers(0, 63), st.integers(0, 40)
)
OPTIONS = st.fixed_dictionaries(
    {"hiding": st.sampled_from(["product", "separate", "swapped"]), "correction": st.sampled_from([None, 1, 2])}
)


@given(KERNEL, st.integers(1, 1024), st.integers(1, 5000), OPTIONS)
def test_linear_and_complete(kernel, threads, blocks, options):
    device = ske.DEVICES["GTX670"]
    found = ske.estimate(kernel, device, threads, blocks, **options)
    assert 1 <= found.nb <= found.nw
    assert all(c.holds for c in found.constraints)
    slow = ske.estimate(kernel, replace(device, clock=3e-9), threads, blocks, **options)
    assert slow.Tn == pytest.approx(3 * found.Tn)

    def time(computation, communication):
        return ske.estimate(
            replace(kernel, computation=computation, communication=communication), device, threads, blocks, **options
        ).Tn

    parts = time(kernel.computation, 0) + time(0, kernel.communication) - time(0, 0)
    assert found.Tn == pytest.approx(parts)
    plain = ske.estimate(kernel, device, threads, blocks, rw=1, rb=1, **options)
    assert plain.Tn == plain.Te + plain.Tc + plain.Ts
    assert found.factor == pytest.approx(found.Tn / plain.Tn)


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_optimise_finds_the_block_of_the_paper(kernel):
    shape, found = ske.optimise(kernel, "GTX670", GRID)
    assert shape == (32, 4)
    assert found == at(kernel, 4)


def test_ties_go_to_more_warps_then_to_the_smaller_block():
    found = ske.optimise(ske.Kernel(0, 0), "GTX670", GRID)[1]
    assert (found.nw, found.threads) == (64, 128)
