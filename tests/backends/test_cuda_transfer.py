"""Transfers of host arrays, with a driver that does what is enqueued as late as it may."""

from __future__ import annotations

import gc
import os
import sys
import threading
from types import SimpleNamespace

import numpy as np
import pytest

from tests.support.driver import Driver
from tests.support.simulation import inside

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no addresses of arrays are compared there")


@pytest.fixture
def driver(monkeypatch):
    from wavefilt.backends.cuda.runtime import graph, transfer

    found = Driver()
    for name, module in found.package().items():
        monkeypatch.setitem(sys.modules, name, module)
    for module in (transfer, graph):
        monkeypatch.setattr(module, "SIMULATED", False)
    monkeypatch.setattr(transfer, "cuda", found.cuda())
    monkeypatch.setattr(transfer.interop, "address", lambda device: device.ctypes.data)
    monkeypatch.setattr(transfer.staging, "driver", lambda: transfer.staging.Functions(*found.functions()))
    monkeypatch.setattr(transfer.threads, "begin", found.begun.append)
    monkeypatch.setattr(transfer, "PIECE", 1 << 14)
    monkeypatch.setattr(transfer, "SMALLEST", 1 << 12)
    monkeypatch.setattr(transfer, "SHARE", 1 << 15)
    monkeypatch.setattr(transfer, "TOGETHER", 0)
    monkeypatch.setattr(transfer, "SLOT", 1 << 14)
    monkeypatch.setattr(transfer.Ring, "LEAST", 1 << 12)
    return found


@pytest.fixture(params=["lanes", "together"])
def either(request, monkeypatch, driver):
    """The driver, with each thread sending its own pieces, and with all copying one piece after the other."""
    from wavefilt.backends.cuda.runtime import transfer

    if request.param == "together":
        monkeypatch.setattr(transfer, "TOGETHER", 1 << 30)
    return driver


def _there_and_back(driver, ring, x):
    device, y = driver.array(x.size), np.zeros_like(x)
    ring.upload(x, device, driver.stream())
    x[...] = 0  # the caller's own again
    ring.download(device, y, driver.stream())
    return y


@inside
@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("size", [4099, 1 << 15, 300_001])
def test_bytes_arrive(either, threads, size):
    from wavefilt.backends.cuda.runtime.transfer import Ring

    ring = Ring(threads)
    for seed in range(3):  # with slots that were used before
        x = np.random.default_rng(seed).integers(0, 255, size, np.uint8)
        expected = x.copy()
        np.testing.assert_array_equal(_there_and_back(either, ring, x), expected)
    assert max(either.copies) <= 1 << 14
    assert sum(either.copies) == 6 * size


@inside
def test_nothing_waits_for_the_device_while_slots_are_free(driver, monkeypatch):
    from wavefilt.backends.cuda.runtime import transfer
    from wavefilt.backends.cuda.runtime.transfer import Ring

    x = driver.array(2 << 14)
    monkeypatch.setattr(transfer, "PIECES", 2)
    Ring(1).upload(x, driver.array(x.size), driver.stream())
    driver.finish()
    assert driver.largest_queue == 4  # two copies, and an event each


@inside
def test_pinned_arrays_are_copied_at_once(driver):
    from wavefilt.backends.cuda.runtime.transfer import Ring

    x = driver.pinned_array(1 << 18, np.uint8)
    y, device = driver.pinned_array(1 << 18, np.uint8), driver.array(1 << 18)
    x[:] = np.arange(1 << 18)
    ring, later = Ring(4), np.ones(1 << 18, np.uint8)
    ring.upload(x, device, driver.stream(), touch=later)
    ring.download(device, y, driver.stream())
    np.testing.assert_array_equal(y, x)
    assert driver.copies == [1 << 18] * 2
    assert not later[::4096].any()


@inside
def test_pages_of_a_result_are_touched_during_the_upload(driver):
    from wavefilt.backends.cuda.runtime.transfer import Ring

    x, later = np.arange(1 << 18, dtype=np.uint8), np.ones(5 << 20, np.uint8)
    Ring(3).upload(x, driver.array(x.size), driver.stream(), touch=later)
    assert not later[::4096].any()


@inside
def test_several_callers(either):
    """They share the slots, and each has its own bytes."""
    from wavefilt.backends.cuda.runtime.transfer import Ring

    ring, wrong = Ring(3), []

    def work(seed):
        for i in range(5):
            x = np.random.default_rng([seed, i]).integers(0, 255, 200_000, np.uint8)
            expected = x.copy()
            if not np.array_equal(_there_and_back(either, ring, x), expected):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=[seed]) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@inside
@pytest.mark.parametrize("failing", [0, 5, 25])
def test_an_error_of_the_driver_is_raised_and_the_next_transfer_is_right(either, failing):
    from wavefilt.backends.cuda.runtime.graph import DriverError
    from wavefilt.backends.cuda.runtime.transfer import Ring

    ring, either.fails_at = Ring(3), failing
    x = np.arange(200_000, dtype=np.uint8)
    with pytest.raises(DriverError):
        _there_and_back(either, ring, x.copy())
    either.fails_at = -1
    np.testing.assert_array_equal(_there_and_back(either, ring, x.copy()), x)


@inside
def test_memory_of_results(driver):
    """What is kept is never pinned; what was given back comes again, pinned, and is freed on request."""
    from wavefilt.backends.cuda.runtime.transfer import Results

    results, shape = Results(), (3, 1001)
    kept = [results.lend(shape, "float32") for _ in range(4)]
    assert all(fresh for _, fresh in kept)
    assert not driver.registered
    for array, _ in kept:
        assert (array.shape, array.dtype) == (shape, np.float32)
        assert array.flags.writeable
        assert array.flags.c_contiguous
        array[...] = 1
    addresses = {array.ctypes.data for array, _ in kept}
    assert len(addresses) == 4
    view = kept.pop()[0][1:, ::2]
    del array
    again, fresh = results.lend(shape, "float32")
    assert fresh  # a view is left
    del view
    gc.collect()
    again, fresh = results.lend(shape, "float32")
    assert not fresh
    assert again.ctypes.data in addresses
    assert [*driver.registered] == [again.ctypes.data]
    assert results.lend((5,), "float64")[1]  # of another size
    del again, kept
    gc.collect()
    results.clear()
    assert not driver.registered


@inside
def test_memory_for_the_next_result_is_made_where_results_are_kept(driver):
    from wavefilt.backends.cuda.runtime.transfer import Results

    results, shape = Results(), (3 << 20,)
    kept = [results.lend(shape, "u1")[0]]
    assert not driver.begun  # it may be the only one
    for _ in range(3):
        for _ in range(2):
            kept.append(results.lend(shape, "u1")[0])
            assert len(driver.begun) == 1  # and no second while some are being made
        driver.begun.pop()()
        for left in (1, 0):
            array, fresh = results.lend(shape, "u1")
            assert not fresh
            assert not array[::4096].any()
            kept.append(array)
            assert len(driver.begun) == 1 - left
        driver.begun.pop()()
        kept += [results.lend(shape, "u1")[0] for _ in range(2)]
        driver.begun.clear()
        results._coming.clear()
    assert len({array.ctypes.data for array in kept}) == len(kept)
    assert not driver.registered
    results.clear()
    del kept
    gc.collect()
    for _ in range(3):  # they come again and are dropped
        assert not results.lend(shape, "u1")[1]
    assert not driver.begun
    results.lend((Results.SPARE + 1,), "u1")
    results.lend((Results.SPARE + 1,), "u1")
    large = [results.lend((Results.SPARE + 1,), "u1") for _ in range(3)]
    assert not driver.begun
    assert large


@inside
def test_memory_kept_for_results_is_bounded(driver, monkeypatch):
    from wavefilt.backends.cuda.runtime.transfer import Results

    monkeypatch.setattr(Results, "LIMIT", 3 << 16)
    results = Results()
    for _ in range(2):
        arrays = [results.lend((1 << 16,), "u1")[0] for _ in range(8)]
        del arrays
        gc.collect()
        assert len(results._free) == 3
    assert len(driver.registered) <= 3
    driver.begun.clear()
    del results
    gc.collect()
    assert not driver.registered


@inside
def test_memory_that_cannot_be_pinned_or_freed(driver):
    """The first stays pageable; the second is never used for anything else."""
    from wavefilt.backends.cuda.runtime.transfer import Results, unfreed

    results = Results()
    results.lend((5000,), "u1")
    driver.refusal = 2
    assert not results.lend((5000,), "u1")[1]
    assert not driver.registered
    driver.refusal = 0
    results.lend((6000,), "u1")
    pinned = results.lend((6000,), "u1")[0]
    assert [*driver.registered] == [pinned.ctypes.data]
    driver.refusal, address = 700, pinned.ctypes.data
    del pinned
    results.clear()
    gc.collect()
    begin = unfreed.pop().ctypes.data
    assert begin <= address < begin + 3 * 4096


@inside
def test_results_fill_huge_pages(driver):
    from wavefilt.backends.cuda.runtime.transfer import HUGE, Results

    array, _ = Results().lend((HUGE,), "u1")
    assert array.ctypes.data % HUGE == 0


@inside
def test_a_denoise_through_the_ring_is_that_of_the_small_path(driver, monkeypatch):
    from wavefilt.backends.cuda import backend
    from wavefilt.backends.cuda.runtime.transfer import Results, Ring

    x = np.random.default_rng(3).standard_normal((3, 1 << 12))
    device = SimpleNamespace(x=np.zeros(x.size), y=np.zeros(x.size))
    plan = SimpleNamespace(
        shape=SimpleNamespace(rows=3, samples=1 << 12), dtype="float64", buffer=lambda name, _: vars(device)[name]
    )

    def run(source, target, on):
        driver._enqueue(lambda: np.copyto(target, -source))

    denoiser = SimpleNamespace(run=run, replay=lambda _, work, on: work(on))
    cuda = SimpleNamespace(ring=Ring(3), _results=Results())
    addresses = set()
    for out in (None, np.ones_like(x), None, None, None):
        y = backend.Cuda._through_ring(cuda, plan, denoiser, x, out, driver.stream())
        np.testing.assert_array_equal(y, -x)
        assert out is None or y is out
        addresses.add(y.ctypes.data)
    assert len(addresses) == 3  # two in turn, as one is named while the next is made


@inside
@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_leaves_the_memory_of_the_parent_pinned(driver):
    from wavefilt.backends.cuda.runtime.transfer import Results

    results = Results()
    results.lend((5000,), "u1")
    result = results.lend((5000,), "u1")[0]
    assert driver.registered
    child = os.fork()
    if not child:
        del result
        results.clear()
        os._exit(0 if driver.registered else 3)
    assert os.waitpid(child, 0)[1] == 0
    del result
    results.clear()
    assert not driver.registered
