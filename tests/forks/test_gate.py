"""What a fork waits for, what is free in its child, and that a child compiles whatever another thread was at."""

from __future__ import annotations

import gc
import logging
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import ModuleType

import pytest
from forks.trial import Trial, ended, passes

import tirlite as tl
from tirlite.collection import collection_paused
from tirlite.gate import GATE

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the system has no fork")
PATIENCE = 20


@contextmanager
def beside(work: Callable[[Callable[[], None]], None]) -> Iterator[None]:
    """`work` runs in a thread; what follows begins when it calls what it is given, and it goes on behind that."""
    begun, done = threading.Event(), threading.Event()

    def arrive() -> None:
        begun.set()
        assert done.wait(PATIENCE)

    thread = threading.Thread(target=work, args=(arrive,))
    thread.start()
    assert begun.wait(PATIENCE)
    try:
        yield
    finally:
        done.set()
        thread.join()


def fork() -> bool:
    return ended(lambda: None, PATIENCE)


def test_a_fork_waits_for_the_threads_that_are_inside() -> None:
    order: list[str] = []

    def compile_something() -> None:
        with GATE.inside():
            begun.set()
            time.sleep(0.05)
            order.append("compiled")

    begun = threading.Event()
    thread = threading.Thread(target=compile_something)
    thread.start()
    begun.wait(PATIENCE)
    assert fork()
    order.append("forked")
    thread.join()
    assert order == ["compiled", "forked"]


def test_a_thread_that_is_inside_may_fork_itself() -> None:
    with GATE.inside("a"), GATE.inside("a"):
        assert fork()
        assert ended(lambda: GATE.inside("a").__enter__(), PATIENCE)


def test_two_observers_may_fork_at_a_time() -> None:
    found: list[bool] = []
    both = threading.Barrier(2)

    def observe(name: str) -> None:
        with GATE.inside(name), GATE.outside():
            both.wait(PATIENCE)
            found.append(fork())

    threads = [threading.Thread(target=observe, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(2 * PATIENCE)
    assert found == [True, True]


def claim(name: str) -> None:
    with GATE.inside(name):
        pass


def test_what_a_thread_claimed_that_is_outside_is_free_in_the_child() -> None:
    def observed(arrive: Callable[[], None]) -> None:
        with GATE.inside("kernel"), GATE.outside():
            arrive()

    with beside(observed):
        assert ended(lambda: claim("kernel"), PATIENCE)
    claim("kernel")


def test_who_waits_for_a_claim_holds_no_fork_up() -> None:
    waiting = threading.Event()

    def wait() -> None:
        with GATE.inside():
            waiting.set()
            claim("kernel")

    def observed(arrive: Callable[[], None]) -> None:
        with GATE.inside("kernel"), GATE.outside():
            arrive()

    thread = threading.Thread(target=wait)
    with beside(observed):
        thread.start()
        waiting.wait(PATIENCE)
        assert fork()
    thread.join(PATIENCE)
    assert not thread.is_alive()


def test_who_listens_to_the_log_holds_no_fork_up(caplog: pytest.LogCaptureFixture) -> None:
    """A fork may have the lock of `logging` when it comes to the gate: it must not wait for a thread that logs."""

    class Listener(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            arrivals.pop()()

    def listened(arrive: Callable[[], None]) -> None:
        arrivals.append(arrive)
        tl.compile(tl.parse("@tl.kernel\ndef told(x: tl.f32[1]):\n    x[0] = 1")).compile()

    arrivals: list[Callable[[], None]] = []
    logger, listener = logging.getLogger("tirlite"), Listener()
    with caplog.at_level(logging.DEBUG, "tirlite"):
        logger.addHandler(listener)
        with beside(listened):
            assert fork()
        logger.removeHandler(listener)


def test_the_child_collects_garbage_where_another_thread_had_paused_that() -> None:
    def paused(arrive: Callable[[], None]) -> None:
        with collection_paused():
            arrive()

    def check() -> None:
        assert gc.isenabled()

    with beside(paused):
        assert not gc.isenabled()
        assert ended(check, PATIENCE)
    assert gc.isenabled()


@pytest.mark.parametrize("slow", ["tirlite.slow", "slow_elsewhere"])
def test_the_child_loads_anew_what_another_thread_was_loading(slow: str, monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[Callable[[], None]] = []

    class Finder:
        def find_spec(self, name: str, path: object = None, target: object = None) -> object:
            from importlib.machinery import ModuleSpec

            return ModuleSpec(name, self) if name == slow else None  # type: ignore[arg-type]

        def create_module(self, spec: object) -> None:
            return None

        def exec_module(self, module: ModuleType) -> None:
            if loads:
                loads.pop()()
            module.__dict__["loaded"] = True

    def load(arrive: Callable[[], None]) -> None:
        loads.append(arrive)
        __import__(slow)

    def check() -> None:
        __import__(slow)
        assert sys.modules[slow].loaded

    monkeypatch.setattr(sys, "meta_path", [Finder(), *sys.meta_path])
    with beside(load):
        assert ended(check, PATIENCE)
    del sys.modules[slow]
    vars(tl).pop("slow", None)


def test_llvmlite_has_the_lock_that_a_fork_takes() -> None:
    from llvmlite.binding import ffi

    assert hasattr(ffi.lib._lock, "__enter__")


def test_a_call_of_llvm_in_another_thread_ends_before_a_fork() -> None:
    from llvmlite import binding
    from llvmlite.binding import ffi

    def call() -> None:
        with ffi.lib._lock:
            begun.set()
            time.sleep(0.05)

    begun = threading.Event()
    thread = threading.Thread(target=call)
    thread.start()
    begun.wait(PATIENCE)
    assert ended(lambda: binding.parse_assembly("") and None, PATIENCE)
    thread.join()


@pytest.mark.parametrize("observer", [False, True])
@pytest.mark.parametrize("same", [False, True])
@pytest.mark.parametrize("delay", [0.1, 0.6])
def test_a_child_compiles_whatever_another_thread_was_at(delay: float, *, same: bool, observer: bool) -> None:
    """`PYTHONPATH=tests:. python -m forks.trial` tries 200 moments, in cold processes as well."""
    assert passes(Trial(delay, cold=False, same=same, observer=observer), 0.1)


def test_an_interrupt_in_what_is_outside_leaves_the_gate_open() -> None:
    with GATE.inside(), GATE.inside(), GATE._changed:
        GATE._out(threading.get_ident())  # as where Ctrl-C comes before the depth is put back
    assert threading.get_ident() not in GATE._depths
