"""Workers of dask for a run: those of a scheduler that is there, or processes on this machine."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING

from wavefilt.errors import OptionError

if TYPE_CHECKING:
    from distributed import Client

LOCAL = "local"
KEEPING = {"MALLOC_TRIM_THRESHOLD_": 256 << 20, "MALLOC_MMAP_THRESHOLD_": 32 << 20}
"""For processes here, in place of dask's 64 KiB: to get pages from the system for each array anew halves the rate."""
QUIET = {"DASK_LOGGING__DISTRIBUTED": "critical"}
"""For processes here: what goes wrong in a task is raised where its result is asked for."""


@contextmanager
def connected(scheduler: str, timeout: float = 10) -> Iterator[Client]:
    """A `distributed.Client`, which what is computed within uses; closed at the end.

    ``scheduler`` is an address such as ``tcp://host:8786``, or ``local`` or ``local:N``: N processes on this machine,
    one for each CPU if N is not given, of one thread each. Those do not hear Ctrl-C, and end when this is left.

    Raises ConnectionError if no scheduler answers within ``timeout`` seconds, or has no workers by then, RuntimeError
    if a worker lacks this package or has another version of it, or if workers die over and over, ValueError for
    anything but a number of processes, and ImportError without distributed.
    """
    try:
        from distributed import KilledWorker
    except ImportError as error:
        raise ImportError(f'a scheduler needs distributed ({error}): pip install "wavefilt[dask]"') from error
    local = scheduler.split(":")[0] == LOCAL
    with _here(_processes(scheduler)) if local else _there(scheduler, timeout) as client:
        try:
            yield client
        except KilledWorker as error:
            hint = "for want of memory perhaps; fewer workers on a machine have more each"
            raise RuntimeError(f"{error.allowed_failures + 1} workers died at the same block, {hint}") from error


@contextmanager
def _here(processes: int) -> Iterator[Client]:
    from dask import config
    from distributed import Client, LocalCluster

    one_thread, before = {"WAVEFILT_NUM_THREADS": "1"}, KEEPING | QUIET
    with ExitStack() as stack:
        with config.set({f"distributed.nanny.pre-spawn-environ.{k}": v for k, v in before.items()}), _unheard():
            workers = LocalCluster(
                n_workers=processes, threads_per_worker=1, processes=True, dashboard_address=":0", env=one_thread
            )
            stack.enter_context(workers)
        yield stack.enter_context(Client(workers))


@contextmanager
def _there(scheduler: str, timeout: float) -> Iterator[Client]:
    from distributed import Client

    try:
        client = Client(scheduler, timeout=timeout)
    except (OSError, ValueError) as error:  # refused, timed out, or no address
        raise ConnectionError(
            f"no dask scheduler answers at {scheduler} ({error}): start one with `dask scheduler`, or use local:N"
        ) from error
    with client:
        try:
            client.wait_for_workers(1, timeout=timeout)
        except TimeoutError as error:
            raise ConnectionError(
                f"the scheduler at {scheduler} has no workers: start some with `dask worker {scheduler}`"
            ) from error
        check_workers(client)
        yield client


def check_workers(client: Client) -> None:
    """Raise RuntimeError, naming them, if workers lack this package or have another version of it."""
    own = version("wavefilt")
    found = client.run(version, "wavefilt", on_error="return")  # of the standard library: every worker can load it
    others = {address: answer for address, answer in found.items() if answer != own}
    if others:
        names = (("no wavefilt" if isinstance(v, Exception) else f"wavefilt {v}") for v in others.values())
        listed = ", ".join(f"{address} has {name}" for address, name in zip(others, names, strict=True))
        raise RuntimeError(f"workers need wavefilt {own}: {listed}")


@contextmanager
def _unheard() -> Iterator[None]:
    """Processes started in here are deaf to Ctrl-C, which a terminal sends to all; this one hears it on leaving."""
    if sys.platform == "win32":
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # it would unblock the signal when it starts
    before = signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGINT])
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def _processes(scheduler: str) -> int:
    number = scheduler.removeprefix(LOCAL).removeprefix(":")
    if scheduler == LOCAL:
        return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1
    if not number.isdecimal() or int(number) < 1:
        allowed = " is neither local, local:N nor an address such as tcp://host:8786"
        raise OptionError(f"`scheduler={scheduler!r}`{allowed}")
    return int(number)
