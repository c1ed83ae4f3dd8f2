"""Kernels that are compiled before their first call, here and now or in a thread beside."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest
from forks.trial import ended

import tirlite as tl
from tirlite.driver.build import Version

n = tl.dim("n")


@tl.kernel
def doubled(x: tl.f64[n], y: tl.out[tl.f64[n]]):
    for i in range(n):
        y[i] = 2 * x[i]


@tl.kernel
def missing(x: tl.f64[n]):
    for i in range(n):
        x[i] = tl.call_extern("f64", "no_function_of_this_name", x[i])


X = np.arange(5.0)


def test_a_kernel_is_compiled_when_it_is_asked_to_be() -> None:
    kernel = tl.compile(doubled)
    assert "link" not in kernel.timing
    assert kernel.compile() is kernel
    before = dict(kernel.timing)
    assert "link" in before
    assert (kernel(X) == 2 * X).all()
    assert dict(kernel.timing) == before
    with pytest.raises(tl.KernelError, match="no_function_of_this_name"):
        missing.compile()


def slowed(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Compilations wait for what is returned."""
    go_on, real = threading.Event(), Version._compile

    def waiting(self: Version) -> object:
        assert go_on.wait(20)
        return real(self)

    monkeypatch.setattr(Version, "_compile", waiting)
    return go_on


def test_a_call_waits_for_the_thread_that_compiles(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel, go_on = tl.compile(doubled), slowed(monkeypatch)
    future = kernel.compile(background=True)
    assert future.running()
    with pytest.raises(TimeoutError):
        future.result(0.01)
    results: list[np.ndarray] = []
    caller = threading.Thread(target=lambda: results.append(kernel(X)))
    caller.start()
    time.sleep(0.05)
    assert not results
    go_on.set()
    caller.join(20)
    assert (results[0] == 2 * X).all()
    assert future.result(20) is kernel
    assert future.done()
    assert [stage for stage, _ in kernel._version.stages].count("link") == 1


def test_what_cannot_be_compiled_is_told_by_the_future_and_by_calls() -> None:
    kernel = tl.compile(missing)
    error = kernel.compile(background=True).exception(20)
    assert isinstance(error, tl.KernelError)
    assert "no_function_of_this_name" in str(error)
    for _ in range(2):
        with pytest.raises(tl.KernelError, match="no_function_of_this_name"):
            kernel(X)


def test_the_child_of_a_fork_compiles_for_itself() -> None:
    kernel = tl.compile(doubled)
    future = kernel.compile(background=True)

    def child() -> None:
        assert (kernel(X) == 2 * X).all()
        assert future.result(20) is kernel

    assert ended(child, 20)
    assert future.result(20) is kernel
