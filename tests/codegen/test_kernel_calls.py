"""Functions that call functions: the same by compiled code, the interpreter and plain splicing."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
from small_functions import relu, sums

import tirlite as tl

n, m = tl.dims("n m")


@tl.kernel
def scale(x: tl.f32[n], y: tl.f32[n], by: tl.f32):
    for i in range(n):
        y[i] = by * x[i]


@tl.kernel
def spread(x: tl.f32[n], y: tl.f32[n, m], keep: tl.bool_, half: tl.f16):
    for i in range(n):
        for j in range(m):
            y[i, j] = x[i] if keep else tl.f32(half)


def numbers(*shape: int) -> np.ndarray:
    return np.random.default_rng(7).normal(size=shape).astype(np.float32)


def assert_same(kernel: tl.Kernel, *arguments: object) -> None:
    """The kernel and the interpreter fill the last argument alike."""
    out = arguments[-1]
    assert isinstance(out, np.ndarray)
    interpreted = np.full_like(out, np.nan)
    kernel.interpret(*arguments[:-1], interpreted)
    kernel(*arguments)
    assert np.isfinite(interpreted).all()
    assert np.array_equal(out, interpreted)


@pytest.mark.parametrize("strategy", ["none", "tvm", "share", "pack", "exact", "auto"])
def test_calls_run_in_order_on_the_callers_memory(strategy: str) -> None:
    @tl.kernel
    def network(x: tl.f32[n], y: tl.f32[n]):
        a = tl.alloc(tl.f32[n])
        b = tl.alloc(tl.f32[n])
        tl.call(relu, x, a)
        tl.call(scale, a, b, by=tl.f32(2))
        tl.call(sums, b, a)
        tl.call(scale, y=y, x=a, by=a[0] + 1)

    x, y = numbers(100), np.empty(100, np.float32)
    assert_same(tl.compile(network, strategy=strategy), x, y)
    sums = np.cumsum(np.maximum(x, 0) * np.float32(2), dtype=np.float32)
    assert np.array_equal(y, sums * (sums[0] + 1))


def test_a_function_is_compiled_once() -> None:
    @tl.kernel
    def often(x: tl.f32[n], y: tl.f32[n]):
        a = tl.alloc(tl.f32[n])
        tl.call(relu, x, a)
        tl.call(relu, a, y)
        tl.call(relu, y, a)
        tl.call(relu, a, y)

    kernel = tl.compile(often, in_place=False)
    assert len(re.findall("^define internal fastcc", kernel.llvm, re.MULTILINE)) == 1
    assert kernel.llvm.count("call fastcc") == 4


def test_scalars_of_all_kinds_are_passed() -> None:
    @tl.kernel
    def both(x: tl.f32[n], half: tl.f16, z: tl.f32[2, n, m]):
        top = tl.view(z, tl.f32[n, m])
        bottom = tl.view(z, tl.f32[n, m], byte_offset=4 * n * m)
        tl.call(spread, x, top, True, half)
        tl.call(spread, x, bottom, x[0] > 9, half)

    assert_same(both, numbers(5), np.float16(0.1), np.empty((2, 5, 3), np.float32))


def test_functions_call_functions() -> None:
    @tl.kernel
    def twice(x: tl.f32[m], y: tl.f32[m]):
        t = tl.alloc(tl.f32[m])
        tl.call(sums, x, t)
        tl.call(sums, t, y)

    @tl.kernel
    def rows(x: tl.f32[n, m], y: tl.f32[n, m]):
        for i in tl.parallel(n):
            row = tl.view(x, tl.f32[m], byte_offset=4 * m * i)
            out = tl.view(y, tl.f32[m], byte_offset=4 * m * i)
            tl.call(twice, row, out)

    assert_same(rows, numbers(20, 9), np.empty((20, 9), np.float32))


def test_a_chain_of_calls_may_be_long() -> None:
    func = relu.ir
    for depth in range(60):
        b = tl.ir.Builder(f"level_{depth}")
        x, y = b.param("x", tl.f32[n]), b.param("y", tl.f32[n])
        b.add(tl.ir.KernelCall(func, (tl.ir.BufferRef(x), tl.ir.BufferRef(y))))
        func = b.build()
    assert_same(tl.compile(func), numbers(4), np.empty(4, np.float32))
    assert tl.structural_equal(func, tl.parse(str(func)))


def test_the_same_extents_need_no_check() -> None:
    @tl.kernel
    def fits(a: tl.f32[n], b: tl.f32[m], x: tl.f32[n + m], y: tl.f32[m + n]):
        tl.call(relu, x, y)

    @tl.kernel
    def may_fit(x: tl.f32[n], y: tl.f32[m]):
        tl.call(relu, x, y)

    assert len(fits._version.lowered.faults) == 0
    assert_same(may_fit, numbers(4), np.empty(4, np.float32))
    for run in (may_fit, may_fit.interpret):
        with pytest.raises(tl.KernelRunError, match="axis 0 of `y` of relu takes n by the other arguments, not m"):
            run(numbers(4), np.empty(5, np.float32))


def test_what_is_declared_of_a_dim_is_checked() -> None:
    even = tl.dim("k", multiple_of=2, max=64)

    @tl.kernel
    def pairs(x: tl.f32[even]):
        for i in range(even // 2):
            x[2 * i] = x[2 * i + 1]

    @tl.kernel
    def outer(x: tl.f32[n]):
        tl.call(pairs, x)

    x = numbers(6)
    outer(x)
    assert np.array_equal(x[::2], x[1::2])
    for size, wanted in ((7, "a multiple of 2"), (66, "at most 64")):
        for run in (outer, outer.interpret):
            with pytest.raises(tl.KernelRunError, match=f"takes {wanted}, not n"):
                run(numbers(size))


def test_a_fault_of_a_callee_is_told_at_its_own_line() -> None:
    @tl.kernel
    def positive(x: tl.f32[n]):
        for i in range(n):
            assert x[i] > 0, "all are positive"

    @tl.kernel
    def outer(x: tl.f32[n], y: tl.f32[n]):
        tl.call(positive, x)
        tl.call(relu, x, y)

    x, y = np.array([1, 2, -3], np.float32), np.zeros(3, np.float32)
    for run in (outer, outer.interpret):
        with pytest.raises(tl.KernelAssertionError, match=r'assert x\[i\] > 0, "all are positive"'):
            run(x, y)
    assert not y.any()


def test_an_extent_is_what_it_was_when_the_buffer_was_declared() -> None:
    @tl.kernel
    def outer(x: tl.f32[n], y: tl.f32[n], sizes: tl.i64[1]):
        t = tl.alloc(tl.f32[sizes[0]])
        sizes[0] = 1
        tl.call(relu, x, t)
        tl.call(relu, t, y)

    y = np.zeros(3, np.float32)
    for run in (outer, outer.interpret):
        run(np.ones(3, np.float32), y, np.array([3]))
        assert y.all()


def test_a_view_at_any_byte_may_be_given() -> None:
    @tl.kernel
    def outer(raw: tl.u8[4 * n + 1], y: tl.f32[n]):
        x = tl.view(raw, tl.f32[n], byte_offset=1)
        tl.call(relu, x, y)

    raw = np.concatenate([np.zeros(1, np.uint8), numbers(8).view(np.uint8)])
    y = np.empty(8, np.float32)
    outer(raw, y)
    assert np.array_equal(y, np.maximum(numbers(8), 0))


def test_arguments_that_share_bytes_are_seen_as_such() -> None:
    """In a callee, the parameters then share them as well: each sum goes over what was stored just before."""

    @tl.kernel
    def add_next(x: tl.f32[n], y: tl.f32[n]):
        for i in range(n):
            y[i] = x[i] + y[i]

    @tl.kernel
    def outer(x: tl.f32[n + 1], size: tl.f32[n]):
        low = tl.view(x, tl.f32[n])
        high = tl.view(x, tl.f32[n], byte_offset=4)
        tl.call(add_next, low, high)

    compiled, interpreted = numbers(50), numbers(50)
    outer(compiled, np.empty(49, np.float32))
    outer.interpret(interpreted, np.empty(49, np.float32))
    assert np.array_equal(compiled, interpreted)
    assert np.array_equal(compiled, np.cumsum(numbers(50), dtype=np.float32))


def test_poison_flows_into_a_callee() -> None:
    @tl.kernel
    def outer(y: tl.f32[n]):
        t = tl.alloc(tl.f32[n])
        tl.call(relu, t, y)

    with pytest.raises(tl.KernelRunError, match="uninitialised|never written"):
        outer.interpret(np.zeros(3, np.float32))


def test_calls_in_a_parallel_loop_are_handed_to_workers() -> None:
    @tl.kernel
    def rows(x: tl.f32[n, m], y: tl.f32[n, m]):
        for i in tl.parallel(n):
            row = tl.view(x, tl.f32[m], byte_offset=4 * m * i)
            out = tl.view(y, tl.f32[m], byte_offset=4 * m * i)
            tl.call(sums, row, out)

    x, y = numbers(64, 4000), np.empty((64, 4000), np.float32)
    kernel = tl.compile(rows, target=replace(tl.Target.host(), workers=4))
    kernel(x, y)
    assert "tirlite.fork_join" in kernel.llvm
    assert np.array_equal(y, np.cumsum(x, axis=1, dtype=np.float32))


@tl.kernel
def ones(unused: tl.f32[n], y: tl.f32[n]):
    for i in range(n):
        y[i] = 1


@pytest.mark.parametrize("strategy", ["none", "share", "pack"])
def test_a_temporary_that_is_handed_on_and_touched_by_nobody(strategy: str) -> None:
    @tl.kernel
    def caller(x: tl.f32[n], y: tl.f32[n]):
        idle = tl.alloc(tl.f32[n + 1])
        rest = tl.view(idle, tl.f32[n], byte_offset=4)
        kept = tl.alloc(tl.f32[n])
        tl.call(ones, rest, kept)
        tl.call(ones, x, y)
        for i in range(n):
            y[i] += kept[i]

    assert_same(tl.compile(caller, strategy=strategy), numbers(5), np.empty(5, np.float32))
