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
    assert ske.computation({"int mul": 16, "add": 12, "compare": 3}) == 316
    assert ske.computation({"float div": 1, "sqrt": 1, "int mod": 1}) == 568
    assert ske.communication({"global": 6}) == 3000
    assert ske.communication({"global coalesced": 8}) == 500
    assert ske.communication({"global": 6}, words=2) == 6000
    sums = {name: (kernel.computation, kernel.communication) for name, kernel in KERNELS.items()}
    assert sums == {"resize": (316, 3000), "rgb2gray": (244, 2000), "smooth": (960, 6000)}


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


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
@pytest.mark.parametrize("options", [{}, {"correction": 1}, {"correction": 2}])
def test_the_shape_that_the_paper_claims(kernel, options):
    assert extremes(times(kernel, **options)) >= set(CLAIMED)


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_the_literal_reading_fails_the_paper(kernel):
    found = extremes(times(kernel, hiding="separate"))
    assert found.isdisjoint(CLAIMED)
    assert Extreme("minimum", 3) in found


def test_corrections():
    first, plain = times(RESIZE, correction=1), times(RESIZE)
    assert 1e6 * first[1] == pytest.approx(157.4, abs=0.05)
    assert 1e6 * first[2] == pytest.approx(39.5, abs=0.05)
    assert {h: first[h] for h in HEIGHTS[2:]} == {h: plain[h] for h in HEIGHTS[2:]}  # 96 threads are P/2
    second = [times(RESIZE, correction=2)[h] for h in range(4, 17)]
    assert 1e6 * second[0] == pytest.approx(892.6, abs=0.05)
    assert max(second) / min(second) == pytest.approx(1.24, abs=0.005)


def test_threads_that_shared_memory_leaves():
    devices = ("GTX280", "GTX480", "GTX670")
    assert [ske.threads_by_shared(d, SHARED_PER_THREAD, "total") for d in devices] == [425, 637, 297]
    assert [ske.threads_by_shared(d, SHARED_PER_THREAD) for d in devices] == [420, 630, 294]
    with pytest.raises(ValueError, match=r"mode='totals' .* did you mean 'total'"):
        ske.threads_by_shared("GTX280", 1156, "totals")


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
def test_a_broken_constraint_is_named_and_gives_no_number(name, device, threads, needs):
    kernel = replace(RESIZE, **needs)
    with pytest.raises(ValueError, match=f"cannot run on {device}: .*{name}: "):
        ske.estimate(kernel, device, threads, 100)
    assert name in {c.name for c in ske.constraints(kernel, device, threads) if not c.holds}


@pytest.mark.parametrize(
    ("action", "words"),
    [
        (lambda: ske.Kernel(-1, 0), "computation=-1"),
        (lambda: ske.Kernel(0, float("nan")), "communication=nan"),
        (lambda: ske.computation({"ad": 2}), "instruction='ad' .* did you mean 'add'"),
        (lambda: ske.estimate(RESIZE, "GTX670", 32, 0), "blocks=0"),
        (lambda: ske.estimate(RESIZE, "GTX670", 32, 1, hiding="prodct"), "hiding='prodct' .* mean 'product'"),
        (lambda: ske.estimate(RESIZE, "GTX670", 32, 1, correction=3), "correction=3"),
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
        assert found.factor == 1
        assert found.Tn == found.Te + found.Tc + found.Ts
    assert found.Te == pytest.approx(316e-9)
    assert found.Tc == pytest.approx(3000e-9)
    assert found.Ts == pytest.approx(12e-9)


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
    assert time(2 * kernel.computation, 0) - time(0, 0) == pytest.approx(2 * (time(kernel.computation, 0) - time(0, 0)))
    plain = ske.estimate(kernel, device, threads, blocks, rw=1, rb=1, **options)
    assert plain.Tn == plain.Te + plain.Tc + plain.Ts
    assert found.factor == pytest.approx(found.Tn / plain.Tn)


def test_more_blocks_can_take_less_where_the_device_is_not_full():
    assert ske.estimate(RESIZE, "GTX670", 256, 7 * 8).Tn < ske.estimate(RESIZE, "GTX670", 256, 7 * 4).Tn


@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_optimise_finds_the_block_of_the_paper(kernel):
    shape, found = ske.optimise(kernel, "GTX670", GRID)
    assert shape == (32, 4)
    assert found == at(kernel, 4)


def test_ties_go_to_more_warps_then_to_the_smaller_block():
    idle = ske.Kernel(0, 0)
    assert ske.optimise(idle, "GTX670", GRID)[1].nw == 64
    assert ske.optimise(idle, "GTX670", GRID)[1].threads == 128


def test_reproduction_estimates_every_kernel_and_height():
    found = reproduce("swapped", 1)
    assert list(found) == list(KERNELS)
    assert found["smooth"][7] == at(KERNELS["smooth"], 7, hiding="swapped", correction=1)
