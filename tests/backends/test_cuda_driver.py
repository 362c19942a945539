"""Transfers with a stand-in for the CUDA driver that runs enqueued work as late as allowed."""

from __future__ import annotations

import sys
import threading

import numpy as np
import pytest

from tests.support.driver import Driver
from tests.support.simulation import inside

pytestmark = [inside, pytest.mark.skipif(sys.platform == "win32", reason="no addresses of arrays are compared there")]


@pytest.fixture
def driver(monkeypatch):
    """The driver, with small pieces."""
    from wavefilt.backends.cuda.runtime import graph, transfer

    found = Driver()
    monkeypatch.setattr(transfer, "cuda", found.cuda())
    monkeypatch.setattr(transfer.interop, "address", lambda device: device.ctypes.data)
    monkeypatch.setattr(transfer, "_calls", found.functions)
    for module in (graph, transfer):
        monkeypatch.setattr(module, "SIMULATED", False)
        monkeypatch.setattr(module, "driver", found)
    for name, value in {"PIECE": 1 << 14, "SMALLEST": 1 << 12, "SHARE": 1 << 15}.items():
        monkeypatch.setattr(transfer, name, value)
    monkeypatch.setattr(transfer.Ring, "LEAST", 1 << 12)
    return found


def _there_and_back(driver, ring, x):
    device, y = driver.array(x.size), np.zeros_like(x)
    ring.upload(x, device, driver.stream())
    x[...] = 0  # the caller's own again
    ring.download(device, y, driver.stream())
    return y


@pytest.mark.parametrize("threads", [1, 2, 5])
@pytest.mark.parametrize("size", [4099, 1 << 15, 300_001])
def test_bytes_arrive(driver, threads, size):
    from wavefilt.backends.cuda.runtime.transfer import Ring

    ring = Ring(threads)
    for seed in range(3):  # with slots that were used before
        x = np.random.default_rng(seed).integers(0, 255, size, np.uint8)
        expected = x.copy()
        np.testing.assert_array_equal(_there_and_back(driver, ring, x), expected)
    assert max(driver.copies) <= 1 << 14
    assert sum(driver.copies) == 6 * size


def test_several_callers(driver):
    """They share the slots, and each has its own bytes."""
    from wavefilt.backends.cuda.runtime.transfer import Ring

    ring, wrong = Ring(3), []

    def work(seed):
        for i in range(5):
            x = np.random.default_rng([seed, i]).integers(0, 255, 200_000, np.uint8)
            expected = x.copy()
            if not np.array_equal(_there_and_back(driver, ring, x), expected):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=[seed]) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize("failing", [0, 5, 25])
def test_an_error_of_the_driver_is_raised_and_the_next_transfer_is_right(driver, failing):
    from wavefilt.backends.cuda.runtime.graph import DriverError
    from wavefilt.backends.cuda.runtime.transfer import Ring

    ring, driver.fails_at = Ring(3), failing
    x = np.arange(200_000, dtype=np.uint8)
    with pytest.raises(DriverError):
        _there_and_back(driver, ring, x.copy())
    driver.fails_at = -1
    np.testing.assert_array_equal(_there_and_back(driver, ring, x.copy()), x)


def test_memory_of_results_comes_back():
    """A result's memory is used again once its array is gone; that of arrays that are kept is not."""
    from wavefilt.backends.cuda.runtime.transfer import Results

    results = Results()
    first, fresh = results.lend((2, 1000), np.float32)
    assert fresh
    first[...] = 3
    view, address = first[1], first.ctypes.data
    del first
    other, fresh = results.lend((2, 1000), np.float32)
    assert fresh
    other[...] = 4
    assert np.all(view == 3)
    del view
    again, fresh = results.lend((2000,), np.float32)
    assert not fresh
    assert again.ctypes.data == address
    results.clear()
