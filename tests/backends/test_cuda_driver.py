"""Transfers and recorded launches with stand-ins for the CUDA driver that run enqueued work as late as allowed."""

from __future__ import annotations

import ctypes
import gc
import os
import sys
import threading
from enum import IntEnum
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

from tests.support.driver import Driver
from tests.support.simulation import inside

pytestmark = [inside, pytest.mark.skipif(sys.platform == "win32", reason="no addresses of arrays are compared there")]


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


class Result(IntEnum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_INVALID_VALUE = 1


OK = Result.CUDA_SUCCESS
KERNEL, MEMCPY = 0, 1


class Recorder(ModuleType):
    """Kernels of a capture are lists of parameters; launching a graph keeps what they hold then."""

    CUresult = Result
    CUgraphNodeType = SimpleNamespace(CU_GRAPH_NODE_TYPE_KERNEL=KERNEL)
    CUstreamCaptureMode = SimpleNamespace(CU_STREAM_CAPTURE_MODE_RELAXED=2)

    def __init__(self):
        super().__init__("cuda.bindings.driver")
        self.nodes, self.sizes, self.memory, self.launched, self.destroyed = [], {}, {}, [], []
        self.updates, self.failing = 0, None
        for name in ("cuStreamBeginCapture", "cuStreamDestroy"):
            setattr(self, name, lambda *_: (OK,))
        for name in ("cuGraphExecDestroy", "cuGraphDestroy"):
            setattr(self, name, lambda which: (self.destroyed.append(which), (OK,))[1])
        self.CUfunction = self.CUkernel = int

    def kernel(self, *values, by="func"):
        """Record one; a value is what ctypes has of it."""
        number = len(self.nodes) + 1
        self.sizes[number] = [ctypes.sizeof(value) for value in values]
        pointers = (ctypes.c_void_p * len(values))(*map(ctypes.addressof, values))
        self.memory[number] = values, pointers
        parameters = SimpleNamespace(func=0, kern=0, kernelParams=ctypes.addressof(pointers))
        setattr(parameters, by, number)
        self.nodes.append((KERNEL, parameters))

    def cuStreamEndCapture(self, stream):
        return OK, "graph"

    def cuGraphGetNodes(self, graph, count=0):
        nodes = list(range(len(self.nodes))) + [None] * (count - len(self.nodes))
        return OK, nodes[:count] if count else None, len(self.nodes)

    def cuGraphNodeGetType(self, node):
        return OK, self.nodes[node][0]

    def cuGraphKernelNodeGetParams(self, node):
        return OK, SimpleNamespace(**vars(self.nodes[node][1]))

    def _size(self, number, i):
        sizes = self.sizes[number]
        return (OK, 0, sizes[i]) if i < len(sizes) else (Result.CUDA_ERROR_INVALID_VALUE, 0, 0)

    cuFuncGetParamInfo = cuKernelGetParamInfo = _size

    def values(self, parameters):
        """What a kernel would get."""
        number = parameters.func or parameters.kern
        pointers = ctypes.cast(parameters.kernelParams, ctypes.POINTER(ctypes.c_void_p))
        return [ctypes.string_at(pointers[i], size) for i, size in enumerate(self.sizes[number])]

    def cuGraphInstantiate(self, graph, flags):
        self.executable = {i: self.values(parameters) for i, (kind, parameters) in enumerate(self.nodes) if not kind}
        return OK, "executable"

    def cuGraphExecKernelNodeSetParams(self, executable, node, parameters):
        self.updates += 1
        if self.updates == self.failing:
            return (Result.CUDA_ERROR_INVALID_VALUE,)
        self.executable[node] = self.values(parameters)
        return (OK,)

    def cuGraphLaunch(self, executable, stream):
        numbers = {node: [int.from_bytes(v, "little") for v in values] for node, values in self.executable.items()}
        self.launched.append((numbers, stream))
        return (OK,)


@pytest.fixture
def recorder(monkeypatch):
    from wavefilt.backends.cuda.runtime import graph

    found, package = Recorder(), ModuleType("cuda.bindings")
    package.driver = found
    for name, module in (("cuda", ModuleType("cuda")), ("cuda.bindings", package), ("cuda.bindings.driver", found)):
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(graph, "stream", lambda: 7)
    monkeypatch.setattr(graph, "handle", int)
    monkeypatch.setattr(graph, "repoints", lambda: True)
    return found


def _recorded(recorder, before=0):
    """Three kernels of different parameters, the second without input or output, and a copy.

    The stand-in of the input begins ``before`` bytes behind a multiple of 16.
    """
    from wavefilt.backends.cuda.runtime import graph

    x, y = graph.STAND_INS[0] + before, graph.STAND_INS[1]
    u8, u4, flag = ctypes.c_uint64, ctypes.c_uint32, ctypes.c_bool
    not_a_number = np.array(np.nan).view(np.uint64).item()

    def work(stream):
        assert stream == 7
        recorder.kernel(u8(0), u8(x + 4), u4(5), flag(True), u8(not_a_number))
        recorder.kernel(u8(1 << 40), u8(77), u8((1 << 63) - 1))
        recorder.nodes.append((MEMCPY, None))
        recorder.kernel(flag(False), u8(y), u8(x + 4096), u8(x), by="kern")

    return graph.Graph(work, (x, y))


def _seen(launched):
    (first, second, *_, last), stream = [*launched[0].values()], launched[1]
    return first[1], second, last[1:], stream


@pytest.mark.parametrize("before", [0, 4])
def test_arrays_of_a_graph_are_exchanged(recorder, before):
    """Offsets are kept, nothing else is written; the driver is told of nothing that is as before."""
    graph = _recorded(recorder, before)
    assert graph.exchanged == [3, 1]
    rest = [1 << 40, 77, (1 << 63) - 1]
    for x, y, updates in ((1 << 33, 1 << 34, 2), (5 << 33, 1 << 34, 4), (5 << 33, 1 << 34, 4), (644, 644, 6)):
        graph.launch(3, (x, y))
        assert _seen(recorder.launched[-1]) == (x + 4, rest, [y, x + 4096, x], 3)
        assert recorder.updates == updates
    held = recorder.launched[-1][0][0]
    assert held[2:] == [5, 1, np.array(np.nan).view(np.uint64).item()]
    original = [int.from_bytes(value, "little") for value in recorder.values(recorder.nodes[0][1])]
    assert original[1] >= min(type(graph).__init__.__globals__["STAND_INS"])  # the driver's own memory is not written
    del graph
    assert recorder.destroyed == ["executable", "graph"]


@pytest.mark.parametrize("failing", [1, 2])
def test_an_update_that_fails(recorder, failing):
    """No launch with arrays half exchanged, then or later."""
    from wavefilt.backends.cuda.runtime.graph import DriverError

    graph = _recorded(recorder)
    graph.launch(3, (1 << 33, 1 << 34))
    recorder.failing = recorder.updates + failing
    with pytest.raises(DriverError, match="INVALID_VALUE"):
        graph.launch(3, (1 << 35, 1 << 36))
    assert len(recorder.launched) == 1
    graph.launch(3, (1 << 33, 1 << 34))
    assert _seen(recorder.launched[-1])[2] == [1 << 34, (1 << 33) + 4096, 1 << 33]


def test_a_graph_of_own_buffers(recorder):
    from wavefilt.backends.cuda.runtime.graph import Graph

    graph = Graph(lambda stream: recorder.kernel(ctypes.c_uint64(1 << 40)))
    graph.launch(4)
    graph.launch(5)
    assert recorder.updates == 0
    assert [stream for _, stream in recorder.launched] == [4, 5]
