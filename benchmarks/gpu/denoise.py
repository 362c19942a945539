"""The GPU backend measured: whole denoises beside the project's targets, kernels beside the bandwidth of a copy.

`wavefilt bench cuda -o benchmarks/results/cuda_h200.json`
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import wavefilt
from wavefilt.benchmarks.common.environment import result
from wavefilt.benchmarks.common.implementation import agreement
from wavefilt.benchmarks.common.measuring import POOL, events, on_gpu_in_turn, signal, walls
from wavefilt.benchmarks.common.tables import Report, Row, Table
from wavefilt.method import Method
from wavefilt.thresholding.rules import MAD_TO_SIGMA

Work = Callable[[Any], None]
"""Launches on a stream."""
REPEATS = 25
TOLERANCE = 1e-5
LEVEL = 8
MI = 1 << 20
DEFAULTS: Row = {"wavelet": "db8", "rule": "universal", "sigma": "global"}
"""What a case does not name."""

CASES: list[Row] = [
    {"name": "device, universal, db8", "rows": 1, "samples": 64 * MI, "limit": 0.45},
    {"name": "device, bayes, db8", "rows": 1, "samples": 64 * MI, "limit": 0.70, "rule": "bayes", "sigma": "level"},
    {"name": "device, js, db8", "rows": 1, "samples": 64 * MI, "limit": 1.1, "rule": "js", "sigma": "level"},
    {"name": "device, universal, db4", "rows": 1, "samples": 64 * MI, "limit": 0.40, "wavelet": "db4"},
    {"name": "device, universal, db8", "rows": 4096, "samples": 16384, "limit": 0.70},
    {"name": "device, universal, db8", "rows": 1, "samples": MI, "limit": 0.060},
    {"name": "NumPy to NumPy, pageable", "rows": 1, "samples": 64 * MI, "limit": 16.0, "where": "pageable"},
    {"name": "NumPy to NumPy, pageable, out=", "rows": 1, "samples": 64 * MI, "limit": None, "where": "pageable out"},
    {"name": "NumPy to NumPy, pinned", "rows": 1, "samples": 64 * MI, "limit": 11.5, "where": "pinned"},
    {"name": "NumPy to NumPy, pageable", "rows": 1, "samples": 65536, "limit": 0.25, "where": "pageable"},
]
"""What is timed: milliseconds to stay below, or None where the project set no target."""


def run(repeats: int = REPEATS, scale: int = 1, peers: bool = True) -> Row:
    """Measure every case, with sizes divided by ``scale``; outputs are compared with PyWavelets first."""
    from wavefilt.backends.cuda import Cuda
    from wavefilt.backends.cuda.runtime.target import cuda

    backend = Cuda()
    found = result("cuda", device=backend.describe(), repeats=repeats)
    samples = 64 * MI // scale
    x = cuda.to_device(signal(1, samples)[0])
    y = cuda.device_array_like(x)
    copy = events(lambda stream: y.copy_to_device(x, stream=stream), repeats)
    found["copy"] = {"bytes": 2 * x.nbytes, **copy, "TB/s": 2e-9 * x.nbytes / copy["median"]}
    found["kernels"] = _kernels(x, y, repeats, found["copy"]["TB/s"])
    x = y = None  # free for the cases
    found["cases"] = []
    for case in CASES:
        rows = max(case["rows"] // scale, 1) if case["rows"] > 1 else 1
        n = case["samples"] if case["rows"] > 1 else max(case["samples"] // scale, 4096)
        found["cases"].append({**case, "rows": rows, "samples": n, **_case(backend, case, rows, n, repeats)})
        backend.clear()
    found["fastmath"] = _fastmath(samples, repeats)
    if peers:
        found["peers"] = _peers(backend, samples, repeats)
    return found


def _with_limit(case: Row) -> Row:
    """The target is about GPU time where the data is resident, else about the whole call."""
    measured = float((case.get("device") or case["call"])["median"])
    reached = "" if case["limit"] is None else "yes" if measured <= case["limit"] else "no"
    return {**case, "target": "" if case["limit"] is None else f"{case['limit']:g}", "reached": reached}


CASE = Table(
    "Complete denoising runs, ms (quartiles in brackets)",
    {
        "case": "{name}",
        "traces x samples": "{rows} x {samples}",
        "GPU time": lambda case: _ms(case["device"]) if "device" in case else "",
        "whole call": lambda case: _ms(case["call"]),
        "the same array again": lambda case: _ms(case["again"]) if "again" in case else "",
        "target": "{target}",
        "reached": "{reached}",
    },
    lambda found: map(_with_limit, found["cases"]),
)
KERNEL = Table(
    "Kernels of a denoising run",
    {
        "kernel": "{name}",
        "ms": "{median:.3f}",
        "MB moved": lambda kernel: f"{kernel['bytes'] / 1e6:.0f}",
        "TB/s": "{TB/s:.2f}",
        "of copy": "{share:.0%}",
        "registers": "{registers}",
        "shared KB": lambda kernel: f"{kernel['shared'] / 1024:.1f}",
        "occupancy": "{occupancy:.0%}",
    },
    "kernels",
)
FASTMATH = Table(
    "Fast-math, ms (quartiles in brackets)",
    {
        "fast-math": "{fastmath}",
        "GPU time": lambda row: _ms(row["time"]),
        "relative difference from PyWavelets": "{error:.1e}",
    },
    "fastmath",
)
PEERS = Table(
    "Other libraries, ms",
    {
        "compared with": "{name}",
        "its ms": "{theirs:.2f}",
        "ours": "{ours:.3f}",
        "ratio": "{ratio:.0f}",
        "target": "{target}",
        "reached": lambda row: "yes" if row["ratio"] >= float(row["target"].removeprefix(">= ")) else "no",
    },
    "peers",
)


def report(found: Row) -> Report:
    sheets = [CASE(found), KERNEL(found), FASTMATH(found), *([PEERS(found)] if "peers" in found else [])]
    notes = [
        f"{found['device']}; {found['date']}; medians of {found['repeats']}, quartiles in brackets, in ms.",
        f"Copy in the same run: {found['copy']['TB/s']:.2f} TB/s (read + write).",
    ]
    return Report(sheets, notes)


def _case(backend: Any, case: Row, rows: int, samples: int, repeats: int) -> Row:
    from wavefilt.backends.cuda.runtime.target import cuda

    choice: Row = {name: case.get(name, default) for name, default in DEFAULTS.items()}
    host = signal(rows, samples)
    method = Method(level=LEVEL, **choice)
    where = case.get("where", "device")
    if where == "device":
        x = cuda.to_device(host)
        out = cuda.device_array_like(x)
    elif where == "pinned":
        x, out = cuda.pinned_array(host.shape, host.dtype), cuda.pinned_array(host.shape, host.dtype)
        x[:] = host
    else:
        x, out = host, np.zeros_like(host) if where.endswith("out") else None

    call = partial(backend.denoise, x, method, LEVEL, out=out)
    y = call()[0]
    expected = np.asarray(wavefilt.denoise(host, level=LEVEL, backend="pywavelets", **choice))
    error = agreement(y.copy_to_host() if where == "device" else y, expected, TOLERANCE, case["name"])
    del y, expected
    measured: Row = {"error": error, "call": walls(call, repeats)}
    if where == "device":
        measured["again"] = measured["call"]
        inputs, outputs = on_gpu_in_turn(x), on_gpu_in_turn(out)
        measured["call"] = walls(
            lambda: backend.denoise(next(inputs), method, LEVEL, out=next(outputs)), max(repeats, POOL)
        )
        measured["device"] = graph_time(backend, method, x, out, repeats)
    return measured


def graph_time(backend: Any, method: Method, x: Any, out: Any, repeats: int) -> dict[str, float]:
    """GPU time of a denoise: its graph alone."""
    from wavefilt.backends.cuda.denoiser import Denoiser
    from wavefilt.backends.cuda.dwt.plan import DwtPlan
    from wavefilt.backends.cuda.plan import Shape

    rows, samples = x.shape
    plan = DwtPlan(Shape.of(method.analysis(LEVEL), "float32", rows, (samples,)), backend._options)
    denoiser = Denoiser(plan, method, False)
    source, target = x.reshape(-1), out.reshape(-1)
    times = events(lambda stream: denoiser.run(source, target, stream), repeats)
    plan.release()
    return times


def _kernels(x: Any, y: Any, repeats: int, copy: float) -> list[Row]:
    """The launches of a denoise with rule universal, one by one."""
    from wavefilt.backends.cuda.dwt.plan import DwtPlan
    from wavefilt.backends.cuda.options import Options
    from wavefilt.backends.cuda.plan import Beside, Shape, Shrinking
    from wavefilt.backends.cuda.runtime.target import cuda
    from wavefilt.backends.cuda.statistics import lists, sampling, selection
    from wavefilt.backends.cuda.statistics.search_window import MEDIAN

    found = []
    options = Options()
    for wavelet in ("db8", "db4"):
        method = Method(wavelet=wavelet)
        plan = DwtPlan(Shape.of(method.analysis(LEVEL), "float32", 1, (x.size,)), options)
        n = plan.lengths
        soft = Shrinking("soft", cuda.to_device(np.full(LEVEL, 0.5, np.float32)))
        search = selection.Selection([plan.layout], plan.options, 1, False)
        drawn, taps = selection.drawn_ahead("float32", n[1]), method.bank.dec_len
        listed = 4 * selection.listed(n[1], drawn)
        drawing = sampling.draw("float32", taps, drawn, options.select)
        high_pass: Any = plan.high_pass
        finish = lists.finish("float32", options.select, selection.CLOSE, MEDIAN)
        draw = partial(search.draw, x, x.size, high_pass)
        launches: list[tuple[str, Work, int, Any, int, Work | None]] = [
            ("draw a sample", draw, 4 * drawn * taps, drawing, options.select, None)
        ]
        work: Work
        for i, (first, levels) in enumerate(zip(plan.firsts, plan.fused, strict=True)):
            name, size, searching = f"levels {first + 1}-{first + levels}", 8 * n[first], i == 0
            what, before = ("forward and search", draw) if searching else ("forward", None)
            work = partial(plan.forward_launch, i, x, beside=Beside(search=search))
            kernel, moved = plan.forward_kernel(i, searching), size + listed * searching
            launches.append((f"{what}, {name}", work, moved, kernel, options.threads, before))
            work, kernel = partial(plan.inverse_launch, i, y, by=soft), plan.inverse_kernel(i, "soft")
            launches.append((f"shrink and inverse, {name}", work, size, kernel, options.threads, None))

        def searched(stream: Any, draw: Work = draw, search: Any = search, plan: Any = plan) -> None:
            draw(stream)
            plan.forward_launch(0, x, stream, Beside(search=search))

        launches.append(("settle the median", search.settle, listed, finish, options.select, searched))
        for name, launch, size, kernel, threads, earlier in launches:
            times = events(launch, repeats, earlier)
            rate = 1e-9 * size / times["median"]
            measured = {**times, "bytes": size, "TB/s": rate, "share": rate / copy}
            found.append({"name": f"{name}, {wavelet}", **measured, **_resources(kernel, threads)})
        plan.release()
    return found


def _resources(kernel: Any, threads: int) -> Row:
    """Registers and shared memory that the driver reports, and the share of a multiprocessor's threads they allow."""
    from wavefilt.backends.cuda.runtime.target import cuda

    registers = max(kernel.get_regs_per_thread().values())
    shared = max(kernel.get_shared_mem_per_block().values())
    device = cuda.get_current_device()
    most = device.MAX_THREADS_PER_MULTIPROCESSOR
    blocks = min(
        device.MAX_REGISTERS_PER_MULTIPROCESSOR // (-(-registers // 8) * 8 * threads),
        device.MAX_SHARED_MEMORY_PER_MULTIPROCESSOR // (shared + 1024),
        most // threads,
    )
    return {"threads": threads, "registers": registers, "shared": shared, "occupancy": blocks * threads / most}


def _fastmath(samples: int, repeats: int) -> list[Row]:
    """Time and accuracy of the transforms with and without fast-math, for one case."""
    from wavefilt.backends.cuda import Cuda

    found = []
    for fastmath in (False, True):
        backend = Cuda(fastmath=fastmath)
        measured = _case(backend, {"name": f"fastmath={fastmath}"}, 1, samples, repeats)
        found.append({"fastmath": fastmath, "time": measured["device"], "error": measured["error"]})
        backend.clear()
    return found


def _peers(backend: Any, samples: int, repeats: int) -> list[Row]:
    """The same denoise by PyWavelets on one core and by ptwt on the same GPU."""
    from wavefilt.benchmarks.cpu.denoise import Case, pywavelets_denoise

    found: list[Row] = []
    host = signal(1, samples)
    for wavelet in ("db8", "db4"):
        case: Row = {"name": wavelet, "wavelet": wavelet}
        ours = _case(backend, case | {"where": "pageable"}, 1, samples, repeats)["call"]["median"]
        alone = partial(pywavelets_denoise, host[0], Case("", samples, 0, wavelet=wavelet))
        theirs = walls(alone, 1, 0)["median"]
        found.append({"name": f"PyWavelets, one core, {wavelet}", "theirs": theirs, "ours": ours, "target": ">= 200"})
        try:
            import ptwt
            import torch
        except ImportError:
            continue
        ours = _case(backend, case, 1, samples, repeats)["device"]["median"]
        tensor = torch.as_tensor(host, device="cuda")
        theirs = walls(partial(torch_denoise, ptwt, torch, tensor, wavelet), repeats)["median"]
        found.append({"name": f"ptwt, same GPU, {wavelet}", "theirs": theirs, "ours": ours, "target": ">= 20"})
        backend.clear()
    return [row | {"ratio": row["theirs"] / row["ours"]} for row in found]


def torch_denoise(ptwt: Any, torch: Any, x: Any, wavelet: str) -> Any:
    """What a user of ptwt writes, until the result is there; the lower median, which is the median of an odd number."""
    coefficients = ptwt.wavedec(x, wavelet, mode="symmetric", level=LEVEL)
    t = coefficients[-1].abs().median() * MAD_TO_SIGMA * float(np.sqrt(2 * np.log(x.numel())))
    details = [torch.sign(d) * torch.clamp(d.abs() - t, min=0) for d in coefficients[1:]]
    y = ptwt.waverec([coefficients[0], *details], wavelet)
    if x.is_cuda:
        torch.cuda.synchronize()
    return y


def _ms(times: dict[str, float]) -> str:
    return f"{times['median']:.3f} [{times['low']:.3f}, {times['high']:.3f}]"
