"""Kernels on threads without Python: every range once, the highest result, and what else there is where they fail."""

from __future__ import annotations

import ctypes
import os
import signal
import threading
import time

import numpy as np
import pytest
import pywt

from tests.support.spread import transformed
from wavefilt import threads
from wavefilt.backends.numba_cpu import NumbaCPU, entries, memory, native, peaks, serving, team
from wavefilt.backends.numba_cpu.selection import sign_off
from wavefilt.transforms import DWT, MODWT

needs_team = pytest.mark.skipif(not team.SUPPORTED, reason="this system has no team")


@pytest.fixture(autouse=True)
def four_threads():
    threads.set_num_threads(4)
    yield
    threads.set_num_threads(None)


@pytest.fixture
def without_python(monkeypatch):
    """A team that starts anew, and no other threads than its own."""

    def refused(*_):
        raise AssertionError("spread by Python")

    monkeypatch.setattr(team, "_team", team._Team())
    monkeypatch.setattr(threads, "parallel", refused)


def magnitudes(x):
    """A kernel that returns the largest magnitude, as bits, of a range."""
    return entries.PEAK.of(x.dtype, memory.address(x), sign_off(x.dtype), kept=x)


def as_float(bits):
    return float(np.array(bits, "i8").view("f8"))


@needs_team
@pytest.mark.usefixtures("without_python")
@pytest.mark.parametrize("count", [2, 7, 1001])
@pytest.mark.parametrize("place", [0, 0.5, 1])
def test_the_highest_result_of_all_ranges(rng, count, place):
    x = rng.uniform(-1, 1, count)
    x[round(place * (count - 1))] = -5
    work = magnitudes(x)
    for number in (2, 9, 3):  # fewer of the team than there are, too
        threads.set_num_threads(number)
        assert as_float(team.parallel(work, count)) == 5


def squares(x, found):
    """A kernel that squares each of the float64."""
    addresses, lengths = memory.address(x) + 8 * np.arange(len(x)), np.ones(len(x), np.int64)
    return entries.MEAN_SQUARES.of(x.dtype, addresses, lengths, np.empty(0), found, kept=x)


@needs_team
@pytest.mark.usefixtures("without_python")
def test_a_second_kernel_goes_over_the_same_ranges_until_a_result_is_too_high(rng):
    x = rng.uniform(1, 2, 5000)
    found = np.zeros(5000)

    def run(limit):
        return team.run([team.Job(squares(x, found), 5000, 1, magnitudes(x), 5000, 64)], limit)

    assert as_float(run(1 << 62)) == x.max()
    np.testing.assert_array_equal(found, x**2)
    found[:] = 0
    x[0] = np.inf
    threads.set_num_threads(1)
    assert as_float(run(int(np.array(np.inf).view("i8")))) == np.inf
    assert not found.any()


@needs_team
@pytest.mark.usefixtures("without_python")
@pytest.mark.parametrize("number", [1, 2, 9])
def test_a_job_begins_when_the_one_before_it_is_done(rng, number):
    threads.set_num_threads(number)
    rows = np.empty((6, 3000))
    for _ in range(20):
        rows[0] = rng.uniform(-1, 1, 3000)
        turned = [row[::-1].copy() for row in rows]

        def backwards(i, turned=turned):
            """Element k from the one that the job before wrote last."""
            places = memory.address(turned[i]) + 8 * np.arange(3000)[::-1]
            ones = np.ones(3000, np.int64)
            return entries.MEAN_SQUARES.of(rows.dtype, places, ones, np.empty(0), turned[i + 1], kept=turned)

        team.run([team.Job(backwards(i), 3000) for i in range(5)])
        for i in range(5):
            np.testing.assert_array_equal(turned[i + 1], turned[i][::-1] ** 2)


def called(function):
    """A kernel that calls a function of Python with the range."""
    kernel = native.FUNCTION(lambda block, workspace, begin, end: function(begin, end))
    return native.Work("called", ctypes.cast(kernel, ctypes.c_void_p).value, kernel, bytearray(8), 0, kernel)


@needs_team
@pytest.mark.usefixtures("without_python")
def test_threads_that_wait_for_others_give_their_tickets_back(monkeypatch):
    """So that nobody waits for them, should they lose their processor; the ranges of the next job are all done."""
    monkeypatch.setattr(serving, "PAUSES", 0)
    monkeypatch.setattr(serving, "functions", serving.functions.__wrapped__)
    done, working = [], []

    def work(job):
        def ranges(begin, end):
            done.extend((job, i) for i in range(begin, end))
            give_up = time.monotonic() + 20
            while job == 0 and begin == 0 and time.monotonic() < give_up:
                working.append(int(team._team._state[serving.WORKING]) & 0xFFFFFFFF)
                if working[-1] < max(working):
                    break
            return 0

        return called(ranges)

    for _ in range(5):
        done.clear()
        working.clear()
        team.run([team.Job(work(0), 4), team.Job(work(1), 9)])
        assert working[-1] < max(working)
        assert sorted(done) == [(0, i) for i in range(4)] + [(1, i) for i in range(9)]
        assert done[:4] == [one for one in done if one[0] == 0]


@pytest.mark.parametrize("number", [1, 4])
def test_no_job_begins_after_a_result_that_is_too_high(rng, number):
    threads.set_num_threads(number)
    x, found = rng.uniform(1, 2, 5000), np.zeros(5000)
    jobs = [team.Job(magnitudes(x), 5000), team.Job(squares(x, found), 5000)]
    assert as_float(team.run(jobs, int(np.array(1.5).view("i8")))) > 1.5
    assert not found.any()


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("number", [1, 4])
def test_the_peak_of_what_is_not_finite_has_no_pyramid(rng, value, number):
    threads.set_num_threads(number)
    x, analysis = rng.standard_normal((3, 200_000)), DWT.analysis(pywt.Wavelet("db2"), "symmetric", 4)
    peak, pyramid = NumbaCPU().peak_and_pyramid(x, analysis)
    assert peak == np.abs(x).max()
    expected = NumbaCPU().decompose(x, analysis)
    for ours, theirs in zip(pyramid.coefficients, expected.coefficients, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    x[2, 1234] = value
    peak, pyramid = NumbaCPU().peak_and_pyramid(x, analysis)
    np.testing.assert_equal(peak, abs(value))
    assert pyramid is None


def test_a_share_of_samples_is_transformed_right_after_its_peak_is_found(monkeypatch, rng):
    monkeypatch.setattr(peaks, "AT_ONCE", 1 << 15)
    threads.set_num_threads(1)
    x, order = rng.standard_normal((8, 1 << 16)), []
    call = team.Job.__call__

    def told(job, begin, end):
        order.append((begin, end, job.ranges))
        call(job, begin, end)

    monkeypatch.setattr(team.Job, "__call__", told)
    NumbaCPU().peak_and_pyramid(x, MODWT.analysis(pywt.Wavelet("db2"), "symmetric", 2))
    assert order[0] == (0, 16, 16)  # of 32 Ki samples


def test_the_same_bits_where_python_spreads_the_work(monkeypatch):
    expected = transformed()
    monkeypatch.setattr(team, "SUPPORTED", False)
    monkeypatch.setattr(team, "_team", team._Team())
    np.testing.assert_array_equal(transformed(), expected)


@needs_team
def test_threads_that_cannot_be_started_are_done_without(monkeypatch):
    class Refusing:
        syscall = team.ctypes.CDLL(None).syscall

        @staticmethod
        def pthread_create(*_):
            return 11  # EAGAIN

    expected = transformed()
    monkeypatch.setattr(team, "_team", team._Team())
    monkeypatch.setattr(team.ctypes, "CDLL", lambda _: Refusing)
    np.testing.assert_array_equal(transformed(), expected)
    assert team._team.hire(3) == 0


@needs_team
def test_a_call_while_the_team_is_busy_is_spread_by_python(monkeypatch, rng):
    seen = []
    parallel = threads.parallel
    monkeypatch.setattr(threads, "parallel", lambda *arguments: seen.append(1) or parallel(*arguments))
    x = rng.standard_normal(1000)
    turn = team._Turn()
    assert team._team.take(turn)
    assert as_float(team.parallel(magnitudes(x), 1000)) == np.abs(x).max()
    assert seen
    del turn


@needs_team
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_a_forked_child_has_a_team_of_its_own():
    expected = transformed()
    child = os.fork()
    if child == 0:
        os._exit(0 if np.array_equal(transformed(), expected) and team._team.hire(3) == 3 else 1)
    ended = threading.Timer(60, os.kill, (child, 9))
    ended.start()
    assert os.waitpid(child, 0)[1] == 0
    ended.cancel()


@needs_team
def test_an_interrupt_before_the_team_begins_leaves_it_free(monkeypatch):
    """As where a signal arrives between two instructions: nothing of the call is left to give the team back."""
    own = team._Team()
    monkeypatch.setattr(team, "_team", own)
    turn = team._Turn()
    assert own.take(turn)
    assert not own.take(team._Turn())
    del turn
    assert own.take(team._Turn())


def test_interrupts_of_threads_of_python(monkeypatch):
    """A signal while an executor takes work waits until it has it."""
    submitted = []

    class Executor(threads.ThreadPoolExecutor):
        def submit(self, *arguments):
            signal.raise_signal(signal.SIGINT)
            submitted.append(arguments)
            return super().submit(*arguments)

    monkeypatch.setattr(threads, "ThreadPoolExecutor", Executor)
    monkeypatch.setattr(threads, "_pool", threads._Pool())
    with pytest.raises(KeyboardInterrupt):
        threads.begin(lambda: None)
    assert len(submitted) == 1
