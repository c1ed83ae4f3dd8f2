"""Allocations whose size depends on a loop leave it where a bound is proved, and else stay."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
from every import every
from parsed import parsed

import tirlite as tl
from tirlite.analysis import check_storage
from tirlite.ir import Allocate, View, rewrite
from tirlite.rewrite import Normalize, StorageRewrite, default_pipeline, run_pipeline, verify_after

HEADER = 'n, m = tl.dims("n m")\n\n@tl.kernel\ndef f(x: tl.f32[n, m], y: tl.f32[n, m], s: tl.i64[n], u: tl.u16[n]):\n'


kernel = partial(parsed, HEADER)


def rewritten(func: tl.PrimFunc, strategy: str = "share") -> tl.PrimFunc:
    return run_pipeline(func, default_pipeline(strategy, in_place=False, unchecked=True), [verify_after])


def test_the_storage_leaves_the_loop_and_the_buffer_keeps_its_shape() -> None:
    before = kernel(
        """
        for i in range(n):
            t = tl.alloc(tl.f32[i + 1])
            t[i] = x[i, 0]
            y[i, 0] = t[i]
        """
    )
    after = kernel(
        """
        arena = tl.alloc(tl.f32[n])
        for i in range(n):
            t = tl.view(arena, tl.f32[i + 1], fresh=True)
            t[i] = x[i, 0]
            y[i, 0] = t[i]
        """
    )
    assert str(rewritten(before)).strip() == str(after).strip()


LOOP = """
for i in range({loop}):
    k = {let}
    t = tl.alloc(tl.f32[{extent}])
    t[0] = x[0, 0]
    y[0, 0] = t[0]
"""


@every(
    "extent, bound",
    [
        ("i", "4*n - 4"),
        ("i + 1", "4*n"),
        ("n - i", "4*n"),
        ("k", "8*n"),
        ("2 * i + 3", "8*n + 4"),
        ("m * (i + 1)", "4*m*n"),
        ("min(64, n - i)", "4*min(n, 64)"),
        ("max(i, 4)", "4*max(n - 1, 4)"),
        ("i // 4 + 1", "4*((n + 3)//4)"),
        ("i % 7 + 1", "28"),
        # read from memory, and held to a bound
        ("max(0, min(s[i], 64))", "256"),
        ("min(max(s[i], 1), m)", "4*m"),
        ("min(tl.i64(u[i]), m)", "4*m"),
        ("min(tl.i64(u[i]), m) + 2", "4*m + 8"),
        ("2 * min(max(s[i], 0), n - i)", "8*n"),
        ("s[i] % 7 + 1", "28"),
    ],
)
def test_the_bound_is_what_the_extent_is_at_most(extent: str, bound: str) -> None:
    func = kernel(LOOP.format(loop="n", let="2 * i + 2", extent=extent))
    (storage,) = tl.allocations(rewritten(func))
    assert str(storage.bytes) == bound


@every(
    "loop, let, extent",
    [
        ("n", "i", "s[i]"),  # read from memory
        ("n", "s[i]", "k"),
        ("n", "i", "tl.i64(u[i])"),  # 65,535 at most, but that would be much
        ("n", "i", "min(s[i], 64)"),  # may be negative
        ("n", "i", "max(s[i], 64)"),
        ("n", "i", "max(min(s[i], 64), s[0])"),
        ("n", "min(s[i], 64) - 1", "max(k, 0)"),  # wraps around where that is the least integer of all
        ("n", "i", "max(min(s[i], 64) * 2, 0)"),
        ("n", "i", "i - 3"),  # negative at first: that stops the kernel
        ("n", "i", "i * i"),  # no sum
        ("s[0]", "i", "i + 1"),  # nothing is known of the end
    ],
)
def test_what_has_no_bound_stays(loop: str, let: str, extent: str) -> None:
    func = Normalize()(kernel(LOOP.format(loop=loop, let=let, extent=extent)))
    result = StorageRewrite("share")(func)
    assert str(result) == str(func)


def test_the_extent_is_read_where_the_allocation_stood() -> None:
    func = kernel(
        """
        for i in range(n):
            t = tl.alloc(tl.f32[2, min(max(s[i], 1), m)])
            t[0, 0] = x[i, 0]
            t[1, 0] = x[i, 1]
            s[i] = 9
            y[i, 0] = t[0, 0] + 100 * t[1, 0]
        """
    )
    x = np.arange(10, dtype=np.float32).reshape(5, 2)
    found = []
    compiled = tl.compile(func)
    assert str(compiled.plan.total) == "8*m"
    for run in (compiled, compiled.interpret):
        y, s = np.zeros_like(x), np.array([-7, 0, 1, 2, 1 << 60])
        run(x, y, s, np.zeros(5, np.uint16))
        found.append(y[:, 0].tolist())
    assert found[0] == found[1] == [100, 302, 504, 706, 908]


def test_what_is_held_to_a_bound_shares() -> None:
    body = """
        k = min(tl.i64(u[0]), m)
        a = tl.alloc(tl.f32[k + 1])
        a[k] = x[0, 0]
        y[0, 0] = a[k]
        b = tl.alloc(tl.f32[m])
        b[0] = x[0, 0]
        y[0, 0] += b[0]
    """
    assert [str(each.bytes) for each in tl.allocations(rewritten(kernel(body)))] == ["4*m + 4"]


def test_a_local_that_changes_has_no_bound() -> None:
    body = "k = tl.i64(1)\nwhile k < n:\n    t = tl.alloc(tl.f32[k])\n    t[0] = 1\n    k = k * 2\n    y[0, 0] = t[0]"
    func = kernel(body)
    assert tl.allocations(rewritten(func))[-1].bytes is None


def test_bounded_buffers_share() -> None:
    body = """
        for i in range(n):
            a = tl.alloc(tl.f32[i + 1])
            a[0] = x[i, 0]
            y[i, 0] = a[0]
            b = tl.alloc(tl.f64[n - i])
            b[0] = tl.f64(x[i, 0])
            y[i, 0] = tl.f32(b[0])
        c = tl.alloc(tl.f32[n])
        c[0] = x[0, 0]
        y[0, 0] = c[0]
    """
    assert [str(each.bytes) for each in tl.allocations(rewritten(kernel(body)))] == ["8*n"]


def test_a_tile_at_the_edge_fits_into_tagged_memory() -> None:
    body = """
        for i in range(0, n, 64):
            t = tl.alloc(tl.f32[min(64, n - i)], scope="local.UB")
            t[0] = x[i, 0]
            y[i, 0] = t[0]
    """
    target = tl.Target.host().with_memory("local.UB", tl.MemoryInfo(8, 256, 8 * 256))
    for extent in ("min(64, n - i)", "min(64, tl.i64(u[i]))"):
        func = Normalize()(kernel(body.replace("min(64, n - i)", extent)))
        (storage,) = tl.allocations(StorageRewrite(target=target)(func))
        assert storage.bytes == 256


def test_the_check_notices_storage_that_is_too_small() -> None:
    def on(elements: str) -> tl.PrimFunc:
        text = f"""
            a = tl.alloc(tl.f32[{elements}])
            for i in range(n):
                t = tl.view(a, tl.f32[i + 2], fresh=True)
                t[0] = x[i, 0]
                y[i, 0] = t[0]
        """
        return kernel(text)

    def alone(node: View) -> Allocate:
        return Allocate(node.buffer)

    for elements, enough in (("n + 1", True), ("n", False)):
        func = on(elements)
        original = rewrite(func, {Allocate: lambda _: (), View: alone})
        assert isinstance(original, tl.PrimFunc)
        assert bool(check_storage(original, func)) == enough


@pytest.mark.parametrize("n", [1, 2, 65, 130])
def test_compiled_code_and_interpreter_agree(n: int) -> None:
    func = kernel(
        """
        for i in range(0, n, 64):
            t = tl.alloc(tl.f32[m, min(64, n - i)])
            for j in range(m):
                for k in range(min(64, n - i)):
                    t[j, k] = x[i + k, j]
            for k in range(min(64, n - i)):
                for j in range(m):
                    y[i + k, j] = 2 * t[m - 1 - j, k]
        """
    )
    x = np.arange(3 * n, dtype=np.float32).reshape(n, 3)
    y, z, s, u = np.zeros_like(x), np.zeros_like(x), np.zeros(n, np.int64), np.zeros(n, np.uint16)
    compiled = tl.compile(func, strategy="pack")
    compiled(x, y, s, u)
    compiled.interpret(x, z, s, u)
    np.testing.assert_array_equal(y, 2 * x[:, ::-1])
    np.testing.assert_array_equal(z, y)
