"""Where temporaries live: stack, workspace, heap."""

from __future__ import annotations

import resource
import threading

import numpy as np
import pytest

import tirlite as tl
from tirlite.codegen import lower
from tirlite.codegen.storage import STACK_BYTES, assign_homes, stack_shares
from tirlite.ir import BufferRef, IntImm, KernelCall, PrimFunc, callees, f32, f64, i64, u8
from tirlite.ir.builder import Builder
from tirlite.sizes import round_up

n = tl.dim("n")


def homes(*tensors: tuple[object, str]) -> list[str]:
    b = Builder("homes")
    b.param("x", f32[n])
    k = b.param("k", i64)
    extents = {"k": k, "n": n}
    for number, (extent, scope) in enumerate(tensors):
        b.alloc(f"t{number}", u8[extents.get(str(extent), extent)], scope=scope)
    return [*assign_homes(b.build()).homes.values()]


def test_buffers_of_constant_size_lie_on_the_stack() -> None:
    assert homes((1024, "global"), (4096, "local"), (1025, "shared")) == ["stack"] * 3


def test_sizes_known_at_entry_lie_in_the_workspace() -> None:
    assert homes(("n", "local"), ("k", "global")) == ["workspace", "workspace"]


@pytest.mark.parametrize(("count", "is_long"), [(3, False), (400, True)])
def test_a_long_function_for_the_size_of_the_workspace_is_left_as_it_is(count: int, *, is_long: bool) -> None:
    b = Builder("sizes")
    b.param("x", f32[n])
    k = b.param("k", i64)
    for number in range(count):
        b.alloc(f"t{number}", u8[n * k + number])
    made = lower(b.build())
    head = next(line for line in made.text.splitlines() if line.startswith(f"define i64 @{made.size_name}("))
    assert ("optnone" in head) is is_long


def test_the_stack_of_a_function_is_bounded_and_goes_to_the_smallest() -> None:
    assert homes(*[(4 * 1024, "local")] * 5) == ["stack"] * 4 + ["workspace"]
    assert homes((16 * 1024, "local"), (4, "local"), (16 * 1024 + 1, "local"), (1025, "shared")) == [
        "workspace",
        "stack",
        "workspace",
        "stack",
    ]


def chain(length: int, body: str) -> PrimFunc:
    """Kernels that call each other; each has `body` before the call of the next one."""
    texts = []
    for k in range(length):
        last = f"tl.call(level_{k - 1}, x, y)" if k else "y[0] = 0"
        texts.append(
            f"@tl.kernel\ndef level_{k}(x: tl.f64[1], y: tl.out[tl.f64[1]]):\n{body}\n    {last}\n    y[0] += t[99]"
        )
    return tl.parse("\n".join(texts))


LOCAL = '    t = tl.alloc(tl.f64[{0}], scope="local")\n    for i in {1}({0}):\n        t[i] = x[0] + i'


@pytest.mark.parametrize("extent", [100, 7900])
def test_the_functions_of_a_chain_share_one_stack(extent: int) -> None:
    func = chain(20, LOCAL.format(extent, "range"))
    shares = stack_shares(func)
    taken = []
    for each in (*callees(func), func):
        storage = assign_homes(each, stack=shares[each])
        taken.append(sum(round_up(storage.sizes[buffer], storage.line) for buffer in storage.of("stack")))
        assert taken[-1] <= shares[each]
    assert sum(taken) <= STACK_BYTES


def test_what_is_called_from_many_places_counts_for_its_longest_chain() -> None:
    func = chain(3, LOCAL.format(100, "range"))
    once, twice = callees(func)
    b = Builder("both")
    x, y = b.param("x", f64[1]), b.param("y", f64[1])
    for callee in (once, func):
        b.add(KernelCall(callee, (BufferRef(x), BufferRef(y))))
    shares = stack_shares(b.build())
    assert [shares[each] for each in (once, twice, func)] == [STACK_BYTES // 4] * 3


@pytest.mark.parametrize(("length", "loop"), [(12, "range"), (6, "tl.parallel")])
def test_a_long_chain_of_calls_runs_in_a_thread_of_little_stack(length: int, loop: str) -> None:
    func = chain(length, LOCAL.format(7900 if loop == "range" else 400_000, loop))
    kernel = tl.compile(func, target=tl.Target.host(workers=3))
    results: list[object] = []
    before = threading.stack_size(256 * 1024)
    try:
        thread = threading.Thread(target=lambda: results.append(kernel(np.array([2.0]))))
        thread.start()
    finally:
        threading.stack_size(before)
    thread.join()
    assert results[0].tolist() == [101 * length]


def test_many_small_buffers_do_not_overflow_the_stack() -> None:
    b = Builder("many")
    y = b.param("y", u8[1000], out=True)
    for k in range(1000):
        t = b.alloc(f"t{k}", u8[1000])
        with b.for_("i", 0, 1000) as i:
            b.store(t, i, i + k)
        b.store(y, k, t[k])
    result = tl.compile(b.build(), strategy="none")()
    np.testing.assert_array_equal(result, (2 * np.arange(1000)).astype(np.uint8))


@tl.kernel(strategy="none")
def triangle(x: tl.f32[n, n], y: tl.out[tl.f32[n]], limit: tl.f32):
    for i in range(1, n):
        row = tl.alloc(tl.f32[i])
        for j in range(i):
            row[j] = x[i, j]
        assert row[0] < limit, "row too large"
        y[i] = row[i - 1]
    y[0] = 0


def test_sizes_that_depend_on_loops_come_from_the_heap() -> None:
    x = np.arange(16, dtype=np.float32).reshape(4, 4)
    assert triangle(x, limit=100).tolist() == [0, 4, 9, 14]
    assert "@aligned_alloc" in triangle.llvm


def test_nothing_leaks_when_an_assert_fires_inside() -> None:
    b = Builder("leak")
    x = b.param("x", i64[1])
    size = b.let("size", x[0])
    outer = b.alloc("outer", u8[size])
    with b.for_("i", 0, 3) as i:
        inner = b.alloc("inner", u8[size + i])
        with b.for_("j", 0, size) as j:
            b.store(outer, j, 1)
            b.store(inner, j, 1)
        b.assert_(i < 2, "stop")  # noqa: PT009
    kernel = tl.compile(b.build(), strategy="none")
    x = np.array([4 << 20])

    def fail() -> None:
        with pytest.raises(tl.KernelAssertionError, match="stop"):
            kernel(x)

    fail()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(30):
        fail()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 40_000  # of 240 MB in kilobytes


def heap(extent: int) -> None:
    b = Builder("heap")
    x = b.param("x", i64[1])
    size = b.let("size", x[0])
    b.store(b.alloc("t", f32[size, size]), (0, 0), 1)
    tl.compile(b.build(), strategy="none")(np.array([extent]))


def test_impossible_sizes_on_the_heap_are_named() -> None:
    heap(10)
    with pytest.raises(tl.KernelRunError, match="`t` has the negative extent -1 along axis 0"):
        heap(-1)
    with pytest.raises(tl.KernelRunError, match=r"`t` has the shape \[2147483648, 2147483648\], which is more than 2"):
        heap(2**31)
    with pytest.raises(tl.KernelRunError, match="no memory for `t`"):
        heap(2**29)


@pytest.mark.parametrize("count", [2**60 + 1, 2**61 + 128, 2**63 - 1])
def test_a_constant_size_beyond_all_memory_is_refused_before_it_is_compiled(count: int) -> None:
    b = Builder("big")
    y = b.param("y", f32[1], out=True)
    t = b.alloc("t", f32[count])
    b.store(t, 0, 1)
    b.store(y, 0, t[0])
    with pytest.raises(tl.KernelError, match=f"`t` takes {4 * count} bytes"):
        tl.compile(b.build(), strategy="none")()


@tl.kernel(strategy="none")
def product(k: tl.i64, l: tl.i64, y: tl.out[tl.f32[1]]):
    t = tl.alloc(tl.f32[k, l])
    u = tl.alloc(tl.f32[l])
    for j in range(3):
        t[0, j] = 1
        u[j] = 2
    y[0] = t[0, 2] + u[1]


def test_sizes_that_wrap_are_refused_before_anything_is_allocated() -> None:
    assert product(2, 3).tolist() == [3]
    for k, l in ((2**31, 2**31), (2**32 + 1, 2**32), (2**62, 4), (2**63 - 1, 2**63 - 1)):
        with pytest.raises(tl.CallValueError, match=f"would need {4 * k * l} bytes of memory for `t`"):
            product(k, l)
    with pytest.raises(tl.CallValueError, match="`t` with the extent -1"):
        product(5, -1)
    with pytest.raises(tl.CallValueError, match="needs 2305843011361177600 bytes of memory for its temporaries"):
        product(2**30, 2**29)


def test_extents_that_wrap_on_the_way_are_refused() -> None:
    b = Builder("sum")
    k = b.param("k", i64)
    t = b.alloc("t", u8[k * 4 + 1])
    b.store(t, IntImm(i64, 0), 1)
    kernel = tl.compile(b.build(), strategy="none")
    kernel(10)
    with pytest.raises(tl.CallValueError, match=f"would need {2**64 + 1} bytes"):
        kernel(2**62)


@pytest.mark.parametrize(
    "extent",
    ["(k * s[0]) if k > 3 else 7", "tl.select(k > 3 and k * s[0] // s[1] > 0, s[0] // s[1], 7)"],
    ids=["if", "and"],
)
def test_extents_that_wrap_on_a_condition_are_refused_where_it_holds(extent: str) -> None:
    text = (
        f"@tl.kernel\ndef f(k: tl.i64, s: tl.i64[2]):\n    t = tl.alloc(tl.u8[{extent}])\n    t[0] = 1\n    s[0] = t[0]"
    )
    kernel = tl.compile(tl.parse(text))
    for k, s in ((4, 5), (3, 2**62)):
        given = np.array([s, 1])
        kernel(k, given)
        assert given[0] == 1
    with pytest.raises(tl.KernelRunError, match="`t`"):
        kernel(4, np.array([2**62, 1]))


def test_a_size_that_is_computed_on_a_condition_is_known_on_entry() -> None:
    @tl.kernel(strategy="none")
    def chosen(k: tl.i64, m: tl.i64, y: tl.out[tl.i64[1]]):
        t = tl.alloc(tl.i64[tl.select(k > 3 and k * k // m > 2, k * m, 7)])
        t[0] = k
        for i in range(1):
            y[i] = t[i]

    assert [int(chosen(k, m)[0]) for k, m in ((2, 1), (5, 2), (4, 100))] == [2, 5, 4]
    with pytest.raises(tl.CallValueError, match="bytes of memory for `t`"):
        chosen(2**32, 1)
