"""Functions that a function calls are written, and LLVM begins with them, before that one is lowered."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from importlib import import_module

import numpy as np
import pytest
from small_functions import reverse

import tirlite as tl
from tirlite.codegen import SideBySide, compile_module, lower
from tirlite.codegen.functions import parts
from tirlite.codegen.functions.parts import ModulePart
from tirlite.codegen.lower import Lowered

n = tl.dim("n")


@tl.kernel
def doubled(x: tl.f32[n], y: tl.f32[n]):
    for i in range(n):
        y[n - 1 - i] = 2 * x[i]


@tl.kernel
def opposite(x: tl.f32[n], y: tl.f32[n]):
    for i in range(n):
        y[i] = -x[i]


@tl.kernel
def squared(x: tl.f32[n], y: tl.f32[n]):
    for i in range(n):
        y[n - 1 - i] = x[i] * x[i]


@tl.kernel
def rooted(x: tl.f32[n], y: tl.f32[n]):
    for i in range(n):
        assert x[i] >= 0, "negative"
        y[n - 1 - i] = tl.sqrt(x[i])


@tl.kernel
def several(x: tl.f32[n], y: tl.f32[n]):
    a = tl.alloc(tl.f32[n])
    b = tl.alloc(tl.f32[n])
    c = tl.alloc(tl.f32[n])
    d = tl.alloc(tl.f32[n])
    tl.call(doubled, x, a)
    tl.call(reverse, a, b)
    tl.call(opposite, b, c)
    tl.call(squared, c, d)
    tl.call(rooted, d, y)


@tl.kernel
def roots_alone(x: tl.f32[n], y: tl.f32[n]):
    tl.call(rooted, x, y)


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "_LARGE", 10)
    monkeypatch.setenv("TIRLITE_CACHE", "0")


@pytest.fixture
def begun(monkeypatch: pytest.MonkeyPatch) -> list[tuple[ModulePart, bool]]:
    """The parts that were handed over, in order, and whether the whole module was there."""
    found: list[tuple[ModulePart, bool]] = []
    begin, finished = SideBySide.begin, SideBySide.finished
    whole: list[object] = []

    def noted(self: SideBySide, part: ModulePart) -> None:
        found.append((part, bool(whole)))
        begin(self, part)

    def last(self: SideBySide, all_parts: tuple[ModulePart, ...]) -> object:
        whole.append(all_parts)
        return finished(self, all_parts)

    monkeypatch.setattr(SideBySide, "begin", noted)
    monkeypatch.setattr(SideBySide, "finished", last)
    return found


def called(kernel: tl.Kernel) -> None:
    x = np.arange(1, 6, dtype=np.float32)
    y = np.empty_like(x)
    kernel(x, y)
    np.testing.assert_array_equal(y, 2 * x)
    with pytest.raises(tl.KernelAssertionError, match="negative"):
        tl.compile(roots_alone.ir)(-x, y)


def test_functions_that_are_called_are_handed_to_llvm_before_the_module_is_whole(
    begun: list[tuple[ModulePart, bool]],
) -> None:
    called(tl.compile(several.ir, schedule=None))
    assert sum(not is_whole for _, is_whole in begun) == 5


def test_few_functions_wait_for_the_whole_module(begun: list[tuple[ModulePart, bool]]) -> None:
    called(tl.compile(several.ir, schedule=None))
    begun.clear()
    x = np.ones(3, np.float32)
    tl.compile(roots_alone.ir, schedule=None)(x, x.copy())
    assert all(is_whole for _, is_whole in begun)


def test_a_module_is_the_same_whenever_its_functions_are_written() -> None:
    at_once, asked_before = (tl.compile(several.ir, schedule=None) for _ in range(2))
    at_once.compile()
    assert str(asked_before.plan)
    asked_before.compile()
    assert at_once._version.lowered.parts == asked_before._version.lowered.parts
    objects = [compile_module(each._version.lowered).objects for each in (at_once, asked_before)]
    assert objects[0] == objects[1]


def test_a_form_for_a_result_in_the_place_of_its_operand_serves_others_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for guesses_right in (True, False):
        if not guesses_right:
            # What was written for arguments that lie apart is in no part then.
            monkeypatch.setattr(
                import_module("tirlite.codegen.functions.callees"), "may_go_in_place", lambda *given: ()
            )
        in_place, apart = (
            lower(tl.compile(several.ir, schedule=None, in_place=each).lowered) for each in (True, False)
        )
        for module in (in_place, apart):
            assert len(heads(module)) == len(set(heads(module))) == 5
        assert any("ptr align" in head for head in heads(in_place))
        assert any("ptr align" in head for head in heads(apart)) is guesses_right
        called(tl.compile(several.ir, schedule=None))


@pytest.mark.parametrize("has_loop", [False, True], ids=["calls", "calls and a loop"])
def test_long_rows_of_calls_alone_are_left_as_they_are(*, has_loop: bool) -> None:
    @tl.kernel
    def row(x: tl.f32[n], y: tl.f32[n]):
        for _ in tl.static(range(120)):
            tl.call(doubled, x, y)
        if tl.static(has_loop):
            for i in range(n):
                y[i] += 1

    kernel = tl.compile(row.ir)
    assert ("optnone" in kernel.llvm) is not has_loop
    x, y = np.arange(5, dtype=np.float32), np.zeros(5, np.float32)
    kernel(x, y)
    np.testing.assert_array_equal(y, 2 * x[::-1] + has_loop)


def test_all_parts_of_a_module_with_units_are_compiled_as_hard() -> None:
    # A layer that waits for the plan took 1.2 times as long by LLVM's last level of passes.
    assert all(part.is_unit for part in lower(tl.compile(several.ir, schedule=None).lowered).parts)
    assert not any(part.is_unit for part in lower(tl.compile(roots_alone.ir, schedule=None).lowered).parts)


def heads(module: Lowered) -> list[str]:
    """The first lines of the functions that the parts of a module define for its kernel to call."""
    lines = [line for part in module.parts for line in part.text.splitlines()]
    return [line for line in lines if line.startswith("define") and "_callee" in line]


def test_what_cannot_be_compiled_is_told_as_elsewhere() -> None:
    @tl.kernel
    def absolute(x: tl.f16[8], y: tl.f16[8]):
        for i in range(8):
            y[i] = tl.f16(tl.call_extern("f32", "fabsf", x[i]))

    @tl.kernel
    def with_it(x: tl.f32[n], y: tl.f32[n], u: tl.f16[8], v: tl.f16[8]):
        tl.call(doubled, x, y)
        tl.call(squared, x, y)
        tl.call(reverse, x, y)
        tl.call(absolute, u, v)

    told = []
    for asks in (lambda kernel: kernel.llvm, lambda kernel: kernel.compile()):
        with pytest.raises(tl.KernelError) as failed:
            asks(tl.compile(with_it.ir))
        told.append(str(failed.value))
    assert told[0] == told[1]
    assert "16-bit floating point cannot be compiled" in told[0]


def test_threads_end_and_settings_are_as_before_where_lowering_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = tl.compile(several.ir, schedule=None)
    storage = import_module("tirlite.rewrite.storage")
    running, interval = {*threading.enumerate()}, sys.getswitchinterval()
    rewritten: Callable[..., object] = storage.StorageRewrite.on

    def interrupted(self: object, facts: object) -> object:
        if getattr(facts, "func").name == "several":  # noqa: B009
            raise KeyboardInterrupt
        return rewritten(self, facts)

    monkeypatch.setattr(storage.StorageRewrite, "on", interrupted)
    with pytest.raises(KeyboardInterrupt):
        kernel.compile()
    monkeypatch.undo()
    assert {*threading.enumerate()} <= running
    assert sys.getswitchinterval() == interval
    called(kernel)
