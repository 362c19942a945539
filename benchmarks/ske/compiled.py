"""Registers, shared memory and occupancy of the library's kernels, compiled for every compute capability.

``python -m wavefilt.benchmarks.ske.compiled [--quick] [-o FILE]``, a quarter of an hour. It needs numba-cuda and the
wheel nvidia-cuda-nvcc, but no GPU; kernels are compiled by other processes, which have one that is not there.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from importlib.util import find_spec
from pathlib import Path

from wavefilt.benchmarks.common.command import main
from wavefilt.benchmarks.common.environment import result
from wavefilt.benchmarks.common.tables import Row, Sheet
from wavefilt.errors import BackendUnavailable
from wavefilt.ske.occupancy import occupancy
from wavefilt.threads import available_cpus

GPUS = [(7, 5, ""), (8, 0, ""), (8, 6, ""), (8, 9, ""), (9, 0, "a"), (10, 0, "a"), (12, 0, "a")]
"""Compute capabilities as numba names them to the linker."""
DEFAULT = (
    r"forward-db8-False-256x\d+x4-searching",
    r"inverse-db8-False-soft-256x\d+x4",
    "draw$",
    "narrow$",
    "finish$",
    "choose-linear$",
)
"""Names of the kernels of a denoise by default."""
PROGRAM = """
import sys
sys.path[:] = {path!r}
from wavefilt.benchmarks.ske import compiled
compiled.write(*sys.argv[1:])
"""


def command(folder: Path, dtype: str, which: str, part: int = 0, parts: int = 1) -> list[str]:
    """What to run for `write`, in a process of its own."""
    program = PROGRAM.format(path=sys.path)
    return [sys.executable, "-c", program, str(folder), dtype, which, str(part), str(parts)]


def write(folder: str, dtype: str, which: str, part: str, parts: str) -> None:
    """PTX of kernels after optimization at link time: NAME.GPU.REGISTERS AT MOST.THREADS.ptx.

    ``which`` is "all" for every GPU, "sm_90" for all of that one and those by default for the others, or "default" for
    those alone; of samples of float64, for sm_90. Of them every ``parts``-th, from ``part`` on.
    """
    from wavefilt.backends.cuda.runtime import rehearsal

    rehearsal.begin((9, 0))
    from .kernel_set import every

    for number, one in enumerate(every(dtype)):
        default = any(re.match(each, one.name) for each in DEFAULT)
        if number % int(parts) != int(part) or (which == "default" and not default):
            continue
        library = one.kernel.compile.code(one.arguments)._codelibrary
        everywhere = which == "all" or (dtype == "float32" and default)
        for gpu in GPUS if everywhere else [(9, 0, "a")]:
            library._max_registers = one.kernel.compile.limit(gpu[:2])
            name = f"{one.name}.sm_{gpu[0]}{gpu[1]}{gpu[2]}.{library._max_registers or 0}.{one.threads}.ptx"
            Path(folder, name).write_text(library.get_lto_ptx(gpu).strip("\0"))


def ptxas() -> str | None:
    """That of the wheel: one of the system may not know the compiler's version of PTX."""
    spec = find_spec("nvidia")
    for folder in (spec.submodule_search_locations or []) if spec else []:
        for found in sorted(Path(folder).glob("*/bin/ptxas")):
            return str(found)
    return None


def assembled(path: Path, assembler: str) -> Row:
    """Registers, bytes of shared memory, of the stack and spilled, blocks and warps on an SM, of a file of `write`."""
    name, gpu, limit, threads = path.stem.split(".")
    asked = [assembler, f"-arch={gpu}", "-v", str(path), "-o", str(path.with_suffix(".cubin"))]
    asked += [f"-maxrregcount={limit}"] if limit != "0" else []
    report = subprocess.run(asked, capture_output=True, text=True, check=True).stderr

    def number(what: str) -> int:
        return int(re.search(rf"(\d+) {what}", report)[1])  # type: ignore[index]  # ptxas tells of each

    capability = re.sub(r"sm_(\d+)(\d)a?", r"\1.\2", gpu)
    registers, shared = number("registers"), number("bytes smem") if "bytes smem" in report else 0
    held = occupancy(capability, int(threads), registers, shared)
    return {
        "kernel": name,
        "threads": int(threads),
        "gpu": capability,
        "registers": registers,
        "shared": shared,
        "stack": number("bytes stack frame"),
        "spilled": number("bytes spill stores"),
        "blocks": held.blocks,
        "warps": held.warps,
    }


def every_assembled(paths: Iterable[Path], assembler: str) -> list[Row]:
    """Several at once, in order."""
    with ThreadPoolExecutor(available_cpus()) as pool:
        return list(pool.map(lambda path: assembled(path, assembler), paths))


def run(quick: bool = False) -> Row:
    """Every kernel of float32 for every GPU; of those by default alone if it shall be quick."""
    assembler = ptxas()
    if assembler is None or find_spec("numba_cuda") is None:
        raise BackendUnavailable(
            "kernels are compiled by numba-cuda and ptxas: pip install numba-cuda nvidia-cuda-nvcc"
        )
    with tempfile.TemporaryDirectory() as folder:
        parts, which = min(available_cpus(), 4), "default" if quick else "all"
        environment = os.environ | {"NUMBA_CACHE_DIR": folder}
        commands = [command(Path(folder), "float32", which, part, parts) for part in range(parts)]
        running = [subprocess.Popen(each, env=environment) for each in commands]
        if sum(process.wait() != 0 for process in running):
            raise RuntimeError("a kernel was not compiled: see above")
        rows = every_assembled(sorted(Path(folder).glob("*.ptx")), assembler)
    version = subprocess.run([assembler, "--version"], capture_output=True, text=True, check=True).stdout
    return result("compiled kernels", ptxas=version.split("release ")[-1].split(",")[0], rows=rows)


def report(found: Row) -> Sheet:
    """A line for each kernel, registers and warps by compute capability."""
    gpus = list(dict.fromkeys(".".join(map(str, gpu[:2])) for gpu in GPUS))
    kernels: dict[str, dict[str, Row]] = {}
    for row in found["rows"]:
        kernels.setdefault(row["kernel"], {})[row["gpu"]] = row
    cells = []
    for name, by in kernels.items():
        one = max(by.values(), key=lambda row: int(row["shared"]))
        cells.append([name, str(one["threads"]), f"{one['shared'] / 1024:.1f}"])
        for gpu in gpus:
            row = by.get(gpu, {})
            spilled = f", {row['spilled']} spilled" if row.get("spilled") else ""
            cells[-1].append(f"{row['registers']} / {row['warps']}{spilled}" if row else "")
    title = f"Kernels of float32, assembled by ptxas {found['ptxas']}: registers of a thread / active warps of an SM"
    return Sheet(title, [["kernel"], ["threads"], ["shared", "KiB"], *([gpu] for gpu in gpus)], cells)


if __name__ == "__main__":
    main(run, report)
