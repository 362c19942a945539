"""Dask workers for a run: the workers of a running scheduler, or processes on this machine."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING

from wavefilt.errors import OptionError
from wavefilt.interrupts import blocked

if TYPE_CHECKING:
    from distributed import Client

ENVIRONMENT = {
    # dask sets 64 KiB; getting pages from the system for each array halves the rate
    "MALLOC_TRIM_THRESHOLD_": 256 << 20,
    "MALLOC_MMAP_THRESHOLD_": 32 << 20,
    # errors in tasks are raised when the result is requested
    "DASK_LOGGING__DISTRIBUTED": "critical",
}
"""Environment of worker processes on this machine."""


@contextmanager
def connected(scheduler: str, timeout: float = 10) -> Iterator[Client]:
    """Use a `distributed.Client` for all computations inside; it is closed at the end.

    ``scheduler`` is an address such as ``tcp://host:8786``, or ``local`` or ``local:N`` for N processes with one thread
    each on this machine, by default one per CPU. These processes ignore Ctrl-C and stop at the end.

    Raises ConnectionError if no scheduler answers within ``timeout`` seconds, or if it has no workers by then,
    RuntimeError if a worker lacks this package or has another version of it, or if workers die repeatedly, ValueError
    for an invalid number of processes, and ImportError without distributed.
    """
    try:
        from distributed import KilledWorker
    except ImportError as error:
        raise ImportError(f'a scheduler needs distributed ({error}): pip install "wavefilt[dask]"') from error
    local = scheduler.split(":")[0] == "local"
    with _local(_processes(scheduler)) if local else _remote(scheduler, timeout) as client:
        try:
            yield client
        except KilledWorker as error:
            hint = "perhaps because memory was short; use fewer workers per machine"
            raise RuntimeError(f"{error.allowed_failures + 1} workers died at the same block, {hint}") from error


@contextmanager
def _local(processes: int) -> Iterator[Client]:
    from dask import config
    from distributed import Client, LocalCluster

    settings = {f"distributed.nanny.pre-spawn-environ.{name}": value for name, value in ENVIRONMENT.items()}
    threads = {"WAVEFILT_NUM_THREADS": "1"}
    with ExitStack() as stack:
        with config.set(settings), blocked([signal.SIGINT]):  # a terminal sends Ctrl-C to all processes
            cluster = LocalCluster(n_workers=processes, threads_per_worker=1, dashboard_address=":0", env=threads)
            stack.enter_context(cluster)
        yield stack.enter_context(Client(cluster))


@contextmanager
def _remote(scheduler: str, timeout: float) -> Iterator[Client]:
    from distributed import Client

    try:
        client = Client(scheduler, timeout=timeout)
    except (OSError, ValueError) as error:  # refused, timed out, or not an address
        hint = "start one with `dask scheduler`, or use local:N"
        raise ConnectionError(f"no dask scheduler answers at {scheduler} ({error}): {hint}") from error
    with client:
        try:
            client.wait_for_workers(1, timeout=timeout)
        except TimeoutError as error:
            hint = f"start some with `dask worker {scheduler}`"
            raise ConnectionError(f"the scheduler at {scheduler} has no workers: {hint}") from error
        check_workers(client)
        yield client


def check_workers(client: Client) -> None:
    """Raise RuntimeError, with their addresses, if workers lack this package or have another version of it."""
    own = version("wavefilt")
    versions = client.run(version, "wavefilt", on_error="return")  # from the standard library, which all workers have
    names = {at: "no wavefilt" if isinstance(v, Exception) else f"wavefilt {v}" for at, v in versions.items()}
    others = [f"{address} has {name}" for address, name in names.items() if name != f"wavefilt {own}"]
    if others:
        raise RuntimeError(f"workers need wavefilt {own}: {', '.join(others)}")


def _processes(scheduler: str) -> int:
    if scheduler == "local":
        return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    number = scheduler.removeprefix("local:")
    if not number.isdecimal() or int(number) < 1:
        raise OptionError(f"`scheduler={scheduler!r}` is neither local, local:N nor an address such as tcp://host:8786")
    return int(number)
