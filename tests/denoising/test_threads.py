"""The thread pool: how many threads, every range once, and no harm from forks, nested calls or other pools."""

from __future__ import annotations

import concurrent.futures
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest

from tests.support.checkout import ROOT
from tests.support.spread import transformed
from wavefilt import threads
from wavefilt.backends.numba_cpu import NumbaCPU


@pytest.fixture(autouse=True)
def four_threads(monkeypatch):
    monkeypatch.delenv(threads.ENVIRONMENT, raising=False)
    threads.set_num_threads(4)
    yield
    threads.set_num_threads(None)


def python(code, **env):
    return subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{code}"],
        capture_output=True,
        text=True,
        timeout=100,
        env=os.environ | env,
    )


def test_the_default_is_the_affinity_of_the_process():
    threads.set_num_threads(None)
    assert threads.get_num_threads() == threads.available_cpus()
    if hasattr(os, "sched_setaffinity"):
        code = "import os; os.sched_setaffinity(0, [min(os.sched_getaffinity(0))])\n"
        code += "from wavefilt import threads; print(threads.get_num_threads())"
        assert python(code, WAVEFILT_NUM_THREADS="").stdout.strip() == "1"


def test_the_environment_is_read_and_a_call_outranks_it(monkeypatch):
    monkeypatch.setenv(threads.ENVIRONMENT, " 3 ")
    assert threads.get_num_threads() == 4
    threads.set_num_threads(None)
    assert threads.get_num_threads() == 3


@pytest.mark.parametrize("value", ["0", "-1", "two", "1.5", "²"])
def test_an_environment_that_is_no_number_is_an_error(monkeypatch, value):
    threads.set_num_threads(None)
    monkeypatch.setenv(threads.ENVIRONMENT, value)
    with pytest.raises(ValueError, match=r"WAVEFILT_NUM_THREADS=.* must be a whole number of at least 1"):
        threads.get_num_threads()


@pytest.mark.parametrize("value", [0, -2, 1.5, True, "2"])
def test_a_number_of_threads_below_one_is_an_error(value):
    with pytest.raises(ValueError, match="whole number of at least 1"):
        threads.set_num_threads(value)
    assert threads.get_num_threads() == 4


@pytest.mark.parametrize("count", [0, 1, 5, 24, 1001])
@pytest.mark.parametrize("grain", [0, 1, 7, 5000])
def test_every_index_is_worked_on_once(count, grain):
    seen = np.zeros(count, int)

    def work(begin, end):
        assert begin < end
        seen[begin:end] += 1

    threads.parallel(work, count, grain)
    assert (seen == 1).all()


def test_several_threads_work_and_the_caller_is_one_of_them():
    workers = set()
    barrier = threading.Barrier(4)

    def work(begin, end):
        if threading.get_ident() not in workers:
            workers.add(threading.get_ident())
            barrier.wait(20)  # passed only when four threads are here at once

    threads.parallel(work, 100)
    assert len(workers) == 4
    assert threading.get_ident() in workers


def test_an_error_reaches_the_caller_after_the_others_ended():
    running = []

    def work(begin, end):
        running.append(begin)
        time.sleep(0.01)
        running.remove(begin)
        if begin == 0:
            raise KeyError("here")

    with pytest.raises(KeyError, match="here"):
        threads.parallel(work, 100)
    assert running == []
    threads.parallel(lambda begin, end: None, 100)


def in_caller():
    return threading.current_thread() is threading.main_thread()


@pytest.mark.parametrize("place", ["caller", "helper"])
def test_after_an_error_no_further_range_is_begun(place):
    done, both = [], threading.Barrier(2)

    def work(begin, end):
        done.append(begin)
        if len(done) <= 2:
            both.wait(20)  # caller and helper both work
        if in_caller() == (place == "caller"):
            raise MemoryError
        time.sleep(0.1)

    threads.set_num_threads(2)
    with pytest.raises(MemoryError):
        threads.parallel(work, 100)
    assert len(done) <= 3


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs a signal to order")
def test_an_interrupted_caller_waits_for_its_helpers_however_often():
    begun, ended = threading.Event(), []

    def work(begin, end):
        if in_caller():
            begun.wait(20)
        else:
            begun.set()
            time.sleep(0.5)
            ended.append(begin)

    def interrupt(*_):
        raise KeyboardInterrupt

    def interrupted():
        signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
        try:
            threads.parallel(work, 2)
        finally:
            signal.setitimer(signal.ITIMER_REAL, 0)

    threads.set_num_threads(2)
    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with pytest.raises(KeyboardInterrupt):
            interrupted()
    finally:
        signal.signal(signal.SIGALRM, before)
    assert len(ended) == 1


def test_helpers_that_started_are_waited_for_when_others_cannot(monkeypatch):
    start, started, seen = threading.Thread.start, [], np.zeros(60, int)

    def limited(thread):
        if len(started) == 2:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    def work(begin, end):
        time.sleep(0 if in_caller() else 0.05)
        seen[begin:end] += 1

    threads.set_num_threads(9)
    threads._pool.forget()
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", limited)
        threads.parallel(work, 60)
    assert len(started) == 2
    assert (seen == 1).all()
    threads.parallel(work, 60)
    assert (seen == 2).all()


def test_no_more_threads_than_ranges_however_many_are_asked_for(monkeypatch):
    threads._pool.forget()
    before = threading.active_count()
    threads.set_num_threads(10**12)
    threads.parallel(lambda begin, end: time.sleep(0.01), 5)
    assert threading.active_count() <= before + 4
    threads.set_num_threads(None)
    monkeypatch.setenv(threads.ENVIRONMENT, "9" * 30)
    threads.parallel(lambda begin, end: None, 5)


def test_a_job_that_ended_keeps_nothing_alive():
    array = np.zeros(9)
    job = threads._Job(lambda begin, end, _=array: None, iter([(0, 9)]))
    count = sys.getrefcount(array)
    job.drain()
    job.end()
    assert sys.getrefcount(array) == count - 1
    job.help()
    assert job.errors == []


@pytest.mark.parametrize("samples", [1, 50, 100_000])
def test_a_wrong_environment_is_an_error_for_any_size_and_described(monkeypatch, samples):
    threads.set_num_threads(None)
    monkeypatch.setenv(threads.ENVIRONMENT, "many")
    with pytest.raises(ValueError, match="WAVEFILT_NUM_THREADS='many' must be"):
        NumbaCPU().peak(np.ones((1, samples)))
    assert "WAVEFILT_NUM_THREADS='many' must be" in NumbaCPU().describe()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_fork_waits_for_a_thread_that_compiles():
    result = python(
        "import os, signal, threading, time, warnings\n"
        "warnings.simplefilter('ignore', DeprecationWarning)\n"
        "from wavefilt.backends.numba_cpu.compiler import global_compiler_lock as lock\n"
        "held = threading.Event()\n"
        "def compiling():\n"
        "    with lock: held.set(); time.sleep(0.5)\n"
        "threading.Thread(target=compiling).start(); held.wait()\n"
        "child = os.fork()\n"
        "if child == 0:\n"
        "    signal.alarm(10)\n"
        "    def other():\n"
        "        with lock: pass\n"
        "    t = threading.Thread(target=other); t.start(); t.join(); os._exit(0)\n"
        "with lock: print(os.waitpid(child, 0)[1])\n"
    )
    assert result.stdout.split() == ["0"], result.stderr


def test_work_may_itself_be_spread_over_the_pool():
    total = np.zeros(30, int)

    def outer(begin, end):
        for i in range(begin, end):
            threads.parallel(lambda b, e, i=i: np.add.at(total, i, e - b), 50)

    threads.parallel(outer, 30)
    assert (total == 50).all()


def test_calls_from_several_threads_while_the_number_changes():
    expected = transformed()

    def call(i):
        threads.set_num_threads(1 + i % 4)
        return np.array_equal(transformed(), expected)

    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        assert all(pool.map(call, range(60)))


def test_a_forked_child_has_a_pool_of_its_own_and_a_call_comes_while_the_interpreter_ends():
    result = python(
        "import os, threading, warnings\n"
        "import numpy as np; from tests.support import spread\n"
        "from wavefilt.threads import set_num_threads\n"
        "warnings.simplefilter('ignore', DeprecationWarning)\n"  # Python 3.12 on: fork with threads about
        "set_num_threads(1); expected = spread.transformed()\n"
        "set_num_threads(3); spread.transformed()\n"
        "child = os.fork()\n"
        "same = np.array_equal(spread.transformed(), expected)\n"
        "if child == 0: os._exit(0 if same else 1)\n"
        "print('child', os.waitpid(child, 0)[1], 'parent', same)\n"
        "def late():\n"
        "    threading.main_thread().join()\n"
        "    print('late', np.array_equal(spread.transformed(), expected))\n"
        "threading.Thread(target=late).start()\n"
    )
    assert result.stdout.splitlines() == ["child 0 parent True", "late True"], result.stderr


def test_workers_of_joblib_and_dask():
    pytest.importorskip("joblib")
    pytest.importorskip("dask")
    result = python(
        "import dask, joblib, numpy as np; from tests.support import spread\n"
        "if __name__ == '__main__':\n"
        "    expected = spread.transformed()\n"
        "    found = joblib.Parallel(2)(joblib.delayed(spread.transformed)(spread.X) for _ in range(6))\n"
        "    print('joblib', all(np.array_equal(f, expected) for f in found))\n"
        "    tasks = [dask.delayed(spread.transformed)(spread.X) for _ in range(6)]\n"
        "    found = dask.compute(*tasks, scheduler='processes', num_workers=2)\n"
        "    print('dask', all(np.array_equal(f, expected) for f in found))",
        PYTHONPATH=str(ROOT),
    )
    assert result.stdout.splitlines() == ["joblib True", "dask True"], result.stderr
