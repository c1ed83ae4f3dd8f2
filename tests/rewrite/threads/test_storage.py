"""Where threads see one memory, it is planned from barrier to barrier: split into loops before, or as it is."""

from __future__ import annotations

import numpy as np
import pytest
from rewrite.threads.small_kernels import kernel, outcome

import tirlite as tl
from tirlite.analysis import check_storage, lifetimes
from tirlite.ir import Allocate, For, View, const, i64, rewrite, seq, statements, validate
from tirlite.rewrite import Normalize, StorageRewrite

STRATEGIES = ("none", "tvm", "share", "pack", "auto")


def live(body: str) -> dict[str, tuple[tuple[int, int], ...]]:
    return {name: lifetime.live for name, lifetime in lifetimes(kernel(body)).items()}


def rewritten(func: tl.PrimFunc, strategy: str = "share") -> tl.PrimFunc:
    """The storage rewrite of a function whose threads are not split."""
    func = Normalize()(func)
    after = StorageRewrite(strategy)(func)
    validate(after)
    assert check_storage(func, after)
    return after


def bytes_of(func: tl.PrimFunc) -> int:
    """Bytes of all allocations."""
    return sum(size for each in tl.allocations(func) if isinstance(size := each.bytes, int))


THREE = """
    for b in tl.thread("blockIdx.x", n // 8):
        s = tl.alloc(tl.i64[8], scope="shared")
        u = tl.alloc(tl.i64[8], scope="shared")
        for t in tl.thread("threadIdx.x", 8):
            s[t] = x[8 * b + t]
            tl.barrier("shared")
            y[8 * b + t] = s[7 - t]
            {between}
            u[t] = y[8 * b + t] + 1
            tl.barrier("shared")
            y[8 * b + t] += u[7 - t]
"""
PARTED, MIXED = THREE.format(between='tl.barrier("shared")'), THREE.format(between="pass")


def test_a_buffer_lives_until_the_next_barrier_after_its_last_use() -> None:
    assert live(PARTED) == {"s": ((1, 6),), "u": ((6, 10),)}


def test_without_a_barrier_in_between_both_live_at_once() -> None:
    assert live(MIXED) == {"s": ((1, 7),), "u": ((4, 9),)}


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_two_shared_buffers_meet_only_across_a_barrier(strategy: str) -> None:
    together = 128 if strategy == "none" else 64
    assert bytes_of(rewritten(kernel(PARTED), strategy)) == together
    assert bytes_of(tl.compile(kernel(PARTED), strategy=strategy).lowered) == together
    assert bytes_of(rewritten(kernel(MIXED), strategy)) == 128
    for body in (PARTED, MIXED):
        wanted = outcome(kernel(body))
        assert outcome(rewritten(kernel(body), strategy)) == wanted
        compiled = tl.compile(kernel(body), strategy=strategy)
        y = np.zeros(16, np.int64)
        compiled(np.arange(1, 17), y)
        assert y.tolist() == outcome(compiled.lowered) == wanted


def test_the_rewrite_of_unsplit_threads() -> None:
    after = """
        for b in tl.thread("blockIdx.x", n // 8):
            s = tl.alloc(tl.i64[8], scope="shared")
            u = tl.view(s, tl.i64[8], fresh=True)
            for t in tl.thread("threadIdx.x", 8):
                s[t] = x[8 * b + t]
                tl.barrier("shared")
                y[8 * b + t] = s[7 - t]
                tl.barrier("shared")
                u[t] = y[8 * b + t] + 1
                tl.barrier("shared")
                y[8 * b + t] += u[7 - t]
        """
    assert str(rewritten(kernel(PARTED))) == str(kernel(after))


def test_after_the_split_a_phase_counts_as_a_whole_for_all_threads() -> None:
    """Each thread is done with `s` when it begins with `u`, but not all are: the two never share."""
    body = """
        s = tl.alloc(tl.i64[16], scope="shared")
        u = tl.alloc(tl.i64[16], scope="shared")
        for t in tl.thread("threadIdx.x", 16):
            s[t] = x[t]
            y[t] = s[t]
            u[15 - t] = y[t]
            tl.barrier("shared")
            y[t] += u[t]
        """
    for strategy in STRATEGIES:
        assert bytes_of(tl.compile(kernel(body), strategy=strategy).lowered) == 256
        assert bytes_of(rewritten(kernel(body), strategy)) == 256


def test_in_a_loop_without_a_barrier_at_its_end_iterations_overlap() -> None:
    """A fast thread is in the next iteration while a slow one still reads `u` of this one."""
    body = """
        for t in tl.thread("threadIdx.x", 16):
            for k in range(3):
                s = tl.alloc(tl.i64[16], scope="shared")
                u = tl.alloc(tl.i64[16], scope="shared")
                s[t] = x[t]
                {first}
                y[t] = s[15 - t]
                tl.barrier("shared")
                u[t] = y[t]
                tl.barrier("shared")
                y[t] += u[15 - t]
                {last}
        """
    barrier = 'tl.barrier("shared")'
    parted, mixed = body.format(first=barrier, last=barrier), body.format(first=barrier, last="pass")
    assert live(parted) == {"s": ((1, 7), (11, 12)), "u": ((7, 11),)}
    assert live(mixed) == {"s": ((1, 7), (9, 11)), "u": ((2, 5), (7, 12))}
    for strategy in STRATEGIES:
        assert bytes_of(rewritten(kernel(parted), strategy)) == (256 if strategy in ("none", "tvm") else 128)
        assert bytes_of(rewritten(kernel(mixed), strategy)) == 256
        assert outcome(rewritten(kernel(mixed), strategy)) == outcome(kernel(mixed))
        assert outcome(rewritten(kernel(parted), strategy)) == outcome(kernel(parted))


def test_a_barrier_in_a_branch_or_a_loop_parts_nothing_outside_of_it() -> None:
    body = """
        for t in tl.thread("threadIdx.x", 16):
            s = tl.alloc(tl.i64[16], scope="shared")
            u = tl.alloc(tl.i64[16], scope="shared")
            s[t] = x[t]
            y[t] = s[t]
            {around}:
                tl.barrier("shared")
            u[15 - t] = y[t]
        """
    for around in ("if n > 100", "for k in range(n - 16)"):
        func = kernel(body.format(around=around))
        for strategy in STRATEGIES:
            assert bytes_of(rewritten(func, strategy)) == 256
            assert outcome(rewritten(func, strategy)) == outcome(func)


def test_threads_may_be_in_both_branches_at_one_time() -> None:
    body = """
        for t in tl.thread("threadIdx.x", 16):
            s = tl.alloc(tl.i64[16], scope="shared")
            u = tl.alloc(tl.i64[16], scope="shared")
            if t % 2 == 0:
                s[t] = x[t]
                y[t] = s[t]
            else:
                u[15 - t] = x[t]
                y[t] = u[15 - t]
        """
    func = kernel(body)
    assert bytes_of(rewritten(func)) == 256
    assert outcome(rewritten(func)) == outcome(func)


def test_what_each_thread_has_for_itself_is_planned_as_in_a_loop() -> None:
    body = """
        for t in tl.thread("threadIdx.x", 16):
            a = tl.alloc(tl.i64[16])
            b = tl.alloc(tl.i64[16])
            a[t] = x[t]
            y[t] = a[t]
            b[t] = y[t]
            y[t] += b[t]
        """
    assert bytes_of(rewritten(kernel(body))) == 128
    assert outcome(rewritten(kernel(body))) == outcome(kernel(body))


def test_with_more_axes_it_stays_where_it_is() -> None:
    body = """
        for c in tl.thread("blockIdx.x", 2):
            for t in tl.thread("threadIdx.x", 8):
                a = tl.alloc(tl.i64[16])
                a[0] = x[t]
                y[8 * c + t] = a[0]
        """
    func = Normalize()(kernel(body))
    for strategy in STRATEGIES:
        assert StorageRewrite(strategy)(func) is func
        assert outcome(tl.compile(func, strategy=strategy).lowered) == outcome(func)


GRID = """
    for c in tl.thread("blockIdx.x", 2):
        for r in tl.thread("blockIdx.y", 2):
            for t in tl.thread("threadIdx.x", 4):
                s = tl.alloc(tl.i64[4], scope="shared")
                s[t] = x[8 * c + 4 * r + t]
                tl.barrier("shared")
                y[8 * c + 4 * r + t] = s[3 - t]
    """


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_blocks_of_two_axes_do_not_share_the_memory_of_a_row_of_blocks(strategy: str) -> None:
    func = Normalize()(kernel(GRID))
    assert StorageRewrite(strategy)(func) is func
    assert outcome(tl.compile(func, strategy=strategy).lowered) == outcome(func)


def test_the_check_sees_memory_of_a_block_that_many_blocks_share() -> None:
    func = Normalize()(kernel(GRID))
    (columns,) = func.body.stmts
    assert isinstance(columns, For)
    (allocate,) = [stmt for stmt in statements(func.body) if isinstance(stmt, Allocate)]
    without = rewrite(columns, {Allocate: lambda node: ()})
    assert isinstance(without, For)
    hoisted = without.replaced(body=seq(allocate, *without.body.stmts))
    assert "storage of its own" in str(check_storage(func, func.replaced(body=seq(hoisted))))


def test_the_check_sees_what_a_plan_must_not_do() -> None:
    """Two shared buffers in one place without a barrier in between, and one copy where each thread has its own."""
    func = Normalize()(kernel(MIXED))
    fault = check_storage(func, _merged(func, "s", "u"))
    assert "`s` and `u` share bytes" in str(fault) or "`u` and `s` share bytes" in str(fault)
    parted = Normalize()(kernel(PARTED))
    assert check_storage(parted, _merged(parted, "s", "u"))
    own = """
        for c in tl.thread("blockIdx.x", 2):
            for t in tl.thread("threadIdx.x", 8):
                a = tl.alloc(tl.i64[16])
                a[0] = x[t]
                y[8 * c + t] = a[0]
        """
    func = Normalize()(kernel(own))
    (blocks,) = func.body.stmts
    assert isinstance(blocks, For)
    (threads,) = blocks.body.stmts
    assert isinstance(threads, For)
    allocate, *rest = threads.body.stmts
    hoisted = blocks.replaced(body=seq(allocate, threads.replaced(body=seq(*rest))))
    assert "storage of its own" in str(check_storage(func, func.replaced(body=seq(hoisted))))


def _merged(func: tl.PrimFunc, kept: str, taken: str) -> tl.PrimFunc:
    """`func` with the buffer `taken` a view of `kept`."""
    buffers = {stmt.buffer.name: stmt.buffer for stmt in statements(func.body) if isinstance(stmt, Allocate)}
    view = View(buffers[taken], buffers[kept], const(0, i64), True)
    result = rewrite(func, {Allocate: lambda stmt: view if stmt.buffer is buffers[taken] else stmt})
    assert isinstance(result, tl.PrimFunc)
    return result
