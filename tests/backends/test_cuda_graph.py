"""Recorded launches whose arrays are exchanged, and results that are not waited for: without a GPU.

A stand-in for the driver records kernels with their parameters in memory of its own, as the driver does.
"""

from __future__ import annotations

import ctypes
import sys
from enum import IntEnum
from types import ModuleType, SimpleNamespace

import numpy as np
import pytest

import wavefilt
from tests.support.simulation import arrays_on_device, inside
from wavefilt.method import Method


class Result(IntEnum):
    CUDA_SUCCESS = 0
    CUDA_ERROR_INVALID_VALUE = 1


OK = Result.CUDA_SUCCESS
KERNEL, MEMCPY = 0, 1


class Driver(ModuleType):
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
def driver(monkeypatch):
    from wavefilt.backends.cuda.runtime import graph

    found, package = Driver(), ModuleType("cuda.bindings")
    package.driver = found
    for name, module in (("cuda", ModuleType("cuda")), ("cuda.bindings", package), ("cuda.bindings.driver", found)):
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.setattr(graph, "stream", lambda: 7)
    monkeypatch.setattr(graph, "handle", int)
    monkeypatch.setattr(graph, "repoints", lambda: True)
    return found


def _recorded(driver, before=0):
    """Three kernels of different parameters, the second without input or output, and a copy.

    The stand-in of the input begins ``before`` bytes behind a multiple of 16.
    """
    from wavefilt.backends.cuda.runtime import graph

    x, y = graph.STAND_INS[0] + before, graph.STAND_INS[1]
    u8, u4, flag = ctypes.c_uint64, ctypes.c_uint32, ctypes.c_bool
    not_a_number = np.array(np.nan).view(np.uint64).item()

    def work(stream):
        assert stream == 7
        driver.kernel(u8(0), u8(x + 4), u4(5), flag(True), u8(not_a_number))
        driver.kernel(u8(1 << 40), u8(77), u8((1 << 63) - 1))
        driver.nodes.append((MEMCPY, None))
        driver.kernel(flag(False), u8(y), u8(x + 4096), u8(x), by="kern")

    return graph.Graph(work, (x, y))


def _seen(launched):
    (first, second, *_, last), stream = [*launched[0].values()], launched[1]
    return first[1], second, last[1:], stream


@inside
@pytest.mark.parametrize("before", [0, 4])
def test_arrays_of_a_graph_are_exchanged(driver, before):
    """Offsets are kept, nothing else is written; the driver is told of nothing that is as before."""
    graph = _recorded(driver, before)
    assert graph.exchanged == [3, 1]
    rest = [1 << 40, 77, (1 << 63) - 1]
    for x, y, updates in ((1 << 33, 1 << 34, 2), (5 << 33, 1 << 34, 4), (5 << 33, 1 << 34, 4), (644, 644, 6)):
        graph.launch(3, (x, y))
        assert _seen(driver.launched[-1]) == (x + 4, rest, [y, x + 4096, x], 3)
        assert driver.updates == updates
    held = driver.launched[-1][0][0]
    assert held[2:] == [5, 1, np.array(np.nan).view(np.uint64).item()]
    original = [int.from_bytes(value, "little") for value in driver.values(driver.nodes[0][1])]
    assert original[1] >= min(type(graph).__init__.__globals__["STAND_INS"])  # the driver's own memory is not written
    del graph
    assert driver.destroyed == ["executable", "graph"]


@inside
@pytest.mark.parametrize("failing", [1, 2])
def test_an_update_that_fails(driver, failing):
    """No launch with arrays half exchanged, then or later."""
    from wavefilt.backends.cuda.runtime.graph import DriverError

    graph = _recorded(driver)
    graph.launch(3, (1 << 33, 1 << 34))
    driver.failing = driver.updates + failing
    with pytest.raises(DriverError, match="INVALID_VALUE"):
        graph.launch(3, (1 << 35, 1 << 36))
    assert len(driver.launched) == 1
    graph.launch(3, (1 << 33, 1 << 34))
    assert _seen(driver.launched[-1])[2] == [1 << 34, (1 << 33) + 4096, 1 << 33]


@inside
def test_a_graph_of_own_buffers(driver):
    from wavefilt.backends.cuda.runtime.graph import Graph

    graph = Graph(lambda stream: driver.kernel(ctypes.c_uint64(1 << 40)))
    graph.launch(4)
    graph.launch(5)
    assert driver.updates == 0
    assert [stream for _, stream in driver.launched] == [4, 5]


@pytest.fixture
def backend(monkeypatch):
    from wavefilt.backends.cuda import Cuda, Options
    from wavefilt.backends.cuda.statistics import selection

    arrays_on_device(monkeypatch)
    for name, value in {"WHOLE": 100, "CHUNK": 128, "SAMPLE": 256, "STAGE": 32}.items():
        monkeypatch.setattr(selection, name, value)
    return Cuda(options=Options(tile=128, threads=8, select=8, scan=8, row=8))


def _there(x):
    from wavefilt.backends.cuda.runtime.target import cuda

    return cuda.to_device(x)


@inside
@pytest.mark.filterwarnings("ignore:invalid value")
@pytest.mark.parametrize("scope", ["trace", "record"])
def test_samples_that_are_not_finite_are_told_later(backend, scope):
    method = Method("db2", 2, rule="universal", scope=scope)
    good = np.random.default_rng(1).standard_normal((2, 150))
    bad = good.copy()
    bad[1, 80] = np.inf
    expected = backend.denoise(_there(good), method, 2)[0].copy_to_host()
    backend.check()
    for forget in (lambda: None, backend.clear):
        assert backend.denoise(_there(bad), method, 2, wait=False) is not None
        y, _ = backend.denoise(_there(good), method, 2, wait=False)
        assert np.array_equal(y.copy_to_host(), expected)
        y, _ = backend.denoise(_there(good), method, 2)  # whose own samples are finite
        assert np.array_equal(y.copy_to_host(), expected)
        forget()
        with pytest.raises(ValueError, match="wait=False"):
            backend.check()
        backend.check()
    assert backend.denoise(_there(bad), method, 2) is None
    backend.check()


@inside
def test_many_methods_without_waiting(backend):
    """What is kept until it is told is bounded, and nothing of it is lost."""
    from wavefilt.backends.cuda.runtime import memory

    x = np.random.default_rng(1).standard_normal((1, 60))
    for i in range(2 * memory.KEPT):
        backend.denoise(
            _there(np.where(np.arange(60) == 7 + 99 * i, np.nan, x)), Method("haar", 1, rule=0.1 + i), 1, wait=False
        )
    ((plan,),) = backend._plans._idle.values()
    assert len(plan._told) <= memory.KEPT
    with pytest.raises(ValueError, match="wait=False"):
        backend.check()


@inside
def test_plans_that_are_kept_are_bounded(backend, monkeypatch):
    from wavefilt.backends.cuda import plans

    monkeypatch.setattr(plans, "MOST", 3)
    method = Method("haar", 1, rule=0.2)
    for n in (20, 22, 24, 26, 28, 20):
        backend.denoise(_there(np.ones((1, n))), method, 1, wait=False)
        assert backend._plans._count == sum(map(len, backend._plans._idle.values())) <= 3
    backend.clear()
    assert backend._plans._count == backend._plans._kept == 0


@inside
@pytest.mark.parametrize("options", [{"sigma": "global"}, {}], ids=["beside the transform", "by a scan"])
def test_searches_that_do_not_end_are_ended_on_the_device(backend, options):
    """Equal values make the lists overflow: the first result is right, and later ones are by all passes."""
    from wavefilt.denoising.pipeline import run

    x = np.round(np.random.default_rng(3).standard_normal((2, 700))).astype(np.float32)
    method = Method("haar", 2, rule="universal", **options)
    expected = run(x, method, "pywavelets").samples
    for _ in range(2):
        y, _ = backend.denoise(_there(x), method, 2, wait=False)
        np.testing.assert_allclose(y.copy_to_host(), expected, atol=1e-5)
    ((plan,),) = backend._plans._idle.values()
    (denoiser,) = plan._kept.values()
    assert not denoiser.quick
    backend.check()


@inside
@pytest.mark.filterwarnings("ignore:invalid value")
def test_arrays_denoised_at_once(backend):
    """As step by step; None for what takes more steps."""
    x, method = (
        np.random.default_rng(1).standard_normal((2, 3, 60)).astype(np.float32),
        Method("haar", 2, rule="universal"),
    )
    expected = backend.denoise(_there(x.reshape(6, 60)), method, 2)[0].copy_to_host().reshape(x.shape)
    for wait in (True, False):
        assert np.array_equal(backend.at_once(_there(x), method, (-1,), wait).copy_to_host(), expected)
        assert np.array_equal(
            backend.at_once(_there(x[0, 0]), method, (np.int64(0),), wait).copy_to_host(), expected[0, 0]
        )
    panels = backend.at_once(_there(x), Method("haar", 1, rule=0.1, dimensions=2), (-2, -1), True)
    wanted = backend.denoise(_there(x), Method("haar", 1, rule=0.1, dimensions=2), 1)[0]
    assert np.array_equal(panels.copy_to_host(), wanted.copy_to_host())
    more = (
        {"spins": 2},
        {"blend": 0.5},
        {"sigma": ("window", 0, 30)},
        {"wavelet": wavefilt.wavelets.filters.as_wavelet("haar")},
    )
    for options in more:
        assert backend.at_once(_there(x), Method(**{"wavelet": "haar", "level": 2, **options}), (-1,), True) is None
    assert backend.at_once(_there(np.ascontiguousarray(x.swapaxes(1, 2))), method, (1,), True) is None
    assert backend.at_once(_there(np.where(x == x[0, 0, 0], np.nan, x)), method, (-1,), True) is None
    with pytest.raises(TypeError):
        backend.at_once(_there(x), method, (-1.0,), True)
    with pytest.raises(ValueError, match="out of range"):
        backend.at_once(_there(x), method, (3,), True)
