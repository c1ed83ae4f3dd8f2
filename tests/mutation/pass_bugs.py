"""Bugs of the passes around the storage rewrite, of calls, threads and code: each with a kernel that offers it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import import_module

import pytest
from mutation.finder_bugs import by_view, with_sequence, without_touches
from mutation.planner_bugs import both
from mutation.trial import Plant
from mutation.whole_trial import WholeBug

from tirlite.analysis import access
from tirlite.analysis.access import LinearSequence
from tirlite.analysis.in_place import prover
from tirlite.analysis.in_place.prover import Callees
from tirlite.analysis.param_uses import Use, uses_of
from tirlite.analysis.storage_check import walk as storage_walk
from tirlite.codegen import workspace_layout
from tirlite.codegen.functions import outline
from tirlite.codegen.llvm.values import integer
from tirlite.ir import Buffer, Function, KernelCall, PrimFunc, SeqStmt
from tirlite.plan.shape import formulas
from tirlite.plan.shape.per_shape import PerShape
from tirlite.rewrite.storage import planned_storage, shape_rewrite
from tirlite.rewrite.threads import emission
from tirlite.rewrite.threads.phases import Phases, is_barrier

# The packages have functions of these names.
byte_ranges = import_module("tirlite.analysis.byte_ranges")
most_bytes = import_module("tirlite.analysis.most_bytes")
per_shape = import_module("tirlite.plan.shape.per_shape")
call_coverage = import_module("tirlite.analysis.coverage.overwrites")


def put(target: object, name: str, value: object) -> Plant:
    return lambda patch: patch.setattr(target, name, value)


def changed(target: object, name: str, change: Callable[[object], object]) -> Plant:
    """What a function or method gives is changed."""

    def plant(patch: pytest.MonkeyPatch) -> None:
        right = getattr(target, name)
        patch.setattr(target, name, lambda *given, **options: change(right(*given, **options)))

    return plant


def half(size: object) -> object:
    return size // 2 if size is not None else None


def without_a_pair(rows: Sequence[tuple[int, ...]]) -> list[tuple[int, ...]]:
    """Each row of what lives together lacks its last entry."""
    return [row[:-1] for row in rows]


def beside_its_place(entries: Sequence[int]) -> tuple[int, ...]:
    """The last offset of a plan is one byte off."""
    return (*entries[:-1], entries[-1] + 1)


def over_another(entries: Sequence[int]) -> tuple[int, ...]:
    """All places lie at the begin of their arena."""
    return (entries[0], *(0 for _ in entries[1:]))


def barriers_passed(patch: pytest.MonkeyPatch) -> None:
    """Threads are not parted at barriers."""
    right = Phases._items
    patch.setattr(
        Phases,
        "_items",
        lambda self, body, axes: right(self, SeqStmt([s for s in body.stmts if not is_barrier(s)]), axes),
    )


def one_for_all_threads(patch: pytest.MonkeyPatch) -> None:
    """What a thread carries over a barrier has one copy, which all threads share."""

    def outlives(self: object, declared: object) -> None:
        buffer = getattr(declared.stmt, "buffer", None)
        if buffer is not None and buffer not in self.copies:
            self.copies[buffer] = emission.Copies(replace(buffer, scope="global"), ())

    patch.setattr(emission.Names, "_outlives", outlives)


def writes_of_callees(who: object) -> Plant:
    """`who`, a module, does not see that a callee writes to what it is given."""

    def blind(func: Function) -> dict[Buffer, int]:
        return {buffer: use & ~Use.WRITE for buffer, use in uses_of(func).items()}

    return put(who, "uses_of", blind)


def with_calls_that_end_early(func: PrimFunc) -> LinearSequence:
    """What a call is given as scratch dies before the call."""
    sequence = access.linear_sequence(func)
    for allocation in sequence.allocations:
        allocation.touches[:] = [
            replace(t, position=t.position - 1)
            if isinstance(t.node, KernelCall) and allocation.buffer.name == "scratch"
            else t
            for t in allocation.touches
        ]
    return sequence


def no_obstacle_in_callees(patch: pytest.MonkeyPatch) -> None:
    def none(self: object, func: object, destination: object, source: object) -> object:
        yield from ()

    patch.setattr(Callees, "obstacle", none)


def workers_share(patch: pytest.MonkeyPatch) -> None:
    """Each worker has the storage of the first one. Loops go to workers however little they do."""
    right = workspace_layout.worker_addresses
    patch.setattr(outline, "_WORTHWHILE", 0.0)
    patch.setattr(
        workspace_layout,
        "worker_addresses",
        lambda values, storage, loop, part, worker: right(
            values, storage, loop, replace(part, bytes=integer(0)), worker
        ),
    )


def half_of_the_sizes(patch: pytest.MonkeyPatch) -> None:
    """Places get half of the bytes that they need."""
    right = formulas.evaluator

    def evaluator(sizes: Sequence[Size], dims: Sequence[object]) -> Callable[..., object]:
        return right([size // 2 for size in sizes], dims)

    patch.setattr(per_shape, "evaluator", evaluator)


def stale_views(patch: pytest.MonkeyPatch) -> None:
    """A buffer that moved in with another one is taken to hold what that has written."""
    for module in (planned_storage, shape_rewrite):
        right = module.View
        patch.setattr(module, "View", lambda *given, right=right, fresh=False, **options: right(*given, **options))


def always(value: object) -> Callable[..., object]:
    return lambda *given, **options: value


CHAIN = """
    a = tl.alloc(tl.f32[n, m])
    b = tl.alloc(tl.f32[n, m])
    c = tl.alloc(tl.f32[m, m])
    for i in range(n):
        for j in range(m):
            a[i, j] = x[i, j] + 1
    for i in range(m):
        for j in range(m):
            c[i, j] = x[0, j] * a[0, i]
    for i in range(n):
        for j in range(m):
            b[i, j] = a[i, m - 1 - j] + c[j, j]
    for i in range(n):
        for j in range(m):
            y[i, j] = b[n - 1 - i, j]
"""
FLOWS = """
    a = tl.alloc(tl.f32[n, m])
    for i in range(n):
        for j in range(m):
            a[i, j] = x[i, j]
    for j in range(m):
        y[0, j] = a[n - 1, j]
    b = tl.alloc(tl.f32[n, m])
    for i in range(n):
        for j in range(m):
            b[i, j] = x[i, j] + 1
    for i in range(n):
        for j in range(m):
            y[i, j] = b[i, m - 1 - j]
    for j in range(m):
        a[0, j] = 1
    for i in range(n):
        for j in range(m):
            y[i, j] = a[i, m - 1 - j] + y[i, j]
"""
GROWING = """
    for i in range(n):
        a = tl.alloc(tl.f32[2 * i + 20])
        for j in range(2 * i + 20):
            a[j] = x[i, j % m]
        y[i, 0] = a[2 * i + 19] + a[3]
"""
OVER_A_BARRIER = """
    for b in tl.thread("blockIdx.x", n):
        shared = tl.alloc(tl.f32[8], scope="shared")
        for t in tl.thread("threadIdx.x", 8):
            own = tl.alloc(tl.f32[4], scope="local")
            own[1] = x[b, t] + tl.f32(t)
            shared[t] = x[b, t]
            tl.barrier("shared")
            y[b, t] = shared[7 - t] + own[1]
"""
PARALLEL = """
    for i in tl.parallel(n):
        t = tl.alloc(tl.f32[m])
        for j in range(m):
            t[j] = x[i, j] + 1
        for k in range(6):
            for j in range(1, m):
                t[j] = t[j] + t[j - 1] * 0.5
        for j in range(m):
            y[i, j] = t[m - 1 - j]
"""
REVERSING = """
@tl.kernel
def turned(a: tl.f32[n, m], b: tl.f32[n, m]):
    for i in range(n):
        for j in range(m):
            b[i, j] = a[i, m - 1 - j]

"""
CALLING = """
    a = tl.alloc(tl.f32[n, m])
    b = tl.alloc(tl.f32[n, m])
    for i in range(n):
        for j in range(m):
            a[i, j] = x[i, j] + 1
    tl.call(turned, a, b)
    for i in range(n):
        for j in range(m):
            y[i, j] = b[i, j]
"""
WRITING = """
    a = tl.alloc(tl.f32[n, m])
    b = tl.alloc(tl.f32[n, m])
    c = tl.alloc(tl.f32[n, m])
    for i in range(n):
        for j in range(m):
            a[i, j] = x[i, j] + 1
            b[i, j] = x[i, j] + 2
    tl.call(turned, b, c)
    for i in range(n):
        for j in range(m):
            y[i, j] = a[i, m - 1 - j] + c[i, j]
"""
WITH_SCRATCH = """
@tl.kernel
def turned(a: tl.f32[n, m], b: tl.f32[n, m]):
    scratch = tl.alloc(tl.f32[n, m])
    for i in range(n):
        for j in range(m):
            scratch[i, j] = a[i, m - 1 - j]
    for i in range(n):
        for j in range(m):
            b[i, j] = scratch[n - 1 - i, j] + a[i, m - 1 - j]

"""
OVERLAPPING = """
    a = tl.alloc(tl.f32[4 * n + 64])
    v = tl.view(a, tl.f32[2 * n])
    w = tl.view(a, tl.f32[2 * n], byte_offset=4)
    for i in range(4 * n + 64):
        a[i] = x[0, 0]
    a[0] = x[1, 1]
    for i in range(2 * n):
        w[i] = v[i] + 1
    for i in range(n):
        y[i, 0] = a[i]
"""
SLIDING = """
    a = tl.alloc(tl.f32[n + 64])
    b = tl.alloc(tl.f32[n + 64])
    for i in range(n + 64):
        a[i] = x[0, 1]
        b[i] = 1
    a[0] = x[1, 1]
    for i in range(n):
        v = tl.view(a, tl.f32[1], byte_offset=4 * i)
        w = tl.view(a, tl.f32[1], byte_offset=4 * i + 4)
        w[0] = v[0] + b[i]
    for i in range(n):
        y[i, 0] = a[i]
"""
UNWRITTEN = """
    a = tl.alloc(tl.f32[n, m])
    b = tl.alloc(tl.f32[n, m])
    for i in range(n):
        for j in range(m):
            a[i, j] = x[i, j]
    for i in range(n):
        for j in range(m):
            y[i, j] = a[i, m - 1 - j]
    b[0, 0] = 1
    for i in range(n):
        y[i, 0] = b[i, 0]
"""
SHARED = """
    for b in tl.thread("blockIdx.x", n):
        for t in tl.thread("threadIdx.x", 8):
            one = tl.alloc(tl.f32[8], scope="shared")
            two = tl.alloc(tl.f32[8], scope="shared")
            one[t] = x[b, t]
            tl.barrier("shared")
            y[b, t] = one[7 - t]
            two[t] = x[b, t] + 1
            tl.barrier("shared")
            y[b, t] = y[b, t] + two[7 - t]
"""
TURNED = """
    a = tl.alloc(tl.f32[n, m])
    b = tl.alloc(tl.f32[n, m])
    for i in range(n):
        for j in range(m):
            a[i, j] = x[i, j]
    for i in range(n):
        for j in range(m):
            b[i, j] = a[i, m - 1 - j]
    for i in range(n):
        for j in range(m):
            y[i, j] = b[i, j]
"""

THROUGH_A_VIEW = """
    a = tl.alloc(tl.f32[n, m])
    seen = tl.view(a, tl.f32[n, m])
    b = tl.alloc(tl.f32[n, m])
    for i in range(n):
        for j in range(m):
            a[i, j] = x[i, j]
    for i in range(n):
        for j in range(m):
            b[i, j] = a[i, j] + seen[i, m - 1 - j]
    for i in range(n):
        for j in range(m):
            y[i, j] = b[i, j]
"""

PASS_BUGS = (
    WholeBug("proofs do not know of views", "1, 2", without_touches(by_view), THROUGH_A_VIEW, "pack"),
    WholeBug("a web is cut although a value flows", "14", put(call_coverage, "count_that_overwrite", always(1)), FLOWS),
    WholeBug("a bound over a loop is too small", "3, 15", changed(most_bytes.MostBytes, "_bound", half), GROWING),
    WholeBug(
        "a pair is left out of what is disjoint",
        "21",
        changed(per_shape, "rows_of", without_a_pair),
        CHAIN,
        "per_shape",
    ),
    WholeBug("an offset is off by a byte", "5", changed(PerShape, "_made", beside_its_place), CHAIN, "per_shape"),
    WholeBug("all places of a shape are one", "16", changed(PerShape, "_made", over_another), CHAIN, "per_shape"),
    WholeBug("places of a shape are half as large", "9, 16", half_of_the_sizes, CHAIN, "per_shape"),
    WholeBug("threads are not parted at a barrier", "22", barriers_passed, OVER_A_BARRIER),
    WholeBug("threads share what each carries over a barrier", "12", one_for_all_threads, OVER_A_BARRIER),
    WholeBug("workers share their storage", "12", workers_share, PARALLEL, sizes=(512, 2049), is_racy=True),
    WholeBug("writes of callees are not seen", "14", writes_of_callees(access), WRITING, others=REVERSING),
    WholeBug(
        "nobody sees writes of callees",
        "14",
        both(writes_of_callees(access), writes_of_callees(storage_walk)),
        WRITING,
        others=REVERSING,
    ),
    WholeBug("in place across a call at other indices", "1", no_obstacle_in_callees, CALLING, others=REVERSING),
    WholeBug(
        "scratch is free before the call", "17", with_sequence(with_calls_that_end_early), CALLING, others=WITH_SCRATCH
    ),
    WholeBug(
        "overlapping views are told apart",
        "21",
        put(byte_ranges, "are_disjoint", always(True)),
        OVERLAPPING,
        sizes=(64, 9),
    ),
    WholeBug(
        "views that move with a loop are told apart",
        "21",
        put(byte_ranges, "are_disjoint", always(True)),
        SLIDING,
        sizes=(64, 9),
    ),
    WholeBug("a buffer that moves in keeps what was there", "2", stale_views, UNWRITTEN),
    WholeBug("no access is ever reversed", "1", put(prover, "out_of_order", always(None)), TURNED),
)
