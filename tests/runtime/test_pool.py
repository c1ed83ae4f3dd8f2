"""The pool of worker threads: what runs on it gives the same results, whoever else uses it, and in every process."""

from __future__ import annotations

import ctypes
import functools
import multiprocessing
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import tirlite as tl

n, m = tl.dims("n m")
LARGE = 400_000  # enough work for several workers


@tl.kernel(target=tl.Target.host(workers=4))
def squares(x: tl.i64[n], y: tl.out[tl.i64[n]]):
    for i in tl.parallel(n):
        y[i] = x[i] * x[i] + 1


@tl.kernel(target=tl.Target.host(workers=3))
def reversed_rows(x: tl.f32[n, m], y: tl.out[tl.f32[n, m]]):
    for i in tl.parallel(n):
        row = tl.alloc(tl.f32[m])
        for j in range(m):
            row[j] = x[i, m - 1 - j]
        for j in range(m):
            y[i, j] = row[j]


def check(size: int = LARGE) -> None:
    x = np.arange(size, dtype=np.int64)
    np.testing.assert_array_equal(squares(x), x * x + 1)


def test_each_iteration_runs_once() -> None:
    for size in (1, 2, 3, 5, 1000, LARGE, LARGE + 1):
        check(size)


def test_each_worker_has_temporaries_of_its_own() -> None:
    x = np.random.default_rng(0).standard_normal((500, 700)).astype(np.float32)
    for _ in range(20):
        np.testing.assert_array_equal(reversed_rows(x), x[:, ::-1])


def test_several_threads_may_call_kernels_at_once() -> None:
    failures: list[BaseException] = []

    def work() -> None:
        x = np.random.default_rng(0).standard_normal((300, 500)).astype(np.float32)
        try:
            for _ in range(20):
                check(100_000)
                np.testing.assert_array_equal(reversed_rows(x), x[:, ::-1])
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def test_a_task_may_call_a_kernel_that_wants_the_pool_too() -> None:
    seen: list[int] = []

    @ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
    def again(i: int) -> int:
        check()
        seen.append(i)
        return i

    @tl.kernel(target=tl.Target.host(workers=2))
    def outer(x: tl.i64[n], y: tl.out[tl.i64[n]]):
        for i in tl.parallel(n):
            y[i] = x[i] + 1
            if i % 200_000 == 0:
                x_again = tl.call_extern("i64", again, i)
                y[i] = x_again

    x = np.arange(LARGE, dtype=np.int64)
    np.testing.assert_array_equal(outer(x), np.where(x % 200_000 == 0, x, x + 1))
    assert sorted(seen) == [0, 200_000]


def test_a_caller_takes_the_first_iterations_and_workers_the_last_ones() -> None:
    seen: dict[int, list[int]] = {}

    @ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
    def visit(i: int) -> int:
        seen.setdefault(threading.get_ident(), []).append(i)
        time.sleep(0.002)
        return i

    @tl.kernel(target=tl.Target.host(workers=2))
    def visits(x: tl.f64[n], y: tl.out[tl.f64[n]]):
        for i in tl.parallel(n):
            y[i] = tl.exp(x[i])
            if i % 10_000 == 0:
                i_again = tl.call_extern("i64", visit, i)
                y[i] = i_again

    for _ in range(3):
        seen.clear()
        visits(np.zeros(LARGE))
        own = seen.pop(threading.get_ident())
        others = [i for places in seen.values() for i in places]
        assert sorted(own + others) == [*range(0, LARGE, 10_000)]
        assert not others or max(own) < min(others)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
def test_the_child_of_a_fork_starts_workers_of_its_own() -> None:
    check()
    context = multiprocessing.get_context("fork")
    for _ in range(3):
        child = context.Process(target=check)
        child.start()
        child.join(60)
        assert child.exitcode == 0
    check()


def test_threads_that_ask_at_the_same_time_have_one_pool(monkeypatch: pytest.MonkeyPatch) -> None:
    from tirlite.runtime import pool

    made: list[object] = []
    compiled = pool._compiled

    def slow() -> object:
        made.append(compiled())
        time.sleep(0.02)
        return made[-1]

    monkeypatch.setattr(pool, "_compiled", slow)
    monkeypatch.setattr(pool, "_loaded", functools.cache(pool._loaded.__wrapped__))
    addresses: list[int] = []
    threads = [threading.Thread(target=lambda: addresses.append(pool.pool_address())) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(made) == 1
    assert len(set(addresses)) == 1


PROGRAM = """
import numpy as np, threading
import tirlite as tl
n = tl.dim("n")

@tl.kernel(target=tl.Target.host(workers=4))
def squares(x: tl.i64[n], y: tl.out[tl.i64[n]]):
    for i in tl.parallel(n):
        y[i] = x[i] * x[i] + 1

x = np.arange(400_000)
assert (squares(x) == x * x + 1).all()
def forever():
    while True:
        squares(x)
threading.Thread(target=forever, daemon=True).start()
squares(x)
print("done")
"""


def test_a_process_ends_while_workers_wait_and_kernels_run(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    for _ in range(3):
        run = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, timeout=60)
        assert (run.returncode, run.stdout, run.stderr) == (0, "done\n", "")


THREADS = """
import ctypes, os, sys, threading, time
import numpy as np
import tirlite as tl
n = tl.dim("n")
seen = set()

@ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_int64)
def here(i):
    seen.add(threading.get_ident())
    until = time.monotonic() + 0.2  # so that another thread that may take a part does
    while len(seen) < 2 and time.monotonic() < until:
        time.sleep(0.001)
    return i

@tl.kernel(target=tl.Target.host(workers=4))
def visit(x: tl.i64[n], y: tl.out[tl.i64[n]]):
    for i in tl.parallel(n):
        y[i] = x[i]
        if i % 100_000 == 0:
            there = tl.call_extern("i64", here, i)
            y[i] = there

def count():
    seen.clear()
    visit(np.arange(400_000))
    return "alone" if len(seen) == 1 else "together"

print(count())
tl.set_num_threads(1)
print(count())
tl.set_num_threads(2)
print(count())
one = [*os.sched_getaffinity(0)][:1]
os.sched_setaffinity(0, one)
print(count() if os.cpu_count() > 1 else "alone")
"""


@pytest.mark.parametrize(("asked", "first"), [("", "together"), ("1", "alone"), ("3", "together")])
@pytest.mark.skipif(not hasattr(os, "sched_setaffinity"), reason="the system has no affinity")
def test_threads_are_as_many_as_is_said_and_as_there_are_processors_for(asked: str, first: str, tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(THREADS)
    environment = {**os.environ, "TIRLITE_NUM_THREADS": asked}
    run = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, timeout=60, env=environment)
    assert (run.stdout.split(), run.stderr) == ([first, "alone", "together", "alone"], "")


PLACES = """
import os
import time
import numpy as np
import tirlite as tl
n = tl.dim("n")

@tl.kernel(target=tl.Target.host(workers=2))
def squares(x: tl.i64[n], y: tl.out[tl.i64[n]]):
    for i in tl.parallel(n):
        y[i] = x[i] * x[i] + 1

before = set(os.listdir("/proc/self/task"))
squares(np.arange(400_000))
# Threads that compiled end by themselves, the worker stays.
while len(threads := set(os.listdir("/proc/self/task")) - before) > 1:
    time.sleep(0.01)
own = os.sched_getaffinity(0)
places = os.sched_getaffinity(int(threads.pop()))
print(places < own, len(own - places))
"""


@pytest.mark.skipif(not hasattr(os, "sched_setaffinity") or len(os.sched_getaffinity(0)) < 2, reason="one processor")
def test_a_worker_keeps_off_the_processor_of_its_caller(tmp_path: Path) -> None:
    file = tmp_path / "program.py"
    file.write_text(PLACES)
    run = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, timeout=60)
    assert (run.stdout, run.stderr) == ("True 1\n", "")


@pytest.mark.parametrize("asked", ["all", "0", "-1", "1025", "\u0662"])
def test_other_numbers_of_threads_are_refused(asked: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from tirlite.runtime import pool

    monkeypatch.setenv("TIRLITE_NUM_THREADS", asked)
    with pytest.raises(tl.CallValueError, match="TIRLITE_NUM_THREADS cannot be"):
        pool._loaded.__wrapped__()
    with pytest.raises(tl.CallValueError, match="the number of threads cannot be"):
        tl.set_num_threads(int(asked) if asked == "1025" else 0)


AT_ONCE = """
import threading, time
import numpy as np
import tirlite as tl
from tirlite.runtime import quick, workspace

made = []

def noted(name, make):
    def slow(*args):
        made.append(name)
        time.sleep(0.1)
        return make(*args)
    return slow

quick._are_as_known = noted("function", quick._are_as_known)
workspace.QuickBlock = noted("block", workspace.QuickBlock)

@tl.kernel
def twice(x: tl.f32[8], y: tl.out[tl.f32[8]]):
    for i in range(8):
        y[i] = 2 * x[i]

kernels = [tl.compile(twice.ir) for _ in range(4)]

def work(kernel):
    for k in range(50):
        assert kernel(np.full(8, k, np.float32), np.empty(8, np.float32)) is None

threads = [threading.Thread(target=work, args=(kernel,)) for kernel in kernels]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
print(*sorted(made))
"""


def test_what_quick_calls_share_is_made_once(tmp_path: Path) -> None:
    file = tmp_path / "at_once.py"
    file.write_text(AT_ONCE, "utf-8")
    run = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, timeout=60)
    assert (run.returncode, run.stdout, run.stderr) == (0, "block function\n", "")
