"""Large modules are cut into parts, which LLVM compiles side by side and the linker joins."""

from __future__ import annotations

import re
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from importlib import import_module

import numpy as np
import pytest
from llvmlite import binding as llvm

import tirlite as tl
from tirlite.codegen import Effort, SideBySide, compile_module, compile_text, lower
from tirlite.codegen.functions import parts
from tirlite.codegen.functions.parts import ModulePart
from tirlite.codegen.llvm import side_by_side
from tirlite.codegen.llvm.machine import ADDRESSES, OPTIONS, compiled, new_machine, optimised
from tirlite.codegen.llvm.text import Extent
from tirlite.codegen.lower import Lowered
from tirlite.record import replace
from tirlite.runtime.artifact.build import code_of, linked
from tirlite.runtime.artifact.load import loaded
from tirlite.runtime.artifact.object_files import ObjectFiles, jit_loaded
from tirlite.target.processor import HOST

n = tl.dim("n")


@tl.kernel
def square(x: tl.f32[n], y: tl.f32[n]):
    for i in range(n):
        y[i] = x[i] * x[i]


@tl.kernel
def roots(x: tl.f32[n], y: tl.f32[n]):
    for i in range(n):
        assert x[i] >= 0, "negative"
        y[i] = tl.sqrt(x[i])


@tl.kernel
def norms(x: tl.f32[n], y: tl.f32[n]):
    squares = tl.alloc(tl.f32[n])
    tl.call(square, x, squares)
    tl.call(roots, squares, y)


@tl.kernel
def both(x: tl.f32[n], y: tl.f32[n], z: tl.f32[n]):
    tl.call(norms, x, y)
    tl.call(roots, x, z)


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(parts, "_PART", 10)
    monkeypatch.setattr(parts, "_LARGE", 14)
    monkeypatch.setenv("TIRLITE_CACHE", "0")


def lowered(kernel: tl.Kernel) -> Lowered:
    return lower(tl.compile(kernel.ir, schedule=None).lowered)


def texts(module: Lowered) -> list[str]:
    return [each.text for each in module.parts]


def defined(text: str) -> set[str]:
    return set(re.findall(r"^define .*@(tirlite_\w+)\(", text, re.MULTILINE))


def test_a_module_that_is_not_large_is_one_part() -> None:
    module = lowered(both)
    assert texts(module) == [module.text]


@pytest.mark.usefixtures("small_parts")
def test_each_large_callee_is_in_one_part_and_declared_in_those_that_call_it() -> None:
    module = lowered(both)
    kernel, *others = texts(module)
    assert len(others) > 1
    assert "tirlite_both" in defined(kernel)
    seen: set[str] = set()
    for part in texts(module):
        assert not seen & defined(part)
        seen |= defined(part)
    assert seen == defined(module.text)
    called = re.findall(r"call fastcc i64 @(tirlite_\w+)\(", kernel)
    assert called
    for name in set(called) - defined(kernel):
        assert f"declare hidden fastcc i64 @{name}(" in kernel


@pytest.mark.usefixtures("small_parts")
def test_a_part_goes_element_by_element_if_its_own_functions_do() -> None:
    by_elements = {name: each.extent.by_elements for each in lowered(both).parts for name in defined(each.text)}
    roots = "tirlite_both_callee2"  # whose loop has an assert
    assert [name for name, each in by_elements.items() if each] == [roots]


@tl.kernel
def sums(x: tl.f32[n, n], y: tl.f32[n], z: tl.f32[n]):
    for i in tl.parallel(n):
        y[i] = 0
        for j in range(n):
            y[i] += x[i, j]
    for i in tl.parallel(n):
        z[i] = 0
        for j in range(n):
            z[i] += x[j, i]


@pytest.mark.usefixtures("small_parts")
def test_the_bodies_of_parallel_loops_are_parts_which_the_kernel_hands_to_the_pool() -> None:
    module = lower(tl.compile(sums.ir, schedule=None).lowered, workers=2)
    kernel, *bodies = texts(module)
    assert [defined(each) for each in bodies] == [{"tirlite_sums_parallel1"}, {"tirlite_sums_parallel2"}]
    assert defined(kernel) == {"tirlite_sums", "tirlite_sums_task1", "tirlite_sums_task2"}
    assert "declare hidden i64 @tirlite_sums_parallel1(" in kernel


@pytest.mark.usefixtures("small_parts")
def test_kernels_in_parts_compute_what_they_are_to() -> None:
    x = np.arange(9, dtype=np.float32).reshape(3, 3)
    y, z = np.empty(3, np.float32), np.empty(3, np.float32)
    kernel = tl.compile(sums.ir, schedule=None)
    kernel(x, y, z)
    assert len(kernel._version.lowered.parts) == 3
    np.testing.assert_array_equal(y, x.sum(axis=1))
    np.testing.assert_array_equal(z, x.sum(axis=0))


@pytest.mark.usefixtures("small_parts")
def test_parts_together_compute_what_the_whole_does_faults_included() -> None:
    kernel = tl.compile(both.ir, schedule=None)
    x = np.abs(np.random.default_rng(0).standard_normal(100).astype(np.float32))
    y, z = np.zeros_like(x), np.zeros_like(x)
    kernel(x, y, z)
    assert len(kernel._version.lowered.parts) > 2
    np.testing.assert_array_equal(y, np.sqrt(x * x))
    np.testing.assert_array_equal(z, np.sqrt(x))
    with pytest.raises(tl.KernelAssertionError, match="negative"):
        kernel(-x, y, z)


@pytest.mark.usefixtures("small_parts")
def test_objects_are_the_same_whatever_the_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    module = lowered(both)
    many = compile_module(module).objects
    monkeypatch.setattr("tirlite.codegen.llvm.side_by_side.processors", lambda: 1)
    assert compile_module(module).objects == many


CALLER = """
declare hidden fastcc i64 @inner(i64)
define i64 @outer(i64 %x) {
  %y = call fastcc i64 @inner(i64 %x)
  ret i64 %y
}
"""
CALLED = """
@count = internal global i64 40
declare double @hypot(double, double)
define hidden fastcc i64 @inner(i64 %x) {
  %old = load i64, ptr @count
  %new = add i64 %old, %x
  store i64 %new, ptr @count
  ret i64 %new
}
define i64 @longest() {
  %z = call double @hypot(double 3.0, double 4.0)
  %result = fptosi double %z to i64
  ret i64 %result
}
"""
OBJECTS = [compile_text(text, Effort.NONE) for text in (CALLER, CALLED)]


def test_the_linker_joins_objects_that_call_one_another() -> None:
    library = loaded(linked(OBJECTS), {})
    assert [library.function("outer", "q")(1) for _ in range(2)] == [41, 42]
    assert library.function("longest", "")() == 5


def test_objects_that_no_image_can_be_made_of_are_joined_by_llvm() -> None:
    assert not isinstance(code_of(OBJECTS, ["outer"]), ObjectFiles)
    library = jit_loaded(ObjectFiles(tuple(OBJECTS), ("outer",), ("hypot",)), {})
    assert [library.function("outer", "q")(2) for _ in range(2)] == [42, 44]


def test_what_is_compiled_beside_a_network_is_what_it_is_alone() -> None:
    """LLVM works over addresses of windows, and not over those of other loops by vectors; that is for all threads."""
    text = lower(square.ir).text
    alone = [code(text, windows) for windows in (0, 1)]
    assert alone[0] != alone[1]
    kinds = [0, 1] * 8
    with ThreadPoolExecutor(4) as threads:
        beside = list(threads.map(lambda windows: code(text, windows), kinds))
    assert beside == [alone[windows] for windows in kinds]


def test_all_of_a_network_is_shown_and_exported_as_its_parts_are_compiled() -> None:
    alone, windows = (
        replace(lower(roots.ir), text=STEPS, parts=(ModulePart(STEPS, Extent(over_windows=each)),)) for each in (0, 1)
    )
    assert optimised(alone).assembly != optimised(windows).assembly


def code(text: str, windows: int) -> bytes:
    part = ModulePart(text, Extent(over_windows=windows))
    return compiled(part, new_machine(2, HOST), Effort.FULL, locked=False)[0]


STEPS = """
define void @f(ptr %p, i64 %n, i64 %step) {
entry:
  br label %loop
loop:
  %i = phi i64 [0, %entry], [%next, %loop]
  %at = mul i64 %i, %step
  %q = getelementptr float, ptr %p, i64 %at
  store float 1.0, ptr %q
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  ret void
}
"""


def test_what_others_compile_is_as_it_was_after_a_network() -> None:
    """LLVM's work on addresses is an option of the process: numba compiles there, too."""

    def assembly() -> str:
        return str(new_machine(2, HOST).emit_assembly(llvm.parse_assembly(STEPS)))

    before = assembly()
    with ADDRESSES.worked_over(are=False), ADDRESSES.worked_over(are=False):
        assert assembly() != before
    assert assembly() == before


def test_modules_are_loaded_while_parts_are_compiled_and_none_that_is_missing_stops_that() -> None:
    before = {*threading.enumerate()}
    with SideBySide() as beside:
        beside.do_last(*(partial(import_module, each) for each in ("tirlite.no_such_module", "json")))
        made = beside.finished(lower(square.ir).parts)
    assert {*threading.enumerate()} <= before
    assert made.objects == compile_module(lower(square.ir)).objects


def test_what_is_done_last_is_done_beside_one_part_or_several_and_may_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tirlite.codegen.llvm.side_by_side.processors", lambda: 2)
    alone = [lower(kernel.ir).parts for kernel in (square, roots)]
    for given in (alone[0], (*alone[0], *alone[1])):
        done = threading.Event()

        def task(done: threading.Event = done) -> None:
            done.set()
            raise ValueError("told to who needs it")

        with SideBySide() as beside:
            beside.do_last(task)
            made = beside.finished(given)
        assert done.wait(10)
        assert len(made.objects) == len(given)


def test_a_module_is_closed_where_its_compilation_is_interrupted(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []

    def interrupted(module: object, *_: object, **__: object) -> None:
        seen.append(module)
        raise KeyboardInterrupt

    monkeypatch.setattr("tirlite.codegen.llvm.machine._optimise", interrupted)

    @tl.kernel
    def doubled(x: tl.f32[8]):
        for i in range(8):
            x[i] = 2 * x[i]

    with pytest.raises(KeyboardInterrupt):
        doubled(np.ones(8, np.float32))
    assert [module.closed for module in seen] == [True]


def test_an_interrupt_goes_through_that_comes_as_a_thread_is_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(thread: threading.Thread) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("tirlite.codegen.llvm.side_by_side.processors", lambda: 2)
    monkeypatch.setattr("tirlite.codegen.llvm.side_by_side.sleep", lambda seconds: None)
    monkeypatch.setattr(threading.Thread, "start", interrupted)
    with pytest.raises(KeyboardInterrupt), SideBySide(HOST) as beside:
        beside.begin(ModulePart("", Extent()))


def test_ctrl_c_in_the_wait_for_threads_leaves_none_in_llvm(monkeypatch: pytest.MonkeyPatch) -> None:
    join, interrupted, alive = side_by_side._join, [], []

    def interrupted_once(thread: threading.Thread) -> None:
        if not interrupted:
            interrupted.append(thread)
            raise KeyboardInterrupt
        join(thread)
        alive.append(thread.is_alive())

    monkeypatch.setattr(side_by_side, "_join", interrupted_once)
    monkeypatch.setattr(side_by_side, "processors", lambda: 2)
    holders = OPTIONS._holders
    beside = SideBySide().__enter__()
    for part in lower(square.ir).parts:
        beside.begin(part)
    with pytest.raises(KeyboardInterrupt):
        beside.__exit__(None, None, None)
    assert interrupted
    assert alive == [False]
    assert OPTIONS._holders == holders
