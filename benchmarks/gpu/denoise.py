"""The GPU backend measured: whole denoises against the targets of the project, kernels against the card's bandwidth.

python -m wavefilt.benchmarks.gpu.denoise --json benchmarks/results/cuda_h200.json
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import wavefilt
from wavefilt.benchmarks.common.environment import environment
from wavefilt.benchmarks.common.measuring import difference, events, signal, walls
from wavefilt.method import Method
from wavefilt.thresholding.rules import MAD_TO_SIGMA

REPEATS = 25
LEVEL = 8
MI = 1 << 20

CASES: list[dict[str, Any]] = [
    {"name": "device, universal, db8", "rows": 1, "samples": 64 * MI, "limit": 0.45},
    {"name": "device, bayes, db8", "rows": 1, "samples": 64 * MI, "limit": 0.70, "rule": "bayes", "sigma": "level"},
    {"name": "device, universal, db4", "rows": 1, "samples": 64 * MI, "limit": 0.40, "wavelet": "db4"},
    {"name": "device, universal, db8", "rows": 4096, "samples": 16384, "limit": 0.70},
    {"name": "device, universal, db8", "rows": 1, "samples": MI, "limit": 0.060},
    {"name": "NumPy to NumPy, pageable", "rows": 1, "samples": 64 * MI, "limit": 16.0, "where": "pageable"},
    {"name": "NumPy to NumPy, pageable, out=", "rows": 1, "samples": 64 * MI, "limit": None, "where": "pageable out"},
    {"name": "NumPy to NumPy, pinned", "rows": 1, "samples": 64 * MI, "limit": 11.5, "where": "pinned"},
    {"name": "NumPy to NumPy, pageable", "rows": 1, "samples": 65536, "limit": 0.25, "where": "pageable"},
]
"""What is timed: milliseconds to stay below, or None where the project set no target."""


def run(repeats: int = REPEATS, scale: int = 1, peers: bool = True) -> dict[str, Any]:
    """Measure every case, with sizes divided by ``scale``; outputs are compared with PyWavelets first."""
    from wavefilt.backends.cuda import Cuda
    from wavefilt.backends.cuda.runtime.target import cuda

    backend = Cuda()
    result: dict[str, Any] = {
        "date": date.today().isoformat(),
        "device": backend.describe(),
        "environment": environment(),
        "repeats": repeats,
    }
    samples = 64 * MI // scale
    x = cuda.to_device(signal(1, samples)[0])
    y = cuda.device_array_like(x)
    copy = events(lambda stream: y.copy_to_device(x, stream=stream), repeats)
    result["copy"] = {"bytes": 2 * x.nbytes, **copy, "TB/s": 2e-9 * x.nbytes / copy["median"]}
    result["kernels"] = _kernels(x, y, repeats, result["copy"]["TB/s"])
    x = y = None  # free for the cases
    result["cases"] = []
    for case in CASES:
        rows = max(case["rows"] // scale, 1) if case["rows"] > 1 else 1
        n = case["samples"] if case["rows"] > 1 else max(case["samples"] // scale, 4096)
        result["cases"].append({**case, "rows": rows, "samples": n, **_case(backend, case, rows, n, repeats)})
        backend.clear()
    result["fastmath"] = _fastmath(samples, repeats)
    if peers:
        result["peers"] = _peers(backend, samples, repeats)
    return result


def table(result: dict[str, Any]) -> str:
    """The measurements as Markdown tables."""
    lines = [
        f"{result['device']}; {result['date']}; medians of {result['repeats']}, quartiles in brackets, in ms.",
        f"Copy in the same run: {result['copy']['TB/s']:.2f} TB/s (read + write).",
        "",
        "| case | traces x samples | GPU time | whole call | target | reached |",
        "|---|---|---|---|---|---|",
    ]
    for c in result["cases"]:
        gpu = _ms(c["device"]) if c.get("device") else ""
        limit = "" if c["limit"] is None else f"{c['limit']:g}"
        reached = "" if c["limit"] is None else "yes" if _figure(c) <= c["limit"] else "no"
        lines.append(f"| {c['name']} | {c['rows']} x {c['samples']} | {gpu} | {_ms(c['call'])} | {limit} | {reached} |")
    lines += [
        "",
        "| kernel | ms | MB moved | TB/s | of copy | registers | shared KB | occupancy |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for k in result["kernels"]:
        lines.append(
            f"| {k['name']} | {k['median']:.3f} | {k['bytes'] / 1e6:.0f} | {k['TB/s']:.2f} | {k['share']:.0%} | "
            f"{k['registers']} | {k['shared'] / 1024:.1f} | {k['occupancy']:.0%} |"
        )
    lines += ["", "| fast-math | GPU time | relative difference from PyWavelets |", "|---|---|---|"]
    lines += [f"| {f['fastmath']} | {_ms(f['time'])} | {f['error']:.1e} |" for f in result["fastmath"]]
    if "peers" in result:
        lines += ["", "| compared with | its ms | ours | ratio | target |", "|---|---|---|---|---|"]
        for p in result["peers"]:
            lines.append(f"| {p['name']} | {p['theirs']:.2f} | {p['ours']:.3f} | {p['ratio']:.0f} | {p['target']} |")
    return "\n".join(lines)


def _figure(case: dict[str, Any]) -> float:
    """What the target is about: GPU time where the data is resident, else the whole call."""
    return float((case.get("device") or case["call"])["median"])


def _method(case: dict[str, Any]) -> Method:
    return Method(
        wavelet=case.get("wavelet", "db8"), level=LEVEL, rule=case.get("rule", "universal"),
        sigma=case.get("sigma", "global"), shrink="soft",
    )  # fmt: skip


def _reference(x: Any, method: Method) -> Any:
    return wavefilt.denoise(
        x, method.wavelet, level=method.level, rule=method.rule, sigma=method.sigma, shrink=method.shrink,
        backend="pywavelets",
    )  # fmt: skip


def _case(backend: Any, case: dict[str, Any], rows: int, samples: int, repeats: int) -> dict[str, Any]:
    from wavefilt.backends.cuda.runtime.target import cuda

    method, host = _method(case), signal(rows, samples)
    where = case.get("where", "device")
    if where == "device":
        x = cuda.to_device(host)
        out = cuda.device_array_like(x)
    elif where == "pinned":
        x, out = cuda.pinned_array(host.shape, host.dtype), cuda.pinned_array(host.shape, host.dtype)
        x[:] = host
    else:
        x, out = host, np.zeros_like(host) if where.endswith("out") else None

    def call() -> Any:
        return backend.denoise(x, method, LEVEL, out=out)[0]

    y = call()
    error = difference(y.copy_to_host() if where == "device" else y, _reference(host, method))
    if not error < 1e-5:
        raise AssertionError(f"{case['name']}: differs from PyWavelets by {error:.1e}")
    del y
    measured: dict[str, Any] = {"error": error, "call": walls(call, repeats)}
    if where == "device":
        measured["device"] = graph_time(backend, method, x, out, repeats)
    return measured


def graph_time(backend: Any, method: Method, x: Any, out: Any, repeats: int) -> dict[str, float]:
    """GPU time of a denoise: its graph alone."""
    from wavefilt.backends.cuda.dwt.denoiser import DwtDenoiser
    from wavefilt.backends.cuda.dwt.plan import Plan, Shape

    rows, samples = x.shape
    plan = Plan(Shape.of(method.bank, method.mode, "float32", LEVEL, rows, samples), backend._options)
    denoiser = DwtDenoiser(plan, method, False)
    source, target = x.reshape(-1), out.reshape(-1)
    times = events(lambda stream: denoiser.run(source, target, True, True, stream), repeats)
    plan.release()
    return times


def _kernels(x: Any, y: Any, repeats: int, copy: float) -> list[dict[str, Any]]:
    """The launches of a denoise with rule universal, one by one."""
    from wavefilt.backends.cuda.dwt.plan import Options, Plan, Shape
    from wavefilt.backends.cuda.runtime.target import cuda
    from wavefilt.backends.cuda.statistics import selection
    from wavefilt.backends.cuda.statistics.details import Selection

    found = []
    options = Options()
    for wavelet in ("db8", "db4"):
        bank = Method(wavelet=wavelet).bank
        shape = Shape.of(bank, "symmetric", "float32", LEVEL, 1, x.size)
        plan, n = Plan(shape, options), shape.lengths
        thresholds = cuda.to_device(np.full(LEVEL, 0.5, np.float32))
        search = Selection([plan], 1, False)
        listed = 4 * selection.listed(n[1])
        draws, settles = (
            selection.kernels("float32", len(shape.lo), False, threads) for threads in (options.select, options.scan)
        )
        launches: list[tuple[str, Callable[[Any], None], int, Any, int]] = [
            ("draw a sample", partial(search.draw, x), 4 * selection.drawn("float32") * len(shape.lo),
             draws["draw"], options.select)
        ]  # fmt: skip
        for i, (first, levels) in enumerate(zip(plan.firsts, plan.fused, strict=True)):
            name, size = f"levels {first + 1}-{first + levels}", 8 * n[first]
            launches += [
                (f"forward and search, {name}" if i == 0 else f"forward, {name}",
                 partial(plan.forward_launch, i, x, True, search=search), size + (listed if i == 0 else 0),
                 plan.forward_kernel(i, i == 0), options.threads),
                (f"shrink and inverse, {name}", partial(plan.inverse_launch, i, y, True, "soft", thresholds), size,
                 plan.inverse_kernel(i, "soft"), options.threads),
            ]  # fmt: skip
        launches.append(("settle the median", search.settle, 2 * listed, settles["settle"], options.scan))

        def searched(stream: Any, search: Any = search, plan: Any = plan) -> None:
            search.draw(x, stream)
            plan.forward_launch(0, x, True, stream, search)

        before: dict[str, Callable[[Any], None]] = {
            "forward and search": partial(search.draw, x),
            "settle the median": searched,
        }
        for name, work, size, kernel, threads in launches:
            times = events(work, repeats, before.get(name.partition(",")[0]))
            rate = 1e-9 * size / times["median"]
            found.append({"name": f"{name}, {wavelet}", **times, "bytes": size, "TB/s": rate, "share": rate / copy,
                          **_resources(kernel, threads)})  # fmt: skip
        plan.release()
    return found


def _resources(kernel: Any, threads: int) -> dict[str, Any]:
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


def _fastmath(samples: int, repeats: int) -> list[dict[str, Any]]:
    """Time and accuracy of the transforms with and without fast-math, for one case."""
    from wavefilt.backends.cuda import Cuda
    from wavefilt.backends.cuda.runtime.target import cuda

    host = signal(1, samples)
    x, method = cuda.to_device(host), _method({})
    out = cuda.device_array_like(x)
    reference = _reference(host, method)
    found = []
    for fastmath in (False, True):
        backend = Cuda(fastmath=fastmath)
        backend.denoise(x, method, LEVEL, out=out)
        error = difference(out.copy_to_host(), reference)
        found.append({"fastmath": fastmath, "time": graph_time(backend, method, x, out, repeats), "error": error})
        backend.clear()
    return found


def _peers(backend: Any, samples: int, repeats: int) -> list[dict[str, Any]]:
    """The same denoise by PyWavelets on one core and by ptwt on the same GPU."""
    from wavefilt.backends.cuda.runtime.target import cuda
    from wavefilt.benchmarks.cpu.denoise import Case, pywavelets_denoise

    found = []
    host = signal(1, samples)
    for wavelet in ("db8", "db4"):
        method = _method({"wavelet": wavelet})
        ours = walls(partial(backend.denoise, host, method, LEVEL), repeats)["median"]
        start = time.perf_counter()
        pywavelets_denoise(host[0], Case("", samples, 0, wavelet=wavelet))
        theirs = 1e3 * (time.perf_counter() - start)
        found.append({"name": f"PyWavelets, one core, {wavelet}", "theirs": theirs, "ours": ours,
                      "ratio": theirs / ours, "target": ">= 200"})  # fmt: skip
        try:
            import ptwt
            import torch
        except ImportError:
            continue
        x = cuda.to_device(host)
        out = cuda.device_array_like(x)
        backend.denoise(x, method, LEVEL, out=out)
        ours = graph_time(backend, method, x, out, repeats)["median"]
        tensor = torch.as_tensor(x, device="cuda")
        theirs = _torch_times(partial(torch_denoise, ptwt, torch, tensor, wavelet), torch, repeats)
        found.append({"name": f"ptwt, same GPU, {wavelet}", "theirs": theirs, "ours": ours,
                      "ratio": theirs / ours, "target": ">= 20"})  # fmt: skip
        backend.clear()
    return found


def torch_denoise(ptwt: Any, torch: Any, x: Any, wavelet: str) -> Any:
    """What a user of ptwt writes; the lower median, which is the median of an odd number."""
    coefficients = ptwt.wavedec(x, wavelet, mode="symmetric", level=LEVEL)
    t = coefficients[-1].abs().median() * MAD_TO_SIGMA * float(np.sqrt(2 * np.log(x.numel())))
    details = [torch.sign(d) * torch.clamp(d.abs() - t, min=0) for d in coefficients[1:]]
    return ptwt.waverec([coefficients[0], *details], wavelet)


def _torch_times(work: Callable[[], Any], torch: Any, repeats: int) -> float:
    for _ in range(3):
        work()
    times = []
    for _ in range(repeats):
        start, stop = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        work()
        stop.record()
        stop.synchronize()
        times.append(start.elapsed_time(stop))
    return float(np.median(times))


def _ms(times: dict[str, float]) -> str:
    return f"{times['median']:.3f} [{times['low']:.3f}, {times['high']:.3f}]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", type=Path, help="write the measurements to this file")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    parser.add_argument("--scale", type=int, default=1, help="divide the sizes by this, for a quick look")
    parser.add_argument("--no-peers", action="store_true", help="leave out PyWavelets and ptwt")
    arguments = parser.parse_args()
    result = run(arguments.repeats, arguments.scale, not arguments.no_peers)
    print(table(result))
    if arguments.json:
        arguments.json.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
