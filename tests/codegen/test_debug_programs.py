"""Checked code of right programs does what plain code does, and nothing is left behind where one is wrong."""

from __future__ import annotations

import contextlib
import ctypes
from pathlib import Path

import numpy as np
import pytest

import tirlite as tl
from tirlite.diag import KernelIndexError, KernelRunError
from tirlite.ir import Builder, f32, i32, i64, u8

pytestmark = pytest.mark.usefixtures("without_effort")

n = tl.dim("n")


def checked(builder: Builder, **options: object) -> tl.Kernel:
    return tl.compile(builder.build(), debug=True, **options)


def test_a_decorator_takes_the_option() -> None:
    @tl.kernel(debug=True)
    def shifted(x: tl.f32[n], y: tl.out[tl.f32[n]]):
        for i in range(n):
            y[i] = x[i + 1]

    with pytest.raises(KernelIndexError, match="index 3 is out of bounds for axis 0 of `x` with extent 3"):
        shifted(np.zeros(3, np.float32))


def test_a_checked_kernel_has_the_plan_of_the_plain_one() -> None:
    @tl.kernel
    def twice(x: tl.f32[n], y: tl.out[tl.f32[n]]):
        t = tl.alloc(tl.f32[n])
        for i in range(n):
            t[i] = x[i]
        for i in range(n):
            y[i] = t[i]

    plain, checked = (tl.compile(twice, debug=debug) for debug in (False, True))
    assert str(checked.plan) == str(plain.plan) != str(tl.plan.solve(tl.plan.Problem(())))
    by_shape = tl.compile(twice, strategy="per_shape", debug=True)
    assert by_shape(np.ones(3, np.float32)).tolist() == [1, 1, 1]


def test_what_another_buffer_has_overwritten_is_not_to_be_read() -> None:
    b = Builder("f")
    y = b.param("y", f32[2])
    arena = b.alloc("arena", f32[4])
    a = b.view("a", arena, f32[2], fresh=True)
    other = b.view("other", arena, u8[8], fresh=True)
    for k in range(2):
        b.store(a, k, 1.0)
    b.store(other, 7, 1)
    b.store(y, 0, a[0])
    b.store(y, 1, a[1])
    y = np.zeros(2, np.float32)
    with pytest.raises(KernelRunError, match=r"depends on `a\[1\]`, which was never written"):
        checked(b, strategy="none")(y)
    assert y.tolist() == [1, 0]


def test_a_buffer_that_is_declared_leaves_alone_what_lives_in_its_bytes() -> None:
    b = Builder("f")
    y = b.param("y", f32[2], out=True)
    arena = b.alloc("arena", f32[4])
    with b.for_("i", 0, 2) as i:
        a = b.view("a", arena, f32[2], fresh=True)
        b.store(a, i, 3.0)
        late = b.view("late", arena, f32[2], fresh=True)
        b.store(y, i, a[i])
        b.store(late, 1 - i, 1.0)
    assert checked(b, strategy="none")().tolist() == [3, 3]


def test_more_declarations_than_owners_give_no_false_alarm() -> None:
    b = Builder("f")
    y = b.param("y", f32[600], out=True)
    for k in range(600):
        t = b.alloc(f"t{k}", f32[300])
        b.store(t, 5, float(k))
        b.store(y, k, t[5])
    for strategy in ("none", "share"):
        assert checked(b, strategy=strategy)().tolist() == list(range(600))


def test_what_an_extern_function_is_pointed_to_counts_as_written() -> None:
    @ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p)
    def fill(address: int) -> int:
        ctypes.memmove(address, (ctypes.c_float * 4)(1, 2, 3, 4), 16)
        return 0

    address = ctypes.cast(fill, ctypes.c_void_p).value
    assert address is not None

    @tl.kernel(debug=True)
    def filled(y: tl.out[tl.f32[4]]):
        t = tl.alloc(tl.f32[4])
        tl.call_extern("i32", address, t)
        for i in range(4):
            y[i] = t[i]

    @tl.kernel(debug=True)
    def careless(y: tl.out[tl.f32[4]]):
        t = tl.alloc(tl.i64[4])
        tl.call_extern("i32", address, t[1])
        y[0] = 0

    assert filled().tolist() == [1, 2, 3, 4]
    with pytest.raises(KernelRunError, match=r"argument 0 of an extern function depends on `t\[1\]`"):
        careless()


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="the memory of a process is read as Linux tells it")
def test_faults_leave_no_memory_behind() -> None:
    b = Builder("f")
    x, y = b.param("x", i32[n]), b.param("y", f32[n])
    t = b.alloc("t", f32[n * 1000])
    with b.for_("i", 0, n) as i:
        inner = b.alloc("inner", f32[i * 1000 + 1000])
        b.store(t, i, 1.0)
        b.store(inner, x[i], t[i])
        b.store(y, i, inner[x[i]])
    kernel = checked(b, strategy="none")
    x, y = np.array([0, 1, 5000], np.int32), np.zeros(3, np.float32)
    with pytest.raises(KernelIndexError):
        kernel(x, y)
    before = _resident()
    for _ in range(3000):  # 36 MB of each allocation, were it not freed
        with contextlib.suppress(KernelIndexError):
            kernel(x, y)
    assert _resident() - before < 20_000_000


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096


def test_long_programs() -> None:
    b = Builder("rows")
    x, y = b.param("x", f32[n]), b.param("y", f32[1], out=True)
    t = b.alloc("t", f32[n])
    for k in range(3000):
        b.store(t, k, x[k])
    total = t[0]
    for k in range(1, 3000):
        total = total + t[k]
    b.store(y, 0, total)
    assert checked(b)(np.ones(3000, np.float32)).tolist() == [3000]


def test_deep_programs() -> None:
    b = Builder("nest")
    y = b.param("y", i64[1])
    count = b.alloc("count", i64[1])
    b.store(count, 0, 0)
    with contextlib.ExitStack() as loops:
        for k in range(1000):
            loops.enter_context(b.for_(f"i{k}", 0, 1))
        b.store(count, 0, count[0] + 1)
    b.store(y, 0, count[0])
    y = np.zeros(1, np.int64)
    checked(b)(y)
    assert y.tolist() == [1]


def test_names_bound_to_one_another_cost_no_more_than_their_number() -> None:
    b = Builder("doubled")
    y = b.param("y", i64[1], out=True)
    t = b.alloc("t", i64[1])
    b.store(t, 0, 1)
    value = b.let("v", t[0])
    for k in range(60):
        value = b.let(f"v{k}", value + value)
    b.store(y, 0, value)
    assert checked(b)().tolist() == [2**60]
